"""The tool `calculate`: arithmetic for models, which are bad at it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import msgspec
import trio

from actors.messages.inbound import ToolResult, ToolSpec
from connectors.tools.arguments import ArgumentsError, decode_arguments, schema_of
from connectors.tools.arithmetic import (
    ALLOWED,
    MAX_CHARACTERS,
    CalculationError,
    calculate,
)

if TYPE_CHECKING:
    from actors.messages.inbound import ToolCall, ToolContext
    from connectors.tools.registry import ToolParts

Expression = Annotated[
    str,
    msgspec.Meta(
        max_length=MAX_CHARACTERS,
        description=f"as in (3 + 4) * sqrt(16); {ALLOWED}",
    ),
]


class CalculateArguments(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What `calculate` takes."""

    expression: Expression


class CalculateTool:
    """Works out an arithmetic expression."""

    def __init__(self) -> None:
        self._spec = ToolSpec(
            "calculate",
            "Work out an arithmetic expression. Whole numbers are exact.",
            schema_of(CalculateArguments),
            is_repeatable=True,
            effect="read",
            is_own_words=True,
        )

    @property
    def spec(self) -> ToolSpec:
        """What the model is told."""
        return self._spec

    async def run(self, call: ToolCall, context: ToolContext) -> ToolResult:
        """Work it out; an expression without a result is one with `is_error`."""
        del context  # everybody has the same arithmetic
        await trio.lowlevel.checkpoint()
        try:
            arguments = decode_arguments(call.arguments, CalculateArguments)
            expression = arguments.expression.strip()
            return ToolResult(f"{expression} = {calculate(expression)}")
        except (ArgumentsError, CalculationError) as error:
            return ToolResult(str(error), is_error=True)


def make_tool(parts: ToolParts) -> CalculateTool:
    """Make the tool; see `registry.py`."""
    del parts  # arithmetic needs nothing
    return CalculateTool()
