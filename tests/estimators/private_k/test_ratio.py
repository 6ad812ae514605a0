"""Private sizes: the noisy ratio, static cohorts, and what they promise.

Privacy is checked exhaustively on small tables: sensitivities over all neighbours,
the spread by enumerating all pairings, and whole runs by the likelihood of their
transcripts.  Statistical tests have fixed seeds.  For a random seed, a true one fails
with a chance of at most 2e-10 (exact binomial tails; fewer than 60 comparisons) or
1e-9 (two Kolmogorov-Smirnov tests): together below 2e-8.
"""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Iterator
from contextlib import nullcontext
from functools import partial
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from hetlit import Beta, Users, sample_users, sizes
from hetlit.estimators.first_guesses import initial_mean_error
from hetlit.estimators.private_k import cohorts as cohorts_module
from hetlit.estimators.private_k import estimate_private_k
from hetlit.estimators.private_k.auto import estimate_histogram_ratio
from hetlit.estimators.private_k.cohorts import spread_variance, static_cohorts
from hetlit.estimators.private_k.paper import estimate_published_k
from hetlit.estimators.private_k.ptr import estimate_ptr
from hetlit.estimators.private_k.ratio import SHARES, estimate_ratio
from hetlit.estimators.private_k.sums import RatioPlan, ratio_plan, ratio_statistics
from hetlit.privacy.account import Account
from hetlit.privacy.ledger import EXPONENTIAL, PRIVATE_SIZES, Cohort, Mechanism, Step
from hetlit.privacy.noise import SecureNoiseUnavailable, Simulated, choice_law
from tests.transcripts import Transcript

QUICK = settings(max_examples=50)
METHODS = ("ratio", "ptr", "paper")


class Unshuffled(np.random.Generator):
    """Draws as usual, but keeps orders."""

    def __init__(self, seed: int = 0) -> None:
        super().__init__(np.random.PCG64(seed))

    def permutation(self, x: Any, axis: int = 0) -> Any:
        return x


class Scripted(Simulated):
    """Takes given outcomes and adds given noises, or draws them; keeps what it did."""

    def __init__(
        self,
        *outcomes: int,
        noises: list[float] | None = None,
        chance: np.random.Generator | None = None,
    ) -> None:
        super().__init__(Unshuffled() if chance is None else chance)
        self.outcomes = list(outcomes)
        self.script = noises
        self.noises: list[float] = []
        self.scales: list[float] = []
        self.laws: list[np.ndarray] = []

    def laplace(self, statistic: float, scale: float) -> float:
        drawn = float(self.chance.laplace(0.0, scale))
        self.scales.append(scale)
        self.noises.append(drawn if self.script is None else self.script.pop(0))
        return statistic + self.noises[-1]

    def choose(self, utilities: Any, epsilon: float, sensitivity: float) -> int:
        self.laws.append(choice_law(utilities, epsilon, sensitivity))
        return self.outcomes.pop(0) % len(self.laws[-1])


def spread_of(users: Users, cap: int, epsilon: float, source: Scripted) -> float:
    """Return the variance that the spread step finds, and check what it pays."""
    cohorts = (Cohort("spread", users.n, "all"), Cohort("final", 1, "nobody here"))
    account = Account(epsilon, PRIVATE_SIZES, cohorts, source)
    variance = spread_variance(account, users, cap)
    mechanism = Mechanism(kind=EXPONENTIAL, sensitivity=1.0)
    (step,) = account.ledger().steps
    assert step == Step("spread between users", ("spread",), mechanism, epsilon)
    return variance


def plausible_count(count: int, n: int, probability: float) -> bool:
    law = stats.binom(n, probability)
    return bool(min(law.cdf(count), law.sf(count - 1)) >= 1e-10)


def all_users(k_max: int) -> list[tuple[int, int]]:
    """Every user there can be: (k, successes) for k up to k_max."""
    return [(k, ones) for k in range(1, k_max + 1) for ones in range(k + 1)]


def table(rows: Any) -> Users:
    k, successes = zip(*rows, strict=True)
    return Users(k, successes)


@st.composite
def tables(draw: st.DrawFn, least: int = 1) -> Users:
    row = st.integers(1, 12).flatmap(
        lambda k: st.tuples(st.just(k), st.integers(0, k), st.integers(1, 4))
    )
    rows = draw(st.lists(row, min_size=least, max_size=30))
    return Users(*(list(column) for column in zip(*rows, strict=True)))


