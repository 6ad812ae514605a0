"""The ideal private estimator: everything known but the mean itself.

Each user's mean is clipped to an interval around p that holds it with high
probability, the clipped means are averaged with weights that no single user
dominates, and Laplace noise hides any one user.

Privacy: for public sizes, the noiseless sum moves by at most
max_i w_i (b_i - a_i) when one user's samples are replaced: see
`hetlit.estimators.clipped_mean`.

Paper: Section 4.1.  Chapter: The ideal private estimator.
"""

from __future__ import annotations

from hetlit import check
from hetlit.estimators.clipped_mean import (
    ClippedMean,
    Width,
    half_widths_of,
    plan_clipped_mean,
)
from hetlit.estimators.first_guesses import known_spread
from hetlit.estimators.result import Estimate
from hetlit.privacy.account import Account
from hetlit.privacy.ledger import PUBLIC_SIZES, everyone
from hetlit.privacy.noise import Randomness, source_of
from hetlit.theory.variance import variance_of_mean
from hetlit.users.groups import Sizes, by_size
from hetlit.users.table import Users, check_users


def estimate_ideal(
    users: Users,
    p: float,
    var_p: float,
    epsilon: float,
    *,
    alpha: float = 0.0,
    width: Width | None = None,
    weights: str = "paper",
    rng: Randomness = None,
    trace: bool = False,
) -> Estimate:
    """Return the ideal private estimate of the mean, given p and var_p.

    It is the yardstick for the others and, with first guesses in place of p and
    var_p, the last step of Algorithm 2.

    Parameters
    ----------
    users : Users
    p : the centre of the intervals, in [0, 1]
    var_p : the variance of the users' rates, in [0, p(1-p)]
    epsilon : the user-level privacy budget of the release, in [1e-12, 1e12]
    alpha : how far p may be from the population mean, at least 0
    width : a function from sizes k, shape (groups,), to half-widths f(k); by default
        sd(k) sqrt(2 log(2n/0.05)), for means with tails no heavier than Gaussian:
        too narrow where ones are rare, see `hetlit.theory.widths`
    weights : "paper" for min(1/variance, T/sd) with the best T, or "optimal"
    rng : simulated noise; see `hetlit.privacy.noise`
    trace : also return what happened inside, not for release

    Returns
    -------
    Estimate, with trace.objective the variance of the noisy sum if nobody is
    clipped: sum w^2 variance + 2 (max w (b-a) / epsilon)^2.

    Privacy: `epsilon` in total, delta 0; neighbours replace one user's samples;
    n and sizes are public.  p and var_p must not come from the same users' data,
    unless they were released privately.

    Paper: equation `privoptimal1`.  Chapter: The ideal private estimator.

    >>> import numpy as np
    >>> from hetlit import Beta, sample_users, sizes
    >>> rng = np.random.default_rng(0)
    >>> users = sample_users(Beta(0.3, 0.0004), sizes.harmonic(10_000), rng)
    >>> estimate = estimate_ideal(users, 0.3, 0.0004, 1.0, rng=rng, trace=True)
    >>> round(estimate.trace.objective * 1e6, 3)
    3.856
    """
    users = check_users(users)
    p, var_p = check.mean_and_variance(p, var_p)
    epsilon = check.epsilon(epsilon)
    alpha = check.at_least("alpha", alpha, 0.0)
    weights = check.one_of("weights", weights, ("paper", "optimal"))
    trace = check.flag("trace", trace)
    source = source_of(rng)

    groups = by_size(users)
    plan = plan_ideal(
        groups.sizes, p, var_p, epsilon, alpha=alpha, width=width, weights=weights
    )
    account = Account(epsilon, PUBLIC_SIZES, everyone(users.n), source)
    value = account.laplace(
        "clipped weighted mean", plan.noiseless(groups), plan.sensitivity, epsilon
    )
    ledger = account.ledger("p and var_p were taken as known")
    return Estimate(value, ledger, plan.trace(groups, epsilon) if trace else None)


def plan_ideal(
    sizes: Sizes,
    p: float,
    var_p: float,
    epsilon: float,
    *,
    alpha: float = 0.0,
    width: Width | None = None,
    weights: str = "optimal",
) -> ClippedMean:
    """Return what `estimate_ideal` plans for users of these sizes."""
    n = sizes.n
    q = known_spread(p, n)
    variances = variance_of_mean(sizes.k, q, var_p)
    # Nobody is further away than 1, and sums with more could leave the floats.
    half_widths = min(alpha, 1.0) + half_widths_of(sizes.k, n, variances, width)
    return plan_clipped_mean(
        sizes, p - half_widths, p + half_widths, variances, epsilon, weights
    )
