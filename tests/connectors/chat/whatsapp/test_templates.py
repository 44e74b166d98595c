"""Words to people who have not written for 24 hours go as an approved template."""

from __future__ import annotations

from typing import Any

import pytest

from actors.errors import DeliveryBusyError, DeliveryRefusedError
from actors.messages.inbound import SentFile
from connectors.chat.whatsapp.platform import TemplateConfig
from tests.support.chat.whatsapp_bed import ZOE, WhatsAppBed, delivery

DAY = 86_400.0
NEWS = TemplateConfig(name="agent_news", language="en", max_chars=40)
LONG = "A long report. " * 10


def bed_of(template: TemplateConfig = NEWS, **more: Any) -> WhatsAppBed:
    bed = WhatsAppBed(template=template, **more)
    bed.server.templates["agent_news"] = "en"
    return bed


async def test_inside_the_window_words_are_words_and_outside_a_template() -> None:
    bed = bed_of()
    async with bed.listening() as server:
        await bed.write("hi")
        await bed.transport.deliver(delivery("hello"))
        bed.clock.ahead = DAY
        words = "# Good morning\n\n- **two** new\tmails\n- sun"
        await bed.transport.deliver(delivery(words))
        await bed.write("thanks", at=1_700_000_000 + int(DAY))
        await bed.transport.deliver(delivery("welcome"))
        assert server.texts(ZOE) == [
            "hello",
            "agent_news: *Good morning* - *two* new mails - sun",
            "welcome",
        ]
        assert bed.counted("events", outcome="template") == 1


async def test_the_first_words_to_somebody_go_as_a_template_and_only_once() -> None:
    bed = bed_of()
    bed.server.closed.add(ZOE)
    async with bed.listening() as server:
        first = await bed.transport.deliver(delivery("Your parcel is here"))
        assert await bed.transport.deliver(delivery("Your parcel is here")) == first
        assert server.texts(ZOE) == ["agent_news: Your parcel is here"]
        marker = server.said[0]["biz_opaque_callback_data"]
        assert marker == delivery("Your parcel is here").id


@pytest.mark.parametrize("has_file", [True, False])
async def test_what_does_not_go_into_a_template_is_announced_and_said_later(
    *, has_file: bool
) -> None:
    bed = bed_of()
    file: SentFile | None = None
    if has_file:
        file = bed.blobs.sent(b"%PDF-1.7", "report.pdf")
    bed.server.closed.add(ZOE)
    sent = delivery("Here it is." if has_file else LONG, file=file)
    async with bed.listening() as server:
        for _ in range(3):
            with pytest.raises(DeliveryBusyError, match="131047"):
                await bed.transport.deliver(sent)
        begun = "Here it is. [report.pdf]" if has_file else "A long report. " * 2
        (told,) = server.texts(ZOE)
        assert told.startswith(f"agent_news: {begun}")
        assert len(told) <= len("agent_news: ") + 40
        server.closed.clear()
        await bed.write("yes?")
        await bed.transport.deliver(sent)
        assert server.texts(ZOE)[1:] == ["Here it is." if has_file else LONG.strip()]


@pytest.mark.parametrize("name", ["unknown", "agent_news"])
async def test_a_template_that_meta_refuses_is_told_with_the_reason(name: str) -> None:
    bed = bed_of(TemplateConfig(name=name, language="de"))
    bed.server.closed.add(ZOE)
    async with bed.listening() as server:
        with pytest.raises(DeliveryRefusedError, match=r"132001.*not approved"):
            await bed.transport.deliver(delivery("hi"))
        assert server.texts() == []


async def test_words_that_may_not_wait_are_announced_and_given_up() -> None:
    bed = bed_of(outside_window="refuse")
    bed.server.closed.add(ZOE)
    async with bed.listening() as server:
        with pytest.raises(DeliveryRefusedError, match="24 hours"):
            await bed.transport.deliver(delivery(LONG))
        assert len(server.texts()) == 1
