"""Proves what the streams of a Chat Completions provider mean."""

from __future__ import annotations

import itertools

import httpx
import msgspec
import pytest
from hypothesis import given, strategies as st

from actors.errors import ModelBusyError, ModelError, ModelRefusedError
from actors.messages.inbound import ModelAnswer, Usage
from connectors.models.format import ToolNames
from connectors.models.http.client import SseParser
from connectors.models.openai.model import Assembly
from tests.fakes.models.openai_client import CLOCK, PROVIDER, ask, asking
from tests.fakes.models.openai_server import (
    END,
    call_delta,
    delta,
    event,
    spoken,
    usage,
)
from tests.fakes.models.server import FakeProvider, Step


async def test_usage_and_the_end_are_read() -> None:
    answer = await ask(FakeProvider.streaming(*spoken("Good morning.")))
    assert answer == ModelAnswer(
        text="Good morning.", usage=Usage(7, 5), request_id="x"
    )


@pytest.mark.parametrize(("said", "counted"), [(-1, 0), (10**18, 0)])
async def test_token_counts_that_cannot_be_are_not_believed(
    said: int, counted: int
) -> None:
    steps = [*spoken("odd")[:-1], usage(said, said), END]
    answer = await ask(FakeProvider.streaming(*steps))
    assert answer == ModelAnswer(
        text="odd", usage=Usage(counted, counted), request_id="x"
    )


@pytest.mark.parametrize(
    ("steps", "stop_reason"),
    [
        (spoken("cut", "length"), "length"),
        (spoken("odd", "eos"), "end"),
        ([delta(refusal="I will not."), delta("stop"), END], "refused"),
        ([delta("stop", content="all at once"), END], "end"),
        ([*spoken("twice")[:-1], delta("stop"), END, END, b": bye\n\n"], "end"),
        ([*spoken("chatty")[:-1], usage(7, 5), END, delta(content="late")], "end"),
        ([event(choices=None, x=1), *spoken("strange")], "end"),
        (
            [event(choices=[{"index": 1, "delta": {"content": "x"}}]), *spoken("b")],
            "end",
        ),
    ],
)
async def test_whole_answers_in_unusual_dress(
    steps: list[Step], stop_reason: str
) -> None:
    assert (await ask(FakeProvider.streaming(*steps))).stop_reason == stop_reason


async def test_of_content_in_pieces_only_the_words_are_said() -> None:
    thinking = {"type": "thinking", "thinking": [{"type": "text", "text": "Hm."}]}
    said = [thinking, {"type": "text", "text": "Noon."}]
    steps = [delta(content=[thinking]), delta(content=said), delta(content=" Yes.")]
    answer = await ask(FakeProvider.streaming(*steps, delta("stop"), END))
    assert answer.text == "Noon. Yes."


BROKEN: list[tuple[str, list[Step]]] = [
    ("without a finish reason", []),
    ("without a finish reason", [delta(content="half")]),
    ("without its end marker", spoken("no marker")[:-1]),
    ("without a finish reason", [delta(content="no reason"), END]),
    ("not as the API says", [b"data: {oops}\n\n"]),
    ("not as the API says", [b'data: {"choices": 5}\n\n']),
    ("not as the API says", [b'data: {"choices":[{"delta":{"content":"\xff"}}]}\n\n']),
    ("not as the API says", [b"data: " + b"[" * 500_000 + b"\n\n"]),
    ("not as the API says", [event(choices=[], usage={"prompt_tokens": "many"})]),
    ("above 1048576 bytes", [b"data: " + b"x" * 2_000_000]),
    ("above 4194304 characters", [delta(content="x" * 1_000_000)] * 5),
    ("more than 128 tools", [call_delta(n, "", "f", "") for n in range(129)]),
    ("went on after its end", [delta("stop"), delta(content="more"), END]),
    ("has no name", [call_delta(0, "a", "", "{}"), delta("tool_calls"), END]),
    ("gave up", [delta("error"), END]),
    (r"in mid-answer\): overloaded", [event(error={"message": "overloaded"})]),
    (r"in mid-answer\): overloaded", [event(error="overloaded")]),
    ("HTTP 503", [event(error={"message": "no", "code": 503})]),
    ("connection failed: gone", [delta(content="x"), httpx.ReadError("gone")]),
    ("connection failed: ReadError", [delta(content="x"), httpx.ReadError("")]),
]


