"""Figures of the chapter "When the model is wrong"."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter

from hetlit.check import Floats
from hetlit.teaching.figures.style import (
    FONT,
    draw_error_bars,
    draw_legend,
    draw_line,
    label_axes,
    logarithmic,
    new_figure,
    note,
)
from hetlit.teaching.looks import (
    COINS,
    GREY,
    INK,
    LOOKS,
    REFERENCE,
    SIMULATION,
    THEORY,
)

Simulated = tuple[Any, Floats, Floats]


def limits(
    users: Any,
    plain: Floats,
    others: Mapping[str, Floats],
    towards: Mapping[str, float],
) -> Figure:
    """Return errors against the number of users, and what they converge to.

    Parameters
    ----------
    users : numbers of users
    plain : errors of the plain mean
    others : errors of other means, by their names
    towards : for each of them, the error that no number of users takes away
    """
    figure, (axes,) = new_figure(height=3.7)
    draw_line(axes, users, plain, SIMULATION)
    note(axes, users[-1], plain[-1], "plain mean", (7, 0))
    for look, (name, errors) in zip((THEORY, COINS), others.items(), strict=True):
        axes.axhline(towards[name], color=look.colour, lw=1.0, alpha=0.6)
        draw_line(axes, users, errors, look)
        note(axes, users[-1], errors[-1], name, (7, 0))
    logarithmic(axes, "xy")
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.0f}"))
    axes.set_xlim(users[0], None)
    label_axes(axes, "users", "root mean squared error")
    return figure


def unseen(
    group: Any, limit: Floats, count: Floats, false_alarm: float, horizon: float
) -> Figure:
    """Return the chance that a group is noticed, against its size.

    Parameters
    ----------
    group : numbers of users in it
    limit : the most that any private question can reach
    count : what a noisy count reaches
    false_alarm : the chance of a yes if there is no group
    horizon : one over epsilon
    """
    figure, (axes,) = new_figure(height=3.5)
    axes.axvspan(0.0, horizon, color=GREY, alpha=0.15, lw=0)
    draw_line(axes, group, limit, REFERENCE)
    draw_line(axes, group, count, THEORY)
    axes.axhline(false_alarm, color=GREY, lw=1.0)
    note(axes, group[-1], false_alarm, "false alarms", (0, 5))
    place = int(np.searchsorted(count, 0.4))
    note(axes, group[place], count[place], "a noisy count", (8, 0))
    place = int(np.searchsorted(limit, 0.6))
    note(axes, group[place], limit[place], "no private question\ndoes better", (0, 5))
    axes.text(
        horizon / 2.0,
        0.93,
        "invisible",
        ha="center",
        va="center",
        fontsize=FONT,
        color=INK,
    )
    axes.set(xlim=(0.0, group[-1]), ylim=(0.0, 1.02))
    label_axes(axes, "users who differ", "chance of a yes")
    return figure


def unnoticed(
    caught: Any,
    chance: Floats,
    bound: Floats,
    harm: Floats,
    worst: tuple[float, float],
) -> Figure:
    """Return the chance that an alarm is silent, and the harm that is done then.

    Parameters
    ----------
    caught : how many users of a minority the test counts, on average
    chance, bound : of silence, as it is and by the theorem
    harm : caught squared, times the chance
    worst : (caught, harm) at the worst minority, by the theorem
    """
    figure, (top, bottom) = new_figure(height=5.2, rows=2)
    draw_line(top, caught, np.minimum(bound, 1.0), REFERENCE)
    draw_line(top, caught, chance, THEORY)
    logarithmic(top, "y")
    top.set_ylim(1e-4, 3.0)
    last = int(np.flatnonzero(bound >= 1.0)[-1])
    note(top, caught[last], 1.0, "theorem", (8, 0))
    note(top, caught[last], chance[last], "exact", (0, -6))
    label_axes(top, "", "chance of silence")
    draw_line(bottom, caught, caught**2 * np.minimum(bound, 1.0), REFERENCE)
    draw_line(bottom, caught, harm, THEORY)
    bottom.plot(*worst, REFERENCE.marker, color=REFERENCE.colour, ms=8)
    note(bottom, *worst, "worst by the theorem", (8, 4))
    bottom.set_xlim(0.0, caught[-1])
    bottom.set_ylim(0.0, 1.2 * worst[1])
    label_axes(bottom, "users of the minority who are counted", "squared harm")
    return figure


def pulled(
    slopes: Any,
    lines: Mapping[str, Floats],
    simulated: Simulated,
    guarantee: float,
) -> Figure:
    """Return errors against the slope between size and rate, log scale.

    Parameters
    ----------
    slopes : from the rates of light users to those of heavy ones
    lines : errors of means, by their names
    simulated : (slopes, errors, standard errors) of the library's default
    guarantee : what the anchor promises for every slope
    """
    figure, (axes,) = new_figure(height=3.8)
    for look, (name, errors) in zip((SIMULATION, COINS), lines.items(), strict=True):
        draw_line(axes, slopes, errors, look)
        note(axes, slopes[-1], errors[-1], name, (7, 0))
    places, values, deviations = simulated
    draw_error_bars(axes, places, values, deviations, THEORY)
    note(axes, places[-1], values[-1], "default", (7, 0))
    axes.axhline(guarantee, color=INK, ls=REFERENCE.line, lw=1.4)
    note(axes, slopes[0], guarantee, "guarantee", (6, 5))
    logarithmic(axes, "y")
    axes.set_xlim(slopes[0], None)
    label_axes(axes, "slope between size and rate", "root mean squared error")
    return figure


def half_widths(
    ratios: Any, widths: Mapping[str, Floats], gaussian: Mapping[str, float]
) -> Figure:
    """Return half-widths of intervals, in standard deviations of the error.

    Parameters
    ----------
    ratios : the Gaussian's standard deviation over that of the noise
    widths : half-widths, by their levels
    gaussian : what they would be for a Gaussian
    """
    figure, (axes,) = new_figure(height=3.4)
    looks = (THEORY, SIMULATION, COINS)[: len(widths)]
    for look, (name, values) in zip(looks, widths.items(), strict=True):
        draw_line(axes, ratios, values, look)
        note(axes, ratios[-1], values[-1], name, (7, 0))
        axes.axhline(gaussian[name], color=look.colour, lw=1.0, alpha=0.6)
    logarithmic(axes, "x")
    axes.set(xlim=(ratios[0], None), ylim=(0.0, None))
    label_axes(
        axes,
        "sampling error over noise, in standard deviations",
        "half-width / standard deviation",
    )
    return figure


def coverage(
    rows: Mapping[str, Mapping[str, tuple[float, float]]], level: float
) -> Figure:
    """Return how often intervals hold the truth, in per cent.

    Parameters
    ----------
    rows : for each population, for each interval, (coverage, standard error)
    level : what is promised
    """
    figure, (axes,) = new_figure(height=1.6 + 0.6 * len(rows))
    names = list(next(iter(rows.values())))
    looks = dict(zip(names, LOOKS[: len(names)], strict=True))
    places = -np.arange(len(rows), dtype=np.float64)
    for position, (name, look) in enumerate(looks.items()):
        values, errors = np.transpose([row[name] for row in rows.values()])
        axes.errorbar(
            100.0 * values,
            places + 0.15 * ((len(names) - 1) / 2 - position),
            xerr=200.0 * errors,
            fmt=look.marker,
            ms=6,
            color=look.colour,
            label=name,
        )
    axes.axvline(100.0 * level, color=GREY, lw=1.0)
    axes.set_yticks(places, list(rows))
    axes.set(xlim=(0.0, 103.0), ylim=(places[-1] - 0.6, 0.6))
    draw_legend(axes, ncols=len(names), loc="lower center", bbox_to_anchor=(0.4, 1.0))
    label_axes(axes, "runs in which the interval holds the mean, per cent", "users")
    return figure