def zipf_users(n: int = 4000, seed: int = 0) -> Users:
    rng = np.random.default_rng(seed)
    k = sizes.zipf(n, exponent=1.5, k_max=500, rng=rng)
    return sample_users(Beta(0.3, 0.0004), k, rng)


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
    tables(),
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
@given(tables(), st.integers(1, 15))
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


# Static cohorts.


def test_cohorts_take_a_tenth_a_tenth_and_the_rest() -> None:
    users = zipf_users(1234).compressed()
    parts = static_cohorts(users, np.random.default_rng(0))
    assert [part.n for part in parts] == [123, 123, 988]
    merged = Users(
        np.concatenate([part.k for part in parts]),
        np.concatenate([part.successes for part in parts]),
        np.concatenate([part.counts for part in parts]),
    ).compressed()
    assert merged.k.tolist() == users.k.tolist()
    assert merged.successes.tolist() == users.successes.tolist()
    assert merged.counts.tolist() == users.counts.tolist()


@pytest.mark.parametrize("counts", [np.ones(60, dtype=int), np.arange(1, 61)])
def test_cohorts_do_not_depend_on_the_data(counts: Any) -> None:
    rng = np.random.default_rng(1)
    first = Users(rng.integers(1, 9, 60), np.zeros(60, dtype=int), counts)
    # Rows 0 to 59 of the first cohort tell who was drawn.
    second = Users(np.arange(60) + 1, np.arange(60), counts)
    for seed in range(5):
        one = static_cohorts(first, np.random.default_rng(seed))
        two = static_cohorts(second, np.random.default_rng(seed))
        for part, other in zip(one, two, strict=True):
            assert part.counts.tolist() == other.counts.tolist()
            assert part.k.tolist() == first.k[other.successes].tolist()


def test_how_many_users_of_a_row_go_where_has_its_exact_law() -> None:
    users = Users([1, 2], [0, 0], [9, 11])
    rng = np.random.default_rng(2)
    runs = 6_000
    seen: dict[tuple[int, ...], int] = {}
    for _ in range(runs):
        first, second, _ = static_cohorts(users, rng)
        key = tuple(int(part.counts[part.k == 1].sum()) for part in (first, second))
        seen[key] = seen.get(key, 0) + 1
    for a, b in itertools.product(range(3), repeat=2):
        chance = stats.hypergeom(20, 9, 2).pmf(a) * stats.hypergeom(18, 9 - a, 2).pmf(b)
        assert plausible_count(seen.get((a, b), 0), runs, float(chance))


def test_the_cohort_of_the_spread_stays_small() -> None:
    users = Users([5, 6], [1, 2], [10**9, 3 * 10**9])
    first, second, final = static_cohorts(users, np.random.default_rng(0))
    assert (first.n, second.n) == (4 * 10**8, 10**6)
    assert final.n == users.n - first.n - second.n


# The spread between users.


def spread_law(values: tuple[int | None, ...], epsilon: float) -> np.ndarray:
    """Return the exact law of the spread step over its grid: average all pairings.

    Each user holds 3 samples with that many ones, or 1 sample and sits out.
    """
    rows = [(1, 0) if value is None else (3, value) for value in values]
    users = table(rows)
    eligible = sum(value is not None for value in values)

    class Ordered(Unshuffled):
        def __init__(self, order: tuple[int, ...]) -> None:
            super().__init__()
            self.order = order
            self.shuffled: list[float] = []

        def permutation(self, x: Any, axis: int = 0) -> Any:
            self.shuffled = list(x)
            return np.asarray(x)[list(self.order)]

    laws = []
    for order in itertools.permutations(range(eligible)):
        chance = Ordered(order)
        source = Scripted(0, chance=chance)
        spread_of(users, 3, epsilon, source)
        assert len(chance.shuffled) == (eligible if eligible > 1 else 0)
        laws.append(source.laws[0])
    return np.asarray(np.mean(laws, axis=0))


