"""Proves that every model keeps what the port `Model` promises."""

from __future__ import annotations

import math
from collections.abc import AsyncIterator
from typing import Protocol

import httpx
import msgspec
import pytest
import trio
import trio.testing

from actors.errors import ModelBusyError, ModelRefusedError
from actors.messages.inbound import (
    Image,
    ModelRequest,
    ToolCall,
    ToolSpec,
    TranscriptLine,
)
from actors.ports import Model
from connectors.models.scripted import Script, ScriptedModel, ScriptSettings
from tests.fakes.models.dialects import MANNERS, Manner
from tests.fakes.models.sayings import PIXEL, Saying
from tests.fakes.models.server import FakeProvider, Step

CLOCK = ToolSpec("clock", "Tell the time.", b'{"type":"object","properties":{}}')

SCRIPT = """
default.reply = "?"
rule = [
  { pattern = '(?s)^say (.*)', reply = "{1}" },
  { pattern = '^slowly (.*)', reply = "{1}", delay = 1.0, word_delay = 1.0 },
  { pattern = '^busy', fail = "busy", retry_after = 7.0 },
  { pattern = '^refused', fail = "refused" },
  { pattern = '^hang', fail = "hang" },
  { pattern = '^cut', fail = "truncate", reply = "one two three four" },
  { pattern = '^call', reply = "A moment.", tool = [
      { name = "clock", arguments = { timezone = "Asia/Tokyo" } },
      { name = "clock" },
  ] },
]
"""


class Rig(Protocol):
    """A model that understands the words of `SCRIPT`."""

    model: Model
    is_streamed: bool

    def open_connections(self) -> int:
        """How many answers still hold a connection."""
        ...


class ScriptedRig:
    is_streamed = True

    def __init__(self) -> None:
        settings = msgspec.toml.decode(SCRIPT, type=ScriptSettings)
        self.model: Model = ScriptedModel(Script(settings))

    def open_connections(self) -> int:
        return 0


class HttpRig:
    """A model behind a fake provider that speaks one format.

    Args:
        manner: the format, streamed or in one piece.
    """

    def __init__(self, manner: Manner) -> None:
        self._manner = manner
        self._provider = FakeProvider(self._obey, manner.media_type)
        self.is_streamed = manner.stream
        self.model: Model = manner.make(self._provider.transport)

    def open_connections(self) -> int:
        return self._provider.open_responses

    async def _obey(self, request: httpx.Request) -> list[Step] | httpx.Response:
        """Do over HTTP what `SCRIPT` says."""
        sent = self._manner.dialect.read(request.content)
        word, _, text = sent.words.partition(" ")
        await trio.lowlevel.checkpoint()
        if word in {"busy", "refused"}:
            status, headers = (
                (429, {"Retry-After": "7"}) if word == "busy" else (401, {})
            )
            return httpx.Response(status, headers=headers)
        if word == "slowly":
            return self._slowly(text)
        said = {
            "say": Saying(text),
            "call": CALLING if sent.has_tools else Saying("In words, then."),
        }
        pieces: list[Step] = list(self._manner.pieces(said.get(word, SPOKEN)))
        ends: dict[str, list[Step]] = {
            "hang": [pieces[0], math.inf],
            "cut": pieces[:-1],
        }
        return ends.get(word, pieces)

    def _slowly(self, text: str) -> list[Step]:
        """Say a text word by word, a second before each."""
        if not self._manner.stream:
            return [float(text.count(" ") + 1), self._manner.written(Saying(text))]
        words = [f" {word}" if n else word for n, word in enumerate(text.split(" "))]
        events = [self._manner.dialect.events(Saying(word)) for word in words]
        # Of every word's own stream the events that have the word; the rest once.
        whole = self._manner.dialect.events(Saying(text))
        says = [at for at, each in enumerate(whole) if each not in self._silent()]
        steps: list[Step] = list(whole[: says[0]])
        for stream in events:
            said = b"".join(e for e in stream if e not in self._silent())
            steps += [1.0, said]
        return [*steps, *whole[says[-1] + 1 :]]

    def _silent(self) -> list[bytes]:
        """Give the events that every answer has."""
        one = self._manner.dialect.events(Saying("1"))
        return [
            each for each in self._manner.dialect.events(Saying("2")) if each in one
        ]


