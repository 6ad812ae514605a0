"""The Huber mean: its gradient, its privacy and what it does to unusual users.

Privacy is checked exactly: on all neighbouring pairs of small tables, the law of the
exponential mechanism is computed and compared outcome by outcome.

Monte Carlo: one comparison, with 6.5 standard errors; for a random seed it fails with
a chance of at most 1e-10 if true.
"""

from __future__ import annotations

import itertools
import math
import time
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import optimize

from hetlit import Users, sizes, user_variance
from hetlit.estimators.baselines.huber import (
    COARSEST,
    FINEST,
    HuberPlan,
    hidden,
    huber,
    known_error,
    plan_huber,
)
from hetlit.privacy.selection import exponential_probabilities
from hetlit.users.groups import by_size
from tests.odd import odd
from tests.rows import tables
from tests.transcripts import Transcript


def generator(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


def plan_for(users: Users, epsilon: float = 1.0, **options: Any) -> HuberPlan:
    return plan_huber(by_size(users).sizes, epsilon, **options)


def gradient_of(plan: HuberPlan, users: Users) -> Any:
    return plan.gradient(by_size(users))


def small_plan(size_list: tuple[int, ...], steps: int, **options: Any) -> HuberPlan:
    """A plan for these sizes on a grid coarse enough to enumerate."""
    plan = plan_for(Users(size_list, [0] * len(size_list)), **options)
    thresholds = np.clip(plan.thresholds * steps // plan.steps, 1, steps)
    return HuberPlan(
        sizes=plan.sizes,
        cap=plan.cap,
        steps=steps,
        weights=plan.weights,
        thresholds=thresholds,
    )


# The gradient


@given(tables(most=8), st.floats(0.1, 20), st.floats(0, 0.5), st.integers(1, 40))
def test_the_gradient_is_the_sum_of_bounded_pulls(
    users: Users, reach: float, spread: float, cap: int
) -> None:
    plan = plan_for(users, reach=reach, spread=spread, cap=cap)
    each = users.expanded()
    group = np.searchsorted(plan.sizes.k, each.k)
    nearest = np.rint(each.means * plan.steps).astype(int)
    points = np.arange(plan.steps + 1)[:, None]
    pulls = np.clip(points - nearest, -plan.thresholds[group], plan.thresholds[group])
    np.testing.assert_array_equal(gradient_of(plan, users), pulls @ plan.weights[group])


@given(tables(most=8), st.floats(0.1, 20), st.floats(0, 0.5), st.integers(1, 40))
def test_weights_and_thresholds_are_the_documented_ones(
    users: Users, reach: float, spread: float, cap: int
) -> None:
    plan = plan_for(users, reach=reach, spread=spread, cap=cap)
    group = np.searchsorted(plan.sizes.k, users.k)
    m = np.minimum(users.k, cap)
    assert plan.weights[group].tolist() == m.tolist()
    threshold = np.minimum(1, reach * np.sqrt(1 / (4 * m) + spread**2))
    np.testing.assert_allclose(
        plan.thresholds[group] / plan.steps, threshold, atol=1 / plan.steps
    )


@given(tables(most=8))
def test_rows_that_are_merged_or_split_give_the_same_law(users: Users) -> None:
    plan = plan_for(users)
    for same in (users.compressed(), users.expanded()):
        other = plan_for(same)
        assert other.steps == plan.steps
        np.testing.assert_array_equal(
            gradient_of(other, same), gradient_of(plan, users)
        )


@given(tables(most=8))
def test_the_gradient_rises_from_one_side_of_zero_to_the_other(users: Users) -> None:
    gradient = gradient_of(plan_for(users), users)
    assert (np.diff(gradient) >= 0).all()
    assert gradient[0] <= 0 <= gradient[-1]


# Privacy, exactly


CASES: list[tuple[tuple[int, ...], dict[str, Any]]] = [
    ((1, 1), {}),
    ((1, 2, 4), {"cap": 4, "reach": 0.5, "spread": 0.0}),
    ((4, 4, 2), {"cap": 3, "reach": 0.3, "spread": 0.0}),
    ((1, 3, 3), {"cap": 1, "reach": 1.0, "spread": 0.1}),
    ((2, 2, 5), {"cap": 8, "reach": 0.2, "spread": 0.3}),
]


@pytest.mark.parametrize(("size_list", "options"), CASES)
@pytest.mark.parametrize("steps", [4, 16])
@pytest.mark.parametrize("epsilon", [0.3, 2.0])
def test_no_neighbour_changes_the_law_by_more_than_epsilon(
    size_list: tuple[int, ...], options: dict[str, Any], steps: int, epsilon: float
) -> None:
    plan = small_plan(size_list, steps, **options)
    farthest, loss = 0, 0.0
    gradients = {
        ones: gradient_of(plan, Users(size_list, ones))
        for ones in itertools.product(*(range(k + 1) for k in size_list))
    }
    for one, other in itertools.combinations(gradients, 2):
        if sum(a != b for a, b in zip(one, other, strict=True)) == 1:
            moved = np.abs(gradients[one] - gradients[other]).max()
            farthest = max(farthest, int(moved))
            laws = [
                exponential_probabilities(
                    -np.abs(gradients[d]), epsilon, sensitivity=plan.sensitivity
                )
                for d in (one, other)
            ]
            loss = max(loss, float(np.abs(np.log(laws[0] / laws[1])).max()))
    assert farthest == plan.sensitivity
    assert loss <= epsilon + 1e-12


@given(tables(most=8), st.floats(0.1, 5), st.integers(1, 40), st.data())
def test_the_sensitivity_is_never_exceeded(
    users: Users, reach: float, cap: int, data: st.DataObject
) -> None:
    each = users.expanded()
    i = data.draw(st.integers(0, each.n - 1))
    ones = each.successes.copy()
    ones[i] = data.draw(st.integers(0, int(each.k[i])))
    other = Users(each.k, ones)
    plan = plan_for(each, reach=reach, cap=cap)
    moved = np.abs(gradient_of(plan, other) - gradient_of(plan, each)).max()
    assert moved <= plan.sensitivity


def test_the_result_is_drawn_by_the_exponential_mechanism() -> None:
    users = Users([10, 10, 3], [2, 5, 1], [20, 20, 10])
    plan = plan_for(users, 1.0)
    law = exponential_probabilities(
        -np.abs(gradient_of(plan, users)), 1.0, sensitivity=plan.sensitivity
    )
    rng, runs = generator(1), 1000
    values = np.array([huber(users, 1.0, rng=rng).value for _ in range(runs)])
    steps = values * plan.steps
    np.testing.assert_allclose(steps, np.rint(steps), atol=1e-9)
    grid = np.arange(plan.steps + 1) / plan.steps
    mean = float(law @ grid)
    deviation = math.sqrt(float(law @ (grid - mean) ** 2))
    assert abs(values.mean() - mean) <= 6.5 * deviation / math.sqrt(runs)


# What is estimated


def noiseless(users: Users, **options: Any) -> float:
    return float(
        huber(users, 1.0, rng=generator(), trace=True, **options).trace.noiseless
    )


@given(tables(most=8), st.integers(1, 40))
def test_without_thresholds_it_is_a_weighted_mean(users: Users, cap: int) -> None:
    trace = huber(users, 1.0, reach=1e12, cap=cap, rng=generator(), trace=True).trace
    weights = np.minimum(users.k, cap) * users.counts
    mean = float(weights @ users.means / weights.sum())
    assert trace.noiseless == pytest.approx(mean, abs=1 / trace.plan.steps)
    np.testing.assert_allclose(trace.weights @ users.counts, 1, rtol=1e-12)


def test_a_cap_of_one_without_thresholds_is_the_mean_of_user_means() -> None:
    users = Users([1, 100], [1, 20], [1000, 1000])
    value = noiseless(users, cap=1, reach=1e9)
    assert value == pytest.approx(0.6, abs=1e-3)


def test_with_small_thresholds_it_is_a_median() -> None:
    users = Users([1000] * 5, [100, 200, 300, 800, 900], [3, 2, 4, 1, 3])
    value = noiseless(users, cap=1000, reach=0.01, spread=0.0)
    assert value == pytest.approx(0.3, abs=0.01)


def test_a_threshold_is_one_step_of_the_grid_at_least() -> None:
    # Without a threshold nobody would pull, and no noise could be measured by it.
    users = Users(k=[4] * 9, successes=[1] * 5 + [3] * 4)
    plan = plan_for(users, cap=4, reach=1e-12, spread=0.0)
    assert plan.thresholds.tolist() == [1]
    assert plan.sensitivity == 2 * 4
    value = noiseless(users, cap=4, reach=1e-12, spread=0.0)
    assert 0.0 <= value - 0.25 <= 1 / plan.steps


def test_strange_users_pull_no_harder_than_from_their_thresholds() -> None:
    usual, strange = Users([400], [120], [950]), Users([400], [400], [50])
    users = Users([400, 400], [120, 400], [950, 50])
    trace = huber(
        users, 1.0, cap=400, reach=3.0, spread=0.0, rng=generator(), trace=True
    ).trace
    threshold = trace.threshold[0]
    assert threshold == pytest.approx(3 / 40, abs=1e-3)
    # They pull with 50 T together, the others back with 950 times the shift.
    shift = trace.noiseless - 0.3
    assert shift == pytest.approx(50 / 950 * threshold, abs=2e-3)
    mean = (usual.n * 0.3 + strange.n * 1.0) / users.n
    assert shift < (mean - 0.3) / 5


def test_one_user_can_move_the_minimiser_from_end_to_end() -> None:
    # Why noise on the minimiser is not private without a look at the data.
    options = {"cap": 100, "reach": 0.5, "spread": 0.0}
    low = noiseless(Users([100, 100], [0, 100], [51, 50]), **options)
    high = noiseless(Users([100, 100], [0, 100], [50, 51]), **options)
    assert high - low > 0.9


def test_the_noise_is_close_to_laplace_where_nobody_is_far() -> None:
    users = Users([9, 9, 9], [2, 3, 4], [2000, 6000, 2000])
    trace = huber(users, 1.0, rng=generator(), trace=True).trace
    law = exponential_probabilities(
        -np.abs(gradient_of(trace.plan, users)), 1.0, sensitivity=trace.plan.sensitivity
    )
    grid = np.arange(trace.plan.steps + 1) / trace.plan.steps
    variance = float(law @ (grid - law @ grid) ** 2)
    assert variance == pytest.approx(2 * trace.noise_scale**2, rel=0.02)


def test_alike_users_promise_less_variance_than_the_user_mean() -> None:
    k = sizes.zipf(20_000, 1.5, 2000, generator(2))
    users = Users(k, np.round(0.3 * k))
    trace = huber(users, 1.0, rng=generator(), trace=True).trace
    variances = user_variance(k, 0.3, 0.0004)
    promised = float(np.sum(trace.weights**2 * variances)) + 2 * trace.noise_scale**2
    plain = float(np.sum(variances)) / len(k) ** 2 + 2 / len(k) ** 2
    assert promised < plain / 2


# The plan


@pytest.mark.parametrize(
    "k", [sizes.harmonic(3000), sizes.two_level(3000, 50, 500), sizes.equal(50, 7)]
)
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 10.0])
def test_the_default_cap_has_the_least_predicted_variance(
    k: Any, epsilon: float
) -> None:
    known = by_size(Users(k, k)).sizes

    def predicted(cap: int) -> float:
        plan = plan_huber(known, epsilon, cap=cap)
        shares = plan.weights / plan.total_weight
        variances = 0.05**2 + (0.25 - 0.05**2) / known.k
        noise = 2 * plan.sensitivity / plan.steps / (epsilon * plan.total_weight)
        return float(np.sum(known.counts * shares**2 * variances) + 2 * noise**2)

    chosen = plan_huber(known, epsilon).cap
    powers = [1 << power for power in range(int(k.max()).bit_length())]
    assert chosen in powers
    assert predicted(chosen) <= 1.01 * min(map(predicted, powers))


