"""Kills actors by hand, for the operator: what hangs is started anew.

Whoever shows the actor tree asks `warden`. Which actors may be killed, and how often,
`rules/killing.py` says; what becomes of a killed one is its supervisor's business, as
after any failure. Who did it is on record before it is done.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from actors import names
from actors.by_hand import Deed, as_commit
from actors.errors import EndedByHandError
from actors.protocol import TakeUp
from actors.rules import killing
from runtime.actor import Actor
from runtime.errors import StoreError
from runtime.logs import EventLog

if TYPE_CHECKING:
    from actors.services import Services

LOG = EventLog("warden")

DOWN = "it is down now, and is restarted without that; look again in a while"
"""Why nobody is killed who has failed, and waits for its restart."""

# Chosen: who is killed in the middle of a message gives nothing back by itself; a
# supervisor's first restart, and the kernel's patience, are over by then.
TAKE_UP_AFTER = 6.0
"""Seconds."""


class KillActor(msgspec.Struct, frozen=True):
    """Asked of `warden`: kill this actor; the answer is `Killed`."""

    name: str
    """Its full name."""

    by: str
    """Who wants it, for the audit."""


class Killed(msgspec.Struct, frozen=True):
    """What came of it."""

    is_done: bool
    text: str
    """One sentence for people."""


class TakeUpDue(msgspec.Struct, frozen=True):
    """A note to itself: whoever was killed is there again, and may have left work."""


class Warden(Actor):
    """Kills actors that the operator names.

    Takes: `KillActor` (asked).
    Sends: `TakeUp` to the router, when what a killed one left can go on.
    Keeps: when it killed whom, for a minute.
    Fails: never by a disk that fails: then nobody is killed.
    Ends: with the system.
    """

    def __init__(self, services: Services) -> None:
        super().__init__()
        self._services = services
        self._kills = killing.Kills()

    def on_receive(self, message: object) -> object:
        """Kill somebody, or see to what they were about."""
        match message:
            case KillActor():
                return self._kill(message)
            case TakeUpDue() if self.find(names.ROUTER) is not None:
                self.tell(names.ROUTER, TakeUp())
            case TakeUpDue():
                pass  # it takes everything up when it starts
            case _:
                return super().on_receive(message)
        return None

    async def _kill(self, order: KillActor) -> Killed:
        name, now = order.name, self._services.clock.monotonic()
        why = killing.refusal(name, names.ROOT) or self._kills.refusal(name, now)
        found = self.find(name)
        if not why and found is None:
            why = "there is no such actor now; it may have ended by itself"
        elif not why and found is not None and found.is_down():
            why = DOWN
        if why:
            LOG.info("kill refused", actor=name, by=order.by, why=why)
            return Killed(is_done=False, text=why)
        try:
            deed = Deed("kill", "killed", name, order.by)
            await self._services.store.commit(as_commit(deed, self._services))
        except StoreError as error:
            LOG.warning("not killed: no record of it", actor=name, why=str(error))
            return Killed(
                is_done=False, text=f"not killed: it cannot be put on record: {error}"
            )
        # Looked for anew: it may have ended while that was written.
        ref = self.find(name)
        if ref is None:
            return Killed(is_done=False, text="it has ended by itself meanwhile")
        if not ref.crash(EndedByHandError(f"killed by {order.by}")):
            return Killed(is_done=False, text=DOWN)
        kind = ref.actor_class.__name__
        self._kills.count(name, now)
        self._services.metrics.killed(kind)
        LOG.warning("killed by hand", actor=name, kind=kind, by=order.by)
        self.after(TAKE_UP_AFTER, TakeUpDue())
        text = f"{name} is killed; its supervisor restarts it"
        return Killed(is_done=True, text=text)
