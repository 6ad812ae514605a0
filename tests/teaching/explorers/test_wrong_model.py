"""The explorers of a wrong model: sums and integrals against other sums and integrals.

Statistical tests allow six standard errors, which chance exceeds less than once in
10^7.
"""

from __future__ import annotations

import dataclasses
import itertools
import math
import re
from functools import cache

import numpy as np
import pytest
from scipy import stats

from hetlit import Users, estimate_public_size, optimal_weights, user_variance
from hetlit.estimators import tails
from hetlit.estimators.anchor import Anchor, anchor_error, anchor_share
from hetlit.estimators.public_size.auto import cautious_mean, make_plans
from hetlit.estimators.spread import CAUTIOUS_SPREAD, ERRORS_OF_MEAN, best_reach
from hetlit.estimators.uncertainty import FALSE_ALARM
from hetlit.teaching.explorers.picture import Picture, coordinates, number, percent
from hetlit.teaching.explorers.wrong_model import (
    CALM,
    MINORITY,
    RATES,
    SHARES,
    SIZES,
    SLOPE,
    SLOPES,
    Group,
    N,
    chance_of,
    clipped_mean,
    groups_of,
    held_by,
    outcomes,
    pull,
    runs,
    unclipped_mean,
    when_silent,
)
from hetlit.theory import errors
from hetlit.users.groups import by_size
from tests.explorers import values_of

COUNTS = N * SHARES // 100
_, MINORITIES, EPSILONS, TESTS = values_of(MINORITY.parameters)
_, BUDGETS, CROWDS = values_of(SLOPE.parameters)


def marks_of(picture: Picture) -> list[dict[tuple[str, str], dict[str, np.ndarray]]]:
    """Return the arrays of every mark by name and look, one dictionary a panel."""
    return [
        {(m.name, m.look): coordinates(m) for m in panel.marks}
        for panel in picture.panels
    ]


def numbers_in(sentences: str) -> list[float]:
    return [float(n.replace(",", "")) for n in re.findall(r"[\d,.]*\d", sentences)]


# A minority: the law of the test's sum by an integral over its Fourier transform.


@cache
def law_by_hand(k: int, rate: float, share: float) -> np.ndarray:
    """Return the chances of 0, ..., k ones: most rates are Beta(79.8, 319.2)."""
    ones = np.arange(k + 1)
    most = stats.betabinom(k, 79.8, 319.2).pmf(ones)
    return np.asarray((1 - share) * most + share * stats.binom(k, rate).pmf(ones))


