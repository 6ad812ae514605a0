"""Explorer of the chapter "User-level privacy from scratch": an attacker's errors."""

from __future__ import annotations

import numpy as np
from scipy import special, stats

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
)

MOST_ANSWERS = 20
ALL_BUT_CERTAIN = 1.0 - 1e-12  # nobody ever is, though floating point may say so


def attacker(*, epsilon: float, answers: int) -> Picture:
    """Return misses against false alarms of attacks on randomised response."""
    false_alarms, misses = best_attacks(answers, epsilon)
    right = min(right_by_majority(answers, epsilon), ALL_BUT_CERTAIN)
    # No rule has errors below the lines through (c, c), whatever was published.
    c = float(special.expit(-answers * epsilon))
    corners = (0.0, c, 1.0), (1.0, c, 0.0)
    x, y = Axis("false alarms", 0.0, 1.0), Axis("misses", 0.0, 1.0)
    more = (0, MOST_ANSWERS - answers)  # points that repeat the last one
    marks = (
        Band(corners[0], (0.0, 0.0, 0.0), corners[1], "ink", "out of reach"),
        Line((0.0, 1.0), (1.0, 0.0), "green", "pure guessing"),
        Line(*corners, "ink", "limit by composition"),
        Line(
            np.pad(false_alarms, more, "edge"),
            np.pad(misses, more, "edge"),
            "blue",
            "best attacks",
        ),
        Points([1.0 - right], [1.0 - right], "vermillion", "majority vote"),
    )
    said = "1 answer" if answers == 1 else f"{answers} answers"
    each = " each" if answers > 1 else ""
    return Picture(
        (Panel(x, y, marks),),
        reading=(
            f"From {said} at epsilon {number(epsilon)}{each}, the best guess is right "
            f"in {percent(right)} of all cases, if both truths are equally likely. A "
            f"total epsilon of {number(answers * epsilon)} would allow "
            f"{percent(min(1.0 - c, ALL_BUT_CERTAIN))}."
        ),
    )


def best_attacks(answers: int, epsilon: float) -> tuple[Floats, Floats]:
    """Return (false alarms, misses) of all likelihood-ratio tests, one per threshold.

    Each answer about the bit is honest with probability e^epsilon/(1 + e^epsilon).
    The more yeses, the more they speak for a yes, so the best rules cry from some
    number of yeses on: more than there are answers at first, and 0 at last.
    """
    honest = special.expit(epsilon)
    too_few = np.arange(answers, -2, -1)  # the most yeses at which he keeps silent
    return (
        stats.binom.sf(too_few, answers, 1.0 - honest),
        stats.binom.cdf(too_few, answers, honest),
    )


def right_by_majority(answers: int, epsilon: float) -> float:
    """Return how often the majority of the answers is the truth; coins decide ties."""
    honest = special.expit(epsilon)
    tie = stats.binom.pmf(answers / 2, answers, honest)
    return float(stats.binom.sf(answers / 2, answers, honest) + tie / 2.0)


ATTACKER = Explorer(
    name="attacker",
    chapter="privacy",
    title="What can an attacker tell?",
    setting=(
        "Randomised response: each answer about one bit is honest or a lie, by chance, "
        "and independent of the others."
    ),
    picture=attacker,
    parameters=(
        Parameter(
            "epsilon",
            "privacy budget epsilon of one answer",
            (0.1, 0.2, 0.3, 0.4, 0.5, 0.7, 1.0, 1.5, 2.0, 3.0),
            0.5,
        ),
        Parameter(
            "answers",
            "answers about the same bit",
            (1, 2, 3, 4, 5, 6, 8, 10, 12, 15, MOST_ANSWERS),
            5,
        ),
    ),
    notice=(
        "With one answer the best attacks run along the limit. With more answers they "
        "touch it only where the attacker decides by answers that all agree."
    ),
    description=(
        "An attacker's misses against his false alarms, both from 0 to 1, when he "
        "guesses one bit from repeated randomised answers. A falling diagonal shows "
        "pure guessing. Below it lies the broken line of the best attacks, with a "
        "marker at the majority vote, and at or below that the limit that composition "
        "sets: two straight lines that meet at equal errors. The area under the limit "
        "is shaded."
    ),
)
