"""Builds the requests of one turn: the prompt, layer by layer, and the transcript.

Memories, the person and overheard messages are looked up before the first call. The
messages of a group since the agent last answered there are read from the rows of the
chat when it answers. They are kept nowhere else: a restart changes nothing, and a chat
without a question to an agent costs nothing.

Before the first call the size of the request is compared with the model's context
window; a provider may also refuse a request as too long. Then the turn asks its session
to compact the conversation, waits for that, and goes on with the shorter one.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterable, Sequence
from datetime import tzinfo

import msgspec

from actors import names
from actors.agents.persona import Persona
from actors.config.collaboration import CollaborationConfig
from actors.errors import ChatError
from actors.journal.history import History, read_history
from actors.memory import notes as noting, scopes
from actors.memory.messages import Fact, FactsUsed, Recall, RecalledFacts
from actors.memory.notebook import project_text
from actors.messages.deliveries import Delivery
from actors.messages.inbound import (
    ALONE,
    Image,
    Inbound,
    ModelRequest,
    ToolSpec,
    TranscriptLine,
)
from actors.messages.keys import owner_of, parse_key
from actors.models.pool import ModelOffer
from actors.people import lookup as knowing
from actors.people.identity import Person
from actors.protocol import PromptShortened, ShortenPrompt, StartTurn
from actors.rules.groups.addressing import is_in_the_open, there
from actors.rules.groups.overheard import (
    ChatExchange,
    OverheardDelivery,
    OverheardMessage,
    OverhearingAgent,
    last_turn,
    overheard,
    written,
)
from actors.rules.prompt import compaction, transcript
from actors.rules.prompt.brief import (
    NO_MEMORIES,
    Brief,
    ChatBrief,
    Memories,
    PromptMemory,
)
from actors.rules.prompt.build import speaks_of
from actors.rules.prompt.compaction import Trigger
from actors.rules.prompt.untrusted import (
    ReadingRules,
    clean,
    hear,
    sender_of,
    with_quote,
)
from actors.rules.prompt.window import fitted
from actors.schedule.rows import listed
from actors.services import Services
from actors.turn.stream import AnswerStream
from runtime.actor.actor import Actor
from runtime.actor.ref import UNANSWERED
from runtime.errors import KernelError, StoreError
from runtime.store.port import Entries, Store
from runtime.store.rows import Answered, StoredDelivery
from runtime.telemetry.logs import EventLog

LOG = EventLog("turn")
RECALLS = EventLog("memory")


class PromptBuilder:
    """Builds the requests of one turn.

    Args:
        room: the question, and the conversation before it, which may be shortened.
        now: Unix seconds; all rounds of a turn get the same time, so that the provider
            finds the prompt in its cache.
    """

    __slots__ = (
        "_history",
        "_left_out",
        "_now",
        "_persona",
        "_shown",
        "_start",
        "memories",
        "notes",
        "overheard",
        "room",
        "standing",
    )

    def __init__(self, room: ConversationWindow, persona: Persona, now: float) -> None:
        self.room = room
        """The conversation before the question."""

        self._start = room.start
        self._persona = persona
        self._now = dt.datetime.fromtimestamp(now, persona.zone)
        self._history: tuple[TranscriptLine, ...] = ()  # of what `room` had
        self._shown: tuple[TranscriptLine, ...] = ()
        self._left_out = 0
        self.memories: Memories = NO_MEMORIES
        """The memories for this message."""

        self.overheard: tuple[OverheardMessage, ...] = ()
        """Messages of others in the chat since the agent's last turn there."""

        self.standing: tuple[str, ...] = ()
        """Texts of tool sources that are the same for every message."""

        self.notes: tuple[str, ...] = ()
        """Texts of tool sources for this message."""

    @property
    def is_refused(self) -> bool:
        """Whether this message is refused as a prompt injection."""
        injection = self._persona.config.context.injection
        words = self._start.inbound.text
        return injection == "refuse" and clean(words, injection).is_suspicious

    def request(
        self, lines: tuple[TranscriptLine, ...], tools: tuple[ToolSpec, ...]
    ) -> ModelRequest:
        """Build one request.

        Args:
            lines: the lines that the turn has added to the conversation so far.
            tools: the tools that the model may call.
        """
        start, config = self._start, self._persona.config
        room = self.room
        if not self._shown or self._history is not room.history:
            self._history = room.history
            window = window_of(
                (start.inbound, start.images),
                (room.history, room.max_chars),
                self._persona,
                self.overheard,
            )
            self._shown, self._left_out = window.lines, window.left_out
        request = ModelRequest(
            model="",  # filled in by the provider that is called
            agent=self._persona.name,
            correlation_id=start.inbound.correlation_id,
            system="",
            lines=(*self._shown, *lines),
            tools=tools,
            temperature=config.temperature,
            max_tokens=config.max_tokens,
            conversation=start.conversation,
            owner=owner_of(start.inbound),
            # A model that resumes does not know these lines, nor that others are gone.
            resume="" if lines or room.was_made else start.resume,
        )
        brief = msgspec.structs.replace(
            brief_of(self._persona, start.inbound, self._now, tools),
            standing=self.standing,
            notes=self.notes,
            memories=self.memories,
            summaries=room.summaries,
            left_out=self._left_out + room.earlier,
            partners=partners_of(start.inbound, self._persona, room.collaboration),
            mode=start.mode,
        )
        whole = fitted(brief, request, len(self._shown))
        room.cut_tokens = whole.cut_tokens
        told = whole.prompt
        return msgspec.structs.replace(
            whole.request, system=told.text, notes=told.notes
        )


