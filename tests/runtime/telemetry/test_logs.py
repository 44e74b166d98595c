"""Proves that an event is one line whatever it holds, and that no secret is in it."""

from __future__ import annotations

import io
import json
import logging
import threading
import time
from typing import Literal, cast

import pytest
from hypothesis import given, strategies as st

from runtime.telemetry.logs import (
    LIMIT,
    MOST_LINES,
    MOST_WAITING,
    EventLog,
    LineFormatter,
    LineHandler,
    LineLimits,
    PacedHandler,
    Redactor,
    Value,
    escaped,
    utc,
    writing,
)

LOG = EventLog("test")
SHAPES = ("text", "json")
Shape = Literal["text", "json"]

shapes = st.sampled_from(SHAPES)
characters = st.characters(
    exclude_categories=()
)  # surrogates, controls and separators among them
texts = st.text(characters, max_size=40)
values = st.none() | st.booleans() | st.integers() | st.floats() | texts
secrets = st.text(st.characters(codec="utf-8"), min_size=8, max_size=20)


def written(
    event: str, shape: Shape = "text", secret: str = "", **fields: Value
) -> str:
    stream = io.StringIO()
    with writing(shape=shape, redactor=Redactor([secret]), stream=stream):
        LOG.info(event, **fields)
    return stream.getvalue()


def parsed(line: str) -> dict[str, object]:
    return cast("dict[str, object]", json.loads(line))


@given(event=texts, value=values, shape=shapes)
def test_no_text_can_make_a_second_line(event: str, value: Value, shape: Shape) -> None:
    line = written(event, shape, field=value)
    assert len(line.splitlines()) == 1
    assert line.endswith("\n")
    assert line[:-1].isprintable()


@given(event=texts, value=texts)
def test_a_json_line_holds_what_was_said(event: str, value: str) -> None:
    found = parsed(written(event, "json", field=value))
    assert found["event"] == event.encode("utf-8", "replace").decode()
    assert found["field"] == value.encode("utf-8", "replace").decode()


@given(secret=secrets, before=texts, after=texts, shape=shapes)
def test_no_secret_is_ever_written(
    secret: str, before: str, after: str, shape: Shape
) -> None:
    stream = io.StringIO()
    text = f"{before}{secret}{after}"
    with writing(shape=shape, redactor=Redactor([secret]), stream=stream):
        LOG.info(text, field=text)
        LOG.fault("failed", ValueError(text))
        logging.getLogger("other.library").warning("said %s", text)
    assert secret not in stream.getvalue()
    assert escaped(secret) not in stream.getvalue()
    assert stream.getvalue().count("\n") == 3


def test_a_cut_never_leaves_half_a_secret() -> None:
    line = written("x", "text", "gold-and-round", y="x" * 296 + "gold-and-round")
    assert "gold" not in line


def test_the_longer_of_two_secrets_goes_whole() -> None:
    redactor = Redactor(["token-1", "token-1-and-more", ""])
    assert redactor.clean("a token-1-and-more b token-1 c") == "a *** b *** c"


def test_a_secret_that_is_learnt_later_goes_and_so_do_the_others() -> None:
    redactor = Redactor(["token-1"])
    redactor.learn(["token-1-and-more", ""])
    assert redactor.clean("a token-1-and-more b token-1 c") == "a *** b *** c"


def test_a_number_that_is_a_secret_goes_too() -> None:
    found = parsed(written("x", "json", "12345678", n=12345678, m=1))
    assert (found["n"], found["m"]) == ("***", 1)


def test_a_received_message_is_one_line_with_channel_sender_and_text() -> None:
    line = written(
        "message received", connector="http", chat="c 1", sender="sam", text="hi\nyou"
    )
    assert line.partition(" ")[2] == (
        "INFO callboard.test message received "
        'connector=http chat="c 1" sender=sam text="hi\\nyou"\n'
    )


def test_a_long_text_is_cut_and_says_so() -> None:
    found = parsed(written("x", "json", text="a" * 500))
    assert found["text"] == "a" * 300 + "… (+200 characters)"


