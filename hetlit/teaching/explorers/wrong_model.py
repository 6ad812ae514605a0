"""Explorers of the chapter "When the model is wrong": a minority, and a slope.

Users hold 1, 5, 50 or 500 samples, so that laws are short lists of numbers.  Nothing is
simulated: what the pictures show are expectations over samples and noise.

`minority`: a clipped mean that never asks whom it clips, and one that asks first.  Both
know the mean of all users, and the spread of most users, which is what a median sees.
The users whom the tail test counts are those of the mean, so what the alarm says and
how far off the mean is depend on each other; both are computed together.

`slope`: the weighted mean that needs no first guess, and the anchor that holds it.  The
difference of the two is a sum of independent parts, so that its Fourier transform is a
product.  Every number is a sum over that transform.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from scipy import stats

from hetlit.check import Floats
from hetlit.estimators import tails
from hetlit.estimators.anchor import Anchor, anchor_error, anchor_share
from hetlit.estimators.clipped_mean import ClippedMean, plan_clipped_mean
from hetlit.estimators.public_size.auto import cautious_mean
from hetlit.estimators.spread import (
    CAUTIOUS_SPREAD,
    best_reach,
    clamped_guess,
    light_intervals,
)
from hetlit.estimators.uncertainty import FALSE_ALARM
from hetlit.teaching.explorers.explorer import Explorer, Parameter
from hetlit.teaching.explorers.picture import (
    Axis,
    Band,
    Line,
    Panel,
    Picture,
    Points,
    level,
    number,
    percent,
    whole,
)
from hetlit.theory import errors
from hetlit.theory.populations import Beta
from hetlit.theory.variance import plain_variance, variance_of_mean
from hetlit.users.groups import Sizes

SIZES = np.array([1.0, 5.0, 50.0, 500.0])
SHARES = np.array([50, 30, 15, 5], dtype=np.int64)  # per cent of the users


def held_by(n: int) -> Sizes:
    """Return the sizes of n users."""
    return Sizes(SIZES, n * SHARES // 100)


def noise_variance(mean: ClippedMean, epsilon: float) -> float:
    """Return the variance of the Laplace noise of a mean."""
    return 2.0 * (mean.sensitivity / epsilon) ** 2


def chance_of(computed: float) -> float:
    """Return a chance that is neither 0 nor 1, which only rounding makes of it."""
    return min(max(computed, 1e-9), 1.0 - 1e-9)


# A minority that moves away.

N = 10_000
MOST = Beta(mean=0.2, variance=0.02**2)  # the rates of most users
ANCHOR_SHARE, SPREAD_SHARE = 0.1, 0.05  # of epsilon, for first guesses
CALM = 3.0  # noise scales that are no reason for alarm
RATES = (0.2, 0.25, 0.3, 0.35, 0.4, 0.45, 0.5, 0.55, 0.6, 0.7, 0.8, 0.9, 1.0)
STEPS = 32  # in which what a user adds to the tail test is told apart


@dataclass(frozen=True)
class Group:
    """The users of one size: what each may add to the tail test and to errors.

    All arrays have one entry per outcome.

    users : how many they are
    law : the chance of each outcome
    counted : what such a user adds to the tail test, in [0, 1]
    clipped, whole : what she adds to the error of the mean that clips, and of the one
        that does not
    """

    users: int
    law: Floats
    counted: Floats
    clipped: Floats
    whole: Floats


@dataclass(frozen=True)
class Run:
    """What to expect of runs, in the presence of a minority.

    p : the mean over all users
    plain, never, asks : root mean squared errors of the plain mean, of the clipped mean
        that never asks and of the one that asks first
    never_bias : the average error of the one that never asks
    alarm : the chance of an alarm
    """

    p: float
    plain: float
    never: float
    asks: float
    never_bias: float
    alarm: float


def outcomes(k: float, rate: float, share: float) -> tuple[Floats, Floats]:
    """Return the possible means of a user of size k, and their chances."""
    ones = np.arange(int(k) + 1)
    m = MOST.concentration
    most = stats.betabinom.pmf(ones, k, MOST.mean * m, (1.0 - MOST.mean) * m)
    return ones / k, (1.0 - share) * most + share * stats.binom.pmf(ones, k, rate)


def clipped_mean(
    centre: float, q: float, error: float, epsilon: float
) -> tuple[ClippedMean, float]:
    """Return the clipped mean for users who are all like most, and its reach."""
    variances = variance_of_mean(SIZES, q, MOST.variance)
    reach = best_reach(N, epsilon)
    lower, upper = light_intervals(variances, centre, q, MOST.variance, error, reach)
    plan = plan_clipped_mean(held_by(N), lower, upper, variances, epsilon, "optimal")
    return plan, reach


def unclipped_mean(q: float, epsilon: float) -> ClippedMean:
    """Return the mean after an alarm: it clips nobody and weighs cautiously."""
    variances = variance_of_mean(SIZES, q, max(MOST.variance, CAUTIOUS_SPREAD * q))
    zeros, ones = np.zeros_like(SIZES), np.ones_like(SIZES)
    return plan_clipped_mean(held_by(N), zeros, ones, variances, epsilon, "optimal")


def groups_of(
    rate: float, share: float, p: float, q: float, mean: ClippedMean, other: ClippedMean
) -> list[Group]:
    """Return what users add, where `mean` clips and `other` does not."""
    deviations = np.sqrt(variance_of_mean(SIZES, q, MOST.variance))
    found = []
    for i, users in enumerate(mean.sizes.counts):
        means, law = outcomes(SIZES[i], rate, share)
        kept = np.clip(means, mean.lower[i], mean.upper[i])
        found.append(
            Group(
                users=int(users),
                law=law,
                counted=np.minimum(1.0, np.abs(means - kept) / (2.0 * deviations[i])),
                clipped=mean.weights[i] * kept - p / N,
                whole=other.weights[i] * means - p / N,
            )
        )
    return found


def moments(groups: list[Group], part: str) -> tuple[float, float]:
    """Return the average and the mean square of an error, without noise."""
    bias, variance = 0.0, 0.0
    for group in groups:
        values = getattr(group, part)
        average = float(group.law @ values)
        bias += group.users * average
        variance += group.users * float(group.law @ (values - average) ** 2)
    return bias, bias**2 + variance


def divided(group: Group, masses: Floats) -> Floats:
    """Return masses by what they count in the test, in steps of 1/STEPS.

    Each mass is divided between two neighbouring steps, which keeps its mean.
    """
    place = group.counted * STEPS
    step = np.floor(place).astype(np.int64)
    above = place - step
    table = np.bincount(step, masses * (1.0 - above), STEPS + 2)
    return np.asarray(table + np.bincount(step + 1, masses * above, STEPS + 2))


def joint(groups: list[Group], part: str, transform: Callable[[Floats], Any]) -> Any:
    """Return E z^T, E S z^T and E S^2 z^T for the sums T of counts and S of errors.

    transform : of masses by steps to the sum of masses z^step, for one z or for many
    """
    log, first, second = 0.0, 0.0, 0.0
    for group in groups:
        values = getattr(group, part)
        chance, average, square = (
            transform(divided(group, group.law * values**power)) for power in range(3)
        )
        log = log + group.users * np.log(chance)
        first = first + group.users * average / chance
        second = second + group.users * (square / chance - (average / chance) ** 2)
    return np.exp(log) * np.array([1.0 + 0.0 * first, first, first**2 + second])


def when_silent(groups: list[Group], part: str, limit: float, epsilon: float) -> Floats:
    """Return (chance, E S, E S^2) of runs in which the alarm is silent.

    Laplace noise of scale 1/epsilon is below limit - T with the chance
    e^(epsilon (limit - T))/2, plus 1 - cosh(epsilon (limit - T)) where T < limit.  So
    one sum, at z = e^(-epsilon), does for all T, and the law of T is needed below the
    limit only.
    """
    steps = np.arange(STEPS + 2) / STEPS
    everywhere = joint(groups, part, lambda table: table @ np.exp(-epsilon * steps))
    # A transform of this length sees T modulo twice the limit; damping takes away what
    # is beyond.
    length = 1 << math.ceil(math.log2(2.0 * (limit + 1.0) * STEPS))
    damping = 1e-10 ** (np.arange(length) / length)
    transformed = joint(
        groups, part, lambda table: np.fft.fft(table * damping[: STEPS + 2], length)
    )
    law = np.fft.ifft(transformed).real / damping
    below = np.maximum(limit - np.arange(length) / STEPS, 0.0)
    found = everywhere * math.exp(epsilon * limit) / 2.0
    return np.asarray(found + law @ (1.0 - np.cosh(epsilon * below)))


def run(rate: float, share: float, epsilon: float, test_share: float) -> Run:
    """Return what to expect if a share of users has this rate."""
    sizes, away = held_by(N), rate - MOST.mean
    p = MOST.mean + share * away
    var_p = (1.0 - share) * (MOST.variance + share * away**2)
    plain = plain_variance(sizes.k, sizes.counts, p * (1.0 - p), var_p, N, epsilon)
    error = anchor_error(sizes.k, sizes.counts, N, ANCHOR_SHARE * epsilon)
    centre, q = clamped_guess(p, error, N)
    left = (1.0 - ANCHOR_SHARE - SPREAD_SHARE) * epsilon

    mean, _ = clipped_mean(centre, q, error, left)
    never_bias, square = moments(groups_of(rate, share, p, q, mean, mean), "clipped")
    never = square + noise_variance(mean, left)

    test = test_share * epsilon
    left -= test
    mean, reach = clipped_mean(centre, q, error, left)
    other = unclipped_mean(q, left)
    narrow = (mean.lower > 0.0) | (mean.upper < 1.0)
    usual = tails.light_share(reach) * float(sizes.counts[narrow].sum())
    limit = CALM / test + tails.SLACK * usual
    groups = groups_of(rate, share, p, q, mean, other)
    silent, _, clipped = when_silent(groups, "clipped", limit, test)
    _, _, unseen = when_silent(groups, "whole", limit, test)
    asks = clipped + silent * noise_variance(mean, left)
    asks += moments(groups, "whole")[1] - unseen
    asks += (1.0 - silent) * noise_variance(other, left)
    return Run(
        p=p,
        plain=math.sqrt(plain),
        never=math.sqrt(never),
        asks=math.sqrt(asks),
        never_bias=never_bias,
        alarm=chance_of(1.0 - silent),
    )


@lru_cache(maxsize=128)
def runs(share: float, epsilon: float, test_share: float) -> tuple[Run, ...]:
    """Return what to expect at all rates of the slider."""
    return tuple(run(rate, share, epsilon, test_share) for rate in RATES)


def minority(*, rate: float, share: float, epsilon: float, test: float) -> Picture:
    """Return the errors of three estimators against a minority's rate, and alarms."""
    found = runs(share, epsilon, test)
    here = found[RATES.index(rate)]
    x = Axis("rate of the minority", 0.2, 1.0, ticks=(0.2, 0.4, 0.6, 0.8, 1.0))
    error = Axis("root mean squared error (thousandths)", 0.8, 60.0, log=True)
    chance = Axis("chance of an alarm", 0.0, 1.0)
    curves = (
        Line(RATES, [1000.0 * r.plain for r in found], "vermillion", "plain mean"),
        Line(RATES, [1000.0 * r.never for r in found], "purple", "clips, never asks"),
        Line(RATES, [1000.0 * r.asks for r in found], "blue", "asks first"),
    )
    markers = (
        Points([rate], [1000.0 * here.plain], "vermillion"),
        Points([rate], [1000.0 * here.never], "purple"),
        Points([rate], [1000.0 * here.asks], "blue"),
    )
    alarms = (
        Line(RATES, [r.alarm for r in found], "green", "alarm"),
        Points([rate], [here.alarm], "green"),
    )
    return Picture(
        (Panel(x, error, (*curves, *markers)), Panel(x, chance, alarms)),
        reading=(
            f"{whole(share * N)} of {whole(N)} users have the rate {number(rate)}, and "
            f"the mean is {number(here.p, 4)}. Clipping without asking gives "
            f"{number(here.p + here.never_bias, 4)} on average. Root mean squared "
            f"errors, in thousandths: {number(1000.0 * here.plain)} for the plain "
            f"mean, {number(1000.0 * here.never)} without asking, "
            f"{number(1000.0 * here.asks)} when asking first. The alarm rings in "
            f"{percent(here.alarm)} of the runs."
        ),
    )


