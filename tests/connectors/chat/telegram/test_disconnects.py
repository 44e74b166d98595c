"""Twelve ways to lose Telegram: no message is lost by them, and none is taken twice."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import httpx
import pytest
import trio
from trio.testing import MockClock

from actors.errors import OverloadedError
from runtime.errors import StoreUnavailableError
from tests.fakes.telegram.api import refusal
from tests.support.chat.telegram_bed import SAM, ZOE, BotBed

Script = Callable[[BotBed], Awaitable[None]]
FAULT = httpx.Response | Exception | None


def faults(*given: FAULT) -> Script:
    """Let the next polls end so."""

    async def play(bed: BotBed) -> None:
        bed.server.faults.extend(("getUpdates", each) for each in given)
        await trio.sleep(1)

    return play


async def stay_away(bed: BotBed) -> None:
    """Have Telegram refuse connections for five minutes."""
    bed.server.is_down = True
    bed.server.note_change()
    await trio.sleep(300)
    bed.server.is_down = False


async def poll_elsewhere(bed: BotBed) -> None:
    """Have another program ask for the same bot's messages, three times."""
    token = next(iter(bed.server.bots))
    async with httpx.AsyncClient(transport=bed.server.network) as client:
        for _ in range(3):
            url = f"https://api.telegram.test/bot{token}/getUpdates"
            await client.post(url, json={"timeout": 5, "allowed_updates": ["poll"]})
            await trio.sleep(2)


async def set_webhook_elsewhere(bed: BotBed) -> None:
    """Have another program set a webhook, and take it away after a while."""
    bot = bed.bot()
    bot.webhook["url"] = "https://elsewhere.test"
    bot.polls += 1
    bed.server.note_change()
    await trio.sleep(90)
    bot.webhook["url"] = ""


async def half_open(bed: BotBed) -> None:
    """Let the connection go silent: nothing comes, and nothing breaks."""
    bed.server.silence = trio.Event()
    bed.server.note_change()
    await trio.sleep(200)
    assert "not done" in bed.transport.trouble or "Timeout" in bed.transport.trouble
    bed.server.silence.set()


async def full_disk(bed: BotBed) -> None:
    """Let the disk take nothing for a minute."""
    bed.ingress.error = StoreUnavailableError("disk full")
    await trio.sleep(60)
    bed.ingress.error = None


async def too_much(bed: BotBed) -> None:
    """Let too much wait for a minute."""
    bed.ingress.error = OverloadedError("too much")
    await trio.sleep(60)
    bed.ingress.error = None


async def no_bookmark(bed: BotBed) -> None:
    """Let the place not be kept."""
    bed.bookmarks.error = StoreUnavailableError("disk full")
    await trio.sleep(60)
    bed.bookmarks.error = None


async def hot_server(bed: BotBed) -> None:
    """Let the server hold no question."""
    bed.server.forgets_to_wait = True
    bed.server.note_change()
    before = bed.server.count("getUpdates")
    await trio.sleep(60)
    assert bed.server.count("getUpdates") - before < 70


HTML = httpx.Response(200, text="<html>we are sorry</html>")
NO_RESULT = httpx.Response(200, json={"ok": True})
HALF = httpx.Response(200, text='{"ok": true, "result": [{"update_id": 7')

SCRIPTS: dict[str, Script] = {
    "dropped in mid-poll": faults(httpx.RemoteProtocolError("disconnected")),
    "answer lost": faults(None, None),
    "reset": faults(httpx.ReadError("reset by peer"), httpx.ReadError("again")),
    "refused": stay_away,
    "5xx": faults(refusal(502, "Bad Gateway"), httpx.Response(500), refusal(504)),
    "429": faults(refusal(429, "Too Many Requests", {"retry_after": 40})),
    "nonsense": faults(HTML, NO_RESULT, HALF, httpx.Response(200)),
    "half-open": half_open,
    "two pollers": poll_elsewhere,
    "webhook": set_webhook_elsewhere,
    "proxy in trouble": faults(refusal(400, "Bad Request"), refusal(403, "no")),
    "full disk": full_disk,
    "overload": too_much,
    "no bookmark": no_bookmark,
    "hot server": hot_server,
}


@pytest.mark.parametrize("name", SCRIPTS)
async def test_nothing_is_lost_and_nothing_doubled(
    name: str, autojump_clock: MockClock
) -> None:
    del autojump_clock
    bed = BotBed()
    chat = bed.server.private(1, "anna_bot")
    async with bed.listening() as server, trio.open_nursery() as nursery:
        nursery.start_soon(SCRIPTS[name], bed)
        for number in range(20):
            await trio.sleep(4)
            server.say(chat, ZOE, f"{number}")
        await bed.wait(lambda: len(bed.ingress.accepted) >= 20, within=2_000)
        await bed.wait(lambda: not bed.bot().updates, within=200)
        await trio.sleep(100)
    assert bed.texts() == [f"{number}" for number in range(20)]


