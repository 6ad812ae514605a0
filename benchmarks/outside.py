"""The default estimators on sizes and rates that no constant was tuned on.

Three families of cells, inside the model and outside:

- light: rates with light tails, independent of sizes;
- minority: 1 to 5% of users have another rate, independent of sizes;
- dependent: a user's rate is a function of her size, and the truth is the mean of
  all users' rates.  This is outside the model.

Mean squared errors (MSE) are simulated as in `simulation`: averaged over the last
noise, with control variates.  What they are divided by is analytic:

- ideal: the private estimator that knows p and var_p, for public sizes;
- plain: the mean of all user means, on all of epsilon;
- best: the better of plain and the cautious weighted mean, which assumes a spread.

An anchor is a plain mean on a share of epsilon, here a tenth.  It "sees" a cell if its
sampling variance exceeds that of its noise.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
import time
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from multiprocessing import Pool
from pathlib import Path

import numpy as np
from scipy import stats

if "--library" in sys.argv:  # another copy of hetlit, found before this one
    sys.path.insert(0, sys.argv[sys.argv.index("--library") + 1])

import hetlit
from hetlit import (
    Beta,
    Constant,
    Estimate,
    TruncatedGaussian,
    Users,
    optimal_weights,
    sizes,
    user_variance,
)
from hetlit import estimate_private_k as private_k
from hetlit import estimate_public_size as public_size
from hetlit.check import Floats, Integers

from .simulation import expected_square, geometric_mean, ideal_weights

RESULTS = Path(__file__).with_name("outside.md")
ANCHOR_SHARE = 0.1
K_MAX = 2000
RUNS = {1_000: 300, 3_000: 300, 10_000: 200, 100_000: 40}
EPSILONS = (0.1, 0.3, 0.5, 1.0, 2.0, 4.0)
# Cells of each n for public sizes, and of the largest n for private ones.
FAMILIES = {"light": (12, 6), "minority": (12, 6), "dependent": (8, 4)}
# p(1-p) and the relative spread of the cautious mean that everything is compared with:
# those of version 0.1.0, whatever the library assumes today.
CAUTIOUS = (0.15, 1 / 24)
NOT_ASKED = ("plain", "plain again", "cautious")  # paths without a question of spread
NAN = math.nan
TUNED = """The command: `python -m benchmarks outside`, set "report".

What was tuned on what: the set "tuning", more cells drawn from its lists with other
rates of minorities (0.2 and 0.1 against 0.9, 0.5 against 1, 1.2% to 3%), and the grid
of `simulation` were looked at while constants were chosen.  The cells below share no
sizes, rates or seeds with them, and were first run when the estimators were frozen."""

STRESS = """The command:
`python -m benchmarks.outside --set stress --families minority`.

