"""Tools' arguments: their schema from a Struct, their decoding, tools that take them.

One Struct says both what a model is told and what is accepted, so the two cannot
differ. A model that got it wrong is told what and how, to try again.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Generic, TypeVar

import msgspec
import trio

from actors.messages.inbound import ToolCall, ToolContext, ToolResult, ToolSpec

Arguments = TypeVar("Arguments", bound=msgspec.Struct)
Json = dict[str, "Json"] | list["Json"] | str | int | float | bool | None

MAX_ARGUMENT_BYTES = 64 * 1024


class ArgumentsError(ValueError):
    """The arguments are not what the tool takes; the text tells the model why."""


def schema_of(arguments: type[msgspec.Struct]) -> bytes:
    """Write a Struct's JSON schema, inlined: an object, without references.

    Several providers take no `$ref`. A Struct that contains itself has no such
    schema and must not be used for arguments.
    """
    schema: dict[str, Json] = msgspec.json.schema(arguments)
    shared = schema.pop("$defs", {})
    inlined = inline(schema, shared if isinstance(shared, dict) else {})
    if isinstance(inlined, dict):
        # The Struct's own name and docstring: the tool's say it better.
        inlined.pop("title", None)
        inlined.pop("description", None)
    return msgspec.json.encode(inlined)


def inline(schema: Json, shared: dict[str, Json]) -> Json:
    """Put what a reference means in its place, everywhere."""
    match schema:
        case {"$ref": str(name)}:
            return inline(shared[name.removeprefix("#/$defs/")], shared)
        case dict():
            return {key: inline(value, shared) for key, value in schema.items()}
        case list():
            return [inline(item, shared) for item in schema]
        case _:
            return schema


def decode_arguments(raw: bytes, arguments: type[Arguments]) -> Arguments:
    """Decode what a model wrote; nothing at all counts as no arguments.

    Raises:
        ArgumentsError: it is no JSON, not this Struct, or too long.
    """
    if len(raw) > MAX_ARGUMENT_BYTES:
        raise ArgumentsError(f"the arguments are above {MAX_ARGUMENT_BYTES} bytes")
    try:
        return msgspec.json.decode(raw.strip() or b"{}", type=arguments)
    except msgspec.ValidationError as error:
        raise ArgumentsError(
            f"the arguments do not fit: {error}; expected {expectation(arguments)}"
        ) from error
    except (ValueError, RecursionError) as error:
        raise ArgumentsError(
            f"the arguments are no JSON; expected {expectation(arguments)}"
        ) from error


def expectation(arguments: type[msgspec.Struct]) -> str:
    """Describe the arguments in one line, for an error."""
    parts = [
        f'"{field.encode_name}"' + ("" if field.required else " (optional)")
        for field in msgspec.structs.fields(arguments)
    ]
    return f"an object with {', '.join(parts)}" if parts else "an empty object"


class ArgumentsTool(ABC, Generic[Arguments]):
    """A tool whose arguments are a Struct; see `actors.ports.Tool`.

    Args:
        spec: its description for models, with `schema_of(arguments)`.
        faults: errors of `answer` that the model is told, as it may do better.
    """

    def __init__(
        self,
        spec: ToolSpec,
        arguments: type[Arguments],
        *faults: type[Exception],
    ) -> None:
        self._spec = spec
        self._arguments = arguments
        self._faults: tuple[type[Exception], ...] = (ArgumentsError, *faults)

    @property
    def spec(self) -> ToolSpec:
        """What the model is told."""
        return self._spec

    async def run(self, call: ToolCall, context: ToolContext) -> ToolResult:
        """Run one call; bad arguments and faults are a result with `is_error`."""
        await trio.lowlevel.checkpoint()
        try:
            arguments = decode_arguments(call.arguments, self._arguments)
            return await self.answer(arguments, context)
        except self._faults as error:
            return ToolResult(str(error), is_error=True)

    @abstractmethod
    async def answer(self, arguments: Arguments, context: ToolContext) -> ToolResult:
        """Do what the arguments say."""
