"""The estimator to use for private sizes: one budget, all steps on all users.

When sizes are private too, weights cannot be normalised by their sum, which tells
how much data people have.  So two noisy sums are released, of weights and of
weighted deviations from a first guess, and their ratio gives the estimate.  A
user's weight is a function of her own size only, chosen from a noisy histogram.

With few users or a small budget:
    the mean of all user means, with Laplace noise (the plain mean).
Otherwise:
    1. Histogram: noisy counts of users with size 1, 2-3, 4-7, 8-15 and so on.
    2. Anchor: the plain mean, on a share of the budget.
    3. If the histogram shows that it pays: typical spread and tail test, as for public
       sizes, among users with enough samples.
    4. Weights, from the histogram and the spread.  If they promise too little, the
       rest of the budget goes to a second plain mean, combined with the first.
    5. Total weight.
    6. Weighted deviations from the anchor.

At last the value is moved towards the anchor if it is far from it, and a warning says
so where chance cannot be the reason: `hetlit.estimators.anchor`.

Privacy, path by path (neighbours replace one user, her size included; n, k_max and
epsilon are public).  Which step comes next, and all its parameters, depend on n,
k_max, epsilon and earlier outputs only.  Replacing one user moves

- in step 1, one count down and another up by 1: by 2 in total;
- in steps 2 and 4, the mean of n numbers in [0, 1] by at most 1/n;
- in step 3, the utilities of the median by at most 1, and the tail test by at most 1,
  since the term of a user lies in [0, 1] whatever her size;
- in step 5, the total weight by at most the largest minus the smallest weight;
- in step 6, the deviations by at most the largest positive one plus the largest
  negative one, over all sizes that a user can have.

The shares of epsilon on every path add up to epsilon (adaptive composition).  Moving
the value, the warning and the uncertainty are post-processing.

Accuracy: as for public sizes, the root mean squared error is at most the anchor's plus
the radius into which values are moved, for every population.

Chapter: Private k; When the model is wrong.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from hetlit import check
from hetlit.check import Floats
from hetlit.estimators import tails
from hetlit.estimators.anchor import anchor_error, anchor_share, settle
from hetlit.estimators.plain import plain_mean
from hetlit.estimators.private_k.bound import check_bound
from hetlit.estimators.result import Estimate, Trace
from hetlit.estimators.spread import (
    CAUTIOUS_SPREAD,
    JUDGED_SPREADS,
    SPREAD_EVIDENCE,
    SPREAD_SHARE,
    WORTHWHILE,
    best_reach,
    clamped_guess,
    light_intervals,
    mean_log_ratio,
    spread_resolution,
    typical_spread,
)
from hetlit.estimators.uncertainty import of_plain_mean
from hetlit.privacy.account import Account
from hetlit.privacy.ledger import PRIVATE_SIZES, everyone
from hetlit.privacy.noise import Randomness, source_of
from hetlit.theory.variance import plain_variance, variance_of_mean
from hetlit.theory.weights import optimal_ceiling
from hetlit.users.groups import Sizes, by_size_class, classes_up_to
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
    """A user's weight and interval, as functions of her size.

    error, reach : of the intervals, see `light_intervals`; None where nobody is clipped
    ceiling : on weight times width
    """

    cap: float
    centre: float
    q: float
    spread: float
    error: float
    reach: float | None = None
    ceiling: float = math.inf

    def at(self, k: Floats) -> tuple[Floats, Floats, Floats]:
        """Return (weights, lower, upper) for these sizes."""
        variances = self.variances(k)
        lower, upper = np.zeros_like(variances), np.ones_like(variances)
        if self.reach is not None:
            lower, upper = light_intervals(
                variances, self.centre, self.q, self.spread, self.error, self.reach
            )
        return np.minimum(1.0 / variances, self.ceiling / (upper - lower)), lower, upper

    def variances(self, k: Floats) -> Floats:
        """Return the variance of a user's mean, for these sizes or the cap."""
        return variance_of_mean(np.minimum(k, self.cap), self.q, self.spread)

    def for_histogram(self, histogram: Histogram, epsilon: float) -> Weighting:
        """Return this weighting with the best ceiling for the sizes believed in."""
        _, lower, upper = self.at(histogram.k)
        variances = variance_of_mean(histogram.k, self.q, self.spread)
        ceiling = optimal_ceiling(variances, upper - lower, epsilon, histogram.counts)
        return replace(self, ceiling=ceiling)

    def shares(self, histogram: Histogram) -> Floats:
        """Return the part of the mean that a user of each size believed in has."""
        weights, _, _ = self.at(histogram.k)
        return np.asarray(weights / np.sum(histogram.counts * weights))

    def variance(self, histogram: Histogram, spread: float, epsilon: float) -> float:
        """Return the variance it promises for this var_p if nobody is clipped."""
        weights, lower, upper = self.at(histogram.k)
        k, counts = histogram.k, histogram.counts
        shares = self.shares(histogram)
        noise = 2.0 * (float(np.max(weights * (upper - lower))) / epsilon) ** 2
        noise /= float(np.sum(counts * weights)) ** 2
        return tails.mean_variance(k, counts, shares, self.q, spread) + noise


