"""Build JupyterLite into the site: every notebook, live, in the reader's browser.

``python -m tools.lite`` writes ``_build/html/lite``: Jupyter Notebook as static files,
a copy of each notebook of the book, and the wheels that these need. Python itself is
Pyodide, which a reader's browser gets from its own host when a notebook is opened. No
step needs a network: wheels are made from the tree and from what is installed.
"""

from __future__ import annotations

import base64
import copy
import hashlib
import importlib.metadata
import json
import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path
from typing import Any

import nbformat

import hetlit
from tools.lite_references import rewrite_references
from tools.notebooks import BOOK, notebooks
from tools.sphinx.book_site import REDIRECT

ROOT = BOOK.parent
SITE = ROOT / "_build" / "html"
NOTE = Path(__file__).with_name("offline_note.js")

# Python 3.14 with numpy, scipy and matplotlib. A new version of Pyodide means new
# versions of all of them: run `make test-lite` after changing this.
PYODIDE_VERSION = "314.0.3"
PYODIDE_URL = f"https://cdn.jsdelivr.net/pyodide/v{PYODIDE_VERSION}/full/pyodide.mjs"

# Pyodide has the rest, and JupyterLite brings a widgetsnbextension of its own.
INSTALLED_WHEELS = ["comm", "ipywidgets", "jupyterlab_widgets"]
LAB_EXTENSIONS = [
    "@jupyterlite/pyodide-kernel-extension",
    "@jupyter-widgets/jupyterlab-manager",
    "jupyterlab-myst",  # theorems and notes look like themselves
]
KERNEL = {"display_name": "Python (Pyodide)", "language": "python", "name": "python"}

FIRST_CELL_ID = "browser-only-install"
FIRST_CELL = """\
# In the browser version only: run this cell first. It installs the library
# and what the chapter draws with. The first time takes about half a minute.
import piplite

await piplite.install("hetlit[plots]")"""

# Left over from building the app, fonts for browsers without woff2, and pages that
# lead to applications which are not here.
UNUSED = ["rspack.config*.js", "build/fa-*.eot", "build/fa-*.svg", "build/fa-*.ttf"]
UNUSED += ["build/fa-*.woff", "doc", "package.json"]

# The app looks for settings in the page of the folder above.
NO_SETTINGS = '<script id="jupyter-config-data" type="application/json">{}</script>'

NO_SCRIPT = """\
<noscript>
  <p>This page runs Python in your browser and needs JavaScript. Without it you can
  read <a href="../../index.html">the book</a> and download each notebook from the top
  of its chapter.</p>
</noscript>
"""


def browser_notebook(notebook: Any) -> Any:
    """Return a copy of the notebook that starts by installing what it needs.

    All other cells stay as they are, with the text they printed. Doing it twice
    changes nothing.
    """
    result = copy.deepcopy(notebook)
    result.metadata["kernelspec"] = nbformat.from_dict(KERNEL)
    if result.cells[0].get("id") != FIRST_CELL_ID:
        result.cells.insert(0, nbformat.v4.new_code_cell(FIRST_CELL, id=FIRST_CELL_ID))
    return result


def write_notebooks(folder: Path, site: Path = SITE) -> None:
    """Write the browser's copy of every notebook, with references to the built site."""
    for path in notebooks():
        target = folder / path.relative_to(BOOK)
        target.parent.mkdir(parents=True, exist_ok=True)
        notebook = browser_notebook(nbformat.read(path, as_version=4))
        address = path.relative_to(ROOT).with_suffix(".html")
        page = site / address
        html = page.read_text(encoding="utf-8") if page.exists() else ""
        rewrite_references(notebook, html, address.as_posix(), path.parent)
        # One string per text: the app would show a list of lines with commas.
        text = nbformat.writes(notebook, split_lines=False)
        target.write_text(text + "\n", encoding="utf-8")


def record_line(name: str, content: bytes) -> str:
    """Return a file's line in the RECORD of a wheel.

    >>> record_line("a.py", b"")
    'a.py,sha256=47DEQpj8HBSa-_TImW-5JCeuQeRkm5NMpJWZG3hSuFU,0'
    """
    digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest())
    return f"{name},sha256={digest.decode().rstrip('=')},{len(content)}"


def wheel_from_installed(name: str, folder: Path) -> Path:
    """Pack an installed pure Python package into a wheel again.

    Everything outside the package and its metadata is left out: what a package puts
    elsewhere, such as scripts for a server, has no place in a browser. The same
    versions give the same bytes.
    """
    distribution = importlib.metadata.distribution(name)
    if "Root-Is-Purelib: true" not in (distribution.read_text("WHEEL") or ""):
        raise ValueError(f"{name} has compiled parts: it cannot run in a browser")
    by_installer = {"INSTALLER", "RECORD", "REQUESTED", "direct_url.json"}
    files = {
        file.as_posix(): Path(str(distribution.locate_file(file))).read_bytes()
        for file in sorted(distribution.files or [])
        if file.parts[0] != ".."
        and file.suffix != ".pyc"
        and not (file.parts[0].endswith(".dist-info") and file.name in by_installer)
    }
    metadata = next(path.split("/")[0] for path in files if path.endswith("/METADATA"))
    record = f"{metadata}/RECORD"
    lines = [record_line(path, content) for path, content in files.items()]
    files[record] = "\n".join([*lines, f"{record},,", ""]).encode()
    wheel = folder / f"{metadata.removesuffix('.dist-info')}-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w", zipfile.ZIP_DEFLATED) as archive:
        for path, content in files.items():
            undated = zipfile.ZipInfo(path)  # from 1980, as the format has it
            archive.writestr(undated, content, zipfile.ZIP_DEFLATED)
    return wheel


