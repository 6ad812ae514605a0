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
    4. Final mean: clipped and weighted by the typical spread, or, where the second
       moment says that tails are heavy, by the second moment.

Step 2 is what keeps step 4 from clipping away a minority of users who differ from
the rest: the plan is adaptive only if the noise of step 2 is small enough to see
the variance that such a minority would cause.

Privacy, path by path (neighbours replace one user's samples, sizes are public):
the plan is a function of sizes and epsilon.  Cautious: the sum moves by at most
max w.  Adaptive: step 1 moves by at most max w; step 2 by at most
max a (farthest)^2, since (mean - p)^2 lies in [0, farthest^2]; in step 3 one user
changes every count by at most 1; step 4 moves by at most max w (b - a).  All
parameters of a step are functions of sizes and of earlier outputs, so the shares
add up (adaptive sequential composition) to epsilon for a user who takes part in
all steps, and to less for the others.

Accuracy assumes nothing for the cautious plan.  For the adaptive one, light tails
are rewarded, and heavy ones are survived: see benchmarks/.

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
MOMENT_SHARES = (0.05, 0.3)  # of epsilon, least and most for the second moment
# Relative to p(1-p): the spread that cautious weights assume ...
CAUTIOUS_SPREAD = 1.0 / 24.0
# ... the noise that the second moment may have ...
MOMENT_NOISE = 1.0 / 60.0
# ... and the spreads for which a plan is judged.
JUDGED_SPREADS = (0.0, 1.0 / 400.0, 1.0 / 20.0)
WORTHWHILE = 0.95  # an adaptive plan must promise this fraction of the variance
SPREAD_EVIDENCE = 40.0  # users times budget behind the typical spread, at least
ERRORS_OF_MEAN = 2.0  # standard errors of the first mean added to half-widths
LIGHT_REACH, HEAVY_REACH = 3.0, 4.6  # half-widths in standard deviations
MEDIAN_OF_SQUARES = 0.6744897501960817**2  # of a standard Gaussian


@dataclass(frozen=True)
class Plan:
    """How to spend the budget; everything in it is public.

    mean_epsilon, moment_epsilon, spread_epsilon, final_epsilon : the shares
    first : the first mean
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
    error = math.sqrt(plan.first.objective)
    inner = centre + min(max(0.5 - centre, -error), error)
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
    heavy_tails = moment - typical > 2.0 * moment_scale
    spread = min(max(moment + moment_scale, 0.0), q) if heavy_tails else typical
    reach = HEAVY_REACH if heavy_tails else LIGHT_REACH
    final = _final_mean(
        groups, centre, q, spread, reach, ERRORS_OF_MEAN * error, plan.final_epsilon
    )
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
    variances = variance_of_mean(groups.k, 0.25, CAUTIOUS_SPREAD * 0.25)
    everything = np.ones_like(groups.k)
    return plan_clipped_mean(groups, 0.5, variances, everything, epsilon, "optimal")


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
    plan = Plan(
        mean_epsilon=mean_epsilon,
        moment_epsilon=moment_epsilon,
        spread_epsilon=spread_epsilon,
        final_epsilon=epsilon - mean_epsilon - moment_epsilon - spread_epsilon,
        first=cautious_mean(groups, mean_epsilon),
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
    q = 0.25
    truth = variance_of_mean(groups.k, q, relative_spread * q)
    final = _final_mean(
        groups,
        0.5,
        q,
        min(relative_spread + plan.resolution, 1.0) * q,
        LIGHT_REACH,
        ERRORS_OF_MEAN * math.sqrt(plan.first.objective),
        plan.final_epsilon,
    )
    variances = [
        release_variance(
            choice.weights,
            truth,
            choice.upper - choice.lower,
            budget,
            counts=groups.counts,
        )
        for choice, budget in ((final, plan.final_epsilon), (cautious, epsilon))
    ]
    return math.log(variances[0] / variances[1])


def _final_mean(
    groups: SizeGroups,
    centre: float,
    q: float,
    spread: float,
    reach: float,
    slack: float,
    epsilon: float,
) -> ClippedMean:
    variances = variance_of_mean(groups.k, q, spread)
    half_widths = slack + reach * np.sqrt(variances)
    return plan_clipped_mean(groups, centre, variances, half_widths, epsilon, "optimal")


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
