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

from hetlit import check
from hetlit.check import Floats
from hetlit.estimators.clipped_mean import ClippedMean, plan_clipped_mean
from hetlit.estimators.result import Estimate
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
from hetlit.privacy.ledger import PUBLIC_SIZES, Cohort, everyone
from hetlit.privacy.noise import Randomness, source_of
from hetlit.theory.variance import variance_of_mean
from hetlit.theory.weights import planned_optimal_weights
from hetlit.users.groups import Groups, Sizes, by_size_class
from hetlit.users.table import Users, check_users

# Cautious weights assume that p(1-p) is this: a compromise between p = 1/2, where
# it is 1/4, and rare ones, for which noise matters more and weights should be equal.
CAUTIOUS_Q = 0.15


@dataclass(frozen=True, kw_only=True)
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


@dataclass(frozen=True, kw_only=True)
class Plans:
    """What public sizes and epsilon decide, for many runs on users of these sizes.

    epsilon : the total budget they are made for
    cautious : the weighted mean that needs no first guess
    adaptive : the plan with first guesses, None where they would not pay
    """

    epsilon: float
    cautious: ClippedMean
    adaptive: Plan | None

    def fit(self, sizes: Sizes, epsilon: float) -> bool:
        """Return whether they were made for these sizes and this budget."""
        known = self.cautious.sizes
        return (
            epsilon == self.epsilon
            and np.array_equal(sizes.k, known.k)
            and np.array_equal(sizes.counts, known.counts)
        )


