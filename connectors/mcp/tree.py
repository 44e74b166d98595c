"""The actors of servers of tools: who starts whom, and how each is spoken to.

callboard/tools
├── servers
│   └── <server>        its two actors, started again as the settings say
│       ├── server
│       └── session
├── skills              likewise, of the skills in use
│   └── <skill>.<server>
└── starter             starts and stops those
"""

from __future__ import annotations

import importlib
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING

import trio

from actors import names
from connectors.mcp.connection import (
    Connect,
    McpMissingError,
    ServerConnection,
    ServerEnd,
)
from connectors.mcp.session import CallQueue, McpFigures, McpServer, McpSession
from connectors.sandbox.orders import command_files, search_path
from connectors.sandbox.plan import LONG_RUNNING, Confinement
from runtime.supervision.child import ChildSpec
from runtime.supervision.supervisor import Supervisor, endless

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator
    from types import ModuleType

    from connectors.config.mcp import McpServerConfig
    from connectors.mcp.stdio import Streams, Traffic
    from connectors.sandbox.runner import Sandbox


TOOLS = f"{names.ROOT}/tools"
SERVERS = f"{TOOLS}/servers"
SKILLS = f"{TOOLS}/skills"
STARTER = f"{TOOLS}/starter"

WIRE = "connectors.mcp.protocol"
"""Imported only when a server is started, in a thread: it takes a second and 30 MB."""

PIPES = "connectors.mcp.stdio"
STREAMS = "connectors.mcp.protocol"

LOADING = Lock()

HOMES = ".mcp"
"""In the agents' workspace; there each server has a folder of its own. No agent is
called so."""


def server_spec(
    name: str, config: McpServerConfig, connect: Connect, figures: McpFigures
) -> ChildSpec:
    """Say how the actors of a server are started."""

    def start() -> Supervisor:
        link = CallQueue(config.max_calls)
        children = (
            ChildSpec(name="server", start=lambda: McpServer(name, link, figures)),
            ChildSpec(
                name="session",
                start=lambda: McpSession(name, config, connect, link, figures),
                shutdown=10.0,
            ),
        )
        return Supervisor(children, endless(config.restart_first))

    return ChildSpec(name=name, start=start, shutdown=15.0)


def actor_of(above: str, name: str) -> str:
    """Name the actor of a server."""
    return f"{above}/{name}/server"


@dataclass(frozen=True)
class ServerSurroundings:
    """Where a server's program runs, if its settings do not say."""

    sandbox: Sandbox
    folder: Path
    is_writable: bool = True
    """Whether the folder is its own, and is made if it is missing."""


def home_of(workspace: Path, name: str) -> Path:
    """Give the folder of a server in the agents' workspace."""
    return workspace / HOMES / name


def connecting(
    name: str, config: McpServerConfig, ground: ServerSurroundings
) -> Connect:
    """Say how a server is spoken to."""
    if config.url:
        return partial(_connect, STREAMS, partial(_streamed, config))
    return partial(_connect, PIPES, partial(_piped, name, config, ground))


@asynccontextmanager
async def _connect(module: str, carry: object) -> AsyncGenerator[ServerConnection]:
    try:
        # Why in a thread: it must not keep every conversation waiting.
        wire = await trio.to_thread.run_sync(load, module)
    except ImportError as error:
        text = f"it needs the extra 'mcp': pip install 'callboard[mcp]' ({error})"
        raise McpMissingError(text) from error
    async with wire.connect(carry) as connection:
        yield connection


def load(module: str) -> ModuleType:
    """Load what speaks the protocol, and a module beside it; gives the former."""
    # Why: of two threads that load parts of the library, one finds them half loaded.
    with LOADING:
        importlib.import_module(module)
        return importlib.import_module(WIRE)


def _streamed(
    config: McpServerConfig, traffic: Traffic, ending: ServerEnd
) -> AbstractAsyncContextManager[Streams]:
    headers = {name: text.reveal() for name, text in config.headers.items()}
    timeout = max(config.call_timeout, config.start_timeout)
    streams: AbstractAsyncContextManager[Streams] = importlib.import_module(
        STREAMS
    ).streamed(config.url, headers, timeout, traffic, ending)
    return streams


@asynccontextmanager
async def _piped(
    name: str,
    config: McpServerConfig,
    ground: ServerSurroundings,
    traffic: Traffic,
    ending: ServerEnd,
) -> AsyncGenerator[Streams]:
    home = await trio.Path(config.cwd or ground.folder).absolute()
    is_writable = config.cwd is not None or ground.is_writable
    if config.cwd is None and is_writable:
        await home.mkdir(parents=True, exist_ok=True)
    env = {name: text.reveal() for name, text in config.env.items()}
    opened = ground.sandbox.open_process(
        (config.command, *config.args),
        confinement=confinement_of(config, Path(home), is_writable=is_writable),
        cwd=Path(home),
        env={**search_path(config.command), **env},
    )
    piped = importlib.import_module(PIPES).piped
    async with opened as program, piped(name, program, traffic, ending) as streams:
        yield streams


def confinement_of(
    config: McpServerConfig, home: Path, *, is_writable: bool
) -> Confinement:
    """Say what a server's program may do.

    Args:
        is_writable: whether it may write there. If not, a skill brought it, and what
            its command names is no operator's word.
    """
    readable = tuple(map(Path.absolute, config.readable))
    writable = tuple(map(Path.absolute, config.writable))
    named = command_files(config.command, config.args, home) if is_writable else (home,)
    return Confinement(
        readable=(*readable, *named),
        writable=(*writable, home) if is_writable else writable,
        network=config.network,
        limits=LONG_RUNNING,
    )
