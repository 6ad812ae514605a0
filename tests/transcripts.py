"""Exact privacy of whole runs: pin every Laplace release and compare likelihoods.

The noise of a pinned run is whatever takes each noisy sum to a given number, so the
run's log-likelihood is a sum of Laplace log-densities.  Its difference between two
neighbouring tables is the exact privacy loss of that transcript.
"""

import math
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest


class Pinned(float):
    """Noise that takes the sum it is added to wherever it was told to go."""

    transcript: "Transcript"
    target: float
    scale: float

    def __radd__(self, statistic: float) -> float:
        distance = abs(self.target - statistic)
        self.transcript.log_likelihood -= distance / self.scale
        self.transcript.log_likelihood -= math.log(2 * self.scale)
        return self.target


class Transcript:
    """The numbers a run is made to release, in order, and how likely that was."""

    def __init__(self, releases: Any) -> None:
        self.left = list(releases)
        self.log_likelihood = 0.0

    def laplace(self, scale: float, *, rng: Any = None) -> float:
        """Stand in for `hetlit.noise.laplace`."""
        target = self.left.pop(0)
        if scale == 0:  # the statistic is public
            return 0.0
        noise = Pinned(0.0)
        noise.transcript, noise.target, noise.scale = self, target, scale
        return noise

    def chose(self, law: Any, outcome: int) -> None:
        """Add a choice with this law."""
        self.log_likelihood += math.log(law[outcome % len(law)])


@contextmanager
def pinned(releases: Any, *modules: str) -> Iterator[Transcript]:
    """Make Laplace noise in these modules of hetlit lead to `releases`, all of them."""
    transcript = Transcript(releases)
    with pytest.MonkeyPatch.context() as patch:
        for module in modules:
            patch.setattr(f"hetlit.{module}.laplace", transcript.laplace)
        yield transcript
    assert not transcript.left
