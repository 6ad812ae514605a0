"""How many ones are drawn: the exact law, also for huge sizes and many users."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from hetlit.users import laws
from hetlit.users.laws import hypergeometric_law, ones_of_row, ones_of_users


@pytest.mark.parametrize(
    ("k", "ones", "size"),
    [(1, 1, 1), (2, 1, 1), (7, 3, 4), (10, 0, 4), (10, 10, 4), (50, 49, 30)],
)
def test_the_law_is_the_hypergeometric_one(k: int, ones: int, size: int) -> None:
    least, law = hypergeometric_law(k, ones, size)
    assert math.fsum(law) == pytest.approx(1, abs=1e-14)
    values = np.arange(least, least + len(law))
    assert law == pytest.approx(stats.hypergeom.pmf(values, k, ones, size), abs=1e-14)


@given(st.integers(1, 400), st.data())
def test_the_law_agrees_with_counting_subsets(k: int, data: st.DataObject) -> None:
    ones, size = data.draw(st.integers(0, k)), data.draw(st.integers(1, k))
    least, law = hypergeometric_law(k, ones, size)
    exact = [
        math.comb(ones, x) * math.comb(k - ones, size - x) / math.comb(k, size)
        for x in range(least, least + len(law))
    ]
    assert law == pytest.approx(exact, rel=1e-9, abs=1e-15)
    assert math.fsum(exact) == pytest.approx(1, abs=1e-12)


@pytest.mark.parametrize("k", [10**9, 10**12, 2**62])
def test_the_law_has_its_moments_for_huge_sizes(k: int) -> None:
    ones, size = k // 3, 10**6
    least, law = hypergeometric_law(k, ones, size)
    values = least + np.arange(len(law))
    mean = float(law @ values)
    assert mean == pytest.approx(size * (ones / k), rel=1e-9)
    share = ones / k
    variance = size * share * (1 - share) * ((k - size) / (k - 1))
    assert float(law @ (values - mean) ** 2) == pytest.approx(variance, rel=1e-6)
    assert len(law) < 10**5


def test_many_users_of_one_huge_row_are_drawn_together(monkeypatch):
    rng = np.random.default_rng(0)
    k = np.full(20_000, 10**10)
    together = []

    def counted(k, ones, users, size, rng):
        together.append(users)
        return ones_of_row(k, ones, users, size, rng)

    monkeypatch.setattr(laws, "ones_of_row", counted)
    ones = ones_of_users(k, k // 2, 10**6, rng)
    assert together == [20_000]
    assert abs(ones.mean() / 5e5 - 1.0) < 1e-4  # 14 standard errors
    assert abs(ones.std() / 500.0 - 1.0) < 0.05  # 10 standard errors
    assert abs(np.corrcoef(ones[1:], ones[:-1])[0, 1]) < 0.05  # 7: in no order
