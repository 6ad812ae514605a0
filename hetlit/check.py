"""Argument checks shared by the whole library.

Every function returns the checked value in its plain form, or raises an error
that names the argument and says what is allowed.  It shows a number that is not, but
nothing of an array: those are people's data.
"""

from __future__ import annotations

import math
import numbers
from typing import Any

import numpy as np
from numpy.typing import NDArray

Integers = NDArray[np.int64]
Floats = NDArray[np.float64]

# Budgets of every function. Nobody needs one outside, and between these no noise
# scale, variance or exponent leaves the floats.
LEAST_EPSILON, MOST_EPSILON = 1e-12, 1e12
# Variances as such: the inverse of one is a float.
VARIANCES = (1e-300, 1e300)
# Variances that go with noise, and widths up to the second number. The squared ratio of
# any two, times the noise of the least budget, has a square within the floats.
MEASURES = (1e-30, 1e30)
# The users of a table. One of more would hardly move a sum of floats, so that rounding
# could hide her or give her away; exact sums will lift this.
MOST_USERS = 2**40
# Rates or sizes that are drawn or listed one by one, and the sum of the distinct sizes
# where each costs time in proportion: a few seconds, and less than 2 GB.
MOST_DRAWN = 10**7
# Every size up to k_max is an outcome, and nobody is cut to a larger one.
MOST_SIZES = 10**7
# Users of a cohort who are looked at one by one.
MOST_SINGLE_USERS = 10**6
# NumPy draws hypergeometric numbers from fewer samples than this.
HYPERGEOMETRIC_LIMIT = 10**9


# Statistics, sensitivities and steps of a budget: no noise scale leaves the floats.
AMOUNTS = (1e-100, 1e100)
# The least part of a budget, and the least chance to fail, that anyone can ask for.
LEAST_SHARE = 1e-9
LEAST_CHANCE = 1e-300

# NumPy calls a span of time a whole number.
NOT_NUMBERS = (bool, np.bool_, np.timedelta64)


def real(name: str, value: Any, allowed: str = "a finite number") -> float:
    """Return `value` as a finite float."""
    if isinstance(value, NOT_NUMBERS) or not isinstance(value, numbers.Real):
        raise TypeError(f"{name} must be {allowed}, not {_shown(value)}")
    try:
        number = float(value)
    except OverflowError:  # a Python integer or fraction beyond every float
        number = math.inf
    if not math.isfinite(number):
        raise ValueError(f"{name} must be {allowed}, not {_shown(value)}")
    return number


def positive(name: str, value: Any) -> float:
    """Return `value` as a finite float above zero."""
    number = real(name, value, "a finite number above 0")
    if number <= 0:
        raise ValueError(f"{name} must be a finite number above 0, not {_shown(value)}")
    return number


def epsilon(value: Any, name: str = "epsilon") -> float:
    """Return a privacy budget as a float: the one place that says what is allowed."""
    return between(name, value, LEAST_EPSILON, MOST_EPSILON)


def amount(name: str, value: Any) -> float:
    """Return a sensitivity, or what a step spends, as a float."""
    return between(name, value, *AMOUNTS)


def share(name: str, value: Any) -> float:
    """Return a part of a budget as a float, neither next to nothing nor all of it."""
    return between(name, value, LEAST_SHARE, 1.0 - LEAST_SHARE)


def chance(name: str, value: Any, high: float = 1.0) -> float:
    """Return a probability of failure as a float, above 0 and below `high`."""
    return strictly_between(name, value, LEAST_CHANCE, high)


def secret(name: str, value: Any) -> float:
    """Return a private number as a float; what is said of another does not show it."""
    allowed = f"{name} must be a number between -{AMOUNTS[1]:g} and {AMOUNTS[1]:g}"
    if isinstance(value, NOT_NUMBERS) or not isinstance(value, numbers.Real):
        raise TypeError(allowed)
    try:
        number = float(value)
    except OverflowError:
        number = math.inf
    if not abs(number) <= AMOUNTS[1]:
        raise ValueError(allowed)
    return number


def at_least(name: str, value: Any, low: float) -> float:
    """Return `value` as a finite float of at least `low`."""
    allowed = f"a finite number of at least {low:g}"
    number = real(name, value, allowed)
    if number < low:
        raise ValueError(f"{name} must be {allowed}, not {_shown(value)}")
    return number


