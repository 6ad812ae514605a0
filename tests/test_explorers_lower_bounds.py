"""The explorer of the lower bound: exact ratios, and what nobody gets below."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from scipy import optimize

from hetlit import Beta, estimate_ideal, sample_users, user_variance
from hetlit.baselines import user_mean
from hetlit.explorers.lower_bounds import (
    EPSILONS,
    LOWER_BOUND,
    MEAN,
    SHARES,
    SIZES,
    lower_bound,
    over_bound,
)
from hetlit.explorers.picture import Line

GRID = list(itertools.product(*(p.values for p in LOWER_BOUND.on_page)))


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
    known = {"p": MEAN, "var_p": spread**2, "width": np.ones_like}
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


def test_curves_pass_through_the_markers() -> None:
    picture = lower_bound(users=1000, spread=0.05, epsilon=0.1)
    marks = {mark.name: mark for mark in picture.panels[0].marks}
    for name, value in zip(
        ("ideal, clips nobody", "plain mean"), marks["read below"].y, strict=True
    ):
        line = marks[name]
        assert isinstance(line, Line)
        logs = np.interp(np.log(0.1), np.log(line.x), np.log(line.y))
        assert np.exp(logs) == pytest.approx(value, rel=0.01)


@pytest.mark.parametrize(
    ("users", "spread", "epsilon", "words"),
    [
        (100, 0.01, 0.01, "The bound itself is 585 times that without privacy"),
        (1_000_000, 0.3, 1.0, "less than 0.1% above"),
        (100, 0.01, 1.0, "17.2 times the bound"),
    ],
)
def test_the_reading_is_plain_at_the_extremes(
    users: int, spread: float, epsilon: float, words: str
) -> None:
    assert words in lower_bound(users=users, spread=spread, epsilon=epsilon).reading
