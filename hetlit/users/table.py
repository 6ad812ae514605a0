"""The table of users: how many samples each of them holds, and how many are ones.

In the model, user i holds k_i independent zeros and ones with a rate of her own, so
all that matters of them is how many are ones.

Chapter: The model.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from hetlit import check
from hetlit.check import MOST_DRAWN, MOST_SIZES, MOST_USERS, Floats, Integers
from hetlit.users.laws import ones_of_rows, ones_of_users


@dataclass(frozen=True, eq=False, repr=False)
class Users:
    """A table of users: row i is `counts[i]` users with `successes[i]` ones of `k[i]`.

    Users with the same k and the same successes are interchangeable in this
    model, so this table is all any estimator needs, and a billion users are as
    cheap as their distinct rows.

    Parameters
    ----------
    k : array of shape (rows,), whole numbers of at least 1
    successes : array of shape (rows,), whole numbers in [0, k]
    counts : array of shape (rows,), whole numbers of at least 1; one each if None

    The arrays are copied and can no longer be written to.

    Without `counts` the table is a list of users, `ordered` is true, and some
    algorithms break ties by the order of its rows: it must be public, that is, not
    depend on successes.  With `counts` the table is a histogram, and its order means
    nothing.

    At most 2^40 users: among more, one would hardly move a sum of floats.

    Errors never show an entry, because entries are private; nor does the repr show
    more than n, which is public.

    Chapter: The model.

    >>> users = Users(k=[4, 4, 1], successes=[1, 1, 0], counts=[1, 2, 5])
    >>> users
    Users(n=8)
    >>> users.compressed().counts
    array([5, 3])
    """

    k: Integers
    successes: Integers
    counts: Integers
    ordered: bool

    def __init__(self, k: Any, successes: Any, counts: Any = None) -> None:
        sizes = check.integers("k", k, 1)
        ones = check.integers("successes", successes, 0)
        check.same_length(k=sizes, successes=ones)
        if (ones > sizes).any():
            raise ValueError("successes must be at most k throughout")
        numbers = None
        if counts is not None:
            numbers = check.integers("counts", counts, 1)
            check.same_length(k=sizes, counts=numbers)
            # Compared as floats first: whole numbers could wrap around.
            if numbers.sum(dtype=np.float64) > 2.0 * MOST_USERS or (
                int(numbers.sum()) > MOST_USERS
            ):
                raise ValueError(
                    "counts must add up to at most 2**40 users: among more, one user "
                    "would hardly move a sum of floats, and the noise could not hide "
                    "what rounding shows"
                )
        self._keep(sizes, ones, numbers)

    def _keep(self, k: Integers, successes: Integers, counts: Integers | None) -> None:
        object.__setattr__(self, "ordered", counts is None)
        if counts is None:
            # One number seen from every row: it takes no memory.
            counts = np.broadcast_to(np.int64(1), k.shape)
        for name, array in (("k", k), ("successes", successes), ("counts", counts)):
            array.flags.writeable = False
            object.__setattr__(self, name, array)

    def __reduce__(self) -> tuple[Any, ...]:
        """Make copies and pickles anew: of the same kind, and not to be written."""
        return Users, (self.k, self.successes, None if self.ordered else self.counts)

    @classmethod
    def from_samples(cls, samples: Iterable[Any]) -> Users:
        """Return one user per array of zeros and ones.

        >>> Users.from_samples([[0, 1, 1], [1]]).successes
        array([2, 1])
        """
        if isinstance(samples, (str, bytes)) or not isinstance(samples, Iterable):
            raise TypeError(
                "samples must hold one array of zeros and ones per user, not be "
                f"of type {type(samples).__name__}"
            )
        k, successes = [], []
        for values in samples:
            try:
                array = np.asarray(values)
            except ValueError:  # a ragged list
                array = np.zeros((0, 0))
            if array.ndim != 1 or array.size == 0 or np.ma.is_masked(values):
                raise ValueError(
                    "samples must hold one non-empty one-dimensional array per user"
                )
            if array.dtype.kind not in "biuf" or not np.isin(array, (0, 1)).all():
                raise ValueError("samples must be zeros and ones throughout")
            k.append(array.size)
            successes.append(int(np.count_nonzero(array)))
        if not k:
            raise ValueError("samples is empty; at least one user is needed")
        return cls(k, successes)

    @classmethod
    def from_events(cls, table: Any, *, user: str, outcome: str) -> Users:
        """Return the users of an event log: one row per event, outcomes 0 or 1.

        `table` is a pandas, polars or pyarrow table, a mapping of columns, or a
        path to a CSV or Parquet file.  See `hetlit.users.events`.
        """
        from hetlit.users import events

        return events.users_from_events(table, user=user, outcome=outcome)

    @classmethod
    def from_table(cls, table: Any) -> Users:
        """Return the users of a table with columns k, successes and counts.

        Without a column `counts` every row is one user.  See `hetlit.users.events`.
        """
        from hetlit.users import events

        return events.users_from_table(table)

    @property
    def n(self) -> int:
        """The number of users."""
        return int(self.counts.sum())

    @property
    def means(self) -> Floats:
        """The mean of each row's users, successes / k."""
        return self.successes / self.k

    def compressed(self) -> Users:
        """Return the same users with equal rows merged, ordered by (k, successes)."""
        order = np.lexsort((self.successes, self.k))
        k, successes = self.k[order], self.successes[order]
        new = np.ones(len(k), dtype=bool)
        new[1:] = (k[1:] != k[:-1]) | (successes[1:] != successes[:-1])
        start = np.nonzero(new)[0]
        counts = np.add.reduceat(self.counts[order], start)
        return Users(k[start], successes[start], counts)

    def part(self, rows: Any, counts: Integers | None = None) -> Users:
        """Return some rows, in their order, of a table that has been checked before.

        `rows` is a mask or an array of positions.  `counts` says how many users of
        each of these rows take part, all if it is None.
        """
        part = object.__new__(Users)
        if counts is None and not self.ordered:
            counts = self.counts[rows]
        part._keep(self.k[rows], self.successes[rows], counts)
        return part

    def expanded(self) -> Users:
        """Return the same users, one row each; for small n."""
        if self.n > MOST_DRAWN:
            raise ValueError(f"n = {self.n} users are too many to expand")
        times = self.counts.astype(np.intp)  # 32 bits in a browser
        k, successes = (np.repeat(values, times) for values in (self.k, self.successes))
        # With counts, because the order of the rows need not be public.
        return Users(k, successes, None if self.ordered else np.ones_like(k))

    def capped(self, k_max: int, rng: np.random.Generator) -> Users:
        """Return the users with at most `k_max` samples each, a random choice of them.

        A list stays a list, in its order.  In a table with counts the users that are
        cut come last, merged by their successes; a row of a billion users is as cheap
        as one of a thousand.

        Where sizes are private they need a public bound, and this is how to keep it:
        `k_max`, at most 10^7.

        >>> rng = np.random.default_rng(0)
        >>> Users(k=[9, 2, 8], successes=[9, 1, 0]).capped(5, rng).successes
        array([5, 1, 0])
        """
        k_max = check.integer("k_max", k_max, 1)
        if k_max > MOST_SIZES:
            raise ValueError(f"k_max must be at most {MOST_SIZES}, not {k_max}")
        rng = check.generator("rng", rng)
        cut = self.k > k_max
        k, successes, counts = self.k[cut], self.successes[cut], self.counts[cut]
        if self.ordered:
            ones = self.successes.copy()
            ones[cut] = ones_of_users(k, successes, k_max, rng)
            return Users(np.minimum(self.k, k_max), ones)
        merged = ones_of_rows(k, successes, counts, k_max, rng)
        ones = np.flatnonzero(merged)
        return Users(
            np.concatenate((self.k[~cut], np.full(len(ones), k_max))),
            np.concatenate((self.successes[~cut], ones)),
            np.concatenate((self.counts[~cut], merged[ones])),
        )

    def __repr__(self) -> str:
        return f"Users(n={self.n})"


def check_users(users: Any) -> Users:
    """Return `users` if it is a `Users` table."""
    if not isinstance(users, Users):
        raise TypeError(f"users must be a hetlit.Users, not {type(users).__name__}")
    return users
