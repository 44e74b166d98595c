"""Proves that an answer is shown while it is written, and stands in its chat once."""

from __future__ import annotations

from itertools import pairwise

import pytest
import trio
import trio.testing
from msgspec import structs

from actors.errors import DeliveryBusyError, DeliveryRefusedError, DeliveryUnknownError
from actors.messages.deliveries import Abilities, Delivery
from actors.protocol import MessageSettled
from tests.fakes.actors.neighbours import words
from tests.fakes.chat.presence import EDITS
from tests.fakes.outbound.drafted import KINDS, aside, notice, open_chat, reply

Clock = trio.testing.MockClock


@KINDS
async def test_a_placeholder_becomes_the_words_and_then_the_answer(
    abilities: Abilities, autojump_clock: Clock
) -> None:
    async with open_chat(autojump_clock, abilities) as chat:
        chat.write("Hel")
        await trio.sleep(0.5)
        assert chat.screen.seen == ["..."]
        chat.write("lo, ", "Zoe")
        await trio.sleep(1)
        assert chat.screen.seen == ["Hello, Zoe"]
        await chat.say(reply("Hello, Zoe. How are you?"))
        assert chat.screen.seen == ["Hello, Zoe. How are you?"]
        assert chat.receipt() == "receipt-m1:draft:0"
        last = chat.screen.hand.edits[-1]
        assert (last.is_last, last.agent) == (True, "anna")
        assert not any(each.is_last for each in chat.screen.hand.edits[:-1])
        assert [each.is_draft for each in chat.screen.deliveries] == [True]


@KINDS
async def test_edits_keep_their_pace_and_the_newest_words_win(
    abilities: Abilities, autojump_clock: Clock
) -> None:
    async with open_chat(autojump_clock, abilities) as chat:
        for number in range(100):
            chat.write(f"w{number} ")
            await trio.sleep(0.05)
        await chat.say(reply("done"))
        times = chat.screen.hand.edited_at
        assert 4 <= len(times) <= 7
        for before, after in pairwise(times[:-1]):
            assert after - before >= 1.0
        assert times[-1] <= 5.1, "the answer does not wait for the pace of drafts"
        assert chat.screen.seen == ["done"]


async def test_a_long_answer_goes_on_in_further_messages(autojump_clock: Clock) -> None:
    code = "\n".join(f"line {number:02}" for number in range(14))
    text = f"See:\n```py\n{code}\n```"
    abilities = structs.replace(EDITS, max_part_chars=80)
    async with open_chat(autojump_clock, abilities) as chat:
        for line in text.splitlines(keepends=True):
            chat.write(line)
            await trio.sleep(1)
        await trio.sleep(5)
        shown = chat.screen.seen
        assert len(shown) == 2
        assert all(each.endswith("\n```") for each in shown)
        await chat.say(*[reply(each, part, parts=2) for part, each in enumerate(shown)])
        assert chat.screen.seen == shown
        assert chat.receipt("m1:1") == "receipt-m1:draft:1"


@KINDS
async def test_what_is_said_beside_it_stands_where_it_was_said(
    abilities: Abilities, autojump_clock: Clock
) -> None:
    async with open_chat(autojump_clock, abilities) as chat:
        chat.write("Let me look.")
        await chat.say(aside("a tool"))
        assert [each.split(" ")[0] for each in chat.screen.seen] == ["...", "a"]
        await trio.sleep(5)
        chat.write("\n\nIt is no")
        await trio.sleep(5)
        assert chat.screen.seen == ["Let me look.", "a tool", "It is no"]
        await chat.say(reply("Let me look.\n\nIt is noon."))
        assert chat.screen.seen == ["Let me look.", "a tool", "It is noon."]


async def test_the_rest_is_said_below_if_no_word_of_it_was_shown(
    autojump_clock: Clock,
) -> None:
    async with open_chat(autojump_clock) as chat:
        chat.write("Let me look.")
        await chat.say(aside("a tool"))
        await chat.say(reply("Let me look.\n\nIt is noon."))
        assert chat.screen.seen == ["Let me look.", "a tool", "It is noon."]
        assert chat.receipt() == "receipt-m1:0"


@KINDS
async def test_a_message_that_is_gone_is_said_anew(
    abilities: Abilities, autojump_clock: Clock
) -> None:
    async with open_chat(autojump_clock, abilities) as chat:
        chat.write("Hello")
        await trio.sleep(3)
        chat.screen.texts.clear()
        await chat.say(reply("Hello, Zoe"))
        assert chat.screen.seen == ["Hello, Zoe"]
        assert chat.receipt() == "receipt-m1:0"


@KINDS
@pytest.mark.parametrize("is_done", [True, False])
async def test_a_last_edit_whose_answer_got_lost_is_made_again(
    is_done: bool,  # noqa: FBT001
    abilities: Abilities,
    autojump_clock: Clock,
) -> None:
    async with open_chat(autojump_clock, abilities) as chat:
        chat.write("Hello")
        await trio.sleep(3)
        chat.screen.hand.is_done_all_the_same = is_done
        chat.screen.hand.faults.extend([DeliveryUnknownError("lost")] * 2)
        await chat.say(reply("Hello, Zoe"))
        assert chat.screen.seen == ["Hello, Zoe"]
        assert await chat.road.outbox() == {"sent": 1}


