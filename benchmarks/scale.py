"""Cost at scale: time against one pass of `np.bincount`, and peak memory.

The machine is shared, so times are given as ratios: both sides run alternately,
and the best of several rounds counts.
"""

from __future__ import annotations

import time
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import numpy as np

from hetlit import Users, estimate_private_k, estimate_public_size, sizes
from hetlit.check import Integers

RESULTS = Path(__file__).with_name("scale.md")
ROUNDS = 7
METHODS = ("auto", "ratio", "ptr", "paper")


def distinct_rows(rows: int) -> tuple[Integers, Integers]:
    """Return (k, successes): every pair with k up to about sqrt(2 rows), shuffled."""
    largest = int(np.ceil(np.sqrt(2.0 * rows)))
    k = np.repeat(np.arange(1, largest + 1), np.arange(2, largest + 2))[:rows]
    start = np.concatenate(([0], np.flatnonzero(np.diff(k)) + 1))
    first = np.repeat(start, np.diff(np.append(start, rows)))
    successes = np.arange(rows) - first
    order = np.random.default_rng(0).permutation(rows)
    return k[order], successes[order]


def distinct_sizes(rows: int) -> tuple[Integers, Integers]:
    """Return (k, successes) with k = 1..rows, shuffled."""
    rng = np.random.default_rng(0)
    k = rng.permutation(np.arange(1, rows + 1))
    return k, rng.binomial(k, 0.3)


def zipf_sizes(rows: int) -> tuple[Integers, Integers]:
    """Return (k, successes) with zipf sizes up to 2000, one user a row."""
    rng = np.random.default_rng(0)
    k = sizes.zipf(rows, 1.5, 2000, rng)
    return k, rng.binomial(k, 0.3)


def best_of(*actions: Callable[[], object]) -> list[float]:
    """Return the shortest time of each action over alternating rounds."""
    best = [float("inf")] * len(actions)
    for _ in range(ROUNDS):
        for place, action in enumerate(actions):
            start = time.perf_counter()
            action()
            best[place] = min(best[place], time.perf_counter() - start)
    return best


def peak_memory(action: Callable[[], object]) -> int:
    """Return the peak of memory allocated while the action runs, in bytes."""
    tracemalloc.start()
    action()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return peak


def main() -> None:
    """Measure everything and write scale.md."""
    rng = np.random.default_rng(1)

    def release(users: Users) -> Callable[[], object]:
        return lambda: estimate_public_size(users, 1.0, rng=rng)

    def private_release(users: Users, method: str) -> Callable[[], object]:
        k_max = int(users.k.max())
        delta = 1e-6 if method in ("ptr", "paper") else 0.0
        return lambda: estimate_private_k(
            users, 1.0, k_max=k_max, method=method, delta=delta, rng=rng
        )

    assert __doc__ is not None
    lines = ["# Cost at scale", "", *__doc__.strip().splitlines(), ""]
    lines += [
        "Time over that of `np.bincount(k, weights=successes)`.  Private sizes are",
        "bounded by the largest one, which is 10^7 for distinct k.",
        "",
        "| 10^7 rows of | public sizes | peak memory over input | "
        + " | ".join(f"private sizes, {method}" for method in METHODS)
        + " |",
        "|---|---|---|" + "---|" * len(METHODS),
    ]
    for name, table in (
        ("distinct (k, successes)", distinct_rows),
        ("distinct k", distinct_sizes),
        ("zipf sizes", zipf_sizes),
    ):
        k, successes = table(10**7)
        users = Users(k, successes)
        count = lambda k=k, s=successes: np.bincount(k, weights=s)  # noqa: E731
        private_releases = (private_release(users, method) for method in METHODS)
        once, public, *private = best_of(count, release(users), *private_releases)
        memory = peak_memory(release(users)) / (k.nbytes + successes.nbytes)
        ratios = " | ".join(f"{seconds / once:.1f}" for seconds in private)
        lines.append(f"| {name} | {public / once:.1f} | {memory:.3f} | {ratios} |")

    lines += [
        "",
        "| distinct rows | time per row over that at 10^7 rows |",
        "|---|---|",
    ]
    releases = {
        rows: release(Users(*distinct_rows(rows)))
        for rows in (10**power for power in range(4, 8))
    }
    times = dict(zip(releases, best_of(*releases.values()), strict=True))
    for rows, seconds in times.items():
        ratio = (seconds / rows) / (times[10**7] / 10**7)
        lines.append(f"| {rows} | {ratio:.2f} |")

    k, successes = distinct_rows(10**5)
    billion = Users(k, successes, np.full(10**5, 10**4))
    seconds = best_of(release(billion))[0]
    memory = peak_memory(release(billion)) / 1e6
    lines += ["", f"10^9 users in 10^5 rows: {'under' if seconds < 1 else 'OVER'} one "]
    lines[-1] += f"second, peak memory {memory:.1f} MB beyond the table itself."
    RESULTS.write_text("\n".join([*lines, ""]))
    print("\n".join(lines))
