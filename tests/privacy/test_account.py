"""The account: no noise without its line, no line without its noise, and no debt.

Nothing here is statistical: a recording source shows what noise was asked for.
"""

import json
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hetlit import Beta, estimate_private_k, estimate_public_size, sample_users
from hetlit.privacy.account import Account, single_step
from hetlit.privacy.ledger import (
    EXPONENTIAL,
    LAPLACE,
    NOTHING,
    PUBLIC_SIZES,
    Cohort,
    Mechanism,
)
from hetlit.privacy.noise import NoiseSource, SecureNoiseUnavailable, source_of
from tests.odd import odd

FEW = Cohort("few", 10, "fewest samples")
REST = Cohort("rest", 90, "all others")


class Recorder:
    """A source of noise that adds none and keeps what it was asked."""

    def __init__(self):
        self.chance = np.random.default_rng(0)
        self.calls = []

    def laplace(self, statistic, scale):
        self.calls.append(("laplace", statistic, scale))
        return statistic

    def laplaces(self, statistics, scale):
        self.calls.append(("laplaces", list(statistics), scale))
        return np.array(statistics) + np.arange(len(statistics))

    def choose(self, utilities, epsilon, sensitivity):
        self.calls.append(("choose", list(utilities), epsilon, sensitivity))
        return len(utilities) - 1


def account_of(epsilon=1.0, *, delta=0.0, cohorts=(FEW, REST)):
    return Account(epsilon, PUBLIC_SIZES, cohorts, Recorder(), delta=delta)


# Every way to spend: what a step is asked for, by its epsilon, cohorts and options.
WAYS = {
    "laplace": lambda account, epsilon, *on, **options: account.laplace(
        "step", 0.5, 0.1, epsilon, *on, **options
    ),
    "counts": lambda account, epsilon, *on: account.counts(
        "step", np.array([3.0, 4.0]), 2.0, epsilon, *on
    ),
    "choose": lambda account, epsilon, *on, **options: account.choose(
        "step", [0.0, -1.0], epsilon, *on, **options
    ),
    "nothing": lambda account, epsilon, *on, **options: account.nothing(
        "step", epsilon, *on, why="too few users", **options
    ),
}
WITH_DELTA = [name for name in WAYS if name != "counts"]


@pytest.fixture(params=WAYS)
def spend(request):
    return WAYS[request.param]


def test_the_recorder_is_a_source():
    assert isinstance(Recorder(), NoiseSource)


# From steps to a ledger


def test_an_account_becomes_the_ledger_of_its_steps():
    account = account_of()
    account.laplace("mean", 0.4, 0.1, 0.5, "few")
    account.choose("spread", [0.0, 1.0], 0.25)
    ledger = account.ledger("a note")
    assert ledger.neighbours == PUBLIC_SIZES
    assert ledger.cohorts == (FEW, REST)
    assert ledger.notes == ("a note",)
    assert [step.name for step in ledger.steps] == ["mean", "spread"]
    assert [step.cohorts for step in ledger.steps] == [("few",), ("few", "rest")]
    assert [step.epsilon for step in ledger.steps] == [0.5, 0.25]
    assert (ledger.epsilon, account.left) == (0.75, 0.25)


def test_a_step_is_on_everyone_or_on_whom_it_says(spend):
    account = account_of()
    spend(account, 0.25)
    spend(account, 0.5, "rest")
    steps = account.ledger().steps
    assert [step.cohorts for step in steps] == [("few", "rest"), ("rest",)]
    assert [step.epsilon for step in steps] == [0.25, 0.5]
    assert account.left == 0.25


def test_what_is_left_is_left_to_the_cohort_that_spent_most(spend):
    account = account_of(2.0)
    assert account.left == 2.0
    spend(account, 0.5, "few")
    spend(account, 0.75, "rest")
    assert account.left == 1.25


def test_an_earlier_ledger_does_not_change():
    account = account_of()
    before = account.ledger()
    account.laplace("mean", 0.4, 0.1, 0.5)
    assert (before.steps, before.epsilon) == ((), 0.0)


# The noise is what the line says


@given(st.floats(1e-9, 1e9), st.floats(1e-9, 1e9), st.floats(-1e9, 1e9))
def test_the_noise_scale_is_the_sensitivity_over_what_was_spent(
    sensitivity, epsilon, statistic
):
    account = account_of(epsilon)
    answer = account.laplace("mean", statistic, sensitivity, epsilon)
    scale = sensitivity / epsilon
    assert account.source.calls == [("laplace", statistic, scale)]
    assert answer == statistic
    step = account.ledger().steps[0]
    assert step.mechanism == Mechanism(
        kind=LAPLACE, sensitivity=sensitivity, scale=scale
    )
    assert (step.epsilon, step.delta) == (epsilon, 0.0)
    assert account.scale == scale


