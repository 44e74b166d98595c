"""The web page in headless Chromium, against a whole company with the embedded model.

What it proves is in `page_browser.mjs`; `setup.sh` fetches Chromium and what drives it.
Its pictures are left in `.live/page/`.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.pictures import LIVE, drive, login_link, serving, write_settings

pytestmark = pytest.mark.live


def test_the_page_works_in_a_browser(tmp_path: Path) -> None:
    settings = write_settings(tmp_path, more="")
    pictures = LIVE / "page"
    pictures.mkdir(exist_ok=True)
    with serving(settings) as address:
        links = [login_link(settings) for _ in range(3)]
        drive("page_browser.mjs", address, str(pictures), *links, seconds=110)
