"""Explorer of the chapter "Lower bounds": how far from what nobody can beat.

The bound is for estimators that are unbiased whatever the population, so any path of
populations through this one may be taken.  Multiply the density of the rates r by
1 + t (r - p)/var_p: for a beta law the score of a user is then (her mean - p)/variance
of her mean, and her information exactly one over that variance, the least there is.
The estimators here are unbiased: they clip nobody, and their variances are exact.
"""

from __future__ import annotations

import numpy as np

from hetlit.check import Floats
from hetlit.teaching.explorers.explorer import Explorer, Parameter
from hetlit.teaching.explorers.picture import (
    Axis,
    Band,
    Line,
    Panel,
    Picture,
    Points,
    number,
    percent,
    whole,
)
from hetlit.theory.bounds import dp_cramer_rao
from hetlit.theory.variance import plain_variance, user_variance
from hetlit.theory.weights import optimal_weights

MEAN = 0.3
SIZES = np.array([1, 10, 100, 1000])
SHARES = np.array([50, 30, 15, 5], dtype=np.int64)  # per cent of the users
EPSILONS = np.geomspace(0.01, 10.0, 49)
MARKED = (0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0)


def over_bound(n: int, spread: float, epsilon: float) -> tuple[float, float, float]:
    """Return the variances of ideal, plain and no privacy, over the bound.

    Ideal knows the spread, has optimal weights and intervals [0, 1].
    """
    counts = n * SHARES // 100
    variances = user_variance(SIZES, MEAN, spread**2)
    bound = dp_cramer_rao(1.0 / variances, epsilon, counts=counts)
    _, ideal = optimal_weights(variances, np.ones(4), epsilon, counts=counts)
    q = MEAN * (1.0 - MEAN)
    plain = plain_variance(SIZES, counts, q, spread**2, n, epsilon)
    open_to_all = 1.0 / float(np.sum(counts / variances))
    return ideal / bound, plain / bound, open_to_all / bound


def lower_bound(*, users: int, spread: float, epsilon: float) -> Picture:
    """Return variances over the private Cramer-Rao bound, against epsilon."""
    curves: Floats = np.transpose([over_bound(users, spread, e) for e in EPSILONS])
    ideal, plain, free = over_bound(users, spread, epsilon)
    x = Axis("privacy budget epsilon", 0.01, 10.0, log=True)
    y = Axis("variance over the bound", 0.03, 100.0, log=True)
    ends = (x.low, x.high)
    marks = (
        Band(ends, (y.low, y.low), (1.0, 1.0), "ink", "out of reach"),
        Line(EPSILONS, curves[1], "vermillion", "plain mean"),
        Line(EPSILONS, curves[0], "blue", "ideal, clips nobody"),
        Line(EPSILONS, curves[2], "green", "no privacy"),
        Points([epsilon, epsilon], [ideal, plain], "purple", "in the sentence below"),
    )
    return Picture(
        (Panel(x, y, marks),),
        reading=(
            f"At epsilon {number(epsilon)} the variance of the ideal estimator is "
            f"{_above(ideal)} the bound, and that of the plain mean {_above(plain)} "
            f"it. The bound itself is {_above(1.0 / free)} that without privacy."
        ),
    )


def _above(ratio: float) -> str:
    return f"{percent(ratio - 1.0)} above" if ratio < 2.0 else f"{number(ratio)} times"


LOWER_BOUND = Explorer(
    name="lower_bound",
    chapter="lower_bounds",
    title="How far from what nobody can beat?",
    setting=(
        "Half of the users hold 1 sample, 30% hold 10, 15% hold 100 and 5% hold 1,000. "
        "The population mean is 0.3."
    ),
    picture=lower_bound,
    parameters=(
        Parameter(
            "users",
            "number of users",
            (100, 300, 1000, 3000, 10_000, 30_000, 100_000, 1_000_000),
            3000,
            whole,
        ),
        Parameter(
            "spread",
            "spread of users' rates",
            (0.01, 0.02, 0.03, 0.05, 0.07, 0.1, 0.15, 0.2, 0.3),
            0.05,
        ),
        Parameter(
            "epsilon", "epsilon in the sentence below", MARKED, 1.0, on_page=False
        ),
    ),
    notice=(
        "No private estimator that is unbiased for every population gets into the "
        "shaded area; the one without privacy does. As epsilon grows the ideal "
        "estimator comes down towards the bound, and the plain mean stops above it."
    ),
    description=(
        "Variance over the private Cramér–Rao bound against epsilon, log scales, with "
        "the area below 1 shaded. The ideal estimator that clips nobody falls towards "
        "1 as epsilon grows. The plain mean lies on it or above it and ends level. "
        "Without privacy the variance rises from below towards 1."
    ),
)
