"""Agents' accounts on a platform: how each is doing, which speaks, and the transport.

Discord, Matrix, QQ, Slack and Telegram have one account for each agent, and each
account listens by itself, so that each is supervised by itself.

A platform names its metrics once, as `METRICS = partial(PlatformCounters, …)`. All its
connectors share them, and each counts by a `PlatformMetrics` of its own.

How far an account has read is kept in rows of the database, not in files: what was read
and how far come from one disk, are backed up together, and never contradict each other
by more than a repeated message.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Generator, Hashable, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Generic, NamedTuple, Never, Protocol, TypeVar

import msgspec
import trio

from actors.commands.registry import COMMANDS
from actors.errors import DeliveryBusyError, DeliveryRefusedError
from actors.messages.deliveries import Delivery, Draft, Edit
from actors.messages.inbound import Inbound
from actors.people.rows import part_of
from actors.rules.text.limits import RecentMap
from actors.transport import Ingress, Listening
from connectors.chat.markup.dialect import LEAVE
from connectors.chat.requests import PlatformError, ShutOutError
from runtime.clock import Clock
from runtime.errors import StoreError
from runtime.store.port import Store
from runtime.store.rows import Commit, Entry, decoded
from runtime.telemetry.logs import EventLog
from runtime.telemetry.metrics import Metrics

MOST_PLACES = 1_000
"""Chats that may wait to be told; for further ones nothing is shown."""

TYPING_TIMEOUT = 5.0
"""Seconds that a request may take; later, it would be wrong."""

Place = TypeVar("Place", bound=Hashable)
"""Where typing is shown, as the platform needs it: a chat, perhaps with a thread."""


Place_contra = TypeVar("Place_contra", contravariant=True)


class TellTyping(Protocol[Place_contra]):
    """Tells a platform where an account is writing; may raise a `PlatformError`."""

    async def __call__(self, place: Place_contra, /, *, is_typing: bool) -> object:
        """Show that the account is writing there, or no longer."""
        ...


class BackgroundTyping(Generic[Place]):
    """Tells a platform that one account is writing; the newest state counts."""

    def __init__(
        self,
        tell: TellTyping[Place],
        log: EventLog,
        account: str,
    ) -> None:
        self._tell = tell
        self._log = log
        self._account = account
        self._wanted: dict[Place, bool] = {}
        self._shown: RecentMap[Place, None] = RecentMap(MOST_PLACES)
        self._news = trio.Event()

    def show(self, place: Place, *, is_over: bool = False) -> None:
        """Have it shown that the account is writing, or no longer, if it was."""
        is_known = place in self._wanted or (is_over and place in self._shown)
        if is_known or (not is_over and len(self._wanted) < MOST_PLACES):
            self._wanted[place] = not is_over
            self._news.set()

    async def run(self) -> None:
        """Tell the platform until cancelled."""
        while True:
            await self._news.wait()
            self._news = trio.Event()
            while self._wanted:
                place = next(iter(self._wanted))
                await self._carry_out(place, is_typing=self._wanted.pop(place))

    async def _carry_out(self, place: Place, *, is_typing: bool) -> None:
        if is_typing:
            self._shown[place] = None  # the oldest has ended by itself
        else:
            self._shown.pop(place, None)
        try:
            await self._tell(place, is_typing=is_typing)
        except PlatformError as error:
            # It ends by itself, and nobody waits for it.
            self._log.info("typing not shown", account=self._account, why=str(error))


SOON = 1.0
"""Seconds until an account that is starting is asked again."""

# Chosen as for models: a platform that refuses a good token once is asked again soon; a
# wrong token costs a request in an hour.
LET_IN_LADDER = (15.0, 60.0, 300.0, 900.0, 3600.0)
"""Seconds until an account that is not let in tries again, each time it happens again
before it has been heard."""


class AgentAccount:
    """The account of one agent on a platform, listening or not."""

    kind = "account"
    """What people call an account there: a bot, an app."""

    def __init__(self, agent: str, platform: str) -> None:
        self.agent = agent
        self.platform = platform
        self.is_open = False
        """Whether it listens, so that it may speak."""

        self.refused = ""
        """Why it is not let in; empty: nobody said that it is not."""

        self.trouble = f"it has not heard from {platform} yet"
        """Why it hears nothing now; empty: it does."""

    @property
    def label(self) -> str:
        """What the log calls it."""
        return self.agent


class AccountHealth:
    """Tells log, metrics and `/readyz` whether an account hears its platform."""

    def __init__(
        self,
        account: AgentAccount,
        metrics: PlatformMetrics[Never],
        clock: Clock,
        log: EventLog,
    ) -> None:
        self._account = account
        self._metrics = metrics
        self._clock = clock
        self._log = log
        self._was_away = False
        self._refusals = 0
        """How often it was not let in since it was heard last."""

    async def keep_listening(self, listen: Callable[[], Awaitable[object]]) -> None:
        """Listen until cancelled.

        Platforms refuse good tokens, too, for a while; and operators mend what is
        wrong there, such as a bot's rights.
        """
        while True:
            await listen()
            rung = min(self._refusals, len(LET_IN_LADDER) - 1)
            self._refusals += 1
            await trio.sleep(LET_IN_LADDER[rung])

    @contextmanager
    def listening(self) -> Generator[None]:
        """Mark the account as heard by nobody when the block ends."""
        account = self._account
        account.refused = ""
        try:
            yield
        finally:
            account.is_open = False
            account.trouble = account.refused or "nobody listens to it"
            self._metrics.show(account.agent, is_up=False)

    def heard(self) -> bool:
        """Note that the account hears its platform.

        Returns:
            Whether it did not, a moment ago.
        """
        account = self._account
        self._refusals = 0
        was_away, self._was_away = self._was_away, False
        if account.trouble:
            event = f"{account.kind} hears {account.platform}"
            self._log.info(event, account=account.label)
        account.trouble = ""
        self._metrics.heard(account.agent, self._clock.wall())
        self._metrics.show(account.agent, is_up=True)
        return was_away

    def note(self, error: PlatformError) -> None:
        """Note trouble; the log has a line for the first of a row."""
        account = self._account
        if not self._was_away:
            event = f"{account.platform} is away"
            self._log.warning(event, account=account.label, why=str(error))
        self.lost(str(error))

    def lost(self, why: str) -> None:
        """Note that the account hears nothing now."""
        self._was_away = True
        self._account.trouble = why
        self._metrics.show(self._account.agent, is_up=False)

    def shut_out(self, error: ShutOutError, connector: str, cure: str) -> None:
        """Note that the account is not let in, and tell its operator what to do.

        Args:
            cure: what its operator has to do; `{place}` stands for the settings key.
        """
        account = self._account
        account.refused = account.trouble = str(error)
        place = f"connectors.{connector}.accounts.{account.agent}"
        self._log.error(
            f"{account.kind} not let in; the others go on, and it tries again",
            account=account.label,
            why=str(error),
            what_to_do=cure.format(place=place),
        )


Account = TypeVar("Account", bound=AgentAccount)
Listener = TypeVar("Listener", bound="Listening")


def ready_accounts(accounts: Mapping[str, Account], agent: str) -> list[Account]:
    """Return the accounts that listen: an agent's own first, then as in the settings.

    That order is always the same, so that a repeated message is known.

    Args:
        accounts: by agent, in the order of the settings.
        agent: who speaks; empty: the runtime itself.

    Raises:
        DeliveryBusyError: none listens now, or the agent's own is starting.
    """
    kind = next((each.kind for each in accounts.values()), AgentAccount.kind)
    ready = [each for each in accounts.values() if each.is_open]
    if not ready:
        raise DeliveryBusyError(f"no {kind} listens now", retry_after=SOON)
    own = accounts.get(agent)
    if own is None:
        return ready
    if own.is_open:
        return [own, *(each for each in ready if each is not own)]
    if not own.refused:
        raise DeliveryBusyError(f"{agent}'s {kind} is starting", retry_after=SOON)
    return ready


WINDOW_LOOK = 30.0
"""Seconds between looks whether somebody has written again: then they may be answered.
Chosen: as a courier asks anyway; no platform is asked for it."""


def window_closed(
    delivery: Delivery, why: str, log: EventLog | None, *, is_kept: bool
) -> DeliveryBusyError | DeliveryRefusedError:
    """Say that a platform takes no words now, as nobody has written lately.

    Args:
        log: where the operator is told; None: they have been told of this delivery.
        is_kept: whether it waits for somebody to write (`outside_window = "keep"`).
    """
    if log is not None:
        log.warning(
            "not said yet" if is_kept else "not said",
            delivery=delivery.id,
            correlation_id=delivery.correlation_id,
            chat=delivery.address.chat,
            why=why,
            what_then="it is said should somebody write within a day"
            if is_kept
            else "callboard queue retry, once somebody has written",
        )
    if is_kept:
        return DeliveryBusyError(why, retry_after=WINDOW_LOOK)
    return DeliveryRefusedError(why)


def prefixed(said: Delivery | Edit, owner: str, shown: Callable[[str], str]) -> str:
    """Say who speaks, where another agent's account says it."""
    text, agent = said.text, said.agent
    return text if agent in {"", owner} else f"{shown(agent)}: {text}"


