"""The claim ledger points to things that exist, and its tests cannot be skipped."""

import ast
import importlib
import json
import re
import shutil
import subprocess
import sys
from collections import Counter
from functools import cache
from pathlib import Path

import pytest

import hetlit
from tools.sphinx.claims import (
    BOOK,
    STATUSES,
    anchor,
    claims,
    first_lines,
    items,
    markdown,
    named_tests,
)
from tools.sphinx.docstrings import CHAPTERS

ROOT = Path(__file__).resolve().parents[2]
CLAIMS = claims()
NAMES = sorted({name for claim in CLAIMS for name in claim.code})
NAMED = sorted({test for claim in CLAIMS for test in claim.tests})


@cache
def sources():
    """Return the text of every page: Markdown files, and the cells of notebooks."""
    texts = {}
    for path in sorted(BOOK.glob("*.md")):
        texts[path.stem] = path.read_text(encoding="utf-8")
    for path in sorted(BOOK.glob("*.ipynb")):
        cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
        texts[path.stem] = "\n".join("".join(cell["source"]) for cell in cells)
    return texts


@cache
def labels():
    """Return every label that a page defines."""
    targets = r"^\(([\w-]+)\)=|^:label: *([\w-]+)|^\$\$ *\(([\w-]+)\)"
    found = re.findall(targets, "\n".join(sources().values()), re.MULTILINE)
    return {label for groups in found for label in groups if label}


@cache
def documented():
    """Return every name on the API page."""
    text = (BOOK / "api.md").read_text(encoding="utf-8")
    return set(
        re.findall(r"^\.\. auto(?:class|exception|function):: (\S+)", text, re.M)
    )


functions = cache(first_lines)


def public_object(name):
    """Return what a dotted name stands for."""
    parts = name.split(".")
    for cut in range(len(parts), 0, -1):
        try:
            found = importlib.import_module(".".join(parts[:cut]))
        except ModuleNotFoundError:
            continue
        for part in parts[cut:]:
            found = getattr(found, part)
        return found
    raise ModuleNotFoundError(name)


# Every row is complete


def test_everything_that_the_paper_states_has_one_row():
    keys = [item.key for item in items()]
    assert Counter(claim.item.key for claim in CLAIMS) == Counter(keys)
    assert len(set(keys)) == len(keys)
    assert len({item.label for item in items()}) == len(keys)


def test_the_paper_has_as_many_numbered_items_as_its_source():
    # Counted in the LaTeX source; a display without a number has a label.
    kinds = Counter(item.kind for item in items())
    assert kinds.pop("passage") > 0
    assert kinds == {
        "algorithm": 5,
        "corollary": 1,
        "definition": 1,
        "equation": 26,
        "example": 1,
        "lemma": 17,
        "theorem": 3,
    }
    numbers = [
        int(item.number) for item in items() if item.kind == "equation" and item.number
    ]
    assert numbers == list(range(1, 26))


@pytest.mark.parametrize("claim", CLAIMS, ids=lambda claim: claim.item.label)
def test_a_claim_says_what_is_claimed_whether_it_is_true_and_where_to_look(claim):
    assert claim.says
    assert claim.status in STATUSES
    if claim.status != "not used":
        assert claim.book
        assert claim.code
        assert claim.tests
    if claim.status in ("refuted", "unproved"):
        assert claim.errata
    if claim.status == "holds after repair":
        assert claim.errata
        assert claim.remark or claim.item.key == "equation 8"
    assert len(set(claim.tests)) == len(claim.tests)


# Every row points somewhere


def test_every_label_in_the_ledger_is_in_the_book():
    named = {label for claim in CLAIMS for label in (*claim.book, *claim.errata)}
    assert sorted(named - labels()) == []


def test_every_erratum_is_named_in_the_ledger():
    listed = {label for label in labels() if label.startswith("erratum-")}
    assert listed == {label for claim in CLAIMS for label in claim.errata}


@pytest.mark.parametrize("name", NAMES)
def test_every_function_in_the_ledger_exists_and_is_on_the_api_page(name):
    assert callable(public_object(name))
    assert name in documented()


@pytest.mark.parametrize("test", NAMED)
def test_every_test_in_the_ledger_exists(test):
    file, name = test.split("::")
    assert name in functions(ROOT / file)


def test_the_pages_show_every_claim_and_every_test():
    texts = sources()
    shown = re.findall(r"^```\{claims\} (\S+)$", texts["claims"], re.MULTILINE)
    for claim in CLAIMS:
        inside = [s for s in shown if f"{claim.item.section}.".startswith(f"{s}.")]
        assert len(inside) == 1, claim.item
    files = re.findall(r"^```\{claim-tests\} (\S+)$", texts["checks"], re.MULTILINE)
    assert sorted(files) == sorted(named_tests(CLAIMS))
    assert len({anchor(test) for test in NAMED}) == len(NAMED)


def test_the_errata_link_to_tests_that_are_shown():
    linked = set(re.findall(r"<(check-[\w-]+)>", sources()["errata"]))
    assert len(linked) > 30
    assert sorted(linked - {anchor(test) for test in NAMED}) == []


