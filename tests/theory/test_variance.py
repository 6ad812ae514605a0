"""The variance of a user's mean: known values, the lemma, and its bounds."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hetlit.theory.variance import plain_variance, user_variance

FACTS = {1: 0.21, 2: 0.115, 5: 0.058, 10: 0.039, 100: 0.0219, 1000: 0.02019}


@pytest.mark.parametrize("k", FACTS)
def test_user_variance_has_the_known_values(k: int) -> None:
    assert user_variance(k, 0.3, 0.02) == pytest.approx(FACTS[k], rel=1e-14)


def test_the_variance_of_the_plain_mean_is_sampling_plus_noise() -> None:
    # Nine coins and one user of four samples, p = 1/2, rates apart by 1/4.
    k, counts = np.array([1.0, 4.0]), np.array([9, 1])
    sampling = (9 * 0.25 + 0.0625 + (0.25 - 0.0625) / 4) / 10**2
    value = plain_variance(k, counts, 0.25, 0.0625, 10, 0.5)
    assert value == pytest.approx(sampling + 2 / (10 * 0.5) ** 2, rel=1e-14)


def test_user_variance_of_an_array_is_an_array() -> None:
    variances = user_variance(np.array(list(FACTS)), 0.3, 0.02)
    assert variances.shape == (6,)
    assert variances == pytest.approx(list(FACTS.values()), rel=1e-14)
    assert isinstance(user_variance(3, 0.3, 0.02), float)


means = st.floats(0, 1)
shares = st.floats(0, 1)
whole_sizes = st.integers(1, 10**9)


@given(k=whole_sizes, p=means, share=shares)
def test_user_variance_is_within_twice_the_larger_part(
    k: int, p: float, share: float
) -> None:
    top = p * (1 - p)
    variance = user_variance(k, p, share * top)
    larger = max(top / k, share * top)
    assert larger * (1 - 1e-15) <= variance <= 2 * larger * (1 + 1e-15)


@pytest.mark.slow
@given(k=whole_sizes, p=st.fractions(0, 1), share=st.fractions(0, 1))
def test_user_variance_is_the_lemma(k: int, p: Fraction, share: Fraction) -> None:
    top = p * (1 - p)
    exact = top / k + (1 - Fraction(1, k)) * share * top
    computed = user_variance(k, float(p), min(float(share * top), float(top)))
    assert computed == pytest.approx(float(exact), rel=1e-9, abs=1e-15)


@given(k=whole_sizes, p=means)
def test_user_variance_is_exact_when_rates_are_zero_or_one(k: int, p: float) -> None:
    assert user_variance(k, p, p * (1 - p)) == p * (1 - p)


@given(p=means, share=shares)
def test_user_variance_of_one_sample_is_that_of_a_coin(p: float, share: float) -> None:
    top = p * (1 - p)
    assert user_variance(1, p, share * top) == pytest.approx(top, rel=1e-15)


@given(p=means, share=shares)
def test_user_variance_falls_with_more_samples(p: float, share: float) -> None:
    variances = user_variance(np.arange(1, 50), p, share * p * (1 - p))
    assert (np.diff(variances) <= 1e-16).all()


@pytest.mark.parametrize(
    ("k", "p", "var_p", "error", "message"),
    [
        (0, 0.3, 0.02, ValueError, "k must be .*at least 1"),
        (0.5, 0.3, 0.02, ValueError, "k must be .*at least 1"),
        ([3, -1], 0.3, 0.02, ValueError, "k must be .*at least 1"),
        ([3, math.nan], 0.3, 0.02, ValueError, "k must be finite"),
        (math.inf, 0.3, 0.02, ValueError, "k must be finite"),
        ("3", 0.3, 0.02, TypeError, "k must"),
        (["3"], 0.3, 0.02, TypeError, "k must"),
        (None, 0.3, 0.02, TypeError, "k must"),
        (1, -0.1, 0.02, ValueError, r"p must be a number in \[0, 1\], not -0.1"),
        (1, 1.1, 0.02, ValueError, r"p must be a number in \[0, 1\], not 1.1"),
        (1, math.nan, 0.02, ValueError, "p must be a number"),
        (1, math.inf, 0.02, ValueError, "p must be a number"),
        pytest.param(1, 10**400, 0.02, ValueError, "p must be a number", id="10**400"),
        (1, "0.3", 0.02, TypeError, "p must be a number"),
        (1, True, 0.02, TypeError, "p must be a number"),
        (1, None, 0.02, TypeError, "p must be a number"),
        (1, 0.3, -0.01, ValueError, r"var_p must be in \[0, p\(1-p\)\]"),
        (1, 0.3, 0.2101, ValueError, r"var_p must be in \[0, p\(1-p\)\].*0.2101"),
        (1, 0.3, math.nan, ValueError, "var_p must be a number"),
        (1, 0.3, math.inf, ValueError, "var_p must be a number"),
        (1, 0.3, "0", TypeError, "var_p must be a number"),
        (1, 0.0, 1e-9, ValueError, "var_p must be in"),
    ],
)
def test_bad_arguments_of_user_variance_are_refused(
    k: Any, p: Any, var_p: Any, error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        user_variance(k, p, var_p)