MINORITY = Explorer(
    name="minority",
    chapter="wrong_model",
    title="What if a few users are unlike the rest?",
    setting=(
        "10,000 users: half hold 1 sample, three in ten hold 5, 15% hold 50 and 5% "
        "hold 500. Most have rates around 0.2 with a spread of 0.02, and the minority "
        "is spread over all sizes. Both clipped means know the mean of all users and "
        "the spread of most. The alarm rings if the noisy count is three noise scales "
        "above one and a half times what light tails would put there."
    ),
    picture=minority,
    parameters=(
        Parameter("rate", "rate of the minority", RATES, 0.5),
        Parameter(
            "share",
            "share of users in the minority",
            (0.002, 0.005, 0.01, 0.02, 0.03, 0.05, 0.1),
            0.02,
            percent,
        ),
        Parameter(
            "epsilon",
            "privacy budget epsilon",
            (0.3, 0.5, 1.0, 2.0, 4.0),
            1.0,
            on_page=False,
        ),
        Parameter(
            "test",
            "share of epsilon for the test",
            (0.1, 0.2, 0.3),
            0.2,
            percent,
            on_page=False,
        ),
    ),
    notice=(
        "The mean that never asks is the best of all while nobody is far away, and "
        "then its error grows with every step that the minority takes. The one that "
        "asks pays a little for the question and follows, until the minority is "
        "noticed. What is left are minorities too small to be noticed: they do harm, "
        "but only so much."
    ),
    description=(
        "Above, root mean squared error of three estimators against the rate of a "
        "minority, log scale: a nearly level line for the plain mean; a rising line "
        "for a mean that clips and never asks, which starts below the plain mean and "
        "crosses it if the minority is not too small; and a line for the mean that "
        "asks first, which rises with it and leaves it where the alarm begins to "
        "ring. Below, the chance of an alarm, which rises from nearly zero, and for "
        "larger minorities to one. Markers show the chosen rate."
    ),
    quick=False,  # thirteen rates whenever another parameter moves
)


