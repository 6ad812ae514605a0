"""Weights: the known values, the identities behind them, and nothing does better."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import optimize

from hetlit import check
from hetlit.theory.variance import user_variance
from hetlit.theory.weights import (
    best_threshold,
    inverse_variance_weights,
    optimal_ceiling,
    optimal_weights,
    planned_optimal_weights,
    planned_threshold,
    planned_truncated_weights,
    planned_variance,
    release_variance,
    truncated_weights,
)
from tests.odd import odd

# Standard deviations that double, and four users; the price is 2/epsilon^2.
DOUBLING = np.array([1.0, 1 / 2, 1 / 4, 1 / 8])
SIZES = np.array([8, 4, 2, 1])
VARIANCES = user_variance(SIZES, p=0.4, var_p=0.01)


def epsilon_for(price):
    return math.sqrt(2.0 / price)


# Instances, drawn in two ways

LEVELS = st.floats(1e-6, 1.0)
EPSILONS = st.floats(-6.0, 6.0).map(lambda exponent: 10.0**exponent)
WIDTHS = LEVELS | st.just(0.0)


@st.composite
def tables(draw, widths=WIDTHS, epsilons=EPSILONS, most=10**6):
    """Rows (variances, widths, epsilon, counts), with many ties."""
    rows = draw(st.integers(1, 8))

    def column(strategy):
        pool = st.sampled_from(draw(st.lists(strategy, min_size=1, max_size=rows)))
        return np.array(draw(st.lists(pool, min_size=rows, max_size=rows)))

    variances, widths = column(LEVELS), column(widths)
    return variances, widths, draw(epsilons), column(st.integers(1, most))


@st.composite
def proportional_tables(draw, epsilons=EPSILONS):
    """The same with widths a multiple of the standard deviations."""
    variances, _, epsilon, counts = draw(tables(epsilons=epsilons))
    return variances, draw(LEVELS) * np.sqrt(variances), epsilon, counts


def random_instances(number, seed):
    """The same from numpy, and with the shapes that the estimators meet."""
    rng = np.random.default_rng(seed)
    for index in range(number):
        rows = int(rng.integers(1, 9))
        pool = 10.0 ** rng.uniform(-4, 0, int(rng.integers(1, rows + 1)))
        variances, sd = rng.choice(pool, rows), np.sqrt(rng.choice(pool, rows))
        widths = (
            10.0 ** rng.uniform(-3, 0, rows),  # anything
            rng.choice([0.0, 0.1, 1.0], rows),  # with zeros and ties
            rng.uniform(0.1, 8) * np.sqrt(variances),  # the paper's assumption
            np.minimum(1.0, rng.uniform(0, 0.3) + 4 * np.sqrt(variances)),
            rng.uniform(0, 0.5) + sd,  # unrelated to the variances
        )[index % 5]
        epsilon = (1e-6, 1e6)[index] if index < 2 else 10.0 ** rng.uniform(-6, 6)
        yield variances, widths, epsilon, rng.integers(1, 5, rows)


def root_of(variances, widths, epsilon, counts):
    """The T at which 2/eps^2 T = sum counts/width (1 - T variance/width)_+."""
    wide = widths > 0
    if not wide.any():
        return math.inf
    variances, widths, counts = variances[wide], widths[wide], counts[wide]

    def excess(log_t):
        t = math.exp(log_t)
        held = counts / widths * np.maximum(0.0, 1.0 - t * variances / widths)
        return 2.0 / epsilon**2 * t - held.sum()

    high = math.log(np.max(widths / variances))
    return math.exp(optimize.brentq(excess, high - 80.0, high + 1e-9, xtol=1e-14))


def ratios(numerators, denominators):
    """Quotients in which x/0 is infinite."""
    with np.errstate(divide="ignore"):
        return np.asarray(numerators) / np.asarray(denominators)


# The known values


@pytest.mark.parametrize(
    ("price", "threshold", "objective"),
    [(0.5, 16 / 3, 3 / 191), (1, 4, 1 / 53), (2, 3, 1 / 41), (8, 14 / 11, 11 / 207)],
)
def test_doubling_deviations_have_the_known_thresholds(price, threshold, objective):
    best = best_threshold(DOUBLING**2, DOUBLING, epsilon_for(price))
    assert best == pytest.approx((threshold, objective), rel=1e-13)


def test_without_noise_doubling_deviations_get_inverse_variances():
    weights, objective = optimal_weights(DOUBLING**2, DOUBLING, 1e9)
    assert weights == pytest.approx(np.array([1, 4, 16, 64]) / 85, rel=1e-13)
    assert objective == pytest.approx(1 / 85, rel=1e-13)


def test_with_much_noise_doubling_deviations_get_inverse_deviations():
    weights, objective = optimal_weights(DOUBLING**2, DOUBLING, epsilon_for(1e9))
    assert weights == pytest.approx(np.array([1, 2, 4, 8]) / 15, rel=1e-13)
    assert objective == pytest.approx(4444444.462222, abs=5e-7)
    assert objective / 1e9 == pytest.approx(1 / 225, rel=1e-8)


@pytest.mark.parametrize(
    ("price", "threshold", "objective"),
    [
        (1, 2.976335624868, 0.025811522046779),
        (2, 2.351486799870, 0.031432586476170),
        (0.02, 4.980397137262, 0.019127069528356),
    ],
)
def test_four_users_have_the_known_thresholds(price, threshold, objective):
    best = best_threshold(VARIANCES, np.sqrt(VARIANCES), epsilon_for(price))
    assert best[0] == pytest.approx(threshold, abs=5e-13)
    assert best[1] == pytest.approx(objective, abs=1e-15)


def test_four_users_in_much_noise_have_the_known_objective():
    # Any threshold below 1/sd of every user is as good: only the value is unique.
    _, objective = best_threshold(VARIANCES, np.sqrt(VARIANCES), epsilon_for(200))
    assert objective == pytest.approx(1.071409190286, abs=5e-13)


def test_four_users_have_the_known_weights():
    weights = truncated_weights(VARIANCES, 2.976335624868)
    known = [0.390265053473, 0.295694761625, 0.206492176374, 0.107548008528]
    assert weights == pytest.approx(known, abs=5e-13)


def test_four_users_without_privacy_have_the_known_weights():
    weights = inverse_variance_weights(VARIANCES)
    known = [0.488870279629, 0.280647753121, 0.151549786685, 0.078932180565]
    assert weights == pytest.approx(known, abs=5e-13)


def test_the_papers_family_can_be_far_from_optimal():
    widths = [0.9, 1.0, 1.0, 1.0]
    _, paper = best_threshold(VARIANCES, widths, epsilon=1.0)
    _, best = optimal_weights(VARIANCES, widths, epsilon=1.0)
    assert (paper, best) == pytest.approx((0.240576, 0.146755), abs=5e-7)


def test_equal_users_get_equal_weights():
    weights, objective = optimal_weights([0.04] * 50, [0.6] * 50, epsilon=0.5)
    assert weights == pytest.approx(np.full(50, 1 / 50), rel=1e-13)
    assert objective == pytest.approx(0.001952, rel=1e-13)


@pytest.mark.parametrize("epsilon", [1e-6, 1.0, 1e6])
def test_a_single_user_has_all_the_weight(epsilon):
    weights, objective = optimal_weights([0.2], [0.7], epsilon)
    assert weights.tolist() == [1.0]
    assert objective == pytest.approx(0.2 + 2 * (0.7 / epsilon) ** 2, rel=1e-13)
    _, paper = best_threshold([0.2], [0.7], epsilon)
    assert paper == pytest.approx(objective, rel=1e-13)


# What weights are


@given(tables(), LEVELS)
def test_weights_of_users_sum_to_one(table, threshold):
    variances, widths, epsilon, counts = table
    for weights in (
        inverse_variance_weights(variances, counts=counts),
        truncated_weights(variances, 1 / threshold, counts=counts),
        optimal_weights(variances, widths, epsilon, counts=counts)[0],
    ):
        assert np.sum(counts * weights) == pytest.approx(1.0, rel=1e-12)


@given(tables(), LEVELS)
def test_nobody_gets_a_negative_or_zero_weight(table, threshold):
    variances, widths, epsilon, counts = table
    assert (inverse_variance_weights(variances, counts=counts) > 0).all()
    assert (truncated_weights(variances, 1 / threshold, counts=counts) > 0).all()
    assert (optimal_weights(variances, widths, epsilon, counts=counts)[0] > 0).all()


@given(tables())
def test_inverse_variance_weights_are_inverse_to_variances(table):
    variances, _, _, counts = table
    products = variances * inverse_variance_weights(variances, counts=counts)
    assert products == pytest.approx(np.full(len(counts), products[0]), rel=1e-12)


@pytest.mark.slow
@given(tables(), LEVELS)
def test_truncated_weights_have_the_papers_shape(table, level):
    variances, _, _, counts = table
    threshold = 1 / level
    weights = truncated_weights(variances, threshold, counts=counts)
    shape = [min(1 / v, threshold / math.sqrt(v)) for v in variances]
    total = math.fsum(n * s for n, s in zip(counts, shape, strict=True))
    assert weights == pytest.approx(np.array(shape) / total, rel=1e-12)


@given(tables(most=4))
def test_the_objective_is_the_variance_of_the_noisy_sum(table):
    variances, widths, epsilon, counts = table
    weights = inverse_variance_weights(variances, counts=counts)
    users = range(len(counts))
    # Independent users add up; a Laplace variable of scale b has variance 2 b^2.
    sampling = math.fsum(counts[i] * weights[i] ** 2 * variances[i] for i in users)
    scale = max(weights[i] * widths[i] for i in users) / epsilon
    value = release_variance(weights, variances, widths, epsilon, counts=counts)
    assert value == pytest.approx(sampling + 2 * scale**2, rel=1e-12)


@given(
    st.lists(st.floats(0, 1), min_size=1, max_size=6),
    st.floats(0, 1),
    st.floats(0, 1),
    st.floats(0.01, 100),
)
def test_the_objective_is_an_upper_bound_when_means_are_clipped(
    means, one, other, epsilon
):
    # A user's mean is one of `means`, each as likely; then it is clipped.
    low, high = min(one, other), max(one, other)
    variance, clipped = np.var(means), np.var(np.clip(means, low, high))
    if variance < 1e-12:
        return
    bound = release_variance([0.5, 0.5], [variance] * 2, [high - low] * 2, epsilon)
    actual = 2 * 0.5**2 * clipped + 2 * (0.5 * (high - low) / epsilon) ** 2
    assert actual <= bound * (1 + 1e-12)


# Identities at the optimum


@given(proportional_tables())
def test_the_best_threshold_solves_the_water_filling_equation(table):
    variances, widths, epsilon, counts = table
    sd = np.sqrt(variances)
    scale = widths[0] / sd[0]
    # sum counts (1/sd - T)_+ = 2 scale^2/eps^2 T, and T gives the best weights.
    threshold = root_of(variances, widths, epsilon, counts) / scale
    weights = truncated_weights(variances, threshold, counts=counts)
    found, objective = best_threshold(variances, widths, epsilon, counts=counts)
    same = truncated_weights(variances, found, counts=counts)
    assert same == pytest.approx(weights, rel=1e-7)
    value = release_variance(weights, variances, widths, epsilon, counts=counts)
    assert objective == pytest.approx(value, rel=1e-10)


@given(proportional_tables())
def test_the_best_value_in_the_papers_case_is_one_over_the_total(table):
    variances, widths, epsilon, counts = table
    sd = np.sqrt(variances)
    threshold = root_of(variances, widths, epsilon, counts) / (widths[0] / sd[0])
    total = np.sum(counts * np.minimum(1 / variances, threshold / sd))
    _, objective = best_threshold(variances, widths, epsilon, counts=counts)
    assert objective == pytest.approx(1 / total, rel=1e-10)


@given(tables())
def test_the_paper_objective_is_that_of_its_weights(table):
    variances, widths, epsilon, counts = table
    threshold, objective = best_threshold(variances, widths, epsilon, counts=counts)
    weights = truncated_weights(variances, threshold, counts=counts)
    value = release_variance(weights, variances, widths, epsilon, counts=counts)
    assert objective == pytest.approx(value, rel=1e-11)


@given(tables())
def test_the_optimal_objective_is_that_of_its_weights(table):
    variances, widths, epsilon, counts = table
    weights, objective = optimal_weights(variances, widths, epsilon, counts=counts)
    value = release_variance(weights, variances, widths, epsilon, counts=counts)
    assert objective == value


@given(tables())
def test_the_optimal_value_is_one_over_the_total(table):
    variances, widths, epsilon, counts = table
    root = root_of(variances, widths, epsilon, counts)
    total = np.sum(counts * np.minimum(1 / variances, ratios(root, widths)))
    _, objective = optimal_weights(variances, widths, epsilon, counts=counts)
    assert objective == pytest.approx(1 / total, rel=1e-10)


@given(tables())
def test_optimal_weights_are_inverse_variances_held_back_at_the_root(table):
    variances, widths, epsilon, counts = table
    root = root_of(variances, widths, epsilon, counts)
    shape = np.minimum(1 / variances, ratios(root, widths))
    weights, _ = optimal_weights(variances, widths, epsilon, counts=counts)
    assert weights == pytest.approx(shape / np.sum(counts * shape), rel=1e-7)


@given(tables(epsilons=st.floats(0.001, 1000)))
def test_optimal_weights_satisfy_the_conditions_of_karush_kuhn_and_tucker(table):
    variances, widths, epsilon, counts = table
    weights, objective = optimal_weights(variances, widths, epsilon, counts=counts)
    ceiling = np.max(weights * widths)
    # By homogeneity the multiplier of "weights sum to one" is twice the objective.
    slack = objective - weights * variances  # half the price of a user's ceiling
    assert (slack >= -1e-10 * objective).all()
    free = weights * widths < ceiling * (1 - 1e-10)
    assert np.abs(slack[free]).max(initial=0) <= 1e-10 * objective
    wide = widths > 0
    prices = np.sum((counts * slack)[wide] / widths[wide])
    tolerance = 1e-10 * objective * np.sum(counts[wide] / widths[wide])
    assert prices == pytest.approx(2 / epsilon**2 * ceiling, rel=1e-9, abs=tolerance)


# Nothing does better


def paper_objectives(thresholds, variances, widths, epsilon, counts):
    """The objective of the paper's weights, from the definition, for many T."""
    precision = 1 / np.sqrt(variances)
    shape = precision * np.minimum(precision, np.asarray(thresholds)[..., None])
    weights = shape / np.sum(counts * shape, axis=-1, keepdims=True)
    noise = np.max(weights * widths, axis=-1) / epsilon
    return np.sum(counts * weights**2 * variances, axis=-1) + 2 * noise**2