@dataclass(frozen=True, kw_only=True)
class Final:
    """The last steps, planned.

    weighting, epsilon : of the deviations
    test, limit : the tail test before them and the count from which on there is an
        alarm; None where nobody is clipped
    """

    weighting: Weighting
    epsilon: float
    test: tails.TailTest[Weighting] | None = None
    limit: float = 0.0


@dataclass(frozen=True, kw_only=True)
class Plan:
    """What n, epsilon, the histogram and the anchor say about the rest.

    All of it was released, or is public.
    """

    n: int
    epsilon: float
    histogram: Histogram
    cap: float
    centre: float
    q: float
    error: float

    def unclipped(self, spread: float, epsilon: float) -> Weighting:
        """Return the weighting if nobody may be clipped."""
        weighting = Weighting(
            cap=self.cap,
            centre=self.centre,
            q=self.q,
            spread=max(spread, CAUTIOUS_SPREAD * self.q),
            error=self.error,
        )
        return weighting.for_histogram(self.histogram, epsilon)

    def final(self, spread: float, left: float) -> Final:
        """Return the last steps for what is left, given the typical spread."""
        left -= TOTAL_SHARE * self.epsilon
        cautious = self.unclipped(spread, left)
        chosen = tails.best_test(
            self._tests(spread, left),
            self.centre,
            cautious.variance(self.histogram, spread, left),
            self._compared_with(spread),
        )
        if chosen is None:
            return Final(weighting=cautious, epsilon=left)
        test, limit = chosen
        return Final(
            weighting=test.mean, epsilon=test.mean_epsilon, test=test, limit=limit
        )

    def promised(self, final: Final, spread: float) -> float:
        """Return the variance that the last steps promise for this var_p."""
        return final.weighting.variance(self.histogram, spread, final.epsilon)

    def _tests(self, spread: float, left: float) -> Iterator[tails.TailTest[Weighting]]:
        """Yield a tail test of each share, and the clipped mean that it allows."""
        histogram = self.histogram
        for share in tails.SHARES:
            test, rest = share * self.epsilon, left - share * self.epsilon
            weighting = Weighting(
                cap=self.cap,
                centre=self.centre,
                q=self.q,
                spread=spread,
                error=self.error,
                reach=best_reach(self.n, rest),
            ).for_histogram(histogram, rest)
            _, lower, upper = weighting.at(histogram.k)
            if lower.max() <= 0.0 and upper.min() >= 1.0:
                return  # nobody would be clipped
            unclipped = self.unclipped(spread, rest)
            yield tails.TailTest(
                epsilon=test,
                intervals=tails.Intervals(
                    k=histogram.k,
                    counts=histogram.counts,
                    weights=weighting.shares(histogram),
                    lower=lower,
                    upper=upper,
                    deviations=np.sqrt(weighting.variances(histogram.k)),
                    reach=best_reach(self.n, rest),
                ),
                mean=weighting,
                mean_epsilon=rest,
                calm=weighting.variance(histogram, spread, rest),
                alarmed=unclipped.variance(histogram, spread, rest),
            )

    def _compared_with(self, spread: float) -> tuple[tails.Unclipped, ...]:
        """Return the plain and the cautious mean, each on the whole budget."""
        k, counts = self.histogram.k, self.histogram.counts
        cautious = self.unclipped(0.0, self.epsilon)
        plain = np.full_like(k, 1.0 / self.n)
        return (
            tails.Unclipped(
                variance=plain_variance(
                    k, counts, self.q, spread, self.n, self.epsilon
                ),
                squares=tails.squared_weights(k, counts, plain),
            ),
            tails.Unclipped(
                variance=cautious.variance(self.histogram, spread, self.epsilon),
                squares=tails.squared_weights(
                    k, counts, cautious.shares(self.histogram)
                ),
            ),
        )