# A slope between size and rate.

MIDDLE = 0.2  # the mean of all rates, whatever the slope
# The middle rank of the users of each size, less one half: they average to 0.
RANKS = (np.cumsum(SHARES) - SHARES / 2.0) / 100.0 - 0.5
SLOPES = (0.0, 0.005, 0.01, 0.015, 0.02, 0.03, 0.04, 0.05, 0.07, 0.1, 0.15, 0.2)


@dataclass(frozen=True)
class Difference:
    """The difference D of a weighted mean and the anchor A, by its Fourier transform.

    step : between two frequencies t, from step/2 on
    transform : E e^(itD)
    with_anchor : E (A - p) e^(itD)

    Each method writes a function of D as an integral over sines and cosines of t D.
    """

    step: float
    frequencies: Floats
    transform: Any
    with_anchor: Any

    def _integral(self, values: Floats) -> float:
        return float(np.sum(values)) * self.step * 2.0 / math.pi

    def within(self, far: float) -> float:
        """Return Pr(|D| <= far)."""
        t = self.frequencies
        return self._integral(self.transform.real * np.sin(far * t) / t)

    def moved(self, radius: float) -> float:
        """Return the mean of D, moved into [-radius, radius]."""
        t = self.frequencies
        return self._integral(self.transform.imag * np.sin(radius * t) / t**2)

    def moved_square(self, radius: float) -> float:
        """Return the mean square of D, moved into [-radius, radius]."""
        t = self.frequencies
        inside = 2.0 * (np.sin(radius * t) - radius * t * np.cos(radius * t)) / t**3
        return radius**2 - self._integral(self.transform.real * inside)

    def moved_with_anchor(self, radius: float) -> float:
        """Return the mean of A - p times D, moved into [-radius, radius]."""
        t = self.frequencies
        return self._integral(self.with_anchor.imag * np.sin(radius * t) / t**2)


