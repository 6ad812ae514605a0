"""Explorer of the chapter "A realizable estimator": which method wins where.

Sizes are twenty quantiles of a log-normal law with median 10, in equal shares, so a
million users cost no more than a hundred.  All methods get public sizes and the same
budget.  What is compared are variances:

plain       the mean of user means: exact
median      the mean of as many samples of each user in the upper half as the median
            user holds: exact
capped      the mean of all samples after each user was cut to so many: exact
auto        the library's default.  Where it makes no first guesses: exact, but for
            values that are moved towards the anchor, which is rare.  Where it makes
            them: what it gets if they are right, up to the resolution that it plans
            with, if its tail test is silent and clipping changes nothing.  Simulated,
            it had between 0.8 and 1.4 times that in most of the map, and up to twice
            where users with very unequal sizes do not differ
ideal       knows mean and spread, as `estimate_ideal` does, if clipping changes
            nothing: a yardstick that nobody can have, but no bound, since narrower
            intervals than its own may do better
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from scipy import special

from hetlit.estimators.ideal import plan_ideal
from hetlit.estimators.public_size.auto import Plans, expected_variance, make_plans
from hetlit.teaching.explorers.explorer import Explorer, Parameter
from hetlit.teaching.explorers.picture import Axis, Panel, Picture, Points, number
from hetlit.theory.variance import plain_variance, user_variance
from hetlit.users.groups import Sizes, by_size_class
from hetlit.users.table import Users

MEAN, MEDIAN_SIZE, CLASSES, LARGEST = 0.3, 10, 20, 10_000
USERS = (100, 300, 1000, 3000, 10_000, 30_000, 100_000, 300_000, 1_000_000)
EPSILONS = (0.03, 0.1, 0.3, 1.0, 3.0, 10.0)
CAP = 100
CAPPED = f"cap of {CAP} samples a user"
# Median truncation has no look, because it wins nowhere.
LOOKS = {
    "plain mean": "vermillion",
    CAPPED: "purple",
    "auto, cautious": "green",
    "auto, first guesses": "blue",
}
TIE = 1.01  # times the least variance: so close, the simplest method wins


@lru_cache(maxsize=64)
def groups(n: int, skew: float) -> Sizes:
    """Return n users, in equal numbers at the quantiles of a log-normal law."""
    places = special.ndtri((np.arange(CLASSES) + 0.5) / CLASSES)
    sizes = np.clip(MEDIAN_SIZE * np.exp(skew * places), 1, LARGEST).round()
    held, classes = np.unique(sizes.astype(np.int64), return_counts=True)
    users = Users(held, np.zeros_like(held), classes * (n // CLASSES))
    return by_size_class(users).sizes


@lru_cache(maxsize=2048)
def plans(n: int, skew: float, epsilon: float) -> Plans:
    """Return what auto plans for these sizes."""
    return make_plans(groups(n, skew), epsilon)


def simple_variances(n: int, skew: float, spread: float, epsilon: float) -> list[float]:
    """Return the exact variances of the plain mean, median truncation and the cap."""
    held, counts = groups(n, skew).k, groups(n, skew).counts
    q = MEAN * (1.0 - MEAN)
    half = (n + 1) // 2
    above = np.cumsum(counts[::-1])[::-1]
    middle = float(held[np.flatnonzero(above >= half)[-1]])
    median = user_variance(middle, MEAN, spread**2) / half
    given = np.minimum(held, CAP)
    total = float(counts @ given)
    capped = counts @ (given**2 * user_variance(given, MEAN, spread**2)) / total**2
    return [
        plain_variance(held, counts, q, spread**2, n, epsilon),
        median + 2.0 / (half * epsilon) ** 2,
        float(capped) + 2.0 * (float(given.max()) / (total * epsilon)) ** 2,
    ]


def all_variances(
    n: int, skew: float, spread: float, epsilon: float
) -> dict[str, float]:
    """Return the variance of each method, the simplest first, auto by its plan."""
    planned = plans(n, skew, epsilon)
    auto = "auto, cautious" if planned.adaptive is None else "auto, first guesses"
    names = ("plain mean", "median", CAPPED, auto)
    simple = simple_variances(n, skew, spread, epsilon)
    values = (*simple, expected_variance(planned, MEAN, spread**2))
    return dict(zip(names, values, strict=True))


def winner(variances: dict[str, float]) -> str:
    """Return the simplest of the methods within one per cent of the best."""
    best = min(variances.values())
    return next(name for name, value in variances.items() if value <= TIE * best)


def sizes_held(skew: float) -> str:
    """Return the smallest and the largest size in words.

    >>> sizes_held(0.0), sizes_held(1.0)
    ('10 each', '1 to 71')
    """
    least, most = (number(size) for size in groups(USERS[0], skew).k[[0, -1]])
    return f"{least} each" if least == most else f"{least} to {most}"


# From what a reader chooses to the standard deviation of the logarithm of sizes.
SKEWS = {sizes_held(skew): skew for skew in (0.0, 0.25, 0.5, 0.75, 1.0, 1.5, 2.0, 3.0)}


def winners(*, spread: float, held: str) -> Picture:
    """Return a map of the method with the least variance."""
    skew = SKEWS[held]
    cells = {
        (n, epsilon): winner(all_variances(n, skew, spread, epsilon))
        for n in USERS
        for epsilon in EPSILONS
    }
    won = {name: [at for at, best in cells.items() if best == name] for name in LOOKS}
    x = Axis("number of users", 70.0, 1.4e6, log=True)
    y = Axis("privacy budget epsilon", 0.02, 15.0, log=True, ticks=EPSILONS)
    marks = tuple(
        Points([n for n, _ in places], [e for _, e in places], LOOKS[name], name)
        for name, places in won.items()
    )
    ideal = plan_ideal(groups(10_000, skew), MEAN, spread**2, 1.0).objective
    here = all_variances(10_000, skew, spread, 1.0)
    over = [number(variance / ideal) for variance in here.values()]
    wins = {name: len(places) for name, places in won.items()}
    autos = wins["auto, cautious"] + wins["auto, first guesses"]
    return Picture(
        (Panel(x, y, marks),),
        reading=(
            f"Sizes are {held}: of {len(cells)} cells the plain "
            f"mean wins {wins['plain mean']}, the cap {wins[CAPPED]} and auto "
            f"{autos}, if its first guesses are right. With 10,000 users and epsilon 1 "
            f"the variances of plain mean, median truncation, cap and auto are "
            f"{over[0]}, {over[1]}, {over[2]} and {over[3]} times the ideal one."
        ),
    )


WINNERS = Explorer(
    name="winners",
    chapter="public_size",
    title="Which method wins where?",
    setting=(
        "Sizes are public: twenty quantiles of a log-normal law with median 10, each "
        "for a twentieth of the users. The population mean is 0.3."
    ),
    picture=winners,
    parameters=(
        Parameter(
            "spread",
            "spread of users' rates",
            (0.0, 0.02, 0.05, 0.1, 0.15, 0.2, 0.3),
            0.05,
        ),
        Parameter("held", "samples users hold", tuple(SKEWS), "1 to 71"),
    ),
    notice=(
        "With few users and little budget, at the lower left, nothing beats the plain "
        "mean; the more unequal sizes are, the less of the map is left to it, down to "
        "that corner. Median truncation takes as many samples from each user in the "
        "upper half as the median user holds, and wins nowhere. Of methods within one "
        "per cent of the best, the simplest gets the cell. The ideal estimator is a "
        "yardstick and no bound: its intervals are wide, and narrower ones can do "
        "slightly better."
    ),
    description=(
        "A map with the number of users across and epsilon upwards, log scales. At "
        "each place stands the marker of the method with the least variance: the plain "
        "mean, all samples with a cap of 100 a user, or the library's default, "
        "cautious or with first guesses."
    ),
)
