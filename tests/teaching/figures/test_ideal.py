"""Figures of the chapter "The ideal private estimator" draw what they are given."""

import numpy as np
import pytest

from hetlit import Users
from hetlit.teaching.figures import ideal as plots
from tests.figures import EveryFigure, lines, notes, panels, same

ROWS = {"people": (0.0095, 0.0014), "best": (0.0065, 0.047)}
USERS = Users(k=[2, 2, 100], successes=[0, 1, 60], counts=[3, 5, 1])
K = np.array([1.0, 10.0, 100.0])
HALF = np.array([0.9, 0.4, 0.2])
THRESHOLDS = np.array([1.0, 2.0, 4.0, 8.0])
SAMPLING = np.array([6e-5, 5e-5, 4e-5, 4e-5])
NOISE = np.array([1e-5, 1e-5, 3e-5, 2e-4])
WEIGHTS = {"none": K / 111, "one": np.array([0.1, 0.3, 0.5]), "two": K * 0 + 0.45}
EPSILON = np.array([0.1, 0.3, 1.0, 3.0])
DEVIATION = np.array([0.1, 0.04, 0.02, 0.01])
N = np.array([1000, 10_000, 100_000])
SCALED = {"naive": np.array([4.0, 10.0, 29.0]), "both": np.array([0.7, 0.6, 0.55])}
MOVES = {"paper": np.array([0.33, 0.2, 0.15]), "best": np.full(3, 0.24)}
RATIOS = {"clipped": np.array([4.0, 2.0, 1.1, 1.0]), "not": np.array([40, 9.0, 2, 1.1])}
P = np.array([0.001, 0.01, 0.1])
SHARES = {"1": np.array([0.1, 0.5, 1.0]), "10": np.array([0.5, 0.9, 1.0])}
PREDICTED = np.array([9e-3, 3e-3, 9e-4, 5e-4])
SIMULATED = (PREDICTED * 1.02, PREDICTED * 0.01)

FIGURES = {
    "two_errors": lambda: plots.two_errors(ROWS),
    "intervals": lambda: plots.intervals(USERS, 0.5, K, HALF),
    "trade_off": lambda: plots.trade_off(THRESHOLDS, SAMPLING, NOISE, 2.0, (1.5, 7.0)),
    "water": lambda: plots.water([1, 8, 4, 2], level=3.0, width=2.0),
    "weight_curves": lambda: plots.weight_curves(K, WEIGHTS),
    "two_limits": lambda: plots.two_limits(EPSILON, DEVIATION, 0.009, 0.01 / EPSILON),
    "rates": lambda: plots.rates(N, SCALED),
    "ceilings": lambda: plots.ceilings(["8", "4", "1"], MOVES),
    "families": lambda: plots.families(EPSILON, RATIOS),
    "clipping_bias": lambda: plots.clipping_bias(P, SHARES),
    "prediction_check": lambda: plots.prediction_check(
        EPSILON, PREDICTED, SIMULATED, 4e-4
    ),
}


class TestEveryFigure(EveryFigure):
    figures = FIGURES


def rectangles(figure):
    """Return (left, bottom, width, height) of every bar, in the order drawn."""
    return [
        (*patch.get_xy(), patch.get_width(), patch.get_height())
        for container in figure.axes[0].containers
        for patch in container
    ]


def test_two_errors_marks_both_and_their_total():
    sampling, noise, total = lines(plots.two_errors(ROWS))
    assert same(sampling, [0.0095, 0.0065], [1, 0])
    assert same(noise, [0.0014, 0.047], [1, 0])
    assert same(total, np.hypot([0.0095, 0.0065], [0.0014, 0.047]), [1, 0])


def test_intervals_end_at_zero_and_one():
    figure = plots.intervals(USERS, 0.5, K, HALF)
    low, high, middle = lines(figure)
    assert same(low, K, [0, 0.1, 0.3])
    assert same(high, K, [1, 0.9, 0.7])
    assert np.allclose(middle[1], 0.5)
    _, discs = panels(figure)[0].collections
    assert discs.get_offsets().tolist() == [[2, 0], [2, 0.5], [100, 0.6]]
    areas = discs.get_sizes()
    assert np.allclose(areas / areas[2], [3, 5, 1])


