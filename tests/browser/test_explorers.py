"""Every explorer of the gallery: moved by its controls, compared with Python.

What is drawn is read back from the SVG, in pixels, and compared with the picture that
Python computes for the same parameters.
"""

import re
import time

import numpy as np
import pytest
from playwright.sync_api import expect

from hetlit.teaching.explorers import EXPLORERS
from hetlit.teaching.explorers.picture import Band, Points, coordinates
from hetlit.teaching.looks import NAMED
from tests.browser.visits import SITE

GALLERY = "book/gallery.html"
every_explorer = pytest.mark.parametrize("name", EXPLORERS)

# Where the first point of a marker's path lies, from its middle, in radii.
FIRST_POINT = {
    "o": (-1, 0),
    "s": (-1, -1),
    "^": (0, -1.2),
    "D": (0, -1.3),
    "v": (0, 1.2),
}


def element(visit, name):
    """The explorer, found by its title."""
    return visit.page.get_by_role("group", name=EXPLORERS[name].title, exact=True)


def control(visit, name, parameter):
    """A control of the explorer, found by its label."""
    return element(visit, name).get_by_label(parameter.label, exact=True)


def press(visit, name, parameter, *keys):
    """Move a control by keyboard and wait until nothing moves any more."""
    target = control(visit, name, parameter)
    target.focus()
    for key in keys:
        target.press(key)
    visit.page.wait_for_function(
        "id => !document.getElementById(id).hasAttribute('data-moving')",
        arg=f"explorer-{name}",
    )


def scaled(axis, values, start, end):
    """Values on an axis in pixels, as explorer.mjs draws them."""
    along = np.log if axis.log else np.asarray
    low, high = along(axis.low), along(axis.high)
    share = np.clip((along(values) - low) / (high - low), -3, 4)
    return start + (end - start) * share


def drawn_paths(visit, name):
    """The paths of all marks and the size of their panels, from back to front."""
    return element(visit, name).evaluate(
        """element => element.paths.map(path => {
            const frame = path.closest("g").querySelector(".explorer-frame");
            const { width, height } = frame.getBBox();
            return { d: path.getAttribute("d"), width, height };
        })"""
    )


def pairs(text):
    numbers = [float(part) for part in re.findall(r"-?\d+(?:\.\d+)?(?:e-?\d+)?", text)]
    return np.array(numbers).reshape(-1, 2)


def assert_drawn(visit, name, picture):
    """Compare what is drawn with a picture, within half a pixel."""
    marks = [(panel, mark) for panel in picture.panels for mark in panel.marks]
    paths = drawn_paths(visit, name)
    assert len(paths) == len(marks)
    for (panel, mark), path in zip(marks, paths, strict=True):
        at = coordinates(mark)
        x = scaled(panel.x, at["x"], 0, path["width"])
        heights = [
            scaled(panel.y, at[key], path["height"], 0) for key in at if key != "x"
        ]
        expected = np.transpose([x, heights[0]])
        if isinstance(mark, Band):
            there_and_back = np.transpose([x, heights[1]])[::-1]
            expected = np.concatenate([expected, there_and_back])
        if isinstance(mark, Points):
            radius = 3 if mark.small else 5
            starts = [piece.split("l")[0] for piece in path["d"].split("M")[1:]]
            starts = [re.findall(r"^[-\d.e]+ [-\d.e]+", start)[0] for start in starts]
            first = np.array(FIRST_POINT[NAMED[mark.look].marker])
            found = pairs(" ".join(starts)) - radius * first
            width, height = path["width"], path["height"]
            inside = (expected >= -1.5).all(axis=1)
            inside &= (expected <= np.array([width, height]) + 1.5).all(axis=1)
            expected = expected[inside]
        else:
            found = pairs(path["d"])
        assert found.shape == expected.shape, (name, mark.name)
        assert np.abs(found - expected).max(initial=0) < 0.5, (name, mark.name)


