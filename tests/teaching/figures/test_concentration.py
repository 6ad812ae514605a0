"""Figures of the chapter "How wide is a user?" draw what they are given."""

import numpy as np
import pytest

from hetlit import Users
from hetlit.teaching.figures import concentration as plots
from tests.figures import EveryFigure, lines, notes, panels, same

K = np.array([1, 10, 100, 1000])
P = 0.3
USERS = Users(k=[4, 4, 1, 900], successes=[1, 1, 0, 300], counts=[1, 2, 5, 1])
WIDTHS = {
    "exact": np.array([0.7, 0.6, 0.27, 0.2]),
    "bound": np.array([2.3, 0.76, 0.32, 0.24]),
}
GAPS = {**WIDTHS, "late": np.array([np.nan, np.nan, 0.4, 0.3])}
N = np.array([1, 1000, 10**6])
GROWTH = {"slow": np.array([0.1, 0.2, 0.3]), "fast": np.array([0.2, 7.0, 214.0])}
PLACES = {"slow": (0, -6), "fast": (0, 6)}
S = np.array([-8.0, -1.0, 1.0, 14.0])
COIN = {0.5: np.array([0.1, 0.24, 0.24, 0.06]), 0.1: np.array([0.02, 0.07, 0.1, 0.1])}
RATES = np.array([0.1, 0.3, 0.5])
BY_RATE = {
    1: (np.array([0.9, 0.7, 0.5]), np.array([0.9] * 3), np.array([1.36] * 3)),
    10: (np.array([0.2, 0.3, 0.3]), np.array([0.2, 0.3, 0.3]), np.array([0.4] * 3)),
}
PROMISED = np.array([0.05, 0.2, 0.5])
COMPUTED = {"exact": 0.8 * PROMISED, "bound": 0.04 * PROMISED}
SIMULATED = {
    "exact": (0.79 * PROMISED, 0.01 * PROMISED),
    "bound": (0.05 * PROMISED, 0.02 * PROMISED),
}
T = np.array([0.02, 0.1, 0.3, 1.0])
PARTS = {
    "bias²": np.array([1e-4, 1e-5, 1e-9, 1e-20]),
    "sampling": np.array([1e-8, 3e-7, 4e-7, 4e-7]),
    "noise": np.array([1e-9, 1e-7, 7e-7, 2e-6]),
}
TRADE = {"light": PARTS, "heavy": {name: 3 * part for name, part in PARTS.items()}}
MARKS = {"light": {"2.75 sd": 0.18, "f": 0.3}, "heavy": {"f": 0.86}}
POINTS = {"light": (T[1:3], np.array([1e-5, 1.2e-6]), np.array([1e-6, 1e-7]))}
REACHES = {"exact $f$": np.array([4.2, 5.3, 5.7]), "best": np.array([3.0, 3.8, 4.4])}

FIGURES = {
    "funnel_with_widths": lambda: plots.funnel_with_widths(
        USERS, P, K, WIDTHS["exact"]
    ),
    "widths_by_size": lambda: plots.widths_by_size(K, WIDTHS, {"exact": 0.19}),
    "growth": lambda: plots.growth(N, GROWTH, PLACES),
    "coin_curvature": lambda: plots.coin_curvature(S, COIN),
    "width_panels": lambda: plots.width_panels(K, {"one": GAPS, "two": GAPS}),
    "widths_by_rate": lambda: plots.widths_by_rate(RATES, BY_RATE),
    "coverage": lambda: plots.coverage(PROMISED, COMPUTED, SIMULATED),
    "trade_off": lambda: plots.trade_off(T, TRADE, MARKS, POINTS),
    "best_widths": lambda: plots.best_widths(
        N, REACHES, {"exact $f$": (0, 6), "best": (0, -6)}
    ),
}


class TestEveryFigure(EveryFigure):
    figures = FIGURES


def spans(bars):
    """The lengths of the error bars."""
    _, _, (segments,) = bars
    low, high = np.array(segments.get_segments())[:, :, 1].T
    return high - low


def test_funnel_draws_both_edges_and_keeps_them_within_0_and_1():
    _, upper, lower = lines(FIGURES["funnel_with_widths"]())
    assert same(upper, K, [1.0, 0.9, 0.57, 0.5])
    assert same(lower, K, [0.0, 0.0, 0.03, 0.1])


