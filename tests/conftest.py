"""Hypothesis draws the same examples in every run, however slow the machine."""

from hypothesis import settings

settings.register_profile("repeatable", derandomize=True, deadline=None)
settings.load_profile("repeatable")


def pytest_generate_tests(metafunc):
    """Give the checks of tests/figures.py each figure that their class names."""
    if metafunc.cls is not None and "make" in metafunc.fixturenames:
        figures = metafunc.cls.figures
        metafunc.parametrize("make", figures.values(), ids=figures)
