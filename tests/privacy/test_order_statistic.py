"""The private order statistic: its law is exact and its privacy is exhaustive.

No test here is statistical: a recording source shows the law that is drawn from.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hetlit.check import MOST_SIZES
from hetlit.privacy.noise import SecureNoiseUnavailable, choice_law
from hetlit.privacy.selection import (
    order_statistic_probabilities,
    order_statistic_utilities,
    private_order_statistic,
)
from tests.transcripts import Transcript


def tables(n: int, k_max: int) -> list[tuple[int, ...]]:
    """All tables of n sizes, up to order."""
    return list(itertools.combinations_with_replacement(range(1, k_max + 1), n))


def neighbours(k: tuple[int, ...], k_max: int) -> Iterator[tuple[int, ...]]:
    """All tables in which one size is replaced."""
    for user, size in itertools.product(range(len(k)), range(1, k_max + 1)):
        yield (*k[:user], size, *k[user + 1 :])


class Recorder(Transcript):
    """Returns the outcome it is told and keeps the law it should have drawn from."""

    law = np.zeros(0)

    def choose(self, utilities: Any, epsilon: float, sensitivity: float) -> int:
        self.law = choice_law(utilities, epsilon, sensitivity)
        return super().choose(utilities, epsilon, sensitivity)


# The law.


@pytest.mark.parametrize(
    ("rank", "epsilon", "utilities", "law"),
    [
        (
            2,
            1.0,
            [-2, -2, 0, -1, -1, -2],
            [0.11091732, 0.11091732, 0.30150454, 0.18287175, 0.18287175, 0.11091732],
        ),
        (
            1,
            1.0,
            [-3, -3, -1, -1, 0, -1],
            [0.06832218, 0.06832218, 0.18571895, 0.18571895, 0.30619878, 0.18571895],
        ),
        (
            4,
            2.0,
            [0, -1, -1, -3, -3, -4],
            [0.53947656, 0.19846234, 0.19846234, 0.02685896, 0.02685896, 0.00988086],
        ),
    ],
)
def test_the_law_on_four_users(
    rank: int, epsilon: float, utilities: list[int], law: list[float]
) -> None:
    k = [5, 3, 3, 1]
    assert order_statistic_utilities(k, rank, 6).tolist() == utilities
    probabilities = order_statistic_probabilities(k, rank, 6, epsilon)
    assert probabilities == pytest.approx(law, abs=5e-9)
    assert probabilities.sum() == pytest.approx(1.0, rel=1e-12)


@pytest.mark.parametrize("rank", [1, 2, 3, 4])
def test_the_utility_is_minus_the_number_of_users_to_replace(rank: int) -> None:
    everything = np.array(list(itertools.product(range(1, 5), repeat=4)))
    wanted = np.sort(everything, axis=1)[:, -rank]
    for k in tables(4, 4):
        replaced = (everything != k).sum(axis=1)
        distances = [int(replaced[wanted == t].min()) for t in range(1, 5)]
        assert (-order_statistic_utilities(k, rank, 4)).tolist() == distances


@given(st.lists(st.integers(1, 30), min_size=1, max_size=40), st.data())
def test_the_order_statistic_itself_is_the_one_best_answer(
    k: list[int], data: st.DataObject
) -> None:
    rank = data.draw(st.integers(1, len(k)))
    utilities = order_statistic_utilities(k, rank, 30)
    assert np.flatnonzero(utilities == 0) + 1 == sorted(k, reverse=True)[rank - 1]


@given(st.lists(st.tuples(st.integers(1, 9), st.integers(1, 5)), min_size=1), st.data())
def test_rows_with_counts_have_the_law_of_their_users(
    rows: list[tuple[int, int]], data: st.DataObject
) -> None:
    k, counts = zip(*rows, strict=True)
    rank = data.draw(st.integers(1, sum(counts)))
    each = order_statistic_probabilities(np.repeat(k, counts), rank, 12, 0.7)
    together = order_statistic_probabilities(k, rank, 12, 0.7, counts=counts)
    assert together.tolist() == each.tolist()


def test_a_billion_billion_users_are_counted_exactly() -> None:
    utilities = order_statistic_utilities(
        [3, 2, 1], 2**60 + 1, 4, counts=[2**60, 1, 2**60]
    )
    assert utilities.tolist() == [-1, 0, -1, -(2**60) - 1]


def test_a_million_sizes_and_rows_are_no_trouble() -> None:
    k = np.arange(1, 10**6 + 1)
    rng = np.random.default_rng(0)
    assert abs(private_order_statistic(k, 1000, 10**6, 1.0, rng=rng) - 999_001) < 60


@pytest.mark.parametrize("outcome", range(6))
def test_the_answer_is_drawn_from_the_law(outcome: int) -> None:
    source = Recorder([outcome])
    answer = private_order_statistic([5, 3, 3, 1], 2, 6, 1.0, rng=source)
    assert answer == outcome + 1
    law = order_statistic_probabilities([5, 3, 3, 1], 2, 6, 1.0)
    assert source.law.tolist() == law.tolist()


def test_without_privacy_the_answer_is_exact() -> None:
    rng = np.random.default_rng(0)
    k = [7, 1, 9, 4, 4]
    exact = [private_order_statistic(k, rank, 9, 1e4, rng=rng) for rank in range(1, 6)]
    assert exact == [9, 7, 4, 4, 1]


# Privacy.


def test_no_utility_moves_by_more_than_one_between_neighbours() -> None:
    moves = [
        np.abs(
            order_statistic_utilities(k, rank, 5)
            - order_statistic_utilities(other, rank, 5)
        ).max()
        for k in tables(4, 5)
        for other in neighbours(k, 5)
        for rank in (1, 2, 3, 4)
    ]
    assert max(moves) == 1


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 5.0])
@pytest.mark.parametrize(("n", "k_max"), [(1, 5), (2, 6), (3, 4), (4, 5)])
def test_no_log_ratio_between_neighbours_exceeds_epsilon(
    n: int, k_max: int, epsilon: float
) -> None:
    worst = 0.0
    for rank in range(1, n + 1):
        logs = {
            k: np.log(order_statistic_probabilities(k, rank, k_max, epsilon))
            for k in tables(n, k_max)
        }
        for k in logs:
            for other in neighbours(k, k_max):
                ratios = np.abs(logs[k] - logs[tuple(sorted(other))])
                worst = max(worst, float(ratios.max()))
    assert 0.49 * epsilon < worst <= epsilon * (1 + 1e-12)
    if (n, k_max, epsilon) == (4, 5, 1.0):
        assert worst == pytest.approx(0.7344182, abs=5e-8)


# Accuracy.


@pytest.mark.parametrize("epsilon", [0.1, 1.0])
@pytest.mark.parametrize("beta", [0.3, 0.05])
@pytest.mark.parametrize("rank", [1, 20, 300, 600])
def test_the_rank_is_off_by_more_than_the_slack_with_probability_beta_at_most(
    rank: int, beta: float, epsilon: float
) -> None:
    k = np.sort(np.random.default_rng(rank).zipf(1.5, 600) % 100 + 1)[::-1]
    slack = 2.0 / epsilon * math.log(100 / beta)
    law = order_statistic_probabilities(k, rank, 100, epsilon)
    least = k[math.ceil(rank + slack) - 1] if rank + slack <= 600 else 1
    most = k[math.floor(rank - slack) - 1] if rank - slack >= 1 else 100
    assert law[: least - 1].sum() + law[most:].sum() <= beta


def test_half_that_slack_as_published_is_not_enough() -> None:
    # Everybody has one sample, but the mechanism nearly always says otherwise:
    # all other sizes are `rank` users away, and there are a thousand of them.
    epsilon, beta, k_max = 1.0, 0.05, 1000
    published = math.log(k_max / beta) / epsilon
    rank = math.ceil(published) + 1
    law = order_statistic_probabilities([1] * 100, rank, k_max, epsilon)
    assert rank - published >= 1  # so the published lemma promises the size 1
    assert law[1:].sum() > 0.8


# Arguments.


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"k": []}, ValueError, "k is empty"),
        ({"k": [1, 0]}, ValueError, "k must be at least 1"),
        ({"k": [1, 1.5]}, ValueError, "k must be whole numbers"),
        ({"k": ["a"]}, TypeError, "k must hold numbers"),
        ({"k": [2, 7]}, ValueError, r"^k must be at most k_max = 6 throughout$"),
        ({"rank": 0}, ValueError, "rank must be"),
        ({"rank": 4}, ValueError, "rank must be at most the number of users, 3, not 4"),
        ({"rank": 1.5}, TypeError, "rank must be"),
        ({"k_max": 0}, ValueError, "k_max must be"),
        ({"k_max": MOST_SIZES + 1}, ValueError, "k_max must be at most"),
        ({"k_max": None}, TypeError, "k_max must be"),
        ({"epsilon": 0.0}, ValueError, "epsilon must be"),
        ({"epsilon": math.nan}, ValueError, "epsilon must be"),
        ({"counts": [1, 1]}, ValueError, "counts: 2"),
        ({"counts": [1, 1, 0]}, ValueError, "counts must be at least 1"),
    ],
)
def test_bad_arguments_are_refused_by_name(
    change: dict[str, Any], error: type[Exception], message: str
) -> None:
    good: dict[str, Any] = {"k": [2, 3, 1], "rank": 2, "k_max": 6, "epsilon": 1.0}
    arguments = good | change
    counts = arguments.pop("counts", None)
    with pytest.raises(error, match=message):
        order_statistic_probabilities(*arguments.values(), counts=counts)
    rng = np.random.default_rng(0)
    with pytest.raises(error, match=message):
        private_order_statistic(*arguments.values(), counts=counts, rng=rng)


def test_secure_noise_is_refused_while_there_is_none() -> None:
    with pytest.raises(SecureNoiseUnavailable):
        private_order_statistic([2, 3, 1], 2, 6, 1.0)


@pytest.mark.parametrize("count", [1, 5])
def test_a_count_that_is_seen_from_every_row_is_that_count(count: int) -> None:
    counts = np.broadcast_to(np.int64(count), 3)
    found = order_statistic_utilities([5, 3, 1], 2, 6, counts=counts)
    plain = order_statistic_utilities([5, 3, 1], 2, 6, counts=[count] * 3)
    np.testing.assert_array_equal(found, plain)
