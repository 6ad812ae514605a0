"""The picture of the landing page, and how it is written."""

from __future__ import annotations

import html
import io
from pathlib import Path

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from hetlit.teaching.figures.style import DPI, draw_line
from hetlit.teaching.looks import BLUE, GREY, INK, PAPER, SIMULATION, THEORY, VERMILLION
from hetlit.theory.variance import user_variance
from hetlit.theory.weights import optimal_weights
from hetlit.users.table import Users

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
        draw_line(right, values, np.exp(-np.abs(values - location) / scale), look)
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


def _panel(figure: Figure, start: float, width: float, heading: str, text: str) -> Axes:
    axes = figure.add_axes((start, 0.17, width, 0.56), facecolor="none")
    axes.spines[["top", "right", "left"]].set_visible(False)
    axes.spines["bottom"].set_color(GREY)
    axes.tick_params(labelsize=12, labelcolor=INK, color=GREY)
    figure.text(start, 0.91, heading, fontsize=15, weight="bold", color=INK)
    figure.text(start, 0.87, text, fontsize=12, color=INK, va="top")
    return axes
