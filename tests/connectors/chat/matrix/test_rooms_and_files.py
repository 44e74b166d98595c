"""Invitations, quotes and files, as the accounts meet them."""

from __future__ import annotations

import httpx
import pytest
import trio
from msgspec import structs
from trio.testing import MockClock

from actors.errors import OverloadedError
from actors.messages.inbound import Attachment, Quoted
from connectors.chat.inbound import MOST_IN_ALL, NO_ROOM
from connectors.chat.matrix.rooms import ANSWERED_WITHIN
from connectors.chat.requests import TRIED_WITHIN
from tests.fakes.matrix.homeserver import refusal
from tests.support.chat.matrix_bed import ANNA, BEN, ROOM, SAM, ZOE, MatrixBed, delivery

WORD = "open sesame"


async def test_an_owners_invitation_is_accepted_and_a_strangers_declined(
    autojump_clock: MockClock,
) -> None:
    del autojump_clock
    bed = MatrixBed("anna", status="at work")
    bed.server.room("!sams:hs.test", SAM)
    bed.server.member("!sams:hs.test", ANNA, "invite", by=SAM)
    async with bed.listening() as server:
        server.room(ROOM, ZOE)
        server.say(ROOM, ZOE, "before")
        server.member(ROOM, ANNA, "invite", by=ZOE)
        server.say(ROOM, ZOE, "welcome")
        inbound = await bed.ingress.next_or_wait()
        assert server.membership("!sams:hs.test", ANNA) == "leave"
        assert server.membership(ROOM, ANNA) == "join"
        assert server.count("/presence/") == 1
    assert [inbound.text] == [each.text for each in bed.ingress.accepted] == ["welcome"]
    assert inbound.is_direct


async def test_in_private_what_is_not_answered_is_replied_to_and_an_answer_not() -> (
    None
):
    bed = MatrixBed("anna")
    bed.server.room(ROOM, ZOE, ANNA)
    async with bed.listening() as server:
        asked = server.say(ROOM, ZOE, "hi")
        inbound = await bed.ingress.next()
        said = delivery(
            "ho", address=inbound.address, agent="anna", reply_to=inbound.platform_id
        )
        await bed.transport.deliver(said)
        refused = structs.replace(said, id="refused", agent="", trouble="busy")
        await bed.transport.deliver(refused)
        assert server.count("/presence/") == 0  # there is no status to show
    answer, notice = (x for x in server.contents(ROOM, ANNA) if x.get("body") == "ho")
    assert "m.relates_to" not in answer
    assert notice["m.relates_to"] == {"m.in_reply_to": {"event_id": asked}}


async def test_an_account_that_joins_is_present_for_the_others() -> None:
    bed = MatrixBed()
    bed.server.room(ROOM, ZOE, SAM, ANNA)
    async with bed.listening() as server:
        server.say(ROOM, SAM, "one")
        assert (await bed.ingress.next()).present == ("anna",)
        server.member(ROOM, BEN, "invite", by=ZOE)
        await bed.wait(lambda: server.membership(ROOM, BEN) == "join")
        server.say(ROOM, SAM, f"{BEN} two")
        second = await bed.ingress.next()
        assert (second.present, second.mentions) == (("anna", "ben"), ("ben",))
        server.member(ROOM, BEN, "leave", by=ZOE)
        server.say(ROOM, SAM, f"{BEN} three")
        third = await bed.ingress.next()
        assert (third.present, third.mentions) == (("anna",), ())


NEW = "!new:hs.test"


def upgrade(bed: MatrixBed, *, predecessor: str = ROOM) -> None:
    """Have Sam, who is no owner, move the room."""
    made = {"room_version": "11", "predecessor": {"room_id": predecessor}}
    bed.server.state(NEW, SAM, "m.room.create", made)
    bed.server.room(NEW, SAM)
    moved = {"body": "moved", "replacement_room": NEW}
    bed.server.state(ROOM, SAM, "m.room.tombstone", moved)


async def test_a_room_that_is_moved_is_followed_if_it_is_open() -> None:
    bed = MatrixBed("anna")
    bed.server.room(ROOM, ZOE, SAM, ANNA)
    bed.server.open_rooms.add(NEW)
    async with bed.listening() as server:
        upgrade(bed)
        await bed.wait(lambda: server.membership(NEW, ANNA) == "join")
        assert server.count("/join/") == 1


@pytest.mark.parametrize(
    ("predecessor", "becomes"), [(ROOM, "join"), ("!other:hs.test", "leave")]
)
async def test_an_invitation_to_where_a_room_was_moved_needs_no_owner(
    predecessor: str, becomes: str
) -> None:
    bed = MatrixBed("anna")
    bed.server.room(ROOM, ZOE, SAM, ANNA)
    bed.server.room("!other:hs.test", ZOE, SAM, ANNA)
    async with bed.listening() as server:
        upgrade(bed, predecessor=predecessor)
        await bed.wait(lambda: server.count("/join/") == 1)
        assert server.membership(NEW, ANNA) == ""
        server.member(NEW, ANNA, "invite", by=SAM)
        await bed.wait(lambda: server.membership(NEW, ANNA) == becomes)


