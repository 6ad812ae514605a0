"""Figures of the chapter "The ideal private estimator"."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.axis import Axis
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
from hetlit.users.table import Users


def two_errors(rows: Mapping[str, tuple[float, float]]) -> Figure:
    """Return the sampling error and the noise of several estimators, a row each.

    `rows` maps a name to two standard deviations.  A short line marks their total.
    """
    figure, (axes,) = new_figure(height=1.2 + 0.42 * len(rows))
    place = np.arange(len(rows))[::-1]
    sampling, noise = np.array(list(rows.values())).T
    total = np.sqrt(sampling**2 + noise**2)
    axes.hlines(place, np.minimum(sampling, noise), total, color=GREY, lw=1.2)
    draw_points(axes, sampling, place, THEORY, ms=8, label="sampling")
    draw_points(axes, noise, place, SIMULATION, ms=8, label="noise")
    axes.plot(total, place, ls="", color=INK, marker="|", ms=16, mew=2, label="total")
    logarithmic(axes, "x")
    _ticks(axes.xaxis, np.min([sampling, noise]), total.max())
    axes.set_yticks(place, list(rows))
    axes.set_ylim(-0.6, len(rows) - 0.4)
    draw_legend(figure, loc="outside upper right", ncols=3)
    label_axes(axes, "standard deviation", "weights")
    return figure


def intervals(users: Users, p: float, k: Any, half_widths: Floats) -> Figure:
    """Return users' means and the intervals that they are clipped to.

    `half_widths` belong to the sizes `k`; intervals end at 0 and at 1.
    """
    rows = users.compressed()
    low, high = np.maximum(0.0, p - half_widths), np.minimum(1.0, p + half_widths)
    figure, (axes,) = new_figure(height=3.7)
    axes.fill_between(k, low, high, color=VERMILLION, alpha=0.12, lw=0)
    for edge in (low, high):
        draw_line(axes, k, edge, SIMULATION)
    axes.scatter(rows.k, rows.means, 4 * rows.counts, BLUE, alpha=0.5, lw=0)
    axes.axhline(p, color=INK, ls=REFERENCE.line, lw=1.4)
    logarithmic(axes, "x")
    axes.set_ylim(-0.08, 1.08)
    place = 2 * len(high) // 3
    note(axes, k[place], high[place], "clipping interval", (6, 6))
    label_axes(axes, "samples the user holds", "user's mean (share of ones)")
    return figure


def trade_off(
    thresholds: Any, sampling: Floats, noise: Floats, best: float, ends: Sequence[float]
) -> Figure:
    """Return both variances and their sum against the threshold, in units of 1e-4.

    `best` is the best threshold, and beyond the two `ends` nothing changes.
    """
    total = 1e4 * (sampling + noise)
    figure, (axes,) = new_figure(height=3.9)
    for end in ends:
        axes.axvline(end, color=GREY, lw=1.0, ls=":")
    draw_line(axes, thresholds, total, THEORY)
    draw_line(axes, thresholds, 1e4 * noise, SIMULATION)
    draw_line(axes, thresholds, 1e4 * sampling, PEOPLE)
    lowest = float(np.interp(best, thresholds, total))
    draw_points(axes, [best], [lowest], THEORY, ms=8)
    logarithmic(axes, "xy")
    axes.set_ylim(top=1.6 * total.max())
    note(axes, best, lowest, f"$T^*$ = {best:.3g}", (0, 10))
    last = thresholds[-1]
    note(axes, last, total[-1], "total", (8, 2))
    note(axes, last, 1e4 * noise[-1], "noise", (8, -2))
    note(axes, last, 1e4 * sampling[-1], "sampling", (8, 0))
    label_axes(axes, "threshold $T$", "variance $\\times\\,10^4$")
    return figure


def water(heights: Any, level: float, width: float) -> Figure:
    """Return bars cut at a level, and what is cut off in a tank of the given width."""
    bars = np.sort(np.asarray(heights, dtype=np.float64))[::-1]
    left = np.arange(len(bars), dtype=np.float64)
    cut: dict[str, Any] = {
        "fc": VERMILLION,
        "ec": VERMILLION,
        "alpha": 0.4,
        "hatch": "//",
    }
    gap = 0.5
    figure, (axes,) = new_figure(height=3.7)
    axes.bar(left, np.minimum(bars, level), 1.0, align="edge", color=BLUE, ec=PAPER)
    over = bars > level
    axes.bar(
        left[over], bars[over] - level, 1.0, bottom=level, align="edge", lw=0, **cut
    )
    axes.bar(-gap - width, level, width, align="edge", lw=0, **cut)
    axes.axhline(level, color=INK, lw=1.4)
    axes.set_ylim(0.0, 1.12 * bars[0])
    axes.set_xticks([-gap - width / 2, *(left + 0.5)])
    names = [f"user {number + 1}" for number in range(len(bars))]
    axes.set_xticklabels([f"privacy, width {width:g}", *names])
    axes.grid(visible=False, axis="x")
    note(axes, left[-1] + 1.0, level, f"level $T$ = {level:g}", (0, 5))
    label_axes(axes, "", "$1/\\sigma_i$")
    axes.set_xlabel("what is cut off the users fills the tank", fontsize=FONT)
    return figure


def weight_curves(k: Any, weights: Mapping[str, Floats]) -> Figure:
    """Return weights against sizes, one curve for each name."""
    figure, (axes,) = new_figure(height=3.7)
    looks = LOOKS[: len(weights)]
    for look, (name, values) in zip(looks, weights.items(), strict=True):
        draw_line(axes, k, values, look)
        # Of two curves that end close together the lower one is named below its end.
        near = [w[-1] / values[-1] for w in weights.values() if w is not values]
        crowded = any(1.0 < ratio < 1.4 for ratio in near)
        note(axes, k[-1], values[-1], name, (6, -1) if crowded else (6, 1))
    logarithmic(axes, "xy")
    label_axes(axes, "samples the user holds", "weight of the user")
    return figure


def two_limits(
    epsilon: Any, deviation: Floats, without: float, only_noise: Floats
) -> Figure:
    """Return the error of the release against epsilon, between its two limits."""
    figure, (axes,) = new_figure(height=3.7)
    axes.axhline(without, color=INK, ls=REFERENCE.line, lw=1.4)
    draw_line(axes, epsilon, only_noise, SIMULATION)
    draw_line(axes, epsilon, deviation, THEORY)
    logarithmic(axes, "xy")
    axes.set_ylim(without / 2.0, 1.5 * deviation.max())
    note(axes, epsilon[0], without, "without privacy", (1, -6))
    middle = len(epsilon) // 3
    note(axes, epsilon[middle], deviation[middle], "the best release", (8, 8))
    note(axes, epsilon[middle], only_noise[middle], "noise alone ", (0, -8))
    label_axes(axes, "$\\epsilon$", "standard deviation")
    return figure


def rates(n: Any, scaled: Mapping[str, Floats]) -> Figure:
    """Return standard deviations times sqrt(n log n) against the number of users.

    The first of `scaled` has a panel of its own, on a log scale.
    """
    figure, (top, bottom) = new_figure(height=4.9, rows=2, height_ratios=(3, 5))
    looks = LOOKS[: len(scaled)]
    for look, (name, values) in zip(looks, scaled.items(), strict=True):
        axes = top if look is looks[0] else bottom
        draw_line(axes, n, values, look, marker=look.marker, ms=5)
        note(axes, n[-1], values[-1], name, (8, 0))
    logarithmic(top, "xy")
    logarithmic(bottom, "x")
    first = np.asarray(next(iter(scaled.values())))
    _ticks(top.yaxis, first.min(), first.max())
    bottom.set_xticks(n, [f"$10^{round(np.log10(users))}$" for users in n])
    bottom.set_ylim(bottom=0.4)
    label_axes(top, "", "")
    label_axes(
        bottom, "number of users", "standard deviation $\\times\\sqrt{n\\,\\log n}$"
    )
    return figure


def ceilings(names: Sequence[str], moves: Mapping[str, Floats]) -> Figure:
    """Return how far each user can move the sum, under several rules.

    `moves` maps a rule to weight times width, of shape (users,).
    """
    figure, (axes,) = new_figure(height=3.3)
    place = np.arange(len(names), dtype=np.float64)
    share = 0.8 / len(moves)
    looks = LOOKS[: len(moves)]
    for number, (look, (rule, values)) in enumerate(
        zip(looks, moves.items(), strict=True)
    ):
        left = place - 0.4 + number * share
        axes.bar(
            left,
            values,
            share,
            align="edge",
            color=look.colour,
            ec=PAPER,
            hatch="//" if number % 2 else None,
            label=rule,
        )
        axes.axhline(values.max(), color=look.colour, ls=look.line, lw=1.4)
    axes.set_xticks(place, list(names))
    axes.grid(visible=False, axis="x")
    draw_legend(figure, loc="outside upper right", ncols=2)
    label_axes(axes, "samples the user holds", "weight $\\times$ width")
    return figure


def families(epsilon: Any, ratios: Mapping[str, Floats]) -> Figure:
    """Return what the paper's weights cost against epsilon, over the best weights."""
    figure, (axes,) = new_figure(height=3.4)
    looks = LOOKS[: len(ratios)]
    for look, (name, values) in zip(looks, ratios.items(), strict=True):
        draw_line(axes, epsilon, values, look)
        middle = int(np.argmin(np.abs(values - np.sqrt(values.max()))))
        note(axes, epsilon[middle], values[middle], name, (8, 4))
    axes.axhline(1.0, color=INK, ls=REFERENCE.line, lw=1.2)
    logarithmic(axes, "xy")
    _ticks(axes.yaxis, 1.0, max(values.max() for values in ratios.values()))
    label_axes(axes, "$\\epsilon$", "variance, in multiples of the best")
    return figure


