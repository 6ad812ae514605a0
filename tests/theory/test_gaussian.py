"""The constants of the standard Gaussian are those of scipy's half-normal law."""

import pytest
from scipy import stats

from hetlit.theory.gaussian import MEDIAN, THIRD_MOMENT


def test_the_median_is_that_of_the_half_normal_law():
    assert pytest.approx(stats.halfnorm.median(), rel=1e-15) == MEDIAN


def test_the_third_moment_is_that_of_the_half_normal_law():
    assert pytest.approx(stats.halfnorm.moment(3), rel=1e-12) == THIRD_MOMENT
