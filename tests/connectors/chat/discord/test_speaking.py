"""What agents say on Discord goes out by the right bot, once, and calls nobody."""

from __future__ import annotations

import pytest
from msgspec import structs

from actors.errors import DeliveryRefusedError
from actors.messages.deliveries import Reaction, Typing
from actors.messages.inbound import Address
from connectors.chat.discord.senders import REMEMBERED_FOR
from tests.fakes.discord.server import Fault
from tests.fakes.discord.world import CHANNEL, ZOE, Json
from tests.support.chat.discord_bed import DiscordBed, delivery, open_bed


def last(bed: DiscordBed) -> Json:
    return bed.world.messages[CHANNEL][-1]


async def test_each_agent_speaks_by_its_own_bot() -> None:
    async with open_bed() as bed, bed.listening():
        await bed.transport.deliver(delivery("I am Anna"))
        await bed.transport.deliver(delivery("I am Ben", "ben"))
        await bed.transport.deliver(delivery("I have no bot", "carl"))
        await bed.transport.deliver(delivery("a notice", ""))
        assert bed.said() == [
            "anna: I am Anna",
            "ben: I am Ben",
            "anna: carl: I have no bot",
            "anna: a notice",
        ]


async def test_another_speaks_where_the_own_bot_is_not_let_in() -> None:
    async with open_bed() as bed:
        bed.world.hidden.add((CHANNEL, bed.bots["anna"]))
        async with bed.listening():
            await bed.transport.deliver(delivery("hi"))
            assert bed.said() == ["ben: anna: hi"]


async def test_a_refusal_says_what_to_do_about_it() -> None:
    said = '{"message": "Missing Permissions", "code": 50013}'
    async with open_bed("anna") as bed, bed.listening() as server:
        server.faults.append(Fault("POST", "/messages", 403, said))
        with pytest.raises(DeliveryRefusedError, match="give the bot Send Messages"):
            await bed.transport.deliver(delivery("hello"))


async def test_a_place_that_nobody_sees_is_refused() -> None:
    async with open_bed("anna") as bed, bed.listening():
        nowhere = delivery("hi", address=Address("discord", "299999999999999999"))
        with pytest.raises(DeliveryRefusedError, match="Unknown Channel"):
            await bed.transport.deliver(nowhere)
        with pytest.raises(DeliveryRefusedError, match="no id"):
            await bed.transport.deliver(delivery("x", address=Address("discord", "x")))


async def test_an_answer_is_a_reply_that_calls_nobody() -> None:
    async with open_bed("anna") as bed, bed.listening() as server:
        asked = await bed.say("how are you?")
        text = f"@everyone <@{ZOE}> **well**"
        await bed.transport.deliver(delivery(text, reply_to=asked))
        body = server.bodies[-1]
        assert body["message_reference"]["message_id"] == asked
        assert body["message_reference"]["fail_if_not_exists"] is False
        assert body["allowed_mentions"] == {"parse": [], "replied_user": False}
        assert body["enforce_nonce"] is True
        assert len(body["nonce"]) == 25
        assert f"<@{ZOE}>" not in body["content"]
        assert "@everyone" not in body["content"]
        assert "**well**" in body["content"]


async def test_only_the_first_part_of_an_answer_is_a_reply() -> None:
    async with open_bed("anna") as bed, bed.listening() as server:
        asked = await bed.say("how are you?")
        first = delivery("one", reply_to=asked, parts=2)
        second = structs.replace(delivery("two", reply_to=asked, parts=2), part=1)
        for each in (first, second):
            await bed.transport.deliver(each)
        assert "message_reference" not in server.bodies[-1]


async def test_an_answer_in_a_thread_stays_there() -> None:
    async with open_bed("anna") as bed, bed.listening():
        aside = bed.world.add_channel("210000000000000009", 11, name="aside")
        address = Address("discord", CHANNEL, aside)
        await bed.transport.deliver(delivery("here", address=address))
        assert bed.said(aside) == ["anna: here"]
        assert bed.said() == []


async def test_what_was_said_before_a_restart_is_found_though_discord_forgot() -> None:
    async with open_bed("anna") as bed:
        async with bed.listening():
            asked = await bed.say("how are you?")
            first = await bed.transport.deliver(delivery("well", reply_to=asked))
        bed.world.nonces.clear()
        bed.make()
        async with bed.listening():
            again = await bed.transport.deliver(delivery("well", reply_to=asked))
            other = delivery("and you?", reply_to=asked)
            assert await bed.transport.deliver(other) != first
        assert again == first
        assert bed.said() == ["anna: well", "anna: and you?"]


async def test_what_is_tried_again_much_later_is_looked_for() -> None:
    async with open_bed("anna") as bed, bed.listening():
        said = delivery("well")
        recall = bed.transport._recall
        assert not recall.is_unsure(said)
        recall._tried[said.id] -= REMEMBERED_FOR + 1
        assert recall.is_unsure(said)


async def test_typing_is_shown_where_the_answer_will_be() -> None:
    async with open_bed("anna") as bed, bed.listening():
        typing = Typing(
            correlation_id="c",
            reply_id="r",
            address=Address("discord", CHANNEL),
            agent="anna",
        )
        bed.transport.show_typing(typing)
        bed.transport.show_typing(structs.replace(typing, is_over=True))
        bed.transport.show_typing(structs.replace(typing, agent="carl"))
        await bed.wait(lambda: bed.world.typing == [(CHANNEL, "anna")])


async def test_a_sign_at_a_message_that_is_gone_is_refused() -> None:
    async with open_bed("anna") as bed, bed.listening():
        sign = Reaction(
            correlation_id="c",
            address=Address("discord", CHANNEL),
            agent="anna",
            message="123456789012345678",
            sign="👀",
        )
        with pytest.raises(DeliveryRefusedError, match="Unknown Message"):
            await bed.transport.presence.react(sign)


async def test_markdown_that_says_nothing_is_still_a_message() -> None:
    async with open_bed("anna") as bed, bed.listening():
        await bed.transport.deliver(delivery("&nbsp;"))
        assert last(bed)["content"].strip() or last(bed)["content"] == "\u200b"
