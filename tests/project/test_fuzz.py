"""Hostile input: a short run of `tools.fuzz`, and what its judge must notice."""

import ast
import re
import time
import warnings

import numpy as np
import pytest

import hetlit
from tools import fuzz
from tools.fuzz_kinds import PROBABILITY, things, users, whole_numbers
from tools.fuzz_names import (
    ENTRIES,
    UNCHECKED,
    Entry,
    documented,
    public_names,
    within,
)

USERS = hetlit.Users([7654, 3], [4321, 1])
RNG = np.random.default_rng(0)


def entry_names():
    return {title.partition(":")[0] for title in ENTRIES}


def test_every_public_name_has_an_entry():
    assert entry_names() == set(public_names())


def test_what_is_left_unchecked_is_documented_and_nothing_else():
    assert {path.rpartition(".")[2] for path in documented()} >= UNCHECKED
    assert not UNCHECKED & set(hetlit.__all__)


@pytest.mark.parametrize("name", ["estimate_public_size", "estimate_private_k"])
def test_every_method_has_an_entry(name):
    with pytest.raises(ValueError, match=r"^method must be one of") as refused:
        getattr(hetlit, name)(USERS, 1.0, method="?", rng=RNG)
    listed = re.search(r"\(.*\)", str(refused.value))
    assert listed
    methods = ast.literal_eval(listed.group())
    assert {f"{name}: {method}" for method in methods} <= set(ENTRIES)


@pytest.fixture(scope="module")
def report():
    return fuzz.run(10 * len(fuzz.schedule()), seed=0)


def test_hostile_input_is_refused_and_valid_input_answered(report):
    assert report.failures == []


def test_every_name_is_answered_and_refused(report):
    assert set(report.names) == entry_names()
    for title, entry in ENTRIES.items():
        tally = report.names[title.partition(":")[0]]
        assert tally.valid > 0
        assert tally.refused > 0 or not any(x.invalid for x in entry.kinds.values())


# What the judge notices


def judged(function, wrong=None, **arguments):
    kinds = {"x": PROBABILITY, "k": whole_numbers(1), "users": users()}
    call = fuzz.Call("function", arguments, wrong)
    return fuzz.judge(call, function, Entry(kinds, within(0.0)), seconds=0.2)[1]


def refuse(text, error=ValueError):
    def function(**arguments):
        raise error(text)

    return function


def test_a_good_answer_and_a_good_refusal_are_let_pass():
    assert judged(lambda x: x, x=0.5) is None
    assert judged(refuse("x must be a number"), wrong="x", x="1") is None


@pytest.mark.parametrize("answer", [np.nan, np.inf, (0.5, np.array([1.0, -np.inf]))])
def test_answers_that_are_not_finite_are_noticed(answer):
    assert "not finite" in judged(lambda x: answer, x=0.5)


def test_broken_promises_are_noticed():
    assert "not in [0, inf]" in judged(lambda x: -x, x=0.5)


def test_warnings_are_noticed():
    def function(x):
        warnings.warn("careful", stacklevel=1)
        return x

    assert "UserWarning: careful" in judged(function, x=0.5)


def test_errors_about_valid_input_are_noticed():
    assert "valid, but" in judged(refuse("x must be a number"), x=0.5)


def test_wrong_input_that_is_accepted_is_noticed():
    assert judged(lambda x: 1.0, wrong="x", x="1") == "x is wrong and was accepted"


def test_errors_of_another_kind_or_without_a_name_are_noticed():
    assert "OverflowError" in judged(refuse("x", OverflowError), wrong="x", x=1e999)
    assert "not named" in judged(refuse("bad extent"), wrong="x", x="1")


@pytest.mark.parametrize(
    "arguments",
    [{"users": USERS}, {"k": [7654]}, {"k": np.array([7654])}, {"k": {"k": (7654,)}}],
)
def test_errors_that_quote_data_are_noticed(arguments):
    name = next(iter(arguments))
    problem = judged(refuse(f"{name}: 7654 is wrong"), wrong=name, **arguments)
    assert problem.startswith("the error quotes data")


def test_numbers_that_were_given_as_such_may_be_quoted():
    problem = judged(refuse("x is not 7654"), wrong="x", x=7654, users=USERS)
    assert problem is None


def test_changed_input_is_noticed():
    def function(k):
        k[0] = 9
        return 1.0

    assert judged(function, k=np.array([1, 2])) == "k was changed"
    assert judged(function, k=[1, 2]) == "k was changed"


def test_slow_calls_are_stopped():
    begin = time.perf_counter()
    assert "more than 0.2 s" in judged(lambda x: time.sleep(60), x=0.5)
    assert time.perf_counter() - begin < 30


# The tool


def test_a_call_is_a_function_of_seed_and_number():
    titles = fuzz.schedule()
    for number in range(200):
        first, again = (fuzz.draw(titles, 3, number) for _ in range(2))
        assert (first.title, first.wrong) == (again.title, again.wrong)
        assert first.arguments.keys() == again.arguments.keys()


def test_failures_end_in_exit_code_one_and_can_be_repeated(
    monkeypatch, tmp_path, capsys
):
    monkeypatch.setattr(fuzz, "limit_memory", lambda: None)
    page = tmp_path / "fuzz.md"
    command = ["--calls", "20", "--only", "least_noise", "--record", str(page)]
    assert fuzz.main(command) == 0
    assert "- failures: 0\n" in page.read_text()
    monkeypatch.setitem(ENTRIES, "least_noise", Entry({"epsilon": PROBABILITY}))
    assert fuzz.main(command) == 1
    failure = re.search(r"--seed 0 --call (\d+)", capsys.readouterr().out)
    assert failure
    again = ["--only", "least_noise", "--call", failure.group(1)]
    assert fuzz.main(again) == 1


def test_unknown_names_are_refused():
    with pytest.raises(SystemExit, match="no public name"):
        fuzz.schedule("nothing")


def test_kinds_leave_out_optional_arguments_but_never_wrong_ones():
    kind = PROBABILITY.optional(none=True)
    drawn = [kind.valid(RNG, {}) for _ in range(100)]
    assert None in drawn
    assert kind.invalid
    assert all(kind.invalid(RNG, {}) is not None for _ in range(500))
    assert things(1)(RNG, {}) == 1
