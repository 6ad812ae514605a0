"""Every chapter has its parts, and what the pages refer to is there.

The pages themselves are built with warnings as errors, so a broken reference fails
there; the notebooks are run and compared by nbval.  Here is what neither can see.
"""

import re

import numpy as np
import pytest

from tests.pages import BOOK, ROOT, chapters, fingerprints, pages, prose_of, words

CHAPTERS = [pytest.param(page, id=page.name) for page in chapters()]
PAGES = [pytest.param(page, id=page.name) for page in pages()]
NOTEBOOKS = [pytest.param(page, id=page.name) for page in pages() if page.code]

every_chapter = pytest.mark.parametrize("page", CHAPTERS)
every_page = pytest.mark.parametrize("page", PAGES)
every_notebook = pytest.mark.parametrize("page", NOTEBOOKS)

CITATION = re.compile(r"\{cite:[a-z]+\}`([^`]+)`")
TERM = re.compile(r"\{term\}`(?:[^`<]*<)?([^`<>]+)>?`")


def headings(page, level=2):
    return re.findall(rf"(?m)^{'#' * level} (.+)$", page.text)


def bibliography():
    text = (BOOK / "references.bib").read_text(encoding="utf-8")
    return re.findall(r"(?m)^@\w+\{([^,\s]+),", text)


def glossary():
    """The terms of the glossary, in lower case."""
    page = next(page for page in pages() if page.name == "glossary")
    body = re.search(r"(?ms)^`{3,}\{glossary\}\n(.*?)^`{3,}", page.text)
    assert body
    lines = [line for line in body[1].splitlines() if line and not line.startswith(":")]
    return [line.strip() for line in lines if not line.startswith((" ", "\t"))]


# The parts of a chapter


def test_the_book_has_its_chapters_in_order():
    assert [page.name for page in chapters()] == [
        "model",
        "privacy",
        "nonprivate",
        "ideal",
        "concentration",
        "first_guesses",
        "public_size",
        "private_k",
        "wrong_model",
        "lower_bounds",
    ]


@every_chapter
def test_a_chapter_opens_with_objectives_prerequisites_and_reading_time(page):
    first = page.markdown[0]
    label = f"chapter-{page.name.replace('_', '-')}"
    assert first.startswith(f"({label})=\n# ")
    opening = first.split("{admonition} Before you start", 1)[1]
    able, know = opening.split("**You should know**", 1)
    assert "**You will be able to**" in able
    assert 3 <= len(re.findall(r"(?m)^- ", able)) <= 7
    assert re.search(r"\*\*It takes\*\* about \w+[\w ]* minutes", know)


@every_chapter
def test_a_chapter_asks_a_question_first_and_checks_its_answer(page):
    titles = headings(page)
    assert titles[0] == "The question"
    assert "Does it tell the truth?" in titles
    assert titles[-3:] == ["Summary", "Exercises", "Further reading"]


@every_chapter
def test_a_chapter_states_and_proves_and_shows_the_library_s_code(page):
    assert re.search(r"\{prf:(theorem|lemma|proposition)\}", page.text)
    assert "**The idea of the proof.**" in page.text
    assert "{prf:proof}" in page.text
    assert "{literalinclude} ../hetlit/" in page.text


@every_chapter
def test_an_algorithm_stands_in_pseudo_code_beside_its_code(page):
    if page.name in ("nonprivate", "ideal", "first_guesses", "public_size"):
        assert "{prf:algorithm}" in page.text
    if page.name == "private_k":
        assert page.text.count("{prf:algorithm}") >= 3


@every_chapter
def test_a_chapter_says_where_it_departs_from_the_paper(page):
    assert "{admonition} The paper says" in page.text


@every_chapter
def test_a_chapter_summarises_and_points_further(page):
    summary = page.text.split("## Summary", 1)[1].split("## Exercises", 1)[0]
    assert len(re.findall(r"(?m)^- ", summary)) >= 3
    further = page.text.split("## Further reading", 1)[1]
    assert CITATION.search(further)


@every_chapter
def test_a_chapter_has_three_to_six_exercises_each_with_a_folded_solution(page):
    asked = re.findall(r"\{exercise\} [^\n]+\n:label: (ex-[\w-]+)", page.text)
    assert 3 <= len(asked) <= 6
    answers = re.findall(
        r"\{solution(?:-start)?\} (ex-[\w-]+)\n:class: dropdown", page.text
    )
    assert sorted(answers) == sorted(asked)
    assert any("open" in name for name in asked)


@every_chapter
def test_every_figure_has_alt_text_a_caption_and_numbers_printed_before_it(page):
    figures = 0
    printed = False
    for cell in page.cells:
        if cell.cell_type != "code":
            continue
        printed |= any(output.output_type == "stream" for output in cell.outputs)
        if "plots." not in cell.source:
            continue
        figures += 1
        shown = cell.metadata["mystnb"]
        assert shown["figure"]["name"].startswith("fig-")
        assert len(shown["figure"]["caption"]) > 20
        assert len(shown["image"]["alt"]) > 60
        assert printed, f"no numbers are printed before {cell.id}"
        printed = False
    assert figures >= 4


