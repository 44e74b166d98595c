"""What the sandbox's tests stand on: files that are given, files that are not."""

from __future__ import annotations

import json
import os
import socket
import sys
from collections.abc import Generator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from threading import Thread
from typing import Literal

import pytest
import trio

from connectors.config.tools import SandboxConfig
from connectors.sandbox.linux.seccomp import ARCHITECTURES
from connectors.sandbox.orders import Means
from connectors.sandbox.plan import (
    MIB,
    Confinement,
    SandboxError,
    SandboxLimits,
    Standing,
    Territory,
)
from connectors.sandbox.process import MOST_RUNNING, LaunchingSandbox
from connectors.sandbox.runner import open_sandbox

Kind = Literal["bubblewrap", "landlock"]

PYTHON = os.path.realpath(sys.executable)
SMALL = SandboxLimits(memory=1024 * MIB, cpu=20, processes=40, file_size=16 * MIB)

FOUND: dict[Kind, tuple[Standing, Means]] = {}
"""What each kind was found to be, tried once for all tests."""


@dataclass(frozen=True)
class Stage:
    """A folder with what is given and what is not."""

    folder: Path
    port: int
    other_port: int
    abstract: str

    @property
    def work(self) -> Path:
        """The folder that may be changed."""
        return self.folder / "work"

    @property
    def territory(self) -> Territory:
        """What is kept, as settings would say."""
        state = self.folder / "state"
        return Territory(kept=(state, self.folder / "callboard.toml"))

    def confinement(self, network: str = "none") -> Confinement:
        """What a test's program may do."""
        ports = {"tcp": "tcp", "port": frozenset({self.port})}
        return Confinement(
            readable=(self.folder / "readable",),
            writable=(self.work,),
            hidden=(
                self.folder / "readable" / "hidden",
                self.folder / "readable" / "cellar",
            ),
            network=ports.get(network, "none"),  # type: ignore[arg-type]
            limits=SMALL,
        )

    def given(self) -> str:
        """What escapes are told, as JSON."""
        return json.dumps(
            {
                "stage": str(self.folder),
                "outsider": os.getpid(),
                "numbers": ARCHITECTURES[os.uname().machine].numbers,
                "port": self.port,
                "other_port": self.other_port,
                "abstract": self.abstract,
            }
        )

    def seen(self) -> dict[str, tuple[int, int, int, bytes]]:
        """Everything outside of the folder that may be changed, to compare."""
        found: dict[str, tuple[int, int, int, bytes]] = {}
        for path in sorted(self.folder.rglob("*")):
            if path.is_relative_to(self.work):
                continue
            status = path.lstat()
            body = path.read_bytes() if path.is_file() else b""
            moment = 0 if path.is_dir() else status.st_mtime_ns
            found[str(path)] = (status.st_mode, status.st_uid, moment, body)
        return found


def answer(server: socket.socket) -> None:
    """Greet whoever connects, until the socket is closed."""
    while True:
        try:
            peer, _ = server.accept()
        except OSError:
            return
        with peer:
            peer.sendall(b"hello")


@contextmanager
def open_stage(folder: Path) -> Generator[Stage]:
    """Set everything up: files, sockets, servers."""
    for name in ("work", "readable/cellar", "state"):
        (folder / name).mkdir(parents=True)
    for name in (
        "secret", "callboard.toml", "readable/open", "readable/hidden",
        "readable/cellar/box", "state/callboard.db", "state/callboard.db-wal",
    ):  # fmt: skip
        (folder / name).write_text("the secret")
    abstract = f"callboard-{os.getpid()}-{folder.name}"
    with ExitStack() as stack:
        servers = [socket.create_server(("127.0.0.1", 0)) for _ in range(2)]
        for address in (f"\0{abstract}", str(folder / "socket")):
            server = socket.socket(socket.AF_UNIX)
            server.bind(address)
            server.listen()
            stack.enter_context(server)
        threads = [Thread(target=answer, args=(each,)) for each in servers]
        for thread in threads:
            thread.start()
        ports = [each.getsockname()[1] for each in servers]
        yield Stage(folder, ports[0], ports[1], abstract)
        for each, thread in zip(servers, threads, strict=True):
            each.shutdown(socket.SHUT_RDWR)
            each.close()
            thread.join()


def confining(kind: Kind, stage: Stage, needs: str = "") -> LaunchingSandbox:
    """Give a sandbox of a kind; where there is none, the test is left out.

    Args:
        kind: which.
        stage: what it must keep.
        needs: a protection without which there is nothing to test.
    """
    if kind not in FOUND:
        try:
            found = trio.run(open_sandbox, SandboxConfig(mode=kind), Territory())
        except SandboxError as error:
            pytest.skip(f"no {kind} here: {error}")
        FOUND[kind] = (found.standing, found._means)
    standing, means = FOUND[kind]
    if needs and not standing.features[needs]:
        said = [each for each in standing.missing if each.startswith(needs)]
        assert said, f"{needs} is missing, and nobody said so"
        pytest.skip(f"{kind}: {said[0]}")
    return LaunchingSandbox(standing, means, stage.territory)


def unconfined(stage: Stage, most: int = MOST_RUNNING) -> LaunchingSandbox:
    """Give no sandbox, but its launcher."""
    standing = Standing(kind="none", features={})
    return LaunchingSandbox(standing, Means(), stage.territory, most)
