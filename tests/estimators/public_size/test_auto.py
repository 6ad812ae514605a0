"""The estimator to use for public sizes: what it spends, what it survives.

Privacy is checked exactly: every step over all neighbours of small tables, and whole
runs by forcing each answer and comparing likelihoods between neighbours.

Accuracy tests have fixed seeds; the noise of the last step enters by its variance,
and the luck of the draw is taken out by comparing with the ideal estimator on the
same users.  Allowances are six standard errors or more, and counts are allowed what
has a chance of 1e-8 or less.  For random seeds the seven statistical tests of this
file would raise a false alarm with a chance below 1e-7.
"""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st
from scipy import stats

from hetlit import (
    Beta,
    TwoPoint,
    Users,
    estimate_ideal,
    estimate_private_k,
    estimate_public_size,
    optimal_weights,
    sample_users,
    sizes,
    user_variance,
)
from hetlit.estimators.public_size import auto as module
from hetlit.estimators.public_size.auto import (
    adaptive_plan,
    cautious_mean,
    estimate_adaptive,
    make_plans,
)
from hetlit.estimators.spread import (
    best_reach,
    light_intervals,
    spread_histogram,
)
from hetlit.privacy.noise import choice_law
from hetlit.privacy.selection import log_grid, median_utilities
from hetlit.users.groups import Sizes, by_size_class
from tests.neighbours import (
    MANY,
    ONE,
    SOME,
    eighteen_users,
    neighbours,
    plan_by_hand,
)
from tests.transcripts import Transcript

QUICK = settings(max_examples=50)
# Enough budget for an adaptive plan on eighteen users.
EPSILON = 200.0


class Scripted:
    """Adds the given noises, then none; takes the given outcome; keeps the laws."""

    def __init__(self, *noises: float, outcome: int | None = None) -> None:
        self.chance = np.random.default_rng(0)
        self.noises = list(noises)
        self.outcome = outcome
        self.scales: list[float] = []
        self.laws: list[np.ndarray] = []

    def laplace(self, statistic: float, scale: float) -> float:
        self.scales.append(scale)
        return statistic + (self.noises.pop(0) if self.noises else 0.0)

    def laplaces(self, statistics: np.ndarray, scale: float) -> np.ndarray:
        return np.array([self.laplace(statistic, scale) for statistic in statistics])

    def choose(self, utilities: np.ndarray, epsilon: float, sensitivity: float) -> int:
        self.laws.append(choice_law(utilities, epsilon, sensitivity))
        if self.outcome is None:
            return int(np.argmax(self.laws[-1]))
        return self.outcome % len(utilities)


def private_estimate(users: Users, epsilon: float, **options: Any) -> Any:
    return estimate_private_k(users, epsilon, k_max=1000, **options)


# Whole runs.


def log_likelihood(users: Users, epsilon: float, answers: tuple[float, ...]) -> float:
    """Return the log-likelihood that a run gives these answers, in order."""
    transcript = Transcript(answers)
    estimate = estimate_adaptive(users, epsilon, rng=transcript)
    assert not transcript.left
    assert estimate.value == answers[-1]
    return transcript.log_likelihood


def test_no_neighbour_changes_the_likelihood_of_a_run_by_more_than_the_ledger() -> None:
    users = eighteen_users()
    ledger = estimate_adaptive(users, EPSILON, rng=Scripted()).ledger
    spent = {
        size: ledger.spent_on(cohort.name)[0]
        for size, cohort in zip((MANY, SOME, ONE), ledger.cohorts, strict=True)
    }
    largest = dict.fromkeys(spent, 0.0)
    # The first mean, the second moment, the typical spread, the final mean.
    for answers in itertools.product((-0.1, 0.3), (-0.05, 0.2), (0, -1), (-0.5, 1.5)):
        before = log_likelihood(users, EPSILON, answers)
        for size, other in neighbours(users, few=True):
            loss = abs(log_likelihood(other, EPSILON, answers) - before)
            largest[size] = max(largest[size], loss)
    for size, loss in largest.items():
        assert 0.3 * spent[size] < loss <= spent[size] * (1 + 1e-9)
    assert max(spent.values()) == pytest.approx(EPSILON, rel=1e-12)


