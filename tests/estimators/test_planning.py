"""What a forecast promises is what a release then does.

Exactly, where a run is forced to find what the forecast assumes; and on average over
random users and noise.  Of these averages two have exact forecasts, and use `close` of
`tests.chance`.  The others neglect a little, and are allowed ALLOWANCE of the mean
squared error beyond 6.5 standard errors: for random seeds each would raise a false
alarm with a chance below 1e-9.
"""

from __future__ import annotations

import math
import time
from functools import cache
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hetlit import (
    Beta,
    Users,
    estimate_nonprivate_ideal,
    estimate_private_k,
    estimate_public_size,
    sample_users,
    sizes,
    user_variance,
)
from hetlit.estimators.forecast import METHODS, Line
from hetlit.estimators.planning import SPREADS, _public_release, plan
from hetlit.estimators.private_k.auto import _spread_question
from hetlit.estimators.public_size.auto import estimate_adaptive, make_plans
from hetlit.privacy.selection import log_grid
from hetlit.users.groups import by_size_class
from tests.chance import close
from tests.quiet import Scripted

ALLOWANCE = 0.2
K_MAX = 700

SKEWED = 2 * sizes.geometric(2000, 40, np.random.default_rng(3))
FEW = 2 * sizes.geometric(300, 40, np.random.default_rng(3))
LIGHT = np.minimum(2 * sizes.geometric(3000, 20, np.random.default_rng(4)), 254)
TWO_LEVELS = 2 * sizes.two_level(10_000, 300, 100)
EQUAL = sizes.equal(1000, 9)
HARMONIC = sizes.harmonic(3000)


def planned(k: Any, epsilon: float, spread: float = 0.05, **more: Any) -> Line:
    return plan(k, epsilon, spreads=[spread], **more).lines[0]


def half_of(interval: tuple[float, float]) -> float:
    return (interval[1] - interval[0]) / 2.0


# Exact forecasts


@pytest.mark.parametrize("mean", [0.5, 0.1])
@pytest.mark.parametrize("spread", [0.0, 0.2])
def test_the_plain_mean_is_forecast_by_its_exact_variance(mean, spread):
    sampling = np.sum(user_variance(SKEWED, mean, spread**2)) / len(SKEWED) ** 2
    noise = 2.0 / (len(SKEWED) * 0.7) ** 2
    line = planned(SKEWED, 0.7, spread, mean=mean)
    # Sizes above 255 are rounded down by less than 1 in 128.
    assert line.plain_error == pytest.approx(math.sqrt(sampling + noise), rel=1e-4)
    exact = planned([3, 9], 0.7, spread, mean=mean)
    sampling = np.sum(user_variance(np.array([3, 9]), mean, spread**2)) / 4.0
    noise = 2.0 / (2 * 0.7) ** 2
    expected = min(math.sqrt(sampling + noise), max(mean, 1.0 - mean))
    assert exact.plain_error == pytest.approx(expected, rel=1e-12)


def test_the_sampling_error_is_that_of_the_best_weights_without_privacy():
    users = Users(HARMONIC, np.zeros_like(HARMONIC))
    ideal = estimate_nonprivate_ideal(users, 0.3, 0.04, trace=True).trace.objective
    line = planned(users, 1.0, 0.2, mean=0.3)
    assert ideal * (1.0 - 1e-12) <= line.sampling_error**2 <= 1.008 * ideal
    variances = user_variance(np.array([3, 9]), 0.3, 0.04)
    line = planned([3, 9], 1.0, 0.2, mean=0.3)
    assert line.sampling_error**2 == pytest.approx(1.0 / np.sum(1.0 / variances))
    assert planned([3, 9], 1.0, 0.0, mean=1.0).sampling_error == 0.0


def gaussian_outsiders(intervals: Any) -> float:
    """Return what a tail test counts if all means are Gaussian.

    It counts half of what is beyond the reach, on either side.
    """
    z = np.linspace(intervals.reach, intervals.reach + 12.0, 100_001)
    density = np.exp(-(z**2) / 2.0) / math.sqrt(2.0 * math.pi)
    return float(
        intervals.users * np.sum((z - intervals.reach) * density) * (z[1] - z[0])
    )


