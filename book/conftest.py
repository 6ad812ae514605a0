"""How `pytest --nbval` reads our notebooks."""

from nbval.plugin import IPyNbCell


def pytest_itemcollected(item):
    """Give the cell a number, because nbval compares only cells that have one.

    They are stored without: see tools/notebooks.py.
    """
    if isinstance(item, IPyNbCell):
        item.cell.execution_count = item.cell_num + 1
