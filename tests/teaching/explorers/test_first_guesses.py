"""The explorer of the chapter on first guesses: what share of a budget to spend.

One test is statistical, with a fixed seed.  It compares a share with a bound that is
known to be far above it, and fails with a chance below 1e-9.
"""

import itertools
import math

import numpy as np
import pytest
from scipy import optimize, stats

from hetlit import initial_variance, user_variance
from hetlit.estimators.first_guesses import GRID_RATIO, median_rank_error, rank_factor
from hetlit.estimators.spread import REACH
from hetlit.teaching.explorers.first_guesses import (
    BUDGET,
    CELLS,
    ERRORS_OF_MEAN,
    FINE,
    MEAN,
    SAMPLES,
    SD,
    SHARES,
    SPREAD,
    budget,
    change,
    final_variance,
    variance_without,
    written,
)
from hetlit.teaching.explorers.picture import coordinates
from hetlit.theory.populations import Beta
from hetlit.theory.weights import release_variance
from tests.explorers import values_of

SLIDER, USERS, EPSILONS = values_of(BUDGET.parameters)


def ratios(shares, users, epsilon, with_users=False):
    guessed = final_variance(shares, users, epsilon, with_users=with_users)
    return guessed / variance_without(users, epsilon)


# The two functions behind it


def test_the_rank_error_makes_both_failures_improbable():
    # The chapter's two events, each with probability beta/2 at most.
    pairs, epsilon, beta, cells = 300, 0.5, 0.02, 40
    first = median_rank_error(pairs, epsilon, beta, cells) - math.sqrt(
        math.log(4.0 / beta) / (2.0 * pairs)
    )
    assert cells * math.exp(-epsilon * first * pairs / 2.0) == pytest.approx(beta / 2)
    second = median_rank_error(pairs, math.inf, beta, cells)
    assert 2.0 * math.exp(-2.0 * pairs * second**2) == pytest.approx(beta / 2.0)


def test_the_rank_factor_is_a_ratio_of_quantiles_of_gaussian_differences():
    law = stats.halfnorm(scale=math.sqrt(2.0))
    for error in (-0.3, -0.1, 0.0, 0.1, 0.3):
        expected = law.ppf(0.5 + error) / law.median()
        assert rank_factor(error) == pytest.approx(expected)
    assert rank_factor(0.5) == rank_factor(0.7) == math.inf
    assert rank_factor(-0.5) == 0.0


def test_guesses_of_the_spread_stay_within_the_factor():
    # Proved: at most one in twenty is too large.  With 400 runs, 60 too many have a
    # chance below 1e-12 even if the bound were tight.
    rng = np.random.default_rng(11)
    pairs, runs = 300, 400
    eta = median_rank_error(pairs, 1.0, 0.05, CELLS)
    most = GRID_RATIO * rank_factor(eta) ** 2 * 0.01
    values = np.clip(rng.normal(0.5, 0.1, size=(runs, 2 * pairs)), 0.0, 1.0)
    guesses = [
        initial_variance(row, 1.0, k=100, inflation=1.0, rng=rng) for row in values
    ]
    assert np.sum(np.array(guesses) > most) <= 60


# The variance with guesses


def test_the_population_is_the_chapter_s_and_the_setting_s():
    assert CELLS == 36
    assert np.isclose(SD**2, user_variance(100, 0.5, 0.0004))
    numbers = f"{SAMPLES} samples each, from a population with mean {MEAN} and spread"
    assert f"{numbers} {SPREAD}." in BUDGET.setting


def test_the_best_shares_are_those_printed_in_the_chapter():
    printed = {10_000: (30, 0.66), 30_000: (19, 0.50), 100_000: (12, 0.67)}
    for users, (share, value) in printed.items():
        values = ratios(FINE, users, 0.1)
        assert round(100.0 * FINE[values.argmin()]) == share
        assert round(values.min(), 2) == value


