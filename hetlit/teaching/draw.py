"""Pictures of the explorers, drawn with matplotlib.

`draw` makes a figure of a picture.  `MovingFigure` does the same for one picture after
the other: only marks differ between them, so all the rest is drawn once.
"""

from __future__ import annotations

import io
from itertools import chain
from typing import Any

from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.axis import Axis as AxisOfFigure
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.image import imsave
from matplotlib.ticker import NullLocator

from hetlit.teaching.explorers.picture import (
    Axis,
    Band,
    Line,
    Mark,
    Picture,
    coordinates,
)
from hetlit.teaching.figures.style import (
    FONT,
    draw_legend,
    draw_line,
    draw_points,
    label_axes,
    panels_of,
)
from hetlit.teaching.looks import NAMED, PAPER

# Inches around and between panels: no layout has to be solved for every frame.
LEFT, RIGHT, BOTTOM, GAP, PANEL, LEGEND_ROW = 0.85, 0.4, 0.55, 0.7, 2.4, 0.24


def draw(picture: Picture) -> Figure:
    """Return the figure of a picture."""
    count = len(picture.panels)
    names = legend_names(picture)
    rows = -(-len(names) // 2)
    top = 0.15 + LEGEND_ROW * rows
    height = top + count * PANEL + (count - 1) * GAP + BOTTOM
    figure, panels = panels_of(height, rows=count)
    figure.subplots_adjust(
        left=LEFT / figure.get_figwidth(),
        right=1.0 - RIGHT / figure.get_figwidth(),
        bottom=BOTTOM / height,
        top=1.0 - top / height,
        hspace=GAP / PANEL,
    )
    for axes, panel in zip(panels, picture.panels, strict=True):
        _set_axis(axes, "x", panel.x)
        _set_axis(axes, "y", panel.y)
        label_axes(axes, panel.x.label, panel.y.label)
        for mark in panel.marks:
            _draw_mark(axes, mark)
    if names:
        handles: dict[str, Artist] = {}
        for axes in panels:
            for handle, label in zip(*axes.get_legend_handles_labels(), strict=True):
                handles.setdefault(label, handle)
        draw_legend(
            figure,
            [handles[name] for name in names],
            names,
            loc="upper left",
            bbox_to_anchor=(LEFT / figure.get_figwidth(), 1.0),
            ncols=2,
            borderpad=0.2,
            fontsize=FONT - 0.5,
        )
    return figure


class MovingFigure:
    """The figure of a picture whose marks move, as a PNG for each of its frames."""

    def __init__(self, picture: Picture, dpi: float) -> None:
        self.figure = draw(picture)
        self.figure.set_dpi(dpi)
        self.canvas = FigureCanvasAgg(self.figure)
        for axes in self.figure.axes:
            _remove_marks(axes)
        self.canvas.draw()
        self.empty = self.canvas.copy_from_bbox(self.figure.bbox)

    def png(self, picture: Picture) -> bytes:
        """Return a frame, the same to the pixel as the figure of its picture."""
        self.canvas.restore_region(self.empty)
        for axes, panel in zip(self.figure.axes, picture.panels, strict=True):
            _remove_marks(axes)
            for mark in panel.marks:
                axes.draw_artist(_draw_mark(axes, mark))
        file = io.BytesIO()
        # Little compression: it is sent once, to a browser that is near.
        fast = {"compress_level": 1}
        imsave(file, self.canvas.buffer_rgba(), format="png", pil_kwargs=fast)
        return file.getvalue()


def legend_names(picture: Picture) -> list[str]:
    """Return the names of all marks, each once, in the order of drawing."""
    marks = chain(*(panel.marks for panel in picture.panels))
    return list(dict.fromkeys(mark.name for mark in marks if mark.name))


def _set_axis(axes: Axes, which: str, axis: Axis) -> None:
    getattr(axes, f"set_{which}scale")("log" if axis.log else "linear")
    getattr(axes, f"set_{which}lim")(axis.low, axis.high)
    shown: AxisOfFigure = getattr(axes, f"{which}axis")
    shown.set_ticks(axis.ticks, axis.texts)
    shown.set_minor_locator(NullLocator())


def _remove_marks(axes: Axes) -> None:
    for artist in [*axes.lines, *axes.collections]:
        artist.remove()


def _draw_mark(axes: Axes, mark: Mark) -> Artist:
    look = NAMED[mark.look]
    at: dict[str, Any] = coordinates(mark)
    # Above the axes and what belongs to them, in the order of the picture.
    style: dict[str, Any] = {"label": mark.name or None, "zorder": 5}
    if isinstance(mark, Band):
        style |= {"color": look.colour, "alpha": 0.18, "lw": 0}
        return axes.fill_between(at["x"], at["low"], at["high"], **style)
    if isinstance(mark, Line):
        draw_line(axes, at["x"], at["y"], look, **style)
    else:
        style |= {"ms": 4.5 if mark.small else 7, "mec": PAPER, "mew": 0.6}
        draw_points(axes, at["x"], at["y"], look, clip_on=False, **style)
    return axes.lines[-1]
