"""Whatever a provider does wrong on the wire, people get an answer from another."""

from __future__ import annotations

from collections.abc import AsyncIterator

import h11
import httpx
import pytest
import trio
import trio.testing

from actors.config.agents import AgentConfig
from actors.messages.state import RetryPolicy
from actors.models.catalogue import Catalogue
from tests.actors.models.test_model_faults import FAULTS, Fault
from tests.fakes.company.company import at_rest, open_company
from tests.fakes.models.accounts import Pooled
from tests.fakes.models.dialects import MANNERS, Manner
from tests.fakes.models.sayings import KEY

Clock = trio.testing.MockClock

STRANGE = ("127.0.0.1", "http", "HTTP", "refused the request", "smart-1")
"""What people never read: where a model is, and what its provider says."""

OWN_FAULT = {"bad_request", "content", "context"}
TWO_MANNERS = (MANNERS[0], MANNERS[3])


class Body(httpx.AsyncByteStream):
    """The rest of a response, as far as it comes.

    Args:
        wire: has been fed with all that comes.
        closes: whether the server hangs up then; else it says no more.
    """

    def __init__(self, wire: h11.Connection, *, closes: bool) -> None:
        self._wire = wire
        self._closes = closes

    async def __aiter__(self) -> AsyncIterator[bytes]:
        while True:
            await trio.lowlevel.checkpoint()
            event = next_event(self._wire)
            if isinstance(event, h11.Data):
                yield bytes(event.data)
            elif isinstance(event, h11.EndOfMessage):
                return
            elif self._closes:
                raise httpx.RemoteProtocolError("hung up")
            else:
                await trio.sleep_forever()


class Replay(httpx.AsyncBaseTransport):
    """Answers every request with the same bytes, in virtual time.

    Args:
        response: all the bytes.
        closes: as for `Body`.
    """

    def __init__(self, response: bytes, *, closes: bool) -> None:
        self._response = response
        self._closes = closes
        self.requests = 0

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        await trio.lowlevel.checkpoint()
        self.requests += 1
        wire = h11.Connection(h11.CLIENT)
        wire.send(
            h11.Request(method=request.method, target="/", headers=[("host", "x")])
        )
        wire.send(h11.EndOfMessage())
        if self._response:
            wire.receive_data(self._response)
        body = Body(wire, closes=self._closes)
        event = next_event(wire)
        if isinstance(event, h11.Response):
            headers = [(bytes(name), bytes(value)) for name, value in event.headers]
            return httpx.Response(event.status_code, headers=headers, stream=body)
        if self._closes:
            raise httpx.RemoteProtocolError("no response")
        await trio.sleep_forever()
        raise AssertionError("unreachable: it sleeps for ever")


def next_event(wire: h11.Connection) -> object:
    try:
        return wire.next_event()
    except h11.RemoteProtocolError as error:
        raise httpx.RemoteProtocolError(str(error)) from error


class Wired(Pooled):
    """A company whose first account is a real client of a provider that fails.

    Args:
        manner: which format it speaks.
        fault: what its provider does.
    """

    def __init__(self, manner: Manner, fault: Fault) -> None:
        agents = {"anna": AgentConfig(model="smart")}
        super().__init__(agents=agents, retries=RetryPolicy())
        self.wire = Replay(fault.response(manner), closes=fault.closes)
        self.client = manner.make(self.wire)

    def catalogue(self) -> Catalogue:
        made = super().catalogue()
        clients = {**made.clients, "work": self.client}
        return type(made)(made.offers, clients, made.preferences)


@pytest.mark.parametrize("manner", TWO_MANNERS, ids=str)
@pytest.mark.parametrize("fault", FAULTS, ids=str)
async def test_a_fault_of_one_provider_is_another_s_answer(
    fault: Fault, manner: Manner, autojump_clock: Clock
) -> None:
    cast = Wired(manner, fault)
    async with open_company(autojump_clock, cast):
        cast.platform.write("one")
        await at_rest(cast)
    await cast.client.aclose()
    (said,) = cast.platform.said()
    assert cast.wire.requests == 1
    assert KEY not in said
    if fault.kind in OWN_FAULT:
        wording = "Context window" if fault.kind == "context" else "refused to answer"
        assert wording in said
        assert not any(word in said for word in STRANGE)
        assert cast.home.requests == []
    else:
        assert said == "anna: smart-1@home: one"
