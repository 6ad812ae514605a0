"""Explorer of the chapter "First guesses": what share of a budget they are worth."""

from __future__ import annotations

from typing import Any

import numpy as np

from hetlit.estimators.first_guesses import GRID_RATIO, median_rank_error, rank_factor
from hetlit.estimators.spread import REACH
from hetlit.privacy.selection import log_grid
from hetlit.teaching.explorers.explorer import Explorer, Parameter
from hetlit.teaching.explorers.picture import (
    Axis,
    Line,
    Panel,
    Picture,
    Points,
    level,
    number,
    percent,
    whole,
)
from hetlit.theory.variance import plain_variance, user_variance

# Users with 100 samples each, and the grid of `initial_variance` for them.  Their means
# have a symmetric law, so that clipping around the middle takes as much from above as
# from below: widths cost noise, and bias can be left out.
SAMPLES, MEAN, SPREAD = 100, 0.5, 0.02
SD = np.sqrt(user_variance(SAMPLES, MEAN, SPREAD**2))
CELLS = len(log_grid(1.0 / (4.0 * SAMPLES), 1.0, GRID_RATIO))
# Intervals reach two standard errors of the first mean further, so that a centre that
# is off by one of them costs next to no bias, which is left out here.
ERRORS_OF_MEAN = 2.0
SHARES = np.geomspace(0.005, 0.6, 49)
FINE = np.geomspace(0.005, 0.6, 120)


def final_variance(share: Any, n: int, epsilon: float, *, with_users: bool) -> Any:
    """Return the variance of the mean if a share pays for first guesses.

    Half of it is for a first mean and half for the spread.  It is a share
    of the users, who take no part in the rest, or of everybody's budget.
    """
    users, budget, rest = n, epsilon * share / 2.0, n
    if with_users:
        users, budget, rest = n * share / 2.0, epsilon, n * (1.0 - share)
    error = np.sqrt(SD**2 / users + 2.0 / (users * budget) ** 2)
    rank_error = median_rank_error(users / 2.0, budget, 0.05, CELLS)
    reach = REACH * SD * np.sqrt(GRID_RATIO) * rank_factor(rank_error)
    # Around the middle, this much of an interval is within [0, 1].
    width = np.minimum(1.0, 2.0 * (reach + ERRORS_OF_MEAN * error))
    return SD**2 / rest + 2.0 * (width / (n * (1.0 - share) * epsilon)) ** 2


def variance_without(n: int, epsilon: float) -> float:
    """Return the variance of the mean with intervals [0, 1] and no first guesses."""
    q, k = MEAN * (1.0 - MEAN), np.array([float(SAMPLES)])
    return plain_variance(k, [1], q, SPREAD**2, n, epsilon)


def budget(*, share: float, users: int, epsilon: float) -> Picture:
    """Return the variance with first guesses, over that without, against the share."""
    plain = variance_without(users, epsilon)
    by_budget, by_users, here, fine = (
        final_variance(shares, users, epsilon, with_users=way) / plain
        for shares, way in (
            (SHARES, False),
            (SHARES, True),
            (share, False),
            (FINE, False),
        )
    )
    ticks = (0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 50.0)
    x = Axis("share spent on first guesses, per cent", 0.5, 60.0, True, ticks)
    y = Axis("variance / without guesses", 0.3, 8.0, log=True)
    marks = (
        level(x, 1.0, "ink", "without first guesses"),
        Line(100.0 * SHARES, by_users, "green", "a share of the users"),
        Line(100.0 * SHARES, by_budget, "blue", "a share of the budget"),
        Points([100.0 * share], [here], "vermillion", "this share of the budget"),
    )
    return Picture(
        (Panel(x, y, marks),),
        reading=(
            f"With {users:,} users, {written(share)} of the budget for first guesses "
            f"{change(here)}. {advice(fine)}"
        ),
    )


def written(share: float) -> str:
    """Return a share in per cent.

    >>> written(0.005), written(0.3)
    ('0.5%', '30%')
    """
    return f"{100.0 * share:.3g}%"


def change(ratio: float) -> str:
    """Return what happened to a variance, given new over old.

    >>> change(0.75), change(1.02), change(6.25), change(1.0)
    ('takes off 25% of the variance', 'adds 2.0% to the variance',
     'makes the variance 6.25 times as large', 'changes next to nothing')
    """
    if abs(ratio - 1.0) < 0.0005:
        return "changes next to nothing"
    if ratio < 1.0:
        return f"takes off {percent(1.0 - ratio)} of the variance"
    if ratio < 2.0:
        return f"adds {percent(ratio - 1.0)} to the variance"
    return f"makes the variance {number(ratio)} times as large"


def advice(ratios: Any) -> str:
    """Return the best share in words, given ratios of variances over FINE."""
    best = int(np.argmin(ratios))
    if ratios[best] >= 1.0:
        return "No share pays: do not guess."
    return (
        f"The best share is about {FINE[best] * 100.0:.2g}%, which "
        f"{change(ratios[best])}."
    )


BUDGET = Explorer(
    name="budget",
    chapter="first_guesses",
    title="What are first guesses worth?",
    setting=(
        "Users with 100 samples each, from a population with mean 0.5 and spread 0.02. "
        "Half of the share is for a first mean, half for the spread of users' means."
    ),
    picture=budget,
    parameters=(
        Parameter(
            "share",
            "share spent on first guesses",
            (0.005, 0.01, 0.02, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.4, 0.5, 0.6),
            0.1,
            written,
        ),
        Parameter(
            "users",
            "number of users",
            (1000, 2000, 3000, 5000, 10_000, 20_000, 30_000, 10**5, 300_000, 10**6),
            10_000,
            whole,
        ),
        Parameter(
            "epsilon",
            "privacy budget epsilon",
            (0.03, 0.1, 0.3, 1.0),
            0.1,
            on_page=False,
        ),
    ),
    notice=(
        "First guesses pay most in the middle: few users cannot make good ones, and "
        "very many have little noise left to save. A share of the budget is never "
        "worse than the same share of the users."
    ),
    description=(
        "Variance of a private mean with first guesses, divided by that without, "
        "against the share spent on them, both on log scales. One curve pays with a "
        "share of everybody's budget, the other, never below it, with a share of the "
        "users. Where guesses pay, the curves dip below a level line at one. A marker "
        "shows the chosen share."
    ),
)
