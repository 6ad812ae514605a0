"""Kinds of arguments: what each can be, and what it must not be.

A kind draws valid values, with the ends of its range and odd types among them, and
invalid ones.  Both see the arguments drawn before, because some go together: sizes and
successes, a mean and a variance.  `tools.fuzz_names` says which name takes which kinds.
"""

from __future__ import annotations

import functools
import math
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from fractions import Fraction
from typing import Any, TypeAlias

import numpy as np
from numpy.random import Generator

import hetlit

Drawn: TypeAlias = Mapping[str, Any]
Draw: TypeAlias = Callable[[Generator, Drawn], Any]
Bound: TypeAlias = float | Callable[[Drawn], float]

ABSENT = object()  # an argument that the call leaves out
LARGEST = 2**63 - 1
FINITE = sys.float_info.max
MOST_USERS = 2**40
RARE = 1 / 300  # how often an end of a range is tried where it costs time


@dataclass(frozen=True)
class Kind:
    """What an argument can be.

    valid : draws a value to be accepted
    invalid : draws a value to be refused; None where there is none, as for `self`
    also : what an error may name in place of the argument
    """

    valid: Draw
    invalid: Draw | None = None
    also: tuple[str, ...] = ()

    def optional(self, *, none: bool = False) -> Kind:
        """Return this kind, left out half of the time or, where allowed, None."""

        def valid(rng: Generator, drawn: Drawn) -> Any:
            if rng.random() < 0.5:
                return None if none and rng.random() < 0.5 else ABSENT
            return self.valid(rng, drawn)

        def invalid(rng: Generator, drawn: Drawn) -> Any:
            value = None
            while value is None and self.invalid is not None:
                value = self.invalid(rng, drawn)
            return value

        if none and self.invalid is not None:
            return replace(self, valid=valid, invalid=invalid)
        return replace(self, valid=valid)


def pick(rng: Generator, options: Sequence[Any]) -> Any:
    """Return one of several options, without making an array of them."""
    return options[int(rng.integers(len(options)))]


def things(*options: Any) -> Draw:
    """Return what draws one of some fixed values."""
    return lambda rng, drawn: pick(rng, options)


def fixed(make: Callable[[Generator], Any]) -> Kind:
    """Return the kind of an argument that is never wrong, such as `self`."""
    return Kind(lambda rng, drawn: make(rng))


def empty() -> Iterator[int]:
    """Return a generator, which is no number and no array."""
    yield from ()


def nested(depth: int) -> list[Any]:
    """Return a list in a list in a list."""
    return functools.reduce(lambda inner, _: [inner], range(depth), [1])


# Numbers

NOT_NUMBERS: tuple[Any, ...] = (
    *(math.nan, math.inf, -math.inf, np.float32("nan"), np.float16("-inf")),
    *("1", "", b"1", 1j, np.complex64(1), [1], (0.5,), {}, np.array([1.0]), object()),
    *(np.timedelta64(1), np.timedelta64(1, "s"), np.datetime64(1, "s"), Decimal("0.5")),
    *(True, np.False_, np.array(0.5), np.ma.masked, Decimal("nan"), np.array([])),
    *(10**400, -(10**400), Fraction(10**400), 10**5000, nested(3), int, len),
)


def wrong_number(rng: Generator, *more: Any) -> Any:
    """Return something that is no number in any range, or one of `more`."""
    return pick(rng, (*more, *more, *more, None, empty(), *NOT_NUMBERS))


def dressed(rng: Generator, number: float, fits: Callable[[float], bool]) -> Any:
    """Return a number as one of the types that count as numbers, if it still fits."""
    kinds = (float, np.float64, np.float32, np.float16, np.longdouble, Fraction)
    kind = pick(rng, (*kinds, int, np.int8, np.uint8))
    if kind in (int, np.int8, np.uint8):
        number_is_whole = number == math.floor(number) and _holds(kind, int(number))
        return kind(number) if number_is_whole else number
    with np.errstate(all="ignore"):
        changed = kind(number)
        return changed if fits(float(changed)) else number