def test_widths_by_size_draws_every_width_and_the_level_of_its_limit():
    figure = FIGURES["widths_by_size"]()
    exact, level, bound = lines(figure)
    assert same(exact, K, WIDTHS["exact"])
    assert same(bound, K, WIDTHS["bound"])
    assert np.allclose(level[1], 0.19)
    assert notes(figure) == ["exact", "exact: the rates alone", "bound"]


def test_growth_draws_and_names_the_curves_and_the_line_at_1():
    figure = FIGURES["growth"]()
    slow, fast, one = lines(figure)
    assert same(slow, N, GROWTH["slow"])
    assert same(fast, N, GROWTH["fast"])
    assert np.allclose(one[1], 1)
    assert notes(figure)[:2] == ["slow", "fast"]


def test_coin_curvature_marks_each_variance_at_zero_and_the_level_of_a_quarter():
    figure = FIGURES["coin_curvature"]()
    *drawn, quarter = lines(figure)
    for curve, dot, (p, values) in zip(
        drawn[::2], drawn[1::2], COIN.items(), strict=True
    ):
        assert same(curve, S, values)
        assert same(dot, [0], [p * (1 - p)])
    assert np.allclose(quarter[1], 0.25)
    assert [text.strip() for text in notes(figure)[:2]] == ["$p$ = 0.5", "$p$ = 0.1"]


def test_width_panels_draw_the_same_names_and_leave_gaps():
    figure = FIGURES["width_panels"]()
    assert [axes.get_title() for axes in figure.axes] == ["one", "two"]
    for panel in (0, 1):
        *drawn, one = lines(figure, panel)
        assert np.allclose(one[1], 1)
        for line, values in zip(drawn, GAPS.values(), strict=True):
            assert np.allclose(line[1], values, equal_nan=True)
    legend = panels(figure)[0].get_legend()
    assert [text.get_text() for text in legend.get_texts()] == list(GAPS)


def test_widths_by_rate_draws_three_lines_per_size():
    figure = FIGURES["widths_by_rate"]()
    assert [axes.get_title() for axes in figure.axes] == ["1 sample", "10 samples"]
    for panel, series in enumerate(BY_RATE.values()):
        for line, values in zip(lines(figure, panel), series, strict=True):
            assert same(line, RATES, values)


def test_coverage_draws_the_diagonal_and_two_standard_errors():
    figure = FIGURES["coverage"]()
    (axes,) = figure.axes
    assert same(lines(figure)[0], [0, 0.5], [0, 0.5])
    for line, values in zip((1, 3), COMPUTED.values(), strict=True):
        assert same(lines(figure)[line], PROMISED, values)
    for bars, (shares, errors) in zip(axes.containers, SIMULATED.values(), strict=True):
        assert np.allclose(bars[0].get_ydata(), shares)
        assert np.allclose(spans(bars), 4 * errors)
    assert notes(figure) == ["what is promised", *COMPUTED]


def test_trade_off_draws_the_sum_the_parts_the_marks_and_the_simulation():
    figure = FIGURES["trade_off"]()
    for panel, (title, parts) in enumerate(TRADE.items()):
        axes = figure.axes[panel]
        assert axes.get_title(loc="left") == title
        drawn = {line.get_label(): line.get_data() for line in axes.lines}
        assert same(drawn["total"], T, sum(parts.values()))
        for name, values in parts.items():
            assert same(drawn[name], T, values)
        assert notes(figure, panel) == list(MARKS[title])
        where = [x[0] for x, y in lines(figure, panel) if list(y) == [0, 1]]
        assert np.allclose(where, list(MARKS[title].values()))
    (bars,) = figure.axes[0].containers
    assert np.allclose(bars[0].get_ydata(), POINTS["light"][1])
    assert np.allclose(spans(bars), 4 * POINTS["light"][2])
    assert not figure.axes[1].containers


def test_best_widths_draws_and_names_each_curve():
    figure = FIGURES["best_widths"]()
    for line, values in zip(lines(figure), REACHES.values(), strict=True):
        assert same(line, N, values)
    assert notes(figure) == list(REACHES)


def test_more_series_than_looks_are_refused_and_not_dropped():
    many = {str(i): WIDTHS["exact"] for i in range(6)}
    with pytest.raises(ValueError, match="zip"):
        plots.widths_by_size(K, many, {})
    with pytest.raises(ValueError, match="zip"):
        plots.width_panels(K, {"one": many})
