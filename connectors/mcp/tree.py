"""The actors of servers of tools: who starts whom, and how each is spoken to.

callboard/tools
├── servers
│   └── <server>        its two actors, started again as the settings say
│       ├── server
│       └── session
├── skills              likewise, of the skills in use
│   └── <skill>.<server>
└── starter             starts and stops those

What a server's program may read because its command names it: an operator who writes
`node dist/index.js` means that Node may read that file. Folders in arguments are not
given: they hold more than anybody has looked at.
"""

from __future__ import annotations

import importlib
import os
import shutil
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING

import trio

from actors import names
from connectors.mcp.messages import McpMissingError
from connectors.mcp.server import McpServer
from connectors.mcp.session import CallQueue, McpSession
from connectors.sandbox.orders import PATH
from connectors.sandbox.plan import LONG_RUNNING, Confinement
from runtime.supervision.child import ChildSpec
from runtime.supervision.restarts import Backoff
from runtime.supervision.supervisor import Supervisor, SupervisorConfig

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Iterator, Sequence
    from types import ModuleType

    from connectors.config.mcp import McpServerConfig
    from connectors.mcp.connection import Connect, ServerConnection, ServerEnd
    from connectors.mcp.metrics import McpFigures
    from connectors.mcp.stdio import Streams, Traffic
    from connectors.sandbox.runner import Sandbox


TOOLS = f"{names.ROOT}/tools"
SERVERS = f"{TOOLS}/servers"
SKILLS = f"{TOOLS}/skills"
STARTER = f"{TOOLS}/starter"

WIRE = "connectors.mcp.protocol"
"""Imported only when a server is started, in a thread: it takes a second and 30 MB."""

PIPES = "connectors.mcp.stdio"
STREAMS = "connectors.mcp.http"

LOADING = Lock()

HOMES = ".mcp"
"""In the agents' workspace; there each server has a folder of its own. No agent is
called so."""

# Chosen: a server that always fails is started at intervals that grow to a minute;
# it never takes others along, however long that goes on.
LONGEST_WAIT = 60.0
"""Seconds that no wait for a restart is longer than, unless `restart_first` is."""

NEVER_TOO_OFTEN = 1_000_000


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
        backoff = Backoff(
            first=config.restart_first,
            then=config.restart_first,
            maximum=max(LONGEST_WAIT, config.restart_first),
        )
        return Supervisor(
            children,
            SupervisorConfig("rest_for_one", NEVER_TOO_OFTEN, 60.0, backoff),
        )

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
        config: its settings.
        home: its current folder.
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


OF_INSTALLATIONS = ("pyvenv.cfg", "lib/python3*", "lib/node_modules")
"""One of these lies in a folder with a language of its own, beside its `bin`."""


def command_files(
    command: str, arguments: Sequence[str], folder: Path
) -> tuple[Path, ...]:
    """Find the program, what it was installed with, and files among its arguments."""
    found = [path for each in arguments if is_file(path := folder / each)]
    if os.sep in command:
        found += installed(folder / command)
    elif program := shutil.which(command, path=PATH):
        found += installed(Path(program))
    return tuple(dict.fromkeys(found))


def search_path(command: str) -> dict[str, str]:
    """Give the variable by which a program finds those it was installed with."""
    # Why: `npx` of a Node in somebody's own folder is a script that looks for `node`.
    is_path = os.sep in command
    return {"PATH": f"{Path(command).parent}:{PATH}"} if is_path else {}


def installed(program: Path) -> Iterator[Path]:
    """Find what a program needs of the folders around it, also behind its links."""
    if not is_file(program):
        return
    for path in (program, program.resolve()):
        prefix = path.parent.parent
        is_language = path.parent.name == "bin" and any(
            any(prefix.glob(each)) for each in OF_INSTALLATIONS
        )
        yield prefix if is_language and not is_personal(prefix) else path


def is_personal(folder: Path) -> bool:
    """Whether a folder holds what has nothing to do with any one program."""
    home = Path(os.path.expanduser("~"))  # noqa: PTH111  `Path.home` may raise
    return home.is_relative_to(folder) or folder == home / ".local"


def is_file(path: Path) -> bool:
    """Whether a path is a file's, as far as one may look."""
    try:
        return path.is_file()
    except OSError:
        return False
