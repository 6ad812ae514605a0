"""The explorer of the chapter on privacy: what an attacker can tell.

One test is statistical, with a fixed seed; for a random one it fails with a chance
below 1e-7 (18 comparisons at 6.5 standard errors, normal).
"""

import itertools
import math

import numpy as np
import pytest

from hetlit.teaching.explorers.picture import coordinates, number, percent
from hetlit.teaching.explorers.privacy import (
    ATTACKER,
    attacker,
    best_attacks,
    right_by_majority,
)
from tests.explorers import values_of

EPSILONS, ANSWERS = values_of(ATTACKER.parameters)
GRID = list(itertools.product(EPSILONS, ANSWERS))


def limit(false_alarms, epsilon):
    """The fewest misses that an epsilon-private release allows, by the proposition."""
    return np.maximum(
        1.0 - math.exp(epsilon) * false_alarms,
        math.exp(-epsilon) * (1.0 - false_alarms),
    )


def by_definition(answers, epsilon):
    """False alarms and misses from 0, 1, ... yeses on, and how often the vote errs."""
    honest = math.exp(epsilon) / (1.0 + math.exp(epsilon))
    yes, no = (
        [
            math.comb(answers, j) * h**j * (1 - h) ** (answers - j)
            for j in range(answers + 1)
        ]
        for h in (honest, 1.0 - honest)
    )
    starts = range(answers + 2)
    tie = yes[answers // 2] / 2.0 if answers % 2 == 0 else 0.0
    return (
        [math.fsum(no[start:]) for start in starts],
        [math.fsum(yes[:start]) for start in starts],
        math.fsum(yes[: (answers + 1) // 2]) + tie,
    )


def test_one_answer_has_the_errors_of_randomised_response():
    false_alarms, misses = best_attacks(1, 1.0)
    wrong = 1.0 / (1.0 + math.e)
    assert np.allclose(false_alarms, [0.0, wrong, 1.0])
    assert np.allclose(misses, [1.0, wrong, 0.0])


@pytest.mark.parametrize("answers", [1, 2, 3, 4])
def test_no_rule_beats_the_best_attacks(answers):
    # A rule is a set of transcripts at which one cries: here are all of them.
    epsilon = 0.7
    honest = 1.0 / (1.0 + math.exp(-epsilon))
    scripts = list(itertools.product((0, 1), repeat=answers))
    yeses = np.array([sum(script) for script in scripts])
    under_no = (1.0 - honest) ** yeses * honest ** (answers - yeses)
    under_yes = honest**yeses * (1.0 - honest) ** (answers - yeses)
    sets = np.array(list(itertools.product((0, 1), repeat=len(scripts))))
    false_alarms, misses = sets @ under_no, 1.0 - sets @ under_yes
    best = np.interp(false_alarms, *best_attacks(answers, epsilon))
    assert (misses >= best - 1e-12).all()
    corners = np.transpose(best_attacks(answers, epsilon))
    tried = np.transpose([false_alarms, misses])
    for corner in corners:
        assert np.abs(tried - corner).sum(axis=1).min() < 1e-12


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_the_best_attacks_keep_to_the_limit_and_meet_it_where_all_answers_agree(
    epsilon,
):
    for answers in ANSWERS:
        false_alarms, misses = best_attacks(answers, epsilon)
        floor = limit(false_alarms, answers * epsilon)
        assert (misses >= floor - 1e-12).all()
        met = np.isclose(misses, floor, rtol=1e-9, atol=1e-14)
        assert met[[0, 1, -2, -1]].all()
        far = floor > 1e-9
        assert not met[2:-2][far[2:-2]].any()


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_a_majority_vote_has_the_least_mean_of_both_errors(epsilon):
    for answers in ANSWERS:
        false_alarms, misses = best_attacks(answers, epsilon)
        least = (false_alarms + misses).min() / 2.0
        right = right_by_majority(answers, epsilon)
        assert right == pytest.approx(1.0 - least, abs=1e-12)
        # It lies on the curve, where both errors are equal.
        wrong = 1.0 - right
        assert np.interp(wrong, false_alarms, misses) == pytest.approx(wrong, abs=1e-9)


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_more_answers_never_hurt_the_attacker(epsilon):
    places = np.linspace(0.0, 1.0, 101)
    curves = [np.interp(places, *best_attacks(answers, epsilon)) for answers in ANSWERS]
    assert (np.diff(curves, axis=0) <= 1e-12).all()
    limits = [limit(places, answers * epsilon) for answers in ANSWERS]
    assert (np.diff(limits, axis=0) <= 1e-12).all()


def test_simulated_votes_are_right_as_often_as_computed():
    rng = np.random.default_rng(7)
    runs = 100_000
    for epsilon, answers in itertools.product((0.1, 0.5, 2.0), (1, 2, 3, 8, 15, 20)):
        honest = math.exp(epsilon) / (1.0 + math.exp(epsilon))
        votes = (rng.random((runs, answers)) < honest).sum(axis=1)
        seen = np.where(2 * votes == answers, 0.5, 2 * votes > answers)
        error = seen.std() / math.sqrt(runs)
        off = abs(seen.mean() - right_by_majority(answers, epsilon))
        assert off < 6.5 * error + 1e-4


@pytest.mark.parametrize(("epsilon", "answers"), GRID)
def test_every_mark_is_what_it_says(epsilon, answers):
    (panel,) = attacker(epsilon=epsilon, answers=answers).panels
    marks = {mark.name: coordinates(mark) for mark in panel.marks}
    assert len(marks) == 5
    places = np.linspace(0.0, 1.0, 1001)
    floor = limit(places, answers * epsilon)
    drawn, band = marks["limit by composition"], marks["out of reach"]
    assert np.allclose(np.interp(places, drawn["x"], drawn["y"]), floor, atol=1e-12)
    assert np.allclose(np.interp(places, band["x"], band["high"]), floor, atol=1e-12)
    assert (band["low"] == 0.0).all()
    guessing = marks["pure guessing"]
    assert np.allclose(np.interp(places, guessing["x"], guessing["y"]), 1.0 - places)
    attacks, vote = marks["best attacks"], marks["majority vote"]
    assert len(attacks["x"]) == max(ANSWERS) + 2
    false_alarms, misses, wrong = by_definition(answers, epsilon)
    for axis, errors in (("x", false_alarms[::-1]), ("y", misses[::-1])):
        shown, repeated = np.split(attacks[axis], [answers + 2])
        assert np.allclose(shown, errors, rtol=1e-9, atol=1e-14)
        assert (repeated == shown[-1]).all()
        assert vote[axis] == pytest.approx([wrong], abs=1e-14)


@pytest.mark.parametrize(("epsilon", "answers"), GRID)
def test_every_number_of_the_reading_is_what_it_says(epsilon, answers):
    reading = attacker(epsilon=epsilon, answers=answers).reading
    each = f"{answers} answers at epsilon {number(epsilon)} each, "
    one = f"1 answer at epsilon {number(epsilon)}, "
    assert reading.startswith(f"From {one if answers == 1 else each}")
    # Nobody is ever certain, whatever the rounding says.
    right = min(1.0 - by_definition(answers, epsilon)[2], 0.9999)
    assert f"right in {percent(right)} of all cases" in reading
    total = answers * epsilon
    most = min(1.0 / (1.0 + math.exp(-total)), 0.9999)
    assert f"total epsilon of {number(total)} would allow {percent(most)}." in reading
    assert "100%" not in reading


def test_the_reading_agrees_with_the_chapter_s_table():
    # There: 0.779 and 0.993.
    reading = ATTACKER.at(epsilon=0.5, answers=10).reading
    assert "right in 78% of all cases" in reading
    assert "A total epsilon of 5 would allow 99.3%." in reading
