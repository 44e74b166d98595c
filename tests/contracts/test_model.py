"""Proves that every model keeps what the port `Model` promises."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Protocol

import httpx
import msgspec
import pytest
import trio
import trio.testing

from actors.errors import ModelBusyError, ModelRefusedError
from actors.messages import Line, ModelRequest, ToolSpec
from connectors.models.openai import OpenAIModel, OpenAISettings
from connectors.models.script import Script, ScriptSettings
from connectors.models.scripted import ScriptedModel
from tests.fakes.openai_server import (
    END,
    FakeProvider,
    Step,
    call_delta,
    delta,
    spoken,
)

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from actors.ports import Model

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

    def open_connections(self) -> int:
        """How many answers still hold a connection."""
        ...


class ScriptedRig:
    def __init__(self) -> None:
        settings = msgspec.toml.decode(SCRIPT, type=ScriptSettings)
        self.model: Model = ScriptedModel(Script(settings))

    def open_connections(self) -> int:
        return 0


class OpenAIRig:
    def __init__(self) -> None:
        self._provider = FakeProvider(obey)
        self.model: Model = OpenAIModel(
            OpenAISettings(base_url="http://provider/v1", api_key="sk-contract"),
            wall_clock=lambda: 0.0,
            transport=self._provider.transport,
        )

    def open_connections(self) -> int:
        return self._provider.open_responses


class SentLine(msgspec.Struct):
    content: str


class SentRequest(msgspec.Struct):
    messages: list[SentLine]
    tools: list[object] = []


async def obey(request: httpx.Request) -> list[Step] | httpx.Response:
    """Do over HTTP what `SCRIPT` says."""
    sent = msgspec.json.decode(request.content, type=SentRequest)
    word, _, text = sent.messages[-1].content.partition(" ")
    await trio.lowlevel.checkpoint()
    if word == "call":
        return called(has_tools=bool(sent.tools))
    return answers(word, text)


def slowly(text: str) -> list[Step]:
    steps: list[Step] = []
    for number, word in enumerate(text.split(" ")):
        steps += [1.0, delta(content=f" {word}" if number else word)]
    return [*steps, delta("stop"), END]


def called(*, has_tools: bool) -> list[Step]:
    if not has_tools:
        return spoken("In words, then.")
    return [
        delta(content="A moment."),
        call_delta(0, "a", "clock", '{"timezone":'),
        call_delta(1, "b", "clock", ""),
        call_delta(0, "", "", '"Asia/Tokyo"}'),
        delta("tool_calls"),
        END,
    ]


def answers(word: str, text: str) -> list[Step] | httpx.Response:
    match word:
        case "say":
            return spoken(text)
        case "slowly":
            return slowly(text)
        case "busy":
            return httpx.Response(429, headers={"Retry-After": "7"})
        case "refused":
            return httpx.Response(401)
        case "hang":
            return [delta(role="assistant"), math.inf]
        case _:
            return spoken("one two three four")[:4]


@pytest.fixture(params=[ScriptedRig, OpenAIRig])
async def rig(request: pytest.FixtureRequest) -> AsyncIterator[Rig]:
    rig: Rig = request.param()
    yield rig
    await rig.model.aclose()


def asking(text: str, *tools: ToolSpec) -> ModelRequest:
    return ModelRequest(
        model="m",
        agent="anna",
        correlation_id="c",
        system="You are Anna.",
        lines=(Line("user", text),),
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
    assert heard == [(1.0, "one"), (2.0, " two"), (3.0, " three")]


async def test_a_busy_model_says_how_long_to_wait(rig: Rig) -> None:
    with pytest.raises(ModelBusyError) as caught:
        await rig.model.answer(asking("busy"), deaf)
    assert caught.value.retry_after == 7.0
    assert rig.open_connections() == 0


async def test_a_refusal_is_no_busy_model(rig: Rig) -> None:
    with pytest.raises(ModelRefusedError):
        await rig.model.answer(asking("refused"), deaf)
    assert rig.open_connections() == 0


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

        await rig.model.answer(asking("slowly one two three four"), speak)
    assert pieces == ["one", " two"]
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
