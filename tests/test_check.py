"""Argument checks: good values come back plain, bad ones are named and explained."""

import math
import re
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hetlit import check

LARGEST = 2**63 - 1
NOT_NUMBERS = [
    *["1", None, True, np.True_, 1j, np.complex64(1), [1.0], np.array([1.0])],
    *[Decimal(1), np.timedelta64(1), np.timedelta64(1, "s"), np.datetime64(1, "s")],
    np.ma.masked,
]
NOT_FINITE = [math.nan, math.inf, -math.inf, np.float64("nan"), np.float32("inf")]


def refuses(error, name, function, *arguments, **options):
    """Check that a call fails with this error, and that the error names `name`."""
    with pytest.raises(error, match=rf"^{re.escape(name)}\b"):
        function(name, *arguments, **options)


# Numbers


@pytest.mark.parametrize(
    "value", [0, -3, 2.5, Fraction(5, 2), np.int8(-3), np.uint64(7), np.float32(0.5)]
)
def test_real_numbers_come_back_as_plain_floats(value):
    number = check.real("x", value)
    assert type(number) is float
    assert number == value


@pytest.mark.parametrize("value", NOT_NUMBERS, ids=repr)
def test_what_is_not_a_number_is_a_type_error(value):
    refuses(TypeError, "x", check.real, value)


@pytest.mark.parametrize("value", NOT_FINITE, ids=repr)
def test_numbers_that_are_not_finite_are_a_value_error(value):
    refuses(ValueError, "x", check.real, value)


def test_numbers_too_large_for_a_float_are_a_value_error():
    refuses(ValueError, "x", check.real, 10**400)
    refuses(ValueError, "x", check.real, Fraction(-(10**400)))


def test_errors_show_the_value_and_what_is_allowed():
    with pytest.raises(ValueError, match=r"^epsilon must be .* above 0, not -1\.5$"):
        check.positive("epsilon", -1.5)


@given(st.floats(min_value=0, exclude_min=True, allow_infinity=False))
def test_positive_numbers_pass(value):
    assert check.positive("x", value) == value


@given(st.floats(max_value=0))
def test_zero_and_below_are_not_positive(value):
    refuses(ValueError, "x", check.positive, value)


@pytest.mark.parametrize("value", NOT_NUMBERS, ids=repr)
def test_every_check_of_a_number_refuses_what_is_not_one(value):
    refuses(TypeError, "x", check.positive, value)
    refuses(TypeError, "x", check.between, value, 0.0, 1.0)
    refuses(TypeError, "x", check.strictly_between, value, 0.0, 1.0)


@pytest.mark.parametrize("value", NOT_FINITE, ids=repr)
def test_every_check_of_a_number_refuses_nan_and_infinity(value):
    refuses(ValueError, "x", check.positive, value)
    refuses(ValueError, "x", check.between, value, 0.0, 1.0)
    refuses(ValueError, "x", check.strictly_between, value, 0.0, 1.0)


@given(st.floats(-1.0, 2.0))
def test_a_closed_interval_is_its_inside_and_its_ends(value):
    if 0.0 <= value <= 1.0:
        assert check.between("p", value, 0.0, 1.0) == value
    else:
        refuses(ValueError, "p", check.between, value, 0.0, 1.0)


def test_a_closed_interval_has_its_ends_and_an_open_one_does_not():
    for end in (0, 1):
        assert check.between("beta", end, 0.0, 1.0) == end
        refuses(ValueError, "beta", check.strictly_between, end, 0.0, 1.0)


@given(st.floats(0.0, 1.0, exclude_min=True, exclude_max=True))
def test_an_open_interval_has_its_inside(value):
    assert check.strictly_between("beta", value, 0.0, 1.0) == value


@pytest.mark.parametrize("value", [2, np.int8(2), np.uint64(2), LARGEST])
def test_whole_numbers_come_back_as_plain_ints(value):
    number = check.integer("n", value, 2)
    assert type(number) is int
    assert number == value


@pytest.mark.parametrize("value", [*NOT_NUMBERS, 2.0, np.float64(2)], ids=repr)
def test_what_is_not_a_whole_number_is_a_type_error(value):
    refuses(TypeError, "n", check.integer, value, 2)


@pytest.mark.parametrize("value", [1, 0, -5, np.int64(1)])
def test_whole_numbers_below_the_minimum_are_refused(value):
    with pytest.raises(ValueError, match="n must be a whole number of at least 2"):
        check.integer("n", value, 2)


@pytest.mark.parametrize("value", [2**63, 10**30, np.uint64(2**63)])
def test_whole_numbers_that_do_not_fit_are_refused(value):
    refuses(ValueError, "n", check.integer, value, 2)


def test_a_generator_passes_unchanged():
    rng = np.random.default_rng(0)
    assert check.generator("rng", rng) is rng


