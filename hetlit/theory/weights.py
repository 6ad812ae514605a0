"""Weights: whose mean counts how much.

All functions work on rows: row i stands for `counts[i]` users (one each when
`counts` is None) whose means have variance `variances[i]` and are clipped to an
interval of width `widths[i]`.  Weights are per user, so that
``sum(counts * weights) == 1``.

The objective that private weights minimise is the variance of a weighted sum
with Laplace noise of scale ``max(weights * widths) / epsilon``::

    sum(counts * weights**2 * variances) + 2 * max(weights * widths)**2 / epsilon**2

The 2 is the variance of a standard Laplace variable; the paper leaves it out.

The functions that begin with `planned_`, and `optimal_ceiling`, check nothing: they
are for plans, which call them many times with arrays that are checked already and
with shares of a budget.

Chapter: The ideal private estimator.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from hetlit import check
from hetlit.check import Floats, Integers

# The noise of a share of a budget so small that nothing but noise counts; more could
# leave the floats.
MOST_NOISE = 1e100
# Users of no more width need no noise and are never held back.
NARROWEST = 1e-110


def inverse_variance_weights(variances: Any, *, counts: Any = None) -> Floats:
    """Return weights proportional to 1/variance, the best ones without privacy.

    Paper: equation `nonprivideal`.

    >>> inverse_variance_weights([1.0, 0.5]).round(3)
    array([0.333, 0.667])
    """
    variances = check.magnitudes("variances", variances, *check.VARIANCES)
    return _normalised(1.0 / variances, _counts(counts, variances=variances))


def truncated_weights(
    variances: Any, threshold: float, *, counts: Any = None
) -> Floats:
    """Return the paper's weights, proportional to min(1/variance, threshold/sd).

    Parameters
    ----------
    variances : array of shape (rows,), above 0
    threshold : the paper's T, above 0: users with 1/sd above it are held back.
    counts : array of shape (rows,), users in each row; one each when None.

    Paper: Section 4.1.

    >>> truncated_weights([1.0, 0.25], threshold=1.0).round(3)
    array([0.333, 0.667])
    """
    variances = check.magnitudes("variances", variances, *check.VARIANCES)
    threshold = check.positive("threshold", threshold)
    counts = _counts(counts, variances=variances)
    return planned_truncated_weights(variances, threshold, counts)


def planned_truncated_weights(
    variances: Floats, threshold: float, counts: Floats | Integers
) -> Floats:
    """Return `truncated_weights`, for checked arguments."""
    precision = 1.0 / np.sqrt(variances)
    # Both are largest in the same row, so that the product cannot vanish everywhere.
    shape = _scaled(precision) * _scaled(np.minimum(precision, threshold))
    return _normalised(shape, counts)


def release_variance(
    weights: Any, variances: Any, widths: Any, epsilon: float, *, counts: Any = None
) -> float:
    """Return the variance of the noisy weighted sum: the objective of this module.

    It is an upper bound when clipping touches anyone, because clipping to an
    interval never increases a variance.

    Paper: equation `eq.varideal`, with the Laplace variance corrected.
    """
    variances, widths = _measures(variances, widths)
    weights = check.magnitudes("weights", weights, 0.0, check.MEASURES[1])
    counts = _counts(counts, variances=variances, widths=widths, weights=weights)
    epsilon = check.epsilon(epsilon)
    return planned_variance(weights, variances, widths, epsilon, counts)


def planned_variance(
    weights: Floats,
    variances: Floats,
    widths: Floats,
    epsilon: float,
    counts: Floats | Integers,
) -> float:
    """Return `release_variance`, for checked arguments and any share of a budget."""
    noise = _noise_price(epsilon)
    sampling = float(np.sum(counts * weights**2 * variances))
    return sampling + noise * float(np.max(weights * widths)) ** 2


def best_threshold(
    variances: Any, widths: Any, epsilon: float, *, counts: Any = None
) -> tuple[float, float]:
    """Return (threshold, objective): the exact minimiser of the paper's family.

    Between two neighbouring values of 1/sd the objective of
    `truncated_weights` is (A + m T^2 + max(P, Q T^2)) / (A + F T)^2.  It falls
    while P >= Q T^2, and beyond that its slope has the sign of (m + Q) T - F.
    So every piece is minimised at its own end points, at sqrt(P/Q) or at
    F / (m + Q), and the best piece is the answer.  A scalar search is not safe:
    the objective can have several valleys.

    Paper: equation `idealthreshold`, with the index and the Laplace variance
    corrected.

    >>> threshold, objective = best_threshold([1, 1/4, 1/16, 1/64],
    ...     [1, 1/2, 1/4, 1/8], epsilon=1.0)
    >>> round(threshold, 12), round(1 / objective, 9)
    (3.0, 41.0)
    """
    variances, widths = _measures(variances, widths)
    counts = _counts(counts, variances=variances, widths=widths)
    return planned_threshold(variances, widths, check.epsilon(epsilon), counts)


def planned_threshold(
    variances: Floats, widths: Floats, epsilon: float, counts: Floats | Integers
) -> tuple[float, float]:
    """Return `best_threshold`, for checked arguments and any share of a budget."""
    noise = _noise_price(epsilon)
    order = np.argsort(-variances, kind="stable")
    number, width = counts[order].astype(np.float64), widths[order]
    precision = 1.0 / np.sqrt(variances[order])  # ascending

    # Piece j has the first j rows below the threshold and the others held back
    # at it; in piece 0 nobody is below, and every threshold is as good.
    below = _prefix_sums(number * precision**2)[:-1]
    held = _suffix_sums(number)[:-1]
    held_precision = _suffix_sums(number * precision)[:-1]
    noise_below = noise * np.maximum.accumulate((precision**2 * width) ** 2)
    noise_below = np.concatenate(([0.0], noise_below[:-1]))
    noise_held = (precision * width) ** 2
    noise_held = noise * np.maximum.accumulate(noise_held[::-1])[::-1]

    left = np.concatenate(([0.0], precision[:-1]))
    crossing = np.full_like(noise_held, np.inf)
    with np.errstate(over="ignore"):
        np.divide(noise_below, noise_held, out=crossing, where=noise_held > 0)
    crossing = np.sqrt(crossing)
    valley = held_precision / (held + noise_held)
    inside = np.maximum(left, np.maximum(crossing, valley))
    candidates = np.minimum(precision, inside)

    sampling = below + held * candidates**2
    privacy = np.maximum(noise_below, noise_held * candidates**2)
    total = below + held_precision * candidates
    objectives = (sampling + privacy) / total**2
    best = int(np.argmin(objectives))
    return float(candidates[best]), float(objectives[best])


def optimal_weights(
    variances: Any, widths: Any, epsilon: float, *, counts: Any = None
) -> tuple[Floats, float]:
    """Return (weights, objective): the best weights there are for these widths.

    They are proportional to min(1/variance, T/width), where T is the unique root
    of ``2/epsilon**2 * T = sum(counts/width * max(0, 1 - T*variance/width))``,
    and the objective is 1/sum(counts * min(1/variance, T/width)).  The paper's
    family is this one only when widths are proportional to standard deviations.

    Why: at the optimum every user either sits at the common ceiling
    ``weight * width = t`` or satisfies ``weight * variance = nu/2``, and the
    prices of the ceilings add up to the price of t (the conditions of Karush,
    Kuhn and Tucker).  With T = 2t/nu that is the equation above.

    >>> weights, objective = optimal_weights([0.04] * 50, [0.6] * 50, epsilon=0.5)
    >>> weights[0].round(6), round(objective, 6)
    (np.float64(0.02), 0.001952)
    """
    variances, widths = _measures(variances, widths)
    counts = _counts(counts, variances=variances, widths=widths)
    return planned_optimal_weights(variances, widths, check.epsilon(epsilon), counts)


def planned_optimal_weights(
    variances: Floats, widths: Floats, epsilon: float, counts: Floats | Integers
) -> tuple[Floats, float]:
    """Return `optimal_weights`, for checked arguments and any share of a budget."""
    ceiling = optimal_ceiling(variances, widths, epsilon, counts)
    with np.errstate(divide="ignore", over="ignore"):
        shape = np.minimum(1.0 / variances, ceiling / widths)
    weights = _normalised(shape, counts)
    return weights, planned_variance(weights, variances, widths, epsilon, counts)


def optimal_ceiling(
    variances: Floats, widths: Floats, epsilon: float, counts: Floats | Integers
) -> float:
    """Return T, the ceiling on weight * width relative to weights 1/variance.

    It is the root of 2/epsilon**2 * T = sum(counts/width * (1 - T*variance/width)_+).
    """
    noise = _noise_price(epsilon)
    wide = widths > NARROWEST
    if not wide.any():
        return np.inf
    turning = widths[wide] / variances[wide]  # held back exactly while T < turning
    order = np.argsort(-turning, kind="stable")
    width, variance = widths[wide][order], variances[wide][order]
    number = counts[wide][order]
    # With the first h rows held back the equation is linear in T.
    roots = np.cumsum(number / width) / (
        noise + np.cumsum(number * variance / width**2)
    )
    # Any other set of rows asks for a lower ceiling, since a sum of positive parts is
    # the largest of its partial sums.
    return float(np.max(roots))


def _noise_price(epsilon: float) -> float:
    """Return 2/epsilon**2, the variance of the noise per squared sensitivity."""
    scale = 1.0 / epsilon
    return min(2.0 * scale * scale, MOST_NOISE)


def _measures(variances: Any, widths: Any) -> tuple[Floats, Floats]:
    """Return variances and widths that go with noise, checked."""
    return (
        check.magnitudes("variances", variances, *check.MEASURES),
        check.magnitudes("widths", widths, 0.0, check.MEASURES[1]),
    )


def _counts(counts: Any, **columns: Floats) -> Floats:
    """Return the users in each row as floats; the other columns must be as long."""
    if counts is not None:
        columns["counts"] = check.integers("counts", counts, 1).astype(np.float64)
    check.same_length(**columns)
    return columns.get("counts", np.ones_like(columns["variances"]))


def _normalised(shape: Floats, counts: Floats | Integers) -> Floats:
    shape = _scaled(shape)
    return np.asarray(shape / np.sum(counts * shape))


def _scaled(values: Floats) -> Floats:
    """Return values times a power of two, so that the largest is in [1/2, 1).

    No digit changes, and neither sums nor products can leave the floats.
    """
    return np.asarray(np.ldexp(values, -np.frexp(np.max(values))[1]))


def _prefix_sums(values: Floats) -> Floats:
    return np.concatenate(([0.0], np.cumsum(values)))


def _suffix_sums(values: Floats) -> Floats:
    return np.concatenate((np.cumsum(values[::-1])[::-1], [0.0]))
