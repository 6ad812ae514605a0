"""Lower bounds: their numbers, that they are minima, and that nobody goes below them.

Everything is exact but one simulation, of the midrange; its false-alarm rate is
stated there and is below 1e-8.
"""

from __future__ import annotations

import itertools
import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import optimize, special, stats

from hetlit import (
    Beta,
    Constant,
    TruncatedGaussian,
    Users,
    estimate_ideal,
    inverse_variance_weights,
    optimal_weights,
    sizes,
    user_variance,
)
from hetlit.theory.bounds import (
    REACH,
    beta_binomial_information,
    binomial_information,
    dp_cramer_rao,
    k_star,
    least_noise,
    midrange_variance,
    moving_window_bound,
    truncated_gaussian_information,
    window_factor,
)
from hetlit.theory.weights import release_variance
from tests.odd import odd

VARIANTS = ("sqrt", "min")
EPSILONS = st.floats(-3.0, 3.0).map(lambda exponent: 10.0**exponent)
INFORMATION = st.floats(-4.0, 8.0).map(lambda exponent: 10.0**exponent)


@st.composite
def populations(draw):
    """Rows (k, counts), with ties, and often a single user."""
    rows = draw(st.integers(1, 7))
    levels = st.lists(st.integers(1, 10**6), min_size=1, max_size=rows)
    pool = st.sampled_from(draw(levels))
    k = draw(st.lists(pool, min_size=rows, max_size=rows))
    numbers = st.integers(1, 1000) if draw(st.booleans()) else st.just(1)
    return np.array(k), np.array(draw(st.lists(numbers, min_size=rows, max_size=rows)))


def capped_variance(caps, k, epsilon, variant, counts, noise=1.0):
    """The objective that k* minimises, from its definition, for many caps."""
    caps = np.asarray(caps, dtype=float)[..., None]
    used = np.sum(counts * np.minimum(k, caps), axis=-1)
    shares = np.minimum(k, np.sqrt(k * caps) if variant == "sqrt" else caps)
    privacy = noise * caps[..., 0] / epsilon**2
    return (privacy + used) / np.sum(counts * shares, axis=-1) ** 2


def cap_grid(k):
    """Many caps: around and between all the sizes, below and above them."""
    wide = np.geomspace(k.min() / 50, 3.0 * k.max(), 3000)
    return np.concatenate((wide, k, k * (1 - 1e-9), k * (1 + 1e-9)))


# k*: the best cap on sizes


@pytest.mark.parametrize(
    ("noise", "cap", "variance"),
    [
        (6 * math.log(2 / 0.05), 2.001686707, 8.68989658e-4),
        (12 * math.log(200 / 0.05), 0.463793621, 1.80244071e-3),
        (24 * math.log(200 / 0.05), 0.167176454, 3.00217372e-3),
    ],
)
def test_k_star_has_the_known_values_for_constant_rates(noise, cap, variance):
    # n = 100, p = 1/2: the paper's noise term 6p log(2/beta) is in units of p(1-p).
    found, value = k_star(sizes.harmonic(100), 1.0, noise=noise / 0.5)
    assert found == pytest.approx(cap, abs=5e-10)
    assert 0.25 * value == pytest.approx(variance, rel=1e-8)


@pytest.mark.parametrize("epsilon", [0.3, 1.0, 5.0])
def test_the_noise_of_constant_rates_is_24_log_over_1_minus_p(epsilon):
    # Chernoff intervals of half-width sqrt(3p l/k) and true Laplace noise.
    k, p = sizes.harmonic(100), 0.2
    logarithm = math.log(2 * 100 / 0.05)
    widths = 2 * np.sqrt(3 * p * logarithm / k)
    _, objective = optimal_weights(p * (1 - p) / k, widths, epsilon)
    _, value = k_star(k, epsilon, noise=24 * logarithm / (1 - p))
    assert p * (1 - p) * value == pytest.approx(objective, rel=1e-12)


