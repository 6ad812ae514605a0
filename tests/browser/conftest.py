"""Chromium, the built site on a local server, and pages opened in one with the other.

Without Chromium, or before `make book`, these tests are skipped with one line; with
BROWSER_TESTS=required in the environment, as in continuous integration, they fail.
"""

import os
import shutil
import threading
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer

import pytest
from playwright.sync_api import sync_playwright

from tests.browser.visits import SITE, Visit

NAMES = ("chromium", "chromium-browser", "google-chrome", "/usr/bin/chromium")

# Chromium must start as root in a container, keep to itself, and reach no other host.
FLAGS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
)


def find_chromium():
    """Return the path of Chromium, or None."""
    named = os.environ.get("CHROMIUM")
    found = (shutil.which(name) for name in ([named] if named else NAMES))
    return next(filter(None, found), None)


def what_is_missing():
    """Return why no page can be tested, or an empty string."""
    if find_chromium() is None:
        return "no Chromium: install it, or name it in the variable CHROMIUM"
    if not (SITE / "index.html").exists():
        return "no site in _build/html: run `make book` first"
    return ""


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup():
    """Skip all browser tests, or fail them, from one place: one line says why."""
    missing = what_is_missing()
    if missing and os.environ.get("BROWSER_TESTS") == "required":
        pytest.fail(f"browser tests are required: {missing}", pytrace=False)
    if missing:
        pytest.skip(f"browser tests: {missing}")


class QuietHandler(SimpleHTTPRequestHandler):
    """Serve files over connections that stay open, without a log."""

    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass


@contextmanager
def served(folder):
    """Serve a folder to this machine only; give the address, which ends in a slash."""
    handler = partial(QuietHandler, directory=str(folder))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()
        thread.join()


@pytest.fixture(scope="session")
def site():
    """Address of the built book, which ends in a slash."""
    with served(SITE) as address:
        yield address


@pytest.fixture(scope="session")
def browser():
    """Chromium, started once."""
    with sync_playwright() as playwright:
        options = {"executable_path": find_chromium(), "args": list(FLAGS)}
        chromium = playwright.chromium.launch(**options)
        yield chromium
        chromium.close()


@pytest.fixture
def open_page(browser, site):
    """Open a page of the site, or any address, as a reader with no history would.

    `open_page("book/model.html", width=390, theme="dark")` returns a `Visit` once the
    page has loaded and its formulas are set. Other options are those of Playwright's
    `new_context`: `java_script_enabled=False`, `has_touch=True`, `reduced_motion=...`.
    """
    contexts = []

    def open_one(path, *, width=1280, height=900, theme="light", **options):
        size = {"width": width, "height": height}
        context = browser.new_context(viewport=size, color_scheme=theme, **options)
        contexts.append(context)
        address = path if "://" in path else site + path
        visit = Visit(context.new_page(), address)
        visit.open()
        return visit

    yield open_one
    for context in contexts:
        context.close()


@pytest.fixture
def open_html(open_page, tmp_path):
    """Open a small page made of this HTML, from a server of its own."""
    with served(tmp_path) as address:

        def open_text(html, **options):
            (tmp_path / "page.html").write_text(html, encoding="utf-8")
            return open_page(f"{address}page.html", **options)

        yield open_text
