"""Propose, test, release: noise for what the data are, not for what they could be.

The weighted mean p + U/N moves little when one user is replaced, unless hardly
anybody has weight.  So propose a bound on how far it moves, test privately that the
bound holds for all tables near this one, and if it does, add noise for that bound.

How far is the nearest table for which it fails?  The published definition ranges
over all tables and cannot be computed; `ptr_distance` is a lower bound on it.
Remove one user.  If the others have total weight V and mean offset m, putting in a
user of size k moves the mean up by at most v(k) (above - m)/(V + v(k)) and down by
at most v(k) (below + m)/(V + v(k)), so replacing her moves it by at most::

    max_k v(k) (above - m)/(V + v(k)) + max_k v(k) (below + m)/(V + v(k)).

This falls with V and is convex in m.  After any d replacements::

    V >= max(N - max v - d (max v - min v), (n-1) min v)
    |m| <= (|U| + max v |offset| + d sensitivity of U) / V,

so the sum at this V and the farther end of m, B(d), bounds the local sensitivity of
every table within distance d.  The distance is the largest d with B(d) <= proposal.
A neighbour has B'(d) <= B(d+1): the distance moves by at most 1 between neighbours.
Sizes above 255 are taken together in classes within 1 in 128 of each other, each as
if it had the largest weight and reach of the class, which only raises the bound.

Privacy: if the proposal holds for D, the test and the release cost what their
Laplace noises cost, one after the other.  If not, the distance is -1 and the test
passes with probability below delta.  Together: (test + release epsilon, delta).

Uncertainty: nothing is asked about what clipping takes away, so an interval allows for
all that the first mean does not exclude.

Paper: Algorithm `alg.dpk`, its last part.  Chapter: Private k.
"""

from __future__ import annotations

import math

import numpy as np

from hetlit import check
from hetlit.estimators.clipped_mean import BETA, Width
from hetlit.estimators.private_k.cohorts import (
    clamped_total,
    first_guesses,
    known_error,
    noisy_total,
    traced,
)
from hetlit.estimators.private_k.sums import RatioPlan, RatioStatistics, checked_plan
from hetlit.estimators.result import Estimate
from hetlit.privacy.noise import Randomness
from hetlit.users.table import Users

# Parts of epsilon for the cap, N, the test and the release, chosen by measurement.
SHARES = (0.1, 0.1, 0.1, 0.7)
FAILURE = 1e-3  # the chance that the test fails although the first guesses are right
ROUNDING = 1e-9


def ptr_distance(
    users: Users,
    p: float,
    var_p: float,
    k_cap: int,
    proposal: float,
    *,
    alpha: float,
    width: Width | None,
) -> int:
    """Return a number of replacements that keep the local sensitivity in bounds.

    Replace up to that many users, and replacing one more still moves the weighted
    mean by at most `proposal`.  At most n; -1 if not even that is certain for these
    users as they are.

    Parameters
    ----------
    users : Users, the final cohort
    p, var_p, k_cap, alpha, width : as in `ratio_statistics`
    proposal : the bound on the local sensitivity, at least 0

    Privacy: the distance is not noisy.  It moves by at most 1 between neighbours,
    which replace one user, her size included.

    Paper: line `disttosens` of Algorithm `alg.dpk`.  Chapter: Private k.

    >>> users = Users(k=[10], successes=[5], counts=[100])
    >>> [
    ...     ptr_distance(users, 0.5, 0.0, 10, proposal, alpha=0.0, width=None)
    ...     for proposal in (0.0099, 0.0105, 0.2)
    ... ]
    [-1, 5, 100]
    """
    proposal = check.between("proposal", proposal, 0.0, math.inf)
    users, plan = checked_plan(users, p, var_p, k_cap, alpha, width)
    return certified_distance(plan, plan.statistics(users), users.n, proposal)


def certified_distance(
    plan: RatioPlan, sums: RatioStatistics, n: int, proposal: float
) -> int:
    """Return the largest d <= n with sensitivity_within(d) <= proposal, or -1."""
    holds, fails = -1, n + 1
    while fails - holds > 1:
        middle = (holds + fails) // 2
        bound = sensitivity_within(
            plan, n, sums.total_weight, sums.total_offset, middle
        )
        holds, fails = (middle, fails) if bound <= proposal else (holds, middle)
    return holds


