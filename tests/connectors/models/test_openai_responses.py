"""Proves what is said over OpenAI's Responses API, and what its own events mean."""

from __future__ import annotations

import base64
from typing import Any, cast

import msgspec
import pytest

from actors.errors import ModelError, ModelFault
from actors.messages.inbound import (
    Image,
    ModelAnswer,
    ModelRequest,
    ToolCall,
    ToolSpec,
    TranscriptLine,
    Usage,
)
from tests.fakes.models.dialects import Manner, OpenAIResponsesDialect
from tests.fakes.models.sayings import KEY, PIXEL, Saying, deaf
from tests.fakes.models.server import FakeProvider

R = OpenAIResponsesDialect()
STREAM, PLAIN = Manner(R, stream=True), Manner(R, stream=False)
SCHEMA = b'{"type":"object","properties":{"zone":{"type":"string"}}}'
CLOCK = ToolSpec("clock", "Tell the time.", SCHEMA)
PICTURE = Image("image/png", PIXEL)
SENT_PICTURE = {
    "type": "input_image",
    "image_url": f"data:image/png;base64,{base64.b64encode(PIXEL).decode()}",
    "detail": "auto",
}
ASKED = TranscriptLine("user", "What time is it?")
CALL = ToolCall("call_0", "clock", b'{"zone":"UTC"}')
LINES = (
    TranscriptLine("user", "Look:", name="Zoë", images=(PICTURE,)),
    TranscriptLine(
        "assistant", "I look.", tool_calls=(CALL, ToolCall("b", "clock", b"not json"))
    ),
    TranscriptLine("tool", "Noon.", tool_call_id="call_0"),
    TranscriptLine("tool", "", tool_call_id="b", images=(PICTURE,)),
    TranscriptLine("assistant", ""),
    TranscriptLine("user", "And?", name="Zoë"),
)
THOUGHT = {
    "type": "reasoning",
    "summary": [{"type": "summary_text", "text": "Hm."}],
    "encrypted_content": "c2VhbGVk",
}
Item = dict[str, object]


def asking(*lines: TranscriptLine, **fields: object) -> ModelRequest:
    request = ModelRequest(
        model="gpt-x",
        agent="anna",
        correlation_id="c",
        system="You are Anna.",
        lines=lines or (ASKED,),
        tools=(CLOCK,),
    )
    return msgspec.structs.replace(request, **fields)


async def read(*events: bytes, manner: Manner = STREAM) -> ModelAnswer:
    """Read what a provider answers with."""
    provider = FakeProvider.streaming(*events, media_type=manner.media_type)
    return await manner.make(provider.transport).answer(asking(), deaf)


async def sent(
    request: ModelRequest, manner: Manner = STREAM, **settings: Any
) -> dict[str, Any]:
    """Ask, and give the body that was sent."""
    provider = FakeProvider.streaming(
        manner.written(Saying("Yes.")), media_type=manner.media_type
    )
    await manner.make(provider.transport, **settings).answer(request, deaf)
    asked = provider.requests[0]
    assert str(asked.url) == "http://provider/responses"
    assert asked.headers["authorization"] == f"Bearer {KEY}"
    return cast("dict[str, Any]", msgspec.json.decode(asked.content))


async def test_a_transcript_is_sent_as_items() -> None:
    body = await sent(asking(*LINES))
    call: Item = {"type": "function_call", "call_id": "call_0", "name": "clock"}
    result: Item = {"type": "function_call_output", "call_id": "call_0"}
    look = {"type": "input_text", "text": "Look:"}
    assert body["input"] == [
        {"role": "user", "content": [look, SENT_PICTURE]},
        {"role": "assistant", "content": "I look."},
        call | {"arguments": '{"zone":"UTC"}'},
        call | {"call_id": "b", "arguments": "{}"},
        result | {"output": "Noon."},
        result | {"call_id": "b", "output": [SENT_PICTURE]},
        {"role": "user", "content": "And?"},
    ]


async def test_nothing_is_stored_there_and_no_tool_is_strict() -> None:
    body = await sent(asking(temperature=0.5, max_tokens=99))
    del body["input"]
    clock = {"type": "function", "name": "clock", "description": "Tell the time."}
    schema = msgspec.json.decode(SCHEMA)
    assert body == {
        "model": "gpt-x",
        "store": False,
        "instructions": "You are Anna.",
        "stream": True,
        "tools": [clock | {"parameters": schema, "strict": False}],
        "temperature": 0.5,
        "max_output_tokens": 99,
    }


