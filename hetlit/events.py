"""From event logs to users.

An event log has one row per event: whose it is, and whether it is a success.  The
model needs only how many users have k events with so many successes, a table that
one SQL query computes: `events_sql`.  DuckDB runs it here on files; Spark or a
warehouse runs it where the log is, and `users_from_table` reads what it returns.
Tables in memory take the same two steps in NumPy, so DuckDB can be missing.

Chapter: The model.
"""

from __future__ import annotations

import math
import os
import re
from collections.abc import Mapping, Sequence
from decimal import Decimal
from numbers import Number
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from . import check
from .check import Integers
from .files import (
    checked_path,
    csv_rows,
    optional_module,
    parquet_source,
    path_literal,
    read_file,
)
from .model import Users

NO_EVENTS = "table has no events; at least one is needed"
NULL_USER = "user: column {!r} has null or NaN entries; every event needs a user"
BAD_OUTCOME = "outcome: column {!r} must be 0 or 1, not {!r}"
SQL_NUMBER = r"BOOLEAN|[A-Z]*INT(EGER)?|FLOAT|DOUBLE|DECIMAL[(0-9,)]*"

# The innermost query renames, so that a column called k is not taken for our k.
EVENTS_SQL = """\
SELECT k, successes, COUNT(*) AS counts,
       SUM(nulls) AS null_users, SUM(bad) AS bad_outcomes
FROM (
    SELECT COUNT(*) AS k,
           COUNT(CASE WHEN event_outcome = 1 THEN 1 END) AS successes,
           COUNT(CASE WHEN event_user IS NULL THEN 1 END) AS nulls,
           COUNT(CASE WHEN event_outcome IN (0, 1) THEN NULL ELSE 1 END) AS bad
    FROM (
        SELECT {user} AS event_user, {outcome} AS event_outcome FROM {table}
    ) AS events
    GROUP BY event_user
) AS users
GROUP BY k, successes
ORDER BY k, successes"""


def events_sql(
    table: str | Sequence[str], user: str, outcome: str, *, quote: str = '"'
) -> str:
    """Return the query that turns an event log into rows (k, successes, counts).

    Its columns `null_users` and `bad_outcomes` count events that have no user or
    whose outcome is not 0 or 1: they must be zero, and `users_from_table` checks.

    Parameters
    ----------
    table : the name of the event log; a qualified name is a list of its parts
    user, outcome : the names of its columns; outcomes are the numbers 0 and 1
    quote : what stands around names: '"' in ANSI SQL, '`' in Spark and BigQuery

    To SQL, NaN is not null: where users are floats, make NaN null first.

    Chapter: The model.

    >>> print(events_sql("clicks", "visitor", "bought"))  # doctest: +ELLIPSIS
    SELECT k, successes, COUNT(*) AS counts,
    ...
            SELECT "visitor" AS event_user, "bought" AS event_outcome FROM "clicks"
    ...
    """
    check.one_of("quote", quote, ('"', "`"))
    parts = [table] if isinstance(table, str) else list(table)
    return EVENTS_SQL.format(
        user=_quoted("user", user, quote),
        outcome=_quoted("outcome", outcome, quote),
        table=".".join(_quoted("table", part, quote) for part in parts),
    )


def _quoted(argument: str, name: str, quote: str = '"') -> str:
    """Return a quoted name; doubling the quotes inside keeps it one name."""
    if not isinstance(name, str) or not name or "\0" in name:
        raise TypeError(f"{argument} must be a name, a non-empty string, not {name!r}")
    return quote + name.replace(quote, 2 * quote) + quote


def users_from_events(table: Any, *, user: str, outcome: str) -> Users:
    """Return the users of an event log, merged and ordered by (k, successes).

    Parameters
    ----------
    table : a pandas, polars or pyarrow table, a mapping of column names to columns,
        or a path to a CSV or Parquet file; one row per event
    user : the name of the column that says whose event it is: anything but null
    outcome : the name of the column with the outcomes: 0 and 1, or booleans

    In a CSV file users are text ("1" and "01" are two users), and an empty field
    is null.

    Chapter: The model.

    >>> log = {"visitor": ["ann", "bob", "ann", "cy"], "bought": [1, 0, 0, 0]}
    >>> users = users_from_events(log, user="visitor", outcome="bought")
    >>> users.k, users.successes, users.counts
    (array([1, 2]), array([0, 1]), array([2, 1]))
    """
    names = {"user": user, "outcome": outcome}
    if user == outcome:
        raise ValueError(f"user and outcome must be two columns, not both {user!r}")
    if isinstance(table, (str, os.PathLike)):
        path = checked_path(table)
        if duckdb := optional_module("duckdb"):
            return _query_file(duckdb, path, names)
        table = read_file(path, text=user)
    columns = _columns(table, names)
    if len(columns["user"]) == 0:
        raise ValueError(NO_EVENTS)
    codes = _codes(user, columns["user"]).astype(np.intp, copy=False)
    ones = _ones(outcome, columns["outcome"])
    k = np.bincount(codes)
    successes = np.bincount(codes[ones], minlength=len(k))
    # Codes may have gaps, which stand for nobody.
    return Users(k[k > 0], successes[k > 0]).compressed()


