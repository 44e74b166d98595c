"""Proves that what starts is small and loads nothing that it does not need.

How long it takes is measured by `python -m benchmarks start`.
"""

from __future__ import annotations

import contextlib
import resource
import signal
import subprocess
import sys
import tomllib
from pathlib import Path

import httpx
import pytest

from tests.processes.running import (
    COMMAND,
    PATIENCE,
    ROOT,
    environment,
    run,
    served,
    write_settings,
)

IDLE_BYTES = 65e6
"""Chosen: 60 MB, and a twelfth for what other builds of Python take."""


def resident_bytes(pid: int) -> int:
    """Tell how much memory a running process holds."""
    with open(f"/proc/{pid}/statm", encoding="ascii") as file:  # noqa: PTH123  no real file
        return int(file.read().split()[1]) * resource.getpagesize()


def test_the_version_is_told(tmp_path: Path) -> None:
    done = run("--version", folder=tmp_path)
    assert done.out.startswith("callboard ")
    assert (done.code, done.err) == (0, "")


FEW_MODULES = 100
"""Chosen: a quarter more than with Python 3.11 and 3.13, where 61 are Python's own."""


def loaded(module: str) -> set[str]:
    """Import a module in a process of its own; name the modules that this loads."""
    check = (
        f"import sys; before = {{*sys.modules}}; import {module};"
        " print(*sys.modules.keys() - before)"
    )
    done = subprocess.run(
        [sys.executable, "-c", check],
        env=environment({}),
        timeout=PATIENCE,
        check=True,
        stdout=subprocess.PIPE,
        encoding="utf-8",
    )
    return {*done.stdout.split()}


def test_to_tell_the_version_few_modules_are_loaded() -> None:
    found = loaded("connectors.cli") - {"httpx._main"}  # it stands for an empty one
    foreign = {name.partition(".")[0] for name in found} - sys.stdlib_module_names
    assert foreign == {"click", "connectors", "runtime"}
    assert len(found) <= FEW_MODULES


@pytest.mark.skipif(sys.platform != "linux", reason="reads Linux's /proc")
def test_a_server_that_is_ready_is_small(tmp_path: Path) -> None:
    sizes: list[int] = []
    for _ in range(2):  # the first start may have to compile its modules
        with served(tmp_path) as server:
            assert httpx.get(f"{server.url}/readyz").status_code == 200
            sizes.append(resident_bytes(server.process.pid))
    assert min(sizes) < IDLE_BYTES


@pytest.mark.parametrize(
    ("command", "needless"),
    [("serve", {"httpx"}), ("chat", {"httpx", "uvicorn", "starlette"})],
)
def test_what_is_offline_loads_no_http(command: str, needless: set[str]) -> None:
    terminal = "connectors.chat.terminal.transport"
    assert not needless & loaded(f"connectors.commands.{command}, {terminal}")


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
    usual = ("a new database was made", '"level":"INFO","part":"callboard.serve"')
    lines = [each for each in said.splitlines() if not any(x in each for x in usual)]
    assert not lines


AS_CTRL_C = """
import importlib, sys
class Interrupt:
    def find_spec(self, name, path=None, target=None):
        if name == "click":
            raise KeyboardInterrupt
sys.meta_path.insert(0, Interrupt())
module, _, name = sys.argv.pop().partition(":")
getattr(importlib.import_module(module), name)()
"""


def test_ctrl_c_while_the_program_is_loaded_shows_no_traceback() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    done = subprocess.run(
        [sys.executable, "-c", AS_CTRL_C, project["scripts"]["callboard"]],
        env=environment({}),
        capture_output=True,
        encoding="utf-8",
        timeout=PATIENCE,
        check=False,
    )
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "")


AS_ON_WINDOWS = """
import click, sys
MISSING = {"fcntl", "grp", "pwd", "resource", "termios"}
class Hidden:
    def find_spec(self, name, path=None, target=None):
        if name in MISSING:
            raise ModuleNotFoundError(name)
for each in MISSING:
    sys.modules.pop(each, None)
sys.meta_path.insert(0, Hidden())
sys.platform, sys.argv = "win32", ["callboard", "chat"]
from connectors.cli import main
main()
"""


def test_windows_is_told_of_wsl() -> None:
    done = subprocess.run(
        [sys.executable, "-c", AS_ON_WINDOWS],
        env=environment({}),
        capture_output=True,
        encoding="utf-8",
        timeout=PATIENCE,
        check=False,
    )
    assert (done.returncode, done.stdout) == (1, "")
    assert "Windows is not supported" in done.stderr
    assert "wsl --install" in done.stderr


AS_ON_MACOS = """
import os, resource, signal, socket, sys, sysconfig, types
import trio  # its loop is by what this machine has
MISSING = {
    os: "O_PATH O_TMPFILE copy_file_range eventfd fdatasync memfd_create pidfd_open "
    "posix_fadvise posix_fallocate sched_getaffinity splice unshare",
    resource: "prlimit",
    signal: "pidfd_send_signal",
    socket: "AF_NETLINK SO_PEERCRED",
}
for module, names in MISSING.items():
    for name in names.split():
        if hasattr(module, name):
            delattr(module, name)
opened = os.open
def without_proc(path, *more, **named):
    if str(path).startswith("/proc"):
        raise FileNotFoundError(2, "No such file or directory", path)
    return opened(path, *more, **named)
os.open = without_proc
sysconfig.get_config_vars()
proxies = sys.modules["_scproxy"] = types.ModuleType("_scproxy")
proxies._get_proxies = proxies._get_proxy_settings = dict
sys.platform = "darwin"
from connectors.cli import main
main()
"""


def test_macos_has_all_but_agents_programs(tmp_path: Path) -> None:
    told = {}
    for command, typed in (
        ("init --yes", ""),
        ("chat", "what is 12 * 7\n"),
        ("doctor", ""),
    ):
        done = subprocess.run(
            [sys.executable, "-c", AS_ON_MACOS, *command.split()],
            cwd=tmp_path,
            env=environment({}),
            input=typed,
            capture_output=True,
            encoding="utf-8",
            timeout=PATIENCE,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        told[command] = done.stdout
    assert "= 84" in told["chat"]
    assert "there is no sandbox for darwin" in told["doctor"]
