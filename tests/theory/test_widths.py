"""How wide is a user: bounds cover, exact widths are exact, promises are kept."""

import itertools
import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from scipy import integrate, optimize, special, stats

from hetlit.theory import widths as c
from hetlit.theory.populations import Beta, Constant, TruncatedGaussian, TwoPoint
from hetlit.theory.variance import user_variance
from hetlit.users.simulate import sample_users
from tests.odd import odd

SIZES = np.array([1, 10, 100, 1000])
GRID = list(itertools.product((1, 20, 1000, 10**6), (0.5, 0.05, 1e-6)))  # n, beta
RATES = (0.001, 0.02, 0.3, 0.5, 0.77, 1.0)
BETAS = ((0.3, 10.0), (0.3, 100.0), (0.5, 2.0), (0.02, 5.0), (0.9, 0.5), (0.1, 1e4))
WIDE = np.array([1, 2, 3, 7, 10, 50, 100, 333, 1000])


def allowed(n, beta):
    return -np.expm1(np.log1p(-beta) / n)


def stray_probability(pmf, p, width):
    """Pr(|j/k - p| > width) for the law `pmf` of j, from the terms outside."""
    k = len(pmf) - 1
    return float(pmf[np.abs(np.arange(k + 1) / k - p) > width].sum())


def beta_binomial_pmf(k, mean, concentration):
    a, b = mean * concentration, (1 - mean) * concentration
    return stats.betabinom.pmf(np.arange(k + 1), k, a, b)


def exact_rate_width(n, mean, concentration, beta):
    """The smallest r such that n beta rates are all within r, with prob. 1 - beta."""
    law = stats.beta(mean * concentration, (1 - mean) * concentration)

    def excess(r):
        return law.cdf(mean - r) + law.sf(mean + r) - allowed(n, beta)

    return optimize.brentq(excess, 0.0, 1.0, xtol=1e-14) + 1e-12


def mixture_pmf(k, meta):
    """The law of a user's ones when rates are two points or a truncated Gaussian."""
    j = np.arange(k + 1)
    if isinstance(meta, TwoPoint):
        rates = np.array([meta.low, meta.high])
        weights = np.array([1 - meta.weight, meta.weight])
    else:
        nodes, gauss = np.polynomial.legendre.leggauss(200)
        rates = (nodes + 1) / 2
        weights = gauss * np.exp(-((rates - meta.location) ** 2) / (2 * meta.sd**2))
        weights /= weights.sum()
    return stats.binom.pmf(j[:, None], k, rates) @ weights


# The numbers


def test_widths_for_a_thousand_users_have_the_known_values():
    n, beta = 1000, 0.05
    six: dict[str, Any] = {"abs": 5e-7, "rel": 0}
    assert c.hoeffding_width(SIZES, n, beta) == pytest.approx(
        [2.301807, 0.727895, 0.230181, 0.072790], **six
    )
    assert c.bernstein_width(SIZES, n, 0.21, beta) == pytest.approx(
        [7.646468, 1.108088, 0.249223, 0.070338], **six
    )
    assert c.exact_binomial_width(SIZES, n, 0.3, beta) == pytest.approx(
        [0.7, 0.6, 0.19, 0.059], rel=1e-12
    )
    for m, exact, bound in (
        (10, [0.7, 0.7, 0.57, 0.55], [2.404159, 1.005732, 0.731197, 0.697828]),
        (100, [0.7, 0.6, 0.27, 0.2], [2.313174, 0.763080, 0.324718, 0.240327]),
    ):
        widths = c.exact_beta_binomial_width(SIZES, n, 0.3, m, beta)
        assert widths == pytest.approx(exact, rel=1e-12)
        proxy = 1 / (4 * (m + 1))
        assert c.sub_gaussian_width(SIZES, n, proxy, beta) == pytest.approx(
            bound, **six
        )
        assert c.beta_width(SIZES, n, 0.3, 0.21 / (m + 1), beta) == pytest.approx(
            bound, **six
        )


def test_widths_are_their_formulas():
    n, beta, k = 137, 0.02, 29
    log_term = math.log(2 * n / beta)
    sd = math.sqrt(user_variance(k, 0.2, 0.03))
    for width, formula in (
        (c.hoeffding_width(k, n, beta), math.sqrt(log_term / 58)),
        (c.chernoff_width(290, n, 0.2, beta), math.sqrt(0.6 * log_term / 290)),
        (c.standard_width(k, n, 0.2, 0.03, beta), sd * math.sqrt(2 * log_term)),
        (c.chebyshev_width(k, n, 0.2, 0.03, beta), sd * math.sqrt(n / beta)),
        (
            c.sub_gaussian_width(k, n, 0.03, beta),
            math.sqrt(2 * (0.03 + 1 / 116) * log_term),
        ),
    ):
        assert width == pytest.approx(formula, rel=1e-14)
    # Bernstein's tail is beta/n exactly at Bernstein's width.
    t = c.bernstein_width(k, n, 0.16, beta)
    tail = 2 * math.exp(-k * t**2 / (2 * (0.16 + t / 3)))
    assert tail == pytest.approx(beta / n, rel=1e-12)


