"""The JSON schema of the settings file, for editors that complete and check TOML.

Types and bounds come from `msgspec`; the words come from the texts that stand
below the fields in the source.
"""

from __future__ import annotations

import ast
import inspect
import textwrap
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, TypeGuard, get_args

import msgspec
from msgspec import Struct

from connectors.settings.load import settings_type
from runtime.config.tree import BEFORE, INCLUDE
from runtime.secret import OpenText, Secret

if TYPE_CHECKING:
    from collections.abc import Iterator

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
