"""The public names, the kinds of their arguments, and what they promise.

Public is what `hetlit.__all__` lists, with the functions of its modules and the members
of its classes, and what book/api.md documents.  Each name has an entry here, or stands
in `UNCHECKED`: a test fails otherwise.
"""

from __future__ import annotations

import dataclasses
import functools
import inspect
import json
import math
import pkgutil
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from decimal import Decimal
from pathlib import Path
from types import ModuleType
from typing import Any, TypeAlias

import numpy as np
from numpy.random import Generator

import hetlit
from hetlit.estimators.uncertainty import Clipped, Uncertainty
from tools import fuzz_kinds as kinds
from tools.fuzz_kinds import (
    ABSENT,
    CHANCE,
    EPSILON,
    FINITE,
    FLAG,
    GENERATOR,
    INSIDE,
    PROBABILITY,
    SHARE,
    SUCCESSES,
    TEXT,
    TYPO,
    VARIANCE_OF_RATES,
    WIDTH,
    Drawn,
    Kind,
    between,
    counts_like,
    fixed,
    integer,
    measures,
    pick,
    sizes_of_any_shape,
    things,
    users,
    whole_numbers,
    word,
)

API = Path(__file__).resolve().parent.parent / "book" / "api.md"
MOST_SIZES = 10**7
MOST_DRAWN = 10**7

# They say that they check nothing, being parts of estimators, or hold no code at all.
UNCHECKED = {
    "Clipped",
    "ClippedMean",
    "Forecast",
    "Line",
    "MetaDistribution",
    "NoiseSource",
    "RatioPlan",
    "RatioStatistics",
    "SecureNoiseUnavailable",
    "Uncertainty",
    "certified_distance",
    "clamped_mean",
    "first_sample_total",
    "half_width",
    "median_rank_error",
    "median_utilities",
    "optimal_ceiling",
    "paired_differences",
    "pass_probability",
    "plan_clipped_mean",
    "plan_ideal",
    "published_bins",
    "rank_factor",
    "ratio_plan",
    "sensitivity_within",
    "spread_between_users",
    "spread_variance",
    "static_cohorts",
    "tail",
    "variance_of_mean",
}
# Pictures are tested where they are drawn.
PICTURES = r"hetlit\.(teaching|widgets)\b"

Arguments: TypeAlias = dict[str, Any]
Promise: TypeAlias = Callable[[Any, Arguments], None]


class Broken(Exception):
    """What a call did and should not have done."""


def ensure(holds: Any, problem: str) -> None:
    """Raise `Broken` unless this holds."""
    if not holds:
        raise Broken(problem)


@dataclass(frozen=True)
class Entry:
    """How to call a name.

    kinds : of its arguments, in the order in which they are drawn
    promise : what else its answer is, beyond finite
    refuses : what it may say to arguments that are valid, but not together
    times : how often it is called, more often if it is quick
    fixed : arguments that are always the same, and after a colon part of the title
    """

    kinds: Mapping[str, Kind]
    promise: Promise = lambda answer, arguments: None
    refuses: str | None = None
    times: int = 3
    fixed: Mapping[str, Any] = field(default_factory=dict)


# Public names


@functools.cache
def public_names() -> dict[str, Any]:
    """Return every public name and what it stands for.

    Functions of modules in `hetlit.__all__` have its name in front; what else is
    documented goes by its last name, wherever its module is.
    """
    found: dict[str, Any] = {}
    for name in hetlit.__all__:
        thing = getattr(hetlit, name)
        if isinstance(thing, ModuleType):
            found |= {f"{name}.{x}": getattr(thing, x) for x in functions_of(thing)}
        elif callable(thing):
            found |= members(name, thing)
    known = {id(thing) for thing in found.values()}
    for path in documented():
        module, _, name = path.rpartition(".")
        thing = getattr(pkgutil.resolve_name(module), name)
        if id(thing) not in known and name not in UNCHECKED:
            found |= members(name, thing)
    return found


def documented() -> list[str]:
    """Return the paths of all functions and classes in book/api.md but pictures."""
    paths = re.findall(r"auto(?:function|class|exception):: (\S+)", API.read_text())
    return [path for path in paths if not re.match(PICTURES, path)]


def functions_of(module: ModuleType) -> list[str]:
    """Return the public functions of a module."""
    if hasattr(module, "__all__"):
        return list(module.__all__)
    return [
        name
        for name, thing in vars(module).items()
        if inspect.isfunction(thing)
        and thing.__module__ == module.__name__
        and not name.startswith("_")
    ]


def members(name: str, thing: Any) -> dict[str, Any]:
    """Return a function, or a class with its public methods and properties."""
    if not inspect.isclass(thing):
        return {name: thing}
    found: dict[str, Any] = {name: thing}
    for member, value in vars(thing).items():
        if member.startswith("_"):
            continue
        if isinstance(value, (property, functools.cached_property)):
            found[f"{name}.{member}"] = functools.partial(_read, member)
        elif isinstance(value, classmethod) or inspect.isfunction(value):
            found[f"{name}.{member}"] = getattr(thing, member)
    return found


def _read(member: str, *, self: Any) -> Any:
    return getattr(self, member)


# Promises


def numbers_in(answer: Any) -> Iterator[Any]:
    """Yield all numbers in an answer, as arrays; a ledger is looked at elsewhere."""
    if isinstance(answer, (np.ndarray, np.number, float)):
        yield np.asarray(answer)
    elif isinstance(answer, int):  # of any length
        yield np.asarray(float(answer))
    elif isinstance(answer, dict):
        yield from numbers_in(list(answer.values()))
    elif isinstance(answer, (list, tuple)):
        for part in answer:
            yield from numbers_in(part)
    elif hasattr(answer, "__dict__") and not isinstance(answer, hetlit.Ledger):
        yield from numbers_in(vars(answer))


def finite(answer: Any) -> None:
    """Check that no number in an answer is infinite or NaN."""
    for array in numbers_in(answer):
        ensure(array.dtype.kind in "biuf", f"the answer holds {array.dtype}")
        ensure(np.isfinite(array).all(), "the answer is not finite")


def within(low: float, high: float = math.inf) -> Promise:
    """Return the promise that all numbers lie in a range."""

    def promise(answer: Any, arguments: Arguments) -> None:
        arrays = list(numbers_in(answer))
        ensure(arrays, "there is no number in the answer")
        for array in arrays:
            inside = (array >= low) & (array <= high)
            ensure(inside.all(), f"the answer is not in [{low:g}, {high:g}]")

    return promise


