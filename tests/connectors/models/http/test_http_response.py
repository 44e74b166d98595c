"""Proves what the bytes of an HTTP response mean, however they are cut."""

from __future__ import annotations

import itertools

import httpx
import pytest
from hypothesis import given, strategies as st

from connectors.models.http.connections import MAX_SILENT_BYTES, HttpResponse

HEAD = b"HTTP/1.1 200 OK\r\nX-Name: anna\r\n"
BODY = b"a body of some words"
CHUNKED = (
    HEAD + b"Transfer-Encoding: chunked\r\n\r\n7\r\na body \r\nd\r\nof some words\r\n"
)
COUNTED = HEAD + b"Content-Length: 20\r\n\r\n" + BODY
EARLY = b"HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n"

WHOLE = [
    pytest.param(CHUNKED + b"0\r\n\r\n", True, id="chunked"),
    pytest.param(CHUNKED + b"0;x=y\r\nTrailer: 1\r\n\r\n", True, id="trailer"),
    pytest.param(COUNTED, True, id="counted"),
    pytest.param(EARLY * 3 + COUNTED, True, id="interim responses"),
    pytest.param(HEAD + b"\r\n" + BODY, False, id="ends with the connection"),
    pytest.param(COUNTED.replace(b"1.1", b"1.0"), False, id="HTTP/1.0"),
    pytest.param(
        COUNTED.replace(b"X-Name: anna", b"Connection: close"), False, id="last"
    ),
]


def read(*pieces: bytes) -> tuple[HttpResponse, bytes]:
    """Feed pieces, taking what they bring at once."""
    response = HttpResponse()
    body = b""
    for piece in pieces:
        response.feed(piece)
        body += response.take()
        if response.is_complete:
            break
    return response, body


@pytest.mark.parametrize(("whole", "may_follow"), WHOLE)
@given(data=st.data())
def test_a_response_is_the_same_however_it_is_cut(
    data: st.DataObject, *, whole: bytes, may_follow: bool
) -> None:
    cuts = data.draw(st.lists(st.integers(1, len(whole) - 1), max_size=9))
    edges = [0, *sorted(set(cuts)), len(whole)]
    pieces = [whole[a:b] for a, b in itertools.pairwise(edges)]
    response, body = read(*pieces, b"")
    assert (response.status, body) == (200, BODY)
    assert response.is_complete
    assert response.may_follow == may_follow
    assert (b"X-Name", b"anna") in response.headers or not may_follow


@pytest.mark.parametrize("whole", [CHUNKED + b"0\r\n\r\n", COUNTED, EARLY + COUNTED])
def test_a_response_that_ends_early_is_an_error(whole: bytes) -> None:
    for at in range(len(whole)):
        response = HttpResponse()
        response.feed(whole[:at] or EARLY)
        assert BODY.startswith(response.take())
        response.feed(b"")
        with pytest.raises(httpx.RemoteProtocolError, match="closed the connection"):
            response.check()
        assert not response.may_follow


@pytest.mark.parametrize("late", [b"x", b"HTTP/1.1 200 OK\r\n", COUNTED])
@pytest.mark.parametrize("whole", [CHUNKED + b"0\r\n\r\n", COUNTED])
def test_what_follows_a_response_is_left_out(whole: bytes, late: bytes) -> None:
    response, body = read(whole + late)
    assert body == BODY
    assert response.is_complete
    assert not response.may_follow
    response.check()


FLOODS = [
    pytest.param(b"HTTP/1.1 200 OK\r\n", b"X: y\r\n" * 1000, id="headers"),
    pytest.param(b"HTTP/1.1 200 OK\r\nX: ", b"y" * 5000, id="a header"),
    pytest.param(EARLY, EARLY * 50, id="interim responses"),
    pytest.param(CHUNKED + b"0\r\n", b"X: y\r\n" * 1000, id="trailers"),
    pytest.param(CHUNKED + b"0\r\nX: ", b"y" * 5000, id="a trailer"),
    pytest.param(CHUNKED + b"5;", b"y" * 5000, id="the line before a chunk"),
]


@pytest.mark.parametrize(("begin", "piece"), FLOODS)
def test_no_part_but_the_body_may_be_endless(begin: bytes, piece: bytes) -> None:
    response = HttpResponse()
    response.feed(begin)
    response.take()
    for _ in range(MAX_SILENT_BYTES // len(piece) + 1):
        response.feed(piece)
    with pytest.raises(httpx.RemoteProtocolError, match="without any of the body"):
        response.take()


@pytest.mark.parametrize(
    "said",
    [
        b"SSH-2.0-OpenSSH_9.2\r\n",
        b"\x16\x03\x01\x00\xa5",
        b"HTTP/1.1 101 Switch\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n",
        b"HTTP/1.1 200 OK\r\n folded\r\n\r\n",
    ],
)
def test_what_is_no_response_is_an_error(said: bytes) -> None:
    with pytest.raises(httpx.RemoteProtocolError):
        read(said, b"")


def test_what_came_before_a_mistake_counts() -> None:
    response = HttpResponse()
    response.feed(CHUNKED + b"no number\r\n")
    assert response.take() == BODY
    with pytest.raises(httpx.RemoteProtocolError, match=r"no HTTP|not HTTP"):
        response.take()


@given(
    st.sampled_from([b"HTTP/1.1 2", CHUNKED, COUNTED[:-5], HEAD]),
    st.lists(st.binary(min_size=1, max_size=60), max_size=5),
)
def test_any_bytes_are_a_response_or_an_error(
    begin: bytes, pieces: list[bytes]
) -> None:
    try:
        response, _ = read(begin, *pieces, b"")
    except httpx.RemoteProtocolError:
        return
    assert response.is_complete
