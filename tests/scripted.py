"""A source of noise that adds none, for laws that are compared without drawing."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from typing import Any

import numpy as np
from scipy import stats

from hetlit.check import Floats
from hetlit.privacy.noise import choice_law

HUGE = 1e6  # an epsilon at which the exponential mechanism takes the best outcome


class Ordered(np.random.Generator):
    """Chance that puts things in a given order, or leaves them as they are."""

    def __init__(self, order: tuple[int, ...] | None = None) -> None:
        super().__init__(np.random.PCG64(0))
        self.order = order

    def permutation(self, x: Any, axis: int = 0) -> Any:
        """Return x in the order that was given."""
        return x if self.order is None else x[list(self.order)]


class FirstWithSecond(Ordered):
    """Chance that pairs user 1 with user 2, user 3 with user 4 and so on."""

    def permutation(self, x: Any, axis: int = 0) -> Any:
        """Return those who come first in their pair, then the others."""
        return np.concatenate((x[0::2], x[1::2]))


class Scripted:
    """No noise, the likeliest choice; keeps the scales and the laws it was asked."""

    def __init__(self, chance: np.random.Generator | None = None) -> None:
        self.chance = Ordered() if chance is None else chance
        self.scales: list[float] = []
        self.laws: list[Floats] = []

    def laplace(self, statistic: float, scale: float) -> float:
        """Return the statistic."""
        self.scales.append(scale)
        return statistic

    def laplaces(self, statistics: Floats, scale: float) -> Floats:
        """Return the statistics."""
        self.scales.append(scale)
        return statistics

    def choose(self, utilities: Floats, epsilon: float, sensitivity: float) -> int:
        """Return the likeliest outcome."""
        self.laws.append(choice_law(utilities, epsilon, sensitivity))
        return int(np.argmax(self.laws[-1]))


def neighbours(
    values: tuple[float, ...], alphabet: tuple[float, ...]
) -> Iterator[tuple[float, ...]]:
    """Return all inputs in which one value is replaced."""
    for position, other in itertools.product(range(len(values)), alphabet):
        yield (*values[:position], other, *values[position + 1 :])


def gaussian_values(sd: float, pairs: int) -> Floats:
    """Return values whose neighbours-in-a-row differ as Gaussians of this sd do."""
    levels = (np.arange(pairs) + 0.5) / pairs
    differences = math.sqrt(2.0) * sd * stats.norm.ppf(0.5 + levels / 2)
    return np.column_stack((np.full(pairs, 0.2), 0.2 + differences)).ravel()
