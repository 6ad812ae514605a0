"""The paper's own constants: its error of the mean, and its variance estimator.

Nothing here is statistical: a `Scripted` source adds no noise and writes down the laws
it was asked to draw from.
"""

from __future__ import annotations

import itertools
import math
from functools import cache
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from hetlit import initial_mean_error
from hetlit.estimators.published import (
    BERRY_ESSEEN,
    published_bins,
    published_group_size,
    published_histogram,
    published_mean_error,
    published_users_needed,
    published_variance,
)
from hetlit.privacy.noise import SecureNoiseUnavailable
from hetlit.theory.gaussian import THIRD_MOMENT as GAUSSIAN_THIRD_MOMENT
from tests.scripted import HUGE, Scripted, gaussian_values, neighbours

# The error of the first mean.


@pytest.mark.parametrize(
    ("estimate", "n", "beta", "published", "tight"),
    [
        (0.37, 1000, 0.05, 0.336467929043, 0.168233964522),
        (0.0, 1000, 0.05, 0.105168639232, 0.052584319616),
        (0.5, 10**5, 0.01, 0.038646121927, 0.019323060963),
    ],
)
def test_published_error_is_twice_what_its_own_proof_gives(
    estimate: float, n: int, beta: float, published: float, tight: float
) -> None:
    value = published_mean_error(estimate, n, 1.0, beta)
    assert value == pytest.approx(published, abs=1e-12)
    assert value / 2 == pytest.approx(tight, abs=1e-12)


def test_published_error_is_the_noise_when_epsilon_is_small() -> None:
    assert published_mean_error(0.3, 1000, 1e-4, 0.05) == pytest.approx(
        2 * math.log(40) / (1e-4 * 1000), rel=1e-14
    )


@pytest.mark.parametrize(("outside", "inside"), [(-3.0, 0.0), (1.5, 1.0)])
def test_published_error_clamps_the_noisy_mean(outside: float, inside: float) -> None:
    assert published_mean_error(outside, 100, 1.0, 0.05) == published_mean_error(
        inside, 100, 1.0, 0.05
    )


@given(
    st.floats(1 / 24, 1.0),
    st.integers(1, 10**9),
    st.floats(1e-3, 1e3),
    st.floats(1e-6, 0.999),
)
def test_published_error_is_wider_than_hoeffding_unless_ones_are_rare(
    estimate: float, n: int, epsilon: float, beta: float
) -> None:
    # 2 max(a, b) >= a + b, and sqrt(12 estimate t) >= sqrt(t/2) from 1/24 on.
    published = published_mean_error(estimate, n, epsilon, beta)
    assert published >= initial_mean_error(n, epsilon, beta)


# The published variance estimator.


@pytest.mark.parametrize(
    ("third_moment", "phi"),
    [
        (GAUSSIAN_THIRD_MOMENT, 206_664),
        (3 * math.sqrt(3) / 4, 136_952),  # uniform
        (1.0, 81_157),  # two points
        (8 * (3 * math.sqrt(3) + GAUSSIAN_THIRD_MOMENT), 239_601_326),
    ],
)
def test_published_group_sizes_are_the_known_ones(
    third_moment: float, phi: int
) -> None:
    assert published_group_size(third_moment) == phi


def test_the_constants_of_the_group_size_are_the_known_ones() -> None:
    assert BERRY_ESSEEN == 0.4748
    third_moment = stats.norm.expect(lambda x: abs(x) ** 3)
    assert pytest.approx(third_moment, rel=1e-9) == GAUSSIAN_THIRD_MOMENT


def test_published_estimator_needs_three_hundred_billion_users() -> None:
    low, high = published_bins(1000, published_group_size(GAUSSIAN_THIRD_MOMENT))
    needed = published_users_needed(GAUSSIAN_THIRD_MOMENT, 1.0, 0.05, high - low + 1)
    # 2 phi users per difference, (600^2/2) log(4/beta) differences.
    assert needed == 2 * 206_664 * math.ceil(600**2 / 2 * math.log(80))
    assert needed == pytest.approx(3.3e11, rel=0.02)


