"""Sphinx extension: explorers on the pages, from frames computed at build time.

A cell of a notebook that says ``explore("name")`` is a widget in Jupyter.  On a page
its place is taken by the same explorer as a plain figure with alt text and, beside it,
every frame as data; where JavaScript runs, the custom element of
book/assets/explorer.mjs takes over.  On pages that are no notebooks the directive
``{explorer} name`` does the same.

Script and frames stand in the page itself, so that they also work on a page that was
opened from a disk, where browsers refuse modules and requests.
"""

from __future__ import annotations

import hashlib
import html
import itertools
import json
import re
import shutil
from concurrent.futures import ProcessPoolExecutor
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from docutils import nodes  # type: ignore[import-untyped]
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment
from sphinx.util.docutils import SphinxDirective
from sphinx.util.fileutil import copy_asset_file

from hetlit.teaching.draw import draw
from hetlit.teaching.explorers import EXPLORERS
from hetlit.teaching.explorers.explorer import Explorer, told
from hetlit.teaching.explorers.picture import (
    Axis,
    Mark,
    Panel,
    Picture,
    Points,
    coordinates,
)
from hetlit.teaching.looks import NAMED, ON_PAGES

ROOT = Path(__file__).resolve().parents[2]
ELEMENT = ROOT / "book" / "assets" / "explorer.mjs"
DIGITS = 4  # half a pixel needs three
CALL = re.compile(r'^explore\("(?P<name>\w+)"\)$', re.MULTILINE)
COORDINATES = ("x", "y", "low", "high")

PAGE = """\
<hetlit-explorer id="explorer-{name}">
<p class="explorer-title" id="explorer-{name}-title">{title}</p>
<p class="explorer-setting">{setting}</p>
<div class="explorer-stage">
<img src="{image}" alt="{description}" width="600">
</div>
<p class="explorer-reading">{reading}</p>
<p class="explorer-notice"><strong>What to notice.</strong> {notice}</p>
<noscript><p>Drawn for: {drawn_for}. With JavaScript there are sliders.</p></noscript>
<script type="application/json">{data}</script>
</hetlit-explorer>
"""


# Frames as data


def picture_as_data(picture: Picture) -> dict[str, Any]:
    """Return a picture as what JSON can hold."""
    return {
        "panels": [panel_as_data(panel) for panel in picture.panels],
        "reading": picture.reading,
    }


def panel_as_data(panel: Panel) -> dict[str, Any]:
    """Return a panel as what JSON can hold."""
    return {
        "x": axis_as_data(panel.x),
        "y": axis_as_data(panel.y),
        "marks": [mark_as_data(mark) for mark in panel.marks],
    }


def axis_as_data(axis: Axis) -> dict[str, Any]:
    """Return an axis as what JSON can hold."""
    return {
        "label": axis.label,
        "low": axis.low,
        "high": axis.high,
        "log": axis.log,
        "ticks": list(axis.ticks),
        "texts": list(axis.texts),
    }


def mark_as_data(mark: Mark) -> dict[str, Any]:
    """Return a mark as what JSON can hold, its numbers rounded."""
    arrays = {name: rounded(values) for name, values in coordinates(mark).items()}
    kind = type(mark).__name__.lower()
    data: dict[str, Any] = {"kind": kind, "look": mark.look, "name": mark.name} | arrays
    if isinstance(mark, Points):
        data |= {"marker": NAMED[mark.look].marker}
        data |= {"small": True} if mark.small else {}
    return data


def rounded(values: Any) -> list[float | int]:
    """Return numbers with four significant digits, whole ones without a point.

    >>> rounded([0.123456, 200.0, 12345.6])
    [0.1235, 200, 12350]
    """
    short = (float(f"{value:.{DIGITS}g}") for value in np.asarray(values).tolist())
    return [int(value) if value.is_integer() else value for value in short]


def leaves(node: Any, path: tuple[str | int, ...] = ()) -> dict[tuple[Any, ...], Any]:
    """Return what hangs at the ends of a tree; a list of numbers or texts is one leaf.

    >>> leaves({"a": [{"b": 1}, {"b": [2, 3]}]})
    {('a', 0, 'b'): 1, ('a', 1, 'b'): [2, 3]}
    """
    if isinstance(node, dict):
        parts = node.items()
    elif isinstance(node, list) and node and isinstance(node[0], dict):
        parts = enumerate(node)  # type: ignore[assignment]
    else:
        return {path: node}
    found: dict[tuple[Any, ...], Any] = {}
    for key, part in parts:
        found |= leaves(part, (*path, key))
    return found


def frames(explorer: Explorer) -> dict[str, Any]:
    """Return all pictures of an explorer: a template, and per frame what differs.

    "paths" says which leaves of the template change, "values" holds every value that
    one of them takes, once, and each of "frames" says which values are its own.  The
    last parameter runs fastest.
    """
    names = [parameter.name for parameter in explorer.on_page]
    grid = itertools.product(*(parameter.values for parameter in explorer.on_page))
    pictures = [
        leaves(picture_as_data(explorer.at(**dict(zip(names, point, strict=True)))))
        for point in grid
    ]
    first = pictures[0]
    if any(list(picture) != list(first) for picture in pictures):
        raise ValueError(f"explorer {explorer.name!r}: frames differ in structure")
    paths = [p for p in first if any(picture[p] != first[p] for picture in pictures)]
    for path in paths:
        if path != ("reading",) and not ("marks" in path and path[-1] in COORDINATES):
            raise ValueError(f"explorer {explorer.name!r}: {path} must not change")
    places: dict[str, int] = {}
    rows = [
        [places.setdefault(json.dumps(picture[path]), len(places)) for path in paths]
        for picture in pictures
    ]
    return {
        "parameters": [
            {
                "name": parameter.name,
                "label": parameter.label,
                "texts": list(parameter.texts),
                "start": parameter.values.index(parameter.default),
                "choice": parameter.is_choice,
            }
            for parameter in explorer.on_page
        ],
        "template": picture_as_data(explorer.at()),
        "paths": [list(path) for path in paths],
        "values": [json.loads(value) for value in places],
        "frames": rows,
    }


