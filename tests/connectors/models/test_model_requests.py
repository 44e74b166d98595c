"""Proves what providers of each format are sent, and what is kept from them.

Chat Completions has a file of its own: `test_openai_request.py`.
"""

from __future__ import annotations

import base64
from itertools import pairwise
from typing import Any, cast

import msgspec
import pytest
from hypothesis import given, strategies as st

from actors.messages.inbound import (
    Image,
    ModelRequest,
    ToolCall,
    ToolSpec,
    TranscriptLine,
)
from actors.rules.prompt.estimate import UNSEEN
from connectors.models.format import (
    EARLIER,
    GO_ON,
    MOST_BYTES,
    MOST_OF_ONE,
    CallIds,
    CallMemory,
    turns,
)
from connectors.models.google import wants_signature
from connectors.models.http.client import fitted
from runtime.secret import OpenText, Secret
from tests.fakes.models.dialects import DIALECTS, MANNERS, Manner
from tests.fakes.models.sayings import KEY, PIXEL, Dialect, Saying, deaf
from tests.fakes.models.server import FakeProvider

SCHEMA = b'{"type":"object","properties":{"zone":{"type":"string"}},"x":1}'
CLOCK = ToolSpec("clock", "Tell the time.", SCHEMA)
PICTURE = Image("image/png", PIXEL)
DATA = base64.b64encode(PIXEL).decode()
LINES = (
    TranscriptLine("user", "What time is it?", name="Zoë"),
    TranscriptLine("user", "Look:", images=(PICTURE,), name="Zoë"),
    TranscriptLine(
        "assistant",
        "I look.",
        tool_calls=(
            ToolCall("functions.clock:0", "clock", b'{"zone":"UTC"}'),
            ToolCall("b", "clock", b"not json"),
        ),
    ),
    TranscriptLine("tool", "Noon.", tool_call_id="functions.clock:0"),
    TranscriptLine("tool", "", tool_call_id="b", images=(PICTURE,)),
    TranscriptLine("user", "And?", name="Zoë"),
)
Sent = dict[str, object]


def asking(*lines: TranscriptLine, **fields: object) -> ModelRequest:
    request = ModelRequest(
        model="m",
        agent="anna",
        correlation_id="c",
        system="You are Anna.",
        lines=lines or LINES,
        tools=(CLOCK,),
        temperature=1.5,
        max_tokens=99,
    )
    return msgspec.structs.replace(request, **fields)


async def sent(manner: Manner, request: ModelRequest, **settings: Any) -> Sent:
    """Ask, and give what was sent: the body, its address and headers."""
    provider = FakeProvider.streaming(
        manner.written(Saying("Yes.")), media_type=manner.media_type
    )
    await manner.make(provider.transport, **settings).answer(request, deaf)
    asked = provider.requests[0]
    body: Sent = msgspec.json.decode(asked.content)
    return body | {"url": str(asked.url), "headers": dict(asked.headers)}


def manner(dialect: str, *, stream: bool = True) -> Manner:
    return next(
        each
        for each in MANNERS
        if (each.dialect.name, each.stream) == (dialect, stream)
    )


@pytest.mark.parametrize("each", MANNERS, ids=str)
async def test_what_the_settings_add_goes_with_each_request(each: Manner) -> None:
    extra = (
        b'{"odd": {"deep": 1}, "options": {"seed": 7}, "generationConfig": {"a": 1}}'
    )
    plain = await sent(each, asking())
    found = await sent(
        each,
        asking(extra_body=extra),
        headers={"api-key": OpenText("", Secret("k")), "X-Title": OpenText("Board")},
    )
    for name, value in cast("dict[str, Any]", msgspec.json.decode(extra)).items():
        before = cast("dict[str, object]", plain.get(name, {}))
        assert found.pop(name) == before | value
        plain.pop(name, None)
    headers = cast("dict[str, str]", found.pop("headers"))
    assert headers["api-key"] == "k"
    assert headers["x-title"] == "Board"
    del plain["headers"]
    assert found == plain


@pytest.mark.parametrize("each", MANNERS, ids=str)
async def test_a_query_of_the_address_goes_with_each_request(each: Manner) -> None:
    url = "https://azure.example/v1?api-version=2024-10-21"
    found = await sent(each, asking(), base_url=url)
    path, _, query = str(found["url"]).partition("?")
    assert path.startswith("https://azure.example/v1/")
    assert "api-version=2024-10-21" in query.split("&")


