"""Figures of the chapter "Lower bounds" draw what they are given."""

import numpy as np
import pytest
from scipy import stats

from hetlit.teaching.figures import lower_bounds as plots
from tests.figures import EveryFigure, lines, notes, panels, same

RATE = np.linspace(0.05, 0.95, 37)
SHARE = RATE * (1 - RATE) / 50
CONSTANT = (0.4 - RATE) ** 2
PULLED = np.full(RATE.shape, 0.004)
K = np.array([1, 3, 10, 30, 100, 1000])
TOLD = np.array([1.0, 2.8, 7.1, 12.6, 17.8, 21.0])
MOST = np.minimum(K, 21.5)
RATIOS = {"narrow": 1 + 0.01 * np.log(K), "wide": 1 + 0.07 * np.log(K)}
N = np.array([10, 100, 1000])
PARTS = {"share": (0.08, 0.0, 0.01), "parity": (0.0, 0.25, 0.08)}
EPSILON = np.array([0.1, 0.5, 1.0, 2.0, 5.0, 10.0])
LEAST = 1 / (4 * np.sinh(EPSILON / 2) ** 2)
COUNTED = {"much": (TOLD, 5000.0), "little": (0.5 * TOLD, 12.0)}
FEW = np.array([1, 2, 4, 8])
TRUTH = np.array([1.0, 1.3, 1.7, 1.9])
ONE = np.ones(4)
CURVES = {"Laplace": 2.2 * ONE, "sharper": ONE, "first": ONE / 2}
VARIANCES = {"class": np.ones(6), "honest": np.linspace(4, 1, 6)}
SPREAD = np.linspace(0, 0.4, 9)
COINS, PEOPLE, BOTH = np.full(9, 4e-5), SPREAD**2 / 1000, 5e-5 + SPREAD**2 / 1000
CAPS = np.geomspace(0.5, 30_000, 20)
PANELS = {
    "one": (
        CAPS,
        {"soft": 2e-6 * (1 + CAPS / 1e4), "hard": 3e-6 * (1 + CAPS / 1e4)},
        {"soft": (0.5, 2e-6), "hard": (0.5, 3e-6)},
    ),
    "two": (
        CAPS,
        {"soft": 2e-8 * (1 + CAPS / 100), "hard": 3e-8 * (1 + CAPS / 100)},
        {"soft": (0.5, 2e-8), "hard": (0.5, 3e-8)},
    ),
}
EXACT = {"plain": np.linspace(9, 2, 6), "sharper bound": np.linspace(1.5, 1, 6)}
SIMULATED = {
    "plain": (np.linspace(9.2, 2.1, 6), np.full(6, 0.1)),
    "clever": (np.linspace(8.0, 1.1, 6), np.full(6, 0.2)),
}
REACH = np.linspace(0.1, 4, 14)
VARIANCE, ALLOWED = 1.7 * REACH / (1 + REACH), np.minimum(REACH / 3, 1) ** 2
POINTS = (np.array([1.0, 4.0]), (np.array([0.8, 1.4]), np.array([0.1, 0.15])))

FIGURES = {
    "risks": lambda: plots.risks(RATE, SHARE, CONSTANT, PULLED),
    "score_fans": lambda: plots.score_fans([5, 50], 0.3),
    "information": lambda: plots.information(K, TOLD, 0.97 * TOLD, MOST, RATIOS),
    "window_bounds": lambda: plots.window_bounds(
        N, 0.03 / N, 0.01 / N, 0.1 / N**2, (N, (0.11 / N**2, 0.01 / N**2))
    ),
    "variance_parts": lambda: plots.variance_parts(PARTS),
    "noise_prices": lambda: plots.noise_prices(
        EPSILON, 2 / EPSILON**2, 2 * LEAST, LEAST
    ),
    "counted_information": lambda: plots.counted_information(K, TOLD, COUNTED),
    "tightness": lambda: plots.tightness(FEW, TRUTH, CURVES),
    "variance_ratios": lambda: plots.variance_ratios(EPSILON, VARIANCES),
    "two_families": lambda: plots.two_families(SPREAD, COINS, PEOPLE, BOTH),
    "cap_curves": lambda: plots.cap_curves(PANELS),
    "variant_gap": lambda: plots.variant_gap(EPSILON, 30 / EPSILON, 600.0),
    "mechanisms": lambda: plots.mechanisms(EPSILON, 3 * EPSILON, 2 * EPSILON),
    "closeness": lambda: plots.closeness(EPSILON, EXACT, SIMULATED),
    "narrow_intervals": lambda: plots.narrow_intervals(
        REACH, VARIANCE, ALLOWED, POINTS
    ),
}


