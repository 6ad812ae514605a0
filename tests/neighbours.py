"""Small tables of users, a plan for them, and all their neighbours."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from hypothesis import settings

from hetlit import Users, sizes
from hetlit.estimators.public_size.auto import Plan
from hetlit.users.groups import Groups, by_size_class

QUICK = settings(max_examples=40)
METHODS = ("auto", "cohorts", "paper")
MANY, SOME, ONE = 40, 3, 1
WEIGHTS = ("paper", "optimal")
# Forty users of sizes ceil(40/i), of whom 5 to 36 are the final cohort.
D40_X = np.array([30, 15, 8, *map(int, "3234431113221112221001121101121101121")])
FINAL_40 = Users(sizes.harmonic(40)[4:36], D40_X[4:36])
SMALL = Users([1, 3, 8, 20], [1, 1, 5, 9], [40, 30, 20, 10])


def twenty_users() -> Users:
    """Return four users with 3 samples, fourteen with 2 and two with 1."""
    k = np.array([3] * 4 + [2] * 14 + [1] * 2)
    return Users(k, np.arange(20) % (k + 1))


def eighteen_users() -> Users:
    k = [MANY] * 6 + [SOME] * 6 + [ONE] * 6
    return Users(k, [0, 40, 12, 12, 13, 12, 0, 3, 1, 1, 1, 1, 0, 1, 0, 1, 0, 0])


def neighbours(users: Users, few: bool = False) -> Iterator[tuple[int, Users]]:
    """Yield (size, table) for all tables in which one user's samples are replaced."""
    seen = set()
    for user, (k, ones) in enumerate(zip(users.k, users.successes, strict=True)):
        if (k, ones) in seen:  # users with equal rows are interchangeable
            continue
        seen.add((k, ones))
        for value in {0, 1, k // 3, k} if few else range(k + 1):
            successes = users.successes.copy()
            successes[user] = value
            yield int(k), Users(users.k, successes)


def plan_by_hand(users: Users) -> tuple[Groups, Plan]:
    groups = by_size_class(users)
    return groups, Plan(
        sizes=groups.sizes,
        epsilon=10.0,
        anchor_epsilon=1.0,
        spread_epsilon=2.0,
        spread_from=float(SOME),
        spread_users=12,
        resolution=0.01,
    )


def kinds(largest: int) -> list[tuple[int, int]]:
    """All (k, successes) of a user with up to `largest` samples."""
    return [(k, ones) for k in range(1, largest + 1) for ones in range(k + 1)]


def table(users: Any) -> Users:
    k, ones = zip(*users, strict=True)
    return Users(k, ones)