def test_a_plan_is_made_of_sizes_and_names_its_parts() -> None:
    k = [1, 5, 5, 9]
    plan = plan_for(Users(k, [0, 0, 0, 0]))
    assert plan.sizes.k.tolist() == [1, 5, 9]
    assert plan.sizes.counts.tolist() == [1, 2, 1]
    other = plan_for(Users(k, [1, 5, 2, 9]))
    for name in ("weights", "thresholds"):
        assert getattr(plan, name).tolist() == getattr(other, name).tolist()
    assert (plan.cap, plan.steps) == (other.cap, other.steps)
    parts: list[Any] = [plan.sizes, plan.cap, plan.steps, plan.weights]
    with pytest.raises(TypeError, match="positional"):
        odd(HuberPlan)(*parts, plan.thresholds)


@pytest.mark.slow
@given(tables(most=8), st.floats(0.1, 5), st.integers(1, 40), st.data())
def test_whole_runs_lose_at_most_epsilon(
    users: Users, epsilon: float, outcome: int, data: st.DataObject
) -> None:
    each = users.expanded()
    i = data.draw(st.integers(0, each.n - 1))
    ones = each.successes.copy()
    ones[i] = data.draw(st.integers(0, int(each.k[i])))
    sources = [Transcript([outcome]), Transcript([outcome])]
    values = [
        huber(table, epsilon, rng=source).value
        for table, source in zip((each, Users(each.k, ones)), sources, strict=True)
    ]
    assert values[0] == values[1]
    loss = abs(sources[0].log_likelihood - sources[1].log_likelihood)
    assert loss <= epsilon + 1e-9


