"""Contribution bounding: exact privacy, caps, shares of the budget, the variance.

Privacy is checked exactly, over all neighbouring pairs of small tables.

Monte Carlo.  For a random seed a true comparison fails with a chance of at most
1e-10 (a mean within 6.5 standard errors) or 6e-9 (a variance within 6.5, allowing
for skewness).  There are 2 of each: together below 2e-8.
"""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from hetlit import Users, sizes
from hetlit.estimators.baselines import (
    contribution_bounding,
    pooled_mean,
)
from hetlit.estimators.baselines.bounding import cap_utilities, known_error
from hetlit.privacy.selection import exponential_probabilities
from hetlit.users.groups import by_size
from tests.neighbours import SMALL, kinds, table
from tests.quiet import Quiet, generator, trace_of
from tests.transcripts import Transcript

# Contribution bounding


def bounded(users: Any, cap: int, epsilon: float, **options: Any) -> Any:
    return contribution_bounding(
        table(users), epsilon, cap=cap, rng=Quiet(), trace=True, **options
    ).trace


@pytest.mark.parametrize("cap", [1, 2, 3, 5])
@pytest.mark.parametrize("count_share", [None, 0.5, 0.2])
def test_sum_and_count_cost_epsilon_for_every_neighbour(
    cap: int, count_share: float | None
) -> None:
    # A user with more than cap samples contributes what one with cap samples can.
    epsilon, others = 0.8, ((2, 1), (1, 0))
    traces = [
        bounded((*others, user), cap, epsilon, count_share=count_share)
        for user in kinds(cap)
    ]
    sums, counts = (
        np.array([t.ones - t.count / 2 for t in traces]),
        np.array([t.count for t in traces]),
    )
    by_sum = np.abs(sums[:, None] - sums)
    by_count = np.abs(counts[:, None] - counts)
    assert by_sum.max() == cap
    assert by_count.max() == cap - 1
    assert traces[0].sum_scale > 0
    # The log-ratio of the densities of the two noisy numbers is at most this.
    loss = by_sum / traces[0].sum_scale
    if traces[0].count_scale > 0:
        loss = loss + by_count / traces[0].count_scale
    else:
        assert by_count.max() == 0
    assert loss.max() <= epsilon + 1e-12
    if count_share is None:
        assert loss.max() == pytest.approx(epsilon, abs=1e-12)
        assert traces[0].sum_scale == pytest.approx(cap / epsilon)
    else:
        for_count = count_share * epsilon
        assert by_sum.max() / traces[0].sum_scale == pytest.approx(epsilon - for_count)
        if cap > 1:
            assert by_count.max() / traces[0].count_scale == pytest.approx(for_count)


@given(st.lists(st.sampled_from(kinds(9)), min_size=1, max_size=10), st.integers(1, 10))
def test_nobody_contributes_more_than_the_cap(users: Any, cap: int) -> None:
    trace = bounded(users, cap, 1.0)
    assert trace.count == sum(min(k, cap) for k, _ in users)
    least = sum(max(0, min(k, cap) - (k - ones)) for k, ones in users)
    most = sum(min(min(k, cap), ones) for k, ones in users)
    assert least <= trace.ones <= most


@pytest.mark.parametrize("count_share", [None, 0.5])
def test_a_large_cap_without_noise_gives_the_pooled_mean(
    count_share: float | None,
) -> None:
    for cap in (20, 21, 10**7):
        estimate = contribution_bounding(
            SMALL, 1.0, cap=cap, count_share=count_share, rng=Quiet()
        )
        pooled = trace_of(pooled_mean, SMALL).noiseless
        assert estimate.value == pytest.approx(pooled, abs=1e-14)


def test_a_cap_of_one_needs_no_noise_on_the_count() -> None:
    for count_share, scale in ((None, 0.5), (0.5, 1.0)):
        rng = Quiet()
        estimate = contribution_bounding(
            SMALL, 2.0, cap=1, count_share=count_share, rng=rng, trace=True
        )
        # The count is n, which is public: it is not asked for, and not in the ledger.
        assert rng.scales == [scale]
        assert [step.name for step in estimate.ledger.steps] == ["sum"]
        assert estimate.trace.count == SMALL.n
        assert estimate.trace.sum_scale == scale
        assert estimate.trace.count_scale == 0
        value = 0.5 + (estimate.trace.ones - SMALL.n / 2) / SMALL.n
        assert estimate.value == pytest.approx(value, abs=1e-15)


