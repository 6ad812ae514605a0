"""From event logs to users, by NumPy, by DuckDB and by the same query elsewhere."""

from __future__ import annotations

import re
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from traceback import format_exception
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hetlit import Users
from hetlit.users.events import events_sql, users_from_events, users_from_table
from tests.logs import (
    BAD_OUTCOME,
    EXPECTED,
    OUTCOMES,
    SECRET,
    TEXTS,
    USERS,
    brute_force,
    from_events,
    write_csv,
    write_parquet,
)
from tests.rows import rows_of

NULL_USER = "user: column 'who' has null, NaN or empty entries"


# Every kind of table gives the same users

AS_TABLES: dict[str, Callable[[dict[str, list[Any]]], Any]] = {
    "lists": dict,
    "tuples": lambda log: {name: tuple(column) for name, column in log.items()},
    "arrays": lambda log: {name: np.array(column) for name, column in log.items()},
    "masked arrays": lambda log: {n: np.ma.array(column) for n, column in log.items()},
    "series": lambda log: {name: pd.Series(column) for name, column in log.items()},
    "pandas": pd.DataFrame,
    "pandas, nullable": lambda log: pd.DataFrame(log).convert_dtypes(),
    "pandas, arrow": lambda log: pd.DataFrame(log).convert_dtypes(
        dtype_backend="pyarrow"
    ),
    "pandas, categories": lambda log: pd.DataFrame(log).astype({"who": "category"}),
    "pandas, objects": lambda log: pd.DataFrame(log, dtype=object),
    "pandas, other index": lambda log: pd.DataFrame(log, index=range(5, 15)),
    "polars": pl.DataFrame,
    "polars, lazy": pl.LazyFrame,
    "polars, categories": lambda log: pl.DataFrame(log).with_columns(
        pl.col("who").cast(pl.String).cast(pl.Categorical)
    ),
    "pyarrow": pa.table,
    "pyarrow, chunks": lambda log: pa.concat_tables(
        [pa.table(log)[:3], pa.table(log)[3:]]
    ),
    "pyarrow, dictionary": lambda log: pa.table(
        {**log, "who": pa.array(log["who"]).dictionary_encode()}
    ),
    "pyarrow, batch": pa.RecordBatch.from_pydict,
}


@pytest.mark.parametrize("kind", AS_TABLES)
@pytest.mark.parametrize("who", [USERS, TEXTS], ids=["whole", "text"])
@pytest.mark.parametrize("outcome", [int, float, bool])
def test_every_kind_of_table_agrees_with_brute_force(
    kind: str, who: list[Any], outcome: type
) -> None:
    log = {"other": list("abcdefghij"), "won": list(map(outcome, OUTCOMES)), "who": who}
    assert from_events(AS_TABLES[kind](log)) == brute_force(who, OUTCOMES) == EXPECTED


def test_the_class_method_is_the_function() -> None:
    users = Users.from_events(
        {"who": USERS, "won": OUTCOMES}, user="who", outcome="won"
    )
    assert rows_of(users) == EXPECTED
    assert users.n == 5


@pytest.mark.parametrize(
    "who",
    [
        pytest.param([2**63 - 1, -(2**63), 2**63 - 1], id="far apart"),
        pytest.param([2**64 - 1, 2**64 - 2, 2**64 - 1], id="unsigned"),
        pytest.param([0.5, 0.25, 0.5], id="fractions"),
        pytest.param(["2020-01-01", "2020-01-02", "2020-01-01"], id="dates"),
        pytest.param([True, False, True], id="booleans"),
        pytest.param([b"x", b"y", b"x"], id="bytes"),
    ],
)
def test_users_may_be_of_any_type_with_an_order(who: list[Any]) -> None:
    kind = "datetime64[D]" if who[0] == "2020-01-01" else None
    table = {"who": np.array(who, dtype=kind), "won": np.array([1, 0, 0])}
    assert from_events(table) == [(1, 0, 1), (2, 1, 1)]


@pytest.mark.parametrize(
    "who",
    [
        pytest.param([1, "1", 1], id="a number and a text"),
        pytest.param([("a", 1), ("a", 2), ("a", 1)], id="tuples"),
        pytest.param([2**53, 2**53 + 1, 2**53], id="beyond floats"),
        pytest.param([2**53 + 1, float(2**53), 2**53 + 1], id="beyond floats, mixed"),
        pytest.param([2**70, 2**70 + 1, 2**70], id="beyond int64"),
    ],
)
def test_different_users_in_a_list_stay_different(who: list[Any]) -> None:
    assert from_events({"who": who, "won": [1, 0, 0]}) == [(1, 0, 1), (2, 1, 1)]


