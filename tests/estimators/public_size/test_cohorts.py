"""Algorithm 2 as it works, against its literal text, and what both its methods share.

Two sources stand in for noise: a `Recorded` one draws as usual and keeps what it
drew, so that a slow version written from the paper can be given the same draws; a
`Scripted` one returns what it is told.  `log_likelihood` forces every answer of a
run: the difference between two neighbouring tables is the exact privacy loss of
that run.

The two statistical tests say so, and have a false alarm of about 1e-10 each.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import optimize, stats

from hetlit import (
    Beta,
    Users,
    estimate_public_size,
    initial_mean_error,
    sample_users,
    sizes,
)
from hetlit.estimators.first_guesses import clamped_mean
from hetlit.estimators.public_size.cohorts import MISJUDGED
from hetlit.estimators.uncertainty import of_plain_mean, of_weighted_mean
from hetlit.privacy.ledger import EXPONENTIAL, LAPLACE, Mechanism, Step
from hetlit.privacy.noise import Simulated
from hetlit.users.draws import shared_means
from tests.neighbours import QUICK, twenty_users
from tests.quiet import Scripted, Unshuffled
from tests.rows import tables
from tests.transcripts import Transcript


class Recorder(np.random.Generator):
    """Draws as usual, and keeps arguments and results by the name of the law."""

    def __init__(self, seed: int) -> None:
        super().__init__(np.random.PCG64(seed))
        self.calls: dict[str, list[Any]] = {}
        self.drawn: dict[str, list[Any]] = {}

    def keep(self, name: str, arguments: Any, result: Any) -> Any:
        self.calls.setdefault(name, []).append(arguments)
        self.drawn.setdefault(name, []).append(result)
        return result

    def laplace(self, *args: Any) -> Any:
        return self.keep("laplace", args, super().laplace(*args))

    def binomial(self, *args: Any) -> Any:
        return self.keep("binomial", args, super().binomial(*args))

    def hypergeometric(self, *args: Any) -> Any:
        return self.keep("hypergeometric", args, super().hypergeometric(*args))

    def permutation(self, *args: Any) -> Any:
        return self.keep("permutation", args, super().permutation(*args))


class Recorded(Simulated):
    """Simulated noise from a `Recorder`, which keeps choices too."""

    chance: Recorder

    def __init__(self, seed: int) -> None:
        super().__init__(Recorder(seed))

    def choose(self, *args: Any) -> int:
        return int(self.chance.keep("choose", args, super().choose(*args)))


def neighbours(users: Users) -> Iterator[Users]:
    """Yield every table in which one user's samples are replaced."""
    for user, size in enumerate(users.k):
        for value in range(size + 1):
            successes = users.successes.copy()
            successes[user] = value
            yield Users(users.k, successes)


# Algorithm 2, literally.


def as_list(*tables: Users) -> Users:
    """Return the users of these tables, one row each, in an order to rely on."""
    return Users(
        np.concatenate([np.repeat(table.k, table.counts) for table in tables]),
        np.concatenate([np.repeat(table.successes, table.counts) for table in tables]),
    )


