"""The looks of marks can be told apart, and pages have all of them."""

import itertools
import re

import numpy as np
import pytest
from matplotlib.colors import to_rgb

from hetlit.teaching.looks import LOOKS, NAMED, ON_PAGES
from tools.sphinx.explorers import looks_as_css

COLOURS = [look.colour for look in LOOKS]
# Machado, Oliveira and Fernandes (2009), the severest form of each.
SIGHT = {
    "typical": np.eye(3),
    "protanopia": [
        [0.152286, 1.052583, -0.204868],
        [0.114503, 0.786281, 0.099216],
        [-0.003882, -0.048116, 1.051998],
    ],
    "deuteranopia": [
        [0.367322, 0.860646, -0.227968],
        [0.280085, 0.672501, 0.047413],
        [-0.011820, 0.042940, 0.968881],
    ],
    "tritanopia": [
        [1.255528, -0.076749, -0.178779],
        [-0.078411, 0.930809, 0.147602],
        [0.004733, 0.691367, 0.303900],
    ],
}


def linear(colour):
    c = np.array(to_rgb(colour))
    return np.where(c <= 0.04045, c / 12.92, ((c + 0.055) / 1.055) ** 2.4)


def lab(rgb):
    """Return the CIE Lab coordinates of a linear RGB colour."""
    to_xyz = [
        [0.4124, 0.3576, 0.1805],
        [0.2126, 0.7152, 0.0722],
        [0.0193, 0.1192, 0.9505],
    ]
    x = to_xyz @ np.clip(rgb, 0, 1) / [0.9505, 1.0, 1.089]
    f = np.where(x > 0.008856, np.cbrt(x), 7.787 * x + 16 / 116)
    return np.array([116 * f[1] - 16, 500 * (f[0] - f[1]), 200 * (f[1] - f[2])])


@pytest.mark.parametrize("colour", COLOURS)
def test_colours_have_a_contrast_of_three_on_white(colour):
    luminance = linear(colour) @ [0.2126, 0.7152, 0.0722]
    assert 1.05 / (luminance + 0.05) >= 3


@pytest.mark.parametrize("sight", SIGHT)
def test_colours_stay_apart_for_colour_blind_readers(sight):
    seen = [lab(np.array(SIGHT[sight]) @ linear(colour)) for colour in COLOURS]
    for one, other in itertools.combinations(seen, 2):
        assert np.linalg.norm(one - other) > 15  # 2 is just noticeable


def test_no_two_series_differ_by_colour_alone():
    for channel in ("colour", "line", "marker"):
        assert len({getattr(look, channel) for look in LOOKS}) == len(LOOKS)


def test_every_look_has_a_name_and_colours_on_pages():
    assert tuple(NAMED.values()) == LOOKS
    assert list(NAMED) == list(ON_PAGES)


def test_no_two_looks_share_a_line_or_a_marker():
    for one, other in itertools.combinations(NAMED.values(), 2):
        assert one.line != other.line
        assert one.marker != other.marker


def test_the_style_sheet_of_pages_has_every_look_once_light_and_once_dark():
    rule = r"(?m)^ *(html\S+ )?hetlit-explorer \.explorer-(\w+) \{ --colour: ([^;]+);"
    found = re.findall(rule, looks_as_css())
    dark = 'html[data-theme="dark"] '
    assert found == [
        (on, name, colour)
        for name, colours in ON_PAGES.items()
        for on, colour in zip(("", dark), colours, strict=True)
    ]
    dashes = re.findall(r"--dash: ([^;]+);", looks_as_css())
    assert len(set(dashes)) == len(dashes) == len(LOOKS)
