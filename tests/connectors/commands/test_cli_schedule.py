"""Proves what `callboard schedule` shows, and that it changes what it says."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

import msgspec
import pytest

from actors.journal.records import USAGE, UsageRecord
from actors.messages.inbound import Address
from actors.schedule.appointments import Appointment
from actors.schedule.rows import as_entry
from connectors.admin.display import moment, when
from connectors.admin.schedule import StoredAppointment, all_rows, write
from connectors.cli import run
from runtime.clock import SystemClock
from runtime.sqlite.database import SqliteDatabase
from runtime.store.rows import Commit, Record
from tests.support.desk import commit_to, write_database

Output = pytest.CaptureFixture[str]

ROSES, NEWS = "ROSES1234", "NEWS12345"


def appointment(**fields: object) -> Appointment:
    now = SystemClock().wall()
    given: dict[str, object] = {
        "kind": "reminder",
        "agent": "anna",
        "address": Address("cli", "kitchen"),
        "sender_id": "sam",
        "person": "cli/sam",
        "text": "water the roses",
        "anchor": now + 3600,
        "next_due": now + 3600,
    }
    return Appointment(**{**given, **fields})  # type: ignore[arg-type]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = write_database(tmp_path / "callboard.db")
    now = SystemClock().wall()
    daily = appointment(
        kind="task",
        text="sum up the news",
        repeat="daily",
        anchor=now - 900_000,
        next_due=now - 80_000,
        paused="failures",
        failures=3,
    )
    rows = {ROSES: appointment(), NEWS: daily}
    entries = tuple(
        as_entry(name, "person:cli/sam", it, 7, 0) for name, it in rows.items()
    )
    commit_to(path, Commit(at=now, entries=entries))
    return path


def schedule(path: Path, *arguments: str) -> int:
    return run(["schedule", arguments[0], "--db", str(path), *arguments[1:]])


def rows(path: Path) -> dict[str, StoredAppointment]:
    with SqliteDatabase(path).inspect() as store:
        return {row.id: row for row in all_rows(store)}


def test_the_next_one_is_listed_first_and_what_rests_last(
    path: Path, capsys: Output
) -> None:
    assert schedule(path, "list") == 0
    header, first, last = capsys.readouterr().out.splitlines()
    assert header.split() == [
        "ID", "KIND", "AGENT", "CHAT", "NEXT", "IN", "REPEAT", "STATE", "TEXT",
    ]  # fmt: skip
    assert first.split()[:4] == ["ROSES1", "reminder", "anna", "cli/kitchen"]
    assert "paused (failures)" in last
    assert schedule(path, "list", "--agent", "ben") == 0
    assert capsys.readouterr().out == "Nothing is scheduled.\n"


def test_one_is_shown_with_all_there_is(path: Path, capsys: Output) -> None:
    assert schedule(path, "show", "news", "--json") == 0
    shown = json.loads(capsys.readouterr().out)
    assert (shown["id"], shown["repeat"], shown["failures"]) == (NEWS, "daily", 3)
    assert shown["next_at"] is None
    assert schedule(path, "show", "rose") == 0
    assert "text:       water the roses" in capsys.readouterr().out
    assert schedule(path, "show", "none") == 1
    assert "there is no appointment 'none'" in capsys.readouterr().err


def test_a_paused_one_rests_and_goes_on_with_its_next_time(path: Path) -> None:
    assert schedule(path, "pause", "ROSES") == 0
    assert rows(path)[ROSES].it.paused == "by hand"
    assert schedule(path, "resume", "ROSES") == 0
    assert rows(path)[ROSES].it.paused == ""
    assert schedule(path, "resume", "NEWS") == 0
    it = rows(path)[NEWS].it
    assert (it.paused, it.failures) == ("", 0)
    assert it.next_due > SystemClock().wall()


def test_run_is_beside_its_times(path: Path) -> None:
    due = rows(path)[ROSES].it.next_due
    assert schedule(path, "run", "ROSES") == 0
    it = rows(path)[ROSES].it
    assert 0 < it.run_at <= SystemClock().wall()
    assert it.next_due == due


def test_run_is_another_slot_than_the_one_of_this_second(path: Path) -> None:
    row, now, run_at = rows(path)[ROSES], 0.0, 0.0
    for _ in range(3):  # until the second is the same before and after
        now = float(int(SystemClock().wall()))
        just = msgspec.structs.replace(row.it, last_due=now, run_at=0.0)
        assert write(SqliteDatabase(path), rows(path)[ROSES], just) is None
        assert schedule(path, "run", "ROSES") == 0
        run_at = rows(path)[ROSES].it.run_at
        if int(SystemClock().wall()) == now:
            break
    assert run_at == now + 1


def test_what_people_wrote_does_nothing_to_a_terminal(
    path: Path, capsys: Output
) -> None:
    row, text = rows(path)[ROSES], "a\x1b]0;owned\x07b\nNEWS12 is removed"
    assert (
        write(SqliteDatabase(path), row, msgspec.structs.replace(row.it, text=text))
        is None
    )
    assert schedule(path, "show", "ROSES") == 0
    shown = capsys.readouterr().out
    assert "\x1b" not in shown
    assert "\nNEWS12" not in shown
    given = ("--agent", "anna", "--chat", "cli/kitchen", "--at", "in 5 minutes")
    assert schedule(path, "add", *given, text) == 0
    told = capsys.readouterr().out
    assert "\x1b" not in told
    assert len(told.splitlines()) == 1


def test_a_removed_one_is_gone(path: Path, capsys: Output) -> None:
    assert schedule(path, "remove", "ROSES", "--yes") == 0
    assert list(rows(path)) == [NEWS]
    told = "ROSES1 (reminder: water the roses) is removed\n"
    assert capsys.readouterr().out == told


def test_one_is_added(path: Path, capsys: Output) -> None:
    wanted = ("--agent", "anna", "--chat", "cli/kitchen", "--sender", "sam")
    added = schedule(path, "add", *wanted, "--at", "in 20 minutes", "feed the cat")
    assert added == 0
    assert "feed the cat" in capsys.readouterr().out
    assert schedule(path, "add", *wanted, "--repeat", "every 2h", "--task", "x") == 0
    assert schedule(path, "add", *wanted, "--beat", "30", "the oven") == 0
    found = [row.it for row in rows(path).values() if row.id not in {ROSES, NEWS}]
    assert sorted((it.kind, it.repeat) for it in found) == [
        ("cron", "every 2h"),
        ("heartbeat", "beat 30"),
        ("reminder", ""),
    ]
    assert {it.address for it in found} == {Address("cli", "kitchen")}


@pytest.mark.parametrize(
    ("arguments", "code", "why"),
    [
        (("--chat", "cli/kitchen", "--at", "soon", "x"), 1, "no time that I can read"),
        (("--chat", "kitchen", "--at", "in 1h", "x"), 2, "write CONNECTOR/CHAT"),
        (("--chat", "cli/kitchen", "x"), 2, "--at, --repeat or --beat"),
        (("--chat", "cli/x", "--at", "in 1h", "--zone", "Mars/X", "x"), 2, "not known"),
    ],
)
def test_what_cannot_be_added_is_refused(
    path: Path, arguments: tuple[str, ...], code: int, why: str, capsys: Output
) -> None:
    assert schedule(path, "add", "--agent", "anna", *arguments) == code
    assert why in capsys.readouterr().err
    assert len(rows(path)) == 2


def test_names_are_checked_against_the_settings(path: Path, capsys: Output) -> None:
    offline = str(Path(__file__).parents[3] / "config" / "offline.toml")
    command = ["schedule", "add", "-c", offline, "--db", str(path), "--at", "in 1h"]
    assert run([*command, "--agent", "nobody", "--chat", "terminal/you", "x"]) == 2
    assert "there is no agent 'nobody'" in capsys.readouterr().err
    assert run([*command, "--agent", "anna", "--chat", "moon/you", "x"]) == 2
    assert "there is no connector 'moon'" in capsys.readouterr().err
    assert run([*command, "--agent", "anna", "--chat", "terminal/you", "x"]) == 0


SETTINGS = """\
default_agent = "anna"
[store]
path = "callboard.db"
[models.scripted]
kind = "scripted"
script = "rules.toml"
[models.cheap]
kind = "scripted"
script = "rules.toml"
[connectors.cli]
kind = "terminal"
[scheduler.quiet]
hours = ["22:00-07:00"]
[agents.anna]
prompt = "You are Anna."
[agents.anna.heartbeat]
model = "cheap"
[agents.anna.scheduled]
daily_tokens = 50_000
"""


@pytest.fixture
def costly(path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A database beside its settings, with what agents took today and by whom."""
    folder = path.parent
    (folder / "rules.toml").write_text("", encoding="utf-8")
    (folder / "callboard.toml").write_text(SETTINGS, encoding="utf-8")
    monkeypatch.chdir(folder)
    now = SystemClock().wall()
    ran = {"heartbeat": 1200, "": 9000, "task": 34, "webhook": 70}
    records = tuple(usage(f"{x}1", x, tokens) for x, tokens in ran.items())
    beat = appointment(kind="heartbeat", repeat="beat 30", by_settings="beat 30")
    entry = as_entry("BEAT12345", "person:cli/sam", beat, 7, 0)
    commit_to(path, Commit(at=now, records=records, entries=(entry,)))
    return folder / "callboard.toml"


