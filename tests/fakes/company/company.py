"""A whole company in memory and in virtual time: the tree of actors, with fakes around.

Everything between a person's words and the answer is real but the platform, the model
and the disk. `open_company` may be called again with the same `Cast`: a restart.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any, get_args

import msgspec
import trio
import trio.testing

from actors import names
from actors.agents.persona import Persona
from actors.config.agents import AgentConfig, MarkerFamily
from actors.config.collaboration import CollaborationConfig
from actors.config.limits import (
    ApprovalConfig,
    AuditConfig,
    LimitsConfig,
    PermissionConfig,
    ToolCallConfig,
)
from actors.config.presence import PresenceConfig
from actors.config.schedule import SchedulerConfig
from actors.config.sessions import (
    BufferingConfig,
    BusyPolicyConfig,
    CompactionConfig,
    SessionConfig,
    WatchdogConfig,
)
from actors.errors import DeliveryBusyError
from actors.inbound.undeliverable import is_owed_an_answer
from actors.journal.notices import Announcer
from actors.messages.deliveries import Delivery, Draft
from actors.messages.inbound import Inbound, ModelAnswer, ModelRequest, ToolCall, Usage
from actors.messages.state import RetryPolicy
from actors.messages.tracing import Trace, TraceParent
from actors.metrics import LineMetrics
from actors.models.catalogue import Catalogue, of_one
from actors.outbound.retry import OnUnknown
from actors.ports import MediaReader, ReadChecklist, Speak, Tool, ToolSource
from actors.rules.groups.overheard import without_overheard
from actors.rules.groups.routes import group_of, routing_table
from actors.rules.prompt.untrusted import without_sender
from actors.services import Duties, Furnishing, InForce, Rememberer, Services
from actors.transport import Account, Ingress
from actors.tree import Company, tree
from actors.webhooks.messages import Receiver
from runtime.actor.dead_letters import DeadLetter
from runtime.ids import IdSource
from runtime.system import ActorSystem
from runtime.telemetry.metrics import Metrics
from runtime.testing import Reports
from tests.fakes.actors.noting import Noting
from tests.fakes.chat.transport import FakeTransport
from tests.fakes.company.hooked import Hooks
from tests.fakes.store.in_memory import MemoryStore
from tests.fakes.tools.sent_files import FakeEnclosures
from tests.support.puppet import pause, virtual

EPOCH = 1_700_000_000.0
"""Unix seconds at which trio's mock clock stands at 0."""


class TrioClock:
    """Tells the time of trio's clock, which a test may jump."""

    ahead = 0.0  # seconds by which people have set it wrong

    def monotonic(self) -> float:
        return trio.current_time()

    def wall(self) -> float:
        return EPOCH + trio.current_time() + self.ahead


class Says(msgspec.Struct, frozen=True):
    """What the fake model does with one request."""

    text: str = ""
    after: float = 0.0  # seconds before the first piece
    pieces: tuple[str, ...] = ()  # how the text is cut; one piece unless given
    pause: float = 0.0  # seconds after each piece
    resume: str = ""
    calls: tuple[ToolCall, ...] = ()
    error: Exception | None = None


def heard(request: ModelRequest) -> str:
    """Give the last words a person, an agent or a tool said, whoever it was."""
    last = request.lines[-1]
    # In a group the text begins with its writer's name, and the line has no other.
    asked = without_overheard(last.text)
    return asked if last.name else without_sender(asked)


def echo(request: ModelRequest) -> str:
    return f"{request.agent} heard {heard(request)}"


