"""Every reader of files in turn, as if the ones before were missing."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import pytest

from hetlit.users import files

READERS = ("duckdb", "polars", "pyarrow.parquet", "pandas")


@pytest.fixture(params=READERS)
def reader(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Read files with DuckDB, or as if some libraries were not installed."""
    missing = READERS[: READERS.index(request.param)]

    def import_installed(name: str) -> Any:
        if name in missing:
            raise ImportError(name)
        return import_module(name)

    monkeypatch.setattr(files, "import_module", import_installed)
    return str(request.param)