async def test_no_room_is_followed_by_those_whom_nobody_may_invite() -> None:
    bed = MatrixBed("anna", invites="nobody")
    bed.server.room(ROOM, ZOE, SAM, ANNA)
    bed.server.open_rooms.add(NEW)
    async with bed.listening() as server:
        upgrade(bed)
        server.say(ROOM, ZOE, "are you there?")
        await bed.ingress.next()
        server.member(NEW, ANNA, "invite", by=SAM)
        await bed.wait(lambda: server.membership(NEW, ANNA) == "leave")


async def test_a_reply_brings_what_it_replies_to() -> None:
    bed = MatrixBed("anna")
    bed.server.room(ROOM, ZOE, ANNA)
    old = bed.server.say(ROOM, ZOE, "an old word")
    async with bed.listening() as server:
        mine = await bed.transport.deliver(delivery("my word"))
        quotes = [
            (mine, Quoted("my word", "anna", "anna")),
            (old, Quoted("an old word", "zoe", "")),
            ("$gone", None),
        ]
        for event_id, quoted in quotes:
            related = {"m.in_reply_to": {"event_id": event_id}}
            server.say(ROOM, ZOE, "why?", **{"m.relates_to": related})
            inbound = await bed.ingress.next()
            assert (inbound.reply_to, inbound.quoted) == (event_id, quoted)


def image(server_name: str, **more: object) -> dict[str, object]:
    details = {"mimetype": "image/png", "size": 4}
    return {
        "msgtype": "m.image",
        "url": f"mxc://{server_name}/abc",
        "info": details,
    } | more


async def test_a_file_is_fetched_by_the_account() -> None:
    bed = MatrixBed("anna", max_media_bytes=10)
    bed.server.room(ROOM, ZOE, ANNA)
    bed.server.media["hs.test/abc"] = b"\x89PNG"
    async with bed.listening() as server:
        server.say(ROOM, ZOE, "cat.png", **image("hs.test"))
        inbound = await bed.ingress.next()
        assert server.count("/v1/media/download/hs.test/abc") == 1
    assert inbound.text == ""
    assert inbound.attachments == (
        Attachment("image", "cat.png", "image/png", content=b"\x89PNG"),
    )


async def test_a_picture_that_is_replied_to_in_a_room_comes_along() -> None:
    bed = MatrixBed("anna")
    bed.server.room(ROOM, ZOE, SAM, ANNA)
    bed.server.media["hs.test/cat"] = b"cat"
    cat = {"msgtype": "m.image", "url": "mxc://hs.test/cat"}
    async with bed.listening() as server:
        first = server.say(ROOM, SAM, "cat.png", **cat)
        related = {"m.relates_to": {"m.in_reply_to": {"event_id": first}}}
        server.say(ROOM, ZOE, "@anna whose is it?", **related)
        inbound = [await bed.ingress.next() for _ in range(2)][1]
    assert [each.content for each in inbound.attachments] == [b"cat"]
    assert inbound.quoted is not None
    assert (inbound.quoted.text, inbound.text) == ("cat.png", "@anna whose is it?")


async def test_a_file_with_the_one_that_it_answers_is_not_too_much() -> None:
    most = MOST_IN_ALL // 2 + 1
    bed = MatrixBed("anna", max_media_bytes=most)
    bed.server.room(ROOM, ZOE, SAM, ANNA)
    bed.server.media |= {f"hs.test/{name}": b"x" * most for name in ("cat", "dog")}
    cat, dog = (
        {"msgtype": "m.image", "url": f"mxc://hs.test/{x}"} for x in ("cat", "dog")
    )
    async with bed.listening() as server:
        first = server.say(ROOM, SAM, "cat.png", **cat)
        related = {"m.relates_to": {"m.in_reply_to": {"event_id": first}}}
        server.say(ROOM, ZOE, "dog.png", **dog, **related)
        inbound = [await bed.ingress.next() for _ in range(2)][1]
    assert len(inbound.attachments) == 1
    assert inbound.text == f"[image cat.png was not fetched: {NO_ROOM}]"


async def test_a_file_whose_token_has_ended_is_fetched_by_the_next_one() -> None:
    bed = MatrixBed("anna", password=WORD)
    bed.server.room(ROOM, ZOE, ANNA)
    bed.server.media["hs.test/abc"] = b"\x89PNG"
    async with bed.listening() as server:
        server.faults.append(("/media/", refusal(401, "M_UNKNOWN_TOKEN")))
        server.say(ROOM, ZOE, "cat.png", **image("hs.test"))
        inbound = await bed.ingress.next()
        assert server.logins == 2
    assert [each.content for each in inbound.attachments] == [b"\x89PNG"]


