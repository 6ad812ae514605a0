"""The error of a private mean: Laplace noise L and, beside it, a Gaussian G.

L, of scale b, is what protects users.  G, of standard deviation g, is what another
sample of users would have changed, which is Gaussian where many of them are averaged.
The two are independent, and neither alone says how far off a mean is.

The functions check nothing: they are parts of estimators.
"""

from __future__ import annotations

import math

from scipy import special

ROOT_TWO = math.sqrt(2.0)
HALVINGS = 64  # of the interval in which a half-width is looked for


def tail(z: float, b: float, g: float) -> float:
    """Return Pr(|L + G| > z), for z >= 0 and Laplace noise of scale b beside N(0, g^2).

    Pr(L > z - G) is e^((G - z)/b)/2 for G < z, and 1 - e^((z - G)/b)/2 for G > z.  Its
    mean over G, doubled for the other side, is with r = g/b::

        2 Phi(-z/g) + e^(r^2/2 - z/b) Phi(z/g - r) - e^(r^2/2 + z/b) Phi(-z/g - r).

    Each of the three has the factor e^(-z^2/(2 g^2)), and what is left of it is a
    scaled error function, which neither overflows nor vanishes for large r.

    >>> round(tail(1.96, b=0.0, g=1.0), 4), round(tail(3.0, b=1.0, g=0.0), 4)
    (0.05, 0.0498)
    """
    if z == 0.0:
        return 1.0
    if g == 0.0:
        return math.exp(-z / b) if b > 0.0 else 0.0
    t = z / g
    gaussian = 2.0 * float(special.ndtr(-t))
    r = g / b if b > 0.0 else math.inf
    if math.isinf(r):
        return gaussian
    peak = math.exp(-t * t / 2.0) / 2.0
    if t < r:
        above = peak * float(special.erfcx((r - t) / ROOT_TWO))
    else:  # r^2/2 - z/b, written so that no part of it overflows
        above = math.exp(-z / b * (1.0 - r / t / 2.0)) * float(special.ndtr(t - r))
    below = peak * float(special.erfcx((r + t) / ROOT_TWO))
    return min(gaussian + above - below, 1.0)


def half_width(level: float, b: float, g: float) -> float:
    """Return the z with Pr(|L + G| <= z) = level, a level strictly between 0 and 1.

    It is rounded up, so that the chance is at least `level`.

    >>> round(half_width(0.95, b=0.0, g=1.0), 4), round(half_width(0.95, 1.0, 1.0), 4)
    (1.96, 3.4951)
    """
    missed = 1.0 - level
    if b == 0.0 or g == 0.0:
        return b * math.log(1.0 / missed) - g * float(special.ndtri(missed / 2.0))
    # If |L + G| > high, then L or G is beyond its part of it: half of the chance each.
    low = 0.0
    high = b * math.log(2.0 / missed) - g * float(special.ndtri(missed / 4.0))
    for _ in range(HALVINGS):
        middle = (low + high) / 2.0
        if tail(middle, b, g) > missed:
            low = middle
        else:
            high = middle
    return high