def test_two_step_width_spends_half_of_beta_on_the_coins():
    n, beta = 137, 0.02
    log_term = math.log(4 * n / beta)
    hoeffding = 0.05 + math.sqrt(log_term / 2)
    assert c.two_step_width(1, n, 0.05, 0.05, beta) == pytest.approx(hoeffding)
    linear = log_term / 2700
    bernstein = 0.05 + linear + math.sqrt(linear**2 + 2 * 0.09 * log_term / 900)
    assert c.two_step_width(900, n, 0.05, 0.05, beta) == pytest.approx(bernstein)


def test_largest_variance_is_the_largest_on_a_fine_grid():
    for p, alpha in itertools.product((0, 0.1, 0.45, 0.5, 0.8, 1), (0, 0.07, 0.3, 2)):
        x = np.linspace(max(0, p - alpha), min(1, p + alpha), 10001)
        largest = c.largest_variance(p, alpha)
        assert largest == pytest.approx(np.max(x * (1 - x)), abs=1e-8)
        assert largest >= np.max(x * (1 - x)) - 1e-15


# The exact widths


@pytest.mark.parametrize(
    ("k", "p", "width"),
    [
        (1, 0.1, 0.9),
        (1, 0.4, 0.6),
        (10, 0.3, 0.3),
        (10, 0.35, 0.25),
        (10, 0.4, 0.3),
        (10, 0.45, 0.35),
        (10, 0.5, 0.3),
    ],
)
def test_exact_binomial_width_is_not_monotone_in_the_rate(k, p, width):
    assert c.exact_binomial_width(k, 1, p, 0.05) == pytest.approx(width, rel=1e-12)


def test_exact_binomial_width_is_not_monotone_in_k():
    widths = c.exact_binomial_width(np.arange(1, 30), 100, 1e-4, 0.05)
    assert widths[0] == 1e-4
    assert widths[:5] == pytest.approx([1e-4] * 5, rel=1e-12)
    assert widths[5] == pytest.approx(1 / 6 - 1e-4, rel=1e-12)


def test_clipping_at_the_exact_width_can_destroy_the_variance():
    k, p, n, beta = 1, 1e-4, 100, 0.05
    width = c.exact_binomial_width(k, n, p, beta)
    assert width == 1e-4
    assert p < allowed(n, beta) == pytest.approx(5.128e-4, rel=1e-3)
    clipped = p * (1 - p) * (2e-4) ** 2  # ones become p + width = 2e-4
    assert clipped < 1e-7 * user_variance(k, p, 0.0) / 2
    assert c.sub_gaussian_width(k, n, 0.0, beta) > 1  # a bound clips nobody


def fraction_width(probabilities, p, n, beta):
    """The definition of the exact width, in rational numbers."""
    k = len(probabilities) - 1
    distances = [abs(Fraction(j, k) - p) for j in range(k + 1)]
    for t in sorted(set(distances)):
        inside = sum(q for q, d in zip(probabilities, distances, strict=True) if d <= t)
        if inside**n >= 1 - beta:
            return t
    raise AssertionError


@pytest.mark.parametrize("n", [1, 2, 17])
@pytest.mark.parametrize("beta", [Fraction(1, 20), Fraction(1, 2), Fraction(1, 1000)])
def test_exact_widths_agree_with_rational_arithmetic(n, beta):
    for k, tenths in itertools.product((1, 2, 3, 8, 10, 15), (1, 3, 5, 7)):
        p = Fraction(tenths, 10)
        binomial = [math.comb(k, j) * p**j * (1 - p) ** (k - j) for j in range(k + 1)]
        expected = fraction_width(binomial, p, n, beta)
        width = c.exact_binomial_width(k, n, float(p), float(beta))
        assert width == pytest.approx(float(expected), rel=1e-12, abs=1e-15)

        for m in (Fraction(1, 2), Fraction(10)):
            a, b = p * m, (1 - p) * m
            up = [math.prod(a + i for i in range(j)) for j in range(k + 1)]
            down = [math.prod(b + i for i in range(j)) for j in range(k + 1)]
            all_of = math.prod(m + i for i in range(k))
            law = [math.comb(k, j) * up[j] * down[k - j] / all_of for j in range(k + 1)]
            expected = fraction_width(law, p, n, beta)
            width = c.exact_beta_binomial_width(k, n, float(p), float(m), float(beta))
            assert width == pytest.approx(float(expected), rel=1e-12, abs=1e-15)


def test_a_probability_exactly_at_the_level_is_covered():
    # Pr(|Bin(10, 1/2) - 5| > 3) = 22/1024.
    assert c.exact_binomial_width(10, 1, 0.5, 22 / 1024) == pytest.approx(0.3)
    assert c.exact_binomial_width(10, 1, 0.5, 21.9 / 1024) == pytest.approx(0.4)
    # Beta(1, 1) makes all 11 counts equally likely.
    assert c.exact_beta_binomial_width(10, 1, 0.5, 2, 2 / 11) == pytest.approx(0.4)


