"""Noise: the laws are the ones promised, and randomness is the caller's.

Statistical tests have fixed seeds.  For a random seed, a true one fails with a chance
of at most 1e-9 (a Kolmogorov-Smirnov test) or about 1e-9 (a mean within 6.5 standard
errors).  There are fewer than 10: together below 1e-8.
"""

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from hetlit.privacy import noise, selection
from tests.transcripts import Transcript


def generator(seed=0):
    return np.random.default_rng(seed)


# Laplace


@pytest.mark.parametrize("scale", [1e-3, 0.5, 1.0, 20])
def test_laplace_noise_has_its_law(scale):
    rng = generator(1)
    sample = [noise.laplace(scale, rng=rng) for _ in range(20_000)]
    assert stats.kstest(sample, stats.laplace(scale=scale).cdf).pvalue > 1e-9


@pytest.mark.slow
@pytest.mark.parametrize("scale", [0.5, 3.0])
def test_laplace_noise_has_variance_twice_the_scale_squared(scale):
    rng = generator(2)
    squares = [noise.laplace(scale, rng=rng) ** 2 for _ in range(100_000)]
    error = np.std(squares) / math.sqrt(len(squares))
    assert abs(np.mean(squares) - 2 * scale**2) <= 6.5 * error


def test_laplace_noise_of_scale_zero_is_zero():
    assert noise.laplace(0, rng=generator()) == 0.0


def test_laplace_noise_is_a_plain_float():
    assert type(noise.laplace(np.float64(1), rng=generator())) is float


@pytest.mark.parametrize(
    ("scale", "error"),
    [
        (-1e-9, ValueError),
        (math.inf, ValueError),
        (math.nan, ValueError),
        ("1", TypeError),
        (None, TypeError),
    ],
)
def test_impossible_scales_are_refused(scale, error):
    with pytest.raises(error, match=r"^scale must be"):
        noise.laplace(scale, rng=generator())


# From a uniform number to an outcome

LAWS = st.lists(st.integers(0, 9), min_size=1, max_size=8).filter(any)


@given(LAWS, st.integers(0, 2**32 - 1))
def test_inverting_is_what_numpy_does_for_ordinary_laws(masses, seed):
    law = np.array(masses) / sum(masses)
    one, other = generator(seed), generator(seed)
    drawn = [noise.invert(law, one.random()) for _ in range(20)]
    assert drawn == other.choice(len(law), p=law, size=20).tolist()


@given(st.permutations([1, 2, 4, 8, 16, 0, 1, 32]))
def test_each_outcome_gets_exactly_its_share_of_the_uniform_numbers(masses):
    # Sums of these probabilities are exact, from either end.
    law = np.array(masses) / 64
    drawn = [noise.invert(law, position / 64) for position in range(64)]
    assert drawn == np.repeat(np.arange(8), masses).tolist()


@pytest.mark.parametrize("law", [[0.0, 1.0, 0.0], [0.0, 0.4, 0.0, 0.6, 0.0]])
@pytest.mark.parametrize("uniform", [0.0, 0.4, 0.5 - 2**-54, 0.5, 1 - 2**-53])
def test_impossible_outcomes_are_never_drawn(law, uniform):
    assert law[noise.invert(np.array(law), uniform)] > 0


def test_rounding_that_loses_probability_leaves_the_last_outcomes():
    law = np.full(10, 0.1 - 1e-12)
    assert noise.invert(law, 1 - 2**-53) == 9
    assert noise.invert(law, 0.0) == 0
    assert type(noise.invert(law, 0.7)) is int


