"""Asks hooks about incoming messages before any agent hears them.

The router's own part. What the hooks answered is stored with the message before it goes
on, so no message is asked about twice. When too many messages wait, further ones count
as if their hooks had failed.
"""

from __future__ import annotations

import msgspec

from actors import names
from actors.hooks.book import AskHooks, HooksAnswered, about, patience
from actors.hooks.chain import HookPart, HooksOutcome, unasked
from actors.inbound.chat_lines import ChatLines, Place
from actors.inbound.undeliverable import dismissal, tell_dismissed
from actors.journal import commits, notices as telling
from actors.journal.answers import Answer
from actors.journal.unsettled import UnroutedMessage
from actors.messages.inbound import Inbound
from actors.protocol import DrainOutbox
from actors.services import Services
from runtime.actor.actor import Actor
from runtime.actor.committer import Committer
from runtime.actor.messages import Keyed
from runtime.store.rows import Amend, Commit, Committed, Entry
from runtime.telemetry.logs import EventLog, Quoted

LOG = EventLog("router")

# Chosen: one actor each, a few kilobytes. More is a flood, or a hook that hangs for
# longer than people wait.
MOST_OPEN = 1_000

HELD_BACK = "⚠️ This message was not taken in: {reason}"
HELD_BACK_SILENTLY = (
    "⚠️ This message was not taken in: a rule here holds it back. Say it in other words,"
    " or ask whoever runs me."
)


def beside(inbound: Inbound) -> tuple[HookPart, ...]:
    """Give what a model would read beside a message's own text."""
    quoted = "" if inbound.quoted is None else inbound.quoted.text
    parts = [HookPart("quote", quoted)]
    parts += [HookPart("history", line.text) for line in inbound.history]
    return tuple(each for each in dict.fromkeys(parts) if each.text.strip())


def left(inbound: Inbound, passed: HooksOutcome) -> Inbound:
    """Give a message as hooks left it."""
    is_changed = passed.text != inbound.text
    quoted, replace = inbound.quoted, msgspec.structs.replace
    if quoted is not None:
        quoted = replace(quoted, text=passed.worded("quote", quoted.text))
    return replace(
        inbound,
        is_hooked=True,
        text=passed.text,
        changed_by=passed.changed_by[-1] if is_changed else "",
        quoted=quoted,
        history=tuple(
            replace(each, text=passed.worded("history", each.text))
            for each in inbound.history
        ),
    )


def without_words(inbound: Inbound) -> Inbound:
    """Give a message that was held back: nothing of it is kept, for nobody to read."""
    return msgspec.structs.replace(
        inbound, is_hooked=True, text="", quoted=None, history=(), attachments=()
    )


class HooksStored(msgspec.Struct, frozen=True):
    """A note to the router: the outcome of storing what hooks made of a message."""

    message: UnroutedMessage
    """The message with the changed text."""

    answer: Answer | None
    """The answer to a message that is held back; else None."""

    outcome: Committed | Exception
    told: tuple[Entry, ...]
    """Rows that tell other programs of it."""


class InboundHooks:
    """The messages that hooks are asked about.

    Args:
        services: the hooks; store, clock, counts.
    """

    def __init__(self, router: Actor, lines: ChatLines, services: Services) -> None:
        self._router = router
        self._lines = lines
        self._services = services
        self._committer = Committer(services.store)

    def ask(self, head: Place, message: UnroutedMessage) -> bool:
        """Have hooks asked about the head of a line; False: there are none to ask.

        It waits until what they answer is stored.
        """
        inbound, past, services = message.inbound, message.past, self._services
        if past.attempts or past.was_running:
            return False  # a session had it before there were hooks
        hooks = services.hooks.receiving(inbound)
        if not hooks:
            return False
        is_flood = self._lines.count("hooks") >= MOST_OPEN
        self._lines.wait(head, "hooks")
        lost = HooksAnswered(inbound.id, unasked(hooks, inbound.text))
        asked = AskHooks(
            key=inbound.id,
            event="message_received",
            hooks=hooks,
            about=about(inbound, ""),
            text=inbound.text,
            most=services.limits.max_message_chars,
            parts=beside(inbound),
            back=names.ROUTER,
        )
        if is_flood or not self._router.tell(
            names.HOOK_QUESTIONS, Keyed(services.ids.new(), asked)
        ):
            LOG.warning("hooks not asked", correlation_id=inbound.correlation_id)
            self._router.note(lost)
        else:
            self._router.after(patience(hooks), lost)
        return True

    def answered(self, reply: HooksAnswered) -> None:
        """Store what hooks made of a message."""
        head = self._lines.place(reply.key, "hooks")
        message = None if head is None else head.message
        # An answer that comes while its message is being stored is late.
        if head is None or message is None or message.inbound.is_hooked:
            return
        self._decided(head, message, reply.passed)

    def _decided(
        self, head: Place, message: UnroutedMessage, passed: HooksOutcome
    ) -> None:
        inbound, services = message.inbound, self._services
        connector = inbound.address.connector
        inbound = (
            without_words(inbound) if passed.cancelled_by else left(inbound, passed)
        )
        message = msgspec.structs.replace(message, inbound=inbound)
        head.put(message)
        answer: Answer | None = None
        if passed.cancelled_by:
            services.metrics.messages.add(1, connector, "hook_cancelled")
            reason = passed.reason
            said = HELD_BACK.format(reason=reason) if reason else HELD_BACK_SILENTLY
            answer = dismissal(inbound, "hook", said, services)
            LOG.info(
                "message held back by a hook",
                correlation_id=inbound.correlation_id,
                hook=passed.cancelled_by,
                why=Quoted(reason),
            )
        elif passed.changed_by:
            services.metrics.messages.add(1, connector, "hook_changed")
            LOG.info(
                "message changed by a hook",
                correlation_id=inbound.correlation_id,
                hook=", ".join(passed.changed_by),
            )
        self._store(message, answer)

    def _store(self, message: UnroutedMessage, answer: Answer | None) -> None:
        services, router = self._services, self._router
        told = () if answer is None else telling.of_unanswered(answer, services)
        amend = Amend(message.inbound.id, msgspec.json.encode(message.inbound))

        def make() -> Commit:
            now = services.clock.wall()
            commit = Commit(at=now)
            if answer is not None:
                commit = commits.as_unanswered(answer, now, services.keep, told)
            return msgspec.structs.replace(commit, amends=(amend,))

        self._committer.submit(
            router,
            make,
            lambda outcome: router.note(HooksStored(message, answer, outcome, told)),
            "what hooks said",
        )

    def is_settled(self, stored: HooksStored) -> bool:
        """Whether a message is settled, now that the hooks' answer is stored.

        Its sender is told if hooks held it back. Else it goes on.
        """
        outcome, inbound = stored.outcome, stored.message.inbound
        if isinstance(outcome, Exception):
            # Somebody has settled it, as by hand; send what was stored then.
            LOG.warning("message was settled meanwhile", correlation_id=inbound.id)
            self._router.tell(names.connector(inbound.address.connector), DrainOutbox())
            return True
        telling.wake_notifiers(self._router.find, stored.told)
        if stored.answer is not None:
            tell_dismissed(self._router, stored.answer, self._services)
            return True
        return False