def test_a_line_begins_with_time_level_and_part() -> None:
    assert utc(1795231800.1239) == "2026-11-21T03:30:00.123Z"
    found = parsed(written("x", "json", n=1.5, is_ok=True, nothing=None))
    assert list(found) == ["time", "level", "part", "event", "n", "is_ok", "nothing"]
    assert (found["level"], found["part"]) == ("INFO", "callboard.test")


def test_a_field_cannot_pass_for_the_time() -> None:
    found = parsed(written("x", "json", time="never", level="FATAL"))
    assert found["level"] == "INFO"
    assert (found["time_"], found["level_"]) == ("never", "FATAL")


@pytest.mark.parametrize("shape", SHAPES)
def test_an_error_comes_with_its_traceback_in_the_same_line(shape: Shape) -> None:
    stream = io.StringIO()
    with writing(shape=shape, stream=stream):
        try:
            int("no\nway")
        except ValueError as error:
            LOG.fault("failed", error)
    line = stream.getvalue()
    assert line.count("\n") == 1
    assert "ValueError: invalid literal" in line
    assert "Traceback (most recent call last)" in line


def test_only_lines_of_the_level_and_above_are_written() -> None:
    stream = io.StringIO()
    with writing(level="warning", stream=stream):
        LOG.debug("one")
        LOG.info("two")
        LOG.warning("three")
        LOG.error("four")
        logging.getLogger("other.library").info("five")
    assert [line.split()[-1] for line in stream.getvalue().splitlines()] == [
        "three",
        "four",
    ]


def test_nothing_is_written_or_left_behind_after_the_end() -> None:
    root = logging.getLogger()
    before = (list(root.handlers), root.level)
    stream = io.StringIO()
    with writing(stream=stream):
        assert len(root.handlers) == len(before[0]) + 1
    assert (list(root.handlers), root.level) == before
    assert stream.getvalue() == ""


def test_a_line_that_cannot_be_written_is_told_of_without_its_content() -> None:
    stream = io.StringIO()
    handler = LineHandler(stream)
    handler.setFormatter(LineFormatter("text", Redactor()))
    record = {"name": "other.library", "msg": "%d", "args": ("gold-and-round",)}
    handler.handle(logging.makeLogRecord(record))
    assert stream.getvalue() == (
        "callboard: a log line of other.library could not be written: TypeError\n"
    )


def test_a_stream_that_is_gone_takes_nothing_along() -> None:
    class Gone(io.StringIO):
        def write(self, _text: str) -> int:
            raise BrokenPipeError

    with writing(stream=Gone()):
        LOG.info("into the void")
    assert isinstance(LineHandler(Gone()), logging.Handler)


def test_lines_that_wait_are_written_in_a_moment() -> None:
    stream = io.StringIO()
    with writing(stream=stream, pace=0.01):
        LOG.info("one")
        LOG.info("two")
        while stream.getvalue().count("\n") < 2:  # the thread of the lines writes them
            assert stream.getvalue().count("two") <= 1
    assert stream.getvalue().index("one") < stream.getvalue().index("two")


def test_a_warning_is_written_at_once_and_after_all_before_it() -> None:
    stream = io.StringIO()
    with writing(stream=stream, pace=3600.0):
        LOG.info("one")
        assert stream.getvalue() == ""
        LOG.warning("two")
        assert stream.getvalue().index("one") < stream.getvalue().index("two")


def test_what_waits_at_the_end_is_written() -> None:
    stream = io.StringIO()
    with writing(stream=stream, pace=3600.0):
        LOG.info("one")
    assert "one" in stream.getvalue()


def test_lines_wait_only_so_many() -> None:
    stream = io.StringIO()
    with writing(stream=stream, pace=3600.0):
        for number in range(MOST_LINES + 1):
            LOG.info("line", number=number)
        while stream.getvalue().count("\n") <= MOST_LINES:  # long before the hour
            pass


