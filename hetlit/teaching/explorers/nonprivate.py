"""Explorer of the chapter "Without privacy": weights as data grow."""

from __future__ import annotations

import numpy as np

from hetlit.teaching.explorers.explorer import Explorer, Parameter
from hetlit.teaching.explorers.picture import (
    Axis,
    Line,
    Panel,
    Picture,
    level,
    number,
    percent,
)
from hetlit.theory.variance import user_variance
from hetlit.theory.weights import inverse_variance_weights
from hetlit.users import sizes

P = 0.3
SIZES = sizes.harmonic(100)
# The first and the last user of every size: between them all weights are level.
STEPS = np.flatnonzero(np.diff(SIZES, prepend=0) | np.diff(SIZES, append=0))


def weights(*, times: int, spread: float) -> Picture:
    """Return the weight of every user under three rules."""
    held = times * SIZES
    variances = user_variance(held, P, spread**2)
    best = inverse_variance_weights(variances)
    equal, pooled = np.full(len(held), 1.0 / len(held)), held / held.sum()
    least = np.sum(best**2 * variances)
    excess = [np.sum(w**2 * variances) / least for w in (equal, pooled)]
    x = Axis("users, those with most data first", 1.0, len(held), log=True)
    y = Axis("weight, per cent", 0.1, 30.0, log=True)
    marks = (
        Line(STEPS + 1, 100.0 * best[STEPS], "blue", "best: inverse variance"),
        level(x, 100.0 * equal[0], "purple", "equal"),
        Line(STEPS + 1, 100.0 * pooled[STEPS], "green", "in proportion to samples"),
    )
    return Picture(
        (Panel(x, y, marks),),
        reading=(
            f"The best weights give the largest of {len(held)} users, who holds "
            f"{number(held[0])} samples, {percent(best[0])} of the total. The "
            f"variance is {number(excess[0])} times the least with equal weights and "
            f"{number(excess[1])} times with weights in proportion to samples."
        ),
    )


WEIGHTS = Explorer(
    name="weights",
    chapter="nonprivate",
    title="Who should count how much when data grow?",
    setting=(
        "A hundred users. At first the largest holds 100 samples, the second 50, the "
        "third 34, and so on down to one. The population mean is 0.3."
    ),
    picture=weights,
    parameters=(
        Parameter(
            "times",
            "times as much data for everyone",
            (1, 2, 3, 5, 10, 20, 50, 100, 200, 500, 1000),
            5,
        ),
        Parameter(
            "spread",
            "spread of users' rates",
            (0.0, 0.01, 0.02, 0.03, 0.05, 0.07, 0.1, 0.15, 0.2, 0.25, 0.3),
            0.1,
        ),
    ),
    notice=(
        "Without spread the best weights count samples, however many there are. With "
        "any spread more data flatten them, until one person is one vote."
    ),
    description=(
        "Weight of each of a hundred users, in per cent, against the user's place in "
        "the order of sizes, both on log scales. Equal weights are a level line, "
        "weights in proportion to samples fall steeply, and the best weights fall no "
        "faster: they lie on the steep line without spread, and are nearly level with "
        "much spread and much data."
    ),
)