@pytest.mark.parametrize("kind", [np.int8, np.int16, np.uint8, np.int64, np.uint64])
def test_narrow_integers_do_not_overflow(kind: type) -> None:
    limits = np.iinfo(kind)
    who: Any = np.array([limits.min, limits.max] * 40, dtype=kind)
    won = np.array([0, 1] * 40)
    assert from_events({"who": who, "won": won}) == [(40, 0, 1), (40, 40, 1)]


@pytest.mark.slow
@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    events=st.lists(
        st.tuples(
            st.one_of(st.integers(-3, 3), st.integers(-(2**63), 2**63 - 1)),
            st.integers(0, 1),
        ),
        min_size=1,
        max_size=60,
    )
)
def test_random_events_give_the_users_of_brute_force(
    tmp_path: Path, events: list[tuple[int, int]]
) -> None:
    who, won = (list(column) for column in zip(*events, strict=True))
    expected = brute_force(who, won)
    assert from_events({"who": who, "won": won}) == expected
    assert from_events({"who": np.array(who), "won": np.array(won)}) == expected
    assert from_events(write_parquet(tmp_path, {"who": who, "won": won})) == expected


# Odd names

ODD = [
    "who is it?",
    'a "quoted" name',
    "k",
    "successes",
    "select",
    "{0}",
    "`",
    "é",
    "a.b",
]


@pytest.mark.parametrize("user", ODD)
@pytest.mark.parametrize("outcome", ["it's won", "counts", '";--'])
def test_columns_may_have_any_name(
    tmp_path: Path, reader: str, user: str, outcome: str
) -> None:
    log = {outcome: OUTCOMES, user: USERS}
    names = {"user": user, "outcome": outcome}
    assert rows_of(users_from_events(log, **names)) == EXPECTED
    path = write_parquet(tmp_path, log)
    assert rows_of(users_from_events(path, **names)) == EXPECTED
    pd.DataFrame(log).to_csv(tmp_path / "log.csv", index=False)
    assert rows_of(users_from_events(tmp_path / "log.csv", **names)) == EXPECTED


def test_a_pandas_column_may_be_called_like_an_attribute() -> None:
    frame = pd.DataFrame({"columns": USERS, "column_names": OUTCOMES, "collect": 1})
    users = users_from_events(frame, user="columns", outcome="column_names")
    assert rows_of(users) == EXPECTED


# The query itself


def sqlite_rows(query: str, table: str, columns: dict[str, list[Any]]) -> list[Any]:
    def quoted(name: str) -> str:
        return '"' + name.replace('"', '""') + '"'

    with sqlite3.connect(":memory:") as connection:
        names = ", ".join(map(quoted, columns))
        marks = ", ".join("?" for _ in columns)
        connection.execute(f"CREATE TABLE {quoted(table)} ({names})")
        values = zip(*columns.values(), strict=True)
        connection.executemany(f"INSERT INTO {quoted(table)} VALUES ({marks})", values)
        rows = connection.execute(query).fetchall()
    connection.close()
    return rows


@pytest.mark.parametrize("table", ["events", "users", 'odd "table"\'s', "a.b"])
@pytest.mark.parametrize("user", ODD)
@pytest.mark.parametrize("quote", ['"', "`"])
def test_the_same_query_runs_elsewhere(table: str, user: str, quote: str) -> None:
    query = events_sql(table, user, 'the "outcome"', quote=quote)
    columns: dict[str, list[Any]] = {user: TEXTS, 'the "outcome"': OUTCOMES}
    rows = sqlite_rows(query, table, columns)
    assert rows == [(*row, 0, 0) for row in EXPECTED]
    names = ("k", "successes", "counts", "null_users", "bad_outcomes")
    result = dict(zip(names, zip(*rows, strict=True), strict=True))
    assert rows_of(users_from_table(result)) == EXPECTED