def wheel_of_library(folder: Path) -> None:
    """Build hetlit's wheel from a copy of the tree, where no old build can creep in."""
    with tempfile.TemporaryDirectory() as name:
        source = Path(name)
        for file in ("pyproject.toml", "README.md", "LICENSE"):
            shutil.copy(ROOT / file, source)
        unwanted = shutil.ignore_patterns("__pycache__")
        shutil.copytree(ROOT / "hetlit", source / "hetlit", ignore=unwanted)
        command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps"]
        command += ["--no-build-isolation", "--no-index", "--disable-pip-version-check"]
        undated = os.environ | {"SOURCE_DATE_EPOCH": "315532800"}  # 1980, as above
        command += ["--wheel-dir", str(folder), str(source)]
        subprocess.run(command, env=undated, check=True)


def settings() -> dict[str, Any]:
    """Return what the app is told: which Python, and to look for wheels here only."""
    kernel = {"pyodideUrl": PYODIDE_URL, "disablePyPIFallback": True}
    light_or_dark = {"adaptive-theme": True}  # as the reader's system is
    data = {
        "appName": "Heterogeneous users, one private mean",
        # A reader's changes are kept in her browser. Those made to notebooks of
        # another version of the library would not run with this one.
        "contentsStorageName": f"hetlit {hetlit.__version__}",
        "litePluginSettings": {"@jupyterlite/pyodide-kernel-extension:kernel": kernel},
        "settingsOverrides": {"@jupyterlab/apputils-extension:themes": light_or_dark},
    }
    return {"jupyter-lite-schema-version": 0, "jupyter-config-data": data}


def build_settings() -> dict[str, Any]:
    """Return how JupyterLite is built: one app, and only the extensions it needs."""
    installed = Path(sys.prefix) / "share" / "jupyter" / "labextensions"
    build = {
        "apps": ["notebooks"],
        "contents": ["files"],
        "federated_extensions": [str(installed / name) for name in LAB_EXTENSIONS],
        "ignore_sys_prefix": ["federated_extensions"],
        "no_libarchive": True,
        "no_sourcemaps": True,
        "no_unused_shared_packages": True,
    }
    return {"LiteBuildConfig": build}


def write_json(path: Path, content: Any) -> None:
    """Write a file of settings."""
    path.write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")


def with_note(page: str) -> str:
    """Return the app's page with the note for readers whom Pyodide does not reach.

    >>> page = '<html><head></head><body><noscript>x</noscript></body></html>'
    >>> 'data-pyodide="https://cdn.jsdelivr.net/' in with_note(page)
    True
    """
    script = (
        f'<script defer src="../{NOTE.name}" data-pyodide="{PYODIDE_URL}"></script>'
    )
    before, _, rest = page.partition("<noscript>")
    _, _, after = rest.partition("</noscript>")
    page = before + NO_SCRIPT + after.lstrip("\n")
    page = page.replace("<html>", '<html lang="en">', 1)
    return page.replace("</head>", f"{script}\n</head>", 1)


def finish(lite: Path) -> None:
    """Drop what no page asks for, add the note, lead a lost reader to the book."""
    for pattern in UNUSED:
        for path in lite.glob(pattern):
            shutil.rmtree(path) if path.is_dir() else path.unlink()
    shutil.copy(NOTE, lite)
    app = lite / "notebooks" / "index.html"
    app.write_text(with_note(app.read_text(encoding="utf-8")), encoding="utf-8")
    to_the_book = REDIRECT.format(title="To the book", page="../index.html")
    page = to_the_book.replace("</head>", f"{NO_SETTINGS}\n</head>")
    (lite / "index.html").write_text(page, encoding="utf-8")


def build(target: Path) -> None:
    """Build JupyterLite into a folder, in place of what was there."""
    with tempfile.TemporaryDirectory() as name:
        source = Path(name)
        wheels = source / "pypi"
        wheels.mkdir()
        write_notebooks(source / "files")
        wheel_of_library(wheels)
        for package in INSTALLED_WHEELS:
            wheel_from_installed(package, wheels)
        write_json(source / "jupyter-lite.json", settings())
        write_json(source / "jupyter_lite_config.json", build_settings())
        command = [sys.executable, "-m", "jupyterlite_core", "build", "--output-dir"]
        done = subprocess.run(
            [*command, source / "output"], cwd=source, capture_output=True, text=True
        )
        if done.returncode:
            raise SystemExit(done.stdout + done.stderr)
        finish(source / "output")
        shutil.rmtree(target, ignore_errors=True)
        shutil.move(source / "output", target)


def main() -> None:
    """Build it into the site, which must be there."""
    if not SITE.is_dir():
        raise SystemExit("There is no site in _build/html yet: make book")
    build(SITE / "lite")
    megabytes = sum(f.stat().st_size for f in (SITE / "lite").rglob("*")) / 1e6
    print(f"JupyterLite is at _build/html/lite, {megabytes:.0f} MB")


if __name__ == "__main__":
    main()
