"""Claims of the paper that no function of the library computes, checked one by one.

Nothing here is statistical: expectations are sums over all outcomes.
"""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import integrate, stats

from hetlit import (
    Users,
    best_threshold,
    estimate_ideal,
    estimate_nonprivate,
    estimate_nonprivate_ideal,
    sizes,
    truncated_weights,
    user_variance,
)
from hetlit.estimators.published import BERRY_ESSEEN
from hetlit.theory.weights import release_variance
from hetlit.theory.widths import exact_beta_binomial_width

SHARES = st.floats(0.0, 1.0)
NOT_TINY = st.just(0.0) | st.floats(1e-300, 1.0)  # products of tiny numbers vanish


# The model


def test_weights_are_biased_when_sizes_tell_something_about_rates():
    # Half of the people type much and accept little.
    users = Users(k=[1, 100], successes=[0, 0], counts=[50, 50])
    weights = estimate_nonprivate_ideal(users, 0.4, 0.02, trace=True).trace.weights
    rates = np.array([0.6, 0.2])
    over_people = np.sum(users.counts * rates) / 100
    expected = np.sum(users.counts * weights * rates)
    assert over_people == pytest.approx(0.4)
    assert expected < 0.25


# Without privacy


@pytest.mark.parametrize("k_heavy", [10**3, 10**5, 10**7])
def test_algorithm_1_can_lose_any_factor(k_heavy):
    # The users with nearly all of the data give the first spread and sit out.
    n, rng = 1000, np.random.default_rng(0)
    k = sizes.two_level(n, heavy=math.ceil(math.log(n)), k_heavy=k_heavy)
    users = Users(k, k // 2)
    ideal = estimate_nonprivate_ideal(users, 0.5, 0.0, trace=True).trace
    final = estimate_nonprivate(users, rng=rng, trace=True).trace.cohorts["final"]
    # Nobody can do better with the final cohort than one over its samples.
    assert final.k.tolist() == [1] * final.n
    assert 0.25 / final.n > k_heavy / 130 * ideal.objective


# The main theorem


@given(st.integers(1, 10**4), st.integers(1, 100), NOT_TINY, SHARES)
def test_sizes_within_a_factor_have_variances_within_it(median, factor, p, share):
    var_p = share * p * (1 - p)
    most, least = user_variance(np.array([median, factor * median]), p, var_p)
    assert most <= factor * least * (1 + 1e-12)


def unequal_users(rng, n, top):
    """Sizes in descending order; the largest is (n/2 - top)/top times the median."""
    median = int(rng.integers(1, 50))
    largest = int((n / 2 - top) / top * median)
    half = n // 2
    upper = rng.integers(median, largest + 1, half)
    lower = rng.integers(1, median + 1, n - half)
    if rng.random() < 0.5:  # as uneven as can be
        upper[:], lower[:] = median, 1
        upper[:top] = largest
    upper[0], upper[-1] = largest, median
    return np.sort(np.concatenate((upper, lower)))[::-1]


def test_the_final_cohort_carries_a_quarter_of_the_weight():
    rng = np.random.default_rng(1)
    least = math.inf
    for _ in range(300):
        n = 10 * int(rng.integers(2, 30))
        top = int(rng.integers(1, n // 4 + 1))
        k = unequal_users(rng, n, top)
        p = rng.uniform(0.01, 0.99)
        precision = 1 / np.sqrt(user_variance(k, p, rng.uniform() ** 4 * p * (1 - p)))
        for threshold in np.quantile(precision, [0, 0.5, 0.9, 1]):
            weights = np.minimum(precision**2, threshold * precision)
            share = weights[top : 9 * n // 10].sum() / weights.sum()
            assert share >= 1 / 4
            least = min(least, share)
    assert least < 0.55


def test_first_guesses_within_their_factors_cost_a_bounded_factor():
    # The last factor of the theorem's constant, 2, is for clipped variances.
    promised = 2 * (4 * 4**2) * 9.5**2 * 4**2
    assert 2 * promised == 369_664
    rng = np.random.default_rng(2)
    worst = 0.0
    for _ in range(300):
        n = 10 * int(rng.integers(2, 30))
        top, epsilon = int(rng.integers(1, n // 4 + 1)), 10 ** rng.uniform(-2, 2)
        k = unequal_users(rng, n, top)
        p = rng.uniform(0.01, 0.99)
        variances = user_variance(k, p, rng.uniform() ** 4 * p * (1 - p))
        widths = np.sqrt(variances) * rng.choice([1, 5]) * rng.uniform(1, 2, n)
        _, ideal = best_threshold(variances, widths, epsilon)
        final = slice(top, 9 * n // 10)
        size = len(k[final])
        guessed = variances[final] * rng.choice([0.5, 1, 9.5], size)
        wide = widths[final] * rng.choice([1, 4], size)
        threshold, _ = best_threshold(guessed, wide, epsilon)
        weights = truncated_weights(guessed, threshold)
        found = release_variance(weights, variances[final], wide, epsilon)
        worst = max(worst, found / ideal)
        assert found <= promised * ideal
    assert worst > 10


# The ideal estimator


@pytest.mark.parametrize("beta", [0.3, 0.05])
@pytest.mark.parametrize(("mean", "concentration"), [(0.3, 10.0), (0.02, 50.0)])
def test_clipping_biases_the_ideal_estimator_by_at_most_beta(mean, concentration, beta):
    k = np.array([40, 20, 10, 5, 2, 1, 1, 1])
    law = {
        int(size): stats.betabinom(
            size, mean * concentration, (1 - mean) * concentration
        ).pmf(np.arange(size + 1))
        for size in k
    }
    trace = estimate_ideal(
        Users(k, 0 * k),
        mean,
        mean * (1 - mean) / (concentration + 1),
        1.0,
        width=lambda k: exact_beta_binomial_width(k, 8, mean, concentration, beta),
        rng=np.random.default_rng(0),
        trace=True,
    ).trace
    clipped = [
        law[int(size)] @ np.clip(np.arange(size + 1) / size, low, high)
        for size, low, high in zip(k, trace.lower, trace.upper, strict=True)
    ]
    bias = float(trace.weights @ clipped) - mean
    assert abs(bias) <= beta


# Propose, test, release


@given(
    st.lists(
        st.tuples(st.floats(0.1, 10.0), st.floats(0.0, 1.0)), min_size=2, max_size=8
    )
)
def test_removing_a_user_moves_a_weighted_mean_by_her_share_of_the_distance(rows):
    weights, means = np.array(rows).T
    whole = np.average(means, weights=weights)
    for user in range(len(rows)):
        others = np.average(np.delete(means, user), weights=np.delete(weights, user))
        moved = weights[user] / weights.sum() * (means[user] - others)
        assert whole - others == pytest.approx(moved, abs=1e-12)


# Lower bounds: estimators of a few users as tables of numbers


def tosses(k):
    """All data of users who hold k tosses each: one row of numbers of ones each."""
    return np.array(list(itertools.product(*(range(size + 1) for size in k))))


def alone(values, probabilities, x, user):
    """The estimator's mean given one user's data, and the law of these data."""
    ones = range(x[:, user].max() + 1)
    law = np.array([probabilities[x[:, user] == one].sum() for one in ones])
    sums = [(probabilities * values)[x[:, user] == one].sum() for one in ones]
    return np.array(sums) / law, law


def test_variance_is_at_least_the_parts_of_single_users_and_the_noise():
    rng = np.random.default_rng(3)
    for _ in range(200):
        k = rng.integers(1, 4, size=int(rng.integers(1, 4)))
        x, p = tosses(k), rng.uniform(0.1, 0.9)
        probabilities = stats.binom.pmf(x, k, p).prod(axis=1)
        values, noise = rng.normal(size=len(x)), rng.exponential(size=len(x))
        mean = probabilities @ values
        variance = probabilities @ ((values - mean) ** 2 + noise)
        parts = probabilities @ noise
        for user in range(len(k)):
            effect, law = alone(values, probabilities, x, user)
            parts += law @ (effect - mean) ** 2
        assert parts <= variance * (1 + 1e-12)
        if len(k) == 1:
            assert parts == pytest.approx(variance)


def test_a_user_contributes_at_least_her_squared_weight_over_her_information():
    rng = np.random.default_rng(4)
    for _ in range(200):
        k = rng.integers(1, 4, size=int(rng.integers(1, 4)))
        x, p = tosses(k), rng.uniform(0.1, 0.9)
        probabilities = stats.binom.pmf(x, k, p).prod(axis=1)
        values = rng.normal(size=len(x))
        for user, size in enumerate(k):
            score = (x[:, user] - size * p) / (p * (1 - p))
            weight = probabilities @ (values * score)
            effect, law = alone(values, probabilities, x, user)
            variance = law @ (effect - law @ effect) ** 2
            least = weight**2 / (size / (p * (1 - p)))
            assert variance >= least * (1 - 1e-9)
            if size == 1:  # one toss: the effect is linear in the score
                assert variance == pytest.approx(least)
            # Two independent draws of her data move the mean by twice that.
            apart = (effect[:, None] - effect) ** 2
            assert law @ apart @ law == pytest.approx(2 * variance)


def test_weights_of_an_unbiased_estimator_add_up_to_one():
    rng = np.random.default_rng(5)
    n, least = 5, math.inf
    x = tosses([1] * n)
    ones = x.sum(axis=1)
    for _ in range(100):
        # Unbiased at every p: among tables with s ones the mean is s/n.
        values = rng.normal(size=len(x))
        for s in range(n + 1):
            values[ones == s] += s / n - values[ones == s].mean()
        p = rng.uniform(0.1, 0.9)
        probabilities = p**ones * (1 - p) ** (n - ones)
        assert probabilities @ values == pytest.approx(p)
        weights = (probabilities * values) @ (x - p) / (p * (1 - p))
        assert weights.sum() == pytest.approx(1)
        least = min(least, weights.min())
    assert least < 0  # so they are no shares


# First guesses


@pytest.mark.parametrize("k", [3, 6, 30, 200])
def test_third_moments_of_means_keep_the_papers_bound(k):
    tried = 0
    for mean, concentration in itertools.product(
        np.linspace(1 / k, 0.5, 3), (0.1, 1.0, 30.0, 200.0)
    ):
        a, b = mean * concentration, (1 - mean) * concentration
        sd = math.sqrt(mean * (1 - mean) / (concentration + 1))
        if sd < 1 / k:
            continue
        tried += 1
        third = absolute_third_moment(stats.beta(a, b), mean)
        x = np.arange(k + 1)
        pmf, distance = stats.betabinom(k, a, b).pmf(x), np.abs(x / k - mean)
        ratio = pmf @ distance**3 / (pmf @ distance**2) ** 1.5
        assert ratio <= 8 * (3 * math.sqrt(3) + third / sd**3)
        assert ratio >= 1  # Jensen: no law has less
    assert tried >= 3


def absolute_third_moment(law, mean):
    """E|x - mean|^3, by 3 t^2 Pr(|x - mean| > t), which has no poles."""

    def tail(t):
        return 3 * t**2 * (law.cdf(mean - t) + law.sf(mean + t))

    return integrate.quad(tail, 0, 1, points=sorted({mean, 1 - mean}), limit=200)[0]


# First guesses


@given(
    st.integers(1, 10**4),
    st.integers(0, 10**4),
    SHARES,
    SHARES,
    st.floats(0.5, 1.5),
    st.floats(1.0, 8.0),
)
def test_first_guesses_give_variances_within_their_factors(
    k, more, p, share, off, times
):
    # The first variance comes from users with at least as much data.
    q = p * (1 - p)
    true = user_variance(k, p, share * q)
    spread = times * user_variance(k + more, p, share * q)
    guessed = off * q / k + (1 - 1 / k) * spread
    assert 0.5 * true * (1 - 1e-12) <= guessed <= 9.5 * true * (1 + 1e-12)


@pytest.mark.parametrize("n", [1, 2, 10, 100, 1000])
def test_means_of_tosses_are_as_gaussian_as_berry_and_esseen_say(n):
    for p in (0.01, 0.1, 0.4, 0.5):
        sd = math.sqrt(p * (1 - p))
        third = p * (1 - p) * (p**2 + (1 - p) ** 2)
        x = np.arange(n + 1)
        normal = stats.norm.cdf((x - n * p) / (sd * math.sqrt(n)))
        at, below = stats.binom.cdf(x, n, p), stats.binom.cdf(x - 1, n, p)
        gap = np.maximum(abs(at - normal), abs(below - normal)).max()
        assert gap <= BERRY_ESSEEN * third / sd**3 / math.sqrt(n)
