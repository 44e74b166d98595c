"""Proves that whoever looks at the page takes no threads from the agents."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import cast

import trio
import trio.lowlevel

from connectors.config.app import AppConfig
from connectors.web.page.views.base import (
    MOST_LOOKS,
    Look,
    ViewRequest,
    ViewSources,
    ViewValues,
    read_view,
)
from runtime.sqlite.database import SqliteDatabase
from runtime.system import ActorSystem
from runtime.telemetry.metrics import Metrics
from tests.fakes.actors.neighbours import make_services
from tests.fakes.store.in_memory import MemoryStore


async def test_looks_that_take_long_leave_threads_for_all_others() -> None:
    system = cast("ActorSystem", None)  # this view does not look at it
    services = make_services(MemoryStore())
    database = SqliteDatabase(Path("not/read_view/at.db"))
    inside = ViewSources(system, services, Metrics(), database, AppConfig)
    asked, begun, may_end = ViewRequest("sam", inside), list[int](), threading.Event()

    def read(_look: Look) -> ViewValues:
        begun.append(1)
        may_end.wait()
        return {}

    try:
        with trio.move_on_after(0.2):
            async with trio.open_nursery() as nursery:
                for _ in range(3 * MOST_LOOKS):
                    nursery.start_soon(read_view, asked, read)
        # They are left behind, and go on in their threads.
        assert len(begun) == MOST_LOOKS
        assert trio.to_thread.current_default_thread_limiter().borrowed_tokens == 0
    finally:
        may_end.set()
    with trio.fail_after(5):
        await read_view(asked, read)
        while inside.threads.borrowed_tokens:  # by those that were left behind
            await trio.lowlevel.checkpoint()
