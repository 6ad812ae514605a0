"""The default for private sizes: every step's sensitivity, every path's budget."""

import itertools
import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hetlit import Beta, Constant, TwoPoint, Users, sample_users, sizes, user_variance
from hetlit.estimators.private_k import auto as module
from hetlit.estimators.private_k.auto import Weighting, estimate_histogram_ratio
from hetlit.estimators.spread import spread_histogram
from hetlit.privacy.noise import SecureNoiseUnavailable
from hetlit.privacy.selection import median_utilities
from hetlit.users.groups import by_size_class, classes_up_to
from tests.odd import odd
from tests.scripted import Scripted

K_MAX = 6
RECORDS = [(k, s) for k in range(1, K_MAX + 1) for s in range(k + 1)]
OTHERS = [(1, 0), (2, 1), (5, 3), (6, 6)]


def table(records: list[tuple[int, int]]) -> Users:
    return Users(*zip(*records, strict=True))


def neighbours() -> list[tuple[Users, Users]]:
    """Every way to replace one user by another, sizes included."""
    return [
        (table([*OTHERS, one]), table([*OTHERS, other]))
        for one, other in itertools.product(RECORDS, RECORDS)
    ]


def largest_move(statistic) -> float:
    return max(abs(statistic(a) - statistic(b)) for a, b in neighbours())


@pytest.mark.parametrize("centre", [0.0, 0.3, 0.9])
def test_the_sum_of_squares_moves_by_its_range_at_most_and_at_worst(centre):
    q = max(centre * (1 - centre), 0.05)

    def statistic(users):
        return module._sum_of_squares(by_size_class(users), centre, q)

    # (mean - p)^2 = 0 needs a mean at the centre, which the grid of sizes up to 6
    # has for centre 0 only: elsewhere the range is not quite attained.
    allowed = module._moment_range(centre)
    moved = largest_move(statistic)
    assert moved <= allowed * (1 + 1e-12)
    assert moved >= 0.85 * allowed
    if centre == 0.0:
        assert moved == pytest.approx(allowed)


def test_the_histogram_moves_by_two_at_most():
    def counts(users):
        found = module._binned(by_size_class(users).sizes, K_MAX)
        assert found.tolist() == [
            sum(1 for k in users.k if 2**b <= k < 2 ** (b + 1)) for b in range(3)
        ]
        return found

    moves = [np.abs(counts(a) - counts(b)).sum() for a, b in neighbours()]
    assert max(moves) == 2.0


def test_counts_are_believed_if_they_stand_out_from_their_noise():
    found = module._believed(np.array([9.0, 8.0, -3.0, 8.5, 100.0]), 2.0)
    assert found.start.tolist() == [1.0, 8.0, 16.0]
    assert found.k.tolist() == [1.0, 11.5, 23.5]
    assert found.counts.tolist() == [9.0, 8.5, 100.0]
    assert found.largest == 31.0
    # With nothing clear, everybody is taken to hold one sample.
    found = module._believed(np.array([-5.0, 1.0, 0.0]), 2.0)
    assert (found.start.tolist(), found.counts.tolist()) == ([1.0], [1.0])


@pytest.mark.parametrize("least", [2, 4])
def test_utilities_of_the_median_move_by_one_at_most_when_users_come_and_go(least):
    grid = np.geomspace(0.001, 0.2, 9)

    def utilities(users):
        return median_utilities(spread_histogram(users, least, 0.3, 0.2, grid))

    moves = [np.abs(utilities(a) - utilities(b)).max() for a, b in neighbours()]
    assert max(moves) == 1.0


@pytest.mark.parametrize("clips", [False, True])
@pytest.mark.parametrize("ceiling", [2.0, 8.0, math.inf])
@pytest.mark.parametrize("cap", [3.0, 6.0])
def test_total_and_deviations_move_by_their_sensitivities(clips, ceiling, cap):
    weighting = Weighting(
        cap=cap,
        centre=0.3,
        q=0.21,
        spread=0.01,
        error=0.01,
        reach=1.0,
        clips=clips,
        ceiling=ceiling,
    )
    weights, lower, upper = weighting.at(classes_up_to(K_MAX))
    # The options do what they are there for: users are clipped, weights are held down.
    assert (lower.max() > 0.0 or upper.max() < 1.0) == clips
    if math.isfinite(ceiling):
        assert (weights * (upper - lower)).max() == pytest.approx(ceiling)
    on_total = weights.max() - weights.min()
    on_sum = (weights * (upper - 0.3)).max() + (weights * (0.3 - lower)).max()

    def total(users):
        held = by_size_class(users).sizes
        return float(np.sum(held.counts * weighting.at(held.k)[0]))

    def deviations(users):
        groups = by_size_class(users)
        w, a, b = weighting.at(groups.sizes.k)
        return groups.sum(lambda g, means: w[g] * (np.clip(means, a[g], b[g]) - 0.3))

    assert largest_move(total) <= on_total * (1 + 1e-12)
    assert largest_move(total) == pytest.approx(on_total)
    # Means of 0 and of 1 exist for every size, so the ends are attained, at whole
    # sizes: what the classes between them add to the sensitivity is hardly anything.
    w, a, b = weighting.at(np.arange(1.0, K_MAX + 1))
    attained = (w * (b - 0.3)).max() + (w * (0.3 - a)).max()
    moved = largest_move(deviations)
    assert moved <= on_sum * (1 + 1e-12)
    assert moved == pytest.approx(attained)
    assert moved >= 0.999 * on_sum