@pytest.mark.parametrize("k", [1, 2, 3, 10, 99, 1000, 20011])
def test_exact_widths_are_on_the_lattice_and_the_next_smaller_one_fails(k):
    rng = np.random.default_rng(k)
    for n, beta in GRID:
        rate, m = rng.uniform(), 10 ** rng.uniform(-2, 5)
        for p in (rate, round(rate, 2) or 0.5):
            binomial = stats.binom.pmf(np.arange(k + 1), k, p)
            for pmf, width in (
                (binomial, c.exact_binomial_width(k, n, p, beta)),
                (
                    beta_binomial_pmf(k, p, m),
                    c.exact_beta_binomial_width(k, n, p, m, beta),
                ),
            ):
                distances = np.abs(np.arange(k + 1) / k - p)
                assert width in distances
                # scipy's own beta-binomial is off by up to 4e-10 at these sizes.
                assert stray_probability(pmf, p, width) <= allowed(n, beta) * (1 + 1e-8)
                smaller = distances[distances < width - 1e-14]
                if smaller.size:
                    stray = stray_probability(pmf, p, smaller.max() + 1e-14)
                    assert stray > allowed(n, beta) * (1 - 1e-8)


@pytest.mark.parametrize("m", [0.01, 10.0, 1e9])
def test_beta_binomial_tails_keep_their_digits(m):
    k, p = 200, Fraction(0.3)
    a, b = p * Fraction(m), (1 - p) * Fraction(m)
    shape = [Fraction(1)]
    for j in range(k):
        shape.append(shape[-1] * (k - j) * (a + j) / ((j + 1) * (b + k - 1 - j)))
    sums = [Fraction(0), *itertools.accumulate(shape)]
    below, above = c._beta_binomial_tails(k, 0.3, m)
    assert below == pytest.approx([float(s / sums[-1]) for s in sums], rel=1e-12)
    rest = [float((sums[-1] - s) / sums[-1]) for s in sums]
    assert above == pytest.approx(rest, rel=1e-12)


@pytest.mark.slow
def test_counts_at_equal_distance_are_never_split_by_rounding():
    # 2kp is whole, though not always in floating point (2 * 100 * .07 > 14).
    for k, hundredths in itertools.product((50, 100, 150, 700), range(1, 100)):
        p = hundredths / 100
        for beta in (0.01, 0.05, 0.2):
            width = c.exact_binomial_width(k, 3, p, beta)
            inside = np.nonzero(np.abs(np.arange(k + 1) / k - p) <= width)[0]
            low, high = inside[0], inside[-1]
            pair = low + high == 2 * k * hundredths // 100
            assert pair or low == 0 or high == k


def test_a_concentrated_beta_is_a_constant_rate():
    k = np.array([1, 5, 100, 3000])
    for p in (0.01, 0.3, 0.5):
        binomial = c.exact_binomial_width(k, 1000, p, 0.05)
        concentrated = c.exact_beta_binomial_width(k, 1000, p, 1e15, 0.05)
        assert concentrated == pytest.approx(binomial, rel=1e-12)


def test_a_dispersed_beta_makes_zeros_and_ones():
    widths = c.exact_beta_binomial_width(np.array([1, 9, 500]), 10, 0.3, 1e-12, 0.05)
    assert widths == pytest.approx([0.7] * 3)


def test_exact_widths_reach_a_hundred_thousand_samples():
    k = 10**5
    gaussian = stats.norm.isf(allowed(1000, 0.05) / 2) * math.sqrt(0.21 / k)
    assert c.exact_binomial_width(k, 1000, 0.3, 0.05) == pytest.approx(
        gaussian, rel=0.01
    )
    rates = exact_rate_width(1000, 0.3, 10, 0.05)
    assert c.exact_beta_binomial_width(k, 1000, 0.3, 10, 0.05) == pytest.approx(
        rates, rel=0.001
    )
    assert c.exact_binomial_width(2**44, 1, 0.5, 0.3173105) == pytest.approx(
        0.5 / 2**22, rel=1e-4
    )


def test_degenerate_rates_never_stray():
    for p in (0.0, 1.0):
        assert (c.exact_binomial_width(WIDE, 50, p, 0.1) == 0).all()


# Bounds cover what is exact


@pytest.mark.parametrize(("n", "beta"), GRID)
@pytest.mark.parametrize("p", RATES)
def test_bounds_for_a_constant_rate_cover_the_exact_width(p, n, beta):
    exact = c.exact_binomial_width(WIDE, n, p, beta)
    q = p * (1 - p)
    for bound in (
        c.hoeffding_width(WIDE, n, beta),
        c.bernstein_width(WIDE, n, q, beta),
        c.bernstein_width(WIDE, n, c.largest_variance(p, 0.1), beta),
        c.sub_gaussian_width(WIDE, n, 0.0, beta),
        c.chebyshev_width(WIDE, n, p, 0.0, beta),
        c.two_step_width(WIDE, n, 0.0, p, beta),
    ):
        assert (exact <= bound + 1e-15).all()
    large = np.ceil(3 * math.log(2 * n / beta) / p * np.array([1.001, 2, 30]))
    chernoff = c.chernoff_width(large, n, p, beta)
    assert (c.exact_binomial_width(large, n, p, beta) <= chernoff).all()


