"""Files that agents send on Discord: whole, once, by the bot whose they are."""

from __future__ import annotations

import pytest

from actors.errors import DeliveryRefusedError
from connectors.chat.discord.senders import REMEMBERED_FOR
from tests.fakes.discord.world import CHANNEL
from tests.fakes.media import PNG
from tests.support.chat.discord_bed import delivery, open_bed


async def test_a_file_arrives_whole_with_its_words() -> None:
    async with open_bed("anna") as bed, bed.listening() as server:
        file = bed.blobs.sent(PNG, "große Kurve.png")
        asked = await bed.say("please")
        said = delivery("the **sales** @everyone", file=file, reply_to=asked)
        receipt = await bed.transport.deliver(said)
        assert [*server.brought.values()] == [("große Kurve.png", PNG)]
        body = server.bodies[-1]
        assert "**sales**" in body["content"]
        assert "@everyone" not in body["content"]
        assert body["allowed_mentions"] == {"parse": [], "replied_user": False}
        assert body["message_reference"]["message_id"] == asked
        assert bed.world.messages[CHANNEL][-1]["id"] == receipt


async def test_a_file_needs_no_words_and_stands_there_once() -> None:
    async with open_bed("anna") as bed, bed.listening() as server:
        said = delivery("", file=bed.blobs.sent(PNG, "a.png"))
        first = await bed.transport.deliver(said)
        assert await bed.transport.deliver(said) == first
        assert server.bodies[-1]["content"] == ""
        assert len(bed.world.messages[CHANNEL]) == 1


async def test_who_has_no_bot_is_named() -> None:
    async with open_bed("anna") as bed, bed.listening() as server:
        file = bed.blobs.sent(PNG, "a.png")
        await bed.transport.deliver(delivery("", "carl", file=file))
        assert server.bodies[-1]["content"] == "carl:"


async def test_what_is_too_large_or_gone_is_refused() -> None:
    async with open_bed("anna") as bed, bed.listening():
        large = bed.blobs.sent(bytes(10 * 1024 * 1024 + 1), "a.bin")
        with pytest.raises(DeliveryRefusedError, match="40005"):
            await bed.transport.deliver(delivery("", file=large))
        file = bed.blobs.sent(PNG, "a.png")
        bed.blobs.find(file).unlink()
        with pytest.raises(DeliveryRefusedError, match="not kept"):
            await bed.transport.deliver(delivery("", file=file))
        assert not bed.world.messages[CHANNEL]


async def test_a_file_said_long_ago_is_found_by_its_name() -> None:
    async with open_bed("anna") as bed, bed.listening():
        said = delivery("look", file=bed.blobs.sent(PNG, "große Kurve.png"))
        other = delivery("look", file=bed.blobs.sent(PNG, "b.png"), id="other")
        first = await bed.transport.deliver(said)
        bed.transport._recall._receipts.clear()
        bed.transport._recall._tried[said.id] -= REMEMBERED_FOR + 1
        bed.transport._recall._tried[other.id] = -1e9
        bed.world.nonces.clear()
        assert await bed.transport.deliver(said) == first
        assert await bed.transport.deliver(other) != first
        assert len(bed.world.messages[CHANNEL]) == 2
