"""Private sizes: how much data a user holds is her secret too.

Sizes decide weights, so with private sizes neither weights that add up to 1 nor the
noise may depend on them directly.  What may: a user's own size, in her own
contribution, and a cap on sizes that was released privately.

The algorithm walked through here releases two noisy sums, whose ratio is the
weighted mean (`hetlit.ratio`), on users who were assigned at random, whatever their
data, to one of three cohorts (`hetlit.static_cohorts`).

Privacy (neighbours replace one user, her size included; n and k_max are public):
the cohorts are independent of the data.  A user of the first cohort changes the
first mean, by 1/cohort; a user of the second the spread, whose utilities she moves
by at most 1; a user of the third moves the utilities of the cap by at most 1, and
the two sums by at most their sensitivities, which depend on first guesses only.
All else is computed from these outputs.

Paper: Section 4.4.  Chapter: Private k.
"""

from __future__ import annotations

from typing import Any

from . import check
from .clipped_mean import BETA, Width
from .estimate import Estimate
from .histogram_ratio import estimate_histogram_ratio
from .model import Users, check_users
from .noise import Randomness
from .ptr import estimate_ptr
from .published_k import estimate_published_k
from .ratio import RatioStatistics, ratio_statistics
from .size_bound import check_bound
from .static_cohorts import clamped_total, first_guesses, noisy_total, traced

__all__ = [
    "RatioStatistics",
    "estimate_private_k",
    "estimate_ratio",
    "ratio_statistics",
]

# Parts of epsilon for the cap, N and U, chosen by measurement: see `estimate_ratio`.
SHARES = (0.1, 0.05, 0.85)


def estimate_private_k(
    users: Users,
    epsilon: float,
    *,
    k_max: int | None = None,
    method: str = "auto",
    delta: float = 0.0,
    rng: Randomness = None,
    trace: bool = False,
    **options: Any,
) -> Estimate:
    """Return a private estimate of the population mean, for private sizes.

    Parameters
    ----------
    users : Users, none with more than k_max samples
    epsilon : the total user-level privacy budget of the release, in [1e-12, 1e12]
    k_max : a public bound on sizes, from 1 to 10^7, chosen without looking at them;
        `users.capped(k_max, rng)` cuts users to it
    method :
        "auto", the one to use: `hetlit.histogram_ratio.estimate_histogram_ratio`;
        "ratio", static cohorts and a noisy ratio: `estimate_ratio`;
        "ptr", static cohorts and propose-test-release: `hetlit.ptr.estimate_ptr`;
        "paper", Algorithm 3 as published: `hetlit.published_k.estimate_published_k`,
        where epsilon and delta are the budget of each mechanism, not the total
    delta : at most 1/2; "ptr" and "paper" need it above 0, the others spend none
    rng : simulated noise; see `hetlit.noise`
    trace : also return what happened inside, not for release
    options : keywords of the method

    Privacy: `epsilon` and, for "ptr", `delta` in total; neighbours replace one user,
    her size included; n and k_max are public.  For "paper" see its ledger.

    Paper: Algorithm `alg.dpk`.  Chapter: Private k.

    >>> import numpy as np
    >>> from hetlit import Beta, sample_users, sizes
    >>> rng = np.random.default_rng(0)
    >>> k = sizes.zipf(10_000, exponent=1.5, k_max=2000, rng=rng)
    >>> users = sample_users(Beta(0.3, 0.0004), k, rng)
    >>> estimate = estimate_private_k(users, 1.0, k_max=2000, method="ratio", rng=rng)
    >>> abs(estimate.value - 0.3) < 0.02, round(estimate.ledger.epsilon, 9)
    (True, 1.0)
    """
    method = check.one_of("method", method, ("auto", "ratio", "ptr", "paper"))
    delta = check.between("delta", delta, 0.0, 0.5)
    epsilon = check.epsilon(epsilon)
    k_max = check_bound(check_users(users), k_max)
    options.update(k_max=k_max, rng=rng, trace=trace)
    if method == "auto":
        return estimate_histogram_ratio(users, epsilon, **options)
    if method == "ratio":
        return estimate_ratio(users, epsilon, **options)
    several = estimate_ptr if method == "ptr" else estimate_published_k
    return several(users, epsilon, delta=delta, **options)


def estimate_ratio(
    users: Users,
    epsilon: float,
    *,
    k_max: int,
    shares: tuple[float, float, float] = SHARES,
    spread_users: int | None = None,
    beta: float = BETA,
    width: Width | None = None,
    rng: Randomness = None,
    trace: bool = False,
) -> Estimate:
    """Return the noisy ratio on static cohorts.

    Parameters
    ----------
    users : Users, at least 10, none with more than k_max samples
    epsilon : the total user-level privacy budget of the release, in [1e-12, 1e12]
    k_max : a public bound on sizes, from 1 to 10^7
    shares : parts of epsilon for the cap, the total weight and the total offset, all
        spent on the final cohort; they add up to 1.  The default is the best of
        seven that benchmarks/shares.py measures, and one near it is within 4%
    spread_users : how many users of the spread cohort should reach the cap; by
        default 10 log(n)/epsilon, the best of 3, 6, 10, 15 and 30 there
    beta : the probability with which each tail bound may fail, in (0, 1)
    width : a function from sizes to half-widths f(k); by default
        sd(k) sqrt(2 log(2n/beta)) with the estimated sd

    Privacy: `epsilon` in total, delta 0; see the module.  There is no way to fail:
    N lies between n min v and n max v, which are public, and is clamped to them.

    Paper: Algorithm `alg.dpk`, repaired.  Chapter: Private k.
    """
    trace = check.flag("trace", trace)
    # First mean, cap on sizes, spread between users.
    account, guesses, (weight_epsilon, offset_epsilon) = first_guesses(
        users,
        epsilon,
        shares,
        parts=3,
        k_max=k_max,
        spread_users=spread_users,
        beta=beta,
        width=width,
        rng=rng,
    )
    final, plan = guesses.final, guesses.plan
    sums = plan.statistics(final)

    # Total weight.
    noisy_weight, _ = noisy_total(account, sums, plan, final.n, weight_epsilon)
    noisy_weight = clamped_total(noisy_weight, plan, final.n)

    # Total offset, and the ratio.
    noisy_offset = account.laplace(
        "total offset",
        sums.total_offset,
        sums.offset_sensitivity,
        offset_epsilon,
        "final",
    )
    value = plan.centre + noisy_offset / noisy_weight
    if not trace:
        return Estimate(value, account.ledger())
    inside = traced(
        guesses,
        sums,
        noiseless=plan.centre + sums.total_offset / noisy_weight,
        noise_scale=account.scale / noisy_weight,
        noisy_weight=noisy_weight,
    )
    return Estimate(value, account.ledger(), inside)
