"""An estimate as a small card of HTML, which notebooks show in place of its text.

The card takes the colour of the text around it, so that it can be read on light and on
dark pages.  It needs no script, and it shows nothing of a trace.
"""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hetlit.estimators.result import Estimate

LINE = "1px solid color-mix(in srgb, currentColor 35%, transparent)"
FRAME = (
    "display: inline-block; max-width: 46em; padding: 0.6em 1em; "
    f"background: transparent; border: 1px solid; border: {LINE}; border-radius: 0.4em"
)
MARKED = "margin: 0.5em 0; padding-left: 0.8em; border-left: 0.25em solid currentColor"
LEDGER = "white-space: pre-wrap; background: transparent; color: inherit; margin: 0"
NOT_PRIVATE = "not private: never release the trace"


def card(estimate: Estimate) -> str:
    """Return the card of an estimate: value, interval, budget, warnings, ledger."""
    ledger = estimate.ledger
    rows = []
    if estimate.uncertainty is not None:
        low, high = estimate.interval()
        rows.append(("95% interval", f"{low:.4g} to {high:.4g}"))
        rows.append(("standard error", f"{estimate.standard_error:.3g}"))
    rows.append(("epsilon", f"{ledger.epsilon:.6g}"))
    if ledger.delta:
        rows.append(("delta", f"{ledger.delta:.3g}"))
    if hasattr(estimate, "trace"):
        rows.append(("trace", NOT_PRIVATE))
    parts = [
        f'<div style="font-size: 1.4em"><strong>{estimate.value:.6g}</strong></div>',
        "".join(f"<div>{escape(name)}: {escape(text)}</div>" for name, text in rows),
    ]
    if estimate.warnings:
        items = "".join(f"<li>{escape(warning)}</li>" for warning in estimate.warnings)
        parts.append(
            f'<div style="{MARKED}"><strong>Warning</strong><ul>{items}</ul></div>'
        )
    parts.append(
        "<details><summary>Ledger</summary>"
        f'<pre style="{LEDGER}">{escape(str(ledger))}</pre></details>'
    )
    return f'<div style="{FRAME}">{"".join(parts)}</div>'
