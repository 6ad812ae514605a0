"""Figures of the chapter "Without privacy"."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from hetlit.check import Floats
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
from hetlit.teaching.looks import COINS, GREY, INK, LOOKS, REFERENCE, SIMULATION, THEORY


def crossing(spreads: Any, deviations: Mapping[str, Floats]) -> Figure:
    """Return the standard deviation of several averages against the spread of rates.

    `deviations` maps the name of an average to an array of shape (spreads,).
    """
    figure, (axes,) = new_figure(height=3.4)
    looks = LOOKS[: len(deviations)]
    for look, (name, values) in zip(looks, deviations.items(), strict=True):
        draw_line(axes, spreads, values, look)
        note(axes, spreads[-1], values[-1], name, (6, 0))
    axes.set_ylim(bottom=0.0)
    label_axes(axes, "spread of users' rates", "standard deviation of the average")
    return figure


def parabola(variances: tuple[float, float], marks: Mapping[str, float]) -> Figure:
    """Return the variance of w X + (1 - w) Y against w, with named choices of w."""
    first, second = variances
    weight = np.linspace(0.0, 1.0, 201)
    marked = np.array(list(marks.values()))
    curve, heights = (w**2 * first + (1.0 - w) ** 2 * second for w in (weight, marked))
    figure, (axes,) = new_figure(height=3.4)
    draw_line(axes, weight, curve, THEORY)
    draw_points(axes, marked, heights, SIMULATION, ms=8)
    lowest = second / (first + second)
    for (name, w), height in zip(marks.items(), heights, strict=True):
        note(axes, w, height, name, (6, 6) if w < lowest - 0.01 else (0, 9))
    axes.set_ylim(bottom=0.0)
    label_axes(axes, "weight of the user with more data", "variance of the average")
    return figure


def relative_variances(ratios: Mapping[str, Mapping[str, float]]) -> Figure:
    """Return a row of variances for each name, in multiples of the best one."""
    figure, (axes,) = new_figure(height=1.1 + 0.42 * len(ratios))
    place = np.arange(len(ratios))[::-1]
    series = list(dict.fromkeys(name for row in ratios.values() for name in row))
    table = np.array([[row[name] for name in series] for row in ratios.values()])
    axes.hlines(place, table.min(axis=1), table.max(axis=1), color=GREY, lw=1.2)
    looks = LOOKS[: len(series)]
    for column, (look, name) in enumerate(zip(looks, series, strict=True)):
        draw_points(axes, table[:, column], place, look, ms=8, label=name)
    axes.axvline(1.0, color=INK, ls=REFERENCE.line, lw=1.2)
    logarithmic(axes, "x")
    axes.set_xticks([1, 2, 5, 10, 20])
    axes.set_yticks(place, list(ratios))
    axes.set_ylim(-0.6, len(ratios) - 0.4)
    draw_legend(figure, loc="outside upper right", ncols=2)
    label_axes(axes, "variance, in multiples of the best", "size profile")
    return figure


def weight_profiles(k: Any, weights: Mapping[str, Floats], corner: float) -> Figure:
    """Return the weights of users against their sizes, by several rules.

    `weights` maps a rule to an array of shape (users,); `corner` is the size at
    which the spread between users takes over from the coin tosses.
    """
    order = np.argsort(k)
    sizes = np.asarray(k, dtype=np.float64)[order]
    figure, (axes,) = new_figure(height=3.9)
    looks = LOOKS[: len(weights)]
    for look, (name, values) in zip(looks, weights.items(), strict=True):
        draw_line(axes, sizes, values[order], look)
        note(axes, sizes[-1], values[order][-1], name, (6, 0))
    axes.axvline(corner, color=GREY, lw=1.0)
    logarithmic(axes, "xy")
    high = max(values.max() for values in weights.values())
    note(axes, corner, high, f"$q/\\sigma_p^2$ = {corner:g} ", (0, 0))
    label_axes(axes, "samples the user holds", "weight of the user")
    return figure


def rivals(
    n: Any,
    theory: Mapping[str, Floats],
    simulated: Mapping[str, tuple[Floats, Floats]],
) -> Figure:
    """Return standard deviations of estimators against the number of users.

    `theory` maps a name to values of shape (n,), `simulated` the same names to
    (estimates, standard errors).  Bars are two standard errors.
    """
    figure, (axes,) = new_figure(height=3.7)
    looks = LOOKS[: len(theory)]
    for look, (name, values) in zip(looks, theory.items(), strict=True):
        draw_line(axes, n, values, look)
        draw_error_bars(axes, n, *simulated[name], look)
        note(axes, n[-1], values[-1], name, (8, 0))
    logarithmic(axes, "xy")
    label_axes(axes, "number of users", "standard deviation")
    return figure


def corner_costs(corners: Any, costs: Mapping[str, Floats], truth: float) -> Figure:
    """Return what a wrong corner costs, and the bound (1 + C)^2 / (4C).

    `costs` maps a size profile to variances in multiples of the best, of shape
    (corners,); C is the factor by which a corner misses the truth.
    """
    corners = np.asarray(corners, dtype=np.float64)
    ratio = corners / truth
    bound = (1.0 + ratio) ** 2 / (4.0 * ratio)
    figure, (axes,) = new_figure(height=3.9)
    axes.fill_between(corners, 1.0, bound, color=GREY, alpha=0.15, lw=0)
    looks = LOOKS[: len(costs)]
    for look, (name, values) in zip(looks, costs.items(), strict=True):
        draw_line(axes, corners, values, look, label=name)
    axes.axvline(truth, color=GREY, lw=1.0)
    logarithmic(axes, "x")
    axes.set_ylim(0.5, 1.15 * max(values.max() for values in costs.values()))
    draw_legend(axes, loc="upper center")
    note(axes, truth, 0.72, f"truth, {truth:g}", (5, 0))
    note(axes, corners[0], 0.72, "people", (1, 0))
    note(axes, corners[-1], 0.72, "samples", (0, 0))
    label_axes(axes, "corner assumed", "variance, in multiples of the best")
    return figure


def cohorts(k: Any, top: int, bottom: int) -> Figure:
    """Return sizes, largest first, split into the cohorts of Algorithm 1."""
    sizes = np.sort(np.asarray(k))[::-1]
    n = len(sizes)
    ends = (0, top, n - bottom, n)
    figure, (axes,) = new_figure(height=3.6)
    rank = np.arange(1, n + 1)
    for first, last, look in zip(ends[:-1], ends[1:], LOOKS, strict=False):
        part = slice(first, last)
        draw_points(axes, rank[part], sizes[part], look, ms=4.5, mew=0)
    for edge in ends[1:-1]:
        axes.axvline(edge + 0.5, color=GREY, lw=1.0)
    logarithmic(axes, "xy")
    axes.set_ylim(top=10.0 * sizes[0])
    high = 4.0 * sizes[0]
    note(axes, 1.0, high, f"{top} users:\nspread", (1, 0))
    note(axes, top + 0.5, high, f"{n - top - bottom} users:\nestimate", (8, 0))
    note(axes, n, high, f"{bottom} users:\nmean", (8, 0))
    label_axes(axes, "user, largest first", "samples the user holds")
    return figure


def set_aside(n: Any, costs: Mapping[str, Floats]) -> Figure:
    """Return what leaving out two cohorts costs, against the number of users."""
    figure, (axes,) = new_figure(height=3.4)
    looks = LOOKS[: len(costs)]
    for look, (name, values) in zip(looks, costs.items(), strict=True):
        draw_line(axes, n, values, look, marker=look.marker, ms=5)
        note(axes, n[1], values[1], name, (7, 5))
    axes.axhline(1.0, color=INK, ls=REFERENCE.line, lw=1.2)
    logarithmic(axes, "x")
    axes.set_xticks(n, [f"{users:,}" for users in n])
    label_axes(axes, "number of users", "variance, in multiples of the best")
    return figure


def plug_in_check(
    n: Any,
    aside: Mapping[str, Floats],
    given: Mapping[str, Floats],
    simulated: Mapping[str, tuple[Floats, Floats]],
) -> Figure:
    """Return the error of Algorithm 1 in multiples of the ideal, one panel per name.

    `aside` holds what known variances would give with the same users, `given` the
    variance that follows from the guesses, on average, both of shape (n,), and
    `simulated` (mean squared errors, their standard errors).
    """
    figure, panels = new_figure(height=3.9, columns=len(aside), share=True)
    for axes, (name, values) in zip(panels, aside.items(), strict=True):
        axes.axhline(1.0, color=INK, ls=REFERENCE.line, lw=1.2, label="ideal")
        draw_line(axes, n, values, THEORY, label="final cohort, known variances")
        draw_points(axes, n, given[name], COINS, ms=6, label="given the guesses")
        draw_error_bars(axes, 1.1 * n, *simulated[name], SIMULATION, label="simulated")
        logarithmic(axes, "x")
        axes.set_title(name, fontsize=FONT, color=INK)
        label_axes(
            axes, "number of users", "error over ideal" if axes is panels[0] else ""
        )
    handles, labels = panels[0].get_legend_handles_labels()
    draw_legend(
        figure,
        handles,
        labels,
        loc="outside lower center",
        ncols=2,
    )
    return figure
