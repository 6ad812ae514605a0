"""Algorithm 2 with choices that work: three cohorts, chosen by public sizes.

The users with fewest samples give a first mean, those with most samples a first
variance, and everyone in between gives the final estimate, clipped and weighted by
what the first two say.

Privacy: every user is in one cohort and touches one mechanism, and which one depends
on her size and on chance only, so each mechanism may spend the whole epsilon.  The
final one uses the outputs of the others, which were already paid for.

Uncertainty: nothing is asked about what clipping takes away, so an interval allows for
all that the first mean does not exclude.

Paper: Section 4.2.  Chapter: A realizable estimator.
"""

from __future__ import annotations

import math
from typing import Any

from hetlit import check
from hetlit.check import MOST_SINGLE_USERS, MOST_SIZES
from hetlit.estimators.clipped_mean import (
    BETA,
    ClippedMean,
    Width,
    half_widths_of,
    plan_clipped_mean,
)
from hetlit.estimators.first_guesses import (
    clamped_mean,
    first_sample_total,
    initial_mean_error,
    paired_differences,
    spread_between_users,
    variance_of_differences,
)
from hetlit.estimators.result import Estimate
from hetlit.estimators.uncertainty import (
    Uncertainty,
    of_plain_mean,
    of_weighted_mean,
    within,
)
from hetlit.privacy.account import Account
from hetlit.privacy.ledger import PUBLIC_SIZES, Cohort
from hetlit.privacy.noise import NoiseSource, Randomness, source_of
from hetlit.theory.variance import variance_of_mean
from hetlit.users.draws import shared_means, size_cohorts
from hetlit.users.groups import Groups, by_size
from hetlit.users.table import Users, check_users

MISJUDGED = 2.0  # times a spread that is a median, in an uncertainty


def estimate_cohorts(
    users: Users,
    epsilon: float,
    *,
    beta: float = BETA,
    variance_users: int | None = None,
    width: Width | None = None,
    rng: Randomness = None,
    trace: bool = False,
) -> Estimate:
    """Return Algorithm 2 with choices that work in practice.

    They are Hoeffding's bound on the error of the first mean, an exponential-
    mechanism median for the variance on enough users, and optimal weights.

    Parameters
    ----------
    users : Users, at least 10
    epsilon : the budget of every cohort and hence of the release, in [1e-12, 1e12]
    beta : the probability with which each tail bound may fail, in (0, 1)
    variance_users : users in the variance cohort, from 2 to 10^6; by default
        10 log(n)/epsilon, but at most a quarter of all
    width : a function from sizes to half-widths f(k); by default
        sd(k) sqrt(2 log(2n/beta)) with the estimated sd

    Privacy: `epsilon` in total; see the module.
    """
    users, epsilon, beta, source = checked(users, epsilon, beta, rng, trace)
    n = users.n
    if variance_users is None:
        wanted = min(10.0 * math.log(n) / epsilon, n // 4, MOST_SINGLE_USERS)
        variance_users = max(2, math.ceil(wanted))
    most, middle, least = size_cohorts(users, variance_users, source.chance)
    account = open_account(most, middle, least, epsilon, source)

    # First mean: one sample of each user with little data.
    raw, sure = first_mean(account, least, epsilon)
    centre, q = clamped_mean(raw, least.n)
    alpha = initial_mean_error(least.n, epsilon, beta)

    # First variance: equally many samples of each user with much data.
    shared = shared_size(most)
    means = shared_means(most, shared, source.chance)
    differences = paired_differences(means, source.chance)
    variance = variance_of_differences(
        account, "first variance", differences, shared, epsilon, "variance"
    )
    spread = spread_between_users(variance, shared, q)

    # Final mean: everyone else, clipped and weighted.
    groups = by_size(middle)
    variances = variance_of_mean(groups.sizes.k, q, spread)
    half_widths = alpha + half_widths_of(groups.sizes.k, n, variances, width, beta)
    plan = plan_clipped_mean(
        groups.sizes,
        centre - half_widths,
        centre + half_widths,
        variances,
        epsilon,
        "optimal",
    )
    value = final_mean(account, plan, groups, epsilon)
    # The median of few differences can be off by a factor.
    known = known_error(value, account.scale, plan, MISJUDGED * spread, centre, sure)
    inside = None
    if trace:
        inside = plan.trace(
            groups,
            epsilon,
            initial_mean=centre,
            initial_variance=spread,
            alpha=alpha,
            cohorts={"variance": most, "final": middle, "mean": least},
        )
    return Estimate(value, account.ledger(), inside, known, known.warnings)


def checked(
    users: Any, epsilon: Any, beta: Any, rng: Any, trace: Any
) -> tuple[Users, float, float, NoiseSource]:
    """Return the arguments that both versions of Algorithm 2 share, checked."""
    users = check_users(users)
    epsilon = check.epsilon(epsilon)
    beta = check.chance("beta", beta)
    check.flag("trace", trace)
    return users, epsilon, beta, source_of(rng)


def open_account(
    most: Users, middle: Users, least: Users, epsilon: float, source: NoiseSource
) -> Account:
    """Return an account for three cohorts, each with the whole budget."""
    cohorts = (
        Cohort("variance", most.n, f"most samples, {most.k.min()} or more"),
        Cohort("final", middle.n, "in between"),
        Cohort("mean", least.n, f"fewest samples, {least.k.max()} or fewer"),
    )
    return Account(epsilon, PUBLIC_SIZES, cohorts, source)


def first_mean(
    account: Account, least: Users, epsilon: float
) -> tuple[float, Uncertainty]:
    """Return the noisy mean of one sample of each user with little data."""
    mean = first_sample_total(least, account.source.chance) / least.n
    raw = account.laplace("first mean", mean, 1.0 / least.n, epsilon, "mean")
    return raw, of_plain_mean(raw, least.n, account.scale)


def shared_size(most: Users) -> int:
    """Return how many samples all users with much data can give; 10^7 are plenty."""
    return min(int(most.k.min()), MOST_SIZES)


def final_mean(
    account: Account, plan: ClippedMean, groups: Groups, epsilon: float
) -> float:
    """Return the noisy weighted mean of the users in between."""
    return account.laplace(
        "final mean", plan.noiseless(groups), plan.sensitivity, epsilon, "final"
    )


def known_error(
    value: float,
    noise: float,
    plan: ClippedMean,
    spread: float,
    centre: float,
    first: Uncertainty,
) -> Uncertainty:
    """Return the uncertainty of the final mean, given that of the first, the centre.

    A guess of the spread that does not see a minority will do where somebody is
    clipped, since the first mean speaks for the minority.  Otherwise nobody does.
    """
    return of_weighted_mean(
        value,
        plan.sizes.k,
        plan.sizes.counts,
        plan.weights,
        spread if plan.clips else math.inf,
        noise,
        first=first if plan.clips else None,
        gap=abs(within(value) - centre),
    )
