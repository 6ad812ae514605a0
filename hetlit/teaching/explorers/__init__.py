"""Explorers: pictures of the book that one can drag.

Each is a pure function from a few parameters to a `Picture`, described well enough
that a page or a widget can be made of it.  One module per chapter.
"""

from hetlit.teaching.explorers.concentration import CLIPPING
from hetlit.teaching.explorers.explorer import Explorer, Parameter
from hetlit.teaching.explorers.first_guesses import BUDGET
from hetlit.teaching.explorers.ideal import THRESHOLD
from hetlit.teaching.explorers.lower_bounds import LOWER_BOUND
from hetlit.teaching.explorers.model import VARIANCE
from hetlit.teaching.explorers.nonprivate import WEIGHTS
from hetlit.teaching.explorers.picture import Axis, Band, Line, Panel, Picture, Points
from hetlit.teaching.explorers.privacy import ATTACKER
from hetlit.teaching.explorers.private_k import PTR, SECRET_SIZES
from hetlit.teaching.explorers.public_size import REALIZABLE
from hetlit.teaching.explorers.who_wins import WINNERS
from hetlit.teaching.explorers.wrong_model import MINORITY, SLOPE

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
        MINORITY,
        SLOPE,
        LOWER_BOUND,
    )
}
