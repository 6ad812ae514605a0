"""The plain mean: what it is, for every kind of neighbours."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from hetlit import Users, estimate_private_k, estimate_public_size
from hetlit.estimators.baselines import user_mean
from hetlit.estimators.plain import plain_mean
from hetlit.estimators.result import Estimate
from hetlit.estimators.uncertainty import of_plain_mean
from hetlit.privacy.ledger import PRIVATE_SIZES, PUBLIC_SIZES
from tests.neighbours import SMALL, kinds, table
from tests.quiet import Scripted, generator


def run(users: Users, *noises: float, epsilon: float = 2.0) -> Estimate:
    return plain_mean(users, epsilon, "some", Scripted(*noises), True, "a note")


def test_one_user_moves_it_by_at_most_1_over_n_whatever_her_size() -> None:
    moves = []
    for others in itertools.combinations_with_replacement(kinds(3), 2):
        values = [run(table((*others, user))).trace.noiseless for user in kinds(4)]
        moves.append(max(values) - min(values))
    assert max(moves) <= run(table(kinds(1)[:1] * 3)).trace.sensitivity + 1e-15
    assert max(moves) == pytest.approx(1 / 3)


def test_it_is_the_mean_of_the_users_means_with_noise_1_over_n_epsilon() -> None:
    source = Scripted(0.125)
    estimate = plain_mean(SMALL, 2.0, "some", source, True)
    expected = float(np.average(SMALL.means, weights=SMALL.counts))
    assert estimate.trace.noiseless == pytest.approx(expected, rel=1e-14)
    assert estimate.value == pytest.approx(expected + 0.125, rel=1e-14)
    assert source.scales == [1.0 / (SMALL.n * 2.0)]
    assert estimate.trace.noise_scale == source.scales[0]
    np.testing.assert_allclose(estimate.trace.weights, 1.0 / SMALL.n)


def test_its_ledger_is_one_step_on_everyone() -> None:
    ledger = run(SMALL).ledger
    (step,) = ledger.steps
    assert (ledger.neighbours, ledger.notes) == ("some", ("a note",))
    assert (step.epsilon, step.cohorts) == (2.0, ("everyone",))
    assert (ledger.epsilon, ledger.delta) == (2.0, 0.0)


def test_rows_of_several_users_are_as_many_users() -> None:
    assert run(SMALL).trace.noiseless == pytest.approx(
        run(SMALL.expanded()).trace.noiseless, rel=1e-12
    )


def test_its_uncertainty_is_that_of_single_samples_and_of_no_sizes() -> None:
    # The same answer, of users with one sample or with many.
    few, many = Users([1, 1], [0, 1], [50, 50]), Users([8, 2], [4, 1], [50, 50])
    known = [run(users, 0.01).uncertainty for users in (few, many)]
    assert known[0] == known[1]
    assert known[0] == of_plain_mean(0.51, 100, 0.005, dependence=0.0)


def test_it_assumes_nothing_about_rates_and_sizes() -> None:
    estimate = run(SMALL)
    assert estimate.interval(sizes=True) == estimate.interval(sizes=False)
    assert estimate.warnings == ()


def test_both_functions_and_the_baseline_give_the_same_under_other_neighbours() -> None:
    one, two, three = (
        estimate_public_size(SMALL, 1.0, method="plain", rng=generator()),
        estimate_private_k(SMALL, 1.0, k_max=20, method="plain", rng=generator()),
        user_mean(SMALL, 1.0, rng=generator()),
    )
    assert one.value == two.value == three.value
    assert one.uncertainty == two.uncertainty == three.uncertainty
    names = one.ledger.neighbours, two.ledger.neighbours, three.ledger.neighbours
    assert names[:2] == (PUBLIC_SIZES, PRIVATE_SIZES)
    assert "her size k" in names[2]
