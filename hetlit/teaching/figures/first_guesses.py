"""Figures of the chapter "First guesses"."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from matplotlib.axes import Axes
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
from hetlit.teaching.looks import (
    BLUE,
    COINS,
    GREEN,
    GREY,
    INK,
    LOOKS,
    PAPER,
    REFERENCE,
    SIMULATION,
    THEORY,
    VERMILLION,
    Look,
)

# Estimates and their standard errors.
Measured = tuple[Floats, Floats]


def wrong_guesses(
    factors: Floats,
    by_spread: Mapping[str, Floats],
    shifts: Floats,
    by_centre: Mapping[str, Floats],
) -> Figure:
    """Return what wrong guesses cost: one panel for the spread, one for the centre.

    Costs are mean squared errors over that with the right guess.
    """
    figure, panels = new_figure(height=3.6, columns=2)
    for axes, x, costs in (
        (panels[0], factors, by_spread),
        (panels[1], shifts, by_centre),
    ):
        axes.axhline(1.0, color=INK, lw=1.0)
        for look, (name, cost) in zip(LOOKS[: len(costs)], costs.items(), strict=True):
            draw_line(axes, x, cost, look, label=name)
        draw_legend(axes, loc="upper left", fontsize=FONT - 0.5)
    logarithmic(panels[0], "xy")
    logarithmic(panels[1], "y")
    panels[0].set_xticks(
        [1 / 64, 1 / 8, 1, 8, 64], ["1/64", "1/8", "1", "8", "64"], minor=False
    )
    panels[0].set_yticks([0.5, 1, 2, 5, 10])
    panels[1].set_yticks([0.5, 1, 2, 5, 10, 20])
    panels[0].tick_params(axis="x", which="minor", bottom=False)
    panels[0].set_ylim(top=2.0 * panels[0].get_ylim()[1])
    label_axes(panels[0], "guess / true variance", "error / error with the truth")
    label_axes(panels[1], "guess of the mean - truth", "")
    return figure


def mean_errors(n: Any, bounds: Mapping[str, Floats], simulated: Measured) -> Figure:
    """Return bounds on the error of a first mean, and simulated quantiles of it."""
    figure, (axes,) = new_figure(height=3.8)
    for look, (name, values) in zip(
        (SIMULATION, COINS, THEORY)[: len(bounds)], bounds.items(), strict=True
    ):
        draw_line(axes, n, values, look, label=name)
    _measured(axes, n, simulated, REFERENCE, "actual, simulated")
    logarithmic(axes, "xy")
    draw_legend(axes, loc="upper right", fontsize=FONT - 0.5)
    label_axes(axes, "users in the first cohort", "error of the first mean")
    return figure


def variance_wedge(c: Floats, ratios: Mapping[str, tuple[Floats, Floats]]) -> Figure:
    """Return guessed q over true q when p is off by c min(p, 1-p), and 1 +- c.

    `ratios` maps a name to the ratios for a guess that is too high and too low.
    """
    figure, (axes,) = new_figure(height=3.6)
    axes.fill_between(c, 1.0 - c, 1.0 + c, color=BLUE, alpha=0.15, lw=0)
    note(axes, c[-1], 1.0 + c[-1], "$1 + c$", (0, -10))
    note(axes, c[-1], 1.0 - c[-1], "$1 - c$", (0, 12))
    for look, (name, sides) in zip(LOOKS[: len(ratios)], ratios.items(), strict=True):
        for number, values in enumerate(sides):
            draw_line(axes, c, values, look, label="" if number else name)
    draw_legend(axes, loc="upper left", fontsize=FONT - 0.5)
    label_axes(axes, "error of the first mean / min(p, 1 - p)", "guessed q / true q")
    return figure


def squares_and_median(
    sd: Floats, theory: tuple[Floats, Floats], shares: Mapping[str, Measured]
) -> Figure:
    """Return how often two guesses of a variance are within a factor of two.

    `theory` is a line (standard deviations, shares) for the first of them.
    """
    figure, (axes,) = new_figure(height=3.6)
    draw_line(axes, *theory, THEORY)
    for look, (name, (values, errors)) in zip(
        LOOKS[: len(shares)], shares.items(), strict=True
    ):
        _measured(axes, sd, (values, errors), look, name)
        note(axes, sd[1], values[1], name, (10, -8))
    logarithmic(axes, "x")
    axes.set_ylim(-0.08, 1.08)
    label_axes(
        axes, "standard deviation of users' means", "share within a factor of two"
    )
    return figure


def difference_bins(
    edges: Floats, panels: Mapping[str, tuple[Floats, Measured, float]]
) -> Figure:
    """Return masses of the bins between edges that double, one panel per population.

    `panels` maps a title to (masses, simulated shares with errors, standard
    deviation).
    """
    figure, axes_list = new_figure(height=3.3, columns=len(panels), share=True)
    centres = np.sqrt(edges[1:] * edges[:-1])
    for axes, (title, (masses, simulated, sd)) in zip(
        axes_list, panels.items(), strict=True
    ):
        axes.bar(
            edges[:-1],
            masses,
            np.diff(edges),
            align="edge",
            color=BLUE,
            alpha=0.25,
            ec=BLUE,
        )
        _measured(axes, centres, simulated, SIMULATION, "simulated")
        axes.axvline(sd, color=INK, ls=REFERENCE.line, lw=1.4)
        logarithmic(axes, "x")
        axes.set_title(title, fontsize=FONT, color=INK)
        first = axes is axes_list[0]
        label_axes(axes, "difference of a pair", "share of pairs" if first else "")
        note(axes, sd, 0.37, "sd", (0, 1))
    axes_list[0].set_ylim(0, 0.4)
    return figure


def output_factors(
    sd: Floats, outputs: Mapping[str, Floats], promise: tuple[float, float]
) -> Figure:
    """Return estimates of a variance over the truth, and the band promised."""
    figure, (axes,) = new_figure(height=3.6)
    axes.axhspan(*promise, color=BLUE, alpha=0.15, lw=0)
    note(axes, sd[-1], np.sqrt(promise[0] * promise[1]), "promised", (0, 2))
    for look, (name, values) in zip(
        LOOKS[: len(outputs)], outputs.items(), strict=True
    ):
        draw_line(axes, sd, values, look, label=name)
    logarithmic(axes, "xy")
    axes.set_yticks([1, 2, 4, 8, 16, 32])
    powers = 2.0 ** np.arange(*np.ceil(np.log2([sd[0], 1.001 * sd[-1]])))
    axes.set_xticks(powers, [f"{power:.3g}" for power in powers])
    axes.tick_params(axis="x", which="minor", bottom=False)
    draw_legend(
        axes,
        loc="lower center",
        fontsize=FONT - 0.5,
        bbox_to_anchor=(0.5, 1.0),
        ncols=len(outputs),
    )
    label_axes(axes, "standard deviation of users' means", "estimate / variance")
    return figure


def user_numbers(numbers: Mapping[str, float]) -> Figure:
    """Return numbers of users on a log scale, one named row each."""
    figure, (axes,) = new_figure(height=0.9 + 0.42 * len(numbers))
    place = np.arange(len(numbers))[::-1]
    values = np.array(list(numbers.values()))
    axes.hlines(place, values.min() / 3.0, values, color=GREY, lw=1.2)
    draw_points(axes, values, place, THEORY, ms=8)
    for x, y in zip(values, place, strict=True):
        note(axes, x, y, f"{x:,.0f}" if x < 1e6 else _scientific(x), (8, 0))
    logarithmic(axes, "x")
    powers = np.arange(1, np.log10(values.max()), 3, dtype=int)
    axes.set_xticks(10.0**powers, [f"$10^{{{power}}}$" for power in powers])
    axes.set_yticks(place, list(numbers))
    axes.set(xlim=(values.min() / 3.0, values.max() * 2000.0))
    axes.set_ylim(-0.6, len(numbers) - 0.4)
    label_axes(axes, "users", "offered or needed")
    return figure


def third_moments(
    k: Any, actual: Mapping[str, Floats], bounds: Mapping[str, Floats]
) -> Figure:
    """Return third moments of users' means over cubed deviations, and bounds."""
    figure, (axes,) = new_figure(height=3.8)
    for look, (name, values) in zip(LOOKS[: len(actual)], actual.items(), strict=True):
        draw_line(axes, k, values, look, label=name)
    for name, values in bounds.items():
        axes.plot(k, values, color=INK, lw=1.4)
        note(axes, k[-1], values[-1], name, (0, 4))
    logarithmic(axes, "xy")
    axes.set_yticks([1, 2, 5, 10, 20, 50, 100])
    axes.set_ylim(1.0, 110.0)
    draw_legend(
        axes, loc="center", fontsize=FONT - 0.5, bbox_to_anchor=(0.5, 0.4), ncols=2
    )
    label_axes(axes, "samples per user", "third moment / cubed sd")
    return figure