def sensitivity_within(
    plan: RatioPlan, n: int, total_weight: float, total_offset: float, distance: int
) -> float:
    """Return B(distance): see the module."""
    # A class of sizes stands for one size with the largest weight and reach of all.
    weights, above, below = plan.class_extremes
    heaviest = float(weights.max())
    lightest = float(plan.weights.min())
    others = max(
        total_weight - heaviest - distance * plan.weight_sensitivity,
        (n - 1) * lightest,
    )
    offset = abs(total_offset) + float(np.max(weights * np.maximum(above, below)))
    offset += distance * plan.offset_sensitivity
    far = offset / others if others > 0.0 else math.inf
    shares = weights / (others + weights)
    return max(
        float(np.max(shares * (above - mean)) + np.max(shares * (below + mean)))
        for mean in (-min(far, float(below.max())), min(far, float(above.max())))
    )


def pass_probability(distance: float, epsilon: float, delta: float) -> float:
    """Return the probability that the test passes at this distance.

    It is Pr(distance + Laplace(1/epsilon) >= log(1/(2 delta))/epsilon).

    >>> round(pass_probability(0, epsilon=1.0, delta=1e-6), 12)
    1e-06
    """
    gap = math.log(1.0 / (2.0 * delta)) - epsilon * distance
    return 0.5 * math.exp(-gap) if gap >= 0.0 else 1.0 - 0.5 * math.exp(gap)


def estimate_ptr(
    users: Users,
    epsilon: float,
    *,
    k_max: int,
    delta: float,
    shares: tuple[float, float, float, float] = SHARES,
    spread_users: int | None = None,
    beta: float = BETA,
    width: Width | None = None,
    rng: Randomness = None,
    trace: bool = False,
) -> Estimate:
    """Return propose-test-release on static cohorts, or the first mean if it fails.

    What is proposed is what the test will find if the first guesses are right: the
    bound at the distance that passes, for a total weight that is unlikely to be too
    large.  The published proposal is several times larger, and so is its noise.

    Parameters
    ----------
    users : Users, at least 10, none with more than k_max samples
    epsilon, delta : the total user-level privacy budget of the release; epsilon
        in [1e-12, 1e12], delta strictly between 0 and 1/2
    k_max : a public bound on sizes, from 1 to 10^7
    shares : parts of epsilon for the cap, the total weight, the test and the release,
        all spent on the final cohort; of the seven that benchmarks/shares.py measures
        none is better than the default by more than the error
    spread_users, beta, width : as in `estimate_ratio`, which is pure, cannot fail
        and adds less noise: prefer it

    Privacy: (`epsilon`, `delta`) in total; see the module and
    `hetlit.estimators.private_k.cohorts`.

    Paper: Algorithm `alg.dpk`, repaired.  Chapter: Private k.
    """
    delta = check.chance("delta", delta, 0.5)
    trace = check.flag("trace", trace)
    account, guesses, (weight_epsilon, test_epsilon, release_epsilon) = first_guesses(
        users,
        epsilon,
        shares,
        parts=4,
        k_max=k_max,
        spread_users=spread_users,
        beta=beta,
        width=width,
        rng=rng,
        delta=delta,
    )
    final, plan = guesses.final, guesses.plan
    sums = plan.statistics(final)

    # Propose, for a total weight that is too large with probability at most delta.
    low_weight, scale = noisy_total(account, sums, plan, final.n, weight_epsilon)
    low_weight = clamped_total(
        low_weight + scale * math.log(2.0 * delta), plan, final.n
    )
    needed = math.log(1.0 / (2.0 * delta)) / test_epsilon
    planned = math.ceil(needed + math.log(0.5 / FAILURE) / test_epsilon)
    proposal = (1.0 + ROUNDING) * sensitivity_within(
        plan, final.n, low_weight, guesses.alpha * low_weight, planned
    )

    # Test.
    distance = certified_distance(plan, sums, final.n, proposal)
    noisy_distance = account.laplace(
        "test of the distance",
        distance,
        1.0,
        test_epsilon,
        "final",
        delta=delta,
        detail="; passes wrongly with probability delta",
    )
    passed = noisy_distance >= needed

    # Release.
    value, noiseless, noise_scale, known = plan.centre, plan.centre, 0.0, guesses.sure
    if passed:
        noiseless = sums.value
        value = account.laplace(
            "release of the mean", noiseless, proposal, release_epsilon, "final"
        )
        noise_scale = account.scale
        # The ratio itself is exact: its total has no noise.
        known = known_error(value, guesses, noise_scale, (low_weight, 0.0))
    else:
        account.nothing(
            "release of the mean", release_epsilon, "final", why="the test failed"
        )
    inside = None
    if trace:
        inside = traced(
            guesses,
            sums,
            noiseless=noiseless,
            noise_scale=noise_scale,
            low_weight=low_weight,
            proposal=proposal,
            distance=distance,
            passed=passed,
        )
    return Estimate(value, account.ledger(), inside, known, known.warnings)
