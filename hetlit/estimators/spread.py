"""How much users differ: the typical spread, and what to make of it.

A private guess of var_p, from squared deviations of user means from a first guess of
p.  It is a median, which is precise when tails are light, and blind to a minority of
users who differ from the rest: `hetlit.estimators.tails` looks for one.

Chapter: A realizable estimator.
"""

from __future__ import annotations

import math

import numpy as np

from hetlit.check import Floats
from hetlit.privacy.account import Account
from hetlit.privacy.selection import grid_histogram, log_grid, median_utilities
from hetlit.theory import gaussian
from hetlit.users.groups import blocks
from hetlit.users.table import Users

# Constants were chosen by measurement, on the grid that benchmarks/ reports, so its
# figures flatter them a little.
SPREAD_SHARE = 0.06  # of epsilon, for the typical spread
CAUTIOUS_SPREAD = 1.0 / 40.0  # of p(1-p): assumed where nothing is known
JUDGED_SPREADS = (0.0, 1.0 / 400.0, 1.0 / 20.0)  # of p(1-p): what plans are judged by
SPREAD_EVIDENCE = 40.0  # users times budget behind the typical spread, at least
WORTHWHILE = 0.97  # of the variance without first guesses: what a plan must promise
ERRORS_OF_MEAN = 1.0  # standard errors of the first mean added to half-widths
REACH = 2.75  # half-widths in standard deviations, at least
REACH_OFFSET = 2.05  # where they begin to grow: at n epsilon of about 10^5
MEDIAN_OF_SQUARES = gaussian.MEDIAN**2  # of a standard Gaussian


def clamped_guess(raw: float, error: float, n: int) -> tuple[float, float]:
    """Return (p, q): a noisy mean within [0, 1], and a guess of p(1-p) for it.

    q is taken at the mean moved towards 1/2 by its standard error, so as not to be
    understated, and not below 1/(4n).  Both are post-processing.
    """
    p = min(max(raw, 0.0), 1.0)
    inner = p + min(max(0.5 - p, -error), error)
    return p, max(inner * (1.0 - inner), 1.0 / (4.0 * n))


def best_reach(n: int, epsilon: float) -> float:
    """Return a half-width of intervals, in standard deviations.

    Noise and sampling error fall with n, the bias from clipping uneven tails does
    not, so many users can afford less of it.  With n epsilon = 10^9 a reach of 2.75
    would have hundreds of times the least squared error.

    >>> [round(best_reach(n, epsilon=1.0), 2) for n in (10**4, 10**6, 10**9)]
    [2.75, 3.21, 4.39]
    """
    return max(REACH, math.sqrt(2.0 * math.log(max(n * epsilon, 1.0))) - REACH_OFFSET)


def light_intervals(
    variances: Floats,
    centre: float,
    q: float,
    spread: float,
    error: float,
    reach: float,
) -> tuple[Floats, Floats]:
    """Return (lower, upper) of intervals for means with light tails, within [0, 1].

    They reach so many standard deviations, and further for two reasons: the centre is
    off by its own error, and counts of rare ones are skewed.  Their longer tail
    reaches further by reach^2/6 times the third cumulant over the variance, which
    is just below (1-2p)(variance + spread)/q for a beta-binomial.
    """
    half_widths = ERRORS_OF_MEAN * error + reach * np.sqrt(variances)
    skew = reach**2 / 6.0 * (1.0 - 2.0 * centre) * (variances + spread) / q
    lower = centre - half_widths + np.minimum(skew, 0.0)
    upper = centre + half_widths + np.maximum(skew, 0.0)
    return np.maximum(lower, 0.0), np.minimum(upper, 1.0)


def spread_resolution(users: float, size: float, epsilon: float) -> float:
    """Return the finest spread, relative to p(1-p), told from 0 by such users."""
    return min(2.0 / (users * size * epsilon), 0.5)


def typical_spread(
    account: Account,
    users: Users,
    least: float,
    centre: float,
    q: float,
    resolution: float,
    epsilon: float,
    *on: str,
) -> float:
    """Return a private median of guesses of var_p among users with size >= least.

    Privacy: `epsilon`, whether sizes are public or private: see `median_utilities`,
    whose sensitivity is 1 also when a user enters or leaves.
    """
    grid = log_grid(resolution * q, q, 2.0)
    utilities = median_utilities(spread_histogram(users, least, centre, q, grid))
    end = float(grid[account.choose("typical spread", utilities, epsilon, *on)])
    # The middle of the median's cell, on the logarithmic scale.
    return end / math.sqrt(2.0)


def spread_histogram(
    users: Users, least: float, centre: float, q: float, grid: Floats
) -> Floats:
    """Return how many guesses of var_p, one per user, fall into each cell of a grid.

    (mean - p)^2 has mean q/k + (1 - 1/k) var_p and, for a Gaussian, a median of
    MEDIAN_OF_SQUARES times that, so a square is worth the guess
    (k square / MEDIAN_OF_SQUARES - q)/(k - 1).
    """
    histogram = np.zeros(len(grid) + 1)
    for rows in blocks(users):
        chosen = users.k[rows] >= least
        if chosen.any():
            k = users.k[rows][chosen]
            square = (users.successes[rows][chosen] / k - centre) ** 2
            guesses = (square * (k / MEDIAN_OF_SQUARES) - q) / (k - 1)
            counts = None if users.ordered else users.counts[rows][chosen]
            histogram += grid_histogram(guesses, grid, counts=counts)
    return histogram


def mean_log_ratio(promised: list[float], reference: list[float]) -> float:
    """Return the mean of log(promised/reference)."""
    ratios = zip(promised, reference, strict=True)
    return sum(math.log(a / b) for a, b in ratios) / len(promised)
