"""Messages that hooks are asked about before anybody hears them: the router's own.

No actor. Bounded: of too many at once, further ones count as if their hooks failed.
What hooks said is stored with the message before it goes on, so it is asked about once,
whatever comes between; a disk that fails is asked again until it takes it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from actors import commits, names, telling
from actors.answers import Answer
from actors.dismissal import dismissal, tell_dismissed
from actors.hooking import AskHooks, HooksSaid, about, patience
from actors.protocol import DrainOutbox
from actors.rules.hooking import Passed, unasked
from actors.unheard import Unheard
from runtime.entries import Entry
from runtime.errors import StoreUnavailableError
from runtime.logs import EventLog
from runtime.messages import Keyed
from runtime.rows import Amend, Commit, Committed

if TYPE_CHECKING:
    from actors.messages import Inbound
    from actors.services import Services
    from runtime.actor import Actor

LOG = EventLog("router")

# Chosen: one actor each, a few kilobytes. What comes above that is a flood, or a hook
# that hangs for longer than people wait.
MOST_OPEN = 1_000

RETRY_COMMIT = 1.0
"""Seconds until a failed commit is tried again."""

HELD_BACK = "⚠️ This message was not taken in: {reason}"
HELD_BACK_SILENTLY = "⚠️ This message was not taken in."


class Intercepted(msgspec.Struct, frozen=True):
    """A note to the router: what became of the commit of what hooks said."""

    unheard: Unheard
    """As it reads from now on."""

    answer: Answer | None
    """To a message that is held back; else None."""

    outcome: Committed | Exception
    told: tuple[Entry, ...]
    """Rows that other programs are told of it by."""


class StoreAgain(msgspec.Struct, frozen=True):
    """A note to the router: the disk may take it now."""

    intercepted: Intercepted


Intercepting = HooksSaid | Intercepted | StoreAgain
"""What comes of asking hooks about a message."""


class Interception:
    """The messages that hooks are asked about.

    Args:
        router: on whose behalf.
        services: who the hooks are; store, clock, counts.
    """

    def __init__(self, router: Actor, services: Services) -> None:
        self._router = router
        self._services = services
        self._open: dict[str, Unheard] = {}
        """By the message's id, until what came of it is stored."""

    def is_open(self, inbound: Inbound) -> bool:
        """Whether a message is being asked about, or its outcome being stored."""
        return inbound.id in self._open

    def ask(self, unheard: Unheard) -> bool:
        """Have hooks asked about a message; False if there are none to ask."""
        inbound, past, services = unheard.inbound, unheard.past, self._services
        if past.attempts or past.was_running:
            return False  # somebody heard it before there were hooks
        hooks = services.hooks.receiving(inbound)
        if not hooks:
            return False
        is_flood = len(self._open) >= MOST_OPEN
        self._open[inbound.id] = unheard
        lost = HooksSaid(inbound.id, unasked(hooks, inbound.text))
        asked = AskHooks(
            key=inbound.id,
            event="message_received",
            hooks=hooks,
            about=about(inbound, ""),
            text=inbound.text,
            most=services.limits.max_message_chars,
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

    def take(self, message: Intercepting) -> Unheard | Inbound | None:
        """Take in what hooks said, or what became of storing it.

        Returns:
            How a message goes on; or what it was, if it is settled; None: not yet.
        """
        match message:
            case HooksSaid(key=key, passed=passed):
                unheard = self._open.get(key)
                # Once its words are on their way to the disk, it is late.
                if unheard is not None and not unheard.inbound.is_hooked:
                    self._decided(unheard, passed)
            case StoreAgain(intercepted=again):
                self._store(again.unheard, again.answer)
            case Intercepted():
                return self._stored(message)
        return None

    def _decided(self, unheard: Unheard, passed: Passed) -> None:
        inbound, services = unheard.inbound, self._services
        connector = inbound.address.connector
        text = passed.text if passed.changed_by and not passed.cancelled_by else ""
        inbound = msgspec.structs.replace(
            inbound,
            is_hooked=True,
            text=text or inbound.text,
            changed_by=passed.changed_by[-1] if text else "",
        )
        unheard = msgspec.structs.replace(unheard, inbound=inbound)
        self._open[inbound.id] = unheard
        answer: Answer | None = None
        if passed.cancelled_by:
            services.metrics.message(connector, "hook_cancelled")
            reason = passed.reason
            said = HELD_BACK.format(reason=reason) if reason else HELD_BACK_SILENTLY
            answer = dismissal(inbound, "hook", said, services)
            LOG.info(
                "message held back by a hook",
                correlation_id=inbound.correlation_id,
                hook=passed.cancelled_by,
                why=reason,
            )
        elif text:
            services.metrics.message(connector, "hook_changed")
            LOG.info(
                "message changed by a hook",
                correlation_id=inbound.correlation_id,
                hook=", ".join(passed.changed_by),
            )
        self._store(unheard, answer)

    def _store(self, unheard: Unheard, answer: Answer | None) -> None:
        services, router = self._services, self._router
        inbound, now = unheard.inbound, services.clock.wall()
        body = msgspec.json.encode(inbound)
        commit = Commit(at=now)
        if answer is not None:
            told = telling.of_unheard(answer, services)
            commit = commits.as_unheard(answer, now, services.keep, told)
        commit = msgspec.structs.replace(commit, amends=(Amend(inbound.id, body),))
        services.store.submit(
            commit,
            lambda outcome: router.note(
                Intercepted(unheard, answer, outcome, commit.entries)
            ),
        )

    def _stored(self, message: Intercepted) -> Unheard | Inbound | None:
        outcome, inbound = message.outcome, message.unheard.inbound
        if isinstance(outcome, StoreUnavailableError):
            LOG.warning("what hooks said waits for the disk", why=str(outcome))
            self._router.after(RETRY_COMMIT, StoreAgain(message))
            return None
        self._open.pop(inbound.id, None)
        if isinstance(outcome, Exception):
            # Somebody has settled it, by hand for one; what was said then goes out.
            LOG.warning("message was settled meanwhile", correlation_id=inbound.id)
            self._router.tell(names.connector(inbound.address.connector), DrainOutbox())
            return inbound
        telling.wake_notifiers(self._router.find, message.told)
        if message.answer is not None:
            tell_dismissed(self._router, message.answer, self._services)
            return inbound
        return message.unheard
