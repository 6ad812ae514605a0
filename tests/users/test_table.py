"""Users, where their rates and sizes come from, and how noisy a user's mean is.

Statistical tests have fixed seeds.  For a random seed, a true `close` fails with a
chance of about 1e-10 (6.5 standard errors, normal; below 1e-9 where the sample is small
and skewed) and a true `plausible_count` with at most 2e-10 (exact binomial tails).
This file has fewer than 400 comparisons of each kind: together below 5e-7.
"""

from __future__ import annotations

import copy
import dataclasses
import itertools
import math
import pickle
from collections import Counter
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import integrate, stats

from hetlit import sizes
from hetlit.theory.populations import (
    Beta,
    Constant,
    MetaDistribution,
    TruncatedGaussian,
    TwoPoint,
)
from hetlit.theory.variance import plain_variance, user_variance
from hetlit.users.simulate import sample_users
from hetlit.users.table import Users
from tests.odd import odd


def close(sample: Any, expected: float) -> bool:
    """Is the mean of the sample within 6.5 standard errors of what is expected?"""
    error = np.std(sample) / math.sqrt(len(sample))
    return bool(abs(np.mean(sample) - expected) <= 6.5 * error + 1e-15)


def plausible_count(count: int, n: int, probability: float) -> bool:
    law = stats.binom(n, probability)
    return bool(min(law.cdf(count), law.sf(count - 1)) >= 1e-10)


def rows_of(users: Users) -> list[tuple[int, int, int]]:
    columns = (users.k, users.successes, users.counts)
    return list(zip(*(column.tolist() for column in columns), strict=True))


@st.composite
def tables(draw: st.DrawFn, most: int = 10**9) -> Users:
    row = st.integers(1, 6).flatmap(
        lambda k: st.tuples(st.just(k), st.integers(0, k), st.integers(1, most))
    )
    rows = draw(st.lists(row, min_size=1, max_size=30))
    return Users(*(list(column) for column in zip(*rows, strict=True)))


# Users: what they hold


def test_users_have_sizes_successes_counts_and_means() -> None:
    users = Users([4, 1, 2], [1, 0, 2], [1, 5, 2])
    assert rows_of(users) == [(4, 1, 1), (1, 0, 5), (2, 2, 2)]
    assert users.n == 8
    assert users.means.tolist() == [0.25, 0.0, 1.0]


def test_without_counts_every_row_is_one_user() -> None:
    users = Users([4, 1], [1, 0])
    assert users.counts.tolist() == [1, 1]
    assert users.n == 2


@pytest.mark.parametrize("kind", [np.int8, np.uint16, np.int64, np.uint64, float])
def test_all_columns_become_int64(kind: type) -> None:
    users = Users(*(np.array([3, 2], dtype=kind) for _ in range(3)))
    for column in (users.k, users.successes, users.counts):
        assert column.dtype == np.int64
        assert column.tolist() == [3, 2]


def test_a_billion_users_are_one_row() -> None:
    users = Users([10**6], [1], [10**9])
    assert users.n == 10**9
    assert repr(users) == f"Users(n={10**9})"


def test_there_are_at_most_two_to_the_40_users() -> None:
    users = Users([2**62, 1], [0, 1], [2**40 - 3, 3])
    assert users.n == 2**40
    assert repr(users) == f"Users(n={2**40})"
    for counts in ([2**40 - 3, 4], [2**40, 1], [2**62, 2**62], [2**63 - 1, 2**63 - 1]):
        with pytest.raises(ValueError, match=r"counts must add up to at most 2\*\*40"):
            Users([2**62, 1], [0, 1], counts)


def test_users_from_samples_count_ones() -> None:
    samples = [[0, 1, 1], np.array([True]), (0.0, 1.0), np.ones(300, dtype=np.int8)]
    users = Users.from_samples(samples)
    assert rows_of(users) == [(3, 2, 1), (1, 1, 1), (2, 1, 1), (300, 300, 1)]
    assert rows_of(Users.from_samples(iter(samples))) == rows_of(users)
    assert rows_of(Users.from_samples(np.eye(2))) == [(2, 1, 1), (2, 1, 1)]


# Users: what they refuse

BAD_SIZES = {
    "zero": ([1, 0], ValueError, "k must be at least 1 throughout$"),
    "negative": ([-3, 1], ValueError, "k must be at least 1 throughout$"),
    "a fraction": ([1, 1.5], ValueError, "k must be whole numbers throughout$"),
    "NaN": ([1, math.nan], ValueError, "k must be whole numbers throughout$"),
    "infinite": ([math.inf, 1], ValueError, "k must be whole numbers throughout$"),
    "2**63": ([2.0**63, 1.0], ValueError, "k must be at most"),
    "2**63, unsigned": ([2**63, 1], ValueError, "k must be at most"),
    "2**70": ([2**70, 1], TypeError, "k must hold numbers"),
    "text": (["1", "2"], TypeError, "k must hold numbers"),
    "booleans": ([True, True], TypeError, "k must hold numbers, not bool"),
    "None inside": ([1, None], TypeError, "k must hold numbers"),
    "complex": ([1j, 2], TypeError, "k must hold numbers"),
    "empty": ([], ValueError, "k is empty"),
    "a number": (3, ValueError, "k must be one-dimensional"),
    "a word": ("ab", ValueError, "k must be one-dimensional"),
    "None": (None, ValueError, "k must be one-dimensional"),
    "two dimensions": ([[1], [2]], ValueError, "k must be one-dimensional"),
    "masked": (np.ma.array([1, 2], mask=[False, True]), ValueError, "k .*masked"),
    "ragged": ([[1], [2, 3]], ValueError, "k must be one-dimensional"),
    "too long": ([1, 1, 1], ValueError, "same length, not k: 3, successes: 2"),
}


@pytest.mark.parametrize("problem", BAD_SIZES)
def test_bad_sizes_are_refused(problem: str) -> None:
    k, error, message = BAD_SIZES[problem]
    with pytest.raises(error, match=message):
        Users(k, [0, 0])


