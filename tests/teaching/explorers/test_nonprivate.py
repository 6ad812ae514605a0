"""The explorer of the chapter without privacy: weights as data grow."""

import re

import numpy as np
import pytest

from hetlit import sizes, user_variance
from hetlit.teaching.explorers.nonprivate import SIZES, STEPS, WEIGHTS, P, weights
from hetlit.teaching.explorers.picture import coordinates, number, percent
from tests.explorers import values_of

TIMES, SPREADS = values_of(WEIGHTS.parameters)


def marks_of(times, spread):
    (panel,) = weights(times=times, spread=spread).panels
    return {mark.name: coordinates(mark) for mark in panel.marks}


def best_of(times, spread):
    """The best weights, from the formula of the theorem."""
    precision = 1.0 / user_variance(times * SIZES, P, spread**2)
    return precision / precision.sum()


@pytest.mark.parametrize("spread", SPREADS)
def test_every_mark_is_what_it_says(spread):
    for times in TIMES:
        rules = {
            "best: inverse variance": best_of(times, spread),
            "equal": np.full(100, 0.01),
            "in proportion to samples": SIZES / SIZES.sum(),
        }
        marks = marks_of(times, spread)
        assert marks.keys() == rules.keys()
        for name, rule in rules.items():
            users = marks[name]["x"].astype(int) - 1
            assert {0, 99} <= set(users)
            assert np.allclose(marks[name]["y"], 100.0 * rule[users])


@pytest.mark.parametrize("spread", SPREADS)
def test_every_number_of_the_reading_is_what_it_says(spread):
    for times in TIMES:
        variances = user_variance(times * SIZES, P, spread**2)
        least, best = 1.0 / np.sum(1.0 / variances), best_of(times, spread)
        rules = np.full(100, 0.01), SIZES / SIZES.sum()
        excess = [1.0 + np.sum(variances * (w - best) ** 2) / least for w in rules]
        reading = weights(times=times, spread=spread).reading
        assert (
            f"the largest of 100 users, who holds {number(100 * times)} samples, "
            f"{percent(best.max())} of the total."
        ) in reading
        assert reading.endswith(
            f" The variance is {number(excess[0])} times the least with equal weights "
            f"and {number(excess[1])} times with weights in proportion to samples."
        )


def test_the_setting_is_that_of_the_users():
    said = re.findall(r"\d[\d.]*\d|\d", WEIGHTS.setting)
    assert said == [*map(str, SIZES[:3]), number(P)]
    assert WEIGHTS.setting.startswith("A hundred users")
    assert (len(SIZES), SIZES[-1], TIMES[0]) == (100, 1, 1)


def test_the_corners_of_the_lines_show_all_hundred_users():
    assert (sizes.harmonic(100) == SIZES).all()
    steps = np.interp(np.arange(100), STEPS, SIZES[STEPS])
    assert np.allclose(steps, SIZES)


@pytest.mark.parametrize("times", TIMES)
def test_without_spread_the_best_weights_count_samples_however_many(times):
    shown = marks_of(times, 0.0)
    best, pooled = shown["best: inverse variance"], shown["in proportion to samples"]
    assert np.allclose(best["y"], pooled["y"])
    reading = weights(times=times, spread=0.0).reading
    assert reading.endswith("and 1 times with weights in proportion to samples.")


@pytest.mark.parametrize("spread", SPREADS[1:])
def test_with_any_spread_more_data_flatten_the_best_weights(spread):
    steepness = [np.divide(*best_of(times, spread)[[0, -1]]) for times in TIMES]
    assert (np.diff(steepness) < 0.0).all()
    assert steepness[-1] > 1.0
    # All variances tend to spread^2, so the ratio tends to 1.
    assert np.divide(*best_of(10**9, spread)[[0, -1]]) < 1.001


@pytest.mark.parametrize("spread", SPREADS)
def test_the_best_weights_fall_but_no_faster_than_sizes(spread):
    for times in TIMES:
        best = best_of(times, spread)
        assert (np.diff(best) <= 1e-15).all()
        assert (np.diff(best / SIZES) >= -1e-15).all()


@pytest.mark.parametrize("spread", SPREADS)
def test_everybody_s_weight_is_on_the_axis(spread):
    for times in TIMES:
        (panel,) = weights(times=times, spread=spread).panels
        for mark in panel.marks:
            values = coordinates(mark)["y"]
            assert (panel.y.low <= values).all()
            assert (values <= panel.y.high).all()
