"""Which servers of tools and skills a model is told of that is a program.

It starts the servers itself, in its sandbox: those that its agent lists, and those of
skills that the words call for. A file in its folder names them for the length of one
call. It reads the folders of its agent's skills by itself.

The file is written before the call, under a name of its own, and removed after it. If
the process ends in between, the next start removes it (`clear_stale`).
"""

from __future__ import annotations

import os
import shutil
import uuid
from collections.abc import AsyncGenerator, Iterable, Mapping
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import msgspec
import trio

from actors.messages.inbound import ModelRequest
from actors.rules.prompt import skills as rules, tools as tool_names
from connectors.app.tool_sources import allotted, brought_by, skills_of
from connectors.config.app import AppConfig
from connectors.config.mcp import McpServerConfig
from connectors.models.program import CallAids, Prepare
from runtime.errors import KernelError
from runtime.telemetry.logs import EventLog

PREFIX = ".callboard-servers-"


class ServersFileError(KernelError):
    """The file cannot be written."""


@asynccontextmanager
async def servers_file(
    folder: Path, servers: Mapping[str, McpServerConfig]
) -> AsyncGenerator[Path | None]:
    """Have the file there while the block runs; None without servers.

    Raises:
        ServersFileError: it cannot be written.
    """
    if not servers:
        yield None
        return
    path = folder / f"{PREFIX}{uuid.uuid4()}.json"
    content = msgspec.json.format(msgspec.json.encode(shape_of(servers)))
    try:
        await trio.to_thread.run_sync(write, path, content)
        yield path
    finally:
        # Why shielded: most calls that end early are cancelled.
        with trio.CancelScope(shield=True):
            await trio.to_thread.run_sync(discard, path)


def clear_stale(folders: Iterable[Path]) -> int:
    """Take away what the end of the process left; call it before any call.

    Returns:
        How many files there were.
    """
    stale = [path for folder in folders for path in folder.glob(f"{PREFIX}*")]
    for path in stale:
        discard(path)
    return len(stale)


def has_secrets(server: McpServerConfig) -> bool:
    """Tell whether a server is given secrets."""
    texts = (*server.env.values(), *server.headers.values())
    return any(text.is_secret for text in texts)


def shape_of(servers: Mapping[str, McpServerConfig]) -> dict[str, object]:
    """Write servers as other programs have them."""
    return {"mcpServers": {name: plain(each) for name, each in servers.items()}}


def plain(server: McpServerConfig) -> dict[str, object]:
    """Write one server as other programs have it."""
    if server.url:
        headers = {name: text.reveal() for name, text in server.headers.items()}
        found: dict[str, object] = {"type": "http", "url": server.url}
        return {**found, "headers": headers} if headers else found
    env = {name: text.reveal() for name, text in server.env.items()}
    found = {"command": server.command, "args": list(server.args)}
    return {**found, "env": env} if env else found


def write(path: Path, content: bytes) -> None:
    """Write a new file that nobody else may read.

    Raises:
        ServersFileError: it cannot be written.
    """
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    try:
        with os.fdopen(os.open(path, flags, 0o600), "wb") as file:
            file.write(content)
    except OSError as error:
        raise ServersFileError(f"{path} cannot be written: {error.strerror}") from error


def discard(path: Path) -> None:
    """Take away what has the file's name: the program may have put a folder there."""
    with suppress(OSError):
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink()


LOG = EventLog("cli")


def preparing(config: AppConfig, folder: Path) -> Prepare:
    """Make what puts the file there; put right what the last process left.

    Args:
        folder: where the folders of conversations are: `<agent>/<conversation>`.
    """
    told = ProgramServers(config)
    stale = clear_stale(folder.glob("*/*"))
    if stale:
        LOG.info("files of calls that were cut off taken away", count=stale)

    @asynccontextmanager
    async def prepare(request: ModelRequest, home: Path) -> AsyncGenerator[CallAids]:
        servers = told.servers(request)
        # The program's model could read them in its folder.
        secret = [name for name, each in servers.items() if has_secrets(each)]
        if secret:
            LOG.warning(
                "servers with secrets are not told to a program",
                agent=request.agent,
                servers=", ".join(secret),
            )
        rest = {name: each for name, each in servers.items() if name not in secret}
        async with servers_file(home, rest) as path:
            yield CallAids(path, told.folders(request.agent))

    return prepare


class ProgramServers:
    """The servers of each agent's programs."""

    def __init__(self, config: AppConfig) -> None:
        skills = skills_of(config)
        self._config = config
        self._servers = {
            name: each for name, each in config.mcp_servers.items() if not each.disabled
        }
        self._skills = allotted(config, skills)
        self._brought = brought_by(config, skills, self._servers)

    def folders(self, agent: str) -> tuple[Path, ...]:
        """Give the folders of an agent's skills, which its program reads by itself."""
        return tuple(each.path.absolute() for each in self._skills[agent].values())

    def servers(self, request: ModelRequest) -> dict[str, McpServerConfig]:
        """Give the servers for one answer, by name."""
        tools = self._config.agents[request.agent].tools
        wanted = {tool_names.server_of(each) for each in tools}
        found = {n: each for n, each in self._servers.items() if n in wanted}
        own = [folder.skill for folder in self._skills[request.agent].values()]
        most = self._config.skills.most_triggered
        for skill in rules.triggered(request.lines[-1].text, own, most):
            if skill.name in self._brought:
                found |= self._brought[skill.name].servers
        return found