def test_a_private_cap_that_comes_out_as_one_releases_only_the_sum() -> None:
    estimate = contribution_bounding(
        SMALL, 2.0, cap="private", k_max=8, rng=Transcript([0, 3.5]), trace=True
    )
    assert estimate.trace.cap == 1
    assert [step.name for step in estimate.ledger.steps] == ["cap", "sum"]
    assert estimate.ledger.epsilon == pytest.approx(2.0, rel=1e-12)
    assert estimate.value == pytest.approx(0.5 + 3.5 / SMALL.n, rel=1e-12)


class Always(np.random.Generator):
    """Gives every user who is cut as many ones as she can give."""

    def __init__(self) -> None:
        super().__init__(np.random.PCG64(0))

    def hypergeometric(self, good: Any, bad: Any, number: Any, size: Any = None) -> Any:
        return np.minimum(good, number)


@pytest.mark.parametrize("count_share", [None, 0.3])
@pytest.mark.parametrize("cap", [1, 2, 3, "private"])
def test_whole_runs_of_contribution_bounding_lose_at_most_epsilon(
    cap: Any, count_share: float | None
) -> None:
    epsilon, others = 0.8, ((2, 1), (1, 0))
    options: dict[str, Any] = {"cap": cap, "count_share": count_share}
    choices: list[list[float]] = [[]]
    if cap == "private":
        options["k_max"], choices = 3, [[0], [1], [2]]
    largest = 0.0
    for choice in choices:
        for answers in itertools.product([-20.0, 0.3, 25.0], repeat=2):
            logs = []
            for user in kinds(4):
                source = Transcript([*choice, *answers], Always())
                users = table((*others, user))
                contribution_bounding(users, epsilon, rng=source, **options)
                logs.append(source.log_likelihood)
            largest = max(largest, max(logs) - min(logs))
    assert largest <= epsilon + 1e-12
    if count_share is None and cap != "private":
        assert largest == pytest.approx(epsilon, rel=1e-9)


def test_releasing_at_once_takes_half_the_noise_of_releasing_one_by_one() -> None:
    at_once = bounded([(9, 3)] * 4, 6, 1.0)
    one_by_one = bounded([(9, 3)] * 4, 6, 1.0, count_share=0.5)
    assert at_once.sum_scale == pytest.approx(one_by_one.sum_scale / 2)


class Loud(Quiet):
    """Adds 5 to the sum, and so much to half the count that it drowns."""

    def __init__(self, drowning: float) -> None:
        super().__init__()
        self.drowning = drowning

    def laplace(self, loc: Any = 0.0, scale: Any = 1.0, size: Any = None) -> Any:
        self.scales.append(scale)
        return loc + np.array([5.0, self.drowning])


