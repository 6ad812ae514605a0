"""The anchor: a plain mean that holds the weighted one, whatever sizes have to do with rates.

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

from hetlit.theory import errors

ANCHOR_SHARE = 0.1  # of epsilon, for the anchor
PRICE = 10.5  # times the plain mean's sampling variance: what dependence may cost
TOLL = 0.01  # of the variance in the model: what moving may add where noise prevails
FALSE_ALARM = 0.006  # the chance of a warning in the model
CLAIM = 1.1  # standard deviations of the difference that may hide in the value

DEPENDENCE = (
    "rates seem to depend on sizes: the weighted value and the plain mean of users "
    "differ by {gap:.2g}, which has a chance of less than {chance:.1g} if they do not. "
    'Use method="plain", or ask about users of similar sizes'
)


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
        distance z of Laplace noise, and three standard deviations are left for the rest.
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
