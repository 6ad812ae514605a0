"""The rows of a table of users, to compare tables."""

from __future__ import annotations

from hetlit import Users


def rows_of(users: Users) -> list[tuple[int, int, int]]:
    columns = (users.k, users.successes, users.counts)
    return list(zip(*(column.tolist() for column in columns), strict=True))
