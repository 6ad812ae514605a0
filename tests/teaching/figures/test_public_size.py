"""Figures of the chapter "A realizable estimator" draw what they are given."""

import numpy as np
import pytest
from matplotlib.colors import to_hex

from hetlit import Users
from hetlit.teaching.figures import public_size as plots
from hetlit.teaching.looks import INK
from tests.figures import EveryFigure, lines, notes, panels, same

RATIOS = np.array([0.25, 1.0, 4.0, 16.0])
COSTS = np.array([1.0, 1.1, 2.0, 5.5])
SHIFTS = np.array([0.0, 0.1, 0.15, 0.2])
ERRORS = np.full(4, 0.05)
INSURED = np.array([1.0, 1.1, 1.2, 1.4])
SIZES = np.array([3, 900, 40, 7, 1, 1, 2, 60, 1, 5])
USERS = Users(k=[40, 7, 7, 2], successes=[12, 3, 1, 1])
LOWER, UPPER = np.array([0.2, 0, 0, 0]), np.array([0.5, 0.9, 0.9, 1])
WEIGHTS = {
    "one": np.array([0.6, 0.15, 0.15, 0.1]),
    "two": np.array([0.4, 0.2, 0.2, 0.2]),
}
BEFORE, AFTER = [0, 0, 1, 1, 2], [2, 0, 0, 1, 2]
TAKEN = np.array([1, 10, 100])
LIMIT = np.array([999.0, 99.0, 9.0])
KEPT = {"flat": np.array([0.99, 0.95, 0.9]), "steep": np.array([0.9, 0.5, 0.2])}
CHAINS = {
    "printed": {"low": 8.0, "high": 90.25, "apart": 16.0},
    "here": {"low": 1.25, "apart": 2.0},
}
N = np.array([100, 1000, 10_000])
CURVES = {"theory": np.array([9.0, 3.0, 1.0]), "other": np.array([1.0, 2.0, 4.0])}
POINTS = {
    "theory": (N, np.array([8.5, 3.1, 1.0]), np.array([0.5, 0.2, 0.1])),
    "new": (N[:2], np.array([2.0, 1.5]), np.array([0.1, 0.1])),
}
LABELS = ("users", "variance over ideal")
TABLE = {
    "zipf": {"auto": (1.0, 0.05), "plain": (8.0, 0.0)},
    "equal": {"auto": (1.1, 0.02), "plain": (1.0, 0.0)},
}
SPANS = {"anchor": (0.25, 0.29, 0.33), "value": (0.295, 0.301, 0.307)}

FIGURES = {
    "wrong_guesses": lambda: plots.wrong_guesses(
        RATIOS, (COSTS, ERRORS), SHIFTS, (100 * COSTS, ERRORS), INSURED
    ),
    "cohorts": lambda: plots.cohorts(SIZES, most=2, least=3),
    "final_step": lambda: plots.final_step(USERS, LOWER, UPPER, 0.3, WEIGHTS),
    "moves": lambda: plots.moves({"before": BEFORE, "after": AFTER}),
    "size_condition": lambda: plots.size_condition(
        TAKEN, LIMIT, {"flat": 20.0, "steep": 500.0}, KEPT, needed=0.25
    ),
    "constants": lambda: plots.constants(CHAINS),
    "comparison": lambda: plots.comparison(
        N, CURVES, POINTS, labels=LABELS, level=1.0, named_at={"new": 0}
    ),
    "comparison of curves": lambda: plots.comparison(N, CURVES, {}, labels=LABELS),
    "comparison of points": lambda: plots.comparison(N, {}, POINTS, labels=LABELS),
    "comparison, far": lambda: plots.comparison(
        N * 10**5, CURVES, {}, labels=LABELS, level=1.0
    ),
    "narrowing": lambda: plots.narrowing(SPANS, truth=0.3),
    "by_profile": lambda: plots.by_profile(TABLE, "variance over ideal"),
}


class TestEveryFigure(EveryFigure):
    figures = FIGURES


def spans(container):
    """Return the ends of the error bars of a container, smaller first."""
    _, _, (bars,) = container
    return np.array(bars.get_segments())


def test_wrong_guesses_draws_costs_with_two_standard_errors_on_both_sides():
    figure = FIGURES["wrong_guesses"]()
    left, right = figure.axes
    assert same(lines(figure, 0)[0], RATIOS, COSTS)
    assert same(lines(figure, 1)[0], SHIFTS, 100 * COSTS)
    assert any(same(line, SHIFTS, INSURED) for line in lines(figure, 1))
    for axes in (left, right):
        (container,) = axes.containers
        low, high = spans(container)[:, :, 1].T
        assert np.allclose(high - low, 4 * ERRORS)
    assert left.get_yscale() == right.get_yscale() == "log"


def test_cohorts_sort_the_largest_user_first_and_cover_everybody_once():
    figure = plots.cohorts(SIZES, most=2, least=3)
    places, sizes = (np.concatenate(part) for part in zip(*lines(figure), strict=True))
    assert [len(x) for x, _ in lines(figure)] == [2, 5, 3]
    assert np.allclose(places, (np.arange(10) + 0.5) / 10)
    assert sizes.tolist() == sorted(SIZES, reverse=True)
    assert notes(figure) == [
        "first variance\n2 users",
        "final mean\n5 users",
        "first mean\n3 users",
    ]
    assert SIZES[0] == 3  # the input is not sorted


