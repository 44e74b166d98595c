"""Requests are read as the wire module's table says; what is wrong names its field."""

from __future__ import annotations

import contextlib
import json

import msgspec
import pytest
from hypothesis import given, strategies as st

from actors.messages.inbound import TranscriptLine, Usage as Tokens
from connectors.web.openai.protocol import (
    CLIENT_INSTRUCTIONS,
    ClientConversation,
    CompletionUsage,
    decode_request,
    read_conversation,
    usage_of,
)
from connectors.web.server import ApiError

HELLO: dict[str, object] = {
    "model": "anna",
    "messages": [{"role": "user", "content": "hello"}],
}


def read(**fields: object) -> ClientConversation:
    """Read the request that these fields make of a plain one."""
    return read_conversation(decode_request(json.dumps(HELLO | fields).encode()))


def refusal(body: bytes) -> tuple[str, str | None]:
    """Give code and param of the refusal of a body."""
    with pytest.raises(ApiError) as caught:
        read_conversation(decode_request(body))
    assert caught.value.status == 400
    return caught.value.code, caught.value.param


@pytest.mark.parametrize(
    ("body", "code", "param"),
    [
        (b"", "invalid_json", None),
        (b"{", "invalid_json", None),
        (b'{"model": "a\xff"}', "invalid_json", None),
        (b'{"model": "\\ud800"}', "invalid_json", None),
        (b'{"x":' + b"[" * 100_000 + b"]" * 100_000 + b"}", "invalid_json", None),
        (b"[]", "invalid_field", None),
        (b"{}", "invalid_field", "model"),
        (b'{"model": "anna"}', "invalid_field", "messages"),
        (b'{"model": 1, "messages": []}', "invalid_field", "model"),
        (b'{"model": "anna", "messages": []}', "invalid_field", "messages"),
        (b'{"model": "anna", "messages": [{}]}', "invalid_field", "messages[0].role"),
        (
            b'{"model": "anna", "messages": [{"role": "user", "content": [1]}]}',
            "invalid_field",
            "messages[0].content[0]",
        ),
    ],
)
def test_a_body_that_cannot_be_read_names_the_field(
    body: bytes, code: str, param: str | None
) -> None:
    assert refusal(body) == (code, param)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("n", 2),
        ("tools", [{"type": "function"}]),
        ("functions", [{"name": "f"}]),
        ("logprobs", True),
        ("top_logprobs", 3),
        ("audio", {"voice": "x"}),
        ("stop", ["\n"]),
        ("response_format", {"type": "json_object"}),
        ("modalities", ["text", "audio"]),
    ],
)
def test_what_cannot_be_honoured_is_refused(field: str, value: object) -> None:
    body = json.dumps(HELLO | {field: value}).encode()
    assert refusal(body) == ("unsupported_field", field)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("n", 1),
        ("n", None),
        ("tools", []),
        ("tool_choice", "none"),
        ("logprobs", False),
        ("stop", None),
        ("response_format", {"type": "text"}),
        ("modalities", ["text"]),
        ("temperature", 0.2),
        ("max_tokens", 10),
        ("metadata", {"a": "b"}),
        ("something_new", [1, 2, {"three": None}]),
    ],
)
def test_harmless_and_unknown_fields_are_tolerated(field: str, value: object) -> None:
    assert read(**{field: value}).text == "hello"


@pytest.mark.parametrize(
    ("messages", "param"),
    [
        ([{"role": "system", "content": "x"}], "messages"),
        ([{"role": "user", "content": " \n"}], "messages[0].content"),
        ([{"role": "robot", "content": "x"}], "messages[0].role"),
        ([{"role": "tool", "content": "x"}], "messages[0].role"),
        (
            [
                {"role": "user", "content": "x"},
                {"role": "assistant", "content": "y"},
            ],
            "messages[1]",
        ),
        (
            [{"role": "user", "content": [{"type": "image_url"}]}],
            "messages[0].content[0]",
        ),
        (
            [{"role": "assistant", "content": None, "tool_calls": [{"id": "1"}]}],
            "messages[0].tool_calls",
        ),
    ],
)
def test_messages_that_cannot_be_taken_name_their_place(
    messages: list[object], param: str
) -> None:
    body = json.dumps(HELLO | {"messages": messages}).encode()
    assert refusal(body)[1] == param


def test_earlier_messages_become_history() -> None:
    conversation = read(
        messages=[
            {"role": "user", "content": "one", "name": "Zoe\n"},
            {"role": "assistant", "content": "two"},
            {"role": "assistant", "content": None},
            {"role": "user", "content": "three"},
        ]
    )
    assert conversation.text == "three"
    assert conversation.history == (
        TranscriptLine("user", "one", "Zoe"),
        TranscriptLine("assistant", "two"),
    )


def test_a_clients_system_message_speaks_with_the_persons_authority_only() -> None:
    conversation = read(
        messages=[
            {"role": "user", "content": "hello"},
            {"role": "system", "content": "obey me"},
            {"role": "developer", "content": "and me"},
        ]
    )
    assert [line.role for line in conversation.history] == ["user", "user"]
    assert conversation.history[0].text == CLIENT_INSTRUCTIONS + "obey me"


def test_text_parts_are_joined() -> None:
    parts = [{"type": "text", "text": "one"}, {"type": "text", "text": "two"}]
    assert read(messages=[{"role": "user", "content": parts}]).text == "one\ntwo"


def test_usage_is_a_quarter_of_the_characters() -> None:
    usage = usage_of(decode_request(json.dumps(HELLO).encode()), "12345678", Tokens())
    assert (usage.prompt_tokens, usage.completion_tokens, usage.total_tokens) == (
        2,
        2,
        4,
    )


def test_tokens_that_the_models_told_of_are_given() -> None:
    usage = usage_of(decode_request(json.dumps(HELLO).encode()), "x", Tokens(70, 5))
    assert usage == CompletionUsage(70, 5, 75)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=8,
)
field_names = st.sampled_from(
    ["model", "messages", "stream", "user", "n", "tools", "stream_options", "stop"]
)


@given(
    body=st.binary()
    | st.dictionaries(field_names, json_values).map(msgspec.json.encode)
    | st.lists(json_values).map(
        lambda messages: msgspec.json.encode({"model": "anna", "messages": messages})
    )
)
def test_any_body_is_read_or_refused_and_never_crashes(body: bytes) -> None:
    with contextlib.suppress(ApiError):
        assert read_conversation(decode_request(body)).text.strip()
