"""Algorithm 3 as published, to compare with and to learn from; do not release it.

Cohorts are ranks of private sizes: the users with most samples give a first
variance, those with least a first mean, those in between the final estimate, by
propose-test-release.  What is wrong with it:

- Privacy.  It claims (3 epsilon, 2 delta), adding up the costs of each cohort.  But
  one user who changes her size can leave one cohort for another and push a user over
  every boundary in between, so that all three cohorts change, by one user each, and
  all costs add up.  Also, propose-test-release pays epsilon twice, for the test and
  for the release.  What composition proves is (6 epsilon, 3 delta).
- Accuracy.  The offset of the total weight has the wrong sign, so the total is
  overstated; the width is taken at k_max instead of the cap; both make the proposal
  too small.  The constant 12 makes it far too large, and so is the noise.

Where the text cannot be followed, or not even this much would be proved:

- The first guesses are clamped as in `hetlit.ratio`: without it the total weight can
  be more sensitive than its noise allows, or a variance 0.
- The variance is that of whole user means, as in line `initialvark`, not of the first
  k_L samples, as in Section 6: k_L, the size of rank L, is private, and a user who
  changes it changes every input.  Users are put in random order, not in order of
  rank, in which one user who leaves shifts everyone.
- Ties of size are broken by the order of a list, which must be public, and at random
  in a table with counts, whose order may depend on the data.
- The distance is `certified_distance`, a lower bound on the published one, which
  ranges over all tables.

Paper: Algorithm `alg.dpk`, Theorem `thm.privatek`.  Chapter: Private k.
"""

from __future__ import annotations

import math

import numpy as np

from . import check
from .concentration import sub_gaussian_width
from .estimate import Estimate, Trace
from .ideal import BETA
from .initial import (
    GAUSSIAN_THIRD_MOMENT,
    first_sample_total,
    initial_variance,
    noisy_mean,
    published_bins,
    published_group_size,
    published_mean_error,
    published_users_needed,
    published_variance,
)
from .model import Users
from .noise import laplace, private_order_statistic, simulated
from .privacy import PRIVATE_SIZES, Cohort, Ledger, Step
from .ptr import certified_distance
from .public_size import clamped_mean
from .ratio import ratio_plan
from .size_bound import checked
from .subsample import split_by_size

GAUSSIAN_RATES = 8.0 * (3.0 * math.sqrt(3.0) + GAUSSIAN_THIRD_MOMENT)


def estimate_published_k(
    users: Users,
    epsilon: float,
    *,
    k_max: int,
    delta: float,
    beta: float = BETA,
    variance_users: int | None = None,
    variance: str = "published",
    third_moment: float = GAUSSIAN_RATES,
    rng: np.random.Generator | None = None,
    trace: bool = False,
) -> Estimate:
    """Return Algorithm 3, with its parameters meaning what they mean in the paper.

    Parameters
    ----------
    users : Users, at least 10, none with more than k_max samples
    epsilon, delta : the budget of EACH mechanism; epsilon above 0, delta strictly
        between 0 and 1/2.  The total is (6 epsilon, 3 delta): see the ledger
    k_max : a public bound on sizes, from 1 to 10^7
    beta : the probability with which each tail bound may fail, in (0, 1)
    variance_users : the paper's L, at least 2; by default log(n)/epsilon
    variance : "published" for the estimator of Section 6, which needs more users
        than there are and returns nothing, after which the largest possible variance
        is assumed; "median" for `initial_variance`, to see the rest at work
    third_moment : bounds E|x - mean|^3/sd^3 of the users' means; by default what
        Lemma `lem.thirdmoment` gives for Gaussian rates

    Privacy: not what the paper says; see the module and the ledger's notes.

    Paper: Algorithm `alg.dpk` with Section 6.  Chapter: Private k.
    """
    users, k_max, epsilon, beta = checked(users, k_max, epsilon, beta)
    delta = check.strictly_between("delta", delta, 0.0, 0.5)
    variance = check.one_of("variance", variance, ("published", "median"))
    source = simulated(rng)
    n = users.n
    most, middle, least = rank_cohorts(users, epsilon, variance_users, source)

    # Initial mean, of one sample per user with little data.
    raw = noisy_mean(first_sample_total(least, source), least.n, epsilon, rng=source)
    q = clamped_mean(raw, least.n)[1]
    alpha = published_mean_error(raw, least.n, epsilon, beta)

    # Initial variance, of the users with most data.
    means = source.permutation(most.expanded().means)
    if variance == "median":
        guess: float | None = initial_variance(means, epsilon, k=k_max, rng=source)
    else:
        group_size = published_group_size(third_moment)
        lowest, highest = published_bins(k_max, group_size)
        guess = published_variance(
            means,
            epsilon,
            k=k_max,
            group_size=group_size,
            users_needed=published_users_needed(
                third_moment, epsilon, beta, highest - lowest + 1
            ),
            rng=source,
        )
    spread = q if guess is None else min(guess, q)

    # L-th order statistic of all sizes.
    cap = private_order_statistic(
        users.k, most.n, k_max, epsilon, counts=users.counts, rng=source
    )
    plan = ratio_plan(
        raw,
        spread,
        cap,
        n=least.n,
        alpha=alpha,
        width=lambda k: sub_gaussian_width(k, n, spread, beta),
    )
    sums = plan.statistics(middle)

    # Noisy normalisation, with the published sign: it overstates the total.
    largest_weight = float(plan.weights.max())
    weight_scale = largest_weight / epsilon
    noisy_weight = sums.total_weight + laplace(weight_scale, rng=source)
    noisy_weight -= weight_scale * math.log(2.0 * delta)

    # Local sensitivity proposal, with the published f at k_max.
    width = float(sub_gaussian_width(k_max, n, spread, beta))
    proposal = 12.0 * width * largest_weight / noisy_weight

    # Propose, test, release.
    distance = certified_distance(plan, sums, middle.n, proposal)
    noisy_distance = distance + laplace(1.0 / epsilon, rng=source)
    # A negative proposal, from a negative total, bounds nothing.
    passed = noisy_distance >= math.log(1.0 / delta) / epsilon and proposal > 0.0
    noiseless = sums.value if passed else raw
    noise_scale = proposal / epsilon if passed else 0.0
    value = noiseless + laplace(noise_scale, rng=source)

    inside = Trace(
        noiseless=noiseless,
        noise_scale=noise_scale,
        statistics=sums,
        noisy_weight=noisy_weight,
        proposal=proposal,
        distance=distance,
        passed=passed,
        threshold=cap,
        initial_mean=plan.centre,
        initial_variance=spread,
        alpha=alpha,
        cohorts={"variance": most, "final": middle, "mean": least},
    )
    ledger = published_ledger(n, epsilon, delta)
    return Estimate(value, ledger, inside if trace else None)