def test_a_stream_that_knows_ascii_only_gets_every_line() -> None:
    bytes_written = io.BytesIO()
    stream = io.TextIOWrapper(bytes_written, encoding="ascii")
    with writing(stream=stream, pace=0.001):
        LOG.info("Grüße")
        LOG.info("two")
    assert bytes_written.getvalue().count(b"\n") == 2
    assert b"Gr" in bytes_written.getvalue()


class Stalled(io.StringIO):
    """A stream whose first write ends only when it is freed."""

    def __init__(self) -> None:
        super().__init__()
        self.has_stalled = threading.Event()
        self.freed = threading.Event()
        self.was_freed: list[bool] = []

    def write(self, text: str) -> int:
        if not self.has_stalled.is_set():
            self.has_stalled.set()
            # Not for ever: a program that waits for the stream must fail its test.
            self.was_freed.append(self.freed.wait(10.0))
        return super().write(text)

    def events(self) -> list[str]:
        return [line.split()[3] for line in self.getvalue().splitlines()]


class Failing(io.StringIO):
    """A stream that fails a number of times."""

    def __init__(self, *errors: Exception) -> None:
        super().__init__()
        self.failures = list(errors)

    def write(self, text: str) -> int:
        if self.failures:
            raise self.failures.pop(0)
        return super().write(text)


def test_a_closed_stream_takes_nothing_along() -> None:
    stream = io.StringIO()
    handler = LineHandler(stream)
    stream.close()
    for args in (("well",), ("too", "many")):
        record = {"name": "other.library", "msg": "said %s", "args": args}
        handler.handle(logging.makeLogRecord(record))


