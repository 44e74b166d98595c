"""The table of what platforms take agrees with itself, and with who cuts and writes."""

from __future__ import annotations

import pytest

from actors.rules.manners import PLATFORMS
from actors.rules.measures import MEASURES
from connectors.chat.limits import LIMITS, Platform
from tests.markup_texts import DIALECTS


@pytest.mark.parametrize("platform", LIMITS)
def test_replies_are_cut_below_what_is_taken(platform: Platform) -> None:
    limits = LIMITS[platform]
    assert limits.part <= limits.text
    assert limits.caption <= limits.text
    assert limits.draft_pace <= limits.group_draft_pace
    assert limits.image_bytes <= limits.upload_bytes
    assert limits.markup in MEASURES
    assert platform in PLATFORMS, "agents are told how to write there"


def test_who_has_a_markup_has_a_dialect() -> None:
    markups = {limits.markup for limits in LIMITS.values()} - {""}
    assert markups == set(MEASURES) - {""} == set(DIALECTS) - {"plain"}
