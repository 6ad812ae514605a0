"""A notebook of the built site, opened in Chromium and run by Pyodide there."""

import re
import time
from pathlib import Path

import hetlit
from tools.lite import PYODIDE_URL

DATABASE = f"hetlit {hetlit.__version__}"  # where the app stores a reader's notebooks
CDN = PYODIDE_URL.rsplit("/", 1)[0] + "/"
TYPES = {".mjs": "text/javascript", ".wasm": "application/wasm"}
TYPES[".json"] = "application/json"

LINK = "Run this chapter in your browser"
START = 120  # seconds until the first cell has run; 20 to 30 are usual
STORED = """async ([database, path]) => {
  const open = indexedDB.open(database);
  await new Promise((resolve) => (open.onsuccess = resolve));
  if (!open.result.objectStoreNames.contains("files")) return null;
  const files = open.result.transaction("files").objectStore("files");
  const request = files.get(path);
  await new Promise((resolve) => (request.onsuccess = resolve));
  open.result.close();
  return request.result ? request.result.content : null;
}"""


def joined(text):
    """Text of a notebook, which may be stored in lines."""
    return text if isinstance(text, str) else "".join(text)


def printed(outputs):
    """What a cell printed, and its results as text."""
    streams = [o for o in outputs if o["output_type"] == "stream"]
    results = [o["data"] for o in outputs if "data" in o]
    return (
        "".join(joined(stream["text"]) for stream in streams),
        [joined(data["text/plain"]) for data in results if "text/plain" in data],
    )


class Network:
    """Answers for the CDN from a folder, and for nobody else.

    Everything that was asked of any other host is in `foreign`, and what the CDN was
    asked for and could not give is in `missing`. It may be `blocked`, and it may be
    `slow`: then nobody gets an answer before `release`.
    """

    def __init__(self, context, site, folder, blocked=False, slow=False):
        self.folder, self.blocked, self.slow = folder, blocked, slow
        self.foreign, self.missing, self.held = [], [], []
        context.route(lambda url: not url.startswith(site), self.answer)

    def answer(self, route):
        address = route.request.url
        name = address.removeprefix(CDN)
        if not address.startswith(CDN):
            self.foreign.append(address)
            route.abort()
        elif self.slow:
            self.held.append(route)
        elif self.blocked:
            route.abort()
        elif not (self.folder / name).is_file():
            self.missing.append(name)
            route.fulfill(status=404)
        else:
            kind = TYPES.get(Path(name).suffix, "application/octet-stream")
            allow = {"access-control-allow-origin": "*"}
            route.fulfill(path=self.folder / name, content_type=kind, headers=allow)

    def release(self):
        """Answer everybody who waits."""
        self.slow = False
        for route in self.held:
            self.answer(route)


class LiveNotebook:
    """The notebook app on a page: what a reader sees and does there."""

    def __init__(self, page):
        self.page = page
        page.locator(".jp-Notebook .jp-Cell").first.wait_for(timeout=60_000)
        # The app forgets what is run before a kernel is there. Then its status, words
        # like "Kernel Connecting" until now, fades.
        there = page.locator(".jp-NotebookKernelStatus-fade")
        there.wait_for(state="attached", timeout=1000 * START)
        path = re.search(r"[?&]path=([^&#]+)", page.url)
        assert path
        self.path = path[1]

    def wait_until(self, done, seconds, what):
        """Ask again and again; return the first answer that is true."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            if answer := done():
                return answer
            self.page.wait_for_timeout(500)
        raise AssertionError(f"{self.path}: {what} took more than {seconds} seconds")

    def code_cell(self, text):
        """The code cell with this text in its source."""
        return self.page.locator(".jp-CodeCell", has_text=text).first

    def prompt(self, cell):
        """What stands before a cell: `[3]:`, or `[*]:` while it runs."""
        return cell.locator(".jp-InputPrompt").first.inner_text()

    def output(self, cell):
        """The text below a cell."""
        return cell.locator(".jp-OutputArea").inner_text().strip()

    def run(self, cell, seconds=START):
        """Run one cell by keyboard and wait until it has run."""
        before = self.prompt(cell)
        cell.scroll_into_view_if_needed()
        cell.locator(".cm-content").first.click()
        self.page.keyboard.press("Control+Enter")

        def has_run():
            now = self.prompt(cell)
            return now != before and re.search(r"\d", now)

        self.wait_until(has_run, seconds, "a cell")

    def run_all(self):
        """Choose "Run All Cells" in the menu."""
        self.page.get_by_role("menuitem", name="Run", exact=True).click()
        self.page.get_by_role("menuitem", name="Run All Cells", exact=True).click()

    def code_cells(self):
        """Save, and return the code cells as this browser has stored them."""
        self.page.keyboard.press("Control+s")
        self.page.wait_for_timeout(300)
        stored = self.page.evaluate(STORED, [DATABASE, self.path])
        cells = stored["cells"] if stored else []
        return [cell for cell in cells if cell["cell_type"] == "code"]

    def wait_for_cells(self, number, seconds):
        """Wait until the first `number` code cells have run; return the time then."""

        def have_run():
            cells = self.code_cells()
            errors = [
                f"{cell['id']}: {output['ename']}: {output['evalue']}"
                for cell in cells
                for output in cell["outputs"]
                if output["output_type"] == "error"
            ]
            if errors:
                raise AssertionError(f"{self.path}: {'; '.join(errors)}")
            # Counts of this run: those stored with the notebook are smaller by one.
            return cells and cells[number - 1]["execution_count"] == number

        self.wait_until(have_run, seconds, f"{number} cells")
        return time.monotonic()
