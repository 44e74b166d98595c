"""Proves that mistakes in routes and in the settings of groups are found at load."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.connectors.config.test_settings import BASE, BASE_LINES, loaded, refused

CARA = "[agents.cara]\nprompt = 'x'\n"
GROUPS = f"{CARA}[agents.cara.groups]\n"


@pytest.mark.parametrize(
    ("text", "place", "message", "hint"),
    [
        (
            "[[routes]]\nagent = 'anna'\nkind = 'direct'\nactivation = 'always'",
            (4, 14),
            'routes[0].activation: is about groups, and kind = "direct"',
            "take one of the two out",
        ),
        (
            "[[routes]]\nagent = 'anna'\nkind = 'groups'",
            (3, 8),
            "routes[0].kind must be",
            "did you mean 'group'?",
        ),
        (
            f"{GROUPS}check_model = 'scriptd'",
            (4, 15),
            "agents.cara.groups.check_model: there is no model 'scriptd'",
            "did you mean 'scripted'?",
        ),
        (
            f"{GROUPS}mention_patterns = ['x', ' ']",
            (4, 26),
            "agents.cara.groups.mention_patterns[1]: an empty pattern calls nobody",
            "take it out",
        ),
        (
            f"{GROUPS}reply_window = 1_000_000.0",
            (4, 16),
            "agents.cara.groups.reply_window must be",
            "for example: reply_window =",
        ),
        (
            f"{GROUPS}aktivation = 'always'",
            (4, 1),
            "unknown key 'aktivation' in agents.cara.groups",
            "did you mean 'activation'?",
        ),
    ],
)
def test_a_mistake_is_told_with_its_place(
    tmp_path: Path, text: str, place: tuple[int, int], message: str, hint: str
) -> None:
    error = refused(tmp_path, BASE + text)
    assert (error.line - BASE_LINES, error.column) == place
    assert error.text.startswith(message)
    assert hint in str(error.hint)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "[[routes]]\nagent = 'ben'\n[[routes]]\nagent = 'anna'\nchat = 'x'",
            "routes[1]: never counts: routes[0] comes first and fits it all",
        ),
        (
            f"{GROUPS}relevance_check = true",
            "agents.cara.groups.relevance_check: nothing is ever checked",
        ),
        (
            f"{GROUPS}activation = 'never'\nbroadcast_check = true",
            "agents.cara.groups.broadcast_check: nothing is ever checked",
        ),
        (
            "[collaboration]\nenabled = false\nvisible = true",
            "collaboration.visible: means nothing: enabled = false",
        ),
        (
            "[collaboration]\nenabled = false\nvisible_chats = ['terminal/x']",
            "collaboration.visible_chats: means nothing: enabled = false",
        ),
    ],
)
def test_what_comes_to_nothing_is_warned_of(
    tmp_path: Path, text: str, message: str
) -> None:
    (warning,) = loaded(tmp_path, BASE + text).warnings
    assert warning.text.startswith(message)


def test_a_route_may_have_the_silent_speak(tmp_path: Path) -> None:
    text = f"{GROUPS}activation = 'never'\nbroadcast_check = true\n"
    route = "[[routes]]\nagent = 'cara'\nactivation = 'mention'"
    assert loaded(tmp_path, BASE + text + route).warnings == ()


@pytest.mark.parametrize(
    "first", ["kind = 'direct'", "roles = ['mod']", "chat = 'y'", "connector = 't*'"]
)
def test_routes_that_leave_something_over_are_fine(tmp_path: Path, first: str) -> None:
    text = f"[[routes]]\nagent = 'ben'\n{first}\n[[routes]]\nagent = 'anna'"
    assert loaded(tmp_path, BASE + text).warnings == ()


def test_an_agent_takes_what_its_own_table_does_not_say_at_every_depth(
    tmp_path: Path,
) -> None:
    defaults = "[agent_defaults.groups]\nreply_window = 7.0\n"
    own = f"{GROUPS}activation = 'always'\n[agents.dan]\nprompt = 'x'"
    agents = loaded(tmp_path, BASE + defaults + own).value.agents
    assert agents["dan"].groups.reply_window == 7.0
    cara = agents["cara"].groups
    assert (cara.reply_window, cara.activation) == (7.0, "always")
