"""The checks of pages find faults: each sees one that was planted, and no other."""

import pytest

from tests.browser.checks import (
    COLOUR_RULES,
    axe_complaints,
    formula_complaints,
    overflow_complaints,
)
from tests.browser.links import dead_links

SOUND = """<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><title>A page</title>
<link rel="icon" href="data:,">
<style>
  @media (prefers-color-scheme: dark) {{ body {{ background: black; color: {dark}; }} }}
</style></head>
<body><main><h1 id="top">A page</h1><p>Text, and \\(x\\) in <code>\\(code\\)</code>.</p>
{planted}</main></body></html>
"""
SOUND = SOUND.replace(
    "\\(x\\)", "<span class='math'><mjx-container></mjx-container></span>"
)


def page_with(planted="", dark="white"):
    return SOUND.format(planted=planted, dark=dark)


def complaints_about(visit):
    """Return the complaints of all checks."""
    page = visit.page
    found = formula_complaints(page) + overflow_complaints(page) + axe_complaints(page)
    return visit.problems + found


def test_sound_page_raises_no_complaint(open_html):
    assert complaints_about(open_html(page_with())) == []


@pytest.mark.parametrize(
    ("planted", "expected"),
    [
        ("<script>console.error('planted')</script>", "console error: planted"),
        ("<script>throw Error('planted')</script>", "page error: planted"),
        ("<img alt='none' src='none.png'>", "none.png (404)"),
        ("<div style='width: 2000px'>wide</div>", "px wide in 1280 px: <div"),
        (
            "<p style='color: #aaa; background: #fff'>pale</p>",
            "color-contrast (serious)",
        ),
        (
            "<img src='data:image/gif;base64,R0lGODlhAQABAAAAADs='>",
            "image-alt (critical)",
        ),
        ("<span class='math'>x</span>", "formula not set: x"),
        ("<p>Costs \\(x\\) each.</p>", "raw formula: Costs"),
        ("<p>$$x$$</p>", "raw formula: $$x$$"),
    ],
)
def test_planted_fault_is_found(open_html, planted, expected):
    found = complaints_about(open_html(page_with(planted)))
    assert any(expected in complaint for complaint in found), found


@pytest.mark.parametrize("address", ["https://example.org/a.js", "//192.0.2.1/a.js"])
def test_request_to_another_host_is_found_and_goes_nowhere(open_html, address):
    visit = open_html(page_with(f"<script src='{address}'></script>"))
    assert [url.split("//")[1] for url in visit.foreign_requests] == [
        address.split("//")[1]
    ]
    assert any("net::ERR" in error for error in visit.console_errors)


def test_fault_of_dark_mode_is_found_in_dark_mode_only(open_html):
    visit = open_html(page_with(dark="#333"))
    assert axe_complaints(visit.page) == []
    visit.page.emulate_media(color_scheme="dark")
    (heading, *_) = axe_complaints(visit.page, only=COLOUR_RULES)
    assert heading.startswith("color-contrast (serious): <h1")


@pytest.mark.parametrize(
    ("formula", "expected"),
    [(r"\frac{1}", "formula in error"), (r"\unheardof", "unknown macro")],
)
def test_formula_that_mathjax_cannot_set_is_found(open_page, formula, expected):
    page = open_page("book/notation.html").page
    assert formula_complaints(page) == []
    script = """async formula => {
        const span = document.querySelector("span.math");
        span.textContent = `\\\\(${formula}\\\\)`;
        await MathJax.typesetPromise([span]);
    }"""
    page.evaluate(script, formula)
    (complaint,) = formula_complaints(page)
    assert expected in complaint


def test_region_that_scrolls_but_not_by_keyboard_is_found(open_html):
    code = "<span>a</span> line that is too long to fit"
    box = f"<pre tabindex='-1' style='width: 50px; overflow: auto'>{code}</pre>"
    found = axe_complaints(open_html(page_with(box)).page, without=COLOUR_RULES)
    assert [text.split()[0] for text in found] == ["scrollable-region-focusable"]


def test_pale_word_among_thousands_in_code_is_found(open_html):
    words = "<span class='k'>for</span> " * 5000
    pale = "<span class='k' style='color: #bbb'>pale</span>"
    visit = open_html(page_with(f"<pre class='highlight'>{words}\n{pale}</pre>"))
    found = [text for text in axe_complaints(visit.page) if "contrast" in text]
    assert len(found) == 1
    assert "pale" in found[0]


@pytest.mark.parametrize(
    ("planted", "expected"),
    [
        ("<a href='#nowhere'>x</a>", ["<a> #nowhere: no such place in the page"]),
        (
            "<a href='other.html#no'>x</a>",
            ["<a> other.html#no: no such place in the page"],
        ),
        ("<a href='gone.html'>x</a>", ["<a> gone.html: no such file"]),
        ("<img src='gone.png'>", ["<img> gone.png: no such file"]),
        ("<a href='lite/?path=a'>x</a>", ["<a> lite/?path=a: no such file"]),
        ("<a href='#top'>x</a><a href='other.html?q=1#here'>x</a>", []),
        ("<a href='https://example.org/#x'>x</a><a href='mailto:a@b.c'>x</a>", []),
    ],
)
def test_dead_link_is_found(tmp_path, planted, expected):
    (tmp_path / "page.html").write_text(page_with(planted), encoding="utf-8")
    (tmp_path / "other.html").write_text("<p id='here'>x</p>", encoding="utf-8")
    assert dead_links(tmp_path, "page.html") == expected
