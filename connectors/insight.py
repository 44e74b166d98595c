"""What somebody may look at in a running company: its actors, and the page's views.

What looking needs is imported when somebody looks: a server at rest stays small.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Protocol, cast

import msgspec

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from connectors.office.tree import Forest
    from connectors.web.page.views import Inside
    from runtime.statistics import ActorStatistics
    from runtime.system import ActorSystem

TREE = "connectors.office.tree"
VIEWS = "connectors.web.page.views"


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
    """Write the actor tree for `callboard tree`, as JSON; see `office/tree.py`."""
    read_tree = cast("ReadTree", importlib.import_module(TREE).read_tree)
    return msgspec.json.encode(read_tree(system.actors(), redact, top=top, past=past))


def inside_type() -> type[Inside]:
    """Give the type of what the page's views look at."""
    return cast("type[Inside]", importlib.import_module(VIEWS).Inside)
