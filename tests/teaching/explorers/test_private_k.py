"""The explorers of private sizes: predictions against formulas and simulations.

Statistical tests allow six standard errors, computed and not estimated, which chance
exceeds less than once in 10^7.
"""

from __future__ import annotations

import itertools
import math
import re
from functools import cache

import numpy as np
import pytest
from scipy import stats

from hetlit import Beta, estimate_ideal, initial_mean_error, sample_users, user_variance
from hetlit.estimators.private_k.ptr import certified_distance, sensitivity_within
from hetlit.estimators.private_k.ratio import SHARES, estimate_ratio
from hetlit.estimators.private_k.sums import ratio_plan
from hetlit.teaching.explorers.picture import Picture, coordinates, number
from hetlit.teaching.explorers.private_k import (
    CAPS,
    DRAWN,
    K_MAX,
    MEAN,
    PTR,
    PTR_CAP,
    SECRET_SIZES,
    SPREAD,
    N,
    certified,
    private_plan,
    private_prediction,
    profile,
    public_prediction,
    table,
)
from hetlit.theory.widths import standard_width
from tests.explorers import values_of

META = Beta(MEAN, SPREAD**2)
BUDGETS = [float(e) for e in SECRET_SIZES.parameters[1].values]
PROPOSALS = [float(p) for p in PTR.parameters[0].values]


def everyone() -> np.ndarray:
    return np.repeat(*profile())


def marks_of(picture: Picture) -> list[dict[str, dict[str, np.ndarray]]]:
    """Return the arrays of every mark by its name, one dictionary for each panel."""
    return [{m.name: coordinates(m) for m in panel.marks} for panel in picture.panels]


def is_level(mark: dict[str, np.ndarray], height: float) -> bool:
    return mark["x"].tolist() == [1.0, K_MAX] and mark["y"] == pytest.approx(height)


def numbers_in(sentences: str) -> list[float]:
    return [float(n.replace(",", "")) for n in re.findall(r"[\d,.]*\d", sentences)]


# What secret sizes cost.


def test_sizes_follow_the_power_law_of_the_chapter() -> None:
    held, counts = profile()
    assert counts.sum() == N
    k = np.arange(1, K_MAX + 1)
    law = k**-1.5 / np.sum(k**-1.5)
    for size in (1, 2, 10, 100):
        share = counts[held <= size].sum() / N
        assert share == pytest.approx(law[:size].sum(), abs=1 / N)


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


@pytest.mark.slow
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