@pytest.mark.parametrize("epsilon", [1.0, 4.0])
def test_no_neighbour_moves_the_law_of_the_spread_by_more_than_epsilon(
    epsilon: float,
) -> None:
    worst, changes = 0.0, 0.0
    values = (None, 0, 1, 2, 3)
    for n in (1, 2, 3, 4, 5) if epsilon == 1.0 else (2, 3, 4):
        logs = {
            users: np.log(spread_law(users, epsilon))
            for users in itertools.combinations_with_replacement(values, n)
        }
        for users, log in logs.items():
            for user, value in itertools.product(range(n), values):
                other = list(users)
                other[user] = value
                key = tuple(sorted(other, key=values.index))
                loss = float(np.abs(log - logs[key]).max())
                worst = max(worst, loss)
                if (value is None) != (users[user] is None):
                    changes = max(changes, loss)
    assert worst <= epsilon
    assert changes <= epsilon
    assert changes > 0.2 * epsilon  # sitting out is no small change


def test_users_below_the_cap_sit_out_and_others_give_a_random_choice() -> None:
    users = Users([4, 9, 20], [4, 9, 0], [50, 2, 2])

    class Watched(Unshuffled):
        drawn: list[Any]

        def hypergeometric(self, *args: Any) -> Any:
            self.drawn = [np.asarray(argument).tolist() for argument in args]
            return super().hypergeometric(*args)

    chance = Watched()
    spread_of(users, 9, 1.0, Scripted(0, chance=chance))
    assert chance.drawn == [[9, 9, 0, 0], [0, 0, 20, 20], 9]


@pytest.mark.parametrize("eligible", [0, 1])
def test_with_nobody_to_pair_every_spread_is_equally_likely(eligible: int) -> None:
    users = table([(2, 1)] * 5 + [(6, 3)] * eligible)
    source = Scripted(3)
    value = spread_of(users, 6, 1.0, source)
    law = source.laws[0]
    assert law == pytest.approx(np.full(len(law), 1 / len(law)))
    assert 0 < value < math.inf


# Algorithm 3-S, literally.


def algorithm_3s(users: Users, epsilon: float, k_max: int, draws: Any) -> float:
    """Return the noisy ratio word by word, for given cohorts and draws."""
    first, second, final = (part.expanded() for part in draws["cohorts"])
    n, beta = users.n, 0.05
    raw = float(np.mean(first.successes / first.k)) + draws["laplace"][0]
    p0 = min(max(raw, 0.0), 1.0)
    q = max(p0 * (1 - p0), 1 / (4 * n))
    alpha = min(initial_mean_error(first.n, epsilon, beta), 1.0)

    wanted = math.ceil(10 * math.log(n) / epsilon)
    rank = min(math.ceil(final.n * wanted / second.n), final.n)
    cap = draws["cap"] + 1
    utilities = []
    for t in range(1, k_max + 1):
        too_few = rank - int((final.k >= t).sum())
        too_many = int((final.k > t).sum()) - rank + 1
        utilities.append(-max(0, too_few, too_many))
    masses = np.exp(SHARES[0] * epsilon * (np.array(utilities)) / 2)
    assert draws["laws"][0] == pytest.approx(masses / masses.sum(), rel=1e-9)

    steps = len(draws["laws"][1]) - 1
    median = (4 * cap) ** (draws["spread"] / steps - 1) * 2**-0.125
    variance = (median / (0.6744897501960817 * math.sqrt(2))) ** 2
    spread = (variance - q / cap) / (1 - 1 / cap) if cap > 1 else 0.0
    spread = min(max(spread, 0.0), q)

    def sigma2(k: int) -> float:
        return q / k + (1 - 1 / k) * spread

    def reach(k: int) -> float:
        return alpha + math.sqrt(2 * sigma2(k) * math.log(2 * n / beta))

    up = max(min(reach(k), 1 - p0) / sigma2(k) for k in range(1, cap + 1))
    down = max(min(reach(k), p0) / sigma2(k) for k in range(1, cap + 1))
    total_weight = total_offset = 0.0
    for k, ones in zip(final.k.tolist(), final.successes.tolist(), strict=True):
        size = min(k, cap)
        low, high = max(0.0, p0 - reach(size)), min(1.0, p0 + reach(size))
        total_weight += 1 / sigma2(size)
        total_offset += (min(max(ones / k, low), high) - p0) / sigma2(size)
    scales = [1 / (first.n * epsilon)]
    noisy = total_weight
    if sigma2(cap) != sigma2(1):  # otherwise the total is public
        scales.append((1 / sigma2(cap) - 1 / sigma2(1)) / (SHARES[1] * epsilon))
        noisy += draws["laplace"][1]
        noisy = min(max(noisy, final.n / sigma2(1)), final.n / sigma2(cap))
    scales.append((up + down) / (SHARES[2] * epsilon))
    assert draws["scales"] == pytest.approx(scales, rel=1e-9)
    return p0 + (total_offset + draws["laplace"][-1]) / noisy


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize(("cap", "spread"), [(0, 3), (7, 5), (23, 18), (59, 20)])
def test_the_noisy_ratio_is_what_the_algorithm_says(
    seed: int, cap: int, spread: int
) -> None:
    rng = np.random.default_rng(seed)
    users = sample_users(Beta(0.3, 0.01), rng.integers(1, 61, 500), rng)
    source = Scripted(cap, spread, chance=Unshuffled(seed))
    estimate = estimate_ratio(users, 4.0, k_max=60, rng=source, trace=True)
    draws = {
        "cohorts": estimate.trace.cohorts.values(),
        "laplace": source.noises,
        "scales": source.scales,
        "laws": source.laws,
        "cap": cap,
        "spread": spread,
    }
    expected = algorithm_3s(users, 4.0, 60, draws)
    assert estimate.value == pytest.approx(expected, rel=1e-10)
    assert estimate.trace.threshold == cap + 1