@pytest.mark.parametrize(("drowning", "count"), [(-1e9, SMALL.n), (1e9, 4 * SMALL.n)])
def test_the_count_stays_within_public_bounds(drowning: float, count: int) -> None:
    estimate = contribution_bounding(SMALL, 1.0, cap=4, rng=Loud(drowning), trace=True)
    centred_sum = estimate.trace.ones - estimate.trace.count / 2
    assert estimate.value == pytest.approx(0.5 + (centred_sum + 5) / count, rel=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize("count_share", [None, 0.5])
def test_contribution_bounding_is_centred_and_has_the_predicted_variance(
    count_share: float | None,
) -> None:
    rng, runs, cap, epsilon = generator(3), 4000, 6, 1.0
    users = Users([1, 4, 30], [0, 1, 12], [3000, 2000, 1000])
    values = np.array(
        [
            contribution_bounding(
                users, epsilon, cap=cap, count_share=count_share, rng=rng
            ).value
            for _ in range(runs)
        ]
    )
    contributed = users.counts * np.minimum(users.k, cap)
    count = contributed.sum()
    mean = float(contributed @ users.means / count)
    trace = bounded([(9, 3)], cap, epsilon, count_share=count_share)
    sampling = 1000 * stats.hypergeom(30, 12, cap).var()
    noise = 2 * trace.sum_scale**2 + 2 * ((mean - 0.5) * trace.count_scale) ** 2
    variance = (sampling + noise) / count**2
    # A ratio is biased by a relative variance of its denominator.
    bias = abs(mean - 0.5) * 2 * (trace.count_scale / count) ** 2
    assert abs(values.mean() - mean) <= 6.5 * math.sqrt(variance / runs) + 2 * bias
    # Fourth cumulant of Laplace noise: 12 scale^4; that of the draws is negligible.
    fourth = 12 * (trace.sum_scale**4 + ((mean - 0.5) * trace.count_scale) ** 4)
    error = math.sqrt((fourth / count**4 + 2 * variance**2) / runs)
    measured = float(np.mean((values - mean) ** 2))
    assert abs(measured - variance) <= 6.5 * error + 0.01 * variance


# A private cap


CAPS = np.array([1, 2, 4, 5])


@pytest.mark.parametrize("epsilon", [0.5, 3.0])
def test_the_private_cap_is_private_for_every_neighbour(epsilon: float) -> None:
    laws, utilities = {}, {}
    for k in itertools.combinations_with_replacement(range(1, 7), 3):
        known = by_size(Users(k, [0] * 3)).sizes
        utilities[k] = cap_utilities(known, CAPS, 0.9 * epsilon)
        laws[k] = np.log(exponential_probabilities(utilities[k], 0.1 * epsilon))
    farthest = loss = 0.0
    for k, other in itertools.combinations(laws, 2):
        if max(len(set_minus(k, other)), len(set_minus(other, k))) <= 1:
            moved = np.abs(utilities[k] - utilities[other]).max()
            farthest = max(farthest, moved)
            loss = max(loss, np.abs(laws[k] - laws[other]).max())
    assert farthest == 1
    assert loss <= 0.1 * epsilon + 1e-12


def set_minus(one: tuple[int, ...], other: tuple[int, ...]) -> list[int]:
    rest = list(one)
    for value in other:
        if value in rest:
            rest.remove(value)
    return rest


def test_cap_utilities_count_the_users_beyond_each_cap() -> None:
    known = by_size(Users([1, 2, 5, 9], [0] * 4, [100, 50, 20, 10])).sizes
    # 80, 30, 30, 20 users hold more; 16 cap / epsilon^2 is 4, 8, 16, 20.
    utilities = cap_utilities(known, CAPS, 2.0)
    np.testing.assert_allclose(utilities, [-76, -22, -14, 10 - 20], atol=1e-12)


def test_the_best_cap_is_close_to_the_least_variance() -> None:
    caps = 2 ** np.arange(12)
    for k in (
        sizes.harmonic(50_000),
        sizes.zipf(50_000, 1.5, 2000, generator()),
        sizes.geometric(50_000, 20, generator()),
        sizes.two_level(50_000, 200, 1000),
    ):
        known = by_size(Users(k, k)).sizes
        best = int(np.argmax(cap_utilities(known, caps, 1.0)))
        samples = np.array([np.minimum(k, cap).sum() for cap in caps])
        variances = 0.25 / samples + 2 * (caps / samples) ** 2
        assert variances[best] <= 1.25 * variances.min()


@pytest.mark.parametrize(
    ("k_max", "allowed"), [(1, {1}), (5, {1, 2, 4, 5}), (8, {1, 2, 4, 8})]
)
def test_the_caps_allowed_are_powers_of_two_and_k_max(
    k_max: int, allowed: set[int]
) -> None:
    # With hardly any budget for it, every cap is about equally likely.
    rng = generator(4)
    options: dict[str, Any] = {"cap": "private", "k_max": k_max, "cap_share": 1e-9}
    seen = {
        contribution_bounding(SMALL, 1.0, rng=rng, trace=True, **options).trace.cap
        for _ in range(150)  # one is missed with a chance below 4 (3/4)^150 < 1e-17
    }
    assert seen == allowed


def test_users_may_hold_more_than_k_max() -> None:
    users = Users([1000], [500], [10**6])
    estimate = contribution_bounding(
        users, 1.0, cap="private", k_max=64, rng=generator(), trace=True
    )
    assert estimate.trace.cap == 64
    assert estimate.value == pytest.approx(0.5, abs=0.01)


def test_a_private_cap_takes_its_share_of_the_budget() -> None:
    rng = Quiet()
    estimate = contribution_bounding(
        SMALL, 2.0, cap="private", k_max=8, cap_share=0.25, rng=rng, trace=True
    )
    assert [step.epsilon for step in estimate.ledger.steps] == [0.5, 1.5]
    assert rng.scales[0] == pytest.approx(estimate.trace.cap / 1.5)
    parts = contribution_bounding(
        SMALL, 2.0, cap="private", k_max=8, count_share=0.4, rng=rng
    ).ledger.steps
    assert [step.name for step in parts] == ["cap", "sum", "count"]
    assert [step.epsilon for step in parts] == pytest.approx([0.2, 1.08, 0.72])


# Arguments


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"cap": 0}, ValueError, "cap must be"),
        ({"cap": -3}, ValueError, "cap must be"),
        ({"cap": 2.0}, TypeError, "cap must be"),
        ({"cap": 2.5}, TypeError, "cap must be"),
        ({"cap": None}, TypeError, "cap must be"),
        ({"cap": True}, TypeError, "cap must be"),
        ({"cap": 10**7 + 1}, ValueError, "cap must be at most 10000000"),
        ({"cap": 2**63}, ValueError, "cap must be"),
        ({"cap": "median"}, ValueError, "cap must be one of"),
        ({"cap": "private"}, TypeError, "k_max is needed"),
        ({"cap": "private", "k_max": 0}, ValueError, "k_max must be"),
        ({"cap": "private", "k_max": 10**7 + 1}, ValueError, "k_max must be at most"),
        ({"cap": "private", "k_max": 2.5}, TypeError, "k_max must be"),
        ({"cap": 5, "k_max": 50}, ValueError, "k_max is for"),
        ({"cap": 5, "cap_share": 1}, ValueError, "cap_share must be"),
        ({"cap": 5, "cap_share": "half"}, TypeError, "cap_share must be"),
        ({"cap": 5, "count_share": 0.0}, ValueError, "count_share must be"),
        ({"cap": 5, "count_share": 1.0}, ValueError, "count_share must be"),
        ({"cap": 5, "count_share": "half"}, TypeError, "count_share must be"),
    ],
)
def test_impossible_options_are_refused(
    options: dict[str, Any], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=f"^{message}"):
        contribution_bounding(SMALL, 1.0, rng=generator(), **options)


