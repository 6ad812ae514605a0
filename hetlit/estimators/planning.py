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

Chapter: A realizable estimator; Private k.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from hetlit import check
from hetlit.check import MOST_SIZES
from hetlit.estimators import tails
from hetlit.estimators.anchor import anchor_error, anchor_share, settle
from hetlit.estimators.forecast import Forecast, Line
from hetlit.estimators.private_k import auto as private_k
from hetlit.estimators.public_size import auto as public_size
from hetlit.estimators.spread import (
    CAUTIOUS_SPREAD,
    JUDGED_SPREADS,
    WORTHWHILE,
    mean_log_ratio,
)
from hetlit.estimators.uncertainty import Clipped, Uncertainty, of_plain_mean
from hetlit.theory.variance import plain_variance, variance_of_mean
from hetlit.users.groups import Sizes, by_size_class, classes_up_to
from hetlit.users.table import Users

SPREADS = (0.0, 0.02, 0.05, 0.1, 0.2)  # standard deviations of the users' rates
# An epsilon that is looked for has three digits: so many in each power of ten.
DIGITS = 900
LAST = 24 * DIGITS  # from 1e-12 to 1e12
STEP = 300  # a third of a power of ten


@dataclass(frozen=True, kw_only=True)
class Run:
    """A run in which first guesses are right and nobody is far from the others.

    path : as in `Line`
    variance : the mean squared error
    uncertainty : what the run would say of itself
    """

    path: str
    variance: float
    uncertainty: Uncertainty


@dataclass(frozen=True, kw_only=True)
class Release:
    """One way to release a mean, with some budget, of users of some sizes.

    method : as in `Forecast`
    run : the run, for a variance of the users' rates
    """

    method: str
    run: Callable[[float], Run]