class TestEveryFigure(EveryFigure):
    figures = FIGURES


def bars(container):
    """Return (x, y, half the height) of drawn error bars."""
    points, _, (spans,) = container
    low, high = np.array(spans.get_segments())[:, :, 1].T
    return points.get_xdata(), points.get_ydata(), (high - low) / 2


def band(figure, panel=0):
    """Return the heights of the shaded region."""
    (region,) = figure.axes[panel].collections
    return region.get_paths()[0].vertices[:, 1]


def test_risks_shade_what_is_closed_to_unbiased_estimators():
    figure = FIGURES["risks"]()
    for drawn, values in zip(lines(figure), (SHARE, CONSTANT, PULLED), strict=True):
        assert same(drawn, RATE, values)
    assert np.isclose(band(figure).max(), SHARE.max())
    assert np.isclose(band(figure).min(), 0)


def test_slopes_of_the_fan_at_p_are_the_scores():
    p = 0.3
    figure = plots.score_fans([5, 50], p)
    assert [axes.get_title() for axes in figure.axes] == ["5 tosses", "50 tosses"]
    for panel, k in enumerate((5, 50)):
        *curves, middle = lines(figure, panel)
        assert np.allclose(middle[0], p)
        chances = stats.binom.pmf(np.arange(k + 1), k, p)
        seen = np.flatnonzero(chances > 0.02 * chances.max())
        assert len(curves) == len(seen)
        for ones, (rates, heights) in zip(seen, curves, strict=True):
            assert np.isclose(np.interp(p, rates, heights), 0, atol=1e-12)
            slope = np.gradient(heights, rates)[len(rates) // 2]
            known = (ones - k * p) / (p * (1 - p))
            assert slope == pytest.approx(known, abs=0.2)


def test_likelier_curves_are_darker():
    curves = panels(plots.score_fans([5], 0.3))[0].lines[:-1]
    chances = stats.binom.pmf(np.arange(6), 5, 0.3)
    seen = np.flatnonzero(chances > 0.02 * chances.max())
    darkness = [curve.get_alpha() for curve in curves]
    assert (np.argsort(darkness) == np.argsort(chances[seen])).all()


def test_information_lies_between_its_bounds():
    figure = FIGURES["information"]()
    most, told, worth = lines(figure)
    assert same(most, K, MOST)
    assert same(told, K, TOLD)
    assert same(worth, K, 0.97 * TOLD)
    assert np.isclose(band(figure).max(), MOST.max())
    *drawn, one = lines(figure, 1)
    for line, values in zip(drawn, RATIOS.values(), strict=True):
        assert same(line, K, values)
    assert np.allclose(one[1], 1)
    assert notes(figure, 1) == list(RATIOS)


def test_window_bounds_draws_three_variances_and_two_standard_errors():
    figure = FIGURES["window_bounds"]()
    values = (0.03 / N, 0.01 / N, 0.1 / N**2)
    for drawn, known in zip(lines(figure)[:3], values, strict=True):
        assert same(drawn, N, known)
    x, y, reach = bars(figure.axes[0].containers[0])
    assert np.allclose(x, N)
    assert np.allclose(y, 0.11 / N**2)
    assert np.allclose(reach, 0.02 / N**2)


def test_variance_parts_are_stacked():
    figure = plots.variance_parts(PARTS)
    shares = [[bar.get_width() for bar in group] for group in figure.axes[0].containers]
    assert np.allclose(np.transpose(shares), list(PARTS.values()))
    starts = [[bar.get_x() for bar in group] for group in figure.axes[0].containers]
    assert np.allclose(starts[0], 0)
    assert np.allclose(starts[2], [0.08, 0.25])
    names = [text.get_text() for text in figure.axes[0].get_yticklabels()]
    assert names == list(PARTS)


def test_noise_prices_are_multiplied_by_epsilon_squared():
    laplace, staircase, least = lines(FIGURES["noise_prices"]())
    assert same(laplace, EPSILON, 2)
    assert same(staircase, EPSILON, 2 * LEAST * EPSILON**2)
    assert same(least, EPSILON, LEAST * EPSILON**2)


def test_counted_information_marks_who_is_first_held_back():
    figure = FIGURES["counted_information"]()
    whole, much, little, mark = lines(figure)  # a start beyond the sizes has no mark
    assert same(whole, K, TOLD)
    assert same(much, K, TOLD)
    assert same(little, K, 0.5 * TOLD)
    assert same(mark, [12], [0.5 * np.interp(12, K, TOLD)])
    assert notes(figure) == ["no privacy", *COUNTED]


def test_tightness_draws_the_truth_among_the_bounds():
    figure = FIGURES["tightness"]()
    *drawn, truth = lines(figure)
    for line, values in zip(drawn, CURVES.values(), strict=True):
        assert same(line, FEW, values)
    assert same(truth, FEW, TRUTH)
    assert notes(figure) == [*CURVES, "the best there is"]


def test_variance_ratios_name_every_curve():
    figure = FIGURES["variance_ratios"]()
    one, *drawn = lines(figure)
    assert np.allclose(one[1], 1)
    for line, values in zip(drawn, VARIANCES.values(), strict=True):
        assert same(line, EPSILON, values)
    legend = panels(figure)[0].get_legend()
    assert [text.get_text() for text in legend.get_texts()] == list(VARIANCES)


def test_two_families_shade_the_smaller_bound_in_units_of_a_ten_thousandth():
    figure = FIGURES["two_families"]()
    for drawn, values in zip(lines(figure), (BOTH, COINS, PEOPLE), strict=True):
        assert same(drawn, SPREAD, 1e4 * values)
    assert np.isclose(band(figure).max(), 0.4)


def test_cap_curves_are_divided_by_the_least_value():
    figure = FIGURES["cap_curves"]()
    for panel, (title, (caps, curves, best)) in enumerate(PANELS.items()):
        assert figure.axes[panel].get_title() == title
        unit = best["soft"][1]
        soft, soft_best, hard, hard_best = lines(figure, panel)
        assert same(soft, caps, curves["soft"] / unit)
        assert same(hard, caps, curves["hard"] / unit)
        assert same(soft_best, [0.5], [1.0])
        assert same(hard_best, [0.5], [1.5])


def test_variant_gap_draws_the_gap_and_its_ceiling():
    gap, ceiling = lines(FIGURES["variant_gap"]())
    assert same(gap, EPSILON, 30 / EPSILON)
    assert np.allclose(ceiling[1], 600)


def test_mechanisms_draws_both_ratios():
    figure = FIGURES["mechanisms"]()
    for panel, factor in enumerate((3, 2)):
        points, one = lines(figure, panel)
        assert same(points, EPSILON, factor * EPSILON)
        assert np.allclose(one[1], 1)


def test_closeness_draws_theory_and_simulation_alike():
    figure = FIGURES["closeness"]()
    one, plain, sharper, *_ = lines(figure)
    assert np.allclose(one[1], 1)
    assert same(plain, EPSILON, EXACT["plain"])
    assert same(sharper, EPSILON, EXACT["sharper bound"])
    containers = figure.axes[0].containers
    assert [container.get_label() for container in containers] == list(SIMULATED)
    for container, (values, errors) in zip(containers, SIMULATED.values(), strict=True):
        x, y, reach = bars(container)
        assert np.allclose(x, EPSILON, rtol=0.06)
        assert np.allclose(y, values)
        assert np.allclose(reach, 2 * errors)
    theory = figure.axes[0].lines[1]
    assert theory.get_color() == containers[0][0].get_color()
    assert notes(figure)[0] == "sharper bound"  # what has no points is named


def test_narrow_intervals_draws_what_is_allowed():
    figure = FIGURES["narrow_intervals"]()
    one, variance, allowed, *_ = lines(figure)
    assert np.allclose(one[1], 1)
    assert same(variance, REACH, VARIANCE)
    assert same(allowed, REACH, ALLOWED)
    x, y, reach = bars(figure.axes[0].containers[0])
    assert np.allclose(x, POINTS[0])
    assert np.allclose(y, POINTS[1][0])
    assert np.allclose(reach, 2 * POINTS[1][1])


def test_more_series_than_looks_are_refused_and_not_dropped():
    many = {str(i): EPSILON for i in range(6)}
    with pytest.raises(ValueError, match="zip"):
        plots.variance_ratios(EPSILON, many)
    with pytest.raises(ValueError, match="zip"):
        plots.closeness(EPSILON, many, {})
    with pytest.raises(ValueError, match="zip"):
        plots.tightness(FEW, TRUTH, {**CURVES, "more": ONE})
