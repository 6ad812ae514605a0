"""A Huber-loss mean of users, released by how flat its loss is.

Each user's mean pulls the estimate towards itself: in proportion to the distance,
but never harder than from a threshold T.  So a few strange users cannot drag it
far, and no single user can hide how well a value balances all pulls.

After Zhao et al., "A Huber Loss Minimization Approach to Mean Estimation under
User-level Differential Privacy" (NeurIPS 2024), who fit thresholds to the users'
sizes and release the minimiser with noise.  How much noise that takes depends on
the data: with half of the users at 0 and half at 1, one more can move the minimiser
nearly from end to end.  Here the minimiser gets no noise.  The exponential mechanism
draws a value from a public grid, with utility minus the size of the total pull, the
gradient of the loss (the K-norm gradient mechanism of Reimherr and Awan, NeurIPS
2019).  One user's part in the gradient is bounded for every table of users, so the
proof needs neither assumptions nor a delta.

Uncertainty: nobody asks how many users are beyond their thresholds, and half of them
can be.  Let y be where pulls balance, s a user's share of the weight, and x her mean,
which is p on average whatever her size.  Her pull upwards, clip(x - y, -T, T), goes
from -d to u, with d = min(T, y) and u = min(T, 1 - y).  It is nowhere below the line
from -d at x = y - d to u at x = 1, of slope m = (u + d)/(1 - y + d).  So it is at least
(p - y + d) m - d on average, and where pulls balance,

    p - y <= sum s d (1 - m) / sum s m.

With one threshold for all this is (1 - y - T)/2, and it is attained: half of the users
at 1, the others T below y.

Chapter: A realizable estimator.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from hetlit import check
from hetlit.check import Floats, Integers
from hetlit.estimators.clipped_mean import BETA
from hetlit.estimators.result import Estimate, Trace
from hetlit.estimators.uncertainty import Clipped, Uncertainty, of_weighted_mean, within
from hetlit.privacy.account import Account
from hetlit.privacy.ledger import PUBLIC_SIZES, everyone
from hetlit.privacy.noise import Randomness, source_of
from hetlit.theory.variance import variance_of_mean
from hetlit.users.groups import Groups, Sizes, blocks, by_size
from hetlit.users.table import Users, check_users

SPREAD = 0.05  # chosen by measurement: smaller is less noisy, larger less biased
COARSEST, FINEST = 1 << 8, 1 << 20  # steps of the grid
STEPS_PER_NOISE = 4  # steps of the grid in one scale of the noise


@dataclass(frozen=True, kw_only=True)
class HuberPlan:
    """Weights, thresholds and a grid on [0, 1], chosen from public sizes alone.

    steps : the grid is 0, 1/steps, ..., 1
    weights : shape (groups,), whole numbers, per user
    thresholds : shape (groups,), whole numbers of grid steps

    All in whole numbers, so that gradients and sensitivity are exact.
    """

    sizes: Sizes
    cap: int
    steps: int
    weights: Integers
    thresholds: Integers

    @property
    def sensitivity(self) -> int:
        """The most that one user's samples can move the gradient anywhere.

        Her pull stays in [-T, T], and it moves no more than her mean, which stays
        in [0, 1].
        """
        widths = np.minimum(2 * self.thresholds, self.steps)
        return int(np.max(self.weights * widths))

    @property
    def total_weight(self) -> int:
        """The slope of the gradient where nobody is beyond her threshold."""
        return int(np.sum(self.weights * self.sizes.counts))

    def gradient(self, groups: Groups) -> Integers:
        """Return sum of weight * clip(point - mean, -T, T), shape (steps + 1,).

        In grid steps, with means rounded to the grid.  A user adds her weight to
        the slope between mean - T and mean + T.
        """
        change = np.zeros(self.steps + 1, dtype=np.int64)
        at_zero, users = 0, groups.users
        for rows in blocks(users):
            group = groups.positions(rows)
            means = users.successes[rows] / users.k[rows]
            nearest = np.rint(means * self.steps).astype(np.int64)
            weights = self.weights[group] * users.counts[rows]
            reach = self.thresholds[group]
            np.add.at(change, np.maximum(nearest - reach, 0), weights)
            np.subtract.at(change, np.minimum(nearest + reach, self.steps), weights)
            at_zero -= int(np.sum(weights * np.minimum(nearest, reach)))
        slopes = np.cumsum(change[:-1])
        return at_zero + np.concatenate(([0], np.cumsum(slopes)))


def plan_huber(
    sizes: Sizes,
    epsilon: float,
    *,
    cap: int | None = None,
    reach: float | None = None,
    spread: float = SPREAD,
) -> HuberPlan:
    """Return the plan of `huber` for these sizes; the users' samples play no part."""
    n = sizes.n
    if reach is None:
        reach = math.sqrt(2.0 * math.log(2.0 * n / BETA))
    if cap is None:
        powers = [1 << power for power in range(int(sizes.k.max()).bit_length())]
        cap = min(powers, key=lambda c: _variance(sizes, epsilon, c, reach, spread))
    weights, thresholds = _shape(sizes, cap, reach, spread)
    total = int(weights @ sizes.counts.astype(np.float64))
    scale = _noise_scale(sizes, epsilon, weights, thresholds)
    wanted = math.ceil(math.log2(STEPS_PER_NOISE / scale))
    steps = min(max(COARSEST, 1 << max(wanted, 0)), FINEST)
    while steps * total >= 2**62 and steps > COARSEST:
        steps //= 2
    if steps * total >= 2**62:
        raise ValueError("users: a total weight is too large to be exact")
    whole = np.clip(np.rint(thresholds * steps), 1, steps).astype(np.int64)
    return HuberPlan(
        sizes=sizes,
        cap=cap,
        steps=steps,
        weights=weights.astype(np.int64),
        thresholds=whole,
    )


