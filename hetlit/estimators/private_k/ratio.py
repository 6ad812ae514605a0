"""Private sizes: how much data a user holds is her secret too.

Sizes decide weights, so with private sizes neither weights that add up to 1 nor the
noise may depend on them directly.  What may: a user's own size, in her own
contribution, and a cap on sizes that was released privately.

The algorithm walked through here releases two noisy sums, whose ratio is the
weighted mean (`hetlit.estimators.private_k.sums`), on users who were assigned at
random, whatever their data, to one of three cohorts
(`hetlit.estimators.private_k.cohorts`).

Privacy (neighbours replace one user, her size included; n and k_max are public):
the cohorts are independent of the data.  A user of the first cohort changes the
first mean, by 1/cohort; a user of the second the spread, whose utilities she moves
by at most 1; a user of the third moves the utilities of the cap by at most 1, and
the two sums by at most their sensitivities, which depend on first guesses only.
All else is computed from these outputs.

Uncertainty: nothing is asked about what clipping takes away, so an interval allows for
all that the first mean does not exclude.

Paper: Section 4.4.  Chapter: Private k.
"""

from __future__ import annotations

from hetlit import check
from hetlit.estimators.clipped_mean import BETA, Width
from hetlit.estimators.private_k.cohorts import (
    clamped_total,
    first_guesses,
    known_error,
    low_total,
    noisy_total,
    traced,
)
from hetlit.estimators.result import Estimate
from hetlit.privacy.noise import Randomness
from hetlit.users.table import Users

# Parts of epsilon for the cap, N and U, chosen by measurement: see `estimate_ratio`.
SHARES = (0.1, 0.05, 0.85)


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
    noisy_weight, scale = noisy_total(account, sums, plan, final.n, weight_epsilon)
    low_weight = low_total(noisy_weight, scale, plan, final.n)
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
    noise = account.scale / noisy_weight
    known = known_error(value, guesses, noise, (low_weight, scale))
    inside = None
    if trace:
        inside = traced(
            guesses,
            sums,
            noiseless=plan.centre + sums.total_offset / noisy_weight,
            noise_scale=noise,
            noisy_weight=noisy_weight,
        )
    return Estimate(value, account.ledger(), inside, known, known.warnings)