def test_final_step_draws_intervals_in_the_order_of_sizes_and_weights_times_n():
    figure = FIGURES["final_step"]()
    points, lower, upper, centre = lines(figure, 0)
    assert same(points, USERS.k, USERS.means)
    assert same(lower, [2, 7, 7, 40], [0, 0, 0, 0.2])
    assert same(upper, [2, 7, 7, 40], [1, 0.9, 0.9, 0.5])
    assert np.allclose(centre[1], 0.3)
    one, two = lines(figure, 1)
    assert same(one, [2, 7, 7, 40], [0.4, 0.6, 0.6, 2.4])
    assert same(two, [2, 7, 7, 40], [0.8, 0.8, 0.8, 1.6])
    assert notes(figure, 1) == ["one", "two"]


def test_moves_ring_exactly_the_users_who_changed_cohort():
    figure = FIGURES["moves"]()
    squares = panels(figure)[0].lines
    ringed = [
        (float(s.get_xdata()[0]), float(s.get_ydata()[0]))
        for s in squares
        if s.get_markeredgewidth() > 0
    ]
    assert ringed == [(0, -1), (2, -1)]
    assert "".join(notes(figure)) == "VVFFMMVVFM"
    assert all(
        to_hex(s.get_markeredgecolor()) == INK.lower()
        for s in squares
        if s.get_markeredgewidth() > 0
    )


def test_size_condition_shades_what_is_allowed_and_draws_shares_in_per_cent():
    figure = FIGURES["size_condition"]()
    limit, flat, steep = lines(figure, 0)
    assert same(limit, TAKEN, LIMIT)
    assert same(flat, TAKEN, 20)
    assert same(steep, TAKEN, 500)
    first, second, needed = lines(figure, 1)
    assert same(first, TAKEN, 100 * KEPT["flat"])
    assert same(second, TAKEN, 100 * KEPT["steep"])
    assert np.allclose(needed[1], 25)
    (band,) = panels(figure)[0].collections
    assert np.isclose(band.get_paths()[0].vertices[:, 1].max(), LIMIT.max())


def test_constants_multiply_along_each_bar_and_write_the_product():
    figure = plots.constants(CHAINS)
    bars = panels(figure)[0].patches
    ends = [(bar.get_x(), bar.get_x() + bar.get_width()) for bar in bars]
    assert np.allclose(ends[:3], [(1, 8), (8, 722), (722, 11_552)])
    assert np.allclose(ends[3:], [(1, 1.25), (1.25, 2.5)])
    assert bars[0].get_facecolor() == bars[3].get_facecolor()  # the same name
    assert bars[2].get_facecolor() == bars[4].get_facecolor()
    written = notes(figure)
    assert "11,552" in written
    assert "2.5" in written
    assert "90.2" in written


def test_comparison_draws_lines_and_points_with_two_standard_errors():
    figure = FIGURES["comparison"]()
    (axes,) = panels(figure)
    drawn = lines(figure)
    assert same(drawn[0], N, CURVES["theory"])
    assert same(drawn[1], N, CURVES["other"])
    for container, (place, values, errors) in zip(
        axes.containers, POINTS.values(), strict=True
    ):
        assert same(container[0].get_data(), place, values)
        low, high = spans(container)[:, :, 1].T
        assert np.allclose(high - low, 4 * errors)
    assert axes.lines[0].get_color() == axes.containers[0][0].get_color()
    assert notes(figure) == ["theory", "other", "new"]
    assert axes.texts[0].xy == (N[-1], CURVES["theory"][-1])
    assert axes.texts[2].xy == (N[0], POINTS["new"][1][0])


def test_narrowing_draws_a_span_and_its_middle_per_row_and_the_truth():
    figure = FIGURES["narrowing"]()
    (axes,) = panels(figure)
    assert [label.get_text() for label in axes.get_yticklabels()] == list(SPANS)
    anchor, middle, value, inner, truth = lines(figure)
    assert same(anchor, [0.25, 0.33], [0, 0])
    assert same(middle, 0.29, 0)
    assert same(value, [0.295, 0.307], [-1, -1])
    assert same(inner, 0.301, -1)
    assert np.allclose(truth[0], 0.3)


def test_by_profile_has_a_row_per_profile_and_a_point_per_method():
    figure = plots.by_profile(TABLE, "variance over ideal")
    (axes,) = figure.axes
    assert [label.get_text() for label in axes.get_yticklabels()] == ["zipf", "equal"]
    auto, plain = axes.containers
    assert np.allclose(auto[0].get_xdata(), [1.0, 1.1])
    assert np.allclose(plain[0].get_xdata(), [8.0, 1.0])
    assert np.allclose(np.round(auto[0].get_ydata()), [0, -1])
    low, high = spans(auto)[:, :, 0].T
    assert np.allclose(high - low, [0.2, 0.08])
    assert axes.get_xlabel() == "variance over ideal"


def test_more_series_than_looks_are_refused_and_not_dropped():
    many = {str(i): CURVES["theory"] for i in range(6)}
    with pytest.raises(ValueError, match="zip"):
        plots.comparison(N, many, {}, labels=LABELS)
    with pytest.raises(ValueError, match="zip"):
        plots.constants({"all": {str(i): 2.0 for i in range(7)}})