def shaped_like(name: str) -> Promise:
    """Return the promise of one number at least 0 for each entry of an argument."""

    def promise(answer: Any, arguments: Arguments) -> None:
        within(0.0)(answer, arguments)
        expected = np.shape(arguments[name])
        ensure(np.shape(answer) == expected, "the answer has another shape")

    return promise


def law(answer: Any, arguments: Arguments) -> None:
    """Check that probabilities lie in [0, 1] and add up to 1."""
    within(0.0, 1.0)(answer, arguments)
    ensure(abs(float(np.sum(answer)) - 1.0) < 1e-9, "probabilities do not add up to 1")


def add_up(answer: Any, arguments: Arguments) -> None:
    """Check that weights, maybe with an objective, are at least 0 and add up to 1."""
    weights = answer[0] if isinstance(answer, tuple) else answer
    within(0.0)(answer, arguments)
    counts = arguments.get("counts")
    numbers = 1.0 if counts is None else np.asarray(counts, dtype=np.float64)
    total = float(np.sum(numbers * weights))
    ensure(abs(total - 1.0) < 1e-9, "weights do not add up to 1")


def profile(answer: Any, arguments: Arguments) -> None:
    """Check that sizes are n whole numbers of at least 1."""
    within(1, kinds.LARGEST)(answer, arguments)
    ensure(answer.dtype == np.int64, "sizes are not int64")
    ensure(len(answer) == arguments["n"], "there are not n sizes")


def same_users(answer: Any, arguments: Arguments) -> None:
    """Check that the answer is a table of as many users."""
    before = arguments.get("self")
    ensure(isinstance(answer, hetlit.Users), "the answer is no table of users")
    ensure((answer.successes <= answer.k).all(), "there are more ones than samples")
    if isinstance(before, hetlit.Users):
        ensure(answer.n == before.n, "the number of users has changed")
    repr(answer)


def rates(answer: Any, arguments: Arguments) -> None:
    """Check that rates are n numbers in [0, 1]."""
    ensure(len(answer) == arguments["n"], "there are not n rates")
    if len(answer):
        within(0.0, 1.0)(answer, arguments)


def estimate(times: float = 1.0, deltas: float = 0.0, exact: bool = True) -> Promise:
    """Return the promise of an estimate that spends what it was given, if `exact`."""

    def promise(answer: Any, arguments: Arguments) -> None:
        ensure(type(answer.value) is float, "the value is no float")
        ledger, budget = answer.ledger, times * float(arguments["epsilon"])
        spent = ledger.epsilon / budget
        ensure(0.0 < spent < 1.0 + 1e-9, "more is spent than promised")
        ensure(not exact or spent > 1.0 - 1e-9, "less is spent than promised")
        promised = deltas * float(arguments.get("delta", 0.0))
        ensure(ledger.delta <= promised * (1.0 + 1e-9), "delta is overspent")
        readable(answer, arguments)
        ensure(0.0 <= answer.standard_error <= 1.0, "the error is no error")
        for level in (1e-9, 0.95, 1.0 - 1e-15):
            for allowed in (True, False):
                around = answer.interval(level, clipping=allowed, sizes=not allowed)
                interval(around, {"self": answer})

    return promise


def readable(answer: Any, arguments: Arguments) -> None:
    """Check that an estimate prints itself, and has a trace only if asked for."""
    ensure(0.0 <= answer.value <= 1.0, "the value is no probability")
    repr(answer), answer._repr_html_()
    str(answer.ledger), json.dumps(answer.ledger.as_dict())
    ensure(hasattr(answer, "trace") == bool(arguments.get("trace")), "whose trace?")


def forecast(answer: Any, arguments: Arguments) -> None:
    """Check that the numbers of a forecast lie where they can, and that it is shown."""
    for line in answer.lines:
        within(0.0, 1.0)(list(vars(line).values()), arguments)
    repr(answer), answer._repr_html_()


def interval(answer: Any, arguments: Arguments) -> None:
    """Check that an interval lies in [0, 1] and holds the value."""
    low, high = answer
    value = arguments["self"].value
    ensure(0.0 <= low <= value <= high <= 1.0, "the interval is not around the value")


def information_of_tosses(answer: Any, arguments: Arguments) -> None:
    """Check that it is at most that of the rate, at least that of a linear guess."""
    mean, variance = float(arguments["mean"]), 1.0 / np.asarray(answer)
    known = hetlit.TruncatedGaussian(arguments["mean"], arguments["sd"]).variance
    k = arguments.get("k")
    least = known if k is None else hetlit.user_variance(k, mean, known)
    ensure((variance >= known * (1 - 1e-6)).all(), "more than in the rate itself")
    ensure((variance <= np.asarray(least) * (1 + 1e-6)).all(), "less than is in a line")


def plain(answer: Any, arguments: Arguments) -> None:
    """Check that an answer is what JSON knows."""
    json.dumps(answer)


# Things to call methods on


def an_estimate(rng: Generator) -> hetlit.Estimate:
    """Return an estimate that is more or less sure."""
    noise, sampling, moved, gap = (
        float(pick(rng, (0.0, 1e-24, 0.01, 1e12))) for _ in range(4)
    )
    sure = Uncertainty(
        noise=noise, sampling=sampling, dependence=pick(rng, (None, gap))
    )
    first = sure if rng.random() < 0.5 else None
    clipped = Clipped(moved=moved, noise=gap) if rng.random() < 0.5 else None
    return hetlit.Estimate(
        float(pick(rng, (-1.0, 0.0, rng.random(), 1.0))),
        drawn_instance(rng, "Ledger"),
        uncertainty=replace(sure, first=first, clipped=clipped, gap=gap),
    )


def some_law(rng: Generator) -> Any:
    """Return a meta-distribution of any kind."""
    return pick(
        rng,
        (
            hetlit.Constant(0.0),
            hetlit.Constant(0.3),
            hetlit.Beta(0.5, 0.249),
            hetlit.Beta(1e-9, 1e-10),
            hetlit.Beta(0.3, 1e-12),
            hetlit.TruncatedGaussian(0.5, 0.1),
            hetlit.TruncatedGaussian(0.01, 3.0),
            hetlit.TwoPoint(0.0, 1.0, 0.5),
            hetlit.TwoPoint(0.1, 0.1, 1.0),
        ),
    )


