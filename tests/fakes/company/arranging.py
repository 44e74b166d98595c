"""Stands for a turn that wants something done later: asks, commits, tells."""

from __future__ import annotations

from typing import Any

import msgspec

from actors import names
from actors.messages.inbound import Address
from actors.rules.markers.outcomes import ActionOutcome
from actors.schedule import messages as carrier
from actors.schedule.appointments import Appointment
from actors.schedule.booking import RequestOrigin
from actors.schedule.messages import AppointmentsStored, Arranged
from actors.schedule.requests import Wish
from actors.schedule.rows import KIND, read
from runtime.actor.actor import Actor
from runtime.store.rows import Commit
from runtime.system import ActorSystem
from tests.fakes.company.company import Cast

ZOE = RequestOrigin(
    scope="person:fake/zoe",
    person="fake/zoe",
    agent="anna",
    address=Address("fake", "room"),
    platform="fake",
    sender_id="zoe",
    sender_name="zoe",
    agents=("anna", "ben"),
)


class Turn(Actor):
    """Ends, and wants something done later."""

    async def on_receive(self, message: Any) -> Any:
        if isinstance(message, Arranged):
            ids = tuple(each.id for each in message.changes)
            self.tell(names.SCHEDULER, AppointmentsStored(ids))
            return None
        wishes, origin = message
        return await carrier.arrange(self, wishes, origin)


async def arrange(
    system: ActorSystem, cast: Cast, *wishes: Wish, **origin: Any
) -> tuple[ActionOutcome, ...]:
    """Do as a session does with what its answer wants done later."""
    turn = system.spawn(Turn())
    where = msgspec.structs.replace(ZOE, **origin)
    arranged = await turn.ask((wishes, where), timeout=30.0)
    commit = Commit(at=cast.clock.wall(), entries=arranged.changes)
    await cast.store.commit(commit)
    turn.tell(arranged)
    turn.stop()
    return tuple(arranged.results)


async def kept(cast: Cast) -> dict[str, Appointment]:
    """Give the appointments that the store holds."""
    rows = await cast.store.entries(KIND)
    found = {row.id: read(row) for row in rows}
    return {name: it for name, it in found.items() if it is not None}
