"""Accounts stay in step: gaps, limits, outages, restarts, and who hands in what."""

from __future__ import annotations

import httpx
import pytest
import trio
import trio.testing
from trio.testing import MockClock

from actors.errors import MessageRefusedError, OverloadedError, StoppingError
from connectors.chat.matrix.account import MatrixAccount
from runtime.errors import MisuseError, StoreUnavailableError
from tests.fakes.matrix.homeserver import refusal
from tests.support.chat.matrix_bed import ANNA, BEN, ROOM, SAM, ZOE, MatrixBed, delivery


def texts(bed: MatrixBed) -> list[str]:
    return [inbound.text for inbound in bed.ingress.accepted]


async def test_a_message_that_two_accounts_hear_is_handed_in_once(
    autojump_clock: MockClock,
) -> None:
    del autojump_clock
    bed = MatrixBed()
    bed.server.room(ROOM, ZOE, ANNA, BEN)
    async with bed.listening() as server:
        for number in range(20):
            server.say(ROOM, ZOE, f"{number}")
        await bed.wait(lambda: len(bed.ingress.accepted) == 20)
        await bed.wait(lambda: len(set(bed.bookmarks.tokens.values())) == 1)
    assert texts(bed) == [f"{number}" for number in range(20)]
    first = bed.ingress.accepted[0]
    assert (first.present, first.is_direct, first.agent) == (("anna", "ben"), False, "")
    assert (first.sender_id, first.sender_name) == (ZOE, "zoe")
    handed = [bed.counted("events_total", **label(name, "handed_in")) for name in NAMES]
    assert sum(handed) == 20


NAMES = ("anna", "ben")
WORD = "of anna"


def label(account: str, outcome: str) -> dict[str, str]:
    return {"account": account, "connector": "matrix", "outcome": outcome}


async def test_a_message_that_people_redact_is_withdrawn() -> None:
    bed = MatrixBed("anna")
    bed.server.room(ROOM, ZOE, SAM, ANNA)
    async with bed.listening() as server:
        asked = server.say(ROOM, ZOE, "hello")
        await bed.ingress.next()
        own = await bed.transport.deliver(delivery("hi"))
        server.add(ROOM, ANNA, "m.room.redaction", {"redacts": own})
        server.add(ROOM, SAM, "m.room.redaction", {})["redacts"] = asked
        server.say(ROOM, ZOE, "thanks")
        assert (await bed.ingress.next()).text == "thanks"
    assert bed.ingress.withdrawn == [("matrix", asked)]


async def test_a_room_that_waits_keeps_no_other_room_waiting(
    autojump_clock: MockClock,
) -> None:
    del autojump_clock
    bed = MatrixBed("anna")
    bed.server.room(ROOM, ZOE, ANNA)
    bed.server.room("!other:test", SAM, ANNA)
    bed.ingress.gates[ZOE] = has_room = trio.Event()
    async with bed.listening() as server:
        before = dict(bed.bookmarks.tokens)
        server.say(ROOM, ZOE, "first")
        await trio.sleep(1)
        server.say(ROOM, ZOE, "second")
        server.say("!other:test", SAM, "hello")
        await bed.wait(lambda: texts(bed) == ["hello"], within=5)
        await trio.sleep(60)
        assert bed.bookmarks.tokens == before, "what waits is not passed over"
        has_room.set()
        await bed.wait(lambda: len(bed.ingress.accepted) == 3)
        await bed.wait(lambda: bed.bookmarks.tokens != before)
    assert texts(bed) == ["hello", "first", "second"]