def difference(
    rates: Floats,
    sizes: Sizes,
    weights: Floats,
    noise: float,
    anchor: float,
    far: float,
) -> Difference:
    """Return the difference of a weighted mean and the anchor, given noise scales.

    far : a distance that D reaches about never, above all that will be asked for
    """
    n = sizes.n
    gaps = weights - 1.0 / n
    coins = sizes.counts * rates * (1.0 - rates) / sizes.k
    deviation = math.sqrt(float(np.sum(coins * gaps**2)))
    # Sums over frequencies see D modulo 2 pi/step.  The transform falls like that of a
    # Gaussian or, where users hardly count, like those of both noises.
    step = math.pi / far
    last = 1.0 / max(deviation / 8.0, min(noise, anchor) / 10.0)
    t: Floats = (np.arange(math.ceil(last / step), dtype=np.float64) + 0.5) * step
    turns = np.exp(1j * t * (gaps / sizes.k)[:, None])
    sample = 1.0 + rates[:, None] * (turns - 1.0)  # its transform
    samples = (sizes.counts * sizes.k)[:, None]
    laplaces = (1.0 + (noise * t) ** 2) * (1.0 + (anchor * t) ** 2)
    transform = np.exp(np.sum(samples * np.log(sample), axis=0)) / laplaces
    turned = (rates * (1.0 - rates))[:, None] * (turns - 1.0) / sample
    users = np.sum(samples / (n * sizes.k)[:, None] * turned, axis=0)
    own_noise = -2j * anchor**2 * t / (1.0 + (anchor * t) ** 2)
    return Difference(step, t, transform, transform * (users + own_noise))


