"""How long `import hetlit` takes, against an older revision of the repository.

`python -m benchmarks imports`: new processes, alternately with this library and with
that of version 0.1.0, so that both meet the same machine.  The best of each counts.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
RESULTS = Path(__file__).with_name("imports.md")
BEFORE = "e238182"  # version 0.1.0
ROUNDS = 20


def seconds(folder: Path) -> float:
    """Return how long a new process takes that imports the library of a folder."""
    start = time.perf_counter()
    subprocess.run([sys.executable, "-c", "import hetlit"], cwd=folder, check=True)
    return time.perf_counter() - start


def main() -> None:
    """Measure both and write imports.md."""
    with tempfile.TemporaryDirectory() as folder:
        old = Path(folder)
        archive = subprocess.run(
            ["git", "archive", BEFORE, "hetlit"],
            cwd=ROOT,
            check=True,
            capture_output=True,
        )
        subprocess.run(["tar", "-x"], cwd=old, input=archive.stdout, check=True)
        times = [(seconds(ROOT), seconds(old)) for _ in range(ROUNDS)]
    now, before = (min(column) for column in zip(*times, strict=True))
    assert __doc__ is not None
    lines = [
        "# Time of the import",
        "",
        *__doc__.strip().splitlines(),
        "",
        f"A process that imports it takes **{now / before:.2f}** times as long as one",
        f"that imports version 0.1.0, over {ROUNDS} rounds.",
        "",
    ]
    RESULTS.write_text("\n".join(lines), encoding="utf-8")
    print("\n".join(lines))
