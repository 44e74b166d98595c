"""Every transport says what it is given, whole and once, and nothing else."""

from __future__ import annotations

import pytest
import trio
from msgspec import structs

from actors.messages.deliveries import Typing
from actors.messages.inbound import Address
from connectors.chat.platforms import platforms
from tests.contracts.transports import ALL, answer, ask, said_or_refused, wait_until
from tests.fakes.chat.stages import open_stage

WORDS = [
    "grüß dich, Zoë",
    "日本語のテキスト",
    "👩‍👩‍👧‍👦 and 🏳️‍🌈",
    "مرحبا hello שלום",
    "curly {0} %s and ${HOME}",
]
ODD = [
    "```python\nnever closed 7",
    "[a](http://x.test 7",
    "**bold _both** 7_",
    "> quoted\n> - list\n7",
    "| a | b |\n|---|\n| 7 |",
    "<b>7",
    "\\[ \\( 7 \\",
    "#" * 40 + " 7",
]


@ALL
@pytest.mark.parametrize("text", WORDS, ids=range(len(WORDS)))
async def test_letters_are_shown_as_they_are(name: str, text: str) -> None:
    async with open_stage(name) as stage:
        await stage.transport.deliver(answer(await ask(stage, "hello"), text))
        await wait_until(stage, lambda: text in stage.shown())


@ALL
@pytest.mark.parametrize("text", ODD, ids=range(len(ODD)))
async def test_odd_markdown_is_said_all_the_same(name: str, text: str) -> None:
    async with open_stage(name) as stage:
        assert await stage.transport.deliver(answer(await ask(stage, "hello"), text))
        await wait_until(stage, lambda: "7" in stage.shown())


@ALL
async def test_the_longest_part_goes_through_whole(name: str) -> None:
    async with open_stage(name) as stage:
        most = stage.transport.abilities.max_part_chars or 20_000
        text = ("word " * most)[: most - 4] + " end"
        await stage.transport.deliver(answer(await ask(stage, "hello"), text))
        await wait_until(stage, lambda: "end" in stage.shown())
        assert stage.shown().count("word") == text.count("word")


@ALL
async def test_a_part_that_is_far_too_long_ends_and_holds_nothing_up(
    name: str,
) -> None:
    async with open_stage(name) as stage:
        inbound = await ask(stage, "hello")
        most = stage.transport.abilities.max_part_chars or 20_000
        long = answer(inbound, "a" * (3 * most), left=1)
        receipt = await said_or_refused(stage, long)
        await stage.transport.deliver(answer(inbound, "Done."))
        await wait_until(stage, lambda: "Done." in stage.shown())
        # Whatever has a receipt is there from its first letter on.
        assert not receipt or "aaaa" in stage.shown()


@ALL
async def test_the_parts_of_an_answer_stand_in_their_order(name: str) -> None:
    async with open_stage(name) as stage:
        inbound = await ask(stage, "hello")
        words = ["one. ", "two. ", "three. ", "four. "]
        for part, word in enumerate(words):
            left = int(part + 1 < len(words))
            said = answer(inbound, word, left=left)
            await stage.transport.deliver(
                structs.replace(said, part=part, parts=len(words))
            )
        await wait_until(stage, lambda: "four." in stage.shown())
        shown = stage.shown()
        places = [shown.index(word.strip()) for word in words]
        assert places == sorted(places)


@ALL
async def test_the_same_words_of_two_deliveries_stand_twice(name: str) -> None:
    async with open_stage(name) as stage:
        inbound = await ask(stage, "hello")
        twice = answer(inbound, "Fine.", left=1)
        await stage.transport.deliver(twice)
        await stage.transport.deliver(
            structs.replace(twice, id="another", answers_left=0)
        )
        await wait_until(stage, lambda: stage.shown().count("Fine.") == 2)


@ALL
async def test_what_the_runtime_says_itself_is_shown(name: str) -> None:
    async with open_stage(name) as stage:
        inbound = await ask(stage, "hello")
        notice = structs.replace(answer(inbound, "I was away.", ""), kind="notice")
        await stage.transport.deliver(notice)
        await wait_until(stage, lambda: "I was away." in stage.shown())


