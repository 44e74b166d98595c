"""What `callboard doctor` asks servers of tools.

Each is started as it is for agents, but in a folder that is removed again.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

from actors.rules.text.cleaning import one_line
from connectors.admin.probes import Finding, Probe
from connectors.config.app import AppConfig
from connectors.config.mcp import McpServerConfig
from connectors.mcp.connection import McpError, ServerConnection, ServerEnd, ToolListing
from connectors.mcp.tree import ServerSurroundings, connecting
from connectors.sandbox.plan import SandboxError
from connectors.sandbox.runner import Sandbox, sandbox_of

ABOUT = "tools"
AT_ADDRESS = "check url and headers, and that it runs"
LONGEST_LIST = 300


def server_probes(app: AppConfig, files: Iterable[Path]) -> Iterator[Probe]:
    """Give a probe for each server of tools.

    Args:
        files: of settings and secrets, which no program may reach.
    """
    servers = {n: each for n, each in app.mcp_servers.items() if not each.disabled}
    try:
        sandbox = sandbox_of(app, files)
    except SandboxError:
        return  # the finding about the sandbox says why no program can be started
    for name, server in servers.items():
        place = f"mcpServers.{name}"
        yield Probe(ABOUT, place, partial(try_server, name, server, sandbox))


async def try_server(
    name: str, server: McpServerConfig, sandbox: Sandbox
) -> list[Finding]:
    """Start a server as it is started for agents, and ask what it offers."""
    place, end = f"mcpServers.{name}", ServerEnd()
    cure = AT_ADDRESS if server.url else ""  # then the reason says what to do
    with TemporaryDirectory() as folder:
        connect = connecting(name, server, ServerSurroundings(sandbox, Path(folder)))
        try:
            async with connect() as connection:
                end, cure = connection.ending, cure_of_server(server)
                listing = await listed_by(connection)
        except McpError as error:
            end.come(str(error))
            listing = None
    if listing is not None:
        return [Finding("ok", ABOUT, f"{place}: starts, {offered(listing)}")]
    said = f": {end.complaints.last}" if end.complaints.last else ""
    return [Finding("wrong", ABOUT, f"{place}: {end.reason}{said}", cure)]


async def listed_by(connection: ServerConnection) -> ToolListing | None:
    """Ask for a server's tools; None if the connection comes to its end instead."""
    try:
        return await connection.list_tools()
    except McpError as error:
        connection.ending.come(str(error))
        return None


def offered(listing: ToolListing) -> str:
    """Say which tools a server has."""
    names = ", ".join(each.name for each in listing.tools)
    return f"and offers {one_line(names, LONGEST_LIST) or 'nothing'}"


def cure_of_server(server: McpServerConfig) -> str:
    """Say what to do about a server that ends too soon."""
    if server.url:
        return AT_ADDRESS
    files = [Path(each) for each in server.args if Path(each).is_absolute()]
    given = f'readable = ["{files[0].parent}"]' if files else "set readable"
    return f"if it runs by hand, let it read what it needs in the sandbox: {given}"
