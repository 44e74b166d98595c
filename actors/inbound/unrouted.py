"""Messages that no agent hears: settled as dropped, and their senders told."""

from __future__ import annotations

import msgspec

from actors import names
from actors.journal import answers, commits, notices
from actors.journal.answers import Answer
from actors.journal.outbox import silent_result
from actors.messages.inbound import Inbound
from actors.messages.state import outcome_of
from actors.messages.tracing import TracedStep
from actors.protocol import Deliver, DrainOutbox, MessageSettled
from actors.rules.text.limits import NoticeLimiter
from actors.services import Services
from runtime.actor.actor import Actor
from runtime.actor.committer import Committer
from runtime.store.rows import Committed, Entry, SettledState
from runtime.telemetry.logs import EventLog

LOG = EventLog("router")

TOLD_ONCE = frozenset({"not_permitted", "no_default_agent"})
"""Reasons for dropping a message that hold for the sender's next ones, too."""


class DropStored(msgspec.Struct, frozen=True):
    """A note to the router: the outcome of the commit that dropped a message."""

    answer: Answer
    outcome: Committed | Exception
    notices: tuple[Entry, ...]
    """Rows that tell other programs of it."""


class UnroutedMessages:
    """Drops messages that no agent hears; the router's own part."""

    def __init__(self, router: Actor, services: Services) -> None:
        self._router = router
        self._services = services
        self._committer = Committer(services.store)
        self._sparing = NoticeLimiter(services.limits.told_again_after)

    def drop(self, inbound: Inbound, reason: str, text: str) -> None:
        """Settle a message as dropped; tell its sender if an answer is expected.

        Args:
            text: for the sender, in the runtime's own words.
        """
        name = inbound.correlation_id
        LOG.info("message dropped", correlation_id=name, reason=reason)
        answer = dismissal(inbound, reason, text, self._services)
        if reason in TOLD_ONCE and self._was_told(answer):
            self._services.metrics.left_out.add(1, reason)
            answer = answers.without_notice(answer)
        self._store(answer)

    def _was_told(self, answer: Answer) -> bool:
        """Whether its sender, a person, was told the same lately."""
        inbound, services = answer.inbound, self._services
        is_own = not (inbound.chain.agents or inbound.occasion)
        shows = services.accounts[inbound.address.connector].abilities.shows_asides
        if not (answer.deliveries and is_own and shows):
            return False
        whose = (commits.chat_stream(inbound), inbound.sender_id, answer.settled[1])
        self._sparing.every = services.limits.told_again_after
        return not self._sparing.may_tell(whose, services.clock.monotonic())

    def _store(self, answer: Answer) -> None:
        services, router = self._services, self._router
        told = notices.of_unanswered(answer, services)
        self._committer.submit(
            router,
            lambda: commits.as_unanswered(
                answer, services.clock.wall(), services.keep, told
            ),
            lambda outcome: router.note(DropStored(answer, outcome, told)),
        )

    def stored(self, stored: DropStored) -> None:
        """Tell the connector and other programs, after the commit."""
        answer, router = stored.answer, self._router
        if isinstance(stored.outcome, Exception):
            # Somebody has settled it; send what was stored then.
            connector = answer.inbound.address.connector
            router.tell(names.connector(connector), DrainOutbox())
        else:
            notices.wake_notifiers(router.find, stored.notices)
            tell_dismissed(router, answer, self._services)


def dismissal(inbound: Inbound, reason: str, text: str, services: Services) -> Answer:
    """Make the answer that settles a message as dropped.

    It tells the sender where one waits: in a direct chat, or for a delegation or a
    mention. In a group most messages are for no agent here: only a program that counts
    answers is told, by silence.

    Args:
        text: for the sender, in the runtime's own words.
    """
    settled: tuple[SettledState, str] = ("dropped", reason)
    is_own = not inbound.chain.agents and inbound.id == inbound.correlation_id
    if is_own and not inbound.is_direct:
        # Why stored: a client that waits for the end of each message must learn of it
        # also if this process ends before it is told.
        can = services.accounts[inbound.address.connector].abilities
        waits = (silent_result(inbound, ":".join(settled)),)
        told = waits if can.counts_answers else ()
        return Answer(inbound=inbound, settled=settled, deliveries=told)
    return answers.localised(answers.notice(inbound, text, settled), services)


def tell_dismissed(actor: Actor, answer: Answer, services: Services) -> None:
    """Tell the connector that a message is settled, and give it the notices."""
    account = answer.inbound.address.connector
    connector = names.connector(account)
    services.metrics.messages.add(1, account, outcome_of(*answer.settled))
    for delivery in answer.deliveries:
        actor.tell(connector, Deliver(delivery))
    if not answer.deliveries:
        reason = ":".join(answer.settled)
        actor.tell(connector, MessageSettled(answer.inbound, reason))
        if services.trace is not None:
            services.trace(
                TracedStep(
                    stage="settle",
                    correlation_id=answer.inbound.correlation_id,
                    seconds=0.0,
                    name=account,
                    outcome=outcome_of(*answer.settled),
                    parts_left=0,
                )
            )
