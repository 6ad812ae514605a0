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

import numpy as np

from hetlit import check
from hetlit.check import Floats
from hetlit.estimators.private_k.bound import check_bound
from hetlit.estimators.result import Estimate, Trace
from hetlit.estimators.spread import (
    CAUTIOUS_SPREAD,
    JUDGED_SPREADS,
    MEAN_SHARE,
    MOMENT_NOISE,
    MOMENT_SHARES,
    SPREAD_EVIDENCE,
    SPREAD_SHARE,
    WORTHWHILE,
    best_reach,
    clamped_guess,
    judged_spread,
    light_intervals,
    mean_log_ratio,
    spread_resolution,
    typical_spread,
)
from hetlit.privacy.account import Account
from hetlit.privacy.ledger import PRIVATE_SIZES, everyone
from hetlit.privacy.noise import Randomness, source_of
from hetlit.theory.variance import plain_variance, variance_of_mean
from hetlit.theory.weights import optimal_ceiling
from hetlit.users.groups import Groups, Sizes, by_size_class, classes_up_to
from hetlit.users.table import Users, check_users

# Shares of epsilon and other constants, chosen by measurement: see benchmarks/.
COUNT_SHARE = 0.1
TOTAL_SHARE = 0.05
FEWEST = 1000.0  # users times epsilon below which only the plain mean is tried
CLEAR = 4.0  # noise scales that make a count believable
ENOUGH = 4  # samples that make a user's square worth its noise


@dataclass(frozen=True, kw_only=True)
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


@dataclass(frozen=True, kw_only=True)
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
    rng: Randomness = None,
    trace: bool = False,
) -> Estimate:
    """Return a private estimate of the population mean, for private sizes.

    Parameters
    ----------
    users : Users, none larger than k_max
    epsilon : the total user-level privacy budget of the release, in [1e-12, 1e12]
    k_max : a public bound on sizes
    rng : simulated noise; see `hetlit.privacy.noise`
    trace : also return what happened inside, not for release

    Privacy: `epsilon` in total, delta 0; see the module for the proof.
    """
    users = check_users(users)
    epsilon = check.epsilon(epsilon)
    trace = check.flag("trace", trace)
    source = source_of(rng)
    k_max = check_bound(users, k_max)
    n = users.n
    groups = by_size_class(users)
    plain = groups.sum(lambda group, means: means) / n
    account = Account(epsilon, PRIVATE_SIZES, everyone(n), source)

    if n * epsilon < FEWEST:
        value = account.laplace("plain mean", plain, 1.0 / n, epsilon)
        inside = Trace(noiseless=plain, noise_scale=account.scale, path="plain")
        return Estimate(value, account.ledger(), inside if trace else None)

    # 1. First mean.
    raw = account.laplace("first mean", plain, 1.0 / n, MEAN_SHARE * epsilon)
    first_scale = account.scale
    error = math.sqrt(0.25 / n + 2.0 * first_scale**2)
    centre, q = clamped_guess(raw, error, n)

    # 2. Histogram.
    noisy = account.counts(
        "histogram of sizes",
        _binned(groups.sizes, k_max),
        2.0,
        COUNT_SHARE * epsilon,
    )
    histogram = _believed(noisy, account.scale)

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
        guesses = _asked(account, groups, histogram, weighting, question)
        spread, heavy_tails = judged_spread(q=q, evidence=n * epsilon, **guesses)
        weighting = replace(weighting, spread=spread, clips=not heavy_tails)
        spreads = [spread]

    # 4. Weights, if they are worth it.
    final_share = account.left - TOTAL_SHARE * epsilon
    weighting = weighting.for_histogram(histogram, final_share)
    promised = [weighting.variance(histogram, s, final_share) for s in spreads]
    without = [
        plain_variance(histogram.k, histogram.counts, q, s, n, account.left)
        for s in spreads
    ]
    if mean_log_ratio(promised, without) >= math.log(WORTHWHILE):
        # Two noisy copies of one mean, weighted so as to minimise their noise.
        again = account.laplace("second plain mean", plain, 1.0 / n, account.left)
        share = first_scale**2 / (first_scale**2 + account.scale**2)
        inside = Trace(
            noiseless=share * plain + (1.0 - share) * raw,
            noise_scale=share * account.scale,
            path="plain again",
        )
        value = share * again + (1.0 - share) * raw
        return Estimate(value, account.ledger(), inside if trace else None)

    # 5. Total weight, within the bounds that n and the weights set.
    weights, lower, upper = weighting.at(classes_up_to(k_max))
    own_weights, own_lower, own_upper = weighting.at(groups.sizes.k)
    lightest, heaviest = float(weights.min()), float(weights.max())
    total = n * heaviest
    if lightest < heaviest:  # otherwise the total is public
        total = account.laplace(
            "total weight",
            float(np.sum(groups.sizes.counts * own_weights)),
            heaviest - lightest,
            TOTAL_SHARE * epsilon,
        )
        total = min(max(total, n * lightest), n * heaviest)

    # 6. Weighted deviations.
    sensitivity = float(
        np.max(weights * (upper - centre)) + np.max(weights * (centre - lower))
    )
    deviations = groups.sum(
        lambda group, means: (
            own_weights[group]
            * (np.clip(means, own_lower[group], own_upper[group]) - centre)
        ),
    )
    noisy_deviations = account.laplace(
        "weighted deviations", deviations, sensitivity, account.left
    )
    inside = Trace(
        noiseless=centre + deviations / total,
        noise_scale=account.scale / total,
        path="asked" if guesses else "cautious",
        initial_mean=centre,
        initial_variance=weighting.spread,
        clips=weighting.clips,
        total_weight=total,
        sensitivity=sensitivity,
        guesses=guesses,
        histogram=histogram,
    )
    value = centre + noisy_deviations / total
    return Estimate(value, account.ledger(), inside if trace else None)