def searched_threshold(variances, widths, epsilon, counts):
    """The least objective on a fine grid in every piece, refined by scipy."""
    corners = np.unique(1 / np.sqrt(variances))
    steps = np.linspace(0, 1, 41)[:, None]
    corners = np.concatenate((corners[:1] / 2, corners))
    grid = np.unique(corners[:-1] + steps * np.diff(corners))
    values = paper_objectives(grid, variances, widths, epsilon, counts)
    at = int(np.argmin(values))
    around = grid[max(at - 1, 0)], grid[min(at + 1, len(grid) - 1)]
    found = optimize.minimize_scalar(
        lambda t: paper_objectives(t, variances, widths, epsilon, counts),
        bounds=around,
        method="bounded",
        options={"xatol": 1e-9 * around[1]},
    )
    return min(values[at], found.fun)


def lower_bound(variances, widths, epsilon, counts):
    """A number that the objective of no weights can go below.

    Give user i a price mu_i >= 0.  For weights with sum 1, Cauchy and Schwarz say
    1 = sum w (1 - mu width) + sum mu (w width)
      <= sqrt(sum w^2 var + c max(w width)^2) sqrt(sum (1 - mu width)^2/var + S^2/c)
    with S = sum mu and c = 2/epsilon^2, so the objective is at least 1 over the
    square of the second root, for any prices.  The best prices are a least-squares
    problem with mu >= 0, which scipy solves.
    """
    variances, widths = np.repeat(variances, counts), np.repeat(widths, counts)
    wide = np.nonzero(widths)[0]
    sd = np.sqrt(variances)
    matrix = np.zeros((len(sd) + 1, len(wide)))
    matrix[wide, np.arange(len(wide))] = widths[wide] / sd[wide]
    matrix[-1] = epsilon / math.sqrt(2)
    target = np.append(1 / sd, 0.0)
    prices = optimize.nnls(matrix, target)[0] if len(wide) else np.zeros(0)
    return 1 / np.sum((target - matrix @ np.maximum(prices, 0.0)) ** 2)


