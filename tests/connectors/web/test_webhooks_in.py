"""Proves whom `POST /webhooks/<name>` lets in, and what everybody else is told."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import httpx
import pytest
import trio

from actors.errors import OverloadedError, StoppingError, UnconfirmedError
from actors.webhooks.messages import Trigger, Triggered, WebhookMetrics
from actors.webhooks.signature import sign
from connectors.chat.platforms import IncomingWebhook, IncomingWebhooks
from connectors.web.server import HttpSettings
from connectors.web.webhooks import MOST_AT_ONCE
from runtime.clock import SystemClock
from runtime.errors import StoreUnavailableError
from runtime.telemetry.metrics import Metrics
from tests.fakes.web.channel import Channel, open_channel
from tests.fakes.web.webhooks import BODY, KEY, door, signed, signed_by_github

DOORS = {
    "deploys": door(),
    "repo": door(scheme="github", events=("push", "issues.*"), agents=("anna", "ben")),
    "any": door(scheme="github"),
}


class Hall:
    """A server with webhooks, and what came through its doors."""

    def __init__(self) -> None:
        self.doors: dict[str, IncomingWebhook] = dict(DOORS)
        self.metrics = Metrics()
        self.taken: list[Trigger] = []
        self.answer: Triggered | Exception = Triggered(("m1",), is_new=True)
        self.channel: Channel

    async def hand_in(self, trigger: Trigger) -> Triggered:
        await trio.lowlevel.checkpoint()
        self.taken.append(trigger)
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer

    async def post(
        self,
        name: str = "deploys",
        body: bytes = BODY,
        headers: dict[str, str] | None = None,
    ) -> httpx.Response:
        given = now_signed(body) if headers is None else headers
        async with httpx.AsyncClient(base_url=self.channel.url, timeout=10) as client:
            return await client.post(f"/webhooks/{name}", content=body, headers=given)

    def counted(self, webhook: str, outcome: str) -> bool:
        line = (
            "callboard_webhooks_received_total"
            f'{{outcome="{outcome}",webhook="{webhook}"}}'
        )
        return line in self.metrics.render().decode()


def now_signed(body: bytes = BODY, **rest: Any) -> dict[str, str]:
    given: dict[str, Any] = {"at": SystemClock().wall()} | rest
    return signed(body, **given)


def without_id(response: httpx.Response) -> tuple[int, bytes, list[tuple[str, str]]]:
    """Give all that a stranger sees of an answer, but for the time."""
    headers = [each for each in response.headers.items() if each[0] != "date"]
    return response.status_code, response.content, headers


@asynccontextmanager
async def open_hall(**settings: Any) -> AsyncGenerator[Hall]:
    hall = Hall()
    doors = IncomingWebhooks(
        lambda: hall.doors, hall.hand_in, WebhookMetrics(hall.metrics), b"key"
    )
    async with open_channel(HttpSettings(port=0, **settings), doors) as channel:
        hall.channel = channel
        yield hall


async def test_what_is_signed_is_taken_and_named() -> None:
    async with open_hall() as hall:
        response = await hall.post()
        assert response.status_code == 202
        assert response.json() == {"id": "d1", "messages": ["m1"]}
        (trigger,) = hall.taken
        assert (trigger.webhook, trigger.key, trigger.agents) == (
            "deploys",
            "d1",
            ("anna",),
        )
        assert trigger.address == door().address
        assert "Tell what was deployed." in trigger.text
        assert "c0ffee" in trigger.text
        assert hall.counted("deploys", "accepted")


async def test_it_is_taken_where_the_server_has_a_key_and_another_name() -> None:
    async with open_hall(api_key="the key of the API") as hall:
        headers = now_signed() | {"host": "hooks.example.org"}
        assert (await hall.post(headers=headers)).status_code == 202
        key = {"authorization": "Bearer the key of the API"}
        plain = {"content-type": "application/json"}
        assert (await hall.post(headers=plain | key)).status_code == 401


async def test_github_is_believed_and_only_what_is_wanted_starts_a_task() -> None:
    opened = json.dumps({"action": "opened"}).encode()
    async with open_hall() as hall:
        for event, body, wanted in (
            ("push", b"{}", True),
            ("issues", opened, True),
            ("star", b"{}", False),
            ("ping", b"{}", False),
        ):
            headers = signed_by_github(body, event=event)
            response = await hall.post("repo", body, headers)
            assert response.status_code == 202
            assert response.json().get("ignored", False) is not wanted, event
        ping = signed_by_github(event="ping")
        assert (await hall.post("any", BODY, ping)).json()["ignored"]
        assert [each.webhook for each in hall.taken] == ["repo", "repo"]
        assert hall.taken[0].agents == ("anna", "ben")
        assert hall.counted("repo", "ignored")


REFUSED: dict[str, dict[str, str]] = {
    "no signature": {"content-type": "application/json"},
    "blank": now_signed() | {"webhook-signature": ""},
    "placeholder": now_signed(key=b"change-me"),
    "empty key": now_signed(key=b""),
    "undefined": now_signed(key=b"undefined"),
    "sha1": now_signed() | {"webhook-signature": "v1a,AAAA"},
    "github's": signed_by_github(),
    "another body's": now_signed(b"{}"),
    "bearer": {"content-type": "application/json", "authorization": f"Bearer {KEY!r}"},
}


@pytest.mark.parametrize("headers", REFUSED.values(), ids=REFUSED.keys())
async def test_whoever_has_no_key_is_told_the_same_of_every_name(
    headers: dict[str, str],
) -> None:
    async with open_hall() as hall:
        answers = [
            without_id(await hall.post(name, BODY, headers))
            for name in ("deploys", "nobody", "deploys%00", "ä" * 50)
        ]
        assert answers[0][0] == 401
        assert b"missing or wrong signature" in answers[0][1]
        assert all(answer == answers[0] for answer in answers)
        assert hall.taken == []
        assert hall.counted("deploys", "bad_signature")
        assert hall.counted("(unknown)", "bad_signature")
        assert [each.reason for each in hall.channel.ingress.refused] == [
            "bad_signature"
        ] * 4


async def test_a_right_signature_does_not_open_a_door_that_is_not_there() -> None:
    async with open_hall() as hall:
        for name in ("nobody", "DEPLOYS", "repo"):
            assert (await hall.post(name)).status_code == 401, name
        hall.doors.clear()  # the settings have changed
        assert (await hall.post()).status_code == 401
        assert hall.taken == []


async def test_what_is_old_or_yet_to_come_is_refused_with_a_reason() -> None:
    now = SystemClock().wall()
    async with open_hall() as hall:
        for off, code in ((-400, "stale"), (400, "future"), (-3e8, "stale")):
            response = await hall.post(headers=now_signed(at=now + off))
            assert response.status_code == 401
            assert response.json()["error"]["code"] == code
        assert hall.taken == []


async def test_a_body_that_was_encoded_anew_is_not_taken() -> None:
    body = b'{"type":  "deploy.done", "n": 1.50}'
    async with open_hall() as hall:
        again = json.dumps(json.loads(body)).encode()
        assert (await hall.post(body=again, headers=now_signed(body))).is_error
        assert (await hall.post(body=body, headers=now_signed(body))).is_success


async def test_a_replay_starts_nothing_and_is_told_what_it_started_then() -> None:
    async with open_hall() as hall:
        hall.answer = Triggered(("m1",), is_new=False)
        response = await hall.post()
        assert response.status_code == 202
        assert response.json() == {"id": "d1", "messages": ["m1"], "duplicate": True}
        assert hall.counted("deploys", "duplicate")


async def test_what_is_no_json_is_refused_once_the_signature_is_right() -> None:
    async with open_hall() as hall:
        response = await hall.post(body=b"{")
        assert response.status_code == 400
        assert response.json()["error"]["code"] == "invalid_json"
        text = now_signed() | {"content-type": "text/plain"}
        assert (await hall.post(headers=text)).status_code == 415
        assert hall.taken == []


@pytest.mark.parametrize("name", ["deploys", "nobody"])
async def test_a_body_that_is_too_long_is_refused_before_it_is_read(name: str) -> None:
    body = b"[" + b"1," * 1_000 + b"1]"
    async with open_hall(max_body_bytes=1_000) as hall:
        response = await hall.post(name, body, now_signed(body))
        assert response.status_code == 413
        assert hall.taken == []


@pytest.mark.parametrize("name", ["deploys", "nobody"])
async def test_a_body_that_comes_too_slowly_is_refused(name: str) -> None:
    head = f"POST /webhooks/{name} HTTP/1.1\r\nhost: x\r\ncontent-length: 50\r\n"
    headers = "".join(f"{k}: {v}\r\n" for k, v in now_signed().items())
    async with open_hall(body_timeout=0.3) as hall:
        stream = await trio.open_tcp_stream("127.0.0.1", hall.channel.port)
        async with stream:
            await stream.send_all(f"{head}{headers}\r\n{{".encode())
            with trio.fail_after(5):
                answer = await stream.receive_some(65_536)
        assert answer.startswith(b"HTTP/1.1 408 ")
        assert hall.taken == []


@pytest.mark.parametrize("method", ["GET", "PUT", "DELETE", "PATCH", "OPTIONS"])
async def test_another_method_is_refused_alike_for_every_name(method: str) -> None:
    async with (
        open_hall() as hall,
        httpx.AsyncClient(base_url=hall.channel.url, timeout=10) as client,
    ):
        for name in ("deploys", "nobody"):
            response = await client.request(method, f"/webhooks/{name}")
            assert response.status_code == 405
            assert response.headers["allow"] == "POST"


async def test_too_many_bodies_at_once_are_refused_unread() -> None:
    async with open_hall() as hall, trio.open_nursery() as nursery:
        streams = [
            await trio.open_tcp_stream("127.0.0.1", hall.channel.port)
            for _ in range(MOST_AT_ONCE)
        ]
        head = b"POST /webhooks/x HTTP/1.1\r\nhost: x\r\ncontent-length: 9\r\n"
        for stream in streams:
            await stream.send_all(head + b"content-type: application/json\r\n\r\n")
        response = await hall.post()
        while response.status_code != 503:  # the last of them may come after it
            response = await hall.post()
        assert response.headers["retry-after"] == "1"
        for stream in streams:
            await stream.aclose()
        nursery.cancel_scope.cancel()


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (OverloadedError("above 60 a minute"), 429),
        (UnconfirmedError("it was not confirmed"), 503),
        (StoppingError("it ends"), 503),
        (StoreUnavailableError("the disk is full"), 503),
    ],
)
async def test_what_cannot_be_stored_is_refused_so_that_it_is_sent_again(
    error: Exception, status: int
) -> None:
    async with open_hall() as hall:
        hall.answer = error
        response = await hall.post()
        assert response.status_code == status
        assert "retry-after" in response.headers


async def test_without_webhooks_there_is_no_such_path() -> None:
    async with (
        open_channel() as channel,
        httpx.AsyncClient(base_url=channel.url, timeout=10) as client,
    ):
        response = await client.post(
            "/webhooks/deploys", json={}, headers=signed(b"{}")
        )
        assert response.status_code == 404


async def test_a_signature_made_by_curl_and_openssl_is_taken() -> None:
    """The way of docs/connect/webhooks.md, without this program's own code."""
    now, body = int(SystemClock().wall()), b'{"type":"x"}'
    line = (
        "printf '%s' \"$CONTENT\" | openssl dgst -sha256 -mac HMAC"
        f" -macopt hexkey:{KEY.hex()} -binary | base64"
    )
    async with open_hall() as hall:
        done = await trio.run_process(
            ["sh", "-c", line],
            capture_stdout=True,
            env={"CONTENT": f"d9.{now}.{body.decode()}", "PATH": "/usr/bin:/bin"},
        )
        signature = f"v1,{done.stdout.decode().strip()}"
        assert signature == sign(KEY, "d9", now, body)
        headers = now_signed(body, name="d9", at=now) | {"webhook-signature": signature}
        assert (await hall.post(body=body, headers=headers)).status_code == 202
