"""What people write on Discord is heard, once, as it was meant."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest

from actors.messages.inbound import Address
from connectors.chat.inbound import MOST_IN_ALL, NO_ROOM
from tests.fakes.discord.world import ADMINS, CHANNEL, GUILD, SAM, THREAD, ZOE
from tests.support.chat.discord_bed import open_bed

PICTURE = {
    "id": "1",
    "filename": "cat.png",
    "content_type": "image/png",
    "size": 3,
    "url": "",
    "proxy_url": "",
}


async def test_a_message_in_a_channel_comes_once_though_two_bots_hear_it() -> None:
    async with open_bed() as bed, bed.listening():
        known = await bed.say("hello all")
        got = await bed.ingress.next()
        await bed.wait(
            lambda: (
                bed.counted("events_total", **seen("ben"))
                + bed.counted("events_total", **seen("anna"))
                == 1
            )
        )
        assert bed.heard() == ["hello all"]
        assert got.platform_id == known
        assert got.address == Address("discord", CHANNEL)
        assert got.present == ("anna", "ben")
        assert not got.is_direct
        assert got.sender_name == "Zoe"
        assert got.platform_fields["discord_guild_id"] == GUILD


def seen(account: str) -> dict[str, str]:
    return {"connector": "discord", "account": account, "outcome": "seen"}


async def test_a_mention_names_the_agent_by_its_user_and_by_its_role() -> None:
    async with open_bed() as bed, bed.listening():
        await bed.say(f"<@{bed.bots['ben']}> and <#{CHANNEL}>, <:wave:12>")
        got = await bed.ingress.next()
        assert got.mentions == ("ben",)
        assert got.text == "@ben and #crew, :wave:"
        role = bed.world.role_of(bed.bots["anna"])
        await bed.say(f"<@&{role}> hi", mention_roles=[role])
        got = await bed.ingress.next()
        assert got.mentions == ("anna",)
        assert got.text == "@anna hi"


async def test_a_bot_that_may_not_look_is_not_present() -> None:
    async with open_bed() as bed:
        bed.world.hidden.add((CHANNEL, bed.bots["ben"]))
        async with bed.listening():
            await bed.say("hello")
            assert (await bed.ingress.next()).present == ("anna",)


async def test_a_direct_message_is_for_its_bot() -> None:
    async with open_bed() as bed, bed.listening():
        chat = bed.world.direct(bed.bots["ben"])
        await bed.say("psst", channel=chat)
        got = await bed.ingress.next()
        assert got.is_direct
        assert got.agent == "ben"
        assert got.present == ("ben",)
        assert got.address == Address("discord", chat)


async def test_a_thread_is_a_place_in_its_channel_also_when_it_was_asleep() -> None:
    async with open_bed("anna") as bed:
        awake = bed.world.add_channel(
            "210000000000000001", THREAD, name="plan", **thread()
        )
        asleep = bed.world.add_channel(
            "210000000000000002", THREAD, name="old", is_asleep=True, **thread()
        )
        async with bed.listening():
            for each in (awake, asleep):
                await bed.say("go on", channel=each)
                got = await bed.ingress.next()
                assert got.address == Address("discord", CHANNEL, each)


def thread() -> dict[str, Any]:
    return {
        "parent_id": CHANNEL,
        "guild_id": GUILD,
        "owner_id": ZOE,
        "message_count": 1,
        "member_count": 1,
        "rate_limit_per_user": 0,
        "thread_metadata": {
            "archived": False,
            "auto_archive_duration": 60,
            "archive_timestamp": "2026-01-01T00:00:00+00:00",
            "locked": False,
        },
    }


async def test_a_reply_brings_what_it_replies_to() -> None:
    async with open_bed("anna") as bed, bed.listening():
        first = await bed.say("the plan", author=SAM)
        await bed.ingress.next()
        quoted = bed.world.messages[CHANNEL][-1]
        reference = {"message_id": first, "channel_id": CHANNEL}
        more: dict[str, Any] = {"type": 19, "message_reference": reference}
        await bed.say("I like it", referenced_message=quoted, **more)
        got = await bed.ingress.next()
        assert got.reply_to == first
        assert got.quoted is not None
        assert (got.quoted.text, got.quoted.sender_name) == ("the plan", "Sam")


async def test_a_picture_that_is_replied_to_in_a_server_comes_along() -> None:
    async with open_bed("anna") as bed, bed.listening() as server:
        server.world.files["cat.png"] = b"cat"
        cat = {**PICTURE, "url": f"{server.url}/files/cat.png"}
        first = await bed.say("", author=SAM, attachments=[cat])
        (quoted,) = [e for e in bed.world.messages[CHANNEL] if e["id"] == first]
        reference = {"message_id": first, "channel_id": CHANNEL}
        more: dict[str, Any] = {"type": 19, "message_reference": reference}
        await bed.say("whose is it?", referenced_message=quoted, **more)
        got = [await bed.ingress.next() for _ in range(2)][1]
        assert [each.content for each in got.attachments] == [b"cat"]
        assert got.quoted is not None
        assert got.quoted.text == "[image: cat.png]"


async def test_files_are_fetched_at_once_and_from_nowhere_else() -> None:
    async with open_bed("anna") as bed, bed.listening() as server:
        server.world.files["cat.png"] = b"cat"
        here = {**PICTURE, "url": f"{server.url}/files/cat.png"}
        there = {**PICTURE, "url": "https://elsewhere.example/cat.png"}
        gone = {**PICTURE, "url": f"{server.url}/files/gone.png"}
        await bed.say("look", attachments=[here, there, gone])
        got = await bed.ingress.next()
        assert [each.content for each in got.attachments] == [b"cat"]
        assert "lies elsewhere" in got.text
        assert "HTTP 404" in got.text


@pytest.mark.parametrize("told", [0, MOST_IN_ALL // 4])
async def test_an_album_comes_along_as_far_as_it_can_be_stored(told: int) -> None:
    async with open_bed("anna") as bed, bed.listening() as server:
        server.world.files["cat.png"] = b"x" * (MOST_IN_ALL // 4)
        here = {**PICTURE, "size": told, "url": f"{server.url}/files/cat.png"}
        await bed.say("look", attachments=[here] * 5)
        got = await bed.ingress.next()
        assert sum(len(each.content) for each in got.attachments) == MOST_IN_ALL
        note = f"[image cat.png was not fetched: {NO_ROOM}]"
        assert got.text.split("\n") == ["look", note]


async def test_nothing_is_fetched_for_a_stranger() -> None:
    async with open_bed("anna") as bed, bed.listening() as server:
        bed.ingress.strangers.add(ZOE)
        server.world.files["cat.png"] = b"cat"
        here = {**PICTURE, "url": f"{server.url}/files/cat.png"}
        await bed.say("look", attachments=[here])
        await bed.wait(lambda: len(bed.ingress.turned_away) == 1)
        assert bed.ingress.turned_away[0].attachments == ()


async def test_what_somebody_is_in_the_server_comes_along() -> None:
    async with open_bed("anna") as bed, bed.listening():
        bed.world.members[ZOE]["roles"] = [ADMINS]
        await bed.say("as admin")
        assert (await bed.ingress.next()).roles == ("admin", f"role:{ADMINS}")
        await bed.say("as owner", author=SAM)
        assert (await bed.ingress.next()).roles == ("admin",)


async def test_our_own_bots_are_not_heard_and_others_are_marked() -> None:
    async with open_bed() as bed, bed.listening():
        other = bed.world.add_bot("robo", "token.of.robo")
        await bed.say("I am Ben", author=bed.bots["ben"])
        await bed.say("beep", author=other)
        got = await bed.ingress.next()
        assert got.text == "beep"
        assert got.is_bot


async def test_what_discord_says_by_itself_and_edits_are_counted_not_heard() -> None:
    async with open_bed("anna") as bed, bed.listening() as server:
        await bed.say("", type=7)
        await bed.say("first")
        await bed.ingress.next()
        message = bed.world.messages[CHANNEL][-1]
        session = server.gateway.of(bed.bots["anna"])
        await bed.bridge.call(session.tell, "MESSAGE_UPDATE", message)
        await bed.say("second")
        await bed.ingress.next()
        labels = {"connector": "discord", "account": "anna"}
        assert bed.counted("events_total", outcome="system", **labels) == 1
        assert bed.counted("events_total", outcome="edit", **labels) == 1
        assert bed.heard() == ["first", "second"]


async def test_a_message_that_is_deleted_is_withdrawn() -> None:
    async with open_bed("anna") as bed, bed.listening() as server:
        await bed.say("my mistake")
        said = (await bed.ingress.next()).platform_id
        session = server.gateway.of(bed.bots["anna"])
        deleted = {"id": said, "channel_id": CHANNEL}
        await bed.bridge.call(session.tell, "MESSAGE_DELETE", deleted)
        await bed.say("second")
        await bed.ingress.next()
        labels = {"connector": "discord", "account": "anna"}
        assert bed.counted("events_total", outcome="deleted", **labels) == 1
    assert bed.ingress.withdrawn == [("discord", said)]


async def test_without_the_intent_only_what_is_for_a_bot_is_heard() -> None:
    async with open_bed("anna", message_content=False) as bed, bed.listening():
        await bed.say("not for you")
        await bed.say(f"<@{bed.bots['anna']}> for you")
        assert (await bed.ingress.next()).text == "@anna for you"
        assert len(bed.ingress.accepted) == 1


async def test_a_token_that_is_not_taken_ends_that_bot_alone() -> None:
    async with open_bed() as bed:
        bed.world.bots.pop("token.of.ben")
        accounts = bed.transport.accounts
        async with bed.listening_when(lambda: not accounts["anna"].trouble):
            await bed.wait(lambda: bool(accounts["ben"].refused))
            assert "make a new one" in accounts["ben"].refused
            await bed.say("hello")
            assert (await bed.ingress.next()).present == ("anna",)
            assert bed.transport.trouble == ""


async def test_a_forbidden_intent_is_explained() -> None:
    async with open_bed("anna") as bed:
        bed.world.allowed[bed.bots["anna"]] = False
        async with bed.listening_when(lambda: "Intent" in bed.transport.trouble):
            assert "Message Content Intent" in bed.transport.trouble
            assert "message_content = false" in bed.transport.trouble


async def test_what_was_told_twice_is_taken_once() -> None:
    async with open_bed("anna") as bed, bed.listening() as server:
        await bed.say("hello")
        message = bed.world.messages[CHANNEL][-1]
        await bed.bridge.call(partial(server.gateway.tell_message, message))
        await bed.wait(lambda: bed.counted("events_total", **seen("anna")) == 1)
        assert bed.heard() == ["hello"]


async def test_nothing_older_than_the_first_start_is_heard() -> None:
    async with open_bed("anna") as bed:
        bed.world.add_message(CHANNEL, ZOE, "long ago")
        async with bed.listening():
            await bed.say("now")
            assert (await bed.ingress.next()).text == "now"
