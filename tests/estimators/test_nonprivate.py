"""Estimators without privacy: Algorithm 1, read literally and corrected.

No test here is statistical except the two that say so: each compares a mean with
its expectation within 6.5 standard errors, a false alarm of about 1e-10.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hetlit import (
    Beta,
    Users,
    estimate_nonprivate,
    estimate_nonprivate_ideal,
    sample_users,
    sizes,
    user_variance,
)
from tests.chance import RNG
from tests.rows import tables

# Forty users of sizes ceil(40/i), and what they hold.
D40_K = sizes.harmonic(40)
D40_X = np.array([30, 15, 8, *map(int, "3234431113221112221001121101121101121")])
FINAL_40 = Users(D40_K[4:36], D40_X[4:36])


QUICK = settings(max_examples=50)


class FirstSamples(np.random.Generator):
    """Draws first samples as usual and keeps them, or returns those it was given.

    They are the last thing that Algorithm 1 draws.
    """

    def __init__(self, given: Any = None) -> None:
        super().__init__(np.random.PCG64(3))
        self.given = given
        self.total: int | None = None

    def binomial(self, n: Any, p: Any, size: Any = None) -> Any:
        drawn = super().binomial(n, p, size) if self.given is None else self.given
        self.total = int(np.sum(drawn))
        return np.asarray(drawn)


# Known variances.


def test_four_users_have_the_known_weights() -> None:
    users = Users(k=[8, 4, 2, 1], successes=[4, 1, 1, 0])
    trace = estimate_nonprivate_ideal(users, 0.4, 0.01, trace=True).trace
    expected = [0.488870279629, 0.280647753121, 0.151549786685, 0.078932180565]
    np.testing.assert_allclose(trace.weights, expected, atol=1e-12)
    assert trace.objective == pytest.approx(0.018943723335634, abs=1e-15)


def test_four_users_have_the_weighted_mean_as_their_estimate() -> None:
    users = Users(k=[8, 4, 2, 1], successes=[4, 1, 1, 0])
    estimate = estimate_nonprivate_ideal(users, 0.4, 0.01, trace=True)
    by_hand = math.fsum(estimate.trace.weights * users.means)
    assert estimate.value == pytest.approx(by_hand, rel=1e-14)
    assert estimate.trace.noiseless == estimate.value


def test_the_final_group_of_forty_users_has_the_known_estimate() -> None:
    estimate = estimate_nonprivate_ideal(FINAL_40, 0.45, 0.02, trace=True)
    assert estimate.value == pytest.approx(0.487725172571019, abs=1e-14)
    assert estimate.trace.objective == pytest.approx(0.003037322575010, abs=1e-14)
    assert estimate.trace.weights[0] == pytest.approx(0.062706014451820, abs=1e-14)
    assert estimate.trace.weights[-1] == pytest.approx(0.022708953831851, abs=1e-14)


@QUICK
@given(tables(10, 40), st.floats(0.1, 0.9), st.floats(0.0, 1.0), st.integers(0, 10**6))
def test_no_other_weights_that_add_up_to_one_have_a_smaller_variance(
    users: Users, p: float, share: float, seed: int
) -> None:
    var_p = share * p * (1 - p)
    trace = estimate_nonprivate_ideal(users, p, var_p, trace=True).trace
    variances = user_variance(users.k, p, var_p)
    other = trace.weights * np.random.default_rng(seed).uniform(0.5, 1.5, len(users.k))
    other /= np.sum(users.counts * other)
    variance = np.sum(users.counts * other**2 * variances)
    assert trace.objective <= variance * (1 + 1e-12)
    assert trace.objective == pytest.approx(
        np.sum(users.counts * trace.weights**2 * variances), rel=1e-12
    )


def test_the_variance_over_many_draws_is_the_objective() -> None:
    # Within 6.5 standard errors.
    rng = np.random.default_rng(31)
    k, meta = sizes.harmonic(40), Beta(0.3, 0.01)
    draws = [
        estimate_nonprivate_ideal(sample_users(meta, k, rng), 0.3, 0.01, trace=True)
        for _ in range(3000)
    ]
    squares = np.array([(draw.value - 0.3) ** 2 for draw in draws])
    error = squares.std() / math.sqrt(len(squares))
    assert abs(squares.mean() - draws[0].trace.objective) <= 6.5 * error


def test_rare_ones_have_the_variance_that_they_have() -> None:
    users = Users(k=[5, 1, 2], successes=[0, 0, 0])
    trace = estimate_nonprivate_ideal(users, 0.001, 0.0, trace=True).trace
    assert trace.objective == pytest.approx(0.001 * 0.999 / 8, rel=1e-12)


@pytest.mark.parametrize("p", [0.0, 1.0])
def test_certain_outcomes_give_finite_weights(p: float) -> None:
    users = Users(k=[5, 1, 2], successes=[5, 1, 2] if p else [0, 0, 0])
    estimate = estimate_nonprivate_ideal(users, p, 0.0, trace=True)
    assert estimate.value == pytest.approx(p, abs=1e-15)
    assert np.isfinite(estimate.trace.weights).all()


def test_the_largest_spread_gives_everyone_the_same_weight() -> None:
    users = Users(k=[100, 1, 7], successes=[50, 0, 7], counts=[1, 3, 1])
    trace = estimate_nonprivate_ideal(users, 0.5, 0.25, trace=True).trace
    np.testing.assert_allclose(trace.weights, 1 / 5, rtol=1e-14)


# The harmonic example of Section 4.1 and the one of Section 4.3.


@pytest.mark.parametrize(
    ("n", "samples", "variance", "rate", "noise", "uniform", "pooled"),
    [
        (10**3, 8053, 4.184092505515e-5, 0.289027, 0.289606, 0.089632, 5.635599704e-5),
        (
            10**4,
            103_643,
            3.018823665561e-6,
            0.278044,
            0.278100,
            0.088853,
            3.943177946e-6,
        ),
        (
            10**5,
            1_266_714,
            2.362086502307e-7,
            0.271945,
            0.271951,
            0.088775,
            2.998747871e-7,
        ),
        (
            10**6,
            14_969_985,
            1.939991386319e-8,
            0.268020,
            0.268020,
            0.088767,
            2.404023510e-8,
        ),
    ],
)
def test_harmonic_sizes_reach_their_rates(
    n: int,
    samples: int,
    variance: float,
    rate: float,
    noise: float,
    uniform: float,
    pooled: float,
) -> None:
    k = sizes.harmonic(n)
    trace = estimate_nonprivate_ideal(
        Users(k, np.zeros_like(k)), 0.5, 1 / n, trace=True
    ).trace
    variances = user_variance(k, 0.5, 1 / n)
    log_n = math.log(n)
    widest = np.max(trace.weights * np.sqrt(log_n / k))
    assert k.sum() == samples
    assert trace.objective == pytest.approx(variance, rel=1e-12)
    assert trace.objective * n * log_n == pytest.approx(rate, abs=1e-6)
    assert widest * math.sqrt(n * log_n) == pytest.approx(noise, abs=1e-6)
    assert variances.mean() == pytest.approx(uniform, abs=1e-6)
    assert np.sum((k / samples) ** 2 * variances) == pytest.approx(pooled, rel=1e-9)


@pytest.mark.parametrize("n", [10**3, 10**6])
def test_harmonic_sizes_fall_outside_the_theorem_that_they_illustrate(n: int) -> None:
    k = sizes.harmonic(n)
    assert k[0] / k[n // 2 - 1] == n / 2 > (n / 2 - 1) / 1


@pytest.mark.parametrize(("n", "expected"), [(10**4, 0.990197), (10**6, 0.999002)])
def test_a_few_heavy_users_carry_nearly_all_of_the_variance(
    n: int, expected: float
) -> None:
    k = sizes.two_level(n, heavy=math.isqrt(n), k_heavy=n)
    users = Users(k, np.zeros_like(k)).compressed()
    trace = estimate_nonprivate_ideal(users, 0.5, 0.0, trace=True).trace
    assert trace.objective * n**1.5 / 0.25 == pytest.approx(expected, abs=1e-6)


# Algorithm 1.


def algorithm_1(users: Users, ones: int, debias: bool) -> dict[str, Any]:
    """Return Algorithm 1 word by word, on one row per user, its slips corrected."""
    table = sorted(
        enumerate(zip(*(users.expanded().k, users.expanded().successes), strict=True)),
        key=lambda item: (-item[1][0], item[0]),
    )
    k = [int(size) for _, (size, _) in table]
    mean = [int(x) / int(size) for _, (size, x) in table]
    n = len(k)
    m = max(2, math.ceil(math.log(n)))  # rounded, and at least two
    n_b = n // 10
    p_init = ones / n_b  # normalised
    q = max(p_init * (1 - p_init), 1 / (4 * n_b))
    spread = sum(  # ordered pairs, twice over
        (mean[i] - mean[j]) ** 2 for i in range(m) for j in range(m)
    ) / (2 * m * (m - 1))
    if debias:
        inverse = sum(1 / k[i] for i in range(m)) / m
        spread = (spread - q * inverse) / (1 - inverse) if inverse < 1 else 0.0
    spread = min(max(spread, 0.0), q)
    final = range(m, n - n_b)  # users m+1 to n - n_B
    v = {i: 1 / (q / k[i] + (1 - 1 / k[i]) * spread) for i in final}
    total = sum(v.values())
    return {
        "value": sum(v[i] * mean[i] for i in final) / total,
        "spread": spread,
        "p_init": p_init,
        "variance": 1 / total,
        "weights": [v[i] / total for i in final],
    }


def as_list(users: Users) -> Users:
    """One row a user, in an order that algorithms may rely on."""
    each = users.expanded()
    return Users(each.k, each.successes)


@QUICK
@given(tables(10, 40), st.booleans())
def test_algorithm_1_is_its_literal_corrected_text(users: Users, debias: bool) -> None:
    users = as_list(users)
    source = FirstSamples()
    estimate = estimate_nonprivate(users, rng=source, debias=debias, trace=True)
    assert source.total is not None
    literal = algorithm_1(users, source.total, debias)
    trace = estimate.trace
    assert trace.initial_mean == pytest.approx(literal["p_init"], rel=1e-14)
    assert trace.initial_variance == pytest.approx(literal["spread"], rel=1e-9)
    assert trace.objective == pytest.approx(literal["variance"], rel=1e-9)
    assert estimate.value == pytest.approx(literal["value"], rel=1e-9, abs=1e-12)
    weights = np.sort(trace.weights)[::-1]  # by falling size, as the text has them
    np.testing.assert_allclose(weights, literal["weights"], rtol=1e-9)


def test_the_first_guesses_of_forty_users_are_the_known_ones() -> None:
    users = Users(D40_K, D40_X)
    estimate = estimate_nonprivate(users, rng=FirstSamples([1, 0, 1, 0]), trace=True)
    assert estimate.trace.initial_mean == 0.5
    assert estimate.trace.initial_variance == pytest.approx(
        0.045204081632653, abs=1e-14
    )
    final = estimate.trace.cohorts["final"]
    np.testing.assert_array_equal(final.k, D40_K[4:36])
    np.testing.assert_array_equal(final.successes, D40_X[4:36])


def test_the_variance_of_three_means_is_not_counted_twice() -> None:
    # Means .1, .4 and .7; n = 10 makes three users the variance cohort.
    users = Users(k=[10] * 3 + [1] * 7, successes=[1, 4, 7] + [0, 1] * 3 + [1])
    trace = estimate_nonprivate(users, rng=FirstSamples(), trace=True).trace
    assert trace.initial_variance == pytest.approx(0.09, rel=1e-14)


def test_the_first_mean_takes_one_sample_of_each_of_the_smallest_users() -> None:
    # Sizes of one leave no choice: 20 users, the last two hold a one and a zero.
    users = Users(k=[9] * 10 + [1] * 10, successes=[9] * 10 + [0] * 8 + [1, 0])
    trace = estimate_nonprivate(users, rng=FirstSamples(), trace=True).trace
    assert trace.initial_mean == 0.5


@QUICK
@given(tables(10, 40), st.integers(0, 10**6))
def test_cohorts_cover_everybody_once(users: Users, seed: int) -> None:
    rng = np.random.default_rng(seed)
    cohorts = estimate_nonprivate(users, rng=rng, trace=True).trace.cohorts
    parts = list(cohorts.values())
    together = Users(
        *(
            np.concatenate([getattr(part, name) for part in parts])
            for name in ("k", "successes", "counts")
        )
    ).compressed()
    everybody = users.compressed()
    np.testing.assert_array_equal(together.k, everybody.k)
    np.testing.assert_array_equal(together.successes, everybody.successes)
    np.testing.assert_array_equal(together.counts, everybody.counts)
    assert cohorts["variance"].n == math.ceil(math.log(users.n))
    assert cohorts["mean"].n == users.n // 10
    assert cohorts["variance"].k.min() >= cohorts["final"].k.max()
    assert cohorts["final"].k.min() >= cohorts["mean"].k.max()


def test_debiasing_removes_the_coin_tosses() -> None:
    users = Users(k=[20, 10, 5] + [1] * 7, successes=[2, 5, 4] + [1] * 7)
    plain, debiased = (
        estimate_nonprivate(users, rng=FirstSamples([0]), debias=debias, trace=True)
        for debias in (False, True)
    )
    q, inverse = 0.25, (1 / 20 + 1 / 10 + 1 / 5) / 3
    expected = (plain.trace.initial_variance - q * inverse) / (1 - inverse)
    assert 0 < expected < q
    assert debiased.trace.initial_variance == pytest.approx(expected, rel=1e-12)


def test_the_debiased_variance_is_right_on_average() -> None:
    # Within 6.5 standard errors; the clamps at 0 and q are out of reach.
    rng = np.random.default_rng(32)
    meta = Beta(0.5, 0.01)
    k = np.array([400] * 4 + [300] * 4 + [1] * 192)
    spreads = []
    for _ in range(1500):
        users = sample_users(meta, k, rng)
        source = FirstSamples([1] * 10 + [0] * 10)
        spreads.append(
            estimate_nonprivate(
                users, rng=source, debias=True, trace=True
            ).trace.initial_variance
        )
    error = np.std(spreads) / math.sqrt(len(spreads))
    assert abs(np.mean(spreads) - 0.01) <= 6.5 * error


def test_users_with_one_sample_each_are_averaged() -> None:
    users = Users(k=[1] * 40, successes=[0, 1] * 20)
    for debias in (False, True):
        estimate = estimate_nonprivate(
            users, rng=FirstSamples(), debias=debias, trace=True
        )
        np.testing.assert_allclose(estimate.trace.weights, 1 / 32, rtol=1e-14)
    assert estimate.value == pytest.approx(0.5, abs=0.05)


@pytest.mark.parametrize("ones", [0, 4])
def test_a_first_mean_of_zero_or_one_gives_finite_weights(ones: int) -> None:
    source = FirstSamples([1] * ones + [0] * (4 - ones))
    estimate = estimate_nonprivate(Users(D40_K, D40_X), rng=source, trace=True)
    # q is its floor 1/(4 n_B) = 1/16, which leaves the spread as it is.
    assert estimate.trace.initial_variance == pytest.approx(
        0.045204081632653, abs=1e-14
    )
    assert 0 <= estimate.value <= 1
    assert math.fsum(estimate.trace.weights) == pytest.approx(1.0)


@pytest.mark.slow
@QUICK
@given(tables(10, 40))
def test_rows_of_several_users_are_as_good_as_one_row_each(users: Users) -> None:
    expanded = users.expanded()
    ideal = [
        estimate_nonprivate_ideal(table, 0.3, 0.02, trace=True)
        for table in (users, expanded)
    ]
    assert ideal[0].value == pytest.approx(ideal[1].value, rel=1e-12, abs=1e-15)
    assert ideal[0].trace.objective == pytest.approx(
        ideal[1].trace.objective, rel=1e-12
    )


@QUICK
@given(tables(10, 40))
def test_algorithm_1_treats_rows_of_several_users_as_one_row_each(
    users: Users,
) -> None:
    # A list of the cohorts, one after the other, has the same cohorts.
    source = FirstSamples()
    rows = estimate_nonprivate(users, rng=source, trace=True)
    parts = [
        as_list(rows.trace.cohorts[name]) for name in ("variance", "final", "mean")
    ]
    users = Users(
        np.concatenate([part.k for part in parts]),
        np.concatenate([part.successes for part in parts]),
    )
    each = estimate_nonprivate(users, rng=FirstSamples([source.total]))
    assert rows.value == pytest.approx(each.value, rel=1e-12, abs=1e-15)


# The release.


def test_the_ledger_says_that_nothing_is_private() -> None:
    rng = np.random.default_rng(0)
    for estimate in (
        estimate_nonprivate_ideal(FINAL_40, 0.4, 0.01),
        estimate_nonprivate(FINAL_40, rng=rng),
    ):
        assert estimate.ledger.epsilon == math.inf
        assert "not private" in str(estimate.ledger)


def test_there_is_no_trace_unless_asked_for() -> None:
    estimate = estimate_nonprivate_ideal(FINAL_40, 0.4, 0.01)
    with pytest.raises(AttributeError, match="trace=True"):
        _ = estimate.trace


def test_algorithm_1_is_reproducible_from_rng() -> None:
    users = Users(D40_K[:36], D40_X[:36])
    values = [
        estimate_nonprivate(users, rng=np.random.default_rng(seed), trace=True)
        for seed in (1, 1)
    ]
    assert values[0].value == values[1].value


def test_users_are_left_alone() -> None:
    users = Users(D40_K, D40_X, np.ones(40, dtype=int))
    before = [users.k.copy(), users.successes.copy(), users.counts.copy()]
    estimate_nonprivate(users, rng=np.random.default_rng(0))
    estimate_nonprivate_ideal(users, 0.4, 0.01)
    for array, copy in zip(
        (users.k, users.successes, users.counts), before, strict=True
    ):
        np.testing.assert_array_equal(array, copy)


@pytest.mark.parametrize("n", [1, 2, 9])
def test_fewer_than_ten_users_are_refused(n: int) -> None:
    users = Users([3] * n, [1] * n)
    with pytest.raises(ValueError, match="users must be at least 10"):
        estimate_nonprivate(users, rng=np.random.default_rng(0))


def test_ten_users_are_enough() -> None:
    users = Users([3] * 10, [1] * 10)
    value = estimate_nonprivate(users, rng=np.random.default_rng(0)).value
    assert value == pytest.approx(1 / 3)


@pytest.mark.parametrize(
    ("p", "var_p", "named"),
    [
        (-0.1, 0.0, "p must"),
        (1.1, 0.0, "p must"),
        (math.nan, 0.0, "p must"),
        ("0.3", 0.0, "p must"),
        (0.3, 0.22, "var_p must"),
        (0.3, -0.01, "var_p must"),
        (0.3, math.nan, "var_p must"),
        (0.0, 0.01, "var_p must"),
    ],
)
def test_impossible_first_guesses_are_named(p: Any, var_p: Any, named: str) -> None:
    with pytest.raises((ValueError, TypeError), match=named):
        estimate_nonprivate_ideal(FINAL_40, p, var_p)


def test_users_must_be_a_table_of_users() -> None:
    table: Any = [(3, 1)]
    with pytest.raises(TypeError, match="users must be"):
        estimate_nonprivate_ideal(table, 0.3, 0.01)
    with pytest.raises(TypeError, match="users must be"):
        estimate_nonprivate(table, rng=np.random.default_rng(0))


def test_rng_must_be_a_generator() -> None:
    wrong: Any = 7
    with pytest.raises(TypeError, match="rng must be"):
        estimate_nonprivate(FINAL_40, rng=wrong)
    # It adds no noise, so there is no secure noise to ask for without a generator.
    missing: Any = None
    with pytest.raises(TypeError, match=r"rng must be a numpy\.random\.Generator"):
        estimate_nonprivate(FINAL_40, rng=missing)
    with pytest.raises(TypeError, match="required keyword-only argument: 'rng'"):
        estimate_nonprivate(FINAL_40)  # type: ignore[call-arg]


@pytest.mark.parametrize("p", [5e-324, 1e-303, 1e-250])
def test_a_mean_next_to_zero_is_taken_for_zero(p):
    users = Users(k=[4, 2**62], successes=[0, 0])
    assert estimate_nonprivate_ideal(users, p, 0.0).value == 0.0


# How sure they are.


def test_the_ideal_is_as_sure_as_its_variance() -> None:
    estimate = estimate_nonprivate_ideal(FINAL_40, 0.45, 0.02, trace=True)
    assert estimate.standard_error**2 == pytest.approx(estimate.trace.objective)
    half_width = estimate.interval(0.95)[1] - estimate.value
    assert half_width == pytest.approx(1.959964 * estimate.standard_error)


def test_algorithm_1_does_not_trust_its_guess_of_the_variance() -> None:
    # Ten users tell little about it: rates may be all 0 and 1.
    users = sample_users(Beta(0.5, 0.01), sizes.harmonic(2000), RNG)
    estimate = estimate_nonprivate(users, rng=RNG, trace=True)
    squares = float(np.sum(np.square(estimate.trace.weights)))
    assert estimate.standard_error**2 == pytest.approx(0.25 * squares, rel=1e-2)
