"""Uncertainties: identities, what they allow for, and no way to fail.

Monte Carlo.  Each of fewer than 80 counts has a false alarm of at most 1e-9 (exact
binomial tails): together below 8e-8.  Three more are of 20 runs that all fail where
clipping is not allowed for: below 1e-9 as well.
"""

from __future__ import annotations

import bisect
import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from hetlit import (
    Beta,
    Estimate,
    TwoPoint,
    Users,
    baselines,
    estimate_ideal,
    estimate_nonprivate,
    estimate_nonprivate_ideal,
    estimate_private_k,
    estimate_public_size,
    sample_users,
    sizes,
    user_variance,
)
from hetlit.estimators.uncertainty import (
    FALSE_ALARM,
    Clipped,
    Uncertainty,
    guessed_q,
    of_plain_mean,
    of_weighted_mean,
    within,
)
from hetlit.theory import errors
from hetlit.theory.populations import MetaDistribution

UNIT = st.floats(0.0, 1.0)
LEVELS = st.floats(0.01, 0.999)
SURE = Uncertainty(noise=0.01, sampling=0.02)
TEST = Clipped(moved=0.0025, noise=0.002)


# p(1-p), guessed


@given(st.floats(-2.0, 3.0), st.floats(0.0, 2.0))
def test_the_guess_of_q_is_the_largest_within_the_error(
    value: float, error: float
) -> None:
    near = np.clip(within(value) + error * np.linspace(-1.0, 1.0, 2001), 0.0, 1.0)
    largest = float(np.max(near * (1.0 - near)))
    assert guessed_q(value, error) >= largest - 1e-12
    assert guessed_q(value, error) <= largest + error**2 / 1000.0**2 + 1e-12


@given(UNIT, st.floats(0.0, 0.5))
def test_a_one_means_as_much_as_a_zero(value: float, error: float) -> None:
    assert guessed_q(value, error) == pytest.approx(
        guessed_q(1.0 - value, error), abs=1e-15
    )


# Sampling errors


def test_the_sampling_error_of_a_weighted_mean_is_that_of_its_users() -> None:
    k, counts = np.array([1.0, 4.0, 50.0]), np.array([200, 80, 20])
    weights = np.array([0.001, 0.005, 0.02])
    sure = of_weighted_mean(0.5, k, counts, weights, 0.01, 0.003)
    variance = float(np.sum(counts * weights**2 * user_variance(k, 0.5, 0.01)))
    assert sure.sampling**2 == pytest.approx(variance)
    assert sure == Uncertainty(noise=0.003, sampling=sure.sampling)


@pytest.mark.parametrize("spread", [0.25, 0.3, math.inf])
def test_no_rates_vary_more_than_single_samples(spread: float) -> None:
    counts, weights = np.array([200, 80, 20]), np.array([0.001, 0.005, 0.02])
    expected = 0.25 * float(np.sum(counts * weights**2))
    for k in (np.ones(3), np.array([1.0, 9.0, 1e6])):
        sure = of_weighted_mean(0.5, k, counts, weights, spread, 0.0)
        assert sure.sampling**2 == pytest.approx(expected)


@given(UNIT, st.integers(1, 2**40), st.floats(0.0, 1.0))
def test_a_plain_mean_is_a_weighted_one_of_users_with_one_sample(
    value: float, users: int, noise: float
) -> None:
    one = np.ones(1)
    as_weighted = of_weighted_mean(value, one, users * one, one / users, 0.0, noise)
    sure = of_plain_mean(value, users, noise)
    assert sure.noise == as_weighted.noise
    assert sure.sampling == pytest.approx(as_weighted.sampling, rel=1e-9)


def test_the_value_itself_may_be_off_by_its_error() -> None:
    # 4 users: the error is 1/4 at most, and 0.1 + 0.25 = 0.35.
    assert of_plain_mean(0.1, 4, 0.0).sampling ** 2 == pytest.approx(0.35 * 0.65 / 4)
    one = np.ones(1)
    same = of_weighted_mean(0.1, one, 4 * one, one / 4, math.inf, 0.0)
    assert same.sampling**2 == pytest.approx(0.35 * 0.65 / 4)


# What it comes to


def test_the_standard_error_adds_up_variances() -> None:
    assert SURE.standard_error**2 == pytest.approx(2.0 * 0.01**2 + 0.02**2)
    more = replace(SURE, dependence=0.05).standard_error
    assert more**2 == pytest.approx(2.0 * 0.01**2 + 0.02**2 + 0.05**2)


@given(LEVELS)
def test_where_nobody_is_clipped_the_half_width_is_that_of_noise_and_samples(
    level: float,
) -> None:
    expected = errors.half_width(level, 0.01, 0.02)
    assert SURE.half_width(level) == expected
    assert SURE.half_width(level, clipping=False) == expected


