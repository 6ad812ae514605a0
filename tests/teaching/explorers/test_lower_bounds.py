"""The explorer of the lower bound: exact ratios, and what nobody gets below."""

from __future__ import annotations

import itertools
import re
from typing import Any

import numpy as np
import pytest
from scipy import optimize

from hetlit import (
    Beta,
    dp_cramer_rao,
    estimate_ideal,
    optimal_weights,
    sample_users,
    user_variance,
)
from hetlit.estimators.baselines import user_mean
from hetlit.teaching.explorers.lower_bounds import (
    EPSILONS,
    LOWER_BOUND,
    MARKED,
    MEAN,
    SHARES,
    SIZES,
    over_bound,
)
from hetlit.teaching.explorers.picture import coordinates, number, percent
from tests.explorers import values_of

GRID = list(itertools.product(*values_of(LOWER_BOUND.on_page)))


def ratios(users: int, spread: float) -> np.ndarray:
    """Return ideal, plain and no privacy, shape (3, epsilons)."""
    return np.transpose([over_bound(users, spread, e) for e in EPSILONS])


@pytest.mark.parametrize(("users", "spread"), GRID)
def test_only_what_is_not_private_gets_below_the_bound(
    users: int, spread: float
) -> None:
    ideal, plain, free = ratios(users, spread)
    assert (ideal >= 1 - 1e-12).all()
    assert (plain >= ideal * (1 - 1e-12)).all()
    assert (free <= 1 + 1e-12).all()
    assert (np.diff(free) >= 0).all()


@pytest.mark.parametrize(("users", "spread"), GRID)
def test_the_ideal_estimator_comes_down_and_the_plain_mean_stops(
    users: int, spread: float
) -> None:
    ideal, plain, _ = ratios(users, spread)
    assert (np.diff(ideal) < 1e-9).all()
    variances = variances_of(spread)
    limit = float(SHARES @ variances) * float(SHARES @ (1.0 / variances)) / 100.0**2
    assert limit > 1.1
    assert plain[-1] == pytest.approx(limit, rel=0.02)
    far = over_bound(users, spread, 1000.0)
    assert far[0] == pytest.approx(1.0, abs=0.01)
    assert far[2] == pytest.approx(1.0, abs=1e-9)


def variances_of(spread: float) -> np.ndarray:
    return np.asarray(user_variance(SIZES, MEAN, spread**2))


@pytest.mark.parametrize("epsilon", [0.1, 1.0])
def test_the_bound_is_the_least_value_of_its_objective(epsilon: float) -> None:
    users, spread = 1000, 0.05
    counts, variances = users * SHARES / 100.0, variances_of(spread)
    price = 1.0 / (2.0 * np.sinh(epsilon / 2.0) ** 2)

    def objective(shape: np.ndarray) -> float:
        w = np.append(shape, 1.0) / float(counts @ np.append(shape, 1.0))
        return float(counts @ (w**2 * variances) + price * np.max(w**2 * variances))

    found = optimize.minimize(
        objective,
        [0.1, 0.3, 0.8],
        method="Nelder-Mead",
        options={"xatol": 1e-10, "fatol": 1e-16, "maxiter": 10_000},
    ).fun
    exact = float(counts @ variances) / users**2 + 2.0 / (users * epsilon) ** 2
    assert over_bound(users, spread, epsilon)[1] == pytest.approx(
        exact / found, rel=1e-6
    )