def test_the_same_query_runs_in_duckdb_and_its_arrow_result_is_read() -> None:
    log = pa.table({"who": TEXTS, "won": OUTCOMES})
    with duckdb.connect() as connection:
        connection.register("clicks", log)
        query = events_sql(["main", "clicks"], "who", "won")
        result = connection.sql(query).to_arrow_table()
    assert rows_of(users_from_table(result)) == EXPECTED


def test_the_query_counts_broken_events() -> None:
    columns: dict[str, list[Any]] = {
        "who": ["a", None, None, "b"],
        "won": [1, 1, None, 2],
    }
    rows = sqlite_rows(events_sql("log", "who", "won"), "log", columns)
    assert sum(row[3] for row in rows) == 2
    assert sum(row[4] for row in rows) == 2
    names = ("k", "successes", "counts", "null_users", "bad_outcomes")
    result = dict(zip(names, zip(*rows, strict=True), strict=True))
    with pytest.raises(ValueError, match="null_users must be 0 throughout"):
        users_from_table(result)


@pytest.mark.parametrize("name", ["", None, 3, "a\0b"])
def test_the_query_refuses_what_is_no_name(name: Any) -> None:
    with pytest.raises(TypeError, match="user must be a name"):
        events_sql("log", name, "won")
    with pytest.raises(TypeError, match="table must be a name"):
        events_sql([name], "who", "won")


def test_the_query_refuses_other_quotes() -> None:
    with pytest.raises(ValueError, match="quote must be one of"):
        events_sql("log", "who", "won", quote="'")


# Broken events

NULLS: dict[str, Any] = {
    "None in a list": {"who": ["a", None], "won": [1, 0]},
    "NaN in a list": {"who": ["a", float("nan")], "won": [1, 0]},
    "NA in a list": {"who": ["a", pd.NA], "won": [1, 0]},
    "NaN in an array": {"who": np.array([1.0, np.nan]), "won": [1, 0]},
    "NaT in an array": {"who": np.array(["NaT", "2020"], "M8[ns]"), "won": [1, 0]},
    "a mask": {"who": np.ma.array([1, 2], mask=[False, True]), "won": [1, 0]},
    "pandas, text": pd.DataFrame({"who": ["a", None], "won": [1, 0]}),
    "pandas, floats": pd.DataFrame({"who": [1, None], "won": [1, 0]}),
    "pandas, NA": pd.DataFrame({"who": pd.array([1, None], "Int64"), "won": [1, 0]}),
    "pandas, NaT": pd.DataFrame({"who": pd.to_datetime(["2020", None]), "won": [1, 0]}),
    "pandas, categories": pd.DataFrame({"who": pd.Categorical(["a", None]), "won": 1}),
    "polars, text": pl.DataFrame({"who": ["a", None], "won": [1, 0]}),
    "polars, whole": pl.DataFrame({"who": [1, None], "won": [1, 0]}),
    "polars, lazy": pl.LazyFrame({"who": [1, None], "won": [1, 0]}),
    "pyarrow, text": pa.table({"who": ["a", None], "won": [1, 0]}),
    "pyarrow, whole": pa.table({"who": [1, None], "won": [1, 0]}),
}


@pytest.mark.parametrize("kind", NULLS)
def test_null_users_are_refused(kind: str) -> None:
    with pytest.raises(ValueError, match=NULL_USER):
        from_events(NULLS[kind])


@pytest.mark.parametrize("who", [["a", None], [1, None], [1.0, float("nan")]])
def test_null_users_in_files_are_refused(
    tmp_path: Path, reader: str, who: list[Any]
) -> None:
    log = {"who": who, "won": [1, 0]}
    pd.DataFrame(log).to_csv(tmp_path / "log.csv", index=False)
    for path in (tmp_path / "log.csv", write_parquet(tmp_path, log)):
        with pytest.raises(ValueError, match=NULL_USER):
            from_events(path)


@pytest.mark.parametrize("make", [dict, pd.DataFrame, pl.DataFrame, pa.table])
@pytest.mark.parametrize("empty", ["", b""])
def test_an_empty_id_is_refused_in_a_table(
    make: Callable[[Any], Any], empty: Any
) -> None:
    log = {"who": [empty, empty], "won": [1, 0]}
    with pytest.raises(ValueError, match=NULL_USER):
        from_events(make(log))
    with pytest.raises(ValueError, match=NULL_USER):
        from_events({**log, "who": np.array([empty, empty])})


