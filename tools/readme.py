"""Run the example of README.md again and store what it prints below it."""

import re
import subprocess
import sys
from pathlib import Path

README = Path(__file__).resolve().parent.parent / "README.md"
EXAMPLE = re.compile(r"```python\n(.*?)```\s*```text\n(.*?)```", re.DOTALL)


def run(code: str) -> str:
    r"""Return what the code prints in a fresh Python; warnings are errors.

    >>> run("print(1 + 1)")
    '2\n'
    """
    command = [sys.executable, "-W", "error", "-c", code]
    done = subprocess.run(
        command, cwd=README.parent, check=True, stdout=subprocess.PIPE, text=True
    )
    return done.stdout


def main() -> None:
    """Replace the stored output."""
    text = README.read_text(encoding="utf-8")
    example = EXAMPLE.search(text)
    if example is None:
        raise SystemExit("README.md has no python block followed by a text block")
    start, end = example.span(2)
    updated = text[:start] + run(example[1]) + text[end:]
    README.write_text(updated, encoding="utf-8")
    print(f"README.md: {'unchanged' if updated == text else 'updated'}")


if __name__ == "__main__":
    main()
