"""What is wrong with the settings of hooks is said before anything runs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from actors.config.agents import AgentConfig
from actors.hooks.chain import Event
from connectors.chat.terminal.platform import TerminalConfig
from connectors.config.app import AppConfig
from connectors.config.hooks import HookConfig
from connectors.hooks.tree import book_of
from connectors.settings.checks.tools import check_hooks

RECEIVED: Event = "message_received"
SENDING: Event = "message_sending"


def complaints(*events: Any, **fields: Any) -> list[str]:
    hook = HookConfig(events=events, **fields)
    config = AppConfig(
        agents={"anna": AgentConfig()},
        connectors={"terminal": TerminalConfig()},
        hooks={"words": hook},
    )
    return [each.text for each in check_hooks(config)]


def test_a_program_or_python_is_all_it_needs() -> None:
    assert complaints(RECEIVED, SENDING, command=("python3", "x.py")) == []
    assert complaints(SENDING, python="words", agents=("anna",)) == []


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({}, "give command or python"),
        ({"command": ("x",), "python": "y"}, "give command or python"),
        ({"command": (" ",)}, "names no program"),
        ({"python": "y", "folder": Path("x")}, "runs in this process"),
        ({"command": ("x",), "agents": ("anna",)}, "no agent's yet"),
        ({"command": ("x",), "connectors": ("irc",)}, "irc"),
    ],
)
def test_what_does_not_go_together_is_told(fields: dict[str, Any], words: str) -> None:
    assert any(words in each for each in complaints(RECEIVED, **fields))


def test_who_is_only_told_holds_nothing_back() -> None:
    found = complaints("turn_finished", command=("x",), on_failure="closed")
    assert found == ["it is only told of turns: there is nothing to hold back"]


def test_the_lowest_is_asked_first_and_who_is_disabled_never() -> None:
    def hook(order: int, **more: Any) -> HookConfig:
        return HookConfig(events=(SENDING,), python="x", order=order, **more)

    hooks = {"c": hook(0), "a": hook(5), "b": hook(0), "d": hook(-1, disabled=True)}
    assert [each.name for each in book_of(hooks).specs] == ["b", "c", "a"]