@pytest.mark.parametrize("empty", ["", b""])
def test_an_empty_id_is_refused_in_a_file(
    tmp_path: Path, reader: str, empty: Any
) -> None:
    for path in (
        write_parquet(tmp_path, {"who": [empty, empty], "won": [1, 0]}),
        write_csv(tmp_path, "who,won\na,1\n,0\n"),
        write_csv(tmp_path, 'who,won\na,1\n"",0\n', "quoted.csv"),
    ):
        with pytest.raises(ValueError, match=NULL_USER):
            from_events(path)


@pytest.mark.parametrize("make", [dict, pd.DataFrame, pl.DataFrame, pa.table])
def test_words_for_nothing_are_users_when_they_are_text(
    tmp_path: Path, reader: str, make: Callable[[Any], Any]
) -> None:
    log: dict[str, list[Any]] = {
        "who": ["NULL", "nan", "None", "NA", " "],
        "won": [1, 1, 1, 1, 1],
    }
    lines = "".join(f"{who},1\n" for who in log["who"])
    for table in (
        make(log),
        write_parquet(tmp_path, log),
        write_csv(tmp_path, "who,won\n" + lines),
    ):
        assert from_events(table) == [(1, 1, 5)]


def test_text_is_an_outcome_in_csv_only(tmp_path: Path, reader: str) -> None:
    log = {"who": ["a", "b"], "won": ["1", "0"]}
    path = write_csv(tmp_path, 'who,won\na,"1"\nb,"0"\n')
    assert from_events(path) == [(1, 0, 1), (1, 1, 1)]
    typed = [make(log) for make in (dict, pd.DataFrame, pl.DataFrame, pa.table)]
    for table in (*typed, write_parquet(tmp_path, log)):
        with pytest.raises(ValueError, match=BAD_OUTCOME):
            from_events(table)


BAD_OUTCOMES = {
    "2": [1, 2],
    "-1": [1, -1],
    "0.5": [1.0, 0.5],
    "nan": [1.0, float("nan")],
    "inf": [1.0, float("inf")],
    "None": [1, None],
    "'1'": ["0", "1"],
    "'yes'": ["yes", "no"],
}


@pytest.mark.parametrize("value", [*BAD_OUTCOMES, "<NA>"])
def test_other_outcomes_are_refused_in_a_list(value: str) -> None:
    won = BAD_OUTCOMES.get(value, [1, pd.NA])
    with pytest.raises(ValueError, match=BAD_OUTCOME):
        from_events({"who": ["a", "b"], "won": won})


@pytest.mark.parametrize("value", BAD_OUTCOMES)
@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame, pa.table])
def test_other_outcomes_are_refused_in_a_table(
    value: str, make: Callable[[Any], Any]
) -> None:
    table = make({"who": ["a", "b"], "won": BAD_OUTCOMES[value]})
    with pytest.raises(ValueError, match=BAD_OUTCOME):
        from_events(table)


@pytest.mark.parametrize("value", BAD_OUTCOMES)
def test_other_outcomes_are_refused_in_parquet(
    tmp_path: Path, reader: str, value: str
) -> None:
    path = write_parquet(tmp_path, {"who": ["a", "b"], "won": BAD_OUTCOMES[value]})
    with pytest.raises(ValueError, match=BAD_OUTCOME):
        from_events(path)


@pytest.mark.parametrize(
    "won",
    [
        pa.array([None, True]),
        pa.array([None, 1]),
        pa.array([0, 10**9], pa.timestamp("ns")),
        pa.array([b"0", b"1"]),
        pa.array([[0], [1]]),
        pa.array([Decimal("0.5"), Decimal(1)]),
    ],
    ids=lambda column: str(column.type),
)
def test_outcomes_of_other_types_are_refused(
    tmp_path: Path, reader: str, won: Any
) -> None:
    table = pa.table({"who": ["a", "b"], "won": won})
    for kind in (table, write_parquet(tmp_path, table)):
        with pytest.raises(ValueError, match=BAD_OUTCOME):
            from_events(kind)


def test_decimal_outcomes_are_numbers(tmp_path: Path, reader: str) -> None:
    won = pa.array([Decimal("0.00"), Decimal("1.00")])
    table = pa.table({"who": ["a", "b"], "won": won})
    for kind in (table, write_parquet(tmp_path, table)):
        assert from_events(kind) == [(1, 0, 1), (1, 1, 1)]


