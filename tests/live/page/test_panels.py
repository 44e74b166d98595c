"""The operator's views in headless Chromium, against a company with a filled database.

What it proves is in `panels_browser.mjs`; `setup.sh` fetches Chromium and what drives
it. Its pictures are left in `.live/panels/`.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.pictures import LIVE, drive, login_link, serving, write_settings
from tests.support.desk import FAILED, WAITING, write_database

pytestmark = pytest.mark.live


def test_the_views_work_in_a_browser(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    write_database(tmp_path / "page.db")
    settings = write_settings(tmp_path, more="")
    pictures = LIVE / "panels"
    pictures.mkdir(exist_ok=True)
    with serving(settings) as address:
        given = address, str(pictures), login_link(settings), FAILED, WAITING
        drive("panels_browser.mjs", *given, seconds=110)
    assert "steps" in capfd.readouterr().out