def text(words: str) -> Sent:
    return {"type": "text", "text": words}


async def test_anthropic_is_sent_turns_of_blocks() -> None:
    body = await sent(manner("anthropic"), asking())
    picture = {"media_type": "image/png", "data": DATA, "type": "base64"}
    image = {"type": "image", "source": picture}
    call: Sent = {"type": "tool_use", "name": "clock", "input": {}}
    first = call | {"id": "functions_clock_0", "input": {"zone": "UTC"}}
    noon: Sent = {"type": "tool_result", "tool_use_id": "functions_clock_0"}
    shown: Sent = {"type": "tool_result", "tool_use_id": "b", "content": [image]}
    assert body["messages"] == [
        {
            "role": "user",
            "content": [text("What time is it?"), text("Look:"), image],
        },
        {
            "role": "assistant",
            "content": [text("I look."), first, call | {"id": "b"}],
        },
        {
            "role": "user",
            "content": [noon | {"content": "Noon."}, shown, text("And?")],
        },
    ]


async def test_anthropic_is_sent_what_it_insists_on() -> None:
    body = await sent(manner("anthropic"), asking(temperature=1.5))
    headers = cast("Sent", body["headers"])
    assert body["url"] == "http://provider/messages"
    assert (headers["x-api-key"], "authorization" in headers) == (KEY, False)
    assert headers["anthropic-version"] == "2023-06-01"
    assert (body["system"], body["stream"]) == ("You are Anna.", True)
    assert (body["temperature"], body["max_tokens"]) == (1.0, 99)
    tools = cast("list[Sent]", body["tools"])
    assert tools[0]["input_schema"] == msgspec.json.decode(SCHEMA)
    body = await sent(
        manner("anthropic", stream=False), asking(max_tokens=None), max_tokens=5
    )
    assert (body["max_tokens"], "stream" in body) == (5, False)


async def test_anthropic_hears_of_earlier_tools_that_are_not_on_offer() -> None:
    body = await sent(manner("anthropic"), asking(tools=()))
    tools = cast("list[Sent]", body["tools"])
    assert [tool["name"] for tool in tools] == ["clock"]
    assert body["tool_choice"] == {"type": "none"}
    body = await sent(
        manner("anthropic"), asking(TranscriptLine("user", "hi"), tools=())
    )
    assert "tools" not in body
    assert "tool_choice" not in body


async def test_google_is_sent_contents_of_parts() -> None:
    body = await sent(manner("google"), asking())
    image = {"inlineData": {"mimeType": "image/png", "data": DATA}}
    call = {"functionCall": {"name": "clock", "args": {"zone": "UTC"}}}
    noon = {"name": "clock", "response": {"output": "Noon."}}
    assert body["contents"] == [
        {
            "role": "user",
            "parts": [{"text": "What time is it?"}, {"text": "Look:"}, image],
        },
        {
            "role": "model",
            "parts": [
                {"text": "I look."},
                call,
                {"functionCall": {"name": "clock", "args": {}}},
            ],
        },
        {
            "role": "user",
            "parts": [
                {"functionResponse": noon},
                {"functionResponse": noon | {"response": {"output": ""}}},
                image,
                {"text": "And?"},
            ],
        },
    ]


async def test_google_is_sent_what_it_insists_on() -> None:
    body = await sent(manner("google"), asking())
    headers = cast("Sent", body["headers"])
    assert body["url"] == "http://provider/models/m:streamGenerateContent?alt=sse"
    assert headers["x-goog-api-key"] == KEY
    assert body["systemInstruction"] == {"parts": [{"text": "You are Anna."}]}
    assert body["generationConfig"] == {"temperature": 1.5, "maxOutputTokens": 99}
    schema = {"type": "object", "properties": {"zone": {"type": "string"}}}
    clock = {"name": "clock", "description": "Tell the time.", "parameters": schema}
    assert body["tools"] == [{"functionDeclarations": [clock]}]
    plain = await sent(manner("google", stream=False), asking(model="tunedModels/a b"))
    assert plain["url"] == "http://provider/tunedModels/a%20b:generateContent"