def test_published_estimator_needs_more_users_when_epsilon_is_small() -> None:
    needed = published_users_needed(1.0, 1e-4, 0.05, 10)
    assert needed == 2 * 81_157 * math.ceil(8 * 600 / 1e-4 * math.log(20 / 0.05))


def test_published_estimator_returns_nothing_with_its_own_constants() -> None:
    phi = published_group_size(GAUSSIAN_THIRD_MOMENT)
    needed = published_users_needed(GAUSSIAN_THIRD_MOMENT, 1.0, 0.05, 20)
    values = np.full(2 * phi, 0.5)
    estimate = published_variance(
        values, 1.0, k=100, group_size=phi, users_needed=needed, rng=Scripted()
    )
    assert estimate is None


@pytest.mark.parametrize(
    ("users", "group_size", "users_needed", "answers"),
    [(8, 4, 0, True), (7, 4, 0, False), (8, 4, 8, True), (8, 4, 9, False)],
)
def test_published_estimator_gives_up_by_the_number_of_users_alone(
    users: int, group_size: int, users_needed: int, answers: bool
) -> None:
    for value in (0.0, 0.3, 1.0):
        estimate = published_variance(
            [value] * users,
            1.0,
            k=5,
            group_size=group_size,
            users_needed=users_needed,
            rng=Scripted(),
        )
        assert (estimate is not None) is answers


SWITCH = 1.520970  # where the fullest bin becomes the next one, in units of its edge


@pytest.mark.parametrize("position", [1.01, 1.2, 1.42, 1.515, 1.53, 1.8, 1.99])
def test_published_estimator_is_off_by_seven_to_twenty_eight_without_noise(
    position: float,
) -> None:
    # sd = 2^j position; the estimate is 2^(l+2), l the fullest bin.
    sd = 2.0**-5 * position
    estimate = published_variance(
        gaussian_values(sd, 20_000),
        HUGE,
        k=100,
        group_size=1,
        users_needed=0,
        rng=Scripted(),
    )
    assert estimate is not None
    expected = 4 / position if position < SWITCH else 8 / position
    assert math.sqrt(estimate) / sd == pytest.approx(expected, rel=1e-12)
    assert 6.916 <= estimate / sd**2 <= 27.666


def test_published_estimator_groups_users_before_it_compares_them() -> None:
    # Groups of four, averages .5 and .5 + 2^-4: bin (2^-5, 2^-4], sd 2^-3 * 2.
    pair = [0.4, 0.6, 0.5, 0.5] + [0.5 + 2.0**-4] * 4
    estimate = published_variance(
        pair * 10, HUGE, k=100, group_size=4, users_needed=0, rng=Scripted()
    )
    assert estimate == pytest.approx((2.0**-3) ** 2 * 4, rel=1e-12)


@pytest.mark.parametrize(
    ("difference", "sd"), [(0.125, 0.25), (0.126, 0.5), (0.124, 0.25), (1.0, 2.0)]
)
def test_published_bins_hold_their_upper_edge(difference: float, sd: float) -> None:
    estimate = published_variance(
        [0.0, difference] * 10,
        HUGE,
        k=100,
        group_size=1,
        users_needed=0,
        rng=Scripted(),
    )
    assert estimate == pytest.approx(sd**2, rel=1e-12)


@pytest.mark.parametrize("k", [1, 3, 50])
def test_published_estimator_puts_no_difference_in_the_lowest_bin(k: int) -> None:
    lowest, _ = published_bins(k, 1)
    estimate = published_variance(
        [0.3] * 10, HUGE, k=k, group_size=1, users_needed=0, rng=Scripted()
    )
    assert estimate == 4.0 ** (lowest + 2)
    assert math.sqrt(estimate) <= 1 / (2 * k)


