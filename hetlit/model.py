"""The model: users, where their rates come from, and how noisy a user's mean is.

A meta-distribution on [0, 1] with mean p and variance var_p gives every user her
own rate p_i.  User i then holds k_i independent zeros and ones with rate p_i, and
all that matters of them is how many are ones.

Chapter: The model.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from . import check
from .check import Floats, Integers
from .populations import MetaDistribution

# The largest size that users can be cut to.
MOST_DRAWN = 10**7
# NumPy draws hypergeometric numbers from fewer samples than this ...
HYPERGEOMETRIC_LIMIT = 10**9
# ... for rows of at most this many users, and this many users at a time.
FEW, DRAWS = 100, 1 << 20


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

    Without `counts` the table is a list of users, and some algorithms break ties by
    the order of its rows: it must be public, that is, not depend on successes.  With
    `counts` the table is a histogram, and its order means nothing.

    Chapter: The model.

    >>> users = Users(k=[4, 4, 1], successes=[1, 1, 0], counts=[1, 2, 5])
    >>> users
    Users(n=8, rows=3, samples=17)
    >>> users.compressed().counts
    array([5, 3])
    """

    k: Integers
    successes: Integers
    counts: Integers

    def __init__(self, k: Any, successes: Any, counts: Any = None) -> None:
        sizes = check.integers("k", k, 1)
        ones = check.integers("successes", successes, 0)
        check.same_length(k=sizes, successes=ones)
        if (ones > sizes).any():
            row = int(np.argmax(ones > sizes))
            raise ValueError(
                f"successes must be at most k; row {row} has successes {ones[row]} "
                f"of k {sizes[row]}"
            )
        numbers = None
        if counts is not None:
            numbers = check.integers("counts", counts, 1)
            check.same_length(k=sizes, counts=numbers)
            if float(numbers.sum(dtype=np.float64)) >= 2.0**62:
                raise ValueError("counts must add up to less than 2**62 users")
        self._keep(sizes, ones, numbers)

    def _keep(self, k: Integers, successes: Integers, counts: Integers | None) -> None:
        if counts is None:
            # One number seen from every row: it takes no memory.
            counts = np.broadcast_to(np.int64(1), k.shape)
        for name, array in (("k", k), ("successes", successes), ("counts", counts)):
            array.flags.writeable = False
            object.__setattr__(self, name, array)

    @classmethod
    def from_samples(cls, samples: Iterable[Any]) -> Users:
        """Return one user per array of zeros and ones.

        >>> Users.from_samples([[0, 1, 1], [1]]).successes
        array([2, 1])
        """
        k, successes = [], []
        for user, values in enumerate(samples):
            array = np.asarray(values)
            if array.ndim != 1 or array.size == 0:
                raise ValueError(
                    f"samples must hold one non-empty one-dimensional array per "
                    f"user; user {user} has shape {array.shape}"
                )
            if array.dtype.kind not in "biuf" or not np.isin(array, (0, 1)).all():
                raise ValueError(
                    f"samples must be zeros and ones; user {user} has {values!r}"
                )
            k.append(array.size)
            successes.append(int(array.sum()))
        return cls(k, successes)

    @classmethod
    def from_events(cls, table: Any, *, user: str, outcome: str) -> Users:
        """Return the users of an event log: one row per event, outcomes 0 or 1.

        `table` is a pandas, polars or pyarrow table, a mapping of columns, or a
        path to a CSV or Parquet file.  See `hetlit.events`.
        """
        from . import events

        return events.users_from_events(table, user=user, outcome=outcome)

    @classmethod
    def from_table(cls, table: Any) -> Users:
        """Return the users of a table with columns k, successes and counts.

        Without a column `counts` every row is one user.  See `hetlit.events`.
        """
        from . import events

        return events.users_from_table(table)

    @property
    def n(self) -> int:
        """The number of users."""
        return int(self.counts.sum())

    @property
    def is_list(self) -> bool:
        """Whether the table was made without counts, one user a row, in order."""
        return self.counts.strides == (0,)

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
        if counts is None and not self.is_list:
            counts = self.counts[rows]
        part._keep(self.k[rows], self.successes[rows], counts)
        return part

    def expanded(self) -> Users:
        """Return the same users, one row each; for small n."""
        if self.n > 10**8:
            raise ValueError(f"n = {self.n} users are too many to expand")
        times = self.counts.astype(np.intp)  # 32 bits in a browser
        k, successes = (np.repeat(values, times) for values in (self.k, self.successes))
        # With counts, because the order of the rows need not be public.
        return Users(k, successes, None if self.is_list else np.ones_like(k))

    def capped(self, k_max: int, rng: np.random.Generator) -> Users:
        """Return the users with at most `k_max` samples each, a random choice of them.

        If every row that is cut is one user with less than a billion samples, rows
        stay where they are; otherwise the users that are cut come last, merged by
        their successes.  A row of a billion users is as cheap as one of a thousand.

        Where sizes are private they need a public bound, and this is how to keep it.

        >>> rng = np.random.default_rng(0)
        >>> Users(k=[9, 2, 8], successes=[9, 1, 0]).capped(5, rng).successes
        array([5, 1, 0])
        """
        k_max = check.integer("k_max", k_max, 1)
        rng = check.generator("rng", rng)
        cut = self.k > k_max
        if not cut.any():
            return self
        if k_max > MOST_DRAWN:
            raise ValueError(
                f"k_max must be at most {MOST_DRAWN} to cut users to it, not {k_max}"
            )
        kept = ~cut
        k, successes, counts = self.k[cut], self.successes[cut], self.counts[cut]
        if (counts == 1).all() and int(k.max()) < HYPERGEOMETRIC_LIMIT:
            ones = self.successes.copy()
            ones[cut] = rng.hypergeometric(successes, k - successes, k_max)
            return Users(np.minimum(self.k, k_max), ones, self.counts)
        merged = _subsampled(k, successes, counts, k_max, rng)
        ones = np.flatnonzero(merged)
        return Users(
            np.concatenate((self.k[kept], np.full(len(ones), k_max))),
            np.concatenate((self.successes[kept], ones)),
            np.concatenate((self.counts[kept], merged[ones])),
        )

    def __repr__(self) -> str:
        samples = int((self.k * self.counts.astype(object)).sum())
        return f"Users(n={self.n}, rows={len(self.k)}, samples={samples})"


