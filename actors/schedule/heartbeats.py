"""Configured heartbeats, as appointments like all others.

So they are listed, paused, run and counted as those that somebody asked for. A row of
the settings is known by its `by_settings`: the rule that they gave it last. What people
change about it since then stays until the settings say something else.
"""

from __future__ import annotations

from hashlib import sha256
from typing import TYPE_CHECKING

import msgspec

from actors.journal.parts import in_one_part
from actors.memory import scopes
from actors.messages.inbound import Address
from actors.schedule import recurrence
from actors.schedule.appointments import Appointment
from actors.schedule.rows import as_entry, part_of
from runtime.store.rows import Commit, Entry, StoredEntry
from runtime.telemetry.logs import EventLog

if TYPE_CHECKING:
    from collections.abc import Iterable

    from actors.agents.persona import Persona
    from actors.agents.roster import Roster
    from actors.services import Services

LOG = EventLog("schedule")

ID_LENGTH = 26
"""Characters of an id, as of all others."""


class ConfiguredHeartbeat(msgspec.Struct, frozen=True):
    """One heartbeat of the settings."""

    id: str
    owner: str
    it: Appointment


class HeartbeatRow(msgspec.Struct, frozen=True):
    """A heartbeat as stored in its row."""

    row: StoredEntry
    it: Appointment


def changes(
    beats: Iterable[HeartbeatRow], roster: Roster, services: Services
) -> Commit | None:
    """Say what is to be stored for rows that are as the settings say; None: nothing."""
    now = services.clock.wall()
    wanted = {
        (each.it.agent, each.it.address): each
        for name in roster.team.names
        if (each := settled(roster.persona(name), services, now)) is not None
    }
    entries: list[Entry] = []
    for row, it in ((each.row, each.it) for each in beats):
        known = wanted.pop((it.agent, it.address), None)
        changed = without_settings(it) if known is None else brought_up(it, known.it)
        if changed != it:
            part = part_of(it)
            entries.append(as_entry(row.id, row.owner, changed, part, row.version))
    entries += [
        as_entry(each.id, each.owner, each.it, part_of(each.it), 0)
        for each in wanted.values()
    ]
    if not entries:
        return None
    LOG.info("heartbeats are as the settings say", changed=len(entries))
    commit = Commit(at=now, entries=tuple(entries))
    return in_one_part(commit, entries[0].part, services.ids.new())


def settled(
    persona: Persona, services: Services, now: float
) -> ConfiguredHeartbeat | None:
    """Give the heartbeat that an agent has by the settings; None: it has none."""
    config = persona.config.heartbeat
    connector, _, chat = config.chat.partition("/")
    zone = services.find_zone(persona.config.context.time_zone)
    if not chat or zone is None:
        return None
    address = Address(connector, chat, config.thread)
    sender = config.sender or (chat if config.is_direct else "")
    person = f"{connector}/{sender}" if sender else ""
    rule = recurrence.beat(config.every)
    anchor = now // 1
    it = Appointment(
        kind="heartbeat",
        agent=persona.name,
        address=address,
        is_direct=config.is_direct,
        sender_id=sender,
        person=person,
        repeat=rule,
        zone=persona.config.context.time_zone,
        anchor=anchor,
        next_due=recurrence.RecurrenceRule(rule, anchor, zone).next_after(now) or 0.0,
        created_at=now,
        by_settings=rule,
    )
    owner = scopes.writing(address, person, is_direct=config.is_direct)
    return ConfiguredHeartbeat(id_of(persona.name, address), owner, it)


def id_of(agent: str, address: Address) -> str:
    """Name an agent's heartbeat in a chat: the same, whoever makes it."""
    told = "\n".join(("heartbeat", agent, *msgspec.structs.astuple(address)))
    return sha256(told.encode()).hexdigest()[:ID_LENGTH].upper()


def brought_up(it: Appointment, wanted: Appointment) -> Appointment:
    """Give a row as the settings say, and as people changed it since they did."""
    changed = msgspec.structs.replace(
        it,
        is_direct=wanted.is_direct,
        sender_id=wanted.sender_id,
        person=wanted.person,
        by_settings=wanted.by_settings,
    )
    is_same = it.by_settings == wanted.by_settings and it.zone == wanted.zone
    if is_same and it.next_due:
        return changed
    repeat = it.repeat if is_same else wanted.repeat
    return msgspec.structs.replace(
        changed, repeat=repeat, zone=wanted.zone, next_due=wanted.next_due
    )


def without_settings(it: Appointment) -> Appointment | None:
    """Give a row that the settings do not know: what people asked for stays."""
    if it.by_settings and not (it.items or it.text):
        return None
    return msgspec.structs.replace(it, by_settings="")
