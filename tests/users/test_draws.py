"""Random samples and random users: the laws are exact, rows stay together.

Monte Carlo.  For a random seed a true comparison fails with a chance of at most
2e-11 (a count of one outcome, exact binomial tails), 1e-10 (a mean within 6.5
standard errors), 3e-9 (a variance within 7, allowing for skewness) or 1e-9 (a
Kolmogorov-Smirnov test).  There are about 270, 5, 3 and 2: together below 2e-8.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from hetlit import Users
from hetlit.users.draws import (
    floyd,
    most_data,
    random_division,
    random_users,
    split_by_size,
    subsampled_ones,
)
from hetlit.users.laws import FEW
from tests.rows import tables


def generator(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


def assert_plausible(observed: dict[Any, int], law: dict[Any, float]) -> None:
    """Compare the counts of outcomes with their law, each within its 1 - 2e-11."""
    draws = sum(observed.values())
    assert set(observed) <= set(law)
    for outcome, probability in law.items():
        count = observed.get(outcome, 0)
        low = stats.binom.cdf(count, draws, probability)
        high = stats.binom.sf(count - 1, draws, probability)
        assert min(low, high) >= 1e-11, (outcome, count, probability * draws)


def tally(values: Any) -> dict[Any, int]:
    observed: dict[Any, int] = {}
    for value in values:
        observed[value] = observed.get(value, 0) + 1
    return observed


# Samples of users


def law_of_sum(k: int, ones: int, size: int, users: int) -> dict[float, float]:
    one = stats.hypergeom.pmf(np.arange(size + 1), k, ones, size)
    law = np.ones(1)
    for _ in range(users):
        law = np.convolve(law, one)
    return {float(x): float(p) for x, p in enumerate(law) if p > 1e-300}


@pytest.mark.parametrize("users", [1, 3, FEW + 1])
def test_a_row_of_users_has_the_law_of_as_many_users(users: int) -> None:
    rng, draws = generator(1), 4000
    row = Users([5], [2], [users])
    observed = tally(subsampled_ones(row, 3, rng) for _ in range(draws))
    assert_plausible(observed, law_of_sum(5, 2, 3, users))


@pytest.mark.parametrize("expanded", [False, True])
def test_expanding_the_rows_changes_nothing(expanded: bool) -> None:
    rng, draws = generator(2), 3000
    table = Users([4, 9, 2], [1, 6, 1], [70, 30, 5])
    table = table.expanded() if expanded else table
    values = np.array([subsampled_ones(table, 3, rng) for _ in range(draws)])
    parts = [stats.hypergeom(4, 1, 3), stats.hypergeom(9, 6, 3)]
    mean = 70 * parts[0].mean() + 30 * parts[1].mean() + 5
    variance = 70 * parts[0].var() + 30 * parts[1].var()
    assert abs(values.mean() - mean) <= 6.5 * math.sqrt(variance / draws)
    squares = (values - mean) ** 2
    assert abs(squares.mean() - variance) <= 7 * squares.std() / math.sqrt(draws)


def test_users_with_fewer_samples_give_all_they_have() -> None:
    table = Users([1, 2, 3], [1, 1, 2], [5, 10**10, 1])
    assert subsampled_ones(table, 3, generator()) == 5 + 10**10 + 2


def test_users_with_equal_samples_leave_nothing_to_chance() -> None:
    table = Users([9, 9, 10**12], [0, 9, 10**12], [10, 1000, 7])
    assert subsampled_ones(table, 4, generator()) == 4 * 1000 + 4 * 7


@pytest.mark.parametrize("k", [40, 10**10])
def test_a_billion_users_have_their_moments(k: int) -> None:
    rng, draws, users, size = generator(3), 300, 10**9, 8
    table = Users([k], [k // 4], [users])
    values = np.array([subsampled_ones(table, size, rng) for _ in range(draws)])
    mean = users * size / 4
    variance = users * size * (3 / 16) * (k - size) / (k - 1)
    scores = (values - mean) / math.sqrt(variance)
    assert abs(scores.mean()) <= 6.5 / math.sqrt(draws)
    assert stats.kstest(scores, "norm").pvalue > 1e-9


# Random users


def test_every_set_of_users_is_equally_likely() -> None:
    counts, number, rng = np.array([2, 1, 3]), 3, generator(4)
    rows = [0, 0, 1, 2, 2, 2]
    sets = [
        tuple(np.bincount(chosen, minlength=3).tolist())
        for chosen in itertools.combinations(rows, number)
    ]
    law = {outcome: sets.count(outcome) / len(sets) for outcome in sets}
    observed = tally(
        tuple(random_users(counts, number, rng).tolist()) for _ in range(20_000)
    )
    assert_plausible(observed, law)


@given(st.lists(st.integers(1, 10**12), min_size=1, max_size=6), st.data())
def test_the_right_number_of_users_is_chosen(
    counts: list[int], data: st.DataObject
) -> None:
    number = data.draw(st.integers(1, sum(counts)))
    chosen = random_users(np.array(counts), number, generator())
    assert chosen.sum() == number
    assert (chosen >= 0).all()
    assert (chosen <= counts).all()


def test_random_users_have_their_variance() -> None:
    rng, draws, counts, number = generator(5), 2000, np.array([300, 700]), 400
    values = np.array([random_users(counts, number, rng)[0] for _ in range(draws)])
    law = stats.hypergeom(1000, 300, number)
    squares = (values - law.mean()) ** 2
    assert abs(values.mean() - law.mean()) <= 6.5 * law.std() / math.sqrt(draws)
    assert abs(squares.mean() - law.var()) <= 7 * squares.std() / math.sqrt(draws)


@pytest.mark.parametrize("number", [0, 1, 7, 100])
@pytest.mark.parametrize("below", [100, 10**4, 2**31 - 1])
def test_where_integers_have_32_bits_the_same_users_are_drawn(
    below: int, number: int
) -> None:
    # Not beyond 2**31, where numpy would never end with integers of 32 bits.
    ours, theirs = generator(7), generator(7)
    expected = theirs.choice(below, number, replace=False, shuffle=False)
    assert sorted(floyd(below, number, ours)) == sorted(expected)
    assert ours.random() == theirs.random()


# The users with most data


@given(tables(most=12, largest=6), st.data())
def test_the_users_with_most_data_are_chosen(users: Users, data: st.DataObject) -> None:
    number = data.draw(st.integers(1, users.n))
    chosen, least = most_data(users, number, generator())
    sizes = np.sort(np.repeat(users.k, users.counts))[::-1][:number]
    assert np.sort(np.repeat(chosen.k, chosen.counts))[::-1].tolist() == sizes.tolist()
    assert least == sizes[-1]

    def above(table: Users) -> Any:
        big = table.k > least
        rows = Users(*(x[big] for x in (table.k, table.successes, table.counts)))
        return rows.compressed().counts.tolist()

    if (users.k > least).any():
        assert above(chosen) == above(users)


@pytest.mark.slow
@pytest.mark.parametrize("reverse", [False, True])
def test_the_order_of_rows_does_not_matter(reverse: bool) -> None:
    # Sorted by successes: taking the first half would take only zeros, or only ones.
    rng, draws = generator(6), 2000
    order = slice(None, None, -1 if reverse else 1)
    users = Users(np.array([2, 2])[order], np.array([0, 2])[order], [50, 50])
    ones = []
    for _ in range(draws):
        chosen, _ = most_data(users, 50, rng)
        ones.append(float(chosen.means @ chosen.counts))
    error = stats.hypergeom(100, 50, 50).std() / math.sqrt(draws)
    assert abs(np.mean(ones) - 25) <= 6.5 * error


@pytest.mark.parametrize("counts", [None, [1] * 5])
def test_every_division_of_users_is_equally_likely(counts: list[int] | None) -> None:
    rng, draws = generator(3), 14_000
    users = Users([9] * 5, range(5), counts)
    seen: Counter[tuple[int, ...]] = Counter()
    for _ in range(draws):
        chosen, others = random_division(users, 2, rng)
        assert sorted([*chosen.successes, *others.successes]) == list(range(5))
        seen[tuple(chosen.successes.tolist())] += 1
    pairs = list(itertools.combinations(range(5), 2))
    assert_plausible(seen, dict.fromkeys(pairs, 1 / len(pairs)))


@pytest.mark.parametrize("number", [1, 2, 999, 1000])
def test_a_list_divides_into_the_numbers_asked_for_and_stays_a_list(
    number: int,
) -> None:
    users = Users(np.full(1000, 1000), np.arange(1000))
    for seed in range(20):
        chosen, others = random_division(users, number, generator(seed))
        assert (chosen.n, others.n) == (number, 1000 - number)
        assert chosen.ordered
        assert (np.diff(chosen.successes) > 0).all()


@pytest.mark.parametrize("expanded", [False, True])
def test_users_of_one_size_are_told_apart_by_chance_in_a_table_of_single_users(
    expanded: bool,
) -> None:
    # Such a table can be sorted by successes, so its order must decide nothing.
    ones = np.arange(10)
    users = Users(np.full(10, 9), ones, np.ones(10, dtype=int))
    users = users.compressed().expanded() if expanded else users
    parts = [split_by_size(users, 3, 3, generator(seed)) for seed in range(300)]
    # That somebody is never in a cohort has a chance of 30 (7/10)^300 < 1e-44.
    for place in range(3):
        assert {int(x) for part in parts for x in part[place].successes} == set(ones)
    for cohorts in parts:
        assert sorted(np.concatenate([c.successes for c in cohorts])) == list(ones)
