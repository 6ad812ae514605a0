"""Algorithm 2 with the paper's constants: what it needs, pays for and falls back to."""

from __future__ import annotations

import math

import numpy as np
import pytest

from hetlit import (
    Beta,
    Users,
    estimate_public_size,
    sample_users,
    sizes,
)
from hetlit.estimators.published import (
    published_bins,
    published_group_size,
    published_mean_error,
    published_users_needed,
)
from hetlit.theory.gaussian import THIRD_MOMENT as GAUSSIAN_THIRD_MOMENT
from tests.neighbours import twenty_users
from tests.quiet import Scripted

# What Lemma `lem.thirdmoment` gives for Gaussian rates.
THIRD_MOMENT = 8 * (3 * math.sqrt(3) + GAUSSIAN_THIRD_MOMENT)


def test_the_paper_pays_for_a_variance_that_it_does_not_release() -> None:
    source = Scripted()
    ledger = estimate_public_size(
        twenty_users(), 1.75, method="paper", rng=source
    ).ledger
    assert not source.choices
    assert [step.name for step in ledger.steps] == [
        "first mean",
        "first variance",
        "final mean",
    ]
    step = ledger.steps[1]
    assert (step.cohorts, step.epsilon) == (("variance",), 1.75)
    assert str(step.mechanism) == "nothing released: too few users"
    assert ledger.spent_on("variance") == (1.75, 0.0)


def paper_needs(epsilon: float, shared: int) -> int:
    low, high = published_bins(shared, published_group_size(THIRD_MOMENT))
    return published_users_needed(THIRD_MOMENT, epsilon, 0.05, high - low + 1)


def test_the_paper_says_how_many_users_it_would_need() -> None:
    users = Users(sizes.harmonic(1000), np.zeros(1000, dtype=int))
    estimate = estimate_public_size(
        users, 1.0, method="paper", rng=Scripted(), trace=True
    )
    shared = int(estimate.trace.cohorts["variance"].k.min())
    assert estimate.trace.users_needed == paper_needs(1.0, shared)
    assert estimate.trace.users_needed > 8.2e9  # more than there are people
    (note,) = estimate.ledger.notes
    assert f"needs {paper_needs(1.0, shared):.3g}" in note
    assert "had 7 users" in note
    assert "returned nothing" in note


def test_the_paper_needs_more_users_when_epsilon_is_small() -> None:
    # Here the noise of its histogram asks for more users than its sampling does.
    users = Users(sizes.harmonic(10**4), np.zeros(10**4, dtype=int))
    estimate = estimate_public_size(
        users, 0.01, method="paper", rng=Scripted(), trace=True
    )
    shared = int(estimate.trace.cohorts["variance"].k.min())
    assert estimate.trace.users_needed == paper_needs(0.01, shared)
    assert paper_needs(0.01, shared) > 2 * paper_needs(1.0, shared)


def test_the_paper_averages_the_middle_cohort() -> None:
    users = sample_users(Beta(0.3, 0.01), sizes.harmonic(500), np.random.default_rng(1))
    estimate = estimate_public_size(
        users, 1.0, method="paper", rng=Scripted(), trace=True
    )
    middle = estimate.trace.cohorts["final"]
    np.testing.assert_allclose(estimate.trace.weights, 1 / middle.n, rtol=1e-12)
    clipped = np.clip(middle.means, estimate.trace.lower, estimate.trace.upper)
    assert estimate.value == pytest.approx(np.mean(clipped), rel=1e-12)


def test_the_paper_assumes_the_largest_variance_when_it_finds_none() -> None:
    estimate = estimate_public_size(
        twenty_users(), 2.0, method="paper", rng=Scripted(), trace=True
    )
    p0 = estimate.trace.initial_mean
    assert estimate.trace.initial_variance == max(p0 * (1 - p0), 1 / (4 * 2))


def test_the_paper_takes_its_own_error_bound() -> None:
    users = Users(sizes.harmonic(500), sizes.harmonic(500) // 2)
    estimate = estimate_public_size(
        users, 1.0, method="paper", beta=0.1, rng=Scripted(0.02), trace=True
    )
    raw = estimate.trace.initial_mean
    assert 0 < raw < 1
    assert estimate.trace.alpha == pytest.approx(
        published_mean_error(raw, 50, 1.0, 0.1), rel=1e-12
    )


def test_the_paper_uses_its_variance_if_there_is_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(
        "hetlit.estimators.public_size.paper.published_users_needed", lambda *_: 0
    )
    users = Users([64] * 8 + [2] * 32, [0, 8] * 4 + [0, 2] * 16)
    # Groups of one, differences of 8/64 = 2^-3: sd 2^-2.
    low, high = published_bins(64, 1)
    estimate = estimate_public_size(
        users,
        0.5,
        method="paper",
        third_moment=1e-3,
        rng=Scripted(outcome=-4 - low),
        trace=True,
    )
    assert high > -4 > low
    assert estimate.trace.initial_variance == 0.0625
    assert "returned a value" in estimate.ledger.notes[0]


def test_the_paper_clamps_a_variance_that_no_rates_can_have(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(
        "hetlit.estimators.public_size.paper.published_users_needed", lambda *_: 0
    )
    # In groups of one the largest bin says 16.
    assert published_group_size(1e-3) == 1
    assert (2.0 ** (published_bins(3, 1)[1] + 2)) ** 2 == 16.0
    estimate = estimate_public_size(
        twenty_users(),
        2.0,
        method="paper",
        third_moment=1e-3,
        rng=Scripted(-0.2, outcome=-1),
        trace=True,
    )
    assert "returned a value" in estimate.ledger.notes[0]
    trace = estimate.trace
    p0 = trace.initial_mean
    assert trace.initial_variance == max(p0 * (1 - p0), 1 / 8)


@pytest.mark.parametrize("third_moment", [0.0, 1e-7, 1e7, math.nan])
def test_a_bad_third_moment_is_named_before_users_are_looked_at(
    third_moment: float,
) -> None:
    with pytest.raises(ValueError, match=r"^third_moment must be"):
        estimate_public_size(
            Users([1], [0]),  # too few
            2.0,
            method="paper",
            third_moment=third_moment,
            rng=Scripted(0.0),
        )
