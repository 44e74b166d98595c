"""Proves what the door for platforms reads, whom it asks, and what it then says."""

from __future__ import annotations

import threading
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager

import httpx
import pytest
import trio

from connectors.chat.platforms import Gates, PlatformAnswer, PlatformCall, Terms
from connectors.web.server import HttpSettings
from connectors.web.webhooks import LONG
from tests.fakes.web.channel import Channel, open_channel

ALL, ONE = "/platforms/meta", "/platforms/chat/anna"
SIGNED = {"content-type": "application/json", "x-signature": "right"}


class FakeGate:
    """A gate that lets in what is signed `right`."""

    def __init__(self, terms: Terms | None = None) -> None:
        self.terms = terms or Terms()
        self.told = PlatformAnswer(200)
        self.calls: list[PlatformCall] = []
        self.checked_by: list[int] = []
        self.asked = trio.Event()
        self.may_answer = trio.Event()
        self.may_answer.set()

    def lets_in(self, headers: Mapping[str, str]) -> bool:
        return "x-signature" in headers

    def check(self, call: PlatformCall) -> PlatformAnswer | None:
        self.checked_by.append(threading.get_ident())
        if call.method == "GET":
            challenge = call.query.get("hub.challenge", "").encode()
            return PlatformAnswer(200, challenge, media_type="text/plain")
        is_right = call.headers.get("x-signature") == "right"
        return None if is_right else PlatformAnswer(401, refused="bad_signature")

    async def answer(self, call: PlatformCall) -> PlatformAnswer:
        self.asked.set()
        await self.may_answer.wait()
        self.calls.append(call)
        return self.told


@asynccontextmanager
async def served(
    gate: FakeGate, max_body_bytes: int = 1_048_576
) -> AsyncGenerator[tuple[httpx.AsyncClient, Channel]]:
    """Run the HTTP server with this gate at both kinds of addresses."""
    gates = Gates()
    settings = HttpSettings(port=0, max_body_bytes=max_body_bytes)
    with gates.opened(("meta", ""), gate), gates.opened(("chat", "anna"), gate):
        async with (
            open_channel(settings, gates=gates) as channel,
            httpx.AsyncClient(base_url=channel.url, timeout=10) as client,
        ):
            yield client, channel


@pytest.mark.parametrize("path", [ALL, ONE])
async def test_a_call_reaches_its_gate_byte_by_byte(path: str) -> None:
    gate = FakeGate()
    gate.told = PlatformAnswer(202, b"thanks", media_type="text/plain")
    async with served(gate) as (client, _):
        body = b'{"a":  "\\u00fc"}'
        answer = await client.post(f"{path}?a=1&b=2&b=3", content=body, headers=SIGNED)
    assert (answer.status_code, answer.text) == (202, "thanks")
    (call,) = gate.calls
    assert (call.method, call.body, call.query) == ("POST", body, {"a": "1"})


async def test_a_header_that_came_twice_is_none() -> None:
    gate = FakeGate()
    async with served(gate) as (client, _):
        twice = [("x-signature", "right"), ("x-signature", "right")]
        headers = [("content-type", "application/json"), *twice]
        answer = await client.post(ONE, content=b"{}", headers=headers)
    assert (answer.status_code, gate.calls) == (401, [])


async def test_a_handshake_is_answered_where_the_gate_says_so() -> None:
    gate = FakeGate(Terms(methods=("GET", "POST")))
    async with served(gate) as (client, _):
        answer = await client.get(ALL, params={"hub.challenge": "1158"})
        assert (answer.status_code, answer.text) == (200, "1158")
        assert answer.headers["content-type"].startswith("text/plain")


async def test_whoever_is_not_let_in_is_told_the_same_and_put_on_record() -> None:
    gate = FakeGate()
    async with served(gate) as (client, channel):
        wrong = {**SIGNED, "x-signature": "wrong"}
        none = {"content-type": "application/json"}
        told = [
            await client.get(ONE),
            await client.head(ONE),
            await client.get("/platforms/nobody"),
            await client.post("/platforms/nobody", content=b"{}", headers=SIGNED),
            await client.post(ONE, content=b"{}", headers=none),
            await client.post(ONE, content=b"{}", headers=wrong),
        ]
        assert {each.status_code for each in told} == {401}
        assert len({each.text for each in told if each.text}) == 1
        reasons = [each.reason for each in channel.ingress.refused]
        assert reasons == [*["bad_secret"] * 5, "bad_signature"]
    assert gate.calls == []


@pytest.mark.parametrize(("own", "status"), [(None, 413), (2_000, 200), (900, 413)])
async def test_a_gate_has_a_longest_body_of_its_own(
    own: int | None, status: int
) -> None:
    gate = FakeGate(Terms(most_bytes=own))
    async with served(gate, max_body_bytes=1_000) as (client, _):
        answer = await client.post(ONE, content=b"x" * 1_500, headers=SIGNED)
    assert answer.status_code == status


async def test_bodies_of_other_kinds_are_not_read() -> None:
    gate = FakeGate(Terms(media_types=("application/x-www-form-urlencoded",)))
    async with served(gate) as (client, _):
        answer = await client.post(ONE, content=b"{}", headers=SIGNED)
        assert answer.status_code == 415
        form = {**SIGNED, "content-type": "application/x-www-form-urlencoded"}
        assert (await client.post(ONE, content=b"a=1", headers=form)).status_code == 200


async def test_what_is_not_stored_is_to_be_brought_again() -> None:
    gate = FakeGate()
    gate.told = PlatformAnswer(503, retry_after=7)
    async with served(gate) as (client, _):
        answer = await client.post(ONE, content=b"{}", headers=SIGNED)
    assert (answer.status_code, answer.headers["retry-after"]) == (503, "7")


async def test_a_long_body_is_checked_where_it_keeps_nobody_waiting() -> None:
    gate = FakeGate()
    async with served(gate) as (client, _):
        for size in (LONG - 1, LONG):
            await client.post(ONE, content=b"x" * size, headers=SIGNED)
    short, long = gate.checked_by
    assert short != long


async def test_no_more_is_held_at_once_than_there_is_room_for() -> None:
    huge = 40 * 1_048_576
    gate = FakeGate(Terms(most_bytes=huge))
    gate.may_answer = trio.Event()
    told: list[int] = []

    async def post(client: httpx.AsyncClient, size: int) -> None:
        answer = await client.post(ONE, content=b"x" * size, headers=SIGNED)
        told.append(answer.status_code)

    async with served(gate) as (client, _), trio.open_nursery() as nursery:
        nursery.start_soon(post, client, huge)
        await gate.asked.wait()
        await post(client, huge)
        assert told == [503]
        gate.may_answer.set()
    assert told == [503, 200]