@pytest.mark.slow
def test_no_search_beats_the_best_threshold():
    for variances, widths, epsilon, counts in random_instances(2000, seed=1):
        _, objective = best_threshold(variances, widths, epsilon, counts=counts)
        searched = searched_threshold(variances, widths, epsilon, counts)
        assert objective <= searched * (1 + 1e-11)


def test_no_weights_at_all_beat_the_optimal_ones():
    for variances, widths, epsilon, counts in random_instances(2000, seed=2):
        _, objective = optimal_weights(variances, widths, epsilon, counts=counts)
        bound = lower_bound(variances, widths, epsilon, counts)
        assert objective <= bound * (1 + 1e-9)


def solved_weights(variances, widths, epsilon, counts):
    """The answer of a general solver to the same problem, smooth and convex.

    Its variables are the share of each row and the ceiling on weight times width.
    """

    def objective(x):
        return np.sum(x[:-1] ** 2 * variances / counts) + 2 * (x[-1] / epsilon) ** 2

    shares = counts / counts.sum()
    start = np.append(shares, np.max(widths) / counts.sum())
    unit = objective(start)
    solved = optimize.minimize(
        lambda x: objective(x) / unit,
        start,
        method="SLSQP",
        bounds=[(0, 1)] * len(start),
        constraints=(
            {"type": "eq", "fun": lambda x: np.sum(x[:-1]) - 1},
            {"type": "ineq", "fun": lambda x: x[-1] - x[:-1] * widths / counts},
        ),
        options={"ftol": 1e-14, "maxiter": 500},
    )
    shares = np.maximum(solved.x[:-1], 0.0)
    return shares / shares.sum() / counts