@pytest.mark.parametrize("pace", [0.0, 0.001])
def test_a_missing_stream_takes_nothing_along(
    pace: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stderr", None)  # as when started without it
    with writing(pace=pace):
        LOG.warning("into the void")


def test_a_stalled_stream_holds_up_no_line_of_no_importance() -> None:
    stream = Stalled()
    with writing(stream=stream, pace=0.001):
        LOG.info("one")
        stream.has_stalled.wait()
        LOG.info("two")
        LOG.info("three")
        stream.freed.set()
    assert stream.was_freed == [True]
    assert stream.events() == ["one", "two", "three"]


@pytest.mark.parametrize("pace", [0.0, 0.001])
def test_a_stalled_stream_holds_up_warnings_for_a_moment_only(pace: float) -> None:
    stream = Stalled()
    with writing(stream=stream, pace=pace):
        for number in range(50):
            for event in (f"w{number}", f"f{number}"):
                LOG.warning(event)
        stream.freed.set()
    # The stream was freed by this thread, which so never waited for it.
    assert stream.was_freed == [True]
    assert stream.events() == [f"{x}{n}" for n in range(50) for x in "wf"]


def test_of_one_kind_of_line_only_so_many_a_minute_are_written() -> None:
    stream = io.StringIO()
    log = LOG.limited(3)
    with writing(stream=stream, shape="json"):
        for number in range(10):
            log.info("refused", number=number)
            LOG.info("refused", number=-1)
        log.info("other")
    lines = [parsed(line) for line in stream.getvalue().splitlines()]
    assert [x["number"] for x in lines if x["event"] == "refused"].count(-1) == 10
    kept = [x["number"] for x in lines if x["event"] == "refused"]
    assert [number for number in kept if number != -1] == [0, 1, 2]
    assert lines[-1]["event"] == "other"


def limited(at: float) -> logging.LogRecord:
    fields = {"name": "callboard.web", "msg": "%s", "args": ("refused",)}
    record = logging.makeLogRecord({**fields, "levelno": logging.INFO, "created": at})
    setattr(record, LIMIT, 2)
    return record


@given(
    gaps=st.lists(st.sampled_from([0.0, 1.0, 31.0, 61.0, -500.0]), min_size=1),
)
def test_every_line_is_written_or_counted_as_left_out(gaps: list[float]) -> None:
    bound, at = LineLimits(), 1_000_000.0
    written = told = 0
    for gap in (*gaps, 600.0):
        at += gap
        told += sum(count for _, count in bound.ended(at))
        written += bound.may_write(limited(at))
    told += sum(count for _, count in bound.ended(at + 600))
    assert written + told == len(gaps) + 1
    assert not list(bound.ended(at + 6_000))


def test_lines_that_were_left_out_are_told_of() -> None:
    stream = io.StringIO()
    handler = LineHandler(stream)
    for second in (0, 1, 2, 3, 4, 70):
        handler.handle(limited(1_000.0 + second))
    lines = stream.getvalue().splitlines()
    assert lines == ["refused", "refused", "3 more lines left out: refused", "refused"]


def test_lines_keep_their_order_behind_a_stalled_stream() -> None:
    stream = Stalled()
    with writing(stream=stream, pace=0.001):
        LOG.info("one")
        stream.has_stalled.wait()
        LOG.info("two")
        warner = threading.Thread(target=LOG.warning, args=("three",))
        warner.start()
        stream.freed.set()
        warner.join()
        assert stream.events() == ["one", "two", "three"]
        LOG.info("four")
    assert stream.events() == ["one", "two", "three", "four"]


def test_behind_a_stalled_stream_the_oldest_lines_are_lost_and_counted() -> None:
    stream = Stalled()
    with writing(stream=stream, shape="json", pace=0.001):
        LOG.info("first")
        stream.has_stalled.wait()
        for number in range(MOST_WAITING + 5):
            LOG.info("line", number=number)
        stream.freed.set()
    assert stream.was_freed == [True]
    first, told, *rest = map(parsed, stream.getvalue().splitlines())
    assert first["event"] == "first"
    assert str(told["event"]).startswith("5 log lines lost: ")
    assert [line["number"] for line in rest] == list(range(5, MOST_WAITING + 5))


def test_a_warning_is_not_lost_behind_a_stalled_stream() -> None:
    stream = Stalled()
    with writing(stream=stream, pace=0.001):
        LOG.info("first")
        stream.has_stalled.wait()
        warners = [threading.Thread(target=LOG.warning, args=("w",)) for _ in "ab"]
        for warner in warners:
            warner.start()
        for _ in range(MOST_WAITING * 2):
            LOG.info("line")
        stream.freed.set()
        for warner in warners:
            warner.join()
    assert stream.events().count("w") == 2


@pytest.mark.parametrize("pace", [0.0, 3600.0])
@pytest.mark.parametrize("error", [OSError("no room"), ValueError("closed")])
def test_lines_that_could_not_be_written_are_counted_in_the_next_one(
    error: Exception, pace: float
) -> None:
    stream = Failing(error, error)
    with writing(stream=stream, pace=pace):
        for event in ("one", "two", "three", "four"):
            LOG.warning(event)
    told, three, four = stream.getvalue().splitlines()
    assert f"2 log lines lost: {type(error).__name__}: {error}" in told
    assert (three.split()[3], four.split()[3]) == ("three", "four")


def test_a_line_made_while_one_is_written_comes_after_it() -> None:
    class Nested(io.StringIO):
        def write(self, text: str) -> int:
            if "outer" in text:
                LOG.warning("inner")  # as a signal's or a finalizer's might be
            return super().write(text)

    stream = Nested()
    with writing(stream=stream, pace=3600.0):
        LOG.warning("outer")
    assert [line.split()[3] for line in stream.getvalue().splitlines()] == [
        "outer",
        "inner",
    ]


def test_the_end_waits_for_a_stalled_stream_only_so_long() -> None:
    stream = Stalled()
    handler = PacedHandler(stream, 0.001, end_within=0.1)
    with handler:
        handler.handle(logging.makeLogRecord({"msg": "one"}))
        assert stream.has_stalled.wait(10)
        began = time.monotonic()
    assert 0.1 <= time.monotonic() - began < 5
    assert stream.getvalue() == ""
    stream.freed.set()
    handler._thread.join(10)
    assert stream.getvalue() == "one\n"
