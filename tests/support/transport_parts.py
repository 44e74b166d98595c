"""What a test gives a transport factory: all that the app would, made for the test."""

from __future__ import annotations

import importlib
from typing import Any

import trio

from connectors.asyncio_bridge.bridge import Bridge
from connectors.chat.platforms import Operations, TransportParts
from connectors.config.app import AppConfig
from connectors.web.page.views.base import ViewSources
from runtime.clock import SystemClock
from runtime.ids import IdSource
from runtime.telemetry.metrics import Metrics
from tests.fakes.store.in_memory import MemoryStore
from tests.fakes.web.backstage import FakeCompany


async def all_is_well() -> tuple[str, ...]:
    """Say that the company is ready."""
    await trio.lowlevel.checkpoint()
    return ()


def nothing_inside() -> ViewSources:
    """Give nothing to look at: views of tests bring their own."""
    module = importlib.import_module("connectors.web.page.views.base")
    sources: ViewSources = module.ViewSources(None, None, Metrics(), None, AppConfig)
    return sources


def transport_parts(**given: Any) -> TransportParts:
    """Make the parts of a transport.

    Args:
        given: fields of `TransportParts` that are not to be the usual ones.
    """
    clock = given.setdefault("clock", SystemClock())
    metrics = given.setdefault("metrics", Metrics())
    operations = Operations(
        lambda accept, _is_fresh: metrics.render_as(accept), all_is_well
    )
    usual: dict[str, Any] = {
        "ids": IdSource(SystemClock()),
        "bridge": Bridge(shutdown_timeout=3),
        "operations": operations,
        "agents": lambda: ("anna", "ben"),
        "store": MemoryStore(),
        "inside": nothing_inside,
    }
    if "backstage" not in given:
        usual["backstage"] = FakeCompany(MemoryStore()).backstage()
    return TransportParts(**{**usual, **given, "clock": clock})
