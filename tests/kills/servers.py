"""`callboard serve` in a process that dies again and again, on one database."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import msgspec
import trio

from runtime.clock import SystemClock
from tests.kills import points
from tests.kills.wire import request
from tests.processes.running import PATIENCE, environment

SETTINGS = """
default_agent = "anna"

[log]
format = "json"
level = "error"

[store]
path = "callboard.db"

# Each death costs the messages under way one attempt, and there are many deaths.
[retries]
attempts = 20
first_wait = 0.05
longest_wait = 0.05

# What streams and is not asked for again piles up from one death to the next.
[limits]
drain_timeout = 1.0
max_waiting = 1000

[models.main]
{model}

[connectors.http]
kind = "http"
port = 0

{account}
[agents.anna]
model = "main"
prompt = "You are Anna."
tools = ["calculate"]
"""

PLAIN = """
[connectors.plain]
kind = "terminal"
"""

SCRIPTED = """
kind = "scripted"
script = "script.toml"
"""

ASKED = """
kind = "openai"
model = "any"
base_url = "{url}"
"""

SCRIPT = r"""
[default]
reply = "you said {0}"
delay = 0.01
word_delay = 0.002

[[rule]]
pattern = '\Asum (?P<sum>.+)'
tool = [{ name = "calculate", arguments = { expression = "{sum}" } }]
delay = 0.005

[[rule]]
on_tool = "calculate"
reply = "{0}"
delay = 0.005
"""

KILLED = -9


class Life(msgspec.Struct):
    """One process, from its start to its end."""

    began: float
    """Unix seconds."""

    ended: float = 0.0
    """Unix seconds; 0 while it runs."""

    ready_after: float = 0.0
    """Seconds from its start until it was ready; 0: it never was."""

    pid: int = 0


class Server:
    """A process that is running, or was."""

    def __init__(self, process: trio.Process, number: int, life: Life) -> None:
        self.process = process
        self.number = number
        self.life = life
        self.address = ("", 0)
        self.gone = trio.Event()

    def kill(self) -> None:
        """End it as the machine's end would."""
        self.process.kill()

    async def wait_ready(self) -> bool:
        """Wait until it takes messages; False if it ended before."""
        said = b""
        assert self.process.stdout is not None
        while not said.endswith(b"\n"):
            more = await self.process.stdout.receive_some()
            if not more:
                return False
            said += bytes(more)
        host, _, port = (
            said.decode().split()[-1].removeprefix("http://").rpartition(":")
        )
        self.address = (host, int(port))
        while not self.gone.is_set():
            answer = await request(self.address, "GET /readyz")
            if answer is not None and answer.status == 200:
                return True
            if answer is None and await self.wait_gone(0.01):
                return False
        return False

    async def wait_gone(self, seconds: float) -> bool:
        """Wait for its end, but not longer; tells whether it came."""
        with trio.move_on_after(seconds):
            await self.gone.wait()
        return self.gone.is_set()


class Servers:
    """The processes on one database, one after the other.

    Args:
        folder: where settings, database and standard error lie.
        provider_url: of the provider for those points that need one.
        platform_port: of a platform without ids; 0: people use HTTP.
    """

    def __init__(self, folder: Path, provider_url: str, platform_port: int = 0) -> None:
        self.folder = folder
        self.lives: list[Life] = []
        self._provider_url = provider_url
        self._platform_port = platform_port
        self._now: Server | None = None
        self._is_up = trio.Event()
        (folder / "script.toml").write_text(SCRIPT, encoding="utf-8")

    @property
    def log(self) -> str:
        """All that any of them has written to standard error."""
        return (self.folder / "stderr").read_text(encoding="utf-8")

    async def wait_up(self) -> Server:
        """Wait until one takes messages."""
        while self._now is None or self._now.gone.is_set():
            await self._is_up.wait()
        return self._now

    async def start(
        self, nursery: trio.Nursery, point: str = points.ANY, number: int = 1
    ) -> Server:
        """Start a process; the nursery waits for its end."""
        asks = point in {points.MODEL_CALL, points.TOOL_CALLS}
        model = ASKED.format(url=self._provider_url) if asks else SCRIPTED
        settings = self.folder / "callboard.toml"
        account = PLAIN if self._platform_port else ""
        text = SETTINGS.format(model=model, account=account)
        settings.write_text(text, encoding="utf-8")
        command = self._command(settings.name, point, str(number))
        life = Life(began=SystemClock().wall())
        with (self.folder / "stderr").open("ab") as stderr:
            process = await trio.lowlevel.open_process(
                [sys.executable, "-m", *command],
                cwd=self.folder,
                env=environment({}),
                stdout=subprocess.PIPE,
                stderr=stderr,
            )
        life.pid = process.pid
        server = Server(process, len(self.lives), life)
        self.lives.append(life)
        nursery.start_soon(self._see_off, server)
        return server

    def _command(self, settings: str, point: str, number: str) -> list[str]:
        dies_by_itself = point in points.COMMITS or point == points.SHUTDOWN
        if self._platform_port:
            where = point if dies_by_itself else ""
            port = str(self._platform_port)
            return ["tests.kills.plain", port, where, number, settings]
        serve = ["serve", "--config", settings]
        if dies_by_itself:
            return ["tests.kills.victim", point, number, *serve]
        return ["connectors", *serve]

    async def wait_ready(self, server: Server) -> bool:
        """Wait until a process takes messages, and let people talk to it."""
        began = trio.current_time()
        with trio.fail_after(PATIENCE):
            is_ready = await server.wait_ready()
        if is_ready:
            server.life.ready_after = trio.current_time() - began
            self._now = server
            self._is_up.set()
            self._is_up = trio.Event()
        return is_ready

    async def _see_off(self, server: Server) -> None:
        """Wait for a process's end, and bring it about if the test ends first."""
        try:
            await server.process.wait()
        finally:
            server.kill()
            with trio.CancelScope(shield=True):
                await server.process.wait()
                if server.process.stdout is not None:
                    await server.process.stdout.aclose()
            server.life.ended = SystemClock().wall()
            server.gone.set()
