"""The tools keep notebooks and pins in one form and the site free of requests."""

import copy
import re
import shutil
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest
import yaml

from tools.notebooks import BOOK, normalise, notebooks
from tools.pins import CONSTRAINTS, resolve, tidy
from tools.sphinx.book_site import foreign_requests, trim_mathjax

ROOT = BOOK.parent


def toc_files(node):
    """Every page that a table of contents names."""
    if isinstance(node, dict):
        for key, value in node.items():
            yield from [value] if key in ("root", "file") else toc_files(value)
    elif isinstance(node, list):
        for item in node:
            yield from toc_files(item)


def messy_notebook():
    stream = {"output_type": "stream", "name": "stdout"}
    figure = {"image/png": "AAAA", "text/plain": "<Figure>"}
    title = {"cell_type": "markdown", "id": "same", "source": "# T", "metadata": {}}
    code = {
        "cell_type": "code",
        "id": "same",
        "source": "1 + 1",
        "metadata": {"tags": ["x"], "scrolled": True},
        "execution_count": 17,
        "outputs": [
            stream | {"text": "a\n"},
            stream | {"text": "b\n"},
            {"output_type": "display_data", "data": figure, "metadata": {"a": 1}},
            {
                "output_type": "execute_result",
                "data": {"text/plain": "2"},
                "metadata": {},
                "execution_count": 17,
            },
        ],
    }
    metadata = {"widgets": {}, "language_info": {"name": "python", "version": "3.0"}}
    notebook = {"cells": [title, code], "metadata": metadata}
    return nbformat.from_dict(notebook | {"nbformat": 4, "nbformat_minor": 4})


def test_every_page_is_in_the_table_of_contents_and_the_other_way_round():
    listed = list(toc_files(yaml.safe_load((ROOT / "_toc.yml").read_text())))
    pages = [*notebooks(), *BOOK.glob("*.md")]
    assert sorted(listed) == sorted(
        str(page.relative_to(ROOT).with_suffix("")) for page in pages
    )


@pytest.mark.parametrize("path", notebooks(), ids=lambda path: path.name)
def test_stored_notebook_is_normalised(path):
    stored = nbformat.read(path, as_version=4)
    normalised = copy.deepcopy(stored)
    normalise(normalised, path.stem)
    assert stored == normalised
    assert path.read_text(encoding="utf-8") == nbformat.writes(normalised) + "\n"


@pytest.mark.parametrize("path", notebooks(), ids=lambda path: path.name)
def test_stored_cells_have_no_numbers_that_moving_one_would_change(path):
    cells = nbformat.read(path, as_version=4).cells
    code = [cell for cell in cells if cell.cell_type == "code"]
    numbered = [*code, *(output for cell in code for output in cell.outputs)]
    assert {item.get("execution_count") for item in numbered} == {None}


def test_cells_without_numbers_are_compared_all_the_same(tmp_path):
    said = nbformat.v4.new_output("stream", text="said\n")
    cells = [
        nbformat.v4.new_code_cell("print('said')", outputs=[said]),
        nbformat.v4.new_code_cell("print('unsaid')", outputs=[said]),
        nbformat.v4.new_code_cell("print('unsaid')"),
    ]
    nbformat.write(nbformat.v4.new_notebook(cells=cells), tmp_path / "some.ipynb")
    shutil.copy(BOOK / "conftest.py", tmp_path)
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "--nbval", "--nbval-current-env", tmp_path],
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    # The reason stands in each failure; where CI is set, the summary repeats it.
    assert "2 failed, 1 passed" in done.stdout
    assert done.stdout.count("Cell outputs differ") >= 2


def test_normalising_keeps_text_and_tags_and_drops_the_rest():
    notebook = messy_notebook()
    normalise(notebook, "name")
    nbformat.validate(notebook)
    title, code = notebook.cells
    assert set(notebook.metadata) == {"kernelspec", "language_info"}
    assert (title.id, code.id) == ("same", "name-002")
    assert code.metadata == {"tags": ["x"]}
    assert code.execution_count is code.outputs[-1].execution_count is None
    assert [output.get("text") or output.data for output in code.outputs] == [
        "a\nb\n",
        {"text/plain": "<Figure>"},
        {"text/plain": "2"},
    ]


def test_normalising_forgets_what_skipped_cells_showed_somebody():
    notebook = messy_notebook()
    notebook.cells[1].metadata["tags"] = ["skip-execution"]
    normalise(notebook, "name")
    assert notebook.cells[1].outputs == []


def test_normalising_twice_changes_nothing():
    notebook = messy_notebook()
    normalise(notebook, "name")
    again = copy.deepcopy(notebook)
    normalise(again, "name")
    assert again == notebook


@pytest.mark.parametrize(
    "html",
    [
        '<script src="https://example.org/x"></script>',
        "<script async src='//example.org/x'></script>",
        '<img alt="a" src="http://example.org/x">',
        '<link rel="stylesheet" href="https://example.org/x">',
        '<link href="https://example.org/x" rel="preload">',
        "<style>@import url(https://example.org/x)</style>",
        "<style>a { background: url('https://example.org/x') }</style>",
    ],
)
def test_a_request_to_another_host_is_found(html):
    (address,) = foreign_requests(html)
    assert address.endswith("//example.org/x")


@pytest.mark.parametrize(
    "html",
    [
        '<script src="_static/x.js"></script>',
        '<a href="https://example.org/x">link</a>',
        '<link rel="canonical" href="https://example.org/x">',
        '<img src="data:image/png;base64,AAAA//8=">',
    ],
)
def test_links_and_local_files_are_no_foreign_requests(html):
    assert foreign_requests(html) == []


def test_trimming_mathjax_keeps_what_pages_load(tmp_path):
    for name in (
        "tex-chtml.js",
        "tex-svg.js",
        "input/tex/extensions/ams.js",
        "output/svg/x",
    ):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("")
    trim_mathjax(tmp_path)
    left = {
        str(path.relative_to(tmp_path))
        for path in tmp_path.rglob("*")
        if path.is_file()
    }
    assert left == {"tex-chtml.js", "input/tex/extensions/ams.js"}


def test_pins_are_sorted_by_name_without_comments():
    resolved = "# by uv\nb==2\na-b==1.0.post1\na==3.0  # via b\n\n"
    assert tidy(resolved) == "a==3.0\na-b==1.0.post1\nb==2\n"


def test_stored_pins_are_tidy():
    stored = CONSTRAINTS.read_text(encoding="utf-8")
    assert tidy(stored) == stored


@pytest.mark.parametrize(
    "line",
    [
        "a>=1",
        "a==1 ; python_version < '3.12'",
        "a @ https://example.org/a.whl",
        "--index-url https://example.org",
    ],
)
def test_what_is_no_pin_is_refused_by_name(line):
    with pytest.raises(ValueError, match=re.escape(line)):
        tidy(f"b==1\n{line}\n")


@pytest.mark.parametrize("upgrade", [False, True])
def test_pins_are_resolved_from_those_we_have(monkeypatch, upgrade):
    seen = []

    def compile_pins(command, **options):
        output = Path(command[command.index("--output-file") + 1])
        seen.append((command, output.read_text("utf-8")))
        output.write_text("numpy==2.4.6\n", "utf-8")

    monkeypatch.setattr("tools.pins.subprocess.run", compile_pins)
    assert resolve("numpy==1.26.4\n", upgrade=upgrade) == "numpy==2.4.6\n"
    ((command, pins),) = seen
    assert pins == "numpy==1.26.4\n"
    assert ("--upgrade" in command) == upgrade
    assert command[command.index("--python-version") + 1] == "3.11.99"
