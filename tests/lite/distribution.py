"""The Pyodide distribution, put together from package registries for tests.

Readers get it from a CDN; tests work where that is out of reach. The core is the npm
package `pyodide`. Compiled wheels are in no registry by themselves, but `open-webui` on
PyPI carries them, and the core's `pyodide-lock.json` has their hashes. Pure Python
wheels come from PyPI in the versions that the lock file names. Pyodide packs those
again, so that the hashes differ: the copy of the lock file used here has PyPI's.
"""

import hashlib
import json
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from pathlib import Path

from tools.lite import PYODIDE_VERSION, ROOT

CACHE = ROOT / "_build" / "pyodide" / PYODIDE_VERSION
CARRIER = "open-webui==0.12.4"

# What JupyterLite's kernel loads when it starts, and what the chapters use.
LOADED = ["ipython", "jedi", "matplotlib", "micropip", "numpy", "scipy"]


def needed(packages, names):
    """The packages of a lock file that these names stand for, with what they need."""
    by_name = {re.sub(r"[-_.]+", "-", name).lower(): name for name in packages}
    found, waiting = set(), list(names)
    while waiting:
        name = by_name[re.sub(r"[-_.]+", "-", waiting.pop()).lower()]
        if name not in found:
            found.add(name)
            waiting += packages[name]["depends"]
    return {name: packages[name] for name in sorted(found)}


def sha256(path):
    return hashlib.sha256(path.read_bytes()).hexdigest()


def pip_download(folder, *requirements):
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps"]
    command += ["--disable-pip-version-check", "--ignore-requires-python"]
    command += ["--only-binary", ":all:", "--dest", folder]
    subprocess.run([*command, *requirements], check=True)


def download_core(folder):
    """Unpack the npm package: the interpreter, its library and the lock file."""
    if shutil.which("npm") is None:
        raise SystemExit("make test-lite needs npm, which brings Pyodide")
    with tempfile.TemporaryDirectory() as name:
        package = f"pyodide@{PYODIDE_VERSION}"
        command = ["npm", "pack", "--silent", package]
        subprocess.run(command, cwd=name, check=True, stdout=subprocess.DEVNULL)
        (packed,) = Path(name).glob("*.tgz")
        with tarfile.open(packed) as archive:
            archive.extractall(name, filter="data")
        for path in (Path(name) / "package").iterdir():
            shutil.move(path, folder)


def download_compiled(folder, packages):
    """Take the wheels that the carrier has and check each against the lock file."""
    with tempfile.TemporaryDirectory() as name:
        pip_download(name, CARRIER)
        (carrier,) = Path(name).glob("*.whl")
        with zipfile.ZipFile(carrier) as archive:
            inside = {Path(path).name: path for path in archive.namelist()}
            for package in packages.values():
                file = package["file_name"]
                if file in inside:
                    (folder / file).write_bytes(archive.read(inside[file]))
                    assert sha256(folder / file) == package["sha256"], file


def download_pure(folder, packages):
    """Take the other wheels from PyPI and return the hashes that they have there."""
    missing = {
        name: package
        for name, package in packages.items()
        if not (folder / package["file_name"]).exists()
    }
    pip_download(folder, *(f"{n}=={p['version']}" for n, p in missing.items()))
    return {name: sha256(folder / p["file_name"]) for name, p in missing.items()}


def assemble(folder):
    """Download everything into an empty folder."""
    download_core(folder)
    path = folder / "pyodide-lock.json"
    lock = json.loads(path.read_text(encoding="utf-8"))
    packages = needed(lock["packages"], LOADED)
    download_compiled(folder, packages)
    for name, digest in download_pure(folder, packages).items():
        lock["packages"][name]["sha256"] = digest
    path.write_text(json.dumps(lock), encoding="utf-8")


def distribution():
    """Return the folder with the distribution; the first time, download 115 MB."""
    if not CACHE.is_dir():
        CACHE.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=CACHE.parent) as name:
            assemble(Path(name))
            shutil.copytree(name, CACHE)
    return CACHE


def versions():
    """The versions of what the chapters run on."""
    lock = json.loads((distribution() / "pyodide-lock.json").read_text("utf-8"))
    names = ("numpy", "scipy", "matplotlib")
    found = {name: lock["packages"][name]["version"] for name in names}
    return {"Pyodide": PYODIDE_VERSION, "Python": lock["info"]["python"]} | found
