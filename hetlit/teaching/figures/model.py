"""Figures of the chapter "The model"."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
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
from hetlit.teaching.looks import (
    BLUE,
    COINS,
    GREY,
    INK,
    LOOKS,
    PEOPLE,
    REFERENCE,
    SIMULATION,
    THEORY,
)
from hetlit.theory.variance import user_variance
from hetlit.users.table import Users


def funnel(users: Users, p: float, var_p: float | None = None) -> Figure:
    """Return users' means against their sizes, around the population mean p.

    A row of several equal users is one disc whose area is their number.  With
    `var_p` the curves p +- 2 sd of a user's mean are drawn as well.
    """
    rows = users.compressed()
    grid = np.geomspace(1, rows.k.max(), 200)
    figure, (axes,) = new_figure(height=3.7)
    axes.scatter(rows.k, rows.means, 14 * rows.counts, BLUE, alpha=0.5, lw=0)
    axes.axhline(p, color=INK, ls=REFERENCE.line, lw=1.4)
    note(axes, grid[-1], p, f"population mean {p:g}", (0, 4))
    if var_p is not None:
        reach = 2.0 * np.sqrt(user_variance(grid, p, var_p))
        draw_line(axes, grid, p + reach, SIMULATION)
        draw_line(axes, grid, p - reach, SIMULATION)
        note(axes, grid[-1], p + reach[-1], "two standard deviations", (0, 6))
    logarithmic(axes, "x")
    axes.set_ylim(-0.08, 1.08)
    label_axes(axes, "samples the user holds", "user's mean (share of ones)")
    return figure


def rates_and_means(rates: Floats, means: Mapping[int, Floats]) -> Figure:
    """Return users' means against their rates, one panel per size k.

    Parameters
    ----------
    rates : array of shape (users,), each user's rate
    means : for each k an array of shape (users,), the means of k samples
    """
    figure, panels = new_figure(height=2.75, columns=len(means))
    for axes, (k, values) in zip(panels, means.items(), strict=True):
        axes.plot([0, 1], [0, 1], color=INK, lw=1.0)
        draw_points(axes, rates, values, THEORY, ms=3.5, mew=0, alpha=0.4)
        axes.set(xlim=(0, 1), ylim=(-0.03, 1.03), aspect="equal")
        axes.set(xticks=(0, 0.5, 1), yticks=(0, 0.5, 1))
        axes.set_title(f"{k:,} samples", fontsize=FONT, color=INK)
        label_axes(axes, "user's rate", "user's mean" if axes is panels[0] else "")
    return figure


def variance_check(
    k: Any, theory: Floats, simulated: Mapping[str, tuple[Floats, Floats]]
) -> Figure:
    """Return the variance of a user's mean: the formula and simulations of it.

    `simulated` maps a name to (estimates, standard errors), arrays of shape (k,).
    Bars are two standard errors; the lower panel divides by the formula.
    """
    figure, (top, bottom) = new_figure(height=4.8, rows=2, height_ratios=(5, 3))
    draw_line(top, k, theory, THEORY, label="the lemma")
    draw_line(bottom, k, np.ones(len(theory)), THEORY)
    for number, (name, (values, errors)) in enumerate(simulated.items()):
        look = LOOKS[number + 1]
        # Side by side: each series moves by a few per cent along the log axis.
        place = np.asarray(k) * 1.06 ** (number - (len(simulated) - 1) / 2)
        for axes, unit in ((top, np.ones(len(theory))), (bottom, theory)):
            draw_error_bars(axes, place, values / unit, errors / unit, look, label=name)
    draw_legend(top)
    logarithmic(top, "xy")
    logarithmic(bottom, "x")
    label_axes(top, "", "variance of a user's mean")
    label_axes(bottom, "samples per user", "simulated / lemma")
    return figure


def sandwich(k: Any, p: float, var_p: float) -> Figure:
    """Return the variance of a user's mean between max(q/k, var_p) and its double."""
    k, q = np.asarray(k, dtype=np.float64), p * (1.0 - p)
    corner, larger = q / var_p, np.maximum(q / k, var_p)
    figure, (axes,) = new_figure(height=3.9)
    axes.fill_between(k, larger, 2.0 * larger, color=BLUE, alpha=0.15, lw=0)
    draw_line(axes, k, user_variance(k, p, var_p), THEORY)
    draw_line(axes, k, q / k, COINS)
    draw_line(axes, k, np.full(k.shape, var_p), PEOPLE)
    axes.axvline(corner, color=GREY, lw=1.0)
    logarithmic(axes, "xy")
    axes.set_ylim(var_p / 6.0, 3.0 * q)
    note(axes, k[-1], var_p, "the variance", (0, 6))
    note(axes, k[-1], var_p, "between users", (0, -6))
    note(axes, 3.5 * corner, var_p / 3.5, "coin tosses, $q/k$", (8, 0))
    note(axes, corner, 2.0 * q, f"$q/\\sigma_p^2$ = {corner:g}", (6, 0))
    label_axes(axes, "samples per user", "variance of a user's mean")
    return figure


