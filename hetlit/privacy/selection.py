"""Choosing one of many: the exponential mechanism, medians and order statistics.

Utilities are deterministic functions of the data, and each says by how much one user
moves them.  `hetlit.privacy.account` draws the choice.

Chapter: User-level privacy from scratch.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from hetlit import check
from hetlit.check import MOST_SIZES, Floats, Integers
from hetlit.privacy.account import single_step
from hetlit.privacy.noise import Randomness, choice_law


def exponential_probabilities(
    utilities: Any, epsilon: float, *, sensitivity: float = 1.0
) -> Floats:
    """Return the law of the exponential mechanism over outcomes with these utilities.

    Pr(outcome) is proportional to exp(epsilon * utility / (2 sensitivity)), which
    is epsilon-private if no utility moves by more than `sensitivity` between
    neighbours: the numerator and the normalising sum each cost epsilon/2.

    >>> exponential_probabilities([0.0, -2 * math.log(3)], epsilon=1.0)
    array([0.75, 0.25])
    """
    epsilon = check.epsilon(epsilon)
    sensitivity = check.amount("sensitivity", sensitivity)
    return choice_law(check.secrets("utilities", utilities), epsilon, sensitivity)


def exponential_mechanism(
    utilities: Any,
    epsilon: float,
    *,
    sensitivity: float = 1.0,
    rng: Randomness = None,
) -> int:
    """Return the index of an outcome drawn by the exponential mechanism.

    Privacy: `epsilon`, for the neighbours under which `sensitivity` holds.
    """
    account = single_step(epsilon, rng)
    sensitivity = check.amount("sensitivity", sensitivity)
    values = check.secrets("utilities", utilities)
    return account.choose("choice", values, account.left, sensitivity=sensitivity)


def log_grid(low: float, high: float, ratio: float) -> Floats:
    """Return a geometric grid from low to high with steps of at most `ratio`.

    >>> log_grid(1.0, 8.0, 2.0)
    array([1., 2., 4., 8.])
    """
    low = check.between("low", low, 1e-300, 1e300)
    high = check.between("high", high, 1e-300, 1e300)
    if not low < high:
        raise ValueError(f"low must be below high = {high:g}, not {low:g}")
    ratio = check.positive("ratio", ratio)
    if ratio <= 1.0:
        raise ValueError(f"ratio must be above 1, not {ratio!r}")
    octaves = (math.log(high) - math.log(low)) / math.log(ratio)
    if octaves > MOST_SIZES:
        raise ValueError(f"ratio must be larger for a grid from {low:g} to {high:g}")
    return np.geomspace(low, high, max(1, math.ceil(octaves - 1e-9)) + 1)


def median_utilities(histogram: Any) -> Floats:
    """Return minus the values to move for the median to be in a cell, for each cell.

    `histogram` counts the values in (-inf, first point], between each two points of
    the grid, and beyond the last; the utilities are those of all cells but the last.
    The median is in a cell if at most half of the values lie below it and at least
    half lie below its end.  Replacing one value moves such a count by at most 1,
    and so does a value that enters or leaves, which moves half of n as well: the
    sensitivity is 1.

    >>> median_utilities([0, 2, 1, 1])
    array([-2., -0., -0.])
    """
    upto = np.cumsum(np.asarray(histogram, dtype=np.float64))
    half = upto[-1] / 2.0
    before = np.concatenate(([0.0], upto[:-2]))
    return np.asarray(-np.maximum(0.0, np.maximum(before - half, half - upto[:-1])))


def grid_histogram(values: Any, grid: Floats, *, counts: Any = None) -> Floats:
    """Return how many values fall in each cell of a grid, ends included.

    >>> grid_histogram([1, 2, 3, 4], np.array([0.5, 2.5, 3.5]))
    array([0., 2., 1., 1.])
    """
    cells = np.searchsorted(grid, values, side="left")
    histogram = np.bincount(cells, weights=counts, minlength=len(grid) + 1)
    return histogram.astype(np.float64)


def median_on_grid(
    values: Any, grid: Any, epsilon: float, *, rng: Randomness = None
) -> float:
    """Return the point of a grid that ends the median's cell, or a nearby one's.

    By the exponential mechanism on `median_utilities`.

    Privacy: `epsilon`, when neighbours differ in one entry of `values`.

    >>> rng = np.random.default_rng(0)
    >>> median_on_grid([0.2] * 500 + [0.3] * 400, [0.1, 0.2, 0.4], 1.0, rng=rng)
    0.2
    """
    account = single_step(epsilon, rng)
    points = np.asarray(check.one_dimensional("grid", grid), dtype=np.float64)
    if not np.isfinite(points).all() or not (points[1:] > points[:-1]).all():
        raise ValueError("grid must be finite and increase strictly")
    inputs = np.asarray(check.one_dimensional("values", values), dtype=np.float64)
    if np.isnan(inputs).any():
        raise ValueError("values must not be NaN")
    utilities = median_utilities(grid_histogram(inputs, points))
    return float(points[account.choose("median", utilities, account.left)])


def order_statistic_utilities(
    k: Any, rank: int, k_max: int, *, counts: Any = None
) -> Integers:
    """Return minus the number of users to replace to make t the rank-th largest size.

    The answer has one entry for each t = 1, ..., k_max.  The rank-th largest size is
    t when at least `rank` users have t or more and fewer than `rank` have more than
    t.  Replacing a user moves each of these two counts by at most 1, so the
    sensitivity is 1; ties need no special care.

    >>> order_statistic_utilities([5, 3, 3, 1], rank=2, k_max=6)
    array([-2, -2,  0, -1, -1, -2])
    """
    k_max = check.integer("k_max", k_max, 1)
    rank = check.integer("rank", rank, 1)
    if k_max > MOST_SIZES:
        raise ValueError(f"k_max must be at most {MOST_SIZES}, not {k_max}")
    sizes = check.integers("k", k, 1, copy=False)
    if sizes.max() > k_max:
        raise ValueError(f"k must be at most k_max = {k_max} throughout")
    numbers = None
    if counts is not None:
        numbers = check.integers("counts", counts, 1, copy=False)
        check.same_length(k=sizes, counts=numbers)
    return rank_utilities(size_table(sizes, numbers, k_max), rank)


def size_table(sizes: Integers, counts: Integers | None, k_max: int) -> Integers:
    """Return how many users hold 0, 1, ..., k_max samples; one a row without counts."""
    if counts is None:
        cells = sizes.astype(np.intp, copy=False)
        return np.bincount(cells, minlength=k_max + 1).astype(np.int64, copy=False)
    table = np.zeros(k_max + 1, dtype=np.int64)
    np.add.at(table, sizes, counts)
    return table


def rank_utilities(table: Integers, rank: int) -> Integers:
    """Return `order_statistic_utilities` from the number of users of each size."""
    or_more = np.zeros(len(table) + 1, dtype=np.int64)
    or_more[:-1] = np.cumsum(table[::-1])[::-1]
    if rank > or_more[0]:
        raise ValueError(
            f"rank must be at most the number of users, {or_more[0]}, not {rank}"
        )
    too_few = rank - or_more[1:-1]
    too_many = or_more[2:] - rank + 1
    return np.asarray(-np.maximum(0, np.maximum(too_few, too_many)))


def order_statistic_probabilities(
    k: Any, rank: int, k_max: int, epsilon: float, *, counts: Any = None
) -> Floats:
    """Return the law of `private_order_statistic` over the sizes 1, ..., k_max.

    Paper: Lemma `exponentialmedian`.  Chapter: Private k.

    >>> order_statistic_probabilities([5, 3, 3, 1], 2, k_max=6, epsilon=1.0).round(4)
    array([0.1109, 0.1109, 0.3015, 0.1829, 0.1829, 0.1109])
    """
    epsilon = check.epsilon(epsilon)
    utilities = order_statistic_utilities(k, rank, k_max, counts=counts)
    return exponential_probabilities(utilities, epsilon)


def private_order_statistic(
    k: Any,
    rank: int,
    k_max: int,
    epsilon: float,
    *,
    counts: Any = None,
    rng: Randomness = None,
) -> int:
    """Return a size near the rank-th largest of k, by the exponential mechanism.

    With probability 1 - beta the answer lies between the sizes of rank + r and
    rank - r, where r = (2/epsilon) log(k_max/beta).

    Parameters
    ----------
    k : array of shape (rows,), whole numbers from 1 to k_max
    rank : 1 for the largest size, at most the number of users
    k_max : a public bound on sizes, at most 10^7
    epsilon : the privacy budget, in [1e-12, 1e12]
    counts : array of shape (rows,), users per row; one each if None

    Privacy: `epsilon`; neighbours replace one size by any other up to k_max.

    Paper: Lemma `exponentialmedian`, with its slack of 1/epsilon corrected to
    2/epsilon.  Chapter: Private k.

    >>> rng = np.random.default_rng(0)
    >>> private_order_statistic([7] * 500 + [2] * 500, 250, 1000, 1.0, rng=rng)
    7
    """
    account = single_step(epsilon, rng)
    utilities = order_statistic_utilities(k, rank, k_max, counts=counts)
    return 1 + account.choose("order statistic", utilities, account.left)
