"""Replay: record every answer on one table, force it on a neighbour, compare.

A private run may look at the data only through its noisy answers.  So if all answers
are forced, a run on a neighbouring table must take the same steps with the same noise,
release the same value, know as much of its error, warn of the same and write the same
ledger; and what the data moved, divided by the noise, is the exact privacy loss of each
step.

Chance (cohorts, pairs, samples) is coupled: everybody whose data are the same draws the
same, so that only the replaced user's own draws differ.  Every promise of the library
holds for each outcome of chance, hence for the coupled ones.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from hetlit import Users
from hetlit.privacy.noise import choice_law


@dataclass
class Asked:
    """One question: what the noise was, what the data said, what was answered."""

    kind: str
    noise: tuple[float, ...]
    data: Any
    answer: Any


class Chance:
    """Stands in for a generator that draws cohorts, pairs and samples.

    Each call has a stream of its own.  Draws for users are matched by what they depend
    on; permutations by the values they arrange.
    """

    def __init__(self, seed: int, earlier: Chance | None = None) -> None:
        self.seed, self.earlier = seed, earlier
        self.calls = 0
        self.draws: dict[int, Any] = {}

    def _stream(self, fresh: bool = False) -> np.random.Generator:
        self.calls += 1
        return np.random.default_rng([self.seed, self.calls, int(fresh)])

    def _matched(self, keys: list[Any], draw: Any) -> np.ndarray:
        stream = self._stream(fresh=self.earlier is not None)
        known: dict[Any, list[int]] = defaultdict(list)
        if self.earlier is not None:
            for key, value in self.earlier.draws[self.calls]:
                known[key].append(value)
        values = [
            known[key].pop(0) if known[key] else int(draw(stream, *key)) for key in keys
        ]
        self.draws[self.calls] = list(zip(keys, values, strict=True))
        return np.array(values, dtype=np.int64)

    def binomial(self, n: Any, p: Any) -> np.ndarray:
        n, p = np.broadcast_arrays(n, p)
        keys = list(zip(n.tolist(), p.tolist(), strict=True))
        return self._matched(keys, lambda stream, *key: stream.binomial(*key))

    def hypergeometric(self, good: Any, bad: Any, size: int) -> np.ndarray:
        keys = [(g, b, size) for g, b in zip(good.tolist(), bad.tolist(), strict=True)]
        return self._matched(keys, lambda stream, *key: stream.hypergeometric(*key))

    def random(self, *args: Any, **options: Any) -> Any:
        return self._stream().random(*args, **options)

    def choice(self, *args: Any, **options: Any) -> Any:
        return self._stream().choice(*args, **options)

    def permutation(self, values: Any) -> np.ndarray:
        stream = self._stream()
        if self.earlier is None:
            arranged = stream.permutation(values)
        else:
            arranged = rearranged(self.earlier.draws[self.calls], values, stream)
        self.draws[self.calls] = arranged
        return np.asarray(arranged)


def rearranged(before: Any, values: Any, stream: np.random.Generator) -> np.ndarray:
    """Return the arrangement with one value replaced, gone or new.

    The first half is paired with the second, an odd one is left over.  Who loses her
    partner is left over, or paired with whoever was; a new one takes a random place.
    """
    before, values = list(before), list(values)
    gone = list((Counter(before) - Counter(values)).elements())
    new = list((Counter(values) - Counter(before)).elements())
    assert len(gone) <= 1, "one user changed more than one value"
    assert len(new) <= 1, "one user changed more than one value"
    pairs, odd = divmod(len(before), 2)
    if gone and new:
        before[before.index(gone[0])] = new[0]
    elif gone:
        place = before.index(gone[0])
        if odd:
            before[place] = before[-1]
            before.pop()
        else:
            partner = before[(place + pairs) % (2 * pairs)]
            for index in sorted((place, (place + pairs) % (2 * pairs)), reverse=True):
                before.pop(index)
            before.append(partner)
    elif new and odd:
        before = [*before[:pairs], before[-1], *before[pairs:-1], new[0]]
    elif new:
        place = int(stream.integers(len(before) + 1))
        before.append(new[0])
        before[place], before[-1] = before[-1], before[place]
    return np.array(before)


class Recorder:
    """A source of noise that writes down what it is asked.

    `wild` multiplies the noise, and makes choices at random, to reach unlikely paths.
    """

    def __init__(self, seed: int, wild: float = 1.0) -> None:
        self.chance: Any = Chance(seed)
        self.rng = np.random.default_rng([seed, 7])
        self.wild = wild
        self.asked: list[Asked] = []

    def laplace(self, statistic: float, scale: float) -> float:
        answer = statistic + self.wild * float(self.rng.laplace(0.0, scale))
        self.asked.append(Asked("laplace", (scale,), statistic, answer))
        return answer

    def laplaces(self, statistics: Any, scale: float) -> Any:
        noise = self.wild * self.rng.laplace(0.0, scale, size=len(statistics))
        answers = statistics + noise
        self.asked.append(Asked("laplaces", (scale,), statistics.copy(), answers))
        return answers.copy()

    def choose(self, utilities: Any, epsilon: float, sensitivity: float) -> int:
        law = choice_law(utilities, epsilon, sensitivity)
        if self.wild != 1.0 and self.rng.random() < 0.5:
            law = np.full(len(law), 1.0 / len(law))
        answer = int(self.rng.choice(len(law), p=law))
        noise = (epsilon, sensitivity)
        self.asked.append(Asked("choose", noise, utilities.copy(), answer))
        return answer


class Told(Recorder):
    """A recorder that gives the answers it was told to give, in order.

    Answers to choices are indices, taken modulo the number of outcomes.
    """

    def __init__(self, answers: Iterable[float], seed: int = 0) -> None:
        super().__init__(seed)
        self.left = list(answers)

    def laplace(self, statistic: float, scale: float) -> float:
        answer = float(self.left.pop(0))
        self.asked.append(Asked("laplace", (scale,), statistic, answer))
        return answer

    def laplaces(self, statistics: Any, scale: float) -> Any:
        answers = np.array([float(self.left.pop(0)) for _ in statistics])
        self.asked.append(Asked("laplaces", (scale,), statistics.copy(), answers))
        return answers.copy()

    def choose(self, utilities: Any, epsilon: float, sensitivity: float) -> int:
        answer = int(self.left.pop(0)) % len(utilities)
        noise = (epsilon, sensitivity)
        self.asked.append(Asked("choose", noise, utilities.copy(), answer))
        return answer


class Replayer:
    """A source that gives a recorder's answers and adds up the privacy loss."""

    def __init__(self, recorder: Recorder) -> None:
        self.chance = Chance(recorder.chance.seed, recorder.chance)
        self.waiting = list(recorder.asked)
        self.losses: list[float] = []

    def _next(self, kind: str, noise: tuple[float, ...]) -> Asked:
        assert self.waiting, "a step that the other table did not have"
        asked = self.waiting.pop(0)
        assert (asked.kind, asked.noise) == (kind, noise), "another step, other noise"
        return asked

    def laplace(self, statistic: float, scale: float) -> float:
        asked = self._next("laplace", (scale,))
        self.losses.append(abs(statistic - asked.data) / scale)
        return asked.answer

    def laplaces(self, statistics: Any, scale: float) -> Any:
        asked = self._next("laplaces", (scale,))
        self.losses.append(float(np.abs(statistics - asked.data).sum()) / scale)
        return asked.answer.copy()

    def choose(self, utilities: Any, epsilon: float, sensitivity: float) -> int:
        asked = self._next("choose", (epsilon, sensitivity))
        assert len(utilities) == len(asked.data)
        exponents = [
            epsilon * values / (2.0 * sensitivity) for values in (utilities, asked.data)
        ]
        first, second = (x - x.max() for x in exponents)
        log_sums = [math.log(float(np.exp(x).sum())) for x in (first, second)]
        gaps = (first - log_sums[0]) - (second - log_sums[1])
        self.losses.append(float(np.abs(gaps).max()))
        return asked.answer