async def test_stickers_and_polls_are_asked_for_also_in_a_gap(
    autojump_clock: MockClock,
) -> None:
    del autojump_clock
    bed = MatrixBed("anna")
    bed.server.room(ROOM, ZOE, ANNA)
    sticker: dict[str, object] = {"body": "a fox", "url": "mxc://a/b"}
    kind = "org.matrix.msc3381.poll.start"
    asked = {"question": {"org.matrix.msc1767.text": "Tea?"}}
    poll: dict[str, object] = {kind: asked}
    async with bed.listening() as server:
        server.add(ROOM, ZOE, "m.sticker", sticker)
        assert (await bed.ingress.next()).text == "[sticker: a fox]"
        server.add(ROOM, ZOE, kind, poll)
        assert (await bed.ingress.next()).text == "[poll: Tea?]"
    bed.server.add(ROOM, ZOE, kind, poll)
    bed.server.add(ROOM, ZOE, "m.sticker", sticker)
    for number in range(60):
        bed.server.say(ROOM, ZOE, f"{number}")
    bed.transport = bed.make()
    async with bed.listening():
        await bed.wait(lambda: len(bed.ingress.accepted) == 64)
    assert texts(bed)[2:4] == ["[poll: Tea?]", "[sticker: a fox]"]


@pytest.mark.parametrize("is_shown", [True, False])
async def test_people_see_up_to_where_their_messages_were_read(
    *, is_shown: bool
) -> None:
    bed = MatrixBed("anna", mark_read=is_shown)
    bed.server.room(ROOM, ZOE, SAM, ANNA)
    bed.ingress.strangers.add(SAM)
    asked = ""
    async with bed.listening() as server:
        server.faults.append(("/receipt/", refusal(429, "M_LIMIT_EXCEEDED")))
        for text in ("one", "two"):
            asked = server.say(ROOM, ZOE, text)
            await bed.ingress.next()
            await trio.testing.wait_all_tasks_blocked()
        server.say(ROOM, SAM, "and I?")
        await bed.wait(lambda: len(bed.ingress.turned_away) == 1)
        await trio.testing.wait_all_tasks_blocked()
    assert bed.server.read == ({(ROOM, ANNA): asked} if is_shown else {})


async def test_a_store_that_cannot_be_read_holds_no_redaction_up() -> None:
    bed = MatrixBed("anna")
    bed.server.room(ROOM, ZOE, SAM, ANNA)
    bed.ingress.unreadable = StoreUnavailableError("disk full")
    async with bed.listening() as server:
        server.add(ROOM, ZOE, "m.room.redaction", {"redacts": "$e0"})
        server.say(ROOM, ZOE, "hello")
        assert (await bed.ingress.next()).text == "hello"


async def test_what_was_said_before_the_first_start_is_not_answered(
    autojump_clock: MockClock,
) -> None:
    del autojump_clock
    bed = MatrixBed("anna")
    bed.server.room(ROOM, ZOE, ANNA)
    bed.server.say(ROOM, ZOE, "long ago")
    async with bed.listening() as server:
        server.say(ROOM, ZOE, "now")
        inbound = await bed.ingress.next()
    assert (inbound.text, inbound.is_direct, inbound.agent) == ("now", True, "anna")
    assert texts(bed) == ["now"]


async def test_who_wrote_minutes_before_the_first_start_is_answered(
    autojump_clock: MockClock,
) -> None:
    del autojump_clock
    bed = MatrixBed("anna")
    server = bed.server
    server.room(ROOM, ZOE, ANNA)
    for number in range(30):
        server.say(ROOM, ZOE, f"long ago {number}")
        server.events[-1]["unsigned"] = {"age": 3_600_000}
    server.say(ROOM, ZOE, "a minute ago")
    server.events[-1]["unsigned"] = {"age": 60_000}
    async with bed.listening():
        server.say(ROOM, ZOE, "now")
        await bed.wait(lambda: len(texts(bed)) == 2)
    assert texts(bed) == ["a minute ago", "now"]


async def test_after_a_restart_it_goes_on_where_it_was(
    autojump_clock: MockClock,
) -> None:
    del autojump_clock
    bed = MatrixBed("anna")
    bed.server.room(ROOM, ZOE, ANNA)
    async with bed.listening() as server:
        server.say(ROOM, ZOE, "one")
        await bed.wait(lambda: texts(bed) == ["one"])
        await bed.wait(lambda: bed.bookmarks.tokens[ANNA] == f"s{len(server.events)}")
    bed.server.say(ROOM, ZOE, "two")
    bed.transport = bed.make()
    async with bed.listening():
        await bed.wait(lambda: len(bed.ingress.accepted) == 2)
    assert texts(bed) == ["one", "two"]


