"""Every chapter runs in the reader's browser, and says so when it cannot."""

import json
import time

import nbformat
import pytest

from tools.lite import PYODIDE_URL, SITE
from tools.notebooks import BOOK, notebooks

from .live import LINK, START, LiveNotebook, printed

# A reader clicks, runs and moves


def test_first_cells_print_what_the_book_says(chapter):
    cell = chapter.code_cell("users = sample_users(meta, k, rng)")
    chapter.run(cell)
    assert "Users(n=600)" in chapter.output(cell)


def test_installing_twice_does_nothing(chapter):
    cell = chapter.code_cell("piplite")
    chapter.run(cell)
    assert chapter.output(cell) == ""


def test_a_widget_moved_by_keyboard_changes_figure_and_reading(chapter):
    cell = chapter.code_cell('explore("variance")')
    chapter.run(cell)
    spread = cell.locator(".widget-hslider", has_text="spread of users' rates")
    slider, figure = spread.get_by_role("slider"), cell.locator("img[alt]")
    figure.wait_for()
    before = figure.get_attribute("src"), chapter.output(cell)
    slider.press("ArrowRight")
    chapter.wait_until(
        lambda: (
            figure.get_attribute("src") != before[0]
            and chapter.output(cell) != before[1]
        ),
        30,
        "a widget's step",
    )
    assert figure.get_attribute("src").startswith("data:image/png;base64,")


# Every notebook, to its end


@pytest.mark.parametrize("path", notebooks(), ids=lambda path: path.stem)
def test_every_notebook_runs_to_its_end_and_prints_what_the_book_says(
    path, new_page, site, seen
):
    page, network = new_page()
    row = seen["notebooks"][path.stem] = {}
    code = [c for c in nbformat.read(path, as_version=4).cells if c.cell_type == "code"]
    begin = time.monotonic()
    page.goto(f"{site}lite/notebooks/index.html?path={path.name}")
    notebook = LiveNotebook(page)
    notebook.run_all()
    row["first"] = notebook.wait_for_cells(1, START) - begin
    row["last"] = notebook.wait_for_cells(1 + len(code), 600) - begin
    ran = {cell["id"]: cell for cell in notebook.code_cells()}
    differ = [
        cell.id
        for cell in code
        if "nbval-ignore-output" not in cell.metadata.get("tags", [])
        and printed(cell.outputs) != printed(ran[cell.id]["outputs"])
    ]
    row["differ"] = differ
    assert differ == []
    assert network.missing == []


# When Python cannot start


@pytest.fixture
def blocked(new_page, site):
    """A notebook opened where the CDN does not answer, with its network."""
    page, network = new_page(blocked=True)
    page.goto(f"{site}lite/notebooks/index.html?path=model.ipynb")
    return page, network


def test_a_note_says_that_pyodide_is_out_of_reach_and_what_to_do(blocked):
    page, _ = blocked
    note = page.get_by_role("alert")
    note.wait_for(timeout=20_000)
    text = note.inner_text()
    for words in ("cannot start", PYODIDE_URL, "still read", "make lab", "Try again"):
        assert words in text
    page.locator(".jp-Notebook .jp-Cell").first.wait_for(timeout=60_000)
    box, below = note.bounding_box(), page.locator("#main").bounding_box()
    assert below["y"] >= box["y"] + box["height"] - 1
    link = note.get_by_role("link", name="download")
    with page.expect_download() as download:
        link.click()
    kept = json.loads(download.value.path().read_text(encoding="utf-8"))
    assert kept == json.loads((BOOK / "model.ipynb").read_text(encoding="utf-8"))


def test_trying_again_when_the_network_is_back_starts_python(blocked):
    page, network = blocked
    page.get_by_role("link", name="Try again").wait_for(timeout=20_000)
    network.blocked = False
    page.get_by_role("link", name="Try again").click()
    notebook = LiveNotebook(page)
    notebook.run(notebook.code_cell("piplite"))
    assert page.get_by_role("alert").count() == 0


def test_a_slow_network_is_a_note_that_goes_away(new_page, site):
    page, network = new_page(slow=True)
    page.goto(f"{site}lite/notebooks/index.html?path=model.ipynb")
    page.wait_for_timeout(10_000)
    assert page.get_by_role("alert").count() == 0
    page.get_by_role("alert").wait_for(timeout=20_000)
    network.release()
    page.get_by_role("alert").wait_for(state="detached", timeout=20_000)
    notebook = LiveNotebook(page)
    notebook.run(notebook.code_cell("piplite"))


def test_without_javascript_a_note_leads_to_the_book(new_page, site):
    page, _ = new_page(java_script_enabled=False)
    page.goto(f"{site}lite/notebooks/index.html?path=model.ipynb")
    assert "needs JavaScript" in page.locator("body").inner_text()


def test_a_page_opened_from_the_disk_says_how_to_serve_it(chromium):
    page = chromium.new_page()
    page.goto(f"{(SITE / 'book' / 'model.html').as_uri()}")
    page.get_by_role("link", name=LINK).click()
    note = page.get_by_role("alert")
    note.wait_for()
    assert "make serve" in note.inner_text()
