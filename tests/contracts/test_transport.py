"""Every transport keeps the promises of `actors.transport.Transport`."""

from __future__ import annotations

import pytest
import trio
from msgspec import structs

from actors.errors import DeliveryBusyError, DeliveryRefusedError, OverloadedError
from runtime.errors import StoreUnavailableError
from tests.contracts.transports import ALL, PLATFORMS, answer, ask, draft, wait_until
from tests.fakes.chat.stage_files import blobs_of, got
from tests.fakes.chat.stages import open_stage
from tests.fakes.media import PNG


@ALL
async def test_nothing_is_acknowledged_before_it_is_accepted(name: str) -> None:
    async with open_stage(name) as stage:
        stage.ingress.gate = trio.Event()
        await stage.write("hello")
        await stage.ingress.is_asked.wait()
        assert stage.acknowledged() == 0
        stage.ingress.gate.set()
        inbound = await stage.ingress.next()
        await stage.transport.deliver(answer(inbound, "hi"))
        await wait_until(stage, lambda: stage.acknowledged() == 1)


@ALL
async def test_what_a_stranger_writes_is_handed_in_to_be_refused(name: str) -> None:
    async with open_stage(name) as stage:
        sender = (await ask(stage, "hello")).sender_id
        stage.ingress.strangers.add(sender)
        await stage.write("hello again")
        await wait_until(stage, lambda: len(stage.ingress.turned_away) == 1)
        assert stage.ingress.turned_away[0].attachments == ()


@ALL
async def test_messages_of_a_chat_are_handed_in_as_they_were_written(name: str) -> None:
    async with open_stage(name) as stage:
        got = [await ask(stage, text) for text in ("one", "two", "three")]
        assert [inbound.text for inbound in got] == ["one", "two", "three"]
        assert len({inbound.address for inbound in got}) == 1
        assert len({inbound.id for inbound in got}) == 3
        assert len({inbound.platform_id for inbound in got}) == 3


@ALL
async def test_a_message_sent_twice_by_its_platform_is_taken_once(name: str) -> None:
    async with open_stage(name) as stage:
        if not stage.can_repeat:
            return
        await stage.write("hello", "key")
        first = await stage.ingress.next()
        await stage.write("hello", "key")
        await wait_until(stage, lambda: stage.acknowledged() == 1)
        await stage.transport.deliver(answer(first, "hi"))
        await wait_until(stage, lambda: stage.acknowledged() == 2)
        assert len(stage.ingress.accepted) == 1


@ALL
async def test_an_answer_is_shown_once_after_its_drafts(name: str) -> None:
    async with open_stage(name) as stage:
        inbound = await ask(stage, "hello")
        for word in ("good ", "morning ", "zoe"):
            stage.transport.show_draft(draft(inbound, word))
        receipt = await stage.transport.deliver(answer(inbound, "good morning zoe"))
        assert receipt
        await wait_until(stage, lambda: "zoe" in stage.shown())
        assert stage.shown().count("good") == 1
        assert "good morning zoe" in stage.shown()


@ALL
async def test_an_answer_delivered_again_is_shown_once(name: str) -> None:
    async with open_stage(name) as stage:
        inbound = await ask(stage, "hello")
        again = answer(inbound, "Ben knows.", left=1)
        first = await stage.transport.deliver(again)
        assert await stage.transport.deliver(again) == first
        await stage.transport.deliver(answer(inbound, "I do.", "ben"))
        await wait_until(stage, lambda: "I do." in stage.shown())
        assert stage.shown().count("Ben knows.") == 1


@ALL
async def test_a_file_arrives_whole_with_its_words_and_once(name: str) -> None:
    async with open_stage(name) as stage:
        inbound = await ask(stage, "hello")
        if stage.transport.abilities.files is None:
            return
        file = blobs_of(stage).sent(PNG, "a.png")
        first = answer(inbound, "Here it is.", left=2)
        second = structs.replace(answer(inbound, "look"), part=1, parts=2, file=file)
        for each in (first, second):
            await stage.transport.deliver(each)
        if stage.transport.abilities.is_idempotent:
            await stage.transport.deliver(second)
        await wait_until(stage, lambda: "look" in stage.shown())
        assert stage.shown().count("look") == 1
        assert await got(stage) == [PNG]


@ALL
async def test_a_file_whose_bytes_are_gone_is_refused(name: str) -> None:
    async with open_stage(name) as stage:
        inbound = await ask(stage, "hello")
        if stage.transport.abilities.files is None:
            return
        file = blobs_of(stage).sent(PNG, "a.png")
        blobs_of(stage).find(file).unlink()
        said = structs.replace(answer(inbound, "look"), file=file)
        with pytest.raises(DeliveryRefusedError):
            await stage.transport.deliver(said)
        assert await got(stage) == []
        await stage.transport.deliver(answer(inbound, "hi"))
        await wait_until(stage, lambda: "hi" in stage.shown())