async def test_no_place_is_kept_before_its_messages_are_accepted(
    autojump_clock: MockClock,
) -> None:
    del autojump_clock
    bed = MatrixBed("anna")
    bed.server.room(ROOM, ZOE, ANNA)
    async with bed.listening() as server:
        before = bed.bookmarks.tokens[ANNA]
        bed.ingress.gate = trio.Event()
        server.say(ROOM, ZOE, "one")
        await bed.ingress.is_asked.wait()
        await trio.sleep(10)
        assert bed.bookmarks.tokens[ANNA] == before
        bed.ingress.gate.set()
        await bed.wait(lambda: bed.bookmarks.tokens[ANNA] != before)


async def test_a_gap_is_filled_in_order(autojump_clock: MockClock) -> None:
    del autojump_clock
    bed = MatrixBed("anna")
    bed.server.room(ROOM, ZOE, ANNA)
    async with bed.listening():
        pass
    for number in range(230):
        bed.server.say(ROOM, ZOE, f"{number}")
    bed.transport = bed.make()
    async with bed.listening():
        await bed.wait(lambda: len(bed.ingress.accepted) == 230)
    assert texts(bed) == [f"{number}" for number in range(230)]
    where = {"account": "anna", "connector": "matrix"}
    assert bed.counted("gaps_total", outcome="filled", **where) == 1


async def test_a_gap_that_is_too_long_is_left_open_and_counted(
    autojump_clock: MockClock,
) -> None:
    del autojump_clock
    bed = MatrixBed("anna", backfill=30)
    bed.server.room(ROOM, ZOE, ANNA)
    async with bed.listening():
        pass
    for number in range(230):
        bed.server.say(ROOM, ZOE, f"{number}")
    bed.transport = bed.make()
    async with bed.listening():
        await bed.wait(lambda: len(bed.ingress.accepted) == 80)
        await bed.wait(lambda: bed.bookmarks.tokens[ANNA] == "s232")
    assert texts(bed) == [f"{number}" for number in range(150, 230)]
    where = {"account": "anna", "connector": "matrix"}
    assert bed.counted("gaps_total", outcome="open", **where) == 1


async def test_a_homeserver_that_comes_back_is_heard_again(
    autojump_clock: MockClock,
) -> None:
    del autojump_clock
    bed = MatrixBed("anna")
    bed.server.room(ROOM, ZOE, ANNA)
    async with bed.listening() as server:
        server.is_down = True
        server.faults.append(("sync", httpx.ReadError("reset")))
        await bed.wait(lambda: "refused" in bed.transport.trouble)
        server.say(ROOM, ZOE, "are you there?")
        await trio.sleep(300)
        server.is_down = False
        inbound = await bed.ingress.next_or_wait()
        assert inbound.text == "are you there?"
        assert bed.transport.trouble == ""
    where = {"account": "anna", "connector": "matrix"}
    assert bed.counted("reconnects_total", **where) == 1


async def test_it_waits_as_long_as_it_is_asked_to(autojump_clock: MockClock) -> None:
    bed = MatrixBed("anna")
    bed.server.room(ROOM, ZOE, ANNA)
    busy = refusal(429, "M_LIMIT_EXCEEDED", retry_after_ms=90_000)
    async with bed.listening() as server:
        server.faults.append(("sync", busy))
        server.say(ROOM, ZOE, "one")
        await bed.ingress.next_or_wait()
        asked, began = server.count("sync"), autojump_clock.current_time()
        server.say(ROOM, ZOE, "two")
        await bed.ingress.next_or_wait()
        assert autojump_clock.current_time() - began >= 90
        assert server.count("sync") - asked <= 2


