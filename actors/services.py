"""Services that every actor of the domain shares: store, clock, metrics, settings.

Handles never change. Everything that follows from the settings is one immutable value,
held in one place. An actor keeps the place and reads the value whenever it needs it. A
reload replaces the whole value between two messages, so no actor sees half of a change.
Running turns and pending approvals use the new settings at once.
"""

from __future__ import annotations

import hashlib
import hmac
from dataclasses import dataclass, field
from datetime import UTC, tzinfo
from operator import attrgetter
from typing import TYPE_CHECKING, Generic, NamedTuple, Protocol, TypeVar

from actors.approvals.board import ApprovalBoard, DecideQuestion, ReadQuestions
from actors.approvals.permissions import ApprovalTerms
from actors.config.access import CommandsConfig, PeopleConfig
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
from actors.hooks.book import HookBook
from actors.journal.clock import SureClock
from actors.journal.notices import Announcer
from actors.messages.keys import account_of, chat_partition
from actors.people.guests import GuestList
from actors.people.lookup import Acquaintances
from actors.rules.groups.access import EVERYBODY, AgentAccess
from actors.rules.text.languages import LONGEST_LOOK, of_words
from actors.rules.text.secrets import AuditRedaction
from actors.rules.text.translations import Translate, Voices
from actors.transport import Account
from runtime.ids import SYSTEM_RANDOM, IdSource, RandomBytes

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping, Sequence

    from actors.memory.kit import MemoryKit
    from actors.messages.inbound import Inbound
    from actors.messages.tracing import Trace, TraceParent
    from actors.metrics import LineMetrics
    from actors.models.limiter import IsWorking
    from actors.ports import Enclosures, MediaReader, Notebook, Noted, ReadChecklist
    from actors.rules.groups.routes import GroupBehaviour
    from actors.schedule.appointments import Appointment
    from runtime.actor.actor import Actor
    from runtime.clock import Clock
    from runtime.store.facts import FactChange
    from runtime.store.port import Store

    NodeAsked = ReadQuestions | DecideQuestion | IsWorking

UNKNOWN_ACCOUNT = Account()


class KnownAccounts(dict[str, Account]):
    """Connector accounts by connector name; a removed one has no abilities."""

    def __missing__(self, connector: str) -> Account:
        """Return the account of a connector that is not there."""
        return UNKNOWN_ACCOUNT


T = TypeVar("T")


class Rememberer(Protocol):
    """Stores what is worth remembering of a conversation."""

    async def __call__(
        self, services: Services, asker: Actor, noted: Noted
    ) -> tuple[FactChange, ...]:
        """Take something up.

        Returns:
            Changes for the caller to store in the transaction of their source; nothing
            is remembered before that.

        Raises:
            runtime.errors.KernelError: the memory actor cannot be asked now.
            actors.errors.ChatError: it cannot be stored.
        """
        ...


