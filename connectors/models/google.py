"""Google's generateContent: the Gemini API.

Made for `kind = "google"`: errors, what is sent (with the schemas of tools, in the part
of JSON Schema that Google takes), what comes back, and the model; the talking is
`connectors/models/http/client.py`.

Calls and results are matched by name and order; as many results as calls must stand
together in the turn that follows. From Gemini 3 on, a call of the current turn without
its signed thought is refused; one that is not remembered gets the word that the
documentation gives for such. A stream has no end marker, and some models say a finish
reason with every event; so it counts as whole only with a finish reason and after a
clean end of the body. Parts that are thoughts are skipped: they are not for people.

Source: google.rpc.Status with its details `QuotaFailure`, `RetryInfo` and `ErrorInfo`,
and the Gemini API's page on troubleshooting.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Callable
from functools import lru_cache
from typing import TypeGuard
from urllib.parse import quote

import httpx
import msgspec

from actors.errors import ModelFault
from actors.messages.inbound import (
    Image,
    ModelAnswer,
    ModelRequest,
    ToolCall,
    ToolSpec,
    TranscriptLine,
    Usage,
)
from connectors.config.models import GoogleModelConfig
from connectors.models.format import (
    CallMemory,
    Ending,
    PartialCall,
    Question,
    StreamedAnswer,
    ToolNames,
    Turn,
    believable,
    turns,
)
from connectors.models.http.client import HttpModel, SseFraming
from connectors.models.openai.request import object_arguments
from connectors.models.provider_errors import ErrorContext, Said, read_duration

STATUSES: dict[str, ModelFault] = {
    "UNAUTHENTICATED": "auth",
    "PERMISSION_DENIED": "auth",
    "RESOURCE_EXHAUSTED": "rate",
    "UNAVAILABLE": "overload",
    "INTERNAL": "overload",
    "ABORTED": "overload",
    "DEADLINE_EXCEEDED": "timeout",
}
BAD_KEYS = frozenset({"API_KEY_INVALID", "API_KEY_EXPIRED", "API_KEY_SERVICE_BLOCKED"})

# A day's share is used up, or there never was one: waiting a minute is no help. Both
# come under the same status and sentence as too many calls in a minute.
BY_DAY = re.compile(r"PerDay|Daily", re.IGNORECASE)
USED_UP = re.compile(r"limit: 0\b|prepa(y|id)|depleted|spend(ing)? cap", re.IGNORECASE)


class Violation(msgspec.Struct, frozen=True, rename="camel"):
    """A quota that was passed."""

    quota_id: str = ""
    quota_value: str | int = ""


class ErrorDetail(msgspec.Struct, frozen=True, rename="camel"):
    """One of the details; which fields it has depends on its type."""

    reason: str = ""
    retry_delay: str = ""
    violations: tuple[Violation, ...] = ()


class ErrorBody(msgspec.Struct, frozen=True):
    """The object under `error`."""

    code: int | None = None
    message: str | None = None
    status: str = ""
    details: tuple[msgspec.Raw, ...] = ()


class ErrorEnvelope(msgspec.Struct, frozen=True):
    """An error response."""

    error: ErrorBody | None = None


Envelopes = ErrorEnvelope | list[ErrorEnvelope]
"""A list where a stream without `alt=sse` would have been."""


def read_error(body: bytes) -> Said:
    """Find the error in a response's body."""
    try:
        decoded: Envelopes = msgspec.json.decode(body, type=Envelopes)
    except (ValueError, RecursionError):
        return Said()
    envelopes = decoded if isinstance(decoded, list) else [decoded]
    found = [envelope.error for envelope in envelopes if envelope.error is not None]
    return said_by(found[0]) if found else Said()


