"""Call every public name with hostile input, and say what happened.

A call draws its arguments from the kinds that `tools.fuzz_names` lists: all valid, or
exactly one invalid.  What must come of it:

- valid: an answer that is finite and keeps its promise, without any warning;
- invalid: a TypeError or ValueError that names the argument and quotes nobody's data;
- both: within 5 seconds and 2 GB, and the arguments are as they were before.  What
  takes longer is tried once more, since the machine may be shared.

    python -m tools.fuzz --calls 100000 --seed 0 --record benchmarks/fuzz.md
    python -m tools.fuzz --seed 0 --call 1234       # this one again
"""

from __future__ import annotations

import argparse
import platform
import re
import resource
import signal
import sys
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np
import scipy
from numpy.random import Generator

import hetlit
from tools.fuzz_kinds import ABSENT
from tools.fuzz_names import ENTRIES, Arguments, Broken, Entry, finite, public_names

SECONDS = 5.0
BYTES = 2 * 10**9
INVALID = 0.5  # of all calls
# Numbers that errors say of limits, whatever the data.
LIMITS = {str(number) for number in (10**6, 10**7, 2**40, 2**63 - 1)} | {
    f"{sign}{digits}"
    for digits in (12, 30, 100, 250, 300)
    for sign in ("1e+", "1e-", "1e")
}
FIELD = re.compile(r"\d+(?:\.\d+)?(?:e[+-]?\d+)?")


class TooSlow(BaseException):
    """Raised inside a call that takes too long; no `except Exception` stops it."""


@dataclass(frozen=True)
class Call:
    """One call: of which entry, with which arguments, and which of them is wrong."""

    title: str
    arguments: Arguments
    wrong: str | None

    @property
    def name(self) -> str:
        """The public name, without the variant after the colon."""
        return self.title.partition(":")[0]

    def __str__(self) -> str:
        shown = (f"{name}={_shown(value)}" for name, value in self.arguments.items())
        return f"{self.name}({', '.join(shown)})"


@dataclass
class Tally:
    """What happened, of one name or of all."""

    valid: int = 0
    refused: int = 0
    together: int = 0
    slowest: float = 0.0

    @property
    def calls(self) -> int:
        """The number of calls."""
        return self.valid + self.refused + self.together

    def add(self, call: Call, answered: bool, seconds: float) -> None:
        """Count a call: valid, with a wrong argument, or with some that do not fit."""
        if call.wrong is not None:
            self.refused += 1
        elif answered:
            self.valid += 1
        else:
            self.together += 1
        self.slowest = max(self.slowest, seconds)


@dataclass
class Report:
    """What happened in a run."""

    seed: int
    names: dict[str, Tally] = field(default_factory=dict)
    failures: list[str] = field(default_factory=list)
    slowest: tuple[float, str] = (0.0, "none")
    tried_again: int = 0
    peak: int = 0

    @property
    def calls(self) -> int:
        """The number of calls."""
        return sum(tally.calls for tally in self.names.values())


# Drawing calls


def schedule(only: str | None = None) -> list[str]:
    """Return titles of entries in the order in which they are called, over and over."""
    rounds = max(entry.times for entry in ENTRIES.values())
    titles = [
        title
        for turn in range(rounds)
        for title, entry in ENTRIES.items()
        if turn < entry.times and (only is None or only in (title, _name(title)))
    ]
    if not titles:
        raise SystemExit(f"--only: {only!r} is no public name")
    return titles


def draw(titles: list[str], seed: int, number: int) -> Call:
    """Return a call, a function of the seed and its number."""
    rng = np.random.default_rng([seed, number])
    title = titles[number % len(titles)]
    entry = ENTRIES[title]
    can_be_wrong = [name for name, kind in entry.kinds.items() if kind.invalid]
    wrong = None
    if can_be_wrong and rng.random() < INVALID:
        wrong = can_be_wrong[int(rng.integers(len(can_be_wrong)))]
    return Call(title, drawn_arguments(entry, wrong, rng), wrong)


def drawn_arguments(entry: Entry, wrong: str | None, rng: Generator) -> Arguments:
    """Return arguments, one of them wrong; what goes with it goes with a valid one."""
    drawn: Arguments = {}
    replaced: Arguments = {}
    for name, kind in entry.kinds.items():
        if name == wrong and kind.invalid is not None:
            replaced[name] = kind.invalid(rng, drawn)
        value = kind.valid(rng, drawn)
        if value is not ABSENT:
            drawn[name] = value
    return {**drawn, **replaced, **entry.fixed}


# Judging calls


