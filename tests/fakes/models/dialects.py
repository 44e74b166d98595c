"""What providers of every format say, as their documentation shows it.

Each dialect writes the same `Saying` in its format, streamed or in one piece, and reads
back of a request what the fakes must know. `MANNERS` is all of them; tests run over it
and so cover each format in the same way.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

import httpx
import msgspec

from connectors.config import models as configs
from connectors.models import anthropic, google, ollama
from connectors.models.http.client import HttpModel
from connectors.models.openai import model as openai
from runtime.secret import Secret
from tests.fakes.models.openai_server import END, call_delta, delta, event
from tests.fakes.models.sayings import (
    JSON,
    KEY,
    NOW,
    Dialect,
    Errors,
    Saying,
    Sent,
    decoded,
    json,
    pieces,
)
from tests.fakes.models.server import EVENT_STREAM


class OpenAIDialect:
    """OpenAI's Chat Completions."""

    name = "openai"
    media_type = EVENT_STREAM
    path = "/chat/completions"
    ENDINGS: ClassVar[Mapping[str, str]] = {
        "length": "length",
        "filtered": "content_filter",
    }
    ERRORS: ClassVar[Errors] = {
        "quota": {"code": "insufficient_quota"},
        "context": {"code": "context_length_exceeded"},
        "content": {"code": "content_policy_violation"},
    }

    def reason(self, said: Saying) -> str:
        return self.ENDINGS.get(said.ending, "tool_calls" if said.calls else "stop")

    def events(self, said: Saying) -> list[bytes]:
        made = [delta(role="assistant", content="")]
        made += [delta(reasoning_content=each) for each in pieces(said.thoughts)]
        made += [delta(content=each) for each in pieces(said.text)]
        for number, (name, arguments) in enumerate(said.calls):
            made.append(call_delta(number, f"call_{number}", name, ""))
            made += [call_delta(number, "", "", each) for each in pieces(arguments, 9)]
        return [*made, delta(self.reason(said)), event(choices=[], usage=COUNTS), END]

    def body(self, said: Saying) -> bytes:
        calls = [
            {"id": f"call_{n}", "function": {"name": name, "arguments": arguments}}
            for n, (name, arguments) in enumerate(said.calls)
        ]
        message: dict[str, object] = {"role": "assistant", "content": said.text or None}
        message |= {"reasoning_content": said.thoughts, "tool_calls": calls or None}
        choice = {"index": 0, "message": message, "finish_reason": self.reason(said)}
        return json(id="x", object="chat.completion", choices=[choice], usage=COUNTS)

    def read(self, body: bytes) -> Sent:
        sent = msgspec.json.decode(body)
        return Sent(sent["messages"][-1]["content"], bool(sent.get("tools")))

    def error(self, message: str, kind: str) -> bytes:
        return json(
            error={"message": message, "type": "x", **self.ERRORS.get(kind, {})}
        )

    def make(self, config: configs.HttpModelConfig, *rest: object) -> HttpModel:
        return openai.make_model(config, *rest)  # type: ignore[arg-type]


COUNTS: dict[str, object] = {
    "prompt_tokens": 7,
    "completion_tokens": 5,
    "prompt_tokens_details": {"cached_tokens": 3},
}


BARE: dict[str, object] = {"content": (), "arguments": "", "summary": ()}


