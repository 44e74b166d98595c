"""Kills actors by hand, for the operator: what hangs is started anew.

Whoever shows the actor tree asks `warden`. Which actors may be killed, and how often,
`rules/killing.py` says; what becomes of a killed one is its supervisor's business, as
after any failure. Who did it is on record before it is done.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from actors import names, records
from actors.rules import killing
from runtime.actor import Actor
from runtime.errors import StoreError
from runtime.logs import EventLog
from runtime.rows import Commit

if TYPE_CHECKING:
    from actors.services import Services

LOG = EventLog("warden")

CHANNEL = "operator"
"""What the audit names instead of a connector."""

WITHIN = 10.0
"""Seconds that whoever asks waits at most: the record is written first."""


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


class Warden(Actor):
    """Kills actors that the operator names.

    Takes: `KillActor` (asked).
    Sends: nothing; kills through refs.
    Keeps: when it killed whom, for a minute.
    Fails: never by a disk that fails: then nobody is killed.
    Ends: with the system.
    """

    def __init__(self, services: Services) -> None:
        super().__init__()
        self._services = services
        self._kills = killing.Kills()

    def on_receive(self, message: object) -> object:
        """Kill somebody."""
        if isinstance(message, KillActor):
            return self._kill(message)
        return super().on_receive(message)

    async def _kill(self, order: KillActor) -> Killed:
        name, now = order.name, self._services.clock.monotonic()
        why = killing.refusal(name, names.ROOT) or self._kills.refusal(name, now)
        if not why and self.find(name) is None:
            why = "there is no such actor now; it may have ended by itself"
        if why:
            LOG.info("kill refused", actor=name, by=order.by, why=why)
            return Killed(is_done=False, text=why)
        try:
            await self._note(order)
        except StoreError as error:
            LOG.warning("not killed: no record of it", actor=name, why=str(error))
            return Killed(
                is_done=False, text=f"not killed: it cannot be put on record: {error}"
            )
        # Looked for anew: it may have ended while that was written.
        ref = self.find(name)
        if ref is None:
            return Killed(is_done=False, text="it has ended by itself meanwhile")
        kind = ref.actor_class.__name__
        self._kills.count(name, now)
        self._services.metrics.killed(kind)
        LOG.warning("killed by hand", actor=name, kind=kind, by=order.by)
        ref.kill()
        text = f"{name} is killed; its supervisor restarts it"
        return Killed(is_done=True, text=text)

    async def _note(self, order: KillActor) -> None:
        services = self._services
        body = records.AuditRecord(
            channel=CHANNEL,
            chat=order.name,
            sender_id=order.by,
            sender_name=order.by,
            input=f"kill {order.name}",
            status="killed",
            reason="by hand",
        )
        row = records.unheard(services.ids.new(), body, services.keep)
        await services.store.commit(Commit(at=services.clock.wall(), records=(row,)))