def test_a_general_solver_finds_the_optimal_weights_and_no_better():
    for variances, widths, epsilon, counts in random_instances(40, seed=3):
        epsilon = min(max(epsilon, 0.1), 10.0)
        _, best = optimal_weights(variances, widths, epsilon, counts=counts)
        found = solved_weights(variances, widths, epsilon, counts)
        value = release_variance(found, variances, widths, epsilon, counts=counts)
        assert best * (1 - 1e-12) <= value <= best * (1 + 1e-3)


@given(tables(epsilons=st.floats(0.001, 1000)), st.integers(0, 2**32))
def test_moving_weight_around_never_helps(table, seed):
    variances, widths, epsilon, counts = table
    weights, objective = optimal_weights(variances, widths, epsilon, counts=counts)
    for size in (1e-4, 1e-2, 1.0):
        factors = np.exp(size * np.random.default_rng(seed).normal(size=len(weights)))
        moved = weights * factors / np.sum(counts * weights * factors)
        value = release_variance(moved, variances, widths, epsilon, counts=counts)
        assert objective <= value * (1 + 1e-12)


def test_the_deeper_of_two_valleys_is_found():
    # 100 users with sd 1, two with sd .22 and one with .1: holding everyone back is
    # good, holding no one back is a valley too, and the way between is uphill.
    variances, widths = np.array([1.0, 0.05, 0.01]), np.array([0.5, 0.7, 0.1])
    epsilon, counts = 0.3, np.array([100, 2, 1])
    values = paper_objectives([1.0, 3.0, 10.0], variances, widths, epsilon, counts)
    assert values[0] < values[2] < values[1]
    _, objective = best_threshold(variances, widths, epsilon, counts=counts)
    assert objective == pytest.approx(values[0], rel=1e-12)


