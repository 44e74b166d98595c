"""Makes what agents remember with: the embedder, the log book, the tools.

Settings in, a `MemoryKit` out. What needs an HTTP client is imported only for settings
that ask for it.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, cast

from actors.memory_kit import MemoryKit, MemoryMetrics
from connectors.log_book import FileLogBook
from connectors.memory_config import HASHING, OFF
from connectors.models.hashing_embedder import HashingEmbedder

if TYPE_CHECKING:
    from contextlib import AsyncExitStack

    from actors.ports import Embedder
    from connectors.config import AppConfig
    from connectors.memory_config import EmbedderConfig
    from runtime.clock import Clock

HTTP_EMBEDDER = "connectors.models.http_embedder"
"""Imported only for settings that ask for it: it brings an HTTP client."""

MakeEmbedder = Callable[["EmbedderConfig", Callable[[], float]], "Embedder"]


def make_memory(
    app: AppConfig, clock: Clock, metrics: MemoryMetrics, stack: AsyncExitStack
) -> MemoryKit | None:
    """Make what memories work with; None if nothing is to be remembered.

    Raises:
        SettingsError: the embedder's address or key cannot be used.
    """
    config = app.memory
    if not config.enabled:
        return None
    embedder = _embedder(app, clock)
    if embedder is not None:
        stack.push_async_callback(embedder.aclose)
    book = FileLogBook(Path(config.folder)) if config.daily_log else None
    return MemoryKit(config, metrics, embedder, book)


def _embedder(app: AppConfig, clock: Clock) -> Embedder | None:
    name = app.memory.embedder
    if name == OFF:
        return None
    if name == HASHING:
        return HashingEmbedder(app.memory.hashing_dimensions)
    module = importlib.import_module(HTTP_EMBEDDER)
    make = cast("MakeEmbedder", module.make_embedder)
    return make(app.embedders[name], clock.wall)
