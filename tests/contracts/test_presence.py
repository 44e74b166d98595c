"""Every transport that edits and reacts keeps the promises of `Presence`."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest
import trio
import trio.testing

from actors.config.presence import PresenceConfig
from actors.errors import DeliveryRefusedError
from actors.messages.deliveries import Abilities, Delivery, Edit, Reaction, Typing
from actors.transport import Presence
from tests.fakes.chat.presence_stages import PresenceStage, open_presence
from tests.fakes.outbound.drafted import open_chat, reply

EDITING = ["fake", "discord", "matrix", "page", "slack", "telegram"]
ALL = pytest.mark.parametrize("name", EDITING)
SIGNS = pytest.mark.parametrize("name", [*EDITING, "whatsapp"])


def presence_of(stage: PresenceStage) -> Presence:
    presence = stage.transport.presence
    assert presence is not None
    assert stage.transport.presence is presence, "it is constant"
    return presence


def first(stage: PresenceStage, text: str = "...", key: str = "m1:draft:0") -> Delivery:
    return Delivery(
        id=key,
        correlation_id="m1",
        address=stage.address,
        agent=stage.agent,
        text=text,
        reply_id="m1",
        is_draft=True,
        is_root=False,
        answers_left=1,
    )


def edit(
    stage: PresenceStage, receipt: str, text: str, key: str, *, is_last: bool = False
) -> Edit:
    return Edit(
        id=key,
        correlation_id="m1",
        address=stage.address,
        agent=stage.agent,
        receipt=receipt,
        text=text,
        is_last=is_last,
    )


def sign(
    stage: PresenceStage, message: str, emoji: str, instead_of: str = ""
) -> Reaction:
    return Reaction(
        correlation_id="m1",
        address=stage.address,
        agent=stage.agent,
        message=message,
        sign=emoji,
        instead_of=instead_of,
    )


@ALL
async def test_a_message_reads_what_its_last_edit_says(name: str) -> None:
    async with open_presence(name) as stage:
        presence = presence_of(stage)
        receipt = await stage.transport.deliver(first(stage))
        assert await stage.read(receipt) == "..."
        await presence.edit(edit(stage, receipt, "Hel", "e1"))
        assert await stage.read(receipt) == "Hel"
        await presence.edit(edit(stage, receipt, "Hello.", "e2", is_last=True))
        assert await stage.read(receipt) == "Hello."


@ALL
async def test_an_edit_made_twice_or_that_changes_nothing_is_no_error(
    name: str,
) -> None:
    async with open_presence(name) as stage:
        presence = presence_of(stage)
        receipt = await stage.transport.deliver(first(stage, "Hello."))
        for key in ("e1", "e1", "e2"):
            await presence.edit(edit(stage, receipt, "Hello.", key, is_last=True))
        assert await stage.read(receipt) == "Hello."


@ALL
async def test_the_beginning_of_an_answer_is_found_again_by_its_id(name: str) -> None:
    async with open_presence(name) as stage:
        if not stage.transport.abilities.is_idempotent:
            return
        presence = presence_of(stage)
        receipt = await stage.transport.deliver(first(stage))
        await presence.edit(edit(stage, receipt, "Hel", "e1"))
        assert await stage.transport.deliver(first(stage, "…")) == receipt
        assert await stage.read(receipt) == "Hel"


@ALL
async def test_a_message_that_is_not_there_cannot_be_edited(name: str) -> None:
    async with open_presence(name) as stage:
        receipt = await stage.transport.deliver(first(stage))
        unknown = receipt[:1] + "nobody-knows-it" + receipt[-1:]
        with pytest.raises(DeliveryRefusedError):
            await presence_of(stage).edit(edit(stage, unknown, "Hello.", "e1"))


@ALL
async def test_who_takes_back_takes_away_what_is_to_read_nothing(name: str) -> None:
    async with open_presence(name) as stage:
        if not stage.transport.abilities.takes_back:
            return
        receipt = await stage.transport.deliver(first(stage))
        await presence_of(stage).edit(edit(stage, receipt, "", "e1"))
        assert await stage.read(receipt) is None


@SIGNS
async def test_one_sign_takes_the_place_of_the_other(name: str) -> None:
    async with open_presence(name) as stage:
        presence, message = presence_of(stage), await stage.write()
        await presence.react(sign(stage, message, "👀"))
        assert await stage.signs(message) == ["👀"]
        await presence.react(sign(stage, message, "✅", "👀"))
        assert await stage.signs(message) == ["✅"]
        await presence.react(sign(stage, message, "", "✅"))
        assert await stage.signs(message) == []


@SIGNS
async def test_a_sign_that_is_there_or_is_not_is_no_error(name: str) -> None:
    async with open_presence(name) as stage:
        presence, message = presence_of(stage), await stage.write()
        for _ in range(2):
            await presence.react(sign(stage, message, "👀"))
        assert await stage.signs(message) == ["👀"]
        other = await stage.write()
        await presence.react(sign(stage, other, "✅", "👀"))
        assert await stage.signs(other) == ["✅"]


@SIGNS
async def test_its_figures_make_sense_and_typing_never_fails(name: str) -> None:
    async with open_presence(name) as stage:
        abilities = stage.transport.abilities
        assert abilities.draft_pace >= 0
        assert abilities.typing_for >= 0
        for is_over in (False, False, True, True):
            if is_over and not abilities.ends_typing:
                continue
            stage.transport.show_typing(
                Typing(
                    correlation_id="m1",
                    reply_id="m1",
                    address=stage.address,
                    agent=stage.agent,
                    is_over=is_over,
                )
            )


async def test_who_changes_nothing_says_so_and_shows_no_drafts() -> None:
    async with open_presence("whatsapp") as stage:
        assert not stage.transport.abilities.shows_drafts
        receipt = await stage.transport.deliver(first(stage, "Hello."))
        with pytest.raises(DeliveryRefusedError):
            await presence_of(stage).edit(edit(stage, receipt, "Hello!", "e1"))
        assert await stage.read(receipt) == "Hello."


QUICK = "It is 84."
LONG = "The answer takes a while to write, and people see it grow. " * 8


async def times_to_answer(clock: trio.testing.MockClock, can: Abilities) -> list[Any]:
    """Measure with the usual settings how long complete answers wait, in seconds.

    Gives for a quick answer its wait and the texts that people saw, then the wait of a
    long one that grew for four seconds, and whether it was shown growing.
    """
    usual = PresenceConfig()
    async with open_chat(clock, can, presence=usual) as chat:
        chat.write(QUICK)
        began = trio.current_time()
        await chat.say(reply(QUICK))
        found = [trio.current_time() - began, chat.screen.seen, chat.screen.hand.edits]
    async with open_chat(clock, can, presence=usual) as chat:
        for place in range(0, len(LONG), 12):
            chat.write(LONG[place : place + 12])
            await trio.sleep(0.1)
        grew, began = bool(chat.screen.seen), trio.current_time()
        await chat.say(reply(LONG.strip()))
        assert chat.screen.seen == [LONG.strip()]
        return [*found, trio.current_time() - began, grew]


@ALL
async def test_a_complete_answer_goes_out_at_the_pace_of_the_platform(
    name: str,
) -> None:
    async with open_presence(name) as stage:
        can = stage.transport.abilities
    clock = trio.testing.MockClock(autojump_threshold=0)
    measure = partial(times_to_answer, clock, can)
    quick, seen, edits, long, grew = await trio.to_thread.run_sync(
        lambda: trio.run(measure, clock=clock)
    )
    assert seen == [QUICK]
    assert can.has_free_drafts or not edits, "a quick answer is one message"
    assert quick <= 0.3
    assert long <= can.pace + 0.3
    assert grew is not can.is_sparing
