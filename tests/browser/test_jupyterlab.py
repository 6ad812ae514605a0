"""An explorer in a real JupyterLab: a slider is moved and the figure changes."""

import json
import os
import socket
import subprocess
import sys
import time
import urllib.request

import nbformat
import pytest
from playwright.sync_api import expect

from hetlit.teaching.explorers import EXPLORERS
from tools.notebooks import KERNEL

TOKEN = "only-for-this-test"
SECONDS = 90  # for a server, a kernel and imports on a busy machine


@pytest.fixture
def jupyterlab(tmp_path):
    """Address of a JupyterLab whose folder has one notebook, explore.ipynb."""
    cell = nbformat.v4.new_code_cell(
        'from hetlit.widgets import explore\n\nexplore("variance")'
    )
    named = {"kernelspec": KERNEL}  # so that JupyterLab need not ask for a kernel
    notebook = nbformat.v4.new_notebook(cells=[cell], metadata=named)
    nbformat.write(notebook, tmp_path / "explore.ipynb")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    # Nobody's settings, workspaces or kernels but the environment's own.
    places = ("JUPYTER_CONFIG_DIR", "JUPYTER_DATA_DIR", "JUPYTER_RUNTIME_DIR")
    own = {name: str(tmp_path / ".jupyter" / name.lower()) for name in places}
    command = [sys.executable, "-m", "jupyterlab", "--no-browser", "--allow-root"]
    command += ["--ServerApp.ip=127.0.0.1", f"--ServerApp.port={port}"]
    command += ["--ServerApp.port_retries=0", f"--IdentityProvider.token={TOKEN}"]
    command += [f"--ServerApp.root_dir={tmp_path}"]
    with (tmp_path / "log.txt").open("w") as log:
        server = subprocess.Popen(
            command, cwd=tmp_path, env=os.environ | own, stdout=log, stderr=log
        )
        address = f"http://127.0.0.1:{port}"
        try:
            wait_for(f"{address}/api/status?token={TOKEN}", server)
            yield f"{address}/lab/tree/explore.ipynb?token={TOKEN}"
        finally:
            server.terminate()
            server.wait(30)
            print((tmp_path / "log.txt").read_text())  # shown if the test fails


def wait_for(address, server):
    """Ask until there is an answer, or the server has ended."""
    end = time.monotonic() + SECONDS
    while time.monotonic() < end and server.poll() is None:
        try:
            with urllib.request.urlopen(address, timeout=5) as answer:
                json.load(answer)
                return
        except OSError:
            time.sleep(0.5)
    raise AssertionError("JupyterLab did not start")


def test_a_slider_in_jupyterlab_changes_the_figure(browser, jupyterlab):
    explorer = EXPLORERS["variance"]
    context = browser.new_context(viewport={"width": 1280, "height": 1200})
    context.set_default_timeout(1000 * SECONDS)
    page = context.new_page()
    page.goto(jupyterlab)
    # JupyterLab forgets what is run before a kernel is there. The bar at the bottom
    # says when it is; the circle above the notebook claims so from the beginning.
    page.get_by_text("Python 3 (ipykernel) | Idle", exact=True).wait_for()
    page.get_by_role("menuitem", name="Run", exact=True).click()
    page.get_by_role("menuitem", name="Run All Cells", exact=True).click()
    figure = page.locator(".jp-OutputArea img")
    figure.wait_for()
    assert figure.get_attribute("alt").endswith(explorer.at().reading)
    before = figure.get_attribute("src")

    first = page.locator(".jp-OutputArea .widget-slider").first
    expect(first).to_contain_text(explorer.parameters[0].label)
    handle = first.get_by_role("slider")
    handle.focus()
    handle.press("ArrowRight")

    size = explorer.parameters[0]
    moved = explorer.at(size=size.values[size.values.index(size.default) + 1])
    after = page.locator(".jp-OutputArea").get_by_alt_text(moved.reading, exact=False)
    expect(after).to_be_visible(timeout=1000 * SECONDS)
    assert after.get_attribute("src") != before
    context.close()