async def test_google_gets_its_own_ids_and_signatures_back() -> None:
    google = manner("google")
    said = google.written(Saying("", (("clock", "{}"),)))
    said = said.replace(b'"name":"clock"', b'"id":"g1","name":"clock"')
    provider = FakeProvider.streaming(said)
    model = google.make(provider.transport)
    answer = await model.answer(asking(), deaf)
    (call,) = answer.tool_calls
    done = TranscriptLine("tool", "Noon.", tool_call_id=call.id)
    asked = (
        TranscriptLine("user", "?"),
        TranscriptLine("assistant", "", tool_calls=(call,)),
        done,
    )
    await model.answer(asking(*asked), deaf)
    contents = msgspec.json.decode(provider.requests[1].content)["contents"]
    assert contents[1]["parts"] == [
        {
            "functionCall": {"name": "clock", "args": {}, "id": "g1"},
            "thoughtSignature": "c2lnbmVk",
        }
    ]
    assert contents[2]["parts"][0]["functionResponse"]["id"] == "g1"


@pytest.mark.parametrize(
    ("model", "signed"),
    [
        ("gemini-2.5-flash", [None, None]),
        ("gemini-3-pro-preview", ["skip_thought_signature_validator", None]),
        ("gemini-3.1-flash", ["skip_thought_signature_validator", None]),
    ],
)
async def test_google_is_told_of_calls_that_it_never_signed(
    model: str, signed: list[str | None]
) -> None:
    body = await sent(manner("google"), asking(model=model))
    contents = cast("list[dict[str, list[Sent]]]", body["contents"])
    parts = contents[1]["parts"][1:]
    assert [part.get("thoughtSignature") for part in parts] == signed


def test_what_is_remembered_of_calls_is_bounded() -> None:
    memory: CallMemory[str] = CallMemory()
    many = MOST_BYTES // MOST_OF_ONE
    for number in range(many):
        memory.keep(asking(), str(number), "kept", MOST_OF_ONE)
    memory.keep(asking(), "long", "kept", MOST_OF_ONE + 1)
    assert memory.find(asking(), "0") is None
    assert memory.find(asking(), "1") == "kept"
    assert memory.find(asking(), "long") is None
    for number in range(many):
        memory.keep(asking(), "1", f"kept {number}", MOST_OF_ONE)
    assert memory.find(asking(), "2") == "kept"


def test_what_is_remembered_of_a_call_is_no_other_conversation_s() -> None:
    memory: CallMemory[str] = CallMemory()
    memory.keep(asking(conversation="a"), "call_0", "kept", 1)
    assert memory.find(asking(conversation="a"), "call_0") == "kept"
    assert memory.find(asking(conversation="b"), "call_0") is None
    assert memory.find(asking(conversation="a", model="n"), "call_0") is None
    assert not wants_signature("gemma-3")


async def test_ollama_is_sent_bare_pictures_and_names_of_tools() -> None:
    body = await sent(manner("ollama"), asking(), takes_images=True, context_tokens=8)
    call: Sent = {"function": {"name": "clock", "arguments": {"zone": "UTC"}}}
    assert body["messages"] == [
        {"role": "system", "content": "You are Anna."},
        {"role": "user", "content": "What time is it?"},
        {"role": "user", "content": "Look:", "images": [DATA]},
        {
            "role": "assistant",
            "content": "I look.",
            "tool_calls": [call, {"function": {"name": "clock", "arguments": {}}}],
        },
        {"role": "tool", "content": "Noon.", "tool_name": "clock"},
        {"role": "tool", "content": "", "tool_name": "clock"},
        {"role": "user", "content": "[Pictures from the tool]", "images": [DATA]},
        {"role": "user", "content": "And?"},
    ]
    assert body["url"] == "http://provider/api/chat"
    assert body["options"] == {"temperature": 1.5, "num_predict": 99, "num_ctx": 8}
    assert body["stream"] is True
    plain = await sent(manner("ollama", stream=False), asking())
    assert plain["stream"] is False


