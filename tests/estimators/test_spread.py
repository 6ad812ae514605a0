"""How much users differ: one user's influence, precision, and clamped guesses."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from scipy import stats

from hetlit import (
    Users,
    user_variance,
)
from hetlit.estimators.spread import (
    ERRORS_OF_MEAN,
    REACH,
    REACH_OFFSET,
    best_reach,
    clamped_guess,
    light_intervals,
    mean_log_ratio,
    spread_histogram,
    spread_resolution,
    typical_spread,
)
from hetlit.privacy.account import Account
from hetlit.privacy.ledger import PRIVATE_SIZES, everyone
from hetlit.privacy.selection import log_grid, median_utilities
from tests.neighbours import (
    SOME,
    eighteen_users,
    kinds,
    neighbours,
    plan_by_hand,
    table,
)
from tests.scripted import Scripted


@pytest.mark.parametrize("centre", [0.0, 0.3, 1.0])
def test_one_user_moves_every_utility_of_the_typical_spread_by_at_most_one(
    centre: float,
) -> None:
    users = eighteen_users()
    _, plan = plan_by_hand(users)
    grid = log_grid(plan.resolution * 0.2, 0.2, 2.0)

    def histogram(users: Users) -> Any:
        return spread_histogram(users, plan.spread_from, centre, 0.2, grid)

    assert histogram(users).sum() == plan.spread_users
    moves = []
    for size, other in neighbours(users):
        counts = histogram(other)
        assert counts.sum() == plan.spread_users
        change = median_utilities(counts) - median_utilities(histogram(users))
        moves.append(np.max(np.abs(change)))
        assert size >= SOME or not change.any()
    assert max(moves) == 1.0


@pytest.mark.parametrize("var_p", [0.0004, 0.01])
def test_the_typical_spread_of_gaussian_means_is_right_to_a_grid_step(
    var_p: float,
) -> None:
    # Users of one size, their means at the quantiles of a Gaussian: no noise, no luck.
    k, rows, q = 1000, 2000, 0.25
    levels = (np.arange(rows) + 0.5) / rows
    reach = math.sqrt(user_variance(k, 0.5, var_p)) * stats.norm.ppf(levels)
    users = Users([k] * rows, np.rint(k * (0.5 + reach)).astype(int))
    _, plan = plan_by_hand(users)
    grid = log_grid(1e-4 * q, q, 2.0)
    histogram = spread_histogram(users, plan.spread_from, 0.5, q, grid)
    typical = grid[np.argmax(median_utilities(histogram))]
    assert 1 / 2.01 <= typical / var_p <= 2.01


@pytest.mark.parametrize(
    ("raw", "p"), [(-3.0, 0.0), (0.0, 0.0), (1.0, 1.0), (7.0, 1.0)]
)
def test_a_first_mean_at_the_end_is_clamped_and_its_variance_has_a_floor(
    raw: float, p: float
) -> None:
    assert clamped_guess(raw, 0.0, 25) == (p, 0.01)
    # Moved towards 1/2 by its error, which counts for more.
    assert clamped_guess(raw, 0.1, 25) == pytest.approx((p, 0.09), abs=1e-15)


@pytest.mark.parametrize("least", [2, 4])
def test_one_user_who_comes_or_goes_moves_every_utility_by_at_most_one(
    least: int,
) -> None:
    # Sizes are private: a user may be replaced by one of another size.
    grid = np.geomspace(0.001, 0.2, 9)
    others = [(1, 1), (2, 1), (5, 3), (6, 6)]
    utilities = [
        median_utilities(spread_histogram(table([*others, one]), least, 0.3, 0.2, grid))
        for one in kinds(6)
    ]
    moves = [np.abs(a - b).max() for a in utilities for b in utilities]
    assert max(moves) == 1.0


def test_the_typical_spread_is_the_middle_of_the_cell_that_was_chosen() -> None:
    users, q = eighteen_users(), 0.2
    source = Scripted()
    account = Account(5.0, PRIVATE_SIZES, everyone(18), source)
    spread = typical_spread(account, users, 3.0, 0.3, q, 0.01, 1.5)
    grid = log_grid(0.01 * q, q, 2.0)
    utilities = median_utilities(spread_histogram(users, 3.0, 0.3, q, grid))
    law = np.exp(1.5 * (utilities - utilities.max()) / 2.0)
    np.testing.assert_allclose(source.laws[0], law / law.sum(), rtol=1e-12)
    assert spread == pytest.approx(grid[np.argmax(law)] / math.sqrt(2.0), rel=1e-12)
    assert account.left == 3.5


def test_users_in_one_row_count_as_often_as_they_are() -> None:
    grid = log_grid(0.001, 0.2, 2.0)
    rows = Users([5, 40, 1], [2, 30, 1], [7, 2, 9])
    histogram = spread_histogram(rows, 5.0, 0.3, 0.2, grid)
    assert histogram.sum() == 9  # the size of 5 takes part, that of 1 does not
    np.testing.assert_array_equal(
        histogram, spread_histogram(rows.expanded(), 5.0, 0.3, 0.2, grid)
    )


# Intervals


@pytest.mark.parametrize("centre", [0.02, 0.5, 0.9])
@pytest.mark.parametrize("reach", [2.0, 3.5])
def test_intervals_reach_so_many_deviations_and_further_on_the_long_side(
    centre: float, reach: float
) -> None:
    variances, q, spread, error = np.array([0.03, 0.001, 2e-5]), 0.1, 0.001, 0.004
    lower, upper = light_intervals(variances, centre, q, spread, error, reach)
    for variance, low, high in zip(variances, lower, upper, strict=True):
        half = ERRORS_OF_MEAN * error + reach * math.sqrt(variance)
        # Cornish-Fisher: the third cumulant over the variance, times reach^2/6.
        skew = reach**2 / 6 * (1 - 2 * centre) * (variance + spread) / q
        assert low == pytest.approx(max(centre - half + min(skew, 0), 0), abs=1e-15)
        assert high == pytest.approx(min(centre + half + max(skew, 0), 1), abs=1e-15)
        assert low <= centre <= high
    assert lower[-1] > 0 or upper[-1] < 1


@pytest.mark.parametrize("k", [20, 200])
def test_the_skew_of_counts_is_that_of_a_beta_binomial(k: int) -> None:
    a, b = 3.0, 97.0
    p, spread = 0.03, 0.03 * 0.97 / 101.0
    counts = np.arange(k + 1)
    law = stats.betabinom(k, a, b).pmf(counts)
    means = counts / k
    variance = np.sum(law * (means - p) ** 2)
    third = np.sum(law * (means - p) ** 3)
    claimed = (1 - 2 * p) * (variance + spread) / (p * (1 - p))
    assert 0.9 * claimed <= third / variance <= claimed  # just below


@pytest.mark.parametrize(("n", "epsilon"), [(10, 0.1), (10**6, 1.0), (10**9, 2.0)])
def test_half_widths_grow_where_users_are_many(n: int, epsilon: float) -> None:
    reach = best_reach(n, epsilon)
    log = math.log(max(n * epsilon, 1.0))
    assert reach == max(REACH, math.sqrt(2.0 * log) - REACH_OFFSET)
    assert best_reach(100 * n, epsilon) >= reach >= REACH


def test_spreads_as_fine_as_many_users_with_much_data_are_told_from_none() -> None:
    assert spread_resolution(100, 50.0, 0.2) == pytest.approx(0.002)
    assert spread_resolution(1, 2.0, 0.2) == 0.5


def test_a_mean_ratio_is_geometric() -> None:
    assert math.exp(mean_log_ratio([2.0, 8.0], [1.0, 1.0])) == pytest.approx(4.0)
    assert mean_log_ratio([3.0], [6.0]) == pytest.approx(math.log(0.5))


def test_the_guess_of_a_variance_is_moved_no_further_than_to_one_half() -> None:
    assert clamped_guess(0.45, 0.02, 25) == pytest.approx((0.45, 0.47 * 0.53))
    assert clamped_guess(0.55, 0.02, 25) == pytest.approx((0.55, 0.47 * 0.53))
    assert clamped_guess(0.45, 0.2, 25) == pytest.approx((0.45, 0.25))
