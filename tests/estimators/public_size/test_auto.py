"""The estimator to use for public sizes: what it spends, what it survives.

Privacy is checked exactly: every step over all neighbours of small tables, and whole
runs by forcing each answer and comparing likelihoods between neighbours.

Accuracy tests have fixed seeds; the noise of the last step enters by its variance,
and the luck of the draw is taken out by comparing with the ideal estimator on the
same users.  Allowances are six standard errors or more, and counts are allowed what
has a chance of 1e-8 or less.  For random seeds the statistical tests of this file,
fifteen with their parameters, would raise a false alarm with a chance below 2e-7.
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
from hetlit.estimators import tails
from hetlit.estimators.anchor import anchor_error, anchor_share, settle
from hetlit.estimators.public_size import auto as module
from hetlit.estimators.public_size.auto import (
    adaptive_plan,
    cautious_mean,
    estimate_adaptive,
    make_plans,
)
from hetlit.estimators.spread import (
    CAUTIOUS_SPREAD,
    JUDGED_SPREADS,
    SPREAD_EVIDENCE,
    SPREAD_SHARE,
    WORTHWHILE,
    best_reach,
    clamped_guess,
    light_intervals,
    spread_histogram,
)
from hetlit.privacy.noise import choice_law
from hetlit.privacy.selection import log_grid, median_utilities
from hetlit.theory.variance import plain_variance, variance_of_mean
from hetlit.users.groups import Sizes, by_size_class
from tests.neighbours import (
    MANY,
    ONE,
    eighteen_users,
    neighbours,
    plan_by_hand,
)
from tests.replay import Told, worst_losses
from tests.transcripts import Transcript

QUICK = settings(max_examples=50)
# Enough budget for an adaptive plan on eighteen users.
EPSILON = 200.0
CAUTIOUS = 2.0  # and for a plan without first guesses


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
    estimate_adaptive(users, epsilon, rng=transcript)
    assert not transcript.left
    return transcript.log_likelihood


# Answers of the anchor, the typical spread, the tail test and the final mean by path.
PATHS: dict[str, list[tuple[float, ...]]] = {
    "unclipped": list(itertools.product((-0.1, 0.3), (-1,), (-0.5, 1.5))),
    "clipped": list(itertools.product((-0.1, 0.3), (0,), (-30.0,), (-0.5, 1.5))),
    "alarm": list(itertools.product((-0.1, 0.3), (0,), (1e3,), (-0.5, 1.5))),
}


@pytest.mark.parametrize("path", PATHS)
def test_no_neighbour_changes_the_likelihood_of_a_run_by_more_than_the_ledger(
    path: str,
) -> None:
    users = eighteen_users()
    for answers in PATHS[path]:
        estimate = estimate_adaptive(users, EPSILON, rng=Told(answers), trace=True)
        assert estimate.trace.path == path
        ledger = estimate.ledger
        spent = {
            size: ledger.spent_on(cohort.name)[0]
            for size, cohort in ((MANY, ledger.cohorts[0]), (ONE, ledger.cohorts[-1]))
        }
        assert max(spent.values()) == pytest.approx(EPSILON, rel=1e-12)
        largest = dict.fromkeys(spent, 0.0)
        before = log_likelihood(users, EPSILON, answers)
        for size, other in neighbours(users, few=True):
            loss = abs(log_likelihood(other, EPSILON, answers) - before)
            cohort = MANY if size == MANY else ONE
            largest[cohort] = max(largest[cohort], loss)
        for cohort, loss in largest.items():
            assert loss <= spent[cohort] * (1 + 1e-9)
        assert largest[MANY] > 0.3 * EPSILON


@pytest.mark.parametrize("release", [-2.0, 0.4, 3.0])
def test_no_neighbour_changes_the_likelihood_of_a_cautious_run_by_more_than_epsilon(
    release: float,
) -> None:
    users, epsilon = eighteen_users(), CAUTIOUS
    answers = (release, release)
    before = log_likelihood(users, epsilon, answers)
    losses = [
        abs(log_likelihood(other, epsilon, answers) - before)
        for _, other in neighbours(users)
    ]
    assert max(losses) <= epsilon * (1 + 1e-9)
    if release != 0.4:  # from far away, both means count in full
        assert max(losses) > 0.9 * epsilon


# Step by step


def run(users: Users, source: Any) -> Any:
    return estimate_adaptive(users, EPSILON, rng=source, trace=True)


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("ends", [False, True])
def test_every_step_moves_by_its_sensitivity_at_most_and_at_worst(
    path: str, ends: bool
) -> None:
    users = eighteen_users()
    if ends:  # all samples 0, so that one user can move from there to all ones
        users = Users(users.k, 0 * users.k)
    others = [other for _, other in neighbours(users, few=True)]
    for answers in PATHS[path]:
        estimate, worst = worst_losses(run, users, others, answers)
        assert estimate.trace.path == path
        assert max(worst.values()) <= 1 + 1e-9
        assert worst["anchor"] == pytest.approx(1.0, rel=1e-9)
        if ends:
            assert worst["final mean"] == pytest.approx(1.0, rel=1e-9)
        if path != "unclipped" and answers[0] == -0.1 and ends:
            assert worst["tail test"] == pytest.approx(1.0, rel=1e-9)


def test_a_cautious_run_moves_by_its_sensitivities_at_most_and_at_worst() -> None:
    users = eighteen_users()
    others = [other for _, other in neighbours(users)]

    def cautious(table: Users, source: Any) -> Any:
        return estimate_adaptive(table, CAUTIOUS, rng=source, trace=True)

    estimate, worst = worst_losses(cautious, users, others, (0.3, 0.4))
    assert estimate.trace.path == "cautious"
    assert worst == pytest.approx({"anchor": 1.0, "final mean": 1.0}, rel=1e-9)


@pytest.mark.parametrize("path", PATHS)
def test_every_noise_has_the_scale_of_its_sensitivity_over_its_share(path: str) -> None:
    answers = PATHS[path][-1]
    source = Told(answers)
    trace = run(eighteen_users(), source).trace
    plan = trace.plan
    scales = [asked.noise[0] for asked in source.asked if asked.kind == "laplace"]
    assert scales[0] == 1 / 18 / plan.anchor_epsilon
    widths = trace.upper - trace.lower
    assert trace.sensitivity == pytest.approx(np.max(trace.weights * widths), rel=1e-12)
    assert scales[-1] == trace.noise_scale
    left = EPSILON - plan.anchor_epsilon - plan.spread_epsilon
    assert plan.left == left
    if path == "unclipped":
        assert len(scales) == 2
        assert scales[-1] == pytest.approx(trace.sensitivity / left, rel=1e-12)
        return
    test = EPSILON / (scales[1] * EPSILON)  # sensitivity 1
    assert min(abs(test - share * EPSILON) for share in tails.SHARES) < 1e-9
    assert scales[-1] == pytest.approx(trace.sensitivity / (left - test), rel=1e-12)


def test_shares_are_those_of_the_plan() -> None:
    users = eighteen_users()
    plan = run(users, Told(PATHS["unclipped"][0])).trace.plan
    held = by_size_class(users).sizes
    share = anchor_share(held.k, held.counts, 18, EPSILON)
    assert plan.anchor_epsilon == pytest.approx(share * EPSILON, rel=1e-12)
    assert plan.spread_epsilon == pytest.approx(SPREAD_SHARE * EPSILON, rel=1e-12)


def test_the_typical_spread_is_drawn_with_its_share() -> None:
    users = eighteen_users()
    source = Scripted()
    trace = estimate_adaptive(users, EPSILON, rng=source, trace=True).trace
    plan, centre = trace.plan, trace.initial_mean
    held = plan.sizes
    error = anchor_error(held.k, held.counts, 18, plan.anchor_epsilon)
    inner = centre + min(max(0.5 - centre, -error), error)
    q = inner * (1 - inner)
    grid = log_grid(plan.resolution * q, q, 2.0)
    utilities = median_utilities(
        spread_histogram(users, plan.spread_from, centre, q, grid)
    )
    masses = np.exp(plan.spread_epsilon * (utilities - utilities.max()) / 2)
    np.testing.assert_allclose(source.laws[0], masses / masses.sum(), rtol=1e-12)


def test_nobody_is_clipped_after_an_alarm_nor_where_nobody_asked() -> None:
    users = eighteen_users()
    for path in ("alarm", "unclipped"):
        trace = run(users, Told(PATHS[path][0])).trace
        assert (trace.lower == 0.0).all()
        assert (trace.upper == 1.0).all()
    trace = run(users, Told(PATHS["clipped"][-1])).trace
    assert trace.upper.min() < 1.0
    assert (trace.upper > trace.lower).all()


@pytest.mark.parametrize("side", [-1e-6, 1e-6])
def test_the_alarm_goes_off_beyond_the_limit(side: float) -> None:
    users = eighteen_users()
    final = run(users, Told(PATHS["clipped"][0])).trace.final
    assert math.isfinite(final.limit)
    assert final.mean.clips
    answers = [*PATHS["clipped"][0]]
    answers[2] = final.limit + side
    assert run(users, Told(answers)).trace.path == ("alarm" if side > 0 else "clipped")


def test_the_ledger_says_what_happened_where_something_did() -> None:
    users = eighteen_users()
    notes = {
        path: run(users, Told(answers[0])).ledger.notes
        for path, answers in PATHS.items()
    }
    assert notes["clipped"] == ()
    assert "noticed a minority" in notes["alarm"][0]
    assert "nobody" in notes["alarm"][0]
    assert "nobody" in notes["unclipped"][0]
    (note,) = estimate_adaptive(users, CAUTIOUS, rng=Scripted()).ledger.notes
    assert "first guesses would not pay" in note
    (note,) = estimate_adaptive(Users([1], [0], [9]), 0.7, rng=Scripted()).ledger.notes
    assert "weights would gain little" in note
    assert len({*notes.values(), note}) == 4


@pytest.mark.parametrize("path", [*PATHS, "cautious"])
def test_it_settles_with_what_the_path_knows(path: str) -> None:
    users = eighteen_users()
    answers = PATHS[path][-1] if path in PATHS else (0.3, 1.5)
    epsilon = EPSILON if path in PATHS else CAUTIOUS
    source = Told(answers)
    estimate = estimate_adaptive(users, epsilon, rng=source, trace=True)
    trace = estimate.trace
    assert trace.path == path
    held = by_size_class(users).sizes
    scales = [asked.noise[0] for asked in source.asked if asked.kind == "laplace"]
    anchor_epsilon = anchor_share(held.k, held.counts, 18, epsilon) * epsilon
    error = anchor_error(held.k, held.counts, 18, anchor_epsilon)
    centre, q = clamped_guess(answers[0], error, 18)
    assert centre == trace.initial_mean
    most, clipped, spread = math.inf, None, trace.initial_variance
    if path == "cautious":
        assert spread == CAUTIOUS_SPREAD * q
    if path == "unclipped":
        most = tails.spread_if_untested(centre, spread)
    if path in ("clipped", "alarm"):
        # The same test that a run without an alarm planned.
        told = Told(PATHS["clipped"][-1])
        intervals = run(users, told).trace.final.test.intervals
        seen = answers[2], scales[1]
        if path == "alarm":
            most = intervals.spread_if_alarmed(centre, spread, *seen)
        else:
            most = intervals.spread_if_calm(centre, spread, seen[0])
            clipped = intervals.clipped(centre, *seen)
    settled = settle(
        answers[-1],
        trace.noise_scale,
        answers[0],
        scales[0],
        k=held.k,
        counts=held.counts,
        weights=trace.final.mean.weights,
        n=18,
        q=q,
        spread=spread,
        most_spread=most,
        clipped=clipped,
    )
    assert (trace.anchor, trace.radius) == (settled.anchor, settled.radius)
    assert estimate.value == min(max(settled.value, 0.0), 1.0)
    assert estimate.uncertainty == settled.uncertainty
    assert estimate.warnings == settled.warnings


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
    if one is None or other is None:
        return one is other
    for field in dataclasses.fields(one):
        values = getattr(one, field.name), getattr(other, field.name)
        if dataclasses.is_dataclass(values[0]):
            if not same(*values):
                return False
        elif not np.array_equal(*values):
            return False
    return True


@pytest.mark.parametrize("epsilon", [0.001, 0.01, 2.0])
def test_the_plan_depends_on_sizes_only(epsilon: float) -> None:
    k = sizes.harmonic(5000)
    plans = [
        make_plans(by_size_class(Users(k, ones)).sizes, epsilon)
        for ones in (0 * k, k, k // 3)
    ]
    assert same(plans[0], plans[1])
    assert same(plans[0], plans[2])
    # They are what a run uses.
    rng = np.random.default_rng(51)
    trace = estimate_adaptive(Users(k, k // 3), epsilon, rng=rng, trace=True).trace
    if plans[0].adaptive is not None:
        assert same(trace.plan, plans[0].adaptive)
    elif plans[0].cautious is not None:
        assert same(trace.final.mean, plans[0].cautious)
    else:
        assert trace.path == "plain"


@example(users=Users(sizes.harmonic(10**4), sizes.harmonic(10**4)), epsilon=1.0)
@example(users=Users([1000, 2, 1], [0] * 3, [10**5] * 3), epsilon=0.1)
@given(users=size_tables(), epsilon=st.floats(1e-3, 1e3))
def test_first_guesses_leave_more_than_half_of_the_budget(
    users: Users, epsilon: float
) -> None:
    held = by_size_class(users).sizes
    plan = adaptive_plan(held, epsilon, 0.08 * epsilon)
    assume(plan is not None)  # about half of them
    assert plan is not None
    shares = [plan.anchor_epsilon, plan.spread_epsilon, plan.left]
    assert min(shares) > 0
    assert math.fsum(shares) == pytest.approx(epsilon, rel=1e-14)
    assert plan.left >= 0.8 * epsilon
    # Enough users with the most samples, and not a group of them more.
    above = held.counts[held.k >= plan.spread_from].sum()
    assert plan.spread_users == above
    assert above * plan.spread_epsilon >= SPREAD_EVIDENCE * (1 - 1e-12)
    fewer = held.counts[held.k > plan.spread_from].sum()
    assert fewer * plan.spread_epsilon < SPREAD_EVIDENCE
    assert plan.spread_from >= 2
    # Half of them have the middle size or more.
    middle = 2.0 / (plan.spread_users * plan.spread_epsilon * plan.resolution)
    if plan.resolution < 0.5:
        assert held.counts[held.k >= middle * (1 - 1e-9)].sum() >= above / 2
        assert held.counts[held.k > middle * (1 + 1e-9)].sum() < above / 2


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
    epsilon = 0.99 * SPREAD_EVIDENCE / SPREAD_SHARE * share / users.n
    held = by_size_class(users).sizes
    assert adaptive_plan(held, epsilon, 0.1 * epsilon) is None


def test_users_with_one_sample_give_no_plan_with_first_guesses() -> None:
    held = Sizes(np.array([1.0, 2.0]), np.array([10**6, 10]))
    assert adaptive_plan(held, 1.0, 0.1) is None
    held = Sizes(np.array([1.0, 2.0]), np.array([10, 10**6]))
    assert adaptive_plan(held, 1.0, 0.1) is not None


@pytest.mark.parametrize("epsilon", [0.02, 0.1, 0.2, 1.0])
@pytest.mark.parametrize("name", ["harmonic", "zipf", "equal", "two"])
def test_every_plan_promises_clearly_less_than_a_simpler_one(
    name: str, epsilon: float
) -> None:
    k = profile(name)
    held = by_size_class(Users(k, 0 * k)).sizes
    plans = make_plans(held, epsilon)
    spreads = [0.25 * relative for relative in JUDGED_SPREADS]
    anchor_epsilon = anchor_share(held.k, held.counts, N, epsilon) * epsilon
    assert plans.anchor_epsilon == pytest.approx(anchor_epsilon, rel=1e-12)
    left = epsilon - anchor_epsilon
    weighted = cautious_mean(held, left)

    def ratio(one: list[float], other: list[float]) -> float:
        logs = [math.log(a / b) for a, b in zip(one, other, strict=True)]
        return math.exp(sum(logs) / len(logs))

    plain = [plain_variance(held.k, held.counts, 0.25, s, N, epsilon) for s in spreads]
    cautious = [weighted.variance(0.25, s, left) for s in spreads]
    worth = ratio(cautious, plain) < WORTHWHILE
    assert (plans.cautious is not None) == worth
    assert plans.cautious is None or same(plans.cautious, weighted)
    known = cautious if worth else plain
    plan = adaptive_plan(held, epsilon, anchor_epsilon)
    worth = False
    if plan is not None:
        given = dataclasses.replace(plans, adaptive=plan)
        promised = [module.expected_variance(given, 0.5, s) for s in spreads]
        worth = ratio(promised, known) < WORTHWHILE
        assert not worth or same(plan, plans.adaptive)
    assert (plans.adaptive is not None) == worth


@pytest.mark.parametrize("name", ["harmonic", "zipf"])
def test_much_data_and_budget_make_for_an_adaptive_plan(name: str) -> None:
    k = profile(name)
    trace = estimate_adaptive(Users(k, k // 3), 1.0, rng=Scripted(), trace=True).trace
    assert trace.plan is not None


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
    assert (with_plans.trace.path == "plain") == (epsilon == 0.01)
    assert with_plans.uncertainty == without.uncertainty


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
    assert (plan is None) == (epsilon <= 0.01)
    if plan is None:
        inside = estimate_adaptive(users, epsilon, rng=Scripted(), trace=True).trace
        weights, noise = inside.weights, 2 * inside.noise_scale**2
    else:
        # The spread that is believed cannot be finer than the resolution.
        believed = min(var_p + plan.resolution * q, q)
        final = plan.final(p, q, believed)
        best, widths = by_hand(plan, final, p, q, believed)
        weights = best[groups.all_positions]
        noise = 2 * (np.max(best * widths) / final.epsilon) ** 2
    # User by user, where sizes above 255 count as slightly smaller ones.
    sampling = user_variance(held.k[groups.all_positions], p, var_p)
    exact = float(np.sum(weights**2 * sampling) + noise)
    assert module.expected_variance(plans, p, var_p) == pytest.approx(exact, rel=1e-9)


def test_the_expected_variance_of_a_cautious_plan_is_that_of_its_last_step() -> None:
    users = eighteen_users()
    plans = make_plans(by_size_class(users).sizes, CAUTIOUS)
    assert plans.adaptive is None
    inside = estimate_adaptive(users, CAUTIOUS, rng=Scripted(), trace=True).trace
    sampling = user_variance(users.k, 0.3, 0.01)
    exact = np.sum(inside.weights**2 * sampling) + 2 * inside.noise_scale**2
    found = module.expected_variance(plans, 0.3, 0.01)
    assert found == pytest.approx(exact, rel=1e-9)


def by_hand(plan: Any, final: Any, p: float, q: float, spread: float) -> Any:
    """Return the weights and widths of a final mean, from its parts."""
    held = plan.sizes
    if final.test is None:
        believed = max(spread, CAUTIOUS_SPREAD * q)
        widths = np.ones_like(held.k)
        assert final.epsilon == plan.left
    else:
        believed = spread
        error = anchor_error(held.k, held.counts, N, plan.anchor_epsilon)
        lower, upper = light_intervals(
            *(variance_of_mean(held.k, q, believed), p, q, believed, error),
            reach=best_reach(N, final.epsilon),
        )
        widths = upper - lower
        assert final.epsilon == pytest.approx(plan.left - final.test.epsilon)
    variances = variance_of_mean(held.k, q, believed)
    best, _ = optimal_weights(variances, widths, final.epsilon, counts=held.counts)
    return best, widths


@pytest.mark.parametrize("spread", [1e-4, 0.002])
def test_a_tail_test_is_offered_for_every_share(spread: float) -> None:
    k = profile("zipf")
    plan = make_plans(by_size_class(Users(k, 0 * k)).sizes, 1.0).adaptive
    assert plan is not None
    held, centre, q = plan.sizes, 0.3, 0.21
    tests = list(plan._tests(centre, q, spread))
    shares = [test.epsilon / plan.epsilon for test in tests]
    assert shares == pytest.approx(tails.SHARES)
    for test in tests:
        assert test.mean_epsilon == pytest.approx(plan.left - test.epsilon, rel=1e-12)
        intervals, left = test.intervals, test.mean_epsilon
        variances = variance_of_mean(held.k, q, spread)
        np.testing.assert_allclose(intervals.deviations**2, variances, rtol=1e-12)
        assert intervals.reach == best_reach(N, left)
        for name in ("weights", "lower", "upper"):
            np.testing.assert_array_equal(
                getattr(intervals, name), getattr(test.mean, name)
            )
        final = module.Final(mean=test.mean, epsilon=left, test=test, limit=1.0)
        best, widths = by_hand(plan, final, centre, q, spread)
        np.testing.assert_allclose(intervals.weights, best, rtol=1e-9)
        np.testing.assert_allclose(intervals.upper - intervals.lower, widths)
        assert test.calm == final.variance(q, spread)
        cautious = plan.unclipped(q, spread, left)
        assert test.alarmed == cautious.variance(q, spread, left)
        assert test.alarmed > test.calm
    # One of them is taken, or none.
    final = plan.final(centre, q, spread)
    without = plan.unclipped(q, spread, plan.left).variance(q, spread, plan.left)
    chosen = tails.best_test(tests, centre, without, plan._compared_with(q, spread))
    assert chosen is not None
    assert final.limit == chosen[1]
    assert final.test is not None
    assert final.test.epsilon == chosen[0].epsilon
    assert same(final.mean, chosen[0].mean)


def test_nobody_is_tested_where_nobody_could_be_clipped() -> None:
    _, plan = plan_by_hand(Users([3, 1], [1, 0], [20, 10]))
    assert not list(plan._tests(0.5, 0.25, 0.25))
    assert plan.final(0.5, 0.25, 0.25).test is None


@pytest.mark.parametrize("spread", [0.0, 0.01])
def test_clipping_is_compared_with_means_that_clip_nobody(spread: float) -> None:
    users = eighteen_users()
    _, plan = plan_by_hand(users)
    held, q = plan.sizes, 0.2
    cautious = cautious_mean(held, plan.epsilon).weights
    for found, weights in zip(
        plan._compared_with(q, spread), (np.full(3, 1 / 18), cautious), strict=True
    ):
        noise = 2 * (weights.max() / plan.epsilon) ** 2
        sampling = np.sum(6 * weights**2 * variance_of_mean(held.k, q, spread))
        assert found.variance == pytest.approx(sampling + noise, rel=1e-9)
        squares = np.sum(6 * weights**2 * (1 - 1 / held.k))
        assert found.squares == pytest.approx(squares, rel=1e-9)


# Heavy tails and accuracy, at n = 10^4 and epsilon = 1.


LIGHT = Beta(0.3, 0.0004)
# Near the bound that the tail test is planned with, and with few who are far.
HEAVY, FEW = TwoPoint(0.1, 0.9, 0.05), TwoPoint(0.1, 0.9, 0.03)
N = 10**4


@cache
def profile(name: str) -> Any:
    if name == "harmonic":
        return sizes.harmonic(N)
    if name == "equal":
        return sizes.equal(N, 10)
    if name == "two":
        return np.repeat([2, 10], N // 2)
    rng = np.random.default_rng(52)
    if name == "lognormal":
        return sizes.lognormal(N, 3.0, 1.5, 2000, rng)
    return sizes.zipf(N, 1.5, 2000, rng)


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
                trace.path == "alarm",
                trace.lower.max() > 0.0 or trace.upper.min() < 1.0,
                (trace.noiseless - meta.mean) ** 2 + 2 * trace.noise_scale**2,
                (ideal.noiseless - meta.mean) ** 2 + 2 * ideal.noise_scale**2,
            )
        )
    alarm, clipped, error, other = np.array(rows, dtype=float).T
    return {
        "alarm": alarm == 1,
        "clipped": clipped == 1,
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
@pytest.mark.parametrize("meta", [HEAVY, FEW])
@pytest.mark.slow
def test_a_small_group_far_away_is_noticed_and_nobody_is_clipped(
    meta: Any, name: str
) -> None:
    # Missed in about one run of a hundred: more than 15 of 100 have a chance of 1e-13.
    run = runs(meta, name)
    assert np.sum(run["alarm"]) >= 85
    assert not (run["alarm"] & run["clipped"]).any()


@pytest.mark.parametrize("name", ["harmonic", "zipf"])
@pytest.mark.slow
def test_light_tails_are_not_taken_for_a_minority(name: str) -> None:
    # The rate is below 5%: more than 25 of 100 have a chance of 1e-11.
    assert np.sum(runs(LIGHT, name)["alarm"]) <= 25
    assert np.sum(runs(LIGHT, name)["clipped"]) >= 75


@pytest.mark.slow
def test_light_tails_are_rewarded() -> None:
    run = runs(LIGHT, "zipf", 200)
    error, deviation = mean_squared_error(run)
    assert 6 * deviation < 0.25 * run["objective"]
    assert error <= 1.4 * run["objective"]
    assert error <= 0.3 * run["plain"]


@pytest.mark.parametrize("name", ["harmonic", "zipf"])
@pytest.mark.slow
def test_heavy_tails_are_survived(name: str) -> None:
    run = runs(HEAVY, name, 300)
    error, deviation = mean_squared_error(run)
    assert 6 * deviation < 0.5 * run["plain"]
    assert error <= 2 * run["plain"]


def test_a_minority_switches_clipping_off() -> None:
    rng = np.random.default_rng(54)
    users = sample_users(FEW, profile("harmonic"), rng)
    # Without noise, and with no typical spread to speak of.
    trace = estimate_adaptive(users, 1.0, rng=Scripted(outcome=0), trace=True).trace
    assert trace.path == "alarm"
    np.testing.assert_array_equal(trace.lower, 0.0)
    np.testing.assert_array_equal(trace.upper, 1.0)
    # The typical spread is that of the many; weights are cautious all the same.
    q = trace.initial_mean * (1 - trace.initial_mean)
    assert trace.initial_variance < CAUTIOUS_SPREAD * q
    held = trace.plan.sizes
    left = trace.final.epsilon
    best = module.unclipped_mean(held, q, CAUTIOUS_SPREAD * q, left).weights
    assert trace.final.mean.weights.max() <= 1.1 * best.max()


def test_light_tails_are_clipped_around_the_anchor() -> None:
    rng = np.random.default_rng(55)
    users = sample_users(LIGHT, profile("harmonic"), rng)
    trace = estimate_adaptive(users, 1.0, rng=Scripted(), trace=True).trace
    assert trace.path == "clipped"
    longest = np.argmax(users.k)
    assert 0 < trace.lower[longest] < trace.initial_mean < trace.upper[longest] < 1


@pytest.mark.parametrize("name", ["lognormal", "zipf"])
def test_rates_that_grow_with_sizes_are_warned_of_and_the_value_is_pulled(
    name: str,
) -> None:
    k = profile(name)
    rates = np.minimum(0.1 + 0.2 * np.log(k), 1.0)
    rng, warned, pulled = np.random.default_rng(57), 0, 0
    for _ in range(30):
        users = Users(k, rng.binomial(k, rates))
        estimate = estimate_public_size(users, 1.0, rng=rng, trace=True)
        trace = estimate.trace
        warned += any("depend on sizes" in text for text in estimate.warnings)
        gap = abs(estimate.value - trace.anchor.value)
        pulled += math.isclose(gap, trace.radius, rel_tol=1e-9)
    # A run goes without with a chance of 1e-3 at most: 5 of 30 with less than 1e-9.
    assert warned >= 26
    assert pulled >= 26


@pytest.mark.slow
def test_in_the_model_there_is_hardly_ever_a_warning() -> None:
    # At most 6 in a thousand by their construction, and about 2 in fact, of which
    # more than 15 have a chance of 1e-9.
    rng, k, warned = np.random.default_rng(58), sizes.harmonic(2000), 0
    plans = make_plans(by_size_class(Users(k, 0 * k)).sizes, 2.0)
    for _ in range(1000):
        users = sample_users(LIGHT, k, rng)
        estimate = estimate_adaptive(users, 2.0, plans=plans, rng=rng)
        assert 0.0 <= estimate.value <= 1.0
        warned += bool(estimate.warnings)
    assert warned <= 15


# Unbiasedness, scale and edges.


def test_the_cautious_plan_is_unbiased() -> None:
    # A weighted mean of the means themselves, with weights that add up to one.
    users = eighteen_users()
    trace = estimate_adaptive(users, CAUTIOUS, rng=Scripted(), trace=True).trace
    assert trace.path == "cautious"
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


@pytest.mark.parametrize("anchor", [-1e3, 0.0, 1e3])
@pytest.mark.parametrize("caught", [-1e9, 0.0, 1e9])
@pytest.mark.parametrize("outcome", [0, -1])
def test_any_noise_gives_a_finite_result(
    anchor: float, caught: float, outcome: int
) -> None:
    source = Scripted(anchor, caught, outcome=outcome)
    estimate = estimate_adaptive(eighteen_users(), EPSILON, rng=source, trace=True)
    trace = estimate.trace
    assert 0 <= trace.initial_mean <= 1
    assert 0 <= trace.initial_variance <= 0.25
    assert 0 <= estimate.value <= 1
    assert np.isfinite(trace.weights).all()
    assert math.isfinite(trace.noise_scale)
    assert 0 <= estimate.standard_error <= 1
    low, high = estimate.interval()
    assert 0 <= low <= estimate.value <= high <= 1


def test_a_billion_users_in_a_few_rows() -> None:
    k = [1, 1, 10, 10, 1000]
    users = Users(
        k, [0, 1, 2, 4, 300], [14 * 10**7, 6 * 10**7, 10**8, 10**8, 6 * 10**8]
    )
    assert users.n == 10**9
    estimate = estimate_adaptive(users, 1.0, rng=np.random.default_rng(0), trace=True)
    assert estimate.trace.plan is not None
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
    assert estimate.trace.path == "plain"
    assert estimate.value == pytest.approx(1 / n, rel=1e-9)
    assert source.scales == pytest.approx([1 / n], rel=1e-9)


@pytest.mark.parametrize("ones", [0, 1])
def test_certain_outcomes_are_finite(ones: int) -> None:
    k = sizes.harmonic(10**4)
    estimate = estimate_adaptive(
        Users(k, ones * k), 1.0, rng=np.random.default_rng(0), trace=True
    )
    assert estimate.trace.plan is not None
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
    ledger = run(eighteen_users(), Told(PATHS["clipped"][0])).ledger
    assert [cohort.users for cohort in ledger.cohorts] == [6, 12]
    names = tuple(cohort.name for cohort in ledger.cohorts)
    taking_part = {step.name: step.cohorts for step in ledger.steps}
    assert taking_part == {
        "anchor": names,
        "typical spread": (names[0],),
        "tail test": names,
        "final mean": names,
    }
    assert "size 40 or more" in str(ledger)
    assert "size below 40" in str(ledger)


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
