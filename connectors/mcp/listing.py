"""A server's tools as it lists them, made fit to be shown to a model.

Pure. Everything here comes from a program that may be wrong or hostile: names, words
and schemas are cleaned and bounded, and what cannot be used is left out with a reason.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import cast

import msgspec

from actors.rules.text.cleaning import clean, one_line
from connectors.mcp.messages import ServerTool, ToolListing

Json = dict[str, "Json"] | list["Json"] | str | int | float | bool | None
Table = dict[str, Json]

MOST_TOOLS = 256
LONGEST_NAME = 256
LONGEST_DESCRIPTION = 2_000
LONGEST_WORDS = 1_000
"""Characters of a description inside a schema."""

LARGEST_SCHEMA = 32 * 1024
"""Bytes of a schema as it is sent to a model, with every request."""

DEEPEST = 24
MOST_PARTS = 4_000

WORDS = frozenset({"title", "description", "$comment"})
SHARED = ("#/$defs/", "#/definitions/")
DROPPED = frozenset({"$defs", "definitions", "$schema", "$id", "$comment"})


class SchemaError(ValueError):
    """A schema cannot be shown to a model; the text says why."""


def listing_of(tools: Iterable[object]) -> ToolListing:
    """Take over what can be used of a server's list.

    Args:
        tools: what it listed; each should be a table with `name`, `inputSchema` and
            perhaps `description`.
    """
    fitting: dict[str, ServerTool] = {}
    left_out: list[str] = []
    for each in tools:
        name = name_of(each)
        shown = one_line(name, 80) or "a tool without a name"
        if not name or len(name) > LONGEST_NAME or one_line(name, 300) != name:
            left_out.append(f"{shown}: its name is none")
        elif name in fitting:
            left_out.append(f"{shown}: listed twice")
        elif len(fitting) >= MOST_TOOLS:
            left_out.append(f"{shown}: more than {MOST_TOOLS} tools")
        else:
            try:
                fitting[name] = tool_of(name, cast("Table", each))
            except SchemaError as error:
                left_out.append(f"{shown}: {error}")
    return ToolListing(tuple(fitting.values()), tuple(left_out))


def name_of(tool: object) -> str:
    """Give the name of what should be a tool; empty if it has none."""
    name = cast("Table", tool).get("name") if isinstance(tool, dict) else None
    return name if isinstance(name, str) else ""


def tool_of(name: str, tool: Table) -> ServerTool:
    """Take over one tool.

    Raises:
        SchemaError: its schema is none for a model.
    """
    description = tool.get("description") or tool.get("title") or ""
    words = description if isinstance(description, str) else ""
    words = clean(words, LONGEST_DESCRIPTION) or name
    return ServerTool(name, words, schema_of(tool.get("inputSchema")))


def schema_of(schema: Json) -> bytes:
    """Write a tool's schema as providers take it: an object, without references.

    A reference inside the schema is replaced by what it means; any other, and one that
    leads to itself, by what allows anything: the server checks the arguments anyway.

    Raises:
        SchemaError: it describes no object, or is too large.
    """
    if not isinstance(schema, dict) or schema.get("type", "object") != "object":
        raise SchemaError("its schema describes no object")
    parts = SchemaWalk(schema)
    whole = parts.plain(schema, ())
    if not isinstance(whole, dict):
        raise SchemaError("its schema describes no object")
    whole["type"] = "object"
    if not isinstance(whole.setdefault("properties", {}), dict):
        raise SchemaError("its schema has no table of properties")
    try:
        written = msgspec.json.encode(whole)
    except (ValueError, TypeError, RecursionError) as error:
        raise SchemaError("its schema cannot be written as JSON") from error
    if len(written) > LARGEST_SCHEMA:
        raise SchemaError(f"its schema is above {LARGEST_SCHEMA} bytes")
    return written


class SchemaWalk:
    """One walk over a schema.

    Args:
        root: the whole schema, in which references lead to others of its parts.
    """

    def __init__(self, root: Table) -> None:
        self._root = root
        self._left = MOST_PARTS

    def plain(self, part: Json, within: tuple[str, ...], depth: int = 0) -> Json:
        """Copy a part: references replaced, words cleaned.

        Args:
            part: what is copied.
            within: the references that led here.
            depth: how far below the root.

        Raises:
            SchemaError: it is too large, or nested too deeply.
        """
        self._left -= 1
        if self._left < 0 or depth > DEEPEST:
            raise SchemaError("its schema is too large, or nested too deeply")
        if isinstance(part, list):
            return [self.plain(each, within, depth + 1) for each in part]
        if not isinstance(part, dict):
            return part
        if "$ref" in part:
            return self._meant(part, within, depth)
        return {
            key: self._value(key, each, within, depth)
            for key, each in part.items()
            if not (key in DROPPED and isinstance(each, (dict, str)))
        }

    def _value(
        self, key: str, value: Json, within: tuple[str, ...], depth: int
    ) -> Json:
        if key in WORDS and isinstance(value, str):
            return clean(value, LONGEST_WORDS)
        if key == "properties" and isinstance(value, dict):
            # Its keys are names: one may be called `description`, or `$ref`.
            return {
                name: self.plain(each, within, depth + 2)
                for name, each in value.items()
            }
        return self.plain(value, within, depth + 1)

    def _meant(self, part: Table, within: tuple[str, ...], depth: int) -> Json:
        """Give what a reference means, with what stands beside it."""
        target = part["$ref"]
        beside = {key: each for key, each in part.items() if key != "$ref"}
        found: Json = {}
        inside: tuple[str, ...] = within
        if isinstance(target, str) and target not in within:
            found = self._look_up(target)
            inside = (*within, target)
        meant = found if isinstance(found, dict) else {}
        return self.plain({**meant, **beside}, inside, depth + 1)

    def _look_up(self, target: str) -> Json:
        for start in SHARED:
            shared = self._root.get(start.strip("#/"))
            if target.startswith(start) and isinstance(shared, dict):
                return shared.get(target.removeprefix(start), {})
        return {}


def changed(
    before: Iterable[ServerTool], now: Iterable[ServerTool]
) -> tuple[tuple[ServerTool, ServerTool], ...]:
    """Give each tool that is described otherwise than before, as it was and is."""
    known = {tool.name: tool for tool in before}
    pairs = [(known[tool.name], tool) for tool in now if tool.name in known]
    return tuple((old, new) for old, new in pairs if old != new)
