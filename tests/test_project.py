"""The project's files agree with each other and with what they say."""

import importlib.metadata
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name

import hetlit
from tools.readme import EXAMPLE, run

ROOT = Path(__file__).resolve().parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
EXTRAS = PROJECT["optional-dependencies"]


def read(name):
    return (ROOT / name).read_text(encoding="utf-8")


def direct_requirements():
    """Every requirement that pyproject.toml names, except hetlit's own extras."""
    lines = [
        *PROJECT["dependencies"],
        *(line for extra in EXTRAS.values() for line in extra),
    ]
    requirements = [Requirement(line) for line in lines]
    return [r for r in requirements if canonicalize_name(r.name) != "hetlit"]


def pins():
    lines = read("constraints.txt").splitlines()
    return dict(line.split("==") for line in lines)


def included_extras(name):
    """The extras that an extra of hetlit refers to, itself included."""
    found = {name}
    for requirement in map(Requirement, EXTRAS[name]):
        if canonicalize_name(requirement.name) == "hetlit":
            for other in requirement.extras:
                found |= included_extras(other)
    return found


def make_targets():
    return set(re.search(r"^\.PHONY:(.*)$", read("Makefile"), re.M)[1].split())


# Dependencies


def test_library_itself_needs_numpy_and_scipy_only():
    names = {Requirement(line).name for line in PROJECT["dependencies"]}
    assert names == {"numpy", "scipy"}


def test_constraints_are_sorted_exact_pins_and_nothing_else():
    lines = read("constraints.txt").splitlines()
    pin = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*==[0-9][0-9a-z.]*")
    assert [line for line in lines if not pin.fullmatch(line)] == []
    names = [line.split("==")[0] for line in lines]
    assert names == sorted(set(names))
    assert {"hetlit", "pip"}.isdisjoint(names)


@pytest.mark.parametrize("requirement", direct_requirements(), ids=str)
def test_direct_dependency_is_pinned_within_its_range(requirement):
    pinned = pins()[canonicalize_name(requirement.name)]
    assert requirement.specifier.contains(pinned)


@pytest.mark.skipif(sys.platform != "linux", reason="pins are resolved on Linux")
def test_everything_that_gets_installed_is_pinned():
    pinned, seen = pins(), set()
    waiting = [
        (canonicalize_name(r.name), extra)
        for r in direct_requirements()
        for extra in ("", *r.extras)
    ]
    while waiting:
        name, extra = waiting.pop()
        if (name, extra) in seen:
            continue
        seen.add((name, extra))
        for line in importlib.metadata.requires(name) or []:
            needed = Requirement(line)
            if needed.marker is None or needed.marker.evaluate({"extra": extra}):
                other = canonicalize_name(needed.name)
                waiting += [(other, further) for further in ("", *needed.extras)]
    assert sorted({name for name, _ in seen} - set(pinned)) == []


def test_dev_includes_every_other_extra():
    assert included_extras("dev") == set(EXTRAS)


def test_conda_environment_is_the_dev_extra_under_the_constraints():
    environment = yaml.safe_load(read("environment.yml"))
    *conda, pip = environment["dependencies"]
    assert environment["name"] == PROJECT["name"]
    assert environment["channels"] == ["conda-forge"]
    assert pip == {"pip": ["--constraint constraints.txt", "--editable .[dev]"]}
    python = next(line for line in conda if line.startswith("python"))
    assert SpecifierSet(python.removeprefix("python")) == SpecifierSet(
        PROJECT["requires-python"]
    )


def test_contributing_gives_one_reason_for_each_direct_dependency():
    section = read("CONTRIBUTING.md").split("## Dependencies")[1]
    explained = re.findall(r"^- `([a-z0-9-]+)`: \S", section, re.M)
    assert sorted(explained) == sorted(
        {canonicalize_name(r.name) for r in direct_requirements()}
    )


# Commands


def test_every_make_target_in_the_texts_exists():
    texts = [read(name) for name in ("README.md", "CONTRIBUTING.md", "book/index.md")]
    code = " ".join(re.findall(r"`make[^`]*`|^\$ make.*$", "\n".join(texts), re.M))
    named = set(re.findall(r"\bmake (?:[A-Z]+=\S+ )*([a-z-]+)", code))
    assert {"book", "test", "lab"} <= named
    assert named <= make_targets()


@pytest.mark.parametrize(
    "target",
    [
        "book",
        "serve",
        "test",
        "test-lite",
        "lab",
        "notebooks",
        "bench",
        "clean",
        "help",
    ],
)
def test_make_without_a_target_prints_one_line_for_each(target):
    environment = {
        k: v for k, v in os.environ.items() if k not in ("MAKEFLAGS", "MAKELEVEL")
    }
    done = subprocess.run(
        ["make", "--no-print-directory"],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    lines = [line.split(maxsplit=2) for line in done.stdout.splitlines()]
    assert [words[:2] for words in lines].count(["make", target]) == 1
    assert all(len(words) == 3 for words in lines)


def test_continuous_integration_runs_make_test():
    assert os.access(ROOT / ".ci" / "run", os.X_OK)
    assert re.search(r"^make test\b", read(".ci/run"), re.M)


# What we say


def test_readme_example_prints_what_the_readme_says():
    code, printed = EXAMPLE.search(read("README.md")).groups()
    assert run(code) == printed


def test_citation_names_this_version_and_the_paper():
    citation = yaml.safe_load(read("CITATION.cff"))
    assert citation["cff-version"] == "1.2.0"
    assert str(citation["version"]) == hetlit.__version__
    assert citation["title"] == yaml.safe_load(read("_config.yml"))["title"]
    assert citation["authors"]
    assert citation["message"]
    assert "User-level Privacy" in citation["references"][0]["title"]


def test_changelog_starts_with_this_version():
    assert re.search(r"^## (\S+)", read("CHANGELOG.md"), re.M)[1] == hetlit.__version__


def test_licence_covers_code_and_text():
    text = read("LICENSE")
    assert "MIT License" in text
    assert "CC BY 4.0" in text


def test_package_is_typed():
    assert (Path(hetlit.__file__).parent / "py.typed").exists()