def usage(name: str, occasion: str, tokens: int) -> Record:
    body = UsageRecord(
        agent="anna",
        connector="cli",
        sender_id="sam",
        provider="cheap",
        model="cheap",
        input_tokens=tokens,
        output_tokens=0,
        cost=0.0,
        seconds=1.0,
        rounds=1,
        attempt=1,
        status="ok",
        occasion=occasion,
    )
    return Record(
        kind=USAGE, id=f"{name}#1", owner="anna", part=7, body=msgspec.json.encode(body)
    )


def test_the_list_says_what_it_costs_and_when_it_rests(
    costly: Path, capsys: Output
) -> None:
    assert run(["schedule", "list", "--config", str(costly)]) == 0
    lines = capsys.readouterr().out.splitlines()
    header, cost = lines[-2:]
    assert header.split()[:3] == ["AGENT", "TOKENS", "TODAY"]
    assert cost.split()[:3] == ["anna", "1,234", "50,000"]
    assert "cheap, light" in cost
    assert "heartbeat 22:00-07:00; cron/autonomous 22:00-07:00 (skip)" in cost
    assert "its checklist" in "\n".join(lines)
    assert run(["schedule", "list", "--config", str(costly), "--json"]) == 0
    found = {each["kind"]: each for each in json.loads(capsys.readouterr().out)}
    beat = found["heartbeat"]
    assert (beat["model"], beat["quiet"]) == ("cheap", ["22:00-07:00"])
    assert (beat["tokens_today"], beat["daily_tokens"]) == (1234, 50_000)
    assert (found["task"]["model"], found["task"]["quiet"]) == ("scripted", [])


