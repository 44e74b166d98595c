"""Proves that what is said beside an answer is said once, in order and by itself."""

from __future__ import annotations

import msgspec
import trio
import trio.testing

from actors.journal.answers import aside, notice
from actors.messages.deliveries import Abilities, Delivery, Owed
from actors.messages.inbound import Usage
from actors.protocol import (
    Deliver,
    Finished,
    ShowDraft,
    TurnEnded,
    TurnReported,
    TurnStreamed,
)
from actors.transport import Account
from connectors.chat.terminal.plain import TerminalWriter
from connectors.web.exchange import HttpExchange
from runtime.clock import SystemClock
from runtime.errors import StoreUnavailableError
from runtime.store.rows import Commit
from tests.fakes.actors.neighbours import ROOM, of_kind, words
from tests.fakes.actors.room import RefusingStore, open_room
from tests.fakes.chat.console import FakeConsole
from tests.fakes.store.in_memory import MemoryStore
from tests.support.chat.terminal_bed import PIPE, open_chat

Clock = trio.testing.MockClock

TEXT = "\N{WRENCH} `clock`"
QUESTION = "may it? /approve 3F"


async def test_a_note_goes_out_after_the_words_before_it_and_before_the_answer(
    autojump_clock: Clock,
) -> None:
    async with open_room(autojump_clock) as room:
        await room.hear(words())
        start = await room.grant()
        for text in ("Let ", "me "):
            room.ref.tell(TurnStreamed(start.turn_id, text))
        room.ref.tell(TurnReported(start.turn_id, "a", TEXT))
        room.ref.tell(TurnEnded(start.turn_id, Finished("Let me see.")))
        await room.rest()
        assert room.said() == [TEXT, "Let me see."]
        out = [m for m in room.connector.received if isinstance(m, Deliver | ShowDraft)]
        assert [type(m) for m in out] == [ShowDraft, ShowDraft, Deliver, Deliver]
        said = of_kind(room.connector, Deliver)[0].delivery
        assert (said.id, said.kind, said.is_aside) == ("m1:aside:a", "notice", True)


async def test_a_note_of_another_turn_is_nobody_s_business(
    autojump_clock: Clock,
) -> None:
    async with open_room(autojump_clock) as room:
        room.ref.tell(TurnReported("t0", "a", TEXT))
        await room.hear(words())
        room.ref.tell(TurnReported("other", "a", TEXT))
        await room.answer()
        assert room.said() == ["yes"]


async def test_the_same_note_of_a_turn_that_is_begun_again_is_not_repeated(
    autojump_clock: Clock,
) -> None:
    store = MemoryStore()
    async with open_room(autojump_clock, store) as room:
        await room.hear(words())
        start = await room.grant()
        room.ref.tell(TurnReported(start.turn_id, "a", TEXT))
        await room.rest()
        room.ref.tell("nonsense")  # until it is a dead letter: the session fails
        await trio.sleep(5)
        start = await room.grant()
        for key in ("a", "b", "b"):
            room.ref.tell(TurnReported(start.turn_id, key, key))
        room.ref.tell(TurnEnded(start.turn_id, Finished("yes")))
        await room.rest()
        assert room.said() == [TEXT, "b", "yes"]
        assert (await store.counts()).inbox == {"replied": 1}


async def test_a_note_waits_for_the_disk_and_the_answer_for_the_note(
    autojump_clock: Clock,
) -> None:
    full = [True, True]

    def refuses(commit: Commit) -> bool:
        is_note = bool(commit.deliveries) and not commit.settles
        return bool(is_note and full and full.pop())

    store = RefusingStore(refuses, StoreUnavailableError("full"))
    async with open_room(autojump_clock, store) as room:
        await room.hear(words())
        start = await room.grant()
        room.ref.tell(TurnReported(start.turn_id, "a", TEXT))
        room.ref.tell(TurnEnded(start.turn_id, Finished("yes")))
        await room.rest()
        assert room.said() == []
        await trio.sleep(3)
        assert room.said() == [TEXT, "yes"]


async def test_a_note_that_can_never_be_stored_keeps_no_answer_waiting(
    autojump_clock: Clock,
) -> None:
    store = RefusingStore(lambda c: bool(c.deliveries and not c.settles), OSError("no"))
    async with open_room(autojump_clock, store) as room:
        await room.hear(words())
        start = await room.grant()
        room.ref.tell(TurnReported(start.turn_id, "a", TEXT))
        room.ref.tell(TurnEnded(start.turn_id, Finished("yes")))
        await room.rest()
        assert room.said() == ["yes"]


