"""Proves what the broken and unusual streams of each format mean.

Chat Completions has a file of its own: `test_openai_model.py`.
"""

from __future__ import annotations

import httpx
import msgspec
import pytest

from actors.errors import ModelError, ModelFault
from actors.messages.inbound import (
    ModelAnswer,
    ModelRequest,
    ToolSpec,
    TranscriptLine,
    Usage,
)
from connectors.models.format import ToolNames
from connectors.models.http.client import StreamReading
from connectors.models.provider_errors import ErrorContext
from tests.fakes.models.dialects import (
    AnthropicDialect,
    GoogleDialect,
    Manner,
    OllamaDialect,
)
from tests.fakes.models.sayings import Dialect, Saying

CLOCK = ToolSpec("clock", "Tell the time.", b'{"type":"object"}')
REQUEST = ModelRequest(
    model="m",
    agent="anna",
    correlation_id="c",
    system="",
    lines=(TranscriptLine("user", "hello"),),
    tools=(CLOCK,),
)
A, G, OL = AnthropicDialect(), GoogleDialect(), OllamaDialect()
CALL = Saying("Hm.", (("clock", "{}"),))


def read(dialect: Dialect, *events: bytes) -> ModelAnswer:
    """Read a stream."""
    manner = Manner(dialect, stream=True)
    form = manner.make(httpx.MockTransport(lambda _: httpx.Response(200)))._format
    assembly = form.ask(REQUEST, ErrorContext("provider (m)")).assembly
    reading = StreamReading(form.framing(), assembly)
    for event in events:
        reading.feed(event)
    reading.end()
    return assembly.finish("")


def without(events: list[bytes], mark: bytes) -> list[bytes]:
    """Leave out the events that hold a mark."""
    return [event for event in events if mark not in event]


def twice(events: list[bytes], mark: bytes) -> list[bytes]:
    """Say twice what holds a mark."""
    return [each for event in events for each in [event] * (1 + (mark in event))]


def g(**fields: object) -> bytes:
    return b"data: " + msgspec.json.encode(fields) + b"\n\n"


def g_candidate(**fields: object) -> bytes:
    return g(candidates=[fields])


def a_delta(kind: str, index: int = 0, **fields: object) -> bytes:
    delta = {"type": kind, **fields}
    return A.event("content_block_delta", index=index, delta=delta)


HELLO = A.events(Saying("hello"))
CALLED = A.events(CALL)
BROKEN: list[tuple[Dialect, str, list[bytes], ModelFault]] = [
    (A, "no stop", without(HELLO, b"message_stop"), "protocol"),
    (A, "no reason", without(HELLO, b"stop_reason"), "protocol"),
    (A, "no start", without(HELLO, b"message_start"), "protocol"),
    (A, "start twice", twice(HELLO, b"message_start"), "protocol"),
    (A, "block twice", twice(HELLO, b"content_block_start"), "protocol"),
    (A, "closed twice", twice(HELLO, b"content_block_stop"), "protocol"),
    (A, "block not closed", without(HELLO, b"content_block_stop"), "protocol"),
    (A, "block not opened", without(HELLO, b"content_block_start"), "protocol"),
    (A, "wrong index", [*HELLO[:3], a_delta("text_delta", 7, text="x")], "protocol"),
    (
        A,
        "arguments in words",
        [*HELLO[:3], a_delta("input_json_delta", partial_json="{")],
        "protocol",
    ),
    (A, "words in arguments", [*CALLED[:6], a_delta("text_delta", 1)], "protocol"),
    (
        A,
        "unknown reason",
        [event.replace(b"end_turn", b"pause_turn") for event in HELLO],
        "protocol",
    ),
    (A, "no name", [event.replace(b'"clock"', b'""') for event in CALLED], "protocol"),
    (
        A,
        "overloaded",
        [*HELLO[:4], A.event("error", error={"type": "overloaded_error"})],
        "overload",
    ),
    (
        A,
        "refused in mid-stream",
        [A.event("error", error={"type": "invalid_request_error", "message": "no"})],
        "bad_request",
    ),
    (A, "unknown error", [A.event("error")], "overload"),
    (A, "no type", [b'data: {"index":0}\n\n'], "protocol"),
    (G, "no reason", without(G.events(Saying("x")), b"finishReason"), "protocol"),
    (G, "blocked", [g(promptFeedback={"blockReason": "SAFETY"})], "content"),
    (G, "bad call", [g_candidate(finishReason="MALFORMED_FUNCTION_CALL")], "protocol"),
    (G, "bad tool", [g_candidate(finishReason="UNEXPECTED_TOOL_CALL")], "protocol"),
    (G, "who knows", [g_candidate(finishReason="OTHER")], "protocol"),
    (G, "recited", [g_candidate(finishReason="RECITATION")], "content"),
    (G, "nothing", [g(usageMetadata={"promptTokenCount": 1})], "protocol"),
    (G, "nobody", [g(candidates=[])], "protocol"),
    (G, "second", [g_candidate(index=1, finishReason="STOP")], "protocol"),
    (G, "error", [g(error={"code": 503, "status": "UNAVAILABLE"})], "overload"),
    (G, "bare error", [g(error={"code": 400, "message": "no"})], "bad_request"),
    (OL, "not done", OL.events(Saying("x"))[:-1], "protocol"),
    (OL, "error", [b'{"error":"an error was encountered"}\n'], "overload"),
    (OL, "too long", [b'{"error":"exceeds the context length"}\n'], "context"),
    (OL, "only loaded", [b'{"done":true,"done_reason":"load"}\n'], "protocol"),
    (OL, "no object", [b"[]\n"], "protocol"),
    (OL, "long line", [b'{"message":{"content":"' + b"x" * 2_000_000], "protocol"),
]


