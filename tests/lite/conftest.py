"""Chromium, the built site, Pyodide from a folder, and a record of what was seen.

These tests download 115 MB once and take a quarter of an hour, so that `make test`
leaves them out: they are collected only when this folder is named, as `make test-lite`
does.
"""

from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest
from playwright.sync_api import sync_playwright

from tests.browser.conftest import FLAGS, find_chromium, served
from tools.lite import SITE

from .distribution import distribution, versions
from .live import LINK, LiveNotebook, Network
from .record import write_record

HERE = Path(__file__).parent


def pytest_ignore_collect(collection_path, config):
    """Leave this folder out unless it is named."""
    named = [
        Path(config.invocation_params.dir, arg.split("::")[0]) for arg in config.args
    ]
    return None if any(HERE in (path, *path.parents) for path in named) else True


# What was seen: test functions add to it, and the end of the session writes it down.


def pytest_configure(config):
    config.lite_seen = {"notebooks": {}, "checks": {}}


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item, call):
    report = yield
    name = getattr(item, "originalname", None)  # which examples in docstrings lack
    if name and HERE in item.path.parents and (report.when == "call" or report.failed):
        checks = item.config.lite_seen["checks"]
        checks[name] = checks.get(name, True) and report.passed
    return report


def pytest_sessionfinish(session):
    """Record a whole run, not a part of one."""
    seen = session.config.lite_seen
    if seen.get("versions") and not session.config.option.keyword:
        write_record(seen)


@pytest.fixture(scope="session")
def seen(request):
    return request.config.lite_seen


@pytest.fixture(scope="session")
def site():
    """Address of the built site, which ends in a slash."""
    assert (SITE / "lite").is_dir(), "no JupyterLite in _build/html: make book"
    with served(SITE) as address:
        yield address


@pytest.fixture(scope="session")
def pyodide(seen):
    """Folder with the Pyodide distribution."""
    folder = distribution()
    seen["versions"] = versions()
    return folder


@pytest.fixture(scope="session")
def chromium(seen):
    assert find_chromium(), "no Chromium: install it, or name it in CHROMIUM"
    with sync_playwright() as playwright:
        options = {"executable_path": find_chromium(), "args": list(FLAGS)}
        browser = playwright.chromium.launch(**options)
        seen["chromium"] = browser.version
        yield browser
        browser.close()


@contextmanager
def reader(chromium, site, pyodide, *, blocked=False, slow=False, **options):
    """Give the page of a reader with no history, and the network it is on."""
    context = chromium.new_context(**options)
    network = Network(context, site, pyodide, blocked, slow)
    yield context.new_page(), network
    context.close()
    assert network.foreign == []


@pytest.fixture
def new_page(chromium, site, pyodide):
    """Open an empty page for a test; see `reader` for what it takes and gives."""
    with ExitStack() as stack:
        yield lambda **options: stack.enter_context(
            reader(chromium, site, pyodide, **options)
        )


@pytest.fixture(scope="module")
def chapter(chromium, site, pyodide):
    """The first chapter, opened by its link, with its first two cells run."""
    with reader(chromium, site, pyodide) as (page, _):
        page.goto(f"{site}book/model.html")
        page.get_by_role("link", name=LINK).click()
        notebook = LiveNotebook(page)
        notebook.run(notebook.code_cell("piplite"))
        notebook.run(notebook.code_cell("np.random.default_rng(2022)"))
        yield notebook
