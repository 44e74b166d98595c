"""Other models come while everybody talks, and nobody notices."""

from __future__ import annotations

import trio
import trio.testing
from hypothesis import given, settings, strategies as st

from actors import names
from actors.messages.inbound import ModelAnswer, ModelRequest
from actors.models.catalogue import of_one
from actors.models.messages import ReplaceCatalogue
from actors.ports import Speak
from runtime.system import ActorSystem
from tests.fakes.company.company import (
    Cast,
    FakeModel,
    Says,
    at_rest,
    heard,
    open_company,
)
from tests.support.tiers import examples

Clock = trio.testing.MockClock

CHATS = 8


class Client(FakeModel):
    """A model that answers while it is open, and not after."""

    def __init__(self, after: float) -> None:
        super().__init__(lambda request: Says(f"ok {heard(request)}", after=after))
        self.closed = 0
        self.was_asked_too_late = False

    async def answer(self, request: ModelRequest, speak: Speak) -> ModelAnswer:
        self.was_asked_too_late |= self.closed > 0
        answer = await super().answer(request, speak)
        self.was_asked_too_late |= self.closed > 0
        return answer

    async def aclose(self) -> None:
        self.closed += 1
        await super().aclose()


waits = st.floats(0.0, 3.0)


@given(st.lists(waits, max_size=12), st.lists(waits, min_size=1, max_size=12), waits)
@settings(max_examples=examples(15, deep=160), deadline=None)
def test_models_replaced_under_load_fail_no_turn_and_leave_nothing_open(
    replaced_after: list[float], asked_after: list[float], slowness: float
) -> None:
    clients = [Client(slowness) for _ in range(len(replaced_after) + 1)]
    cast = Cast(model=clients[0])
    clock = trio.testing.MockClock(autojump_threshold=0)
    trio.run(converse, clock, cast, clients, replaced_after, asked_after, clock=clock)
    said = [text for chat in range(CHATS) for text in cast.platform.said(f"chat{chat}")]
    wanted = [f"anna: ok m{number}" for number in range(len(asked_after))]
    assert sorted(said) == sorted(wanted)
    assert [each.closed for each in clients] == [1] * len(clients)
    assert not any(each.was_asked_too_late for each in clients)


async def converse(
    clock: Clock,
    cast: Cast,
    clients: list[Client],
    replaced_after: list[float],
    asked_after: list[float],
) -> None:
    """Write in many chats while the models are replaced; wait until all is said."""
    async with open_company(clock, cast) as system, trio.open_nursery() as nursery:
        nursery.start_soon(replace, system, clients[1:], replaced_after)
        for number, wait in enumerate(asked_after):
            await trio.sleep(wait)
            cast.platform.write(f"m{number}", chat=f"chat{number % CHATS}")
        await at_rest(cast)


async def replace(
    system: ActorSystem, clients: list[Client], waits: list[float]
) -> None:
    """Replace the model again and again."""
    models = system.find(names.MODELS)
    assert models is not None
    for client, wait in zip(clients, waits, strict=True):
        await trio.sleep(wait)
        made = of_one(client, model="fake-1")
        await models.ask(ReplaceCatalogue(made, frozenset({"scripted"})))
