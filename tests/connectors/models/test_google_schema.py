"""Proves that schemas reach Google in its dialect, and keep what it can say."""

from __future__ import annotations

from typing import cast

import msgspec
import pytest
from hypothesis import given, strategies as st

from connectors.models.google import google_schema

ALLOWED = {
    "type",
    "format",
    "title",
    "description",
    "nullable",
    "enum",
    "items",
    "minItems",
    "maxItems",
    "minLength",
    "maxLength",
    "minimum",
    "maximum",
    "pattern",
    "properties",
    "required",
    "anyOf",
    "default",
}


Schema = dict[str, object]


def translate(schema: Schema) -> Schema | None:
    made = google_schema(msgspec.json.encode(schema))
    if made is None:
        return None
    return cast("Schema", msgspec.json.decode(made))


def one(schema: dict[str, object], **rest: object) -> object:
    """Translate a schema as that of the one argument."""
    made = translate({"type": "object", "properties": {"x": schema}, **rest})
    assert made is not None
    return msgspec.convert(made["properties"], Schema)["x"]


@pytest.mark.parametrize(
    ("schema", "expected"),
    [
        ({"type": "string"}, {"type": "string"}),
        (
            {"type": "object", "additionalProperties": False, "$schema": "x"},
            {"type": "object"},
        ),
        ({"type": ["string", "null"]}, {"type": "string", "nullable": True}),
        (
            {"anyOf": [{"type": "integer"}, {"type": "null"}], "default": None},
            {"type": "integer", "nullable": True, "default": None},
        ),
        (
            {"oneOf": [{"type": "integer"}, {"type": "string"}]},
            {"anyOf": [{"type": "integer"}, {"type": "string"}]},
        ),
        ({"const": "a"}, {"type": "string", "enum": ["a"]}),
        ({"enum": ["a", "b"]}, {"type": "string", "enum": ["a", "b"]}),
        (
            {"type": "integer", "enum": [1, 2], "description": "How many."},
            {"type": "integer", "description": "How many. One of: 1, 2"},
        ),
        ({"type": "string", "format": "uri"}, {"type": "string"}),
        (
            {"type": "string", "format": "date-time"},
            {"type": "string", "format": "date-time"},
        ),
        (
            {"type": "array", "items": {"type": "number"}, "uniqueItems": True},
            {"type": "array", "items": {"type": "number"}},
        ),
        ({"type": "array"}, {"type": "array", "items": {"type": "string"}}),
        (
            {"allOf": [{"type": "integer"}, {"minimum": 1}], "maximum": 9},
            {"type": "integer", "minimum": 1, "maximum": 9},
        ),
        ({"$ref": "#/$defs/name"}, {"type": "string", "maxLength": 5}),
        (
            {"$ref": "#/$defs/name", "description": "Whose."},
            {"type": "string", "maxLength": 5, "description": "Whose."},
        ),
        ({"$ref": "#/nowhere"}, {"type": "string"}),
        ({}, {"type": "string"}),
    ],
)
def test_what_the_dialect_lacks_is_said_in_its_own_words(
    schema: dict[str, object], expected: dict[str, object]
) -> None:
    defined = {"name": {"type": "string", "maxLength": 5}}
    assert one(schema, **{"$defs": defined}) == expected


def test_a_schema_that_refers_to_itself_ends() -> None:
    tree: dict[str, object] = {
        "type": "object",
        "properties": {"left": {"$ref": "#/$defs/tree"}},
    }
    made = translate({"$ref": "#/$defs/tree", "$defs": {"tree": tree}})
    assert msgspec.json.encode(made).count(b"left") < 20


def test_only_properties_there_are_can_be_required() -> None:
    schema: dict[str, object] = {"type": "object", "required": ["x", "y"]}
    made = translate(schema | {"properties": {"x": {"type": "string"}}})
    assert made is not None
    assert made["required"] == ["x"]


@pytest.mark.parametrize("schema", [{}, {"type": "object", "properties": {}}])
def test_a_tool_without_arguments_has_no_schema(schema: dict[str, object]) -> None:
    assert translate(schema) is None


words = st.sampled_from(
    ["type", "properties", "items", "anyOf", "allOf", "$ref", "enum", "const", "x"]
)
values = st.recursive(
    st.sampled_from(["object", "array", "string", "#/x", "#", None, 1, True]),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(words, inner, max_size=4)
    ),
    max_leaves=15,
)


@given(st.dictionaries(words, values))
def test_any_schema_becomes_one_in_the_dialect(schema: dict[str, object]) -> None:
    made = translate(schema)
    if made is not None:
        check(made)


def check(part: object) -> None:
    schema = msgspec.convert(part, Schema)
    assert set(schema) <= ALLOWED
    assert ("type" in schema) is not ("anyOf" in schema)
    for each in msgspec.convert(schema.get("properties", {}), Schema).values():
        check(each)
    for each in msgspec.convert(schema.get("anyOf", []), list[object]):
        check(each)
    if "items" in schema:
        check(schema["items"])
