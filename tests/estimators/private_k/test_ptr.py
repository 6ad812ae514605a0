"""Propose, test, release: the distance is certified, and privacy is paid for twice.

Nothing here is statistical.  All tables of up to five users with up to four samples
are enumerated, with all their neighbours.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hetlit import Beta, Users, sample_users, sizes
from hetlit.estimators.private_k import estimate_private_k
from hetlit.estimators.private_k.ptr import (
    SHARES,
    certified_distance,
    estimate_ptr,
    pass_probability,
    ptr_distance,
    sensitivity_within,
)
from hetlit.estimators.private_k.sums import (
    RatioPlan,
    RatioStatistics,
    ratio_plan,
    ratio_statistics,
)
from hetlit.estimators.uncertainty import of_plain_mean
from hetlit.users.groups import classes_up_to
from tests.odd import odd

QUICK = settings(max_examples=60)
EVERYONE = [(k, ones) for k in range(1, 5) for ones in range(k + 1)]


@dataclass(frozen=True)
class World:
    """All tables of n users with up to four samples, and their neighbours.

    tables : shape (tables, n), users as positions in EVERYONE, ascending
    neighbours : shape (tables, n * users), positions of tables
    """

    n: int
    tables: np.ndarray
    neighbours: np.ndarray

    def users(self, table: int) -> Users:
        k, ones = zip(*(EVERYONE[user] for user in self.tables[table]), strict=True)
        return Users(k, ones)


def world_of(n: int) -> World:
    people = range(len(EVERYONE))
    tables = list(itertools.combinations_with_replacement(people, n))
    place = {table: position for position, table in enumerate(tables)}
    neighbours = [
        [
            place[tuple(sorted((*table[:user], other, *table[user + 1 :])))]
            for user in range(n)
            for other in people
        ]
        for table in tables
    ]
    return World(n, np.array(tables), np.array(neighbours))


WORLDS = {n: world_of(n) for n in (1, 2, 3, 4, 5)}
# p, var_p, cap, alpha, width at k = 1.
GUESSES = [
    (0.5, 0.0, 4, 0.0, 0.4),
    (0.3, 0.02, 4, 0.05, 0.1),
    (0.3, 0.02, 2, 0.05, 0.6),
    (0.05, 0.0, 4, 0.0, 0.2),
]


@dataclass(frozen=True, eq=False)
class Case:
    """A plan, and for all tables of a world what it says and how it moves."""

    world: World
    arguments: tuple[float, float, int]
    width: Any
    plan: RatioPlan
    weights: np.ndarray
    offsets: np.ndarray
    values: np.ndarray
    moves: np.ndarray  # local sensitivities

    def sums(self, table: int) -> RatioStatistics:
        return RatioStatistics(
            float(self.weights[table]),
            float(self.offsets[table]),
            float(self.values[table]),
            self.plan.weight_sensitivity,
            self.plan.offset_sensitivity,
        )

    def true_distances(self, proposal: float) -> np.ndarray:
        """Replacements that keep the local sensitivity in bounds; n + 1 if any do."""
        far = self.world.n + 2
        distance = np.where(self.moves > proposal * (1 + 1e-12), 0, far)
        for step in range(1, far):
            reached = (distance[self.world.neighbours] < step).any(axis=1)
            distance = np.where(reached & (distance == far), step, distance)
        return np.asarray(distance - 1)


@cache
def certified_of(case: Case, proposal: float) -> np.ndarray:
    return np.array(
        [
            certified_distance(case.plan, case.sums(table), case.world.n, proposal)
            for table in range(len(case.weights))
        ]
    )


@cache
def case_of(n: int, guess: tuple[float, ...]) -> Case:
    p, var_p, cap, alpha, scale = guess
    world = WORLDS[n]

    def width(k: Any) -> Any:
        return scale / np.sqrt(k)

    plan = ratio_plan(p, var_p, int(cap), n=n, alpha=alpha, width=width)
    alone = [plan.statistics(Users([k], [ones])) for k, ones in EVERYONE]
    weights = np.array([one.total_weight for one in alone])[world.tables].sum(axis=1)
    offsets = np.array([one.total_offset for one in alone])[world.tables].sum(axis=1)
    values = plan.centre + offsets / weights
    moves = np.abs(values[world.neighbours] - values[:, None]).max(axis=1)
    arguments = (p, var_p, int(cap))
    return Case(world, arguments, width, plan, weights, offsets, values, moves)


def proposals(case: Case) -> list[float]:
    """Return proposals that hold for no table, for few, for many and for all."""
    least, few, many, most = np.quantile(case.moves, [0.0, 0.1, 0.6, 1.0])
    return [float(0.9 * least), float(few), float(many), float(most), float(1.1 * most)]


# The distance.


@pytest.mark.slow
@pytest.mark.parametrize("guess", GUESSES)
@pytest.mark.parametrize("n", [1, 2, 3, 4])
def test_the_distance_is_never_above_the_true_one_and_moves_by_one_at_most(
    n: int, guess: tuple[float, ...]
) -> None:
    case = case_of(n, guess)
    for proposal in proposals(case):
        certified = certified_of(case, proposal)
        assert (certified <= np.minimum(case.true_distances(proposal), n)).all()
        steps = certified[case.world.neighbours] - certified[:, None]
        assert np.abs(steps).max() <= 1


@pytest.mark.parametrize("guess", GUESSES[:2])
def test_the_same_for_all_tables_of_five_users(guess: tuple[float, ...]) -> None:
    case = case_of(5, guess)
    proposal = float(np.quantile(case.moves, 0.8))
    certified, true = certified_of(case, proposal), case.true_distances(proposal)
    assert (certified <= true).all()
    assert np.abs(certified[case.world.neighbours] - certified[:, None]).max() <= 1
    # It is not vacuous: it finds what holds, and often all of it.
    assert certified.max() >= 1
    assert (certified == true).mean() > 0.3


@pytest.mark.parametrize("guess", GUESSES)
def test_the_bound_holds_for_all_tables_at_every_distance_and_is_attained(
    guess: tuple[float, ...],
) -> None:
    case = case_of(4, guess)
    worst, tightest = case.moves.copy(), 0.0
    for distance in range(5):
        bounds = np.array(
            [
                sensitivity_within(
                    case.plan, 4, case.weights[t], case.offsets[t], distance
                )
                for t in range(len(worst))
            ]
        )
        # The largest local sensitivity within this distance.
        assert (worst <= bounds * (1 + 1e-9)).all()
        tightest = max(tightest, float((worst / bounds).max()))
        worst = worst[case.world.neighbours].max(axis=1)
    assert tightest > 0.95


@pytest.mark.parametrize("guess", GUESSES)
def test_the_public_function_agrees_with_the_enumeration(
    guess: tuple[float, ...],
) -> None:
    case = case_of(3, guess)
    proposal = float(np.quantile(case.moves, 0.7))
    certified = certified_of(case, proposal)
    for table in range(0, len(certified), 7):
        found = ptr_distance(
            case.world.users(table),
            *case.arguments,
            proposal,
            alpha=guess[3],
            width=case.width,
        )
        assert type(found) is int
        assert found == certified[table]


@st.composite
def sums_and_plans(draw: st.DrawFn) -> tuple[RatioPlan, int, float, float]:
    plan = ratio_plan(
        draw(st.floats(0, 1)),
        draw(st.floats(0, 0.25)),
        draw(st.integers(1, 40)),
        n=1000,
        alpha=draw(st.floats(0, 0.2)),
        width=None,
    )
    n = draw(st.integers(1, 500))
    weight = n * draw(st.floats(plan.weights.min(), plan.weights.max()))
    offset = weight * draw(st.floats(-plan.below.max(), plan.above.max()))
    return plan, n, weight, offset


@QUICK
@given(sums_and_plans(), st.integers(0, 20))
def test_the_bound_grows_with_the_distance_and_a_neighbour_is_one_further(
    drawn: tuple[RatioPlan, int, float, float], distance: int
) -> None:
    plan, n, weight, offset = drawn
    here = sensitivity_within(plan, n, weight, offset, distance)
    further = sensitivity_within(plan, n, weight, offset, distance + 1)
    assert here <= further * (1 + 1e-12)
    least = n * float(plan.weights.min())
    for sign in (-1, 1):
        lighter = max(weight - plan.weight_sensitivity, least)
        moved = offset + sign * plan.offset_sensitivity
        bound = sensitivity_within(plan, n, lighter, moved, distance)
        assert bound <= further * (1 + 1e-9)


@QUICK
@given(sums_and_plans(), st.integers(0, 20))
def test_the_bound_does_not_care_which_outcome_is_called_one(
    drawn: tuple[RatioPlan, int, float, float], distance: int
) -> None:
    plan, n, weight, offset = drawn
    mirrored = RatioPlan(
        centre=1 - plan.centre,
        weights=plan.weights,
        below=plan.above,
        above=plan.below,
    )
    assert sensitivity_within(plan, n, weight, offset, distance) == pytest.approx(
        sensitivity_within(mirrored, n, weight, -offset, distance), rel=1e-12
    )


def test_the_distance_is_tighter_than_the_simple_closed_form() -> None:
    # 2 (G + max v min(g, (|U| + 2dG)/N_d)) / N_(d+1), N_d = max(N - d Delta, n min v).
    def simple(plan: RatioPlan, n: int, weight: float, offset: float, d: int) -> float:
        reach = np.maximum(plan.above, plan.below)
        largest = float(np.max(plan.weights * reach))
        least = n * float(plan.weights.min())
        now = max(weight - d * plan.weight_sensitivity, least)
        then = max(weight - (d + 1) * plan.weight_sensitivity, least)
        mean = min(float(reach.max()), (abs(offset) + 2 * d * largest) / now)
        return 2 * (largest + float(plan.weights.max()) * mean) / then

    case = case_of(4, GUESSES[1])
    for table, distance in itertools.product(range(0, 2380, 50), range(4)):
        weight, offset = float(case.weights[table]), float(case.offsets[table])
        ours = sensitivity_within(case.plan, 4, weight, offset, distance)
        assert ours <= simple(case.plan, 4, weight, offset, distance) * (1 + 1e-12)


def test_equal_weights_pass_at_any_distance() -> None:
    users = Users([1, 5], [1, 0], [50, 50])
    for proposal, distance in ((0.00999, -1), (0.01 * (1 + 1e-12), 100)):
        found = ptr_distance(users, 0.5, 0.0, 1, proposal, alpha=0.0, width=None)
        assert found == distance


@pytest.mark.parametrize("var_p", [0.0, 0.01])
def test_every_size_is_bounded_by_the_extremes_of_its_class(var_p: float) -> None:
    # Above 255 a class holds several sizes, of which the last weighs most.
    cap = 1003
    plan = ratio_plan(0.3, var_p, cap, n=100, alpha=0.0, width=None)
    starts = np.unique(np.ceil(classes_up_to(cap)).astype(int))
    own_class = np.searchsorted(starts, np.arange(1, cap + 1), side="right") - 1
    of_sizes = (plan.weights, plan.above, plan.below)
    for values, extremes in zip(of_sizes, plan.class_extremes, strict=True):
        assert (extremes[own_class] >= values).all()
        assert set(extremes) <= set(values)
        np.testing.assert_array_equal(extremes[:255], values[:255])
    assert plan.class_extremes[0][-1] == plan.weights[-1] > plan.weights[999]


def test_a_million_users_and_sizes_are_no_trouble() -> None:
    users = Users([10**6, 1], [10**5, 0], [10**6, 10**6])
    sums = ratio_statistics(users, 0.1, 0.001, 10**6, alpha=0.01, width=None)
    proposal = 1.1 * sums.offset_sensitivity / sums.total_weight
    found = ptr_distance(users, 0.1, 0.001, 10**6, proposal, alpha=0.01, width=None)
    assert 10**4 < found < 2 * 10**6


# The test.


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 3.0])
@pytest.mark.parametrize("delta", [0.1, 1e-3, 1e-9])
def test_what_must_not_pass_passes_with_probability_delta_at_most(
    epsilon: float, delta: float
) -> None:
    assert pass_probability(0, epsilon, delta) == pytest.approx(delta, rel=1e-12)
    assert pass_probability(-1, epsilon, delta) == pytest.approx(
        delta * math.exp(-epsilon), rel=1e-12
    )
    half = math.log(1 / (2 * delta)) / epsilon
    assert pass_probability(half, epsilon, delta) == pytest.approx(0.5)
    assert pass_probability(2 * half, epsilon, delta) == pytest.approx(1 - delta)


def hockey_stick(
    ours: tuple[Any, Any], theirs: tuple[Any, Any], scale: float, epsilon: float
) -> Any:
    """Return the exact divergence of propose-test-release at epsilon.

    Each side is (probability to pass, value).  An output is the fallback, with the
    probability to fail, or the value with Laplace noise.
    """
    (passes, value), (others, other) = ours, theirs
    fails = np.maximum((1 - passes) - math.exp(epsilon) * (1 - others), 0.0)
    weight = math.exp(epsilon) * np.asarray(others)
    gap = np.abs(np.asarray(value) - other)
    # With our value at 0 and theirs at gap, ours is likelier up to x.
    x = np.clip((gap + scale * np.log(passes / weight)) / 2, 0.0, gap)
    inside = (
        passes * (1 - np.exp(-x / scale) / 2) - weight * np.exp(-(gap - x) / scale) / 2
    )
    always = np.log(passes / weight) >= gap / scale
    never = np.log(passes / weight) <= -gap / scale
    released = np.where(always, passes - weight, np.where(never, 0.0, inside))
    return fails + released


def test_the_divergence_is_an_integral() -> None:
    x = np.linspace(-30, 30, 2_000_001)
    for passes, others, gap in ((0.5, 0.2, 0.7), (0.2, 0.5, 2.0), (0.9, 0.1, 0.1)):
        ours = passes * np.exp(-np.abs(x)) / 2
        theirs = others * np.exp(-np.abs(x - gap)) / 2
        numeric = np.maximum(ours - math.exp(0.4) * theirs, 0).sum() * (x[1] - x[0])
        numeric += max((1 - passes) - math.exp(0.4) * (1 - others), 0)
        exact = hockey_stick((passes, 0.0), (others, gap), 1.0, 0.4)
        assert exact == pytest.approx(numeric, abs=1e-6)


@pytest.mark.parametrize("guess", GUESSES)
@pytest.mark.parametrize("n", [2, 4])
def test_test_and_release_together_cost_both_epsilons_and_delta(
    n: int, guess: tuple[float, ...]
) -> None:
    # All neighbouring tables of n users.
    case, test_epsilon, release_epsilon = case_of(n, guess), 0.7, 1.1
    for proposal, delta in itertools.product(proposals(case)[1:4], (0.2, 0.01)):
        chances = np.array(
            [pass_probability(d, test_epsilon, delta) for d in range(-1, n + 1)]
        )[certified_of(case, proposal) + 1]
        divergence = hockey_stick(
            (chances[:, None], case.values[:, None]),
            (chances[case.world.neighbours], case.values[case.world.neighbours]),
            proposal / release_epsilon,
            test_epsilon + release_epsilon,
        )
        assert divergence.max() <= delta * (1 + 1e-9)


def test_test_and_release_at_epsilon_each_are_not_epsilon_together() -> None:
    # As in Algorithm 3: a hundred users, one of whom loses all her data but a zero.
    epsilon, delta = 1.0, 1e-6
    guess: dict[str, Any] = {"alpha": 0.0, "width": lambda k: 0.3 / np.sqrt(k)}
    base = Users([4, 4, 4], [4, 0, 2], [45, 45, 10])
    other = Users([4, 4, 4, 1], [4, 0, 2, 0], [44, 45, 10, 1])
    threshold = math.log(1 / (2 * delta)) / epsilon
    divergences = []
    for proposal in np.linspace(0.003, 0.0035, 100):
        near, far = (
            ptr_distance(users, 0.5, 0.0, 4, float(proposal), **guess)
            for users in (base, other)
        )
        if near - far == 1 and near <= threshold:
            ours, theirs = (
                (
                    pass_probability(distance, epsilon, delta),
                    ratio_statistics(users, 0.5, 0.0, 4, **guess).value,
                )
                for distance, users in ((near, base), (far, other))
            )
            divergences.append(
                [
                    float(hockey_stick(ours, theirs, proposal / epsilon, total))
                    for total in (epsilon, 2 * epsilon)
                ]
            )
    at_epsilon, at_twice = np.max(divergences, axis=0)
    assert at_epsilon > 1e4 * delta
    assert at_twice <= delta


# The estimator.


def zipf_users(n: int = 5000) -> Users:
    rng = np.random.default_rng(0)
    k = sizes.zipf(n, exponent=1.5, k_max=500, rng=rng)
    return sample_users(Beta(0.3, 0.0004), k, rng)


def run(users: Users, epsilon: float = 2.0, **more: Any) -> Any:
    options: Any = {"delta": 1e-6, "rng": np.random.default_rng(0)} | more
    return estimate_private_k(users, epsilon, k_max=500, method="ptr", **options)


class Scripted(np.random.Generator):
    """Adds the given noises."""

    def __init__(self, *noises: float) -> None:
        super().__init__(np.random.PCG64(0))
        self.noises = list(noises)
        self.scales: list[float] = []

    def laplace(self, loc: Any = 0.0, scale: Any = 1.0, size: Any = None) -> Any:
        self.scales.append(scale)
        return self.noises.pop(0)


@pytest.mark.parametrize("epsilon", [0.5, 2.0])
def test_the_ledger_adds_up_to_epsilon_and_delta(epsilon: float) -> None:
    ledger = run(zipf_users(), epsilon).ledger
    assert ledger.epsilon == pytest.approx(epsilon, rel=1e-12)
    assert ledger.delta == 1e-6
    assert ledger.spent_on("mean") == (epsilon, 0.0)
    assert ledger.spent_on("spread") == (epsilon, 0.0)
    assert ledger.spent_on("final") == (pytest.approx(epsilon, rel=1e-12), 1e-6)
    costs = [step.epsilon for step in ledger.steps if "final" in step.cohorts]
    assert costs == pytest.approx([share * epsilon for share in SHARES])


def test_noises_have_the_scales_of_their_steps() -> None:
    source = Scripted(0.0, 0.0, 0.0, 0.0)
    inside = run(zipf_users(), rng=source, trace=True).trace
    sums = inside.statistics
    assert source.scales == pytest.approx(
        [
            1 / (500 * 2.0),
            sums.weight_sensitivity / (SHARES[1] * 2.0),
            1 / (SHARES[2] * 2.0),
            inside.proposal / (SHARES[3] * 2.0),
        ]
    )
    offset = sums.weight_sensitivity / (SHARES[1] * 2.0) * math.log(2e-6)
    assert inside.low_weight == pytest.approx(sums.total_weight + offset)
    assert inside.low_weight < sums.total_weight


def test_the_test_decides_between_the_mean_and_the_first_guess() -> None:
    users = zipf_users()
    needed = math.log(1 / 2e-6) / (SHARES[2] * 2.0)
    distance = run(users, rng=Scripted(0, 0, 0, 0), trace=True).trace.distance
    just, barely = needed - distance + 1e-9, needed - distance - 1e-9
    passed = run(users, rng=Scripted(0, 0, just, 0.25), trace=True)
    failed = run(users, rng=Scripted(0, 0, barely, 0.0), trace=True)
    assert (passed.trace.passed, failed.trace.passed) == (True, False)
    assert passed.value == pytest.approx(passed.trace.statistics.value + 0.25)
    assert failed.value == failed.trace.initial_mean
    assert failed.trace.noise_scale == 0.0
    # Both are charged for the release, and say whether there was one.
    last = [estimate.ledger.steps[-1] for estimate in (passed, failed)]
    for step in last:
        assert (step.name, step.cohorts) == ("release of the mean", ("final",))
        assert step.epsilon == pytest.approx(SHARES[3] * 2.0, rel=1e-12)
    assert last[0].mechanism.kind == "Laplace"
    assert last[0].mechanism.sensitivity == passed.trace.proposal
    assert str(last[1].mechanism) == "nothing released: the test failed"
    assert failed.ledger.epsilon == passed.ledger.epsilon == pytest.approx(2.0)
    assert failed.ledger.delta == passed.ledger.delta == 1e-6
    # What is known is the error of the one or of the other.
    first = of_plain_mean(failed.value, 500, 1 / (500 * 2.0))
    assert failed.uncertainty == first
    sure = passed.uncertainty
    assert (sure.noise, sure.first) == (passed.trace.noise_scale, first)
    assert sure.gap == pytest.approx(abs(passed.value - passed.trace.initial_mean))
    assert passed.warnings != ()
    assert failed.warnings == ()


def test_the_test_passes_where_the_first_guesses_are_right() -> None:
    # The distance exceeds what passes surely, unless noise or luck is extreme.
    for seed in range(20):
        inside = run(
            zipf_users(), 1.0, rng=np.random.default_rng(seed), trace=True
        ).trace
        assert inside.passed
        assert inside.distance > 2 * math.log(1 / 2e-6)


def test_the_noise_is_hardly_more_than_that_of_the_ratio() -> None:
    users = zipf_users(20_000)
    inside = run(users, trace=True).trace
    sums = inside.statistics
    unavoidable = sums.offset_sensitivity / sums.total_weight
    assert inside.proposal < 1.3 * unavoidable


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"delta": 0.0}, ValueError, "delta must be"),
        ({"delta": 0.5}, ValueError, "delta must be"),
        ({"delta": None}, TypeError, "delta must be"),
        ({"shares": (0.1, 0.1, 0.8)}, ValueError, "shares must be 4"),
        ({"beta": 2.0}, ValueError, "beta must be"),
        ({"spread_users": -1}, ValueError, "spread_users must be"),
        ({"unknown": 1}, TypeError, "unknown"),
    ],
)
def test_bad_arguments_are_refused_by_name(
    change: dict[str, Any], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        run(zipf_users(100), **change)


def test_delta_has_no_default_of_its_own() -> None:
    with pytest.raises(ValueError, match="delta must be"):
        estimate_private_k(
            zipf_users(100),
            1.0,
            k_max=500,
            method="ptr",
            rng=np.random.default_rng(0),
        )
    with pytest.raises(TypeError, match="delta"):
        odd(estimate_ptr)(zipf_users(100), 1.0, k_max=500)


@pytest.mark.parametrize("proposal", [-1.0, math.nan, math.inf, "x"])
def test_bad_proposals_are_refused_by_name(proposal: Any) -> None:
    with pytest.raises((TypeError, ValueError), match="proposal must be"):
        ptr_distance(zipf_users(10), 0.3, 0.0, 5, proposal, alpha=0.1, width=None)
