"""The error of a private mean: exact tails, their limits, and no way to fail."""

from __future__ import annotations

import itertools
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import integrate, stats

from hetlit.theory.errors import half_width, tail

SCALES = st.floats(1e-3, 1e3)
LEVELS = st.floats(0.01, 0.999)
# Nothing, the smallest floats, and what budgets from 1e-12 to 1e12 make of it.
EXTREME = (0.0, 5e-324, 1e-300, 1e-24, 1.0, 1e12, 1e100)


def convolved(z: float, b: float, g: float) -> float:
    """Return Pr(|L + G| > z), one integral over G."""
    law = stats.laplace(scale=b)

    def beyond(x: float) -> float:
        density = math.exp(-(x**2) / 2.0) / math.sqrt(2.0 * math.pi)
        return density * float(law.sf(z - g * x) + law.cdf(-z - g * x))

    corners = [x for x in (-z / g, z / g) if abs(x) < 40.0]
    value, _ = integrate.quad(
        beyond, -40.0, 40.0, points=corners, epsabs=1e-15, epsrel=1e-12, limit=500
    )
    return float(value)


@pytest.mark.parametrize("ratio", [0.03, 0.3, 1.0, 2.5, 20.0])
@pytest.mark.parametrize("z", [0.05, 1.0, 3.0, 12.0])
def test_the_tail_is_that_of_the_convolution(ratio: float, z: float) -> None:
    for b in (1.0, 0.2):
        expected = convolved(z, b, ratio * b)
        assert tail(z, b, ratio * b) == pytest.approx(expected, rel=1e-9, abs=1e-14)


@pytest.mark.parametrize("z", [0.1, 1.0, 5.0])
def test_one_of_the_two_alone_has_its_own_tail(z: float) -> None:
    assert tail(z, 2.0, 0.0) == pytest.approx(math.exp(-z / 2.0), rel=1e-14)
    assert tail(z, 0.0, 2.0) == pytest.approx(2.0 * stats.norm.sf(z / 2.0), rel=1e-12)
    assert tail(z, 0.0, 0.0) == 0.0


@pytest.mark.parametrize("z", [0.1, 1.0, 5.0])
@pytest.mark.parametrize("tiny", [1e-9, 1e-160, 5e-324])
def test_the_limits_are_reached_without_a_jump(z: float, tiny: float) -> None:
    assert tail(z, 1.0, tiny) == pytest.approx(tail(z, 1.0, 0.0), rel=1e-8)
    assert tail(z, tiny, 1.0) == pytest.approx(tail(z, 0.0, 1.0), rel=1e-8)


@given(st.floats(0.0, 30.0), SCALES, SCALES, st.floats(1e-6, 1e6))
def test_only_ratios_matter(z: float, b: float, g: float, unit: float) -> None:
    z *= max(b, g)
    expected = tail(z, b, g)
    assert tail(unit * z, unit * b, unit * g) == pytest.approx(expected, rel=1e-6)


@given(st.floats(0.0, 20.0), SCALES, SCALES, st.floats(1.001, 3.0))
def test_the_tail_falls_with_the_distance_and_rises_with_either_scale(
    z: float, b: float, g: float, more: float
) -> None:
    z *= max(b, g)
    here = tail(z, b, g)
    assert 0.0 <= here <= 1.0
    assert tail(more * z, b, g) <= here * (1.0 + 1e-9)
    assert tail(z, more * b, g) >= here * (1.0 - 1e-9)
    assert tail(z, b, more * g) >= here * (1.0 - 1e-9)


def test_every_error_is_beyond_zero() -> None:
    for b, g in itertools.product(EXTREME, repeat=2):
        assert tail(0.0, b, g) == 1.0


@given(LEVELS, SCALES, SCALES)
def test_the_half_width_misses_what_it_may_and_no_less(
    level: float, b: float, g: float
) -> None:
    z = half_width(level, b, g)
    assert tail(z, b, g) <= 1.0 - level
    assert tail(z * (1.0 - 1e-9), b, g) > 1.0 - level


@pytest.mark.parametrize("level", [0.5, 0.95, 0.999])
def test_half_widths_of_one_alone_are_its_quantiles(level: float) -> None:
    upper = (1.0 + level) / 2.0
    assert half_width(level, 3.0, 0.0) == pytest.approx(
        stats.laplace(scale=3.0).ppf(upper), rel=1e-12
    )
    assert half_width(level, 0.0, 3.0) == pytest.approx(
        stats.norm(scale=3.0).ppf(upper), rel=1e-12
    )
    for tiny in (1e-12, 5e-324):
        for b, g in ((1.0, tiny), (tiny, 1.0)):
            alone = half_width(level, round(b), round(g))
            assert half_width(level, b, g) == pytest.approx(alone, rel=1e-9)


@given(LEVELS, SCALES, SCALES, st.floats(1.0, 3.0))
def test_half_widths_grow_with_the_level_and_with_either_scale(
    level: float, b: float, g: float, more: float
) -> None:
    here = half_width(level, b, g)
    assert half_width(1.0 - (1.0 - level) / more, b, g) >= here
    assert half_width(level, more * b, g) >= here * (1.0 - 1e-12)
    assert half_width(level, b, more * g) >= here * (1.0 - 1e-12)


@pytest.mark.parametrize("level", [1e-300, 1e-17, 1e-16, 1e-9, 0.95, 1 - 2**-53])
def test_no_level_and_no_scale_is_too_extreme(level: float) -> None:
    for b, g in itertools.product(EXTREME, repeat=2):
        z = half_width(level, b, g)
        assert math.isfinite(z)
        assert z >= 0.0
        assert tail(z, b, g) <= (1.0 - level) * (1.0 + 1e-9) or max(b, g) < 1e-300
        for distance in (z / 2.0, 1e-300, 1.0, 1e300):
            assert 0.0 <= tail(distance, b, g) <= 1.0
