"""Choosing one of many: laws are the ones promised, and privacy is exact.

Statistical tests have fixed seeds.  For a random seed, a true one fails with a chance
of at most 2e-10 (exact binomial tails).  There are fewer than 10: together below 2e-9.
"""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from hetlit.privacy import selection


def generator(seed=0):
    return np.random.default_rng(seed)


def plausible_count(count, n, probability):
    """Is a count of `n` draws within the central 1 - 2e-10 of its binomial law?"""
    low = stats.binom.cdf(count, n, probability)
    high = stats.binom.sf(count - 1, n, probability)
    return min(low, high) >= 1e-10


# The exponential mechanism


UTILITIES = st.lists(st.floats(-50, 50), min_size=1, max_size=8)


@given(UTILITIES, st.floats(0.01, 10), st.floats(0.1, 10))
def test_the_exponential_mechanism_has_its_law(utilities, epsilon, sensitivity):
    exponents = [epsilon * u / (2 * sensitivity) for u in utilities]
    top = max(exponents)
    masses = [math.exp(exponent - top) for exponent in exponents]
    law = selection.exponential_probabilities(
        utilities, epsilon, sensitivity=sensitivity
    )
    assert law == pytest.approx(np.array(masses) / math.fsum(masses), rel=1e-11)


def test_the_exponential_mechanism_on_a_small_example():
    law = selection.exponential_probabilities([0, -1, -1, -3, -3, -4], epsilon=2.0)
    known = [0.53947656, 0.19846234, 0.19846234, 0.02685896, 0.02685896, 0.00988086]
    assert law == pytest.approx(known, abs=5e-9)


def test_the_sensitivity_is_one_unless_told_otherwise():
    law = selection.exponential_probabilities([0.0, -2.0], epsilon=1.0)
    assert law[0] / law[1] == pytest.approx(math.e, rel=1e-12)


@given(UTILITIES, st.floats(-1e3, 1e3))
def test_adding_a_constant_to_all_utilities_changes_nothing(utilities, constant):
    law = selection.exponential_probabilities(utilities, epsilon=1.0)
    moved = selection.exponential_probabilities(
        np.add(utilities, constant), epsilon=1.0
    )
    assert moved == pytest.approx(law, rel=1e-9)


def test_huge_utilities_do_not_overflow():
    law = selection.exponential_probabilities([1e6, 1e6 - 2 * math.log(3), -1e6], 1.0)
    assert law == pytest.approx([0.75, 0.25, 0.0], rel=1e-9)


@given(
    st.lists(st.tuples(st.floats(-9, 9), st.floats(-1, 1)), min_size=1, max_size=8),
    st.floats(0.01, 5),
    st.floats(0.1, 10),
)
def test_moving_utilities_by_the_sensitivity_costs_at_most_epsilon(
    pairs, epsilon, sensitivity
):
    utilities = np.array([utility for utility, _ in pairs])
    moved = utilities + sensitivity * np.array([move for _, move in pairs])
    one, other = (
        selection.exponential_probabilities(u, epsilon, sensitivity=sensitivity)
        for u in (utilities, moved)
    )
    assert np.abs(np.log(one / other)).max() <= epsilon + 1e-9


@pytest.mark.slow
def test_outcomes_are_drawn_with_their_probabilities():
    rng, draws = generator(3), 20_000
    utilities, epsilon, sensitivity = [1.0, 0.0, 3.0, -2.0], 1.5, 2.0
    chosen = [
        selection.exponential_mechanism(
            utilities, epsilon, sensitivity=sensitivity, rng=rng
        )
        for _ in range(draws)
    ]
    law = selection.exponential_probabilities(
        utilities, epsilon, sensitivity=sensitivity
    )
    for outcome, probability in enumerate(law):
        assert plausible_count(chosen.count(outcome), draws, probability)


def test_outcomes_are_plain_positions():
    chosen = selection.exponential_mechanism([0.0], 1.0, rng=generator())
    assert type(chosen) is int
    assert chosen == 0


@pytest.mark.parametrize(
    ("utilities", "epsilon", "sensitivity", "error", "name"),
    [
        ([], 1.0, 1.0, ValueError, "utilities"),
        ([[1.0]], 1.0, 1.0, ValueError, "utilities"),
        ([0.0, math.nan], 1.0, 1.0, ValueError, "utilities"),
        ([0.0, math.inf], 1.0, 1.0, ValueError, "utilities"),
        ([0.0, -math.inf], 1.0, 1.0, ValueError, "utilities"),
        (["a"], 1.0, 1.0, TypeError, "utilities"),
        ([0.0], 0.0, 1.0, ValueError, "epsilon"),
        ([0.0], -1.0, 1.0, ValueError, "epsilon"),
        ([0.0], math.inf, 1.0, ValueError, "epsilon"),
        ([0.0], math.nan, 1.0, ValueError, "epsilon"),
        ([0.0], "1", 1.0, TypeError, "epsilon"),
        ([0.0], 1.0, 0.0, ValueError, "sensitivity"),
        ([0.0], 1.0, -1.0, ValueError, "sensitivity"),
        ([0.0], 1.0, math.inf, ValueError, "sensitivity"),
        ([0.0], 1.0, None, TypeError, "sensitivity"),
    ],
)
def test_bad_arguments_of_the_exponential_mechanism_are_refused_by_name(
    utilities, epsilon, sensitivity, error, name
):
    with pytest.raises(error, match=rf"^{name} must|^{name} is empty"):
        selection.exponential_mechanism(
            utilities, epsilon, sensitivity=sensitivity, rng=generator()
        )


