"""Servers of tools for a program that runs models itself, for one call.

Such a program reads `.claude/settings.local.json` in its folder. The file is written
before the call and taken away after it; what stood there before comes back. Should
the process end in between, the next start puts things right (`clear_stale`).
"""

from __future__ import annotations

import errno
import os
import shutil
import stat
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING

import msgspec
import trio

from runtime.errors import KernelError

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Iterable, Mapping
    from pathlib import Path

    from connectors.config.mcp import McpServerConfig

FOLDER = ".claude"
FILE = "settings.local.json"
OURS = f"{FILE}.callboard"
"""Lies beside the file as long as it is ours; holds what stood there before."""

LARGEST = 1024 * 1024
"""Bytes of what stood there before; people's settings are a few thousand."""

NOTHING = b""
"""What `OURS` holds if nothing stood there before."""


class SettingsFileError(KernelError):
    """The file cannot be written, or is in use for another call."""


@asynccontextmanager
async def settings_file(
    workspace: Path, servers: Mapping[str, McpServerConfig]
) -> AsyncGenerator[tuple[str, ...]]:
    """Have the file there while the block runs; gives the servers left out.

    Left out are servers with secrets: the model could read them in its folder.

    Args:
        workspace: the folder in which the program runs.
        servers: by name; without any, nothing is written.

    Raises:
        SettingsFileError: it cannot be written, or is in use for another call.
    """
    told = {name: each for name, each in servers.items() if not has_secrets(each)}
    left_out = tuple(name for name in servers if name not in told)
    if not told:
        yield left_out
        return
    content = msgspec.json.format(msgspec.json.encode(shape_of(told)))
    await trio.to_thread.run_sync(write, workspace, content)
    try:
        yield left_out
    finally:
        # Why shielded: most calls that end early are cancelled.
        with trio.CancelScope(shield=True):
            await trio.to_thread.run_sync(restore, workspace)


def clear_stale(workspaces: Iterable[Path]) -> int:
    """Put right what the end of the process left; call it before any call.

    Args:
        workspaces: folders in which programs ran.

    Returns:
        In how many of them there was something to put right.
    """
    stale = [each for each in workspaces if os.path.lexists(each / FOLDER / OURS)]
    for workspace in stale:
        restore(workspace)
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


def write(workspace: Path, content: bytes) -> None:
    """Put the file there, and aside what stood there.

    Raises:
        SettingsFileError: it cannot be written, or is in use.
    """
    folder = workspace / FOLDER
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
        if folder.is_symlink() or (folder / FILE).is_symlink():
            raise SettingsFileError(f"{folder / FILE} is a link: take it away")
        before = read(folder / FILE) if os.path.lexists(folder / FILE) else NOTHING
        create(folder / OURS, before)
        replace(folder / FILE, content)
    except FileExistsError as error:
        text = f"{folder / FILE} is in use for another call"
        raise SettingsFileError(text) from error
    except OSError as error:
        text = f"{folder / FILE} cannot be written: {error.strerror}"
        raise SettingsFileError(text) from error


def read(path: Path) -> bytes:
    """Read a plain file of a folder in which programs write.

    What is put in its place must neither be followed out of the folder, nor keep
    us waiting.

    Raises:
        OSError: it cannot be read, is something else, or is too large.
    """
    # Why O_NONBLOCK: opening a pipe would wait for its other end.
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    with os.fdopen(os.open(path, flags), "rb") as file:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise OSError(errno.EINVAL, "it is no plain file")
        content = file.read(LARGEST + 1)
    if len(content) > LARGEST:
        raise OSError(errno.EFBIG, f"it is above {LARGEST} bytes")
    return content


def create(path: Path, content: bytes) -> None:
    """Write a file that must not be there yet, so that it is whole once it is there."""
    beside = path.with_name(f"{path.name}.new")
    discard(beside)
    store(beside, content)
    try:
        os.link(beside, path)  # unlike a renaming, this replaces nothing
    finally:
        beside.unlink()


def replace(path: Path, content: bytes) -> None:
    """Write a file as a whole, in the place of what stands there."""
    beside = path.with_name(f"{path.name}.part")
    discard(beside)
    store(beside, content)
    beside.replace(path)


def store(path: Path, content: bytes) -> None:
    """Write a new file that nobody else may read."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    with os.fdopen(os.open(path, flags, 0o600), "wb") as file:
        file.write(content)


def restore(workspace: Path) -> None:
    """Give back what stood there, and take our mark away last.

    Where a program has put something else in the mark's place, nothing comes back.
    """
    folder = workspace / FOLDER
    with suppress(OSError):
        if folder.is_symlink():
            return
        before = NOTHING
        with suppress(OSError):
            before = read(folder / OURS)
        if before == NOTHING:
            discard(folder / FILE)
        else:
            replace(folder / FILE, before)
        discard(folder / OURS)


def discard(path: Path) -> None:
    """Take away whatever has one of our names: a program may have put a folder there.

    Raises:
        OSError: it cannot be taken away.
    """
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)
