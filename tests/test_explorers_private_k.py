"""The explorers of private sizes: predictions against formulas and simulations.

Statistical tests allow six standard errors, computed and not estimated, which chance
exceeds less than once in 10^7.
"""

from __future__ import annotations

import math

import numpy as np
import pytest

from hetlit import Beta, estimate_ideal, sample_users, user_variance
from hetlit.explorers import private_k as module
from hetlit.explorers.picture import Line
from hetlit.explorers.private_k import (
    CAPS,
    DRAWN,
    K_MAX,
    MEAN,
    PTR,
    SECRET_SIZES,
    SPREAD,
    N,
    certified,
    plain_variance,
    private_plan,
    private_prediction,
    profile,
    public_prediction,
    table,
)
from hetlit.private_k import SHARES, estimate_ratio
from hetlit.ptr import certified_distance, pass_probability, sensitivity_within

META = Beta(MEAN, SPREAD**2)
BUDGETS = [float(e) for e in SECRET_SIZES.parameters[1].values]
PROPOSALS = [float(p) for p in PTR.parameters[0].values]


def everyone() -> np.ndarray:
    return np.repeat(*profile())


# What secret sizes cost.


def test_sizes_follow_the_power_law_of_the_chapter() -> None:
    held, counts = profile()
    assert counts.sum() == N
    k = np.arange(1, K_MAX + 1)
    law = k**-1.5 / np.sum(k**-1.5)
    for size in (1, 2, 10, 100):
        share = counts[held <= size].sum() / N
        assert share == pytest.approx(law[:size].sum(), abs=1 / N)


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 10.0])
def test_public_sizes_get_what_the_ideal_estimator_announces(epsilon: float) -> None:
    rng = np.random.default_rng(0)
    users = sample_users(META, everyone(), rng)
    trace = estimate_ideal(
        users, MEAN, SPREAD**2, epsilon, weights="optimal", rng=rng, trace=True
    ).trace
    variance, weights = public_prediction(epsilon)
    assert variance == pytest.approx(trace.objective, rel=1e-9)
    counts = profile()[1]
    assert float(counts @ weights) == pytest.approx(1.0)
    np.testing.assert_allclose(np.repeat(weights, counts), trace.weights, rtol=1e-9)
    exact = user_variance(everyone(), MEAN, SPREAD**2).mean() / N
    assert plain_variance(epsilon) == pytest.approx(exact + 2 / (N * epsilon) ** 2)


