"""Baselines: exact sensitivities, exact laws, honest ledgers.

Sensitivities and privacy are checked exactly, over all neighbouring pairs of small
tables; where a user's samples are drawn at random, on the exact law of the noiseless
value, computed from all choices of samples.

Monte Carlo.  For a random seed a true comparison fails with a chance of at most
2e-11 (a count of one outcome, exact binomial tails), 1e-10 (a mean within 6.5
standard errors), 6e-9 (a variance within 6.5, allowing for skewness) or 1e-9 (a
Kolmogorov-Smirnov test).  There are about 60, 2, 2 and 3: together below 2e-8.
"""

from __future__ import annotations

import functools
import inspect
import itertools
import math
import time
from collections.abc import Callable, Iterator
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from hetlit import Users, baselines, sizes, user_variance
from hetlit.estimators.baselines import (
    contribution_bounding,
    median_truncation,
    pooled_mean,
    user_mean,
)
from hetlit.estimators.baselines.bounding import cap_utilities
from hetlit.estimators.baselines.huber import huber
from hetlit.privacy.ledger import PUBLIC_SIZES
from hetlit.privacy.noise import SecureNoiseUnavailable
from hetlit.privacy.selection import exponential_probabilities
from hetlit.users.groups import by_size
from tests.transcripts import Transcript

ALL: dict[str, Callable[..., Any]] = {
    "user_mean": user_mean,
    "pooled_mean": pooled_mean,
    "median_truncation": median_truncation,
    "fixed cap": functools.partial(contribution_bounding, cap=5),
    "library split": functools.partial(contribution_bounding, cap=5, count_share=0.5),
    "private cap": functools.partial(contribution_bounding, cap="private", k_max=50),
    "huber": huber,
}
every = pytest.mark.parametrize("estimator", ALL.values(), ids=ALL.keys())
SMALL = Users([1, 3, 8, 20], [1, 1, 5, 9], [40, 30, 20, 10])


class Quiet(np.random.Generator):
    """Adds no noise and keeps the scales it was asked for."""

    def __init__(self, seed: int = 0) -> None:
        super().__init__(np.random.PCG64(seed))
        self.scales: list[float] = []

    def laplace(self, loc: Any = 0.0, scale: Any = 1.0, size: Any = None) -> Any:
        self.scales.append(scale)
        return loc