# The median on a grid

ALPHABET = (0.0, 1.0, 2.0, 3.0)
GRIDS = {
    "on the values": [0.0, 1.0, 2.0, 3.0],
    "between the values": [0.5, 1.5, 2.5],
    "not all the way": [1.0, 2.0],
    "one point": [1.5],
    "finer than the values": [-1.0, 0.2, 0.4, 1.0, 1.1, 2.9, 4.0],
}


def median_law(values, grid, epsilon):
    histogram = selection.grid_histogram(values, np.array(grid))
    return selection.exponential_probabilities(
        selection.median_utilities(histogram), epsilon
    )


def neighbours(n):
    """All pairs of samples from the alphabet that differ in one entry."""
    for values in itertools.combinations_with_replacement(ALPHABET, n):
        for entry, value in itertools.product(range(n), ALPHABET):
            yield values, (*values[:entry], value, *values[entry + 1 :])


@pytest.mark.parametrize("grid", GRIDS.values(), ids=GRIDS)
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 4.0])
def test_the_median_is_private_for_every_two_small_neighbours(grid, epsilon):
    for n in range(1, 6):
        laws = {
            values: np.log(median_law(values, grid, epsilon))
            for values in itertools.product(ALPHABET, repeat=n)
        }
        worst = max(np.abs(laws[a] - laws[b]).max() for a, b in neighbours(n))
        assert worst <= epsilon * (1 + 1e-12)


def test_one_value_moves_a_utility_by_one_and_never_more():
    grid = np.array(GRIDS["finer than the values"])
    moves = [
        np.abs(
            selection.median_utilities(selection.grid_histogram(one, grid))
            - selection.median_utilities(selection.grid_histogram(other, grid))
        ).max()
        for n in range(1, 6)
        for one, other in neighbours(n)
    ]
    assert max(moves) == 1.0


@given(
    st.lists(st.integers(-3, 9).map(float), min_size=1, max_size=12),
    st.lists(st.integers(-3, 9).map(float), min_size=1, max_size=6, unique=True),
)
def test_histograms_count_the_values_up_to_each_point(values, points):
    grid = np.sort(points)
    histogram = selection.grid_histogram(values, grid)
    up_to = [sum(value <= point for value in values) for point in grid]
    assert np.cumsum(histogram).tolist() == [*up_to, len(values)]


@given(
    st.lists(st.tuples(st.integers(-3, 9), st.integers(1, 5)), min_size=1, max_size=12),
)
def test_histograms_with_counts_are_those_of_the_values_one_by_one(pairs):
    values, counts = np.array(pairs).T
    grid = np.array([0.0, 2.5, 4.0])
    together = selection.grid_histogram(values, grid, counts=counts)
    apart = selection.grid_histogram(np.repeat(values, counts), grid)
    assert together.tolist() == apart.tolist()


@given(
    st.lists(st.integers(-3, 9).map(float), min_size=1, max_size=12),
    st.lists(st.integers(-3, 9).map(float), min_size=1, max_size=6, unique=True),
)
def test_utilities_count_what_keeps_the_median_out_of_a_cell(values, points):
    grid = np.sort(points)
    utilities = selection.median_utilities(selection.grid_histogram(values, grid))
    half = len(values) / 2
    ends = [sum(value <= point for value in values) for point in grid]
    starts = [0, *ends[:-1]]
    missing = [
        max(0, start - half, half - end)
        for start, end in zip(starts, ends, strict=True)
    ]
    assert (-utilities).tolist() == missing


def test_the_median_of_equal_values_is_in_their_cell():
    # Minus the distance of #{values <= t} from n/2 would be the same for every t.
    grid = np.array([1.0, 2.0, 4.0])
    utilities = selection.median_utilities(selection.grid_histogram([0.5] * 10, grid))
    assert utilities.tolist() == [0.0, -5.0, -5.0]


@pytest.mark.slow
def test_the_median_is_drawn_with_its_law():
    values, grid, epsilon = [0.0, 1.0, 1.0, 2.0, 3.0], [0.5, 1.0, 2.5], 1.2
    rng, draws = generator(4), 20_000
    chosen = [
        selection.median_on_grid(values, grid, epsilon, rng=rng) for _ in range(draws)
    ]
    assert set(chosen) == set(grid)
    for point, probability in zip(grid, median_law(values, grid, epsilon), strict=True):
        assert plausible_count(chosen.count(point), draws, probability)


