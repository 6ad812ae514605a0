"""What `plan` returns: numbers to expect of a release, and how they are shown.

Everything in a forecast is as public as the sizes that it was made from.
"""

from __future__ import annotations

from dataclasses import dataclass
from html import escape

from hetlit.estimators.card import FRAME, LINE

METHODS = {
    "plain": "the mean of all user means; other weights would not pay",
    "cautious": "a weighted mean, without first guesses; they would not pay",
    "adaptive": "private first guesses, then a mean with the weights they suggest",
}
TABLE = "border-collapse: collapse; color: inherit; margin-top: 0.5em"
WIDTHS = (7, 10, 10, 11, 10, 10)  # of the columns of a printed forecast


@dataclass(frozen=True, kw_only=True)
class Line:
    """What to expect if the users' rates have one spread.

    An error is a root mean squared error, a half-width half the length of an interval.

    spread : the standard deviation of the users' rates
    path : what the default would do with them: "plain" or "cautious", or "clipped" or
        "unclipped" after first guesses; "plain again" if sizes are private, and what
        was learned about them changes nothing
    error : of the default
    half_width : of the interval that the default would give
    plain_error : of ``method="plain"``
    plain_half_width : of the interval that ``method="plain"`` would give
    sampling_error : without privacy, with the best weights
    """

    spread: float
    path: str
    error: float
    half_width: float
    plain_error: float
    plain_half_width: float
    sampling_error: float


@dataclass(frozen=True, kw_only=True, repr=False)
class Forecast:
    """What to expect of a release.  It prints itself as a table.

    n : the number of users
    epsilon : the total budget, as given or as found
    k_max : the public bound on sizes if they are private, None if they are public
    mean : the population mean that was assumed
    level : of the intervals
    method : the plan of the default: "plain", "cautious" or "adaptive"
    lines : one `Line` for each spread
    """

    n: int
    epsilon: float
    k_max: int | None
    mean: float
    level: float
    method: str
    lines: tuple[Line, ...]

    @property
    def _titles(self) -> tuple[str, str]:
        sizes = "public" if self.k_max is None else f"private, at most {self.k_max}"
        setting = f"epsilon {self.epsilon:.4g}, mean {self.mean:g}"
        return (
            f"Forecast for {self.n} users, sizes {sizes}, {setting}",
            f"Default: {METHODS[self.method]}",
        )

    @property
    def _heads(self) -> tuple[str, str, str]:
        level = f"{100.0 * self.level:.6g}%"
        return "rates'", "expected error", f"half of the {level} interval"

    @property
    def _rows(self) -> list[list[str]]:
        rows = [["sd", "default", "plain", "no privacy", "default", "plain"]]
        for line in self.lines:
            errors = (line.error, line.plain_error, line.sampling_error)
            numbers = (*errors, line.half_width, line.plain_half_width)
            rows.append([f"{line.spread:.3g}", *(f"{x:.2g}" for x in numbers)])
        return rows

    def __repr__(self) -> str:
        first, errors, widths = self._heads
        lines = [*self._titles, f"{first:<7} {errors:<33} {widths}"]
        for row in self._rows:
            cells = (
                f"{cell:<{width}}" for cell, width in zip(row, WIDTHS, strict=True)
            )
            lines.append(" ".join(cells).rstrip())
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        first, errors, widths = (escape(head) for head in self._heads)
        names, *rows = self._rows
        right = 'style="text-align: right; padding: 0.1em 0.7em"'
        table = (
            f"<tr><th {right}>{first}</th>"
            f'<th {right} colspan="3">{errors}</th>'
            f'<th {right} colspan="2">{widths}</th></tr>'
        )
        cells = "".join(f'<th {right} scope="col">{name}</th>' for name in names)
        table += f'<tr style="border-bottom: {LINE}">{cells}</tr>'
        for spread, *numbers in rows:
            cells = "".join(f"<td {right}>{number}</td>" for number in numbers)
            table += f'<tr><th {right} scope="row">{spread}</th>{cells}</tr>'
        titles = "".join(f"<div>{escape(title)}</div>" for title in self._titles)
        table = f'<table style="{TABLE}">{table}</table>'
        return f'<div style="{FRAME}">{titles}{table}</div>'
