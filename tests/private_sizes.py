"""Tables of users whose sizes are private, and noise that follows a script."""

from __future__ import annotations

from typing import Any

import numpy as np

from hetlit import Beta, Users, sample_users, sizes
from hetlit.privacy.noise import Simulated, choice_law

METHODS = ("ratio", "ptr", "paper")


class Unshuffled(np.random.Generator):
    """Draws as usual, but keeps orders."""

    def __init__(self, seed: int = 0) -> None:
        super().__init__(np.random.PCG64(seed))

    def permutation(self, x: Any, axis: int = 0) -> Any:
        return x


class Scripted(Simulated):
    """Takes given outcomes and adds given noises, or draws them; keeps what it did."""

    def __init__(
        self,
        *outcomes: int,
        noises: list[float] | None = None,
        chance: np.random.Generator | None = None,
    ) -> None:
        super().__init__(Unshuffled() if chance is None else chance)
        self.outcomes = list(outcomes)
        self.script = noises
        self.noises: list[float] = []
        self.scales: list[float] = []
        self.laws: list[np.ndarray] = []

    def laplace(self, statistic: float, scale: float) -> float:
        drawn = float(self.chance.laplace(0.0, scale))
        self.scales.append(scale)
        self.noises.append(drawn if self.script is None else self.script.pop(0))
        return statistic + self.noises[-1]

    def choose(self, utilities: Any, epsilon: float, sensitivity: float) -> int:
        self.laws.append(choice_law(utilities, epsilon, sensitivity))
        return self.outcomes.pop(0) % len(self.laws[-1])


def all_users(k_max: int) -> list[tuple[int, int]]:
    """Every user there can be: (k, successes) for k up to k_max."""
    return [(k, ones) for k in range(1, k_max + 1) for ones in range(k + 1)]


def table(rows: Any) -> Users:
    k, successes = zip(*rows, strict=True)
    return Users(k, successes)


def zipf_users(n: int = 4000, seed: int = 0) -> Users:
    rng = np.random.default_rng(seed)
    k = sizes.zipf(n, exponent=1.5, k_max=500, rng=rng)
    return sample_users(Beta(0.3, 0.0004), k, rng)
