"""Figures of the chapter "When the model is wrong" draw what they are given."""

import numpy as np
import pytest

from hetlit.teaching.figures import wrong_model as plots
from tests.figures import EveryFigure, lines, notes, panels, same

N = np.array([1000, 10_000, 100_000])
PLAIN = np.array([0.01, 0.003, 0.001])
OTHERS = {
    "clips": np.array([0.008, 0.005, 0.0045]),
    "weighs": np.array([0.02, 0.018, 0.017]),
}
TOWARDS = {"clips": 0.004, "weighs": 0.016}
GROUP = np.arange(0, 41)
MOST = np.minimum(0.01 * np.exp(GROUP / 5), 1 - np.exp(-GROUP / 5) * 0.99)
COUNT = 0.9 * MOST
CAUGHT = np.linspace(0, 80, 41)
BOUND = 20 * np.exp(-CAUGHT / 5)
CHANCE = np.minimum(BOUND, 1) * 0.7
HARM = CAUGHT**2 * CHANCE
SLOPES = np.array([0.0, 0.05, 0.1])
LINES = {"plain": np.full(3, 0.003), "weighted": np.array([0.001, 0.02, 0.04])}
SIMULATED = (
    SLOPES[:2],
    np.array([0.001, 0.009]),
    np.array([0.0001, 0.0002]),
)
RATIOS = np.array([0.1, 1.0, 10.0])
WIDTHS = {"95%": np.array([2.1, 2.0, 1.96]), "99.9%": np.array([4.8, 4.0, 3.3])}
GAUSSIAN = {"95%": 1.96, "99.9%": 3.29}
ROWS = {
    "the model": {"noise": (0.5, 0.03), "ours": (0.96, 0.01)},
    "a slope": {"noise": (0.0, 0.01), "ours": (0.4, 0.04)},
}

FIGURES = {
    "limits": lambda: plots.limits(N, PLAIN, OTHERS, TOWARDS),
    "unseen": lambda: plots.unseen(GROUP, MOST, COUNT, 0.01, 5.0),
    "unnoticed": lambda: plots.unnoticed(CAUGHT, CHANCE, BOUND, HARM, (15.0, 220.0)),
    "pulled": lambda: plots.pulled(SLOPES, LINES, SIMULATED, 0.013),
    "half_widths": lambda: plots.half_widths(RATIOS, WIDTHS, GAUSSIAN),
    "coverage": lambda: plots.coverage(ROWS, level=0.95),
}


class TestEveryFigure(EveryFigure):
    figures = FIGURES


def spans(container):
    """Return the ends of the error bars of a container, smaller first."""
    _, _, (bars,) = container
    return np.array(bars.get_segments())


def test_limits_draws_errors_and_beside_them_what_they_converge_to():
    figure = FIGURES["limits"]()
    plain, clips_limit, clips, weighs_limit, weighs = lines(figure)
    assert same(plain, N, PLAIN)
    assert same(clips, N, OTHERS["clips"])
    assert same(weighs, N, OTHERS["weighs"])
    assert np.allclose(clips_limit[1], TOWARDS["clips"])
    assert np.allclose(weighs_limit[1], TOWARDS["weighs"])
    assert notes(figure) == ["plain mean", "clips", "weighs"]
    (axes,) = panels(figure)
    assert axes.lines[1].get_color() == axes.lines[2].get_color()
    assert axes.get_xscale() == axes.get_yscale() == "log"


def test_unseen_shades_one_over_epsilon_and_draws_both_chances():
    figure = FIGURES["unseen"]()
    most, count, false_alarm = lines(figure)
    assert same(most, GROUP, MOST)
    assert same(count, GROUP, COUNT)
    assert np.allclose(false_alarm[1], 0.01)
    (shade,) = panels(figure)[0].patches
    assert shade.get_x() + shade.get_width() == 5.0
    assert notes(figure)[-1] == "invisible"


def test_unnoticed_caps_the_bound_at_one_and_marks_the_worst():
    figure = FIGURES["unnoticed"]()
    bound, chance = lines(figure, 0)
    assert same(bound, CAUGHT, np.minimum(BOUND, 1))
    assert same(chance, CAUGHT, CHANCE)
    bound, harm, worst = lines(figure, 1)
    assert same(bound, CAUGHT, CAUGHT**2 * np.minimum(BOUND, 1))
    assert same(harm, CAUGHT, HARM)
    assert same(worst, [15.0], [220.0])


def test_pulled_draws_means_simulations_and_the_guarantee():
    figure = FIGURES["pulled"]()
    (axes,) = panels(figure)
    plain, weighted, default, guarantee = lines(figure)
    assert same(plain, SLOPES, LINES["plain"])
    assert same(weighted, SLOPES, LINES["weighted"])
    assert same(default, *SIMULATED[:2])
    assert np.allclose(guarantee[1], 0.013)
    low, high = spans(axes.containers[0])[:, :, 1].T
    assert np.allclose(high - low, 4 * SIMULATED[2])


def test_half_widths_draws_each_level_beside_that_of_a_gaussian():
    figure = FIGURES["half_widths"]()
    usual, usual_gaussian, rare, rare_gaussian = lines(figure)
    assert same(usual, RATIOS, WIDTHS["95%"])
    assert same(rare, RATIOS, WIDTHS["99.9%"])
    assert np.allclose(usual_gaussian[1], GAUSSIAN["95%"])
    assert np.allclose(rare_gaussian[1], GAUSSIAN["99.9%"])
    assert notes(figure) == ["95%", "99.9%"]


def test_coverage_has_a_row_per_population_in_per_cent():
    figure = FIGURES["coverage"]()
    (axes,) = panels(figure)
    assert [label.get_text() for label in axes.get_yticklabels()] == list(ROWS)
    noise, ours = axes.containers
    assert np.allclose(noise[0].get_xdata(), [50, 0])
    assert np.allclose(ours[0].get_xdata(), [96, 40])
    assert np.allclose(np.round(ours[0].get_ydata()), [0, -1])
    low, high = spans(ours)[:, :, 0].T
    assert np.allclose(high - low, [4, 16])
    assert np.allclose(axes.lines[-1].get_xdata(), 95)


def test_more_series_than_looks_are_refused_and_not_dropped():
    with pytest.raises(ValueError, match="zip"):
        plots.limits(N, PLAIN, OTHERS | {"third": PLAIN}, TOWARDS | {"third": 0.1})
    many = dict.fromkeys("abcd", PLAIN)
    with pytest.raises(ValueError, match="zip"):
        plots.half_widths(RATIOS, many, dict.fromkeys(many, 2.0))