# Privacy of whole runs.


def log_likelihood(users: Users, epsilon: float, answers: tuple[float, ...]) -> float:
    """Return the log-likelihood of all answers of a run; rows 0-1 | 2-5 | rest."""

    def fixed(table: Users, rng: Any) -> tuple[Users, ...]:
        parts = (slice(0, 2), slice(2, 6), slice(6, None))
        return tuple(Users(table.k[part], table.successes[part]) for part in parts)

    transcript = Transcript(answers, Unshuffled())
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cohorts_module, "static_cohorts", fixed)
        ledger = estimate_ratio(
            users, epsilon, k_max=4, spread_users=2, rng=transcript
        ).ledger
    assert not transcript.left
    assert len(ledger.steps) == len(answers)
    return transcript.log_likelihood


def test_no_neighbour_changes_the_likelihood_of_a_run_by_more_than_epsilon() -> None:
    k = [2, 3, 4, 4, 4, 4, 4, 4, 3, 2, 2, 1, 1, 1]
    users = Users(k, [0, 3, 2, 1, 1, 4, 4, 0, 1, 1, 2, 0, 1, 0])
    epsilon = 110.0  # enough for the cap to be asked for on eight users
    largest = {"mean": 0.0, "spread": 0.0, "final": 0.0}
    for mean, weight, offset in itertools.product(
        (-0.3, 0.4), (20.0, 2000.0), (-1e4, 1e4)
    ):
        for outcomes in ((1, 0), (3, 5)):
            # The largest possible spread makes weights equal: their total is public.
            asked = () if (mean, outcomes) == (-0.3, (3, 5)) else (weight,)
            answers = (mean, *outcomes, *asked, offset)
            before = log_likelihood(users, epsilon, answers)
            for row, (size, ones) in itertools.product(range(14), all_users(4)):
                name = "mean" if row < 2 else "spread" if row < 6 else "final"
                if name == "spread" and (outcomes[0], size) != (3, 4):
                    continue  # pairs change: see the exact law above
                sizes_, successes = users.k.copy(), users.successes.copy()
                sizes_[row], successes[row] = size, ones
                other = Users(sizes_, successes)
                after = log_likelihood(other, epsilon, answers)
                largest[name] = max(largest[name], abs(after - before))
    for loss in largest.values():
        assert 0.4 * epsilon < loss <= epsilon * (1 + 1e-9)


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 3.0])
def test_the_ledger_adds_up_to_epsilon_for_every_cohort(epsilon: float) -> None:
    users = zipf_users()
    ledger = estimate_ratio(
        users, epsilon, k_max=500, rng=np.random.default_rng(0)
    ).ledger
    assert ledger.epsilon == pytest.approx(epsilon, rel=1e-12)
    assert ledger.delta == 0.0
    for name in ("mean", "spread"):
        assert ledger.spent_on(name) == (epsilon, 0.0)
    assert ledger.spent_on("final")[0] <= epsilon * (1 + 1e-12)
    assert "her size included" in ledger.neighbours
    assert [cohort.users for cohort in ledger.cohorts] == [400, 400, 3200]


