"""Figures of the chapter "User-level privacy from scratch" draw what they are given."""

from typing import Any

import numpy as np
import pytest

from hetlit.privacy.ledger import (
    EXPONENTIAL,
    LAPLACE,
    PUBLIC_SIZES,
    Cohort,
    Ledger,
    Mechanism,
    Step,
)
from hetlit.teaching.figures import privacy as plots
from tests.figures import EveryFigure, lines, notes, same

TRUTH = np.array([0.0, 0.25, 1.0])
GUESSES = {"exact": TRUTH, "with noise": np.array([-5.0, 0.4, 6.0])}
RECORD = (2, 1)
ALLOWED = {
    "event level": [(2, 0), (2, 2)],
    "private sizes": [(1, 0), (1, 1), (2, 0), (2, 2), (3, 0), (3, 3)],
}
LIMITS = {"weak": 2.0, "strong": 0.5}
HONEST = 1 / (1 + np.exp(-1.0))
ATTACKS = {
    "answer": ([0.0, 1 - HONEST, 1.0], [1.0, 1 - HONEST, 0.0]),
    "curve": (np.linspace(0, 1, 20), np.linspace(1, 0, 20) ** 2),
}
SIMULATED = {"curve": ([0.1, 0.5], [0.01, 0.02], [0.8, 0.25], [0.02, 0.01])}
EPSILONS = np.array([0.1, 0.5, 1.0, 5.0])
SQUARES = 1 / (100 * EPSILONS) ** 2
NOISE = (2.1 * SQUARES, 0.1 * SQUARES)
K = np.array([1, 10, 100])
ERRORS = {"sample": 1.0 / K, "user": np.ones(3), "loop": np.sqrt(K)}
LOSSES = {"user": np.ones(3), "sample": 1.0 * K}
OUTCOMES = np.arange(1, 4)
LAW, OTHER = np.array([0.2, 0.5, 0.3]), np.array([0.3, 0.4, 0.3])
ANSWERS = np.arange(1, 10)
RIGHT = 0.5 + 0.05 * ANSWERS.astype(float)
LIMIT = 1 / (1 + np.exp(-ANSWERS / 2.0))
BEFORE = {"Ada": 9, "Bea": 5, "Cai": 5, "Dan": 2}
AFTER = BEFORE | {"Ada": 1}
LAPLACE_NOISE = Mechanism(kind=LAPLACE, sensitivity=0.01, scale=0.02)
CHOICE = Mechanism(kind=EXPONENTIAL, sensitivity=1.0)
LEDGER = Ledger(
    PUBLIC_SIZES,
    (Cohort("few", 10, "few samples"), Cohort("many", 90, "many samples")),
    (
        Step("guess", ("few", "many"), LAPLACE_NOISE, 0.25),
        Step("spread", ("many",), CHOICE, 0.5),
        Step("mean", ("few", "many"), LAPLACE_NOISE, 0.75),
    ),
)

FIGURES = {
    "differencing": lambda: plots.differencing(TRUTH, GUESSES),
    "allowed_records": lambda: plots.allowed_records(RECORD, ALLOWED, k_max=3),
    "trade_off": lambda: plots.trade_off(LIMITS, ATTACKS),
    "trade_off, simulated": lambda: plots.trade_off({"claim": 1.0}, ATTACKS, SIMULATED),
    "shifted_laplace": lambda: plots.shifted_laplace(scale=0.5, shift=1.0),
    "noise_variance": lambda: plots.noise_variance(EPSILONS, 100, *NOISE, "it"),
    "event_and_user": lambda: plots.event_and_user(K, ERRORS, LOSSES),
    "neighbouring_laws": lambda: plots.neighbouring_laws(OUTCOMES, LAW, OTHER, 0.5),
    "repeated_answers": lambda: plots.repeated_answers(
        ANSWERS, RIGHT, LIMIT, RIGHT + 0.01, np.full(9, 0.01)
    ),
    "rank_changes": lambda: plots.rank_changes(BEFORE, AFTER, cohorts=(2, 2)),
    "ledger_costs": lambda: plots.ledger_costs(LEDGER),
}