@pytest.mark.parametrize("release", [-2.0, 0.4, 3.0])
def test_no_neighbour_changes_the_likelihood_of_a_cautious_run_by_more_than_epsilon(
    release: float,
) -> None:
    users, epsilon = eighteen_users(), 0.7
    before = log_likelihood(users, epsilon, (release,))
    losses = [
        abs(log_likelihood(other, epsilon, (release,)) - before)
        for _, other in neighbours(users)
    ]
    assert max(losses) <= epsilon * (1 + 1e-9)
    if release != 0.4:  # from far away, everything counts in full
        assert max(losses) == pytest.approx(epsilon, rel=1e-9)


# Step by step, with a plan made by hand.


def test_the_first_mean_moves_by_its_sensitivity_at_most_and_at_worst() -> None:
    users = eighteen_users()
    groups, plan = plan_by_hand(users)
    before = plan.first.noiseless(groups)
    moves = [
        abs(plan.first.noiseless(by_size_class(other)) - before)
        for _, other in neighbours(users)
    ]
    assert max(moves) == pytest.approx(plan.first.sensitivity, rel=1e-12)


@pytest.mark.parametrize("centre", [0.0, 0.3, 0.5, 1.0])
def test_the_second_moment_moves_by_its_sensitivity_at_most(centre: float) -> None:
    users = eighteen_users()
    _, plan = plan_by_hand(users)
    allowed = module._moment_sensitivity(plan, centre)

    def moment(table: Users) -> float:
        return module._second_moment(by_size_class(table), plan, centre, 0.2)

    moves = [abs(moment(other) - moment(users)) for _, other in neighbours(users)]
    assert max(moves) <= allowed * (1 + 1e-12)
    if centre in (0.0, 1.0):  # a mean at the centre can become the farthest one
        assert max(moves) == pytest.approx(allowed, rel=1e-12)


def test_the_second_moment_ignores_users_with_one_sample() -> None:
    users = eighteen_users()
    _, plan = plan_by_hand(users)
    moments = {
        module._second_moment(by_size_class(other), plan, 0.3, 0.2)
        for size, other in neighbours(users)
        if size == ONE
    }
    assert len(moments) == 1


@pytest.mark.parametrize("spread", [0.0, 0.01, 0.2])
@pytest.mark.parametrize("centre", [0.0, 0.3, 1.0])
def test_the_final_mean_moves_by_its_sensitivity_at_most_and_at_worst(
    centre: float, spread: float
) -> None:
    users = eighteen_users()
    groups, plan = plan_by_hand(users)
    final = module._final_mean(groups.sizes, plan, centre, 0.2, spread)
    moves = []
    for user, k in enumerate(users.k):
        # No ones and all ones are as far apart as one user's samples can be.
        ends = []
        for value in (0, k):
            successes = users.successes.copy()
            successes[user] = value
            ends.append(final.noiseless(by_size_class(Users(users.k, successes))))
        moves.append(abs(ends[1] - ends[0]))
    assert max(moves) == pytest.approx(final.sensitivity, rel=1e-12)


@pytest.mark.parametrize("centre", [0.0, 0.3, 1.0])
def test_no_neighbour_moves_the_final_mean_by_more_than_its_sensitivity(
    centre: float,
) -> None:
    users = eighteen_users()
    groups, plan = plan_by_hand(users)
    final = module._final_mean(groups.sizes, plan, centre, 0.2, 0.01)
    before = final.noiseless(groups)
    moves = [
        abs(final.noiseless(by_size_class(other)) - before)
        for _, other in neighbours(users)
    ]
    assert max(moves) <= final.sensitivity * (1 + 1e-12)


