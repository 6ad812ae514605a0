"""Figures of the chapter "First guesses" draw what they are given."""

import numpy as np
import pytest

from hetlit.teaching.figures import first_guesses as plots
from tests.figures import EveryFigure, lines, notes, panels, same

FACTORS = np.array([1 / 64, 1.0, 64.0])
SHIFTS = np.array([-0.1, 0.0, 0.3])
BY_SPREAD = {"eps 0.1": np.array([1.2, 1, 3.3]), "eps 1": np.array([5, 1, 1.1])}
BY_CENTRE = {"as it is": np.array([0.9, 1, 36]), "widened": np.array([0.9, 1, 3.3])}
N = np.array([100, 1000, 10_000])
BOUNDS = {"published": 10 / np.sqrt(N), "theorem": 1.6 / np.sqrt(N)}
ACTUAL = (1 / np.sqrt(N), 0.01 / np.sqrt(N))
C = np.linspace(0, 1, 5)
RATIOS = {"p = 0.5": (1 - C**2, 1 - C**2), "rare": (1 + C, 1 - C)}
SD = np.array([0.005, 0.02, 0.08, 0.16])
CURVE = (np.array([0.004, 0.2]), np.array([0.0, 1.0]))
SHARES = {
    "squares": (np.array([0, 0.1, 0.8, 1]), np.full(4, 0.03)),
    "median": (np.ones(4), np.full(4, 0.001)),
}
EDGES = np.power(2.0, np.arange(-4, 1))
MASSES = np.array([0.1, 0.2, 0.32, 0.2])
BINS = {
    "left": (MASSES, (MASSES + 0.01, np.full(4, 0.01)), 0.2),
    "right": (MASSES[::-1], (MASSES[::-1], np.full(4, 0.01)), 0.3),
}
OCTAVES = np.geomspace(2**-6, 2**-4, 9)
OUTPUTS = {"published": np.full(9, 16.0), "lower": np.full(9, 4.0)}
USERS = {"offered": 22.8, "one difference": 413_328.0, "an answer": 3.3e11}
K = np.array([2, 10, 1000])
MOMENTS = {"one": np.array([1.2, 1.5, 1.6]), "other": np.array([2.4, 1.8, 1.7])}
MOMENT_BOUNDS = {"loose": np.full(3, 54.0), "tighter": np.array([30.0, 18, 14])}
GRID = np.power(2.0, np.arange(-5, 1))
STEPS = np.array([0, 0.1, 0.3, 0.6, 0.9, 1])
LAWS = {"few": np.full(6, 1 / 6), "many": np.array([0, 0, 0.1, 0.8, 0.1, 0])}
LOSSES = {"by rank": np.array([0.5, 1, 5]), "at random": np.array([0.3, 0.1, 0])}
COHORTS = np.array([4, 8, 40])
PAIRS = np.array([10, 50, 400])
PROMISED = (np.array([10.0, 100, 400]), np.array([0, 0, 1.0]))
KEPT = {
    "coins": (np.array([0.4, 0.95, 1]), np.array([0.03, 0.01, 0.005])),
    "skewed": (np.array([0.5, 0.9, 1]), np.array([0.03, 0.02, 0.005])),
}
TRUE = np.array([0.0, 0.05, 0.2])
GUESSES = {
    10: (np.zeros(3), np.array([0, 0, 0.16]), np.array([0.11, 0.16, 0.22])),
    1000: (TRUE * 0.9, TRUE, TRUE * 1.2),
}
SHARE = np.array([0.01, 0.1, 0.5])
VARIANCES = {
    "few": (np.array([1.01, 1.2, 4]), np.array([1.01, 1.3, 5])),
    "many": (np.array([0.9, 0.7, 1.2]), np.array([0.95, 0.8, 2])),
}

FIGURES = {
    "wrong_guesses": lambda: plots.wrong_guesses(FACTORS, BY_SPREAD, SHIFTS, BY_CENTRE),
    "mean_errors": lambda: plots.mean_errors(N, BOUNDS, ACTUAL),
    "variance_wedge": lambda: plots.variance_wedge(C, RATIOS),
    "squares_and_median": lambda: plots.squares_and_median(SD, CURVE, SHARES),
    "difference_bins": lambda: plots.difference_bins(EDGES, BINS),
    "output_factors": lambda: plots.output_factors(OCTAVES, OUTPUTS, (1, 8)),
    "user_numbers": lambda: plots.user_numbers(USERS),
    "third_moments": lambda: plots.third_moments(K, MOMENTS, MOMENT_BOUNDS),
    "median_choice": lambda: plots.median_choice(GRID, STEPS, LAWS, 0.2),
    "pairing_losses": lambda: plots.pairing_losses(COHORTS, LOSSES, 1.0),
    "success_rates": lambda: plots.success_rates(PAIRS, PROMISED, KEPT),
    "spread_guesses": lambda: plots.spread_guesses(TRUE, GUESSES, 0.21),
    "budget_shares": lambda: plots.budget_shares(SHARE, VARIANCES),
}