def ratio_by_hand(cap: int, epsilon: float) -> tuple[float, np.ndarray]:
    """Return the standard error of the noisy ratio, and everybody's weight."""
    weights = 1.0 / user_variance(np.minimum(everyone(), cap), MEAN, SPREAD**2)
    # Four users in five are left for the last step, so sums are that much smaller.
    total = 0.8 * weights.sum()
    sampling = 0.8 * np.sum(weights**2 * user_variance(everyone(), MEAN, SPREAD**2))
    # A user can have any size up to the cap, and a mean at either end of its interval.
    k = np.arange(1, cap + 1)
    reach = standard_width(k, N, MEAN, SPREAD**2, 0.05)
    reach += min(initial_mean_error(N // 10, epsilon, 0.05), 1.0)
    up = np.minimum(reach, 1 - MEAN) / user_variance(k, MEAN, SPREAD**2)
    down = np.minimum(reach, MEAN) / user_variance(k, MEAN, SPREAD**2)
    noise = (up.max() + down.max()) / (0.85 * epsilon)
    return math.sqrt(sampling + 2 * noise**2) / total, weights / weights.mean()


@pytest.mark.parametrize("epsilon", BUDGETS)
def test_errors_and_weights_are_what_marks_and_reading_say(epsilon: float) -> None:
    k = everyone()
    rng = np.random.default_rng(0)
    ideal = estimate_ideal(
        sample_users(META, k, rng),
        *(MEAN, SPREAD**2, epsilon),
        weights="optimal",
        rng=rng,
        trace=True,
    ).trace
    public = math.sqrt(ideal.objective)
    noise = 2 * (1 / N / epsilon) ** 2
    plain = math.sqrt(user_variance(k, MEAN, SPREAD**2).sum() / N**2 + noise)
    curve = np.array([ratio_by_hand(int(cap), epsilon)[0] for cap in DRAWN])
    best = int(np.argmin(curve))
    for cap in CAPS:
        private, weights = ratio_by_hand(cap, epsilon)
        picture = SECRET_SIZES.at(cap=cap, epsilon=epsilon)
        errors, shown = marks_of(picture)
        assert is_level(errors["plain mean"], plain)
        assert is_level(errors["ideal, public sizes"], public)
        assert errors["private sizes"]["x"].tolist() == DRAWN.tolist()
        assert errors["private sizes"]["y"] == pytest.approx(curve, rel=1e-9)
        assert errors["chosen cap"]["x"] == cap
        assert errors["chosen cap"]["y"] == pytest.approx(private, rel=1e-9)

        assert is_level(shown["plain mean"], 1.0)
        for name, expected in (
            ("ideal, public sizes", N * ideal.weights),
            ("private sizes", weights),
        ):
            sizes, drawn = shown[name]["x"], shown[name]["y"]
            users = np.searchsorted(k, sizes)  # for each size the first who holds it
            assert (k[users] == sizes).all()
            assert (sizes[0], sizes[-1]) == (k[0], k[-1])
            assert drawn == pytest.approx(expected[users], rel=1e-9)

        assert picture.reading == (
            f"Standard errors, in thousandths: {number(1000 * public)} with public "
            f"sizes, {number(1000 * private)} with private ones capped at "
            f"{number(cap)}, {number(1000 * plain)} for the plain mean. The best cap "
            f"is about {number(DRAWN[best])}, with {number(1000 * curve[best])}."
        )


@pytest.mark.parametrize("epsilon", BUDGETS)
def test_weights_rise_with_public_sizes_and_up_to_the_cap(epsilon: float) -> None:
    for cap in CAPS:
        shown = marks_of(SECRET_SIZES.at(cap=cap, epsilon=epsilon))[1]
        private, public = shown["private sizes"], shown["ideal, public sizes"]
        assert len(set(private["y"][private["x"] >= cap])) <= 1
        assert (np.diff(private["y"][private["x"] <= cap]) > 0).all()
        assert (np.diff(public["y"]) > -1e-9).all()
        assert public["y"][-1] > public["y"][-2]


def test_the_setting_has_the_numbers_of_the_population() -> None:
    assert numbers_in(SECRET_SIZES.setting) == [N, K_MAX, MEAN, SPREAD]
    assert np.median(everyone()) <= 3  # "most of them small"


# The test of propose-test-release.


def bound(distance: int) -> float:
    plan, sums = table()
    return sensitivity_within(plan, N, sums.total_weight, sums.total_offset, distance)


@cache
def bounds_by_hand() -> np.ndarray:
    """Return the certified bound for 0, 1, ..., N replaced users, in thousandths."""
    users = sample_users(META, everyone(), np.random.default_rng(404))
    variances = user_variance(np.minimum(users.k, 50), MEAN, SPREAD**2)
    reach = 0.05 + np.sqrt(variances * 2 * math.log(2 * N / 0.05))
    offsets = np.clip(users.means - MEAN, -reach, reach)
    offsets = np.clip(offsets, -MEAN, 1 - MEAN)
    sums = float(np.sum(1 / variances)), float(np.sum(offsets / variances))
    plan = ratio_plan(MEAN, SPREAD**2, 50, n=N, alpha=0.05, width=None)
    return 1000 * np.array(
        [sensitivity_within(plan, N, *sums, d) for d in range(N + 1)]
    )


@pytest.mark.parametrize("proposal", PROPOSALS)
def test_the_distance_and_the_chance_are_what_marks_and_reading_say(
    proposal: float,
) -> None:
    bounds = bounds_by_hand()
    assert (np.diff(bounds) >= 0).all()
    distance = int(np.sum(bounds <= proposal)) - 1
    place = max(distance, 1)
    for epsilon, delta in itertools.product(*values_of(PTR.parameters[1:])):
        bar = math.log(1 / (2 * delta)) / epsilon
        noisy = stats.laplace(scale=1 / epsilon)
        chance = noisy.sf(bar - distance)
        picture = PTR.at(proposal=proposal, epsilon=epsilon, delta=delta)
        upper, lower = marks_of(picture)

        assert upper["proposal"]["x"].tolist() == [1.0, N]
        assert upper["proposal"]["y"].tolist() == [proposal, proposal]
        curve = upper["certified bound"]
        assert (curve["x"][0], curve["x"][-1]) == (1, N)
        assert curve["y"] == pytest.approx(bounds[curve["x"].astype(int)], rel=1e-9)
        assert upper["distance"]["x"].tolist() == [place, place]

        assert lower["bar"]["x"] == pytest.approx(bar)
        assert lower["distance"]["x"].tolist() == [place, place]
        assert lower["this table"]["x"] == place
        assert lower["this table"]["y"] == pytest.approx(chance)
        curve = lower["chance to pass"]
        assert (curve["x"][0], curve["x"][-1]) == (1, N)
        assert (np.diff(curve["x"]) >= 0).all()
        assert curve["y"] == pytest.approx(noisy.sf(bar - curve["x"]))

        if distance < 0:
            assert chance < delta
            assert picture.reading == (
                f"The proposal is below the bound for the table itself, "
                f"{number(bounds[0])} thousandths. So the distance is −1, drawn at "
                f"the left edge, and the test passes with probability "
                f"{number(chance)}, below delta, {number(delta)}."
            )
        else:
            replaced = f"up to {distance:,}" if distance < N else "all 10,000"
            passes = f"with probability {number(chance)}"
            if 1 - chance <= 1 / 2000:
                passes = "nearly always, with at most 1 failure in 2,000"
            assert picture.reading == (
                f"The proposal is certain to hold with {replaced} users replaced; the "
                f"bar is at {number(bar)}. The test passes {passes}."
            )


def test_the_setting_has_the_numbers_of_the_table() -> None:
    assert numbers_in(PTR.setting) == [N, K_MAX, PTR_CAP]


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
