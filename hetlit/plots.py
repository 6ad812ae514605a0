"""Figures: pure functions of numbers that return a matplotlib Figure.

Nothing here draws at random, touches pyplot or changes matplotlib's settings.  A
notebook shows a returned figure by naming it on the last line of a cell.

Every figure uses the same few colours (Okabe and Ito's, which stay apart for
colour-blind readers and have a contrast of at least 3 to 1 on white), and never
colour alone: each series also has its own line style and marker.

`python -m hetlit.plots FILE.svg` writes the picture of the landing page.
"""

from __future__ import annotations

import html
import io
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, NullFormatter

from .check import Floats
from .model import Users, user_variance
from .weights import optimal_weights

INK, GREY, PAPER = "#222222", "#666666", "#FFFFFF"
BLUE, VERMILLION, GREEN, PURPLE = "#0072B2", "#D55E00", "#009E73", "#CC79A7"
WIDTH, DPI, FONT = 6.0, 150, 10.5


@dataclass(frozen=True)
class Look:
    """How one series is drawn: a colour, and a line style and marker of its own."""

    colour: str
    line: Any
    marker: str


THEORY = Look(BLUE, "-", "o")
SIMULATION = Look(VERMILLION, (0, (4, 1.5)), "s")
COINS = Look(GREEN, (0, (8, 2)), "^")
PEOPLE = Look(PURPLE, (0, (1, 1.2)), "D")
REFERENCE = Look(INK, (0, (5, 2, 1, 2)), "v")
LOOKS = (THEORY, SIMULATION, COINS, PEOPLE, REFERENCE)

# --- the chapter "The model" --------------------------------------------------


def funnel(users: Users, p: float, var_p: float | None = None) -> Figure:
    """Return users' means against their sizes, around the population mean p.

    A row of several equal users is one disc whose area is their number.  With
    `var_p` the curves p +- 2 sd of a user's mean are drawn as well.
    """
    rows = users.compressed()
    grid = np.geomspace(1, rows.k.max(), 200)
    figure, (axes,) = _figure(height=3.7)
    axes.scatter(rows.k, rows.means, 14 * rows.counts, BLUE, alpha=0.5, lw=0)
    axes.axhline(p, color=INK, ls=REFERENCE.line, lw=1.4)
    _note(axes, grid[-1], p, f"population mean {p:g}", (0, 4))
    if var_p is not None:
        reach = 2.0 * np.sqrt(user_variance(grid, p, var_p))
        _line(axes, grid, p + reach, SIMULATION)
        _line(axes, grid, p - reach, SIMULATION)
        _note(axes, grid[-1], p + reach[-1], "two standard deviations", (0, 6))
    _logarithmic(axes, "x")
    axes.set_ylim(-0.08, 1.08)
    _label(axes, "samples the user holds", "user's mean (share of ones)")
    return figure


def rates_and_means(rates: Floats, means: Mapping[int, Floats]) -> Figure:
    """Return users' means against their rates, one panel per size k.

    Parameters
    ----------
    rates : array of shape (users,), each user's rate
    means : for each k an array of shape (users,), the means of k samples
    """
    figure, panels = _figure(height=2.75, columns=len(means))
    for axes, (k, values) in zip(panels, means.items(), strict=True):
        axes.plot([0, 1], [0, 1], color=INK, lw=1.0)
        _points(axes, rates, values, THEORY, ms=3.5, mew=0, alpha=0.4)
        axes.set(xlim=(0, 1), ylim=(-0.03, 1.03), aspect="equal")
        axes.set(xticks=(0, 0.5, 1), yticks=(0, 0.5, 1))
        axes.set_title(f"{k:,} samples", fontsize=FONT, color=INK)
        _label(axes, "user's rate", "user's mean" if axes is panels[0] else "")
    return figure