def said_by(error: ErrorBody) -> Said:
    """Read the object under `error`."""
    details = [detail for raw in error.details if (detail := read_detail(raw))]
    waits = [wait for each in details if (wait := read_duration(each.retry_delay))]
    kind = STATUSES.get(error.status)
    if kind == "rate" and is_used_up(error, details):
        kind = "quota"
    if any(detail.reason in BAD_KEYS for detail in details):
        kind = "auth"
    return Said(
        error.message,
        kind,
        retry_after=waits[0] if waits else None,
        status=error.code if error.code is not None and error.code >= 400 else 0,
    )


def read_detail(raw: msgspec.Raw) -> ErrorDetail | None:
    """Read a detail; None for one that is of no use here."""
    try:
        return msgspec.json.decode(raw, type=ErrorDetail)
    except (ValueError, RecursionError):
        return None


def is_used_up(error: ErrorBody, details: list[ErrorDetail]) -> bool:
    """Tell whether the account has nothing left, rather than too many calls now."""
    violations = [each for detail in details for each in detail.violations]
    return (
        any(BY_DAY.search(each.quota_id) for each in violations)
        or any(str(each.quota_value) == "0" for each in violations)
        or USED_UP.search(error.message or "") is not None
    )


JsonObject = dict[str, object]

MAX_DEPTH = 12
"""Levels; deeper ones, as in a schema that refers to itself, take any object."""

PLAIN = (
    "title",
    "description",
    "default",
    "minItems",
    "maxItems",
    "minLength",
    "maxLength",
    "minimum",
    "maximum",
    "pattern",
)
FORMATS = frozenset({"date-time", "int32", "int64", "float", "double"})


@lru_cache(maxsize=1024)
def google_schema(parameters: bytes) -> msgspec.Raw | None:
    """Translate the schema of a tool's arguments.

    Returns:
        The schema, or None for a tool without arguments: an object without
        properties is refused.
    """
    schema: object = msgspec.json.decode(parameters)
    if not is_object(schema):
        return None
    translated = Translation(schema).convert(schema, 0)
    if not translated.get("properties"):
        return None
    return msgspec.Raw(msgspec.json.encode(translated))


class Translation:
    """Translates one schema.

    Args:
        root: the whole schema, which its references start at.
    """

    def __init__(self, root: JsonObject) -> None:
        self._root = root

    def convert(self, schema: object, depth: int) -> JsonObject:
        """Translate a schema or a part of one."""
        if depth > MAX_DEPTH:
            return {"type": "object"}
        if not is_object(schema):
            return {"type": "string"}
        schema = self._flattened(schema)
        made: JsonObject = {name: schema[name] for name in PLAIN if name in schema}
        if schema.get("format") in FORMATS:
            made["format"] = schema["format"]
        choices = schema.get("anyOf") or schema.get("oneOf")
        kind, is_nullable = self._type(schema, choices)
        if is_nullable:
            made["nullable"] = True
        if is_list(choices):
            return made | self._choice(choices, depth)
        made["type"] = kind
        made |= self._values(schema, kind)
        if kind == "object":
            made |= self._properties(schema, depth)
        if kind == "array":
            made["items"] = self.convert(schema.get("items"), depth + 1)
        return made

    def _flattened(self, schema: JsonObject) -> JsonObject:
        """Follow the reference, and take together what all must hold."""
        for _ in range(MAX_DEPTH):
            reference = schema.get("$ref")
            if not isinstance(reference, str):
                break
            rest = {name: each for name, each in schema.items() if name != "$ref"}
            schema = self._find(reference) | rest
        parts = schema.get("allOf")
        if is_list(parts):
            merged: JsonObject = {}
            for part in parts:
                merged |= self._flattened(part) if is_object(part) else {}
            schema = merged | {k: v for k, v in schema.items() if k != "allOf"}
        return schema

    def _find(self, reference: str) -> JsonObject:
        found: object = self._root
        for step in reference.removeprefix("#").strip("/").split("/"):
            key = step.replace("~1", "/").replace("~0", "~")
            found = found.get(key) if is_object(found) else None
        return found if is_object(found) and found is not self._root else {}

    @staticmethod
    def _type(schema: JsonObject, choices: object) -> tuple[str, bool]:
        kind = schema.get("type")
        kinds = kind if is_list(kind) else [kind]
        named = [each for each in kinds if isinstance(each, str) and each != "null"]
        is_nullable = "null" in kinds or (
            is_list(choices) and {"type": "null"} in choices
        )
        implied = "object" if "properties" in schema else "string"
        return (named[0] if named else implied), is_nullable

    def _choice(self, choices: list[object], depth: int) -> JsonObject:
        real = [
            self.convert(each, depth + 1)
            for each in choices
            if each != {"type": "null"}
        ]
        return real[0] if len(real) == 1 else {"anyOf": real}

    @staticmethod
    def _values(schema: JsonObject, kind: str) -> JsonObject:
        values = [schema["const"]] if "const" in schema else schema.get("enum")
        if not is_list(values):
            return {}
        texts = [each for each in values if isinstance(each, str) and each]
        if kind == "string" and texts:
            return {"enum": texts}
        said = ", ".join(msgspec.json.encode(each).decode() for each in values)
        described = schema.get("description", "")
        return {"description": f"{described} One of: {said}".strip()}

    def _properties(self, schema: JsonObject, depth: int) -> JsonObject:
        given = schema.get("properties")
        if not is_object(given) or not given:
            return {}
        made: JsonObject = {
            "properties": {
                name: self.convert(each, depth + 1) for name, each in given.items()
            }
        }
        required = schema.get("required")
        if is_list(required):
            made["required"] = [name for name in required if name in given]
        return made


