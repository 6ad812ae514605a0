"""The map of winners: variances by definition and simulated, what the notice says.

Statistical tests allow six standard errors, computed and not estimated, which chance
exceeds less than once in 10^7: a squared error varies by sqrt(2) times its mean.
"""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import pytest
from scipy import stats

from hetlit import Users, estimate_ideal, estimate_public_size, user_variance
from hetlit.estimators.baselines import median_truncation, pooled_mean, user_mean
from hetlit.estimators.public_size.auto import Plans, expected_variance, make_plans
from hetlit.estimators.result import Trace
from hetlit.teaching.draw import draw
from hetlit.teaching.explorers.picture import Points, number
from hetlit.teaching.explorers.who_wins import (
    CAP,
    EPSILONS,
    LOOKS,
    MEAN,
    MEDIAN_SIZE,
    SKEWS,
    TIE,
    USERS,
    WINNERS,
    all_variances,
    groups,
    plans,
    winner,
)
from hetlit.users.groups import by_size_class

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
    [(300, 1.0, 0.05, 0.3), (300, 2.0, 0.0, 1.0), (1000, 0.5, 0.3, 3.0)],
)
def test_methods_without_guesses_come_close_to_their_variances_when_simulated(
    n: int, skew: float, spread: float, epsilon: float
) -> None:
    rng = np.random.default_rng(n)
    runs = tables(n, skew, spread, 300, rng)
    assert plans(n, skew, epsilon).adaptive is None
    options: dict[str, Any] = {"rng": rng, "trace": True}
    methods: dict[str, Callable[[Users], Trace]] = {
        "plain mean": lambda users: user_mean(users, epsilon, **options).trace,
        "median": lambda users: median_truncation(users, epsilon, **options).trace,
        "cap of 100 samples a user": lambda users: (
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
        (300_000, 3.0, 0.3, 0.1),
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


def twenty_users(skew: float) -> np.ndarray:
    """Return the sizes of twenty users; of n users n/20 are like each of them."""
    places = stats.norm.ppf((np.arange(20) + 0.5) / 20)
    sizes = np.maximum(np.rint(10 * np.exp(skew * places)), 1).astype(int)
    # Sizes above 255 keep their eight leading bits, as in the library.
    return np.array([k - k % 2 ** max(int(k).bit_length() - 8, 0) for k in sizes])


@cache
def planned_afresh(n: int, skew: float, epsilon: float) -> Plans:
    k = twenty_users(skew)
    users = Users(k, 0 * k, 0 * k + n // 20)
    return make_plans(by_size_class(users).sizes, epsilon)


def by_definition(
    n: int, skew: float, spread: float, epsilon: float
) -> dict[str, float]:
    """Return the variance of each method, the simplest first, user by user."""
    k = twenty_users(skew)

    def released(given: np.ndarray, weights: np.ndarray) -> float:
        weights = weights / (weights.sum() * n / 20)
        squares = weights**2 * user_variance(given, 0.3, spread**2)
        # Other samples move a user's mean by 1 at most, and the result by her weight.
        return float(n / 20 * squares.sum() + 2 * (weights.max() / epsilon) ** 2)

    made = planned_afresh(n, skew, epsilon)
    auto = "auto, cautious" if made.adaptive is None else "auto, first guesses"
    upper_half, up_to_100 = np.arange(20) >= 10, np.minimum(k, 100)
    return {
        "plain mean": released(k, np.ones(20)),
        "median": released(np.full(20, k[10]), upper_half),
        "cap of 100 samples a user": released(up_to_100, up_to_100),
        auto: expected_variance(made, 0.3, spread**2),
    }


@pytest.mark.parametrize(("spread", "held"), GRID)
def test_variances_are_those_of_the_definitions(spread: float, held: str) -> None:
    for n, epsilon in itertools.product(USERS, EPSILONS):
        found = all_variances(n, SKEWS[held], spread, epsilon)
        expected = by_definition(n, SKEWS[held], spread, epsilon)
        assert found == pytest.approx(expected, rel=1e-9)
        assert list(found) == list(expected)


@pytest.mark.parametrize(("spread", "held"), GRID)
def test_every_cell_is_given_to_the_simplest_of_the_best(
    spread: float, held: str
) -> None:
    (panel,) = WINNERS.at(spread=spread, held=held).panels
    won: dict[str, list[tuple[int, float]]] = {name: [] for name in LOOKS}
    for n, epsilon in itertools.product(USERS, EPSILONS):
        variances = by_definition(n, SKEWS[held], spread, epsilon)
        enough = 1.01 * min(variances.values())
        # What the notice says: median truncation, which has no marks, wins nowhere.
        won[next(name for name in variances if variances[name] <= enough)].append(
            (n, epsilon)
        )
    shown = {}
    for mark in panel.marks:
        assert isinstance(mark, Points)
        shown[mark.name] = list(zip(mark.x, mark.y, strict=True))
    assert shown == won
    # And nothing beats the plain mean at the lower left.
    assert (100, 0.03) in won["plain mean"]


@pytest.mark.parametrize(("spread", "held"), GRID)
def test_the_reading_counts_cells_and_divides_variances_by_the_ideal_one(
    spread: float, held: str
) -> None:
    picture = WINNERS.at(spread=spread, held=held)
    cells = [len(mark.x) for mark in picture.panels[0].marks]
    k = twenty_users(SKEWS[held])
    ideal = estimate_ideal(
        Users(k, 0 * k, 0 * k + 500),
        *(0.3, spread**2, 1.0),
        weights="optimal",
        rng=np.random.default_rng(0),
        trace=True,
    ).trace.objective
    variances = by_definition(10_000, SKEWS[held], spread, 1.0)
    plain, median, cap, auto = (number(v / ideal) for v in variances.values())
    range_of_sizes = f"{number(k[0])} to {number(k[-1])}"
    assert held == ("10 each" if k[0] == k[-1] else range_of_sizes)
    assert picture.reading == (
        f"Sizes are {held}: of 54 cells the plain mean wins {cells[0]}, the cap "
        f"{cells[1]} and auto {cells[2] + cells[3]}, if its first guesses are right. "
        f"With 10,000 users and epsilon 1 the variances of plain mean, median "
        f"truncation, cap and auto are {plain}, {median}, {cap} and {auto} times the "
        f"ideal one."
    )


def test_the_setting_has_the_median_size_and_the_mean() -> None:
    numbers = re.findall(r"[\d.]*\d", WINNERS.setting)
    assert [float(n) for n in numbers] == [MEDIAN_SIZE, MEAN]


def test_the_simplest_of_equals_wins() -> None:
    assert winner({"plain": 1.0, "median": 1.0, "auto, cautious": 1.0}) == "plain"
    assert winner({"plain": TIE * 0.999, "auto, cautious": 1.0}) == "plain"
    assert winner({"plain": TIE * 1.001, "auto, cautious": 1.0}) == "auto, cautious"


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
