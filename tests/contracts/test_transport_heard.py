"""Every transport hands in what people wrote, whole and once, whatever it is."""

from __future__ import annotations

import pytest
import trio

from actors.errors import MessageRefusedError, OverloadedError
from tests.contracts.transports import ALL, answer, ask, wait_until
from tests.fakes.chat.stages import open_stage

LETTERS = [
    "grüß dich, Zoë",
    "日本語のテキスト",
    "👩‍👩‍👧‍👦 and 🏳️‍🌈",
    "e\u0301 is not \u00e9",
    "مرحبا hello שלום",
    "2 < 3 & 4 > 1, \"so\" 'it' is",
    "a \\ b / c | d",
    "*not* _bold_ ~or~ `code`",
    "{curly} %s {0} ${HOME}",
]


@ALL
@pytest.mark.parametrize("text", LETTERS, ids=range(len(LETTERS)))
async def test_words_come_as_they_were_written(name: str, text: str) -> None:
    async with open_stage(name) as stage:
        assert (await ask(stage, text)).text == text


@ALL
async def test_a_message_says_where_it_is_from_and_by_whom(name: str) -> None:
    async with open_stage(name) as stage:
        first, second = await ask(stage, "hello"), await ask(stage, "and again")
        assert first.platform
        assert first.address == second.address
        assert (first.sender_id, first.sender_name) == (
            second.sender_id,
            second.sender_name,
        )
        assert first.sender_id
        assert first.sender_name
        assert 0 < first.received_at <= second.received_at
        assert first.correlation_id == first.id
        assert first.occasion == ""
        assert not first.is_bot


@ALL
async def test_the_longest_that_people_write_comes_whole(name: str) -> None:
    async with open_stage(name) as stage:
        text = "word " * 790 + "end"
        assert (await ask(stage, text)).text == text


@ALL
@pytest.mark.parametrize("nothing", ["   ", "\t", "\u200b", "."])
async def test_next_to_nothing_does_no_harm(name: str, nothing: str) -> None:
    async with open_stage(name) as stage:
        await stage.write(nothing)
        await stage.write("hello")
        while (await stage.ingress.next()).text != "hello":
            pass
        assert len(stage.ingress.accepted) <= 2


@ALL
async def test_messages_that_wait_for_a_slow_disk_are_each_taken_once(
    name: str,
) -> None:
    async with open_stage(name) as stage:
        texts = [f"number {number}" for number in range(4)]
        stage.ingress.gate = trio.Event()
        for text in texts:
            await stage.write(text)
        await stage.ingress.is_asked.wait()
        assert stage.ingress.accepted == []
        stage.ingress.gate.set()
        got: list[str] = []
        for _ in texts:
            inbound = await stage.ingress.next()
            got.append(inbound.text)
            await stage.transport.deliver(answer(inbound, f"re {inbound.text}"))
        assert sorted(got) == texts
        # Requests of programs come beside each other, a chat's messages never.
        assert name in {"http", "page", "web"} or got == texts
        await wait_until(stage, lambda: stage.acknowledged() == len(texts))
        assert len(stage.ingress.accepted) == len(texts)


@ALL
async def test_who_may_write_again_is_heard_again(name: str) -> None:
    async with open_stage(name) as stage:
        sender = (await ask(stage, "hello")).sender_id
        stage.ingress.strangers.add(sender)
        await stage.write("let me in")
        await wait_until(stage, lambda: len(stage.ingress.turned_away) == 1)
        stage.ingress.strangers.clear()
        inbound = await ask(stage, "thank you")
        assert inbound.text == "thank you"
        assert [each.text for each in stage.ingress.accepted] == ["hello", "thank you"]


@ALL
async def test_what_is_never_taken_holds_nothing_up(name: str) -> None:
    async with open_stage(name) as stage:
        stage.ingress.error = MessageRefusedError("it is too long for us")
        await stage.write("hello")
        await wait_until(stage, lambda: "too long for us" in stage.shown())
        stage.ingress.error = None
        inbound = await ask(stage, "shorter")
        assert inbound.text == "shorter"
        assert len(stage.ingress.accepted) == 1


@ALL
async def test_what_is_tried_again_is_taken_once(name: str) -> None:
    async with open_stage(name) as stage:
        stage.ingress.error = OverloadedError("too much at once")
        await stage.write("hello")
        await wait_until(stage, lambda: "too much at once" in stage.shown())
        stage.ingress.error = None
        await stage.write("and now")
        while (await stage.ingress.next()).text != "and now":
            pass  # what was tried again by the transport itself comes first
        texts = [each.text for each in stage.ingress.accepted]
        assert texts.count("and now") == 1
        assert texts.count("hello") <= 1
        assert len({each.platform_id for each in stage.ingress.accepted}) == len(texts)


@ALL
async def test_a_listener_that_is_cancelled_while_the_disk_is_slow_ends_at_once(
    name: str,
) -> None:
    async with open_stage(name) as stage:
        stage.ingress.gate = trio.Event()
        await stage.write("hello")
        await stage.ingress.is_asked.wait()
        stage.listening.cancel()
        with trio.fail_after(5):
            await stage.ended.wait()
        assert stage.ingress.accepted == []
