"""Proves that a server without a key answers to its own names only."""

from __future__ import annotations

import httpx
import pytest

from tests.fakes.web.channel import open_channel


@pytest.mark.parametrize(
    "host",
    [
        "evil.example",
        "localhost.evil.example",
        "127.0.0.1.evil.example:80",
        "evil.example:127.0.0.1",
        "[::1].evil.example",
    ],
)
async def test_a_foreign_name_is_refused(host: str) -> None:
    async with (
        open_channel() as channel,
        httpx.AsyncClient(base_url=channel.url) as client,
    ):
        response = await client.get("/v1/models", headers={"host": host})
    assert response.status_code == 403


@pytest.mark.parametrize(
    "host", ["localhost", "LOCALHOST:8080", "127.0.0.1", "[::1]:8"]
)
async def test_an_own_name_is_served(host: str) -> None:
    async with (
        open_channel() as channel,
        httpx.AsyncClient(base_url=channel.url) as client,
    ):
        response = await client.get("/v1/models", headers={"host": host})
    assert response.status_code == 200
