"""The terminal shows every answer once, in order, and what it shows is harmless."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
import trio
import trio.testing
from hypothesis import given, strategies as st

from actors.errors import DeliveryBusyError, OverloadedError
from actors.messages.deliveries import Delivery
from actors.messages.inbound import Address
from actors.outbound.draft_rules import DraftPiece
from connectors.admin.display import make_safe
from connectors.chat.terminal.client import TerminalHello
from connectors.chat.terminal.plain import (
    MOST_CHARACTERS,
    MOST_UNANSWERED,
    PlainSettings,
    StandardConsole,
    TerminalWriter,
)
from runtime import __version__
from tests.fakes.chat.console import FakeConsole
from tests.support.chat.terminal_bed import PIPE, TYPED, Chat, open_chat


async def test_a_line_becomes_a_message() -> None:
    hello = TerminalHello(__version__, "desk", user="zoe", agent="anna")
    async with open_chat(TYPED, FakeConsole("  hello there "), hello) as chat:
        inbound = await chat.ingress.next()
    assert (inbound.text, inbound.agent, inbound.platform) == (
        "hello there",
        "anna",
        "terminal",
    )
    assert (inbound.sender_id, inbound.sender_name) == ("you", "zoe")
    assert inbound.address == Address("terminal", "desk")
    assert inbound.is_direct
    assert inbound.id == inbound.correlation_id
    assert inbound.platform_id.startswith("desk/=")


async def test_an_interactive_chat_reads_on_and_prompts_again() -> None:
    async with open_chat(TYPED, FakeConsole()) as chat:
        await chat.console.wait_screen("you> ")
        chat.console.type("hello")
        inbound = await chat.ingress.next()
        await chat.console.wait_screen("you> you> ")
        await chat.say(inbound, "anna", "hi")
        await chat.console.wait_screen("you> ")
    # The person's own line feed is the terminal's echo, so it is not in here.
    assert chat.console.screen == "you> you> \nanna> hi\nyou> \n"


async def test_what_was_printed_when_it_was_told_to_end_is_not_told_again() -> None:
    class LastConsole(FakeConsole):
        async def write(self, text: str) -> None:
            if "anna> hi" in text:
                nursery.cancel_scope.cancel()  # as Ctrl-C does
            await super().write(text)

    chat = Chat(TYPED, LastConsole("hello"))
    async with trio.open_nursery() as company:
        await company.start(chat.listen)
        with trio.fail_after(5):
            async with trio.open_nursery() as nursery:
                nursery.start_soon(chat.talk)
                inbound = await chat.ingress.next()
                await chat.say(inbound, "anna", "hi")
        client = chat.terminal.kept.get(inbound.address.chat)
        company.cancel_scope.cancel()
    assert client is not None
    assert client.has == client.last == 1


async def test_what_was_printed_is_not_told_again_if_the_terminal_is_cut_off() -> None:
    async with open_chat(TYPED, FakeConsole("hello")) as chat:
        inbound = await chat.ingress.next()
        for has, text in enumerate(("hi", "and bye"), start=1):
            await chat.say(inbound, "anna", text)
            await chat.console.wait_screen(f"anna> {text}\nyou> ")
            await trio.testing.wait_all_tasks_blocked()
            client = chat.terminal.kept.get(inbound.address.chat)
            assert client is not None
            assert client.has == client.last == has


async def test_whoever_types_sends_a_file_by_its_path(tmp_path: Path) -> None:
    plan = tmp_path / "plan.txt"
    plan.write_text("tea", encoding="utf-8")
    async with open_chat(TYPED, FakeConsole(f"read @{plan}")) as chat:
        inbound = await chat.ingress.next()
        assert [each.name for each in inbound.attachments] == ["plan.txt"]
        chat.console.type(f"read @{plan}.gone")
        told = f"not sent: No such file or directory: {plan}.gone"
        await chat.console.wait_screen(f"{told}\nyou> ")
        assert len(chat.ingress.accepted) == 1


async def test_lines_of_a_pipe_choose_no_file_that_is_sent(tmp_path: Path) -> None:
    secret = tmp_path / "secret.txt"
    secret.write_text("1234", encoding="utf-8")
    async with open_chat(PIPE, FakeConsole(f"read @{secret}")) as chat:
        inbound = await chat.ingress.next()
        assert not inbound.attachments
        assert inbound.text == f"read @{secret}"
        await chat.say(inbound, "anna", "what?")


async def test_drafts_are_shown_word_by_word_and_not_repeated() -> None:
    async with open_chat(PIPE, FakeConsole("hello")) as chat:
        inbound = await chat.ingress.next()
        for word in ("one ", "two", "\n"):
            chat.draft(inbound, "anna", word)
        await chat.console.wait_screen("one two")
        await chat.say(inbound, "anna", "one two\nthree")
    assert chat.console.screen == "you> hello\nanna> one two\n      three\n"


async def test_an_answer_of_which_words_were_missed_is_shown_when_it_is_whole() -> None:
    async with open_chat(PIPE, FakeConsole("hello")) as chat:
        inbound = await chat.ingress.next()
        chat.draft(inbound, "anna", "upon ", gap=5)
        chat.draft(inbound, "anna", "a time")
        await chat.say(inbound, "anna", "Once upon a time")
    assert chat.console.screen == "you> hello\nanna> Once upon a time\n"


async def test_an_agent_is_shown_under_its_display_name() -> None:
    called = {"anna": "Dr. Anna"}
    async with open_chat(TYPED, FakeConsole("hello"), called=called) as chat:
        inbound = await chat.ingress.next()
        chat.draft(inbound, "anna", "one\n")
        await chat.say(inbound, "anna", "one\ntwo")
        await chat.console.wait_screen("Dr. Anna> one\n          two\nyou> ")


async def test_a_piped_transcript_is_sequential_and_waits_for_all_answers() -> None:
    console = FakeConsole("hello", "", "  ", "and you?", at_end=True)
    async with open_chat(PIPE, console) as chat:
        first = await chat.ingress.next()
        await chat.say(first, "anna", "Ask ben.", left=1)
        assert len(chat.ingress.accepted) == 1
        await chat.say(first, "ben", "Hi.")
        await chat.say(await chat.ingress.next(), "anna", "Fine.")
    assert console.screen == (
        "you> hello\nanna> Ask ben.\nben> Hi.\nyou> and you?\nanna> Fine.\n"
    )


async def test_stop_in_a_pipe_is_said_as_soon_as_the_answer_has_begun() -> None:
    console = FakeConsole("a story", "/stop", "thanks", at_end=True)
    async with open_chat(PIPE, console) as chat:
        story = await chat.ingress.next()
        chat.draft(story, "anna", "Once upon ")
        stop = await chat.ingress.next()
        chat.draft(story, "anna", "a time")
        await chat.say(story, "", "(stopped)")
        await chat.say(stop, "", "Stopped.")
        await chat.say(await chat.ingress.next(), "anna", "Yes.")
    assert console.screen == (
        "you> a story\nanna> Once upon \nyou> /stop\n      a time\n* (stopped)\n"
        "* Stopped.\nyou> thanks\nanna> Yes.\n"
    )


async def test_stop_can_be_typed_while_an_answer_is_written() -> None:
    async with open_chat(TYPED, FakeConsole("a story")) as chat:
        story = await chat.ingress.next()
        chat.draft(story, "anna", "Once upon ")
        await chat.console.wait_screen("Once upon ")
        chat.console.type("/stop")
        stop = await chat.ingress.next()
        await chat.say(story, "", "(stopped)")
        await chat.console.wait_screen("(stopped)\nyou> ")
        await chat.say(stop, "", "Stopped.")
        await chat.console.wait_screen("you> ")
    assert chat.console.screen.endswith(
        "anna> Once upon * (stopped)\nyou> \n* Stopped.\nyou> \n"
    )


async def test_quit_ends_the_chat() -> None:
    console = FakeConsole("/quit", "not read")
    async with open_chat(TYPED, console) as chat:
        pass
    assert chat.ingress.accepted == []


async def test_a_pipe_that_need_not_wait_hands_everything_in_at_once() -> None:
    settings = PlainSettings(is_interactive=False, wait_for_answer=False)
    async with open_chat(settings, FakeConsole("a", "b", "c", at_end=True)) as chat:
        lines = [await chat.ingress.next() for _ in range(3)]
        for inbound in lines:
            await chat.say(inbound, "anna", inbound.text.upper())
    assert chat.console.screen == (
        "you> a\nyou> b\nyou> c\nanna> A\nanna> B\nanna> C\n"
    )


async def test_lines_come_in_order_and_no_more_than_may_wait_for_answers() -> None:
    settings = PlainSettings(is_interactive=False, wait_for_answer=False)
    lines = [f"{number}" for number in range(MOST_UNANSWERED + 2)]
    async with open_chat(settings, FakeConsole(*lines, at_end=True)) as chat:
        said = [await chat.ingress.next() for _ in range(MOST_UNANSWERED)]
        for inbound in said:
            await chat.terminal.settle(inbound, "replied")
    assert [each.text for each in chat.ingress.accepted] == lines[:-2]
    refused = f"* {MOST_UNANSWERED} messages wait for answers; try later\n"
    assert chat.console.screen.count(refused) == 2


async def test_an_answer_that_never_comes_is_not_waited_for_for_ever(
    autojump_clock: trio.testing.MockClock,
) -> None:
    settings = PlainSettings(is_interactive=False, answer_timeout=60.0)
    console = FakeConsole("hello", at_end=True)
    async with trio.open_nursery() as nursery:
        chat = Chat(settings, console)
        nursery.start_soon(chat.run)
        chat.draft(await chat.ingress.next(), "anna", "half")
        await chat.ended.wait()
    assert 60 <= autojump_clock.current_time() < 61
    assert console.screen.endswith("* no answer within 60 s; going on without it\n")


async def test_what_was_not_taken_is_said_and_not_waited_for() -> None:
    console = FakeConsole("hello", at_end=True)
    chat = Chat(PIPE, console)
    chat.ingress.error = OverloadedError("too much in flight")
    await chat.run()
    assert console.screen == (
        "you> hello\n* not taken, please try again: too much in flight\n"
    )


@pytest.mark.parametrize(
    ("reason", "shown"),
    [
        ("replied", ""),
        ("cancelled", ""),
        ("dropped:not_addressed", "* nobody answers this: not_addressed\n"),
        ("dead", "* there is no answer; the log says why\n"),
    ],
)
async def test_a_settled_message_is_not_waited_for(reason: str, shown: str) -> None:
    console = FakeConsole("hello", at_end=True)
    async with open_chat(PIPE, console) as chat:
        inbound = await chat.ingress.next()
        await chat.terminal.settle(inbound, reason)
    assert console.screen == f"you> hello\n{shown}"


async def test_a_closed_output_ends_the_chat() -> None:
    console = FakeConsole()
    console.error = BrokenPipeError("no reader")
    async with open_chat(TYPED, console) as chat:
        pass
    assert chat.face.output_error is console.error


async def test_an_answer_before_the_terminal_is_open_comes_again_later() -> None:
    chat = Chat(PIPE, FakeConsole())
    delivery = Delivery(
        id="d",
        correlation_id="c",
        address=Address("terminal", "terminal"),
        agent="a",
        text="x",
    )
    with pytest.raises(DeliveryBusyError):
        await chat.terminal.deliver(delivery)


async def test_the_standard_console_reads_and_writes_streams() -> None:
    source = io.TextIOWrapper(io.BytesIO("grüße\nende".encode()), "ascii")
    target = io.TextIOWrapper(io.BytesIO(), "ascii", write_through=True)
    console = StandardConsole(source, target)
    assert not console.is_interactive
    lines = [await console.read_line() for _ in range(3)]
    assert lines == ["gr\ufffd\ufffd\ufffd\ufffde", "ende", None]
    await console.write("schön")
    assert target.buffer.getvalue() == b"sch?n"


async def test_a_long_line_is_one_line_and_never_more_than_is_kept() -> None:
    longest = "x" * MOST_CHARACTERS
    source = io.StringIO(f"{longest}\n{longest}yz\nshort\n{longest[:300_000]}")
    console = StandardConsole(source, io.StringIO())
    lines = [await console.read_line() for _ in range(5)]
    assert lines == [longest, longest, "short", longest[:300_000], None]


def test_control_characters_are_made_visible() -> None:
    assert make_safe("a\x1b[31mb") == "a\u241b[31mb"
    assert make_safe("bell\x07 del\x7f c1\x9b") == "bell\u2407 del\u2421 c1\ufffd"
    assert make_safe("one\r\ntwo\tthree\rfour") == "one\ntwo\tthree\u240dfour"
    assert make_safe("\u202eevil\udc80") == "\ufffdevil\ufffd"


@given(st.text())
def test_nothing_that_is_written_can_control_a_terminal(text: str) -> None:
    shown = make_safe(text)
    assert all(c.isprintable() or c in "\t\n" or ord(c) > 0x9F for c in shown)
    shown.encode()


@given(pieces=st.lists(st.text(alphabet="ab \n", max_size=5), max_size=6))
def test_an_answer_looks_the_same_in_one_piece_and_in_many(pieces: list[str]) -> None:
    whole = TerminalWriter().write(
        [DraftPiece("anna", "".join(pieces), begins=True, ends=True)]
    )
    writer = TerminalWriter()
    parts = [DraftPiece("anna", "", begins=True)]
    parts += [DraftPiece("anna", text) for text in pieces]
    parts.append(DraftPiece("anna", "", ends=True))
    assert "".join(writer.write([part]) for part in parts) == whole
    assert all(
        line.startswith(("anna> ", "      ")) or not line for line in whole.splitlines()
    )


async def test_a_silent_answer_is_counted_and_not_shown() -> None:
    async with open_chat(PIPE, FakeConsole("hello", at_end=True)) as chat:
        inbound = await chat.ingress.next()
        silent = Delivery(
            id="m1:0",
            correlation_id=inbound.correlation_id,
            address=inbound.address,
            agent="anna",
            text="",
            kind="silence",
        )
        await chat.terminal.deliver(silent)
    assert chat.console.screen == "you> hello\n"
