"""The account: one call adds the noise and writes the line that speaks of it.

An estimator opens an account with its budget and asks.  Every answer is protected by
the noise that its line in the ledger names, because both are made here, from the same
numbers: the noise cannot be drawn without the line, nor the line written without the
noise.

Privacy of a step, for neighbours under which `sensitivity` holds:

laplace
    The statistic moves by at most `sensitivity`, so the density of the answer
    changes by a factor of at most exp(sensitivity/scale) = exp(epsilon).
counts
    The same for several numbers, whose moves add up to at most `sensitivity`.
choose
    Utilities move by at most `sensitivity`; Pr(outcome) is proportional to
    exp(epsilon utility/(2 sensitivity)), whose numerator and normalising sum each
    change by a factor of at most exp(epsilon/2).

A statistic that nobody can move is public: compute it from public numbers, do not ask.

Chapter: User-level privacy from scratch.
"""

from __future__ import annotations

from typing import Any

from hetlit import check
from hetlit.check import Floats
from hetlit.privacy.ledger import (
    EXPONENTIAL,
    LAPLACE,
    NOTHING,
    Cohort,
    Ledger,
    Mechanism,
    Step,
    everyone,
)
from hetlit.privacy.noise import NoiseSource, Randomness, source_of

# Shares of a budget, added up again, may differ from it by so much of it.
ROUNDING = 1e-12


class Account:
    """A budget that is spent step by step and ends as a ledger.

    Parameters
    ----------
    epsilon, delta : what each cohort can spend, epsilon in [1e-100, 1e100]
    neighbours : which tables the release must not tell apart, in words
    cohorts : a division of the users by public information
    source : where the noise comes from; see `hetlit.privacy.noise`

    In every step, `on` names the cohorts that take part, all of them by default.

    >>> import numpy as np
    >>> source = source_of(np.random.default_rng(0))
    >>> account = Account(1.0, "replace one user", everyone(9), source)
    >>> answer = account.laplace("first", 0.5, 1 / 9, 0.25)
    >>> account.left, print(account.ledger().steps[0].mechanism)
    Laplace, sensitivity 0.111111
    (0.75, None)
    """

    def __init__(
        self,
        epsilon: float,
        neighbours: str,
        cohorts: tuple[Cohort, ...],
        source: NoiseSource,
        *,
        delta: float = 0.0,
    ) -> None:
        self.epsilon = check.amount("epsilon", epsilon)
        self.delta = check.at_least("delta", delta, 0.0)
        if not isinstance(source, NoiseSource):
            raise TypeError(
                f"source must be a NoiseSource, not {type(source).__name__}"
            )
        self.source = source
        self._ledger = Ledger(neighbours, cohorts, ())

    @property
    def left(self) -> float:
        """What every cohort can still spend."""
        return self.epsilon - self._ledger.epsilon

    @property
    def scale(self) -> float:
        """The scale of the noise in the last step."""
        scale = self._ledger.steps[-1].mechanism.scale
        if scale is None:
            raise ValueError("the last step added no Laplace noise")
        return scale

    def laplace(
        self,
        name: str,
        statistic: float,
        sensitivity: float,
        epsilon: float,
        *on: str,
        delta: float = 0.0,
        detail: str = "",
    ) -> float:
        """Return the statistic with Laplace noise of scale sensitivity/epsilon.

        `delta` is for a step that may fail for another reason than its noise, as the
        test of propose-test-release does; `detail` says so in the ledger.
        """
        statistic = check.secret("statistic", statistic)
        scale = self._laplace_step(name, sensitivity, epsilon, on, delta, detail)
        return self.source.laplace(statistic, scale)

    def counts(
        self,
        name: str,
        counts: Floats,
        sensitivity: float,
        epsilon: float,
        *on: str,
        detail: str = "",
    ) -> Floats:
        """Return several numbers, each with Laplace noise of scale sensitivity/epsilon.

        `sensitivity` bounds the sum of their moves.
        """
        counts = check.secrets("counts", counts)
        scale = self._laplace_step(name, sensitivity, epsilon, on, 0.0, detail)
        return self.source.laplaces(counts, scale)

    def choose(
        self,
        name: str,
        utilities: Any,
        epsilon: float,
        *on: str,
        sensitivity: float = 1.0,
        delta: float = 0.0,
        detail: str = "",
    ) -> int:
        """Return the index of an outcome, drawn by the exponential mechanism."""
        sensitivity = check.amount("sensitivity", sensitivity)
        epsilon = check.amount("epsilon", epsilon)
        values = check.secrets("utilities", utilities)
        detail = check.text("detail", detail)
        mechanism = Mechanism(kind=EXPONENTIAL, sensitivity=sensitivity, detail=detail)
        self._spend(name, epsilon, delta, mechanism, on)
        return self.source.choose(values, epsilon, sensitivity)

    def nothing(
        self, name: str, epsilon: float, *on: str, delta: float = 0.0, why: str
    ) -> None:
        """Charge for a step that was planned but releases nothing."""
        mechanism = Mechanism(kind=NOTHING, detail=f": {check.text('why', why)}")
        self._spend(name, epsilon, delta, mechanism, on)

    def ledger(self, *notes: str) -> Ledger:
        """Return what was spent."""
        known = self._ledger
        return Ledger(known.neighbours, known.cohorts, known.steps, notes)

    def _laplace_step(
        self,
        name: str,
        sensitivity: float,
        epsilon: float,
        on: tuple[str, ...],
        delta: float,
        detail: str,
    ) -> float:
        """Write the line of a Laplace step and return the scale of its noise."""
        sensitivity = check.amount("sensitivity", sensitivity)
        scale = sensitivity / check.amount("epsilon", epsilon)
        detail = check.text("detail", detail)
        mechanism = Mechanism(
            kind=LAPLACE, sensitivity=sensitivity, scale=scale, detail=detail
        )
        self._spend(name, epsilon, delta, mechanism, on)
        return scale

    def _spend(
        self,
        name: str,
        epsilon: float,
        delta: float,
        mechanism: Mechanism,
        on: tuple[str, ...],
    ) -> None:
        """Write a line, before any noise is drawn, unless it overdraws a budget."""
        name, epsilon = check.text("name", name), check.amount("epsilon", epsilon)
        delta = check.between("delta", delta, 0.0, 1.0)
        known = self._ledger
        on = on or tuple(cohort.name for cohort in known.cohorts)
        steps = (*known.steps, Step(name, on, mechanism, epsilon, delta))
        after = Ledger(known.neighbours, known.cohorts, steps)
        for total, budget, what in (
            (after.epsilon, self.epsilon, "epsilon"),
            (after.delta, self.delta, "delta"),
        ):
            if not total <= budget * (1.0 + ROUNDING):
                raise ValueError(
                    f"{what} is overspent: step {name!r} would make it {total:.6g} of "
                    f"{budget:.6g} for one cohort"
                )
        self._ledger = after


def single_step(epsilon: Any, rng: Randomness) -> Account:
    """Return the account of one step, for functions that release one answer."""
    budget = check.epsilon(epsilon)
    return Account(budget, "as the function says", everyone(1), source_of(rng))
