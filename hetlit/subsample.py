"""Random samples of users, and random users, drawn from rows that stay together.

Which of her samples a user gives, or which of several equal users take part, is
drawn independently of the samples' values.  Users of one row are never told apart:
only how many of them have how many ones is drawn, with the exact law, so a billion
users cost no more than their rows.
"""

from __future__ import annotations

import math

import numpy as np

from .check import Floats, Integers
from .grouping import blocks, by_size
from .model import Users

FEW = 64  # users of one row who are drawn one by one
NUMPY_LIMIT = 10**9  # on the sizes of hypergeometric draws


def most_data(users: Users, number: int, rng: np.random.Generator) -> tuple[Users, int]:
    """Return the `number` users with most samples, and the fewest any of them holds.

    Of users with exactly that size a random choice takes part, not the first ones:
    the order of rows may depend on the samples.
    """
    groups = by_size(users)
    or_more = np.cumsum(groups.counts[::-1])[::-1]
    last = int(np.flatnonzero(or_more >= number)[-1])
    group = groups.position(users.k)
    counts = np.where(group > last, users.counts, 0)
    tied = np.flatnonzero(group == last)
    missing = number - int(counts.sum())
    counts[tied] = random_users(users.counts[tied], missing, rng)
    rows = np.flatnonzero(counts)
    chosen = Users(users.k[rows], users.successes[rows], counts[rows])
    return chosen, int(users.k[tied[0]])


def random_users(counts: Integers, number: int, rng: np.random.Generator) -> Integers:
    """Return how many of a row's `counts` users are in a random set of `number`.

    Exact for any counts: tossing a coin for each user gives a random set of nearly
    the right size, and moving a few random users in or out makes it exact.
    """
    chosen = rng.binomial(counts, number / counts.sum())
    excess = int(chosen.sum()) - number
    pool = chosen if excess > 0 else counts - chosen
    moved = rng.choice(int(pool.sum()), abs(excess), replace=False, shuffle=False)
    rows = np.searchsorted(np.cumsum(pool), moved, side="right")
    moves = np.bincount(rows, minlength=len(counts))
    return np.asarray(chosen - moves if excess > 0 else chosen + moves)


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
        few = ~whole & (counts <= FEW) & (k < NUMPY_LIMIT)
        each = np.repeat(np.flatnonzero(few), counts[few])
        drawn = rng.hypergeometric(ones[each], k[each] - ones[each], size)
        total += float(drawn.sum(dtype=np.float64))
        for row in np.flatnonzero(~whole & ~few):
            fewest, law = hypergeometric_law(int(k[row]), int(ones[row]), size)
            numbers = rng.multinomial(int(counts[row]), law)
            total += float(np.dot(numbers, fewest + np.arange(len(law), dtype=float)))
    return total


def hypergeometric_law(k: int, ones: int, size: int) -> tuple[int, Floats]:
    """Return the law of the number of ones among `size` of k samples.

    As (its least value, the probabilities from there on).

    >>> hypergeometric_law(k=4, ones=3, size=2)
    (1, array([0.5, 0.5]))
    """
    mean = size * (ones / k)
    variance = mean * (1.0 - ones / k) * ((k - size) / max(k - 1, 1))
    # Bernstein's inequality for the binomial law of the smaller part, whose variance
    # is at most twice this one: the chance to be further away is below 1e-60.
    far = math.ceil(40.0 * math.sqrt(variance)) + 100
    least = max(0, size - (k - ones), math.floor(mean) - far)
    most = min(size, ones, math.ceil(mean) + far)
    x = np.arange(least, most, dtype=np.float64)
    ratios = np.log((ones - x) * (size - x))
    ratios -= np.log((x + 1.0) * (k - ones - size + x + 1.0))
    exponents = np.concatenate(([0.0], np.cumsum(ratios)))
    masses = np.exp(exponents - exponents.max())
    return least, np.asarray(masses / masses.sum())


def sum_over_rows(values: Integers, counts: Integers) -> float:
    """Return the sum over users of a value of their rows."""
    return float(np.dot(values.astype(np.float64), counts.astype(np.float64)))
