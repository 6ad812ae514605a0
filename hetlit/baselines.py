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
from .check import Floats, Integers
from .estimate import Estimate, Trace
from .grouping import SizeGroups, blocks, by_size
from .huber import huber
from .ideal import check_users
from .model import Users
from .noise import exponential_mechanism, laplace, simulated
from .privacy import PUBLIC_SIZES, Cohort, Ledger, Step
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
    rng: np.random.Generator | None = None,
    trace: bool = False,
) -> Estimate:
    """Return the mean of the users' means, with Laplace noise.

    Every user counts the same, whatever her size.  Unbiased, with variance
    sum of user_variance(k, p, var_p) / n^2 + 2 / (n epsilon)^2.

    Parameters
    ----------
    users : Users
    epsilon : the total user-level privacy budget of the release, above 0
    rng : simulated noise; see `hetlit.noise`
    trace : also return what happened inside, not for release

    Privacy: `epsilon` in total, delta 0; neighbours replace one user, her size
    included; n is public.  Her mean stays in [0, 1] whatever its size, so the mean
    of means moves by at most 1/n.

    >>> users = Users(k=[1, 100], successes=[1, 20], counts=[1000, 1000])
    >>> user_mean(users, 1.0, rng=np.random.default_rng(0), trace=True).trace.noiseless
    0.6
    """
    users, epsilon, source = _checked(users, epsilon, rng)
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
        (Cohort("everyone", users.n, "no selection"),),
        weights=np.full(len(users.k), 1.0 / users.n) if trace else None,
    )


