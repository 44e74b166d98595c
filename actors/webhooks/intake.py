"""The intake: turns incoming webhooks into stored tasks for agents, each delivery once.

The edge has checked the signature (`signature.py`) and written the task (`task.py`).
From here it goes the way of people's messages, with their retries and limits, but
nobody wrote it: it is never a command or an approval.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

import msgspec

from actors import names
from actors.errors import OverloadedError, StoppingError, UnconfirmedError
from actors.journal import commits
from actors.messages import priority
from actors.messages.inbound import Inbound
from actors.protocol import Route, StopAccepting
from actors.rules.text.limits import Quota
from actors.services import Services
from actors.webhooks.messages import Trigger, Triggered
from runtime.actor.actor import Actor
from runtime.actor.mailbox import MailboxConfig
from runtime.actor.ref import UNANSWERED, ActorRef
from runtime.actor.reply import Reply
from runtime.errors import DuplicateError, MailboxFullError, StoreError
from runtime.store.rows import Commit, Committed
from runtime.telemetry.logs import EventLog

LOG = EventLog("webhooks")

BEGINNING = "webhook"
MINUTE = 60.0
MOST_STORING = 100
"""Most deliveries that are being stored at once."""

COUNT_AGAIN = 5.0
"""Seconds that a count of open tasks holds once there were too many."""

PAGE = 1000
BUSY = "too much of this webhook waits; send it again later"


class TriggerStored(msgspec.Struct, frozen=True):
    """A note to itself: the outcome of a delivery's commit."""

    trigger: Trigger
    inbounds: tuple[Inbound, ...]
    outcome: Committed | Exception
    reply: Reply | None