class TestEveryFigure(EveryFigure):
    figures = FIGURES


def measured(axes):
    """Return (x, value, half the length of the bar) for each series with bars."""
    found = []
    for points, _, (spans,) in axes.containers:
        low, high = np.array(spans.get_segments())[:, :, 1].T
        found.append((*points.get_data(), (high - low) / 2))
    return found


def bars_are(drawn, estimates, errors):
    """Do the bars show these estimates and two standard errors either way?"""
    _, values, halves = drawn
    return np.allclose(values, estimates) and np.allclose(halves, 2 * errors)


def legend(axes):
    return [text.get_text() for text in axes.get_legend().get_texts()]


def test_wrong_guesses_has_a_panel_for_the_spread_and_one_for_the_centre():
    figure = plots.wrong_guesses(FACTORS, BY_SPREAD, SHIFTS, BY_CENTRE)
    for panel, (x, costs) in enumerate([(FACTORS, BY_SPREAD), (SHIFTS, BY_CENTRE)]):
        one, *drawn = lines(figure, panel)
        assert set(one[1]) == {1.0}
        for line, cost in zip(drawn, costs.values(), strict=True):
            assert same(line, x, cost)
        assert legend(figure.axes[panel]) == list(costs)


def test_mean_errors_draws_every_bound_and_what_happened_with_its_error():
    figure = plots.mean_errors(N, BOUNDS, ACTUAL)
    for line, bound in zip(lines(figure), BOUNDS.values(), strict=False):
        assert same(line, N, bound)
    (drawn,) = measured(figure.axes[0])
    assert bars_are(drawn, *ACTUAL)
    assert sorted(legend(figure.axes[0])) == sorted([*BOUNDS, "actual, simulated"])


def test_variance_wedge_shades_one_plus_minus_c_and_draws_both_sides():
    figure = plots.variance_wedge(C, RATIOS)
    (wedge,) = panels(figure)[0].collections
    heights = wedge.get_paths()[0].vertices[:, 1]
    assert (heights.min(), heights.max()) == (0, 2)
    sides = [side for pair in RATIOS.values() for side in pair]
    for line, side in zip(lines(figure), sides, strict=True):
        assert same(line, C, side)
    assert legend(figure.axes[0]) == list(RATIOS)


def test_squares_and_median_draws_the_formula_and_both_simulations():
    figure = plots.squares_and_median(SD, CURVE, SHARES)
    assert same(lines(figure)[0], *CURVE)
    drawn = measured(figure.axes[0])
    for bars, (values, errors) in zip(drawn, SHARES.values(), strict=True):
        assert np.allclose(bars[0], SD)
        assert bars_are(bars, values, errors)
    assert notes(figure) == list(SHARES)


def test_difference_bins_draws_masses_between_edges_and_marks_the_deviation():
    figure = plots.difference_bins(EDGES, BINS)
    for axes, (title, (masses, simulated, sd)) in zip(
        panels(figure), BINS.items(), strict=True
    ):
        bars = axes.patches
        assert np.allclose([bar.get_height() for bar in bars], masses)
        assert np.allclose([bar.get_x() for bar in bars], EDGES[:-1])
        assert np.allclose([bar.get_width() for bar in bars], np.diff(EDGES))
        assert axes.get_title() == title
        points, _, _ = axes.containers[1]
        assert np.allclose(points.get_ydata(), simulated[0])
        assert np.allclose(points.get_xdata() ** 2, EDGES[1:] * EDGES[:-1])
        assert set(axes.lines[-1].get_xdata()) == {sd}


def test_output_factors_shades_the_promise_and_ticks_powers_of_two():
    figure = plots.output_factors(OCTAVES, OUTPUTS, (1, 8))
    for line, values in zip(lines(figure), OUTPUTS.values(), strict=True):
        assert same(line, OCTAVES, values)
    (band,) = figure.axes[0].patches
    span = band.get_extents().transformed(figure.axes[0].transData.inverted())
    assert np.allclose([span.y0, span.y1], [1, 8])
    assert figure.axes[0].get_xticks().tolist() == [2**-6, 2**-5, 2**-4]
    assert legend(figure.axes[0]) == list(OUTPUTS)


