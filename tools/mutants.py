"""Break the library in many places, one at a time, and see whether tests notice.

``python -m tools.mutants`` (`make mutants`) reads `tools/mutants.toml`, makes each of
its changes in a temporary copy of the library, never in the working tree, and runs the
tests that should notice.  A mutant is killed when a test fails, or takes far too long.
What happened goes to `benchmarks/mutants.md`.

Exit status 1: a mutant in privacy survived, less than 95% of all died, a change fits
its module no more, or the tests fail although nothing was changed.
"""

from __future__ import annotations

import argparse
import ast
import os
import queue
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from importlib.util import cache_from_source
from pathlib import Path
from typing import TypeVar

ROOT = Path(__file__).resolve().parent.parent
MUTANTS = Path(__file__).with_suffix(".toml")
# What the tests of the library need, besides what is installed.
COPIED = ("hetlit", "tests", "pyproject.toml", "book/claims.toml")
LIMIT = 600.0  # seconds for one run of tests, which take a few on an idle machine
LEAST = 0.95  # of all mutants must die
TIMEOUT = "out of time"
# pytest's last word on what failed, without the parameters of the test.
FAILED = re.compile(r"^(?:FAILED|ERROR) tests/([^\s\[]+)", re.MULTILINE)


Task = TypeVar("Task")


@dataclass(frozen=True)
class Mutant:
    """One change of one module.

    name : what is wrong then, in words
    path : the module, from the root of the project
    tests : runs of pytest, as arguments, in the order in which they are tried
    privacy : whether the change breaks a promise of privacy
    old, new : the change; `old` must stand in the module exactly once
    within : the function or class to look in, if `old` stands elsewhere too
    survives : why no test can notice; never for privacy
    """

    name: str
    path: str
    tests: tuple[str, ...]
    privacy: bool
    old: str
    new: str
    within: str = ""
    survives: str = ""

    def source(self, before: str) -> str:
        """Return the changed source, or say what is wrong with the change.

        >>> Mutant("", "a.py", (), True, "1", "2").source("x = 1")
        'x = 2'
        """
        head, part, tail = _cut(before, self.within)
        if part.count(self.old) != 1:
            raise ValueError(f"{self}: found {part.count(self.old)} times, not once")
        after = head + part.replace(self.old, self.new) + tail
        try:
            compile(after, self.path, "exec")
        except SyntaxError as error:
            raise ValueError(f"{self}: does not compile: {error}") from None
        return after

    def __str__(self) -> str:
        return f"{self.path}: {self.name}"


def _cut(source: str, name: str) -> tuple[str, str, str]:
    """Return what stands before, in and after the one function or class of a name."""
    if not name:
        return "", source, ""
    kinds = (ast.FunctionDef, ast.ClassDef)
    nodes = [x for x in ast.walk(ast.parse(source)) if isinstance(x, kinds)]
    found = [node for node in nodes if node.name == name]
    if len(found) != 1:
        raise ValueError(f"{name!r} is defined {len(found)} times, not once")
    lines = source.splitlines(keepends=True)
    start, end = found[0].lineno - 1, found[0].end_lineno
    return "".join(lines[:start]), "".join(lines[start:end]), "".join(lines[end:])


def mutants(path: Path = MUTANTS) -> list[Mutant]:
    """Return all mutants, module by module, those in privacy first."""
    found = []
    for group in tomllib.loads(path.read_text(encoding="utf-8"))["module"]:
        for kind in ("privacy", "other"):
            found += [
                Mutant(
                    path=group["path"],
                    tests=tuple(group["tests"]),
                    privacy=kind == "privacy",
                    **change,
                )
                for change in group.get(kind, ())
            ]
    return found


@contextmanager
def copies(number: int) -> Iterator[queue.Queue[Path]]:
    """Yield folders with copies of the library and its tests, one for each worker."""
    with ExitStack() as stack:
        folders: queue.Queue[Path] = queue.Queue()
        for _ in range(number):
            made = stack.enter_context(tempfile.TemporaryDirectory(prefix="mutants-"))
            folder = Path(made)
            for name in COPIED:
                source, target = ROOT / name, folder / name
                target.parent.mkdir(parents=True, exist_ok=True)
                if source.is_dir():
                    ignored = shutil.ignore_patterns("__pycache__")
                    shutil.copytree(source, target, ignore=ignored)
                else:
                    shutil.copy(source, target)
            folders.put(folder)
        yield folders


def run_tests(folder: Path, arguments: str) -> str:
    """Return the first test that fails in this copy, or nothing if all pass."""
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider"]
    # Plugins cost a second, and none is needed; threads would take turns anyway.
    quick = {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "OMP_NUM_THREADS": "1"}
    try:
        done = subprocess.run(
            [*command, *shlex.split(arguments)],
            cwd=folder,
            env=os.environ | quick,
            capture_output=True,
            text=True,
            timeout=LIMIT,
        )
    except subprocess.TimeoutExpired:
        return TIMEOUT
    if done.returncode == 0:
        return ""
    failed = FAILED.search(done.stdout)
    return failed[1] if failed else "pytest itself"


