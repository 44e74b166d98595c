"""Appointments in a run, and what must hold for them whatever goes wrong.

I10  each slot is carried out once or left out with a reason, none before its time, and
     none that is not a time of its rule; what is due is not forgotten

Every fourth seed that plays no rooms has some; people, faults and settings of all seeds
are what they were without them.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

import msgspec

from actors.messages.inbound import Address
from actors.schedule.appointments import Appointment
from actors.schedule.rows import KIND, as_entry, read
from runtime.store.rows import Commit
from tests.fakes.company.company import EPOCH
from tests.simulation.rooms import EVERY as ROOMS_EVERY, FIRST as ROOMS_FIRST
from tests.simulation.workload import PLATFORMS, SENDERS, canary

if TYPE_CHECKING:
    import random  # noqa: TID251  only dice that a seed made are used

    from actors.messages.inbound import Inbound
    from actors.schedule.appointments import Kind
    from runtime.store.rows import StoredEntry
    from tests.simulation.world import World

EVERY = 4
CHATS = ("d1", "d2")

PERIODS = (7, 20, 45)
"""Seconds; the settings' shortest is for people, who must be kept from such."""

BY_HAND = "by hand"


def has_appointments(seed: int) -> bool:
    """Whether a seed plays any."""
    return seed % EVERY == 0 and seed % ROOMS_EVERY != ROOMS_FIRST


class Appointments:
    """All of one run.

    Args:
        world: where they are.
        dice: seeded; not those of anything else.
    """

    def __init__(self, world: World, dice: random.Random) -> None:
        self._world = world
        self._begin = int(EPOCH)
        self._fired: defaultdict[str, list[int]] = defaultdict(list)
        self.made = {f"appointment{n}": self._make(n, dice) for n in range(6)}

    def _make(self, number: int, dice: random.Random) -> Appointment:
        platform, chat = dice.choice(PLATFORMS), dice.choice(CHATS)
        sender = dice.choice(SENDERS)
        scope = self._world.plan.sessions.session_scope
        known = canary(platform, chat, sender, is_direct=True, scope=scope)
        period = dice.choice((0, *PERIODS))
        first = self._begin + dice.randint(1, int(self._world.plan.span))
        kinds: tuple[Kind, ...] = ("reminder", "task", "cron", "heartbeat")
        return Appointment(
            kind=dice.choice(kinds) if period else dice.choice(kinds[:2]),
            agent=dice.choice(tuple(self._world.plan.agents)),
            address=Address(platform, chat),
            sender_id=sender,
            sender_name=sender,
            text=f"a{number} {known}",
            repeat=f"every {period}s" if period else "",
            anchor=float(first),
            next_due=float(first),
        )

    # --- what happens to them -------------------------------------------------------

    def put(self) -> None:
        """Write all of them, before anybody lives."""
        self._write({name: (it, None) for name, it in self.made.items()})

    def rest(self) -> None:
        """Let all rest that is not due, as `callboard schedule pause` does."""
        now = self._world.clock.wall()
        change = msgspec.structs.replace
        found = {row.id: (row, read(row)) for row in self._rows()}
        self._write(
            {
                name: (change(it, paused=BY_HAND, run_at=0.0), row.version)
                for name, (row, it) in found.items()
                if it is not None and (it.repeat or it.next_due > now)
            }
        )
        self._world.cast.store.changed_outside = True

    @property
    def waiting(self) -> list[str]:
        """Name those that are due and not begun; all others rest, or are over."""
        found = ((row.id, read(row)) for row in self._rows())
        return [name for name, it in found if it is not None and not it.paused]

    def is_slot(self, inbound: Inbound) -> bool:
        """Whether a message stands for a slot, and not for what came of one."""
        name, _, due = inbound.platform_id.partition("@")
        return name in self.made and due.isdecimal()

    def told_of(self, delivery_id: str) -> Appointment | None:
        """Give the appointment that a notice is about."""
        name, _, rest = delivery_id.partition(":")
        return self.made.get(name) if rest.startswith("paused:") else None

    def _rows(self) -> list[StoredEntry]:
        rows = self._world.cast.store._rows.entries.values()
        return [row for row in rows if row.kind == KIND]

    def _write(self, changed: dict[str, tuple[Appointment, int | None]]) -> None:
        entries = tuple(
            as_entry(name, f"person:{it.address.connector}/{it.sender_id}", it, 7, at)
            for name, (it, at) in changed.items()
        )
        now = self._world.clock.wall()
        self._world.disk_store.write_outside(Commit(at=now, entries=entries))

    # --- what is judged -------------------------------------------------------------

    def accepted(self, inbound: Inbound) -> None:
        """Judge a slot that is carried out."""
        name, _, text = inbound.platform_id.partition("@")
        due, it = int(text), self.made[name]
        self._fired[name].append(due)
        period = int(it.repeat[6:-1]) if it.repeat else 0
        since = due - int(it.anchor)
        is_time = since % period == 0 and since >= 0 if period else since == 0
        if not is_time:
            self._violate(f"{inbound.platform_id} is no time of it", inbound.id)
        if inbound.received_at < due:
            self._violate(f"{inbound.platform_id} came before its time", inbound.id)

    def judge(self) -> None:
        """Judge at rest what was carried out, and what was not."""
        left = {row.id: read(row) for row in self._rows()}
        for name, made in self.made.items():
            it, fired = left.get(name), self._fired[name]
            if len(set(fired)) < len(fired):
                self._violate(f"{name} was carried out twice: {sorted(fired)}")
            if made.repeat:
                self._judge_repeated(name, it, len(fired))
            elif it is None and len(fired) != 1:
                self._violate(f"{name} is over, and was carried out {fired}")
            elif it is not None and it.paused != BY_HAND:
                self._violate(f"{name} was forgotten")

    def tell_what_is_open(self) -> None:
        """Judge what is due when nothing comes to rest."""
        for name in self.waiting:
            self._violate(f"{name} is due and never begun")

    def _judge_repeated(self, name: str, it: Appointment | None, fired: int) -> None:
        if it is None:
            self._violate(f"{name} is gone")
            return
        if it.fired != fired:
            self._violate(f"{name} says {it.fired} were carried out, not {fired}")
        passed = round((it.next_due - it.anchor) / int(it.repeat[6:-1]))
        told = it.fired + it.skipped
        # Where the clock went back, times may be passed, and left out, again.
        may_repeat = "wall" in self._world.faults.hits
        if told < passed or (told > passed and not may_repeat):
            self._violate(f"{name}: {passed} passed, {told} carried or left out")

    def _violate(self, text: str, *subjects: str) -> None:
        self._world.trace.violate("I10", text, *subjects)
