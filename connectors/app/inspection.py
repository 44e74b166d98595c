"""What somebody may look at in a running company: its actors, and the page's views.

What looking needs is imported when somebody looks: a server at rest stays small.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Protocol, cast

import msgspec

if TYPE_CHECKING:
    from connectors.admin.tree import Forest
    from connectors.web.page.views.base import ViewSources
    from runtime.actor.statistics import ActorStatistics
    from runtime.system import ActorSystem

TREE = "connectors.admin.tree"
NAMES = "connectors.admin.tree"
VIEWS = "connectors.web.page.views.base"


FindName = Callable[[Iterable[str], str], str]
"""What `connectors.admin.tree` does."""


class ReadTree(Protocol):
    """What `connectors.admin.tree` does."""

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
    """Write the actor tree for `callboard tree`, as JSON.

    `connectors/admin/tree.py` says what stands in it.

    Raises:
        MisuseError: `top` means no actor, or more than one.
    """
    read_tree = cast("ReadTree", importlib.import_module(TREE).read_tree)
    find_name = cast("FindName", importlib.import_module(NAMES).find_name)
    actors = list(system.actors())
    if top:
        top = find_name((each.name for each in actors), top)
    return msgspec.json.encode(read_tree(actors, redact, top=top, past=past))


def inside_type() -> type[ViewSources]:
    """Give the type of what the page's views look at."""
    return cast("type[ViewSources]", importlib.import_module(VIEWS).ViewSources)
