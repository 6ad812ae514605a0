"""Explorer of the chapter "The ideal private estimator": thresholds on weights."""

from __future__ import annotations

import numpy as np

from hetlit.check import Floats
from hetlit.teaching.explorers.explorer import Explorer, Parameter
from hetlit.teaching.explorers.picture import (
    Axis,
    Line,
    Panel,
    Picture,
    Points,
    number,
    percent,
)
from hetlit.theory.variance import user_variance
from hetlit.theory.weights import (
    best_threshold,
    inverse_variance_weights,
    release_variance,
    truncated_weights,
)
from hetlit.theory.widths import standard_width
from hetlit.users import sizes

# The chapter's example, one row per size.
N, P = 1000, 0.5
SIZES, COUNTS = np.unique(sizes.harmonic(N), return_counts=True)
VARIANCES = user_variance(SIZES, P, 1.0 / N)
WIDTHS = 2.0 * standard_width(SIZES, N, P, 1.0 / N, beta=0.05)
PRECISIONS = 1.0 / np.sqrt(VARIANCES)
THRESHOLDS = np.geomspace(2.0, 30.0, 45)
LOW = (2.0, 2.2, 2.5, 2.8, 3.0, 3.5, 4.0, 4.5, 5.0, 5.5, 6.0, 7.0, 8.0, 9.0)
HIGH = (10.0, 11.0, 12.0, 14.0, 16.0, 18.0, 20.0, 22.0, 25.0, 28.0, 30.0)
# Few enough sizes to draw, the rest lie on straight lines between them.
SHOWN = np.unique(np.searchsorted(SIZES, np.geomspace(1.0, N, 30)))


def threshold(*, level: float, epsilon: float) -> Picture:
    """Return the errors of truncated weights against the threshold, and the weights."""
    best, _ = best_threshold(VARIANCES, WIDTHS, epsilon, counts=COUNTS)
    # Below the smallest 1/sd everybody is held back and nothing changes any more.
    best = max(best, float(PRECISIONS.min()))
    curves = np.transpose([deviations(T, epsilon) for T in THRESHOLDS])
    here, least = deviations(level, epsilon), deviations(best, epsilon)
    return Picture(
        (
            _errors(curves, (level, here[2]), (best, least[2])),
            _weights(level, best),
        ),
        reading=(
            f"At threshold {number(level)} the standard deviation is "
            f"{number(here[2])}: {number(here[0])} from sampling and {number(here[1])} "
            f"from noise, whose squares add up. {held_back(level)} held back. "
            f"{verdict(here[2] / least[2], best)}"
        ),
    )


def deviations(level: float, epsilon: float) -> Floats:
    """Return the standard deviations from sampling, from noise and from both."""
    weights = truncated_weights(VARIANCES, level, counts=COUNTS)
    sampling, both = (
        release_variance(weights, VARIANCES, widths, epsilon, counts=COUNTS)
        for widths in (np.zeros_like(WIDTHS), WIDTHS)
    )
    return np.sqrt([sampling, both - sampling, both])


def held_back(level: float) -> str:
    """Return in words how many users have 1/sd above the threshold.

    >>> held_back(30.0), held_back(28.0), held_back(5.0)
    ('Nobody is', '1 of 1,000 users is', '166 of 1,000 users are')
    """
    users = int(COUNTS[level < PRECISIONS].sum())
    if users == 0:
        return "Nobody is"
    return f"{users} of {N:,} users {'is' if users == 1 else 'are'}"


def verdict(ratio: float, best: float) -> str:
    """Return how much worse this is than the best threshold.

    >>> verdict(1.0, 2.0), verdict(1.0001, 4.2715), verdict(1.25, 4.2715)
    ('No threshold is better.',
     'The best threshold, 4.27, is hardly better.',
     'The best threshold is 4.27; here the deviation is 25% larger.')
    """
    if ratio < 1.0 + 1e-9:
        return "No threshold is better."
    lowest = best <= PRECISIONS.min()
    name = f"{number(best)} or less" if lowest else number(best)
    if ratio < 1.0005:
        return f"The best threshold, {name}, is hardly better."
    if ratio < 2.0:
        larger = f"{percent(ratio - 1.0)} larger"
    else:
        larger = f"{number(ratio)} times as large"
    return f"The best threshold is {name}; here the deviation is {larger}."


def _errors(
    curves: Floats, here: tuple[float, float], best: tuple[float, float]
) -> Panel:
    x = Axis("threshold on 1/standard deviation", 2.0, 30.0, log=True)
    y = Axis("standard deviation", 2e-4, 0.2, log=True)
    sampling, noise, both = curves
    marks = (
        Line(THRESHOLDS, sampling, "green", "sampling alone"),
        Line(THRESHOLDS, noise, "vermillion", "noise alone"),
        Line(THRESHOLDS, both, "blue", "both"),
        Points([best[0]], [best[1]], "purple", "best threshold"),
        Points([here[0]], [here[1]], "ink", "this threshold"),
    )
    return Panel(x, y, marks)


def _weights(level: float, best: float) -> Panel:
    x = Axis("samples the user holds", 1.0, N, log=True)
    y = Axis("weight, per cent", 0.01, 5.0, log=True)
    # Noise alone asks for equal weight * width: everybody is held back.
    rules = {
        "sampling alone": ("green", inverse_variance_weights(VARIANCES, counts=COUNTS)),
        "noise alone": ("vermillion", _truncated(PRECISIONS.min())),
        "weights at the best threshold": ("purple", _truncated(best)),
        "weights at this threshold": ("ink", _truncated(level)),
    }
    marks = tuple(
        Line(SIZES[SHOWN], 100.0 * weights[SHOWN], look, name)
        for name, (look, weights) in rules.items()
    )
    return Panel(x, y, marks)


def _truncated(level: float) -> Floats:
    return truncated_weights(VARIANCES, level, counts=COUNTS)


THRESHOLD = Explorer(
    name="threshold",
    chapter="ideal",
    title="How far should large users be held back?",
    setting=(
        "A thousand users: the largest holds 1,000 samples, the second 500, the third "
        "334, and so on down to one. The population mean is 0.5 and the spread of "
        "users' rates 0.032. Intervals are not cut to [0, 1], so that widths are "
        "proportional to standard deviations; with little budget, cutting them would "
        "save much of the noise."
    ),
    picture=threshold,
    parameters=(
        Parameter("level", "threshold on 1/standard deviation", (*LOW, *HIGH), 10.0),
        Parameter(
            "epsilon",
            "privacy budget epsilon",
            (0.1, 0.2, 0.3, 0.5, 0.7, 1.0, 1.5, 2.0, 3.0, 5.0, 10.0),
            1.0,
        ),
    ),
    notice=(
        "A higher threshold means less sampling error and more noise. More budget "
        "means less noise, so the best threshold rises or stays. The best weights of "
        "users who are held back run parallel to those against noise alone, those of "
        "the others to those against sampling error alone."
    ),
    description=(
        "Two panels with log scales. The upper one shows the standard deviation of the "
        "private mean against the threshold: the part from sampling falls, the part "
        "from noise rises, and markers on their combination show the chosen and the "
        "best threshold. The lower one shows a user's weight against her samples, for "
        "both thresholds and for the weights that are best against sampling alone, the "
        "steepest, and against noise alone, the flattest."
    ),
)
