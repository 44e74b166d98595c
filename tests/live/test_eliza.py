"""The official client of the ElizaOS API, unmodified, against a whole company.

What it proves is in `eliza_client.mjs`; `setup.sh` fetches the clients.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.live

ROOT = Path(__file__).parent.parent.parent
LIVE = ROOT / ".live"
SCRIPT = Path(__file__).parent / "eliza_client.mjs"


@pytest.fixture
def address(tmp_path: Path) -> Iterator[str]:
    """Serve the agents of `config/web.toml` on a free port."""
    text = (ROOT / "config" / "web.toml").read_text(encoding="utf-8")
    text = text.replace('"var/web.db"', f'"{tmp_path / "web.db"}"')
    own = f'kind = "web"\nport = 0\nuploads = "{tmp_path / "uploads"}"'
    text = text.replace('kind = "web"', own)
    for name in ("agents/anna", "agents/ben", "offline_script.toml"):
        text = text.replace(f'"{name}"', f'"{ROOT / "config" / name}"')
    settings = tmp_path / "web.toml"
    settings.write_text(text, encoding="utf-8")
    command = [sys.executable, "-m", "connectors", "serve", "--config", str(settings)]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, encoding="utf-8", cwd=ROOT
    ) as server:
        assert server.stdout is not None
        yield server.stdout.readline().split()[-1]
        server.terminate()
        server.wait(30)


def test_the_official_clients_find_all_that_they_ask_for(address: str) -> None:
    copy = LIVE / "eliza_client.mjs"  # beside the packages that it imports
    shutil.copy(SCRIPT, copy)
    run = subprocess.run(
        ["node", str(copy), address],  # noqa: S607
        capture_output=True,
        encoding="utf-8",
        timeout=110,
        check=False,
    )
    assert run.returncode == 0, run.stdout + run.stderr
    assert "steps" in run.stdout
