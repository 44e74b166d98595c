"""Every view in headless Chromium: light, dark, on a phone, and checked by axe-core.

What it proves is in `pictures.mjs`; `setup.sh` fetches Chromium and axe-core. The
pictures are left in `.live/pictures/`.
"""

from __future__ import annotations

import pytest

from tests.pictures import LIVE, take

pytestmark = pytest.mark.live


@pytest.mark.timeout(400)
def test_every_view_fits_and_can_be_used_by_everybody() -> None:
    take(LIVE / "pictures")