class WebhookIntake(Actor):
    """Stores the tasks of incoming webhooks and has them routed.

    Takes: `Trigger` (asked), `StopAccepting`. Sends: `Route` to the router. Keeps: the
    times of each webhook's deliveries in the last minute; its open tasks. Fails: never
    by a delivery. Ends: with the system.
    """

    mailbox: ClassVar[MailboxConfig] = MailboxConfig(capacity=1_000)

    def __init__(self, services: Services) -> None:
        super().__init__()
        self._services = services
        self._quotas: dict[str, Quota] = {}
        """By webhook; no more than the settings name."""

        self._open: dict[str, set[str]] = {}
        """By webhook: ids of messages that may still be open."""

        self._counted_at: dict[str, float] = {}
        self._storing = 0
        self._is_closed = False

    async def on_receive(self, message: object) -> object:
        """Take a delivery in."""
        match message:
            case Trigger():
                return await self._trigger(message)
            case TriggerStored():
                await self._taken(message)
            case StopAccepting():
                self._is_closed = True
            case _:
                return super().on_receive(message)
        return None

    async def _trigger(self, trigger: Trigger) -> Triggered | None:
        """Store a delivery's tasks; the asker is answered when they are durable."""
        if self._is_closed:
            raise StoppingError("Callboard is being stopped; send it again in a moment")
        try:
            self._refuse_flood(trigger)
            await self._refuse_backlog(trigger)
        except OverloadedError:
            # A delivery that was stored before needs no room.
            before = await self._known(trigger)
            if before is None:
                raise
            return before
        inbounds = self._inbounds(trigger)
        now = self._services.clock.wall()
        accepts = tuple(commits.as_accept(each, now) for each in inbounds)
        self._storing += 1
        self._store(trigger, inbounds, Commit(at=now, accepts=accepts))
        return None

    def _store(
        self, trigger: Trigger, inbounds: tuple[Inbound, ...], commit: Commit
    ) -> None:
        reply, note, tell = self.defer_reply(), self.note, self.tell
        began_at = self._services.clock.monotonic()

        def done(outcome: Committed | Exception) -> None:
            # Why here: this actor may be killed before it gets the note; then the
            # messages would wait for the next sweep of the router.
            if isinstance(outcome, Committed):
                for inbound, number in zip(inbounds, outcome.accepted, strict=True):
                    tell(names.ROUTER, Route(inbound, number, began_at))
            note(TriggerStored(trigger, inbounds, outcome, reply))

        self._services.store.submit(commit, done)

    async def _taken(self, taken: TriggerStored) -> None:
        """Answer the asker."""
        # Why not below 0: commits of an earlier incarnation report here, too.
        self._storing = max(0, self._storing - 1)
        trigger, outcome, reply = taken.trigger, taken.outcome, taken.reply
        if isinstance(outcome, DuplicateError):
            # The same delivery came twice at once, or its agents have changed.
            try:
                found = await self._known(trigger)
            except StoreError as error:
                _fail(reply, error)
                return
            _give(reply, found or Triggered((), is_new=False))
        elif isinstance(outcome, Exception):
            _fail(reply, outcome)
        else:
            ids = tuple(each.id for each in taken.inbounds)
            self._open.setdefault(trigger.webhook, set()).update(ids)
            LOG.info(
                "webhook taken in",
                webhook=trigger.webhook,
                delivery=trigger.key,
                messages=", ".join(ids),
            )
            _give(reply, Triggered(ids, is_new=True))

    async def _known(self, trigger: Trigger) -> Triggered | None:
        """Give the tasks of a delivery that was stored before; None: it was not."""
        connector = trigger.address.connector
        ids: list[str] = []
        for agent in trigger.agents:
            found = await self._services.store.answered(
                connector, platform_id(trigger, agent)
            )
            if found is not None:
                ids.append(found.message.id)
        return Triggered(tuple(ids), is_new=False) if ids else None

    def _refuse_flood(self, trigger: Trigger) -> None:
        if self._storing >= MOST_STORING:
            raise OverloadedError("too many webhooks at once; send it again later")
        quota = self._quotas.get(trigger.webhook)
        if quota is None or quota.most != trigger.per_minute:
            quota = self._quotas[trigger.webhook] = Quota(trigger.per_minute, MINUTE)
        wait = quota.take(self._services.clock.monotonic())
        if wait:
            raise OverloadedError(
                f"above {trigger.per_minute} a minute; send it again in {wait:.0f} s"
            )

    async def _refuse_backlog(self, trigger: Trigger) -> None:
        """Refuse while too many tasks of a webhook are open; count anew if needed."""
        name, most = trigger.webhook, trigger.max_open
        now = self._services.clock.monotonic()
        is_known = name in self._open
        if is_known and len(self._open[name]) + len(trigger.agents) <= most:
            return
        if is_known and now - self._counted_at.get(name, 0.0) < COUNT_AGAIN:
            raise OverloadedError(BUSY)
        self._counted_at[name] = now
        self._open[name] = await self._count(name)
        if len(self._open[name]) + len(trigger.agents) > most:
            raise OverloadedError(BUSY)

    async def _count(self, webhook: str) -> set[str]:
        beginning = f"{BEGINNING} {webhook} "
        found: set[str] = set()
        after = 0
        while True:
            rows = await self._services.store.unsettled(after, PAGE)
            for row in rows:
                after = row.number
                if row.platform_id.startswith(beginning):
                    found.add(row.id)
            if len(rows) < PAGE:
                return found

    def _inbounds(self, trigger: Trigger) -> tuple[Inbound, ...]:
        services = self._services
        text = services.redact(trigger.text)
        return tuple(
            Inbound(
                id=services.ids.new(),
                platform=trigger.platform,
                platform_id=platform_id(trigger, agent),
                address=trigger.address,
                sender_id=f"{BEGINNING}:{trigger.webhook}",
                sender_name=f"{BEGINNING} {trigger.webhook}",
                text=text,
                received_at=services.clock.wall(),
                is_direct=not trigger.is_group,
                agent=agent,
                wants_drafts=False,
                occasion="webhook",
                priority=priority.NORMAL,
                traceparent=trigger.traceparent,
            )
            for agent in trigger.agents
        )


def platform_id(trigger: Trigger, agent: str) -> str:
    """Name the task of one agent, the same however often a delivery comes.

    Neither name holds a blank, so no two are alike.
    """
    return f"{BEGINNING} {trigger.webhook} {agent} {trigger.key}"


async def hand_in(
    find: Callable[[str], ActorRef | None], trigger: Trigger
) -> Triggered:
    """Hand a delivery in, and wait until it is durable.

    Raises:
        OverloadedError: too many; `UnconfirmedError`: sent again, it counts once.
        StoppingError: the runtime is about to end.
        runtime.errors.StoreError: it could not be stored.
    """
    intake = find(names.WEBHOOKS)
    if intake is None:
        raise UnconfirmedError("this is starting; send it again in a moment")
    try:
        answer: object = await intake.ask(trigger)
    except MailboxFullError as error:
        raise OverloadedError(
            "too many webhooks at once; send it again later"
        ) from error
    except UNANSWERED as error:
        raise UnconfirmedError("it was not confirmed; send it again") from error
    if not isinstance(answer, Triggered):
        raise TypeError(f"the intake of webhooks answered {type(answer).__name__}")
    return answer


def _give(reply: Reply | None, answer: Triggered) -> None:
    if reply is not None:
        reply.offer(answer)


def _fail(reply: Reply | None, error: Exception) -> None:
    if reply is not None:
        reply.offer_error(error)
