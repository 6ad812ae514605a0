"""The anchor: a plain mean that holds the weighted one, if rates depend on sizes.

A weighted mean aims at the mean over all users only if heavy users have the same rates
as light ones.  The anchor U, the mean of all user means with Laplace noise, aims at it
always.  So U is released first, on a share of the budget, and then

- the weighted value is moved into [U - radius, U + radius];
- if the two differ by more than chance allows, a warning says that rates seem to depend
  on sizes.

Both are post-processing of released numbers.

The guarantee.  Moving a number into an interval around U brings it within the radius of
U, so |value - p| <= |U - p| + radius and, by Minkowski's inequality,

    RMSE(value) <= RMSE(U) + sqrt(E radius^2)     for every population,

where U is unbiased with the plain mean's sampling variance V_s and the noise V_N of its
share of the budget.

The radius.  Where V_s exceeds V_N, radius^2 = PRICE V_s - (V_s + V_N): if rates depend
on sizes so much that the value always ends at the same end of the interval, its mean
squared error is V_U + radius^2 = PRICE V_s.  Where noise drowns the anchor, that would
move good values more often than bad ones; there the radius is the least at which moving
adds at most TOLL of the variance that the value has in the model.

Privacy: replacing one user, her size included, moves the mean of n numbers in [0, 1] by
at most 1/n.

Chapter: When the model is wrong.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from hetlit.check import Floats
from hetlit.estimators.spread import CAUTIOUS_SPREAD
from hetlit.estimators.tails import mean_variance
from hetlit.estimators.uncertainty import (
    FALSE_ALARM,
    Clipped,
    Uncertainty,
    of_plain_mean,
    of_weighted_mean,
)
from hetlit.theory import errors
from hetlit.theory.variance import plain_variance

MOST = 0.1  # of epsilon, for the anchor
LEAST = 0.05  # of epsilon; where noise drowns it all the same, it can only warn
CLEARLY = 3.0  # times its noise: an anchor with so much sampling error needs no more
PRICE = 9.5  # times the plain mean's sampling variance: what dependence may cost
TOLL = 0.003  # of the variance in the model: what moving may add where noise prevails
CLAIM = 1.1  # standard deviations of the difference that may hide in the value

DEPENDENCE = (
    "rates seem to depend on sizes: the weighted value and the plain mean of users "
    "differ by {gap:.2g}, which has a chance of less than {chance:.1g} if they do not. "
    'Use method="plain", or ask about users of similar sizes'
)


def anchor_error(k: Floats, counts: Any, n: int, epsilon: float) -> float:
    """Return the standard error of an anchor at p = 1/2, if users differ somewhat."""
    spread = 0.25 * CAUTIOUS_SPREAD
    return math.sqrt(plain_variance(k, counts, 0.25, spread, n, epsilon))


def anchor_share(k: Floats, counts: Any, n: int, epsilon: float) -> float:
    """Return the share of epsilon for the anchor, from 1/20 to 1/10.

    With the share `equal` its noise would be as large as its sampling error.
    """
    equal = math.sqrt(2.0) / (n * epsilon * anchor_error(k, counts, n, math.inf))
    return LEAST if equal > MOST else min(max(CLEARLY * equal, LEAST), MOST)


@dataclass(frozen=True, kw_only=True)
class Anchor:
    """A released plain mean.

    value : U
    scale : of its Laplace noise
    sampling : V_s, its sampling variance as far as is known
    """

    value: float
    scale: float
    sampling: float

    @property
    def variance(self) -> float:
        """V_U = V_s + V_N."""
        return self.sampling + 2.0 * self.scale**2

    def radius(self, promised: float) -> float:
        """Return how far the value may be from the anchor.

        promised : the variance of the value in the model

        Where noise prevails: 2 scale^2 e^(-z/scale) is what moving adds beyond a
        distance z of Laplace noise; three standard deviations are left for the rest.
        """
        noise = 2.0 * self.scale**2
        if self.sampling > noise:
            return math.sqrt(PRICE * self.sampling - self.variance)
        beyond = max(math.log(noise / (TOLL * promised)), 1.0)
        return beyond * self.scale + 3.0 * math.sqrt(self.sampling)

    def moved(self, value: float, radius: float) -> float:
        """Return the value moved into [U - radius, U + radius]."""
        return min(max(value, self.value - radius), self.value + radius)

    def warnings(self, value: float, difference: float) -> tuple[str, ...]:
        """Return a warning if the value differs from the anchor by more than chance.

        difference : the standard deviation of value - U in the model, without the
            noise of U
        """
        gap = abs(value - self.value)
        if gap <= errors.half_width(1.0 - FALSE_ALARM, self.scale, difference):
            return ()
        return (DEPENDENCE.format(gap=gap, chance=FALSE_ALARM),)

    def dependence(self, difference: float) -> float:
        """Return how much a dependence on sizes could hide, as a standard deviation.

        A bias of the value goes without a warning about as far as a few standard
        deviations of value - U; CLAIM of them make five standard errors reach beyond.
        """
        return CLAIM * math.hypot(difference, math.sqrt(2.0) * self.scale)


@dataclass(frozen=True, kw_only=True)
class Settled:
    """A weighted value that was held against its anchor: all from released numbers."""

    anchor: Anchor
    radius: float
    value: float
    uncertainty: Uncertainty
    warnings: tuple[str, ...]


def settle(
    weighted: float,
    scale: float,
    raw: float,
    raw_scale: float,
    *,
    k: Floats,
    counts: Any,
    weights: Floats,
    n: int,
    q: float,
    spread: float,
    most_spread: float,
    clipped: Clipped | None = None,
    blur: float = 0.0,
) -> Settled:
    """Return the weighted value moved towards the anchor, how sure it is, and warnings.

    weighted, scale : a noisy weighted mean and the scale of its Laplace noise
    raw, raw_scale : the anchor likewise
    k, counts, weights : what is known of sizes, and the weight of a user of each
    q, spread : guesses of p(1-p) and var_p, as the plan had them
    most_spread : a guess of var_p that is not understated; infinite for none
    clipped : what a tail test said
    blur : a further standard deviation of the weighted mean
    """
    uniform = np.full_like(weights, 1.0 / n)
    plain = mean_variance(k, counts, uniform, q, min(spread, q))
    anchor = Anchor(value=raw, scale=raw_scale, sampling=plain)
    noise = 2.0 * scale**2 + blur**2
    promised = mean_variance(k, counts, weights, q, min(spread, q)) + noise
    radius = anchor.radius(promised)
    value = anchor.moved(weighted, radius)
    gap = mean_variance(k, counts, weights - uniform, q, min(most_spread, q))
    difference = math.sqrt(gap + noise)
    uncertainty = of_weighted_mean(
        value,
        k,
        counts,
        weights,
        most_spread,
        scale,
        blur=blur,
        clipped=clipped,
        first=None if clipped is None else of_plain_mean(raw, n, raw_scale),
        gap=abs(value - raw),
        dependence=anchor.dependence(difference),
    )
    return Settled(
        anchor=anchor,
        radius=radius,
        value=value,
        uncertainty=uncertainty,
        warnings=anchor.warnings(weighted, difference),
    )
