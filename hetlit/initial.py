"""First guesses: a private mean and a private variance to set everything else up.

Both look at one number per user, so replacing a user replaces one number.

Paper: Section 6.  Chapter: First guesses.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from scipy import special

from . import check
from .check import Floats
from .model import Users
from .noise import exponential_mechanism, laplace, log_grid, median_on_grid, simulated

# The median of |Y| for a Gaussian Y of variance 2 is 0.6745 sqrt(2).
MEDIAN_OF_DIFFERENCES = 0.6744897501960817 * math.sqrt(2.0)
# The published estimator promises [1, 8] times the variance; this centres it there.
PAPER_INFLATION = 8.0**0.5
# The constant of the Berry-Esseen theorem (Shevtsova, 2011).
BERRY_ESSEEN = 0.4748
# E|Z|^3 of a standard Gaussian.
GAUSSIAN_THIRD_MOMENT = 2.0 * math.sqrt(2.0 / math.pi)


def initial_mean(
    first_samples: Any, epsilon: float, *, rng: np.random.Generator | None = None
) -> float:
    """Return the mean of one sample per user, with Laplace noise.

    It is unbiased and can fall outside [0, 1]; clamp it before use.

    Parameters
    ----------
    first_samples : array of shape (users,), zeros and ones (or means in [0, 1])
    epsilon : the privacy budget, above 0

    Privacy: `epsilon`; neighbours replace one entry, which moves the mean by at
    most 1/users.

    Paper: Lemma `initialmeanestimate`.

    >>> round(initial_mean([0, 1] * 5000, 1.0, rng=np.random.default_rng(0)), 4)
    0.5
    """
    values = _unit_interval("first_samples", first_samples)
    return noisy_mean(float(values.sum()), len(values), epsilon, rng=rng)


def noisy_mean(
    total: float, n: int, epsilon: float, *, rng: np.random.Generator | None = None
) -> float:
    """Return total/n with Laplace noise, for n numbers in [0, 1] with this total."""
    epsilon = check.positive("epsilon", epsilon)
    return total / n + laplace(1.0 / (n * epsilon), rng=rng)


def first_sample_total(users: Users, rng: np.random.Generator) -> int:
    """Return how many users have a one as their first sample.

    The order of a user's samples is not kept, so her first sample is a random one
    of them: a one with probability successes/k.
    """
    return int(simulated(rng).binomial(users.counts, users.means).sum())


def initial_mean_error(n: int, epsilon: float, beta: float) -> float:
    """Return alpha with Pr(|initial mean of n users - p| <= alpha) >= 1 - beta.

    Hoeffding's inequality for the samples and the tail of the noise, each at
    beta/2.  It holds for every p; so does the published bound, which is several
    times wider unless ones are rare.

    >>> round(initial_mean_error(1000, 1.0, 0.05), 6)
    0.050497
    """
    n = check.integer("n", n, 1)
    epsilon = check.positive("epsilon", epsilon)
    beta = check.strictly_between("beta", beta, 0.0, 1.0)
    sampling = math.sqrt(math.log(4.0 / beta) / (2.0 * n))
    return sampling + math.log(2.0 / beta) / (epsilon * n)


def published_mean_error(estimate: float, n: int, epsilon: float, beta: float) -> float:
    """Return the published alpha, given the initial mean itself.

    Its outer factor 2 is spare where the first branch is the larger one.

    Paper: Lemma `initialmeanestimate`.

    >>> round(published_mean_error(0.37, 1000, 1.0, 0.05), 6)
    0.336468
    """
    estimate = min(max(check.real("estimate", estimate), 0.0), 1.0)
    n = check.integer("n", n, 1)
    epsilon = check.positive("epsilon", epsilon)
    beta = check.strictly_between("beta", beta, 0.0, 1.0)
    term = math.log(4.0 / beta) / n
    sampling = math.sqrt(12.0 * estimate * term + 36.0 * term**2) + 6.0 * term
    return 2.0 * max(sampling, math.log(2.0 / beta) / (epsilon * n))


def initial_variance(
    values: Any,
    epsilon: float,
    *,
    k: int,
    inflation: float = PAPER_INFLATION,
    rng: np.random.Generator | None = None,
) -> float:
    """Return a private estimate of the variance of `values`, one mean per user.

    Users are paired at random, and the exponential mechanism picks a value near
    the median of the absolute differences from a logarithmic grid.  For Gaussian
    values that median gives the standard deviation; heavy tails it ignores.

    Parameters
    ----------
    values : array of shape (users,), means of k samples each, in [0, 1]
    epsilon : the privacy budget, above 0
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
    means = _unit_interval("values", values)
    epsilon = check.positive("epsilon", epsilon)
    k = check.integer("k", k, 1)
    inflation = check.positive("inflation", inflation)
    differences = paired_differences(means, simulated(rng))
    grid = log_grid(1.0 / (4.0 * k), 1.0, 2.0**0.25)
    # The middle of the median's cell, on the logarithmic scale.
    median = median_on_grid(differences, grid, epsilon, rng=rng) / 2.0**0.125
    return float(inflation * (median / MEDIAN_OF_DIFFERENCES) ** 2)


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


