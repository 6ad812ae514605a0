"""The estimator to use for private sizes: one budget, all steps on all users.

When sizes are private too, weights cannot be normalised by their sum, which tells
how much data people have.  So two noisy sums are released, of weights and of
weighted deviations from a first guess, and their ratio gives the estimate.  A
user's weight is a function of her own size only, chosen from a noisy histogram.

With few users or a small budget:
    the mean of all user means, with Laplace noise (the plain mean).
Otherwise:
    1. First mean: the plain mean, on a small share of the budget.
    2. Histogram: noisy counts of users with size 1, 2-3, 4-7, 8-15 and so on.
    3. If the histogram shows that it pays: second moment and typical spread, as for
       public sizes, among users with enough samples.
    4. Weights, from the histogram and the spread.  If they promise too little, the
       rest of the budget goes to a second plain mean, combined with the first.
    5. Total weight.
    6. Weighted deviations from the first mean.

Privacy, path by path (neighbours replace one user, her size included; n, k_max and
epsilon are public).  Which step comes next, and all its parameters, depend on n,
k_max, epsilon and earlier outputs only.  Replacing one user moves

- in steps 1 and 4, the mean of n numbers in [0, 1] by at most 1/n;
- in step 2, one count down and another up by 1: by 2 in total;
- in step 3, the sum of squares by at most the range of one user's term, where a user
  without enough samples has term 0; the utilities of the median by at most 1;
- in step 5, the total weight by at most the largest minus the smallest weight;
- in step 6, the deviations by at most the largest positive one plus the largest
  negative one, over all sizes that a user can have.

The shares of epsilon on every path add up to epsilon (adaptive composition).

Chapter: Private k.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from . import check
from .check import Floats
from .estimate import Estimate, Trace
from .grouping import SizeGroups, by_size_class, classes_up_to, sum_over_users
from .ideal import check_users
from .model import Users, variance_of_mean
from .noise import laplace, simulated
from .privacy import PRIVATE_SIZES, Account, Cohort
from .size_bound import check_bound
from .spread import (
    CAUTIOUS_SPREAD,
    JUDGED_SPREADS,
    MOMENT_NOISE,
    MOMENT_SHARES,
    SPREAD_EVIDENCE,
    WORTHWHILE,
    best_reach,
    clamped_guess,
    judged_spread,
    light_intervals,
    mean_log_ratio,
    spread_resolution,
    typical_spread,
)
from .weights import optimal_ceiling

# Shares of epsilon and other constants, chosen by measurement: see benchmarks/.
MEAN_SHARE = 0.05
COUNT_SHARE = 0.1
SPREAD_SHARE = 0.05
TOTAL_SHARE = 0.05
FEWEST = 1000.0  # users times epsilon below which only the plain mean is tried
CLEAR = 4.0  # noise scales that make a count believable
ENOUGH = 4  # samples that make a user's square worth its noise


@dataclass(frozen=True)
class Histogram:
    """What is believed about sizes: how many users have about which size."""

    k: Floats  # the middle of each bin that is believed in
    counts: Floats
    start: Floats  # its smallest size

    @property
    def largest(self) -> float:
        """The largest size that is believed in."""
        return float(2.0 * self.start[-1] - 1.0)

    def above(self, size: float) -> float:
        """Return the number of users believed to have this size or more."""
        return float(self.counts[self.start >= size].sum())


@dataclass(frozen=True)
class Weighting:
    """A user's weight and interval, as functions of her size."""

    cap: float
    centre: float
    q: float
    spread: float
    error: float
    reach: float
    clips: bool
    ceiling: float = math.inf

    def at(self, k: Floats) -> tuple[Floats, Floats, Floats]:
        """Return (weights, lower, upper) for these sizes."""
        variances = variance_of_mean(np.minimum(k, self.cap), self.q, self.spread)
        lower, upper = np.zeros_like(variances), np.ones_like(variances)
        if self.clips:
            lower, upper = light_intervals(
                variances, self.centre, self.q, self.spread, self.error, self.reach
            )
        return np.minimum(1.0 / variances, self.ceiling / (upper - lower)), lower, upper

    def for_histogram(self, histogram: Histogram, epsilon: float) -> Weighting:
        """Return this weighting with the best ceiling for the sizes believed in."""
        _, lower, upper = self.at(histogram.k)
        variances = variance_of_mean(histogram.k, self.q, self.spread)
        ceiling = optimal_ceiling(variances, upper - lower, epsilon, histogram.counts)
        return replace(self, ceiling=ceiling)

    def variance(self, histogram: Histogram, spread: float, epsilon: float) -> float:
        """Return the variance it promises for this var_p if nobody is clipped."""
        weights, lower, upper = self.at(histogram.k)
        variances = variance_of_mean(histogram.k, self.q, spread)
        sampling = float(np.sum(histogram.counts * weights**2 * variances))
        noise = 2.0 * (float(np.max(weights * (upper - lower))) / epsilon) ** 2
        return (sampling + noise) / float(np.sum(histogram.counts * weights)) ** 2