def partners_of(
    inbound: Inbound, persona: Persona, config: CollaborationConfig
) -> tuple[str, ...]:
    """Give the agents that a mention can reach in the chat of a message."""
    if not is_in_the_open(inbound, config):
        return ()
    return there(inbound, persona.name, persona.everybody)


def brief_of(
    persona: Persona, inbound: Inbound, now: dt.datetime, tools: tuple[ToolSpec, ...]
) -> Brief:
    """Give the parts of a prompt that come from the agent and the message."""
    return Brief(
        name=persona.known_as,
        context=persona.config.context,
        files=persona.files,
        prompt=persona.config.prompt,
        colleagues=dict(persona.colleagues),
        path=inbound.chain.agents if len(inbound.chain.agents) > 1 else (),
        conducting=persona.conducting,
        tools=frozenset([tool.name for tool in tools]),
        marks=persona.marks,
        place=place_of(inbound, persona),
        words=inbound.text,
        now=now,
    )


def window_of(
    question: tuple[Inbound, tuple[Image, ...]],
    earlier: tuple[tuple[TranscriptLine, ...], int],
    persona: Persona,
    overheard: Sequence[OverheardMessage] = (),
) -> transcript.Window:
    """Give the part of a conversation that a model is shown, with the question.

    Args:
        question: the message and its pictures.
        earlier: the conversation before it, and most characters of it to show.
        overheard: messages of others in the chat since the agent's last turn.
    """
    (inbound, images), (history, max_chars) = question, earlier
    words = with_quote(inbound.text, inbound, persona.everybody)
    name = sender_of(inbound, persona.everybody)
    asked = TranscriptLine("user", words, name=name, images=images)
    before = transcript.without_stale(history)
    heard = hear((*before, asked), hearing_of(inbound, persona))
    context = persona.config.context
    told = written(overheard, context.budgets.overheard, context.injection)
    if told:  # `written` has cleaned it already
        heard = (*heard[:-1], TranscriptLine("user", told), heard[-1])
    return transcript.window(heard, persona.config.max_history + 1, max_chars)


def hearing_of(inbound: Inbound, persona: Persona) -> ReadingRules:
    """Give the rules for quoting people's words in this chat."""
    context = persona.config.context
    names = (f"@{persona.shown}", f"@{persona.name}")
    mentions = (*names, *persona.config.groups.mention_patterns)
    return ReadingRules(context.injection, not inbound.is_direct, mentions)


def place_of(inbound: Inbound, persona: Persona) -> ChatBrief:
    """Give the chat of a message, and how the agent can write there."""
    address = inbound.address
    return ChatBrief(
        platform=inbound.platform,
        connector=address.connector,
        chat=address.chat,
        thread=address.thread,
        is_direct=inbound.is_direct,
        takes_media="files" in persona.marks,
        reply_style=persona.reply_styles.get(inbound.platform),
    )


