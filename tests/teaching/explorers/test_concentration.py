"""The explorer of the chapter on widths: clipping against bias.

One test is statistical, with a fixed seed; for a random one it fails with a chance
below 1e-8 (12 comparisons at 6.5 standard errors, normal).
"""

import math
import re

import numpy as np
import pytest
from scipy import stats

from hetlit import Beta, sample_users, user_variance
from hetlit.teaching.explorers.concentration import (
    CENTRE,
    CLIPPING,
    EPSILON,
    FINE,
    LAW,
    MEANS,
    META,
    SAMPLES,
    VARIANCE,
    best_half_width,
    clipped_moments,
    clipping,
    error_parts,
    interval,
    lost,
)
from hetlit.teaching.explorers.picture import NOTHING, coordinates, number, percent
from hetlit.theory.weights import release_variance
from hetlit.theory.widths import exact_beta_binomial_width
from tests.explorers import values_of

HALF_WIDTHS, USERS = values_of(CLIPPING.parameters)
# Means of 100 samples from Beta(3.5, 31.5), which has mean 0.1 and variance 0.0025.
VALUES = np.arange(101) / 100
CHANCES = stats.betabinom.pmf(np.arange(101), 100, 3.5, 31.5)


def by_definition(half_width, users):
    """Ends, mean, and squared bias, sampling variance and noise (1: no privacy)."""
    low, high = max(0.08 - half_width, 0.0), min(0.08 + half_width, 1.0)
    clipped = np.clip(VALUES, low, high)
    mean = CHANCES @ clipped
    sampling = CHANCES @ (clipped - mean) ** 2 / users
    noise = 2.0 * ((high - low) / users / 0.3) ** 2
    errors = np.array([(mean - 0.1) ** 2, sampling, noise])
    return (low, high), mean, errors * users / user_variance(100, 0.1, 0.0025)


def test_the_law_has_the_mean_and_the_variance_of_the_model():
    assert LAW.sum() == pytest.approx(1.0)
    assert np.isclose(LAW @ MEANS, META.mean)
    variance = user_variance(100, META.mean, META.variance)
    assert LAW @ (MEANS - META.mean) ** 2 == pytest.approx(variance)
    # And its tails are those that the library's exact widths are made of.
    for users in (100, 10_000):
        width = exact_beta_binomial_width(
            100, users, META.mean, META.concentration, 0.05
        )
        allowed = -math.expm1(math.log1p(-0.05) / users)
        farther = np.abs(MEANS - META.mean) > width + 1e-9
        nearest = np.abs(MEANS - META.mean) > width - 1e-9
        assert LAW[farther].sum() <= allowed < LAW[nearest].sum()


def test_simulated_users_have_the_clipped_moments():
    rng = np.random.default_rng(5)
    users = sample_users(Beta(0.1, 0.0025), np.full(400_000, 100), rng)
    for half_width in (0.02, 0.05, 0.07, 0.1, 0.2, 0.4):
        low, high = interval(half_width)
        clipped = np.clip(users.means, low, high)
        mean, variance = clipped_moments(half_width)
        squares = (clipped - mean) ** 2
        for values, expected in ((clipped, mean), (squares, variance)):
            error = values.std() / math.sqrt(len(values))
            assert abs(values.mean() - expected) < 6.5 * error


def test_the_parts_agree_with_the_variance_of_a_release():
    for users in USERS:
        for half_width in HALF_WIDTHS:
            _, sampling, noise = error_parts(half_width, users)
            low, high = interval(half_width)
            _, variance = clipped_moments(half_width)
            released = release_variance(
                [1.0 / users], [variance], [high - low], EPSILON, counts=[users]
            )
            assert sampling + noise == pytest.approx(released)


def test_without_clipping_nothing_is_lost():
    low, high = interval(1.0)
    assert low == 0.0
    assert high == 1.0
    mean, variance = clipped_moments(1.0)
    assert mean == pytest.approx(META.mean)
    assert variance == pytest.approx(VARIANCE)
    assert lost(1.0) == "nothing"


def test_an_interval_that_shrinks_to_its_centre_returns_the_centre():
    mean, variance = clipped_moments(1e-9)
    assert mean == pytest.approx(CENTRE)
    assert variance < 1e-17


