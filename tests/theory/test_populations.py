"""Populations have their laws, take numbers of every type, and refuse others."""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from scipy import integrate, stats

from hetlit.theory.populations import (
    Beta,
    Constant,
    MetaDistribution,
    TruncatedGaussian,
    TwoPoint,
)
from tests.chance import close, plausible_count
from tests.odd import odd

LAWS = [
    Constant(0.3),
    Beta(0.3, 0.01),
    TruncatedGaussian(0.3, 0.2),
    TwoPoint(0.1, 0.9, 0.5),
]
NARROW = [
    (Constant, (np.float16(0.5),)),
    (Constant, (Fraction(1, 3),)),
    (Beta, (np.float16(0.5), 1e-6)),
    (Beta, (Fraction(1, 2), np.float32(0.125))),
    (TruncatedGaussian, (0.3, np.int8(20))),
    (TruncatedGaussian, (np.float16(0.25), np.uint64(20))),
    (TwoPoint, (0, 1, Fraction(1, 3))),
    (TwoPoint, (np.uint8(0), np.uint8(1), np.float16(0.25))),
]


@pytest.mark.parametrize(("law", "numbers"), NARROW)
def test_laws_keep_plain_floats_whatever_they_are_given(law, numbers):
    found, plain = law(*numbers), law(*(float(number) for number in numbers))
    assert found == plain
    assert all(type(value) is float for value in dataclasses.astuple(found))
    for name in ("mean", "variance", "sub_gaussian_proxy"):
        value = getattr(found, name)
        assert type(value) is float
        assert value == getattr(plain, name)
    draws = [x.sample(5, np.random.default_rng(0)).tolist() for x in (found, plain)]
    assert draws[0] == draws[1]


def test_narrow_types_lose_no_digits():
    assert round(TruncatedGaussian(0.3, odd(np.int8(20))).variance, 4) == 0.0603
    assert Beta(odd(np.float16(0.5)), 1e-6).concentration == pytest.approx(249_999.0)
    assert TwoPoint(0, 1, odd(Fraction(1, 3))).sub_gaussian_proxy == pytest.approx(
        1 / (6 * math.log(2))
    )


@pytest.mark.parametrize(
    "value",
    [np.timedelta64(0), np.datetime64(0, "s"), 0.5j, "0.5", np.ma.masked, [0.5], None],
    ids=repr,
)
@pytest.mark.parametrize("law", LAWS, ids=lambda law: type(law).__name__)
def test_what_is_not_a_number_is_refused_by_name(law, value):
    for field in dataclasses.fields(law):
        with pytest.raises(TypeError, match=f"^{field.name} must be"):
            dataclasses.replace(law, **{field.name: value})


@pytest.mark.parametrize(
    ("make", "name"),
    [
        (lambda: Beta(0.5, 1e-310), "variance"),
        (lambda: TruncatedGaussian(0.5, 1e-200), "sd"),
        (lambda: TruncatedGaussian(0.5, 1e200), "sd"),
    ],
)
def test_numbers_whose_squares_or_inverses_are_no_floats_are_refused(make, name):
    with pytest.raises(ValueError, match=f"^{name} must be"):
        make()


@pytest.mark.parametrize(
    "law",
    [
        *(Beta(0.5, 1e-299), Beta(0.5, 0.25 - 1e-15), Beta(1e-9, 1e-20)),
        *(TruncatedGaussian(0.5, 1e-100), TruncatedGaussian(0.5, 100)),
        *(TwoPoint(0, 1, 5e-324), TwoPoint(0, 1, 1 - 1e-16)),
    ],
    ids=repr,
)
def test_extreme_laws_have_finite_numbers_and_rates_between_zero_and_one(law):
    for name in ("mean", "variance", "sub_gaussian_proxy"):
        assert 0 <= getattr(law, name) < 1
    rates = law.sample(100, np.random.default_rng(0))
    assert ((rates >= 0) & (rates <= 1)).all()