@pytest.mark.parametrize(("n", "beta"), GRID)
@pytest.mark.parametrize(("mean", "m"), BETAS)
def test_bounds_for_beta_rates_cover_and_their_coverage_is_as_promised(
    mean, m, n, beta
):
    top = mean * (1 - mean)
    variance = top / (m + 1)
    proxy = Beta(mean, variance).sub_gaussian_proxy
    log_term = math.log(4 * n / beta)
    rates_exact = exact_rate_width(n, mean, m, beta / 2)
    rates_bound = math.sqrt(2 * proxy * log_term)
    assert rates_exact <= rates_bound
    exact = c.exact_beta_binomial_width(WIDE, n, mean, m, beta)
    pmfs = [beta_binomial_pmf(k, mean, m) for k in WIDE]
    for widths in (
        exact,
        c.beta_width(WIDE, n, mean, variance, beta),
        c.sub_gaussian_width(WIDE, n, proxy, beta),
        c.sub_gaussian_width(WIDE, n, 0.25, beta),
        c.chebyshev_width(WIDE, n, mean, variance, beta),
        c.two_step_width(WIDE, n, rates_exact, mean, beta),
        c.two_step_width(WIDE, n, rates_bound, mean, beta),
    ):
        assert (exact <= widths).all()
        stray = np.array(
            [
                stray_probability(pmf, mean, w)
                for pmf, w in zip(pmfs, widths, strict=True)
            ]
        )
        same_size = np.exp(n * np.log1p(-stray))
        mixed_sizes = np.exp(n * np.log1p(-stray).mean())
        assert (same_size >= (1 - beta) * (1 - 1e-9)).all()
        assert mixed_sizes >= (1 - beta) * (1 - 1e-9)


@pytest.mark.parametrize(
    "meta",
    [
        TruncatedGaussian(0.5, 0.05),
        TruncatedGaussian(0.3, 0.2),
        TruncatedGaussian(0.1, 0.3),
        TwoPoint(0.1, 0.9, 0.05),
        TwoPoint(0.0, 0.5, 0.001),
        TwoPoint(0.4, 0.6, 0.5),
    ],
    ids=repr,
)
def test_sub_gaussian_widths_cover_other_populations(meta):
    p, proxy = meta.mean, meta.sub_gaussian_proxy
    pmfs = {k: mixture_pmf(k, meta) for k in (1, 5, 60, 200)}
    for (n, beta), (k, pmf) in itertools.product(GRID, pmfs.items()):
        widths = [
            c.sub_gaussian_width(k, n, proxy, beta),
            c.two_step_width(
                k, n, math.sqrt(2 * proxy * math.log(4 * n / beta)), p, beta
            ),
            c.chebyshev_width(k, n, p, meta.variance, beta),
        ]
        if isinstance(meta, TruncatedGaussian):
            widths.append(c.truncated_gaussian_width(k, n, meta.sd, beta))
        for width in widths:
            assert stray_probability(pmf, p, width) <= allowed(n, beta)


@pytest.mark.parametrize(
    ("meta", "width"),
    [
        (Constant(0.3), lambda k, n, beta: c.hoeffding_width(k, n, beta)),
        (Constant(0.3), lambda k, n, beta: c.bernstein_width(k, n, 0.21, beta)),
        (Constant(0.3), lambda k, n, beta: c.exact_binomial_width(k, n, 0.3, beta)),
        (Constant(0.02), lambda k, n, beta: c.two_step_width(k, n, 0, 0.02, beta)),
        (
            Beta(0.3, 0.01),
            lambda k, n, beta: c.exact_beta_binomial_width(k, n, 0.3, 20, beta),
        ),
        (Beta(0.3, 0.01), lambda k, n, beta: c.beta_width(k, n, 0.3, 0.01, beta)),
        (Beta(0.3, 0.01), lambda k, n, beta: c.standard_width(k, n, 0.3, 0.01, beta)),
        (
            TruncatedGaussian(0.5, 0.1),
            lambda k, n, beta: c.truncated_gaussian_width(k, n, 0.1, beta),
        ),
    ],
)
def test_simulated_coverage_is_at_least_as_promised(meta, width):
    # False alarms: below 1e-9 for each of the eight cases.
    n, beta, runs = 200, 0.2, 1500
    rng = np.random.default_rng(20240607)
    k = np.ceil(500 / np.arange(1, n + 1))
    widths = width(k, n, beta)
    users = sample_users(meta, np.tile(k, runs), rng)
    far = np.abs(users.means - meta.mean).reshape(runs, n) > widths
    strays = int(far.any(axis=1).sum())
    assert strays <= stats.binom.isf(1e-9, runs, beta)