class OpenAIResponsesDialect(OpenAIDialect):
    """OpenAI's Responses API; its errors are those of Chat Completions."""

    name = "openai_responses"
    path = "/responses"
    ENDINGS: ClassVar[Mapping[str, str]] = {
        "length": "max_output_tokens",
        "filtered": "content_filter",
    }
    USAGE: ClassVar[Mapping[str, object]] = {
        "input_tokens": 7,
        "input_tokens_details": {"cached_tokens": 3},
        "output_tokens": 5,
        "output_tokens_details": {"reasoning_tokens": 2},
        "total_tokens": 12,
    }

    def event(self, name: str, **fields: object) -> bytes:
        said = json(type=name, **fields)
        return b"event: " + name.encode() + b"\ndata: " + said + b"\n\n"

    def response(self, said: Saying, *output: dict[str, object]) -> dict[str, object]:
        reason = self.ENDINGS.get(said.ending)
        return {
            "id": "x",
            "object": "response",
            "status": "incomplete" if reason else "completed",
            "error": None,
            "incomplete_details": {"reason": reason} if reason else None,
            "output": output,
            "usage": self.USAGE,
        }

    def items(self, said: Saying) -> list[dict[str, object]]:
        made: list[dict[str, object]] = []
        if said.thoughts:
            thought = {"type": "summary_text", "text": said.thoughts}
            kept = {"summary": [thought], "encrypted_content": "c2VhbGVk"}
            made.append({"type": "reasoning", "id": "rs_1", **kept})
        if said.text:
            part = {"type": "output_text", "text": said.text, "annotations": ()}
            words = {"role": "assistant", "status": "completed", "content": [part]}
            made.append({"type": "message", "id": "msg_1", **words})
        for number, (name, arguments) in enumerate(said.calls):
            call = {"call_id": f"call_{number}", "name": name, "arguments": arguments}
            made.append({"type": "function_call", "id": f"fc_{number}", **call})
        return made

    def pieces(
        self, said: Saying, item: dict[str, object], **at: object
    ) -> list[bytes]:
        """Give the events of what grows in an item."""
        if item["type"] == "message":
            name, parts = "output_text", pieces(said.text)
        elif item["type"] == "reasoning":
            name, parts = "reasoning_summary_text", pieces(said.thoughts)
        else:
            name = "function_call_arguments"
            parts = pieces(str(item["arguments"]), 9)
        where = {"item_id": item["id"], "content_index": 0, **at}
        return [self.event(f"response.{name}.delta", delta=x, **where) for x in parts]

    def events(self, said: Saying) -> list[bytes]:
        begun: dict[str, object]
        begun = {"id": "x", "status": "in_progress", "output": [], "usage": None}
        made = [
            self.event("response.created", response=begun),
            self.event("response.in_progress", response=begun),
        ]
        for index, item in enumerate(self.items(said)):
            begins = {name: BARE.get(name, item[name]) for name in item}
            at: dict[str, object] = {"output_index": index}
            made.append(self.event("response.output_item.added", item=begins, **at))
            made += self.pieces(said, item, **at)
            # Without its words: `_slowly` tells what an answer says by its events.
            done = begins if item["type"] == "message" else item
            made.append(self.event("response.output_item.done", item=done, **at))
        response = self.response(said)
        return [*made, self.event(f"response.{response['status']}", response=response)]

    def body(self, said: Saying) -> bytes:
        return msgspec.json.encode(self.response(said, *self.items(said)))

    def read(self, body: bytes) -> Sent:
        sent = msgspec.json.decode(body)
        last = sent["input"][-1]
        return Sent(last.get("content", ""), bool(sent.get("tools")))


class AnthropicDialect:
    """Anthropic's Messages."""

    name = "anthropic"
    media_type = EVENT_STREAM
    path = "/messages"
    ENDINGS: ClassVar[Mapping[str, str]] = {
        "length": "max_tokens",
        "filtered": "refusal",
    }
    ERRORS: ClassVar[Errors] = {
        "auth": {"type": "authentication_error"},
        "quota": {"type": "billing_error"},
        "rate": {"type": "rate_limit_error"},
        "overload": {"type": "overloaded_error"},
    }

    def reason(self, said: Saying) -> str:
        return self.ENDINGS.get(said.ending, "tool_use" if said.calls else "end_turn")

    def event(self, name: str, **fields: object) -> bytes:
        return (
            b"event: "
            + name.encode()
            + b"\ndata: "
            + json(type=name, **fields)
            + b"\n\n"
        )

    def blocks(self, said: Saying) -> list[tuple[dict[str, object], str, list[str]]]:
        """Give each block: its beginning, its field that grows, and the pieces."""
        made: list[tuple[dict[str, object], str, list[str]]] = []
        if said.thoughts:
            begin: dict[str, object] = {
                "type": "thinking",
                "thinking": "",
                "signature": "",
            }
            made.append((begin, "thinking", pieces(said.thoughts)))
        if said.text:
            made.append(({"type": "text", "text": ""}, "text", pieces(said.text)))
        for number, (name, arguments) in enumerate(said.calls):
            call: dict[str, object] = {"type": "tool_use", "id": f"toolu_{number}"}
            call |= {"name": name, "input": {}}
            made.append((call, "partial_json", ["", *pieces(arguments, 9)]))
        return made

    def events(self, said: Saying) -> list[bytes]:
        usage = {"input_tokens": 4, "cache_read_input_tokens": 3, "output_tokens": 1}
        message: dict[str, object] = {"id": "x", "type": "message", "content": []}
        made = [
            self.event("message_start", message=message | {"usage": usage}),
            self.event("ping"),
        ]
        kinds = {"partial_json": "input_json_delta"}
        for index, (begin, field, parts) in enumerate(self.blocks(said)):
            made.append(
                self.event("content_block_start", index=index, content_block=begin)
            )
            for part in parts:
                grown = {"type": kinds.get(field, f"{field}_delta"), field: part}
                made.append(self.event("content_block_delta", index=index, delta=grown))
            made.append(self.event("content_block_stop", index=index))
        end = {"stop_reason": self.reason(said), "stop_sequence": None}
        made.append(self.event("message_delta", delta=end, usage={"output_tokens": 5}))
        return [*made, self.event("message_stop")]

    def body(self, said: Saying) -> bytes:
        content: list[dict[str, object]] = []
        for begin, field, parts in self.blocks(said):
            whole = "".join(parts)
            if field == "partial_json":
                content.append(begin | {"input": decoded(whole)})
            else:
                content.append(begin | {field: whole})
        usage = {"input_tokens": 4, "cache_read_input_tokens": 3, "output_tokens": 5}
        fields = {"role": "assistant", "stop_reason": self.reason(said), "usage": usage}
        return json(id="x", type="message", content=content, **fields)

    def read(self, body: bytes) -> Sent:
        sent = msgspec.json.decode(body)
        assert sent["max_tokens"] > 0
        words = sent["messages"][-1]["content"][-1].get("text", "")
        return Sent(words, bool(sent.get("tools")))

    def error(self, message: str, kind: str) -> bytes:
        said = {"type": "invalid_request_error"} | self.ERRORS.get(kind, {})
        return json(type="error", error=said | {"message": message}, request_id="req_1")

    def make(self, config: configs.HttpModelConfig, *rest: object) -> HttpModel:
        return anthropic.make_model(config, *rest)  # type: ignore[arg-type]


