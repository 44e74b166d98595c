"""Asks a fake Chat Completions provider one question."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from actors.messages import Line, ModelAnswer, ModelRequest, ToolSpec
from connectors.models.openai import OpenAIModel, OpenAISettings
from connectors.models.openai_errors import Provider

if TYPE_CHECKING:
    from tests.fakes.openai_server import FakeProvider

KEY = "sk-very-secret-0123456789"
NOW = 1_700_000_000.0
CLOCK = ToolSpec("clock", "Tell the time.", b'{"type":"object","properties":{}}')
PROVIDER = Provider("provider (m)", KEY)


def asking(*lines: Line, tools: tuple[ToolSpec, ...] = ()) -> ModelRequest:
    return ModelRequest(
        model="gpt-x",
        agent="anna",
        correlation_id="c",
        system="You are Anna.",
        lines=lines or (Line("user", "hello"),),
        tools=tools,
    )


async def ask(
    provider: FakeProvider, request: ModelRequest | None = None, **settings: str
) -> ModelAnswer:
    """Ask a fake provider once."""
    account = {"base_url": "http://provider/v1", "api_key": KEY, **settings}
    model = OpenAIModel(
        msgspec.convert(account, OpenAISettings),
        wall_clock=lambda: NOW,
        transport=provider.transport,
    )
    pieces: list[str] = []
    answer = await model.answer(request or asking(), pieces.append)
    assert "".join(pieces) == answer.text
    await model.aclose()
    return answer
