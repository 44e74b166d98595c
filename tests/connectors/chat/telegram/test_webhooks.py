"""What a webhook brings is taken from Telegram alone, once, and only when stored."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import httpx
import msgspec
import pytest
from trio.testing import MockClock

from connectors.chat.platforms import Gates
from connectors.chat.telegram.listener import TAKEN_WITHIN
from runtime.errors import StoreUnavailableError
from tests.fakes.telegram.api import told
from tests.fakes.telegram.chats import RefusalError
from tests.fakes.web.channel import Channel, open_channel
from tests.support.chat.telegram_bed import SECRET, ZOE, BotBed

URL = "https://bots.test"
PATH = "/platforms/telegram/anna"
HEADER = "X-Telegram-Bot-Api-Secret-Token"
UPDATE = {
    "update_id": 1,
    "message": {
        "message_id": 5,
        "date": 9,
        "from": ZOE,
        "text": "hi",
        "chat": {"id": 1, "type": "private", "first_name": "Zoe"},
    },
}


@asynccontextmanager
async def served() -> AsyncGenerator[tuple[BotBed, httpx.AsyncClient]]:
    """Run the bots behind the HTTP server, with somebody who knocks."""
    bed = BotBed(mode="webhook", webhook_url=f"{URL}/")
    channel: Channel
    async with (
        open_channel(gates=bed.gates) as channel,
        bed.listening(),
        httpx.AsyncClient(base_url=channel.url, timeout=10) as client,
    ):
        yield bed, client


async def post(
    client: httpx.AsyncClient, body: Any = None, path: str = PATH, **headers: str
) -> int:
    """Bring something; gives the status."""
    given = msgspec.json.encode(UPDATE) if body is None else body
    kind = {"content-type": "application/json", HEADER: SECRET}
    response = await client.post(path, content=given, headers={**kind, **headers})
    return response.status_code


async def test_it_is_set_with_its_secret_and_brings_a_message_once() -> None:
    async with served() as (bed, client):
        (asked,) = bed.server.asked_with("setWebhook")
        assert asked["url"] == f"{URL}{PATH}"
        assert (asked["secret_token"], asked["max_connections"]) == (SECRET, 1)
        assert asked["drop_pending_updates"] is False
        assert [await post(client) for _ in range(3)] == [200] * 3
        assert bed.texts() == ["hi"]
        assert bed.server.count("getUpdates") == 0


@pytest.mark.parametrize(
    "secret", ["", "-", "wrong", SECRET[:-1], f"{SECRET}x", SECRET.upper(), "changeme"]
)
async def test_a_missing_or_wrong_secret_is_let_in_nowhere(secret: str) -> None:
    async with served() as (bed, client):
        assert await post(client, **{HEADER: secret}) == 401
        plain = await client.post(PATH, json=UPDATE)
        assert plain.status_code == 401
        assert bed.texts() == []


async def test_an_address_that_is_none_looks_like_a_wrong_secret() -> None:
    async with served() as (_, client):
        told = [
            (await client.post(path, json=UPDATE)).text
            for path in (PATH, "/platforms/telegram/ben", "/platforms/other/anna")
        ]
        assert len(set(told)) == 1
        assert await post(client, path="/platforms/telegram/ben") == 401
        assert (await client.get(PATH)).status_code == 401


@pytest.mark.parametrize(
    ("body", "kind", "status"),
    [
        (b"x" * 2_000_000, "application/json", 413),
        (b"{}", "text/plain", 415),
        (b"no json", "application/json", 200),
        (b'{"update_id": 7, "message": 5}', "application/json", 200),
        (b"[" * 9_000, "application/json", 200),
    ],
)
async def test_what_is_no_update_does_no_harm(
    body: bytes, kind: str, status: int
) -> None:
    async with served() as (bed, client):
        assert await post(client, body, **{"content-type": kind}) == status
        assert await post(client) == 200
        assert bed.texts() == ["hi"]


async def test_the_same_update_written_otherwise_is_taken_once() -> None:
    async with served() as (bed, client):
        assert await post(client) == 200
        again = msgspec.json.format(msgspec.json.encode(UPDATE))
        assert await post(client, again.replace(b"hi", b"\\u0068i")) == 200
        assert bed.texts() == ["hi"]


async def test_what_cannot_be_stored_is_to_be_brought_again(
    autojump_clock: MockClock,
) -> None:
    bed = BotBed(mode="webhook", webhook_url=URL)
    body = msgspec.json.encode(UPDATE)
    async with bed.listening():
        listener = bed.transport.listeners["anna"]
        bed.ingress.error = StoreUnavailableError("disk full")
        began = autojump_clock.current_time()
        assert not await listener.take(body)
        assert autojump_clock.current_time() - began == pytest.approx(TAKEN_WITHIN)
        bed.ingress.error = None
        assert await listener.take(body)
        assert bed.texts() == ["hi"]
        assert bed.counted("updates_total", outcome="later") == 1


async def test_what_a_bot_that_is_not_let_in_cannot_take_is_to_be_brought_again() -> (
    None
):
    pressed = {
        "id": "q1",
        "from": ZOE,
        "message": UPDATE["message"],
        "chat_instance": "1",
        "data": "no command of ours",
    }
    body = msgspec.json.encode({"update_id": 2, "callback_query": pressed})
    async with served() as (bed, client):
        revoked = told(RefusalError(401, "Unauthorized"))
        bed.server.faults.append(("answerCallbackQuery", revoked))
        assert await post(client, body) == 503
        assert bed.bot().answered == []
        assert await post(client, body) == 200
        assert len(bed.bot().answered) == 1


async def test_when_nobody_listens_nothing_is_taken() -> None:
    bed = BotBed(mode="webhook", webhook_url=URL)
    async with (
        open_channel(gates=bed.gates) as channel,
        httpx.AsyncClient(base_url=channel.url, timeout=10) as client,
    ):
        async with bed.listening():
            assert await post(client) == 200
        assert await post(client) == 401
    assert len(bed.ingress.accepted) == 1


async def test_a_webhook_that_is_taken_away_or_not_reached_is_seen(
    autojump_clock: MockClock,
) -> None:
    del autojump_clock
    bed = BotBed(mode="webhook", webhook_url=URL)
    async with bed.listening() as server:
        webhook = bed.bot().webhook
        bed.bot().webhook = {**webhook, "url": "https://elsewhere.test"}
        await bed.wait(lambda: bed.bot().webhook["url"].startswith(URL))
        assert bed.counted("conflicts_total") == 1
        failing = {"pending_update_count": 3, "last_error_message": "no route"}
        now = int(bed.transport._shared.clock.wall())
        bed.bot().webhook = {**webhook, **failing, "last_error_date": now}
        await bed.wait(lambda: "no route" in bed.transport.trouble)
        bed.bot().webhook = webhook
        await bed.wait(lambda: bed.transport.trouble == "")
        assert server.count("setWebhook") == 2


def test_gates_are_opened_and_closed_by_whoever_has_them() -> None:
    gates, place = Gates(), ("telegram", "anna")
    first, second = BotBed(), BotBed()
    one, other = (each.transport.listeners["anna"] for each in (first, second))
    with gates.opened(place, one):
        with gates.opened(place, other):
            assert gates.find(place) is other
        assert gates.find(place) is None
    assert gates.find(("telegram", "ben")) is None