def variance_check(
    k: Any, theory: Floats, simulated: Mapping[str, tuple[Floats, Floats]]
) -> Figure:
    """Return the variance of a user's mean: the formula and simulations of it.

    `simulated` maps a name to (estimates, standard errors), arrays of shape (k,).
    Bars are two standard errors; the lower panel divides by the formula.
    """
    figure, (top, bottom) = _figure(height=4.8, rows=2, height_ratios=(5, 3))
    _line(top, k, theory, THEORY, label="the lemma")
    _line(bottom, k, np.ones(len(theory)), THEORY)
    for number, (name, (values, errors)) in enumerate(simulated.items()):
        look = LOOKS[number + 1]
        # Side by side: each series moves by a few per cent along the log axis.
        place = np.asarray(k) * 1.06 ** (number - (len(simulated) - 1) / 2)
        for axes, unit in ((top, np.ones(len(theory))), (bottom, theory)):
            axes.errorbar(
                place,
                values / unit,
                2.0 * errors / unit,
                fmt=look.marker,
                ms=5,
                mfc=PAPER,
                color=look.colour,
                label=name,
            )
    top.legend(frameon=False, fontsize=FONT, labelcolor=INK)
    _logarithmic(top, "xy")
    _logarithmic(bottom, "x")
    _label(top, "", "variance of a user's mean")
    _label(bottom, "samples per user", "simulated / lemma")
    return figure


def sandwich(k: Any, p: float, var_p: float) -> Figure:
    """Return the variance of a user's mean between max(q/k, var_p) and its double."""
    k, q = np.asarray(k, dtype=np.float64), p * (1.0 - p)
    corner, larger = q / var_p, np.maximum(q / k, var_p)
    figure, (axes,) = _figure(height=3.9)
    axes.fill_between(k, larger, 2.0 * larger, color=BLUE, alpha=0.15, lw=0)
    _line(axes, k, user_variance(k, p, var_p), THEORY)
    _line(axes, k, q / k, COINS)
    _line(axes, k, np.full(k.shape, var_p), PEOPLE)
    axes.axvline(corner, color=GREY, lw=1.0)
    _logarithmic(axes, "xy")
    axes.set_ylim(var_p / 6.0, 3.0 * q)
    _note(axes, k[-1], var_p, "the variance", (0, 6))
    _note(axes, k[-1], var_p, "between users", (0, -6))
    _note(axes, 3.5 * corner, var_p / 3.5, "coin tosses, $q/k$", (8, 0))
    _note(axes, corner, 2.0 * q, f"$q/\\sigma_p^2$ = {corner:g}", (6, 0))
    _label(axes, "samples per user", "variance of a user's mean")
    return figure


def effective_sizes(k: Any, p: float, variances: Sequence[float]) -> Figure:
    """Return what k samples of one user are worth, for several spreads of rates."""
    k, q = np.asarray(k, dtype=np.float64), p * (1.0 - p)
    figure, (axes,) = _figure(height=3.9)
    for look, var_p in zip(LOOKS[: len(variances)], variances, strict=True):
        worth = q / user_variance(k, p, var_p)
        _line(axes, k, worth, look)
        cap = f"\nat most {q / var_p:,.4g}" if var_p else ""
        _note(axes, k[-1], worth[-1], f"spread {np.sqrt(var_p):g}{cap}", (6, 0))
    _logarithmic(axes, "xy")
    _label(axes, "samples the user holds", "samples they are worth")
    return figure