def is_object(value: object) -> TypeGuard[JsonObject]:
    """Tell whether a decoded value is an object."""
    return isinstance(value, dict)


def is_list(value: object) -> TypeGuard[list[object]]:
    """Tell whether a decoded value is a list."""
    return isinstance(value, list)


NOTHING = "[nothing]"
"""Stands for a turn without a word."""

# Source: Gemini API, "Thought signatures", on calls that were not made by the model.
UNSIGNED = "skip_thought_signature_validator"
GENERATION = re.compile(r"gemini-(\d+)")


class CallSignature(msgspec.Struct, frozen=True):
    """What a call came with."""

    id: str = ""
    """The provider's own id of the call; empty if it gave none."""

    signature: str = ""


Signatures = CallMemory[CallSignature]


class Blob(msgspec.Struct, frozen=True, rename="camel"):
    """A picture, as sent."""

    mime_type: str
    data: str


class SentCall(msgspec.Struct, frozen=True, omit_defaults=True):
    """A tool call of an earlier answer, as sent."""

    name: str
    args: msgspec.Raw
    id: str = ""


class ToolOutput(msgspec.Struct, frozen=True):
    """What a tool gave back: an object, by the API."""

    output: str


class SentResult(msgspec.Struct, frozen=True, omit_defaults=True):
    """What a tool gave back, as sent."""

    name: str
    response: ToolOutput
    id: str = ""


class Part(msgspec.Struct, frozen=True, omit_defaults=True, rename="camel"):
    """One piece of a turn, as sent: one of its fields."""

    text: str = ""
    inline_data: Blob | None = None
    function_call: SentCall | None = None
    function_response: SentResult | None = None
    thought_signature: str = ""


class Content(msgspec.Struct, frozen=True, omit_defaults=True):
    """One turn, as sent."""

    parts: tuple[Part, ...]
    role: str = ""


class Declaration(msgspec.Struct, frozen=True, omit_defaults=True):
    """A tool on offer, as sent."""

    name: str
    description: str
    parameters: msgspec.Raw | None = None


class Tools(msgspec.Struct, frozen=True, rename="camel"):
    """The tools on offer, as sent."""

    function_declarations: tuple[Declaration, ...]


