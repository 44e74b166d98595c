"""Settings of what agents may use beyond the built-in tools: servers and skills.

Only shapes, bounds and defaults; `app.py` puts them together. `mcp_servers_file` names
a JSON file in the shape that other programs have servers in. What it says becomes part
of the tree of settings, as if it stood there: the same keys, checks and complaints, and
secrets by reference only. `"${NAME}"`, at the end of a text, is an environment
variable.
"""

import json
import re
from pathlib import Path
from typing import Annotated, Literal, cast

from msgspec import Meta, Struct, field

from actors.config.values import Count, Seconds
from runtime.config.loader import CommandText
from runtime.config.tree import Node, Origin, beside, merge, read_text
from runtime.errors import SettingsError
from runtime.secret import OpenText

ServerName = Annotated[
    str,
    Meta(
        pattern="^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}$",
        description="a letter or digit, then up to 63 letters, digits, _, . or -",
    ),
]
"""Looser than `Name`: files made for other programs are taken as they are."""

VariableName = Annotated[
    str,
    Meta(
        pattern="^[A-Za-z_][A-Za-z0-9_]{0,127}$",
        description="the name of an environment variable",
    ),
]
HeaderName = Annotated[
    str,
    Meta(pattern="^[A-Za-z0-9-]{1,64}$", description="the name of an HTTP header"),
]
Effect = Literal["read", "write", "run"]


class McpServerConfig(Struct, frozen=True, forbid_unknown_fields=True):
    """A server of tools that speaks the Model Context Protocol.

    It is a program (`command`) or an address (`url`).
    """

    command: CommandText = ""
    """Program to start; it speaks over standard input and output."""

    args: tuple[CommandText, ...] = ()
    """What follows the program's name; no shell reads it. A file that one of them names
    is looked for beside the settings, and may be read."""

    env: dict[VariableName, OpenText] = field(default_factory=dict[str, OpenText])
    """Environment variables for it, beside the few that every program gets; secrets
    as `{ env = "NAME" }`."""

    cwd: Path | None = None
    """Its current folder, which it may write to; unset: one of its own in the agents'
    workspace, made if it is missing."""

    readable: tuple[Path, ...] = ()
    """Files and folders it may read, beside what programs need anyway."""

    writable: tuple[Path, ...] = ()
    """Files and folders it may read and change."""

    network: Literal["none", "tcp"] = "none"
    """Whether it may connect to other machines."""

    url: str = ""
    """Address of a server that runs already (streamable HTTP)."""

    headers: dict[HeaderName, OpenText] = field(default_factory=dict[str, OpenText])
    """Sent with every request; secrets as `{ env = "NAME" }`."""

    tools: tuple[str, ...] = ("*",)
    """Which of its tools there are for agents; `*` and `?` stand for anything."""

    prefix: str = ""
    """What its tools' names begin with; empty: its name."""

    effect: Effect = "run"
    """The worst that a call can do. What a server says of itself is not believed."""

    effects: dict[str, Effect] = field(default_factory=dict[str, Effect])
    """The same for some of its tools, by name or pattern; the first that fits."""

    start_timeout: Seconds = 60.0
    """Seconds until it has started and named its tools."""

    call_timeout: Seconds = 60.0
    """Seconds one call may take."""

    max_calls: Annotated[int, Meta(ge=1, le=1_000)] = 8
    """Calls at once; as many more wait, but at least 3, and the rest is refused. Three
    quarters may be for one person."""

    max_result_chars: Count = 50_000
    """Longest result, in characters; a longer one is cut, and says so."""

    restart: Literal["always", "failed", "never"] = "always"
    """When it is started again after its end: always, only if it failed, or never."""

    restart_first: Annotated[float, Meta(ge=0, le=3_600)] = 1.0
    """Seconds before it is started again; doubled for each further time in a row, up to
    a minute."""

    disabled: bool = False
    """Whether it is left out, with all its tools."""


class SkillsConfig(Struct, frozen=True, forbid_unknown_fields=True):
    """Folders of instructions that agents read when they need them (SKILL.md)."""

    folders: tuple[Path, ...] = ()
    """Each holds one folder for each skill; a name in an earlier one counts."""

    most_triggered: Annotated[int, Meta(ge=0, le=20)] = 2
    """Most skills whose instructions one message's own words bring along."""

    max_body_chars: Annotated[int, Meta(ge=1_000, le=1_000_000)] = 30_000
    """Longest instructions of one skill, in characters; a longer file is refused."""

    servers: tuple[str, ...] = ()
    """Skills, by name or pattern, whose own servers of tools may be started. A server
    is a program: list only what you have read."""

    interceptors: tuple[str, ...] = ()
    """Skills, by name or pattern, whose own programs may have messages for themselves
    (`interceptor` in the head of their SKILL.md). List only what you have read."""

    idle_after: Seconds = 600.0
    """Seconds without a use after which a skill's servers are stopped, and its tools
    leave the conversation."""

    lessons_from: Literal["nobody", "owners", "everybody"] = "owners"
    """At whose words an agent may add a lesson to a skill (`SKILL_IMPROVE`): it is an
    instruction to all who have the skill, in all chats."""


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
        inside = [key for key, each in top.items() if is_table(each, SERVERS)]
        hint = f'for example: {{ "{SERVERS}": {{ "files": {{ "command": "…" }} }} }}'
        if inside:
            hint = f"it stands below {inside[0]!r}: put that table alone into a file"
        raise origin.error(f"has no table {SERVERS!r}", hint)
    odd = [key for key in top if key != SERVERS]
    if odd:
        hint = f"only {SERVERS!r} is read; take it out"
        raise origin.error(f"unknown key {odd[0]!r}", hint)
    table = cast("dict[str, object]", servers)
    return node({name: server(each, origin) for name, each in table.items()}, origin)


def is_table(value: object, key: str) -> bool:
    """Tell whether a value is a table that has a key."""
    return isinstance(value, dict) and key in value


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
