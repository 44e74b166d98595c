"""Proves that agents are told on each platform how to write there."""

from __future__ import annotations

import pytest

from connectors.chat.platforms import platforms, reply_styles

STYLES = reply_styles()


@pytest.mark.parametrize("kind", [each.kind for each in platforms()])
def test_an_agent_is_told_how_to_write(kind: str) -> None:
    assert STYLES[kind].writing
