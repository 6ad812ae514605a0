"""The ideal private estimator: its numbers, its variance, its arguments.

Monte Carlo.  A run's noiseless value is computed for many populations at once from
trace.weights, trace.lower and trace.upper, which depend on sizes only; the variance
of the Laplace noise is exact and added.  Each comparison states its standard error;
the allowance is 5.7 of them or more, so that for a random seed a true one fails with
a chance of at most 1.2e-8.  There are eight: together below 1e-7.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import integrate, stats

from hetlit import (
    Beta,
    Constant,
    TruncatedGaussian,
    TwoPoint,
    Users,
    best_threshold,
    estimate_ideal,
    estimate_nonprivate_ideal,
    initial_mean_error,
    sizes,
    sub_gaussian_width,
    truncated_weights,
    user_variance,
)
from hetlit.estimators.clipped_mean import ClippedMean
from hetlit.estimators.ideal import known_error, plan_ideal
from hetlit.privacy.noise import SecureNoiseUnavailable
from hetlit.theory.populations import MetaDistribution
from hetlit.theory.weights import release_variance
from hetlit.theory.widths import beta_width
from hetlit.users.groups import Sizes
from tests.neighbours import FINAL_40, WEIGHTS
from tests.quiet import Quiet


def width_40(k: Any) -> Any:
    return sub_gaussian_width(k, 40, 0.02, 0.05)


def ideal_40(epsilon: float, weights: str) -> Any:
    return estimate_ideal(
        FINAL_40,
        0.45,
        0.02,
        epsilon,
        alpha=0.1,
        width=width_40,
        weights=weights,
        rng=Quiet(),
        trace=True,
    ).trace


# Forty users, computed by hand beforehand.


@pytest.mark.parametrize(
    ("epsilon", "objective", "sensitivity", "noiseless"),
    [
        (1.0, 0.007160458934603, 0.044911364773337, 0.490159854874434),
        (10.0, 0.003102970663616, 0.054380674958429, 0.489486246080915),
        (100.0, 0.003038105952099, 0.062464270410663, 0.487786485931382),
    ],
)
def test_forty_users_with_the_papers_weights(
    epsilon: float, objective: float, sensitivity: float, noiseless: float
) -> None:
    trace = ideal_40(epsilon, "paper")
    assert trace.objective == pytest.approx(objective, abs=1e-14)
    assert trace.sensitivity == pytest.approx(sensitivity, abs=1e-14)
    assert trace.noiseless == pytest.approx(noiseless, abs=1e-13)
    assert trace.noise_scale == pytest.approx(sensitivity / epsilon, abs=1e-14)


@pytest.mark.parametrize(
    ("epsilon", "threshold"), [(10.0, 3.857072337298), (100.0, 4.525010758586)]
)
def test_forty_users_have_the_known_threshold(epsilon: float, threshold: float) -> None:
    assert ideal_40(epsilon, "paper").threshold == pytest.approx(threshold, abs=1e-11)


def test_forty_users_are_all_held_back_at_epsilon_one() -> None:
    # Any threshold up to the smallest 1/sd gives the same weights.
    trace = ideal_40(1.0, "paper")
    assert trace.threshold <= 2.734343709
    precision = 1 / np.sqrt(user_variance(FINAL_40.k, 0.45, 0.02))
    np.testing.assert_allclose(trace.weights, precision / precision.sum(), rtol=1e-12)


@pytest.mark.parametrize(
    ("epsilon", "objective"),
    [
        (1.0, 0.005318461100260),
        (10.0, 0.003099826531432),
        (100.0, 0.003038105952099),
    ],
)
def test_forty_users_with_optimal_weights(epsilon: float, objective: float) -> None:
    assert ideal_40(epsilon, "optimal").objective == pytest.approx(objective, abs=1e-14)


def test_forty_users_have_uniform_optimal_weights_at_epsilon_one() -> None:
    trace = ideal_40(1.0, "optimal")
    np.testing.assert_allclose(trace.weights, 1 / 32, rtol=1e-12)
    assert trace.sensitivity == pytest.approx(1 / 32, rel=1e-12)


def test_forty_users_have_intervals_that_cover_everything() -> None:
    trace = ideal_40(1.0, "paper")
    # Users 5 and 36 hold 8 and 2 samples.
    assert width_40(8) == pytest.approx(0.869609273233, abs=1e-12)
    assert width_40(2) == pytest.approx(1.462720097416, abs=1e-12)
    np.testing.assert_array_equal(trace.lower, 0.0)
    np.testing.assert_array_equal(trace.upper, 1.0)


def test_forty_users_without_the_unit_interval_need_far_more_noise() -> None:
    variances = user_variance(FINAL_40.k, 0.45, 0.02)
    widths = 2 * (0.1 + width_40(FINAL_40.k))
    threshold, objective = best_threshold(variances, widths, 1.0)
    weights = truncated_weights(variances, threshold)
    assert objective == pytest.approx(0.018296761970387, abs=1e-14)
    assert np.max(weights * widths) == pytest.approx(0.087092951515583, abs=1e-14)
    _, cut = best_threshold(variances, np.minimum(widths, 1.0), 1.0)
    assert objective > 2 * cut


# The predicted variance.


K_200 = 200 // np.arange(1, 201)


def two_hundred() -> tuple[Any, Quiet]:
    source = Quiet()
    estimate = estimate_ideal(
        Users(K_200, 0 * K_200),
        0.4,
        0.01,
        1.0,
        width=lambda k: beta_width(k, 200, 0.4, 0.01, 0.001),
        rng=source,
        trace=True,
    )
    return estimate.trace, source


def test_two_hundred_users_have_the_known_prediction() -> None:
    trace, _ = two_hundred()
    sampling = np.sum(trace.weights**2 * user_variance(K_200, 0.4, 0.01))
    assert trace.objective == pytest.approx(9.253225613735e-4, rel=1e-12)
    assert sampling == pytest.approx(5.120585700973e-4, rel=1e-12)
    assert 2 * trace.noise_scale**2 == pytest.approx(4.132639912763e-4, rel=1e-12)
    nonprivate = estimate_nonprivate_ideal(
        Users(K_200, 0 * K_200), 0.4, 0.01, trace=True
    )
    assert nonprivate.trace.objective == pytest.approx(4.081732593638e-4, rel=1e-12)


def simulated_values(
    meta: Any, k: Any, trace: Any, runs: int, seed: int
) -> tuple[np.ndarray, int]:
    """Return the noiseless value of many runs, and how many means were clipped."""
    rng = np.random.default_rng(seed)
    values, clipped = [], 0
    for _ in range(runs // 1000):
        rates = meta.sample(1000 * len(k), rng).reshape(1000, len(k))
        means = rng.binomial(k, rates) / k
        inside = np.clip(means, trace.lower, trace.upper)
        clipped += int(np.sum(inside != means))
        values.append(inside @ trace.weights)
    return np.concatenate(values), clipped


@pytest.mark.slow
def test_two_hundred_users_behave_as_predicted() -> None:
    # 5e4 runs: the error of the variance is 0.35%, and 2% is 5.7 of it; the mean is
    # allowed 6.5 of its errors of 1e-4.
    trace, _ = two_hundred()
    values, clipped = simulated_values(Beta(0.4, 0.01), K_200, trace, 50_000, seed=41)
    measured = np.var(values) + 2 * trace.noise_scale**2
    assert measured == pytest.approx(9.253225613735e-4, rel=0.02)
    assert abs(np.mean(values) - 0.4) < 6.5 * math.sqrt(5.120585700973e-4 / 50_000)
    # The intervals promise fewer than .001 clipped means per run.
    assert clipped < 50 + 6.5 * math.sqrt(50)


POPULATIONS: dict[str, MetaDistribution] = {
    "constant": Constant(0.3),
    "beta": Beta(0.3, 0.0004),
    "gaussian": TruncatedGaussian(0.4, 0.1),
    "two points": TwoPoint(0.4, 0.5, 0.3),
}


@pytest.mark.parametrize("weights", WEIGHTS)
@pytest.mark.parametrize("name", POPULATIONS)
def test_predicted_variance_is_exact_to_two_percent(name: str, weights: str) -> None:
    # No simulation: users are independent, and the law of a clipped mean is known.
    meta = POPULATIONS[name]
    k = sizes.harmonic(300)
    trace = ideal_trace(meta, k, 1.0, weights)
    variances = {size: clipped_variance(meta, size, trace, k) for size in set(k)}
    exact = sum(
        weight**2 * variances[size]
        for weight, size in zip(trace.weights, k, strict=True)
    )
    exact += 2 * trace.noise_scale**2
    # Clipping never adds variance.
    assert 0.98 * trace.objective <= exact <= trace.objective * (1 + 1e-9)


def ideal_trace(meta: Any, k: Any, epsilon: float, weights: str) -> Any:
    return estimate_ideal(
        Users(k, 0 * k),
        meta.mean,
        meta.variance,
        epsilon,
        weights=weights,
        rng=Quiet(),
        trace=True,
    ).trace


def clipped_variance(meta: Any, size: int, trace: Any, k: Any) -> float:
    """Return the exact variance of the clipped mean of a user of this size."""
    row = int(np.argmax(k == size))
    successes = np.arange(size + 1)
    masses = success_masses(meta, int(size), successes)
    means = np.clip(successes / size, trace.lower[row], trace.upper[row])
    centre = np.sum(masses * means)
    return float(np.sum(masses * (means - centre) ** 2))


def success_masses(meta: Any, size: int, successes: Any) -> np.ndarray:
    if isinstance(meta, Constant):
        return stats.binom(size, meta.p).pmf(successes)
    if isinstance(meta, TwoPoint):
        return meta.weight * stats.binom(size, meta.high).pmf(successes) + (
            1 - meta.weight
        ) * stats.binom(size, meta.low).pmf(successes)
    if isinstance(meta, Beta):
        total = meta.concentration
        law = stats.betabinom(size, meta.mean * total, (1 - meta.mean) * total)
        return law.pmf(successes)
    # A rate that is Gaussian within [0, 1], averaged over a fine grid.
    rates = np.linspace(0, 1, 1001)
    density = stats.norm(meta.location, meta.sd).pdf(rates)
    density /= integrate.simpson(density, x=rates)
    binomial = stats.binom(size, rates[:, None]).pmf(successes)
    return integrate.simpson(binomial * density[:, None], x=rates, axis=0)


@pytest.mark.slow
@pytest.mark.parametrize("name", POPULATIONS)
def test_predicted_variance_is_the_simulated_one_to_two_percent(name: str) -> None:
    # 1e5 runs: the error is at most 0.3%, and 2% is 6.7 of it.
    meta = POPULATIONS[name]
    k = sizes.harmonic(40)
    trace = ideal_trace(meta, k, 1.0, "optimal")
    values, _ = simulated_values(meta, k, trace, 100_000, seed=42)
    measured = np.mean((values - meta.mean) ** 2) + 2 * trace.noise_scale**2
    assert measured == pytest.approx(trace.objective, rel=0.02)


def test_noise_has_twice_the_square_of_its_scale_as_variance() -> None:
    # Within 6.5 standard errors.
    rng = np.random.default_rng(43)
    users = Users([3, 1], [1, 1], [50, 50])  # so many that all values are in [0, 1]
    runs = [
        estimate_ideal(users, 0.4, 0.01, 0.7, rng=rng, trace=True) for _ in range(1500)
    ]
    noise = np.array([run.value - run.trace.noiseless for run in runs])
    error = np.std(noise**2) / math.sqrt(len(noise))
    assert abs(np.mean(noise**2) - 2 * runs[0].trace.noise_scale ** 2) <= 6.5 * error


# Constant p (Section 4.3): sd proportional to 1/sqrt(k), and so is the width.


@pytest.mark.parametrize(
    ("coefficient", "union", "k_star", "variance"),
    [
        (6, False, 2.001686707, 8.68989658e-4),
        (12, True, 0.463793621, 1.80244071e-3),
        (24, True, 0.167176454, 3.00217372e-3),
    ],
)
def test_constant_p_has_the_known_cap_on_sizes(
    coefficient: int, union: bool, k_star: float, variance: float
) -> None:
    k, q = sizes.harmonic(100), 0.25
    log = math.log(2 * 100 / 0.05) if union else math.log(2 / 0.05)
    # The noise term of the display is coefficient * p * log * k* / epsilon^2.
    widths = np.sqrt(coefficient * 0.5 * log / (2 * k))
    _, objective = best_threshold(q / k, widths, 1.0)
    assert objective == pytest.approx(variance, rel=1e-8)
    held_back = np.sum(np.minimum(k, np.sqrt(k * k_star)))
    assert objective == pytest.approx(q / held_back, rel=1e-8)


def test_constant_p_holds_back_users_above_the_cap() -> None:
    k, q = sizes.harmonic(100), 0.25
    widths = np.sqrt(6 * 0.5 * math.log(2 / 0.05) / (2 * k))
    threshold, _ = best_threshold(q / k, widths, 1.0)
    assert q * threshold**2 == pytest.approx(2.001686707, rel=1e-8)


# The noise.


def test_noise_has_the_scale_of_the_sensitivity() -> None:
    source = Quiet()
    estimate = estimate_ideal(FINAL_40, 0.4, 0.01, 0.5, rng=source, trace=True)
    assert source.scales == [estimate.trace.sensitivity / 0.5]
    assert estimate.value == estimate.trace.noiseless


# Special cases.


@pytest.mark.parametrize("weights", WEIGHTS)
@pytest.mark.parametrize("p", [0.0, 1.0])
def test_certain_outcomes_are_finite(p: float, weights: str) -> None:
    users = Users([50, 3, 1], [50, 3, 1] if p else [0, 0, 0])
    estimate = estimate_ideal(
        users, p, 0.0, 1.0, weights=weights, rng=Quiet(), trace=True
    )
    assert estimate.value == pytest.approx(p, abs=1e-15)
    assert math.isfinite(estimate.trace.objective)
    assert np.isfinite(estimate.trace.weights).all()


def test_rare_ones_have_the_variance_that_they_have() -> None:
    users = Users(k=[5, 1, 2], successes=[0, 0, 0])
    trace = estimate_ideal(users, 0.001, 0.0, 1.0, rng=Quiet(), trace=True).trace
    variances = user_variance(users.k, 0.001, 0.0)
    objective = release_variance(
        trace.weights, variances, trace.upper - trace.lower, 1.0
    )
    assert trace.objective == pytest.approx(objective, rel=1e-12)


def test_the_error_of_a_first_mean_may_exceed_one() -> None:
    # As it does for the four users of the mean cohort.
    alpha = initial_mean_error(4, 1.0, 0.05)
    assert alpha > 1
    trace = estimate_ideal(
        FINAL_40, 0.45, 0.02, 1.0, alpha=alpha, rng=Quiet(), trace=True
    ).trace
    np.testing.assert_array_equal(trace.upper - trace.lower, 1.0)


# The release.


def test_the_ledger_names_neighbours_and_total() -> None:
    ledger = estimate_ideal(FINAL_40, 0.4, 0.01, 0.3, rng=Quiet()).ledger
    assert (ledger.epsilon, ledger.delta) == (0.3, 0.0)
    assert [cohort.users for cohort in ledger.cohorts] == [32]
    assert "replace one user's samples" in str(ledger)


def test_the_trace_says_that_it_is_not_private() -> None:
    estimate = estimate_ideal(FINAL_40, 0.4, 0.01, 0.3, rng=Quiet(), trace=True)
    assert "NOT PRIVATE" in repr(estimate.trace)
    assert "NOT PRIVATE" in repr(estimate)


def test_there_is_no_trace_unless_asked_for() -> None:
    estimate = estimate_ideal(FINAL_40, 0.4, 0.01, 0.3, rng=Quiet())
    with pytest.raises(AttributeError, match="trace=True"):
        _ = estimate.trace


def test_the_estimate_is_reproducible_from_rng() -> None:
    values = [
        estimate_ideal(FINAL_40, 0.4, 0.01, 1.0, rng=np.random.default_rng(seed)).value
        for seed in (1, 1, 2)
    ]
    assert values[0] == values[1] != values[2]


def test_a_trace_changes_nothing() -> None:
    values = [
        estimate_ideal(
            FINAL_40, 0.4, 0.01, 1.0, rng=np.random.default_rng(1), trace=trace
        ).value
        for trace in (False, True)
    ]
    assert values[0] == values[1]


def test_users_are_left_alone() -> None:
    users = Users(FINAL_40.k, FINAL_40.successes, np.full(32, 2))
    before = [users.k.copy(), users.successes.copy(), users.counts.copy()]
    estimate_ideal(users, 0.4, 0.01, 1.0, rng=Quiet())
    for array, copy in zip(
        (users.k, users.successes, users.counts), before, strict=True
    ):
        np.testing.assert_array_equal(array, copy)


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"epsilon": 0}, "epsilon"),
        ({"epsilon": -1.0}, "epsilon"),
        ({"epsilon": math.inf}, "epsilon"),
        ({"epsilon": math.nan}, "epsilon"),
        ({"epsilon": "1"}, "epsilon"),
        ({"epsilon": True}, "epsilon"),
        ({"epsilon": None}, "epsilon"),
        ({"p": -0.1}, "p must"),
        ({"p": 1.01}, "p must"),
        ({"p": math.nan}, "p must"),
        ({"p": "half"}, "p must"),
        ({"var_p": 0.25}, "var_p"),
        ({"var_p": -0.01}, "var_p"),
        ({"var_p": math.nan}, "var_p"),
        ({"var_p": None}, "var_p"),
        ({"p": 0.0, "var_p": 0.01}, "var_p"),
        ({"alpha": -0.1}, "alpha"),
        ({"alpha": math.nan}, "alpha"),
        ({"alpha": "0"}, "alpha"),
        ({"weights": "best"}, "weights"),
        ({"weights": 3}, "weights"),
        ({"width": lambda k: -0.1 + 0 * k}, "width"),
        ({"width": lambda k: math.nan + 0 * k}, "width"),
        ({"width": lambda k: math.inf + 0 * k}, "width"),
        ({"width": lambda k: [0.1, 0.2, 0.3]}, "width"),
        ({"users": [(3, 1)]}, "users"),
        ({"users": None}, "users"),
        ({"rng": 7}, "rng"),
        ({"rng": np.random}, "rng"),
    ],
)
def test_bad_arguments_are_named(options: dict[str, Any], named: str) -> None:
    arguments: dict[str, Any] = {
        "users": FINAL_40,
        "p": 0.4,
        "var_p": 0.01,
        "epsilon": 1.0,
        "rng": Quiet(),
    }
    with pytest.raises((ValueError, TypeError), match=named):
        estimate_ideal(**(arguments | options))


def test_no_rng_asks_for_secure_noise_which_is_not_there() -> None:
    with pytest.raises(SecureNoiseUnavailable):
        estimate_ideal(FINAL_40, 0.4, 0.01, 1.0)


def test_an_alpha_beyond_one_is_as_good_as_one():
    users = Users(k=[4, 100], successes=[1, 50])
    values = [
        estimate_ideal(
            users,
            *(0.4, 0.01, 1.0),
            alpha=alpha,
            width=lambda k: np.full(k.shape, 1e308),
            rng=np.random.default_rng(0),
        ).value
        for alpha in (1.0, 1.7e308)
    ]
    assert values[0] == values[1]


# How sure it is.

MANY = Sizes(np.array([1e12]), np.array([500]))  # of samples: means are rates
CENTRES, REACHES = st.floats(0.05, 0.95), st.floats(0.0, 0.5)


def hidden(plan: ClippedMean, p: float, var_p: float, alpha: float = 0.0) -> float:
    """Return what the uncertainty says that clipping hides at most."""
    clipped = known_error(plan, p, var_p, alpha, 0.0).clipped
    return 0.0 if clipped is None else clipped.moved


@given(
    st.lists(st.floats(0.0, 1.0), min_size=2, max_size=4),
    st.lists(st.floats(0.1, 1.0), min_size=4, max_size=4),
    REACHES,
    st.floats(-1.0, 1.0),
    st.sampled_from([0.0, 0.1]),
)
def test_clipping_moves_no_mean_of_this_variance_by_more(
    rates: list[float], masses: list[float], reach: float, off: float, alpha: float
) -> None:
    x, law = np.array(rates), np.array(masses[: len(rates)]) / sum(masses[: len(rates)])
    mean = float(law @ x)
    variance = float(law @ (x - mean) ** 2)
    # The centre is off by at most alpha.
    centre = min(max(mean + off * alpha, 0.0), 1.0)
    plan = plan_ideal(MANY, centre, 0.0, 1.0, alpha=alpha, width=lambda k: reach)
    moved = abs(float(law @ np.clip(x, plan.lower[0], plan.upper[0])) - mean)
    assert moved <= hidden(plan, centre, variance, alpha) + 1e-6


def test_two_rates_can_be_hidden_as_far_as_that() -> None:
    p, reach, variance = 0.1, 0.2, 0.03
    plan = plan_ideal(MANY, p, variance, 1.0, width=lambda k: reach)
    far = math.hypot(reach, math.sqrt(variance))
    low, high = p + reach - far, p + reach + far
    share = (p - low) / (high - low)
    assert share * (1 - share) * (high - low) ** 2 == pytest.approx(variance)
    moved = share * (high - (p + reach))
    assert hidden(plan, p, variance) == pytest.approx(moved, rel=1e-6)


def test_nobody_is_beyond_an_end_of_0_1() -> None:
    for p, alpha, hides in ((0.3, 0.7, False), (0.3, 0.3, True), (0.7, 0.3, True)):
        plan = plan_ideal(MANY, p, 0.01, 1.0, alpha=alpha, width=lambda k: 0.0)
        assert plan.clips == hides
        assert (hidden(plan, p, 0.01) > 0) == hides


def test_what_is_hidden_of_several_sizes_adds_up_by_weight() -> None:
    sizes = Sizes(np.array([1.0, 1e12]), np.array([30, 10]))
    plan = plan_ideal(sizes, 0.4, 0.01, 1.0, width=lambda k: 0.2)
    v = np.array([0.24, 0.01])
    each = (np.sqrt(0.2**2 + v) - 0.2) / 2
    expected = float(np.sum(sizes.counts * plan.weights * each))
    assert hidden(plan, 0.4, 0.01) == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize("weights", WEIGHTS)
def test_the_standard_error_is_the_root_of_the_objective(weights: str) -> None:
    estimate = estimate_ideal(
        FINAL_40, 0.45, 0.02, 20.0, weights=weights, rng=Quiet(), trace=True
    )
    assert estimate.standard_error**2 == pytest.approx(estimate.trace.objective)
    assert estimate.uncertainty is not None
    assert estimate.uncertainty.noise == estimate.trace.noise_scale


def test_a_warning_if_p_was_not_what_it_was_taken_for() -> None:
    users = Users([100], [30], [10_000])
    for p, alpha, wrong in ((0.3, 0.0, False), (0.4, 0.0, True), (0.4, 0.1, False)):
        estimate = estimate_ideal(users, p, 0.0, 1.0, alpha=alpha, rng=Quiet())
        assert bool(estimate.warnings) == wrong
    (warning,) = estimate_ideal(users, 0.4, 0.0, 1.0, rng=Quiet()).warnings
    assert "differ by 0.1" in warning
