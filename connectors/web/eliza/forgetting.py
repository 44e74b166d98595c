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
from actors.rules.scopes import AGENT
from actors.rules.secrets import redacted
from connectors.web.eliza.errors import wrong
from connectors.web.eliza.memories import MOST_PEOPLE, Look, batches
from connectors.web.eliza.memory_shapes import ALL_KINDS
from connectors.web.errors import ApiError
from runtime.fact_rows import ForgetFacts
from runtime.messages import Keyed
from runtime.rows import Commit

if TYPE_CHECKING:
    from actors.notes import Note
    from connectors.web.backstage import Backstage
    from connectors.web.eliza.channels import Channels
    from connectors.web.eliza.history import History
    from connectors.web.eliza.keys import Caller
    from connectors.web.eliza.memories import Memories
    from connectors.web.eliza.shapes import Channel
    from runtime.fact_rows import FactChange, SaveFact, StoredFact
    from runtime.store import Store

PAGE = 200

MOST_COUNTED = 10_000
"""Facts and messages of one room that are counted when they are forgotten."""


class Forgetting:
    """Changes and forgets.

    Args:
        connector: its name.
        channels: whose rooms are meant.
        history: what was said there.
        store: the database.
        backstage: who is told of it.
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

    async def clear(
        self, caller: Caller, memories: Memories, agent_id: str, room: Channel
    ) -> int:
        """Have an agent forget a room, as far as somebody may see what it remembers.

        Returns:
            How many facts and messages that were.

        Raises:
            StoreError: the disk fails; some of it may be left.
        """
        agent = self._channels.need_agent(agent_id)
        whose = await memories.scopes_in(caller, room)
        count = await self._count(memories, agent_id, room, whose)
        services = self._backstage.services
        part = chat_partition(self._connector, room.id)
        for some in batches(each for each in whose if each != AGENT):
            marks = marked(agent, some, part, services.ids.new())
            change = ForgetFacts(agent=agent, scopes=some)
            at = services.clock.wall()
            await self._store.commit(Commit(at=at, facts=(change,), entries=marks))
        await self._channels.note_forgotten(room.id, agent_id)
        await self.end_conversations(agent, room)
        return count

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

    async def _count(
        self,
        memories: Memories,
        agent_id: str,
        room: Channel,
        whose: tuple[str, ...],
    ) -> int:
        look = Look(limit=MOST_COUNTED)
        count = len(await memories.facts(agent_id, whose, ALL_KINDS, look))
        since, before, most = room.forgotten.get(agent_id, 0), 0, MOST_COUNTED
        while most > 0:
            page = await self._history.page(
                room.id, before=before, after=since, limit=PAGE
            )
            count, most = count + len(page), most - PAGE
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
