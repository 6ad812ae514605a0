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

Chapter: A realizable estimator.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from . import check
from .check import Floats
from .estimate import Estimate
from .grouping import SizeGroups, by_size_class, sum_over_users
from .ideal import ClippedMean, check_users, plan_clipped_mean
from .model import Users, variance_of_mean
from .noise import laplace, simulated
from .privacy import PUBLIC_SIZES, Account, Cohort
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
from .weights import optimal_weights, release_variance

# Constants were chosen by measurement: see benchmarks/.
MEAN_SHARE = 0.05  # of epsilon, for the first mean
SPREAD_SHARE = 0.05  # of epsilon, for the typical spread
# Cautious weights assume that p(1-p) is this: a compromise between p = 1/2, where
# it is 1/4, and rare ones, for which noise matters more and weights should be equal.
CAUTIOUS_Q = 0.15


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


@dataclass(frozen=True)
class Plans:
    """What public sizes and epsilon decide, for many runs on users of these sizes.

    epsilon : the total budget they are made for
    cautious : the weighted mean that needs no first guess
    adaptive : the plan with first guesses, None where they would not pay
    """

    epsilon: float
    cautious: ClippedMean
    adaptive: Plan | None

    def fit(self, groups: SizeGroups, epsilon: float) -> bool:
        """Return whether they were made for these sizes and this budget."""
        known = self.cautious.groups
        return (
            epsilon == self.epsilon
            and np.array_equal(groups.k, known.k)
            and np.array_equal(groups.counts, known.counts)
        )


def estimate_adaptive(
    users: Users,
    epsilon: float,
    *,
    plans: Plans | None = None,
    rng: np.random.Generator | None = None,
    trace: bool = False,
) -> Estimate:
    """Return a private estimate of the population mean, for public sizes.

    Parameters
    ----------
    users : Users
    epsilon : the total user-level privacy budget of the release, above 0
    plans : those of `make_plans` for users of the same sizes, to save time; made
        here if None
    rng : simulated noise; see `hetlit.noise`
    trace : also return what happened inside, not for release

    Privacy: `epsilon` in total, delta 0; see the module for the proof.
    """
    users = check_users(users)
    epsilon = check.positive("epsilon", epsilon)
    source = simulated(rng)
    groups = by_size_class(users)
    plans = make_plans(groups, epsilon) if plans is None else plans
    if not plans.fit(groups, epsilon):
        raise ValueError("plans must be made for users of these sizes and this epsilon")
    cautious, plan = plans.cautious, plans.adaptive
    if plan is None:
        everyone = (Cohort("everyone", users.n, "no selection"),)
        account = Account(epsilon, PUBLIC_SIZES, everyone)
        scale = account.laplace("weighted mean", epsilon, cautious.sensitivity)
        value = cautious.noiseless(users) + laplace(scale, rng=source)
        ledger = account.ledger("planned from sizes alone: first guesses would not pay")
        inside = cautious.trace(users, epsilon, adaptive=False) if trace else None
        return Estimate(value, ledger, inside)

    cohorts = _cohorts(users, groups, plan)
    several = tuple(cohort.name for cohort in cohorts if cohort.name != "one sample")
    account = Account(epsilon, PUBLIC_SIZES, cohorts)

    # 1. First mean.
    scale = account.laplace("first mean", plan.mean_epsilon, plan.first.sensitivity)
    raw = plan.first.noiseless(users) + laplace(scale, rng=source)
    centre, q = clamped_guess(raw, plan.first_error, users.n)

    # 2. Second moment.
    moment_scale = account.laplace(
        "second moment",
        plan.moment_epsilon,
        _moment_sensitivity(plan, centre),
        *several,
    )
    moment = _second_moment(users, groups, plan, centre, q)
    moment += laplace(moment_scale, rng=source)

    # 3. Typical spread.
    account.exponential("typical spread", plan.spread_epsilon, "many samples")
    typical = typical_spread(
        users,
        plan.spread_from,
        centre,
        q,
        plan.resolution,
        plan.spread_epsilon,
        source,
    )

    # 4. Final mean.
    spread, heavy_tails = judged_spread(
        moment, moment_scale, typical, q, users.n * epsilon
    )
    if heavy_tails:
        final = _unclipped_mean(groups, q, spread, plan.final_epsilon)
    else:
        final = _final_mean(groups, plan, centre, q, spread)
    scale = account.laplace("final mean", plan.final_epsilon, final.sensitivity)
    value = final.noiseless(users) + laplace(scale, rng=source)

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
    return Estimate(value, account.ledger(), inside)


def make_plans(groups: SizeGroups, epsilon: float) -> Plans:
    """Return the plans for users of these sizes: a function of public numbers."""
    cautious = cautious_mean(groups, epsilon)
    return Plans(epsilon, cautious, adaptive_plan(groups, epsilon, cautious))


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
    # The noise of the second moment must stay below MOMENT_NOISE/4 at every p.
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
        resolution=spread_resolution(spread_users, float(middle), spread_epsilon),
    )
    promised, without = [], []
    for spread in JUDGED_SPREADS:
        believed = min(spread + plan.resolution, 1.0)
        final = _final_mean(groups, plan, 0.5, 0.25, believed * 0.25)
        promised.append(_variance_of(final, spread, plan.final_epsilon))
        without.append(_variance_of(cautious, spread, epsilon))
    return plan if mean_log_ratio(promised, without) < math.log(WORTHWHILE) else None


def expected_variance(plans: Plans, p: float, var_p: float) -> float:
    """Return the variance of a run if first guesses are right and nobody is clipped.

    Without first guesses it is exact.  A guess of the spread cannot be better than
    the plan's resolution, so that is added.

    >>> groups = by_size_class(Users(k=[1], successes=[0], counts=[100]))
    >>> round(expected_variance(make_plans(groups, 1.0), p=0.5, var_p=0.0), 6)
    0.0027
    """
    groups, plan, q = plans.cautious.groups, plans.adaptive, p * (1.0 - p)
    final, epsilon = plans.cautious, plans.epsilon
    if plan is not None:
        believed = min(var_p + plan.resolution * q, q)
        final, epsilon = _final_mean(groups, plan, p, q, believed), plan.final_epsilon
    return release_variance(
        final.weights,
        variance_of_mean(groups.k, q, var_p),
        final.upper - final.lower,
        epsilon,
        counts=groups.counts,
    )


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
    """Return the clipped mean for light tails."""
    variances = variance_of_mean(groups.k, q, spread)
    reach = best_reach(int(groups.counts.sum()), plan.final_epsilon)
    lower, upper = light_intervals(
        variances, centre, q, spread, plan.first_error, reach
    )
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


def _cohorts(users: Users, groups: SizeGroups, plan: Plan) -> tuple[Cohort, ...]:
    """Return who takes part in what, by public sizes."""
    ones = int(groups.counts[groups.k == 1].sum())
    few = users.n - ones - plan.spread_users
    threshold = f"{plan.spread_from:g}"
    cohorts = (
        Cohort("many samples", plan.spread_users, f"size {threshold} or more"),
        Cohort("some samples", few, f"size 2 or more, below {threshold}"),
        Cohort("one sample", ones, "size 1"),
    )
    return tuple(cohort for cohort in cohorts if cohort.users)
