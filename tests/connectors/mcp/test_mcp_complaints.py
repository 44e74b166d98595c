"""Proves what `callboard tools list` says of a server of tools that does not start."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from connectors.cli import run

pytest.importorskip("mcp", reason="the extra mcp is not installed")

OFFLINE = Path(__file__).parents[3] / "config" / "offline.toml"


def test_a_server_that_does_not_start_is_told_with_its_complaint(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "callboard.toml"
    file.write_text(
        f'include = ["{OFFLINE}"]\n[store]\npath = "{tmp_path}/state/board.db"\n'
        f'[workspace]\npath = "{tmp_path}/work"\n'
        '[mcpServers.mine]\ncommand = "python3"\nargs = ["gone.py"]\n'
        '[agents.cora]\nprompt = "x"\ntools = ["mcp:mine"]\n'
    )
    flags = ["--config", str(file), "--agent", "cora", "--json"]
    assert run(["tools", "list", *flags]) == 0
    note, complaint = json.loads(capsys.readouterr().out)["notes"]
    assert "ended with code 2" in note
    assert complaint.startswith("mine complained: ")
    assert "gone.py" in complaint