@pytest.mark.parametrize("law", LAWS, ids=lambda law: type(law).__name__)
def test_samples_are_of_a_checked_number_by_a_checked_generator(law):
    rng = np.random.default_rng(0)
    assert law.sample(np.uint8(200), rng).shape == (200,)
    assert law.sample(0, rng).shape == (0,)
    for n, error in (
        *((-1, ValueError), (10**7 + 1, ValueError), (10**30, ValueError)),
        *((2.0, TypeError), (True, TypeError), ((2, 2), TypeError)),
        (np.timedelta64(2), TypeError),
    ):
        with pytest.raises(error, match=r"^n must be"):
            law.sample(n, rng)
    for other in (None, 7, np.random.RandomState(0)):
        with pytest.raises(TypeError, match=r"^rng must be"):
            law.sample(2, other)


# The laws of rates

POPULATIONS: list[MetaDistribution] = [
    Constant(0.3),
    Constant(0),
    Constant(1),
    Beta(0.3, 0.0004),
    Beta(0.3, 0.01),
    Beta(0.5, 1 / 12),
    Beta(0.2, 0.12),
    Beta(0.02, 0.0001),
    Beta(0.9, 0.085),
    TruncatedGaussian(0.3, 0.02),
    TruncatedGaussian(0.3, 0.3),
    TruncatedGaussian(0.05, 0.1),
    TruncatedGaussian(0.97, 0.2),
    TruncatedGaussian(0.5, 2.0),
    TwoPoint(0.1, 0.9, 0.05),
    TwoPoint(0.0, 1.0, 0.5),
    TwoPoint(0.2, 0.4, 0.7),
    TwoPoint(0.2, 0.4, 0.0),
    TwoPoint(0.2, 0.4, 1.0),
    TwoPoint(0.3, 0.3, 0.5),
]


@pytest.mark.parametrize("meta", POPULATIONS, ids=repr)
def test_rates_have_the_mean_and_variance_they_should(meta: MetaDistribution) -> None:
    rates = meta.sample(200_000, np.random.default_rng(1))
    assert rates.shape == (200_000,)
    assert rates.min() >= 0
    assert rates.max() <= 1
    assert close(rates, meta.mean)
    assert close((rates - meta.mean) ** 2, meta.variance)


@pytest.mark.parametrize("meta", POPULATIONS, ids=repr)
def test_rates_are_reproducible_from_their_generator(meta: MetaDistribution) -> None:
    first, second = (meta.sample(20, np.random.default_rng(3)) for _ in range(2))
    assert first.tolist() == second.tolist()


Function = Callable[[Any], Any]


def expectation(meta: MetaDistribution, f: Function) -> float:
    """Return E f(rate), by quadrature from the definition of the law."""
    if isinstance(meta, Constant):
        return float(f(meta.p))
    if isinstance(meta, TwoPoint):
        return float((1 - meta.weight) * f(meta.low) + meta.weight * f(meta.high))
    if isinstance(meta, Beta):
        total = meta.mean * (1 - meta.mean) / meta.variance - 1
        a, b = meta.mean * total, (1 - meta.mean) * total
        if min(a, b) < 1:
            # The density has poles at 0 and 1, which the "alg" weight integrates.
            top, bottom = (
                integrate.quad(g, 0, 1, weight="alg", wvar=(a - 1, b - 1), limit=200)[0]
                for g in (f, lambda rate: 1.0)
            )
            return float(top / bottom)
        law, spread = stats.beta(a, b), math.sqrt(meta.variance)
        return ratio(f, law.pdf, meta.mean, spread)
    assert isinstance(meta, TruncatedGaussian)
    mode = min(max(meta.location, 0.0), 1.0)
    slope = (meta.location - mode) / meta.sd**2
    width = min(meta.sd, 1 / abs(slope)) if slope else meta.sd

    def density(rate: Any) -> Any:
        step = rate - mode
        return np.exp(slope * step - (step / meta.sd) ** 2 / 2)

    return ratio(f, density, mode, width)


