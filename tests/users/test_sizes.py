"""Size profiles take numbers of every type, and refuse sizes beyond memory."""

import numpy as np
import pytest

from hetlit import sizes
from tests.odd import odd

RNG = np.random.default_rng(0)
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
