"""From event logs to users.

An event log has one row per event: whose it is, and whether it is a success.  The
model needs only how many users have k events with so many successes, a table that
one SQL query computes: `events_sql`.  DuckDB runs it here on files; Spark or a
warehouse runs it where the log is, and `users_from_table` reads what it returns.
Tables in memory take the same two steps in NumPy, so DuckDB can be missing.

Chapter: The model.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from decimal import Decimal
from numbers import Real
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hetlit import check
from hetlit.check import Integers
from hetlit.users.files import (
    checked_path,
    csv_rows,
    has_lone_return,
    is_csv,
    optional_module,
    parquet_header,
    parquet_source,
    path_literal,
    read_file,
    reading,
)
from hetlit.users.table import Users

NO_EVENTS = "table has no events; at least one is needed"
NO_USERS = "table has no rows; at least one is needed"
NULL_USER = "user: column {!r} has null, NaN or empty entries; every event needs a user"
BAD_OUTCOME = "outcome: column {!r} must hold only 0 and 1, as numbers or booleans"
SQL_NUMBER = r"BOOLEAN|[A-Z]*INT(EGER)?|FLOAT|DOUBLE|DECIMAL[(0-9,)]*"
# From here on, Python is quicker: DuckDB looks at every column of a CSV file.
WIDE = 1000

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

    To SQL, NaN and empty text are not null: where users are floats or text, make
    them null first.

    Chapter: The model.

    >>> print(events_sql("clicks", "visitor", "bought"))  # doctest: +ELLIPSIS
    SELECT k, successes, COUNT(*) AS counts,
    ...
            SELECT "visitor" AS event_user, "bought" AS event_outcome FROM "clicks"
    ...
    """
    check.one_of("quote", quote, ('"', "`"))
    if not isinstance(table, Sequence) or not table:
        raise TypeError("table must be a name or a list of names")
    parts = [table] if isinstance(table, str) else list(table)
    return EVENTS_SQL.format(
        user=_quoted("user", user, quote),
        outcome=_quoted("outcome", outcome, quote),
        table=".".join(_quoted("table", part, quote) for part in parts),
    )


def _quoted(argument: str, name: str, quote: str = '"') -> str:
    """Return a quoted name; doubling the quotes inside keeps it one name."""
    if not isinstance(name, str) or not name or "\0" in name:
        shown = repr(name) if isinstance(name, str) else f"of type {_type(name)}"
        raise TypeError(f"{argument} must be a name, a non-empty string, not {shown}")
    return quote + name.replace(quote, 2 * quote) + quote


