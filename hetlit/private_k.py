"""Private sizes: how much data a user holds is her secret too.

Sizes decide weights, so with private sizes neither the weights nor their sum nor
the noise may depend on them directly.  What may: a user's own size, in her own
contribution, and a cap on sizes that was released privately.

The noisy ratio.  Measure means from a first guess p, give a user of size k the
weight v(k) = 1/variance of a mean of min(k, cap) samples, and release
    U = sum v(k_i) (clipped mean_i - p)   and   N = sum v(k_i)
each with Laplace noise; p + U/N is the weighted mean.

Static cohorts.  Who gives the first guess of p, who the spread between users and who
the final sums is drawn at random, whatever data anyone holds.  Then every user stays
in her cohort when her data change, and cohorts pay separately (parallel
composition).  Cohorts by rank of size, as published, do not have this property.

Privacy (neighbours replace one user, her size included; n and k_max are public):
the cohorts are independent of the data.  A user of the first cohort changes the
first mean, by 1/cohort; a user of the second only the spread, whose utilities she
moves by 1; a user of the third moves the utilities of the cap by 1, N by at most
max v - min v, and U by at most max v (b - p) + max v (p - a), over all sizes up to
the cap.  All else is computed from these outputs.

Paper: Section 4.4.  Chapter: Private k.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from . import check
from .check import Floats
from .estimate import Estimate, Trace
from .grouping import blocks
from .ideal import BETA, check_users, half_widths_of
from .initial import (
    MEDIAN_OF_DIFFERENCES,
    initial_mean_error,
    noisy_mean,
    paired_differences,
    spread_between_users,
)
from .model import Users, variance_of_mean
from .noise import (
    MOST_SIZES,
    laplace,
    log_grid,
    median_on_grid,
    private_order_statistic,
    simulated,
)
from .privacy import PRIVATE_SIZES, Cohort, Ledger, Step
from .public_size import clamped_mean, shared_means
from .subsample import random_users

Width = Callable[[Floats], Floats]
# Parts of epsilon for the cap, N and U, chosen by measurement: see `estimate_ratio`.
SHARES = (0.1, 0.1, 0.8)
# The cohort of the spread is read user by user, so it stays small.
MOST_SPREAD_USERS = 10**6


@dataclass(frozen=True)
class RatioStatistics:
    """The two sums whose ratio is the estimate, and how far one user can move them.

    total_weight, weight_sensitivity : N and the most that N changes
    total_offset, offset_sensitivity : U and the most that U changes
    value : p + U/N
    """

    total_weight: float
    total_offset: float
    value: float
    weight_sensitivity: float
    offset_sensitivity: float


@dataclass(frozen=True)
class RatioPlan:
    """What a user of each size contributes, planned before any data are seen.

    centre : where means are measured from, in [0, 1]
    weights : shape (cap,), v(k) for the sizes k = 1, ..., cap; larger ones count as cap
    below, above : shape (cap,), how far a clipped mean can lie on each side of centre
    """

    centre: float
    weights: Floats
    below: Floats
    above: Floats

    @property
    def weight_sensitivity(self) -> float:
        """The most that replacing one user moves N."""
        return float(self.weights.max() - self.weights.min())

    @property
    def offset_sensitivity(self) -> float:
        """The most that replacing one user moves U: from one extreme to the other."""
        return float(np.max(self.weights * self.above)) + float(
            np.max(self.weights * self.below)
        )

    def statistics(self, users: Users) -> RatioStatistics:
        """Return N, U and their ratio."""
        total_weight = total_offset = 0.0
        for rows in blocks(users):
            place = np.minimum(users.k[rows], len(self.weights)) - 1
            means = users.successes[rows] / users.k[rows]
            weights = self.weights[place] * users.counts[rows]
            offsets = np.clip(
                means - self.centre, -self.below[place], self.above[place]
            )
            total_weight += float(np.sum(weights))
            total_offset += float(np.sum(weights * offsets))
        return RatioStatistics(
            total_weight,
            total_offset,
            self.centre + total_offset / total_weight,
            self.weight_sensitivity,
            self.offset_sensitivity,
        )


def ratio_plan(
    p: float,
    var_p: float,
    k_cap: int,
    *,
    n: int,
    alpha: float,
    width: Width | None,
    beta: float = BETA,
) -> RatioPlan:
    """Return weights 1/variance and intervals p -+ (alpha + width(k)) within [0, 1].

    First guesses can be anything, and privacy must hold for all of them: p is
    clamped to [0, 1], p(1-p) is at least 1/(4n) and var_p is clamped to [0, p(1-p)].
    Then variances are positive and fall with k, so weights rise from 1/(p(1-p)).
    """
    centre, q = clamped_mean(p, n)
    k = np.arange(1.0, k_cap + 1.0)
    variances = variance_of_mean(k, q, min(max(var_p, 0.0), q))
    reach = alpha + half_widths_of(k, n, variances, width, beta)
    return RatioPlan(
        centre, 1.0 / variances, np.minimum(reach, centre), np.minimum(reach, 1 - centre)
    )


def ratio_statistics(
    users: Users,
    p: float,
    var_p: float,
    k_cap: int,
    *,
    alpha: float,
    width: Width | None,
) -> RatioStatistics:
    """Return the two sums of the noisy ratio and their sensitivities.

    Parameters
    ----------
    users : Users, the final cohort
    p : the first guess of the mean; clamped to [0, 1]
    var_p : the first guess of the variance of rates; clamped to [0, p(1-p)]
    k_cap : the cap on sizes, from 1 to 10^7
    alpha : how far p may be from the population mean, in [0, 1]
    width : a function from sizes k, shape (k_cap,), to half-widths f(k); None for
        sd(k) sqrt(2 log(2n/0.05))

    Privacy: none of the sums is noisy yet.  The sensitivities are for neighbours
    that replace one user, her size included, and depend on no user's data.

    Paper: Algorithm `alg.PTR`.  Chapter: Private k.

    >>> users = Users(k=[1, 4, 9], successes=[1, 1, 6])
    >>> sums = ratio_statistics(users, 0.5, 0.0, 4, alpha=0.0, width=lambda k: 1.0)
    >>> sums.total_weight, sums.weight_sensitivity, sums.offset_sensitivity
    (36.0, 12.0, 16.0)
    """
    users, plan = checked_plan(users, p, var_p, k_cap, alpha, width)
    return plan.statistics(users)


def checked_plan(
    users: Any, p: Any, var_p: Any, k_cap: Any, alpha: Any, width: Any
) -> tuple[Users, RatioPlan]:
    """Return the users and the plan that these arguments describe."""
    users = check_users(users)
    p, var_p = check.real("p", p), check.real("var_p", var_p)
    k_cap = check.integer("k_cap", k_cap, 1)
    if k_cap > MOST_SIZES:
        raise ValueError(f"k_cap must be at most {MOST_SIZES}, not {k_cap}")
    alpha = check.between("alpha", alpha, 0.0, 1.0)
    return users, ratio_plan(p, var_p, k_cap, n=users.n, alpha=alpha, width=width)


@dataclass(frozen=True)
class Guesses:
    """The first guesses of a run: all released privately, so all may be used.

    first, second, final : the cohorts of the mean, of the spread and of the sums
    rank : the rank whose size the cap estimates
    """

    first: Users
    second: Users
    final: Users
    raw: float
    alpha: float
    rank: int
    cap: int
    spread: float
    plan: RatioPlan


def static_cohorts(
    users: Users, rng: np.random.Generator
) -> tuple[Users, Users, Users]:
    """Return three random cohorts: a tenth of the users, another tenth, the rest.

    Users of a row are interchangeable, so only how many of them go where is drawn.
    The second cohort has at most a million users.
    """
    tenth = users.n // 10
    if tenth < 1:
        raise ValueError(f"users must be at least 10, not {users.n}")
    first = random_users(users.counts, tenth, rng)
    rest = users.counts - first
    second = random_users(rest, min(tenth, MOST_SPREAD_USERS), rng)
    return _part(users, first), _part(users, second), _part(users, rest - second)


def _part(users: Users, counts: Any) -> Users:
    rows = np.flatnonzero(counts)
    return Users(users.k[rows], users.successes[rows], counts[rows])


def first_guesses(
    users: Users,
    epsilon: float,
    cap_epsilon: float,
    *,
    k_max: int,
    spread_users: int | None,
    beta: float,
    width: Width | None,
    rng: np.random.Generator,
) -> Guesses:
    """Return steps 0 to 3: cohorts, first mean, cap and spread between users."""
    n = users.n
    first, second, final = static_cohorts(users, rng)

    # 1. First mean, of one number in [0, 1] per user.
    total = float(np.sum(first.means * first.counts))
    raw = noisy_mean(total, first.n, epsilon, rng=rng)
    alpha = min(initial_mean_error(first.n, epsilon, beta), 1.0)

    # 2. Cap: a size that about `spread_users` users of the second cohort reach.
    if spread_users is None:
        spread_users = max(2, min(math.ceil(10 * math.log(n) / epsilon), second.n))
    spread_users = check.integer("spread_users", spread_users, 1)
    rank = min(math.ceil(final.n * spread_users / second.n), final.n)
    cap = private_order_statistic(
        final.k, rank, k_max, cap_epsilon, counts=final.counts, rng=rng
    )

    # 3. Spread, from users who reach the cap.
    q = clamped_mean(raw, n)[1]
    spread = spread_between_users(spread_variance(second, cap, epsilon, rng), cap, q)
    plan = ratio_plan(raw, spread, cap, n=n, alpha=alpha, width=width, beta=beta)
    return Guesses(first, second, final, raw, alpha, rank, cap, spread, plan)


def spread_variance(
    users: Users, cap: int, epsilon: float, rng: np.random.Generator
) -> float:
    """Return a private guess of the variance of a mean of `cap` samples.

    Users with fewer samples sit out; the others are paired at random, and the
    median of the differences is picked from a grid.  With nobody to pair, every grid
    point is equally likely: that is a poor guess, not a failure.

    Privacy: `epsilon`, although who sits out is private.  Pair the users of D at
    random.  A user who is replaced breaks at most one pair; if the number of users
    changes, her partner is left over, or paired with whoever was left over.  That is
    a random pairing for D', so counts of small differences move by at most 1, and
    half their total, when it changes, moves the same way by 1/2.
    """
    eligible = users.k >= cap
    differences = np.zeros(0)
    if int(users.counts[eligible].sum()) >= 2:
        several = _part(users, np.where(eligible, users.counts, 0))
        differences = paired_differences(shared_means(several, cap, rng), rng)
    grid = log_grid(1.0 / (4.0 * cap), 1.0, 2.0**0.25)
    median = median_on_grid(differences, grid, epsilon, rng=rng)
    return (median / MEDIAN_OF_DIFFERENCES) ** 2


def estimate_private_k(
    users: Users,
    epsilon: float,
    *,
    k_max: int | None = None,
    method: str = "auto",
    delta: float = 0.0,
    rng: np.random.Generator | None = None,
    trace: bool = False,
    **options: Any,
) -> Estimate:
    """Return a private estimate of the population mean, for private sizes.

    Parameters
    ----------
    users : Users, none with more than k_max samples
    epsilon : the total user-level privacy budget of the release, above 0
    k_max : a public bound on sizes, from 1 to 10^7, chosen without looking at them;
        `users.capped(k_max, rng)` cuts users to it
    method :
        "auto", the one to use: `hetlit.histogram_ratio.estimate_histogram_ratio`;
        "ratio", static cohorts and a noisy ratio: `estimate_ratio`;
        "ptr", static cohorts and propose-test-release: `hetlit.ptr.estimate_ptr`;
        "paper", Algorithm 3 as published: `hetlit.published_k.estimate_published_k`,
        where epsilon and delta are the budget of each mechanism, not the total
    delta : in [0, 1/2); "ptr" and "paper" need it above 0, the others spend none
    rng : simulated noise; see `hetlit.noise`
    trace : also return what happened inside, not for release
    options : keywords of the method

    Privacy: `epsilon` and, for "ptr", `delta` in total; neighbours replace one user,
    her size included; n and k_max are public.  For "paper" see its ledger.

    Paper: Algorithm `alg.dpk`.  Chapter: Private k.

    >>> from hetlit import Beta, sample_users, sizes
    >>> rng = np.random.default_rng(0)
    >>> k = sizes.zipf(10_000, exponent=1.5, k_max=2000, rng=rng)
    >>> users = sample_users(Beta(0.3, 0.0004), k, rng)
    >>> estimate = estimate_private_k(users, 1.0, k_max=2000, method="ratio", rng=rng)
    >>> abs(estimate.value - 0.3) < 0.02, round(estimate.ledger.epsilon, 9)
    (True, 1.0)
    """
    method = check.one_of("method", method, ("auto", "ratio", "ptr", "paper"))
    k_max = check_bound(users, k_max)
    delta = check.between("delta", delta, 0.0, 0.5)
    options.update(k_max=k_max, rng=rng, trace=trace)
    if method == "auto":
        from .histogram_ratio import estimate_histogram_ratio

        return estimate_histogram_ratio(users, epsilon, **options)
    if method == "ptr":
        from .ptr import estimate_ptr

        return estimate_ptr(users, epsilon, delta=delta, **options)
    if method == "paper":
        from .published_k import estimate_published_k

        return estimate_published_k(users, epsilon, delta=delta, **options)
    return estimate_ratio(users, epsilon, **options)


def check_bound(users: Any, k_max: Any) -> int:
    """Return k_max if it is a public bound that the users keep."""
    why = (
        "sizes are private here, so the noise must cover a user of any size, and a "
        "bound read from the data would give the largest one away"
    )
    how = "cut users to it with users.capped(k_max, rng)"
    users = check_users(users)
    if k_max is None:
        raise TypeError(
            f"k_max is missing: {why}.  Choose one without looking at the users, "
            f"k_max=1000 for example, and {how}"
        )
    k_max = check.integer("k_max", k_max, 1)
    if k_max > MOST_SIZES:
        raise ValueError(f"k_max must be at most {MOST_SIZES}, not {k_max}")
    if users.k.max() > k_max:
        row = int(np.argmax(users.k > k_max))
        raise ValueError(
            f"k_max must be at least every user's k; row {row} has k {users.k[row]} "
            f"above k_max {k_max}.  It must be a public bound: {why}.  If it is, {how}"
        )
    return k_max


def estimate_ratio(
    users: Users,
    epsilon: float,
    *,
    k_max: int,
    shares: tuple[float, float, float] = SHARES,
    spread_users: int | None = None,
    beta: float = BETA,
    width: Width | None = None,
    rng: np.random.Generator | None = None,
    trace: bool = False,
) -> Estimate:
    """Return the noisy ratio on static cohorts.

    Parameters
    ----------
    users : Users, at least 10, none with more than k_max samples
    epsilon : the total user-level privacy budget of the release, above 0
    k_max : a public bound on sizes, from 1 to 10^7
    shares : parts of epsilon for the cap, the total weight and the total offset;
        they add up to 1
    spread_users : how many users of the second cohort should reach the cap; by
        default 10 log(n)/epsilon
    beta : the probability with which each tail bound may fail, in (0, 1)
    width : a function from sizes to half-widths f(k); by default
        sd(k) sqrt(2 log(2n/beta)) with the estimated sd

    Privacy: `epsilon` in total, delta 0; see the module.  There is no way to fail:
    N lies between n min v and n max v, which are public, and is clamped to them.

    Paper: Algorithm `alg.dpk`, repaired.  Chapter: Private k.
    """
    users, epsilon, beta = check_users(users), check.positive("epsilon", epsilon), beta
    beta = check.strictly_between("beta", beta, 0.0, 1.0)
    k_max = check_bound(users, k_max)
    cap_epsilon, weight_epsilon, offset_epsilon = split(epsilon, shares, 3)
    source = simulated(rng)
    guesses = first_guesses(
        users,
        epsilon,
        cap_epsilon,
        k_max=k_max,
        spread_users=spread_users,
        beta=beta,
        width=width,
        rng=source,
    )
    final, plan = guesses.final, guesses.plan

    # 4. Total weight.
    sums = plan.statistics(final)
    total_weight = sums.total_weight
    total_weight += laplace(plan.weight_sensitivity / weight_epsilon, rng=source)
    lightest, heaviest = final.n * plan.weights.min(), final.n * plan.weights.max()
    total_weight = float(min(max(total_weight, lightest), heaviest))

    # 5. Total offset, and the ratio.
    offset_scale = plan.offset_sensitivity / offset_epsilon
    total_offset = sums.total_offset + laplace(offset_scale, rng=source)
    value = plan.centre + total_offset / total_weight

    ledger = cohort_ledger(
        guesses,
        epsilon,
        cap_epsilon,
        Step(
            "total weight",
            ("final",),
            f"Laplace, sensitivity {plan.weight_sensitivity:.6g}",
            weight_epsilon,
        ),
        Step(
            "total offset",
            ("final",),
            f"Laplace, sensitivity {plan.offset_sensitivity:.6g}",
            offset_epsilon,
        ),
    )
    inside = traced(guesses, sums, offset_scale / total_weight, total_weight)
    return Estimate(value, ledger, inside if trace else None)


def split(epsilon: float, shares: Any, parts: int) -> list[float]:
    """Return epsilon divided by shares that add up to 1."""
    values = check.floats("shares", shares)
    if len(values) != parts or abs(float(values.sum()) - 1.0) > 1e-9:
        raise ValueError(
            f"shares must be {parts} numbers above 0 that add up to 1, not {shares!r}"
        )
    return [epsilon * float(share) for share in values / values.sum()]


def cohort_ledger(
    guesses: Guesses, epsilon: float, cap_epsilon: float, *last: Step
) -> Ledger:
    """Return the ledger of the first guesses and of the last steps."""
    exponential = "exponential mechanism, sensitivity 1"
    return Ledger(
        neighbours=PRIVATE_SIZES,
        cohorts=(
            Cohort("mean", guesses.first.n, "drawn at random"),
            Cohort("spread", guesses.second.n, "drawn at random"),
            Cohort("final", guesses.final.n, "drawn at random"),
        ),
        steps=(
            Step(
                "first mean",
                ("mean",),
                f"Laplace, sensitivity {1 / guesses.first.n:.6g}",
                epsilon,
            ),
            Step("cap on sizes", ("final",), exponential, cap_epsilon),
            Step("spread between users", ("spread",), exponential, epsilon),
            *last,
        ),
    )


def traced(
    guesses: Guesses, sums: RatioStatistics, noise_scale: float, total_weight: float
) -> Trace:
    """Return what happened, with one array entry per row of the final cohort."""
    final, plan = guesses.final, guesses.plan
    place = np.minimum(final.k, guesses.cap) - 1
    return Trace(
        noiseless=sums.value,
        noise_scale=noise_scale,
        statistics=sums,
        total_weight=total_weight,
        weights=plan.weights[place] / sums.total_weight,
        lower=plan.centre - plan.below[place],
        upper=plan.centre + plan.above[place],
        threshold=guesses.cap,
        rank=guesses.rank,
        initial_mean=plan.centre,
        initial_variance=guesses.spread,
        alpha=guesses.alpha,
        cohorts={
            "mean": guesses.first,
            "spread": guesses.second,
            "final": guesses.final,
        },
    )
