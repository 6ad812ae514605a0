"""What figures share: panels row by row, plain numbers on log axes, honest bars."""

from typing import Any

import pytest

from hetlit.teaching.figures.style import (
    DPI,
    WIDTH,
    draw_error_bars,
    draw_line,
    logarithmic,
    new_figure,
    note,
    panels_of,
)
from hetlit.teaching.looks import LOOKS, SIMULATION


def test_panels_come_row_by_row_in_a_figure_of_the_width_of_a_page():
    figure, panels = panels_of(4.0, 2, 3)
    assert (*figure.get_size_inches(), figure.dpi) == (WIDTH, 4.0, DPI)
    places: list[Any] = [panel.get_subplotspec() for panel in panels]
    rows_and_columns = [(at.rowspan.start, at.colspan.start) for at in places]
    assert rows_and_columns == [(0, 0), (0, 1), (0, 2), (1, 0), (1, 1), (1, 2)]
    for panel in panels:
        assert not panel.spines["top"].get_visible()
        assert not panel.spines["right"].get_visible()


@pytest.mark.parametrize(
    ("arguments", "x", "y"),
    [
        ({"rows": 2}, True, False),
        ({"columns": 2}, False, False),
        ({"columns": 2, "share": True}, True, True),
    ],
)
def test_panels_above_each_other_share_x_and_others_only_if_asked(arguments, x, y):
    _, (one, other) = new_figure(height=3.0, **arguments)
    assert one.get_shared_x_axes().joined(one, other) is x
    assert one.get_shared_y_axes().joined(one, other) is y


@pytest.mark.parametrize("which", ["x", "y", "xy"])
def test_log_axes_have_plain_numbers_and_others_stay(which):
    _, (axes,) = panels_of(3.0)
    logarithmic(axes, which)
    for name, axis in (("x", axes.xaxis), ("y", axes.yaxis)):
        assert axis.get_scale() == ("log" if name in which else "linear")
        if name in which:
            written = [axis.get_major_formatter()(v, None) for v in (0.01, 1, 20_000)]
            assert written == ["0.01", "1", "20,000"]
            assert axis.get_minor_formatter()(2.0, None) == ""


def test_error_bars_reach_two_standard_errors_either_way():
    _, (axes,) = panels_of(3.0)
    draw_error_bars(axes, [1.0, 2.0], [0.5, 0.25], [0.125, 0.0625], SIMULATION)
    (container,) = axes.containers
    marks, _, (bars,) = container
    assert marks.get_marker() == SIMULATION.marker
    assert marks.get_xydata().tolist() == [[1.0, 0.5], [2.0, 0.25]]
    ends = [segment.tolist() for segment in bars.get_segments()]
    assert ends == [[[1.0, 0.25], [1.0, 0.75]], [[2.0, 0.125], [2.0, 0.375]]]


@pytest.mark.parametrize("look", LOOKS)
def test_a_line_has_the_colour_of_its_look_and_dashes_if_it_has(look):
    _, (axes,) = panels_of(3.0)
    draw_line(axes, [0, 1], [1, 0], look)
    (drawn,) = axes.lines
    assert drawn.get_color() == look.colour
    assert drawn.is_dashed() == (look.line != "-")


@pytest.mark.parametrize(
    ("by", "placed"),
    [
        ((0, 6), ("right", "bottom")),
        ((0, -6), ("right", "top")),
        ((6, 0), ("left", "center")),
    ],
)
def test_a_note_keeps_off_its_point(by, placed):
    _, (axes,) = panels_of(3.0)
    note(axes, 0.5, 0.5, "here", by)
    (text,) = axes.texts
    assert (text.get_horizontalalignment(), text.get_verticalalignment()) == placed