def between(
    low: Bound,
    high: Bound,
    *,
    strictly: bool = False,
    usual: tuple[float, float] | None = None,
    sharp: bool = True,
) -> Kind:
    """Return the kind of numbers in a range, `strictly` without its ends.

    `usual` is where most of them lie.  Unless the range is `sharp`, what is just
    outside may be valid, too, and only what is far outside is wrong.
    """

    def ends(drawn: Drawn) -> tuple[float, float]:
        least, most = _at(low, drawn), _at(high, drawn)
        if strictly:
            return math.nextafter(least, math.inf), math.nextafter(most, -math.inf)
        return least, most

    def valid(rng: Generator, drawn: Drawn) -> Any:
        least, most = ends(drawn)
        if least >= most:
            return least
        number = _somewhere(rng, least, most, usual)
        return dressed(rng, number, lambda x: least <= x <= most)

    def invalid(rng: Generator, drawn: Drawn) -> Any:
        least, most = ends(drawn)
        outside = [least - 1.0, 2.0 * abs(most) + 1.0]
        if sharp:
            outside += [math.nextafter(least, -math.inf), -1e308]
            outside += [math.nextafter(most, math.inf), 1.7e308]
        return wrong_number(rng, *(x for x in outside if not least <= x <= most))

    return Kind(valid, invalid)


def integer(low: Bound, high: Bound = LARGEST, *, usual: int = 1000) -> Kind:
    """Return the kind of whole numbers in a range, most of them up to `usual`."""

    def valid(rng: Generator, drawn: Drawn) -> Any:
        a, b = int(_at(low, drawn)), int(_at(high, drawn))
        top = min(b, max(usual, a))
        number = b if rng.random() < RARE else pick(rng, (a, top, None, None, None))
        if number is None:
            number = int(math.exp(rng.uniform(math.log(a + 1), math.log(top + 1))))
            number = min(max(number, a), top)
        types = (int, np.int64, np.uint64, np.int32, np.uint8, np.int8, np.int16)
        kind = pick(rng, types)
        return kind(number) if _holds(kind, number) else number

    def invalid(rng: Generator, drawn: Drawn) -> Any:
        a, b = int(_at(low, drawn)), int(_at(high, drawn))
        outside = (a - 1, -1, -LARGEST, b + 1, 2 * b, 2**63, 2**64, np.uint64(2**63))
        fractions = (a + 0.5, a + 1.0, np.float64(a + 1), Fraction(a + 1))
        refused = [x for x in outside if not a <= int(x) <= b]
        return wrong_number(rng, *refused, *fractions)

    return Kind(valid, invalid)


def _holds(kind: Any, number: int) -> bool:
    """Return whether an integer type has this number."""
    return kind is int or np.iinfo(kind).min <= number <= np.iinfo(kind).max


def _at(bound: Bound, drawn: Drawn) -> float:
    return bound(drawn) if callable(bound) else bound


def _somewhere(
    rng: Generator, low: float, high: float, usual: tuple[float, float] | None
) -> float:
    """Return an end, a number near zero, or one in between on either scale."""
    where = rng.random()
    if where < 0.2:
        return float(pick(rng, (low, high)))
    if usual is not None and where < 0.8 and usual[0] < high and usual[1] > low:
        low, high = max(low, usual[0]), min(high, usual[1])
    share = rng.random()
    number = low * (1.0 - share) + high * share
    if low >= 0.0 and where > 0.5:
        # Between the logarithms; the floats end at 5e-324.
        least, most = math.log(max(low, 5e-324)), math.log(max(high, 5e-324))
        number = math.exp(least * (1.0 - share) + most * share)
    return float(min(max(number, low), high))


EPSILON = between(1e-12, 1e12, usual=(0.05, 20.0))
PROBABILITY = between(0.0, 1.0)
INSIDE = between(0.0, 1.0, strictly=True)
CHANCE = between(1e-300, 1.0, strictly=True)  # of failure
SHARE = between(1e-9, 1.0 - 1e-9)  # of a budget
VARIANCE_OF_RATES = between(
    0.0,
    lambda drawn: float(drawn["p"]) * (1.0 - float(drawn["p"])),
    sharp=False,  # a little more is taken for rounding
)

