"""Populations take numbers of every type, and refuse what is none."""

import dataclasses
import math
from fractions import Fraction

import numpy as np
import pytest

from hetlit.theory.populations import Beta, Constant, TruncatedGaussian, TwoPoint
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
