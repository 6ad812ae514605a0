"""What a chapter asserts does not hang on its seed: run it with two others."""

import re

import nbformat
import pytest

from tools.notebooks import notebooks, run

SEED = re.compile(r"default_rng\((\d+)\)")
SEEDED = [path for path in notebooks() if SEED.search(path.read_text(encoding="utf-8"))]


@pytest.mark.parametrize("seed", [1, 20_240_229])
@pytest.mark.parametrize("path", SEEDED, ids=lambda path: path.stem)
def test_every_assertion_holds_with_another_seed(path, seed):
    notebook = nbformat.read(path, as_version=4)
    setup = next(cell for cell in notebook.cells if cell.cell_type == "code")
    setup.source, changed = SEED.subn(f"default_rng({seed})", setup.source)
    assert changed == 1
    run(notebook, path.parent)  # raises at the first cell that fails