async def test_an_account_that_is_not_let_in_stops_alone_and_tries_again(
    autojump_clock: MockClock,
) -> None:
    del autojump_clock
    bed = MatrixBed()
    bed.server.room(ROOM, ZOE, ANNA, BEN)
    async with bed.listening() as server:
        server.faults.append(("sync", refusal(401, "M_UNKNOWN_TOKEN")))
        server.say(ROOM, ZOE, "one")
        await bed.wait(lambda: any(each.refused for each in accounts(bed)))
        server.say(ROOM, ZOE, "two")
        await bed.wait(lambda: texts(bed) == ["one", "two"])
        assert [bool(each.refused) for each in accounts(bed)].count(True) == 1
        assert bed.transport.trouble == ""
        await bed.wait(lambda: not any(each.trouble for each in accounts(bed)))


def accounts(bed: MatrixBed) -> list[MatrixAccount]:
    return [*bed.transport.accounts.values()]


@pytest.mark.parametrize("error", [OverloadedError("too much"), StoppingError("ends")])
async def test_what_is_not_taken_is_tried_again(
    error: Exception, autojump_clock: MockClock
) -> None:
    del autojump_clock
    bed = MatrixBed("anna")
    bed.server.room(ROOM, ZOE, ANNA)
    async with bed.listening() as server:
        bed.ingress.error = error
        server.say(ROOM, ZOE, "one")
        await trio.sleep(20)
        assert len(server.said(ROOM, ANNA)) == isinstance(error, OverloadedError)
        bed.ingress.error = None
        assert (await bed.ingress.next_or_wait()).text == "one"


@pytest.mark.parametrize("error", [MessageRefusedError("too long"), MisuseError("odd")])
async def test_what_is_never_taken_holds_nothing_back(
    error: Exception, autojump_clock: MockClock
) -> None:
    del autojump_clock
    bed = MatrixBed("anna")
    bed.server.room(ROOM, ZOE, ANNA)
    async with bed.listening() as server:
        bed.ingress.error = error
        server.say(ROOM, ZOE, "one")
        await bed.wait(lambda: len(server.said(ROOM, ANNA)) == 1)
        bed.ingress.error = None
        server.say(ROOM, ZOE, "two")
        assert (await bed.ingress.next_or_wait()).text == "two"
        assert server.said(ROOM, ANNA)[0]["content"]["msgtype"] == "m.notice"


async def test_small_talk_that_is_not_taken_is_answered_by_no_notice(
    autojump_clock: MockClock,
) -> None:
    del autojump_clock
    bed = MatrixBed("anna")
    bed.server.room(ROOM, ZOE, SAM, ANNA)
    async with bed.listening() as server:
        bed.ingress.error = MessageRefusedError("too long")
        server.say(ROOM, ZOE, "one")
        server.say(ROOM, ZOE, f"{ANNA} two")
        await bed.wait(lambda: len(server.said(ROOM, ANNA)) == 1)


async def test_a_token_the_server_has_forgotten_begins_anew(
    autojump_clock: MockClock,
) -> None:
    del autojump_clock
    bed = MatrixBed("anna")
    bed.server.room(ROOM, ZOE, ANNA)
    async with bed.listening() as server:
        server.faults.append(("sync", refusal(400, "M_INVALID_PARAM")))
        server.say(ROOM, ZOE, "one")
        await bed.ingress.next_or_wait()
        server.say(ROOM, ZOE, "lost")
        where = {"account": "anna", "connector": "matrix", "outcome": "open"}
        await bed.wait(lambda: bed.counted("gaps_total", **where) == 1)
        server.say(ROOM, ZOE, "three")
        assert (await bed.ingress.next_or_wait()).text == "three"


async def test_a_password_is_used_once_and_again_when_its_token_ends(
    autojump_clock: MockClock,
) -> None:
    del autojump_clock
    bed = MatrixBed("anna", password=WORD)
    bed.server.room(ROOM, ZOE, ANNA)
    async with bed.listening() as server:
        server.users = {k: v for k, v in server.users.items() if v != ANNA}
        server.say(ROOM, ZOE, "one")
        assert (await bed.ingress.next_or_wait()).text == "one"
        assert await bed.transport.deliver(delivery("hi"))
        assert server.logins == 2
