"""Proves that what is sent is signed anew each time, and goes where it may."""

from __future__ import annotations

from contextlib import AsyncExitStack
from typing import Any

import pytest
import trio

from actors.webhooks.messages import Receiver, WebhookMetrics
from actors.webhooks.retry import PostResult
from actors.webhooks.signature import Signed, verify
from connectors.app.webhooks import Poster, announcer_of, make_receivers
from connectors.config.app import AppConfig
from connectors.config.hooks import WebhookOutConfig, WebhooksConfig
from connectors.config.tools import FetchConfig
from connectors.fetch.fetcher import Fetcher
from runtime.clock import SystemClock
from runtime.secret import Secret
from runtime.telemetry.metrics import Metrics
from tests.fakes.sites.site import FakeDns, moved, open_site, response
from tests.fakes.web.webhooks import KEY, KEYS, SECRET

PARENT = f"00-{'ab' * 16}-{'cd' * 8}-01"
BODY = b'{"type":"turn.finished","data":{}}'


def config(url: str, **fields: Any) -> AppConfig:
    out = WebhookOutConfig(url=url, secret=Secret(SECRET), **fields)
    return AppConfig(webhooks=WebhooksConfig(out={"ops": out}))


async def post(url: str, **fields: Any) -> PostResult:
    """Send by what the settings make."""
    async with AsyncExitStack() as stack:
        metrics = WebhookMetrics(Metrics())
        receiver: Receiver
        (receiver,) = make_receivers(
            config(url, **fields), SystemClock(), metrics, stack
        )
        return await receiver.post("01EVENT", BODY, PARENT)


def parts(request: bytes) -> tuple[dict[str, str], bytes]:
    """Take a request apart."""
    head, _, body = request.partition(b"\r\n\r\n")
    lines = [line.partition(": ") for line in head.decode().split("\r\n")[1:]]
    return {name.lower(): value for name, _, value in lines}, body


async def test_a_receiver_that_has_the_key_can_tell_whom_it_is_from() -> None:
    async with open_site(lambda _: response(status="204 No Content")) as site:
        posted = await post(f"http://127.0.0.1:{site.port}/hook?a=b", private=True)
    assert posted.status == 204
    headers, body = parts(site.requests[0])
    now = SystemClock().wall()
    found = verify("standard", KEYS, headers, body, now=now, window=300)
    assert found == Signed(key="01EVENT", delivery="01EVENT")
    assert site.paths == ["/hook?a=b"]
    assert headers["traceparent"] == PARENT
    assert (headers["content-type"], body) == ("application/json", BODY)
    assert SECRET not in repr(site.requests)


async def test_each_try_is_signed_at_its_own_time_under_the_same_id() -> None:
    times = iter([1_700_000_000.0, 1_700_000_600.0])
    async with open_site(lambda _: response()) as site:
        fetcher = Fetcher(FetchConfig(allow=("127.0.0.1",)))
        url = f"http://127.0.0.1:{site.port}/"
        poster = Poster(url, KEY, fetcher.fetch, lambda: next(times))
        for _ in range(2):
            await poster("01EVENT", BODY, "")
        await fetcher.aclose()
    heads = [parts(each)[0] for each in site.requests]
    assert [each["webhook-id"] for each in heads] == ["01EVENT"] * 2
    assert "traceparent" not in heads[0], "it is not traced"
    assert heads[0]["webhook-timestamp"] != heads[1]["webhook-timestamp"]
    assert heads[0]["webhook-signature"] != heads[1]["webhook-signature"]


async def test_what_is_not_public_is_reached_by_the_operators_word_only() -> None:
    async with open_site(lambda _: response()) as site:
        posted = await post(f"http://127.0.0.1:{site.port}/token-in-path")
        assert posted.status == 0
        assert "not public" in posted.why
        assert "token-in-path" not in posted.why
        assert site.requests == []
        # The door is this port of this host, and no other.
        other = await post("http://169.254.169.254/latest", private=False)
        assert other.status == 0


async def test_a_name_that_leads_inside_is_not_reached() -> None:
    async with open_site(lambda _: response()) as site:
        dns = FakeDns({"ops.example": [["93.184.216.34"], ["127.0.0.1"]]})
        fetcher = Fetcher(FetchConfig(timeout=1.0), resolve=dns.resolve)
        url = f"http://ops.example:{site.port}/"
        dns._names["ops.example"].pop(0)  # the first answer was for the check
        posted = await Poster(url, KEY, fetcher.fetch, SystemClock().wall)(
            "e", BODY, ""
        )
        await fetcher.aclose()
    assert posted.status == 0
    assert site.requests == []


@pytest.mark.parametrize("headers", [{}, {"Content_Encoding": "gzip"}])
async def test_what_is_taken_is_taken_whatever_the_receiver_says(
    headers: dict[str, str],
) -> None:
    # Else it would be sent again and again to who has it.
    async with open_site(lambda _: response(b"x" * 100_000, **headers)) as site:
        posted = await post(f"http://127.0.0.1:{site.port}/", private=True)
    assert (posted.status, posted.why) == (200, "")


async def test_a_redirect_is_not_followed() -> None:
    async with open_site(lambda _: moved("http://127.0.0.1:1/")) as site:
        posted = await post(f"http://127.0.0.1:{site.port}/", private=True)
    assert posted.status == 0
    assert "redirects" in posted.why
    assert len(site.requests) == 1


@pytest.mark.parametrize(
    ("header", "seconds"),
    [("120", 120.0), ("0", 0.0), ("-5", 0.0), ("soon", 0.0), ("9" * 400, 0.0)],
)
async def test_it_hears_how_long_a_receiver_asks_to_wait(
    header: str, seconds: float
) -> None:
    busy = response(status="429 Too Many Requests", Retry_After=header)
    async with open_site(lambda _: busy) as site:
        posted = await post(f"http://127.0.0.1:{site.port}/", private=True)
    assert (posted.status, posted.retry_after) == (429, seconds)


async def test_a_receiver_that_never_answers_takes_its_time_and_no_more() -> None:
    async with open_site(lambda _: b"") as site:
        with trio.fail_after(5):
            posted = await post(
                f"http://127.0.0.1:{site.port}/", private=True, timeout=0.3
            )
    assert (posted.status, posted.why) == (0, "127.0.0.1 was not done after 0.3 s")


def test_who_is_told_of_what_stands_in_the_settings() -> None:
    app = config("https://ops.example", events=("turn.*",), texts=True)
    (told,) = announcer_of(app).subscriptions
    assert (told.name, told.events, told.has_texts) == ("ops", ("turn.*",), True)
