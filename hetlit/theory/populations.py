"""Meta-distributions: the laws on [0, 1] from which users' rates are drawn.

Each one knows its mean, its variance and a sub-Gaussian proxy, and can be sampled.

Chapter: The model.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np
from scipy import optimize, special, stats

from hetlit import check
from hetlit.check import Floats

# Gauss-Legendre quadrature on [-1, 1].
NODES, MASSES = np.polynomial.legendre.leggauss(100)


class MetaDistribution(Protocol):
    """A law on [0, 1] from which every user's rate is drawn."""

    @property
    def mean(self) -> float:
        """The population mean p."""

    @property
    def variance(self) -> float:
        """The variance of the rates, var_p."""

    @property
    def sub_gaussian_proxy(self) -> float:
        """A number t with log E exp(s (p_i - p)) <= t s^2 / 2 for every s."""

    def sample(self, n: int, rng: np.random.Generator) -> Floats:
        """Return n independent rates."""


@dataclass(frozen=True)
class Constant:
    """Every user has the same rate p: the paper's Section 4.3.

    >>> Constant(0.3).variance
    0.0
    """

    p: float

    def __post_init__(self) -> None:
        _keep(self, p=check.between("p", self.p, 0.0, 1.0))

    @property
    def mean(self) -> float:
        """The rate itself."""
        return self.p

    @property
    def variance(self) -> float:
        """Zero."""
        return 0.0

    @property
    def sub_gaussian_proxy(self) -> float:
        """Zero."""
        return 0.0

    def sample(self, n: int, rng: np.random.Generator) -> Floats:
        """Return n copies of the rate."""
        n, _ = _draws(n, rng)
        return np.full(n, self.p)


@dataclass(frozen=True)
class Beta:
    """Rates with a beta law, given by its mean and its variance.

    With m = mean(1-mean)/variance - 1 it is Beta(mean m, (1-mean) m).

    >>> Beta(mean=0.3, variance=0.01).concentration
    20.0
    """

    mean: float
    variance: float

    def __post_init__(self) -> None:
        mean = check.strictly_between("mean", self.mean, 0.0, 1.0)
        top = mean * (1.0 - mean)
        # Less variance has no finite concentration.
        variance = check.strictly_between("variance", self.variance, 1e-300, top)
        _keep(self, mean=mean, variance=variance)

    @property
    def concentration(self) -> float:
        """The sum a + b of the two usual parameters."""
        return self.mean * (1.0 - self.mean) / self.variance - 1.0

    @property
    def sub_gaussian_proxy(self) -> float:
        """1/(4(a+b+1)), after Marchal and Arbel (2017)."""
        return self.variance / (4.0 * self.mean * (1.0 - self.mean))

    def sample(self, n: int, rng: np.random.Generator) -> Floats:
        """Return n independent rates."""
        n, rng = _draws(n, rng)
        m = self.concentration
        return np.asarray(rng.beta(self.mean * m, (1.0 - self.mean) * m, size=n))


