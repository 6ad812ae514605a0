"""The book's pages, taken apart: prose, code, figures and references."""

import hashlib
import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import nbformat
import numpy as np
import yaml

ROOT = Path(__file__).resolve().parent.parent
BOOK = ROOT / "book"


@dataclass(frozen=True)
class Page:
    """A page: its path and the sources of its cells; a Markdown page is one cell."""

    path: Path
    markdown: tuple[str, ...]
    code: tuple[str, ...]
    cells: tuple

    @property
    def name(self) -> str:
        return self.path.stem

    @property
    def text(self) -> str:
        """The Markdown of the page."""
        return "\n\n".join(self.markdown)

    @property
    def prose(self) -> str:
        """The sentences of the page: no code, no formulas, no directives."""
        return prose_of(self.text)


@cache
def pages() -> tuple[Page, ...]:
    """Return all pages in the order of the table of contents."""
    contents = yaml.safe_load((ROOT / "_toc.yml").read_text(encoding="utf-8"))
    names = [contents["root"]]
    for part in contents["parts"]:
        names += [chapter["file"] for chapter in part["chapters"]]
    return tuple(page_of(name) for name in names)


def page_of(name: str) -> Page:
    """Return the page of this name, without its ending."""
    path = ROOT / f"{name}.ipynb"
    if not path.exists():
        path = path.with_suffix(".md")
        return Page(path, (path.read_text(encoding="utf-8"),), (), ())
    cells = tuple(nbformat.read(path, as_version=4).cells)
    markdown = tuple(c.source for c in cells if c.cell_type == "markdown")
    code = tuple(c.source for c in cells if c.cell_type == "code")
    return Page(path, markdown, code, cells)


def chapters() -> list[Page]:
    """Return the chapters: the notebooks of the numbered parts."""
    contents = yaml.safe_load((ROOT / "_toc.yml").read_text(encoding="utf-8"))
    numbered = {
        chapter["file"]
        for part in contents["parts"]
        if part.get("numbered")
        for chapter in part["chapters"]
    }
    return [
        p for p in pages() if str(p.path.relative_to(ROOT).with_suffix("")) in numbered
    ]


def prose_of(text: str) -> str:
    """Return Markdown without code, formulas, roles, options and directive lines."""
    text = re.sub(
        r"(?ms)^(`{3,}|:{3,})\{(?:literalinclude|code-block|eval-rst|index|"
        r"bibliography|margin_)[^\n]*\n.*?^\1\s*$",
        " ",
        text,
    )
    text = re.sub(r"(?ms)^```(?:console|python|text|bibtex)\n.*?^```\s*$", " ", text)
    text = re.sub(r"(?ms)^\$\$.*?^\$\$[^\n]*$", " ", text)
    text = re.sub(r"(?m)^[`:]{3,}.*$", " ", text)
    text = re.sub(r"(?m)^:[a-z-]+:.*$", " ", text)
    text = re.sub(r"(?m)^\([\w-]+\)=$", " ", text)
    text = re.sub(r"\{[a-z:]+\}`([^`<]*?)\s*(?:<[^`>]*>)?`", r" \1 ", text)
    text = re.sub(r"\$[^$]*\$", " ", text)
    text = re.sub(r"`[^`]*`", " ", text)
    return text


def words(text: str) -> list[str]:
    """Return the words of a text in lower case, without marks.

    >>> words("Don't count 2 users; COUNT users.")
    ['dont', 'count', 'users', 'count', 'users']
    """
    return re.findall(r"[a-z]+", text.lower().replace("'", "").replace("’", ""))


def fingerprints(listed: list[str], length: int = 8) -> np.ndarray:
    """Return one number for each run of `length` words, nearly surely different."""
    runs = (listed[i : i + length] for i in range(len(listed) - length + 1))
    digests = (hashlib.blake2b(" ".join(run).encode(), digest_size=8) for run in runs)
    return np.array([int.from_bytes(d.digest(), "big") for d in digests], np.uint64)