def estimate_histogram_ratio(
    users: Users,
    epsilon: float,
    *,
    k_max: int,
    rng: np.random.Generator | None = None,
    trace: bool = False,
) -> Estimate:
    """Return a private estimate of the population mean, for private sizes.

    Parameters
    ----------
    users : Users, none larger than k_max
    epsilon : the total user-level privacy budget of the release, above 0
    k_max : a public bound on sizes
    rng : simulated noise; see `hetlit.noise`
    trace : also return what happened inside, not for release

    Privacy: `epsilon` in total, delta 0; see the module for the proof.
    """
    users = check_users(users)
    epsilon = check.positive("epsilon", epsilon)
    k_max = check_bound(users, k_max)
    source = simulated(rng)
    n = users.n
    groups = by_size_class(users)
    plain = sum_over_users(users, groups, lambda group, means: means) / n
    account = Account(epsilon, PRIVATE_SIZES, (Cohort("everyone", n, "no selection"),))

    if n * epsilon < FEWEST:
        scale = account.laplace("plain mean", epsilon, 1.0 / n)
        return _released(account, plain, scale, source, trace, path="plain")

    # 1. First mean.
    first_scale = account.laplace("first mean", MEAN_SHARE * epsilon, 1.0 / n)
    raw = plain + laplace(first_scale, rng=source)
    error = math.sqrt(0.25 / n + 2.0 * first_scale**2)
    centre, q = clamped_guess(raw, error, n)

    # 2. Histogram.
    count_scale = account.laplace("histogram of sizes", COUNT_SHARE * epsilon, 2.0)
    histogram = _noisy_histogram(groups, k_max, count_scale, source)

    # 3. How much do users differ?
    weighting = Weighting(
        cap=min(histogram.largest, k_max),
        centre=centre,
        q=q,
        spread=CAUTIOUS_SPREAD * q,
        error=error,
        reach=best_reach(n, epsilon),
        clips=False,
    )
    question = _spread_question(histogram, weighting, n, epsilon, account.left)
    spreads = [relative * q for relative in JUDGED_SPREADS]
    guesses: dict[str, float] = {}
    if question is not None:
        guesses = _asked(users, groups, histogram, weighting, question, account, source)
        spread, heavy_tails = judged_spread(q=q, evidence=n * epsilon, **guesses)
        weighting = replace(weighting, spread=spread, clips=not heavy_tails)
        spreads = [spread]

    # 4. Weights, if they are worth it.
    final_share = account.left - TOTAL_SHARE * epsilon
    weighting = weighting.for_histogram(histogram, final_share)
    promised = [weighting.variance(histogram, s, final_share) for s in spreads]
    without = [_plain_variance(histogram, q, s, n, account.left) for s in spreads]
    if mean_log_ratio(promised, without) >= math.log(WORTHWHILE):
        # Two noisy copies of one mean, weighted so as to minimise their noise.
        again = account.laplace("second plain mean", account.left, 1.0 / n)
        share = first_scale**2 / (first_scale**2 + again**2)
        noiseless = share * plain + (1.0 - share) * raw
        return _released(
            account, noiseless, share * again, source, trace, path="plain again"
        )

    # 5. Total weight, within the bounds that n and the weights set.
    weights, lower, upper = weighting.at(classes_up_to(k_max))
    total_scale = account.laplace(
        "total weight", TOTAL_SHARE * epsilon, float(weights.max() - weights.min())
    )
    own_weights, own_lower, own_upper = weighting.at(groups.k)
    total = float(np.sum(groups.counts * own_weights)) + laplace(
        total_scale, rng=source
    )
    total = min(max(total, n * float(weights.min())), n * float(weights.max()))

    # 6. Weighted deviations.
    sensitivity = float(
        np.max(weights * (upper - centre)) + np.max(weights * (centre - lower))
    )
    scale = account.laplace("weighted deviations", account.left, sensitivity) / total
    deviations = sum_over_users(
        users,
        groups,
        lambda group, means: (
            own_weights[group]
            * (np.clip(means, own_lower[group], own_upper[group]) - centre)
        ),
    )
    return _released(
        account,
        centre + deviations / total,
        scale,
        source,
        trace,
        path="asked" if guesses else "cautious",
        initial_mean=centre,
        initial_variance=weighting.spread,
        clips=weighting.clips,
        total_weight=total,
        sensitivity=sensitivity,
        guesses=guesses,
        histogram=histogram,
    )


def _released(
    account: Account,
    noiseless: float,
    scale: float,
    rng: np.random.Generator,
    trace: bool,
    **parts: Any,
) -> Estimate:
    value = noiseless + laplace(scale, rng=rng)
    inside = Trace(noiseless=noiseless, noise_scale=scale, **parts)
    return Estimate(value, account.ledger(), inside if trace else None)