# Chosen: after its condenser the session stores one commit, and the disk may be slow.
SHORTENED_WITHIN = 30.0
"""Seconds that a session may take beyond its condenser."""

# Chosen: once before the first call, once after the model has refused, and once more
# with lines that are cut.
MOST = 3
"""How often the conversation of one turn is shortened."""

CUT_SHORT = (
    "⚠️ Context window exceeded: this conversation had become too long. I go on with"
    " its newest {count} messages, cut short."
)


class ConversationWindow:
    """The conversation before one question, shortened if it is too long.

    Args:
        persona: has the context window, if the table of the model does not.
    """

    __slots__ = (
        "_made",
        "_most_lines",
        "_must",
        "_services",
        "_trigger",
        "_turn",
        "_window",
        "collaboration",
        "cut_tokens",
        "earlier",
        "history",
        "max_chars",
        "start",
        "summaries",
        "was_made",
    )

    def __init__(
        self, turn: Actor, start: StartTurn, persona: Persona, services: Services
    ) -> None:
        self._turn = turn
        self._window = persona.config.context.window_tokens
        self._most_lines = persona.config.max_history
        self.start = start
        """The question."""

        self._services = services
        self.max_chars = services.compaction.max_chars
        """Most characters of the history in a request."""

        self.collaboration = services.collaboration
        """The settings for work between agents."""

        self._trigger: Trigger | None = None
        self._must = False
        self._made = 0
        self.history = start.history
        """Earlier lines, oldest first."""

        self.earlier = start.earlier
        """How many lines the conversation had before these."""

        self.summaries = start.summaries
        """Summaries of earlier parts."""

        self.cut_tokens = 0
        """Tokens of `history` that the last request left out."""

        self.was_made = False
        """Whether the conversation was shortened."""

    def fits(self, tokens: int, offer: ModelOffer) -> bool:
        """Whether a request of so many tokens fits a model, before the first call."""
        settings = self._services.compaction
        if self._made or not self.history:
            return True
        window = offer.window or self._window
        load = compaction.PromptLoad(
            tokens=tokens + self.cut_tokens,
            window=window,
            characters=compaction.characters_of(self.history),
            lines_left_out=self._lines_left_out,
        )
        found = compaction.overfull(load, settings.share, settings.max_chars)
        self._trigger = found
        self._must = found is not None and load.tokens > window
        return found is None

    @property
    def _lines_left_out(self) -> int:
        """How many lines a request leaves out that no summary holds.

        A model that keeps the conversation itself has seen them, and an agent without a
        history is shown none.
        """
        if self.start.resume or not self._most_lines:
            return 0
        return len(self.history) - self._most_lines

    async def make(self, words: AnswerStream) -> bool:
        """Shorten the conversation; False: it cannot be made any shorter.

        Args:
            words: sends people a notice if lines were cut.
        """
        self._made += 1
        if not self.history or self._made > MOST:
            return False
        trigger, must = self._trigger or "error", self._must
        is_refused, self._trigger = self._trigger is None, None
        shortened = await self._shorten(trigger, must=must or is_refused)
        before = self.history
        if shortened is not None and shortened.history:
            self.history, self.earlier = shortened.history, shortened.earlier
            self.summaries = shortened.summaries
        if self.history == before and is_refused:
            # The session is gone, or had no summary.
            self._cut()
        self.was_made = self.was_made or self.history != before
        if shortened is not None and shortened.outcome == "truncated":
            words.note("context", CUT_SHORT.format(count=len(self.history)))
        # A request that no model has refused yet is sent in any case.
        return self.history != before or not is_refused

    def _cut(self) -> None:
        settings = self._services.compaction
        cut = compaction.truncated(self.history, settings.cut_lines, settings.cut_chars)
        self.earlier += len(self.history) - len(cut)
        self.history = cut

    async def _shorten(self, trigger: Trigger, *, must: bool) -> PromptShortened | None:
        start = self.start
        wanted = ShortenPrompt(start.turn_id, trigger, must)
        within = self._services.compaction.timeout + SHORTENED_WITHIN
        try:
            shortened: PromptShortened = await start.session.ask(wanted, timeout=within)
        except (*UNANSWERED, KernelError) as error:
            LOG.warning("conversation not shortened", why=str(error))
            return None
        return shortened