class Generation(
    msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel"
):
    """How the answer is made, as sent."""

    temperature: float | None = None
    max_output_tokens: int | None = None


class Body(
    msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel"
):
    """The whole request, as sent. Thoughts are never asked for."""

    contents: tuple[Content, ...]
    system_instruction: Content | None = None
    tools: tuple[Tools, ...] = ()
    generation_config: Generation = Generation()


ENCODER = msgspec.json.Encoder()


def encode_request(
    request: ModelRequest, names: ToolNames, signatures: Signatures
) -> bytes:
    """Write a request as JSON."""
    writer = TranscriptWriter(request, names, signatures)
    system = Content((Part(text=request.system),)) if request.system else None
    declared = tuple(declaration(tool, names) for tool in request.tools)
    return ENCODER.encode(
        Body(
            contents=tuple(map(writer.turn, turns(request.lines))),
            system_instruction=system,
            tools=(Tools(declared),) if declared else (),
            generation_config=Generation(
                temperature=request.temperature, max_output_tokens=request.max_tokens
            ),
        )
    )


def declaration(tool: ToolSpec, names: ToolNames) -> Declaration:
    """Translate a tool on offer."""
    parameters = google_schema(tool.parameters)
    return Declaration(names.sent(tool.name), tool.description, parameters)


class TranscriptWriter:
    """Translates the turns of one transcript, in order."""

    def __init__(
        self, request: ModelRequest, names: ToolNames, signatures: Signatures
    ) -> None:
        self._request = request
        self._names = names
        self._signatures = signatures
        self._called: dict[str, SentCall] = {}

    def turn(self, turn: Turn) -> Content:
        """Translate one turn."""
        parts = [part for line in turn.lines for part in self._line(line)]
        # Results stand together, before whatever else the turn says.
        parts.sort(key=lambda part: part.function_response is None)
        role = "user" if turn.is_user else "model"
        return Content(tuple(parts) or (Part(text=NOTHING),), role)

    def _line(self, line: TranscriptLine) -> list[Part]:
        images = [Part(inline_data=blob(image)) for image in line.images]
        if line.role == "tool":
            return [self._result(line), *images]
        words = [Part(text=line.text)] if line.text.strip() else []
        return [*words, *images, *self._calls(line.tool_calls)]

    def _calls(self, calls: tuple[ToolCall, ...]) -> list[Part]:
        parts: list[Part] = []
        for call in calls:
            found = self._signatures.find(self._request, call.id)
            remembered = found or CallSignature()
            arguments = msgspec.Raw(object_arguments(call.arguments))
            sent = SentCall(self._names.sent(call.name), arguments, remembered.id)
            self._called[call.id] = sent
            parts.append(
                Part(function_call=sent, thought_signature=remembered.signature)
            )
        # The model signs the first of several calls, and only that.
        is_signed = any(part.thought_signature for part in parts)
        if parts and not is_signed and wants_signature(self._request.model):
            parts[0] = msgspec.structs.replace(parts[0], thought_signature=UNSIGNED)
        return parts

    def _result(self, line: TranscriptLine) -> Part:
        call = self._called.get(line.tool_call_id)
        name, call_id = (call.name, call.id) if call else (self._names.sent(""), "")
        return Part(function_response=SentResult(name, ToolOutput(line.text), call_id))


def blob(image: Image) -> Blob:
    """Translate a picture."""
    return Blob(image.media_type, base64.b64encode(image.content).decode("ascii"))


def wants_signature(model: str) -> bool:
    """Tell whether a model refuses calls without a signature."""
    generation = GENERATION.search(model)
    return generation is not None and int(generation[1]) >= 3


# Source: the API's reference of `FinishReason`.
FILTERED = frozenset(
    {
        "SAFETY",
        "RECITATION",
        "LANGUAGE",
        "BLOCKLIST",
        "PROHIBITED_CONTENT",
        "SPII",
        "IMAGE_SAFETY",
        "IMAGE_PROHIBITED_CONTENT",
        "IMAGE_RECITATION",
    }
)


