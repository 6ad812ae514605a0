"""Figures of the chapter "How wide is a user?"."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogFormatterMathtext, LogLocator

from hetlit.check import Floats
from hetlit.teaching.figures.model import funnel
from hetlit.teaching.figures.style import (
    FONT,
    draw_error_bars,
    draw_legend,
    draw_line,
    draw_points,
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
    PEOPLE,
    SIMULATION,
    THEORY,
    Look,
)
from hetlit.users.table import Users

Curves = Mapping[str, Floats]
Places = Mapping[str, tuple[float, float]]


def funnel_with_widths(users: Users, p: float, k: Any, widths: Floats) -> Figure:
    """Return users' means against their sizes, between p - width and p + width.

    `widths` has shape (k,).  Means lie in [0, 1], and so do the drawn edges.
    """
    figure = funnel(users, p)
    (axes,) = figure.axes
    upper, lower = np.minimum(p + widths, 1.0), np.maximum(p - widths, 0.0)
    for edge in (upper, lower):
        draw_line(axes, k, edge, SIMULATION, drawstyle="steps-mid")
    note(axes, k[-1], upper[-1], "nobody is further out,", (0, 22))
    note(axes, k[-1], upper[-1], "with probability 0.95", (0, 7))
    return figure


def widths_by_size(k: Any, widths: Curves, limits: Mapping[str, float]) -> Figure:
    """Return exact widths, one marker per size, and what they tend to.

    `widths` maps a name to an array of shape (k,); `limits` gives some of these names
    a level, the width of infinitely many samples.  The first name is written above
    its markers and the others below.
    """
    figure, (axes,) = new_figure(height=3.7)
    for look, name, values in _series(widths):
        draw_points(axes, k, values, look, ms=3.2)
        note(axes, k[-1], values[-1], name, (0, 10 if look is THEORY else -10))
        if name in limits:
            axes.axhline(limits[name], color=look.colour, ls=look.line, lw=1.2)
            note(axes, k[0], limits[name], f"{name}: the rates alone", (2, -5))
    axes.set_ylim(bottom=0.0)
    label_axes(axes, "samples per user", "smallest width that keeps the promise")
    return figure


def growth(n: Any, widths: Curves, places: Places) -> Figure:
    """Return widths against the number of users, and the line above which none counts.

    `places` says for every name how far from the end of its curve it is written.
    """
    figure, (axes,) = new_figure(height=3.9)
    for look, name, values in _series(widths):
        draw_line(axes, n, values, look)
        note(axes, n[-1], values[-1], name, places[name])
    axes.axhline(1.0, color=GREY, lw=1.0)
    note(axes, n[-1], 1.0, "above 1 a width says nothing", (0, 5))
    logarithmic(axes, "xy")
    _whole_numbers(axes)
    axes.set_ylim(top=3.0 * max(values.max() for values in widths.values()))
    label_axes(axes, "users", "width")
    return figure


def coin_curvature(s: Floats, curves: Mapping[float, Floats]) -> Figure:
    """Return 2 log E exp(s(x - p)) / s^2 for coins of several rates p.

    Each curve passes its variance p(1-p) at s = 0, marked with a dot, and its highest
    point is the best sub-Gaussian proxy.
    """
    figure, (axes,) = new_figure(height=3.7)
    for look, p, values in _series(curves):
        draw_line(axes, s, values, look)
        draw_points(axes, [0.0], [p * (1.0 - p)], look, ms=7)
        note(axes, s[0], values[0], f"$p$ = {p:g} ", (0, 0))
    axes.axhline(0.25, color=GREY, lw=1.2)
    note(axes, s[-1], 0.25, "Hoeffding: 1/4", (0, 5))
    axes.set(xlim=(s[0] - 0.17 * (s[-1] - s[0]), s[-1]), ylim=(0.0, 0.29))
    label_axes(axes, "$s$", "matching variance")
    return figure


def width_panels(k: Any, panels: Mapping[str, Curves]) -> Figure:
    """Return widths against sizes, one panel per title; means never stray beyond 1.

    Each panel maps names to arrays of shape (k,), the same names in every panel; the
    first is drawn on top, in steps.  Values that are not numbers leave gaps.
    """
    figure, shown = new_figure(height=3.9, columns=len(panels), share=True)
    for axes, (title, widths) in zip(shown, panels.items(), strict=True):
        for look, name, values in _series(widths):
            exact = {"drawstyle": "steps-mid", "zorder": 3} if look is THEORY else {}
            draw_line(axes, k, values, look, label=name, **exact)
        axes.axhline(1.0, color=GREY, lw=1.0)
        axes.set_title(title, fontsize=FONT, color=INK)
        logarithmic(axes, "xy")
        axes.xaxis.set_major_locator(LogLocator(100.0))
        label_axes(axes, "samples per user", "width" if axes is shown[0] else "")
    shown[0].set_ylim(top=3.0)
    draw_legend(shown[0], loc="lower left", fontsize=FONT - 1, handlelength=3)
    return figure


def widths_by_rate(
    rates: Floats, panels: Mapping[int, tuple[Floats, Floats, Floats]]
) -> Figure:
    """Return how far k coins stray, against their rate, one panel per k.

    Each panel has three arrays of shape (rates,): the exact width, the largest exact
    width among the rates so far, and a bound.
    """
    figure, shown = new_figure(height=3.5, columns=len(panels))
    names = "exact", "largest so far", "bound"
    for axes, (k, values) in zip(shown, panels.items(), strict=True):
        for look, name, widths in _series(dict(zip(names, values, strict=True))):
            draw_line(axes, rates, widths, look, label=name)
        axes.set_title(f"{k:,} sample{'s' * (k > 1)}", fontsize=FONT, color=INK)
        axes.set_ylim(bottom=0.0)
        label_axes(axes, "rate", "width" if axes is shown[0] else "")
    draw_legend(shown[-1], loc="lower right", fontsize=FONT - 1, handlelength=3)
    return figure


def coverage(
    promised: Floats,
    computed: Curves,
    simulated: Mapping[str, tuple[Floats, Floats]],
) -> Figure:
    """Return how often anybody strays, against how often anybody may.

    `computed` maps a name to probabilities, `simulated` the same names to (shares,
    standard errors), all of shape (promised,).  Bars are two standard errors.
    """
    figure, (axes,) = new_figure(height=3.9)
    axes.plot([0.0, promised[-1]], [0.0, promised[-1]], color=INK, lw=1.0)
    note(axes, promised[-1], promised[-1], "what is promised", (0, 6))
    for look, name, values in _series(computed):
        draw_line(axes, promised, values, look)
        shares, errors = simulated[name]
        draw_error_bars(axes, promised, shares, errors, look)
        middle = len(promised) // 2
        note(
            axes,
            promised[middle],
            values[middle],
            name,
            (10, -8 if look is THEORY else 8),
        )
    label_axes(axes, "allowed probability $\\beta$", "probability that anybody strays")
    return figure


def trade_off(
    widths: Floats,
    panels: Mapping[str, Curves],
    marks: Mapping[str, Mapping[str, float]],
    simulated: Mapping[str, tuple[Any, Floats, Floats]],
) -> Figure:
    """Return the parts of the mean squared error against the width, one row per title.

    Parameters
    ----------
    widths : array of shape (widths,), half-widths of the clipping interval
    panels : for each title, three named parts of shape (widths,) and, on top, their sum
    marks : for each title, named half-widths to mark with a line
    simulated : for some titles, (half-widths, totals, standard errors)
    """
    figure, shown = new_figure(height=3.1 * len(panels), rows=len(panels))
    for axes, (title, parts) in zip(shown, panels.items(), strict=True):
        total = np.sum(list(parts.values()), axis=0)
        draw_line(axes, widths, total, THEORY, label="total")
        looks = PEOPLE, COINS, SIMULATION
        for look, (name, values) in zip(looks, parts.items(), strict=True):
            draw_line(axes, widths, values, look, label=name)
        if title in simulated:
            draw_error_bars(axes, *simulated[title], Look(INK, "-", "o"))
        logarithmic(axes, "xy")
        axes.set_xticks((0.02, 0.05, 0.1, 0.2, 0.5, 1.0))
        axes.yaxis.set_major_formatter(LogFormatterMathtext())
        axes.set_ylim(total.min() / 300.0, total.max() * 30.0)
        for name, where in marks[title].items():
            axes.axvline(where, color=GREY, lw=1.0)
            note(axes, where, total.max() * 20.0, name, (3, -1))
        axes.set_title(title, fontsize=FONT, color=INK, loc="left")
        x = "half-width of the clipping interval" if axes is shown[-1] else ""
        label_axes(axes, x, "squared error")
    draw_legend(shown[-1], loc="center left", fontsize=FONT - 1, handlelength=3)
    return figure


def best_widths(n: Any, curves: Curves, places: Places) -> Figure:
    """Return half-widths in standard deviations against the number of users.

    `places` says for every name how far from the end of its curve it is written.
    """
    figure, (axes,) = new_figure(height=3.7)
    for look, name, values in _series(curves):
        draw_line(axes, n, values, look)
        note(axes, n[-1], values[-1], name, places[name])
    logarithmic(axes, "x")
    _whole_numbers(axes)
    axes.set_ylim(bottom=0.0)
    label_axes(axes, "users", "half-width / standard deviation")
    return figure


def _series(curves: Mapping[Any, Floats]) -> Iterator[tuple[Look, Any, Floats]]:
    """Yield (look, name, values) for each curve, and refuse more curves than looks."""
    for look, (name, values) in zip(LOOKS[: len(curves)], curves.items(), strict=True):
        yield look, name, values


def _whole_numbers(axes: Axes) -> None:
    """Write the numbers of users in full."""
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.0f}"))
