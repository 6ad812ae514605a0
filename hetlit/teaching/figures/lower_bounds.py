"""Figures of the chapter "Lower bounds"."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from scipy import stats

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
    PEOPLE,
    REFERENCE,
    SIMULATION,
    THEORY,
    VERMILLION,
)

Simulated = tuple[Floats, Floats]  # estimates and their standard errors


def risks(p: Floats, share: Floats, constant: Floats, pulled: Floats) -> Figure:
    """Return mean squared errors over p: two biased estimators and an unbiased one.

    `share` is that of the share of ones, which is the bound for unbiased estimators.
    """
    top = 1.6 * float(np.max(share))
    figure, (axes,) = new_figure(height=3.7)
    axes.fill_between(p, 0.0, share, color=BLUE, alpha=0.12, lw=0)
    draw_line(axes, p, share, THEORY)
    draw_line(axes, p, constant, SIMULATION)
    draw_line(axes, p, pulled, COINS)
    summit, last = int(np.argmax(share)), int(np.flatnonzero(constant < top)[-1])
    note(axes, p[summit], share[summit], "share of ones: the bound", (12, 5))
    note(axes, p[last], constant[last], "a constant", (8, -3))
    note(axes, p[-1], pulled[-1], "pulled towards 1/2", (0, 5))
    axes.set(xlim=(p[0], p[-1]), ylim=(0.0, top))
    label_axes(axes, "true rate", "mean squared error")
    return figure


def score_fans(sizes: Sequence[int], p: float, reach: float = 0.08) -> Figure:
    """Return log-likelihoods around p, one panel per number of tosses.

    One curve for each number of ones, the fainter the less likely it is at p; all
    are shifted to 0 at p, where their slopes are the scores.
    """
    grid = np.linspace(p - reach, p + reach, 81)
    figure, panels = new_figure(height=3.1, columns=len(sizes))
    for axes, k in zip(panels, sizes, strict=True):
        x = np.arange(k + 1)
        chances = stats.binom.pmf(x, k, p)
        for ones, chance in zip(x, chances / chances.max(), strict=True):
            if chance > 0.02:
                curve = stats.binom.logpmf(ones, k, grid)
                curve -= stats.binom.logpmf(ones, k, p)
                axes.plot(grid, curve, color=BLUE, alpha=0.1 + 0.8 * chance, lw=1.3)
        axes.axvline(p, color=INK, ls=REFERENCE.line, lw=1.2)
        axes.set(xlim=(grid[0], grid[-1]), ylim=(-2.6, 2.6))
        axes.set_xticks([p - reach / 2, p, p + reach / 2])
        axes.set_title(f"{k:,} tosses", fontsize=FONT, color=INK)
        first = axes is panels[0]
        label_axes(axes, "rate", "log-likelihood, 0 at $p$" if first else "")
    return figure


def information(
    k: Any, told: Floats, worth: Floats, most: Floats, ratios: Mapping[str, Floats]
) -> Figure:
    """Return what a user's tosses tell about p, between its bounds.

    Parameters
    ----------
    k : array of shape (sizes,)
    told, worth, most : arrays of shape (sizes,): her information, 1/variance and an
        upper bound, all in units of a single toss
    ratios : for each named population, information times variance, shape (sizes,)
    """
    figure, (top, bottom) = new_figure(height=5.2, rows=2, height_ratios=(3, 2))
    top.fill_between(k, worth, most, color=BLUE, alpha=0.12, lw=0)
    draw_line(top, k, most, REFERENCE)
    draw_line(top, k, told, THEORY)
    draw_line(top, k, worth, SIMULATION)
    logarithmic(top, "xy")
    top.set_ylim(0.8, 2.0 * float(np.max(most)))
    place = int(np.searchsorted(k, 12))
    note(top, k[-1], most[-1], "no user tells more", (0, 5))
    note(
        top,
        k[place],
        told[place],
        "information (solid) and\n1/variance (dashed)",
        (10, -8),
    )
    label_axes(top, "", "in single tosses")
    for look, (name, values) in zip(LOOKS[: len(ratios)], ratios.items(), strict=True):
        draw_line(bottom, k, values, look)
        note(bottom, k[-1], values[-1], name, (0, 4))
    bottom.axhline(1.0, color=INK, lw=1.0)
    highest = max(float(np.max(values)) for values in ratios.values())
    bottom.set_ylim(0.97, highest + 0.25 * (highest - 0.97))
    label_axes(bottom, "tosses of the user", "information\ntimes variance")
    return figure


def window_bounds(
    n: Any,
    claimed: Floats,
    mean: Floats,
    midrange: Floats,
    simulated: tuple[Any, Simulated],
) -> Figure:
    """Return variances for a window that moves: a claimed bound and two estimators.

    `simulated` is (n, (variances of the midrange, their standard errors)).
    """
    figure, (axes,) = new_figure(height=3.7)
    draw_line(axes, n, claimed, THEORY)
    draw_line(axes, n, mean, COINS)
    draw_line(axes, n, midrange, SIMULATION)
    draw_error_bars(axes, simulated[0], *simulated[1], SIMULATION)
    logarithmic(axes, "xy")
    axes.set_xlim(None, 25.0 * n[-1])  # room for names
    axes.set_xticks([10, 100, 1000, 10_000])
    note(axes, n[-1], claimed[-1], 'the "bound"', (6, 5))
    note(axes, n[-1], mean[-1], "mean of the rates", (6, -5))
    note(axes, n[-1], midrange[-1], "midrange", (6, 0))
    label_axes(axes, "users", "variance")
    return figure


def variance_parts(parts: Mapping[str, Sequence[float]]) -> Figure:
    """Return how the variance of mechanisms divides, one bar each.

    `parts` maps a name to (sum over single users, interactions, noise).
    """
    names = ("users one by one", "interactions", "noise of the mechanism")
    figure, (axes,) = new_figure(height=1.3 + 0.5 * len(parts))
    place = np.arange(len(parts))[::-1]
    table = np.array(list(parts.values()))
    start = np.zeros(len(parts))
    for column, name, colour, hatch in zip(
        table.T, names, (BLUE, PAPER, VERMILLION), ("", "////", ".."), strict=True
    ):
        axes.barh(
            place,
            column,
            0.6,
            start,
            color=colour,
            edgecolor=INK,
            hatch=hatch,
            lw=0.8,
            label=name,
        )
        start = start + column
    axes.set_yticks(place, list(parts))
    axes.set_ylim(-0.5, len(parts) + 0.1)
    draw_legend(
        axes,
        fontsize=FONT - 1.0,
        ncols=3,
        loc="upper center",
        handlelength=1.2,
        columnspacing=1.0,
    )
    label_axes(axes, "variance", "what is reported")
    return figure


def noise_prices(
    epsilon: Floats, laplace: Floats, staircase: Floats, least: Floats
) -> Figure:
    """Return variances that hide a change of 1, times epsilon^2, over epsilon."""
    laplace, staircase, least = (v * epsilon**2 for v in (laplace, staircase, least))
    figure, (axes,) = new_figure(height=3.6)
    axes.fill_between(epsilon, 0.0, least, color=BLUE, alpha=0.12, lw=0)
    draw_line(axes, epsilon, laplace, SIMULATION)
    draw_line(axes, epsilon, staircase, COINS)
    draw_line(axes, epsilon, least, THEORY)
    logarithmic(axes, "x")
    axes.set_ylim(0.0, 2.4)
    half = int(np.searchsorted(-staircase, -0.6 * staircase[0]))
    note(axes, epsilon[-1], laplace[-1], "Laplace", (0, 5))
    note(axes, epsilon[half], staircase[half], "staircase", (6, 6))
    note(axes, epsilon[0], least[0], "the bound: randomised response", (4, 5))
    label_axes(axes, "$\\varepsilon$", "variance times $\\varepsilon^2$")
    return figure


def counted_information(
    k: Any, whole: Floats, counted: Mapping[str, tuple[Floats, float]]
) -> Figure:
    """Return how much of a user's information counts under privacy.

    `counted` maps the name of an epsilon to (counted information, level of k from
    which users are held back), in units of a single toss.
    """
    figure, (axes,) = new_figure(height=3.8)
    draw_line(axes, k, whole, REFERENCE)
    note(axes, k[-1], whole[-1], "no privacy", (0, 5))
    for look, (name, (values, start)) in zip(
        LOOKS[: len(counted)], counted.items(), strict=True
    ):
        draw_line(axes, k, values, look)
        note(axes, k[-1], values[-1], name, (0, -6))
        if k[0] < start < k[-1]:
            height = float(np.interp(start, k, values))
            draw_points(axes, [start], [height], look, ms=7)
    logarithmic(axes, "xy")
    axes.set_ylim(None, 2.0 * float(np.max(whole)))
    label_axes(axes, "tosses of the user", "information that counts,\nin single tosses")
    return figure


def tightness(n: Any, truth: Floats, curves: Mapping[str, Floats]) -> Figure:
    """Return what privacy costs the best estimator, and bounds on it, against n."""
    figure, (axes,) = new_figure(height=3.7)
    for look, (name, values) in zip(
        (SIMULATION, COINS, THEORY), curves.items(), strict=True
    ):
        draw_line(axes, n, values, look)
        note(axes, n[-1], values[-1], name, (0, 5))
    draw_points(axes, n, truth, REFERENCE, ms=7)
    # Below the first point: to its left, it would leave the figure.
    note(axes, n[1], truth[1], "the best there is", (8, -6))
    axes.set_xticks(n)
    axes.set_ylim(0.0, 2.4)
    label_axes(
        axes, "users, one toss each", "variance that privacy adds\n/ sharper bound"
    )
    return figure


def variance_ratios(epsilon: Floats, curves: Mapping[str, Floats]) -> Figure:
    """Return variances divided by a bound, over epsilon, on log axes."""
    figure, (axes,) = new_figure(height=3.9)
    axes.fill_between(epsilon, 0.4, 1.0, color=BLUE, alpha=0.12, lw=0)
    axes.axhline(1.0, color=INK, lw=1.0)
    for look, (name, values) in zip(LOOKS[: len(curves)], curves.items(), strict=True):
        draw_line(axes, epsilon, values, look, label=name)
    logarithmic(axes, "xy")
    axes.set_ylim(0.4, None)
    draw_legend(axes, loc="upper right")
    label_axes(axes, "$\\varepsilon$", "variance / bound")
    return figure


def two_families(spread: Floats, coins: Floats, people: Floats, both: Floats) -> Figure:
    """Return lower bounds over the spread between users: two families, and one.

    The larger of the first two is a bound, and so is `both`; the smaller is shaded.
    """
    coins, people, both = (1e4 * values for values in (coins, people, both))
    figure, (axes,) = new_figure(height=3.8)
    axes.fill_between(
        spread, 0.0, np.minimum(coins, people), color=GREEN, alpha=0.15, lw=0
    )
    draw_line(axes, spread, both, THEORY)
    draw_line(axes, spread, coins, COINS)
    draw_line(axes, spread, people, PEOPLE)
    note(axes, spread[-1], coins[-1], "one rate for all", (0, 5))
    middle = int(np.searchsorted(spread, 0.62 * spread[-1]))
    note(axes, spread[middle], both[middle], "one family with both", (0, 8))
    note(axes, spread[middle], people[middle], "rates seen directly", (10, -4))
    axes.set(xlim=(0.0, float(spread[-1])), ylim=(0.0, 1.08 * float(both.max())))
    label_axes(
        axes, "spread between users, $\\sigma_p$", "variance, at least ($10^{-4}$)"
    )
    return figure


def cap_curves(
    panels: Mapping[str, tuple[Any, Mapping[str, Floats], Mapping[str, Any]]],
) -> Figure:
    """Return the variance against the cap on sizes, both variants, per population.

    A panel is (caps, {variant: values}, {variant: (best cap, its value)}); values are
    divided by the least of all.
    """
    figure, axes_list = new_figure(height=3.6, columns=len(panels))
    for axes, (title, (caps, curves, best)) in zip(
        axes_list, panels.items(), strict=True
    ):
        unit = min(value for _, value in best.values())
        for look, (name, values) in zip(
            (THEORY, SIMULATION), curves.items(), strict=True
        ):
            draw_line(axes, caps, values / unit, look, label=name)
            cap, value = best[name]
            draw_points(axes, [cap], [value / unit], look, ms=8)
        logarithmic(axes, "xy")
        axes.minorticks_off()
        decades = np.arange(math.ceil(math.log10(caps[-1])) + 1)
        decades = decades[:: max(1, len(decades) // 3)]
        axes.set_xticks(10.0**decades, [f"$10^{{{power}}}$" for power in decades])
        low, high = axes.get_ylim()
        steps = (1, 2, 5, 10, 20, 50) if high < 50 else (1, 10, 100, 1000)
        axes.set_yticks([step for step in steps if low < step < high])
        axes.set_title(title, fontsize=FONT, color=INK)
        label_axes(axes, "cap", "variance / least" if axes is axes_list[0] else "")
    draw_legend(axes_list[-1])
    return figure


def variant_gap(epsilon: Floats, gap: Floats, ceiling: float) -> Figure:
    """Return how far the two variants of k* are apart, over epsilon."""
    figure, (axes,) = new_figure(height=3.2)
    draw_line(axes, epsilon, gap, SIMULATION)
    axes.axhline(ceiling, color=INK, ls=REFERENCE.line, lw=1.4)
    note(axes, epsilon[-1], ceiling, "never above this", (0, -5))
    logarithmic(axes, "xy")
    label_axes(axes, "$\\varepsilon$", "best hard cap / best soft cap")
    return figure


def mechanisms(epsilon: Floats, ratio: Floats, sharper: Floats) -> Figure:
    """Return variances over their bounds for many mechanisms, exactly computed."""
    figure, panels = new_figure(height=3.5, columns=2, share=True)
    for axes, values, title, look in zip(
        panels,
        (ratio, sharper),
        ("over the bound", "over the sharper bound"),
        (THEORY, SIMULATION),
        strict=True,
    ):
        draw_points(axes, epsilon, values, look, ms=3.5, mew=0, alpha=0.5)
        axes.axhline(1.0, color=INK, lw=1.2)
        axes.set_title(title, fontsize=FONT, color=INK)
        label_axes(
            axes, "$\\varepsilon$", "variance / bound" if axes is panels[0] else ""
        )
    logarithmic(panels[0], "xy")
    logarithmic(panels[1], "xy")
    panels[0].set_ylim(0.5, 300.0)
    return figure


def closeness(
    epsilon: Floats, lines: Mapping[str, Floats], simulated: Mapping[str, Simulated]
) -> Figure:
    """Return mean squared errors divided by the bound, over epsilon.

    `lines` are exact; `simulated` maps names to (ratios, standard errors), and a name
    that is in both is drawn alike.  Bars are two standard errors.
    """
    figure, (axes,) = new_figure(height=4.2)
    axes.fill_between(epsilon, 0.4, 1.0, color=GREY, alpha=0.18, lw=0)
    axes.axhline(1.0, color=INK, lw=1.2)
    names = list(dict.fromkeys([*lines, *simulated]))
    looks = dict(zip(names, LOOKS[: len(names)], strict=True))
    for name, values in lines.items():
        draw_line(axes, epsilon, values, looks[name])
        if name not in simulated:
            note(axes, epsilon[0], values[0], name, (4, 5))
    for number, (name, (values, errors)) in enumerate(simulated.items()):
        place = epsilon * 1.05 ** (number - (len(simulated) - 1) / 2)
        draw_error_bars(axes, place, values, errors, looks[name], label=name)
    logarithmic(axes, "xy")
    axes.set_ylim(0.55, None)
    draw_legend(axes, loc="upper right")
    note(axes, epsilon[0], 1.0, "nothing unbiased and private", (4, -6))
    label_axes(axes, "$\\varepsilon$", "mean squared error / bound")
    return figure


def narrow_intervals(
    reach: Floats,
    variance: Floats,
    allowed: Floats,
    simulated: tuple[Floats, Simulated],
) -> Figure:
    """Return the variance of a clipped mean over the reach of its intervals.

    All are divided by the bound for unbiased estimators; `allowed` is what the
    theorem says once the bias is known, and `simulated` is (reach, (values, errors)).
    """
    figure, (axes,) = new_figure(height=3.8)
    axes.axhline(1.0, color=INK, lw=1.2)
    draw_line(axes, reach, variance, THEORY)
    draw_line(axes, reach, allowed, COINS)
    draw_error_bars(axes, simulated[0], *simulated[1], SIMULATION)
    note(axes, reach[0], 1.0, "bound, if unbiased", (2, 5))
    half = int(np.searchsorted(variance, 0.9 * variance[-1]))
    note(axes, reach[half], variance[half], "variance", (0, 6))
    place = int(np.searchsorted(allowed, 0.5 * allowed[-1]))
    note(axes, reach[place], allowed[place], "bound at this bias", (10, -3))
    axes.set_ylim(0.0, None)
    label_axes(axes, "reach of the intervals, standard deviations", "variance / bound")
    return figure