class TestEveryFigure(EveryFigure):
    figures = FIGURES


def bars(container):
    """Return (x, y, half of each vertical bar) of an error-bar plot."""
    points, _, spans = container
    low, high = np.array(spans[-1].get_segments())[:, :, 1].T
    return *points.get_data(), (high - low) / 2


def test_differencing_draws_guesses_over_truth_with_a_diagonal():
    figure = plots.differencing(TRUTH, GUESSES)
    assert [axes.get_title() for axes in figure.axes] == list(GUESSES)
    for panel, guesses in enumerate(GUESSES.values()):
        diagonal, points = lines(figure, panel)
        assert same(diagonal, [0, 1], [0, 1])
        assert same(points, TRUTH, guesses)


def test_allowed_records_draws_every_record_the_allowed_ones_and_hers():
    figure = plots.allowed_records(RECORD, ALLOWED, k_max=3)
    for panel, allowed in enumerate(ALLOWED.values()):
        every, shown, hers = lines(figure, panel)
        assert len(every[0]) == 2 + 3 + 4
        assert list(zip(*shown, strict=True)) == allowed
        assert list(zip(*hers, strict=True)) == [RECORD]


def test_trade_off_limits_bend_where_both_errors_are_equal():
    figure = plots.trade_off(LIMITS, ATTACKS)
    for drawn, epsilon in zip(lines(figure)[:2], LIMITS.values(), strict=True):
        corner = 1 / (1 + np.exp(epsilon))
        assert same(drawn, [0, corner, 1], [1, corner, 0])
        # Both sums of the trade-off are 1 on the line: at the corner and beyond it.
        assert np.isclose(corner + np.exp(epsilon) * corner, 1)
    assert notes(figure) == list(LIMITS)


def test_trade_off_draws_attacks_and_simulations_of_one_name_in_one_colour():
    figure = plots.trade_off({"claim": 1.0}, ATTACKS, SIMULATED)
    _, answer, curve = lines(figure)[:3]
    assert same(answer, *ATTACKS["answer"])
    assert same(curve, *ATTACKS["curve"])
    (container,) = figure.axes[0].containers
    false, _, missed, missed_error = SIMULATED["curve"]
    x, y, half = bars(container)
    assert np.allclose(x, false)
    assert np.allclose(y, missed)
    assert np.allclose(half, 2 * np.array(missed_error))
    sideways = np.array(container[2][0].get_segments())[:, :, 0]
    assert np.allclose(np.diff(sideways)[:, 0], 4 * np.array(SIMULATED["curve"][1]))
    colours = [line.get_color() for line in figure.axes[0].lines]
    assert container[0].get_color() == colours[2] != colours[1]


def test_shifted_laplace_draws_two_densities_and_a_ratio_within_its_band():
    scale, shift = 0.5, 1.0
    figure = plots.shifted_laplace(scale, shift)
    for (x, density), centre in zip(lines(figure, 0), (0.0, shift), strict=True):
        assert np.allclose(density, np.exp(-abs(x - centre) / scale) / (2 * scale))
        assert density.max() == density[x == centre][0]
    ((x, ratio),) = lines(figure, 1)
    (_, first), (_, second) = lines(figure, 0)
    assert np.allclose(ratio, np.log(first / second))
    assert np.isclose(ratio.max(), shift / scale)
    assert np.isclose(ratio.min(), -shift / scale)
    assert len(x) == len(first)


def test_noise_variance_draws_twice_the_square_of_the_scale_and_the_square():
    figure = plots.noise_variance(EPSILONS, 100, *NOISE, "the noise")
    for panel, unit in ((0, 1.0), (1, SQUARES)):
        twice, once = lines(figure, panel)[:2]
        assert same(twice, EPSILONS, 2 * SQUARES / unit)
        assert same(once, EPSILONS, SQUARES / unit)
        x, y, half = bars(figure.axes[panel].containers[0])
        assert same((x, y), EPSILONS, NOISE[0] / unit)
        assert np.allclose(half, 2 * NOISE[1] / unit)


