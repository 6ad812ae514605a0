"""Sphinx extension: the claim ledger, from its data to its pages.

`book/paper.toml` lists what the paper numbers, and the passages the book relies on;
`book/claims.toml` has one row for each of them.  Three directives show the rows::

    {claims} 4.2               the claims of a section of the paper
    {claim-counts}             how many claims have which status
    {claim-tests} tests/test_x.py    the source of the tests that the claims name

`tests/book/test_claims.py` checks that every row points somewhere, and
`tests/conftest.py` that no test it names is skipped.
"""

from __future__ import annotations

import ast
import re
import tomllib
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

BOOK = Path(__file__).resolve().parents[2] / "book"

# From best to worst, with the colour of the badge.
STATUSES = {
    "holds": "success",
    "holds after repair": "primary",
    "refuted": "danger",
    "unproved": "warning",
    "not used": "muted",
}


@dataclass(frozen=True)
class Item:
    """Something that the paper states: a lemma, an equation, a passage of its text."""

    kind: str
    key: str
    section: str
    number: str = ""

    @property
    def name(self) -> str:
        """What to call it, with the number that LaTeX gives it.

        >>> Item("lemma", "lem.sigi", "2", "2.1").name
        'Lemma 2.1'
        >>> Item("passage", "two kinds of neighbours", "2.1").name
        'Section 2.1, two kinds of neighbours'
        >>> Item("equation", "removingdata", "B", "17").name
        'Equation (17)'
        """
        if self.kind == "passage":
            return f"{section_name(self.section)}, {self.key}"
        if self.kind == "equation":
            return f"Equation ({self.number})" if self.number else "Display"
        return f"{self.kind.capitalize()} {self.number}"

    @property
    def label(self) -> str:
        """The target of links to its row."""
        return "claim-" + slug(self.key)

    @property
    def has_latex_label(self) -> bool:
        """Whether `key` is the label in the paper's source, not a name of ours."""
        return " " not in self.key


@dataclass(frozen=True)
class Claim:
    """A row of the ledger: what is said, whether it is true, and where to see it.

    says, remark : MyST text, the claim in our words and what to know about it
    book : labels of the book that explain it
    code : dotted names in hetlit that implement it
    tests : "tests/test_file.py::test_function" that check it
    errata : labels of the errata that correct it
    """

    item: Item
    says: str
    status: str
    remark: str = ""
    book: tuple[str, ...] = ()
    code: tuple[str, ...] = ()
    tests: tuple[str, ...] = ()
    errata: tuple[str, ...] = field(default=())


def slug(text: str) -> str:
    """Return text as part of a label.

    >>> slug("algo:varianceestimate")
    'algo-varianceestimate'
    """
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")


def section_name(section: str) -> str:
    """Return what a section of the paper is called.

    >>> section_name("4.2"), section_name("F")
    ('Section 4.2', 'Appendix F')
    """
    return ("Appendix " if section[0].isalpha() else "Section ") + section


def items(book: Path = BOOK) -> list[Item]:
    """Return what the paper states, in its order."""
    listed = tomllib.loads((book / "paper.toml").read_text(encoding="utf-8"))
    return [Item(**entry) for entry in listed["items"]]


def claims(book: Path = BOOK) -> list[Claim]:
    """Return the ledger, in the order of the paper."""
    known = {item.key: item for item in items(book)}
    rows = tomllib.loads((book / "claims.toml").read_text(encoding="utf-8"))["claim"]
    places = {key: place for place, key in enumerate(known)}
    found = []
    for row in sorted(rows, key=lambda row: places.get(row["item"], -1)):
        if row["item"] not in known:
            raise ValueError(f"claims.toml: {row['item']!r} is not in paper.toml")
        values: dict[str, Any] = {
            name: tuple(value) if isinstance(value, list) else value.strip()
            for name, value in row.items()
        }
        found.append(Claim(**(values | {"item": known[row["item"]]})))
    return found


def named_tests(ledger: list[Claim]) -> dict[str, list[str]]:
    """Return the names of the tests in each file, without repetition."""
    files: dict[str, list[str]] = {}
    for claim in ledger:
        for test in claim.tests:
            file, name = test.split("::")
            if name not in files.setdefault(file, []):
                files[file].append(name)
    return files


def anchor(test: str) -> str:
    """Return the target of links to a test's source.

    >>> anchor("tests/users/test_table.py::test_rates_differ")
    'check-users-table-rates-differ'
    """
    file, name = test.removeprefix("tests/").split("::")
    parts = *file.removesuffix(".py").split("/"), name
    return "check-" + slug("-".join(part.removeprefix("test_") for part in parts))


def sentences(tests: tuple[str, ...]) -> list[str]:
    """Return the names of tests as words, with their files where names repeat.

    >>> sentences(("test_a.py::test_rates_differ",))
    ['rates differ']
    >>> sentences(("test_a.py::test_it_is_private", "test_b.py::test_it_is_private"))
    ['it is private (test_a.py)', 'it is private (test_b.py)']
    """
    split = [test.split("::") for test in tests]
    often = Counter(name for _, name in split)
    return [
        name.removeprefix("test_").replace("_", " ")
        + (f" ({file})" if often[name] > 1 else "")
        for file, name in split
    ]