class FakeModel:
    """A model that says what a function of the request tells it to.

    Args:
        talk: decides what is said.
    """

    def __init__(self, talk: Callable[[ModelRequest], str | Says] = echo) -> None:
        self.talk = talk
        self.requests: list[ModelRequest] = []
        self.cancelled: list[ModelRequest] = []
        self.running = 0
        self.most_running = 0

    async def answer(self, request: ModelRequest, speak: Speak) -> ModelAnswer:
        self.requests.append(request)
        says = self.talk(request)
        says = Says(says) if isinstance(says, str) else says
        self.running += 1
        self.most_running = max(self.most_running, self.running)
        self.cancelled.append(request)  # until it has ended by itself
        try:
            await self._speak(says, speak)
        finally:
            self.running -= 1
        self.cancelled.remove(request)
        if says.error is not None:
            raise says.error
        return ModelAnswer(
            text=says.text,
            tool_calls=says.calls,
            usage=Usage(3, 2),
            resume=says.resume,
        )

    async def aclose(self) -> None:
        await trio.lowlevel.checkpoint()

    async def _speak(self, says: Says, speak: Speak) -> None:
        await trio.sleep(says.after)
        for piece in says.pieces or (says.text,):
            if piece:
                speak(piece)
                await trio.sleep(says.pause)


class Platform(FakeTransport):
    """A chat platform in memory that can be slow, busy, broken or a group.

    Args:
        name: of the connector account.
        is_direct: False: all its chats are groups.
    """

    def __init__(self, name: str = "fake", *, is_direct: bool = True) -> None:
        super().__init__(name)
        self.is_direct = is_direct
        self.faults: defaultdict[str, deque[Exception]] = defaultdict(deque)
        """By chat: what the next deliveries raise."""

        self.broken: set[str] = set()
        """Chats for which delivering always raises something unexpected."""

        self.attempts: list[str] = []
        """Ids of deliveries, as often as they were to be said."""

        self.shown: list[Draft | Delivery] = []
        """Drafts and deliveries in the order in which people saw them."""

        self._noting: Noting | None = None

    async def listen(self, ingress: Ingress) -> None:
        """Hand in what people write; what was not acknowledged comes again."""
        if self._noting is not None and self._noting.in_hand is not None:
            self._written.appendleft(self._noting.in_hand)
        self._noting = Noting(ingress)
        await super().listen(self._noting)

    async def delete(self, inbound: Inbound) -> None:
        """Have a person delete a message."""
        assert self._noting is not None
        await self._noting.withdraw(self.name, inbound.platform_id)

    async def deliver(self, delivery: Delivery) -> str:
        await trio.lowlevel.checkpoint()
        self.attempts.append(delivery.id)
        chat = delivery.address.chat
        if chat in self.broken:
            raise BrokenPlatformError(chat)
        if self.faults[chat]:
            raise self.faults[chat].popleft()
        if not self._is_listening:
            raise DeliveryBusyError("the platform is not connected")
        if delivery.reply_to and delivery.correlation_id in self._known:
            there = self._known.values()
            assert delivery.reply_to in there, "a reply is to a message that exists"
        self.shown.append(delivery)
        return await super().deliver(delivery)

    def show_draft(self, draft: Draft) -> None:
        self.shown.append(draft)
        super().show_draft(draft)

    @property
    def is_heard(self) -> bool:
        """Whether all that people wrote was taken in or refused."""
        return len(self.acknowledged) + len(self.refused) == self._count

    def said(self, chat: str = "room") -> list[str]:
        """Give what was said in a chat, each with who said it."""
        return [
            f"{each.agent}: {each.text}"
            for each in self.deliveries
            if each.address.chat == chat
        ]


class BrokenPlatformError(Exception):
    """Nothing that a transport may raise."""


AT_ONCE = PresenceConfig(draft_after=0.0, draft_chars=1, placeholder="...")
"""Answers are shown from their first character, where a test is about how they grow."""


EVERY_FAMILY: tuple[MarkerFamily, ...] = tuple(
    family for family in get_args(MarkerFamily) if family != "purge"
)
"""All families of directives that may be undone."""