def test_every_noise_has_the_scale_of_its_sensitivity_over_its_share() -> None:
    source = Scripted()
    trace = estimate_adaptive(eighteen_users(), EPSILON, rng=source, trace=True).trace
    plan = trace.plan
    first, moment, final = source.scales
    assert first == plan.first.sensitivity / plan.mean_epsilon
    assert final == trace.sensitivity / plan.final_epsilon == trace.noise_scale
    farthest = max(trace.initial_mean, 1 - trace.initial_mean)
    assert moment == pytest.approx(
        plan.moment_weights.max() * farthest**2 / plan.moment_epsilon, rel=1e-14
    )


def test_the_typical_spread_is_drawn_with_its_share() -> None:
    users = eighteen_users()
    source = Scripted()
    trace = estimate_adaptive(users, EPSILON, rng=source, trace=True).trace
    plan, centre = trace.plan, trace.initial_mean
    inner = centre + min(max(0.5 - centre, -plan.first_error), plan.first_error)
    q = inner * (1 - inner)
    grid = log_grid(plan.resolution * q, q, 2.0)
    utilities = median_utilities(
        spread_histogram(users, plan.spread_from, centre, q, grid)
    )
    masses = np.exp(plan.spread_epsilon * (utilities - utilities.max()) / 2)
    np.testing.assert_allclose(source.laws[0], masses / masses.sum(), rtol=1e-12)


# The plan.


@st.composite
def size_tables(draw: st.DrawFn) -> Users:
    row = st.tuples(
        st.one_of(st.integers(1, 4), st.integers(1, 5000)), st.integers(1, 10**6)
    )
    rows = draw(st.lists(row, min_size=1, max_size=12))
    k, counts = zip(*rows, strict=True)
    return Users(k, [0] * len(k), counts)


def same(one: Any, other: Any) -> bool:
    """Are two plans equal, array by array?"""
    for field in dataclasses.fields(one):
        values = getattr(one, field.name), getattr(other, field.name)
        if dataclasses.is_dataclass(values[0]):
            if not same(*values):
                return False
        elif not np.array_equal(*values):
            return False
    return True


def test_the_plan_depends_on_sizes_only() -> None:
    rng = np.random.default_rng(51)
    k = sizes.harmonic(5000)
    plans = [
        estimate_adaptive(Users(k, ones), 2.0, rng=rng, trace=True).trace.plan
        for ones in (0 * k, k, rng.binomial(k, 0.3))
    ]
    assert same(plans[0], plans[1])
    assert same(plans[0], plans[2])


@example(users=Users(sizes.harmonic(10**4), sizes.harmonic(10**4)), epsilon=1.0)
@example(users=Users([1000, 2, 1], [0] * 3, [10**5] * 3), epsilon=0.1)
@given(users=size_tables(), epsilon=st.floats(1e-3, 1e3))
def test_shares_add_up_to_epsilon(users: Users, epsilon: float) -> None:
    held = by_size_class(users).sizes
    plan = adaptive_plan(held, epsilon, cautious_mean(held, epsilon))
    assume(plan is not None)  # about half of them
    assert plan is not None
    shares = [
        plan.mean_epsilon,
        plan.moment_epsilon,
        plan.spread_epsilon,
        plan.final_epsilon,
    ]
    assert min(shares) > 0
    assert math.fsum(shares) == pytest.approx(epsilon, rel=1e-14)
    assert plan.final_epsilon >= 0.5 * epsilon


@QUICK
@given(users=size_tables(), epsilon=st.floats(1e-3, 1e3))
def test_no_cohort_spends_more_than_epsilon(users: Users, epsilon: float) -> None:
    estimate = estimate_adaptive(users, epsilon, rng=Scripted(), trace=True)
    ledger = estimate.ledger
    spent = [ledger.spent_on(cohort.name)[0] for cohort in ledger.cohorts]
    assert max(spent) == pytest.approx(epsilon, rel=1e-12)
    assert ledger.delta == 0
    assert sum(cohort.users for cohort in ledger.cohorts) == users.n


