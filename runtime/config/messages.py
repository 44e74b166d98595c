"""How complaints about settings put types and values into words.

For people who write TOML and not Python: a list, a table, true or false.
"""

from __future__ import annotations

import difflib
import json
from collections.abc import Iterable, Iterator
from typing import cast

from msgspec import inspect as shapes

from runtime.config.positions import Path as Way
from runtime.config.tree import Node
from runtime.secret import Secret

REFERENCE = '{ env = "NAME" } or { file = "path" }'

SECRET = shapes.CustomType(Secret)

MOST_LISTED = 8
"""Names that a hint lists; of more, the nearest, and where to see all."""

MOST_PLACES = 2
"""Tables that a hint names for a key that stands in the wrong one."""

LONGEST_QUOTE = 60
"""Characters of a wrong value that a complaint repeats."""


def close_to(word: str, known: Iterable[str], see: str = "") -> str:
    """Write the hint for a word that does not exist: the nearest, and which there are.

    Args:
        see: where all of them can be seen, should they be too many for a hint.
    """
    names = sorted(known)
    near = difflib.get_close_matches(word, names, n=1, cutoff=0.6)
    listed = f"known: {', '.join(names)}" if names else "there is none to choose from"
    if see and len(names) > MOST_LISTED:
        nearest = difflib.get_close_matches(word, names, n=3, cutoff=0)
        listed = f"near it: {', '.join(nearest)}; all {len(names)}: {see}"
    return f"did you mean {near[0]!r}? {listed}" if near else listed


def tables_with(key: str, kind: shapes.Type, way: str = "") -> Iterator[str]:
    """Give the tables of settings that have a key: `agents.NAME`."""
    match bare(kind):
        case shapes.StructType(fields=fields):
            for item in fields:
                if item.encode_name == key and way:
                    yield way
                inner = f"{way}.{item.encode_name}".removeprefix(".")
                yield from tables_with(key, item.type, inner)
        case shapes.DictType(value_type=inside):
            yield from tables_with(key, inside, f"{way}.NAME")
        case shapes.UnionType(types=choices):
            for each in choices:
                yield from tables_with(key, each, way)
        case _:
            pass


def place_of(key: str, settings: shapes.Type) -> str:
    """Begin a hint with where a key belongs; empty: nowhere, or in many tables."""
    found = dict.fromkeys(f"[{each}]" for each in tables_with(key, settings))
    is_told = 0 < len(found) <= MOST_PLACES
    return f"it belongs in {' or '.join(found)}; " if is_told else ""


def bare(kind: shapes.Type) -> shapes.Type:
    """Take the notes off a type, and what stands for "not set"."""
    while isinstance(kind, shapes.Metadata):
        kind = kind.type
    return kind


def dotted(way: Way) -> str:
    """Write the way to a setting: `agents.anna.model`, `routes[0].agent`."""
    text = ""
    for part in way:
        text += f"[{part}]" if isinstance(part, int) else f".{part}"
    return text.removeprefix(".")


def toml(value: object) -> str:
    """Write a simple value, a list or a table as TOML does."""
    if isinstance(value, (list, tuple)):
        items = cast("tuple[object, ...]", value)
        return f"[{', '.join(toml(item) for item in items)}]"
    if isinstance(value, float):
        return repr(value)
    # Why: for texts, numbers and booleans JSON and TOML agree.
    return json.dumps(value, ensure_ascii=False)


def shown(node: Node) -> str:
    """Write a simple value, shortened, for a complaint."""
    text = str(node.content)
    if isinstance(node.content, str):
        is_long = len(text) > LONGEST_QUOTE
        return toml(text[:LONGEST_QUOTE] + "…" if is_long else text)
    return toml(node.content) if isinstance(node.content, (bool, float)) else text


def given(node: Node) -> str:
    """Say what somebody wrote."""
    match node.content:
        case dict():
            return "a table"
        case list():
            return "a list"
        case str():
            return f"the text {shown(node)}"
        case bool() | int() | float():
            return shown(node)
        case _:
            return f"the date or time {shown(node)}"


def wanted(kind: shapes.Type) -> str:
    """Say what a simple type takes, bounds included."""
    description = noted(kind)
    if description:
        return description
    match bare(kind):
        case shapes.BoolType():
            return "true or false"
        case shapes.IntType() as number:
            return f"a whole number{bounds(number)}"
        case shapes.FloatType() as number:
            return f"a number{bounds(number)}"
        case shapes.LiteralType() as literal:
            return " or ".join(toml(item) for item in literals(literal))
        case other:
            return length(other) if isinstance(other, shapes.StrType) else "a text"


def length(text: shapes.StrType) -> str:
    """Say how long a text may be."""
    said = "a text that is not empty," if text.min_length else "a text"
    most = text.max_length
    up_to = "" if most is None else f" of at most {most} characters"
    return f"{said}{up_to}".removesuffix(",")


def noted(kind: shapes.Type) -> str:
    """Give the description that a schema's `Meta` carries, or nothing."""
    if not isinstance(kind, shapes.Metadata):
        return ""
    notes = cast("dict[str, object]", kind.extra_json_schema or {})
    return str(notes.get("description", ""))


def bounds(number: shapes.IntType | shapes.FloatType) -> str:
    """Say between what and what a number must lie; nothing if anywhere."""
    if number.ge is not None and number.le is not None:
        return f" from {readable(number.ge)} to {readable(number.le)}"
    limits = {
        "above": number.gt,
        "of at least": number.ge,
        "below": number.lt,
        "at most": number.le,
    }
    parts = [f"{word} {readable(n)}" for word, n in limits.items() if n is not None]
    return f" {' and '.join(parts)}" if parts else ""


def readable(number: float) -> str:
    """Write a number in groups of three digits, as TOML allows."""
    return f"{number:_}"


def literals(kind: shapes.LiteralType) -> list[str]:
    """Give the words that a setting may be one of."""
    return [str(item) for item in kind.values]


def example(key: str | int, value: str) -> str:
    """Write a line that sets a key; for an item of a list, the value alone."""
    return value if isinstance(key, int) else f"{key} = {value}"


def line_for(way: Way, key: str, kind: shapes.Type) -> str:
    """Write the hint for a key that a table lacks: a line, or a table of its own."""
    match bare(kind):
        case shapes.StructType():
            return f"add a table [{dotted((*way, key))}]"
        case shapes.DictType():
            return f"add a table [{dotted((*way, key))}.NAME]"
        case _:
            return f"for example: {example(key, sample(kind))}"


def sample(kind: shapes.Type) -> str:
    """Write a value that fits the type, for lack of a default."""
    match bare(kind):
        case shapes.IntType() as number:
            text = toml(number.ge or number.le or 10)
        case shapes.FloatType() as number:
            text = toml(float(((number.ge or 0) + (number.le or 2)) / 2))
        case shapes.LiteralType() as literal:
            text = toml(literals(literal)[0])
        case shapes.VarTupleType(item_type=item):
            text = f"[{sample(item)}]"
        case shapes.UnionType(types=choices):
            text = sample(choices[0])
        case shapes.StructType() | shapes.DictType():
            text = "{ … }"
        case shapes.BoolType():
            text = "true"
        case other:
            text = '{ env = "NAME" }' if other == SECRET else '"…"'
    return text