NOTHING = RecalledFacts()

# Chosen: a recall has a time limit of its own; this one is for a memory that is gone.
GRACE = 0.5
"""Seconds that a recall may take beyond its limit."""


async def remind(
    inbound: Inbound, persona: Persona, services: Services, turn: Actor
) -> Memories:
    """Ask the memory for what is relevant to a message; a failure gives nothing."""
    person = await knowing.person_of(turn, services, inbound)
    recalled = await _recall(inbound, person, (persona, services, turn))
    if recalled.relevant:
        turn.tell(names.memory(persona.name), FactsUsed(recalled.relevant))
    return memories_of(
        inbound,
        person,
        recalled,
        project=await project_text(recalled.states, services.notebook)
        if recalled.states
        else "",
        tasks=await _tasks(inbound, person, persona, services),
    )


def memories_of(
    inbound: Inbound,
    person: Person,
    recalled: RecalledFacts,
    *,
    project: str,
    tasks: tuple[PromptMemory, ...],
) -> Memories:
    """Put together the memories of a prompt.

    Args:
        project: the operator's text about the active project.
        tasks: the next appointments, if the message is about such things.
    """
    own = Memories(
        profile=_wishes(person, inbound),
        project=project,
        tasks=tasks,
        language=person.language if person.is_language_chosen else "",
    )
    if recalled == NOTHING:
        return own
    return msgspec.structs.replace(
        own,
        sticky=entries(recalled.sticky),
        relevant=entries(recalled.relevant),
        states=entries(recalled.states),
        profile=(*own.profile, *entries(recalled.profile)),
        lessons=entries(recalled.lessons),
        outcomes=entries(recalled.outcomes),
        summaries=tuple([fact.text for fact in reversed(recalled.summaries)]),
        logs=tuple([fact.text for fact in recalled.logs]),
    )


async def _recall(
    inbound: Inbound, person: Person, asker: tuple[Persona, Services, Actor]
) -> RecalledFacts:
    persona, services, turn = asker
    kit, memory = services.memory, turn.find(names.memory(persona.name))
    if kit is None or memory is None:
        return NOTHING
    recall = Recall(
        question=inbound.text,
        scopes=noting.readable(inbound, person, services),
        now=services.clock.wall(),
    )
    try:
        within = kit.config.recall_timeout + GRACE
        found: object = await memory.ask(recall, timeout=within)
    except (*UNANSWERED, KernelError, ChatError) as error:
        RECALLS.warning(
            "nothing was recalled",
            correlation_id=inbound.correlation_id,
            agent=persona.name,
            why=str(error),
        )
        return NOTHING
    return found if isinstance(found, RecalledFacts) else NOTHING


async def _tasks(
    inbound: Inbound, person: Person, persona: Persona, services: Services
) -> tuple[PromptMemory, ...]:
    try:
        return await tasks_of(
            inbound, person, persona, (services.store, services.find_zone)
        )
    except StoreError as error:
        RECALLS.warning(
            "appointments not read",
            correlation_id=inbound.correlation_id,
            why=str(error),
        )
        return ()


async def tasks_of(
    inbound: Inbound,
    person: Person,
    persona: Persona,
    kept: tuple[Entries, Callable[[str], tzinfo | None]],
) -> tuple[PromptMemory, ...]:
    """List the next appointments, if the message is about such things.

    Raises:
        StoreError: the disk fails.
    """
    config = persona.config
    if "schedule" not in config.markers or not speaks_of(inbound.text, "scheduling"):
        return ()
    scope = scopes.writing(inbound.address, person.id, is_direct=inbound.is_direct)
    return tuple(PromptMemory(line) for line in await listed(kept[0], scope, kept[1]))


def _wishes(person: Person, inbound: Inbound) -> tuple[PromptMemory, ...]:
    """Give how a person wants to be spoken to; it is private, so not in groups."""
    if person.personality and inbound.is_direct:
        return (PromptMemory(person.personality, "how to speak with them"),)
    return ()