def reference(label: str) -> str:
    """Return the MyST link to a label of the book.

    >>> reference("lem-user-variance"), reference("eq-user-variance")
    ('{prf:ref}`lem-user-variance`', 'equation {eq}`eq-user-variance`')
    >>> reference("chapter-model")
    '{ref}`chapter-model`'
    """
    proofs = ("alg-", "cor-", "def-", "example-", "lem-", "prop-", "thm-")
    if label.startswith(proofs):
        return f"{{prf:ref}}`{label}`"
    if label.startswith("eq-"):
        return f"equation {{eq}}`{label}`"
    return f"{{ref}}`{label}`"


def markdown(claim: Claim) -> str:
    """Return one claim as MyST text."""
    item = claim.item
    title = f"**{item.name}**"
    if item.has_latex_label:
        title += f" `{item.key}`"
    links = {
        "In the book": ", ".join(map(reference, claim.book)),
        "In the library": ", ".join(f"{{py:obj}}`{name}`" for name in claim.code),
        "Checked by": "; ".join(
            f"{{ref}}`{words} <{anchor(test)}>`"
            for test, words in zip(claim.tests, sentences(claim.tests), strict=True)
        ),
        "Errata": ", ".join(map(reference, claim.errata)),
    }
    body = "\n\n".join(filter(None, (claim.says, claim.remark)))
    fields = "\n".join(f":{name}: {value}" for name, value in links.items() if value)
    badge = f"{{bdg-{STATUSES[claim.status]}}}`{claim.status}`"
    return "\n".join(
        [
            f"({item.label})=",
            "::::{card}",
            ":class-card: claim sd-mb-3",
            ":shadow: none",
            ":class-body: sd-py-2",
            "",
            f"{title} {badge}",
            "",
            body,
            "",
            fields,
            "::::",
            "",
        ]
    )


def first_lines(path: Path) -> dict[str, int]:
    """Return where each function of a module starts."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    return {
        node.name: node.lineno
        for node in tree.body
        if isinstance(node, ast.FunctionDef)
    }


class Ledger(SphinxDirective):
    """A directive that reads the ledger and writes MyST text."""

    has_content = False
    optional_arguments = 1

    def ledger(self) -> list[Claim]:
        """Return the ledger of the book that is being built."""
        book = Path(self.env.srcdir) / "book"
        for source in (book / "paper.toml", book / "claims.toml", Path(__file__)):
            self.env.note_dependency(str(source))
        return claims(book)

    def text(self) -> str:
        """Return what stands in the directive's place."""
        raise NotImplementedError

    def run(self) -> list[Any]:
        """Parse the text."""
        return self.parse_text_to_nodes(self.text())


class Claims(Ledger):
    """The claims of one section of the paper, its subsections included."""

    required_arguments, optional_arguments = 1, 0

    def text(self) -> str:
        """Return the claims, one card each."""
        section = self.arguments[0]
        chosen = [
            markdown(claim)
            for claim in self.ledger()
            if f"{claim.item.section}.".startswith(f"{section}.")
        ]
        if not chosen:
            raise self.error(f"no claim of the paper's section {section!r}")
        return "\n".join(chosen)


class ClaimCounts(Ledger):
    """A table of how many claims have which status."""

    optional_arguments = 0

    def text(self) -> str:
        """Return the table."""
        ledger = self.ledger()
        counts = Counter(claim.status for claim in ledger)
        lines = ["| status | claims |", "|:--|--:|"]
        lines += [
            f"| {{bdg-{colour}}}`{status}` | {counts[status]} |"
            for status, colour in STATUSES.items()
        ]
        return "\n".join([*lines, f"| all | {len(ledger)} |"])


class ClaimTests(Ledger):
    """The source of the tests in one file that the ledger names."""

    required_arguments, optional_arguments = 1, 0

    def text(self) -> str:
        """Return the tests in the order of their file."""
        file, ledger = self.arguments[0], self.ledger()
        path = Path(self.env.srcdir) / file
        self.env.note_dependency(str(path))
        starts = first_lines(path)
        parts = []
        for name in sorted(named_tests(ledger)[file], key=lambda name: starts[name]):
            behind = ", ".join(
                f"{{ref}}`{claim.item.name} <{claim.item.label}>`"
                for claim in ledger
                if f"{file}::{name}" in claim.tests
            )
            parts += [
                f"({anchor(f'{file}::{name}')})=",
                f"Behind {behind}:",
                "",
                f"```{{literalinclude}} /{file}",
                f":pyobject: {name}",
                ":language: python",
                "```",
                "",
            ]
        return "\n".join(parts)


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the directives."""
    app.add_directive("claims", Claims)
    app.add_directive("claim-counts", ClaimCounts)
    app.add_directive("claim-tests", ClaimTests)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