def test_the_grid_is_finer_than_the_noise() -> None:
    for n, epsilon in ((10, 0.01), (10, 1.0), (10**4, 1.0), (10**12, 1.0)):
        users = Users([5], [2], [n])
        trace = huber(users, epsilon, rng=generator(), trace=True).trace
        assert COARSEST <= trace.plan.steps <= FINEST
        if trace.plan.steps < FINEST:
            assert 1 / trace.plan.steps <= trace.noise_scale / 4 * 1.01


@pytest.mark.parametrize("n", [10**9, 3 * 10**11])
def test_many_users_are_exact_and_fast(n: int) -> None:
    users = Users([1, 8, 300], [0, 3, 120], [n, n, n])
    start = time.process_time()
    trace = huber(users, 1.0, rng=generator(), trace=True).trace
    assert time.process_time() - start < 2
    assert trace.plan.total_weight * trace.plan.steps < 2**62
    gradient = gradient_of(trace.plan, users)
    assert gradient[0] < 0 < gradient[-1]


def test_more_samples_than_can_be_counted_exactly_are_refused() -> None:
    users = Users([2**40], [2**39], [2**20])
    with pytest.raises(ValueError, match=r"^users: a total weight"):
        huber(users, 1.0, cap=2**40, rng=generator())
    assert 0 <= huber(users, 1.0, cap=1, rng=generator()).value <= 1


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"cap": 0}, ValueError, "cap must be"),
        ({"cap": 1.5}, TypeError, "cap must be"),
        ({"cap": "private"}, TypeError, "cap must be"),
        ({"reach": 0}, ValueError, "reach must be"),
        ({"reach": 1e-13}, ValueError, "reach must be"),
        ({"reach": 1e300}, ValueError, "reach must be"),
        ({"reach": math.inf}, ValueError, "reach must be"),
        ({"reach": "far"}, TypeError, "reach must be"),
        ({"spread": -0.1}, ValueError, "spread must be"),
        ({"spread": 0.6}, ValueError, "spread must be"),
        ({"spread": None}, TypeError, "spread must be"),
    ],
)
def test_impossible_options_are_refused(
    options: dict[str, Any], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=f"^{message}"):
        huber(Users([3], [1]), 1.0, rng=generator(), **options)