ENDED = frozenset({"STOP", "MAX_TOKENS", "FUNCTION_CALL"})
"""The last is not the API's own: servers that stand in for it end calls so."""


class FunctionCall(msgspec.Struct, frozen=True):
    """A tool call, always whole."""

    name: str = ""
    args: msgspec.Raw = msgspec.Raw(b"{}")
    id: str = ""


class ReceivedPart(msgspec.Struct, frozen=True, rename="camel"):
    """One piece of the answer."""

    text: str | None = None
    thought: bool = False
    function_call: FunctionCall | None = None
    thought_signature: str = ""


class ReceivedContent(msgspec.Struct, frozen=True):
    """What a candidate says."""

    parts: tuple[ReceivedPart, ...] | None = None


class Candidate(msgspec.Struct, frozen=True, rename="camel"):
    """One of several answers; only the first was asked for."""

    index: int = 0
    content: ReceivedContent | None = None
    finish_reason: str | None = None
    finish_message: str | None = None


class Feedback(msgspec.Struct, frozen=True, rename="camel"):
    """What the provider thinks of the request."""

    block_reason: str | None = None


class GoogleCounts(msgspec.Struct, frozen=True, rename="camel"):
    """The provider's token counts; later ones replace earlier ones."""

    prompt_token_count: int | float | None = None
    tool_use_prompt_token_count: int | float | None = None
    cached_content_token_count: int | float | None = None
    candidates_token_count: int | float | None = None
    thoughts_token_count: int | float | None = None

    def usage(self) -> Usage:
        """Read them; the cache's part is among what was read, thoughts are written."""
        read = (self.prompt_token_count or 0) + (self.tool_use_prompt_token_count or 0)
        written = (self.candidates_token_count or 0) + (self.thoughts_token_count or 0)
        return believable(read, written, self.cached_content_token_count)


class Chunk(msgspec.Struct, frozen=True, rename="camel"):
    """One event's data, or a whole answer."""

    candidates: tuple[Candidate, ...] | None = None
    prompt_feedback: Feedback | None = None
    usage_metadata: GoogleCounts | None = None
    response_id: str | None = None
    error: ErrorBody | None = None


CHUNK = msgspec.json.Decoder(Chunk)