def _noisy_histogram(
    groups: SizeGroups, k_max: int, scale: float, rng: np.random.Generator
) -> Histogram:
    """Return the counts of sizes in [2^b, 2^(b+1)) that stand out from their noise."""
    bins = int(k_max).bit_length()
    exact = np.zeros(bins)
    np.add.at(exact, np.log2(groups.k).astype(np.int64), groups.counts)
    noisy = exact + rng.laplace(0.0, scale, size=bins)
    start = np.exp2(np.arange(bins, dtype=np.float64))
    clear = noisy > CLEAR * scale
    clear[0] |= not clear.any()  # with nothing clear, believe in single samples
    counts = np.maximum(noisy, 1.0)[clear]
    return Histogram((3.0 * start[clear] - 1.0) / 2.0, counts, start[clear])


@dataclass(frozen=True)
class Question:
    """What to ask about the spread: on which budget, of whom, how finely."""

    moment_share: float
    spread_share: float
    least: float
    resolution: float


def _spread_question(
    histogram: Histogram, weighting: Weighting, n: int, epsilon: float, left: float
) -> Question | None:
    """Return what to ask, or None if asking is impossible or does not pay."""
    q, spread_share = weighting.q, SPREAD_SHARE * epsilon
    enough = histogram.above(ENOUGH)
    candidates = [
        size
        for size in histogram.start
        if size >= ENOUGH and histogram.above(size) * spread_share >= SPREAD_EVIDENCE
    ]
    if not candidates:
        return None
    # The noise of the second moment must stay below MOMENT_NOISE/4 at every p.
    needed = _moment_range(1.0) / (enough * MOMENT_NOISE * 0.25)
    moment_share = max(MOMENT_SHARES[0] * epsilon, needed)
    if moment_share > MOMENT_SHARES[1] * epsilon:
        return None
    least = candidates[-1]
    resolution = spread_resolution(histogram.above(least), least, spread_share)
    budget = left - moment_share - spread_share - TOTAL_SHARE * epsilon
    promised, without = [], []
    for relative in JUDGED_SPREADS:
        believed = min(relative + resolution, 1.0) * q
        light = replace(weighting, spread=believed, clips=True)
        light = light.for_histogram(histogram, budget)
        promised.append(light.variance(histogram, relative * q, budget))
        without.append(_plain_variance(histogram, q, relative * q, n, left))
    if mean_log_ratio(promised, without) >= math.log(WORTHWHILE):
        return None
    return Question(moment_share, spread_share, least, resolution)


def _asked(
    users: Users,
    groups: SizeGroups,
    histogram: Histogram,
    weighting: Weighting,
    question: Question,
    account: Account,
    rng: np.random.Generator,
) -> dict[str, float]:
    """Return the second moment, its noise scale and the typical spread."""
    centre, q = weighting.centre, weighting.q
    sum_scale = account.laplace(
        "second moment", question.moment_share, _moment_range(centre)
    )
    total = _sum_of_squares(users, groups, centre, q) + laplace(sum_scale, rng=rng)
    account.exponential("typical spread", question.spread_share)
    typical = typical_spread(
        users,
        question.least,
        centre,
        q,
        question.resolution,
        question.spread_share,
        rng,
    )
    believed = histogram.above(ENOUGH)
    return {
        "moment": total / believed,
        "scale": sum_scale / believed,
        "typical": typical,
    }


def _sum_of_squares(users: Users, groups: SizeGroups, centre: float, q: float) -> float:
    """Return the sum of ((mean - p)^2 - q/k)/(1 - 1/k) over users with ENOUGH samples.

    Each term has mean var_p.
    """
    enough = groups.k >= ENOUGH
    factor = np.where(enough, 1.0 / (1.0 - 1.0 / np.maximum(groups.k, ENOUGH)), 0.0)
    offset = factor * q / groups.k
    return sum_over_users(
        users,
        groups,
        lambda group, means: factor[group] * (means - centre) ** 2 - offset[group],
    )


def _moment_range(centre: float) -> float:
    """Return the largest minus the smallest term of the sum of squares, 0 included.

    With d = farthest^2 a term is at most (d - q/k)/(1 - 1/k) and at least
    -(q/k)/(1 - 1/k); since q <= 1/4 <= d, both are extreme at k = ENOUGH.
    """
    return max(centre, 1.0 - centre) ** 2 / (1.0 - 1.0 / ENOUGH)


def _plain_variance(
    histogram: Histogram, q: float, spread: float, n: int, epsilon: float
) -> float:
    """Return the variance of the plain mean, as far as the histogram tells."""
    variances = variance_of_mean(histogram.k, q, spread)
    average = float(np.average(variances, weights=histogram.counts))
    return average / n + 2.0 / (n * epsilon) ** 2
