"""Realizable estimators for public sizes: Algorithm 2, as published and as it works.

Three cohorts, chosen by public sizes: the users with fewest samples give a first
mean, those with most samples a first variance, and everyone in between gives the
final estimate, clipped and weighted by what the first two say.

Privacy: every user is in one cohort and touches one mechanism, and which one depends
on her size and on chance only, so each mechanism may spend the whole epsilon.  The
final one uses the outputs of the others, which were already paid for.

Paper: Section 4.2.  Chapter: A realizable estimator.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from . import check
from .adaptive import estimate_adaptive
from .check import Floats
from .concentration import sub_gaussian_width
from .estimate import Estimate
from .grouping import by_size
from .ideal import BETA, check_users, half_widths_of, plan_clipped_mean
from .initial import (
    GAUSSIAN_THIRD_MOMENT,
    first_sample_total,
    initial_mean_error,
    initial_variance,
    noisy_mean,
    published_bins,
    published_group_size,
    published_mean_error,
    published_users_needed,
    published_variance,
    spread_between_users,
)
from .model import Users, variance_of_mean
from .noise import laplace, simulated
from .privacy import PUBLIC_SIZES, Cohort, Ledger, Step
from .subsample import split_by_size


def estimate_public_size(
    users: Users,
    epsilon: float,
    *,
    method: str = "auto",
    rng: np.random.Generator | None = None,
    trace: bool = False,
    **options: Any,
) -> Estimate:
    """Return a private estimate of the population mean, for public sizes.

    Parameters
    ----------
    users : Users
    epsilon : the total user-level privacy budget of the release, above 0
    method :
        "auto", the one to use: `hetlit.adaptive.estimate_adaptive`;
        "cohorts", Algorithm 2 with choices that work: `estimate_cohorts`;
        "paper", Algorithm 2 with the paper's constants: `estimate_paper`
    rng : simulated noise; see `hetlit.noise`
    trace : also return what happened inside, not for release
    options : keywords of the method

    Privacy: `epsilon` in total, delta 0; neighbours replace one user's samples;
    n and sizes are public.

    Paper: Algorithm `alg.dp`.  Chapter: A realizable estimator.

    >>> from hetlit import Beta, sample_users, sizes
    >>> rng = np.random.default_rng(0)
    >>> k = sizes.zipf(10_000, exponent=1.5, k_max=2000, rng=rng)
    >>> users = sample_users(Beta(0.3, 0.0004), k, rng)
    >>> estimate = estimate_public_size(users, epsilon=1.0, rng=rng)
    >>> abs(estimate.value - 0.3) < 0.02, round(estimate.ledger.epsilon, 9)
    (True, 1.0)
    """
    methods: dict[str, Callable[..., Estimate]] = {
        "auto": estimate_adaptive,
        "cohorts": estimate_cohorts,
        "paper": estimate_paper,
    }
    chosen = methods[check.one_of("method", method, tuple(methods))]
    return chosen(users, epsilon, rng=rng, trace=trace, **options)


def estimate_cohorts(
    users: Users,
    epsilon: float,
    *,
    beta: float = BETA,
    variance_users: int | None = None,
    width: Callable[[Floats], Floats] | None = None,
    rng: np.random.Generator | None = None,
    trace: bool = False,
) -> Estimate:
    """Return Algorithm 2 with choices that work in practice.

    They are Hoeffding's bound on the error of the first mean, an exponential-
    mechanism median for the variance on enough users, and optimal weights.

    Parameters
    ----------
    users : Users, at least 10; sizes below 10^9
    epsilon : the budget of every cohort and hence of the release, above 0
    beta : the probability with which each tail bound may fail, in (0, 1)
    variance_users : users in the variance cohort, at least 2; by default
        10 log(n)/epsilon, but at most a quarter of all
    width : a function from sizes to half-widths f(k); by default
        sd(k) sqrt(2 log(2n/beta)) with the estimated sd

    Privacy: `epsilon` in total; see the module.
    """
    users, epsilon, beta = _checked(users, epsilon, beta)
    source = simulated(rng)
    n = users.n
    if variance_users is None:
        variance_users = max(2, min(math.ceil(10 * math.log(n) / epsilon), n // 4))
    most, middle, least = _cohorts(users, variance_users, source)

    # First mean: one sample of each user with little data.
    raw = noisy_mean(first_sample_total(least, source), least.n, epsilon, rng=source)
    centre, q = clamped_mean(raw, least.n)
    alpha = initial_mean_error(least.n, epsilon, beta)

    # First variance: equally many samples of each user with much data.
    shared = int(most.k.min())
    variance = initial_variance(
        shared_means(most, shared, source), epsilon, k=shared, inflation=1.0, rng=source
    )
    spread = spread_between_users(variance, shared, q)

    # Final mean: everyone else, clipped and weighted.
    groups = by_size(middle)
    variances = variance_of_mean(groups.k, q, spread)
    half_widths = alpha + half_widths_of(groups.k, n, variances, width, beta)
    plan = plan_clipped_mean(
        groups,
        centre - half_widths,
        centre + half_widths,
        variances,
        epsilon,
        "optimal",
    )
    value = plan.noiseless(middle) + laplace(plan.sensitivity / epsilon, rng=source)

    ledger = _ledger((most, middle, least), epsilon, plan.sensitivity)
    inside = plan.trace(
        middle,
        epsilon,
        initial_mean=centre,
        initial_variance=spread,
        alpha=alpha,
        cohorts={"variance": most, "final": middle, "mean": least},
    )
    return Estimate(value, ledger, inside if trace else None)


def estimate_paper(
    users: Users,
    epsilon: float,
    *,
    beta: float = BETA,
    third_moment: float = 8.0 * (3.0 * math.sqrt(3.0) + GAUSSIAN_THIRD_MOMENT),
    rng: np.random.Generator | None = None,
    trace: bool = False,
) -> Estimate:
    """Return Algorithm 2 with the paper's constants.

    What is wrong with them: alpha is several times too wide; the variance
    estimator needs more users than there are people and returns nothing on
    log(n)/epsilon of them, after which the largest possible variance is assumed,
    all users get the same weight and hardly anyone is clipped.  It is private, and
    it is here because the book compares it.

    Parameters
    ----------
    users : Users, at least 10
    epsilon : the budget of every cohort and hence of the release, above 0
    beta : the probability with which each tail bound may fail, in (0, 1)
    third_moment : bounds E|x - mean|^3/sd^3 of the users' means; by default what
        Lemma `lem.thirdmoment` gives for Gaussian rates

    Privacy: `epsilon` in total; see the module.  The ledger notes how many users
    the variance estimator would need.

    Paper: Algorithm `alg.dp` with Section 6.
    """
    users, epsilon, beta = _checked(users, epsilon, beta)
    source = simulated(rng)
    n = users.n
    top = max(2, math.ceil(math.log(n) / epsilon))
    most, middle, least = _cohorts(users, top, source)

    raw = noisy_mean(first_sample_total(least, source), least.n, epsilon, rng=source)
    centre, q = clamped_mean(raw, least.n)
    alpha = published_mean_error(raw, least.n, epsilon, beta)

    shared = int(most.k.min())
    group_size = published_group_size(third_moment)
    lowest, highest = published_bins(shared, group_size)
    needed = published_users_needed(third_moment, epsilon, beta, highest - lowest + 1)
    variance = published_variance(
        shared_means(most, shared, source),
        epsilon,
        k=shared,
        group_size=group_size,
        users_needed=needed,
        rng=source,
    )
    spread = q if variance is None else min(variance, q)

    groups = by_size(middle)
    variances = variance_of_mean(groups.k, q, spread)
    half_widths = alpha + sub_gaussian_width(groups.k, n, spread, beta)
    plan = plan_clipped_mean(
        groups, centre - half_widths, centre + half_widths, variances, epsilon, "paper"
    )
    value = plan.noiseless(middle) + laplace(plan.sensitivity / epsilon, rng=source)

    note = (
        f"the published variance estimator had {most.n} users and needs {needed:.3g}; "
        + ("it returned nothing" if variance is None else "it returned a value")
    )
    ledger = _ledger((most, middle, least), epsilon, plan.sensitivity, note)
    inside = plan.trace(
        middle,
        epsilon,
        initial_mean=centre,
        initial_variance=spread,
        alpha=alpha,
        users_needed=needed,
        cohorts={"variance": most, "final": middle, "mean": least},
    )
    return Estimate(value, ledger, inside if trace else None)


def clamped_mean(raw: float, n: int) -> tuple[float, float]:
    """Return (p, q): a noisy mean clamped to [0, 1] and p(1-p) with a public floor.

    The floor 1/(4n) keeps variances above 0.  Both are post-processing.
    """
    p = min(max(raw, 0.0), 1.0)
    return p, max(p * (1.0 - p), 1.0 / (4.0 * n))


def shared_means(users: Users, k: int, rng: np.random.Generator) -> Floats:
    """Return the mean of k random samples of each user, who must all hold k or more."""
    each = users.expanded()
    if int(each.k.max()) >= 10**9:
        raise ValueError("users must hold fewer than 10^9 samples each for this method")
    return rng.hypergeometric(each.successes, each.k - each.successes, k) / k


def _checked(users: Any, epsilon: Any, beta: Any) -> tuple[Users, float, float]:
    users = check_users(users)
    epsilon = check.positive("epsilon", epsilon)
    return users, epsilon, check.strictly_between("beta", beta, 0.0, 1.0)


def _cohorts(
    users: Users, top: int, rng: np.random.Generator
) -> tuple[Users, Users, Users]:
    top = check.integer("variance_users", top, 2)
    bottom = users.n // 10
    if bottom < 1:
        raise ValueError(f"users must be at least 10, not {users.n}")
    if top + bottom >= users.n:
        raise ValueError(
            f"users: of {users.n}, the variance cohort takes {top} and the mean cohort "
            f"{bottom}, which leaves nobody for the final one; more users or a larger "
            f"epsilon are needed"
        )
    return split_by_size(users, top, bottom, rng)


def _ledger(
    cohorts: tuple[Users, Users, Users], epsilon: float, sensitivity: float, *notes: str
) -> Ledger:
    most, middle, least = cohorts
    return Ledger(
        neighbours=PUBLIC_SIZES,
        cohorts=(
            Cohort("variance", most.n, f"most samples, {most.k.min()} or more"),
            Cohort("final", middle.n, "in between"),
            Cohort("mean", least.n, f"fewest samples, {least.k.max()} or fewer"),
        ),
        steps=(
            Step(
                "first mean",
                ("mean",),
                f"Laplace, sensitivity {1 / least.n:.6g}",
                epsilon,
            ),
            Step(
                "first variance",
                ("variance",),
                "exponential mechanism, sensitivity 1",
                epsilon,
            ),
            Step(
                "final mean",
                ("final",),
                f"Laplace, sensitivity {sensitivity:.6g}",
                epsilon,
            ),
        ),
        notes=notes,
    )