@pytest.mark.parametrize(
    ("dialect", "name", "events", "kind"), BROKEN, ids=lambda each: str(each)[:24]
)
def test_a_broken_stream_is_an_error(
    dialect: Dialect, name: str, events: list[bytes], kind: ModelFault
) -> None:
    assert name
    try:
        answer = read(dialect, *events)
    except ModelError as error:
        found = error.kind
    except ValueError:  # too large: the talking calls it a broken protocol
        found = "protocol"
    else:
        raise AssertionError(answer)
    assert found == kind


def test_anthropic_may_add_events_blocks_and_deltas() -> None:
    new = A.event("something_new", index=0)
    thought = a_delta("signature_delta", signature="x")
    search = A.event("content_block_start", index=9, content_block={"type": "new"})
    found = a_delta("input_json_delta", 9, partial_json="{}")
    closed = A.event("content_block_stop", index=9)
    stream = [
        *HELLO[:3],
        new,
        thought,
        *HELLO[3:-2],
        search,
        found,
        closed,
        *HELLO[-2:],
    ]
    assert read(A, *stream).text == "hello"


def test_anthropic_counts_the_cache_apart() -> None:
    written = HELLO[0].replace(b'"input_tokens":4', b'"input_tokens":4,"x":1')
    written = written.replace(b'"x":1', b'"cache_creation_input_tokens":10')
    assert read(A, written, *HELLO[1:]).usage == Usage(17, 5, 3)


def test_anthropic_late_words_do_not_count() -> None:
    assert read(A, *HELLO, *HELLO, b"data: {oops\n\n").text == "hello"


def test_google_may_give_a_reason_with_every_event() -> None:
    events = [
        g_candidate(content={"parts": [{"text": word}]}, finishReason="STOP")
        for word in ("one", " two")
    ]
    assert read(G, *events).text == "one two"


def test_google_s_calls_get_ids_that_no_other_answer_has() -> None:
    events = G.events(Saying("", (("clock", "{}"), ("clock", "{}"))))
    other = [
        event.replace(b'"responseId":"x"', b'"responseId":"y"') for event in events
    ]
    ids = [
        call.id for call in (*read(G, *events).tool_calls, *read(G, *other).tool_calls)
    ]
    assert len(set(ids)) == 4


def test_calls_without_ids_get_some_and_double_ones_are_told_apart() -> None:
    call: dict[str, object] = {"function": {"name": "clock"}}
    known = call | {"id": "same"}
    line = OL.line(tool_calls=[call, known, known, call])
    calls = read(OL, line + b"\n", OL.last(Saying())).tool_calls
    assert len({call.id for call in calls}) == 4
    assert calls[1].id == "same"


def test_a_made_up_tool_name_comes_back_as_ours() -> None:
    tool = ToolSpec("web.find", "", b"{}")
    assert ToolNames((tool,)).ours("web_find") == "web.find"
    assert ToolNames(()).sent("9lives") == "t_9lives"
