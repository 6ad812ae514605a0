"""The tail test: what it counts, what it can overlook, how its share is chosen."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import integrate, stats

from hetlit import Users
from hetlit.estimators.tails import (
    CALMS,
    LARGEST,
    MINORITIES,
    RISK,
    SLACK,
    SMALLEST,
    Intervals,
    TailTest,
    Unclipped,
    best_test,
    light_share,
    mean_variance,
    outsiders,
    spread_if_untested,
    squared_weights,
)
from hetlit.users.groups import by_size_class
from tests.neighbours import kinds, table

# What it counts

K_MAX = 6
OTHERS = [(1, 1), (2, 1), (5, 3), (6, 6)]


def law(k: Any) -> tuple[Any, Any, Any]:
    """Return (lower, upper, deviations) that depend on sizes, some of them narrow."""
    half = 0.3 / np.sqrt(k)
    lower, upper = np.maximum(0.5 - half, 0.0), np.minimum(0.4 + half, 1.0)
    return lower, upper, 0.3 / np.sqrt(k)


def counted(users: Users) -> float:
    groups = by_size_class(users)
    return outsiders(groups, *law(groups.sizes.k))


def counted_by_hand(users: Users) -> float:
    total = 0.0
    for k, ones, count in zip(users.k, users.successes, users.counts, strict=True):
        lower, upper, deviation = (float(x) for x in law(np.float64(k)))
        mean = ones / k
        distance = max(lower - mean, mean - upper, 0.0)
        total += count * min(distance / (2.0 * deviation), 1.0)
    return total


@pytest.mark.parametrize("sizes_change", [False, True])
def test_one_user_moves_the_tail_test_by_one_at_most_and_at_worst(
    sizes_change: bool,
) -> None:
    moves = [
        abs(counted(table([*OTHERS, one])) - counted(table([*OTHERS, other])))
        for one, other in itertools.product(kinds(K_MAX), repeat=2)
        if sizes_change or one[0] == other[0]
    ]
    assert max(moves) == pytest.approx(1.0, abs=1e-12)
    assert max(moves) <= 1.0 + 1e-12
    # Not all or nothing: some users count in part.
    assert any(0.1 < move < 0.9 for move in moves)


@given(
    st.lists(
        st.tuples(st.sampled_from(kinds(K_MAX)), st.integers(1, 50)),
        min_size=1,
        max_size=10,
    )
)
def test_the_tail_test_counts_how_far_each_user_is_outside(
    rows: list[tuple[tuple[int, int], int]],
) -> None:
    k = [k for (k, _), _ in rows]
    ones = [ones for (_, ones), _ in rows]
    users = Users(k, ones, [count for _, count in rows])
    assert counted(users) == pytest.approx(counted_by_hand(users), rel=1e-12, abs=1e-12)
    assert counted(users.expanded()) == pytest.approx(counted(users), rel=1e-12)


def test_no_user_counts_below_zero_or_above_one() -> None:
    for one in kinds(K_MAX):
        assert 0.0 <= counted(table([one])) <= 1.0
    # Far outside, she counts as one; inside, as nobody.
    assert counted(table([(6, 6)])) == 1.0
    assert counted(table([(2, 1)])) == 0.0


# What tails that are light put outside


@pytest.mark.parametrize("reach", [0.0, 0.5, 1.0, 2.75, 5.0])
def test_the_share_of_light_tails_is_a_gaussian_integral(reach: float) -> None:
    # Both sides, two standard deviations outside counting as one.
    half, _ = integrate.quad(
        lambda z: (z - reach) / 2.0 * stats.norm.pdf(z), reach, reach + 30.0
    )
    assert light_share(reach) == pytest.approx(2.0 * half, rel=1e-7)


def one_size(
    count: int = 400, deviation: float = 0.05, reach: float = 2.0
) -> Intervals:
    return Intervals(
        k=np.array([30.0]),
        counts=np.array([count]),
        weights=np.array([1.0 / count]),
        lower=np.array([0.2]),
        upper=np.array([0.4]),
        deviations=np.array([deviation]),
        reach=reach,
    )


def several() -> Intervals:
    """Small users are not clipped, the others are, on one side or on both."""
    return Intervals(
        k=np.array([1.0, 5.0, 40.0, 300.0]),
        counts=np.array([500, 300, 150, 50]),
        weights=np.array([0.0002, 0.001, 0.002, 0.006]),
        lower=np.array([0.0, 0.0, 0.15, 0.22]),
        upper=np.array([1.0, 0.8, 0.45, 0.38]),
        deviations=np.array([0.45, 0.2, 0.08, 0.04]),
        reach=2.0,
    )


def test_weights_of_these_intervals_add_up_to_one() -> None:
    intervals = several()
    assert np.sum(intervals.counts * intervals.weights) == pytest.approx(1.0)


@pytest.mark.parametrize("epsilon", [0.1, 2.0])
@pytest.mark.parametrize("calm", CALMS)
def test_the_limit_leaves_room_for_noise_and_light_tails(
    epsilon: float, calm: float
) -> None:
    intervals = several()
    assert intervals.users == 500  # all but those who cannot be clipped
    limit = intervals.limit(epsilon, calm)
    light = SLACK * 500 * light_share(2.0)
    assert limit == pytest.approx(calm / epsilon + light, rel=1e-12)
    # A false alarm: Laplace noise of scale 1/epsilon beyond the calm part.
    alarm = stats.laplace(scale=1.0 / epsilon).sf(limit - light)
    assert alarm == pytest.approx(0.5 * math.exp(-calm), rel=1e-9)


# What it can overlook


def test_rates_far_from_the_centre_are_caught_and_moved_as_users_are() -> None:
    intervals, centre = several(), 0.3
    rates, caught, moved = intervals.outside(centre)
    assert {0.0, 1.0} <= set(rates.tolist())  # the farthest there are
    assert (rates < centre).any()
    assert (rates > centre).any()
    groups_of = zip(
        intervals.counts,
        intervals.weights,
        intervals.lower,
        intervals.upper,
        intervals.deviations,
        strict=True,
    )
    by_hand = list(groups_of)
    for rate, count, move in zip(rates, caught, moved, strict=True):
        total = shift = 0.0
        for users, weight, lower, upper, deviation in by_hand:
            distance = abs(rate - min(max(rate, lower), upper))
            total += users * min(distance / (2.0 * deviation), 1.0)
            shift += users * weight * distance
        assert count == pytest.approx(total, rel=1e-12)
        assert move == pytest.approx(shift, rel=1e-12)
        assert count > 0.0


def test_the_worst_move_is_the_largest_per_user_that_counts() -> None:
    intervals, centre = several(), 0.3
    _, caught, moved = intervals.outside(centre)
    ratios = [move / count for move, count in zip(moved, caught, strict=True)]
    assert intervals.worst_move(centre) == max(ratios) > 0.0
    assert len(set(ratios)) > 3
    # A mixture of rates has no more than its worst.
    parts = np.random.default_rng(2).dirichlet(np.ones(len(ratios)), size=100)
    assert (parts @ moved <= max(ratios) * (parts @ caught) * (1 + 1e-9)).all()


def unclipped_everywhere() -> Intervals:
    return Intervals(
        k=np.array([3.0]),
        counts=np.array([10]),
        weights=np.array([0.1]),
        lower=np.zeros(1),
        upper=np.ones(1),
        deviations=np.array([0.2]),
        reach=2.0,
    )


def test_nothing_is_outside_of_everything() -> None:
    intervals = unclipped_everywhere()
    assert intervals.users == 0.0
    assert intervals.worst_move(0.3) == 0.0
    assert intervals.variance(0.3, 5.0) == 0.0
    risks = intervals.risks(
        0.3, 1.0, np.array([1.0]), [Unclipped(variance=1.0, squares=0.1)]
    )
    assert risks.tolist() == [0.0]


@pytest.mark.parametrize("caught", [-3.0, 0.0, 12.0])
def test_what_clipping_moved_is_the_worst_move_per_user_caught(caught: float) -> None:
    intervals = several()
    move = intervals.worst_move(0.3)
    clipped = intervals.clipped(0.3, caught, 4.0)
    # Without those whom light tails put outside.
    expected = move * (caught - 500 * light_share(2.0))
    assert clipped.moved == pytest.approx(expected, rel=1e-12)
    assert clipped.noise == move * 4.0


@pytest.mark.parametrize("count", [-5.0, 0.0, 3.0, 40.0, 1e6])
def test_a_minority_adds_its_share_times_its_squared_distance(count: float) -> None:
    intervals, centre = several(), 0.3
    rates, caught, _ = intervals.outside(centre)
    worst = max(
        min(max(count, 0.0) / seen, LARGEST) * (rate - centre) ** 2
        for rate, seen in zip(rates, caught, strict=True)
    )
    assert intervals.variance(centre, count) == pytest.approx(worst, rel=1e-12)
    assert intervals.variance(centre, count) <= LARGEST * 0.49 * (1 + 1e-12)


@pytest.mark.parametrize("caught", [-20.0, 0.0, 15.0])
def test_guesses_of_the_spread_allow_for_whom_the_test_may_have_caught(
    caught: float,
) -> None:
    intervals, spread, scale = several(), 0.002, 4.0
    calm = intervals.spread_if_calm(0.3, spread, caught)
    alarmed = intervals.spread_if_alarmed(0.3, spread, caught, scale)
    # The middle of a cell of factor 2 is the root of 2 below its end.
    assert calm == pytest.approx(
        math.sqrt(2.0) * spread + intervals.variance(0.3, caught)
    )
    # Two standard deviations of a number with this mean.
    number = caught + 3.0 * scale + 2.0 * math.sqrt(max(caught, 0.0))
    assert alarmed == pytest.approx(spread + intervals.variance(0.3, number))
    assert min(calm, alarmed) >= spread


@pytest.mark.parametrize("centre", [0.0, 0.3, 0.8])
def test_without_a_test_the_largest_minority_may_be_as_far_away_as_can_be(
    centre: float,
) -> None:
    # The variance of a rate that is elsewhere for a share f of users: f (1-f) d^2.
    worst = max(LARGEST * (1.0 - LARGEST) * (rate - centre) ** 2 for rate in (0.0, 1.0))
    found = spread_if_untested(centre, 0.002)
    assert found == pytest.approx(math.sqrt(2.0) * 0.002 + worst, rel=1e-12)


MEANS = (Unclipped(variance=2e-5, squares=1e-3), Unclipped(variance=1e-5, squares=4e-3))
GRID = MINORITIES[:, None]
FINE = np.linspace(SMALLEST, LARGEST, 1001)[:, None]


def chance_bound(epsilon: float, limit: float, counted: Any) -> Any:
    """Return the bound on Pr(unnoticed) if so many count, on average."""
    exponent = epsilon * limit + counted * np.expm1(-epsilon)
    return np.minimum(1.0, 0.5 * np.exp(np.minimum(exponent, 1.0)))


def worst_added(
    intervals: Intervals,
    centre: float,
    shares: Any,
    unnoticed: Any,
    means: tuple[Unclipped, ...],
) -> float:
    """Return the most a minority adds, over its shares and the rates."""
    rates, _, moved = intervals.outside(centre)
    further = shares * (1.0 - shares) * (rates - centre) ** 2
    errors = [mean.variance + mean.squares * further for mean in means]
    return float(np.max(unnoticed * (shares * moved) ** 2 / np.minimum(*errors)))


@pytest.mark.parametrize("intervals", [one_size(), one_size(4000), several()])
@pytest.mark.parametrize("epsilon", [0.02, 0.1, 0.5, 2.0, 100.0])
@pytest.mark.parametrize("means", [MEANS, (MEANS[0], MEANS[0])])
def test_the_risk_is_that_of_the_worst_share_and_rate(
    intervals: Intervals, epsilon: float, means: tuple[Unclipped, ...]
) -> None:
    limits = np.array([intervals.limit(epsilon, calm) for calm in CALMS])
    risks = intervals.risks(0.3, epsilon, limits, means)
    _, caught, _ = intervals.outside(0.3)
    for limit, risk in zip(limits, risks, strict=True):
        found, searched = (
            worst_added(
                *(intervals, 0.3, shares),
                chance_bound(epsilon, limit, shares * caught),
                means,
            )
            for shares in (GRID, FINE)
        )
        assert risk == pytest.approx(found, rel=1e-9)
        # Shares between those that are looked at are no surprise.
        assert searched <= 1.3 * risk


def test_shares_and_rates_are_looked_at_from_end_to_end() -> None:
    assert MINORITIES[0] == pytest.approx(SMALLEST, rel=1e-12)
    assert MINORITIES[-1] == pytest.approx(LARGEST, rel=1e-12)
    assert np.max(MINORITIES[1:] / MINORITIES[:-1]) < 1.2


@pytest.mark.parametrize("deviation", [0.02, 0.3])
@pytest.mark.parametrize("epsilon", [0.05, 0.5, 3.0])
def test_a_minority_goes_unnoticed_no_more_often_than_the_risk_says(
    epsilon: float, deviation: float
) -> None:
    # Users of one size: N is binomial, times what each of them counts.
    intervals = one_size(deviation=deviation)
    limits = np.array([intervals.limit(epsilon, calm) for calm in CALMS])
    risks = intervals.risks(0.3, epsilon, limits, MEANS)
    _, caught, _ = intervals.outside(0.3)
    number = np.arange(401)
    law = stats.binom(400, GRID).pmf(number)
    noise = stats.laplace(scale=1.0 / epsilon)
    for limit, risk in zip(limits, risks, strict=True):
        exact = law @ noise.cdf(limit - np.outer(number, caught / 400))
        bound = chance_bound(epsilon, limit, GRID * caught)
        assert (exact <= bound * (1 + 1e-9)).all()
        assert worst_added(intervals, 0.3, GRID, exact, MEANS) <= risk * (1 + 1e-9)


# The choice of share and limit


def tail_test(
    number: int, epsilon: float, users: int, calm: float, alarmed: float
) -> TailTest[int]:
    return TailTest(
        epsilon=epsilon,
        intervals=one_size(users, deviation=0.1 + 0.05 * number, reach=3.5),
        mean=number,
        mean_epsilon=1.0,
        calm=calm,
        alarmed=alarmed,
    )


def pairs(tests: list[TailTest[int]], centre: float) -> Iterator[tuple[Any, ...]]:
    """Yield (variance, risk, test, limit) for every test and limit."""
    for test in tests:
        for calm in CALMS:
            limit = test.intervals.limit(test.epsilon, calm)
            alarm = 0.5 * math.exp(-calm)
            variance = (1.0 - alarm) * test.calm + alarm * test.alarmed
            (risk,) = test.intervals.risks(
                centre, test.epsilon, np.array([limit]), MEANS
            )
            yield variance, float(risk), test, limit


@settings(max_examples=200)
@given(
    rows=st.lists(
        st.tuples(
            st.floats(0.05, 3.0),
            st.integers(50, 4000),
            st.floats(0.1, 1.0),
            st.floats(0.1, 5.0),
        ),
        max_size=4,
    ),
    without=st.floats(0.1, 2.0),
)
def test_the_best_test_is_the_cheapest_of_those_with_little_risk(
    rows: list[tuple[float, int, float, float]], without: float
) -> None:
    tests = [tail_test(number, *row) for number, row in enumerate(rows)]
    chosen = best_test(tests, 0.3, without, MEANS)
    admitted = [
        pair for pair in pairs(tests, 0.3) if pair[1] <= RISK and pair[0] < without
    ]
    if chosen is None:
        assert not admitted
        return
    test, limit = chosen
    least = min(variance for variance, *_ in admitted)
    (cost,) = {v for v, _, t, x in admitted if t is test and x == limit}
    assert cost == pytest.approx(least, rel=1e-12)


def test_a_test_with_much_risk_is_never_chosen_and_one_with_little_is() -> None:
    safe = tail_test(0, 3.0, 4000, 0.5, 1.0)
    blind = tail_test(1, 0.01, 4000, 0.1, 0.2)
    assert min(risk for _, risk, *_ in pairs([blind], 0.3)) > RISK
    assert min(risk for _, risk, *_ in pairs([safe], 0.3)) <= RISK
    assert best_test([blind], 0.3, 2.0, MEANS) is None
    for tests in ([safe, blind], [blind, safe]):
        chosen = best_test(tests, 0.3, 2.0, MEANS)
        assert chosen is not None
        assert chosen[0] is safe
    # Nor one that promises no more than to clip nobody.
    assert best_test([safe], 0.3, 0.5, MEANS) is None


# Sums over users


def test_variances_of_weighted_means_are_sums_over_users() -> None:
    k, counts = np.array([1.0, 4.0, 25.0]), np.array([5, 3, 2])
    weights, q, spread = np.array([0.05, 0.1, 0.225]), 0.21, 0.03
    sampled = squared = 0.0
    for size, count, weight in zip(k, counts, weights, strict=True):
        for _ in range(count):
            sampled += weight**2 * (spread + (q - spread) / size)
            squared += weight**2 * (1.0 - 1.0 / size)
    assert mean_variance(k, counts, weights, q, spread) == pytest.approx(sampled)
    assert squared_weights(k, counts, weights) == pytest.approx(squared)
    # The second is what a further var_p adds to the first.
    more = mean_variance(k, counts, weights, q, spread + 0.01) - sampled
    assert more == pytest.approx(0.01 * squared)
