"""A small event log, the users in it, and how to write a log to a file."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from hetlit.users.events import users_from_events
from tests.rows import rows_of

Rows = list[tuple[int, int, int]]
USERS = [7, 3, 7, 7, -2, 3, 9, 10**12, 9, 7]
TEXTS = ["ann", "bob", "ann", "ann", "cy", "bob", "dé", "O'Neil", "dé", "ann"]
OUTCOMES = [1, 0, 0, 1, 1, 1, 0, 0, 0, 0]
EXPECTED = [(1, 0, 1), (1, 1, 1), (2, 0, 1), (2, 1, 1), (4, 2, 1)]
BAD_OUTCOME = "outcome: column 'won' must hold only 0 and 1"
SECRET = "SECRET-7"


def brute_force(users: list[Any], outcomes: list[Any]) -> Rows:
    sizes = Counter(users)
    ones = Counter(who for who, what in zip(users, outcomes, strict=True) if what)
    rows = Counter((sizes[who], ones[who]) for who in sizes)
    return [(*row, rows[row]) for row in sorted(rows)]


def from_events(table: Any) -> Rows:
    return rows_of(users_from_events(table, user="who", outcome="won"))


def write_csv(folder: Path, text: str, name: str = "log.csv") -> Path:
    path = folder / name
    path.write_bytes(text.encode())
    return path


def write_parquet(folder: Path, columns: Any, name: str = "log.parquet") -> Path:
    path = folder / name
    pq.write_table(pa.table(columns), path)
    return path
