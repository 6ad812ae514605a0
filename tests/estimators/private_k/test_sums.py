"""The two sums of the noisy ratio, and how far one user can move them."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hetlit import Users, user_variance
from hetlit.estimators.private_k.sums import (
    RatioPlan,
    of_ratio,
    ratio_plan,
    ratio_statistics,
)
from hetlit.estimators.uncertainty import Uncertainty
from tests.private_sizes import all_users, table, zipf_users
from tests.rows import tables

QUICK = settings(max_examples=50)


# The two sums.

FORTY_K = [math.ceil(40 / i) for i in range(1, 41)]
FORTY_ONES = [
    *(30, 15, 8, 3, 2, 3, 4, 4, 3, 1, 1, 1, 3, 2, 2, 1, 1, 1, 2, 2),
    *(2, 1, 0, 0, 1, 1, 2, 1, 1, 0, 1, 1, 2, 1, 1, 0, 1, 1, 2, 1),
]


def test_the_sums_of_forty_users_with_intervals_that_clip_nothing() -> None:
    middle = Users(FORTY_K[4:36], FORTY_ONES[4:36])
    k = np.arange(1.0, 6.0)
    weights = 1 / (0.2475 / k + (1 - 1 / k) * 0.02)
    reach = 0.1 + np.sqrt(2 * (0.02 + 1 / (4 * k)) * math.log(2 * 40 / 0.05))
    plan = RatioPlan(centre=0.45, weights=weights, below=reach, above=reach)
    sums = plan.statistics(middle)
    assert sums.total_weight == pytest.approx(318.079897578290, rel=1e-12)
    assert sums.total_offset == pytest.approx(13.144022895334, rel=1e-12)
    assert sums.value == pytest.approx(0.491323022911560, rel=1e-12)
    assert weights.max() == pytest.approx(15.267175572519, rel=1e-12)
    assert weights.min() == pytest.approx(4.040404040404, rel=1e-12)
    largest = 17.042902498808
    assert sums.offset_sensitivity == pytest.approx(2 * largest, rel=1e-12)
    assert 2 * largest / sums.total_weight == pytest.approx(0.107161141767, rel=1e-11)
    assert sums.weight_sensitivity == pytest.approx(15.267175572519 - 4.040404040404)


def literal_sums(
    users: Users, p: float, var_p: float, cap: int, alpha: float, width: Any
) -> tuple[float, float, float, float]:
    """Return N, U, and both sensitivities, user by user and size by size."""
    p = min(max(p, 0.0), 1.0)
    q = max(p * (1 - p), 1 / (4 * users.n))
    spread = min(max(var_p, 0.0), q)

    def weight(k: int) -> float:
        return 1 / (q / k + (1 - 1 / k) * spread)

    def ends(k: int) -> tuple[float, float]:
        reach = alpha + float(width(np.array([float(k)]))[0])
        return max(0.0, p - reach), min(1.0, p + reach)

    total_weight = total_offset = 0.0
    each = users.expanded()
    for k, ones in zip(each.k.tolist(), each.successes.tolist(), strict=True):
        low, high = ends(min(k, cap))
        total_weight += weight(min(k, cap))
        total_offset += weight(min(k, cap)) * (min(max(ones / k, low), high) - p)
    all_k = range(1, cap + 1)
    weights = [weight(k) for k in all_k]
    up = max(weight(k) * (ends(k)[1] - p) for k in all_k)
    down = max(weight(k) * (p - ends(k)[0]) for k in all_k)
    return total_weight, total_offset, max(weights) - min(weights), up + down


@QUICK
@given(
    tables(most=30, largest=12),
    st.floats(-0.5, 1.5),
    st.floats(-0.1, 0.4),
    st.integers(1, 15),
    st.floats(0, 1),
)
def test_the_sums_are_what_their_definition_says(
    users: Users, p: float, var_p: float, cap: int, alpha: float
) -> None:
    def width(k: Any) -> Any:
        return 0.3 / np.sqrt(k) + 0.05 * np.sin(k) ** 2

    sums = ratio_statistics(users, p, var_p, cap, alpha=alpha, width=width)
    expected = literal_sums(users, p, var_p, cap, alpha, width)
    found = (
        sums.total_weight,
        sums.total_offset,
        sums.weight_sensitivity,
        sums.offset_sensitivity,
    )
    scale = expected[0]
    assert found == pytest.approx(expected, rel=1e-9, abs=1e-9 * scale)
    centre = min(max(p, 0.0), 1.0)
    assert sums.value == pytest.approx(
        centre + expected[1] / expected[0], rel=1e-9, abs=1e-12
    )
    assert 0 <= sums.value <= 1 + 1e-12


@QUICK
@given(tables(most=30, largest=12), st.integers(1, 15))
def test_rows_with_counts_have_the_sums_of_their_users(users: Users, cap: int) -> None:
    together = ratio_statistics(users, 0.3, 0.01, cap, alpha=0.1, width=None)
    each = ratio_statistics(users.expanded(), 0.3, 0.01, cap, alpha=0.1, width=None)
    assert together.total_weight == pytest.approx(each.total_weight, rel=1e-12)
    assert together.total_offset == pytest.approx(each.total_offset, abs=1e-9)


def test_the_default_width_is_sd_times_the_square_root_of_a_logarithm() -> None:
    users = table([(1, 0), (4, 1), (9, 9)])

    def width(k: Any) -> Any:
        return np.sqrt(2 * (0.01 + (0.21 - 0.01) / k) * math.log(2 * 3 / 0.05))

    default = ratio_statistics(users, 0.3, 0.01, 9, alpha=0.0, width=None)
    explicit = ratio_statistics(users, 0.3, 0.01, 9, alpha=0.0, width=width)
    assert default.total_offset == pytest.approx(explicit.total_offset, rel=1e-12)
    assert default.offset_sensitivity == pytest.approx(explicit.offset_sensitivity)


GUESSES = [
    (0.3, 0.01, 0.05, 0.1),
    (0.5, 0.0, 0.0, 0.3),
    (0.0, 0.0, 0.1, 0.05),
    (1.0, 0.2, 0.02, 0.2),
    (0.02, 0.2, 0.0, 0.6),
    (-0.4, 0.5, 0.3, 0.0),
    (0.7, -0.1, 0.0, 0.02),
    (0.6, 0.24, 0.9, 1.0),
]


@pytest.mark.parametrize(("p", "var_p", "alpha", "scale"), GUESSES)
@pytest.mark.parametrize("cap", [1, 2, 4])
def test_no_neighbour_moves_the_sums_by_more_than_their_sensitivities(
    cap: int, p: float, var_p: float, alpha: float, scale: float
) -> None:
    # One user is replaced by every other there can be; one stays.
    def sums(*rows: tuple[int, int]) -> Any:
        return ratio_statistics(
            table(rows), p, var_p, cap, alpha=alpha, width=lambda k: scale / np.sqrt(k)
        )

    everyone = all_users(4)
    stays = (3, 1)
    found = [sums(user, stays) for user in everyone]
    offsets = np.array([one.total_offset for one in found])
    weights = np.array([one.total_weight for one in found])
    allowed = found[0]
    assert {one.offset_sensitivity for one in found} == {allowed.offset_sensitivity}
    assert {one.weight_sensitivity for one in found} == {allowed.weight_sensitivity}
    # Never more, and for some neighbours exactly that.
    rounding = 1e-12 * weights.max()
    assert np.ptp(offsets) == pytest.approx(allowed.offset_sensitivity, abs=rounding)
    assert np.ptp(weights) == pytest.approx(allowed.weight_sensitivity, abs=rounding)


def test_sensitivities_are_not_taken_at_the_cap_only() -> None:
    def width(k: Any) -> Any:  # only users with 3 samples may stray
        return np.where(k == 3, 0.4, 0.0)

    sums = ratio_statistics(table([(3, 3)]), 0.5, 0.0, 5, alpha=0.0, width=width)
    assert sums.offset_sensitivity == pytest.approx(2 * 3 * 4 * 0.4)


def test_with_a_cap_of_one_the_total_weight_is_public() -> None:
    sums = ratio_statistics(zipf_users(100), 0.3, 0.01, 1, alpha=0.1, width=None)
    assert sums.weight_sensitivity == 0.0
    assert sums.total_weight == pytest.approx(100 / 0.21)


def test_a_cap_of_a_million_is_no_trouble() -> None:
    users = table([(10**6, 300_000), (1, 1)])
    sums = ratio_statistics(users, 0.3, 0.0, 10**6, alpha=0.0, width=None)
    assert sums.weight_sensitivity == pytest.approx((10**6 - 1) / 0.21)


def test_without_clamps_the_total_weight_is_19_times_more_sensitive_than_claimed() -> (
    None
):
    # The paper: v lies in [0, v at the cap].  True if variances fall with k.
    def weight(k: int, q: float, spread: float) -> float:
        return 1 / (q / k + (1 - 1 / k) * spread)

    q, spread, cap = 0.01 * 0.99, 0.2, 100
    weights = [weight(k, q, spread) for k in range(1, cap + 1)]
    claimed = weight(cap, q, spread)
    assert claimed == pytest.approx(5.05, abs=0.01)
    assert np.ptp(weights) == pytest.approx(95.96, abs=0.01)
    assert np.ptp(weights) / claimed == pytest.approx(19.01, abs=0.005)
    # With a first mean below 0, weights change sign.
    wild = [weight(k, -0.01 * 1.01, 0.02) for k in range(1, 11)]
    assert (min(wild), max(wild)) == pytest.approx((-99, 202), abs=1)
    assert np.ptp(wild) / weight(10, -0.01 * 1.01, 0.02) > 5
    for p, var_p in ((0.01, 0.2), (-0.01, 0.02)):
        plan = ratio_plan(p, var_p, cap, n=1000, alpha=0.0, width=None)
        claimed = float(plan.weights[-1])
        ratio = 1 - float(plan.weights[0]) / claimed
        assert plan.weight_sensitivity / claimed == pytest.approx(ratio)
        assert (plan.weights > 0).all()


# Arguments.


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"users": None}, TypeError, "users must be"),
        ({"p": math.nan}, ValueError, "p must be"),
        ({"p": "half"}, TypeError, "p must be"),
        ({"var_p": math.inf}, ValueError, "var_p must be"),
        ({"k_cap": 0}, ValueError, "k_cap must be"),
        ({"k_cap": 10**8}, ValueError, "k_cap must be at most"),
        ({"alpha": -0.1}, ValueError, "alpha must be"),
        ({"alpha": 1.1}, ValueError, "alpha must be"),
        ({"width": lambda k: k * math.nan}, ValueError, "width must return"),
    ],
)
def test_bad_arguments_of_the_sums_are_refused_by_name(
    change: dict[str, Any], error: type[Exception], message: str
) -> None:
    arguments: dict[str, Any] = {
        "users": zipf_users(20),
        "p": 0.3,
        "var_p": 0.01,
        "k_cap": 5,
        "alpha": 0.1,
        "width": None,
    } | change
    with pytest.raises(error, match=message):
        ratio_statistics(**arguments)


# How sure a ratio is.

FIRST = Uncertainty(noise=0.01, sampling=0.02)


def narrow(centre: float, spread: float, cap: int) -> RatioPlan:
    return ratio_plan(centre, spread, cap, n=100, alpha=0.0, width=lambda k: 0.1)


@QUICK
@given(
    tables(most=30, largest=60),
    st.integers(1, 40),
    st.floats(0.0, 0.25),
    st.floats(0.0, 0.25),
)
def test_the_bound_on_the_sampling_error_needs_nobodys_size(
    users: Users, cap: int, guess: float, spread: float
) -> None:
    plan = narrow(0.5, guess, cap)
    total = plan.statistics(users).total_weight
    sure = of_ratio(0.5, plan, spread, 0.0, (total, 0.0), FIRST)
    weights = plan.weights[np.minimum(users.k, cap) - 1]
    variances = user_variance(users.k, 0.5, spread)
    variance = float(np.sum(users.counts * weights**2 * variances)) / total**2
    assert sure.sampling**2 >= variance * (1 - 1e-9)
    if cap > users.k.max() and guess == spread:
        assert sure.sampling**2 == pytest.approx(variance)


def test_where_guesses_are_right_the_bound_is_the_variance() -> None:
    plan = narrow(0.5, 0.01, 40)
    sure = of_ratio(0.5, plan, 0.01, 0.003, (500.0, 0.0), FIRST)
    # sum v^2 s^2/N^2 = sum v/N^2 = 1/N
    assert sure.sampling**2 == pytest.approx(1 / 500)
    assert (sure.noise, sure.gap) == (0.003, 0.0)


def test_noise_in_the_total_moves_the_ratio_in_proportion_to_its_offset() -> None:
    plan = narrow(0.4, 0.01, 40)
    none, some = (
        of_ratio(0.5, plan, 0.01, 0.0, (500.0, scale), FIRST) for scale in (0.0, 20.0)
    )
    added = some.sampling**2 - none.sampling**2
    assert added == pytest.approx(2 * (0.1 * 20 / 500) ** 2)


@pytest.mark.parametrize(
    ("centre", "width", "clips"),
    [(0.3, 0.1, True), (0.3, 0.5, True), (0.3, 0.7, False), (0.7, 0.7, False)],
)
def test_the_first_mean_has_a_say_where_somebody_may_be_clipped(
    centre: float, width: float, clips: bool
) -> None:
    plan = ratio_plan(centre, 0.01, 9, n=100, alpha=0.0, width=lambda k: width)
    assert plan.clips == clips
    sure = of_ratio(1.2, plan, 0.01, 0.0, (500.0, 0.0), FIRST)
    assert sure.first == (FIRST if clips else None)
    # The value is moved into [0, 1] first.
    assert sure.gap == pytest.approx(1.0 - centre)


def test_half_of_the_sizes_may_be_clipped() -> None:
    plan = ratio_plan(0.5, 0.01, 9, n=100, alpha=0.0, width=lambda k: 1.0 / k)
    assert plan.clips


def test_where_nobody_is_clipped_no_guess_of_the_spread_is_trusted() -> None:
    # It may be a median, which does not see a minority.
    plan = ratio_plan(0.5, 0.01, 40, n=100, alpha=1.0, width=None)
    few, many = (
        of_ratio(0.5, plan, spread, 0.0, (500.0, 0.0), FIRST) for spread in (0.0, 1.0)
    )
    assert few == many
    assert many.sampling**2 == pytest.approx(plan.weights.max() * 0.25 / 500)