def test_the_cap_must_be_given() -> None:
    with pytest.raises(TypeError, match="cap"):
        contribution_bounding(SMALL, 1.0, rng=generator())  # type: ignore[call-arg]


# How sure it is.


@given(st.lists(st.integers(1, 30), min_size=1, max_size=20), st.integers(1, 40))
def test_the_bound_on_the_sampling_error_needs_nobodys_size(
    k: list[int], cap: int
) -> None:
    gave = np.minimum(k, cap).astype(float)
    variance = 0.25 * float(np.sum(gave**2)) / float(gave.sum()) ** 2
    sure = known_error(0.5, len(k), cap, float(gave.sum()), (0.0, 0.0))
    assert sure.sampling**2 >= variance * (1 - 1e-12)
    # It is attained where everybody gives one sample, or as many as she may.
    if set(gave) <= {1.0, float(cap)}:
        assert sure.sampling**2 == pytest.approx(variance)


@pytest.mark.parametrize("off", [-3.0, 0.0, 3.0])
def test_a_noisy_count_cannot_hide_how_uneven_contributions_are(off: float) -> None:
    # 90 users gave 1 sample and 10 gave 9; the largest variance is at 180 samples.
    variance = (90 + 10 * 9**2) / 180**2 / 4
    for count in (180.0 + 10 * off, 180.0):
        sure = known_error(0.5, 100, 9, count, (0.0, 30.0))
        assert sure.sampling**2 == pytest.approx(variance)
    least = known_error(0.5, 100, 9, 100.0, (0.0, 0.0)).sampling ** 2
    assert least == pytest.approx(1 / 100 / 4)


def test_noise_in_the_count_matters_as_far_as_the_value_is_from_half() -> None:
    # p - estimate = ((p - 1/2) count noise - sum noise) / noisy count
    sure = known_error(0.2, 100, 9, 400.0, (8.0, 16.0))
    assert sure.noise == pytest.approx(math.hypot(8.0, 0.3 * 16.0) / 400.0)
    for scripted in (0.0, 3.0):
        noisy_sum, noisy_count = (0.2 - 0.5) * 400.0 + 2.0, 400.0 + scripted
        gone = 0.5 + noisy_sum / noisy_count - 0.2
        assert gone == pytest.approx((2.0 + 0.3 * scripted) / noisy_count)


@pytest.mark.parametrize(
    ("cap", "share", "scales"),
    [(4, None, (4.0, 8.0)), (4, 0.5, (8.0, 6.0)), (1, None, (1.0, 0.0))],
)
def test_the_uncertainty_is_made_of_what_was_released(
    cap: int, share: float | None, scales: tuple[float, float]
) -> None:
    estimate = contribution_bounding(
        SMALL, 1.0, cap=cap, count_share=share, rng=Quiet(), trace=True
    )
    count = float(estimate.trace.count)
    assert estimate.uncertainty == known_error(estimate.value, 100, cap, count, scales)