@pytest.mark.parametrize(("text", "steps"), BROKEN)
async def test_broken_streams_may_be_tried_again(text: str, steps: list[Step]) -> None:
    provider = FakeProvider.streaming(*steps)
    with pytest.raises(ModelBusyError, match=text) as caught:
        await ask(provider, asking(tools=(CLOCK,)))
    assert len(str(caught.value)) < 400
    assert provider.open_responses == 0


@pytest.mark.parametrize(
    ("text", "steps"),
    [
        ("content filter", spoken("I", "content_filter")),
        ("max_tokens", [call_delta(0, "a", "f", "{"), delta("length"), END]),
        ("quota", [event(error={"message": "pay", "code": "insufficient_quota"})]),
        ("context length", [event(error={"message": "maximum context is 8"})]),
        ("refused", [event(error={"message": "no", "type": "invalid_request_error"})]),
        ("api_key", [event(error={"message": "no", "code": 401})]),
    ],
)
async def test_some_streams_need_not_be_tried_again(
    text: str, steps: list[Step]
) -> None:
    with pytest.raises(ModelRefusedError, match=text):
        await ask(FakeProvider.streaming(*steps), asking(tools=(CLOCK,)))


@pytest.mark.parametrize(
    ("deltas", "expected"),
    [
        (
            [(0, "a", "f", '{"x'), (1, "b", "g", ""), (0, "", "", '":1}')],
            [("a", "f", b'{"x":1}'), ("b", "g", b"{}")],
        ),
        # All numbered 0, told apart by their ids; or not numbered at all.
        (
            [(0, "a", "f", "{}"), (0, "b", "f", "[]")],
            [("a", "f", b"{}"), ("b", "f", b"[]")],
        ),
        (
            [(None, "a", "f", "{"), (None, "", "", "}"), (None, "b", "g", "")],
            [("a", "f", b"{}"), ("b", "g", b"{}")],
        ),
        # No ids; the name with every piece; numbered from 5.
        ([(5, "", "f", "{"), (5, "", "f", "}")], [("call_1_0", "f", b"{}")]),
        ([(0, "a", "f", "{"), (0, "a", "", "}")], [("a", "f", b"{}")]),
    ],
)
async def test_tool_calls_are_put_together(
    deltas: list[tuple[int | None, str, str, str]],
    expected: list[tuple[str, str, bytes]],
) -> None:
    steps = [call_delta(*parts) for parts in deltas]
    provider = FakeProvider.streaming(*steps, delta("stop"), END)
    answer = await ask(provider, asking(tools=(CLOCK,)))
    assert [(c.id, c.name, c.arguments) for c in answer.tool_calls] == expected
    assert answer.stop_reason == "tools"


async def test_a_tool_nobody_offered_is_not_called() -> None:
    call = call_delta(0, "a", "clock", "{}")
    provider = FakeProvider.streaming(delta(content="Well."), call, delta("stop"), END)
    assert await ask(provider) == ModelAnswer(text="Well.", request_id="x")
    with pytest.raises(ModelBusyError, match="none was offered"):
        await ask(FakeProvider.streaming(call, delta("stop"), END))


@given(st.binary(max_size=300))
def test_any_event_is_an_answer_or_an_error(data: bytes) -> None:
    assembly = Assembly(asking(), ToolNames(()), PROVIDER)
    try:
        assembly.take(data)
        assembly.finish("")
    except ModelError as error:
        assert len(str(error)) < 400  # noqa: PT017  an error is only one of two ways


@given(st.text(max_size=50), st.data())
def test_arguments_survive_any_split(text: str, draw: st.DataObject) -> None:
    arguments = msgspec.json.encode({"text": text}).decode()
    cuts = draw.draw(st.lists(st.integers(0, len(arguments)), max_size=8).map(sorted))
    edges = [0, *cuts, len(arguments)]
    pieces = [arguments[a:b] for a, b in itertools.pairwise(edges)]
    stream = b"".join(call_delta(0, "a", "clock", piece) for piece in pieces)
    assembly = Assembly(asking(tools=(CLOCK,)), ToolNames((CLOCK,)), PROVIDER)
    for each in SseParser().feed(stream + delta("tool_calls") + END):
        assembly.take(each.data)
    assert assembly.finish("").tool_calls[0].arguments == arguments.encode()