def size_profiles(profiles: Mapping[str, Any]) -> Figure:
    """Return users' sizes from the largest to the smallest, one panel per profile."""
    rows = -(-len(profiles) // 2)
    figure, panels = _figure(height=1.75 * rows, rows=rows, columns=2, share=True)
    for axes, (name, k) in zip(panels, profiles.items(), strict=False):
        sizes = np.sort(k)[::-1]
        rank = np.arange(1, len(sizes) + 1)
        axes.fill_between(rank, 1, sizes, step="mid", color=BLUE, alpha=0.15, lw=0)
        _line(axes, rank, sizes, THEORY, drawstyle="steps-mid")
        axes.set_title(name, fontsize=FONT, color=INK)
        _logarithmic(axes, "xy")
        x = "user, largest first" if axes in panels[-2:] else ""
        _label(axes, x, "samples" if axes in panels[::2] else "")
    for axes in panels[len(profiles) :]:
        axes.set_axis_off()
    return figure


def data_holders(shares: Mapping[str, tuple[float, float]], top: str) -> Figure:
    """Return who holds the data: shares of samples and of effective samples.

    `shares` maps a profile to two shares in [0, 1] held by the users named `top`.
    """
    figure, (axes,) = _figure(height=0.8 + 0.42 * len(shares))
    place = np.arange(len(shares))[::-1]
    samples, worth = 100.0 * np.array(list(shares.values())).T
    axes.hlines(place, worth, samples, color=GREY, lw=1.2)
    _points(axes, samples, place, THEORY, ms=9, label="samples")
    _points(axes, worth, place, SIMULATION, ms=5.5, label="effective samples")
    axes.set_yticks(place, list(shares))
    axes.set(xlim=(0, 100), ylim=(-0.6, len(shares) - 0.4))
    axes.legend(frameon=False, fontsize=FONT, labelcolor=INK, loc="lower right")
    _label(axes, f"per cent held by {top}", "size profile")
    return figure


def weighting_targets(caps: Any, targets: Mapping[str, Floats]) -> Figure:
    """Return what weights min(k, cap) estimate, for each named population."""
    figure, (axes,) = _figure(height=3.4)
    looks = LOOKS[: len(targets)]
    for look, (name, values) in zip(looks, targets.items(), strict=True):
        _line(axes, caps, values, look, marker=look.marker, ms=5)
        _note(axes, caps[-1], values[-1], name, (0, 8))
    _logarithmic(axes, "x")
    axes.margins(y=0.15)
    _label(
        axes, "weight of a user: her samples, at most this many", "what is estimated"
    )
    return figure


# --- the landing page ---------------------------------------------------------

OVERVIEW_TITLE = "Heterogeneous users, one private mean"
OVERVIEW_TEXT = (
    "Left: seven kinds of users hold from 1 to 21 zeros and ones each, in different "
    "proportions. Middle: users with more samples weigh more, but the largest weigh "
    "less than their share of the samples. Right: what is published is the weighted "
    "mean plus noise, and replacing one user hardly moves its law."
)


def overview() -> Figure:
    """Return the picture of the landing page: users, weights, one noisy number."""
    k = np.array([21, 13, 8, 5, 3, 2, 1])
    users = Users(k, np.array([5, 6, 2, 3, 1, 1, 0]), counts=np.full(len(k), 1000))
    variances = user_variance(k, p=0.35, var_p=0.02)
    weights, _ = optimal_weights(variances, np.ones(len(k)), 1.0, counts=users.counts)
    figure = Figure(figsize=(10.0, 4.3), dpi=DPI, facecolor="#FBFAF7")

    text = "in how much they hold and in how often it is a one"
    left = _panel(figure, 0.03, 0.39, "Users differ", text)
    rows = np.arange(len(k))[::-1]
    for size, ones, row in zip(k, users.successes, rows, strict=True):
        sample = np.arange(size)
        one = sample * ones % size < ones  # the ones, spread evenly
        for chosen, fill in ((one, BLUE), (~one, PAPER)):
            left.scatter(sample[chosen], np.full(chosen.sum(), row), 62, fill, ec=BLUE)
    left.set(xlim=(-0.4, 20.7), xticks=(), yticks=(), ylim=(-0.6, 6.6))
    left.set_xlabel("each row: 1,000 users; filled: 1, open: 0", loc="left")
    left.spines["bottom"].set_visible(False)

    text = "more data counts more,\nup to a point"
    middle = _panel(figure, 0.48, 0.2, "Weigh them", text)
    middle.barh(rows, weights * users.n, 0.6, color=VERMILLION)
    middle.barh(rows, k / np.mean(k), 0.6, color="none", ec=INK, ls=(0, (3, 2)))
    middle.set(xlim=(0, 2.9), xticks=(0, 1, 2), yticks=(), ylim=(-0.6, 6.6))
    middle.set_xlabel("weight (average user: 1)", loc="left")
    middle.text(1.05, 0.6, "dashed: her share\nof the samples", fontsize=12, color=INK)

    text = "that no single user\ncan move by much"
    right = _panel(figure, 0.74, 0.23, "Publish one number", text)
    centre = float(np.sum(users.counts * weights * users.means))
    scale = float(np.max(weights))  # of the noise, at epsilon = 1 and width 1
    values = centre + scale * np.linspace(-6.0, 7.0, 261)
    for look, location in ((THEORY, centre), (SIMULATION, centre + scale)):
        _line(right, values, np.exp(-np.abs(values - location) / scale), look)
    right.set(ylim=(0, 1.08), xticks=(centre,), xticklabels=[f"{centre:.2f}"])
    right.set(yticks=(), xlabel="published mean")
    right.text(values[0], 0.8, "as it is", fontsize=12, color=INK)
    note = "with one\nuser replaced"
    right.text(centre + 1.7 * scale, 0.72, note, fontsize=12, color=INK)

    for axes in (left, middle, right):
        axes.xaxis.label.set(fontsize=12, color=INK)
    return figure


def write_svg(figure: Figure, path: str | Path, title: str, text: str) -> None:
    """Write a figure as SVG that is the same on every run, with a title and a text."""
    stream = io.StringIO()
    with matplotlib.rc_context({"svg.hashsalt": "hetlit", "svg.fonttype": "none"}):
        facts = {"Date": None, "Creator": "hetlit", "Title": title}
        figure.savefig(stream, format="svg", metadata=facts)
    heading = f"<title>{html.escape(title)}</title>"
    described = f"{heading}\n <desc>{html.escape(text)}</desc>"
    lines = stream.getvalue().replace(heading, described, 1).splitlines()
    content = "\n".join(line.rstrip() for line in lines) + "\n"
    Path(path).write_text(content, encoding="utf-8")


# --- what every figure shares -------------------------------------------------


def _figure(
    *,
    height: float,
    rows: int = 1,
    columns: int = 1,
    height_ratios: Sequence[float] | None = None,
    share: bool = False,
) -> tuple[Figure, list[Axes]]:
    figure = Figure((WIDTH, height), DPI, facecolor=PAPER, layout="constrained")
    panels = figure.subplots(
        rows,
        columns,
        squeeze=False,
        sharex=share or rows > 1,
        sharey=share,
        height_ratios=height_ratios,
    )
    for axes in panels.flat:
        axes.set_facecolor(PAPER)
        axes.spines[["top", "right"]].set_visible(False)
        axes.spines[["left", "bottom"]].set_color(GREY)
        axes.tick_params(which="both", labelsize=FONT - 1, labelcolor=INK, color=GREY)
        axes.grid(color=GREY, alpha=0.18, lw=0.6)
        axes.set_axisbelow(True)
    return figure, list(panels.flat)


def _panel(figure: Figure, start: float, width: float, heading: str, text: str) -> Axes:
    axes = figure.add_axes((start, 0.17, width, 0.56), facecolor="none")
    axes.spines[["top", "right", "left"]].set_visible(False)
    axes.spines["bottom"].set_color(GREY)
    axes.tick_params(labelsize=12, labelcolor=INK, color=GREY)
    figure.text(start, 0.91, heading, fontsize=15, weight="bold", color=INK)
    figure.text(start, 0.87, text, fontsize=12, color=INK, va="top")
    return axes


def _line(axes: Axes, x: Any, y: Any, look: Look, **more: Any) -> None:
    axes.plot(x, y, color=look.colour, ls=look.line, lw=2.0, **more)


def _points(axes: Axes, x: Any, y: Any, look: Look, **more: Any) -> None:
    axes.plot(x, y, ls="", color=look.colour, marker=look.marker, **more)


def _label(axes: Axes, x: str, y: str) -> None:
    axes.set_xlabel(x, fontsize=FONT, color=INK)
    axes.set_ylabel(y, fontsize=FONT, color=INK)


def _logarithmic(axes: Axes, which: str) -> None:
    for name in which:
        getattr(axes, f"set_{name}scale")("log")
        axis = getattr(axes, f"{name}axis")
        axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,g}"))
        axis.set_minor_formatter(NullFormatter())


def _note(axes: Axes, x: float, y: float, text: str, by: tuple[float, float]) -> None:
    """Write `text` beside the point (x, y): above or below it, or to its right."""
    right, up = by
    axes.annotate(
        text,
        (x, y),
        by,
        textcoords="offset points",
        ha="left" if right else "right",
        va="center" if not up else "bottom" if up > 0 else "top",
        fontsize=FONT,
        color=INK,
        bbox={"boxstyle": "square,pad=0.1", "fc": PAPER, "ec": "none", "alpha": 0.8},
    )


if __name__ == "__main__":
    write_svg(overview(), sys.argv[1], OVERVIEW_TITLE, OVERVIEW_TEXT)
