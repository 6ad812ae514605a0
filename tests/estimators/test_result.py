"""Estimates: all of them can be released but the trace, which says so."""

import copy
import dataclasses
import math
import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hetlit.estimators.result import Estimate, Trace
from hetlit.estimators.uncertainty import Uncertainty
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
SURE = Uncertainty(noise=0.01, sampling=0.02, first=Uncertainty(noise=0.1, sampling=0))
WARNED = Estimate(0.5, LEDGER, uncertainty=SURE, warnings=("too far", "too few"))


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


def test_the_text_of_an_estimate_has_its_interval_and_its_warnings():
    low, high = WARNED.interval()
    assert repr(WARNED).splitlines() == [
        f"Estimate(value=0.5, interval=({low:.6g}, {high:.6g}), epsilon=0.5, "
        "delta=1e-09)",
        "warning: too far",
        "warning: too few",
    ]


def test_what_merely_happened_is_in_the_text_of_the_ledger():
    noted = Ledger(LEDGER.neighbours, LEDGER.cohorts, LEDGER.steps, ("it happened",))
    assert "note: it happened" in str(Estimate(0.5, noted).ledger)


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
    assert duplicate(WARNED) == WARNED


def test_an_estimate_is_a_number_with_a_ledger():
    assert type(Estimate(1, LEDGER).value) is float
    with pytest.raises(TypeError, match=r"^value must be"):
        Estimate(odd("0.5"), LEDGER)
    with pytest.raises(TypeError, match=r"^ledger must be"):
        Estimate(0.5, odd(None))
    with pytest.raises(TypeError, match=r"^_trace must be"):
        Estimate(0.5, LEDGER, odd(True))
    with pytest.raises(TypeError, match=r"^uncertainty must be"):
        Estimate(0.5, LEDGER, uncertainty=odd(0.1))
    for warnings in ("too far", ["too far"], (1,), (None,)):
        with pytest.raises(TypeError, match=r"^warnings"):
            Estimate(0.5, LEDGER, warnings=odd(warnings))


# How sure it is


@pytest.mark.parametrize(
    ("value", "moved"), [(-0.5, 0.0), (-1e-300, 0.0), (0.25, 0.25), (1.5, 1.0)]
)
def test_what_noise_carried_out_of_0_1_is_moved_back(value, moved):
    assert Estimate(value, LEDGER).value == moved


@given(st.floats(-0.5, 1.5), st.floats(0.001, 0.999), st.booleans(), st.booleans())
def test_an_interval_is_the_value_with_its_half_width_within_0_1(
    value, level, clipping, sizes
):
    sure = dataclasses.replace(SURE, dependence=0.03)
    estimate = Estimate(value, LEDGER, uncertainty=sure)
    low, high = estimate.interval(level, clipping=clipping, sizes=sizes)
    width = sure.half_width(level, clipping=clipping, sizes=sizes)
    assert low == max(estimate.value - width, 0.0)
    assert high == min(estimate.value + width, 1.0)
    assert 0.0 <= low <= estimate.value <= high <= 1.0


def test_an_interval_allows_for_clipping_unless_told_otherwise_and_not_for_sizes():
    low, high = WARNED.interval(0.95)
    assert WARNED.interval() == (low, high)
    assert WARNED.interval(clipping=True, sizes=False) == (low, high)
    assert WARNED.interval(clipping=False)[0] > low
    assert WARNED.interval(sizes=True) == (0.0, 1.0)


def test_a_standard_error_is_at_most_1():
    for noise, expected in ((0.1, math.hypot(0.1 * math.sqrt(2), 0.02)), (1e12, 1.0)):
        sure = Uncertainty(noise=noise, sampling=0.02)
        error = Estimate(0.5, LEDGER, uncertainty=sure).standard_error
        assert error == pytest.approx(expected)


def test_an_estimate_without_an_uncertainty_says_so():
    for ask in (lambda: PLAIN.standard_error, PLAIN.interval):
        with pytest.raises(AttributeError, match="does not say how sure it is"):
            ask()


@pytest.mark.parametrize("level", [0.0, 1.0, -1.0, math.nan, math.inf])
def test_a_level_is_a_chance(level):
    with pytest.raises(ValueError, match=r"^level must be"):
        WARNED.interval(level)


@pytest.mark.parametrize(
    ("words", "named"),
    [
        ({"level": "95%"}, "level"),
        ({"level": True}, "level"),
        ({"clipping": 1}, "clipping"),
        ({"sizes": None}, "sizes"),
    ],
)
def test_arguments_of_an_interval_have_their_types(words, named):
    with pytest.raises(TypeError, match=f"^{named} must be"):
        WARNED.interval(**words)