def algorithm_2(users: Users, epsilon: float, beta: float, draws: Any) -> Any:
    """Return Algorithm 2 word by word, on a list of users, for the same draws."""
    order = sorted(range(users.n), key=lambda i: (-users.k[i], i))
    k = [int(users.k[i]) for i in order]
    mean = [int(users.successes[i]) / int(users.k[i]) for i in order]
    n, n_b = len(k), len(k) // 10
    top = max(2, min(math.ceil(10 * math.log(n) / epsilon), n // 4))

    p_init = int(np.sum(draws["binomial"][-1])) / n_b + draws["laplace"][0]
    p0 = min(max(p_init, 0.0), 1.0)
    q = max(p0 * (1 - p0), 1 / (4 * n_b))
    alpha = math.sqrt(math.log(4 / beta) / (2 * n_b))
    alpha += math.log(2 / beta) / (epsilon * n_b)

    shared = k[top - 1]
    steps = math.ceil(math.log(4 * shared) / math.log(2**0.25) - 1e-9)
    # The middle of the cell that the mechanism chose, on the logarithmic scale.
    chosen = (4 * shared) ** (draws["choose"][-1] / steps - 1) * 2**-0.125
    variance = (chosen / (0.6744897501960817 * math.sqrt(2))) ** 2
    spread = (variance - q / shared) / (1 - 1 / shared) if shared > 1 else 0.0
    spread = min(max(spread, 0.0), q)

    final = range(top, n - n_b)
    sigma2 = [q / k[i] + (1 - 1 / k[i]) * spread for i in final]
    reach = [alpha + math.sqrt(2 * s * math.log(2 * n / beta)) for s in sigma2]
    a = [max(0.0, p0 - g) for g in reach]
    b = [min(1.0, p0 + g) for g in reach]
    r = [high - low for low, high in zip(a, b, strict=True)]
    weights = optimal(sigma2, r, 2 / epsilon**2)
    clipped = [
        min(max(mean[i], low), high) for i, low, high in zip(final, a, b, strict=True)
    ]
    noiseless = math.fsum(w * x for w, x in zip(weights, clipped, strict=True))
    sensitivity = max(w * width for w, width in zip(weights, r, strict=True))
    value = min(max(noiseless + draws["laplace"][1], 0.0), 1.0)
    return value, noiseless, sensitivity, spread, top


def optimal(sigma2: list[float], r: list[float], c: float) -> list[float]:
    """Return the weights for unequal widths, by a root search."""

    def excess(t: float) -> float:
        pairs = zip(sigma2, r, strict=True)
        held = math.fsum(max(0.0, 1 - t * s / w) / w for s, w in pairs)
        return c * t - held

    top = max(w / s for s, w in zip(sigma2, r, strict=True))
    ceiling = optimize.brentq(excess, 0.0, top, xtol=1e-300, rtol=1e-14)
    v = [min(1 / s, ceiling / w) for s, w in zip(sigma2, r, strict=True)]
    total = math.fsum(v)
    return [x / total for x in v]


@QUICK
@given(tables(10, 40), st.sampled_from([0.3, 1.0, 20.0]), st.integers(0, 10**6))
def test_cohorts_is_the_literal_text_of_algorithm_2(
    users: Users, epsilon: float, seed: int
) -> None:
    users = as_list(users)
    source = Recorded(seed)
    estimate = estimate_public_size(
        users, epsilon, method="cohorts", rng=source, trace=True
    )
    value, noiseless, sensitivity, spread, top = algorithm_2(
        users, epsilon, 0.05, source.chance.drawn
    )
    trace = estimate.trace
    assert trace.cohorts["variance"].n == top
    assert trace.initial_variance == pytest.approx(spread, rel=1e-9, abs=1e-12)
    assert trace.sensitivity == pytest.approx(sensitivity, rel=1e-7)
    assert trace.noiseless == pytest.approx(noiseless, rel=1e-7, abs=1e-9)
    assert estimate.value == pytest.approx(value, rel=1e-7, abs=1e-9)


@pytest.mark.slow
@QUICK
@given(tables(10, 40), st.sampled_from([0.3, 1.0, 20.0]), st.integers(0, 10**6))
def test_cohorts_treats_rows_of_several_users_as_one_row_each(
    users: Users, epsilon: float, seed: int
) -> None:
    # A list of the cohorts, one after the other, has the same cohorts.
    source = Recorded(seed)
    estimate = estimate_public_size(
        users, epsilon, method="cohorts", rng=source, trace=True
    )
    cohorts = estimate.trace.cohorts
    users = as_list(cohorts["variance"], cohorts["final"], cohorts["mean"])
    value, *_ = algorithm_2(users, epsilon, 0.05, source.chance.drawn)
    assert estimate.value == pytest.approx(value, rel=1e-7, abs=1e-9)


def test_cohorts_is_the_literal_text_where_intervals_are_narrow() -> None:
    rng = np.random.default_rng(61)
    k = sizes.lognormal(2000, 100, 0.5, 1000, rng)
    users = sample_users(Beta(0.5, 0.002), k, rng)
    source = Recorded(62)
    estimate = estimate_public_size(
        users, 5.0, method="cohorts", rng=source, trace=True
    )
    value, noiseless, sensitivity, _, _ = algorithm_2(
        users, 5.0, 0.05, source.chance.drawn
    )
    trace = estimate.trace
    assert 0.05 < trace.lower.max() < trace.upper.min() < 0.95
    assert trace.sensitivity == pytest.approx(sensitivity, rel=1e-9)
    assert trace.noiseless == pytest.approx(noiseless, rel=1e-9)
    assert estimate.value == pytest.approx(value, rel=1e-9)


@pytest.mark.parametrize("method", ["cohorts", "paper"])
def test_the_first_variance_has_the_whole_epsilon_and_no_more(
    method: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        "hetlit.estimators.public_size.paper.published_users_needed", lambda *_: 0
    )
    options: dict[str, Any] = {"third_moment": 1e-3} if method == "paper" else {}
    source = Scripted()
    ledger = estimate_public_size(
        twenty_users(), 1.75, method=method, rng=source, **options
    ).ledger
    assert source.choices == [(1.75, 1.0)]
    assert ledger.steps[1] == Step(
        "first variance",
        ("variance",),
        Mechanism(kind=EXPONENTIAL, sensitivity=1.0),
        1.75,
    )


def test_every_noise_of_cohorts_has_the_scale_of_its_sensitivity() -> None:
    source = Scripted()
    estimate = estimate_public_size(
        twenty_users(),
        0.5,
        method="cohorts",
        variance_users=4,
        rng=source,
        trace=True,
    )
    sensitivities = [1 / 2, estimate.trace.sensitivity]
    assert source.scales == [sensitivity / 0.5 for sensitivity in sensitivities]
    first, _, final = (step.mechanism for step in estimate.ledger.steps)
    for mechanism, sensitivity in zip((first, final), sensitivities, strict=True):
        assert (mechanism.kind, mechanism.sensitivity) == (LAPLACE, sensitivity)
        assert mechanism.scale == sensitivity / 0.5


def test_the_variance_cohort_contributes_equally_many_samples_each() -> None:
    users = Users([9, 7, 4, *[1] * 17], [9, 3, 0, *[1] * 17])
    source = Recorded(5)
    estimate_public_size(users, 1.0, method="cohorts", variance_users=3, rng=source)
    calls, drawn = source.chance.calls, source.chance.drawn
    (ones, zeros, samples), *others = calls["hypergeometric"]
    assert (list(ones), list(zeros), samples) == ([9, 3, 0], [0, 4, 4], 4)
    assert not others
    (pairs,) = calls["permutation"][0]
    np.testing.assert_array_equal(pairs, drawn["hypergeometric"][0] / 4)


def test_shared_means_are_means_of_a_random_subset() -> None:
    users = Users([6, 4], [6, 0], [2, 1])
    means = shared_means(users, 4, Unshuffled())
    np.testing.assert_array_equal(means, [1.0, 1.0, 0.0])


def test_shared_means_are_in_the_order_of_a_list_and_in_random_order_of_a_table() -> (
    None
):
    class Reversing(Unshuffled):
        def permutation(self, x: Any, axis: int = 0) -> Any:
            return x[::-1]

    table, each = Users([6, 4], [6, 0], [2, 1]), Users([6, 6, 4], [6, 6, 0])
    np.testing.assert_array_equal(shared_means(table, 4, Reversing()), [0, 1, 1])
    np.testing.assert_array_equal(shared_means(each, 4, Reversing()), [1, 1, 0])


def test_shared_means_of_users_with_a_billion_samples() -> None:
    # Of 50 means of 100 samples, sd 0.05: 6.5 standard errors.
    k = 2 * 10**9
    users = Users([k] * 52, [k, 0] + [k // 2] * 50)
    means = shared_means(users, 100, np.random.default_rng(64))
    np.testing.assert_array_equal(means[:2], [1, 0])
    np.testing.assert_allclose(100 * means, np.round(100 * means), atol=1e-9)
    assert len(set(means[2:].tolist())) > 5
    assert abs(np.mean(means[2:]) - 0.5) <= 6.5 * 0.05 / math.sqrt(50)


# Cohorts.


@pytest.mark.parametrize("method", ["cohorts", "paper"])
@QUICK
@given(users=tables(10, 40), seed=st.integers(0, 10**6))
def test_cohorts_are_disjoint_and_cover_everybody(
    method: str, users: Users, seed: int
) -> None:
    epsilon = 3.0
    rng = np.random.default_rng(seed)
    estimate = estimate_public_size(users, epsilon, method=method, rng=rng, trace=True)
    cohorts = estimate.trace.cohorts
    together = Users(
        *(
            np.concatenate([getattr(part, name) for part in cohorts.values()])
            for name in ("k", "successes", "counts")
        )
    ).compressed()
    everybody = users.compressed()
    for name in ("k", "successes", "counts"):
        np.testing.assert_array_equal(getattr(together, name), getattr(everybody, name))
    log_n = math.log(users.n)
    top = {
        "cohorts": min(math.ceil(10 * log_n / epsilon), users.n // 4),
        "paper": math.ceil(log_n / epsilon),
    }[method]
    assert cohorts["variance"].n == max(2, top)
    assert cohorts["mean"].n == users.n // 10
    assert cohorts["variance"].k.min() >= cohorts["final"].k.max()
    assert cohorts["final"].k.min() >= cohorts["mean"].k.max()


def test_the_variance_cohort_is_as_large_as_asked() -> None:
    users = Users(sizes.harmonic(100), np.zeros(100, dtype=int))
    estimate = estimate_public_size(
        users, 1.0, method="cohorts", variance_users=37, rng=Scripted(), trace=True
    )
    numbers = {name: part.n for name, part in estimate.trace.cohorts.items()}
    assert numbers == {"variance": 37, "final": 53, "mean": 10}


@pytest.mark.parametrize("method", ["cohorts", "paper"])
def test_the_ledger_counts_the_cohorts(method: str) -> None:
    users = Users(sizes.harmonic(100), np.zeros(100, dtype=int))
    estimate = estimate_public_size(
        users, 2.0, method=method, rng=Scripted(), trace=True
    )
    listed = {cohort.name: cohort.users for cohort in estimate.ledger.cohorts}
    assert listed == {name: part.n for name, part in estimate.trace.cohorts.items()}
    assert sum(listed.values()) == 100


# Clamps.


@pytest.mark.parametrize("noise", [-100.0, -0.5, 0.0, 0.5, 100.0])
@pytest.mark.parametrize("outcome", [0, -1])
@pytest.mark.parametrize("method", ["cohorts", "paper"])
def test_first_guesses_out_of_range_give_finite_results(
    method: str, outcome: int, noise: float
) -> None:
    source = Scripted(noise, outcome=outcome)
    estimate = estimate_public_size(
        Users(sizes.harmonic(60), sizes.harmonic(60) // 3),
        2.0,
        method=method,
        rng=source,
        trace=True,
    )
    trace = estimate.trace
    assert 0 <= trace.initial_mean <= 1
    assert 0 <= trace.initial_variance <= 0.25
    assert 0 <= estimate.value <= 1
    assert np.isfinite(trace.weights).all()
    assert np.sum(trace.weights * trace.cohorts["final"].counts) == pytest.approx(1)
    assert math.isfinite(trace.objective)


@pytest.mark.parametrize(("noise", "centre"), [(-100.0, 0.0), (100.0, 1.0)])
def test_a_first_mean_outside_the_unit_interval_is_clamped(
    noise: float, centre: float
) -> None:
    estimate = estimate_public_size(
        twenty_users(), 2.0, method="cohorts", rng=Scripted(noise), trace=True
    )
    assert estimate.trace.initial_mean == centre


def test_a_first_variance_above_q_is_clamped_and_makes_weights_equal() -> None:
    # The coarsest scale is a standard deviation above 1.
    estimate = estimate_public_size(
        Users(sizes.harmonic(60), sizes.harmonic(60) // 3),
        2.0,
        method="cohorts",
        rng=Scripted(0.1, outcome=-1),
        trace=True,
    )
    p0 = estimate.trace.initial_mean
    assert estimate.trace.initial_variance == pytest.approx(p0 * (1 - p0))
    np.testing.assert_allclose(
        estimate.trace.weights, 1 / estimate.trace.cohorts["final"].n, rtol=1e-12
    )


def test_clamped_mean_has_a_floor_under_q() -> None:
    assert clamped_mean(-3.0, 10) == (0.0, 1 / 40)
    assert clamped_mean(1.5, 10) == (1.0, 1 / 40)
    assert clamped_mean(0.5, 10) == (0.5, 0.25)


def test_a_first_mean_close_to_p_keeps_q_within_a_half() -> None:
    # An error of c min(p, 1-p), c = 1/sqrt(K) + 1/K, moves q by at
    # most c q, and c <= 1/2 from K = 4 + 2 sqrt(3) on.
    def c(constant: float) -> float:
        return 1 / math.sqrt(constant) + 1 / constant

    assert c(12) == pytest.approx(0.372008467928, abs=1e-12)
    assert c(4 + 2 * math.sqrt(3)) == pytest.approx(0.5, abs=1e-15)
    for p in np.linspace(0.01, 0.99, 99):
        for sign in (-1, 1):
            raw = p + sign * c(12) * min(p, 1 - p)
            _, q = clamped_mean(raw, 10**9)
            assert abs(q - p * (1 - p)) <= c(12) * p * (1 - p) * (1 + 1e-12)


# The error of the first mean.


def test_cohorts_takes_hoeffdings_error_bound() -> None:
    users = Users(sizes.harmonic(500), sizes.harmonic(500) // 2)
    estimate = estimate_public_size(
        users, 1.0, method="cohorts", beta=0.1, rng=Scripted(), trace=True
    )
    assert estimate.trace.alpha == initial_mean_error(50, 1.0, 0.1)


# Privacy.


@pytest.mark.parametrize("outcome", [0, 5, -1])
@pytest.mark.parametrize("noise", [-1.0, 0.0, 0.4])
def test_given_its_first_guesses_the_final_sum_moves_by_at_most_its_sensitivity(
    noise: float, outcome: int
) -> None:
    def run(users: Users) -> Any:
        source = Scripted(noise, outcome=outcome)
        estimate = estimate_public_size(
            users, 2.0, method="cohorts", variance_users=4, rng=source, trace=True
        )
        return estimate.trace

    before = run(twenty_users())
    # Users 4 to 17 are the final cohort: first guesses stay as they are.
    moves = []
    for users in neighbours(twenty_users()):
        after = run(users)
        if (users.successes[4:18] == twenty_users().successes[4:18]).all():
            continue
        assert after.initial_mean == before.initial_mean
        assert after.initial_variance == before.initial_variance
        assert after.sensitivity == before.sensitivity
        moves.append(abs(after.noiseless - before.noiseless))
    assert max(moves) <= before.sensitivity * (1 + 1e-12)
    # Somebody holds nothing but zeros and can hold nothing but ones.
    assert max(moves) == pytest.approx(before.sensitivity, rel=1e-12)


def log_likelihood(release: Callable[[Any], Any], answers: list[float]) -> float:
    """Return the log-likelihood that a run gives these answers, all of them."""
    transcript = Transcript(answers, Unshuffled())
    release(transcript)
    assert not transcript.left
    return transcript.log_likelihood


TRANSCRIPTS: dict[str, list[tuple[float, ...]]] = {
    "cohorts": list(itertools.product((-0.3, 0.9), (0, 4, -1), (-1.0, 2.0))),
    # Its variance is not released.
    "paper": list(itertools.product((-0.3, 0.9), (-1.0, 2.0))),
}


@pytest.mark.slow
@pytest.mark.parametrize("method", ["cohorts", "paper"])
def test_no_neighbour_changes_the_likelihood_of_a_run_by_more_than_epsilon(
    method: str,
) -> None:
    # The sizes leave no choice of first samples or of shared ones, and the pairing is
    # fixed: what is left is exact.
    epsilon = 1.5
    options: dict[str, Any] = {"variance_users": 4} if method == "cohorts" else {}

    def run(users: Users, transcript: tuple[float, ...]) -> float:
        return log_likelihood(
            lambda source: estimate_public_size(
                users, epsilon, method=method, rng=source, **options
            ),
            list(transcript),
        )

    losses = [
        abs(before - run(users, transcript))
        for transcript in TRANSCRIPTS[method]
        for before in [run(twenty_users(), transcript)]
        for users in neighbours(twenty_users())
    ]
    assert 0.99 * epsilon < max(losses) <= epsilon * (1 + 1e-9)


def averaged_likelihood(zeros: int, epsilon: float, answers: list[float]) -> float:
    """Return the log-likelihood of a run on twelve users with one sample each.

    They come as a histogram, so that chance decides who is in which cohort: four give
    the variance, one the mean.  All choices and all pairings are averaged over.
    """
    ones = 12 - zeros
    rows = [(1, value, n) for value, n in ((0, zeros), (1, ones)) if n]
    users = Users(*(list(column) for column in zip(*rows, strict=True)))
    terms = []
    for top, bottom in itertools.product(range(5), range(2)):
        chance = stats.hypergeom(12, ones, 4).pmf(top)
        chance *= stats.hypergeom(8, ones - top, 1).pmf(bottom) if chance else 0.0
        if not chance:
            continue
        for order in set(itertools.permutations([1.0] * top + [0.0] * (4 - top))):
            takes = iter((top, bottom))

            def random_users(
                counts: Any, number: int, rng: Any, takes: Iterator[int] = takes
            ) -> Any:
                taken = next(takes)
                split = [number - taken, taken]
                return np.array(split if len(counts) == 2 else [number])

            with pytest.MonkeyPatch.context() as patch:
                patch.setattr("hetlit.users.draws.random_users", random_users)
                patch.setattr(
                    Unshuffled, "permutation", lambda *_, order=order: np.array(order)
                )
                term = log_likelihood(
                    lambda source: estimate_public_size(
                        users, epsilon, method="cohorts", variance_users=4, rng=source
                    ),
                    answers,
                )
            terms.append(math.log(chance / math.comb(4, top)) + term)
    return float(np.logaddexp.reduce(terms))


@pytest.mark.parametrize(("final", "outcome"), [(-1.0, 0), (-1.0, -1), (2.0, 0)])
def test_cohorts_drawn_by_chance_cost_no_more_than_epsilon(
    final: float, outcome: int
) -> None:
    # In the order of successes, which compressed() and from_events() leave, one user
    # who changes hers would push others across the boundaries and change all cohorts.
    epsilon = 1.5
    runs = [
        averaged_likelihood(zeros, epsilon, [0.3, outcome, final])
        for zeros in range(13)
    ]
    assert 0.4 * epsilon < np.max(np.abs(np.diff(runs))) <= epsilon * (1 + 1e-9)


@pytest.mark.parametrize("method", ["cohorts", "paper"])
def test_everyone_of_a_size_has_the_same_chance_to_be_in_a_cohort(method: str) -> None:
    # Ten of 40 users hold zeros only: of the four in the mean cohort, one on average.
    # 1000 runs, 6.5 standard errors.
    table = Users([2] * 40, [0] * 10 + [1, 2, 2] * 10).compressed()
    rng = np.random.default_rng(63)
    zeros = []
    for _ in range(1000):
        estimate = estimate_public_size(table, 3.0, method=method, rng=rng, trace=True)
        part = estimate.trace.cohorts["mean"]
        zeros.append(part.counts[part.successes == 0].sum())
    law = stats.hypergeom(40, 10, 4)
    assert abs(np.mean(zeros) - law.mean()) <= 6.5 * law.std() / math.sqrt(1000)


# Edges and arguments.


@pytest.mark.parametrize("method", ["cohorts", "paper"])
@pytest.mark.parametrize("k", [1, 5])
def test_ten_users_of_one_size_are_enough(method: str, k: int) -> None:
    users = Users([k] * 10, [k, 0] * 5)
    estimate = estimate_public_size(
        users, 3.0, method=method, rng=Scripted(), trace=True
    )
    np.testing.assert_allclose(
        estimate.trace.weights, 1 / estimate.trace.cohorts["final"].n, rtol=1e-12
    )


@pytest.mark.parametrize("method", ["cohorts", "paper"])
@pytest.mark.parametrize("n", [1, 9])
def test_fewer_than_ten_users_are_refused(method: str, n: int) -> None:
    with pytest.raises(ValueError, match="users must be at least 10"):
        estimate_public_size(
            Users([3] * n, [1] * n), 1.0, method=method, rng=Scripted()
        )


def test_a_single_user_in_the_final_cohort_has_all_the_weight() -> None:
    users = Users([3] * 10, [1] * 10)
    trace = estimate_public_size(
        users, 1.0, method="cohorts", variance_users=8, rng=Scripted(), trace=True
    ).trace
    assert trace.weights == pytest.approx([1.0])
    assert trace.sensitivity == pytest.approx(trace.upper[0] - trace.lower[0])


def test_cohorts_that_leave_nobody_are_refused() -> None:
    users = Users([3] * 10, [1] * 10)
    with pytest.raises(ValueError, match="leaves nobody"):
        estimate_public_size(
            users, 1.0, method="cohorts", variance_users=9, rng=Scripted()
        )
    with pytest.raises(ValueError, match="leaves nobody"):
        estimate_public_size(users, 0.1, method="paper", rng=Scripted())


@pytest.mark.parametrize("method", ["cohorts", "paper"])
@pytest.mark.parametrize("ones", [0, 5, 10**9])
def test_sizes_of_a_billion_are_no_trouble(method: str, ones: int) -> None:
    users = Users([10**9] * 20, [ones] * 20)
    estimate = estimate_public_size(
        users, 1.0, method=method, rng=Scripted(), trace=True
    )
    assert estimate.value == pytest.approx(ones / 10**9, rel=1e-12)
    assert 0 <= estimate.trace.initial_variance <= 0.25


# How sure it is.


# The intervals of the paper are so wide that nobody is clipped.
@pytest.mark.parametrize(
    ("method", "misjudged"), [("cohorts", MISJUDGED), ("paper", math.inf)]
)
def test_the_uncertainty_is_made_of_what_was_released(
    method: str, misjudged: float
) -> None:
    k = sizes.zipf(3000, 1.5, 500, np.random.default_rng(0))
    users = sample_users(Beta(0.3, 0.0004), k, np.random.default_rng(1))
    estimate = estimate_public_size(
        users, 2.0, method=method, rng=np.random.default_rng(2), trace=True
    )
    trace = estimate.trace
    first = of_plain_mean(trace.initial_mean, 300, 1.0 / (300 * 2.0))
    middle = trace.cohorts["final"].expanded()
    expected = of_weighted_mean(
        estimate.value,
        middle.k,
        middle.counts,
        trace.weights,
        misjudged * trace.initial_variance,
        trace.noise_scale,
    )
    sure = estimate.uncertainty
    assert sure is not None
    assert sure.noise == expected.noise
    assert sure.sampling == pytest.approx(expected.sampling, rel=1e-9)
    assert sure.first == (first if method == "cohorts" else None)
    assert sure.gap == abs(estimate.value - trace.initial_mean)
    assert (sure.clipped, sure.dependence) == (None, None)


def test_where_nobody_is_clipped_the_first_mean_has_no_say() -> None:
    users = sample_users(Beta(0.3, 0.01), sizes.harmonic(500), np.random.default_rng(1))
    for width, clips in ((0.1, True), (1.0, False)):
        sure = estimate_public_size(
            users,
            2.0,
            method="cohorts",
            width=lambda k, width=width: width,
            rng=np.random.default_rng(2),
        ).uncertainty
        assert sure is not None
        assert (sure.first is not None) == clips


def hiding(rate: float) -> tuple[float, Users]:
    """Return p and a table of which one in ten, or one in the middle, has this rate."""
    ones = round(20_000 * (p := 0.18 + 0.1 * rate))
    sizes, successes = [400, 100, 100, 1, 1], [80, 20, round(100 * rate), 1, 0]
    return p, Users(sizes, successes, [1000, 90_000, 10_000, ones, 20_000 - ones])


@pytest.mark.parametrize(("rate", "hides"), [(0.2, False), (0.9, True)])
def test_a_warning_and_a_wide_interval_where_clipping_hides_a_minority(
    rate: float, hides: bool
) -> None:
    # Without noise; a small first variance, as of users who are all alike.
    p, users = hiding(rate)
    estimate = estimate_public_size(
        users, 5.0, method="cohorts", variance_users=1000, rng=Scripted(outcome=10)
    )
    low, high = estimate.interval(clipping=False)
    assert (low <= p <= high) != hides
    low, high = estimate.interval()
    assert low <= p <= high
    assert bool(estimate.warnings) == hides