# Broken arguments


@pytest.mark.parametrize(
    "make", [dict, pd.DataFrame, pl.DataFrame, pl.LazyFrame, pa.table]
)
def test_a_missing_column_is_named_with_those_there_are(
    make: Callable[[Any], Any],
) -> None:
    table = make({"visitor": [1], "won": [1]})
    with pytest.raises(ValueError, match=r"user: column 'who'.*\['visitor', 'won'\]"):
        from_events(table)
    with pytest.raises(ValueError, match=r"outcome: column 'x'.*\['visitor', 'won'\]"):
        users_from_events(table, user="visitor", outcome="x")


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_a_missing_column_of_a_file_is_named_with_those_there_are(
    tmp_path: Path, reader: str, suffix: str
) -> None:
    path = tmp_path / f"log.{suffix}"
    if suffix == "csv":
        write_csv(tmp_path, "visitor,won\n1,1\n")
    else:
        write_parquet(tmp_path, {"visitor": [1], "won": [1]})
    with pytest.raises(ValueError, match=r"user: column 'who'.*\['visitor', 'won'\]"):
        from_events(path)


@pytest.mark.parametrize("name", [None, 0, b"who", ["who"]])
def test_a_column_name_is_a_string(name: Any) -> None:
    with pytest.raises(TypeError, match="user must be the name of a column, not"):
        users_from_events({"who": [1], "won": [1]}, user=name, outcome="won")
    with pytest.raises(TypeError, match="outcome must be the name of a column, not"):
        users_from_events({"who": [1], "won": [1]}, user="who", outcome=name)


def test_user_and_outcome_are_two_columns() -> None:
    with pytest.raises(ValueError, match="must be two columns, not both 'won'"):
        users_from_events({"who": [1], "won": [1]}, user="won", outcome="won")


def test_a_column_that_occurs_twice_is_refused() -> None:
    frame = pd.DataFrame([[1, 2, 1]], columns=["who", "who", "won"])
    arrow = pa.Table.from_arrays([[1], [2], [1]], names=["who", "who", "won"])
    for table in (frame, arrow):
        with pytest.raises(ValueError, match="column 'who' is more than once in"):
            from_events(table)


@pytest.mark.parametrize(
    "make",
    [
        dict,
        pd.DataFrame,
        pl.DataFrame,
        pl.LazyFrame,
        lambda log: pa.table({name: pa.array(log[name], pa.int64()) for name in log}),
    ],
)
def test_an_empty_table_is_refused(make: Callable[[Any], Any]) -> None:
    with pytest.raises(ValueError, match="table has no events"):
        from_events(make({"who": [], "won": []}))


def test_an_empty_file_is_refused(tmp_path: Path, reader: str) -> None:
    empty = pa.array([], pa.int64())
    for path in (
        write_csv(tmp_path, "who,won\n"),
        write_parquet(tmp_path, {"who": empty, "won": empty}),
    ):
        with pytest.raises(ValueError, match="table has no events"):
            from_events(path)


def test_columns_of_different_lengths_are_refused() -> None:
    with pytest.raises(ValueError, match="same length, not user: 3, outcome: 2"):
        from_events({"who": [1, 2, 3], "won": [0, 1]})


@pytest.mark.parametrize("table", [None, 3, [1, 2], {1, 2}, np.zeros((2, 2)), object()])
def test_other_tables_are_refused(table: Any) -> None:
    with pytest.raises(TypeError, match="table must be a pandas, polars or pyarrow"):
        from_events(table)
    with pytest.raises(TypeError, match="table must be a pandas, polars or pyarrow"):
        users_from_table(table)


@pytest.mark.parametrize("column", ["abc", None, 3, {1, 2}, iter([1])])
def test_a_column_is_an_array_or_a_list(column: Any) -> None:
    with pytest.raises(TypeError, match="column 'who' must be an array or a list"):
        from_events({"who": column, "won": [1]})


def test_a_column_has_one_dimension() -> None:
    with pytest.raises(ValueError, match="column 'who' must have one dimension, not 2"):
        from_events({"who": np.zeros((2, 2)), "won": [1, 1]})


def test_users_that_cannot_be_told_apart_by_hash_are_refused() -> None:
    with pytest.raises(TypeError, match="user: column 'who' must be hashable"):
        from_events({"who": [["a"], ["b"]], "won": [1, 1]})


