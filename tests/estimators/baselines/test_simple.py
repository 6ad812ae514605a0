"""Simple baselines: exact sensitivities, exact laws, the stated noise.

Sensitivities are checked exactly, over all neighbouring pairs of small tables; where
a user's samples are drawn at random, on the exact law of the noiseless value,
computed from all choices of samples.

Monte Carlo.  For a random seed a true comparison fails with a chance of at most
2e-11 (a count of one outcome, exact binomial tails) or 1e-9 (a Kolmogorov-Smirnov
test).  There are about 60 and 3: together below 5e-9.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from hetlit import Users, user_variance
from hetlit.estimators.baselines import (
    median_truncation,
    pooled_mean,
    user_mean,
)
from hetlit.estimators.uncertainty import of_plain_mean
from hetlit.privacy.ledger import PUBLIC_SIZES
from tests.neighbours import SMALL, kinds, table
from tests.quiet import Quiet, generator, trace_of


def samples_of(size_list: tuple[int, ...]) -> Iterator[tuple[tuple[int, int], ...]]:
    """All tables of users with these sizes."""
    for ones in itertools.product(*(range(k + 1) for k in size_list)):
        yield tuple(zip(size_list, ones, strict=True))


# Mean of user means


def test_the_user_mean_moves_by_at_most_1_over_n_even_if_sizes_change() -> None:
    # Everything but one user is common to neighbours.
    largest = 0.0
    for others in itertools.combinations_with_replacement(kinds(3), 2):
        values = []
        for user in kinds(4):
            trace = trace_of(user_mean, table((*others, user)))
            assert trace.sensitivity == pytest.approx(1 / 3, abs=1e-15)
            values.append(trace.noiseless)
        largest = max(largest, max(values) - min(values))
        assert max(values) - min(values) <= 1 / 3 + 1e-15
    assert largest == pytest.approx(1 / 3, abs=1e-15)


def two_point_law(k: int) -> list[float]:
    """The law of a user's successes with a rate of 0.2 (3 in 4) or 0.8 (1 in 4)."""
    ones = np.arange(k + 1)
    law = 0.75 * stats.binom.pmf(ones, k, 0.2) + 0.25 * stats.binom.pmf(ones, k, 0.8)
    return list(law)


@pytest.mark.parametrize("estimator", [user_mean, pooled_mean])
@pytest.mark.parametrize("size_list", [(1,), (3, 3), (1, 2, 5), (4, 1, 1)])
def test_mean_and_variance_are_the_exact_ones(
    estimator: Callable[..., Any], size_list: tuple[int, ...]
) -> None:
    p, var_p, epsilon = 0.35, 0.0675, 0.7
    mean = square = 0.0
    for users in samples_of(size_list):
        chance = math.prod(two_point_law(k)[ones] for k, ones in users)
        trace = trace_of(estimator, table(users), epsilon)
        mean += chance * trace.noiseless
        square += chance * trace.noiseless**2
    assert mean == pytest.approx(p, abs=1e-12)

    k = np.array(size_list)
    weights = np.ones(len(k)) / len(k) if estimator is user_mean else k / k.sum()
    np.testing.assert_allclose(trace.weights, weights, rtol=1e-14)
    sampling = float(np.sum(weights**2 * user_variance(k, p, var_p)))
    assert square - mean**2 == pytest.approx(sampling, abs=1e-12)
    assert trace.noise_scale == pytest.approx(max(weights) / epsilon, rel=1e-12)


@pytest.mark.parametrize("estimator", [user_mean, pooled_mean, median_truncation])
def test_the_noise_is_laplace_of_the_stated_scale(
    estimator: Callable[..., Any],
) -> None:
    rng = generator(1)
    # So many users that hardly any value is moved into [0, 1].
    users = Users([4, 4], [1, 3], [50, 50])
    if estimator is median_truncation:
        users = Users([4], [2], [99])
    scale = trace_of(estimator, users, 0.5).noise_scale
    middle = trace_of(estimator, users, 0.5).noiseless
    values = [estimator(users, 0.5, rng=rng).value - middle for _ in range(2000)]
    assert stats.kstest(values, stats.laplace(scale=scale).cdf).pvalue > 1e-9


