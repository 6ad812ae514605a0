"""What every figure shares: its size, axes, lines and notes.

How series look is in `hetlit.teaching.looks`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, NullFormatter

from hetlit.teaching.looks import GREY, INK, PAPER, Look

WIDTH, DPI, FONT = 6.0, 150, 10.5


def new_figure(
    *,
    height: float,
    rows: int = 1,
    columns: int = 1,
    height_ratios: Sequence[float] | None = None,
    share: bool = False,
) -> tuple[Figure, list[Axes]]:
    """Return a figure and its panels, row by row."""
    return panels_of(
        height,
        rows,
        columns,
        constrained=True,
        sharex=share or rows > 1,
        sharey=share,
        height_ratios=height_ratios,
    )


def panels_of(
    height: float,
    rows: int = 1,
    columns: int = 1,
    *,
    constrained: bool = False,
    **more: Any,
) -> tuple[Figure, list[Axes]]:
    """Return a figure and its panels, row by row, for `subplots` with these options."""
    figure = Figure((WIDTH, height), DPI, facecolor=PAPER)
    if constrained:
        figure.set_layout_engine("constrained")
    panels = figure.subplots(rows, columns, squeeze=False, **more)
    for axes in panels.flat:
        axes.set_facecolor(PAPER)
        axes.spines[["top", "right"]].set_visible(False)
        axes.spines[["left", "bottom"]].set_color(GREY)
        axes.tick_params(which="both", labelsize=FONT - 1, labelcolor=INK, color=GREY)
        axes.grid(color=GREY, alpha=0.18, lw=0.6)
        axes.set_axisbelow(True)
    return figure, list(panels.flat)


def draw_line(axes: Axes, x: Any, y: Any, look: Look, **more: Any) -> None:
    """Draw a line."""
    axes.plot(x, y, color=look.colour, ls=look.line, lw=2.0, **more)


def draw_points(axes: Axes, x: Any, y: Any, look: Look, **more: Any) -> None:
    """Draw markers."""
    axes.plot(x, y, ls="", color=look.colour, marker=look.marker, **more)


def draw_error_bars(
    axes: Axes, x: Any, values: Any, errors: Any, look: Look, **more: Any
) -> None:
    """Draw simulated values, with bars of two standard errors either way."""
    bars = 2.0 * np.asarray(errors)
    style: dict[str, Any] = {"ms": 5, "mfc": PAPER} | more
    axes.errorbar(x, values, bars, fmt=look.marker, color=look.colour, **style)


def draw_legend(where: Axes | Figure, *series: Any, **more: Any) -> None:
    """Name the series of a panel or of a whole figure."""
    style: dict[str, Any] = {"fontsize": FONT, "labelcolor": INK} | more
    where.legend(*series, frameon=False, **style)


def label_axes(axes: Axes, x: str, y: str) -> None:
    """Name both axes."""
    axes.set_xlabel(x, fontsize=FONT, color=INK)
    axes.set_ylabel(y, fontsize=FONT, color=INK)


def logarithmic(axes: Axes, which: str) -> None:
    """Make "x", "y" or both ("xy") logarithmic, with plain numbers."""
    for name in which:
        getattr(axes, f"set_{name}scale")("log")
        axis = getattr(axes, f"{name}axis")
        axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,g}"))
        axis.set_minor_formatter(NullFormatter())


def note(axes: Axes, x: float, y: float, text: str, by: tuple[float, float]) -> None:
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
