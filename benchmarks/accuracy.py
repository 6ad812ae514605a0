"""Accuracy at equal total epsilon when sizes are public; see `simulation`."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import numpy as np

from hetlit import Estimate, Users, estimate_public_size

from .simulation import ESTIMATORS, measured, report, side_by_side

RESULTS = Path(__file__).with_name("accuracy.md")


def public(
    method: str, users: Users, epsilon: float, rng: np.random.Generator
) -> Estimate:
    """Return the estimate for public sizes, with its trace."""
    return estimate_public_size(users, epsilon, method=method, rng=rng, trace=True)


ESTIMATORS.update({m: partial(public, m) for m in ("auto", "cohorts", "paper")})


def main() -> None:
    """Measure everything and write accuracy.md."""
    others = ["cohorts", "paper"]
    results = measured(side_by_side("auto", others, None))
    text = report("Accuracy at equal total epsilon", results, "auto", others)
    RESULTS.write_text(text)
    print(text[: text.index("## auto")])
