"""Files of events: every reader agrees, and what cannot be read is refused."""

from __future__ import annotations

import sys
import time
from contextlib import suppress
from decimal import Decimal
from pathlib import Path
from traceback import format_exception
from typing import Any

import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hetlit.users import files
from hetlit.users.events import users_from_events, users_from_table
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


@pytest.mark.parametrize("who", [USERS, TEXTS], ids=["whole", "text"])
@pytest.mark.parametrize("outcome", [int, float, bool])
def test_files_agree_with_brute_force(
    tmp_path: Path, reader: str, who: list[Any], outcome: type
) -> None:
    log = {"other": list("abcdefghij"), "won": list(map(outcome, OUTCOMES)), "who": who}
    pd.DataFrame(log).to_csv(tmp_path / "log.csv", index=False)
    assert from_events(tmp_path / "log.csv") == EXPECTED
    assert from_events(str(write_parquet(tmp_path, log))) == EXPECTED


field = st.text(st.characters(codec="utf-8", exclude_characters="\0"), min_size=1)


@pytest.mark.slow
@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(events=st.lists(st.tuples(field, st.integers(0, 1)), min_size=1, max_size=20))
def test_random_text_in_csv_reads_the_same_with_and_without_duckdb(
    tmp_path: Path, events: list[tuple[str, int]]
) -> None:
    quoted = ['"' + who.replace('"', '""') + f'",{won}' for who, won in events]
    path = write_csv(tmp_path, "\n".join(["who,won", *quoted]) + "\n")
    expected = brute_force(*(list(column) for column in zip(*events, strict=True)))
    assert from_events(path) == expected
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(sys.modules, "duckdb", None)
        assert from_events(path) == expected


# What the text of a CSV file means


def test_in_csv_leading_zeros_make_another_user(tmp_path: Path, reader: str) -> None:
    path = write_csv(tmp_path, "who,won\n1,0\n01,1\n1,1\nNULL,1\nnan,1\n 1,1\n")
    assert from_events(path) == [(1, 1, 4), (2, 1, 1)]


@pytest.mark.parametrize(
    "text",
    [
        "who,won\r\na,1\r\nb,0\r\n",
        "who,won\ra,1\rb,0\r",
        "who,won\na,1\n\n\nb,0",
        "\ufeffwho,won\na,1\nb,0\n",
        '"who","won"\n"a","1"\n"b","0"\n',
        "who,x y,won\na,,1\nb,é,0\n",
        'won,who\n1,"a,\nline"\n0,"a ""quote"""\n',
        "who,won\na,true\nb,False\n",
        "who,won\na, 1\nb,0 \n",
        "who,won\na,1.000e+00\nb,0.000e+00\n",
        "who,won\na,+1\nb,-0.0\n",
        "WHO,who,Who,won\nx,a,y,1\nx,b,y,0\n",
    ],
)
def test_csv_dialects(tmp_path: Path, reader: str, text: str) -> None:
    assert from_events(write_csv(tmp_path, text)) == [(1, 0, 1), (1, 1, 1)]


@pytest.mark.parametrize(
    "text",
    ["2", "-1", "0.5", "", "nan", "inf", "yes", "t", "0x1", "1e", "1 0", "١", "--1"],
)
def test_other_outcomes_in_csv_are_refused(
    tmp_path: Path, reader: str, text: str
) -> None:
    path = write_csv(tmp_path, f"who,won\na,1\nb,{text}\n")
    with pytest.raises(ValueError, match=BAD_OUTCOME):
        from_events(path)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "\n\nwho,won\na,1\n",
        "who,won,who\na,1,b\n",
        "who,won\na\n",
        "who,won\na,1,2\n",
        'who,won\na,"1\n',
        'who,won\n"a"b,1\n',
        "who,won\n  \na,1\n",
    ],
)
def test_malformed_csv_is_refused(tmp_path: Path, reader: str, text: str) -> None:
    with pytest.raises(ValueError, match=r"table: cannot read 'log\.csv'"):
        from_events(write_csv(tmp_path, text))


