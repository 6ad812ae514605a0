"""The ideal private estimator: everything known but the mean itself.

Each user's mean is clipped to an interval around p that holds it with high
probability, the clipped means are averaged with weights that no single user
dominates, and Laplace noise hides any one user.

Privacy: for public sizes, the noiseless sum moves by at most
max_i w_i (b_i - a_i) when one user's samples are replaced, because her weight and
her interval depend on her size only and her clipped mean stays in the interval.

Paper: Section 4.1.  Chapter: The ideal private estimator.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from . import check
from .check import Floats, Integers
from .estimate import Estimate, Trace
from .grouping import SizeGroups, by_size, sum_over_users
from .model import Users, variance_of_mean
from .noise import laplace, simulated
from .privacy import PUBLIC_SIZES, Cohort, Ledger, Step
from .weights import (
    best_threshold,
    optimal_weights,
    release_variance,
    truncated_weights,
)

BETA = 0.05


@dataclass(frozen=True)
class ClippedMean:
    """A weighted mean of clipped user means, planned before any data are seen.

    All arrays have one entry per group of sizes; `weights` are per user.
    """

    groups: SizeGroups
    lower: Floats
    upper: Floats
    weights: Floats
    threshold: float | None
    objective: float

    @property
    def sensitivity(self) -> float:
        """The most that one user's samples can move the noiseless value."""
        return float(np.max(self.weights * (self.upper - self.lower)))

    def noiseless(self, users: Users) -> float:
        """Return the weighted mean of the users' clipped means."""
        clips = self.lower.max() > 0.0 or self.upper.min() < 1.0

        def contribution(group: Integers, means: Floats) -> Floats:
            if clips:
                means = np.clip(means, self.lower[group], self.upper[group])
            return np.asarray(self.weights[group] * means)

        return sum_over_users(users, self.groups, contribution)

    def trace(self, users: Users, epsilon: float, **more: Any) -> Trace:
        """Return what happens on these users, with one array entry per row."""
        group = self.groups.position(users.k)
        return Trace(
            noiseless=self.noiseless(users),
            noise_scale=self.sensitivity / epsilon,
            sensitivity=self.sensitivity,
            weights=self.weights[group],
            lower=self.lower[group],
            upper=self.upper[group],
            threshold=self.threshold,
            objective=self.objective,
            **more,
        )


def plan_clipped_mean(
    groups: SizeGroups,
    lower: Floats,
    upper: Floats,
    variances: Floats,
    epsilon: float,
    weights: str,
) -> ClippedMean:
    """Return the intervals [lower, upper] within [0, 1] and the weights for them.

    Every argument must be public or privately released: users' samples play no part.
    """
    lower, upper = np.maximum(0.0, lower), np.minimum(1.0, upper)
    widths = upper - lower
    threshold = None
    if weights == "optimal":
        chosen, objective = optimal_weights(
            variances, widths, epsilon, counts=groups.counts
        )
    else:
        threshold, _ = best_threshold(variances, widths, epsilon, counts=groups.counts)
        chosen = truncated_weights(variances, threshold, counts=groups.counts)
        objective = release_variance(
            chosen, variances, widths, epsilon, counts=groups.counts
        )
    return ClippedMean(groups, lower, upper, chosen, threshold, objective)