def clipping_bias(p: Any, shares: Mapping[str, Floats]) -> Figure:
    """Return the expectation of a clipped mean over p, against p."""
    figure, (axes,) = new_figure(height=3.4)
    looks = LOOKS[: len(shares)]
    for look, (name, values) in zip(looks, shares.items(), strict=True):
        draw_line(axes, p, values, look)
        middle = int(np.argmin(np.abs(values - 0.55)))
        note(axes, p[middle], values[middle], name, (8, -4))
    axes.axhline(1.0, color=INK, ls=REFERENCE.line, lw=1.2)
    logarithmic(axes, "x")
    axes.set_ylim(0.0, 1.15)
    label_axes(axes, "population mean $p$", "expectation after clipping, over $p$")
    return figure


def prediction_check(
    epsilon: Any, predicted: Floats, simulated: tuple[Floats, Floats], without: float
) -> Figure:
    """Return predicted and simulated variances of the release against epsilon.

    `simulated` is (estimates, standard errors); bars are two standard errors, and the
    lower panel divides by the prediction.
    """
    figure, (top, bottom) = new_figure(height=4.8, rows=2, height_ratios=(5, 3))
    values, errors = simulated
    top.axhline(without, color=INK, ls=REFERENCE.line, lw=1.2)
    for axes, unit in ((top, np.ones(len(predicted))), (bottom, predicted)):
        draw_line(axes, epsilon, predicted / unit, THEORY)
        draw_error_bars(axes, epsilon, values / unit, errors / unit, SIMULATION)
    logarithmic(top, "xy")
    logarithmic(bottom, "x")
    _ticks(top.yaxis, without, predicted.max())
    bottom.set_xticks(epsilon, [f"{budget:g}" for budget in epsilon])
    note(top, epsilon[0], without, "without privacy", (1, 5))
    note(top, epsilon[1], predicted[1], "predicted", (10, 8))
    label_axes(top, "", "variance of the release")
    label_axes(bottom, "$\\epsilon$", "simulated / predicted")
    return figure


def _ticks(axis: Axis, low: float, high: float) -> None:
    """Put ticks at 1, 2 and 5 times powers of ten between two positive numbers."""
    powers = 10.0 ** np.arange(np.floor(np.log10(low)), np.ceil(np.log10(high)) + 1)
    ticks = np.multiply.outer(powers, [1.0, 2.0, 5.0]).ravel()
    axis.set_ticks([tick for tick in ticks if low / 1.2 <= tick <= 1.2 * high])
