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

from hetlit import check
from hetlit.check import MOST_SINGLE_USERS
from hetlit.estimators.clipped_mean import Width, check_width
from hetlit.estimators.first_guesses import (
    clamped_mean,
    initial_mean_error,
    paired_differences,
    spread_between_users,
    variance_of_differences,
)
from hetlit.estimators.private_k.bound import checked
from hetlit.estimators.private_k.sums import (
    RatioPlan,
    RatioStatistics,
    of_ratio,
    ratio_plan,
)
from hetlit.estimators.result import Trace
from hetlit.estimators.uncertainty import ROOT_TWO, Uncertainty, of_plain_mean
from hetlit.privacy.account import Account
from hetlit.privacy.ledger import PRIVATE_SIZES, Cohort
from hetlit.privacy.noise import Randomness, source_of
from hetlit.privacy.selection import rank_utilities, size_table
from hetlit.users.draws import random_division, shared_means
from hetlit.users.table import Users

# A cap that nobody reaches makes the noise up to k_max times larger, so it must be
# far less likely than other mishaps.
CAP_FAILURE = 1e-8
MISJUDGED = 2.0  # times a spread that is a median, in an uncertainty


@dataclass(frozen=True, kw_only=True)
class Guesses:
    """What is known before the final sums: all of it public or released privately.

    Only the three cohorts themselves, of the first mean, the spread and the final
    sums, are private.

    raw, alpha : the first mean, as released, and a bound on its error
    rank, cap : the size of this rank is near the cap
    spread : the first guess of the variance of rates
    plan : what a user of each size contributes
    sure : how sure the first mean is
    """

    first: Users
    second: Users
    final: Users
    raw: float
    alpha: float
    rank: int
    cap: int
    spread: float
    plan: RatioPlan
    sure: Uncertainty


def static_cohorts(
    users: Users, rng: np.random.Generator
) -> tuple[Users, Users, Users]:
    """Return three random cohorts: a tenth of the users, another tenth, the rest.

    The second cohort has at most a million users.
    """
    tenth = users.n // 10
    if tenth < 1:
        raise ValueError(f"users must be at least 10, not {users.n}")
    guessing, final = random_division(users, tenth + min(tenth, MOST_SINGLE_USERS), rng)
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
    rng: Randomness,
    delta: float = 0.0,
) -> tuple[Account, Guesses, list[float]]:
    """Return steps 0 to 3, cohorts, first mean, cap and spread, and what is left.

    `shares` are the parts of epsilon that the final cohort spends: on the cap, and on
    the steps to come, whose parts are returned, with the account to spend them.
    """
    cap_epsilon, *later = split(check.epsilon(epsilon), shares, parts)
    if spread_users is not None:
        spread_users = check.integer("spread_users", spread_users, 1)
    check_width(width)
    source = source_of(rng)
    users, k_max, epsilon, beta = checked(users, k_max, epsilon, beta)
    n = users.n
    if spread_users is None:
        spread_users = max(2, math.ceil(min(10.0 * math.log(n) / epsilon, n)))
    first, second, final = static_cohorts(users, source.chance)
    names = ("mean", first), ("spread", second), ("final", final)
    cohorts = tuple(Cohort(name, part.n, "drawn at random") for name, part in names)
    account = Account(epsilon, PRIVATE_SIZES, cohorts, source, delta=delta)

    # 1. First mean, of one number in [0, 1] per user.
    mean = float(np.sum(first.means * first.counts)) / first.n
    raw = account.laplace("first mean", mean, 1.0 / first.n, epsilon, "mean")
    sure = of_plain_mean(raw, first.n, account.scale)
    alpha = min(initial_mean_error(first.n, epsilon, beta), 1.0)

    # 2. Cap: a size that about `spread_users` users of the second cohort reach.
    rank = min(math.ceil(final.n * spread_users / second.n), final.n)
    cap = 1
    # Otherwise the answer could be anything: do not ask, and weigh all users equally.
    if rank > 2.0 / cap_epsilon * math.log(k_max / CAP_FAILURE):
        table = size_table(final.k, None if final.ordered else final.counts, k_max)
        utilities = rank_utilities(table, rank)
        cap += account.choose("cap on sizes", utilities, cap_epsilon, "final")

    # 3. Spread, from users who reach the cap.
    q = clamped_mean(raw, n)[1]
    spread = spread_between_users(spread_variance(account, second, cap), cap, q)
    guesses = Guesses(
        first=first,
        second=second,
        final=final,
        raw=raw,
        alpha=alpha,
        rank=rank,
        cap=cap,
        spread=spread,
        plan=ratio_plan(raw, spread, cap, n=n, alpha=alpha, width=width, beta=beta),
        sure=sure,
    )
    return account, guesses, later


def spread_variance(account: Account, users: Users, cap: int) -> float:
    """Return a private guess of the variance of a mean of `cap` samples.

    Users with fewer samples sit out; the others are paired at random, and the
    median of the differences is picked from a grid.  With nobody to pair, every grid
    point is equally likely: that is a poor guess, not a failure.

    Privacy: the whole budget of the cohort "spread", although who sits out is private.
    Pair the users of D at random.  A user who is replaced breaks at most one pair; if
    the number of users changes, her partner is left over, or paired with whoever was
    left over.  That is a random pairing for D', so counts of small differences move by
    at most 1, and half their total, when it changes, moves the same way by 1/2.
    """
    eligible, chance = users.k >= cap, account.source.chance
    differences = np.zeros(0)
    if int(users.counts[eligible].sum()) >= 2:
        means = shared_means(users.part(eligible), cap, chance)
        differences = paired_differences(means, chance)
    return variance_of_differences(
        account, "spread between users", differences, cap, account.epsilon, "spread"
    )


def split(epsilon: float, shares: Any, parts: int) -> list[float]:
    """Return epsilon divided by shares that add up to 1."""
    values = check.magnitudes("shares", shares, check.LEAST_SHARE, 1.0)
    if len(values) != parts or abs(float(values.sum()) - 1.0) > 1e-9:
        raise ValueError(
            f"shares must be {parts} numbers above 0 that add up to 1, not {shares!r}"
        )
    return [epsilon * float(share) for share in values / values.sum()]


def noisy_total(
    account: Account, sums: RatioStatistics, plan: RatioPlan, n: int, epsilon: float
) -> tuple[float, float]:
    """Return the total weight with noise, and the scale of the noise.

    Where all sizes weigh the same the total is public: no noise, nothing spent.
    """
    if sums.weight_sensitivity == 0.0:
        return n * float(plan.weights[0]), 0.0
    noisy = account.laplace(
        "total weight", sums.total_weight, sums.weight_sensitivity, epsilon, "final"
    )
    return noisy, account.scale


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


def low_total(total_weight: float, scale: float, plan: RatioPlan, n: int) -> float:
    """Return a total weight less what noise typically adds, within its bounds."""
    return clamped_total(total_weight - ROOT_TWO * scale, plan, n)


def known_error(
    value: float, guesses: Guesses, noise: float, total: tuple[float, float]
) -> Uncertainty:
    """Return the uncertainty of a ratio; its total is as in `of_ratio`."""
    # The spread is the median of few differences, which can be off by a factor.
    spread = MISJUDGED * guesses.spread
    return of_ratio(value, guesses.plan, spread, noise, total, guesses.sure)
