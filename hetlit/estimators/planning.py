"""Before spending: what error to expect, from public numbers only.

`plan` says which way the default would go and how large its error would be, and sets
beside it the plain mean and what samples alone would cost without privacy, for several
spreads of the users' rates.  Turned around, it says what epsilon a wanted error needs.

What it assumes: that rates do not depend on sizes and have light tails, and that the
first guesses of a run are right.  Where the default makes no first guesses, and for the
plain mean, its errors are exact, but for what moving values does: into [0, 1], which
only helps, and towards the anchor, which is rare.

Privacy: no user's samples play a part, and nothing is spent.  Where sizes are private
they must not be read either, so the caller gives a guess of them that is public: last
year's published figures, or another product's.  A forecast made from private sizes is
not private, and neither is an epsilon that was chosen by it.

Chapter: A realizable estimator.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from html import escape
from typing import Any

import numpy as np

from hetlit import check
from hetlit.estimators import tails
from hetlit.estimators.anchor import settle
from hetlit.estimators.card import FRAME, LINE
from hetlit.estimators.public_size import auto as public_size
from hetlit.estimators.spread import CAUTIOUS_SPREAD
from hetlit.estimators.uncertainty import Clipped, Uncertainty, of_plain_mean
from hetlit.theory.variance import plain_variance, variance_of_mean
from hetlit.users.groups import Sizes, by_size_class
from hetlit.users.table import Users

SPREADS = (0.0, 0.02, 0.05, 0.1, 0.2)  # standard deviations of the users' rates
METHODS = {
    "plain": "the mean of all user means; weights would gain little",
    "cautious": "a weighted mean, without first guesses; they would not pay",
    "adaptive": "private first guesses, then a mean with the weights they suggest",
}
# An epsilon that is looked for has three digits: so many in each power of ten.
DIGITS = 900
LAST = 24 * DIGITS  # from 1e-12 to 1e12
STEP = 300  # a third of a power of ten


@dataclass(frozen=True, kw_only=True)
class Line:
    """What to expect if the users' rates have one spread.

    An error is a root mean squared error, a half-width half the length of an interval.

    spread : the standard deviation of the users' rates
    path : what the default would do with them: "plain" or "cautious", or "clipped" or
        "unclipped" after first guesses
    error : of the default
    half_width : of the interval that the default would give
    plain_error : of ``method="plain"``
    plain_half_width : of the interval that ``method="plain"`` would give
    sampling_error : without privacy, with the best weights
    """

    spread: float
    path: str
    error: float
    half_width: float
    plain_error: float
    plain_half_width: float
    sampling_error: float


@dataclass(frozen=True, kw_only=True, repr=False)
class Forecast:
    """What to expect of a release.  It prints itself as a table.

    n : the number of users
    epsilon : the total budget, as given or as found
    k_max : the public bound on sizes if they are private, None if they are public
    mean : the population mean that was assumed
    level : of the intervals
    method : the plan of the default: "plain", "cautious" or "adaptive"
    lines : one `Line` for each spread
    """

    n: int
    epsilon: float
    k_max: int | None
    mean: float
    level: float
    method: str
    lines: tuple[Line, ...]

    @property
    def _titles(self) -> tuple[str, str]:
        sizes = "public" if self.k_max is None else f"private, at most {self.k_max}"
        setting = f"epsilon {self.epsilon:.4g}, mean {self.mean:g}"
        return (
            f"Forecast for {self.n} users, sizes {sizes}, {setting}",
            f"Default: {METHODS[self.method]}",
        )

    @property
    def _heads(self) -> tuple[str, str, str]:
        level = f"{100.0 * self.level:.6g}%"
        return "rates'", "expected error", f"half of the {level} interval"

    @property
    def _rows(self) -> list[list[str]]:
        rows = [["sd", "default", "plain", "no privacy", "default", "plain"]]
        for line in self.lines:
            errors = (line.error, line.plain_error, line.sampling_error)
            numbers = (*errors, line.half_width, line.plain_half_width)
            rows.append([f"{line.spread:g}", *(f"{x:.2g}" for x in numbers)])
        return rows

    def __repr__(self) -> str:
        first, errors, widths = self._heads
        lines = [*self._titles, f"{first:<8}{errors:<34}{widths}"]
        for row in self._rows:
            cells = "".join(f"{cell:<{w}}" for cell, w in zip(row, WIDTHS, strict=True))
            lines.append(cells.rstrip())
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        first, errors, widths = (escape(head) for head in self._heads)
        names, *rows = self._rows
        right = 'style="text-align: right; padding: 0.1em 0.7em"'
        table = (
            f"<tr><th {right}>{first}</th>"
            f'<th {right} colspan="3">{errors}</th>'
            f'<th {right} colspan="2">{widths}</th></tr>'
        )
        cells = "".join(f'<th {right} scope="col">{name}</th>' for name in names)
        table += f'<tr style="border-bottom: {LINE}">{cells}</tr>'
        for spread, *numbers in rows:
            cells = "".join(f"<td {right}>{number}</td>" for number in numbers)
            table += f'<tr><th {right} scope="row">{spread}</th>{cells}</tr>'
        titles = "".join(f"<div>{escape(title)}</div>" for title in self._titles)
        table = f'<table style="border-collapse: collapse">{table}</table>'
        return f'<div style="{FRAME}">{titles}{table}</div>'


WIDTHS = (8, 11, 11, 12, 11, 11)  # of the columns of a printed forecast


@dataclass(frozen=True, kw_only=True)
class Release:
    """One way to release a mean, with some budget, of users of some sizes.

    method : as in `Forecast`
    variance : its mean squared error, for a variance of the users' rates
    run : the path of a run that goes as expected, and what it would say of itself
    """

    method: str
    variance: Callable[[float], float]
    run: Callable[[float], tuple[str, Uncertainty]]


def plan(
    sizes: Any,
    epsilon: float | None = None,
    *,
    error: float | None = None,
    counts: Any = None,
    mean: float = 0.5,
    spreads: Any = None,
    level: float = 0.95,
) -> Forecast:
    """Return what to expect of the default and of the plain mean, before spending.

    Parameters
    ----------
    sizes : how many samples users have: an array of shape (rows,), or a `Users` table,
        of which only sizes and counts are used
    epsilon : the total user-level privacy budget, in [1e-12, 1e12]
    error : in place of epsilon, a root mean squared error above 0 and below 1 that the
        default must keep at every spread; the forecast is for the epsilon it needs
    counts : shape (rows,), how many users have which size; one each if None
    mean : the population mean, in [0, 1]; 1/2 is the worst case
    spreads : standard deviations of the users' rates, from 0 to sqrt(mean (1 - mean));
        if None 0, 0.02, 0.05, 0.1 and 0.2, as far as the mean allows
    level : of the intervals, strictly between 0 and 1

    Privacy: it sees no user's samples, and spends nothing.

    Chapter: A realizable estimator.

    >>> from hetlit import sizes
    >>> plan(sizes.equal(10_000, 20), epsilon=1.0)
    Forecast for 10000 users, sizes public, epsilon 1, mean 0.5
    Default: the mean of all user means; weights would gain little
    rates'  expected error                    half of the 95% interval
    sd      default    plain      no privacy  default    plain
    0       0.0011     0.0011     0.0011      0.0098     0.0098
    0.02    0.0011     0.0011     0.0011      0.0098     0.0098
    0.05    0.0012     0.0012     0.0012      0.0098     0.0098
    0.1     0.0015     0.0015     0.0015      0.0098     0.0098
    0.2     0.0023     0.0023     0.0022      0.0098     0.0098
    >>> plan(sizes.equal(10_000, 20), error=0.003).epsilon
    0.0712
    """
    if (epsilon is None) is (error is None):
        raise TypeError("epsilon or error must be given: one of them, and not both")
    budget = None if epsilon is None else check.epsilon(epsilon)
    if error is not None:
        error = check.strictly_between("error", error, 0.0, 1.0)
    mean = check.between("mean", mean, 0.0, 1.0)
    chosen = _checked_spreads(spreads, mean)
    level = check.strictly_between("level", level, 0.0, 1.0)
    guessed = _checked_sizes(sizes, counts)

    def release(epsilon: float) -> Release:
        return _public_release(guessed, epsilon, mean)

    if error is not None:
        budget = _needed_epsilon(release, guessed, error, mean, chosen)
    assert budget is not None
    default, plain = release(budget), _plain_release(guessed, budget, mean)
    return Forecast(
        n=guessed.n,
        epsilon=budget,
        k_max=None,
        mean=mean,
        level=level,
        method=default.method,
        lines=tuple(
            _line(default, plain, guessed, mean, spread, level) for spread in chosen
        ),
    )


def _checked_spreads(spreads: Any, mean: float) -> list[float]:
    most = math.sqrt(mean * (1.0 - mean))
    if spreads is None:
        return [spread for spread in SPREADS if spread <= most]
    chosen = check.floats("spreads", spreads, allow_zero=True)
    if (chosen > most * (1.0 + 1e-12)).any():
        raise ValueError(
            f"spreads must be at most sqrt(mean (1 - mean)) = {most:g} throughout, the "
            f"largest that rates in [0, 1] can have"
        )
    return [min(float(spread), most) for spread in chosen]


def _checked_sizes(sizes: Any, counts: Any) -> Sizes:
    if isinstance(sizes, Users):
        if counts is not None:
            raise TypeError("counts must be None for a table, which has its own")
        return by_size_class(sizes).sizes
    k = check.integers("sizes", sizes, 1, copy=False)
    return by_size_class(Users(k, np.zeros_like(k), counts)).sizes


def _line(
    default: Release,
    plain: Release,
    sizes: Sizes,
    mean: float,
    spread: float,
    level: float,
) -> Line:
    """Return what to expect for one spread."""
    path, uncertainty = default.run(spread**2)
    _, plain_uncertainty = plain.run(spread**2)
    return Line(
        spread=spread,
        path=path,
        error=_error(default, mean, spread),
        half_width=_half_width(uncertainty, mean, level),
        plain_error=_error(plain, mean, spread),
        plain_half_width=_half_width(plain_uncertainty, mean, level),
        sampling_error=_sampling_error(sizes, mean, spread),
    )


def _error(release: Release, mean: float, spread: float) -> float:
    """Return the root mean squared error; a value in [0, 1] cannot be farther off."""
    return min(math.sqrt(release.variance(spread**2)), max(mean, 1.0 - mean))


def _half_width(uncertainty: Uncertainty, mean: float, level: float) -> float:
    """Return half the length of the interval within [0, 1], around the mean."""
    width = uncertainty.half_width(level)
    return (min(mean + width, 1.0) - max(mean - width, 0.0)) / 2.0


def _sampling_error(sizes: Sizes, mean: float, spread: float) -> float:
    """Return the error of the mean with the best weights, without privacy."""
    variances = variance_of_mean(sizes.k, mean * (1.0 - mean), spread**2)
    least = float(variances.min())
    if least == 0.0:  # every sample is the same
        return 0.0
    return math.sqrt(least / float(np.sum(sizes.counts * (least / variances))))


# What epsilon an error needs


def _needed_epsilon(
    release: Callable[[float], Release],
    sizes: Sizes,
    error: float,
    mean: float,
    spreads: list[float],
) -> float:
    """Return the least epsilon of three digits that keeps the error at every spread.

    A larger epsilon may bring another plan, and with it a somewhat larger error.  So
    epsilons are tried from below, a third of a power of ten apart, up to the first that
    will do; the last gap is then halved.
    """
    hardest_first = sorted(spreads, reverse=True)

    def keeps(place: int) -> bool:
        default = release(_three_digits(place))
        return all(_error(default, mean, s) <= error for s in hardest_first)

    reached = _sampling_error(sizes, mean, hardest_first[0]) <= error
    high = next((x for x in range(0, LAST + 1, STEP) if reached and keeps(x)), None)
    if high is None:
        default = release(_three_digits(LAST))
        raise ValueError(_unreachable(error, default, sizes, mean, hardest_first))
    low = max(high - STEP, 0)
    while high - low > 1:
        middle = (low + high) // 2
        if keeps(middle):
            high = middle
        else:
            low = middle
    return _three_digits(high)


def _three_digits(place: int) -> float:
    """Return the number at a place among 1.00e-12, 1.01e-12, ..., 9.99e11, 1e12.

    >>> _three_digits(0), _three_digits(899), _three_digits(900), _three_digits(LAST)
    (1e-12, 9.99e-12, 1e-11, 1000000000000.0)
    """
    power, digits = divmod(place, DIGITS)
    return float(f"{100 + digits}e{power - 14}")


def _unreachable(
    error: float, largest: Release, sizes: Sizes, mean: float, spreads: list[float]
) -> str:
    least, spread = max((_error(largest, mean, s), s) for s in spreads)
    sampling = _sampling_error(sizes, mean, spread)
    return (
        f"error must be larger, not {error:g}: no epsilon suffices.  If rates have a "
        f"standard deviation of {spread:g}, users of these sizes have a sampling error "
        f"of {sampling:.3g} without privacy, and the default one of {least:.3g}, "
        "however large epsilon is.  Leave out spreads that cannot be, or find "
        "more users"
    )


# Releases


def _plain_release(sizes: Sizes, epsilon: float, mean: float) -> Release:
    """Return the mean of all user means, for sizes of both kinds."""
    n, q = sizes.n, mean * (1.0 - mean)
    uncertainty = of_plain_mean(mean, n, 1.0 / (n * epsilon))
    return Release(
        method="plain",
        variance=lambda var_p: plain_variance(
            sizes.k, sizes.counts, q, var_p, n, epsilon
        ),
        run=lambda var_p: ("plain", uncertainty),
    )


def _public_release(sizes: Sizes, epsilon: float, mean: float) -> Release:
    """Return the default for public sizes."""
    plans = public_size.make_plans(sizes, epsilon)
    if plans.adaptive is None and plans.cautious is None:
        return _plain_release(sizes, epsilon, mean)
    # Planning does not tell rarer rates from one success among all users.
    rare = 1.0 / (4.0 * sizes.n)
    mean = min(max(mean, rare), 1.0 - rare)
    return Release(
        method="cautious" if plans.adaptive is None else "adaptive",
        variance=lambda var_p: public_size.expected_variance(plans, mean, var_p),
        run=lambda var_p: _public_run(plans, mean, var_p),
    )


def _public_run(
    plans: public_size.Plans, mean: float, var_p: float
) -> tuple[str, Uncertainty]:
    """Return path and uncertainty if first guesses are right and nobody is far off."""
    sizes, q = plans.sizes, mean * (1.0 - mean)
    if plans.adaptive is None:
        assert plans.cautious is not None
        left = plans.epsilon - plans.anchor_epsilon
        final, path = public_size.Final(mean=plans.cautious, epsilon=left), "cautious"
        spread, most_spread = CAUTIOUS_SPREAD * q, math.inf
    else:
        spread = min(var_p + plans.adaptive.resolution * q, q)
        final, path = plans.adaptive.final(mean, q, spread), "unclipped"
        most_spread = math.inf
    clipped = None
    if final.test is not None:
        test = final.test.intervals
        caught = test.users * tails.light_share(test.reach)
        move = test.worst_move(mean)
        most_spread = public_size.SPREADS * spread + test.variance(mean, caught)
        path = "clipped"
        clipped = Clipped(moved=move * caught, noise=move / final.test.epsilon)
    settled = settle(
        mean,
        final.mean.sensitivity / final.epsilon,
        mean,
        1.0 / (sizes.n * plans.anchor_epsilon),
        k=sizes.k,
        counts=sizes.counts,
        weights=final.mean.weights,
        n=sizes.n,
        q=q,
        spread=spread,
        most_spread=most_spread,
        clipped=clipped,
    )
    return path, settled.uncertainty