def test_a_known_noise_scale():
    account = account_of()
    account.laplace("mean", 0.0, 0.5, 0.25)
    assert account.source.calls == [("laplace", 0.0, 2.0)]
    assert account.scale == 2.0


def test_counts_get_one_noise_each_of_the_scale_that_the_line_says():
    account = account_of()
    counts = np.array([5.0, 0.0, 7.0])
    answer = account.counts("histogram", counts, 2.0, 0.5, detail=" of three")
    assert account.source.calls == [("laplaces", [5.0, 0.0, 7.0], 4.0)]
    assert answer.tolist() == [5.0, 1.0, 9.0]
    assert account.ledger().steps[0].mechanism == Mechanism(
        kind=LAPLACE, sensitivity=2.0, scale=4.0, detail=" of three"
    )


def test_simulated_counts_take_one_draw_each():
    used, known = np.random.default_rng(3), np.random.default_rng(3)
    answer = single_step(0.5, used).counts("histogram", np.full(4, 7.0), 2.0, 0.5)
    expected = [7.0 + known.laplace(0.0, 4.0) for _ in range(4)]
    assert answer.tolist() == expected
    assert used.random() == known.random()


def test_a_choice_is_made_with_the_utilities_epsilon_and_sensitivity_of_its_line():
    account = account_of(delta=0.5)
    chosen = account.choose(
        "spread",
        [0, -3, 2],
        0.25,
        "rest",
        sensitivity=3.0,
        delta=0.125,
        detail=" of three",
    )
    assert chosen == 2
    assert account.source.calls == [("choose", [0.0, -3.0, 2.0], 0.25, 3.0)]
    step = account.ledger().steps[0]
    assert step.mechanism == Mechanism(
        kind=EXPONENTIAL, sensitivity=3.0, detail=" of three"
    )
    assert (step.cohorts, step.epsilon, step.delta) == (("rest",), 0.25, 0.125)


def test_a_utility_moves_by_one_unless_told_otherwise():
    account = account_of()
    account.choose("spread", [0.0], 0.25)
    assert account.source.calls == [("choose", [0.0], 0.25, 1.0)]
    assert account.ledger().steps[0].mechanism.sensitivity == 1.0


def test_a_step_that_releases_nothing_is_charged_and_draws_nothing():
    account = account_of(delta=0.5)
    answer = account.nothing("spread", 0.25, "few", delta=0.125, why="too few users")
    assert answer is None
    assert account.source.calls == []
    step = account.ledger().steps[0]
    assert step.mechanism == Mechanism(kind=NOTHING, detail=": too few users")
    assert (step.cohorts, step.epsilon, step.delta) == (("few",), 0.25, 0.125)
    assert account.left == 0.75


@pytest.mark.parametrize("way", ["choose", "nothing"])
def test_there_is_no_scale_without_laplace_noise(way):
    account = account_of()
    WAYS["laplace"](account, 0.25)
    WAYS[way](account, 0.25)
    with pytest.raises(ValueError, match="no Laplace noise"):
        _ = account.scale


# No debt


def refused(account, message, call):
    """Check that a call is refused and leaves no trace: no line, no noise."""
    before, calls = account.ledger(), list(account.source.calls)
    with pytest.raises(ValueError, match=message):
        call()
    assert account.source.calls == calls
    assert account.ledger() == before


def test_five_cannot_be_spent_from_one(spend):
    account = account_of(1.0)
    refused(
        account,
        "^epsilon is overspent: step 'step' would make it 5 of 1 for one cohort$",
        lambda: spend(account, 5.0),
    )
    assert account.left == 1.0


def test_a_cohort_cannot_overspend_although_another_has_spent_nothing(spend):
    account = account_of(1.0)
    spend(account, 0.75, "few")
    refused(account, "epsilon is overspent", lambda: spend(account, 0.5, "few"))
    refused(account, "epsilon is overspent", lambda: spend(account, 0.5))
    spend(account, 1.0, "rest")
    spend(account, 0.25, "few")
    assert account.left == 0.0
    assert account.ledger().spent_on("few") == (1.0, 0.0)