def a_law(name: str) -> Kind:
    """Return the kind of `self` for the members of a meta-distribution."""
    return fixed(lambda rng: drawn_instance(rng, name))


def drawn_instance(rng: Generator, name: str) -> Any:
    """Return an instance of a public class, drawn from its own entry."""
    entry, drawn = ENTRIES[name], dict[str, Any]()
    for argument, kind in entry.kinds.items():
        value = kind.valid(rng, drawn)
        if value is not ABSENT:
            drawn[argument] = value
    try:
        return public_names()[name](**drawn)
    except ValueError:  # refused for a reason that the entry allows
        return drawn_instance(rng, name)


def cohorts_of(rng: Generator) -> tuple[Any, ...]:
    """Return one or two cohorts."""
    public = public_names()
    names = ("few", "rest")[: 1 + int(rng.integers(2))]
    return tuple(public["Cohort"](name, 10, "by lot") for name in names)


def steps_of(rng: Generator, drawn: Drawn) -> tuple[Any, ...]:
    """Return steps on the cohorts drawn before."""
    public = public_names()
    names = tuple(cohort.name for cohort in drawn["cohorts"])
    mechanism = public["Mechanism"](kind="Laplace", sensitivity=0.1, scale=0.1)
    cost = pick(rng, (0.0, 1.0, 1e-12, 1e12))
    return (public["Step"]("mean", names, mechanism, cost),) * int(rng.integers(3))


def an_account(rng: Generator) -> Any:
    """Return an account with a budget of 1 and nothing spent."""
    public = public_names()
    cohorts = (public["Cohort"]("few", 10, "by lot"),)
    source = public["source_of"](rng=kinds.generator_of(rng))
    return public["Account"](1.0, "replace one user", cohorts, source, delta=0.1)


def a_spent_account(rng: Generator) -> Any:
    """Return an account after one step."""
    account = an_account(rng)
    account.laplace("mean", 0.5, 0.1, 0.5)
    return account


# Kinds that need the above

SOURCE = Kind(
    lambda rng, drawn: pick(
        rng,
        (kinds.generator_of(rng), public_names()["Simulated"](kinds.generator_of(rng))),
    ),
    things(None, *kinds.NO_GENERATORS, object(), kinds.generator_of),
)
ONLY_SOURCE = Kind(
    lambda rng, drawn: public_names()["Simulated"](kinds.generator_of(rng)),
    things(None, *kinds.NO_GENERATORS),
)
ANY = fixed(lambda rng: "anything")


def no_cohorts(rng: Generator, drawn: Drawn) -> Any:
    """Return what is no division into cohorts, or has a wrong part."""
    cohort = cohorts_of(rng)[0]
    parts: tuple[dict[str, Any], ...] = (
        *({"name": 5}, {"name": []}, {"users": -1}, {"users": "x"}),
        {"chosen_by": None},
    )
    wrong = [(dataclasses.replace(cohort, **part),) for part in parts]
    others: tuple[Any, ...] = (None, (), [], "few", ("few",), [cohort], 5, (None,))
    return pick(rng, (*others, (cohort, cohort), *wrong))


def no_steps(rng: Generator, drawn: Drawn) -> Any:
    """Return what are no steps, or one with a wrong part."""
    mechanism = public_names()["Mechanism"]
    step = public_names()["Step"]("mean", ("few",), mechanism(kind="Laplace"), 1.0)
    parts: dict[str, tuple[Any, ...]] = {
        "name": (None, 5, []),
        "cohorts": ((), "few", ("all",), 5, None, [], ("few", 5)),
        "mechanism": (None, "Laplace", mechanism(kind=5), mechanism(kind="", detail=5)),
        "epsilon": (None, -1.0, math.nan, "1", True, 1j, [], Decimal(1)),
        "delta": (None, -1.0, math.nan, "1", True, 1j, 1.5),
    }
    name = pick(rng, tuple(parts))
    wrong = dataclasses.replace(step, **{name: pick(rng, parts[name])})
    return pick(rng, (None, [], "mean", 5, (None,), ("mean",), *((wrong,),) * 6))


COHORTS = Kind(lambda rng, drawn: cohorts_of(rng), no_cohorts)
STEPS = Kind(steps_of, no_steps)
NOTES = Kind(things((), ("a note",)), things(None, [], "note", (5,), 5))
PLANNED = {
    "sizes": whole_numbers(1),
    "counts": counts_like("sizes"),
    "mean": PROBABILITY.optional(),
    "spreads": kinds.array_of(
        lambda rng, count, drawn: rng.random(count) * largest_spread(drawn),
        wrong=(-0.1, 0.6, math.inf, -math.inf),
    ).optional(none=True),
    "level": INSIDE.optional(),
}
META = Kind(
    lambda rng, drawn: some_law(rng),
    things(None, 0.5, "beta", [], {}, hetlit.Beta, np.random.default_rng(0)),
)
UNIT_VALUES = measures(0.0, 1.0)
K_MAX = integer(1, MOST_SIZES, usual=3000)
K_FOR_WIDTHS = sizes_of_any_shape(2**62, whole=False)
N = integer(1)
SENSITIVITY = between(1e-100, 1e100, usual=(0.1, 10.0)).optional()


def samples_of(rng: Generator, drawn: Drawn) -> Any:
    """Return arrays of zeros and ones, one for each user."""
    sizes = rng.integers(1, 30, kinds.rows(rng))
    return [kinds.disguised(rng, rng.integers(0, 2, size)) for size in sizes]


def events_of(rng: Generator, drawn: Drawn) -> Any:
    """Return an event log as a mapping of columns."""
    count = kinds.rows(rng)
    who = rng.integers(0, 5, count)
    names = pick(rng, (who, who.astype(str), list(who), who.astype(float) / 3.0))
    return {"who": names, "won": kinds.disguised(rng, rng.integers(0, 2, count))}


def table_of(rng: Generator, drawn: Drawn) -> Any:
    """Return the columns of a table of users."""
    table = kinds.some_users(rng)
    columns = {"k": table.k, "successes": table.successes, "counts": table.counts}
    if table.ordered and rng.random() < 0.5:
        del columns["counts"]
    return {name: kinds.disguised(rng, column) for name, column in columns.items()}


