"""`estimate_public_size`: its method words, its options, what all methods share."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hetlit import (
    Beta,
    Users,
    estimate_public_size,
    sample_users,
    sizes,
)
from hetlit.estimators.public_size.auto import estimate_adaptive
from hetlit.privacy.noise import SecureNoiseUnavailable
from tests.neighbours import METHODS, QUICK, twenty_users
from tests.quiet import Scripted
from tests.rows import tables


def test_auto_is_the_adaptive_estimator() -> None:
    users = sample_users(Beta(0.3, 0.01), sizes.harmonic(500), np.random.default_rng(1))
    values = [
        estimate(users, 1.0, rng=np.random.default_rng(2)).value
        for estimate in (estimate_public_size, estimate_adaptive)
    ]
    assert values[0] == values[1]


# Privacy.


@QUICK
@given(
    users=tables(10, 40), epsilon=st.floats(0.5, 50.0), method=st.sampled_from(METHODS)
)
def test_the_ledger_adds_up_to_epsilon(
    users: Users, epsilon: float, method: str
) -> None:
    rng = np.random.default_rng(0)
    ledger = estimate_public_size(users, epsilon, method=method, rng=rng).ledger
    assert ledger.epsilon == pytest.approx(epsilon, rel=1e-12)
    assert ledger.delta == 0.0
    assert "n and every user's size k are public" in str(ledger)


# The release.


@pytest.mark.parametrize("method", METHODS)
def test_estimates_are_reproducible_from_rng(method: str) -> None:
    users = sample_users(Beta(0.3, 0.01), sizes.harmonic(300), np.random.default_rng(1))
    values = [
        estimate_public_size(
            users, 1.0, method=method, rng=np.random.default_rng(seed)
        ).value
        for seed in (1, 1, 2)
    ]
    assert values[0] == values[1] != values[2]


@pytest.mark.parametrize("method", METHODS)
def test_a_trace_is_returned_on_request_only_and_changes_nothing(method: str) -> None:
    users = sample_users(Beta(0.3, 0.01), sizes.harmonic(300), np.random.default_rng(1))
    plain, traced = (
        estimate_public_size(
            users, 1.0, method=method, rng=np.random.default_rng(3), trace=trace
        )
        for trace in (False, True)
    )
    assert plain.value == traced.value
    assert "NOT PRIVATE" in repr(traced)
    with pytest.raises(AttributeError, match="trace=True"):
        _ = plain.trace


@pytest.mark.parametrize("method", METHODS)
def test_a_trace_holds_the_value_before_noise(method: str) -> None:
    users = sample_users(Beta(0.3, 0.01), sizes.harmonic(300), np.random.default_rng(1))
    source = Scripted()
    estimate = estimate_public_size(users, 1.0, method=method, rng=source, trace=True)
    trace = estimate.trace
    assert trace.noiseless == estimate.value
    assert trace.noise_scale == source.scales[-1]
    assert len(trace.weights) == len(trace.lower) == len(trace.upper)


@pytest.mark.parametrize("method", METHODS)
def test_users_are_left_alone(method: str) -> None:
    users = Users(sizes.harmonic(50), sizes.harmonic(50) // 2, np.full(50, 3))
    before = [users.k.copy(), users.successes.copy(), users.counts.copy()]
    estimate_public_size(users, 3.0, method=method, rng=np.random.default_rng(0))
    for array, copy in zip(
        (users.k, users.successes, users.counts), before, strict=True
    ):
        np.testing.assert_array_equal(array, copy)


# Edges and arguments.


@pytest.mark.parametrize("epsilon", [0, -1.0, math.inf, math.nan, "1", None, True])
@pytest.mark.parametrize("method", METHODS)
def test_a_bad_epsilon_is_named(method: str, epsilon: Any) -> None:
    with pytest.raises((ValueError, TypeError), match="epsilon"):
        estimate_public_size(twenty_users(), epsilon, method=method, rng=Scripted())


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"method": "best"}, "method"),
        ({"method": None}, "method"),
        ({"method": "auto", "beta": 0.1}, "beta"),
        ({"method": "paper", "variance_users": 5}, "variance_users"),
        ({"method": "cohorts", "sharpness": 5}, "sharpness"),
        ({"method": "cohorts", "beta": 0.0}, "beta"),
        ({"method": "cohorts", "beta": 1.0}, "beta"),
        ({"method": "paper", "beta": math.nan}, "beta"),
        ({"method": "cohorts", "variance_users": 1}, "variance_users"),
        ({"method": "cohorts", "variance_users": 2.5}, "variance_users"),
        ({"method": "cohorts", "width": lambda k: -1.0 + 0 * k}, "width"),
        ({"method": "cohorts", "width": lambda k: [0.1] * 99}, "width"),
        ({"method": "paper", "third_moment": 0.0}, "third_moment"),
        ({"method": "paper", "third_moment": 1e-7}, "third_moment"),
        ({"method": "paper", "third_moment": 1e7}, "third_moment"),
        ({"users": [(3, 1)]}, "users"),
        ({"users": [(3, 1)], "method": "cohorts"}, "users"),
        ({"rng": 7}, "rng"),
        ({"rng": 7, "method": "cohorts"}, "rng"),
        ({"rng": 7, "method": "paper"}, "rng"),
    ],
)
def test_bad_arguments_are_named(options: dict[str, Any], named: str) -> None:
    arguments: dict[str, Any] = {
        "users": twenty_users(),
        "epsilon": 2.0,
        "rng": Scripted(),
    }
    with pytest.raises((ValueError, TypeError), match=named):
        estimate_public_size(**(arguments | options))


@pytest.mark.parametrize("method", METHODS)
def test_no_rng_asks_for_secure_noise_which_is_not_there(method: str) -> None:
    with pytest.raises(SecureNoiseUnavailable):
        estimate_public_size(twenty_users(), 2.0, method=method)
