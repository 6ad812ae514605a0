"""The tail test: it asks whether clipping hides a minority.

Clipping pays where tails are light, and hides a minority of users who differ from the
rest.  The median that says how much users differ cannot see them.  So before anybody
is clipped, one noisy count asks how many would be::

    T = sum over users of min(1, distance outside her interval / (2 sd)) + Laplace,

and if it is above a limit, there is an alarm and nobody is clipped.

Privacy: a user's term lies in [0, 1] whatever she holds, so replacing her moves the sum
by at most 1, whether sizes are public or private.

What it can overlook, for given intervals.  Rates do not depend on sizes, a share f of
users has the rate r, and m = f t(r) of them count as outside, on average.  Each belongs
to the minority by chance, so E e^(-eN) <= e^(-m (1 - e^(-e))) for the number N that
counts, with e the epsilon of the test.  Noise below limit - N has chance at most
e^(e (limit - N))/2, so

    Pr(unnoticed) <= e^(e limit - m (1 - e^(-e)))/2.

Clipping them moves the mean by f b(r), b(r) being the mean distance outside over the
weights, so that an unnoticed minority adds at most Pr(unnoticed) (f b(r))^2 to the
mean squared error.  `risks` has the worst of it over all rates and all shares that are
called a minority, relative to the error of a mean that clips nobody.

What it costs.  Its share of the budget is lost for the mean, and a false alarm, with
chance e^(-calm)/2, loses the reward for clipping.  `best_test` takes the share and the
limit that promise least among those with little risk.

Chapter: When the model is wrong.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import numpy as np
from scipy import special

from hetlit.check import Floats
from hetlit.estimators.uncertainty import Clipped
from hetlit.theory.variance import variance_of_mean
from hetlit.users.groups import Groups

SHARES = (0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35)  # of epsilon, for the test
CALMS = (1.0, 1.5, 2.0, 2.5, 3.0, 4.0, 6.0, 8.0)  # noise scales that are no alarm
SLACK = 1.5  # times what Gaussian tails put outside, which is no reason either
RISK = 1.5  # the most that an unnoticed minority may add, in mean squared errors
SMALLEST, LARGEST = 0.01, 0.1  # shares of users that are called a minority
MINORITIES = np.geomspace(SMALLEST, LARGEST, 24)
DISTANCES = 2.0 ** (-np.arange(16) / 4.0)  # of the farthest rate, at which to look

CELL_END = math.sqrt(2.0)  # of a median's cell, over its middle

Mean = TypeVar("Mean")


@dataclass(frozen=True, kw_only=True)
class Unclipped:
    """A mean that clips nobody, to compare with.

    variance : if no minority differs
    squares : sum of squared weights, how much of a further var_p it would have
    """

    variance: float
    squares: float


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

    def limit(self, epsilon: float, calm: float) -> float:
        """Return the count from which on there is an alarm."""
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

    def clipped(self, centre: float, caught: float, scale: float) -> Clipped:
        """Return how far clipping moved the mean, by what a test caught.

        What light tails put outside, on both sides, is no part of a minority.
        """
        move = self.worst_move(centre)
        more = caught - self.users * light_share(self.reach)
        return Clipped(moved=move * more, noise=move * scale)

    def spread_if_calm(self, centre: float, spread: float, caught: float) -> float:
        """Return a guess of var_p that is not understated, without an alarm.

        To the end of the median's cell, and those whom the test caught.
        """
        return CELL_END * spread + self.variance(centre, caught)

    def spread_if_alarmed(
        self, centre: float, spread: float, caught: float, scale: float
    ) -> float:
        """Return a guess of var_p that is not understated, after an alarm.

        Nothing else allows for the minority then, so its number is taken higher, for
        the noise and for the luck of who belongs to it.
        """
        luck = 2.0 * math.sqrt(max(caught, 0.0))
        return spread + self.variance(centre, caught + 3.0 * scale + luck)

    def variance(self, centre: float, count: float) -> float:
        """Return how much a minority that the test counts so adds to var_p, at most."""
        rates, caught, _ = self.outside(centre)
        share = np.minimum(max(count, 0.0) / caught, LARGEST)
        return float(np.max(share * (rates - centre) ** 2, initial=0.0))

    def risks(
        self,
        centre: float,
        epsilon: float,
        limits: Floats,
        unclipped: Iterable[Unclipped],
    ) -> Floats:
        """Return what the worst unnoticed minority adds, in mean squared errors.

        For each limit of a test with this epsilon.  A minority adds f (1-f) distance^2
        to var_p, and errors are those of the best mean that clips nobody.
        """
        rates, caught, moved = self.outside(centre)
        share = MINORITIES[:, None]
        speed = -math.expm1(-epsilon) * share * caught
        evidence = epsilon * limits[:, None, None] - speed
        unnoticed = 0.5 * np.exp(np.minimum(evidence, math.log(2.0)))
        added = share * (1.0 - share) * (rates - centre) ** 2
        errors = [mean.variance + mean.squares * added for mean in unclipped]
        worst = (share * moved) ** 2 / np.minimum.reduce(errors)
        return np.asarray(np.max(unnoticed * worst, axis=(1, 2), initial=0.0))


@dataclass(frozen=True, kw_only=True)
class TailTest(Generic[Mean]):
    """One way to spend the rest of a budget: a tail test, then a clipped mean.

    epsilon : of the test
    intervals : what users are clipped to
    mean, mean_epsilon : how to take the mean, and its share
    calm, alarmed : the variance without and after an alarm
    """

    epsilon: float
    intervals: Intervals
    mean: Mean
    mean_epsilon: float
    calm: float
    alarmed: float


def best_test(
    tests: Iterable[TailTest[Mean]],
    centre: float,
    without: float,
    unclipped: tuple[Unclipped, ...],
) -> tuple[TailTest[Mean], float] | None:
    """Return (test, limit) of least expected variance among those with little risk.

    None if no test promises less than `without`, the variance if nobody is clipped.
    """
    best, least = None, without
    calms = np.array(CALMS)
    false_alarms = 0.5 * np.exp(-calms)
    for test in tests:
        promised = test.calm + false_alarms * (test.alarmed - test.calm)
        if promised.min() >= least:
            continue
        intervals = test.intervals
        limits = np.array([intervals.limit(test.epsilon, calm) for calm in CALMS])
        risks = intervals.risks(centre, test.epsilon, limits, unclipped)
        promised[risks > RISK] = math.inf
        choice = int(np.argmin(promised))
        if promised[choice] < least:
            best, least = (test, float(limits[choice])), float(promised[choice])
    return best


def spread_if_untested(centre: float, spread: float) -> float:
    """Return a guess of var_p that is not understated, if no test was asked.

    The median may have overlooked the largest of what is called a minority, as far away
    as can be.  More users than that are more than this allows for.
    """
    farthest = max(centre, 1.0 - centre)
    return CELL_END * spread + LARGEST * (1.0 - LARGEST) * farthest**2


def light_share(reach: float) -> float:
    """Return E (|Z| - reach)_+ / 2, what a Gaussian user counts in the test."""
    density = math.exp(-(reach**2) / 2.0) / math.sqrt(2.0 * math.pi)
    return density - reach * float(special.ndtr(-reach))


def outsiders(
    groups: Groups, lower: Floats, upper: Floats, deviations: Floats
) -> float:
    """Return T without its noise; arrays have one entry per size of the groups."""

    def outside(group: Any, means: Floats) -> Floats:
        distance = np.maximum(lower[group] - means, means - upper[group])
        return np.asarray(np.clip(distance / (2.0 * deviations[group]), 0.0, 1.0))

    return groups.sum(outside)


def squared_weights(k: Floats, counts: Any, weights: Floats) -> float:
    """Return sum of w^2 (1 - 1/k): how much of var_p is in the variance of a mean."""
    return float(np.sum(counts * weights**2 * (1.0 - 1.0 / k)))


def mean_variance(
    k: Floats, counts: Any, weights: Floats, q: float, spread: float
) -> float:
    """Return the sampling variance of a weighted mean of user means."""
    return float(np.sum(counts * weights**2 * variance_of_mean(k, q, spread)))
