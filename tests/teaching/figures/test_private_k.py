"""Figures of the chapter "Private k" draw what they are given."""

import numpy as np
import pytest

from hetlit.privacy.ledger import (
    EXPONENTIAL,
    LAPLACE,
    PRIVATE_SIZES,
    Cohort,
    Ledger,
    Mechanism,
    Step,
)
from hetlit.teaching.figures import private_k as plots
from tests.figures import EveryFigure, lines, notes, panels, same

BEFORE, AFTER = [1, 2, 3], [100, 2, 3]
SHARES = np.array([0.2, 0.3, 0.5]), np.array([0.9, 0.04, 0.06])
OFFSETS = np.linspace(-2, 2, 41)
DENSITIES = np.exp(-abs(OFFSETS)) / 2, np.exp(-abs(OFFSETS) / 2) / 4
LAWS = {
    1: (np.array([-2, -1, 0]), np.array([0.2, 0.3, 0.5])),
    2: (np.array([-1, 0, -3]), np.array([0.3, 0.6, 0.1])),
}
SLACK = np.arange(1, 13)
EXACT = 0.9 * np.exp(-0.5 * SLACK)
BOUNDS = {"theorem": 9 * np.exp(-0.5 * SLACK), "published": 9 * np.exp(-SLACK)}
K = np.array([1, 2, 4])
WEIGHTS = np.array([4.0, 7.0, 10.0])
ABOVE, BELOW = np.array([0.7, 0.5, 0.4]), np.array([0.3, 0.3, 0.3])
DISTANCES = np.array([1, 10, 100, 1000])
LEVELS = {"published": 0.003, "library": 0.0005, "ratio": 0.0004}
CHANCES = np.array([1e-7, 1e-6, 1e-3, 0.5, 1.0])
TABLES = {"before": [9, 5, 4, 3, 2], "after": [1, 5, 4, 3, 2]}
COHORTS = {"before": [[0], [1, 2, 3], [4]], "after": [[1], [2, 3, 4], [0]]}
PARTS = {"mean": 1.0, "variance": 1.0, "rank": 1.0, "total": 0.3, "value": 0.2}
LOSSES = {"one": (1.0, 2.0), "two": (3.0, 3.5), "three": (1.0, 25.0)}
LAPLACE_NOISE = Mechanism(kind=LAPLACE, sensitivity=0.01, scale=0.02)
CHOICE = Mechanism(kind=EXPONENTIAL, sensitivity=1.0)
LEDGERS = {
    "cohorts": Ledger(
        PRIVATE_SIZES,
        (Cohort("few", 10, "at random"), Cohort("final", 90, "at random")),
        (
            Step("first mean", ("few",), LAPLACE_NOISE, 1.0),
            Step("cap on sizes", ("final",), CHOICE, 0.25),
            Step("release of the mean", ("final",), LAPLACE_NOISE, 0.75),
        ),
    ),
    "together": Ledger(
        PRIVATE_SIZES,
        (Cohort("everyone", 100, "no selection"),),
        (
            Step("total weight", ("everyone",), LAPLACE_NOISE, 0.5),
            Step("weighted deviations", ("everyone",), LAPLACE_NOISE, 0.5),
        ),
    ),
}
STARTS = 2.0 ** np.arange(4)
COUNTS, NOISY = np.array([400.0, 200, 50, 9]), np.array([405.0, 190, 60, 3])
N = np.array([1000, 10_000])
SIMULATED = {
    "plain": (np.array([4e-4, 1e-4]), np.array([4e-5, 1e-5])),
    "ratio": (np.array([9e-4, 1e-5]), np.array([9e-5, 1e-6])),
    "auto": (np.array([4e-4, 9e-6]), np.array([4e-5, 9e-7])),
}
PREDICTED = {"plain": np.array([4.1e-4, 1.1e-4])}
PRICES = np.array([2.0, 1.1]), np.array([0.2, 0.05])