@pytest.mark.parametrize("value", [0, None, np.random.SeedSequence(0)], ids=repr)
def test_what_is_not_a_generator_is_a_type_error(value):
    refuses(TypeError, "rng", check.generator, value)


def test_a_word_must_be_one_of_those_allowed():
    words = ("auto", "paper")
    assert check.one_of("method", "paper", words) == "paper"
    with pytest.raises(ValueError, match=r"^method must be one of .*auto.*paper"):
        check.one_of("method", "Paper", words)


@pytest.mark.parametrize("value", [None, 1, ["auto"], b"auto"], ids=repr)
def test_a_word_must_be_a_string(value):
    refuses(TypeError, "method", check.one_of, value, ("auto", "paper"))


# Means and variances


@given(st.floats(0.0, 1.0), st.floats(0.0, 1.0))
def test_every_mean_goes_with_variances_up_to_its_coin(p, share):
    var_p = share * p * (1.0 - p)
    assert check.mean_and_variance(p, var_p) == (p, var_p)


@given(st.floats(0.0, 1.0))
def test_a_variance_that_rounding_pushed_over_the_limit_is_put_back(p):
    limit = p * (1.0 - p)
    over = math.nextafter(limit, 1.0) if limit > 1e-300 else limit
    assert check.mean_and_variance(p, over) == (p, limit)


@pytest.mark.parametrize(
    ("p", "var_p", "name"),
    [
        (-0.1, 0.0, "p"),
        (1.1, 0.0, "p"),
        (math.nan, 0.0, "p"),
        (0.3, -1e-9, "var_p"),
        (0.3, 0.2101, "var_p"),
        (0.3, math.nan, "var_p"),
        (0.3, math.inf, "var_p"),
        (0.0, 1e-9, "var_p"),
        (1.0, 1e-9, "var_p"),
    ],
)
def test_impossible_means_and_variances_are_refused(p, var_p, name):
    with pytest.raises(ValueError, match=rf"^{name} must be"):
        check.mean_and_variance(p, var_p)


def test_means_and_variances_are_numbers():
    with pytest.raises(TypeError, match=r"^p must be"):
        check.mean_and_variance("0.3", 0.0)
    with pytest.raises(TypeError, match=r"^var_p must be"):
        check.mean_and_variance(0.3, "0.0")


# Arrays


@pytest.mark.parametrize(
    ("values", "error", "reason"),
    [
        (3, ValueError, "one-dimensional"),
        ([[1, 2], [3, 4]], ValueError, "one-dimensional"),
        ([[1], [1, 2]], ValueError, "one-dimensional"),
        ([], ValueError, "empty"),
        (np.zeros(0, dtype=np.int64), ValueError, "empty"),
        (["1", "2"], TypeError, "numbers"),
        ([None, 1], TypeError, "numbers"),
        ([True, False], TypeError, "numbers"),
        ([1j], TypeError, "numbers"),
        ([2**70], TypeError, "numbers"),
        (np.array(["2020-01-01"], dtype="datetime64[D]"), TypeError, "numbers"),
        (np.array([1, 2], dtype="timedelta64[s]"), TypeError, "numbers"),
        ([np.timedelta64(1)], TypeError, "numbers"),
    ],
    ids=repr,
)
def test_what_is_not_an_array_of_numbers_is_refused_by_name(values, error, reason):
    for function in (check.floats, lambda name, x: check.integers(name, x, 0)):
        with pytest.raises(error, match=rf"^column\b.*{reason}"):
            function("column", values)


@pytest.mark.parametrize(
    "dtype", ["i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f2", "f4", "f8", "g"]
)
def test_whole_numbers_of_any_type_become_int64(dtype):
    array = check.integers("k", np.array([0, 1, 100], dtype=dtype), 0)
    assert array.dtype == np.int64
    assert array.tolist() == [0, 1, 100]


def test_masked_entries_are_refused_and_a_mask_without_any_is_not():
    values = np.ma.array([1, 2, 3], mask=[False, True, False])
    with pytest.raises(ValueError, match=r"^k must have no masked entries"):
        check.integers("k", values, 1)
    values.mask = np.ma.nomask
    assert check.integers("k", values, 1).tolist() == [1, 2, 3]


@pytest.mark.parametrize(
    "values",
    [[1, np.ma.masked], (np.ma.masked,), [np.ma.array([1, 2], mask=[False, True])]],
    ids=["one", "tuple", "row"],
)
def test_masked_entries_in_a_list_are_refused(values):
    for function in (
        check.floats,
        check.sizes,
        lambda name, x: check.integers(name, x, 1),
    ):
        with pytest.raises(ValueError, match=r"^k must have no masked entries"):
            function("k", values)


