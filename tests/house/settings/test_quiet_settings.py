"""Proves that mistakes in what agents do by the clock are found at load."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.connectors.config.test_settings import BASE, BASE_LINES, loaded, refused

CARA = "[agents.cara]\nprompt = 'x'\n"
BEAT = f"{CARA}[agents.cara.heartbeat]\n"
WEB = "[connectors.web]\nkind = 'http'\n"


@pytest.mark.parametrize(
    ("text", "place", "message", "hint"),
    [
        (
            "[scheduler.quiet]\nhours = ['22:00-25:00']",
            (2, 10),
            "scheduler.quiet.hours[0]: '22:00-25:00' are no hours of a day",
            "sat-sun",
        ),
        (
            "[scheduler.quiet]\nhours = ['00:00-24:00']",
            (2, 9),
            "scheduler.quiet.hours: no minute of the week is left",
            "is_on = false",
        ),
        (
            "[scheduler.quiet]\nhours = ['at night']",
            (2, 10),
            "scheduler.quiet.hours[0] must be",
            "",
        ),
        (
            "[scheduler]\ntime_zone = 'Mars'",
            (2, 13),
            "scheduler.time_zone: this machine knows no time zone 'Mars'",
            "Europe/Berlin",
        ),
        (
            "[scheduler]\nreport_to = 'terminal'",
            (2, 13),
            "scheduler.report_to: names no chat",
            "connector/chat",
        ),
        (
            f"{WEB}{BEAT}chat = 'web/room'",
            (6, 8),
            "agents.cara.heartbeat.chat: nobody can be told anything over HTTP",
            "name a chat",
        ),
        (
            f"{BEAT}chat = 'terminl/room'",
            (4, 8),
            "agents.cara.heartbeat.chat: there is no connector 'terminl'",
            "terminal",
        ),
        (
            f"{BEAT}model = 'scriptd'",
            (4, 9),
            "agents.cara.heartbeat.model: there is no model 'scriptd'",
            "scripted",
        ),
        (
            f"{BEAT}quiet = ['never', '22:00-07:00']",
            (4, 9),
            "agents.cara.heartbeat.quiet: 'never' stands beside hours",
            "take one",
        ),
        (
            f"{BEAT}file = '../HEARTBEAT.md'",
            (4, 8),
            "agents.cara.heartbeat.file must be",
            "",
        ),
        (
            f"{CARA}[agents.cara.scheduled]\nmodel = 'scriptd'",
            (4, 9),
            "agents.cara.scheduled.model: there is no model 'scriptd'",
            "scripted",
        ),
    ],
)
def test_a_mistake_is_told_with_its_place(
    tmp_path: Path, text: str, place: tuple[int, int], message: str, hint: str
) -> None:
    error = refused(tmp_path, BASE + text)
    assert error.text.startswith(message)
    assert (error.line - BASE_LINES, error.column) == place
    assert hint in str(error.hint)


def test_a_heartbeat_without_a_list_is_doubtful(tmp_path: Path) -> None:
    (warning,) = loaded(tmp_path, f"{BASE}{BEAT}chat = 'terminal/desk'").warnings
    assert "there is no folder for this file" in warning.text
    folder = tmp_path / "cara"
    folder.mkdir()
    (folder / "IDENTITY.md").write_text("I am Cara.", encoding="utf-8")
    (folder / "HEARTBEAT.md").write_text("- the oven", encoding="utf-8")
    agent = "[agents.cara]\npersona = 'cara'\n"
    (warning,) = loaded(tmp_path, BASE + agent).warnings
    assert "HEARTBEAT.md is read by nobody" in warning.text
    beat = "[agents.cara.heartbeat]\nchat = 'terminal/desk'\n"
    assert loaded(tmp_path, BASE + agent + beat).warnings == ()
    (warning,) = loaded(tmp_path, f"{BASE}{agent}{beat}file = 'LIST.md'").warnings[:1]
    assert "HEARTBEAT.md is read by nobody" in warning.text
    assert loaded(tmp_path, f"{BASE}{agent}{beat}quiet = ['never']").warnings == ()