def generator(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


def kinds(largest: int) -> list[tuple[int, int]]:
    """All (k, successes) of a user with up to `largest` samples."""
    return [(k, ones) for k in range(1, largest + 1) for ones in range(k + 1)]


def table(users: Any) -> Users:
    k, ones = zip(*users, strict=True)
    return Users(k, ones)


def samples_of(size_list: tuple[int, ...]) -> Iterator[tuple[tuple[int, int], ...]]:
    """All tables of users with these sizes."""
    for ones in itertools.product(*(range(k + 1) for k in size_list)):
        yield tuple(zip(size_list, ones, strict=True))


def trace_of(estimator: Callable[..., Any], users: Users, epsilon: float = 1.0) -> Any:
    return estimator(users, epsilon, rng=Quiet(), trace=True).trace


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
    users = Users([4, 4], [1, 3], [5, 5])
    if estimator is median_truncation:
        users = Users([4], [1], [9])
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


# Contribution bounding


def bounded(users: Any, cap: int, epsilon: float, **options: Any) -> Any:
    return contribution_bounding(
        table(users), epsilon, cap=cap, rng=Quiet(), trace=True, **options
    ).trace


@pytest.mark.parametrize("cap", [1, 2, 3, 5])
@pytest.mark.parametrize("count_share", [None, 0.5, 0.2])
def test_sum_and_count_cost_epsilon_for_every_neighbour(
    cap: int, count_share: float | None
) -> None:
    # A user with more than cap samples contributes what one with cap samples can.
    epsilon, others = 0.8, ((2, 1), (1, 0))
    traces = [
        bounded((*others, user), cap, epsilon, count_share=count_share)
        for user in kinds(cap)
    ]
    sums, counts = (
        np.array([t.ones - t.count / 2 for t in traces]),
        np.array([t.count for t in traces]),
    )
    by_sum = np.abs(sums[:, None] - sums)
    by_count = np.abs(counts[:, None] - counts)
    assert by_sum.max() == cap
    assert by_count.max() == cap - 1
    assert traces[0].sum_scale > 0
    # The log-ratio of the densities of the two noisy numbers is at most this.
    loss = by_sum / traces[0].sum_scale
    if traces[0].count_scale > 0:
        loss = loss + by_count / traces[0].count_scale
    else:
        assert by_count.max() == 0
    assert loss.max() <= epsilon + 1e-12
    if count_share is None:
        assert loss.max() == pytest.approx(epsilon, abs=1e-12)
        assert traces[0].sum_scale == pytest.approx(cap / epsilon)
    else:
        for_count = count_share * epsilon
        assert by_sum.max() / traces[0].sum_scale == pytest.approx(epsilon - for_count)
        if cap > 1:
            assert by_count.max() / traces[0].count_scale == pytest.approx(for_count)


@given(st.lists(st.sampled_from(kinds(9)), min_size=1, max_size=10), st.integers(1, 10))
def test_nobody_contributes_more_than_the_cap(users: Any, cap: int) -> None:
    trace = bounded(users, cap, 1.0)
    assert trace.count == sum(min(k, cap) for k, _ in users)
    least = sum(max(0, min(k, cap) - (k - ones)) for k, ones in users)
    most = sum(min(min(k, cap), ones) for k, ones in users)
    assert least <= trace.ones <= most


@pytest.mark.parametrize("count_share", [None, 0.5])
def test_a_large_cap_without_noise_gives_the_pooled_mean(
    count_share: float | None,
) -> None:
    for cap in (20, 21, 10**7):
        estimate = contribution_bounding(
            SMALL, 1.0, cap=cap, count_share=count_share, rng=Quiet()
        )
        pooled = trace_of(pooled_mean, SMALL).noiseless
        assert estimate.value == pytest.approx(pooled, abs=1e-14)


def test_a_cap_of_one_needs_no_noise_on_the_count() -> None:
    for count_share, scale in ((None, 0.5), (0.5, 1.0)):
        rng = Quiet()
        estimate = contribution_bounding(
            SMALL, 2.0, cap=1, count_share=count_share, rng=rng, trace=True
        )
        # The count is n, which is public: it is not asked for, and not in the ledger.
        assert rng.scales == [scale]
        assert [step.name for step in estimate.ledger.steps] == ["sum"]
        assert estimate.trace.count == SMALL.n
        assert estimate.trace.sum_scale == scale
        assert estimate.trace.count_scale == 0
        value = 0.5 + (estimate.trace.ones - SMALL.n / 2) / SMALL.n
        assert estimate.value == pytest.approx(value, abs=1e-15)


def test_a_private_cap_that_comes_out_as_one_releases_only_the_sum() -> None:
    estimate = contribution_bounding(
        SMALL, 2.0, cap="private", k_max=8, rng=Transcript([0, 3.5]), trace=True
    )
    assert estimate.trace.cap == 1
    assert [step.name for step in estimate.ledger.steps] == ["cap", "sum"]
    assert estimate.ledger.epsilon == pytest.approx(2.0, rel=1e-12)
    assert estimate.value == pytest.approx(0.5 + 3.5 / SMALL.n, rel=1e-12)


class Always(np.random.Generator):
    """Gives every user who is cut as many ones as she can give."""

    def __init__(self) -> None:
        super().__init__(np.random.PCG64(0))

    def hypergeometric(self, good: Any, bad: Any, number: Any, size: Any = None) -> Any:
        return np.minimum(good, number)


@pytest.mark.parametrize("count_share", [None, 0.3])
@pytest.mark.parametrize("cap", [1, 2, 3, "private"])
def test_whole_runs_of_contribution_bounding_lose_at_most_epsilon(
    cap: Any, count_share: float | None
) -> None:
    epsilon, others = 0.8, ((2, 1), (1, 0))
    options: dict[str, Any] = {"cap": cap, "count_share": count_share}
    choices: list[list[float]] = [[]]
    if cap == "private":
        options["k_max"], choices = 3, [[0], [1], [2]]
    largest = 0.0
    for choice in choices:
        for answers in itertools.product([-20.0, 0.3, 25.0], repeat=2):
            logs = []
            for user in kinds(4):
                source = Transcript([*choice, *answers], Always())
                users = table((*others, user))
                contribution_bounding(users, epsilon, rng=source, **options)
                logs.append(source.log_likelihood)
            largest = max(largest, max(logs) - min(logs))
    assert largest <= epsilon + 1e-12
    if count_share is None and cap != "private":
        assert largest == pytest.approx(epsilon, rel=1e-9)


def test_releasing_at_once_takes_half_the_noise_of_releasing_one_by_one() -> None:
    at_once = bounded([(9, 3)] * 4, 6, 1.0)
    one_by_one = bounded([(9, 3)] * 4, 6, 1.0, count_share=0.5)
    assert at_once.sum_scale == pytest.approx(one_by_one.sum_scale / 2)


class Loud(Quiet):
    """Adds so much to the sum and subtracts so much from the count that both drown."""

    def laplace(self, loc: Any = 0.0, scale: Any = 1.0, size: Any = None) -> Any:
        self.scales.append(scale)
        return loc - 1e9 * scale


def test_the_count_stays_within_public_bounds() -> None:
    rng = Loud()
    value = contribution_bounding(SMALL, 1.0, cap=4, rng=rng).value
    assert value == pytest.approx(0.5 - 1e9 * 4 / SMALL.n, rel=1e-6)


@pytest.mark.parametrize("count_share", [None, 0.5])
def test_contribution_bounding_is_centred_and_has_the_predicted_variance(
    count_share: float | None,
) -> None:
    rng, runs, cap, epsilon = generator(3), 4000, 6, 1.0
    users = Users([1, 4, 30], [0, 1, 12], [3000, 2000, 1000])
    values = np.array(
        [
            contribution_bounding(
                users, epsilon, cap=cap, count_share=count_share, rng=rng
            ).value
            for _ in range(runs)
        ]
    )
    contributed = users.counts * np.minimum(users.k, cap)
    count = contributed.sum()
    mean = float(contributed @ users.means / count)
    trace = bounded([(9, 3)], cap, epsilon, count_share=count_share)
    sampling = 1000 * stats.hypergeom(30, 12, cap).var()
    noise = 2 * trace.sum_scale**2 + 2 * ((mean - 0.5) * trace.count_scale) ** 2
    variance = (sampling + noise) / count**2
    # A ratio is biased by a relative variance of its denominator.
    bias = abs(mean - 0.5) * 2 * (trace.count_scale / count) ** 2
    assert abs(values.mean() - mean) <= 6.5 * math.sqrt(variance / runs) + 2 * bias
    # Fourth cumulant of Laplace noise: 12 scale^4; that of the draws is negligible.
    fourth = 12 * (trace.sum_scale**4 + ((mean - 0.5) * trace.count_scale) ** 4)
    error = math.sqrt((fourth / count**4 + 2 * variance**2) / runs)
    measured = float(np.mean((values - mean) ** 2))
    assert abs(measured - variance) <= 6.5 * error + 0.01 * variance


# A private cap


CAPS = np.array([1, 2, 4, 5])


@pytest.mark.parametrize("epsilon", [0.5, 3.0])
def test_the_private_cap_is_private_for_every_neighbour(epsilon: float) -> None:
    laws, utilities = {}, {}
    for k in itertools.combinations_with_replacement(range(1, 7), 3):
        known = by_size(Users(k, [0] * 3)).sizes
        utilities[k] = cap_utilities(known, CAPS, 0.9 * epsilon)
        laws[k] = np.log(exponential_probabilities(utilities[k], 0.1 * epsilon))
    farthest = loss = 0.0
    for k, other in itertools.combinations(laws, 2):
        if max(len(set_minus(k, other)), len(set_minus(other, k))) <= 1:
            moved = np.abs(utilities[k] - utilities[other]).max()
            farthest = max(farthest, moved)
            loss = max(loss, np.abs(laws[k] - laws[other]).max())
    assert farthest == 1
    assert loss <= 0.1 * epsilon + 1e-12


def set_minus(one: tuple[int, ...], other: tuple[int, ...]) -> list[int]:
    rest = list(one)
    for value in other:
        if value in rest:
            rest.remove(value)
    return rest


def test_cap_utilities_count_the_users_beyond_each_cap() -> None:
    known = by_size(Users([1, 2, 5, 9], [0] * 4, [100, 50, 20, 10])).sizes
    # 80, 30, 30, 20 users hold more; 16 cap / epsilon^2 is 4, 8, 16, 20.
    utilities = cap_utilities(known, CAPS, 2.0)
    np.testing.assert_allclose(utilities, [-76, -22, -14, 10 - 20], atol=1e-12)


def test_the_best_cap_is_close_to_the_least_variance() -> None:
    caps = 2 ** np.arange(12)
    for k in (
        sizes.harmonic(50_000),
        sizes.zipf(50_000, 1.5, 2000, generator()),
        sizes.geometric(50_000, 20, generator()),
        sizes.two_level(50_000, 200, 1000),
    ):
        known = by_size(Users(k, k)).sizes
        best = int(np.argmax(cap_utilities(known, caps, 1.0)))
        samples = np.array([np.minimum(k, cap).sum() for cap in caps])
        variances = 0.25 / samples + 2 * (caps / samples) ** 2
        assert variances[best] <= 1.25 * variances.min()


@pytest.mark.parametrize(
    ("k_max", "allowed"), [(1, {1}), (5, {1, 2, 4, 5}), (8, {1, 2, 4, 8})]
)
def test_the_caps_allowed_are_powers_of_two_and_k_max(
    k_max: int, allowed: set[int]
) -> None:
    # With hardly any budget for it, every cap is about equally likely.
    rng = generator(4)
    options: dict[str, Any] = {"cap": "private", "k_max": k_max, "cap_share": 1e-9}
    seen = {
        contribution_bounding(SMALL, 1.0, rng=rng, trace=True, **options).trace.cap
        for _ in range(150)  # one is missed with a chance below 4 (3/4)^150 < 1e-17
    }
    assert seen == allowed


def test_users_may_hold_more_than_k_max() -> None:
    users = Users([1000], [500], [10**6])
    estimate = contribution_bounding(
        users, 1.0, cap="private", k_max=64, rng=generator(), trace=True
    )
    assert estimate.trace.cap == 64
    assert estimate.value == pytest.approx(0.5, abs=0.01)


def test_a_private_cap_takes_its_share_of_the_budget() -> None:
    rng = Quiet()
    estimate = contribution_bounding(
        SMALL, 2.0, cap="private", k_max=8, cap_share=0.25, rng=rng, trace=True
    )
    assert [step.epsilon for step in estimate.ledger.steps] == [0.5, 1.5]
    assert rng.scales[0] == pytest.approx(estimate.trace.cap / 1.5)
    parts = contribution_bounding(
        SMALL, 2.0, cap="private", k_max=8, count_share=0.4, rng=rng
    ).ledger.steps
    assert [step.name for step in parts] == ["cap", "sum", "count"]
    assert [step.epsilon for step in parts] == pytest.approx([0.2, 1.08, 0.72])


# All of them


@every
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 7.3])
def test_the_ledger_adds_up_to_epsilon(
    estimator: Callable[..., Any], epsilon: float
) -> None:
    ledger = estimator(SMALL, epsilon, rng=generator()).ledger
    assert ledger.epsilon == pytest.approx(epsilon, rel=1e-12)
    assert ledger.delta == 0
    assert sum(cohort.users for cohort in ledger.cohorts) == SMALL.n


