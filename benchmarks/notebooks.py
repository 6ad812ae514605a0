"""How long each notebook takes, and its slowest cell, one after the other."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import nbformat
from nbclient import NotebookClient

from tools.notebooks import notebooks

RESULTS = Path(__file__).with_name("notebooks.md")


def timed(path: Path) -> tuple[float, float, str]:
    """Return (seconds in all, seconds of the slowest cell, its name)."""
    notebook = nbformat.read(path, as_version=4)
    started: dict[int, float] = {}
    taken: dict[int, float] = {}

    def start(cell: Any, cell_index: int) -> None:
        started[cell_index] = time.perf_counter()

    def stop(cell: Any, cell_index: int, **_: Any) -> None:
        taken[cell_index] = time.perf_counter() - started[cell_index]

    client = NotebookClient(
        notebook,
        timeout=600,
        kernel_name="python3",
        resources={"metadata": {"path": str(path.parent)}},
        on_cell_execute=start,
        on_cell_executed=stop,
    )
    begin = time.perf_counter()
    client.execute()
    slowest = max(taken, key=lambda index: taken[index])
    return (
        time.perf_counter() - begin,
        taken[slowest],
        notebook.cells[slowest].id,
    )


def main() -> None:
    """Run every notebook and write notebooks.md."""
    assert __doc__ is not None
    lines = ["# Time of the notebooks", "", __doc__, ""]
    lines += [
        "| notebook | seconds | slowest cell | its seconds |",
        "|---|---|---|---|",
    ]
    total = 0.0
    for path in notebooks():
        seconds, slowest, name = timed(path)
        total += seconds
        lines.append(f"| {path.stem} | {seconds:.0f} | `{name}` | {slowest:.1f} |")
    lines += ["", f"Together {total:.0f} seconds."]
    RESULTS.write_text("\n".join([*lines, ""]))
    print("\n".join(lines))
