"""The plain mean as a method for private sizes."""

from __future__ import annotations

from typing import Any

import pytest

from hetlit import Users, estimate_private_k
from hetlit.estimators.private_k.plain import estimate_plain_k
from hetlit.privacy.ledger import PRIVATE_SIZES
from tests.neighbours import SMALL
from tests.quiet import Scripted, generator


def test_its_word_is_plain_and_it_spends_no_delta() -> None:
    one = estimate_private_k(
        SMALL, 1.0, k_max=20, method="plain", delta=1e-6, rng=generator()
    )
    two = estimate_plain_k(SMALL, 1.0, k_max=20, rng=generator())
    assert one == two
    assert one.ledger.neighbours == PRIVATE_SIZES
    assert (one.ledger.epsilon, one.ledger.delta) == (1.0, 0.0)


def test_it_spends_all_of_epsilon_on_one_noise() -> None:
    source = Scripted()
    estimate_plain_k(SMALL, 0.5, k_max=20, rng=source)
    assert source.scales == [1.0 / (100 * 0.5)]


@pytest.mark.parametrize(
    ("change", "error", "named"),
    [
        ({"users": [(3, 1)]}, TypeError, "users"),
        ({"users": Users([21], [3])}, ValueError, "k_max must be at least"),
        ({"k_max": None}, TypeError, "k_max is missing"),
        ({"epsilon": 0.0}, ValueError, "epsilon"),
        ({"trace": 1}, TypeError, "trace"),
        ({"rng": 7}, TypeError, "rng"),
        ({"beta": 0.1}, TypeError, "beta"),
    ],
)
def test_bad_arguments_are_named(
    change: dict[str, Any], error: type[Exception], named: str
) -> None:
    given: dict[str, Any] = {
        "users": SMALL,
        "epsilon": 1.0,
        "k_max": 20,
        "rng": generator(),
    }
    with pytest.raises(error, match=named):
        estimate_plain_k(**(given | change))
