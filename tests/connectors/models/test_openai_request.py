"""Proves what a Chat Completions provider is sent, and that its key stays hidden."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given, strategies as st

from actors.messages.inbound import ToolCall, ToolSpec, TranscriptLine
from connectors.config.models import OpenAIModelConfig
from connectors.models.format import ToolNames, allowed_name
from connectors.models.openai.model import make_model
from runtime.errors import SettingsError
from runtime.secret import Secret
from tests.fakes.models.openai_client import KEY, NOW, ask, asking
from tests.fakes.models.openai_server import END, call_delta, delta, spoken
from tests.fakes.models.server import FakeProvider

TRANSCRIPT = (
    TranscriptLine("user", "What time is it?", name="Zoë B."),
    TranscriptLine(
        "assistant", "", tool_calls=(ToolCall("id1", "clock", b'{"a": 1}'),)
    ),
    TranscriptLine("tool", "Noon.", tool_call_id="id1"),
    TranscriptLine("assistant", "It is noon.", name="anna"),
)
SENT_CALL = {
    "id": "id1",
    "type": "function",
    "function": {"name": "clock", "arguments": '{"a": 1}'},
}
SENT_TOOL = {
    "type": "function",
    "function": {
        "name": "clock",
        "description": "Tell the time.",
        "parameters": {"a": 1},
    },
}
SENT = {
    "model": "gpt-x",
    "stream": True,
    "stream_options": {"include_usage": True},
    "temperature": 0.5,
    "max_tokens": 99,
    "tools": [SENT_TOOL],
    "messages": [
        {"role": "system", "content": "You are Anna."},
        {"role": "user", "content": "What time is it?", "name": "Zo__B"},
        {"role": "assistant", "content": "", "tool_calls": [SENT_CALL]},
        {"role": "tool", "content": "Noon.", "tool_call_id": "id1"},
        {"role": "assistant", "content": "It is noon.", "name": "anna"},
    ],
}


async def test_a_transcript_is_sent_as_the_api_says() -> None:
    clock = ToolSpec("clock", "Tell the time.", b'{"a":1}')
    request = msgspec.structs.replace(
        asking(*TRANSCRIPT, tools=(clock,)), temperature=0.5, max_tokens=99
    )
    provider = FakeProvider.streaming(*spoken("Yes."))
    await ask(provider, request)
    sent = provider.requests[0]
    assert str(sent.url) == "http://provider/v1/chat/completions"
    assert sent.headers["authorization"] == f"Bearer {KEY}"
    assert msgspec.json.decode(sent.content) == SENT


async def test_what_is_not_asked_for_is_not_sent() -> None:
    provider = FakeProvider.streaming(*spoken("Yes."))
    request = msgspec.structs.replace(asking(), system="", max_tokens=3)
    await ask(provider, request, max_tokens_name="max_completion_tokens", api_key="")
    sent = msgspec.json.decode(provider.requests[0].content)
    assert sorted(sent) == [
        "max_completion_tokens",
        "messages",
        "model",
        "stream",
        "stream_options",
    ]
    assert sent["messages"] == [{"role": "user", "content": "hello"}]
    assert "authorization" not in provider.requests[0].headers


async def test_a_name_and_password_in_the_address_are_sent_as_such() -> None:
    provider = FakeProvider.streaming(*spoken("Yes."))
    await ask(provider, base_url="http://sam:secret@provider/v1")
    sent = provider.requests[0]
    assert sent.headers["authorization"] == "Basic c2FtOnNlY3JldA=="
    assert sent.headers["host"] == "provider"


async def test_broken_arguments_of_old_calls_are_not_sent_again() -> None:
    call = ToolCall("id1", "clock", b'{"half')
    provider = FakeProvider.streaming(*spoken("Yes."))
    await ask(provider, asking(TranscriptLine("assistant", "", tool_calls=(call,))))
    sent = msgspec.json.decode(provider.requests[0].content)
    assert sent["messages"][1]["tool_calls"][0]["function"]["arguments"] == "{}"


async def test_tools_keep_their_own_names_on_our_side() -> None:
    tools = tuple(ToolSpec(name, "", b"{}") for name in ("web.find", "web find", "né"))
    provider = FakeProvider.streaming(
        call_delta(0, "a", "web_find_2", "{}"), delta("tool_calls"), END
    )
    answer = await ask(provider, asking(tools=tools))
    sent = msgspec.json.decode(provider.requests[0].content)["tools"]
    names = [tool["function"]["name"] for tool in sent]
    assert names == ["web_find", "web_find_2", "n"]
    assert answer.tool_calls[0].name == "web find"


@given(st.lists(st.text(max_size=80), unique=True, max_size=20))
def test_sent_tool_names_are_allowed_unique_and_come_back(names: list[str]) -> None:
    mapped = ToolNames(tuple(ToolSpec(name, "", b"{}") for name in names))
    sent = [mapped.sent(name) for name in names]
    assert len(set(sent)) == len(names)
    assert [mapped.ours(name) for name in sent] == names
    for name in sent:
        assert allowed_name(name) == name
        assert 1 <= len(name) <= 64


@pytest.mark.parametrize(
    "base_url", ["", "api.openai.com", "ftp://x/v1", "http://", "http://x:y/"]
)
def test_a_base_url_that_is_none_is_refused(base_url: str) -> None:
    with pytest.raises(SettingsError, match="base_url"):
        make_model(OpenAIModelConfig(model="m", base_url=base_url), lambda: NOW)


@pytest.mark.parametrize("key", ["sk-a\nb", "sk-ключ", "sk-\x00"])
def test_a_key_that_cannot_be_sent_is_refused_unseen(key: str) -> None:
    config = OpenAIModelConfig(model="m", api_key=Secret(key))
    with pytest.raises(SettingsError) as caught:
        make_model(config, lambda: NOW)
    assert "sk-" not in str(caught.value)


async def test_the_space_around_a_key_is_not_sent() -> None:
    provider = FakeProvider.streaming(*spoken("Yes."))
    await ask(provider, api_key=f" {KEY}\n")
    assert provider.requests[0].headers["authorization"] == f"Bearer {KEY}"


def test_settings_never_show_their_key() -> None:
    config = OpenAIModelConfig(model="m", api_key=Secret(KEY))
    assert KEY not in f"{config!r} {config}"


async def test_a_traced_request_names_its_step_and_others_do_not() -> None:
    provider = FakeProvider.streaming(*spoken("hello"))
    parent = f"00-{'ab' * 16}-{'cd' * 8}-01"
    for request in (msgspec.structs.replace(asking(), traceparent=parent), asking()):
        await ask(provider, request)
    sent = [each.headers.get("traceparent") for each in provider.requests]
    assert sent == [parent, None]
