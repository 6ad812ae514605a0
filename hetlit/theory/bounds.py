"""Lower bounds: what no private estimator can do better than.

Nothing here is random.  Rows are as in `hetlit.theory.weights`: row i stands for
`counts[i]` users, one each when `counts` is None.

Paper: Section 5.  Chapter: Lower bounds.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import special

from hetlit import check
from hetlit.check import Floats, Integers
from hetlit.theory.populations import MASSES, NODES, TruncatedGaussian

# Half the width of the paper's window in parent standard deviations: it asks for
# a window that holds at least 9/10 of the parent, and this one holds 9/10.
REACH = 1.6448536269514722
# Limits far beyond any use, within which no bound leaves the floats.
NOISES = (1e-30, 1e30)
INFORMATION = (1e-250, 1e250)


def k_star(
    k: Any,
    epsilon: float,
    *,
    variant: str = "sqrt",
    counts: Any = None,
    noise: float = 1.0,
) -> tuple[float, float]:
    """Return (cap, value): the best cap on users' sizes, and the variance it gives.

    For users who share one rate p, the variance in units of p(1-p) is
    (noise/epsilon^2 cap + sum min(k_i, cap)) / S^2.  In variant "sqrt", S is
    sum min(k_i, sqrt(k_i cap)): all samples are used, and a user's weight is her term
    of S.  In variant "min", S is sum min(k_i, cap): at most `cap` samples are used.

    Parameters
    ----------
    k : array of shape (rows,), whole numbers of at least 1
    epsilon : the privacy budget, from 1e-12 to 1e12
    variant : "sqrt", the paper's corollary, or "min", its definition of k*
    counts : array of shape (rows,), users in each row; one each when None
    noise : the variance charged for noise: 1 as the paper does; 2 for true Laplace
        noise on intervals one standard deviation wide, 2 r^2 for r of them

    "sqrt" is the problem of `optimal_weights` for variances 1/k_i and widths equal to
    standard deviations.  With T = sqrt(cap), the optimum is the root of
    sum (sqrt(k_i) - T)_+ = noise/epsilon^2 T, with value 1/sum min(k_i, T sqrt(k_i)).
    All caps up to the least k_i are equally good; when they are best, the root is
    one of them.

    "min": between neighbouring sizes the slope changes sign at most once, from plus
    to minus, so the best cap is some k_i (the least, if several are).  There can be
    many valleys.  The value is never below that of "sqrt", and above it by a factor
    of up to about log(n)^2.

    Paper: Corollary `cor.lower` ("sqrt") and equation `kstar` ("min"); also equation
    `constantD`, whose noise is 6 log(2/beta)/(1-p) and should be
    24 log(2n/beta)/(1-p).  Chapter: Lower bounds.

    >>> cap, value = k_star([64, 16, 4, 1], epsilon=1.0)
    >>> round(cap, 9), round(1 / value, 9)
    (16.0, 53.0)
    >>> cap, value = k_star([100, 4], 0.5, variant="min", counts=[1, 50])
    >>> cap, round(value * 204**2, 9)  # 4 * 4 + 51 * 4
    (4.0, 220.0)
    """
    sizes = check.integers("k", k, 1).astype(np.float64)
    numbers = _counts(sizes, counts)
    variant = check.one_of("variant", variant, ("sqrt", "min"))
    epsilon, noise = check.epsilon(epsilon), check.between("noise", noise, *NOISES)
    price = noise / epsilon / epsilon
    if variant == "sqrt":
        roots = np.sqrt(sizes)
        level = _water_level(roots, numbers, price)
        total = np.sum(numbers * roots * np.minimum(roots, level))
        return level**2, 1.0 / float(total)
    order = np.argsort(sizes, kind="stable")
    caps, numbers = sizes[order], numbers[order]
    below = np.cumsum(numbers * caps)
    above = np.concatenate((np.cumsum(numbers[:0:-1])[::-1], [0.0]))
    totals = below + above * caps
    values = (price * caps / totals + 1.0) / totals
    best = int(np.argmin(values))
    return float(caps[best]), float(values[best])


def least_noise(epsilon: float) -> float:
    """Return 1/(4 sinh^2(epsilon/2)), the least variance that hides a change of 1.

    If M is epsilon-private and D, D' are neighbours, then
    (E M(D') - E M(D))^2 <= 4 sinh^2(epsilon/2) Var M(D).  Proof: let R be the
    likelihood ratio of M(D') to M(D), a random variable under M(D).  The left side
    is the squared covariance of R and M(D), at most Var R Var M(D) (Hammersley,
    Chapman and Robbins).  R has mean 1 and lies in [1/a, a], a = exp(epsilon), so
    Var R <= (a - 1)(1 - 1/a) (Bhatia and Davis), which is 4 sinh^2(epsilon/2).
    Randomized response attains it; Laplace noise, with 2/epsilon^2, does not.

    Paper: replaces the averaging argument in Lemma `optimalityoflinearmain`.
    Chapter: Lower bounds.

    >>> round(least_noise(1.0), 12)
    0.920673594208
    """
    epsilon = check.epsilon(epsilon)
    # exp(-e)/(1 - exp(-e))^2 neither overflows nor cancels.
    return math.exp(-epsilon) / math.expm1(-epsilon) ** 2


def dp_cramer_rao(information: Any, epsilon: float, *, counts: Any = None) -> float:
    """Return a number below which no unbiased private estimator's variance goes.

    With I_i the Fisher information about p in user i's data, it is the minimum over
    weights of sum 1 of::

        sum w_i^2 / I_i  +  max_i w_i^2 / I_i / (2 sinh^2(epsilon/2))

    which is 1/sum min(I_i, T sqrt(I_i)) for the root T of
    sum (sqrt(I_i) - T)_+ = T / (2 sinh^2(epsilon/2)).  Where I_i = 1/variance_i it is
    the objective of `optimal_weights` for widths equal to standard deviations, at
    2 sinh(epsilon/2) instead of epsilon: the same as epsilon goes to 0.

    Parameters
    ----------
    information : array of shape (rows,), above 0
    epsilon : the budget, from 1e-12 to 1e12, of an epsilon-private estimator (delta 0),
        where neighbours replace one user's samples
    counts : array of shape (rows,), users in each row; one each when None

    Proof.  Let mu(x) = E[M | x] for the data x of independent users, mu_i(x_i) its
    mean given user i's data, and w_i the derivative of E M in the parameter of
    user i alone.

    1. Unbiased near p: the w_i add up to the derivative of E M = p, which is 1.
    2. Variance decomposes: Var M >= sum Var mu_i(x_i) + E Var(M | x).
    3. w_i is the covariance of mu_i(x_i) and user i's score, so by Cauchy and
       Schwarz Var mu_i(x_i) >= w_i^2 / I_i.
    4. Draw user i's data again and call the result x'.  Then 2 Var mu_i(x_i) =
       E (mu_i(x_i) - mu_i(x_i'))^2 <= E (mu(x) - mu(x'))^2, by Jensen over the other
       users, <= 4 sinh^2(epsilon/2) E Var(M | x), by `least_noise`.

    So Var M is at least the sum above for these w, hence at least its minimum.

    A biased estimator may go below it.  Clipping to intervals around a known p makes
    E M move less than p does: if the bias is b(p), the w_i add up to 1 + b'(p), and
    all that is proved is (1 + b'(p))^2 times this bound.  A constant has variance 0.

    Paper: Theorem `optimalityfisherinfo`, without its hidden factors, for every p,
    and with "epsilon-private" where the paper says only "unbiased".
    Chapter: Lower bounds.

    >>> information = binomial_information([64, 16, 4, 1], p=0.5)
    >>> [round(dp_cramer_rao(information, epsilon), 6) for epsilon in (0.1, 1.0, 700)]
    [0.226482, 0.005884, 0.002941]
    """
    information = check.magnitudes("information", information, *INFORMATION)
    numbers = _counts(information, counts, "information")
    price = 2.0 * least_noise(epsilon)
    most = float(np.max(information))
    roots = np.sqrt(information / most)  # in [0, 1], whatever the units
    level = _water_level(roots, numbers, price)
    total = float(np.sum(numbers * roots * np.minimum(roots, level)))
    return 1.0 / total / most


def binomial_information(k: Any, p: float) -> Any:
    """Return k/(p(1-p)), the information about p in k tosses with rate p.

    Paper: proof of Corollary `cor.lower`.  Chapter: Lower bounds.

    >>> binomial_information([1, 10], p=0.5)
    array([ 4., 40.])
    """
    p = check.strictly_between("p", p, 1e-100, 1.0)
    values = _sizes(k, 2**62) / (p * (1.0 - p))
    return values if values.ndim else float(values)


def beta_binomial_information(k: Any, mean: float, concentration: float) -> Any:
    """Return the information about the mean in k tosses with a beta-distributed rate.

    The rate is Beta(a, b) with a = mean m and b = (1-mean) m, and m is known.  One
    toss has 1/(mean(1-mean)).  As k grows it rises to m^2 (psi'(a) + psi'(b)), that of
    the rate itself; as m grows it tends to `binomial_information`.

    Parameters
    ----------
    k : a whole number from 1 to 10^7, or an array of them of shape (rows,); the
        time is proportional to the sum of the distinct ones, at most 10^7
    mean : strictly between 0 and 1
    concentration : m = a + b, from 1e-100 to 1e100; see `Beta.concentration`

    The score of x ones is m (psi(a+x) - psi(b+k-x)) up to a constant that makes its
    mean 0.  So its steps m/(a+x) + m/(b+k-1-x) from x to x+1 suffice, and so do
    those of log Pr(x).  Both are summed outwards from the middle, where sums stay
    small, and no difference of large numbers is taken.

    Paper: `condition2`.  Times the variance of the user's mean it is below 1.4521
    for means in [1/3, 2/3], m in [0.01, 1000] and k <= 1000, by computation; it
    is more for means near 0 or 1.  Chapter: Lower bounds.

    >>> beta_binomial_information([1, 10, 1000], mean=0.3, concentration=20.0).round(3)
    array([  4.762,  33.505, 100.084])
    """
    # Limits far beyond any use, within which nothing below under- or overflows.
    mean = check.strictly_between("mean", mean, 1e-100, 1.0)
    concentration = check.between("concentration", concentration, 1e-100, 1e100)

    def information(size: int) -> float:
        x = np.arange(size)
        ones = mean * concentration + x
        zeros = (1.0 - mean) * concentration + (size - 1 - x)
        start = int(mean * size)
        log_pmf = _outward(np.log((size - x) / (x + 1) * (ones / zeros)), start)
        score = _outward(concentration / ones + concentration / zeros, start)
        pmf = np.exp(log_pmf - log_pmf.max())
        pmf /= pmf.sum()
        # The root first: a square can overflow where its product with pmf does not.
        return float(np.sum((np.sqrt(pmf) * (score - pmf @ score)) ** 2))

    return _per_size(k, check.MOST_SIZES, check.MOST_DRAWN, information)


def truncated_gaussian_information(mean: float, sd: float, *, k: Any = None) -> Any:
    """Return the information about the mean of a Gaussian conditioned on [0, 1].

    `mean` and `sd` are those of `TruncatedGaussian`, and sd is known.  The window
    stays where it is, so this is an exponential family in the rate t with its mean
    as the parameter, and the information in the rate itself is exactly 1/variance.

    Through k tosses the score of x ones is (E[t | x] - mean)/variance, so it is
    Var E[t | x] / variance^2.  There k is a whole number from 1 to 10^4, or an array
    of them, the distinct ones of sum at most 10^6, and sd is at least 1e-6.

    Paper: replaces equation `cramerraotrungauss`.  Chapter: Lower bounds.

    >>> round(truncated_gaussian_information(0.5, 0.1), 3)
    100.001
    >>> truncated_gaussian_information(0.5, 0.1, k=[1, 10, 1000]).round(3)
    array([ 4.   , 29.424, 97.658])
    """
    law = TruncatedGaussian(mean, sd)
    if k is None:
        return 1.0 / law.variance
    check.between("sd", sd, 1e-6, 1e100)  # a finer spread is lost in rounding

    def information(size: int) -> float:
        # A likelihood is no narrower than about 1/sqrt(k), hence so many nodes.
        rates, rests, steps, masses = _rates(law, 100 + 8 * math.isqrt(size))
        x = np.arange(size + 1)[:, None]
        choices = -special.betaln(x + 1, size - x + 1) - math.log(size + 1)
        log_joint = choices + x * np.log(rates) + (size - x) * np.log(rests)
        joint = masses * np.exp(log_joint)
        # From the mode, not from 0: near 1, rates would keep no digits of their steps.
        pmf, shift = joint.sum(axis=1), joint @ (steps - masses @ steps)
        seen = pmf > 0
        return float(np.sum((shift[seen] / law.variance) ** 2 / pmf[seen]))

    # A size costs time in proportion to k^1.5.
    return _per_size(k, 10**4, 10**6, information)


def window_factor(reach: float = REACH) -> float:
    """Return the paper's lambda: the share of variance that its window cuts off.

    The window is `reach` parent standard deviations, in [0.1, 3], to each side of p.

    Paper: proof of Corollary `cor.lower`.  Chapter: Lower bounds.

    >>> round(window_factor(2.0), 9)
    0.226258696
    """
    reach = check.between("reach", reach, 0.1, 3.0)
    density = math.exp(-(reach**2) / 2.0) / math.sqrt(2.0 * math.pi)
    return 2.0 * reach * density / math.erf(reach / math.sqrt(2.0))


def moving_window_bound(n: int, variance: float, *, reach: float = REACH) -> float:
    """Return the paper's bound for Gaussian rates in a window that moves with p.

    It is variance/(n (1 - lambda)^2) for n rates, and no bound at all.  The density
    jumps at the ends of the window, which move with p, so Cramer and Rao's theorem
    does not apply: the mean of the rates, with variance/n, is below it, and
    `midrange_variance` falls like 1/n^2.  What the paper computes is the information
    about the parent's mean when the window is fixed.  Its corollary needs only some
    family: a window that stays (`truncated_gaussian_information`) or beta rates.

    Paper: equation `cramerraotrungauss`.  Chapter: Lower bounds.

    >>> round(moving_window_bound(1000, 0.01) / midrange_variance(1000, 0.01), 1)
    44.7
    """
    n = check.integer("n", n, 2)
    variance = check.between("variance", check.positive("variance", variance), *NOISES)
    return variance / (n * (1.0 - window_factor(reach)) ** 2)


def midrange_variance(n: int, variance: float, *, reach: float = REACH) -> float:
    """Return the variance of (least + greatest)/2 of n rates in the moving window.

    It is unbiased, since the law is symmetric about p.  Let A and B be the mass of
    the law below the least rate and above the greatest: A + B is Beta(2, n-1), and
    A/(A+B) is uniform and independent of it.  With Q the quantile function about p,
    the midrange is p + (Q(A) - Q(B))/2.  For large n its variance is 1/(2 n^2 f^2),
    f the density at the ends of the window.

    Paper: counterexample to the proof of `cor.lower`.  Chapter: Lower bounds.

    >>> round(midrange_variance(2, 0.01), 12)
    0.005
    """
    n = check.integer("n", n, 2, 10**12)
    variance = check.between("variance", check.positive("variance", variance), *NOISES)
    reach = check.between("reach", reach, 0.1, 3.0)
    parent = variance / (1.0 - window_factor(reach))
    outside, inside = special.ndtr(-reach), math.erf(reach / math.sqrt(2.0))
    unit = (NODES + 1.0) / 2.0
    both = unit * min(1.0, 80.0 / n)  # A + B is beyond 80/n with chance e^-75
    density = MASSES * both * np.exp((n - 2) * np.log1p(-both))
    below, above = np.outer(both, unit), np.outer(both, 1.0 - unit)
    twice = special.ndtri(outside + inside * below)
    twice -= special.ndtri(outside + inside * above)
    mean_square = density @ twice**2 @ MASSES / (density.sum() * MASSES.sum())
    return parent * float(mean_square) / 4.0


def _water_level(roots: Floats, counts: Floats, price: float) -> float:
    """Return the root T of sum counts (roots - T)_+ = price T."""
    order = np.argsort(-roots, kind="stable")
    held, numbers = roots[order], counts[order]
    # With the first h rows above T the equation is linear in T.  Any other rows ask for
    # a lower T, since a sum of positive parts is the largest of its partial sums.
    levels = np.cumsum(numbers * held) / (price + np.cumsum(numbers))
    return min(float(np.max(levels)), float(held[0]))


def _outward(steps: Floats, start: int) -> Floats:
    """Return the sequence that is 0 at `start` and has these steps."""
    down = -np.cumsum(steps[:start][::-1])[::-1]
    return np.concatenate((down, [0.0], np.cumsum(steps[start:])))


def _rates(law: TruncatedGaussian, nodes: int) -> tuple[Floats, ...]:
    """Return nodes t, 1 - t, t - mode and masses: quadrature under the law of rates."""
    points, masses = special.roots_legendre(nodes)
    mode = min(max(law.location, 0.0), 1.0)
    slope = (law.location - mode) / law.sd**2
    # Up to where the density is e^-40 of its top.
    reach = 80.0 / (abs(slope) + math.sqrt(slope**2 + 80.0 / law.sd**2))
    low, high = max(-mode, -reach), min(1.0 - mode, reach)
    steps = low + (high - low) * (points + 1.0) / 2.0
    masses = masses * np.exp(slope * steps - (steps / law.sd) ** 2 / 2.0)
    return mode + steps, (1.0 - mode) - steps, steps, masses / masses.sum()


def _per_size(
    k: Any, most: int, most_in_all: int, information: Callable[[int], float]
) -> Any:
    """Return information(k), computed once for each distinct size."""
    sizes = _sizes(k, most)
    distinct, position = np.unique(sizes, return_inverse=True)
    check.total_size("k", distinct, most_in_all)
    values = np.array([information(int(size)) for size in distinct])[position]
    return values if sizes.ndim else float(values.item())


def _sizes(k: Any, most: int) -> Integers:
    """Return a size or a one-dimensional array of sizes, checked."""
    sizes = check.whole_sizes("k", k, most)
    if sizes.ndim > 1 or sizes.size == 0:
        raise ValueError("k must be a number or a one-dimensional array, not empty")
    return sizes


def _counts(rows: Floats, counts: Any, name: str = "k") -> Floats:
    if counts is None:
        return np.ones_like(rows)
    numbers = check.integers("counts", counts, 1)
    check.same_length(**{name: rows}, counts=numbers)
    return numbers.astype(np.float64)
