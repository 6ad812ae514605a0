"""Two numbers of the standard Gaussian Z that several estimators use."""

import math

MEDIAN = 0.6744897501960817  # of |Z|
THIRD_MOMENT = 2.0 * math.sqrt(2.0 / math.pi)  # E|Z|^3
