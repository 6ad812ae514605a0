"""How many ones are among some of a user's samples: hypergeometric laws.

Users of one row are never told apart: only how many of them have how many ones is
drawn, with the exact law, so a billion users cost no more than their rows.
"""

from __future__ import annotations

import math

import numpy as np

from hetlit.check import HYPERGEOMETRIC_LIMIT, Floats, Integers

FEW = 64  # users of one row who are drawn one by one


DRAWS = 1 << 20  # users who are drawn at a time


def ones_of_users(
    k: Integers, successes: Integers, size: int, rng: np.random.Generator
) -> Integers:
    """Return the number of ones among `size` random samples of each of some users."""
    ones = np.zeros(len(k), dtype=np.int64)
    usual = k < HYPERGEOMETRIC_LIMIT
    ones[usual] = rng.hypergeometric(
        successes[usual], k[usual] - successes[usual], size
    )
    for alike in _alike(k, successes, np.flatnonzero(~usual)):
        row = alike[0]
        fewest, numbers = ones_of_row(k[row], successes[row], len(alike), size, rng)
        drawn = np.repeat(fewest + np.arange(len(numbers)), numbers.astype(np.intp))
        ones[alike] = rng.permutation(drawn)
    return ones


def _alike(k: Integers, successes: Integers, rows: Integers) -> list[Integers]:
    """Return these rows, those with the same k and successes together."""
    rows = rows[np.lexsort((successes[rows], k[rows]))]
    new = (np.diff(k[rows]) != 0) | (np.diff(successes[rows]) != 0)
    return [part for part in np.split(rows, np.flatnonzero(new) + 1) if part.size]


def ones_of_rows(
    k: Integers,
    successes: Integers,
    counts: Integers,
    size: int,
    rng: np.random.Generator,
) -> Integers:
    """Return how many users have 0, 1, ..., `size` ones among `size` of their samples.

    Rows of few users are drawn one by one, rows of many in one multinomial draw.
    """
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
        fewest, numbers = ones_of_row(k[row], successes[row], counts[row], size, rng)
        merged[fewest : fewest + len(numbers)] += numbers
    return merged


def ones_of_row(
    k: int, ones: int, users: int, size: int, rng: np.random.Generator
) -> tuple[int, Integers]:
    """Return how many of a row's users have how many ones among `size` samples.

    As (the fewest ones, users who have that many, one more, and so on).
    """
    fewest, law = hypergeometric_law(int(k), int(ones), size)
    if users == 1:
        numbers = np.zeros(len(law), dtype=np.int64)
        drawn = np.searchsorted(np.cumsum(law), rng.random(), side="right")
        numbers[min(int(drawn), len(law) - 1)] = 1
        return fewest, numbers
    # The likeliest outcome comes last and takes what rounding leaves over.
    order = np.argsort(law)
    numbers = np.zeros(len(law), dtype=np.int64)
    numbers[order] = rng.multinomial(int(users), law[order])
    return fewest, numbers


def hypergeometric_law(k: int, ones: int, size: int) -> tuple[int, Floats]:
    """Return the law of the number of ones among `size` of k samples.

    As (its least value, the probabilities from there on).

    >>> hypergeometric_law(k=4, ones=3, size=2)
    (1, array([0.5, 0.5]))
    """
    mean = size * (ones / k)
    variance = mean * (1.0 - ones / k) * ((k - size) / max(k - 1, 1))
    # Bernstein's inequality for the binomial law of the smaller part, whose variance
    # is at most twice this one: the chance to be further away is below 1e-60, since
    # far^2 > 2 log(2e60) (2 variance + far/3) for every variance.
    far = math.ceil(24.0 * math.sqrt(variance)) + 100
    least = max(0, size - (k - ones), math.floor(mean) - far)
    most = min(size, ones, math.ceil(mean) + far)
    x = np.arange(least, most, dtype=np.float64)
    ratios = np.log((ones - x) * (size - x))
    ratios -= np.log((x + 1.0) * (k - ones - size + x + 1.0))
    exponents = np.concatenate(([0.0], np.cumsum(ratios)))
    masses = np.exp(exponents - exponents.max())
    return least, np.asarray(masses / masses.sum())
