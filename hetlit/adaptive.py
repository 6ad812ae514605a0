"""The estimator to use for public sizes: one budget, spent where it helps most.

Algorithm 2 gives whole users to the first guesses.  Here every user takes part in
every step and the budget is divided instead, which costs less; how to divide it,
and whether first guesses are worth anything at all, is planned from the public
sizes before any data are seen.

The plan is one of two:

cautious
    One weighted mean of unclipped user means.  Its weights assume a spread
    between users large enough that no user with much data dominates.
adaptive
    1. First mean: a cautious weighted mean, on a small share of the budget.
    2. Second moment: a weighted mean of (user mean - first mean)^2, which gives
       the variance of the rates however they are distributed, but coarsely.
    3. Typical spread: the median of the same squares among users with much data,
       which gives that variance precisely if tails are light.
    4. Final mean: clipped and weighted by the typical spread or, where the second
       moment is clearly larger, weighted by the second moment and not clipped.

Step 2 is what keeps step 4 from clipping away a minority of users who differ from
the rest: the plan is adaptive only if the noise of step 2 is small enough to see
the variance that a minority of a few per cent would cause.

Privacy, path by path (neighbours replace one user's samples, sizes are public):
the plan is a function of sizes and epsilon.  Cautious: the sum moves by at most
max w.  Adaptive: step 1 moves by at most max w; step 2 by at most
max a (farthest)^2, since (mean - p)^2 lies in [0, farthest^2]; in step 3 one user
changes every count by at most 1; step 4 moves by at most max w (b - a).  All
parameters of a step are functions of sizes and of earlier outputs, so the shares
add up (adaptive sequential composition) to epsilon for a user who takes part in
all steps, and to less for the others.

Accuracy: the cautious plan is unbiased.  The adaptive one rewards light tails, and
heavy ones that step 2 sees cost it nothing but the reward; a minority too small to
be seen is clipped, which biases the result by at most its share of the weight.

Chapter: Realizable, public sizes.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from . import check
from .check import Floats
from .estimate import Estimate
from .grouping import SizeGroups, blocks, by_size_class, sum_over_users
from .ideal import ClippedMean, check_users, plan_clipped_mean
from .model import Users, variance_of_mean
from .noise import (
    exponential_mechanism,
    grid_histogram,
    laplace,
    log_grid,
    median_utilities,
    simulated,
)
from .privacy import PUBLIC_SIZES, Cohort, Ledger, Step
from .weights import optimal_weights, release_variance

# All constants were chosen by measurement: see benchmarks/.
MEAN_SHARE = 0.05  # of epsilon, for the first mean
SPREAD_SHARE = 0.05  # of epsilon, for the typical spread
MOMENT_SHARES = (0.1, 0.3)  # of epsilon, least and most for the second moment
# Cautious weights assume that p(1-p) is this: a compromise between p = 1/2, where
# it is 1/4, and rare ones, for which noise matters more and weights should be equal.
CAUTIOUS_Q = 0.15
# Relative to p(1-p): the spread that cautious weights assume ...
CAUTIOUS_SPREAD = 1.0 / 24.0
# ... the noise that the second moment may have ...
MOMENT_NOISE = 1.0 / 72.0
# ... and the spreads for which a plan is judged.
JUDGED_SPREADS = (0.0, 1.0 / 400.0, 1.0 / 20.0)
WORTHWHILE = 0.95  # an adaptive plan must promise this fraction of the variance
SPREAD_EVIDENCE = 40.0  # users times budget behind the typical spread, at least
ERRORS_OF_MEAN = 2.0  # standard errors of the first mean added to half-widths
REACH = 2.75  # half-widths in standard deviations
ALARM = 3.0  # noise scales by which the second moment must exceed the typical spread
MEDIAN_OF_SQUARES = 0.6744897501960817**2  # of a standard Gaussian


@dataclass(frozen=True)
class Plan:
    """How to spend the budget; everything in it is public.

    mean_epsilon, moment_epsilon, spread_epsilon, final_epsilon : the shares
    first : the first mean
    first_error : its standard error, at p = 1/2
    moment_weights : shape (groups,), per user, 0 for users with one sample
    spread_from : the smallest size that takes part in the typical spread
    spread_users : how many users that is
    resolution : the finest spread, relative to p(1-p), that they can tell from 0
    """

    mean_epsilon: float
    moment_epsilon: float
    spread_epsilon: float
    final_epsilon: float
    first: ClippedMean
    first_error: float
    moment_weights: Floats
    spread_from: float
    spread_users: int
    resolution: float


def estimate_adaptive(
    users: Users,
    epsilon: float,
    *,
    rng: np.random.Generator | None = None,
    trace: bool = False,
) -> Estimate:
    """Return a private estimate of the population mean, for public sizes.

    Parameters
    ----------
    users : Users
    epsilon : the total user-level privacy budget of the release, above 0
    rng : simulated noise; see `hetlit.noise`
    trace : also return what happened inside, not for release

    Privacy: `epsilon` in total, delta 0; see the module for the proof.
    """
    users = check_users(users)
    epsilon = check.positive("epsilon", epsilon)
    source = simulated(rng)
    groups = by_size_class(users)
    cautious = cautious_mean(groups, epsilon)
    plan = adaptive_plan(groups, epsilon, cautious)
    if plan is None:
        value = cautious.noiseless(users)
        value += laplace(cautious.sensitivity / epsilon, rng=source)
        inside = cautious.trace(users, epsilon, adaptive=False) if trace else None
        return Estimate(value, _cautious_ledger(users, cautious, epsilon), inside)

    # 1. First mean, moved towards 1/2 by its error so as not to understate p(1-p).
    raw = plan.first.noiseless(users)
    raw += laplace(plan.first.sensitivity / plan.mean_epsilon, rng=source)
    centre = min(max(raw, 0.0), 1.0)
    inner = centre + min(max(0.5 - centre, -plan.first_error), plan.first_error)
    q = max(inner * (1.0 - inner), 1.0 / (4.0 * users.n))

    # 2. Second moment: E (mean - p)^2 = q/k + (1 - 1/k) var_p for every law of rates.
    moment_scale = _moment_sensitivity(plan, centre) / plan.moment_epsilon
    moment = _second_moment(users, groups, plan, centre, q)
    moment += laplace(moment_scale, rng=source)

    # 3. Typical spread.
    grid = log_grid(plan.resolution * q, q, 2.0)
    histogram = _spread_histogram(users, plan, centre, q, grid)
    chosen = exponential_mechanism(
        median_utilities(histogram), plan.spread_epsilon, rng=source
    )
    typical = float(grid[chosen])

    # 4. Final mean.
    heavy_tails = moment - typical > ALARM * moment_scale
    if heavy_tails:
        spread = min(max(moment + moment_scale, 0.0), q)
        final = _unclipped_mean(groups, q, spread, plan.final_epsilon)
    else:
        spread = typical
        final = _final_mean(groups, plan, centre, q, spread)
    value = final.noiseless(users)
    value += laplace(final.sensitivity / plan.final_epsilon, rng=source)

    ledger = _adaptive_ledger(users, groups, plan, final, centre)
    inside = None
    if trace:
        inside = final.trace(
            users,
            plan.final_epsilon,
            adaptive=True,
            initial_mean=centre,
            initial_variance=spread,
            second_moment=moment,
            typical_spread=typical,
            heavy_tails=heavy_tails,
            plan=plan,
        )
    return Estimate(value, ledger, inside)


def cautious_mean(groups: SizeGroups, epsilon: float) -> ClippedMean:
    """Return the weighted mean that needs no first guess and clips nobody."""
    return _unclipped_mean(groups, CAUTIOUS_Q, CAUTIOUS_SPREAD * CAUTIOUS_Q, epsilon)


def _unclipped_mean(
    groups: SizeGroups, q: float, spread: float, epsilon: float
) -> ClippedMean:
    variances = variance_of_mean(groups.k, q, spread)
    lower, upper = np.zeros_like(groups.k), np.ones_like(groups.k)
    return plan_clipped_mean(groups, lower, upper, variances, epsilon, "optimal")


def adaptive_plan(
    groups: SizeGroups, epsilon: float, cautious: ClippedMean
) -> Plan | None:
    """Return the adaptive plan, or None where it is impossible or does not pay.

    Judged at p = 1/2, where p(1-p) = 1/4 is largest.
    """
    moment_weights = _moment_weights(groups, MOMENT_SHARES[0] * epsilon)
    # The noise of the second moment must stay below MOMENT_NOISE p(1-p).
    moment_epsilon = max(
        MOMENT_SHARES[0] * epsilon, float(moment_weights.max()) / (MOMENT_NOISE * 0.25)
    )
    if not moment_weights.any() or moment_epsilon > MOMENT_SHARES[1] * epsilon:
        return None

    # Whole groups with the most samples, until there is evidence enough.
    spread_epsilon = SPREAD_SHARE * epsilon
    users_above = np.cumsum(groups.counts[::-1])[::-1]
    enough = np.flatnonzero(users_above >= SPREAD_EVIDENCE / spread_epsilon)
    if not enough.size or groups.k[enough[-1]] < 2:
        return None
    spread_users = int(users_above[enough[-1]])
    middle = groups.k[np.flatnonzero(users_above >= spread_users / 2.0)[-1]]
    evidence = spread_users * spread_epsilon

    mean_epsilon = MEAN_SHARE * epsilon
    first = cautious_mean(groups, mean_epsilon)
    plan = Plan(
        mean_epsilon=mean_epsilon,
        moment_epsilon=moment_epsilon,
        spread_epsilon=spread_epsilon,
        final_epsilon=epsilon - mean_epsilon - moment_epsilon - spread_epsilon,
        first=first,
        first_error=math.sqrt(_variance_of(first, CAUTIOUS_SPREAD, mean_epsilon)),
        moment_weights=moment_weights,
        spread_from=float(groups.k[enough[-1]]),
        spread_users=spread_users,
        resolution=min(2.0 / (evidence * middle), 0.5),
    )
    promised = np.mean(
        [
            _log_variance_ratio(groups, epsilon, cautious, plan, spread)
            for spread in JUDGED_SPREADS
        ]
    )
    return plan if promised < math.log(WORTHWHILE) else None


def _log_variance_ratio(
    groups: SizeGroups,
    epsilon: float,
    cautious: ClippedMean,
    plan: Plan,
    relative_spread: float,
) -> float:
    """Return the log of the variance a plan promises over that of the cautious one."""
    believed = min(relative_spread + plan.resolution, 1.0)
    final = _final_mean(groups, plan, 0.5, 0.25, believed * 0.25)
    promised = _variance_of(final, relative_spread, plan.final_epsilon)
    return math.log(promised / _variance_of(cautious, relative_spread, epsilon))


def _variance_of(plan: ClippedMean, relative_spread: float, epsilon: float) -> float:
    """Return the variance of a weighted mean if p = 1/2 and nobody is clipped."""
    groups = plan.groups
    variances = variance_of_mean(groups.k, 0.25, relative_spread * 0.25)
    widths = plan.upper - plan.lower
    return release_variance(
        plan.weights, variances, widths, epsilon, counts=groups.counts
    )


def _final_mean(
    groups: SizeGroups, plan: Plan, centre: float, q: float, spread: float
) -> ClippedMean:
    """Return the clipped mean for light tails: REACH standard deviations and more.

    More, because the centre is off by its own error, and because counts of rare
    ones are skewed: their longer tail reaches further by REACH^2/6 times the third
    cumulant over the variance, (1-2p)(variance + spread)/q for a beta-binomial.
    """
    variances = variance_of_mean(groups.k, q, spread)
    reach = ERRORS_OF_MEAN * plan.first_error + REACH * np.sqrt(variances)
    skew = REACH**2 / 6.0 * (1.0 - 2.0 * centre) * (variances + spread) / q
    lower = centre - reach + np.minimum(skew, 0.0)
    upper = centre + reach + np.maximum(skew, 0.0)
    return plan_clipped_mean(
        groups, lower, upper, variances, plan.final_epsilon, "optimal"
    )


def _moment_weights(groups: SizeGroups, epsilon: float) -> Floats:
    """Return a, per user, with sum(counts * a * (1 - 1/k)) = 1 over users with k > 1.

    ((mean - p)^2 - q/k) / (1 - 1/k) is an unbiased guess of var_p.  Its variance is
    about 2 sd^4 / (1 - 1/k)^2 and its range 1/(1 - 1/k), which optimal weights take
    into account.
    """
    weights = np.zeros_like(groups.k)
    several = groups.k > 1
    if several.any():
        factor = 1.0 - 1.0 / groups.k[several]
        variances = variance_of_mean(groups.k[several], 0.25, CAUTIOUS_SPREAD * 0.25)
        chosen, _ = optimal_weights(
            2.0 * (variances / factor) ** 2,
            1.0 / factor,
            epsilon,
            counts=groups.counts[several],
        )
        weights[several] = chosen / factor
    return weights


def _moment_sensitivity(plan: Plan, centre: float) -> float:
    return float(plan.moment_weights.max()) * max(centre, 1.0 - centre) ** 2


def _second_moment(
    users: Users, groups: SizeGroups, plan: Plan, centre: float, q: float
) -> float:
    total = sum_over_users(
        users,
        groups,
        lambda group, means: plan.moment_weights[group] * (means - centre) ** 2,
    )
    return total - float(np.sum(groups.counts * plan.moment_weights * q / groups.k))


def _spread_histogram(
    users: Users, plan: Plan, centre: float, q: float, grid: Floats
) -> Floats:
    """Return how many users' squares, turned into guesses of var_p, fall where."""
    histogram = np.zeros(len(grid) + 1)
    for rows in blocks(users):
        chosen = users.k[rows] >= plan.spread_from
        if chosen.any():
            k = users.k[rows][chosen]
            square = (users.successes[rows][chosen] / k - centre) ** 2
            guesses = (square / MEDIAN_OF_SQUARES - q / k) / (1.0 - 1.0 / k)
            counts = users.counts[rows][chosen]
            histogram += grid_histogram(guesses, grid, counts=counts)
    return histogram


