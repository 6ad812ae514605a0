"""Figures of the chapter "User-level privacy from scratch"."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from hetlit.check import Floats
from hetlit.privacy.ledger import Ledger
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
    COINS,
    GREY,
    INK,
    LOOKS,
    PAPER,
    REFERENCE,
    SIMULATION,
    THEORY,
)


def differencing(truth: Floats, guesses: Mapping[str, Floats]) -> Figure:
    """Return an attacker's guesses of users' means against the means, by release.

    Parameters
    ----------
    truth : array of shape (users,), each user's mean
    guesses : for each kind of release an array of shape (users,)
    """
    figure, panels = new_figure(height=2.8, columns=len(guesses))
    for axes, (name, values) in zip(panels, guesses.items(), strict=True):
        axes.axhspan(0, 1, color=BLUE, alpha=0.12, lw=0)
        axes.plot([0, 1], [0, 1], color=INK, lw=1.0)
        draw_points(axes, truth, values, THEORY, ms=3.5, mew=0, alpha=0.5)
        axes.set(xlim=(-0.04, 1.04), xticks=(0, 0.5, 1))
        axes.set_title(name, fontsize=FONT, color=INK)
        first = axes is panels[0]
        label_axes(axes, "her mean", "attacker's guess" if first else "")
    return figure


def allowed_records(
    record: tuple[int, int],
    allowed: Mapping[str, Collection[tuple[int, int]]],
    k_max: int,
) -> Figure:
    """Return which records (k, ones) may replace this one, by neighbour relation."""
    every = [(k, s) for k in range(1, k_max + 1) for s in range(k + 1)]
    figure, panels = new_figure(height=2.8, columns=len(allowed), share=True)
    for axes, (name, records) in zip(panels, allowed.items(), strict=True):
        axes.plot(*np.transpose(every), ls="", marker=".", ms=4, color=GREY)
        sizes, ones = np.transpose(list(records))
        draw_points(axes, sizes, ones, THEORY, ms=8)
        draw_points(axes, [record[0]], [record[1]], SIMULATION, ms=8)
        axes.set(xlim=(0.4, k_max + 0.6), xticks=range(1, k_max + 1))
        axes.set_yticks(range(0, k_max + 1, 2))
        axes.set_title(name, fontsize=FONT, color=INK)
        label_axes(axes, "samples", "ones" if axes is panels[0] else "")
    return figure


def trade_off(
    limits: Mapping[str, float],
    attacks: Mapping[str, tuple[Any, Any]],
    simulated: Mapping[str, tuple[Any, Any, Any, Any]] | None = None,
) -> Figure:
    """Return what attackers can do: their misses against their false alarms.

    Parameters
    ----------
    limits : for each name an epsilon; no attack on an epsilon-private release gets
        below the line from (0, 1) by way of (c, c), c = 1/(1 + e^epsilon), to (1, 0)
    attacks : for each name (false alarms, misses) of the best attacks on a release
    simulated : for each name (false alarms, standard errors, misses, standard
        errors), in the colour of the attack of that name; bars are two standard
        errors
    """
    points = simulated or {}
    names = list(dict.fromkeys([*attacks, *points]))
    looks = dict(zip(names, LOOKS[: len(names)], strict=True))
    figure, (axes,) = new_figure(height=4.2)
    for name, epsilon in limits.items():
        corner = 1.0 / (1.0 + np.exp(epsilon))
        x, y = [0.0, corner, 1.0], [1.0, corner, 0.0]
        axes.fill_between(x, 0.0, y, color=GREY, alpha=0.12, lw=0)
        axes.plot(x, y, color=INK, lw=1.2)
        if len(limits) > 1:
            note(axes, corner, corner, name, (5, 4))
        else:
            note(axes, 0.53, 0.47 * np.exp(-epsilon), name, (2, 4))
    for name, (false, missed) in attacks.items():
        few = looks[name].marker if len(false) < 10 else ""
        draw_line(axes, false, missed, looks[name], marker=few, ms=6, label=name)
    for name, parts in points.items():
        false, false_error, missed, missed_error = map(np.asarray, parts)
        axes.errorbar(
            false,
            missed,
            2.0 * missed_error,
            2.0 * false_error,
            fmt=looks[name].marker,
            ms=6,
            mfc=PAPER,
            color=looks[name].colour,
            label=f"{name}, simulated",
        )
    axes.set(xlim=(-0.02, 1.02), ylim=(-0.02, 1.02))
    draw_legend(axes, loc="upper right")
    label_axes(axes, "false alarms", "misses")
    return figure


def shifted_laplace(scale: float, shift: float) -> Figure:
    """Return two Laplace laws, centred at 0 and at `shift`, and the log of their ratio.

    The lower panel shades the band between -shift/scale and shift/scale.
    """
    x = np.linspace(-4.0 * scale, shift + 4.0 * scale, 400)
    x = np.sort(np.append(x, [0.0, shift]))
    figure, (top, bottom) = new_figure(height=4.4, rows=2, height_ratios=(5, 3))
    for centre, look, name in ((0.0, THEORY, "$D$"), (shift, SIMULATION, "$D'$")):
        density = np.exp(-np.abs(x - centre) / scale) / (2.0 * scale)
        draw_line(top, x, density, look)
        note(top, centre, 0.5 / scale, name, (0, 3))
    epsilon = shift / scale
    _band(bottom, epsilon)
    draw_line(bottom, x, (np.abs(x - shift) - np.abs(x)) / scale, REFERENCE)
    top.set_ylim(0.0, 0.58 / scale)
    label_axes(top, "", "density")
    label_axes(bottom, "what is published", "log ratio")
    return figure


def noise_variance(
    epsilon: Any, n: int, simulated: Floats, errors: Floats, unit: str
) -> Figure:
    """Return the variance of Laplace noise of scale b = 1/(n epsilon), and 2 b^2.

    Bars are two standard errors; the lower panel divides by b^2.
    """
    square = 1.0 / (n * np.asarray(epsilon, dtype=np.float64)) ** 2
    figure, (top, bottom) = new_figure(height=4.8, rows=2, height_ratios=(5, 3))
    for axes, divisor in ((top, np.ones(len(square))), (bottom, square)):
        draw_line(axes, epsilon, 2.0 * square / divisor, THEORY)
        draw_line(axes, epsilon, square / divisor, COINS)
        draw_error_bars(
            axes, epsilon, simulated / divisor, errors / divisor, SIMULATION
        )
    logarithmic(top, "xy")
    logarithmic(bottom, "x")
    note(top, epsilon[1], 2.0 * square[1], "$2b^2$ and simulation", (8, 6))
    note(top, epsilon[1], square[1], "$b^2$", (0, -4))
    bottom.set_ylim(0.0, 2.6)
    label_axes(top, "", f"variance of {unit}")
    label_axes(bottom, "$\\varepsilon$", "divided by $b^2$")
    return figure


def event_and_user(
    k: Any, errors: Mapping[str, Floats], losses: Mapping[str, Floats]
) -> Figure:
    """Return errors of releases, and what they cost a user, against her samples k.

    `errors` and `losses` map names to arrays of shape (k,); equal names look alike.
    """
    names = list(dict.fromkeys([*errors, *losses]))
    looks = dict(zip(names, LOOKS[: len(names)], strict=True))
    figure, (top, bottom) = new_figure(height=5.2, rows=2, height_ratios=(5, 3))
    for axes, series in ((top, errors), (bottom, losses)):
        for name, values in series.items():
            draw_line(axes, k, values, looks[name])
            note(axes, k[-1], values[-1], name, (0, 5))
        logarithmic(axes, "xy")
        axes.margins(y=0.12)
    label_axes(top, "", "error of the mean")
    label_axes(bottom, "samples per user", "loss of a user")
    return figure


def neighbouring_laws(
    outcomes: Any, law: Floats, other: Floats, epsilon: float
) -> Figure:
    """Return two laws over the same outcomes, and the log of their ratio."""
    outcomes = np.asarray(outcomes)
    figure, (top, bottom) = new_figure(height=4.4, rows=2, height_ratios=(5, 3))
    pairs = ((law, THEORY, -0.16, "$D$"), (other, SIMULATION, 0.16, "$D'$"))
    for values, look, aside, name in pairs:
        top.bar(outcomes + aside, values, 0.3, color=look.colour, alpha=0.3, lw=0)
        draw_points(top, outcomes + aside, values, look, ms=5, label=name)
    draw_legend(top)
    _band(bottom, epsilon)
    draw_points(bottom, outcomes, np.log(law / other), REFERENCE, ms=6)
    top.set_ylim(bottom=0.0)
    top.set_xticks(outcomes)
    label_axes(top, "", "probability")
    label_axes(bottom, "size that is published", "log ratio")
    return figure


def repeated_answers(
    answers: Any, exact: Floats, limit: Floats, simulated: Floats, errors: Floats
) -> Figure:
    """Return how often an attacker is right after several answers about one user.

    `exact` is the best attack, `limit` what composition allows, and `simulated` has
    bars of two standard errors.
    """
    figure, (axes,) = new_figure(height=3.7)
    draw_line(axes, answers, limit, REFERENCE)
    draw_line(axes, answers, exact, THEORY)
    draw_error_bars(axes, answers, simulated, errors, SIMULATION)
    third = len(answers) // 3
    note(axes, answers[third], limit[third], "what composition allows", (8, -8))
    note(axes, answers[-1], exact[-1], "best attack, exact and simulated", (0, -48))
    axes.set_ylim(0.45, 1.03)
    label_axes(axes, "answers about the same bit", "attacker is right")
    return figure


def rank_changes(
    before: Mapping[str, int], after: Mapping[str, int], cohorts: Sequence[int]
) -> Figure:
    """Return how users move between cohorts that are ranks of their sizes.

    `before` and `after` map users to sizes, and `cohorts` has the number of users in
    each cohort, the largest sizes first.  Ties go to who comes first.
    """
    ranks = [_ranks(sizes) for sizes in (before, after)]
    edges = np.cumsum(cohorts)
    figure, (axes,) = new_figure(height=3.9)
    for name in before:
        start, end = (rank[name] for rank in ranks)
        stays = np.searchsorted(edges, start) == np.searchsorted(edges, end)
        look = SIMULATION if before[name] != after[name] else THEORY
        colour = GREY if stays else look.colour
        width, line = (1.0, "-") if stays else (2.2, look.line)
        axes.plot([0, 1], [start, end], color=colour, lw=width, ls=line)
        note(axes, 0, start, f"{name}, {before[name]} ", (0, 0))
        note(axes, 1, end, f"{name}, {after[name]}", (6, 0))
    for edge in edges[:-1]:
        axes.axhline(edge + 0.5, color=INK, lw=1.0)
    axes.set(xlim=(-0.35, 1.35), ylim=(edges[-1] + 0.6, 0.4))
    axes.set_xticks([0, 1], ["before", "after"])
    axes.set_yticks(range(1, edges[-1] + 1))
    axes.grid(visible=False)
    label_axes(axes, "user and her size", "rank by size")
    return figure


def ledger_costs(ledger: Ledger) -> Figure:
    """Return what each cohort of a ledger pays, step by step, and the total."""
    textures = dict(zip(LOOKS, ("", "//", "..", "xx", "--"), strict=True))
    looks = LOOKS[: len(ledger.steps)]
    figure, (axes,) = new_figure(height=1.5 + 0.5 * len(ledger.cohorts))
    names = [cohort.name for cohort in ledger.cohorts]
    paid = dict.fromkeys(names, 0.0)
    for look, step in zip(looks, ledger.steps, strict=True):
        on = [name for name in names if name in step.cohorts]
        axes.barh(
            [names.index(name) for name in on],
            step.epsilon,
            0.6,
            [paid[name] for name in on],
            color=look.colour,
            edgecolor=PAPER,
            hatch=textures[look],
            label=step.name,
        )
        for name in on:
            paid[name] += step.epsilon
    axes.axvline(ledger.epsilon, color=INK, lw=1.4, ls=REFERENCE.line)
    axes.set_yticks(range(len(names)), names)
    axes.set(xlim=(0, 1.08 * ledger.epsilon), ylim=(len(names) - 0.5, -0.5))
    draw_legend(
        figure,
        ncols=2,
        loc="outside upper center",
    )
    total = f"$\\varepsilon$ (dash-dotted line: total {ledger.epsilon:.3g})"
    label_axes(axes, total, "cohort")
    return figure


def _ranks(sizes: Mapping[str, int]) -> dict[str, int]:
    order = sorted(sizes, key=lambda name: -sizes[name])
    return {name: rank for rank, name in enumerate(order, start=1)}


def _band(axes: Axes, epsilon: float) -> None:
    """Shade where the log of a ratio may lie, and name the edges."""
    axes.axhspan(-epsilon, epsilon, color=BLUE, alpha=0.12, lw=0)
    axes.set_ylim(-1.4 * epsilon, 1.4 * epsilon)
    axes.set_yticks(
        [-epsilon, 0.0, epsilon], ["$-\\varepsilon$", "0", "$\\varepsilon$"]
    )