Sizes and minorities with which the defaults did worst while they were tuned, in new
combinations: what an unlucky choice of cells can show."""

# Kind and parameters: of sizes, then of rates.  light: law, mean, sd; minority: most
# users' rate and sd, the others' rate and share; dependent: what rates grow with, their
# base and slope.
SETS: dict[str, dict[str, str]] = {
    "tuning": {
        "sizes": "zipf 1.2 800, zipf 1.8 1500, lognormal 8 1, lognormal 2 2, "
        "geometric 15, geometric 120, two-level .01 400, two-level .03 150, "
        "two-level .1 600, uniform 40, pareto 1.3 2, bimodal .3 3 80",
        "light": "constant .15 0, constant .6 0, beta .4 .03, beta .08 .02, "
        "beta .25 .15, beta .7 .06, gaussian .5 .05, gaussian .2 .12",
        "minority": "most .2 0 .35 .03, most .2 0 .5 .02, most .1 .02 .8 .01, "
        "most .4 .03 .9 .05, most .7 0 .5 .04, most .3 .02 .05 .05, "
        "most .05 .01 .25 .02, most .5 .05 .95 .015",
        "dependent": "rank .3 .04, rank .3 -.08, rank .5 .1, rank .15 -.02, "
        "rank .6 .06, log .2 .1, log .4 -.15, log .1 .05",
    },
    "stress": {
        "sizes": "geometric 150, lognormal 8 1, two-level .1 300, two-level .03 300, "
        "geometric 40, bimodal .3 3 80, zipf 1.2 800, two-level .3 50",
        "light": "constant .15 0, beta .08 .02",
        "minority": "most .2 0 .9 .012, most .1 0 .9 .012, most .5 0 1 .02, "
        "most .3 0 .9 .03, most .02 0 .5 .01, most .1 .01 .3 .03, most .2 0 .5 .02",
        "dependent": "log .2 .1, rank .5 .1",
    },
    "report": {
        "sizes": "zipf 1.45 1200, zipf 1.95 600, lognormal 6 1.2, lognormal 3 .6, "
        "geometric 25, geometric 90, two-level .02 200, two-level .06 350, "
        "two-level .15 80, uniform 60, pareto 1.5 4, bimodal .2 2 120",
        "light": "constant .3 0, constant .1 0, beta .5 .02, beta .2 .05, "
        "beta .3 .2, beta .65 .08, gaussian .35 .1, gaussian .8 .04",
        "minority": "most .3 0 .45 .03, most .15 0 .7 .012, most .25 .02 .75 .03, "
        "most .55 .03 .1 .05, most .06 0 .2 .05, most .4 .02 .55 .04, "
        "most .2 .03 1 .01, most .9 0 .6 .02",
        "dependent": "rank .35 .06, rank .5 -.1, rank .45 .02, rank .25 -.04, "
        "rank .8 .09, log .25 .1, log .12 .04, log .6 -.12",
    },
}


def parsed(text: str) -> tuple[str, list[float]]:
    """Return the kind and the parameters."""
    kind, *numbers = text.split()
    return kind, [float(number) for number in numbers]


@dataclass(frozen=True)
class Cell:
    """One setting; its line is its seed."""

    chosen: str  # the set
    family: str
    n: int
    profile: str
    population: str
    epsilon: float
    private: bool
    runs: int

    @property
    def line(self) -> str:
        """The cell in one line, without the number of runs."""
        known = "private" if self.private else "public"
        where = f"{self.profile}; {self.population}; epsilon {self.epsilon:g}"
        return f"{known}; {self.family}; n {self.n}; {where}"

    def rng(self, purpose: int) -> np.random.Generator:
        """Return a generator of its own: 0 for sizes, 1 for users, 2 for noise."""
        return np.random.default_rng([*f"{self.chosen}; {self.line}".encode(), purpose])


@dataclass(frozen=True)
class Row:
    """What was measured in a cell; NaN where the library does not say."""

    cell: Cell
    mse: float
    error: float  # of mse, relative
    ideal: float  # NaN for dependent cells
    plain: float
    best: float
    sees: bool  # the anchor
    coverage: float  # of the 95% interval
    width: float  # the median half-width of that interval over sqrt(mse)
    warned: float  # share of runs
    far: float  # runs that are off by more than 5 standard errors
    far_warned: float
    paths: dict[str, float]
    seconds: float  # per run

    @property
    def asked(self) -> bool:
        """Whether most runs asked for the spread."""
        return sum(s for path, s in self.paths.items() if path not in NOT_ASKED) > 0.5

    def over(self, reference: str) -> float:
        """Return the MSE over a reference."""
        return self.mse / float(getattr(self, reference))

    def shown(self, reference: str) -> str:
        """Return the MSE over a reference with its error."""
        return f"{self.over(reference):.3g} ± {self.over(reference) * self.error:.2g}"


def cells(chosen: str, private: bool, runs: int | None = None) -> list[Cell]:
    """Return the cells of a set: the same ones whatever the number of runs."""
    listed = []
    for family, (usual, largest) in FAMILIES.items():
        for n in RUNS:
            count = largest if private and n == 100_000 else usual
            words = [*f"{chosen} {family}".encode(), n, private]
            rng = np.random.default_rng(words)
            few = runs if n < 100_000 or runs is None else max(runs // 5, 4)
            # Permutations, so that nothing is drawn twice before everything was once.
            profiles, populations = (
                rng.permutation(SETS[chosen][part].split(", "))
                for part in ("sizes", family)
            )
            epsilons = rng.permutation(EPSILONS)
            listed += [
                Cell(
                    chosen=chosen,
                    family=family,
                    n=n,
                    profile=str(profiles[i % len(profiles)]),
                    population=str(populations[i % len(populations)]),
                    epsilon=float(epsilons[i % len(epsilons)]),
                    private=private,
                    runs=few or RUNS[n],
                )
                for i in range(count)
            ]
    return listed


def sizes_of(cell: Cell) -> Integers:
    """Return the sizes of a cell's users, at most K_MAX."""
    n, rng = cell.n, cell.rng(0)
    kind, rest = parsed(cell.profile)
    match kind:
        case "zipf":
            k = sizes.zipf(n, rest[0], int(rest[1]), rng)
        case "lognormal":
            k = sizes.lognormal(n, rest[0], rest[1], K_MAX, rng)
        case "geometric":
            k = sizes.geometric(n, rest[0], rng)
        case "two-level":
            k = sizes.two_level(n, round(rest[0] * n), int(rest[1]))
        case "uniform":
            k = rng.integers(1, int(rest[0]), size=n, endpoint=True)
        case "pareto":  # shape, smallest
            draws = rest[1] * (1.0 + rng.pareto(rest[0], size=n))
            k = np.minimum(draws, K_MAX).astype(np.int64)
        case _:  # bimodal: the share of the heavy ones, two means
            heavy = rng.random(n) < rest[0]
            few, many = (sizes.geometric(n, mean, rng) for mean in rest[1:])
            k = np.where(heavy, many, few)
    return np.minimum(k, K_MAX)