@pytest.mark.parametrize("way", WITH_DELTA)
def test_delta_cannot_be_overspent(way):
    account = account_of(1.0, delta=0.25)
    spend = WAYS[way]
    refused(
        account,
        "^delta is overspent: step 'step' would make it 0.5 of 0.25 for one cohort$",
        lambda: spend(account, 0.1, "few", delta=0.5),
    )
    spend(account, 0.1, "few", delta=0.25)
    refused(
        account,
        "delta is overspent",
        lambda: spend(account, 0.1, "few", delta=1e-6),
    )
    spend(account, 0.1, "rest", delta=0.25)
    assert account.ledger().delta == 0.25


@pytest.mark.parametrize("way", WITH_DELTA)
def test_without_a_delta_none_can_be_spent(way):
    account = account_of(1.0)
    refused(
        account,
        "delta is overspent",
        lambda: WAYS[way](account, 0.1, delta=1e-300),
    )


@pytest.mark.parametrize("way", WITH_DELTA)
@pytest.mark.parametrize("delta", [-0.1, 1.5, math.nan])
def test_impossible_deltas_are_refused(way, delta):
    account = account_of(1.0, delta=1.0)
    refused(account, "delta", lambda: WAYS[way](account, 0.1, delta=delta))


@pytest.mark.parametrize("epsilon", [0.0, -0.5, math.nan, math.inf])
def test_impossible_costs_are_refused(spend, epsilon):
    account = account_of()
    refused(account, "^epsilon must be", lambda: spend(account, epsilon))


def test_unknown_cohorts_are_refused(spend):
    account = account_of()
    refused(account, "must name cohorts", lambda: spend(account, 0.5, "nobody"))


@pytest.mark.parametrize("parts", [3, 7, 10, 49])
def test_shares_of_a_budget_can_all_be_spent_and_nothing_more(spend, parts):
    account = account_of(0.7)
    for _ in range(parts):
        spend(account, 0.7 / parts)
    assert account.left == pytest.approx(0.0, abs=1e-12)
    refused(account, "epsilon is overspent", lambda: spend(account, 1e-9))


# What nobody can move is public


@pytest.mark.parametrize("sensitivity", [0, 0.0, -1.0, math.nan, math.inf])
def test_impossible_sensitivities_are_refused(sensitivity):
    account = account_of()
    message = "^sensitivity must be a number in"
    for call in (
        lambda: account.laplace("mean", 0.5, sensitivity, 0.5),
        lambda: account.counts("histogram", np.ones(3), sensitivity, 0.5),
        lambda: account.choose("spread", [0.0], 0.5, sensitivity=sensitivity),
    ):
        refused(account, message, call)


@pytest.mark.parametrize("utility", [math.nan, math.inf, -math.inf])
def test_impossible_utilities_are_refused(utility):
    account = account_of()
    refused(
        account,
        "^utilities must be finite",
        lambda: account.choose("spread", [0.0, utility], 0.5),
    )


# The account of a function that releases one answer


def test_the_account_of_a_single_step_holds_its_epsilon_and_no_delta():
    source = Recorder()
    account = single_step(0.5, source)
    assert (account.left, account.delta, account.source) == (0.5, 0.0, source)
    account.laplace("mean", 0.5, 1.0, account.left)
    refused(account, "overspent", lambda: account.laplace("mean", 0.5, 1.0, 0.5))


def test_a_single_step_without_a_generator_is_refused():
    with pytest.raises(SecureNoiseUnavailable):
        single_step(0.5, None)


# A share of a budget may be any amount; what a function is asked for has a range.
@pytest.mark.parametrize("epsilon", [0.0, -1.0, 1e-13, 1e13, math.inf, math.nan])
def test_a_single_step_needs_a_possible_epsilon(epsilon):
    with pytest.raises(ValueError, match=r"^epsilon must be"):
        single_step(epsilon, Recorder())


# Plain data


def spent():
    account = account_of(1.0, delta=0.5)
    account.laplace("mean", 0.4, 0.1, 0.25, "few", delta=0.125, detail=" of ten")
    account.counts("histogram", np.array([3.0, 4.0]), 2.0, 0.25, "rest")
    account.choose("spread", [0.0, 1.0], 0.5)
    account.nothing("test", 0.125, "few", why="too few users")
    return account.ledger("a note", "another")