def test_user_numbers_are_written_beside_their_points():
    figure = plots.user_numbers(USERS)
    assert same(lines(figure)[0], list(USERS.values()), [2, 1, 0])
    assert notes(figure) == ["23", "413,328", "$3.3\\times10^{11}$"]
    names = [tick.get_text() for tick in figure.axes[0].get_yticklabels()]
    assert names == list(USERS)


def test_third_moments_draws_populations_and_names_bounds():
    figure = plots.third_moments(K, MOMENTS, MOMENT_BOUNDS)
    expected = [*MOMENTS.values(), *MOMENT_BOUNDS.values()]
    for line, values in zip(lines(figure), expected, strict=True):
        assert same(line, K, values)
    assert legend(figure.axes[0]) == list(MOMENTS)
    assert notes(figure) == list(MOMENT_BOUNDS)


def test_median_choice_draws_the_shares_the_laws_and_the_target():
    figure = plots.median_choice(GRID, STEPS, LAWS, 0.2)
    shares, half, target = lines(figure, 0)
    assert same(shares, GRID, STEPS)
    assert set(half[1]) == {0.5}
    assert set(target[0]) == {0.2}
    stairs = panels(figure)[1].patches
    for step, law in zip(stairs, LAWS.values(), strict=True):
        values, edges, _ = step.get_data()
        assert np.allclose(values, law)
        assert np.allclose(edges[1:], GRID)  # cells end at grid points
    assert legend(figure.axes[1]) == list(LAWS)


def test_pairing_losses_draws_the_promise_and_every_way_to_pair():
    figure = plots.pairing_losses(COHORTS, LOSSES, 1.0)
    promise, *drawn = lines(figure)
    assert set(promise[1]) == {1.0}
    for line, values in zip(drawn, LOSSES.values(), strict=True):
        assert same(line, COHORTS, values)
    assert notes(figure) == ["what was promised", *LOSSES]


def test_success_rates_draws_the_bound_and_two_standard_errors():
    figure = plots.success_rates(PAIRS, PROMISED, KEPT)
    assert same(lines(figure)[0], *PROMISED)
    drawn = measured(figure.axes[0])
    for bars, (values, errors) in zip(drawn, KEPT.values(), strict=True):
        assert np.allclose(bars[0], PAIRS, rtol=0.05)
        assert bars_are(bars, values, errors)
    assert sorted(legend(figure.axes[0])) == sorted(["proved, at least", *KEPT])


def test_spread_guesses_draws_ranges_a_diagonal_and_the_coins():
    figure = plots.spread_guesses(TRUE, GUESSES, 0.21)
    assert [axes.get_title() for axes in figure.axes] == ["10 samples", "1,000 samples"]
    for axes, (k, (low, middle, high)) in zip(
        figure.axes, GUESSES.items(), strict=True
    ):
        diagonal = axes.lines[0].get_data()
        assert np.allclose(*diagonal)
        ((points, _, (spans,)),) = axes.containers
        assert np.allclose(points.get_ydata(), middle)
        ends = np.array(spans.get_segments())[:, :, 1].T
        assert np.allclose(ends, [low, high])
        (coins,) = axes.patches
        right = coins.get_extents().transformed(axes.transData.inverted()).x1
        assert np.isclose(right, np.sqrt(0.21 / k))


def test_budget_shares_draws_budgets_and_users_and_marks_a_share_that_helps():
    figure = plots.budget_shares(SHARE, VARIANCES)
    drawn = lines(figure)[1:]
    few_budget, few_users, many_budget, many_users, best = drawn
    assert same(few_budget, SHARE, VARIANCES["few"][0])
    assert same(few_users, SHARE, VARIANCES["few"][1])
    assert same(many_budget, SHARE, VARIANCES["many"][0])
    assert same(many_users, SHARE, VARIANCES["many"][1])
    assert same(best, [0.1], [0.7])  # the first population has no such share
    assert legend(figure.axes[0]) == list(VARIANCES)


def test_more_series_than_looks_are_refused_and_not_dropped():
    with pytest.raises(ValueError, match="zip"):
        plots.variance_wedge(C, {str(i): (C, C) for i in range(6)})
    with pytest.raises(ValueError, match="zip"):
        plots.third_moments(K, {str(i): K for i in range(6)}, {})
