"""A parameter of an explorer has values to choose from, and a default."""

import pytest

from hetlit.teaching.explorers import Parameter


def test_a_parameter_has_different_values_and_its_default_is_one():
    with pytest.raises(ValueError, match="is not one of"):
        Parameter("a", "a", (1, 2), 3)
    with pytest.raises(ValueError, match="two different"):
        Parameter("a", "a", (1, 1), 1)


def test_a_parameter_of_words_is_a_choice():
    assert Parameter("a", "a", ("few", "many"), "few").is_choice
    assert Parameter("a", "a", (1, 20_000), 1).texts == ("1", "20,000")