# Tables of users

COUNTED = {"k": [4, 1, 4], "successes": [1, 0, 1], "counts": [2, 10**9, 1]}


@pytest.mark.parametrize(
    "make",
    [
        dict,
        lambda table: {name: np.array(table[name], float) for name in table},
        lambda table: {name: [Decimal(x) for x in table[name]] for name in table},
        pd.DataFrame,
        lambda table: pd.DataFrame(table).convert_dtypes(),
        lambda table: pd.DataFrame(table, dtype=object),
        pl.DataFrame,
        pl.LazyFrame,
        pa.table,
    ],
)
def test_a_table_of_users_keeps_its_rows(make: Callable[[Any], Any]) -> None:
    expected = [(4, 1, 2), (1, 0, 10**9), (4, 1, 1)]
    assert rows_of(users_from_table(make(COUNTED))) == expected
    assert rows_of(Users.from_table(make(COUNTED))) == expected


def test_a_file_of_users_keeps_its_rows(tmp_path: Path, reader: str) -> None:
    pd.DataFrame(COUNTED).to_csv(tmp_path / "log.csv", index=False)
    for path in (tmp_path / "log.csv", write_parquet(tmp_path, COUNTED)):
        users = users_from_table(path)
        assert rows_of(users) == [(4, 1, 2), (1, 0, 10**9), (4, 1, 1)]


def test_without_counts_every_row_is_one_user() -> None:
    users = users_from_table({"k": [4, 1], "successes": [1, 0], "name": ["a", "b"]})
    assert users.counts.tolist() == [1, 1]


@pytest.mark.parametrize("missing", ["k", "successes"])
def test_a_table_of_users_needs_k_and_successes(missing: str) -> None:
    table = {name: column for name, column in COUNTED.items() if name != missing}
    with pytest.raises(ValueError, match=f"column '{missing}' is missing"):
        users_from_table(table)


@pytest.mark.parametrize("name", ["k", "successes", "counts"])
@pytest.mark.parametrize("value", [None, 0.5, -1, float("nan"), Decimal("1.5"), "2"])
def test_a_table_of_users_needs_whole_numbers(name: str, value: Any) -> None:
    table = {**COUNTED, name: [4, value, 1]}
    with pytest.raises((ValueError, TypeError), match=f"{name} must"):
        users_from_table(table)


@pytest.mark.parametrize("text", ["", "x", "0.5", "true", "-1", "nan"])
def test_a_csv_of_users_needs_whole_numbers(
    tmp_path: Path, reader: str, text: str
) -> None:
    with pytest.raises((ValueError, TypeError), match="counts must"):
        users_from_table(write_csv(tmp_path, f"k,successes,counts\n1,1,{text}\n"))


@pytest.mark.parametrize("name", ["null_users", "bad_outcomes"])
@pytest.mark.parametrize("broken", [[0, 0, 2], [0, 0, Decimal(1)]])
def test_a_table_that_counts_broken_events_is_refused(
    tmp_path: Path, name: str, broken: list[Any]
) -> None:
    with pytest.raises(ValueError, match=f"{name} must be 0 throughout"):
        users_from_table({**COUNTED, name: broken})
    pd.DataFrame({**COUNTED, name: broken}).to_csv(tmp_path / "log.csv", index=False)
    with pytest.raises(ValueError, match=f"{name} must be 0 throughout"):
        users_from_table(tmp_path / "log.csv")


@pytest.mark.parametrize("other", [5.0, Decimal(5), np.float32(5), np.int8(5)])
def test_whole_numbers_among_others_keep_their_digits(other: Any) -> None:
    users = users_from_table({"k": [2**53 + 1, other], "successes": [1, 1]})
    assert users.k.tolist() == [2**53 + 1, 5]


