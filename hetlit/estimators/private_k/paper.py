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

- The first guesses are clamped as in `hetlit.estimators.private_k.sums`: without it the
  total weight can be more sensitive than its noise allows, or a variance 0.
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

from hetlit import check
from hetlit.estimators.clipped_mean import BETA
from hetlit.estimators.first_guesses import (
    PAPER_INFLATION,
    clamped_mean,
    first_sample_total,
    paired_differences,
    variance_of_differences,
)
from hetlit.estimators.private_k.bound import checked
from hetlit.estimators.private_k.cohorts import low_total
from hetlit.estimators.private_k.ptr import certified_distance
from hetlit.estimators.private_k.sums import of_ratio, ratio_plan
from hetlit.estimators.published import (
    GAUSSIAN_RATES,
    published_bins,
    published_can_answer,
    published_group_size,
    published_mean_error,
    published_step,
    published_users_needed,
)
from hetlit.estimators.result import Estimate, Trace
from hetlit.estimators.uncertainty import of_plain_mean
from hetlit.privacy.account import Account
from hetlit.privacy.ledger import PRIVATE_SIZES, Cohort
from hetlit.privacy.noise import NoiseSource, Randomness, source_of
from hetlit.privacy.selection import rank_utilities, size_table
from hetlit.theory.widths import sub_gaussian_width
from hetlit.users.draws import check_variance_users, size_cohorts
from hetlit.users.table import Users


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
    rng: Randomness = None,
    trace: bool = False,
) -> Estimate:
    """Return Algorithm 3, with its parameters meaning what they mean in the paper.

    Parameters
    ----------
    users : Users, at least 10, none with more than k_max samples
    epsilon, delta : the budget of EACH mechanism; epsilon in [1e-12, 1e12], delta
        strictly between 0 and 1/2.  The total is (6 epsilon, 3 delta): see the ledger
    k_max : a public bound on sizes, from 1 to 10^7
    beta : the probability with which each tail bound may fail, in (0, 1)
    variance_users : the paper's L, from 2 to 10^6; by default log(n)/epsilon
    variance : "published" for the estimator of Section 6, which needs more users
        than there are and returns nothing, after which the largest possible variance
        is assumed; "median" for `initial_variance`, to see the rest at work
    third_moment : bounds E|x - mean|^3/sd^3 of the users' means; by default what
        Lemma `lem.thirdmoment` gives for Gaussian rates

    Privacy: not what the paper says; see the module and the ledger's notes.

    Paper: Algorithm `alg.dpk` with Section 6.  Chapter: Private k.
    """
    delta = check.chance("delta", delta, 0.5)
    trace = check.flag("trace", trace)
    variance = check.one_of("variance", variance, ("published", "median"))
    third_moment = check.between("third_moment", third_moment, 1e-6, 1e6)
    if variance_users is not None:
        check_variance_users(variance_users)
    source = source_of(rng)
    users, k_max, epsilon, beta = checked(users, k_max, epsilon, beta)
    n = users.n
    if variance_users is None:
        variance_users = max(2, math.ceil(math.log(n) / epsilon))
    # Cohorts are functions of private sizes, as published.
    most, middle, least = size_cohorts(users, variance_users, source.chance)
    account = published_account(n, epsilon, delta, source)

    # Initial mean, of one sample per user with little data.
    raw = account.laplace(
        "first mean",
        first_sample_total(least, source.chance) / least.n,
        1.0 / least.n,
        epsilon,
        delta=delta,
        detail=", on the users with least data",
    )
    sure = of_plain_mean(raw, least.n, account.scale)
    q = clamped_mean(raw, least.n)[1]
    alpha = published_mean_error(raw, least.n, epsilon, beta)

    # Initial variance, of the users with most data.
    means = source.chance.permutation(most.expanded().means)
    name, spread = "first variance", q
    group_size = published_group_size(third_moment)
    lowest, highest = published_bins(k_max, group_size)
    needed = published_users_needed(third_moment, epsilon, beta, highest - lowest + 1)
    if variance == "median":
        differences = paired_differences(means, source.chance)
        guess = PAPER_INFLATION * variance_of_differences(
            account, name, differences, k_max, epsilon, delta=delta
        )
        spread = min(guess, q)
    elif published_can_answer(most.n, group_size, needed):
        guess = published_step(
            account, name, means, epsilon, k=k_max, group_size=group_size, delta=delta
        )
        spread = min(guess, q)
    else:
        account.nothing(name, epsilon, delta=delta, why="too few users")

    # L-th order statistic of all sizes.
    table = size_table(users.k, None if users.ordered else users.counts, k_max)
    utilities = rank_utilities(table, most.n)
    cap = 1 + account.choose("order statistic", utilities, epsilon)
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
    noisy_weight = account.laplace(
        "total weight",
        sums.total_weight,
        largest_weight,
        epsilon,
        detail=", on the users in between",
    )
    low_weight = low_total(noisy_weight, account.scale, plan, middle.n)
    noisy_weight -= account.scale * math.log(2.0 * delta)

    # Local sensitivity proposal, with the published f at k_max.
    width = float(sub_gaussian_width(k_max, n, spread, beta))
    proposal = 12.0 * width * largest_weight / noisy_weight

    # Propose, test, release.
    distance = certified_distance(plan, sums, middle.n, proposal)
    noisy_distance = account.laplace(
        "test of the distance", distance, 1.0, epsilon, delta=delta
    )
    # A negative proposal, from a negative total, bounds nothing.
    passed = noisy_distance >= math.log(1.0 / delta) / epsilon and proposal > 0.0
    value, noiseless, noise_scale, known = raw, raw, 0.0, sure
    if passed:
        noiseless = sums.value
        value = account.laplace(
            "release of the mean", noiseless, proposal, epsilon, detail=" as proposed"
        )
        noise_scale = account.scale
        known = of_ratio(value, plan, spread, noise_scale, (low_weight, 0.0), sure)
    else:
        account.nothing("release of the mean", epsilon, why="the test failed")

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
    ledger = account.ledger(*published_notes(epsilon, delta))
    return Estimate(value, ledger, inside if trace else None, known, known.warnings)


def published_account(
    n: int, epsilon: float, delta: float, source: NoiseSource
) -> Account:
    """Return an account of what composition proves, (6 epsilon, 3 delta)."""
    everyone = (Cohort("everyone", n, "ranked by private sizes, so not divided"),)
    budget = 6.0 * epsilon
    return Account(budget, PRIVATE_SIZES, everyone, source, delta=3.0 * delta)


def published_notes(epsilon: float, delta: float) -> tuple[str, ...]:
    """Return what Algorithm 3 claims, what composition proves, and why they differ."""
    return (
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
    )
