"""Explorers as widgets: sliders in Jupyter, with a kernel behind them.

`explore(name)` shows one of `hetlit.teaching.explorers.EXPLORERS`.  This is a thin
layer: the numbers come from the explorer, the figure from `hetlit.teaching.draw`.
"""

from __future__ import annotations

import base64
import html
from typing import TYPE_CHECKING

from hetlit import check
from hetlit.teaching.explorers import EXPLORERS
from hetlit.teaching.explorers.explorer import Parameter

if TYPE_CHECKING:
    import ipywidgets

DPI = 100
WIDE = {"description_width": "initial"}


def explore(name: str) -> ipywidgets.VBox:
    """Return a widget that shows the explorer of this name.

    Parameters
    ----------
    name : one of `hetlit.teaching.explorers.EXPLORERS`

    Returns
    -------
    ipywidgets.VBox, with its parts as `controls`, `reset`, `figure` and `reading`

    >>> explorer = explore("variance")
    >>> [control.description for control in explorer.controls]
    ['samples the user holds', "spread of users' rates", 'population mean']
    """
    import ipywidgets

    from hetlit.teaching.draw import MovingFigure

    explorer = EXPLORERS[check.one_of("name", name, tuple(EXPLORERS))]
    controls = [_control(p, explorer.quick) for p in explorer.parameters]
    reset = ipywidgets.Button(description="Reset", icon="undo")
    figure, reading = ipywidgets.HTML(), ipywidgets.HTML()
    moving = MovingFigure(explorer.at(), DPI)

    def show(_: object = None) -> None:
        values = (control.value for control in controls)
        names = (parameter.name for parameter in explorer.parameters)
        picture = explorer.at(**dict(zip(names, values, strict=True)))
        image = base64.b64encode(moving.png(picture)).decode()
        text = html.escape(f"{explorer.description} {picture.reading}")
        figure.value = f'<img src="data:image/png;base64,{image}" alt="{text}">'
        reading.value = f"<p>{picture.reading}</p>"

    def restore(_: object) -> None:
        for control, parameter in zip(controls, explorer.parameters, strict=True):
            control.value = parameter.default

    for control in controls:
        control.observe(show, names="value")
    reset.on_click(restore)
    show()
    box = ipywidgets.VBox(
        [
            ipywidgets.HTML(f"<b>{explorer.title}</b><p>{explorer.setting}</p>"),
            *controls,
            reset,
            figure,
            reading,
            ipywidgets.HTML(f"<p><b>What to notice.</b> {explorer.notice}</p>"),
        ]
    )
    box.controls, box.reset, box.figure, box.reading = controls, reset, figure, reading
    return box


def _control(parameter: Parameter, quick: bool) -> ipywidgets.Widget:
    """Return a slider for numbers, a list to choose from for words."""
    import ipywidgets

    options = list(zip(parameter.texts, parameter.values, strict=True))
    if parameter.is_choice:
        return ipywidgets.Dropdown(
            options=options,
            value=parameter.default,
            description=parameter.label,
            style=WIDE,
        )
    return ipywidgets.SelectionSlider(
        options=options,
        value=parameter.default,
        description=parameter.label,
        continuous_update=quick,
        style=WIDE,
        layout={"width": "32rem"},
    )
