"""Proves that the key of receipts is kept well, and that replay checks them."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier
from typing import Any

import msgspec
import pytest

from actors.approvals.receipts import (
    ReceiptClaim,
    ToolReceipt,
    digest_of_arguments,
    digest_of_result,
    sign,
)
from actors.messages.inbound import ToolCall
from actors.turn.machine import ModelReplied, ToolReturned
from actors.turn.steps import ApprovalRecorded
from connectors.cli import run
from connectors.files import receipt_key
from runtime.errors import SettingsError
from runtime.store.rows import Append, Commit, NewEvent
from tests.support.desk import STREAM, WAITING, commit_to, write_database
from tests.support.store.rows import NOW

Output = pytest.CaptureFixture[str]

CALL = ToolCall("call-1", "shell", b'{"command":"ls"}')


def test_a_key_is_made_once_for_its_owner_alone(tmp_path: Path) -> None:
    database = tmp_path / "new" / "callboard.db"
    assert receipt_key.load(database) == b""
    key = receipt_key.load_or_make(database)
    assert len(key) == receipt_key.LENGTH
    assert receipt_key.load_or_make(database) == receipt_key.load(database) == key
    path = receipt_key.path_of(database)
    assert path.stat().st_mode & 0o777 == 0o600
    assert [each.name for each in path.parent.iterdir()] == [path.name]


def test_starts_at_the_same_moment_have_one_key(tmp_path: Path) -> None:
    starts = 4
    together = Barrier(starts)

    def start(_: int) -> bytes:
        together.wait()
        return receipt_key.load_or_make(database)

    with ThreadPoolExecutor(starts) as threads:
        for number in range(20):
            database = tmp_path / str(number) / "callboard.db"
            (key,) = set(threads.map(start, range(starts)))
            assert receipt_key.load(database) == key
            assert len([*database.parent.iterdir()]) == 1


def test_a_cut_key_and_one_that_cannot_be_kept_are_said(tmp_path: Path) -> None:
    database = tmp_path / "callboard.db"
    receipt_key.path_of(database).write_bytes(b"short")
    with pytest.raises(SettingsError, match=r"receipts\.key: is no key of 32 bytes"):
        receipt_key.load_or_make(database)
    receipt_key.path_of(database).unlink()
    receipt_key.path_of(database).mkdir()
    with pytest.raises(SettingsError, match="cannot be read"):
        receipt_key.load(database)
    (tmp_path / "file").touch()
    with pytest.raises(SettingsError, match=r"cannot be (made|read)"):
        receipt_key.load_or_make(tmp_path / "file" / "callboard.db")


def proven(key: bytes, text: str = "done", said: str = "done") -> ToolReturned:
    """Sign one result, and say another."""
    arguments = digest_of_arguments(CALL.arguments)
    claim = ReceiptClaim(
        conversation=STREAM,
        message=WAITING,
        call_id=CALL.id,
        name=CALL.name,
        arguments=arguments,
        result=digest_of_result(text, (), is_error=False),
        at=5.0,
    )
    proof = ToolReceipt(CALL.name, arguments, 5.0, sign(key, claim))
    return ToolReturned(CALL.id, said, proof=proof)


def record(path: Path, *steps: tuple[str, msgspec.Struct]) -> None:
    events = tuple(NewEvent(kind, msgspec.json.encode(step)) for kind, step in steps)
    journal = Append(stream=f"{STREAM}/{WAITING}", expected=0, part=7, events=events)
    commit_to(path, Commit(at=NOW, appends=(journal,)))


def told(path: Path, capsys: Output, what: str) -> list[dict[str, Any]]:
    assert run(["replay", "--db", str(path), "kitchen", "--json"]) == 0
    scenes = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    return [each for each in scenes if each["what"] == what]


@pytest.mark.parametrize(
    ("call", "said", "verdict"),
    [
        (CALL, "done", "ok"),
        (CALL, "done, and more", "bad"),
        (msgspec.structs.replace(CALL, arguments=b"{}"), "done", "bad"),
        (msgspec.structs.replace(CALL, name="look"), "done", "bad"),
    ],
)
def test_replay_says_whether_a_call_was_made_as_told(
    call: ToolCall, said: str, verdict: str, tmp_path: Path, capsys: Output
) -> None:
    path = write_database(tmp_path / "callboard.db")
    key = receipt_key.load_or_make(path)
    record(path, ("round", ModelReplied("", (call,))), ("tool", proven(key, said=said)))
    assert [each["proof"] for each in told(path, capsys, "tool")[-1:]] == [verdict]
    run(["replay", "--db", str(path), "kitchen"])
    assert f"receipt {verdict}" in capsys.readouterr().out


def test_without_the_key_nothing_is_proved(tmp_path: Path, capsys: Output) -> None:
    path = write_database(tmp_path / "callboard.db")
    record(path, ("round", ModelReplied("", (CALL,))), ("tool", proven(b"k" * 32)))
    assert told(path, capsys, "tool")[-1]["proof"] == "unchecked"
    receipt_key.load_or_make(path)
    assert told(path, capsys, "tool")[-1]["proof"] == "bad"


def test_replay_tells_who_decided_about_a_call(tmp_path: Path, capsys: Output) -> None:
    path = write_database(tmp_path / "callboard.db")
    record(
        path,
        ("round", ModelReplied("", (CALL,))),
        ("leave", ApprovalRecorded(CALL.id, "asked")),
        ("leave", ApprovalRecorded(CALL.id, "approved", "cli/olga")),
    )
    scenes = told(path, capsys, "leave")
    assert [(each["who"], each["text"]) for each in scenes] == [
        ("shell", "asked"),
        ("shell", "approved by cli/olga"),
    ]
