"""Makes the search engine of the settings; imported for agents that may search."""

from __future__ import annotations

from typing import TYPE_CHECKING

from connectors.tools.brave import BRAVE, BraveSearch
from connectors.tools.searching import door_of
from connectors.tools.searxng import SearxngSearch

if TYPE_CHECKING:
    from collections.abc import Callable

    from connectors.fetch.messages import Fetch
    from connectors.tool_config import WebSearchConfig
    from connectors.tools.searching import WebSearch


def make_engine(config: WebSearchConfig, way_out: Callable[[str], Fetch]) -> WebSearch:
    """Make the search engine of the settings, which is not `off`.

    Args:
        config: which engine.
        way_out: makes a guarded way out that reaches one door besides what is public.
            Of its own: pages that a model asks for may not go where the engine does.
    """
    base_url = config.base_url or BRAVE
    fetch = way_out(door_of(base_url))
    if config.kind == "searxng":
        return SearxngSearch(base_url, fetch)
    key = config.api_key.reveal() if config.api_key is not None else ""
    return BraveSearch(base_url, key, fetch)