def users_from_table(table: Any) -> Users:
    """Return the users of a table with columns k, successes and, maybe, counts.

    `table` is of any kind that `users_from_events` takes.  Its rows stay as they
    are; without `counts` every row is one user.

    Chapter: The model.

    >>> users_from_table({"k": [1, 2], "successes": [0, 1], "counts": [2, 1]})
    Users(n=3, rows=2, samples=4)
    """
    needed = {"k": "k", "successes": "successes"}
    checks = ("null_users", "bad_outcomes")
    if isinstance(table, (str, os.PathLike)):
        table = read_file(checked_path(table))
    found = {name: name for name in ("counts", *checks) if name in _names_of(table)}
    columns = _columns(table, needed | found)
    for name in checks:
        if np.any(columns.pop(name, np.zeros(1))):
            raise ValueError(f"{name} must be 0 throughout: the event log is broken")
    return Users(**{name: _numbers(column) for name, column in columns.items()})


# Tables in memory


def _names_of(table: Any) -> list[str]:
    """Return the column names of a table of any kind."""
    if isinstance(table, Mapping):
        return list(table)
    # Looked up on the type, because a table's own columns can look like attributes.
    kind = type(table)
    if hasattr(kind, "collect_schema"):
        return list(table.collect_schema().names())
    for attribute in ("column_names", "columns"):
        if hasattr(kind, attribute) and hasattr(kind, "__getitem__"):
            return list(getattr(table, attribute))
    raise TypeError(
        "table must be a pandas, polars or pyarrow table, a mapping of columns, or a "
        f"path to a .csv or .parquet file, not of type {kind.__name__}"
    )


def _columns(table: Any, names: Mapping[str, str]) -> dict[str, NDArray[Any]]:
    """Return the named columns as arrays of one length, by argument."""
    _check_names(names, _names_of(table))
    if hasattr(type(table), "collect"):
        table = table.select(list(names.values())).collect()
    arrays = {argument: _array(name, table[name]) for argument, name in names.items()}
    check.same_length(**arrays)
    return arrays


def _check_names(names: Mapping[str, str], available: list[str]) -> None:
    for argument, name in names.items():
        if not isinstance(name, str):
            raise TypeError(f"{argument} must be the name of a column, not {name!r}")
        if available.count(name) != 1:
            problem = "more than once in" if name in available else "missing from"
            raise ValueError(
                f"{argument}: column {name!r} is {problem} the table, whose columns "
                f"are {available}"
            )


def _array(name: str, column: Any) -> NDArray[Any]:
    """Return a column as an array that keeps its values apart and its nulls null."""
    if np.ma.is_masked(column):
        column = column.tolist()  # what is masked becomes None
    if isinstance(column, Sequence) and not isinstance(column, (str, bytes)):
        # np.asarray would make one user of 1 and "1", and of 2**53 and 2**53 + 1.0.
        return np.fromiter(column, dtype=object, count=len(column))
    if not hasattr(column, "__array__"):
        raise TypeError(f"column {name!r} must be an array or a list, not {column!r}")
    array = np.asarray(column)
    if array.ndim != 1:
        raise ValueError(f"column {name!r} must have one dimension, not {array.ndim}")
    return array


def _codes(name: str, users: NDArray[Any]) -> Integers:
    """Return whole numbers from 0 that are equal where users are."""
    kind = users.dtype.kind
    if kind in "fmM" and (users != users).any():
        raise ValueError(NULL_USER.format(name))
    if kind in "iu" and int(users.max()) - int(users.min()) < 4 * len(users):
        wide = users.astype(np.int64 if kind == "i" else np.uint64)
        return np.asarray(wide - users.min(), dtype=np.int64)
    if kind in "biufmM":
        return np.unique(users, return_inverse=True)[1]
    # Text and mixed columns: hashing is quicker than sorting, and always defined.
    seen: dict[Any, int] = {}
    try:
        codes = [seen.setdefault(value, len(seen)) for value in users.tolist()]
    except TypeError as error:
        raise TypeError(f"user: column {name!r} must be hashable: {error}") from None
    if any(map(_is_null, seen)):
        raise ValueError(NULL_USER.format(name))
    return np.array(codes)


