"""Contribution bounding: everybody gives at most `cap` of her samples.

Which of them she gives is drawn at random, independently of their values.  Every
sensitivity below holds for each outcome of these draws, so they cost no privacy.

Paper: Section 1.1.  Chapter: A realizable estimator.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from hetlit import check
from hetlit.check import MOST_SIZES, Floats, Integers
from hetlit.estimators.baselines.simple import ANY_SIZES, checked
from hetlit.estimators.result import Estimate, Trace
from hetlit.estimators.uncertainty import ROOT_TWO, Uncertainty, guessed_q, within
from hetlit.privacy.account import Account
from hetlit.privacy.ledger import everyone
from hetlit.privacy.noise import Randomness
from hetlit.users.draws import subsampled_ones, sum_over_rows
from hetlit.users.groups import Sizes, by_size
from hetlit.users.table import Users

CAP_SHARE = 0.1  # of epsilon, for a private cap


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
    rng : simulated noise and draws; see `hetlit.privacy.noise`
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
    users, epsilon, source = checked(users, epsilon, rng, trace)
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
    known = known_error(value, users.n, cap, noisy_count, scales)
    return Estimate(value, ledger, inside if trace else None, known)


def known_error(
    value: float, n: int, cap: int, count: float, scales: tuple[float, float]
) -> Uncertainty:
    """Return the uncertainty of 1/2 + sum/count, from what was released.

    scales : of the noise in the sum and in the count

    A user who gave m samples has the weight m/M, and her mean varies by at most p(1-p).
    (m - 1)(m - cap) <= 0, so that sum m^2 <= (cap + 1) M - cap n: a bound on the
    variance that needs nobody's size.  It is largest at M = 2 cap n/(cap + 1), or as
    near to that as noise lets M be.  The value is moved by the noise of the sum, less
    (p - 1/2) times that of the count, over the noisy count.
    """
    value = within(value)
    noise = math.hypot(scales[0], (value - 0.5) * scales[1]) / count
    worst, off = 2.0 * cap * n / (cap + 1.0), ROOT_TWO * scales[1]
    total = max(min(max(worst, count - off), count + off), float(n))
    squares = ((cap + 1.0) * total - cap * float(n)) / total**2
    error = math.hypot(ROOT_TWO * noise, math.sqrt(squares) / 2.0)
    return Uncertainty(
        noise=noise, sampling=math.sqrt(squares * guessed_q(value, error))
    )


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
