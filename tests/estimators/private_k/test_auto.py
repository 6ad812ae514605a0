"""The default for private sizes: every step's sensitivity, every path's budget.

Statistical tests have fixed seeds.  For random ones the nine of this file would raise
a false alarm with a chance below 1e-7.
"""

import itertools
import math
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hetlit import Beta, Constant, TwoPoint, Users, sample_users, sizes, user_variance
from hetlit.estimators import tails
from hetlit.estimators.anchor import anchor_error, anchor_share, settle
from hetlit.estimators.private_k import auto as module
from hetlit.estimators.private_k.auto import (
    Histogram,
    Plan,
    Weighting,
    estimate_histogram_ratio,
)
from hetlit.estimators.spread import (
    CAUTIOUS_SPREAD,
    JUDGED_SPREADS,
    SPREAD_EVIDENCE,
    SPREAD_SHARE,
    WORTHWHILE,
    best_reach,
    clamped_guess,
    spread_resolution,
)
from hetlit.estimators.uncertainty import of_plain_mean
from hetlit.privacy.noise import SecureNoiseUnavailable
from hetlit.theory.variance import plain_variance, variance_of_mean
from hetlit.users.groups import by_size_class, classes_up_to
from tests.odd import odd
from tests.replay import Told, replaced, worst_losses

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


