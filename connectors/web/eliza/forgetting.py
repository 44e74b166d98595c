"""What agents remember is changed and forgotten; on the kernel's side.

Changed is a fact, in the same way in which an agent itself would write it down anew.
Forgotten is either one fact or all of a room: all facts there, what was said until
then, and the conversation, which begins anew.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from actors import names
from actors.condensing import EndNow
from actors.forgetting import marked
from actors.memory_config import MemoryConfig
from actors.notes import KeepFact, KeepLog, LearnLesson, SetState, Summarise
from actors.remembering import Remembered
from actors.rules import notes
from actors.rules.keys import SessionKey, chat_partition
from actors.rules.secrets import redacted
from connectors.web.eliza.errors import wrong
from connectors.web.eliza.keys import Caller
from connectors.web.eliza.memories import MOST_PEOPLE, Look, batches
from connectors.web.eliza.memory_shapes import ALL_KINDS, origin
from connectors.web.errors import ApiError
from runtime.fact_rows import ForgetFacts
from runtime.messages import Keyed
from runtime.rows import Commit

if TYPE_CHECKING:
    from actors.notes import Note
    from connectors.web.backstage import Backstage
    from connectors.web.eliza.channels import Channels
    from connectors.web.eliza.history import History
    from connectors.web.eliza.memories import Memories
    from connectors.web.eliza.shapes import Channel, Message
    from runtime.fact_rows import FactChange, SaveFact, StoredFact
    from runtime.store import Store

EVERYBODY = Caller("")
"""Who is shown everything."""

PERSON = "person:"
"""How scopes begin in which somebody's own memory is kept, wherever they told it."""

PAGE = 200

MOST_COUNTED = 10_000
"""Facts and messages of one room that are counted when they are forgotten."""


class Forgetting:
    """Changes and forgets.

    Args:
        connector: its name.
        channels: whose rooms are meant.
        history: what was said there.
        memories: reads what is remembered.
        store: the database.
        backstage: who is told of it.
    """

    def __init__(
        self,
        connector: str,
        channels: Channels,
        history: History,
        memories: Memories,
        store: Store,
        backstage: Backstage,
    ) -> None:
        self._connector = connector
        self._channels = channels
        self._history = history
        self._memories = memories
        self._store = store
        self._backstage = backstage

    async def change(self, fact: StoredFact, text: str) -> SaveFact:
        """Let a fact read otherwise; secrets are left out of it.

        Raises:
            ApiError: it cannot read so.
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
        place = notes.Place(
            agent=fact.agent,
            scope=fact.scope,
            part=fact.part,
            provenance=fact.provenance,
            now=services.clock.wall(),
        )
        row = notes.row_of(written, place, fact.id, config)
        await self._commit((row,))
        self._tell_memory(fact.agent, (row,))
        return row

    async def forget(self, fact: StoredFact) -> None:
        """Forget one fact for good.

        Raises:
            StoreError: the disk fails; nothing has changed.
        """
        change = ForgetFacts(agent=fact.agent, scopes=(fact.scope,), ids=(fact.id,))
        await self._commit((change,))

    async def clear(self, caller: Caller, agent_id: str, room: Channel) -> int:
        """Have an agent forget a room, as far as somebody may see what it remembers.

        What people told it in private is forgotten if it was there that they did.

        Returns:
            How many facts and messages that were.

        Raises:
            ApiError: 404: no such agent; 503: it is not up.
            StoreError: the disk fails; some of it may be left.
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

    async def clear_for_all(self, room: Channel) -> int:
        """Have all agents in a room forget it; count what that was.

        Raises:
            ApiError: as `clear`.
            StoreError: likewise.
        """
        agents = self._channels.agents
        inside = [each for each in room.participants if agents.name(each)]
        return sum([await self.clear(EVERYBODY, each, room) for each in inside])

    async def of_message(self, room: Channel, message: Message) -> None:
        """Have agents forget what they have taken note of because of a message.

        Only while the message's row is kept: some days after it was answered.

        Raises:
            StoreError: the disk fails; some of it may be left.
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

    async def end_conversations(self, agent: str, room: Channel) -> None:
        """Have an agent begin anew in a room, whoever it spoke with there.

        Raises:
            StoreError: it cannot be read with whom.
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
                sessions.tell(Keyed(key.text, EndNow()))

    async def _facts(self, agent_id: str, whose: tuple[str, ...]) -> list[StoredFact]:
        look = Look(limit=MOST_COUNTED)
        return await self._memories.facts(agent_id, whose, ALL_KINDS, look)

    async def _forget_all(
        self, agent: str, whose: tuple[str, ...], room: Channel
    ) -> None:
        services = self._backstage.services
        part = chat_partition(self._connector, room.id)
        marks = marked(agent, whose, part, services.ids.new())
        change = ForgetFacts(agent=agent, scopes=whose)
        at = services.clock.wall()
        await self._store.commit(Commit(at=at, facts=(change,), entries=marks))

    async def _forget_some(self, agent: str, facts: list[StoredFact]) -> None:
        changes = tuple(
            ForgetFacts(agent=agent, scopes=(each.scope,), ids=(each.id,))
            for each in facts
        )
        if changes:
            await self._commit(changes)

    async def _count_said(self, agent_id: str, room: Channel) -> int:
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
        at = self._backstage.services.clock.wall()
        await self._store.commit(Commit(at=at, facts=changes))

    def _tell_memory(self, agent: str, changes: tuple[FactChange, ...]) -> None:
        memory = self._backstage.find(names.memory(agent))
        if memory is not None:
            memory.tell(Remembered(changes))


def is_of(fact: StoredFact, room: Channel) -> bool:
    """Whether something was told in a room."""
    return origin(fact).chat == room.id


def note_of(fact: StoredFact, text: str) -> Note | None:
    """Say what note an agent would make to have a fact read so; None: there is none."""
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
    """Make the error for what was said, which no memory of its own keeps."""
    text = (
        f"memory {memory_id} is something that was said: change or delete the message"
        " in its channel, or have the whole room forgotten"
    )
    return ApiError(409, text, code="memory_is_history", may_repeat=False)