def pooled_mean(
    users: Users,
    epsilon: float,
    *,
    rng: np.random.Generator | None = None,
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
    epsilon : the total user-level privacy budget of the release, above 0
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
    users, epsilon, source = _checked(users, epsilon, rng)
    samples = sum_over_rows(users.k, users.counts)
    return _laplace_mean(
        sum_over_rows(users.successes, users.counts) / samples,
        float(users.k.max()) / samples,
        epsilon,
        source,
        trace,
        PUBLIC_SIZES,
        (Cohort("everyone", users.n, "no selection"),),
        weights=users.k / samples if trace else None,
    )


def median_truncation(
    users: Users,
    epsilon: float,
    *,
    rng: np.random.Generator | None = None,
    trace: bool = False,
) -> Estimate:
    """Return the mean of equally many samples of each user in the upper half.

    The reduction of prior work to users of one size: of the ceil(n/2) users with
    most samples, each gives as many as the one with the fewest among them holds,
    which is the median size.  Everything else is thrown away.  Who of the users of
    exactly the median size takes part is drawn at random.

    Parameters
    ----------
    users : Users
    epsilon : the total user-level privacy budget of the release, above 0
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
    users, epsilon, source = _checked(users, epsilon, rng)
    half = (users.n + 1) // 2
    upper, size = most_data(users, half, source)
    cohorts = (
        Cohort("upper half", half, f"most samples, {size} or more"),
        Cohort("left out", users.n - half, f"fewest samples, {size} or fewer"),
    )
    return _laplace_mean(
        subsampled_ones(upper, size, source) / (float(half) * size),
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
    rng: np.random.Generator | None = None,
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
    epsilon : the total user-level privacy budget of the release, above 0
    cap : the most samples a user contributes, a whole number of at least 1 chosen
        without looking at the data; or "private", to let the data choose
    k_max : for a private cap only, the largest one allowed, chosen without looking
        at the data; users may hold more
    cap_share : the fraction of epsilon for a private cap, in (0, 1)
    count_share : None to release sum and count at once; a fraction in (0, 1) of the
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
    users, epsilon, source = _checked(users, epsilon, rng)
    cap_share = check.strictly_between("cap_share", cap_share, 0.0, 1.0)
    if count_share is not None:
        count_share = check.strictly_between("count_share", count_share, 0.0, 1.0)
    steps: list[Step] = []
    left = epsilon
    if isinstance(cap, str):
        check.one_of("cap", cap, ("private",))
        caps = _allowed_caps(k_max)
        left = epsilon - cap_share * epsilon
        for_sum = left if count_share is None else left - count_share * left
        utilities = cap_utilities(by_size(users), caps, for_sum)
        chosen = exponential_mechanism(utilities, cap_share * epsilon, rng=source)
        cap = int(caps[chosen])
        mechanism = "exponential mechanism, sensitivity 1"
        steps.append(Step("cap", ("everyone",), mechanism, cap_share * epsilon))
    elif k_max is not None:
        raise ValueError(f"k_max is for cap='private' only, not for cap={cap!r}")
    cap = check.integer("cap", cap, 1)

    count = sum_over_rows(np.minimum(users.k, cap), users.counts)
    ones = subsampled_ones(users, cap, source)
    sum_scale, count_scale, more = _sum_and_count(cap, left, count_share)
    noisy_sum = ones - count / 2.0 + laplace(sum_scale, rng=source)
    noisy_count = count + laplace(count_scale, rng=source)
    noisy_count = min(max(noisy_count, float(users.n)), float(users.n) * cap)
    ledger = Ledger(
        neighbours=ANY_SIZES,
        cohorts=(Cohort("everyone", users.n, "no selection"),),
        steps=(*steps, *more),
        notes=(f"each user contributed at most {cap} samples",),
    )
    inside = Trace(
        noiseless=ones / count,
        noise_scale=sum_scale / count,
        cap=cap,
        ones=ones,
        count=count,
        sum_scale=sum_scale,
        count_scale=count_scale,
    )
    value = 0.5 + noisy_sum / noisy_count
    return Estimate(value, ledger, inside if trace else None)


def cap_utilities(groups: SizeGroups, caps: Integers, epsilon: float) -> Floats:
    """Return minus the distance of each cap from where more would not pay.

    With M contributed samples of users who are all alike, at p = 1/2, the variance
    is 1/(4M) + 2 (cap/(epsilon M))^2.  Raising the cap by 1 adds one sample of each
    user who holds more than that, and it pays while they are more than about
    16 cap/epsilon^2.  The utility is minus the distance between the two numbers.

    Privacy: one user changes every number of users by at most 1, whatever her size,
    so the sensitivity is 1.
    """
    up_to = np.concatenate(([0], np.cumsum(groups.counts)))
    holders = up_to[-1] - up_to[np.searchsorted(groups.k, caps, side="right")]
    return np.asarray(-np.abs(holders - 16.0 * caps / epsilon**2))


def _sum_and_count(
    cap: int, epsilon: float, count_share: float | None
) -> tuple[float, float, tuple[Step, ...]]:
    """Return the noise scales of the centred sum and of the count, and the steps."""
    if count_share is None:
        step = Step(
            "sum and count",
            ("everyone",),
            f"Laplace, sensitivity {cap} of the centred sum and half the count",
            epsilon,
        )
        # Users with one sample each make the count n, which is public.
        return cap / epsilon, (2.0 * cap / epsilon if cap > 1 else 0.0), (step,)
    for_count = count_share * epsilon
    for_sum = epsilon - for_count
    steps = (
        Step("sum", ("everyone",), f"Laplace, sensitivity {cap}", for_sum),
        Step("count", ("everyone",), f"Laplace, sensitivity {cap - 1}", for_count),
    )
    return cap / for_sum, (cap - 1) / for_count, steps


def _allowed_caps(k_max: int | None) -> Integers:
    """Return the powers of two below k_max, and k_max."""
    if k_max is None:
        raise TypeError(
            "k_max is needed with cap='private': the largest cap allowed, chosen "
            "without looking at the data; users may hold more"
        )
    k_max = check.integer("k_max", k_max, 1)
    powers = [1 << power for power in range((k_max - 1).bit_length())]
    return np.array([*powers, k_max], dtype=np.int64)


def _laplace_mean(
    noiseless: float,
    sensitivity: float,
    epsilon: float,
    source: np.random.Generator,
    trace: bool,
    neighbours: str,
    division: tuple[Cohort, ...],
    **inside: Any,
) -> Estimate:
    """Return noiseless + Laplace(sensitivity/epsilon), on users of the first cohort."""
    scale = sensitivity / epsilon
    mechanism = f"Laplace, sensitivity {sensitivity:.6g}"
    step = Step("mean", (division[0].name,), mechanism, epsilon)
    ledger = Ledger(neighbours, division, (step,))
    parts = Trace(
        noiseless=noiseless, noise_scale=scale, sensitivity=sensitivity, **inside
    )
    value = noiseless + laplace(scale, rng=source)
    return Estimate(value, ledger, parts if trace else None)


def _checked(
    users: Any, epsilon: Any, rng: Any
) -> tuple[Users, float, np.random.Generator]:
    users = check_users(users)
    return users, check.positive("epsilon", epsilon), simulated(rng)
