"""Proves that complaints say in words what a setting takes, with a fitting example."""

from __future__ import annotations

from typing import Annotated, Literal, cast

import msgspec
import pytest
from hypothesis import given, strategies as st
from msgspec import Meta, inspect as shapes

from runtime.config.messages import sample, toml, wanted
from runtime.config.tree import Node, build, inherit, merge, parse


class Table(msgspec.Struct):
    key: str


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        (bool, "true or false"),
        (int, "a whole number"),
        (Annotated[int, Meta(ge=1)], "a whole number of at least 1"),
        (Annotated[int, Meta(ge=1, le=65_535)], "a whole number from 1 to 65_535"),
        (Annotated[float, Meta(gt=0, lt=1)], "a number above 0 and below 1"),
        (Annotated[float, Meta(le=2)], "a number at most 2"),
        (Literal["a", "b"], '"a" or "b"'),
        (str, "a text"),
        (Annotated[str, Meta(max_length=16)], "a text of at most 16 characters"),
        (
            Annotated[str, Meta(min_length=4, max_length=9)],
            "a text that is not empty, of at most 9 characters",
        ),
        (Annotated[str, Meta(description="a colour")], "a colour"),
    ],
)
def test_what_a_setting_takes_is_said_in_words(kind: type, expected: str) -> None:
    assert wanted(shapes.type_info(kind)) == expected


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        (bool, "true"),
        (int, "10"),
        (Annotated[int, Meta(ge=3)], "3"),
        (Annotated[float, Meta(ge=0, le=2)], "1.0"),
        (Literal["a", "b"], '"a"'),
        (tuple[int, ...], "[10]"),
        (int | None, "10"),
        (Table, "{ … }"),
        (dict[str, int], "{ … }"),
        (str, '"…"'),
    ],
)
def test_a_setting_without_a_default_has_an_example(kind: type, expected: str) -> None:
    assert sample(shapes.type_info(kind)) == expected


def test_values_are_written_as_toml_writes_them() -> None:
    assert toml(["a", 1, True, 0.5, ('"ü"',)]) == '["a", 1, true, 0.5, ["\\"ü\\""]]'


@pytest.mark.parametrize("text", ["", "a.x = 1", "a.x = 1\nb = 2", "a = 1\nb.c.x = 2"])
def test_without_two_tables_nothing_is_inherited(text: str) -> None:
    top = parse(text, "f")
    assert inherit(top, "a", "b") == top


def test_an_heir_that_is_no_table_inherits_nothing() -> None:
    top = parse("a.x = 1\nb.c = 2", "f")
    assert inherit(top, "a", "b") == top


KEYS = st.sampled_from(["model", "context", "budgets", "groups", "file"])
TABLES = st.dictionaries(
    KEYS,
    st.recursive(
        st.integers() | st.lists(st.integers(), max_size=2),
        lambda inner: st.dictionaries(KEYS, inner, max_size=4),
        max_leaves=8,
    ),
    max_size=4,
)


def leaves_of(
    value: object, way: tuple[str, ...] = ()
) -> dict[tuple[str, ...], object]:
    """Give all that is no table, by its keys; an empty table is a leaf, too."""
    if not isinstance(value, dict) or not value:
        return {way: value}
    found: dict[tuple[str, ...], object] = {}
    for key, child in cast("dict[str, object]", value).items():
        found |= leaves_of(child, (*way, key))
    return found


def plain(node: Node) -> object:
    """Take the positions out of a tree."""
    if (table := node.table()) is not None:
        return {key: plain(child) for key, child in table.items()}
    if (items := node.items()) is not None:
        return [plain(item) for item in items]
    return node.content


@given(defaults=TABLES, own=TABLES)
def test_an_heir_takes_each_setting_that_it_does_not_have(
    defaults: dict[str, object], own: dict[str, object]
) -> None:
    top = {"defaults": defaults, "agents": {"anna": own, "ben": {}}}
    made = inherit(build(top, (), {}, "f"), "defaults", "agents")
    agents = cast("dict[str, dict[str, object]]", plain(made))["agents"]
    given_leaves, own_leaves = leaves_of(defaults), leaves_of(own)
    found = leaves_of(agents["anna"])
    assert agents["ben"] == defaults
    for way, value in found.items():
        assert value == own_leaves.get(way, given_leaves.get(way, {}))
    for way, value in own_leaves.items():
        assert found.get(way) == value or value == {}
    for way in given_leaves.keys() - found.keys():
        # Hidden by the heir's own value at this place, above it, or below it.
        assert any(
            way[: len(mine)] == mine or mine[: len(way)] == way for mine in own_leaves
        )


def test_of_two_sources_of_a_secret_the_newer_one_counts() -> None:
    older, newer = parse("key.file = 'a'", "f"), parse("key.env = 'B'", "g")
    assert plain(merge(older, newer)) == {"key": {"env": "B"}}
