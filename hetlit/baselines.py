"""What people use instead: simple means, truncation and contribution bounding.

Each function says which neighbours it protects.  With public sizes, neighbours
differ in one user's samples.  With private sizes, they may also differ in how many
samples she holds; only the number of users n is public then.

Which of her samples a user contributes is drawn at random, independently of their
values.  Every sensitivity below holds for each outcome of these draws, so they cost
no privacy.

Paper: Sections 1.1 and 4.3.  Chapter: A realizable estimator.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from . import check
from .account import Account
from .check import MOST_SIZES, Floats, Integers
from .estimate import Estimate, Trace
from .grouping import Sizes, blocks, by_size
from .huber import huber
from .ledger import PUBLIC_SIZES, Cohort, everyone
from .model import Users, check_users
from .noise import NoiseSource, Randomness, source_of
from .subsample import most_data, subsampled_ones, sum_over_rows

__all__ = [
    "contribution_bounding",
    "huber",
    "median_truncation",
    "pooled_mean",
    "user_mean",
]

ANY_SIZES = "replace one user, her samples and her size k; n is public"
CAP_SHARE = 0.1  # of epsilon, for a private cap


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
    rng : simulated noise; see `hetlit.noise`
    trace : also return what happened inside, not for release

    Privacy: `epsilon` in total, delta 0; neighbours replace one user, her size
    included; n is public.  Her mean stays in [0, 1] whatever its size, so the mean
    of means moves by at most 1/n.

    >>> users = Users(k=[1, 100], successes=[1, 20], counts=[1000, 1000])
    >>> user_mean(users, 1.0, rng=np.random.default_rng(0), trace=True).trace.noiseless
    0.6
    """
    users, epsilon, source = _checked(users, epsilon, rng, trace)
    means = sum(
        float(np.dot(users.successes[rows] / users.k[rows], users.counts[rows]))
        for rows in blocks(users)
    )
    return _laplace_mean(
        means / users.n,
        1.0 / users.n,
        epsilon,
        source,
        trace,
        ANY_SIZES,
        everyone(users.n),
        weights=np.full(len(users.k), 1.0 / users.n) if trace else None,
    )


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
    rng : simulated noise; see `hetlit.noise`
    trace : also return what happened inside, not for release

    Privacy: `epsilon` in total, delta 0; neighbours replace one user's samples; n
    and sizes are public.  She has k of N samples, so the mean moves by at most
    max k / N.  With private sizes this release would not be private: N and max k
    are used as they are.

    >>> users = Users(k=[1, 100], successes=[1, 20], counts=[1000, 1000])
    >>> trace = pooled_mean(users, 1.0, rng=np.random.default_rng(0), trace=True).trace
    >>> round(trace.noiseless, 4), round(trace.sensitivity, 6)
    (0.2079, 0.00099)
    """
    users, epsilon, source = _checked(users, epsilon, rng, trace)
    samples = sum_over_rows(users.k, users.counts)
    return _laplace_mean(
        sum_over_rows(users.successes, users.counts) / samples,
        float(users.k.max()) / samples,
        epsilon,
        source,
        trace,
        PUBLIC_SIZES,
        everyone(users.n),
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
    rng : simulated noise and draws; see `hetlit.noise`
    trace : also return what happened inside, not for release

    Privacy: `epsilon` in total, delta 0; neighbours replace one user's samples; n
    and sizes are public.  Who takes part depends on sizes and on luck, and the mean
    of a user who does stays in [0, 1], so the result moves by at most 1/ceil(n/2).

    Paper: Section 4.3.

    >>> users = Users(k=[9, 3, 3, 1], successes=[9, 3, 3, 0], counts=[10, 20, 30, 40])
    >>> estimate = median_truncation(users, 1.0, rng=np.random.default_rng(0))
    >>> print(estimate.ledger.cohorts[0])
    Cohort(name='upper half', users=50, chosen_by='most samples, 3 or more')
    """
    users, epsilon, source = _checked(users, epsilon, rng, trace)
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
        size=size,
        cohorts={"upper half": upper},
    )


