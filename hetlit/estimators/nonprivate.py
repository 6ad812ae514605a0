"""Estimators without privacy: what the private ones are measured against.

Paper: Section 3.  Chapter: Without privacy.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from hetlit import check
from hetlit.estimators.first_guesses import (
    clamped_mean,
    first_sample_total,
    known_spread,
)
from hetlit.estimators.result import Estimate, Trace
from hetlit.estimators.uncertainty import Uncertainty, of_weighted_mean
from hetlit.privacy.ledger import not_private
from hetlit.theory.variance import variance_of_mean
from hetlit.theory.weights import inverse_variance_weights
from hetlit.users.draws import split_by_size
from hetlit.users.groups import by_size
from hetlit.users.table import Users, check_users


def estimate_nonprivate_ideal(
    users: Users, p: float, var_p: float, *, trace: bool = False
) -> Estimate:
    """Return the mean of user means, weighted by the inverse of their true variances.

    No linear unbiased estimator has a smaller variance.

    Paper: equation `nonprivideal`.  Chapter: Without privacy.

    >>> users = Users(k=[8, 4, 2, 1], successes=[4, 1, 1, 0])
    >>> estimate = estimate_nonprivate_ideal(users, 0.4, 0.01, trace=True)
    >>> round(estimate.trace.objective, 6)
    0.018944
    """
    users = check_users(users)
    p, var_p = check.mean_and_variance(p, var_p)
    trace = check.flag("trace", trace)
    q = known_spread(p, users.n)
    value, parts, _ = _inverse_variance_mean(users, q, var_p)
    sure = Uncertainty(noise=0.0, sampling=math.sqrt(parts["objective"]))
    ledger = not_private(users.n, "weighted mean")
    return Estimate(value, ledger, Trace(**parts) if trace else None, sure)


def estimate_nonprivate(
    users: Users,
    *,
    rng: np.random.Generator,
    debias: bool = False,
    trace: bool = False,
) -> Estimate:
    """Return Algorithm 1: first guesses from two cohorts, the estimate from a third.

    The log n users with most samples give the variance of the rates, the tenth
    with fewest samples gives the mean, one sample each, and the others are
    weighted by the inverse of the variances that follow.

    Parameters
    ----------
    users : Users, at least 10
    rng : draws the "first" sample of each user, since their order is not kept
    debias : remove from the variance the coin tosses it contains (the paper does
        not: its guess is the variance of the means, a little more than var_p)

    Paper: Algorithm `alg.np`, with the sums normalised, the factor 2 of the
    variance removed and the index ranges made disjoint.

    >>> from hetlit import Constant, sample_users, sizes
    >>> rng = np.random.default_rng(0)
    >>> users = sample_users(Constant(0.5), sizes.harmonic(10_000), rng)
    >>> abs(estimate_nonprivate(users, rng=rng).value - 0.5) < 0.02
    True
    """
    users = check_users(users)
    rng = check.generator("rng", rng)
    debias, trace = check.flag("debias", debias), check.flag("trace", trace)
    top = max(2, math.ceil(math.log(users.n)))
    bottom = users.n // 10
    if bottom < 1 or top + bottom >= users.n:
        raise ValueError(
            f"users must be at least 10, enough for three cohorts, not {users.n}"
        )
    most, middle, least = split_by_size(users, top, bottom, rng)

    first_mean = first_sample_total(least, rng) / least.n
    _, q = clamped_mean(first_mean, least.n)
    spread = float(np.var(most.expanded().means, ddof=1))
    if debias:
        inverse_k = float(np.sum(most.counts / most.k)) / most.n
        spread = (spread - q * inverse_k) / (1.0 - inverse_k) if inverse_k < 1 else 0.0
    spread = min(max(spread, 0.0), q)

    value, parts, sure = _inverse_variance_mean(middle, q, spread)
    cohorts = {"variance": most, "mean": least, "final": middle}
    inside = Trace(
        initial_mean=first_mean, initial_variance=spread, cohorts=cohorts, **parts
    )
    ledger = not_private(users.n, "Algorithm 1")
    return Estimate(value, ledger, inside if trace else None, sure)


def _inverse_variance_mean(
    users: Users, q: float, var_p: float
) -> tuple[float, dict[str, Any], Uncertainty]:
    """Return the mean, the parts of its trace, and how sure it is whatever var_p is."""
    groups = by_size(users)
    sizes = groups.sizes
    variances = variance_of_mean(sizes.k, q, var_p)
    weights = inverse_variance_weights(variances, counts=sizes.counts)
    value = groups.sum(lambda group, means: weights[group] * means)
    parts = {
        "noiseless": value,
        "weights": weights[groups.all_positions],
        "objective": float(1.0 / np.sum(sizes.counts / variances)),
    }
    sure = of_weighted_mean(value, sizes.k, sizes.counts, weights, math.inf, 0.0)
    return value, parts, sure
