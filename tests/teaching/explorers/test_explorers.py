"""What is true of every explorer, on a page and in a notebook."""

import inspect
import itertools
import json
import re

import numpy as np
import pytest

from hetlit.teaching.explorers import EXPLORERS, Axis, Explorer, Line, Panel, Parameter
from hetlit.teaching.explorers.picture import Picture, coordinates
from tests.explorers import some_points
from tests.pages import chapters, page_of, pages
from tools.sphinx.explorers import (
    CALL,
    ELEMENT,
    as_json,
    frames,
    leaves,
    picture_as_data,
    rounded,
)

every_explorer = pytest.mark.parametrize("explorer", EXPLORERS.values(), ids=EXPLORERS)
EXPLORE_TAGS = ["skip-execution", "nbval-ignore-output"]


def frame_at(data, positions):
    """Fill the template, as the page does."""
    lengths = [len(parameter["texts"]) for parameter in data["parameters"]]
    picture = json.loads(json.dumps(data["template"]))
    row = data["frames"][np.ravel_multi_index(positions, lengths)]
    for path, value in zip(data["paths"], row, strict=True):
        node = picture
        for key in path[:-1]:
            node = node[key]
        node[path[-1]] = data["values"][value]
    return picture


# All of them


def test_every_chapter_has_an_explorer_and_they_follow_the_book():
    order = [page.name for page in chapters()]
    chapters_of = [explorer.chapter for explorer in EXPLORERS.values()]
    assert set(chapters_of) == set(order)
    assert chapters_of == sorted(chapters_of, key=order.index)
    assert all(name == explorer.name for name, explorer in EXPLORERS.items())


@every_explorer
def test_its_chapter_has_a_cell_that_shows_it_and_that_the_build_does_not_run(explorer):
    page = page_of(f"book/{explorer.chapter}")
    (cell,) = (c for c in page.cells if f'explore("{explorer.name}")' in c.source)
    assert cell.cell_type == "code"
    call = CALL.search(cell.source)
    assert call
    assert call["name"] == explorer.name
    assert cell.metadata["tags"] == EXPLORE_TAGS
    assert cell.outputs == []


def test_every_cell_that_explores_names_an_explorer():
    named = [
        found["name"]
        for page in pages()
        for source in page.code
        for found in CALL.finditer(source)
    ]
    assert sorted(named) == sorted(EXPLORERS)


def test_the_gallery_shows_all_of_them_in_order():
    text = page_of("book/gallery").text
    shown = re.findall(r"(?m)^```\{explorer\} (\w+)\n```$", text)
    assert shown == list(EXPLORERS)
    for explorer in EXPLORERS.values():
        label = f"chapter-{explorer.chapter.replace('_', '-')}"
        before = text.split(f"{{explorer}} {explorer.name}\n")[0]
        assert re.findall(r"(?m)^From \{ref\}`([\w-]+)`", before)[-1] == label


@every_explorer
def test_its_parameters_are_the_arguments_of_its_picture(explorer):
    arguments = inspect.signature(explorer.picture).parameters
    assert list(arguments) == [parameter.name for parameter in explorer.parameters]
    assert 1 <= len(explorer.on_page) <= 2
    labels = [parameter.label for parameter in explorer.parameters]
    assert len(set(labels)) == len(labels)
    assert all(len(label) > 5 and "$" not in label for label in labels)


@every_explorer
def test_numbers_on_a_slider_rise_and_are_told_apart(explorer):
    for parameter in explorer.parameters:
        assert len(set(parameter.texts)) == len(parameter.texts)
        if not parameter.is_choice:
            assert list(parameter.values) == sorted(parameter.values)
            ends = parameter.values[0], parameter.values[-1]
            assert not (parameter.on_page and parameter.default in ends)


@every_explorer
def test_it_says_what_it_is_and_what_to_notice(explorer):
    assert len(explorer.title) > 10
    assert len(explorer.setting) > 40
    assert len(explorer.notice) > 60
    assert len(explorer.description) > 80
    texts = [explorer.title, explorer.setting, explorer.notice, explorer.description]
    assert not re.search(r"[<>&$\\]", " ".join(texts))


@pytest.mark.slow
@every_explorer
def test_readings_are_sentences_that_change(explorer):
    points = some_points(explorer, 12, np.random.default_rng(1))
    readings = [explorer.at(**point).reading for point in points]
    assert len(set(readings)) > len(readings) // 3
    for reading in readings:
        assert re.fullmatch(r"[A-Z0-9].*\.", reading)
        assert not re.search(r"[<>&$\\]|\bnan\b|\binf\b|e[+-]\d|\b1 users\b", reading)
        assert re.search(r"\d", reading)