@dataclass(frozen=True, kw_only=True)
class Question:
    """What to ask about the spread: on which budget, of whom, how finely."""

    epsilon: float
    least: float
    resolution: float


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
    if n * epsilon < FEWEST:
        note = "planned from n and epsilon alone: too few users to learn about sizes"
        return plain_mean(users, epsilon, PRIVATE_SIZES, source, trace, note)
    groups = by_size_class(users)
    plain = groups.sum(lambda group, means: means) / n
    account = Account(epsilon, PRIVATE_SIZES, everyone(n), source)

    # 1. Histogram.
    noisy = account.counts(
        "histogram of sizes",
        _binned(groups.sizes, k_max),
        2.0,
        COUNT_SHARE * epsilon,
    )
    histogram = _believed(noisy, account.scale)
    k, counts = histogram.k, histogram.counts

    # 2. Anchor.
    anchor_epsilon = anchor_share(k, counts, n, epsilon) * epsilon
    raw = account.laplace("anchor", plain, 1.0 / n, anchor_epsilon)
    raw_scale = account.scale
    error = anchor_error(k, counts, n, anchor_epsilon)
    centre, q = clamped_guess(raw, error, n)
    plan = Plan(
        n=n,
        epsilon=epsilon,
        histogram=histogram,
        cap=min(histogram.largest, k_max),
        centre=centre,
        q=q,
        error=error,
    )

    # 3. How much do users differ, and would clipping hide a minority?
    spreads = [relative * q for relative in JUDGED_SPREADS]
    spread, most_spread = CAUTIOUS_SPREAD * q, math.inf
    path, note = "cautious", "first guesses would not pay"
    question = _spread_question(plan, account.left)
    if question is None:
        epsilon_left = account.left - TOTAL_SHARE * epsilon
        final = Final(weighting=plan.unclipped(0.0, epsilon_left), epsilon=epsilon_left)
    else:
        spread = typical_spread(
            account,
            users,
            question.least,
            centre,
            q,
            question.resolution,
            question.epsilon,
        )
        spreads = [spread]
        final = plan.final(spread, account.left)
        most_spread = tails.spread_if_untested(centre, spread)
        path, note = (
            "unclipped",
            "clipping pays too little for its risk: nobody is clipped",
        )

    # 4. Weights, if they are worth it.
    promised = [plan.promised(final, s) for s in spreads]
    without = [plain_variance(k, counts, q, s, n, account.left) for s in spreads]
    if mean_log_ratio(promised, without) >= math.log(WORTHWHILE):
        return _plain_again(account, plain, raw, raw_scale, trace)

    clipped = None
    if final.test is not None:
        intervals = final.test.intervals
        own_k = groups.sizes.k
        _, own_lower, own_upper = final.weighting.at(own_k)
        caught = account.laplace(
            "tail test",
            tails.outsiders(
                groups,
                own_lower,
                own_upper,
                np.sqrt(final.weighting.variances(own_k)),
            ),
            1.0,
            final.test.epsilon,
        )
        seen = caught, account.scale
        if caught > final.limit:
            path, note = "alarm", "the tail test noticed a minority: nobody is clipped"
            most_spread = intervals.spread_if_alarmed(centre, spread, *seen)
            weighting = plan.unclipped(spread, final.epsilon)
            final = Final(weighting=weighting, epsilon=final.epsilon)
        else:
            path, note = "clipped", ""
            most_spread = intervals.spread_if_calm(centre, spread, caught)
            clipped = intervals.clipped(centre, *seen)

    # 5. Total weight, within the bounds that n and the weights set.
    weighting = final.weighting
    weights, lower, upper = weighting.at(classes_up_to(k_max))
    own_weights, own_lower, own_upper = weighting.at(groups.sizes.k)
    lightest, heaviest = float(weights.min()), float(weights.max())
    total, total_scale = n * heaviest, 0.0
    if lightest < heaviest:  # otherwise the total is public
        total = account.laplace(
            "total weight",
            float(np.sum(groups.sizes.counts * own_weights)),
            heaviest - lightest,
            TOTAL_SHARE * epsilon,
        )
        total_scale = account.scale
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
    scale = account.scale / total
    shares = weighting.shares(histogram)
    # A wrong total scales the distance of the value from the anchor.
    distance = 2.0 * raw_scale**2 + tails.mean_variance(
        k, counts, np.full_like(k, 1.0 / n), q, min(spread, q)
    )
    settled = settle(
        centre + noisy_deviations / total,
        scale,
        raw,
        raw_scale,
        k=k,
        counts=counts,
        weights=shares,
        n=n,
        q=q,
        spread=spread,
        most_spread=most_spread,
        clipped=clipped,
        blur=math.sqrt(2.0 * distance) * total_scale / total,
    )
    inside = Trace(
        noiseless=centre + deviations / total,
        noise_scale=scale,
        path=path,
        anchor=settled.anchor,
        radius=settled.radius,
        initial_mean=centre,
        initial_variance=spread,
        total_weight=total,
        sensitivity=sensitivity,
        plan=plan,
        final=final,
    )
    return Estimate(
        settled.value,
        account.ledger(*[note] if note else []),
        inside if trace else None,
        settled.uncertainty,
        settled.warnings,
    )


