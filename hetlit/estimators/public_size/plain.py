"""The plain mean of all users, for public sizes: see `hetlit.estimators.plain`.

Chapter: A realizable estimator.
"""

from __future__ import annotations

from hetlit import check
from hetlit.estimators.plain import plain_mean
from hetlit.estimators.result import Estimate
from hetlit.privacy.ledger import PUBLIC_SIZES
from hetlit.privacy.noise import Randomness, source_of
from hetlit.users.table import Users, check_users


def estimate_plain(
    users: Users,
    epsilon: float,
    *,
    rng: Randomness = None,
    trace: bool = False,
) -> Estimate:
    """Return the mean of the users' means, with Laplace noise of scale 1/(n epsilon).

    Parameters
    ----------
    users : Users
    epsilon : the total user-level privacy budget of the release, in [1e-12, 1e12]
    rng : simulated noise; see `hetlit.privacy.noise`
    trace : also return what happened inside, not for release

    Privacy: `epsilon` in total, delta 0; neighbours replace one user's samples; see
    `hetlit.estimators.plain`.

    >>> import numpy as np
    >>> users = Users(k=[1, 100], successes=[1, 20], counts=[1000, 1000])
    >>> rng = np.random.default_rng(0)
    >>> estimate_plain(users, 1.0, rng=rng, trace=True).trace.noiseless
    0.6
    """
    users, epsilon = check_users(users), check.epsilon(epsilon)
    trace = check.flag("trace", trace)
    return plain_mean(users, epsilon, PUBLIC_SIZES, source_of(rng), trace)