@ALL
@pytest.mark.parametrize("trouble", ["busy", "refused", "timeout"])
async def test_what_went_wrong_is_shown(name: str, trouble: str) -> None:
    async with open_stage(name) as stage:
        inbound = await ask(stage, "hello")
        failed = structs.replace(
            answer(inbound, "No model answers."), trouble=trouble, kind="notice"
        )
        await stage.transport.deliver(failed)
        await wait_until(stage, lambda: "No model answers." in stage.shown())


@ALL
async def test_an_answer_to_what_is_gone_is_said_all_the_same(name: str) -> None:
    async with open_stage(name) as stage:
        inbound = await ask(stage, "hello")
        said = structs.replace(answer(inbound, "Still here."), reply_to="gone")
        await stage.transport.deliver(said)
        await wait_until(stage, lambda: "Still here." in stage.shown())


@ALL
async def test_a_chat_that_is_none_is_refused_or_nobodys(name: str) -> None:
    async with open_stage(name) as stage:
        inbound = await ask(stage, "hello")
        lost = structs.replace(
            answer(inbound, "Nobody there.", left=1),
            address=Address(inbound.address.connector, "no such chat", "nor thread"),
            correlation_id="nobody's",
        )
        await said_or_refused(stage, lost)
        await stage.transport.deliver(answer(inbound, "Here."))
        await wait_until(stage, lambda: "Here." in stage.shown())


@ALL
async def test_a_delivery_that_is_cancelled_before_it_begins_can_be_made_again(
    name: str,
) -> None:
    async with open_stage(name) as stage:
        inbound = await ask(stage, "hello")
        said = answer(inbound, "Once.", left=1)
        with trio.CancelScope() as scope:
            scope.cancel()
            await stage.transport.deliver(said)
        await stage.transport.deliver(said)
        await stage.transport.deliver(answer(inbound, "Done."))
        await wait_until(stage, lambda: "Done." in stage.shown())
        assert stage.shown().count("Once.") == 1


@ALL
async def test_settling_twice_or_before_an_answer_does_no_harm(name: str) -> None:
    async with open_stage(name) as stage:
        inbound = await ask(stage, "hello")
        for reason in ("cancelled", "cancelled", "replied"):
            await stage.transport.settle(inbound, reason)
        again = await ask(stage, "hello again")
        await stage.transport.deliver(answer(again, "Here."))
        for reason in ("replied", "replied"):
            await stage.transport.settle(again, reason)
        await wait_until(stage, lambda: "Here." in stage.shown())


@ALL
async def test_an_answer_that_comes_after_all_was_over_ends_well_or_is_refused(
    name: str,
) -> None:
    async with open_stage(name) as stage:
        inbound = await ask(stage, "hello")
        await stage.transport.settle(inbound, "dead")
        await said_or_refused(stage, answer(inbound, "Late."))
        again = await ask(stage, "hello again")
        await stage.transport.deliver(answer(again, "Here."))
        await wait_until(stage, lambda: "Here." in stage.shown())


@ALL
async def test_typing_that_is_shown_says_nothing(name: str) -> None:
    async with open_stage(name) as stage:
        inbound = await ask(stage, "hello")
        for chat in (inbound.address.chat, "no such chat"):
            for is_over in (False, False, True):
                where = structs.replace(inbound.address, chat=chat)
                typing = Typing(
                    correlation_id=inbound.correlation_id,
                    reply_id="r",
                    address=where,
                    agent="anna",
                    is_over=is_over,
                )
                stage.transport.show_typing(typing)
        await stage.transport.deliver(answer(inbound, "Here."))
        await wait_until(stage, lambda: "Here." in stage.shown())


@ALL
async def test_its_figures_fit_together(name: str) -> None:
    async with open_stage(name) as stage:
        transport, abilities = stage.transport, stage.transport.abilities
        assert transport.presence is transport.presence
        assert abilities.per_minute >= 0
        assert not abilities.ends_typing or abilities.shows_typing
        assert abilities.typing_for >= 0
        parts = {each.kind: each.limits.part for each in platforms()}
        if parts.get(name):
            assert abilities.max_part_chars == parts[name]
