"""The explorer of the chapter on widths: clipping against bias.

One test is statistical, with a fixed seed; for a random one it fails with a chance
below 1e-8 (12 comparisons at 6.5 standard errors, normal).
"""

import math

import numpy as np
import pytest

from hetlit import Beta, sample_users, user_variance
from hetlit.concentration import exact_beta_binomial_width
from hetlit.explorers.concentration import (
    CENTRE,
    CLIPPING,
    EPSILON,
    FINE,
    LAW,
    MEANS,
    META,
    VARIANCE,
    best_half_width,
    clipped_moments,
    clipping,
    error_parts,
    interval,
    lost,
)
from hetlit.explorers.picture import coordinates, percent
from hetlit.weights import release_variance

HALF_WIDTHS, USERS = (parameter.values for parameter in CLIPPING.parameters)


def marks_of(half_width, users):
    """The coordinates of all marks, one list for each panel."""
    panels = clipping(half_width=half_width, users=users).panels
    return [[coordinates(mark) for mark in panel.marks] for panel in panels]


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
    assert (low, high) == (0.0, 1.0)
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
def test_the_picture_and_its_reading_agree_with_the_parts(users):
    for half_width in HALF_WIDTHS:
        parts = error_parts(half_width, users) * users / VARIANCE
        upper, lower = marks_of(half_width, users)
        assert upper[-1]["x"] == half_width
        assert upper[-1]["y"] == pytest.approx(parts.sum())
        assert 1e-3 <= parts.sum() <= 1e5
        assert tuple(lower[0]["x"]) == tuple(map(float, interval(half_width)))
        reading = clipping(half_width=half_width, users=users).reading
        name = ("bias", "sampling error", "noise")[int(parts.argmax())]
        share = parts.max() / parts.sum()
        assert f"and {percent(share)} of it is {name}." in reading
        assert f"{users:,} users lose {lost(half_width)} of" in reading