def judge(
    call: Call, thing: Any, entry: Entry, seconds: float = SECONDS
) -> tuple[bool, str | None]:
    """Make a call; return whether it was answered, and what is wrong with that, if any.

    What is valid need not be answered: some arguments are refused together.
    """
    answered = False
    before = {name: snapshot(value) for name, value in call.arguments.items()}
    start = time.perf_counter()
    try:
        with warnings.catch_warnings(), limited(seconds):
            warnings.simplefilter("error")
            answer = thing(**call.arguments)
        answered = True
        if call.wrong is not None:
            return answered, f"{call.wrong} is wrong and was accepted"
        finite(answer)
        entry.promise(answer, call.arguments)
    except Broken as problem:
        return answered, str(problem)
    except TooSlow:
        return answered, f"it took more than {seconds:g} s"
    except Exception as error:
        complaint = wrong_error(call, entry, error)
        if complaint is not None:
            return answered, complaint
    if time.perf_counter() - start > seconds:
        return answered, f"it took more than {seconds:g} s"
    for name, value in call.arguments.items():
        if before[name] != snapshot(value):
            return answered, f"{name} was changed"
    return answered, None


def wrong_error(call: Call, entry: Entry, error: Exception) -> str | None:
    """Return what is wrong with an error, or None if it is the right one."""
    text = f"{type(error).__name__}: {error}"
    if call.wrong is None:
        together = entry.refuses is not None and re.search(entry.refuses, str(error))
        if isinstance(error, ValueError) and together:
            return quoted(call, str(error))
        where = traceback.extract_tb(error.__traceback__)[-1]
        return f"valid, but {text} ({Path(where.filename).name}:{where.lineno})"
    if entry.refuses is not None and re.search(entry.refuses, str(error)):
        return quoted(call, str(error))
    asks_for_secure_noise = call.wrong == "rng" and call.arguments["rng"] is None
    if not isinstance(error, (TypeError, ValueError)) and not asks_for_secure_noise:
        return f"{call.wrong} is wrong, but {text}"
    names = (call.wrong, *entry.kinds[call.wrong].also)
    if not any(re.search(rf"\b{name}\b", str(error)) for name in names):
        return f"{call.wrong} is wrong, but not named: {text}"
    return quoted(call, str(error))


def quoted(call: Call, text: str) -> str | None:
    """Return that an error quotes data, if it does.

    Data are the numbers of at least four characters in arrays and tables, unless they
    are also a number that was given as such, a length or a limit.
    """
    said = {field for field in FIELD.findall(text) if len(field) >= 4} - LIMITS
    if not said:
        return None
    private: set[str] = set()
    for value in call.arguments.values():
        if isinstance(value, (np.ndarray, list, tuple, dict, hetlit.Users)):
            private |= data_of(value)
            said -= public_of(value)
        else:
            said -= set(FIELD.findall(_shown(value)))
    return f"the error quotes data: {text}" if said & private else None


def data_of(value: Any) -> set[str]:
    """Return the numbers in a table or an array, as an error would show them."""
    if isinstance(value, hetlit.Users):
        return data_of([value.k, value.successes])
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, np.ndarray):
        value = value.ravel().tolist()
    if isinstance(value, (list, tuple)):
        return set().union(*map(data_of, value))
    return set(FIELD.findall(_shown(value)))


def public_of(value: Any) -> set[str]:
    """Return what everybody knows of a table or an array: how long it is."""
    if isinstance(value, hetlit.Users):
        return {str(value.n), str(len(value.k))}
    shape = np.shape(value) if isinstance(value, np.ndarray) else (len(value),)
    return {str(length) for length in shape}


def snapshot(value: Any) -> Any:
    """Return what can be compared later, to see whether a value was changed."""
    if isinstance(value, hetlit.Users):
        return [snapshot(part) for part in (value.k, value.successes, value.counts)]
    if isinstance(value, np.ma.MaskedArray):
        return snapshot(value.data), snapshot(np.ma.getmaskarray(value))
    if isinstance(value, np.ndarray):
        data = repr(value.tolist()) if value.dtype == object else value.tobytes()
        return value.dtype.str, value.shape, data
    if isinstance(value, dict):
        return [(name, snapshot(part)) for name, part in value.items()]
    if isinstance(value, (list, tuple)):
        return [snapshot(part) for part in value]
    return _shown(value)


def _shown(value: Any) -> str:
    """Return a value as a word; one with an address in it is known by its type."""
    try:
        text = repr(value)
    except ValueError:  # a number of thousands of digits
        text = f"<{type(value).__name__}>"
    return re.sub(r" at 0x[0-9a-f]+", "", text)[:300]


def _name(title: str) -> str:
    return title.partition(":")[0]


@contextmanager
def limited(seconds: float) -> Iterator[None]:
    """Stop what takes longer than this."""

    def stop(number: int, frame: FrameType | None) -> None:
        raise TooSlow

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        signal.signal(signal.SIGALRM, before)


# Runs