NO_WHOLE_NUMBERS: dict[str, Any] = {
    "null": [None],
    "NA": [pd.NA],
    "Decimal 1E40": [Decimal("1E40")],
    "Decimal Infinity": [Decimal("Infinity")],
    "Decimal NaN": [Decimal("NaN")],
    "Decimal sNaN": [Decimal("sNaN")],
    "2**63": [2**63],
    "10**40": [10**40],
    "inf": [float("inf")],
    "text": ["SECRET-7"],
    "empty text": [""],
    "boolean": [True],
    "complex": [1j],
    "timedelta64": [np.timedelta64(1, "s")],
    "list": [["SECRET-7"]],
    "array of text": np.array(["SECRET-7"]),
    "array of booleans": np.array([True]),
    "array of complex": np.array([1 + 0j]),
    "array of timedelta64": np.array([1], "m8[s]"),
    "array of datetime64": np.array([1], "M8[s]"),
    "masked array": np.ma.array([1], mask=[True]),
    "array of floats": np.array([1e300]),
    "array of halves": np.array([0.5]),
    "unsigned": np.array([2**63], dtype=np.uint64),
}


@pytest.mark.parametrize("name", ["k", "successes", "counts", "null_users"])
@pytest.mark.parametrize("kind", NO_WHOLE_NUMBERS)
def test_what_is_no_whole_number_is_refused_by_its_column(name: str, kind: str) -> None:
    table = {"k": [2], "successes": [1], name: NO_WHOLE_NUMBERS[kind]}
    with pytest.raises((ValueError, TypeError), match=f"^{name} must") as error:
        users_from_table(table)
    assert "SECRET-7" not in str(error.value)


@pytest.mark.parametrize("k", [[0, 7077], [-1, 7077], [0.5, 7077.0]])
def test_what_is_said_of_a_column_shows_none_of_its_numbers(k: list[float]) -> None:
    # 7077 stands for how much data somebody holds.
    table = {"k": np.array(k), "successes": np.array([0, 7077])}
    with pytest.raises(ValueError, match=r"^k must be whole numbers") as error:
        users_from_table(table)
    assert not re.search(r"7\.?077", str(error.value))


# Hostile tables

MULTI = pd.MultiIndex.from_tuples([("who", "x"), ("won", "x")])
HOSTILE: dict[str, Callable[[], Any]] = {
    "None": lambda: None,
    "int": lambda: 7,
    "float": lambda: float("nan"),
    "list": lambda: [SECRET],
    "tuple": lambda: (SECRET,),
    "set": lambda: {SECRET},
    "generator": lambda: (x for x in [SECRET]),
    "bytes": lambda: SECRET.encode() + b".csv",
    "text": lambda: f"who,won\n{SECRET},1\n",
    "array": lambda: np.array([[SECRET, "1"]]),
    "structured array": lambda: np.array([(SECRET, 1)], [("who", "U9"), ("won", int)]),
    "series": lambda: pd.Series([SECRET], name="who"),
    "class": lambda: pd.DataFrame,
    "empty mapping": dict,
    "empty pandas": pd.DataFrame,
    "empty polars": pl.DataFrame,
    "empty pyarrow": lambda: pa.table({}),
    "names that are no text": lambda: {0: [SECRET], None: [1], pd.NA: [1]},
    "unequal columns": lambda: {"who": [SECRET] * 3, "won": [1, 0]},
    "two dimensions": lambda: {"who": np.array([[SECRET] * 2]), "won": [1]},
    "two dimensions of outcomes": lambda: {"who": [SECRET], "won": np.ones((1, 2))},
    "no dimension": lambda: {"who": np.array(SECRET), "won": [1]},
    "ragged": lambda: {"who": [[SECRET], [SECRET, 1]], "won": [1, 0]},
    "arrays in a list": lambda: {"who": [np.array([SECRET] * 2)], "won": [1]},
    "arrays as outcomes": lambda: {"who": [SECRET], "won": [np.ones(2)]},
    "frames in a list": lambda: {"who": [SECRET], "won": [pd.DataFrame({"a": [1]})]},
    "a scalar": lambda: {"who": SECRET, "won": 1},
    "a generator": lambda: {"who": (x for x in [SECRET]), "won": [1]},
    "a mapping": lambda: {"who": {SECRET: 1}, "won": [1]},
    "pandas, duplicates": lambda: pd.DataFrame(
        [[SECRET, SECRET, 1, 1]], columns=["who", "who", "won", "won"]
    ),
    "pyarrow, duplicates": lambda: pa.Table.from_arrays(
        [[SECRET], [SECRET], [1]], names=["who", "who", "won"]
    ),
    "MultiIndex": lambda: pd.DataFrame([[SECRET, 1]], columns=MULTI),
    "a lazy failure": lambda: pl.LazyFrame(
        {"who": [SECRET], "won": ["x"]}
    ).with_columns(pl.col("who").cast(pl.Int64)),
    "struct": lambda: pa.table({"who": [{"a": SECRET}], "won": [1]}),
    "text outcomes": lambda: pd.DataFrame({"who": ["a"], "won": [SECRET]}),
    "complex outcomes": lambda: {"who": [SECRET], "won": np.array([1 + 0j])},
    "timedelta outcomes": lambda: {"who": [SECRET], "won": np.array([1], "m8[s]")},
    "Decimal sNaN": lambda: {"who": [SECRET], "won": [Decimal("sNaN")]},
    "Decimal sNaN user": lambda: {"who": [Decimal("sNaN")], "won": [1]},
    "Decimal 1E40": lambda: {"who": [SECRET], "won": [Decimal("1E40")]},
    "Decimal Infinity": lambda: {"who": [SECRET], "won": [Decimal("Infinity")]},
}


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("kind", HOSTILE)
def test_a_hostile_table_is_refused_without_a_word_of_it(kind: str) -> None:
    names = r"\b(table|user|outcome)\b"
    with pytest.raises((TypeError, ValueError), match=names) as error:
        from_events(HOSTILE[kind]())
    assert type(error.value) in (TypeError, ValueError)
    assert SECRET not in "".join(format_exception(error.value, chain=True))
    with pytest.raises((TypeError, ValueError), match=r"\b(table|k)\b") as error:
        users_from_table(HOSTILE[kind]())
    assert type(error.value) in (TypeError, ValueError)
    assert SECRET not in str(error.value)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("name", ["k", "successes", "counts"])