@every_explorer
def test_it_draws_what_python_computes(open_page, name):
    visit, explorer = open_page(GALLERY), EXPLORERS[name]
    assert_drawn(visit, name, explorer.at())
    reading = element(visit, name).locator(".explorer-reading")
    assert reading.text_content() == explorer.at().reading
    for parameter in explorer.on_page:
        middle = len(parameter.values) // 2
        output = visit.page.locator(f"output[for='explorer-{name}-{parameter.name}']")
        first = parameter.values.index(parameter.default)
        shown = {parameter.texts[first]}
        for keys, at in (
            (["End"], len(parameter.values) - 1),
            (["Home"], 0),
            (["ArrowRight"] * middle, middle),
        ):
            press(visit, name, parameter, *keys)
            picture = explorer.at(**{parameter.name: parameter.values[at]})
            assert_drawn(visit, name, picture)
            assert reading.text_content() == picture.reading
            assert output.text_content() == parameter.texts[at]
            shown.add(parameter.texts[at])
            if not parameter.is_choice:
                slider = control(visit, name, parameter)
                assert slider.get_attribute("aria-valuetext") == parameter.texts[at]
        assert len(shown) > 2
        element(visit, name).get_by_role("button", name="Reset").press("Enter")
        visit.page.wait_for_function("() => !document.querySelector('[data-moving]')")
        assert_drawn(visit, name, explorer.at())
    assert visit.problems == []


@every_explorer
def test_marks_are_drawn_from_back_to_front(open_page, name):
    in_order = element(open_page(GALLERY), name).evaluate(
        """element => element.paths.every((path, i, paths) => !i
            || paths[i - 1].compareDocumentPosition(path)
               & Node.DOCUMENT_POSITION_FOLLOWING)"""
    )
    assert in_order


@every_explorer
def test_both_parameters_move_together(open_page, name):
    visit, explorer = open_page(GALLERY, reduced_motion="reduce"), EXPLORERS[name]
    ends = {}
    for parameter, key in zip(explorer.on_page, ("End", "Home"), strict=False):
        press(visit, name, parameter, key)
        ends[parameter.name] = parameter.values[-1 if key == "End" else 0]
    assert_drawn(visit, name, explorer.at(**ends))


@every_explorer
def test_without_javascript_a_figure_with_alternative_text_remains(open_page, name):
    visit, explorer = open_page(GALLERY, java_script_enabled=False), EXPLORERS[name]
    box = visit.page.locator(f"#explorer-{name}")
    image = box.locator("img")
    assert image.get_attribute("alt") == explorer.description
    assert image.bounding_box()["width"] > 300
    assert box.locator("input, select, button").count() == 0
    text = box.inner_text()
    for said in (explorer.title, explorer.setting_on_page, explorer.at().reading):
        assert said in text
    for parameter in explorer.on_page:
        assert f"{parameter.label} = {parameter.default_text}" in text


@pytest.mark.parametrize("width", [390, 1280])
def test_drawings_fit_their_explorers_and_texts_keep_their_size(open_page, width):
    visit = open_page(GALLERY, width=width)
    for name in EXPLORERS:
        box = element(visit, name).bounding_box()
        drawing = element(visit, name).locator(".explorer-stage > svg")
        shown = drawing.bounding_box()
        assert box["x"] <= shown["x"]
        assert shown["x"] + shown["width"] <= box["x"] + box["width"]
        # One unit of the drawing is one pixel, so that 13 px of text stay 13 px.
        assert abs(float(drawing.get_attribute("width")) - shown["width"]) < 1
        for text in drawing.locator("text").all():
            place = text.bounding_box()
            assert place["x"] >= shown["x"] - 1, (name, text.text_content())
            right = shown["x"] + shown["width"]
            assert place["x"] + place["width"] <= right + 1, text.text_content()


def drawings_on_the_way(visit, name, parameter):
    """What is drawn before a slider goes to its end, half a glide later, and at last.

    The page's clock is stopped and set on, so that a busy machine is no matter.
    """
    visit.page.clock.install()
    visit.page.clock.pause_at(time.time() + 60)
    seen = [drawn_paths(visit, name)]
    control(visit, name, parameter).press("End")
    for _ in range(2):
        visit.page.clock.run_for(150)
        seen.append(drawn_paths(visit, name))
    return seen


def test_pictures_glide_unless_the_reader_asked_for_less_motion(open_page):
    size = EXPLORERS["variance"].parameters[0]
    before, between, after = drawings_on_the_way(open_page(GALLERY), "variance", size)
    assert between not in (before, after)
    still = open_page(GALLERY, reduced_motion="reduce")
    assert drawings_on_the_way(still, "variance", size) == [before, after, after]


