"""Proves that a log's file is bounded, loses no line, and is read as it was written."""

from __future__ import annotations

import io
import os
import resource
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Literal

import pytest
from hypothesis import given, strategies as st

from runtime.telemetry.log_file import Follower, fields_of, log_file, older, read_lines
from runtime.telemetry.logs import EventLog, Value, is_journal, writing

names = st.from_regex(r"[a-z_]{1,8}", fullmatch=True).filter(
    lambda name: name not in {"time", "level", "part", "event"}
)
events = st.from_regex(r"[A-Za-z;,.']+( [A-Za-z;,.']+){0,4}", fullmatch=True)
values = st.text(st.characters(codec="utf-8"), max_size=20) | st.integers()


@given(
    event=events,
    fields=st.dictionaries(names, values, max_size=4),
    shape=st.sampled_from(["text", "json"]),
)
def test_what_was_written_is_read(
    event: str, fields: dict[str, Value], shape: Literal["text", "json"]
) -> None:
    stream = io.StringIO()
    with writing(shape=shape, stream=stream):
        EventLog("test").info(event, **fields)
    found = fields_of(stream.getvalue().rstrip("\n"))
    assert found is not None
    assert found.pop("time")
    kept = {name: str(value) for name, value in found.items()}
    head = {"level": "INFO", "part": "callboard.test", "event": event}
    assert kept == head | {name: str(value) for name, value in fields.items()}


@given(st.text(max_size=60))
def test_what_is_no_line_is_none(text: str) -> None:
    found = fields_of(text)
    assert found is None or isinstance(found, dict)


def test_a_full_file_makes_way_for_a_new_one(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "callboard.log"
    seen: list[str] = []
    with log_file(path, 30) as file, Follower(path) as follower:
        for number in range(8):
            file.write(f"line {number:04}\n")
            seen += follower.read()
    assert seen == [f"line {number:04}" for number in range(8)]
    assert [*read_lines(path)] == seen[3:]
    assert max(path.stat().st_size, older(path).stat().st_size) <= 30
    assert path.stat().st_mode & 0o077 == 0


def test_what_another_program_emptied_is_followed_from_its_start(
    tmp_path: Path,
) -> None:
    path = tmp_path / "callboard.log"
    with Follower(path) as follower:
        assert follower.read() == []
        with log_file(path, 10_000) as file:
            file.write("one\ntwo\nthr")
            assert follower.read() == ["one", "two"]
            os.truncate(path, 0)
            file.write("four\n")
        assert follower.read()[-1].endswith("four")


def test_the_journal_is_told_what_matters(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    log = EventLog("test")
    with open(2, "w", encoding="utf-8", closefd=False) as stderr:
        monkeypatch.setattr("sys.stderr", stderr)
        seen = os.fstat(2)
        monkeypatch.setenv("JOURNAL_STREAM", f"{seen.st_dev}:{seen.st_ino}")
        with writing():
            log.info("one")
            log.warning("two")
        monkeypatch.setenv("JOURNAL_STREAM", "0:0")
        with writing():
            log.error("three")
    one, two, three = capfd.readouterr().err.splitlines()
    assert (one[:3], two[:3]) == ("<6>", "<4>")
    assert three.endswith("ERROR callboard.test three")
    assert not is_journal("")


def test_a_file_that_cannot_make_way_is_written_on(tmp_path: Path) -> None:
    path = tmp_path / "callboard.log"
    (older(path) / "in the way").mkdir(parents=True)
    with log_file(path, 30) as file:
        for number in range(6):
            file.write(f"line {number:04}\n")
        (older(path) / "in the way").rmdir()
        older(path).rmdir()
        file.write("the last\n")
    assert [*read_lines(path)] == [*(f"line {n:04}" for n in range(6)), "the last"]
    assert path.stat().st_size < 30


@contextmanager
def disk_of(size: int) -> Generator[None]:
    """Let no file of this process grow above a size: its disk is full then."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


@pytest.mark.parametrize("is_new_process", [False, True])
def test_a_line_that_a_full_disk_cut_off_stands_alone(
    tmp_path: Path, *, is_new_process: bool
) -> None:
    path = tmp_path / "callboard.log"
    with log_file(path, 1000) as file:
        file.write("one\n")
        with disk_of(6), pytest.raises(OSError, match="File too large"):
            file.write("two\n")
        if not is_new_process:
            file.write("three\n")
    if is_new_process:
        with log_file(path, 1000) as file:
            file.write("three\n")
    assert [*read_lines(path)] == ["one", "tw", "three"]


def test_what_is_no_plain_file_is_refused_at_once(tmp_path: Path) -> None:
    path = tmp_path / "pipe"
    os.mkfifo(path)  # to open it for writing would wait for a reader
    reader = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    try:
        with pytest.raises(OSError, match="is no plain file"), log_file(path, 30):
            pass
    finally:
        os.close(reader)