def printed(parts):
    """Return the text of a ledger, from its plain data."""

    def cost(epsilon, delta):
        return f"epsilon {epsilon:.6g}" + (f", delta {delta:.3g}" if delta else "")

    def mechanism(part):
        size = part["sensitivity"]
        shown = "" if size is None else f", sensitivity {size:.6g}"
        return part["kind"] + shown + part["detail"]

    names = [cohort["name"] for cohort in parts["cohorts"]]
    lines = [f"neighbours: {parts['neighbours']}", "cohorts:"]
    for cohort in parts["cohorts"]:
        lines.append(
            f"  {cohort['name']}: {cohort['users']} users, {cohort['chosen_by']}"
        )
    lines.append("steps:")
    for step in parts["steps"]:
        whole = set(step["cohorts"]) == set(names)
        on = "everyone" if whole else " and ".join(step["cohorts"])
        price = cost(step["epsilon"], step["delta"])
        lines.append(
            f"  {step['name']}, on {on}: {price} ({mechanism(step['mechanism'])})"
        )
    lines.append("composition: steps on one cohort add up, cohorts do not")
    for name in names:
        touching = [step for step in parts["steps"] if name in step["cohorts"]]
        sums = [
            math.fsum(step[key] for step in touching) for key in ("epsilon", "delta")
        ]
        lines.append(f"  {name}: {cost(*sums)}")
    lines.append(f"total: {cost(parts['epsilon'], parts['delta'])}")
    return "\n".join([*lines, *(f"note: {note}" for note in parts["notes"])])


def estimated(estimate, **options):
    users = sample_users(Beta(0.3, 0.01), [1, 5, 20] * 100, np.random.default_rng(1))
    return estimate(users, 1.0, rng=np.random.default_rng(2), **options).ledger


LEDGERS = {
    "every kind of step": spent,
    "public sizes": lambda: estimated(estimate_public_size),
    "private sizes": lambda: estimated(estimate_private_k, k_max=50, delta=1e-6),
}


@pytest.mark.parametrize("make", LEDGERS.values(), ids=LEDGERS)
def test_a_ledger_as_plain_data_survives_json_and_says_what_is_printed(make):
    ledger = make()
    parts = ledger.as_dict()
    again = json.loads(json.dumps(parts, allow_nan=False))
    assert again == parts
    assert printed(again) == str(ledger)


@pytest.mark.parametrize("make", LEDGERS.values(), ids=LEDGERS)
def test_the_scales_in_a_ledger_are_its_sensitivities_over_its_epsilons(make):
    steps = make().as_dict()["steps"]
    noisy = [step for step in steps if step["mechanism"]["kind"] == LAPLACE]
    assert noisy
    for step in noisy:
        mechanism = step["mechanism"]
        assert mechanism["scale"] == mechanism["sensitivity"] / step["epsilon"]


def test_a_ledger_as_plain_data_has_every_number():
    parts = spent().as_dict()
    assert (parts["epsilon"], parts["delta"]) == (0.875, 0.125)
    assert parts["notes"] == ["a note", "another"]
    assert parts["cohorts"][0] == {
        "name": "few",
        "users": 10,
        "chosen_by": "fewest samples",
    }
    assert parts["steps"][0] == {
        "name": "mean",
        "cohorts": ["few"],
        "mechanism": {
            "kind": LAPLACE,
            "sensitivity": 0.1,
            "scale": 0.4,
            "detail": " of ten",
        },
        "epsilon": 0.25,
        "delta": 0.125,
    }
    assert [step["mechanism"]["scale"] for step in parts["steps"]] == [
        0.4,
        8.0,
        None,
        None,
    ]


# Doors: numbers become floats, and what is private is not shown


def test_a_choice_takes_fractions_as_numbers():
    account = Account(1.0, PUBLIC_SIZES, (FEW,), source_of(np.random.default_rng(0)))
    assert account.choose("spread", [0.0, 1.0], odd(Fraction(1, 2))) in (0, 1)
    assert type(account.ledger().steps[0].epsilon) is float


@pytest.mark.parametrize("value", [math.nan, math.inf, 7654.5e100, "7654"], ids=repr)
def test_statistics_that_are_no_numbers_are_refused_unseen(value):
    account = account_of()
    for name, call in (
        ("statistic", lambda: account.laplace("mean", value, 1.0, 0.5)),
        ("counts", lambda: account.counts("histogram", [value], 1.0, 0.5)),
    ):
        with pytest.raises((TypeError, ValueError), match=f"^{name} must") as refused:
            call()
        assert "7654" not in str(refused.value)
    assert account.ledger().steps == ()


@pytest.mark.parametrize(
    ("options", "name"),
    [
        ({"epsilon": math.nan}, "epsilon"),
        ({"delta": -1.0}, "delta"),
        ({"source": np.random.default_rng(0)}, "source"),
    ],
)
def test_accounts_are_opened_with_numbers_and_a_source(options, name):
    known = {"epsilon": 1.0, "source": Recorder(), **options}
    with pytest.raises((TypeError, ValueError), match=f"^{name} must be"):
        Account(neighbours=PUBLIC_SIZES, cohorts=(FEW,), **known)
