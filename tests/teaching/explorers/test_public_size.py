"""The explorer of a hundred runs: they are the library's, on the population it says.

Statistical tests allow six standard errors, which chance exceeds less than once in
10^7.
"""

from __future__ import annotations

import itertools
import math
import re

import numpy as np
import pytest

from hetlit import estimate_ideal, estimate_public_size, optimal_weights, user_variance
from hetlit.estimators.baselines import user_mean
from hetlit.teaching.explorers.picture import Line, Points, coordinates, number
from hetlit.teaching.explorers.public_size import (
    MEAN,
    REALIZABLE,
    RUNS,
    SHARES,
    SIZES,
    USERS,
    hundred_runs,
    populations,
    standard_errors,
)
from hetlit.theory.widths import standard_width
from hetlit.users.groups import by_size


def test_a_population_has_the_shares_and_the_variances_that_it_should() -> None:
    n, spread = 10_000, 0.1
    tables = populations(n, spread, np.random.default_rng(1))
    assert len(tables) == RUNS
    for users in tables:
        assert by_size(users).sizes.counts.tolist() == [5000, 3000, 1500, 500]
    for size in SIZES:
        rows = [(u.means[u.k == size], u.counts[u.k == size]) for u in tables]
        means, counts = (np.concatenate(parts) for parts in zip(*rows, strict=True))
        expected, total = user_variance(int(size), MEAN, spread**2), counts.sum()
        off = float(counts @ (means - MEAN)) / total
        assert abs(off) < 6 * math.sqrt(expected / total)
        squares = (means - MEAN) ** 2
        error = math.sqrt(float(counts @ (squares - expected) ** 2) / total / total)
        assert abs(float(counts @ squares) / total - expected) < 6 * error


def by_hand(n: int, epsilon: float, spread: float) -> tuple[float, float]:
    """Return the standard errors of the plain mean and of the ideal estimator."""
    # Twenty kinds of users: with these shares there are as many of each.
    kinds = np.repeat([1, 5, 50, 500], [10, 6, 3, 1])
    variances = user_variance(kinds, 0.3, spread**2)
    plain = variances.mean() / n + 2.0 * (1.0 / n / epsilon) ** 2
    reach = standard_width(kinds, n, 0.3, spread**2, 0.05)
    widths = np.minimum(0.3 + reach, 1.0) - np.maximum(0.3 - reach, 0.0)
    each = np.full(20, n // 20)
    _, ideal = optimal_weights(variances, widths, epsilon, counts=each)
    return math.sqrt(plain), math.sqrt(ideal)


def run_afresh(
    n: int, epsilon: float, spread: float, seed: int
) -> tuple[dict[str, np.ndarray], bool]:
    """Return the errors of a hundred runs, and whether auto made first guesses."""
    rng = np.random.default_rng(seed)
    errors: dict[str, list[float]] = {"plain mean": [], "auto": [], "ideal": []}
    for users in populations(n, spread, rng):
        auto = estimate_public_size  # without plans made in advance
        errors["plain mean"].append(user_mean(users, epsilon, rng=rng).value - 0.3)
        errors["auto"].append((found := auto(users, epsilon, rng=rng)).value - 0.3)
        ideal = estimate_ideal(
            users, 0.3, spread**2, epsilon, weights="optimal", rng=rng
        )
        errors["ideal"].append(ideal.value - 0.3)
    arrays = {name: np.array(values) for name, values in errors.items()}
    steps = [step.name for step in found.ledger.steps]
    return arrays, "typical spread" in steps


# All budgets with all spreads, all numbers of users with all spreads, and all seeds.
_, EPSILONS, SEEDS, SPREADS = (p.values for p in REALIZABLE.parameters)
POSITIONS = [
    (USERS[i % len(USERS)], epsilon, spread, SEEDS[i % len(SEEDS)])
    for i, (epsilon, spread) in enumerate(itertools.product(EPSILONS, SPREADS))
]


@pytest.mark.parametrize(("n", "epsilon", "spread", "seed"), POSITIONS)
def test_runs_and_theory_are_what_marks_and_reading_say(
    n: int, epsilon: float, spread: float, seed: int
) -> None:
    picture = REALIZABLE.at(users=n, epsilon=epsilon, spread=spread, seed=seed)
    errors, guesses = run_afresh(n, epsilon, spread, seed)
    unit = by_hand(n, epsilon, spread)[1]
    upper, lower = picture.panels
    dots = {mark.name: coordinates(mark) for mark in upper.marks}
    assert dots.pop("truth")["y"].tolist() == [0.0, 0.0]
    assert dots.keys() == errors.keys()
    for name, dot in dots.items():
        assert dot["x"].tolist() == list(range(1, 101))
        # Dots beyond the axis stand at its edge.
        expected = np.clip(np.sort(errors[name]) / unit, upper.y.low, upper.y.high)
        np.testing.assert_allclose(dot["y"], expected, rtol=1e-9, atol=1e-9)

    typical = {name: math.sqrt(np.mean(values**2)) for name, values in errors.items()}
    markers = {m.name: m for m in lower.marks if isinstance(m, Points)}
    lines = {m.look: m for m in lower.marks if isinstance(m, Line)}
    assert markers.keys() == errors.keys()
    for name, marker in markers.items():
        assert marker.x == [n]
        assert marker.y == pytest.approx([typical[name]], rel=1e-9)
    theory = np.transpose([by_hand(m, epsilon, spread) for m in USERS])
    for name, curve in zip(("plain mean", "ideal"), theory, strict=True):
        line = lines.pop(markers[name].look)
        assert line.x == USERS
        np.testing.assert_allclose(line.y, curve, rtol=1e-9)
    assert not lines

    plain, auto, ideal = (number(1000 * value) for value in typical.values())
    plan = "starts with private" if guesses else "makes no"
    assert picture.reading == (
        f"Root mean squared errors of these hundred runs, in thousandths: {plain} for "
        f"the plain mean, {auto} for auto, {ideal} for the ideal estimator. "
        f"With these sizes and this budget auto {plan} first guesses."
    )


def test_the_setting_has_the_numbers_of_the_population() -> None:
    numbers = re.findall(r"[\d.]*\d", REALIZABLE.setting)
    rest = itertools.chain(*zip(SHARES[1:], SIZES[1:], strict=True))
    assert SHARES[0] == 50  # "Half of the users"
    assert [float(n) for n in numbers] == [SIZES[0], *rest, MEAN]


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


@pytest.mark.slow
def test_with_first_guesses_auto_stays_close_to_the_ideal_estimator() -> None:
    grid = itertools.product(*(p.values for p in REALIZABLE.on_page))
    guessed = 0
    for n, epsilon in grid:
        values, guesses = hundred_runs(int(n), float(epsilon), 0.02, seed=1)
        if guesses:
            guessed += 1
            errors = {name: np.std(v - MEAN) for name, v in values.items()}
            assert errors["auto"] < 1.5 * errors["ideal"]
    assert 15 < guessed < 49
