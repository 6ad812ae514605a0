"""Algorithm 2 with the paper's constants, to compare with.

Cohorts and their privacy are those of `hetlit.estimators.public_size.cohorts`; first
guesses, widths and weights are as published.

Paper: Algorithm `alg.dp` with Section 6.  Chapter: A realizable estimator.
"""

from __future__ import annotations

import math

from hetlit import check
from hetlit.estimators.clipped_mean import BETA, plan_clipped_mean
from hetlit.estimators.first_guesses import clamped_mean
from hetlit.estimators.public_size.cohorts import (
    checked,
    final_mean,
    first_mean,
    known_error,
    open_account,
    shared_size,
)
from hetlit.estimators.published import (
    GAUSSIAN_RATES,
    published_bins,
    published_can_answer,
    published_group_size,
    published_mean_error,
    published_step,
    published_users_needed,
)
from hetlit.estimators.result import Estimate
from hetlit.privacy.noise import Randomness
from hetlit.theory.variance import variance_of_mean
from hetlit.theory.widths import sub_gaussian_width
from hetlit.users.draws import shared_means, size_cohorts
from hetlit.users.groups import by_size
from hetlit.users.table import Users


def estimate_paper(
    users: Users,
    epsilon: float,
    *,
    beta: float = BETA,
    third_moment: float = GAUSSIAN_RATES,
    rng: Randomness = None,
    trace: bool = False,
) -> Estimate:
    """Return Algorithm 2 with the paper's constants.

    What is wrong with them: alpha is several times too wide; the variance
    estimator needs more users than there are people and returns nothing on
    log(n)/epsilon of them, after which the largest possible variance is assumed,
    all users get the same weight and hardly anyone is clipped.  It is private, and
    it is here because the book compares it.

    Parameters
    ----------
    users : Users, at least 10
    epsilon : the budget of every cohort and hence of the release, in [1e-12, 1e12]
    beta : the probability with which each tail bound may fail, in (0, 1)
    third_moment : from 1e-6 to 1e6; bounds E|x - mean|^3/sd^3 of the users' means; by
        default what Lemma `lem.thirdmoment` gives for Gaussian rates

    Privacy: `epsilon` in total; see the module.  The ledger notes how many users
    the variance estimator would need.

    Paper: Algorithm `alg.dp` with Section 6.
    """
    users, epsilon, beta, source = checked(users, epsilon, beta, rng, trace)
    third_moment = check.between("third_moment", third_moment, 1e-6, 1e6)
    n = users.n
    top = max(2, math.ceil(math.log(n) / epsilon))
    most, middle, least = size_cohorts(users, top, source.chance)
    account = open_account(most, middle, least, epsilon, source)

    raw, sure = first_mean(account, least, epsilon)
    centre, q = clamped_mean(raw, least.n)
    alpha = published_mean_error(raw, least.n, epsilon, beta)

    shared = shared_size(most)
    group_size = published_group_size(third_moment)
    lowest, highest = published_bins(shared, group_size)
    needed = published_users_needed(third_moment, epsilon, beta, highest - lowest + 1)
    means = shared_means(most, shared, source.chance)
    spread = q
    answers = published_can_answer(most.n, group_size, needed)
    if answers:
        variance = published_step(
            account,
            "first variance",
            means,
            epsilon,
            "variance",
            k=shared,
            group_size=group_size,
        )
        spread = min(variance, q)
    else:
        account.nothing("first variance", epsilon, "variance", why="too few users")

    groups = by_size(middle)
    variances = variance_of_mean(groups.sizes.k, q, spread)
    half_widths = alpha + sub_gaussian_width(groups.sizes.k, n, spread, beta)
    plan = plan_clipped_mean(
        groups.sizes,
        centre - half_widths,
        centre + half_widths,
        variances,
        epsilon,
        "paper",
    )
    value = final_mean(account, plan, groups, epsilon)

    known = known_error(value, account.scale, plan, spread, centre, sure)
    ledger = account.ledger(
        f"the published variance estimator had {most.n} users and needs {needed:.3g}; "
        + ("it returned a value" if answers else "it returned nothing")
    )
    inside = None
    if trace:
        inside = plan.trace(
            groups,
            epsilon,
            initial_mean=centre,
            initial_variance=spread,
            alpha=alpha,
            users_needed=needed,
            cohorts={"variance": most, "final": middle, "mean": least},
        )
    return Estimate(value, ledger, inside, known, known.warnings)
