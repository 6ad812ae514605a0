"""Sphinx extension: the finished site is small, starts at its root, needs no network.

It also tells screen readers what the theme forgets to say.

It runs once all pages are written. A page that would fetch anything from another
host is reported as a warning, and warnings fail the build.
"""

import re
import shutil
from pathlib import Path

from sphinx.application import Sphinx
from sphinx.util import logging

logger = logging.getLogger(__name__)

# sphinx-mathjax-offline ships all of MathJax. Pages load tex-chtml.js, which may ask
# for TeX extensions, fonts, the menu and the accessibility tools; nothing else is used.
MATHJAX_USED = {"a11y", "input", "output", "sre", "tex-chtml.js", "ui"}
MATHJAX_UNUSED = ["input/asciimath.js", "input/mml", "input/mml.js", "output/svg"]
MATHJAX_UNUSED += ["input/tex-base.js", "input/tex-full.js", "output/svg.js"]

REDIRECT = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<title>{title}</title>
<meta http-equiv="refresh" content="0; url={page}">
<link rel="canonical" href="{page}">
</head>
<body><p><a href="{page}">{title}</a></p></body>
</html>
"""

# A list has items, and nothing on a page is outside of its landmarks.
SIDEBAR = '<div class="bd-sidebar-primary bd-sidebar"'
MEANT = {
    'role="doc-biblioentry"': 'role="listitem"',
    f"{SIDEBAR}>": f'{SIDEBAR} role="complementary" aria-label="Book">',
}

# Tags a browser fetches by itself; <a href> is not one of them.
FETCHED_TAG = re.compile(
    r"<(?:script|img|iframe|source|video|audio|embed|object|input)\b[^>]*?"
    r"\s(?:src|srcset|data)\s*=\s*[\"']?\s*((?:https?:)?//[^\"'\s>]+)",
    re.IGNORECASE,
)
FETCHED_LINK = re.compile(
    r"<link\b(?=[^>]*\brel\s*=\s*[\"']?(?:stylesheet|preload|modulepreload|icon|"
    r"shortcut|manifest|preconnect|dns-prefetch))[^>]*?"
    r"\shref\s*=\s*[\"']?\s*((?:https?:)?//[^\"'\s>]+)",
    re.IGNORECASE,
)
FETCHED_STYLE = re.compile(
    r"(?:@import\s+(?:url\()?|url\()\s*[\"']?((?:https?:)?//[^\"')\s]+)",
    re.IGNORECASE,
)


def foreign_requests(text: str) -> list[str]:
    """Return the addresses on other hosts that this HTML or CSS makes a browser fetch.

    >>> foreign_requests('<script defer src="https://example.org/a.js"></script>')
    ['https://example.org/a.js']
    >>> foreign_requests('<a href="https://example.org">a link is no request</a>')
    []
    """
    patterns = (FETCHED_TAG, FETCHED_LINK, FETCHED_STYLE)
    return [address for pattern in patterns for address in pattern.findall(text)]


def mend(html: str) -> str:
    """Return a page in which every part has a role that screen readers understand.

    >>> mend('<div class="citation" role="doc-biblioentry">')
    '<div class="citation" role="listitem">'
    """
    for written, meant in MEANT.items():
        html = html.replace(written, meant)
    return html


def trim_mathjax(folder: Path) -> None:
    """Delete the parts of MathJax that no page can ask for."""
    unused = [path for path in folder.glob("*") if path.name not in MATHJAX_USED]
    for path in unused + [folder / name for name in MATHJAX_UNUSED]:
        if path.is_dir():
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)


def finish(app: Sphinx, exception: Exception | None) -> None:
    """Trim the site, mend it, point its root at the first page, report requests."""
    if exception is not None or app.builder.name != "html":
        return
    site = Path(app.outdir)
    trim_mathjax(site / "_static" / "mathjax")
    root = app.config.root_doc
    if root != "index":
        page = REDIRECT.format(title=app.config.html_title, page=f"{root}.html")
        (site / "index.html").write_text(page, encoding="utf-8")
    for path in site.rglob("*.html"):
        written = path.read_text(encoding="utf-8")
        if mend(written) != written:
            path.write_text(mend(written), encoding="utf-8")
    for path in sorted([*site.rglob("*.html"), *site.rglob("*.css")]):
        for address in foreign_requests(path.read_text(encoding="utf-8")):
            logger.warning("%s would fetch %s", path.relative_to(site), address)


def setup(app: Sphinx) -> dict[str, bool]:
    """Run last, after sphinx-mathjax-offline has copied MathJax."""
    app.connect("build-finished", finish, priority=900)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
