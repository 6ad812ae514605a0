"""Explorers of the chapter "Private k": what secret sizes cost, and PTR's test.

The population is that of the chapter, with sizes at the quantiles of its power law.

`secret_sizes` predicts, as the chapter does, under two assumptions: first guesses are
right, and nobody is clipped.  Then

- the plain mean needs no sizes, and its prediction is exact;
- with public sizes it is the objective of the ideal estimator with optimal weights,
  which needs no cohorts because it is told everything;
- with private sizes it is the noisy ratio's, to first order: the final cohort gets
  four users in five and 85 per cent of the budget for U, and the noise in N, which
  only multiplies the error of the first guess, adds nothing.
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np

from hetlit.check import Floats, Integers
from hetlit.estimators.clipped_mean import BETA
from hetlit.estimators.first_guesses import initial_mean_error
from hetlit.estimators.ideal import plan_ideal
from hetlit.estimators.private_k.ptr import (
    certified_distance,
    pass_probability,
    sensitivity_within,
)
from hetlit.estimators.private_k.ratio import SHARES
from hetlit.estimators.private_k.sums import RatioPlan, RatioStatistics, ratio_plan
from hetlit.teaching.explorers.explorer import Explorer, Parameter
from hetlit.teaching.explorers.picture import (
    Axis,
    Line,
    Panel,
    Picture,
    Points,
    level,
    number,
    upright,
)
from hetlit.theory.populations import Beta
from hetlit.theory.variance import plain_variance, user_variance
from hetlit.users.groups import Sizes
from hetlit.users.simulate import sample_users

MEAN, SPREAD = 0.3, 0.02
N, K_MAX, EXPONENT = 10_000, 2000, 1.5
CAPS = (1, 2, 3, 5, 7, 10, 15, 20, 30, 50, 70, 100, 150, 200, 300, 500, 1000, 2000)
# A curve over all caps needs no more than these.
DRAWN = np.unique(np.geomspace(1, K_MAX, 49).round().astype(np.int64))


@lru_cache(maxsize=1)
def profile() -> tuple[Integers, Integers]:
    """Return sizes and how many users hold them, at the quantiles of the power law."""
    k = np.arange(1, K_MAX + 1)
    upto = np.cumsum(k**-EXPONENT)
    places = (np.arange(N) + 0.5) / N * upto[-1]
    held, counts = np.unique(1 + np.searchsorted(upto, places), return_counts=True)
    return held, counts


def plain_prediction(epsilon: float) -> float:
    """Return the variance of the plain mean of user means."""
    held, counts = profile()
    q = MEAN * (1.0 - MEAN)
    return plain_variance(held.astype(np.float64), counts, q, SPREAD**2, N, epsilon)


def public_prediction(epsilon: float) -> tuple[float, Floats]:
    """Return the variance of the ideal estimator, and its weights, one per size."""
    held, counts = profile()
    sizes = Sizes(held.astype(np.float64), counts)
    plan = plan_ideal(sizes, MEAN, SPREAD**2, epsilon)
    return plan.objective, plan.weights


def private_plan(cap: int, epsilon: float) -> RatioPlan:
    """Return what a user of each size contributes to the noisy ratio."""
    alpha = min(initial_mean_error(N // 10, epsilon, BETA), 1.0)
    return ratio_plan(MEAN, SPREAD**2, cap, n=N, alpha=alpha, width=None, beta=BETA)


def private_prediction(cap: int, epsilon: float) -> float:
    """Return the variance of the noisy ratio with this cap: see the module."""
    held, counts = profile()
    plan = private_plan(cap, epsilon)
    final = N - 2 * (N // 10)
    weights = plan.weights[np.minimum(held, cap) - 1]
    average = float(counts @ weights) / N
    squares = float(counts @ (weights**2 * user_variance(held, MEAN, SPREAD**2))) / N
    scale = plan.offset_sensitivity / (SHARES[2] * epsilon * final * average)
    return squares / (final * average**2) + 2.0 * scale**2


def secret_sizes(*, cap: int, epsilon: float) -> Picture:
    """Return standard errors with public and private sizes, and the weights."""
    plain = math.sqrt(plain_prediction(epsilon))
    variance, weights = public_prediction(epsilon)
    public = math.sqrt(variance)
    private = np.sqrt([private_prediction(int(c), epsilon) for c in DRAWN])
    chosen = math.sqrt(private_prediction(cap, epsilon))
    held, counts = profile()
    capped = private_plan(cap, epsilon).weights[np.minimum(held, cap) - 1]
    shown = np.unique(np.searchsorted(held, np.minimum(DRAWN, held[-1])))
    best = int(np.argmin(private))

    caps = Axis("cap on sizes", 1.0, K_MAX, log=True)
    error = Axis("standard error", 8e-4, 0.03, log=True)
    size = Axis("samples the user holds", 1.0, K_MAX, log=True)
    weight = Axis("her weight, over the average", 0.05, 60.0, log=True)
    return Picture(
        (
            Panel(
                caps,
                error,
                (
                    level(caps, plain, "vermillion", "plain mean"),
                    level(caps, public, "green", "ideal, public sizes"),
                    Line(DRAWN, private, "blue", "private sizes"),
                    Points([cap], [chosen], "ink", "chosen cap"),
                ),
            ),
            Panel(
                size,
                weight,
                (
                    level(size, 1.0, "vermillion", "plain mean"),
                    Line(
                        held[shown], weights[shown] * N, "green", "ideal, public sizes"
                    ),
                    Line(
                        held[shown],
                        capped[shown] * N / float(counts @ capped),
                        "blue",
                        "private sizes",
                    ),
                ),
            ),
        ),
        reading=(
            f"Standard errors, in thousandths: {number(1000 * public)} with public "
            f"sizes, {number(1000 * chosen)} with private ones capped at "
            f"{number(cap)}, {number(1000 * plain)} for the plain mean. The best cap "
            f"is about {number(int(DRAWN[best]))}, with "
            f"{number(1000 * float(private[best]))}."
        ),
    )


SECRET_SIZES = Explorer(
    name="secret_sizes",
    chapter="private_k",
    title="What does it cost to keep sizes secret?",
    setting=(
        "10,000 users with sizes up to 2,000, most of them small. The population mean "
        "is 0.3 and the spread of users' rates 0.02. The line for private sizes is "
        "that of the noisy ratio, which sets a fifth of the users aside for first "
        "guesses; these are taken to be right."
    ),
    picture=secret_sizes,
    parameters=(
        Parameter("cap", "cap on sizes", CAPS, 50),
        Parameter(
            "epsilon",
            "privacy budget epsilon",
            (0.1, 0.2, 0.3, 0.5, 1.0, 2.0, 3.0, 5.0, 10.0),
            1.0,
        ),
    ),
    notice=(
        "A low cap wastes what large users know, a high one makes the noise hide the "
        "largest user who could exist. Even at the best cap a gap to public sizes "
        "remains. A part of it pays for first guesses, which the ideal estimator is "
        "told, and a part for the noisy ratio's simplicity: the library's default, "
        "which sets no users aside, comes closer."
    ),
    description=(
        "Above, standard error against the cap on sizes, log scales: a valley for "
        "private sizes, or for large budgets a slope that levels off, with the chosen "
        "cap marked, and level lines for public sizes, "
        "below the valley, and for the plain mean. Below, the weight of a user "
        "against the samples she holds: with private sizes it is level beyond the cap, "
        "with public sizes it goes on rising, and for the plain mean it is the same "
        "for all."
    ),
)

# The plan of the chapter: weights stop growing at a cap of 50 samples.
PTR_CAP, PTR_ALPHA, SEED = 50, 0.05, 404
REPLACED = np.unique(np.geomspace(1, N, 49).round().astype(np.int64))


@lru_cache(maxsize=1)
def table() -> tuple[RatioPlan, RatioStatistics]:
    """Return the plan of the chapter and its two sums for one table of users."""
    held, counts = profile()
    meta = Beta(MEAN, SPREAD**2)
    users = sample_users(meta, np.repeat(held, counts), np.random.default_rng(SEED))
    plan = ratio_plan(
        MEAN, SPREAD**2, PTR_CAP, n=N, alpha=PTR_ALPHA, width=None, beta=BETA
    )
    return plan, plan.statistics(users)


@lru_cache(maxsize=1)
def certified() -> Floats:
    """Return how far one more user can move the mean, after so many were replaced."""
    plan, sums = table()
    weight, offset = sums.total_weight, sums.total_offset
    bounds = [sensitivity_within(plan, N, weight, offset, int(d)) for d in REPLACED]
    return np.array(bounds)


def ptr(*, proposal: float, epsilon: float, delta: float) -> Picture:
    """Return the bound that the test certifies, and the chance that it passes."""
    plan, sums = table()
    here = sensitivity_within(plan, N, sums.total_weight, sums.total_offset, 0)
    distance = certified_distance(plan, sums, N, proposal / 1000.0)
    bar = math.log(1.0 / (2.0 * delta)) / epsilon
    chance = pass_probability(distance, epsilon, delta)
    # The chance rises within a few noise scales of the bar, so draw it there.
    near = np.clip(bar + np.linspace(-8.0, 8.0, 49) / epsilon, 1.0, N)
    near = np.concatenate(([1.0], near, [N]))
    passes = np.array([pass_probability(d, epsilon, delta) for d in near])
    # Distances below 1 are left of a log axis, so their marker waits at its end.
    place = max(distance, 1)

    users = Axis("users replaced", 1.0, N, log=True)
    moves = Axis("one more user's effect (thousandths)", 0.2, 10.0, log=True)
    distances = Axis("distance of the table, in users", 1.0, N, log=True)
    probability = Axis("probability to pass", 0.0, 1.0)
    if distance < 0:
        reading = (
            f"The proposal is below the bound for the table itself, "
            f"{number(1000 * here)} thousandths. So the distance is −1, drawn at the "
            f"left edge, and the test passes with probability {number(chance)}, below "
            f"delta, {number(delta)}."
        )
    else:
        replaced = f"up to {distance:,}" if distance < N else f"all {N:,}"
        reading = (
            f"The proposal is certain to hold with {replaced} users replaced; the bar "
            f"is at {number(bar)}. The test {_passes(chance)}."
        )
    return Picture(
        (
            Panel(
                users,
                moves,
                (
                    level(users, proposal, "vermillion", "proposal"),
                    Line(REPLACED, 1000.0 * certified(), "blue", "certified bound"),
                    upright(moves, place, "green", "distance"),
                ),
            ),
            Panel(
                distances,
                probability,
                (
                    upright(probability, bar, "ink", "bar"),
                    Line(near, passes, "purple", "chance to pass"),
                    upright(probability, place, "green", "distance"),
                    Points([place], [chance], "purple", "this table"),
                ),
            ),
        ),
        reading=reading,
    )


def _passes(chance: float) -> str:
    if chance < 0.9995:
        return f"passes with probability {number(chance)}"
    return "passes nearly always, with at most 1 failure in 2,000"


PTR = Explorer(
    name="ptr",
    chapter="private_k",
    title="Does the proposal pass its test?",
    setting=(
        "A table of 10,000 users with sizes up to 2,000, most of them small, whose "
        "weights stop growing at 50 samples."
    ),
    picture=ptr,
    parameters=(
        Parameter(
            "proposal",
            "proposal, in thousandths",
            (
                *(0.3, 0.35, 0.355, 0.36, 0.365, 0.37, 0.38, 0.4),
                *(0.45, 0.5, 0.6, 0.8, 1.0, 2.0, 3.0, 5.0),
            ),
            0.38,
        ),
        Parameter(
            "epsilon", "epsilon of the test", (0.05, 0.1, 0.2, 0.3, 0.5, 1.0), 0.1
        ),
        Parameter(
            "delta",
            "chance delta to pass wrongly",
            (1e-9, 1e-6, 1e-3),
            1e-6,
            on_page=False,
        ),
    ),
    notice=(
        "A proposal a tenth above the flat part of the curve holds for more than a "
        "hundred replacements. A smaller epsilon for the test moves the bar to the "
        "right, and then it takes a higher proposal to pass, which means more noise in "
        "the answer."
    ),
    description=(
        "Above, how far one more user can move the weighted mean after so many users "
        "have been replaced, log scales: flat up to about a hundred, then rising "
        "steeply and flat again once anything is possible; a level line at the "
        "proposal and an upright one at the distance where the curve crosses it. "
        "Below, the probability to pass the test against the distance, a step at the "
        "bar, with this table marked."
    ),
)