def published_group_size(third_moment: float) -> int:
    """Return the paper's phi = ceil((600 * Berry-Esseen constant * third_moment)^2).

    `third_moment` bounds E|x - mean|^3 / sd^3 of the values.

    >>> published_group_size(GAUSSIAN_THIRD_MOMENT)
    206664
    """
    third_moment = check.positive("third_moment", third_moment)
    return math.ceil((600.0 * BERRY_ESSEEN * third_moment) ** 2)


def published_users_needed(
    third_moment: float, epsilon: float, beta: float, bins: int
) -> int:
    """Return how many users the published variance estimator needs.

    Its histogram must be right to 1/600 in every bin, which takes
    max(8/(epsilon/600) log(2 bins/beta), (600^2/2) log(4/beta)) differences, and
    each difference takes 2 phi users.

    Paper: Lemma `histlearn` and Algorithm `algo:varianceestimate`.
    """
    epsilon = check.positive("epsilon", epsilon)
    beta = check.strictly_between("beta", beta, 0.0, 1.0)
    bins = check.integer("bins", bins, 1)
    precision = 1.0 / 600.0
    noise = 8.0 / (epsilon * precision) * math.log(2.0 * bins / beta)
    sampling = math.log(4.0 / beta) / (2.0 * precision**2)
    return 2 * published_group_size(third_moment) * math.ceil(max(noise, sampling))


def published_variance(
    values: Any,
    epsilon: float,
    *,
    k: int,
    group_size: int,
    users_needed: int,
    rng: np.random.Generator | None = None,
) -> float | None:
    """Return the published estimate of the variance, or None where it gives up.

    Users are averaged in groups of `group_size` (the paper's phi), the groups are
    paired, and the fullest bin (2^j, 2^(j+1)] of the absolute differences gives
    the standard deviation as 2^(j+2) sqrt(phi).

    It gives up below `users_needed`: with the paper's constants, always.  And its
    promise, an answer in [1, 8] times the variance, is off: without noise it
    returns between 6.9 and 27.7 times the variance of Gaussian values.

    Privacy: `epsilon`; one user changes one difference, so one count falls and one
    rises by 1 and the exponential mechanism on counts has sensitivity 1.  The
    decision to give up depends on the number of users only.

    Paper: Algorithm `algo:varianceestimate`.
    """
    means = _unit_interval("values", values)
    epsilon = check.positive("epsilon", epsilon)
    k = check.integer("k", k, 1)
    group_size = check.integer("group_size", group_size, 1)
    users_needed = check.integer("users_needed", users_needed, 0)
    groups = len(means) // group_size
    if len(means) < users_needed or groups < 2:
        return None
    averages = means[: groups * group_size].reshape(groups, group_size).mean(axis=1)
    pairs = groups // 2
    differences = np.abs(averages[1 : 2 * pairs : 2] - averages[0 : 2 * pairs : 2])
    lowest, highest = published_bins(k, group_size)
    with np.errstate(divide="ignore"):
        # (2^j, 2^(j+1)] holds x when j = ceil(log2 x) - 1; zero goes to the lowest.
        labels = np.ceil(np.log2(differences)) - 1.0
    labels = np.clip(labels, lowest, highest).astype(np.intp)
    counts = np.bincount(labels - lowest, minlength=highest - lowest + 1)
    fullest = lowest + exponential_mechanism(counts, epsilon, rng=rng)
    return float((2.0 ** (fullest + 2)) ** 2 * group_size)


def published_bins(k: int, group_size: int) -> tuple[int, int]:
    """Return the lowest and the highest bin for values that are means of k samples.

    The standard deviation of such means lies between 1/(2k) (finer ones are not
    told apart) and 1/2.
    """
    scale = math.sqrt(group_size)
    lowest = math.floor(math.log2(1.0 / (2.0 * k) / scale)) - 2
    return lowest, math.ceil(math.log2(0.5 / scale)) + 1


def _unit_interval(name: str, values: Any) -> Floats:
    array = np.asarray(check.one_dimensional(name, values), dtype=np.float64)
    if not ((array >= 0) & (array <= 1)).all():
        bad = array[~((array >= 0) & (array <= 1))][0]
        raise ValueError(f"{name} must lie in [0, 1]; one entry is {bad}")
    return array