def test_other_shares_add_up_too() -> None:
    ledger = estimate_ratio(
        zipf_users(), 2.0, k_max=500, shares=(0.5, 0.2, 0.3), rng=Scripted(30, 4)
    ).ledger
    costs = {step.name: step.epsilon for step in ledger.steps}
    assert costs == pytest.approx(
        {
            "first mean": 2.0,
            "cap on sizes": 1.0,
            "spread between users": 2.0,
            "total weight": 0.4,
            "total offset": 0.6,
        }
    )


def test_the_ledger_shows_no_size_of_anyone() -> None:
    # Two tables with different sizes, equal releases: the ledgers are equal.
    k = np.full(200, 7)
    other = np.where(np.arange(200) % 2, 3, 8)
    one, two = (
        estimate_ratio(
            Users(each, np.zeros(200, dtype=int)),
            9.0,
            k_max=9,
            rng=Transcript([0.1, 4, 4, 500.0, 3.0]),
        ).ledger
        for each in (k, other)
    )
    assert one == two


# No way to fail.


@pytest.mark.parametrize("noise", [-1e9, 1e9])
def test_a_hopelessly_noisy_total_weight_stays_within_its_public_bounds(
    noise: float,
) -> None:
    source = Scripted(400, 3, noises=[0.0, noise, 0.0])
    inside = estimate_ratio(zipf_users(), 1.0, k_max=500, rng=source, trace=True).trace
    q, spread = inside.initial_mean * (1 - inside.initial_mean), inside.initial_variance
    lightest, heaviest = 1 / q, 1 / (q / 401 + (1 - 1 / 401) * spread)
    bound = lightest if noise < 0 else heaviest
    assert inside.noisy_weight == pytest.approx(3200 * bound, rel=1e-12)
    assert lightest < inside.statistics.total_weight / 3200 < heaviest
    expected = inside.initial_mean
    expected += inside.statistics.total_offset / inside.noisy_weight
    assert inside.noiseless == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("n", [10, 11, 19, 50])
def test_few_users_are_weighted_equally_at_no_cost(n: int) -> None:
    users = zipf_users(n)
    estimate = estimate_ratio(
        users, 1.0, k_max=500, rng=np.random.default_rng(0), trace=True
    )
    assert estimate.trace.threshold == 1
    assert [step.name for step in estimate.ledger.steps] == [
        "first mean",
        "spread between users",
        "total offset",
    ]
    assert np.ptp(estimate.trace.weights) == 0.0
    final = estimate.trace.cohorts["final"]
    plain = float(np.sum(final.means * final.counts)) / final.n
    assert estimate.trace.noiseless == pytest.approx(plain, rel=1e-9)


def test_all_zeros_and_all_ones_are_fine() -> None:
    for ones in (0, 9):
        users = Users([9] * 400, [ones] * 400)
        for method in METHODS:
            estimate = estimate_private_k(
                users,
                20.0,
                k_max=20,
                method=method,
                delta=1e-6,
                rng=np.random.default_rng(0),
            )
            assert abs(estimate.value - ones / 9) < 0.2


# What comes out.


def test_the_noisy_ratio_beats_the_plain_mean_where_sizes_differ() -> None:
    # Predicted errors: (noiseless - p)^2 plus the variance of the last noise.
    rng = np.random.default_rng(5)
    k = sizes.zipf(20_000, exponent=1.5, k_max=2000, rng=rng)
    meta = Beta(0.3, 0.0004)
    plain = np.mean(0.0004 + (0.21 - 0.0004) / k) / len(k) + 2 / len(k) ** 2
    errors = []
    for _ in range(30):
        inside = estimate_ratio(
            sample_users(meta, k, rng), 1.0, k_max=2000, rng=rng, trace=True
        ).trace
        errors.append((inside.noiseless - 0.3) ** 2 + 2 * inside.noise_scale**2)
    assert np.mean(errors) < 0.6 * plain


