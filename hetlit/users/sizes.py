"""Size profiles: how many samples each user holds.

Every profile returns an int64 array of n sizes, each at least 1; n is at most 10^7.

Chapter: The model.
"""

from __future__ import annotations

import numpy as np

from hetlit import check
from hetlit.check import Integers


def equal(n: int, k: int) -> Integers:
    """Return n users with k samples each.

    >>> equal(3, 5)
    array([5, 5, 5])
    """
    n = check.integer("n", n, 1, check.MOST_DRAWN)
    return np.full(n, check.integer("k", k, 1), dtype=np.int64)


def harmonic(n: int) -> Integers:
    """Return the paper's example: user i of n holds ceil(n/i) samples.

    Paper: the example of Section 4.1.

    >>> harmonic(6)
    array([6, 3, 2, 2, 2, 1])
    """
    n = check.integer("n", n, 1, check.MOST_DRAWN)
    rank = np.arange(1, n + 1, dtype=np.int64)
    return -(-n // rank)


def two_level(n: int, heavy: int, k_heavy: int) -> Integers:
    """Return `heavy` users with `k_heavy` samples, then n - heavy users with one.

    Paper: the example of Section 4.3.

    >>> two_level(5, heavy=2, k_heavy=100)
    array([100, 100,   1,   1,   1])
    """
    n = check.integer("n", n, 1, check.MOST_DRAWN)
    heavy = check.integer("heavy", heavy, 0)
    k_heavy = check.integer("k_heavy", k_heavy, 1)
    if heavy > n:
        raise ValueError(f"heavy must be at most n = {n}, not {heavy}")
    k = np.ones(n, dtype=np.int64)
    k[:heavy] = k_heavy
    return k


def geometric(n: int, mean: float, rng: np.random.Generator) -> Integers:
    """Return n sizes from the geometric law on 1, 2, ... with the given mean."""
    n = check.integer("n", n, 1, check.MOST_DRAWN)
    mean = check.real("mean", mean, "a finite number of at least 1")
    if mean < 1:
        raise ValueError(f"mean must be at least 1, not {mean!r}")
    rng = check.generator("rng", rng)
    return rng.geometric(1.0 / mean, size=n).astype(np.int64)


def zipf(n: int, exponent: float, k_max: int, rng: np.random.Generator) -> Integers:
    """Return n sizes with Pr(k) proportional to k**-exponent on 1..k_max <= 10^7."""
    n = check.integer("n", n, 1, check.MOST_DRAWN)
    exponent = check.positive("exponent", exponent)
    k_max = check.integer("k_max", k_max, 1, check.MOST_DRAWN)
    rng = check.generator("rng", rng)
    masses = np.arange(1, k_max + 1, dtype=np.float64) ** -exponent
    # Inverting the distribution function: where does a uniform draw fall?
    heights = np.cumsum(masses) / masses.sum()
    draws = np.searchsorted(heights, rng.random(n), side="right") + 1
    return np.minimum(draws, k_max).astype(np.int64)


def lognormal(
    n: int, median: float, sigma: float, k_max: int, rng: np.random.Generator
) -> Integers:
    """Return n sizes ceil(median * exp(sigma Z)), Z standard normal, at most k_max.

    The ceiling keeps every user at one sample or more, so the median size is
    `median` when that is whole.
    """
    n = check.integer("n", n, 1, check.MOST_DRAWN)
    median = check.positive("median", median)
    sigma = check.at_least("sigma", sigma, 0.0)
    k_max = check.integer("k_max", k_max, 1)
    rng = check.generator("rng", rng)
    with np.errstate(over="ignore"):
        draws = np.ceil(median * np.exp(sigma * rng.standard_normal(n)))
    # Compared before the cast: an infinite draw has no int64, and k_max is one.
    fits = draws < k_max
    draws = np.where(fits, np.maximum(draws, 1.0), 1.0)
    return np.where(fits, draws.astype(np.int64), k_max)