def median_choice(
    grid: Floats, shares: Floats, laws: Mapping[str, Floats], target: float
) -> Figure:
    """Return the share of differences up to each grid point, and what gets chosen.

    `laws` maps a name to the probabilities of the cells, which end at grid points;
    `target` is the true median.
    """
    figure, (top, bottom) = new_figure(height=4.6, rows=2, height_ratios=(3, 4))
    draw_line(top, grid, shares, THEORY, drawstyle="steps-post")
    top.axhline(0.5, color=INK, lw=1.0)
    top.set_ylim(-0.05, 1.05)
    edges = np.concatenate(([grid[0] ** 2 / grid[1]], grid))
    for look, (name, law) in zip(LOOKS[: len(laws)], laws.items(), strict=True):
        bottom.stairs(law, edges, color=look.colour, ls=look.line, lw=2.0, label=name)
    for axes in (top, bottom):
        axes.axvline(target, color=GREY, lw=1.0)
        logarithmic(axes, "x")
    draw_legend(bottom, loc="upper left", fontsize=FONT - 0.5)
    label_axes(top, "", "share of pairs up to it")
    label_axes(bottom, "difference of a pair", "chance of the cell")
    return figure


def pairing_losses(users: Any, losses: Mapping[str, Floats], epsilon: float) -> Figure:
    """Return privacy losses of ways to pair users, against the number of users."""
    figure, (axes,) = new_figure(height=3.4)
    axes.axhline(epsilon, color=INK, lw=1.2)
    note(axes, users[-1], epsilon, "what was promised", (0, 4))
    for look, (name, values) in zip(
        (SIMULATION, THEORY)[: len(losses)], losses.items(), strict=True
    ):
        draw_line(axes, users, values, look, marker=look.marker, ms=5)
        note(axes, users[-1], values[-1], name, (0, 8))
    axes.set_ylim(bottom=0.0)
    axes.margins(y=0.15)
    label_axes(axes, "users in the variance cohort", "privacy loss")
    return figure


