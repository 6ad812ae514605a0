"""Figures draw what they are given, legibly, and leave no trace behind."""

import itertools
import subprocess
import sys
import xml.etree.ElementTree as ET
from pathlib import Path

import matplotlib
import numpy as np
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure

from hetlit import Users, plots, user_variance

ASSETS = Path(__file__).parent.parent / "book" / "assets"
SVG = "{http://www.w3.org/2000/svg}"

K = np.array([1, 10, 100, 1000])
P, VAR_P = 0.3, 0.01
Q = P * (1 - P)
USERS = Users(k=[4, 4, 1, 900], successes=[1, 1, 0, 300], counts=[1, 2, 5, 1])
RATES = np.array([0.1, 0.3, 0.6])
MEANS = {4: np.array([0.0, 0.25, 0.75]), 40: np.array([0.1, 0.3, 0.625])}
THEORY = user_variance(K, P, VAR_P)
SIMULATED = {
    "one": (THEORY * 1.01, THEORY * 0.02),
    "two": (THEORY * 0.98, THEORY * 0.03),
}
VARIANCES = [0.0, 0.0001, 0.0025, 0.01, 0.04]
PROFILES = {"equal": np.full(9, 5), "mixed": np.array([1, 7, 3]), "one": np.ones(4)}
SHARES = {"equal": (0.01, 0.01), "heavy": (0.9, 0.17)}
CAPS = np.array([1, 2, 200])
TARGETS = {"no link": np.full(3, 0.3), "linked": np.array([0.3, 0.3, 0.398])}

FIGURES = {
    "funnel": lambda: plots.funnel(USERS, P),
    "funnel with curves": lambda: plots.funnel(USERS, P, VAR_P),
    "rates_and_means": lambda: plots.rates_and_means(RATES, MEANS),
    "variance_check": lambda: plots.variance_check(K, THEORY, SIMULATED),
    "sandwich": lambda: plots.sandwich(K, P, VAR_P),
    "effective_sizes": lambda: plots.effective_sizes(K, P, VARIANCES),
    "size_profiles": lambda: plots.size_profiles(PROFILES),
    "data_holders": lambda: plots.data_holders(SHARES, top="ten of 1,000 users"),
    "weighting_targets": lambda: plots.weighting_targets(CAPS, TARGETS),
    "overview": plots.overview,
}
every_figure = pytest.mark.parametrize("make", FIGURES.values(), ids=FIGURES)


def painted(figure):
    """Return a canvas on which the figure has been drawn."""
    canvas = FigureCanvasAgg(figure)
    canvas.draw()
    return canvas


def lines(figure, panel=0):
    """Return the (x, y) of every line of a panel, in the order drawn."""
    return [line.get_data() for line in figure.axes[panel].lines]


def same(drawn, x, y):
    return np.allclose(drawn[0], x) and np.allclose(drawn[1], y)


# --- every figure -------------------------------------------------------------


@every_figure
def test_a_figure_function_returns_a_figure_with_labelled_axes(make):
    figure = make()
    assert isinstance(figure, Figure)
    shown = [axes for axes in figure.axes if axes.axison]
    assert any(axes.get_xlabel() for axes in shown)
    assert make is plots.overview or any(axes.get_ylabel() for axes in shown)


@every_figure
def test_a_figure_leaves_pyplot_and_the_settings_alone(make):
    import matplotlib.pyplot as plt

    mine = plt.figure()
    before = dict(matplotlib.rcParams)
    try:
        make()
        assert plt.get_fignums() == [mine.number]
        assert plt.gcf() is mine
        assert dict(matplotlib.rcParams) == before
    finally:
        plt.close(mine)


@every_figure
def test_a_figure_is_a_function_of_its_arguments(make):
    pictures = []
    for _ in range(2):
        pictures.append(np.array(painted(make()).buffer_rgba()))
    assert (pictures[0] == pictures[1]).all()


