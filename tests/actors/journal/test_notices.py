"""Proves who is told of what, and that texts go only to whom they are for."""

from __future__ import annotations

import json

from actors.journal.notices import (
    DUE,
    MOST_TEXT,
    Announcer,
    Happened,
    Notice,
    Subscription,
    as_entry,
)
from runtime.store.rows import Entry, StoredEntry, decoded
from tests.fakes.company.company import EPOCH

DONE = Happened("turn.finished", {"agent": "anna"}, "anna", {"said": "the secret plan"})
CHANGED = Happened("settings.applied", {"applied": ("models",)})


def told(*subscriptions: Subscription) -> list[tuple[str, str]]:
    """Give who is told of what, of the two."""
    return [(each.owner, notice_of(each).event) for each in entries(*subscriptions)]


def entries(*subscriptions: Subscription) -> tuple[Entry, ...]:
    ids = iter("abcdefgh")
    announcer = Announcer(subscriptions)
    return announcer.entries((DONE, CHANGED), EPOCH, lambda: next(ids))


def notice_of(entry: Entry) -> Notice:
    row = StoredEntry(entry.kind, entry.id, entry.owner, 0, 0, 1, entry.body or b"", 0)
    found = decoded(row, Notice)
    assert found is not None
    return found


def test_each_is_told_of_what_it_wants() -> None:
    assert told(Subscription(name="ops")) == [
        ("ops", "turn.finished"),
        ("ops", "settings.applied"),
    ]
    assert told(Subscription(name="ops", events=("turn.*",))) == [
        ("ops", "turn.finished")
    ]
    assert told(Subscription(name="ops", agents=("ben",))) == [
        ("ops", "settings.applied")
    ]
    two = told(
        Subscription(name="a", events=("x",)), Subscription(name="b", agents=("an*",))
    )
    assert [name for name, _ in two] == ["b", "b"]
    assert told() == []


def test_the_body_is_as_standard_webhooks_have_it() -> None:
    first, second = entries(Subscription(name="ops"))
    body = json.loads(notice_of(first).body)
    assert body == {
        "type": "turn.finished",
        "timestamp": "2023-11-14T22:13:20.000Z",
        "data": {"agent": "anna"},
    }
    assert json.loads(notice_of(second).body)["data"] == {"applied": ["models"]}
    assert (first.kind, first.id, first.expected) == (DUE, "a", 0)


def test_texts_are_told_only_to_who_is_to_have_them_and_cut() -> None:
    (closed, *_) = entries(Subscription(name="ops"))
    assert "secret plan" not in notice_of(closed).body
    (opened, *_) = entries(Subscription(name="ops", has_texts=True))
    assert "secret plan" in notice_of(opened).body
    long = Happened("turn.finished", {}, "anna", {"said": "x" * 100_000})
    announcer = Announcer((Subscription(name="ops", has_texts=True),))
    (entry,) = announcer.entries((long,), EPOCH, lambda: "a")
    assert len(json.loads(notice_of(entry).body)["data"]["said"]) == MOST_TEXT


def test_a_row_that_cannot_be_read_is_none() -> None:
    assert decoded(StoredEntry(DUE, "a", "ops", 0, 0, 1, b"{", 0.0), Notice) is None
    assert as_entry(DUE, "a", "ops", None, 3).body is None
