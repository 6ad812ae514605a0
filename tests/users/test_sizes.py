"""Size profiles have their laws, take numbers of every type, and refuse others."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from scipy import stats

from hetlit import sizes
from tests.chance import RNG, close, plausible_count
from tests.odd import odd

MANY = 10**12


@pytest.mark.parametrize(
    ("make", "name"),
    [
        (lambda: sizes.equal(MANY, 1), "n"),
        (lambda: sizes.equal(10**7 + 1, 1), "n"),
        (lambda: sizes.harmonic(MANY), "n"),
        (lambda: sizes.two_level(MANY, 1, 1), "n"),
        (lambda: sizes.geometric(MANY, 2.0, RNG), "n"),
        (lambda: sizes.zipf(MANY, 2.0, 10, RNG), "n"),
        (lambda: sizes.zipf(1, 2.0, MANY, RNG), "k_max"),
        (lambda: sizes.zipf(1, 2.0, 10**7 + 1, RNG), "k_max"),
        (lambda: sizes.lognormal(MANY, 2.0, 1.0, 10, RNG), "n"),
    ],
)
def test_profiles_beyond_memory_are_refused_by_name(make, name):
    with pytest.raises(ValueError, match=f"^{name} must be .* at most 10000000,"):
        make()


@pytest.mark.parametrize("value", [np.timedelta64(3), 3j, "3", None, [3]], ids=repr)
def test_what_is_not_a_number_is_refused_by_name(value):
    for make, name in (
        (lambda: sizes.equal(value, 1), "n"),
        (lambda: sizes.equal(1, value), "k"),
        (lambda: sizes.harmonic(value), "n"),
        (lambda: sizes.geometric(2, value, RNG), "mean"),
        (lambda: sizes.zipf(2, value, 5, RNG), "exponent"),
        (lambda: sizes.lognormal(2, 1.0, value, 5, RNG), "sigma"),
    ):
        with pytest.raises(TypeError, match=f"^{name} must be"):
            make()


def test_narrow_numbers_are_plain_ones():
    n, half = odd(np.uint8(200)), odd(np.float16(1.5))

    def rng():
        return np.random.default_rng(3)

    for found, known in (
        (sizes.equal(n, n), sizes.equal(200, 200)),
        (sizes.harmonic(n), sizes.harmonic(200)),
        (sizes.two_level(n, odd(np.int8(3)), n), sizes.two_level(200, 3, 200)),
        (sizes.geometric(n, n, rng()), sizes.geometric(200, 200.0, rng())),
        (sizes.zipf(n, half, n, rng()), sizes.zipf(200, 1.5, 200, rng())),
        (
            sizes.lognormal(n, n, half, n, rng()),
            sizes.lognormal(200, 200.0, 1.5, 200, rng()),
        ),
    ):
        assert found.dtype == np.int64
        assert found.tolist() == known.tolist()


def test_the_largest_means_give_sizes_of_at_least_one():
    for mean in (1.0, 1e18, 1e300):
        k = sizes.geometric(100, mean, np.random.default_rng(0))
        assert k.min() >= 1


# The laws of sizes

PROFILES: dict[str, Callable[[np.random.Generator], Any]] = {
    "equal": lambda rng: sizes.equal(1000, 7),
    "harmonic": lambda rng: sizes.harmonic(1000),
    "two_level": lambda rng: sizes.two_level(1000, 10, 500),
    "geometric": lambda rng: sizes.geometric(1000, 5.0, rng),
    "zipf": lambda rng: sizes.zipf(1000, 1.5, 500, rng),
    "lognormal": lambda rng: sizes.lognormal(1000, 3.0, 2.0, 500, rng),
}


@pytest.mark.parametrize("profile", PROFILES)
def test_sizes_are_whole_and_positive(profile: str) -> None:
    k = PROFILES[profile](np.random.default_rng(0))
    assert k.dtype == np.int64
    assert k.shape == (1000,)
    assert k.min() >= 1
    assert k.max() <= 1000


@pytest.mark.parametrize("profile", PROFILES)
def test_sizes_are_reproducible_from_their_generator(profile: str) -> None:
    first, second = (PROFILES[profile](np.random.default_rng(9)) for _ in range(2))
    assert first.tolist() == second.tolist()


@pytest.mark.parametrize("profile", ["geometric", "zipf", "lognormal"])
def test_random_sizes_depend_on_the_generator_only(profile: str) -> None:
    first, second = (PROFILES[profile](np.random.default_rng(s)) for s in (1, 2))
    assert first.tolist() != second.tolist()


def test_equal_sizes_are_equal() -> None:
    assert sizes.equal(3, 5).tolist() == [5, 5, 5]


@pytest.mark.parametrize(
    ("n", "total"),
    [(10**3, 8053), (10**4, 103643), (10**5, 1266714), (10**6, 14969985)],
)
def test_harmonic_sizes_have_the_known_sums(n: int, total: int) -> None:
    assert int(sizes.harmonic(n).sum()) == total


@pytest.mark.parametrize("n", [1, 2, 3, 7, 60, 997])
def test_harmonic_sizes_are_rounded_up(n: int) -> None:
    expected = [math.ceil(Fraction(n, rank)) for rank in range(1, n + 1)]
    assert sizes.harmonic(n).tolist() == expected


def test_two_levels_put_the_heavy_users_first() -> None:
    assert sizes.two_level(5, 2, 100).tolist() == [100, 100, 1, 1, 1]
    assert sizes.two_level(2, 0, 100).tolist() == [1, 1]
    assert sizes.two_level(2, 2, 100).tolist() == [100, 100]


def check_law(k: Any, probability: Callable[[int], float], top: int) -> None:
    """Compare the shares of sizes 1, 2, ..., top, and of larger ones, with a law."""
    total = 0.0
    for size in range(1, top + 1):
        total += probability(size)
        count = int((k == size).sum())
        assert plausible_count(count, len(k), min(probability(size), 1.0))
    rest = int((k > top).sum())
    assert plausible_count(rest, len(k), min(max(1 - total, 0.0), 1.0))


@pytest.mark.parametrize("mean", [1, 1.5, 5.0])
def test_geometric_sizes_have_their_law(mean: float) -> None:
    k = sizes.geometric(100_000, mean, np.random.default_rng(0))
    check_law(k, lambda size: (1 - 1 / mean) ** (size - 1) / mean, 12)
    assert close(k, mean)


@pytest.mark.parametrize(
    ("exponent", "k_max"), [(0.5, 10), (1.0, 100), (2.0, 1000), (4, 3), (1.0, 1)]
)
def test_zipf_sizes_have_their_law(exponent: float, k_max: int) -> None:
    k = sizes.zipf(100_000, exponent, k_max, np.random.default_rng(0))
    masses = [size**-exponent for size in range(1, k_max + 1)]
    check_law(k, lambda size: masses[size - 1] / sum(masses), min(k_max, 12))
    assert k.max() <= k_max


@pytest.mark.parametrize(
    ("median", "sigma", "k_max"),
    [(3.0, 1.0, 10**6), (3.0, 1.0, 8), (0.2, 0.5, 100), (7.0, 0.0, 100), (50, 3.0, 60)],
)
def test_lognormal_sizes_have_their_law(
    median: float, sigma: float, k_max: int
) -> None:
    k = sizes.lognormal(100_000, median, sigma, k_max, np.random.default_rng(0))

    def at_most(size: int) -> float:
        if size < 1 or size >= k_max:
            return float(size >= k_max)
        if sigma == 0:
            return float(math.ceil(median) <= size)
        return float(stats.norm.cdf(math.log(size / median) / sigma))

    check_law(k, lambda size: at_most(size) - at_most(size - 1), min(k_max, 12))
    assert k.max() <= k_max


def test_a_whole_median_is_the_median_size() -> None:
    k = sizes.lognormal(100_001, 5.0, 1.0, 10**6, np.random.default_rng(0))
    assert plausible_count(int((k <= 5).sum()), 100_001, 0.5)


@pytest.mark.parametrize("k_max", [50, 2**63 - 1])
def test_lognormal_sizes_stay_within_k_max_when_numbers_overflow(k_max: int) -> None:
    k = sizes.lognormal(1000, 3.0, 1000.0, k_max, np.random.default_rng(0))
    assert k.min() == 1
    assert k.max() == k_max


BIG = 2**70


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: sizes.equal(0, 1), ValueError, "n must be a whole number"),
        (lambda: sizes.equal(odd(2.0), 1), TypeError, "n must be a whole number"),
        (lambda: sizes.equal(True, 1), TypeError, "n must be a whole number"),
        (lambda: sizes.equal(odd("2"), 1), TypeError, "n must be a whole number"),
        (lambda: sizes.equal(2, 0), ValueError, "k must be a whole number"),
        (lambda: sizes.equal(2, odd(1.5)), TypeError, "k must be a whole number"),
        (lambda: sizes.equal(2, BIG), ValueError, "k must be a whole number"),
        (lambda: sizes.harmonic(0), ValueError, "n must be a whole number"),
        (lambda: sizes.harmonic(-3), ValueError, "n must be a whole number"),
        (lambda: sizes.harmonic(odd(None)), TypeError, "n must be a whole number"),
        (lambda: sizes.two_level(0, 0, 1), ValueError, "n must be a whole number"),
        (lambda: sizes.two_level(2, -1, 1), ValueError, "heavy must be a whole"),
        (lambda: sizes.two_level(2, 3, 1), ValueError, "heavy must be at most n = 2"),
        (lambda: sizes.two_level(2, 1, 0), ValueError, "k_heavy must be a whole"),
        (lambda: sizes.two_level(2, 1, BIG), ValueError, "k_heavy must be a whole"),
        (lambda: sizes.geometric(0, 2.0, RNG), ValueError, "n must be a whole number"),
        (lambda: sizes.geometric(2, 0.9, RNG), ValueError, "mean must be at least 1"),
        (lambda: sizes.geometric(2, math.nan, RNG), ValueError, "mean must be"),
        (lambda: sizes.geometric(2, math.inf, RNG), ValueError, "mean must be"),
        (lambda: sizes.geometric(2, odd("2"), RNG), TypeError, "mean must be"),
        (lambda: sizes.geometric(2, 2.0, odd(None)), TypeError, "rng must be"),
        (lambda: sizes.zipf(0, 1.0, 5, RNG), ValueError, "n must be a whole number"),
        (lambda: sizes.zipf(2, 0.0, 5, RNG), ValueError, "exponent must be a finite"),
        (lambda: sizes.zipf(2, -1.0, 5, RNG), ValueError, "exponent must be a finite"),
        (lambda: sizes.zipf(2, 1.0, 0, RNG), ValueError, "k_max must be a whole"),
        (lambda: sizes.zipf(2, 1.0, odd(5.0), RNG), TypeError, "k_max must be a whole"),
        (lambda: sizes.zipf(2, 1.0, 5, odd(7)), TypeError, "rng must be"),
        (lambda: sizes.lognormal(0, 1, 1, 5, RNG), ValueError, "n must be a whole"),
        (lambda: sizes.lognormal(2, 0.0, 1, 5, RNG), ValueError, "median must be"),
        (lambda: sizes.lognormal(2, math.inf, 1, 5, RNG), ValueError, "median must be"),
        (lambda: sizes.lognormal(2, 1, -1, 5, RNG), ValueError, "sigma must be"),
        (lambda: sizes.lognormal(2, 1, math.nan, 5, RNG), ValueError, "sigma must be"),
        (lambda: sizes.lognormal(2, 1, 1, 0, RNG), ValueError, "k_max must be a whole"),
        (lambda: sizes.lognormal(2, 1, 1, BIG, RNG), ValueError, "k_max must be"),
        (lambda: sizes.lognormal(2, 1, 1, 5, odd(None)), TypeError, "rng must be"),
    ],
)
def test_impossible_sizes_are_refused(
    make: Callable[[], Any], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        make()