@ALL
async def test_what_it_can_do_never_changes(name: str) -> None:
    async with open_stage(name) as stage:
        abilities = stage.transport.abilities
        assert abilities.max_part_chars >= 0
        assert abilities.pace >= 0
        # Who is told again without harm need not be asked whether it was told.
        assert not (abilities.is_idempotent and abilities.can_look_up)
        inbound = await ask(stage, "hello")
        await stage.transport.deliver(answer(inbound, "hi"))
        assert stage.transport.abilities == abilities


@ALL
async def test_who_can_look_up_knows_what_was_said(name: str) -> None:
    async with open_stage(name) as stage:
        inbound = await ask(stage, "hello")
        said = answer(inbound, "hi")
        able = stage.transport.abilities.can_look_up or name == "fake"
        if not able:
            with pytest.raises(DeliveryBusyError):
                await stage.transport.look_up(said)
            return
        assert await stage.transport.look_up(said) is None
        receipt = await stage.transport.deliver(said)
        assert await stage.transport.look_up(said) == receipt
        assert await stage.transport.look_up(answer(inbound, "no")) is None


@ALL
async def test_who_knows_our_ids_says_a_part_once_and_its_neighbour_too(
    name: str,
) -> None:
    async with open_stage(name) as stage:
        if not stage.transport.abilities.is_idempotent:
            return
        inbound = await ask(stage, "hello")
        first = answer(inbound, "one and ", left=1)
        second = structs.replace(answer(inbound, "two."), part=1)
        for each in (first, first, second):
            await stage.transport.deliver(each)
        await wait_until(stage, lambda: "two." in stage.shown())
        assert stage.shown().count("one and") == stage.shown().count("two.") == 1


@ALL
async def test_a_second_agents_answer_stands_under_its_name(name: str) -> None:
    async with open_stage(name) as stage:
        inbound = await ask(stage, "hello")
        await stage.transport.deliver(answer(inbound, "Ask him.", left=1))
        await stage.transport.deliver(answer(inbound, "Yes?", "ben"))
        await wait_until(stage, lambda: "Yes?" in stage.shown())
        assert "ben" in stage.shown().partition("Ask him.")[2]


@ALL
@pytest.mark.parametrize(
    ("error", "told"),
    [
        (OverloadedError("too much"), "too much"),
        (StoreUnavailableError("disk full"), "essage cannot be stored now"),
    ],
)
async def test_a_person_learns_that_a_message_was_not_taken(
    name: str, error: Exception, told: str
) -> None:
    if name in {"fake", "room", "terminal"}:
        told = str(error)  # whoever runs it sits there
    async with open_stage(name) as stage:
        stage.ingress.error = error
        await stage.write("hello")
        await wait_until(stage, lambda: told in stage.shown())
        stage.ingress.error = None
        inbound = await ask(stage, "hello again")
        await stage.transport.deliver(answer(inbound, "hi"))
        await wait_until(stage, lambda: "hi" in stage.shown())


@ALL
@pytest.mark.parametrize("reason", ["replied", "dropped:loop", "cancelled", "dead"])
async def test_a_settled_message_leaves_the_chat_usable(name: str, reason: str) -> None:
    async with open_stage(name) as stage:
        inbound = await ask(stage, "hello")
        stage.transport.show_draft(draft(inbound, "half an "))
        await stage.transport.settle(inbound, reason)
        second = await ask(stage, "and now?")
        await stage.transport.deliver(answer(second, "now it works"))
        await wait_until(stage, lambda: "now it works" in stage.shown())


@ALL
async def test_words_about_an_unknown_message_do_no_harm(name: str) -> None:
    async with open_stage(name) as stage:
        inbound = await ask(stage, "hello")
        unknown = structs.replace(inbound, id="unknown", correlation_id="unknown")
        await stage.transport.settle(unknown, "dead")
        await stage.transport.deliver(answer(inbound, "hi"))
        await wait_until(stage, lambda: "hi" in stage.shown())


@ALL
async def test_a_cancelled_listener_ends_and_refuses_answers(name: str) -> None:
    async with open_stage(name) as stage:
        inbound = await ask(stage, "hello")
        stage.listening.cancel()
        with trio.fail_after(5):
            await stage.ended.wait()
        # Platforms keep chats: whoever listens next says what is still to be said.
        keeps = name in {*PLATFORMS, "terminal", "fake"}
        later = DeliveryBusyError if keeps else DeliveryRefusedError
        with pytest.raises(later):
            await stage.transport.deliver(answer(inbound, "too late"))
        stage.transport.show_draft(draft(inbound, "too late"))
        await stage.transport.settle(inbound, "dead")
