"""Grouping users by size, for speed.

Weights, variances and intervals depend on a user only through her size k, so they
are computed once per distinct size: `Sizes` is all that planning needs.  The means of
the users are then visited in blocks of rows, without ever building a long array:
`Groups` knows which row belongs to which size.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hetlit.check import Floats, Integers
from hetlit.users.table import Users

# Rows per block: large enough for numpy, small enough to stay in the cache.
BLOCK = 1 << 16
# A size table may take this many entries per row before sorting is cheaper.
DENSE = 4
# Significant bits of a size class: sizes of one class differ by less than 1/128.
BITS = 7
_SHIFT = 52 - BITS  # a float64 has 52 bits after the leading one

Positions = NDArray[np.integer[Any]]


@dataclass(frozen=True)
class Sizes:
    """How many users have which size: all that planning needs, and nothing more.

    k : shape (groups,), one size per group, ascending
    counts : shape (groups,), users in each group
    """

    k: Floats
    counts: Integers

    @property
    def n(self) -> int:
        """The number of users."""
        return int(self.counts.sum())


@dataclass(frozen=True)
class Groups:
    """A table of users, and which row belongs to which size.

    users : the table
    sizes : the sizes of its users
    positions : where the size of each of some rows stands among the sizes
    """

    users: Users
    sizes: Sizes
    positions: Callable[[slice], Positions]

    @property
    def all_positions(self) -> Positions:
        """The positions of all rows, for traces."""
        return self.positions(slice(None))

    def sum(self, value: Callable[[Any, Floats], Floats]) -> float:
        """Return the sum over users of value(position of her size, her mean)."""
        users, total = self.users, 0.0
        for rows in blocks(users):
            means = users.successes[rows] / users.k[rows]
            values = value(self.positions(rows), means)
            total += float(
                np.sum(values if users.ordered else values * users.counts[rows])
            )
        return total


def by_size(users: Users) -> Groups:
    """Return the users grouped by their exact sizes."""
    largest = int(users.k.max())
    if largest > DENSE * len(users.k) + 1000:
        k, inverse = np.unique(users.k, return_inverse=True)
        counts = _count(inverse, users, slice(None), len(k))
        return Groups(
            users,
            Sizes(k.astype(np.float64), counts),
            lambda rows: np.searchsorted(k, users.k[rows]),
        )
    table = _count(users.k, users, slice(None), largest + 1)
    k = np.flatnonzero(table)
    places = np.zeros(largest + 1, dtype=np.int64)
    places[k] = np.arange(len(k))
    sizes = Sizes(k.astype(np.float64), table[k])
    return Groups(users, sizes, lambda rows: places[users.k[rows]])


def by_size_class(users: Users) -> Groups:
    """Return the users grouped by their sizes, rounded down to eight leading bits.

    Sizes up to 255 stay exact, larger ones lose less than 1 in 128, and there are
    at most a few thousand classes however many sizes there are.  Rounding down
    treats a user as if she held slightly less data: her variance and interval are
    slightly overstated, never understated.
    """
    first = _class_of(np.ones(1, dtype=np.int64))[0]
    table = np.zeros(64 << BITS, dtype=np.int64)
    classes = np.empty(len(users.k), dtype=np.int16)
    for rows in blocks(users):
        cells = _class_of(users.k[rows]) - first
        classes[rows] = cells
        table[: cells.max() + 1] += _count(cells, users, rows, 0)
    present = np.flatnonzero(table)
    places = np.zeros(len(table), dtype=np.int64)
    places[present] = np.arange(len(present))
    k = ((present + first) << _SHIFT).view(np.float64)
    for rows in blocks(users):
        classes[rows] = places[classes[rows]]
    return Groups(users, Sizes(k, table[present]), lambda rows: classes[rows])


def classes_up_to(k_max: int) -> Floats:
    """Return the sizes of all classes that a user with up to k_max samples can have.

    Some of them lie between two whole numbers and stay empty.
    """
    first, last = _class_of(np.array([1, k_max]))
    return (np.arange(first, last + 1) << _SHIFT).view(np.float64)


def blocks(users: Users) -> Iterator[slice]:
    """Yield slices that cover the rows of the table."""
    for start in range(0, len(users.k), BLOCK):
        yield slice(start, start + BLOCK)


def _class_of(sizes: Integers) -> Integers:
    """Return the exponent and the leading bits of each size, as one integer."""
    if sizes.max() >= 2**53:  # beyond which floats would round up
        sizes = np.where(sizes >= 2**53, sizes & ~0x7FF, sizes)
    return sizes.astype(np.float64).view(np.int64) >> _SHIFT


def _count(cells: Integers, users: Users, rows: slice, length: int) -> Integers:
    """Return the number of users in each cell, exactly."""
    if users.ordered:  # one user a row
        return np.bincount(cells.astype(np.intp, copy=False), minlength=length)
    table = np.zeros(max(length, int(cells.max()) + 1), dtype=np.int64)
    np.add.at(table, cells, users.counts[rows])
    return table
