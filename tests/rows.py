"""Rows of tables of users: drawn at random, and read back to compare tables."""

from __future__ import annotations

from hypothesis import strategies as st

from hetlit import Users


def tables(
    fewest: int = 1, most: int = 20, *, largest: int = 30, counts: int = 4
) -> st.SearchStrategy[Users]:
    """Tables of so many rows; each has a size up to `largest`, up to `counts` users."""
    row = st.integers(1, largest).flatmap(
        lambda k: st.tuples(st.just(k), st.integers(0, k), st.integers(1, counts))
    )
    return st.lists(row, min_size=fewest, max_size=most).map(
        lambda rows: Users(*(list(column) for column in zip(*rows, strict=True)))
    )


def rows_of(users: Users) -> list[tuple[int, int, int]]:
    columns = (users.k, users.successes, users.counts)
    return list(zip(*(column.tolist() for column in columns), strict=True))
