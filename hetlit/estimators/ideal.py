"""The ideal private estimator: everything known but the mean itself.

Each user's mean is clipped to an interval around p that holds it with high
probability, the clipped means are averaged with weights that no single user
dominates, and Laplace noise hides any one user.

Privacy: for public sizes, the noiseless sum moves by at most
max_i w_i (b_i - a_i) when one user's samples are replaced: see
`hetlit.estimators.clipped_mean`.

Uncertainty: with p and var_p known, so is how much clipping can take away.  Let a
user's mean be t above p, with variance v, and her interval end h above p.  Clipping
takes away (t - h)_+, which is half of |t - h| + t - h, so that by the inequality of
Cauchy and Schwarz

    E (t - h)_+ <= (sqrt(h^2 + v) - h)/2.

What is taken away below has the opposite sign.  So the larger of the two bounds the
bias of one user, and their weighted sum that of the value.

Paper: Section 4.1.  Chapter: The ideal private estimator.
"""

from __future__ import annotations

import numpy as np

from hetlit import check
from hetlit.estimators.clipped_mean import (
    ClippedMean,
    Width,
    half_widths_of,
    plan_clipped_mean,
)
from hetlit.estimators.first_guesses import known_spread
from hetlit.estimators.result import Estimate
from hetlit.estimators.uncertainty import FALSE_ALARM, Clipped, Uncertainty, within
from hetlit.privacy.account import Account
from hetlit.privacy.ledger import PUBLIC_SIZES, everyone
from hetlit.privacy.noise import Randomness, source_of
from hetlit.theory.variance import variance_of_mean
from hetlit.users.groups import Sizes, by_size
from hetlit.users.table import Users, check_users

FAR = (
    "the value and the p that was taken as known differ by {gap:.2g}, which has a "
    "chance of less than {chance:.1g} if p and var_p are right and clipping takes "
    "nothing away"
)


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
    sure = known_error(plan, p, var_p, alpha, account.scale)
    gap = abs(within(value) - p)
    far = gap > alpha + sure.half_width(1.0 - FALSE_ALARM, clipping=False)
    warnings = (FAR.format(gap=gap, chance=FALSE_ALARM),) if far else ()
    ledger = account.ledger("p and var_p were taken as known")
    inside = plan.trace(groups, epsilon) if trace else None
    return Estimate(value, ledger, inside, sure, warnings)


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


def known_error(
    plan: ClippedMean, p: float, var_p: float, alpha: float, noise: float
) -> Uncertainty:
    """Return the uncertainty of a release, for a p that is right to within alpha."""
    sizes = plan.sizes
    variances = variance_of_mean(sizes.k, known_spread(p, sizes.n), var_p)
    lost = [
        # Nobody is beyond an end of [0, 1].
        np.where(ends, np.hypot(inner, np.sqrt(variances)) - inner, 0.0) / 2.0
        for ends, inner in (
            (plan.upper < 1.0, np.maximum(plan.upper - p - alpha, 0.0)),
            (plan.lower > 0.0, np.maximum(p - alpha - plan.lower, 0.0)),
        )
    ]
    shares = sizes.counts * plan.weights
    bias = float(np.sum(shares * np.maximum(*lost)))
    sampling = float(np.sum(shares * plan.weights * variances)) ** 0.5
    return Uncertainty(
        noise=noise,
        sampling=sampling,
        clipped=Clipped(moved=bias) if plan.clips else None,
    )
