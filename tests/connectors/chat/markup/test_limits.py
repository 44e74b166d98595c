"""What platforms say of themselves agrees with itself, and with who cuts and writes."""

from __future__ import annotations

import pytest

from connectors.chat.platforms import PACKAGES, platform_in
from tests.support.chat.markup_texts import DIALECTS


@pytest.mark.parametrize("package", PACKAGES)
def test_replies_are_cut_below_what_is_taken(package: str) -> None:
    platform = platform_in(package)
    limits = platform.limits
    assert limits.part <= limits.text
    assert limits.caption <= limits.text
    assert limits.image_bytes <= limits.upload_bytes
    if platform.is_public:
        assert platform.reply_style is not None, "agents are told how to write there"


@pytest.mark.parametrize("package", PACKAGES)
def test_who_has_a_markup_has_a_dialect(package: str) -> None:
    platform = platform_in(package)
    has_markup = not platform.limits.measure.is_plain
    assert (platform.markup() is not None) == has_markup
    assert (platform.kind in DIALECTS) == has_markup
