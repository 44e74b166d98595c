"""The JSON schema of the settings file, for editors that complete and check TOML.

Types and bounds come from `msgspec`; the words come from the texts that stand
below the fields in the source.
"""

from __future__ import annotations

import ast
import inspect
import textwrap
from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import TypeGuard, get_args

import msgspec
from msgspec import Struct
from msgspec import inspect as shapes

from connectors.settings.load import settings_type
from runtime.config.messages import bare, sample, toml
from runtime.config.tree import BEFORE, INCLUDE
from runtime.secret import OpenText, Secret

Schema = dict[str, object]

DIALECT = "https://json-schema.org/draft/2020-12/schema"


def settings_schema() -> Schema:
    """Make the schema of a whole settings file."""
    whole = settings_type()
    (root,), parts = msgspec.json.schema_components(
        [whole], schema_hook=special, ref_template="#/$defs/{name}"
    )
    structs: dict[str, type[Struct]] = {}
    structs_below(whole, structs)
    for name, part in parts.items():
        describe(part, field_texts(structs[name]))
    top = parts[whole.__name__]
    properties = top["properties"]
    properties[INCLUDE] = {
        "type": "array",
        "items": {"type": "string"},
        "description": "Further files, relative to this one; what stands here wins.",
    }
    return {"$schema": DIALECT, "title": "Callboard settings", **root, "$defs": parts}


def table_lines(names: Sequence[str]) -> list[str]:
    """Write every key that a table may have, with its default.

    Args:
        names: of the tables down to it; one that people choose may be any.

    Returns:
        Lines as of a TOML file; nothing if there is no such table.
    """
    kinds: list[shapes.Type] = [shapes.type_info(settings_type())]
    for name in names:
        kinds = [found for kind in kinds for found in below(kind, name)]
    lines: list[str] = []
    for way, struct in (pair for kind in kinds for pair in tables(kind, tuple(names))):
        lines += ["", f"[{'.'.join(way)}]"] if lines else [f"[{'.'.join(way)}]"]
        if struct.tag is not None:
            lines.append(f"{struct.tag_field} = {toml(struct.tag)}")
        lines += [key_line(each) for each in struct.fields]
    return lines


def below(kind: shapes.Type, name: str) -> list[shapes.Type]:
    """Give the types of what has this name in a table, or in each item of a list."""
    match bare(kind):
        case shapes.StructType(fields=fields):
            return [each.type for each in fields if each.encode_name == name]
        case shapes.DictType(value_type=inner):
            return [inner]
        case shapes.VarTupleType(item_type=inner):
            return below(inner, name)
        case shapes.UnionType(types=types):
            return [found for each in types for found in below(each, name)]
        case _:
            return []


def tables(
    kind: shapes.Type, way: tuple[str, ...]
) -> Iterator[tuple[tuple[str, ...], shapes.StructType]]:
    """Give the tables that a value may be or have, each with its names."""
    match bare(kind):
        case shapes.StructType() as struct:
            yield way, struct
        case shapes.DictType(value_type=inner):
            yield from tables(inner, (*way, "<name>"))
        case shapes.VarTupleType(item_type=inner):
            yield from tables(inner, way)
        case shapes.UnionType(types=types):
            for each in types:
                yield from tables(each, way)
        case _:
            return


def key_line(field: shapes.Field) -> str:
    """Write one key with its default."""
    name = field.encode_name
    if field.required:
        return f"{name} = {sample(field.type)}  # needed"
    value: object = field.default
    if value is msgspec.NODEFAULT and callable(field.default_factory):
        value = field.default_factory()
    if value is None:
        return f"# {name} is not set"
    if isinstance(value, (Struct, dict)):
        return f"{name} = {{ … }}"
    return f"{name} = {toml(value)}"


def special(kind: type) -> Schema:
    """Describe the types that TOML has no word for.

    Raises:
        NotImplementedError: as msgspec asks of a hook that does not know a type.
    """
    if kind is Path:
        return {"type": "string", "description": "Relative to the settings file."}
    if kind is Secret:
        return {
            "description": "Where the secret is found.",
            "oneOf": [source("env"), source("file")],
        }
    if kind is OpenText:
        return {
            "description": "A text or, for a secret, where it is found.",
            "oneOf": [
                {"type": "string"},
                source("env", BEFORE),
                source("file", BEFORE),
            ],
        }
    raise NotImplementedError


def source(name: str, *others: str) -> Schema:
    """Describe a table with one key that names a secret's source."""
    return {
        "type": "object",
        "properties": {each: {"type": "string"} for each in (name, *others)},
        "required": [name],
        "additionalProperties": False,
    }


def describe(part: Schema, texts: dict[str, str]) -> None:
    """Put the fields' texts into the schema of one Struct."""
    properties = part["properties"]
    if is_schema(properties):
        for name, text in texts.items():
            one = properties[name]
            if is_schema(one):
                one["description"] = text


def is_schema(value: object) -> TypeGuard[Schema]:
    """Tell whether a part of a schema is an object."""
    return isinstance(value, dict)


def structs_below(kind: type[Struct], found: dict[str, type[Struct]]) -> None:
    """Collect a Struct and all that its fields are made of, by name."""
    found[kind.__name__] = kind
    for field in msgspec.structs.fields(kind):
        for part in parts_of(field.type):
            if is_struct(part) and part.__name__ not in found:
                structs_below(part, found)


def is_struct(value: object) -> TypeGuard[type[Struct]]:
    """Tell whether a part of an annotation is a Struct."""
    return isinstance(value, type) and issubclass(value, Struct)


def parts_of(annotation: object) -> Iterator[object]:
    """Give an annotation and whatever it is made of."""
    yield annotation
    for each in get_args(annotation):
        yield from parts_of(each)


def field_texts(kind: type[Struct]) -> dict[str, str]:
    """Read the texts below the fields of a Struct, by the field's name."""
    texts: dict[str, str] = {}
    for each in reversed(kind.__mro__):  # those of a base first: ours win
        if each is not Struct and issubclass(each, Struct):
            texts |= own_texts(each)
    return texts


def own_texts(kind: type) -> dict[str, str]:
    """Read the texts below the fields that a Struct itself defines.

    Returns:
        Nothing if the source cannot be had, as in some packed programs.
    """
    try:
        source_text = inspect.getsource(kind)
    except OSError:
        return {}
    texts: dict[str, str] = {}
    body = [
        statement
        for top in ast.parse(textwrap.dedent(source_text)).body
        if isinstance(top, ast.ClassDef)
        for statement in top.body
    ]
    for field, text in pairwise(body):
        match field, text:
            case (
                ast.AnnAssign(target=ast.Name(id=key)),
                ast.Expr(value=ast.Constant(value=str(words))),
            ):
                texts[key] = " ".join(words.split())
            case _:
                pass
    return texts