@dataclass(frozen=True)
class Pull:
    """What to expect if rates rise with sizes.

    radius : how far a value may be from the anchor
    warning_from : the distance from the anchor at which warnings begin
    bias, moved_bias : average errors, of the weighted mean and of the moved value
    plain, weighted, moved : root mean squared errors
    warned : the chance of a warning
    """

    radius: float
    warning_from: float
    bias: float
    moved_bias: float
    plain: float
    weighted: float
    moved: float
    warned: float


def pull(slope: float, epsilon: float, n: int) -> Pull:
    """Return what to expect at this slope."""
    sizes, rates = held_by(n), MIDDLE + slope * RANKS
    share = anchor_share(sizes.k, sizes.counts, n, epsilon) * epsilon
    final, scale = epsilon - share, 1.0 / (n * share)
    mean = cautious_mean(sizes, final)
    noise = mean.sensitivity / final
    _, q = clamped_guess(MIDDLE, anchor_error(sizes.k, sizes.counts, n, share), n)
    uniform = np.full_like(SIZES, 1.0 / n)

    def sampling(weights: Floats, spread: float) -> float:
        return tails.mean_variance(sizes.k, sizes.counts, weights, q, spread * q)

    # What the library assumes where nothing was asked about the spread; for warnings it
    # may be the largest there is.
    seen = sampling(uniform, CAUTIOUS_SPREAD)
    promised = sampling(mean.weights, CAUTIOUS_SPREAD) + 2.0 * noise**2
    radius = Anchor(value=MIDDLE, scale=scale, sampling=seen).radius(promised)
    gap = math.sqrt(sampling(mean.weights - uniform, 1.0) + 2.0 * noise**2)
    warning_from = errors.half_width(1.0 - FALSE_ALARM, scale, gap)

    bias = float(np.sum(sizes.counts * mean.weights * (rates - MIDDLE)))
    coins = sizes.counts * rates * (1.0 - rates) / sizes.k
    far = 2.0 * (radius + warning_from + abs(bias))
    apart = difference(rates, sizes, mean.weights, noise, scale, far)
    plain = float(np.sum(coins)) / n**2
    weighted = float(np.sum(coins * mean.weights**2)) + 2.0 * noise**2
    moved = plain + 2.0 * scale**2 + apart.moved_square(radius)
    moved += 2.0 * apart.moved_with_anchor(radius)
    return Pull(
        radius=radius,
        warning_from=warning_from,
        bias=bias,
        moved_bias=apart.moved(radius),
        plain=math.sqrt(plain + 2.0 / (n * epsilon) ** 2),
        weighted=math.sqrt(bias**2 + weighted),
        moved=math.sqrt(moved),
        warned=chance_of(1.0 - apart.within(warning_from)),
    )


