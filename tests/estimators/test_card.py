"""The card of an estimate: all of what can be released, and nothing else."""

from __future__ import annotations

import re
from html import unescape
from html.parser import HTMLParser
from typing import Any

import pytest

from hetlit.estimators.card import card
from hetlit.estimators.result import Estimate, Trace
from hetlit.estimators.uncertainty import Uncertainty
from hetlit.privacy.ledger import (
    LAPLACE,
    PUBLIC_SIZES,
    Cohort,
    Ledger,
    Mechanism,
    Step,
    not_private,
)

NASTY = '<script>alert("1 < 2 & 3")</script>'


def ledger(delta: float = 0.0, *notes: str) -> Ledger:
    noise = Mechanism(kind=LAPLACE, sensitivity=0.01, scale=0.02)
    step = Step("mean", ("everyone",), noise, 0.5, delta)
    return Ledger(PUBLIC_SIZES, (Cohort("everyone", 100, "all"),), (step,), notes)


SURE = Uncertainty(noise=0.01, sampling=0.02)
FULL = Estimate(
    0.3,
    ledger(1e-9, "a note", NASTY),
    Trace(noiseless=0.123987),
    SURE,
    ("first warning", NASTY),
)


class Reader(HTMLParser):
    """Checks that elements are closed in order; keeps tags, styles and text by tag."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: set[str] = set()
        self.attributes: list[tuple[str, str]] = []
        self.text: dict[str, list[str]] = {}
        self.feed(html)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        self.open.append(tag)
        self.tags.add(tag)
        self.attributes += attrs

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text.setdefault(self.open[-1], []).append(data)


def test_a_card_shows_value_interval_budget_and_warnings() -> None:
    text = Reader(card(FULL)).text
    low, high = FULL.interval()
    assert "0.3" in text["strong"]
    assert text["div"] == [
        f"95% interval: {low:.4g} to {high:.4g}",
        f"standard error: {FULL.standard_error:.3g}",
        "epsilon: 0.5",
        "delta: 1e-09",
        "trace: not private: never release the trace",
    ]
    assert text["li"] == ["first warning", NASTY]


def test_the_ledger_is_folded_and_has_the_notes() -> None:
    html = card(FULL)
    (folded,) = re.findall(r"<details>(.*?)</details>", html, re.DOTALL)
    summary, text = Reader(folded).text["summary"], Reader(folded).text["pre"]
    assert summary == ["Ledger"]
    assert text == [str(FULL.ledger)]
    assert f"note: {NASTY}" in text[0]


def test_what_is_not_there_is_not_shown() -> None:
    bare = Reader(card(Estimate(0.3, ledger())))
    assert bare.text["div"] == ["epsilon: 0.5"]
    assert "li" not in bare.tags
    assert Reader(card(Estimate(0.3, not_private(9, "mean")))).text["div"] == [
        "epsilon: inf"
    ]


def test_no_text_is_taken_for_a_tag() -> None:
    html = card(FULL)
    assert "<script" not in html
    assert unescape(html).count(NASTY) == 2
    assert Reader(html).tags <= {
        *("div", "strong", "ul", "li", "details", "summary", "pre")
    }


def test_a_card_shows_nothing_of_the_trace() -> None:
    assert "123987" not in card(FULL)
    assert "noiseless" not in card(FULL)


def test_a_card_has_the_colours_of_the_page_and_needs_no_script() -> None:
    for name, value in Reader(card(FULL)).attributes:
        assert name == "style"
        for rule in value.split(";"):
            key, _, setting = rule.strip().partition(": ")
            assert "#" not in setting
            assert "rgb(" not in setting
            if "color" in key or key == "background":
                assert setting in ("inherit", "transparent")
            if "color" in setting:
                assert "currentColor" in setting


@pytest.mark.parametrize("estimate", [FULL, Estimate(0.3, ledger())])
def test_jupyter_shows_the_card(estimate: Estimate) -> None:
    assert estimate._repr_html_() == card(estimate)
