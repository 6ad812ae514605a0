"""The widgets show their explorer at every point of its parameter box."""

import base64
import html
import re

import ipywidgets
import matplotlib.pyplot as plt
import numpy as np
import pytest

from hetlit.teaching.explorers import EXPLORERS
from hetlit.teaching.widgets import explore
from tests.explorers import some_points

PNG = b"\x89PNG\r\n\x1a\n"

# Warnings are errors in all tests, so a callback that warns fails here.


def image_of(box):
    """Return (bytes, alternative text) of the figure that is shown."""
    found = re.fullmatch(
        r'<img src="data:image/png;base64,([^"]+)" alt="([^"]+)">', box.figure.value
    )
    assert found
    return base64.b64decode(found[1]), html.unescape(found[2])


def move_to(box, explorer, point):
    for control, parameter in zip(box.controls, explorer.parameters, strict=True):
        control.value = point[parameter.name]


@pytest.mark.slow
@pytest.mark.parametrize("name", EXPLORERS)
def test_it_runs_at_the_corners_and_at_twenty_random_points(name):
    explorer, box = EXPLORERS[name], explore(name)
    pictures = set()
    points = some_points(explorer, 20, np.random.default_rng(5))
    for point in points:
        move_to(box, explorer, point)
        reading = explorer.at(**point).reading
        image, alternative = image_of(box)
        assert image.startswith(PNG)
        assert alternative == f"{explorer.description} {reading}"
        assert box.reading.value == f"<p>{reading}</p>"
        pictures.add(image)
    assert len(pictures) > 5
    assert plt.get_fignums() == []


@pytest.mark.slow
@pytest.mark.parametrize("name", EXPLORERS)
def test_reset_brings_back_the_first_picture(name):
    explorer, box = EXPLORERS[name], explore(name)
    first = image_of(box)
    move_to(box, explorer, some_points(explorer, 0, None)[-1])
    assert image_of(box) != first
    box.reset.click()
    assert image_of(box) == first


@pytest.mark.parametrize("name", EXPLORERS)
def test_it_has_a_labelled_control_for_each_parameter(name):
    explorer, box = EXPLORERS[name], explore(name)
    for control, parameter in zip(box.controls, explorer.parameters, strict=True):
        assert control.description == parameter.label
        assert control.value == parameter.default
        assert [value for _, value in control.options] == list(parameter.values)
        if parameter.is_choice:
            assert isinstance(control, ipywidgets.Dropdown)
        else:
            assert isinstance(control, ipywidgets.SelectionSlider)
            assert control.continuous_update == explorer.quick
    texts = [child.value for child in box.children if hasattr(child, "value")]
    assert any(explorer.title in str(text) for text in texts)
    assert any(explorer.notice in str(text) for text in texts)


def test_an_unknown_name_is_refused_with_the_known_ones():
    with pytest.raises(ValueError, match="variance"):
        explore("nothing")
