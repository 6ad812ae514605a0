"""The list of mutants fits the library, and no private step is without one."""

from __future__ import annotations

import ast
import dataclasses
from functools import cache
from pathlib import Path

import pytest

from tools.mutants import COPIED, LEAST, ROOT, Mutant, copies, killer, mutants, report

ALL = mutants()
SHOWN = ("teaching", "widgets.py")
ASKS = ("laplace", "counts", "choose", "nothing")


def library() -> list[str]:
    """Return the modules that compute, by their paths."""
    paths = (path.relative_to(ROOT) for path in (ROOT / "hetlit").rglob("*.py"))
    return sorted(str(path) for path in paths if not set(path.parts) & set(SHOWN))


@cache
def source(path: str) -> str:
    return (ROOT / path).read_text(encoding="utf-8")


@cache
def changed(mutant: Mutant) -> str:
    """Return the changed module; fails if the change does not fit or compile."""
    return mutant.source(source(mutant.path))


def questions(path: str) -> list[ast.Call]:
    """Return where a module asks its account."""
    calls = [x for x in ast.walk(ast.parse(source(path))) if isinstance(x, ast.Call)]
    return [
        call
        for call in calls
        if isinstance(call.func, ast.Attribute)
        and call.func.attr in ASKS
        and ast.unparse(call.func.value) == "account"
    ]


def changed_lines(mutant: Mutant) -> range:
    """Return the lines of the module that a mutant changes or drops, from 0."""
    before, after = (
        text.splitlines() for text in (source(mutant.path), changed(mutant))
    )
    start, end, shorter = 0, 0, min(len(before), len(after))
    while start < shorter and before[start] == after[start]:
        start += 1
    while end < shorter - start and before[~end] == after[~end]:
        end += 1
    return range(start, len(before) - end)


@pytest.mark.parametrize("path", dict.fromkeys(mutant.path for mutant in ALL))
def test_every_change_fits_its_module_once_and_compiles(path: str) -> None:
    for mutant in ALL:
        if mutant.path == path:
            assert changed(mutant) != source(path)
            for run in mutant.tests:
                assert (ROOT / run.split()[0]).is_file()


def test_there_are_enough_and_most_are_in_privacy() -> None:
    private = [mutant for mutant in ALL if mutant.privacy]
    assert len(ALL) >= 120
    assert len(private) > len(ALL) / 2
    assert not any(mutant.survives for mutant in private)
    assert sum(not mutant.survives for mutant in ALL) >= LEAST * len(ALL)


def test_no_mutant_is_there_twice() -> None:
    assert len({str(mutant) for mutant in ALL}) == len(ALL)
    assert len({(mutant.path, changed(mutant)) for mutant in ALL}) == len(ALL)


@pytest.mark.parametrize("path", library())
def test_every_question_to_an_account_has_a_mutant_in_privacy(path: str) -> None:
    private = [mutant for mutant in ALL if mutant.privacy and mutant.path == path]
    broken = set().union(*map(changed_lines, private))
    for call in questions(path):
        lines = range(call.lineno - 1, call.end_lineno or call.lineno)
        assert broken & set(lines), f"line {call.lineno}: {ast.unparse(call)}"


@pytest.mark.parametrize("path", library())
def test_every_module_with_noise_or_a_sensitivity_has_mutants_in_privacy(
    path: str,
) -> None:
    nodes = list(ast.walk(ast.parse(source(path))))
    defined = [x.name for x in nodes if isinstance(x, ast.FunctionDef)]
    drawn = any(isinstance(x, ast.Attribute) and x.attr == "laplace" for x in nodes)
    if questions(path) or drawn or any("sensitivity" in name for name in defined):
        assert any(mutant.privacy for mutant in ALL if mutant.path == path)


def test_a_change_that_does_not_fit_is_an_error() -> None:
    mutant = Mutant("a name", "a.py", (), True, "x", "y")
    assert mutant.source("x = 1") == "y = 1"
    with pytest.raises(ValueError, match=r"a\.py: a name: found 0 times"):
        mutant.source("z = 1")
    with pytest.raises(ValueError, match="found 2 times"):
        mutant.source("x = x")
    with pytest.raises(ValueError, match="does not compile"):
        dataclasses.replace(mutant, new="1 2").source("x = 1")
    inside = dataclasses.replace(mutant, within="g")
    with pytest.raises(ValueError, match="'g' is defined 0 times"):
        inside.source("x = 1")
    two = "def f():\n    x\n\n\ndef g():\n    x\n"
    assert inside.source(two) == "def f():\n    x\n\n\ndef g():\n    y\n"


@pytest.mark.slow
def test_the_working_tree_stays_as_it_is_and_so_does_the_copy() -> None:
    mutant = next(m for m in ALL if m.path.endswith("ledger.py"))
    before = source(mutant.path)
    with copies(1) as folders:
        folder = folders.get()
        assert all((folder / name).exists() for name in COPIED)
        assert "test_ledger.py::test_" in killer(mutant, folder)
        assert (folder / mutant.path).read_text(encoding="utf-8") == before
        folders.put(folder)
    assert not folder.exists()
    assert source(mutant.path) == before


def test_the_report_counts_and_names_survivors() -> None:
    dead = Mutant("noise is halved", "a.py", (), True, "x", "y")
    alive = Mutant("a typo", "b.py", (), False, "x", "y", survives="Nobody reads it.")
    text = report([(dead, "test_a.py::test_noise"), (alive, "")])
    assert "| all | 2 | 1 |\n| in privacy | 1 | 1 |" in text
    assert "- `b.py`: a typo. Nobody reads it." in text
    assert "| `a.py` | 1 | 1 | 1 |\n| `b.py` | 1 | 0 | 0 |" in text
    assert "- noise is halved (privacy): `test_a.py::test_noise`" in text
    unknown = report([(dataclasses.replace(alive, survives=""), "")])
    assert "**Not noticed.**" in unknown
    assert "None." in report([(dead, "test_a.py::test_noise")])


def test_the_record_speaks_of_these_mutants() -> None:
    record = Path(ROOT, "benchmarks", "mutants.md").read_text(encoding="utf-8")
    for mutant in ALL:
        privacy = " (privacy)" if mutant.privacy else ""
        assert f"\n- {mutant.name}{privacy}: " in record