def run(
    calls: int,
    seed: int,
    *,
    seconds: float = float("inf"),
    only: str | None = None,
    start: int = 0,
) -> Report:
    """Make calls number `start`, `start` + 1, ... and return what happened."""
    titles, things, report = schedule(only), public_names(), Report(seed)
    begin, before = time.monotonic(), memory()
    for number in range(start, start + calls):
        call = draw(titles, seed, number)
        clock = time.perf_counter()
        answered, problem = judge(call, things[call.name], ENTRIES[call.title])
        took = time.perf_counter() - clock
        if took > SECONDS:  # another process may have been in the way
            report.tried_again += 1
            call, clock = draw(titles, seed, number), time.perf_counter()
            answered, problem = judge(call, things[call.name], ENTRIES[call.title])
            took = time.perf_counter() - clock
        report.names.setdefault(call.name, Tally()).add(call, answered, took)
        report.slowest = max(report.slowest, (took, call.title))
        if problem is not None:
            again = f"--seed {seed} --call {number}"
            again += f" --only {only!r}" if only else ""
            report.failures.append(f"{problem}\n    {call}\n    {again}")
        passed = time.monotonic() - begin
        progress(number - start + 1, calls, passed / seconds, len(report.failures))
        if passed > seconds:
            break
    report.peak = memory() - before
    return report


def progress(done: int, calls: int, time_used: float, failures: int) -> None:
    """Draw a bar on a terminal, now and then."""
    if not sys.stderr.isatty() or (done % 100 and done < calls):
        return
    share = max(done / calls, min(time_used, 1.0))
    bar = "#" * int(40 * share)
    end = "\n" if share >= 1.0 else ""
    print(f"\r[{bar:40}] {done} calls, {failures} failures", end=end, file=sys.stderr)


def memory() -> int:
    """Return the most memory that this process has had, in bytes."""
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit


def limit_memory() -> None:
    """Refuse this process more memory than it has now and a call may take."""
    status = Path("/proc/self/statm")
    if status.exists():
        used = int(status.read_text().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (used + BYTES, resource.RLIM_INFINITY))


def written(report: Report, command: str) -> str:
    """Return the report as a page."""
    tallies = report.names.values()
    valid = sum(tally.valid for tally in tallies)
    refused = sum(tally.refused for tally in tallies)
    together = sum(tally.together for tally in tallies)
    slowest, title = report.slowest
    versions = f"Python {platform.python_version()}, numpy {np.__version__}"
    lines = [
        "# Hostile input",
        "",
        "Every public name, called with valid arguments of odd types and at the ends",
        "of their ranges, or with one argument that is wrong. `tools/fuzz.py` says",
        "what must come of it.",
        "",
        f"- command: `{command}`",
        f"- versions: {versions}, scipy {scipy.__version__}",
        f"- seed: {report.seed}",
        f"- calls: {report.calls}, of {len(report.names)} names",
        f"- with valid arguments: {valid}; with a wrong one: {refused}; with valid"
        " ones",
        f"  that do not go together, as few users and a tiny epsilon: {together}",
        f"- slowest call: {slowest:.2f} s, `{title}` (at most {SECONDS:g} s; what took",
        f"  longer on a shared machine and was tried once more: {report.tried_again})",
        f"- peak memory: {report.peak / 1e6:.0f} MB beyond the start (at most 2000 MB)",
        f"- failures: {len(report.failures)}",
        "",
        "| name | calls | valid | wrong, refused | refused together | slowest, ms |",
        "|---|---|---|---|---|---|",
    ]
    for name, tally in sorted(report.names.items()):
        numbers = tally.calls, tally.valid, tally.refused, tally.together
        shown = " | ".join(map(str, numbers))
        lines.append(f"| `{name}` | {shown} | {tally.slowest * 1e3:.1f} |")
    return "\n".join(lines) + "\n"


def main(arguments: list[str] | None = None) -> int:
    """Run from the command line; the exit code is 1 if anything failed."""
    parser = argparse.ArgumentParser(prog="python -m tools.fuzz", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("--calls", type=int, default=100_000)
    parser.add_argument("--seconds", type=float, default=900.0, help="stop after these")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", metavar="NAME", help="this public name alone")
    parser.add_argument("--call", type=int, metavar="N", help="call number N alone")
    parser.add_argument("--record", type=Path, metavar="FILE", help="write a page")
    options = parser.parse_args(arguments)
    limit_memory()
    calls, start = (options.calls, 0) if options.call is None else (1, options.call)
    if options.call is not None:
        print(draw(schedule(options.only), options.seed, start))
    report = run(
        calls, options.seed, seconds=options.seconds, only=options.only, start=start
    )
    for failure in report.failures:
        print(failure)
    kinds = Counter(failure.splitlines()[0] for failure in report.failures)
    print(f"{report.calls} calls, {len(report.failures)} failures, {len(kinds)} kinds")
    if options.record is not None:
        words = sys.argv[1:] if arguments is None else arguments
        command = " ".join(["python -m tools.fuzz", *words])
        options.record.write_text(written(report, command))
    return 1 if report.failures else 0


if __name__ == "__main__":
    sys.exit(main())
