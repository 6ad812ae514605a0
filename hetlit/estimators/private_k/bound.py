"""The public bound on sizes that private sizes need, and why."""

from __future__ import annotations

from typing import Any

from hetlit import check
from hetlit.check import MOST_SIZES
from hetlit.users.table import Users, check_users


def check_bound(users: Any, k_max: Any) -> int:
    """Return k_max if it is a public bound that the users keep.

    The error says that somebody exceeds it, and neither who nor by how much: cut
    users first, and it cannot happen.
    """
    why = (
        "sizes are private here, so the noise must cover a user of any size, and a "
        "bound read from the data would give the largest one away"
    )
    how = "cut users to it with users.capped(k_max, rng)"
    users = check_users(users)
    if k_max is None:
        raise TypeError(
            f"k_max is missing: {why}.  Choose one without looking at the users, "
            f"k_max=1000 for example, and {how}"
        )
    bound = check.integer("k_max", k_max, 1)
    if bound > MOST_SIZES:
        raise ValueError(f"k_max must be at most {MOST_SIZES}, not {k_max}")
    if users.k.max() > bound:
        raise ValueError(
            f"k_max must be at least every user's k, and {k_max} is not.  It must be "
            f"a public bound: {why}.  If it is, {how}"
        )
    return bound


def checked(
    users: Any, k_max: Any, epsilon: Any, beta: Any
) -> tuple[Users, int, float, float]:
    """Return the arguments that all methods share, checked."""
    users = check_users(users)
    epsilon = check.epsilon(epsilon)
    beta = check.chance("beta", beta)
    return users, check_bound(users, k_max), epsilon, beta
