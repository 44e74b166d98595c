"""Ways to lose QQ's gateway: what can be heard again is, and nothing is taken twice."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import httpx
import pytest

from runtime.errors import StoreUnavailableError
from tests.fakes.qq.gateway import INVALID, RECONNECT
from tests.support.chat.qq_bed import ANNA, QQBed, open_qq

Script = Callable[[QQBed], Awaitable[None]]


async def drop(bed: QQBed) -> None:
    """Cut the connection."""
    await bed.gateway.drop()


async def leave(bed: QQBed) -> None:
    """Have QQ ask for a new connection."""
    await bed.gateway.send({"op": RECONNECT})


async def expire(bed: QQBed) -> None:
    """Have the connection expire."""
    await bed.gateway.close(4009)


async def lose_the_address(bed: QQBed) -> None:
    """Cut the connection, and have nobody tell where the gateway is."""
    bed.server.faults.append(("/gateway", httpx.Response(502)))
    await bed.gateway.drop()


async def odd_frames(bed: QQBed) -> None:
    """Have the gateway say what nobody understands."""
    odd: list[Any] = [{"op": 99}, {"op": 0, "t": 7, "d": []}, {"op": "x"}, {"op": 11}]
    for frame in odd:
        await bed.gateway.send(frame)


@pytest.mark.parametrize("script", [drop, leave, expire, lose_the_address, odd_frames])
async def test_nothing_is_lost_or_taken_twice(script: Script) -> None:
    async with open_qq() as bed, bed.listening():
        await bed.write("before")
        assert (await bed.ingress.next()).text == "before"
        await script(bed)
        await bed.write("meanwhile")
        assert (await bed.ingress.next()).text == "meanwhile"
        await bed.server.wait(bed.all_hear)
        assert len(bed.ingress.accepted) == 2
        assert bed.gateway.identified == 1


@pytest.mark.parametrize("code", [4006, 4007, 4900])
async def test_a_session_that_is_over_leaves_a_gap_that_is_counted(code: int) -> None:
    async with open_qq() as bed, bed.listening():
        await bed.write("before")
        await bed.ingress.next()
        await bed.gateway.close(code)
        await bed.server.wait(lambda: bed.gateway.identified == 2)
        await bed.server.wait(bed.all_hear)
        await bed.write("after")
        assert (await bed.ingress.next()).text == "after"
        assert bed.counted("gaps", outcome="open") == 1


async def test_an_invalid_session_is_begun_anew() -> None:
    async with open_qq() as bed, bed.listening():
        await bed.gateway.send({"op": INVALID, "d": False})
        await bed.server.wait(lambda: bed.gateway.identified == 2)
        await bed.write("hello")
        assert (await bed.ingress.next()).text == "hello"
        assert bed.counted("reconnects") == 1


async def test_a_restart_goes_on_where_all_was_stored() -> None:
    async with open_qq() as bed:
        async with bed.listening():
            await bed.write("one")
            await bed.ingress.next()
            await bed.server.wait(lambda: bed.place() == 2)
            bed.ingress.error = StoreUnavailableError("disk full")
            await bed.write("two")
            await bed.server.wait(lambda: len(bed.server.said) == 1)
        bed.ingress.error = None
        bed.transport = bed.make()
        async with bed.listening():
            assert (await bed.ingress.next()).text == "two"
            assert bed.gateway.resumed == [2]
            assert bed.counted("gaps", outcome="filled") == 1


async def test_a_session_that_qq_forgot_during_a_restart_is_begun_anew() -> None:
    async with open_qq() as bed:
        bed.bookmarks.tokens[ANNA] = "s9 u1001 7"
        async with bed.listening():
            await bed.write("hello")
            assert (await bed.ingress.next()).text == "hello"
        assert bed.gateway.identified == 1
        assert bed.counted("gaps", outcome="open") == 1


@pytest.mark.parametrize(
    ("code", "told"), [(4914, "taken the bot down"), (4014, "see `guilds`")]
)
async def test_a_bot_that_is_not_let_in_ends_alone(code: int, told: str) -> None:
    async with open_qq() as bed:
        bed.gateway.refuses_with = code
        async with bed.listening_when(lambda: told in bed.transport.trouble):
            pass


async def test_a_wrong_secret_is_told() -> None:
    async with open_qq() as bed:
        bed.server.bots[ANNA] = "another"
        told = "invalid appid or secret"
        async with bed.listening_when(lambda: told in bed.transport.trouble):
            pass


async def test_it_beats_as_often_as_the_gateway_asks() -> None:
    async with open_qq() as bed:
        bed.gateway.heartbeat_ms = 10
        async with bed.listening():
            await bed.server.wait(lambda: len(bed.gateway.beats) > 3)
            assert bed.gateway.beats[0] is None
            assert bed.gateway.beats[-1] == 1


@pytest.mark.parametrize("guilds", [True, False])
async def test_only_what_is_asked_for_is_heard(guilds: bool) -> None:  # noqa: FBT001
    async with open_qq(guilds=guilds) as bed, bed.listening():
        intents = bed.gateway.sessions[ANNA].intents
    assert bool(intents & 1 << 25)
    assert bool(intents & 1 << 30) is bool(intents & 1 << 12) is guilds
