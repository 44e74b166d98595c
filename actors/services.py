"""What every actor of the domain is given: storage, time, ids, counts, settings.

Handles never change. What the settings come to is one value (`Furnishing`) that stands
in one place (`InForce`): an actor keeps the place, and reads the value when it needs
it. Whoever takes changed settings over puts another value there, whole, between two
messages; so nobody sees half of a change, and what runs already (a turn, a question
that waits for leave) goes by the settings of now.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, tzinfo
from typing import TYPE_CHECKING, Generic, Never, Protocol, TypeVar

from actors.account import Account
from actors.acquaintance import Acquaintances
from actors.approval_board import ApprovalBoard
from actors.busy_config import BufferingConfig, BusyPolicyConfig, WatchdogConfig
from actors.collaboration_config import CollaborationConfig
from actors.config import ApprovalConfig, AuditConfig, ToolCallConfig
from actors.guests import GuestList
from actors.hooking import HookBook
from actors.notices import Announcer
from actors.people_config import CommandsConfig, PeopleConfig
from actors.presence_config import PresenceConfig
from actors.redaction import Keep
from actors.rules.agent_access import EVERYBODY, AgentAccess
from actors.rules.approvals import Terms
from actors.rules.approvals import person as account_of
from actors.rules.voice import Voices
from actors.schedule_config import SchedulerConfig
from actors.session_config import CompactionConfig
from actors.sure_clock import SureClock
from runtime.ids import SYSTEM_RANDOM

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from actors.config import LimitsConfig, PermissionConfig
    from actors.file_ports import Enclosures
    from actors.memory_kit import MemoryKit
    from actors.messages import Inbound
    from actors.metrics import LineMetrics
    from actors.ports import (
        MediaReader,
        Notebook,
        Noted,
        ReadChecklist,
    )
    from actors.rules.identity import Person
    from actors.rules.schedule import Appointment
    from actors.rules.voice import Translate
    from actors.session_config import SessionConfig
    from runtime.actor import Actor
    from runtime.clock import Clock
    from runtime.fact_rows import FactChange
    from runtime.ids import IdSource, RandomBytes
    from runtime.store import Store

UNKNOWN_ACCOUNT = Account()

T = TypeVar("T")


class Rememberer(Protocol):
    """Keeps what is found worth remembering of a conversation."""

    async def __call__(
        self, services: Services, asker: Actor, noted: Noted
    ) -> tuple[FactChange, ...]:
        """Take something up.

        Args:
            services: what is shared.
            asker: on whose behalf other actors are asked.
            noted: what is to be kept.

        Returns:
            Changes that whoever asks stores together with what it is about; until then
            nothing is remembered.

        Raises:
            runtime.errors.KernelError: whoever keeps it cannot be asked now.
            actors.errors.ChatError: it cannot be kept.
        """
        ...


@dataclass(frozen=True)
class Furnishing:
    """What the settings come to for the domain; never changed, only replaced."""

    limits: LimitsConfig
    sessions: SessionConfig
    compaction: CompactionConfig = field(default_factory=CompactionConfig)
    buffering: BufferingConfig = field(default_factory=BufferingConfig)
    busy_policies: tuple[BusyPolicyConfig, ...] = ()
    watchdog: WatchdogConfig = field(default_factory=WatchdogConfig)
    zone: tzinfo = UTC
    """Whose hours count for `sessions.reset_hour`."""

    audit: AuditConfig = field(default_factory=AuditConfig)
    accounts: Mapping[str, Account] = field(default_factory=dict[str, Account])
    """By the name of the connector."""

    owners: frozenset[str] = frozenset()
    """Who runs this company, each as `connector/sender_id`."""

    approvers: frozenset[str] = frozenset()
    """Who may approve any tool call, each as `connector/sender_id`: the owners, and
    whoever sits at this machine's terminal."""

    agent_access: AgentAccess = EVERYBODY
    """Who may use which agent."""

    tool_calls: ToolCallConfig = field(default_factory=ToolCallConfig)
    collaboration: CollaborationConfig = field(default_factory=CollaborationConfig)
    approvals: ApprovalConfig = field(default_factory=ApprovalConfig)
    permissions: tuple[PermissionConfig, ...] = ()
    presence: PresenceConfig = field(default_factory=PresenceConfig)
    scheduler: SchedulerConfig = field(default_factory=SchedulerConfig)
    standing: Mapping[str, Appointment] = field(
        default_factory=dict[str, "Appointment"]
    )
    """Appointments that the settings want kept, by id; without times."""

    announcer: Announcer = field(default_factory=Announcer)
    """Writes down what other programs are told of."""

    enclosures: Enclosures | None = None
    """Takes the files that agents send; None: they can send none."""

    media: MediaReader | None = None
    """Reads attachments; None: there is nobody to read them."""

    memory: MemoryKit | None = None
    """What agents remember with; None: they remember nothing but the conversation."""

    remember: Rememberer | None = None
    """Keeps what is found worth remembering; None: there is no memory."""

    notebook: Notebook | None = None
    """Lessons, bugs and projects in files; None: there are none."""

    people: PeopleConfig = field(default_factory=PeopleConfig)
    commands: CommandsConfig = field(default_factory=CommandsConfig)
    agent_models: Mapping[str, str] = field(default_factory=dict[str, str])
    """By agent of the settings, its model: for turns that began with one that is gone
    by now."""

    voices: Voices = field(default_factory=Voices)
    """What the runtime says, in all languages."""