@given(tables())
def test_optimal_weights_are_never_worse_than_the_papers(table):
    variances, widths, epsilon, counts = table
    _, best = optimal_weights(variances, widths, epsilon, counts=counts)
    _, paper = best_threshold(variances, widths, epsilon, counts=counts)
    assert best <= paper * (1 + 1e-12)


@given(proportional_tables())
def test_the_papers_family_is_optimal_when_widths_follow_deviations(table):
    variances, widths, epsilon, counts = table
    best, value = optimal_weights(variances, widths, epsilon, counts=counts)
    threshold, paper = best_threshold(variances, widths, epsilon, counts=counts)
    assert paper == pytest.approx(value, rel=1e-11)
    weights = truncated_weights(variances, threshold, counts=counts)
    assert weights == pytest.approx(best, rel=1e-7)


# Rows, order and scale


@given(tables(most=5))
def test_rows_with_counts_are_the_same_as_their_users_one_by_one(table):
    variances, widths, epsilon, counts = table
    each = np.repeat(variances, counts), np.repeat(widths, counts), epsilon
    weights, objective = optimal_weights(variances, widths, epsilon, counts=counts)
    apart, same = optimal_weights(*each)
    assert apart == pytest.approx(np.repeat(weights, counts), rel=1e-9)
    assert same == pytest.approx(objective, rel=1e-11)
    assert best_threshold(*each)[1] == pytest.approx(
        best_threshold(variances, widths, epsilon, counts=counts)[1], rel=1e-11
    )


@given(tables(most=5), LEVELS)
def test_weights_by_formula_do_not_depend_on_how_rows_are_written(table, level):
    variances, _, _, counts = table
    each = np.repeat(variances, counts)
    assert inverse_variance_weights(each) == pytest.approx(
        np.repeat(inverse_variance_weights(variances, counts=counts), counts), rel=1e-12
    )
    assert truncated_weights(each, 1 / level) == pytest.approx(
        np.repeat(truncated_weights(variances, 1 / level, counts=counts), counts),
        rel=1e-12,
    )


@pytest.mark.slow
@given(tables(), st.randoms(use_true_random=False))
def test_the_order_of_rows_does_not_matter(table, random):
    variances, widths, epsilon, counts = table
    order = list(range(len(counts)))
    random.shuffle(order)
    mixed = variances[order], widths[order], epsilon
    weights, objective = optimal_weights(variances, widths, epsilon, counts=counts)
    shuffled, same = optimal_weights(*mixed, counts=counts[order])
    assert shuffled == pytest.approx(weights[order], rel=1e-9)
    assert same == pytest.approx(objective, rel=1e-11)
    assert best_threshold(*mixed, counts=counts[order])[1] == pytest.approx(
        best_threshold(variances, widths, epsilon, counts=counts)[1], rel=1e-11
    )


def test_no_counts_means_one_user_in_each_row():
    ones = np.ones(4, dtype=np.int64)
    widths = [0.9, 1.0, 1.0, 1.0]
    assert best_threshold(VARIANCES, widths, 1.0) == best_threshold(
        VARIANCES, widths, 1.0, counts=ones
    )
    first, second = optimal_weights(VARIANCES, widths, 1.0)
    again, same = optimal_weights(VARIANCES, widths, 1.0, counts=ones)
    assert first.tolist() == again.tolist()
    assert second == same


@given(tables(), st.floats(1e-3, 1e3))
def test_a_change_of_units_changes_the_objective_by_its_square(table, unit):
    variances, widths, epsilon, counts = table
    for best in (best_threshold, optimal_weights):
        _, objective = best(variances, widths, epsilon, counts=counts)
        _, scaled = best(variances * unit**2, widths * unit, epsilon, counts=counts)
        assert scaled == pytest.approx(objective * unit**2, rel=1e-10)


