"""Simulated users: rates from a population, samples from the rates.

A meta-distribution on [0, 1] with mean p and variance var_p gives every user her
own rate p_i.  User i then holds k_i independent zeros and ones with rate p_i.

Chapter: The model.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from hetlit import check
from hetlit.theory.populations import MetaDistribution
from hetlit.users.table import Users


def sample_users(meta: MetaDistribution, k: Any, rng: np.random.Generator) -> Users:
    """Return users with sizes `k`, their rates drawn from `meta`.

    >>> from hetlit import Constant
    >>> sample_users(Constant(0.5), [3, 2], np.random.default_rng(0)).n
    2
    """
    sizes = check.integers("k", k, 1)
    rng = check.generator("rng", rng)
    if isinstance(meta, type) or not hasattr(meta, "sample"):
        raise TypeError(
            f"meta must be a meta-distribution, not of type {type(meta).__name__}"
        )
    rates = meta.sample(len(sizes), rng)
    return Users(sizes, rng.binomial(sizes, rates))