def forced_run(k: Any, epsilon: float, cell: int) -> tuple[Any, float]:
    """Return a run that finds what a forecast assumes, and the spread to ask it for.

    All users' means and the anchor are 1/2, the typical spread falls into a cell of its
    grid, and the tail test counts what Gaussian tails put outside.
    """
    users = Users(k, k // 2)
    plans = make_plans(by_size_class(users).sizes, epsilon)
    outside, spread = 0.0, 0.05
    if plans.adaptive is not None:
        resolution = 0.25 * plans.adaptive.resolution
        found = float(log_grid(resolution, 0.25, 2.0)[cell]) / math.sqrt(2.0)
        spread = math.sqrt(found - resolution)
        final = plans.adaptive.final(0.5, 0.25, found)
        if final.test is not None:
            outside = gaussian_outsiders(final.test.intervals)
    noise = Scripted(0.0, outside, outcome=cell)
    return estimate_adaptive(users, epsilon, rng=noise, trace=True), spread


@pytest.mark.parametrize(
    ("k", "epsilon", "cell", "path"),
    [
        (2 * EQUAL, 0.5, 0, "plain"),
        (SKEWED, 0.1, 0, "plain"),
        (FEW, 1.0, 0, "cautious"),
        (SKEWED, 2.0, 1, "clipped"),
        (SKEWED, 2.0, 2, "clipped"),
        (SKEWED, 1.0, 1, "clipped"),
        (SKEWED, 4.0, -2, "unclipped"),
    ],
)
def test_a_run_that_finds_what_was_assumed_is_as_forecast(k, epsilon, cell, path):
    estimate, spread = forced_run(k, epsilon, cell)
    trace = estimate.trace
    line = planned(k, epsilon, spread)
    assert (line.path, trace.path) == (path, path)
    sampling = np.sum(trace.weights**2 * user_variance(k, 0.5, spread**2))
    error = math.sqrt(sampling + 2.0 * trace.noise_scale**2)
    assert line.error == pytest.approx(error, rel=1e-3)
    for level in (0.02, 0.5, 0.95):
        line = planned(k, epsilon, spread, level=level)
        width = half_of(estimate.interval(level))
        assert line.half_width == pytest.approx(width, rel=1e-6)


def forced_private_run(k: Any, epsilon: float, cell: int) -> tuple[Any, float, float]:
    """Return such a run for private sizes, the spread to ask for, and the run's error.

    The counts of its histogram are right, too.
    """
    users, right = Users(k, k // 2), [0.0] * (K_MAX.bit_length() + 1)

    def run(noise: Scripted) -> Any:
        return estimate_private_k(users, epsilon, k_max=K_MAX, rng=noise, trace=True)

    spread, outside = 0.05, 0.0
    found = run(Scripted(outcome=cell)).trace
    if found.path in ("clipped", "unclipped"):
        question = _spread_question(found.plan, epsilon)
        assert question is not None
        spread = math.sqrt(found.initial_variance - 0.25 * question.resolution)
        if found.final.test is not None:
            outside = gaussian_outsiders(found.final.test.intervals)
    noise = Scripted(*right, outside, outcome=cell)
    estimate = run(noise)
    trace, shares, blur = estimate.trace, np.full(len(k), 1.0 / len(k)), 0.0
    if trace.path == "plain again":
        # The mean of two, with weights that make its noise least.
        first, second = noise.scales[-2:]
        blur = math.sqrt(2.0) * first * second**2 / (first**2 + second**2)
    elif trace.path != "plain":
        weights = trace.final.weighting.at(k.astype(float))[0]
        shares = weights / np.sum(weights)
        # The distance from the anchor, times the relative error of the total weight.
        blur = math.sqrt(2.0 * trace.anchor.variance) * noise.scales[-2]
        blur /= np.sum(weights)
    sampling = np.sum(shares**2 * user_variance(k, 0.5, spread**2))
    variance = sampling + 2.0 * trace.noise_scale**2 + blur**2
    return estimate, spread, math.sqrt(variance)


@pytest.mark.parametrize(
    ("k", "epsilon", "cell", "path", "method"),
    [
        (LIGHT, 0.3, 0, "plain", "plain"),
        (sizes.equal(1000, 20), 4.0, 0, "plain again", "plain"),
        (TWO_LEVELS, 1.0, 0, "cautious", "cautious"),
        (LIGHT, 2.0, 2, "clipped", "adaptive"),
        (LIGHT, 4.0, -3, "unclipped", "adaptive"),
    ],
)
def test_a_run_for_private_sizes_that_finds_what_was_assumed_is_as_forecast(
    k, epsilon, cell, path, method
):
    estimate, spread, error = forced_private_run(k, epsilon, cell)
    forecast = plan(k, epsilon, spreads=[spread], k_max=K_MAX)
    line = forecast.lines[0]
    assert (line.path, estimate.trace.path) == (path, path)
    assert forecast.method == method
    assert line.error == pytest.approx(error, rel=1e-6)
    for level in (0.02, 0.5, 0.95):
        line = planned(k, epsilon, spread, level=level, k_max=K_MAX)
        width = half_of(estimate.interval(level))
        assert line.half_width == pytest.approx(width, rel=1e-6)


def test_the_anchor_of_a_run_is_as_forecast():
    # It bounds an interval only where clipping could have moved the value far.
    estimate, spread = forced_run(SKEWED, 2.0, 1)
    run = _public_release(by_size_class(Users(SKEWED, SKEWED)).sizes, 2.0, 0.5).run
    expected, first = run(spread**2).uncertainty.first, estimate.uncertainty.first
    assert expected is not None
    assert expected.noise == pytest.approx(first.noise, rel=1e-12)
    assert expected.sampling == pytest.approx(first.sampling, rel=1e-12)


def test_weights_are_forecast_from_the_budget_on_at_which_they_are_used():
    # A run's weights pay for private sizes if they do on average over some spreads.
    paths = set()
    for epsilon in np.geomspace(0.3, 1.2, 30):
        estimate, _, _ = forced_private_run(TWO_LEVELS, float(epsilon), 0)
        path = planned(TWO_LEVELS, float(epsilon), k_max=K_MAX).path
        assert path == estimate.trace.path
        paths.add(path)
    assert paths == {"plain again", "cautious"}


def test_a_plain_estimate_has_the_interval_that_was_forecast():
    users = Users(SKEWED, SKEWED // 2)
    for level in (0.02, 0.5, 0.95):
        line = planned(users, 0.3, level=level)
        estimate = estimate_public_size(users, 0.3, method="plain", rng=Scripted())
        assert line.plain_half_width == pytest.approx(half_of(estimate.interval(level)))


def test_nothing_is_farther_off_than_the_farther_end_of_the_rates():
    line = planned([1, 1, 50], 1e-6, 0.0, mean=0.2)
    assert (line.error, line.plain_error) == (0.8, 0.8)
    assert (line.half_width, line.plain_half_width) == (0.5, 0.5)


@pytest.mark.parametrize("k_max", [None, K_MAX])
@pytest.mark.parametrize("mean", [0.0, 1e-300, 1.0])
def test_means_at_the_ends_are_planned_like_one_success_in_four_times_n(mean, k_max):
    forecast = plan(SKEWED, 4.0, mean=mean, spreads=[0.0], k_max=k_max)
    rare = 0.25 / len(SKEWED)
    near = 1.0 - rare if mean > 0.5 else rare
    assert forecast.method == "adaptive"
    other = plan(SKEWED, 4.0, mean=near, spreads=[0.0], k_max=k_max)
    assert forecast.lines[0].error == pytest.approx(other.lines[0].error)
    assert forecast.lines[0].plain_error < other.lines[0].plain_error


# Forecasts of averages


@cache
def simulated(
    profile: str, epsilon: float, mean: float, spread: float, runs: int
) -> tuple[Any, Any]:
    """Return (squared errors, half-widths) of runs, over their last noise."""
    k = {"skewed": SKEWED, "harmonic": HARMONIC, "few": FEW}[profile]
    plans = make_plans(by_size_class(Users(k, k)).sizes, epsilon)
    law, squares, widths = Beta(mean, spread**2), [], []
    for seed in range(runs):
        rng = np.random.default_rng([seed, 11])
        users = sample_users(law, k, rng)
        estimate = estimate_adaptive(users, epsilon, plans=plans, rng=rng, trace=True)
        off = estimate.trace.noiseless - mean
        squares.append(off**2 + 2.0 * estimate.trace.noise_scale**2)
        widths.append(half_of(estimate.interval()))
    return np.array(squares), np.array(widths)


@pytest.mark.slow
@pytest.mark.parametrize("spread", [0.05, 0.2])
def test_without_first_guesses_the_average_run_is_as_forecast(spread):
    line = planned(FEW, 1.0, spread)
    squares, widths = simulated("few", 1.0, 0.5, spread, 800)
    assert line.path == "cautious"
    assert close(squares, line.error**2)
    assert np.median(widths) == pytest.approx(line.half_width, rel=1e-3)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("profile", "epsilon", "mean", "spread"),
    [
        ("skewed", 1.0, 0.5, 0.02),
        ("skewed", 4.0, 0.5, 0.1),
        ("skewed", 2.0, 0.1, 0.03),
        ("harmonic", 1.0, 0.5, 0.02),
        ("harmonic", 4.0, 0.3, 0.05),
    ],
)
def test_with_first_guesses_the_average_run_is_about_as_forecast(
    profile, epsilon, mean, spread
):
    k = {"skewed": SKEWED, "harmonic": HARMONIC}[profile]
    forecast = plan(k, epsilon, mean=mean, spreads=[spread])
    line = forecast.lines[0]
    assert forecast.method == "adaptive"
    assert line.error < 0.9 * line.plain_error
    squares, widths = simulated(profile, epsilon, mean, spread, 300)
    ratios = squares / line.error**2
    allowed = ALLOWANCE + 6.5 * np.std(ratios) / math.sqrt(len(ratios))
    assert abs(np.mean(ratios) - 1.0) <= allowed
    assert 0.6 < np.median(widths) / line.half_width < 1.5


@pytest.mark.slow
@pytest.mark.parametrize(
    ("epsilon", "spread", "method"), [(1.0, 0.02, "adaptive"), (0.3, 0.1, "plain")]
)
def test_the_average_run_for_private_sizes_is_about_as_forecast(
    epsilon, spread, method
):
    forecast = plan(LIGHT, epsilon, spreads=[spread], k_max=K_MAX)
    line = forecast.lines[0]
    assert forecast.method == method
    ratios, widths = [], []
    for seed in range(250):
        rng = np.random.default_rng([seed, 12])
        users = sample_users(Beta(0.5, spread**2), LIGHT, rng)
        estimate = estimate_private_k(users, epsilon, k_max=K_MAX, rng=rng, trace=True)
        off = estimate.trace.noiseless - 0.5
        square = off**2 + 2.0 * estimate.trace.noise_scale**2
        ratios.append(square / line.error**2)
        widths.append(half_of(estimate.interval()))
    allowed = ALLOWANCE + 6.5 * np.std(ratios) / math.sqrt(len(ratios))
    assert abs(np.mean(ratios) - 1.0) <= allowed
    assert 0.6 < np.median(widths) / line.half_width < 1.5


# Shapes of forecasts


@given(
    k=st.lists(st.integers(1, 300), min_size=1, max_size=30),
    epsilon=st.floats(1e-3, 1e3),
    copies=st.sampled_from([1, 50, 10_000]),
    mean=st.sampled_from([0.5, 0.03, 0.7]),
)
@settings(max_examples=100, deadline=None)
def test_forecasts_keep_their_order(k, epsilon, copies, mean):
    forecast = plan(k, epsilon, counts=[copies] * len(k), mean=mean)
    assert forecast.method in METHODS
    assert [line.spread for line in forecast.lines] == [
        spread for spread in SPREADS if spread**2 <= mean * (1.0 - mean)
    ]
    for line in forecast.lines:
        # No privacy is free, and no linear mean beats the best weights.
        assert line.sampling_error <= line.plain_error * (1.0 + 1e-9)
        assert line.sampling_error <= line.error * (1.0 + 1e-9) or line.error == 0.5
        assert 0.0 < line.half_width <= 0.5
        assert 0.0 < line.plain_half_width <= 0.5
    pairs = list(zip(forecast.lines, forecast.lines[1:], strict=False))
    for closer, wider in pairs:
        assert closer.plain_error <= wider.plain_error
        assert closer.sampling_error <= wider.sampling_error


@pytest.mark.parametrize("k", [SKEWED, HARMONIC, EQUAL], ids=["skewed", "1/i", "equal"])
def test_more_budget_means_less_error(k):
    epsilons = np.geomspace(1e-3, 100.0, 41)
    forecasts = [plan(k, float(epsilon)) for epsilon in epsilons]
    for line in range(len(SPREADS)):
        lines = [forecast.lines[line] for forecast in forecasts]
        plain = np.array([one.plain_error for one in lines])
        error = np.array([one.error for one in lines])
        assert (np.diff(plain) <= 0.0).all()
        # Another plan may cost a little more than the plan of a smaller budget.
        assert (error[1:] <= 1.1 * np.minimum.accumulate(error)[:-1]).all()
        assert error[-1] < 1.1 * lines[-1].sampling_error


def test_one_half_is_about_the_worst_mean():
    for epsilon in (0.1, 1.0, 4.0):
        worst = plan(SKEWED, epsilon).lines
        for mean in (0.4, 0.2, 0.95):
            for better, line in zip(
                plan(SKEWED, epsilon, mean=mean).lines, worst, strict=True
            ):
                assert better.error <= 1.05 * line.error  # by another path
                assert better.plain_error <= line.plain_error


# What epsilon an error needs


@pytest.mark.parametrize("error", [0.3, 0.03, 0.01, 0.0055])
def test_the_epsilon_that_is_found_keeps_the_error_and_a_little_less_does_not(error):
    found = plan(SKEWED, error=error)
    assert max(line.error for line in found.lines) <= error
    assert plan(SKEWED, found.epsilon) == found
    private = plan(SKEWED, error=error, k_max=K_MAX)
    assert max(line.error for line in private.lines) <= error
    assert plan(SKEWED, private.epsilon, k_max=K_MAX) == private
    assert found.epsilon == float(f"{found.epsilon:.3g}")
    unit = 10.0 ** math.floor(math.log10(found.epsilon) - 2.0)
    less = plan(SKEWED, found.epsilon - unit)
    assert max(line.error for line in less.lines) > error


def test_the_plain_mean_needs_the_epsilon_that_its_variance_says():
    # 1/4/n + 2/(n epsilon)^2 = error^2, for single samples.
    found = plan(sizes.equal(1000, 1), error=0.02, spreads=[0.1])
    needed = math.sqrt(2.0 / (0.02**2 - 0.25 / 1000)) / 1000
    assert needed <= found.epsilon <= 1.01 * needed


@pytest.mark.parametrize("part", [0.9, 1.0 + 1e-6])
def test_an_error_that_no_epsilon_gives_is_refused(part):
    # Users with few samples: weights never pay, and the plain mean needs more.
    k = [3] * 50 + [4] * 50
    error = part * planned(k, 1.0, 0.2).sampling_error
    said = rf"deviation of 0\.2, .* error of {error / part:.3g} without privacy"
    with pytest.raises(ValueError, match=f"^error must be larger.*no epsilon.*{said}"):
        plan(k, error=error, spreads=[0.0, 0.2])
    # It is not refused for a spread at which it can be had.
    assert plan(k, error=error, spreads=[0.0]).epsilon > 0.0


def test_an_error_that_anything_keeps_needs_the_least_epsilon():
    assert plan(SKEWED, error=0.5).epsilon == 1e-12


# What plays a part


def test_successes_play_no_part():
    rng = np.random.default_rng(0)
    k = sizes.harmonic(500)
    some, other = (Users(k, rng.integers(0, k + 1)) for _ in range(2))
    assert plan(some, 1.0) == plan(other, 1.0) == plan(k, 1.0)


@given(st.permutations([1, 1, 1, 4, 4, 9, 30, 300, 301]), st.sampled_from([0.5, 40.0]))
@settings(max_examples=20, deadline=None)
def test_order_and_merging_of_rows_play_no_part(k, epsilon):
    merged = plan([9, 300, 1, 4, 30, 301], epsilon, counts=[1, 1, 3, 2, 1, 1])
    table = Users(k, [0] * len(k), [1] * len(k))
    assert plan(k, epsilon) == plan(table, epsilon) == merged


def test_huge_numbers_of_users_are_quick():
    k = np.unique(np.geomspace(1, 2**62, 4000).astype(np.int64))
    begin = time.perf_counter()
    forecast = plan(k, error=0.001, counts=np.full(len(k), 10**8))
    assert time.perf_counter() - begin < 10.0
    assert forecast.n == 10**8 * len(k)


# Arguments


@pytest.mark.parametrize(
    ("arguments", "error", "text"),
    [
        ({}, TypeError, "epsilon or error must be given"),
        ({"epsilon": 1.0, "error": 0.1}, TypeError, "epsilon or error must be given"),
        ({"epsilon": 0.0}, ValueError, "epsilon must be a number in"),
        ({"epsilon": "1"}, TypeError, "epsilon must be a number in"),
        ({"error": 0.0}, ValueError, "error must be a number strictly between 0 and 1"),
        ({"error": 1.0}, ValueError, "error must be a number strictly between 0 and 1"),
        ({"epsilon": 1.0, "mean": 1.1}, ValueError, r"mean must be .* \[0, 1\]"),
        ({"epsilon": 1.0, "level": 1.0}, ValueError, "level must be .* strictly"),
        ({"epsilon": 1.0, "spreads": 0.1}, ValueError, "spreads must be one-dim"),
        ({"epsilon": 1.0, "spreads": []}, ValueError, "spreads is empty"),
        ({"epsilon": 1.0, "spreads": [-0.1]}, ValueError, "spreads must be finite and"),
        (
            {"epsilon": 1.0, "spreads": [0.1, 0.5], "mean": 0.2},
            ValueError,
            r"spreads must be at most sqrt\(mean \(1 - mean\)\) = 0.4 throughout",
        ),
        ({"epsilon": 1.0, "sizes": [0, 1]}, ValueError, "sizes must be at least 1"),
        ({"epsilon": 1.0, "sizes": "ab"}, ValueError, "sizes must be one-dimensional"),
        ({"epsilon": 1.0, "counts": [1]}, ValueError, "same length"),
        ({"epsilon": 1.0, "counts": [0, 1]}, ValueError, "counts must be at least 1"),
        (
            {"epsilon": 1.0, "sizes": Users([1], [1]), "counts": [1]},
            TypeError,
            "counts must be None for a table",
        ),
    ],
)
def test_wrong_arguments_are_refused_by_name(arguments, error, text):
    with pytest.raises(error, match=f"^{text}|same length"):
        plan(**{"sizes": [1, 5], **arguments})


def test_the_largest_spread_that_a_mean_allows_is_accepted():
    for mean in (0.1, 0.3, 0.5):
        largest = math.sqrt(mean * (1.0 - mean))
        for asked in (largest, largest * (1.0 + 5e-13)):
            assert planned([1, 5], 1.0, asked, mean=mean).spread == largest


@pytest.mark.parametrize(
    ("arguments", "error", "text"),
    [
        ({"k_max": 0}, ValueError, "k_max must be a whole number of at least 1"),
        ({"k_max": 10**8}, ValueError, "k_max must be .* at most 10000000"),
        ({"k_max": 4}, ValueError, "sizes must be at most k_max = 4 throughout"),
        (
            {"sizes": Users([1], [1])},
            TypeError,
            "sizes must be an array .* a public guess",
        ),
    ],
)
def test_private_sizes_need_a_guess_within_a_bound(arguments, error, text):
    with pytest.raises(error, match=f"^{text}"):
        plan(**{"sizes": [1, 5], "epsilon": 1.0, "k_max": 9, **arguments})
