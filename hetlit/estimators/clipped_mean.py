"""The weighted clipped mean, planned before any data are seen.

Each user's mean is clipped to an interval, and the clipped means are averaged with
weights.  Weight and interval depend on a user's size only, so replacing her samples
moves the noiseless sum by at most max_i w_i (b_i - a_i): her clipped mean stays in her
interval, and all others stay as they are.

Chapter: The ideal private estimator.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from hetlit.check import MOST_USERS, Floats
from hetlit.estimators.result import Trace
from hetlit.theory.variance import variance_of_mean
from hetlit.theory.weights import (
    planned_optimal_weights,
    planned_threshold,
    planned_truncated_weights,
    planned_variance,
)
from hetlit.users.groups import Groups, Sizes

BETA = 0.05
# Sums of floats depend on the order and the merging of their rows in the last digits.
# No sensitivity is below this, that of one user among the most there can be, so that
# the noise covers them even where intervals are narrow or empty.
FINEST = 1.0 / MOST_USERS

Width = Callable[[Floats], Floats | float]  # one number may do for all sizes


@dataclass(frozen=True, kw_only=True)
class ClippedMean:
    """A weighted mean of clipped user means; everything in it is public.

    All arrays have one entry per size; `weights` are per user.
    """

    sizes: Sizes
    lower: Floats
    upper: Floats
    weights: Floats
    threshold: float | None
    objective: float

    @property
    def sensitivity(self) -> float:
        """The most that one user's samples can move the noiseless value."""
        return max(float(np.max(self.weights * (self.upper - self.lower))), FINEST)

    @property
    def clips(self) -> bool:
        """Whether any interval is not all of [0, 1]."""
        return bool(self.lower.max() > 0.0 or self.upper.min() < 1.0)

    def noiseless(self, groups: Groups) -> float:
        """Return the weighted mean of the users' clipped means."""
        clips = self.clips

        def contribution(group: Any, means: Floats) -> Floats:
            if clips:
                means = np.clip(means, self.lower[group], self.upper[group])
            return np.asarray(self.weights[group] * means)

        return groups.sum(contribution)

    def variance(self, q: float, var_p: float, epsilon: float) -> float:
        """Return the variance of a release if p(1-p) = q and nobody is clipped."""
        variances = variance_of_mean(self.sizes.k, q, var_p)
        widths, counts = self.upper - self.lower, self.sizes.counts
        return planned_variance(self.weights, variances, widths, epsilon, counts)

    def trace(self, groups: Groups, epsilon: float, **more: Any) -> Trace:
        """Return what happens on these users, with one array entry per row."""
        group = groups.all_positions
        return Trace(
            noiseless=self.noiseless(groups),
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
    sizes: Sizes,
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
    widths, counts = upper - lower, sizes.counts
    threshold = None
    if weights == "optimal":
        chosen, objective = planned_optimal_weights(variances, widths, epsilon, counts)
    else:
        threshold, _ = planned_threshold(variances, widths, epsilon, counts)
        chosen = planned_truncated_weights(variances, threshold, counts)
        objective = planned_variance(chosen, variances, widths, epsilon, counts)
    return ClippedMean(
        sizes=sizes,
        lower=lower,
        upper=upper,
        weights=chosen,
        threshold=threshold,
        objective=objective,
    )


def check_width(width: Any) -> None:
    """Refuse what is neither None nor a function."""
    if width is not None and not callable(width):
        raise TypeError(f"width must be a function of sizes, not {width!r}")


def half_widths_of(
    k: Floats,
    n: int,
    variances: Floats,
    width: Width | None,
    beta: float = BETA,
) -> Floats:
    """Return width(k), checked, or sd sqrt(2 log(2n/beta)) when width is None."""
    if width is None:
        return np.sqrt(variances * 2.0 * math.log(2.0 * n / beta))
    check_width(width)
    try:
        values = np.asarray(width(k.copy()))  # a copy: it may be computed in place
    except (TypeError, ValueError) as error:
        raise ValueError(f"width must return numbers: {error}") from error
    if values.dtype.kind not in "iuf":
        raise ValueError(f"width must return numbers, not {values.dtype}")
    values = values.astype(np.float64)
    if values.shape not in ((), k.shape):
        # The number of sizes may be private, or a cap that was drawn.
        raise ValueError("width must return a number, or one half-width per size")
    if not (np.isfinite(values) & (values >= 0)).all():
        raise ValueError("width must return finite half-widths of at least 0")
    return np.broadcast_to(values, k.shape)
