"""Proves that settings with which anybody could send a webhook are refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from connectors.settings.load import load_app
from runtime.errors import SettingsError

BASE = """
[models.scripted]
kind = "scripted"
script = "script.toml"
[agents.anna]
prompt = "You are Anna."
[connectors.http]
kind = "http"
api_key = { env = "API_KEY" }
"""

IN = """
[webhooks.in.deploys]
secret = { env = "SECRET" }
agents = ["anna"]
chat = "http/deploys"
task = "Tell what was deployed."
"""

OUT = """
[webhooks.out.ops]
url = "https://ops.example.org/x"
secret = { env = "SECRET" }
"""

GOOD = {
    "SECRET": "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw",
    "API_KEY": "the key of the whole API",
}


def problems(folder: Path, text: str, **environment: str) -> list[str]:
    """Give what is wrong with settings, and what is doubtful."""
    (folder / "script.toml").write_text('[[rules]]\nsay = "hello"\n')
    file = folder / "callboard.toml"
    file.write_text(BASE + text)
    try:
        settings = load_app(file, GOOD | environment)
    except SettingsError as error:
        return [str(each) for each in error.problems]
    return [str(each) for each in settings.warnings]


def test_good_ones_are_taken_with_a_doubt_about_who_reads_the_answers(
    tmp_path: Path,
) -> None:
    (doubt,) = problems(tmp_path, IN)
    assert "nobody is there to read the answers" in doubt
    assert problems(tmp_path, OUT) == []


@pytest.mark.parametrize(
    ("secret", "why"),
    [
        ("", "empty"),
        ("   ", "empty"),
        ("change-me", "placeholder"),
        ("change-me-now", "placeholder"),
        ("undefined", "anybody would guess"),
        ("null", "anybody would guess"),
        ("xxxxxxxxxxxxxxxxxxxxxxxx", "placeholder"),
        ("your_secret_here", "placeholder"),
        ("short", "shorter than"),
        ("fifteen bytes..", "shorter than 16 bytes"),
        ("whsec_", "shorter than"),
        ("whsec_AAAA", "shorter than 16 bytes"),
        ("whsec_*not base64, as it seems*", "not base64"),
        ("the key of the whole API", "the secret of connectors.http.api_key, too"),
    ],
)
@pytest.mark.parametrize("table", [IN, OUT], ids=["in", "out"])
def test_what_is_no_secret_is_refused_and_not_shown(
    tmp_path: Path, secret: str, why: str, table: str
) -> None:
    found = [each for each in problems(tmp_path, table, SECRET=secret) if why in each]
    assert found
    assert "secret" in found[0]
    assert len(secret.strip()) < 9 or secret.strip() not in " ".join(found)


def test_without_a_secret_there_is_no_webhook(tmp_path: Path) -> None:
    text = IN.replace('secret = { env = "SECRET" }\n', "")
    assert "secret" in problems(tmp_path, text)[0]
    plain = IN.replace('{ env = "SECRET" }', '"whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"')
    (found,) = problems(tmp_path, plain)
    assert "MfKQ" not in found


def test_two_webhooks_with_one_secret_are_refused(tmp_path: Path) -> None:
    (found,) = [x for x in problems(tmp_path, IN + OUT) if "too" in x]
    assert "this is the secret of webhooks.in.deploys.secret, too" in found


WRONG = {
    'agents = ["nobody"]': "nobody",
    "agents = []": "agents",
    'chat = "deploys"': "chat",
    'chat = "slack/deploys"': "slack",
    'task = " "': "told nothing to do",
    'scheme = "none"': "scheme",
    "per_minute = 0": "per_minute",
    "max_chars = 0": "max_chars",
}


@pytest.mark.parametrize(("line", "why"), WRONG.items())
def test_what_comes_in_must_lead_somewhere(tmp_path: Path, line: str, why: str) -> None:
    name = line.partition(" ")[0]
    kept = [each for each in IN.splitlines() if not each.startswith(f"{name} ")]
    assert why in " ".join(problems(tmp_path, "\n".join([*kept, line])))


def test_without_a_server_none_can_come_in(tmp_path: Path) -> None:
    terminal = '[connectors.cli]\nkind = "terminal"\n'
    text = BASE.partition("[connectors.http]")[0] + terminal
    (tmp_path / "script.toml").write_text('[[rules]]\nsay = "hello"\n')
    file = tmp_path / "callboard.toml"
    file.write_text(
        'default_agent = "anna"\n' + text + IN.replace("http/deploys", "cli/kitchen")
    )
    with pytest.raises(SettingsError, match="there is no HTTP connector"):
        load_app(file, GOOD)


URLS = {
    "ftp://ops.example.org": "is no address that can be sent to",
    "https://me:pa55word@ops.example.org": "is no address that can be sent to",
    "https://0x7f.1/t0ken": "is no address that can be sent to",
    "http://127.0.0.1:9/x": "private = true",
    "http://ops.example.org/x": "unencrypted",
}


@pytest.mark.parametrize(("url", "why"), URLS.items())
def test_what_is_sent_must_have_somewhere_to_go(
    tmp_path: Path, url: str, why: str
) -> None:
    text = OUT.replace("https://ops.example.org/x", url)
    (found,) = problems(tmp_path, text)
    assert why in found
    assert "pa55word" not in found
    assert "t0ken" not in found


def test_events_that_there_are_not_are_refused(tmp_path: Path) -> None:
    (found,) = problems(tmp_path, OUT + 'events = ["turn.*", "turn.finishd"]\n')
    assert "no event fits 'turn.finishd'" in found


def test_more_tasks_than_a_conversation_has_room_for_are_doubtful(
    tmp_path: Path,
) -> None:
    doubts = problems(tmp_path, IN + "max_open = 50\n")
    assert any("people find no room" in each for each in doubts)
    apart = IN + "max_open = 50\nown_conversation = true\n"
    assert not any("no room" in each for each in problems(tmp_path, apart))