# Words, flags and functions

FLAG = Kind(
    things(True, False, np.True_, np.False_),
    things("yes", "False", None, 2, 0.0, [], [True], np.array([1, 2]), math.nan, len),
)


def word(*allowed: str) -> Kind:
    """Return the kind of a choice between words."""
    near = ("", "?", allowed[0] + " ", allowed[0][:-1])
    other: tuple[Any, ...] = (b"auto", None, 0, 1.5, [], {}, np.array(["auto"]), len)
    return Kind(things(*allowed), things(*near, *other, True))


TEXT = Kind(
    things("first", "", "a b", "ä", "x" * 1000),
    things(None, 5, 1.5, b"first", ["first"], len, math.nan, True),
)


def width_in_place(k: Any) -> Any:
    """Return half-widths in the array of sizes itself, as a careless user would."""
    k **= -0.5
    return k


WIDTH = Kind(
    things(
        None,
        lambda k: 1.0,
        lambda k: 0,
        lambda k: 1.0 / np.sqrt(k),
        lambda k: list(1.0 / k),
        lambda k: np.full(k.shape, 1e308),
        lambda k: np.zeros(k.shape, dtype=np.float16),
        lambda k: hetlit.sub_gaussian_width(k, n=1000, proxy=0.01, beta=0.05),
        width_in_place,
    ),
    things(
        *("wide", 0.5, np.ones(3), [], True),
        *(lambda k: None, lambda k: "wide", lambda k: math.nan, lambda k: -1.0),
        *(lambda k: math.inf, lambda k: 1j, lambda k: np.ones(len(k) + 1)),
        *(lambda k: np.ones((len(k), 2)), lambda: 1.0, lambda k, n: 1.0, lambda k: {}),
        *(lambda k: [[1.0], [1.0, 2.0]], lambda k: np.ones(k.shape, "m8[s]")),
    ),
)
# No option has this name: an estimator must say so.
TYPO = Kind(things(ABSENT), things(None, 1, "auto"))


# Randomness

NO_GENERATORS: tuple[Any, ...] = (
    0,
    1.5,
    "rng",
    np.random.RandomState(0),
    np.random,
    [],
    len,
)


def generator_of(rng: Generator) -> Generator:
    """Return a generator of its own for the call."""
    seed = int(rng.integers(2**32))
    kind = pick(rng, (np.random.PCG64, np.random.MT19937, np.random.SFC64))
    return np.random.Generator(kind(seed))


GENERATOR = Kind(
    lambda rng, drawn: generator_of(rng), things(None, *NO_GENERATORS, generator_of)
)


# Arrays


def rows(rng: Generator) -> int:
    """Return a number of rows: one, a few, or some hundreds."""
    return int(pick(rng, (1, 2, rng.integers(1, 20), rng.integers(1, 20), 300)))


def disguised(rng: Generator, values: Any) -> Any:
    """Return an array as a list, a view, or an array of another type, all the same."""
    array = np.asarray(values)
    kind = int(rng.integers(11))
    if kind == 0:
        return array.tolist()
    if kind == 1:
        return tuple(array.tolist())
    if kind == 2:
        return np.repeat(array, 2)[::2]
    if kind == 3:
        return array[::-1].copy()[::-1]
    if kind == 4:
        array = array.copy()
        array.flags.writeable = False
        return array
    if kind == 5:
        return np.ma.array(array)
    if kind == 6:
        return list(array)
    types = (">i8", "u8", "i2", "u1", "i1", "f4", "f2", ">f8", "g", "f8", "i4", "u4")
    with np.errstate(all="ignore"):
        other = array.astype(pick(rng, types)) if kind < 10 else array
        # As exact numbers: comparing an integer with a float rounds it first.
        same = other.tolist() == array.tolist()
    return other if same else array


def numbers_like(like: str | None, rng: Generator, drawn: Drawn) -> int:
    """Return how many rows an array needs to go with another argument."""
    return rows(rng) if like is None else len(drawn[like])