@every_figure
def test_no_text_leaves_the_figure(make):
    figure = make()
    painted(figure)
    frame = figure.bbox.padded(1.0)
    texts = [*figure.texts, *itertools.chain(*(axes.texts for axes in figure.axes))]
    texts += [axes.xaxis.label for axes in figure.axes]
    texts += [axes.yaxis.label for axes in figure.axes]
    for text in filter(lambda text: text.get_text(), texts):
        box = text.get_window_extent()
        assert frame.x0 <= box.x0, text
        assert box.x1 <= frame.x1, text
        assert frame.y0 <= box.y0, text
        assert box.y1 <= frame.y1, text


@every_figure
def test_a_figure_is_opaque_on_dark_pages(make):
    figure = make()
    red, green, blue, opacity = figure.get_facecolor()
    assert opacity == 1
    assert min(red, green, blue) > 0.9


@pytest.mark.parametrize("name", ["matplotlib", "matplotlib.pyplot"])
def test_the_library_imports_no_plotting(name):
    module = "hetlit" if name == "matplotlib" else "hetlit.plots"
    code = f"import sys, {module}; sys.exit({name!r} in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


# --- the numbers that are drawn -----------------------------------------------


def test_funnel_draws_one_disc_per_distinct_row_with_its_count_as_area():
    figure = plots.funnel(USERS, P)
    (discs,) = figure.axes[0].collections
    assert discs.get_offsets().tolist() == [[1, 0], [4, 0.25], [900, 1 / 3]]
    areas = discs.get_sizes()
    assert np.allclose(areas / areas[2], [5, 3, 1])
    assert len(lines(figure)) == 1  # the population mean
    assert np.allclose(lines(figure)[0][1], P)


def test_funnel_curves_are_two_standard_deviations_from_the_mean():
    drawn = lines(plots.funnel(USERS, P, VAR_P))
    assert len(drawn) == 3
    for (k, edge), side in zip(drawn[1:], (1, -1), strict=True):
        assert k[0] == 1
        assert np.isclose(k[-1], 900)
        assert np.allclose(edge, P + side * 2 * np.sqrt(user_variance(k, P, VAR_P)))


def test_rates_and_means_has_a_diagonal_and_the_users_in_every_panel():
    figure = plots.rates_and_means(RATES, MEANS)
    assert [axes.get_title() for axes in figure.axes] == ["4 samples", "40 samples"]
    for panel, means in enumerate(MEANS.values()):
        diagonal, users = lines(figure, panel)
        assert same(diagonal, [0, 1], [0, 1])
        assert same(users, RATES, means)


def test_variance_check_draws_the_formula_the_estimates_and_two_standard_errors():
    figure = plots.variance_check(K, THEORY, SIMULATED)
    top, bottom = figure.axes
    assert same(lines(figure, 0)[0], K, THEORY)
    assert same(lines(figure, 1)[0], K, 1)
    for axes, unit in ((top, 1.0), (bottom, THEORY)):
        assert len(axes.containers) == len(SIMULATED)
        for bars, (name, (values, errors)) in zip(
            axes.containers, SIMULATED.items(), strict=True
        ):
            assert bars.get_label() == name
            points, _, (spans,) = bars
            assert np.allclose(points.get_ydata(), values / unit)
            assert np.allclose(points.get_xdata(), K, rtol=0.05)
            low, high = np.array(spans.get_segments())[:, :, 1].T
            assert np.allclose(high - low, 4 * errors / unit)


def test_sandwich_draws_the_variance_between_its_bounds():
    figure = plots.sandwich(K, P, VAR_P)
    variance, coins, people, corner = lines(figure)
    assert same(variance, K, THEORY)
    assert same(coins, K, Q / K)
    assert same(people, K, VAR_P)
    assert np.allclose(corner[0], Q / VAR_P)
    (band,) = figure.axes[0].collections
    heights = band.get_paths()[0].vertices[:, 1]
    larger = np.maximum(Q / K, VAR_P)
    assert np.isclose(heights.min(), larger.min())
    assert np.isclose(heights.max(), 2 * larger.max())