@dataclass
class Cast:
    """Who plays, by which settings; outlives a restart."""

    agents: dict[str, AgentConfig] = field(
        default_factory=lambda: {"anna": AgentConfig(markers=EVERY_FAMILY)}
    )
    model: FakeModel = field(default_factory=FakeModel)
    tools: tuple[Tool, ...] = ()
    sources: tuple[ToolSource, ...] = ()
    limits: LimitsConfig = field(default_factory=LimitsConfig)
    sessions: SessionConfig = field(default_factory=SessionConfig)
    buffering: BufferingConfig = BufferingConfig()  # noqa: RUF009  frozen
    busy_policies: tuple[BusyPolicyConfig, ...] = ()
    watchdog: WatchdogConfig = WatchdogConfig()  # noqa: RUF009  frozen
    platform: Platform = field(default_factory=Platform)
    others: tuple[Platform, ...] = ()
    default_agent: str = "anna"
    retries: RetryPolicy = RetryPolicy(retries_failures=False)  # noqa: RUF009  frozen
    on_unknown: OnUnknown = "resend"
    audit: AuditConfig = field(default_factory=AuditConfig)
    approvers: tuple[str, ...] = ()
    tool_calls: ToolCallConfig = field(default_factory=ToolCallConfig)
    approvals: ApprovalConfig = field(default_factory=ApprovalConfig)
    collaboration: CollaborationConfig = CollaborationConfig()  # noqa: RUF009  frozen
    permissions: tuple[PermissionConfig, ...] = ()
    scheduler: SchedulerConfig = field(default_factory=SchedulerConfig)
    announcer: Announcer = Announcer()  # noqa: RUF009  frozen
    receivers: tuple[Receiver, ...] = ()
    hooks: Hooks = field(default_factory=Hooks)
    read_checklist: ReadChecklist | None = None
    receipt_key: bytes = b""
    notice_after: float = 0.0
    """Stands for the one in `limits`: most stories are about something else."""

    enclosures: FakeEnclosures | None = None
    media: MediaReader | None = None
    presence: PresenceConfig = AT_ONCE
    compaction: CompactionConfig = CompactionConfig()  # noqa: RUF009  frozen
    remember: Rememberer | None = None
    trace: Trace | None = None
    traceparent: TraceParent | None = None
    duties: Duties = field(default_factory=Duties)
    store: MemoryStore = field(default_factory=MemoryStore)
    metrics: Metrics = field(default_factory=Metrics)
    reports: Reports = field(default_factory=Reports)

    def __post_init__(self) -> None:
        """Make the services, which a restart must not register twice."""
        self.clock = TrioClock()
        self.line = LineMetrics(self.metrics)
        self.ids = IdSource(self.clock)

    @property
    def services(self) -> Services:
        return Services(
            store=self.store,
            clock=self.clock,
            ids=self.ids,
            metrics=self.line,
            in_force=InForce(self.furnishing),
            read_checklist=self.read_checklist,
            receipt_key=self.receipt_key,
            hooks=self.hooks.book,
            trace=self.trace,
            traceparent=self.traceparent,
            duties=self.duties,
        )

    @property
    def furnishing(self) -> Furnishing:
        return Furnishing(
            limits=msgspec.structs.replace(self.limits, notice_after=self.notice_after),
            sessions=self.sessions,
            buffering=self.buffering,
            busy_policies=self.busy_policies,
            watchdog=self.watchdog,
            audit=self.audit,
            approvers=frozenset(self.approvers),
            agent_models={name: each.model for name, each in self.agents.items()},
            agent_groups={
                name: group_of(each.groups, each.description, name, each.display_name)
                for name, each in self.agents.items()
            },
            tool_calls=self.tool_calls,
            approvals=self.approvals,
            collaboration=self.collaboration,
            permissions=self.permissions,
            scheduler=self.scheduler,
            announcer=self.announcer,
            enclosures=self.enclosures,
            media=self.media,
            presence=self.presence,
            compaction=self.compaction,
            remember=self.remember,
            accounts={
                x.name: Account(
                    abilities=x.abilities,
                    retries=self.retries,
                    on_unknown=self.on_unknown,
                    has_presence=x.presence is not None,
                )
                for x in (self.platform, *self.others)
            },
        )

    def catalogue(self) -> Catalogue:
        """Say which models there are; one unless a cast says otherwise."""
        return of_one(self.model, model="fake-1")

    def company(self) -> Company:
        return Company(
            personas=tuple(self.persona(name) for name in self.agents),
            transports={each.name: each for each in (self.platform, *self.others)},
            routes=routing_table(self.agents, default_agent=self.default_agent),
            services=self.services,
            catalogue=self.catalogue,
            receivers=self.receivers,
            hooks=self.hooks.branches,
        )

    def persona(self, name: str) -> Persona:
        config = self.agents[name]
        return Persona(
            name=name,
            config=config,
            tools={t.spec.name: t for t in self.tools if t.spec.name in config.tools},
            sources=self.sources,
            colleagues={each: f"about {each}" for each in config.delegates},
            everybody=tuple(self.agents),
        )

    def restart(self) -> None:
        """Open the same rows again, as a new process would."""
        self.store = self.store.reopened()

    async def inbox(self) -> dict[str, int]:
        counts = await self.store.counts()
        return {str(state): rows for state, rows in counts.inbox.items()}

    async def outbox(self) -> dict[str, int]:
        counts = await self.store.counts()
        return {str(state): rows for state, rows in counts.outbox.items()}


