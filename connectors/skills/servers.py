"""The servers of tools that a skill brings along.

They stand in the `mcp.json` of its folder, in the usual shape, or under `mcp` in the
head of its SKILL.md. To start one is to run a program that came with a text, so none
is read for a skill that the operator has not listed in `skills.servers`.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
from msgspec import Struct, field

from connectors.config import mcp_servers as servers_file
from connectors.config.mcp import McpServerConfig, ServerName
from connectors.config.retired import RETIRED
from runtime.config.loader import LoadOptions, decode
from runtime.config.tree import Node, Origin
from runtime.errors import SettingsError
from runtime.secret import Secret

if TYPE_CHECKING:
    from collections.abc import Mapping

    from connectors.skills.folder import SkillFolder

SERVERS_FILE = "mcp.json"
MOST_SERVERS = 8


class SkillServers(Struct, frozen=True, forbid_unknown_fields=True):
    """What a skill says of its servers."""

    mcp_servers: dict[ServerName, McpServerConfig] = field(name="mcpServers")


def brings_servers(folder: SkillFolder) -> bool:
    """Tell whether a skill has servers of its own."""
    return (folder.path / SERVERS_FILE).is_file() or table_of(folder) is not None


def table_of(folder: SkillFolder) -> object:
    """Give the table of servers in a skill's head; None if there is none."""
    metadata = folder.head.get("metadata")
    inner = metadata.get("mcp") if isinstance(metadata, dict) else None
    return folder.head.get("mcp", inner)


class Brings(Struct, frozen=True):
    """What a skill's servers are, and which secrets they take."""

    servers: dict[str, McpServerConfig]
    secrets: tuple[Secret, ...] = ()
    secret_files: tuple[Path, ...] = ()
    doubts: tuple[SettingsError, ...] = ()
    """What people are told of, though the servers may be started."""


def servers_of(folder: SkillFolder, environment: Mapping[str, str]) -> Brings:
    """Read a skill's servers; the names are made the skill's own.

    Raises:
        SettingsError: they are not as settings of servers are, or more than is borne.
    """
    file = str(folder.path / SERVERS_FILE)
    if (folder.path / SERVERS_FILE).is_file():
        origin = Origin(file)
        table = servers_file.read_servers(folder.path / SERVERS_FILE)
    elif (head := table_of(folder)) is not None:
        origin = Origin(str(folder.path / "SKILL.md"))
        table = servers_file.node(as_servers(head, origin), origin)
    else:
        return Brings({})
    top = Node({servers_file.SERVERS: table}, origin, origin)
    options = LoadOptions(retired=RETIRED)
    settings = decode(top, SkillServers, environment=environment, options=options)
    found = settings.value.mcp_servers
    if len(found) > MOST_SERVERS:
        raise origin.error(f"a skill may bring {MOST_SERVERS} servers at most")
    name = folder.skill.name
    servers = {f"{name}.{each}": bounded(found[each], origin) for each in found}
    return Brings(servers, settings.secrets, settings.secret_files, settings.warnings)


def as_servers(head: object, origin: Origin) -> object:
    """Take the servers of a head as a JSON file would have them."""
    if not isinstance(head, dict):
        raise origin.error("'mcp' must be a table of servers by name")
    table: dict[str, object] = dict(head)  # pyright: ignore[reportUnknownArgumentType]
    return {name: servers_file.server(each, origin) for name, each in table.items()}


def bounded(config: McpServerConfig, origin: Origin) -> McpServerConfig:
    """Take from a skill's server what only the operator may say.

    Raises:
        SettingsError: it is no program: an address is for the settings.
    """
    if config.url or not config.command:
        text = "a skill's server must be a program"
        hint = "put the address into [mcpServers] of the settings"
        raise origin.error(text, hint)
    return msgspec.structs.replace(
        config, prefix="", readable=(), writable=(), cwd=None
    )


def read_all(
    folders: Mapping[str, SkillFolder], environment: Mapping[str, str]
) -> tuple[dict[str, Brings], list[SettingsError]]:
    """Read the servers of several skills; those that are wrong are told.

    Returns:
        By skill, what it brings; and what is wrong.
    """
    found: dict[str, Brings] = {}
    problems: list[SettingsError] = []
    for name, folder in folders.items():
        try:
            found[name] = servers_of(folder, environment)
        except SettingsError as error:
            problems.append(error)
    return found, problems