def test_a_window_that_changes_while_a_picture_moves_leaves_it_right(open_page):
    visit, explorer = open_page(GALLERY), EXPLORERS["variance"]
    size = explorer.parameters[0]
    control(visit, "variance", size).press("End")
    visit.page.set_viewport_size({"width": 500, "height": 900})
    visit.page.wait_for_function(
        """element => !element.hasAttribute("data-moving") && element.width < 500""",
        arg=element(visit, "variance").element_handle(),
    )
    drawing = element(visit, "variance").locator(".explorer-stage > svg")
    assert drawing.bounding_box()["width"] < 500
    assert_drawn(visit, "variance", explorer.at(size=size.values[-1]))


def test_a_list_is_a_native_select_that_shows_its_value_once(open_page):
    visit, parameter = open_page(GALLERY), EXPLORERS["winners"].parameters[1]
    select = control(visit, "winners", parameter)
    assert parameter.is_choice
    assert select.evaluate("element => element.localName") == "select"
    assert select.locator("option").all_text_contents() == list(parameter.texts)
    shown = element(visit, "winners").locator("output", has_text=parameter.default)
    assert not shown.is_visible()


def test_a_finger_moves_a_slider(open_page):
    visit, explorer = (
        open_page(GALLERY, width=390, has_touch=True),
        EXPLORERS["variance"],
    )
    size = explorer.parameters[0]
    slider = control(visit, "variance", size)
    slider.scroll_into_view_if_needed()
    box = slider.bounding_box()
    assert box["height"] >= 40
    middle = box["y"] + box["height"] / 2
    visit.page.touchscreen.tap(box["x"] + box["width"] - 2, middle)
    expect(slider).to_have_attribute("aria-valuetext", size.texts[-1])


def test_on_a_phone_sliders_stay_under_the_finger_whatever_they_say(open_page):
    visit = open_page(GALLERY, width=390, reduced_motion="reduce")
    for name, explorer in EXPLORERS.items():
        top = element(visit, name).bounding_box()["y"]
        for parameter in explorer.on_page:
            slider, places = control(visit, name, parameter), set()
            for key in ("Home", *["ArrowRight"] * len(parameter.values)):
                slider.press(key)
                moved = element(visit, name).bounding_box()["y"] - top
                places.add(round(slider.bounding_box()["y"] - top - moved))
            assert len(places) == 1, (name, parameter.name)


def colours(visit, name):
    return element(visit, name).evaluate(
        "element => element.paths.map(path => getComputedStyle(path).stroke)"
    )


def test_dark_pages_have_colours_of_their_own(open_page):
    light, dark = (open_page(GALLERY, theme=theme) for theme in ("light", "dark"))
    assert colours(light, "variance") != colours(dark, "variance")


def test_on_paper_the_frame_is_printed_with_its_parameters_in_words(open_page):
    visit, explorer = open_page(GALLERY, theme="dark"), EXPLORERS["variance"]
    visit.page.emulate_media(media="print", color_scheme="dark")
    box = element(visit, "variance")
    assert not box.locator("input").first.is_visible()
    assert not box.get_by_role("button", name="Reset").is_visible()
    assert box.locator(".explorer-stage > svg").is_visible()
    for parameter in explorer.on_page:
        assert box.get_by_text(parameter.label, exact=True).first.is_visible()
    paper = box.evaluate("element => getComputedStyle(element).backgroundColor")
    assert paper == "rgb(255, 255, 255)"
    light = open_page(GALLERY, theme="light")
    assert colours(visit, "variance") == colours(light, "variance")


def test_it_also_works_on_a_page_opened_from_a_disk(open_page):
    visit = open_page((SITE / GALLERY).as_uri())
    parameter = EXPLORERS["variance"].parameters[0]
    press(visit, "variance", parameter, "End")
    picture = EXPLORERS["variance"].at(size=parameter.values[-1])
    assert_drawn(visit, "variance", picture)


@every_explorer
def test_its_chapter_shows_it_too(open_page, name):
    visit = open_page(f"book/{EXPLORERS[name].chapter}.html")
    assert_drawn(visit, name, EXPLORERS[name].at())


@pytest.mark.parametrize(
    "page", sorted(path.relative_to(SITE) for path in SITE.glob("book/*.html")), ids=str
)
def test_no_page_publishes_a_widget_that_only_looks_alive(page):
    text = (SITE / page).read_text(encoding="utf-8")
    assert "application/vnd.jupyter.widget" not in text
    assert "explore(&quot;" not in text