def plan(
    sizes: Any,
    epsilon: float | None = None,
    *,
    error: float | None = None,
    counts: Any = None,
    k_max: int | None = None,
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
    k_max : where sizes are private, their public bound, from 1 to 10^7.  Then `sizes`
        is a guess, and must be public: do not read it from the users to be asked
    mean : the population mean, in [0, 1]; 1/2 is the worst case
    spreads : standard deviations of the users' rates, from 0 to sqrt(mean (1 - mean));
        if None 0, 0.02, 0.05, 0.1 and 0.2, as far as the mean allows
    level : of the intervals, strictly between 0 and 1

    Privacy: it sees no user's samples, and spends nothing.  What it returns is as
    public as `sizes`.

    Chapter: A realizable estimator.

    >>> from hetlit import sizes
    >>> plan(sizes.equal(10_000, 20), epsilon=1.0)
    Forecast for 10000 users, sizes public, epsilon 1, mean 0.5
    Default: the mean of all user means; other weights would not pay
    rates'  expected error                    half of the 95% interval
    sd      default    plain      no privacy  default    plain
    0       0.0011     0.0011     0.0011      0.0098     0.0098
    0.02    0.0011     0.0011     0.0011      0.0098     0.0098
    0.05    0.0012     0.0012     0.0012      0.0098     0.0098
    0.1     0.0015     0.0015     0.0015      0.0098     0.0098
    0.2     0.0023     0.0023     0.0022      0.0098     0.0098
    >>> plan(sizes.equal(10_000, 20), error=0.02).epsilon
    0.00712
    """
    if (epsilon is None) is (error is None):
        raise TypeError("epsilon or error must be given: one of them, and not both")
    budget = None if epsilon is None else check.epsilon(epsilon)
    if error is not None:
        error = check.strictly_between("error", error, 0.0, 1.0)
    mean = check.between("mean", mean, 0.0, 1.0)
    chosen = _checked_spreads(spreads, mean)
    level = check.strictly_between("level", level, 0.0, 1.0)
    k_max = None if k_max is None else check.integer("k_max", k_max, 1, MOST_SIZES)
    known = _checked_sizes(sizes, counts, k_max)

    def release(epsilon: float) -> Release:
        if k_max is None:
            return _public_release(known, epsilon, mean)
        return _private_release(known, epsilon, mean, k_max)

    if error is not None:
        budget = _needed_epsilon(release, known, error, mean, chosen)
    assert budget is not None
    default, plain = release(budget), _plain_release(known, budget, mean)
    return Forecast(
        n=known.n,
        epsilon=budget,
        k_max=k_max,
        mean=mean,
        level=level,
        method=default.method,
        lines=tuple(
            _line(default, plain, known, mean, spread, level) for spread in chosen
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


def _checked_sizes(sizes: Any, counts: Any, k_max: int | None) -> Sizes:
    if isinstance(sizes, Users):
        if k_max is not None:
            raise TypeError(
                "sizes must be an array where sizes are private: a public guess, which "
                "a table of users is not"
            )
        if counts is not None:
            raise TypeError("counts must be None for a table, which has its own")
        return by_size_class(sizes).sizes
    k = check.integers("sizes", sizes, 1, copy=False)
    if k_max is not None and k.max() > k_max:
        raise ValueError(f"sizes must be at most k_max = {k_max} throughout")
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
    run, plain_run = default.run(spread**2), plain.run(spread**2)
    return Line(
        spread=spread,
        path=run.path,
        error=_error(run, mean),
        half_width=_half_width(run, mean, level),
        plain_error=_error(plain_run, mean),
        plain_half_width=_half_width(plain_run, mean, level),
        sampling_error=_sampling_error(sizes, mean, spread),
    )


def _error(run: Run, mean: float) -> float:
    """Return the root mean squared error; a value in [0, 1] cannot be farther off."""
    return min(math.sqrt(run.variance), max(mean, 1.0 - mean))


def _half_width(run: Run, mean: float, level: float) -> float:
    """Return half the length of the interval within [0, 1], around the mean."""
    width = run.uncertainty.half_width(level)
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
        return all(_error(default.run(s**2), mean) <= error for s in hardest_first)

    sampling = _sampling_error(sizes, mean, hardest_first[0])
    high = None
    if sampling <= error:
        high = next((x for x in range(0, LAST + 1, STEP) if keeps(x)), None)
    if high is None:
        raise ValueError(
            f"error must be larger, not {error:g}: no epsilon suffices.  If rates have "
            f"a standard deviation of {hardest_first[0]:g}, users of these sizes have "
            f"a sampling error of {sampling:.3g} without privacy, and the default "
            "always has more.  Leave out spreads that cannot be, or find more users"
        )
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


# Releases


def _plain_release(sizes: Sizes, epsilon: float, mean: float) -> Release:
    """Return the mean of all user means, for sizes of both kinds."""
    n, q = sizes.n, mean * (1.0 - mean)
    uncertainty = of_plain_mean(mean, n, 1.0 / (n * epsilon))

    def run(var_p: float) -> Run:
        variance = plain_variance(sizes.k, sizes.counts, q, var_p, n, epsilon)
        return Run(path="plain", variance=variance, uncertainty=uncertainty)

    return Release(method="plain", run=run)


def _public_release(sizes: Sizes, epsilon: float, mean: float) -> Release:
    """Return the default for public sizes."""
    plans = public_size.make_plans(sizes, epsilon)
    if plans.adaptive is None and plans.cautious is None:
        return _plain_release(sizes, epsilon, mean)
    mean = _not_too_rare(mean, sizes.n)
    return Release(
        method="cautious" if plans.adaptive is None else "adaptive",
        run=lambda var_p: _public_run(plans, mean, var_p),
    )


def _not_too_rare(mean: float, n: int) -> float:
    """Return the mean as planning takes it: not nearer to 0 or 1 than 1/(4n)."""
    return min(max(mean, 0.25 / n), 1.0 - 0.25 / n)


def _public_run(plans: public_size.Plans, mean: float, var_p: float) -> Run:
    """Return the run of a default that is not plain, for public sizes."""
    sizes, q = plans.sizes, mean * (1.0 - mean)
    if plans.adaptive is None:
        assert plans.cautious is not None
        left = plans.epsilon - plans.anchor_epsilon
        final, path = public_size.Final(mean=plans.cautious, epsilon=left), "cautious"
        spread, most_spread = CAUTIOUS_SPREAD * q, math.inf
    else:
        spread = min(var_p + plans.adaptive.resolution * q, q)
        final, path = plans.adaptive.final(mean, q, spread), "unclipped"
        most_spread = tails.spread_if_untested(mean, spread)
    clipped = None
    if final.test is not None:
        path = "clipped"
        most_spread, clipped = _calm(final.test, mean, spread)
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
    return Run(
        path=path,
        variance=public_size.expected_variance(plans, mean, var_p),
        uncertainty=settled.uncertainty,
    )


def _calm(
    test: tails.TailTest[Any], centre: float, spread: float
) -> tuple[float, Clipped]:
    """Return (most_spread, clipped) if a test catches what Gaussian tails put outside.

    See `settle`.
    """
    intervals = test.intervals
    caught = intervals.users * tails.light_share(intervals.reach)
    most_spread = intervals.spread_if_calm(centre, spread, caught)
    return most_spread, intervals.clipped(centre, caught, 1.0 / test.epsilon)


def _private_release(sizes: Sizes, epsilon: float, mean: float, k_max: int) -> Release:
    """Return the default for private sizes, if its histogram is right."""
    n = sizes.n
    if n * epsilon < private_k.FEWEST:
        return _plain_release(sizes, epsilon, mean)
    mean = _not_too_rare(mean, n)
    histogram = private_k._believed(
        private_k._binned(sizes, k_max), 2.0 / (private_k.COUNT_SHARE * epsilon)
    )
    anchor_epsilon = anchor_share(histogram.k, histogram.counts, n, epsilon) * epsilon
    plan = private_k.Plan(
        n=n,
        epsilon=epsilon,
        histogram=histogram,
        cap=min(histogram.largest, k_max),
        centre=mean,
        q=mean * (1.0 - mean),
        error=anchor_error(histogram.k, histogram.counts, n, anchor_epsilon),
    )
    left = (1.0 - private_k.COUNT_SHARE) * epsilon - anchor_epsilon
    question = private_k._spread_question(plan, left)

    def run(var_p: float) -> Run:
        return _private_run(plan, question, left, anchor_epsilon, sizes, k_max, var_p)

    if question is not None:
        return Release(method="adaptive", run=run)
    return Release(
        method="cautious" if run(0.0).path == "cautious" else "plain", run=run
    )


def _private_run(
    plan: private_k.Plan,
    question: private_k.Question | None,
    left: float,
    anchor_epsilon: float,
    sizes: Sizes,
    k_max: int,
    var_p: float,
) -> Run:
    """Return the run of a default that looks at the histogram, for private sizes."""
    n, q, k, counts = plan.n, plan.q, plan.histogram.k, plan.histogram.counts
    raw_scale = 1.0 / (n * anchor_epsilon)
    total_epsilon = private_k.TOTAL_SHARE * plan.epsilon
    if question is None:
        spread, spreads = CAUTIOUS_SPREAD * q, [x * q for x in JUDGED_SPREADS]
        weighting = plan.unclipped(0.0, left - total_epsilon)
        final = private_k.Final(weighting=weighting, epsilon=left - total_epsilon)
        path, most_spread = "cautious", math.inf
    else:
        spread = min(var_p + question.resolution * q, q)
        left -= question.epsilon
        final, path, spreads = plan.final(spread, left), "unclipped", [spread]
        most_spread = tails.spread_if_untested(plan.centre, spread)
    promised = [plan.promised(final, s) for s in spreads]
    without = [plain_variance(k, counts, q, s, n, left) for s in spreads]
    if mean_log_ratio(promised, without) >= math.log(WORTHWHILE):
        return _plain_again(sizes, plan.centre, raw_scale, 1.0 / (n * left), var_p)
    clipped = None
    if final.test is not None:
        path = "clipped"
        most_spread, clipped = _calm(final.test, plan.centre, spread)

    # The noise of the two sums, relative to the total weight.
    weights, lower, upper = final.weighting.at(classes_up_to(k_max))
    own, _, _ = final.weighting.at(sizes.k)
    total = float(np.sum(sizes.counts * own))
    total_scale = float(np.ptp(weights)) / total_epsilon
    widest = np.max(weights * (upper - plan.centre))
    widest += np.max(weights * (plan.centre - lower))
    scale = float(widest) / final.epsilon / total
    distance = 2.0 * raw_scale**2 + tails.mean_variance(
        k, counts, np.full_like(k, 1.0 / n), q, spread
    )
    blur = math.sqrt(2.0 * distance) * total_scale / total
    settled = settle(
        plan.centre,
        scale,
        plan.centre,
        raw_scale,
        k=k,
        counts=counts,
        weights=final.weighting.shares(plan.histogram),
        n=n,
        q=q,
        spread=spread,
        most_spread=most_spread,
        clipped=clipped,
        blur=blur,
    )
    sampling = tails.mean_variance(sizes.k, sizes.counts, own / total, q, var_p)
    return Run(
        path=path,
        variance=sampling + 2.0 * scale**2 + blur**2,
        uncertainty=settled.uncertainty,
    )


def _plain_again(
    sizes: Sizes, mean: float, first: float, second: float, var_p: float
) -> Run:
    """Return the run that ends with a second plain mean.

    first, second : the scales of the noise of both
    """
    share = first**2 / (first**2 + second**2)
    scale, blur = share * second, math.sqrt(2.0) * (1.0 - share) * first
    q, n = mean * (1.0 - mean), sizes.n
    sampling = plain_variance(sizes.k, sizes.counts, q, var_p, n, math.inf)
    return Run(
        path="plain again",
        variance=sampling + 2.0 * scale**2 + blur**2,
        uncertainty=of_plain_mean(mean, n, scale, blur=blur),
    )
