"""Explorers: pictures of the book that one can drag.

Each is a pure function from a few parameters to a `Picture`, described well enough
that a page or a widget can be made of it.  One module per chapter.
"""

from .concentration import CLIPPING
from .explorer import Explorer, Parameter
from .first_guesses import BUDGET
from .ideal import THRESHOLD
from .lower_bounds import LOWER_BOUND
from .model import VARIANCE
from .nonprivate import WEIGHTS
from .picture import Axis, Band, Line, Panel, Picture, Points
from .privacy import ATTACKER
from .private_k import PTR, SECRET_SIZES
from .public_size import REALIZABLE
from .who_wins import WINNERS

__all__ = [
    "EXPLORERS",
    "Axis",
    "Band",
    "Explorer",
    "Line",
    "Panel",
    "Parameter",
    "Picture",
    "Points",
]

# In the order of the book.
EXPLORERS = {
    explorer.name: explorer
    for explorer in (
        VARIANCE,
        ATTACKER,
        WEIGHTS,
        THRESHOLD,
        CLIPPING,
        BUDGET,
        REALIZABLE,
        WINNERS,
        PTR,
        SECRET_SIZES,
        LOWER_BOUND,
    )
}