async def test_what_is_not_asked_for_is_not_sent() -> None:
    body = await sent(asking(system="", tools=()), PLAIN)
    assert sorted(body) == ["input", "model", "store"]


async def test_a_bound_below_what_the_api_takes_is_raised_to_it() -> None:
    assert (await sent(asking(max_tokens=3)))["max_output_tokens"] == 16


async def ask_twice(
    provider: FakeProvider,
    manner: Manner = STREAM,
    second: dict[str, object] | None = None,
) -> list[Item]:
    """Have a tool called, give its result, and give the items sent then."""
    model = manner.make(provider.transport)
    answer = await model.answer(asking(conversation="here"), deaf)
    (call,) = answer.tool_calls
    lines = (
        ASKED,
        TranscriptLine("assistant", answer.text, tool_calls=(call,)),
        TranscriptLine("tool", "Noon.", tool_call_id=call.id),
    )
    again = asking(*lines, **({"conversation": "here"} | (second or {})))
    await model.answer(again, deaf)
    items = msgspec.json.decode(provider.requests[1].content)["input"]
    return cast("list[Item]", items)


@pytest.mark.parametrize("manner", [STREAM, PLAIN], ids=str)
async def test_what_it_thought_before_a_call_goes_back_before_it(
    manner: Manner,
) -> None:
    said = Saying("I look.", (("clock", "{}"),), thoughts="Hm.")
    provider = FakeProvider.streaming(
        manner.written(said), media_type=manner.media_type
    )
    items = await ask_twice(provider, manner)
    assert [item.get("type", item.get("role")) for item in items] == [
        "user",
        "assistant",
        "reasoning",
        "function_call",
        "function_call_output",
    ]
    assert items[2] == THOUGHT


@pytest.mark.parametrize("other", [{"conversation": "there"}, {"model": "gpt-y"}])
async def test_thoughts_are_kept_from_other_conversations_and_models(
    other: dict[str, object],
) -> None:
    said = Saying("", (("clock", "{}"),), thoughts="Hm.")
    provider = FakeProvider.streaming(STREAM.written(said))
    assert THOUGHT not in await ask_twice(provider, second=other)


async def test_thoughts_that_come_readable_are_not_sent_back() -> None:
    said = STREAM.written(Saying("", (("clock", "{}"),), thoughts="Hm."))
    provider = FakeProvider.streaming(said.replace(b'"encrypted_content"', b'"x"'))
    items = await ask_twice(provider)
    assert [item for item in items if item.get("type") == "reasoning"] == []


def call(arguments: str = "", number: int = 0) -> Item:
    named = {"call_id": f"call_{number}", "name": "clock", "arguments": arguments}
    return {"type": "function_call", "id": f"fc_{number}", **named}


def item(step: str, found: Item, index: int = 0) -> bytes:
    return R.event(f"response.output_item.{step}", output_index=index, item=found)


def arguments(step: str, index: int = 0, **fields: str) -> bytes:
    name = f"response.function_call_arguments.{step}"
    return R.event(name, output_index=index, item_id="fc", **fields)


END = R.events(Saying())[-1]
WHOLE = '{"zone":"UTC"}'


@pytest.mark.parametrize(
    "events",
    [
        [item("done", call(WHOLE))],
        [item("added", call(WHOLE)), item("done", call(WHOLE))],
        [item("added", call()), arguments("done", arguments=WHOLE)],
        [
            item("added", call(WHOLE)),
            arguments("delta", delta=WHOLE[:5]),
            arguments("delta", delta=WHOLE[5:]),
            arguments("done", arguments=WHOLE),
            item("done", call(WHOLE)),
        ],
    ],
    ids=["done", "added whole", "in one piece", "all of it"],
)
async def test_arguments_count_once_however_they_come(events: list[bytes]) -> None:
    (made,) = (await read(*events, END)).tool_calls
    assert (made.id, made.name, made.arguments) == ("call_0", "clock", WHOLE.encode())


async def test_parallel_calls_of_one_number_are_told_apart_by_their_ids() -> None:
    first, second = call("{}", 0), call('{"a":1}', 1)
    one_by_one = [item("done", first), item("done", second)]
    begun = [item("added", first), item("added", second)]
    for events in (one_by_one, [*begun, *one_by_one]):
        answer = await read(*events, END)
        assert [each.arguments for each in answer.tool_calls] == [b"{}", b'{"a":1}']


