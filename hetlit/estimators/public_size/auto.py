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
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from hetlit import check
from hetlit.estimators import tails
from hetlit.estimators.anchor import anchor_error, anchor_share, settle
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
from hetlit.privacy.account import Account
from hetlit.privacy.ledger import PUBLIC_SIZES, Cohort, everyone
from hetlit.privacy.noise import Randomness, source_of
from hetlit.theory.variance import plain_variance, variance_of_mean
from hetlit.users.groups import Sizes, by_size_class
from hetlit.users.table import Users, check_users

# Cautious weights assume that p(1-p) is this: a compromise between p = 1/2, where
# it is 1/4, and rare ones, for which noise matters more and weights should be equal.
CAUTIOUS_Q = 0.15
MANY = "many samples"  # the cohort of the typical spread


@dataclass(frozen=True, kw_only=True)
class Final:
    """The last two steps, planned; everything in it is public.

    mean, epsilon : the weighted mean and its share
    test, limit : the tail test before it and the count from which on there is an alarm;
        None where nobody is clipped
    """

    mean: ClippedMean
    epsilon: float
    test: tails.TailTest[ClippedMean] | None = None
    limit: float = 0.0

    def variance(self, q: float, spread: float) -> float:
        """Return the variance it promises if nobody is clipped and nothing alarms."""
        return self.mean.variance(q, spread, self.epsilon)


@dataclass(frozen=True, kw_only=True)
class Plan:
    """How to spend the budget on first guesses; everything in it is public.

    sizes, epsilon : what it is made for
    anchor_epsilon, spread_epsilon : the shares of the anchor and the typical spread
    spread_from : the smallest size that takes part in the typical spread
    spread_users : how many users that is
    resolution : the finest spread, relative to p(1-p), that they can tell from 0
    """

    sizes: Sizes
    epsilon: float
    anchor_epsilon: float
    spread_epsilon: float
    spread_from: float
    spread_users: int
    resolution: float

    @property
    def left(self) -> float:
        """What is left for the tail test and the final mean."""
        return self.epsilon - self.anchor_epsilon - self.spread_epsilon

    def final(self, centre: float, q: float, spread: float) -> Final:
        """Return the last two steps, given the anchor and the typical spread."""
        cautious = Final(mean=self.unclipped(q, spread, self.left), epsilon=self.left)
        chosen = tails.best_test(
            self._tests(centre, q, spread),
            centre,
            cautious.variance(q, spread),
            self._compared_with(q, spread),
        )
        if chosen is None:
            return cautious
        test, limit = chosen
        return Final(mean=test.mean, epsilon=test.mean_epsilon, test=test, limit=limit)

    def unclipped(self, q: float, spread: float, epsilon: float) -> ClippedMean:
        """Return the final mean if nobody may be clipped."""
        spread = max(spread, CAUTIOUS_SPREAD * q)
        return unclipped_mean(self.sizes, q, spread, epsilon)

    def _tests(
        self, centre: float, q: float, spread: float
    ) -> Iterator[tails.TailTest[ClippedMean]]:
        """Yield a tail test of each share, and the clipped mean that it allows."""
        sizes, n = self.sizes, self.sizes.n
        variances = variance_of_mean(sizes.k, q, spread)
        error = anchor_error(sizes.k, sizes.counts, n, self.anchor_epsilon)
        for share in tails.SHARES:
            test, left = share * self.epsilon, self.left - share * self.epsilon
            reach = best_reach(n, left)
            lower, upper = light_intervals(variances, centre, q, spread, error, reach)
            if lower.max() <= 0.0 and upper.min() >= 1.0:
                return  # nobody would be clipped
            mean = plan_clipped_mean(sizes, lower, upper, variances, left, "optimal")
            yield tails.TailTest(
                epsilon=test,
                intervals=tails.Intervals(
                    k=sizes.k,
                    counts=sizes.counts,
                    weights=mean.weights,
                    lower=mean.lower,
                    upper=mean.upper,
                    deviations=np.sqrt(variances),
                    reach=reach,
                ),
                mean=mean,
                mean_epsilon=left,
                calm=mean.variance(q, spread, left),
                alarmed=self.unclipped(q, spread, left).variance(q, spread, left),
            )

    def _compared_with(self, q: float, spread: float) -> tuple[tails.Unclipped, ...]:
        """Return the plain and the cautious mean, each on the whole budget."""
        sizes, epsilon = self.sizes, self.epsilon
        cautious = cautious_mean(sizes, epsilon)
        plain = np.full_like(sizes.k, 1.0 / sizes.n)
        return (
            tails.Unclipped(
                variance=plain_variance(
                    sizes.k, sizes.counts, q, spread, sizes.n, epsilon
                ),
                squares=tails.squared_weights(sizes.k, sizes.counts, plain),
            ),
            tails.Unclipped(
                variance=cautious.variance(q, spread, epsilon),
                squares=tails.squared_weights(sizes.k, sizes.counts, cautious.weights),
            ),
        )


