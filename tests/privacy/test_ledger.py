"""The ledger: the total is the most that any user can lose, and it says why."""

import dataclasses
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hetlit.privacy.ledger import (
    EXPONENTIAL,
    LAPLACE,
    NO_NOISE,
    NOT_PRIVATE,
    NOTHING,
    PUBLIC_SIZES,
    Cohort,
    Ledger,
    Mechanism,
    Step,
    not_private,
)
from tests.odd import odd

FEW = Cohort("few", 10, "fewest samples")
REST = Cohort("rest", 90, "all others")
NOISE = Mechanism(kind=LAPLACE, sensitivity=0.1, scale=0.2)


def ledger_of(*steps, cohorts=(FEW, REST), notes=()):
    return Ledger(PUBLIC_SIZES, cohorts, steps, notes)


EXAMPLE = ledger_of(
    Step(
        "first guess",
        ("few",),
        Mechanism(kind=LAPLACE, sensitivity=0.025, scale=0.1),
        0.25,
    ),
    Step(
        "typical spread",
        ("rest",),
        Mechanism(kind=EXPONENTIAL, sensitivity=1.0),
        0.125,
        1e-9,
    ),
    Step(
        "final mean",
        ("few", "rest"),
        Mechanism(kind=LAPLACE, sensitivity=0.01, scale=0.02, detail=" of ten"),
        0.5,
    ),
    notes=("cohorts follow public sizes",),
)

# Totals


def test_steps_on_the_same_users_add_up():
    steps = [Step(name, ("few",), NOISE, 0.5, 0.01) for name in "abc"]
    assert ledger_of(*steps).epsilon == 1.5
    assert ledger_of(*steps).delta == pytest.approx(0.03, rel=1e-12)


def test_steps_on_different_users_do_not_add_up():
    steps = Step("a", ("few",), NOISE, 0.5), Step("b", ("rest",), NOISE, 0.75)
    assert ledger_of(*steps).epsilon == 0.75


def test_a_step_on_two_cohorts_is_paid_by_both():
    assert EXAMPLE.spent_on("few") == (0.75, 0.0)
    assert EXAMPLE.spent_on("rest") == (0.625, 1e-9)
    assert (EXAMPLE.epsilon, EXAMPLE.delta) == (0.75, 1e-9)


def test_shares_of_a_budget_add_up_to_all_of_it():
    steps = [Step(str(i), ("few",), NOISE, 0.1) for i in range(10)]
    assert ledger_of(*steps).epsilon == 1.0


def test_no_steps_cost_nothing():
    assert (ledger_of().epsilon, ledger_of().delta) == (0.0, 0.0)


@given(
    st.lists(
        st.tuples(
            st.sets(st.sampled_from("ABCD"), min_size=1),
            st.floats(0, 10),
            st.floats(0, 1),
        ),
        max_size=6,
    )
)
def test_the_total_is_the_largest_sum_over_cohorts(parts):
    steps = [
        Step("s", tuple(sorted(on)), NOISE, eps, delta) for on, eps, delta in parts
    ]
    cohorts = tuple(Cohort(name, 1, "a list") for name in "ABCD")
    ledger = ledger_of(*steps, cohorts=cohorts)
    losses = {name: [0.0, 0.0] for name in "ABCD"}
    for on, epsilon, delta in parts:
        for name in on:
            losses[name][0] += epsilon
            losses[name][1] += delta
    for name, loss in losses.items():
        assert ledger.spent_on(name) == pytest.approx(loss, rel=1e-12)
    epsilons, deltas = zip(*losses.values(), strict=True)
    assert ledger.epsilon == pytest.approx(max(epsilons), rel=1e-12)
    assert ledger.delta == pytest.approx(max(deltas), rel=1e-12)


# Without protection


def test_a_release_without_noise_costs_infinitely_much():
    ledger = not_private(100, "Algorithm 1")
    assert ledger.epsilon == math.inf
    assert ledger.neighbours == NOT_PRIVATE
    assert [step.mechanism.kind for step in ledger.steps] == [NO_NOISE]


def test_a_release_without_noise_says_so():
    text = str(not_private(100, "Algorithm 1"))
    assert "not private" in text
    assert "100 users" in text
    assert "Algorithm 1" in text
    assert "total: epsilon inf" in text


# What it prints


def test_the_text_says_who_the_neighbours_are():
    assert f"neighbours: {PUBLIC_SIZES}" in str(EXAMPLE)
    assert "public" in PUBLIC_SIZES


def test_the_text_says_who_is_in_which_cohort():
    assert "few: 10 users, fewest samples" in str(EXAMPLE)
    assert "rest: 90 users, all others" in str(EXAMPLE)


def test_the_text_says_what_each_step_spent_on_whom_and_how():
    text = str(EXAMPLE)
    assert "first guess, on few: epsilon 0.25 (Laplace, sensitivity 0.025)" in text
    assert (
        "typical spread, on rest: epsilon 0.125, delta 1e-09 "
        "(exponential mechanism, sensitivity 1)\n"
    ) in text
    assert (
        "final mean, on everyone: epsilon 0.5 (Laplace, sensitivity 0.01 of ten)\n"
    ) in text


