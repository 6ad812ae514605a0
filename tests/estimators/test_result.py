"""Estimates: the value and its ledger can be released, the trace says it cannot."""

import copy
import dataclasses
import pickle

import pytest

from hetlit.estimators.result import Estimate, Trace
from hetlit.privacy.ledger import LAPLACE, PUBLIC_SIZES, Cohort, Ledger, Mechanism, Step
from tests.odd import odd

LAPLACE_NOISE = Mechanism(kind=LAPLACE, sensitivity=0.01, scale=0.02)
LEDGER = Ledger(
    PUBLIC_SIZES,
    (Cohort("everyone", 100, "no selection"),),
    (Step("mean", ("everyone",), LAPLACE_NOISE, 0.5, 1e-9),),
)
PLAIN = Estimate(0.123456789, LEDGER)
TRACED = Estimate(0.123456789, LEDGER, Trace(noiseless=0.25, weights=[1.0]))


def test_an_estimate_without_a_trace_says_how_to_get_one():
    with pytest.raises(AttributeError, match="trace=True"):
        _ = PLAIN.trace


def test_an_estimate_without_a_trace_has_no_such_attribute():
    assert not hasattr(PLAIN, "trace")
    assert hasattr(TRACED, "trace")


def test_a_trace_has_its_parts_as_attributes():
    assert TRACED.trace.noiseless == 0.25
    assert TRACED.trace.weights == [1.0]


def test_a_part_that_is_missing_is_named_with_those_there_are():
    with pytest.raises(AttributeError, match=r"no 'objective'.*noiseless.*weights"):
        _ = TRACED.trace.objective


def test_a_part_that_is_missing_shows_nothing_of_those_there_are():
    with pytest.raises(AttributeError) as caught:
        _ = TRACED.trace.objective
    assert "0.25" not in str(caught.value)


def test_the_text_of_a_trace_says_never_to_release_it():
    assert repr(TRACED.trace) == (
        "Trace(NOT PRIVATE, never release it: noiseless, weights)"
    )


def test_the_text_of_a_traced_estimate_says_never_to_release_it():
    assert "never release it" in repr(TRACED)


def test_no_text_shows_what_is_in_the_trace():
    for text in (repr(TRACED), str(TRACED), f"{TRACED}"):
        assert "0.25" not in text


def test_the_text_of_an_estimate_has_its_value_and_what_it_spent():
    assert repr(PLAIN) == "Estimate(value=0.123457, epsilon=0.5, delta=1e-09)"


@pytest.mark.parametrize("name", ["value", "ledger", "_trace", "anything"])
def test_an_estimate_cannot_be_changed(name):
    with pytest.raises(dataclasses.FrozenInstanceError):
        setattr(TRACED, name, 0.5)


@pytest.mark.parametrize(
    "duplicate",
    [copy.copy, copy.deepcopy, lambda estimate: pickle.loads(pickle.dumps(estimate))],
    ids=["copy", "deepcopy", "pickle"],
)
def test_estimates_survive_copying_with_their_trace(duplicate):
    again = duplicate(TRACED)
    assert (again.value, again.ledger) == (TRACED.value, TRACED.ledger)
    assert vars(again.trace) == vars(TRACED.trace)


def test_an_estimate_is_a_number_with_a_ledger():
    assert type(Estimate(1, LEDGER).value) is float
    with pytest.raises(TypeError, match=r"^value must be"):
        Estimate(odd("0.5"), LEDGER)
    with pytest.raises(TypeError, match=r"^ledger must be"):
        Estimate(0.5, odd(None))
    with pytest.raises(TypeError, match=r"^_trace must be"):
        Estimate(0.5, LEDGER, odd(True))
