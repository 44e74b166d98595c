"""JSON schema in the dialect that Google's function declarations take.

Pure. The dialect is OpenAPI's: no references, no `additionalProperties`, no `const`, a
type that is one word, choices only among texts. What it cannot say is left out, and
never what kind of value is wanted: the tool checks its arguments itself.
Source: the reference of `Schema` in the Gemini API.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TypeGuard

import msgspec

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
