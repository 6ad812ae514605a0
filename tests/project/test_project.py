"""The project's files agree with each other and with what they say."""

import importlib.metadata
import importlib.util
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

ROOT = Path(__file__).resolve().parents[2]
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
    joined = read("Makefile").replace("\\\n", " ")
    phony = re.search(r"^\.PHONY:(.*)$", joined, re.M)
    assert phony
    return set(phony[1].split())


def workflow(name):
    return yaml.safe_load(read(f".github/workflows/{name}.yml"))


def commands(job):
    return [step["run"] for step in job["steps"] if "run" in step]


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
    names = ("README.md", "CONTRIBUTING.md", "CHANGELOG.md", "book/index.md")
    texts = [read(name) for name in (*names, ".github/pull_request_template.md")]
    code = " ".join(re.findall(r"`make[^`]*`|^\$ make.*$", "\n".join(texts), re.M))
    named = set(re.findall(r"\bmake (?:[A-Z]+=\S+ )*([a-z-]+)", code))
    assert {"book", "test", "lab"} <= named
    assert named <= make_targets()


@pytest.mark.parametrize(
    "target",
    [
        "book",
        "serve",
        "check",
        "test",
        "test-lite",
        "test-lowest",
        "lab",
        "notebooks",
        "bench",
        "fuzz",
        "mutants",
        "pins",
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


def test_tests_that_only_pins_can_pass_exist():
    (names,) = re.findall(r"^PINNED := (.*)$", read("Makefile"), re.M)
    tests = "\n".join(
        path.read_text(encoding="utf-8") for path in (ROOT / "tests").rglob("test_*.py")
    )
    assert [name for name in names.split() if f"def {name}(" not in tests] == []


def test_continuous_integration_runs_make_test():
    assert os.access(ROOT / ".ci" / "run", os.X_OK)
    assert re.search(r"^make test\b", read(".ci/run"), re.M)


def test_hosted_checks_run_the_same_on_the_oldest_and_the_newest_python():
    every, lowest = workflow("check")["jobs"].values()
    claimed = re.findall(r":: (3\.\d+)$", "\n".join(PROJECT["classifiers"]), re.M)
    assert PROJECT["requires-python"] == f">={claimed[0]}"
    assert every["strategy"]["matrix"]["python"] == [claimed[0], claimed[-1]]
    assert commands(every) == [".ci/run"]
    assert commands(lowest) == [f"make test-lowest PYTHON=python{claimed[0]}"]


def test_what_is_published_is_what_make_book_builds():
    build, publish = workflow("site")["jobs"].values()
    (command,) = commands(build)
    assert command.startswith("make book")
    assert build["steps"][-1]["with"]["path"] == "_build/html"
    assert publish["needs"] == "build"
    assert commands(publish) == []


# No hosted runner can be tried here, but schemas come with the linter.
@pytest.mark.parametrize(
    ("schema", "pattern"),
    [
        ("vendor.github-workflows", ".github/workflows/*.yml"),
        ("custom.github-workflows-require-timeout", ".github/workflows/*.yml"),
        ("vendor.github-issue-config", ".github/ISSUE_TEMPLATE/config.yml"),
        ("vendor.github-issue-forms", ".github/ISSUE_TEMPLATE/[!c]*.yml"),
        ("vendor.citation-file-format", "CITATION.cff"),
    ],
)
def test_files_for_others_follow_their_schema(schema, pattern):
    files = sorted(str(path.relative_to(ROOT)) for path in ROOT.glob(pattern))
    assert files
    command = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", schema]
    done = subprocess.run([*command, *files], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def test_hooks_before_a_commit_are_commands_of_our_environment():
    (repo,) = yaml.safe_load(read(".pre-commit-config.yaml"))["repos"]
    assert repo["repo"] == "local"
    for hook in repo["hooks"]:
        assert {"id", "name", "entry", "language"} <= set(hook)
        assert hook["language"] == "system"
        python, flag, module, *_ = hook["entry"].split()
        assert (python, flag) == (".venv/bin/python", "-m")
        assert importlib.util.find_spec(module)


def test_templates_ask_which_proof_changes():
    forms = sorted((ROOT / ".github/ISSUE_TEMPLATE").glob("[!c]*.yml"))
    template = ROOT / ".github/pull_request_template.md"
    texts = [path.read_text(encoding="utf-8") for path in (*forms, template)]
    assert len(texts) == 3
    assert all("Which proof changes?" in text for text in texts)
    for part in ("docstring", "sensitivity", "ledger", "claim", "replay", "mutants"):
        assert part in texts[-1]


# What we say


def test_readme_example_prints_what_the_readme_says():
    example = EXAMPLE.search(read("README.md"))
    assert example
    code, printed = example.groups()
    assert run(code) == printed


def test_citation_names_this_version_and_the_paper():
    citation = yaml.safe_load(read("CITATION.cff"))
    assert citation["cff-version"] == "1.2.0"
    assert str(citation["version"]) == hetlit.__version__
    assert citation["title"] == yaml.safe_load(read("_config.yml"))["title"]
    assert citation["authors"]
    assert citation["message"]
    assert "User-level Privacy" in citation["references"][0]["title"]


def test_changelog_starts_with_what_is_unreleased_and_then_this_version():
    headings = re.findall(r"^## (.+)$", read("CHANGELOG.md"), re.M)
    assert headings[:2] == ["Unreleased", hetlit.__version__]


def test_security_policy_covers_this_version():
    text = read("SECURITY.md")
    minor = hetlit.__version__.rpartition(".")[0]
    assert re.search(rf"^\| {re.escape(minor)}\.x +\| yes", text, re.M)
    assert "noise does not fit its ledger" in text
    assert f"hetlit {minor}" in text


def test_addresses_are_those_of_the_project():
    urls = PROJECT["urls"]
    home = urls["Homepage"]
    assert all(url.startswith((home, urls["Documentation"])) for url in urls.values())
    citation = yaml.safe_load(read("CITATION.cff"))
    assert citation["repository-code"] == urls["Source"]
    assert citation["url"] == urls["Documentation"]
    advisories = f"{home}/security/advisories/new"
    assert advisories in read(".github/ISSUE_TEMPLATE/config.yml")
    assert set(re.findall(r"https://[^)\s]+", read("SECURITY.md"))) == {
        urls["Issues"],
        advisories,
    }


def test_licence_covers_code_and_text():
    text = read("LICENSE")
    assert "MIT License" in text
    assert "CC BY 4.0" in text


def test_every_folder_with_code_is_a_package_that_gets_installed():
    folders = {path.parent for path in (ROOT / "hetlit").rglob("*.py")}
    assert [folder for folder in folders if not (folder / "__init__.py").exists()] == []


def test_marked_files_exist():
    lines = re.findall(r"^(\S*[/.]\S+) .*linguist-", read(".gitattributes"), re.M)
    assert len(lines) >= 4
    assert [line for line in lines if not any(ROOT.rglob(line))] == []


def test_package_is_typed():
    assert (Path(hetlit.__file__).parent / "py.typed").exists()
