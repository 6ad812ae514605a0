"""How long `make check` and `make test` take, step by step.

Not part of `python -m benchmarks`, since it runs both: `python -m benchmarks checks`,
on a machine that does nothing else.  A site that is there would make it quicker, so
`make clean` comes first; the environment stays.
"""

from __future__ import annotations

import re
import subprocess
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
RESULTS = Path(__file__).with_name("checks.md")
SUMMARY = re.compile(r"^=+ (\d+) passed.* in ([\d.]+)s", re.MULTILINE)
# What one run of `.ci/run` took at version 0.1.0, on two quiet cores, without the time
# for installing the environment; lint, types and the build were not timed apart.
BEFORE = {
    "unit tests and examples in docstrings (7277)": 127,
    "notebooks (476 cells)": 31,
    "pages in a browser (217)": 221,
}


def timed(target: str) -> tuple[float, list[tuple[int, float]]]:
    """Return the seconds that a target takes, and (tests, seconds) of its test runs."""
    start = time.perf_counter()
    done = subprocess.run(
        ["make", "--no-print-directory", target],
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    seconds = time.perf_counter() - start
    if done.returncode:
        raise SystemExit(done.stdout[-4000:] + done.stderr[-1000:])
    runs = [(int(tests), float(s)) for tests, s in SUMMARY.findall(done.stdout)]
    return seconds, runs


def main() -> None:
    """Time both targets and write the page."""
    subprocess.run(["make", "clean"], cwd=ROOT, check=True, capture_output=True)
    check, (fast,) = timed("check")
    whole, (units, cells, pages) = timed("test")
    rest = whole - units[1] - cells[1] - pages[1]
    lines = [
        "# Time of the checks",
        "",
        "Wall-clock seconds on two cores, by `python -m benchmarks checks` after",
        "`make clean`, with the environment installed.",
        "",
        f"`make check`: **{check:.0f} s**, {fast[1]:.0f} s of it for {fast[0]} tests;",
        "the rest is lint, types and layers. There was no such target before.",
        "",
        f"`make test`: **{whole:.0f} s**.",
        "",
        "| step | now | tests now | at 0.1.0 |",
        "|---|---|---|---|",
    ]
    steps = (units, cells, pages)
    for (name, before), (tests, seconds) in zip(BEFORE.items(), steps, strict=True):
        lines.append(f"| {name} | {seconds:.0f} | {tests} | {before} |")
    lines += [
        f"| lint, types, layers, the book with JupyterLite | {rest:.0f} | | |",
        "",
    ]
    RESULTS.write_text("\n".join(lines), encoding="utf-8")
    print("\n".join(lines))
