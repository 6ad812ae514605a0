"""Simulated mean squared errors, against the ideal and the plain mean.

Every figure is a mean squared error (MSE) divided by one of two references:

- ideal: the variance of the private estimator that knows p and var_p, uses optimal
  weights and clips at sd(k) sqrt(2 log(2n/0.05)) within [0, 1]; sizes are public;
- plain: the MSE of the mean of all user means with Laplace noise of scale
  1/(n epsilon), which needs no sizes and no first guesses.

How the MSE is simulated.  Each run draws new users and new noise.  The last noise
is not drawn but averaged over, (noiseless - p)^2 + 2 scale^2, where the estimator's
trace has both.  Two control variates with known means, the squared errors of the
plain mean and of the ideal weighted mean on the same users, take out most of the
luck of the draw.  The errors given are standard errors of what remains.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from multiprocessing import Pool

import numpy as np

from hetlit import (
    Beta,
    Constant,
    Estimate,
    TwoPoint,
    Users,
    optimal_weights,
    sizes,
    user_variance,
)
from hetlit.check import Floats, Integers
from hetlit.theory.populations import MetaDistribution

EPSILONS = (0.3, 1.0, 3.0)
RUNS = {1_000: 400, 10_000: 200, 100_000: 30}
SIDE_RUNS = 40  # for the estimators shown beside the default
K_MAX = 2000  # where sizes are private

PROFILES: dict[str, Callable[[int, np.random.Generator], Integers]] = {
    "equal, 10 each": lambda n, rng: sizes.equal(n, 10),
    "harmonic, n/i": lambda n, rng: sizes.harmonic(n),
    "two levels, sqrt(n) users with 1000": lambda n, rng: sizes.two_level(
        n, math.isqrt(n), 1000
    ),
    "geometric, mean 50": lambda n, rng: sizes.geometric(n, 50.0, rng),
    "zipf 1.5 up to 2000": lambda n, rng: sizes.zipf(n, 1.5, 2000, rng),
    "lognormal, median 3, sigma 1.5": lambda n, rng: sizes.lognormal(
        n, 3.0, 1.5, 2000, rng
    ),
}
POPULATIONS: dict[str, MetaDistribution] = {
    "constant .3": Constant(0.3),
    "beta .3, sd .02": Beta(0.3, 0.02**2),
    "beta .3, sd .1": Beta(0.3, 0.1**2),
    "95% at .1, 5% at .9": TwoPoint(0.1, 0.9, 0.05),
}
HEAVY = "95% at .1, 5% at .9"

Estimator = Callable[[Users, float, np.random.Generator], Estimate]
ESTIMATORS: dict[str, Estimator] = {}


@dataclass(frozen=True)
class Cell:
    """One setting of the grid, and the name of an estimator."""

    n: int
    profile: str
    population: str
    epsilon: float
    method: str
    runs: int
    k_max: int | None = None


@dataclass(frozen=True)
class Result:
    """The simulated MSE of a cell over its two references, with relative error."""

    over_ideal: float
    over_plain: float
    error: float


def measure(cell: Cell) -> Result:
    """Simulate one cell; the seed is a function of the cell."""
    words = [cell.n, int(cell.epsilon * 1000)]
    words += [ord(c) for c in cell.profile + cell.population + cell.method]
    rng = np.random.default_rng(words)
    # The same sizes for every population and epsilon of a profile.
    k = PROFILES[cell.profile](cell.n, np.random.default_rng(cell.n))
    k = k if cell.k_max is None else np.minimum(k, cell.k_max)
    meta = POPULATIONS[cell.population]
    p = meta.mean
    variances = user_variance(k, p, meta.variance)
    weights, ideal = ideal_weights(k, variances, p, cell.epsilon)
    uniform = np.full(cell.n, 1.0 / cell.n)
    plain = float(np.mean(variances)) / cell.n + 2.0 / (cell.n * cell.epsilon) ** 2

    errors = np.empty(cell.runs)
    controls = np.empty((cell.runs, 2))
    expected = [float(np.sum(w**2 * variances)) for w in (weights, uniform)]
    for run in range(cell.runs):
        users = Users(k, rng.binomial(k, meta.sample(cell.n, rng)))
        estimate = ESTIMATORS[cell.method](users, cell.epsilon, rng)
        errors[run] = expected_square(estimate, p)
        deviations = users.means - p
        controls[run] = [np.sum(w * deviations) ** 2 for w in (weights, uniform)]
    controls -= expected
    slopes = np.linalg.lstsq(
        controls - controls.mean(axis=0), errors - errors.mean(), rcond=None
    )[0]
    remaining = errors - controls @ slopes
    mse = float(remaining.mean())
    relative_error = float(remaining.std(ddof=3)) / math.sqrt(cell.runs) / mse
    return Result(mse / ideal, mse / plain, relative_error)


def expected_square(estimate: Estimate, p: float) -> float:
    """Return the squared error, averaged over the last noise where that is known.

    A value that is moved into an interval around an anchor loses what lies beyond:
    (x - p)^2 - (end - p)^2 = (x - end)^2 + 2 (x - end)(end - p) above its upper end.
    """
    inside = vars(estimate.trace)
    if "noise_scale" not in inside:
        return (estimate.value - p) ** 2
    noiseless, scale = inside["noiseless"], inside["noise_scale"]
    square = (noiseless - p) ** 2 + 2.0 * scale**2
    if "radius" in inside:
        anchor, radius = inside["anchor"].value, inside["radius"]
        for sign in (1.0, -1.0):
            end = sign * (anchor + sign * radius)
            mean, second = _beyond(end - sign * noiseless, scale)
            square -= second + 2.0 * mean * (end - sign * p)
    return float(square)


def _beyond(distance: float, scale: float) -> tuple[float, float]:
    """Return E (L - distance)_+ and E (L - distance)_+^2 for Laplace noise L."""
    tail = math.exp(-abs(distance) / scale)
    if distance >= 0.0:
        return 0.5 * scale * tail, scale**2 * tail
    return 0.5 * scale * tail - distance, distance**2 + scale**2 * (2.0 - tail)


def ideal_weights(
    k: Integers, variances: Floats, p: float, epsilon: float
) -> tuple[Floats, float]:
    """Return (weights, variance) of the ideal private estimator."""
    half_widths = np.sqrt(variances * 2.0 * math.log(2.0 * len(k) / 0.05))
    widths = np.minimum(1.0, p + half_widths) - np.maximum(0.0, p - half_widths)
    return optimal_weights(variances, widths, epsilon)


def measured(cells: Iterable[Cell]) -> dict[Cell, Result]:
    """Return the results of all cells, two at a time."""
    listed = list(cells)
    with Pool(2) as pool:
        return dict(zip(listed, pool.map(measure, listed, chunksize=1), strict=True))


def geometric_mean(values: Iterable[float]) -> float:
    """Return the geometric mean."""
    return math.exp(np.mean([math.log(value) for value in values]))


def grid(sizes_of_n: Iterable[int] = RUNS) -> list[tuple[int, str, str, float]]:
    """Return all settings, those that take longest first."""
    return [
        (n, profile, population, epsilon)
        for n in sorted(sizes_of_n, reverse=True)
        for profile in PROFILES
        for population in POPULATIONS
        for epsilon in EPSILONS
    ]


def table(results: dict[Cell, Result], n: int, method: str) -> list[str]:
    """Return the results of one n, as lines of Markdown."""
    head = " | ".join(f"epsilon {epsilon:g}" for epsilon in EPSILONS)
    lines = [f"| sizes | rates | {head} |", "|---|---|" + "---|" * len(EPSILONS)]
    by_setting = {
        (c.profile, c.population, c.epsilon): r
        for c, r in results.items()
        if c.n == n and c.method == method
    }
    for profile in PROFILES:
        for population in POPULATIONS:
            entries = []
            for epsilon in EPSILONS:
                r = by_setting[profile, population, epsilon]
                entries.append(
                    f"{r.over_ideal:.2f} ± {r.error * r.over_ideal:.2f}, "
                    f"{r.over_plain:.2f} ± {r.error * r.over_plain:.2f}"
                )
            lines.append(f"| {profile} | {population} | " + " | ".join(entries) + " |")
    return lines


def summary(results: dict[Cell, Result], method: str) -> list[str]:
    """Return the geometric means and the worst cases, as lines of Markdown."""
    lines = [
        "| n | geometric mean over ideal | largest over plain | "
        "largest over plain, heavy tails |",
        "|---|---|---|---|",
    ]
    for n in RUNS:
        mine = {c: r for c, r in results.items() if c.n == n and c.method == method}
        light = [r for c, r in mine.items() if c.population != HEAVY]
        heavy = [r for c, r in mine.items() if c.population == HEAVY]
        worst = max(light, key=lambda r: r.over_plain)
        heaviest = max(heavy, key=lambda r: r.over_plain)
        error = math.sqrt(sum(r.error**2 for r in light)) / len(light)
        mean = geometric_mean(r.over_ideal for r in light)
        lines.append(
            f"| {n} | {mean:.3f} ± {error * mean:.3f} | "
            f"{worst.over_plain:.2f} ± {worst.error * worst.over_plain:.2f} | "
            f"{heaviest.over_plain:.2f} ± {heaviest.error * heaviest.over_plain:.2f} |"
        )
    return lines


def comparison(results: dict[Cell, Result], methods: Iterable[str]) -> list[str]:
    """Return the geometric means of several methods at n = 10,000, light tails."""
    lines = ["| method | over ideal | over plain |", "|---|---|---|"]
    for method in methods:
        chosen = [
            r
            for c, r in results.items()
            if c.n == 10_000 and c.method == method and c.population != HEAVY
        ]
        ideal = geometric_mean(r.over_ideal for r in chosen)
        plain = geometric_mean(r.over_plain for r in chosen)
        lines.append(f"| {method} | {ideal:.2f} | {plain:.2f} |")
    return lines


def side_by_side(default: str, others: Iterable[str], k_max: int | None) -> list[Cell]:
    """Return the cells of the default everywhere and of others at n = 10,000."""
    cells = [Cell(*point, default, RUNS[point[0]], k_max) for point in grid()]
    return cells + [
        Cell(*point, method, SIDE_RUNS, k_max)
        for point in grid([10_000])
        if point[2] != HEAVY
        for method in others
    ]


def report(
    title: str, results: dict[Cell, Result], default: str, others: list[str]
) -> str:
    """Return everything that was measured, as Markdown."""
    assert __doc__ is not None
    lines = [f"# {title}", "", *__doc__.strip().splitlines()[2:], ""]
    lines += [f"## Summary of the default, {default}", "", *summary(results, default)]
    lines += ["", "## Side by side, n = 10,000, light tails, geometric means", ""]
    lines += [*comparison(results, [default, *others]), ""]
    for n in RUNS:
        lines += [f"## {default}, n = {n:,}: MSE over ideal, MSE over plain", ""]
        lines += [*table(results, n, default), ""]
    return "\n".join(lines)
