"""Proves that a thousand answers at once stay within the caps and are all whole."""

from __future__ import annotations

import pytest
import trio

from actors.errors import ModelBusyError
from actors.messages.inbound import ModelRequest, TranscriptLine
from tests.fakes.models.dialects import MANNERS, Manner
from tests.fakes.models.sayings import Saying, deaf
from tests.fakes.models.server import chunked, open_raw_server

MOST = 100
ASKED = 1_000
SPOKEN = Saying("All is well.")
STREAMED = [manner for manner in MANNERS if manner.stream]
REQUEST = ModelRequest(
    model="m",
    agent="anna",
    correlation_id="c",
    system="",
    lines=(TranscriptLine("user", "hello"),),
)


@pytest.mark.parametrize("manner", STREAMED, ids=str)
async def test_a_thousand_at_once_share_the_connections(manner: Manner) -> None:
    response = chunked(manner.written(SPOKEN), 400, manner.media_type)
    answers: list[str] = []
    async with open_raw_server(lambda: response, keep_open=True) as server:
        model = manner.make(
            base_url=server.base_url, max_connections=MOST, connect_timeout=60.0
        )

        async def ask() -> None:
            answers.append((await model.answer(REQUEST, deaf)).text)

        async with trio.open_nursery() as nursery:
            for _ in range(ASKED):
                nursery.start_soon(ask)
        await model.aclose()
    assert answers == [SPOKEN.text] * ASKED
    assert server.connections <= MOST
    assert server.requests == ASKED


async def test_who_finds_no_free_connection_in_time_is_told_so() -> None:
    async with open_raw_server(lambda: b"", keep_open=True) as server:
        model = STREAMED[0].make(
            base_url=server.base_url, max_connections=1, connect_timeout=0.1
        )
        async with trio.open_nursery() as nursery:
            nursery.start_soon(model.answer, REQUEST, deaf)
            while not server.requests:
                await trio.lowlevel.checkpoint()
            with pytest.raises(ModelBusyError) as caught:
                await model.answer(REQUEST, deaf)
            nursery.cancel_scope.cancel()
        await model.aclose()
    assert caught.value.kind == "overload"