def test_checked_integers_are_a_new_array():
    given_array = np.array([1, 2, 3])
    check.integers("k", given_array, 1)[0] = 7
    assert given_array.tolist() == [1, 2, 3]


def test_integers_for_reading_are_not_copied():
    given_array = np.array([1, 2, 3])
    assert check.integers("k", given_array, 1, copy=False) is given_array
    assert check.integers("k", [1.0, 2.0], 1, copy=False).dtype == np.int64


def test_the_largest_integers_are_exact():
    values = [LARGEST, LARGEST - 1, 2**53 + 1]
    assert check.integers("k", values, 1).tolist() == values
    assert check.integers("k", np.array(values, dtype="u8"), 1).tolist() == values


@pytest.mark.parametrize(
    "values",
    [
        np.array([1, 2**63], dtype=np.uint64),
        np.array([1.0, 2.0**63]),
        np.array([1.0, 2.0**63], dtype=np.float32),
        np.array([1.0, 1e300]),
    ],
    ids=["uint64", "float64", "float32", "far beyond"],
)
def test_integers_that_do_not_fit_are_refused(values):
    with pytest.raises(ValueError, match=r"^k must be at most 2\*\*63 - 1 through"):
        check.integers("k", values, 1)


@pytest.mark.parametrize("value", [0.5, math.nan, math.inf, -math.inf])
def test_entries_that_are_not_whole_are_refused(value):
    with pytest.raises(ValueError, match=r"^k must be whole numbers throughout$"):
        check.integers("k", [1.0, 2.0, value], 1)


@pytest.mark.parametrize("values", [[3, 1, 0], [3.0, 1.0, 0.0], [3, 1, -(2**63)]])
def test_entries_below_the_minimum_are_refused(values):
    with pytest.raises(ValueError, match=r"^k must be at least 1 throughout$"):
        check.integers("k", values, 1)


@pytest.mark.parametrize(
    ("function", "values"),
    [
        (lambda x: check.integers("k", x, 1), [98765, -4321, 98765]),
        (lambda x: check.integers("k", x, 1), [98765.0, 4321.5]),
        (lambda x: check.floats("k", x), [98765.0, -4321.0]),
        (lambda x: check.magnitudes("k", x, 1.0, 2.0), [98765.0, 4321.0]),
        (lambda x: check.sizes("k", x), [98765.0, -4321.0]),
        (lambda x: check.whole_sizes("k", x, 10**6), [98765.0, 4321.5]),
        (lambda x: check.positive("k", x), np.array([98765.0, 4321.5])),
        (lambda x: check.integer("k", x, 1), [98765, 4321]),
        (lambda x: check.generator("k", x), (98765, 4321)),
        (lambda x: check.one_of("k", x, ("a", "b")), [98765, 4321]),
    ],
)
def test_errors_show_neither_the_data_nor_where_they_are(function, values):
    with pytest.raises((ValueError, TypeError), match=r"^k must be") as caught:
        function(values)
    assert not re.search("9876|4321|entry|position", str(caught.value))


@pytest.mark.parametrize("value", [10**5000, Fraction(10**5000, 3)], ids=["int", "fr"])
def test_numbers_too_long_to_print_are_refused_by_name(value):
    refuses(ValueError, "x", check.real, value)
    refuses(ValueError, "x", check.positive, -value)
    if isinstance(value, int):
        refuses(ValueError, "x", check.integer, value, 1)


def test_whole_numbers_can_have_a_largest():
    assert check.integer("n", np.uint8(200), 1, 200) == 200
    with pytest.raises(ValueError, match=r"^n must be .* at most 200, not 201$"):
        check.integer("n", 201, 1, 200)


@pytest.mark.parametrize(
    "value", [1, 1e-12, 1e12, np.uint8(1), np.float16(1), Fraction(1, 3)]
)
def test_budgets_are_plain_floats(value):
    assert type(check.epsilon(value)) is float
    assert check.epsilon(value) == float(value)


@pytest.mark.parametrize("value", [0, -1.0, 9e-13, 1.1e12, math.nan, math.inf, 10**400])
def test_budgets_out_of_range_are_refused(value):
    with pytest.raises(ValueError, match=r"^epsilon must be a number in \[1e-12, 1e"):
        check.epsilon(value)


@pytest.mark.parametrize("value", NOT_NUMBERS, ids=repr)
def test_budgets_are_numbers(value):
    with pytest.raises(TypeError, match=r"^share must be"):
        check.epsilon(value, "share")


@pytest.mark.parametrize("value", [3, 3.5, np.uint8(3), [[1, 2], [3, 4]], []])
def test_sizes_keep_their_shape(value):
    array = check.sizes("k", value)
    assert array.dtype == np.float64
    assert array.tolist() == value


