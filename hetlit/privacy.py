"""The ledger: what a release spent, on whom, under which neighbours, and why.

A mechanism is (epsilon, delta)-private for a neighbour relation if for every two
neighbouring tables of users and every set of outputs S,
``Pr[M(D) in S] <= exp(epsilon) * Pr[M(D') in S] + delta``.

Composition.  Users are divided into cohorts by public information only.  What one
user can lose is the sum of the steps that touch her cohort (adaptive sequential
composition: every step may look at the outputs of the earlier ones).  Steps that
touch other cohorts cost her nothing (parallel composition, which needs exactly
that the division does not depend on private data).  So the total is the largest
such sum over cohorts.

Chapter: User-level privacy from scratch.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

PUBLIC_SIZES = "replace one user's samples; n and every user's size k are public"
PRIVATE_SIZES = "replace one user, her size included; n and k_max are public"
NOT_PRIVATE = "none: this release is not private"


@dataclass(frozen=True)
class Cohort:
    """A group of users, chosen by public information."""

    name: str
    users: int
    chosen_by: str


@dataclass(frozen=True)
class Step:
    """One use of private data: on which cohorts, by which mechanism, at what cost."""

    name: str
    cohorts: tuple[str, ...]
    mechanism: str
    epsilon: float
    delta: float = 0.0


@dataclass(frozen=True)
class Ledger:
    """Everything a careful reader wants to know about a release.

    It holds public information only, so it can be released with the value.

    >>> ledger = Ledger(
    ...     neighbours=PUBLIC_SIZES,
    ...     cohorts=(Cohort("few", 10, "fewest samples"), Cohort("rest", 90, "others")),
    ...     steps=(
    ...         Step("first guess", ("few",), "Laplace", 1.0),
    ...         Step("final mean", ("rest",), "Laplace", 1.0),
    ...     ),
    ... )
    >>> ledger.epsilon, ledger.delta
    (1.0, 0.0)
    """

    neighbours: str
    cohorts: tuple[Cohort, ...]
    steps: tuple[Step, ...]
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        names = {cohort.name for cohort in self.cohorts}
        if not names or len(names) < len(self.cohorts):
            raise ValueError(
                "cohorts must be at least one, each with its own name, "
                f"not {self.cohorts!r}"
            )
        for step in self.steps:
            if not step.cohorts or not names.issuperset(step.cohorts):
                raise ValueError(
                    f"step {step.name!r} must name cohorts among {sorted(names)}, "
                    f"not {step.cohorts!r}"
                )
            if not (step.epsilon >= 0 and 0 <= step.delta <= 1):
                raise ValueError(
                    f"step {step.name!r} must cost epsilon >= 0 and delta in [0, 1], "
                    f"not {step.epsilon!r} and {step.delta!r}"
                )

    def spent_on(self, cohort: str) -> tuple[float, float]:
        """Return the (epsilon, delta) that a user of this cohort can lose."""
        names = [known.name for known in self.cohorts]
        if cohort not in names:
            raise ValueError(f"cohort must be one of {names}, not {cohort!r}")
        touching = [step for step in self.steps if cohort in step.cohorts]
        epsilon = math.fsum(step.epsilon for step in touching)
        return epsilon, math.fsum(step.delta for step in touching)

    @property
    def epsilon(self) -> float:
        """The total epsilon, the most that any user can lose."""
        return max(self.spent_on(cohort.name)[0] for cohort in self.cohorts)

    @property
    def delta(self) -> float:
        """The total delta, the most that any user can lose."""
        return max(self.spent_on(cohort.name)[1] for cohort in self.cohorts)

    def __str__(self) -> str:
        lines = [f"neighbours: {self.neighbours}", "cohorts:"]
        for cohort in self.cohorts:
            lines.append(f"  {cohort.name}: {cohort.users} users, {cohort.chosen_by}")
        lines.append("steps:")
        for step in self.steps:
            cost = _cost(step.epsilon, step.delta)
            everyone = len(set(step.cohorts)) == len(self.cohorts)
            on = "everyone" if everyone else " and ".join(step.cohorts)
            lines.append(f"  {step.name}, on {on}: {cost} ({step.mechanism})")
        lines.append("composition: steps on one cohort add up, cohorts do not")
        for cohort in self.cohorts:
            lines.append(f"  {cohort.name}: {_cost(*self.spent_on(cohort.name))}")
        lines.append(f"total: {_cost(self.epsilon, self.delta)}")
        lines.extend(f"note: {note}" for note in self.notes)
        return "\n".join(lines)


class Account:
    """A budget that is spent step by step and ends as a ledger.

    >>> account = Account(1.0, PRIVATE_SIZES, (Cohort("everyone", 9, "no selection"),))
    >>> account.laplace("first", 0.25, sensitivity=0.5), account.left
    (2.0, 0.75)
    """

    def __init__(
        self, epsilon: float, neighbours: str, cohorts: tuple[Cohort, ...]
    ) -> None:
        self.epsilon = epsilon
        self.neighbours = neighbours
        self.cohorts = cohorts
        self.steps: list[Step] = []

    @property
    def left(self) -> float:
        """What a user who took part in every step can still spend."""
        return self.epsilon - math.fsum(step.epsilon for step in self.steps)

    def laplace(self, name: str, share: float, sensitivity: float, *on: str) -> float:
        """Spend a share on a Laplace step and return its noise scale.

        `on` names the cohorts that take part; all of them by default.
        """
        self._spend(name, share, f"Laplace, sensitivity {sensitivity:.6g}", on)
        return sensitivity / share

    def exponential(self, name: str, share: float, *on: str) -> None:
        """Spend a share on an exponential mechanism of sensitivity 1."""
        self._spend(name, share, "exponential mechanism, sensitivity 1", on)

    def ledger(self, *notes: str) -> Ledger:
        """Return what was spent."""
        return Ledger(self.neighbours, self.cohorts, tuple(self.steps), notes)

    def _spend(
        self, name: str, share: float, mechanism: str, on: tuple[str, ...]
    ) -> None:
        everyone = tuple(cohort.name for cohort in self.cohorts)
        self.steps.append(Step(name, on or everyone, mechanism, share))


def not_private(users: int, step: str) -> Ledger:
    """Return the ledger of a release without any protection."""
    return Ledger(
        neighbours=NOT_PRIVATE,
        cohorts=(Cohort("everyone", users, "no selection"),),
        steps=(Step(step, ("everyone",), "no noise", math.inf),),
    )


def _cost(epsilon: float, delta: float) -> str:
    return f"epsilon {epsilon:.6g}" + (f", delta {delta:.3g}" if delta else "")