@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_a_hostile_file_of_users_is_refused_without_a_word_of_it(
    tmp_path: Path, reader: str, name: str, suffix: str
) -> None:
    columns = {"k": [2], "successes": [1], "counts": [1], name: [SECRET]}
    pd.DataFrame(columns).to_csv(tmp_path / "log.csv", index=False)
    write_parquet(tmp_path, columns)
    with pytest.raises((TypeError, ValueError), match=f"^{name} must") as error:
        users_from_table(tmp_path / f"log.{suffix}")
    assert SECRET not in str(error.value)


# Good manners


def test_the_input_is_not_modified() -> None:
    log = {"who": np.array([5, 3, 5]), "won": np.array([1.0, 0.0, 0.0])}
    frame = pd.DataFrame(log)
    copies = {name: column.copy() for name, column in log.items()}
    assert from_events(log) == from_events(frame) == [(1, 0, 1), (2, 1, 1)]
    pd.testing.assert_frame_equal(frame, pd.DataFrame(copies))
    for name, column in log.items():
        assert np.array_equal(column, copies[name])
        assert column.flags.writeable
    table = {name: np.array(column) for name, column in COUNTED.items()}
    users_from_table(table)
    assert all(table[name].tolist() == COUNTED[name] for name in COUNTED)
    assert all(column.flags.writeable for column in table.values())


def test_the_order_of_events_does_not_matter() -> None:
    order = np.random.default_rng(0).permutation(10)
    log = {"who": np.array(TEXTS)[order], "won": np.array(OUTCOMES)[order]}
    assert from_events(log) == EXPECTED


def test_a_million_numeric_events_are_counted() -> None:
    rng = np.random.default_rng(0)
    who, won = rng.integers(0, 1000, 10**6), rng.random(10**6) < 0.3
    users = users_from_events({"who": who, "won": won}, user="who", outcome="won")
    assert users.n == len(np.unique(who))
    assert int((users.k * users.counts).sum()) == 10**6
    assert int((users.successes * users.counts).sum()) == int(won.sum())


@pytest.mark.slow
def test_importing_hetlit_imports_no_optional_library() -> None:
    code = (
        "import sys, hetlit, hetlit.users.events\n"
        "optional = 'pandas polars pyarrow duckdb matplotlib ipywidgets opendp'\n"
        "print([name for name in optional.split() if name in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "[]"


@pytest.mark.slow
def test_tables_in_memory_need_no_optional_library() -> None:
    code = (
        "import sys\n"
        "for name in 'pandas polars pyarrow duckdb'.split(): sys.modules[name] = None\n"
        "from hetlit import Users\n"
        "log = {'who': ['a', 'a'], 'won': [1, 0]}\n"
        "print(Users.from_events(log, user='who', outcome='won'))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "Users(n=1)"