@given(LEVELS)
def test_a_half_width_without_clipping_allows_for_none(level: float) -> None:
    expected = errors.half_width(level, 0.01, 0.02)
    for hidden in ({"clipped": TEST}, {"first": SURE, "gap": 0.3}):
        sure = replace(SURE, **hidden)
        assert sure.half_width(level, clipping=False) == expected
        assert sure.half_width(level) > expected


def test_a_dependence_is_allowed_for_on_request() -> None:
    sure = replace(SURE, dependence=0.05)
    assert sure.half_width(0.9) == SURE.half_width(0.9)
    expected = errors.half_width(0.9, 0.01, math.hypot(0.02, 0.05))
    assert sure.half_width(0.9, sizes=True) == expected


def test_where_nothing_would_have_noticed_a_dependence_nothing_is_said() -> None:
    assert SURE.half_width(0.5, sizes=True) == math.inf
    unbiased = replace(SURE, dependence=0.0)
    assert unbiased.half_width(0.5, sizes=True) == SURE.half_width(0.5)


# What clipping may hide


@given(LEVELS, UNIT)
def test_a_certain_bound_is_added(level: float, moved: float) -> None:
    sure = replace(SURE, clipped=Clipped(moved=moved))
    expected = SURE.half_width(level) + moved
    assert sure.half_width(level) == pytest.approx(expected, rel=1e-9)


@given(LEVELS, st.floats(-1.0, 0.0))
def test_a_bound_below_0_says_that_nothing_was_moved(
    level: float, moved: float
) -> None:
    none, less = (
        replace(SURE, clipped=replace(TEST, moved=bound)) for bound in (0.0, moved)
    )
    assert less.half_width(level) == none.half_width(level)
    assert none.half_width(level) >= SURE.half_width(level)


@pytest.mark.parametrize("noise", [0.0, 0.5, 2.0])
@pytest.mark.parametrize("moved", [0.0, 1.0, 20.0])
@pytest.mark.parametrize("level", [0.8, 0.95])
def test_clipping_is_allowed_for_as_far_as_a_noisy_bound_can_hide_it(
    noise: float, moved: float, level: float
) -> None:
    rng, runs = np.random.default_rng(0), 200_000
    gaussian = rng.normal(0.0, 1.0, runs) + rng.laplace(0.0, 1.0, runs)
    bounds, missed = moved + rng.laplace(0.0, noise, runs), 0
    none = Uncertainty(noise=1.0, sampling=1.0, clipped=Clipped(moved=0.0, noise=noise))
    widths = none.half_width(level) + np.maximum(bounds, 0.0)
    missed = int(np.sum(np.abs(gaussian + moved) > widths))
    # A Gaussian stands for the lesser of two Laplace noises.
    assert stats.binom(runs, 1.1 * (1.0 - level)).cdf(missed) < 1.0 - 1e-9


def test_a_first_mean_tells_how_far_off_clipping_can_be() -> None:
    first = Uncertainty(noise=0.02, sampling=0.03)
    sure = replace(SURE, first=first, gap=0.1)
    assert sure.half_width(0.9) == 0.1 + first.half_width(0.9)
    # The shorter of two ways to know.
    for moved in (0.01, 9.0):
        known = replace(SURE, clipped=Clipped(moved=moved))
        both = replace(sure, clipped=known.clipped)
        assert both.half_width(0.9) == min(known.half_width(0.9), sure.half_width(0.9))


# Warnings


def test_a_warning_says_how_far_the_value_is_from_the_first_mean() -> None:
    first = Uncertainty(noise=0.02, sampling=0.03)
    edge = errors.half_width(
        1.0 - FALSE_ALARM, 0.02, math.sqrt(2 * 0.01**2 + 0.02**2 + 0.03**2)
    )
    sure = replace(SURE, first=first)
    assert SURE.warnings == replace(SURE, gap=0.9).warnings == ()
    assert replace(sure, gap=0.999 * edge).warnings == ()
    (warning,) = replace(sure, gap=1.001 * edge).warnings
    assert f"differ by {edge:.2g}" in warning
    assert 'method="plain"' in warning


@pytest.mark.parametrize("noise", [0.0, 1.0, 4.0])
@pytest.mark.parametrize("sampling", [0.1, 1.0, 4.0])
def test_in_the_model_few_warnings_are_false(noise: float, sampling: float) -> None:
    # The noise of the value and its samples, beside those of the first mean: 1 and 1.
    rng, runs = np.random.default_rng(0), 100_000
    gaps = rng.laplace(0.0, noise, runs) - rng.laplace(0.0, 1.0, runs)
    gaps += rng.normal(0.0, math.hypot(sampling, 1.0), runs)
    first = Uncertainty(noise=1.0, sampling=1.0)
    sure = Uncertainty(noise=noise, sampling=sampling, first=first)
    gaps = np.sort(np.abs(gaps))
    false = runs - bisect.bisect_left(
        gaps, True, key=lambda gap: bool(replace(sure, gap=float(gap)).warnings)
    )
    assert stats.binom(runs, 0.01).cdf(false) < 1.0 - 1e-9


