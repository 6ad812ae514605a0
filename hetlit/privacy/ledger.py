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

A ledger only reports.  `hetlit.privacy.account` writes one, and adds the noise it
speaks of.

Chapter: User-level privacy from scratch.
"""

from __future__ import annotations

import math
import numbers
from dataclasses import asdict, dataclass
from typing import Any

from hetlit import check

PUBLIC_SIZES = "replace one user's samples; n and every user's size k are public"
PRIVATE_SIZES = "replace one user, her size included; n and k_max are public"
NOT_PRIVATE = "none: this release is not private"

LAPLACE = "Laplace"
EXPONENTIAL = "exponential mechanism"
NOTHING = "nothing released"
NO_NOISE = "no noise"


@dataclass(frozen=True)
class Cohort:
    """A group of users, chosen by public information."""

    name: str
    users: int
    chosen_by: str


@dataclass(frozen=True, kw_only=True)
class Mechanism:
    """How one answer was protected, in numbers.

    kind : "Laplace", "exponential mechanism", "nothing released" or "no noise"
    sensitivity : the most that one user moves what was asked: a number, the sum of
        the moves of several numbers, or the utility of every outcome
    scale : of the Laplace noise, None for the other kinds
    detail : what else the printed line says

    >>> print(Mechanism(kind=LAPLACE, sensitivity=0.005, scale=0.01))
    Laplace, sensitivity 0.005
    """

    kind: str
    sensitivity: float | None = None
    scale: float | None = None
    detail: str = ""

    def __str__(self) -> str:
        known = self.sensitivity is not None
        size = f", sensitivity {self.sensitivity:.6g}" if known else ""
        return self.kind + size + self.detail


@dataclass(frozen=True)
class Step:
    """One use of private data: on which cohorts, by which mechanism, at what cost."""

    name: str
    cohorts: tuple[str, ...]
    mechanism: Mechanism
    epsilon: float
    delta: float = 0.0


@dataclass(frozen=True)
class Ledger:
    """Everything a careful reader wants to know about a release.

    It holds public information only, so it can be released with the value.

    >>> laplace = Mechanism(kind=LAPLACE, sensitivity=0.1, scale=0.1)
    >>> ledger = Ledger(
    ...     neighbours=PUBLIC_SIZES,
    ...     cohorts=(Cohort("few", 10, "fewest samples"), Cohort("rest", 90, "others")),
    ...     steps=(
    ...         Step("first guess", ("few",), laplace, 1.0),
    ...         Step("final mean", ("rest",), laplace, 1.0),
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
        check.text("neighbours", self.neighbours)
        for name, kind in (("cohorts", Cohort), ("steps", Step), ("notes", str)):
            parts = getattr(self, name)
            if not isinstance(parts, tuple) or not all(
                isinstance(part, kind) for part in parts
            ):
                raise TypeError(f"{name} must be a tuple of {kind.__name__}")
        for cohort in self.cohorts:
            check.text("cohorts: a name", cohort.name)
            check.text("cohorts: chosen_by", cohort.chosen_by)
            check.integer("cohorts: users", cohort.users, 0)
        names = {cohort.name for cohort in self.cohorts}
        if not names or len(names) < len(self.cohorts):
            raise ValueError(
                "cohorts must be at least one, each with its own name, "
                f"not {self.cohorts!r}"
            )
        for step in self.steps:
            _check_step(step)
            if not step.cohorts or not names.issuperset(step.cohorts):
                raise ValueError(
                    f"steps: {step.name!r} must name cohorts among {sorted(names)}, "
                    f"not {step.cohorts!r}"
                )
            if not (step.epsilon >= 0 and 0 <= step.delta <= 1):
                raise ValueError(
                    f"steps: {step.name!r} must cost epsilon >= 0 and delta in [0, 1], "
                    f"not {step.epsilon!r} and {step.delta!r}"
                )

    def spent_on(self, cohort: str) -> tuple[float, float]:
        """Return the (epsilon, delta) that a user of this cohort can lose."""
        names = tuple(known.name for known in self.cohorts)
        cohort = check.one_of("cohort", cohort, names)
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

    def as_dict(self) -> dict[str, Any]:
        """Return the ledger as plain data: dictionaries, lists, numbers and words."""
        parts = asdict(self)
        for step in parts["steps"]:
            step["cohorts"] = list(step["cohorts"])
        return {
            "neighbours": self.neighbours,
            "cohorts": list(parts["cohorts"]),
            "steps": list(parts["steps"]),
            "epsilon": self.epsilon,
            "delta": self.delta,
            "notes": list(self.notes),
        }

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


def everyone(users: int) -> tuple[Cohort, ...]:
    """Return the division of users who all take part in every step."""
    return (Cohort("everyone", users, "no selection"),)


def not_private(users: int, step: str) -> Ledger:
    """Return the ledger of a release without any protection."""
    return Ledger(
        neighbours=NOT_PRIVATE,
        cohorts=everyone(users),
        steps=(Step(step, ("everyone",), Mechanism(kind=NO_NOISE), math.inf),),
    )


def _check_step(step: Step) -> None:
    """Refuse a step whose parts are not of their types; costs are looked at later."""
    check.text("steps: a name", step.name)
    if not isinstance(step.mechanism, Mechanism):
        raise TypeError(f"steps: {step.name!r} must have a Mechanism")
    check.text("steps: the kind of a mechanism", step.mechanism.kind)
    check.text("steps: the detail of a mechanism", step.mechanism.detail)
    costs: tuple[Any, ...] = (step.epsilon, step.delta)
    for cost in costs:
        if isinstance(cost, check.NOT_NUMBERS) or not isinstance(cost, numbers.Real):
            raise TypeError(f"steps: {step.name!r} must cost numbers")
    if not isinstance(step.cohorts, (tuple, str)):
        raise TypeError(f"steps: {step.name!r} must name its cohorts in a tuple")


def _cost(epsilon: float, delta: float) -> str:
    return f"epsilon {epsilon:.6g}" + (f", delta {delta:.3g}" if delta else "")
