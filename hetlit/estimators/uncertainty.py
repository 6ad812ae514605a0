"""How sure an estimate is, from what it released.

An estimate is off for three reasons.  Laplace noise hides every user; its scale is
public.  Other users would have given another mean; how much users differ is known as
far as it was asked, and otherwise bounded by p(1-p), the variance of a single sample.
And clipping may have taken away what some users said; how many that can be is known if
it was asked.

Privacy: everything here is computed from released numbers and from public ones, so it
is post-processing.  It costs no budget and can be released with the value.

The sampling error is that of the model, in which rates do not depend on sizes.  If they
do, a weighted mean has another aim than the mean over all users, and no number of users
helps.  `dependence` says how much of that could have gone unnoticed: it is part of
`standard_error`, and of an interval on request.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from hetlit.theory import errors
from hetlit.theory.variance import variance_of_mean

# Of the chance that an interval misses: for noise and samples, and for what a tail test
# overlooks.
NOISE_PART, CLIPPED_PART = 0.8, 0.2
ROOT_TWO = math.sqrt(2.0)


@dataclass(frozen=True, kw_only=True)
class Clipped:
    """What a tail test released about what clipping took away.

    caught : the noisy number of users, in whole or in part, outside their intervals
    scale : of its Laplace noise
    users : how many users have an interval that is not all of [0, 1]
    beyond : the farthest that anybody can lie outside her interval
    """

    caught: float
    scale: float
    users: float
    beyond: float

    def allowance(self, missed: float) -> float:
        """Return how far clipping moved the mean, unless noise hid it: chance `missed`.

        The test's noise is below -scale log(1/(2 missed)) with that chance.  If it is
        not, no more users are caught than the noisy number and that, and each of them
        lost at most `beyond`.
        """
        hidden = self.scale * math.log(1.0 / (2.0 * missed))
        return max(self.caught + hidden, 0.0) / self.users * self.beyond


@dataclass(frozen=True, kw_only=True)
class Uncertainty:
    """How far a value may be off.

    noise : the scale of the Laplace noise in the value
    sampling : the standard deviation of the rest, if rates do not depend on sizes
    clipped : what is known of what clipping took away, if anybody is clipped
    dependence : how much a dependence of rates on sizes could hide, as a standard
        deviation
    furthest : a bound on what is allowed for clipping

    >>> sure = Uncertainty(noise=0.01, sampling=0.02)
    >>> round(sure.standard_error, 4), round(sure.half_width(0.95), 4)
    (0.0245, 0.0483)
    """

    noise: float
    sampling: float
    clipped: Clipped | None = None
    dependence: float = 0.0
    furthest: float = math.inf

    @property
    def standard_error(self) -> float:
        """The standard deviation of noise and samples, and of what sizes could hide."""
        return math.hypot(ROOT_TWO * self.noise, self.sampling, self.dependence)

    def half_width(self, level: float, *, sizes: bool = False) -> float:
        """Return z with Pr(|value - p| <= z) of at least `level`.

        In the model, unless `sizes` is true: then for whoever does not assume that
        rates are independent of sizes.  Where users were clipped, the chance to miss is
        divided between noise and samples and what the tail test overlooks.
        """
        sampling = math.hypot(self.sampling, self.dependence if sizes else 0.0)
        if self.clipped is None:
            return errors.half_width(level, self.noise, sampling)
        missed = 1.0 - level
        width = errors.half_width(1.0 - NOISE_PART * missed, self.noise, sampling)
        allowance = self.clipped.allowance(CLIPPED_PART * missed)
        return width + min(allowance, self.furthest)


def guessed_q(value: float, error: float) -> float:
    """Return p(1-p) for a guessed p, not understated if the guess is off by `error`.

    The value is moved into [0, 1] and then towards 1/2 by its error.

    >>> round(guessed_q(0.1, 0.1), 4), guessed_q(0.6, 0.2), guessed_q(-3.0, 0.0)
    (0.16, 0.25, 0.0)
    """
    p = min(max(value, 0.0), 1.0)
    inner = p + min(max(0.5 - p, -error), error)
    return inner * (1.0 - inner)


def of_weighted_mean(
    value: float,
    k: Any,
    counts: Any,
    weights: Any,
    spread: float,
    noise: float,
    **more: Any,
) -> Uncertainty:
    """Return the uncertainty of a weighted mean of user means, for public weights.

    k, counts, weights : shape (groups,), sizes, users of that size, weight of each user
    spread : a guess of var_p that is not understated; infinite where nothing was asked
    noise : the scale of the Laplace noise
    more : further parts of the uncertainty

    The variance is sum w^2 (S + (q - S)/k).  Rates have a variance of at most
    q = p(1-p), so S is the spread or q, whichever is less.
    """
    squares = np.asarray(counts * np.square(weights))
    q = guessed_q(value, math.sqrt(2.0 * noise**2 + float(np.sum(squares)) / 4.0))
    variances = variance_of_mean(k, q, min(spread, q))
    sampling = math.sqrt(float(np.sum(squares * variances)))
    return Uncertainty(noise=noise, sampling=sampling, **more)