@pytest.mark.parametrize(
    ("value", "error"),
    [
        (0.5, ValueError),
        ([1, math.nan], ValueError),
        (math.inf, ValueError),
        (np.array([1, 2]) * np.longdouble("1e400"), ValueError),
        ([1, [2]], ValueError),
        (np.ma.array([1, 2], mask=[False, True]), ValueError),
        (np.timedelta64(3), TypeError),
        (np.array([1, 2], dtype="m8[s]"), TypeError),
        (np.array(["2020"], dtype="M8[Y]"), TypeError),
        (1j, TypeError),
        ("3", TypeError),
        (None, TypeError),
        (True, TypeError),
    ],
    ids=repr,
)
def test_what_is_no_size_is_refused(value, error):
    refuses(error, "k", check.sizes, value)
    refuses(error, "k", check.whole_sizes, value, 10)


def test_whole_sizes_are_whole_and_not_too_large():
    array = check.whole_sizes("k", np.array([[1.0], [10.0]], dtype=np.float16), 10)
    assert array.dtype == np.int64
    assert array.tolist() == [[1], [10]]
    refuses(ValueError, "k", check.whole_sizes, 1.5, 10)
    refuses(ValueError, "k", check.whole_sizes, [1, 11], 10)


def test_distinct_sizes_have_a_largest_sum():
    check.total_size("k", np.array([60, 40]), 100)
    refuses(ValueError, "k", check.total_size, np.array([60, 41]), 100)
    refuses(ValueError, "k", check.total_size, np.array([2**62, 2**62, 2**62]))


def test_magnitudes_lie_between_their_ends():
    assert check.magnitudes("v", [1, 2], 1.0, 2.0).tolist() == [1.0, 2.0]
    assert check.magnitudes("v", [0, 2], 0.0, 2.0).tolist() == [0.0, 2.0]
    for values in ([0.5], [2.5], [0.0], [math.nan]):
        refuses(ValueError, "v", check.magnitudes, values, 1.0, 2.0)


@given(st.lists(st.floats(0, exclude_min=True, allow_infinity=False), min_size=1))
def test_positive_floats_pass_unchanged(values):
    array = check.floats("variances", values)
    assert array.dtype == np.float64
    assert array.tolist() == values


def test_whole_numbers_pass_as_floats():
    assert check.floats("variances", np.array([1, 2])).dtype == np.float64


@pytest.mark.parametrize("value", [0.0, -1e-300, math.nan, math.inf, -math.inf])
def test_floats_must_be_finite_and_above_zero(value):
    with pytest.raises(ValueError, match=r"^v must be finite and above 0 throughout"):
        check.floats("v", [1.0, value])


@pytest.mark.parametrize("value", [-1e-300, math.nan, math.inf, -math.inf])
def test_floats_that_may_be_zero_must_be_finite_and_not_below(value):
    with pytest.raises(ValueError, match=r"^v must be finite and at least 0 through"):
        check.floats("v", [0.0, value], allow_zero=True)


def test_floats_may_be_zero_where_that_is_allowed():
    assert check.floats("v", [0.0, 1.0], allow_zero=True).tolist() == [0.0, 1.0]


def test_arrays_of_the_same_length_go_together():
    check.same_length(k=np.ones(3), successes=np.zeros(3), counts=np.ones(3))


def test_arrays_of_different_lengths_are_refused_with_their_lengths():
    with pytest.raises(ValueError, match="k: 3, successes: 2"):
        check.same_length(k=np.ones(3), successes=np.zeros(2))


# What the fuzz found


@pytest.mark.parametrize("value", [True, False, np.True_, np.False_], ids=repr)
def test_flags_come_back_as_bools(value):
    assert check.flag("x", value) is bool(value)


@pytest.mark.parametrize(
    "value", ["False", None, 1, 0.0, [], np.array([1, 2])], ids=repr
)
def test_what_is_as_good_as_a_flag_is_none(value):
    refuses(TypeError, "x", check.flag, value)


@pytest.mark.parametrize("value", [1234.5e100, math.nan, -math.inf, 10**400], ids=repr)
def test_private_numbers_are_not_shown(value):
    with pytest.raises(ValueError, match=r"^x must be") as refused:
        check.secret("x", value)
    assert "1234" not in str(refused.value)
    refuses(TypeError, "x", check.secret, "1234")
    refuses(
        ValueError, "x", check.secrets, [0.0, value] if value != 10**400 else [1e101]
    )


def test_shares_and_chances_cannot_vanish_when_multiplied():
    assert check.share("x", 1e-9) == 1e-9
    assert check.chance("x", 1e-299) == 1e-299
    for value in (0.0, 5e-324, 1.0):
        refuses(ValueError, "x", check.share, value)
        refuses(ValueError, "x", check.chance, value)