def users_from_events(table: Any, *, user: str, outcome: str) -> Users:
    """Return the users of an event log, merged and ordered by (k, successes).

    Parameters
    ----------
    table : a pandas, polars or pyarrow table, a mapping of column names to columns,
        or a path to a CSV or Parquet file; one row per event
    user : the name of the column that says whose event it is: anything but null,
        NaN and empty text, which name nobody and are refused
    outcome : the name of the column with the outcomes: 0 and 1, or booleans

    A CSV file has no types.  There users are text: "1" and "01" are two users, and
    "NULL" and "nan" are users too.  Outcomes are what the text says: "1", "1.0" and
    "true" are ones.  In all other tables text is no outcome, not even "1".  A line
    of a CSV file ends with LF, CR LF or CR, also in one file.

    Logs are private: an error names columns and files, but quotes no entry.

    Chapter: The model.

    >>> log = {"visitor": ["ann", "bob", "ann", "cy"], "bought": [1, 0, 0, 0]}
    >>> users = users_from_events(log, user="visitor", outcome="bought")
    >>> users.k, users.successes, users.counts
    (array([1, 2]), array([0, 1]), array([2, 1]))
    """
    names: dict[str, Any] = {"user": user, "outcome": outcome}
    for argument, name in names.items():
        if not isinstance(name, str):
            problem = f"the name of a column, not of type {_type(name)}"
            raise TypeError(f"{argument} must be {problem}")
    if user == outcome:
        raise ValueError(f"user and outcome must be two columns, not both {user!r}")
    if isinstance(table, (str, os.PathLike)):
        path = checked_path(table)
        if duckdb := optional_module("duckdb"):
            users = _query_file(duckdb, path, names)
            if users is not None:
                return users
        table = read_file(path, names.values(), text=user)
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
    are; without `counts` every row is one user.  Entries are whole numbers of any
    type of numbers, and what is said of others does not quote them.

    Chapter: The model.

    >>> users_from_table({"k": [1, 2], "successes": [0, 1], "counts": [2, 1]})
    Users(n=3)
    """
    checks = ("null_users", "bad_outcomes")
    optional = ("counts", *checks)
    if isinstance(table, (str, os.PathLike)):
        table = read_file(checked_path(table), ("k", "successes", *optional))
    available = _names_of(table)
    found = [name for name in optional if _times(name, available)]
    columns = _columns(table, {name: name for name in ("k", "successes", *found)})
    if len(columns["k"]) == 0:
        raise ValueError(NO_USERS)
    numbers = {
        name: _integers(name, column, int(name in ("k", "counts")))
        for name, column in columns.items()
    }
    for name in checks:
        if name in numbers and numbers.pop(name).any():
            raise ValueError(f"{name} must be 0 throughout: the event log is broken")
    if (numbers["successes"] > numbers["k"]).any():
        raise ValueError("successes must be at most k")
    return Users(**numbers)


# Tables in memory


def _names_of(table: Any) -> list[Any]:
    """Return the column names of a table of any kind."""
    # Looked up on the type, because a table's own columns can look like attributes.
    kind = type(table)
    with reading("its columns"):
        if isinstance(table, Mapping):
            return list(table)
        if hasattr(kind, "collect_schema"):
            return list(table.collect_schema().names())
        for attribute in ("column_names", "columns"):
            if hasattr(kind, attribute) and hasattr(kind, "__getitem__"):
                return list(getattr(table, attribute))
    raise TypeError(
        "table must be a pandas, polars or pyarrow table, a mapping of columns, or a "
        f"path to a .csv or .parquet file, not of type {_type(table)}"
    )


def _type(value: Any) -> str:
    """Return what to say of a value that may hold private data."""
    return type(value).__name__


def _columns(table: Any, names: Mapping[str, str]) -> dict[str, NDArray[Any]]:
    """Return the named columns as arrays of one length, by argument."""
    _check_names(names, _names_of(table))
    if hasattr(type(table), "collect"):
        with reading("its columns"):
            table = table.select(list(names.values())).collect()
    arrays = {
        argument: _array(f"{argument}: column {name!r}", table, name)
        for argument, name in names.items()
    }
    check.same_length(**arrays)
    return arrays


def _check_names(names: Mapping[str, str], available: list[Any]) -> None:
    for argument, name in names.items():
        times = _times(name, available)
        if times != 1:
            problem = "more than once in" if times else "missing from"
            shown = ", ".join(repr(other)[:80] for other in available[:20])
            more = f" and {len(available) - 20} more" if len(available) > 20 else ""
            raise ValueError(
                f"{argument}: column {name!r} is {problem} the table, whose columns "
                f"are [{shown}]{more}"
            )


def _times(name: str, available: list[Any]) -> int:
    # In pandas anything can be a name, also what cannot be compared with a string.
    return sum(isinstance(other, str) and other == name for other in available)


def _array(label: str, table: Any, name: str) -> NDArray[Any]:
    """Return a column as an array that keeps its values apart and its nulls null."""
    with reading(f"column {name!r}"):
        column = table[name]
        if np.ma.is_masked(column):
            column = column.tolist()  # what is masked becomes None
        if isinstance(column, Sequence) and not isinstance(column, (str, bytes)):
            # np.asarray would make one user of 1 and "1", and of 2**53 and 2**53 + 1.0.
            return np.fromiter(column, dtype=object, count=len(column))
        array = np.asarray(column) if hasattr(column, "__array__") else None
    if array is None:
        raise TypeError(f"{label} must be an array or a list, not {_type(column)}")
    if array.ndim != 1:
        raise ValueError(f"{label} must have one dimension, not {array.ndim}")
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
    except Exception:  # raised by the values themselves
        raise TypeError(f"user: column {name!r} must be hashable") from None
    if any(map(_is_null, seen)):
        raise ValueError(NULL_USER.format(name))
    return np.array(codes)


def _ones(name: str, outcomes: NDArray[Any]) -> NDArray[np.bool_]:
    """Return which outcomes are ones; all others must be zeros."""
    if outcomes.dtype.kind in "biuf":
        ones = np.asarray(outcomes == 1)
        if (ones | (outcomes == 0)).all():
            return ones
    elif outcomes.dtype.kind == "O":
        values = outcomes.tolist()
        with suppress(TypeError):  # a signalling NaN is a number without a hash
            if not _strangers(values, np.timedelta64) and set(values) <= {0, 1}:
                return outcomes.astype(bool)
    raise ValueError(BAD_OUTCOME.format(name))


def _integers(name: str, column: NDArray[Any], least: int) -> Integers:
    """Return a column of whole numbers; an error says what they are to be, no more."""
    allowed = f"whole numbers of at least {least} and below 2**63"
    if column.dtype.kind == "O":
        # One by one: as one array, whole numbers among floats would be rounded.
        values = [value for value in column if not _is_null(value)]
        if types := _strangers(values, np.timedelta64, bool, np.bool_):
            raise TypeError(f"{name} must be {allowed}, not {', '.join(types)}")
        plain = [x.item() if isinstance(x, np.generic) else x for x in values]
        whole = [int(x) for x in plain if least <= x < 2**63 and int(x) == x]
        if len(whole) < len(column):
            raise ValueError(f"{name} must be {allowed}")
        column = np.array(whole, dtype=np.int64)
    try:
        return check.integers(name, column, least, copy=False)
    except ValueError:
        raise ValueError(f"{name} must be {allowed}") from None


def _strangers(values: list[Any], *refused: type) -> list[str]:
    """Return the types among the values that are not of real numbers, or refused.

    To NumPy, a time difference is a whole number, and to Python a boolean is.
    """
    numbers = (Real, Decimal, np.bool_)
    return sorted(
        kind.__name__
        for kind in set(map(type, values))
        if not issubclass(kind, numbers) or issubclass(kind, refused)
    )


def _is_null(value: Any) -> bool:
    """Return whether this is nothing: None, empty text, or unequal to itself as NaN."""
    if value is None or (isinstance(value, (str, bytes)) and not value):
        return True
    try:
        return bool(value != value)
    except Exception:  # raised by the value itself
        return True


# Files


def _query_file(duckdb: Any, path: Path, names: Mapping[str, str]) -> Users | None:
    """Run `events_sql` on a file, or return None if that is for Python to read."""
    with duckdb.connect() as connection:
        csv = is_csv(path)
        header = next(csv_rows(path)) if csv else parquet_header(connection, path)
        _check_names(names, header)
        if csv and (len(header) > WIDE or has_lone_return(path)):
            return None
        with reading(repr(path.name)):
            source = _csv_source(path, header) if csv else parquet_source(path)
            log = _log(connection, source, [header.index(x) for x in names.values()])
            connection.execute(f"CREATE VIEW log AS {log}")
            query = events_sql("log", "who", "outcome")
            try:
                rows = connection.execute(query).fetchnumpy()
            except duckdb.InvalidInputException:
                if csv:  # it may have lines that end in two ways
                    return None
                raise
    if len(rows["k"]) == 0:
        raise ValueError(NO_EVENTS)
    if rows["null_users"].any():
        raise ValueError(NULL_USER.format(names["user"]))
    if rows["bad_outcomes"].any():
        raise ValueError(BAD_OUTCOME.format(names["outcome"]))
    return Users(rows["k"], rows["successes"], rows["counts"])


def _csv_source(path: Path, header: list[str]) -> str:
    """Return what to write after FROM to read a CSV file in DuckDB."""
    # Everything is read as text and nothing is guessed: "01" must not become 1.
    fields = ", ".join(f"'{place}': 'VARCHAR'" for place in range(len(header)))
    return f"""read_csv({path_literal(path)}, auto_detect = false, header = true,
        delim = ',', quote = '"', escape = '"', columns = {{{fields}}})"""


def _log(connection: Any, source: str, places: list[int]) -> str:
    """Return a SELECT of who (null if nobody) and outcome (null if it is no number)."""
    # By place, because a name would mean all columns that differ from it in case.
    user, raw = (f"#{place + 1}" for place in places)
    columns = f"SELECT {user} AS who, {raw} AS outcome FROM {source}"
    types = [row[1] for row in connection.execute(f"DESCRIBE {columns}").fetchall()]
    who, outcome = "who", "outcome"
    if types[0] in ("FLOAT", "DOUBLE"):
        who = "CASE WHEN isnan(who) THEN NULL ELSE who END"
    elif types[0] in ("VARCHAR", "BLOB"):
        who = "NULLIF(who, '')"
    if source.startswith("read_csv"):
        outcome = """CASE LOWER(TRIM(outcome, ' ')) WHEN 'true' THEN 1
            WHEN 'false' THEN 0 ELSE TRY_CAST(outcome AS DOUBLE) END"""
    elif not re.fullmatch(SQL_NUMBER, types[1]):
        # DuckDB would compare text with 1, but text in a typed file is no outcome.
        outcome = "CAST(NULL AS INTEGER)"
    return f"SELECT {who} AS who, {outcome} AS outcome FROM ({columns}) AS file"
