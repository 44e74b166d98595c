"""A transcript as the body of a request to Google's generateContent.

Pure, but for what is remembered of calls. Calls and results are matched by name and
order; as many results as calls must stand together in the turn that follows. From
Gemini 3 on, a call of the current turn without its signed thought is refused; one that
is not remembered gets the word that the documentation gives for such.
"""

from __future__ import annotations

import base64
import re

import msgspec

from actors.messages.inbound import (
    Image,
    ModelRequest,
    ToolCall,
    ToolSpec,
    TranscriptLine,
)
from connectors.models.call_memory import CallMemory
from connectors.models.google.schema import google_schema
from connectors.models.names import ToolNames
from connectors.models.openai.request import object_arguments
from connectors.models.turns import Turn, turns

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
