"""Exact privacy of whole runs: force every answer and compare likelihoods.

A transcript is a source of noise that gives the answers it was told to give, and adds
up how likely they were.  Its difference between two neighbouring tables is the exact
privacy loss of that transcript.
"""

import math
from collections.abc import Iterable
from typing import Any

import numpy as np

from hetlit.check import Floats
from hetlit.privacy.noise import choice_law


class Transcript:
    """Noise that takes each statistic to a given number, in order.

    answers : numbers for Laplace releases; for choices, indices, taken modulo the
        number of outcomes
    chance : what draws cohorts and samples
    """

    def __init__(self, answers: Iterable[Any], chance: Any = None) -> None:
        self.left = list(answers)
        self.log_likelihood = 0.0
        self.chance = np.random.default_rng(0) if chance is None else chance

    def laplace(self, statistic: float, scale: float) -> float:
        """Return the next answer; its density is exp(-|answer - statistic|/scale)."""
        answer = float(self.left.pop(0))
        self.log_likelihood -= abs(answer - statistic) / scale
        self.log_likelihood -= math.log(2 * scale)
        return answer

    def laplaces(self, statistics: Floats, scale: float) -> Floats:
        """Return the next answers, one for each statistic."""
        return np.array([self.laplace(statistic, scale) for statistic in statistics])

    def choose(self, utilities: Floats, epsilon: float, sensitivity: float) -> int:
        """Return the next answer, an outcome, with its probability."""
        outcome = int(self.left.pop(0)) % len(utilities)
        law = choice_law(utilities, epsilon, sensitivity)
        self.log_likelihood += math.log(law[outcome])
        return outcome