@pytest.mark.parametrize(
    ("mechanism", "text"),
    [
        (NOISE, "Laplace, sensitivity 0.1"),
        (Mechanism(kind=EXPONENTIAL, sensitivity=2.0), f"{EXPONENTIAL}, sensitivity 2"),
        (Mechanism(kind=NOTHING, detail=": too few"), "nothing released: too few"),
        (Mechanism(kind=NO_NOISE), "no noise"),
        (Mechanism(kind=LAPLACE, sensitivity=0.0, scale=0.0), "Laplace, sensitivity 0"),
    ],
    ids=["Laplace", "exponential", "nothing", "no noise", "zero"],
)
def test_a_mechanism_says_how_an_answer_was_protected(mechanism, text):
    assert str(mechanism) == text


def test_the_text_names_the_cohorts_of_a_step_that_is_not_on_everyone():
    cohorts = (FEW, REST, Cohort("new", 5, "who came late"))
    step = Step("mean", ("few", "new"), NOISE, 1.0)
    assert "mean, on few and new: eps" in str(ledger_of(step, cohorts=cohorts))


def test_naming_a_cohort_twice_does_not_make_it_everyone():
    text = str(ledger_of(Step("mean", ("few", "few"), NOISE, 1.0)))
    assert "everyone" not in text


def test_the_text_says_how_steps_compose_and_what_each_cohort_lost():
    text = str(EXAMPLE)
    assert "composition: steps on one cohort add up, cohorts do not" in text
    after = text[text.index("composition") :].splitlines()
    assert after[1:3] == ["  few: epsilon 0.75", "  rest: epsilon 0.625, delta 1e-09"]


def test_the_text_ends_with_the_total_and_the_notes():
    assert str(EXAMPLE).splitlines()[-2:] == [
        "total: epsilon 0.75, delta 1e-09",
        "note: cohorts follow public sizes",
    ]


def test_a_delta_of_zero_is_not_mentioned():
    text = str(ledger_of(Step("a", ("few",), NOISE, 0.5)))
    assert "delta" not in text


# What it refuses


@pytest.mark.parametrize(
    "on", [("few", "nobody"), ("Few",), (), "few"], ids=["one", "case", "none", "text"]
)
def test_steps_must_name_cohorts_of_the_ledger(on):
    with pytest.raises(ValueError, match=r"^steps: 'guess' must name .*few.*rest"):
        ledger_of(Step("guess", on, NOISE, 1.0))


def test_asking_about_an_unknown_cohort_is_an_error():
    with pytest.raises(ValueError, match=r"few.*rest.*nobody"):
        EXAMPLE.spent_on("nobody")


@pytest.mark.parametrize(
    ("epsilon", "delta"),
    [(-1.0, 0.0), (math.nan, 0.0), (1.0, -0.1), (1.0, 1.1), (1.0, math.nan)],
)
def test_impossible_costs_are_refused(epsilon, delta):
    with pytest.raises(ValueError, match=r"^steps: 'guess' must cost"):
        ledger_of(Step("guess", ("few",), NOISE, epsilon, delta))


@pytest.mark.parametrize("cohorts", [(), (FEW, FEW)], ids=["none", "twice"])
def test_cohorts_must_exist_and_have_different_names(cohorts):
    with pytest.raises(ValueError, match="cohorts must be at least one, each with"):
        ledger_of(cohorts=cohorts)


@pytest.mark.parametrize("record", [FEW, NOISE, EXAMPLE.steps[0], EXAMPLE], ids=type)
def test_what_is_written_cannot_be_changed(record):
    field = dataclasses.fields(record)[0].name
    with pytest.raises(dataclasses.FrozenInstanceError):
        setattr(record, field, "something else")


@pytest.mark.parametrize(
    ("cohorts", "steps", "notes", "name"),
    [
        ([FEW, REST], (), (), "cohorts"),
        (("few",), (), (), "cohorts"),
        ((FEW,), [EXAMPLE.steps[0]], (), "steps"),
        ((FEW,), ("guess",), (), "steps"),
        ((FEW,), (), "a note", "notes"),
        ((FEW,), (), (1,), "notes"),
    ],
)
def test_parts_of_another_kind_are_refused(cohorts, steps, notes, name):
    with pytest.raises(TypeError, match=rf"^{name} must be a tuple of"):
        Ledger(PUBLIC_SIZES, cohorts, steps, notes)


@pytest.mark.parametrize(
    "cohort",
    [
        Cohort(odd(5), 1, "lot"),
        Cohort(odd([]), 1, "lot"),
        Cohort("a", -1, "lot"),
        Cohort("a", 1, odd(5)),
    ],
    ids=["number", "list", "negative", "reason"],
)
def test_cohorts_with_parts_of_another_kind_are_refused(cohort):
    with pytest.raises((TypeError, ValueError), match=r"^cohorts: "):
        ledger_of(cohorts=(cohort,))


@pytest.mark.parametrize(
    "step",
    [
        Step(odd(5), ("few",), NOISE, 1.0),
        Step("a", odd(5), NOISE, 1.0),
        Step("a", ("few",), odd("Laplace"), 1.0),
        Step("a", ("few",), Mechanism(kind=odd(5)), 1.0),
        Step("a", ("few",), NOISE, odd("1")),
        Step("a", ("few",), NOISE, 1.0, odd(None)),
    ],
    ids=["name", "cohorts", "mechanism", "kind", "epsilon", "delta"],
)
def test_steps_with_parts_of_another_kind_are_refused(step):
    with pytest.raises(TypeError, match=r"^steps: "):
        ledger_of(step)


def test_neighbours_are_words():
    with pytest.raises(TypeError, match=r"^neighbours must be text"):
        Ledger(odd(None), (FEW,), ())
