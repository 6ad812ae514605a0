"""In the browser's copies of the chapters every reference leads somewhere."""

import re
from functools import cache

import nbformat
import pytest

from tests.browser.visits import SITE
from tools.lite import write_notebooks
from tools.lite_references import SITE as TO_SITE
from tools.lite_references import own_labels, target_of
from tools.notebooks import notebooks

NAMES = [path.name for path in notebooks()]
LEFT = re.compile(r"\{((?:ref|doc|prf:ref|numref|eq|term|cite)\b[\w:]*)\}`([^`]+)`")
DIRECTIVES = re.compile(r"\{(?:glossary|index|literalinclude|margin)\}")
HREF = re.compile(r'<a href="([^"]*)" target="_blank">([^<]*)</a>')
APP = "lite/notebooks/index.html?path="

# Resolves once nothing has been added to an element, or taken away, for a second.
STILL = """element => new Promise(resolve => {
  let timer;
  const wait = () => { clearTimeout(timer); timer = setTimeout(resolve, 1000); };
  new MutationObserver(wait).observe(element, { childList: true, subtree: true });
  wait();
})"""


@pytest.fixture(scope="module")
def copies(tmp_path_factory):
    folder = tmp_path_factory.mktemp("copies")
    write_notebooks(folder, SITE)
    return folder


@cache
def anchors(page):
    return set(re.findall(r'id="([^"]+)"', (SITE / page).read_text(encoding="utf-8")))


def texts(path):
    notebook = nbformat.read(path, as_version=4)
    text = [cell.source for cell in notebook.cells if cell.cell_type == "markdown"]
    return "\n\n".join(text), own_labels(notebook)


@pytest.mark.parametrize("name", NAMES)
def test_no_reference_is_left_that_needs_the_book(name, copies):
    text, own = texts(copies / name)
    left = [
        role for role, content in LEFT.findall(text) if target_of(content) not in own
    ]
    assert left == []
    assert DIRECTIVES.findall(text) == []


@pytest.mark.parametrize("name", NAMES)
def test_every_link_leads_to_a_place_in_the_book_and_has_words(name, copies):
    links = HREF.findall(texts(copies / name)[0])
    assert links
    for address, words in links:
        page, _, anchor = address.removeprefix(TO_SITE).partition("#")
        assert anchor in anchors(page), address
        assert words.strip() not in ("", anchor), address


def test_a_link_of_the_app_opens_the_book_in_a_new_tab(open_page):
    if not (SITE / "lite").is_dir():
        pytest.skip("the site was built with LITE=0")
    page = open_page(f"{APP}model.ipynb").page
    link = page.locator(".jp-Notebook").get_by_role("link", name="meta-distribution")
    link.wait_for(timeout=60_000)
    # Cells below are still being added, and each of them draws all others again.
    cells = len(nbformat.read(SITE / "lite/files/model.ipynb", as_version=4).cells)
    drawn = f"document.querySelectorAll('.jp-Cell').length >= {cells}"
    page.wait_for_function(drawn, timeout=60_000)
    page.locator(".jp-Notebook").evaluate(STILL)
    with page.context.expect_page() as opened:
        link.click()
    book = opened.value
    book.wait_for_load_state()
    assert book.url.endswith("/book/glossary.html#term-meta-distribution")
    assert book.title().startswith("Glossary")
    assert page.locator(".jp-Notebook .text-yellow-600").count() == 0