def _binned(sizes: Sizes, k_max: int) -> Floats:
    """Return the number of users with sizes in [2^b, 2^(b+1)), for b = 0, 1, ..."""
    exact = np.zeros(int(k_max).bit_length())
    np.add.at(exact, np.log2(sizes.k).astype(np.int64), sizes.counts)
    return exact


def _believed(noisy: Floats, scale: float) -> Histogram:
    """Return the noisy counts that stand out from their noise."""
    start = np.exp2(np.arange(len(noisy), dtype=np.float64))
    clear = noisy > CLEAR * scale
    clear[0] |= not clear.any()  # with nothing clear, believe in single samples
    return Histogram(
        k=(3.0 * start[clear] - 1.0) / 2.0,
        counts=np.maximum(noisy, 1.0)[clear],
        start=start[clear],
    )


@dataclass(frozen=True, kw_only=True)
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
        without.append(
            plain_variance(histogram.k, histogram.counts, q, relative * q, n, left)
        )
    if mean_log_ratio(promised, without) >= math.log(WORTHWHILE):
        return None
    return Question(
        moment_share=moment_share,
        spread_share=spread_share,
        least=least,
        resolution=resolution,
    )


def _asked(
    account: Account,
    groups: Groups,
    histogram: Histogram,
    weighting: Weighting,
    question: Question,
) -> dict[str, float]:
    """Return the second moment, its noise scale and the typical spread."""
    centre, q = weighting.centre, weighting.q
    total = account.laplace(
        "second moment",
        _sum_of_squares(groups, centre, q),
        _moment_range(centre),
        question.moment_share,
    )
    believed = histogram.above(ENOUGH)
    scale = account.scale / believed
    typical = typical_spread(
        account,
        groups.users,
        question.least,
        centre,
        q,
        question.resolution,
        question.spread_share,
    )
    return {"moment": total / believed, "scale": scale, "typical": typical}


def _sum_of_squares(groups: Groups, centre: float, q: float) -> float:
    """Return the sum of ((mean - p)^2 - q/k)/(1 - 1/k) over users with ENOUGH samples.

    Each term has mean var_p.
    """
    k = groups.sizes.k
    factor = np.where(k >= ENOUGH, 1.0 / (1.0 - 1.0 / np.maximum(k, ENOUGH)), 0.0)
    offset = factor * q / k
    return groups.sum(
        lambda group, means: factor[group] * (means - centre) ** 2 - offset[group]
    )


def _moment_range(centre: float) -> float:
    """Return the largest minus the smallest term of the sum of squares, 0 included.

    With d = farthest^2 a term is at most (d - q/k)/(1 - 1/k) and at least
    -(q/k)/(1 - 1/k); since q <= 1/4 <= d, both are extreme at k = ENOUGH.
    """
    return max(centre, 1.0 - centre) ** 2 / (1.0 - 1.0 / ENOUGH)