class Rates:
    """The law of users' rates given their sizes, with its moments."""

    def __init__(self, cell: Cell, k: Integers) -> None:
        self.family, self.n = cell.family, cell.n
        kind, self.parts = parsed(cell.population)
        self.fixed: Floats | None = None
        if self.family == "dependent":
            base, slope = self.parts
            rank = (stats.rankdata(k) - 0.5) / len(k) - 0.5
            grown = rank if kind == "rank" else np.log(k) / math.log(k.max())
            self.fixed = np.clip(base + slope * grown, 0.0, 1.0)
            self.p, self.var_p = float(self.fixed.mean()), float(self.fixed.var())
            self.means, self.variances = self.fixed, self.fixed * (1 - self.fixed) / k
            return
        if self.family == "light":
            self.law = _law(kind, *self.parts)
            self.p, self.var_p = self.law.mean, self.law.variance
        else:
            rate, sd, other, share = self.parts
            self.law = _law("beta" if sd else "constant", rate, sd)
            self.p = rate + share * (other - rate)
            self.var_p = (1 - share) * (sd**2 + share * (other - rate) ** 2)
        self.means = np.full(self.n, self.p)
        self.variances = user_variance(k, self.p, self.var_p)

    def sample(self, rng: np.random.Generator) -> Floats:
        """Return every user's rate."""
        if self.fixed is not None:
            return self.fixed
        rates = self.law.sample(self.n, rng)
        if self.family == "minority":
            *_, other, share = self.parts
            rates = np.where(rng.random(self.n) < share, other, rates)
        return rates

    def square(self, weights: Floats) -> float:
        """Return the expected squared error of a weighted mean of user means."""
        bias = float(np.sum(weights * (self.means - self.p)))
        return float(np.sum(weights**2 * self.variances)) + bias**2


def _law(name: str, mean: float, sd: float) -> Constant | Beta | TruncatedGaussian:
    if name == "constant":
        return Constant(mean)
    return Beta(mean, sd**2) if name == "beta" else TruncatedGaussian(mean, sd)


