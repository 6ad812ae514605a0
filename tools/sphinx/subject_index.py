"""Sphinx extension: the general index as a page of the book, with a place in its menu.

``{subject-index}`` stands for a list of all index entries of all pages.  Sphinx's own
index is not a page that a table of contents can name.
"""

from __future__ import annotations

from typing import Any

from docutils import nodes  # type: ignore[import-untyped]
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment
from sphinx.environment.adapters.indexentries import IndexEntries
from sphinx.util.docutils import SphinxDirective


class subject_index(nodes.General, nodes.Element):  # type: ignore[misc]
    """Where the index will stand once all pages have been read."""


class SubjectIndex(SphinxDirective):
    """The directive that puts the index here."""

    def run(self) -> list[Any]:
        """Leave a mark, to be replaced by `fill`."""
        return [subject_index()]


class From:
    """A builder seen from one page: links are relative to it."""

    def __init__(self, builder: Any, page: str) -> None:
        self.builder, self.page = builder, page

    def get_relative_uri(self, _: str, to: str, typ: str | None = None) -> str:
        """Return the link from the page to another one."""
        return str(self.builder.get_relative_uri(self.page, to, typ))


def entry(name: str, links: list[Any], below: list[Any]) -> Any:
    """Return one entry with its links and those below it as a list item."""
    line = nodes.paragraph()
    first, *others = links or [("", "")]
    if first[1]:
        line += nodes.reference(name, name, internal=True, refuri=first[1])
    else:
        line += nodes.Text(name)
    for number, (_, uri) in enumerate(others, start=2):
        line += nodes.Text(", ")
        text = f"[{number}]"
        line += nodes.reference(text, text, internal=True, refuri=uri)
    item = nodes.list_item("", line)
    if below:
        item += nodes.bullet_list("", *(entry(name, to, []) for name, to in below))
    return item


def fill(app: Sphinx, doctree: Any, page: str) -> None:
    """Replace each mark by the index."""
    for mark in list(doctree.findall(subject_index)):
        found = IndexEntries(app.env).create_index(From(app.builder, page))  # type: ignore[arg-type]
        parts = nodes.container(classes=["subject-index"])
        for letter, entries in found:
            parts += nodes.rubric(letter, letter)
            parts += nodes.bullet_list(
                "", *(entry(name, to, below) for name, (to, below, _) in entries)
            )
        mark.replace_self(parts)


def always_again(
    app: Sphinx, env: BuildEnvironment, added: Any, changed: Any, removed: Any
) -> list[str]:
    """Return the pages with an index: any other page may have changed it."""
    return sorted(set(getattr(env, "subject_index_pages", ())) & env.found_docs)


def remember(app: Sphinx, doctree: Any) -> None:
    """Note which pages have an index."""
    if any(True for _ in doctree.findall(subject_index)):
        pages: set[str] = getattr(app.env, "subject_index_pages", set())
        app.env.subject_index_pages = pages | {app.env.docname}  # type: ignore[attr-defined]


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the directive and fill it in last."""
    app.add_node(subject_index)
    app.add_directive("subject-index", SubjectIndex)
    app.connect("doctree-read", remember)
    app.connect("env-get-outdated", always_again)
    app.connect("doctree-resolved", fill)
    return {"parallel_read_safe": False, "parallel_write_safe": True}
