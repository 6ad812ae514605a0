"""How long one step of a slider takes, and how much data a page carries.

*Computing* makes the picture, *redraw* has matplotlib draw a figure that it has
already, *step* is all that a moved slider sets off in Jupyter: computing, drawing the
marks that move, and a PNG. Medians of rounds in which the three take turns, parameters
at their defaults. Steps of up to 50 ms follow the slider while it is dragged, others
wait until it is released. *Frames* are what the page holds.
"""

from __future__ import annotations

import io
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np

from hetlit.teaching.draw import draw
from hetlit.teaching.explorers import EXPLORERS
from hetlit.teaching.explorers.explorer import Explorer
from hetlit.teaching.widgets import DPI, explore
from tools.sphinx.explorers import as_json, frames

RESULTS = Path(__file__).with_name("explorers.md")
ROUNDS = 15


def milliseconds(work: Callable[[], object]) -> float:
    begin = time.perf_counter()
    work()
    return 1000.0 * (time.perf_counter() - begin)


def medians(explorer: Explorer) -> tuple[float, float, float]:
    """Return milliseconds of (computing, redraw, step)."""
    box, figure = explore(explorer.name), draw(explorer.at())
    first = explorer.parameters[0]
    at = first.values.index(first.default)
    places = [first.values[at + 1], first.default]

    def step(turn: int) -> None:
        box.controls[0].value = places[turn % 2]

    rounds = [
        (
            milliseconds(explorer.at),
            milliseconds(lambda: figure.savefig(io.BytesIO(), dpi=DPI)),
            milliseconds(partial(step, turn)),
        )
        for turn in range(ROUNDS)
    ]
    computing, redraw, whole = np.median(rounds, axis=0)
    return float(computing), float(redraw), float(whole)


def main() -> None:
    """Measure every explorer and write explorers.md."""
    assert __doc__ is not None
    lines = ["# Explorers", "", __doc__.strip(), ""]
    lines += [
        "| explorer | computing, ms | redraw, ms | step, ms | step / redraw | follows |"
        " frames | data, KB |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for name, explorer in EXPLORERS.items():
        computing, redraw, step = medians(explorer)
        data = frames(explorer)
        size = len(as_json(data).encode()) / 1000
        lines.append(
            f"| {name} | {computing:.1f} | {redraw:.0f} | {step:.0f} | "
            f"{step / redraw:.1f} | {'yes' if explorer.quick else 'no'} | "
            f"{len(data['frames'])} | {size:.0f} |"
        )
    RESULTS.write_text("\n".join([*lines, ""]))
    print("\n".join(lines))