# How sure it is.


def farthest_mean(y: float, shares: Any, thresholds: Any) -> float:
    """Return the largest p of any laws of means, p on average, whose pulls balance.

    A linear program over laws on a grid, one law for each threshold.
    """
    points = np.linspace(0.0, 1.0, 21)
    groups, width = len(shares), len(points)
    pulls = [np.clip(points - y, -t, t) for t in thresholds]
    balance = np.concatenate(
        [s * pull for s, pull in zip(shares, pulls, strict=True)] + [[0.0]]
    )
    rows, values = [balance], [0.0]
    for group in range(groups):
        own = slice(group * width, (group + 1) * width)
        for coefficients, last, value in ((1.0, 0.0, 1.0), (points, -1.0, 0.0)):
            row = np.zeros(groups * width + 1)
            row[own], row[-1] = coefficients, last
            rows.append(row)
            values.append(value)
    goal = np.zeros(groups * width + 1)
    goal[-1] = -1.0
    found = optimize.linprog(goal, A_eq=np.array(rows), b_eq=values, bounds=(0.0, 1.0))
    assert found.success
    return -float(found.fun)


@pytest.mark.parametrize("y", [0.0, 0.1, 0.3, 0.5, 0.9, 1.0])
@pytest.mark.parametrize("thresholds", [(0.1,), (0.3,), (1.0,), (0.1, 0.2, 1.0)])
def test_no_mean_whose_pulls_balance_is_further_off_and_one_is_as_far(
    y: float, thresholds: tuple[float, ...]
) -> None:
    # All corners lie on the grid of the linear program.
    shares = np.array([0.5, 0.3, 0.2][: len(thresholds)])
    shares = shares / shares.sum()
    farthest = farthest_mean(y, shares, thresholds) - y
    assert hidden(y, shares, np.array(thresholds)) == pytest.approx(farthest, abs=1e-9)


