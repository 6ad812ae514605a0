"""The public bound on sizes: it must be given, and nobody may exceed it."""

from __future__ import annotations

import math
import re
from contextlib import nullcontext
from functools import partial
from typing import Any

import numpy as np
import pytest

from hetlit import Users
from hetlit.estimators.private_k import estimate_private_k
from hetlit.estimators.private_k.auto import estimate_histogram_ratio
from hetlit.estimators.private_k.paper import estimate_published_k
from hetlit.estimators.private_k.ptr import estimate_ptr
from hetlit.estimators.private_k.ratio import estimate_ratio
from tests.private_sizes import METHODS, zipf_users


def test_forgetting_k_max_explains_why_it_is_needed_and_how_to_get_there() -> None:
    with pytest.raises(TypeError, match="k_max") as caught:
        estimate_private_k(zipf_users(), 1.0, rng=np.random.default_rng(0))
    message = str(caught.value)
    assert "sizes are private" in message
    assert "without looking" in message
    assert "users.capped(k_max, rng)" in message


@pytest.mark.parametrize("method", METHODS)
def test_users_beyond_k_max_are_refused_and_capping_them_helps(method: str) -> None:
    users, rng = zipf_users(), np.random.default_rng(0)

    def run(table: Users) -> Any:
        return estimate_private_k(
            table, 1.0, k_max=20, method=method, delta=1e-6, rng=rng
        )

    with pytest.raises(ValueError, match="k_max must be at least") as caught:
        run(users)
    assert "public bound" in str(caught.value)
    assert "users.capped(k_max, rng)" in str(caught.value)
    # How much anyone holds is her secret.
    assert users.k.max() not in map(int, re.findall(r"\d+", str(caught.value)))
    assert math.isfinite(run(users.capped(20, rng)).value)


@pytest.mark.parametrize("method", ["auto", *METHODS])
def test_one_sample_more_than_k_max_is_too_many(method: str) -> None:
    users = Users([21] + [20] * 99, [0] * 100)
    rng = np.random.default_rng(0)
    for k_max, fits in ((20, False), (21, True)):
        with nullcontext() if fits else pytest.raises(ValueError, match="at least ev"):
            estimate_private_k(
                users, 1.0, k_max=k_max, method=method, delta=1e-6, rng=rng
            )


@pytest.mark.parametrize(
    "estimate",
    [
        estimate_private_k,
        estimate_ratio,
        estimate_histogram_ratio,
        partial(estimate_ptr, delta=1e-6),
        partial(estimate_published_k, delta=1e-6),
    ],
)
def test_what_is_public_is_checked_before_anyone_is_compared_with_k_max(
    estimate: Any,
) -> None:
    # So that no error but the one about k_max can depend on the data.
    users, rng = Users([21] * 20, [0] * 20), np.random.default_rng(0)
    with pytest.raises(ValueError, match="epsilon must be"):
        estimate(users, -1.0, k_max=20, rng=rng)


PUBLIC_AND_WRONG = [
    *((method, "epsilon", -1.0) for method in METHODS),
    *((method, "rng", "?") for method in METHODS),
    *((method, "trace", 1) for method in METHODS),
    *((method, "beta", 0.0) for method in ("ratio", "ptr", "paper")),
    *((method, "delta", 0.7) for method in ("ptr", "paper")),
    *((method, "shares", (0.5, 0.6)) for method in ("ratio", "ptr")),
    *((method, "spread_users", 0) for method in ("ratio", "ptr")),
    *((method, "width", 0.1) for method in ("ratio", "ptr")),
    ("paper", "variance", "?"),
    ("paper", "variance_users", 1),
    ("paper", "variance_users", 10**7),
    ("paper", "third_moment", 0.0),
]


@pytest.mark.parametrize(("method", "name", "value"), PUBLIC_AND_WRONG)
def test_every_public_argument_is_checked_before_users_are_compared_with_k_max(
    method: str, name: str, value: Any
) -> None:
    options: dict[str, Any] = {"epsilon": 1.0, "delta": 1e-6}
    options |= {"rng": np.random.default_rng(0), name: value}
    users = Users([21] * 20, [0] * 20)
    with pytest.raises((TypeError, ValueError), match=rf"^{name} must"):
        estimate_private_k(users, k_max=20, method=method, **options)
