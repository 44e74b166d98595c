"""Proves who may bring us what Meta's webhooks bring, over a real socket."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import httpx
import pytest
import trio

from actors.errors import OverloadedError, StoppingError
from connectors.chat.platforms import SignedGate
from connectors.web.server import HttpSettings
from runtime.errors import StoreUnavailableError
from tests.fakes.web.channel import Channel, open_channel
from tests.fakes.whatsapp.graph import SECRET, sign
from tests.support.chat.whatsapp_bed import ANNA, BEN, TOKEN, ZOE, WhatsAppBed

SHAKE = {
    "hub.mode": "subscribe",
    "hub.verify_token": TOKEN,
    "hub.challenge": "1158201444",
}


class Hall:
    """A server that Meta calls, and the numbers behind it."""

    def __init__(self, bed: WhatsAppBed, channel: Channel) -> None:
        self.bed = bed
        self.channel = channel

    async def post(
        self, body: bytes, path: str = "whatsapp", **headers: str
    ) -> httpx.Response:
        signed = {"x-hub-signature-256": sign(body)} if not headers else {}
        given = {"content-type": "application/json", **signed}
        given |= {key.replace("_", "-"): value for key, value in headers.items()}
        async with httpx.AsyncClient(base_url=self.channel.url, timeout=10) as client:
            return await client.post(f"/platforms/{path}", content=body, headers=given)

    async def shake(self, path: str = "whatsapp", **changed: str) -> httpx.Response:
        query = {**SHAKE, **{f"hub.{key}": value for key, value in changed.items()}}
        async with httpx.AsyncClient(base_url=self.channel.url, timeout=10) as client:
            return await client.get(f"/platforms/{path}", params=query)


@asynccontextmanager
async def open_hall(*agents: str, **more: Any) -> AsyncGenerator[Hall]:
    bed = WhatsAppBed(*agents, **more)
    async with (
        open_channel(HttpSettings(port=0), gates=bed.gates) as channel,
        bed.listening(),
    ):
        yield Hall(bed, channel)


def said(bed: WhatsAppBed, text: str = "grüß dich") -> bytes:
    return bed.server.webhook(ANNA, bed.server.message(text))


async def test_the_handshake_gives_back_the_bare_challenge() -> None:
    async with open_hall() as hall:
        response = await hall.shake()
        assert (response.status_code, response.text) == (200, "1158201444")
        assert response.headers["content-type"].startswith("text/plain")


@pytest.mark.parametrize(
    "changed",
    [
        {"verify_token": "another"},
        {"verify_token": ""},
        {"verify_token": "käse"},
        {"mode": "unsubscribe"},
        {"challenge": ""},
        {"challenge": "<script>alert(1)</script>"},
        {"challenge": "1" * 300},
    ],
)
async def test_a_wrong_handshake_is_refused_and_on_record(
    changed: dict[str, str],
) -> None:
    async with open_hall() as hall:
        assert (await hall.shake(**changed)).status_code == 403
        (attempt,) = hall.channel.ingress.refused
        assert (attempt.reason, attempt.sender_id) == ("bad_verify_token", "127.0.0.1")


async def test_what_is_signed_over_its_bytes_is_taken() -> None:
    async with open_hall() as hall:
        body = said(hall.bed)
        assert b"\\u00fc" in body
        assert (await hall.post(body)).status_code == 200
        (inbound,) = hall.bed.ingress.accepted
        assert inbound.text == "grüß dich"


@pytest.mark.parametrize(
    "signature",
    [
        "",
        "sha256",
        "sha256=",
        "sha256=<signature>",
        "sha256=" + "0" * 64,
        "sha256=" + "g" * 64,
        "SHA256=x",
        "changeme",
    ],
)
async def test_missing_blank_and_placeholder_signatures_are_refused(
    signature: str,
) -> None:
    async with open_hall() as hall:
        headers = {"x_hub_signature_256": signature} if signature else {"x_none": "1"}
        response = await hall.post(said(hall.bed), **headers)
        assert response.status_code == 401
        assert hall.bed.ingress.accepted == []
        (attempt,) = hall.channel.ingress.refused
        assert attempt.reason in {"bad_secret", "bad_signature"}
        assert attempt.sender_id == "127.0.0.1"


async def test_wrong_algorithms_keys_and_headers_are_refused() -> None:
    async with open_hall() as hall:
        body = said(hall.bed)
        for headers in (
            {"x_hub_signature": sign(body, algorithm="sha1")},
            {"x_hub_signature_256": sign(body, algorithm="sha1")},
            {"x_hub_signature_256": sign(body, algorithm="sha512")},
            {"x_hub_signature_256": sign(body).removeprefix("sha256=")},
            {"x_hub_signature_256": sign(body, secret="f" * 32)},
            {"x_hub_signature_256": sign(body, secret="")},
            {"x_hub_signature_256": sign(b"")},
        ):
            assert (await hall.post(body, **headers)).status_code == 401, headers
        assert hall.bed.ingress.accepted == []


async def test_a_body_put_together_anew_is_refused() -> None:
    async with open_hall() as hall:
        body = said(hall.bed)
        anew = json.dumps(json.loads(body), ensure_ascii=False).encode()
        assert anew != body
        response = await hall.post(anew, x_hub_signature_256=sign(body))
        assert response.status_code == 401
        assert (await hall.post(body + b" ", x_hub_signature_256=sign(body))).is_error


async def test_two_signatures_let_nobody_in() -> None:
    async with open_hall() as hall:
        body = said(hall.bed)
        headers = [
            ("content-type", "application/json"),
            ("x-hub-signature-256", sign(body)),
            ("x-hub-signature-256", "sha256=00"),
        ]
        async with httpx.AsyncClient(base_url=hall.channel.url) as client:
            response = await client.post(
                "/platforms/whatsapp", content=body, headers=headers
            )
        assert response.status_code == 401


async def test_a_replay_is_acknowledged_and_taken_once() -> None:
    async with open_hall() as hall:
        body = said(hall.bed)
        for _ in range(3):
            assert (await hall.post(body)).status_code == 200
        assert len(hall.bed.ingress.accepted) == 1
        assert hall.bed.counted("events", outcome="seen") == 2


async def test_what_is_older_than_meta_ever_repeats_is_left_out() -> None:
    async with open_hall() as hall:
        body = said(hall.bed)
        hall.bed.clock.ahead = 8 * 86_400 + 60
        assert (await hall.post(body)).status_code == 200
        assert hall.bed.ingress.accepted == []
        assert hall.bed.counted("events", outcome="stale") == 1


async def test_an_oversize_body_is_refused_unread() -> None:
    async with open_hall(max_body_bytes=2_000) as hall:
        assert (await hall.post(said(hall.bed, "a" * 3_000))).status_code == 413
        assert (await hall.post(said(hall.bed))).status_code == 200


async def test_as_much_as_meta_ever_brings_is_taken() -> None:
    async with open_hall() as hall:
        server = hall.bed.server
        largest = server.webhook(ANNA, server.message("hello", pad="a" * 3_000_000))
        assert len(largest) > HttpSettings(port=0).max_body_bytes
        assert (await hall.post(largest)).status_code == 200
        wrong = await hall.post(largest, x_hub_signature_256="sha256=" + "0" * 64)
        assert wrong.status_code == 401
        assert [each.text for each in hall.bed.ingress.accepted] == ["hello"]


async def test_what_is_signed_and_no_json_is_refused() -> None:
    async with open_hall() as hall:
        for body in (b"", b"[]", b'"x"', b"{", b"\xff", b"[" * 100_000):
            assert (await hall.post(body)).status_code in {200, 400}, body[:10]
        assert hall.bed.ingress.accepted == []


@pytest.mark.parametrize(
    "error",
    [OverloadedError("full"), StoreUnavailableError("disk"), StoppingError("bye")],
)
async def test_what_is_not_stored_is_not_acknowledged(error: Exception) -> None:
    async with open_hall() as hall:
        hall.bed.ingress.error = error
        body = said(hall.bed)
        response = await hall.post(body)
        assert response.status_code == 503
        assert int(response.headers["retry-after"]) >= 1
        hall.bed.ingress.error = None
        assert (await hall.post(body)).status_code == 200
        assert len(hall.bed.ingress.accepted) == 1


async def test_an_address_that_is_none_looks_like_a_wrong_secret() -> None:
    async with open_hall() as hall:
        wrong = await hall.post(said(hall.bed), x_hub_signature_256="sha256=00")
        told = [wrong]
        for path in ("nobody", "whatsapp/anna"):
            told += [await hall.post(said(hall.bed), path), await hall.shake(path)]
        assert {each.status_code for each in told} == {401}
        assert {each.text for each in told} == {wrong.text}


async def test_a_word_that_comes_twice_is_none() -> None:
    async with open_hall() as hall:
        query = httpx.QueryParams(SHAKE).add("hub.verify_token", TOKEN)
        async with httpx.AsyncClient(base_url=hall.channel.url) as client:
            response = await client.get("/platforms/whatsapp", params=query)
        assert response.status_code == 403


async def test_one_address_is_all_numbers() -> None:
    async with open_hall("anna", "ben") as hall:
        server = hall.bed.server
        bodies = [server.webhook(to, server.message("hello")) for to in (ANNA, BEN)]
        assert [(await hall.post(body)).status_code for body in bodies] == [200, 200]
        found = [(e.agent, e.address.chat) for e in hall.bed.ingress.accepted]
        assert found == [("anna", f"{ANNA}:{ZOE}"), ("ben", f"{BEN}:{ZOE}")]


async def test_when_nobody_listens_nothing_is_taken() -> None:
    bed = WhatsAppBed()
    async with open_channel(HttpSettings(port=0), gates=bed.gates) as channel:
        hall = Hall(bed, channel)
        async with bed.listening():
            assert (await hall.post(said(bed))).status_code == 200
        assert (await hall.post(said(bed))).status_code == 401
        assert (await hall.shake()).status_code == 401
    assert len(bed.ingress.accepted) == 1


async def test_a_blank_secret_lets_nobody_in() -> None:
    bed = WhatsAppBed()
    async with bed.listening():
        body = said(bed)
        assert (await bed.call(body, sign(body, secret=""))).status == 401
        assert (await bed.call(body, sign(body, secret=SECRET[:8]))).status == 401
        assert (await bed.call(body)).status == 200
        assert isinstance(bed.calls, SignedGate)


async def test_too_much_at_once_is_to_be_brought_again() -> None:
    async with open_hall() as hall, trio.open_nursery() as nursery:
        slow = hall.bed.ingress.gate = trio.Event()
        statuses: list[int] = []

        async def bring(number: int) -> None:
            message = hall.bed.server.message("hi", f"{ZOE}{number}", pad="a" * 900_000)
            response = await hall.post(hall.bed.server.webhook(ANNA, message))
            statuses.append(response.status_code)
            if response.status_code == 503:
                slow.set()

        for number in range(80):
            nursery.start_soon(bring, number)
        await hall.bed.ingress.is_asked.wait()
        assert (await hall.shake()).status_code == 200
    taken = statuses.count(200)
    assert 60 <= taken < 80
    assert taken == len(hall.bed.ingress.accepted)
    assert statuses.count(503) == 80 - taken
