"""The variance of a user's mean, and of the mean of all users.

A user's mean is noisy twice: her coin tosses average out with more samples, her own
rate's distance from the population's does not.

Chapter: The model.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from hetlit import check
from hetlit.check import Floats


def user_variance(k: Any, p: float, var_p: float) -> Any:
    """Return the variance of the mean of a user with k samples.

    It is p(1-p)/k + (1 - 1/k) var_p: coin tosses that average out, and a spread
    between users that does not.

    Parameters
    ----------
    k : a number or an array of numbers of at least 1
    p : the population mean, in [0, 1]
    var_p : the variance of the users' rates, in [0, p(1-p)]

    Paper: Lemma `lem.sigi`.  Chapter: The model.

    >>> user_variance(np.array([1, 10, 1000]), p=0.3, var_p=0.02).round(5)
    array([0.21   , 0.039  , 0.02019])
    """
    p, var_p = check.mean_and_variance(p, var_p)
    sizes = check.sizes("k", k)
    variances = variance_of_mean(sizes, p * (1.0 - p), var_p)
    return float(variances) if variances.ndim == 0 else variances


def variance_of_mean(k: Floats, q: float, var_p: float) -> Floats:
    """Return var_p + (q - var_p)/k, the lemma with q standing for p(1-p).

    For estimators that put a floor under q; it falls with k while var_p <= q.
    """
    return np.asarray(var_p + (q - var_p) / k)


def plain_variance(
    k: Floats, counts: Any, q: float, var_p: float, n: int, epsilon: float
) -> float:
    """Return the variance of the mean of user means with its Laplace noise.

    For `counts` users of size `k` out of n: sampling error plus 2/(n epsilon)^2.
    """
    average = float(np.average(variance_of_mean(k, q, var_p), weights=counts))
    return average / n + 2.0 / (n * epsilon) ** 2