class InForce:
    """The one place where the furnishing of now stands.

    Read by all, on the kernel thread; written by `connectors/taking_over.py` alone.

    Args:
        current: as it is at the start.
    """

    __slots__ = ("current",)

    def __init__(self, current: Furnishing) -> None:
        self.current = current


class Now(Generic[T]):
    """An attribute of `Services` that is looked up in what is in force, each time.

    Args:
        read: takes it from there.
    """

    __slots__ = ("_read",)

    def __init__(self, read: Callable[[Furnishing], T]) -> None:
        self._read = read

    def __get__(self, services: Services, _class: type[Services]) -> T:
        """Give it as it is now."""
        return self._read(services.in_force.current)

    def __set__(self, services: Services, _value: Never) -> None:
        """Refuse: what is in force is replaced as a whole.

        Raises:
            AttributeError: always.
        """
        raise AttributeError("put another Furnishing into `in_force.current` instead")


def utc_only(name: str) -> tzinfo | None:
    """Find the one time zone that needs no tables."""
    return UTC if name == "UTC" else None


@dataclass(frozen=True)
class Services:
    """Handles that actors share; each is itself safe to share on the kernel thread.

    What comes of the settings changes while actors run, so whoever keeps this looks it
    up when it is needed, and keeps no copy longer than one piece of work.
    """

    store: Store
    clock: Clock
    ids: IdSource
    metrics: LineMetrics
    in_force: InForce
    """What comes of the settings, where it stands."""

    guests: GuestList = field(default_factory=GuestList)
    """Whom owners have let in."""

    board: ApprovalBoard = field(default_factory=ApprovalBoard)
    """The calls that wait for somebody's leave, in all conversations."""

    receipt_key: bytes = b""
    """What receipts of tool calls are signed with; empty: none is made."""

    redact: Callable[[str], str] = str
    """Takes the values of secrets out of a text that is to be kept."""

    hooks: HookBook = field(default_factory=HookBook)
    """The operator's own code beside the way of a message."""

    find_zone: Callable[[str], tzinfo | None] = utc_only
    """Gives a time zone by its name; None: there is none."""

    read_checklist: ReadChecklist | None = None
    """Reads what a heartbeat looks after; None: nobody does."""

    acquaintances: Acquaintances = field(default_factory=Acquaintances)
    """Who wrote last, and what is known of them."""

    random_bytes: RandomBytes = SYSTEM_RANDOM
    started_at: float = 0.0
    """When this process began, on the monotonic clock."""

    sure_clock: SureClock = field(init=False)
    """For those who forget what is old: never far ahead of the time that has come."""

    def __post_init__(self) -> None:
        """Make what goes with the clock."""
        object.__setattr__(self, "sure_clock", SureClock(self.clock))

    limits = Now(lambda now: now.limits)
    sessions = Now(lambda now: now.sessions)
    compaction = Now(lambda now: now.compaction)
    buffering = Now(lambda now: now.buffering)
    busy_policies = Now(lambda now: now.busy_policies)
    watchdog = Now(lambda now: now.watchdog)
    zone = Now(lambda now: now.zone)
    audit = Now(lambda now: now.audit)
    accounts = Now(lambda now: now.accounts)
    owners = Now(lambda now: now.owners)
    approvers = Now(lambda now: now.approvers)
    agent_access = Now(lambda now: now.agent_access)
    tool_calls = Now(lambda now: now.tool_calls)
    collaboration = Now(lambda now: now.collaboration)
    approvals = Now(lambda now: now.approvals)
    permissions = Now(lambda now: now.permissions)
    presence = Now(lambda now: now.presence)
    scheduler = Now(lambda now: now.scheduler)
    standing = Now(lambda now: now.standing)
    announcer = Now(lambda now: now.announcer)
    enclosures = Now(lambda now: now.enclosures)
    media = Now(lambda now: now.media)
    memory = Now(lambda now: now.memory)
    remember = Now(lambda now: now.remember)
    notebook = Now(lambda now: now.notebook)
    people = Now(lambda now: now.people)
    commands = Now(lambda now: now.commands)
    agent_models = Now(lambda now: now.agent_models)
    voices = Now(lambda now: now.voices)

    @property
    def terms(self) -> Terms:
        """Say whose word decides about a tool call."""
        asked = self.approvals
        return Terms(self.approvers, asked.asker_may_approve, asked.plain_words_after)

    @property
    def keep(self) -> Keep:
        """Say what the audit keeps."""
        return Keep(self.redact, self.audit.texts)

    def speak(self, person: Person | None) -> Translate:
        """Choose what the runtime says to somebody, by their language."""
        return self.voices.speak(person.language if person is not None else "")

    def say(self, inbound: Inbound) -> Translate:
        """Choose what the runtime says to whoever a message goes back to."""
        return self.speak(self.acquaintances.find(account_of(inbound)))

    def retell(self, inbound: Inbound) -> Translate:
        """Choose how sentences are told anew to whoever a message goes back to."""
        person = self.acquaintances.find(account_of(inbound))
        return self.voices.retell(person.language if person is not None else "")

    def account(self, connector: str) -> Account:
        """Tell what is known of a connector; one that is gone has no abilities."""
        return self.accounts.get(connector, UNKNOWN_ACCOUNT)
