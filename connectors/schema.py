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
from typing import TypeGuard

import msgspec

from actors import config as domain
from actors import memory_config as remembered
from actors import presence_config as presence
from actors import prompt_config as prompts
from actors import session_config
from connectors import config as edges
from connectors import config_tools as further
from connectors import matrix_config as matrix
from connectors import memory_config as memory
from connectors import model_config as models
from connectors import tool_config as tools
from connectors import webhook_config as webhooks
from runtime.config import INCLUDE
from runtime.config_shape import BEFORE
from runtime.secret import OpenText, Secret

Schema = dict[str, object]

DIALECT = "https://json-schema.org/draft/2020-12/schema"


def settings_schema() -> Schema:
    """Make the schema of a whole settings file."""
    (root,), parts = msgspec.json.schema_components(
        [edges.AppConfig], schema_hook=special, ref_template="#/$defs/{name}"
    )
    for name, part in parts.items():
        describe(part, field_texts(name))
    top = parts[edges.AppConfig.__name__]
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


def field_texts(name: str) -> dict[str, str]:
    """Read the texts below the fields of a Struct, by the field's name."""
    homes = (
        *(edges, models, tools, memory, remembered),
        *(further, domain, prompts, session_config),
        *(matrix, presence, webhooks),
    )
    kind: object = next(getattr(home, name) for home in homes if hasattr(home, name))
    texts: dict[str, str] = {}
    if isinstance(kind, type):
        for each in reversed(kind.__mro__):  # those of a base first: ours win
            if each.__module__ in {home.__name__ for home in homes}:
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