def ratio(f: Function, density: Function, centre: float, width: float) -> float:
    """Return the integral of f times density over that of density, on [0, 1]."""
    steps = (0, 1, 2, 4, 8, 16, 40)
    places = {centre + side * step * width for side in (-1, 1) for step in steps}
    edges = sorted({0.0, 1.0} | {place for place in places if 0 < place < 1})
    nodes, masses = np.polynomial.legendre.leggauss(60)
    top = bottom = 0.0
    for low, high in itertools.pairwise(edges):
        rates = (low + high) / 2 + (high - low) / 2 * nodes
        weights = masses * (high - low) * density(rates)
        top += float(weights @ f(rates))
        bottom += float(weights.sum())
    return top / bottom


@pytest.mark.parametrize("meta", POPULATIONS, ids=repr)
def test_mean_and_variance_are_those_of_the_law(meta: MetaDistribution) -> None:
    mean = expectation(meta, lambda rate: rate)
    assert mean == pytest.approx(meta.mean, rel=1e-9, abs=1e-12)
    variance = expectation(meta, lambda rate: (rate - mean) ** 2)
    assert variance == pytest.approx(meta.variance, rel=1e-8, abs=1e-15)


@pytest.mark.parametrize("meta", POPULATIONS, ids=repr)
def test_the_sub_gaussian_proxy_is_a_certificate(meta: MetaDistribution) -> None:
    assert meta.variance <= meta.sub_gaussian_proxy * (1 + 1e-12)
    for t in (-50, -20, -8, -3, -1, -0.2, 0.2, 1, 3, 8, 20, 50):

        def tilted(rate: Any, t: float = t) -> Any:
            return np.exp(t * (rate - meta.mean))

        log_moment = math.log(expectation(meta, tilted))
        assert log_moment <= meta.sub_gaussian_proxy * t**2 / 2 + 1e-9


@pytest.mark.parametrize("sd", [0.01, 0.05, 0.2, 0.5, 1.0, 2.0])
@pytest.mark.parametrize(
    "mean", [1e-4, 1e-3, 0.01, 0.1, 0.3, 0.5, 0.9, 0.99, 0.999, 1 - 1e-4]
)
def test_a_truncated_gaussian_has_the_mean_it_is_given(mean: float, sd: float) -> None:
    meta = TruncatedGaussian(mean, sd)
    actual = expectation(meta, lambda rate: rate)
    assert actual == pytest.approx(mean, abs=1e-9 * min(mean, 1 - mean))
    variance = expectation(meta, lambda rate: (rate - mean) ** 2)
    assert variance == pytest.approx(meta.variance, rel=1e-8)
    assert 0 < meta.variance <= sd**2 * (1 + 1e-12)
    rates = meta.sample(2_000, np.random.default_rng(5))
    assert rates.min() >= 0
    assert rates.max() <= 1
    assert close(rates, mean)


def test_a_truncated_gaussian_in_the_middle_keeps_its_location() -> None:
    assert TruncatedGaussian(0.5, 0.3).location == pytest.approx(0.5, abs=1e-12)
    assert TruncatedGaussian(0.3, 0.01).location == pytest.approx(0.3, abs=1e-12)
    assert TruncatedGaussian(0.3, 0.01).variance == pytest.approx(1e-4, rel=1e-12)


def test_a_truncated_gaussian_is_symmetric_about_one_half() -> None:
    left, right = TruncatedGaussian(0.1, 0.3), TruncatedGaussian(0.9, 0.3)
    assert left.location == pytest.approx(1 - right.location, rel=1e-9)
    assert left.variance == pytest.approx(right.variance, rel=1e-9)


def test_a_beta_law_has_the_usual_parameters() -> None:
    meta = Beta(0.3, 0.01)
    assert meta.concentration == pytest.approx(20, rel=1e-12)
    assert meta.sub_gaussian_proxy == pytest.approx(1 / 84, rel=1e-12)
    law = stats.beta(6, 14)
    rates = meta.sample(100_000, np.random.default_rng(2))
    for rate in (0.1, 0.25, 0.3, 0.5):
        count = int((rates <= rate).sum())
        assert plausible_count(count, len(rates), law.cdf(rate))


