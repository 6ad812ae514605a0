"""The noisy ratio: what it releases, what it promises, what it refuses."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from hetlit import Beta, Users, sample_users, sizes
from hetlit.estimators.first_guesses import initial_mean_error
from hetlit.estimators.private_k import cohorts as cohorts_module
from hetlit.estimators.private_k import estimate_private_k
from hetlit.estimators.private_k.cohorts import MISJUDGED
from hetlit.estimators.private_k.ratio import SHARES, estimate_ratio
from hetlit.estimators.private_k.sums import of_ratio, ratio_plan
from hetlit.estimators.uncertainty import of_plain_mean
from tests.private_sizes import Scripted, Unshuffled, all_users, zipf_users
from tests.transcripts import Transcript

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


@pytest.mark.slow
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


# How sure it is.


def test_the_uncertainty_is_made_of_what_was_released() -> None:
    epsilon, rng = 4.0, np.random.default_rng(3)
    users = sample_users(Beta(0.3, 0.01), rng.integers(1, 60, 4000), rng)
    estimate = estimate_ratio(users, epsilon, k_max=500, rng=rng, trace=True)
    trace, n = estimate.trace, users.n
    plan = ratio_plan(
        trace.initial_mean,
        trace.initial_variance,
        trace.threshold,
        n=n,
        alpha=trace.alpha,
        width=None,
    )
    total_noise = plan.weight_sensitivity / (SHARES[1] * epsilon)
    expected, trusting = (
        of_ratio(
            estimate.value,
            plan,
            factor * trace.initial_variance,
            trace.noise_scale,
            (trace.noisy_weight - math.sqrt(2.0) * total_noise, total_noise),
            of_plain_mean(trace.initial_mean, n // 10, 1.0 / (n // 10 * epsilon)),
        )
        for factor in (MISJUDGED, 1.0)
    )
    assert estimate.uncertainty == expected
    assert expected.first is not None
    assert expected.sampling > trusting.sampling


def test_a_noisy_total_stays_within_its_public_bounds() -> None:
    # The larger the total, the smaller the sampling error: from n max v to n min v.
    users = sample_users(Beta(0.3, 0.01), np.full(500, 20), np.random.default_rng(0))
    wide = []
    for noise in (0.0, 1e9, -1e9):
        source = Scripted(9, 9, noises=[0.0, noise, 0.0], chance=Unshuffled())
        sure = estimate_ratio(users, 8.0, k_max=60, rng=source).uncertainty
        assert sure is not None
        wide.append(sure.sampling)
    assert wide[0] < wide[2]
    assert wide[1] < wide[2]


def test_a_warning_where_clipping_hides_a_minority() -> None:
    k = np.full(20_000, 100)
    for rate, hides in ((0.2, False), (0.9, True)):
        ones = np.where(np.arange(len(k)) % 10 == 0, round(100 * rate), 20)
        estimate = estimate_ratio(
            Users(k, ones), 5.0, k_max=100, rng=np.random.default_rng(0)
        )
        p = 0.18 + 0.1 * rate
        low, high = estimate.interval()
        assert low <= p <= high
        low, high = estimate.interval(clipping=False)
        assert (low <= p <= high) != hides
        assert bool(estimate.warnings) == hides
