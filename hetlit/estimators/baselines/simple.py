"""Simple means: of users, of samples, and with large users cut to the median.

Each function says which neighbours it protects.  With public sizes, neighbours
differ in one user's samples.  With private sizes, they may also differ in how many
samples she holds; only the number of users n is public then.

Nobody is clipped and nothing is asked about how much users differ, so what is known of
the error is that a user's mean varies by at most p(1-p).

Paper: Sections 1.1 and 4.3.  Chapter: A realizable estimator.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from hetlit import check
from hetlit.check import MOST_SIZES
from hetlit.estimators.plain import plain_mean
from hetlit.estimators.result import Estimate, Trace
from hetlit.estimators.uncertainty import (
    Uncertainty,
    of_plain_mean,
    of_weighted_mean,
)
from hetlit.privacy.account import Account
from hetlit.privacy.ledger import PUBLIC_SIZES, Cohort, everyone
from hetlit.privacy.noise import NoiseSource, Randomness, source_of
from hetlit.users.draws import most_data, subsampled_ones, sum_over_rows
from hetlit.users.groups import by_size
from hetlit.users.table import Users, check_users

ANY_SIZES = "replace one user, her samples and her size k; n is public"


def user_mean(
    users: Users,
    epsilon: float,
    *,
    rng: Randomness = None,
    trace: bool = False,
) -> Estimate:
    """Return the mean of the users' means, with Laplace noise.

    Every user counts the same, whatever her size.  Unbiased, with variance
    sum of user_variance(k, p, var_p) / n^2 + 2 / (n epsilon)^2.

    Parameters
    ----------
    users : Users
    epsilon : the total user-level privacy budget of the release, in [1e-12, 1e12]
    rng : simulated noise; see `hetlit.privacy.noise`
    trace : also return what happened inside, not for release

    Privacy: `epsilon` in total, delta 0; neighbours replace one user, her size
    included; n is public.  Her mean stays in [0, 1] whatever its size, so the mean
    of means moves by at most 1/n.

    >>> import numpy as np
    >>> users = Users(k=[1, 100], successes=[1, 20], counts=[1000, 1000])
    >>> user_mean(users, 1.0, rng=np.random.default_rng(0), trace=True).trace.noiseless
    0.6
    """
    users, epsilon, source = checked(users, epsilon, rng, trace)
    return plain_mean(users, epsilon, ANY_SIZES, source, trace)


def pooled_mean(
    users: Users,
    epsilon: float,
    *,
    rng: Randomness = None,
    trace: bool = False,
) -> Estimate:
    """Return the mean over all samples of all users, with Laplace noise.

    Every sample counts the same, so a user with much data counts much and must be
    hidden by much noise.  Unbiased where sizes say nothing about rates, with
    variance sum of k^2 user_variance(k, p, var_p) / N^2 + 2 (max k / (N epsilon))^2
    for N samples in total.

    Parameters
    ----------
    users : Users
    epsilon : the total user-level privacy budget of the release, in [1e-12, 1e12]
    rng : simulated noise; see `hetlit.privacy.noise`
    trace : also return what happened inside, not for release

    Privacy: `epsilon` in total, delta 0; neighbours replace one user's samples; n
    and sizes are public.  She has k of N samples, so the mean moves by at most
    max k / N.  With private sizes this release would not be private: N and max k
    are used as they are.

    >>> import numpy as np
    >>> users = Users(k=[1, 100], successes=[1, 20], counts=[1000, 1000])
    >>> trace = pooled_mean(users, 1.0, rng=np.random.default_rng(0), trace=True).trace
    >>> round(trace.noiseless, 4), round(trace.sensitivity, 6)
    (0.2079, 0.00099)
    """
    users, epsilon, source = checked(users, epsilon, rng, trace)
    samples = sum_over_rows(users.k, users.counts)

    def sure(value: float, noise: float) -> Uncertainty:
        # By size, so that sums of floats do not depend on the order of the rows.
        sizes = by_size(users).sizes
        weights = sizes.k / samples
        return of_weighted_mean(value, sizes.k, sizes.counts, weights, math.inf, noise)

    return _laplace_mean(
        sum_over_rows(users.successes, users.counts) / samples,
        float(users.k.max()) / samples,
        epsilon,
        source,
        trace,
        PUBLIC_SIZES,
        everyone(users.n),
        sure,
        weights=users.k / samples if trace else None,
    )


def median_truncation(
    users: Users,
    epsilon: float,
    *,
    rng: Randomness = None,
    trace: bool = False,
) -> Estimate:
    """Return the mean of equally many samples of each user in the upper half.

    The reduction of prior work to users of one size: of the ceil(n/2) users with
    most samples, each gives as many as the one with the fewest among them holds,
    which is the median size, or 10^7.  Everything else is thrown away.  Who of the
    users of exactly the median size takes part is drawn at random.

    Parameters
    ----------
    users : Users
    epsilon : the total user-level privacy budget of the release, in [1e-12, 1e12]
    rng : simulated noise and draws; see `hetlit.privacy.noise`
    trace : also return what happened inside, not for release

    Privacy: `epsilon` in total, delta 0; neighbours replace one user's samples; n
    and sizes are public.  Who takes part depends on sizes and on luck, and the mean
    of a user who does stays in [0, 1], so the result moves by at most 1/ceil(n/2).

    Paper: Section 4.3.

    >>> import numpy as np
    >>> users = Users(k=[9, 3, 3, 1], successes=[9, 3, 3, 0], counts=[10, 20, 30, 40])
    >>> estimate = median_truncation(users, 1.0, rng=np.random.default_rng(0))
    >>> print(estimate.ledger.cohorts[0])
    Cohort(name='upper half', users=50, chosen_by='most samples, 3 or more')
    """
    users, epsilon, source = checked(users, epsilon, rng, trace)
    half = (users.n + 1) // 2
    upper, fewest = most_data(users, half, source.chance)
    size = min(fewest, MOST_SIZES)
    cohorts = (
        Cohort("upper half", half, f"most samples, {fewest} or more"),
        Cohort("left out", users.n - half, f"fewest samples, {fewest} or fewer"),
    )
    return _laplace_mean(
        subsampled_ones(upper, size, source.chance) / (float(half) * size),
        1.0 / half,
        epsilon,
        source,
        trace,
        PUBLIC_SIZES,
        cohorts if users.n > half else cohorts[:1],
        lambda value, noise: of_plain_mean(value, half, noise),
        size=size,
        cohorts={"upper half": upper},
    )


def _laplace_mean(
    noiseless: float,
    sensitivity: float,
    epsilon: float,
    source: NoiseSource,
    trace: bool,
    neighbours: str,
    division: tuple[Cohort, ...],
    sure: Callable[[float, float], Uncertainty],
    **inside: Any,
) -> Estimate:
    """Return noiseless + Laplace(sensitivity/epsilon), on users of the first cohort.

    `sure` tells the uncertainty of a value with noise of some scale.
    """
    account = Account(epsilon, neighbours, division, source)
    value = account.laplace("mean", noiseless, sensitivity, epsilon, division[0].name)
    parts = Trace(
        noiseless=noiseless,
        noise_scale=account.scale,
        sensitivity=sensitivity,
        **inside,
    )
    known = sure(value, account.scale)
    return Estimate(value, account.ledger(), parts if trace else None, known)


def checked(
    users: Any, epsilon: Any, rng: Any, trace: Any
) -> tuple[Users, float, NoiseSource]:
    """Return checked users and epsilon, and the source of noise."""
    users = check_users(users)
    check.flag("trace", trace)
    return users, check.epsilon(epsilon), source_of(rng)
