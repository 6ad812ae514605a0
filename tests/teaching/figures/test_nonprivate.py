"""Figures of the chapter "Without privacy" draw what they are given."""

import numpy as np
import pytest

from hetlit.teaching.figures import nonprivate as plots
from tests.figures import EveryFigure, lines, notes, panels, same

SPREADS = np.array([0.0, 0.1, 0.2])
DEVIATIONS = {"people": np.array([3.0, 3.1, 3.3]), "samples": np.array([1.0, 4.0, 9.0])}
MARKS = {"people": 0.5, "best": 0.75, "samples": 0.98}
RATIOS = {
    "equal": {"people": 1.0, "samples": 1.0},
    "few": {"people": 2.0, "samples": 9.0},
}
K = np.array([100, 1, 10])
WEIGHTS = {
    "samples": K / 111,
    "best": np.array([0.6, 0.1, 0.3]),
    "people": K * 0 + 1 / 3,
}
N = np.array([10, 100, 1000])
THEORY = {"mean": 1.0 / N, "midrange": 1.0 / N**2}
SIMULATED = {name: (values * 1.1, values * 0.2) for name, values in THEORY.items()}
CORNERS = np.array([1.0, 21.0, 1000.0])
COSTS = {"harmonic": np.array([1.4, 1.0, 3.0]), "few": np.array([1.2, 1.0, 4.0])}
ASIDE = {"spread 0": np.array([1.7, 1.5, 1.4]), "spread 0.1": np.array([1.3, 1.1, 1.0])}
GIVEN = {name: values + 0.02 for name, values in ASIDE.items()}
FOUND = {name: (values + 0.1, values * 0.05) for name, values in ASIDE.items()}

FIGURES = {
    "crossing": lambda: plots.crossing(SPREADS, DEVIATIONS),
    "parabola": lambda: plots.parabola((0.04, 0.12), MARKS),
    "relative_variances": lambda: plots.relative_variances(RATIOS),
    "weight_profiles": lambda: plots.weight_profiles(K, WEIGHTS, 21.0),
    "rivals": lambda: plots.rivals(N, THEORY, SIMULATED),
    "corner_costs": lambda: plots.corner_costs(CORNERS, COSTS, 21.0),
    "cohorts": lambda: plots.cohorts(np.arange(1, 101), top=5, bottom=10),
    "set_aside": lambda: plots.set_aside(N, ASIDE),
    "plug_in_check": lambda: plots.plug_in_check(N, ASIDE, GIVEN, FOUND),
}


class TestEveryFigure(EveryFigure):
    figures = FIGURES


def bars(container):
    """Return the heights of the points and the lengths of their bars."""
    points, _, (spans,) = container
    low, high = np.array(spans.get_segments())[:, :, 1].T
    return points.get_ydata(), high - low


def test_crossing_draws_and_names_each_average():
    figure = plots.crossing(SPREADS, DEVIATIONS)
    for drawn, values in zip(lines(figure), DEVIATIONS.values(), strict=True):
        assert same(drawn, SPREADS, values)
    assert notes(figure) == list(DEVIATIONS)


def test_parabola_is_the_variance_and_its_best_mark_is_the_lowest_point():
    curve, marks = lines(plots.parabola((0.04, 0.12), MARKS))
    assert same(curve, curve[0], curve[0] ** 2 * 0.04 + (1 - curve[0]) ** 2 * 0.12)
    assert marks[0].tolist() == list(MARKS.values())
    assert np.isclose(marks[1][1], 0.03)
    assert np.isclose(curve[1].min(), marks[1][1])


def test_relative_variances_has_a_row_for_each_profile_and_a_line_at_one():
    figure = plots.relative_variances(RATIOS)
    people, samples, best = lines(figure)
    assert same(people, [1, 2], [1, 0])
    assert same(samples, [1, 9], [1, 0])
    assert np.allclose(best[0], 1)
    labels = [label.get_text() for label in figure.axes[0].get_yticklabels()]
    assert labels == list(RATIOS)


def test_weight_profiles_sort_users_by_size():
    figure = plots.weight_profiles(K, WEIGHTS, 21.0)
    samples, best, people, corner = lines(figure)
    assert same(samples, [1, 10, 100], np.array([1, 10, 100]) / 111)
    assert same(best, [1, 10, 100], [0.1, 0.3, 0.6])
    assert same(people, [1, 10, 100], 1 / 3)
    assert np.allclose(corner[0], 21)
    assert K.tolist() == [100, 1, 10]  # the input is not sorted


def test_rivals_draw_the_formulas_and_two_standard_errors():
    figure = plots.rivals(N, THEORY, SIMULATED)
    (axes,) = figure.axes
    assert notes(figure) == list(THEORY)
    for container, name in zip(axes.containers, THEORY, strict=True):
        values, errors = SIMULATED[name]
        heights, lengths = bars(container)
        assert np.allclose(heights, values)
        assert np.allclose(lengths, 4 * errors)
    drawn = [line for line in lines(figure) if same(line, N, THEORY["midrange"])]
    assert len(drawn) == 1


def test_corner_costs_stay_in_a_band_that_closes_at_the_truth():
    figure = plots.corner_costs(CORNERS, COSTS, 21.0)
    for drawn, values in zip(lines(figure), COSTS.values(), strict=False):
        assert same(drawn, CORNERS, values)
    (band,) = panels(figure)[0].collections
    corners = band.get_paths()[0].vertices
    at = {x: corners[np.isclose(corners[:, 0], x), 1] for x in CORNERS}
    assert np.allclose(at[21.0], 1)
    assert np.isclose(at[1.0].max(), 22**2 / 84)
    assert np.isclose(at[1000.0].max(), (1 + 1000 / 21) ** 2 / (4000 / 21))


def test_cohorts_are_the_largest_the_smallest_and_the_rest():
    figure = plots.cohorts(np.arange(1, 101), top=5, bottom=10)
    top, middle, bottom, *edges = lines(figure)
    assert top[1].tolist() == [100, 99, 98, 97, 96]
    assert middle[1].tolist() == list(range(95, 10, -1))
    assert bottom[1].tolist() == list(range(10, 0, -1))
    assert bottom[0].tolist() == list(range(91, 101))
    assert [edge[0][0] for edge in edges] == [5.5, 90.5]
    assert notes(figure)[1] == "85 users:\nestimate"


def test_set_aside_draws_each_price():
    figure = plots.set_aside(N, ASIDE)
    for drawn, values in zip(lines(figure), ASIDE.values(), strict=False):
        assert same(drawn, N, values)
    assert notes(figure) == list(ASIDE)


def test_plug_in_check_has_a_panel_for_each_spread():
    figure = plots.plug_in_check(N, ASIDE, GIVEN, FOUND)
    assert [axes.get_title() for axes in figure.axes] == list(ASIDE)
    for panel, name in enumerate(ASIDE):
        _, aside, given, *_ = lines(figure, panel)
        assert same(aside, N, ASIDE[name])
        assert same(given, N, GIVEN[name])
        (container,) = figure.axes[panel].containers
        heights, lengths = bars(container)
        assert np.allclose(heights, FOUND[name][0])
        assert np.allclose(lengths, 4 * FOUND[name][1])


def test_more_series_than_looks_are_refused_and_not_dropped():
    six = {str(i): np.ones(3) for i in range(6)}
    for draw in (plots.crossing, plots.set_aside):
        with pytest.raises(ValueError, match="zip"):
            draw(N, six)