def _subsampled(
    k: Integers,
    successes: Integers,
    counts: Integers,
    size: int,
    rng: np.random.Generator,
) -> Integers:
    """Return how many users have 0, 1, ..., `size` ones among `size` of their samples.

    Rows of few users are drawn one by one, rows of many in one multinomial draw.
    """
    from .subsample import hypergeometric_law

    merged = np.zeros(size + 1, dtype=np.int64)
    few = (counts <= FEW) & (k < HYPERGEOMETRIC_LIMIT)
    rows = np.flatnonzero(few)
    ends = np.cumsum(counts[few])
    steps = np.arange(DRAWS, int(ends[-1]) if rows.size else 0, DRAWS)
    for part in np.split(rows, np.searchsorted(ends, steps)):
        each = np.repeat(part, counts[part].astype(np.intp))
        ones = rng.hypergeometric(successes[each], k[each] - successes[each], size)
        merged += np.bincount(ones.astype(np.intp), minlength=size + 1)
    for row in np.flatnonzero(~few):
        least, law = hypergeometric_law(int(k[row]), int(successes[row]), size)
        # The likeliest outcome comes last and takes what rounding leaves over.
        order = np.argsort(law)
        merged[least + order] += rng.multinomial(counts[row], law[order])
    return merged


def user_variance(k: Any, p: float, var_p: float) -> Any:
    """Return the variance of the mean of a user with k samples.

    It is p(1-p)/k + (1 - 1/k) var_p: coin tosses that average out, and a spread
    between users that does not.

    Parameters
    ----------
    k : a number or an array of numbers of at least 1
    p : the population mean, in [0, 1]
    var_p : the variance of the users' rates, in [0, p(1-p)]

    Paper: Lemma `lem.sigi`.  Chapter: The model.

    >>> user_variance(np.array([1, 10, 1000]), p=0.3, var_p=0.02).round(5)
    array([0.21   , 0.039  , 0.02019])
    """
    p, var_p = check.mean_and_variance(p, var_p)
    sizes = np.asarray(k)
    if sizes.dtype.kind not in "iuf":
        raise TypeError(f"k must hold numbers, not {k!r}")
    sizes = sizes.astype(np.float64)
    if not (np.isfinite(sizes) & (sizes >= 1)).all():
        raise ValueError(f"k must be finite and at least 1, not {k!r}")
    variances = variance_of_mean(sizes, p * (1.0 - p), var_p)
    return float(variances) if variances.ndim == 0 else variances


def variance_of_mean(k: Floats, q: float, var_p: float) -> Floats:
    """Return var_p + (q - var_p)/k, the lemma with q standing for p(1-p).

    For estimators that put a floor under q; it falls with k while var_p <= q.
    """
    return np.asarray(var_p + (q - var_p) / k)


def sample_users(meta: MetaDistribution, k: Any, rng: np.random.Generator) -> Users:
    """Return users with sizes `k`, their rates drawn from `meta`.

    >>> from hetlit import Constant
    >>> sample_users(Constant(0.5), [3, 2], np.random.default_rng(0)).n
    2
    """
    sizes = check.integers("k", k, 1)
    rng = check.generator("rng", rng)
    if not hasattr(meta, "sample"):
        raise TypeError(f"meta must be a meta-distribution, not {meta!r}")
    rates = meta.sample(len(sizes), rng)
    return Users(sizes, rng.binomial(sizes, rates))
