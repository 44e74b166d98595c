"""Draws pages: Jinja2, with everything escaped that is not ours.

Jinja2 is imported when the first page is drawn: a server that nobody looks at need not
have it in memory.
"""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, cast

from connectors.web.page.words import FILTERS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

FOLDER = Path(__file__).parent / "templates"


class Template(Protocol):
    """What is used of `jinja2.Template`."""

    blocks: Mapping[str, Callable[[object], Iterable[str]]]

    def render(self, values: Mapping[str, object]) -> str:
        """Draw all of it."""
        ...

    def new_context(self, values: Mapping[str, object]) -> object:
        """Make what a block of it is drawn with."""
        ...


class Environment(Protocol):
    """What is used of `jinja2.Environment`."""

    filters: dict[str, Callable[..., object]]

    def get_template(self, name: str) -> Template:
        """Give a template, read once."""
        ...


class Pages:
    """Draws templates with what all of them are given.

    Args:
        folder: where templates are.
    """

    def __init__(self, folder: Path = FOLDER) -> None:
        self._folder = folder
        self._given: Mapping[str, object] = {}
        self._environment: Environment | None = None

    def give(self, values: Mapping[str, object]) -> None:
        """Say what is the same on all pages, from now on."""
        self._given = values

    def draw(self, name: str, values: Mapping[str, object]) -> str:
        """Draw a whole page."""
        return self._template(name).render({**self._given, **values})

    def draw_block(self, name: str, block: str, values: Mapping[str, object]) -> str:
        """Draw one block of a page."""
        template = self._template(name)
        context = template.new_context({**self._given, **values})
        return "".join(template.blocks[block](context))

    def _template(self, name: str) -> Template:
        environment = self._environment
        if environment is None:
            environment = self._environment = make_environment(self._folder)
        return environment.get_template(name)


def make_environment(folder: Path) -> Environment:
    """Load Jinja2; what a template misses is a mistake, never an empty place."""
    jinja = importlib.import_module("jinja2")
    environment = cast(
        "Environment",
        jinja.Environment(
            loader=jinja.FileSystemLoader(folder),
            autoescape=True,
            auto_reload=False,
            undefined=jinja.StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
        ),
    )
    environment.filters.update(FILTERS)
    return environment
