"""Explorer of the chapter "A realizable estimator": a hundred runs beside the ideal.

All estimators see the same hundred populations.  Sizes are four, in fixed shares, so
that a population is a table of some hundred rows, drawn as one multinomial per size.
"""

from __future__ import annotations

import math

import numpy as np
from scipy import stats

from hetlit.check import Floats
from hetlit.estimators.baselines import user_mean
from hetlit.estimators.ideal import plan_ideal
from hetlit.estimators.public_size import estimate_public_size
from hetlit.estimators.public_size.auto import make_plans
from hetlit.privacy.noise import laplace
from hetlit.teaching.explorers.explorer import Explorer, Parameter
from hetlit.teaching.explorers.picture import (
    Axis,
    Line,
    Panel,
    Picture,
    Points,
    level,
    number,
)
from hetlit.theory.populations import Beta
from hetlit.theory.variance import plain_variance
from hetlit.users.groups import Sizes, by_size, by_size_class
from hetlit.users.table import Users

MEAN = 0.3
SIZES = np.array([1, 5, 50, 500])
SHARES = np.array([50, 30, 15, 5], dtype=np.int64)  # per cent of the users
RUNS = 100
USERS = (300, 600, 1000, 3000, 6000, 10_000, 30_000)
EDGE = 11.0  # of the axis; dots beyond are drawn on it