@every_explorer
def test_a_picture_is_a_function_of_its_parameters(explorer):
    point = some_points(explorer, 1, np.random.default_rng(2))[-1]
    assert picture_as_data(explorer.at(**point)) == picture_as_data(
        explorer.at(**point)
    )


@pytest.mark.slow
@every_explorer
def test_every_mark_can_be_seen_somewhere_and_named_marks_have_one_look(explorer):
    points = some_points(explorer, 12, np.random.default_rng(3))
    seen: dict[tuple[int, int], bool] = {}
    looks: dict[str, set[str]] = {}
    for point in [explorer.defaults, *points]:
        for i, panel in enumerate(explorer.at(**point).panels):
            for j, mark in enumerate(panel.marks):
                at = coordinates(mark)
                heights = [at[name] for name in at if name != "x"]
                inside = (at["x"] >= panel.x.low) & (at["x"] <= panel.x.high)
                for height in heights:
                    inside &= (height <= panel.y.high) & (height >= panel.y.low * 0.999)
                seen[i, j] = seen.get((i, j), False) or bool(inside.any())
                if mark.name:
                    looks.setdefault(mark.name, set()).add(mark.look)
    assert all(seen.values()), seen
    assert all(len(of_name) == 1 for of_name in looks.values()), looks


# Frames


@pytest.mark.slow
@every_explorer
def test_frames_are_small_and_give_back_every_picture(explorer):
    data = json.loads(as_json(frames(explorer)).replace("<\\/", "</"))
    assert len(as_json(data).encode()) < 150_000
    rng = np.random.default_rng(4)
    lengths = [len(parameter.values) for parameter in explorer.on_page]
    ends = itertools.product(*((0, length - 1) for length in lengths))
    for positions in [*ends, *([rng.integers(n) for n in lengths] for _ in range(5))]:
        point = {
            parameter.name: parameter.values[at]
            for parameter, at in zip(explorer.on_page, positions, strict=True)
        }
        computed = picture_as_data(explorer.at(**point))
        assert frame_at(data, positions) == computed


def bending(*, part: float, other: int) -> Picture:
    axis = Axis("x", 0.0, 1.0)
    marks = (Line([0, 1], [0, part], "blue"),) * other
    return Picture((Panel(axis, axis, marks),), reading="One.")


def explorer_of(picture):
    part = Parameter("part", "a part", (0.25, 0.5, 1.0), 0.5)
    other = Parameter("other", "another", (1, 2), 1)
    return Explorer(
        "e", "model", "title", "setting", picture, (part, other), "notice", "alt"
    )


def test_frames_must_have_one_structure():
    with pytest.raises(ValueError, match="differ in structure"):
        frames(explorer_of(bending))


def test_axes_must_not_move():
    def stretching(*, part: float, other: int) -> Picture:
        axes = Axis("x", 0.0, part), Axis("y", 0.0, 1.0)
        return Picture((Panel(*axes, ()),), reading="One.")

    with pytest.raises(ValueError, match="must not change"):
        frames(explorer_of(stretching))


def test_equal_values_are_stored_once():
    def slow(*, part: float, other: int) -> Picture:
        axis = Axis("x", 0.0, 1.0)
        line = Line([0, 1], [0, part], "blue")
        return Picture((Panel(axis, axis, (line, line)),), reading="One.")

    data = frames(explorer_of(slow))
    assert sorted(data["values"]) == [[0, 0.25], [0, 0.5], [0, 1]]
    assert [row[0] for row in data["frames"]] == [0, 0, 1, 1, 2, 2]


def test_numbers_are_rounded_to_four_digits():
    assert rounded(np.array([0.333333, 2.0, 123456.0])) == [0.3333, 2, 123500]


def test_data_cannot_end_the_script_that_holds_them():
    assert "</" not in as_json({"a": "</script>"})


def test_an_empty_list_is_a_leaf():
    assert leaves({"x": []}) == {("x",): []}


# The element


def test_the_element_needs_nothing_from_elsewhere():
    code = ELEMENT.read_text(encoding="utf-8")
    assert not re.search(r"\bimport\b|\bfetch\(|XMLHttpRequest", code)
    assert set(re.findall(r"https?://[^\"'\s]+", code)) == {
        "http://www.w3.org/2000/svg"  # a name, not an address
    }
    assert "</script" not in code