def test_a_claim_becomes_a_card_with_links():
    (claim,) = (claim for claim in CLAIMS if claim.item.key == "lem.sigi")
    text = markdown(claim)
    assert text.startswith("(claim-lem-sigi)=\n")
    assert "**Lemma 2.1** `lem.sigi` {bdg-success}`holds`" in text
    assert ":In the book: {prf:ref}`lem-user-variance`" in text
    assert "{py:obj}`hetlit.user_variance`" in text
    assert "<check-theory-variance-user-variance-is-the-lemma>`" in text


# The API page


def test_the_api_page_has_every_public_name():
    modules = {"hetlit.baselines": hetlit.baselines, "hetlit.sizes": hetlit.sizes}
    names = {f"hetlit.{name}" for name in hetlit.__all__ if name != "__version__"}
    names -= set(modules)
    for module, members in modules.items():
        for name, member in vars(members).items():
            if name in getattr(members, "__all__", [name]) and not name.startswith("_"):
                is_function = getattr(member, "__module__", "").startswith("hetlit")
                names |= (
                    {f"{module}.{name}"} if is_function and callable(member) else set()
                )
    assert sorted(names - documented()) == []


def test_the_api_page_has_every_estimator():
    found = set()
    for path in Path(hetlit.__file__).parent.rglob("*.py"):
        for name in first_lines(path):
            if name.startswith("estimate_"):
                top = f"hetlit.{name}"
                place = path.relative_to(ROOT).with_suffix("").parts
                found.add(top if hasattr(hetlit, name) else ".".join((*place, name)))
    assert len(found) > 10
    assert sorted(found - documented()) == []


@pytest.mark.parametrize("name", sorted(documented()))
def test_every_name_on_the_api_page_exists(name):
    assert public_object(name).__doc__


def test_docstrings_name_chapters_that_are_known():
    named = set()
    for path in Path(hetlit.__file__).parent.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef):
                text = ast.get_docstring(node) or ""
                for names in re.findall(r"\bChapter: ([^.]+)\.", text):
                    named |= set(names.split("; "))
    assert named <= set(CHAPTERS)


def test_docstrings_name_items_of_the_paper():
    keys = {item.key for item in items()}
    # Lines of algorithms and sections, which have labels but no rows of their own.
    others = {"disttosens", "initialvark", "s.truncest"}
    quoted = r"(?:Lemma|Theorem|Corollary|Algorithm|equation|Equation|line) `([^`]+)`"
    for path in Path(hetlit.__file__).parent.rglob("*.py"):
        named = set(re.findall(quoted, path.read_text(encoding="utf-8")))
        assert named <= keys | others, path.name


# No test behind a claim is skipped

WAYS_NOT_TO_RUN = """
import pytest

@pytest.fixture
def unavailable():
    pytest.skip()

@pytest.mark.skip
def test_mark(): ...

@pytest.mark.skipif(True, reason="")
def test_condition(): ...

def test_call():
    pytest.skip()

def test_fixture(unavailable): ...

@pytest.mark.xfail
def test_expected():
    assert False

@pytest.mark.xfail
def test_unexpected(): ...

@pytest.mark.parametrize("x", [1, pytest.param(2, marks=pytest.mark.skip)])
def test_case(x): ...
"""
SKIPPED_MODULE = """
import pytest

pytest.skip(allow_module_level=True)

def test_module(): ...
"""
RUNS = """
def test_runs(): ...
"""
NOT_RUN = [
    *(
        f"tests/test_x.py::test_{name}"
        for name in ("mark", "condition", "call", "fixture")
    ),
    *(
        f"tests/test_x.py::test_{name}"
        for name in ("expected", "unexpected", "case[2]")
    ),
    "tests/test_y.py",
]


def session(folder, claimed, *options):
    """Run tests that do not run, under the project's conftest and a small ledger."""
    for name, text in (("x", WAYS_NOT_TO_RUN), ("y", SKIPPED_MODULE), ("z", RUNS)):
        path = folder / "tests" / f"test_{name}.py"
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    (folder / "book").mkdir()
    (folder / "book" / "claims.toml").write_text(f"[[claim]]\ntests = {claimed}\n")
    shutil.copy(ROOT / "tests" / "conftest.py", folder / "tests")
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-rA"]
    run = subprocess.run(
        [*command, "--continue-on-collection-errors", "tests", *options],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    return run.returncode, run.stdout


@pytest.mark.parametrize("workers", [0, 2])
def test_no_test_behind_a_claim_can_be_skipped(tmp_path, workers):
    claimed = [name.split("[")[0] for name in NOT_RUN[:-1]]
    claimed += ["tests/test_y.py::test_module", "tests/test_z.py::test_runs"]
    status, output = session(tmp_path, claimed, "-n", str(workers))
    assert status == 1
    for name in NOT_RUN:
        assert f"{name} is named in book/claims.toml: it must run" in output
    # The rest of them is left alone: the other case, and the test that runs.
    passed = re.findall(r"^PASSED (\S+)", output, re.MULTILINE)
    assert sorted(passed) == [
        "tests/test_x.py::test_case[1]",
        "tests/test_z.py::test_runs",
    ]


def test_other_tests_may_be_skipped(tmp_path):
    status, output = session(tmp_path, [])
    assert status == 0
    assert "must run" not in output
