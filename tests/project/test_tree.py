"""Where things lie: tests mirror modules, methods are files, and layers hold."""

import ast
import re
import shutil
import tomllib
from pathlib import Path

import pytest
from importlinter import configuration
from importlinter.application.use_cases import lint_imports

from hetlit import Users, estimate_private_k, estimate_public_size

ROOT = Path(__file__).resolve().parents[2]
LIBRARY, TESTS = ROOT / "hetlit", ROOT / "tests"
# What has no test file of its own.
UNTESTED = {"__init__.py", "__main__.py"}
SHORT_NAMES = {LIBRARY / "widgets.py"}  # tests/test_hetlit.py
MODULES = sorted(
    path.relative_to(LIBRARY)
    for path in LIBRARY.rglob("*.py")
    if path.name not in UNTESTED and path not in SHORT_NAMES
)
MIRRORED = ("theory", "users", "privacy", "estimators", "teaching")
WITHOUT_PICTURES = ("check.py", "theory", "users", "privacy", "estimators")
PICTURES = {"matplotlib", "ipywidgets", "IPython"}

configuration.configure()


# Plans are made by keyword: a field that is inserted must not move the others

RESULTS = {"Estimate", "RatioStatistics"}


def plans():
    """Return (class, keywords of its decorator) of dataclasses of the estimators."""
    for path in sorted((LIBRARY / "estimators").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ClassDef) and node.name not in RESULTS:
                for call in node.decorator_list:
                    assert isinstance(call, ast.Call), node.name
                    yield node.name, {word.arg for word in call.keywords}


def test_plans_have_no_fields_by_position():
    found = dict(plans())
    assert {"Plan", "Plans", "Weighting", "ClippedMean", "RatioPlan"} <= set(found)
    assert [name for name, words in found.items() if "kw_only" not in words] == []


# Tests mirror the library


@pytest.mark.parametrize("module", MODULES, ids=str)
def test_every_module_has_a_test_file_of_its_name(module):
    assert (TESTS / module.with_name(f"test_{module.name}")).is_file()


def test_tests_lie_in_folders_of_the_library():
    files = [path for name in MIRRORED for path in (TESTS / name).rglob("test_*.py")]
    folders = {path.parent.relative_to(TESTS) for path in files}
    assert {folder.parts[0] for folder in folders} == set(MIRRORED)
    assert [str(f) for f in sorted(folders) if not (LIBRARY / f).is_dir()] == []


# Methods


@pytest.mark.parametrize(
    ("estimate", "folder"),
    [(estimate_public_size, "public_size"), (estimate_private_k, "private_k")],
)
def test_every_word_for_a_method_is_a_file(estimate, folder):
    with pytest.raises(ValueError, match="method must be one of") as caught:
        estimate(Users([1], [1]), 1.0, method="no such method")
    allowed = re.search(r"one of (\(.*?\))", str(caught.value))
    assert allowed
    words = ast.literal_eval(allowed[1])
    assert {"auto", "paper"} <= set(words)
    files = {path.stem for path in (LIBRARY / "estimators" / folder).glob("*.py")}
    assert set(words) <= files


# Layers


def imported(path):
    """The packages that a module imports, at its top or inside a function."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found.add(node.module.split(".")[0])
    return found


def test_only_teaching_imports_what_draws_even_inside_functions():
    guilty = [
        str(module)
        for module in MODULES
        if module.parts[0] in WITHOUT_PICTURES and imported(LIBRARY / module) & PICTURES
    ]
    assert guilty == []
    # It would be seen: some of teaching imports them, also inside functions.
    teaching = (imported(path) for path in (LIBRARY / "teaching").rglob("*.py"))
    assert {"matplotlib", "ipywidgets"} <= set().union(*teaching)


CONTRACTS = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
NAMES = [one["name"] for one in CONTRACTS["tool"]["importlinter"]["contracts"]]


@pytest.fixture
def copied(tmp_path, monkeypatch):
    """A copy of the library under another name, with the contracts of the original."""
    name = f"hetlit_{tmp_path.name}".replace("-", "_")
    library = tmp_path / name
    shutil.copytree(LIBRARY, library, ignore=shutil.ignore_patterns("__pycache__"))
    project = tmp_path / "pyproject.toml"
    shutil.copy(ROOT / "pyproject.toml", project)
    for path in (project, *library.rglob("*.py")):
        text = path.read_text(encoding="utf-8")
        path.write_text(re.sub(r"\bhetlit\b", name, text), encoding="utf-8")
    monkeypatch.syspath_prepend(str(tmp_path))
    return library


def broken_contracts(library, capsys):
    """The names of the contracts that a library breaks."""
    project = library.parent / "pyproject.toml"
    kept = lint_imports(str(project), cache_dir=None, is_debug_mode=True)
    words = " ".join(capsys.readouterr().out.split())
    assert f"Contracts: {len(NAMES)} kept, 0 broken" in words or not kept
    assert all(f"{name} KEPT" in words or f"{name} BROKEN" in words for name in NAMES)
    broken = [name for name in NAMES if f"{name} BROKEN" in words]
    assert kept is not bool(broken)
    return broken


def test_the_library_keeps_its_contracts(copied, capsys):
    assert broken_contracts(copied, capsys) == []


@pytest.mark.parametrize(
    ("module", "line", "contract"),
    [
        ("check.py", "import {}.theory.bounds", "Layers"),
        ("theory/weights.py", "def f(): from {}.users import table", "Layers"),
        ("users/table.py", "from {}.privacy.noise import Randomness", "Layers"),
        ("privacy/noise.py", "def f(): import {}.users.table", "Layers"),
        ("estimators/ideal.py", "from {}.teaching import looks", "Layers"),
        (
            "estimators/private_k/auto.py",
            "from {}.estimators.public_size import cohorts",
            "Every kind of release",
        ),
        ("users/files.py", "def f(): import matplotlib", "Only teaching"),
        ("estimators/result.py", "from IPython import display", "Only teaching"),
    ],
)
def test_a_contract_notices_an_import_that_it_forbids(
    copied, capsys, module, line, contract
):
    path = copied / module
    forbidden = line.format(copied.name)
    path.write_text(f"{path.read_text(encoding='utf-8')}\n\n{forbidden}\n")
    broken = broken_contracts(copied, capsys)
    assert [name for name in broken if name.startswith(contract)]
