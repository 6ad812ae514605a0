"""Every page of the book works for every reader: phone or desk, light or dark."""

import pytest

from tests.browser.checks import (
    COLOUR_RULES,
    axe_complaints,
    formula_complaints,
    overflow_complaints,
)
from tests.browser.links import dead_links
from tests.browser.visits import SITE

NOT_PAGES = {"_sources", "_static", "lite"}  # lite/ holds an app with tests of its own
DESK, PHONE = 1280, 390


def names_of_pages():
    """Return all pages of the site; the root only sends readers on to the first."""
    names = [file.relative_to(SITE) for file in sorted(SITE.rglob("*.html"))]
    pages = [str(name) for name in names if name.parts[0] not in NOT_PAGES]
    return [name for name in pages if name != "index.html"]


PAGES = names_of_pages() or ["no page yet"]


def listed(complaints):
    """Return complaints below each other, for the message of a failed test."""
    return "\n".join(["", *complaints])


def complaints_about(visit):
    """Return what is wrong with formulas and width, each with its kind."""
    return [
        *(f"formulas: {text}" for text in formula_complaints(visit.page)),
        *(f"overflow: {text}" for text in overflow_complaints(visit.page)),
    ]


@pytest.mark.parametrize("name", PAGES)
def test_page_is_sound_on_a_desk_in_light_and_dark(open_page, name):
    visit = open_page(name, width=DESK)
    complaints = complaints_about(visit)
    complaints += [f"axe, light: {text}" for text in axe_complaints(visit.page)]
    visit.switch_to("dark")
    in_dark = axe_complaints(visit.page, only=COLOUR_RULES)
    complaints += [f"axe, dark: {text}" for text in in_dark]
    complaints += visit.problems
    assert not complaints, listed(complaints)


@pytest.mark.parametrize("name", PAGES)
def test_page_is_sound_on_a_phone(open_page, name):
    visit = open_page(name, width=PHONE)
    complaints = complaints_about(visit)
    # Colours are those of a desk, where the test above looked at them.
    found = axe_complaints(visit.page, without=COLOUR_RULES)
    complaints += [f"axe: {text}" for text in found]
    complaints += visit.problems
    assert not complaints, listed(complaints)


@pytest.mark.parametrize("name", [*PAGES, "index.html"])
def test_links_lead_somewhere(name):
    complaints = dead_links(SITE, name)
    assert not complaints, listed(complaints)


def test_root_sends_readers_to_the_first_page(browser, site):
    page = browser.new_page()
    page.goto(site)
    page.wait_for_url("**/book/index.html")
    assert page.get_by_role("heading", level=1).inner_text().startswith("Heterogeneous")
    page.close()
