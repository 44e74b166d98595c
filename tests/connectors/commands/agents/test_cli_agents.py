"""Proves that owners see all agents and clients, and let them rest or go."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest
import trio

from actors.agents import rows as staff_rows
from actors.agents.hired import Client, HiredAgent
from actors.agents.rows import AGENT, CLIENT, StaffChange
from connectors.admin.display import when
from connectors.cli import run
from connectors.commands.agents import AgentChange, told
from runtime.sqlite.database import SqliteDatabase
from runtime.sqlite.file import SqliteFile
from runtime.sqlite.store import SqliteStore
from runtime.store.rows import Commit, Entry

NOW = 1_700_000_000.0
CARL = HiredAgent(
    name="carl",
    description="counts",
    prompt="You count.",
    model="scripted",
    made_by="boss",
    asked_by="http/zoe",
    message="m1",
    created_at=NOW,
    updated_at=NOW,
)
ADA = Client(
    name="Ada", email="a@b.c", made_by="boss", asked_by="x/y", message="m", created_at=1
)
SETTINGS = """
[store]
path = '{db}'
[connectors.terminal]
kind = "terminal"
[models.scripted]
kind = "scripted"
script = '{script}'
[agents.boss]
prompt = "You lead."
"""

Shown = pytest.CaptureFixture[str]


@pytest.fixture
def db(tmp_path: Path) -> Path:
    path = tmp_path / "callboard.db"
    odd = Entry(kind=AGENT, id="odd", part=0, body=b'"?"')
    change = StaffChange(kind=AGENT, outcome="created", version=1, by="boss", row=CARL)

    async def fill() -> None:
        store = await SqliteStore.open(SqliteFile(path))
        entries = (
            staff_rows.as_entry(AGENT, "carl", CARL, 0),
            staff_rows.as_entry(CLIENT, "ada", ADA, 0),
            odd,
        )
        record = staff_rows.as_record("r1", "carl", change)
        await store.commit(Commit(at=NOW, entries=entries, records=(record,)))
        await store.aclose()

    trio.run(fill)
    return path


@pytest.fixture
def settings(tmp_path: Path, db: Path) -> Path:
    script = tmp_path / "script.toml"
    script.write_text('[[rules]]\nreply = "hi"\n')
    path = tmp_path / "callboard.toml"
    path.write_text(SETTINGS.format(db=db, script=script))
    return path


def agents(settings: Path, *arguments: str) -> int:
    name, *rest = arguments
    return run(["agents", name, "--config", str(settings), *rest])


def states(settings: Path, capsys: Shown) -> dict[str, str]:
    capsys.readouterr()
    assert agents(settings, "list", "--json") == 0
    rows = msgspec.json.decode(capsys.readouterr().out)
    return {row["name"]: row["state"] for row in rows}


def test_all_agents_are_listed(settings: Path, capsys: Shown) -> None:
    assert states(settings, capsys) == {"boss": "active", "carl": "active"}
    assert agents(settings, "list") == 0
    shown = capsys.readouterr()
    assert "the settings" in shown.out
    assert "'odd' is of another release" in shown.err


def test_each_agent_has_a_line_with_all_that_matters(
    settings: Path, db: Path, capsys: Shown
) -> None:
    at = when(NOW)
    head = "AGENT  STATE   MODEL     TOOLS  MADE BY       FOR     CHANGED"
    carl = f"carl   active  scripted  -      boss          counts  {at}"
    boss = "boss   active  scripted  -      the settings  -       -"
    assert agents(settings, "list") == 0
    assert capsys.readouterr().out.splitlines() == [head, boss, carl]
    assert run(["agents", "list", "--db", str(db)]) == 0
    assert [x.split()[0] for x in capsys.readouterr().out.splitlines()[1:]] == ["carl"]
    settings.write_text(f'{settings.read_text()}[agents.carl]\nprompt = "Mine."\n')
    assert states(settings, capsys) == {"boss": "active", "carl": "shadowed"}
    assert agents(settings, "disable", "carl") == 0  # the one of the settings
    assert agents(settings, "list", "--json") == 0
    rows = msgspec.json.decode(capsys.readouterr().out.partition("\n")[2])
    assert [(x["name"], x["state"], x["updated_at"]) for x in rows] == [
        ("boss", "active", 0.0),
        ("carl", "at rest", 0.0),
        ("carl", "shadowed", NOW),
    ]


def test_what_a_conductor_wrote_is_shown_whole(settings: Path, capsys: Shown) -> None:
    assert agents(settings, "disable", "carl") == 0
    capsys.readouterr()
    assert agents(settings, "show", "carl") == 0
    *shown, last, first = capsys.readouterr().out.splitlines()
    assert shown == [
        "carl, at rest",
        "  for         counts",
        "  model       scripted",
        "  tools       none",
        "  delegates   none",
        f"  made by     boss, for http/zoe, {when(NOW)}",
        "",
        "You count.",
        "",
    ]
    assert last.endswith("  version 2 disabled by the command line")
    assert first == f"{when(NOW)}  version 1 created by boss"
    carl = msgspec.structs.replace(
        CARL, title="Dr", tools=("a", "b"), delegates=("boss",), role="Be kind.\nNow."
    )
    change = StaffChange(
        kind=AGENT, outcome="created", version=1, by="boss", asked_by="x/y", row=carl
    )
    lines = told(carl, (AgentChange(NOW, change),))
    assert lines[0] == "carl (Dr), active"
    assert lines[3:5] == ["  tools       a, b", "  delegates   boss"]
    assert lines[7:10] == ["Be kind.", "Now.", "You count."]
    assert lines[-1] == f"{when(NOW)}  version 1 created by boss, for x/y"


def test_what_is_done_already_is_said_and_not_done_again(
    settings: Path, db: Path, capsys: Shown
) -> None:
    for name in ("boss", "carl"):
        assert agents(settings, "enable", name) == 0
        assert capsys.readouterr().out == f"{name} is enabled already\n"
        assert agents(settings, "disable", name) == 0
        assert capsys.readouterr().out.startswith(f"{name} is disabled")
        assert agents(settings, "disable", name) == 0
        assert capsys.readouterr().out == f"{name} is disabled already\n"
    for verb in ("enable", "disable", "show", "remove"):
        assert agents(settings, verb, "zoe") == 2
        assert "no agent 'zoe'; known: boss, carl" in capsys.readouterr().err
    with SqliteDatabase(db).inspect() as rows:
        assert len([*rows.records("staff_change")]) == 3


def test_agents_rest_and_wake(settings: Path, db: Path, capsys: Shown) -> None:
    for name in ("boss", "carl"):
        assert agents(settings, "disable", name) == 0
        assert agents(settings, "disable", name) == 0
        assert states(settings, capsys)[name] == "at rest"
        assert agents(settings, "enable", name) == 0
        assert states(settings, capsys)[name] == "active"
    with SqliteDatabase(db).inspect() as rows:
        told = [
            msgspec.json.decode(row.body, type=StaffChange).outcome
            for row in rows.records("staff_change")
        ]
    assert sorted(told) == ["created", *["disabled"] * 2, *["enabled"] * 2]


def test_an_agent_is_shown_with_who_changed_it(settings: Path, capsys: Shown) -> None:
    assert agents(settings, "disable", "carl") == 0
    assert agents(settings, "show", "carl") == 0
    shown = capsys.readouterr().out
    assert "You count." in shown
    assert "version 2 disabled by the command line" in shown
    assert agents(settings, "show", "carl", "--json") == 0
    found = msgspec.json.decode(capsys.readouterr().out)
    assert (found["version"], len(found["changes"])) == (2, 2)


def test_only_who_was_made_is_removed(settings: Path, capsys: Shown) -> None:
    assert agents(settings, "remove", "carl") == 0
    assert states(settings, capsys) == {"boss": "active"}
    assert agents(settings, "remove", "boss") == 1
    assert agents(settings, "show", "boss") == 1
    assert "in the settings" in capsys.readouterr().err
    assert agents(settings, "remove", "dora") == 2
    assert "known: boss" in capsys.readouterr().err


def test_clients_are_listed_shown_and_forgotten(db: Path, capsys: Shown) -> None:
    def clients(*arguments: str) -> int:
        return run(["clients", *arguments, "--db", str(db)])

    assert clients("list") == 0
    assert "a@b.c" in capsys.readouterr().out
    assert clients("show", "ada") == 0
    assert "made_by     boss" in capsys.readouterr().out
    assert clients("remove", "ada") == 0
    assert clients("show", "ada") == 2
    assert clients("list", "--json") == 0
    assert msgspec.json.decode(capsys.readouterr().out.splitlines()[-1]) == []


def test_the_prompt_of_who_was_made_is_shown(settings: Path, capsys: Shown) -> None:
    assert run(["prompt", "carl", "--config", str(settings)]) == 0
    shown = capsys.readouterr().out
    assert "boss, another agent, set you up." in shown
    assert "You count." in shown