def estimate_adaptive(
    users: Users,
    epsilon: float,
    *,
    plans: Plans | None = None,
    rng: Randomness = None,
    trace: bool = False,
) -> Estimate:
    """Return a private estimate of the population mean, for public sizes.

    Parameters
    ----------
    users : Users
    epsilon : the total user-level privacy budget of the release, in [1e-12, 1e12]
    plans : those of `make_plans` for users of the same sizes, to save time; made
        here if None
    rng : simulated noise; see `hetlit.privacy.noise`
    trace : also return what happened inside, not for release

    Privacy: `epsilon` in total, delta 0; see the module for the proof.
    """
    users = check_users(users)
    epsilon = check.epsilon(epsilon)
    trace = check.flag("trace", trace)
    if plans is not None and not isinstance(plans, Plans):
        raise TypeError(f"plans must be those of make_plans, not {plans!r}")
    source = source_of(rng)
    groups = by_size_class(users)
    plans = make_plans(groups.sizes, epsilon) if plans is None else plans
    if not plans.fit(groups.sizes, epsilon):
        raise ValueError("plans must be made for users of these sizes and this epsilon")
    plan = plans.adaptive
    if plan is None:
        cautious = plans.cautious
        account = Account(epsilon, PUBLIC_SIZES, everyone(users.n), source)
        value = account.laplace(
            "weighted mean", cautious.noiseless(groups), cautious.sensitivity, epsilon
        )
        ledger = account.ledger("planned from sizes alone: first guesses would not pay")
        inside = cautious.trace(groups, epsilon, adaptive=False) if trace else None
        return Estimate(value, ledger, inside)

    cohorts = _cohorts(groups.sizes, plan)
    several = tuple(cohort.name for cohort in cohorts if cohort.name != "one sample")
    account = Account(epsilon, PUBLIC_SIZES, cohorts, source)

    # 1. First mean.
    raw = account.laplace(
        "first mean",
        plan.first.noiseless(groups),
        plan.first.sensitivity,
        plan.mean_epsilon,
    )
    centre, q = clamped_guess(raw, plan.first_error, users.n)

    # 2. Second moment.
    moment = account.laplace(
        "second moment",
        _second_moment(groups, plan, centre, q),
        _moment_sensitivity(plan, centre),
        plan.moment_epsilon,
        *several,
    )
    moment_scale = account.scale

    # 3. Typical spread.
    typical = typical_spread(
        account,
        users,
        plan.spread_from,
        centre,
        q,
        plan.resolution,
        plan.spread_epsilon,
        "many samples",
    )

    # 4. Final mean.
    spread, heavy_tails = judged_spread(
        moment, moment_scale, typical, q, users.n * epsilon
    )
    if heavy_tails:
        final = _unclipped_mean(groups.sizes, q, spread, plan.final_epsilon)
    else:
        final = _final_mean(groups.sizes, plan, centre, q, spread)
    value = account.laplace(
        "final mean", final.noiseless(groups), final.sensitivity, plan.final_epsilon
    )

    inside = None
    if trace:
        inside = final.trace(
            groups,
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


def make_plans(sizes: Sizes, epsilon: float) -> Plans:
    """Return the plans for users of these sizes: a function of public numbers."""
    cautious = cautious_mean(sizes, epsilon)
    return Plans(
        epsilon=epsilon,
        cautious=cautious,
        adaptive=adaptive_plan(sizes, epsilon, cautious),
    )


def cautious_mean(sizes: Sizes, epsilon: float) -> ClippedMean:
    """Return the weighted mean that needs no first guess and clips nobody."""
    return _unclipped_mean(sizes, CAUTIOUS_Q, CAUTIOUS_SPREAD * CAUTIOUS_Q, epsilon)


def _unclipped_mean(
    sizes: Sizes, q: float, spread: float, epsilon: float
) -> ClippedMean:
    variances = variance_of_mean(sizes.k, q, spread)
    lower, upper = np.zeros_like(sizes.k), np.ones_like(sizes.k)
    return plan_clipped_mean(sizes, lower, upper, variances, epsilon, "optimal")


def adaptive_plan(sizes: Sizes, epsilon: float, cautious: ClippedMean) -> Plan | None:
    """Return the adaptive plan, or None where it is impossible or does not pay.

    Judged at p = 1/2, where p(1-p) = 1/4 is largest.
    """
    moment_weights = _moment_weights(sizes, MOMENT_SHARES[0] * epsilon)
    # The noise of the second moment must stay below MOMENT_NOISE/4 at every p.
    moment_epsilon = max(
        MOMENT_SHARES[0] * epsilon, float(moment_weights.max()) / (MOMENT_NOISE * 0.25)
    )
    if not moment_weights.any() or moment_epsilon > MOMENT_SHARES[1] * epsilon:
        return None

    # Whole groups with the most samples, until there is evidence enough.
    spread_epsilon = SPREAD_SHARE * epsilon
    users_above = np.cumsum(sizes.counts[::-1])[::-1]
    enough = np.flatnonzero(users_above >= SPREAD_EVIDENCE / spread_epsilon)
    if not enough.size or sizes.k[enough[-1]] < 2:
        return None
    spread_users = int(users_above[enough[-1]])
    middle = sizes.k[np.flatnonzero(users_above >= spread_users / 2.0)[-1]]

    mean_epsilon = MEAN_SHARE * epsilon
    first = cautious_mean(sizes, mean_epsilon)
    plan = Plan(
        mean_epsilon=mean_epsilon,
        moment_epsilon=moment_epsilon,
        spread_epsilon=spread_epsilon,
        final_epsilon=epsilon - mean_epsilon - moment_epsilon - spread_epsilon,
        first=first,
        first_error=math.sqrt(
            first.variance(0.25, CAUTIOUS_SPREAD * 0.25, mean_epsilon)
        ),
        moment_weights=moment_weights,
        spread_from=float(sizes.k[enough[-1]]),
        spread_users=spread_users,
        resolution=spread_resolution(spread_users, float(middle), spread_epsilon),
    )
    promised, without = [], []
    for spread in JUDGED_SPREADS:
        believed = min(spread + plan.resolution, 1.0)
        final = _final_mean(sizes, plan, 0.5, 0.25, believed * 0.25)
        promised.append(final.variance(0.25, spread * 0.25, plan.final_epsilon))
        without.append(cautious.variance(0.25, spread * 0.25, epsilon))
    return plan if mean_log_ratio(promised, without) < math.log(WORTHWHILE) else None


def expected_variance(plans: Plans, p: float, var_p: float) -> float:
    """Return the variance of a run if first guesses are right and nobody is clipped.

    Without first guesses it is exact.  A guess of the spread cannot be better than
    the plan's resolution, so that is added.

    >>> sizes = Sizes(np.array([1.0]), np.array([100]))
    >>> round(expected_variance(make_plans(sizes, 1.0), p=0.5, var_p=0.0), 6)
    0.0027
    """
    plan, q = plans.adaptive, p * (1.0 - p)
    final, epsilon = plans.cautious, plans.epsilon
    if plan is not None:
        believed = min(var_p + plan.resolution * q, q)
        final = _final_mean(plans.cautious.sizes, plan, p, q, believed)
        epsilon = plan.final_epsilon
    return final.variance(q, var_p, epsilon)


def _final_mean(
    sizes: Sizes, plan: Plan, centre: float, q: float, spread: float
) -> ClippedMean:
    """Return the clipped mean for light tails."""
    variances = variance_of_mean(sizes.k, q, spread)
    reach = best_reach(sizes.n, plan.final_epsilon)
    lower, upper = light_intervals(
        variances, centre, q, spread, plan.first_error, reach
    )
    return plan_clipped_mean(
        sizes, lower, upper, variances, plan.final_epsilon, "optimal"
    )


def _moment_weights(sizes: Sizes, epsilon: float) -> Floats:
    """Return a, per user, with sum(counts * a * (1 - 1/k)) = 1 over users with k > 1.

    ((mean - p)^2 - q/k) / (1 - 1/k) is an unbiased guess of var_p.  Its variance is
    about 2 sd^4 / (1 - 1/k)^2 and its range 1/(1 - 1/k), which optimal weights take
    into account.
    """
    weights = np.zeros_like(sizes.k)
    several = sizes.k > 1
    if several.any():
        factor = 1.0 - 1.0 / sizes.k[several]
        variances = variance_of_mean(sizes.k[several], 0.25, CAUTIOUS_SPREAD * 0.25)
        chosen, _ = planned_optimal_weights(
            2.0 * (variances / factor) ** 2,
            1.0 / factor,
            epsilon,
            sizes.counts[several],
        )
        weights[several] = chosen / factor
    return weights


def _moment_sensitivity(plan: Plan, centre: float) -> float:
    return float(plan.moment_weights.max()) * max(centre, 1.0 - centre) ** 2


def _second_moment(groups: Groups, plan: Plan, centre: float, q: float) -> float:
    weights, sizes = plan.moment_weights, groups.sizes
    total = groups.sum(lambda group, means: weights[group] * (means - centre) ** 2)
    return total - float(np.sum(sizes.counts * weights * q / sizes.k))


def _cohorts(sizes: Sizes, plan: Plan) -> tuple[Cohort, ...]:
    """Return who takes part in what, by public sizes."""
    ones = int(sizes.counts[sizes.k == 1].sum())
    few = sizes.n - ones - plan.spread_users
    threshold = f"{plan.spread_from:g}"
    cohorts = (
        Cohort("many samples", plan.spread_users, f"size {threshold} or more"),
        Cohort("some samples", few, f"size 2 or more, below {threshold}"),
        Cohort("one sample", ones, "size 1"),
    )
    return tuple(cohort for cohort in cohorts if cohort.users)
