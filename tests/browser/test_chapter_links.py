"""Every notebook's page offers its notebook: to run, and to keep."""

from urllib.parse import parse_qs, urljoin, urlsplit

import nbformat
import pytest

from tests.browser.visits import SITE
from tools.lite import FIRST_CELL
from tools.notebooks import BOOK, notebooks

PAGES = [str(path.relative_to(BOOK).with_suffix("")) for path in notebooks()]


def served_notebook(visit, path):
    """Fetch a notebook from the server that the page came from."""
    answer = visit.page.request.get(urljoin(visit.address, path))
    assert answer.ok, path
    return nbformat.reads(answer.text(), as_version=4)


def code_cells(cells):
    return [cell for cell in cells if cell.cell_type == "code"]


@pytest.mark.parametrize("name", PAGES)
def test_download_link_gives_the_notebook_of_the_page(open_page, name):
    visit = open_page(f"book/{name}.html")
    link = visit.page.get_by_role("link", name="Download notebook", exact=True)
    assert link.get_attribute("download") == f"{name}.ipynb"
    kept = served_notebook(visit, link.get_attribute("href"))
    assert kept == nbformat.read(BOOK / f"{name}.ipynb", as_version=4)


@pytest.mark.skipif(
    not (SITE / "lite").is_dir(), reason="the site was built without JupyterLite"
)
@pytest.mark.parametrize("name", PAGES)
def test_run_link_opens_the_app_with_the_notebook_of_the_page(open_page, name):
    visit = open_page(f"book/{name}.html")
    link = visit.page.get_by_role("link", name="Run this chapter in your browser")
    address = urljoin(visit.address, link.get_attribute("href"))
    assert visit.page.request.get(address).ok
    (path,) = parse_qs(urlsplit(address).query)["path"]
    first, *others = served_notebook(visit, f"../lite/files/{path}").cells
    assert first.source == FIRST_CELL
    cells = nbformat.read(BOOK / f"{name}.ipynb", as_version=4).cells
    assert [cell.id for cell in others] == [cell.id for cell in cells]
    # Texts may differ: what refers to other pages becomes links to the book.
    assert code_cells(others) == code_cells(cells)


def test_links_come_first_on_the_page_and_by_keyboard(open_page):
    page = open_page("book/model.html").page
    links = page.locator("article h1 + p.chapter-links a")
    assert links.count() in (1, 2)
    links.last.focus()
    assert page.evaluate("document.activeElement.textContent") == "Download notebook"


def test_links_are_not_printed(open_page):
    page = open_page("book/model.html").page
    page.emulate_media(media="print")
    assert not page.locator(".chapter-links").is_visible()
