"""Proves that a server we did not write understands our requests, in every format.

The server is aimock 1.43.0 from npm (`@copilotkit/aimock`), which speaks the formats
of OpenAI, Anthropic, Google and Ollama. It checks the key in each vendor's header,
matches the words and the tool results that it finds in a request, and answers
streamed and in one piece.
"""

from __future__ import annotations

from collections.abc import Iterator

import httpx
import msgspec
import pytest

from actors.errors import ModelBusyError, ModelError
from actors.messages.inbound import (
    Image,
    ModelAnswer,
    ModelRequest,
    ToolSpec,
    TranscriptLine,
)
from tests.fakes.models.aimock import serving
from tests.fakes.models.dialects import MANNERS, Manner
from tests.fakes.models.sayings import KEY, PIXEL

PATHS = {"google": "/v1beta", "ollama": ""}
"""What follows the server's address; `/v1` for the others."""
SCHEMA = b"""{"type":"object","additionalProperties":false,
  "properties":{"timezone":{"type":["string","null"]}}}"""
CLOCK = ToolSpec("clock", "Tell the time.", SCHEMA)
CALL = {"name": "clock", "arguments": '{"timezone":"Asia/Tokyo"}'}
SLOW_DOWN = {"message": "slow down", "type": "rate_limit_error"}
GREETING = "Good morning, Sam, and a very fine one it is: Жёлтый ünïcödé."
FIXTURES = [
    {"match": {"userMessage": "hello"}, "response": {"content": GREETING}},
    {
        "match": {"userMessage": "what time", "toolResultContains": "noon in Tokyo"},
        "response": {"content": "It is noon there."},
    },
    {"match": {"userMessage": "what time"}, "response": {"toolCalls": [CALL]}},
    {
        "match": {"userMessage": "too many"},
        "response": {"error": SLOW_DOWN, "status": 429},
    },
    {
        "match": {"userMessage": "who", "systemMessage": "You are Anna"},
        "response": {"content": "Anna."},
    },
]
pytestmark = [pytest.mark.live, pytest.mark.parametrize("manner", MANNERS, ids=str)]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Run the server; gives its address."""
    folder = tmp_path_factory.mktemp("aimock")
    with serving(FIXTURES, folder, KEY, "--strict", "--chunk-size", "5") as address:
        yield address


def asking(*lines: TranscriptLine, system: str = "") -> ModelRequest:
    return ModelRequest(
        model="gpt-4o",
        agent="anna",
        correlation_id="c",
        system=system,
        lines=lines,
        tools=(CLOCK,),
    )


async def ask(manner: Manner, server: str, request: ModelRequest) -> ModelAnswer:
    model = manner.make(base_url=server + PATHS.get(manner.dialect.name, "/v1"))
    pieces: list[str] = []
    try:
        answer = await model.answer(request, pieces.append)
    finally:
        await model.aclose()
    assert "".join(pieces) == answer.text
    return answer


async def test_words_come_back(manner: Manner, server: str) -> None:
    answer = await ask(manner, server, asking(TranscriptLine("user", "hello")))
    assert (answer.text, answer.stop_reason) == (GREETING, "end")
    if manner.dialect.name != "ollama":
        assert answer.request_id or manner.dialect.name == "google"


async def test_a_tool_is_called_and_its_result_understood(
    manner: Manner, server: str
) -> None:
    question = TranscriptLine("user", "what time is it?")
    asked = await ask(manner, server, asking(question))
    (call,) = asked.tool_calls
    assert (call.name, asked.stop_reason) == ("clock", "tools")
    assert msgspec.json.decode(call.arguments) == {"timezone": "Asia/Tokyo"}
    again = TranscriptLine("assistant", asked.text, tool_calls=asked.tool_calls)
    result = TranscriptLine("tool", "It is noon in Tokyo.", tool_call_id=call.id)
    answer = await ask(manner, server, asking(question, again, result))
    assert (answer.text, answer.tool_calls) == ("It is noon there.", ())


async def test_the_system_prompt_is_found(manner: Manner, server: str) -> None:
    asked = asking(TranscriptLine("user", "who are you?"), system="You are Anna.")
    assert (await ask(manner, server, asked)).text == "Anna."


async def test_a_picture_is_taken(manner: Manner, server: str) -> None:
    picture = Image("image/png", PIXEL)
    request = asking(TranscriptLine("user", "hello", images=(picture,)))
    assert (await ask(manner, server, request)).text == GREETING


async def test_its_errors_are_understood(manner: Manner, server: str) -> None:
    with pytest.raises(ModelBusyError, match="slow down") as caught:
        await ask(manner, server, asking(TranscriptLine("user", "too many")))
    assert (caught.value.kind, caught.value.retry_after) == ("rate", 1.0)


async def test_what_it_does_not_expect_is_refused(manner: Manner, server: str) -> None:
    with pytest.raises(ModelError) as caught:
        await ask(manner, server, asking(TranscriptLine("user", "something else")))
    assert caught.value.kind in {"bad_request", "overload"}


@pytest.mark.parametrize(
    ("fault", "kinds"),
    [
        ("disconnectRate", {"network", "protocol"}),
        ("malformedRate", {"protocol"}),
        ("dropRate", {"overload"}),
    ],
)
async def test_its_chaos_is_told_for_what_it_is(
    manner: Manner, server: str, fault: str, kinds: set[str]
) -> None:
    async with httpx.AsyncClient(
        base_url=server, headers={"authorization": f"Bearer {KEY}"}
    ) as control:
        (await control.post("/__aimock/chaos", json={fault: 1})).raise_for_status()
        try:
            with pytest.raises(ModelError) as caught:
                await ask(manner, server, asking(TranscriptLine("user", "hello")))
        finally:
            (await control.delete("/__aimock/chaos")).raise_for_status()
    assert caught.value.kind in kinds


async def test_another_key_is_refused(manner: Manner, server: str) -> None:
    async with httpx.AsyncClient() as stranger:
        path = PATHS.get(manner.dialect.name, "/v1") + manner.dialect.path
        refused = await stranger.post(server + path, json={})
    assert refused.status_code == 401