class ByHand:
    """The plan for one minority, its sums, and integrals over their transforms."""

    def __init__(self, rate: float, share: float, epsilon: float, test: float):
        self.p = 0.2 + share * (rate - 0.2)
        each = user_variance(np.repeat(SIZES, COUNTS), 0.5, 0.25 * CAUTIOUS_SPREAD)
        error = math.sqrt(each.mean() / N + 2 / (0.1 * N * epsilon) ** 2)
        inner = self.p + min(error, 0.5 - self.p)
        self.q = inner * (1 - inner)
        self.variances = self.q / SIZES + (1 - 1 / SIZES) * 0.02**2
        self.rate, self.share, self.error = rate, share, error
        self.never_budget = 0.85 * epsilon
        self.test = test * epsilon
        self.budget = self.never_budget - self.test

    def clipping(self, budget: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return (lower, upper, weights)."""
        self.reach = best_reach(N, budget)
        half = ERRORS_OF_MEAN * self.error + self.reach * np.sqrt(self.variances)
        skew = (1 - 2 * self.p) * (self.variances + 0.02**2) / self.q
        longer = self.reach**2 / 6 * skew
        lower = np.maximum(self.p - half, 0)
        upper = np.minimum(self.p + half + longer, 1)
        weights, _ = optimal_weights(
            self.variances, upper - lower, budget, counts=COUNTS
        )
        return lower, upper, weights

    def never(self) -> tuple[float, float]:
        """Return (bias, root mean squared error) of the mean that never asks."""
        lower, upper, weights = self.clipping(self.never_budget)
        noise = 2 * (np.max(weights * (upper - lower)) / self.never_budget) ** 2
        mean = variance = 0.0
        for size, count, low, high, weight in zip(
            SIZES, COUNTS, lower, upper, weights, strict=True
        ):
            law = law_by_hand(int(size), self.rate, self.share)
            kept = weight * np.clip(np.arange(size + 1) / size, low, high)
            mean += count * (law @ kept)
            variance += count * (law @ kept**2 - (law @ kept) ** 2)
        return mean - self.p, math.sqrt((mean - self.p) ** 2 + variance + noise)

    def asks(self) -> tuple[float, float]:
        """Return (chance of an alarm, root mean squared error of whoever asks)."""
        lower, upper, weights = self.clipping(self.budget)
        spread = max(0.02**2, self.q * CAUTIOUS_SPREAD)
        whole, _ = optimal_weights(
            self.q / SIZES + (1 - 1 / SIZES) * spread,
            np.ones(4),
            self.budget,
            counts=COUNTS,
        )
        clipped = COUNTS[(lower > 0) | (upper < 1)].sum()
        usual = stats.norm.expect(lambda z: z - self.reach, lb=self.reach)
        limit = CALM / self.test + tails.SLACK * clipped * usual

        # Transforms of the sum T of counts alone, and times each error or its square.
        # They see T modulo 2 pi/step, and T stays well below that.
        step = 2 * math.pi / 6000
        t = (np.arange(8000) + 0.5) * step
        log = np.zeros(len(t), dtype=complex)
        sums = np.zeros((2, 2, len(t)), dtype=complex)
        plain = np.zeros((2, 2))
        for i, (size, count) in enumerate(zip(SIZES, COUNTS, strict=True)):
            law, x = (
                law_by_hand(int(size), self.rate, self.share),
                np.arange(size + 1) / size,
            )
            outside = np.maximum(np.maximum(lower[i] - x, x - upper[i]), 0)
            terms = np.minimum(outside / (2 * math.sqrt(self.variances[i])), 1)
            kept = np.clip(x, lower[i], upper[i])
            values = np.array([weights[i] * kept, whole[i] * x]) - self.p / N
            # Few terms are neither 0 nor 1, and equal ones share an exponential.
            places, which = np.unique(terms, return_inverse=True)
            masses = [law, *(law * values), *(law * values**2)]
            tables = [np.bincount(which, mass) for mass in masses]
            turns = np.exp(1j * np.outer(places, t))
            chance, *rest = (table @ turns for table in tables)
            log += count * np.log(chance)
            first, second = np.array(rest[:2]) / chance, np.array(rest[2:]) / chance
            sums[0] += count * first
            sums[1] += count * (second - first**2)
            means = values @ law
            plain += count * np.array([means, values**2 @ law - means**2])
        laplace = np.exp(log - 1j * t * limit) / (1 + (t / self.test) ** 2)

        def below(average: float, transform: np.ndarray) -> float:
            """Return E H where T plus noise is below the limit."""
            wave = np.sum((laplace * transform).imag / t) * step / math.pi
            return float(average / 2 - wave)

        silent = below(1.0, np.ones(len(t)))
        squares = sums[0] ** 2 + sums[1]
        plain_squares = plain[0] ** 2 + plain[1]
        quiet = below(plain_squares[0], squares[0])
        loud = plain_squares[1] - below(plain_squares[1], squares[1])
        width = np.max(weights * (upper - lower))
        quiet += silent * 2 * (width / self.budget) ** 2
        loud += (1 - silent) * 2 * (whole.max() / self.budget) ** 2
        return 1 - silent, math.sqrt(quiet + loud)

    def plain(self, epsilon: float) -> float:
        """Return the root mean squared error of the plain mean."""
        var_p = (1 - self.share) * (0.02**2 + self.share * (self.rate - 0.2) ** 2)
        each = user_variance(np.repeat(SIZES, COUNTS), self.p, var_p)
        return math.sqrt(each.mean() / N + 2 / (N * epsilon) ** 2)


# What readers of the page can see, and then all budgets and all tests of Jupyter.
PLACES = [(share, 1.0, 0.2) for share in MINORITIES] + [
    (share, epsilon, test)
    for share, epsilon, test in zip(
        MINORITIES, EPSILONS, itertools.cycle(TESTS), strict=False
    )
]


@pytest.mark.slow
@pytest.mark.parametrize(("share", "epsilon", "test"), PLACES)
def test_errors_and_alarms_are_what_marks_and_reading_say(
    share: float, epsilon: float, test: float
) -> None:
    places = [0, 3, 6, 9, 12]
    hands = [ByHand(RATES[place], share, epsilon, test) for place in places]
    plain = [1000 * hand.plain(epsilon) for hand in hands]
    biases, never = np.transpose([hand.never() for hand in hands])
    alarms, asks = np.transpose([hand.asks() for hand in hands])
    for i, place in enumerate(places):
        rate = RATES[place]
        picture = MINORITY.at(rate=rate, share=share, epsilon=epsilon, test=test)
        above, below = marks_of(picture)
        for name, look, expected in (
            ("plain mean", "vermillion", plain),
            ("clips, never asks", "purple", 1000 * never),
            ("asks first", "blue", 1000 * asks),
        ):
            assert above[name, look]["x"].tolist() == list(RATES)
            curve = above[name, look]["y"]
            assert curve[places] == pytest.approx(expected, rel=3e-4)
            assert above["", look]["x"] == rate
            assert above["", look]["y"] == curve[place]
        assert below["alarm", "green"]["x"].tolist() == list(RATES)
        curve = below["alarm", "green"]["y"]
        assert curve[places] == pytest.approx(alarms, abs=3e-4)
        assert below["", "green"]["x"] == rate
        assert below["", "green"]["y"] == curve[place]

        run = runs(share, epsilon, test)[place]
        assert run.never_bias == pytest.approx(biases[i], rel=1e-9)
        assert run.p == hands[i].p
        assert picture.reading == (
            f"{share * N:,.0f} of 10,000 users have the rate {number(rate)}, and the "
            f"mean is {number(run.p, 4)}. Clipping without asking gives "
            f"{number(run.p + biases[i], 4)} on average. Root mean squared errors, "
            f"in thousandths: {number(plain[i])} for the plain mean, "
            f"{number(1000 * never[i])} without asking, "
            f"{number(1000 * run.asks)} when asking first. The alarm rings in "
            f"{percent(run.alarm)} of the runs."
        )


def test_a_sum_of_two_users_rings_the_alarm_as_often_as_all_its_cases() -> None:
    group = Group(
        users=2,
        law=np.array([0.7, 0.2, 0.1]),
        counted=np.array([0.0, 0.5, 1.0]),
        clipped=np.array([-1.0, 2.0, 3.0]),
        whole=np.zeros(3),
    )
    for limit, epsilon in ((0.7, 0.3), (1.3, 2.0), (5.0, 1.0)):
        expected = np.zeros(3)
        for one, two in itertools.product(range(3), repeat=2):
            chance = group.law[one] * group.law[two]
            below = limit - group.counted[one] - group.counted[two]
            chance *= stats.laplace(scale=1 / epsilon).cdf(below)
            total = group.clipped[one] + group.clipped[two]
            expected += chance * np.array([1.0, total, total**2])
        found = when_silent([group], "clipped", limit, epsilon)
        assert found == pytest.approx(expected, rel=1e-7)


@pytest.mark.parametrize(("rate", "share"), [(0.45, 0.02), (0.9, 0.01)])
def test_the_library_s_own_steps_do_on_tables_what_was_computed(
    rate: float, share: float
) -> None:
    rng = np.random.default_rng(3)
    p = 0.2 + share * (rate - 0.2)
    hand = ByHand(rate, share, 1.0, 0.2)
    error = anchor_error(SIZES, COUNTS, N, 0.1)
    assert error == pytest.approx(hand.error)
    mean, reach = clipped_mean(p, hand.q, error, hand.budget)
    other = unclipped_mean(hand.q, hand.budget)
    assert hand.clipping(hand.budget)[2] == pytest.approx(mean.weights)
    k = np.repeat(SIZES.astype(np.int64), COUNTS)
    found = []
    for _ in range(400):
        rates = np.where(rng.random(N) < share, rate, rng.beta(79.8, 319.2, size=N))
        table = by_size(Users(k, rng.binomial(k, rates)))
        counted = tails.outsiders(
            table, mean.lower, mean.upper, np.sqrt(hand.variances)
        )
        found.append((counted, mean.noiseless(table) - p, other.noiseless(table) - p))
    counted, clipped, whole = np.transpose(found)
    usual = tails.light_share(reach) * COUNTS[1:].sum()
    limit = CALM / hand.test + tails.SLACK * usual
    silent = stats.laplace(scale=1 / hand.test).cdf(limit - counted)
    for part, values in (("clipped", clipped), ("whole", whole)):
        groups = groups_of(rate, share, p, hand.q, mean, other)
        expected = when_silent(groups, part, limit, hand.test)
        for power in range(3):
            each = silent * values**power
            allowed = 6 * each.std() / math.sqrt(len(each))
            assert abs(each.mean() - expected[power]) < allowed


def test_outcomes_have_the_mean_and_the_variance_that_they_should() -> None:
    for k in SIZES:
        means, law = outcomes(float(k), 0.5, 0.02)
        assert law.sum() == pytest.approx(1.0)
        assert means @ law == pytest.approx(0.206)
        var_p = 0.98 * (0.02**2 + 0.02 * 0.3**2)
        assert (means - 0.206) ** 2 @ law == pytest.approx(
            user_variance(int(k), 0.206, var_p)
        )


@pytest.mark.slow
def test_what_one_should_notice_about_a_minority_is_true() -> None:
    for share, epsilon, test in itertools.product(MINORITIES, EPSILONS, TESTS):
        found = runs(share, epsilon, test)
        assert found[0].never < found[0].asks < found[0].plain
        never = [run.never for run in found]
        assert never[2:] == sorted(never[2:])
        # Asking costs little, and where it costs more it has paid.
        assert all(run.asks < 1.25 * run.never for run in found)
    # After an alarm weights assume less spread than the largest minority causes.
    for share in MINORITIES:
        worst = max(run.asks / run.plain for run in runs(share, 1.0, 0.2))
        assert worst < (1.0 if share < 0.1 else 1.1)
    assert runs(0.05, 1.0, 0.2)[-1].never > 8 * runs(0.05, 1.0, 0.2)[-1].plain
    assert runs(0.005, 1.0, 0.2)[-1].alarm < 0.3


def test_the_setting_has_the_numbers_of_the_users() -> None:
    rest = [15, 50, 5, 500]  # half, and three in ten, stand in words
    assert numbers_in(MINORITY.setting) == [N, 1, 5, *rest, 0.2, 0.02]
    assert SHARES.tolist() == [50, 30, 15, 5]
    assert SIZES.tolist() == [1, 5, 50, 500]
    assert (CALM, tails.SLACK) == (3.0, 1.5)  # three, one and a half


# A slope: laws on a fine grid, one convolution after the other.


class OnAGrid:
    """Functions of D = B + L - K, where B is a sum of coins and L and K are noises."""

    def __init__(self, slope: float, epsilon: float, n: int):
        self.n, self.counts = n, n * SHARES // 100
        ranks = stats.rankdata(np.repeat(SIZES, SHARES)) / 100 - 0.005
        middle = [ranks[np.repeat(SIZES, SHARES) == k].mean() - 0.5 for k in SIZES]
        self.rates = 0.2 + slope * np.array(middle)
        share = anchor_share(SIZES, self.counts, n, epsilon)
        budget = (1 - share) * epsilon
        variances = 0.15 / SIZES + (1 - 1 / SIZES) * 0.15 * CAUTIOUS_SPREAD
        self.weights, _ = optimal_weights(
            variances, np.ones(4), budget, counts=self.counts
        )
        self.noise = self.weights.max() / budget
        self.scale = 1 / (share * epsilon * n)
        self.gaps = self.weights - 1 / n
        self.length, self.cell = 1 << 19, self.scale / 500

    def coins(self, less: int | None = None) -> np.ndarray:
        """Return the transform of B less p; `less`: a size that has a coin less."""
        transform = np.ones(self.length // 2 + 1, dtype=complex)
        for i, k in enumerate(SIZES):
            trials = int(self.counts[i] * k) - (less == i)
            law = stats.binom(trials, self.rates[i])
            far = 9 * law.std() + 1
            ones = np.arange(
                max(law.mean() - far, 0) // 1, min(law.mean() + far, trials)
            )
            shift = self.gaps[i] / k
            places = shift * ones - self.counts[i] * self.gaps[i] * 0.2
            transform *= np.fft.rfft(self.spread_out(places, law.pmf(ones)))
        return transform

    def spread_out(self, places: np.ndarray, masses: np.ndarray) -> np.ndarray:
        """Return masses on the grid, around 0, with their means kept."""
        cells = np.floor(places / self.cell).astype(int)
        above = places / self.cell - cells
        table = np.bincount(cells % self.length, masses * (1 - above), self.length)
        return table + np.bincount(
            (cells + 1) % self.length, masses * above, self.length
        )

    def laplace(self, scale: float, power: int = 0) -> np.ndarray:
        """Return the transform of the noise's law, times x to this power."""
        x = self.grid
        law = stats.laplace(scale=scale)
        masses = law.cdf(x + self.cell / 2) - law.cdf(x - self.cell / 2)
        return np.fft.rfft(masses * x**power)

    @property
    def grid(self) -> np.ndarray:
        return np.fft.fftfreq(self.length, 1 / self.length) * self.cell

    def mean(self, values: np.ndarray, *transforms: np.ndarray) -> float:
        law = np.fft.irfft(math.prod(transforms), self.length)
        return float(law @ values)

    def errors(self, radius: float, far: float) -> dict[str, float]:
        """Return what to expect of the moved value, and of warnings."""
        x = self.grid
        moved = np.clip(x, -radius, radius)
        both = self.laplace(self.noise), self.laplace(self.scale)
        coins = self.coins()
        # E X h(X) = n p E h(X' + 1) for a binomial X, where X' has one trial less.
        cross = 0.0
        average = self.mean(moved, coins, *both)
        for i, k in enumerate(SIZES):
            trials, p = self.counts[i] * k, self.rates[i]
            shifted = np.clip(x + self.gaps[i] / k, -radius, radius)
            one_more = self.mean(shifted, self.coins(less=i), *both)
            cross += trials * p * (one_more - average) / (k * self.n)
        # The noise K of the anchor enters D with the other sign.
        cross -= self.mean(moved, coins, both[0], self.laplace(self.scale, 1))
        each = self.rates * (1 - self.rates) / SIZES
        plain = self.counts @ each / self.n**2
        square = self.mean(moved**2, coins, *both)
        total = plain + 2 * self.scale**2 + 2 * cross + square
        return {
            "moved_bias": average,
            "moved": math.sqrt(total),
            "warned": self.mean(np.where(abs(x) > far, 1.0, 0.0), coins, *both),
        }


PULLS = [(slope, 1.0, 10_000) for slope in SLOPES[::3]]
PULLS += [(0.07, epsilon, 10_000) for epsilon in BUDGETS[2:]]
PULLS += [(0.05, 2.0, users) for users in CROWDS[1:]]
PULLS += [(0.1, 0.1, 1000)]  # where all weights are the same


@pytest.mark.parametrize(("slope", "epsilon", "users"), PULLS)
def test_moved_values_and_warnings_are_what_a_grid_says(
    slope: float, epsilon: float, users: int
) -> None:
    found, hand = pull(slope, epsilon, users), OnAGrid(slope, epsilon, users)
    # Radius and threshold, from the library's formulas.
    each = user_variance(np.repeat(SIZES, hand.counts), 0.5, 0.25 * CAUTIOUS_SPREAD)
    inner = 0.2 + min(math.sqrt(each.mean() / users + 2 * hand.scale**2), 0.3)
    q = inner * (1 - inner)
    each = 1 / SIZES + (1 - 1 / SIZES) * CAUTIOUS_SPREAD
    plain = q * hand.counts @ each / users**2
    promised = (
        q
        * hand.counts
        @ (hand.weights**2 * (1 / SIZES + (1 - 1 / SIZES) * CAUTIOUS_SPREAD))
    )
    anchor = Anchor(value=0.0, scale=hand.scale, sampling=float(plain))
    radius = anchor.radius(float(promised) + 2 * hand.noise**2)
    gap = math.sqrt(q * hand.counts @ hand.gaps**2 + 2 * hand.noise**2)
    far = errors.half_width(1 - FALSE_ALARM, hand.scale, gap)
    assert (found.radius, found.warning_from) == pytest.approx((radius, far))
    for name, expected in hand.errors(radius, far).items():
        cells = 1e-3 if name == "warned" else 2e-4  # where a law is cut, in half cells
        assert getattr(found, name) == pytest.approx(expected, rel=cells, abs=1e-6)

    bias = hand.counts @ (hand.weights * hand.rates) - 0.2
    spread = hand.counts * hand.rates * (1 - hand.rates) / SIZES
    weighted = bias**2 + hand.weights**2 @ spread + 2 * hand.noise**2
    assert found.bias == pytest.approx(bias, abs=1e-12)
    assert found.weighted == pytest.approx(math.sqrt(weighted))
    unweighted = spread.sum() / users**2 + 2 / (users * epsilon) ** 2
    assert found.plain == pytest.approx(math.sqrt(unweighted))


@pytest.mark.slow
@pytest.mark.parametrize(("slope", "epsilon"), [(0.0, 0.5), (0.04, 1.0), (0.1, 0.2)])
def test_the_library_without_first_guesses_does_what_is_expected(
    slope: float, epsilon: float
) -> None:
    rng = np.random.default_rng(8)
    rates = np.repeat(OnAGrid(slope, epsilon, N).rates, COUNTS)
    k = np.repeat(SIZES.astype(np.int64), COUNTS)
    plans = make_plans(held_by(N), epsilon)
    rest = epsilon - plans.anchor_epsilon
    plans = dataclasses.replace(
        plans, cautious=cautious_mean(held_by(N), rest), adaptive=None
    )
    found = []
    for _ in range(400):
        users = Users(k, rng.binomial(k, rates))
        run = estimate_public_size(users, epsilon, plans=plans, rng=rng, trace=True)
        assert run.trace.path == "cautious"
        found.append((run.value - 0.2, (run.value - 0.2) ** 2, bool(run.warnings)))
    expected = pull(slope, epsilon, N)
    off, squares, warned = np.transpose(found)
    # Radius and threshold follow from a noisy anchor, so they vary by a few per cent.
    for values, aim in (
        (off, expected.moved_bias),
        (squares, expected.moved**2),
    ):
        allowed = 6 * values.std() / math.sqrt(len(values))
        assert abs(values.mean() - aim) < allowed + 0.03 * aim
    # Rare warnings are not Gaussian: five more of them are allowed.
    chance = expected.warned
    allowed = 6 * math.sqrt(chance * (1 - chance) * len(warned)) + 5
    assert abs(warned.sum() - chance * len(warned)) < allowed


@pytest.mark.parametrize(
    ("epsilon", "users"),
    [(e, 10_000) for e in BUDGETS] + [(1.0, users) for users in CROWDS],
)
def test_marks_and_reading_show_what_to_expect_at_each_slope(
    epsilon: float, users: int
) -> None:
    found = [pull(slope, epsilon, users) for slope in SLOPES]
    for slope, here in zip(SLOPES, found, strict=True):
        picture = SLOPE.at(slope=slope, epsilon=epsilon, users=users)
        above, below = marks_of(picture)
        band = above["plain mean, two standard errors", "ink"]
        assert band["x"].tolist() == list(SLOPES)
        assert band["high"] == pytest.approx([2000 * each.plain for each in found])
        assert band["low"] == pytest.approx(-band["high"])
        assert above["plain mean", "ink"]["y"].tolist() == [0.0, 0.0]
        for panel, name, look, field, unit in (
            (above, "weighted mean", "vermillion", "bias", 1000),
            (above, "moved value", "blue", "moved_bias", 1000),
            (below, "warning", "green", "warned", 1),
        ):
            expected = [unit * getattr(each, field) for each in found]
            assert panel[name, look]["x"].tolist() == list(SLOPES)
            assert panel[name, look]["y"] == pytest.approx(expected)
            assert panel["", look]["x"] == slope
            assert panel["", look]["y"] == pytest.approx(unit * getattr(here, field))
        assert picture.reading == (
            f"The mean over users is 0.2. The weighted mean aims at "
            f"{number(0.2 + here.bias)}; moved to within {number(here.radius)} of the "
            f"anchor, it is {number(0.2 + here.moved_bias)} on average. Root mean "
            f"squared errors, in thousandths: {number(1000 * here.plain)} for the "
            f"plain mean, {number(1000 * here.weighted)} for the weighted mean, "
            f"{number(1000 * here.moved)} when it is moved. There is a warning in "
            f"{percent(here.warned)} of the runs."
        )


def test_what_one_should_notice_about_a_slope_is_true() -> None:
    for epsilon in BUDGETS:
        found = [pull(slope, epsilon, 10_000) for slope in SLOPES]
        biases = np.array([each.bias for each in found])
        assert biases == pytest.approx(biases[-1] * np.array(SLOPES) / SLOPES[-1])
        moved = [each.moved_bias for each in found]
        # Up to the skewness of coins, which moves an average without a slope.
        assert (np.array(moved) < biases + 1e-5).all()
        assert min(moved) > -1e-5
        assert max(moved) < found[0].radius + 1e-9
        warned = [each.warned for each in found]
        assert warned == sorted(warned)
        assert warned[0] <= FALSE_ALARM + 1e-4
    rich, poor = pull(0.1, 1.0, 10_000), pull(0.1, 0.1, 10_000)
    assert rich.warned > 0.99 > 0.05 > poor.warned
    assert rich.moved < 0.5 * rich.weighted
    # Harm without a warning.
    assert poor.moved > 2.0 * poor.plain
    assert poor.radius > 5 * rich.radius


def test_the_setting_has_the_numbers_of_the_slope() -> None:
    assert numbers_in(SLOPE.setting) == [1, 5, 15, 50, 5, 500, 0.2]


def test_rounding_makes_no_chance_of_a_chance() -> None:
    assert chance_of(0.25) == 0.25
    assert 0.0 < chance_of(-1e-13) < 1e-6
    assert 1.0 > chance_of(1.0 + 1e-13) > 1.0 - 1e-6
