"""The library by its first name: cheap to import, and short names lead home."""

import subprocess
import sys

import pytest

import hetlit.teaching.widgets
import hetlit.widgets


@pytest.mark.slow
@pytest.mark.parametrize("name", ["matplotlib", "matplotlib.pyplot"])
def test_the_library_imports_no_plotting(name):
    module = "hetlit" if name == "matplotlib" else "hetlit.teaching.figures.model"
    code = f"import sys, {module}; sys.exit({name!r} in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_the_short_name_of_the_widgets_is_the_same_function():
    assert hetlit.widgets.explore is hetlit.teaching.widgets.explore