@pytest.mark.parametrize(("cap", "epsilon"), [(1, 0.2), (50, 1.0), (2000, 5.0)])
def test_the_noisy_ratio_with_right_guesses_has_the_predicted_error(
    cap: int, epsilon: float
) -> None:
    rng = np.random.default_rng(cap)
    plan, held = private_plan(cap, epsilon), everyone()
    errors = []
    for _ in range(400):
        final = rng.choice(held, N - 2 * (N // 10), replace=False)
        sums = plan.statistics(sample_users(META, final, rng))
        noise = plan.offset_sensitivity / (SHARES[2] * epsilon) / sums.total_weight
        errors.append((sums.value - MEAN) ** 2 + 2 * noise**2)
    predicted = private_prediction(cap, epsilon)
    # A squared error varies by sqrt(2) times its mean.  The total weight of the final
    # cohort varies too, by a few per cent for high caps.
    allowed = 6 * math.sqrt(2 / len(errors)) + 0.01
    assert abs(np.mean(errors) / predicted - 1.0) < allowed


def test_the_whole_estimator_comes_close_to_the_prediction() -> None:
    rng = np.random.default_rng(1)
    ratios = []
    for _ in range(300):
        users = sample_users(META, everyone(), rng)
        inside = estimate_ratio(users, 1.0, k_max=K_MAX, rng=rng, trace=True).trace
        error = (inside.noiseless - MEAN) ** 2 + 2 * inside.noise_scale**2
        ratios.append(error / private_prediction(inside.threshold, 1.0))
    assert abs(np.mean(ratios) - 1.0) < 0.2 + 6 * math.sqrt(2 / len(ratios))


@pytest.mark.parametrize("epsilon", BUDGETS)
def test_there_is_a_best_cap_and_a_gap_to_public_sizes(epsilon: float) -> None:
    private = np.array([private_prediction(cap, epsilon) for cap in CAPS])
    best = int(np.argmin(private))
    assert 0 < best < len(CAPS) - 1
    assert private[best] < 0.999 * min(private[0], private[-1])
    assert private[best] > public_prediction(epsilon)[0]


@pytest.mark.parametrize("epsilon", BUDGETS)
def test_the_users_who_give_first_guesses_are_a_part_of_the_gap(epsilon: float) -> None:
    least = min(private_prediction(int(cap), epsilon) for cap in DRAWN)
    with_them = least * (1.0 - 2 * (N // 10) / N)
    assert public_prediction(epsilon)[0] < with_them < least


@pytest.mark.parametrize(("cap", "epsilon"), [(1, 0.1), (50, 1.0), (1000, 10.0)])
def test_private_weights_are_level_beyond_the_cap(cap: int, epsilon: float) -> None:
    picture = SECRET_SIZES.at(cap=cap, epsilon=epsilon)
    marks = {mark.name: mark for mark in picture.panels[1].marks}
    private, public = marks["private sizes"], marks["ideal, public sizes"]
    assert isinstance(private, Line)
    assert isinstance(public, Line)
    level = private.y[private.x >= cap]
    assert np.ptp(level) == 0.0
    assert (np.diff(private.y[private.x <= cap]) > 0).all()
    assert (np.diff(public.y) > -1e-9).all()


def test_the_reading_names_the_three_errors_and_the_best_cap() -> None:
    reading = SECRET_SIZES.at(cap=1, epsilon=0.1).reading
    for error in (
        math.sqrt(public_prediction(0.1)[0]),
        math.sqrt(private_prediction(1, 0.1)),
        math.sqrt(plain_variance(0.1)),
    ):
        assert f"{1000 * error:.3g}" in reading
    assert "The best cap is about 2, with" in reading


# The test of propose-test-release.


def bound(distance: int) -> float:
    plan, sums = table()
    return sensitivity_within(plan, N, sums.total_weight, sums.total_offset, distance)


def test_the_distance_is_where_the_curve_crosses_the_proposal() -> None:
    plan, sums = table()
    for proposal in PROPOSALS:
        distance = certified_distance(plan, sums, N, proposal / 1000)
        if distance >= 0:
            assert bound(distance) <= proposal / 1000
        if distance < N:
            assert bound(distance + 1) > proposal / 1000
        picture = PTR.at(proposal=proposal)
        for panel in picture.panels:
            line = next(mark for mark in panel.marks if mark.name == "distance")
            assert line.x == (max(distance, 1), max(distance, 1))


def test_the_curve_begins_at_the_local_bound_and_ends_at_the_global_one() -> None:
    plan, sums = table()
    curve = certified()
    assert (np.diff(curve) >= 0).all()
    assert bound(0) == pytest.approx(plan.offset_sensitivity / sums.total_weight)
    assert curve[0] == pytest.approx(bound(0), rel=0.01)
    # With everybody replaced only the least total weight is certain.
    assert curve[-1] == bound(10 * N)


def test_replaced_users_move_the_mean_by_no_more_than_the_curve_says() -> None:
    plan, sums = table()
    held = np.minimum(everyone(), len(plan.weights)) - 1
    heaviest = np.sort(plan.weights[held])[::-1]
    for distance in (1, 100, 1000):
        # The heaviest users become as light as can be, at the centre.  Then one more
        # heavy user goes from one end of her interval to the other.
        lighter = heaviest[:distance].sum() - distance * plan.weights[0]
        swing = plan.weights[-1] * (plan.above[-1] + plan.below[-1])
        moved = swing / (sums.total_weight - lighter)
        assert 0.3 * bound(distance) < moved <= bound(distance) * (1 + 1e-9)


def test_a_table_at_the_bar_passes_half_the_time() -> None:
    for epsilon in (0.05, 1.0):
        for delta in (1e-9, 1e-3):
            picture = PTR.at(epsilon=epsilon, delta=delta)
            bar = next(m for m in picture.panels[1].marks if m.name == "bar")
            assert pass_probability(bar.x[0], epsilon, delta) == pytest.approx(0.5)


def test_the_chance_to_pass_is_that_of_laplace_noise() -> None:
    rng = np.random.default_rng(0)
    plan, sums = table()
    distance = certified_distance(plan, sums, N, 0.38 / 1000)
    noisy = distance + rng.laplace(0.0, 1 / 0.1, size=100_000)
    share = np.mean(noisy >= math.log(1 / 2e-6) / 0.1)
    point = PTR.at().panels[1].marks[-1]
    assert abs(share - point.y[0]) < 6 * 0.5 / math.sqrt(100_000)


@pytest.mark.parametrize("epsilon", [0.05, 1.0])
@pytest.mark.parametrize("delta", [1e-9, 1e-6, 1e-3])
def test_a_proposal_below_the_curve_passes_with_less_than_delta(
    epsilon: float, delta: float
) -> None:
    picture = PTR.at(proposal=0.35, epsilon=epsilon, delta=delta)
    chance = picture.panels[1].marks[-1].y[0]
    assert chance == pytest.approx(delta * math.exp(-epsilon))
    assert "distance is −1" in picture.reading
    assert "below delta" in picture.reading


def test_a_tenth_above_the_flat_part_holds_for_more_than_a_hundred() -> None:
    plan, sums = table()
    assert certified_distance(plan, sums, N, 1.1 * bound(0)) > 100


def test_a_smaller_epsilon_asks_for_a_higher_proposal() -> None:
    plan, sums = table()
    needed = []
    for epsilon in (float(e) for e in PTR.parameters[1].values):
        bar = math.log(1 / 2e-6) / epsilon
        needed.append(
            next(
                proposal
                for proposal in PROPOSALS
                if certified_distance(plan, sums, N, proposal / 1000) >= bar
            )
        )
    assert needed == sorted(needed, reverse=True)
    assert needed[0] > needed[-1]


def test_the_reading_of_the_test_is_plain_at_the_extremes() -> None:
    assert "with all 10,000 users replaced" in PTR.at(proposal=5.0).reading
    assert "nearly always" in PTR.at(proposal=5.0).reading
    assert "probability 0.915" in PTR.at().reading
    assert module._passes(0.9994) == "passes with probability 0.999"