@dataclass(frozen=True)
class Furnishing:
    """The domain's view of the settings; immutable, replaced as a whole by a reload."""

    limits: LimitsConfig
    sessions: SessionConfig
    compaction: CompactionConfig = field(default_factory=CompactionConfig)
    buffering: BufferingConfig = field(default_factory=BufferingConfig)
    busy_policies: tuple[BusyPolicyConfig, ...] = ()
    watchdog: WatchdogConfig = field(default_factory=WatchdogConfig)
    zone: tzinfo = UTC
    """Time zone of `sessions.reset_hour`."""

    audit: AuditConfig = field(default_factory=AuditConfig)
    accounts: Mapping[str, Account] = field(default_factory=dict[str, Account])
    """Connector accounts by connector name; see `KnownAccounts`, which it becomes."""

    owners: frozenset[str] = frozenset()
    """Accounts of the owners, each as `connector/sender_id`."""

    approvers: frozenset[str] = frozenset()
    """Accounts that may approve any tool call, each as `connector/sender_id`: the
    owners and the user of this machine's terminal.
    """

    agent_access: AgentAccess = EVERYBODY
    """Which people may use which agent."""

    tool_calls: ToolCallConfig = field(default_factory=ToolCallConfig)
    collaboration: CollaborationConfig = field(default_factory=CollaborationConfig)
    approvals: ApprovalConfig = field(default_factory=ApprovalConfig)
    permissions: tuple[PermissionConfig, ...] = ()
    presence: PresenceConfig = field(default_factory=PresenceConfig)
    scheduler: SchedulerConfig = field(default_factory=SchedulerConfig)
    standing: Mapping[str, Appointment] = field(
        default_factory=dict[str, "Appointment"]
    )
    """Appointments configured in the settings, by id, without due times."""

    announcer: Announcer = field(default_factory=Announcer)
    """Records events for outgoing webhooks."""

    enclosures: Enclosures | None = None
    """Takes the files that agents send; None: agents cannot send files."""

    media: MediaReader | None = None
    """Reads attachments; None: attachments are not read."""

    memory: MemoryKit | None = None
    """The memory of agents; None: they remember only the conversation."""

    remember: Rememberer | None = None
    """Stores what is worth remembering; None without memory."""

    notebook: Notebook | None = None
    """Files with lessons, bugs and projects; None without them."""

    people: PeopleConfig = field(default_factory=PeopleConfig)
    commands: CommandsConfig = field(default_factory=CommandsConfig)
    agent_models: Mapping[str, str] = field(default_factory=dict[str, str])
    """Model by name of the configured agent."""

    agent_groups: Mapping[str, GroupBehaviour] = field(
        default_factory=dict[str, "GroupBehaviour"]
    )
    """What the configured agents are called in groups, by name."""

    voices: Voices = field(default_factory=Voices)
    """The runtime's texts in all languages."""

    terms: ApprovalTerms = field(init=False)
    """The approval rules for a tool call."""

    def __post_init__(self) -> None:
        """Make what follows from the others, once instead of for each message."""
        terms = ApprovalTerms(self.approvers, self.approvals.asker_may_approve)
        object.__setattr__(self, "terms", terms)
        object.__setattr__(self, "accounts", KnownAccounts(self.accounts))


class NodesSaid(NamedTuple):
    """What the other nodes said to a question."""

    answers: Sequence[bytes] = ()
    """JSON, of those that did what was asked."""

    silent: Sequence[str] = ()
    """Which ones did not answer, and why; those that refused are in neither."""


async def nobody_else(_question: NodeAsked) -> NodesSaid:
    """Ask nobody: there are no other nodes."""
    return NodesSaid()


class Duties:
    """What of a company's work this process does.

    All of it, unless it is one of several nodes: then each works on the chats of its
    parts, as far as their connectors are shared, and hears and sends for the connectors
    that it has; one of them does all the rest.
    """

    __slots__ = (
        "accounts",
        "ask",
        "closed",
        "has_rest",
        "is_leased",
        "is_leaving",
        "is_shared",
        "parts",
        "show",
    )

    def __init__(self) -> None:
        self.parts: frozenset[int] | None = None
        """Whose chats are this process's; None: all chats are."""

        self.closed: frozenset[int] = frozenset()
        """Those of the parts in which nothing new is begun, since they are about to be
        given away; what comes waits."""

        self.has_rest = True
        """Whether what is not shared is this process's."""

        self.is_shared: Callable[[str], bool] = bool
        """Whether nodes share the chats of a connector."""

        self.accounts: frozenset[str] = frozenset()
        """The connectors that this process has of those that one node at a time has."""

        self.is_leased: Callable[[str], bool] = lambda _: False
        """Whether one node at a time has a connector: it hears and sends for all its
        chats, whoever works on them."""

        self.is_leaving = False
        """Whether other nodes are to take up what comes in for this one from now on."""

        self.ask: Callable[[NodeAsked], Awaitable[NodesSaid]] = nobody_else
        """Asks all other nodes something, under a deadline: what only the node can say
        or do that has it in memory. See `connectors/admin/nodes.py`."""

        self.show: Callable[[str, object], object] = lambda _connector, _message: None
        """Tells other nodes something that may get lost, about a connector's chat; see
        `actors/outbound/hints.py`."""

    def has(self, connector: str, part: int) -> bool:
        """Whether this process works on a chat of a part."""
        if self.parts is None:
            return True
        return part in self.parts if self.is_shared(connector) else self.has_rest

    def begins(self, connector: str, part: int) -> bool:
        """Whether this process begins turns in a chat of a part just now."""
        is_closed = part in self.closed and self.is_shared(connector)
        return self.has(connector, part) and not is_closed

    def sends(self, connector: str, part: int) -> bool:
        """Whether this process delivers answers in a chat of this part."""
        if self.parts is None or not self.is_leased(connector):
            return self.has(connector, part)
        return connector in self.accounts

    def is_away(self, connector: str) -> bool:
        """Whether another node may have a connector whose chats are worked on here."""
        is_leased = self.parts is not None and self.is_leased(connector)
        return is_leased and connector not in self.accounts

    def has_chat(self, connector: str, chat: str) -> bool:
        """Whether a chat is this process's."""
        return self.parts is None or self.has(
            connector, chat_partition(connector, chat)
        )