def test_without_settings_only_what_was_taken_is_known(
    costly: Path, capsys: Output
) -> None:
    assert schedule(costly.parent / "callboard.db", "list") == 0
    cost = capsys.readouterr().out.splitlines()[-1]
    assert cost.split() == ["anna", "1,234", "-", "-", "-", "-"]


THEN = 1_700_000_000.0
"""When all that is in the database of these tests is due."""


@pytest.fixture
def whole(tmp_path: Path) -> Path:
    """Give a database with two appointments that have all there is."""
    path = write_database(tmp_path / "whole.db")
    single = appointment(
        address=Address("cli", "kitchen", "topic"),
        anchor=THEN,
        next_due=THEN,
        created_at=THEN - 60,
        failures=2,
    )
    daily = appointment(
        kind="task",
        agent="ben",
        text="news",
        repeat="daily",
        anchor=THEN,
        next_due=THEN,
        paused="failures",
        failures=3,
        fired=7,
        skipped=2,
        items=("a\nb", "c"),
    )
    rows = {ROSES: single, NEWS: daily}
    entries = tuple(as_entry(n, "person:cli/sam", it, 7, 0) for n, it in rows.items())
    commit_to(path, Commit(at=THEN, entries=entries))
    return path


def lines_of(path: Path, capsys: Output, *arguments: str) -> list[str]:
    """Give what a command of the schedule writes."""
    capsys.readouterr()
    assert schedule(path, *arguments) == 0
    return capsys.readouterr().out.splitlines()


