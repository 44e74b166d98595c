"""The guarded way out, made when somebody first goes that way.

Its HTTP client takes a fifth of the whole start, which most companies can be spared.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import TYPE_CHECKING, cast

if TYPE_CHECKING:
    from connectors.config.tools import FetchConfig
    from connectors.fetch.fetcher import Fetcher
    from connectors.fetch.messages import Fetched, FetchRequest

FETCH = "connectors.fetch.fetcher"

MakeFetcher = Callable[..., "Fetcher"]


class LateFetcher:
    """Fetches as `Fetcher` does."""

    def __init__(self, config: FetchConfig, doors: tuple[str, ...] = ()) -> None:
        self._config = config
        self._doors = doors
        self._made: Fetcher | None = None

    async def fetch(self, request: FetchRequest) -> Fetched:
        """Fetch one answer; see `Fetcher.fetch`."""
        if self._made is None:
            make = cast("MakeFetcher", importlib.import_module(FETCH).Fetcher)
            self._made = make(self._config, doors=self._doors)
        return await self._made.fetch(request)

    async def aclose(self) -> None:
        """Close what was opened."""
        if self._made is not None:
            await self._made.aclose()
