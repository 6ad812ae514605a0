"""The plain mean: every user counts the same, whatever her size.

It asks for nothing first and clips nobody, so it can be trusted where other methods
must assume: it is unbiased for the mean over users, also where rates depend on sizes.
It pays for that with the noise of users with little data, who count as much as others.

Privacy: a user's mean stays in [0, 1] whatever its size, so that the mean of n means
moves by at most 1/n when she is replaced, with her size or without.  n is public.

Chapter: A realizable estimator.
"""

from __future__ import annotations

import numpy as np

from hetlit.estimators.result import Estimate, Trace
from hetlit.estimators.uncertainty import of_plain_mean
from hetlit.privacy.account import Account
from hetlit.privacy.ledger import everyone
from hetlit.privacy.noise import NoiseSource
from hetlit.users.groups import blocks
from hetlit.users.table import Users


def plain_mean(
    users: Users,
    epsilon: float,
    neighbours: str,
    source: NoiseSource,
    trace: bool,
    *notes: str,
) -> Estimate:
    """Return the mean of user means with Laplace noise, for these neighbours."""
    n = users.n
    total = sum(
        float(np.dot(users.successes[rows] / users.k[rows], users.counts[rows]))
        for rows in blocks(users)
    )
    account = Account(epsilon, neighbours, everyone(n), source)
    value = account.laplace("mean", total / n, 1.0 / n, epsilon)
    # It aims at the mean over users whatever rates have to do with sizes, which may be
    # private and play no part.
    sure = of_plain_mean(value, n, account.scale, dependence=0.0)
    inside = None
    if trace:
        inside = Trace(
            noiseless=total / n,
            noise_scale=account.scale,
            sensitivity=1.0 / n,
            weights=np.full(len(users.k), 1.0 / n),
            path="plain",
        )
    return Estimate(value, account.ledger(*notes), inside, sure)
