"""Proves what becomes of files in words whose bytes cannot be read."""

from __future__ import annotations

import msgspec
import pytest

from actors.errors import DeliveryBusyError
from actors.messages.deliveries import Delivery
from actors.messages.inbound import Address, Inbound
from actors.transport import Earlier
from connectors.web.openai.transport import all_inlined, inlined
from tests.fakes.media import PNG
from tests.fakes.tools.sent_files import SentFiles

HERE = Address("http", "room")
SAID = Delivery(id="1:0", correlation_id="1", address=HERE, agent="anna", text="look")


async def test_bytes_that_cannot_be_read_now_are_tried_again() -> None:
    blobs = SentFiles()
    said = msgspec.structs.replace(SAID, file=blobs.sent(PNG, "a.png"))
    blobs.is_ill = True
    with pytest.raises(DeliveryBusyError, match="cannot be read now"):
        await inlined(said, blobs)
    blobs.is_ill = False
    assert "data:image/png;base64," in (await inlined(said, blobs)).text


async def test_of_earlier_answers_they_are_named_and_hold_nothing_up() -> None:
    blobs = SentFiles()
    said = msgspec.structs.replace(SAID, file=blobs.sent(PNG, "a.png"))
    blobs.is_ill = True
    inbound = Inbound(
        id="1",
        platform="http",
        platform_id="1",
        address=HERE,
        sender_id="zoe",
        sender_name="Zoe",
        text="?",
        received_at=0.0,
    )
    known = await all_inlined(Earlier(inbound, "replied:ok", (said, SAID)), blobs)
    first, second = known.deliveries
    assert "The file a.png (32 bytes) could not be sent" in first.text
    assert second == SAID
