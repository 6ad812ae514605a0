"""Random samples of users, and random users, drawn from rows that stay together.

Which of her samples a user gives, or which of several equal users take part, is
drawn independently of the samples' values.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hetlit import check
from hetlit.check import HYPERGEOMETRIC_LIMIT, MOST_SINGLE_USERS, Floats, Integers
from hetlit.users.groups import blocks
from hetlit.users.laws import FEW, ones_of_row, ones_of_users
from hetlit.users.table import Users


def split_by_size(
    users: Users, most: int, least: int, rng: np.random.Generator
) -> tuple[Users, Users, Users]:
    """Return (the `most` users with most samples, the others, the `least` with least).

    Where a boundary falls among users of one size, a list of users is split in the
    order of its rows, which must be public.  A table with counts has no such order:
    `Users.compressed` sorts rows by successes, and cohorts chosen by successes would
    be neither fair nor private.  There chance decides.
    """
    if users.ordered:
        ordered = np.partition(users.k, (least, users.n - most))
        top = _largest(users.k, most, ordered[users.n - most])
        kept = _largest(users.k, users.n - least, ordered[least])
        return users.part(top), users.part(kept & ~top), users.part(~kept)
    counts = _leading(-users.k, users.counts, most, rng)
    top_users, rest = _with_counts(users, counts)
    bottom, middle = _with_counts(rest, _leading(rest.k, rest.counts, least, rng))
    return top_users, middle, bottom


def size_cohorts(
    users: Users, variance_users: int, rng: np.random.Generator
) -> tuple[Users, Users, Users]:
    """Return the cohorts of the paper's algorithms: most samples, others, fewest.

    `variance_users` with most samples, from 2 to 10^6, and a tenth of all with fewest.
    """
    most = check_variance_users(variance_users)
    n, least = users.n, users.n // 10
    if least < 1:
        raise ValueError(f"users must be at least 10, not {n}")
    if most + least >= n:
        raise ValueError(
            f"users: of {n}, the variance cohort takes {most} and the mean cohort "
            f"{least}, which leaves nobody for the final one; more users or a larger "
            f"epsilon are needed"
        )
    return split_by_size(users, most, least, rng)


def check_variance_users(variance_users: int) -> int:
    """Return the size of the cohort with most samples, checked."""
    most = check.integer("variance_users", variance_users, 2)
    if most > MOST_SINGLE_USERS:
        raise ValueError(
            f"variance_users must be at most {MOST_SINGLE_USERS}, not {most}; by "
            "default it is about log(n)/epsilon"
        )
    return most


def most_data(users: Users, number: int, rng: np.random.Generator) -> tuple[Users, int]:
    """Return the `number` users with most samples, and the fewest any of them holds.

    Of users with exactly that size a random choice takes part.
    """
    chosen = _leading(-users.k, users.counts, number, rng)
    rows = np.flatnonzero(chosen)
    most = users.part(rows, chosen[rows])
    return most, int(most.k.min())


def random_division(
    users: Users, number: int, rng: np.random.Generator
) -> tuple[Users, Users]:
    """Return `number` random users, and the others.

    Users of a row are interchangeable, so only how many of them go where is drawn.
    """
    if users.ordered:
        chosen = _random_rows(len(users.k), number, rng)
        return users.part(chosen), users.part(~chosen)
    return _with_counts(users, random_users(users.counts, number, rng))


def _largest(sizes: Integers, number: int, least: int) -> NDArray[np.bool_]:
    """Return a mask of the `number` largest sizes, the first rows where they tie.

    `least` is the smallest size among them.
    """
    chosen = sizes > least
    tied = np.flatnonzero(sizes == least)
    chosen[tied[: number - np.count_nonzero(chosen)]] = True
    return np.asarray(chosen)


def _leading(
    keys: Integers, counts: Integers, number: int, rng: np.random.Generator
) -> Integers:
    """Return how many users of each row are among the `number` with least keys."""
    order = np.argsort(keys, kind="stable")
    last = np.searchsorted(np.cumsum(counts[order]), number)
    boundary = keys[order[last]]
    taken = np.where(keys < boundary, counts, 0)
    tied = np.flatnonzero(keys == boundary)
    taken[tied] = random_users(counts[tied], number - int(taken.sum()), rng)
    return np.asarray(taken)


def _with_counts(users: Users, counts: Integers) -> tuple[Users, Users]:
    """Return `counts` users of each row, and the others."""
    chosen, others = (
        users.part(rows, numbers[rows])
        for numbers in (counts, users.counts - counts)
        for rows in [np.flatnonzero(numbers)]
    )
    return chosen, others


def random_users(counts: Integers, number: int, rng: np.random.Generator) -> Integers:
    """Return how many of a row's `counts` users are in a random set of `number`.

    Exact for any counts: tossing a coin for each user gives a random set of nearly
    the right size, and moving a few random users in or out makes it exact.
    """
    chosen = rng.binomial(counts, number / counts.sum())
    excess = int(chosen.sum()) - number
    pool = chosen if excess > 0 else counts - chosen
    moved = _distinct(int(pool.sum()), abs(excess), rng)
    rows = np.searchsorted(np.cumsum(pool), moved, side="right")
    moves = np.bincount(rows, minlength=len(counts))
    return np.asarray(chosen - moves if excess > 0 else chosen + moves)


def _distinct(below: int, number: int, rng: np.random.Generator) -> Integers:
    """Return a random set of `number` whole numbers from 0 to below - 1."""
    if below <= np.iinfo(np.intp).max:
        return rng.choice(below, number, replace=False, shuffle=False)
    return floyd(below, number, rng)  # integers of 32 bits, where choice never ends


def floyd(below: int, number: int, rng: np.random.Generator) -> Integers:
    """Return what `rng.choice` without replacement does, maybe in another order.

    By Floyd's algorithm: the draw from 0 to `highest`, or that itself if the draw has
    been taken before.
    """
    highest = np.arange(below - number, below, dtype=np.int64)
    draws = rng.integers(highest, endpoint=True)
    chosen: set[int] = set()
    for draw, otherwise in zip(draws.tolist(), highest.tolist(), strict=True):
        chosen.add(otherwise if draw in chosen else draw)
    return np.fromiter(chosen, dtype=np.int64, count=number)


def _random_rows(rows: int, number: int, rng: np.random.Generator) -> NDArray[np.bool_]:
    """Return a random set of `number` rows, as a mask; `random_users` with counts 1."""
    chosen = rng.random(rows, dtype=np.float32) < number / rows
    excess = int(np.count_nonzero(chosen)) - number
    pool = np.flatnonzero(chosen if excess > 0 else ~chosen)
    moved = rng.choice(pool, abs(excess), replace=False, shuffle=False)
    chosen[moved] = excess < 0
    return np.asarray(chosen)


def subsampled_ones(users: Users, size: int, rng: np.random.Generator) -> float:
    """Return the number of ones among `size` random samples of each user.

    Users with fewer give all they have.  The law is exact, and rows are never
    expanded: of many users in a row, a multinomial draw says how many have how
    many ones.

    >>> users = Users(k=[3, 10], successes=[2, 5], counts=[1, 10**9])
    >>> ones = subsampled_ones(users, 4, np.random.default_rng(0))
    >>> abs(ones / (2 * 10**9) - 1) < 1e-4
    True
    """
    total = 0.0
    for rows in blocks(users):
        k, ones, counts = users.k[rows], users.successes[rows], users.counts[rows]
        whole = k <= size
        total += sum_over_rows(ones[whole], counts[whole])
        few = ~whole & (counts <= FEW) & (k < HYPERGEOMETRIC_LIMIT)
        each = np.repeat(np.flatnonzero(few), counts[few].astype(np.intp))
        drawn = rng.hypergeometric(ones[each], k[each] - ones[each], size)
        total += float(drawn.sum(dtype=np.float64))
        for row in np.flatnonzero(~whole & ~few):
            fewest, numbers = ones_of_row(k[row], ones[row], counts[row], size, rng)
            values = fewest + np.arange(len(numbers), dtype=np.float64)
            total += float(np.sum(numbers * values))
    return total


def shared_means(users: Users, size: int, rng: np.random.Generator) -> Floats:
    """Return the mean of `size` random samples of each user, who must hold as many.

    One entry per user: for cohorts that are small.  In the order of a list, which is
    public, and in random order otherwise, since rows may be sorted by successes.
    """
    each = users.expanded()
    means = ones_of_users(each.k, each.successes, size, rng) / size
    return means if users.ordered else rng.permutation(means)


def sum_over_rows(values: Integers, counts: Integers) -> float:
    """Return the sum over users of a value of their rows."""
    return float(np.dot(values.astype(np.float64), counts.astype(np.float64)))
