"""Proves that starting is quick and what runs is small.

Counts the time that the processor spends, not the time on the clock: a machine that
does other things meanwhile makes only the latter longer.
"""

from __future__ import annotations

import contextlib
import os
import resource
import signal
import subprocess
import sys
from typing import TYPE_CHECKING

import httpx
import pytest

from tests.processes.running import (
    COMMAND,
    PATIENCE,
    environment,
    run,
    served,
    write_settings,
)

if TYPE_CHECKING:
    from pathlib import Path

VERSION_SECONDS = 0.12
READY_SECONDS = 0.8
IDLE_BYTES = 60e6
TRIES = 4
"""A processor that others share works slower at times."""


def processor_seconds(pid: int) -> float:
    """Tell how long the processor has worked for a running process."""
    with open(f"/proc/{pid}/stat", encoding="ascii") as file:  # noqa: PTH123  no real file
        fields = file.read().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def resident_bytes(pid: int) -> int:
    """Tell how much memory a running process holds."""
    with open(f"/proc/{pid}/statm", encoding="ascii") as file:  # noqa: PTH123  no real file
        return int(file.read().split()[1]) * resource.getpagesize()


def used_by_children() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def test_the_version_comes_at_once(tmp_path: Path) -> None:
    seconds: list[float] = []
    for _ in range(3):
        before = used_by_children()
        done = run("--version", folder=tmp_path)
        seconds.append(used_by_children() - before)
        assert done.out.startswith("callboard ")
        assert (done.code, done.err) == (0, "")
    assert min(seconds) < VERSION_SECONDS


@pytest.mark.skipif(sys.platform != "linux", reason="reads Linux's /proc")
def test_a_server_is_ready_soon_and_small(tmp_path: Path) -> None:
    seconds: list[float] = []
    while not seconds or (min(seconds) >= READY_SECONDS and len(seconds) < TRIES):
        with served(tmp_path) as server:
            ready = httpx.get(f"{server.url}/readyz")
            assert ready.status_code == 200
            seconds.append(processor_seconds(server.process.pid))
            assert resident_bytes(server.process.pid) < IDLE_BYTES
    assert min(seconds) < READY_SECONDS


def test_what_is_offline_loads_no_http_client() -> None:
    check = "import sys, connectors.commands.serve; sys.exit('httpx' in sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", check],
        env=environment({}),
        timeout=PATIENCE,
        check=False,
    )
    assert done.returncode == 0


def test_the_http_client_brings_no_command_line_of_its_own() -> None:
    check = (
        "import sys, connectors.models.openai, httpx; httpx.AsyncClient();"
        " sys.exit(bool({'rich', 'pygments'} & sys.modules.keys()))"
    )
    done = subprocess.run(
        [sys.executable, "-c", check],
        env=environment({}),
        timeout=PATIENCE,
        check=False,
    )
    assert done.returncode == 0


@pytest.mark.parametrize("command", ["serve", "chat"])
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_it_can_be_ended_while_it_starts(
    number: signal.Signals, command: str, tmp_path: Path
) -> None:
    write_settings(tmp_path)
    with subprocess.Popen(
        [*COMMAND, command],
        cwd=tmp_path,
        env=environment({}),
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        encoding="utf-8",
    ) as process:
        while not (tmp_path / "callboard.db.lock").exists():
            with contextlib.suppress(subprocess.TimeoutExpired):
                assert process.wait(0.002) is None
        process.send_signal(number)
        _, said = process.communicate(timeout=PATIENCE)
    assert process.returncode in {0, 130, -number}
    lines = said.splitlines()
    assert not [each for each in lines if "a new database was made" not in each]
