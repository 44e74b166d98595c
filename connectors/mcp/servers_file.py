"""Servers of tools for a program that runs models itself, for one call.

Such a program is told of them by a file that a flag of its names, `--mcp-config` of
Claude Code. It is written before the call, under a name of its own, and taken away
after it. Should the process end in between, the next start takes it away
(`clear_stale`).
"""

from __future__ import annotations

import os
import shutil
import uuid
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING

import msgspec
import trio

from runtime.errors import KernelError

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Iterable, Mapping
    from pathlib import Path

    from connectors.config.mcp import McpServerConfig

PREFIX = ".callboard-servers-"


class ServersFileError(KernelError):
    """The file cannot be written."""


@asynccontextmanager
async def servers_file(
    folder: Path, servers: Mapping[str, McpServerConfig]
) -> AsyncGenerator[Path | None]:
    """Have the file there while the block runs; None without servers.

    Args:
        folder: in which the program runs.
        servers: by name.

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

    Args:
        folders: in which programs ran.

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
