"""Writes benchmarks/lite.md: what a run of these tests saw."""

import importlib.metadata

from tools.lite import ROOT

RESULTS = ROOT / "benchmarks" / "lite.md"
TITLE = """\
# Chapters in the browser

What `make test-lite` saw: the built site in Chromium, every notebook run from its first
cell to its last by Pyodide. Pyodide came from a folder, not from its CDN, so that no
download is in the seconds; they count from opening the page, on a machine with two
cores.
"""


def sentence(name):
    """A test's name as a sentence.

    >>> sentence("test_a_note_says_so")
    'a note says so'
    """
    return name.removeprefix("test_").replace("_", " ")


def table(head, rows):
    """A Markdown table."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(map(str, line)) + " |" for line in lines)


def notebook_row(name, row):
    """How far a notebook got: a row of the table."""
    first, last = (
        f"{row[key]:.0f}" if key in row else "-" for key in ("first", "last")
    )
    if "differ" not in row:
        return name, first, last, "**did not run to its end**"
    return (
        name,
        first,
        last,
        f"no: {', '.join(row['differ'])}" if row["differ"] else "yes",
    )


def write_record(seen):
    """Write what was seen, failures too."""
    software = [f"{name} {version}" for name, version in seen["versions"].items()]
    software += [f"JupyterLite {importlib.metadata.version('jupyterlite-core')}"]
    software += [f"Chromium {seen['chromium']}"]
    checks = [
        (sentence(name), "yes" if passed else "**no**")
        for name, passed in seen["checks"].items()
    ]
    rows = [notebook_row(name, row) for name, row in sorted(seen["notebooks"].items())]
    parts = [
        TITLE,
        ", ".join(software) + ".\n",
        table(["checked", "passed"], checks) + "\n",
        "Seconds until the first cell had installed the library, and until the last "
        "one had run:\n",
        table(["notebook", "first cell", "last cell", "prints as in the book"], rows),
        "",
    ]
    RESULTS.write_text("\n".join(parts), encoding="utf-8")
