"""What an estimator returns: a value, its ledger and, on request, a trace."""

from __future__ import annotations

from dataclasses import dataclass, field
from types import NoneType
from typing import Any

from hetlit import check
from hetlit.privacy.ledger import Ledger


class Trace:
    """What happened inside an estimator: for teaching, never for release.

    The attributes depend on the estimator: `noiseless`, `noise_scale`, `weights`,
    `threshold`, `objective`, `lower` and `upper` wherever they make sense.
    Arrays have one entry per row of the users they belong to.
    """

    def __init__(self, **parts: Any) -> None:
        self.__dict__.update(parts)

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(f"this trace has no {name!r}, only {sorted(vars(self))}")

    def __repr__(self) -> str:
        names = ", ".join(sorted(vars(self)))
        return f"Trace(NOT PRIVATE, never release it: {names})"


@dataclass(frozen=True)
class Estimate:
    """An estimate of the population mean.

    `value` and `ledger` can be released.  Made with ``trace=True`` it also has
    `trace`, which cannot.
    """

    value: float
    ledger: Ledger
    _trace: Trace | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "value", check.real("value", self.value))
        if not isinstance(self.ledger, Ledger):
            raise TypeError(
                f"ledger must be a Ledger, not {type(self.ledger).__name__}"
            )
        if not isinstance(self._trace, (Trace, NoneType)):
            raise TypeError(f"_trace must be a Trace, not {type(self._trace).__name__}")

    @property
    def trace(self) -> Trace:
        """The trace, if the estimator was called with trace=True."""
        if self._trace is None:
            raise AttributeError(
                "this estimate has no trace: call the estimator with trace=True, "
                "for teaching only"
            )
        return self._trace

    def __repr__(self) -> str:
        spent = f"epsilon={self.ledger.epsilon:.6g}, delta={self.ledger.delta:.3g}"
        secret = f", trace={self._trace!r}" if self._trace is not None else ""
        return f"Estimate(value={self.value:.6g}, {spent}{secret})"
