"""Five tasks of an operator by real clicks, no more than three each.

Also the page without scripts, on a slow network, and with its server killed. What it
proves is in `tasks.mjs`; `setup.sh` fetches Chromium and what drives it.
"""

from __future__ import annotations

import socket
import sys
from pathlib import Path

import pytest
import trio

from tests.pictures import drive, fill, write_settings
from tests.support.desk import FAILED

pytestmark = pytest.mark.live


def free_port() -> int:
    """Find a port that the server has again after it was killed."""
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        return int(listening.getsockname()[1])


def test_each_task_takes_three_clicks_at_most(tmp_path: Path) -> None:
    settings, port = write_settings(tmp_path), free_port()
    text = settings.read_text(encoding="utf-8").replace("port = 0", f"port = {port}")
    script = text.partition("script = ")[2].partition("\n")[0]
    more = f'\n[models.second]\nkind = "scripted"\nscript = {script}\n'
    settings.write_text(text + more, encoding="utf-8")
    trio.run(fill, tmp_path / "page.db")
    address = f"http://127.0.0.1:{port}"
    drive("tasks.mjs", sys.executable, str(settings), address, FAILED, seconds=200)
