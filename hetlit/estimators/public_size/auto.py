"""The estimator to use for public sizes: one budget, spent where it helps most.

Algorithm 2 gives whole users to the first guesses.  Here every user takes part in
every step and the budget is divided instead, which costs less; how to divide it,
and whether first guesses are worth anything at all, is planned from the public
sizes before any data are seen.

The plan is one of three:

plain
    One mean of all user means, where weights would gain little.
cautious
    1. Anchor: the plain mean, on a share of the budget.
    2. Final mean: weighted, nobody clipped.  The weights assume a spread between
       users large enough that no user with much data dominates.
adaptive
    1. Anchor, which is also the first guess of the mean.
    2. Typical spread: the median of squared deviations from the anchor among users
       with much data.  It is precise if tails are light, and blind to a minority.
    3. Tail test: how many users would be clipped.  It gets the least share of the
       budget with which no minority that it overlooks would do much harm; if there
       is no such share, nobody is clipped and it is not asked.
    4. Final mean: clipped and weighted by the typical spread or, after an alarm,
       weighted cautiously and not clipped.

At last the weighted mean is moved towards the anchor if it is far from it, and a
warning says so where chance cannot be the reason: `hetlit.estimators.anchor`.

Privacy, path by path (neighbours replace one user's samples, sizes are public):
the plan is a function of sizes and epsilon.  Plain, and step 1 of the others: a mean
of n numbers in [0, 1] moves by at most 1/n.  Adaptive: in step 2 one user changes
every count by at most 1; in step 3 her term lies in [0, 1], so T moves by at most 1.
The final mean moves by at most max w (b - a), which is max w where nobody is clipped.
All parameters of a step, and whether it is taken, are functions of sizes and of
earlier outputs, so the shares add up (adaptive sequential composition) to epsilon for
a user who takes part in all steps, and to less for the others.  Moving the value, the
warning and the uncertainty are post-processing.

Accuracy: for every population, the root mean squared error is at most the anchor's
plus the radius into which values are moved.  Plain is unbiased; cautious is, but for
that, where rates do not depend on sizes; adaptive rewards light tails, and a minority
adds to its mean squared error about `tails.RISK` times that of the better of the means
that clip nobody, at most.

Chapter: A realizable estimator; When the model is wrong.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from hetlit import check
from hetlit.estimators import tails
from hetlit.estimators.anchor import ANCHOR_SHARE, Anchor
from hetlit.estimators.clipped_mean import ClippedMean, plan_clipped_mean
from hetlit.estimators.plain import plain_mean
from hetlit.estimators.result import Estimate
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
from hetlit.estimators.uncertainty import Clipped, of_weighted_mean
from hetlit.privacy.account import Account
from hetlit.privacy.ledger import PUBLIC_SIZES, Cohort, everyone
from hetlit.privacy.noise import Randomness, source_of
from hetlit.theory.variance import plain_variance, variance_of_mean
from hetlit.users.groups import Sizes, by_size_class
from hetlit.users.table import Users, check_users

# Cautious weights assume that p(1-p) is this: a compromise between p = 1/2, where
# it is 1/4, and rare ones, for which noise matters more and weights should be equal.
CAUTIOUS_Q = 0.15


@dataclass(frozen=True, kw_only=True)
class Final:
    """The last two steps, planned; everything in it is public.

    mean : the weighted mean
    mean_epsilon : its share
    test_epsilon : the share of the tail test, 0 where it is not asked
    intervals : what users would be clipped to, None where nobody is
    """

    mean: ClippedMean
    mean_epsilon: float
    test_epsilon: float = 0.0
    intervals: tails.Intervals | None = None


@dataclass(frozen=True, kw_only=True)
class Plan:
    """How to spend the budget on first guesses; everything in it is public.

    sizes, epsilon : what it is made for
    cautious : the cautious mean on all of epsilon, to compare with
    spread_epsilon : the share of the typical spread
    spread_from : the smallest size that takes part in the typical spread
    spread_users : how many users that is
    resolution : the finest spread, relative to p(1-p), that they can tell from 0
    """

    sizes: Sizes
    epsilon: float
    cautious: ClippedMean
    spread_epsilon: float
    spread_from: float
    spread_users: int
    resolution: float

    @property
    def left(self) -> float:
        """What is left for the tail test and the final mean."""
        return (1.0 - ANCHOR_SHARE) * self.epsilon - self.spread_epsilon

    def final(self, centre: float, q: float, spread: float) -> Final:
        """Return the last two steps, given the anchor and the typical spread."""
        sizes, n = self.sizes, self.sizes.n
        plain = np.full_like(sizes.k, 1.0 / n)
        noise = 2.0 / (n * self.epsilon) ** 2
        best = [
            (
                tails.mean_variance(sizes.k, sizes.counts, weights, q, spread)
                + noise * (weights.max() * n) ** 2,
                tails.squared_weights(sizes.k, sizes.counts, weights),
            )
            for weights in (plain, self.cautious.weights)
        ]
        variances = variance_of_mean(sizes.k, q, spread)
        error = anchor_error(sizes, self.epsilon)
        for share in tails.SHARES:
            test = share * self.epsilon
            reach = best_reach(n, self.left - test)
            lower, upper = light_intervals(variances, centre, q, spread, error, reach)
            if lower.max() <= 0.0 and upper.min() >= 1.0:
                break  # nobody would be clipped
            mean = plan_clipped_mean(
                sizes, lower, upper, variances, self.left - test, "optimal"
            )
            intervals = tails.Intervals(
                k=sizes.k,
                counts=sizes.counts,
                weights=mean.weights,
                lower=mean.lower,
                upper=mean.upper,
                deviations=np.sqrt(variances),
                reach=reach,
            )
            if intervals.risk(centre, test, n * self.epsilon, *best) <= tails.RISK:
                return Final(
                    mean=mean,
                    mean_epsilon=self.left - test,
                    test_epsilon=test,
                    intervals=intervals,
                )
        return self.unclipped(q, spread, self.left)

    def unclipped(self, q: float, spread: float, epsilon: float) -> Final:
        """Return the final mean if nobody may be clipped."""
        spread = max(spread, CAUTIOUS_SPREAD * q)
        return Final(
            mean=_unclipped_mean(self.sizes, q, spread, epsilon), mean_epsilon=epsilon
        )


@dataclass(frozen=True, kw_only=True)
class Plans:
    """What public sizes and epsilon decide, for many runs on users of these sizes.

    sizes, epsilon : what they are made for
    cautious : the weighted mean that needs no first guess, None where it does not pay
    adaptive : the plan with first guesses, None where they would not pay
    """

    sizes: Sizes
    epsilon: float
    cautious: ClippedMean | None
    adaptive: Plan | None

    def fit(self, sizes: Sizes, epsilon: float) -> bool:
        """Return whether they were made for these sizes and this budget."""
        return (
            epsilon == self.epsilon
            and np.array_equal(sizes.k, self.sizes.k)
            and np.array_equal(sizes.counts, self.sizes.counts)
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
    sizes, n = groups.sizes, users.n
    plans = make_plans(sizes, epsilon) if plans is None else plans
    if not plans.fit(sizes, epsilon):
        raise ValueError("plans must be made for users of these sizes and this epsilon")
    if plans.cautious is None and plans.adaptive is None:
        note = "planned from sizes alone: weights would gain little"
        return plain_mean(users, epsilon, PUBLIC_SIZES, source, trace, note)

    plan = plans.adaptive
    cohorts = everyone(n) if plan is None else _cohorts(sizes, plan)
    account = Account(epsilon, PUBLIC_SIZES, cohorts, source)

    # 1. Anchor.
    plain = groups.sum(lambda group, means: means) / n
    raw = account.laplace("anchor", plain, 1.0 / n, ANCHOR_SHARE * epsilon)
    anchor_scale = account.scale
    centre, q = clamped_guess(raw, anchor_error(sizes, epsilon), n)

    spread, least_spread, path = CAUTIOUS_SPREAD * q, math.inf, "cautious"
    caught, clipped = math.nan, None
    notes = []
    if plan is None:
        assert plans.cautious is not None
        final = Final(mean=plans.cautious, mean_epsilon=account.left)
        notes.append("planned from sizes alone: first guesses would not pay")
    else:
        # 2. Typical spread.
        spread = typical_spread(
            account,
            users,
            plan.spread_from,
            centre,
            q,
            plan.resolution,
            plan.spread_epsilon,
            "many samples",
        )
        final, path = plan.final(centre, q, spread), "unclipped"

        # 3. Tail test.
        test = final.intervals
        if test is not None:
            caught = account.laplace(
                "tail test",
                tails.outsiders(groups, test.lower, test.upper, test.deviations),
                1.0,
                final.test_epsilon,
            )
            hidden = account.scale
            if caught > test.limit(final.test_epsilon, n * epsilon):
                path = "alarm"
                notes.append("the tail test noticed a minority: nobody was clipped")
                least_spread = spread + caught / test.users
                final = plan.unclipped(q, spread, final.mean_epsilon)
            else:
                path, least_spread = "clipped", 2.0 * spread  # the next cell
                clipped = Clipped(
                    caught=caught,
                    scale=hidden,
                    users=test.users,
                    beyond=test.users * test.worst_move(centre),
                )
        else:
            notes.append("clipping could hide a minority: nobody was clipped")
            spread = max(spread, CAUTIOUS_SPREAD * q)

    # 4. Final mean.
    mean = final.mean
    weighted = account.laplace(
        "final mean", mean.noiseless(groups), mean.sensitivity, final.mean_epsilon
    )

    # What follows is post-processing.
    counts, weights = sizes.counts, mean.weights
    uniform = np.full_like(weights, 1.0 / n)
    sampling = tails.mean_variance(sizes.k, counts, uniform, q, min(spread, q))
    anchor = Anchor(value=raw, scale=anchor_scale, sampling=sampling)
    promised = (
        tails.mean_variance(sizes.k, counts, weights, q, min(spread, q))
        + 2.0 * account.scale**2
    )
    radius = anchor.radius(promised)
    value = anchor.moved(weighted, radius)
    gap = tails.mean_variance(
        sizes.k, counts, weights - uniform, q, min(least_spread, q)
    )
    difference = math.sqrt(gap + 2.0 * account.scale**2)
    uncertainty = of_weighted_mean(
        value,
        sizes.k,
        counts,
        weights,
        least_spread,
        account.scale,
        clipped=clipped,
        dependence=anchor.dependence(difference),
        furthest=radius,
    )
    inside = None
    if trace:
        inside = mean.trace(
            groups,
            final.mean_epsilon,
            path=path,
            anchor=anchor,
            radius=radius,
            weighted=weighted,
            difference=difference,
            initial_mean=centre,
            initial_variance=spread,
            caught=caught,
            plan=plan,
            final=final,
        )
    return Estimate(
        value,
        account.ledger(*notes),
        inside,
        uncertainty,
        anchor.warnings(weighted, difference),
    )


def make_plans(sizes: Sizes, epsilon: float) -> Plans:
    """Return the plans for users of these sizes: a function of public numbers.

    Judged at p = 1/2, where p(1-p) = 1/4 is largest, and for several spreads.  Each
    plan must promise clearly less than the simpler one.
    """
    spreads = [0.25 * relative for relative in JUDGED_SPREADS]
    known = [
        plain_variance(sizes.k, sizes.counts, 0.25, spread, sizes.n, epsilon)
        for spread in spreads
    ]
    share = (1.0 - ANCHOR_SHARE) * epsilon
    cautious = cautious_mean(sizes, share)
    promised = [cautious.variance(0.25, spread, share) for spread in spreads]
    pays = mean_log_ratio(promised, known) < math.log(WORTHWHILE)
    known = promised if pays else known
    plan = adaptive_plan(sizes, epsilon)
    if plan is not None:
        promised = [_promised(plan, 0.5, spread) for spread in spreads]
        if mean_log_ratio(promised, known) >= math.log(WORTHWHILE):
            plan = None
    return Plans(
        sizes=sizes,
        epsilon=epsilon,
        cautious=cautious if pays else None,
        adaptive=plan,
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


def anchor_error(sizes: Sizes, epsilon: float) -> float:
    """Return the standard error of the anchor at p = 1/2, if users differ somewhat."""
    return math.sqrt(
        plain_variance(
            sizes.k,
            sizes.counts,
            0.25,
            0.25 * CAUTIOUS_SPREAD,
            sizes.n,
            ANCHOR_SHARE * epsilon,
        )
    )


def adaptive_plan(sizes: Sizes, epsilon: float) -> Plan | None:
    """Return the plan with first guesses, or None if too few users can give them."""
    # Whole groups with the most samples, until there is evidence enough.
    spread_epsilon = SPREAD_SHARE * epsilon
    users_above = np.cumsum(sizes.counts[::-1])[::-1]
    enough = np.flatnonzero(users_above >= SPREAD_EVIDENCE / spread_epsilon)
    if not enough.size or sizes.k[enough[-1]] < 2:
        return None
    spread_users = int(users_above[enough[-1]])
    middle = sizes.k[np.flatnonzero(users_above >= spread_users / 2.0)[-1]]
    return Plan(
        sizes=sizes,
        epsilon=epsilon,
        cautious=cautious_mean(sizes, epsilon),
        spread_epsilon=spread_epsilon,
        spread_from=float(sizes.k[enough[-1]]),
        spread_users=spread_users,
        resolution=spread_resolution(spread_users, float(middle), spread_epsilon),
    )


def _promised(plan: Plan, p: float, var_p: float) -> float:
    """Return the variance that a plan promises, if first guesses are right.

    A guess of the spread cannot be better than the plan's resolution, so that is added.
    """
    q = p * (1.0 - p)
    final = plan.final(p, q, min(var_p + plan.resolution * q, q))
    return final.mean.variance(q, var_p, final.mean_epsilon)


def expected_variance(plans: Plans, p: float, var_p: float) -> float:
    """Return the variance of a run if first guesses are right and nobody is clipped.

    Without first guesses it is exact, but for values that are moved to the anchor.

    >>> sizes = Sizes(np.array([1.0]), np.array([100]))
    >>> round(expected_variance(make_plans(sizes, 1.0), p=0.5, var_p=0.0), 6)
    0.0027
    """
    if plans.adaptive is not None:
        return _promised(plans.adaptive, p, var_p)
    q, sizes, epsilon = p * (1.0 - p), plans.sizes, plans.epsilon
    if plans.cautious is not None:
        return plans.cautious.variance(q, var_p, (1.0 - ANCHOR_SHARE) * epsilon)
    return plain_variance(sizes.k, sizes.counts, q, var_p, sizes.n, epsilon)


def _cohorts(sizes: Sizes, plan: Plan) -> tuple[Cohort, ...]:
    """Return who takes part in what, by public sizes."""
    threshold = f"{plan.spread_from:g}"
    cohorts = (
        Cohort("many samples", plan.spread_users, f"size {threshold} or more"),
        Cohort("few samples", sizes.n - plan.spread_users, f"size below {threshold}"),
    )
    return tuple(cohort for cohort in cohorts if cohort.users)