def huber(
    users: Users,
    epsilon: float,
    *,
    cap: int | None = None,
    reach: float | None = None,
    spread: float = SPREAD,
    rng: Randomness = None,
    trace: bool = False,
) -> Estimate:
    """Return a private Huber-loss mean, for public sizes.

    A user with k samples has weight m = min(k, cap) and threshold
    T = reach sqrt(1/(4m) + spread^2), at most 1.  Good where users are much alike:
    what lies beyond T of the others counts only as much as T, a minority of
    different users no less than an error in the data.

    Parameters
    ----------
    users : Users
    epsilon : the total user-level privacy budget of the release, in [1e-12, 1e12]
    cap : a whole number of at least 1; by default the power of two with the least
        predicted variance if p = 1/2 and nobody is beyond her threshold
    reach : above 0; by default sqrt(2 log(2n/0.05))
    spread : the standard deviation of the users' rates that weights and thresholds
        allow for, in [0, 1/2]; a guess that must not come from the same users' data
    rng : simulated noise; see `hetlit.privacy.noise`
    trace : also return what happened inside, not for release

    Returns
    -------
    Estimate, a point of a public grid on [0, 1].  Where nobody is beyond her
    threshold the noise is close to Laplace with trace.noise_scale.

    Privacy: `epsilon` in total, delta 0; neighbours replace one user's samples; n
    and sizes are public.  Sizes fix the grid, weights and thresholds.  The gradient
    at a point moves by at most max of weight * min(2T, 1), hence so does minus its
    absolute value, and the exponential mechanism with that sensitivity is
    epsilon-private.

    See the module for how this differs from the method of Zhao et al.

    >>> from hetlit import Beta, sample_users, sizes
    >>> rng = np.random.default_rng(0)
    >>> users = sample_users(Beta(0.3, 0.0004), sizes.harmonic(10_000), rng)
    >>> estimate = huber(users, 1.0, rng=rng)
    >>> abs(estimate.value - 0.3) < 0.02, estimate.ledger.epsilon
    (True, 1.0)
    """
    users = check_users(users)
    epsilon = check.epsilon(epsilon)
    trace = check.flag("trace", trace)
    cap = None if cap is None else check.integer("cap", cap, 1)
    reach = None if reach is None else check.between("reach", reach, 1e-12, 1e12)
    spread = check.between("spread", spread, 0.0, 0.5)
    source = source_of(rng)

    groups = by_size(users)
    plan = plan_huber(groups.sizes, epsilon, cap=cap, reach=reach, spread=spread)
    distance = np.abs(plan.gradient(groups))
    # In units of 1, not of grid steps; steps are a power of two, so this is exact.
    sensitivity = plan.sensitivity / plan.steps
    account = Account(epsilon, PUBLIC_SIZES, everyone(users.n), source)
    chosen = account.choose(
        "Huber mean",
        -distance / plan.steps,
        epsilon,
        sensitivity=sensitivity,
        detail=" of the gradient",
    )
    value = chosen / plan.steps
    noise_scale = 2.0 * sensitivity / (epsilon * plan.total_weight)
    inside = None
    if trace:
        group = groups.all_positions
        inside = Trace(
            noiseless=int(np.argmin(distance)) / plan.steps,
            noise_scale=noise_scale,
            sensitivity=sensitivity,
            weights=plan.weights[group] / plan.total_weight,
            threshold=plan.thresholds[group] / plan.steps,
            cap=plan.cap,
            plan=plan,
        )
    known = known_error(plan, value, noise_scale)
    return Estimate(value, account.ledger(), inside, known)