def test_csv_that_is_not_utf8_is_refused(tmp_path: Path, reader: str) -> None:
    path = tmp_path / "log.csv"
    path.write_bytes(b"who,won\n\xff,1\n")
    with pytest.raises(ValueError, match=r"table: cannot read 'log\.csv'"):
        from_events(path)


@pytest.mark.parametrize("cut", ["not Parquet", "no end", "no start", "noise"])
def test_a_damaged_parquet_file_is_refused(
    tmp_path: Path, reader: str, cut: str
) -> None:
    path = write_parquet(tmp_path, {"who": ["SECRET-7"] * 100, "won": [1] * 100})
    data = path.read_bytes()
    middle = len(data) // 2
    noise = data[:8] + bytes(100) + data[108:]
    damaged = {
        "not Parquet": b"who,won\nSECRET-7,1\n",
        "no end": data[:middle],
        "no start": data[middle:],
        "noise": noise,
    }
    path.write_bytes(damaged[cut])
    with pytest.raises(ValueError, match=r"table: cannot read 'log\.parquet'") as error:
        from_events(path)
    assert "SECRET-7" not in str(error.value)
    assert error.value.__cause__ is None
    assert error.value.__suppress_context__


def test_a_panic_of_a_reader_is_an_error_of_ours(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Panic(BaseException):
        """As polars raises, on some damaged files."""

    def scan(*_: Any, **__: Any) -> None:
        raise Panic("SECRET-7")

    monkeypatch.setitem(sys.modules, "duckdb", None)
    monkeypatch.setattr(pl, "scan_parquet", scan)
    path = write_parquet(tmp_path, {"who": [1], "won": [1]})
    with pytest.raises(ValueError, match=r"it may be damaged \(Panic\)"):
        from_events(path)


@pytest.mark.parametrize("stop", [KeyboardInterrupt, MemoryError])
def test_an_interruption_stays_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, stop: type[BaseException]
) -> None:
    def scan(*_: Any, **__: Any) -> None:
        raise stop

    monkeypatch.setitem(sys.modules, "duckdb", None)
    monkeypatch.setattr(pl, "scan_parquet", scan)
    with pytest.raises(stop):
        from_events(write_parquet(tmp_path, {"who": [1], "won": [1]}))


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_a_file_that_may_not_be_read_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, suffix: str
) -> None:
    def forbidden(*_: Any, **__: Any) -> None:
        raise PermissionError(13, "Permission denied", "log")

    path = write_csv(tmp_path, "who,won\na,1\n", f"log.{suffix}")
    monkeypatch.setattr(Path, "open", forbidden)
    for read in (from_events, users_from_table):
        with pytest.raises(ValueError, match=r"table: cannot read .*Permission denied"):
            read(path)


@pytest.mark.parametrize(
    "path",
    ["a" * 5000 + ".csv", "a" * 5000, "a\0b.csv", "a\0b", "who,won\nSECRET-7,1\n"],
    ids=["long", "long, no suffix", "NUL", "NUL, no suffix", "a log"],
)
def test_a_path_that_cannot_be_one_is_refused(path: str) -> None:
    for read in (from_events, users_from_table):
        for table in (path, Path(path)):
            with pytest.raises(ValueError, match=r"^table") as error:
                read(table)
            assert len(str(error.value)) < 300
            assert "SECRET-7" not in str(error.value)


