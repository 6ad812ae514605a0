"""Realizable estimators for public sizes.

Everybody knows how many samples each user holds; what they say is private.

Paper: Section 4.2.  Chapter: A realizable estimator.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hetlit import check
from hetlit.estimators.public_size.auto import estimate_adaptive
from hetlit.estimators.public_size.cohorts import estimate_cohorts
from hetlit.estimators.public_size.paper import estimate_paper
from hetlit.estimators.public_size.plain import estimate_plain
from hetlit.estimators.result import Estimate
from hetlit.privacy.noise import Randomness
from hetlit.users.table import Users


def estimate_public_size(
    users: Users,
    epsilon: float,
    *,
    method: str = "auto",
    rng: Randomness = None,
    trace: bool = False,
    **options: Any,
) -> Estimate:
    """Return a private estimate of the population mean, for public sizes.

    Parameters
    ----------
    users : Users
    epsilon : the total user-level privacy budget of the release, in [1e-12, 1e12]
    method :
        "auto", the one to use: `hetlit.estimators.public_size.auto.estimate_adaptive`;
        "cohorts", Algorithm 2 with choices that work: `estimate_cohorts`;
        "paper", Algorithm 2 with the paper's constants: `estimate_paper`;
        "plain", the mean of user means, which assumes nothing: `estimate_plain`
    rng : simulated noise; see `hetlit.privacy.noise`
    trace : also return what happened inside, not for release
    options : keywords of the method

    Privacy: `epsilon` in total, delta 0; neighbours replace one user's samples;
    n and sizes are public.

    Paper: Algorithm `alg.dp`.  Chapter: A realizable estimator.

    >>> import numpy as np
    >>> from hetlit import Beta, sample_users, sizes
    >>> rng = np.random.default_rng(0)
    >>> k = sizes.zipf(10_000, exponent=1.5, k_max=2000, rng=rng)
    >>> users = sample_users(Beta(0.3, 0.0004), k, rng)
    >>> estimate = estimate_public_size(users, epsilon=1.0, rng=rng)
    >>> abs(estimate.value - 0.3) < 0.02, round(estimate.ledger.epsilon, 9)
    (True, 1.0)
    """
    methods: dict[str, Callable[..., Estimate]] = {
        "auto": estimate_adaptive,
        "cohorts": estimate_cohorts,
        "paper": estimate_paper,
        "plain": estimate_plain,
    }
    chosen = methods[check.one_of("method", method, tuple(methods))]
    return chosen(users, epsilon, rng=rng, trace=trace, **options)
