"""Proves that a service manager learns when it is ready, lives, and ends."""

from __future__ import annotations

import signal
import socket
from pathlib import Path

import pytest

from connectors.commands.serve import ServiceNotifier
from tests.processes.running import PATIENCE, served


@pytest.mark.parametrize("is_abstract", [False, True])
async def test_systemd_is_told_how_it_goes(
    tmp_path: Path, *, is_abstract: bool
) -> None:
    place = f"@{tmp_path}/notify" if is_abstract else str(tmp_path / "notify")
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.bind(f"\0{place[1:]}" if is_abstract else place)
        manager.settimeout(PATIENCE)
        with served(tmp_path, NOTIFY_SOCKET=place, WATCHDOG_USEC="300000") as server:
            said: list[bytes] = []
            # On a busy machine it beats several times before it is ready.
            while said.count(b"READY=1") < 1 or said.count(b"WATCHDOG=1") < 3:
                said.append(manager.recv(100))
            assert set(said) == {b"READY=1", b"WATCHDOG=1"}
            assert said.count(b"READY=1") == 1
            assert await server.end(signal.SIGTERM) == 0
        while (last := manager.recv(100)) != b"STOPPING=1":
            assert last == b"WATCHDOG=1"


def test_no_program_of_an_agent_can_speak_for_the_service() -> None:
    environment = {"NOTIFY_SOCKET": "/none", "WATCHDOG_USEC": "1", "HOME": "/root"}
    ServiceNotifier(environment).tell("READY=1")
    assert environment == {"HOME": "/root"}


async def test_without_a_manager_it_beats_for_nobody() -> None:
    await ServiceNotifier({}).beat()
    await ServiceNotifier({"NOTIFY_SOCKET": "/none"}).beat()
    other = {"NOTIFY_SOCKET": "/none", "WATCHDOG_USEC": "5", "WATCHDOG_PID": "1"}
    await ServiceNotifier(other).beat()
