"""Proves that a checklist is read as it is now, or refused with its file and reason."""

from __future__ import annotations

from pathlib import Path

import pytest

from actors.errors import ToolError
from connectors.settings.checks.schedule import MOST_BYTES, read_checklist


async def test_it_is_read_anew_each_time(tmp_path: Path) -> None:
    file = tmp_path / "HEARTBEAT.md"
    assert await read_checklist(file) == ""
    file.write_bytes(b"\xef\xbb\xbf- the oven\r\n")
    assert await read_checklist(file) == "- the oven\r\n"
    file.write_text("- the iron", encoding="utf-8")
    assert await read_checklist(file) == "- the iron"


@pytest.mark.parametrize(
    ("content", "why"),
    [(b"\xff\xfe", "is not UTF-8 text"), (b"x" * (MOST_BYTES + 1), "is longer than")],
)
async def test_what_cannot_be_a_list_is_refused(
    tmp_path: Path, content: bytes, why: str
) -> None:
    file = tmp_path / "HEARTBEAT.md"
    file.write_bytes(content)
    with pytest.raises(ToolError, match=why):
        await read_checklist(file)


async def test_a_folder_is_no_list(tmp_path: Path) -> None:
    with pytest.raises(ToolError, match="cannot be read"):
        await read_checklist(tmp_path)
