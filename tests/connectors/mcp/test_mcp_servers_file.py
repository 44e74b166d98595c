"""Proves that the file for programs that run models is there for one call only."""

from __future__ import annotations

import json
import stat
from pathlib import Path

import pytest
import trio

from connectors.app.program_servers import (
    ServersFileError,
    clear_stale,
    has_secrets,
    servers_file,
)
from connectors.config.mcp import McpServerConfig
from runtime.secret import OpenText, Secret

SERVERS = {
    "files": McpServerConfig(command="npx", args=("-y", "x"), env={"A": OpenText("b")}),
    "far": McpServerConfig(url="https://x/mcp", headers={"B": OpenText("c")}),
}


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


async def test_it_is_there_for_the_call_and_gone_after(tmp_path: Path) -> None:
    async with servers_file(tmp_path, SERVERS) as path:
        assert path is not None
        assert path.parent == tmp_path
        assert json.loads(path.read_text()) == {
            "mcpServers": {
                "files": {"command": "npx", "args": ["-y", "x"], "env": {"A": "b"}},
                "far": {"type": "http", "url": "https://x/mcp", "headers": {"B": "c"}},
            }
        }
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert names(tmp_path) == []


async def test_a_call_that_is_cancelled_leaves_nothing(tmp_path: Path) -> None:
    with trio.CancelScope() as scope:
        async with servers_file(tmp_path, SERVERS):
            scope.cancel()
            await trio.sleep_forever()
    assert names(tmp_path) == []


async def test_two_calls_in_one_folder_do_not_mix(tmp_path: Path) -> None:
    async with (
        servers_file(tmp_path, SERVERS) as one,
        servers_file(tmp_path, SERVERS) as other,
    ):
        assert one != other
    assert names(tmp_path) == []


async def test_without_servers_nothing_is_written(tmp_path: Path) -> None:
    async with servers_file(tmp_path, {}) as path:
        assert path is None
        assert names(tmp_path) == []


async def test_the_next_start_takes_away_what_a_crash_left(tmp_path: Path) -> None:
    async with servers_file(tmp_path, SERVERS) as path:
        assert path is not None
        left = path.read_text()
        name = path.name
    (tmp_path / name).write_text(left)  # and then the process ends
    (tmp_path / "mine.json").write_text("{}")
    assert clear_stale([tmp_path, tmp_path / "other"]) == 1
    assert names(tmp_path) == ["mine.json"]
    assert clear_stale([tmp_path]) == 0


async def test_whatever_the_program_puts_there_goes(tmp_path: Path) -> None:
    key = tmp_path / "key"
    key.write_text("very-secret-value")
    home = tmp_path / "home"
    home.mkdir()
    async with servers_file(home, SERVERS) as path:
        assert path is not None
        path.unlink()
        path.symlink_to(key)
    assert key.read_text() == "very-secret-value"
    async with servers_file(home, SERVERS) as path:
        assert path is not None
        path.unlink()
        (path / "deep").mkdir(parents=True)
    assert names(home) == []


async def test_a_folder_that_is_gone_is_told(tmp_path: Path) -> None:
    with pytest.raises(ServersFileError, match="cannot be written: No such file"):
        async with servers_file(tmp_path / "gone", SERVERS):
            pass


def test_a_server_with_a_secret_is_known() -> None:
    secret = McpServerConfig(
        command="x", env={"T": OpenText("", Secret("very-secret-value"))}
    )
    assert has_secrets(secret)
    assert not any(map(has_secrets, SERVERS.values()))
