"""The clipped mean: exact sensitivity over all neighbours, weights and intervals."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hetlit import (
    Users,
    estimate_ideal,
    inverse_variance_weights,
    user_variance,
)
from hetlit.estimators.clipped_mean import plan_clipped_mean
from hetlit.users.groups import Sizes
from tests.neighbours import FINAL_40, WEIGHTS
from tests.quiet import Quiet
from tests.rows import tables

QUICK = settings(max_examples=50)


# The predicted variance.


@pytest.mark.parametrize("weights", WEIGHTS)
@given(
    users=tables(),
    p=st.floats(0.1, 0.9),
    share=st.floats(0.0, 1.0),
    epsilon=st.floats(0.01, 100.0),
    alpha=st.floats(0.0, 0.3),
)
@QUICK
def test_objective_is_the_release_variance_of_the_chosen_weights(
    weights: str, users: Users, p: float, share: float, epsilon: float, alpha: float
) -> None:
    var_p = share * p * (1 - p)
    trace = estimate_ideal(
        users,
        p,
        var_p,
        epsilon,
        alpha=alpha,
        weights=weights,
        rng=Quiet(),
        trace=True,
    ).trace
    variances = user_variance(users.k, p, var_p)
    sampling = np.sum(users.counts * trace.weights**2 * variances)
    privacy = 2 * (np.max(trace.weights * (trace.upper - trace.lower)) / epsilon) ** 2
    assert trace.objective == pytest.approx(sampling + privacy, rel=1e-9)
    assert np.sum(users.counts * trace.weights) == pytest.approx(1.0, rel=1e-12)
    assert 0 <= trace.noiseless <= 1


@QUICK
@given(users=tables(), p=st.floats(0.1, 0.9), share=st.floats(0.0, 1.0))
def test_optimal_weights_are_never_worse_than_the_papers(
    users: Users, p: float, share: float
) -> None:
    paper, optimal = (
        estimate_ideal(
            users, p, share * p * (1 - p), 1.0, weights=w, rng=Quiet(), trace=True
        ).trace.objective
        for w in WEIGHTS
    )
    assert optimal <= paper * (1 + 1e-12)


# Sensitivity.


@pytest.mark.parametrize("weights", WEIGHTS)
@pytest.mark.parametrize(
    ("k", "successes", "p", "var_p", "epsilon", "width"),
    [
        ([1], [1], 0.3, 0.02, 1.0, None),
        ([4, 2, 1], [1, 2, 0], 0.3, 0.02, 1.0, None),
        ([9, 3, 3, 1], [5, 0, 3, 1], 0.5, 0.01, 30.0, 0.1),
        ([7, 5, 1, 1], [0, 0, 0, 0], 0.0, 0.0, 0.5, None),
        ([7, 5, 1, 1], [7, 1, 1, 0], 1.0, 0.0, 0.5, 0.2),
        ([3, 3, 3], [1, 2, 3], 0.6, 0.24, 2.0, 0.05),
        # Only the first user is clipped.
        ([50, 1, 1], [25, 0, 1], 0.5, 0.0, 30.0, None),
    ],
)
def test_sensitivity_is_the_largest_move_over_all_neighbours(
    weights: str,
    k: list[int],
    successes: list[int],
    p: float,
    var_p: float,
    epsilon: float,
    width: float | None,
) -> None:
    def trace(table: Any) -> Any:
        return estimate_ideal(
            Users(k, table),
            p,
            var_p,
            epsilon,
            width=None if width is None else lambda sizes: width + 0 * sizes,
            weights=weights,
            rng=Quiet(),
            trace=True,
        ).trace

    traces = {
        table: trace(table)
        for table in itertools.product(*(range(size + 1) for size in k))
    }
    moves = [
        abs(traces[table].noiseless - traces[other].noiseless)
        for table in traces
        for user, size in enumerate(k)
        for value in range(size + 1)
        for other in [(*table[:user], value, *table[user + 1 :])]
    ]
    sensitivities = {trace.sensitivity for trace in traces.values()}
    assert len(sensitivities) == 1  # it depends on sizes only
    assert max(moves) == pytest.approx(sensitivities.pop(), rel=1e-12)


@QUICK
@given(users=tables(), epsilon=st.floats(0.01, 100.0), seed=st.integers(0, 10**6))
def test_one_user_of_a_row_of_several_moves_the_value_no_further(
    users: Users, epsilon: float, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    everyone = users.expanded()
    user = rng.integers(everyone.n)
    moved = everyone.successes.copy()
    moved[user] = rng.integers(everyone.k[user] + 1)
    traces = [
        estimate_ideal(table, 0.4, 0.01, epsilon, rng=Quiet(), trace=True).trace
        for table in (users, Users(everyone.k, moved).compressed())
    ]
    move = abs(traces[0].noiseless - traces[1].noiseless)
    assert move <= traces[0].sensitivity + 1e-12
    assert traces[1].sensitivity == pytest.approx(traces[0].sensitivity, rel=1e-12)


def test_intervals_and_weights_depend_on_sizes_only() -> None:
    other = Users(FINAL_40.k, FINAL_40.k - FINAL_40.successes)
    traces = [
        estimate_ideal(users, 0.4, 0.01, 1.0, rng=Quiet(), trace=True).trace
        for users in (FINAL_40, other)
    ]
    for name in ("weights", "lower", "upper"):
        np.testing.assert_array_equal(*(getattr(trace, name) for trace in traces))


# Special cases.


@pytest.mark.parametrize("weights", WEIGHTS)
def test_a_single_user_has_all_the_weight(weights: str) -> None:
    trace = estimate_ideal(
        Users([10], [4]), 0.3, 0.01, 2.0, weights=weights, rng=Quiet(), trace=True
    ).trace
    assert trace.weights == pytest.approx([1.0])
    assert trace.sensitivity == pytest.approx(trace.upper[0] - trace.lower[0])
    assert trace.noiseless == pytest.approx(0.4)


@pytest.mark.parametrize("weights", WEIGHTS)
def test_the_largest_spread_gives_everyone_the_same_weight(weights: str) -> None:
    users = Users([100, 7, 1], [50, 7, 0], [2, 1, 5])
    trace = estimate_ideal(
        users, 0.3, 0.3 * 0.7, 1.0, weights=weights, rng=Quiet(), trace=True
    ).trace
    np.testing.assert_allclose(trace.weights, 1 / 8, rtol=1e-12)


@pytest.mark.parametrize("weights", WEIGHTS)
def test_one_sample_each_gives_everyone_the_same_weight(weights: str) -> None:
    users = Users([1] * 5, [0, 1, 1, 0, 0])
    trace = estimate_ideal(
        users, 0.3, 0.01, 1.0, weights=weights, rng=Quiet(), trace=True
    ).trace
    np.testing.assert_allclose(trace.weights, 1 / 5, rtol=1e-12)


@pytest.mark.parametrize("weights", WEIGHTS)
def test_without_privacy_weights_are_inverse_variances(weights: str) -> None:
    trace = estimate_ideal(
        FINAL_40, 0.4, 0.01, 1e6, weights=weights, rng=Quiet(), trace=True
    ).trace
    expected = inverse_variance_weights(user_variance(FINAL_40.k, 0.4, 0.01))
    np.testing.assert_allclose(trace.weights, expected, rtol=1e-6)


def test_default_half_width_is_a_gaussian_tail_within_the_unit_interval() -> None:
    k = np.array([2000, 300, 40, 5, 1])
    trace = estimate_ideal(
        Users(k, 0 * k), 0.3, 0.0004, 1.0, alpha=0.01, rng=Quiet(), trace=True
    ).trace
    half = 0.01 + np.sqrt(user_variance(k, 0.3, 0.0004) * 2 * math.log(2 * 5 / 0.05))
    np.testing.assert_allclose(trace.lower, np.maximum(0, 0.3 - half), rtol=1e-12)
    np.testing.assert_allclose(trace.upper, np.minimum(1, 0.3 + half), rtol=1e-12)
    assert trace.lower[0] > 0
    assert trace.upper[0] < 1
    assert trace.lower[-1] == 0
    assert trace.upper[-1] == 1


def test_means_are_clipped_to_their_intervals() -> None:
    users = Users([10, 10, 10], [0, 10, 4])
    trace = estimate_ideal(
        users, 0.5, 0.01, 1.0, width=lambda k: 0.2 + 0 * k, rng=Quiet(), trace=True
    ).trace
    assert trace.noiseless == pytest.approx((0.3 + 0.7 + 0.4) / 3)


def test_width_is_asked_about_each_size_once() -> None:
    asked: list[Any] = []

    def width(k: Any) -> Any:
        asked.append(k)
        return 0.1 + 0 * k

    users = Users([7, 2, 7, 7], [0, 1, 2, 3])
    estimate_ideal(users, 0.5, 0.01, 1.0, width=width, rng=Quiet())
    assert [list(k) for k in asked] == [[2.0, 7.0]]


def test_width_may_be_one_number_for_all() -> None:
    trace = estimate_ideal(
        FINAL_40, 0.5, 0.01, 1.0, width=lambda k: 0.25, rng=Quiet(), trace=True
    ).trace
    np.testing.assert_array_equal(trace.lower, 0.25)
    np.testing.assert_array_equal(trace.upper, 0.75)


def test_no_width_at_all_releases_p_with_the_least_noise() -> None:
    # The last digits of a sum depend on samples even where no interval has a width.
    for epsilon in (1.0, 4.0):
        source = Quiet()
        estimate = estimate_ideal(
            FINAL_40, 0.37, 0.01, epsilon, width=lambda k: 0 * k, rng=source, trace=True
        )
        assert estimate.value == pytest.approx(0.37, rel=1e-12)
        assert estimate.trace.sensitivity == 2.0**-40
        assert source.scales == [2.0**-40 / epsilon]
        assert estimate.ledger.steps[0].mechanism.sensitivity == 2.0**-40


@pytest.mark.parametrize("weights", WEIGHTS)
@QUICK
@given(users=tables(), width=st.sampled_from([0.0, 1e-300, 1e-14, 1e-9, 0.2]))
def test_rounding_is_within_the_least_sensitivity(
    weights: str, users: Users, width: float
) -> None:
    traces = [
        estimate_ideal(
            table,
            0.37,
            0.01,
            1.0,
            width=lambda k: 0 * k + width,
            weights=weights,
            rng=Quiet(),
            trace=True,
        ).trace
        for table in (users, users.compressed(), users.expanded())
    ]
    for trace in traces:
        widths = trace.upper - trace.lower
        most = float(np.max(trace.weights * widths))
        assert trace.sensitivity == max(most, 2.0**-40)
    values = [trace.noiseless for trace in traces]
    assert max(values) - min(values) <= 2.0**-45


@pytest.mark.slow
@pytest.mark.parametrize("weights", WEIGHTS)
@QUICK
@given(users=tables(), epsilon=st.floats(0.05, 20.0))
def test_rows_of_several_users_are_as_good_as_one_row_each(
    weights: str, users: Users, epsilon: float
) -> None:
    traces = [
        estimate_ideal(
            table, 0.4, 0.01, epsilon, weights=weights, rng=Quiet(), trace=True
        ).trace
        for table in (users, users.expanded())
    ]
    for name in ("noiseless", "objective", "sensitivity"):
        rows, each = (getattr(trace, name) for trace in traces)
        assert rows == pytest.approx(each, rel=1e-10, abs=1e-14)


def test_the_paper_has_a_threshold_and_optimal_weights_have_none() -> None:
    thresholds = [
        estimate_ideal(
            FINAL_40, 0.4, 0.01, 1.0, weights=w, rng=Quiet(), trace=True
        ).trace.threshold
        for w in WEIGHTS
    ]
    assert thresholds[0] > 0
    assert thresholds[1] is None


def test_a_width_computed_in_place_changes_no_sizes():
    def in_place(k):
        k **= -0.5
        return k

    users = Users(k=[4, 100], successes=[1, 50], counts=[50, 50])
    values = [
        estimate_ideal(
            users, 0.4, 0.01, 1.0, width=width, rng=np.random.default_rng(0), trace=True
        )
        for width in (in_place, lambda k: k**-0.5)
    ]
    assert values[0].value == values[1].value
    assert values[0].trace.objective == values[1].trace.objective


@pytest.mark.parametrize(
    ("lower", "upper", "clips"),
    [
        ([0.0, 0.0], [1.0, 1.0], False),
        ([0.0, 0.1], [1.0, 1.0], True),
        ([0.0, 0.0], [0.9, 1.0], True),
        ([-0.1, 0.0], [1.0, 1.1], False),
    ],
)
def test_a_mean_clips_if_any_interval_is_not_all_of_0_1(
    lower: list[float], upper: list[float], clips: bool
) -> None:
    sizes = Sizes(np.array([1.0, 2.0]), np.array([5, 5]))
    ends, variances = (np.array(lower), np.array(upper)), np.full(2, 0.1)
    plan = plan_clipped_mean(sizes, *ends, variances, 1.0, "optimal")
    assert plan.clips is clips
