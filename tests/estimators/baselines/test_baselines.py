"""All baselines: honest ledgers, traces on request, edges and arguments."""

from __future__ import annotations

import functools
import inspect
import math
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from hetlit import Users, baselines
from hetlit.estimators.baselines import (
    contribution_bounding,
    median_truncation,
    pooled_mean,
    user_mean,
)
from hetlit.estimators.baselines.huber import huber
from hetlit.privacy.ledger import PUBLIC_SIZES
from hetlit.privacy.noise import SecureNoiseUnavailable
from tests.neighbours import SMALL
from tests.quiet import generator

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


def test_options_are_keywords_only() -> None:
    for name in baselines.__all__:
        parameters = inspect.signature(getattr(baselines, name)).parameters.values()
        positional = [p.name for p in parameters if p.kind != p.KEYWORD_ONLY]
        assert positional == ["users", "epsilon"]
