"""What a chapter asserts does not hang on its seed: run it with two others.

Cells are run as plain code, without a kernel and without drawing the figures that they
show: the comparison with stored outputs and the build of the book do both.
"""

import re

import nbformat
import pytest

from tools.notebooks import notebooks

SEED = re.compile(r"default_rng\((\d+)\)")
SEEDED = [path for path in notebooks() if SEED.search(path.read_text(encoding="utf-8"))]
MAGIC = re.compile(r"^%.*$", re.MULTILINE)


def code_of(path):
    """The cells that a kernel would run, without its magic lines."""
    cells = nbformat.read(path, as_version=4).cells
    return [
        MAGIC.sub("", cell.source)
        for cell in cells
        if cell.cell_type == "code"
        and "skip-execution" not in cell.metadata.get("tags", [])
    ]


def run_with(seed, path):
    """Run a chapter with another seed, until an assertion fails."""
    setup, *rest = code_of(path)
    setup, changed = SEED.subn(f"default_rng({seed})", setup)
    assert changed == 1
    chapter: dict[str, object] = {"__name__": path.stem}
    for number, code in enumerate([setup, *rest], start=1):
        exec(compile(code, f"{path.name}, code cell {number}", "exec"), chapter)


@pytest.mark.parametrize("seed", [1, 20_240_229])
@pytest.mark.parametrize("path", SEEDED, ids=lambda path: path.stem)
def test_every_assertion_holds_with_another_seed(path, seed, monkeypatch):
    monkeypatch.chdir(path.parent)
    run_with(seed, path)


def test_an_assertion_that_hangs_on_the_seed_is_noticed(tmp_path):
    setup = (
        "from numpy.random import default_rng\n%magic\nx = default_rng(7).integers(9)"
    )
    cells = [nbformat.v4.new_code_cell(code) for code in (setup, "assert x == 8")]
    path = tmp_path / "chapter.ipynb"
    nbformat.write(nbformat.v4.new_notebook(cells=cells), path)
    run_with(7, path)
    with pytest.raises(AssertionError):
        run_with(1, path)
