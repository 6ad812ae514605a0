"""What all tests share: repeatable examples, figures, and no skips behind a claim."""

import tomllib
from pathlib import Path

import pytest
from hypothesis import settings

settings.register_profile("repeatable", derandomize=True, deadline=None)
settings.load_profile("repeatable")

ROOT = Path(__file__).resolve().parent.parent
LEDGER = ROOT / "book" / "claims.toml"


def pytest_generate_tests(metafunc):
    """Give the checks of tests/figures.py each figure that their class names."""
    if metafunc.cls is not None and "make" in metafunc.fixturenames:
        figures = metafunc.cls.figures
        metafunc.parametrize("make", figures.values(), ids=figures)


# A test that the claim ledger names must run: skipping it, or expecting it to fail,
# would leave the claim unchecked. Reports are changed where they are made, which with
# pytest-xdist is in the worker.


def pytest_configure(config):
    """Read which tests the ledger names."""
    claims = tomllib.loads(LEDGER.read_text(encoding="utf-8"))["claim"]
    named = {test for claim in claims for test in claim.get("tests", ())}
    config.claimed_tests = {tuple(test.split("::")) for test in named}


def place(node):
    """Return the path of a test or of its module, as the ledger writes it."""
    return node.path.relative_to(ROOT).as_posix()


def fail_if_not_run(report):
    """Turn a report of a skip or of an expected failure into a failure."""
    if report.skipped or hasattr(report, "wasxfail"):
        vars(report).pop("wasxfail", None)
        report.outcome = "failed"
        report.longrepr = f"{report.nodeid} is named in book/claims.toml: it must run"


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_makereport(item, call):
    """Refuse to skip a claimed test."""
    report = yield
    name = getattr(item, "originalname", item.name)
    if (place(item), name) in item.config.claimed_tests:
        fail_if_not_run(report)
    return report


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_make_collect_report(collector):
    """Refuse to skip a module with claimed tests."""
    report = yield
    if place(collector) in {file for file, _ in collector.config.claimed_tests}:
        fail_if_not_run(report)
    return report
