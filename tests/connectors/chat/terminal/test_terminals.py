"""Several terminals talk with one company, leave and come back, and lose nothing."""

from __future__ import annotations

import os
import stat
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import msgspec
import pytest
import trio
import trio.testing

from actors.errors import OverloadedError
from actors.messages.deliveries import Delivery
from actors.messages.inbound import Address
from actors.transport import Earlier
from connectors.chat.terminal import client as frames
from connectors.chat.terminal.client import (
    FrameReader,
    FrameTooLongError,
    FromCompany,
    TerminalClient,
    TerminalFile,
    TerminalHello,
    TerminalRefusedError,
    TerminalRoster,
    TerminalSettled,
    TerminalTaken,
    TerminalTold,
)
from connectors.chat.terminal.platform import TerminalConfig
from connectors.chat.terminal.transport import (
    TerminalTransport,
    dial,
    listen_at,
    socket_beside,
)
from runtime import __version__
from tests.fakes.media import PNG
from tests.fakes.store.in_memory import MemoryStore
from tests.fakes.web.backstage import FakeCompany
from tests.support.chat.terminal_bed import HELLO, TerminalBed

DESK = TerminalHello(__version__, "desk")
AT_DESK = Delivery(
    id="d",
    correlation_id="c",
    address=Address("terminal", "desk"),
    agent="anna",
    text="good morning",
)


class Watcher:
    """Somebody who sees what a terminal is told."""

    client: TerminalClient

    def __init__(self) -> None:
        self.frames: list[FromCompany] = []
        self.losses = 0
        self.leaving = trio.CancelScope()
        self.left = trio.Event()
        self._changed = trio.Event()

    def hear(self, frame: FromCompany) -> None:
        self.frames.append(frame)
        self._note_change()

    def lose(self) -> None:
        self.losses += 1
        self._note_change()

    @property
    def said(self) -> list[str]:
        return [each.text for each in self.frames if isinstance(each, TerminalTold)]

    def has(self, kind: type[FromCompany]) -> bool:
        return any(isinstance(each, kind) for each in self.frames)

    def count(self, kind: type[FromCompany]) -> int:
        return sum(isinstance(each, kind) for each in self.frames)

    async def say(self, text: str, *files: TerminalFile) -> None:
        await self.client.say(self.client.new_message(text, files))

    async def run(self) -> None:
        with self.leaving:
            await self.client.run()
        self.left.set()

    async def leave(self) -> None:
        self.leaving.cancel()
        await self.left.wait()

    async def wait(self, is_so: Callable[[Watcher], bool]) -> None:
        with trio.fail_after(5):
            while not is_so(self):
                await self._changed.wait()

    def _note_change(self) -> None:
        self._changed.set()
        self._changed = trio.Event()


class Room(TerminalBed):
    """Terminals of which a test opens as many as it likes."""

    nursery: trio.Nursery

    async def open(self, hello: TerminalHello = HELLO) -> Watcher:
        watcher = Watcher()
        watcher.client = self.client(watcher, hello)
        self.nursery.start_soon(watcher.run)
        await watcher.wait(lambda each: each.has(TerminalRoster))
        return watcher

    async def begin_anew(self) -> None:
        """Serve terminals as a process does that takes over the database."""
        self.terminal = TerminalTransport("terminal", TerminalConfig(), self.parts)
        self.nursery.start_soon(self.terminal.listen, self.ingress)
        await self.terminal.wait_listening()


@asynccontextmanager
async def open_room() -> AsyncGenerator[Room]:
    """Serve terminals until the block ends."""
    room = Room()
    async with trio.open_nursery() as room.nursery:
        await room.nursery.start(room.listen)
        yield room
        room.nursery.cancel_scope.cancel()


async def test_each_terminal_is_a_conversation_of_its_own() -> None:
    async with open_room() as room:
        first, second = await room.open(), await room.open()
        for terminal, text in ((first, "one"), (second, "two")):
            await terminal.say(text)
            await room.say(await room.ingress.next(), "anna", text.upper())
            await terminal.wait(lambda each: bool(each.said))
        chats = [inbound.address.chat for inbound in room.ingress.accepted]
    assert chats == ["terminal", "terminal-2"]
    assert (first.said, second.said) == (["ONE"], ["TWO"])


async def test_a_conversation_can_be_seen_at_two_terminals() -> None:
    async with open_room() as room:
        both = [await room.open(DESK) for _ in range(2)]
        await room.terminal.deliver(AT_DESK)
        for each in both:
            await each.wait(lambda each: each.said == ["good morning"])


async def test_what_is_said_while_nobody_is_there_is_told_once() -> None:
    async with open_room() as room:
        await room.terminal.deliver(AT_DESK)
        await room.terminal.deliver(AT_DESK)  # as after a crash
        back = await room.open(DESK)
        await back.wait(lambda each: each.said == ["good morning"])
        await back.leave()  # before anything was shown
        again = await room.open(DESK)
        await again.wait(lambda each: each.said == ["good morning"])
        await again.client.have(1)
        await trio.testing.wait_all_tasks_blocked()
        await again.leave()
        third = await room.open(DESK)
        await trio.testing.wait_all_tasks_blocked()
        assert third.said == []