@pytest.mark.parametrize("epsilon", [1e-6, 1e-2, 1.0, 1e2, 1e6])
def test_a_billion_users_in_a_few_rows_cost_nothing_extra(epsilon):
    counts = np.array([10**9, 10**6, 10**3])
    variances, widths = np.array([0.2, 0.05, 0.01]), np.array([1.0, 0.8, 0.3])
    weights, objective = optimal_weights(variances, widths, epsilon, counts=counts)
    assert np.sum(counts * weights) == pytest.approx(1.0, rel=1e-12)
    floor = 1 / np.sum(counts / variances)
    assert floor <= objective <= floor * 1.001 + 2 / (1e9 * epsilon) ** 2


# Monotonicity and limits


@given(tables(), EPSILONS)
def test_more_budget_never_hurts(table, other):
    variances, widths, epsilon, counts = table
    low, high = min(epsilon, other), max(epsilon, other)
    for best in (best_threshold, optimal_weights):
        _, poor = best(variances, widths, low, counts=counts)
        _, rich = best(variances, widths, high, counts=counts)
        assert rich <= poor * (1 + 1e-12)


@given(tables(widths=LEVELS, epsilons=st.floats(0.01, 1)))
def test_more_budget_helps_where_noise_matters(table):
    variances, widths, epsilon, counts = table
    for best in (best_threshold, optimal_weights):
        _, poor = best(variances, widths, epsilon, counts=np.minimum(counts, 10))
        _, rich = best(variances, widths, 2 * epsilon, counts=np.minimum(counts, 10))
        assert rich < poor


@given(proportional_tables())
def test_weight_ratios_lie_between_those_of_deviations_and_variances(table):
    variances, widths, epsilon, counts = table
    weights, _ = optimal_weights(variances, widths, epsilon, counts=counts)
    order = np.argsort(variances)
    weights, sd = weights[order], np.sqrt(variances[order])
    steps = weights[:-1] / weights[1:]  # the user with the smaller variance on top
    assert (steps >= sd[1:] / sd[:-1] * (1 - 1e-10)).all()
    assert (steps <= (sd[1:] / sd[:-1]) ** 2 * (1 + 1e-10)).all()


@given(tables(widths=LEVELS, epsilons=st.just(1e-6), most=10))
def test_weights_tend_to_inverse_widths_when_noise_is_everything(table):
    variances, widths, epsilon, counts = table
    widths = 0.1 + widths
    weights, objective = optimal_weights(variances, widths, epsilon, counts=counts)
    shape = 1 / widths
    assert weights == pytest.approx(shape / np.sum(counts * shape), rel=1e-6)
    noise = 2 / (epsilon * np.sum(counts * shape)) ** 2
    assert objective == pytest.approx(noise, rel=1e-6)


@given(tables(epsilons=st.just(1e12), most=10))
def test_weights_reduce_to_inverse_variance_without_privacy(table):
    variances, widths, epsilon, counts = table
    free = inverse_variance_weights(variances, counts=counts)
    weights, objective = optimal_weights(variances, widths, epsilon, counts=counts)
    assert weights == pytest.approx(free, rel=1e-9)
    assert objective == pytest.approx(1 / np.sum(counts / variances), rel=1e-9)
    threshold, paper = best_threshold(variances, widths, epsilon, counts=counts)
    assert paper == pytest.approx(objective, rel=1e-9)
    weights = truncated_weights(variances, threshold, counts=counts)
    assert weights == pytest.approx(free, rel=1e-4)


def test_users_without_width_take_everything_when_noise_is_everything():
    weights, objective = optimal_weights([0.2, 0.1, 0.3], [0.0, 0.5, 0.0], 1e-6)
    assert weights == pytest.approx([0.6, 0.0, 0.4], abs=1e-9)
    assert objective == pytest.approx(1 / (1 / 0.2 + 1 / 0.3), rel=1e-9)


def test_no_widths_at_all_is_no_noise_at_all():
    free = inverse_variance_weights(VARIANCES)
    weights, objective = optimal_weights(VARIANCES, np.zeros(4), 1e-6)
    assert weights == pytest.approx(free, rel=1e-13)
    assert objective == pytest.approx(1 / np.sum(1 / VARIANCES), rel=1e-13)
    threshold, paper = best_threshold(VARIANCES, np.zeros(4), 1e-6)
    assert paper == pytest.approx(objective, rel=1e-13)
    assert truncated_weights(VARIANCES, threshold) == pytest.approx(free, rel=1e-13)


def test_a_high_threshold_holds_nobody_back():
    assert truncated_weights(VARIANCES, 1e9) == pytest.approx(
        inverse_variance_weights(VARIANCES), rel=1e-13
    )