async def test_where_nobody_sees_notes_none_is_stored(autojump_clock: Clock) -> None:
    blind = {"fake": Account(Abilities(shows_asides=False))}
    async with open_room(autojump_clock, accounts=blind) as room:
        await room.hear(words())
        start = await room.grant()
        room.ref.tell(TurnReported(start.turn_id, "a", TEXT))
        await room.rest()
        assert room.said() == []


def test_a_note_takes_no_answer_s_place() -> None:
    owed = Owed()
    assert not owed.count(aside(words(), "a", TEXT).delivery)
    assert owed.count(notice(words(), "yes", ("replied", "ok")).deliveries[0])


async def test_http_has_the_answer_alone() -> None:
    exchange = HttpExchange("m1", "anna", is_live=True)
    assert exchange.deliver(aside(words(), "a", TEXT).delivery)
    assert not exchange.is_over
    exchange.deliver(notice(words(), "yes", ("replied", "ok")).deliveries[0])
    assert (exchange.is_over, exchange.text, exchange.take()) == (True, "yes", "yes")


async def test_over_http_a_silent_answer_ends_the_wait() -> None:
    exchange = HttpExchange("m1", "anna", is_live=True)
    silent = msgspec.structs.replace(
        notice(words(), "", ("replied", "silent")).deliveries[0], kind="silence"
    )
    assert exchange.deliver(silent)
    assert (exchange.is_over, exchange.text) == (True, "")


async def test_the_terminal_shows_a_note_on_a_line_of_its_own() -> None:
    async with open_chat(PIPE, FakeConsole("hello")) as chat:
        inbound = await chat.ingress.next()
        noted = aside(inbound, "a", TEXT).delivery
        await chat.terminal.deliver(noted)
        chat.draft(inbound, "anna", "Let me see.")
        for key in ("b", "b", "c"):
            await chat.terminal.deliver(aside(inbound, key, TEXT).delivery)
        chat.draft(inbound, "anna", "\n\nIt is noon.")
        await chat.say(inbound, "anna", "Let me see.\n\nIt is noon.")
    assert chat.console.screen == (
        f"you> hello\n* {TEXT}\nanna> Let me see.\n* {TEXT}\n* {TEXT}\n"
        "      It is noon.\n"
    )


def test_beside_nothing_a_note_is_one_line() -> None:
    assert TerminalWriter().beside("a\nb", is_speaking=False) == "* a\n  b\n"


async def test_with_a_pipe_an_approval_is_said_when_somebody_is_asked() -> None:
    console = FakeConsole("run it", "/approve", "and then", at_end=True)
    async with open_chat(PIPE, console) as chat:
        asked = await chat.ingress.next()
        await chat.terminal.deliver(aside(asked, "n", TEXT).delivery)
        await trio.testing.wait_all_tasks_blocked()
        assert chat.console.lines_read == 2
        await chat.terminal.deliver(aside(asked, "a", QUESTION).delivery)
        command = await chat.ingress.next()
        assert command.text == "/approve"
        await chat.say(command, "", "Approved.")
        await chat.say(asked, "anna", "done")
        last = await chat.ingress.next()
        await chat.say(last, "anna", "bye")
    assert (
        "* may it? /approve 3F\nyou> /approve\n* Approved.\nanna> done\n"
        in console.screen
    )


def test_a_client_is_told_when_the_model_may_be_had_again() -> None:
    for seconds, least, most in ((90.0, 80, 90), (1e6, 3600, 3600), (-5.0, 1, 1)):
        exchange = HttpExchange("m1", "anna", is_live=False)
        gone = Delivery(
            id="m1:0",
            correlation_id="m1",
            address=ROOM,
            agent="",
            text="not now",
            trouble="unavailable",
            retry_at=SystemClock().wall() + seconds,
        )
        assert exchange.deliver(gone)
        assert exchange.failure is not None
        wait = exchange.failure.retry_after
        assert wait is not None
        assert least <= wait <= most


def test_what_the_turns_of_an_exchange_took_is_added_up() -> None:
    exchange = HttpExchange("m1", "anna", is_live=False)
    for number, usage in enumerate((Usage(7, 5), None, Usage(1, 1))):
        said = Delivery(
            id=f"m1:{number}",
            correlation_id="m1",
            address=ROOM,
            agent="anna",
            text="x",
            usage=usage,
            answers_left=2 if number == 0 else 0,
        )
        exchange.deliver(said)
    assert exchange.usage == Usage(8, 6)
