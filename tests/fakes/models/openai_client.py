"""Asks a fake Chat Completions provider one question."""

from __future__ import annotations

import msgspec

from actors.messages.inbound import ModelAnswer, ModelRequest, ToolSpec, TranscriptLine
from connectors.config.models import OpenAIModelConfig
from connectors.models.openai.model import make_model
from connectors.models.provider_errors import ErrorContext
from runtime.secret import Secret
from tests.fakes.models.server import FakeProvider

KEY = "sk-very-secret-0123456789"
NOW = 1_700_000_000.0
CLOCK = ToolSpec("clock", "Tell the time.", b'{"type":"object","properties":{}}')
PROVIDER = ErrorContext("provider (m)", KEY)


def asking(*lines: TranscriptLine, tools: tuple[ToolSpec, ...] = ()) -> ModelRequest:
    return ModelRequest(
        model="gpt-x",
        agent="anna",
        correlation_id="c",
        system="You are Anna.",
        lines=lines or (TranscriptLine("user", "hello"),),
        tools=tools,
    )


async def ask(
    provider: FakeProvider, request: ModelRequest | None = None, **settings: object
) -> ModelAnswer:
    """Ask a fake provider once."""
    account = {"model": "m", "base_url": "http://provider/v1", **settings}
    key = account.pop("api_key", KEY)
    config = msgspec.structs.replace(
        msgspec.convert(account, OpenAIModelConfig), api_key=Secret(str(key))
    )
    model = make_model(config, lambda: NOW, provider.transport)
    pieces: list[str] = []
    answer = await model.answer(request or asking(), pieces.append)
    assert "".join(pieces) == answer.text
    await model.aclose()
    return answer