@pytest.mark.parametrize(
    ("epsilon", "gap"), [(1, 1.119), (0.1, 4.687), (0.01, 15.50), (0.001, 34.08)]
)
def test_the_two_variants_are_as_far_apart_as_known(epsilon, gap):
    k = -(-(10**10) // np.arange(1, 10**5 + 1) ** 2)  # ceil(n^2/i^2), n = 10^5
    ratio = k_star(k, epsilon, variant="min")[1] / k_star(k, epsilon)[1]
    assert ratio == pytest.approx(gap, rel=5e-4)


@pytest.mark.parametrize(("n", "known"), [(10**4, 0.990197), (10**6, 0.999002)])
def test_heavy_users_bring_the_sampling_error_to_the_known_rate(n, known):
    k = sizes.two_level(n, heavy=math.isqrt(n), k_heavy=n)
    for variant in VARIANTS:
        cap, value = k_star(k, 1e9, variant=variant)
        assert cap == pytest.approx(n)
        assert value * n**1.5 == pytest.approx(known, abs=5e-7)
        assert value * n < 0.011  # a cap at the median gives 1


@given(populations(), EPSILONS, st.sampled_from([1.0, 2.0, 30.0]))
def test_the_sqrt_cap_solves_the_water_filling_equation(population, epsilon, noise):
    k, counts = population
    cap, value = k_star(k, epsilon, counts=counts, noise=noise)
    root = math.sqrt(cap)
    poured = np.sum(counts * np.maximum(np.sqrt(k) - root, 0.0))
    tolerance = 1e-12 * np.sum(counts * np.sqrt(k))
    assert poured == pytest.approx(noise / epsilon**2 * root, rel=1e-9, abs=tolerance)
    total = np.sum(counts * np.minimum(k, np.sqrt(k) * root))
    assert value == pytest.approx(1 / total, rel=1e-12)


@given(populations(), EPSILONS)
def test_the_min_cap_is_one_of_the_sizes(population, epsilon):
    k, counts = population
    cap, _ = k_star(k, epsilon, variant="min", counts=counts)
    assert cap in k


@pytest.mark.parametrize("variant", VARIANTS)
@given(population=populations(), epsilon=EPSILONS)
def test_no_cap_beats_k_star(variant, population, epsilon):
    k, counts = population
    cap, value = k_star(k, epsilon, variant=variant, counts=counts)
    at_cap = capped_variance(cap, k, epsilon, variant, counts)
    assert at_cap == pytest.approx(value, rel=1e-11)
    others = capped_variance(cap_grid(k), k, epsilon, variant, counts)
    assert value <= others.min() * (1 + 1e-11)


@given(populations(), EPSILONS)
def test_the_sqrt_variant_is_never_above_the_min_variant(population, epsilon):
    k, counts = population
    caps = cap_grid(k)
    low, high = (capped_variance(caps, k, epsilon, v, counts) for v in VARIANTS)
    assert (low <= high * (1 + 1e-12)).all()
    low, high = (k_star(k, epsilon, variant=v, counts=counts)[1] for v in VARIANTS)
    assert low <= high * (1 + 1e-12)
    assert high <= 4 * (1 + math.log(counts.sum())) ** 2 * low


def test_the_min_variant_can_have_two_valleys():
    # Many users with one sample, a few with ten thousand: cap at either.
    k, counts = np.array([1, 10**4]), np.array([10**5, 50])
    values = capped_variance([1, 667, 10**4], k, 0.1, "min", counts)
    assert values[1] > 1.1 * max(values[0], values[2])


@pytest.mark.parametrize("epsilon", [1e-3, 0.5, 1e3])
def test_k_star_of_a_single_user(epsilon):
    price = 1 / epsilon**2
    cap, value = k_star([49], epsilon)
    assert math.sqrt(cap) == pytest.approx(7 / (price + 1), rel=1e-12)
    assert value == pytest.approx((price + 1) / 49, rel=1e-12)
    best = k_star([49], epsilon, variant="min")
    assert best == pytest.approx((49, (price + 1) / 49), rel=1e-12)


@given(populations(), EPSILONS)
def test_k_star_counts_users_and_ignores_their_order(population, epsilon):
    k, counts = population
    expanded = np.random.default_rng(0).permutation(np.repeat(k, counts))
    for variant in VARIANTS:
        short = k_star(k, epsilon, variant=variant, counts=counts)
        long = k_star(expanded, epsilon, variant=variant)
        assert short == pytest.approx(long, rel=1e-9)


@given(populations(), EPSILONS)
def test_the_sqrt_value_is_that_of_optimal_weights_with_true_noise(population, epsilon):
    k, counts = population
    _, value = k_star(k, epsilon, counts=counts, noise=2.0)
    _, objective = optimal_weights(1 / k, 1 / np.sqrt(k), epsilon, counts=counts)
    assert value == pytest.approx(objective, rel=1e-10)


# How much noise hides a change


@pytest.mark.parametrize("epsilon", [1e-6, 0.1, 1.0, 5.0, 30.0])
def test_randomized_response_needs_exactly_the_least_noise(epsilon):
    lie = 1 / (1 + math.exp(epsilon))
    change, variance = math.tanh(epsilon / 2), lie * (1 - lie)  # 1 - 2 lie
    assert variance / change**2 == pytest.approx(least_noise(epsilon), rel=1e-9)


def test_the_least_noise_has_the_known_value():
    assert least_noise(1.0) == pytest.approx(0.920673594208, abs=5e-13)
    assert least_noise(1.0) == pytest.approx(math.e / (math.e - 1) ** 2, rel=1e-14)


@given(st.floats(1e-6, 600.0))
def test_laplace_noise_is_twice_the_least_noise_or_more(epsilon):
    assert 2 / epsilon**2 >= 2 * least_noise(epsilon) * (1 - 1e-12)
    assert least_noise(epsilon) == pytest.approx(
        1 / (2 * math.sinh(epsilon / 2)) ** 2, rel=1e-9
    )


def random_mechanism(rng, inputs, outputs):
    """Probabilities of outputs, one row per input."""
    epsilon = 10.0 ** rng.uniform(-2, 1)
    scores = rng.random((inputs, outputs))
    if rng.random() < 0.5:
        scores = np.round(scores)  # the extremes are where bounds are tight
    table = rng.dirichlet(np.ones(outputs)) * np.exp(epsilon / 2 * scores)
    return table / table.sum(axis=1, keepdims=True)


def test_no_finite_mechanism_hides_a_change_with_less_noise():
    rng = np.random.default_rng(1)
    for _ in range(500):
        here, there = random_mechanism(rng, 2, int(rng.integers(2, 6)))
        ratio = there / here
        epsilon = np.abs(np.log(ratio)).max()
        if epsilon < 1e-6:  # the same for both inputs, but for rounding
            continue
        # The likelihood ratio as output is the hardest case.
        for values in (ratio, rng.normal(size=len(here)), rng.random(len(here)) ** 9):
            change = (there - here) @ values
            variance = here @ (values - here @ values) ** 2
            assert variance >= change**2 * least_noise(epsilon) * (1 - 1e-9)


# The private bound of Cramer and Rao


def direct_minimum(information, epsilon):
    """The least value that a general solver finds, over shares and a ceiling."""
    price = 1 / (2 * math.sinh(epsilon / 2) ** 2)
    sd = 1 / np.sqrt(information)

    def smooth(x):
        return np.sum((x[:-1] * sd) ** 2) + price * x[-1] ** 2

    n = len(sd)
    start = np.append(np.full(n, 1 / n), np.max(sd) / n)
    unit = smooth(start)
    found = optimize.minimize(
        lambda x: smooth(x) / unit,
        start,
        method="SLSQP",
        constraints=(
            {"type": "eq", "fun": lambda x: np.sum(x[:-1]) - 1},
            {"type": "ineq", "fun": lambda x: (x[-1] - x[:-1] * sd) / start[-1]},
            {"type": "ineq", "fun": lambda x: (x[-1] + x[:-1] * sd) / start[-1]},
        ),
        options={"ftol": 1e-14, "maxiter": 1000},
    )
    return bound_objective(found.x[:-1] / np.sum(found.x[:-1]), information, epsilon)


def bound_objective(weights, information, epsilon):
    parts = weights**2 / information
    return np.sum(parts) + np.max(parts) / (2 * math.sinh(epsilon / 2) ** 2)


def test_the_closed_form_is_what_direct_minimisation_finds():
    rng = np.random.default_rng(2)
    for _ in range(60):
        pool = 10.0 ** rng.uniform(-1, 1, 4)
        information = rng.choice(pool, int(rng.integers(1, 9)))
        epsilon = 10.0 ** rng.uniform(-1, 1)
        value = dp_cramer_rao(information, epsilon)
        found = direct_minimum(information, epsilon)
        assert value <= found * (1 + 1e-12)
        assert value == pytest.approx(found, rel=1e-6)


@given(st.lists(INFORMATION, min_size=1, max_size=8), st.floats(0.01, 30.0), st.data())
def test_no_weights_go_below_the_bound_even_negative_ones(information, epsilon, data):
    information = np.array(information)
    steps = st.lists(
        st.floats(-1, 1), min_size=len(information), max_size=len(information)
    )
    weights = np.array(data.draw(steps))
    if abs(weights.sum()) > 1e-3:
        weights /= weights.sum()
        found = bound_objective(weights, information, epsilon)
        assert dp_cramer_rao(information, epsilon) <= found * (1 + 1e-9)


@given(
    st.lists(st.tuples(INFORMATION, st.integers(1, 10**6)), min_size=1, max_size=8),
    st.floats(1e-3, 20.0),
)
def test_the_bound_is_the_objective_of_optimal_weights_at_the_same_price(rows, epsilon):
    information, counts = (np.array(column) for column in zip(*rows, strict=True))
    _, objective = optimal_weights(
        1 / information,
        1 / np.sqrt(information),
        2 * math.sinh(epsilon / 2),
        counts=counts,
    )
    value = dp_cramer_rao(information, epsilon, counts=counts)
    assert value == pytest.approx(objective, rel=1e-9)


@given(
    st.lists(st.tuples(INFORMATION, st.integers(1, 10**6)), min_size=1, max_size=8),
    st.floats(1e-4, 0.1),
)
def test_the_best_noisy_linear_estimator_is_within_a_percent(rows, epsilon):
    information, counts = (np.array(column) for column in zip(*rows, strict=True))
    variances = 1 / information
    _, best = optimal_weights(variances, np.sqrt(variances), epsilon, counts=counts)
    bound = dp_cramer_rao(information, epsilon, counts=counts)
    assert bound * (1 - 1e-9) <= best <= 1.01 * bound


@given(st.lists(INFORMATION, min_size=1, max_size=6), st.integers(1, 50))
def test_the_bound_counts_users_and_ignores_their_order(information, number):
    counts = number + np.arange(len(information))
    short = dp_cramer_rao(information, 0.7, counts=counts)
    long = dp_cramer_rao(np.repeat(information, counts)[::-1], 0.7)
    assert short == pytest.approx(long, rel=1e-11)


def test_the_bound_of_equal_users():
    value = dp_cramer_rao([4.0], 1.0, counts=[50])
    known = (1 / 50 + 2 * least_noise(1.0) / 50**2) / 4
    assert value == pytest.approx(known, rel=1e-14)


def test_the_bound_is_safe_for_every_epsilon():
    information = np.array([100.0, 25.0, 4.0, 4.0])
    epsilons = 10.0 ** np.arange(-6.0, 7.0)
    epsilons = np.sort(np.append(epsilons, [700, 709, 746, 1420, 1500, 1e12]))
    values = [dp_cramer_rao(information, epsilon) for epsilon in epsilons]
    assert np.isfinite(values).all()
    assert (np.diff(values) <= 0).all()
    assert values[-1] == pytest.approx(1 / information.sum(), rel=1e-15)
    # So little privacy budget that everyone is at the ceiling.
    known = (2 / 1e-6**2 + 4) / np.sum(np.sqrt(information)) ** 2
    assert values[0] == pytest.approx(known, rel=1e-11)


@pytest.mark.parametrize("unit", [1e-249, 1e-9, 1e9, 1e249])
@pytest.mark.parametrize("epsilon", [1e-6, 1.0, 700.0])
def test_the_bound_scales_with_the_unit_of_information(unit, epsilon):
    information = np.array([3.0, 2.0, 0.5])
    value = dp_cramer_rao(information * unit, epsilon) * unit
    assert value == pytest.approx(dp_cramer_rao(information, epsilon), rel=1e-12)


# Nobody unbiased goes below it


META = (
    Constant(0.5),
    Constant(0.05),
    Beta(0.3, 0.0004),
    Beta(0.3, 0.01),
    Beta(0.5, 0.2),
)
PROFILES = {
    "equal": sizes.equal(300, 20),
    "harmonic": sizes.harmonic(1000),
    "two_level": sizes.two_level(1000, heavy=30, k_heavy=1000),
    "geometric": sizes.geometric(500, 30.0, np.random.default_rng(3)),
}


def information_of(meta, k):
    if isinstance(meta, Constant):
        return binomial_information(k, meta.p)
    return beta_binomial_information(k, meta.mean, meta.concentration)


def ideal_trace(k, meta, epsilon, weights, half_width) -> Any:
    return estimate_ideal(
        Users(k, np.zeros_like(k)),  # weights and noise depend on sizes only
        meta.mean,
        meta.variance,
        epsilon,
        width=half_width,
        weights=weights,
        rng=np.random.default_rng(0),
        trace=True,
    ).trace


@pytest.mark.parametrize("profile", PROFILES)
@pytest.mark.parametrize("meta", META, ids=str)
def test_no_unbiased_private_estimator_goes_below_the_bound(meta, profile):
    k = PROFILES[profile]
    n, variances = len(k), user_variance(k, meta.mean, meta.variance)
    information, whole = information_of(meta, k), np.ones(len(k))
    for epsilon in (0.05, 1.0, 8.0):
        bound = dp_cramer_rao(information, epsilon)
        public = {
            "user mean": whole / n,
            "pooled mean": k / k.sum(),
            "public sizes": inverse_variance_weights(user_variance(k, 0.5, 1 / 64)),
            "best": optimal_weights(variances, whole, epsilon)[0],
        }
        found = {
            name: release_variance(weights, variances, whole, epsilon)
            for name, weights in public.items()
        }
        q = meta.mean * (1 - meta.mean)
        found["randomized response"] = (q + least_noise(epsilon)) / n
        for weights in ("paper", "optimal"):
            trace = ideal_trace(k, meta, epsilon, weights, np.ones_like)
            assert (trace.lower == 0).all()  # clips nothing, so it is unbiased
            assert (trace.upper == 1).all()
            found[weights] = trace.objective
        below = {name: value for name, value in found.items() if value < bound}
        assert not below


def test_a_clipped_estimator_can_go_below_it_because_it_follows_p_less():
    meta, k, epsilon = Constant(0.3), np.repeat([50, 20], 100), 0.1

    def half_width(sizes):
        return 0.4 * np.sqrt(0.21 / sizes)

    trace = ideal_trace(k, meta, epsilon, "optimal", half_width)
    bound = dp_cramer_rao(binomial_information(k, 0.3), epsilon)
    variance, slope = 2 * trace.noise_scale**2, 0.0
    for user in (0, 100):
        x = np.arange(k[user] + 1)
        clipped = np.clip(x / k[user], trace.lower[user], trace.upper[user])
        pmf, weight = stats.binom.pmf(x, k[user], 0.3), trace.weights[user]
        variance += 100 * weight**2 * pmf @ (clipped - pmf @ clipped) ** 2
        slope += 100 * weight * (pmf @ (clipped * (x - 0.3 * k[user]))) / 0.21
    assert variance < 0.9 * bound
    assert slope < 0.9
    assert variance >= slope**2 * bound


def test_the_bound_holds_for_every_small_mechanism():
    """All of the theorem at once, by enumeration: M need not be unbiased.

    The derivative of E M in p takes the place of 1.
    """
    rng = np.random.default_rng(4)
    closest = math.inf
    for trial in range(400):
        k = rng.integers(1, 4, size=int(rng.integers(1, 4)))
        p = rng.uniform(0.1, 0.9)
        inputs = list(itertools.product(*(range(size + 1) for size in k)))
        x = np.array(inputs)
        if trial % 2:
            table = random_mechanism(rng, len(x), int(rng.integers(2, 5)))
            values = rng.normal(size=table.shape[1])
        else:  # a noisy vote: one bit whose log-odds follow the mean
            odds = 10.0 ** rng.uniform(-2, 1) * (x / k - p).sum(axis=1)
            table = special.expit(np.column_stack((odds, -odds)))
            values = np.array([1.0, 0.0])
        apart = np.sum(x[:, None] != x[None], axis=2) == 1
        logs = np.log(table)
        epsilon = np.abs(logs[:, None] - logs[None])[apart].max()
        if epsilon < 1e-6:  # the same for all inputs, but for rounding
            continue
        pmf = stats.binom.pmf(x, k, p).prod(axis=1)
        score = np.sum(x - k * p, axis=1) / (p * (1 - p))
        mean = pmf @ table @ values
        slope = (pmf * score) @ table @ values
        variance = pmf @ table @ (values - mean) ** 2
        bound = slope**2 * dp_cramer_rao(binomial_information(k, p), epsilon)
        assert variance >= bound * (1 - 1e-9)
        closest = min(closest, variance / bound)
    assert closest < 2.1  # the bound is not idle


# Fisher information


@pytest.mark.parametrize("p", [1e-3, 0.3, 0.9])
def test_binomial_information_is_the_variance_of_the_score(p):
    for k in (1, 7, 40):
        x = np.arange(k + 1)
        score = x / p - (k - x) / (1 - p)
        known = stats.binom.pmf(x, k, p) @ score**2
        assert binomial_information(k, p) == pytest.approx(known, rel=1e-11)


@given(st.floats(1e-9, 1 - 1e-9), st.floats(-9.0, 12.0))
def test_one_toss_tells_the_same_whatever_the_concentration(mean, exponent):
    value = beta_binomial_information(1, mean, 10.0**exponent)
    assert value == pytest.approx(1 / (mean * (1 - mean)), rel=1e-12)


@pytest.mark.parametrize(
    ("k", "mean", "concentration"),
    [
        (7, Fraction(3, 10), Fraction(1, 100)),
        (25, Fraction(1, 1000), Fraction(5)),
        (40, Fraction(1, 2), Fraction(10**6)),
        (30, Fraction(9, 10), Fraction(1, 10**6)),
        (35, Fraction(1, 3), Fraction(20)),
    ],
)
def test_beta_binomial_information_in_exact_arithmetic(k, mean, concentration):
    a, b = mean * concentration, (1 - mean) * concentration

    def rising(start, steps):
        return math.prod((start + j for j in range(steps)), start=Fraction(1))

    known = Fraction(0)
    for x in range(k + 1):
        pmf = math.comb(k, x) * rising(a, x) * rising(b, k - x)
        ones = sum((1 / (a + j) for j in range(x)), start=Fraction(0))
        zeros = sum((1 / (b + j) for j in range(k - x)), start=Fraction(0))
        known += pmf / rising(concentration, k) * (concentration * (ones - zeros)) ** 2
    value = beta_binomial_information(k, float(mean), float(concentration))
    assert value == pytest.approx(float(known), rel=1e-13)


GRID = [
    (mean, concentration)
    for mean in (0.02, 1 / 3, 0.5, 0.8)
    for concentration in (0.3, 2.0, 20.0, 500.0)
]


@pytest.mark.parametrize(("mean", "concentration"), GRID)
def test_beta_binomial_information_is_the_variance_of_the_score(mean, concentration):
    step = 1e-5 * mean

    def law(k, p):
        return stats.betabinom(k, p * concentration, (1 - p) * concentration)

    for k in (2, 13, 200):
        x = np.arange(k + 1)
        score = law(k, mean + step).logpmf(x) - law(k, mean - step).logpmf(x)
        known = law(k, mean).pmf(x) @ (score / (2 * step)) ** 2
        value = beta_binomial_information(k, mean, concentration)
        assert value == pytest.approx(known, rel=1e-6)


@pytest.mark.parametrize(("mean", "concentration"), GRID)
def test_every_toss_adds_what_an_urn_says(mean, concentration):
    # Given X ones of j, the next toss adds m^2/((a+X)(b+j-X)): the score is a
    # martingale.  So information rises with k.
    a, b = mean * concentration, (1 - mean) * concentration
    added = []
    for j in range(60):
        x = np.arange(j + 1)
        pmf = stats.betabinom.pmf(x, j, a, b) if j else np.ones(1)
        added.append(pmf @ (concentration**2 / ((a + x) * (b + j - x))))
    values = beta_binomial_information(np.arange(1, 61), mean, concentration)
    assert values == pytest.approx(np.cumsum(added), rel=1e-10)


@pytest.mark.parametrize(("mean", "concentration"), GRID)
def test_many_tosses_tell_as_much_as_the_rate(mean, concentration):
    k = np.array([1, 3, 10, 100, 1000, 10**4, 10**5])
    values = beta_binomial_information(k, mean, concentration)
    a, b = mean * concentration, (1 - mean) * concentration
    limit = concentration**2 * (special.polygamma(1, a) + special.polygamma(1, b))
    assert (np.diff(values) > 0).all()
    assert (values < limit).all()
    assert (values <= binomial_information(k, mean) * (1 + 1e-12)).all()
    if min(a, b) > 1:  # otherwise too many rates are near 0 or 1
        assert values[-1] == pytest.approx(limit, rel=0.03)


@pytest.mark.parametrize("k", [1, 10, 1000, 10**5])
def test_concentrated_rates_tell_as_much_as_one_rate(k):
    value = beta_binomial_information(k, 0.3, 1e13)
    assert value == pytest.approx(binomial_information(k, 0.3), rel=1e-7)


def test_beta_binomial_information_is_inverse_to_the_variance_up_to_a_constant():
    k = np.array([1, 2, 3, 5, 10, 30, 100, 300, 1000])
    worst = 0.0
    for mean in (1 / 3, 0.4, 0.5, 2 / 3):
        for concentration in np.append(np.logspace(-2, 3, 26), 0.5):
            values = beta_binomial_information(k, mean, concentration)
            spread = mean * (1 - mean) / (concentration + 1)
            products = values * user_variance(k, mean, spread)
            assert (products >= 1 - 1e-12).all()  # the user's mean is unbiased
            worst = max(worst, products.max())
    assert worst == pytest.approx(1.452, abs=5e-4)
    # Outside [1/3, 2/3] it is more: this is no constant for all means.
    value = beta_binomial_information(1000, 0.01, 3.0)
    assert value * user_variance(1000, 0.01, 0.0099 / 4) > 4


@given(
    st.integers(1, 2000),
    st.floats(-99.0, math.log10(0.5)).map(lambda exponent: 10.0**exponent),
    st.floats(-100.0, 100.0).map(lambda exponent: 10.0**exponent),
)
@settings(max_examples=50)
def test_beta_binomial_information_survives_extremes(k, mean, concentration):
    value = beta_binomial_information(k, mean, concentration)
    least, most = 1 / (mean * (1 - mean)), k / (mean * (1 - mean))
    assert least * (1 - 1e-9) <= value <= most * (1 + 1e-9)


def test_information_has_the_shape_of_k():
    for information in (
        lambda k: binomial_information(k, 0.3),
        lambda k: beta_binomial_information(k, 0.3, 5.0),
        lambda k: truncated_gaussian_information(0.3, 0.2, k=k),
    ):
        assert isinstance(information(7), float)
        assert information([7, 2, 7]).tolist() == [
            information(7),
            information(2),
            information(7),
        ]


# A Gaussian in a fixed window

POINTS, MASSES = special.roots_legendre(300)
RATES, MASSES = (POINTS + 1) / 2, MASSES / 2  # quadrature on [0, 1]
GAUSSIANS = [(0.5, 0.1), (0.3, 0.3), (0.05, 0.1), (0.8, 1.0)]


def density(mean, sd, rate):
    location = TruncatedGaussian(mean, sd).location
    law = stats.truncnorm(-location / sd, (1 - location) / sd, location, sd)
    return law.pdf(rate)


@pytest.mark.parametrize(("mean", "sd"), GAUSSIANS)
def test_the_fixed_window_has_information_one_over_variance(mean, sd):
    step = 1e-4 * mean

    def squared_score(rate):
        above, below = density(mean + step, sd, rate), density(mean - step, sd, rate)
        return (above - below) ** 2 / (4 * step**2 * density(mean, sd, rate))

    known = MASSES @ squared_score(RATES)
    value = truncated_gaussian_information(mean, sd)
    assert value == 1 / TruncatedGaussian(mean, sd).variance
    assert value == pytest.approx(known, rel=1e-5)


@pytest.mark.parametrize(("mean", "sd"), GAUSSIANS)
@pytest.mark.parametrize("k", [1, 2, 9])
def test_tosses_through_a_fixed_window_by_finite_differences(mean, sd, k):
    x, step = np.arange(k + 1), 1e-4 * mean

    def pmf(p):
        return stats.binom.pmf(x[:, None], k, RATES) @ (MASSES * density(p, sd, RATES))

    score = (pmf(mean + step) - pmf(mean - step)) / (2 * step)
    known = np.sum(score**2 / pmf(mean))
    value = truncated_gaussian_information(mean, sd, k=k)
    assert value == pytest.approx(known, rel=1e-5)


@pytest.mark.parametrize(("mean", "sd"), GAUSSIANS)
def test_tosses_through_a_fixed_window_rise_from_one_toss_to_the_rate(mean, sd):
    k = np.array([1, 2, 5, 20, 100, 1000])
    values = truncated_gaussian_information(mean, sd, k=k)
    limit = truncated_gaussian_information(mean, sd)
    assert values[0] == pytest.approx(1 / (mean * (1 - mean)), rel=1e-11)
    assert (np.diff(values) > 0).all()
    assert values[-1] < limit < values[-1] * 1.2
    variances = user_variance(k, mean, TruncatedGaussian(mean, sd).variance)
    assert (values * variances >= 1 - 1e-11).all()


def test_a_flat_fixed_window_is_a_beta_law():
    # With a huge sd the rates are uniform, which is Beta(1, 1): but as members of
    # different families, whose one-toss information agrees and whose limits do not.
    assert truncated_gaussian_information(0.5, 1e3) == pytest.approx(12, rel=1e-6)
    uniform = truncated_gaussian_information(0.5, 1e3, k=[1, 10, 1000])
    # Posterior means of a uniform rate are (x+1)/(k+2).
    k = np.array([1, 10, 1000])
    known = 144 * (k / 12) / (k + 2)
    assert uniform == pytest.approx(known, rel=1e-5)


# The window that moves


@pytest.mark.parametrize(
    ("reach", "inside", "factor", "share"),
    [
        (1.644854, 0.9, 0.376984515865, 0.388148293472),
        (2.0, 0.954499736104, 0.226258696450, 0.598675604819),
        (3.0, 0.997300203937, 0.026663075337, 0.947384768911),
    ],
)
def test_the_window_cuts_off_the_known_share(reach, inside, factor, share):
    assert math.erf(reach / math.sqrt(2)) == pytest.approx(inside, abs=1e-7)
    assert window_factor(reach) == pytest.approx(factor, abs=5e-7)
    assert (1 - window_factor(reach)) ** 2 == pytest.approx(share, abs=5e-7)
    # A Gaussian at 1/2 in [0, 1] has this window.
    parent = 1 / (2 * reach)
    variance = TruncatedGaussian(0.5, parent).variance
    assert variance == pytest.approx(parent**2 * (1 - window_factor(reach)), rel=1e-11)


def test_the_default_window_is_the_narrowest_the_paper_allows():
    assert math.erf(REACH / math.sqrt(2)) == pytest.approx(0.9, rel=1e-14)
    assert window_factor() == pytest.approx(0.376984515865, abs=5e-13)
    assert window_factor() <= 0.5


def test_the_density_in_the_paper_does_not_integrate_to_one():
    scale = 0.1 / math.sqrt(1 - window_factor(2.0))
    points, masses = np.polynomial.legendre.leggauss(60)
    gaussian = stats.norm.pdf(2 * points) / math.erf(math.sqrt(2))
    total = masses @ gaussian * 2 * scale
    assert total == pytest.approx(0.113684723434, abs=5e-13)


def test_the_papers_information_is_about_the_location_of_a_fixed_window():
    # p moves by variance/parent^2 = 1 - lambda when the location moves by 1.
    parent = 1 / (2 * REACH)
    law, step = TruncatedGaussian(0.5, parent), 1e-4
    moved = TruncatedGaussian(0.5 + step, parent).location - law.location
    slope = step / moved
    assert slope == pytest.approx(1 - window_factor(), rel=1e-6)
    claimed = 1 / moving_window_bound(2, law.variance) / 2
    actual = truncated_gaussian_information(0.5, parent)
    assert claimed == pytest.approx(actual * slope**2, rel=1e-6)


@pytest.mark.parametrize("reach", [0.5, REACH, 2.0, 3.0])
def test_the_midrange_of_two_is_their_mean(reach):
    value = midrange_variance(2, 0.02, reach=reach)
    assert value == pytest.approx(0.01, rel=1e-8)


@pytest.mark.parametrize(
    ("n", "simulated"), [(100, 0.00241), (1000, 3.6e-5), (10**4, 3.67e-7)]
)
def test_the_midrange_has_the_known_variance(n, simulated):
    # In units of the parent's variance; the known values are simulated, within 5%.
    value = midrange_variance(n, 1 - window_factor())
    assert value == pytest.approx(simulated, rel=0.05)


@pytest.mark.parametrize("n", [3, 10, 100, 1000, 10**4, 10**6])
def test_the_midrange_and_the_mean_are_below_the_moving_window_bound(n):
    variance = 0.01
    assert moving_window_bound(n, variance) > 2.5 * variance / n
    assert midrange_variance(n, variance) < variance / n
    if n >= 1000:
        assert moving_window_bound(n, variance) > 0.04 * n * midrange_variance(
            n, variance
        )


def test_the_midrange_is_below_the_bound_by_the_known_factor():
    claimed = moving_window_bound(1000, 1 - window_factor())
    assert claimed == pytest.approx(1.605e-3, rel=1e-4)
    assert claimed / midrange_variance(1000, 1 - window_factor()) > 44


@pytest.mark.parametrize("reach", [REACH, 2.0, 3.0])
def test_the_midrange_of_many_falls_like_one_over_n_squared(reach):
    n = 10**7
    end = stats.norm.pdf(reach) / math.erf(reach / math.sqrt(2))
    value = midrange_variance(n, 1 - window_factor(reach), reach=reach)
    assert value == pytest.approx(1 / (2 * n**2 * end**2), rel=1e-3)


def test_the_midrange_agrees_with_simulation():
    # The midrange is nearly a Laplace variable, of kurtosis 6: the standard error of
    # the variance is sqrt(5/runs) = 0.7%, and the mean's is sd/sqrt(runs).  Six of
    # them: a chance of 4e-9 together.
    n, runs, rng = 100, 10**5, np.random.default_rng(5)
    outside = special.ndtr(-REACH)
    least = np.empty(runs)
    greatest = np.empty(runs)
    for start in range(0, runs, 10**4):
        shares = rng.random((10**4, n))
        # The quantile function is increasing: take extremes first.
        least[start : start + 10**4] = shares.min(axis=1)
        greatest[start : start + 10**4] = shares.max(axis=1)
    ends = special.ndtri(outside + 0.9 * np.stack((least, greatest)))
    midrange = ends.mean(axis=0)
    known = midrange_variance(n, 1 - window_factor())
    assert np.mean(midrange) == pytest.approx(0, abs=6 * math.sqrt(known / runs))
    assert np.mean(midrange**2) == pytest.approx(known, rel=6 * math.sqrt(5 / runs))


# Whatever type a number comes in


@pytest.mark.parametrize("one", [np.uint8(1), np.int8(1), np.uint64(1), np.float16(1)])
def test_narrow_and_unsigned_numbers_are_plain_ones(one):
    assert least_noise(one) == least_noise(1.0)
    assert round(least_noise(one), 6) == 0.920674
    for call in (dp_cramer_rao, k_star):
        assert call([64, 16, 4, 1], one) == call([64, 16, 4, 1], 1.0)
    assert k_star([64, 4], 1.0, noise=one) == k_star([64, 4], 1.0)


def test_narrow_arrays_are_plain_ones():
    k = np.array([200, 100, 50], dtype=np.uint8)
    plain = k.astype(np.int64)
    assert k_star(k, 1.0, counts=k) == k_star(plain, 1.0, counts=plain)
    assert (binomial_information(k, 0.5) == binomial_information(plain, 0.5)).all()
    few = beta_binomial_information(k, odd(np.float32(0.5)), odd(np.uint8(200)))
    assert (few == beta_binomial_information(plain, 0.5, 200.0)).all()
    known = truncated_gaussian_information(0.5, 0.25)
    half, quarter = odd(np.float16(0.5)), odd(np.float16(0.25))
    assert truncated_gaussian_information(half, quarter) == known
    for function in (moving_window_bound, midrange_variance):
        found = function(odd(np.uint8(200)), quarter, reach=odd(np.int8(2)))
        assert found == function(200, 0.25, reach=2.0)


@pytest.mark.parametrize("epsilon", [1e-12, 1e12])
@pytest.mark.parametrize("variant", VARIANTS)
def test_the_ends_of_the_range_of_epsilon_give_numbers(epsilon, variant):
    k, counts = np.array([1, 10**18]), np.array([10**18, 1])
    for noise in (1e-30, 1e30):
        found = k_star(k, epsilon, variant=variant, counts=counts, noise=noise)
        assert all(0 < number < math.inf for number in found)
    for information in ([1e-250], [1e250], [1e-250, 1e250]):
        assert 0 < dp_cramer_rao(information, epsilon) < math.inf
    assert 0 <= least_noise(epsilon) < math.inf


def test_a_crowd_of_small_users_does_not_hide_the_cap_of_a_large_one():
    # sqrt(k) - T = T for the one user of 10^6 samples; the others are below T = 500.
    cap, _ = k_star([10**6, 1], 1.0, counts=[1, 10**18])
    assert cap == 250_000.0


# Bad input is named


@pytest.mark.parametrize(
    ("call", "error", "name"),
    [
        (lambda: k_star([3, 0], 1.0), ValueError, "k must be at least 1"),
        (lambda: k_star([3, 1.5], 1.0), ValueError, "k must be whole numbers"),
        (lambda: k_star([], 1.0), ValueError, "k is empty"),
        (lambda: k_star(3, 1.0), ValueError, "k must be one-dimensional"),
        (lambda: k_star(["a"], 1.0), TypeError, "k must hold numbers"),
        (lambda: k_star([3], 0.0), ValueError, "epsilon"),
        (lambda: k_star([3], math.nan), ValueError, "epsilon"),
        (lambda: k_star([3], odd("1")), TypeError, "epsilon"),
        (lambda: k_star([3], 1e-13), ValueError, "epsilon"),
        (lambda: k_star([3], 1e13), ValueError, "epsilon"),
        (lambda: k_star([3], odd(np.timedelta64(1))), TypeError, "epsilon"),
        (lambda: k_star([3], 1.0, noise=1e40), ValueError, "noise"),
        (lambda: k_star([3], 1.0, variant="max"), ValueError, "variant"),
        (lambda: k_star([3], 1.0, variant=odd(1)), TypeError, "variant"),
        (lambda: k_star([3], 1.0, counts=[0]), ValueError, "counts"),
        (lambda: k_star([3], 1.0, counts=[1, 2]), ValueError, "k: 1, counts: 2"),
        (lambda: k_star([3], 1.0, noise=-1.0), ValueError, "noise"),
        (lambda: least_noise(-1.0), ValueError, "epsilon"),
        (lambda: least_noise(1e-13), ValueError, "epsilon"),
        (lambda: least_noise(1e13), ValueError, "epsilon"),
        (lambda: least_noise(odd(1j)), TypeError, "epsilon"),
        (lambda: least_noise(odd(np.timedelta64(1))), TypeError, "epsilon"),
        (lambda: dp_cramer_rao([1.0], 1e13), ValueError, "epsilon"),
        (lambda: dp_cramer_rao([1e-260], 1.0), ValueError, "information"),
        (lambda: dp_cramer_rao([1e260], 1.0), ValueError, "information"),
        (lambda: least_noise(math.inf), ValueError, "epsilon"),
        (lambda: dp_cramer_rao([1.0, 0.0], 1.0), ValueError, "information"),
        (lambda: dp_cramer_rao([math.inf], 1.0), ValueError, "information"),
        (lambda: dp_cramer_rao([math.nan], 1.0), ValueError, "information"),
        (lambda: dp_cramer_rao([1.0], 0), ValueError, "epsilon"),
        (lambda: dp_cramer_rao([1.0], True), TypeError, "epsilon"),
        (lambda: dp_cramer_rao([1.0], 1.0, counts=[1, 1]), ValueError, "information"),
        (lambda: dp_cramer_rao([1.0], 1.0, counts=[1.5]), ValueError, "counts"),
        (lambda: binomial_information(0, 0.5), ValueError, "k must be finite and at"),
        (lambda: binomial_information([1, [2]], 0.5), ValueError, "k must be"),
        (lambda: binomial_information([], 0.5), ValueError, "k must be"),
        (lambda: binomial_information(2**63, 0.5), ValueError, "k must be"),
        (lambda: binomial_information(1, 1.0), ValueError, "p must be"),
        (lambda: beta_binomial_information(1, 0.0, 1.0), ValueError, "mean"),
        (lambda: beta_binomial_information(1, 0.5, 0.0), ValueError, "concentration"),
        (
            lambda: beta_binomial_information(1, 0.5, math.inf),
            ValueError,
            "concentration",
        ),
        (lambda: beta_binomial_information(-1, 0.5, 1.0), ValueError, "k must be"),
        (lambda: beta_binomial_information([[1]], 0.5, 1.0), ValueError, "k must be"),
        (lambda: beta_binomial_information(10**8, 0.5, 1.0), ValueError, "k must be"),
        (
            lambda: beta_binomial_information(np.arange(1, 10**5), 0.5, 1.0),
            ValueError,
            "k must have distinct sizes",
        ),
        (
            lambda: truncated_gaussian_information(0.5, 0.1, k=np.arange(1, 2000)),
            ValueError,
            "k must have distinct sizes",
        ),
        (lambda: truncated_gaussian_information(1.2, 0.1), ValueError, "mean"),
        (lambda: truncated_gaussian_information(0.5, -0.1), ValueError, "sd"),
        (
            lambda: truncated_gaussian_information(0.5, 0.1, k=10**5),
            ValueError,
            "k must be",
        ),
        (lambda: window_factor(0.0), ValueError, "reach"),
        (lambda: moving_window_bound(1, 0.1), ValueError, "n must be"),
        (lambda: moving_window_bound(10, 0.0), ValueError, "variance"),
        (lambda: midrange_variance(odd(2.5), 0.1), TypeError, "n must be"),
        (lambda: midrange_variance(5, 0.1, reach=9.0), ValueError, "reach"),
        (lambda: midrange_variance(5, -0.1), ValueError, "variance"),
        (lambda: midrange_variance(10**13, 0.1), ValueError, "n must be"),
    ],
)
def test_bad_input_is_named(call, error, name):
    with pytest.raises(error, match=name):
        call()


def test_information_of_a_narrow_law_is_that_of_tosses():
    for mean in (0.3, 0.999):
        tosses = binomial_information([1, 10], mean)
        found = truncated_gaussian_information(mean, 1e-6, k=[1, 10])
        assert found == pytest.approx(tosses, rel=1e-6)
    with pytest.raises(ValueError, match=r"^sd must be"):
        truncated_gaussian_information(0.3, 1e-9, k=10)