@asynccontextmanager
async def open_company(
    clock: trio.testing.MockClock, cast: Cast
) -> AsyncGenerator[ActorSystem]:
    """Run a company in time that jumps, until the block ends; then stop it in order."""
    async with virtual(clock, cast.reports) as system:
        await system.start_root(tree(cast.company()), names.ROOT)
        system.dead_letters.observe(partial(bounce, system))
        yield system


def bounce(system: ActorSystem, letter: DeadLetter) -> None:
    """Wire the bounce actor as `connectors/app/app.py` does."""
    ref = system.find(names.UNDELIVERABLE)
    if ref is not None and is_owed_an_answer(letter) and not system.kernel.is_closing:
        ref.tell(letter)


async def until(is_so: Callable[[], object], *, within: float = 600.0) -> None:
    """Wait in virtual time until something is so; fail after `within` seconds."""
    if is_so():
        return
    with trio.move_on_after(within):
        await trio.testing.wait_all_tasks_blocked()
        while not is_so():
            await pause(0.005)
        return
    raise AssertionError(f"not so within {within} s")


async def at_rest(cast: Cast, *, within: float = 600.0) -> None:
    """Wait until all that was written is taken in and settled; fail after `within`."""
    with trio.fail_after(within):
        await trio.testing.wait_all_tasks_blocked()
        while True:
            counts = await cast.store.counts()
            open_rows = [counts.inbox.get("accepted"), counts.inbox.get("running")]
            open_rows += [counts.outbox.get("pending"), counts.outbox.get("sending")]
            is_heard = all(x.is_heard for x in (cast.platform, *cast.others))
            if is_heard and not any(open_rows):
                return
            await pause(0.02)


def call(name: str, number: int = 1, **arguments: Any) -> ToolCall:
    """Make a tool call as a model would."""
    return ToolCall(f"call-{number}", name, msgspec.json.encode(arguments))


def counted(metrics: Metrics, name: str = "") -> list[str]:
    """List what was counted or measured, `…_total{label="value"} 1.0`, but no zeros.

    Args:
        metrics: of the company.
        name: how the lines begin, without `callboard_`; empty: all of them.
    """
    lines = metrics.render().decode().splitlines()
    return sorted(
        line.removeprefix("callboard_")
        for line in lines
        if line.startswith(f"callboard_{name}") and not line.endswith(" 0.0")
        if "_bucket{" not in line and "_created" not in line
    )