@pytest.mark.parametrize("group_size", [1, 2])
def test_published_variance_is_exactly_private_over_all_neighbours(
    group_size: int,
) -> None:
    epsilon, alphabet = 1.5, (0.0, 0.1, 0.5, 1.0)

    @cache
    def law(values: tuple[float, ...]) -> np.ndarray:
        source = Scripted()
        published_variance(
            values, epsilon, k=4, group_size=group_size, users_needed=0, rng=source
        )
        return source.laws[0]

    losses = [
        np.max(np.abs(np.log(law(values) / law(other))))
        for values in itertools.product(alphabet, repeat=4)
        for other in neighbours(values, alphabet)
    ]
    assert 0.5 * epsilon < max(losses) <= epsilon * (1 + 1e-12)


# Arguments.


@pytest.mark.parametrize("group_size", [1, 2, 16, 100])
def test_the_number_of_bins_is_public(group_size: int) -> None:
    # A group of ones beside one of zeros differs by more than any standard deviation.
    lowest, highest = published_bins(10, group_size)
    for values in (np.zeros(2 * group_size), np.arange(2 * group_size) // group_size):
        counts = published_histogram(values.astype(float), 10, group_size)
        assert len(counts) == highest - lowest + 1
        assert counts.sum() == 1


def test_the_published_variance_is_that_of_the_bin_that_was_chosen() -> None:
    class Last(Scripted):
        def choose(self, utilities: Any, epsilon: float, sensitivity: float) -> int:
            return len(utilities) - 1

    values, options = np.zeros(8), {"k": 10, "group_size": 2, "users_needed": 0}
    likeliest = published_variance(values, 1.0, rng=Scripted(), **options)
    last = published_variance(values, 1.0, rng=Last(), **options)
    lowest, highest = published_bins(10, 2)
    assert likeliest == 2 * 4.0 ** (lowest + 2)
    assert last == 2 * 4.0 ** (highest + 2)


@pytest.mark.parametrize("epsilon", [0, -1.0, math.inf, math.nan, "1", None, True])
def test_a_bad_epsilon_is_named(epsilon: Any) -> None:
    with pytest.raises((ValueError, TypeError), match="epsilon"):
        published_mean_error(0.5, 10, epsilon, 0.05)
    with pytest.raises((ValueError, TypeError), match="epsilon"):
        published_variance(
            [0.1, 0.2], epsilon, k=10, group_size=1, users_needed=0, rng=Scripted()
        )


@pytest.mark.parametrize("beta", [0.0, 1.0, -0.1, 2.0, math.nan, "0.05"])
def test_a_bad_beta_is_named(beta: Any) -> None:
    with pytest.raises((ValueError, TypeError), match="beta"):
        published_mean_error(0.5, 10, 1.0, beta)


@pytest.mark.parametrize("n", [0, -3, 2.5, "10"])
def test_a_bad_number_of_users_is_named(n: Any) -> None:
    with pytest.raises((ValueError, TypeError), match="n must"):
        published_mean_error(0.5, n, 1.0, 0.05)


@pytest.mark.parametrize("values", [[], [[0.1, 0.2]], [0.1, math.nan], [-0.1], [1.1]])
def test_bad_values_are_named(values: Any) -> None:
    rng = np.random.default_rng(0)
    with pytest.raises(ValueError, match="values"):
        published_variance(values, 1.0, k=10, group_size=1, users_needed=0, rng=rng)


@pytest.mark.parametrize("k", [0, -1, 2.5, "3"])
def test_a_bad_size_is_named(k: Any) -> None:
    rng = np.random.default_rng(0)
    with pytest.raises((ValueError, TypeError), match="k must"):
        published_variance([0.1, 0.2], 1.0, k=k, group_size=1, users_needed=0, rng=rng)


@pytest.mark.parametrize("third_moment", [0.0, -1.0, math.nan, "gaussian"])
def test_a_bad_third_moment_is_named(third_moment: Any) -> None:
    with pytest.raises((ValueError, TypeError), match="third_moment"):
        published_group_size(third_moment)


def test_no_rng_asks_for_secure_noise_which_is_not_there() -> None:
    with pytest.raises(SecureNoiseUnavailable):
        published_variance([0.1, 0.2], 1.0, k=10, group_size=1, users_needed=0)