@dataclass(frozen=True, kw_only=True)
class Plans:
    """What public sizes and epsilon decide, for many runs on users of these sizes.

    sizes, epsilon : what they are made for
    anchor_epsilon : the share of the anchor
    cautious : the weighted mean that needs no first guess, None where it does not pay
    adaptive : the plan with first guesses, None where they would not pay
    """

    sizes: Sizes
    epsilon: float
    anchor_epsilon: float
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
    plan = plans.adaptive
    if plan is None and plans.cautious is None:
        note = "planned from sizes alone: weights would gain little"
        return plain_mean(users, epsilon, PUBLIC_SIZES, source, trace, note)
    cohorts = everyone(n) if plan is None else _cohorts(sizes, plan)
    account = Account(epsilon, PUBLIC_SIZES, cohorts, source)

    # 1. Anchor.
    plain = groups.sum(lambda group, means: means) / n
    raw = account.laplace("anchor", plain, 1.0 / n, plans.anchor_epsilon)
    raw_scale = account.scale
    error = anchor_error(sizes.k, sizes.counts, n, plans.anchor_epsilon)
    centre, q = clamped_guess(raw, error, n)

    if plan is None:
        assert plans.cautious is not None
        path, note = "cautious", "planned from sizes alone: first guesses would not pay"
        final = Final(mean=plans.cautious, epsilon=account.left)
        spread, most_spread = CAUTIOUS_SPREAD * q, math.inf
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
            MANY,
        )
        final = plan.final(centre, q, spread)
        path, note = (
            "unclipped",
            "clipping pays too little for its risk: nobody is clipped",
        )
        most_spread = tails.spread_if_untested(centre, spread)

    # 3. Tail test.
    clipped = None
    if plan is not None and final.test is not None:
        test = final.test.intervals
        caught = account.laplace(
            "tail test",
            tails.outsiders(groups, test.lower, test.upper, test.deviations),
            1.0,
            final.test.epsilon,
        )
        seen = caught, account.scale
        if caught > final.limit:
            path, note = "alarm", "the tail test noticed a minority: nobody is clipped"
            most_spread = test.spread_if_alarmed(centre, spread, *seen)
            mean = plan.unclipped(q, spread, final.epsilon)
            final = Final(mean=mean, epsilon=final.epsilon)
        else:
            path, note = "clipped", ""
            most_spread = test.spread_if_calm(centre, spread, caught)
            clipped = test.clipped(centre, *seen)

    # 4. Final mean, and what follows from it.
    mean = final.mean
    weighted = account.laplace(
        "final mean", mean.noiseless(groups), mean.sensitivity, final.epsilon
    )
    settled = settle(
        weighted,
        account.scale,
        raw,
        raw_scale,
        k=sizes.k,
        counts=sizes.counts,
        weights=mean.weights,
        n=n,
        q=q,
        spread=spread,
        most_spread=most_spread,
        clipped=clipped,
    )
    inside = None
    if trace:
        inside = mean.trace(
            groups,
            final.epsilon,
            path=path,
            anchor=settled.anchor,
            radius=settled.radius,
            initial_mean=centre,
            initial_variance=spread,
            plan=plan,
            final=final,
        )
    ledger = account.ledger(*[note] if note else [])
    return Estimate(
        settled.value, ledger, inside, settled.uncertainty, settled.warnings
    )


def make_plans(sizes: Sizes, epsilon: float) -> Plans:
    """Return the plans for users of these sizes: a function of public numbers.

    Judged at p = 1/2, where p(1-p) = 1/4 is largest, and for several spreads.  Each
    plan must promise clearly less than the simpler one.
    """
    n = sizes.n
    spreads = [0.25 * relative for relative in JUDGED_SPREADS]
    share = anchor_share(sizes.k, sizes.counts, n, epsilon)
    anchor_epsilon = share * epsilon
    weighted = cautious_mean(sizes, epsilon - anchor_epsilon)
    plan = adaptive_plan(sizes, epsilon, anchor_epsilon)

    known = [
        plain_variance(sizes.k, sizes.counts, 0.25, spread, n, epsilon)
        for spread in spreads
    ]
    promised = [
        weighted.variance(0.25, spread, epsilon - anchor_epsilon) for spread in spreads
    ]
    cautious = None
    if mean_log_ratio(promised, known) < math.log(WORTHWHILE):
        cautious, known = weighted, promised
    if plan is not None:
        promised = [_promised(plan, 0.5, spread) for spread in spreads]
        if mean_log_ratio(promised, known) >= math.log(WORTHWHILE):
            plan = None
    return Plans(
        sizes=sizes,
        epsilon=epsilon,
        anchor_epsilon=anchor_epsilon,
        cautious=cautious,
        adaptive=plan,
    )


def cautious_mean(sizes: Sizes, epsilon: float) -> ClippedMean:
    """Return the weighted mean that needs no first guess and clips nobody."""
    return unclipped_mean(sizes, CAUTIOUS_Q, CAUTIOUS_SPREAD * CAUTIOUS_Q, epsilon)


def unclipped_mean(
    sizes: Sizes, q: float, spread: float, epsilon: float
) -> ClippedMean:
    """Return the best weighted mean that clips nobody, for these guesses."""
    variances = variance_of_mean(sizes.k, q, spread)
    lower, upper = np.zeros_like(sizes.k), np.ones_like(sizes.k)
    return plan_clipped_mean(sizes, lower, upper, variances, epsilon, "optimal")


def adaptive_plan(sizes: Sizes, epsilon: float, anchor_epsilon: float) -> Plan | None:
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
        anchor_epsilon=anchor_epsilon,
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
    return plan.final(p, q, min(var_p + plan.resolution * q, q)).variance(q, var_p)


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
        return plans.cautious.variance(q, var_p, epsilon - plans.anchor_epsilon)
    return plain_variance(sizes.k, sizes.counts, q, var_p, sizes.n, epsilon)


def _cohorts(sizes: Sizes, plan: Plan) -> tuple[Cohort, ...]:
    """Return who takes part in what, by public sizes."""
    threshold = f"{plan.spread_from:g}"
    cohorts = (
        Cohort(MANY, plan.spread_users, f"size {threshold} or more"),
        Cohort("few samples", sizes.n - plan.spread_users, f"size below {threshold}"),
    )
    return tuple(cohort for cohort in cohorts if cohort.users)