@pytest.mark.parametrize(
    "trouble",
    [
        refusal(429, "M_LIMIT_EXCEEDED", retry_after_ms=5_000),
        refusal(503, "M_UNKNOWN"),
        httpx.ReadError("cut off"),
        httpx.ConnectError("refused"),
    ],
)
async def test_a_busy_media_server_is_asked_again(
    trouble: httpx.Response | Exception, autojump_clock: MockClock
) -> None:
    del autojump_clock
    bed = MatrixBed("anna")
    bed.server.room(ROOM, ZOE, ANNA)
    bed.server.media["hs.test/abc"] = b"\x89PNG"
    async with bed.listening() as server:
        server.faults += [("/media/", trouble)] * 3
        server.say(ROOM, ZOE, "cat.png", **image("hs.test"))
        inbound = await bed.ingress.next_or_wait()
    assert [each.content for each in inbound.attachments] == [b"\x89PNG"]


@pytest.mark.parametrize(
    ("trouble", "within"),
    [
        (refusal(503, "M_UNKNOWN"), TRIED_WITHIN),
        (refusal(429, "M_LIMIT_EXCEEDED", retry_after_ms=60_000), 0),
    ],
)
async def test_a_message_is_not_held_back_for_long_because_of_its_file(
    trouble: httpx.Response, within: float, autojump_clock: MockClock
) -> None:
    del autojump_clock
    bed = MatrixBed("anna")
    bed.server.room(ROOM, ZOE, ANNA)
    async with bed.listening() as server:
        server.faults += [("/media/", trouble)] * 99
        server.say(ROOM, ZOE, "cat.png", **image("hs.test"))
        began_at = trio.current_time()
        inbound = await bed.ingress.next_or_wait()
        assert trio.current_time() - began_at <= within
    assert f"was not fetched: HTTP {trouble.status_code}" in inbound.text
    where = {"account": "anna", "connector": "matrix", "outcome": "media_left_out"}
    assert bed.counted("events_total", **where) == 1


async def test_nothing_is_fetched_for_who_may_not_write(
    autojump_clock: MockClock,
) -> None:
    del autojump_clock
    bed = MatrixBed("anna")
    bed.ingress.strangers.add(SAM)
    bed.server.room(ROOM, ZOE, SAM, ANNA)
    old = bed.server.say(ROOM, ZOE, "an old word")
    bed.server.media["hs.test/abc"] = b"\x89PNG"
    replying = {"m.relates_to": {"m.in_reply_to": {"event_id": old}}}
    async with bed.listening() as server:
        server.say(ROOM, SAM, "cat.png", **image("hs.test"), **replying)
        await bed.wait(lambda: len(bed.ingress.turned_away) == 1)
        assert server.count("/media/") == server.count("/event/") == 0
        server.say(ROOM, ZOE, "cat.png", **image("hs.test"), **replying)
        inbound = await bed.ingress.next_or_wait()
        assert server.count("/media/") == server.count("/event/") == 1
    [turned] = bed.ingress.turned_away
    assert (turned.sender_id, turned.attachments, turned.quoted) == (SAM, (), None)
    assert len(inbound.attachments) == 1
    assert inbound.quoted == Quoted("an old word", "zoe", "")


async def test_a_file_waits_until_it_is_known_who_may_write(
    autojump_clock: MockClock,
) -> None:
    del autojump_clock
    bed = MatrixBed("anna")
    bed.server.room(ROOM, ZOE, ANNA)
    bed.server.media["hs.test/abc"] = b"\x89PNG"
    async with bed.listening() as server:
        bed.ingress.unsure = OverloadedError("this is starting")
        server.say(ROOM, ZOE, "cat.png", **image("hs.test"))
        await bed.wait(lambda: len(server.said(ROOM, ANNA)) == 1)
        assert server.count("/media/") == 0
        bed.ingress.unsure = None
        assert len((await bed.ingress.next_or_wait()).attachments) == 1
        assert server.count("/media/") == 1


@pytest.mark.parametrize(
    ("content", "media", "why"),
    [
        (image("hs.test", info={"size": 11}), b"", "above 10 bytes"),
        (image("hs.test"), b"x" * 11, "above 10 bytes"),
        (image("gone.test"), b"", "M_NOT_FOUND"),
        (image("hs.test", url=None, file={"url": "mxc://a/b"}), b"", "encrypted"),
    ],
)
async def test_a_file_that_cannot_be_had_is_told(
    content: dict[str, object], media: bytes, why: str
) -> None:
    bed = MatrixBed("anna", max_media_bytes=10)
    bed.server.room(ROOM, ZOE, ANNA)
    bed.server.media["hs.test/abc"] = media
    async with bed.listening() as server:
        server.say(ROOM, ZOE, "cat.png", **content)
        inbound = await bed.ingress.next()
    assert inbound.attachments == ()
    assert inbound.text.startswith("[image cat.png was not fetched: ")
    assert why in inbound.text


