"""Servers of tools from a JSON file in the shape that other programs have them in.

`mcp_servers_file` names it. What it says becomes part of the tree of settings, as if
it stood there: the same keys, checks and complaints, and secrets by reference only.
`"${NAME}"`, at the end of a text, is an environment variable.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import cast

from runtime.config.tree import Node, Origin, beside, merge, read_text
from runtime.errors import SettingsError

FILE = "mcp_servers_file"
SERVERS = "mcpServers"
OPEN_TEXTS = frozenset({"env", "headers"})

VARIABLE = re.compile(r"(?P<before>[^$]*)\$\{(?P<name>[A-Za-z_][A-Za-z0-9_]*)\}")

TYPES = ("stdio", "http", "streamable-http", "streamableHttp")
"""How other programs call the two ways; which one is meant is seen from the keys."""


def with_servers_file(top: Node) -> Node:
    """Put the servers of the named file, if there is one, below those of the settings.

    Raises:
        SettingsError: it cannot be read, or is no such file.
    """
    table = top.table() or {}
    named = table.get(FILE)
    if named is None or not isinstance(named.content, str):
        return top  # a name that is no text is complained about with all the rest
    found = read_servers(beside(named.value.file, named.content))
    servers = merge(found, table[SERVERS]) if SERVERS in table else found
    return Node({**table, SERVERS: servers}, top.key, top.value)


def read_servers(path: Path) -> Node:
    """Read the table of servers from a JSON file.

    Raises:
        SettingsError: it cannot be read, is no JSON, or has no table `mcpServers`.
    """
    text = read_text(path)
    origin = Origin(str(path))
    try:
        found: object = json.loads(text)
    except json.JSONDecodeError as error:
        place = Origin(str(path), error.lineno, error.colno)
        raise place.error(f"not valid JSON: {error.msg}") from error
    except (RecursionError, ValueError) as error:
        raise SettingsError("is no JSON file of settings", file=str(path)) from error
    top = cast("dict[str, object]", found) if isinstance(found, dict) else {}
    servers = top.get(SERVERS)
    if not isinstance(servers, dict):
        hint = f'for example: {{ "{SERVERS}": {{ "files": {{ "command": "…" }} }} }}'
        raise origin.error(f"has no table {SERVERS!r}", hint)
    odd = [key for key in top if key != SERVERS]
    if odd:
        hint = f"only {SERVERS!r} is read; take it out"
        raise origin.error(f"unknown key {odd[0]!r}", hint)
    table = cast("dict[str, object]", servers)
    return node({name: server(each, origin) for name, each in table.items()}, origin)


def server(value: object, origin: Origin) -> object:
    """Take one server as the settings would have it.

    Raises:
        SettingsError: it speaks a way that is not spoken here.
    """
    if not isinstance(value, dict):
        return value  # complained about with all the rest
    plain = dict(cast("dict[str, object]", value))
    way = plain.pop("type", TYPES[0])
    if way not in TYPES:
        hint = "streamable HTTP and standard input and output are; sse was replaced"
        raise origin.error(f"servers of the type {way!r} are not spoken to", hint)
    for key in OPEN_TEXTS & plain.keys():
        texts = plain[key]
        if isinstance(texts, dict):
            found = cast("dict[str, object]", texts)
            plain[key] = {name: open_text(text) for name, text in found.items()}
    return plain


def open_text(value: object) -> object:
    """Write a reference to an environment variable as the settings do."""
    found = VARIABLE.fullmatch(value) if isinstance(value, str) else None
    if found is None:
        return value
    reference: dict[str, object] = {"env": found["name"]}
    return {"before": found["before"], **reference} if found["before"] else reference


def node(value: object, origin: Origin) -> Node:
    """Make a node of the tree, and of all below it."""
    content = value
    if isinstance(value, dict):
        table = cast("dict[str, object]", value)
        content = {name: node(child, origin) for name, child in table.items()}
    elif isinstance(value, list):
        content = [node(child, origin) for child in cast("list[object]", value)]
    return Node(content, origin, origin)