def test_the_median_with_a_large_budget_is_the_median():
    values = generator(5).permutation(1001) / 1000
    median = selection.median_on_grid(
        values, np.linspace(0, 1, 101), 50.0, rng=generator(6)
    )
    assert median == pytest.approx(0.5, abs=0.011)


@pytest.mark.parametrize("sensitivity", [0.0, -1.0, 1e-101, math.inf])
def test_a_law_has_a_sensitivity_above_zero(sensitivity):
    with pytest.raises(ValueError, match=r"^sensitivity must"):
        selection.exponential_probabilities([0.0, 1.0], 1.0, sensitivity=sensitivity)


def test_the_median_does_not_change_its_inputs():
    values, grid = np.array([3.0, 1.0, 2.0]), np.array([1.5, 2.5])
    values.flags.writeable = grid.flags.writeable = False
    assert selection.median_on_grid(values, grid, 1.0, rng=generator()) in grid


@pytest.mark.parametrize(
    ("values", "grid", "epsilon", "error", "name"),
    [
        ([1.0], [], 1.0, ValueError, "grid"),
        ([1.0], [2.0, 1.0], 1.0, ValueError, "grid"),
        ([1.0], [1.0, 1.0], 1.0, ValueError, "grid"),
        ([1.0], [1.0, math.nan], 1.0, ValueError, "grid"),
        ([1.0], ["a"], 1.0, TypeError, "grid"),
        ([], [1.0, 2.0], 1.0, ValueError, "values"),
        ([1.0, math.nan], [1.0, 2.0], 1.0, ValueError, "values"),
        ([1.0], [1.0, 2.0], 0.0, ValueError, "epsilon"),
        ([1.0], [1.0, 2.0], math.inf, ValueError, "epsilon"),
        ([1.0], [1.0, 2.0], "1", TypeError, "epsilon"),
    ],
)
def test_bad_arguments_of_the_median_are_refused_by_name(
    values, grid, epsilon, error, name
):
    with pytest.raises(error, match=rf"^{name} must|^{name} is empty"):
        selection.median_on_grid(values, grid, epsilon, rng=generator())


# The grid


@given(st.floats(-9, 9), st.floats(1e-6, 9), st.floats(1.01, 100))
def test_a_log_grid_runs_from_end_to_end_in_steps_of_at_most_the_ratio(
    exponent, decades, ratio
):
    low, high = 10.0**exponent, 10.0 ** (exponent + decades)
    grid = selection.log_grid(low, high, ratio)
    assert (grid[0], grid[-1]) == pytest.approx((low, high), rel=1e-12)
    steps = grid[1:] / grid[:-1]
    assert steps == pytest.approx(np.full(len(steps), steps[0]), rel=1e-9)
    assert 1.0 < steps[0] <= ratio * (1 + 1e-8)


@given(st.floats(-9, 9), st.floats(1e-6, 9), st.floats(1.01, 100))
def test_a_log_grid_has_no_more_points_than_it_needs(exponent, decades, ratio):
    low, high = 10.0**exponent, 10.0 ** (exponent + decades)
    points = len(selection.log_grid(low, high, ratio))
    assert points == 2 or ratio ** (points - 2) < high / low


@pytest.mark.parametrize("ratio", [2.0**0.25, 1.1, 2, 10.0])
def test_powers_of_the_ratio_are_on_the_grid(ratio):
    for power in range(1, 100):
        expected = float(ratio) ** np.arange(power + 1)
        grid = selection.log_grid(1, expected[-1], ratio)
        assert grid == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize(("low", "high"), [(1.0, 1.0 + 1e-12), (1e-300, 1e300)])
def test_very_short_and_very_long_grids_have_both_ends(low, high):
    grid = selection.log_grid(low, high, 10.0)
    assert grid[[0, -1]] == pytest.approx([low, high], rel=1e-13)
    assert len(grid) >= 2


@pytest.mark.parametrize(
    ("low", "high", "ratio", "error", "name"),
    [
        (0.0, 1.0, 2.0, ValueError, "low"),
        (-1.0, 1.0, 2.0, ValueError, "low"),
        (1.0, 1.0, 2.0, ValueError, "low"),
        (2.0, 1.0, 2.0, ValueError, "low"),
        (math.nan, 1.0, 2.0, ValueError, "low"),
        ("1", 2.0, 2.0, TypeError, "low"),
        (1.0, math.inf, 2.0, ValueError, "high"),
        (1.0, "2", 2.0, TypeError, "high"),
        (1.0, 2.0, 1.0, ValueError, "ratio"),
        (1.0, 2.0, 0.5, ValueError, "ratio"),
        (1.0, 2.0, math.inf, ValueError, "ratio"),
        (1.0, 2.0, None, TypeError, "ratio"),
    ],
)
def test_impossible_grids_are_refused_by_name(low, high, ratio, error, name):
    with pytest.raises(error, match=rf"^{name} must be"):
        selection.log_grid(low, high, ratio)
