"""The explorers in Jupyter, by their short name (`hetlit.widgets.explore`)."""

from hetlit.teaching.widgets import explore

__all__ = ["explore"]
