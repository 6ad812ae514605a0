"""Reading CSV and Parquet files into tables, with whatever is installed."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import Any


def checked_path(table: Any) -> Path:
    """Return the path of a file that exists and is of a kind we read."""
    path = Path(table).absolute()
    if path.suffix.lower() not in (".csv", ".parquet"):
        raise ValueError(f"table must be a .csv or .parquet file, not {str(table)!r}")
    if not path.is_file():
        raise ValueError(f"table: there is no file {str(table)!r}")
    return path


def optional_module(name: str) -> Any:
    """Return a module that need not be installed, or None."""
    try:
        return import_module(name)
    except ImportError:
        return None


def parquet_source(path: Path) -> str:
    """Return what to write after FROM to read a Parquet file in DuckDB."""
    return f"read_parquet({path_literal(path)}, hive_partitioning = false)"


def path_literal(path: Path) -> str:
    """Return a path in SQL quotes; brackets make *, ? and [ mean themselves."""
    return "'" + re.sub(r"([*?\[])", r"[\1]", str(path)).replace("'", "''") + "'"


def csv_rows(path: Path) -> Iterator[list[str]]:
    """Yield the header and then the rows of a CSV file, without blank lines."""
    problem = f"table: cannot read {path.name!r}: "
    with path.open(newline="", encoding="utf-8-sig") as file:
        reader = csv.reader(file, strict=True)
        try:
            header = next(reader, [])
            if not header or len(set(header)) < len(header):
                raise ValueError(f"{problem}its first line must name distinct columns")
            yield header
            for row in filter(None, reader):
                if len(row) != len(header):
                    fields = f"{len(header)} fields, not {len(row)}"
                    line = reader.line_num
                    raise ValueError(f"{problem}line {line} must have {fields}")
                yield row
        except (csv.Error, UnicodeDecodeError) as error:
            raise ValueError(f"{problem}{error}") from error


def read_file(path: Path, text: str | None = None) -> Any:
    """Return a file as a table in memory; of a CSV file, column `text` stays text."""
    if path.suffix.lower() == ".csv":
        rows = csv_rows(path)
        columns: dict[str, list[Any]] = {name: [] for name in next(rows)}
        for row in rows:
            for (name, values), cell in zip(columns.items(), row, strict=True):
                values.append(_value(cell, name == text))
        return columns
    if duckdb := optional_module("duckdb"):
        with duckdb.connect() as connection:
            return connection.execute(f"FROM {parquet_source(path)}").fetchnumpy()
    if polars := optional_module("polars"):
        return polars.scan_parquet(path, glob=False, hive_partitioning=False)
    if parquet := optional_module("pyarrow.parquet"):
        return parquet.ParquetFile(path).read()
    if pandas := optional_module("pandas"):
        return pandas.read_parquet(path)
    raise ImportError("to read Parquet files, pip install duckdb, polars or pyarrow")


def _value(cell: str, is_text: bool) -> float | str | None:
    """Return what a CSV field says, as the query reads it."""
    if is_text or not cell or not cell.isascii():
        return cell or None
    if (word := cell.strip(" ").lower()) in ("true", "false"):
        return word == "true"
    for number in (int, float):
        with suppress(ValueError):
            return number(cell)
    return cell
