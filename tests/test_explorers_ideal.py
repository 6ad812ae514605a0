"""The explorer of the chapter on the ideal estimator: thresholds on weights."""

import re

import numpy as np
import pytest

from hetlit import (
    best_threshold,
    inverse_variance_weights,
    optimal_weights,
    sizes,
    truncated_weights,
    user_variance,
)
from hetlit.concentration import standard_width
from hetlit.explorers.ideal import (
    COUNTS,
    PRECISIONS,
    SHOWN,
    SIZES,
    THRESHOLD,
    VARIANCES,
    WIDTHS,
    deviations,
    held_back,
    threshold,
)
from hetlit.explorers.picture import coordinates

LEVELS, EPSILONS = (parameter.values for parameter in THRESHOLD.parameters)


def panels(level, epsilon):
    """The coordinates of all marks by name, one dictionary for each panel."""
    shown = threshold(level=level, epsilon=epsilon).panels
    return [{m.name: coordinates(m) for m in panel.marks} for panel in shown]


def test_the_population_is_the_chapter_s_user_by_user():
    k = sizes.harmonic(1000)
    assert np.array_equal(np.repeat(SIZES, COUNTS), np.sort(k))
    variances = user_variance(k, 0.5, 0.001)
    widths = 2.0 * standard_width(k, 1000, 0.5, 0.001, 0.05)
    level, least = best_threshold(variances, widths, 1.0)
    # Printed in the chapter: best threshold 4.2715, variance 6.698e-05, 249 held back.
    assert round(level, 4) == 4.2715
    assert deviations(level, 1.0)[2] ** 2 == pytest.approx(least)
    assert np.sum(1.0 / np.sqrt(variances) > level) == 249
    assert held_back(level) == "249 of 1,000 users are"


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_parts_are_sampling_and_laplace_noise_user_by_user(epsilon):
    k = sizes.harmonic(1000)
    variances = user_variance(k, 0.5, 0.001)
    widths = 2.0 * standard_width(k, 1000, 0.5, 0.001, 0.05)
    for level in LEVELS:
        shape = np.minimum(1.0 / variances, level / np.sqrt(variances))
        weights = shape / shape.sum()
        sampling, noise, both = deviations(level, epsilon)
        assert sampling**2 == pytest.approx(np.sum(weights**2 * variances))
        scale = np.max(weights * widths) / epsilon
        assert noise**2 == pytest.approx(2.0 * scale**2)
        assert both == pytest.approx(np.hypot(sampling, noise))


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_the_marked_best_threshold_is_the_best_of_all_weights(epsilon):
    upper, lower = panels(5.0, epsilon)
    place, height = (float(upper["best threshold"][name][0]) for name in "xy")
    weights, least = optimal_weights(VARIANCES, WIDTHS, epsilon, counts=COUNTS)
    assert height**2 == pytest.approx(least)
    assert np.allclose(lower["best threshold"]["y"], 100.0 * weights[SHOWN])
    assert height <= upper["both"]["y"].min() * (1.0 + 1e-12)
    assert 2.0 <= place <= 30.0


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_a_higher_threshold_means_less_sampling_error_and_more_noise(epsilon):
    upper, _ = panels(5.0, epsilon)
    assert (np.diff(upper["sampling alone"]["y"]) <= 1e-12).all()
    assert (np.diff(upper["noise alone"]["y"]) >= -1e-12).all()


def test_the_budget_moves_the_noise_and_the_best_threshold():
    for level in LEVELS:
        noise = [deviations(level, epsilon)[1] for epsilon in EPSILONS]
        assert np.allclose(np.multiply(noise, EPSILONS), noise[0] * EPSILONS[0])
    best = [panels(5.0, epsilon)[0]["best threshold"]["x"][0] for epsilon in EPSILONS]
    assert (np.diff(best) >= 0.0).all()
    assert best[0] == 2.0
    assert best[-1] < PRECISIONS.max()


def test_below_the_smallest_precision_nothing_changes():
    assert PRECISIONS.min() == 2.0
    for epsilon in EPSILONS:
        assert np.allclose(deviations(2.0, epsilon), deviations(0.01, epsilon))


def test_the_two_fixed_lines_are_best_against_each_error_alone():
    _, lower = panels(5.0, 1.0)
    sampling = inverse_variance_weights(VARIANCES, counts=COUNTS)
    assert np.allclose(lower["sampling alone"]["y"], 100.0 * sampling[SHOWN])
    # With next to no budget noise is all there is.
    noise, _ = optimal_weights(VARIANCES, WIDTHS, 1e-6, counts=COUNTS)
    assert np.allclose(lower["noise alone"]["y"], 100.0 * noise[SHOWN])


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_best_weights_run_parallel_to_those_for_one_error_or_the_other(epsilon):
    _, lower = panels(5.0, epsilon)
    names = "noise alone", "best threshold", "sampling alone"
    noise, best, sampling = (np.diff(np.log(lower[name]["y"])) for name in names)
    threshold, _ = best_threshold(VARIANCES, WIDTHS, epsilon, counts=COUNTS)
    held_back = 1.0 / np.sqrt(VARIANCES[SHOWN]) > threshold
    both, neither = held_back[:-1], ~held_back[1:]  # sizes rise
    assert np.allclose(best[both], noise[both])
    assert np.allclose(best[neither], sampling[neither])
    assert np.sum(~both & ~neither) <= 1


def test_lines_between_the_sizes_shown_are_the_weights():
    for level in LEVELS:
        weights = truncated_weights(VARIANCES, level, counts=COUNTS)
        drawn = np.interp(np.log(SIZES), np.log(SIZES[SHOWN]), np.log(weights[SHOWN]))
        assert np.abs(drawn - np.log(weights)).max() < 0.05


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_the_reading_says_how_much_worse_this_threshold_is(epsilon):
    least = optimal_weights(VARIANCES, WIDTHS, epsilon, counts=COUNTS)[1] ** 0.5
    for level in LEVELS:
        reading = threshold(level=level, epsilon=epsilon).reading
        ratio = deviations(level, epsilon)[2] / least
        if found := re.search(r"([\d.]+)% larger", reading):
            assert float(found[1]) / 100.0 == pytest.approx(ratio - 1.0, abs=0.0051)
            assert ratio < 2.0
        elif found := re.search(r"([\d.]+) times as large", reading):
            assert float(found[1]) == pytest.approx(ratio, abs=0.0051)
        elif "No threshold is better." in reading:
            assert ratio == pytest.approx(1.0, abs=1e-8)
        else:
            assert "is hardly better." in reading
            assert 1.0 < ratio < 1.0006


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_both_markers_are_on_the_axes(epsilon):
    for level in LEVELS:
        panel = threshold(level=level, epsilon=epsilon).panels[0]
        for mark in panel.marks[-2:]:
            at = coordinates(mark)
            assert panel.x.low <= at["x"][0] <= panel.x.high
            assert panel.y.low <= at["y"][0] <= panel.y.high