def between(name: str, value: Any, low: float, high: float) -> float:
    """Return `value` as a float in the closed interval [low, high]."""
    allowed = f"a number in [{low:g}, {high:g}]"
    number = real(name, value, allowed)
    if not low <= number <= high:
        raise ValueError(f"{name} must be {allowed}, not {_shown(value)}")
    return number


def strictly_between(name: str, value: Any, low: float, high: float) -> float:
    """Return `value` as a float in the open interval (low, high)."""
    allowed = f"a number strictly between {low:g} and {high:g}"
    number = real(name, value, allowed)
    if not low < number < high:
        raise ValueError(f"{name} must be {allowed}, not {_shown(value)}")
    return number


def integer(name: str, value: Any, minimum: int, most: int | None = None) -> int:
    """Return `value` as an int from `minimum` to `most`, or below 2**63."""
    top = "below 2**63" if most is None else f"at most {most}"
    allowed = f"a whole number of at least {minimum} and {top}"
    if isinstance(value, NOT_NUMBERS) or not isinstance(value, numbers.Integral):
        raise TypeError(f"{name} must be {allowed}, not {_shown(value)}")
    number = int(value)
    if not minimum <= number <= (2**63 - 1 if most is None else most):
        raise ValueError(f"{name} must be {allowed}, not {_shown(value)}")
    return number


def flag(name: str, value: Any) -> bool:
    """Return `value` as a bool if it is True or False, and not just as good as one."""
    if not isinstance(value, (bool, np.bool_)):
        raise TypeError(f"{name} must be True or False, not {_shown(value)}")
    return bool(value)


def text(name: str, value: Any) -> str:
    """Return `value` if it is text."""
    if not isinstance(value, str):
        raise TypeError(f"{name} must be text, not {_shown(value)}")
    return value


def generator(name: str, value: Any) -> np.random.Generator:
    """Return `value` if it is a NumPy random generator."""
    if not isinstance(value, np.random.Generator):
        raise TypeError(f"{name} must be a numpy.random.Generator, not {_shown(value)}")
    return value


def one_of(name: str, value: Any, allowed: tuple[str, ...]) -> str:
    """Return `value` if it is one of the allowed words."""
    if not isinstance(value, str):
        raise TypeError(f"{name} must be one of {allowed}, not {_shown(value)}")
    if value not in allowed:
        raise ValueError(f"{name} must be one of {allowed}, not {_shown(value)}")
    return value


def mean_and_variance(p: Any, var_p: Any) -> tuple[float, float]:
    """Return (p, var_p), a mean and a variance that some law on [0, 1] has."""
    p = between("p", p, 0.0, 1.0)
    var_p = real("var_p", var_p, "a number in [0, p(1-p)]")
    if not 0.0 <= var_p <= p * (1.0 - p) * (1.0 + 1e-12):
        raise ValueError(
            f"var_p must be in [0, p(1-p)] = [0, {p * (1.0 - p):g}], "
            f"the variances a law on [0, 1] with mean {p:g} can have, not {var_p!r}"
        )
    return p, min(var_p, p * (1.0 - p))


def one_dimensional(name: str, values: Any) -> NDArray[Any]:
    """Return `values` as a non-empty one-dimensional array of numbers."""
    _refuse_masked(name, values)
    try:
        array = np.asarray(values)
    except ValueError as error:  # a ragged list
        raise ValueError(f"{name} must be one-dimensional: {error}") from None
    if array.ndim != 1:
        raise ValueError(f"{name} must be one-dimensional, not of shape {array.shape}")
    if array.size == 0:
        raise ValueError(f"{name} is empty; at least one entry is needed")
    if array.dtype.kind not in "iuf":
        raise TypeError(f"{name} must hold numbers, not {array.dtype}")
    return array


def integers(name: str, values: Any, minimum: int, *, copy: bool = True) -> Integers:
    """Return `values` as an int64 array, every entry at least `minimum`.

    It is a new array; with copy=False, for reading only, it can be `values` itself.
    """
    array = one_dimensional(name, values)
    if array.dtype.kind == "f":
        with np.errstate(invalid="ignore"):
            broken = ~np.isfinite(array) | (array != np.floor(array))
        _refuse(name, broken, "whole numbers")
    if array.dtype.kind == "f" and array.dtype.itemsize < 8:
        array = array.astype(np.float64)  # 2**63 does not fit the shortest floats
    if array.dtype.kind != "i":
        # 2**63 and not the largest int64, which as a float is rounded up to 2**63.
        _refuse(name, array >= 2**63, "at most 2**63 - 1")
    if array.min() < minimum:
        _refuse(name, array < minimum, f"at least {minimum}")
    return array.astype(np.int64, copy=copy)