def test_exact_width_for_mixed_sizes_is_nearly_used_up():
    # What the simulation estimates, computed: strays happen, but not too often.
    n, beta = 200, 0.2
    k = np.ceil(500 / np.arange(1, n + 1)).astype(int)
    widths = c.exact_binomial_width(k, n, 0.3, beta)
    stray = [
        stray_probability(stats.binom.pmf(np.arange(size + 1), size, 0.3), 0.3, w)
        for size, w in zip(k, widths, strict=True)
    ]
    anyone = -np.expm1(np.log1p(-np.array(stray)).sum())
    assert beta / 10 < anyone <= beta


# Where assumptions are needed


def test_chernoff_is_too_narrow_where_it_is_refused():
    n, beta, p = 1, 0.05, 0.06
    formula = math.sqrt(3 * p * math.log(2 * n / beta))
    assert c.exact_binomial_width(1, n, p, beta) > formula
    with pytest.raises(ValueError, match="k must satisfy"):
        c.chernoff_width(1, n, p, beta)
    with pytest.raises(ValueError, match="k must satisfy"):
        c.chernoff_width(10**9, n, 0.0, beta)
    least = 3 * math.log(2 * n / beta) / p
    assert c.chernoff_width(least * 1.0001, n, p, beta) == pytest.approx(p, rel=1e-3)
    with pytest.raises(ValueError, match="k must satisfy"):
        c.chernoff_width([least * 2, least * 0.9999], n, p, beta)


def test_standard_width_fails_for_rare_ones():
    k, n, p, beta = 10, 1000, 0.001, 0.05
    width = c.standard_width(k, n, p, 0.0, beta)
    assert width == pytest.approx(0.046, abs=5e-4)
    stray = stray_probability(stats.binom.pmf(np.arange(k + 1), k, p), p, width)
    assert n * stray == pytest.approx(9.955, abs=0.01)
    assert (1 - stray) ** n < 1e-4


def test_standard_width_is_hoeffdings_for_fair_coins():
    standard = c.standard_width(WIDE, 77, 0.5, 0.0, 0.1)
    assert standard == pytest.approx(c.hoeffding_width(WIDE, 77, 0.1), rel=1e-14)


@pytest.mark.parametrize("sd", [0.02, 0.1])
def test_standard_width_covers_beta_rates_of_mean_three_tenths(sd):
    m = 0.21 / sd**2 - 1
    for n in (1000, 10**4, 10**5):
        widths = c.standard_width(WIDE, n, 0.3, sd**2, 0.05)
        assert (c.exact_beta_binomial_width(WIDE, n, 0.3, m, 0.05) <= widths).all()


def test_chebyshev_is_useless():
    assert c.chebyshev_width(10**6, 1000, 0.3, 0.01, 0.05) > 14


def test_two_step_width_covers_every_rate_in_its_range():
    for p, spread in ((0.05, 0.1), (0.3, 0.1), (0.5, 0.4), (0.9, 0.3)):
        widths = c.two_step_width(WIDE, 100, spread, p, 0.05)
        for rate in np.linspace(max(0, p - spread), min(1, p + spread), 23):
            coins = c.exact_binomial_width(WIDE, 1, rate, 0.05 / 200)
            assert (spread + coins <= widths).all()


def test_the_exact_width_at_the_largest_rate_does_not_cover_smaller_rates():
    # The paper's recipe: one sample, p = .25, rates in [.1, .4].
    at_largest = c.exact_binomial_width(1, 1, 0.4, 0.05)
    at_smallest = c.exact_binomial_width(1, 1, 0.1, 0.05)
    assert at_smallest > at_largest
    assert c.two_step_width(1, 1, 0.15, 0.25, 0.1) >= 0.15 + at_smallest


def test_two_steps_beat_one_when_ones_are_rare():
    proxy, n, beta = 1e-5, 1000, 0.05
    rates = math.sqrt(2 * proxy * math.log(4 * n / beta))
    two = c.two_step_width(300, n, rates, 0.01, beta)
    assert two < c.sub_gaussian_width(300, n, proxy, beta)


# The lower bound of the appendix


def test_lower_bound_level_gives_beta_back_with_the_root_of_eight():
    n, beta = 1000, 0.05
    level = c.lower_bound_beta(n, beta)
    assert level == pytest.approx(0.020256747796, abs=5e-13)
    assert 1 - (1 - level**2 / 8) ** n == pytest.approx(beta, rel=1e-10)
    with_two = level / math.sqrt(2)
    assert with_two == pytest.approx(0.014323683731, abs=5e-13)
    assert 1 - (1 - with_two**2 / 8) ** n == pytest.approx(0.025320244971, abs=5e-13)


