"""Why an agent hears nothing in a web channel: `callboard route explain` tells it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest
import trio

from connectors.cli import run
from connectors.web.eliza.messages import ZERO, ElizaChannel, ElizaServer, to_uuid
from runtime.sqlite.file import SqliteFile
from runtime.sqlite.store import SqliteStore
from runtime.store.rows import Commit, Entry

Output = pytest.CaptureFixture[str]

SETTINGS = """
store.path = '{db}'
[connectors.web]
kind = "web"
[models.scripted]
kind = "scripted"
script = "script.toml"
[agents.anna]
[agents.ben]
"""
ANNA, BEN, ZOE, SAM = map(to_uuid, ("anna", "ben", "Zoe", "Sam"))
HALL, DESK, FAR, LOST = map(to_uuid, ("hall", "desk", "far", "lost"))
OPS = to_uuid("ops")
CHANNELS = (
    ElizaChannel(id=HALL, server=ZERO, name="hall", participants=(ZOE, SAM, ANNA)),
    ElizaChannel(id=DESK, server=ZERO, name="desk", type="DM", participants=(ZOE, BEN)),
    ElizaChannel(id=FAR, server=OPS, name="far", participants=(ZOE, SAM, ANNA, BEN)),
    ElizaChannel(
        id=LOST, server=to_uuid("gone"), name="lost", participants=(ZOE, ANNA)
    ),
)


@pytest.fixture
def settings(tmp_path: Path) -> Path:
    (tmp_path / "script.toml").write_text('[default]\nreply = "so"\n')
    path = tmp_path / "callboard.toml"
    path.write_text(SETTINGS.format(db=tmp_path / "callboard.db"))
    return path


@pytest.fixture
def company(settings: Path) -> Path:
    """Write down channels, and a server that Ben alone hears."""
    things: tuple[tuple[str, ElizaChannel | ElizaServer], ...] = (
        ("web_server", ElizaServer(id=OPS, name="ops", agents=(BEN,))),
        *(("web_channel", each) for each in CHANNELS),
    )

    async def fill() -> None:
        store = await SqliteStore.open(SqliteFile(settings.with_name("callboard.db")))
        entries = tuple(
            Entry(
                kind=kind,
                id=f"web/{each.id}",
                owner="web",
                part=0,
                body=msgspec.json.encode(each),
            )
            for kind, each in things
        )
        await store.commit(Commit(at=0.0, entries=entries))
        await store.aclose()

    trio.run(fill)
    return settings


def told(settings: Path, capsys: Output, chat: str, *options: str) -> dict[str, Any]:
    line = ["route", "explain", "--config", str(settings), "--json"]
    assert run([*line, "--chat", f"web/{chat}", *options]) == 0
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    return found


def verdict(found: dict[str, Any], check: str, agent: str = "") -> dict[str, str]:
    (one,) = [
        each
        for each in found["checks"]
        if (each["check"], each["agent"]) == (check, agent)
    ]
    return dict(one)


def test_who_is_not_in_the_channel_hears_nothing(company: Path, capsys: Output) -> None:
    found = told(company, capsys, HALL, "@anna @ben hi")
    assert verdict(found, "participant", "anna")["verdict"] == "yes"
    out = verdict(found, "participant", "ben")
    assert out["verdict"] == "no"
    assert f"/channels/{HALL}/agents" in out["do"]
    assert BEN in out["do"]
    assert found["outcome"][0] == "anna answers: it is mentioned"
    assert found["outcome"][1] == "ben is silent: it is not in this chat"


def test_alone_with_an_agent_everything_is_for_it(
    company: Path, capsys: Output
) -> None:
    found = told(company, capsys, DESK, "hi", "--sender", ZOE)
    assert found["outcome"] == ["ben answers: addressed"]


def test_who_does_not_hear_the_server_hears_nothing(
    company: Path, capsys: Output
) -> None:
    found = told(company, capsys, FAR, "@anna @ben hi")
    out = verdict(found, "subscribed", "anna")
    assert out["verdict"] == "no"
    assert f"/message-servers/{OPS}/agents" in out["do"]
    assert verdict(found, "subscribed", "ben")["verdict"] == "yes"
    assert "anna is silent: it is not in this chat" in found["outcome"]


def test_an_agent_does_not_hear_itself(company: Path, capsys: Output) -> None:
    found = told(company, capsys, HALL, "hi", "--sender", ANNA, "--bot")
    assert verdict(found, "own", "anna")["verdict"] == "no"
    assert found["outcome"] == [
        "nobody hears it: no agent is in this channel; see the checks"
    ]


def test_what_only_a_running_server_knows_is_called_so(
    company: Path, capsys: Output
) -> None:
    found = told(company, capsys, HALL, "hi")
    for each in (verdict(found, "running", "anna"), verdict(found, "refusals")):
        assert each["verdict"] == "server knows"
        assert each["do"]


@pytest.mark.parametrize(
    ("chat", "options", "check", "words"),
    [
        ("hall", ("hi",), "message", "the channel 'hall' is no UUID"),
        (HALL, ("hi", "--sender", "Zoe"), "message", "the author 'Zoe' is no UUID"),
        (HALL, (" ",), "message", "the content is empty"),
        (to_uuid("nowhere"), ("hi",), "channel", "is in the database"),
        (LOST, ("hi",), "channel", "its server"),
    ],
)
def test_what_is_refused_is_told_with_what_to_do(
    company: Path,
    capsys: Output,
    chat: str,
    options: tuple[str, ...],
    check: str,
    words: str,
) -> None:
    found = told(company, capsys, chat, *options)
    out = verdict(found, check)
    assert out["verdict"] == "no"
    assert words in out["why"]
    assert out["do"]
    assert found["outcome"] == ["nobody hears it: it is not said; see the checks"]


def test_without_a_database_there_is_no_channel(settings: Path, capsys: Output) -> None:
    assert verdict(told(settings, capsys, HALL, "hi"), "channel")["verdict"] == "no"


def test_it_is_told_to_people_as_a_second_table(company: Path, capsys: Output) -> None:
    line = ["route", "explain", "hi", "--config", str(company)]
    assert run([*line, "--chat", f"web/{HALL}"]) == 0
    shown = capsys.readouterr().out
    assert "CHECK" in shown
    assert "TO DO" in shown
    assert shown.index("TO DO") < shown.index("anna is silent")
