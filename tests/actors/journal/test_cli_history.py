"""Proves that of each time of an appointment people see what became of it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest
import trio

from actors.config.schedule import SchedulerConfig
from actors.journal.answers import Answer
from actors.messages import state as message_state
from actors.messages.deliveries import Delivery
from actors.messages.inbound import Address, Inbound
from actors.schedule.appointments import Appointment
from actors.schedule.rows import KIND, SLOT, SlotRecord, as_entry
from actors.schedule.slots import SlotPreparer
from connectors.cli import run
from connectors.config.checks import find_zone
from runtime.clock import SystemClock
from runtime.sqlite.file import SqliteFile
from runtime.sqlite.store import SqliteStore
from runtime.store.rows import Commit, Record
from tests.fakes.company.furnished import changed
from tests.support.desk import AGO, Desk, commit_to, delivery, run_of, write_database

Output = pytest.CaptureFixture[str]

NEWS, ROSES, BEAT = "NEWS12345", "ROSES1234", "BEAT12345"


class Writer:
    """Has appointments woken and their messages answered, as a server does."""

    def __init__(self, desk: Desk) -> None:
        self.desk = desk
        services = changed(
            desk.services, scheduler=SchedulerConfig(), find_zone=find_zone
        )
        self._slots = SlotPreparer(services)
        self._now = desk.services.clock.wall

    async def put(self, name: str, **fields: Any) -> None:
        start = SystemClock().wall() // 1 - AGO
        given: dict[str, Any] = {
            "kind": "task",
            "agent": "anna",
            "address": Address("cli", "kitchen"),
            "sender_id": "sam",
            "text": "sum up the news",
            "repeat": "every 60s",
            "anchor": start,
            "next_due": start,
        }
        it = Appointment(**{**given, **fields})
        entry = as_entry(name, "person:cli/sam", it, 7, None)
        await self.desk.store.commit(Commit(at=self._now(), entries=(entry,)))

    async def wake(self, name: str) -> tuple[Inbound, ...]:
        row = await self.desk.store.entry(KIND, name)
        assert row is not None
        prepared = await self._slots.prepare(row)
        assert prepared is not None
        await self.desk.store.commit(prepared.commit)
        return prepared.inbounds

    async def answer(self, inbound: Inbound) -> None:
        """Answer it at the second attempt."""
        await self.desk.claim(inbound, 1)
        await self.conclude(inbound, 1, put_off=message_state.Postpone(1, 1.0))
        await self.desk.claim(inbound, 2)
        await self.conclude(inbound, 2)

    async def conclude(self, inbound: Inbound, attempt: int, **fields: Any) -> None:
        said = replace_id(delivery(inbound, "all is quiet"), attempt)
        answer = Answer(
            inbound=inbound,
            settled=("replied", "ok"),
            run=run_of(attempt),
            deliveries=(said,),
            **fields,
        )
        await self.desk.conclude(answer)


def replace_id(said: Delivery, attempt: int) -> Delivery:
    return msgspec.structs.replace(said, id=f"{said.id}#{attempt}")


async def write(path: Path) -> None:
    store = await SqliteStore.open(SqliteFile(path))
    writer = Writer(Desk(store))
    ago = SystemClock().wall() // 1 - AGO - 600
    await writer.put(NEWS, anchor=ago, next_due=ago)
    await writer.put(ROSES, kind="reminder", text="water the roses", repeat="")
    await writer.put(BEAT, kind="heartbeat", text="", repeat="beat 30")
    (first,) = await writer.wake(NEWS)
    await writer.answer(first)
    await writer.wake(ROSES)
    await writer.wake(BEAT)
    await store.aclose()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "callboard.db"
    trio.run(write, path)
    return path


def schedule(path: Path, *arguments: str) -> int:
    return run(["schedule", arguments[0], "--db", str(path), *arguments[1:]])


def told(capsys: Output) -> list[dict[str, Any]]:
    return [json.loads(line) for line in capsys.readouterr().out.splitlines()]


def test_each_time_tells_when_how_late_and_what_it_took(
    path: Path, capsys: Output
) -> None:
    assert schedule(path, "history", "news", "--json") == 0
    missed, run_ = told(capsys)
    assert (missed["status"], missed["reason"], missed["count"]) == (
        "skipped",
        "missed",
        10,
    )
    assert (run_["status"], run_["attempts"], run_["count"]) == ("completed", 2, 1)
    assert (run_["input_tokens"], run_["output_tokens"]) == (20, 4), "of both attempts"
    assert run_["cost"] == 0.5
    assert 0 <= run_["late"] < 60
    assert run_["due_at"] < run_["began_at"] < run_["ended_at"]


def test_all_times_are_listed_the_last_one_first(path: Path, capsys: Output) -> None:
    assert schedule(path, "history") == 0
    header, *lines = capsys.readouterr().out.splitlines()
    assert header.split()[:4] == ["ID", "KIND", "AGENT", "DUE"]
    beat, roses, missed, news = lines
    assert "skipped:empty" in beat
    assert "pending" in roses
    assert "ROSES1" in roses
    assert "skipped:missed x10" in missed
    assert "completed" in news
    assert news.split()[-7:] == ["20", "4", "0.5000", "sum", "up", "the", "news"]
    assert missed.split()[-7:-4] == ["-", "-", "-"], "nobody was asked"
    assert schedule(path, "history", "--agent", "ben") == 0
    assert capsys.readouterr().out == "Nothing was due that fits.\n"
    assert schedule(path, "history", "--limit", "1", "--json") == 0
    assert len(told(capsys)) == 1


def test_what_the_inbox_forgot_the_audit_remembers(path: Path, capsys: Output) -> None:
    async def forget() -> None:
        store = await SqliteStore.open(SqliteFile(path))
        await store.prune(SystemClock().wall())
        await store.aclose()

    trio.run(forget)
    assert schedule(path, "history", "NEWS", "--limit", "2", "--json") == 0
    run_ = told(capsys)[-1]
    assert (run_["status"], run_["attempts"], run_["input_tokens"]) == (
        "completed",
        2,
        20,
    )
    assert run_["ended_at"] is not None


def test_of_what_nobody_remembers_that_is_said(tmp_path: Path, capsys: Output) -> None:
    body = SlotRecord(
        appointment=NEWS,
        kind="task",
        agent="anna",
        connector="cli",
        chat="kitchen",
        text="old news",
        outcome="fired",
        due=5.0,
        message="01GONE",
    )
    row = Record(kind=SLOT, id="x", owner=NEWS, part=7, body=msgspec.json.encode(body))
    path = tmp_path / "callboard.db"
    write_database(path)
    commit_to(path, Commit(at=9.0, records=(row,)))
    assert schedule(path, "history", "--json") == 0
    (run_,) = told(capsys)
    assert (run_["status"], run_["ended_at"], run_["late"]) == ("forgotten", None, 4.0)


def test_one_is_shown_with_its_last_times(path: Path, capsys: Output) -> None:
    assert schedule(path, "show", "NEWS", "--json") == 0
    shown = json.loads(capsys.readouterr().out)
    assert [each["status"] for each in shown["runs"]] == ["skipped", "completed"]
    assert schedule(path, "show", "NEWS") == 0
    assert "completed" in capsys.readouterr().out.splitlines()[-1]


def test_tasks_are_running_to_be_done_or_done(path: Path, capsys: Output) -> None:
    assert run(["tasks", "--db", str(path), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    (now,) = found["running"]
    assert (now["status"], now["kind"]) == ("pending", "reminder")
    assert now["appointment"] == ROSES
    # Which of the two is the next depends on the time of day: beats keep to a grid.
    assert {each["id"] for each in found["to_do"]} == {NEWS, BEAT}
    statuses = [each["status"] for each in found["done"]]
    assert statuses == ["skipped", "skipped", "completed"]
    assert run(["tasks", "--db", str(path)]) == 0
    header, *lines = capsys.readouterr().out.splitlines()
    assert header.split()[:3] == ["STATUS", "WHEN", "ID"]
    assert [line.split()[0] for line in lines[:3]] == ["pending", "to", "to"]
    assert "water the roses" in lines[0]


def test_where_nothing_is_to_be_done_that_is_said(
    tmp_path: Path, capsys: Output
) -> None:
    path = write_database(tmp_path / "callboard.db")
    assert run(["tasks", "--db", str(path)]) == 0
    assert capsys.readouterr().out.startswith("There is nothing to do")