# Why not `/link` in a sentence: its code is for another platform.
KNOWN = "|".join(sorted(COMMANDS.keys() - {"link"}))
COMMAND = re.compile(
    rf"^/(?=[a-z][a-z0-9_]*(?![a-z0-9_/.-]))|(?<![^\s`(])/(?=(?:{KNOWN})(?![a-z0-9_/-]))",
    re.MULTILINE,
)


def typeable(said: Delivery, words: str, before: str) -> str:
    """Write the commands in a notice so that people can type them.

    Some clients keep what begins with a slash for themselves. What a model wrote of
    the call that a question is about stays as it is.

    Args:
        before: what is typed before a command's word, instead of a slash.
    """
    if said.kind != "notice":
        return words
    asked = LEAVE.search(words)
    begin = asked.start() if asked else 0
    return words[:begin] + COMMAND.sub(lambda _: before, words[begin:])


class PlatformTransport:
    """The methods of the transport port that are the same on every platform."""

    def __init__(self, log: EventLog) -> None:
        self._log = log

    async def look_up(self, delivery: Delivery) -> str | None:
        """Refuse: this platform cannot be asked, or need not be; see the port.

        Raises:
            DeliveryBusyError: always; `abilities` says that it is not to be asked.
        """
        await trio.lowlevel.checkpoint()
        raise DeliveryBusyError(f"{delivery.id} cannot be looked up")

    def show_draft(self, draft: Draft) -> None:
        """Do nothing: drafts are shown by edits, if at all; see `presence`."""

    async def settle(self, inbound: Inbound, reason: str) -> None:
        """Do nothing: a message told whoever waited for an answer."""
        await trio.lowlevel.checkpoint()
        name = inbound.correlation_id
        self._log.debug("settled", correlation_id=name, reason=reason)