def test_a_wider_interval_has_less_bias_and_more_noise_and_sampling_error():
    for users in USERS:
        bias, sampling, noise = error_parts(FINE, users)
        slack = 1e-15
        assert (np.diff(bias) <= slack).all()
        assert (np.diff(sampling) >= -slack).all()
        assert (np.diff(noise) >= 0.0).all()


def test_clipping_always_lowers_the_average():
    mean, _ = clipped_moments(FINE)
    assert (mean <= META.mean * (1.0 + 1e-12)).all()


def test_beside_sampling_noise_fades_and_bias_grows_with_users():
    first, last = (error_parts(FINE, users) * users for users in (100, 10**6))
    assert np.allclose(last[0], 1e4 * first[0])
    assert np.allclose(last[1], first[1])
    assert np.allclose(last[2], 1e-4 * first[2])


def test_more_users_need_a_wider_interval():
    best = [best_half_width(users) for users in USERS]
    assert (np.diff(best) > 0.0).all()
    assert FINE[0] < best[0]
    assert best[-1] < FINE[-1]


@pytest.mark.parametrize("users", USERS)
def test_a_wide_interval_pays_with_noise_and_a_narrow_one_with_bias(users):
    total = error_parts(FINE, users).sum(axis=0)
    narrow, wide = error_parts(FINE[[0, -1]], users).T
    assert narrow.argmax() == 0
    assert narrow.sum() > 1.5 * total.min()
    # What the widest interval has too much is noise.
    best = error_parts(best_half_width(users), users)
    excess = wide - best
    assert wide.sum() > total.min()
    assert excess.argmax() == 2 or excess.sum() < 0.01 * total.min()


@pytest.mark.parametrize("users", USERS)
def test_every_mark_is_what_it_says(users):
    places = np.geomspace(0.02, 1.0, 49)
    curves = np.transpose([by_definition(place, users)[2] for place in places])
    names = "bias", "sampling", "noise", "total"
    lines = dict(zip(names, (*curves, curves.sum(axis=0)), strict=True))
    for half_width in HALF_WIDTHS:
        panels = clipping(half_width=half_width, users=users).panels
        upper, lower = ({m.name: coordinates(m) for m in p.marks} for p in panels)
        for name, heights in lines.items():
            line = upper.pop(name)
            assert np.allclose(line["x"], places)
            assert np.allclose(line["y"], np.maximum(heights, NOTHING), atol=NOTHING)
        ends, _, errors = by_definition(half_width, users)
        (marker,) = upper.values()
        assert marker == {"x": [half_width], "y": pytest.approx([errors.sum()])}
        assert panels[0].y.low <= errors.sum() <= panels[0].y.high
        band, law = lower["this interval"], lower["law of one user's mean"]
        assert tuple(band["x"]) == ends
        assert (band["low"] == panels[1].y.low).all()
        assert (band["high"] == panels[1].y.high).all()
        assert np.allclose(law["x"], VALUES[:51])
        assert np.allclose(law["y"], CHANCES[:51])


@pytest.mark.parametrize("users", USERS)
def test_every_number_of_the_reading_is_what_it_says(users):
    # Four times as fine as the explorer's, which is right to one per cent.
    fine = np.geomspace(0.02, 1.0, 1569)
    best = fine[np.argmin([by_definition(place, users)[2].sum() for place in fine])]
    for half_width in HALF_WIDTHS:
        (low, high), mean, errors = by_definition(half_width, users)
        reading = clipping(half_width=half_width, users=users).reading
        assert f"means between {number(low)} and {number(high)}, " in reading
        lost = percent(1.0 - mean / 0.1) if high < 1.0 else "nothing"
        assert f"{users:,} users lose {lost} of their average." in reading
        times = number(errors.sum())
        over = "hardly larger than" if times == "1" else f"{times} times that"
        assert f"The squared error is {over} without privacy, " in reading
        name = ("bias", "sampling error", "noise")[int(errors.argmax())]
        share = percent(errors.max() / errors.sum())
        assert f"and {share} of it is {name}." in reading
        said = re.search(r"The best half-width is about ([\d.]+)\.$", reading)
        assert said
        assert float(said[1]) == pytest.approx(best, rel=0.01, abs=0.005)


def test_the_setting_is_that_of_the_users():
    said = re.findall(r"\d[\d.]*\d|\d", CLIPPING.setting)
    spread = math.sqrt(META.variance)
    assert said == [number(x) for x in (SAMPLES, META.mean, spread, EPSILON, CENTRE)]
