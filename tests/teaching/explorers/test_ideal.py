"""The explorer of the chapter on the ideal estimator: thresholds on weights."""

import math
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
from hetlit.teaching.explorers.ideal import (
    COUNTS,
    PRECISIONS,
    SHOWN,
    SIZES,
    THRESHOLD,
    VARIANCES,
    WIDTHS,
    N,
    P,
    deviations,
    held_back,
    threshold,
)
from hetlit.teaching.explorers.picture import coordinates, number
from hetlit.theory.widths import standard_width
from tests.explorers import values_of

LEVELS, EPSILONS = values_of(THRESHOLD.parameters)
# The chapter's population, user by user.
HELD = np.sort(sizes.harmonic(1000))
VARIANCE = user_variance(HELD, 0.5, 0.001)
WIDTH = 2.0 * standard_width(HELD, 1000, 0.5, 0.001, 0.05)


def panels(level, epsilon):
    """The coordinates of all marks by name, one dictionary for each panel."""
    shown = threshold(level=level, epsilon=epsilon).panels
    return [{m.name: coordinates(m) for m in panel.marks} for panel in shown]


def truncated(level):
    """Everybody's weight, from the definition."""
    shape = np.minimum(1.0 / VARIANCE, level / np.sqrt(VARIANCE))
    return shape / shape.sum()


def parts(level, epsilon):
    """Standard deviations from sampling, from Laplace noise and from both."""
    weights = truncated(level)
    sampling = np.sum(weights**2 * VARIANCE)
    noise = 2.0 * (np.max(weights * WIDTH) / epsilon) ** 2
    return np.sqrt([sampling, noise, sampling + noise])


def best_place(epsilon):
    """The best threshold; below the smallest 1/sd, which is 2, all are the same."""
    return max(best_threshold(VARIANCE, WIDTH, epsilon)[0], 2.0)


def test_the_population_is_the_chapter_s():
    assert np.array_equal(np.repeat(SIZES, COUNTS), HELD)
    level, least = best_threshold(VARIANCE, WIDTH, 1.0)
    # Printed in the chapter: best threshold 4.2715, variance 6.698e-05, 249 held back.
    assert round(level, 4) == 4.2715
    assert f"{least:.3e}" == "6.698e-05"
    assert held_back(level) == "249 of 1,000 users are"


def test_the_setting_is_that_of_the_population():
    # A mean of k samples has variance (q + (k - 1) var_p)/k.
    spread = math.sqrt((N * VARIANCES[-1] - VARIANCES[0]) / (N - 1))
    largest = [f"{size:,}" for size in SIZES[:-4:-1]]
    said = re.findall(r"\d[\d,.]*\d|\d", THRESHOLD.setting)
    assert said == [*largest, number(P), number(spread, 2), "0", "1"]
    assert THRESHOLD.setting.startswith("A thousand users")
    assert (N, COUNTS.sum(), SIZES[0]) == (1000, 1000, 1)
    assert np.ptp(WIDTHS / np.sqrt(VARIANCES)) < 1e-12


