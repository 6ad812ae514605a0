"""Sources of noise that add none, or what they are told, and keep what was asked."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from hetlit import Users
from hetlit.privacy.noise import Simulated


class Unshuffled(np.random.Generator):
    """Draws as usual, but keeps orders."""

    def __init__(self) -> None:
        super().__init__(np.random.PCG64(0))

    def permutation(self, x: Any, axis: int = 0) -> Any:
        return x


class Scripted(Simulated):
    """Adds the given noises, then none; takes the given outcome; keeps orders."""

    def __init__(self, *noises: float, outcome: int = 0) -> None:
        super().__init__(Unshuffled())
        self.noises = list(noises)
        self.outcome = outcome
        self.scales: list[float] = []
        self.choices: list[tuple[float, float]] = []

    def laplace(self, statistic: float, scale: float) -> float:
        self.scales.append(scale)
        return statistic + (self.noises.pop(0) if self.noises else 0.0)

    def laplaces(self, statistics: Any, scale: float) -> Any:
        return np.array([self.laplace(statistic, scale) for statistic in statistics])

    def choose(self, utilities: Any, epsilon: float, sensitivity: float) -> int:
        self.choices.append((epsilon, sensitivity))
        return self.outcome % len(utilities)


class Quiet(np.random.Generator):
    """Adds no noise and keeps the scales it was asked for."""

    def __init__(self, seed: int = 0) -> None:
        super().__init__(np.random.PCG64(seed))
        self.scales: list[float] = []

    def laplace(self, loc: Any = 0.0, scale: Any = 1.0, size: Any = None) -> Any:
        self.scales.append(scale)
        return loc


def generator(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


def trace_of(estimator: Callable[..., Any], users: Users, epsilon: float = 1.0) -> Any:
    return estimator(users, epsilon, rng=Quiet(), trace=True).trace
