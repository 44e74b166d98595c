"""Proves what an agent may use while another one speaks to it."""

from __future__ import annotations

from typing import Any

import pytest

from actors.config.collaboration import ToolsThere
from actors.messages.inbound import ToolSpec
from actors.rules.prompt.tools import OF_COLLEAGUES, is_safe


def tool(name: str, effect: Any) -> ToolSpec:
    return ToolSpec(name, "", b"{}", effect=effect)


TOOLS = (
    tool("look", "read"),
    tool("note", "write"),
    tool("shell", "run"),
    tool("memory_search", "read"),
    tool("save_memory", "write"),
    *(tool(name, "read") for name in sorted(OF_COLLEAGUES)),
)


@pytest.mark.parametrize(
    ("there", "names"),
    [
        ("none", set[str]()),
        ("memory", {"memory_search", "save_memory"}),
        ("read", {"look", "memory_search"}),
    ],
)
def test_the_settings_say_which_are_left(there: ToolsThere, names: set[str]) -> None:
    assert {each.name for each in TOOLS if is_safe(each, there)} == names
