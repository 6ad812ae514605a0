"""Figures of the chapter "A realizable estimator"."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import (
    FixedLocator,
    FuncFormatter,
    LogFormatterMathtext,
    LogLocator,
    NullLocator,
)

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
from hetlit.teaching.looks import (
    BLUE,
    GREEN,
    GREY,
    INK,
    LOOKS,
    PAPER,
    PURPLE,
    REFERENCE,
    SIMULATION,
    THEORY,
    VERMILLION,
    Look,
)
from hetlit.users.table import Users

# The three cohorts, from the users with most samples to those with fewest.
COHORTS = (("V", VERMILLION), ("F", BLUE), ("M", GREEN))
CAUSES = (BLUE, VERMILLION, GREEN, PURPLE, GREY, INK)


def wrong_guesses(
    ratios: Any,
    spread: tuple[Floats, Floats],
    shifts: Any,
    bare: tuple[Floats, Floats],
    allowed_for: Floats,
) -> Figure:
    """Return what wrong guesses cost, as mean squared errors over the ideal one.

    Parameters
    ----------
    ratios : guesses of the spread over the truth
    spread : (costs, standard errors) of those guesses
    shifts : distances between the guessed mean and the truth
    bare : (costs, standard errors) of those shifts when intervals ignore them
    allowed_for : costs when every interval is widened by the shift
    """
    figure, (left, right) = new_figure(height=3.1, columns=2)
    _draw_simulated(left, ratios, *spread, THEORY)
    logarithmic(left, "xy")
    left.yaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
    left.set_ylim(0.7, None)
    label_axes(left, "guessed spread / true spread", "error over ideal")
    _draw_simulated(right, shifts, *bare, SIMULATION)
    draw_line(right, shifts, allowed_for, THEORY)
    logarithmic(right, "y")
    right.set_ylim(0.3, None)
    note(right, shifts[-2], bare[0][-2], "intervals\nas they are", (0, 5))
    note(right, shifts[-1], allowed_for[-1], "widened by the shift", (0, -12))
    label_axes(right, "guessed mean - true mean", "")
    return figure


def cohorts(k: Any, most: int, least: int) -> Figure:
    """Return users' sizes, largest first, and which cohort each user belongs to.

    `most` users with most samples and `least` with fewest are set apart.
    """
    sizes = np.sort(np.asarray(k))[::-1]
    place = (np.arange(len(sizes)) + 0.5) / len(sizes)
    figure, (axes,) = new_figure(height=3.4)
    ends = (0, most, len(sizes) - least, len(sizes))
    names = ("first variance", "final mean", "first mean")
    for (_, colour), start, end, name in zip(
        COHORTS, ends[:-1], ends[1:], names, strict=True
    ):
        part = slice(start, end)
        axes.fill_between(
            place[part], 0.8, sizes[part], step="mid", color=colour, alpha=0.3, lw=0
        )
        axes.plot(place[part], sizes[part], color=colour, lw=2, drawstyle="steps-mid")
        middle = np.sqrt(place[start] / (1 - place[start]))
        middle *= np.sqrt(place[end - 1] / (1 - place[end - 1]))
        axes.text(
            middle / (1 + middle),
            1.08,
            f"{name}\n{end - start:,} users",
            transform=axes.get_xaxis_transform(),
            ha="center",
            va="center",
            fontsize=FONT,
            color=INK,
        )
    logarithmic(axes, "y")
    axes.set_xscale("logit")
    ticks = [share for share in (0.001, 0.01, 0.1, 0.5, 0.9, 0.99) if share > place[0]]
    axes.xaxis.set_major_locator(FixedLocator(ticks))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{100 * value:g}%"))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.set(xlim=(place[0], place[-1]), ylim=(0.8, None))
    label_axes(axes, "share of users with more samples", "samples")
    return figure


def final_step(
    users: Users,
    lower: Floats,
    upper: Floats,
    centre: float,
    weights: Mapping[str, Floats],
) -> Figure:
    """Return the final cohort: means in their intervals, and weights by size.

    `lower`, `upper` and every array of `weights` have one entry per row of `users`;
    weights are shown in units of one over the number of users.
    """
    figure, (top, bottom) = new_figure(height=5.4, rows=2, height_ratios=(5, 4))
    draw_points(top, users.k, users.means, THEORY, ms=3, mew=0, alpha=0.3)
    order = np.argsort(users.k, kind="stable")
    size = users.k[order]
    for edge in (lower, upper):
        draw_line(top, size, edge[order], SIMULATION)
    top.axhline(centre, color=INK, ls=REFERENCE.line, lw=1.4)
    note(top, size[-1], centre, f"first mean {centre:.3f}", (0, 3))
    note(top, size[-1], upper[order][-1], "clipped here", (0, 5))
    top.set_ylim(-0.05, 1.05)
    label_axes(top, "", "user's mean")
    looks = LOOKS[: len(weights)]
    for look, (name, values) in zip(looks, weights.items(), strict=True):
        draw_line(bottom, size, users.n * values[order], look)
        note(bottom, size[-1], users.n * values[order][-1], name, (7, 0))
    logarithmic(bottom, "xy")
    label_axes(bottom, "samples the user holds", "weight, times n")
    return figure


def moves(tables: Mapping[str, Sequence[int]]) -> Figure:
    """Return which cohort every user is in, one row of squares per table.

    Cohorts are 0 (most samples), 1 and 2 (fewest).  A ring marks users whose cohort
    is not the one of the first table.
    """
    figure, (axes,) = new_figure(height=1.0 + 0.62 * len(tables))
    first = next(iter(tables.values()))
    for row, members in enumerate(tables.values()):
        for user, cohort in enumerate(members):
            letter, colour = COHORTS[cohort]
            moved = cohort != first[user]
            axes.plot(
                user,
                -row,
                "s",
                ms=14,
                color=colour,
                mec=INK if moved else colour,
                mew=2.5 if moved else 0,
            )
            axes.text(
                user,
                -row,
                letter,
                ha="center",
                va="center_baseline",
                color=PAPER,
                fontsize=FONT - 1,
                fontweight="bold",
            )
    axes.grid(visible=False)
    axes.set_yticks(-np.arange(len(tables)), list(tables))
    axes.set_xticks(range(0, len(first), 2 if len(first) > 10 else 1))
    axes.set(xlim=(-0.8, len(first) - 0.2), ylim=(0.6 - len(tables), 0.6))
    label_axes(axes, "user", "table")
    return figure


def size_condition(
    taken: Any,
    limit: Floats,
    ratios: Mapping[str, float],
    kept: Mapping[str, Floats],
    needed: float,
) -> Figure:
    """Return the condition on sizes, and the share of weight that it is there for.

    Parameters
    ----------
    taken : users in the variance cohort
    limit : for each, the largest ratio of sizes that the condition allows
    ratios : for each profile, the largest size over the median size
    kept : for each profile, the final cohort's share of the ideal weights
    needed : the share that the proof needs
    """
    figure, (top, bottom) = new_figure(height=5.6, rows=2)
    top.fill_between(taken, 0.5, limit, color=GREY, alpha=0.15, lw=0)
    top.plot(taken, limit, color=GREY, lw=1.5)
    looks = LOOKS[: len(ratios)]
    for look, (name, ratio) in zip(looks, ratios.items(), strict=True):
        draw_line(top, taken, np.full(len(limit), ratio), look)
        note(top, taken[-1], ratio, name, (6, 0))
        draw_line(bottom, taken, 100 * kept[name], look)
    top.text(taken[0] * 1.2, 1.0, "allowed", fontsize=FONT, color=INK)
    bottom.axhline(100 * needed, color=GREY, lw=1.5)
    note(bottom, taken[0], 100 * needed, "what the proof needs", (6, 5))
    logarithmic(top, "xy")
    logarithmic(bottom, "x")
    top.set_ylim(0.5, None)
    bottom.set(ylim=(0, 103), xlim=(taken[0], taken[-1]))
    label_axes(top, "", "largest size / median size")
    label_axes(
        bottom, "users in the variance cohort", "weight of final cohort, per cent"
    )
    return figure


def constants(chains: Mapping[str, Mapping[str, float]]) -> Figure:
    """Return products of factors as bars on a logarithmic axis, one per chain.

    A factor of the same name has the same colour in every chain.
    """
    figure, (axes,) = new_figure(height=1.5 + 0.62 * len(chains))
    names = list(dict.fromkeys(name for chain in chains.values() for name in chain))
    colours = dict(zip(names, CAUSES[: len(names)], strict=True))
    labelled: set[str] = set()
    for row, chain in enumerate(chains.values()):
        reached = 1.0
        for name, factor in chain.items():
            axes.barh(
                -row,
                reached * (factor - 1.0),
                left=reached,
                height=0.55,
                color=colours[name],
                ec=PAPER,
                label=None if name in labelled else name,
            )
            labelled.add(name)
            text = f"{factor:.3g}"
            if np.log10(factor) > 0.1 * len(text):  # it fits into the bar
                axes.text(
                    reached * np.sqrt(factor),
                    -row,
                    text,
                    ha="center",
                    va="center",
                    color=PAPER,
                    fontsize=FONT - 1,
                )
            reached *= factor
        note(
            axes,
            reached,
            -row,
            f"{reached:,.3g}" if reached < 100 else f"{reached:,.0f}",
            (5, 0),
        )
    logarithmic(axes, "x")
    axes.grid(visible=False, axis="y")
    axes.set_yticks(-np.arange(len(chains)), list(chains))
    axes.set_xlim(1, None)
    axes.margins(x=0.2)
    draw_legend(
        axes,
        fontsize=FONT - 1,
        ncols=2,
        loc="upper center",
        bbox_to_anchor=(0.4, -0.2),
    )
    label_axes(axes, "variance over ideal, at most", "weights")
    return figure


def comparison(
    x: Any,
    lines: Mapping[str, Any],
    simulated: Mapping[str, tuple[Any, Floats, Floats]],
    *,
    labels: tuple[str, str],
    level: float | None = None,
    named_at: Mapping[str, int] | None = None,
) -> Figure:
    """Return curves, simulations beside them with two standard errors, log scales.

    Parameters
    ----------
    x : where the curves are given
    lines : for each name its values
    simulated : for each name (x, values, standard errors); a name that is also a
        line has its colour
    labels : of the two axes
    level : a horizontal line for reference
    named_at : for a name, the point beside which it is written; by default the last
    """
    figure, (axes,) = new_figure(height=3.9)
    series = dict(lines) | {
        name: values for name, (_, values, _) in simulated.items() if name not in lines
    }
    places = {name: simulated[name][0] if name in simulated else x for name in series}
    places |= dict.fromkeys(lines, x)
    looks = dict(zip(series, LOOKS[: len(series)], strict=True))
    for name, values in lines.items():
        draw_line(axes, x, values, looks[name])
    for name, (place, values, errors) in simulated.items():
        draw_error_bars(axes, place, values, errors, looks[name])
    for name, values in series.items():
        at = (named_at or {}).get(name, -1)
        by = (7, 0) if at == -1 else (8, 4)
        note(axes, places[name][at], values[at], name, by)
    if level is not None:
        axes.axhline(level, color=GREY, lw=1.0)
    logarithmic(axes, "xy")
    for axis in (axes.xaxis, axes.yaxis):
        low, high = axis.get_view_interval()
        if high < 30.0 * low:
            axis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
        if high > 1e7:
            axis.set_major_formatter(LogFormatterMathtext())
    label_axes(axes, *labels)
    return figure


def narrowing(spans: Mapping[str, tuple[float, float, float]], truth: float) -> Figure:
    """Return where one run looks for the mean, one row below the other.

    `spans` maps the name of a row to (low, middle, high) of what it says.
    """
    figure, (axes,) = new_figure(height=1.2 + 0.5 * len(spans))
    rows = -np.arange(len(spans), dtype=np.float64)
    for row, (low, middle, high) in zip(rows, spans.values(), strict=True):
        axes.plot([low, high], [row, row], color=BLUE, lw=2.0, marker="|", ms=11)
        axes.plot(middle, row, ls="", color=INK, marker=THEORY.marker, ms=3.5)
    axes.axvline(truth, color=INK, ls=REFERENCE.line, lw=1.2)
    axes.set_yticks(rows, list(spans))
    axes.set_ylim(rows[-1] - 0.6, 0.6)
    axes.grid(visible=False, axis="y")
    label_axes(axes, "rate (dash-dotted line: the truth)", "in this run")
    return figure


def by_profile(
    results: Mapping[str, Mapping[str, tuple[float, float]]], x_label: str
) -> Figure:
    """Return one row per profile, and in it one point per method with its error.

    `results` maps a profile to a map from methods to (value, standard error).
    """
    figure, (axes,) = new_figure(height=1.5 + 0.5 * len(results))
    methods = list(next(iter(results.values())))
    looks = dict(zip(methods, LOOKS[: len(methods)], strict=True))
    rows = -np.arange(len(results), dtype=np.float64)
    for number, (method, look) in enumerate(looks.items()):
        values, errors = np.transpose([row[method] for row in results.values()])
        axes.errorbar(
            values,
            rows + 0.12 * ((len(methods) - 1) / 2 - number),
            xerr=2.0 * errors,
            fmt=look.marker,
            ms=6,
            color=look.colour,
            label=method,
        )
    axes.axvline(1.0, color=GREY, lw=1.0)
    logarithmic(axes, "x")
    axes.xaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
    axes.set_yticks(rows, list(results))
    axes.set_ylim(rows[-1] - 0.6, 0.6)
    draw_legend(
        axes,
        ncols=len(methods),
        loc="lower center",
        bbox_to_anchor=(0.45, 1.0),
    )
    label_axes(axes, x_label, "size profile")
    return figure


def _draw_simulated(
    axes: Axes, x: Any, values: Floats, errors: Floats, look: Look
) -> None:
    draw_line(axes, x, values, look)
    draw_error_bars(axes, x, values, errors, look)
