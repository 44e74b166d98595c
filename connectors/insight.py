"""What somebody may look at in a running company: its actors, and the page's views.

What looking needs is imported when somebody looks: a server at rest stays small.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Protocol, cast

import msgspec

if TYPE_CHECKING:
    from connectors.office.tree import Forest
    from connectors.web.page.views import Inside
    from runtime.statistics import ActorStatistics
    from runtime.system import ActorSystem

TREE = "connectors.office.tree"
NAMES = "connectors.office.actor_name"
VIEWS = "connectors.web.page.views"


FindName = Callable[[Iterable[str], str], str]
"""What `connectors.office.actor_name` does."""


class ReadTree(Protocol):
    """What `connectors.office.tree` does."""

    def __call__(
        self,
        actors: Iterable[ActorStatistics],
        redact: Callable[[str], str],
        *,
        top: str,
        past: str,
    ) -> Forest:
        """Put the actors into their tree."""
        ...


def write_tree(
    system: ActorSystem, redact: Callable[[str], str], top: str, past: str
) -> bytes:
    """Write the actor tree for `callboard tree`, as JSON; see `office/tree.py`.

    Raises:
        MisuseError: `top` means no actor, or more than one.
    """
    read_tree = cast("ReadTree", importlib.import_module(TREE).read_tree)
    find_name = cast("FindName", importlib.import_module(NAMES).find_name)
    actors = list(system.actors())
    if top:
        top = find_name((each.name for each in actors), top)
    return msgspec.json.encode(read_tree(actors, redact, top=top, past=past))


def inside_type() -> type[Inside]:
    """Give the type of what the page's views look at."""
    return cast("type[Inside]", importlib.import_module(VIEWS).Inside)
