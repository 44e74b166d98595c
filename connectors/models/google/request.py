"""A transcript as the body of a request to Google's generateContent.

Pure, but for what is remembered of calls. Calls and results are matched by name and
order; as many results as calls must stand together in the turn that follows. From
Gemini 3 on, a call of the current turn without its signed thought is refused; one that
is not remembered gets the word that the documentation gives for such. Schemas of tools
are written in the part of JSON Schema that Google takes.
"""

from __future__ import annotations

import base64
import re
from functools import lru_cache
from typing import TypeGuard

import msgspec

from actors.messages.inbound import (
    Image,
    ModelRequest,
    ToolCall,
    ToolSpec,
    TranscriptLine,
)
from connectors.models.call_memory import CallMemory
from connectors.models.names import ToolNames, Turn, turns
from connectors.models.openai.request import object_arguments

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