@pytest.mark.slow
def test_each_of_many_unlikely_outcomes_can_be_drawn():
    half, unlikely = 5 * 10**6, 4e-17
    law = np.full(2 * half, unlikely)
    law[:half] = (1 - half * unlikely) / half
    # Together they have 2e-10, so this number is in the middle of them.
    middle = 2 * half - half // 2
    assert abs(noise.invert(law, 1 - 1e-10) - middle) <= 2
    assert noise.invert(law, 1 - 3e-10) < half
    # A running sum stands still there: no number falls on any of them.
    running = np.cumsum(law)
    assert running[half - 1] == running[-1]
    # And they can be drawn as well when they come first.
    assert abs(noise.invert(law[::-1], 1e-10) - half // 2) <= 2


def test_a_simulated_choice_inverts_the_law_at_the_next_uniform_number():
    utilities, rng = np.array([1.0, 0.0, 3.0, -2.0]), generator(8)
    masses = [math.exp(1.5 * utility / (2 * 2.0)) for utility in utilities]
    ends = np.cumsum(masses) / math.fsum(masses)
    source = noise.source_of(generator(8))
    for _ in range(200):
        expected = np.searchsorted(ends, rng.random(), side="right")
        assert source.choose(utilities, 1.5, 2.0) == expected


def test_the_law_of_a_choice_is_the_exponential_mechanisms():
    law = noise.choice_law(np.array([0.0, -4 * math.log(3)]), 1.0, 2.0)
    assert law == pytest.approx([0.75, 0.25], rel=1e-12)


# Several numbers at once


def test_several_numbers_get_noise_of_their_own():
    source, counts = noise.source_of(generator(9)), np.full(20_000, 7.0)
    noisy = source.laplaces(counts, 0.5)
    assert stats.kstest(noisy - 7, stats.laplace(scale=0.5).cdf).pvalue > 1e-9
    assert len(set(noisy.tolist())) == len(counts)
    assert set(counts.tolist()) == {7.0}


def test_noise_is_added_to_the_statistic():
    added = noise.source_of(generator(9)).laplace(3.0, 0.5)
    assert added == 3.0 + noise.laplace(0.5, rng=generator(9))


# Where randomness comes from

RANDOM = {
    "laplace": lambda rng: noise.laplace(1.0, rng=rng),
    "exponential_mechanism": lambda rng: selection.exponential_mechanism(
        np.zeros(1000), 1.0, rng=rng
    ),
    "median_on_grid": lambda rng: selection.median_on_grid(
        [1.0, 2.0], np.arange(1000.0), 1e-3, rng=rng
    ),
}


@pytest.fixture(params=RANDOM)
def draw(request):
    return RANDOM[request.param]


def test_draws_are_reproducible_from_the_generator(draw):
    one, other = generator(7), generator(7)
    assert [draw(one) for _ in range(5)] == [draw(other) for _ in range(5)]


def test_draws_depend_on_the_generator(draw):
    assert len({draw(generator(seed)) for seed in range(5)}) > 1


def test_draws_leave_the_global_random_state_alone(draw):
    before: Any = np.random.get_state()  # noqa: NPY002
    draw(generator())
    after: Any = np.random.get_state()  # noqa: NPY002
    assert before[1].tolist() == after[1].tolist()
    assert before[2:] == after[2:]


def test_without_a_generator_the_error_says_what_to_do(draw):
    with pytest.raises(
        noise.SecureNoiseUnavailable,
        match=r"no rng was given.*secure noise.*"
        r"pass rng=numpy\.random\.default_rng\(\).*do not release",
    ):
        draw(None)


@pytest.mark.parametrize(
    "rng",
    [0, 42, np.random.SeedSequence(1), np.random.RandomState(1), np.random],
    ids=["zero", "int", "SeedSequence", "RandomState", "module"],
)
def test_a_seed_is_not_a_generator(draw, rng):
    with pytest.raises(TypeError, match=r"^rng must be a numpy\.random\.Generator"):
        draw(rng)


def test_missing_secure_noise_is_a_runtime_error():
    assert issubclass(noise.SecureNoiseUnavailable, RuntimeError)


def test_a_generator_is_passed_through_unchanged():
    rng = generator()
    assert noise.source_of(rng).chance is rng


def test_a_source_is_passed_through_unchanged():
    source = Transcript([])
    assert noise.source_of(source) is source


def test_a_source_takes_the_place_of_the_generator():
    assert noise.laplace(2.0, rng=Transcript([0.25])) == 0.25
    assert selection.exponential_mechanism([0.0] * 9, 1.0, rng=Transcript([4])) == 4
    grid = [1.0, 2.0, 3.0]
    assert selection.median_on_grid([1.5], grid, 1.0, rng=Transcript([2])) == 3.0
