"""Write constraints.txt: everything that gets installed, one version each.

``python -m tools.pins`` (`make pins`) keeps the versions that still fit what
pyproject.toml asks for; ``--upgrade`` takes the newest. uv does the resolving, for
Linux and the oldest Python that we claim. The file is replaced only when all went well.
"""

import argparse
import re
import subprocess
import tempfile
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
CONSTRAINTS = ROOT / "constraints.txt"
PIN = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*==[0-9][0-9a-z.]*")


def oldest_python(project: Path = ROOT / "pyproject.toml") -> str:
    """Return the lowest Python version that the project claims."""
    asked = tomllib.loads(project.read_text(encoding="utf-8"))["project"]
    return str(asked["requires-python"]).removeprefix(">=")


def resolve(pins: str, *, upgrade: bool = False) -> str:
    """Return what uv makes of pyproject.toml, starting from the pins we have."""
    from uv import find_uv_bin

    with tempfile.TemporaryDirectory() as folder:
        output = Path(folder, "constraints.txt")
        output.write_text(pins, encoding="utf-8")
        command = [
            *(find_uv_bin(), "pip", "compile", "--quiet", "--no-header"),
            *("--no-annotate", "--extra", "dev", "--python-platform", "linux"),
            # Any later patch release will do: some packages refuse the first ones.
            *("--python-version", f"{oldest_python()}.99"),
            *("--output-file", str(output), *(["--upgrade"] * upgrade)),
            "pyproject.toml",
        ]
        subprocess.run(command, cwd=ROOT, check=True)
        return output.read_text(encoding="utf-8")


def tidy(resolved: str) -> str:
    """Return sorted pins, one per line; refuse whatever is no pin."""
    lines = {line.split("#")[0].strip() for line in resolved.splitlines()} - {""}
    odd = sorted(line for line in lines if not PIN.fullmatch(line))
    if odd:
        raise ValueError(f"not of the form name==version: {', '.join(odd)}")
    return "".join(f"{line}\n" for line in sorted(lines, key=name_and_version))


def name_and_version(pin: str) -> list[str]:
    """Return what pins are sorted by: `a` comes before `a-b`."""
    return pin.split("==")


def main() -> None:
    """Handle the command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--upgrade", action="store_true", help="the newest versions")
    before = CONSTRAINTS.read_text(encoding="utf-8")
    after = tidy(resolve(before, upgrade=parser.parse_args().upgrade))
    CONSTRAINTS.write_text(after, encoding="utf-8")
    old, new = set(before.splitlines()), set(after.splitlines())
    changes = [(pin, "-") for pin in old - new] + [(pin, "+") for pin in new - old]
    for pin, sign in sorted(changes):
        print(sign, pin)
    print(f"constraints.txt: {len(new)} pins, {len(changes)} lines changed")


if __name__ == "__main__":
    main()
