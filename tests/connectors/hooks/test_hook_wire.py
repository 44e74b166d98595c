"""What a program may write, and what is read in anything else."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given, strategies as st

from actors.hooks.book import AskHook, FinishedTurn, HookSubject, TellHook
from actors.hooks.chain import Verdict
from connectors.hooks.hook import HookError
from connectors.hooks.runner import notice, question, read

ABOUT = HookSubject(id="m1", correlation_id="m1", connector="web", chat="room")


@given(st.text())
def test_any_words_make_one_line(text: str) -> None:
    asked = AskHook(event="message_received", about=ABOUT, text=text)
    line = question("7", asked)
    assert line.count(b"\n") == 1
    found = msgspec.json.decode(line)
    assert (found["id"], found["event"], found["text"]) == (
        "7",
        "message_received",
        text,
    )


def test_a_finished_turn_is_told_without_a_number() -> None:
    ended = FinishedTurn(
        state="replied",
        reason="ok",
        seconds=1.0,
        rounds=1,
        input_tokens=1,
        output_tokens=1,
        cost=0.0,
        model="m",
    )
    line = notice(TellHook(about=ABOUT, text="bye", ended=ended))
    found = msgspec.json.decode(line)
    assert "id" not in found
    assert (found["event"], found["ended"]["state"]) == ("turn_finished", "replied")


@pytest.mark.parametrize(
    ("line", "number", "verdict"),
    [
        (b'{"id":"7","action":"continue"}', "7", Verdict()),
        (b'{"id":"7","action":"change","text":"x"}', "7", Verdict("change", "x")),
        (b'{"action":"cancel","id":"8"}', "8", Verdict("cancel")),
    ],
)
def test_answers_are_read(line: bytes, number: str, verdict: Verdict) -> None:
    assert read(line) == (number, verdict)


@pytest.mark.parametrize(
    ("line", "number"),
    [
        (b'{"id":"7","action":"change","text":"x","chat":"other"}', "7"),
        (b'{"id":"7","action":"change","text":"x","address":{}}', "7"),
        (b'{"id":"7"}', "7"),
        (b'{"id":7,"action":"continue"}', ""),
        (b"moin", ""),
        (b"\xff", ""),
        (b'{"id":"\xff"}', ""),
        (b"[" * 5_000, ""),
    ],
)
def test_anything_else_is_a_mistake_of_the_question_it_names(
    line: bytes, number: str
) -> None:
    found, answer = read(line)
    assert found == number
    assert isinstance(answer, HookError)


@given(st.binary(max_size=60))
def test_no_bytes_break_the_reader(line: bytes) -> None:
    number, answer = read(line)
    assert isinstance(answer, HookError) or number