@pytest.mark.parametrize("k", [5, 20, 100, 300])
def test_two_steps_in_one_direction_bound_the_width_from_below(k):
    n, beta = 1000, 0.05
    level = c.lower_bound_beta(n, beta)
    meta = TwoPoint(0.1, 0.4, level / 2)
    counts = np.arange(k + 1)
    upper_tail = stats.binom.sf(counts - 1, k, meta.high)  # Pr(ones >= j)
    reach = counts[upper_tail >= level / 4].max() / k - meta.high
    total = (meta.high - meta.mean) + reach
    pmf = mixture_pmf(k, meta)
    at_least = stray_probability(pmf, meta.mean, total - 1e-12)
    assert -np.expm1(n * np.log1p(-at_least)) >= beta
    # So the exact width at any smaller beta is no smaller than this.
    distances = np.abs(counts / k - meta.mean)
    ok = [stray_probability(pmf, meta.mean, t) <= allowed(n, 0.049) for t in distances]
    assert distances[ok].min() >= total - 1e-12


# Regularity


def test_estimated_variances_widen_the_interval_at_most_threefold():
    largest = 0.0
    for cap, q in itertools.product((1, 3, 50, 1000), (0.0, 0.1, 0.25)):
        for k, s2 in itertools.product(
            range(1, cap + 1, max(1, cap // 9)), (0, 1e-3, 1)
        ):
            wide = c.sub_gaussian_width(k, 100, 8 * (q / cap + s2), 0.05)
            ratio = wide / c.sub_gaussian_width(k, 100, s2, 0.05)
            assert ratio <= 3 + 1e-12
            largest = max(largest, ratio)
    assert largest == pytest.approx(3, rel=1e-12)


def all_bounds(k, n, beta):
    return [
        c.hoeffding_width(k, n, beta),
        c.bernstein_width(k, n, 0.2, beta),
        c.chernoff_width(np.asarray(k) + 10**4, n, 0.3, beta),
        c.sub_gaussian_width(k, n, 0.01, beta),
        c.beta_width(k, n, 0.3, 0.02, beta),
        c.truncated_gaussian_width(k, n, 0.2, beta),
        c.standard_width(k, n, 0.3, 0.02, beta),
        c.chebyshev_width(k, n, 0.3, 0.02, beta),
        c.two_step_width(k, n, 0.1, 0.2, beta),
    ]


def exact_widths(k, n, beta):
    return [
        c.exact_binomial_width(k, n, 0.3, beta),
        c.exact_beta_binomial_width(k, n, 0.3, 10, beta),
    ]


def test_bounds_fall_with_k():
    for widths in all_bounds(np.arange(1, 200), 50, 0.05):
        assert (np.diff(widths) < 0).all()


def test_widths_grow_with_n_and_fall_with_beta():
    k = np.array([1, 4, 30, 250])
    for family in (all_bounds, exact_widths):
        few, many = family(k, 10, 0.05), family(k, 1000, 0.05)
        assert all((a <= b).all() for a, b in zip(few, many, strict=True))
        strict, loose = family(k, 10, 0.01), family(k, 10, 0.5)
        assert all((a >= b).all() for a, b in zip(strict, loose, strict=True))


def test_bounds_grow_with_what_they_assume():
    for width in (
        lambda x: c.bernstein_width(WIDE, 10, x, 0.05),
        lambda x: c.sub_gaussian_width(WIDE, 10, x, 0.05),
        lambda x: c.beta_width(WIDE, 10, 0.5, x, 0.05),
        lambda x: c.truncated_gaussian_width(WIDE, 10, x, 0.05),
        lambda x: c.two_step_width(WIDE, 10, x, 0.3, 0.05),
    ):
        assert (width(0.0) < width(0.1)).all()
        assert (width(0.1) < width(0.24)).all()


def test_a_constant_rate_is_the_limit_of_every_population():
    hoeffding = c.hoeffding_width(WIDE, 9, 0.1)
    for widths in (
        c.sub_gaussian_width(WIDE, 9, 0.0, 0.1),
        c.beta_width(WIDE, 9, 0.2, 0.0, 0.1),
        c.truncated_gaussian_width(WIDE, 9, 0.0, 0.1),
    ):
        assert widths == pytest.approx(hoeffding, rel=1e-14)


def test_scalars_and_arrays_of_any_shape_agree():
    k = np.array([[3, 1, 40], [7, 3, 1000]])
    before = k.copy()
    for family in (all_bounds, exact_widths):
        for i, widths in enumerate(family(k, 30, 0.05)):
            assert widths.shape == k.shape
            assert np.isfinite(widths).all()
            for where in np.ndindex(k.shape):
                alone = family(int(k[where]), 30, 0.05)[i]
                assert type(alone) is float
                assert alone == pytest.approx(widths[where], rel=1e-14)
    assert (k == before).all()


def test_tiny_levels_and_many_users_do_not_overflow():
    widths = all_bounds(10**6, 10**12, 1e-300) + exact_widths(10, 10**12, 1e-300)
    assert np.isfinite(widths).all()


# Certificates


@pytest.mark.parametrize(("a", "b"), [(3, 7), (30, 70), (1, 1), (0.1, 0.9), (5, 0.5)])
def test_beta_and_beta_binomial_means_are_sub_gaussian(a, b):
    s = np.concatenate((-np.geomspace(0.01, 50, 60), np.geomspace(0.01, 50, 60)))
    p, proxy = a / (a + b), 1 / (4 * (a + b + 1))
    log_mgf = np.log(special.hyp1f1(a, a + b, s)) - s * p
    assert (log_mgf <= proxy * s**2 / 2 * (1 + 1e-9) + 1e-13).all()
    for k in (1, 4, 50):
        j = np.arange(k + 1)
        moments = np.exp(np.outer(s, j / k - p)) @ stats.betabinom.pmf(j, k, a, b)
        bound = (proxy + 0.25 / k) * s**2 / 2
        assert (np.log(moments) <= bound * (1 + 1e-9) + 1e-13).all()


@pytest.mark.parametrize(("mean", "sd"), [(0.5, 0.1), (0.2, 0.3), (0.9, 0.5)])
def test_truncated_gaussians_are_sub_gaussian_with_the_variance_of_the_parent(mean, sd):
    meta = TruncatedGaussian(mean, sd)

    def moment(s):
        def weight(x, s=s):
            return math.exp(s * (x - mean) - (x - meta.location) ** 2 / (2 * sd**2))

        return integrate.quad(weight, 0, 1)[0]

    for s in (-40, -10, -1, -0.1, 0.1, 1, 10, 40):
        assert math.log(moment(s) / moment(0)) <= sd**2 * s**2 / 2 + 1e-9
    assert meta.variance <= sd**2


@pytest.mark.parametrize(
    ("reach", "lost"),
    [(1.644854, 0.376984515865), (2, 0.226258696450), (3, 0.026663075337)],
)
def test_a_window_of_given_reach_takes_a_known_share_of_the_variance(reach, lost):
    meta = TruncatedGaussian(0.5, 0.5 / reach)
    assert meta.variance / meta.sd**2 == pytest.approx(1 - lost, abs=3e-7)


# Whatever type a number comes in


def test_narrow_and_unsigned_numbers_are_plain_ones():
    k, n = np.array([100, 200], np.uint8), odd(np.uint8(200))
    plain, beta, half = k.astype(float), odd(np.float16(0.25)), odd(np.float16(0.5))
    function: Any
    for function, more in (
        (c.hoeffding_width, ()),
        (c.bernstein_width, (np.float16(0.25),)),
        (c.chernoff_width, (half,)),
        (c.sub_gaussian_width, (np.uint8(2),)),
        (c.beta_width, (half, np.float16(0.125))),
        (c.truncated_gaussian_width, (np.int8(20),)),
        (c.standard_width, (half, np.float16(0.125))),
        (c.chebyshev_width, (half, np.float16(0.125))),
        (c.two_step_width, (np.float16(0.125), half)),
        (c.exact_binomial_width, (half,)),
        (c.exact_beta_binomial_width, (half, np.uint8(200))),
    ):
        # rate_width comes before p, and beta last, in every signature.
        found = function(k, n, *more, beta)
        known = function(plain, 200, *(float(x) for x in more), 0.25)
        assert (found == known).all(), function.__name__
    assert c.lower_bound_beta(n, beta) == c.lower_bound_beta(200, 0.25)
    assert c.largest_variance(half, odd(np.uint8(0))) == 0.25


def test_the_largest_and_rarest_numbers_give_widths():
    for k in (1, 1.7e308):
        for n, beta in ((1, 1 - 1e-16), (2**63 - 1, 5e-324)):
            widths = (
                c.hoeffding_width(k, n, beta),
                c.bernstein_width(k, n, 0.25, beta),
                c.sub_gaussian_width(k, n, 1e200, beta),
                c.truncated_gaussian_width(k, n, 1e100, beta),
            )
            assert np.isfinite(widths).all()


def test_errors_show_nothing_of_an_array():
    function: Any
    for function, more in (
        (c.hoeffding_width, ()),
        (c.exact_binomial_width, (0.5,)),
        (c.exact_beta_binomial_width, (0.5, 9)),
        (c.chernoff_width, (0.5,)),
    ):
        with pytest.raises(ValueError, match=r"^k must ") as caught:
            function([77.25, 0.125], 10, *more, 0.1)
        assert "77" not in str(caught.value)
        assert ".125" not in str(caught.value)


# Errors


@pytest.mark.parametrize(
    ("call", "error", "name"),
    [
        (lambda: c.hoeffding_width(0, 10, 0.1), ValueError, "k"),
        (lambda: c.hoeffding_width([3, 0.5], 10, 0.1), ValueError, "k"),
        (lambda: c.bernstein_width(math.nan, 10, 0.1, 0.1), ValueError, "k"),
        (lambda: c.chernoff_width([-1], 10, 0.1, 0.1), ValueError, "k"),
        (lambda: c.sub_gaussian_width(math.inf, 10, 0.1, 0.1), ValueError, "k"),
        (lambda: c.beta_width("3", 10, 0.5, 0.1, 0.1), TypeError, "k"),
        (lambda: c.standard_width(True, 10, 0.5, 0.1, 0.1), TypeError, "k"),
        (lambda: c.chebyshev_width([None], 10, 0.5, 0.1, 0.1), TypeError, "k"),
        (lambda: c.two_step_width(0, 10, 0.1, 0.5, 0.1), ValueError, "k"),
        (lambda: c.exact_binomial_width(2.5, 10, 0.5, 0.1), ValueError, "k"),
        (lambda: c.exact_binomial_width(2**45, 10, 0.5, 0.1), ValueError, "k"),
        (lambda: c.exact_beta_binomial_width(0, 10, 0.5, 9, 0.1), ValueError, "k"),
        (lambda: c.exact_beta_binomial_width(1e8, 10, 0.5, 9, 0.1), ValueError, "k"),
        (lambda: c.hoeffding_width([1, [2]], 10, 0.1), ValueError, "k"),
        (lambda: c.hoeffding_width(1j, 10, 0.1), TypeError, "k"),
        (lambda: c.hoeffding_width(np.timedelta64(3), 10, 0.1), TypeError, "k"),
        (
            lambda: c.hoeffding_width(np.ma.array([1, 2], mask=[False, True]), 10, 0.1),
            ValueError,
            "k",
        ),
        (
            lambda: c.exact_beta_binomial_width(np.arange(1, 10**5), 9, 0.5, 9, 0.1),
            ValueError,
            "k",
        ),
        (lambda: c.hoeffding_width(1, odd(np.timedelta64(9)), 0.1), TypeError, "n"),
        (lambda: c.sub_gaussian_width(1, 10, 1e300, 0.1), ValueError, "proxy"),
        (lambda: c.hoeffding_width(1, 0, 0.1), ValueError, "n"),
        (lambda: c.hoeffding_width(1, odd(2.0), 0.1), TypeError, "n"),
        (lambda: c.chebyshev_width(1, 0, 0.5, 0.1, 0.1), ValueError, "n"),
        (lambda: c.two_step_width(1, -3, 0.1, 0.5, 0.1), ValueError, "n"),
        (lambda: c.exact_binomial_width(1, odd("5"), 0.5, 0.1), TypeError, "n"),
        (lambda: c.lower_bound_beta(0, 0.1), ValueError, "n"),
        (lambda: c.hoeffding_width(1, 10, 0.0), ValueError, "beta"),
        (lambda: c.chebyshev_width(1, 10, 0.5, 0.1, 1.0), ValueError, "beta"),
        (lambda: c.two_step_width(1, 10, 0.1, 0.5, 1.5), ValueError, "beta"),
        (lambda: c.exact_binomial_width(1, 10, 0.5, math.nan), ValueError, "beta"),
        (lambda: c.exact_beta_binomial_width(1, 9, 0.5, 9, -1), ValueError, "beta"),
        (lambda: c.lower_bound_beta(1, odd("0.1")), TypeError, "beta"),
        (lambda: c.bernstein_width(1, 10, 0.26, 0.1), ValueError, "q"),
        (lambda: c.bernstein_width(1, 10, -0.1, 0.1), ValueError, "q"),
        (lambda: c.sub_gaussian_width(1, 10, -1e-9, 0.1), ValueError, "proxy"),
        (lambda: c.sub_gaussian_width(1, 10, math.inf, 0.1), ValueError, "proxy"),
        (lambda: c.truncated_gaussian_width(1, 10, -0.1, 0.1), ValueError, "sd"),
        (lambda: c.truncated_gaussian_width(1, 10, 1e200, 0.1), ValueError, "sd"),
        (lambda: c.two_step_width(1, 10, -0.1, 0.5, 0.1), ValueError, "rate_width"),
        (lambda: c.two_step_width(1, 10, 0.1, 1.5, 0.1), ValueError, "p"),
        (lambda: c.chernoff_width(99, 10, 1.5, 0.1), ValueError, "p"),
        (lambda: c.exact_binomial_width(1, 10, -0.5, 0.1), ValueError, "p"),
        (lambda: c.standard_width(1, 10, 2, 0.1, 0.1), ValueError, "p"),
        (lambda: c.standard_width(1, 10, 0.5, 0.26, 0.1), ValueError, "var_p"),
        (lambda: c.largest_variance(-0.1, 0.1), ValueError, "p"),
        (lambda: c.largest_variance(0.1, math.nan), ValueError, "alpha"),
        (lambda: c.beta_width(1, 10, 1.0, 0.0, 0.1), ValueError, "mean"),
        (lambda: c.beta_width(1, 10, 0.5, 0.3, 0.1), ValueError, "variance"),
        (lambda: c.exact_beta_binomial_width(1, 9, 0, 9, 0.1), ValueError, "mean"),
        (
            lambda: c.exact_beta_binomial_width(1, 9, 0.5, 0, 0.1),
            ValueError,
            "concentration",
        ),
    ],
)
def test_bad_arguments_are_refused_by_name(call, error, name):
    with pytest.raises(error, match=f"^{name} must "):
        call()
