"""Reads, changes and deletes what agents remember of a connector's channels.

Runs on the kernel's side. A *room* is a channel as one agent names it, a *world* a
server. A *memory* is a message in a room, or something that the agent noted: a fact, a
lesson, a summary. Callers see no memory of channels that they may not see, and nothing
that others told in private.

A fact is changed in the way in which the agent itself would note it again. A caller
deletes either one fact, or everything of a room: its facts, the messages so far, and
the conversation, which begins again.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from actors import names
from actors.config.memory import MemoryConfig
from actors.journal.parts import facts_commit, in_one_part
from actors.memory import note_rules as notes, scopes
from actors.memory.forgetting import marked
from actors.memory.messages import (
    FactKind,
    KeepFact,
    KeepLog,
    LearnLesson,
    Note,
    NotesStored,
    SetState,
    Summarise,
)
from actors.messages.inbound import Address
from actors.messages.keys import SessionKey, chat_partition
from actors.people import rows as people_rows
from actors.protocol import DropConversation
from actors.rules.text.secrets import redacted
from connectors.chat.platforms import Backstage
from connectors.web.eliza.keys import ApiCaller
from connectors.web.eliza.messages import (
    ZERO,
    ElizaChannel,
    ElizaHistory,
    ElizaMessage,
    ElizaServer,
    Json,
    as_ulid,
    as_uuid,
    iso,
    missing,
    own_id,
    to_uuid,
    wrong,
)
from connectors.web.eliza.services.channels import Channels
from connectors.web.history import ConnectorStore
from connectors.web.server import ApiError
from runtime.actor.messages import Keyed
from runtime.store.facts import (
    MAX_FACT_ROWS,
    MAX_SCOPES,
    FactChange,
    FactListing,
    ForgetFacts,
    SaveFact,
    StoredFact,
)
from runtime.store.rows import Commit

SAID = "messages"

ALL_KINDS: tuple[FactKind, ...] = (
    "fact",
    "state",
    "lesson",
    "outcome",
    "summary",
    "log",
)

TABLES: dict[str, tuple[FactKind, ...]] = {
    "memories": ALL_KINDS,
    "facts": ("fact",),
    "states": ("state",),
    "lessons": ("lesson",),
    "outcomes": ("outcome",),
    "summaries": ("summary",),
    "logs": ("log",),
    # Official agents have these; agents here read documents when asked.
    "documents": (),
    "fragments": (),
    "knowledge": (),
}
"""The kinds of facts, by the table that clients ask for."""


class Provenance(msgspec.Struct, frozen=True):
    """The origin of a fact; see `actors.memory.review`."""

    connector: str = ""
    chat: str = ""
    sender: str = ""
    message: str = ""


def room_shown(agent_id: str, channel: ElizaChannel) -> Json:
    """Show a channel as a room of an agent."""
    return {
        "id": own_id(agent_id, channel.id),
        "agentId": agent_id,
        "name": channel.name,
        "type": channel.type,
        "source": channel.source_type or "callboard",
        "channelId": channel.id,
        "messageServerId": channel.server,
        "serverId": channel.server,
        "worldId": own_id(agent_id, channel.server),
        "participants": [own_id(agent_id, each) for each in channel.participants],
        "metadata": channel.metadata,
        "createdAt": iso(channel.created_at),
        "updatedAt": iso(channel.updated_at),
    }


def world_shown(agent_id: str, server: ElizaServer) -> Json:
    """Show a server as a world of an agent."""
    return {
        "id": own_id(agent_id, server.id),
        "agentId": agent_id,
        "name": server.name,
        "messageServerId": server.id,
        "serverId": server.id,
        "metadata": server.metadata,
        "createdAt": iso(server.created_at),
        "updatedAt": iso(server.updated_at),
    }


def said_shown(agent_id: str, channel: ElizaChannel, message: ElizaMessage) -> Json:
    """Show a message as a memory of an agent."""
    content: Json = {
        "text": message.content,
        "source": message.source_type,
        "channelType": channel.type,
    }
    content |= {
        name: message.raw[name]
        for name in ("thought", "actions", "attachments")
        if name in message.raw
    }
    if message.reply_to:
        content["inReplyTo"] = own_id(agent_id, message.reply_to)
    return {
        "id": own_id(agent_id, message.id),
        "type": SAID,
        "agentId": agent_id,
        "entityId": own_id(agent_id, message.author),
        "roomId": own_id(agent_id, message.channel),
        "worldId": own_id(agent_id, message.server),
        "content": content,
        "createdAt": message.at,
        "updatedAt": message.updated_at or message.at,
        "metadata": {
            "type": "message",
            "sourceId": message.id,
            "channelId": message.channel,
            "entityName": message.author_name,
        },
    }


def fact_shown(agent_id: str, fact: StoredFact) -> Json:
    """Show a fact as a memory of an agent."""
    told = origin(fact)
    content: Json = {"text": fact.text, "source": told.connector or "callboard"}
    if fact.key:
        content["key"] = fact.key
    shown: Json = {
        "id": as_uuid(fact.id),
        "type": fact.kind,
        "agentId": agent_id,
        "entityId": own_id(agent_id, to_uuid(told.sender)) if told.sender else agent_id,
        "content": content,
        "createdAt": int(fact.created_at * 1000),
        "updatedAt": int(fact.created_at * 1000),
        "metadata": {
            "type": fact.kind,
            "category": fact.category,
            "scope": fact.scope.partition(":")[0],
            "usedAt": int(fact.used_at * 1000),
            "expiresAt": int(fact.expires_at * 1000) or None,
        },
    }
    if told.chat:
        shown["roomId"] = own_id(agent_id, to_uuid(told.chat))
    return shown


def origin(fact: StoredFact) -> Provenance:
    """Read the origin of a fact, as far as it is known."""
    try:
        return msgspec.json.decode(fact.provenance or "{}", type=Provenance)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return Provenance()


# Chosen: some milliseconds of reading; for more, clients name the room.
MOST_ROOMS = 100
"""Rooms that are read if none is named: those that changed last."""

MOST_PEOPLE = 100
"""People of one room whose memories are read."""

MOST_READ = 256
"""Scopes of memory read for one request."""


class MemoryQuery(msgspec.Struct, frozen=True, kw_only=True):
    """Which memories a request wants."""

    before: int = 0
    """Milliseconds; 0: up to the newest."""

    after: int = 0
    search: str = ""
    limit: int
    offset: int = 0

    @property
    def is_filtered(self) -> bool:
        """Whether more must be read than is shown."""
        return bool(self.before or self.after or self.search)

    def fits(self, text: str, at: int) -> bool:
        """Whether a memory with this text and time (ms) is wanted."""
        is_in_time = at > self.after and (not self.before or at < self.before)
        return is_in_time and self.search.casefold() in text.casefold()

    def cut(self, length: int) -> slice:
        """Give the page of a list of this length."""
        return slice(min(self.offset, length), self.offset + self.limit)


class MemoryReader:
    """Reads memories.

    Methods that read or write rows raise `StoreError` if the disk fails.
    """

    def __init__(
        self,
        place: ConnectorStore,
        channels: Channels,
        history: ElizaHistory,
        backstage: Backstage,
    ) -> None:
        self._connector = place.connector
        self._channels = channels
        self._history = history
        self._store = place.store
        self._backstage = backstage

    # --- rooms ----------------------------------------------------------------------

    def rooms(self, caller: ApiCaller, agent_id: str) -> tuple[ElizaChannel, ...]:
        """Give the channels of an agent that the caller may see, last changed first.

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

    def room(self, caller: ApiCaller, agent_id: str, name: str) -> ElizaChannel:
        """Give a channel by its id, or by the agent's id for it.

        Raises:
            ApiError: 404; 403: the caller may not see it.
        """
        self._channels.need_agent(agent_id)
        if self._channels.find(name) is not None:
            return self._channels.channel(caller, name)
        for each in self._channels.every():
            if own_id(agent_id, each.id) == name:
                return self._channels.channel(caller, each.id)
        raise missing("room", name)

    async def room_or_direct(
        self, caller: ApiCaller, agent_id: str, author: str, name: str | None
    ) -> ElizaChannel:
        """Give the named channel, or the direct channel of author and agent.

        Raises:
            ApiError: as `room`, or as `ElizaChannels.direct`.
        """
        if name:
            return self.room(caller, agent_id, name.lower())
        self._channels.need_agent(agent_id)
        return await self._channels.direct(caller, author, agent_id, ZERO)

    def asked(
        self, caller: ApiCaller, agent_id: str, name: str
    ) -> tuple[ElizaChannel, ...]:
        """Give the named room, or the rooms to read if none is named.

        Raises:
            ApiError: as `room`.
        """
        if name:
            return (self.room(caller, agent_id, name),)
        return self.rooms(caller, agent_id)[:MOST_ROOMS]

    # --- what was said --------------------------------------------------------------

    async def said(
        self, agent_id: str, rooms: tuple[ElizaChannel, ...], look: MemoryQuery
    ) -> list[tuple[ElizaChannel, ElizaMessage]]:
        """Give the messages of rooms that an agent has not forgotten, newest first."""
        most = look.offset + look.limit
        found: list[tuple[ElizaChannel, ElizaMessage]] = []
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
        look: MemoryQuery,
    ) -> list[StoredFact]:
        """Give the facts that an agent noted, the newest first.

        Args:
            names: the scopes to read, as `scopes` gives them.
            kinds: of facts; empty: nothing.
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

    async def fact(
        self, caller: ApiCaller, agent_id: str, memory_id: str
    ) -> StoredFact:
        """Give one fact of an agent, from the rooms that `scopes` reads.

        Raises:
            ApiError: 404: none, or the caller may not see it.
        """
        rooms = self.rooms(caller, agent_id)
        for some in batches(await self.scopes(caller, rooms)):
            found = await self._listed(agent_id, some, ids=(as_ulid(memory_id),))
            if found:
                return found[0]
        raise missing("memory", memory_id)

    async def scopes(
        self, caller: ApiCaller, rooms: tuple[ElizaChannel, ...]
    ) -> tuple[str, ...]:
        """Give the scopes of memory in rooms that the caller may see."""
        found: dict[str, None] = {}
        if caller.sees_all:
            found[scopes.AGENT] = None
        for room in rooms:
            if len(found) >= MOST_READ:
                break
            found |= dict.fromkeys(await self.scopes_in(caller, room))
        return tuple(found)[:MOST_READ]

    async def scopes_in(self, caller: ApiCaller, room: ElizaChannel) -> tuple[str, ...]:
        """Give the scopes of memory in one room that the caller may see."""
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
    """Split scopes into batches that one query may name."""
    every = tuple(names)
    return [
        every[start : start + MAX_SCOPES] for start in range(0, len(every), MAX_SCOPES)
    ]


EVERYBODY = ApiCaller("")
"""A caller that may see everything."""

PERSON = "person:"
"""The beginning of scopes for facts about one person, from any channel."""

PAGE = 200

MOST_COUNTED = 10_000
"""Most facts and messages of one room that are counted when deleted."""


class MemoryEditor:
    """Changes and deletes memories."""

    def __init__(
        self,
        place: ConnectorStore,
        channels: Channels,
        history: ElizaHistory,
        memories: MemoryReader,
        backstage: Backstage,
    ) -> None:
        self._connector = place.connector
        self._channels = channels
        self._history = history
        self._memories = memories
        self._store = place.store
        self._backstage = backstage

    async def change(self, fact: StoredFact, text: str) -> SaveFact:
        """Change the text of a fact; secrets are removed.

        Raises:
            ApiError: the text is refused.
            StoreError: the disk fails; nothing has changed.
        """
        services = self._backstage.services
        note = note_of(fact, text)
        if note is None:
            raise wrong(f"a memory of the kind {fact.kind!r} is never changed", "id")
        kit = services.memory
        config = MemoryConfig() if kit is None else kit.config
        written = notes.written(note, lambda x: redacted(services.redact(x)).strip())
        refusal = notes.refusal(written, config)
        if refusal is not None:
            raise wrong(refusal.text, "content")
        place = notes.NotePlace(
            agent=fact.agent,
            scope=fact.scope,
            provenance=fact.provenance,
            now=services.clock.wall(),
        )
        row = notes.row_of(written, place, fact.id, config)
        await self._commit((row,))
        self._tell_memory(fact.agent, (row,))
        return row

    async def forget(self, fact: StoredFact) -> None:
        """Delete one fact for good.

        Raises:
            StoreError: the disk fails; nothing has changed.
        """
        change = ForgetFacts(agent=fact.agent, scopes=(fact.scope,), ids=(fact.id,))
        await self._commit((change,))

    async def clear(self, caller: ApiCaller, agent_id: str, room: ElizaChannel) -> int:
        """Make an agent forget a room, as far as the caller may see its memory.

        Facts that people told it in private are deleted if they told them in this room.

        Returns:
            The number of facts and messages.

        Raises:
            ApiError: 404: no such agent; 503: it is not running.
            StoreError: the disk fails; some may be left.
        """
        agent = self._channels.need_agent(agent_id)
        whose = await self._memories.scopes_in(caller, room)
        own = tuple(each for each in whose if not each.startswith(PERSON))
        others = tuple(each for each in whose if each.startswith(PERSON))
        known = await self._facts(agent_id, own)
        told = [
            each for each in await self._facts(agent_id, others) if is_of(each, room)
        ]
        count = len(known) + len(told) + await self._count_said(agent_id, room)
        await self.end_conversations(agent, room)
        for some in batches(own):
            await self._forget_all(agent, some, room)
        await self._forget_some(agent, told)
        await self._channels.note_forgotten(room.id, agent_id)
        return count

    async def clear_for_all(self, room: ElizaChannel) -> int:
        """Make all agents in a room forget it; count facts and messages.

        Raises:
            ApiError: as `clear`.
            StoreError: likewise.
        """
        agents = self._channels.agents
        inside = [each for each in room.participants if agents.name(each)]
        return sum([await self.clear(EVERYBODY, each, room) for each in inside])

    async def of_message(self, room: ElizaChannel, message: ElizaMessage) -> None:
        """Delete the facts that agents noted because of a message.

        Works only while the message's row is kept: some days after it was answered.

        Raises:
            StoreError: the disk fails; some may be left.
        """
        row = await self._store.answered(self._connector, message.id)
        if row is None:
            return
        whose = await self._memories.scopes_in(EVERYBODY, room)
        for agent_id in room.participants:
            agent = self._channels.agents.name(agent_id)
            if agent:
                known = await self._facts(agent_id, whose)
                found = [x for x in known if origin(x).message == row.message.id]
                await self._forget_some(agent, found)

    async def end_conversations(self, agent: str, room: ElizaChannel) -> None:
        """End all conversations of an agent in a room, so that they begin again.

        Raises:
            StoreError: the conversations cannot be read.
            pykka.ActorDeadError: the agent is being restarted; try again.
        """
        sessions = self._backstage.find(names.sessions(agent))
        if sessions is None:
            raise ApiError(503, f"{agent} is not up; try again", code="unavailable")
        agents = self._channels.agents
        people = [each for each in room.participants if not agents.name(each)]
        for sender in ("", *people[:MOST_PEOPLE]):
            key = SessionKey(agent, self._connector, room.id, sender=sender)
            if await self._store.read(key.text, 0, 1):
                sessions.tell(Keyed(key.text, DropConversation()))

    async def _facts(self, agent_id: str, whose: tuple[str, ...]) -> list[StoredFact]:
        look = MemoryQuery(limit=MOST_COUNTED)
        return await self._memories.facts(agent_id, whose, ALL_KINDS, look)

    async def _forget_all(
        self, agent: str, whose: tuple[str, ...], room: ElizaChannel
    ) -> None:
        services = self._backstage.services
        part, cause = chat_partition(self._connector, room.id), services.ids.new()
        marks = marked(agent, whose, cause)
        change = ForgetFacts(agent=agent, scopes=whose)
        commit = Commit(at=services.clock.wall(), facts=(change,), entries=marks)
        await self._store.commit(in_one_part(commit, part, cause))

    async def _forget_some(self, agent: str, facts: list[StoredFact]) -> None:
        changes = tuple(
            ForgetFacts(agent=agent, scopes=(each.scope,), ids=(each.id,))
            for each in facts
        )
        if changes:
            await self._commit(changes)

    async def _count_said(self, agent_id: str, room: ElizaChannel) -> int:
        since, before = room.forgotten.get(agent_id, 0), 0
        count = 0
        while count < MOST_COUNTED:
            page = await self._history.page(
                room.id, before=before, after=since, limit=PAGE
            )
            count += len(page)
            if len(page) < PAGE:
                break
            before = page[-1].at
        return count

    async def _commit(self, changes: tuple[FactChange, ...]) -> None:
        services = self._backstage.services
        commit = facts_commit(services.clock.wall(), changes, services.ids.new())
        await self._store.commit(commit)

    def _tell_memory(self, agent: str, changes: tuple[FactChange, ...]) -> None:
        memory = self._backstage.find(names.memory(agent))
        if memory is not None:
            memory.tell(NotesStored(changes))


def is_of(fact: StoredFact, room: ElizaChannel) -> bool:
    """Whether a fact was noted in a room."""
    return origin(fact).chat == room.id


def note_of(fact: StoredFact, text: str) -> Note | None:
    """Give the note by which an agent would write a fact so; None: none can."""
    match fact.kind:
        case "fact":
            return KeepFact(category=fact.category, text=text, key=fact.key)
        case "state":
            return SetState(fact.key, text)
        case "lesson":
            return LearnLesson(fact.category, text)
        case "summary":
            return Summarise(text)
        case "log":
            return KeepLog(text)
        case _:
            return None


def never_changed(memory_id: str) -> ApiError:
    """Make the error for a message, which is not a memory of its own."""
    text = (
        f"memory {memory_id} is something that was said: change or delete the message"
        " in its channel, or have the whole room forgotten"
    )
    return ApiError(409, text, code="memory_is_history", may_repeat=False)