@pytest.mark.parametrize("way", ["budget", "users"])
@pytest.mark.parametrize("epsilon", EPSILONS)
def test_the_variance_is_that_of_a_release_by_those_who_are_left(epsilon, way):
    # Numbers of users that can be divided, so that cohorts have whole sizes.
    for share, n in itertools.product((0.01, 0.1, 0.5), (2000, 10_000, 10**6)):
        if way == "users":
            guessers, budget_of_each = round(n * share / 2), epsilon
            left, budget_left = n - 2 * guessers, epsilon
        else:
            guessers, budget_of_each = n, epsilon * share / 2
            left, budget_left = n, epsilon * (1 - share)
        error = math.sqrt(
            release_variance(
                [1 / guessers], [SD**2], [1.0], budget_of_each, counts=[guessers]
            )
        )
        eta = median_rank_error(guessers / 2, budget_of_each, 0.05, CELLS)
        half = 2.75 * SD * 2**0.125 * rank_factor(eta) + 2 * error
        low, high = max(0.0, MEAN - half), min(1.0, MEAN + half)
        expected = release_variance(
            [1 / left], [SD**2], [high - low], budget_left, counts=[left]
        )
        found = final_variance(share, n, epsilon, with_users=way == "users")
        assert found == pytest.approx(expected)


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_the_bias_that_is_left_out_is_small_beside_the_variance(epsilon):
    # Intervals reach as far as they do if the spread is guessed right; the error of
    # the first mean is a Laplace variable, which has longer tails than the true one.
    m = Beta(MEAN, SPREAD**2).concentration
    law = stats.betabinom.pmf(np.arange(SAMPLES + 1), SAMPLES, m * MEAN, m * MEAN)
    means = np.arange(SAMPLES + 1) / SAMPLES
    places = stats.laplace.ppf((np.arange(400) + 0.5) / 400) / math.sqrt(2.0)
    for n in USERS:
        variances = final_variance(FINE, n, epsilon, with_users=False)
        share = FINE[variances.argmin()]
        error = math.sqrt(SD**2 / n + 2.0 / (n * epsilon * share / 2.0) ** 2)
        centres = np.clip(MEAN + error * places, 0.0, 1.0)[:, None]
        half = REACH * SD + ERRORS_OF_MEAN * error
        low, high = np.maximum(centres - half, 0.0), np.minimum(centres + half, 1.0)
        biases = np.clip(means, low, high) @ law - MEAN
        assert np.mean(biases**2) < 0.015 * variances.min()


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_without_guesses_it_is_a_release_with_width_one(epsilon):
    for users in USERS:
        released = release_variance(
            [1.0 / users], [SD**2], [1.0], epsilon, counts=[users]
        )
        assert variance_without(users, epsilon) == pytest.approx(released)


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_where_intervals_stay_as_wide_as_possible_a_share_is_wasted(epsilon):
    # Then only the budget shrinks, to (1 - share) of it.
    share, users = 0.001, 1000
    noise = 2.0 / (users * (1.0 - share) * epsilon) ** 2
    wasted = SD**2 / users + noise
    assert final_variance(share, users, epsilon, with_users=False) == pytest.approx(
        wasted
    )


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_budget_is_never_worse_than_the_same_share_of_users(epsilon):
    shares = np.geomspace(0.001, 0.95, 500)
    for users in USERS:
        paid = [ratios(shares, users, epsilon, way) for way in (False, True)]
        assert (paid[0] <= paid[1] * (1.0 + 1e-12)).all()


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_first_guesses_pay_most_in_the_middle(epsilon):
    shares = np.geomspace(0.001, 0.95, 500)
    crowds = np.geomspace(100, 10**9, 200).round()
    gains = np.array([1.0 - ratios(shares, n, epsilon).min() for n in crowds])
    assert gains[0] < 0.0
    assert 0.0 <= gains[-1] < 0.001
    assert gains.max() > 0.1
    # No gain at first, then up and then down.
    pays = gains > 0.0
    assert pays[pays.argmax() :].all()
    rises = np.diff(gains[pays]) > 0.0
    assert not (rises[1:] & ~rises[:-1]).any()


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_where_the_reading_says_that_no_share_pays_none_does(epsilon):
    shares = np.geomspace(1e-4, 0.99, 2000)
    for users in USERS:
        reading = budget(share=0.1, users=users, epsilon=epsilon).reading
        pays = ratios(shares, users, epsilon).min() < 1.0
        assert ("No share pays" in reading) == (not pays)


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_no_share_is_noticeably_better_than_the_best_in_the_reading(epsilon):
    for users in USERS:
        found = ratios(FINE, users, epsilon)
        if found.min() < 1.0:
            near = FINE[found.argmin()]
            search = optimize.minimize_scalar(
                lambda share, users=users: ratios(share, users, epsilon),
                bounds=(0.8 * near, 1.25 * near),
                method="bounded",
            )
            assert found.min() < search.fun + 0.002


@pytest.mark.parametrize("users", USERS)
def test_the_picture_and_its_reading_agree_with_the_variances(users):
    for share in SLIDER:
        picture = budget(share=share, users=users, epsilon=0.1)
        (panel,) = picture.panels
        marks = {mark.name: coordinates(mark) for mark in panel.marks}
        here = ratios(share, users, 0.1)
        assert marks["this share of the budget"]["x"] == 100.0 * share
        assert marks["this share of the budget"]["y"] == here
        assert panel.y.low < here < panel.y.high
        for name, way in (("budget", False), ("users", True)):
            drawn = marks[f"a share of the {name}"]
            assert np.allclose(drawn["x"], 100.0 * SHARES)
            assert np.allclose(drawn["y"], ratios(SHARES, users, 0.1, way))
        assert (marks["without first guesses"]["y"] == 1.0).all()
        assert f"{written(share)} of the budget" in picture.reading
        assert change(here) in picture.reading