def test_trade_off_draws_the_sum_in_ten_thousandths_and_marks_the_best():
    figure = plots.trade_off(THRESHOLDS, SAMPLING, NOISE, 2.0, (1.5, 7.0))
    left, right, total, noise, sampling, best = lines(figure)
    assert (left[0][0], right[0][0]) == (1.5, 7.0)
    assert same(total, THRESHOLDS, [0.7, 0.6, 0.7, 2.4])
    assert same(noise, THRESHOLDS, 1e4 * NOISE)
    assert same(sampling, THRESHOLDS, 1e4 * SAMPLING)
    assert same(best, [2], [0.6])
    assert notes(figure)[0] == "$T^*$ = 2"


def test_water_cut_off_the_bars_fills_the_tank():
    figure = plots.water([1, 8, 4, 2], level=3.0, width=2.0)
    drawn = rectangles(figure)
    kept, cut, (tank,) = drawn[:4], drawn[4:6], drawn[6:]
    assert [bar[3] for bar in kept] == [3, 3, 2, 1]
    assert [bar[1] for bar in cut] == [3, 3]
    assert [bar[3] for bar in cut] == [5, 1]
    assert tank[2:] == (2, 3)
    assert sum(bar[2] * bar[3] for bar in cut) == tank[2] * tank[3]


def test_weight_curves_name_the_lower_of_two_close_ones_below_its_end():
    figure = plots.weight_curves(K, WEIGHTS)
    for drawn, values in zip(lines(figure), WEIGHTS.values(), strict=True):
        assert same(drawn, K, values)
    heights = [text.get_va() for text in panels(figure)[0].texts]
    assert notes(figure) == list(WEIGHTS)
    assert heights == ["bottom", "bottom", "top"]


def test_two_limits_draws_the_release_between_its_limits():
    figure = plots.two_limits(EPSILON, DEVIATION, 0.009, 0.01 / EPSILON)
    without, noise, release = lines(figure)
    assert np.allclose(without[1], 0.009)
    assert same(noise, EPSILON, 0.01 / EPSILON)
    assert same(release, EPSILON, DEVIATION)


def test_rates_give_the_first_series_a_panel_of_its_own():
    figure = plots.rates(N, SCALED)
    assert same(lines(figure, 0)[0], N, SCALED["naive"])
    assert same(lines(figure, 1)[0], N, SCALED["both"])
    assert (notes(figure, 0), notes(figure, 1)) == (["naive"], ["both"])


def test_ceilings_draw_each_move_and_the_largest_of_each_rule():
    figure = plots.ceilings(["8", "4", "1"], MOVES)
    heights = [bar[3] for bar in rectangles(figure)]
    assert np.allclose(heights, [0.33, 0.2, 0.15, 0.24, 0.24, 0.24])
    levels = [line[1][0] for line in lines(figure)]
    assert np.allclose(levels, [0.33, 0.24])


def test_families_and_clipping_bias_draw_each_curve():
    for figure, x, series in (
        (plots.families(EPSILON, RATIOS), EPSILON, RATIOS),
        (plots.clipping_bias(P, SHARES), P, SHARES),
    ):
        for drawn, values in zip(lines(figure), series.values(), strict=False):
            assert same(drawn, x, values)
        assert notes(figure) == list(series)
        assert np.allclose(lines(figure)[-1][1], 1)


def test_prediction_check_draws_two_standard_errors_and_ratios():
    figure = plots.prediction_check(EPSILON, PREDICTED, SIMULATED, 4e-4)
    for axes, unit in zip(figure.axes, (np.ones(4), PREDICTED), strict=True):
        ((points, _, (spans,)),) = axes.containers
        low, high = np.array(spans.get_segments())[:, :, 1].T
        assert np.allclose(points.get_ydata(), SIMULATED[0] / unit)
        assert np.allclose(high - low, 4 * SIMULATED[1] / unit)
    assert same(lines(figure, 1)[0], EPSILON, 1)


def test_ticks_are_round_numbers_inside_the_range():
    ticks = plots.two_errors(ROWS).axes[0].get_xticks()
    assert np.allclose(ticks, [0.002, 0.005, 0.01, 0.02, 0.05])


def test_more_series_than_looks_are_refused_and_not_dropped():
    six = {str(i): np.ones(3) for i in range(6)}
    for draw in (plots.weight_curves, plots.rates, plots.clipping_bias):
        with pytest.raises(ValueError, match="zip"):
            draw(N, six)
