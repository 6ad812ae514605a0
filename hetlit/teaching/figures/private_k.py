"""Figures of the chapter "Private k"."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
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
    GREEN,
    GREY,
    INK,
    LOOKS,
    PAPER,
    PEOPLE,
    PURPLE,
    REFERENCE,
    SIMULATION,
    THEORY,
    VERMILLION,
    Look,
)

# Kinds of steps in a ledger, in the order in which they are drawn: which words of a
# step's name mean this kind, its colour and its hatch.
KINDS: dict[str, tuple[tuple[str, ...], str, str]] = {
    "first mean or anchor": (("first mean", "anchor"), BLUE, ""),
    "spread": (("spread", "variance"), GREEN, "//"),
    "sizes": (("cap", "order statistic", "histogram"), PURPLE, "\\\\"),
    "total weight": (("total weight",), GREY, "xx"),
    "test": (("test",), INK, ".."),
    "release": (("release", "total offset", "deviations", "plain"), VERMILLION, ""),
}
COHORT_LOOKS = (SIMULATION, THEORY, COINS)


def _centred(axes: Axes, x: float, y: float, text: str, up: float) -> None:
    """Write `text` above (or below) the point (x, y), or on it."""
    note(axes, x, y, text, (0, up))
    axes.texts[-1].set_horizontalalignment("center")


def weight_shares(
    before: Sequence[int], after: Sequence[int], shares: tuple[Floats, Floats]
) -> Figure:
    """Return every user's share of the weight before and after one size changes.

    Parameters
    ----------
    before, after : the users' sizes
    shares : two arrays of shape (users,), weights that add up to 1
    """
    place = np.arange(len(before))[::-1]
    old, new = (100.0 * np.asarray(values) for values in shares)
    figure, (axes,) = new_figure(height=0.9 + 0.34 * len(before))
    axes.hlines(place, old, new, color=GREY, lw=1.2)
    draw_points(axes, old, place, THEORY, ms=8, label="before")
    draw_points(axes, new, place, SIMULATION, ms=6, label="after")
    names = [
        f"{one:,}" if one == two else f"{one:,} → {two:,}"
        for one, two in zip(before, after, strict=True)
    ]
    axes.set_yticks(place, names)
    axes.set_xlim(-3, 103)
    draw_legend(axes, loc="lower right")
    label_axes(axes, "per cent of the total weight", "samples of the user")
    return figure


def scale_ratio(
    offsets: Floats, densities: tuple[Floats, Floats], epsilon: float
) -> Figure:
    """Return two densities of one output, and the logarithm of their ratio.

    Parameters
    ----------
    offsets : array of shape (points,), outputs minus the noiseless value
    densities : two arrays of shape (points,), before and after the change
    epsilon : what the logarithm should not exceed
    """
    figure, (top, bottom) = new_figure(height=4.4, rows=2, height_ratios=(4, 5))
    before, after = densities
    draw_line(top, offsets, before, THEORY, label="before")
    draw_line(top, offsets, after, SIMULATION, label="after")
    draw_legend(top)
    loss = np.log(after / before)
    bottom.axhspan(-epsilon, epsilon, color=GREEN, alpha=0.15, lw=0)
    draw_line(bottom, offsets, loss, REFERENCE)
    note(bottom, offsets[0], 0.0, "within epsilon", (0.1, 0))
    label_axes(top, "", "density")
    label_axes(bottom, "output minus the noiseless value", "log of after / before")
    return figure


def order_statistic_laws(laws: Mapping[int, tuple[Any, Floats]]) -> Figure:
    """Return for each rank the law of the private order statistic.

    `laws` maps a rank to (utilities, probabilities), arrays of shape (k_max,).  The
    number above a bar is how many users would have to change.
    """
    figure, panels = new_figure(height=2.9, columns=len(laws), share=True)
    for axes, (rank, (utilities, chances)) in zip(panels, laws.items(), strict=True):
        sizes = np.arange(1, len(chances) + 1)
        best = np.asarray(utilities) == 0
        axes.bar(sizes, chances, 0.7, color=np.where(best, VERMILLION, BLUE))
        for size, utility, chance in zip(sizes, utilities, chances, strict=True):
            axes.annotate(
                f"{-utility}",
                (size, chance),
                (0, 2),
                textcoords="offset points",
                ha="center",
                fontsize=FONT - 1,
                color=INK,
            )
        axes.set_xticks(sizes)
        axes.set_title(f"rank {rank}", fontsize=FONT, color=INK)
        axes.margins(y=0.14)
        label_axes(axes, "size", "probability" if axes is panels[0] else "")
    return figure


def rank_failure(
    slack: Any, exact: Floats, bounds: Mapping[str, Floats], beta: float
) -> Figure:
    """Return the chance of a rank error above each slack, and bounds on it.

    All arrays have shape (slacks,); bounds above 1 are cut off.
    """
    figure, (axes,) = new_figure(height=3.6)
    looks = (SIMULATION, COINS)
    axes.axhline(beta, color=GREY, lw=1.0)
    for look, (name, bound) in zip(looks, bounds.items(), strict=True):
        shown = np.asarray(bound) <= 1.0
        draw_line(axes, np.asarray(slack)[shown], np.asarray(bound)[shown], look)
        place = int(np.flatnonzero(shown)[0])
        _centred(axes, slack[place], 1.0, name, 6)
    draw_line(axes, slack, exact, THEORY, marker=THEORY.marker, ms=4)
    logarithmic(axes, "y")
    axes.set_ylim(float(np.min(exact)) / 3.0, 6.0)
    note(axes, slack[0], beta, f"beta = {beta:g}", (0.1, 6))
    middle = len(exact) - len(exact) // 6
    note(axes, slack[middle], exact[middle], "exact", (6, 4))
    label_axes(axes, "error of the rank", "probability of that much or more")
    return figure


def contributions(k: Any, weights: Floats, above: Floats, below: Floats) -> Figure:
    """Return what one user of each size can add to the two sums.

    All arrays have shape (sizes,): a user adds `weights` to N, and to U anything from
    -weights * below to weights * above.
    """
    k = np.asarray(k)
    high, low = weights * above, -weights * below
    figure, (top, bottom) = new_figure(height=4.6, rows=2, height_ratios=(2, 3))
    draw_line(top, k, weights, THEORY)
    for axes, ends in ((top, (weights.min(), weights.max())), (bottom, None)):
        for end in ends or (low.min(), high.max()):
            axes.axhline(float(end), color=INK, ls=REFERENCE.line, lw=1.2)
    bottom.fill_between(k, low, high, color=BLUE, alpha=0.15, lw=0)
    draw_line(bottom, k, high, THEORY)
    draw_line(bottom, k, low, SIMULATION)
    logarithmic(bottom, "x")
    top.margins(y=0.2)
    bottom.margins(y=0.15)
    text = "sensitivity: from line to line"
    note(top, k[0], weights.max(), text, (0.1, -5))
    note(bottom, k[0], high.max(), text, (0.1, -5))
    label_axes(top, "", "added to N")
    label_axes(bottom, "samples of the user (log scale)", "added to U")
    return figure


def sensitivity_by_distance(
    distances: Any, bounds: Floats, proposals: Mapping[str, float], needed: float
) -> Figure:
    """Return the certified sensitivity against the number of replaced users.

    Parameters
    ----------
    distances : array of shape (points,)
    bounds : array of shape (points,), the bound at each distance
    proposals : named levels
    needed : a distance that passes the test almost surely
    """
    figure, (axes,) = new_figure(height=3.9)
    axes.axvline(needed, color=GREY, lw=1.0)
    draw_line(axes, distances, bounds, THEORY)
    logarithmic(axes, "xy")
    looks = (SIMULATION, COINS, PEOPLE)
    lowest = min(proposals.values())
    for look, (name, level) in zip(looks, proposals.items(), strict=True):
        axes.axhline(level, color=look.colour, ls=look.line, lw=1.8)
        note(axes, distances[0], level, name, (0.1, -4 if level == lowest else 4))
    low, high = lowest / 1.6, 1.6 * float(np.max(bounds))
    axes.set_ylim(low, high)
    every = [m * 10.0**power for power in range(-8, 1) for m in (1, 2, 5)]
    axes.set_yticks([tick for tick in every if low < tick < high])
    axes.tick_params(axis="y", which="minor", left=False)
    note(axes, needed, high / 1.1, "passes\nalmost surely", (5, -1))
    label_axes(axes, "users replaced (log scale)", "how far one more moves the mean")
    return figure


def pass_probabilities(
    distances: Any, chances: Floats, bar: float, delta: float
) -> Figure:
    """Return the chance that the test passes, on a scale that shows delta."""
    figure, (axes,) = new_figure(height=3.4)
    axes.axvline(bar, color=GREY, lw=1.0)
    draw_line(axes, distances, chances, THEORY, marker=THEORY.marker, ms=4)
    logarithmic(axes, "y")
    axes.axhline(delta, color=INK, ls=REFERENCE.line, lw=1.2)
    note(axes, distances[-1], delta, f"delta = {delta:g}", (0, 5))
    axes.set_ylim(float(np.min(chances)) / 8.0, 3.0)
    note(axes, bar, 0.02, "the bar", (6, 0))
    note(axes, distances[0], chances[0], "the proposal fails here", (2, -9))
    label_axes(axes, "distance that was measured", "probability to pass")
    return figure


def rank_cohorts(
    tables: Mapping[str, Sequence[int]],
    cohorts: Mapping[str, Sequence[Sequence[int]]],
    names: Sequence[str],
) -> Figure:
    """Return who is in which cohort, in the order of rank, one strip per table.

    Parameters
    ----------
    tables : for each table the users' sizes, by user
    cohorts : for each table its cohorts, lists of users in the order of rank
    names : of the cohorts

    Users whose cohort is not the same in all tables are outlined.
    """
    where = [
        {user: number for number, group in enumerate(groups) for user in group}
        for groups in cohorts.values()
    ]
    moved = {user for user in where[0] if len({place[user] for place in where}) > 1}
    largest = max(max(k) for k in tables.values())
    figure, panels = new_figure(height=1.35 * len(tables) + 0.75, rows=len(tables))
    for axes, (name, k) in zip(panels, tables.items(), strict=True):
        rank = 0
        for look, label, group in zip(COHORT_LOOKS, names, cohorts[name], strict=True):
            for user in group:
                rank += 1
                axes.bar(
                    rank,
                    k[user],
                    0.8,
                    color=look.colour,
                    alpha=0.9 if user in moved else 0.35,
                    ec=INK if user in moved else "none",
                    lw=1.8,
                )
                if user in moved:
                    _centred(axes, rank, k[user], f"{user}", 2)
            if axes is panels[0]:
                middle = rank - (len(group) - 1) / 2.0
                _centred(axes, middle, 1.35 * largest, label, 0)
            if rank < len(k):
                axes.axvline(rank + 0.5, color=INK, lw=1.2)
        axes.set_ylim(0, 1.5 * largest)
        axes.set_xticks([1, *range(5, len(k) + 1, 5)])
        axes.set_title(name, fontsize=FONT, color=INK, loc="left")
        label_axes(axes, "rank" if axes is panels[-1] else "", "samples")
    return figure


def loss_parts(parts: Mapping[str, float], marks: Mapping[str, float]) -> Figure:
    """Return how a loss adds up from its parts, one below the other, and marks."""
    figure, (axes,) = new_figure(height=1.2 + 0.36 * len(parts))
    place = np.arange(len(parts))[::-1]
    losses = np.array(list(parts.values()))
    ends = np.cumsum(losses)
    axes.barh(place, losses, 0.6, ends - losses, color=BLUE)
    for height, end in zip(place, ends, strict=True):
        note(axes, end, float(height), f"{end:.3g}", (5, 0))
    axes.vlines(ends[:-1], place[1:] - 0.3, place[:-1] + 0.3, color=GREY, lw=0.8)
    for name, mark in marks.items():
        axes.axvline(mark, color=INK, ls=REFERENCE.line, lw=1.4)
        _centred(axes, mark, len(parts) - 0.2, name, 0)
    axes.set_yticks(place, list(parts))
    axes.set_ylim(-0.6, len(parts) + 0.2)
    axes.set_xlim(0, 1.12 * max(marks.values()))
    axes.grid(visible=False, axis="y")
    label_axes(axes, "loss added up, in units of epsilon", "step")
    return figure


def claimed_and_found(losses: Mapping[str, tuple[float, float]]) -> Figure:
    """Return for each step the loss that is claimed and one that was found."""
    place = np.arange(len(losses))[::-1]
    claimed, found = np.array(list(losses.values())).T
    figure, (axes,) = new_figure(height=1.0 + 0.45 * len(losses))
    axes.hlines(place, claimed, found, color=GREY, lw=1.2)
    draw_points(axes, claimed, place, THEORY, ms=8, label="claimed")
    draw_points(axes, found, place, SIMULATION, ms=6.5, label="found")
    for height, loss in zip(place, found, strict=True):
        note(axes, loss, float(height), f"{loss:.3g}", (7, 0))
    logarithmic(axes, "x")
    axes.set_yticks(place, list(losses))
    axes.set(xlim=(0.7, 2.2 * found.max()), ylim=(-0.6, len(losses) - 0.4))
    axes.set_xticks([1, 3, 10, 30])
    draw_legend(axes, loc="upper right")
    label_axes(axes, "loss, in units of epsilon (log scale)", "example")
    return figure


def kind_of_step(name: str) -> str:
    """Return which of KINDS a step of a ledger is."""
    for kind, (words, _, _) in KINDS.items():
        if any(word in name for word in words):
            return kind
    raise ValueError(f"step {name!r} is of no kind in {list(KINDS)}")


def ledgers(releases: Mapping[str, Ledger]) -> Figure:
    """Return what each cohort of each release spends, step by step."""
    rows = [
        (f"{name}: {cohort.name}" if len(ledger.cohorts) > 1 else name, ledger, cohort)
        for name, ledger in releases.items()
        for cohort in ledger.cohorts
    ]
    figure, (axes,) = new_figure(height=1.5 + 0.36 * len(rows))
    place = np.arange(len(rows))[::-1]
    seen: set[str] = set()
    for height, (_, ledger, cohort) in zip(place, rows, strict=True):
        start = 0.0
        for step in ledger.steps:
            if cohort.name not in step.cohorts:
                continue
            kind = kind_of_step(step.name)
            _, colour, hatch = KINDS[kind]
            axes.barh(
                height,
                step.epsilon,
                0.62,
                start,
                color=colour,
                hatch=hatch,
                ec=PAPER,
                lw=0.8,
                label=None if kind in seen else kind,
            )
            seen.add(kind)
            start += step.epsilon
    axes.set_yticks(place, [name for name, _, _ in rows])
    axes.set_ylim(-0.6, len(rows) - 0.4)
    axes.grid(visible=False, axis="y")
    handles, labels = axes.get_legend_handles_labels()
    order = sorted(range(len(labels)), key=lambda i: list(KINDS).index(labels[i]))
    draw_legend(
        figure,
        [handles[i] for i in order],
        [labels[i] for i in order],
        loc="outside upper center",
        ncols=3,
    )
    label_axes(axes, "epsilon spent on a user", "release: cohort")
    return figure


def size_histogram(
    starts: Any, exact: Floats, noisy: Floats, clear: float, weights: Floats
) -> Figure:
    """Return the counts of users by size, exact and noisy, and the weights chosen.

    Parameters
    ----------
    starts : array of shape (bins,), the smallest size of each bin
    exact, noisy : arrays of shape (bins,), users per bin
    clear : noisy counts below this are not believed
    weights : array of shape (bins,), relative weight of a user of the smallest size
    """
    starts = np.asarray(starts)
    figure, (top, bottom) = new_figure(height=4.6, rows=2, height_ratios=(3, 2))
    top.bar(
        starts, exact, 0.75 * starts, align="edge", color=BLUE, alpha=0.3, label="exact"
    )
    believed = noisy > clear
    middle = 1.37 * starts
    draw_points(top, middle[believed], noisy[believed], SIMULATION, ms=6, label="noisy")
    top.axhline(clear, color=INK, ls=REFERENCE.line, lw=1.2)
    note(top, starts[0], clear, "believed above this line", (0.1, -5))
    logarithmic(top, "xy")
    top.set_ylim(max(1.0, clear / 8.0), 3.0 * float(exact.max()))
    draw_legend(top)
    draw_line(bottom, middle, weights, THEORY, marker=THEORY.marker, ms=5)
    logarithmic(bottom, "xy")
    label_axes(top, "", "users")
    label_axes(bottom, "samples of the user (log scale)", "relative weight")
    return figure


def _by_n(
    axes: Axes, n: Any, values: Floats, errors: Floats, look: Look, shift: float
) -> None:
    draw_error_bars(axes, np.asarray(n) * shift, values, errors, look, elinewidth=1.4)


def accuracy(
    n: Any,
    simulated: Mapping[str, tuple[Floats, Floats]],
    theory: Mapping[str, Floats],
) -> Figure:
    """Return root mean squared errors against the number of users.

    Parameters
    ----------
    n : array of shape (points,)
    simulated : name to (mean squared errors, standard errors), shape (points,)
    theory : name to predicted mean squared errors, drawn as a line

    Bars are two standard errors.
    """
    n = np.asarray(n)
    figure, (axes,) = new_figure(height=4.6)
    for number, (name, (values, errors)) in enumerate(simulated.items()):
        look = LOOKS[number]
        shift = 1.06 ** (number - (len(simulated) - 1) / 2)
        root = np.sqrt(values)
        _by_n(axes, n, root, errors / (2.0 * root), look, shift)
        if name in theory:
            draw_line(axes, n, np.sqrt(theory[name]), look)
        else:
            axes.plot(n * shift, root, color=look.colour, ls=look.line, lw=0.8)
    logarithmic(axes, "xy")
    ends = {name: float(np.sqrt(values[-1])) for name, (values, _) in simulated.items()}
    height = 0.0
    for name in sorted(ends, key=lambda name: ends[name]):
        # At least a line apart.
        height = max(ends[name], 1.3 * height)
        note(axes, n[-1] * 1.2, height, name, (9, 0))
    axes.set_xticks(n)
    axes.minorticks_off()
    axes.set_xlim(n[0] / 1.3, n[-1] * 4.5)
    label_axes(axes, "users", "root mean squared error")
    return figure


def price(n: Any, ratios: Floats, errors: Floats) -> Figure:
    """Return the error with private sizes over that with public sizes, by n.

    All arrays have shape (points,); bars are two standard errors.
    """
    figure, (axes,) = new_figure(height=3.3)
    axes.axhline(1.0, color=INK, ls=REFERENCE.line, lw=1.2)
    _by_n(axes, n, np.asarray(ratios), np.asarray(errors), THEORY, 1.0)
    logarithmic(axes, "x")
    axes.set_xticks(n)
    axes.minorticks_off()
    axes.set_ylim(0.0, 1.1 * float(np.max(ratios + 2.0 * errors)))
    note(axes, n[-1], 1.0, "hiding sizes would be free", (0, -6))
    label_axes(axes, "users", "mean squared error,\nprivate / public sizes")
    return figure