def replay(
    estimate: Any, table: Users, neighbour: Users, seed: int, wild: float
) -> tuple[Any, list[float]]:
    """Return the estimate on a table and the loss of each step against a neighbour.

    Fails if a forced run on the neighbour shows any difference.
    """
    recorder = Recorder(seed, wild)
    first = estimate(table, recorder)
    return first, losses_against(neighbour, estimate, first, recorder)


def losses_against(
    neighbour: Users, estimate: Any, first: Any, recorder: Recorder
) -> list[float]:
    """Return the loss of each step of a recorded run against a neighbour."""
    replayer = Replayer(recorder)
    second = estimate(neighbour, replayer)
    assert not replayer.waiting, "steps that the neighbour did not have"
    assert str(first.ledger) == str(second.ledger)
    assert first.value == second.value
    assert first.uncertainty == second.uncertainty
    assert first.warnings == second.warnings
    return replayer.losses


def worst_losses(
    estimate: Any, table: Users, neighbours: Iterable[Users], answers: Iterable[float]
) -> tuple[Any, dict[str, float]]:
    """Return the estimate that these answers make, and the worst loss of each step.

    Losses are relative to what the ledger says that the step may spend.
    """
    recorder = Told(answers)
    first = estimate(table, recorder)
    assert not recorder.left
    worst = {step.name: 0.0 for step in first.ledger.steps}
    for neighbour in neighbours:
        losses = losses_against(neighbour, estimate, first, recorder)
        for step, loss in zip(first.ledger.steps, losses, strict=True):
            worst[step.name] = max(worst[step.name], loss / step.epsilon)
    return first, worst