def test_a_list_has_all_that_matters_of_each(whole: Path, capsys: Output) -> None:
    at = when(THEN)
    first = f"ROSES1  reminder  anna   cli/kitchen  {at}  0s  once    failed 2 times"
    last = f"NEWS12  task      ben    cli/kitchen  {'-':{len(at)}}  -   daily "
    head, *shown = lines_of(whole, capsys, "list")
    assert head.split()[-3:] == ["REPEAT", "STATE", "TEXT"]
    assert shown == [
        f"{first}     water the roses",
        f"{last}  paused (failures)  news; a b; c",
    ]
    assert lines_of(whole, capsys, "list", "--agent", "ben")[1:] == [
        f"NEWS12  task  ben    cli/kitchen  -     -   daily   {shown[1][-31:]}"
    ]


def test_one_is_shown_to_people_and_programs_alike(whole: Path, capsys: Output) -> None:
    assert lines_of(whole, capsys, "show", "rose") == [
        "id:         ROSES1234",
        "kind:       reminder",
        "agent:      anna",
        "connector:  cli",
        "chat:       kitchen",
        "thread:     topic",
        "sender_id:  sam",
        "owner:      person:cli/sam",
        "text:       water the roses",
        "zone:       UTC",
        f"next_at:    {moment(THEN)}",
        f"created_at: {moment(THEN - 60)}",
        "fired:      0",
        "skipped:    0",
        "failures:   2",
    ]
    shown = lines_of(whole, capsys, "show", NEWS)
    assert shown[7:] == [
        "text:       news",
        "items:      a",
        f"{'':12}b, c",
        "repeat:     daily",
        "zone:       UTC",
        "paused:     failures",
        "fired:      7",
        "skipped:    2",
        "failures:   3",
    ]


def test_each_change_says_of_what_and_until_when(whole: Path, capsys: Output) -> None:
    assert lines_of(whole, capsys, "pause", "NEWS") == ["NEWS12 (task: news) rests"]
    (resumed,) = lines_of(whole, capsys, "resume", "NEWS")
    assert resumed.startswith("NEWS12 (task: news) goes on: ")
    assert resumed.endswith("22:13:20 UTC")
    (run_now,) = lines_of(whole, capsys, "run", "NEWS")
    assert run_now.startswith("NEWS12 (task: news) is carried out as soon as callboard")
    given = ("--agent", "anna", "--chat", "cli/kitchen", "--thread", "t", "--group")
    due = datetime.now(UTC).replace(month=5, day=18) + timedelta(days=700)
    at = ("--at", f"{due:%Y-%m-%d %H:%M}", "--zone", "Europe/Berlin", "--sender", "sam")
    (added,) = lines_of(whole, capsys, "add", *given, *at, "x\ny")
    assert added[6:] == f" reminder: x y {due:%a %Y-%m-%d %H:%M} Europe/Berlin"
    (new,) = [each for each in rows(whole).values() if each.id not in {ROSES, NEWS}]
    assert new.id.startswith(added[:6])
    assert (new.it.address, new.it.sender_id) == (Address("cli", "kitchen", "t"), "sam")
    assert (new.owner, new.it.person) == ("chat:cli/kitchen/t", "cli/sam")
    assert (new.it.agent, new.it.text, new.it.kind) == ("anna", "x\ny", "reminder")
    assert lines_of(whole, capsys, "remove", new.id, "--yes") == [
        f"{new.id[:6]} (reminder: x y) is removed"
    ]
    assert {*rows(whole)} == {ROSES, NEWS}
