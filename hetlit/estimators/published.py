"""What only the paper's own constants need: its error of the mean, its variance.

Paper: Section 6.  Chapter: First guesses.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from hetlit import check
from hetlit.check import Floats, Integers
from hetlit.estimators.first_guesses import unit_interval
from hetlit.privacy.account import Account, single_step
from hetlit.privacy.noise import Randomness
from hetlit.theory import gaussian

# The constant of the Berry-Esseen theorem (Shevtsova, 2011).
BERRY_ESSEEN = 0.4748
# What Lemma `lem.thirdmoment` gives for E|x - mean|^3/sd^3 of Gaussian rates.
GAUSSIAN_RATES = 8.0 * (3.0 * math.sqrt(3.0) + gaussian.THIRD_MOMENT)


def published_mean_error(estimate: float, n: int, epsilon: float, beta: float) -> float:
    """Return the published alpha, given the initial mean itself.

    Its outer factor 2 is spare where the first branch is the larger one.

    Paper: Lemma `initialmeanestimate`.

    >>> round(published_mean_error(0.37, 1000, 1.0, 0.05), 6)
    0.336468
    """
    estimate = min(max(check.real("estimate", estimate), 0.0), 1.0)
    n = check.integer("n", n, 1)
    epsilon = check.epsilon(epsilon)
    beta = check.chance("beta", beta)
    term = math.log(4.0 / beta) / n
    sampling = math.sqrt(12.0 * estimate * term + 36.0 * term**2) + 6.0 * term
    return 2.0 * max(sampling, math.log(2.0 / beta) / (epsilon * n))


def published_group_size(third_moment: float) -> int:
    """Return the paper's phi = ceil((600 * Berry-Esseen constant * third_moment)^2).

    `third_moment` bounds E|x - mean|^3 / sd^3 of the values, from 1e-6 to 1e6.

    >>> published_group_size(gaussian.THIRD_MOMENT)
    206664
    """
    third_moment = check.between("third_moment", third_moment, 1e-6, 1e6)
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
    epsilon = check.epsilon(epsilon)
    beta = check.chance("beta", beta)
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
    rng: Randomness = None,
) -> float | None:
    """Return the published estimate of the variance, or None where it gives up.

    Users are averaged in groups of `group_size` (the paper's phi), the groups are
    paired, and the fullest bin (2^j, 2^(j+1)] of the absolute differences gives
    the standard deviation as 2^(j+2) sqrt(phi).

    It gives up below `users_needed`: with the paper's constants, always.  And its
    promise, an answer in [1, 8] times the variance, is off: without noise it
    returns between 6.9 and 27.7 times the variance of Gaussian values.

    Privacy: `epsilon`; one user changes one difference, so one count falls and one
    rises by 1 and the exponential mechanism on counts has sensitivity 1.  Values must
    come in an order that does not depend on them, public or random.  The
    decision to give up depends on the number of users only.

    Paper: Algorithm `algo:varianceestimate`.
    """
    account = single_step(epsilon, rng)
    k = check.integer("k", k, 1)
    group_size = check.integer("group_size", group_size, 1)
    users_needed = check.integer("users_needed", users_needed, 0)
    means = unit_interval("values", values)
    if not published_can_answer(len(means), group_size, users_needed):
        return None
    return published_step(
        account, "variance", means, account.left, k=k, group_size=group_size
    )


def published_can_answer(users: int, group_size: int, users_needed: int) -> bool:
    """Return whether the published estimator answers: a function of public numbers."""
    return users >= users_needed and users // group_size >= 2


def published_step(
    account: Account,
    name: str,
    means: Floats,
    epsilon: float,
    *on: str,
    k: int,
    group_size: int,
    delta: float = 0.0,
) -> float:
    """Return the published variance of means that are enough, by one private choice."""
    counts = published_histogram(means, k, group_size)
    lowest, _ = published_bins(k, group_size)
    fullest = lowest + account.choose(name, counts, epsilon, *on, delta=delta)
    return float((2.0 ** (fullest + 2)) ** 2 * group_size)


def published_histogram(means: Floats, k: int, group_size: int) -> Integers:
    """Return how many differences between averages of groups fall into each bin."""
    groups = len(means) // group_size
    averages = means[: groups * group_size].reshape(groups, group_size).mean(axis=1)
    pairs = groups // 2
    differences = np.abs(averages[1 : 2 * pairs : 2] - averages[0 : 2 * pairs : 2])
    lowest, highest = published_bins(k, group_size)
    with np.errstate(divide="ignore"):
        # (2^j, 2^(j+1)] holds x when j = ceil(log2 x) - 1; zero goes to the lowest.
        labels = np.ceil(np.log2(differences)) - 1.0
    labels = np.clip(labels, lowest, highest).astype(np.intp)
    return np.bincount(labels - lowest, minlength=highest - lowest + 1)


def published_bins(k: int, group_size: int) -> tuple[int, int]:
    """Return the lowest and the highest bin for values that are means of k samples.

    The standard deviation of such means lies between 1/(2k) (finer ones are not
    told apart) and 1/2.
    """
    scale = math.sqrt(group_size)
    lowest = math.floor(math.log2(1.0 / (2.0 * k) / scale)) - 2
    return lowest, math.ceil(math.log2(0.5 / scale)) + 1
