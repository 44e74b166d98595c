"""Requests go to the pool with the fewest under way, and are counted until closed."""

from __future__ import annotations

import httpx
import pytest
import trio

from connectors.models.spread import Spread, spread

URL = "http://model.test/"


class Body(httpx.AsyncByteStream):
    async def __aiter__(self):  # type: ignore[no-untyped-def]  # noqa: ANN204
        yield b"words"


class Pool(httpx.AsyncBaseTransport):
    """Counts what it is given; fails when told to."""

    def __init__(self) -> None:
        self.taken = 0
        self.fails = False
        self.is_closed = False

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        await trio.lowlevel.checkpoint()
        self.taken += 1
        if self.fails:
            raise httpx.ConnectError("refused", request=request)
        return httpx.Response(200, stream=Body())

    async def aclose(self) -> None:
        self.is_closed = True


async def test_one_request_after_the_other_uses_one_pool() -> None:
    pools = [Pool(), Pool()]
    async with httpx.AsyncClient(transport=Spread(pools)) as client:
        for _ in range(5):
            assert (await client.get(URL)).content == b"words"
    assert [pool.taken for pool in pools] == [5, 0]
    assert all(pool.is_closed for pool in pools)


async def test_requests_at_the_same_time_are_spread_evenly() -> None:
    pools = [Pool(), Pool(), Pool()]
    async with httpx.AsyncClient(transport=Spread(pools)) as client:
        responses = [
            await client.send(client.build_request("GET", URL), stream=True)
            for _ in range(6)
        ]
        assert [pool.taken for pool in pools] == [2, 2, 2]
        for response in responses:
            await response.aclose()
            await response.aclose()
        await client.get(URL)
    assert [pool.taken for pool in pools] == [3, 2, 2]


async def test_a_request_that_fails_is_no_longer_counted() -> None:
    pools = [Pool(), Pool()]
    pools[0].fails = True
    async with httpx.AsyncClient(transport=Spread(pools)) as client:
        for _ in range(3):
            with pytest.raises(httpx.ConnectError):
                await client.get(URL)
    assert [pool.taken for pool in pools] == [3, 0]


@pytest.mark.parametrize(("most", "pools"), [(1, 1), (8, 1), (9, 2), (128, 16)])
async def test_there_are_as_many_pools_as_the_connections_need(
    most: int, pools: int
) -> None:
    made = spread(most, is_encrypted=False)
    assert len(made._pools) == pools
    await made.aclose()
