"""Run every notebook again, in place, and normalise what is stored.

``python -m tools.notebooks`` runs and normalises all notebooks of the book;
``--no-run`` only normalises; paths limit it to some notebooks. Stored text outputs are
what ``make test`` compares against. Image payloads are dropped: the comparison skips
them and the book draws its own.
"""

import argparse
from pathlib import Path
from typing import Any

import nbformat
from nbclient import NotebookClient

BOOK = Path(__file__).resolve().parent.parent / "book"
KERNEL = {"display_name": "Python 3", "language": "python", "name": "python3"}
DROPPED_DATA = {
    "image/png",
    "image/jpeg",
    "application/vnd.jupyter.widget-view+json",
}
DROPPED_CELL_METADATA = {"ExecuteTime", "collapsed", "execution", "scrolled", "trusted"}


def notebooks(folder: Path = BOOK) -> list[Path]:
    """Return every notebook of the book, in alphabetical order."""
    return sorted(
        path
        for path in folder.rglob("*.ipynb")
        if not any(part.startswith(".") for part in path.relative_to(folder).parts)
    )


def run(notebook: Any, folder: Path) -> None:
    """Execute all cells in a fresh kernel, started in the notebook's folder."""
    client = NotebookClient(
        notebook,
        timeout=600,
        kernel_name="python3",
        resources={"metadata": {"path": str(folder)}},
    )
    client.execute()


def normalise(notebook: Any, name: str) -> None:
    """Keep what readers and tests need, in one form; drop what changes by itself.

    Cell ids are kept when they are there and unique; other cells get one made from the
    notebook's name and the cell's position.
    """
    notebook.nbformat, notebook.nbformat_minor = 4, 5
    notebook.metadata = nbformat.from_dict(
        {"kernelspec": KERNEL, "language_info": {"name": "python"}}
    )
    seen: set[str] = set()
    for position, cell in enumerate(notebook.cells, start=1):
        identifier = cell.get("id")
        if not identifier or identifier in seen:
            identifier = f"{name}-{position:03d}"
        cell["id"] = identifier
        seen.add(identifier)
        for key in DROPPED_CELL_METADATA & set(cell.metadata):
            del cell.metadata[key]
        if cell.cell_type == "code":
            cell.execution_count = None  # so that moving a cell renumbers nothing
            # Cells that we do not run have no output of ours.
            skipped = "skip-execution" in cell.metadata.get("tags", [])
            outputs = [] if skipped else cell.outputs
            cell.outputs = normalised_outputs(outputs)


def normalised_outputs(outputs: list[Any]) -> list[Any]:
    """Join streams that follow each other, drop images and the results' numbers."""
    kept: list[Any] = []
    for output in outputs:
        if output.output_type == "stream" and kept:
            last = kept[-1]
            if last.output_type == "stream" and last.name == output.name:
                last.text += output.text
                continue
        if "data" in output:
            for mime in DROPPED_DATA & set(output.data):
                del output.data[mime]
            output.metadata.clear()
        if output.output_type == "execute_result":
            output.execution_count = None
        kept.append(output)
    return kept


def main() -> None:
    """Handle the command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("paths", nargs="*", type=Path, help="default: all of book/")
    parser.add_argument("--no-run", action="store_true", help="only normalise")
    arguments = parser.parse_args()
    for path in arguments.paths or notebooks():
        before = path.read_text(encoding="utf-8")
        notebook = nbformat.v4.reads(before)  # nbformat.reads would invent cell ids
        if not arguments.no_run:
            run(notebook, path.parent)
        normalise(notebook, path.stem)
        nbformat.validate(notebook)
        after = nbformat.writes(notebook) + "\n"
        path.write_text(after, encoding="utf-8")
        print(f"{path.name}: {'unchanged' if after == before else 'updated'}")


if __name__ == "__main__":
    main()
