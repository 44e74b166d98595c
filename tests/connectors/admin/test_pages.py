"""Proves that what the command line and the page list comes in whole, bounded pages."""

from __future__ import annotations

from collections.abc import Generator
from pathlib import Path

import msgspec
import pytest

from actors.journal.history import Compacted, Flushed, Reset
from actors.messages.usage import Run
from connectors.admin.conversations import (
    chapter_told,
    read_conversations,
    read_story,
)
from connectors.admin.display import STATES, moment
from connectors.admin.queue import read_jobs, read_unsent
from runtime.errors import MisuseError
from runtime.sqlite.database import SqliteDatabase
from runtime.store.database import FIRST, Inspection, Mark
from runtime.store.rows import Commit, Record, StoredEvent
from tests.support.desk import AGO, FAILED, STREAM, SUM, commit_to, write_database

RUN = Run(provider="main", model="m-1", attempt=1, seconds=2.0)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return write_database(tmp_path / "callboard.db")


@pytest.fixture
def rows(path: Path) -> Generator[Inspection]:
    with SqliteDatabase(path).inspect(live=True) as rows:
        yield rows


def complain(text: str) -> None:
    raise AssertionError(text)


def test_jobs_come_page_by_page(rows: Inspection) -> None:
    whole = read_jobs(rows, STATES, 100, complain)
    seen: list[str] = []
    past = 0
    while True:
        page = read_jobs(rows, STATES, 2, complain, past)
        seen += [job.id for job in page.jobs]
        if not (past := page.next):
            break
    assert seen == [job.id for job in whole.jobs]
    assert len(seen) == 6


def test_unsent_deliveries_are_listed(rows: Inspection) -> None:
    assert [(each.id, each.state) for each in read_unsent(rows, 10)] == [
        (f"{SUM}:0", "unknown")
    ]


def test_a_story_is_told_from_its_end_backwards(rows: Inspection) -> None:
    whole = read_story(rows, STREAM, 1000)
    assert (whole.before, whole.after) == (0, 0)
    pages = [page := read_story(rows, STREAM, 2)]
    assert page.after == 0
    while page.before:
        pages.append(page := read_story(rows, STREAM, 2, before=page.before))
    events = [scene for page in reversed(pages) for scene in page.scenes]
    assert set(events) >= set(whole.scenes)
    onwards = read_story(rows, STREAM, 2, after=1)
    assert onwards.before
    assert onwards.after


@pytest.mark.parametrize(
    ("chapter", "text", "reason"),
    [
        (
            Compacted(
                id="c",
                trigger="lines",
                outcome="summarised",
                summary="Sam likes tea.",
                messages_before=9,
                messages_after=2,
                tokens_before=700,
                tokens_after=90,
                run=RUN,
            ),
            "Sam likes tea.",
            "lines: summarised, 9 -> 2 messages, 700 -> 90 tokens",
        ),
        (
            Flushed(id="f", messages=9, run=RUN),
            "",
            "9 messages gone through for facts",
        ),
        (
            Reset(id="r", reason="idle", summary="Goodbye.", messages=3, run=RUN),
            "Goodbye.",
            "idle, after 3 messages",
        ),
    ],
)
def test_what_became_of_earlier_messages_is_part_of_the_story(
    chapter: Compacted | Flushed | Reset, text: str, reason: str
) -> None:
    kind, body = type(chapter).__name__.lower(), msgspec.json.encode(chapter)
    event = StoredEvent(STREAM, 1, kind, body, 0, 0, AGO)
    (told,) = chapter_told(event)
    assert (told.what, told.text, told.reason) == (kind, text, reason)
    assert (told.at, told.run) == (moment(AGO), RUN)


def test_a_conversation_that_is_not_there_is_said_so(rows: Inspection) -> None:
    with pytest.raises(MisuseError, match="there is no conversation"):
        read_story(rows, "nobody", 10)


def record(name: str, body: bytes) -> Record:
    return Record(kind="conversation", id=name, owner="", part=1, body=body)


def more_conversations(path: Path, count: int) -> None:
    with SqliteDatabase(path).inspect() as rows:
        (one,) = rows.records("conversation")
    for number in range(count):
        body = one.body.replace(b"anna", b"bert") if number % 2 else one.body
        row = record(f"c{number}", body)
        commit_to(path, Commit(at=one.at + AGO + number, records=(row,)))


def test_conversations_come_page_by_page_the_newest_first(
    path: Path, rows: Inspection
) -> None:
    more_conversations(path, 6)
    seen: list[str] = []
    past: Mark | None = FIRST
    while past is not None:
        page = read_conversations(rows, 2, complain, past=past)
        assert len(page.found) <= 2
        seen += [each.stream for each in page.found]
        past = page.next
    assert seen == ["c5", "c4", "c3", "c2", "c1", "c0", STREAM]


def test_conversations_of_one_agent_or_connector(path: Path, rows: Inspection) -> None:
    more_conversations(path, 6)

    def streams(agent: str = "", connector: str = "") -> list[str]:
        page = read_conversations(rows, 9, complain, agent=agent, connector=connector)
        return [each.stream for each in page.found]

    assert streams(agent="bert") == ["c5", "c3", "c1"]
    assert streams(connector="cli", agent="anna") == ["c4", "c2", "c0", STREAM]
    assert streams(connector="elsewhere") == []


def test_rows_that_cannot_be_read_are_told_of_and_left_out(
    path: Path, rows: Inspection
) -> None:
    row = record("broken", b"{}")
    commit_to(path, Commit(at=1.0, records=(row,)))
    told: list[str] = []
    page = read_conversations(rows, 9, told.append)
    assert [each.stream for each in page.found] == [STREAM]
    assert "'broken' cannot be read" in told[0]
    assert FAILED not in told[0]
