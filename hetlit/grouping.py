"""Grouping users by size, for speed.

Weights, variances and intervals depend on a user only through her size k, so they
are computed once per distinct size; the means of the users are then visited in
blocks of rows, without ever building a long array.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .check import Floats, Integers
from .model import Users

# Rows per block: large enough for numpy, small enough to stay in the cache.
BLOCK = 1 << 16
# A size table may take this many entries per row before sorting is cheaper.
DENSE = 4
# Significant bits of a size class: sizes of one class differ by less than 1/128.
BITS = 7
_SHIFT = 52 - BITS  # a float64 has 52 bits after the leading one


@dataclass(frozen=True)
class SizeGroups:
    """The users, counted by size.

    k : shape (groups,), one size per group, ascending
    counts : shape (groups,), users in each group
    position : turns the sizes of rows into positions in these arrays
    known : the sizes of all rows and their positions, where they were kept
    """

    k: Floats
    counts: Integers
    position: Callable[[Integers], Integers]
    known: tuple[Integers, NDArray[np.int16]] | None = None

    def positions(self, users: Users, rows: slice) -> NDArray[np.integer[Any]]:
        """Return the positions of some rows of a table."""
        if self.known is not None and self.known[0] is users.k:
            return self.known[1][rows]
        return self.position(users.k[rows])


def by_size(users: Users) -> SizeGroups:
    """Return the users grouped by their exact sizes."""
    largest = int(users.k.max())
    if largest > DENSE * len(users.k) + 1000:
        k, inverse = np.unique(users.k, return_inverse=True)
        counts = _count(inverse, users.counts, len(k))
        return SizeGroups(
            k.astype(np.float64), counts, lambda sizes: np.searchsorted(k, sizes)
        )
    table = _count(users.k, users.counts, largest + 1)
    k = np.flatnonzero(table)
    places = np.zeros(largest + 1, dtype=np.int64)
    places[k] = np.arange(len(k))
    return SizeGroups(k.astype(np.float64), table[k], lambda sizes: places[sizes])


def by_size_class(users: Users) -> SizeGroups:
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
        table[: cells.max() + 1] += _count(cells, users.counts[rows], 0)
    present = np.flatnonzero(table)
    places = np.zeros(len(table), dtype=np.int64)
    places[present] = np.arange(len(present))
    k = ((present + first) << _SHIFT).view(np.float64)
    for rows in blocks(users):
        classes[rows] = places[classes[rows]]
    return SizeGroups(
        k,
        table[present],
        lambda sizes: places[_class_of(sizes) - first],
        known=(users.k, classes),
    )


def classes_up_to(k_max: int) -> Floats:
    """Return the sizes of all classes that a user with up to k_max samples can have.

    Some of them lie between two whole numbers and stay empty.
    """
    first, last = _class_of(np.array([1, k_max]))
    return (np.arange(first, last + 1) << _SHIFT).view(np.float64)


def sum_over_users(
    users: Users,
    groups: SizeGroups,
    value: Callable[[Any, Floats], Floats],
) -> float:
    """Return the sum over users of value(position of her group, her mean)."""
    total = 0.0
    for rows in blocks(users):
        means = users.successes[rows] / users.k[rows]
        values = value(groups.positions(users, rows), means)
        total += float(np.sum(values * users.counts[rows]))
    return total


def blocks(users: Users) -> Iterator[slice]:
    """Yield slices that cover the rows of the table."""
    for start in range(0, len(users.k), BLOCK):
        yield slice(start, start + BLOCK)


def _class_of(sizes: Integers) -> Integers:
    """Return the exponent and the leading bits of each size, as one integer."""
    if sizes.max() >= 2**53:  # beyond which floats would round up
        sizes = np.where(sizes >= 2**53, sizes & ~0x7FF, sizes)
    return sizes.astype(np.float64).view(np.int64) >> _SHIFT


def _count(cells: Integers, counts: Integers, length: int) -> Integers:
    """Return the number of users in each cell, exactly."""
    if counts.strides == (0,):  # a list of users, one a row
        return np.bincount(cells.astype(np.intp, copy=False), minlength=length)
    table = np.zeros(max(length, int(cells.max()) + 1), dtype=np.int64)
    np.add.at(table, cells, counts)
    return table