def test_an_interval_holds_a_minority_beyond_all_thresholds() -> None:
    users = Users([400, 400], [80, 400], [90_000, 10_000])
    estimate = huber(users, 5.0, rng=generator(), trace=True)
    low, high = estimate.interval()
    assert low <= 0.28 <= high
    assert high < 0.8
    low, high = estimate.interval(clipping=False)
    assert not low <= 0.28 <= high


def test_the_uncertainty_is_that_of_the_weights_and_of_what_thresholds_hide() -> None:
    users = Users([1, 9], [0, 4], [400, 100])
    plan = plan_for(users, cap=4)
    sure = known_error(plan, 0.5, 1e-6)
    squares = (400 * 1**2 + 100 * 4**2) / 800**2
    assert sure.noise == 1e-6
    assert sure.sampling**2 == pytest.approx(squares / 4)
    # 3 standard errors below and above, and the grid.
    shares, thresholds = np.array([0.5, 0.5]), plan.thresholds / plan.steps
    off = 3 * sure.standard_error
    expected = max(hidden(y, shares, thresholds) for y in (0.5 - off, 0.5, 0.5 + off))
    assert sure.clipped is not None
    assert sure.clipped.moved == pytest.approx(expected + 1 / plan.steps)
    assert sure.clipped.noise == 0.0


def test_where_nobody_can_be_beyond_a_threshold_only_the_grid_is_allowed_for() -> None:
    plan = plan_for(Users([1, 9], [0, 4], [400, 100]), reach=1e6)
    clipped = known_error(plan, 0.3, 1e-6).clipped
    assert clipped is not None
    assert clipped.moved == pytest.approx(1 / plan.steps)


@pytest.mark.parametrize("y", [0.03, 0.2, 0.4])
def test_a_minority_may_be_hidden_on_either_side(y: float) -> None:
    plan = plan_for(Users([1, 900], [0, 4], [400, 100]))
    below, above = (known_error(plan, value, 1e-6).clipped for value in (y, 1.0 - y))
    assert below is not None
    assert above is not None
    assert below.moved == pytest.approx(above.moved)
