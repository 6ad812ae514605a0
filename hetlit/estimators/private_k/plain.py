"""The plain mean of all users, for private sizes: see `hetlit.estimators.plain`.

Chapter: Private k.
"""

from __future__ import annotations

from hetlit import check
from hetlit.estimators.plain import plain_mean
from hetlit.estimators.private_k.bound import check_bound
from hetlit.estimators.result import Estimate
from hetlit.privacy.ledger import PRIVATE_SIZES
from hetlit.privacy.noise import Randomness, source_of
from hetlit.users.table import Users, check_users


def estimate_plain_k(
    users: Users,
    epsilon: float,
    *,
    k_max: int,
    rng: Randomness = None,
    trace: bool = False,
) -> Estimate:
    """Return the mean of the users' means, with Laplace noise of scale 1/(n epsilon).

    Parameters
    ----------
    users : Users, none with more than k_max samples
    epsilon : the total user-level privacy budget of the release, in [1e-12, 1e12]
    k_max : a public bound on sizes, from 1 to 10^7; it is checked, as everywhere for
        private sizes, although this mean would be as private without it
    rng : simulated noise; see `hetlit.privacy.noise`
    trace : also return what happened inside, not for release

    Privacy: `epsilon` in total, delta 0; neighbours replace one user, her size
    included; see `hetlit.estimators.plain`.

    >>> import numpy as np
    >>> users = Users(k=[1, 100], successes=[1, 20], counts=[1000, 1000])
    >>> rng = np.random.default_rng(0)
    >>> estimate_plain_k(users, 1.0, k_max=100, rng=rng, trace=True).trace.noiseless
    0.6
    """
    users, epsilon = check_users(users), check.epsilon(epsilon)
    trace = check.flag("trace", trace)
    source = source_of(rng)
    check_bound(users, k_max)
    return plain_mean(users, epsilon, PRIVATE_SIZES, source, trace)