@pytest.mark.parametrize("name", ALL)
def test_ledger_and_docstring_name_the_same_neighbours(name: str) -> None:
    ledger = ALL[name](SMALL, 1.0, rng=generator()).ledger
    function = getattr(ALL[name], "func", ALL[name])
    words = " ".join(str(inspect.getdoc(function)).split())
    assert "Privacy: `epsilon` in total, delta 0" in words
    public = ledger.neighbours == PUBLIC_SIZES
    assert ("n and sizes are public" in words) == public
    assert ("replace one user, her size included; n is public" in words) != public


@every
def test_the_trace_is_there_on_request_only(estimator: Callable[..., Any]) -> None:
    quiet = estimator(SMALL, 1.0, rng=generator())
    with pytest.raises(AttributeError, match="trace=True"):
        _ = quiet.trace
    traced = estimator(SMALL, 1.0, rng=generator(), trace=True)
    assert traced.value == quiet.value
    assert "NOT PRIVATE" in repr(traced)
    assert 0 <= traced.trace.noiseless <= 1
    assert traced.trace.noise_scale > 0
    assert type(quiet.value) is float


@every
def test_much_budget_gives_nearly_the_noiseless_value(
    estimator: Callable[..., Any],
) -> None:
    estimate = estimator(SMALL, 1e7, rng=generator(), trace=True)
    assert estimate.value == pytest.approx(estimate.trace.noiseless, abs=1e-4)


