"""The anchor: its share, the radius around it, what it warns of, what it guarantees."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import integrate

from hetlit import Users, estimate_private_k, estimate_public_size, user_variance
from hetlit.estimators.anchor import (
    CLAIM,
    CLEARLY,
    LEAST,
    MOST,
    PRICE,
    TOLL,
    Anchor,
    anchor_error,
    anchor_share,
    settle,
)
from hetlit.estimators.spread import CAUTIOUS_SPREAD
from hetlit.estimators.uncertainty import (
    FALSE_ALARM,
    Clipped,
    of_plain_mean,
    of_weighted_mean,
)
from hetlit.theory import errors
from tests.replay import Recorder

K = np.array([1.0, 10.0, 200.0])
COUNTS = np.array([500, 300, 200])
N = 1000


def by_hand(weights: Any, q: float, spread: float) -> float:
    """Return sum of w^2 (S + (q - S)/k) over all users, one by one."""
    return math.fsum(
        w**2 * (spread + (q - spread) / k)
        for k, count, w in zip(K, COUNTS, weights, strict=True)
        for _ in range(int(count))
    )


# Its share of the budget


@pytest.mark.parametrize("epsilon", [0.01, 2.0])
def test_the_error_of_an_anchor_is_that_of_the_plain_mean_at_one_half(
    epsilon: float,
) -> None:
    variances = user_variance(K, 0.5, 0.25 * CAUTIOUS_SPREAD)
    exact = np.sum(COUNTS * variances) / N**2 + 2.0 / (N * epsilon) ** 2
    assert anchor_error(K, COUNTS, N, epsilon) ** 2 == pytest.approx(exact, rel=1e-12)


def equal_share(epsilon: float) -> float:
    """Return the share with which the noise is as large as the sampling error."""
    sampling = by_hand([1.0 / N] * 3, 0.25, 0.25 * CAUTIOUS_SPREAD)
    return math.sqrt(2.0 / sampling) / (N * epsilon)


@given(st.floats(1e-4, 1e4))
def test_the_share_of_an_anchor_makes_its_noise_clearly_less_than_its_samples(
    epsilon: float,
) -> None:
    share = anchor_share(K, COUNTS, N, epsilon)
    equal = equal_share(epsilon)
    assert 0.0 < LEAST <= share <= MOST < 1.0
    if equal > MOST:  # drowned in noise all the same
        assert share == LEAST
    elif LEAST < share < MOST:
        assert share == pytest.approx(CLEARLY * equal, rel=1e-9)
    elif share == MOST:
        assert CLEARLY * equal >= MOST * (1 - 1e-9)
    else:
        assert CLEARLY * equal <= LEAST * (1 + 1e-9)


@pytest.mark.parametrize(
    ("equal", "share"),
    [
        (1.01 * MOST, LEAST),
        (0.99 * MOST, MOST),
        (0.5 * (LEAST + MOST) / CLEARLY, 0.5 * (LEAST + MOST)),
        (0.5 * LEAST / CLEARLY, LEAST),
    ],
)
def test_all_four_kinds_of_share_are_met(equal: float, share: float) -> None:
    epsilon = equal_share(1.0) / equal
    assert anchor_share(K, COUNTS, N, epsilon) == pytest.approx(share, rel=1e-9)


# The radius

POSITIVE = st.floats(1e-9, 1.0)


@given(sampling=POSITIVE, noise=st.floats(0.0, 0.999), promised=POSITIVE)
def test_a_value_at_the_end_of_its_interval_has_the_price_as_squared_error(
    sampling: float, noise: float, promised: float
) -> None:
    anchor = Anchor(
        value=0.4, scale=math.sqrt(sampling * noise / 2.0), sampling=sampling
    )
    assert anchor.variance == pytest.approx(sampling * (1.0 + noise), rel=1e-12)
    price = anchor.variance + anchor.radius(promised) ** 2
    assert price == pytest.approx(PRICE * sampling, rel=1e-9)


@given(scale=POSITIVE, share=st.floats(0.0, 1.0), promised=POSITIVE)
def test_where_noise_prevails_the_radius_is_the_least_with_little_toll(
    scale: float, share: float, promised: float
) -> None:
    sampling = share * 2.0 * scale**2
    anchor = Anchor(value=0.4, scale=scale, sampling=sampling)
    beyond = anchor.radius(promised) - 3.0 * math.sqrt(sampling)
    assert beyond >= scale * (1 - 1e-9)
    # The second moment of what Laplace noise has beyond a distance.
    excess = 2.0 * scale**2 * math.exp(-beyond / scale)
    assert excess <= TOLL * promised * (1 + 1e-9)
    if beyond > scale * (1 + 1e-6):
        assert excess == pytest.approx(TOLL * promised, rel=1e-6)


@pytest.mark.parametrize("promised", [1e-4, 0.01, 0.2, 1.0])
@pytest.mark.parametrize("sampling", [0.0, 0.01, 0.3, 0.99])
def test_moving_adds_at_most_its_toll_where_noise_prevails(
    promised: float, sampling: float
) -> None:
    # In units of the anchor's noise.  The value differs from the anchor by Laplace
    # noise L, by what its own variance does and by the anchor's samples, at most all
    # of them.  Whatever is beyond the radius, moving takes the value so far:
    # E (|L + G| - radius)^2 of it is the integral of 2 (z - radius) Pr(|L + G| > z).
    scale, rest = 1.0 / math.sqrt(2.0), math.sqrt(promised + sampling)
    radius = Anchor(value=0.0, scale=scale, sampling=sampling).radius(promised)
    added, _ = integrate.quad(
        lambda z: 2.0 * (z - radius) * errors.tail(z, scale, rest),
        radius,
        radius + 40.0 * scale,
    )
    # The value's own deviation, when it sets off the move, is made less by it: that
    # takes off more than the factor by which its variance adds to the tail.
    assert added <= TOLL * promised * math.exp(promised) * (1 + 1e-6)


@given(value=st.floats(-10, 10), raw=st.floats(-10, 10), radius=st.floats(0, 5))
def test_a_moved_value_is_within_the_radius_and_no_further_than_it_must(
    value: float, raw: float, radius: float
) -> None:
    moved = Anchor(value=raw, scale=1.0, sampling=1.0).moved(value, radius)
    assert abs(moved - raw) <= radius * (1 + 1e-12) + 1e-12
    if abs(value - raw) <= radius:
        assert moved == pytest.approx(value, abs=1e-12)
    else:
        assert moved == raw + math.copysign(radius, value - raw)


# Warnings


@pytest.mark.parametrize("difference", [0.001, 0.02])
@pytest.mark.parametrize("side", [-1.0, 1.0])
def test_it_warns_beyond_what_chance_allows_and_not_before(
    difference: float, side: float
) -> None:
    anchor = Anchor(value=0.4, scale=0.004, sampling=1e-6)
    limit = errors.half_width(1.0 - FALSE_ALARM, 0.004, difference)
    assert anchor.warnings(0.4 + side * limit * (1 - 1e-6), difference) == ()
    (warning,) = anchor.warnings(0.4 + side * limit * (1 + 1e-6), difference)
    assert f"differ by {limit:.2g}" in warning
    assert f"a chance of less than {FALSE_ALARM:.1g}" in warning
    assert 'method="plain"' in warning
    # In the model, exactly that chance.
    assert errors.tail(limit, 0.004, difference) == pytest.approx(FALSE_ALARM, rel=1e-6)


def test_what_goes_unnoticed_grows_with_the_difference_and_the_noise() -> None:
    anchor = Anchor(value=0.4, scale=0.03, sampling=1e-6)
    expected = CLAIM * math.sqrt(0.02**2 + 2.0 * 0.03**2)
    assert anchor.dependence(0.02) == pytest.approx(expected, rel=1e-12)


# Settling


@pytest.mark.parametrize("weighted", [0.3, 0.42, 0.9])
@pytest.mark.parametrize("most", [0.004, math.inf])
@pytest.mark.parametrize("spread", [0.001, 5.0])
@pytest.mark.parametrize("clipped", [None, Clipped(moved=0.01, noise=0.002)])
@pytest.mark.parametrize("blur", [0.0, 0.01])
def test_settling_is_the_sum_of_its_parts(
    weighted: float, most: float, spread: float, clipped: Clipped | None, blur: float
) -> None:
    q, raw, raw_scale, scale = 0.24, 0.41, 0.003, 0.002
    weights = np.array([0.0002, 0.001, 0.003])
    settled = settle(
        weighted,
        scale,
        raw,
        raw_scale,
        k=K,
        counts=COUNTS,
        weights=weights,
        n=N,
        q=q,
        spread=spread,
        most_spread=most,
        clipped=clipped,
        blur=blur,
    )
    believed = min(spread, q)
    anchor = settled.anchor
    assert (anchor.value, anchor.scale) == (raw, raw_scale)
    plain = by_hand([1.0 / N] * 3, q, believed)
    assert anchor.sampling == pytest.approx(plain, rel=1e-9)
    noise = 2.0 * scale**2 + blur**2
    promised = by_hand(weights, q, believed) + noise
    assert settled.radius == pytest.approx(anchor.radius(promised), rel=1e-9)
    value = min(max(weighted, raw - settled.radius), raw + settled.radius)
    assert settled.value == pytest.approx(value, abs=1e-15)
    # The value and the anchor share their users: what differs is the weights.
    gap = by_hand(weights - 1.0 / N, q, min(most, q))
    difference = math.sqrt(gap + noise)
    expected = of_weighted_mean(
        value,
        K,
        COUNTS,
        weights,
        most,
        scale,
        blur=blur,
        clipped=clipped,
        first=None if clipped is None else of_plain_mean(raw, N, raw_scale),
        gap=abs(value - raw),
        dependence=anchor.dependence(difference),
    )
    for level in (0.5, 0.95):
        for sizes in (False, True):
            assert settled.uncertainty.half_width(level, sizes=sizes) == pytest.approx(
                expected.half_width(level, sizes=sizes), rel=1e-9
            )
    assert settled.uncertainty.standard_error == pytest.approx(
        expected.standard_error, rel=1e-9
    )
    # Of the value as it was, not as it was moved.
    assert settled.warnings == anchor.warnings(weighted, difference)


def test_where_noise_prevails_the_radius_looks_at_what_the_value_promises() -> None:
    def radius(scale: float, blur: float) -> float:
        return settle(
            0.4,
            scale,
            0.4,
            0.1,
            k=K,
            counts=COUNTS,
            weights=np.full(3, 1.0 / N),
            n=N,
            q=0.24,
            spread=0.001,
            most_spread=math.inf,
            blur=blur,
        ).radius

    assert radius(0.001, 0.0) > radius(0.02, 0.0) > radius(0.02, 0.05)


# The guarantee


@st.composite
def tables(draw: st.DrawFn) -> Users:
    """Any population whatever, sizes and rates as dependent as they like."""
    row = st.tuples(
        st.sampled_from([1, 2, 3, 20, 64, 1000]), st.floats(0, 1), st.integers(1, 5000)
    )
    rows = draw(st.lists(row, min_size=1, max_size=8))
    k, rates, counts = (np.array(column) for column in zip(*rows, strict=True))
    return Users(k, np.rint(k * rates).astype(int), counts)


@settings(max_examples=150)
@given(
    users=tables(),
    epsilon=st.sampled_from([0.1, 1.0, 10.0]),
    seed=st.integers(0, 2**20),
    wild=st.sampled_from([1.0, 30.0]),
    hidden=st.booleans(),
)
def test_no_population_takes_the_value_further_than_the_radius_from_its_anchor(
    users: Users, epsilon: float, seed: int, wild: float, hidden: bool
) -> None:
    options: dict[str, Any] = {"rng": Recorder(seed, wild), "trace": True}
    estimate: Any = (
        estimate_private_k(users, epsilon, k_max=1000, **options)
        if hidden
        else estimate_public_size(users, epsilon, **options)
    )
    assert 0.0 <= estimate.value <= 1.0
    trace = estimate.trace
    if not hasattr(trace, "anchor"):
        assert trace.path in ("plain", "plain again")
        return
    assert trace.radius > 0.0
    for p in (0.0, float(np.average(users.means, weights=users.counts)), 1.0):
        off = abs(trace.anchor.value - p)
        assert abs(estimate.value - p) <= off + trace.radius + 1e-12