async def test_a_terminal_comes_back_and_hears_and_says_all_once(
    autojump_clock: trio.testing.MockClock,
) -> None:
    async with open_room() as room:
        desk = await room.open(DESK)
        await room.terminal.deliver(AT_DESK)
        await desk.wait(lambda each: bool(each.said))
        await room.cut()
        await desk.wait(lambda each: each.losses == 1)
        await desk.say("are you there?")
        more = msgspec.structs.replace(AT_DESK, id="e", text="and good night")
        await room.terminal.deliver(more)
        await desk.wait(lambda each: len(each.said) == 2)
        inbound = await room.ingress.next()
    assert desk.said == ["good morning", "and good night"]
    assert (inbound.text, inbound.address.chat) == ("are you there?", "desk")
    assert autojump_clock.current_time() < 5


async def test_what_waits_to_be_sent_when_the_connection_breaks_ends_nothing(
    autojump_clock: trio.testing.MockClock,
) -> None:
    del autojump_clock
    async with open_room() as room:
        desk = await room.open(DESK)
        async with trio.open_nursery() as nursery:
            for text in ("one", "two", "three"):
                nursery.start_soon(desk.say, text)
            await room.cut()
        inbounds = [await room.ingress.next() for _ in range(3)]
    assert {each.text for each in inbounds} == {"one", "two", "three"}


async def test_a_message_whose_receipt_was_lost_counts_once(
    autojump_clock: trio.testing.MockClock,
) -> None:
    del autojump_clock
    async with open_room() as room:
        room.ingress.gate = trio.Event()
        desk = await room.open(DESK)
        await desk.say("hello")
        await room.ingress.is_asked.wait()
        room.ingress.gate.set()
        await room.cut()
        await desk.wait(lambda each: each.has(TerminalTaken))
    assert [each.text for each in room.ingress.accepted] == ["hello"]


@pytest.mark.parametrize("before", range(3))
async def test_a_company_that_begins_anew_says_when_a_message_has_its_answers(
    before: int, autojump_clock: trio.testing.MockClock
) -> None:
    del autojump_clock
    async with open_room() as room:
        desk = await room.open(DESK)
        await desk.say("hello")
        inbound = await room.ingress.next()
        await desk.wait(lambda each: each.has(TerminalTaken))
        await room.cut()
        answer = msgspec.structs.replace(AT_DESK, correlation_id=inbound.id)
        texts = {"ask ben": 1, "hi": 0}
        answers = [
            msgspec.structs.replace(answer, id=text, text=text, answers_left=left)
            for text, left in texts.items()
        ]
        for each in answers[:before]:
            await room.terminal.deliver(each)
        outcome = "replied:ok" if before else ""
        given = tuple(answers[:before])
        found = Earlier(inbound, outcome, given, frozenset(x.id for x in given))
        room.ingress.answered["terminal", inbound.platform_id] = found
        await room.begin_anew()
        await desk.wait(lambda each: each.count(TerminalTaken) == 2)
        for each in answers[before:]:
            await room.terminal.deliver(each)
        await desk.wait(lambda each: each.has(TerminalSettled))
    assert desk.said == ["ask ben", "hi"]
    assert desk.count(TerminalSettled) == 1
    assert [each.text for each in room.ingress.accepted] == ["hello"]


async def test_a_message_that_was_stopped_meanwhile_is_not_waited_for(
    autojump_clock: trio.testing.MockClock,
) -> None:
    del autojump_clock
    async with open_room() as room:
        desk = await room.open(DESK)
        await desk.say("hello")
        inbound = await room.ingress.next()
        await desk.wait(lambda each: each.has(TerminalTaken))
        await room.cut()
        aside = msgspec.structs.replace(
            AT_DESK, correlation_id=inbound.id, is_aside=True, is_root=False
        )
        await room.terminal.deliver(aside)
        found = Earlier(inbound, "cancelled:stopped", (aside,), frozenset([aside.id]))
        room.ingress.answered["terminal", inbound.platform_id] = found
        await room.begin_anew()
        await desk.wait(lambda each: each.has(TerminalSettled))
    settled = [x.reason for x in desk.frames if isinstance(x, TerminalSettled)]
    assert settled == ["cancelled:stopped"]


async def test_a_terminal_learns_who_has_come(
    autojump_clock: trio.testing.MockClock,
) -> None:
    del autojump_clock
    async with open_room() as room:
        desk = await room.open(DESK)
        before = desk.frames[-1]
        more = FakeCompany(MemoryStore(), ("anna", "ben", "zoe"))
        room.company.roster = more.roster
        await desk.wait(lambda each: each.frames[-1] != before)
        after = desk.frames[-1]
    assert isinstance(after, TerminalRoster)
    assert [each.name for each in after.agents] == ["anna", "ben", "zoe"]


