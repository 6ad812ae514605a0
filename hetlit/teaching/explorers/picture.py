"""Pictures as data: what is drawn, without saying how.

An explorer computes a `Picture` from its parameters.  Two things draw it: matplotlib
in Jupyter (`hetlit.teaching.draw`) and a custom element on the pages of the book
(`book/assets/explorer.mjs`).  Both get the same numbers, and numpy is all it takes
to compute them.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from hetlit.check import Floats
from hetlit.teaching.looks import NAMED

# Stands for 0 on a log axis: below every axis, so that it is not seen.
NOTHING = 1e-12
SUPERSCRIPTS = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


@dataclass(frozen=True)
class Axis:
    """An axis from `low` to `high`, with marks at `ticks`.

    Without ticks a logarithmic axis has one at each power of ten, or at 1, 2 and 5
    times powers of ten if it spans less than two of them; a linear axis has five.
    """

    label: str
    low: float
    high: float
    log: bool = False
    ticks: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        if not (math.isfinite(self.low) and self.low < self.high < math.inf):
            raise ValueError(f"{self.label}: no axis from {self.low} to {self.high}")
        if self.log and self.low <= 0.0:
            raise ValueError(f"{self.label}: a log axis cannot start at {self.low}")
        if not self.ticks:
            object.__setattr__(self, "ticks", tuple(self._default_ticks()))

    def _default_ticks(self) -> Iterable[float]:
        if not self.log:
            return [self.low + (self.high - self.low) * i / 4 for i in range(5)]
        powers = range(math.floor(math.log10(self.low)), 13)
        steps = (1, 2, 5) if self.high < 100.0 * self.low else (1,)
        ticks = (float(f"{step}e{power}") for power in powers for step in steps)
        return [t for t in ticks if 0.999 * self.low <= t <= 1.001 * self.high]

    @property
    def texts(self) -> tuple[str, ...]:
        """The ticks, written out."""
        return tuple(number(tick) for tick in self.ticks)


@dataclass(frozen=True)
class Line:
    """A line through the points (x, y), in this order.  Equal names share a legend."""

    x: Any
    y: Any
    look: str
    name: str = ""


@dataclass(frozen=True)
class Points:
    """A marker at every (x, y); `small` ones where there are many."""

    x: Any
    y: Any
    look: str
    name: str = ""
    small: bool = False


@dataclass(frozen=True)
class Band:
    """The area between `low` and `high` over x, shaded."""

    x: Any
    low: Any
    high: Any
    look: str
    name: str = ""


Mark = Line | Points | Band


@dataclass(frozen=True)
class Panel:
    """Two axes and what is drawn between them, from back to front."""

    x: Axis
    y: Axis
    marks: tuple[Mark, ...]

    def __post_init__(self) -> None:
        for mark in self.marks:
            if mark.look not in NAMED:
                raise ValueError(
                    f"look must be one of {tuple(NAMED)}, not {mark.look!r}"
                )
            arrays = coordinates(mark)
            if len({array.shape for array in arrays.values()}) != 1:
                raise ValueError(f"coordinates of {mark.name!r} differ in shape")
            if not all(np.isfinite(array).all() for array in arrays.values()):
                raise ValueError(f"coordinates of {mark.name!r} are not all finite")
            for name, array in arrays.items():
                if (self.x if name == "x" else self.y).log and (array <= 0.0).any():
                    raise ValueError(f"{mark.name!r} leaves its log axis: use NOTHING")


@dataclass(frozen=True)
class Picture:
    """Panels, one below the other, and what they show, in a sentence with numbers."""

    panels: tuple[Panel, ...]
    reading: str = field(kw_only=True)


def coordinates(mark: Mark) -> dict[str, Floats]:
    """Return the arrays of a mark by name, each of shape (points,)."""
    names = ("x", "low", "high") if isinstance(mark, Band) else ("x", "y")
    return {
        name: np.atleast_1d(np.asarray(getattr(mark, name), dtype=np.float64))
        for name in names
    }


def level(axis: Axis, height: float, look: str, name: str = "") -> Line:
    """Return a horizontal line along the whole of an x axis."""
    return Line((axis.low, axis.high), (height, height), look, name)


def upright(axis: Axis, place: float, look: str, name: str = "") -> Line:
    """Return a vertical line along the whole of a y axis."""
    return Line((place, place), (axis.low, axis.high), look, name)


def number(value: float, digits: int = 3) -> str:
    """Return a number in words that fit a label: few digits, no exponents like 1e-05.

    >>> [number(value) for value in (0.25, 1234567.0, 1e6, 20000, 0.00012)]
    ['0.25', '1.23·10⁶', '10⁶', '20,000', '1.2·10⁻⁴']
    >>> number(-3), number(0), number(12345.6)
    ('−3', '0', '12,300')
    """
    if value < 0:
        return "−" + number(-value, digits)
    if value == 0:
        return "0"
    rounded = float(f"{value:.{digits}g}")
    if 0.001 <= rounded < 1e6:
        return f"{rounded:,.10g}"
    power = math.floor(math.log10(rounded))
    factor = f"{rounded / 10.0**power:.{digits}g}"
    tens = "10" + str(power).translate(SUPERSCRIPTS)
    return tens if factor == "1" else f"{factor}·{tens}"


def counted(value: float, thing: str) -> str:
    """Return a number of things.

    >>> counted(1, "user"), counted(1.0004, "user"), counted(10_000, "user")
    ('1 user', '1 user', '10,000 users')
    """
    text = number(value)
    return f"{text} {thing}" if text == "1" else f"{text} {thing}s"


def percent(share: float) -> str:
    """Return a share in per cent, with a digit after the point near nothing and all.

    >>> percent(0.5), percent(0.0213), percent(0.9975), percent(0), percent(1)
    ('50%', '2.1%', '99.8%', '0%', '100%')
    >>> percent(0.0000001), percent(0.99999)
    ('less than 0.1%', 'more than 99.9%')
    """
    if share in (0, 1):
        return f"{share:.0%}"
    if 0.9995 <= share < 1:
        return "more than 99.9%"
    if 0 < share < 0.0005:
        return "less than 0.1%"
    return f"{share:.1%}" if share < 0.095 or 0.99 <= share < 1 else f"{share:.0%}"


def whole(value: float) -> str:
    """Return a whole number with all its digits.

    >>> whole(1_000_000)
    '1,000,000'
    """
    return f"{value:,.0f}"