def test_with_little_budget_cutting_intervals_would_save_much_of_the_noise():
    cut = np.minimum(P + WIDTH / 2.0, 1.0) - np.maximum(P - WIDTH / 2.0, 0.0)
    weights, least = optimal_weights(VARIANCE, cut, 0.1)
    drawn = panels(5.0, 0.1)[0]["best threshold"]["y"][0]
    assert (round(drawn, 4), round(math.sqrt(least), 4)) == (0.0326, 0.0166)
    noise = math.sqrt(2.0) * np.max(weights * cut) / 0.1
    assert noise < 0.5 * parts(best_place(0.1), 0.1)[1]
    # With much budget it would save nothing.
    drawn = panels(5.0, 10.0)[0]["best threshold"]["y"][0]
    assert drawn**2 == pytest.approx(optimal_weights(VARIANCE, cut, 10.0)[1])


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_every_mark_is_what_it_says(epsilon):
    best, least = optimal_weights(VARIANCE, WIDTH, epsilon)
    rules = {
        "sampling alone": inverse_variance_weights(VARIANCE),
        # With next to no budget noise is all there is.
        "noise alone": optimal_weights(VARIANCE, WIDTH, 1e-6)[0],
        "weights at the best threshold": best,
    }
    curves = {level: parts(level, epsilon) for level in np.geomspace(2.0, 30.0, 45)}
    for level in LEVELS:
        upper, lower = panels(level, epsilon)
        for i, name in enumerate(("sampling alone", "noise alone", "both")):
            line = upper.pop(name)
            assert np.allclose(line["x"], list(curves))
            assert np.allclose(line["y"], [curve[i] for curve in curves.values()])
        total = parts(level, epsilon)[2]
        markers = {
            "best threshold": (best_place(epsilon), math.sqrt(least)),
            "this threshold": (level, total),
        }
        assert upper.keys() == markers.keys()
        for name, (x, y) in markers.items():
            assert upper[name] == {"x": pytest.approx([x]), "y": pytest.approx([y])}
        rules["weights at this threshold"] = truncated(level)
        assert lower.keys() == rules.keys()
        for name, weights in rules.items():
            users = np.searchsorted(HELD, lower[name]["x"])
            assert (HELD[users] == lower[name]["x"]).all()
            assert np.allclose(lower[name]["y"], 100.0 * weights[users])


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_every_number_of_the_reading_is_what_it_says(epsilon):
    least = math.sqrt(optimal_weights(VARIANCE, WIDTH, epsilon)[1])
    best = number(best_place(epsilon))
    for level in LEVELS:
        sampling, noise, both = parts(level, epsilon)
        users, ratio = np.sum(1.0 / np.sqrt(VARIANCE) > level), both / least
        reading = threshold(level=level, epsilon=epsilon).reading
        assert reading.startswith(
            f"At threshold {number(level)} the standard deviation is {number(both)}: "
            f"{number(sampling)} from sampling and {number(noise)} from noise, "
        )
        held_back = f"{users} of 1,000 users " if users else "Nobody "
        assert reading.split(". ")[1].startswith(held_back)
        if "No threshold is better." in reading:
            assert ratio == pytest.approx(1.0, abs=1e-8)
            continue
        said = re.search(
            r"The best threshold(?:,| is) ([\d.]+)( or less)?[,;]", reading
        )
        assert said
        assert said[1] == best
        assert bool(said[2]) == (best == "2")
        if found := re.search(r"([\d.]+)% larger", reading):
            assert float(found[1]) / 100.0 == pytest.approx(ratio - 1.0, abs=0.0051)
            assert ratio < 2.0
        elif found := re.search(r"([\d.]+) times as large", reading):
            assert float(found[1]) == pytest.approx(ratio, abs=0.0051)
        else:
            assert "is hardly better." in reading
            assert 1.0 < ratio < 1.0006


def test_the_best_threshold_never_falls_as_the_budget_grows():
    best = [panels(5.0, epsilon)[0]["best threshold"]["x"][0] for epsilon in EPSILONS]
    assert (np.diff(best) >= 0.0).all()
    assert best[0] == 2.0
    assert best[-1] < PRECISIONS.max()


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_a_higher_threshold_means_less_sampling_error_and_more_noise(epsilon):
    upper, _ = panels(5.0, epsilon)
    assert (np.diff(upper["sampling alone"]["y"]) <= 1e-12).all()
    assert (np.diff(upper["noise alone"]["y"]) >= -1e-12).all()


def test_below_the_smallest_precision_nothing_changes():
    assert PRECISIONS.min() == 2.0
    for epsilon in EPSILONS:
        assert np.allclose(deviations(2.0, epsilon), deviations(0.01, epsilon))


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_best_weights_run_parallel_to_those_for_one_error_or_the_other(epsilon):
    _, lower = panels(5.0, epsilon)
    names = "noise alone", "weights at the best threshold", "sampling alone"
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
def test_both_markers_are_on_the_axes(epsilon):
    for level in LEVELS:
        panel = threshold(level=level, epsilon=epsilon).panels[0]
        for mark in panel.marks[-2:]:
            at = coordinates(mark)
            assert panel.x.low <= at["x"][0] <= panel.x.high
            assert panel.y.low <= at["y"][0] <= panel.y.high
