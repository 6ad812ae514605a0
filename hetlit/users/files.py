"""Reading CSV and Parquet files into columns, with whatever is installed."""

from __future__ import annotations

import csv
import re
from collections.abc import Collection, Iterator
from contextlib import contextmanager, suppress
from importlib import import_module
from pathlib import Path
from typing import Any

MALFORMED_HEADER = "its columns must have distinct names, in the first line of a CSV"
MALFORMED_LINE = "every line must have as many fields as the first"


class Malformed(Exception):
    """What is wrong with a file, in words that quote none of it."""


@contextmanager
def reading(what: str) -> Iterator[None]:
    """Turn whatever goes wrong inside into a ValueError that names `table`.

    A log is private, and the texts of other libraries quote its lines: all that is
    kept of them is the kind of problem.
    """
    try:
        yield
    except (ImportError, MemoryError, KeyboardInterrupt, SystemExit, GeneratorExit):
        raise
    except BaseException as error:  # a panic in Rust is no Exception
        raise ValueError(f"table: cannot read {what}: {_problem(error)}") from None


def _problem(error: BaseException) -> str:
    """Return what went wrong, without a word that may come from the log."""
    if isinstance(error, (Malformed, csv.Error)):
        return str(error)  # those of the csv module name no field either
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    if isinstance(error, UnicodeError):
        return "it is not UTF-8 text"
    return f"it may be damaged ({type(error).__name__})"


def checked_path(table: Any) -> Path:
    """Return the path of a file that is of a kind we read, and can be opened."""
    with reading("a file"):
        path = Path(table).absolute()
    shown = _shown(str(table))
    if path.suffix.lower() not in (".csv", ".parquet"):
        raise ValueError(f"table must be a .csv or .parquet file, not {shown}")
    with reading(shown):
        exists = path.is_file()
        if exists:
            path.open("rb").close()
    if not exists:
        raise ValueError(f"table: there is no file {shown}")
    return path


def _shown(path: str) -> str:
    """Return a path for an error, unless it is rather a log than the path of one."""
    if len(path) <= 255 and path.isprintable():
        return repr(path)
    return f"<{len(path)} characters>"


def is_csv(path: Path) -> bool:
    """Return whether this is the path of a CSV file."""
    return path.suffix.lower() == ".csv"


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
    with (
        reading(repr(path.name)),
        path.open(newline="", encoding="utf-8-sig") as file,
    ):
        reader = csv.reader(file, strict=True)
        yield (header := _distinct(next(reader, [])))
        for row in filter(None, reader):
            # As in DuckDB, what stands beyond the last column must be empty.
            if len(row) < len(header) or any(row[len(header) :]):
                raise Malformed(MALFORMED_LINE)
            yield row


def has_lone_return(path: Path) -> bool:
    """Return whether a carriage return stands in a file without a line feed.

    If other lines end with both, the first versions of DuckDB read on without an
    error, and without the letter after it.
    """
    with reading(repr(path.name)), path.open("rb") as file:
        while block := file.read(1 << 20):
            if block.endswith(b"\r"):
                block += file.read(1)
            if b"\r" in block and block.count(b"\r") > block.count(b"\r\n"):
                return True
    return False


def parquet_header(connection: Any, path: Path) -> list[str]:
    """Return the names of a Parquet file's columns.

    They come from the file's own schema, a tree written parents first.  DuckDB's
    table would rename columns that differ in case, and types them all, which takes
    20 s for 10^5 columns.
    """
    query = f"SELECT name, num_children FROM parquet_schema({path_literal(path)})"
    with reading(repr(path.name)):
        header, inside = [], 0
        for name, children in connection.execute(query).fetchall()[1:]:
            if inside == 0:
                header.append(name)
            inside += (children or 0) - (inside > 0)
        return _distinct(header)


def _distinct(header: list[str]) -> list[str]:
    if not header or len(set(header)) < len(header):
        raise Malformed(MALFORMED_HEADER)
    return header


def read_file(
    path: Path, wanted: Collection[str], text: str | None = None
) -> dict[str, Any]:
    """Return the columns of a file by name, with None for those that nobody wants.

    Of a CSV file, column `text` stays text.
    """
    if not is_csv(path):
        return _read_parquet(path, wanted)
    rows = csv_rows(path)
    header = next(rows)
    columns: dict[str, list[Any]] = {name: [] for name in header if name in wanted}
    places = {name: header.index(name) for name in columns}
    for row in rows:
        for name, place in places.items():
            columns[name].append(_value(row[place], name == text))
    return dict.fromkeys(header) | columns


def _read_parquet(path: Path, wanted: Collection[str]) -> dict[str, Any]:
    """Return the columns of a Parquet file, with the first library there is."""
    if duckdb := optional_module("duckdb"):
        return _query_parquet(duckdb, path, wanted)
    with reading(repr(path.name)):
        if polars := optional_module("polars"):
            table = polars.scan_parquet(path, glob=False, hive_partitioning=False)
            header = table.collect_schema().names()
            table = table.select([name for name in header if name in wanted]).collect()
        elif parquet := optional_module("pyarrow.parquet"):
            file = parquet.ParquetFile(path)
            header = file.schema_arrow.names
            table = file.read(columns=[name for name in header if name in wanted])
        elif pandas := optional_module("pandas"):
            table = pandas.read_parquet(path)
            header = list(table.columns)
        else:
            problem = "to read Parquet files, pip install duckdb, polars or pyarrow"
            raise ImportError(problem)
        _distinct(header)
        return {name: table[name] if name in wanted else None for name in header}


def _query_parquet(duckdb: Any, path: Path, wanted: Collection[str]) -> dict[str, Any]:
    """Return the columns of a Parquet file, with DuckDB."""
    with duckdb.connect() as connection:
        header = parquet_header(connection, path)
        # By place, because a name would mean all columns that differ from it in case.
        places = {name: place for place, name in enumerate(header) if name in wanted}
        fields = ", ".join(f'#{place + 1} AS "{place}"' for place in places.values())
        columns: dict[str, Any] = {}
        if places:
            with reading(repr(path.name)):
                query = f"SELECT {fields} FROM {parquet_source(path)}"
                types = connection.execute(f"DESCRIBE {query}").fetchall()
                result = connection.execute(query)
                if any(row[1].startswith("DECIMAL") for row in types):
                    # As an array, decimals would be rounded to floats.
                    rows = result.fetchall()
                    for index, (name, *_) in enumerate(types):
                        columns[name] = [row[index] for row in rows]
                else:
                    columns = result.fetchnumpy()
    return {name: columns.get(str(places.get(name))) for name in header}


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