# Pooled mean


@pytest.mark.parametrize("size_list", [(1,), (1, 1), (1, 2, 4), (3, 3, 2)])
def test_the_pooled_mean_moves_by_at_most_the_largest_share(
    size_list: tuple[int, ...],
) -> None:
    largest = 0.0
    for users in samples_of(size_list):
        trace = trace_of(pooled_mean, table(users))
        assert trace.sensitivity == pytest.approx(max(size_list) / sum(size_list))
        for i, (k, _) in enumerate(users):
            for ones in range(k + 1):
                other = table((*users[:i], (k, ones), *users[i + 1 :]))
                moved = abs(trace_of(pooled_mean, other).noiseless - trace.noiseless)
                largest = max(largest, moved)
                assert moved <= trace.sensitivity + 1e-15
    assert largest == pytest.approx(trace.sensitivity, abs=1e-15)


def test_the_pooled_mean_does_not_protect_sizes() -> None:
    one = trace_of(pooled_mean, Users([1, 1, 1], [0, 0, 0]))
    other = trace_of(pooled_mean, Users([1, 1, 100], [0, 0, 100]))
    assert abs(one.noiseless - other.noiseless) > 2 * one.sensitivity
    estimate = pooled_mean(SMALL, 1.0, rng=generator())
    assert estimate.ledger.neighbours == PUBLIC_SIZES


# Median truncation


Law = dict[Fraction, Fraction]


def truncation_law(users: tuple[tuple[int, int], ...]) -> Law:
    """The exact law of the noiseless value, from all choices of users and samples."""
    half = (len(users) + 1) // 2
    ordered = sorted((k for k, _ in users), reverse=True)
    size = ordered[half - 1]
    above = [user for user in users if user[0] > size]
    tied = [user for user in users if user[0] == size]
    laws = []
    for rest in itertools.combinations(tied, half - len(above)):
        law: Law = {Fraction(0): Fraction(1)}
        for k, ones in (*above, *rest):
            bits = [1] * ones + [0] * (k - ones)
            given = [Fraction(sum(s), size) for s in itertools.combinations(bits, size)]
            step: Law = {}
            for value, chance in law.items():
                for mean in given:
                    place = value + mean / half
                    step[place] = step.get(place, Fraction(0)) + chance / len(given)
            law = step
        laws.append(law)
    total: Law = {}
    for law in laws:
        for value, chance in law.items():
            total[value] = total.get(value, Fraction(0)) + chance / len(laws)
    assert sum(total.values()) == 1
    return total


def farthest_move(one: Law, other: Law) -> Fraction:
    """The least bound on how far values must move to turn one law into the other."""
    heights = sorted(set(itertools.accumulate(one[v] for v in sorted(one)))) + sorted(
        set(itertools.accumulate(other[v] for v in sorted(other)))
    )

    def quantile(law: Law, height: Fraction) -> Fraction:
        for value, below in zip(
            sorted(law), itertools.accumulate(law[v] for v in sorted(law)), strict=True
        ):
            if below >= height:
                return value
        raise AssertionError

    return max(abs(quantile(one, h) - quantile(other, h)) for h in heights)


@pytest.mark.parametrize("size_list", [(1,), (2, 1), (3, 2, 1), (3, 2, 2), (2, 2, 2)])
def test_median_truncation_moves_by_at_most_1_over_the_upper_half(
    size_list: tuple[int, ...],
) -> None:
    half = (len(size_list) + 1) // 2
    largest = Fraction(0)
    for users in samples_of(size_list):
        law = truncation_law(users)
        for i, (k, _) in enumerate(users):
            for ones in range(k + 1):
                other = truncation_law((*users[:i], (k, ones), *users[i + 1 :]))
                largest = max(largest, farthest_move(law, other))
    assert largest == Fraction(1, half)
    trace = trace_of(median_truncation, table(users), 2.0)
    assert trace.sensitivity == pytest.approx(1 / half, abs=1e-15)
    assert trace.noise_scale == pytest.approx(0.5 / half, abs=1e-15)


