"""Sphinx extension: docstrings, which are plain text first, read well as pages too.

A docstring says `optimal_weights` or `lem.sigi` in single backquotes, ends with the
name of its chapter, lists parameters as "name : what it is", and writes abs(x) as |x|.
Here the first three become links, to the API page, the claim ledger and the chapter;
the list becomes a list; and everything else is kept from being read as markup.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from docutils import nodes  # type: ignore[import-untyped]
from sphinx import addnodes
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment
from sphinx.util.docutils import SphinxRole
from sphinx.util.nodes import make_refnode

from tools.sphinx.claims import slug

# How docstrings call the chapters, and the chapters' labels.
CHAPTERS = {
    "The model": "chapter-model",
    "User-level privacy from scratch": "chapter-privacy",
    "Without privacy": "chapter-nonprivate",
    "The ideal private estimator": "chapter-ideal",
    "How wide is a user": "chapter-concentration",
    "First guesses": "chapter-first-guesses",
    "A realizable estimator": "chapter-public-size",
    "Private k": "chapter-private-k",
    "When the model is wrong": "chapter-wrong-model",
    "Lower bounds": "chapter-lower-bounds",
}

ROLE = "name-in-docstring"
CHAPTER = re.compile(r"\bChapter: ([^.`]+)\.")
DEFINED = re.compile(r"(\w+(?:, \w+)*) :(?: (.*))?$")
HEADING = re.compile(r"-{3,}$")
QUOTED = re.compile(r"(``.+?``|`[^`]+`)")
MARKUP = re.compile(r"[*|]|(?<=\w)_(?!\w)")


def escaped(line: str) -> str:
    r"""Return a line of text with everything but backquotes kept from being markup.

    >>> print(escaped("E|x|^3 and a*b, `c*d`, k_"))
    E\|x\|^3 and a\*b, `c*d`, k\_
    """
    parts = QUOTED.split(line)
    parts[::2] = [MARKUP.sub(r"\\\g<0>", part) for part in parts[::2]]
    return "".join(parts)


def definitions(paragraph: list[str]) -> list[str]:
    r"""Return lines "name : what it is" as a list of definitions in reStructuredText.

    >>> print("\n".join(definitions(["a, b : two numbers", "    of any size", "c :"])))
    **a**, **b**
        two numbers
        of any size
    **c**
    """
    lines = []
    for line in paragraph:
        found = DEFINED.match(line)
        if found:
            lines.append(", ".join(f"**{name}**" for name in found[1].split(", ")))
            lines += ["    " + escaped(found[2])] if found[2] else []
        else:
            lines.append("    " + escaped(line.strip()))
    return lines


def is_list(paragraph: list[str]) -> bool:
    """Return whether each line defines something or goes on to do so."""
    starts = [line for line in paragraph if not line.startswith("    ")]
    return bool(starts) and all(DEFINED.match(line) for line in starts)


def paragraphs(lines: list[str]) -> Iterator[list[str]]:
    """Return runs of lines without a blank one."""
    paragraph: list[str] = []
    for line in [*lines, ""]:
        if line.strip():
            paragraph.append(line)
        elif paragraph:
            yield paragraph
            paragraph = []


def linked(found: re.Match[str]) -> str:
    """Return the names of chapters in single backquotes, as links.

    >>> CHAPTER.sub(linked, "Chapter: The model; Private k.")
    'Chapter: `The model`; `Private k`.'
    """
    names = (f"`{name}`" for name in found[1].split("; "))
    return f"Chapter: {'; '.join(names)}."


def converted(lines: list[str]) -> list[str]:
    r"""Return a docstring as reStructuredText.

    >>> docstring = ["Add.", "", "Parameters", "----------", "x : a number", ""]
    >>> print("\n".join(converted([*docstring, "Chapter: The model."])))
    Add.
    <BLANKLINE>
    .. rubric:: Parameters
    <BLANKLINE>
    **x**
        a number
    <BLANKLINE>
    Chapter: `The model`.
    <BLANKLINE>
    """
    found: list[str] = []
    literal = False  # inside what follows a "::"
    for paragraph in paragraphs(lines):
        if len(paragraph) > 1 and HEADING.match(paragraph[1]):
            found += [f".. rubric:: {paragraph[0]}", ""]
            paragraph = paragraph[2:]
        literal = literal and paragraph[0].startswith(" ")
        if literal or paragraph[0].startswith(">>>"):
            found += paragraph
        elif is_list(paragraph):
            found += definitions(paragraph)
        else:
            text = CHAPTER.sub(linked, "\n".join(paragraph))
            found += [escaped(line) for line in text.splitlines()]
            literal = paragraph[-1].endswith("::")
        found.append("")
    return found


def convert(
    app: Sphinx, what: str, name: str, obj: Any, options: Any, lines: list[str]
) -> None:
    """Convert a docstring in place."""
    lines[:] = converted(lines)


class Name(SphinxRole):
    """A name in single backquotes: a link if there is something to link to."""

    def run(self) -> tuple[list[Any], list[Any]]:
        """Leave the decision to `resolve`, when all pages have been read."""
        node = addnodes.pending_xref(
            "", refdomain="", reftype=ROLE, reftarget=self.text, refexplicit=False
        )
        node["py:module"] = self.env.ref_context.get("py:module")
        known = self.text in CHAPTERS
        node += nodes.Text(self.text) if known else nodes.literal(self.text, self.text)
        return [node], []


def resolve(app: Sphinx, env: BuildEnvironment, node: Any, contents: Any) -> Any:
    """Return a link to the object, chapter or claim of this name, or the name."""
    if node["reftype"] != ROLE:
        return None
    target, page = node["reftarget"], node["refdoc"]

    objects: dict[str, Any] = env.get_domain("py").objects  # type: ignore[attr-defined]
    module = node.get("py:module") or "hetlit"
    for name in (target, f"{module}.{target}", f"hetlit.{target}"):
        if name in objects:
            to = objects[name]
            return make_refnode(app.builder, page, to.docname, to.node_id, contents)

    labels: dict[str, Any] = env.get_domain("std").anonlabels  # type: ignore[attr-defined]
    label = CHAPTERS.get(target, f"claim-{slug(target)}")
    if label in labels:
        to = labels[label]
        return make_refnode(app.builder, page, to[0], to[1], contents)
    return contents


def setup(app: Sphinx) -> dict[str, bool]:
    """Convert docstrings and resolve the names in them."""
    app.add_role(ROLE, Name())
    app.connect("autodoc-process-docstring", convert)
    app.connect("missing-reference", resolve)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
