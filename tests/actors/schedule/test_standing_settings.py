"""Proves that mistakes in what an agent is to do by itself are found at load."""

from __future__ import annotations

from pathlib import Path

import pytest

from actors.messages.inbound import Address
from actors.schedule.appointments import name_of
from connectors.settings.checks.schedule import standing_of
from tests.connectors.config.test_settings import BASE, loaded, refused

OWN = "[agents.cara]\nprompt = 'x'\n[agents.cara.autonomous]\n"
WHERE = "report_to = 'terminal/terminal'\n"
WEB = "[connectors.web]\nkind = 'http'\n"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("repeat = 'every 6h'", "report_to: names no chat"),
        ("repeat = 'every 6h'\nreport_to = 'terminal'", "report_to: names no chat"),
        (
            "repeat = 'every 6h'\nreport_to = 'termnal/a'",
            "report_to: there is no connector 'termnal'",
        ),
        (
            f"repeat = 'every 6h'\nreport_to = 'web/a'\n{WEB}",
            "report_to: nobody can be told over HTTP",
        ),
        (f"{WHERE}repeat = 'sometimes'", "repeat: 'sometimes' is no rule"),
        (f"{WHERE}repeat = 'once'", "repeat: 'once' is once"),
        (f"{WHERE}repeat = 'every 5s'", "repeat: comes more often than every 60"),
        ("planner = 'scriptd'", "planner: there is no model 'scriptd'"),
        ("executor = 'scriptd'", "executor: there is no model 'scriptd'"),
        ("run_tokens = 10", "run_tokens must be"),
        ("planner_timeout = 0", "planner_timeout must be"),
    ],
)
def test_a_mistake_is_told_with_its_place(
    tmp_path: Path, text: str, message: str
) -> None:
    error = refused(tmp_path, f"{BASE}{OWN}{text}")
    assert error.text.startswith(f"agents.cara.autonomous.{message}")


def test_a_chat_that_nobody_reports_to_is_warned_of(tmp_path: Path) -> None:
    settings = loaded(tmp_path, f"{BASE}{OWN}{WHERE}")
    (warning,) = settings.warnings
    assert "the agent does nothing by itself" in warning.text
    assert standing_of(settings.value) == {}


def test_what_is_wanted_becomes_an_appointment(tmp_path: Path) -> None:
    own = f"{OWN}{WHERE}repeat = 'every 2 hours'\ngoal = 'the roses'\nrun_tokens = 5000"
    app = loaded(tmp_path, BASE + own).value
    ((name, it),) = standing_of(app).items()
    assert name == name_of("autonomous", "cara")
    assert (it.kind, it.agent, it.repeat) == ("autonomous", "cara", "every 2h")
    assert it.address == Address("terminal", "terminal")
    assert (it.sender_id, it.platform, it.tokens) == ("terminal", "terminal", 5000)
    assert it.text == "the roses"


@pytest.mark.parametrize(
    ("text", "sender"),
    [("in_group = true", ""), ("in_group = true\non_behalf_of = 'zoe'", "zoe")],
)
def test_in_a_group_it_is_done_for_nobody_unless_told(
    tmp_path: Path, text: str, sender: str
) -> None:
    own = f"{OWN}{WHERE}repeat = 'daily'\n{text}"
    (it,) = standing_of(loaded(tmp_path, BASE + own).value).values()
    assert (it.sender_id, it.is_direct) == (sender, False)