@pytest.mark.parametrize("name", ["dropped in mid-poll", "5xx", "two pollers"])
async def test_trouble_is_seen_and_its_end_too(
    name: str, autojump_clock: MockClock
) -> None:
    del autojump_clock
    bed = BotBed()
    async with bed.listening():
        assert bed.counted("up") == 1
        await SCRIPTS[name](bed)
        bed.server.note_change()
        await bed.wait(lambda: bed.counted("reconnects_total") >= 1)
        await bed.wait(lambda: bed.transport.trouble == "")
        assert (bed.counted("conflicts_total") > 0) == (name == "two pollers")
        assert bed.counted("polled_timestamp_seconds") > 0
    assert bed.counted("up") == 0


async def test_a_revoked_token_ends_one_bot_and_says_what_to_do(
    autojump_clock: MockClock,
) -> None:
    del autojump_clock
    bed = BotBed("anna", "ben")
    chat = bed.server.private(1, "ben_bot")
    async with bed.listening() as server:
        token = next(iter(server.bots))
        revoked = server.bots.pop(token)
        revoked.polls += 1
        server.note_change()
        anna = bed.transport._shared.bots["anna"]
        await bed.wait(lambda: "401" in anna.refused)
        assert bed.transport.trouble == ""
        server.say(chat, ZOE, "and you?")
        assert (await bed.ingress.next_or_wait()).agent == "ben"
        server.bots[token] = revoked
        await bed.wait(lambda: not anna.trouble)
        server.bots.pop(token)
        revoked.polls += 1
        server.note_change()
        await bed.wait(lambda: "401" in anna.refused)
        before = len(server.urls)
        await trio.sleep(86_400)
        assert sum(token in each for each in server.urls[before:]) <= 50
    assert "401" in bed.transport.trouble


async def test_what_is_nothing_to_a_bot_is_confirmed_too(
    autojump_clock: MockClock,
) -> None:
    del autojump_clock
    bed = BotBed()
    async with bed.listening():
        chat = {"id": -5, "type": "group", "title": "room"}
        said = {"message_id": 9, "date": 1, "chat": chat, "new_chat_title": "room"}
        bed.bot().tell("message", said)
        await bed.wait(lambda: not bed.bot().updates)
    assert bed.ingress.accepted == []
    assert bed.bookmarks.offsets == {7: 701}


async def test_what_was_taken_is_confirmed_and_not_asked_for_again(
    autojump_clock: MockClock,
) -> None:
    del autojump_clock
    bed = BotBed()
    chat = bed.server.private(1, "anna_bot")
    async with bed.listening() as server:
        bed.ingress.gate = trio.Event()
        server.say(chat, ZOE, "one")
        await bed.ingress.is_asked.wait()
        await trio.sleep(10)
        assert len(bed.bot().updates) == 1
        assert bed.bookmarks.offsets == {}
        bed.ingress.gate.set()
        await bed.wait(lambda: not bed.bot().updates)
        assert bed.bookmarks.offsets == {7: 701}
        await trio.sleep(100)
        # Confirmed once: after a week Telegram counts elsewhere.
        asked = [each.get("offset") for each in server.asked_with("getUpdates")]
        assert asked.count(701) == 1
        bed.bot().next_update = 5
        server.say(chat, ZOE, "after a week")
        await bed.wait(lambda: len(bed.ingress.accepted) == 2)


async def test_a_chat_that_waits_keeps_no_other_chat_waiting(
    autojump_clock: MockClock,
) -> None:
    del autojump_clock
    bed = BotBed()
    one, two = (bed.server.private(each, "anna_bot") for each in (1, 2))
    bed.ingress.gates["1"] = has_room = trio.Event()
    async with bed.listening() as server:
        server.say(one, ZOE, "first")
        await trio.sleep(1)
        server.say(one, ZOE, "second")
        server.say(two, SAM, "hello")
        await bed.wait(lambda: bed.texts() == ["hello"], within=5)
        before = server.count("getUpdates")
        await trio.sleep(60)
        assert server.count("getUpdates") - before < 70
        assert bed.bookmarks.offsets[7] == 700, "what waits is not confirmed"
        has_room.set()
        await bed.wait(lambda: not bed.bot().updates)
    assert bed.texts() == ["hello", "first", "second"]


async def test_after_a_restart_it_goes_on_where_it_was(
    autojump_clock: MockClock,
) -> None:
    del autojump_clock
    bed = BotBed()
    chat = bed.server.private(1, "anna_bot")
    async with bed.listening() as server:
        server.faults.append(("getUpdates", httpx.ReadError("x")))
        server.say(chat, ZOE, "one")
        await bed.wait(lambda: bool(bed.bookmarks.offsets))
    bed.server.say(chat, ZOE, "two")
    bed.transport = bed.make()
    async with bed.listening():
        await bed.wait(lambda: len(bed.ingress.accepted) == 2)
    assert bed.texts() == ["one", "two"]
