"""Writes the requests of one turn: the prompt, layer by layer, and the transcript."""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING

import msgspec

from actors.messages import Line, ModelRequest
from actors.rules import transcript
from actors.rules.addressed import is_in_the_open, there
from actors.rules.briefing import NO_MEMORIES, Brief, Memories, Place
from actors.rules.heard import Hearing, hear, sender_of
from actors.rules.hygiene import clean
from actors.rules.overheard import written
from actors.rules.quoting import with_quote
from actors.rules.whole import fitted

if TYPE_CHECKING:
    from collections.abc import Sequence

    from actors.collaboration_config import CollaborationConfig
    from actors.messages import Image, Inbound, ToolSpec
    from actors.persona import Persona
    from actors.room import Room
    from actors.rules.overheard import Word


class Prompting:
    """What the models of one turn are told.

    Args:
        room: what was asked, and the conversation before it, which may shrink.
        persona: who answers.
        now: Unix seconds; all rounds of a turn are told the same time, so that what a
            provider has read once is found in its cache.
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

    def __init__(self, room: Room, persona: Persona, now: float) -> None:
        self.room = room
        """The conversation before the question."""

        self._start = room.start
        self._persona = persona
        self._now = dt.datetime.fromtimestamp(now, persona.zone)
        self._history: tuple[Line, ...] = ()  # of what `room` had
        self._shown: tuple[Line, ...] = ()
        self._left_out = 0
        self.memories: Memories = NO_MEMORIES
        """What memory has for this message."""

        self.overheard: tuple[Word, ...] = ()
        """What others said in the chat since the agent's last turn there."""

        self.standing: tuple[str, ...] = ()
        """What sources of tools say, the same for all messages."""

        self.notes: tuple[str, ...] = ()
        """What they say now."""

    @property
    def is_refused(self) -> bool:
        """Whether this message is not to be answered, by what it tries."""
        injection = self._persona.config.context.injection
        words = self._start.inbound.text
        return injection == "refuse" and clean(words, injection).is_suspicious

    def request(
        self, lines: tuple[Line, ...], tools: tuple[ToolSpec, ...]
    ) -> ModelRequest:
        """Write one request.

        Args:
            lines: what the turn has added to the conversation so far.
            tools: what the model may call.
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
            model="",  # whoever is asked has its own name for it
            agent=self._persona.name,
            correlation_id=start.inbound.correlation_id,
            system="",
            lines=(*self._shown, *lines),
            tools=tools,
            temperature=config.temperature,
            max_tokens=config.max_tokens,
            conversation=start.conversation,
            # It knows nothing of these lines, nor that there is less to know.
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
    """Name who hears an agent when it calls them, in the chat of a message."""
    if not is_in_the_open(inbound, config):
        return ()
    return there(inbound, persona.name, persona.everybody)


def brief_of(
    persona: Persona, inbound: Inbound, now: dt.datetime, tools: tuple[ToolSpec, ...]
) -> Brief:
    """Gather what a prompt is made from, as far as agent and message say it."""
    return Brief(
        name=persona.name,
        context=persona.config.context,
        files=persona.files,
        prompt=persona.config.prompt,
        colleagues=dict(persona.colleagues),
        path=inbound.chain.agents if len(inbound.chain.agents) > 1 else (),
        conducting=persona.conducting,
        tools=frozenset(tool.name for tool in tools),
        marks=persona.marks,
        place=place_of(inbound, takes_media="files" in persona.marks),
        words=inbound.text,
        now=now,
    )


def window_of(
    question: tuple[Inbound, tuple[Image, ...]],
    earlier: tuple[tuple[Line, ...], int],
    persona: Persona,
    overheard: Sequence[Word] = (),
) -> transcript.Window:
    """Give what a model is shown of a conversation with the question (F179).

    Args:
        question: the message and its pictures.
        earlier: the conversation before it, and how many characters of it are shown.
        persona: who answers.
        overheard: what others said in the chat since the agent's last turn.
    """
    (inbound, images), (history, max_chars) = question, earlier
    words = with_quote(inbound.text, inbound, persona.everybody)
    name = sender_of(inbound, persona.everybody)
    asked = Line("user", words, name=name, images=images)
    before = transcript.without_stale(history)
    heard = hear((*before, asked), hearing_of(inbound, persona))
    context = persona.config.context
    told = written(overheard, context.budgets.overheard, context.injection)
    if told:  # made harmless word by word already
        heard = (*heard[:-1], Line("user", told), heard[-1])
    return transcript.window(heard, persona.config.max_history + 1, max_chars)


def hearing_of(inbound: Inbound, persona: Persona) -> Hearing:
    """Say how the words of people are read in this chat."""
    context = persona.config.context
    mentions = (f"@{persona.name}", *persona.config.groups.mention_patterns)
    return Hearing(context.injection, not inbound.is_direct, mentions)


def place_of(inbound: Inbound, *, takes_media: bool = False) -> Place:
    """Say where a message was said, and whether files may be sent there by marks."""
    address = inbound.address
    return Place(
        platform=inbound.platform,
        connector=address.connector,
        chat=address.chat,
        thread=address.thread,
        is_direct=inbound.is_direct,
        takes_media=takes_media,
    )
