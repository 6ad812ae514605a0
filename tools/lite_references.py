"""References that work in the browser's copy of a notebook, where no book is around it.

There, jupyterlab-myst follows references to labels in the notebook's own text. It knows
no other chapter, no figure that code draws, no bibliography, no glossary and no file.
Such references become links to the book, with the words of the built page, and included
code becomes the code itself.
"""

from __future__ import annotations

import html
import re
import unicodedata
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urljoin

from sphinx.config import Config
from sphinx.directives.code import LiteralIncludeReader

# In Markdown: roles, directives, and what defines a label.
ROLE = re.compile(r"\{(ref|prf:ref|numref|eq|term|cite:[pt])\}`([^`]+)`")
INCLUDE = re.compile(r"(`{3,})\{literalinclude\} (\S+)\n((?::.*\n)*)\1$", re.MULTILINE)
MARGIN = re.compile(r"(`{3,})\{margin\}$", re.MULTILINE)  # there it covers the text
INDEX = re.compile(r"(`{3,})\{index\}.*\n(?:.*\n)*?\1$\n*", re.MULTILINE)
LABEL = re.compile(r"^\((\S+)\)=$|^:label: (\S+)$|\$\$ *\((\S+)\)$", re.MULTILINE)

# On a built page: a link to a place in the book, perhaps after names of authors.
LINK = re.compile(
    r'(?P<authors><span class="bibtex-citation"[^>]*>[^\[]*\[)?'
    r'<a class="reference internal" href="(?P<address>[^"]+)"'
    r'(?: title="(?P<title>[^"]*)")?>(?P<text>.*?)</a>\]?',
    re.DOTALL,
)

# The app runs in lite/notebooks. It takes relative links of Markdown for files of its
# own and leaves those of HTML alone.
SITE = "../../"
NEW_TAB = '<a href="{address}" target="_blank">{text}</a>'


class Link(NamedTuple):
    """A link of a built page: where it leads, its words, and what hovering shows."""

    address: str
    text: str
    title: str = ""


def page_links(page: str) -> list[Link]:
    """Return the links of a built page to places in the book, in their order.

    >>> page_links('<a class="reference internal" href="a.html#b"><b>Fig. 3</b></a>')
    [Link(address='a.html#b', text='Fig. 3', title='')]
    """
    links = []
    for found in LINK.finditer(page):
        authors, title = found["authors"], html.unescape(found["title"] or "")
        text = plain(f"{authors}{found['text']}]" if authors else found["text"])
        links.append(Link(found["address"], text, title))
    return links


def plain(markup: str) -> str:
    r"""Return HTML without its tags, in one line.

    >>> plain("Dwork <em>et al.</em>\n[<b>DR14</b>]")
    'Dwork et al. [DR14]'
    """
    return " ".join(re.sub("<[^>]*>", "", markup).split())


def without_accents(text: str) -> str:
    """Return text in small letters without accents.

    >>> without_accents("Cramér")
    'cramer'
    """
    letters = unicodedata.normalize("NFKD", text).encode("ascii", "ignore")
    return letters.decode().lower()


def leads_to(link: Link, role: str, target: str) -> bool:
    """Return whether a link is what a page shows for a role.

    >>> leads_to(Link("#equation-eq-mean", "(4.2)"), "eq", "eq-mean")
    True
    >>> book = Link("bibliography.html#id6", "[Cra46]", "Harald Cramér. 1946.")
    >>> leads_to(book, "cite:p", "cramer1946mathematical")
    True
    """
    anchor = link.address.partition("#")[2]
    if role.startswith("cite"):  # a key is the first author's name, the year, a word
        name_and_year = re.findall("[a-z]+|[0-9]+", target)[:2]
        return all(part in without_accents(link.title) for part in name_and_year)
    if role == "term":
        letters = re.sub(r"[^\w-]", "", without_accents(target).replace(" ", "-"))
        return anchor.lower() == f"term-{letters}"
    return anchor == (f"equation-{target}" if role == "eq" else target)


def target_of(content: str) -> str:
    """Return what a role points to, with or without words of its own.

    >>> target_of("lem-mean"), target_of("the lemma <lem-mean>")
    ('lem-mean', 'lem-mean')
    """
    return " ".join(content.removesuffix(">").rpartition("<")[2].split())


def included_code(found: re.Match[str], folder: Path) -> str:
    """Return a block with the code that ``literalinclude`` asks for."""
    options: dict[str, Any] = {
        name: value.strip('"')
        for name, value in re.findall(r"^:([\w-]+): (.*)$", found[3], re.MULTILINE)
    }
    if "dedent" in options:
        options["dedent"] = int(options["dedent"])
    code, _ = LiteralIncludeReader(str(folder / found[2]), options, Config()).read()
    return f"{found[1]}python\n{code.rstrip()}\n{found[1]}"


def own_labels(notebook: Any) -> set[str]:
    """Return the labels that the notebook's text defines."""
    texts = [cell.source for cell in notebook.cells if cell.cell_type == "markdown"]
    return {"".join(found) for text in texts for found in LABEL.findall(text)}


def rewrite_references(notebook: Any, page: str, address: str, folder: Path) -> None:
    """Change the notebook's text so that its references work without the book.

    ``page`` is the HTML of the built page and ``address`` its place in the site; files
    are included from ``folder``. A reference that the page does not have is left alone.
    """
    links, own = page_links(page), own_labels(notebook)

    def linked(role: re.Match[str]) -> str:
        target = target_of(role[2])
        if target in own:
            return role[0]
        for place, link in enumerate(links):
            if leads_to(link, role[1], target):
                del links[: place + 1]  # the page has them in the order of the text
                there = SITE + urljoin(address, link.address)
                return NEW_TAB.format(address=there, text=link.text)
        return role[0]

    for cell in notebook.cells:
        if cell.cell_type == "markdown":
            text = ROLE.sub(linked, INDEX.sub("", cell.source))
            text = MARGIN.sub(r"\1{note}", text)
            cell.source = INCLUDE.sub(lambda found: included_code(found, folder), text)
