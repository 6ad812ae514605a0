"""Grouping: the same as looking at users one by one, for any sizes and counts."""

import math
from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from hetlit.check import MOST_USERS
from hetlit.users import groups as grouping
from hetlit.users.draws import split_by_size
from hetlit.users.groups import by_size, by_size_class, classes_up_to
from hetlit.users.table import Users

SIZES = st.integers(1, 12) | st.integers(1, 5000) | st.integers(1, 2**62)
COUNTS = st.integers(1, 4) | st.integers(1, MOST_USERS // 32)  # at most 30 rows


@st.composite
def tables(draw, sizes=SIZES, counts=COUNTS, most_rows=30):
    """Users in any order, with repeated sizes, with or without counts."""
    rows = draw(st.integers(1, most_rows))
    pool = st.sampled_from(draw(st.lists(sizes, min_size=1, max_size=rows)))
    k = draw(st.lists(pool, min_size=rows, max_size=rows))
    shares = st.floats(0, 1)
    successes = [min(size, int(size * draw(shares))) for size in k]
    if draw(st.booleans()):
        return Users(k, successes)
    return Users(k, successes, draw(st.lists(counts, min_size=rows, max_size=rows)))


def counted(users, name_of=int):
    """The number of users under each name of a size, by a loop in Python."""
    total: Counter[int] = Counter()
    for k, count in zip(users.k.tolist(), users.counts.tolist(), strict=True):
        total[name_of(k)] += count
    return total


def leading_bits(k):
    """A size, rounded down to eight leading bits."""
    drop = max(k.bit_length() - 8, 0)
    return k >> drop << drop


def awkward_sizes():
    """Sizes next to powers of two and to the limits of what a float can hold."""
    near = (2**power + step for power in range(63) for step in range(-3, 4))
    return [*range(1, 1025), *(k for k in near if k >= 1), 2**63 - 1]


# By exact size


@given(tables())
def test_groups_are_the_sizes_in_ascending_order_with_their_users(users):
    groups, expected = by_size(users), counted(users)
    assert groups.users is users
    assert groups.sizes.k.tolist() == [float(k) for k in sorted(expected)]
    assert groups.sizes.counts.tolist() == [expected[k] for k in sorted(expected)]
    assert groups.sizes.n == users.n


@pytest.mark.slow
@given(tables())
def test_positions_lead_from_rows_to_their_groups(users):
    groups = by_size(users)
    names = np.array(sorted(counted(users)))
    assert names[groups.all_positions].tolist() == users.k.tolist()


@pytest.mark.parametrize("dense", [0, 10**9], ids=["by sorting", "by a table"])
def test_both_ways_of_grouping_agree(monkeypatch, dense):
    monkeypatch.setattr(grouping, "DENSE", dense)
    k = np.random.default_rng(0).integers(1, 5000, 2000)
    users = Users(k, np.zeros(2000), np.arange(1, 2001))
    groups, expected = by_size(users), counted(users)
    held = groups.sizes
    assert dict(zip(held.k.tolist(), held.counts.tolist(), strict=True)) == expected
    assert held.k[groups.all_positions].tolist() == users.k.tolist()


def test_a_huge_size_among_few_users_takes_no_huge_table():
    held = by_size(Users([2**62, 1, 2**62], [0, 0, 0])).sizes
    assert held.k.tolist() == [1.0, 2.0**62]
    assert held.counts.tolist() == [1, 2]


@pytest.mark.parametrize("group_by", [by_size, by_size_class])
def test_counts_of_the_most_users_there_can_be_are_exact(group_by):
    users = Users([3, 3, 3], [0, 1, 2], [MOST_USERS - 3, 1, 1])
    assert group_by(users).sizes.counts.tolist() == [MOST_USERS - 1]


# By size class


@given(tables())
def test_classes_are_sizes_rounded_down_to_eight_bits(users):
    groups, expected = by_size_class(users), counted(users, leading_bits)
    assert groups.users is users
    assert [int(k) for k in groups.sizes.k] == sorted(expected)
    assert groups.sizes.counts.tolist() == [expected[k] for k in sorted(expected)]
    assert groups.sizes.n == users.n


@given(tables())
def test_positions_lead_from_rows_to_their_classes(users):
    groups = by_size_class(users)
    classes = [int(k) for k in groups.sizes.k[groups.all_positions]]
    assert classes == [leading_bits(k) for k in users.k.tolist()]


def classes_of(sizes):
    users = Users(sizes, np.zeros(len(sizes)))
    groups = by_size_class(users)
    return [int(k) for k in groups.sizes.k[groups.all_positions]]


def test_classes_of_sizes_up_to_255_are_exact():
    sizes = list(range(1, 256))
    assert classes_of(sizes) == sizes


def test_a_class_is_never_above_the_true_size():
    sizes = awkward_sizes()
    for size, rounded in zip(sizes, classes_of(sizes), strict=True):
        assert rounded <= size


def test_a_class_loses_less_than_one_part_in_128():
    sizes = awkward_sizes()
    for size, rounded in zip(sizes, classes_of(sizes), strict=True):
        assert 128 * (size - rounded) < size


def test_there_are_at_most_a_few_thousand_classes():
    sizes = np.exp2(np.random.default_rng(0).uniform(0, 62.9, 200_000))
    assert len(set(classes_of(sizes.astype(np.int64)))) < 8192


@pytest.mark.parametrize("k_max", [1, 2, 255, 256, 257, 1000, 70_000])
def test_the_possible_classes_are_those_of_all_sizes_up_to_the_largest(k_max):
    possible = classes_up_to(k_max)
    assert (np.diff(possible) > 0).all()
    whole = possible[possible == np.floor(possible)].tolist()
    assert whole == sorted(set(classes_of(np.arange(1, k_max + 1))))


@pytest.mark.parametrize("k_max", [2**54 - 1, 2**62 - 1, 2**62, 2**63 - 1])
def test_no_possible_class_is_above_the_largest_size(k_max):
    assert int(classes_up_to(k_max)[-1]) == leading_bits(k_max)


@pytest.mark.parametrize("block", [1, 2, 7, 1000])
def test_classes_do_not_depend_on_the_size_of_blocks(monkeypatch, block):
    monkeypatch.setattr(grouping, "BLOCK", block)
    sizes = np.random.default_rng(0).permutation(awkward_sizes())[:100]
    users = Users(sizes, np.zeros(100), np.arange(1, 101))
    groups, expected = by_size_class(users), counted(users, leading_bits)
    assert groups.sizes.counts.tolist() == [expected[k] for k in sorted(expected)]
    classes = [int(k) for k in groups.sizes.k[groups.all_positions]]
    assert classes == [leading_bits(k) for k in users.k.tolist()]


@given(tables(), st.integers(1, 7), st.sampled_from([by_size, by_size_class]))
def test_positions_of_some_rows_are_those_of_all(users, step, group_by):
    groups = group_by(users)
    parts = [
        groups.positions(slice(start, start + step)).tolist()
        for start in range(0, len(users.k), step)
    ]
    assert [place for part in parts for place in part] == groups.all_positions.tolist()


# Sums over users


@given(
    tables(counts=st.integers(1, 4), most_rows=12),
    st.integers(1, 5),
    st.sampled_from([by_size, by_size_class]),
)
def test_sums_are_those_over_users_one_by_one(users, block, group_by):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(grouping, "BLOCK", block)
        groups = group_by(users)
        levels = np.log(groups.sizes.k)
        total = groups.sum(lambda group, means: levels[group] + means**2)
    name_of = int if group_by is by_size else leading_bits
    each = users.expanded()
    expected = math.fsum(
        math.log(name_of(k)) + (ones / k) ** 2
        for k, ones in zip(each.k.tolist(), each.successes.tolist(), strict=True)
    )
    assert total == pytest.approx(expected, rel=1e-12, abs=1e-300)


def test_a_sum_of_ones_is_the_number_of_users():
    users = Users([5, 5, 9], [1, 2, 3], [5 * 10**11, 5 * 10**11, 1])
    total = by_size(users).sum(lambda group, means: 1.0 + 0 * means)
    assert total == 10**12 + 1


@pytest.mark.parametrize("rows", [1, 3, 4, 5, 8])
def test_blocks_cover_every_row_once(monkeypatch, rows):
    monkeypatch.setattr(grouping, "BLOCK", 4)
    users = Users(np.ones(rows), np.zeros(rows))
    visited = [row for rows_ in grouping.blocks(users) for row in range(rows)[rows_]]
    assert visited == list(range(rows))


# Cohorts


@st.composite
def splits(draw):
    """Users with few sizes, each row known by its successes, and where to cut."""
    rows = draw(st.integers(1, 8))
    k = draw(st.lists(st.integers(8, 10), min_size=rows, max_size=rows))
    counts = draw(st.lists(COUNTS, min_size=rows, max_size=rows))
    counts[0] += 2  # at least three users, for three cohorts
    n = sum(counts)
    most = draw(st.integers(1, min(n - 2, 10)) | st.integers(1, n - 2))
    least = draw(st.integers(1, n - most - 1))
    return Users(k, range(rows), counts), most, least, draw(st.integers(0, 2**32))


def cohorts_of(split):
    users, most, least, seed = split
    return split_by_size(users, most, least, np.random.default_rng(seed))


@given(splits())
def test_cohorts_have_the_numbers_asked_for(split):
    users, most, least, _ = split
    numbers = [cohort.n for cohort in cohorts_of(split)]
    assert numbers == [most, users.n - most - least, least]


@given(splits())
def test_every_user_is_in_one_cohort(split):
    together: Counter[tuple[int, int]] = Counter()
    for cohort in cohorts_of(split):
        rows = cohort.k.tolist(), cohort.successes.tolist(), cohort.counts.tolist()
        for k, successes, count in zip(*rows, strict=True):
            together[k, successes] += count
    users = split[0]
    keys = zip(users.k.tolist(), users.successes.tolist(), strict=True)
    assert together == dict(zip(keys, users.counts.tolist(), strict=True))


@given(splits())
def test_nobody_holds_more_than_somebody_of_a_higher_cohort(split):
    top, middle, bottom = cohorts_of(split)
    assert top.k.min() >= middle.k.max()
    assert middle.k.min() >= bottom.k.max()


@given(splits())
def test_cohorts_are_reproducible_from_the_generator(split):
    first, second = (
        [cohort.counts.tolist() for cohort in cohorts_of(split)] for _ in range(2)
    )
    assert first == second


def test_a_row_is_split_where_a_boundary_falls_inside_it():
    users = Users([4, 9], [1, 2], [10, 2])
    top, middle, bottom = split_by_size(users, 5, 3, np.random.default_rng(0))
    assert sorted(zip(top.k, top.counts, strict=True)) == [(4, 3), (9, 2)]
    assert (middle.k.tolist(), middle.counts.tolist()) == ([4], [4])
    assert (bottom.k.tolist(), bottom.counts.tolist()) == ([4], [3])


def test_one_row_can_be_split_into_all_three_cohorts():
    parts = split_by_size(Users([4], [1], [10]), 3, 2, np.random.default_rng(0))
    assert [part.counts.tolist() for part in parts] == [[3], [5], [2]]


def test_chance_decides_between_users_of_one_size():
    # One larger user is always on top, so each of six equal ones is there with
    # chance 1/6 and at the bottom with 2/6.  A true test fails with a chance below
    # 24 * 1e-10 for a random seed; this one is fixed.
    rng, draws = np.random.default_rng(1), 3000
    users = Users([7] * 6 + [9], range(7), [1] * 7)
    seen: list[Counter[int]] = [Counter(), Counter()]
    for _ in range(draws):
        top, _, bottom = split_by_size(users, 2, 2, rng)
        seen[0].update(top.successes.tolist())
        seen[1].update(bottom.successes.tolist())
    assert seen[0].pop(6) == draws
    for counter, probability in zip(seen, (1 / 6, 2 / 6), strict=True):
        law = stats.binom(draws, probability)
        for user in range(6):
            assert law.ppf(1e-10) <= counter[user] <= law.isf(1e-10)


def test_a_list_is_split_in_its_order():
    users = Users([7, 9, 7, 7, 7], range(5))
    parts = split_by_size(users, 2, 2, np.random.default_rng(0))
    assert [part.successes.tolist() for part in parts] == [[0, 1], [2], [3, 4]]