def array_of(
    draw: Callable[[Generator, int, Drawn], Any],
    like: str | None = None,
    wrong: tuple[Any, ...] = (math.inf, -math.inf),
) -> Kind:
    """Return the kind of arrays that `draw` makes, as long as the argument `like`.

    `wrong` are numbers that it must not have.
    """

    def valid(rng: Generator, drawn: Drawn) -> Any:
        return disguised(rng, draw(rng, numbers_like(like, rng, drawn), drawn))

    def invalid(rng: Generator, drawn: Drawn) -> Any:
        good = np.asarray(draw(rng, numbers_like(like, rng, drawn), drawn))
        return broken(rng, good, wrong, like is not None)

    return Kind(valid, invalid)


def broken(
    rng: Generator, good: Any, wrong: tuple[Any, ...], measured: bool = False
) -> Any:
    """Return a good array with a wrong entry, of a wrong type or of a wrong shape."""
    entries = good.tolist()
    if rng.random() < 0.5:
        never = (math.nan, "1", None, 1j, [1, 2], 10**400, b"1")
        place = int(rng.integers(len(entries)))
        entries[place] = pick(rng, (*wrong, *wrong, *never, Decimal(1), empty()))
        return entries
    longer = (np.concatenate((good, good[:1])), entries * 2) if measured else ()
    masked = np.ma.array(good, mask=np.arange(len(good)) == 0)
    times = np.ones(good.shape, dtype="m8[s]")
    others = good.astype(object), good.astype(complex), times
    return pick(
        rng,
        (
            *(
                None,
                "1",
                b"11",
                1,
                0.5,
                math.nan,
                [],
                (),
                np.zeros(0),
                {},
                {1},
                empty(),
            ),
            *(good[:, None], [entries], [[1], [1, 2]], good[0], nested(100), len, [[]]),
            *(masked, [masked], good > 0, *others, good.astype(str), np.zeros((0, 2))),
            *(object(), [object()], np.array(None), iter(entries), *longer),
        ),
    )


def measures(low: float, high: float, like: str | None = None) -> Kind:
    """Return the kind of arrays of floats in a range, of one or many magnitudes."""

    def draw(rng: Generator, count: int, drawn: Drawn) -> Any:
        if rng.random() < 0.3:
            return np.full(count, _somewhere(rng, low, high, None))
        if rng.random() < 0.5:
            return np.clip(rng.uniform(0.01, 1.0, count), low, high)
        return np.array([_somewhere(rng, low, high, None) for _ in range(count)])

    below, above = math.nextafter(low, -math.inf), math.nextafter(high, math.inf)
    return array_of(draw, like, (below, above, math.inf, -math.inf))


def whole_numbers(
    low: int, high: Bound = LARGEST, like: str | None = None, usual: int = 1000
) -> Kind:
    """Return the kind of arrays of whole numbers in a range, many of them small."""

    def draw(rng: Generator, count: int, drawn: Drawn) -> Any:
        return some_sizes(rng, count, low, int(_at(high, drawn)), usual)

    return array_of(draw, like, (low - 1, -1, 1.5, math.inf, 2**63, 2**64))


def some_sizes(
    rng: Generator, count: int, low: int, high: int, usual: int = 1000
) -> Any:
    """Return whole numbers in a range: all alike, uneven, or up to its end."""
    top = pick(rng, (low, min(usual, high), min(usual, high), high))
    if top == low:
        return np.full(count, low, dtype=np.int64)
    logs = rng.uniform(math.log(low + 1), math.log(top + 1), count)
    values = np.exp(logs).clip(low, 2.0**62).astype(np.int64).clip(low, top)
    values[0] = top if rng.random() < 0.5 else values[0]
    return values