def replaced(users: Users, row: int, k: int, successes: int) -> Users:
    """Return the table with one user of a row replaced."""
    if users.ordered:
        sizes, ones = users.k.copy(), users.successes.copy()
        sizes[row], ones[row] = k, successes
        return Users(sizes, ones)
    counts = users.counts.copy()
    if (counts == 1).all():  # in her place, so that chance can be coupled by rows
        sizes, ones = users.k.copy(), users.successes.copy()
        sizes[row], ones[row] = k, successes
        return Users(sizes, ones, counts)
    counts[row] -= 1
    sizes, ones = np.append(users.k, k), np.append(users.successes, successes)
    numbers = np.append(counts, 1)
    return Users(sizes[numbers > 0], ones[numbers > 0], numbers[numbers > 0])


def resampled(users: Users, rng: np.random.Generator) -> list[Users]:
    """Return the worst neighbours for public sizes: one user's samples replaced."""
    rows = {int(np.argmax(users.k)), int(np.argmin(users.k))}
    rows |= {int(row) for row in rng.integers(len(users.k), size=2)}
    tables = []
    for row in rows:
        k = int(users.k[row])
        for ones in {0, k, int(rng.integers(k + 1))}:
            tables.append(replaced(users, row, k, ones))
    return tables


def resized(users: Users, k_max: int, rng: np.random.Generator) -> list[Users]:
    """Return the worst neighbours for private sizes: one user replaced altogether."""
    smallest, largest = int(np.argmin(users.k)), int(np.argmax(users.k))
    middle = int(np.argsort(users.k)[len(users.k) // 2])
    sizes = (1, 2, 3, 4, int(np.median(users.k)), k_max)
    moves = [(smallest, k_max), (largest, 1), (middle, k_max), (middle, 1)]
    moves += [
        (int(row), int(rng.choice(sizes))) for row in rng.integers(len(users.k), size=3)
    ]
    tables = resampled(users, rng)
    for row, k in moves:
        tables += [replaced(users, row, k, ones) for ones in {0, k}]
    return tables
