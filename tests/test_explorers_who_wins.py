"""The map of winners: variances against simulation, and what the notice says.

Statistical tests allow six standard errors, computed and not estimated, which chance
exceeds less than once in 10^7: a squared error varies by sqrt(2) times its mean.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable

import numpy as np
import pytest
from scipy import stats

from hetlit import Users, estimate_ideal, estimate_public_size
from hetlit.adaptive import expected_variance
from hetlit.baselines import median_truncation, pooled_mean, user_mean
from hetlit.estimate import Trace
from hetlit.explorers.who_wins import (
    CAP,
    CLASSES,
    EPSILONS,
    LOOKS,
    MEAN,
    SKEWS,
    TIE,
    USERS,
    WINNERS,
    all_variances,
    groups,
    ideal_variance,
    plans,
    winner,
)
from hetlit.plots.explorers import draw

SPREADS = [float(value) for value in WINNERS.parameters[0].values]
GRID = list(itertools.product(SPREADS, SKEWS))


def tables(
    n: int, skew: float, spread: float, runs: int, rng: np.random.Generator
) -> list[Users]:
    """Return so many tables of users with beta rates, or with one rate."""
    held = groups(n, skew).k.astype(int)
    drawn = []
    for k, count in zip(held, groups(n, skew).counts, strict=True):
        law = stats.binom(k, MEAN)
        if spread:
            m = MEAN * (1 - MEAN) / spread**2 - 1
            law = stats.betabinom(k, MEAN * m, (1 - MEAN) * m)
        chances = law.pmf(np.arange(k + 1))
        drawn.append(rng.multinomial(count, chances / chances.sum(), size=runs))
    sizes = np.repeat(held, held + 1)
    ones = np.concatenate([np.arange(k + 1) for k in held])
    rows = np.concatenate(drawn, axis=1)
    return [Users(sizes[row > 0], ones[row > 0], row[row > 0]) for row in rows]


def mean_square(runs: list[Users], method: Callable[[Users], Trace]) -> float:
    """Return the mean squared error, averaged over the last noise."""
    squares = []
    for users in runs:
        inside = method(users)
        squares.append((inside.noiseless - MEAN) ** 2 + 2 * inside.noise_scale**2)
    return float(np.mean(squares))


@pytest.mark.parametrize(
    ("n", "skew", "spread", "epsilon"),
    [(300, 1.0, 0.05, 0.3), (1000, 2.0, 0.0, 1.0), (1000, 0.0, 0.3, 3.0)],
)
def test_variances_without_guesses_are_exact(
    n: int, skew: float, spread: float, epsilon: float
) -> None:
    rng = np.random.default_rng(n)
    runs = tables(n, skew, spread, 300, rng)
    assert plans(n, skew, epsilon).adaptive is None
    options = {"rng": rng, "trace": True}
    methods: dict[str, Callable[[Users], Trace]] = {
        "plain mean": lambda users: user_mean(users, epsilon, **options).trace,
        "median": lambda users: median_truncation(users, epsilon, **options).trace,
        "samples, up to 100 each": lambda users: (
            pooled_mean(users.capped(CAP, rng), epsilon, **options).trace
        ),
        "auto, cautious": lambda users: (
            estimate_public_size(users, epsilon, **options).trace
        ),
    }
    predicted = all_variances(n, skew, spread, epsilon)
    assert list(predicted) == list(methods)
    for name, method in methods.items():
        found = mean_square(runs, method) / predicted[name]
        assert abs(found - 1.0) < 6 * math.sqrt(2 / len(runs))


@pytest.mark.parametrize(
    ("n", "skew", "spread", "epsilon"),
    [
        (3000, 1.0, 0.1, 1.0),
        (3000, 2.0, 0.02, 10.0),
        (10_000, 1.0, 0.05, 1.0),
        (30_000, 3.0, 0.0, 0.1),
        (1_000_000, 1.5, 0.3, 0.03),
    ],
)
def test_auto_with_guesses_comes_close_to_what_right_ones_would_give(
    n: int, skew: float, spread: float, epsilon: float
) -> None:
    rng = np.random.default_rng(n)
    planned = plans(n, skew, epsilon)
    assert planned.adaptive is not None
    runs = tables(n, skew, spread, 600, rng)
    found = mean_square(
        runs,
        lambda users: (
            estimate_public_size(
                users, epsilon, plans=planned, rng=rng, trace=True
            ).trace
        ),
    )
    found /= expected_variance(planned, MEAN, spread**2)
    error = math.sqrt(2 / len(runs))
    assert 0.85 * (1 - 6 * error) < found < 1.4 * (1 + 6 * error)


def test_the_yardstick_is_the_ideal_estimator() -> None:
    rng = np.random.default_rng(0)
    for skew, spread in ((1.0, 0.05), (3.0, 0.3)):
        users = tables(10_000, skew, spread, 1, rng)[0]
        trace = estimate_ideal(
            users, MEAN, spread**2, 1.0, weights="optimal", rng=rng, trace=True
        ).trace
        found = ideal_variance(10_000, skew, spread, 1.0)
        assert found == pytest.approx(trace.objective, rel=1e-9)


def test_sizes_are_quantiles_with_median_ten() -> None:
    assert groups(100, 0.0).k.tolist() == [10.0]
    for skew in SKEWS.values():
        for n in USERS:
            people = groups(n, skew)
            assert people.counts.sum() == n
            assert n % CLASSES == 0
            below = people.counts[people.k < 10].sum()
            above = people.counts[people.k > 10].sum()
            assert max(below, above) <= n / 2
    largest = [groups(100, skew).k[-1] for skew in SKEWS.values()]
    assert (np.diff(largest) > 0).all()


def test_the_simplest_of_equals_wins() -> None:
    assert winner({"plain": 1.0, "median": 1.0, "auto, cautious": 1.0}) == "plain"
    assert winner({"plain": TIE * 0.999, "auto, cautious": 1.0}) == "plain"
    assert winner({"plain": TIE * 1.001, "auto, cautious": 1.0}) == "auto, cautious"


@pytest.mark.parametrize(("spread", "held"), GRID)
def test_each_cell_has_one_winner_and_the_reading_counts_them(
    spread: float, held: str
) -> None:
    picture = WINNERS.at(spread=spread, held=held)
    (panel,) = picture.panels
    assert [mark.name for mark in panel.marks] == list(LOOKS)
    cells = [cell for m in panel.marks for cell in zip(m.x, m.y, strict=True)]
    assert sorted(cells) == sorted(itertools.product(USERS, EPSILONS))
    won = {mark.name: len(mark.x) for mark in panel.marks}
    autos = won["auto, cautious"] + won["auto, first guesses"]
    assert f"the plain mean wins {won['plain mean']}," in picture.reading
    assert f"and auto {autos}," in picture.reading
    # What the notice says: median truncation is not among those who won.
    plain = panel.marks[0]
    assert (USERS[0], EPSILONS[0]) in zip(plain.x, plain.y, strict=True)


@pytest.mark.parametrize("spread", SPREADS)
def test_the_more_unequal_sizes_are_the_less_is_left_to_the_plain_mean(
    spread: float,
) -> None:
    left = [len(WINNERS.at(spread=spread, held=s).panels[0].marks[0].x) for s in SKEWS]
    assert left == sorted(left, reverse=True)
    assert left[0] == len(USERS) * len(EPSILONS)
    assert left[-1] < left[0]


def test_methods_that_win_nowhere_can_be_drawn() -> None:
    figure = draw(WINNERS.at(spread=0.0, held="10 each"))
    assert len(figure.axes[0].lines) == len(LOOKS)
    assert len(figure.legends[0].get_texts()) == len(LOOKS)