def entries(facts: Iterable[Fact]) -> tuple[PromptMemory, ...]:
    """Give facts in the form of a prompt."""
    return tuple(
        [
            PromptMemory(fact.text, fact.key if fact.kind == "state" else fact.category)
            for fact in facts
        ]
    )


PAGE = 50
"""Messages read at once."""

# Chosen: a thousand rows of one chat, about 20 ms of reading.
MOST_PAGES = 20


async def with_conversation(
    start: StartTurn, persona: Persona, services: Services
) -> StartTurn:
    """Give a turn in a lane the conversation of its chat, if its work needs one.

    If the disk fails, it works without.
    """
    inbound = start.inbound
    if not inbound.lane or inbound.occasion in ALONE:
        return start
    key = msgspec.structs.replace(parse_key(start.conversation), lane="")
    history = History(key.text, persona.config.max_history)
    try:
        await read_history(history, services.store)
    except StoreError as error:
        LOG.warning("worked without the conversation", why=str(error))
        return start
    return msgspec.structs.replace(
        start,
        history=history.lines,
        earlier=history.earlier,
        summaries=tuple(each.text for each in history.summaries),
    )


async def overhear(
    start: StartTurn, persona: Persona, services: Services
) -> tuple[OverheardMessage, ...]:
    """Give the messages since the agent last answered in this chat, oldest first.

    Empty in direct chats, for scheduled turns, and if the disk fails: then the question
    is answered without them.
    """
    inbound, most = start.inbound, persona.config.groups.pending_messages
    if inbound.is_direct or inbound.occasion in ALONE or not most:
        return ()
    try:
        return await _overhear(start, persona, most, services.store)
    except StoreError as error:
        LOG.warning(
            "answered without what was said in the chat",
            correlation_id=inbound.correlation_id,
            why=str(error),
        )
        return ()


async def _overhear(
    start: StartTurn, persona: Persona, most: int, store: Store
) -> tuple[OverheardMessage, ...]:
    address = start.inbound.address
    found = await store.answered(address.connector, start.inbound.platform_id)
    if found is None:
        return ()  # not a stored message
    row = found.message
    place = start.inbound.copy_of or row.number
    ear = OverhearingAgent(
        agent=persona.name,
        thread=address.thread,
        answered=frozenset(start.answered),
        place=place,
        at=row.at,
        agents=persona.everybody,
    )
    stream = f"{address.connector}/{address.chat}"
    exchanges = await recent(store, stream, row.number, ear, most)
    said = overheard(exchanges, ear, most)
    if not start.inbound.chain.turns:
        return said
    # Another agent's answer that calls this agent is the question itself.
    question = (start.inbound.sender_name, start.inbound.text)
    return tuple(word for word in said if (word.name, word.text) != question)


async def recent(
    store: Store, stream: str, before: int, ear: OverhearingAgent, most: int
) -> list[ChatExchange]:
    """Read a chat back to the agent's last answer, or until there is enough.

    Raises:
        StoreError: the disk fails.
    """
    exchanges: list[ChatExchange] = []
    for _ in range(MOST_PAGES):
        rows = await store.exchanges(stream, before, PAGE)
        exchanges += (each for row in rows if (each := read(row)) is not None)
        is_reached = last_turn(exchanges, ear)[0] > 0 or len(rows) < PAGE
        if is_reached or len(overheard(exchanges, ear, most)) == most:
            break
        before = rows[-1].message.number
    return exchanges


def read(row: Answered) -> ChatExchange | None:
    """Decode a message and its deliveries; None: the row is damaged."""
    message = row.message
    try:
        inbound = msgspec.json.decode(message.body, type=Inbound)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        LOG.fault("message cannot be read", error, message=message.id)
        return None
    told = (read_told(each) for each in row.deliveries if each.state != "dead")
    return ChatExchange(
        inbound=inbound,
        number=message.number,
        at=message.at,
        told=tuple(each for each in told if each is not None),
    )


def read_told(row: StoredDelivery) -> OverheardDelivery | None:
    """Decode a delivery; None: the row is damaged."""
    try:
        return OverheardDelivery(msgspec.json.decode(row.body, type=Delivery), row.at)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        LOG.fault("delivery cannot be read", error, delivery=row.id)
        return None
