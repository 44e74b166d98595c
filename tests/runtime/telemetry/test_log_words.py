"""Proves that no words of people stand in a log where none may."""

from __future__ import annotations

import io
from typing import Literal

import pytest

from runtime.telemetry.logs import EventLog, Quoted, QuotedLater, writing

LOG = EventLog("test")


def fail(error: Exception) -> None:
    raise error from RuntimeError(*error.args)


def written(shape: Literal["text", "json"], *, has_words: bool) -> str:
    stream = io.StringIO()
    with writing(shape=shape, stream=stream, has_words=has_words):
        LOG.info("message received", sender="sam", text=Quoted("the nuts"))
        for error in (ValueError("the nuts"), OSError(28, "no space")):
            try:
                fail(error)
            except (ValueError, OSError) as fault:
                LOG.fault("broken", fault)
    return stream.getvalue()


@pytest.mark.parametrize("shape", ["text", "json"])
def test_where_no_words_may_stand_none_do(shape: Literal["text", "json"]) -> None:
    found = written(shape, has_words=False)
    assert "nuts" not in found
    for word in ("sam", "ValueError", "OSError", "no space", "test_log_words.py"):
        assert word in found


@pytest.mark.parametrize("shape", ["text", "json"])
def test_elsewhere_they_are_written_as_any_text(shape: Literal["text", "json"]) -> None:
    found = written(shape, has_words=True)
    assert "ValueError: the nuts" in found
    assert "the nuts" in found.splitlines()[0]


@pytest.mark.parametrize("has_words", [True, False])
def test_words_for_later_are_put_together_only_where_they_may_stand(
    *, has_words: bool
) -> None:
    stream, asked = io.StringIO(), ["the nuts"]
    with writing(stream=stream, has_words=has_words):
        LOG.info("message received", text=QuotedLater(asked.pop))
    assert ("the nuts" in stream.getvalue()) is has_words
    assert bool(asked) is not has_words
