"""The figures of the explorers show what their pictures say."""

import io

import matplotlib.pyplot as plt
import numpy as np
import pytest

from hetlit.teaching.draw import MovingFigure, draw, legend_names
from hetlit.teaching.explorers import (
    EXPLORERS,
    Axis,
    Band,
    Line,
    Panel,
    Picture,
    Points,
)
from tests.explorers import some_points
from tests.figures import EveryFigure, lines, painted, panels, same

FIGURES = {
    name: lambda explorer=explorer: draw(explorer.at())
    for name, explorer in EXPLORERS.items()
}


class TestEveryFigure(EveryFigure):
    figures = FIGURES


def one_of_each(*marks):
    x, y = Axis("across", 0, 10), Axis("up", 1, 1000, log=True)
    return Picture((Panel(x, y, marks),), reading="One.")


@pytest.mark.parametrize("name", EXPLORERS)
def test_lines_and_points_are_where_the_picture_says(name):
    picture = EXPLORERS[name].at()
    figure = draw(picture)
    for number, panel in enumerate(picture.panels):
        drawn = iter(lines(figure, number))
        for mark in panel.marks:
            if not isinstance(mark, Band):
                assert same(next(drawn), mark.x, mark.y)
        assert next(drawn, None) is None
        axes = figure.axes[number]
        assert axes.get_xlim() == (panel.x.low, panel.x.high)
        assert axes.get_ylim() == (panel.y.low, panel.y.high)
        assert axes.get_xscale() == ("log" if panel.x.log else "linear")


@pytest.mark.parametrize("name", EXPLORERS)
def test_the_legend_stays_above_the_panels(name):
    figure = draw(EXPLORERS[name].at())
    canvas = painted(figure)
    box = figure.legends[0].get_window_extent(canvas.get_renderer())
    top = figure.axes[0].get_window_extent(canvas.get_renderer())
    assert box.y0 >= top.y1 - 1
    assert box.x1 <= figure.bbox.x1


@pytest.mark.slow
@pytest.mark.parametrize("name", EXPLORERS)
def test_a_moving_figure_shows_each_picture_to_the_pixel(name):
    explorer = EXPLORERS[name]
    moving = MovingFigure(explorer.at(), dpi=100)
    points = some_points(explorer, 2, np.random.default_rng(6))
    for point in [*points[:1], *points[-3:], explorer.defaults]:
        picture = explorer.at(**point)
        figure = draw(picture)
        figure.set_dpi(100)
        shown = plt.imread(io.BytesIO(moving.png(picture)))
        fresh = np.asarray(painted(figure).buffer_rgba()) / 255
        assert np.array_equal(shown.astype(np.float32), fresh.astype(np.float32))


def test_a_band_is_shaded_between_its_edges():
    band = Band([0, 10], [2, 3], [20, 30], "green", "between")
    (area,) = panels(draw(one_of_each(band)))[0].collections
    heights = area.get_paths()[0].vertices[:, 1]
    assert (heights.min(), heights.max()) == (2, 30)


def test_a_name_that_is_drawn_twice_is_listed_once():
    picture = one_of_each(
        Line([0, 1], [1, 1], "blue", "a"),
        Points([0], [1], "ink", "b"),
        Line([0, 1], [2, 2], "blue", "a"),
        Line([0, 1], [2, 2], "purple"),
    )
    assert legend_names(picture) == ["a", "b"]
    (legend,) = draw(picture).legends
    assert [text.get_text() for text in legend.get_texts()] == ["a", "b"]


def test_a_mark_without_points_is_drawn_as_nothing():
    empty = np.array([])
    figure = draw(one_of_each(Points(empty, empty, "blue", "nobody")))
    assert len(lines(figure)[0][0]) == 0


def test_a_picture_without_names_has_no_legend():
    assert draw(one_of_each(Line([0, 1], [1, 1], "blue"))).legends == []
