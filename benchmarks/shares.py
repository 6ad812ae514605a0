"""How `ratio` and `ptr` should divide their budget; see `simulation`.

Each line is one choice, the default first: the average of its MSE over that of the
plain mean, over six size profiles, three populations, n = 1000 and 10,000 and
epsilon = 0.3, 1 and 3, with k_max = 2000 and delta = 1e-6.  Shares are those of the
cap, the total weight and the total offset; for `ptr` of the cap, the total weight,
the test and the release.  The defaults were chosen with such tables.
"""

from __future__ import annotations

import math
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from hetlit import Estimate, Users, estimate_private_k
from hetlit.estimators.private_k import ptr, ratio

from .simulation import (
    ESTIMATORS,
    HEAVY,
    K_MAX,
    Cell,
    Result,
    grid,
    measured,
)

RESULTS = Path(__file__).with_name("shares.md")
RUNS = 24

RATIO_SHARES = [
    ratio.SHARES,
    (0.05, 0.05, 0.9),
    (0.05, 0.1, 0.85),
    (0.1, 0.1, 0.8),
    (0.15, 0.05, 0.8),
    (0.2, 0.1, 0.7),
    (1 / 3, 1 / 3, 1 / 3),
]
PTR_SHARES = [
    ptr.SHARES,
    (0.05, 0.1, 0.15, 0.7),
    (0.1, 0.1, 0.2, 0.6),
    (0.1, 0.05, 0.15, 0.7),
    (0.15, 0.1, 0.15, 0.6),
    (0.1, 0.2, 0.2, 0.5),
    (0.25, 0.25, 0.25, 0.25),
]
# Users of the spread cohort who should reach the cap, in units of log(n)/epsilon.
MULTIPLES = [10, 3, 6, 15, 30]


def release(
    users: Users,
    epsilon: float,
    rng: np.random.Generator,
    *,
    multiple: float | None = None,
    **options: Any,
) -> Estimate:
    """Return one estimate, with its trace."""
    if multiple is not None:
        wanted = math.ceil(multiple * math.log(users.n) / epsilon)
        options["spread_users"] = max(2, wanted)
    return estimate_private_k(
        users, epsilon, k_max=K_MAX, rng=rng, trace=True, **options
    )


def main() -> None:
    """Measure everything and write shares.md."""
    tables = {
        "`ratio`, shares": {
            _name(shares): partial(release, method="ratio", shares=shares)
            for shares in RATIO_SHARES
        },
        "`ratio`, spread_users over log(n)/epsilon": {
            f"{multiple}": partial(release, method="ratio", multiple=multiple)
            for multiple in MULTIPLES
        },
        "`ptr`, shares": {
            _name(shares): partial(release, method="ptr", delta=1e-6, shares=shares)
            for shares in PTR_SHARES
        },
    }
    points = [point for point in grid([1_000, 10_000]) if point[2] != HEAVY]
    assert __doc__ is not None
    lines = ["# Shares of the budget", "", *__doc__.strip().splitlines()[2:]]
    for title, choices in tables.items():
        ESTIMATORS.update({f"{title} {name}": run for name, run in choices.items()})
        results = measured(
            Cell(*point, f"{title} {name}", RUNS, K_MAX)
            for point in points
            for name in choices
        )
        lines += ["", f"## {title}", "", "| choice | over plain |", "|---|---|"]
        for name in choices:
            method = f"{title} {name}"
            mine = [r for cell, r in results.items() if cell.method == method]
            lines.append(_line(name, mine))
    RESULTS.write_text("\n".join([*lines, ""]))
    print("\n".join(lines))


def _name(shares: tuple[float, ...]) -> str:
    return ", ".join(f"{share:.3g}" for share in shares)


def _line(name: str, results: list[Result]) -> str:
    values = np.array([result.over_plain for result in results])
    errors = values * [result.error for result in results]
    error = math.sqrt(float(np.sum(errors**2))) / len(values)
    return f"| {name} | {values.mean():.3f} ± {error:.3f} |"