# Files


def as_json(data: Any) -> str:
    """Return data as short JSON that can stand between script tags."""
    text = json.dumps(data, ensure_ascii=False, separators=(",", ":"))
    return text.replace("</", "<\\/")


def write(name: str, folder: Path) -> None:
    """Write the frames and the plain figure of one explorer, unless they are there."""
    explorer, target = EXPLORERS[name], folder / f"{name}.json"
    if target.exists():
        return
    draw(explorer.at()).savefig(folder / f"explorer-{name}.png")
    # Under another name first: a build that is interrupted leaves no half a file.
    unfinished = target.with_suffix(".part")
    unfinished.write_text(as_json(frames(explorer)), encoding="utf-8")
    unfinished.rename(target)


@cache
def library_digest() -> str:
    """Return a number that changes with the library, from which frames are computed."""
    digest = hashlib.blake2b(digest_size=8)
    for path in [*sorted((ROOT / "hetlit").rglob("*.py")), Path(__file__)]:
        digest.update(path.read_bytes())
    return digest.hexdigest()


def folder_of(app: Sphinx) -> Path:
    """Return where frames and figures are kept from one build to the next."""
    return Path(app.outdir).parent / "explorers" / library_digest()


def prepare(app: Sphinx) -> None:
    """Compute what is missing, on all cores."""
    folder = folder_of(app)
    folder.mkdir(parents=True, exist_ok=True)
    # Pages depend on these files: without the old ones they are read again.
    for old in folder.parent.iterdir():
        if old != folder:
            shutil.rmtree(old, ignore_errors=True)
    with ProcessPoolExecutor() as pool:
        list(pool.map(write, EXPLORERS, itertools.repeat(folder)))


def explorer_node(name: str, env: BuildEnvironment) -> nodes.Node:
    """Return the element with its frames, for the page that is being read."""
    explorer, data = EXPLORERS[name], folder_of(env.app) / f"{name}.json"
    env.note_dependency(str(data))
    env.note_dependency(str(ELEMENT))
    page = PAGE.format(
        name=name,
        title=html.escape(explorer.title),
        setting=html.escape(explorer.setting_on_page),
        image=f"{'../' * env.docname.count('/')}_images/explorer-{name}.png",
        description=html.escape(explorer.description),
        reading=html.escape(explorer.at().reading),
        notice=html.escape(explorer.notice),
        drawn_for=html.escape(told(explorer.on_page)),
        data=data.read_text(encoding="utf-8"),
    )
    return nodes.raw("", page, format="html")


class ExplorerDirective(SphinxDirective):
    """``{explorer} name``: an explorer on a page that is no notebook."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        """Return the explorer."""
        name = self.arguments[0]
        if name not in EXPLORERS:
            raise self.error(f"explorer must be one of {list(EXPLORERS)}, not {name!r}")
        return [explorer_node(name, self.env)]


def replace_cells(app: Sphinx, doctree: nodes.document) -> None:
    """Put explorers in the place of the cells that would show them as widgets."""
    for cell in list(doctree.findall(nodes.container)):
        called = CALL.search(cell.astext()) if "cell" in cell["classes"] else None
        if called:
            cell.replace_self(explorer_node(called["name"], app.env))


def add_element(
    app: Sphinx, pagename: str, templatename: str, context: dict[str, Any], doctree: Any
) -> None:
    """Put the custom element's code at the end of pages that have an explorer."""
    if "<hetlit-explorer" in context.get("body", ""):
        code = ELEMENT.read_text(encoding="utf-8")
        context["body"] += f'<script type="module">\n{code}</script>\n'


def copy_figures(app: Sphinx, exception: Exception | None) -> None:
    """Put the plain figures where pages look for them."""
    if exception is None:
        images = Path(app.outdir) / "_images"
        images.mkdir(exist_ok=True)
        for figure in folder_of(app).glob("explorer-*.png"):
            copy_asset_file(str(figure), str(images))


def looks_as_css() -> str:
    """Return the style sheet of the looks; paper is like a light page."""
    rules = []
    for name, look in NAMED.items():
        light, dark = ON_PAGES[name]
        mark = f"hetlit-explorer .explorer-{name}"
        _, lengths = look.line if look.line != "-" else (0, ())
        dash = " ".join(f"{2 * length:g}" for length in lengths) or "none"
        rules += [
            f"{mark} {{ --colour: {light}; --dash: {dash}; }}",
            "@media screen {",
            f'  html[data-theme="dark"] {mark} {{ --colour: {dark}; }}',
            "}",
        ]
    return "\n".join(rules) + "\n"


def write_looks(app: Sphinx) -> None:
    """Put the style sheet of the looks beside the others."""
    static = Path(app.outdir) / "_static"
    static.mkdir(parents=True, exist_ok=True)
    (static / "looks.css").write_text(looks_as_css(), encoding="utf-8")


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the directive and what it needs."""
    app.add_css_file("looks.css")
    app.connect("builder-inited", write_looks)
    app.add_directive("explorer", ExplorerDirective)
    app.connect("builder-inited", prepare)
    app.connect("doctree-read", replace_cells)
    app.connect("html-page-context", add_element)
    app.connect("build-finished", copy_figures)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