def no_table(
    rng: Generator, make: kinds.Draw, column: str, wrong: tuple[Any, ...]
) -> Any:
    """Return a table with a wrong entry, a missing column, or no table at all."""
    table = dict(make(rng, {}))
    entries = list(table[column])
    entries[int(rng.integers(len(entries)))] = pick(rng, wrong)
    columns: tuple[Any, ...] = (
        entries,
        [],
        list(table[column])[:-1],
        5,
        "text",
        None,
        kinds.empty(),
    )
    damaged = {**table, column: pick(rng, (*columns, np.ones((2, 2))))}
    missing = {name: values for name, values in table.items() if name != column}
    others: tuple[Any, ...] = (None, 5, "no.csv", "no", b"x", [], [1], {}, object(), "")
    return pick(rng, (*(damaged,) * 10, missing, *others))


WRONG_COUNTS = (None, -1, 0.5, "1", math.nan, 1j, True, 10**400, [1], 2**63, b"1")
TABLE = Kind(
    table_of,
    lambda rng, drawn: no_table(rng, table_of, "k", WRONG_COUNTS),
    ("k", "successes", "counts"),
)
EVENTS = Kind(
    events_of,
    lambda rng, drawn: no_table(
        rng, events_of, "won", (None, 2, "1", math.nan, 1j, [])
    ),
    ("user", "outcome"),
)
SAMPLES = Kind(
    samples_of,
    lambda rng, drawn: pick(
        rng,
        (
            *(None, 5, "01", b"01", [], [[]], [5], [[0, 2]], [["0"]], [[math.nan]]),
            *([[[0]]], [[0], None], [[0, 1j]], [[None]], [[0, [1]]], [[0.5, 1]]),
            *(
                np.zeros((2, 0)),
                np.full((2, 2), 7),
                [np.ma.array([0, 1], mask=[False, True])],
            ),
            *([np.array([1], "m8[s]")], [[10**400]], kinds.empty(), {"a": 1}, ["01"]),
        ),
    ),
)


def columns_kind(name: str) -> Kind:
    """Return the kind of the name of a column of an event log."""
    wrong = (None, 5, "", "missing", b"won", ["won"], len)
    return Kind(things(name), things(*wrong), ("user", "outcome"))


SQL_NAME = Kind(
    things("clicks", "a b", '"', "`;--"), things(None, "", 5, b"x", "\0", [])
)
SQL_TABLE = Kind(
    things("clicks", ["a", "b"], ("x",)), things(None, "", 5, [], [""], {}, [5])
)

RANK = integer(1, lambda drawn: _total(drawn), usual=50)


def _total(drawn: Drawn) -> int:
    """Return the number of users behind sizes and counts drawn before."""
    counts = drawn.get("counts", ABSENT)
    if counts is None or counts is ABSENT:
        return len(drawn["k"])
    return min(int(kinds.exact(counts).sum()), kinds.MOST_USERS)


def some_shares(parts: int, rng: Generator, drawn: Drawn) -> Any:
    """Return parts of 1: equal, uneven, or as small as can be."""
    shares = np.full(parts, 1.0 / parts)
    if rng.random() < 0.5:
        shares = np.maximum(rng.dirichlet(np.full(parts, 0.3)), 1e-9)
        shares[np.argmax(shares)] -= shares.sum() - 1.0
    return kinds.disguised(rng, shares)


SHARES = {
    parts: Kind(
        functools.partial(some_shares, parts),
        things(
            *(None, (), (1.0,), (0.5,) * parts, "0.1", [math.nan] * parts, 1.0),
            *((-1.0, 2.0) + (0.0,) * (parts - 2), np.ones((parts, 1)) / parts, len),
        ),
    ).optional()
    for parts in (3, 4)
}


def largest_spread(drawn: Drawn) -> float:
    """Return the largest standard deviation of rates that have the mean."""
    mean = drawn.get("mean", ABSENT)
    mean = 0.5 if mean is ABSENT else float(mean)
    return math.sqrt(mean * (1.0 - mean))


# Entries

TRACE = FLAG.optional()
RELEASE = {"epsilon": EPSILON, "rng": SOURCE, "trace": TRACE}
PUBLIC = {"users": users(), **RELEASE}
COHORTED = {"users": users(10), **RELEASE}
BETA = CHANCE.optional()
THIRD_MOMENT = between(1e-6, 1e6).optional()
VARIANCE_USERS = integer(2, 10**6, usual=5).optional(none=True)
SMALL_USERS = users(1, MOST_SIZES)
BOUND = integer(lambda drawn: int(drawn["users"].k.max()), MOST_SIZES, usual=3000)
PRIVATE = {"users": SMALL_USERS, "k_max": BOUND, **RELEASE}
PRIVATE_COHORTED = {"users": users(10, MOST_SIZES), "k_max": BOUND, **RELEASE}
DELTA = between(1e-300, 0.5, strictly=True)
NO_DELTA = between(0.0, 0.5).optional()
TOO_FEW = "leaves nobody for the final one|at most 1000000"
COHORT_OPTIONS = {
    "beta": BETA,
    "variance_users": VARIANCE_USERS,
    "width": WIDTH.optional(),
}
PAPER_OPTIONS = {"beta": BETA, "third_moment": THIRD_MOMENT}
RATIO_OPTIONS = {
    "shares": SHARES[3],
    "spread_users": integer(1, usual=100).optional(none=True),
    "beta": BETA,
    "width": WIDTH.optional(),
}
PTR_OPTIONS = {**RATIO_OPTIONS, "shares": SHARES[4], "delta": DELTA}
PUBLISHED_OPTIONS = {
    **PAPER_OPTIONS,
    "delta": DELTA,
    "variance_users": VARIANCE_USERS,
    "variance": word("published", "median").optional(),
}
WIDTHS = {"k": K_FOR_WIDTHS, "n": N}
MEAN_AND_VARIANCE = {"p": PROBABILITY, "var_p": VARIANCE_OF_RATES}
BETA_LAW = {"mean": INSIDE, "variance": between(0.0, lambda drawn: _top(drawn))}
WEIGHTED = {
    "variances": measures(1e-30, 1e30),
    "widths": measures(0.0, 1e30, "variances"),
    "epsilon": EPSILON,
    "counts": counts_like("variances", 2**62),
}
GUESSES = {
    "users": users(),
    "p": between(-FINITE, FINITE, usual=(0.0, 1.0)),
    "var_p": between(-FINITE, FINITE, usual=(0.0, 0.25)),
    "k_cap": K_MAX,
    "alpha": PROBABILITY,
    "width": WIDTH,
}
ORDER = {
    "k": whole_numbers(1, 3000),
    "counts": counts_like("k"),
    "rank": RANK,
    "k_max": integer(
        lambda drawn: int(kinds.exact(drawn["k"]).max()), MOST_SIZES, usual=5000
    ),
}
STEP = {
    "name": TEXT,
    "epsilon": between(1e-100, 1.0, usual=(1e-12, 1.0), sharp=False),
    "detail": TEXT.optional(),
    "delta": between(0.0, 0.1, sharp=False).optional(),
}
SEVERAL_STEPS = {name: kind for name, kind in STEP.items() if name != "delta"}


