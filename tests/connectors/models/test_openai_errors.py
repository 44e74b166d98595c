"""Proves what a provider's errors mean, and that they never show the key."""

from __future__ import annotations

import httpx
import msgspec
import pytest
from hypothesis import given, strategies as st

from actors.errors import ModelBusyError, ModelError, ModelRefusedError
from connectors.models.provider_errors import (
    ErrorContext,
    Said,
    read_openai_error,
    read_retry_after,
)
from tests.fakes.models.openai_client import KEY, NOW, PROVIDER, ask
from tests.fakes.models.server import FakeProvider


async def ask_for_error(
    status: int, body: bytes | str = b"", **headers: str
) -> ModelError:
    """Ask a fake provider that answers with an error."""
    response = httpx.Response(status, content=body, headers=headers)
    with pytest.raises(ModelError) as caught:
        await ask(FakeProvider.responding(response))
    assert KEY not in str(caught.value)
    return caught.value


def error(message: str, kind: str = "x", code: str | None = None) -> bytes:
    return msgspec.json.encode(
        {"error": {"message": message, "type": kind, "code": code}}
    )


@pytest.mark.parametrize(
    ("status", "body", "text"),
    [
        (301, b"", "redirects"),
        (400, error("bad tools"), "HTTP 400.: bad tools"),
        (400, error("x", code="context_length_exceeded"), "too long for the model"),
        (400, error("This model's maximum context length is 8192"), "too long"),
        (401, error(f"wrong key {KEY}"), r"api_key: wrong key \[key\]"),
        (402, b"", "quota is used up"),
        (403, b"", "check the setting api_key"),
        (404, error("no model gpt-x"), "no model gpt-x"),
        (413, b"", "too long for the model"),
        (422, b'{"detail": "too hot"}', "too hot"),
        (429, error("pay", kind="insufficient_quota"), "quota"),
        (429, error("pay", code="insufficient_quota"), "quota"),
    ],
)
async def test_what_cannot_be_helped_is_refused(
    status: int, body: bytes, text: str
) -> None:
    caught = await ask_for_error(status, body, location="http://elsewhere/")
    assert isinstance(caught, ModelRefusedError)
    with pytest.raises(ModelRefusedError, match=text):
        raise caught


@pytest.mark.parametrize(
    ("status", "body", "text"),
    [
        (204, b"", "HTTP 204"),
        (408, b"", "HTTP 408"),
        (409, b"", "HTTP 409"),
        (429, error("slow down"), "HTTP 429.: slow down"),
        (500, b"<!doctype html><h1>", "an HTML page"),
        (502, b"\n <html>", "an HTML page"),
        (503, b"\xff\x00 \x1b[31m red", "red"),
        (529, b'{"error": "overloaded"}', "overloaded"),
        (500, b"[" * 60_000, "HTTP 500"),
        (500, b"x" * 10_000_000, "HTTP 500.: x{200}$"),
        (500, f"{'y' * 190}{KEY}".encode(), r"y\[key\]$"),
    ],
)
async def test_what_may_pass_is_busy(status: int, body: bytes, text: str) -> None:
    caught = await ask_for_error(status, body)
    assert isinstance(caught, ModelBusyError)
    assert str(caught).isprintable()
    with pytest.raises(ModelBusyError, match=text):
        raise caught


@pytest.mark.parametrize(
    ("headers", "text"),
    [
        (
            {"content-type": "application/json"},
            "no text/event-stream but: application/json",
        ),
        ({"content-type": "text/html"}, "no text/event-stream but: text/html"),
        ({}, "no text/event-stream but: nothing"),
        ({"content-encoding": "br", "content-type": "text/event-stream"}, "compressed"),
    ],
)
async def test_only_an_event_stream_is_read(headers: dict[str, str], text: str) -> None:
    response = httpx.Response(200, headers=headers)
    with pytest.raises(ModelBusyError, match=text):
        await ask(FakeProvider.responding(response))


@pytest.mark.parametrize(
    ("header", "seconds"),
    [
        ("3", 3.0),
        (" 1.5 ", 1.5),
        ("0", 0.0),
        ("Tue, 14 Nov 2023 22:13:30 GMT", 10.0),
        ("Tue, 14 Nov 2023 22:13:10 GMT", 0.0),
        ("Tue, 14 Nov 2023 22:13:30 -0000", 10.0),
        ("Wed, 15 Nov 2023 00:13:30 +0200", 10.0),
        ("Fri, 14 Nov 2053 22:13:30 GMT", 86_400.0),
        ("999999999", 86_400.0),
        ("-3", None),
        ("soon", None),
        ("nan", None),
        ("1e9", None),
        ("", None),
    ],
)
async def test_the_wait_a_provider_asks_for_is_read(
    header: str, seconds: float | None
) -> None:
    headers = {"retry-after": header}
    caught = await ask_for_error(429, **headers)
    assert isinstance(caught, ModelBusyError)
    assert caught.retry_after == seconds


@given(st.none() | st.text() | st.from_regex(r"\w{3}, \d+ \w{3} \d+ \d+:\d+:\d+ .*"))
def test_any_wait_is_tolerated(header: str | None) -> None:
    seconds = read_retry_after(header, NOW)
    assert seconds is None or 0 <= seconds <= 86_400


@given(st.binary(max_size=300), st.integers(200, 599))
def test_any_error_body_is_tolerated(body: bytes, status: int) -> None:
    caught = PROVIDER.status_error(status, body, read_openai_error(body), None)
    assert len(str(caught)) < 400
    assert str(caught).isprintable()


def test_a_key_that_is_not_accepted_is_named_by_where_it_is_from() -> None:
    known = ErrorContext("host (m)", KEY, "the environment variable X")
    for context, told in (
        (known, "check the setting api_key, which takes it from the environment"),
        (ErrorContext("host (m)", KEY), "check the setting api_key"),
        (ErrorContext("host (m)"), "check the setting api_key: there is none"),
    ):
        error = context.status_error(401, b"", Said(), None)
        assert told in error.plain
        assert KEY not in error.plain