class InForce:
    """Holder of the present settings value.

    All actors read it on the kernel thread; only `connectors/app/reload/apply.py`
    writes it.
    """

    __slots__ = ("current",)

    def __init__(self, current: Furnishing) -> None:
        self.current = current


class Now(property, Generic[T]):
    """Attribute of `Services` that reads the present settings on every access.

    Why a property around an `attrgetter`: sixty settings are read for each message, and
    so no function in Python runs for it.
    """

    def __init__(self, name: str) -> None:
        super().__init__(attrgetter(f"in_force.current.{name}"))

    if TYPE_CHECKING:

        def __get__(  # type: ignore[override]  # pyright: ignore[reportIncompatibleMethodOverride]
            self, _services: object, _class: type | None = None, /
        ) -> T:
            """Return the present value."""
            ...


def utc_only(name: str) -> tzinfo | None:
    """Return UTC, the one time zone that needs no tables; None for other names."""
    return UTC if name == "UTC" else None


@dataclass(frozen=True)
class Services:
    """Handles shared by actors; each is safe to share on the kernel thread.

    Settings may change while actors run. Read them when they are needed and keep no
    copy longer than one piece of work.
    """

    store: Store
    clock: Clock
    ids: IdSource
    metrics: LineMetrics
    in_force: InForce
    """Holder of the present settings value."""

    guests: GuestList = field(default_factory=GuestList)
    """People whom owners have let in."""

    board: ApprovalBoard = field(default_factory=ApprovalBoard)
    """Tool calls that wait for approval, in all conversations."""

    receipt_key: bytes = b""
    """Key that signs receipts of tool calls; empty: no receipts are made."""

    redact: Callable[[str], str] = str
    """Removes the values of secrets from a text before it is stored."""

    hooks: HookBook = field(default_factory=HookBook)
    """The operator's hooks."""

    find_zone: Callable[[str], tzinfo | None] = utc_only
    """Returns a time zone by name; None if it is unknown."""

    read_checklist: ReadChecklist | None = None
    """Reads the checklists of heartbeats; None: not available."""

    acquaintances: Acquaintances = field(default_factory=Acquaintances)
    """The people who wrote last, and what is known of them."""

    frame_key: bytes = field(init=False, repr=False)
    """Key of the frames around untrusted text; as durable as `receipt_key`, so that a
    prompt stays the same over a restart.
    """

    duties: Duties = field(default_factory=Duties)
    """What of the company's work this process does."""

    traceparent: TraceParent | None = None
    """Names the step that a call to a model is a part of; None: as `trace`."""

    trace: Trace | None = None
    """Is told each step of each message; None: messages are not traced, which costs
    nothing.
    """

    random_bytes: RandomBytes = SYSTEM_RANDOM
    started_at: float = 0.0
    """Start of this process on the monotonic clock."""

    sure_clock: SureClock = field(init=False)
    """Clock for deleting old data; a jump of the wall clock does not make it run
    ahead.
    """

    def __post_init__(self) -> None:
        """Make the clock and the key that follow from the others."""
        key = self.receipt_key or self.random_bytes(32)
        framing = hmac.new(key, b"callboard-frame-1", hashlib.sha256).digest()
        object.__setattr__(self, "frame_key", framing)
        object.__setattr__(self, "sure_clock", SureClock(self.clock))

    def arrival_at(self, connector: str, monotonic: float, wall: float) -> float:
        """Give the time by which words and the questions they answer are compared.

        Of several nodes one has a connector, and another may work on the chat: then
        both times are of the wall clock of the first.

        Args:
            connector: by which they came, or were said.
            monotonic: seconds of this process.
            wall: Unix seconds of the same moment.
        """
        is_for_others = self.duties.parts is not None and self.duties.is_leased(
            connector
        )
        return wall if is_for_others else monotonic

    limits = Now["LimitsConfig"]("limits")
    sessions = Now["SessionConfig"]("sessions")
    compaction = Now["CompactionConfig"]("compaction")
    buffering = Now["BufferingConfig"]("buffering")
    busy_policies = Now["tuple[BusyPolicyConfig, ...]"]("busy_policies")
    watchdog = Now["WatchdogConfig"]("watchdog")
    zone = Now["tzinfo"]("zone")
    audit = Now["AuditConfig"]("audit")
    accounts = Now["Mapping[str, Account]"]("accounts")
    owners = Now["frozenset[str]"]("owners")
    approvers = Now["frozenset[str]"]("approvers")
    agent_access = Now["AgentAccess"]("agent_access")
    tool_calls = Now["ToolCallConfig"]("tool_calls")
    collaboration = Now["CollaborationConfig"]("collaboration")
    approvals = Now["ApprovalConfig"]("approvals")
    permissions = Now["tuple[PermissionConfig, ...]"]("permissions")
    presence = Now["PresenceConfig"]("presence")
    scheduler = Now["SchedulerConfig"]("scheduler")
    standing = Now["Mapping[str, Appointment]"]("standing")
    announcer = Now["Announcer"]("announcer")
    enclosures = Now["Enclosures | None"]("enclosures")
    media = Now["MediaReader | None"]("media")
    memory = Now["MemoryKit | None"]("memory")
    remember = Now["Rememberer | None"]("remember")
    notebook = Now["Notebook | None"]("notebook")
    people = Now["PeopleConfig"]("people")
    commands = Now["CommandsConfig"]("commands")
    agent_models = Now["Mapping[str, str]"]("agent_models")
    agent_groups = Now["Mapping[str, GroupBehaviour]"]("agent_groups")
    voices = Now["Voices"]("voices")
    terms = Now["ApprovalTerms"]("terms")

    @property
    def keep(self) -> AuditRedaction:
        """Return what the audit log keeps."""
        return AuditRedaction(self.redact, self.audit.texts)

    def say(self, inbound: Inbound) -> Translate:
        """Return the runtime's texts in the language of a message's person."""
        return self.voices.speak(*self.languages(inbound))

    def retell(self, inbound: Inbound) -> Translate:
        """Return the function that translates sentences for a message's person."""
        return self.voices.retell(*self.languages(inbound))

    def languages(self, inbound: Inbound) -> tuple[str, ...]:
        """Return the languages of a message's person, the likeliest first.

        What they chose or write, then what their platform says. Of somebody of whom
        nothing is known, this message alone decides, if it is long enough to.
        """
        person = self.acquaintances.find(account_of(inbound))
        known = ("" if person is None else person.language, inbound.language)
        return known if any(known) else (of_words(inbound.text[:LONGEST_LOOK]),)

    def shows_drafts(self, connector: str) -> bool:
        """Return whether people see answers of a connector grow."""
        can = self.accounts[connector].abilities
        is_wanted = self.presence.shows_drafts(connector, is_sparing=can.is_sparing)
        return is_wanted and can.shows_drafts

    def shows_reactions(self, connector: str) -> bool:
        """Return whether agents react to the messages of a connector."""
        can = self.accounts[connector].abilities
        return self.presence.shows_reactions(connector, is_sparing=can.is_sparing)