def _top(drawn: Drawn) -> float:
    """Return the largest variance of a law on [0, 1] with the mean drawn before."""
    return float(drawn["mean"]) * (1.0 - float(drawn["mean"]))


def sampled(name: str) -> dict[str, Entry]:
    """Return the entries of the members that all meta-distributions have."""
    law = {"self": a_law(name)}
    parts = {"n": integer(0, MOST_DRAWN, usual=100), "rng": GENERATOR}
    return {
        f"{name}.sub_gaussian_proxy": Entry(law, within(0.0, 0.25), times=1),
        f"{name}.sample": Entry({**law, **parts}, rates, times=1),
    }


ENTRIES: dict[str, Entry] = {
    # Users and where they come from
    "Users": Entry(
        {"k": whole_numbers(1), "successes": SUCCESSES, "counts": counts_like("k")},
        same_users,
    ),
    "Users.from_samples": Entry({"samples": SAMPLES}, same_users),
    "Users.from_events": Entry(
        {"table": EVENTS, "user": columns_kind("who"), "outcome": columns_kind("won")},
        same_users,
    ),
    "Users.from_table": Entry({"table": TABLE}, same_users),
    "Users.n": Entry({"self": fixed(kinds.some_users)}, within(1, 2**40), times=1),
    "Users.means": Entry({"self": fixed(kinds.some_users)}, within(0, 1), times=1),
    "Users.compressed": Entry({"self": fixed(kinds.some_users)}, same_users, times=1),
    "Users.expanded": Entry(
        {"self": fixed(lambda rng: kinds.some_users(rng, most=10**5))}, same_users
    ),
    "Users.capped": Entry(
        {"self": fixed(kinds.some_users), "k_max": K_MAX, "rng": GENERATOR}, same_users
    ),
    "Users.part": Entry(
        {"self": fixed(kinds.some_users), "rows": fixed(lambda rng: np.array([0]))},
        times=1,
    ),
    "user_variance": Entry({"k": K_FOR_WIDTHS, **MEAN_AND_VARIANCE}, shaped_like("k")),
    "sample_users": Entry(
        {"meta": META, "k": whole_numbers(1), "rng": GENERATOR}, same_users
    ),
    "Constant": Entry({"p": PROBABILITY}),
    "Constant.mean": Entry({"self": a_law("Constant")}, within(0, 1), times=1),
    "Constant.variance": Entry({"self": a_law("Constant")}, within(0, 0), times=1),
    **sampled("Constant"),
    "Beta": Entry(
        {
            "mean": INSIDE,
            "variance": between(1e-300, lambda drawn: _top(drawn), strictly=True),
        },
        refuses="variance must be",  # of a mean so small that it has none
    ),
    "Beta.concentration": Entry({"self": a_law("Beta")}, within(0), times=1),
    **sampled("Beta"),
    "TruncatedGaussian": Entry(
        {"mean": INSIDE, "sd": between(1e-100, 1e100, usual=(0.01, 10.0))},
        refuses="mean .* is too extreme for sd",
    ),
    "TruncatedGaussian.location": Entry({"self": a_law("TruncatedGaussian")}, times=1),
    "TruncatedGaussian.variance": Entry(
        {"self": a_law("TruncatedGaussian")}, within(0, 0.25), times=1
    ),
    **sampled("TruncatedGaussian"),
    "TwoPoint": Entry(
        {
            "low": PROBABILITY,
            "high": between(lambda drawn: float(drawn["low"]), 1.0),
            "weight": PROBABILITY,
        }
    ),
    "TwoPoint.mean": Entry({"self": a_law("TwoPoint")}, within(0, 1), times=1),
    "TwoPoint.variance": Entry({"self": a_law("TwoPoint")}, within(0, 0.25), times=1),
    **sampled("TwoPoint"),
    "sizes.equal": Entry({"n": integer(1, MOST_DRAWN), "k": integer(1)}, profile),
    "sizes.harmonic": Entry({"n": integer(1, MOST_DRAWN)}, profile),
    "sizes.two_level": Entry(
        {
            "n": integer(1, MOST_DRAWN),
            "heavy": integer(0, lambda drawn: int(drawn["n"])),
            "k_heavy": integer(1),
        },
        profile,
    ),
    "sizes.geometric": Entry(
        {
            "n": integer(1, MOST_DRAWN),
            "mean": between(1.0, FINITE, usual=(1.0, 1e6)),
            "rng": GENERATOR,
        },
        profile,
    ),
    "sizes.zipf": Entry(
        {
            "n": integer(1, MOST_DRAWN),
            "exponent": between(5e-324, FINITE, usual=(0.1, 5.0)),
            "k_max": integer(1, MOST_DRAWN),
            "rng": GENERATOR,
        },
        profile,
    ),
    "sizes.lognormal": Entry(
        {
            "n": integer(1, MOST_DRAWN),
            "median": between(5e-324, FINITE, usual=(0.1, 1e6)),
            "sigma": between(0.0, FINITE, usual=(0.0, 5.0)),
            "k_max": integer(1),
            "rng": GENERATOR,
        },
        profile,
    ),
    "users_from_events": Entry(
        {"table": EVENTS, "user": columns_kind("who"), "outcome": columns_kind("won")},
        same_users,
    ),
    "users_from_table": Entry({"table": TABLE}, same_users),
    "events_sql": Entry(
        {
            "table": SQL_TABLE,
            "user": SQL_NAME,
            "outcome": SQL_NAME,
            "quote": word('"', "`").optional(),
        },
        times=1,
    ),
    # Privacy
    "Ledger": Entry(
        {"neighbours": TEXT, "cohorts": COHORTS, "steps": STEPS, "notes": NOTES},
    ),
    "Ledger.spent_on": Entry(
        {
            "self": a_law("Ledger"),
            "cohort": Kind(things("few"), things(None, "", "everyone", 5, [])),
        },
        lambda answer, arguments: ensure(
            min(answer) >= 0, "less than nothing is spent"
        ),
        times=1,
    ),
    "Ledger.epsilon": Entry({"self": a_law("Ledger")}, times=1),
    "Ledger.delta": Entry({"self": a_law("Ledger")}, within(0, 1), times=1),
    "Ledger.as_dict": Entry({"self": a_law("Ledger")}, plain, times=1),
    # Records, which the ledger checks: wrong ones are among its cohorts and steps.
    "Cohort": Entry({"name": ANY, "users": ANY, "chosen_by": ANY}, times=1),
    "Mechanism": Entry({"kind": ANY, "sensitivity": ANY, "scale": ANY}, times=1),
    "Step": Entry(
        {"name": ANY, "cohorts": ANY, "mechanism": ANY, "epsilon": ANY}, times=1
    ),
    "not_private": Entry(
        {"users": fixed(lambda rng: 10), "step": fixed(lambda rng: "mean")}, times=1
    ),
    "Account": Entry(
        {
            "epsilon": between(1e-100, 1e100),
            "neighbours": TEXT,
            "cohorts": COHORTS,
            "source": ONLY_SOURCE,
            "delta": between(0.0, FINITE).optional(),
        }
    ),
    "Account.left": Entry({"self": fixed(an_account)}, within(1, 1), times=1),
    "Account.scale": Entry({"self": fixed(a_spent_account)}, within(0.2, 0.2), times=1),
    "Account.laplace": Entry(
        {
            "self": fixed(an_account),
            "statistic": between(-1e100, 1e100, usual=(0.0, 1.0)),
            "sensitivity": between(1e-100, 1e100, usual=(0.1, 10.0)),
            **STEP,
        }
    ),
    "Account.counts": Entry(
        {
            "self": fixed(an_account),
            "counts": measures(-1e100, 1e100),
            "sensitivity": between(1e-100, 1e100, usual=(0.1, 10.0)),
            **SEVERAL_STEPS,
        }
    ),
    "Account.choose": Entry(
        {
            "self": fixed(an_account),
            "utilities": measures(-1e100, 1e100),
            "sensitivity": SENSITIVITY,
            **STEP,
        },
        within(0),
    ),
    "Account.nothing": Entry(
        {
            "self": fixed(an_account),
            "why": TEXT,
            **{name: kind for name, kind in STEP.items() if name != "detail"},
        }
    ),
    "Account.ledger": Entry({"self": fixed(a_spent_account)}, times=1),
    "Simulated": Entry({"rng": GENERATOR}, times=1),
    "Simulated.laplace": Entry(
        {
            "self": fixed(lambda rng: public_names()["Simulated"](rng)),
            "statistic": fixed(lambda rng: 0.5),
            "scale": fixed(lambda rng: 1.0),
        },
        times=1,
    ),
    "Simulated.laplaces": Entry(
        {
            "self": fixed(lambda rng: public_names()["Simulated"](rng)),
            "statistics": fixed(lambda rng: np.zeros(3)),
            "scale": fixed(lambda rng: 1.0),
        },
        times=1,
    ),
    "Simulated.choose": Entry(
        {
            "self": fixed(lambda rng: public_names()["Simulated"](rng)),
            "utilities": fixed(lambda rng: np.zeros(3)),
            "epsilon": fixed(lambda rng: 1.0),
            "sensitivity": fixed(lambda rng: 1.0),
        },
        within(0, 2),
        times=1,
    ),
    "source_of": Entry({"rng": SOURCE}, times=1),
    "laplace": Entry({"scale": between(0.0, 1e300), "rng": SOURCE}),
    "exponential_probabilities": Entry(
        {
            "utilities": measures(-1e100, 1e100),
            "epsilon": EPSILON,
            "sensitivity": SENSITIVITY,
        },
        law,
    ),
    "exponential_mechanism": Entry(
        {
            "utilities": measures(-1e100, 1e100),
            "epsilon": EPSILON,
            "sensitivity": SENSITIVITY,
            "rng": SOURCE,
        },
        within(0),
    ),
    "median_on_grid": Entry(
        {
            "values": kinds.array_of(
                lambda rng, count, drawn: rng.normal(size=count), wrong=(math.nan,)
            ),
            "grid": kinds.array_of(
                lambda rng, count, drawn: np.unique(rng.normal(size=count))
            ),
            "epsilon": EPSILON,
            "rng": SOURCE,
        }
    ),
    "order_statistic_utilities": Entry(ORDER, within(-math.inf, 0)),
    "order_statistic_probabilities": Entry({**ORDER, "epsilon": EPSILON}, law),
    "private_order_statistic": Entry(
        {**ORDER, "epsilon": EPSILON, "rng": SOURCE}, within(1, MOST_SIZES)
    ),
    "log_grid": Entry(
        {
            "high": between(1e-290, 1e300, usual=(1.0, 1e6), sharp=False),
            "low": between(1e-300, lambda drawn: float(drawn["high"]) / 2, sharp=False),
            "ratio": between(1.001, FINITE, usual=(1.01, 10.0), sharp=False),
        },
        within(0.0),
    ),
    "Estimate": Entry(
        {
            "value": between(-FINITE, FINITE, usual=(0.0, 1.0)),
            "ledger": Kind(
                lambda rng, drawn: drawn_instance(rng, "Ledger"), things(None, 5, {})
            ),
        },
        readable,
    ),
    "Estimate.trace": Entry(
        {
            "self": fixed(
                lambda rng: hetlit.Estimate(
                    0.5, drawn_instance(rng, "Ledger"), hetlit.Trace(noiseless=0.5)
                )
            )
        },
        times=1,
    ),
    "Estimate.standard_error": Entry(
        {"self": fixed(an_estimate)}, within(0.0, 1.0), times=1
    ),
    "Estimate.interval": Entry(
        {
            "self": fixed(an_estimate),
            "level": INSIDE.optional(),
            "clipping": FLAG.optional(),
            "sizes": FLAG.optional(),
        },
        interval,
    ),
    "Trace": Entry({"noiseless": fixed(lambda rng: 0.5)}, times=1),
    # Building blocks
    "inverse_variance_weights": Entry(
        {
            "variances": measures(1e-300, 1e300),
            "counts": counts_like("variances", 2**62),
        },
        add_up,
    ),
    "truncated_weights": Entry(
        {
            "variances": measures(1e-300, 1e300),
            "threshold": between(5e-324, FINITE, usual=(0.01, 100.0)),
            "counts": counts_like("variances", 2**62),
        },
        add_up,
    ),
    "best_threshold": Entry(WEIGHTED, within(0.0)),
    "optimal_weights": Entry(WEIGHTED, add_up),
    "release_variance": Entry(
        {**WEIGHTED, "weights": measures(0.0, 1e30, "variances")}, within(0.0)
    ),
    "hoeffding_width": Entry({**WIDTHS, "beta": INSIDE}, shaped_like("k")),
    "bernstein_width": Entry(
        {**WIDTHS, "q": between(0.0, 0.25), "beta": INSIDE}, shaped_like("k")
    ),
    "chernoff_width": Entry(
        {**WIDTHS, "p": PROBABILITY, "beta": INSIDE},
        shaped_like("k"),
        refuses="k must satisfy k \\* p",
    ),
    "sub_gaussian_width": Entry(
        {**WIDTHS, "proxy": between(0.0, 1e200, usual=(0.0, 0.25)), "beta": INSIDE},
        shaped_like("k"),
    ),
    "beta_width": Entry({**WIDTHS, **BETA_LAW, "beta": INSIDE}, shaped_like("k")),
    "truncated_gaussian_width": Entry(
        {**WIDTHS, "sd": between(0.0, 1e100, usual=(0.0, 1.0)), "beta": INSIDE},
        shaped_like("k"),
    ),
    "standard_width": Entry(
        {**WIDTHS, **MEAN_AND_VARIANCE, "beta": INSIDE}, shaped_like("k")
    ),
    "chebyshev_width": Entry(
        {**WIDTHS, **MEAN_AND_VARIANCE, "beta": INSIDE}, shaped_like("k")
    ),
    "two_step_width": Entry(
        {
            **WIDTHS,
            "rate_width": between(0.0, FINITE, usual=(0.0, 1.0)),
            "p": PROBABILITY,
            "beta": INSIDE,
        },
        shaped_like("k"),
    ),
    "exact_binomial_width": Entry(
        {
            "k": sizes_of_any_shape(2**44, whole=True),
            "n": N,
            "p": PROBABILITY,
            "beta": INSIDE,
        },
        shaped_like("k"),
    ),
    "exact_beta_binomial_width": Entry(
        {
            "k": sizes_of_any_shape(10**7, whole=True),
            "n": N,
            "mean": between(1e-100, 1.0, strictly=True),
            "concentration": between(1e-12, 1e15, usual=(0.1, 100.0)),
            "beta": INSIDE,
        },
        shaped_like("k"),
        refuses="k must have distinct sizes of sum at most",
        times=1,
    ),
    "largest_variance": Entry(
        {"p": PROBABILITY, "alpha": between(0.0, FINITE)}, within(0, 0.25)
    ),
    "lower_bound_beta": Entry({"n": N, "beta": INSIDE}, within(0)),
    "initial_mean": Entry(
        {"first_samples": UNIT_VALUES, "epsilon": EPSILON, "rng": SOURCE}
    ),
    "initial_mean_error": Entry(
        {"n": N, "epsilon": EPSILON, "beta": CHANCE}, within(0)
    ),
    "initial_variance": Entry(
        {
            "values": kinds.array_of(
                lambda rng, count, drawn: rng.random(count + 1), None, (-0.1, 1.1)
            ),
            "epsilon": EPSILON,
            "k": integer(1),
            "inflation": between(1e-100, 1e100, usual=(0.1, 10.0)).optional(),
            "rng": SOURCE,
        },
        within(0.0),
    ),
    "noisy_mean": Entry(
        {
            "n": N,
            "total": between(0.0, lambda drawn: float(drawn["n"]), sharp=False),
            "epsilon": EPSILON,
            "rng": SOURCE,
        }
    ),
    "published_mean_error": Entry(
        {
            "estimate": between(-FINITE, FINITE),
            "n": N,
            "epsilon": EPSILON,
            "beta": CHANCE,
        },
        within(0.0),
    ),
    "published_group_size": Entry({"third_moment": between(1e-6, 1e6)}, within(1)),
    "published_users_needed": Entry(
        {
            "third_moment": between(1e-6, 1e6),
            "epsilon": EPSILON,
            "beta": CHANCE,
            "bins": integer(1),
        }
    ),
    "published_variance": Entry(
        {
            "values": UNIT_VALUES,
            "epsilon": EPSILON,
            "k": integer(1),
            "group_size": integer(1, usual=20),
            "users_needed": integer(0, usual=20),
            "rng": SOURCE,
        }
    ),
    "ratio_statistics": Entry(GUESSES),
    "ptr_distance": Entry(
        {**GUESSES, "proposal": between(0.0, FINITE, usual=(0.0, 1.0))},
        within(-1, kinds.MOST_USERS),
    ),
    # Before spending
    "plan": Entry({**PLANNED, "epsilon": EPSILON}, forecast),
    "plan: table": Entry(
        {"sizes": Kind(users().valid), "epsilon": EPSILON},
        forecast,
    ),
    "plan: private": Entry(
        {
            **PLANNED,
            "sizes": whole_numbers(1, 3000),
            "k_max": integer(
                lambda drawn: int(kinds.exact(drawn["sizes"]).max()),
                MOST_SIZES,
                usual=5000,
            ),
            "epsilon": EPSILON,
        },
        forecast,
    ),
    "plan: error": Entry(
        {**PLANNED, "error": between(0.0, 1.0, strictly=True)},
        forecast,
        refuses="error must be larger",
        times=1,
    ),
    # Estimators
    "estimate_nonprivate_ideal": Entry(
        {"users": users(), **MEAN_AND_VARIANCE, "trace": TRACE}, readable
    ),
    "estimate_nonprivate": Entry(
        {
            "users": users(10),
            "rng": GENERATOR,
            "debias": FLAG.optional(),
            "trace": TRACE,
        },
        readable,
    ),
    "estimate_ideal": Entry(
        {
            **PUBLIC,
            **MEAN_AND_VARIANCE,
            "alpha": between(0.0, FINITE, usual=(0.0, 1.0)).optional(),
            "width": WIDTH.optional(),
            "weights": word("paper", "optimal").optional(),
        },
        estimate(),
    ),
    "estimate_public_size": Entry(
        {**PUBLIC, "method": word("auto").optional(), "typo": TYPO}, estimate()
    ),
    "estimate_public_size: auto": Entry(
        {
            **PUBLIC,
            "typo": TYPO,
            "plans": Kind(things(ABSENT, None), things(5, "x", {})),
        },
        estimate(),
        fixed={"method": "auto"},
    ),
    "estimate_public_size: cohorts": Entry(
        {**COHORTED, **COHORT_OPTIONS, "typo": TYPO},
        estimate(),
        TOO_FEW,
        fixed={"method": "cohorts"},
    ),
    "estimate_public_size: paper": Entry(
        {**COHORTED, **PAPER_OPTIONS, "typo": TYPO},
        estimate(),
        TOO_FEW,
        fixed={"method": "paper"},
    ),
    "estimate_public_size: plain": Entry(
        {**PUBLIC, "typo": TYPO}, estimate(), fixed={"method": "plain"}
    ),
    "estimate_adaptive": Entry(PUBLIC, estimate(), times=1),
    "estimate_plain": Entry(PUBLIC, estimate(), times=1),
    "estimate_cohorts": Entry({**COHORTED, **COHORT_OPTIONS}, estimate(), TOO_FEW, 1),
    "estimate_paper": Entry({**COHORTED, **PAPER_OPTIONS}, estimate(), TOO_FEW, 1),
    "estimate_private_k": Entry(
        {**PRIVATE, "method": word("auto").optional(), "delta": NO_DELTA, "typo": TYPO},
        estimate(),
    ),
    "estimate_private_k: auto": Entry(
        {**PRIVATE, "delta": NO_DELTA, "typo": TYPO},
        estimate(),
        fixed={"method": "auto"},
    ),
    "estimate_private_k: ratio": Entry(
        {**PRIVATE_COHORTED, **RATIO_OPTIONS, "delta": NO_DELTA, "typo": TYPO},
        estimate(),
        fixed={"method": "ratio"},
    ),
    "estimate_private_k: ptr": Entry(
        {**PRIVATE_COHORTED, **PTR_OPTIONS, "typo": TYPO},
        estimate(deltas=1.0),
        fixed={"method": "ptr"},
    ),
    "estimate_private_k: paper": Entry(
        {**PRIVATE_COHORTED, **PUBLISHED_OPTIONS, "typo": TYPO},
        estimate(times=6.0, deltas=3.0),
        TOO_FEW,
        fixed={"method": "paper"},
    ),
    "estimate_private_k: plain": Entry(
        {**PRIVATE, "delta": NO_DELTA, "typo": TYPO},
        estimate(),
        fixed={"method": "plain"},
    ),
    "estimate_histogram_ratio": Entry(PRIVATE, estimate(), times=1),
    "estimate_plain_k": Entry(PRIVATE, estimate(), times=1),
    "estimate_ratio": Entry({**PRIVATE_COHORTED, **RATIO_OPTIONS}, estimate(), times=1),
    "estimate_ptr": Entry(
        {**PRIVATE_COHORTED, **PTR_OPTIONS}, estimate(deltas=1.0), times=1
    ),
    "estimate_published_k": Entry(
        {**PRIVATE_COHORTED, **PUBLISHED_OPTIONS},
        estimate(times=6.0, deltas=3.0),
        TOO_FEW,
        times=1,
    ),
    "baselines.user_mean": Entry(PUBLIC, estimate()),
    "baselines.pooled_mean": Entry(PUBLIC, estimate()),
    "baselines.median_truncation": Entry(PUBLIC, estimate()),
    "baselines.contribution_bounding": Entry(
        {
            **PUBLIC,
            "cap": integer(1, MOST_SIZES),
            "cap_share": SHARE.optional(),
            "count_share": SHARE.optional(none=True),
        },
        estimate(exact=False),
    ),
    "baselines.contribution_bounding: private": Entry(
        {
            **PUBLIC,
            "k_max": K_MAX,
            "cap_share": SHARE.optional(),
            "count_share": SHARE.optional(none=True),
        },
        estimate(exact=False),
        fixed={"cap": "private"},
    ),
    "baselines.huber": Entry(
        {
            **PUBLIC,
            "cap": integer(1).optional(none=True),
            "reach": between(1e-12, 1e12).optional(none=True),
            "spread": between(0.0, 0.5).optional(),
        },
        estimate(),
        "is too large to be exact",
    ),
    # Limits
    "k_star": Entry(
        {
            "k": whole_numbers(1),
            "epsilon": EPSILON,
            "variant": word("sqrt", "min").optional(),
            "counts": counts_like("k", 2**62),
            "noise": between(1e-30, 1e30).optional(),
        },
        within(0.0),
    ),
    "least_noise": Entry({"epsilon": EPSILON}, within(0.0)),
    "dp_cramer_rao": Entry(
        {
            "information": measures(1e-250, 1e250),
            "epsilon": EPSILON,
            "counts": counts_like("information", 2**62),
        },
        within(0.0),
    ),
    "binomial_information": Entry(
        {
            "k": sizes_of_any_shape(2**62, whole=True, flat=True),
            "p": between(1e-100, 1.0, strictly=True),
        },
        shaped_like("k"),
    ),
    "beta_binomial_information": Entry(
        {
            "k": sizes_of_any_shape(10**7, whole=True, flat=True),
            "mean": between(1e-100, 1.0, strictly=True),
            "concentration": between(1e-100, 1e100, usual=(0.1, 100.0)),
        },
        shaped_like("k"),
        refuses="k must have distinct sizes of sum at most",
        times=1,
    ),
    "truncated_gaussian_information": Entry(
        {
            "mean": INSIDE,
            "sd": between(1e-6, 1e100, usual=(0.01, 10.0), sharp=False),
            "k": sizes_of_any_shape(10**4, whole=True, flat=True).optional(none=True),
        },
        information_of_tosses,
        refuses="mean .* is too extreme for sd|distinct sizes of sum at most",
        times=1,
    ),
    "window_factor": Entry({"reach": between(0.1, 3.0).optional()}, within(0, 1)),
    "moving_window_bound": Entry(
        {
            "n": integer(2),
            "variance": between(1e-30, 1e30),
            "reach": between(0.1, 3.0).optional(),
        },
        within(0),
    ),
    "midrange_variance": Entry(
        {
            "n": integer(2, 10**12),
            "variance": between(1e-30, 1e30),
            "reach": between(0.1, 3.0).optional(),
        },
        within(0),
    ),
}
