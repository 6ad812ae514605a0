"""The explorer of a user's variance shows the lemma, and its sentences are true."""

import itertools

import numpy as np
import pytest

from hetlit import user_variance
from hetlit.explorers.model import SIZES, VARIANCE
from hetlit.explorers.picture import NOTHING, coordinates, counted, percent

HELD, SPREADS, MEANS = (parameter.values for parameter in VARIANCE.parameters)
GRID = list(itertools.product(SPREADS, MEANS))


def marks_of(size, spread, p):
    """Return the arrays of every mark by its name."""
    (panel,) = VARIANCE.at(size=size, spread=spread, p=p).panels
    return {mark.name: coordinates(mark) for mark in panel.marks}


@pytest.mark.parametrize(("spread", "p"), GRID)
def test_coins_and_people_add_up_to_the_lemma(spread, p):
    marks = marks_of(20, spread, p)
    total, coins = marks["total"]["y"], marks["coins: her samples"]["y"]
    people = marks["people: her rate"]["y"][0]
    assert np.allclose(total, user_variance(SIZES, p, spread**2))
    assert np.allclose(coins + people, total, atol=2 * NOTHING)
    # Exactly 1/k and level, which are the two slopes of the picture.
    assert np.allclose(coins * SIZES, coins[0]) or coins[0] == NOTHING
    assert people == max(spread**2, NOTHING)


@pytest.mark.parametrize("size", HELD)
@pytest.mark.parametrize(("spread", "p"), GRID)
def test_the_reading_is_about_the_marked_user(size, spread, p):
    picture = VARIANCE.at(size=size, spread=spread, p=p)
    marker = marks_of(size, spread, p)["this user"]
    variance, q = user_variance(size, p, spread**2), p * (1 - p)
    assert (marker["x"], marker["y"]) == (size, pytest.approx(variance))
    share = max(round(q - spread**2, 12), 0.0) / size / variance
    assert f"with {counted(size, 'sample')} has" in picture.reading
    assert f"; {percent(share)} of the variance comes from" in picture.reading
    assert f"as much as {counted(q / variance, 'user')} with" in picture.reading


@pytest.mark.parametrize(("spread", "p"), GRID)
def test_past_the_corner_more_data_are_worth_little(spread, p):
    q = p * (1 - p)
    if spread == 0:  # it never levels off: ten times the data, a tenth of the variance
        assert user_variance(10_000, p, 0.0) == pytest.approx(q / 10_000)
        return
    corner = q / spread**2
    # From there on not even infinitely many samples double what a user is worth.
    assert user_variance(corner, p, spread**2) <= 2 * spread**2
