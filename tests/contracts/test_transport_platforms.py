"""Every platform's transport bears what platforms do: gaps, limits, files, replies."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import pytest
import trio

from tests.contracts.transports import answer, ask, wait_until
from tests.fakes.chat.platforms import CAT, PLATFORMS, Trouble, other_end
from tests.fakes.chat.stages import Stage, listen, open_stage
from tests.fakes.outbound.courier import bring

ALL = pytest.mark.parametrize("name", [*PLATFORMS])


async def stop(stage: Stage) -> None:
    """End the listener, as its supervisor would."""
    stage.listening.cancel()
    with trio.fail_after(5):
        await stage.ended.wait()
    stage.listening, stage.ended = trio.CancelScope(), trio.Event()


@asynccontextmanager
async def listening_again(stage: Stage) -> AsyncGenerator[None]:
    """Listen anew until the block ends."""
    async with trio.open_nursery() as nursery:
        nursery.start_soon(listen, stage)
        yield
        nursery.cancel_scope.cancel()


@ALL
async def test_what_was_written_in_a_gap_comes_once(name: str) -> None:
    async with open_stage(name) as stage:
        await ask(stage, "before")
        await wait_until(stage, lambda: stage.acknowledged() == 1)
        await stop(stage)
        for text in ("in the gap", "and this"):
            await stage.write(text)
        async with listening_again(stage):
            got = [(await stage.ingress.next()).text for _ in range(2)]
            await stage.write("after")
            got.append((await stage.ingress.next()).text)
        # Meta brings what had to wait in any order.
        assert name == "whatsapp" or got[:2] == ["in the gap", "and this"]
        assert sorted(got) == ["after", "and this", "in the gap"]
        assert len(stage.ingress.accepted) == 4


@ALL
async def test_what_was_not_stored_when_it_ended_comes_again(name: str) -> None:
    async with open_stage(name) as stage:
        await ask(stage, "before")
        await wait_until(stage, lambda: stage.acknowledged() == 1)
        slow = stage.ingress.gate = trio.Event()
        stage.ingress.is_asked = trio.Event()
        await stage.write("half way")
        await stage.ingress.is_asked.wait()
        await stop(stage)
        stage.ingress.gate = None
        slow.set()
        async with listening_again(stage):
            assert (await stage.ingress.next()).text == "half way"
        assert [each.text for each in stage.ingress.accepted] == ["before", "half way"]


@ALL
async def test_who_listens_again_says_what_was_still_to_be_said(name: str) -> None:
    async with open_stage(name) as stage:
        inbound = await ask(stage, "hello")
        await stop(stage)
        async with listening_again(stage):
            end = await bring(stage.transport, answer(inbound, "At last."))
            await wait_until(stage, lambda: "At last." in stage.shown())
        assert end.state == "sent"
        assert stage.shown().count("At last.") == 1


@ALL
@pytest.mark.parametrize("trouble", ["limited", "away"])
async def test_trouble_costs_no_answer_and_doubles_none(
    name: str, trouble: Trouble
) -> None:
    async with open_stage(name) as stage:
        inbound = await ask(stage, "hello")
        other_end(name, stage).fail(trouble)
        with trio.fail_after(20):
            end = await bring(stage.transport, answer(inbound, "All the same."))
            after = await bring(stage.transport, answer(inbound, "And more."))
        await wait_until(stage, lambda: "And more." in stage.shown())
        assert (end.state, after.state) == ("sent", "sent")
        shown = stage.shown()
        assert shown.count("All the same.") == 1
        assert shown.index("All the same.") < shown.index("And more.")


@ALL
async def test_a_picture_comes_along_with_its_words(name: str) -> None:
    async with open_stage(name) as stage:
        await other_end(name, stage).send_cat("look")
        inbound = await stage.ingress.next()
        (cat,) = inbound.attachments
        assert (cat.kind, cat.content, cat.media_type[:6]) == ("image", CAT, "image/")
        assert inbound.text == "look"


@ALL
async def test_a_picture_that_is_gone_costs_no_words(name: str) -> None:
    async with open_stage(name) as stage:
        await other_end(name, stage).send_cat("look", is_there=False)
        inbound = await stage.ingress.next()
        assert inbound.attachments == ()
        assert inbound.text.startswith("look")
        assert "not fetched" in inbound.text


@ALL
async def test_for_a_stranger_no_picture_is_fetched(name: str) -> None:
    async with open_stage(name) as stage:
        sender = (await ask(stage, "hello")).sender_id
        stage.ingress.strangers.add(sender)
        await other_end(name, stage).send_cat("look")
        await wait_until(stage, lambda: len(stage.ingress.turned_away) == 1)
        assert stage.ingress.turned_away[0].attachments == ()


@ALL
async def test_a_reply_names_what_it_replies_to(name: str) -> None:
    async with open_stage(name) as stage:
        inbound = await ask(stage, "hello")
        receipt = await stage.transport.deliver(answer(inbound, "Tea or coffee?"))
        await other_end(name, stage).reply("the first", receipt)
        replied = await stage.ingress.next()
        assert (replied.text, replied.reply_to) == ("the first", receipt)
        quoted = replied.quoted
        assert quoted is not None
        assert (quoted.text, quoted.agent) == ("Tea or coffee?", "anna")
        # The answer goes where that was written, be it a thread of its own.
        await stage.transport.deliver(answer(replied, "Tea it is."))
        await wait_until(stage, lambda: "Tea it is." in stage.shown())