def _ones(name: str, outcomes: NDArray[Any]) -> NDArray[np.bool_]:
    """Return which outcomes are ones; all others must be zeros."""
    if outcomes.dtype.kind in "biuf":
        ones = np.asarray(outcomes == 1)
        bad = ~(ones | (outcomes == 0))
        if bad.any():
            raise ValueError(BAD_OUTCOME.format(name, outcomes[bad][0].item()))
        return ones
    for value in outcomes:
        if not isinstance(value, (Number, np.bool_)) or value not in (0, 1):
            raise ValueError(BAD_OUTCOME.format(name, value))
    return outcomes.astype(bool)


def _is_null(value: Any) -> bool:
    """Return whether this is None, NaN, NaT or pandas.NA, which equal nothing."""
    try:
        return value is None or bool(value != value)
    except (TypeError, ValueError):
        return True


def _numbers(column: NDArray[Any]) -> NDArray[Any]:
    """Return Python numbers, such as a warehouse's decimals, as an array of numbers."""
    if column.dtype.kind != "O":
        return column
    exact = [int(x) if isinstance(x, Decimal) and x % 1 == 0 else x for x in column]
    return np.array([math.nan if _is_null(x) else x for x in exact])


# Files


def _query_file(duckdb: Any, path: Path, names: Mapping[str, str]) -> Users:
    """Run `events_sql` on a file."""
    try:
        with duckdb.connect() as connection:
            log = _log_in_file(connection, path, names)
            connection.execute(f"CREATE VIEW log AS {log}")
            query = events_sql("log", "who", "outcome")
            rows = connection.execute(query).fetchnumpy()
            if len(rows["k"]) == 0:
                raise ValueError(NO_EVENTS)
            if rows["null_users"].any():
                raise ValueError(NULL_USER.format(names["user"]))
            if rows["bad_outcomes"].any():
                # No WHERE: a Parquet file's statistics would hide its NaNs from it.
                good = "CASE WHEN outcome IN (0, 1) THEN 1 ELSE 0 END"
                query = f"SELECT raw FROM log ORDER BY {good} LIMIT 1"
                [(value,)] = connection.execute(query).fetchall()
                raise ValueError(BAD_OUTCOME.format(names["outcome"], value))
            return Users(rows["k"], rows["successes"], rows["counts"])
    except duckdb.Error as error:
        raise ValueError(f"table: cannot read {path.name!r}: {error}") from error


def _log_in_file(connection: Any, path: Path, names: Mapping[str, str]) -> str:
    """Return a SELECT of who, outcome (null if it is no number) and raw outcome."""
    if path.suffix.lower() == ".csv":
        # Everything is read as text and nothing is guessed: "01" must not become 1.
        header = next(csv_rows(path))
        kinds = ["CSV"] * len(header)
        fields = ", ".join(f"'{place}': 'VARCHAR'" for place in range(len(header)))
        source = f"""read_csv({path_literal(path)}, auto_detect = false, header = true,
            delim = ',', quote = '"', escape = '"', columns = {{{fields}}})"""
    else:
        source = parquet_source(path)
        schema = connection.execute(f"DESCRIBE FROM {source}").fetchall()
        header, kinds = [row[0] for row in schema], [row[1] for row in schema]
    _check_names(names, header)
    user, raw = (header.index(name) for name in names.values())
    who, outcome = f'"{user}"', f'"{raw}"'
    if kinds[user] in ("FLOAT", "DOUBLE"):
        who = f"CASE WHEN isnan({who}) THEN NULL ELSE {who} END"
    if kinds[raw] == "CSV":
        outcome = f"""CASE LOWER(TRIM({outcome})) WHEN 'true' THEN 1
            WHEN 'false' THEN 0 ELSE TRY_CAST({outcome} AS DOUBLE) END"""
    elif not re.fullmatch(SQL_NUMBER, kinds[raw]):
        # DuckDB would compare text with 1, but text in a typed file is no outcome.
        outcome = "CAST(NULL AS INTEGER)"
    places = ", ".join(f'"{place}"' for place in range(len(header)))
    return f"""SELECT {who} AS who, {outcome} AS outcome, "{raw}" AS raw
        FROM {source} AS file({places})"""