def rank_cohorts(
    users: Users, epsilon: float, variance_users: int | None, rng: np.random.Generator
) -> tuple[Users, Users, Users]:
    """Return the L users with most samples, those between, the tenth with least.

    A function of private sizes, as published; `split_by_size` says who wins a tie.
    """
    n = users.n
    if variance_users is None:
        variance_users = max(2, math.ceil(math.log(n) / epsilon))
    top, bottom = check.integer("variance_users", variance_users, 2), n // 10
    if bottom < 1:
        raise ValueError(f"users must be at least 10, not {n}")
    if top + bottom >= n:
        raise ValueError(
            f"users: of {n}, the variance cohort takes {top} and the mean cohort "
            f"{bottom}, which leaves nobody for the final one; more users or a larger "
            f"epsilon are needed"
        )
    return split_by_size(users, top, bottom, rng)


def published_ledger(n: int, epsilon: float, delta: float) -> Ledger:
    """Return what Algorithm 3 claims, what composition proves, and why they differ."""

    def step(name: str, mechanism: str, cost: float = 0.0) -> Step:
        return Step(name, ("everyone",), mechanism, epsilon, cost)

    return Ledger(
        neighbours=PRIVATE_SIZES,
        cohorts=(Cohort("everyone", n, "ranked by private sizes, so not divided"),),
        steps=(
            step("first mean", "Laplace, on the users with least data", delta),
            step("first variance", "histogram, on the users with most data", delta),
            step("order statistic", "exponential mechanism, sensitivity 1"),
            step("total weight", "Laplace, on the users in between"),
            step("test of the distance", "Laplace, sensitivity 1", delta),
            step("release of the mean", "Laplace, sensitivity as proposed"),
        ),
        notes=(
            f"the paper claims (3 epsilon, 2 delta) = ({3 * epsilon:.6g}, "
            f"{2 * delta:.3g}): that is not proved, and false for some subroutines it "
            "allows",
            f"composition proves (6 epsilon, 3 delta) = ({6 * epsilon:.6g}, "
            f"{3 * delta:.3g}): cohorts are ranks of private sizes, so replacing one "
            "user can change all three and every step counts for everyone; and "
            "propose-test-release spends epsilon on its test and again on its release",
            "the first mean and the first variance are counted at (epsilon, delta) "
            "each, as the paper allows; those used here are pure",
            "the published distance ranges over all tables; a certified lower bound "
            "is used instead",
        ),
    )