FIGURES = {
    "weight_shares": lambda: plots.weight_shares(BEFORE, AFTER, SHARES),
    "scale_ratio": lambda: plots.scale_ratio(OFFSETS, DENSITIES, 1.0),
    "order_statistic_laws": lambda: plots.order_statistic_laws(LAWS),
    "rank_failure": lambda: plots.rank_failure(SLACK, EXACT, BOUNDS, 0.05),
    "contributions": lambda: plots.contributions(K, WEIGHTS, ABOVE, BELOW),
    "sensitivity_by_distance": lambda: plots.sensitivity_by_distance(
        DISTANCES, 0.0004 * (1 + DISTANCES / 100), LEVELS, 50.0
    ),
    "pass_probabilities": lambda: plots.pass_probabilities(
        np.arange(-1, 4), CHANCES, 2.0, 1e-6
    ),
    "rank_cohorts": lambda: plots.rank_cohorts(TABLES, COHORTS, "TFB"),
    "loss_parts": lambda: plots.loss_parts(PARTS, {"claimed": 3.0, "proved": 6.0}),
    "claimed_and_found": lambda: plots.claimed_and_found(LOSSES),
    "ledgers": lambda: plots.ledgers(LEDGERS),
    "size_histogram": lambda: plots.size_histogram(
        STARTS, COUNTS, NOISY, 20.0, np.array([1.0, 1.8, 3.0, 4.0])
    ),
    "accuracy": lambda: plots.accuracy(N, SIMULATED, PREDICTED),
    "price": lambda: plots.price(N, *PRICES),
}


class TestEveryFigure(EveryFigure):
    figures = FIGURES


def test_weight_shares_are_in_per_cent_and_name_the_change():
    figure = FIGURES["weight_shares"]()
    old, new = lines(figure)
    assert same(old, [20, 30, 50], [2, 1, 0])
    assert same(new, [90, 4, 6], [2, 1, 0])
    names = [text.get_text() for text in figure.axes[0].get_yticklabels()]
    assert names == ["1 → 100", "2", "3"]


def test_scale_ratio_draws_both_densities_and_the_log_of_their_ratio():
    figure = FIGURES["scale_ratio"]()
    for drawn, density in zip(lines(figure, 0), DENSITIES, strict=True):
        assert same(drawn, OFFSETS, density)
    (loss,) = lines(figure, 1)
    assert same(loss, OFFSETS, abs(OFFSETS) / 2 - np.log(2))


def test_order_statistic_laws_write_the_price_above_each_probability():
    figure = FIGURES["order_statistic_laws"]()
    for axes, (rank, (utilities, chances)) in zip(
        panels(figure), LAWS.items(), strict=True
    ):
        assert axes.get_title() == f"rank {rank}"
        assert np.allclose([bar.get_height() for bar in axes.patches], chances)
        colours = [bar.get_facecolor() for bar in axes.patches]
        best = int(np.argmax(utilities))
        assert colours.count(colours[best]) == 1
        assert [text.get_text() for text in axes.texts] == [
            str(-utility) for utility in utilities
        ]


def test_rank_failure_shows_bounds_up_to_one_and_the_exact_chance():
    figure = FIGURES["rank_failure"]()
    _, theorem, published, exact = lines(figure)
    assert same(exact, SLACK, EXACT)
    for drawn, bound in zip((theorem, published), BOUNDS.values(), strict=True):
        assert same(drawn, SLACK[bound <= 1], bound[bound <= 1])
    assert {"theorem", "published", "exact", "beta = 0.05"} == set(notes(figure))


def test_contributions_mark_the_extremes_of_both_sums():
    figure = FIGURES["contributions"]()
    weight, *ends = lines(figure, 0)
    assert same(weight, K, WEIGHTS)
    assert [y[0] for _, y in ends] == [4.0, 10.0]
    low, high, up, down = lines(figure, 1)
    assert np.isclose(low[1][0], -3.0)
    assert np.isclose(high[1][0], 4.0)
    assert same(up, K, WEIGHTS * ABOVE)
    assert same(down, K, -WEIGHTS * BELOW)


def test_sensitivity_by_distance_draws_the_bound_and_every_level():
    figure = FIGURES["sensitivity_by_distance"]()
    needed, curve, *levels = lines(figure)
    assert needed[0][0] == 50.0
    assert same(curve, DISTANCES, 0.0004 * (1 + DISTANCES / 100))
    assert [y[0] for _, y in levels] == list(LEVELS.values())
    assert set(LEVELS) <= set(notes(figure))
    with pytest.raises(ValueError, match="zip"):
        plots.sensitivity_by_distance(
            DISTANCES, np.ones(4), LEVELS | {"four": 1.0}, 5.0
        )


def test_pass_probabilities_draw_the_chances_the_bar_and_delta():
    bar, curve, delta = lines(FIGURES["pass_probabilities"]())
    assert bar[0][0] == 2.0
    assert same(curve, np.arange(-1, 4), CHANCES)
    assert np.allclose(delta[1], 1e-6)


