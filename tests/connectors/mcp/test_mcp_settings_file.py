"""Proves that the file for programs that run models is there for one call only."""

from __future__ import annotations

import json
import os
import stat
from typing import TYPE_CHECKING

import pytest
import trio

from connectors.config.mcp import McpServerConfig
from connectors.mcp.settings_file import (
    OURS,
    SettingsFileError,
    clear_stale,
    settings_file,
    write,
)
from runtime.secret import OpenText, Secret

if TYPE_CHECKING:
    from pathlib import Path

SERVERS = {
    "files": McpServerConfig(command="npx", args=("-y", "x"), env={"A": OpenText("b")}),
    "far": McpServerConfig(url="https://x/mcp", headers={"B": OpenText("c")}),
    "secret": McpServerConfig(
        command="x", env={"T": OpenText("", Secret("very-secret-value"))}
    ),
}


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in (folder / ".claude").iterdir())


async def test_it_is_there_for_the_call_and_gone_after(tmp_path: Path) -> None:
    file = tmp_path / ".claude" / "settings.local.json"
    async with settings_file(tmp_path, SERVERS) as left_out:
        assert left_out == ("secret",)
        assert json.loads(file.read_text()) == {
            "mcpServers": {
                "files": {"command": "npx", "args": ["-y", "x"], "env": {"A": "b"}},
                "far": {"type": "http", "url": "https://x/mcp", "headers": {"B": "c"}},
            }
        }
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert names(tmp_path) == []


async def test_what_stood_there_comes_back(tmp_path: Path) -> None:
    file = tmp_path / ".claude" / "settings.local.json"
    file.parent.mkdir()
    file.write_text('{"mine": 1}')
    async with settings_file(tmp_path, SERVERS):
        assert "mine" not in file.read_text()
    assert file.read_text() == '{"mine": 1}'
    assert names(tmp_path) == ["settings.local.json"]


async def test_a_call_that_is_cancelled_leaves_nothing(tmp_path: Path) -> None:
    with trio.CancelScope() as scope:
        async with settings_file(tmp_path, SERVERS):
            scope.cancel()
            await trio.sleep_forever()
    assert names(tmp_path) == []


async def test_two_calls_in_one_folder_do_not_mix(tmp_path: Path) -> None:
    async with settings_file(tmp_path, SERVERS):
        with pytest.raises(SettingsFileError, match="in use for another call"):
            async with settings_file(tmp_path, SERVERS):
                pass
        assert "settings.local.json" in names(tmp_path)
    assert names(tmp_path) == []


async def test_without_servers_nothing_is_written(tmp_path: Path) -> None:
    async with settings_file(tmp_path, {"secret": SERVERS["secret"]}) as left_out:
        assert left_out == ("secret",)
    assert not (tmp_path / ".claude").exists()


@pytest.mark.parametrize("before", ["", '{"mine": 1}'])
def test_the_next_start_puts_right_what_a_crash_left(
    before: str, tmp_path: Path
) -> None:
    file = tmp_path / ".claude" / "settings.local.json"
    if before:
        file.parent.mkdir()
        file.write_text(before)
    write(tmp_path, b"{}")  # and then the process ends
    assert clear_stale([tmp_path, tmp_path / "other"]) == 1
    assert names(tmp_path) == (["settings.local.json"] if before else [])
    assert not before or file.read_text() == before
    assert clear_stale([tmp_path]) == 0


async def test_no_link_is_followed(tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (tmp_path / ".claude").symlink_to(elsewhere)
    with pytest.raises(SettingsFileError, match="is a link"):
        async with settings_file(tmp_path, SERVERS):
            pass
    assert list(elsewhere.iterdir()) == []


async def test_the_program_cannot_have_a_file_from_elsewhere_read_for_it(
    tmp_path: Path,
) -> None:
    key = tmp_path / "key"
    key.write_text("very-secret-value")
    home = tmp_path / "home"
    home.mkdir()
    kept = home / ".claude" / "settings.local.json.callboard"
    async with settings_file(home, SERVERS):
        kept.unlink()
        kept.symlink_to(key)
    assert names(home) == []
    assert key.read_text() == "very-secret-value"


@pytest.mark.parametrize("name", ["settings.local.json", OURS])
async def test_a_pipe_keeps_nobody_waiting(name: str, tmp_path: Path) -> None:
    folder = tmp_path / ".claude"
    folder.mkdir()
    with trio.fail_after(5):
        if name == OURS:
            async with settings_file(tmp_path, SERVERS):
                (folder / OURS).unlink()
                os.mkfifo(folder / OURS)
            assert names(tmp_path) == []
        else:
            os.mkfifo(folder / name)
            with pytest.raises(SettingsFileError, match="cannot be written"):
                async with settings_file(tmp_path, SERVERS):
                    pass


@pytest.mark.parametrize("name", [OURS, f"{OURS}.new", "settings.local.json.part"])
async def test_a_folder_in_the_place_of_our_mark_does_not_stay(
    name: str, tmp_path: Path
) -> None:
    async with settings_file(tmp_path, SERVERS):
        mark = tmp_path / ".claude" / name
        mark.unlink(missing_ok=True)
        (mark / "deep").mkdir(parents=True)
    async with settings_file(tmp_path, SERVERS) as left_out:
        assert left_out == ("secret",)
    assert names(tmp_path) == []
