"""Where no book is around a notebook, its references lead to the book."""

import nbformat
import pytest

from tools.lite_references import own_labels, page_links, rewrite_references
from tools.notebooks import BOOK

LINK = '<a class="reference internal" href="{}">{}</a>'
CITATION = (
    '<span class="bibtex-citation" id="id1">{authors}[<a class="reference internal" '
    'href="bibliography.html#id6" title="Harald Cramér. 1946.">Cra46</a>]</span>'
)


def rewritten(text, page="", labels="", folder=BOOK):
    """Return what becomes of a text on a page, where another cell defines labels."""
    cells = [nbformat.v4.new_markdown_cell(part) for part in (text, labels)]
    notebook = nbformat.v4.new_notebook(cells=cells)
    rewrite_references(notebook, page, "book/ideal.html", folder)
    return notebook.cells[0].source


@pytest.mark.parametrize(
    ("role", "address", "text"),
    [
        ("{ref}`chapter-model`", "model.html#chapter-model", "The model"),
        ("{prf:ref}`lem-mean`", "model.html#lem-mean", "Lemma 1.2"),
        ("{prf:ref}`the lemma <lem-mean>`", "model.html#lem-mean", "the lemma"),
        ("{numref}`ex-by-hand`", "model.html#ex-by-hand", "Exercise 1.1"),
        ("{eq}`eq-mean`", "model.html#equation-eq-mean", "(1.3)"),
        ("{term}`sub-Gaussian`", "glossary.html#term-sub-Gaussian", "sub-Gaussian"),
        ("{term}`noisy\nratio`", "glossary.html#term-noisy-ratio", "noisy ratio"),
        ("{term}`Cramér–Rao`", "glossary.html#term-CramerRao", "Cramér–Rao"),
    ],
)
def test_a_reference_becomes_a_link_to_the_book(role, address, text):
    link = f'<a href="../../book/{address}" target="_blank">{text}</a>'
    assert rewritten(f"See {role}.", LINK.format(address, text)) == f"See {link}."


def test_a_figure_that_code_draws_is_on_the_page_of_the_same_chapter():
    text = rewritten("{numref}`fig-water`", LINK.format("#fig-water", "Fig. 4.5"))
    there = "../../book/ideal.html#fig-water"
    assert text == f'<a href="{there}" target="_blank">Fig. 4.5</a>'


@pytest.mark.parametrize(
    ("role", "authors", "text"),
    [("cite:t", "Cramér <em>et al.</em> ", "Cramér et al. "), ("cite:p", "", "")],
)
def test_a_citation_reads_as_on_the_page(role, authors, text):
    page = CITATION.format(authors=authors)
    link = '<a href="../../book/bibliography.html#id6" target="_blank">{}[Cra46]</a>'
    assert rewritten(f"{{{role}}}`cramer1946m`", page) == link.format(text)


@pytest.mark.parametrize("key", ["cramer1947m", "rao1946m"])
def test_a_citation_of_another_work_is_not_taken_for_it(key):
    role = f"{{cite:t}}`{key}`"
    assert rewritten(role, CITATION.format(authors="Cramér ")) == role


@pytest.mark.parametrize("labels", ["(lem-a)=\n# A", ":label: lem-a", "$$x$$ (lem-a)"])
def test_what_the_notebook_defines_stays(labels):
    page = LINK.format("#lem-a", "Lemma 1")
    assert rewritten("{prf:ref}`lem-a`", page, labels) == "{prf:ref}`lem-a`"


def test_what_the_page_does_not_have_stays():
    assert rewritten("{ref}`nowhere`", LINK.format("#here", "Here")) == "{ref}`nowhere`"


def test_two_references_to_one_place_keep_their_own_words():
    page = LINK.format("a.html#x", "the lemma") + LINK.format("a.html#x", "Lemma 2")
    text = rewritten("{prf:ref}`the lemma <x>`, {prf:ref}`x`", page)
    assert text.index("the lemma</a>") < text.index("Lemma 2</a>")


def test_links_that_the_text_does_not_have_are_passed_over():
    page = LINK.format("#ex-a", "Exercise 1") + LINK.format("a.html#thm-b", "Theorem 2")
    assert [link.text for link in page_links(page)] == ["Exercise 1", "Theorem 2"]
    assert "Theorem 2</a>" in rewritten("{prf:ref}`thm-b`", page)


def test_included_code_is_the_code(tmp_path):
    source = (
        "import os\n\n\nclass A:\n    def f(self):\n        x = 1\n        return x\n"
    )
    (tmp_path / "code.py").write_text(source, encoding="utf-8")
    start = "Read:\n\n```{literalinclude} code.py\n:pyobject: A.f\n"
    whole = rewritten(start + ":language: python\n:dedent: 4\n```", folder=tmp_path)
    code = "def f(self):\n    x = 1\n    return x"
    assert whole == f"Read:\n\n```python\n{code}\n```"
    part = rewritten(start + ':start-at: "return"\n:dedent: 8\n```', folder=tmp_path)
    assert part == "Read:\n\n```python\nreturn x\n```"


def test_entries_of_the_index_are_dropped_and_margins_become_notes():
    index = "```{index} single: a; b\n```\n```{index} c\n```\n\n"
    text = f"{index}# Title\n\n```{{margin}}\nM\n```"
    assert rewritten(text) == "# Title\n\n```{note}\nM\n```"


def test_code_cells_and_their_outputs_do_not_change():
    code = "x = '{ref}`a`'"
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(code)])
    rewrite_references(notebook, LINK.format("#a", "A"), "book/ideal.html", BOOK)
    assert notebook.cells[0].source == code
    assert own_labels(notebook) == set()