def test_event_and_user_draws_equal_names_alike():
    figure = plots.event_and_user(K, ERRORS, LOSSES)
    colours: dict[str, Any] = {}
    for panel, series in enumerate((ERRORS, LOSSES)):
        for line, (name, values) in zip(
            figure.axes[panel].lines, series.items(), strict=True
        ):
            assert same(line.get_data(), K, values)
            assert colours.setdefault(name, line.get_color()) == line.get_color()
        assert notes(figure, panel) == list(series)
    assert len(set(colours.values())) == 3


def test_neighbouring_laws_draws_both_laws_and_the_log_of_their_ratio():
    figure = plots.neighbouring_laws(OUTCOMES, LAW, OTHER, 0.5)
    for (x, y), law in zip(lines(figure, 0), (LAW, OTHER), strict=True):
        assert np.allclose(x, OUTCOMES, atol=0.2)
        assert np.allclose(y, law)
    assert same(lines(figure, 1)[0], OUTCOMES, np.log(LAW / OTHER))


def test_repeated_answers_draws_limit_attack_and_simulation():
    figure = FIGURES["repeated_answers"]()
    limit, exact = lines(figure)[:2]
    assert same(limit, ANSWERS, LIMIT)
    assert same(exact, ANSWERS, RIGHT)
    x, y, half = bars(figure.axes[0].containers[0])
    assert same((x, y), ANSWERS, RIGHT + 0.01)
    assert np.allclose(half, 0.02)


def test_rank_changes_ranks_by_size_and_breaks_ties_by_order():
    figure = plots.rank_changes(BEFORE, AFTER, cohorts=(2, 2))
    ends = [y for _, y in lines(figure)[:4]]
    assert np.allclose(ends, [[1, 4], [2, 1], [3, 2], [4, 3]])
    assert np.allclose(lines(figure)[4][1], 2.5)
    assert [text.strip() for text in notes(figure)[:2]] == ["Ada, 9", "Ada, 1"]


def test_rank_changes_tells_apart_who_moved_who_crossed_and_who_did_neither():
    figure = plots.rank_changes(BEFORE, AFTER, cohorts=(2, 2))
    ada, bea, cai, dan = (line.get_color() for line in figure.axes[0].lines[:4])
    assert bea == dan  # both stay in their cohort
    assert len({ada, bea, cai}) == 3


def test_ledger_costs_stacks_the_steps_of_each_cohort_up_to_what_it_pays():
    figure = plots.ledger_costs(LEDGER)
    (axes,) = figure.axes
    names = [label.get_text() for label in axes.get_yticklabels()]
    assert names == ["few", "many"]
    assert [bars.get_label() for bars in axes.containers] == ["guess", "spread", "mean"]
    pieces = [
        [(round(bar.get_y() + 0.3), bar.get_x(), bar.get_width()) for bar in bars]
        for bars in axes.containers
    ]
    assert pieces == [
        [(0, 0, 0.25), (1, 0, 0.25)],
        [(1, 0.25, 0.5)],
        [(0, 0.25, 0.75), (1, 0.75, 0.75)],
    ]
    ends = {y: x + width for bars in pieces for y, x, width in bars}
    assert ends == {0: LEDGER.spent_on("few")[0], 1: LEDGER.spent_on("many")[0]}
    assert np.allclose(lines(figure)[0][0], LEDGER.epsilon)


def test_more_series_than_looks_are_refused_and_not_dropped():
    many = {str(i): ([0, 1], [1, 0]) for i in range(6)}
    with pytest.raises(ValueError, match="zip"):
        plots.trade_off(LIMITS, many)
    with pytest.raises(ValueError, match="zip"):
        plots.event_and_user(K, {str(i): K for i in range(6)}, {})