class AccountsTransport(PlatformTransport, Generic[Account, Listener]):
    """A transport with an account, and a listener, for each agent.

    If several accounts hear a message, one of them submits it. An agent's answers go
    out by its own account, if that is there.
    """

    def __init__(
        self,
        log: EventLog,
        accounts: Mapping[str, Account],
        listeners: Mapping[str, Listener],
    ) -> None:
        super().__init__(log)
        self.accounts = accounts
        self.listeners = listeners

    @property
    def trouble(self) -> str:
        """Why nobody is heard now; empty: one account at least hears the platform."""
        troubles = {agent: each.trouble for agent, each in self.accounts.items()}
        if not all(troubles.values()):
            return ""
        return "; ".join(f"{agent}: {why}" for agent, why in troubles.items())

    async def listen(self, ingress: Ingress) -> None:
        """Follow all accounts until cancelled."""
        async with trio.open_nursery() as nursery:
            for listener in self.listeners.values():
                nursery.start_soon(listener.listen, ingress)


LABELS = ("connector", "account")

Outcome_contra = TypeVar("Outcome_contra", bound=str, contravariant=True)
"""The outcomes that a platform counts its events by."""


class Family(NamedTuple):
    """One metric, as it is registered."""

    name: str
    text: str
    label: str = ""
    """A label beside those of the connector and the account; empty: none."""

    @property
    def labels(self) -> tuple[str, ...]:
        """Return all labels."""
        return (*LABELS, self.label) if self.label else LABELS


class PlatformCounters:
    """The metrics that all connectors of one platform share.

    Args:
        heard: shows when an account last heard from the platform, in Unix seconds.
        up: shows 1 while an account hears the platform.
    """

    def __init__(
        self,
        metrics: Metrics,
        *,
        events: Family,
        heard: Family,
        up: Family,
        **further: Family,
    ) -> None:
        self.heard = metrics.gauge(heard.name, heard.text, heard.labels)
        self.up = metrics.gauge(up.name, up.text, up.labels)
        self.counters = {
            key: metrics.counter(each.name, each.text, each.labels)
            for key, each in {"events": events, **further}.items()
        }


class PlatformMetrics(Generic[Outcome_contra]):
    """Counts for the accounts of one connector."""

    def __init__(self, counters: PlatformCounters, connector: str) -> None:
        self._counters = counters
        self._connector = connector

    def event(self, account: str, outcome: Outcome_contra) -> None:
        """Count something that came."""
        self.count("events", account, outcome)

    def heard(self, account: str, at: float) -> None:
        """Note that an account heard from the platform (Unix seconds)."""
        self._counters.heard.set(at, self._connector, account)

    def show(self, account: str, *, is_up: bool) -> None:
        """Show whether an account hears the platform."""
        self._counters.up.set(float(is_up), self._connector, account)

    def gap(self, account: str, *, is_filled: bool) -> None:
        """Count a gap in a channel's messages."""
        self.count("gaps", account, "filled" if is_filled else "open")

    def count(self, what: str, account: str, *labels: str) -> None:
        """Count once in one of the platform's counters."""
        self._counters.counters[what].add(1, self._connector, account, *labels)