@pytest.mark.parametrize("method", ["ratio", "ptr"])
def test_rows_with_counts_have_the_law_of_their_users_in_whole_runs(
    method: str,
) -> None:
    users = Users([1, 3, 6], [0, 2, 2], [20, 15, 25])
    rng = np.random.default_rng(6)

    def values(table: Users) -> list[float]:
        return [
            estimate_private_k(
                table, 8.0, k_max=6, method=method, delta=0.01, rng=rng
            ).value
            for _ in range(600)
        ]

    assert stats.ks_2samp(values(users), values(users.expanded())).pvalue > 1e-9


@pytest.mark.parametrize("method", METHODS)
def test_runs_are_reproducible(method: str) -> None:
    users = zipf_users()
    one, two = (
        estimate_private_k(
            users,
            1.0,
            k_max=500,
            method=method,
            delta=1e-6,
            rng=np.random.default_rng(7),
            trace=True,
        )
        for _ in range(2)
    )
    assert one.value == two.value
    assert one.ledger == two.ledger
    assert type(one.value) is float


@pytest.mark.parametrize("method", METHODS)
def test_a_trace_must_be_asked_for_and_changes_nothing(method: str) -> None:
    users = zipf_users()

    def run(trace: bool) -> Any:
        return estimate_private_k(
            users,
            1.0,
            k_max=500,
            method=method,
            delta=1e-6,
            rng=np.random.default_rng(8),
            trace=trace,
        )

    assert run(True).value == run(False).value
    with pytest.raises(AttributeError, match="trace=True"):
        _ = run(False).trace
    assert "NOT PRIVATE" in repr(run(True).trace)


def test_the_trace_has_one_entry_per_row_of_the_final_cohort() -> None:
    inside = estimate_ratio(
        zipf_users(), 1.0, k_max=500, rng=np.random.default_rng(9), trace=True
    ).trace
    final = inside.cohorts["final"]
    assert np.sum(inside.weights * final.counts) == pytest.approx(1.0)
    clipped = np.clip(final.means, inside.lower, inside.upper)
    value = float(np.sum(inside.weights * final.counts * clipped))
    assert inside.statistics.value == pytest.approx(value, rel=1e-12)
    assert (inside.lower >= 0).all()
    assert (inside.upper <= 1).all()


def test_a_million_rows_are_no_trouble() -> None:
    rng = np.random.default_rng(10)
    k = sizes.zipf(10**6, exponent=1.5, k_max=2000, rng=rng)
    users = Users(k, rng.binomial(k, 0.3), rng.integers(1, 10**6, 10**6))
    estimate = estimate_ratio(users, 1.0, k_max=2000, rng=rng)
    assert abs(estimate.value - 0.3) < 0.01


# Arguments.


def test_forgetting_k_max_explains_why_it_is_needed_and_how_to_get_there() -> None:
    with pytest.raises(TypeError, match="k_max") as caught:
        estimate_private_k(zipf_users(), 1.0, rng=np.random.default_rng(0))
    message = str(caught.value)
    assert "sizes are private" in message
    assert "without looking" in message
    assert "users.capped(k_max, rng)" in message


@pytest.mark.parametrize("method", METHODS)
def test_users_beyond_k_max_are_refused_and_capping_them_helps(method: str) -> None:
    users, rng = zipf_users(), np.random.default_rng(0)

    def run(table: Users) -> Any:
        return estimate_private_k(
            table, 1.0, k_max=20, method=method, delta=1e-6, rng=rng
        )

    with pytest.raises(ValueError, match="k_max must be at least") as caught:
        run(users)
    assert "public bound" in str(caught.value)
    assert "users.capped(k_max, rng)" in str(caught.value)
    # How much anyone holds is her secret.
    assert users.k.max() not in map(int, re.findall(r"\d+", str(caught.value)))
    assert math.isfinite(run(users.capped(20, rng)).value)


@pytest.mark.parametrize("method", ["auto", *METHODS])
def test_one_sample_more_than_k_max_is_too_many(method: str) -> None:
    users = Users([21] + [20] * 99, [0] * 100)
    rng = np.random.default_rng(0)
    for k_max, fits in ((20, False), (21, True)):
        with nullcontext() if fits else pytest.raises(ValueError, match="at least ev"):
            estimate_private_k(
                users, 1.0, k_max=k_max, method=method, delta=1e-6, rng=rng
            )