def test_effective_sizes_are_q_over_the_variance_and_say_their_limit():
    figure = plots.effective_sizes(K, P, VARIANCES)
    assert len(lines(figure)) == len(VARIANCES)
    for drawn, var_p in zip(lines(figure), VARIANCES, strict=True):
        assert same(drawn, K, Q / user_variance(K, P, var_p))
    notes = [text.get_text() for text in figure.axes[0].texts]
    assert notes[0] == "spread 0"
    assert notes[1] == "spread 0.01\nat most 2,100"


def test_size_profiles_sort_the_largest_user_first_and_blank_the_spare_panel():
    figure = plots.size_profiles(PROFILES)
    assert same(lines(figure, 1)[0], [1, 2, 3], [7, 3, 1])
    assert [axes.axison for axes in figure.axes] == [True, True, True, False]
    assert PROFILES["mixed"].tolist() == [1, 7, 3]  # the input is not sorted


def test_data_holders_draws_both_shares_in_per_cent():
    figure = plots.data_holders(SHARES, top="ten users")
    samples, worth = lines(figure)
    assert same(samples, [1, 90], [1, 0])
    assert same(worth, [1, 17], [1, 0])
    assert figure.axes[0].get_xlabel() == "per cent held by ten users"


def test_weighting_targets_draws_and_names_each_population():
    figure = plots.weighting_targets(CAPS, TARGETS)
    for drawn, values in zip(lines(figure), TARGETS.values(), strict=True):
        assert same(drawn, CAPS, values)
    assert [text.get_text() for text in figure.axes[0].texts] == list(TARGETS)


def test_more_series_than_looks_are_refused_and_not_dropped():
    with pytest.raises(ValueError, match="zip"):
        plots.effective_sizes(K, P, [*VARIANCES, 0.05])
    with pytest.raises(ValueError, match="zip"):
        plots.weighting_targets(CAPS, {str(i): CAPS for i in range(6)})


# --- colours ------------------------------------------------------------------

COLOURS = [look.colour for look in plots.LOOKS]
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
        assert len({getattr(look, channel) for look in plots.LOOKS}) == len(plots.LOOKS)


# --- the picture of the landing page ------------------------------------------


def test_overview_weights_are_fair_shares_and_its_laws_are_private():
    figure = plots.overview()
    _, middle, right = figure.axes
    weights = [bar.get_width() for bar in middle.containers[0]]
    assert np.isclose(np.mean(weights), 1)
    samples = [bar.get_width() for bar in middle.containers[1]]
    assert weights == sorted(weights, reverse=True)
    assert weights[0] < samples[0]
    as_it_is, replaced = (line.get_ydata() for line in right.lines)
    assert np.abs(np.log(as_it_is / replaced)).max() <= 1 + 1e-9  # epsilon = 1


def test_overview_svg_is_what_the_code_draws(tmp_path):
    again = tmp_path / "overview.svg"
    command = [sys.executable, "-m", "hetlit.plots", str(again)]
    subprocess.run(command, check=True)
    assert again.read_text("utf-8") == (ASSETS / "overview.svg").read_text("utf-8"), (
        "run: python -m hetlit.plots book/assets/overview.svg"
    )


def test_overview_svg_is_small_titled_described_and_opaque():
    path = ASSETS / "overview.svg"
    assert path.stat().st_size < 60_000
    root = ET.parse(path).getroot()
    assert root.findtext(f"{SVG}title") == plots.OVERVIEW_TITLE
    assert root.findtext(f"{SVG}desc") == plots.OVERVIEW_TEXT
    background = next(root.iter(f"{SVG}path"))
    assert background.get("style") == "fill: #fbfaf7"


def test_svg_titles_are_escaped(tmp_path):
    path = tmp_path / "figure.svg"
    plots.write_svg(Figure(), path, "less < more & more", 'a "quoted" <text>')
    root = ET.parse(path).getroot()
    assert root.findtext(f"{SVG}title") == "less < more & more"
    assert root.findtext(f"{SVG}desc") == 'a "quoted" <text>'