def estimate_ideal(
    users: Users,
    p: float,
    var_p: float,
    epsilon: float,
    *,
    alpha: float = 0.0,
    width: Callable[[Floats], Floats] | None = None,
    weights: str = "paper",
    rng: np.random.Generator | None = None,
    trace: bool = False,
) -> Estimate:
    """Return the ideal private estimate of the mean, given p and var_p.

    It is the yardstick for the others and, with first guesses in place of p and
    var_p, the last step of Algorithm 2.

    Parameters
    ----------
    users : Users
    p : the centre of the intervals, in [0, 1]
    var_p : the variance of the users' rates, in [0, p(1-p)]
    epsilon : the user-level privacy budget of the release, above 0
    alpha : how far p may be from the population mean, at least 0
    width : a function from sizes k, shape (groups,), to half-widths f(k); by default
        sd(k) sqrt(2 log(2n/0.05)), for means with tails no heavier than Gaussian:
        too narrow where ones are rare, see `hetlit.concentration`
    weights : "paper" for min(1/variance, T/sd) with the best T, or "optimal"
    rng : simulated noise; see `hetlit.noise`
    trace : also return what happened inside, not for release

    Returns
    -------
    Estimate, with trace.objective the variance of the noisy sum if nobody is
    clipped: sum w^2 variance + 2 (max w (b-a) / epsilon)^2.

    Privacy: `epsilon` in total, delta 0; neighbours replace one user's samples;
    n and sizes are public.  p and var_p must not come from the same users' data,
    unless they were released privately.

    Paper: equation `privoptimal1`.  Chapter: The ideal private estimator.

    >>> from hetlit import Beta, sample_users, sizes
    >>> rng = np.random.default_rng(0)
    >>> users = sample_users(Beta(0.3, 0.0004), sizes.harmonic(10_000), rng)
    >>> estimate = estimate_ideal(users, 0.3, 0.0004, 1.0, rng=rng, trace=True)
    >>> round(estimate.trace.objective * 1e6, 3)
    3.856
    """
    users = check_users(users)
    p, var_p = check.mean_and_variance(p, var_p)
    epsilon = check.positive("epsilon", epsilon)
    alpha = check.at_least("alpha", alpha, 0.0)
    weights = check.one_of("weights", weights, ("paper", "optimal"))
    simulated(rng)

    plan = plan_ideal(
        by_size(users), p, var_p, epsilon, alpha=alpha, width=width, weights=weights
    )
    noise = laplace(plan.sensitivity / epsilon, rng=rng)
    ledger = Ledger(
        neighbours=PUBLIC_SIZES,
        cohorts=(Cohort("everyone", users.n, "no selection"),),
        steps=(
            Step(
                "clipped weighted mean",
                ("everyone",),
                f"Laplace, sensitivity {plan.sensitivity:.6g}",
                epsilon,
            ),
        ),
        notes=("p and var_p were taken as known",),
    )
    return Estimate(
        plan.noiseless(users) + noise,
        ledger,
        plan.trace(users, epsilon) if trace else None,
    )


def plan_ideal(
    groups: SizeGroups,
    p: float,
    var_p: float,
    epsilon: float,
    *,
    alpha: float = 0.0,
    width: Callable[[Floats], Floats] | None = None,
    weights: str = "optimal",
) -> ClippedMean:
    """Return what `estimate_ideal` plans for users of these sizes."""
    n = int(groups.counts.sum())
    # A floor keeps variances above 0 for p = 0 and p = 1.
    q = p * (1.0 - p) or 1.0 / (4.0 * n)
    variances = variance_of_mean(groups.k, q, var_p)
    half_widths = alpha + half_widths_of(groups.k, n, variances, width)
    return plan_clipped_mean(
        groups, p - half_widths, p + half_widths, variances, epsilon, weights
    )


def half_widths_of(
    k: Floats,
    n: int,
    variances: Floats,
    width: Callable[[Floats], Floats] | None,
    beta: float = BETA,
) -> Floats:
    """Return width(k), checked, or sd sqrt(2 log(2n/beta)) when width is None."""
    if width is None:
        return np.sqrt(variances * 2.0 * math.log(2.0 * n / beta))
    values = np.asarray(width(k), dtype=np.float64)
    if values.shape not in ((), k.shape):
        raise ValueError(
            f"width must return one half-width per size, shape {k.shape}, "
            f"not {values.shape}"
        )
    if not (np.isfinite(values) & (values >= 0)).all():
        raise ValueError("width must return finite half-widths of at least 0")
    return np.broadcast_to(values, k.shape)


def check_users(users: Any) -> Users:
    """Return `users` if it is a `Users` table."""
    if not isinstance(users, Users):
        raise TypeError(f"users must be a hetlit.Users, not {type(users).__name__}")
    return users
