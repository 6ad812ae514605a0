"""Tables of users: what they hold and refuse, merge, copy, and cut to a size."""

from __future__ import annotations

import copy
import dataclasses
import math
import pickle
from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from hetlit.theory.populations import (
    Constant,
)
from hetlit.users.simulate import sample_users
from hetlit.users.table import Users
from tests.chance import RNG, plausible_count
from tests.rows import rows_of, tables

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


@given(users=tables(most=30, largest=6, counts=10**9))
def test_compressing_merges_equal_rows_in_order(users: Users) -> None:
    expected: Counter[tuple[int, int]] = Counter()
    for k, successes, count in rows_of(users):
        expected[k, successes] += count
    compressed = users.compressed()
    assert rows_of(compressed) == [(*row, expected[row]) for row in sorted(expected)]
    assert compressed.n == users.n
    assert rows_of(compressed.compressed()) == rows_of(compressed)


@given(users=tables(most=30, largest=6, counts=5))
def test_expanding_and_compressing_are_a_round_trip(users: Users) -> None:
    expanded = users.expanded()
    assert len(expanded.k) == expanded.n == users.n
    assert set(expanded.counts.tolist()) == {1}
    assert rows_of(expanded.compressed()) == rows_of(users.compressed())


@given(users=tables(most=30, largest=6, counts=10**9))
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


@given(tables(most=30, largest=6, counts=300), st.integers(1, 7))
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