@pytest.mark.parametrize(
    ("successes", "error", "message"),
    [
        (
            [0, 3],
            ValueError,
            "successes must be at most k throughout$",
        ),
        ([-1, 0], ValueError, "successes must be at least 0 throughout$"),
        ([0.5, 0], ValueError, "successes must be whole numbers throughout$"),
        ([0, math.nan], ValueError, "successes must be whole numbers throughout$"),
        ([0, math.inf], ValueError, "successes must be whole numbers throughout$"),
        (["0", "1"], TypeError, "successes must hold numbers"),
        ([True, False], TypeError, "successes must hold numbers, not bool"),
        ([], ValueError, "successes is empty"),
        ([0], ValueError, "same length, not k: 2, successes: 1"),
        ([[0, 0]], ValueError, "successes must be one-dimensional"),
    ],
)
def test_bad_successes_are_refused(
    successes: Any, error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        Users([2, 2], successes)


@pytest.mark.parametrize(
    ("counts", "error", "message"),
    [
        ([1, 0], ValueError, "counts must be at least 1 throughout$"),
        ([1, -2], ValueError, "counts must be at least 1 throughout$"),
        ([1, 1.5], ValueError, "counts must be whole numbers throughout$"),
        ([1, math.nan], ValueError, "counts must be whole numbers throughout$"),
        ([1.0, 2.0**63], ValueError, "counts must be at most"),
        ([2**61, 2**61], ValueError, r"counts must add up to at most 2\*\*40"),
        (["1", "1"], TypeError, "counts must hold numbers"),
        ([True, True], TypeError, "counts must hold numbers, not bool"),
        ([1], ValueError, "same length, not k: 2, counts: 1"),
        ([], ValueError, "counts is empty"),
        (1, ValueError, "counts must be one-dimensional"),
    ],
)
def test_bad_counts_are_refused(
    counts: Any, error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        Users([2, 2], [0, 1], counts)


@pytest.mark.parametrize(
    "samples",
    [
        [[0, 2]],
        [[0.5]],
        [[1, math.nan]],
        [["0", "1"]],
        [[1, None]],
        [[]],
        [1, 0],
        [[[0, 1]]],
        [[1], []],
        ["01"],
        [],
    ],
)
def test_bad_samples_are_refused(samples: Any) -> None:
    with pytest.raises(ValueError, match=r"samples must|samples is empty"):
        Users.from_samples(samples)


SECRET = 7654321


@pytest.mark.parametrize(
    "build",
    [
        lambda: Users([5, -SECRET], [0, 0]),
        lambda: Users([5, SECRET + 0.5], [0, 0]),
        lambda: Users([5, 5], [0, SECRET]),
        lambda: Users([5, 5], [0, -SECRET]),
        lambda: Users([5, 5], [0.0, SECRET + 0.25]),
        lambda: Users([5, 5], [0, 1], [1, -SECRET]),
        lambda: Users([5, 5], [0, 1], [1, SECRET * 10**9]),
        lambda: Users([str(SECRET), "5"], [0, 0]),
        lambda: Users(SECRET, [0]),
        lambda: Users([[SECRET]], [0]),
        lambda: Users([[SECRET], [1, 2]], [0, 0]),
        lambda: Users.from_samples([[0, 1], [SECRET]]),
        lambda: Users.from_samples([[0, 1], [str(SECRET)]]),
        lambda: Users.from_samples([[0, 1], [[SECRET]]]),
        lambda: Users.from_samples([[0, 1], [[SECRET], [1, 2]]]),
        lambda: Users.from_samples([[0, 1], SECRET]),
        lambda: Users.from_samples(SECRET),  # type: ignore[arg-type]
        lambda: Users.from_samples(str(SECRET)),
    ],
)
def test_errors_show_no_entry_and_no_row(build: Callable[[], Users]) -> None:
    with pytest.raises((TypeError, ValueError)) as caught:
        build()
    message = str(caught.value)
    assert str(SECRET) not in message
    assert "entry 1" not in message
    assert "row" not in message


# Users: they do not change, and change nothing


def test_users_cannot_be_changed() -> None:
    for users in (Users([3], [1]), Users([3], [1], [2]), Users([3], [1]).compressed()):
        for name in ("k", "successes", "counts"):
            with pytest.raises(ValueError, match="read-only"):
                getattr(users, name)[0] = 2
            with pytest.raises(dataclasses.FrozenInstanceError):
                setattr(users, name, np.array([2]))


def test_the_means_are_fresh_each_time() -> None:
    users = Users([4], [1])
    users.means[0] = 7.0
    assert users.means[0] == 0.25


@pytest.mark.parametrize("kind", [np.int64, np.int32, float])
def test_the_input_is_copied_and_not_modified(kind: Any) -> None:
    k, successes, counts = (np.array(x, dtype=kind) for x in ([3, 2], [1, 2], [5, 6]))
    users = Users(k, successes, counts)
    assert all(array.flags.writeable for array in (k, successes, counts))
    assert (k.tolist(), successes.tolist(), counts.tolist()) == ([3, 2], [1, 2], [5, 6])
    for array in (k, successes, counts):
        array[:] = 99
    assert rows_of(users) == [(3, 1, 5), (2, 2, 6)]


def test_methods_leave_users_as_they_are() -> None:
    users = Users([3, 1, 3], [1, 0, 1], [1, 2, 3])
    before = rows_of(users)
    users.compressed()
    users.expanded()
    copy.deepcopy(users)
    assert rows_of(users) == before


# Users: merging and expanding rows


@given(users=tables())
def test_compressing_merges_equal_rows_in_order(users: Users) -> None:
    expected: Counter[tuple[int, int]] = Counter()
    for k, successes, count in rows_of(users):
        expected[k, successes] += count
    compressed = users.compressed()
    assert rows_of(compressed) == [(*row, expected[row]) for row in sorted(expected)]
    assert compressed.n == users.n
    assert rows_of(compressed.compressed()) == rows_of(compressed)


@given(users=tables(most=5))
def test_expanding_and_compressing_are_a_round_trip(users: Users) -> None:
    expanded = users.expanded()
    assert len(expanded.k) == expanded.n == users.n
    assert set(expanded.counts.tolist()) == {1}
    assert rows_of(expanded.compressed()) == rows_of(users.compressed())


@given(users=tables())
def test_repr_shows_the_number_of_users_and_nothing_private(users: Users) -> None:
    expected = f"Users(n={sum(count for _, _, count in rows_of(users))})"
    for table in (
        users,
        users.compressed(),
        users.part([0], users.counts[[0]] * 0 + 1),
    ):
        assert repr(table) == f"Users(n={table.n})" == str(table)
    assert repr(users) == expected


@pytest.mark.parametrize("counts", [None, [1, 2, 5]])
def test_part_of_a_table_has_its_rows_and_stays_a_list_or_not(
    counts: list[int] | None,
) -> None:
    users = Users(k=[4, 3, 1], successes=[1, 2, 0], counts=counts)
    part = users.part([True, False, True])
    numbers = [1, 1] if counts is None else [1, 5]
    assert part.k.tolist() == [4, 1]
    assert part.successes.tolist() == [1, 0]
    assert part.counts.tolist() == numbers
    assert part.ordered is users.ordered is (counts is None)
    with pytest.raises(ValueError, match="read-only"):
        part.k[0] = 9


def test_a_part_with_counts_is_no_list() -> None:
    users = Users([4, 3, 1], [1, 2, 0])
    assert users.ordered
    assert not users.part([0, 2], np.array([1, 1])).ordered
    assert not users.compressed().ordered
    assert users.expanded().ordered
    assert not Users([4, 3], [1, 2], [1, 1]).expanded().ordered
    assert Users.from_samples([[0, 1], [1]]).ordered
    assert sample_users(Constant(0.5), [3, 2], np.random.default_rng(0)).ordered


COPIES: dict[str, Callable[[Users], Users]] = {
    "copy": copy.copy,
    "deepcopy": copy.deepcopy,
    "pickle": lambda users: pickle.loads(pickle.dumps(users)),
    "old pickle": lambda users: pickle.loads(pickle.dumps(users, protocol=2)),
}


@pytest.mark.parametrize("way", COPIES)
@pytest.mark.parametrize("counts", [None, [1, 1, 1], [1, 2, 5]])
def test_copies_keep_the_kind_and_cannot_be_changed(
    way: str, counts: list[int] | None
) -> None:
    whole = Users([4, 3, 1], [1, 2, 0], counts)
    for users in (whole, whole.part([True, False, True]), whole.compressed()):
        twin = COPIES[way](users)
        assert rows_of(twin) == rows_of(users)
        assert twin.ordered is users.ordered
        assert repr(twin) == repr(users)
        for name in ("k", "successes", "counts"):
            assert not getattr(twin, name).flags.writeable
            with pytest.raises(ValueError, match="read-only"):
                getattr(twin, name)[0] = 2
            with pytest.raises(dataclasses.FrozenInstanceError):
                setattr(twin, name, np.array([2]))
        with pytest.raises(dataclasses.FrozenInstanceError):
            twin.ordered = not users.ordered  # type: ignore[misc]


def test_too_many_users_are_not_expanded() -> None:
    with pytest.raises(ValueError, match="n = 1000000000 users are too many"):
        Users([1], [0], [10**9]).expanded()


# The variance of a user's mean

FACTS = {1: 0.21, 2: 0.115, 5: 0.058, 10: 0.039, 100: 0.0219, 1000: 0.02019}


@pytest.mark.parametrize("k", FACTS)
def test_user_variance_has_the_known_values(k: int) -> None:
    assert user_variance(k, 0.3, 0.02) == pytest.approx(FACTS[k], rel=1e-14)


def test_the_variance_of_the_plain_mean_is_sampling_plus_noise() -> None:
    # Nine coins and one user of four samples, p = 1/2, rates apart by 1/4.
    k, counts = np.array([1.0, 4.0]), np.array([9, 1])
    sampling = (9 * 0.25 + 0.0625 + (0.25 - 0.0625) / 4) / 10**2
    value = plain_variance(k, counts, 0.25, 0.0625, 10, 0.5)
    assert value == pytest.approx(sampling + 2 / (10 * 0.5) ** 2, rel=1e-14)


def test_user_variance_of_an_array_is_an_array() -> None:
    variances = user_variance(np.array(list(FACTS)), 0.3, 0.02)
    assert variances.shape == (6,)
    assert variances == pytest.approx(list(FACTS.values()), rel=1e-14)
    assert isinstance(user_variance(3, 0.3, 0.02), float)


means = st.floats(0, 1)
shares = st.floats(0, 1)
whole_sizes = st.integers(1, 10**9)


@given(k=whole_sizes, p=means, share=shares)
def test_user_variance_is_within_twice_the_larger_part(
    k: int, p: float, share: float
) -> None:
    top = p * (1 - p)
    variance = user_variance(k, p, share * top)
    larger = max(top / k, share * top)
    assert larger * (1 - 1e-15) <= variance <= 2 * larger * (1 + 1e-15)


@given(k=whole_sizes, p=st.fractions(0, 1), share=st.fractions(0, 1))
def test_user_variance_is_the_lemma(k: int, p: Fraction, share: Fraction) -> None:
    top = p * (1 - p)
    exact = top / k + (1 - Fraction(1, k)) * share * top
    computed = user_variance(k, float(p), min(float(share * top), float(top)))
    assert computed == pytest.approx(float(exact), rel=1e-9, abs=1e-15)


@given(k=whole_sizes, p=means)
def test_user_variance_is_exact_when_rates_are_zero_or_one(k: int, p: float) -> None:
    assert user_variance(k, p, p * (1 - p)) == p * (1 - p)


@given(p=means, share=shares)
def test_user_variance_of_one_sample_is_that_of_a_coin(p: float, share: float) -> None:
    top = p * (1 - p)
    assert user_variance(1, p, share * top) == pytest.approx(top, rel=1e-15)


@given(p=means, share=shares)
def test_user_variance_falls_with_more_samples(p: float, share: float) -> None:
    variances = user_variance(np.arange(1, 50), p, share * p * (1 - p))
    assert (np.diff(variances) <= 1e-16).all()


@pytest.mark.parametrize(
    ("k", "p", "var_p", "error", "message"),
    [
        (0, 0.3, 0.02, ValueError, "k must be .*at least 1"),
        (0.5, 0.3, 0.02, ValueError, "k must be .*at least 1"),
        ([3, -1], 0.3, 0.02, ValueError, "k must be .*at least 1"),
        ([3, math.nan], 0.3, 0.02, ValueError, "k must be finite"),
        (math.inf, 0.3, 0.02, ValueError, "k must be finite"),
        ("3", 0.3, 0.02, TypeError, "k must"),
        (["3"], 0.3, 0.02, TypeError, "k must"),
        (None, 0.3, 0.02, TypeError, "k must"),
        (1, -0.1, 0.02, ValueError, r"p must be a number in \[0, 1\], not -0.1"),
        (1, 1.1, 0.02, ValueError, r"p must be a number in \[0, 1\], not 1.1"),
        (1, math.nan, 0.02, ValueError, "p must be a number"),
        (1, math.inf, 0.02, ValueError, "p must be a number"),
        pytest.param(1, 10**400, 0.02, ValueError, "p must be a number", id="10**400"),
        (1, "0.3", 0.02, TypeError, "p must be a number"),
        (1, True, 0.02, TypeError, "p must be a number"),
        (1, None, 0.02, TypeError, "p must be a number"),
        (1, 0.3, -0.01, ValueError, r"var_p must be in \[0, p\(1-p\)\]"),
        (1, 0.3, 0.2101, ValueError, r"var_p must be in \[0, p\(1-p\)\].*0.2101"),
        (1, 0.3, math.nan, ValueError, "var_p must be a number"),
        (1, 0.3, math.inf, ValueError, "var_p must be a number"),
        (1, 0.3, "0", TypeError, "var_p must be a number"),
        (1, 0.0, 1e-9, ValueError, "var_p must be in"),
    ],
)
def test_bad_arguments_of_user_variance_are_refused(
    k: Any, p: Any, var_p: Any, error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        user_variance(k, p, var_p)


# Populations

POPULATIONS: list[MetaDistribution] = [
    Constant(0.3),
    Constant(0),
    Constant(1),
    Beta(0.3, 0.0004),
    Beta(0.3, 0.01),
    Beta(0.5, 1 / 12),
    Beta(0.2, 0.12),
    Beta(0.02, 0.0001),
    Beta(0.9, 0.085),
    TruncatedGaussian(0.3, 0.02),
    TruncatedGaussian(0.3, 0.3),
    TruncatedGaussian(0.05, 0.1),
    TruncatedGaussian(0.97, 0.2),
    TruncatedGaussian(0.5, 2.0),
    TwoPoint(0.1, 0.9, 0.05),
    TwoPoint(0.0, 1.0, 0.5),
    TwoPoint(0.2, 0.4, 0.7),
    TwoPoint(0.2, 0.4, 0.0),
    TwoPoint(0.2, 0.4, 1.0),
    TwoPoint(0.3, 0.3, 0.5),
]


@pytest.mark.parametrize("meta", POPULATIONS, ids=repr)
def test_rates_have_the_mean_and_variance_they_should(meta: MetaDistribution) -> None:
    rates = meta.sample(200_000, np.random.default_rng(1))
    assert rates.shape == (200_000,)
    assert rates.min() >= 0
    assert rates.max() <= 1
    assert close(rates, meta.mean)
    assert close((rates - meta.mean) ** 2, meta.variance)


@pytest.mark.parametrize("meta", POPULATIONS, ids=repr)
def test_rates_are_reproducible_from_their_generator(meta: MetaDistribution) -> None:
    first, second = (meta.sample(20, np.random.default_rng(3)) for _ in range(2))
    assert first.tolist() == second.tolist()


Function = Callable[[Any], Any]


def expectation(meta: MetaDistribution, f: Function) -> float:
    """Return E f(rate), by quadrature from the definition of the law."""
    if isinstance(meta, Constant):
        return float(f(meta.p))
    if isinstance(meta, TwoPoint):
        return float((1 - meta.weight) * f(meta.low) + meta.weight * f(meta.high))
    if isinstance(meta, Beta):
        total = meta.mean * (1 - meta.mean) / meta.variance - 1
        a, b = meta.mean * total, (1 - meta.mean) * total
        if min(a, b) < 1:
            # The density has poles at 0 and 1, which the "alg" weight integrates.
            top, bottom = (
                integrate.quad(g, 0, 1, weight="alg", wvar=(a - 1, b - 1), limit=200)[0]
                for g in (f, lambda rate: 1.0)
            )
            return float(top / bottom)
        law, spread = stats.beta(a, b), math.sqrt(meta.variance)
        return ratio(f, law.pdf, meta.mean, spread)
    assert isinstance(meta, TruncatedGaussian)
    mode = min(max(meta.location, 0.0), 1.0)
    slope = (meta.location - mode) / meta.sd**2
    width = min(meta.sd, 1 / abs(slope)) if slope else meta.sd

    def density(rate: Any) -> Any:
        step = rate - mode
        return np.exp(slope * step - (step / meta.sd) ** 2 / 2)

    return ratio(f, density, mode, width)


def ratio(f: Function, density: Function, centre: float, width: float) -> float:
    """Return the integral of f times density over that of density, on [0, 1]."""
    steps = (0, 1, 2, 4, 8, 16, 40)
    places = {centre + side * step * width for side in (-1, 1) for step in steps}
    edges = sorted({0.0, 1.0} | {place for place in places if 0 < place < 1})
    nodes, masses = np.polynomial.legendre.leggauss(60)
    top = bottom = 0.0
    for low, high in itertools.pairwise(edges):
        rates = (low + high) / 2 + (high - low) / 2 * nodes
        weights = masses * (high - low) * density(rates)
        top += float(weights @ f(rates))
        bottom += float(weights.sum())
    return top / bottom


@pytest.mark.parametrize("meta", POPULATIONS, ids=repr)
def test_mean_and_variance_are_those_of_the_law(meta: MetaDistribution) -> None:
    mean = expectation(meta, lambda rate: rate)
    assert mean == pytest.approx(meta.mean, rel=1e-9, abs=1e-12)
    variance = expectation(meta, lambda rate: (rate - mean) ** 2)
    assert variance == pytest.approx(meta.variance, rel=1e-8, abs=1e-15)


@pytest.mark.parametrize("meta", POPULATIONS, ids=repr)
def test_the_sub_gaussian_proxy_is_a_certificate(meta: MetaDistribution) -> None:
    assert meta.variance <= meta.sub_gaussian_proxy * (1 + 1e-12)
    for t in (-50, -20, -8, -3, -1, -0.2, 0.2, 1, 3, 8, 20, 50):

        def tilted(rate: Any, t: float = t) -> Any:
            return np.exp(t * (rate - meta.mean))

        log_moment = math.log(expectation(meta, tilted))
        assert log_moment <= meta.sub_gaussian_proxy * t**2 / 2 + 1e-9


@pytest.mark.parametrize("sd", [0.01, 0.05, 0.2, 0.5, 1.0, 2.0])
@pytest.mark.parametrize(
    "mean", [1e-4, 1e-3, 0.01, 0.1, 0.3, 0.5, 0.9, 0.99, 0.999, 1 - 1e-4]
)
def test_a_truncated_gaussian_has_the_mean_it_is_given(mean: float, sd: float) -> None:
    meta = TruncatedGaussian(mean, sd)
    actual = expectation(meta, lambda rate: rate)
    assert actual == pytest.approx(mean, abs=1e-9 * min(mean, 1 - mean))
    variance = expectation(meta, lambda rate: (rate - mean) ** 2)
    assert variance == pytest.approx(meta.variance, rel=1e-8)
    assert 0 < meta.variance <= sd**2 * (1 + 1e-12)
    rates = meta.sample(2_000, np.random.default_rng(5))
    assert rates.min() >= 0
    assert rates.max() <= 1
    assert close(rates, mean)


def test_a_truncated_gaussian_in_the_middle_keeps_its_location() -> None:
    assert TruncatedGaussian(0.5, 0.3).location == pytest.approx(0.5, abs=1e-12)
    assert TruncatedGaussian(0.3, 0.01).location == pytest.approx(0.3, abs=1e-12)
    assert TruncatedGaussian(0.3, 0.01).variance == pytest.approx(1e-4, rel=1e-12)


def test_a_truncated_gaussian_is_symmetric_about_one_half() -> None:
    left, right = TruncatedGaussian(0.1, 0.3), TruncatedGaussian(0.9, 0.3)
    assert left.location == pytest.approx(1 - right.location, rel=1e-9)
    assert left.variance == pytest.approx(right.variance, rel=1e-9)


def test_a_beta_law_has_the_usual_parameters() -> None:
    meta = Beta(0.3, 0.01)
    assert meta.concentration == pytest.approx(20, rel=1e-12)
    assert meta.sub_gaussian_proxy == pytest.approx(1 / 84, rel=1e-12)
    law = stats.beta(6, 14)
    rates = meta.sample(100_000, np.random.default_rng(2))
    for rate in (0.1, 0.25, 0.3, 0.5):
        count = int((rates <= rate).sum())
        assert plausible_count(count, len(rates), law.cdf(rate))


def test_the_proxy_of_two_points_is_best_possible() -> None:
    # Kearns and Saul: for a rate that is 1 with probability w it is
    # (1-2w) / (2 log((1-w)/w)), and 1/4 at w = 1/2.
    for weight in (0.01, 0.2, 0.49999, 0.7):
        expected = (1 - 2 * weight) / (2 * math.log((1 - weight) / weight))
        proxy = TwoPoint(0.0, 1.0, weight).sub_gaussian_proxy
        assert proxy == pytest.approx(expected, rel=1e-7)
    assert TwoPoint(0.0, 1.0, 0.5).sub_gaussian_proxy == 0.25
    assert TwoPoint(0.2, 0.7, 0.5).sub_gaussian_proxy == pytest.approx(0.0625)
    assert TwoPoint(0.2, 0.7, 0.0).sub_gaussian_proxy == 0.0


def test_two_points_are_drawn_with_their_weight() -> None:
    rates = TwoPoint(0.1, 0.9, 0.05).sample(100_000, np.random.default_rng(4))
    assert set(rates.tolist()) == {0.1, 0.9}
    assert plausible_count(int((rates == 0.9).sum()), 100_000, 0.05)


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: Constant(-0.1), ValueError, "p must be a number in"),
        (lambda: Constant(1.1), ValueError, "p must be a number in"),
        (lambda: Constant(math.nan), ValueError, "p must be a number in"),
        (lambda: Constant(odd("0.3")), TypeError, "p must be a number in"),
        (lambda: Constant(True), TypeError, "p must be a number in"),
        (lambda: Beta(0.0, 0.01), ValueError, "mean must be a number strictly"),
        (lambda: Beta(1.0, 0.01), ValueError, "mean must be a number strictly"),
        (lambda: Beta(math.nan, 0.01), ValueError, "mean must be a number strictly"),
        (lambda: Beta(0.3, 0.0), ValueError, "variance must be a number strictly"),
        (lambda: Beta(0.3, -0.1), ValueError, "variance must be a number strictly"),
        (lambda: Beta(0.3, 0.21), ValueError, "variance must be a number strictly"),
        (lambda: Beta(0.3, math.inf), ValueError, "variance must be a number"),
        (lambda: Beta(0.3, odd(None)), TypeError, "variance must be a number strictly"),
        (lambda: TruncatedGaussian(0.0, 0.1), ValueError, "mean must be a number"),
        (lambda: TruncatedGaussian(1.0, 0.1), ValueError, "mean must be a number"),
        (lambda: TruncatedGaussian(odd("a"), 0.1), TypeError, "mean must be a number"),
        (lambda: TruncatedGaussian(0.3, 0.0), ValueError, "sd must be a finite"),
        (lambda: TruncatedGaussian(0.3, -1.0), ValueError, "sd must be a finite"),
        (lambda: TruncatedGaussian(0.3, math.inf), ValueError, "sd must be a finite"),
        (lambda: TruncatedGaussian(0.3, math.nan), ValueError, "sd must be a finite"),
        (lambda: TruncatedGaussian(0.3, odd(None)), TypeError, "sd must be a finite"),
        (lambda: TruncatedGaussian(1e-12, 2.0), ValueError, "mean 1e-12 is too extr"),
        (lambda: TwoPoint(-0.1, 0.9, 0.5), ValueError, "low must be a number in"),
        (lambda: TwoPoint(0.1, 1.1, 0.5), ValueError, "high must be a number in"),
        (lambda: TwoPoint(0.9, 0.1, 0.5), ValueError, "high must be a number in"),
        (lambda: TwoPoint(0.1, 0.9, 1.5), ValueError, "weight must be a number in"),
        (lambda: TwoPoint(0.1, 0.9, -0.5), ValueError, "weight must be a number in"),
        (lambda: TwoPoint(0.1, 0.9, odd("x")), TypeError, "weight must be a number in"),
    ],
)
def test_impossible_populations_are_refused(
    make: Callable[[], Any], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        make()


@pytest.mark.parametrize("meta", POPULATIONS, ids=repr)
def test_populations_cannot_be_changed(meta: Any) -> None:
    field = dataclasses.fields(meta)[0].name
    with pytest.raises(dataclasses.FrozenInstanceError):
        setattr(meta, field, 0.5)


# Sizes

PROFILES: dict[str, Callable[[np.random.Generator], Any]] = {
    "equal": lambda rng: sizes.equal(1000, 7),
    "harmonic": lambda rng: sizes.harmonic(1000),
    "two_level": lambda rng: sizes.two_level(1000, 10, 500),
    "geometric": lambda rng: sizes.geometric(1000, 5.0, rng),
    "zipf": lambda rng: sizes.zipf(1000, 1.5, 500, rng),
    "lognormal": lambda rng: sizes.lognormal(1000, 3.0, 2.0, 500, rng),
}


@pytest.mark.parametrize("profile", PROFILES)
def test_sizes_are_whole_and_positive(profile: str) -> None:
    k = PROFILES[profile](np.random.default_rng(0))
    assert k.dtype == np.int64
    assert k.shape == (1000,)
    assert k.min() >= 1
    assert k.max() <= 1000


@pytest.mark.parametrize("profile", PROFILES)
def test_sizes_are_reproducible_from_their_generator(profile: str) -> None:
    first, second = (PROFILES[profile](np.random.default_rng(9)) for _ in range(2))
    assert first.tolist() == second.tolist()


@pytest.mark.parametrize("profile", ["geometric", "zipf", "lognormal"])
def test_random_sizes_depend_on_the_generator_only(profile: str) -> None:
    first, second = (PROFILES[profile](np.random.default_rng(s)) for s in (1, 2))
    assert first.tolist() != second.tolist()


def test_equal_sizes_are_equal() -> None:
    assert sizes.equal(3, 5).tolist() == [5, 5, 5]


@pytest.mark.parametrize(
    ("n", "total"),
    [(10**3, 8053), (10**4, 103643), (10**5, 1266714), (10**6, 14969985)],
)
def test_harmonic_sizes_have_the_known_sums(n: int, total: int) -> None:
    assert int(sizes.harmonic(n).sum()) == total


@pytest.mark.parametrize("n", [1, 2, 3, 7, 60, 997])
def test_harmonic_sizes_are_rounded_up(n: int) -> None:
    expected = [math.ceil(Fraction(n, rank)) for rank in range(1, n + 1)]
    assert sizes.harmonic(n).tolist() == expected


def test_two_levels_put_the_heavy_users_first() -> None:
    assert sizes.two_level(5, 2, 100).tolist() == [100, 100, 1, 1, 1]
    assert sizes.two_level(2, 0, 100).tolist() == [1, 1]
    assert sizes.two_level(2, 2, 100).tolist() == [100, 100]


def check_law(k: Any, probability: Callable[[int], float], top: int) -> None:
    """Compare the shares of sizes 1, 2, ..., top, and of larger ones, with a law."""
    total = 0.0
    for size in range(1, top + 1):
        total += probability(size)
        count = int((k == size).sum())
        assert plausible_count(count, len(k), min(probability(size), 1.0))
    rest = int((k > top).sum())
    assert plausible_count(rest, len(k), min(max(1 - total, 0.0), 1.0))


@pytest.mark.parametrize("mean", [1, 1.5, 5.0])
def test_geometric_sizes_have_their_law(mean: float) -> None:
    k = sizes.geometric(100_000, mean, np.random.default_rng(0))
    check_law(k, lambda size: (1 - 1 / mean) ** (size - 1) / mean, 12)
    assert close(k, mean)


@pytest.mark.parametrize(
    ("exponent", "k_max"), [(0.5, 10), (1.0, 100), (2.0, 1000), (4, 3), (1.0, 1)]
)
def test_zipf_sizes_have_their_law(exponent: float, k_max: int) -> None:
    k = sizes.zipf(100_000, exponent, k_max, np.random.default_rng(0))
    masses = [size**-exponent for size in range(1, k_max + 1)]
    check_law(k, lambda size: masses[size - 1] / sum(masses), min(k_max, 12))
    assert k.max() <= k_max


@pytest.mark.parametrize(
    ("median", "sigma", "k_max"),
    [(3.0, 1.0, 10**6), (3.0, 1.0, 8), (0.2, 0.5, 100), (7.0, 0.0, 100), (50, 3.0, 60)],
)
def test_lognormal_sizes_have_their_law(
    median: float, sigma: float, k_max: int
) -> None:
    k = sizes.lognormal(100_000, median, sigma, k_max, np.random.default_rng(0))

    def at_most(size: int) -> float:
        if size < 1 or size >= k_max:
            return float(size >= k_max)
        if sigma == 0:
            return float(math.ceil(median) <= size)
        return float(stats.norm.cdf(math.log(size / median) / sigma))

    check_law(k, lambda size: at_most(size) - at_most(size - 1), min(k_max, 12))
    assert k.max() <= k_max


def test_a_whole_median_is_the_median_size() -> None:
    k = sizes.lognormal(100_001, 5.0, 1.0, 10**6, np.random.default_rng(0))
    assert plausible_count(int((k <= 5).sum()), 100_001, 0.5)


@pytest.mark.parametrize("k_max", [50, 2**63 - 1])
def test_lognormal_sizes_stay_within_k_max_when_numbers_overflow(k_max: int) -> None:
    k = sizes.lognormal(1000, 3.0, 1000.0, k_max, np.random.default_rng(0))
    assert k.min() == 1
    assert k.max() == k_max


RNG = np.random.default_rng(0)
BIG = 2**70


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: sizes.equal(0, 1), ValueError, "n must be a whole number"),
        (lambda: sizes.equal(odd(2.0), 1), TypeError, "n must be a whole number"),
        (lambda: sizes.equal(True, 1), TypeError, "n must be a whole number"),
        (lambda: sizes.equal(odd("2"), 1), TypeError, "n must be a whole number"),
        (lambda: sizes.equal(2, 0), ValueError, "k must be a whole number"),
        (lambda: sizes.equal(2, odd(1.5)), TypeError, "k must be a whole number"),
        (lambda: sizes.equal(2, BIG), ValueError, "k must be a whole number"),
        (lambda: sizes.harmonic(0), ValueError, "n must be a whole number"),
        (lambda: sizes.harmonic(-3), ValueError, "n must be a whole number"),
        (lambda: sizes.harmonic(odd(None)), TypeError, "n must be a whole number"),
        (lambda: sizes.two_level(0, 0, 1), ValueError, "n must be a whole number"),
        (lambda: sizes.two_level(2, -1, 1), ValueError, "heavy must be a whole"),
        (lambda: sizes.two_level(2, 3, 1), ValueError, "heavy must be at most n = 2"),
        (lambda: sizes.two_level(2, 1, 0), ValueError, "k_heavy must be a whole"),
        (lambda: sizes.two_level(2, 1, BIG), ValueError, "k_heavy must be a whole"),
        (lambda: sizes.geometric(0, 2.0, RNG), ValueError, "n must be a whole number"),
        (lambda: sizes.geometric(2, 0.9, RNG), ValueError, "mean must be at least 1"),
        (lambda: sizes.geometric(2, math.nan, RNG), ValueError, "mean must be"),
        (lambda: sizes.geometric(2, math.inf, RNG), ValueError, "mean must be"),
        (lambda: sizes.geometric(2, odd("2"), RNG), TypeError, "mean must be"),
        (lambda: sizes.geometric(2, 2.0, odd(None)), TypeError, "rng must be"),
        (lambda: sizes.zipf(0, 1.0, 5, RNG), ValueError, "n must be a whole number"),
        (lambda: sizes.zipf(2, 0.0, 5, RNG), ValueError, "exponent must be a finite"),
        (lambda: sizes.zipf(2, -1.0, 5, RNG), ValueError, "exponent must be a finite"),
        (lambda: sizes.zipf(2, 1.0, 0, RNG), ValueError, "k_max must be a whole"),
        (lambda: sizes.zipf(2, 1.0, odd(5.0), RNG), TypeError, "k_max must be a whole"),
        (lambda: sizes.zipf(2, 1.0, 5, odd(7)), TypeError, "rng must be"),
        (lambda: sizes.lognormal(0, 1, 1, 5, RNG), ValueError, "n must be a whole"),
        (lambda: sizes.lognormal(2, 0.0, 1, 5, RNG), ValueError, "median must be"),
        (lambda: sizes.lognormal(2, math.inf, 1, 5, RNG), ValueError, "median must be"),
        (lambda: sizes.lognormal(2, 1, -1, 5, RNG), ValueError, "sigma must be"),
        (lambda: sizes.lognormal(2, 1, math.nan, 5, RNG), ValueError, "sigma must be"),
        (lambda: sizes.lognormal(2, 1, 1, 0, RNG), ValueError, "k_max must be a whole"),
        (lambda: sizes.lognormal(2, 1, 1, BIG, RNG), ValueError, "k_max must be"),
        (lambda: sizes.lognormal(2, 1, 1, 5, odd(None)), TypeError, "rng must be"),
    ],
)
def test_impossible_sizes_are_refused(
    make: Callable[[], Any], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        make()


# Sampling users


@pytest.mark.parametrize(
    "meta",
    [
        Constant(0.3),
        Beta(0.3, 0.02),
        TruncatedGaussian(0.1, 0.2),
        TwoPoint(0.1, 0.9, 0.05),
    ],
    ids=repr,
)
@pytest.mark.parametrize("k", [1, 2, 10, 100, 1000])
def test_sampled_users_have_the_variance_of_the_lemma(
    meta: MetaDistribution, k: int
) -> None:
    users = sample_users(meta, sizes.equal(100_000, k), np.random.default_rng(k))
    assert close(users.means, meta.mean)
    squares = (users.means - meta.mean) ** 2
    assert close(squares, user_variance(k, meta.mean, meta.variance))


def test_sampled_users_keep_their_sizes_in_order() -> None:
    k = sizes.harmonic(50)
    users = sample_users(Beta(0.3, 0.02), k, np.random.default_rng(0))
    assert users.k.tolist() == k.tolist()
    assert users.n == 50
    assert k.flags.writeable


def test_sampled_users_are_reproducible() -> None:
    first, second = (
        sample_users(Beta(0.3, 0.02), [5, 6, 7], np.random.default_rng(8))
        for _ in range(2)
    )
    assert rows_of(first) == rows_of(second)


def test_users_with_rate_zero_or_one_are_certain() -> None:
    rng = np.random.default_rng(0)
    assert sample_users(Constant(0), [5, 6], rng).successes.tolist() == [0, 0]
    assert sample_users(Constant(1), [5, 6], rng).successes.tolist() == [5, 6]


@pytest.mark.parametrize(
    ("meta", "k", "rng", "error", "message"),
    [
        (Constant(0.3), [0], RNG, ValueError, "k must be at least 1"),
        (Constant(0.3), [1.5], RNG, ValueError, "k must be whole numbers"),
        (Constant(0.3), [], RNG, ValueError, "k is empty"),
        (Constant(0.3), 3, RNG, ValueError, "k must be one-dimensional"),
        (Constant(0.3), ["3"], RNG, TypeError, "k must hold numbers"),
        (Constant(0.3), [3], None, TypeError, "rng must be"),
        (Constant(0.3), [3], 7, TypeError, "rng must be"),
        (0.3, [3], RNG, TypeError, "meta must be"),
    ],
)
def test_bad_arguments_of_sample_users_are_refused(
    meta: Any, k: Any, rng: Any, error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        sample_users(meta, k, rng)


# Users cut to a public size.


class Draws(np.random.Generator):
    """Draws as usual, and keeps what the laws were."""

    def __init__(self, seed: int = 0) -> None:
        super().__init__(np.random.PCG64(seed))
        self.hypergeometric_calls: list[list[Any]] = []
        self.multinomial_calls: list[tuple[int, np.ndarray]] = []

    def hypergeometric(self, *args: Any) -> Any:
        self.hypergeometric_calls.append([np.asarray(a).tolist() for a in args])
        return super().hypergeometric(*args)

    def multinomial(self, n: Any, pvals: Any, size: Any = None) -> Any:
        self.multinomial_calls.append((int(n), np.asarray(pvals)))
        return super().multinomial(n, pvals)


@given(tables(most=300), st.integers(1, 7))
def test_capped_users_keep_the_bound_and_nobody_else_changes(
    users: Users, k_max: int
) -> None:
    capped = users.capped(k_max, np.random.default_rng(0))
    assert capped.n == users.n
    assert int(capped.k.max()) <= k_max
    kept = users.k <= k_max

    def below(table: Users) -> list[tuple[int, int, int]]:
        return [row for row in rows_of(table.compressed()) if row[0] < k_max]

    if kept.any():
        rest = Users(users.k[kept], users.successes[kept], users.counts[kept])
        assert below(capped) == below(rest)
    else:
        assert below(capped) == []


def test_users_within_the_bound_stay_as_they_are() -> None:
    for counts in (None, [1, 4, 2]):
        users = Users([3, 1, 5], [2, 0, 5], counts)
        rng = Draws()
        capped = users.capped(5, rng)
        assert rows_of(capped) == rows_of(users)
        assert capped.ordered is users.ordered
        calls = rng.hypergeometric_calls + rng.multinomial_calls
        assert all(call[0] == [] for call in calls)  # drawn for nobody


@pytest.mark.parametrize("k_max", [1, 3, 5, 9, 10**7])
@pytest.mark.parametrize("large", [1, 6, 9])
@pytest.mark.parametrize("counts", [None, [1, 1, 1], [1, 40, 2]])
def test_no_size_decides_whether_capped_users_are_a_list(
    counts: list[int] | None, large: int, k_max: int
) -> None:
    # The kind decides who wins ties, so one private size must not switch it.
    users = Users([3, large, 2], [2, 1, 0], counts)
    capped = users.capped(k_max, np.random.default_rng(0))
    assert capped.ordered is (counts is None)
    assert capped.n == users.n
    if counts is None:
        assert capped.k.tolist() == [min(k, k_max) for k in (3, large, 2)]


@pytest.mark.parametrize("k", [[3, 2], [10**8, 5]])
@pytest.mark.parametrize("counts", [None, [1, 4]])
def test_a_bound_beyond_all_bounds_is_refused_whoever_is_cut(
    k: list[int], counts: list[int] | None
) -> None:
    users = Users(k, [1, 1], counts)
    assert users.capped(10**7, np.random.default_rng(0)).n == users.n
    with pytest.raises(ValueError, match="k_max must be at most 10000000"):
        users.capped(10**7 + 1, np.random.default_rng(0))


def test_rows_of_one_user_stay_where_they_are_when_capped() -> None:
    users = Users([9, 2, 4, 7, 1], [9, 1, 4, 0, 1])
    capped = users.capped(3, np.random.default_rng(0))
    assert rows_of(capped) == [(3, 3, 1), (2, 1, 1), (3, 3, 1), (3, 0, 1), (1, 1, 1)]


def test_users_with_one_kind_of_sample_keep_it_when_capped() -> None:
    users = Users([10, 10], [0, 10], [10**12, 10**10])
    capped = users.capped(4, np.random.default_rng(0)).compressed()
    assert rows_of(capped) == [(4, 0, 10**12), (4, 4, 10**10)]


def test_each_capped_user_keeps_a_uniformly_random_choice_of_her_samples() -> None:
    rng = Draws()
    Users([9, 2, 7], [4, 1, 7]).capped(3, rng)
    assert rng.hypergeometric_calls == [[[4, 7], [5, 0], 3]]
    rng = Draws()
    Users([9, 2], [4, 1], [2, 5]).capped(3, rng)  # a row of few users
    assert rng.hypergeometric_calls == [[[4, 4], [5, 5], 3]]


@pytest.mark.parametrize(
    ("k", "ones", "k_max"), [(9, 4, 3), (6, 1, 5), (300, 100, 200), (50, 49, 1)]
)
def test_a_row_of_many_users_is_cut_in_one_draw_with_the_exact_law(
    k: int, ones: int, k_max: int
) -> None:
    rng = Draws()
    capped = Users([k], [ones], [10**6]).capped(k_max, rng)
    ((number, law),) = rng.multinomial_calls
    exact = stats.hypergeom(k, ones, k_max).pmf(np.arange(k_max + 1))
    assert number == capped.n == 10**6
    assert np.sort(law[law > 1e-300]) == pytest.approx(
        np.sort(exact[exact > 1e-300]), rel=1e-9
    )
    for row_ones, count in zip(capped.successes, capped.counts, strict=True):
        assert plausible_count(int(count), 10**6, float(exact[row_ones]))


def test_rows_with_counts_are_capped_with_the_law_of_their_users() -> None:
    exact = stats.hypergeom(6, 3, 4).pmf(np.arange(5))
    for users in (
        Users([6], [3], [20_000]),
        Users([6] * 200, [3] * 200, [100] * 200),
        Users([6] * 20_000, [3] * 20_000),
    ):
        capped = users.capped(4, np.random.default_rng(1)).compressed()
        counts = dict(
            zip(capped.successes.tolist(), capped.counts.tolist(), strict=True)
        )
        for ones in range(5):
            assert plausible_count(counts.get(ones, 0), 20_000, float(exact[ones]))


def test_users_with_more_samples_than_numpy_can_draw_from_are_capped() -> None:
    capped = Users([3 * 10**12], [10**12]).capped(1000, np.random.default_rng(2))
    ((k, ones, count),) = rows_of(capped)
    assert (k, count) == (1000, 1)
    assert plausible_count(ones, 1000, 1 / 3)


def test_capping_is_reproducible() -> None:
    users = Users([9, 9, 4], [4, 2, 3], [1, 500, 7])
    one, two = (users.capped(3, np.random.default_rng(3)) for _ in range(2))
    assert rows_of(one) == rows_of(two)


@pytest.mark.parametrize(
    ("k_max", "rng", "error", "message"),
    [
        (0, RNG, ValueError, "k_max must be"),
        (2.0, RNG, TypeError, "k_max must be"),
        (None, RNG, TypeError, "k_max must be"),
        (2, None, TypeError, "rng must be"),
        (2, 5, TypeError, "rng must be"),
        (10**7 + 1, RNG, ValueError, "k_max must be at most"),
    ],
)
def test_bad_arguments_of_capped_are_refused(
    k_max: Any, rng: Any, error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        Users([10**8, 5], [3, 3]).capped(k_max, rng)