SPOKEN = Saying("one two three four")
CALLING = Saying("A moment.", (("clock", '{"timezone":"Asia/Tokyo"}'), ("clock", "")))


@pytest.fixture(params=["scripted", *MANNERS], ids=str)
async def rig(request: pytest.FixtureRequest) -> AsyncIterator[Rig]:
    manner: str | Manner = request.param
    rig: Rig = ScriptedRig() if isinstance(manner, str) else HttpRig(manner)
    yield rig
    await rig.model.aclose()


def asking(text: str, *tools: ToolSpec) -> ModelRequest:
    return ModelRequest(
        model="m",
        agent="anna",
        correlation_id="c",
        system="You are Anna.",
        lines=(TranscriptLine("user", text),),
        tools=tools,
    )


def deaf(_: str) -> None:
    """Hear nothing."""


@pytest.mark.parametrize(
    "text",
    [
        "hello",
        "two  words \n and\ttabs ",
        "Жёлтый 🐈‍⬛ ",
        "{1} [2] %s \\",
        "a" * 10_000,
    ],
)
async def test_the_pieces_make_up_the_answer(rig: Rig, text: str) -> None:
    pieces: list[str] = []
    answer = await rig.model.answer(asking(f"say {text}"), pieces.append)
    assert answer.text == text
    assert "".join(pieces) == text
    assert answer.stop_reason == "end"
    assert answer.tool_calls == ()
    assert answer.usage.input_tokens > 0


async def test_words_come_as_they_are_said(
    rig: Rig, autojump_clock: trio.testing.MockClock
) -> None:
    del autojump_clock
    start = trio.current_time()
    heard: list[tuple[float, str]] = []

    def speak(piece: str) -> None:
        heard.append((trio.current_time() - start, piece))

    await rig.model.answer(asking("slowly one two three"), speak)
    if rig.is_streamed:
        assert heard == [(1.0, "one"), (2.0, " two"), (3.0, " three")]
    else:
        assert heard == [(3.0, "one two three")]


async def test_a_busy_model_says_how_long_to_wait(rig: Rig) -> None:
    with pytest.raises(ModelBusyError) as caught:
        await rig.model.answer(asking("busy"), deaf)
    assert caught.value.retry_after == 7.0
    assert rig.open_connections() == 0


async def test_a_refusal_is_no_busy_model(rig: Rig) -> None:
    with pytest.raises(ModelRefusedError):
        await rig.model.answer(asking("refused"), deaf)
    assert rig.open_connections() == 0


async def test_errors_say_what_they_are(rig: Rig) -> None:
    with pytest.raises(ModelBusyError) as busy:
        await rig.model.answer(asking("busy"), deaf)
    with pytest.raises(ModelRefusedError) as refused:
        await rig.model.answer(asking("refused"), deaf)
    with pytest.raises(ModelBusyError) as cut:
        await rig.model.answer(asking("cut"), deaf)
    assert (busy.value.kind, cut.value.kind) == ("rate", "protocol")
    assert refused.value.kind in {"auth", "content"}  # a script has no key


async def test_a_picture_keeps_nobody_from_answering(rig: Rig) -> None:
    picture = Image("image/png", PIXEL)
    lines = (
        TranscriptLine("user", "look", images=(picture,)),
        TranscriptLine("user", "say I see"),
    )
    request = msgspec.structs.replace(asking(""), lines=lines)
    assert (await rig.model.answer(request, deaf)).text == "I see"


