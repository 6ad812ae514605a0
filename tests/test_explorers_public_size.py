"""The explorer of a hundred runs: they are the library's, on the population it says.

Statistical tests allow six standard errors, which chance exceeds less than once in
10^7.
"""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from hetlit import estimate_ideal, estimate_public_size, user_variance
from hetlit.baselines import user_mean
from hetlit.explorers import public_size as module
from hetlit.explorers.picture import Points
from hetlit.explorers.public_size import (
    MEAN,
    REALIZABLE,
    RUNS,
    SIZES,
    hundred_runs,
    populations,
    standard_errors,
)
from hetlit.grouping import by_size


@pytest.mark.parametrize(("n", "epsilon"), [(300, 0.5), (10_000, 1.0)])
def test_the_runs_are_those_of_the_library(n: int, epsilon: float) -> None:
    values, guesses = hundred_runs(n, epsilon, 0.02, seed=3)
    rng = np.random.default_rng(3)
    tables = populations(n, 0.02, rng)
    for run, users in enumerate(tables[:20]):
        auto = estimate_public_size  # without plans made in advance
        assert values["plain mean"][run] == user_mean(users, epsilon, rng=rng).value
        assert values["auto"][run] == (found := auto(users, epsilon, rng=rng)).value
        ideal = estimate_ideal(
            users, MEAN, 0.02**2, epsilon, weights="optimal", rng=rng
        )
        assert values["ideal"][run] == pytest.approx(ideal.value, rel=1e-12)
        assert guesses == (len(found.ledger.steps) == 4)


def test_a_population_has_the_shares_and_the_variances_that_it_should() -> None:
    n, spread = 10_000, 0.1
    tables = populations(n, spread, np.random.default_rng(1))
    assert len(tables) == RUNS
    for users in tables:
        assert by_size(users).counts.tolist() == [5000, 3000, 1500, 500]
    for size in SIZES:
        rows = [(u.means[u.k == size], u.counts[u.k == size]) for u in tables]
        means, counts = (np.concatenate(parts) for parts in zip(*rows, strict=True))
        expected, total = user_variance(int(size), MEAN, spread**2), counts.sum()
        off = float(counts @ (means - MEAN)) / total
        assert abs(off) < 6 * math.sqrt(expected / total)
        squares = (means - MEAN) ** 2
        error = math.sqrt(float(counts @ (squares - expected) ** 2) / total / total)
        assert abs(float(counts @ squares) / total - expected) < 6 * error


@pytest.mark.parametrize("spread", [0.01, 0.1])
def test_standard_errors_are_those_that_the_estimators_announce(spread: float) -> None:
    n, epsilon = 3000, 0.5
    rng = np.random.default_rng(2)
    users = populations(n, spread, rng)[0]
    plain, ideal = standard_errors(n, epsilon, spread)
    announced = estimate_ideal(
        users, MEAN, spread**2, epsilon, weights="optimal", rng=rng, trace=True
    ).trace.objective
    assert ideal**2 == pytest.approx(announced, rel=1e-12)
    variances = user_variance(np.repeat(SIZES, [1500, 900, 450, 150]), MEAN, spread**2)
    exact = variances.mean() / n + 2.0 / (n * epsilon) ** 2
    assert plain**2 == pytest.approx(exact, rel=1e-12)


@pytest.mark.parametrize(("n", "epsilon"), [(300, 0.1), (3000, 1.0)])
def test_the_errors_are_as_large_as_theory_says(n: int, epsilon: float) -> None:
    runs = [hundred_runs(n, epsilon, 0.02, seed)[0] for seed in range(1, 6)]
    expected = dict(
        zip(("plain mean", "ideal"), standard_errors(n, epsilon, 0.02), strict=True)
    )
    for name, error in expected.items():
        squares = np.concatenate([values[name] - MEAN for values in runs]) ** 2
        # A squared error has a variance of at most 5 times its squared mean, that of
        # Laplace noise alone.
        allowed = 6 * error**2 * math.sqrt(5 / len(squares))
        assert abs(squares.mean() - error**2) < allowed


def test_with_first_guesses_auto_stays_close_to_the_ideal_estimator() -> None:
    grid = itertools.product(*(p.values for p in REALIZABLE.on_page))
    guessed = 0
    for n, epsilon in grid:
        values, guesses = hundred_runs(int(n), float(epsilon), 0.02, seed=1)
        if guesses:
            guessed += 1
            errors = {name: np.std(v - MEAN) for name, v in values.items()}
            assert errors["auto"] < 1.4 * errors["ideal"]
    assert 15 < guessed < 49


def test_dots_are_sorted_and_drawn_in_units_of_the_ideal_error() -> None:
    picture = REALIZABLE.at(users=1000, epsilon=5.0)
    values, _ = hundred_runs(1000, 5.0, 0.02, seed=1)
    unit = standard_errors(1000, 5.0, 0.02)[1]
    for mark in picture.panels[0].marks:
        if isinstance(mark, Points):
            assert (np.diff(mark.y) >= 0).all()
            inside = np.abs(mark.y) < module.EDGE
            expected = np.sort(values[mark.name] - MEAN) / unit
            np.testing.assert_allclose(mark.y[inside], expected[inside], rtol=1e-12)


def test_markers_stand_at_the_root_mean_squared_errors() -> None:
    picture = REALIZABLE.at()
    values, _ = hundred_runs(3000, 1.0, 0.02, seed=1)
    shown = {m.name: m.y[0] for m in picture.panels[1].marks if isinstance(m, Points)}
    for name, released in values.items():
        error = math.sqrt(np.mean((released - MEAN) ** 2))
        assert shown[name] == pytest.approx(error, rel=1e-12)
        assert f"{1000 * error:.3g} for" in picture.reading


def test_the_reading_says_whether_there_were_first_guesses() -> None:
    assert "makes no first guesses" in REALIZABLE.at(users=300, epsilon=0.1).reading
    assert "private first guesses" in REALIZABLE.at(users=30_000).reading