@every_page
def test_every_other_image_has_alt_text(page):
    for block in re.findall(r"(?ms)^`{3,}\{(?:figure|image)\}.*?^`{3,}", page.text):
        assert re.search(r"(?m)^:alt: \S.{40,}", block), block
    for alt in re.findall(r"!\[([^\]]*)\]\(", page.text):
        assert len(alt) > 40


# Cells


@every_notebook
def test_code_fits_79_columns(page):
    assert [
        line for source in page.code for line in source.splitlines() if len(line) > 79
    ] == []


@every_notebook
def test_all_randomness_comes_from_one_seeded_generator_of_the_setup_cell(page):
    code = "\n".join(page.code)
    seeded = re.findall(r"default_rng\((.*?)\)", code)
    assert len(seeded) <= 1
    assert all(re.fullmatch(r"\d+", seed) for seed in seeded)
    assert "default_rng" not in "\n".join(page.code[1:])
    for other in (r"np\.random\.(?!default_rng)", r"^\s*import random", "SeedSequence"):
        assert not re.search(other, code, re.M)
    for moment in ("time.", "datetime", "perf_counter", "%time"):
        assert moment not in code


@every_notebook
def test_a_cell_fits_a_screen(page):
    assert max(len(source.splitlines()) for source in page.code) <= 40


@every_chapter
def test_a_chapter_asserts_what_it_claims(page):
    assert sum("assert " in source for source in page.code) >= 5


# References


def test_every_cited_work_is_in_the_bibliography_and_every_entry_is_cited():
    cited = {
        key.strip()
        for page in pages()
        for keys in CITATION.findall(page.text)
        for key in keys.split(",")
    }
    assert sorted(cited) == sorted(bibliography())


def test_the_glossary_is_in_order_and_every_term_is_linked_somewhere():
    terms = glossary()
    assert terms == sorted(terms, key=str.lower)
    linked = {term.lower() for page in pages() for term in TERM.findall(page.text)}
    assert {term.lower() for term in terms} <= linked


@every_chapter
def test_a_chapter_links_each_term_of_the_glossary_that_it_uses(page):
    linked = {term.lower() for term in TERM.findall(page.text)}
    prose = " ".join(page.prose.lower().split())
    used = [
        term
        for term in glossary()
        if re.search(rf"\b{re.escape(term.lower())}\b", prose)
    ]
    assert sorted(term for term in used if term.lower() not in linked) == []


# Prose


PUBLISHED = set(np.load(ROOT / "tests" / "paper_fingerprints.npy").tolist())


@every_page
def test_no_eight_words_in_a_row_are_taken_from_the_paper(page):
    texts = [page.prose]
    for cell in page.cells:
        shown = cell.metadata.get("mystnb", {})
        texts.append(shown.get("figure", {}).get("caption", ""))
        texts.append(shown.get("image", {}).get("alt", ""))
    for text in texts:
        listed = words(prose_of(text))
        taken = [
            " ".join(listed[place : place + 8])
            for place, number in enumerate(fingerprints(listed).tolist())
            if number in PUBLISHED
        ]
        assert taken == []


def test_the_comparison_with_the_paper_can_fail():
    title = "mean estimation with user level privacy under data heterogeneity"
    assert PUBLISHED.intersection(fingerprints(words(title)).tolist())


def numbers_in(text):
    """All numbers that a text writes out, as floats."""
    found = re.findall(r"-?\d[\d,_]*(?:\.\d+)?(?:e[+-]?\d+)?", text)
    return {float(re.sub("[,_]", "", number)) for number in found}


def decimals_in_prose(page):
    """Numbers like 0.34, 12.5% or 3,840.5 outside formulas, code and solutions."""
    text = re.sub(r"(?ms)^```\{solution\}.*?^```", " ", page.text)
    text = re.sub(r"(?s)\{solution-start\}.*?\{solution-end\}", " ", text)
    prose = re.sub(r"Sections? [\d.]+(?: and [\d.]+)?", " ", prose_of(text))
    return re.findall(r"(?<![\w.])(\d[\d,]*\.\d+)", prose)


@every_chapter
def test_every_decimal_number_in_prose_is_in_a_cell_or_a_formula(page):
    # A cell's numbers come from the seed of its notebook, and nbval compares them; a
    # number that stands in prose alone would be checked by nobody.
    outputs = [
        output.get("text", "")
        for cell in page.cells
        if cell.cell_type == "code"
        for output in cell.outputs
    ]
    formulas = re.findall(r"\$[^$]*\$", page.text)
    known = numbers_in("\n".join([*page.code, *outputs, *formulas]))
    scales = (1.0, 100.0, 1000.0)  # a per cent, a thousandth
    alone = []
    for written in decimals_in_prose(page):
        value, places = float(written.replace(",", "")), len(written.split(".")[1])
        if not any(
            abs(round(scale * number, places) - value) < 10.0 ** -(places + 2)
            for scale in scales
            for number in known
        ):
            alone.append(written)
    assert alone == []


@every_page
def test_no_unfinished_words(page):
    text = page.text + "\n".join(page.code)
    assert not re.search(r"\b(TODO|FIXME|TBD|XXX|lorem ipsum)\b", text, re.I)