@pytest.mark.parametrize("manner", [STREAM, PLAIN], ids=str)
async def test_broken_arguments_are_handed_on(manner: Manner) -> None:
    said = manner.dialect.events(Saying("", (("clock", '{"zone": "U'),)))
    if not manner.stream:
        response = R.response(Saying(), call('{"zone": "U'))
        said = [msgspec.json.encode(response)]
    (made,) = (await read(*said, manner=manner)).tool_calls
    assert made.arguments == b'{"zone": "U'


@pytest.mark.parametrize("manner", [STREAM, PLAIN], ids=str)
async def test_thoughts_are_among_the_tokens_written(manner: Manner) -> None:
    answer = await read(manner.written(Saying("Noon.")), manner=manner)
    assert answer.usage == Usage(7, 5, 3)


async def test_what_it_declines_is_said_in_its_words() -> None:
    refusal = {"type": "refusal", "refusal": "I would rather not."}
    words = R.response(Saying(), {"type": "message", "content": [refusal]})
    plain = await read(msgspec.json.encode(words), manner=PLAIN)
    delta = R.event("response.refusal.delta", delta="I would rather not.")
    for answer in (plain, await read(delta, END)):
        assert answer.text == "I would rather not."
        assert answer.stop_reason == "refused"


async def test_events_and_items_may_be_added() -> None:
    new = R.event("response.something.new", delta="x", output_index=0)
    search: Item = {"type": "new_call", "arguments": {"q": 1}, "content": "x"}
    said = R.events(Saying("hello"))
    events = [*said[:2], new, item("added", search, 7), item("done", search, 7)]
    answer = await read(*events, *said[2:], b"data: [DONE]\n\n")
    assert answer.text == "hello"


def failed(**error: object) -> bytes:
    response = {"id": "x", "status": "failed", "error": error}
    return R.event("response.failed", response=response)


def stopped(reason: str) -> bytes:
    details = {"status": "incomplete", "incomplete_details": {"reason": reason}}
    return R.event("response.incomplete", response=details)


HELLO = R.events(Saying("hello"))
BROKEN: list[tuple[str, list[bytes], ModelFault]] = [
    ("no end", HELLO[:-1], "protocol"),
    ("early marker", [*HELLO[:3], b"data: [DONE]\n\n"], "protocol"),
    ("no call", [arguments("delta", delta="{")], "protocol"),
    ("done, no call", [arguments("done", arguments="{}")], "protocol"),
    ("no name", [item("done", call() | {"name": ""}), END], "protocol"),
    ("steered", [*HELLO[:-1], stopped("steered")], "protocol"),
    ("nothing why", [*HELLO[:-1], stopped("")], "protocol"),
    ("filter", [*HELLO[:-1], stopped("content_filter")], "content"),
    ("server", [failed(code="server_error", message="x")], "overload"),
    ("rate", [failed(code="rate_limit_exceeded", message="x")], "rate"),
    ("prompt", [failed(code="invalid_prompt", message="x")], "content"),
    ("policy", [failed(code="bio_policy", message="x")], "content"),
    ("picture", [failed(code="invalid_image", message="x")], "bad_request"),
    ("no reason", [failed()], "overload"),
    ("flat", [R.event("error", code="server_error", message="x")], "overload"),
    ("flat quota", [R.event("error", code="insufficient_quota")], "quota"),
    ("nested", [R.event("error", error={"code": "rate_limit_exceeded"})], "rate"),
    ("bare", [b'data: {"error":{"code":"invalid_api_key"}}\n\n'], "auth"),
]


@pytest.mark.parametrize(
    ("name", "events", "kind"), BROKEN, ids=[each[0] for each in BROKEN]
)
async def test_a_broken_stream_is_an_error(
    name: str, events: list[bytes], kind: ModelFault
) -> None:
    assert name
    with pytest.raises(ModelError) as caught:
        await read(*events)
    assert caught.value.kind == kind


@pytest.mark.parametrize("status", ["in_progress", "queued", "cancelled", None])
async def test_a_response_that_has_not_ended_is_no_answer(status: str | None) -> None:
    body = R.response(Saying(), *R.items(Saying("hello"))) | {"status": status}
    with pytest.raises(ModelError, match="how it ended") as caught:
        await read(msgspec.json.encode(body), manner=PLAIN)
    assert caught.value.kind == "protocol"