def test_a_low_threshold_leaves_inverse_deviations():
    shape = 1 / np.sqrt(VARIANCES)
    assert truncated_weights(VARIANCES, 1e-9) == pytest.approx(
        shape / shape.sum(), rel=1e-13
    )


@pytest.mark.parametrize("best", [best_threshold, optimal_weights])
def test_the_largest_budget_is_no_privacy(best):
    _, objective = best(VARIANCES, np.sqrt(VARIANCES), 1e12)
    assert objective == pytest.approx(0.018943723335634, abs=5e-16)


# Wild magnitudes


def wild(draw, ends, rows):
    """Numbers of any magnitude between these ends, and often the ends."""
    low, high = (math.log10(end) for end in ends)
    exponents = st.floats(low, high) | st.sampled_from([low, 0.0, high])
    column = draw(st.lists(exponents, min_size=rows, max_size=rows))
    return np.clip(10.0 ** np.array(column), *ends)


@st.composite
def wild_tables(draw):
    rows = draw(st.integers(1, 5))
    numbers = st.sampled_from([1, 1000, 2**62])
    return (
        wild(draw, check.MEASURES, rows),
        wild(draw, (1e-307, check.MEASURES[1]), rows) * draw(st.sampled_from([0, 1])),
        draw(st.sampled_from([1e-12, 0.1, 1.0, 1e12])),
        np.array(draw(st.lists(numbers, min_size=rows, max_size=rows))),
    )


# Every warning is an error in these tests, those of NumPy included.
@given(wild_tables())
def test_wild_magnitudes_give_weights_and_objectives(table):
    variances, widths, epsilon, counts = table
    weights, best = optimal_weights(variances, widths, epsilon, counts=counts)
    assert np.sum(counts * weights) == pytest.approx(1.0, rel=1e-9)
    threshold, paper = best_threshold(variances, widths, epsilon, counts=counts)
    assert 0 < threshold < math.inf
    assert 0 < best <= paper * (1 + 1e-9) < math.inf
    assert release_variance(weights, variances, widths, epsilon, counts=counts) > 0


@given(st.data(), st.sampled_from([5e-324, 1e-200, 1.0, 1e200, 1.7e308]))
def test_wild_variances_give_weights(data, threshold):
    variances = wild(data.draw, check.VARIANCES, data.draw(st.integers(1, 5)))
    counts = np.full(len(variances), 2**40)
    for weights in (
        inverse_variance_weights(variances, counts=counts),
        truncated_weights(variances, threshold, counts=counts),
    ):
        assert np.sum(counts * weights) == pytest.approx(1.0, rel=1e-9)


def test_a_user_of_hardly_any_width_does_not_hold_back_the_others():
    weights, objective = optimal_weights([1.0, 1.0], [1e-17, 1.0], 1e6)
    assert weights == pytest.approx([0.5, 0.5], rel=1e-9)
    assert objective == pytest.approx(0.5, rel=1e-9)


# The cores that plans call


@given(tables(), LEVELS)
def test_the_cores_give_what_the_checked_functions_give(table, level):
    variances, widths, epsilon, counts = table
    weights, objective = optimal_weights(variances, widths, epsilon, counts=counts)
    for numbers in (counts, counts.astype(np.float64)):
        found, value = planned_optimal_weights(variances, widths, epsilon, numbers)
        assert (found == weights).all()
        assert value == objective
        assert objective == planned_variance(
            weights, variances, widths, epsilon, numbers
        )
        assert planned_threshold(variances, widths, epsilon, numbers) == best_threshold(
            variances, widths, epsilon, counts=counts
        )
        assert (
            planned_truncated_weights(variances, level, numbers)
            == truncated_weights(variances, level, counts=counts)
        ).all()


@given(tables(), st.sampled_from([5e-324, 1e-200, 1e-30, 1e30, 1.7e308]))
def test_the_cores_take_any_share_of_a_budget(table, share):
    variances, widths, _, counts = table
    weights, objective = planned_optimal_weights(variances, widths, share, counts)
    assert np.sum(counts * weights) == pytest.approx(1.0, rel=1e-9)
    threshold, paper = planned_threshold(variances, widths, share, counts)
    assert 0 < threshold < math.inf
    assert 0 < objective <= paper * (1 + 1e-9) < math.inf
    assert optimal_ceiling(variances, widths, share, counts) > 0


# Inputs


def test_narrow_types_are_as_good_as_wide_ones():
    narrow = np.array([200, 100], dtype=np.uint8)
    plain = narrow.astype(np.float64)
    weights, objective = optimal_weights(
        narrow, narrow, odd(np.uint8(1)), counts=narrow
    )
    same, value = optimal_weights(plain, plain, 1.0, counts=plain)
    assert weights.tolist() == same.tolist()
    assert objective == value
    found = best_threshold(narrow, narrow, odd(np.float16(0.5)), counts=narrow)
    assert found == best_threshold(plain, plain, 0.5, counts=plain)
    truncated = truncated_weights(narrow, odd(np.uint8(200)), counts=narrow)
    assert truncated.tolist() == truncated_weights(plain, 200, counts=plain).tolist()