def some_counts(rng: Generator, count: int, most: int = MOST_USERS) -> Any:
    """Return users per row: one, some, or as many as a table may have in all."""
    if rng.random() < 0.3:
        return np.ones(count, dtype=np.int64)
    counts = some_sizes(rng, count, 1, most // count)
    if rng.random() < 0.1:
        counts[0] += most - int(counts.sum())
    return counts


def counts_like(like: str, most: int = MOST_USERS) -> Kind:
    """Return the kind of numbers of users, one for each entry of `like`."""
    kind = array_of(
        lambda rng, count, drawn: some_counts(rng, count, most),
        like,
        (0, -1, 1.5, math.inf, 2**63, 2**64),
    )
    return kind.optional(none=True)


def some_successes(rng: Generator, k: Any) -> Any:
    """Return numbers of ones: none, all, or as many as a rate says."""
    if rng.random() < 0.3:
        return np.zeros_like(k) if rng.random() < 0.5 else k.copy()
    rates = rng.random() if rng.random() < 0.5 else rng.random(len(k))
    return np.minimum((k * rates).astype(np.int64), k)


SUCCESSES = array_of(
    lambda rng, count, drawn: some_successes(rng, exact(drawn["k"])),
    "k",
    (-1, 0.5, math.inf, 2**63),
)


def exact(values: Any) -> Any:
    """Return whole numbers in any disguise as int64."""
    return np.array([int(value) for value in values], dtype=np.int64)


def sizes_of_any_shape(high: int, *, whole: bool, flat: bool = False) -> Kind:
    """Return the kind of k where it is a number or an array, `flat` or of any shape."""

    def valid(rng: Generator, drawn: Drawn) -> Any:
        sizes = some_sizes(rng, rows(rng) % 30 + 1, 1, min(high, 10**9), min(high, 300))
        if not whole and rng.random() < 0.3:
            sizes = sizes + rng.random(len(sizes))
        if not flat and rng.random() < 0.2:
            return sizes.reshape(1, -1, 1)
        single = int(sizes[0])
        shapes = (single, float(single), np.array(single), np.int32(single))
        return pick(rng, shapes) if rng.random() < 0.4 else disguised(rng, sizes)

    def invalid(rng: Generator, drawn: Drawn) -> Any:
        # As floats, numbers next to a large one are the same.
        above = high + 1 if high < 2**53 else 2 * high
        unfit = (above, 2 * high, 1.5) if whole else ()
        if rng.random() < 0.5:
            wrong = (0, -1, 0.5, math.nan, math.inf, *unfit, [1, 0], [1, math.nan])
            never: tuple[Any, ...] = (
                "1",
                None,
                1j,
                [[1], [1, 2]],
                b"1",
                object(),
                [None],
                {},
                empty(),
            )
            time = (np.timedelta64(1), np.array([1], "m8[s]"), True, [True], 10**400)
            return pick(rng, (*wrong, *never, *time, Decimal(2), np.ma.masked, ["1"]))
        good = some_sizes(rng, rows(rng), 1, 300)
        entries = good.tolist()
        entries[0] = pick(rng, (0, -1, math.nan, math.inf, None, "1", 10**400, *unfit))
        return entries

    return Kind(valid, invalid)


# Users


def some_users(
    rng: Generator, least: int = 1, k_max: int = LARGEST, most: int = MOST_USERS
) -> hetlit.Users:
    """Return a table of at least so many users, with or without counts."""
    count = rows(rng)
    listed = rng.random() < 0.4
    if listed:
        count = max(count, least)
    k = some_sizes(rng, count, 1, k_max, min(k_max, 300))
    if listed:
        return hetlit.Users(k, some_successes(rng, k))
    counts = some_counts(rng, count, most)
    counts[-1] += max(0, least - int(counts.sum()))
    return hetlit.Users(k, some_successes(rng, k), counts)


NOT_USERS: tuple[Any, ...] = (
    None,
    "users",
    5,
    [],
    {"k": [1], "successes": [0]},
    hetlit.Users,
    object(),
)


def users(least: int = 1, k_max: int = LARGEST) -> Kind:
    """Return the kind of tables of at least so many users, of at most so many samples.

    Fewer are wrong.
    """

    def invalid(rng: Generator, drawn: Drawn) -> Any:
        few = [hetlit.Users([1], [0])] if least > 1 else []
        return pick(rng, (*few, *NOT_USERS, np.ones(3), [[0, 1]]))

    return Kind(lambda rng, drawn: some_users(rng, least, k_max), invalid)
