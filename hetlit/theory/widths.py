"""How wide is a user: f, the distance from p within which all users' means stay.

Every function `name(k, n, <what it assumes>, beta)` returns a half-width f(k) with

    Pr(for all n users i, |mean_i - p| <= f(k_i)) >= 1 - beta

for independent users of any sizes k_1, ..., k_n.  Tail bounds 2 exp(-...) are
held to beta/n for each user, hence the term log(2n/beta).  The exact widths let
each user stray with probability 1 - (1-beta)**(1/n), which is slightly more.

k : a number, or an array of any shape, of at least 1; the answer has its shape.
n : the number of all users, whatever their sizes.
beta : the probability, in (0, 1), that anyone strays further.

Widths are not capped: means lie in [0, 1], so intersect [p - f, p + f] with it.

Chapter: How wide is a user.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import stats

from hetlit import check
from hetlit.check import Floats, Integers
from hetlit.theory.variance import user_variance


def hoeffding_width(k: Any, n: int, beta: float) -> Any:
    """Return sqrt(log(2n/beta) / (2k)).

    Assumes that every user has the same rate p, and nothing about p.

    Paper: Section 4.3, by another tail bound.  Chapter: How wide is a user.

    >>> hoeffding_width(np.array([1, 100]), n=1000, beta=0.05).round(6)
    array([2.301807, 0.230181])
    """
    return _shaped(np.sqrt(_log_term(n, beta) / 2.0 / check.sizes("k", k)))


def bernstein_width(k: Any, n: int, q: float, beta: float) -> Any:
    """Return l/(3k) + sqrt(l^2/(9k^2) + 2ql/k), where l = log(2n/beta).

    Assumes that every user has the same rate p, and p(1-p) <= q.  It solves
    kt^2 = 2l(q + t/3), where Bernstein's tail reaches beta/n.

    Paper: Section 4.3, by another tail bound.  Chapter: How wide is a user.

    >>> round(bernstein_width(1000, n=1000, q=0.21, beta=0.05), 6)
    0.070338
    """
    q = check.between("q", q, 0.0, 0.25)
    per_sample = _log_term(n, beta) / check.sizes("k", k)
    linear = per_sample / 3.0
    return _shaped(linear + np.sqrt(linear**2 + 2.0 * q * per_sample))


def largest_variance(p: float, alpha: float) -> float:
    """Return the largest x(1-x) over the x in [0, 1] within alpha of p.

    Chapter: How wide is a user.

    >>> round(largest_variance(0.3, alpha=0.1), 6), largest_variance(0.45, alpha=0.1)
    (0.24, 0.25)
    """
    p, alpha = check.between("p", p, 0.0, 1.0), check.at_least("alpha", alpha, 0.0)
    x = min(max(0.5, p - alpha), p + alpha)  # the point in range nearest to 1/2
    return x * (1.0 - x)


def chernoff_width(k: Any, n: int, p: float, beta: float) -> Any:
    """Return sqrt(3p log(2n/beta) / k), and refuse k < 3 log(2n/beta) / p.

    Assumes that every user has the same rate p.  The tail 2 exp(-kp d^2/3) of a
    relative error d holds for d <= 1 only; at smaller k this would be too narrow.

    Paper: Section 4.3, with the union over users and the condition on k corrected.
    Chapter: How wide is a user.

    >>> round(chernoff_width(1000, n=1000, p=0.3, beta=0.05), 6)
    0.097657
    """
    p, log_term = check.between("p", p, 0.0, 1.0), _log_term(n, beta)
    sizes = check.sizes("k", k)
    if (sizes * p < 3.0 * log_term).any():
        raise ValueError(
            f"k must satisfy k * p >= 3 log(2n/beta) = {3.0 * log_term:g} for the "
            f"Chernoff width throughout, where p is {p:g}"
        )
    return _shaped(np.sqrt(3.0 * p * log_term / sizes))


def sub_gaussian_width(k: Any, n: int, proxy: float, beta: float) -> Any:
    """Return sqrt(2 (proxy + 1/(4k)) log(2n/beta)).

    Assumes that the rates are sub-Gaussian: log E exp(s(p_i - p)) <= proxy s^2/2
    for every s; 1/4 serves for any law on [0, 1].  Given p_i, the mean of k samples
    adds at most s^2/(8k) (Hoeffding's lemma): its proxy is proxy + 1/(4k).

    Paper: Appendix `s.truncest` (f is left open).  Chapter: How wide is a user.

    >>> sub_gaussian_width(np.array([1, 1000]), n=1000, proxy=1/44, beta=0.05).round(6)
    array([2.404159, 0.697828])
    """
    proxy = check.between("proxy", proxy, 0.0, 1e200)
    return _shaped(
        np.sqrt(2.0 * (proxy + 0.25 / check.sizes("k", k)) * _log_term(n, beta))
    )


def beta_width(k: Any, n: int, mean: float, variance: float, beta: float) -> Any:
    """Return sqrt((variance/(mean(1-mean)) + 1/k) log(2n/beta) / 2).

    Assumes that the rates have a beta law with this mean and variance, or one of its
    limits (constant; zeros and ones).  The proxy of Beta(a, b) is at most
    1/(4(a+b+1)) = variance/(4 mean(1-mean)), by Marchal and Arbel (2017).

    Paper: Appendix `s.truncest` (f is left open).  Chapter: How wide is a user.

    >>> round(beta_width(1000, n=1000, mean=0.3, variance=0.21/11, beta=0.05), 6)
    0.697828
    """
    mean = check.strictly_between("mean", mean, 0.0, 1.0)
    top = mean * (1.0 - mean)
    variance = check.between("variance", variance, 0.0, top)
    return sub_gaussian_width(k, n, variance / (4.0 * top), beta)


def truncated_gaussian_width(k: Any, n: int, sd: float, beta: float) -> Any:
    """Return sqrt(2 (sd^2 + 1/(4k)) log(2n/beta)).

    Assumes that the rates have a Gaussian law conditioned on [0, 1], or on an
    interval inside it, and that `sd` is the deviation before conditioning.

    Paper: Appendix `s.truncest` (f is left open).  Chapter: How wide is a user.

    >>> round(truncated_gaussian_width(1000, n=1000, sd=0.1, beta=0.05), 6)
    0.46608
    """
    # Times exp(sx), the density is a Gaussian of the same sd on the same window.
    # Its variance, the second derivative of log E exp(s p_i), is at most sd^2,
    # since conditioning on an interval narrows a Gaussian: sd^2 is a proxy.
    return sub_gaussian_width(k, n, check.between("sd", sd, 0.0, 1e100) ** 2, beta)


def standard_width(k: Any, n: int, p: float, var_p: float, beta: float) -> Any:
    """Return sigma_k sqrt(2 log(2n/beta)), sigma_k^2 the variance of a user's mean.

    Assumes that a user's mean is strictly sub-Gaussian: its own variance is a proxy.
    That is no theorem.  It holds for a constant p = 1/2, nearly holds for many
    samples of bell-shaped rates, and fails for rare ones: with constant p = .001,
    k = 10 and n = 1000 it is .046, and ten users have a mean of .1.

    Paper: Section 4.1 (widths proportional to sd).  Chapter: How wide is a user.

    >>> round(standard_width(1000, n=1000, p=0.3, var_p=0.01, beta=0.05), 6)
    0.464942
    """
    variances = user_variance(check.sizes("k", k), p, var_p)
    return _shaped(np.sqrt(2.0 * variances * _log_term(n, beta)))


def chebyshev_width(k: Any, n: int, p: float, var_p: float, beta: float) -> Any:
    """Return sigma_k sqrt(n/beta): true for every law, and useless.

    Assumes only that the rates have mean p and variance var_p.  Growing like
    sqrt(n), it soon exceeds 1, where every width is true.

    Paper: Section 4.1.  Chapter: How wide is a user.

    >>> round(chebyshev_width(1000, n=1000, p=0.3, var_p=0.01, beta=0.05), 6)
    14.282857
    """
    n, beta = _checked(n, beta)
    spread = math.sqrt(n) / math.sqrt(beta)
    return _shaped(np.sqrt(user_variance(check.sizes("k", k), p, var_p)) * spread)


def two_step_width(k: Any, n: int, rate_width: float, p: float, beta: float) -> Any:
    """Return `rate_width` plus what k coins of any rate that near to p can add.

    Assumes that all n rates are within `rate_width` of p with probability at least
    1 - beta/2; sqrt(2 proxy log(4n/beta)) if they are sub-Gaussian.

    Paper: Lemma `concentrationimpliesconcentration`, at beta/(2n) for each user and
    on all of [0, 1].  Chapter: How wide is a user.

    >>> round(two_step_width(1000, n=1000, rate_width=0.05, p=0.01, beta=0.05), 6)
    0.089647
    """
    # The paper takes the exact binomial width at rate p + rate_width, but that is
    # not monotone in the rate (k = 1: .9 at .1, .6 at .4).  Hoeffding's does not
    # depend on the rate x and Bernstein's grows with x(1-x), so both, and hence
    # the smaller, cover every rate in range, with the other half of beta.
    rate_width = check.at_least("rate_width", rate_width, 0.0)
    q = largest_variance(p, rate_width)
    half = check.strictly_between("beta", beta, 0.0, 1.0) / 2.0
    half = max(half, math.ulp(0.0))  # the least float above 0 has no half
    coins = np.minimum(hoeffding_width(k, n, half), bernstein_width(k, n, q, half))
    return _shaped(rate_width + coins)


def lower_bound_beta(n: int, beta: float) -> float:
    """Return b = sqrt(8 (1 - (1-beta)**(1/n))), the level of the paper's lower bound.

    If a rate is at least x above p with probability b/2, and the mean at least y
    above any such rate with probability b/4, then some user strays by x + y or more
    with probability at least 1 - (1 - b^2/8)**n = beta.  Above 1, b says nothing.

    Paper: Lemma `concentrationimpliesconcentration`, which states 2 for the sqrt(8)
    of its proof.  Chapter: How wide is a user.

    >>> round(lower_bound_beta(n=1000, beta=0.05), 12)
    0.020256747796
    """
    return math.sqrt(8.0 * _allowed(n, beta))


def exact_binomial_width(k: Any, n: int, p: float, beta: float) -> Any:
    """Return the smallest t with Pr(|Bin(k, p)/k - p| > t) <= 1 - (1-beta)**(1/n).

    Assumes that every user has the same, known rate p.  k must be whole.  The width
    is monotone neither in p nor in k, and ignores ones rarer than beta/n.

    Paper: the definition of f, Appendix `s.truncest`.  Chapter: How wide is a user.

    >>> exact_binomial_width(np.array([1, 10, 100, 1000]), n=1000, p=0.3, beta=0.05)
    array([0.7  , 0.6  , 0.19 , 0.059])
    """
    p, allowed = check.between("p", p, 0.0, 1.0), _allowed(n, beta)

    def widths(sizes: Integers) -> Floats:
        def outside(low: Integers, high: Integers) -> Any:
            # Two tails, not one minus the middle: no digits are lost.
            return stats.binom.cdf(low - 1, sizes, p) + stats.binom.sf(high, sizes, p)

        return _smallest_widths(sizes, p, allowed, outside)

    return _for_distinct(k, 2**44, widths)


def exact_beta_binomial_width(
    k: Any, n: int, mean: float, concentration: float, beta: float
) -> Any:
    """Return the smallest t with Pr(|mean_i - mean| > t) <= 1 - (1-beta)**(1/n).

    Assumes that rates have the law Beta(a, b) with known mean a/(a+b) and
    concentration a+b in [1e-12, 1e15], so that a user's ones are beta-binomial.
    k must be whole and at most 10**7; time grows like the sum of the distinct k, at
    most 10**7.

    Paper: the definition of f, Appendix `s.truncest`.  Chapter: How wide is a user.

    >>> exact_beta_binomial_width(np.array([10, 100]), 1000, 0.3, 10, beta=0.05)
    array([0.7 , 0.57])
    """
    mean = check.strictly_between("mean", mean, 1e-100, 1.0)
    concentration = check.between("concentration", concentration, 1e-12, 1e15)
    allowed = _allowed(n, beta)

    def width(k: int) -> float:
        below, above = _beta_binomial_tails(k, mean, concentration)

        def outside(low: Integers, high: Integers) -> Any:
            return below[np.maximum(low, 0)] + above[np.minimum(high, k) + 1]

        return float(_smallest_widths(np.array([k]), mean, allowed, outside)[0])

    def widths(sizes: Integers) -> Floats:
        check.total_size("k", sizes)
        return np.array([width(int(size)) for size in sizes])

    return _for_distinct(k, check.MOST_SIZES, widths)


def _beta_binomial_tails(k: int, mean: float, total: float) -> tuple[Floats, Floats]:
    """Return Pr(ones < j) and Pr(ones >= j) for j = 0, ..., k+1."""
    # Ratios of neighbours keep the digits that log gamma functions lose.
    j = np.arange(k, dtype=np.float64)
    odds = (mean * total + j) / ((1.0 - mean) * total + (k - 1.0 - j))
    logs = np.cumsum(np.concatenate(([0.0], np.log((k - j) / (j + 1.0) * odds))))
    shape = np.exp(logs - logs.max())
    pmf = shape / shape.sum()
    below = np.concatenate(([0.0], np.cumsum(pmf)))
    return below, np.concatenate((np.cumsum(pmf[::-1])[::-1], [0.0]))


def _smallest_widths(
    sizes: Integers, p: float, allowed: float, outside: Callable[..., Any]
) -> Floats:
    """Return, for every k, the least t with Pr(|ones/k - p| > t) <= allowed.

    `outside(low, high)` is Pr(ones < low or ones > high).  Counts come nearest
    first, alternately from both sides of kp: with 2kp between the whole numbers
    `floor` and `ceiling`, the nearest r + 1 are those from ceil((floor - r)/2) to
    floor((ceiling + r)/2).  Where 2kp is whole, this never splits a pair at equal
    distance, so whole numbers settle ties, not rounding.  Probabilities that agree
    to 12 digits count as equal.
    """
    slack = 8.0 * np.finfo(np.float64).eps * sizes
    floor = np.floor(2.0 * sizes * p + slack).astype(np.int64)
    ceiling = np.ceil(2.0 * sizes * p - slack).astype(np.int64)

    def ends(reach: Integers) -> tuple[Integers, Integers]:
        return -((reach - floor) // 2), (ceiling + reach) // 2

    too_short, enough = np.full_like(sizes, -1), 2 * sizes
    while (enough - too_short > 1).any():
        middle = (too_short + enough + 1) // 2
        fits = outside(*ends(middle)) <= allowed * (1.0 + 1e-12)
        enough = np.where(fits, middle, enough)
        too_short = np.where(fits, too_short, middle)
    low, high = ends(enough)
    inside = np.maximum(low, 0), np.minimum(high, sizes)
    return np.asarray(np.max([np.abs(end / sizes - p) for end in inside], axis=0))


def _for_distinct(k: Any, largest: int, widths: Callable[[Integers], Floats]) -> Any:
    """Return widths(k), computed once for every distinct k."""
    sizes = check.whole_sizes("k", k, largest)
    distinct, where = np.unique(sizes.ravel(), return_inverse=True)
    return _shaped(widths(distinct)[where].reshape(sizes.shape))


def _allowed(n: int, beta: float) -> float:
    """Return 1 - (1-beta)**(1/n), the probability with which one user may stray."""
    n, beta = _checked(n, beta)
    return -math.expm1(math.log1p(-beta) / n)


def _log_term(n: int, beta: float) -> float:
    n, beta = _checked(n, beta)
    return math.log(2 * n) - math.log(beta)


def _checked(n: int, beta: float) -> tuple[int, float]:
    beta = check.strictly_between("beta", beta, 0.0, 1.0)
    return check.integer("n", n, 1), beta


def _shaped(values: Any) -> Any:
    return float(values) if np.ndim(values) == 0 else values
