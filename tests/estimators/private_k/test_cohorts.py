"""Static cohorts and the first guesses they give, in law and in privacy."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest
from scipy import stats

from hetlit import Users
from hetlit.estimators.private_k.cohorts import spread_variance, static_cohorts
from hetlit.estimators.private_k.ratio import estimate_ratio
from hetlit.privacy.account import Account
from hetlit.privacy.ledger import EXPONENTIAL, PRIVATE_SIZES, Cohort, Mechanism, Step
from tests.private_sizes import Scripted, Unshuffled, table, zipf_users

# Statistical tests have fixed seeds.  For a random seed, a true one fails with a chance
# of at most 2e-10 (exact binomial tails; 9 comparisons): together below 2e-9.


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


@pytest.mark.slow
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