def effective_sizes(k: Any, p: float, variances: Sequence[float]) -> Figure:
    """Return what k samples of one user are worth, for several spreads of rates."""
    k, q = np.asarray(k, dtype=np.float64), p * (1.0 - p)
    figure, (axes,) = new_figure(height=3.9)
    for look, var_p in zip(LOOKS[: len(variances)], variances, strict=True):
        worth = q / user_variance(k, p, var_p)
        draw_line(axes, k, worth, look)
        cap = f"\nat most {q / var_p:,.4g}" if var_p else ""
        note(axes, k[-1], worth[-1], f"spread {np.sqrt(var_p):g}{cap}", (6, 0))
    logarithmic(axes, "xy")
    label_axes(axes, "samples the user holds", "samples they are worth")
    return figure


def size_profiles(profiles: Mapping[str, Any]) -> Figure:
    """Return users' sizes from the largest to the smallest, one panel per profile."""
    rows = -(-len(profiles) // 2)
    figure, panels = new_figure(height=1.75 * rows, rows=rows, columns=2, share=True)
    for axes, (name, k) in zip(panels, profiles.items(), strict=False):
        sizes = np.sort(k)[::-1]
        rank = np.arange(1, len(sizes) + 1)
        axes.fill_between(rank, 1, sizes, step="mid", color=BLUE, alpha=0.15, lw=0)
        draw_line(axes, rank, sizes, THEORY, drawstyle="steps-mid")
        axes.set_title(name, fontsize=FONT, color=INK)
        logarithmic(axes, "xy")
        x = "user, largest first" if axes in panels[-2:] else ""
        label_axes(axes, x, "samples" if axes in panels[::2] else "")
    for axes in panels[len(profiles) :]:
        axes.set_axis_off()
    return figure


def data_holders(shares: Mapping[str, tuple[float, float]], top: str) -> Figure:
    """Return who holds the data: shares of samples and of effective samples.

    `shares` maps a profile to two shares in [0, 1] held by the users named `top`.
    """
    figure, (axes,) = new_figure(height=0.8 + 0.42 * len(shares))
    place = np.arange(len(shares))[::-1]
    samples, worth = 100.0 * np.array(list(shares.values())).T
    axes.hlines(place, worth, samples, color=GREY, lw=1.2)
    draw_points(axes, samples, place, THEORY, ms=9, label="samples")
    draw_points(axes, worth, place, SIMULATION, ms=5.5, label="effective samples")
    axes.set_yticks(place, list(shares))
    axes.set(xlim=(0, 100), ylim=(-0.6, len(shares) - 0.4))
    draw_legend(axes, loc="lower right")
    label_axes(axes, f"per cent held by {top}", "size profile")
    return figure


def weighting_targets(caps: Any, targets: Mapping[str, Floats]) -> Figure:
    """Return what weights min(k, cap) estimate, for each named population."""
    figure, (axes,) = new_figure(height=3.4)
    looks = LOOKS[: len(targets)]
    for look, (name, values) in zip(looks, targets.items(), strict=True):
        draw_line(axes, caps, values, look, marker=look.marker, ms=5)
        note(axes, caps[-1], values[-1], name, (0, 8))
    logarithmic(axes, "x")
    axes.margins(y=0.15)
    label_axes(
        axes, "weight of a user: her samples, at most this many", "what is estimated"
    )
    return figure