def test_the_proxy_of_two_points_is_best_possible() -> None:
    # Kearns and Saul: for a rate that is 1 with probability w it is
    # (1-2w) / (2 log((1-w)/w)), and 1/4 at w = 1/2.
    for weight in (0.01, 0.2, 0.49999, 0.7):
        expected = (1 - 2 * weight) / (2 * math.log((1 - weight) / weight))
        proxy = TwoPoint(0.0, 1.0, weight).sub_gaussian_proxy
        assert proxy == pytest.approx(expected, rel=1e-7)
    assert TwoPoint(0.0, 1.0, 0.5).sub_gaussian_proxy == 0.25
    assert TwoPoint(0.2, 0.7, 0.5).sub_gaussian_proxy == pytest.approx(0.0625)
    assert TwoPoint(0.2, 0.7, 0.0).sub_gaussian_proxy == 0.0


def test_two_points_are_drawn_with_their_weight() -> None:
    rates = TwoPoint(0.1, 0.9, 0.05).sample(100_000, np.random.default_rng(4))
    assert set(rates.tolist()) == {0.1, 0.9}
    assert plausible_count(int((rates == 0.9).sum()), 100_000, 0.05)


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: Constant(-0.1), ValueError, "p must be a number in"),
        (lambda: Constant(1.1), ValueError, "p must be a number in"),
        (lambda: Constant(math.nan), ValueError, "p must be a number in"),
        (lambda: Constant(odd("0.3")), TypeError, "p must be a number in"),
        (lambda: Constant(True), TypeError, "p must be a number in"),
        (lambda: Beta(0.0, 0.01), ValueError, "mean must be a number strictly"),
        (lambda: Beta(1.0, 0.01), ValueError, "mean must be a number strictly"),
        (lambda: Beta(math.nan, 0.01), ValueError, "mean must be a number strictly"),
        (lambda: Beta(0.3, 0.0), ValueError, "variance must be a number strictly"),
        (lambda: Beta(0.3, -0.1), ValueError, "variance must be a number strictly"),
        (lambda: Beta(0.3, 0.21), ValueError, "variance must be a number strictly"),
        (lambda: Beta(0.3, math.inf), ValueError, "variance must be a number"),
        (lambda: Beta(0.3, odd(None)), TypeError, "variance must be a number strictly"),
        (lambda: TruncatedGaussian(0.0, 0.1), ValueError, "mean must be a number"),
        (lambda: TruncatedGaussian(1.0, 0.1), ValueError, "mean must be a number"),
        (lambda: TruncatedGaussian(odd("a"), 0.1), TypeError, "mean must be a number"),
        (lambda: TruncatedGaussian(0.3, 0.0), ValueError, "sd must be a finite"),
        (lambda: TruncatedGaussian(0.3, -1.0), ValueError, "sd must be a finite"),
        (lambda: TruncatedGaussian(0.3, math.inf), ValueError, "sd must be a finite"),
        (lambda: TruncatedGaussian(0.3, math.nan), ValueError, "sd must be a finite"),
        (lambda: TruncatedGaussian(0.3, odd(None)), TypeError, "sd must be a finite"),
        (lambda: TruncatedGaussian(1e-12, 2.0), ValueError, "mean 1e-12 is too extr"),
        (lambda: TwoPoint(-0.1, 0.9, 0.5), ValueError, "low must be a number in"),
        (lambda: TwoPoint(0.1, 1.1, 0.5), ValueError, "high must be a number in"),
        (lambda: TwoPoint(0.9, 0.1, 0.5), ValueError, "high must be a number in"),
        (lambda: TwoPoint(0.1, 0.9, 1.5), ValueError, "weight must be a number in"),
        (lambda: TwoPoint(0.1, 0.9, -0.5), ValueError, "weight must be a number in"),
        (lambda: TwoPoint(0.1, 0.9, odd("x")), TypeError, "weight must be a number in"),
    ],
)
def test_impossible_populations_are_refused(
    make: Callable[[], Any], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        make()


@pytest.mark.parametrize("meta", POPULATIONS, ids=repr)
def test_populations_cannot_be_changed(meta: Any) -> None:
    field = dataclasses.fields(meta)[0].name
    with pytest.raises(dataclasses.FrozenInstanceError):
        setattr(meta, field, 0.5)