def known_error(plan: HuberPlan, value: float, noise: float) -> Uncertainty:
    """Return the uncertainty of a release: see the module.

    Means were rounded to the grid, and so was the value.
    """
    sizes, shares = plan.sizes, plan.weights / plan.total_weight
    sure = of_weighted_mean(value, sizes.k, sizes.counts, shares, math.inf, noise)
    off = 3.0 * sure.standard_error  # from where pulls balance without noise
    farthest = max(
        hidden(point, sizes.counts * shares, plan.thresholds / plan.steps)
        for near in (value - off, value, value + off)
        for point in (within(near), 1.0 - within(near))
    )
    return replace(sure, clipped=Clipped(moved=farthest + 1.0 / plan.steps))


def hidden(y: float, shares: Floats, thresholds: Floats) -> float:
    """Return the most that p can be above y if pulls balance there.

    >>> hidden(0.3, np.ones(1), np.array([0.1])), hidden(0.3, np.ones(1), np.ones(1))
    (0.3, 0.0)
    """
    below, above = np.minimum(thresholds, y), np.minimum(thresholds, 1.0 - y)
    slopes = (above + below) / (1.0 - y + below)
    return float(np.sum(shares * below * (1.0 - slopes)) / np.sum(shares * slopes))


def _shape(
    sizes: Sizes, cap: int, reach: float, spread: float
) -> tuple[Floats, Floats]:
    """Return the weights and the thresholds of the groups."""
    weights = np.minimum(sizes.k, float(cap))
    with np.errstate(over="ignore"):  # a huge reach is no threshold at all
        thresholds = reach * np.sqrt(0.25 / weights + spread**2)
    return weights, np.minimum(thresholds, 1.0)


def _noise_scale(
    sizes: Sizes, epsilon: float, weights: Floats, thresholds: Floats
) -> float:
    """Return the scale of the noise where nobody is beyond her threshold."""
    sensitivity = float(np.max(weights * np.minimum(2.0 * thresholds, 1.0)))
    return 2.0 * sensitivity / (epsilon * float(np.sum(weights * sizes.counts)))


def _variance(
    sizes: Sizes, epsilon: float, cap: int, reach: float, spread: float
) -> float:
    """Return the predicted variance at p = 1/2."""
    weights, thresholds = _shape(sizes, cap, reach, spread)
    shares = weights / np.sum(weights * sizes.counts)
    variances = variance_of_mean(sizes.k, 0.25, spread**2)
    noise = _noise_scale(sizes, epsilon, weights, thresholds)
    return float(np.sum(sizes.counts * shares**2 * variances) + 2.0 * noise**2)
