"""Proves that whatever a server lists, models are shown what is fit for them."""

from __future__ import annotations

import json
from itertools import pairwise
from typing import Any, cast

import msgspec
import pytest
from hypothesis import given, strategies as st

from connectors.mcp.connection import (
    LARGEST_MESSAGE,
    MOST_GARBAGE,
    PERIOD,
    Gate,
    Lines,
    ServerLostError,
)
from connectors.mcp.session import (
    LARGEST_SCHEMA,
    LONGEST_DESCRIPTION,
    MOST_TOOLS,
    SchemaError,
    changed,
    listing_of,
    schema_of,
)

keys = st.sampled_from(
    [
        "type",
        "properties",
        "$ref",
        "$defs",
        "description",
        "name",
        "inputSchema",
        "items",
    ]
)
leaves = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.text(max_size=10)
    | st.sampled_from(["object", "#/$defs/a", "#/definitions/a", "#"])
)
anything = st.recursive(
    leaves,
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(keys | st.text(max_size=4), inner, max_size=5)
    ),
    max_leaves=30,
)


NO_SCHEMAS: list[Any] = [
    None,
    [],
    {"type": "array"},
    {"properties": []},
    {"properties": {"a": {"enum": ["x" * LARGEST_SCHEMA]}}},
    {"properties": {str(n): {} for n in range(5_000)}},
    msgspec.json.decode(b'{"a":' * 40 + b"1" + b"}" * 40),
]


@given(tools=st.lists(anything, max_size=5))
def test_any_list_gives_tools_that_fit(tools: list[object]) -> None:
    listing = listing_of(tools)
    assert len(listing.tools) + len(listing.left_out) == len(tools)
    for tool in listing.tools:
        assert json.loads(tool.parameters)["type"] == "object"
        assert 0 < len(tool.description) <= LONGEST_DESCRIPTION


@given(schema=anything)
def test_no_schema_keeps_a_reference(schema: Any) -> None:
    try:
        written = schema_of(schema)
    except SchemaError:
        return
    assert len(written) <= LARGEST_SCHEMA
    for part in parts(json.loads(written)):
        assert not isinstance(part.get("$ref"), str)


def parts(value: object, *, are_names: bool = False) -> list[dict[str, object]]:
    """Give every table of a schema that is one of its parts."""
    if isinstance(value, list):
        items = cast("list[object]", value)
        return [part for each in items for part in parts(each)]
    if not isinstance(value, dict):
        return []
    table = cast("dict[str, object]", value)
    found = [] if are_names else [table]
    for key, inner in table.items():
        found += parts(inner, are_names=key == "properties" and not are_names)
    return found


def test_references_are_replaced_by_what_they_mean() -> None:
    schema: Any = {
        "type": "object",
        "properties": {
            "a": {"$ref": "#/$defs/A", "description": "first"},
            "b": {"type": "array", "items": {"$ref": "#/definitions/B"}},
            "far": {"$ref": "https://example.org/schema.json"},
        },
        "$defs": {"A": {"type": "string", "description": "any"}},
        "definitions": {"B": {"anyOf": [{"type": "null"}, {"$ref": "#/$defs/A"}]}},
        "$schema": "https://json-schema.org/draft/2020-12/schema",
    }
    assert json.loads(schema_of(schema)) == {
        "type": "object",
        "properties": {
            "a": {"type": "string", "description": "first"},
            "b": {
                "type": "array",
                "items": {
                    "anyOf": [
                        {"type": "null"},
                        {"type": "string", "description": "any"},
                    ]
                },
            },
            "far": {},
        },
    }


def test_a_schema_that_leads_to_itself_ends() -> None:
    tree: Any = {"type": "object", "properties": {"next": {"$ref": "#/$defs/T"}}}
    schema: Any = {"type": "object", "properties": {"t": {"$ref": "#/$defs/T"}}}
    written = json.loads(schema_of({**schema, "$defs": {"T": tree}}))
    assert written["properties"]["t"]["properties"]["next"] == {}


@pytest.mark.parametrize("schema", NO_SCHEMAS)
def test_a_schema_that_is_none_is_refused(schema: Any) -> None:
    with pytest.raises(SchemaError):
        schema_of(schema)


def test_a_bomb_of_references_is_refused_at_once() -> None:
    defs = {f"d{n}": {"anyOf": [{"$ref": f"#/$defs/d{n + 1}"}] * 10} for n in range(20)}
    bomb: Any = {"properties": {"a": {"$ref": "#/$defs/d0"}}, "$defs": defs}
    with pytest.raises(SchemaError, match="too large"):
        schema_of(bomb)


def test_too_many_tools_are_left_out_with_a_reason() -> None:
    many: list[Any] = [
        {"name": f"t{n}", "inputSchema": {}} for n in range(MOST_TOOLS + 5)
    ]
    listing = listing_of(many)
    assert len(listing.tools) == MOST_TOOLS
    assert len(listing.left_out) == 5


def test_names_that_cannot_be_seen_are_left_out() -> None:
    odd = ["", "a\nb", "x" * 300, "a\u202eb", " a"]
    tools: list[Any] = [{"name": each, "inputSchema": {}} for each in odd]
    listing = listing_of(tools)
    assert listing.tools == ()
    assert len(listing.left_out) == len(odd)


def test_a_tool_described_otherwise_is_found() -> None:
    before = listing_of([{"name": "a", "description": "x", "inputSchema": {}}]).tools
    after = listing_of(
        [
            {"name": "a", "description": "y", "inputSchema": {}},
            {"name": "b", "description": "x", "inputSchema": {}},
        ]
    ).tools
    assert changed(before, after) == ((before[0], after[0]),)
    assert changed(before, before) == ()


@given(text=st.binary(max_size=200), cuts=st.lists(st.integers(0, 200), max_size=10))
def test_any_cut_of_the_bytes_gives_the_same_lines(
    text: bytes, cuts: list[int]
) -> None:
    edges = sorted({0, *cuts, len(text)})
    lines = Lines()
    found: list[bytes] = []
    for begin, end in pairwise(edges):
        found += lines.feed(text[begin:end])
    assert found == text.split(b"\n")[:-1]


def test_a_line_without_end_is_refused_before_it_fills_the_memory() -> None:
    lines = Lines(1_000)
    lines.feed(b"x" * 1_000)
    with pytest.raises(ServerLostError, match="at once"):
        lines.feed(b"x")
    assert LARGEST_MESSAGE > 1_000


def test_the_gate_bears_so_much_in_a_period() -> None:
    gate = Gate()
    for round_ in range(3):
        for _ in range(MOST_GARBAGE):
            gate.take_garbage(PERIOD * round_)
    with pytest.raises(ServerLostError, match="that are none"):
        gate.take_garbage(PERIOD * 2 + 1)
