"""Private sizes: how much data a user holds is her secret too.

Paper: Section 4.4.  Chapter: Private k.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hetlit import check
from hetlit.estimators.private_k.auto import estimate_histogram_ratio
from hetlit.estimators.private_k.paper import estimate_published_k
from hetlit.estimators.private_k.plain import estimate_plain_k
from hetlit.estimators.private_k.ptr import estimate_ptr
from hetlit.estimators.private_k.ratio import estimate_ratio
from hetlit.estimators.result import Estimate
from hetlit.privacy.noise import Randomness
from hetlit.users.table import Users


def estimate_private_k(
    users: Users,
    epsilon: float,
    *,
    k_max: int | None = None,
    method: str = "auto",
    delta: float = 0.0,
    rng: Randomness = None,
    trace: bool = False,
    **options: Any,
) -> Estimate:
    """Return a private estimate of the population mean, for private sizes.

    Parameters
    ----------
    users : Users, none with more than k_max samples
    epsilon : the total user-level privacy budget of the release, in [1e-12, 1e12]
    k_max : a public bound on sizes, from 1 to 10^7, chosen without looking at them;
        `users.capped(k_max, rng)` cuts users to it
    method :
        "auto", the one to use:
        `hetlit.estimators.private_k.auto.estimate_histogram_ratio`;
        "ratio", static cohorts and a noisy ratio: `estimate_ratio`;
        "ptr", static cohorts and propose-test-release:
        `hetlit.estimators.private_k.ptr.estimate_ptr`;
        "paper", Algorithm 3 as published:
        `hetlit.estimators.private_k.paper.estimate_published_k`, where epsilon and
        delta are the budget of each mechanism, not the total;
        "plain", the mean of user means, which assumes nothing: `estimate_plain_k`
    delta : at most 1/2; "ptr" and "paper" need it above 0, the others spend none
    rng : simulated noise; see `hetlit.privacy.noise`
    trace : also return what happened inside, not for release
    options : keywords of the method

    Privacy: `epsilon` and, for "ptr", `delta` in total; neighbours replace one user,
    her size included; n and k_max are public.  For "paper" see its ledger.

    Paper: Algorithm `alg.dpk`.  Chapter: Private k.

    >>> import numpy as np
    >>> from hetlit import Beta, sample_users, sizes
    >>> rng = np.random.default_rng(0)
    >>> k = sizes.zipf(10_000, exponent=1.5, k_max=2000, rng=rng)
    >>> users = sample_users(Beta(0.3, 0.0004), k, rng)
    >>> estimate = estimate_private_k(users, 1.0, k_max=2000, method="ratio", rng=rng)
    >>> abs(estimate.value - 0.3) < 0.02, round(estimate.ledger.epsilon, 9)
    (True, 1.0)
    """
    methods: dict[str, Callable[..., Estimate]] = {
        "auto": estimate_histogram_ratio,
        "ratio": estimate_ratio,
        "ptr": estimate_ptr,
        "paper": estimate_published_k,
        "plain": estimate_plain_k,
    }
    chosen = methods[check.one_of("method", method, tuple(methods))]
    delta = check.between("delta", delta, 0.0, 0.5)
    if chosen in (estimate_ptr, estimate_published_k):
        options["delta"] = delta
    return chosen(users, epsilon, k_max=k_max, rng=rng, trace=trace, **options)
