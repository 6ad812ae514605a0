"""Notebooks get what they need in a browser, and pages link to them."""

import copy
import importlib.metadata
import json
import re
import zipfile
from html.parser import HTMLParser
from pathlib import Path

import nbformat
import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

import hetlit
from tools.lite import (
    FIRST_CELL,
    INSTALLED_WHEELS,
    LAB_EXTENSIONS,
    NOTE,
    PYODIDE_URL,
    PYODIDE_VERSION,
    browser_notebook,
    build_settings,
    settings,
    wheel_from_installed,
    with_note,
    write_notebooks,
)
from tools.notebooks import BOOK, notebooks
from tools.sphinx.chapter_links import chapter_links

KERNEL = "@jupyterlite/pyodide-kernel-extension:kernel"
PAGE = "<html><head></head><body><noscript>x</noscript></body></html>"


class Links(HTMLParser):
    """Collects the attributes and the text of all links."""

    def __init__(self, html):
        super().__init__()
        self.links, self.open = [], False
        self.feed(html)

    def handle_starttag(self, tag, attrs):
        self.open = tag == "a"
        if self.open:
            self.links.append(dict(attrs) | {"text": ""})

    def handle_data(self, data):
        if self.open:
            self.links[-1]["text"] += data

    def handle_endtag(self, tag):
        self.open = False


# The browser's copies of notebooks


@pytest.mark.parametrize("path", notebooks(), ids=lambda path: path.stem)
def test_browser_copy_starts_with_the_install_and_changes_no_other_cell(path):
    original = nbformat.read(path, as_version=4)
    before = copy.deepcopy(original)
    first, *others = browser_notebook(original).cells
    assert original == before
    assert (first.cell_type, first.source) == ("code", FIRST_CELL)
    assert others == original.cells


def test_browser_copy_of_a_copy_is_the_same():
    once = browser_notebook(nbformat.read(notebooks()[0], as_version=4))
    assert browser_notebook(once) == once


def test_first_cell_says_that_it_is_there_in_the_browser_only():
    comment, *_ = FIRST_CELL.splitlines()
    assert comment.startswith("# In the browser version only")
    assert max(map(len, FIRST_CELL.splitlines())) <= 79


def test_every_notebook_is_copied_and_valid(tmp_path):
    write_notebooks(tmp_path)
    copies = notebooks(tmp_path)
    names = [path.relative_to(BOOK) for path in notebooks()]
    assert [path.relative_to(tmp_path) for path in copies] == names
    for path in copies:
        nbformat.validate(nbformat.read(path, as_version=4))


def test_code_is_copied_as_it_is_and_each_text_is_one_string(tmp_path):
    write_notebooks(tmp_path)
    for path in notebooks():
        original = nbformat.read(path, as_version=4).cells
        copied = json.loads((tmp_path / path.relative_to(BOOK)).read_text("utf-8"))
        code = [cell for cell in copied["cells"][1:] if cell["cell_type"] == "code"]
        assert code == [cell for cell in original if cell.cell_type == "code"]


# Wheels


@pytest.mark.parametrize("name", INSTALLED_WHEELS)
def test_repacked_wheel_has_the_package_and_a_true_record(name, tmp_path):
    path = wheel_from_installed(name, tmp_path)
    with zipfile.ZipFile(path) as wheel:
        assert wheel.testzip() is None
        files = wheel.namelist()
        (record,) = (file for file in files if file.endswith(".dist-info/RECORD"))
        listed = [row.split(",")[0] for row in wheel.read(record).decode().splitlines()]
    assert f"-{importlib.metadata.version(name)}-py3-none-any.whl" in path.name
    assert f"{name}/__init__.py" in files
    assert sorted(listed) == sorted(files)
    assert not [file for file in files if ".." in file or file.endswith(".pyc")]


def test_repacking_twice_gives_the_same_bytes(tmp_path):
    (tmp_path / "again").mkdir()
    once = wheel_from_installed("comm", tmp_path)
    again = wheel_from_installed("comm", tmp_path / "again")
    assert once.read_bytes() == again.read_bytes()


def test_a_package_with_compiled_parts_is_refused(tmp_path):
    with pytest.raises(ValueError, match="numpy has compiled parts"):
        wheel_from_installed("numpy", tmp_path)


def test_wheels_are_all_that_widgets_need_besides_pyodide_and_jupyterlite():
    elsewhere = {"ipython", "traitlets", "widgetsnbextension"}
    lines = importlib.metadata.requires("ipywidgets")
    assert lines is not None
    needed = {
        canonicalize_name(requirement.name)
        for line in lines
        for requirement in [Requirement(line)]
        if requirement.marker is None
    }
    there = {canonicalize_name(name) for name in INSTALLED_WHEELS}
    assert there == needed - elsewhere | {"ipywidgets"}


# The app


def test_pyodide_is_pinned_and_nothing_is_asked_of_pypi():
    kernel = settings()["jupyter-config-data"]["litePluginSettings"][KERNEL]
    assert kernel == {"pyodideUrl": PYODIDE_URL, "disablePyPIFallback": True}
    assert f"/v{PYODIDE_VERSION}/" in PYODIDE_URL


def test_changes_of_readers_belong_to_a_version_of_the_library():
    name = settings()["jupyter-config-data"]["contentsStorageName"]
    assert hetlit.__version__ in name


def test_the_extensions_that_the_app_needs_are_installed():
    paths = build_settings()["LiteBuildConfig"]["federated_extensions"]
    assert len(paths) == len(LAB_EXTENSIONS)
    for path in paths:
        package = json.loads((Path(path) / "package.json").read_text())
        assert package["name"] in LAB_EXTENSIONS


# The note for readers without Pyodide


def test_the_page_tells_the_note_which_address_to_ask():
    page = with_note(PAGE)
    assert f'src="../{NOTE.name}" data-pyodide="{PYODIDE_URL}"' in page
    assert page.count("<noscript>") == page.count("</noscript>") == 1
    assert 'href="../../index.html"' in page
    assert '<html lang="en">' in page


def test_the_note_names_the_address_and_what_can_be_done():
    note = NOTE.read_text(encoding="utf-8")
    assert "fetch(pyodide)" in note
    assert "`It would come from ${pyodide}, which did not answer" in note
    for words in ('"alert"', "still read", "download", "make lab", "Try again"):
        assert words in note
    assert "make serve" in note  # on a page opened from the disk
    assert not re.search(r"https?://", note)


# Links on the pages


def test_a_chapter_links_to_its_notebook_live_and_as_a_file():
    run, download = Links(chapter_links("book/model", lite=True)).links
    assert run == {
        "href": "../lite/notebooks/index.html?path=model.ipynb",
        "text": "Run this chapter in your browser",
    }
    assert download == {
        "href": "../_sources/book/model.ipynb",
        "download": "model.ipynb",
        "text": "Download notebook",
    }


def test_without_jupyterlite_a_chapter_links_to_the_file_only():
    (download,) = Links(chapter_links("book/model", lite=False)).links
    assert download["text"] == "Download notebook"


def test_links_are_relative_so_that_the_site_may_move():
    for page in ("book/model", "book/part/model", "model"):
        for link in Links(chapter_links(page, lite=True)).links:
            assert not re.match(r"/|\w+:", link["href"])
