"""Pictures refuse what cannot be drawn, and write numbers plainly."""

import numpy as np
import pytest

from hetlit.teaching.explorers import Axis, Band, Line, Panel
from hetlit.teaching.explorers.picture import Points, number, percent


@pytest.mark.parametrize(
    ("low", "high", "log"),
    [(1.0, 1.0, False), (0.0, 1.0, True), (2.0, 1.0, False), (0.0, np.inf, False)],
)
def test_an_axis_needs_room(low, high, log):
    with pytest.raises(ValueError, match="axis"):
        Axis("x", low, high, log=log)


def test_a_log_axis_has_powers_of_ten_or_more():
    assert Axis("x", 1, 1000, log=True).ticks == (1, 10, 100, 1000)
    assert Axis("x", 0.5, 20, log=True).ticks == (0.5, 1, 2, 5, 10, 20)
    assert Axis("x", 1e5, 1e7, log=True).texts == ("100,000", "10⁶", "10⁷")


@pytest.mark.parametrize(
    "mark",
    [
        Line([0, 1], [0], "blue"),
        Line([0, 1], [0, np.nan], "blue"),
        Line([0, 1], [0, 1], "red"),
        Points([0.5], [-1.0], "blue"),
        Band([0.5, 1.0], [0.0, 1.0], [1.0, 1.0], "blue"),
    ],
)
def test_a_mark_that_cannot_be_drawn_is_refused(mark):
    with pytest.raises(ValueError, match=r"shape|finite|look|NOTHING"):
        Panel(Axis("x", 0, 1), Axis("y", 0.1, 1, log=True), (mark,))


def test_numbers_are_written_without_exponents():
    assert number(999_999.0) == "10⁶"
    assert number(0.1 + 0.2) == "0.3"
    assert number(1 / 3, 2) == "0.33"
    assert percent(0.1234) == "12%"
