"""What an estimator returns: a value, how sure it is, its ledger and maybe a trace."""

from __future__ import annotations

from dataclasses import dataclass, field
from types import NoneType
from typing import Any

from hetlit import check
from hetlit.estimators.card import card
from hetlit.estimators.uncertainty import Uncertainty
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

    Everything in it can be released, except `trace`, which it has if it was made with
    ``trace=True``.

    value : in [0, 1]; what noise carried out of it is moved back, which costs nothing,
        because the value was private before, and only brings it nearer to the mean
    ledger : what the release spent, and why
    uncertainty : what is known of the error, from released numbers and public ones
    warnings : what a reader of the value should know, in sentences

    >>> from hetlit.privacy.ledger import not_private
    >>> sure = Uncertainty(noise=0.0, sampling=0.01)
    >>> estimate = Estimate(0.3, not_private(9, "mean"), uncertainty=sure)
    >>> low, high = estimate.interval(0.95)
    >>> round(low, 4), round(high, 4)
    (0.2804, 0.3196)
    """

    value: float
    ledger: Ledger
    _trace: Trace | None = field(default=None, repr=False)
    uncertainty: Uncertainty | None = None
    warnings: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        value = min(max(check.real("value", self.value), 0.0), 1.0)
        object.__setattr__(self, "value", value)
        kinds: dict[str, tuple[type, ...]] = {
            "ledger": (Ledger,),
            "_trace": (Trace, NoneType),
            "uncertainty": (Uncertainty, NoneType),
        }
        for name, allowed in kinds.items():
            part = getattr(self, name)
            if not isinstance(part, allowed):
                wanted, given = allowed[0].__name__, type(part).__name__
                raise TypeError(f"{name} must be of type {wanted}, not {given}")
        if not isinstance(self.warnings, tuple):
            raise TypeError(
                f"warnings must be a tuple of text, not {type(self.warnings).__name__}"
            )
        for warning in self.warnings:
            check.text("warnings: each", warning)

    @property
    def trace(self) -> Trace:
        """The trace, if the estimator was called with trace=True."""
        if self._trace is None:
            raise AttributeError(
                "this estimate has no trace: call the estimator with trace=True, "
                "for teaching only"
            )
        return self._trace

    @property
    def standard_error(self) -> float:
        """How far the value is typically off, at most 1.

        It counts the noise, the sampling error and, where an anchor was released, what
        a dependence of rates on sizes could hide; but not what clipping may have taken
        away.  It costs no budget, for the same reason as `interval`.
        """
        return min(self._known_uncertainty.standard_error, 1.0)

    def interval(
        self, level: float = 0.95, *, clipping: bool = True, sizes: bool = False
    ) -> tuple[float, float]:
        """Return (low, high), within [0, 1], that hold the mean with chance `level`.

        Parameters
        ----------
        level : strictly between 0 and 1
        clipping : whether to allow for what clipping may have taken away; false if you
            know that no users are far from the others
        sizes : whether to allow for rates that depend on sizes, as far as that could
            have gone unnoticed; false for an interval of the model

        Privacy: it is computed from released numbers and public ones, so that it costs
        nothing and can be released, at as many levels as you like.
        """
        level = check.strictly_between("level", level, 0.0, 1.0)
        clipping = check.flag("clipping", clipping)
        sizes = check.flag("sizes", sizes)
        width = self._known_uncertainty.half_width(
            level, clipping=clipping, sizes=sizes
        )
        return max(self.value - width, 0.0), min(self.value + width, 1.0)

    @property
    def _known_uncertainty(self) -> Uncertainty:
        if self.uncertainty is None:
            raise AttributeError(
                "this estimate does not say how sure it is: it was made without an "
                "uncertainty, as hetlit's own estimators never do"
            )
        return self.uncertainty

    def __repr__(self) -> str:
        parts = [f"value={self.value:.6g}"]
        if self.uncertainty is not None:
            low, high = self.interval()
            parts.append(f"interval=({low:.6g}, {high:.6g})")
        parts.append(f"epsilon={self.ledger.epsilon:.6g}")
        parts.append(f"delta={self.ledger.delta:.3g}")
        if self._trace is not None:
            parts.append(f"trace={self._trace!r}")
        lines = [f"Estimate({', '.join(parts)})"]
        return "\n".join(lines + [f"warning: {text}" for text in self.warnings])

    def _repr_html_(self) -> str:
        return card(self)
