"""The tail test: is clipping hiding a minority?

Clipping pays where tails are light, and hides a minority of users who differ from the
rest.  The median that says how much users differ cannot see them.  So before anybody
is clipped, one noisy count asks how many would be::

    T = sum over users of min(1, distance outside her interval / (2 sd)) + Laplace.

Privacy: a user's term lies in [0, 1] whatever she holds, so replacing her moves the sum
by at most 1, whether sizes are public or private.

What it can overlook.  Rates do not depend on sizes, a share f of users has the rate r,
and m = f t(r) of them count as outside, on average.  Each belongs to the minority by
chance, so E e^(-eN) <= e^(-m (1 - e^(-e))) for the number N that counts, with e the
epsilon of the test.  Noise below limit - N has chance at most e^(e (limit - N))/2, so

    Pr(unnoticed) <= e^(e limit - m (1 - e^(-e)))/2.

The largest minority that can stay unnoticed is thus about the one for which this is 1:
m = (e limit - log 2)/(1 - e^(-e)).  Clipping it moves the mean by f times the mean
distance outside, b(r), over the weights.  `risk` is the worst of these squares over all
rates r, relative to what a mean that clips nobody would have had.

Chapter: When the model is wrong.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import special

from hetlit.check import Floats
from hetlit.theory.variance import variance_of_mean
from hetlit.users.groups import Groups

SHARES = (0.05, 0.1, 0.15, 0.2, 0.25, 0.3)  # of epsilon, for the test
CALM = 3.0  # noise scales that are no reason for alarm
CALM_OFFSET = 7.3  # where they begin to grow: at n epsilon of about 3 10^4
SLACK = 1.5  # times what Gaussian tails put outside, which is no reason either
RISK = 2.0  # the most that an unnoticed minority may add, in mean squared errors
MINORITY = 0.1  # a larger share is no minority
DISTANCES = 2.0 ** (-np.arange(10) / 1.5)  # of the farthest rate, at which to look


@dataclass(frozen=True, kw_only=True)
class Intervals:
    """What a user of each size would be clipped to; everything in it is public.

    All arrays have one entry per size.  `counts` are how many users have the size, or
    are believed to; `weights` are per user, and counts * weights add up to 1.
    """

    k: Floats
    counts: Any
    weights: Floats
    lower: Floats
    upper: Floats
    deviations: Floats
    reach: float

    @property
    def users(self) -> float:
        """The number of users whose interval is not all of [0, 1]."""
        clipped = (self.lower > 0.0) | (self.upper < 1.0)
        return float(np.sum(self.counts[clipped]))

    def limit(self, epsilon: float, evidence: float) -> float:
        """Return the count from which on there is an alarm.

        `evidence` is n times the total epsilon: a false alarm gives up the reward for
        clipping, which is the larger the more users there are, so it must be the rarer.
        """
        calm = max(CALM, math.log(evidence) - CALM_OFFSET)
        return calm / epsilon + SLACK * self.users * light_share(self.reach)

    def outside(self, centre: float) -> tuple[Floats, Floats, Floats]:
        """Return (rates, caught, moved) of users with some rates far from the centre.

        caught : t(r), how many users the test would count if all had the rate r
        moved : b(r), how far clipping would move the mean if all had it
        """
        rates = np.concatenate(
            (centre - centre * DISTANCES, centre + (1.0 - centre) * DISTANCES)
        )
        distances = np.maximum(
            np.maximum(self.lower - rates[:, None], rates[:, None] - self.upper), 0.0
        )
        caught = np.minimum(1.0, distances / (2.0 * self.deviations)) @ self.counts
        moved = distances @ (self.counts * self.weights)
        seen = caught > 0.0
        return rates[seen], caught[seen], moved[seen]

    def worst_move(self, centre: float) -> float:
        """Return the most that clipping moves the mean per user that the test counts.

        It is the largest b(r)/t(r); a mixture of rates has no more than its worst.
        """
        _, caught, moved = self.outside(centre)
        return float(np.max(moved / caught, initial=0.0))

    def risk(
        self,
        centre: float,
        epsilon: float,
        evidence: float,
        plain: tuple[float, float],
        cautious: tuple[float, float],
    ) -> float:
        """Return how much the worst unnoticed minority adds, in mean squared errors.

        plain, cautious : (variance without a minority, sum of squared weights) of the
            means that clip nobody; a minority adds f (1-f) distance^2 to var_p
        """
        rates, caught, moved = self.outside(centre)
        if not len(rates):
            return 0.0
        hidden = epsilon * self.limit(epsilon, evidence) - math.log(2.0)
        share = np.minimum(hidden / (-math.expm1(-epsilon) * caught), MINORITY)
        added = share * (1.0 - share) * (rates - centre) ** 2
        best = np.minimum(
            plain[0] + plain[1] * added, cautious[0] + cautious[1] * added
        )
        return float(np.max((share * moved) ** 2 / best))


def light_share(reach: float) -> float:
    """Return E (|Z| - reach)_+ / 2, what a Gaussian user counts in the test."""
    density = math.exp(-(reach**2) / 2.0) / math.sqrt(2.0 * math.pi)
    return density - reach * float(special.ndtr(-reach))


def outsiders(groups: Groups, lower: Floats, upper: Floats, deviations: Floats) -> float:
    """Return T without its noise; arrays have one entry per size of the groups."""

    def outside(group: Any, means: Floats) -> Floats:
        distance = np.maximum(lower[group] - means, means - upper[group])
        return np.clip(distance / (2.0 * deviations[group]), 0.0, 1.0)

    return groups.sum(outside)


def squared_weights(
    k: Floats, counts: Any, weights: Floats
) -> float:
    """Return sum of w^2 (1 - 1/k): how much of var_p is in the variance of a mean."""
    return float(np.sum(counts * weights**2 * (1.0 - 1.0 / k)))


def mean_variance(
    k: Floats, counts: Any, weights: Floats, q: float, spread: float
) -> float:
    """Return the sampling variance of a weighted mean of user means."""
    return float(np.sum(counts * weights**2 * variance_of_mean(k, q, spread)))