def populations(n: int, spread: float, rng: np.random.Generator) -> list[Users]:
    """Return a hundred tables of n users with beta rates."""
    m = Beta(MEAN, spread**2).concentration
    drawn = []
    for k, share in zip(SIZES, SHARES, strict=True):
        law = stats.betabinom(k, MEAN * m, (1.0 - MEAN) * m).pmf(np.arange(k + 1))
        drawn.append(rng.multinomial(n * share // 100, law / law.sum(), size=RUNS))
    held = np.repeat(SIZES, SIZES + 1)
    ones = np.concatenate([np.arange(k + 1) for k in SIZES])
    tables = np.concatenate(drawn, axis=1)
    return [Users(held[row > 0], ones[row > 0], row[row > 0]) for row in tables]


def hundred_runs(
    n: int, epsilon: float, spread: float, seed: int
) -> tuple[dict[str, Floats], bool]:
    """Return the released values of each estimator, and whether auto guesses first."""
    rng = np.random.default_rng(seed)
    tables = populations(n, spread, rng)
    plans = make_plans(by_size_class(tables[0]).sizes, epsilon)
    ideal = plan_ideal(by_size(tables[0]).sizes, MEAN, spread**2, epsilon)
    scale = ideal.sensitivity / epsilon
    plain, auto, best = [], [], []
    for users in tables:
        plain.append(user_mean(users, epsilon, rng=rng).value)
        auto.append(estimate_public_size(users, epsilon, plans=plans, rng=rng).value)
        best.append(ideal.noiseless(by_size(users)) + laplace(scale, rng=rng))
    runs = {"plain mean": plain, "auto": auto, "ideal": best}
    values = {name: np.array(released) for name, released in runs.items()}
    return values, plans.adaptive is not None


def standard_errors(n: int, epsilon: float, spread: float) -> tuple[float, float]:
    """Return those of the plain mean and of the ideal estimator, if nobody is clipped.

    The first is exact.  The second is too up to clipping, at four standard deviations
    or more.
    """
    counts = n * SHARES // 100
    held = Sizes(SIZES.astype(np.float64), counts)
    q = MEAN * (1.0 - MEAN)
    plain = plain_variance(held.k, counts, q, spread**2, n, epsilon)
    ideal = plan_ideal(held, MEAN, spread**2, epsilon).objective
    return math.sqrt(plain), math.sqrt(ideal)


def realizable(*, users: int, epsilon: float, seed: int, spread: float) -> Picture:
    """Return the errors of a hundred runs of three estimators, and their sizes."""
    values, guesses = hundred_runs(users, epsilon, spread, seed)
    expected = np.array([standard_errors(n, epsilon, spread) for n in USERS])
    unit = standard_errors(users, epsilon, spread)[1]
    errors = {name: np.sort(released - MEAN) for name, released in values.items()}
    typical = {name: math.sqrt(np.mean(e**2)) for name, e in errors.items()}
    looks = {"plain mean": "vermillion", "ideal": "green", "auto": "blue"}

    rank = Axis(
        "runs, from lowest to highest",
        0.0,
        RUNS + 1.0,
        ticks=(1, 25, 50, 75, 100),
    )
    away = Axis(
        "error, in ideal standard errors", -EDGE, EDGE, ticks=(-10, -5, 0, 5, 10)
    )
    order = np.arange(1.0, RUNS + 1.0)
    rows = {name: np.clip(e / unit, -EDGE, EDGE) for name, e in errors.items()}
    dots = tuple(
        Points(order, rows[name], looks[name], name, small=True)
        for name in ("plain mean", "auto")
    )
    # A thin line on top of the dots, because they would hide each other.
    line = Line(order, rows["ideal"], looks["ideal"], "ideal")
    n_axis = Axis("number of users", 250.0, 36_000.0, log=True, ticks=USERS)
    size = Axis("root mean squared error", 3e-4, 0.1, log=True)
    curves = (
        Line(USERS, expected[:, 0], looks["plain mean"]),
        Line(USERS, expected[:, 1], looks["ideal"]),
    )
    measured = tuple(
        Points([users], [typical[name]], look, name) for name, look in looks.items()
    )
    plan = "starts with private first guesses" if guesses else "makes no first guesses"
    return Picture(
        (
            Panel(rank, away, (level(rank, 0.0, "ink", "truth"), *dots, line)),
            Panel(n_axis, size, (*curves, *measured)),
        ),
        reading=(
            f"Root mean squared errors of these hundred runs, in thousandths: "
            f"{number(1000 * typical['plain mean'])} for the plain mean, "
            f"{number(1000 * typical['auto'])} for auto, "
            f"{number(1000 * typical['ideal'])} for the ideal estimator. "
            f"With these sizes and this budget auto {plan}."
        ),
    )


REALIZABLE = Explorer(
    name="realizable",
    chapter="public_size",
    title="A hundred runs: how close to the ideal?",
    setting=(
        "Half of the users hold 1 sample, 30% hold 5, 15% hold 50 and 5% hold 500. The "
        "population mean is 0.3."
    ),
    picture=realizable,
    parameters=(
        Parameter("users", "number of users", USERS, 3000),
        Parameter(
            "epsilon",
            "privacy budget epsilon",
            (0.1, 0.2, 0.5, 1.0, 2.0, 3.0, 5.0),
            1.0,
        ),
        Parameter(
            "seed", "seed of the hundred runs", (1, 2, 3, 4, 5), 1, on_page=False
        ),
        Parameter(
            "spread",
            "spread of users' rates",
            (0.01, 0.02, 0.05, 0.1),
            0.02,
            on_page=False,
        ),
    ),
    notice=(
        "Where auto can afford first guesses, its dots lie close to the line of the "
        "ideal estimator, though nobody told it the mean or the spread, and though a "
        "part of its budget asks whether the model holds. Where it cannot, it weighs "
        "users by their sizes alone. The ideal estimator is a yardstick and no bound: "
        "its intervals are wide, and narrower ones can do slightly better."
    ),
    description=(
        "Above, the errors of a hundred runs of three estimators, each sorted, in "
        "units of the standard error of the ideal one: a rising line and two rising "
        "rows of dots that cross zero, the truth, in the middle; the flatter, the "
        "better. Errors beyond the axis stand at its edge. Below, root mean squared "
        "error against the number of users, log scales: falling lines for the plain "
        "mean and the ideal estimator in theory, and three markers at the chosen "
        "number of users."
    ),
    quick=False,  # a hundred runs
)