@pytest.mark.parametrize("order", ["who,won", "won,who"])
@pytest.mark.parametrize("first", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("second", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("lines", [3, 50_000])
def test_lines_may_end_in_several_ways(
    tmp_path: Path, order: str, first: str, second: str, lines: int
) -> None:
    names = order.split(",")
    text = order + first
    for line in range(lines):
        event = {"who": f"u{line % 3}", "won": str(line % 2)}
        end = first if line < lines - 2 else second
        text += ",".join(event[name] for name in names) + end
    path = write_csv(tmp_path, text)
    expected = brute_force([x % 3 for x in range(lines)], [x % 2 for x in range(lines)])
    assert from_events(path) == expected
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(sys.modules, "duckdb", None)
        assert from_events(path) == expected


@pytest.mark.parametrize("edge", [2**20 - 1, 2**20, 2**20 + 1])
def test_a_lone_carriage_return_is_found_at_the_edge_of_a_block(
    tmp_path: Path, edge: int
) -> None:
    start = "x" * (edge - 1)
    for end in ("", "\n", "\r\n", "\r\n\r\n"):
        assert not files.has_lone_return(write_csv(tmp_path, start + end))
    for end in ("\r", "\r\r\n", "\n\r", "\r\n\r", "\ry\n", "\r\n\ry\n"):
        assert files.has_lone_return(write_csv(tmp_path, start + end))


ends = st.sampled_from(["\n", "\r\n", "\r", "\n\n"])
cells = st.sampled_from(["a", '"a"', '"x\ny"', '"x\r"', '""', "", " a", 'b"', '"c'])
fields_won = st.sampled_from(["0", "1", "true", '"1"', "1,", "1,2", "", "\t1", "1_0"])


@pytest.mark.slow
@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(lines=st.lists(st.tuples(cells, fields_won, ends), max_size=5), end=ends)
def test_odd_csv_reads_the_same_with_and_without_duckdb(
    tmp_path: Path, lines: list[tuple[str, str, str]], end: str
) -> None:
    text = f"who,won{end}" + "".join(f"{who},{won}{end}" for who, won, end in lines)
    path = write_csv(tmp_path, text)

    def outcome() -> Any:
        try:
            return from_events(path)
        except ValueError as error:
            return str(error).split(":")[0]

    with_duckdb = outcome()
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(sys.modules, "duckdb", None)
        assert outcome() == with_duckdb


def test_a_hundred_thousand_columns_are_read_at_once(
    tmp_path: Path, reader: str
) -> None:
    names = [*(f"c{place}" for place in range(10**5)), "who", "won"]
    values = ["0"] * 10**5 + ["a", "1"]
    path = write_csv(tmp_path, ",".join(names) + "\n" + ",".join(values) + "\n")
    start = time.process_time()
    assert from_events(path) == [(1, 1, 1)]
    with pytest.raises(ValueError, match=r"'c19'\] and 99982 more$") as error:
        users_from_events(path, user="nobody", outcome="won")
    assert time.process_time() - start < 10
    assert len(str(error.value)) < 400


@pytest.mark.parametrize("suffix", ["csv", "CSV", "parquet", "Parquet"])
@pytest.mark.parametrize("name", ["a[1]", "a*", "a?", "it's", "a b", "who=5"])
def test_a_path_means_one_file_and_no_pattern(
    tmp_path: Path, reader: str, suffix: str, name: str
) -> None:
    folder = tmp_path / name
    folder.mkdir()
    log = {"who": ["a", "a"], "won": [1, 0]}
    for file, columns in ((name, log), ("a1", {"who": ["b"], "won": [0]})):
        path = folder / f"{file}.{suffix}"
        if suffix.lower() == "csv":
            pd.DataFrame(columns).to_csv(path, index=False)
        else:
            pq.write_table(pa.table(columns), path)
    assert from_events(folder / f"{name}.{suffix}") == [(2, 1, 1)]


def test_parquet_columns_that_differ_in_case_are_never_confused(tmp_path: Path) -> None:
    columns = {"who": USERS, "WHO": [1] * 10, "won": OUTCOMES}
    path = write_parquet(tmp_path, columns)
    with suppress(ValueError):  # the first versions of DuckDB refuse such a file
        assert from_events(path) == EXPECTED
    with pytest.raises(ValueError, match=r"column 'Who' is missing|duplicate column"):
        users_from_events(tmp_path / "log.parquet", user="Who", outcome="won")


@pytest.mark.parametrize("name", ["log.tsv", "log.csv.gz", "log", "", "log.json"])
def test_other_files_are_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(ValueError, match=r"table must be a \.csv or \.parquet file"):
        from_events(str(tmp_path / name) if name else "")


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_a_file_that_is_not_there_is_named(tmp_path: Path, suffix: str) -> None:
    (tmp_path / f"folder.{suffix}").mkdir()
    for name in (f"nowhere.{suffix}", f"folder.{suffix}"):
        with pytest.raises(ValueError, match=f"there is no file .*{name}"):
            from_events(tmp_path / name)


def test_parquet_without_a_reader_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write_parquet(tmp_path, {"who": [1], "won": [1]})
    for module in ("duckdb", "polars", "pyarrow.parquet", "pandas"):
        monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(ImportError, match="pip install duckdb, polars or pyarrow"):
        from_events(path)


def test_pandas_is_the_last_reader_of_parquet(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write_parquet(tmp_path, {"who": USERS, "won": OUTCOMES})
    frame = pd.read_parquet(path)
    for module in ("duckdb", "polars", "pyarrow.parquet"):
        monkeypatch.setitem(sys.modules, module, None)
    monkeypatch.setattr(pd, "read_parquet", lambda given: frame)
    assert from_events(path) == EXPECTED


def test_large_numbers_in_csv_are_exact(tmp_path: Path, reader: str) -> None:
    rows = f"{2**53 + 3},{2**53 + 1},7\n{2**53 + 1},1.0,{2**39 + 1}\n"
    path = write_csv(tmp_path, "k,successes,counts\n" + rows)
    expected = [(2**53 + 3, 2**53 + 1, 7), (2**53 + 1, 1, 2**39 + 1)]
    assert rows_of(users_from_table(path)) == expected


def test_decimals_in_parquet_keep_their_digits(tmp_path: Path, reader: str) -> None:
    k = pa.array([Decimal(2**53 + 1), Decimal(5)], pa.decimal128(38, 0))
    path = write_parquet(tmp_path, {"k": k, "successes": [1, 1]})
    assert users_from_table(path).k.tolist() == [2**53 + 1, 5]
    path = write_parquet(tmp_path, {"k": k[:0], "successes": pa.array([], pa.int64())})
    with pytest.raises(ValueError, match="table has no rows"):
        users_from_table(path)


HOSTILE_CSV = {
    "empty": "",
    "no events": "who,won\n",
    "duplicates": f"who,who,won\n{SECRET},1,1\n",
    "too few fields": f"who,won\n{SECRET}\n",
    "too many fields": f"who,won\n{SECRET},1,2\n",
    "an open quote": f'who,won\na,1\n"{SECRET},1\n',
    "text after a quote": f'who,won\na,1\n"{SECRET}"b,1\n',
    "an outcome": f"who,won\na,{SECRET}\n",
    "no outcome": f"who,won\n{SECRET},\n",
    "no user": f"who,won\n{SECRET},1\n,1\n",
    "a long line": f"who,won\n{SECRET}{'x' * 3 * 10**6},1\n",
    "not UTF-8": f"who,won\n{SECRET},1\n\udcff,1\n",
}


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("kind", HOSTILE_CSV)
def test_a_hostile_csv_is_refused_without_a_word_of_it(
    tmp_path: Path, reader: str, kind: str
) -> None:
    path = tmp_path / "log.csv"
    path.write_bytes(HOSTILE_CSV[kind].encode(errors="surrogateescape"))
    with pytest.raises(ValueError, match=r"\b(table|user|outcome)\b") as error:
        from_events(path)
    assert type(error.value) is ValueError
    assert SECRET not in "".join(format_exception(error.value, chain=True))
