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
    clamped_guess,
    spread_histogram,
)
from hetlit.privacy.selection import log_grid, median_utilities
from tests.neighbours import SOME, eighteen_users, neighbours, plan_by_hand


@pytest.mark.parametrize("centre", [0.0, 0.3, 1.0])
def test_one_user_moves_every_utility_of_the_typical_spread_by_at_most_one(
    centre: float,
) -> None:
    users = eighteen_users()
    _, plan = plan_by_hand(users)
    grid = log_grid(plan.resolution * 0.2, 0.2, 2.0)

    def histogram(table: Users) -> Any:
        return spread_histogram(table, plan.spread_from, centre, 0.2, grid)

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
