"""The operator's views in headless Chromium, against a company with a filled database.

What it proves is in `panels_browser.mjs`; `setup.sh` fetches Chromium and what drives
it. Its pictures are left in `.live/panels/`.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.desk import FAILED, WAITING, write_database

pytestmark = pytest.mark.live

ROOT = Path(__file__).parents[3]
LIVE = ROOT / ".live"
SCRIPT = Path(__file__).parent / "panels_browser.mjs"
CALLBOARD = [sys.executable, "-m", "connectors"]


@pytest.fixture
def settings(tmp_path: Path) -> Path:
    """Write settings as `config/page.toml`, on a free port, and fill the database."""
    database = write_database(tmp_path / "page.db")
    text = (ROOT / "config" / "page.toml").read_text(encoding="utf-8")
    text = text.replace('"var/page.db"', f'"{database}"')
    text = text.replace('kind = "page"', 'kind = "page"\nport = 0')
    for name in ("agents/anna", "agents/ben", "offline_script.toml"):
        text = text.replace(f'"{name}"', f'"{ROOT / "config" / name}"')
    path = tmp_path / "page.toml"
    path.write_text(text, encoding="utf-8")
    return path


@pytest.fixture
def address(settings: Path) -> Iterator[str]:
    """Serve the page."""
    command = [*CALLBOARD, "serve", "--config", str(settings)]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, encoding="utf-8", cwd=ROOT
    ) as server:
        assert server.stdout is not None
        line = server.stdout.readline()
        assert line, "it did not start"
        yield line.split()[-1]
        server.terminate()
        server.wait(30)


def test_the_views_work_in_a_browser(address: str, settings: Path) -> None:
    copy = LIVE / "panels_browser.mjs"  # beside the package that it imports
    shutil.copy(SCRIPT, copy)
    pictures = LIVE / "panels"
    pictures.mkdir(exist_ok=True)
    program = shutil.which("chromium") or os.environ.get("CHROMIUM", "chromium")
    login = [*CALLBOARD, "login", "--config", str(settings)]
    made = subprocess.run(
        login, capture_output=True, encoding="utf-8", check=True, cwd=ROOT
    )
    link = made.stdout.strip().rpartition("/")[2]
    run = subprocess.run(
        ["node", str(copy), program, address, str(pictures), link, FAILED, WAITING],  # noqa: S607
        capture_output=True,
        encoding="utf-8",
        timeout=110,
        check=False,
    )
    assert run.returncode == 0, run.stdout + run.stderr
    assert "steps" in run.stdout