@pytest.mark.parametrize(
    "estimate",
    [
        estimate_private_k,
        estimate_ratio,
        estimate_histogram_ratio,
        partial(estimate_ptr, delta=1e-6),
        partial(estimate_published_k, delta=1e-6),
    ],
)
def test_what_is_public_is_checked_before_anyone_is_compared_with_k_max(
    estimate: Any,
) -> None:
    # So that no error but the one about k_max can depend on the data.
    users, rng = Users([21] * 20, [0] * 20), np.random.default_rng(0)
    with pytest.raises(ValueError, match="epsilon must be"):
        estimate(users, -1.0, k_max=20, rng=rng)


@pytest.mark.parametrize("change", [{"delta": -0.1}, {"method": "best"}])
def test_the_method_and_delta_are_checked_before_anyone_is_compared_with_k_max(
    change: dict[str, Any],
) -> None:
    users, rng = Users([21] * 20, [0] * 20), np.random.default_rng(0)
    with pytest.raises(ValueError, match=f"{next(iter(change))} must be"):
        estimate_private_k(users, 1.0, k_max=20, rng=rng, **change)


def test_the_best_method_is_the_default() -> None:
    histogram_ratio = pytest.importorskip("hetlit.estimators.private_k.auto")
    users = zipf_users()
    default = estimate_private_k(users, 1.0, k_max=500, rng=np.random.default_rng(1))
    direct = histogram_ratio.estimate_histogram_ratio(
        users, 1.0, k_max=500, rng=np.random.default_rng(1)
    )
    assert default.value == direct.value


@pytest.mark.parametrize("method", METHODS)
def test_secure_noise_is_refused_while_there_is_none(method: str) -> None:
    with pytest.raises(SecureNoiseUnavailable):
        estimate_private_k(zipf_users(), 1.0, k_max=500, method=method, delta=1e-6)


def bad_calls() -> Iterator[tuple[dict[str, Any], type[Exception], str]]:
    yield {"users": [1, 2]}, TypeError, "users must be"
    yield {"users": Users([1] * 9, [0] * 9)}, ValueError, "users must be at least 10"
    yield {"epsilon": 0}, ValueError, "epsilon must be"
    yield {"epsilon": math.inf}, ValueError, "epsilon must be"
    yield {"epsilon": "1"}, TypeError, "epsilon must be"
    yield {"k_max": 0}, ValueError, "k_max must be"
    yield {"k_max": 20.5}, TypeError, "k_max must be"
    yield {"k_max": 10**7 + 1}, ValueError, "k_max must be at most"
    yield {"method": "best"}, ValueError, "method must be one of"
    yield {"method": None}, TypeError, "method must be one of"
    yield {"delta": -0.1}, ValueError, "delta must be"
    yield {"delta": 0.6}, ValueError, "delta must be"
    yield {"delta": math.nan}, ValueError, "delta must be"
    yield {"rng": 1}, TypeError, "rng must be"
    yield {"beta": 0.0}, ValueError, "beta must be"
    yield {"beta": 1.0}, ValueError, "beta must be"
    yield {"shares": (0.5, 0.5)}, ValueError, "shares must be 3"
    yield {"shares": (0.5, 0.6, -0.1)}, ValueError, "shares must be"
    yield {"shares": (0.3, 0.3, 0.3)}, ValueError, "shares must be"
    yield {"shares": "abc"}, ValueError, "shares must be"
    yield {"spread_users": 0}, ValueError, "spread_users must be"
    yield {"spread_users": 2.5}, TypeError, "spread_users must be"
    yield {"width": lambda k: k[:1]}, ValueError, "width must return"
    yield {"width": lambda k: -k}, ValueError, "width must return"
    yield {"variance": "median"}, TypeError, "variance"


@pytest.mark.parametrize(("change", "error", "message"), list(bad_calls()))
def test_bad_arguments_are_refused_by_name(
    change: dict[str, Any], error: type[Exception], message: str
) -> None:
    arguments: dict[str, Any] = {
        "users": zipf_users(),
        "epsilon": 1.0,
        "k_max": 500,
        "method": "ratio",
        "rng": np.random.default_rng(0),
    } | change
    users, epsilon = arguments.pop("users"), arguments.pop("epsilon")
    with pytest.raises(error, match=message):
        estimate_private_k(users, epsilon, **arguments)


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