def contribution_bounding(
    users: Users,
    epsilon: float,
    *,
    cap: int | str,
    k_max: int | None = None,
    cap_share: float = CAP_SHARE,
    count_share: float | None = None,
    rng: Randomness = None,
    trace: bool = False,
) -> Estimate:
    """Return a noisy sum over a noisy count of at most `cap` samples of each user.

    It is what the general libraries do: OpenDP truncates rows per identifier,
    PipelineDP (after Wilson et al., 2020) bounds contributions, Tumult Analytics
    sets a maximum of rows per identifier.  PipelineDP and this function centre
    values at 1/2, which makes the count's noise matter less.

    Parameters
    ----------
    users : Users
    epsilon : the total user-level privacy budget of the release, in [1e-12, 1e12]
    cap : the most samples a user contributes, a whole number from 1 to 10^7 chosen
        without looking at the data; or "private", to let the data choose
    k_max : for a private cap only, the largest one allowed, at most 10^7, chosen
        without looking at the data; users may hold more
    cap_share : the fraction of epsilon for a private cap, in (0, 1) but not within
        1e-9 of its ends
    count_share : None to release sum and count at once; a fraction, as that, of the
        budget for the count to release them one by one, as libraries do with 0.5
    rng : simulated noise and draws; see `hetlit.noise`
    trace : also return what happened inside, not for release

    Privacy: `epsilon` in total, delta 0; neighbours replace one user, her size
    included; n is public.  A user contributes m in [1, cap] samples and s in [0, m]
    ones.  Replace her by (m', s'):

    - the centred sum, of s - m/2, moves by at most (m + m')/2 <= cap;
    - the count, of m, moves by |m - m'| <= cap - 1, and not at all if cap is 1;
    - together, the centred sum and half the count move by at most
      (m + m')/2 + |m - m'|/2 = max(m, m') <= cap, no more than the sum alone.

    So at once, noise of scale cap/epsilon on the centred sum and on half the count
    is epsilon-private; one by one, their shares add up.  A private cap comes first
    and adds its share: see `cap_utilities`.  The rest is post-processing: n and n
    cap bound the count.

    >>> users = Users(k=[1, 50], successes=[1, 10], counts=[5000, 5000])
    >>> rng = np.random.default_rng(0)
    >>> estimate = contribution_bounding(users, 1.0, cap="private", k_max=1000, rng=rng)
    >>> [step.name for step in estimate.ledger.steps]
    ['cap', 'sum and count']
    """
    users, epsilon, source = _checked(users, epsilon, rng, trace)
    cap_share = check.share("cap_share", cap_share)
    if count_share is not None:
        count_share = check.share("count_share", count_share)
    private = isinstance(cap, str)
    if private:
        check.one_of("cap", cap, ("private",))
        caps = _allowed_caps(k_max)
    elif k_max is not None:
        raise ValueError(f"k_max is for cap='private' only, not for cap={cap!r}")
    else:
        cap = _bounded("cap", cap)
    account = Account(epsilon, ANY_SIZES, everyone(users.n), source)
    if private:
        left = epsilon - cap_share * epsilon
        for_sum = left if count_share is None else left - count_share * left
        utilities = cap_utilities(by_size(users).sizes, caps, for_sum)
        cap = int(caps[account.choose("cap", utilities, cap_share * epsilon)])
    cap = int(cap)

    count = sum_over_rows(np.minimum(users.k, cap), users.counts)
    ones = subsampled_ones(users, cap, source.chance)
    noisy_sum, noisy_count, scales = _sum_and_count(
        account, ones - count / 2.0, count, users.n, cap, count_share
    )
    noisy_count = min(max(noisy_count, float(users.n)), float(users.n) * cap)
    inside = Trace(
        noiseless=ones / count,
        noise_scale=scales[0] / count,
        cap=cap,
        ones=ones,
        count=count,
        sum_scale=scales[0],
        count_scale=scales[1],
    )
    value = 0.5 + noisy_sum / noisy_count
    ledger = account.ledger(f"each user contributed at most {cap} samples")
    return Estimate(value, ledger, inside if trace else None)


