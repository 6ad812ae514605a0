"""The noisy ratio: a weighted mean as two sums that one user can hardly move.

When sizes are private, weights that add up to 1 are no use: one user's size changes
everyone's weight.  So give a user of size k the weight v(k) = 1/variance of a mean
of min(k, cap) samples, whatever the others have, measure means from a first guess p,
and keep apart::

    U = sum v(k_i) (clipped mean_i - p)   and   N = sum v(k_i).

The weighted mean is p + U/N, and each sum moves little when one user is replaced:
N by at most max v - min v, and U by at most max v (b - p) + max v (p - a), where
[a, b] is the interval of a size and each maximum is over all sizes up to the cap.

Paper: Algorithm `alg.PTR`.  Chapter: Private k.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from hetlit import check
from hetlit.check import MOST_SIZES, Floats
from hetlit.estimators.clipped_mean import BETA, Width, half_widths_of
from hetlit.estimators.first_guesses import clamped_mean
from hetlit.estimators.uncertainty import ROOT_TWO, Uncertainty, guessed_q, within
from hetlit.theory.variance import variance_of_mean
from hetlit.users.groups import blocks, classes_up_to
from hetlit.users.table import Users, check_users


@dataclass(frozen=True)
class RatioStatistics:
    """The two sums whose ratio is the estimate, and how far one user can move them.

    total_weight, weight_sensitivity : N and the most that N changes
    total_offset, offset_sensitivity : U and the most that U changes
    value : p + U/N
    """

    total_weight: float
    total_offset: float
    value: float
    weight_sensitivity: float
    offset_sensitivity: float


@dataclass(frozen=True, kw_only=True)
class RatioPlan:
    """What a user of each size contributes, planned before any data are seen.

    centre : where means are measured from, in [0, 1]
    weights : shape (cap,), v(k) for the sizes k = 1, ..., cap; larger ones count as cap
    below, above : shape (cap,), how far a clipped mean can lie on each side of centre
    """

    centre: float
    weights: Floats
    below: Floats
    above: Floats

    @property
    def clips(self) -> bool:
        """Whether any interval is not all of [0, 1]."""
        reaches = (self.below, self.centre), (self.above, 1.0 - self.centre)
        return any(bool(reach.min() < whole) for reach, whole in reaches)

    @cached_property
    def weight_sensitivity(self) -> float:
        """The most that replacing one user moves N."""
        return float(self.weights.max() - self.weights.min())

    @cached_property
    def offset_sensitivity(self) -> float:
        """The most that replacing one user moves U, from one extreme to the other."""
        return float(np.max(self.weights * self.above)) + float(
            np.max(self.weights * self.below)
        )

    @cached_property
    def class_extremes(self) -> tuple[Floats, Floats, Floats]:
        """The largest weight, above and below of each class of similar sizes.

        Sizes up to 255 are classes of their own, and there are a few thousand at
        most, so bounds over all sizes are quick even for a cap of 10^7.
        """
        sizes = np.unique(np.ceil(classes_up_to(len(self.weights))).astype(np.intp))
        weights, above, below = (
            np.maximum.reduceat(values, sizes - 1)
            for values in (self.weights, self.above, self.below)
        )
        return weights, above, below

    def statistics(self, users: Users) -> RatioStatistics:
        """Return N, U and their ratio."""
        total_weight = total_offset = 0.0
        for rows in blocks(users):
            place = np.minimum(users.k[rows], len(self.weights)) - 1
            means = users.successes[rows] / users.k[rows]
            weights = self.weights[place] * users.counts[rows]
            offsets = np.clip(
                means - self.centre, -self.below[place], self.above[place]
            )
            total_weight += float(np.sum(weights))
            total_offset += float(np.sum(weights * offsets))
        return RatioStatistics(
            total_weight,
            total_offset,
            self.centre + total_offset / total_weight,
            self.weight_sensitivity,
            self.offset_sensitivity,
        )


def ratio_plan(
    p: float,
    var_p: float,
    k_cap: int,
    *,
    n: int,
    alpha: float,
    width: Width | None,
    beta: float = BETA,
) -> RatioPlan:
    """Return weights 1/variance and intervals p -+ (alpha + width(k)) within [0, 1].

    First guesses can be anything, and privacy must hold for all of them: p is
    clamped to [0, 1], p(1-p) is at least 1/(4n) and var_p is clamped to [0, p(1-p)].
    Then variances are positive and fall with k, so weights rise from 1/(p(1-p)).
    """
    centre, q = clamped_mean(p, n)
    k = np.arange(1.0, k_cap + 1.0)
    variances = variance_of_mean(k, q, min(max(var_p, 0.0), q))
    reach = alpha + half_widths_of(k, n, variances, width, beta)
    return RatioPlan(
        centre=centre,
        weights=1.0 / variances,
        below=np.minimum(reach, centre),
        above=np.minimum(reach, 1.0 - centre),
    )


def of_ratio(
    value: float,
    plan: RatioPlan,
    spread: float,
    noise: float,
    total: tuple[float, float],
    first: Uncertainty,
) -> Uncertainty:
    """Return the uncertainty of centre + U/N, given that of a first mean, the centre.

    spread : a guess of var_p that is not understated
    noise : the scale of the noise in the value
    total : a number that N is hardly below, and the scale of the noise in N

    The variance is sum v^2 s^2/N^2 for users whose means have the variances s^2.  Sizes
    are private, but v s^2 is largest for the smallest or for the largest size, whatever
    the spread, so that one of these, divided by N, is a bound.  If N in the ratio is
    off by e, the value is off by (value - centre) e/N.

    A guess of the spread that does not see a minority will do where somebody is
    clipped, since the first mean speaks for the minority.  Otherwise nobody does.
    """
    spread = spread if plan.clips else math.inf
    value, (lowest, total_noise) = within(value), total
    weights = plan.weights[[0, -1]]
    error = math.hypot(ROOT_TWO * noise, math.sqrt(weights[-1] / lowest) / 2.0)
    q = guessed_q(value, error)
    ends = variance_of_mean(np.array([1.0, len(plan.weights)]), q, min(spread, q))
    gap = value - plan.centre
    return Uncertainty(
        noise=noise,
        sampling=math.hypot(
            math.sqrt(float(np.max(weights * ends)) / lowest),
            ROOT_TWO * gap * total_noise / lowest,
        ),
        first=first if plan.clips else None,
        gap=abs(gap),
    )


def ratio_statistics(
    users: Users,
    p: float,
    var_p: float,
    k_cap: int,
    *,
    alpha: float,
    width: Width | None,
) -> RatioStatistics:
    """Return the two sums of the noisy ratio and their sensitivities.

    Parameters
    ----------
    users : Users, the final cohort
    p : the first guess of the mean; clamped to [0, 1]
    var_p : the first guess of the variance of rates; clamped to [0, p(1-p)]
    k_cap : the cap on sizes, from 1 to 10^7
    alpha : how far p may be from the population mean, in [0, 1]
    width : a function from sizes k, shape (k_cap,), to half-widths f(k); None for
        sd(k) sqrt(2 log(2n/0.05))

    Privacy: none of the sums is noisy yet.  The sensitivities are for neighbours
    that replace one user, her size included, and depend on no user's data.

    Paper: Algorithm `alg.PTR`.  Chapter: Private k.

    >>> users = Users(k=[1, 4, 9], successes=[1, 1, 6])
    >>> sums = ratio_statistics(users, 0.5, 0.0, 4, alpha=0.0, width=lambda k: 1.0)
    >>> sums.total_weight, sums.weight_sensitivity, sums.offset_sensitivity
    (36.0, 12.0, 16.0)
    """
    users, plan = checked_plan(users, p, var_p, k_cap, alpha, width)
    return plan.statistics(users)


def checked_plan(
    users: Any, p: Any, var_p: Any, k_cap: Any, alpha: Any, width: Any
) -> tuple[Users, RatioPlan]:
    """Return the users and the plan that these arguments describe."""
    users = check_users(users)
    p, var_p = check.real("p", p), check.real("var_p", var_p)
    k_cap = check.integer("k_cap", k_cap, 1)
    if k_cap > MOST_SIZES:
        raise ValueError(f"k_cap must be at most {MOST_SIZES}, not {k_cap}")
    alpha = check.between("alpha", alpha, 0.0, 1.0)
    return users, ratio_plan(p, var_p, k_cap, n=users.n, alpha=alpha, width=width)
