"""The plain mean as a method for public sizes."""

from __future__ import annotations

from typing import Any

import pytest

from hetlit import estimate_public_size
from hetlit.estimators.public_size.plain import estimate_plain
from hetlit.privacy.ledger import PUBLIC_SIZES
from tests.neighbours import SMALL
from tests.quiet import Scripted, generator


def test_its_word_is_plain() -> None:
    one = estimate_public_size(SMALL, 1.0, method="plain", rng=generator())
    two = estimate_plain(SMALL, 1.0, rng=generator())
    assert one == two
    assert one.ledger.neighbours == PUBLIC_SIZES
    assert one.ledger.epsilon == 1.0


def test_it_spends_all_of_epsilon_on_one_noise() -> None:
    source = Scripted()
    estimate_plain(SMALL, 0.5, rng=source)
    assert source.scales == [1.0 / (100 * 0.5)]


@pytest.mark.parametrize(
    ("change", "error", "named"),
    [
        ({"users": [(3, 1)]}, TypeError, "users"),
        ({"epsilon": 0.0}, ValueError, "epsilon"),
        ({"trace": 1}, TypeError, "trace"),
        ({"rng": 7}, TypeError, "rng"),
        ({"beta": 0.1}, TypeError, "beta"),
    ],
)
def test_bad_arguments_are_named(
    change: dict[str, Any], error: type[Exception], named: str
) -> None:
    given: dict[str, Any] = {"users": SMALL, "epsilon": 1.0, "rng": generator()}
    with pytest.raises(error, match=named):
        estimate_plain(**(given | change))