def cap_utilities(sizes: Sizes, caps: Integers, epsilon: float) -> Floats:
    """Return minus the distance of each cap from where more would not pay.

    With M contributed samples of users who are all alike, at p = 1/2, the variance
    is 1/(4M) + 2 (cap/(epsilon M))^2.  Raising the cap by 1 adds one sample of each
    user who holds more than that, and it pays while they are more than about
    16 cap/epsilon^2.  The utility is minus the distance between the two numbers.

    Privacy: one user changes every number of users by at most 1, whatever her size,
    so the sensitivity is 1.
    """
    up_to = np.concatenate(([0], np.cumsum(sizes.counts)))
    holders = up_to[-1] - up_to[np.searchsorted(sizes.k, caps, side="right")]
    return np.asarray(-np.abs(holders - 16.0 * caps / epsilon**2))


def _sum_and_count(
    account: Account,
    centred_sum: float,
    count: float,
    n: int,
    cap: int,
    count_share: float | None,
) -> tuple[float, float, tuple[float, float]]:
    """Return the noisy centred sum, the noisy count and the scales of their noise.

    They spend what is left.  If cap is 1 the count is n, which is public.
    """
    left = account.left
    if count_share is None and cap > 1:
        both = account.counts(
            "sum and count",
            np.array([centred_sum, count / 2.0]),
            float(cap),
            left,
            detail=" of the centred sum and half the count",
        )
        scales = account.scale, 2.0 * account.scale
        return float(both[0]), 2.0 * float(both[1]), scales
    for_count = 0.0 if count_share is None else count_share * left
    noisy_sum = account.laplace("sum", centred_sum, float(cap), left - for_count)
    sum_scale = account.scale
    if cap == 1:
        return noisy_sum, float(n), (sum_scale, 0.0)
    noisy_count = account.laplace("count", count, cap - 1.0, for_count)
    return noisy_sum, noisy_count, (sum_scale, account.scale)


def _allowed_caps(k_max: int | None) -> Integers:
    """Return the powers of two below k_max, and k_max."""
    if k_max is None:
        raise TypeError(
            "k_max is needed with cap='private': the largest cap allowed, chosen "
            "without looking at the data; users may hold more"
        )
    k_max = _bounded("k_max", k_max)
    powers = [1 << power for power in range((k_max - 1).bit_length())]
    return np.array([*powers, k_max], dtype=np.int64)


def _bounded(name: str, value: Any) -> int:
    """Return a number of samples that can be drawn for every user."""
    bound = check.integer(name, value, 1)
    if bound > MOST_SIZES:
        raise ValueError(f"{name} must be at most {MOST_SIZES}, not {value}")
    return bound


def _laplace_mean(
    noiseless: float,
    sensitivity: float,
    epsilon: float,
    source: NoiseSource,
    trace: bool,
    neighbours: str,
    division: tuple[Cohort, ...],
    **inside: Any,
) -> Estimate:
    """Return noiseless + Laplace(sensitivity/epsilon), on users of the first cohort."""
    account = Account(epsilon, neighbours, division, source)
    value = account.laplace("mean", noiseless, sensitivity, epsilon, division[0].name)
    parts = Trace(
        noiseless=noiseless,
        noise_scale=account.scale,
        sensitivity=sensitivity,
        **inside,
    )
    return Estimate(value, account.ledger(), parts if trace else None)


def _checked(
    users: Any, epsilon: Any, rng: Any, trace: Any
) -> tuple[Users, float, NoiseSource]:
    users = check_users(users)
    check.flag("trace", trace)
    return users, check.epsilon(epsilon), source_of(rng)