def test_rank_cohorts_outline_those_who_change_cohorts():
    figure = FIGURES["rank_cohorts"]()
    for axes, (name, k) in zip(panels(figure), TABLES.items(), strict=True):
        order = [user for group in COHORTS[name] for user in group]
        assert [bar.get_height() for bar in axes.patches] == [k[u] for u in order]
        outlined = [
            user
            for user, bar in zip(order, axes.patches, strict=True)
            if bar.get_edgecolor()[3] > 0
        ]
        assert sorted(outlined) == [0, 1, 4]
        assert [line.get_xdata()[0] for line in axes.lines] == [1.5, 4.5]
    assert {"0", "1", "4", "T", "F", "B"} == set(notes(figure))


def test_loss_parts_start_where_the_one_before_ended():
    figure = FIGURES["loss_parts"]()
    bars = panels(figure)[0].patches
    assert np.allclose([bar.get_width() for bar in bars], list(PARTS.values()))
    assert np.allclose([bar.get_x() for bar in bars], [0, 1, 2, 3, 3.3])
    assert notes(figure)[4:] == ["3.5", "claimed", "proved"]


def test_claimed_and_found_draws_both_and_writes_what_was_found():
    figure = FIGURES["claimed_and_found"]()
    claimed, found = lines(figure)
    assert same(claimed, [1, 3, 1], [2, 1, 0])
    assert same(found, [2, 3.5, 25], [2, 1, 0])
    assert notes(figure) == ["2", "3.5", "25"]


def test_ledgers_stack_the_steps_of_each_cohort():
    figure = FIGURES["ledgers"]()
    axes = panels(figure)[0]
    names = [text.get_text() for text in axes.get_yticklabels()]
    assert names == ["cohorts: few", "cohorts: final", "together"]
    drawn = [
        (round(bar.get_y() + bar.get_height() / 2), bar.get_x(), bar.get_width())
        for bar in axes.patches
    ]
    assert drawn == [
        (2, 0, 1.0),
        (1, 0, 0.25),
        (1, 0.25, 0.75),
        (0, 0, 0.5),
        (0, 0.5, 0.5),
    ]
    (legend,) = figure.legends
    assert [text.get_text() for text in legend.get_texts()] == [
        "first mean or anchor",
        "sizes",
        "total weight",
        "release",
    ]


def test_every_step_of_the_library_has_a_kind():
    kinds = {
        "first mean": "first mean or anchor",
        "anchor": "first mean or anchor",
        "spread between users": "spread",
        "first variance": "spread",
        "typical spread": "spread",
        "cap on sizes": "sizes",
        "order statistic": "sizes",
        "histogram of sizes": "sizes",
        "total weight": "total weight",
        "test of the distance": "test",
        "tail test": "test",
        "release of the mean": "release",
        "total offset": "release",
        "weighted deviations": "release",
        "second plain mean": "release",
        "plain mean": "release",
    }
    assert {name: plots.kind_of_step(name) for name in kinds} == kinds
    with pytest.raises(ValueError, match="no kind"):
        plots.kind_of_step("dance")


def test_size_histogram_shows_noisy_counts_only_where_they_are_believed():
    figure = FIGURES["size_histogram"]()
    top, bottom = panels(figure)
    assert [bar.get_height() for bar in top.patches] == COUNTS.tolist()
    assert [bar.get_x() for bar in top.patches] == STARTS.tolist()
    points, clear = lines(figure, 0)
    assert np.allclose(points[1], [405, 190, 60])
    assert clear[1][0] == 20.0
    assert np.allclose(bottom.lines[0].get_ydata(), [1, 1.8, 3, 4])


def test_accuracy_draws_roots_with_two_standard_errors_and_predictions():
    figure = FIGURES["accuracy"]()
    axes = panels(figure)[0]
    for bars, (values, errors) in zip(axes.containers, SIMULATED.values(), strict=True):
        points, _, (spans,) = bars
        root = np.sqrt(values)
        assert np.allclose(points.get_ydata(), root)
        assert np.allclose(points.get_xdata(), N, rtol=0.1)
        low, high = np.array(spans.get_segments())[:, :, 1].T
        assert np.allclose(high - low, 2 * errors / root)
    thick = [line for line in axes.lines if line.get_lw() == 2.0]
    assert same(thick[0].get_data(), N, np.sqrt(PREDICTED["plain"]))
    heights = sorted(text.xy[1] for text in axes.texts)
    assert set(notes(figure)) == set(SIMULATED)
    assert (np.diff(np.log(heights)) > 0.2).all()


def test_price_draws_ratios_with_two_standard_errors():
    figure = FIGURES["price"]()
    ((points, _, (spans,)),) = figure.axes[0].containers
    assert np.allclose(points.get_ydata(), PRICES[0])
    low, high = np.array(spans.get_segments())[:, :, 1].T
    assert np.allclose(high - low, 4 * PRICES[1])
    assert lines(figure)[0][1][0] == 1.0