def cautious_weights(k: Integers, epsilon: float) -> Floats:
    """Return the weights of unclipped means that assume a spread between users."""
    q, spread = CAUTIOUS
    values, position, counts = np.unique(k, return_inverse=True, return_counts=True)
    variances = q * (spread + (1.0 - spread) / values)
    weights, _ = optimal_weights(
        variances, np.ones(len(values)), epsilon, counts=counts
    )
    return np.asarray(weights[position])


def _path(estimate: Estimate) -> str:
    inside = vars(estimate.trace)
    default = "adaptive" if inside.get("adaptive") else "cautious"
    return str(inside.get("path", default))


def measure(cell: Cell) -> Row:
    """Simulate one cell."""
    k = sizes_of(cell)
    rates = Rates(cell, k)
    p, n, epsilon = rates.p, cell.n, cell.epsilon
    spread_out = user_variance(k, p, rates.var_p)
    weights, ideal = ideal_weights(k, spread_out, p, epsilon)
    uniform = np.full(n, 1.0 / n)
    cautious = cautious_weights(k, epsilon)
    sampling = rates.square(uniform)
    plain = sampling + 2.0 / (n * epsilon) ** 2
    other = rates.square(cautious) + 2.0 * (float(cautious.max()) / epsilon) ** 2

    users_rng, noise = cell.rng(1), cell.rng(2)
    controls = np.empty((cell.runs, 2))
    # squared, error, standard error, low, high, warned
    seen = np.full((cell.runs, 6), NAN)
    paths: Counter[str] = Counter()
    seconds = 0.0
    for run in range(cell.runs):
        users = Users(k, users_rng.binomial(k, rates.sample(users_rng)))
        start = time.perf_counter()
        if cell.private:
            estimate = private_k(users, epsilon, k_max=K_MAX, rng=noise, trace=True)
        else:
            estimate = public_size(users, epsilon, rng=noise, trace=True)
        seconds += time.perf_counter() - start
        seen[run, :2] = expected_square(estimate, p), estimate.value - p
        if hasattr(estimate, "standard_error"):  # version 0.1.0 has none
            seen[run, 2] = estimate.standard_error
            seen[run, 3:5] = np.clip(estimate.interval(0.95), 0.0, 1.0)
        if hasattr(estimate, "warnings"):
            seen[run, 5] = bool(estimate.warnings)
        paths[_path(estimate)] += 1
        deviations = users.means - p
        controls[run] = [np.sum(w * deviations) ** 2 for w in (weights, uniform)]

    squares, errors, deviation, low, high, warned = seen.T
    mse, error = controlled(
        squares, controls - [rates.square(weights), rates.square(uniform)]
    )
    far = np.abs(errors) > 5.0 * deviation
    inside = (low <= p) & (p <= high)
    return Row(
        cell=cell,
        mse=mse,
        error=error,
        ideal=NAN if cell.family == "dependent" else ideal,
        plain=plain,
        best=min(plain, other),
        sees=sampling > 2.0 / (ANCHOR_SHARE * n * epsilon) ** 2,
        coverage=NAN if np.isnan(low).any() else float(inside.mean()),
        width=float(np.median(high - low)) / 2.0 / math.sqrt(mse),
        warned=float(warned.mean()),
        far=NAN if np.isnan(deviation).any() else float(far.sum()),
        far_warned=float((far & (warned == 1.0)).sum()),
        paths={path: count / cell.runs for path, count in paths.most_common()},
        seconds=seconds / cell.runs,
    )


def controlled(squares: Floats, controls: Floats) -> tuple[float, float]:
    """Return the mean and its relative error; the controls have mean 0."""
    runs = len(squares)
    remaining, lost = squares, 1
    if runs >= 10:
        centred = controls - controls.mean(axis=0)
        slopes = np.linalg.lstsq(centred, squares - squares.mean(), rcond=None)[0]
        tried = squares - controls @ slopes
        if tried.mean() > 0.0:
            remaining, lost = tried, 3
    mse = float(remaining.mean())
    return mse, float(remaining.std(ddof=lost)) / math.sqrt(runs) / mse


