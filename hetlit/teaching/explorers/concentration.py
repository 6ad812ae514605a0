"""Explorer of the chapter "How wide is a user?": noise against bias."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import stats

from hetlit.check import Floats
from hetlit.teaching.explorers.explorer import Explorer, Parameter
from hetlit.teaching.explorers.picture import (
    NOTHING,
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
from hetlit.theory.populations import Beta
from hetlit.theory.variance import user_variance

# Users with a hundred samples each, from a population where ones are rare.
META, SAMPLES, EPSILON = Beta(mean=0.1, variance=0.0025), 100, 0.3
# A first guess of the mean.  If it were right, the best interval would be a point.
CENTRE = 0.08
VARIANCE = user_variance(SAMPLES, META.mean, META.variance)
ONES = np.arange(SAMPLES + 1)
MEANS = ONES / SAMPLES
SHAPES = META.concentration * META.mean, META.concentration * (1.0 - META.mean)
LAW = stats.betabinom.pmf(ONES, SAMPLES, *SHAPES)
HALF_WIDTHS = np.geomspace(0.02, 1.0, 49)
FINE = np.geomspace(0.02, 1.0, 393)


def clipping(*, half_width: float, users: int) -> Picture:
    """Return the parts of the squared error against the half-width, and who is cut."""
    curves, here = (
        error_parts(widths, users) * users / VARIANCE
        for widths in (HALF_WIDTHS, half_width)
    )
    low, high = (float(end) for end in interval(half_width))
    part = int(np.argmax(here))
    name, share = ("bias", "sampling error", "noise")[part], here[part] / here.sum()
    return Picture(
        (_errors(curves, (half_width, float(here.sum()))), _law(low, high)),
        reading=(
            f"Clipped to means between {number(low)} and {number(high)}, "
            f"{users:,} users lose {lost(half_width)} of their average. The squared "
            f"error is {over(here.sum())} without privacy, and {percent(share)} of it "
            f"is {name}. "
            f"The best half-width is about {number(best_half_width(users), 2)}."
        ),
    )


def interval(half_width: Any) -> tuple[Floats, Floats]:
    """Return the ends of clipping intervals around the guess, within [0, 1]."""
    half = np.asarray(half_width, dtype=np.float64)
    return np.maximum(CENTRE - half, 0.0), np.minimum(CENTRE + half, 1.0)


def clipped_moments(half_width: Any) -> tuple[Floats, Floats]:
    """Return mean and variance of a clipped user mean, exactly, for each half-width."""
    low, high = interval(half_width)
    values = np.clip(MEANS, low[..., None], high[..., None])
    mean = values @ LAW
    return mean, (values - mean[..., None]) ** 2 @ LAW


def error_parts(half_width: Any, users: int) -> Floats:
    """Return squared bias, sampling variance and noise of the mean, in three rows."""
    mean, variance = clipped_moments(half_width)
    low, high = interval(half_width)
    # Replacing a user moves the mean by (high - low)/users at most.
    noise = 2.0 * ((high - low) / (users * EPSILON)) ** 2
    return np.array([(mean - META.mean) ** 2, variance / users, noise])


def best_half_width(users: int) -> float:
    """Return the half-width with the least squared error, to one per cent."""
    return float(FINE[np.argmin(error_parts(FINE, users).sum(axis=0))])


def lost(half_width: float) -> str:
    """Return in words by how much clipping lowers the average.

    >>> lost(0.1), lost(1.0)
    ('3.9%', 'nothing')
    """
    share = 1.0 - float(clipped_moments(half_width)[0]) / META.mean
    return percent(share) if share > 1e-12 else "nothing"


def over(ratio: float) -> str:
    """Return in words how an error compares with another.

    >>> over(1.001), over(9.93)
    ('hardly larger than', '9.93 times that')
    """
    text = number(ratio)
    return "hardly larger than" if text == "1" else f"{text} times that"


def _errors(curves: Floats, here: tuple[float, float]) -> Panel:
    x = Axis("half-width of the clipping interval", 0.02, 1.0, log=True)
    y = Axis("squared error (1: no privacy)", 1e-3, 1e5, True, (0.01, 1.0, 100.0, 1e4))
    bias, sampling, noise = np.maximum(curves, NOTHING)
    marks = (
        Line(HALF_WIDTHS, bias, "purple", "bias"),
        Line(HALF_WIDTHS, sampling, "green", "sampling"),
        Line(HALF_WIDTHS, noise, "vermillion", "noise"),
        Line(HALF_WIDTHS, curves.sum(axis=0), "blue", "total"),
        Points([here[0]], [here[1]], "ink", "this half-width"),
    )
    return Panel(x, y, marks)


def _law(low: float, high: float) -> Panel:
    x = Axis("mean of one user", 0.0, 0.5, ticks=(0.0, 0.1, 0.2, 0.3, 0.4, 0.5))
    y = Axis("probability", 0.0, 0.08)
    shown = x.high >= MEANS
    marks = (
        Band((low, high), (0.0, 0.0), (y.high, y.high), "ink", "this interval"),
        Line(MEANS[shown], LAW[shown], "ink", "law of one user's mean"),
    )
    return Panel(x, y, marks)


CLIPPING = Explorer(
    name="clipping",
    chapter="concentration",
    title="How narrow may an interval be?",
    setting=(
        "Users with 100 samples each, from a population with mean 0.1 and spread 0.05. "
        "Epsilon is 0.3, and intervals are centred at a first guess of the mean, 0.08."
    ),
    picture=clipping,
    parameters=(
        Parameter(
            "half_width",
            "half-width of the clipping interval",
            (0.02, 0.03, 0.05, 0.07, 0.1, 0.12, 0.15, 0.2, 0.25, 0.3, 0.4, 0.6, 1.0),
            0.1,
        ),
        Parameter(
            "users",
            "number of users",
            (100, 200, 500, 1000, 2000, 5000, 10_000, 30_000, 100_000, 10**6),
            2000,
            whole,
        ),
    ),
    notice=(
        "A wide interval pays with noise, a narrow one with bias. Compared with the "
        "sampling error, noise fades and bias grows as users are added: more users "
        "need a wider interval."
    ),
    description=(
        "Two panels. The upper one shows parts of the squared error of a clipped "
        "private mean against the half-width of the interval, on log scales and "
        "divided by the sampling variance without clipping: noise rises with the "
        "half-width, bias falls steeply from some point on, the total falls with it "
        "and then rises or levels off, and a marker shows the chosen half-width. The "
        "lower one shows the law of one user's mean, with its longer tail to the "
        "right, and the chosen interval as a band. The interval is centred at a first "
        "guess, a fifth below the true mean."
    ),
)