@pytest.mark.parametrize(
    "users",
    [
        ((3, 1), (2, 1), (1, 1)),
        ((5, 2), (4, 4), (2, 0), (2, 1), (2, 2)),
        ((3, 3), (3, 0), (3, 1), (3, 2)),
        ((4, 3), (4, 1), (1, 0), (1, 1), (1, 1), (1, 0)),
    ],
)
@pytest.mark.parametrize("shuffled", [False, True])
def test_median_truncation_has_its_exact_law(
    users: tuple[tuple[int, int], ...], shuffled: bool
) -> None:
    rng, draws = Quiet(2), 1200
    law = truncation_law(users)
    data = table(users[::-1]) if shuffled else table(users).compressed()
    values = [median_truncation(data, 1.0, rng=rng).value for _ in range(draws)]
    for value, chance in law.items():
        count = sum(abs(v - float(value)) < 1e-12 for v in values)
        low = stats.binom.cdf(count, draws, float(chance))
        high = stats.binom.sf(count - 1, draws, float(chance))
        assert min(low, high) >= 1e-11
    places = np.array([float(value) for value in law])
    assert max(np.abs(places - v).min() for v in values) < 1e-12


@pytest.mark.slow
@given(st.lists(st.sampled_from(kinds(6)), min_size=1, max_size=15))
def test_median_truncation_uses_the_upper_half_and_the_median_size(users: Any) -> None:
    trace = trace_of(median_truncation, table(users))
    ordered = sorted((k for k, _ in users), reverse=True)
    half = (len(users) + 1) // 2
    assert trace.size == ordered[half - 1]
    chosen = trace.cohorts["upper half"].expanded()
    assert sorted(chosen.k, reverse=True) == ordered[:half]
    # A whole number of ones among the samples used.
    ones = trace.noiseless * half * trace.size
    assert ones == pytest.approx(round(ones), abs=1e-9)


def test_users_of_one_size_give_all_their_samples() -> None:
    users = Users([4, 4, 4], [3, 3, 3])
    assert trace_of(median_truncation, users).noiseless == 0.75


def test_median_truncation_costs_the_left_out_users_nothing() -> None:
    ledger = median_truncation(SMALL, 1.0, rng=generator()).ledger
    assert ledger.spent_on("upper half") == (1.0, 0.0)
    assert ledger.spent_on("left out") == (0.0, 0.0)
    assert [cohort.users for cohort in ledger.cohorts] == [50, 50]


def test_median_truncation_of_the_papers_example_ignores_the_heavy_users() -> None:
    # sqrt(n) users hold n samples, the others one; the median is 1.
    users = Users([10_000, 1], [5000, 1], [100, 9900])
    trace = trace_of(median_truncation, users)
    assert trace.size == 1
    assert trace.cohorts["upper half"].n == 5000


# How sure they are


def test_the_pooled_mean_varies_most_if_all_samples_of_a_user_are_alike() -> None:
    users = Users([1, 9], [0, 9], [50, 50])
    estimate = pooled_mean(users, 2.0, rng=Quiet(), trace=True)
    sure = estimate.uncertainty
    assert sure is not None
    shares = users.k / 500
    error = np.sqrt(np.sum(users.counts * shares**2)) / 2
    error = math.hypot(error, math.sqrt(2) * sure.noise)
    p = 0.9 - error
    squares = float(np.sum(users.counts * shares**2))
    assert sure.noise == estimate.trace.noise_scale
    assert sure.sampling**2 == pytest.approx(p * (1 - p) * squares)
    assert (sure.clipped, sure.first, sure.dependence) == (None, None, None)


def test_median_truncation_is_as_sure_as_half_of_the_users_can_be() -> None:
    estimate = median_truncation(SMALL, 2.0, rng=Quiet())
    assert estimate.uncertainty == of_plain_mean(estimate.value, 50, 1 / (50 * 2.0))