def measured(listed: Iterable[Cell], jobs: int) -> list[Row]:
    """Return the rows of all cells, those that take longest first."""
    ordered = sorted(listed, key=lambda cell: -cell.n * cell.runs)
    with Pool(jobs) as pool:
        return pool.map(measure, ordered, chunksize=1)


def show_mean(rows: Sequence[Row], reference: str) -> str:
    """Return the geometric mean over a reference, and the largest."""
    mean = geometric_mean(row.over(reference) for row in rows)
    error = mean * math.sqrt(sum(row.error**2 for row in rows)) / len(rows)
    worst = max(rows, key=lambda row: row.over(reference))
    return f"{mean:.3f} ± {error:.3f} | {worst.shown(reference)}"


def summary(rows: Sequence[Row], worst: int = 6) -> list[str]:
    """Return what all cells of one kind of sizes say, as lines of Markdown."""
    light, minority, dependent = (
        [row for row in rows if row.cell.family == family] for family in FAMILIES
    )
    groups: list[tuple[str, Iterable[Row], str]] = [
        (f"light, n {n}", [row for row in light if row.cell.n == n], "ideal")
        for n in RUNS
    ]
    evident = (row for row in light if row.cell.n * row.cell.epsilon >= 1e4)
    two = [row for row in light if row.cell.profile.startswith("two-level")]
    groups += [
        ("light", light, "ideal"),
        ("light, n epsilon at least 10^4", evident, "ideal"),
        ("light, two-level sizes", two, "ideal"),
        ("light, other sizes", [row for row in light if row not in two], "ideal"),
        ("light", light, "plain"),
        ("light", light, "best"),
        ("minority", minority, "best"),
        ("minority", minority, "plain"),
        ("dependent, anchor sees", [row for row in dependent if row.sees], "plain"),
        ("dependent, other", [row for row in dependent if not row.sees], "plain"),
    ]
    lines = [
        "| cells | number | MSE over | geometric mean | largest |",
        "|---" * 5 + "|",
    ]
    for name, group, reference in groups:
        if mine := list(group):
            means = show_mean(mine, reference)
            lines.append(f"| {name} | {len(mine)} | {reference} | {means} |")
    lines += ["", "The largest of each family:", ""]
    for mine, reference in ((light, "ideal"), (minority, "best"), (dependent, "plain")):
        mine.sort(key=lambda row: -row.over(reference))
        for row in mine[:worst]:
            sees = "anchor sees; " if row.sees else ""
            how = f"warned {row.warned:.0%}; {sees}{shares(row)}"
            lines.append(
                f"- {row.shown(reference)} {reference}: {row.cell.line}; {how}"
            )
    families = ("light and minority", light + minority), ("dependent", dependent)
    for name, mine in families:
        told = [row for row in mine if not math.isnan(row.coverage + row.warned)]
        silent = f"{len(mine) - len(told)} of {len(mine)} cells say nothing"
        lines += ["", f"What estimates say of themselves, {name} ({silent}):", ""]
        lines += said(told, worst) if told else []
    return [*lines, ""]


def said(rows: Sequence[Row], worst: int) -> list[str]:
    """Return how warnings, standard errors and intervals did."""
    runs = sum(row.cell.runs for row in rows)
    warned = sum(row.warned * row.cell.runs for row in rows) / runs
    most = max(rows, key=lambda row: row.warned)
    lines = [
        f"- warned: {warned:.2%} of runs; most {most.warned:.1%}, {most.cell.line}"
    ]
    far, told = sum(row.far for row in rows), sum(row.far_warned for row in rows)
    lines.append(
        f"- off by more than 5 standard errors: {far:g} of {runs} runs, {told:g} warned"
    )
    for row in sorted(rows, key=lambda row: row.far_warned - row.far)[:worst]:
        if row.far:
            lines.append(f"- {row.far_warned:g} of {row.far:g} warned, {row.cell.line}")
    for row in sorted(rows, key=lambda row: row.coverage)[:worst]:
        lines.append(f"- covered {covered(row)}, {row.cell.line}; {shares(row)}")
    if asked := [row for row in rows if row.asked]:
        wide, middle = max(asked, key=lambda row: row.width), [r.width for r in asked]
        lines.append(
            f"- half-width over root MSE where a spread was asked: median "
            f"{np.median(middle):.2f}, largest {wide.width:.2f}, {wide.cell.line}"
        )
    return lines


