"""Static cohorts: who gives which first guess is drawn at random, whatever the data.

Three cohorts give a first mean, the spread between users, and the final sums.  A
user stays in her cohort when her data change, so cohorts pay separately (parallel
composition): each step of the first two may spend the whole epsilon.  Cohorts by
rank of size, as published, do not have this property when sizes are private: one
user's size can change all three at once.

Paper: Section 4.4, repaired.  Chapter: Private k.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from . import check
from .estimate import Trace
from .initial import (
    MEDIAN_OF_DIFFERENCES,
    initial_mean_error,
    noisy_mean,
    paired_differences,
    spread_between_users,
)
from .model import Users
from .noise import (
    exponential_mechanism,
    grid_histogram,
    log_grid,
    median_utilities,
    private_order_statistic,
)
from .privacy import PRIVATE_SIZES, Cohort, Ledger, Step
from .public_size import clamped_mean, shared_means
from .ratio import RatioPlan, RatioStatistics, Width, ratio_plan
from .size_bound import checked
from .subsample import random_division

# The cohort of the spread is read user by user, so it stays small.
MOST_SPREAD_USERS = 10**6
# A cap that nobody reaches makes the noise up to k_max times larger, so it must be
# far less likely than other mishaps.
CAP_FAILURE = 1e-8


@dataclass(frozen=True)
class Guesses:
    """What is known before the final sums: all of it public or released privately.

    Only the three cohorts themselves, of the first mean, the spread and the final
    sums, are private.

    raw, alpha : the first mean, as released, and a bound on its error
    rank, cap, cap_epsilon : the size of this rank is near the cap; what that cost
    spread : the first guess of the variance of rates
    plan : what a user of each size contributes
    """

    first: Users
    second: Users
    final: Users
    raw: float
    alpha: float
    rank: int
    cap: int
    cap_epsilon: float
    spread: float
    plan: RatioPlan


def static_cohorts(
    users: Users, rng: np.random.Generator
) -> tuple[Users, Users, Users]:
    """Return three random cohorts: a tenth of the users, another tenth, the rest.

    The second cohort has at most a million users.
    """
    tenth = users.n // 10
    if tenth < 1:
        raise ValueError(f"users must be at least 10, not {users.n}")
    guessing, final = random_division(users, tenth + min(tenth, MOST_SPREAD_USERS), rng)
    first, second = random_division(guessing, tenth, rng)
    return first, second, final


def first_guesses(
    users: Users,
    epsilon: float,
    shares: Any,
    *,
    parts: int,
    k_max: int,
    spread_users: int | None,
    beta: float,
    width: Width | None,
    rng: np.random.Generator,
) -> tuple[Guesses, list[float]]:
    """Return steps 0 to 3, cohorts, first mean, cap and spread, and what is left.

    `shares` are the parts of epsilon that the final cohort spends: on the cap, and on
    the steps to come, whose parts are returned.
    """
    users, k_max, epsilon, beta = checked(users, k_max, epsilon, beta)
    cap_epsilon, *later = split(epsilon, shares, parts)
    n = users.n
    first, second, final = static_cohorts(users, rng)

    # 1. First mean, of one number in [0, 1] per user.
    total = float(np.sum(first.means * first.counts))
    raw = noisy_mean(total, first.n, epsilon, rng=rng)
    alpha = min(initial_mean_error(first.n, epsilon, beta), 1.0)

    # 2. Cap: a size that about `spread_users` users of the second cohort reach.
    if spread_users is None:
        spread_users = max(2, math.ceil(min(10.0 * math.log(n) / epsilon, n)))
    spread_users = check.integer("spread_users", spread_users, 1)
    rank = min(math.ceil(final.n * spread_users / second.n), final.n)
    if rank > 2.0 / cap_epsilon * math.log(k_max / CAP_FAILURE):
        cap = private_order_statistic(
            final.k, rank, k_max, cap_epsilon, counts=final.counts, rng=rng
        )
    else:  # The answer could be anything: do not ask, and weigh all users equally.
        cap, cap_epsilon = 1, 0.0

    # 3. Spread, from users who reach the cap.
    q = clamped_mean(raw, n)[1]
    spread = spread_between_users(spread_variance(second, cap, epsilon, rng), cap, q)
    plan = ratio_plan(raw, spread, cap, n=n, alpha=alpha, width=width, beta=beta)
    guesses = Guesses(
        first, second, final, raw, alpha, rank, cap, cap_epsilon, spread, plan
    )
    return guesses, later


def spread_variance(
    users: Users, cap: int, epsilon: float, rng: np.random.Generator
) -> float:
    """Return a private guess of the variance of a mean of `cap` samples.

    Users with fewer samples sit out; the others are paired at random, and the
    median of the differences is picked from a grid.  With nobody to pair, every grid
    point is equally likely: that is a poor guess, not a failure.

    Privacy: `epsilon`, although who sits out is private.  Pair the users of D at
    random.  A user who is replaced breaks at most one pair; if the number of users
    changes, her partner is left over, or paired with whoever was left over.  That is
    a random pairing for D', so counts of small differences move by at most 1, and
    half their total, when it changes, moves the same way by 1/2.
    """
    eligible = users.k >= cap
    differences = np.zeros(0)
    if int(users.counts[eligible].sum()) >= 2:
        differences = paired_differences(
            shared_means(users.part(eligible), cap, rng), rng
        )
    grid = log_grid(1.0 / (4.0 * cap), 1.0, 2.0**0.25)
    utilities = median_utilities(grid_histogram(differences, grid))
    # The middle of the median's cell, on the logarithmic scale.
    median = float(grid[exponential_mechanism(utilities, epsilon, rng=rng)])
    median /= 2.0**0.125
    return float((median / MEDIAN_OF_DIFFERENCES) ** 2)


def split(epsilon: float, shares: Any, parts: int) -> list[float]:
    """Return epsilon divided by shares that add up to 1."""
    values = check.floats("shares", shares)
    if len(values) != parts or abs(float(values.sum()) - 1.0) > 1e-9:
        raise ValueError(
            f"shares must be {parts} numbers above 0 that add up to 1, not {shares!r}"
        )
    return [epsilon * float(share) for share in values / values.sum()]


def cohort_ledger(guesses: Guesses, epsilon: float, *last: Step) -> Ledger:
    """Return the ledger of the first guesses and of the last steps."""
    exponential = "exponential mechanism, sensitivity 1"
    cap = Step("cap on sizes", ("final",), exponential, guesses.cap_epsilon)
    return Ledger(
        neighbours=PRIVATE_SIZES,
        cohorts=(
            Cohort("mean", guesses.first.n, "drawn at random"),
            Cohort("spread", guesses.second.n, "drawn at random"),
            Cohort("final", guesses.final.n, "drawn at random"),
        ),
        steps=(
            Step(
                "first mean",
                ("mean",),
                f"Laplace, sensitivity {1 / guesses.first.n:.6g}",
                epsilon,
            ),
            *((cap,) if guesses.cap_epsilon else ()),
            Step("spread between users", ("spread",), exponential, epsilon),
            *last,
        ),
    )


def laplace_step(name: str, sensitivity: float, epsilon: float) -> Step:
    """Return a step of the final cohort."""
    return Step(name, ("final",), f"Laplace, sensitivity {sensitivity:.6g}", epsilon)


def traced(guesses: Guesses, sums: RatioStatistics, **more: Any) -> Trace:
    """Return what happened, with one array entry per row of the final cohort."""
    final, plan = guesses.final, guesses.plan
    place = np.minimum(final.k, guesses.cap) - 1
    return Trace(
        statistics=sums,
        weights=plan.weights[place] / sums.total_weight,
        lower=plan.centre - plan.below[place],
        upper=plan.centre + plan.above[place],
        threshold=guesses.cap,
        rank=guesses.rank,
        initial_mean=plan.centre,
        initial_variance=guesses.spread,
        alpha=guesses.alpha,
        cohorts={"mean": guesses.first, "spread": guesses.second, "final": final},
        **more,
    )


def clamped_total(total_weight: float, plan: RatioPlan, n: int) -> float:
    """Return a noisy total weight within its public bounds, n min v and n max v."""
    lightest, heaviest = float(plan.weights.min()), float(plan.weights.max())
    return min(max(total_weight, n * lightest), n * heaviest)
