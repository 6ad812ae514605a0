"""Explorer of the chapter "The model": what a user's mean is worth."""

from __future__ import annotations

import numpy as np

from hetlit.teaching.explorers.explorer import Explorer, Parameter
from hetlit.teaching.explorers.picture import (
    NOTHING,
    Axis,
    Line,
    Panel,
    Picture,
    Points,
    counted,
    level,
    number,
    percent,
)
from hetlit.theory.variance import user_variance

SIZES = np.geomspace(1.0, 10_000.0, 49)


def variance(*, size: int, spread: float, p: float) -> Picture:
    """Return the variance of a user's mean and its two sources, against her samples."""
    var_p = spread**2
    # q/k + (1 - 1/k) var_p, sorted by what falls with k and what stays.
    coins = p * (1.0 - p) - var_p
    total = user_variance(size, p, var_p)
    share = coins / size / (coins / size + var_p)
    worth = p * (1.0 - p) / total
    x = Axis("samples the user holds", 1.0, 10_000.0, log=True)
    y = Axis("variance of her mean", 1e-5, 0.3, log=True)
    marks = (
        level(x, max(var_p, NOTHING), "purple", "people: her rate"),
        # Where people do not differ the coins are the total: dashes on a line.
        Line(SIZES, user_variance(SIZES, p, var_p), "blue", "total"),
        Line(SIZES, coins / SIZES, "green", "coins: her samples"),
        Points([size], [total], "vermillion", "this user"),
    )
    return Picture(
        (Panel(x, y, marks),),
        reading=(
            f"A user with {counted(size, 'sample')} has a mean with standard deviation "
            f"{number(np.sqrt(total))}; {percent(share)} of the "
            "variance comes from the coins. She is worth as much as "
            f"{counted(worth, 'user')} with one sample."
        ),
    )


VARIANCE = Explorer(
    name="variance",
    chapter="model",
    title="What is one user's mean worth?",
    setting="One user, drawn at random from a population.",
    picture=variance,
    parameters=(
        Parameter(
            "size",
            "samples the user holds",
            (1, 2, 3, 5, 10, 20, 30, 50, 100, 200, 300, 500, 1000, 2000, 5000, 10_000),
            20,
        ),
        Parameter(
            "spread",
            "spread of users' rates",
            (0.0, 0.005, 0.01, 0.02, 0.03, 0.05, 0.07, 0.1, 0.15, 0.2, 0.25, 0.3),
            0.1,
        ),
        Parameter("p", "population mean", (0.2, 0.3, 0.5), 0.3, on_page=False),
    ),
    notice=(
        "Coins fade with more samples, people stay. So the total falls until the two "
        "meet and then levels off: past that corner more data about the same user are "
        "worth little. If people do not differ, it never levels off."
    ),
    description=(
        "Variance of a user's mean against the samples she holds, both on log scales. "
        "The part from coin tosses falls in a straight line, the part from differences "
        "between people is level, and their sum falls towards the second. A marker "
        "shows the chosen user."
    ),
)