class GoogleDialect:
    """Google's generateContent."""

    name = "google"
    media_type = EVENT_STREAM
    path = "/models/m:streamGenerateContent?alt=sse"
    ENDINGS: ClassVar[Mapping[str, str]] = {
        "length": "MAX_TOKENS",
        "filtered": "SAFETY",
    }
    ERRORS: ClassVar[Errors] = {
        "auth": {"status": "UNAUTHENTICATED"},
        "rate": {"status": "RESOURCE_EXHAUSTED"},
        "overload": {"status": "UNAVAILABLE"},
        "quota": {
            "status": "RESOURCE_EXHAUSTED",
            "details": [
                {
                    "@type": "type.googleapis.com/google.rpc.QuotaFailure",
                    "violations": [
                        {"quotaId": "GenerateRequestsPerDayPerProjectPerModel"}
                    ],
                }
            ],
        },
    }
    USAGE: ClassVar[Mapping[str, int]] = {
        "promptTokenCount": 7,
        "cachedContentTokenCount": 3,
        "candidatesTokenCount": 4,
        "thoughtsTokenCount": 1,
    }

    def parts(self, said: Saying, size: int) -> list[dict[str, object]]:
        thoughts = pieces(said.thoughts, size)
        made: list[dict[str, object]]
        made = [{"text": each, "thought": True} for each in thoughts]
        words: list[dict[str, object]]
        words = [{"text": each} for each in pieces(said.text, size)]
        made += words
        for name, arguments in said.calls:
            call = {"name": name, "args": decoded(arguments)}
            made.append({"functionCall": call, "thoughtSignature": "c2lnbmVk"})
        return made

    def chunk(
        self, parts: list[dict[str, object]], **fields: object
    ) -> dict[str, object]:
        content = {"parts": parts, "role": "model"}
        candidate: dict[str, object] = {"content": content, "index": 0, **fields}
        return {"candidates": [candidate], "responseId": "x", "modelVersion": "m"}

    def last(self, said: Saying, parts: list[dict[str, object]]) -> dict[str, object]:
        reason = self.ENDINGS.get(said.ending, "STOP")
        return self.chunk(parts, finishReason=reason) | {"usageMetadata": self.USAGE}

    def events(self, said: Saying) -> list[bytes]:
        chunks = [self.chunk([part]) for part in self.parts(said, 3)]
        chunks.append(self.last(said, [{"text": ""}]))
        # Google ends its lines with CR LF.
        return [b"data: " + msgspec.json.encode(each) + b"\r\n\r\n" for each in chunks]

    def body(self, said: Saying) -> bytes:
        return msgspec.json.encode(self.last(said, self.parts(said, 10**6)))

    def read(self, body: bytes) -> Sent:
        sent = msgspec.json.decode(body)
        words = sent["contents"][-1]["parts"][-1].get("text", "")
        return Sent(words, bool(sent.get("tools")))

    def error(self, message: str, kind: str) -> bytes:
        said = {"status": "INVALID_ARGUMENT"} | self.ERRORS.get(kind, {})
        return json(error={"message": message, **said})

    def make(self, config: configs.HttpModelConfig, *rest: object) -> HttpModel:
        return google.make_model(config, *rest)  # type: ignore[arg-type]


