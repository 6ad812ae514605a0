"""Sphinx extension: below the title of a notebook's page, links to run and to keep it.

The first opens the notebook in JupyterLite, which tools/lite.py adds to the site. With
``LITE=0`` in the environment there is no JupyterLite, and the link is left out.
"""

from __future__ import annotations

import html
import os
from pathlib import PurePosixPath
from typing import Any

from docutils import nodes  # type: ignore[import-untyped]
from sphinx.application import Sphinx
from sphinx.util.osutil import relative_uri

FOLDER = "book/"  # where notebooks are; JupyterLite's copies are named from there


def link(text: str, address: str, **attributes: str) -> str:
    """Return a plain link.

    >>> link("Run", "a?b&c", title="now")
    '<a href="a?b&amp;c" title="now">Run</a>'
    """
    pairs = {"href": address} | attributes
    written = (f'{name}="{html.escape(value)}"' for name, value in pairs.items())
    return f"<a {' '.join(written)}>{html.escape(text)}</a>"


def chapter_links(page: str, lite: bool) -> str:
    """Return the links of a notebook's page, relative to it.

    Parameters
    ----------
    page : the page without its suffix, as ``book/model``
    lite : whether the site has JupyterLite
    """
    notebook = page.removeprefix(FOLDER) + ".ipynb"
    here = f"{page}.html"
    run = relative_uri(here, f"lite/notebooks/index.html?path={notebook}")
    source = relative_uri(here, f"_sources/{page}.ipynb")
    name = PurePosixPath(notebook).name
    links = [link("Run this chapter in your browser", run)] if lite else []
    links.append(link("Download notebook", source, download=name))
    return f'<p class="chapter-links">{" ".join(links)}</p>'


def insert(app: Sphinx, doctree: Any, page: str) -> None:
    """Put the links below the title if the page is a notebook."""
    if app.builder.format != "html" or not app.env.doc2path(page).endswith(".ipynb"):
        return
    for title in doctree.findall(nodes.title):
        links = chapter_links(page, app.config.chapter_links_lite)
        place = title.parent.index(title) + 1
        title.parent.insert(place, nodes.raw("", links, format="html"))
        return


def setup(app: Sphinx) -> dict[str, bool]:
    """Add the links when pages are written, all of them again when LITE changes."""
    lite = os.environ.get("LITE", "1") != "0"
    app.add_config_value("chapter_links_lite", lite, "html", types=[bool])
    app.connect("doctree-resolved", insert)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
