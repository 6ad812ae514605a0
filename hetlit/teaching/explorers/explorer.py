"""An explorer: a picture as a function of a few parameters that one can drag."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from hetlit.teaching.explorers.picture import Picture, number

Value = float | int | str


@dataclass(frozen=True)
class Parameter:
    """A parameter: the argument it sets, its name in words, and its possible values.

    Numbers become a slider, in increasing order; words become a list to choose from.
    `write` says how a number is shown.  Jupyter has all parameters of an explorer; the
    page has those with `on_page`, at most two, and keeps the others at their defaults.
    """

    name: str
    label: str
    values: tuple[Value, ...]
    default: Value
    write: Callable[[Any], str] = number
    on_page: bool = True

    def __post_init__(self) -> None:
        if self.default not in self.values:
            raise ValueError(f"{self.name}: {self.default} is not one of the values")
        if len(set(self.values)) != len(self.values) or len(self.values) < 2:
            raise ValueError(f"{self.name}: needs two different values or more")

    @property
    def is_choice(self) -> bool:
        """Whether the values are words."""
        return isinstance(self.default, str)

    @property
    def texts(self) -> tuple[str, ...]:
        """The values as a reader sees them."""
        if self.is_choice:
            return tuple(str(value) for value in self.values)
        return tuple(self.write(value) for value in self.values)

    @property
    def default_text(self) -> str:
        """The default as a reader sees it."""
        return self.texts[self.values.index(self.default)]


def told(parameters: Iterable[Parameter]) -> str:
    """Return parameters with their defaults, in words.

    >>> told([Parameter("p", "population mean", (0.2, 0.3), 0.3)])
    'population mean = 0.3'
    """
    return "; ".join(f"{p.label} = {p.default_text}" for p in parameters)


@dataclass(frozen=True)
class Explorer:
    """A picture that one can drag.

    name : for `explore(name)` and for the pages
    chapter : the notebook it belongs to
    title : what it is about
    setting : what nobody can drag, in a sentence or two
    picture : a function of all parameters, by keyword
    parameters : what one can drag
    notice : what to notice, in a sentence or two
    description : what the picture shows, for those who cannot see it
    quick : whether a widget can follow while one drags: 50 ms a step at the most
    """

    name: str
    chapter: str
    title: str
    setting: str
    picture: Callable[..., Picture]
    parameters: tuple[Parameter, ...]
    notice: str
    description: str
    quick: bool = True

    @property
    def on_page(self) -> tuple[Parameter, ...]:
        """The parameters that readers of the page can move."""
        return tuple(p for p in self.parameters if p.on_page)

    @property
    def setting_on_page(self) -> str:
        """The setting, with the parameters that readers of the page cannot move."""
        fixed = told(p for p in self.parameters if not p.on_page)
        return f"{self.setting} Fixed here: {fixed}." if fixed else self.setting

    @property
    def defaults(self) -> dict[str, Value]:
        """All parameters at their defaults."""
        return {p.name: p.default for p in self.parameters}

    def at(self, **changed: Value) -> Picture:
        """Return the picture with some parameters changed from their defaults."""
        return self.picture(**self.defaults | changed)
