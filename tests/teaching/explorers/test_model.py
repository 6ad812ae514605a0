"""The explorer of a user's variance shows the lemma, and its sentences are true."""

import itertools
import math
import re

import numpy as np
import pytest

from hetlit import user_variance
from hetlit.teaching.explorers.model import VARIANCE
from hetlit.teaching.explorers.picture import (
    NOTHING,
    coordinates,
    counted,
    number,
    percent,
)

HELD, SPREADS, MEANS = (parameter.values for parameter in VARIANCE.parameters)
GRID = list(itertools.product(SPREADS, MEANS))


@pytest.mark.parametrize("size", HELD)
@pytest.mark.parametrize(("spread", "p"), GRID)
def test_every_mark_is_what_it_says(size, spread, p):
    (panel,) = VARIANCE.at(size=size, spread=spread, p=p).panels
    marks = {mark.name: coordinates(mark) for mark in panel.marks}
    people, coins = marks["people: her rate"], marks["coins: her samples"]
    total, user = marks["total"], marks["this user"]
    assert len(marks) == 4
    for line in (people, coins, total):
        assert line["x"][[0, -1]] == pytest.approx([1.0, 10_000.0])
    assert np.allclose(people["y"], max(spread**2, NOTHING), rtol=1e-12, atol=0.0)
    # Level and exactly 1/k: the two slopes of the picture, which add up to the lemma.
    assert np.allclose(coins["y"] * coins["x"], p * (1 - p) - spread**2)
    assert np.allclose(total["y"], user_variance(total["x"], p, spread**2))
    assert np.allclose(coins["y"] + spread**2, total["y"])
    variance = user_variance(size, p, spread**2)
    assert user["x"] == [size]
    assert user["y"] == pytest.approx([variance])


@pytest.mark.parametrize("size", HELD)
@pytest.mark.parametrize(("spread", "p"), GRID)
def test_every_number_of_the_reading_is_what_it_says(size, spread, p):
    reading = VARIANCE.at(size=size, spread=spread, p=p).reading
    q = p * (1 - p)
    coins = (q - spread**2) / size
    variance = coins + spread**2
    sd, worth = number(math.sqrt(variance)), counted(q / variance, "user")
    assert f"with {counted(size, 'sample')} has a mean with standard" in reading
    assert f"standard deviation {sd}; " in reading
    assert f"as much as {worth} with one sample." in reading
    # Some shares are 37.5%, which may be written as 37% or 38%.
    found = re.search("; (.*) of the variance comes from the coins", reading)
    assert found
    share = found[1]
    assert share in {percent(coins / variance + off) for off in (-1e-9, 0.0, 1e-9)}
    assert (share == "100%") == (spread == 0)


@pytest.mark.parametrize(("spread", "p"), GRID)
def test_past_the_corner_more_data_are_worth_little(spread, p):
    q = p * (1 - p)
    if spread == 0:  # it never levels off: ten times the data, a tenth of the variance
        assert user_variance(10_000, p, 0.0) == pytest.approx(q / 10_000)
        return
    corner = q / spread**2
    # From there on not even infinitely many samples double what a user is worth.
    assert user_variance(corner, p, spread**2) <= 2 * spread**2