T = TypeVar("T")
Value = TypeVar("Value", bound=msgspec.Struct)

AGAIN_AFTER = 1.0
"""Seconds until a disk that fails is asked again."""


@dataclass(frozen=True)
class ConnectorShelf:
    """The store as one connector uses it: all its rows carry its name."""

    store: Store
    clock: Clock
    connector: str
    """Its name: each has its own rows."""


class KeptRows(Generic[Value]):
    """A table of values by name. Every method raises `StoreError` if the disk fails."""

    def __init__(self, shelf: ConnectorShelf, kind: str, shape: type[Value]) -> None:
        self._shelf = shelf
        self._kind = kind
        self._shape = shape

    async def read(self, name: object) -> Value | None:
        """Return a value; None: there is none, or it cannot be read."""
        row = await self._shelf.store.entry(self._kind, self._id(name))
        return None if row is None else decoded(row, self._shape)

    async def write(self, name: object, value: Value, *, may_wait: bool) -> None:
        """Keep a value.

        Args:
            may_wait: whether it may be lost with the machine: then an older one is
                there again.
        """
        shelf, row = self._shelf, self._id(name)
        entry = Entry(
            kind=self._kind,
            id=row,
            owner=shelf.connector,
            part=part_of(row),
            body=msgspec.json.encode(value),
        )
        commit = Commit(at=shelf.clock.wall(), entries=(entry,), may_wait=may_wait)
        await shelf.store.commit(commit)

    def _id(self, name: object) -> str:
        return f"{self._shelf.connector}/{name}"


class Bookmarks(Protocol):
    """Remembers where an account continues reading after a restart."""

    async def read(self, user: str) -> str:
        """Return the account's token; empty if it has none."""
        ...

    async def write(self, user: str, token: str) -> None:
        """Keep the account's token; call it only after all before it was accepted."""
        ...


class BookmarkRow(msgspec.Struct, frozen=True):
    """The body of a row: one reading position."""

    token: str


async def read_bookmark(read: Callable[[], Awaitable[T]], log: EventLog) -> T:
    """Read a bookmark, again and again while the disk fails."""
    while True:
        try:
            return await read()
        except StoreError as error:
            log.warning("place not read yet", why=str(error))
            await trio.sleep(AGAIN_AFTER)


class StoredBookmarks:
    """Bookmarks in the database; see the port. Both methods raise `StoreError`."""

    def __init__(self, shelf: ConnectorShelf, kind: str) -> None:
        self._places = KeptRows(shelf, kind, BookmarkRow)

    async def read(self, user: str) -> str:
        """Return the account's token; one that cannot be read is none."""
        place = await self._places.read(user)
        return "" if place is None else place.token

    async def write(self, user: str, token: str) -> None:
        """Keep the account's token."""
        # Why it may wait: a token that is a little old only repeats messages, which
        # the database knows.
        await self._places.write(user, BookmarkRow(token), may_wait=True)


class ReadMarks:
    """Messages being submitted, and the id up to which all were.

    Args:
        place: an id; all up to it was accepted.
    """

    def __init__(self, place: int) -> None:
        self._newest = place
        self._under_way: dict[int, int] = {}
        self._held_at: int | None = None

    @property
    def place(self) -> int:
        """The id up to which all was accepted; it never goes back."""
        return self._free_place if self._held_at is None else self._held_at

    @property
    def _free_place(self) -> int:
        if not self._under_way:
            return self._newest
        return min(self._newest, min(self._under_way) - 1)

    @property
    def is_held(self) -> bool:
        """Whether the place stays, whatever is accepted."""
        return self._held_at is not None

    def begin(self, message: int) -> None:
        """Note that a message came; call it in the order in which they came."""
        if message > self.place:
            self._under_way[message] = self._under_way.get(message, 0) + 1

    def end(self, message: int) -> None:
        """Note that a message was accepted, or will never be."""
        left = self._under_way.pop(message, 0) - 1
        if left > 0:
            self._under_way[message] = left
        elif left == 0:
            self._newest = max(self._newest, message)

    def hold(self) -> None:
        """Let the place stay: something behind it may be missing."""
        if self._held_at is None:
            self._held_at = self._free_place

    def release(self) -> None:
        """Let the place go on: nothing is missing any more."""
        self._held_at = None