@given(users=size_tables(), share=st.floats(0.01, 1.0))
def test_little_data_and_budget_make_for_a_cautious_plan(
    users: Users, share: float
) -> None:
    epsilon = 500.0 * share / users.n
    held = by_size_class(users).sizes
    assert adaptive_plan(held, epsilon, cautious_mean(held, epsilon)) is None


@pytest.mark.parametrize("name", ["harmonic", "zipf"])
def test_much_data_and_budget_make_for_an_adaptive_plan(name: str) -> None:
    k = profile(name)
    trace = estimate_adaptive(Users(k, k // 3), 1.0, rng=Scripted(), trace=True).trace
    assert trace.adaptive


@pytest.mark.parametrize("epsilon", [0.01, 1.0])
def test_plans_made_in_advance_change_nothing(epsilon: float) -> None:
    k = profile("zipf")
    plans = make_plans(by_size_class(Users(k, k)).sizes, epsilon)
    users = Users(k, k // 3)
    with_plans, without = (
        estimate_adaptive(
            users, epsilon, plans=given, rng=np.random.default_rng(8), trace=True
        )
        for given in (plans, None)
    )
    assert with_plans.value == without.value
    assert with_plans.ledger == without.ledger
    assert with_plans.trace.adaptive == (epsilon == 1.0)


@pytest.mark.parametrize(
    ("k", "counts", "epsilon"), [(5, 10, 2.0), (5, 11, 1.0), (6, 10, 1.0)]
)
def test_plans_for_other_sizes_or_another_budget_are_refused(
    k: int, counts: int, epsilon: float
) -> None:
    plans = make_plans(by_size_class(Users([5], [1], [10])).sizes, 1.0)
    users = Users([k], [1], [counts])
    with pytest.raises(ValueError, match="plans must be made for"):
        estimate_adaptive(users, epsilon, plans=plans, rng=Scripted())


@pytest.mark.parametrize("epsilon", [0.01, 1.0, 100.0])
@pytest.mark.parametrize(
    ("p", "var_p"), [(0.3, 0.0), (0.3, 0.01), (0.3, 0.21), (0.5, 0.25), (0.01, 1e-6)]
)
def test_the_expected_variance_is_that_of_the_weights_and_the_noise(
    p: float, var_p: float, epsilon: float
) -> None:
    k = profile("zipf")
    users = Users(k, k // 3)
    groups = by_size_class(users)
    held = groups.sizes
    plans = make_plans(held, epsilon)
    plan, q = plans.adaptive, p * (1 - p)
    assert (plan is None) == (epsilon == 0.01)
    if plan is None:
        inside = estimate_adaptive(users, epsilon, rng=Scripted(), trace=True).trace
        weights, noise = inside.weights, 2 * inside.noise_scale**2
    else:
        # The spread that is believed cannot be finer than the resolution.
        believed = min(var_p + plan.resolution * q, q)
        variances = user_variance(held.k, p, believed)
        lower, upper = light_intervals(
            *(variances, p, q, believed, plan.first_error),
            reach=best_reach(N, plan.final_epsilon),
        )
        best, _ = optimal_weights(
            variances, upper - lower, plan.final_epsilon, counts=held.counts
        )
        weights = best[groups.all_positions]
        noise = 2 * (np.max(best * (upper - lower)) / plan.final_epsilon) ** 2
    # User by user, where sizes above 255 count as slightly smaller ones.
    sampling = user_variance(held.k[groups.all_positions], p, var_p)
    exact = float(np.sum(weights**2 * sampling) + noise)
    assert module.expected_variance(plans, p, var_p) == pytest.approx(exact, rel=1e-9)


@given(users=size_tables(), epsilon=st.floats(0.01, 100.0))
def test_the_second_moment_is_a_weighted_mean_of_guesses(
    users: Users, epsilon: float
) -> None:
    held = by_size_class(users).sizes
    weights = module._moment_weights(held, epsilon)
    assert (weights[held.k == 1] == 0).all()
    total = np.sum(held.counts * weights * (1 - 1 / held.k))
    assert total == pytest.approx(float((held.k > 1).any()), rel=1e-12)


def test_the_second_moment_is_exactly_the_variance_of_the_rates() -> None:
    # Rates 1/4 and 3/4, two samples each: 0, 1, 2 ones in proportion 5 : 6 : 5.
    users = Users([2, 2, 2], [0, 1, 2], [5, 6, 5])
    groups, plan = plan_by_hand(users)
    weights = module._moment_weights(groups.sizes, 1.0)
    plan = dataclasses.replace(plan, moment_weights=weights)
    moment = module._second_moment(groups, plan, 0.5, 0.25)
    assert moment == pytest.approx(1 / 16, rel=1e-12)


# Heavy tails and accuracy, at n = 10^4 and epsilon = 1.


LIGHT, HEAVY = Beta(0.3, 0.0004), TwoPoint(0.1, 0.9, 0.05)
N = 10**4


@cache
def profile(name: str) -> Any:
    if name == "harmonic":
        return sizes.harmonic(N)
    return sizes.zipf(N, 1.5, 2000, np.random.default_rng(52))


@cache
def runs(meta: Any, name: str, number: int = 100) -> dict[str, Any]:
    """Return what happened in runs on fresh users of the same sizes.

    `error` is the squared error, `ideal` that of the ideal estimator on the same
    users, whose expectation is known: `objective`.
    """
    rng = np.random.default_rng(53)
    k = profile(name)
    rows = []
    for _ in range(number):
        users = sample_users(meta, k, rng)
        trace = estimate_public_size(users, 1.0, rng=rng, trace=True).trace
        ideal = estimate_ideal(
            users, meta.mean, meta.variance, 1.0, weights="optimal", rng=rng, trace=True
        ).trace
        rows.append(
            (
                trace.heavy_tails,
                (trace.noiseless - meta.mean) ** 2 + 2 * trace.noise_scale**2,
                (ideal.noiseless - meta.mean) ** 2 + 2 * ideal.noise_scale**2,
            )
        )
    heavy, error, other = np.array(rows, dtype=float).T
    return {
        "heavy": heavy == 1,
        "error": error,
        "ideal": other,
        "objective": ideal.objective,
        "plain": np.mean(user_variance(k, meta.mean, meta.variance)) / N + 2 / N**2,
    }


def mean_squared_error(run: dict[str, Any]) -> tuple[float, float]:
    """Return the mean squared error and its standard error.

    The ideal estimator's error on the same users is taken off and its expectation
    put back, which leaves the mean as it is and most of the luck out.
    """
    differences = run["error"] - run["ideal"]
    error = np.std(differences) / math.sqrt(len(differences))
    return run["objective"] + float(np.mean(differences)), float(error)


@pytest.mark.parametrize("name", ["harmonic", "zipf"])
def test_a_small_group_far_away_is_seen(name: str) -> None:
    # Missed about once in a thousand runs: more than 5 of 100 have a chance of 1e-9.
    assert np.sum(runs(HEAVY, name)["heavy"]) >= 95


@pytest.mark.parametrize("name", ["harmonic", "zipf"])
def test_light_tails_are_not_taken_for_heavy_ones(name: str) -> None:
    # The rate is 2 to 3%: more than 20 of 100 have a chance of 1e-11.
    assert np.sum(runs(LIGHT, name)["heavy"]) <= 20


@pytest.mark.slow
def test_light_tails_are_rewarded() -> None:
    run = runs(LIGHT, "zipf", 200)
    error, deviation = mean_squared_error(run)
    assert 6 * deviation < 0.25 * run["objective"]
    assert error <= 1.3 * run["objective"]
    assert error <= 0.3 * run["plain"]


@pytest.mark.parametrize("name", ["harmonic", "zipf"])
def test_heavy_tails_are_survived(name: str) -> None:
    run = runs(HEAVY, name)
    error, deviation = mean_squared_error(run)
    assert 6 * deviation < 0.5 * run["plain"]
    assert error <= 2 * run["plain"]


def test_heavy_tails_switch_clipping_off() -> None:
    rng = np.random.default_rng(54)
    users = sample_users(HEAVY, profile("harmonic"), rng)
    # Without noise, and with no typical spread to speak of.
    trace = estimate_adaptive(users, 1.0, rng=Scripted(outcome=0), trace=True).trace
    assert trace.heavy_tails
    np.testing.assert_array_equal(trace.lower, 0.0)
    np.testing.assert_array_equal(trace.upper, 1.0)
    assert trace.initial_variance >= trace.second_moment


def test_light_tails_are_clipped_around_the_first_mean() -> None:
    rng = np.random.default_rng(55)
    users = sample_users(LIGHT, profile("harmonic"), rng)
    trace = estimate_adaptive(users, 1.0, rng=Scripted(), trace=True).trace
    assert not trace.heavy_tails
    assert trace.initial_variance == trace.typical_spread
    longest = np.argmax(users.k)
    assert 0 < trace.lower[longest] < trace.initial_mean < trace.upper[longest] < 1


# Unbiasedness, scale and edges.


def test_the_cautious_plan_is_unbiased() -> None:
    # A weighted mean of the means themselves, with weights that add up to one.
    users = eighteen_users()
    trace = estimate_adaptive(users, 0.5, rng=Scripted(), trace=True).trace
    assert not trace.adaptive
    assert math.fsum(trace.weights) == pytest.approx(1.0, rel=1e-14)
    assert trace.noiseless == pytest.approx(
        math.fsum(trace.weights * users.means), rel=1e-14
    )


@pytest.mark.parametrize("n", [10**4, 10**5])
def test_first_guesses_do_not_pay_where_all_hold_equally_much(n: int) -> None:
    # Weights are equal whatever the spread, and noise is small beside sampling error.
    equal = Sizes(np.array([10.0]), np.array([n]))
    assert make_plans(equal, 1.0).adaptive is None


@QUICK
@given(users=size_tables(), epsilon=st.floats(1e-3, 1e3))
def test_weights_add_up_to_one_and_the_noiseless_value_stays_inside(
    users: Users, epsilon: float
) -> None:
    trace = estimate_adaptive(users, epsilon, rng=Scripted(), trace=True).trace
    assert np.sum(users.counts * trace.weights) == pytest.approx(1.0, rel=1e-9)
    assert -1e-12 <= trace.noiseless <= 1 + 1e-12


@pytest.mark.parametrize("first", [-1e3, 0.0, 1e3])
@pytest.mark.parametrize("moment", [-1e3, 0.0, 1e3])
@pytest.mark.parametrize("outcome", [0, -1])
def test_any_noise_gives_a_finite_result(
    first: float, moment: float, outcome: int
) -> None:
    source = Scripted(first, moment, outcome=outcome)
    estimate = estimate_adaptive(eighteen_users(), EPSILON, rng=source, trace=True)
    trace = estimate.trace
    assert 0 <= trace.initial_mean <= 1
    assert 0 <= trace.initial_variance <= 0.25
    assert 0 <= estimate.value <= 1
    assert np.isfinite(trace.weights).all()
    assert math.isfinite(trace.noise_scale)


def test_a_billion_users_in_a_few_rows() -> None:
    k = [1, 1, 10, 10, 1000]
    users = Users(
        k, [0, 1, 2, 4, 300], [14 * 10**7, 6 * 10**7, 10**8, 10**8, 6 * 10**8]
    )
    assert users.n == 10**9
    estimate = estimate_adaptive(users, 1.0, rng=np.random.default_rng(0), trace=True)
    assert estimate.trace.adaptive
    assert estimate.value == pytest.approx(0.3, abs=1e-3)


@pytest.mark.parametrize("ones", [0, 3, 7])
def test_one_user_is_enough(ones: int) -> None:
    source = Scripted()
    estimate = estimate_adaptive(Users([7], [ones]), 0.5, rng=source)
    assert estimate.value == ones / 7
    assert source.scales == [2.0]


@pytest.mark.parametrize("n", [5, 10**4])
def test_one_sample_each_is_the_plain_mean(n: int) -> None:
    users = Users([1] * n, [1] + [0] * (n - 1))
    source = Scripted()
    estimate = estimate_adaptive(users, 1.0, rng=source, trace=True)
    assert not estimate.trace.adaptive
    assert estimate.value == pytest.approx(1 / n, rel=1e-9)
    assert source.scales == pytest.approx([1 / n], rel=1e-9)


@pytest.mark.parametrize("ones", [0, 1])
def test_certain_outcomes_are_finite(ones: int) -> None:
    k = sizes.harmonic(10**4)
    estimate = estimate_adaptive(
        Users(k, ones * k), 1.0, rng=np.random.default_rng(0), trace=True
    )
    assert estimate.trace.adaptive
    assert estimate.value == pytest.approx(ones, abs=0.01)


def test_sizes_up_to_the_largest_integers_work() -> None:
    k = [1, 2**31, 2**53 + 1, 2**62]
    users = Users(k, [0, 2**30, 2**52, 2**61], [1000] * 4)
    estimate = estimate_adaptive(users, 1.0, rng=np.random.default_rng(0), trace=True)
    assert math.isfinite(estimate.value)
    assert np.sum(users.counts * estimate.trace.weights) == pytest.approx(1.0)


@pytest.mark.parametrize("epsilon", [0.01, 2.0])
def test_row_order_and_row_splitting_do_not_matter(epsilon: float) -> None:
    rng = np.random.default_rng(56)
    k = sizes.zipf(3000, 1.3, 500, rng)
    users = sample_users(LIGHT, k, rng).compressed()
    order = rng.permutation(len(users.k))
    shuffled = Users(users.k[order], users.successes[order], users.counts[order])
    values = [
        estimate_adaptive(table, epsilon, rng=np.random.default_rng(3)).value
        for table in (users, shuffled, users.expanded())
    ]
    assert values[1] == pytest.approx(values[0], rel=1e-11)
    assert values[2] == pytest.approx(values[0], rel=1e-11)


def test_the_ledger_names_who_takes_part_in_what() -> None:
    ledger = estimate_adaptive(eighteen_users(), EPSILON, rng=Scripted()).ledger
    assert [cohort.users for cohort in ledger.cohorts] == [6, 6, 6]
    names = [cohort.name for cohort in ledger.cohorts]
    taking_part = {step.name: step.cohorts for step in ledger.steps}
    assert taking_part == {
        "first mean": tuple(names),
        "second moment": tuple(names[:2]),
        "typical spread": (names[0],),
        "final mean": tuple(names),
    }


# Very many users.


@pytest.mark.parametrize("estimate", [estimate_public_size, private_estimate])
@pytest.mark.parametrize("n", [10**6, 10**9])
def test_clipping_does_not_bias_the_mean_of_very_many_users(
    estimate: Callable[..., Any], n: int
) -> None:
    # As many users with each number of ones as the law expects, so that what is off
    # in the noiseless mean is bias: it must be small beside the sampling error.
    tables = []
    for k in (1, 1000):
        counts = n / 2 * stats.betabinom(k, 30, 70).pmf(np.arange(k + 1))
        rows = np.flatnonzero(np.rint(counts))
        tables.append((np.full(len(rows), k), rows, np.rint(counts[rows])))
    users = Users(*(np.concatenate(column) for column in zip(*tables, strict=True)))
    precision = n / 2 / user_variance(np.array([1, 1000]), 0.3, 0.21 / 101)
    for seed in range(5):
        trace = estimate(users, 1.0, rng=np.random.default_rng(seed), trace=True).trace
        assert (trace.noiseless - 0.3) ** 2 < 0.1 / precision.sum()
