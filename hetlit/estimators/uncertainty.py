"""How sure an estimate is, from what it released.

An estimate is off for three reasons.  Laplace noise hides every user; its scale is
public.  Other users would have given another mean; how much users differ is known as
far as it was asked, and otherwise bounded by p(1-p), the variance of a single sample.
And clipping may have taken away what some users said.  How much that can be is known

- if a tail test asked how many users are clipped;
- if a first mean was released that clips nobody: p is as near to it as its own noise
  and samples allow, whatever clipping did to the value;
- if the population is known well enough to bound it.

Privacy: everything here is computed from released numbers and from public ones, so it
is post-processing.  It costs no budget and can be released with the value.

The sampling error is that of the model, in which rates do not depend on sizes.  If they
do, a weighted mean has another aim than the mean over all users, and no number of users
helps.  `dependence` says how much of that could have gone unnoticed, where a method has
an anchor to notice it: it is part of `standard_error`, and of an interval on request.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from hetlit.theory import errors
from hetlit.theory.variance import variance_of_mean

FALSE_ALARM = 0.006  # the chance of a warning in the model
ROOT_TWO = math.sqrt(2.0)
HALVINGS = 48  # of the interval in which a half-width is looked for

FAR = (
    "the value and the first mean, which clips nobody, differ by {gap:.2g}, which has "
    "a chance of less than {chance:.1g} if users are much alike: clipping hides a "
    'minority, or rates depend on sizes.  Use method="auto" or method="plain"'
)


@dataclass(frozen=True, kw_only=True)
class Clipped:
    """How far clipping moved the mean, as far as that is known.

    moved : a noisy bound, at least 0
    noise : the scale of its Laplace noise
    """

    moved: float
    noise: float = 0.0


@dataclass(frozen=True, kw_only=True)
class Uncertainty:
    """How far a value may be off.

    noise : the scale of the Laplace noise in the value
    sampling : the standard deviation of the rest, if rates do not depend on sizes
    clipped : what is known of what clipping took away
    first : how sure a first mean is that clipped nobody
    gap : how far the value is from it
    dependence : how much a dependence of rates on sizes could hide, as a standard
        deviation; None if nothing would have noticed one

    Without `clipped` and without `first`, nobody was clipped.

    >>> sure = Uncertainty(noise=0.01, sampling=0.02)
    >>> round(sure.standard_error, 4), round(sure.half_width(0.95), 4)
    (0.0245, 0.0483)
    """

    noise: float
    sampling: float
    clipped: Clipped | None = None
    first: Uncertainty | None = None
    gap: float = 0.0
    dependence: float | None = None

    @property
    def standard_error(self) -> float:
        """The standard deviation of noise and samples, and of what sizes could hide."""
        return math.hypot(ROOT_TWO * self.noise, self.sampling, self.dependence or 0.0)

    def half_width(
        self, level: float, *, clipping: bool = True, sizes: bool = False
    ) -> float:
        """Return z with Pr(|value - p| <= z) of at least `level`.

        clipping : allow for what clipping may have taken away
        sizes : do not assume that rates are independent of sizes
        """
        if sizes and self.dependence is None:
            return math.inf
        more = self.dependence if sizes and self.dependence else 0.0
        sampling = math.hypot(self.sampling, more)
        if not clipping or (self.clipped is None and self.first is None):
            return errors.half_width(level, self.noise, sampling)
        widths = []
        if self.clipped is not None:
            widths.append(_beside(self.clipped, level, self.noise, sampling))
        if self.first is not None:
            # |value - p| <= |value - first mean| + |first mean - p|
            widths.append(self.gap + self.first.half_width(level))
        return min(widths)

    @property
    def warnings(self) -> tuple[str, ...]:
        """A warning if the value differs from the first mean by more than chance.

        The users of the two are not the same, so that their errors add up.
        """
        if self.first is None:
            return ()
        less, more = sorted((self.noise, self.first.noise))
        rest = math.hypot(ROOT_TWO * less, self.sampling, self.first.sampling)
        if self.gap <= errors.half_width(1.0 - FALSE_ALARM, more, rest):
            return ()
        return (FAR.format(gap=self.gap, chance=FALSE_ALARM),)


def _beside(clipped: Clipped, level: float, noise: float, sampling: float) -> float:
    """Return the half-width of a value whose mean was moved by clipping, one way.

    Let G be noise and samples, m the move, at most what the bound is without its noise
    L, and z + max(bound, 0) the half-width.  Too far the way of the move means that
    |G| + m > z + m + L, so G and L together exceed z; too far the other way, that G
    alone does.  The chances of both, each on one side, are to add up to 1 - level.
    """
    less, more = sorted((noise, clipped.noise))
    together = more, math.hypot(ROOT_TWO * less, sampling)
    missed = 1.0 - level
    low = errors.half_width(level, noise, sampling)
    high = max(low, errors.half_width(level, *together))
    for _ in range(HALVINGS):
        z = (low + high) / 2.0
        missing = errors.tail(z, *together) + errors.tail(z, noise, sampling)
        if missing / 2.0 > missed:
            low = z
        else:
            high = z
    return high + max(clipped.moved, 0.0)


def guessed_q(value: float, error: float) -> float:
    """Return p(1-p) for a guessed p, not understated if the guess is off by `error`.

    The value is moved into [0, 1] and then towards 1/2 by its error.

    >>> round(guessed_q(0.1, 0.1), 4), guessed_q(0.6, 0.2), guessed_q(-3.0, 0.0)
    (0.16, 0.25, 0.0)
    """
    p = within(value)
    inner = p + min(max(0.5 - p, -error), error)
    return inner * (1.0 - inner)


def within(value: float) -> float:
    """Return the value moved into [0, 1], where p is: that brings it no further off."""
    return min(max(value, 0.0), 1.0)


def of_plain_mean(
    value: float, users: float, noise: float, *, blur: float = 0.0, **more: Any
) -> Uncertainty:
    """Return the uncertainty of a mean of user means, whatever their sizes.

    A mean of one sample or of many varies by at most p(1-p), which it does if a user's
    samples are all alike.

    >>> sure = of_plain_mean(0.5, 100, 0.0)
    >>> sure.standard_error
    0.05
    """
    error = math.hypot(ROOT_TWO * noise, 0.5 / math.sqrt(users), blur)
    sampling = math.sqrt(guessed_q(value, error) / users + blur**2)
    return Uncertainty(noise=noise, sampling=sampling, **more)


def of_weighted_mean(
    value: float,
    k: Any,
    counts: Any,
    weights: Any,
    spread: float,
    noise: float,
    *,
    blur: float = 0.0,
    **more: Any,
) -> Uncertainty:
    """Return the uncertainty of a weighted mean of user means, for public weights.

    k, counts, weights : shape (groups,), sizes, users of that size, weight of each user
    spread : a guess of var_p that is not understated; infinite where nothing was asked
    noise : the scale of the Laplace noise
    blur : a further standard deviation
    more : further parts of the uncertainty

    The variance is sum w^2 (S + (q - S)/k).  Rates have a variance of at most
    q = p(1-p), so S is the spread or q, whichever is less.
    """
    squares = np.asarray(counts * np.square(weights))
    error = math.hypot(ROOT_TWO * noise, math.sqrt(float(np.sum(squares))) / 2.0)
    q = guessed_q(value, error)
    variances = variance_of_mean(k, q, min(spread, q))
    sampling = math.sqrt(float(np.sum(squares * variances)) + blur**2)
    return Uncertainty(noise=noise, sampling=sampling, **more)