@pytest.mark.parametrize("clips", [False, True])
@pytest.mark.parametrize("ceiling", [2.0, 5.0, math.inf])
@pytest.mark.parametrize("cap", [3.0, 6.0])
def test_total_and_deviations_move_by_their_sensitivities(clips, ceiling, cap):
    weighting = Weighting(
        cap=cap,
        centre=0.3,
        q=0.21,
        spread=0.01,
        error=0.01,
        reach=1.0 if clips else None,
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
    assert moved >= 0.95 * on_sum


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


@pytest.mark.slow
def test_all_paths_are_taken_where_they_should_be():
    rng = np.random.default_rng(1)

    def path(meta, k, epsilon):
        users = sample_users(meta, k, rng)
        options: dict[str, Any] = {"k_max": 2000, "rng": rng, "trace": True}
        return estimate_histogram_ratio(users, epsilon, **options).trace.path

    light, zipf = Beta(0.3, 0.0004), sizes.zipf(10_000, 1.5, 2000, rng)
    assert path(light, sizes.equal(100, 10), 1.0) == "plain"
    assert path(light, sizes.equal(10_000, 2), 1.0) == "plain again"
    assert path(light, zipf, 3.0) == "clipped"
    assert path(TwoPoint(0.1, 0.9, 0.05), zipf, 3.0) == "alarm"


# Step by step, on a table for which every path can be had


USERS = Users([1, 1, 16, 64, 64], [0, 1, 7, 0, 30], [1000, 1000, 1, 250, 250])
SMALL, BOUND = 1.5, 64
BINS = (2000.0, 0.0, 0.0, 0.0, 0.0, 0.0, 500.0)
SUMS = "total weight, weighted deviations"
STEPS = {
    "plain again": "histogram of sizes, anchor, second plain mean",
    "cautious": f"histogram of sizes, anchor, {SUMS}",
    "unclipped": f"histogram of sizes, anchor, typical spread, {SUMS}",
    "clipped": f"histogram of sizes, anchor, typical spread, tail test, {SUMS}",
    "alarm": f"histogram of sizes, anchor, typical spread, tail test, {SUMS}",
}


def told(answers, epsilon=SMALL):
    source = Told(answers)
    estimate = estimate_histogram_ratio(
        USERS, epsilon, k_max=BOUND, rng=source, trace=True
    )
    assert not source.left
    return estimate, source


def steps_of(estimate):
    return ", ".join(step.name for step in estimate.ledger.steps)


@cache
def answers_of(path: str) -> tuple[float, tuple[float, ...]]:
    """Return an epsilon and answers that lead to a path."""
    if path == "plain again":
        return SMALL, (2500.0, *[0.0] * 6, 0.3, 0.31)
    if path == "cautious":  # so little budget that few users give no spread
        return 0.5, (*BINS, 0.3, 900.0, -100.0)
    after = {"clipped": (-1e3,), "alarm": (1e6,), "unclipped": ()}[path]
    for choice in range(20) if path != "unclipped" else range(20, -1, -1):
        answers = (*BINS, 0.3, choice, *after, 900.0, 70.0)
        try:
            estimate, _ = told(answers)
        except (IndexError, AssertionError):
            continue
        if estimate.trace.path == path:
            return SMALL, answers
    raise AssertionError(f"no answers lead to {path}")


def others():
    """Every user replaced by many others, sizes included."""
    found = []
    for row in range(len(USERS.k)):
        for k in (1, 2, 3, 16, 63, 64):
            for ones in {0, k // 2, k}:
                found.append(replaced(USERS, row, k, ones))
    return found


@pytest.mark.parametrize("path", STEPS)
def test_every_step_of_every_path_moves_by_its_sensitivity_at_most(path):
    epsilon, answers = answers_of(path)

    def run(users, source):
        return estimate_histogram_ratio(
            users, epsilon, k_max=BOUND, rng=source, trace=True
        )

    estimate, worst = worst_losses(run, USERS, others(), answers)
    assert estimate.trace.path == path
    assert steps_of(estimate) == STEPS[path]
    assert estimate.ledger.epsilon == pytest.approx(epsilon, rel=1e-12)
    assert estimate.ledger.delta == 0.0
    assert max(worst.values()) <= 1 + 1e-9
    for name in ("histogram of sizes", "anchor", "second plain mean", "total weight"):
        assert worst.get(name, 1.0) == pytest.approx(1.0, rel=1e-9)
    for name in ("typical spread", "tail test", "weighted deviations"):
        assert worst.get(name, 1.0) > 0.3


def test_every_step_has_its_share():
    for path in STEPS:
        epsilon, answers = answers_of(path)
        estimate, _ = told(answers, epsilon)
        shares = {s.name: s.epsilon / epsilon for s in estimate.ledger.steps}
        assert shares.pop("histogram of sizes") == pytest.approx(module.COUNT_SHARE)
        k, counts = np.array([1.0, 95.5]), np.array([2000.0, 500.0])
        if path == "plain again":
            k, counts = k[:1], np.array([2500.0])
        share = anchor_share(k, counts, 2501, epsilon)
        assert shares.pop("anchor") == pytest.approx(share)
        assert shares.pop("typical spread", SPREAD_SHARE) == pytest.approx(SPREAD_SHARE)
        test = shares.pop("tail test", None)
        assert test is None or min(abs(test - x) for x in tails.SHARES) < 1e-9
        total = shares.pop("total weight", module.TOTAL_SHARE)
        assert total == pytest.approx(module.TOTAL_SHARE)
        assert len(shares) == 1  # what is left


def test_the_ledger_says_what_happened_where_something_did():
    notes = {}
    for path in STEPS:
        epsilon, answers = answers_of(path)
        notes[path] = told(answers, epsilon)[0].ledger.notes
    assert notes.pop("clipped") == ()
    assert "weights would gain little" in notes["plain again"][0]
    assert "first guesses would not pay" in notes["cautious"][0]
    assert "noticed a minority" in notes["alarm"][0]
    assert "nobody" in notes["unclipped"][0]
    assert len(set(notes.values())) == 4
    rng = np.random.default_rng(0)
    few = estimate_histogram_ratio(Users([1], [0], [99]), 1.0, k_max=1, rng=rng)
    assert "too few users" in few.ledger.notes[0]


def test_nobody_is_clipped_but_where_the_tail_test_was_calm():
    k = np.arange(1.0, BOUND + 1)
    for path in STEPS:
        epsilon, answers = answers_of(path)
        trace = told(answers, epsilon)[0].trace
        if path == "plain again":
            continue
        _, lower, upper = trace.final.weighting.at(k)
        clips = lower.max() > 0.0 or upper.min() < 1.0
        assert clips == (path == "clipped")


@pytest.mark.parametrize("side", [-1e-6, 1e-6])
def test_the_alarm_goes_off_beyond_the_limit(side):
    epsilon, answers = answers_of("clipped")
    limit = told(answers)[0].trace.final.limit
    changed = (*answers[:9], limit + side, *answers[10:])
    path = told(changed, epsilon)[0].trace.path
    assert path == ("alarm" if side > 0 else "clipped")


@pytest.mark.parametrize("path", [path for path in STEPS if path != "plain again"])
def test_it_settles_with_what_the_path_knows(path):
    epsilon, answers = answers_of(path)
    estimate, source = told(answers, epsilon)
    trace, n = estimate.trace, USERS.n
    plan, final, weighting = trace.plan, trace.final, trace.final.weighting
    histogram = plan.histogram
    assert histogram.k.tolist() == [1.0, 95.5]
    assert histogram.counts.tolist() == [2000.0, 500.0]
    assert plan.cap == BOUND
    scales = {
        step.name: asked.noise[0]
        for step, asked in zip(estimate.ledger.steps, source.asked, strict=True)
        if asked.kind != "choose"
    }
    raw, released = answers[7], answers[-1]
    error = anchor_error(histogram.k, histogram.counts, n, 1.0 / n / scales["anchor"])
    assert plan.error == error
    centre, q = clamped_guess(raw, error, n)
    assert (plan.centre, plan.q, weighting.centre, weighting.q) == (centre, q) * 2
    spread = trace.initial_variance
    assert spread > 0.0
    if path == "cautious":
        assert spread == CAUTIOUS_SPREAD * q
    if path != "clipped":
        assert weighting.spread == max(spread, CAUTIOUS_SPREAD * q)
    # The total weight, within its public bounds.
    weights, lower, upper = weighting.at(classes_up_to(BOUND))
    total = min(max(answers[-2], n * weights.min()), n * weights.max())
    assert trace.total_weight == total
    on_sum = np.max(weights * (upper - centre)) + np.max(weights * (centre - lower))
    assert trace.sensitivity == pytest.approx(on_sum, rel=1e-12)
    assert scales["total weight"] == pytest.approx(
        (weights.max() - weights.min()) / (module.TOTAL_SHARE * epsilon), rel=1e-12
    )
    scale = scales["weighted deviations"] / total
    assert trace.noise_scale == scale
    most, clipped = math.inf, None
    if path == "unclipped":
        most = tails.spread_if_untested(centre, spread)
    if path in ("clipped", "alarm"):
        _, same_plan = answers_of("clipped")
        intervals = told(same_plan)[0].trace.final.test.intervals
        seen = answers[9], scales["tail test"]
        if path == "alarm":
            most = intervals.spread_if_alarmed(centre, spread, *seen)
        else:
            most = intervals.spread_if_calm(centre, spread, seen[0])
            clipped = intervals.clipped(centre, *seen)
            assert final.test.intervals.reach == best_reach(n, final.epsilon)
    # A wrong total scales the distance of the value from the anchor.
    plain = np.sum(histogram.counts * variance_of_mean(histogram.k, q, spread)) / n**2
    distance = 2.0 * scales["anchor"] ** 2 + plain
    blur = math.sqrt(2.0 * distance) * scales["total weight"] / total
    settled = settle(
        centre + released / total,
        scale,
        raw,
        scales["anchor"],
        k=histogram.k,
        counts=histogram.counts,
        weights=weighting.shares(histogram),
        n=n,
        q=q,
        spread=spread,
        most_spread=most,
        clipped=clipped,
        blur=blur,
    )
    assert trace.radius == pytest.approx(settled.radius, rel=1e-9)
    assert trace.anchor.value == raw
    assert trace.anchor.sampling == pytest.approx(settled.anchor.sampling, rel=1e-12)
    assert estimate.value == pytest.approx(min(max(settled.value, 0), 1), rel=1e-12)
    assert estimate.warnings == settled.warnings
    for name in ("noise", "sampling", "dependence", "gap", "standard_error"):
        found = getattr(estimate.uncertainty, name)
        expected = getattr(settled.uncertainty, name)
        assert found == pytest.approx(expected, rel=1e-9)
    for sized in (False, True):
        assert estimate.uncertainty.half_width(0.9, sizes=sized) == pytest.approx(
            settled.uncertainty.half_width(0.9, sizes=sized), rel=1e-9
        )


def test_two_noisy_means_are_combined_by_their_noise():
    epsilon, answers = answers_of("plain again")
    estimate, source = told(answers, epsilon)
    raw, again = answers[-2:]
    first, second = (asked.noise[0] for asked in source.asked[-2:])
    # Weights in inverse proportion to the variances.
    share = first**2 / (first**2 + second**2)
    assert estimate.value == pytest.approx(share * again + (1 - share) * raw, rel=1e-12)
    assert share > 0.5
    assert estimate.trace.noise_scale == pytest.approx(share * second, rel=1e-12)
    plain = np.average(USERS.means, weights=USERS.counts)
    noiseless = share * plain + (1 - share) * raw
    assert estimate.trace.noiseless == pytest.approx(noiseless, rel=1e-12)
    expected = of_plain_mean(
        estimate.value,
        USERS.n,
        share * second,
        blur=math.sqrt(2) * (1 - share) * first,
        dependence=0.0,
    )
    assert estimate.uncertainty.half_width(0.95, sizes=True) == pytest.approx(
        expected.half_width(0.95, sizes=True), rel=1e-12
    )
    assert estimate.warnings == ()


# The plan


def planned(centre=0.3, n=2500, epsilon=3.0):
    histogram = Histogram(
        k=np.array([1.0, 11.5, 95.5]),
        counts=np.array([1800.0, 200.0, 500.0]),
        start=np.array([1.0, 8.0, 64.0]),
    )
    return Plan(
        n=n,
        epsilon=epsilon,
        histogram=histogram,
        cap=64.0,
        centre=centre,
        q=0.21,
        error=0.01,
    )


def promised_by_hand(weighting, histogram, spread, epsilon):
    """Return the variance of a weighted mean, from its definition."""
    weights, lower, upper = weighting.at(histogram.k)
    total = np.sum(histogram.counts * weights)
    variances = variance_of_mean(histogram.k, weighting.q, spread)
    sampling = np.sum(histogram.counts * (weights / total) ** 2 * variances)
    noise = np.max(weights * (upper - lower)) / total / epsilon
    return sampling + 2.0 * noise**2


def test_believed_sizes_have_a_largest_and_numbers_above():
    histogram = planned().histogram
    assert histogram.largest == 127.0
    assert histogram.above(1.0) == 2500.0
    assert histogram.above(8.0) == 700.0
    assert histogram.above(9.0) == 500.0


@pytest.mark.parametrize("reach", [None, 2.0])
def test_weights_are_those_of_the_least_variance_for_the_sizes_believed_in(reach):
    histogram = planned().histogram
    weighting = Weighting(
        cap=64.0, centre=0.3, q=0.21, spread=0.004, error=0.01, reach=reach
    )
    best = weighting.for_histogram(histogram, 0.1)
    assert math.isfinite(best.ceiling)
    shares = best.shares(histogram)
    assert np.sum(histogram.counts * shares) == pytest.approx(1.0, rel=1e-12)
    least = best.variance(histogram, 0.004, 0.1)
    assert least == pytest.approx(promised_by_hand(best, histogram, 0.004, 0.1))
    other = best.variance(histogram, 0.01, 1.0)
    assert other == pytest.approx(promised_by_hand(best, histogram, 0.01, 1.0))
    for factor in (0.7, 0.97, 1.03, 1.5):
        changed = replace(best, ceiling=factor * best.ceiling)
        assert changed.variance(histogram, 0.004, 0.1) >= least * (1 - 1e-4)
    # Nobody with more than the cap counts for more.
    weights, lower, upper = best.at(np.array([64.0, 65.0, 1e6]))
    assert len(set(weights)) == len(set(lower)) == len(set(upper)) == 1


@pytest.mark.parametrize("spread", [1e-4, 0.004])
@pytest.mark.parametrize("n", [2500, 10**9])
def test_a_tail_test_is_offered_for_every_share(spread, n):
    plan, left = planned(n=n), 2.0  # very many users are clipped further out
    histogram = plan.histogram
    tests = list(plan._tests(spread, left))
    assert [test.epsilon / plan.epsilon for test in tests] == pytest.approx(
        tails.SHARES
    )
    for test in tests:
        rest = left - test.epsilon
        assert test.mean_epsilon == pytest.approx(rest, rel=1e-12)
        weighting, intervals = test.mean, test.intervals
        assert weighting.spread == spread
        assert weighting.reach == intervals.reach == best_reach(plan.n, rest)
        weights, lower, upper = weighting.at(histogram.k)
        np.testing.assert_array_equal(intervals.lower, lower)
        np.testing.assert_array_equal(intervals.upper, upper)
        total = np.sum(histogram.counts * weights)
        np.testing.assert_allclose(intervals.weights, weights / total, rtol=1e-12)
        variances = variance_of_mean(np.minimum(histogram.k, 64.0), plan.q, spread)
        np.testing.assert_allclose(intervals.deviations**2, variances, rtol=1e-12)
        assert test.calm == pytest.approx(
            promised_by_hand(weighting, histogram, spread, rest)
        )
        cautious = plan.unclipped(spread, rest)
        assert cautious.spread == max(spread, CAUTIOUS_SPREAD * plan.q)
        assert cautious.reach is None
        assert test.alarmed == pytest.approx(
            promised_by_hand(cautious, histogram, spread, rest)
        )


def test_the_last_steps_are_those_of_the_best_test():
    for spread, left in ((1e-4, 2.0), (0.004, 2.0), (0.05, 1.0)):
        plan = planned()
        final = plan.final(spread, left)
        rest = left - module.TOTAL_SHARE * plan.epsilon
        cautious = plan.unclipped(spread, rest)
        chosen = tails.best_test(
            plan._tests(spread, rest),
            plan.centre,
            promised_by_hand(cautious, plan.histogram, spread, rest),
            plan._compared_with(spread),
        )
        if chosen is None:
            assert final.test is None
            assert (final.weighting, final.epsilon) == (cautious, rest)
        else:
            assert final.limit == chosen[1]
            assert final.weighting == chosen[0].mean
            assert final.epsilon == chosen[0].mean_epsilon
        assert plan.promised(final, 0.003) == pytest.approx(
            promised_by_hand(final.weighting, plan.histogram, 0.003, final.epsilon)
        )


def test_nobody_is_tested_where_nobody_could_be_clipped():
    assert not list(planned()._tests(0.21, 2.0))


@pytest.mark.parametrize("spread", [0.0, 0.01])
def test_clipping_is_compared_with_means_that_clip_nobody(spread):
    plan = planned()
    histogram, q = plan.histogram, plan.q
    cautious = plan.unclipped(0.0, plan.epsilon).shares(histogram)
    plain = np.full(3, 1.0 / 2500)
    for found, weights in zip(
        plan._compared_with(spread), (plain, cautious), strict=True
    ):
        noise = 2 * (weights.max() / plan.epsilon) ** 2
        variances = variance_of_mean(histogram.k, q, spread)
        sampling = np.sum(histogram.counts * weights**2 * variances)
        assert found.variance == pytest.approx(sampling + noise, rel=1e-9)
        squares = np.sum(histogram.counts * weights**2 * (1 - 1 / histogram.k))
        assert found.squares == pytest.approx(squares, rel=1e-9)


def test_the_spread_is_asked_of_those_with_most_samples_if_they_are_enough():
    plan = planned()
    question = module._spread_question(plan, 2.5)
    assert question is not None
    assert question.epsilon == pytest.approx(SPREAD_SHARE * 3.0)
    enough = {
        start: plan.histogram.above(start) * question.epsilon >= SPREAD_EVIDENCE
        for start in (8.0, 64.0)
    }
    assert question.least == max(start for start, found in enough.items() if found)
    assert question.resolution == spread_resolution(
        plan.histogram.above(question.least), question.least, question.epsilon
    )
    # Too few users, or users with too few samples.
    few = replace(plan, epsilon=0.9 * SPREAD_EVIDENCE / SPREAD_SHARE / 700)
    assert module._spread_question(few, few.epsilon) is None
    short = replace(plan.histogram, k=plan.histogram.k / 64, start=np.array([1, 2, 3]))
    assert module._spread_question(replace(plan, histogram=short), 2.5) is None


def test_the_spread_is_asked_where_it_promises_clearly_less():
    plan, asked = planned(), set()
    for counts in ((1800, 200, 500), (10_000, 100, 600), (1, 1, 2500), (1, 2500, 1)):
        for epsilon in (0.5, 1.0, 3.0):
            believed = replace(plan.histogram, counts=np.array(counts, dtype=float))
            changed = replace(
                plan, histogram=believed, epsilon=epsilon, n=int(sum(counts))
            )
            left = 0.8 * epsilon
            question = module._spread_question(changed, left)
            share = SPREAD_SHARE * epsilon
            enough = [
                start
                for start in (8.0, 64.0)
                if believed.above(start) * share >= SPREAD_EVIDENCE
            ]
            if not enough:
                assert question is None
                continue
            resolution = spread_resolution(
                believed.above(enough[-1]), enough[-1], share
            )
            rest = left - module.TOTAL_SHARE * epsilon
            cautious = changed.unclipped(0.0, rest)
            logs = np.zeros(3)
            for relative in JUDGED_SPREADS:
                spread, guess = relative * 0.21, min(relative + resolution, 1.0) * 0.21
                final = changed.final(guess, left - share)
                logs += np.log(
                    [
                        changed.promised(final, spread),
                        plain_variance(
                            believed.k, believed.counts, 0.21, spread, changed.n, left
                        ),
                        promised_by_hand(cautious, believed, spread, rest),
                    ]
                )
            gain = (logs[0] - min(logs[1:])) / len(JUDGED_SPREADS)
            assert (question is not None) == (gain < math.log(WORTHWHILE))
            asked.add(question is None)
    assert asked == {True, False}


@pytest.mark.parametrize("shift", [-1e12, 0.0, 1e12])
def test_a_hopelessly_noisy_total_weight_stays_within_its_public_bounds(shift):
    epsilon, answers = answers_of("clipped")
    estimate, _ = told((*answers[:-2], shift, answers[-1]), epsilon)
    trace = estimate.trace
    weights, _, _ = trace.final.weighting.at(classes_up_to(BOUND))
    low, high = USERS.n * weights.min(), USERS.n * weights.max()
    assert 0.0 < low < high
    expected = low if shift <= 0.0 else high
    assert trace.total_weight == expected
    assert 0.0 <= estimate.value <= 1.0


# Accuracy


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


@pytest.mark.slow
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


@pytest.mark.slow
def test_a_minority_far_from_the_rest_is_not_clipped_away():
    k = sizes.geometric(10_000, 50.0, np.random.default_rng(5))
    meta = TwoPoint(0.1, 0.9, 0.05)
    k = np.minimum(k, 2000)
    ratio = squared_error(meta, k, 1.0, 60, seed=6) / plain_error(meta, k, 1.0)
    assert ratio < 2.0


@pytest.mark.slow
@pytest.mark.parametrize("share", [0.03, 0.05])
def test_a_minority_far_from_the_rest_is_noticed_and_nobody_is_clipped(share):
    rng, meta, noticed = np.random.default_rng(15), TwoPoint(0.1, 0.9, share), 0
    k = sizes.zipf(10_000, 1.5, 2000, rng)
    for _ in range(50):
        users = sample_users(meta, k, rng)
        trace = estimate_histogram_ratio(
            users, 1.0, k_max=2000, rng=rng, trace=True
        ).trace
        noticed += trace.path == "alarm"
        assert trace.path != "alarm" or trace.final.weighting.reach is None
    # Missed in about one of a hundred runs: more than 10 of 50 have a chance of 1e-12.
    assert noticed >= 40


@pytest.mark.slow
def test_rates_that_grow_with_sizes_are_warned_of_and_the_value_is_pulled():
    rng, warned, pulled = np.random.default_rng(16), 0, 0
    k = sizes.zipf(10_000, 1.5, 2000, rng)
    rates = 0.2 + 0.2 * np.log(k) / np.log(2000.0)
    for _ in range(30):
        users = Users(k, rng.binomial(k, rates))
        estimate = estimate_histogram_ratio(users, 1.0, k_max=2000, rng=rng, trace=True)
        warned += any("depend on sizes" in text for text in estimate.warnings)
        gap = abs(estimate.value - estimate.trace.anchor.value)
        pulled += math.isclose(gap, estimate.trace.radius, rel_tol=1e-9)
    # A run goes without with a chance of 1e-3 at most: 5 of 30 with less than 1e-9.
    assert warned >= 26
    assert pulled >= 26


@pytest.mark.slow
def test_in_the_model_there_is_hardly_ever_a_warning():
    # At most 6 in a thousand by their construction, and about 2 in fact, of which
    # more than 12 in 800 have a chance of 1e-8.
    rng, warned = np.random.default_rng(17), 0
    k = sizes.zipf(2000, 1.5, 500, rng)
    for _ in range(800):
        users = sample_users(Beta(0.3, 0.0004), k, rng)
        estimate = estimate_histogram_ratio(users, 2.0, k_max=500, rng=rng)
        assert 0.0 <= estimate.value <= 1.0
        warned += bool(estimate.warnings)
    assert warned <= 12


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