def covered(row: Row) -> str:
    """Return the coverage with its error."""
    error = math.sqrt(max(row.coverage * (1 - row.coverage), 0.0) / row.cell.runs)
    return f"{row.coverage:.3f} ± {error:.3f}"


def shares(row: Row) -> str:
    """Return how often each path was taken."""
    return ", ".join(f"{path} {share:.0%}" for path, share in row.paths.items())


def table(rows: Iterable[Row]) -> list[str]:
    """Return all cells, as lines of Markdown."""
    head = "cell | runs | over ideal | over plain | over best | anchor sees | coverage"
    head += " | half-width | warned | off, warned | paths"
    lines = [f"| {head} |", "|---" * 11 + "|"]
    for row in sorted(rows, key=lambda row: (row.cell.family, row.cell.n)):
        parts = [row.cell.line, str(row.cell.runs)]
        parts += [row.shown(reference) for reference in ("ideal", "plain", "best")]
        parts += ["yes" if row.sees else "no", covered(row), f"{row.width:.2f}"]
        parts += [f"{row.warned:.1%}", f"{row.far:g}, {row.far_warned:g}", shares(row)]
        lines.append("| " + " | ".join(parts).replace("nan", "-") + " |")
    return lines


def report(rows: Sequence[Row]) -> str:
    """Return everything that was measured, as Markdown."""
    assert __doc__ is not None
    lines = ["# Outside what was tuned", "", *__doc__.strip().splitlines(), ""]
    lines += [
        {"report": TUNED, "stress": STRESS}.get(rows[0].cell.chosen, "For tuning.")
    ]
    lines += [""]
    for name, private in (("Public", False), ("Private", True)):
        mine = [row for row in rows if row.cell.private == private]
        if mine:
            lines += [f"## {name} sizes: summary", "", *summary(mine)]
    lines += ["## All cells", "", *table(rows), ""]
    return "\n".join(lines).replace("nan%", "-")


def main(
    arguments: Sequence[str] = ("--set", "report", "--markdown", str(RESULTS)),
) -> None:
    """Measure the cells that are asked for; by default the report, for outside.md."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.outside")
    parser.add_argument("--set", choices=SETS, default="tuning")
    parser.add_argument("--families", default=",".join(FAMILIES))
    parser.add_argument("--sizes", default="public,private")
    parser.add_argument("--n", default=",".join(map(str, RUNS)))
    parser.add_argument("--runs", type=int, help="a fifth of it for n = 100,000")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--json", type=Path, help="write the rows to this file")
    parser.add_argument("--show", type=Path, help="measure nothing, show such a file")
    parser.add_argument("--markdown", type=Path, help="write the whole report here")
    parser.add_argument("--library", help="a folder that holds another hetlit")
    asked = parser.parse_args(arguments)
    library = Path(hetlit.__file__).parents[1]
    if asked.library and library != Path(asked.library).resolve():
        parser.error(f"hetlit is the one in {library}: say --library PATH, no =")
    print(f"hetlit {hetlit.__version__} in {library}", file=sys.stderr)
    if asked.show:
        stored = json.loads(asked.show.read_text())
        rows = [Row(**{**row, "cell": Cell(**row["cell"])}) for row in stored]
    else:
        chosen = [
            cell
            for known in asked.sizes.split(",")
            for cell in cells(asked.set, known == "private", asked.runs)
            if cell.family in asked.families.split(",")
            and str(cell.n) in asked.n.split(",")
        ]
        rows = measured(chosen, asked.jobs)
    if asked.json:
        asked.json.write_text(json.dumps([asdict(row) for row in rows], indent=1))
    text = report(rows)
    if asked.markdown:
        asked.markdown.write_text(text)
    print(text[: text.index("## All cells")])


if __name__ == "__main__":
    main(sys.argv[1:])