class OllamaDialect:
    """Ollama's chat."""

    name = "ollama"
    media_type = "application/x-ndjson"
    path = "/api/chat"

    def line(self, *, done: bool = False, **fields: object) -> bytes:
        said = {"role": "assistant", "content": ""} | fields
        return json(
            model="m", created_at="2026-01-01T00:00:00Z", message=said, done=done
        )

    def last(self, said: Saying, **fields: object) -> bytes:
        reason = "length" if said.ending == "length" else "stop"
        counts = {"done_reason": reason, "prompt_eval_count": 7, "eval_count": 5}
        return msgspec.json.encode(
            msgspec.json.decode(self.line(done=True, **fields)) | counts
        )

    def calls(self, said: Saying) -> list[dict[str, object]]:
        return [
            {"function": {"name": name, "arguments": decoded(arguments)}}
            for name, arguments in said.calls
        ]

    def events(self, said: Saying) -> list[bytes]:
        made = [self.line(thinking=each) for each in pieces(said.thoughts)]
        made += [self.line(content=each) for each in pieces(said.text)]
        made += [self.line(tool_calls=[call]) for call in self.calls(said)]
        return [line + b"\n" for line in (*made, self.last(said))]

    def body(self, said: Saying) -> bytes:
        fields: dict[str, object] = {"content": said.text, "thinking": said.thoughts}
        if said.calls:
            fields["tool_calls"] = self.calls(said)
        return self.last(said, **fields)

    def read(self, body: bytes) -> Sent:
        sent = msgspec.json.decode(body)
        return Sent(sent["messages"][-1]["content"], bool(sent.get("tools")))

    def error(self, message: str, kind: str) -> bytes:
        del kind
        return json(error=message)

    def make(self, config: configs.HttpModelConfig, *rest: object) -> HttpModel:
        return ollama.make_model(config, *rest)  # type: ignore[arg-type]


DIALECTS: tuple[Dialect, ...] = (
    OpenAIDialect(),
    OpenAIResponsesDialect(),
    AnthropicDialect(),
    GoogleDialect(),
    OllamaDialect(),
)
CONFIGS: dict[str, type[configs.HttpModelConfig]] = {
    "openai": configs.OpenAIModelConfig,
    "openai_responses": configs.OpenAIResponsesModelConfig,
    "anthropic": configs.AnthropicModelConfig,
    "google": configs.GoogleModelConfig,
    "ollama": configs.OllamaModelConfig,
}


def make(
    dialect: Dialect,
    *,
    stream: bool,
    transport: httpx.AsyncBaseTransport | None = None,
    base_url: str = "http://provider",
    **settings: object,
) -> HttpModel:
    """Make a model that speaks a dialect."""
    account = {"model": "m", "base_url": base_url, "stream": stream, **settings}
    plain = msgspec.convert(account, CONFIGS[dialect.name])
    config = msgspec.structs.replace(plain, api_key=Secret(KEY))
    return dialect.make(config, lambda: NOW, transport)


class Manner(msgspec.Struct, frozen=True):
    """A format, streamed or in one piece."""

    dialect: Dialect
    stream: bool

    def __str__(self) -> str:
        return f"{self.dialect.name}-{'stream' if self.stream else 'plain'}"

    @property
    def media_type(self) -> str:
        return self.dialect.media_type if self.stream else JSON

    def pieces(self, said: Saying) -> list[bytes]:
        """Write an answer: the events of a stream, or the one piece in two halves."""
        if self.stream:
            return self.dialect.events(said)
        body = self.dialect.body(said)
        return [body[: len(body) // 2], body[len(body) // 2 :]]

    def written(self, said: Saying) -> bytes:
        return b"".join(self.pieces(said))

    def make(
        self,
        transport: httpx.AsyncBaseTransport | None = None,
        base_url: str = "http://provider",
        **settings: object,
    ) -> HttpModel:
        return make(
            self.dialect,
            stream=self.stream,
            transport=transport,
            base_url=base_url,
            **settings,
        )


MANNERS = tuple(
    Manner(dialect, stream) for dialect in DIALECTS for stream in (True, False)
)
