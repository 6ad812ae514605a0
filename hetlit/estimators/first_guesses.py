"""First guesses: a private mean and a private variance to set everything else up.

Both look at one number per user, so replacing a user replaces one number.

Paper: Section 6.  Chapter: First guesses.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from scipy import special

from hetlit import check
from hetlit.check import Floats
from hetlit.privacy.account import Account, single_step
from hetlit.privacy.noise import Randomness
from hetlit.privacy.selection import grid_histogram, log_grid, median_utilities
from hetlit.theory import gaussian
from hetlit.users.table import Users

# The median of |Y| for a Gaussian Y of variance 2.
MEDIAN_OF_DIFFERENCES = gaussian.MEDIAN * math.sqrt(2.0)
# The published estimator promises [1, 8] times the variance; this centres it there.
PAPER_INFLATION = 8.0**0.5
# Below this, p(1-p) is taken for 0.
TINY = 1e-100
# The grid of medians: four cells per octave.
GRID_RATIO = 2.0**0.25


def initial_mean(
    first_samples: Any, epsilon: float, *, rng: Randomness = None
) -> float:
    """Return the mean of one sample per user, with Laplace noise.

    It is unbiased and can fall outside [0, 1]; clamp it before use.

    Parameters
    ----------
    first_samples : array of shape (users,), zeros and ones (or means in [0, 1])
    epsilon : the privacy budget, in [1e-12, 1e12]

    Privacy: `epsilon`; neighbours replace one entry, which moves the mean by at
    most 1/users.

    Paper: Lemma `initialmeanestimate`.

    >>> round(initial_mean([0, 1] * 5000, 1.0, rng=np.random.default_rng(0)), 4)
    0.5
    """
    epsilon = check.epsilon(epsilon)
    values = unit_interval("first_samples", first_samples)
    return noisy_mean(float(values.sum()), len(values), epsilon, rng=rng)


def noisy_mean(
    total: float, n: int, epsilon: float, *, rng: Randomness = None
) -> float:
    """Return total/n with Laplace noise, for n numbers in [0, 1] with this total."""
    account = single_step(epsilon, rng)
    n = check.integer("n", n, 1)
    total = check.secret("total", total)
    if not 0.0 <= total <= n * (1.0 + 1e-9):
        raise ValueError("total must be that of n numbers in [0, 1]")
    return account.laplace("mean", total / n, 1.0 / n, account.left)


def first_sample_total(users: Users, rng: np.random.Generator) -> int:
    """Return how many users have a one as their first sample.

    The order of a user's samples is not kept, so her first sample is a random one
    of them: a one with probability successes/k.
    """
    return int(rng.binomial(users.counts, users.means).sum())


def clamped_mean(raw: float, n: int) -> tuple[float, float]:
    """Return (p, q): a noisy mean clamped to [0, 1] and p(1-p) with a public floor.

    The floor 1/(4n) keeps variances above 0.  Both are post-processing.
    """
    p = min(max(raw, 0.0), 1.0)
    return p, max(p * (1.0 - p), 1.0 / (4.0 * n))


def known_spread(p: float, n: int) -> float:
    """Return p(1-p) of a p that is known, with the floor of `clamped_mean` next to 0.

    The floor keeps variances above 0 for p next to 0 and 1.
    """
    q = p * (1.0 - p)
    return q if q > TINY else 1.0 / (4.0 * n)


def initial_mean_error(n: int, epsilon: float, beta: float) -> float:
    """Return alpha with Pr(|initial mean of n users - p| <= alpha) >= 1 - beta.

    Hoeffding's inequality for the samples and the tail of the noise, each at
    beta/2.  It holds for every p; so does the published bound, which is several
    times wider unless ones are rare.

    >>> round(initial_mean_error(1000, 1.0, 0.05), 6)
    0.050497
    """
    n = check.integer("n", n, 1)
    epsilon = check.epsilon(epsilon)
    beta = check.chance("beta", beta)
    sampling = math.sqrt(math.log(4.0 / beta) / (2.0 * n))
    return sampling + math.log(2.0 / beta) / (epsilon * n)


def initial_variance(
    values: Any,
    epsilon: float,
    *,
    k: int,
    inflation: float = PAPER_INFLATION,
    rng: Randomness = None,
) -> float:
    """Return a private estimate of the variance of `values`, one mean per user.

    Users are paired at random, and the exponential mechanism picks a value near
    the median of the absolute differences from a logarithmic grid.  For Gaussian
    values that median gives the standard deviation; heavy tails it ignores.

    Parameters
    ----------
    values : array of shape (users,), means of k samples each, in [0, 1]
    epsilon : the privacy budget, in [1e-12, 1e12]
    k : the number of samples behind each value, which sets the finest scale
    inflation : factor on the variance; by default sqrt(8), so that the answer lies
        in [1, 8] times the variance with room on both sides; 1 for a centred guess

    Privacy: `epsilon`; neighbours replace one value, which changes one pair, so
    every count of small differences moves by at most 1.  The pairing is random so
    that this also holds when a user drops out and another takes her place.

    Paper: Lemma `multiplicativevariance`, by another estimator: the published
    one returns nothing, see `published_variance`.

    >>> rng = np.random.default_rng(0)
    >>> values = rng.binomial(50, 0.5, size=2000) / 50
    >>> estimate = initial_variance(values, 1.0, k=50, rng=rng)
    >>> 1 <= estimate / (0.25 / 50) <= 8
    True
    """
    account = single_step(epsilon, rng)
    k = check.integer("k", k, 1)
    inflation = check.amount("inflation", inflation)
    means = unit_interval("values", values)
    differences = paired_differences(means, account.source.chance)
    variance = variance_of_differences(
        account, "variance", differences, k, account.left
    )
    return inflation * variance


def variance_of_differences(
    account: Account,
    name: str,
    differences: Floats,
    k: int,
    epsilon: float,
    *on: str,
    delta: float = 0.0,
) -> float:
    """Return a private variance from differences of pairs of means of k samples.

    The exponential mechanism picks the cell of a logarithmic grid that holds their
    median; its middle, on that scale, gives the standard deviation if the means are
    Gaussian.  Without any differences every cell is equally likely.

    Privacy: `epsilon`; one user changes one difference, or one enters or leaves:
    utilities move by at most 1, see `median_utilities`.
    """
    grid = log_grid(1.0 / (4.0 * k), 1.0, GRID_RATIO)
    utilities = median_utilities(grid_histogram(differences, grid))
    chosen = account.choose(name, utilities, epsilon, *on, delta=delta)
    median = float(grid[chosen]) / math.sqrt(GRID_RATIO)
    return (median / MEDIAN_OF_DIFFERENCES) ** 2


def median_rank_error(pairs: Any, epsilon: float, beta: float, cells: int) -> Any:
    """Return eta: how far in rank `initial_variance` may be from the true median.

    With probability 1 - beta the chosen one of `cells` grid cells reaches into the
    differences of rank 1/2 +- eta.  Half of beta is for the exponential mechanism, half
    for the differences of `pairs` pairs of users (Dvoretzky, Kiefer and Wolfowitz).

    >>> float(median_rank_error(228, epsilon=1.0, beta=0.05, cells=36).round(4))
    0.1618
    """
    noise = 2.0 / (epsilon * np.asarray(pairs)) * np.log(2.0 * cells / beta)
    return noise + np.sqrt(np.log(4.0 / beta) / (2.0 * np.asarray(pairs)))


def rank_factor(rank_error: Any) -> Any:
    """Return by what factor a Gaussian spread is misjudged if the median's rank is off.

    The differences of rank 1/2 + rank_error are that much larger than their median;
    infinitely much from a rank error of 1/2 on.

    >>> rank_factor(np.array([-0.1, 0.0, 0.1, 0.5])).round(3)
    array([0.777, 1.   , 1.248,   inf])
    """
    rank = 0.75 + np.clip(rank_error, -0.5, 0.5) / 2.0
    return special.ndtri(rank) / special.ndtri(0.75)


def paired_differences(values: Floats, rng: np.random.Generator) -> Floats:
    """Return |first - second| of randomly paired values; an odd one is left out."""
    if len(values) < 2:
        raise ValueError(f"values must hold at least 2 users, not {len(values)}")
    shuffled = rng.permutation(values)
    pairs = len(values) // 2
    return np.asarray(np.abs(shuffled[:pairs] - shuffled[pairs : 2 * pairs]))


def spread_between_users(variance: float, k: float, q: float) -> float:
    """Return var_p from the variance of means of k samples, within [0, q].

    It inverts variance = q/k + (1 - 1/k) var_p; k = 1 says nothing and gives 0.

    >>> round(spread_between_users(0.039, 10, 0.21), 6)
    0.02
    """
    if k <= 1:
        return 0.0
    return min(max((variance - q / k) / (1.0 - 1.0 / k), 0.0), q)


def unit_interval(name: str, values: Any) -> Floats:
    """Return `values` as an array of floats in [0, 1]."""
    array = np.asarray(check.one_dimensional(name, values), dtype=np.float64)
    if not ((array >= 0) & (array <= 1)).all():
        raise ValueError(f"{name} must lie in [0, 1] throughout")
    return array