@lru_cache(maxsize=128)
def pulls(epsilon: float, n: int) -> tuple[Pull, ...]:
    """Return what to expect at all slopes of the slider."""
    return tuple(pull(slope, epsilon, n) for slope in SLOPES)


def size_slope(*, slope: float, epsilon: float, users: int) -> Picture:
    """Return where two means and the moved value go, and how often one is warned."""
    found = pulls(epsilon, users)
    here = found[SLOPES.index(slope)]
    reach = np.array([2000.0 * each.plain for each in found])
    x = Axis("slope between size and rate", 0.0, 0.2, ticks=(0.0, 0.05, 0.1, 0.15, 0.2))
    error = Axis("average error (thousandths)", -10.0, 60.0, ticks=(0, 20, 40, 60))
    chance = Axis("chance of a warning", 0.0, 1.0)
    averages = (
        Band(SLOPES, -reach, reach, "ink", "plain mean, two standard errors"),
        level(x, 0.0, "ink", "plain mean"),
        Line(SLOPES, [1000.0 * p.bias for p in found], "vermillion", "weighted mean"),
        Line(SLOPES, [1000.0 * p.moved_bias for p in found], "blue", "moved value"),
        Points([slope], [1000.0 * here.bias], "vermillion"),
        Points([slope], [1000.0 * here.moved_bias], "blue"),
    )
    warnings = (
        Line(SLOPES, [p.warned for p in found], "green", "warning"),
        Points([slope], [here.warned], "green"),
    )
    return Picture(
        (Panel(x, error, averages), Panel(x, chance, warnings)),
        reading=(
            f"The mean over users is {number(MIDDLE)}. The weighted mean aims at "
            f"{number(MIDDLE + here.bias)}; moved to within {number(here.radius)} of "
            f"the anchor, it is {number(MIDDLE + here.moved_bias)} on average. Root "
            f"mean squared errors, in thousandths: {number(1000.0 * here.plain)} for "
            f"the plain mean, {number(1000.0 * here.weighted)} for the weighted mean, "
            f"{number(1000.0 * here.moved)} when it is moved. There is a warning in "
            f"{percent(here.warned)} of the runs."
        ),
    )


SLOPE = Explorer(
    name="slope",
    chapter="wrong_model",
    title="What if heavy users behave differently?",
    setting=(
        "Half of the users hold 1 sample, three in ten hold 5, 15% hold 50 and 5% hold "
        "500. Rates rise with the rank of a user among all sizes, by the slope from "
        "the first to the last, around a mean of 0.2. The weighted mean clips nobody "
        "and needs no first guess. The anchor has a twentieth to a tenth of the budget."
    ),
    picture=size_slope,
    parameters=(
        Parameter("slope", "slope between size and rate", SLOPES, 0.05),
        Parameter(
            "epsilon",
            "privacy budget epsilon",
            (0.1, 0.2, 0.3, 0.5, 1.0, 2.0, 5.0),
            1.0,
        ),
        Parameter(
            "users",
            "number of users",
            (1000, 3000, 10_000, 30_000, 100_000),
            10_000,
            whole,
            on_page=False,
        ),
    ),
    notice=(
        "The weighted mean answers another question as soon as there is a slope. The "
        "anchor stops it at some distance, and where chance cannot be the reason a "
        "warning says so. With little budget the anchor is noisy: it stops later, and "
        "slopes that do harm go without a warning."
    ),
    description=(
        "Above, average error against the slope between size and rate: a level line at "
        "zero for the plain mean with a band of two standard errors, a line for the "
        "weighted mean that rises in proportion to the slope, and a line for the value "
        "that was moved towards the anchor, which follows it and levels off where the "
        "budget allows. Below, the chance of a warning, which rises with the slope. "
        "Markers show the chosen slope."
    ),
    quick=False,  # twelve slopes whenever the budget moves
)