def test_inputs_are_not_modified():
    inputs = [VARIANCES.copy(), np.array([0.9, 1.0, 0.0, 1.0]), np.array([4, 3, 2, 1])]
    for array in inputs:
        array.flags.writeable = False
    variances, widths, counts = inputs
    before = [array.copy() for array in inputs]
    inverse_variance_weights(variances, counts=counts)
    weights = truncated_weights(variances, 2.0, counts=counts)
    release_variance(weights, variances, widths, 1.0, counts=counts)
    best_threshold(variances, widths, 1.0, counts=counts)
    optimal_weights(variances, widths, 1.0, counts=counts)
    for array, copy in zip(inputs, before, strict=True):
        np.testing.assert_array_equal(array, copy)


def test_lists_and_whole_numbers_are_welcome():
    weights, objective = optimal_weights([1, 4], [1, 2], 1, counts=[1.0, 2.0])
    same, value = optimal_weights(
        np.array([1.0, 4.0]), np.array([1.0, 2.0]), 1.0, counts=np.array([1, 2])
    )
    assert weights.tolist() == same.tolist()
    assert objective == value


GOOD = {
    "variances": [0.2, 0.1],
    "widths": [1.0, 0.5],
    "weights": [0.5, 0.5],
    "threshold": 1.0,
    "epsilon": 1.0,
    "counts": [1, 1],
}
ARGUMENTS = {
    inverse_variance_weights: ("variances",),
    truncated_weights: ("variances", "threshold"),
    release_variance: ("weights", "variances", "widths", "epsilon"),
    best_threshold: ("variances", "widths", "epsilon"),
    optimal_weights: ("variances", "widths", "epsilon"),
}
BAD = [
    ("variances", [1e-310, 1.0], ValueError),
    ("variances", [1e301, 1.0], ValueError),
    ("variances", np.array([1, 2], dtype="m8[s]"), TypeError),
    ("variances", np.ma.array([0.2, 0.1], mask=[False, True]), ValueError),
    ("variances", [1j, 1j], TypeError),
    ("widths", [1e31, 1.0], ValueError),
    ("weights", [1e31, 1.0], ValueError),
    ("variances", [0.2, 0.0], ValueError),
    ("variances", [0.2, -0.1], ValueError),
    ("variances", [0.2, math.nan], ValueError),
    ("variances", [0.2, math.inf], ValueError),
    ("variances", [], ValueError),
    ("variances", [[0.2], [0.1]], ValueError),
    ("variances", ["a", "b"], TypeError),
    ("variances", [0.2, 0.1, 0.1], ValueError),
    ("widths", [1.0, -0.5], ValueError),
    ("widths", [1.0, math.nan], ValueError),
    ("widths", [1.0, math.inf], ValueError),
    ("widths", [1.0], ValueError),
    ("widths", 1.0, ValueError),
    ("weights", [1.5, -0.5], ValueError),
    ("weights", [1.0, math.nan], ValueError),
    ("weights", [1.0], ValueError),
    ("epsilon", 0.0, ValueError),
    ("epsilon", -1.0, ValueError),
    ("epsilon", math.inf, ValueError),
    ("epsilon", math.nan, ValueError),
    ("epsilon", 1e-200, ValueError),
    ("epsilon", 1e13, ValueError),
    ("epsilon", np.timedelta64(1), TypeError),
    ("epsilon", "1", TypeError),
    ("epsilon", None, TypeError),
    ("epsilon", [1.0], TypeError),
    ("counts", [1, 0], ValueError),
    ("counts", [1, -2], ValueError),
    ("counts", [1, 1.5], ValueError),
    ("counts", [1.0, math.nan], ValueError),
    ("counts", [1], ValueError),
    ("counts", [1, 1, 1], ValueError),
    ("counts", ["1", "1"], TypeError),
    ("threshold", 0.0, ValueError),
    ("threshold", -1.0, ValueError),
    ("threshold", math.inf, ValueError),
    ("threshold", math.nan, ValueError),
    ("threshold", "1", TypeError),
]


@pytest.mark.parametrize(
    ("function", "name", "value", "error"),
    [
        (function, *bad)
        for function, arguments in ARGUMENTS.items()
        for bad in BAD
        if bad[0] in (*arguments, "counts")
    ],
)
def test_bad_arguments_are_refused_by_name(function, name, value, error):
    values = {**GOOD, name: value}
    positional = [values[argument] for argument in ARGUMENTS[function]]
    with pytest.raises(error, match=name):
        function(*positional, counts=values["counts"])