# All budgets, all users


@pytest.mark.parametrize("noise", [0.0, 1e-24, 1e-12, 1.0, 1e12])
@pytest.mark.parametrize("users", [1, 2**40])
@pytest.mark.parametrize("level", [1e-300, 1e-16, 0.95, 1.0 - 2**-53])
def test_nothing_is_too_extreme(noise: float, users: int, level: float) -> None:
    for value in (-1e12, 0.0, 0.3, 1.0, 1e12):
        one = np.ones(1)
        for sure in (
            of_plain_mean(value, users, noise),
            of_weighted_mean(value, one, users * one, one / users, 0.0, noise),
            of_plain_mean(value, users, noise, clipped=replace(TEST, noise=1e12)),
            of_plain_mean(value, users, noise, first=SURE, gap=1.0),
        ):
            for width in (sure.half_width(level), sure.standard_error):
                assert math.isfinite(width)
                assert width >= 0.0


# Coverage

Estimator = Callable[[Users, MetaDistribution, np.random.Generator], Estimate]
K_MAX, EPSILON, RUNS = 400, 3.0, 200


def public(method: str) -> Estimator:
    return lambda users, _, rng: estimate_public_size(
        users, EPSILON, method=method, rng=rng
    )


def private(method: str, **options: Any) -> Estimator:
    return lambda users, _, rng: estimate_private_k(
        users, EPSILON, k_max=K_MAX, method=method, rng=rng, **options
    )


def baseline(name: str, **options: Any) -> Estimator:
    return lambda users, _, rng: getattr(baselines, name)(
        users, EPSILON, rng=rng, **options
    )


ESTIMATORS: dict[str, Estimator] = {
    "public auto": public("auto"),
    "cohorts": public("cohorts"),
    "public paper": public("paper"),
    "plain": public("plain"),
    "ideal": lambda users, meta, rng: estimate_ideal(
        users, meta.mean, meta.variance, EPSILON, rng=rng
    ),
    "private auto": private("auto"),
    "ratio": private("ratio"),
    "ptr": private("ptr", delta=1e-6),
    "private paper": private("paper", delta=1e-6),
    "private paper, median": private("paper", delta=1e-6, variance="median"),
    "private plain": private("plain"),
    "user mean": baseline("user_mean"),
    "pooled mean": baseline("pooled_mean"),
    "median truncation": baseline("median_truncation"),
    "bounding": baseline("contribution_bounding", cap=5),
    "bounding, split": baseline("contribution_bounding", cap=40, count_share=0.5),
    "bounding, private": baseline("contribution_bounding", cap="private", k_max=K_MAX),
    "huber": baseline("huber"),
    "without privacy": lambda users, _, rng: estimate_nonprivate(users, rng=rng),
    "without privacy, ideal": lambda users, meta, _: estimate_nonprivate_ideal(
        users, meta.mean, meta.variance
    ),
}
POPULATIONS: dict[str, MetaDistribution] = {
    "light": Beta(0.3, 0.02**2),
    "minority": TwoPoint(0.1, 0.9, 0.05),
}


@pytest.mark.slow
@pytest.mark.parametrize("population", POPULATIONS)
@pytest.mark.parametrize("name", ESTIMATORS)
def test_an_interval_holds_the_mean_as_often_as_it_says(
    name: str, population: str
) -> None:
    meta, rng = POPULATIONS[population], np.random.default_rng(0)
    k = np.minimum(sizes.geometric(2000, 50.0, rng), K_MAX)
    held = 0
    for _ in range(RUNS):
        estimate = ESTIMATORS[name](sample_users(meta, k, rng), meta, rng)
        low, high = estimate.interval(0.95)
        held += low <= meta.mean <= high
    assert stats.binom(RUNS, 0.93).cdf(held) > 1e-9


@pytest.mark.slow
@pytest.mark.parametrize("name", ["cohorts", "ratio", "huber"])
def test_an_interval_that_does_not_allow_for_clipping_misses_a_minority(
    name: str,
) -> None:
    meta, rng = POPULATIONS["minority"], np.random.default_rng(0)
    k = np.minimum(sizes.geometric(2000, 50.0, rng), K_MAX)
    held = 0
    for _ in range(20):
        estimate = ESTIMATORS[name](sample_users(meta, k, rng), meta, rng)
        low, high = estimate.interval(0.95, clipping=False)
        held += low <= meta.mean <= high
    assert held < 10