def sizes(name: str, value: Any) -> Floats:
    """Return a size or an array of sizes of any shape as floats of at least 1."""
    _refuse_masked(name, value)
    try:
        array = np.asarray(value)
    except ValueError:  # a ragged list
        raise ValueError(f"{name} must be a number or an array of numbers") from None
    if array.dtype.kind not in "iuf":
        raise TypeError(f"{name} must be a number or an array of numbers")
    with np.errstate(over="ignore"):  # longer floats have larger numbers
        array = array.astype(np.float64)
    if not (np.isfinite(array) & (array >= 1)).all():
        raise ValueError(f"{name} must be finite and at least 1 throughout")
    return array


def whole_sizes(name: str, value: Any, most: int) -> Integers:
    """Return a size or an array of sizes of any shape as int64, from 1 to `most`."""
    array = sizes(name, value)
    if not ((array == np.floor(array)) & (array <= most)).all():
        raise ValueError(f"{name} must be whole and at most {most} throughout")
    return array.astype(np.int64)


def total_size(name: str, distinct: Integers, most: int = MOST_DRAWN) -> None:
    """Refuse distinct sizes whose sum is too large to compute something for each."""
    if distinct.sum(dtype=np.float64) > most:
        raise ValueError(f"{name} must have distinct sizes of sum at most {most}")


def floats(name: str, values: Any, *, allow_zero: bool = False) -> Floats:
    """Return `values` as a float64 array, finite and above (or at least) zero."""
    with np.errstate(over="ignore"):  # longer floats have larger numbers
        array = np.asarray(one_dimensional(name, values), dtype=np.float64)
    too_low = array < 0 if allow_zero else array <= 0
    allowed = "finite and at least 0" if allow_zero else "finite and above 0"
    _refuse(name, ~np.isfinite(array) | too_low, allowed)
    return array


def magnitudes(name: str, values: Any, low: float, high: float) -> Floats:
    """Return `values` as a float64 array, every entry in [low, high]."""
    array = floats(name, values, allow_zero=low == 0)
    _refuse(name, (array < low) | (array > high), f"in [{low:g}, {high:g}]")
    return array


def secrets(name: str, values: Any) -> Floats:
    """Return `values` as a float64 array of numbers that are not too large."""
    with np.errstate(over="ignore"):  # longer floats have larger numbers
        array = np.asarray(one_dimensional(name, values), dtype=np.float64)
    if not (np.abs(array) <= AMOUNTS[1]).all():
        raise ValueError(f"{name} must be finite, between -1e100 and 1e100")
    return array


def same_length(**arrays: NDArray[Any]) -> None:
    """Refuse arrays of different lengths."""
    if len({len(array) for array in arrays.values()}) > 1:
        lengths = ", ".join(f"{name}: {len(a)}" for name, a in arrays.items())
        raise ValueError(f"all arrays must have the same length, not {lengths}")


def _refuse(name: str, broken: Any, allowed: str) -> None:
    # Which entry it is, or its value, could give someone's data away.
    if broken.any():
        raise ValueError(f"{name} must be {allowed} throughout")


def _refuse_masked(name: str, values: Any) -> None:
    masked = np.ma.is_masked(values)
    if isinstance(values, (list, tuple)):  # NumPy would drop the masks within
        inside = (entry for entry in values if isinstance(entry, np.ma.MaskedArray))
        masked = any(np.ma.is_masked(entry) for entry in inside)
    if masked:
        raise ValueError(f"{name} must have no masked entries")


def _shown(value: Any) -> str:
    """Return what an error shows of an argument: a number or a word, and no data."""
    if value is not None and not isinstance(value, (numbers.Number, str)):
        return f"of type {type(value).__name__}"
    try:
        return repr(value)[:100]
    except ValueError:  # Python does not print numbers of thousands of digits
        return "a number of so many digits"
