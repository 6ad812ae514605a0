"""Write the picture of the landing page to the file that is named."""

import sys

from hetlit.teaching.figures.landing import (
    OVERVIEW_TEXT,
    OVERVIEW_TITLE,
    overview,
    write_svg,
)

write_svg(overview(), sys.argv[1], OVERVIEW_TITLE, OVERVIEW_TEXT)