async def test_settled_comes_behind_the_last_answer() -> None:
    async with open_room() as room:
        desk = await room.open(DESK)
        await desk.say("hello")
        inbound = await room.ingress.next()
        await room.say(inbound, "anna", "ask ben", left=1)
        await room.say(inbound, "ben", "hi")
        await desk.wait(lambda each: each.has(TerminalSettled))
    assert isinstance(desk.frames[-1], TerminalSettled)
    assert desk.said == ["ask ben", "hi"]


async def test_a_file_comes_with_the_message() -> None:
    async with open_room() as room:
        desk = await room.open(DESK)
        await desk.say("look", TerminalFile("../cat\x1b.png", PNG))
        (file,) = (await room.ingress.next()).attachments
    assert (file.kind, file.name, file.media_type) == ("image", "cat_.png", "image/png")
    assert file.content == PNG


async def test_bytes_that_are_no_text_end_nothing() -> None:
    async with open_room() as room:
        watcher = await room.open()
        await watcher.say("hi \udcff", TerminalFile("\udcff.png", PNG))
        await watcher.wait(lambda each: each.has(TerminalTaken))
        (inbound,) = room.ingress.accepted
        assert (inbound.text, inbound.attachments[0].name) == ("hi ?", "_.png")


async def test_why_a_message_is_not_taken_is_told() -> None:
    async with open_room() as room:
        desk = await room.open(DESK)
        room.ingress.error = OverloadedError("too much")
        await desk.say("hello")
        await desk.wait(lambda each: each.has(TerminalTaken))
        taken = desk.frames[-1]
    assert isinstance(taken, TerminalTaken)
    assert (taken.refused, taken.is_final) == ("too much", False)


@pytest.mark.parametrize(
    ("hello", "why"),
    [
        (TerminalHello("0.0.1"), "stop `callboard serve` and start it again"),
        (TerminalHello(__version__, "a/b"), "up to 64 of"),
        (TerminalHello(__version__, agent="zoe"), "no agent 'zoe'; known: anna, ben"),
    ],
)
async def test_who_is_not_let_in_learns_why(hello: TerminalHello, why: str) -> None:
    async with open_room() as room:
        with pytest.raises(TerminalRefusedError, match=why):
            await room.client(Watcher(), hello).run()


async def test_rubbish_ends_one_connection_and_no_other() -> None:
    async with open_room() as room:
        desk = await room.open(DESK)
        other = await room.dial()
        await other.send_all(b'{"type": "hello"}\n')
        assert await other.receive_some() == b""
        await room.terminal.deliver(AT_DESK)
        await desk.wait(lambda each: bool(each.said))


async def test_a_frame_has_a_longest_length(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(frames, "MOST_FRAME", 10)
    here, there = trio.testing.memory_stream_pair()
    await here.send_all(b"short\n" + b"x" * 11)
    reader = FrameReader(there)
    assert await reader.line() == b"short"
    with pytest.raises(FrameTooLongError):
        await reader.line()


async def test_the_socket_is_for_its_owner_alone_and_goes_with_the_company(
    tmp_path: Path,
) -> None:
    # Longer than the name of a socket may be.
    folder = tmp_path / ("long" * 30)
    folder.mkdir()
    bed = TerminalBed(database=folder / "callboard.db")
    path = socket_beside(folder / "callboard.db")
    listen_at(path).close()  # a process left it behind
    with pytest.raises(OSError, match="refused"):
        await dial(path)
    async with trio.open_nursery() as nursery:
        await nursery.start(bed.listen)
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        async with await dial(path) as stream:
            await frames.send(stream, HELLO)
            line = await FrameReader(stream).line()
            assert line is not None
            assert b'"welcome"' in line
        nursery.cancel_scope.cancel()
    assert not [*folder.iterdir()]


async def test_another_users_terminal_learns_that_it_is_not_let_in(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bed = TerminalBed(database=tmp_path / "callboard.db")
    monkeypatch.setattr(os, "getuid", lambda: -1)
    async with trio.open_nursery() as nursery:
        await nursery.start(bed.listen)
        async with await dial(socket_beside(tmp_path / "callboard.db")) as stream:
            await frames.send(stream, HELLO)
            reader = FrameReader(stream)
            line = await reader.line()
            assert line is not None
            assert b"sudo -u" in line
            with trio.fail_after(5):
                assert await reader.line() is None
        nursery.cancel_scope.cancel()


async def test_a_company_that_ends_leaves_the_socket_of_the_next_one(
    tmp_path: Path,
) -> None:
    bed = TerminalBed(database=tmp_path / "callboard.db")
    path = socket_beside(tmp_path / "callboard.db")
    async with trio.open_nursery() as nursery:
        await nursery.start(bed.listen)
        with listen_at(path):  # it has taken the database over
            nursery.cancel_scope.cancel()
            await trio.testing.wait_all_tasks_blocked()
    assert path.is_socket()


def test_a_file_that_is_no_socket_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "callboard.db.socket"
    path.write_text("mine")
    with pytest.raises(OSError, match="no socket"):
        listen_at(path)
    assert path.read_text() == "mine"
