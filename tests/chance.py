"""Comparisons of samples with their laws, for tests of what is random.

Statistical tests have fixed seeds.  For a random seed, a true `close` fails with a
chance of about 1e-10 (6.5 standard errors, normal; below 1e-9 where the sample is small
and skewed) and a true `plausible_count` with at most 2e-10 (exact binomial tails).
The tests that use them have fewer than 400 comparisons of each kind: together below
5e-7.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from scipy import stats

RNG = np.random.default_rng(0)  # for calls that are refused before they draw


def close(sample: Any, expected: float) -> bool:
    """Is the mean of the sample within 6.5 standard errors of what is expected?"""
    error = np.std(sample) / math.sqrt(len(sample))
    return bool(abs(np.mean(sample) - expected) <= 6.5 * error + 1e-15)


def plausible_count(count: int, n: int, probability: float) -> bool:
    law = stats.binom(n, probability)
    return bool(min(law.cdf(count), law.sf(count - 1)) >= 1e-10)
