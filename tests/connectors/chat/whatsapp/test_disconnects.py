"""However the way to Meta breaks, no message gets lost and none comes twice.

Meta is played by calls that are repeated until they are answered 200, the courier by
the rules that the real one goes by. What WhatsApp has, it tells of by statuses.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import httpx
import pytest
import trio
from trio.testing import MockClock

from actors.errors import OverloadedError
from actors.messages.deliveries import Delivery
from actors.messages.inbound import Inbound
from actors.outbound import retry as sending
from runtime.errors import StoreUnavailableError
from tests.fakes.outbound.courier import bring
from tests.fakes.whatsapp.graph import refusal, sign
from tests.support.chat.whatsapp_bed import ANNA, PLACE, WhatsAppBed

WORDS = ("one", "two", "three")
PICTURE: dict[str, Any] = {
    "type": "image",
    "image": {"id": "m1", "mime_type": "image/png"},
}


class World:
    """Meta, an agent that answers, and a courier that goes by its rules."""

    def __init__(self) -> None:
        self.bed = WhatsAppBed()
        self.bed.server.put_media("m1", "image/png", b"\x89PNG")
        self.ends: list[sending.StoreEnd] = []
        self.listening = trio.CancelScope()

    async def listen(self) -> None:
        """Listen, again after each end, as a supervisor has it."""
        while True:
            with trio.CancelScope() as self.listening:
                await self.bed.transport.listen(self.bed.ingress)
            await trio.sleep(1)

    async def call_until_taken(self, body: bytes) -> None:
        """Call as Meta does: again and again until it is answered 200."""
        wait = 0.5
        while await self.status(body) != 200:
            await trio.sleep(wait)
            wait *= 2

    async def status(self, body: bytes) -> int:
        """Call once; what nobody answers counts as trouble."""
        if self.bed.gates.find(PLACE) is None:
            return 401
        return (await self.bed.call(body)).status

    async def tell_statuses(self) -> None:
        """Tell of each message of ours once, two seconds after it is there."""
        told = 0
        while True:
            await trio.sleep(2)
            said = self.bed.server.said
            for each in said[told:]:
                status = self.bed.server.status(each, "sent")
                await self.call_until_taken(
                    self.bed.server.webhook(ANNA, statuses=(status,))
                )
            told = len(said)

    async def answer(self) -> None:
        """Answer each message once, through a courier."""
        while True:
            inbound = await self.bed.ingress.next_or_wait()
            self.ends.append(await bring(self.bed.transport, answer_to(inbound)))


def answer_to(inbound: Inbound) -> Delivery:
    return Delivery(
        id=f"re-{inbound.id}",
        correlation_id=inbound.id,
        address=inbound.address,
        agent="anna",
        text=f"re: {inbound.text}",
    )


@asynccontextmanager
async def open_world() -> AsyncGenerator[World]:
    world = World()
    async with trio.open_nursery() as nursery:
        for run in (world.listen, world.tell_statuses, world.answer):
            nursery.start_soon(run)
        await world.bed.server.wait(lambda: world.bed.gates.find(PLACE) is not None)
        yield world
        nursery.cancel_scope.cancel()


async def hung_up_on(world: World, body: bytes) -> None:
    """Meta hangs up while the disk is slow, and calls again."""
    world.bed.ingress.gate = trio.Event()
    with trio.move_on_after(3):
        await world.bed.call(body)
    world.bed.ingress.gate.set()


async def called_twice_at_once(world: World, body: bytes) -> None:
    """Meta calls from two places with the same."""
    async with trio.open_nursery() as nursery:
        for _ in range(3):
            nursery.start_soon(world.call_until_taken, body)


async def disk_away(world: World, body: bytes) -> None:
    """The disk takes nothing for a while."""
    world.bed.ingress.error = StoreUnavailableError("disk full")
    for _ in range(3):
        assert await world.status(body) == 503
    world.bed.ingress.error = None


async def too_much_in_flight(world: World, body: bytes) -> None:
    """We have too much to do at the second message."""
    await world.call_until_taken(
        world.bed.server.webhook(ANNA, world.bed.server.message("zero"))
    )
    world.bed.ingress.error = OverloadedError("too much")
    assert await world.status(body) == 503
    world.bed.ingress.error = None


async def listener_restarted(world: World, body: bytes) -> None:
    """The listener ends, and is started again."""
    world.listening.cancel()
    await trio.sleep(0.5)
    assert await world.status(body) == 401


async def all_restarted(world: World, body: bytes) -> None:
    """All that stood in memory is gone after the first call."""
    await world.call_until_taken(body)
    await world.bed.server.wait(lambda: len(world.ends) == len(WORDS))
    world.bed.transport = world.bed.make()
    world.listening.cancel()
    await trio.sleep(2)


async def cut_off(world: World, body: bytes) -> None:
    """Half of a call comes."""
    half = body[: len(body) // 2]
    assert (await world.bed.call(half, sign(body))).status == 401


def fault(*faults: httpx.Response | Exception | float) -> Any:
    async def script(world: World, _: bytes) -> None:
        await trio.lowlevel.checkpoint()
        world.bed.server.faults.extend(("/messages", each) for each in faults)

    return script


SCRIPTS: dict[str, Any] = {
    "hung up on": hung_up_on,
    "called twice at once": called_twice_at_once,
    "disk away": disk_away,
    "too much in flight": too_much_in_flight,
    "listener restarted": listener_restarted,
    "process restarted": all_restarted,
    "half a call": cut_off,
    "connection refused": fault(*[httpx.ConnectError("refused")] * 3),
    "server away": fault(httpx.Response(503), refusal(503, 131016), refusal(500, 2)),
    "reset after it was taken": fault(*[httpx.ReadError("reset")] * 2),
    "half open": fault(100.0),
    "too many requests": fault(httpx.Response(429), refusal(429, 130429)),
    "pair rate": fault(*[refusal(400, 131056)] * 2),
    "token withdrawn, and mended": fault(*[refusal(401, 190, "gone", 460)] * 3),
    "no JSON": fault(httpx.Response(200, text="<html>"), httpx.Response(502)),
    "window closed, and opened": fault(refusal(400, 131047)),
}


@pytest.mark.parametrize("name", SCRIPTS)
async def test_nothing_is_lost_and_nothing_doubled(
    name: str, autojump_clock: MockClock
) -> None:
    del autojump_clock
    async with open_world() as world:
        server, ingress = world.bed.server, world.bed.ingress
        body = server.webhook(ANNA, *map(server.message, WORDS))
        await SCRIPTS[name](world, body)
        await world.call_until_taken(body)
        if name.startswith("window"):
            later = server.webhook(ANNA, server.message("zero"))
            await trio.sleep(100)
            await world.call_until_taken(later)
        wanted = [each.text for each in ingress.accepted]
        await server.wait(lambda: len(world.ends) == len(wanted), within=5_000)
    assert sorted(wanted) in (sorted(WORDS), sorted([*WORDS, "zero"]))
    assert [each.state for each in world.ends] == ["sent"] * len(wanted)
    answers = [text for text in server.texts() if text.startswith("re: ")]
    assert answers == [f"re: {text}" for text in wanted]


async def test_a_picture_whose_connection_breaks_comes_with_a_note(
    autojump_clock: MockClock,
) -> None:
    del autojump_clock
    async with open_world() as world:
        server = world.bed.server
        server.faults.append(("/m1", httpx.ReadError("reset")))
        picture = server.webhook(ANNA, server.message("", **PICTURE))
        await world.call_until_taken(picture)
        assert "was not fetched" in world.bed.ingress.accepted[0].text