class Assembly(StreamedAnswer):
    """One answer in the making."""

    def __init__(
        self,
        request: ModelRequest,
        names: ToolNames,
        provider: ErrorContext,
        signatures: Signatures,
    ) -> None:
        self._signatures = signatures
        super().__init__(request, names, provider)
        self._came_with: list[tuple[PartialCall, CallSignature]] = []
        self._finish_reason = ""
        self._finish_message = ""
        self._is_ended = False

    @property
    def is_whole(self) -> bool:
        """True once the body has ended, and has said why the model stopped."""
        return self._is_ended and bool(self._finish_reason)

    def take(self, event: bytes) -> str:
        """Add an event; see the port."""
        chunk = self._decode(CHUNK, event)
        if chunk.error is not None:
            raise self._provider.stream_error(said_by(chunk.error))
        feedback = chunk.prompt_feedback
        if feedback is not None and feedback.block_reason:
            why = self._provider.quote(feedback.block_reason)
            raise self._provider.refused(
                f"its content filter refused the request{why}", "content"
            )
        if chunk.usage_metadata is not None:
            self._collected.usage = chunk.usage_metadata.usage()
        if chunk.response_id:
            self._collected.request_id = chunk.response_id
        words = ""
        for candidate in chunk.candidates or ():
            if candidate.index == 0:
                words += self._take_candidate(candidate)
        return words

    def take_whole(self, body: bytes) -> str:
        """Read an answer in one piece: the same shape as an event."""
        return self.take(body)

    def _take_candidate(self, candidate: Candidate) -> str:
        words = ""
        content = candidate.content or ReceivedContent()
        for part in content.parts or ():
            if part.function_call is not None:
                self._take_call(part.function_call, part.thought_signature)
            elif part.text and not part.thought:
                words += part.text
        if words:
            self._collected.say(words)
        self._finish_reason = candidate.finish_reason or self._finish_reason
        self._finish_message = candidate.finish_message or self._finish_message
        return words

    def _take_call(self, said: FunctionCall, signature: str) -> None:
        call = self._collected.call("", said.name)
        arguments = bytes(said.args).decode()
        # Some say nothing for a tool without parameters.
        self._collected.argue(call, "{}" if arguments == "null" else arguments)
        self._came_with.append((call, CallSignature(said.id, signature)))

    def end(self) -> None:
        """Learn that all has come."""
        self._is_ended = True

    def finish(self, request_id: str) -> ModelAnswer:
        """Give the whole answer, after the last event.

        Raises:
            ModelBusyError: the stream was cut off before its end, or broke the
                protocol, or the model made a call that is none.
            ModelRefusedError: the answer was stopped by the provider's filter, or
                a tool call by the token limit.
        """
        if not self.is_whole:
            missing = "its end" if self._finish_reason else "a finish reason"
            text = f"the stream ended without {missing}"
            raise self._provider.busy(text, "protocol")
        reason = self._finish_reason
        if reason in FILTERED:
            text = f"its content filter stopped the answer: {reason}"
            raise self._provider.refused(text, "content")
        if reason not in ENDED:
            # MALFORMED_FUNCTION_CALL and the like: another try often goes well.
            why = self._provider.quote(f"{reason} {self._finish_message}")
            raise self._provider.busy(f"gave up in mid-answer{why}", "protocol")
        self._name_calls()
        ending: Ending = "length" if reason == "MAX_TOKENS" else "end"
        return self._collected.finish(ending, request_id)

    def _name_calls(self) -> None:
        """Make ids that are unique over all conversations, and remember by them."""
        response_id = self._collected.request_id
        if not response_id:
            return
        for number, (call, remembered) in enumerate(self._came_with):
            call.id = f"{response_id[:48]}_{number}"
            if remembered != CallSignature():
                size = len(remembered.id) + len(remembered.signature)
                self._signatures.keep(self._request, call.id, remembered, size)


class GoogleFormat:
    """Google's generateContent; see `format.Format`."""

    takes_names = False
    stream_type = "text/event-stream"
    request_id_header = ""

    def __init__(self, config: GoogleModelConfig) -> None:
        self._verb = "streamGenerateContent?alt=sse"
        if not config.stream:
            self._verb = "generateContent"
        self._signatures = Signatures()

    def headers(self, key: str) -> dict[str, str]:
        """Send the key in a header of its own."""
        return {"x-goog-api-key": key} if key else {}

    def framing(self) -> SseFraming:
        """Cut a stream into server-sent events."""
        return SseFraming()

    def ask(self, request: ModelRequest, provider: ErrorContext) -> Question:
        """Write a request."""
        names = ToolNames(request.tools)
        body = encode_request(request, names, self._signatures)
        assembly = Assembly(request, names, provider, self._signatures)
        path = f"/{resource(request.model)}:{self._verb}"
        return Question(path, body, assembly)

    def read_error(self, body: bytes) -> Said:
        """Find the error in a response's body."""
        return read_error(body)


def resource(model: str) -> str:
    """Name a model as an address does: `models/` unless it says where it is."""
    return quote(model if "/" in model else f"models/{model}", safe="/")


def make_model(
    config: GoogleModelConfig,
    wall_clock: Callable[[], float],
    transport: httpx.AsyncBaseTransport | None = None,
) -> HttpModel:
    """Make the model that an account's settings describe; see `HttpModel`."""
    form = GoogleFormat(config)
    return HttpModel(config, form, wall_clock=wall_clock, transport=transport)