def _cautious_ledger(users: Users, plan: ClippedMean, epsilon: float) -> Ledger:
    return Ledger(
        neighbours=PUBLIC_SIZES,
        cohorts=(Cohort("everyone", users.n, "no selection"),),
        steps=(
            Step(
                "weighted mean",
                ("everyone",),
                f"Laplace, sensitivity {plan.sensitivity:.6g}",
                epsilon,
            ),
        ),
        notes=("planned from sizes alone: first guesses would not pay",),
    )


def _adaptive_ledger(
    users: Users,
    groups: SizeGroups,
    plan: Plan,
    final: ClippedMean,
    centre: float,
) -> Ledger:
    ones = int(groups.counts[groups.k == 1].sum())
    few = users.n - ones - plan.spread_users
    threshold = f"{plan.spread_from:g}"
    cohorts = (
        Cohort("many samples", plan.spread_users, f"size {threshold} or more"),
        Cohort("some samples", few, f"size 2 or more, below {threshold}"),
        Cohort("one sample", ones, "size 1"),
    )
    present = tuple(cohort for cohort in cohorts if cohort.users)
    everyone = tuple(cohort.name for cohort in present)
    several = tuple(name for name in everyone if name != "one sample")
    moment_sensitivity = _moment_sensitivity(plan, centre)
    return Ledger(
        neighbours=PUBLIC_SIZES,
        cohorts=present,
        steps=(
            Step(
                "first mean",
                everyone,
                f"Laplace, sensitivity {plan.first.sensitivity:.6g}",
                plan.mean_epsilon,
            ),
            Step(
                "second moment",
                several,
                f"Laplace, sensitivity {moment_sensitivity:.6g}",
                plan.moment_epsilon,
            ),
            Step(
                "typical spread",
                ("many samples",),
                "exponential mechanism, sensitivity 1",
                plan.spread_epsilon,
            ),
            Step(
                "final mean",
                everyone,
                f"Laplace, sensitivity {final.sensitivity:.6g}",
                plan.final_epsilon,
            ),
        ),
    )
