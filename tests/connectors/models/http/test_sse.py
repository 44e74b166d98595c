"""Proves that events do not depend on how the bytes of a stream are split."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given, strategies as st

from connectors.models.http.client import SseEvent, SseParser, SseTooLargeError

# Few letters, so that line ends, marks and fields meet often.
streams = st.lists(
    st.sampled_from(
        [
            b"\r",
            b"\n",
            b"\r\n",
            b"data",
            b"data:",
            b"data: ",
            b"event: ",
            b":",
            b" ",
            b"\xef\xbb\xbf",
            b"id: 1",
            b"retry: 2",
            b"x",
            b"\xff",
            b"[DONE]",
        ]
    ),
    max_size=40,
).map(b"".join)


def parse(*chunks: bytes) -> list[SseEvent]:
    parser = SseParser()
    return [event for chunk in chunks for event in parser.feed(chunk)]


def parse_by_the_standard(stream: bytes) -> list[SseEvent]:
    """Read a stream as the standard's text says, slowly and all at once."""
    text = stream.removeprefix(b"\xef\xbb\xbf")
    lines = text.replace(b"\r\n", b"\n").replace(b"\r", b"\n").split(b"\n")[:-1]
    events: list[SseEvent] = []
    data, name = b"", b""
    for line in lines:
        field, _, value = line.partition(b":")
        value = value[1:] if value.startswith(b" ") else value
        if line == b"" and data.removesuffix(b"\n"):
            events.append(SseEvent(data.removesuffix(b"\n"), name))
        if line == b"":
            data, name = b"", b""
        elif field == b"data":
            data += value + b"\n"
        elif field == b"event":
            name = value
    return events


@given(streams)
def test_a_stream_is_read_as_the_standard_says(stream: bytes) -> None:
    # A stream that ends in CR could go on with LF, which changes nothing.
    assert parse(stream) == parse_by_the_standard(stream)


@given(streams, st.lists(st.integers(0, 400), max_size=12))
def test_any_split_gives_the_same_events(stream: bytes, cuts: list[int]) -> None:
    edges = [0, *sorted(min(cut, len(stream)) for cut in cuts), len(stream)]
    chunks = [stream[a:b] for a, b in itertools.pairwise(edges)]
    assert parse(*chunks) == parse(stream)


@given(streams)
def test_byte_by_byte_gives_the_same_events(stream: bytes) -> None:
    assert parse(*(bytes([byte]) for byte in stream)) == parse(stream)


@pytest.mark.parametrize("end", [b"\r", b"\n", b"\r\n"])
def test_every_line_end_ends_lines(end: bytes) -> None:
    lines = (b": hello", b"event: add", b"data: one", b"data:two", b"", b"")
    assert parse(end.join(lines)) == [SseEvent(b"one\ntwo", b"add")]


def test_an_event_without_its_empty_line_is_never_given_out() -> None:
    assert parse(b"data: one\n\ndata: half\n") == [SseEvent(b"one")]


def test_comments_and_unknown_fields_say_nothing() -> None:
    assert parse(b": ping\n\nid: 4\nretry: 9\nx: y\n\n: ping\n\n") == []


@pytest.mark.parametrize(
    "stream",
    [
        b"data: " + b"x" * 100,
        b"data: 12345\n" * 30,
        b": " + b"x" * 100,
        b"data\n" * 200,
        b"event: " + b"x" * 100,
    ],
)
def test_memory_is_bounded_whatever_comes(stream: bytes) -> None:
    parser = SseParser(max_event_bytes=64)
    with pytest.raises(SseTooLargeError, match="64 bytes"):
        parser.feed(stream)


@pytest.mark.parametrize("line", [b"data: ", b": ", b"event: "])
def test_a_line_that_never_ends_is_refused_while_it_comes(line: bytes) -> None:
    parser = SseParser(max_event_bytes=64)
    parser.feed(line)
    for _ in range(64 - len(line)):
        parser.feed(b"x")
    with pytest.raises(SseTooLargeError):
        parser.feed(b"x")


def test_events_up_to_the_bound_come_through_one_after_the_other() -> None:
    parser = SseParser(max_event_bytes=64)
    event = b"data: " + b"x" * 58 + b"\n\n"
    assert len(parser.feed(event * 100)) == 100
