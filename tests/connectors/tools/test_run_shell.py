"""Proves what the tool `run_shell` tells a model."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from actors.errors import ToolError
from actors.messages.inbound import Address, ToolCall, ToolContext, ToolResult
from connectors.config.tools import SandboxConfig, WorkspaceConfig
from connectors.sandbox.plan import SandboxError, Territory
from connectors.sandbox.runner import open_sandbox
from connectors.tools.run_shell import MOST_OUTPUT, RunShellTool
from connectors.tools.workspace.files import Desks
from tests.fakes.tools.sandbox import FakeSandbox

MOST = 1024 * 1024
"""Bytes that an agent's folder may hold here."""


@pytest.fixture
async def tool(tmp_path: Path) -> RunShellTool:
    land = Territory(kept=(tmp_path,), open_inside=(tmp_path / "workspace",))
    try:
        sandbox = await open_sandbox(SandboxConfig(), land)
    except SandboxError as error:
        pytest.skip(str(error))
    path = str(tmp_path / "workspace")
    return RunShellTool(
        sandbox, Desks(WorkspaceConfig(path=path, max_bytes=MOST, max_files=20))
    )


async def run(tool: RunShellTool, command: str, agent: str = "ben") -> ToolResult:
    context = ToolContext(
        agent=agent, correlation_id="c", address=Address("http", "1"), sender_id="sam"
    )
    arguments = msgspec.json.encode({"command": command, "timeout": 20})
    return await tool.run(ToolCall("id1", "run_shell", arguments), context)


async def test_the_exit_code_and_both_outputs_are_told(tool: RunShellTool) -> None:
    assert await run(tool, "echo fine; echo not so >&2; exit 4") == ToolResult(
        "exit code 4\nstdout:\nfine\nstderr:\nnot so", is_error=True
    )
    assert await run(tool, "true") == ToolResult("exit code 0, nothing was written")


async def test_each_agent_has_a_folder_of_its_own(
    tool: RunShellTool, tmp_path: Path
) -> None:
    await run(tool, "echo mine > note", "anna")
    assert (tmp_path / "workspace" / "anna" / "note").read_text() == "mine\n"
    assert (await run(tool, "cat note", "anna")).text.endswith("mine")
    result = await run(tool, "ls; cat ../anna/note", "ben")
    assert result.is_error
    assert "mine" not in result.text


async def test_a_program_may_reserve_addresses_as_node_does(tool: RunShellTool) -> None:
    far = "python3 -I -S -c 'import mmap; mmap.mmap(-1, 16 << 30)'"
    assert (await run(tool, far)).text == "exit code 0, nothing was written"


async def test_much_output_is_cut_in_the_middle(tool: RunShellTool) -> None:
    result = await run(tool, "seq 1 100000")
    assert len(result.text) < MOST_OUTPUT + 200
    assert result.text.startswith("exit code 0\nstdout:\n1\n2\n")
    assert "bytes left out" in result.text
    assert result.text.endswith("\n100000")


@pytest.mark.parametrize(
    ("command", "ending"),
    [
        ("kill -SEGV $$", "ended by signal 11"),
        ("yes", "ended: it wrote without end"),
        ("printf 'a\\377b'", "exit code 0\nstdout:\na�b"),
        ("cat /etc/shadow", "exit code 1\nstderr:\ncat: /etc/shadow: "),
    ],
)
async def test_how_it_ended_is_told_in_words(
    tool: RunShellTool, command: str, ending: str
) -> None:
    assert (await run(tool, command)).text.startswith(ending)


async def test_a_command_that_takes_too_long_is_ended(tool: RunShellTool) -> None:
    arguments = b'{"command": "echo begun; sleep 100", "timeout": 1}'
    context = ToolContext(
        agent="ben", correlation_id="c", address=Address("http", "1"), sender_id="sam"
    )
    result = await tool.run(ToolCall("id1", "run_shell", arguments), context)
    assert result.text == "ended after 1 s, unfinished\nstdout:\nbegun"
    assert result.is_error


async def test_a_command_takes_the_share_of_the_person_who_asked(
    tmp_path: Path,
) -> None:
    sandbox = FakeSandbox()
    await run(RunShellTool(sandbox, Desks(WorkspaceConfig(path=str(tmp_path)))), "true")
    assert sandbox.owners == ["http/sam"]


async def test_a_name_that_leads_out_of_the_workspace_is_refused(
    tool: RunShellTool,
) -> None:
    with pytest.raises(ToolError, match=r"the command was not run: .* no program may"):
        await run(tool, "true", agent="..")
    assert (await run(tool, "echo \0")).is_error


async def test_a_command_that_fills_the_folder_is_ended(
    tool: RunShellTool, tmp_path: Path
) -> None:
    fill = "for n in 1 2 3; do head -c 500000 /dev/zero > big$n; done"
    result = await run(tool, f"{fill}; sleep 100")
    assert result.is_error
    assert result.text.startswith("ended: your folder is full: 15")
    assert f"of {MOST} bytes" in result.text
    left = sum(f.stat().st_size for f in (tmp_path / "workspace/ben").iterdir())
    assert left == 1_500_000


@pytest.mark.parametrize(
    ("fill", "clear", "fault"),
    [
        ("for n in 1 2 3; do head -c 500000 /dev/zero > $n; done", "rm 1", "bytes"),
        ("seq 30 | xargs touch", "find . -type f -delete", "20 files"),
    ],
)
async def test_in_a_full_folder_a_command_may_only_remove(
    tool: RunShellTool, fill: str, clear: str, fault: str
) -> None:
    filled = await run(tool, fill)
    assert "your folder is full" in filled.text
    assert fault in filled.text
    assert "may only remove files" in filled.text
    refused = await run(tool, "cat 2; mkdir more; touch more; echo more >> 2")
    assert refused.is_error
    assert refused.text.count("denied") == 3
    assert "may only remove files" in refused.text
    cleared = await run(tool, clear)
    assert not cleared.is_error
    assert "full" not in cleared.text
    assert not (await run(tool, "echo more > more; cat more")).is_error


async def test_no_file_is_longer_than_there_is_room(tool: RunShellTool) -> None:
    await run(tool, "head -c 1000000 /dev/zero > first")
    result = await run(tool, "head -c 1000000 /dev/zero > second; wc -c < second")
    assert "stdout:\n48576" in result.text
