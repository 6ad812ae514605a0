"""The five looks of a mark, told once: a colour, a line style and a marker each.

Figures are drawn with matplotlib, explorers on a page by its style sheet and script;
both read this table.  The colours are Okabe and Ito's, which stay apart for
colour-blind readers and have a contrast of at least 3 to 1 on white.  Colour never
stands alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

INK, GREY, PAPER = "#222222", "#666666", "#FFFFFF"
BLUE, VERMILLION, GREEN, PURPLE = "#0072B2", "#D55E00", "#009E73", "#CC79A7"


@dataclass(frozen=True)
class Look:
    """How one series is drawn: a colour, and a line style and marker of its own.

    In matplotlib's words; lengths of dashes are in line widths.
    """

    colour: str
    line: Any
    marker: str


THEORY = Look(BLUE, "-", "o")
SIMULATION = Look(VERMILLION, (0, (4, 1.5)), "s")
COINS = Look(GREEN, (0, (8, 2)), "^")
PEOPLE = Look(PURPLE, (0, (1, 1.2)), "D")
REFERENCE = Look(INK, (0, (5, 2, 1, 2)), "v")
LOOKS = (THEORY, SIMULATION, COINS, PEOPLE, REFERENCE)

# What explorers call them.
NAMED = dict(zip(("blue", "vermillion", "green", "purple", "ink"), LOOKS, strict=True))
# Their colours on a light and on a dark page; "ink" is the colour of the text.
ON_PAGES = {
    "blue": ("#0072B2", "#56B4E9"),
    "vermillion": ("#D55E00", "#F4915C"),
    "green": ("#00805D", "#2CC79C"),
    "purple": ("#B3558A", "#E29FC6"),
    "ink": ("var(--pst-color-text-base)",) * 2,
}