@every
def test_a_billion_users_are_as_cheap_as_their_rows(
    estimator: Callable[..., Any],
) -> None:
    n = 250_000_000
    users = Users([1, 4, 40, 4000], [0, 2, 17, 1200], [n, n, n, n])
    start = time.process_time()
    value = estimator(users, 1.0, rng=generator()).value
    assert time.process_time() - start < 2
    assert 0 < value < 0.6


@every
def test_one_user_is_enough(estimator: Callable[..., Any]) -> None:
    estimate = estimator(Users([3], [2]), 50.0, rng=generator(), trace=True)
    assert math.isfinite(estimate.value)


@every
@pytest.mark.parametrize(
    ("epsilon", "error"),
    [
        (0, ValueError),
        (-1.0, ValueError),
        (math.inf, ValueError),
        (math.nan, ValueError),
        ("1", TypeError),
        (None, TypeError),
        (True, TypeError),
    ],
)
def test_impossible_budgets_are_refused(
    estimator: Callable[..., Any], epsilon: Any, error: type[Exception]
) -> None:
    with pytest.raises(error, match=r"^epsilon must be"):
        estimator(SMALL, epsilon, rng=generator())


@every
@pytest.mark.parametrize("users", [None, [[0, 1]], np.ones(3), "users"])
def test_anything_but_users_is_refused(
    estimator: Callable[..., Any], users: Any
) -> None:
    with pytest.raises(TypeError, match=r"^users must be a hetlit\.Users"):
        estimator(users, 1.0, rng=generator())