def _plain_again(
    account: Account, plain: float, raw: float, raw_scale: float, trace: bool
) -> Estimate:
    """Return two noisy copies of one mean, weighted so as to minimise their noise."""
    n = account.ledger().cohorts[0].users
    again = account.laplace("second plain mean", plain, 1.0 / n, account.left)
    share = raw_scale**2 / (raw_scale**2 + account.scale**2)
    scale = share * account.scale
    value = share * again + (1.0 - share) * raw
    # The larger part of the noise stands for Laplace noise, the smaller for a Gaussian.
    uncertainty = of_plain_mean(
        value, n, scale, blur=math.sqrt(2.0) * (1.0 - share) * raw_scale, dependence=0.0
    )
    inside = Trace(
        noiseless=share * plain + (1.0 - share) * raw,
        noise_scale=scale,
        path="plain again",
    )
    note = "weights would gain little"
    return Estimate(value, account.ledger(note), inside if trace else None, uncertainty)


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


def _spread_question(plan: Plan, left: float) -> Question | None:
    """Return what to ask, or None if asking is impossible or does not pay."""
    histogram, q, spread_epsilon = plan.histogram, plan.q, SPREAD_SHARE * plan.epsilon
    candidates = [
        size
        for size in histogram.start
        if size >= ENOUGH and histogram.above(size) * spread_epsilon >= SPREAD_EVIDENCE
    ]
    if not candidates:
        return None
    least = candidates[-1]
    resolution = spread_resolution(histogram.above(least), least, spread_epsilon)
    cautious = plan.unclipped(0.0, left - TOTAL_SHARE * plan.epsilon)
    promised, plain, weighted = [], [], []
    for relative in JUDGED_SPREADS:
        final = plan.final(min(relative + resolution, 1.0) * q, left - spread_epsilon)
        promised.append(plan.promised(final, relative * q))
        plain.append(
            plain_variance(histogram.k, histogram.counts, q, relative * q, plan.n, left)
        )
        weighted.append(
            cautious.variance(
                histogram, relative * q, left - TOTAL_SHARE * plan.epsilon
            )
        )
    known = min(plain, weighted, key=lambda variances: mean_log_ratio(variances, plain))
    if mean_log_ratio(promised, known) >= math.log(WORTHWHILE):
        return None
    return Question(epsilon=spread_epsilon, least=least, resolution=resolution)
