"""Noise: the only randomness that protects.

A source of noise gives three things: an answer with Laplace noise, a choice by the
exponential mechanism, and chance, which decides who takes part in what and which of
her samples a user gives.  `hetlit.privacy.account` asks the source for noise, nobody
else does.

Every random function takes `rng`.  A `numpy.random.Generator` gives reproducible,
simulated noise for study: `Simulated`.  No `rng` asks for noise that is safe to
release.  A source of your own can be passed in its place; tests record answers on one
table that way and force them on another.

Chapter: User-level privacy from scratch.
"""

from __future__ import annotations

from typing import Any, Protocol, TypeAlias, runtime_checkable

import numpy as np

from hetlit import check
from hetlit.check import Floats


class SecureNoiseUnavailable(RuntimeError):
    """Raised where secure noise is asked for and cannot be had."""


@runtime_checkable
class NoiseSource(Protocol):
    """Where the randomness that protects comes from."""

    @property
    def chance(self) -> np.random.Generator:
        """What draws cohorts, pairs and samples; it never adds noise."""

    def laplace(self, statistic: float, scale: float) -> float:
        """Return the statistic with Laplace noise."""

    def laplaces(self, statistics: Floats, scale: float) -> Floats:
        """Return the statistics, each with Laplace noise of its own."""

    def choose(self, utilities: Floats, epsilon: float, sensitivity: float) -> int:
        """Return the index of an outcome, by the exponential mechanism."""


Randomness: TypeAlias = np.random.Generator | NoiseSource | None


class Simulated:
    """Noise from a NumPy generator: for study, not for release."""

    def __init__(self, rng: np.random.Generator) -> None:
        self.chance = check.generator("rng", rng)

    def laplace(self, statistic: float, scale: float) -> float:
        """Return the statistic with Laplace noise."""
        return statistic + float(self.chance.laplace(0.0, scale))

    def laplaces(self, statistics: Floats, scale: float) -> Floats:
        """Return the statistics, each with Laplace noise of its own."""
        noise = self.chance.laplace(0.0, scale, size=len(statistics))
        return np.asarray(statistics + noise)

    def choose(self, utilities: Floats, epsilon: float, sensitivity: float) -> int:
        """Return the index of an outcome, by the exponential mechanism."""
        law = choice_law(utilities, epsilon, sensitivity)
        return invert(law, self.chance.random())


def source_of(rng: Any) -> NoiseSource:
    """Return the source of noise that `rng` stands for, or say what is missing."""
    if rng is None:
        raise SecureNoiseUnavailable(
            "no rng was given, which asks for secure noise, and this version of "
            "hetlit has none: pass rng=numpy.random.default_rng() for simulated "
            "noise, and do not release what you get"
        )
    if isinstance(rng, NoiseSource):
        return rng
    return Simulated(check.generator("rng", rng))


def laplace(scale: float, *, rng: Randomness = None) -> float:
    """Return a Laplace variable: density exp(-|x|/scale)/(2 scale), variance 2 scale^2.

    Added to a statistic that moves by at most `sensitivity` between neighbours, it
    is epsilon-private for scale = sensitivity/epsilon.

    Paper: Section 2.1.

    >>> laplace(0.0, rng=np.random.default_rng(0))
    0.0
    """
    scale = check.between("scale", scale, 0.0, 1e300)
    return source_of(rng).laplace(0.0, scale)


def choice_law(utilities: Floats, epsilon: float, sensitivity: float) -> Floats:
    """Return the exponential mechanism's law: exp(epsilon utility/(2 sensitivity)).

    Up to a factor that makes the probabilities add up to 1.
    """
    masses = np.exp(epsilon * (utilities - utilities.max()) / (2.0 * sensitivity))
    return np.asarray(masses / masses.sum())


def invert(law: Floats, uniform: float) -> int:
    """Return the outcome that a number in [0, 1) falls on when outcomes are lined up.

    Probabilities are added up from the nearer end.  From the far end, the rounding of
    sums near 1 would swallow unlikely outcomes: of 10^7 of them with 4e-17 each, none
    could ever be drawn, although a neighbour's 1.2e-16 each can.

    >>> [invert(np.array([0.25, 0.5, 0.25]), uniform) for uniform in (0.2, 0.25, 0.9)]
    [0, 1, 2]
    """
    last = len(law) - 1
    if uniform < 0.5:
        return min(int(np.searchsorted(np.cumsum(law), uniform, side="right")), last)
    from_end = np.cumsum(law[::-1])
    return max(last - int(np.searchsorted(from_end, 1.0 - uniform, side="left")), 0)