@given(
    n=st.integers(1, 3000),
    epsilon=st.floats(0.01, 50.0),
    seed=st.integers(0, 2**32),
    exponent=st.floats(0.5, 3.0),
)
@settings(max_examples=60)
def test_the_shares_of_every_path_add_up_to_epsilon(n, epsilon, seed, exponent):
    rng = np.random.default_rng(seed)
    users = sample_users(Beta(0.3, 0.01), sizes.zipf(n, exponent, 500, rng), rng)
    estimate = estimate_histogram_ratio(users, epsilon, k_max=500, rng=rng)
    assert estimate.ledger.epsilon == pytest.approx(epsilon, rel=1e-12)
    assert estimate.ledger.delta == 0.0
    assert math.isfinite(estimate.value)


def test_all_four_paths_are_taken_where_they_should_be():
    rng = np.random.default_rng(1)

    def path(k, epsilon):
        users = sample_users(Beta(0.3, 0.0004), k, rng)
        options: dict[str, Any] = {"k_max": 2000, "rng": rng, "trace": True}
        return estimate_histogram_ratio(users, epsilon, **options).trace.path

    assert path(sizes.equal(100, 10), 1.0) == "plain"
    assert path(sizes.equal(10_000, 10), 1.0) == "plain again"
    assert path(sizes.zipf(10_000, 1.5, 2000, rng), 0.3) == "cautious"
    assert path(sizes.zipf(10_000, 1.5, 2000, rng), 3.0) == "asked"


def test_a_hopelessly_noisy_total_weight_stays_within_its_public_bounds():
    class Shifted(Scripted):
        """Adds a number to the total weight and nothing to all other sums."""

        shift = 0.0

        def laplace(self, statistic, scale):
            answer = super().laplace(statistic, scale)
            return answer + (self.shift if len(self.scales) == 4 else 0.0)

    k = np.array([1, 300, 1000])
    users = Users(k, [0, 90, 310], [300, 300, 20_000])
    totals = []
    for shift in (-1e12, 0.0, 1e12):
        source = Shifted()
        source.shift = shift
        estimate = estimate_histogram_ratio(
            users, 1.0, k_max=1000, rng=source, trace=True
        )
        assert [s.name for s in estimate.ledger.steps] == [
            "first mean",
            "histogram of sizes",
            "second moment",
            "typical spread",
            "total weight",
            "weighted deviations",
        ]
        assert math.isfinite(estimate.value)
        totals.append(estimate.trace.total_weight)
    assert 0.0 < totals[0] < totals[1] < totals[2] < 1e9


def squared_error(meta, k, epsilon, runs, seed):
    """Return the MSE, with the last noise averaged over."""
    rng = np.random.default_rng(seed)
    errors = []
    for _ in range(runs):
        users = sample_users(meta, k, rng)
        inside = estimate_histogram_ratio(
            users, epsilon, k_max=2000, rng=rng, trace=True
        ).trace
        errors.append((inside.noiseless - meta.mean) ** 2 + 2 * inside.noise_scale**2)
    return float(np.mean(errors))


def plain_error(meta, k, epsilon):
    n = len(k)
    variance = user_variance(k, meta.mean, meta.variance).mean() / n
    return variance + 2 / (n * epsilon) ** 2


@pytest.mark.parametrize("profile", ["zipf", "lognormal"])
def test_it_halves_the_error_of_the_plain_mean_on_uneven_sizes(profile):
    rng = np.random.default_rng(3)
    k = {
        "zipf": sizes.zipf(10_000, 1.5, 2000, rng),
        "lognormal": sizes.lognormal(10_000, 3.0, 1.5, 2000, rng),
    }[profile]
    meta = Beta(0.3, 0.0004)
    # About 0.2 and 0.3 in the benchmark; 60 runs have a relative error of 20%.
    ratio = squared_error(meta, k, 1.0, 60, seed=4) / plain_error(meta, k, 1.0)
    assert ratio < 0.5


def test_a_minority_far_from_the_rest_is_not_clipped_away():
    k = sizes.geometric(10_000, 50.0, np.random.default_rng(5))
    meta = TwoPoint(0.1, 0.9, 0.05)
    k = np.minimum(k, 2000)
    ratio = squared_error(meta, k, 1.0, 60, seed=6) / plain_error(meta, k, 1.0)
    assert ratio < 2.0


def test_equal_rows_may_be_merged_or_split():
    rng = np.random.default_rng(7)
    users = sample_users(Constant(0.3), sizes.zipf(20_000, 1.5, 100, rng), rng)
    merged = users.compressed()
    first, second = (
        estimate_histogram_ratio(u, 1.0, k_max=100, rng=np.random.default_rng(8)).value
        for u in (users, merged)
    )
    assert first == pytest.approx(second, abs=1e-12)


def test_a_billion_users_are_as_cheap_as_their_rows():
    users = Users([1, 5, 100], [0, 2, 30], [10**9, 10**8, 10**6])
    rng = np.random.default_rng(9)
    estimate = estimate_histogram_ratio(users, 1.0, k_max=1000, rng=rng)
    assert 0.0 < estimate.value < 0.5


def test_bad_input_is_refused_by_name():
    users = Users([1, 5], [0, 2])
    rng = np.random.default_rng(0)
    with pytest.raises(ValueError, match=r"k_max must be.*public bound.*capped"):
        estimate_histogram_ratio(users, 1.0, k_max=4, rng=rng)
    with pytest.raises(TypeError, match="k_max"):
        estimate_histogram_ratio(users, 1.0, k_max=odd(4.5), rng=rng)
    with pytest.raises(ValueError, match="epsilon"):
        estimate_histogram_ratio(users, 0.0, k_max=5, rng=rng)
    with pytest.raises(TypeError, match="users"):
        estimate_histogram_ratio(odd([1, 2]), 1.0, k_max=5, rng=rng)
    with pytest.raises(SecureNoiseUnavailable):
        estimate_histogram_ratio(users, 1.0, k_max=5)
