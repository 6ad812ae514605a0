"""A forecast shows the numbers that it holds, as text and as HTML."""

from __future__ import annotations

import numpy as np

from hetlit import sizes
from hetlit.estimators.forecast import METHODS, Forecast
from hetlit.estimators.planning import SPREADS, plan

SKEWED = 2 * sizes.geometric(2000, 40, np.random.default_rng(3))
EQUAL = sizes.equal(1000, 9)


def test_a_forecast_prints_its_numbers():
    forecast = plan(SKEWED, 2.0, mean=0.3, level=0.9)
    shown = repr(forecast)
    first, default, _, *rows = shown.splitlines()
    assert first == "Forecast for 2000 users, sizes public, epsilon 2, mean 0.3"
    assert default == f"Default: {METHODS['adaptive']}"
    assert "half of the 90% interval" in shown
    assert rows[0].split() == [
        *("sd", "default", "plain", "no", "privacy", "default", "plain")
    ]
    for row, line in zip(rows[1:], forecast.lines, strict=True):
        expected = (
            line.error,
            line.plain_error,
            line.sampling_error,
            line.half_width,
            line.plain_half_width,
        )
        spread, *numbers = (float(cell) for cell in row.split())
        assert spread == line.spread
        assert numbers == [float(f"{number:.2g}") for number in expected]
        html = forecast._repr_html_()
        assert all(f"<td {RIGHT}>{number:.2g}</td>" in html for number in expected)


def test_columns_do_not_run_into_each_other():
    rows = repr(plan([1, 5], 1e-9, spreads=[1e-5 / 3.0, 0.1234567])).splitlines()[4:]
    assert [row.split()[0] for row in rows] == ["3.33e-06", "0.123"]
    assert all(len(row.split()) == 6 for row in rows)


RIGHT = 'style="text-align: right; padding: 0.1em 0.7em"'


def test_the_html_of_a_forecast_says_what_its_text_says():
    forecast = plan(EQUAL, 1.0)
    html, shown = forecast._repr_html_(), repr(forecast)
    for title in shown.splitlines()[:2]:
        assert title in html
    assert html.count("<tr") == html.count("</tr>") == 2 + len(SPREADS)
    assert "script" not in html


def test_a_forecast_says_that_sizes_are_private():
    shown = repr(plan(EQUAL, 0.5, k_max=9))
    assert "1000 users, sizes private, at most 9, epsilon 0.5" in shown
    assert "Default: the mean of all user means" in shown


def test_a_forecast_holds_numbers_and_words_only():
    forecast = plan(EQUAL, 1.0)
    assert isinstance(forecast, Forecast)
    assert hash(forecast) == hash(plan(EQUAL, 1.0))