async def test_chat_completions_show_pictures_after_all_results() -> None:
    body = await sent(manner("openai"), asking())
    messages = cast("list[Sent]", body["messages"])
    url = {"url": f"data:image/png;base64,{DATA}"}
    image = {"type": "image_url", "image_url": url}
    assert messages[2]["content"] == [{"type": "text", "text": "Look:"}, image]
    assert [each["role"] for each in messages[4:]] == ["tool", "tool", "user", "user"]
    assert messages[6]["content"] == [
        {"type": "text", "text": "[Pictures from the tool]"},
        image,
    ]
    plain = await sent(manner("openai", stream=False), asking())
    assert "stream" not in plain
    assert "stream_options" not in plain


@pytest.mark.parametrize("each", MANNERS, ids=str)
async def test_who_cannot_see_is_shown_nothing(each: Manner) -> None:
    body = await sent(each, asking(), takes_images=False)
    encoded = msgspec.json.encode(body).decode()
    assert DATA not in encoded
    assert encoded.count(UNSEEN) == 2


@pytest.mark.parametrize("each", MANNERS, ids=str)
async def test_who_cannot_call_hears_of_calls_in_words(each: Manner) -> None:
    body = await sent(each, asking(), takes_tools=False)
    assert "tools" not in body
    encoded = msgspec.json.encode(body)
    assert b"[Result of clock]\\nNoon." in encoded
    for word in (b"tool_use", b"functionCall", b"tool_calls", b'"tool"'):
        assert word not in encoded


def test_names_are_said_where_several_speak_and_lines_have_none() -> None:
    two = (
        TranscriptLine("user", "hi", name="Zoë"),
        TranscriptLine("user", "ho", name="Max"),
    )
    request = fitted(asking(*two), sees=True, calls=True, names=False)
    assert [line.text for line in request.lines] == ["Zoë: hi", "Max: ho"]
    for lines, names in (((two[0],), False), (two, True)):
        same = asking(*lines)
        assert fitted(same, sees=True, calls=True, names=names) is same


def test_what_is_cut_off_begins_and_ends_with_the_user() -> None:
    lines = (
        TranscriptLine("assistant", "a"),
        TranscriptLine("tool", "b"),
        TranscriptLine("assistant", "c"),
    )
    made = list(turns(lines))
    assert [turn.is_user for turn in made] == [True, False, True, False, True]
    assert (made[0].lines[0].text, made[-1].lines[0].text) == (EARLIER, GO_ON)
    assert [turn.is_user for turn in turns(())] == [True]


@given(st.lists(st.sampled_from(["user", "assistant", "tool"]), max_size=12))
def test_turns_alternate_and_lose_nothing(roles: list[str]) -> None:
    lines = [
        msgspec.convert({"role": role, "text": role}, TranscriptLine) for role in roles
    ]
    made = list(turns(lines))
    sides = [turn.is_user for turn in made]
    assert all(a is not b for a, b in pairwise(sides))
    assert sides[0]
    assert sides[-1]
    kept = [line for turn in made for line in turn.lines]
    assert [line for line in kept if line.text not in {EARLIER, GO_ON}] == lines


@given(st.lists(st.text(max_size=70), max_size=20))
def test_sent_ids_are_allowed_and_unique_and_results_follow(given: list[str]) -> None:
    ids = CallIds()
    used: list[str] = []
    for call_id in given:
        used.append(ids.of_call(call_id))
        assert ids.of_result(call_id) == used[-1]
    assert len(set(used)) == len(used)
    assert all(0 < len(each) <= 64 for each in used)
    assert all(c.isascii() and (c.isalnum() or c in "_-") for c in "".join(used))


def test_a_second_call_of_an_id_gets_the_next_number() -> None:
    ids = CallIds()
    sent_ids = [ids.of_call(call_id) for call_id in ("a b", "a b", "", "a_b", "")]
    assert sent_ids == ["a_b", "a_b_2", "call", "a_b_3", "call_2"]


EMPTY = (
    TranscriptLine("user", "  "),
    TranscriptLine("assistant", ""),
    TranscriptLine("user", "x"),
)


@pytest.mark.parametrize("dialect", DIALECTS, ids=lambda each: each.name)
async def test_a_line_without_words_is_no_empty_block(dialect: Dialect) -> None:
    body = await sent(manner(dialect.name), asking(*EMPTY))
    encoded = msgspec.json.encode(body)
    assert b'"content":[]' not in encoded
    assert b'"parts":[]' not in encoded
    if dialect.name == "anthropic":
        assert b'"text":""' not in encoded
        assert b'"text":"  "' not in encoded