def success_rates(
    pairs: Floats,
    promised: tuple[Floats, Floats],
    simulated: Mapping[str, Measured],
) -> Figure:
    """Return how often a guess keeps its promise: a proven bound and simulations.

    `promised` is a line (pairs, probability at least).
    """
    figure, (axes,) = new_figure(height=3.8)
    draw_line(axes, *promised, THEORY, label="proved, at least")
    looks = LOOKS[1 : len(simulated) + 1]
    for number, (look, (name, measured)) in enumerate(
        zip(looks, simulated.items(), strict=True)
    ):
        place = np.asarray(pairs) * 1.05 ** (number - (len(simulated) - 1) / 2)
        _measured(axes, place, measured, look, name)
    logarithmic(axes, "x")
    axes.set_xticks(pairs, [f"{x:,g}" for x in pairs])
    axes.minorticks_off()
    axes.set_ylim(-0.05, 1.05)
    draw_legend(axes, loc="lower left", fontsize=FONT - 0.5, bbox_to_anchor=(0.0, 0.05))
    label_axes(axes, "pairs of users", "share in [1, 8] times the variance")
    return figure


def spread_guesses(
    true: Floats, guesses: Mapping[int, tuple[Floats, Floats, Floats]], q: float
) -> Figure:
    """Return guessed against true spreads of rates, one panel per size k.

    `guesses` maps k to the 10%, 50% and 90% points.  Shaded: spreads below the
    deviation of coin tosses, sqrt(q/k).
    """
    figure, panels = new_figure(height=3.0, columns=len(guesses), share=True)
    most = 1.15 * float(np.max(true))
    for axes, (k, (low, middle, high)) in zip(panels, guesses.items(), strict=True):
        axes.axvspan(0.0, np.sqrt(q / k), color=GREEN, alpha=0.15, lw=0)
        axes.plot([0, most], [0, most], color=INK, lw=1.0)
        axes.errorbar(
            true,
            middle,
            (middle - low, high - middle),
            fmt=SIMULATION.marker,
            ms=5,
            mfc=PAPER,
            color=VERMILLION,
        )
        axes.set(xlim=(-0.05 * most, most), ylim=(-0.05 * most, 1.3 * most))
        axes.set_title(f"{k:,} samples", fontsize=FONT, color=INK)
        first = axes is panels[0]
        label_axes(axes, "true spread", "guessed spread" if first else "")
    return figure


def budget_shares(
    share: Floats, variances: Mapping[str, tuple[Floats, Floats]]
) -> Figure:
    """Return final variances against the share spent on first guesses.

    `variances` maps a name to the variance over that without first guesses, when
    the share is one of everybody's budget and when it is one of the users.
    """
    figure, (axes,) = new_figure(height=4.0)
    axes.axhline(1.0, color=INK, lw=1.0)
    for look, (name, (budget, users)) in zip(
        LOOKS[: len(variances)], variances.items(), strict=True
    ):
        draw_line(axes, share, budget, look, label=name)
        axes.plot(share, users, color=look.colour, lw=0.9)
        best = int(np.argmin(budget))
        if budget[best] < 1.0:
            draw_points(axes, share[best], budget[best], look, ms=7)
    logarithmic(axes, "x")
    axes.set_ylim(0.0, 1.6)
    draw_legend(axes, loc="lower left", fontsize=FONT - 0.5)
    label_axes(
        axes, "share spent on first guesses", "variance / variance without guesses"
    )
    return figure


def _measured(axes: Axes, x: Any, measured: Measured, look: Look, name: str) -> None:
    """Draw estimates with two standard errors either way."""
    values, errors = measured
    draw_error_bars(axes, x, values, errors, look, label=name)


def _scientific(value: float) -> str:
    """Return a large number as a small one times a power of ten."""
    power = int(np.floor(np.log10(value)))
    return f"${value / 10**power:.1f}\\times10^{{{power}}}$"