@every
def test_secure_noise_is_asked_for_without_rng(estimator: Callable[..., Any]) -> None:
    with pytest.raises(SecureNoiseUnavailable, match="rng"):
        estimator(SMALL, 1.0)


@every
@pytest.mark.parametrize("rng", [0, np.random.RandomState(0), "rng"])
def test_only_generators_make_noise(estimator: Callable[..., Any], rng: Any) -> None:
    with pytest.raises(TypeError, match=r"^rng must be"):
        estimator(SMALL, 1.0, rng=rng)


def test_no_users_at_all_are_refused() -> None:
    with pytest.raises(ValueError, match="empty"):
        Users([], [])


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"cap": 0}, ValueError, "cap must be"),
        ({"cap": -3}, ValueError, "cap must be"),
        ({"cap": 2.0}, TypeError, "cap must be"),
        ({"cap": 2.5}, TypeError, "cap must be"),
        ({"cap": None}, TypeError, "cap must be"),
        ({"cap": True}, TypeError, "cap must be"),
        ({"cap": 10**7 + 1}, ValueError, "cap must be at most 10000000"),
        ({"cap": 2**63}, ValueError, "cap must be"),
        ({"cap": "median"}, ValueError, "cap must be one of"),
        ({"cap": "private"}, TypeError, "k_max is needed"),
        ({"cap": "private", "k_max": 0}, ValueError, "k_max must be"),
        ({"cap": "private", "k_max": 10**7 + 1}, ValueError, "k_max must be at most"),
        ({"cap": "private", "k_max": 2.5}, TypeError, "k_max must be"),
        ({"cap": 5, "k_max": 50}, ValueError, "k_max is for"),
        ({"cap": 5, "cap_share": 1}, ValueError, "cap_share must be"),
        ({"cap": 5, "cap_share": "half"}, TypeError, "cap_share must be"),
        ({"cap": 5, "count_share": 0.0}, ValueError, "count_share must be"),
        ({"cap": 5, "count_share": 1.0}, ValueError, "count_share must be"),
        ({"cap": 5, "count_share": "half"}, TypeError, "count_share must be"),
    ],
)
def test_impossible_options_are_refused(
    options: dict[str, Any], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=f"^{message}"):
        contribution_bounding(SMALL, 1.0, rng=generator(), **options)


def test_the_cap_must_be_given() -> None:
    with pytest.raises(TypeError, match="cap"):
        contribution_bounding(SMALL, 1.0, rng=generator())  # type: ignore[call-arg]


def test_options_are_keywords_only() -> None:
    for name in baselines.__all__:
        parameters = inspect.signature(getattr(baselines, name)).parameters.values()
        positional = [p.name for p in parameters if p.kind != p.KEYWORD_ONLY]
        assert positional == ["users", "epsilon"]
