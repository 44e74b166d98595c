"""The web page in headless Chromium, against a whole company with the embedded model.

What it proves is in `page_browser.mjs`; `setup.sh` fetches Chromium and what drives it.
Its pictures are left in `.live/page/`.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

pytestmark = pytest.mark.live

ROOT = Path(__file__).parents[3]
LIVE = ROOT / ".live"
SCRIPT = Path(__file__).parent / "page_browser.mjs"
CALLBOARD = [sys.executable, "-m", "connectors"]


@pytest.fixture
def settings(tmp_path: Path) -> Path:
    """Write settings as `config/page.toml`, on a free port."""
    text = (ROOT / "config" / "page.toml").read_text(encoding="utf-8")
    text = text.replace('"var/page.db"', f'"{tmp_path / "page.db"}"')
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


def link(settings: Path) -> str:
    """Have a link made; gives its last part."""
    command = [*CALLBOARD, "login", "--config", str(settings)]
    made = subprocess.run(
        command, capture_output=True, encoding="utf-8", check=True, cwd=ROOT
    )
    return made.stdout.strip().rpartition("/")[2]


def test_the_page_works_in_a_browser(address: str, settings: Path) -> None:
    copy = LIVE / "page_browser.mjs"  # beside the package that it imports
    shutil.copy(SCRIPT, copy)
    pictures = LIVE / "page"
    pictures.mkdir(exist_ok=True)
    program = shutil.which("chromium") or os.environ.get("CHROMIUM", "chromium")
    links = [link(settings) for _ in range(3)]
    run = subprocess.run(
        ["node", str(copy), program, address, str(pictures), *links],  # noqa: S607
        capture_output=True,
        encoding="utf-8",
        timeout=110,
        check=False,
    )
    assert run.returncode == 0, run.stdout + run.stderr
    assert "steps" in run.stdout
