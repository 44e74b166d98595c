"""Starts this program as people do, in a process of its own, and ends it by its id.

Nothing here sleeps: a server is waited for by the line it prints, a process by its
end, and each wait has a limit after which the test fails.
"""

# apsw's stubs name `collections.abc.Buffer`, which Python 3.11 has not got yet:
# pyright: reportUnknownMemberType=false

from __future__ import annotations

import io
import os
import select
import signal
import subprocess
import sys
from collections.abc import Generator, Mapping
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path

import apsw
import pytest
import trio

from connectors import cli

ROOT = Path(__file__).parents[2]
OFFLINE = ROOT / "config" / "offline.toml"
COMMAND = (sys.executable, "-m", "connectors")

PATIENCE = 30.0
"""Seconds after which anything counts as hanging; a busy machine needs a few."""

SETTINGS = """
default_agent = "anna"

# No line waits for others.
log = {{ format = "json", pace = 0.0 }}

[store]
path = "callboard.db"

[models.scripted]
kind = "scripted"
script = "script.toml"

[connectors.http]
kind = "http"
port = 0
{http}

[agents.anna]
prompt = "You are Anna."
delegates = ["ben"]

[agents.ben]
prompt = "You are Ben."
tools = ["calculate"]

{more}
"""

SCRIPT = r"""
[default]
reply = "you said {0}"

[[rule]]
pattern = '\Aslowly (?P<words>.+)'
reply = "{words}"
word_delay = 0.1

[[rule]]
pattern = '\Alater (?P<words>.+)'
reply = "{words}"
delay = 0.5

[[rule]]
pattern = '\Anever'
fail = "hang"

[[rule]]
pattern = '\Abreak'
fail = "refused"

[[rule]]
agent = "anna"
pattern = '\Asum (?P<sum>.+)'
reply = "That is one for Ben."
delegate = { agent = "ben", task = "work out {sum}" }

[[rule]]
agent = "ben"
pattern = '\Awork out (?P<sum>.+)'
tool = [{ name = "calculate", arguments = { expression = "{sum}" } }]

[[rule]]
on_tool = "calculate"
reply = "{0}"
"""


WITH_TERMINAL = """
import fcntl, os, sys, termios
os.setsid()
fcntl.ioctl(0, termios.TIOCSCTTY, 0)
os.execv(sys.argv[1], sys.argv[1:])
"""


@dataclass(frozen=True)
class Finished:
    """What a command that has ended said, and how it ended."""

    code: int
    out: str
    err: str

    @property
    def said(self) -> str:
        """All it wrote, for looking for what must not be there."""
        return self.out + self.err


@dataclass(frozen=True)
class Server:
    """A `callboard serve` that listens."""

    url: str
    process: subprocess.Popen[str]
    folder: Path

    @property
    def log(self) -> str:
        """All it has written to standard error so far."""
        return (self.folder / "stderr").read_text(encoding="utf-8")

    @property
    def address(self) -> tuple[str, int]:
        """Host and port."""
        host, _, port = self.url.removeprefix("http://").rpartition(":")
        return host, int(port)

    async def end(self, number: signal.Signals = signal.SIGTERM) -> int:
        """Send it a signal and wait for its end; gives the exit code."""
        self.process.send_signal(number)
        return await self.wait()

    async def wait(self) -> int:
        """Wait for its end; gives the exit code."""
        return await trio.to_thread.run_sync(self.process.wait, PATIENCE)


def environment(extra: Mapping[str, str], admin_port: int = 0) -> dict[str, str]:
    """Give what a process of ours is started with: this source, and no settings.

    Args:
        extra: further variables.
        admin_port: where operators look; 0: nowhere, as many servers run at once.
    """
    admin = {"CALLBOARD_ADMIN__IS_ON": "false"}
    if admin_port:
        admin = {"CALLBOARD_ADMIN__IS_ON": "true"}
        admin["CALLBOARD_ADMIN__PORT"] = str(admin_port)
    kept = {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ}
    return (
        kept
        | {"PYTHONPATH": str(ROOT), "TERM": "xterm", "STATE_DIRECTORY": "."}
        | admin
        | dict(extra)
    )


