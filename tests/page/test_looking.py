"""Proves that whoever looks at the page takes no threads from the agents."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, cast

import trio
import trio.lowlevel

from connectors.config import AppConfig
from connectors.web.page.looking import Look, looked
from connectors.web.page.views import MOST_LOOKS, Asked, Inside
from runtime.memory_store import MemoryStore
from runtime.metrics import Metrics
from tests.fakes.neighbours import make_services

if TYPE_CHECKING:
    from connectors.web.page.views import Shown
    from runtime.system import ActorSystem


async def test_looks_that_take_long_leave_threads_for_all_others() -> None:
    system = cast("ActorSystem", None)  # this view does not look at it
    services = make_services(MemoryStore())
    inside = Inside(system, services, Metrics(), AppConfig)
    asked, begun, may_end = Asked("sam", inside), list[int](), threading.Event()

    def read(_look: Look) -> Shown:
        begun.append(1)
        may_end.wait()
        return {}

    try:
        with trio.move_on_after(0.2):
            async with trio.open_nursery() as nursery:
                for _ in range(3 * MOST_LOOKS):
                    nursery.start_soon(looked, asked, read)
        # They are left behind, and go on in their threads.
        assert len(begun) == MOST_LOOKS
        assert trio.to_thread.current_default_thread_limiter().borrowed_tokens == 0
    finally:
        may_end.set()
    with trio.fail_after(5):
        await looked(asked, read)
        while inside.threads.borrowed_tokens:  # by those that were left behind
            await trio.lowlevel.checkpoint()
