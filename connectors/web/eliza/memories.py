"""What agents remember of the channels of one connector; read on the kernel's side.

Nobody is shown the memory of a channel that they may not see, nor what somebody else
told an agent in private. What agents remember of other connectors is not shown here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from actors import people_rows
from actors.messages import Address
from actors.rules import scopes
from connectors.web.eliza.errors import missing
from connectors.web.eliza.perspective import as_ulid, own_id
from runtime.fact_rows import MAX_SCOPES, FactListing
from runtime.facts import MAX_FACT_ROWS

if TYPE_CHECKING:
    from collections.abc import Iterable

    from actors.notes import FactKind
    from connectors.web.backstage import Backstage
    from connectors.web.eliza.channels import Channels
    from connectors.web.eliza.history import History
    from connectors.web.eliza.keys import Caller
    from connectors.web.eliza.shapes import Channel, Message
    from runtime.fact_rows import StoredFact
    from runtime.store import Store

# Chosen: some milliseconds of reading; beyond, clients name the room.
MOST_ROOMS = 100
"""Rooms looked into where none is named: those that changed last."""

MOST_PEOPLE = 100
"""People of one room whose memories are looked for."""

MOST_READ = 256
"""Scopes of memory read for one question."""


class Look(msgspec.Struct, frozen=True, kw_only=True):
    """Which memories are wanted."""

    before: int = 0
    """Milliseconds; 0: up to the newest."""

    after: int = 0
    search: str = ""
    limit: int = 50
    offset: int = 0

    @property
    def is_filtered(self) -> bool:
        """Whether more must be read than is given."""
        return bool(self.before or self.after or self.search)

    def fits(self, text: str, at: int) -> bool:
        """Whether something of that time is wanted."""
        is_in_time = at > self.after and (not self.before or at < self.before)
        return is_in_time and self.search.casefold() in text.casefold()

    def cut(self, length: int) -> slice:
        """Say which of so many are given."""
        return slice(min(self.offset, length), self.offset + self.limit)


class Memories:
    """Reads them.

    Args:
        connector: its name.
        channels: whose rooms are looked into.
        history: what was said there.
        store: the database.
        backstage: settings, and who works here.
    """

    def __init__(
        self,
        connector: str,
        channels: Channels,
        history: History,
        store: Store,
        backstage: Backstage,
    ) -> None:
        self._connector = connector
        self._channels = channels
        self._history = history
        self._store = store
        self._backstage = backstage

    # --- rooms ----------------------------------------------------------------------

    def rooms(self, caller: Caller, agent_id: str) -> tuple[Channel, ...]:
        """Give the channels that an agent is in, and somebody may see.

        Those that changed last come first.

        Raises:
            ApiError: 404: there is no such agent.
        """
        self._channels.need_agent(agent_id)
        found = [
            each
            for each in self._channels.every()
            if agent_id in each.participants and caller.may_enter(each)
        ]
        return tuple(sorted(found, key=lambda each: -each.updated_at))

    def room(self, caller: Caller, agent_id: str, name: str) -> Channel:
        """Give a channel by its id, or by what an agent calls it.

        Raises:
            ApiError: 404; 403 for who may not see it.
        """
        self._channels.need_agent(agent_id)
        if self._channels.find(name) is not None:
            return self._channels.channel(caller, name)
        for each in self._channels.every():
            if own_id(agent_id, each.id) == name:
                return self._channels.channel(caller, each.id)
        raise missing("room", name)

    def asked(self, caller: Caller, agent_id: str, name: str) -> tuple[Channel, ...]:
        """Give the room that is named, or those to look into if none is.

        Raises:
            ApiError: as `room`.
        """
        if name:
            return (self.room(caller, agent_id, name),)
        return self.rooms(caller, agent_id)[:MOST_ROOMS]

    # --- what was said --------------------------------------------------------------

    async def said(
        self, agent_id: str, rooms: tuple[Channel, ...], look: Look
    ) -> list[tuple[Channel, Message]]:
        """Give what was said in rooms as far as an agent remembers it, newest first.

        Raises:
            StoreError: the disk fails.
        """
        most = look.offset + look.limit
        found: list[tuple[Channel, Message]] = []
        for room in rooms:
            since = max(look.after, room.forgotten.get(agent_id, 0))
            page = await self._history.page(
                room.id, before=look.before, after=since, limit=most
            )
            found += [(room, each) for each in page if look.fits(each.content, each.at)]
        found.sort(key=lambda each: -each[1].at)
        return found[look.cut(len(found))]

    # --- what was taken note of -----------------------------------------------------

    async def facts(
        self,
        agent_id: str,
        names: tuple[str, ...],
        kinds: tuple[FactKind, ...],
        look: Look,
    ) -> list[StoredFact]:
        """Give what an agent has taken note of, the newest first.

        Args:
            agent_id: which agent.
            names: the scopes to look into, as `scopes` gives them.
            kinds: which kinds; none: nothing.
            look: which of them.

        Raises:
            StoreError: the disk fails.
        """
        most = look.offset + look.limit
        limit = MAX_FACT_ROWS if look.is_filtered else min(most, MAX_FACT_ROWS)
        found: list[StoredFact] = []
        if kinds:
            for some in batches(names):
                found += await self._listed(agent_id, some, kinds=kinds, limit=limit)
        wanted = [x for x in found if look.fits(x.text, int(x.created_at * 1000))]
        wanted.sort(key=lambda each: -each.number)
        return wanted[look.cut(len(wanted))]

    async def fact(self, caller: Caller, agent_id: str, memory_id: str) -> StoredFact:
        """Give one thing that an agent has taken note of.

        It is looked for where `scopes` looks: in rooms that changed last.

        Raises:
            ApiError: 404: there is none, or this key may not see it.
            StoreError: the disk fails.
        """
        rooms = self.rooms(caller, agent_id)
        for some in batches(await self.scopes(caller, rooms)):
            found = await self._listed(agent_id, some, ids=(as_ulid(memory_id),))
            if found:
                return found[0]
        raise missing("memory", memory_id)

    async def scopes(
        self, caller: Caller, rooms: tuple[Channel, ...]
    ) -> tuple[str, ...]:
        """Name whose memory somebody may see in rooms.

        Raises:
            StoreError: the disk fails.
        """
        found: dict[str, None] = {}
        if caller.sees_all:
            found[scopes.AGENT] = None
        for room in rooms:
            if len(found) >= MOST_READ:
                break
            found |= dict.fromkeys(await self.scopes_in(caller, room))
        return tuple(found)[:MOST_READ]

    async def scopes_in(self, caller: Caller, room: Channel) -> tuple[str, ...]:
        """Name whose memory somebody may see in one room.

        Raises:
            StoreError: the disk fails.
        """
        address = Address(self._connector, room.id)
        found = [scopes.chat(address)]
        agents = self._channels.agents
        people = [each for each in room.participants if not agents.name(each)]
        is_own = self._backstage.services.sessions.session_scope == "sender"
        for each in people[:MOST_PEOPLE]:
            if is_own and (not caller.entity or caller.entity == each):
                found.append(scopes.chat(address, each))
            if caller.may_know(each):
                found += await self._persons(each)
        return tuple(found)

    async def _persons(self, entity: str) -> tuple[str, ...]:
        known = await people_rows.read(self._store, f"{self._connector}/{entity}")
        return known.person.scopes

    async def _listed(
        self,
        agent_id: str,
        names: tuple[str, ...],
        *,
        kinds: tuple[FactKind, ...] = (),
        ids: tuple[str, ...] = (),
        limit: int = MAX_FACT_ROWS,
    ) -> tuple[StoredFact, ...]:
        listing = FactListing(
            agent=self._channels.need_agent(agent_id),
            scopes=names,
            kinds=kinds,
            ids=ids,
            now=self._backstage.services.clock.wall(),
            limit=limit,
        )
        return await self._store.facts.listed(listing)


def batches(names: Iterable[str]) -> list[tuple[str, ...]]:
    """Give scopes as many at a time as one question may name."""
    every = tuple(names)
    return [
        every[start : start + MAX_SCOPES] for start in range(0, len(every), MAX_SCOPES)
    ]
