"""Private sizes: what holds whatever the method, and which one is used."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import stats

from hetlit import Users
from hetlit.estimators.private_k import estimate_private_k
from hetlit.privacy.noise import SecureNoiseUnavailable
from tests.private_sizes import METHODS, zipf_users

# Statistical tests have fixed seeds.  For a random seed, a true one fails with a chance
# of at most 1e-9 (two Kolmogorov-Smirnov tests): together at most 2e-9.


# No way to fail.


def test_all_zeros_and_all_ones_are_fine() -> None:
    for ones in (0, 9):
        users = Users([9] * 400, [ones] * 400)
        for method in METHODS:
            estimate = estimate_private_k(
                users,
                20.0,
                k_max=20,
                method=method,
                delta=1e-6,
                rng=np.random.default_rng(0),
            )
            assert abs(estimate.value - ones / 9) < 0.2


# What comes out.


@pytest.mark.slow
@pytest.mark.parametrize("method", ["ratio", "ptr"])
def test_rows_with_counts_have_the_law_of_their_users_in_whole_runs(
    method: str,
) -> None:
    users = Users([1, 3, 6], [0, 2, 2], [20, 15, 25])
    rng = np.random.default_rng(6)

    def values(table: Users) -> list[float]:
        return [
            estimate_private_k(
                table, 8.0, k_max=6, method=method, delta=0.01, rng=rng
            ).value
            for _ in range(600)
        ]

    assert stats.ks_2samp(values(users), values(users.expanded())).pvalue > 1e-9


@pytest.mark.parametrize("method", METHODS)
def test_runs_are_reproducible(method: str) -> None:
    users = zipf_users()
    one, two = (
        estimate_private_k(
            users,
            1.0,
            k_max=500,
            method=method,
            delta=1e-6,
            rng=np.random.default_rng(7),
            trace=True,
        )
        for _ in range(2)
    )
    assert one.value == two.value
    assert one.ledger == two.ledger
    assert type(one.value) is float


@pytest.mark.parametrize("method", METHODS)
def test_a_trace_must_be_asked_for_and_changes_nothing(method: str) -> None:
    users = zipf_users()

    def run(trace: bool) -> Any:
        return estimate_private_k(
            users,
            1.0,
            k_max=500,
            method=method,
            delta=1e-6,
            rng=np.random.default_rng(8),
            trace=trace,
        )

    assert run(True).value == run(False).value
    with pytest.raises(AttributeError, match="trace=True"):
        _ = run(False).trace
    assert "NOT PRIVATE" in repr(run(True).trace)


# Arguments.


@pytest.mark.parametrize("change", [{"delta": -0.1}, {"method": "best"}])
def test_the_method_and_delta_are_checked_before_anyone_is_compared_with_k_max(
    change: dict[str, Any],
) -> None:
    users, rng = Users([21] * 20, [0] * 20), np.random.default_rng(0)
    with pytest.raises(ValueError, match=f"{next(iter(change))} must be"):
        estimate_private_k(users, 1.0, k_max=20, rng=rng, **change)


def test_the_best_method_is_the_default() -> None:
    histogram_ratio = pytest.importorskip("hetlit.estimators.private_k.auto")
    users = zipf_users()
    default = estimate_private_k(users, 1.0, k_max=500, rng=np.random.default_rng(1))
    direct = histogram_ratio.estimate_histogram_ratio(
        users, 1.0, k_max=500, rng=np.random.default_rng(1)
    )
    assert default.value == direct.value


@pytest.mark.parametrize("method", METHODS)
def test_secure_noise_is_refused_while_there_is_none(method: str) -> None:
    with pytest.raises(SecureNoiseUnavailable):
        estimate_private_k(zipf_users(), 1.0, k_max=500, method=method, delta=1e-6)
