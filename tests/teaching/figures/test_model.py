"""Figures of the chapter "The model" draw what they are given."""

import numpy as np
import pytest

from hetlit import Users, user_variance
from hetlit.teaching.figures import model as plots
from tests.figures import EveryFigure, lines, notes, panels, same

K = np.array([1, 10, 100, 1000])
P, VAR_P = 0.3, 0.01
Q = P * (1 - P)
USERS = Users(k=[4, 4, 1, 900], successes=[1, 1, 0, 300], counts=[1, 2, 5, 1])
RATES = np.array([0.1, 0.3, 0.6])
MEANS = {4: np.array([0.0, 0.25, 0.75]), 40: np.array([0.1, 0.3, 0.625])}
THEORY = user_variance(K, P, VAR_P)
SIMULATED = {
    "one": (THEORY * 1.01, THEORY * 0.02),
    "two": (THEORY * 0.98, THEORY * 0.03),
}
VARIANCES = [0.0, 0.0001, 0.0025, 0.01, 0.04]
PROFILES = {"equal": np.full(9, 5), "mixed": np.array([1, 7, 3]), "one": np.ones(4)}
SHARES = {"equal": (0.01, 0.01), "heavy": (0.9, 0.17)}
CAPS = np.array([1, 2, 200])
TARGETS = {"no link": np.full(3, 0.3), "linked": np.array([0.3, 0.3, 0.398])}

FIGURES = {
    "funnel": lambda: plots.funnel(USERS, P),
    "funnel with curves": lambda: plots.funnel(USERS, P, VAR_P),
    "rates_and_means": lambda: plots.rates_and_means(RATES, MEANS),
    "variance_check": lambda: plots.variance_check(K, THEORY, SIMULATED),
    "sandwich": lambda: plots.sandwich(K, P, VAR_P),
    "effective_sizes": lambda: plots.effective_sizes(K, P, VARIANCES),
    "size_profiles": lambda: plots.size_profiles(PROFILES),
    "data_holders": lambda: plots.data_holders(SHARES, top="ten of 1,000 users"),
    "weighting_targets": lambda: plots.weighting_targets(CAPS, TARGETS),
}


class TestEveryFigure(EveryFigure):
    figures = FIGURES


def test_funnel_draws_one_disc_per_distinct_row_with_its_count_as_area():
    figure = plots.funnel(USERS, P)
    (discs,) = panels(figure)[0].collections
    assert discs.get_offsets().tolist() == [[1, 0], [4, 0.25], [900, 1 / 3]]
    areas = discs.get_sizes()
    assert np.allclose(areas / areas[2], [5, 3, 1])
    assert len(lines(figure)) == 1  # the population mean
    assert np.allclose(lines(figure)[0][1], P)


def test_funnel_curves_are_two_standard_deviations_from_the_mean():
    drawn = lines(plots.funnel(USERS, P, VAR_P))
    assert len(drawn) == 3
    for (k, edge), side in zip(drawn[1:], (1, -1), strict=True):
        assert k[0] == 1
        assert np.isclose(k[-1], 900)
        assert np.allclose(edge, P + side * 2 * np.sqrt(user_variance(k, P, VAR_P)))


def test_rates_and_means_has_a_diagonal_and_the_users_in_every_panel():
    figure = plots.rates_and_means(RATES, MEANS)
    assert [axes.get_title() for axes in figure.axes] == ["4 samples", "40 samples"]
    for panel, means in enumerate(MEANS.values()):
        diagonal, users = lines(figure, panel)
        assert same(diagonal, [0, 1], [0, 1])
        assert same(users, RATES, means)


def test_variance_check_draws_the_formula_the_estimates_and_two_standard_errors():
    figure = plots.variance_check(K, THEORY, SIMULATED)
    top, bottom = figure.axes
    assert same(lines(figure, 0)[0], K, THEORY)
    assert same(lines(figure, 1)[0], K, 1)
    for axes, unit in ((top, 1.0), (bottom, THEORY)):
        assert len(axes.containers) == len(SIMULATED)
        for bars, (name, (values, errors)) in zip(
            axes.containers, SIMULATED.items(), strict=True
        ):
            assert bars.get_label() == name
            points, _, (spans,) = bars
            assert np.allclose(points.get_ydata(), values / unit)
            assert np.allclose(points.get_xdata(), K, rtol=0.05)
            low, high = np.array(spans.get_segments())[:, :, 1].T
            assert np.allclose(high - low, 4 * errors / unit)


def test_sandwich_draws_the_variance_between_its_bounds():
    figure = plots.sandwich(K, P, VAR_P)
    variance, coins, people, corner = lines(figure)
    assert same(variance, K, THEORY)
    assert same(coins, K, Q / K)
    assert same(people, K, VAR_P)
    assert np.allclose(corner[0], Q / VAR_P)
    (band,) = panels(figure)[0].collections
    heights = band.get_paths()[0].vertices[:, 1]
    larger = np.maximum(Q / K, VAR_P)
    assert np.isclose(heights.min(), larger.min())
    assert np.isclose(heights.max(), 2 * larger.max())


def test_effective_sizes_are_q_over_the_variance_and_say_their_limit():
    figure = plots.effective_sizes(K, P, VARIANCES)
    assert len(lines(figure)) == len(VARIANCES)
    for drawn, var_p in zip(lines(figure), VARIANCES, strict=True):
        assert same(drawn, K, Q / user_variance(K, P, var_p))
    assert notes(figure)[:2] == ["spread 0", "spread 0.01\nat most 2,100"]


def test_size_profiles_sort_the_largest_user_first_and_blank_the_spare_panel():
    figure = plots.size_profiles(PROFILES)
    assert same(lines(figure, 1)[0], [1, 2, 3], [7, 3, 1])
    assert [axes.axison for axes in figure.axes] == [True, True, True, False]
    assert PROFILES["mixed"].tolist() == [1, 7, 3]  # the input is not sorted


def test_data_holders_draws_both_shares_in_per_cent():
    figure = plots.data_holders(SHARES, top="ten users")
    samples, worth = lines(figure)
    assert same(samples, [1, 90], [1, 0])
    assert same(worth, [1, 17], [1, 0])
    assert figure.axes[0].get_xlabel() == "per cent held by ten users"


def test_weighting_targets_draws_and_names_each_population():
    figure = plots.weighting_targets(CAPS, TARGETS)
    for drawn, values in zip(lines(figure), TARGETS.values(), strict=True):
        assert same(drawn, CAPS, values)
    assert notes(figure) == list(TARGETS)


def test_more_series_than_looks_are_refused_and_not_dropped():
    with pytest.raises(ValueError, match="zip"):
        plots.effective_sizes(K, P, [*VARIANCES, 0.05])
    with pytest.raises(ValueError, match="zip"):
        plots.weighting_targets(CAPS, {str(i): CAPS for i in range(6)})