async def test_an_invitation_that_leads_nowhere_is_counted() -> None:
    bed = MatrixBed("anna", invites="anyone")
    async with bed.listening() as server:
        server.faults.append(("/join", refusal(404, "M_NOT_FOUND")))
        server.room(ROOM, SAM)
        server.member(ROOM, ANNA, "invite", by=SAM)
        where = {"account": "anna", "connector": "matrix", "outcome": "not_joined"}
        await bed.wait(lambda: bed.counted("events_total", **where) == 1)


async def test_an_invitation_that_nobody_sent_is_counted_and_nothing_else() -> None:
    bed = MatrixBed("anna", invites="anyone")
    bed.server.room(ROOM, ZOE, ANNA)
    async with bed.listening() as server:
        server.room("!odd:hs.test", SAM)
        odd = server.state(
            "!odd:hs.test", SAM, "m.room.member", {"membership": "invite"}, ANNA
        )
        odd["sender"] = 7
        where = {"account": "anna", "connector": "matrix", "outcome": "malformed"}
        await bed.wait(lambda: bed.counted("events_total", **where) == 1)
        server.say(ROOM, ZOE, "are you there?")
        assert (await bed.ingress.next()).text == "are you there?"
        assert server.count("/leave") == server.count("/join") == 0


async def test_an_invitation_to_a_dead_server_keeps_nobody_waiting_for_ever(
    autojump_clock: MockClock,
) -> None:
    del autojump_clock
    bed = MatrixBed("anna", invites="anyone")
    bed.server.room(ROOM, ZOE, ANNA)
    async with bed.listening() as server:
        server.faults += [("/join", refusal(502, "M_UNKNOWN"))] * 100
        server.room("!dead:gone.test", SAM)
        server.member("!dead:gone.test", ANNA, "invite", by=SAM)
        server.say(ROOM, ZOE, "are you there?")
        with trio.fail_after(ANSWERED_WITHIN):
            await bed.ingress.next_or_wait()
        server.say(ROOM, ZOE, "and now?")
        with trio.fail_after(5):
            await bed.ingress.next_or_wait()
        where = {"account": "anna", "connector": "matrix", "outcome": "not_joined"}
        await bed.wait(
            lambda: bed.counted("events_total", **where) == 1, ANSWERED_WITHIN + 60
        )


async def test_a_command_behind_a_mention_is_one_as_clients_write_it() -> None:
    bed = MatrixBed("anna")
    bed.server.room(ROOM, ZOE, SAM, ANNA)
    mention = {"m.mentions": {"user_ids": [ANNA]}}
    async with bed.listening() as server:
        for said in ("anna: /help", "anna /help", f"{ANNA}: /help", "anna: help me"):
            server.say(ROOM, ZOE, said, **mention)
        server.say(ROOM, ZOE, "anna: /help")
        heard = [(await bed.ingress.next()).text for _ in range(5)]
    assert heard[:3] == ["@anna /help"] * 3
    assert heard[3:] == ["anna: help me", "anna: /help"], "who is not called, is not"


async def test_what_was_said_in_another_room_is_quoted_to_nobody() -> None:
    bed = MatrixBed("anna")
    bed.server.room(ROOM, ZOE, ANNA)
    bed.server.room("!other:hs.test", SAM, ANNA)
    async with bed.listening() as server:
        secret = server.say(ROOM, ZOE, "the vault opens at nine")
        await bed.ingress.next()
        reply = {"m.relates_to": {"m.in_reply_to": {"event_id": secret}}}
        server.say("!other:hs.test", SAM, "and what does that say?", **reply)
        inbound = await bed.ingress.next()
    assert (inbound.reply_to, inbound.quoted) == (secret, None)


@pytest.mark.parametrize(
    ("kind", "body", "text"),
    [("m.emote", "waves", "* zoe waves"), ("m.notice", "beep", "beep")],
)
async def test_emotes_and_other_programs_notices(
    kind: str, body: str, text: str
) -> None:
    bed = MatrixBed("anna")
    bed.server.room(ROOM, ZOE, ANNA)
    async with bed.listening() as server:
        server.say(ROOM, ZOE, body, msgtype=kind)
        inbound = await bed.ingress.next()
    assert (inbound.text, inbound.is_bot) == (text, kind == "m.notice")
    assert inbound.platform_fields["msgtype"] == kind
