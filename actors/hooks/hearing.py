"""Hooks that are asked about a message before its conversation goes on with it.

A message that one agent is about to hear, or a reminder that is about to be said. At
most one is asked about at a time: those behind it wait, so that all keep their order.
Nothing else waits, neither an answer that is ready nor a stop.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from actors import names
from actors.hooks.asker import outcome_of
from actors.hooks.book import AskHooks, HooksAnswered, about, patience
from actors.hooks.chain import MOST_SENT, Event, HookPart, HookSpec, unasked
from actors.hooks.outgoing import consumed, worded_reminder
from actors.journal.answers import Answer, PendingMessage
from actors.messages.inbound import Inbound, Media
from runtime.actor.messages import Keyed
from runtime.telemetry.logs import EventLog, Quoted

if TYPE_CHECKING:
    from collections.abc import Collection

    from actors.agents.persona import Persona
    from actors.services import Services
    from runtime.actor.actor import Actor


class HookedMessage(msgspec.Struct, frozen=True):
    """A message that hooks were asked about."""

    pending: PendingMessage
    answer: Answer | None
    """What settles it; None: the agent is to hear it."""


class SessionHooks:
    """The message of one conversation that hooks are asked about, if any is."""

    __slots__ = ("_asked", "_key", "_services")

    def __init__(self, services: Services) -> None:
        self._services = services
        self._asked: PendingMessage | None = None
        self._key = ""

    @property
    def is_open(self) -> bool:
        """Whether a question is open."""
        return self._asked is not None

    def ask(self, pending: PendingMessage, persona: Persona, session: Actor) -> bool:
        """Have hooks asked about a message; False if there are none to ask."""
        if not self._services.hooks.specs:
            return False  # as most often
        event, hooks = self._hooks_of(pending, persona.name)
        if not hooks:
            return False
        inbound = pending.inbound
        self._asked, self._key = pending, self._services.ids.new()
        asked = AskHooks(
            key=self._key,
            event=event,
            hooks=hooks,
            about=about(inbound, persona.name),
            text=inbound.text,
            most=MOST_SENT,
            back=session.actor_urn,
        )
        if event == "message_sending":
            hooks_failed = unasked(hooks, inbound.text)
        else:
            hooks_failed = unasked((), inbound.text)  # there is nothing to hold back
        lost = HooksAnswered(self._key, hooks_failed)
        if session.tell(names.HOOK_QUESTIONS, Keyed(self._key, asked)):
            session.after(patience(hooks), lost)
        else:
            session.note(lost)
        return True

    def _hooks_of(
        self, pending: PendingMessage, agent: str
    ) -> tuple[Event, tuple[HookSpec, ...]]:
        inbound, past = pending.inbound, pending.state.past
        if inbound.occasion == "said":
            connector = inbound.address.connector
            return "message_sending", self._services.hooks.sending(connector, agent)
        is_known = past.attempts or past.was_running or pending.told
        hooks = () if is_known else self._services.hooks.hearing(inbound, agent)
        return "message_heard", hooks

    def take(self, reply: HooksAnswered, persona: Persona) -> HookedMessage | None:
        """Take the hooks' answer; None: nobody waits for it."""
        pending = self._asked
        if pending is None or reply.key != self._key:
            return None
        self._asked = None
        inbound, passed = pending.inbound, reply.passed
        if inbound.occasion == "said":
            answer = worded_reminder(inbound, passed, persona, self._services)
            return HookedMessage(pending, answer)
        return HookedMessage(pending, consumed(inbound, passed, self._services))

    def drop(self, ids: Collection[str]) -> bool:
        """Take no answer about these messages; True if one was waited for."""
        if self._asked is None or self._asked.inbound.id not in ids:
            return False
        self._asked = None
        return True


LOG = EventLog("hooks")

HELD_BACK = "[What came along was held back]"


async def worded_files(
    media: Media, inbound: Inbound, asker: tuple[Services, Actor]
) -> Media:
    """Ask hooks about what was read in a message's files.

    Args:
        media: the texts; hooks see no pictures.
        asker: has the hooks; and the actor that asks, which handles nothing else
            meanwhile.

    Returns:
        The texts as the hooks leave them; pictures go if one holds a text back.
    """
    services, turn = asker
    hooks = services.hooks.reading(inbound)
    texts = [x for x in dict.fromkeys((media.text, media.kept)) if x.strip()]
    if not (hooks and texts):
        return media
    asked = AskHooks(
        event="message_received",
        hooks=hooks,
        about=about(inbound, ""),
        text="",
        most=services.limits.max_message_chars,
        parts=tuple(HookPart("file", each) for each in texts),
    )
    passed = await outcome_of(asked, turn, services.ids)
    if passed.cancelled_by:
        LOG.info(
            "files held back by a hook",
            correlation_id=inbound.correlation_id,
            hook=passed.cancelled_by,
            why=Quoted(passed.reason),
        )
        return Media(text=HELD_BACK, kept=HELD_BACK)
    text, kept = (passed.worded("file", x) for x in (media.text, media.kept))
    return msgspec.structs.replace(media, text=text, kept=kept)