async def test_a_busy_platform_is_left_alone_and_the_answer_lands(
    autojump_clock: Clock,
) -> None:
    async with open_chat(autojump_clock) as chat:
        chat.write("one ")
        await trio.sleep(1.5)
        chat.screen.hand.faults.append(DeliveryBusyError("x", retry_after=30))
        chat.write("two ")
        await trio.sleep(1)
        asked = len(chat.screen.hand.edits)
        for _ in range(20):
            chat.write("more ")
            await trio.sleep(1)
        assert len(chat.screen.hand.edits) == asked
        await chat.say(reply("the answer"))
        assert len(chat.screen.hand.edits) == asked + 1, (
            "it waits as the draft was told"
        )
        assert 31.5 <= trio.current_time() < 33
        assert chat.screen.seen == ["the answer"]


@KINDS
async def test_a_first_message_that_may_stand_there_is_not_said_twice(
    abilities: Abilities, autojump_clock: Clock
) -> None:
    async with open_chat(autojump_clock, abilities) as chat:
        chat.screen.lost.append(DeliveryUnknownError("lost"))
        chat.write("Hello")
        await trio.sleep(10)
        chat.write(", Zoe")
        await trio.sleep(10)
        await chat.say(reply("Hello, Zoe."))
        left = [] if abilities.is_idempotent else ["..."]
        assert chat.screen.seen == [*left, "Hello, Zoe."]


async def test_an_answer_finds_the_first_message_nobody_heard_of(
    autojump_clock: Clock,
) -> None:
    async with open_chat(autojump_clock) as chat:
        chat.screen.lost.append(DeliveryUnknownError("lost"))
        chat.write("Hello")
        await trio.sleep(0.1)
        await chat.say(reply("Hello, Zoe."))
        assert chat.screen.seen == ["Hello, Zoe."]


async def test_a_platform_that_takes_no_draft_takes_the_answer(
    autojump_clock: Clock,
) -> None:
    async with open_chat(autojump_clock) as chat:
        chat.screen.faults["room"].append(DeliveryRefusedError("no drafts"))
        chat.write("Hel", "lo")
        await trio.sleep(10)
        assert chat.screen.seen == []
        await chat.say(reply("Hello"))
        assert chat.screen.seen == ["Hello"]


@pytest.mark.parametrize(
    ("last", "seen"),
    [
        (reply("", kind="silence"), []),
        (notice("(stopped)", after_draft=True), ["Hello\n\n(stopped)"]),
        (notice("sorry", "0:9", trouble="broken"), ["sorry"]),
        (notice("again in 2 min", "waiting", trouble="waiting"), ["again in 2 min"]),
    ],
)
async def test_how_a_draft_ends_without_an_answer(
    last: Delivery, seen: list[str], autojump_clock: Clock
) -> None:
    async with open_chat(autojump_clock) as chat:
        chat.write("Hello")
        await trio.sleep(3)
        await chat.say(last)
        assert chat.screen.seen == seen
        chat.begin_again()
        chat.write("Anew")
        await trio.sleep(3)
        await chat.say(reply("Anew.", id="m1:again"))
        assert chat.screen.seen == [*seen, "Anew."]


async def test_the_wait_that_a_withdrawal_was_told_holds_for_the_next_answer(
    autojump_clock: Clock,
) -> None:
    async with open_chat(autojump_clock) as chat:
        chat.write("Hello")
        await trio.sleep(3)
        chat.screen.hand.faults.append(DeliveryBusyError("x", retry_after=30))
        began = trio.current_time()
        await chat.say(reply("", kind="silence"))
        await chat.say(reply("Anew.", id="m2:0"))
        assert 30 <= trio.current_time() - began < 32


async def test_what_cannot_be_taken_away_says_that_it_does_not_count(
    autojump_clock: Clock,
) -> None:
    abilities = structs.replace(EDITS, takes_back=False)
    async with open_chat(autojump_clock, abilities) as chat:
        chat.write("Hello")
        await trio.sleep(3)
        await chat.say(reply("", kind="silence"))
        assert chat.screen.seen == ["(withdrawn)"]


async def test_a_draft_that_nobody_goes_on_with_is_marked(
    autojump_clock: Clock,
) -> None:
    async with open_chat(autojump_clock) as chat:
        chat.write("Hello")
        await trio.sleep(3)
        chat.road.tell(MessageSettled(words(number=1), "cancelled"))
        await trio.sleep(3)
        assert chat.screen.seen == ["Hello\n\n(stopped)"]
        assert chat.screen.settled == [("m1", "cancelled")]


async def test_words_that_come_late_begin_no_new_draft(autojump_clock: Clock) -> None:
    async with open_chat(autojump_clock) as chat:
        chat.write("Hello")
        await chat.say(reply("Hello, Zoe"))
        chat.write(", Zoe")
        await trio.sleep(10)
        assert chat.screen.seen == ["Hello, Zoe"]
