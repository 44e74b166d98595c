"""No sign goes on saying that somebody is at it when nobody is."""

from __future__ import annotations

import httpx
import trio.testing
from trio.testing import MockClock

from actors.config.presence import ConnectorPresence, PresenceConfig
from actors.messages.deliveries import Reaction
from actors.messages.inbound import Address
from actors.transport import Earlier
from tests.support.chat.matrix_bed import ANNA, ROOM, SAM, ZOE, MatrixBed

SHOWN = PresenceConfig(connectors={"matrix": ConnectorPresence(reactions=True)})


def bed_with_signs() -> MatrixBed:
    bed = MatrixBed("anna")
    bed.presence = SHOWN
    bed.server.room(ROOM, ZOE, SAM, ANNA)
    return bed


async def ask(bed: MatrixBed, text: str) -> str:
    """Have Zoe ask; Anna puts her sign there, and the question is worked on."""
    asked = bed.server.say(ROOM, ZOE, text)
    inbound = await bed.ingress.next()
    end(bed, asked, "")
    reaction = Reaction(
        correlation_id=inbound.id,
        address=Address("matrix", ROOM),
        agent="anna",
        message=asked,
        sign="👀",
    )
    await bed.transport.presence.react(reaction)
    return asked


def end(bed: MatrixBed, asked: str, outcome: str = "replied:ok") -> None:
    """Have a question settled."""
    (inbound,) = [x for x in bed.ingress.accepted if x.platform_id == asked]
    bed.ingress.answered["matrix", asked] = Earlier(inbound, outcome, ())


def signs(bed: MatrixBed) -> list[str]:
    """Give the messages that have Anna's sign."""
    said = [e["content"] for e in bed.server.events if e["type"] == "m.reaction"]
    return [each["m.relates_to"]["event_id"] for each in said if each]


async def test_after_a_restart_only_what_is_worked_on_has_the_sign() -> None:
    bed = bed_with_signs()
    async with bed.listening():
        first, second = await ask(bed, "one"), await ask(bed, "two")
        assert signs(bed) == [first, second]
    end(bed, first)
    bed.transport = bed.make()
    async with bed.listening():
        await bed.wait(lambda: signs(bed) == [second])
        await trio.testing.wait_all_tasks_blocked()
    assert signs(bed) == [second]


async def test_after_trouble_with_the_server_signs_are_looked_at_again(
    autojump_clock: MockClock,
) -> None:
    del autojump_clock
    bed = bed_with_signs()
    async with bed.listening() as server:
        first = await ask(bed, "one")
        end(bed, first)
        server.faults.append(("/sync", httpx.ReadError("gone")))
        server.say(ROOM, SAM, "well?")
        await bed.wait(lambda: not signs(bed))


async def test_what_a_kick_left_behind_goes_when_the_agent_is_back(
    autojump_clock: MockClock,
) -> None:
    del autojump_clock
    bed = bed_with_signs()
    async with bed.listening() as server:
        first = await ask(bed, "one")
        server.member(ROOM, ANNA, "leave", by=ZOE)
        end(bed, first, "dropped:unsaid")
        server.member(ROOM, ANNA, "invite", by=ZOE)
        await bed.wait(lambda: not signs(bed))


async def test_where_no_signs_are_put_none_are_looked_for() -> None:
    bed = bed_with_signs()
    bed.presence = PresenceConfig()
    async with bed.listening():
        first = await ask(bed, "one")
    end(bed, first)
    bed.transport = bed.make()
    async with bed.listening():
        await trio.testing.wait_all_tasks_blocked()
    assert signs(bed) == [first]
