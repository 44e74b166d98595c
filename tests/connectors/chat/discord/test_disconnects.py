"""However Discord fails, no message is lost and none comes twice: a script for each."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from functools import partial

import pytest

from actors.errors import DeliveryBusyError, DeliveryUnknownError
from tests.fakes.discord.server import Fault
from tests.fakes.discord.world import ADMINS, CHANNEL, ZOE
from tests.support.chat.discord_bed import DiscordBed, delivery, open_bed

LABELS = {"connector": "discord", "account": "anna"}
ODD = json.dumps({"op": 0, "t": "GUILD_ROLE_UPDATE", "s": 99, "d": {"guild_id": None}})


async def away(bed: DiscordBed) -> None:
    """Wait until the bot has noticed that something is wrong."""
    await bed.wait(lambda: not bed.all_hear())


async def drop(bed: DiscordBed) -> None:
    """Cut the connection; what is said meanwhile is told again by Discord."""
    await bed.bridge.call(bed.server.gateway.drop)


async def drop_and_forget(bed: DiscordBed) -> None:
    """Cut the connection, and forget the session."""
    bed.server.gateway.sessions, gone = [], bed.server.gateway.sessions
    for session in gone:
        bed.server.gateway.sessions = [session]
        await bed.bridge.call(bed.server.gateway.drop)
    bed.server.gateway.sessions = []


async def reconnect(bed: DiscordBed) -> None:
    """Ask the bot to connect anew (opcode 7)."""
    await bed.bridge.call(bed.server.gateway.reconnect)


async def may_resume(bed: DiscordBed) -> None:
    """Say that the session is invalid, but may go on (opcode 9, true)."""
    await bed.bridge.call(partial(bed.server.gateway.invalidate, is_resumable=True))


async def close_odd(bed: DiscordBed) -> None:
    """Close with a code after which the session goes on."""
    await bed.bridge.call(bed.server.gateway.close, 4000)


async def close_plain(bed: DiscordBed) -> None:
    """Close as if all were over (1000)."""
    await bed.bridge.call(bed.server.gateway.close, 1000)


async def odd_payload(bed: DiscordBed) -> None:
    """Send what discord.py cannot read: its client ends."""
    await bed.bridge.call(bed.server.gateway.send_raw, ODD)


async def bad_json(bed: DiscordBed) -> None:
    """Send what is no JSON: its client ends."""
    await bed.bridge.call(bed.server.gateway.send_raw, "{")


async def deaf(bed: DiscordBed) -> None:
    """Say nothing any more, with the connection standing."""
    bed.server.gateway.is_deaf = True
    await away(bed)
    bed.server.gateway.is_deaf = False


async def history_fails(bed: DiscordBed) -> None:
    """Forget the session, and fail when the history is asked for."""
    bed.server.faults.append(Fault("GET", "/messages", 503))
    await drop_and_forget(bed)


async def history_cut(bed: DiscordBed) -> None:
    """Forget the session, and cut the connection when the history is asked for."""
    bed.server.faults.append(Fault("GET", "/messages", is_reset=True))
    await drop_and_forget(bed)


async def history_limited(bed: DiscordBed) -> None:
    """Forget the session, and have the history wait."""
    body = json.dumps({"message": "slow", "retry_after": 0.1, "global": False})
    fault = Fault("GET", "/messages", 429, body, (("Via", "1.1 test"),))
    bed.server.faults.append(fault)
    await drop_and_forget(bed)


async def history_odd(bed: DiscordBed) -> None:
    """Forget the session, and give a history that makes no sense."""
    bed.server.faults.append(Fault("GET", "/messages", 200, '{"no": "list"}'))
    await drop_and_forget(bed)


SCRIPTS: list[Callable[[DiscordBed], Awaitable[None]]] = [
    drop,
    drop_and_forget,
    reconnect,
    may_resume,
    close_odd,
    close_plain,
    odd_payload,
    bad_json,
    deaf,
    history_fails,
    history_cut,
    history_limited,
    history_odd,
]


# Discord has a client wait five seconds before it begins a new session.
PATIENT = {history_fails, history_cut, history_limited, history_odd}


@pytest.mark.parametrize(
    "script",
    [
        pytest.param(
            each, id=each.__name__, marks=[pytest.mark.deep] * (each in PATIENT)
        )
        for each in SCRIPTS
    ],
)
async def test_no_message_is_lost_and_none_comes_twice(
    script: Callable[[DiscordBed], Awaitable[None]],
) -> None:
    async with open_bed("anna", silence_timeout=1.0) as bed, bed.listening():
        await bed.wait(bed.all_hear)
        assert bed.counted("reconnects_total", **LABELS) == 0
        chat = bed.world.direct(bed.bots["anna"])
        await bed.say("before", channel=chat)
        await bed.say("one")
        await bed.wait(lambda: len(bed.ingress.accepted) == 2)
        await script(bed)
        await bed.say("two")
        await bed.say("between", channel=chat)
        await bed.wait(bed.all_hear, within=30)
        await bed.wait(lambda: bed.counted("reconnects_total", **LABELS) >= 1)
        await bed.say("three")
        await bed.wait(lambda: len(bed.ingress.accepted) == 5, within=30)
        await bed.say("four")
        await bed.wait(lambda: bed.heard()[-1] == "four", within=30)
        in_channel = [e.text for e in bed.ingress.accepted if not e.is_direct]
        directly = [e.text for e in bed.ingress.accepted if e.is_direct]
        assert in_channel == ["one", "two", "three", "four"]
        assert directly == ["before", "between"]


async def test_what_was_said_while_nobody_listened_is_read_after_a_restart() -> None:
    async with open_bed("anna") as bed:
        chat = bed.world.direct(bed.bots["anna"])
        async with bed.listening():
            await bed.say("one")
            await bed.say("psst", channel=chat)
            await bed.wait(lambda: len(bed.ingress.accepted) == 2)
            await bed.wait(lambda: bool(bed.bookmarks.places["anna"].side))
        for text in ("two", "three"):
            await bed.say(text)
        await bed.say("still there?", channel=chat)
        bed.make()
        async with bed.listening():
            await bed.wait(lambda: len(bed.ingress.accepted) == 5)
        heard = bed.heard()
        assert heard.index("two") < heard.index("three")
        assert len(set(heard)) == len(heard) == 5


async def test_an_odd_message_is_heard_though_it_ends_the_client() -> None:
    async with open_bed("anna") as bed, bed.listening():
        # Such a thread discord.py cannot read; we read the payload before it does.
        message = bed.world.add_message(CHANNEL, ZOE, "odd", thread={})
        await bed.bridge.call(partial(bed.server.gateway.tell_message, message))
        await bed.wait(lambda: bed.heard() == ["odd"])
        await bed.wait(lambda: bed.counted("restarts_total", **LABELS) == 1)
        await bed.wait(bed.all_hear)
        await bed.say("next")
        await bed.wait(lambda: bed.heard() == ["odd", "next"])


async def test_a_token_that_is_revoked_stops_the_bot_and_says_what_to_do() -> None:
    async with open_bed("anna") as bed, bed.listening():
        await bed.bridge.call(bed.server.gateway.close, 4004)
        # Before it has looked why, it says that its connection is gone.
        await bed.wait(lambda: "Reset Token" in bed.transport.trouble)


async def test_what_finds_no_room_is_fetched_in_its_place() -> None:
    async with open_bed("anna") as bed:
        bed.most_events = 3
        bed.make()
        async with bed.listening():
            await bed.bridge.call(burst, bed)
            await bed.wait(lambda: len(bed.ingress.accepted) == 60)
            assert bed.heard() == [str(number) for number in range(60)]
            assert bed.counted("events_total", outcome="overrun", **LABELS) > 0
            await bed.wait(lambda: has_read_all(bed))


async def burst(bed: DiscordBed) -> None:
    for number in range(60):
        await bed.server.say(CHANNEL, ZOE, str(number))


def has_read_all(bed: DiscordBed) -> bool:
    last = int(bed.world.messages[CHANNEL][-1]["id"])
    return bed.bookmarks.places["anna"].after == last


async def test_a_gap_that_is_too_long_is_counted_and_its_end_is_read() -> None:
    async with open_bed("anna", backfill=3) as bed:
        async with bed.listening():
            await bed.say("one")
            await bed.wait(lambda: "anna" in bed.bookmarks.places)
        for number in range(9):
            await bed.say(str(number))
        bed.make()
        async with bed.listening():
            await bed.wait(lambda: bed.heard()[-3:] == ["6", "7", "8"])
            assert bed.counted("gaps_total", **{**LABELS, "outcome": "open"}) == 1


async def test_what_is_read_later_tells_the_roles_of_who_wrote_it() -> None:
    async with open_bed("anna") as bed:
        async with bed.listening():
            await bed.say("one")
            await bed.ingress.next()
        bed.world.members[ZOE]["roles"] = [ADMINS]
        await bed.say("two")
        bed.make()
        async with bed.listening():
            got = await bed.ingress.next()
            assert (got.text, got.roles) == ("two", ("admin", f"role:{ADMINS}"))


async def test_an_answer_whose_receipt_got_lost_is_said_once() -> None:
    async with open_bed("anna", request_timeout=5.0) as bed, bed.listening():
        fault = Fault("POST", "/messages", is_done=True, is_reset=True)
        bed.server.faults.append(fault)
        said = delivery("hi")
        with pytest.raises((DeliveryBusyError, DeliveryUnknownError)):
            await bed.transport.deliver(said)
        assert await bed.transport.deliver(said)
        assert bed.said() == ["anna: hi"]
