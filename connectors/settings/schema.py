"""The JSON schema of the settings file, for editors that complete and check TOML.

Types and bounds come from `msgspec`; the words come from the texts that stand
below the fields in the source.
"""

from __future__ import annotations

import ast
import inspect
import textwrap
from collections.abc import Iterator, Sequence
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Literal, TypeGuard, cast, get_args

import msgspec
from msgspec import Struct, inspect as shapes

from connectors.chat.platforms import all_retired
from connectors.settings.load import settings_type
from runtime.config.messages import bare, sample, toml
from runtime.config.tree import BEFORE, INCLUDE
from runtime.secret import OpenText, Secret

Schema = dict[str, object]

DIALECT = "https://json-schema.org/draft/2020-12/schema"


def settings_schema() -> Schema:
    """Give the schema of a whole settings file; not to be changed."""
    return schema_of(settings_type())


@cache
def schema_of(whole: type[Struct]) -> Schema:
    """Make the schema of a settings type."""
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


class Explained(msgspec.Struct, frozen=True):
    """What can be said of one setting."""

    kind: str
    """Of the connector, model or other thing that it belongs to; empty: of no kind."""

    words: str
    """What it does; empty: its name says all."""

    type: str
    """What may be written: `number above 0`."""

    default: str
    """As TOML has it; empty: there is none."""

    keys: tuple[str, ...]
    """Names of its keys, if it is a table."""


def explained(names: Sequence[str]) -> list[Explained]:
    """Say what a setting does; several, where things of several kinds have it.

    Args:
        names: of the tables down to it, and its own; one that people choose may be any.

    Returns:
        Nothing if there is no such setting.
    """
    whole = settings_schema()
    parts = whole["$defs"]
    found: list[tuple[str, Schema]] = [("", whole)]
    for name in names:
        found = [pair for each in found for pair in inside(parts, *each, name)]
    told = [explanation(parts, *each) for each in found]
    return [each for number, each in enumerate(told) if each not in told[:number]]


def why_gone(names: Sequence[str]) -> str:
    """Say why a setting that once was is gone; empty: there never was one."""
    whole = settings_schema()
    parts = whole["$defs"]
    found: list[tuple[str, Schema]] = [("", whole)]
    for name in names[:-1]:
        found = [pair for each in found for pair in inside(parts, *each, name)]
    for _, node in found:
        for table in structs_in(parts, node):
            if why := all_retired().get(str(table.get("title")), {}).get(names[-1]):
                return why
    return ""


def structs_in(parts: object, node: Schema) -> Iterator[Schema]:
    """Give the tables that a part of a schema may be, or be a list of."""
    for each in choices(parts, node):
        items = each.get("items")
        if is_schema(items):
            yield from structs_in(parts, items)
        else:
            yield each


def whole_of(parts: object, node: Schema) -> Schema:
    """Give a part of a schema with what it refers to."""
    name = str(node.get("$ref", "")).rpartition("/")[2]
    found = parts.get(name) if is_schema(parts) else None
    return {**found, **node} if is_schema(found) else node


def choices(parts: object, node: Schema) -> Iterator[Schema]:
    """Give what a part of a schema may be."""
    whole = whole_of(parts, node)
    either = listed(whole.get("anyOf"))
    for each in filter(is_schema, either):
        yield from choices(parts, each)
    if not either:
        yield whole


def listed(value: object) -> list[object]:
    """Give a list of a schema; empty if it is none."""
    return cast("list[object]", value) if isinstance(value, list) else []


def inside(
    parts: object, kind: str, node: Schema, name: str
) -> Iterator[tuple[str, Schema]]:
    """Give what has this name in a table, or in each table of a list, and its kind."""
    for each in choices(parts, node):
        own, further, items = (
            each.get(key) for key in ("properties", "additionalProperties", "items")
        )
        if is_schema(own):
            tag = own.get("kind")
            tags = listed(tag.get("enum")) if is_schema(tag) else []
            named = str(tags[0]) if tags else kind
            if is_schema(found := own.get(name)):
                yield named, found
        elif is_schema(further):
            yield kind, further
        elif is_schema(items):
            yield from inside(parts, kind, items, name)