@dataclass(frozen=True)
class TruncatedGaussian:
    """Rates from a Gaussian conditioned on [0, 1], given by its actual mean.

    `mean` is the mean of the rates, strictly inside (0, 1); `sd` is the standard
    deviation of the parent Gaussian, before conditioning.

    >>> wide = TruncatedGaussian(mean=0.5, sd=0.3)
    >>> round(wide.location, 6), round(wide.variance, 6)
    (0.5, 0.057003)
    """

    mean: float
    sd: float

    def __post_init__(self) -> None:
        mean = check.strictly_between("mean", self.mean, 0.0, 1.0)
        # Limits far beyond any use, within which squares are floats.
        sd = check.between("sd", check.positive("sd", self.sd), 1e-100, 1e100)
        _keep(self, mean=mean, sd=sd)
        _ = self.location  # refuses a mean that is too extreme

    @cached_property
    def location(self) -> float:
        """The mean of the parent Gaussian, which may lie outside [0, 1]."""
        reach = self.sd
        while not self._moments(-reach)[0] < self.mean < self._moments(1.0 + reach)[0]:
            reach *= 2.0
            if reach > 1e5 * self.sd:
                raise ValueError(f"mean {self.mean} is too extreme for sd {self.sd}")
        root = optimize.brentq(
            lambda location: self._moments(location)[0] - self.mean,
            -reach,
            1.0 + reach,
            xtol=1e-15,
        )
        return float(root)

    @cached_property
    def variance(self) -> float:
        """The variance of the rates, below that of the parent."""
        return self._moments(self.location)[1]

    @property
    def sub_gaussian_proxy(self) -> float:
        """The parent's variance, since conditioning keeps strong log-concavity.

        And 1/4 at most, which serves every law on [0, 1] (Hoeffding).
        """
        return min(self.sd**2, 0.25)

    def sample(self, n: int, rng: np.random.Generator) -> Floats:
        """Return n independent rates."""
        n, rng = _draws(n, rng)
        low, high = -self.location / self.sd, (1.0 - self.location) / self.sd
        law = stats.truncnorm(low, high, loc=self.location, scale=self.sd)
        # Rounding can put a rate just outside.
        return np.asarray(np.clip(law.rvs(n, random_state=rng), 0.0, 1.0))

    def _moments(self, location: float) -> tuple[float, float]:
        """Return the mean and the variance for a parent with this mean.

        By quadrature around the mode, where the density is within e^-40 of its top:
        closed forms lose all their digits when the parent is far away.
        """
        mode = min(max(location, 0.0), 1.0)
        slope = (location - mode) / self.sd**2
        reach = 80.0 / (abs(slope) + np.sqrt(slope**2 + 80.0 / self.sd**2))
        low, high = max(-mode, -reach), min(1.0 - mode, reach)
        steps = low + (high - low) * (NODES + 1.0) / 2.0
        masses = MASSES * np.exp(slope * steps - (steps / self.sd) ** 2 / 2.0)
        masses /= masses.sum()
        step = float(masses @ steps)
        return mode + step, float(masses @ (steps - step) ** 2)


@dataclass(frozen=True)
class TwoPoint:
    """Rates that are `high` with probability `weight` and `low` otherwise.

    >>> round(TwoPoint(low=0.1, high=0.9, weight=0.05).mean, 6)
    0.14
    """

    low: float
    high: float
    weight: float

    def __post_init__(self) -> None:
        low = check.between("low", self.low, 0.0, 1.0)
        high = check.between("high", self.high, low, 1.0)
        weight = check.between("weight", self.weight, 0.0, 1.0)
        _keep(self, low=low, high=high, weight=weight)

    @property
    def mean(self) -> float:
        """low + weight (high - low)."""
        return self.low + self.weight * (self.high - self.low)

    @property
    def variance(self) -> float:
        """weight (1 - weight) (high - low)^2."""
        return self.weight * (1.0 - self.weight) * (self.high - self.low) ** 2

    @property
    def sub_gaussian_proxy(self) -> float:
        """The best proxy of a Bernoulli variable (Kearns and Saul), rescaled."""
        odds = float(special.logit(self.weight))
        # tanh(x/2)/(2x) is (1-2w)/(2 log((1-w)/w)), without 0/0 at w = 1/2.
        bernoulli = np.tanh(odds / 2.0) / (2.0 * odds) if odds else 0.25
        return float((self.high - self.low) ** 2 * bernoulli)

    def sample(self, n: int, rng: np.random.Generator) -> Floats:
        """Return n independent rates."""
        n, rng = _draws(n, rng)
        return np.where(rng.random(n) < self.weight, self.high, self.low)


def _keep(law: object, **numbers: float) -> None:
    """Replace the fields of a frozen law by plain floats, so that none is narrow."""
    for name, number in numbers.items():
        object.__setattr__(law, name, number)


def _draws(n: int, rng: np.random.Generator) -> tuple[int, np.random.Generator]:
    """Return the arguments of `sample`, checked."""
    return (
        check.integer("n", n, 0, check.MOST_DRAWN),
        check.generator("rng", rng),
    )
