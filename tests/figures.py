"""What is true of every figure of the book, and how to read one.

A test module of figures names them in a dictionary FIGURES, from a name to a function
without arguments, and asks for these checks with

    class TestEveryFigure(EveryFigure):
        figures = FIGURES
"""

import itertools

import matplotlib
import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure


def painted(figure):
    """Return a canvas on which the figure has been drawn."""
    canvas = FigureCanvasAgg(figure)
    canvas.draw()
    return canvas


def panels(figure):
    """Return the panels of a figure, for tests that know what was drawn in them.

    To the types of matplotlib, a panel holds artists of any kind; here it is `Any`.
    """
    return figure.axes


def lines(figure, panel=0):
    """Return the (x, y) of every line of a panel, in the order drawn."""
    return [line.get_data() for line in figure.axes[panel].lines]


def notes(figure, panel=0):
    """Return the texts written into a panel."""
    return [text.get_text() for text in figure.axes[panel].texts]


def same(drawn, x, y):
    """Return whether a drawn line has these coordinates."""
    return np.allclose(drawn[0], x) and np.allclose(drawn[1], y)


class EveryFigure:
    """Each test gets `make`, one of the functions in `figures`."""

    def test_it_is_a_figure_with_labelled_axes(self, make):
        figure = make()
        assert isinstance(figure, Figure)
        shown = [axes for axes in figure.axes if axes.axison]
        assert any(axes.get_xlabel() for axes in shown)
        assert any(axes.get_ylabel() or not len(axes.get_yticks()) for axes in shown)

    def test_it_leaves_pyplot_and_the_settings_alone(self, make):
        import matplotlib.pyplot as plt

        mine = plt.figure()
        before = dict(matplotlib.rcParams)
        try:
            make()
            assert plt.get_fignums() == [mine.number]
            assert plt.gcf() is mine
            assert dict(matplotlib.rcParams) == before
        finally:
            plt.close(mine)

    def test_it_is_a_function_of_its_arguments(self, make):
        one, other = (np.array(painted(make()).buffer_rgba()) for _ in range(2))
        assert (one == other).all()

    def test_no_text_leaves_it(self, make):
        figure = make()
        painted(figure)
        frame = figure.bbox.padded(1.0)
        texts = [*figure.texts, *itertools.chain(*(axes.texts for axes in figure.axes))]
        texts += [axes.xaxis.label for axes in figure.axes]
        texts += [axes.yaxis.label for axes in figure.axes]
        for text in filter(lambda text: text.get_text(), texts):
            box = text.get_window_extent()
            assert frame.x0 <= box.x0, text
            assert box.x1 <= frame.x1, text
            assert frame.y0 <= box.y0, text
            assert box.y1 <= frame.y1, text

    def test_it_is_opaque_on_dark_pages(self, make):
        red, green, blue, opacity = make().get_facecolor()
        assert opacity == 1
        assert min(red, green, blue) > 0.9
