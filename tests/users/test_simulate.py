"""Simulated users: the variance of the lemma, their sizes, and bad arguments."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from hetlit import sizes
from hetlit.theory.populations import (
    Beta,
    Constant,
    MetaDistribution,
    TruncatedGaussian,
    TwoPoint,
)
from hetlit.theory.variance import user_variance
from hetlit.users.simulate import sample_users
from tests.chance import RNG, close
from tests.rows import rows_of


@pytest.mark.parametrize(
    "meta",
    [
        Constant(0.3),
        Beta(0.3, 0.02),
        TruncatedGaussian(0.1, 0.2),
        TwoPoint(0.1, 0.9, 0.05),
    ],
    ids=repr,
)
@pytest.mark.parametrize("k", [1, 2, 10, 100, 1000])
def test_sampled_users_have_the_variance_of_the_lemma(
    meta: MetaDistribution, k: int
) -> None:
    users = sample_users(meta, sizes.equal(100_000, k), np.random.default_rng(k))
    assert close(users.means, meta.mean)
    squares = (users.means - meta.mean) ** 2
    assert close(squares, user_variance(k, meta.mean, meta.variance))


def test_sampled_users_keep_their_sizes_in_order() -> None:
    k = sizes.harmonic(50)
    users = sample_users(Beta(0.3, 0.02), k, np.random.default_rng(0))
    assert users.k.tolist() == k.tolist()
    assert users.n == 50
    assert k.flags.writeable


def test_sampled_users_are_reproducible() -> None:
    first, second = (
        sample_users(Beta(0.3, 0.02), [5, 6, 7], np.random.default_rng(8))
        for _ in range(2)
    )
    assert rows_of(first) == rows_of(second)


def test_users_with_rate_zero_or_one_are_certain() -> None:
    rng = np.random.default_rng(0)
    assert sample_users(Constant(0), [5, 6], rng).successes.tolist() == [0, 0]
    assert sample_users(Constant(1), [5, 6], rng).successes.tolist() == [5, 6]


@pytest.mark.parametrize(
    ("meta", "k", "rng", "error", "message"),
    [
        (Constant(0.3), [0], RNG, ValueError, "k must be at least 1"),
        (Constant(0.3), [1.5], RNG, ValueError, "k must be whole numbers"),
        (Constant(0.3), [], RNG, ValueError, "k is empty"),
        (Constant(0.3), 3, RNG, ValueError, "k must be one-dimensional"),
        (Constant(0.3), ["3"], RNG, TypeError, "k must hold numbers"),
        (Constant(0.3), [3], None, TypeError, "rng must be"),
        (Constant(0.3), [3], 7, TypeError, "rng must be"),
        (0.3, [3], RNG, TypeError, "meta must be"),
    ],
)
def test_bad_arguments_of_sample_users_are_refused(
    meta: Any, k: Any, rng: Any, error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        sample_users(meta, k, rng)