@pytest.mark.parametrize("epsilon", [0.03, 1.0, 10.0])
def test_variances_are_those_that_the_estimators_announce(epsilon: float) -> None:
    users, spread = 1000, 0.1
    rng = np.random.default_rng(0)
    k = np.repeat(SIZES, users * SHARES // 100)
    drawn = sample_users(Beta(MEAN, spread**2), k, rng)
    ideal, plain, free = over_bound(users, spread, epsilon)
    known: dict[str, Any] = {"p": MEAN, "var_p": spread**2, "width": np.ones_like}
    trace = estimate_ideal(
        drawn, epsilon=epsilon, weights="optimal", rng=rng, trace=True, **known
    ).trace
    noise = 2.0 * user_mean(drawn, epsilon, rng=rng, trace=True).trace.noise_scale ** 2
    variances = user_variance(k, MEAN, spread**2)
    assert ideal / plain == pytest.approx(
        trace.objective / (variances.mean() / users + noise), rel=1e-9
    )
    assert ideal / free == pytest.approx(
        trace.objective * np.sum(1.0 / variances), rel=1e-9
    )
    # Nobody is clipped, so the estimator is unbiased and the bound speaks about it.
    assert (trace.lower <= 0.0).all()
    assert (trace.upper >= 1.0).all()


def by_hand(users: int, spread: float, epsilon: float) -> tuple[float, ...]:
    """Return ideal, plain and no privacy over the bound."""
    # Twenty kinds of users: with these shares there are as many of each.
    kinds = np.repeat([1, 10, 100, 1000], [10, 6, 3, 1])
    each, variances = np.full(20, users // 20), user_variance(kinds, 0.3, spread**2)
    _, ideal = optimal_weights(variances, np.ones(20), epsilon, counts=each)
    plain = variances.mean() / users + 2.0 * (1.0 / users / epsilon) ** 2
    free = 20.0 / (users * np.sum(1.0 / variances))
    bound = dp_cramer_rao(1.0 / variances, epsilon, counts=each)
    return ideal / bound, plain / bound, free / bound


@pytest.mark.parametrize(("users", "spread"), GRID)
def test_every_mark_is_what_its_name_says(users: int, spread: float) -> None:
    (panel,) = LOWER_BOUND.at(users=users, spread=spread).panels
    marks = {mark.name: coordinates(mark) for mark in panel.marks}
    grid = np.geomspace(0.01, 10.0, 49)
    curves = np.transpose([by_hand(users, spread, e) for e in grid])
    names = "ideal, clips nobody", "plain mean", "no privacy"
    for name, curve in zip(names, curves, strict=True):
        np.testing.assert_allclose(marks[name]["x"], grid, rtol=1e-12)
        np.testing.assert_allclose(marks[name]["y"], curve, rtol=1e-9)
    shaded = marks["out of reach"]
    assert shaded["x"].tolist() == [panel.x.low, panel.x.high]
    assert shaded["low"].tolist() == [panel.y.low] * 2
    assert shaded["high"].tolist() == [1.0, 1.0]
    assert marks.keys() == {*names, "in the sentence below", "out of reach"}


@pytest.mark.parametrize("epsilon", MARKED)
def test_the_reading_has_the_three_ratios_and_two_are_marked(epsilon: float) -> None:
    def above(ratio: float) -> str:
        if ratio < 2.0:
            return f"{percent(ratio - 1.0)} above"
        return f"{number(ratio)} times"

    for users, spread in GRID:
        ideal, plain, free = by_hand(users, spread, epsilon)
        picture = LOWER_BOUND.at(users=users, spread=spread, epsilon=epsilon)
        marked = coordinates(picture.panels[0].marks[-1])
        assert marked["x"].tolist() == [epsilon, epsilon]
        np.testing.assert_allclose(marked["y"], [ideal, plain], rtol=1e-9)
        assert picture.reading == (
            f"At epsilon {epsilon:g} the variance of the ideal estimator is "
            f"{above(ideal)} the bound, and that of the plain mean {above(plain)} it. "
            f"The bound itself is {above(1.0 / free)} that without privacy."
        )


def test_the_setting_has_the_numbers_of_the_population() -> None:
    numbers = re.findall(r"[\d,.]*\d", LOWER_BOUND.setting)
    rest = itertools.chain(*zip(SHARES[1:], SIZES[1:], strict=True))
    assert SHARES[0] == 50  # "Half of the users"
    assert [float(n.replace(",", "")) for n in numbers] == [SIZES[0], *rest, MEAN]
