"""The picture of the landing page is what the code draws."""

import subprocess
import sys
import xml.etree.ElementTree as ET
from pathlib import Path

import numpy as np
import pytest
from matplotlib.figure import Figure

from hetlit.teaching.figures import landing
from tests.figures import EveryFigure, panels

ASSETS = Path(__file__).parents[3] / "book" / "assets"
SVG = "{http://www.w3.org/2000/svg}"


FIGURES = {"overview": landing.overview}


class TestEveryFigure(EveryFigure):
    figures = FIGURES


def test_overview_weights_are_fair_shares_and_its_laws_are_private():
    figure = landing.overview()
    _, middle, right = panels(figure)
    weights = [bar.get_width() for bar in middle.containers[0]]
    assert np.isclose(np.mean(weights), 1)
    samples = [bar.get_width() for bar in middle.containers[1]]
    assert weights == sorted(weights, reverse=True)
    assert weights[0] < samples[0]
    as_it_is, replaced = (line.get_ydata() for line in right.lines)
    assert np.abs(np.log(as_it_is / replaced)).max() <= 1 + 1e-9  # epsilon = 1


@pytest.mark.slow
def test_overview_svg_is_what_the_code_draws(tmp_path):
    again = tmp_path / "overview.svg"
    command = [sys.executable, "-m", "hetlit.teaching.figures", str(again)]
    subprocess.run(command, check=True)
    assert again.read_text("utf-8") == (ASSETS / "overview.svg").read_text("utf-8"), (
        "run: python -m hetlit.teaching.figures book/assets/overview.svg"
    )


def test_overview_svg_is_small_titled_described_and_opaque():
    path = ASSETS / "overview.svg"
    assert path.stat().st_size < 60_000
    root = ET.parse(path).getroot()
    assert root.findtext(f"{SVG}title") == landing.OVERVIEW_TITLE
    assert root.findtext(f"{SVG}desc") == landing.OVERVIEW_TEXT
    background = next(root.iter(f"{SVG}path"))
    assert background.get("style") == "fill: #fbfaf7"


def test_svg_titles_are_escaped(tmp_path):
    path = tmp_path / "figure.svg"
    landing.write_svg(Figure(), path, "less < more & more", 'a "quoted" <text>')
    root = ET.parse(path).getroot()
    assert root.findtext(f"{SVG}title") == "less < more & more"
    assert root.findtext(f"{SVG}desc") == 'a "quoted" <text>'