def killer(mutant: Mutant, folder: Path) -> str:
    """Return the test that notices a mutant, or nothing if it survives."""
    path = folder / mutant.path
    before = path.read_text(encoding="utf-8")
    compiled = Path(cache_from_source(str(path)))
    try:
        path.write_text(mutant.source(before), encoding="utf-8")
        # Python would take the old one for this, if written in the same second.
        compiled.unlink(missing_ok=True)
        return next(filter(None, (run_tests(folder, x) for x in mutant.tests)), "")
    finally:
        path.write_text(before, encoding="utf-8")
        compiled.unlink(missing_ok=True)


def in_turns(
    tasks: Sequence[Task],
    work: Callable[[Task, Path], str],
    folders: queue.Queue[Path],
    what: str,
) -> list[str]:
    """Return work(task, folder) for every task, each worker in a folder of its own."""

    def one(task: Task) -> str:
        folder = folders.get()
        try:
            return work(task, folder)
        finally:
            folders.put(folder)

    with ThreadPoolExecutor(folders.qsize()) as pool:
        futures = [pool.submit(one, task) for task in tasks]
        for done, _ in enumerate(as_completed(futures), 1):
            show(done, len(tasks), what)
        return [future.result() for future in futures]


def show(done: int, total: int, what: str) -> None:
    """Say on the error stream how far it is: a bar, or a line now and then."""
    if sys.stderr.isatty():
        bar = "#" * (30 * done // total)
        end = "\n" if done == total else ""
        print(f"\r{what} [{bar:30}] {done}/{total}", end=end, file=sys.stderr)
    elif done % 10 == 0 or done == total:
        print(f"{what}: {done} of {total}", file=sys.stderr, flush=True)


def report(results: Sequence[tuple[Mutant, str]]) -> str:
    """Return what happened, in Markdown."""
    private = [(mutant, by) for mutant, by in results if mutant.privacy]
    alive = [mutant for mutant, by in results if not by]
    lines = [
        "# Mutants",
        "",
        "The library was broken in many places, one at a time, and the tests of that",
        "place were run: `make mutants`. A mutant is killed when a test fails.  Those",
        "in privacy break a promise: half the noise, a budget spent twice, an exact",
        "number in place of a noisy one, data in a message.  None of them may survive.",
        "",
        "| mutants | number | killed |",
        "|---|---|---|",
        f"| all | {len(results)} | {_killed(results)} |",
        f"| in privacy | {len(private)} | {_killed(private)} |",
        "",
        "## Survivors",
        "",
        *(f"- `{m.path}`: {m.name}. {m.survives or '**Not noticed.**'}" for m in alive),
        *([] if alive else ["None."]),
        "",
        "## By module",
        "",
        "| module | mutants | in privacy | killed |",
        "|---|---|---|---|",
    ]
    modules = dict.fromkeys(mutant.path for mutant, _ in results)
    for path in modules:
        part = [(mutant, by) for mutant, by in results if mutant.path == path]
        number = sum(mutant.privacy for mutant, _ in part)
        lines.append(f"| `{path}` | {len(part)} | {number} | {_killed(part)} |")
    lines += ["", "## Every mutant, and the test that noticed", ""]
    for path in modules:
        lines += [f"### `{path}`", ""]
        for mutant, by in results:
            if mutant.path == path:
                privacy = " (privacy)" if mutant.privacy else ""
                test = f"`{by}`" if by else "survived"
                lines.append(f"- {mutant.name}{privacy}: {test}")
        lines.append("")
    return "\n".join(lines).rstrip() + "\n"


def _killed(results: Sequence[tuple[Mutant, str]]) -> int:
    return sum(bool(by) for _, by in results)


def main() -> None:
    """Handle the command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--only", default="", help="those with this in path or name")
    parser.add_argument("--jobs", type=int, default=2, help="runs at a time")
    parser.add_argument(
        "--record",
        type=Path,
        default=ROOT / "benchmarks" / "mutants.md",
        help="where to write what happened to all of them",
    )
    options = parser.parse_args()
    chosen = [mutant for mutant in mutants() if options.only in str(mutant)]
    for mutant in chosen:
        try:
            mutant.source((ROOT / mutant.path).read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            sys.exit(f"tools/mutants.toml is out of date: {error}")
    with copies(options.jobs) as folders:
        runs = list(dict.fromkeys(run for mutant in chosen for run in mutant.tests))
        unbroken = in_turns(
            runs, lambda run, folder: run_tests(folder, run), folders, "unchanged"
        )
        for run, failed in zip(runs, unbroken, strict=True):
            if failed:
                sys.exit(f"tests fail although nothing was changed: {run}: {failed}")
        killers = in_turns(chosen, killer, folders, "mutants")
    results = list(zip(chosen, killers, strict=True))
    alive = [mutant for mutant, by in results if not by]
    for mutant in alive:
        print(f"survived{' (privacy)' * mutant.privacy}: {mutant}")
    print(f"{len(results) - len(alive)} of {len(results)} mutants were killed")
    if not options.only:  # a part would overwrite what is known of the whole
        options.record.write_text(report(results), encoding="utf-8")
    few = _killed(results) < LEAST * len(results)
    sys.exit(few or any(mutant.privacy for mutant in alive))


if __name__ == "__main__":
    main()