def write_settings(
    folder: Path, *, http: str = "", more: str = "", script: str = SCRIPT
) -> Path:
    """Write a settings file with two scripted agents and HTTP on any free port."""
    folder.mkdir(exist_ok=True)
    path = folder / "callboard.toml"
    path.write_text(SETTINGS.format(http=http, more=more), encoding="utf-8")
    path.with_name("script.toml").write_text(script, encoding="utf-8")
    return path


def run(
    *arguments: str,
    folder: Path,
    typed: str = "",
    admin_port: int = 0,
    **variables: str,
) -> Finished:
    """Run one command to its end, with `typed` as its standard input."""
    done = subprocess.run(
        [*COMMAND, *arguments],
        cwd=folder,
        env=environment(variables, admin_port),
        input=typed,
        capture_output=True,
        encoding="utf-8",
        timeout=PATIENCE,
        check=False,
    )
    return Finished(done.returncode, done.stdout, done.stderr)


def run_here(
    *arguments: str, folder: Path, admin_port: int = 0, **variables: str
) -> Finished:
    """Run one command to its end in this process, which costs a tenth of a start.

    For commands that read no standard input and end by themselves; nothing but a test's
    time limit ends one that hangs. Of each file of tests one at least starts a process:
    only there all is imported anew. Variables, folder and output are those of the whole
    process: what a test does beside it must not depend on them.
    """
    out, err = (io.TextIOWrapper(io.BytesIO(), "utf-8") for _ in range(2))
    with (
        pytest.MonkeyPatch.context() as patch,
        redirect_stdout(out),
        redirect_stderr(err),
    ):
        patch.chdir(folder)
        for name in tuple(os.environ):
            patch.delenv(name)
        for name, value in environment(variables, admin_port).items():
            patch.setenv(name, value)
        code = cli.run(list(arguments))
    return Finished(code, text_of(out), text_of(err))


def text_of(stream: io.TextIOWrapper) -> str:
    """Give all that was written to a stream in memory."""
    stream.seek(0)
    return stream.read()


@contextmanager
def served(
    folder: Path,
    *,
    http: str = "",
    more: str = "",
    script: str = SCRIPT,
    terminal: int | None = None,
    admin_port: int = 0,
    **variables: str,
) -> Generator[Server]:
    """Run `callboard serve` during the block; killed after it if it still runs.

    Args:
        folder: its current directory, where settings, database and `stderr` lie; one
            that was used before is gone on with.
        http: further lines of `[connectors.http]`.
        more: further tables.
        script: what the model says.
        terminal: a terminal that is to be its own; None: it has ours, if we have one.
        admin_port: where operators look; 0: nowhere.
        variables: of its environment.
    """
    starts = () if terminal is None else (sys.executable, "-c", WITH_TERMINAL)
    path = write_settings(folder, http=http, more=more, script=script)
    with (
        (folder / "stderr").open("a", encoding="utf-8") as stderr,
        subprocess.Popen(
            [*starts, *COMMAND, "serve", "--config", path.name],
            cwd=folder,
            env=environment(variables, admin_port),
            stdin=subprocess.DEVNULL if terminal is None else terminal,
            stdout=subprocess.PIPE,
            stderr=stderr,
            encoding="utf-8",
        ) as process,
    ):
        try:
            yield Server(read_address(process, folder), process, folder)
        finally:
            process.kill()


def read_address(process: subprocess.Popen[str], folder: Path) -> str:
    """Wait until a server has said where it listens."""
    assert process.stdout is not None
    ready, _, _ = select.select([process.stdout], [], [], PATIENCE)
    line = process.stdout.readline() if ready else ""
    assert "listening on " in line, (folder / "stderr").read_text()
    address = line.split()[-1]
    return address if "://" in address else f"http://{address}"  # it stands by


def rows(folder: Path, query: str) -> list[tuple[object, ...]]:
    """Read a server's database without touching it."""
    uri = f"file:{folder / 'callboard.db'}?mode=ro"
    flags = apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI
    db = apsw.Connection(uri, flags=flags)
    try:
        return list(db.execute(query))
    finally:
        db.close()