async def test_a_round_of_tools_can_be_followed_by_one_without(rig: Rig) -> None:
    calls = (ToolCall("a", "clock", b"{}"), ToolCall("b", "clock", b"{}"))
    lines = (
        TranscriptLine("user", "what time is it?"),
        TranscriptLine("assistant", "", tool_calls=calls),
        TranscriptLine("tool", "noon", tool_call_id="b"),
        TranscriptLine("tool", "", tool_call_id="a"),
        TranscriptLine("user", "say noon"),
    )
    request = msgspec.structs.replace(asking(""), lines=lines)
    assert (await rig.model.answer(request, deaf)).text == "noon"


async def test_half_an_answer_is_an_error(rig: Rig) -> None:
    pieces: list[str] = []
    with pytest.raises(ModelBusyError):
        await rig.model.answer(asking("cut"), pieces.append)
    assert "one two three four".startswith("".join(pieces))
    assert rig.open_connections() == 0


async def test_tool_calls_are_carried(rig: Rig) -> None:
    answer = await rig.model.answer(asking("call", CLOCK), deaf)
    first, second = answer.tool_calls
    assert (first.name, second.name) == ("clock", "clock")
    assert first.id
    assert second.id
    assert first.id != second.id
    assert msgspec.json.decode(first.arguments) == {"timezone": "Asia/Tokyo"}
    assert msgspec.json.decode(second.arguments) == {}
    assert answer.text == "A moment."
    assert answer.stop_reason == "tools"


async def test_without_tools_it_answers_in_words(rig: Rig) -> None:
    answer = await rig.model.answer(asking("call"), deaf)
    assert answer.tool_calls == ()
    assert answer.text
    assert answer.stop_reason == "end"


async def test_cancelling_before_the_first_word_leaves_nothing_open(
    rig: Rig, autojump_clock: trio.testing.MockClock
) -> None:
    del autojump_clock
    start = trio.current_time()
    with trio.move_on_after(5) as scope:
        await rig.model.answer(asking("hang"), deaf)
    assert scope.cancelled_caught
    assert trio.current_time() - start == 5
    assert rig.open_connections() == 0


async def test_cancelling_in_mid_answer_leaves_nothing_open(
    rig: Rig, autojump_clock: trio.testing.MockClock
) -> None:
    del autojump_clock
    pieces: list[str] = []
    with trio.CancelScope() as scope:

        def speak(piece: str) -> None:
            pieces.append(piece)
            if len(pieces) == 2:
                scope.cancel()

        if not rig.is_streamed:
            scope.deadline = trio.current_time() + 2
        await rig.model.answer(asking("slowly one two three four"), speak)
    assert scope.cancelled_caught
    assert pieces == (["one", " two"] if rig.is_streamed else [])
    assert rig.open_connections() == 0


async def test_answers_at_once_do_not_mix(
    rig: Rig, autojump_clock: trio.testing.MockClock
) -> None:
    del autojump_clock
    answers: dict[int, tuple[str, str]] = {}

    async def ask(number: int) -> None:
        pieces: list[str] = []
        text = " ".join(f"{number}.{word}" for word in range(10))
        answer = await rig.model.answer(asking(f"slowly {text}"), pieces.append)
        answers[number] = (answer.text, "".join(pieces))

    start = trio.current_time()
    async with trio.open_nursery() as nursery:
        for number in range(64):
            nursery.start_soon(ask, number)
    assert trio.current_time() - start == 10
    for number in range(64):
        text = " ".join(f"{number}.{word}" for word in range(10))
        assert answers[number] == (text, text)
    assert rig.open_connections() == 0


async def test_a_failure_does_not_spoil_the_next_answer(rig: Rig) -> None:
    for _ in range(3):
        with pytest.raises(ModelBusyError):
            await rig.model.answer(asking("cut"), deaf)
        assert (await rig.model.answer(asking("say fine"), deaf)).text == "fine"