BOUNDS = {
    "minimum": "at least {}",
    "exclusiveMinimum": "above {}",
    "maximum": "at most {}",
    "exclusiveMaximum": "below {}",
    "minLength": "of at least {} characters",
    "maxLength": "of at most {} characters",
}


def explanation(parts: object, kind: str, node: Schema) -> Explained:
    """Say what a part of a schema says."""
    each_kind = [type_text(parts, each) for each in choices(parts, node)]
    tables = [each.get("properties") for each in choices(parts, node)]
    keys = [key for table in tables if is_schema(table) for key in table]
    default = node.get("default")
    return Explained(
        kind=kind,
        words=str(node.get("description", "")),
        type=" or ".join(dict.fromkeys(filter(None, each_kind))),
        default="" if default is None or is_schema(default) else toml(default),
        keys=tuple(dict.fromkeys(keys)),
    )


def type_text(parts: object, node: Schema) -> str:
    """Say what may be written: `number above 0`; empty: nothing at all."""
    if allowed := listed(node.get("enum")):
        return " or ".join(map(toml, allowed))
    if "oneOf" in node:
        return '{ env = "NAME" } or { file = "path" }'
    name = str(node.get("type", ""))
    if name == "array":
        items = node.get("items")
        of = type_text(parts, whole_of(parts, items)) if is_schema(items) else ""
        return f"list of {of or 'values'}"
    if name == "null":
        return ""
    words = {"object": "table", "boolean": "true or false", "string": "text"}
    bounds = [text.format(node[key]) for key, text in BOUNDS.items() if key in node]
    return " ".join((words.get(name, name), " and ".join(bounds))).strip()


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


# Whom settings are for: `common` is what a new company sets; `expert` is what changes
# how it runs inside, for somebody who measures. All else is `advanced`.
Level = Literal["common", "advanced", "expert"]

COMMON = (
    "default_agent",
    "owners",
    "store.path",
    "workspace.path",
    "accounts.x",
    "models.x",
    "agents.x.model",
    "agents.x.prompt",
    "agents.x.persona",
    "agents.x.tools",
    "agents.x.delegates",
    "connectors.x",
    "routes",
    "access",
    "budgets",
    "log.level",
    "admin.port",
)
"""In the order in which they are met; `x` stands for a name that people choose."""

COMMON_TABLES = {
    "accounts.x": "A provider's key, which models name.",
    "models.x": "A model that agents may have: who runs it, and which one it is.",
    "connectors.x": "Where people write: a chat platform, the page, HTTP, …",
    "routes": "Which agent hears which messages, where names do not say it.",
    "access": "Who may use which agent; the first rule that fits decides.",
    "budgets": "What may be spent in a day or month, and what happens then.",
}
"""What those of them are for whose code does not say it in such words."""


def common_texts() -> list[tuple[str, str]]:
    """Give the common settings, each with what it does."""
    return [
        (key, explained(key.split("."))[0].words or COMMON_TABLES[key])
        for key in COMMON
    ]


EXPERT = (
    "buffering",
    "busy_policies",
    "compaction",
    "limits",
    "log.pace",
    "memory",
    "retries",
    "scheduler",
    "store.synchronous",
    "tool_calls",
    "watchdog",
)
"""Tables and settings."""

COLLECTIONS = frozenset({"accounts", "agents", "connectors", "models"})


def level_of(way: Sequence[str]) -> Level:
    """Tell who needs a setting, by its names from the top of the file."""
    names = list(way)
    if len(names) > 1 and names[0] in COLLECTIONS:
        names[1] = "x"
    key = ".".join(names)
    if key in COMMON:
        return "common"
    return (
        "expert" if any(f"{key}.".startswith(f"{x}.") for x in EXPERT) else "advanced"
    )
