"""Several processes for one company: which of them does what.

Each is a node: it shows life in the database, and looks at the others. The node that
has the lease `company` does all that is not shared, and writes under that lease. Chats
of connectors of the kinds `http` and `websocket`, and of those that connect to their
platform, are shared: each node answers in those whose part it has the lease of
(`sharing.py`), and passes requests for others on. A connector that connects to its
platform has a lease of its own, too: its node hears and sends in all its chats. What
comes in and is said are rows; what else people see goes as hints. Connections to all
else go to the node that has the company (`forwarding.py`). When a node shows no
life for `ttl` seconds, others take its leases over; when it ends in order, it gives
them away.

The database makes two owners impossible (`runtime/postgresql/threads.py`). What is here
only decides how soon the company moves, and where connections go.
"""

from __future__ import annotations

import contextlib
import hashlib
import hmac
import os
import socket
import time
from collections import Counter
from collections.abc import (
    AsyncGenerator,
    Callable,
    Generator,
    Iterable,
    Iterator,
    Sequence,
)
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import cast

import msgspec
import trio

from actors.errors import MisdirectedError
from actors.journal.notices import DUE
from actors.messages.keys import chat_partition, parse_key
from actors.operations.keeper import WATCHED
from actors.outbound.hints import encode_hint
from actors.services import Duties
from connectors.admin.nodes import NodeCircle, NodeWay, ways_to
from connectors.admin.settings import Flat, Way, flat
from connectors.chat.platforms import platform_of
from connectors.config.app import ADMIN_PORT, AppConfig, HttpConfig, address_of
from connectors.files import receipt_key
from connectors.web.peers import NodePlace
from runtime import __version__
from runtime.config.messages import dotted
from runtime.errors import FencedError, SettingsError, StoreError, StoreUnavailableError
from runtime.nodes.hints import LEASES, Hint, RowsWritten, Shown
from runtime.nodes.membership import Membership, MembershipPlan
from runtime.nodes.rows import ACCOUNT, COMPANY, PART, Fence, LeaseRow
from runtime.postgresql.migrations import FORMATS
from runtime.postgresql.nodes import KnownNode, NodeCard, NodeDesk, NodesLook
from runtime.store.rows import Append, Commit, Snapshot
from runtime.telemetry.logs import EventLog

LOG = EventLog("nodes")

OWN = ("nodes.name", "nodes.address", "store.path", "store.dsn")
"""Settings that may differ from node to node."""

OWN_TABLES = ("admin.", "log.")
OWN_OF_CONNECTORS = (".host", ".port")

CUT_OFF = "this node cannot reach the database"
"""Told to clients: not where the database is."""

GIVEN = "the company was given to another node"
DRAINED = "this node gives all to others, and takes nothing"
TAKES_AGAIN = "this node takes work again"

AS_IS = "="
"""How the mark of a setting begins that nobody has written otherwise."""

IS_THERE = "+"
"""In place of a mark: a table of this name."""

MOST_NAMED = 20
"""Settings that are named of those that differ."""


def comparable(config: AppConfig, key: bytes) -> Flat:
    """Give what must agree on all nodes: by setting, a mark of its value.

    The marks of those that are as they are where nothing is written begin with `AS_IS`.
    Each table that has a name of its own is there, too.
    """
    shared = {
        name: each
        for name, each in config.connectors.items()
        if platform_of(each).is_server  # what a terminal talks to is this machine's
    }
    config = msgspec.structs.replace(config, connectors=shared)
    pieces = {dotted(way): is_default for way, is_default in pieces_of(config)}
    found = {name: IS_THERE for name, is_default in pieces.items() if not is_default}
    for name, value in flat(config, key).items():
        mark = hashlib.blake2b(value.encode(), digest_size=8, key=key).hexdigest()
        ends = [at for at, letter in enumerate(f"{name}.") if letter in ".["]
        is_default = any(pieces.get(name[:at]) for at in ends)
        found[name] = f"{AS_IS}{mark}" if is_default else mark
    return {name: mark for name, mark in found.items() if not is_own(name)}


def pieces_of(value: object, way: Way = ()) -> Iterator[tuple[Way, bool]]:
    """Give what settings consist of, and whether it is as if nothing were written.

    That is so of what has its default, be it a whole table. Of several tables of one
    kind, each is written.
    """
    if isinstance(value, msgspec.Struct):
        for each in msgspec.structs.fields(value):
            child, at = getattr(value, each.name), (*way, each.encode_name)
            if child == default_of(each):
                yield at, True
            else:
                yield from pieces_of(child, at)
        return
    several: Iterable[tuple[str | int, object]] = ()
    if isinstance(value, dict):
        several = cast("dict[str, object]", value).items()
    elif isinstance(value, tuple):
        several = enumerate(cast("tuple[object, ...]", value))
    for key, child in several:
        if isinstance(child, msgspec.Struct):
            yield (*way, key), False
            yield from pieces_of(child, (*way, key))


def default_of(setting: msgspec.structs.FieldInfo) -> object:
    """Give what a setting is where nothing is written; `NODEFAULT`: it must be."""
    make = setting.default_factory
    return setting.default if make is msgspec.NODEFAULT else make()


def is_own(name: str) -> bool:
    """Whether a setting may differ from node to node."""
    if name in OWN or name.startswith(OWN_TABLES):
        return True
    return name.startswith("connectors.") and name.endswith(OWN_OF_CONNECTORS)


def differing(mine: Flat, theirs: Flat) -> list[str]:
    """Name the settings that somebody has written otherwise.

    Not those that one of two releases does not know, or has another default for, as
    long as nobody sets them.
    """
    names = mine.keys() | theirs.keys()
    pairs = {x: (mine.get(x, AS_IS), theirs.get(x, AS_IS)) for x in names}
    return sorted(
        name
        for name, (one, other) in pairs.items()
        if one.removeprefix(AS_IS) != other.removeprefix(AS_IS)
        and not (one.startswith(AS_IS) and other.startswith(AS_IS))
    )


def is_shared(config: AppConfig, connector: str) -> bool:
    """Whether nodes share the chats of a connector."""
    found = config.connectors.get(connector)
    return found is not None and platform_of(found).shares_chats


def is_leased(config: AppConfig, connector: str) -> bool:
    """Whether a connector has a lease of its own, and one node at a time runs it."""
    found = config.connectors.get(connector)
    return found is not None and platform_of(found).only_calls(found)


def has_parts(config: AppConfig, connector: str) -> bool:
    """Whether each node works on the chats of a connector whose part it has."""
    return is_shared(config, connector) or is_leased(config, connector)


def lease_of(config: AppConfig, connector: str, part: int) -> str:
    """Name the lease of a chat: who has it hears, answers and settles it."""
    return f"{PART}{part}" if has_parts(config, connector) else COMPANY


def lease_to_send(config: AppConfig, connector: str, part: int) -> str:
    """Name the lease that a node needs to deliver answers to a chat."""
    if is_leased(config, connector):
        return f"{ACCOUNT}{connector}"
    return lease_of(config, connector, part)


def account_leases(config: AppConfig) -> list[str]:
    """Name the leases of all connectors that have one of their own."""
    return [f"{ACCOUNT}{name}" for name in config.connectors if is_leased(config, name)]


def is_sharing(config: AppConfig) -> bool:
    """Whether nodes share work by these settings."""
    return any(has_parts(config, name) for name in config.connectors)


def rest_of(config: AppConfig) -> list[str]:
    """Name the connectors that only the node has that runs the company."""
    served = [x for x, each in config.connectors.items() if platform_of(each).is_server]
    if not is_sharing(config):
        return served
    return [x for x in served if not (is_shared(config, x) or is_leased(config, x))]


def channel_of(key: bytes) -> str:
    """Name the channel of hints, which hold words of agents, and what nodes act on.

    Other roles of the server, which may use any channel, do not know it.
    """
    return f"callboard-{hmac.new(key, b'hints', hashlib.sha256).hexdigest()[:32]}"


def admin_place(config: AppConfig) -> tuple[str, int] | None:
    """Say where operators are to ask; None: nowhere, or at a port nobody knows."""
    port = ADMIN_PORT if config.admin.port is None else config.admin.port
    return (config.admin.host, port) if config.admin.is_on and port else None


def all_ways(
    config: AppConfig, nodes: Iterable[KnownNode], leases: Sequence[LeaseRow]
) -> tuple[NodeWay, ...]:
    """Say where each node can be asked."""
    servers = [
        name for name, each in config.connectors.items() if isinstance(each, HttpConfig)
    ]
    return ways_to(nodes, leases, servers, rest_of(config))


def doors_of_company(config: AppConfig) -> dict[str, tuple[str, int]]:
    """By connector that listens on this machine, its host and port."""
    found: dict[str, tuple[str, int]] = {}
    for name, connector in config.connectors.items():
        host: object = getattr(connector, "host", None)
        port: object = getattr(connector, "port", None)
        if isinstance(host, str) and isinstance(port, int):
            found[name] = (host, port)
    return found


class CompanyNode:
    """This process among the others.

    Args:
        key: of the database's folder; see `receipt_key`.
        clock: seconds, monotonic.
    """

    def __init__(
        self,
        config: AppConfig,
        desk: NodeDesk,
        key: bytes,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._name = config.nodes.name
        self._ttl = config.nodes.ttl
        self._desk = desk
        self._key = key
        self._now = clock
        self._membership = Membership(self._name, self._ttl)
        self._config = config
        self._rows_written = trio.Event()
        self._leases_moved = trio.Event()
        self.on_shown: Callable[[Shown], object] = lambda _: None
        """Takes what another node has to show in a chat, while a company runs here."""

        self.tell_shown: Callable[[Shown], object] = lambda _: None
        """Tells the other nodes what to show; it may get lost."""

        self.is_sharing = is_sharing(config)
        """Whether this node works beside the one that has the company."""

        # Replaced and never changed, for other threads look at them.
        self._held: dict[str, int] = {}
        self._owners: dict[str, str] = {}
        self._leaving: frozenset[str] = frozenset()
        self._lives: frozenset[tuple[str, int]] = frozenset()
        self._duties: Duties | None = None
        self._entering: Counter[int] = Counter()
        self._changed = trio.Event()
        self._fence: Fence | None = None
        self._lost = ""
        self._heirs: dict[str, str] = {}
        self._owner = ""
        self._said: tuple[NodeCard, bytes] | None = None
        """What the others can read of this node: its card and its settings."""

        self._known: dict[str, KnownNode] = {}
        self._beats: dict[str, int] = {}
        self._is_compared = False
        self._trouble = "it has not joined yet"
        self._is_cut_off = False
        self._one_by_one = trio.Lock()
        self._seen: NodesLook | None = None
        self._is_moving = False  # whether the company is about to be given away
        self._has_begun = False

    # --- what others ask --------------------------------------------------------------

    @property
    def name(self) -> str:
        """Its name among the nodes."""
        return self._name

    @property
    def channel(self) -> str:
        """The channel by which nodes of this company hear hints of each other."""
        return channel_of(self._key)

    @property
    def ttl(self) -> float:
        """Seconds after which a node that shows no life is taken over from."""
        return self._ttl

    @property
    def look_every(self) -> float:
        """Seconds between two looks at the others."""
        return self._membership.look_every

    @property
    def gives_all(self) -> bool:
        """Whether it gives all away: it leaves, or an operator drains it."""
        return self._membership.gives_all

    @property
    def is_seated(self) -> bool:
        """Whether this node has the company, or may."""
        return self._fence is not None and COMPANY in self._held

    @property
    def may_work(self) -> bool:
        """Whether it may work: for its parts, or as the one that has the company."""
        return self._fence is not None

    def may_write(self, fence: Fence) -> bool:
        """Whether it has the company still, as it had when it was given this."""
        return self._fence == fence

    def trouble(self) -> str:
        """Say why this node may not be able to go on; empty: it may."""
        if self._membership.may_begin(self._now()):
            return ""
        return f"node {self._name} {self._trouble or 'shows no life in the database'}"

    async def wait_seat(self) -> None:
        """Wait until this node is to run the company."""
        while not self.is_seated:
            await self._changed.wait()

    async def wait_turn(self) -> Fence:
        """Wait until this node may work; gives what it writes under."""
        while self._fence is None:
            await self._changed.wait()
        self._lost = ""
        return self._fence

    async def wait_changed(self, within: float) -> None:
        """Wait until leases may have changed hands, or that many seconds."""
        with trio.move_on_after(within):
            await self._changed.wait()

    async def wait_lost(self) -> None:
        """Wait until this node may not run the company any longer."""
        while not self._lost:
            await self._changed.wait()

    async def wait_written(self) -> None:
        """Wait until another node tells of rows that it wrote; this may get lost."""
        await self._rows_written.wait()
        self._rows_written = trio.Event()

    def take_hint(self, hint: Hint) -> None:
        """Take note of rows or of leases that another node wrote, or of what to show.

        Who owns what is looked at then at once: people wait for that while leases move.
        """
        if isinstance(hint, RowsWritten):
            is_moved = LEASES in hint.kinds
            (self._leases_moved if is_moved else self._rows_written).set()
            return
        for shown in hint.items:
            self.on_shown(shown)

    @property
    def life(self) -> int | None:
        """The number of this node's life, in which others hear of it; None: none."""
        member = self._membership.member
        return None if member is None else member.incarnation

    async def wait_wanted(self) -> None:
        """Wait until this node is to give the company to another."""
        while COMPANY not in self.heirs():
            await self._changed.wait()

    async def place_of(self, connector: str) -> tuple[str, int]:
        """Wait until it is known where a connector runs; gives host and port.

        Nobody is sent to a node that is about to give the company away.

        Raises:
            StoreUnavailableError: this node cannot know: it is cut off from the
                database.
        """
        while True:
            changed = self._changed
            if self._membership.member is None and self._is_cut_off:
                raise StoreUnavailableError(CUT_OFF)
            doors = doors_of_company(self._config)
            if self.is_seated and connector in doors:
                host, port = doors[connector]
                return reachable(host), port
            card = self._known[self._owner].card if self._owner in self._known else None
            address = "" if card is None or self._is_moving else card.address
            if card is not None and address and connector in card.doors:
                return address, card.doors[connector]
            await changed.wait()

    @property
    def owner(self) -> str:
        """The node that runs the company, as far as is known; empty: none does."""
        return self._owner

    async def wait_moved(self, since: str) -> None:
        """Wait until another node than `since` runs the company, or none."""
        while since == self._owner:
            await self._changed.wait()

    def standing(self) -> str:
        """Say why a connection cannot be passed on now; empty: it can."""
        if trouble := self.trouble():
            return trouble
        owner = self._known.get(self._owner)
        if owner is None:
            return "no node runs the company"
        if not owner.card.address:
            return f"node {owner.id} has no [nodes] address to pass connections on to"
        return ""

    def ways(self) -> tuple[NodeWay, ...]:
        """Say where each node can be asked, as this one knows them; any thread may."""
        look, known = self._seen, self._known
        if look is None:
            return ()
        nodes: list[KnownNode] = []
        for row in sorted(look.nodes, key=lambda row: row.id):
            card = known[row.id].card if row.id in known else NodeCard()
            is_up = row.state == "up"
            nodes.append(
                KnownNode(row.id, row.state, row.beat, card, is_up, row.is_drained)
            )
        return all_ways(self._config, nodes, look.leases)

    # --- showing life -----------------------------------------------------------------

    async def run(
        self, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED
    ) -> None:
        """Show life, look at the others, take over; never returns.

        Raises:
            SettingsError: the settings are not those of the node that runs the company.
            StoreRefusedError: see `NodeDesk.join`; only before `task_status` is told.
        """
        await self.look()
        task_status.started()
        while True:
            self._leases_moved = trio.Event()
            if not await self._look_again():
                with trio.move_on_after(self._membership.next_look(self._now())):
                    await self._leases_moved.wait()

    async def _look_again(self) -> bool:
        """Look once; a server that is away is told of, and waited for."""
        try:
            return await self.look()
        except FencedError as error:
            self._lose(str(error))
        except StoreError as error:
            if not self._trouble:
                LOG.warning("no sign of life in the database", why=str(error))
            self._trouble = f"cannot reach the database: {error}"
            self._is_cut_off = True
            if self._membership.is_lost(self._now()):
                self._lose("the database could not be reached for too long")
            self._tell()
        return False

    async def look(self) -> bool:
        """Show life and look at the others, once.

        Returns:
            Whether there is something to do at once.
        """
        async with self._one_by_one:
            return await self._look()

    async def _look(self) -> bool:
        membership, desk = self._membership, self._desk
        began = self._now()
        if membership.member is None:
            said, accounts = self._card(), account_leases(self._config)
            joined = await trio.to_thread.run_sync(desk.join, *said, accounts)
            membership.joined(began, joined)
            self._said = said
            self._is_compared = False
        began = self._now()
        look = await trio.to_thread.run_sync(desk.beat)
        membership.renewed(began)
        self._trouble, self._is_cut_off = "", False
        if not self.is_sharing:
            rest = tuple(x for x in look.leases if x.name == COMPANY)
            look = msgspec.structs.replace(look, leases=rest)
        await self._say_begun()
        plan = self._plan(began, look)
        self._seen = look
        if await self._give_up(plan.drain):
            return True
        going = [row for row in look.leases if row.wanted not in {"", row.owner}]
        open_now = self._open_until_given(look)
        self._is_moving = any(
            row.name == COMPANY and row.owner not in open_now for row in going
        )
        if COMPANY in plan.end or (self.is_sharing and plan.end):
            self._lose(f"another node has {plan.end[0]}")
        self._held = dict(membership.held)
        if COMPANY in plan.start:
            if not self.is_sharing:
                self._begin((COMPANY, plan.start[COMPANY]))
            # Why at once: what comes in meanwhile would be passed on to ourselves.
            self._owner = self._name
            self._tell()
        self._heirs = plan.drain
        has_moved = await trio.to_thread.run_sync(desk.carry_out, plan, look)
        await self._note_owner(look)
        if self.is_sharing and self._is_compared and self._owner:
            self._begin()
        self._tell()
        return has_moved

    def _open_until_given(self, look: NodesLook) -> set[str]:
        """Name the nodes that give their work away with open doors.

        None if work is not shared: then the whole company of a drained node ends first.
        """
        drained = {row.id for row in look.nodes if row.is_drained}
        return drained if self.is_sharing else set()

    def _plan(self, at: float, look: NodesLook) -> MembershipPlan:
        membership, begun = self._membership, self._begun(look)
        gave_all = membership.gives_all
        plan = membership.plan(at, look.nodes, look.leases, look.barred, begun)
        if membership.gives_all != gave_all:
            LOG.info(TAKES_AGAIN if gave_all else DRAINED, node=self._name)
        return plan

    def _begun(self, look: NodesLook) -> set[str]:
        """Name the nodes that answer; one alone does if work is not shared."""
        begun = {*look.begun, self._name}
        if not self._has_begun:
            begun.discard(self._name)
        return begun if self.is_sharing else set()

    async def _give_up(self, drain: dict[str, str]) -> bool:
        """Give away at once what this node has not begun with; False: there is none."""
        if self._has_begun or not self.is_sharing:
            return False
        # What is not shared may be starting already: that is kept.
        is_busy = self._duties is not None and self._duties.has_rest
        idle: dict[str, str] = {x: to for x, to in drain.items() if not to}
        if is_busy:
            idle.pop(COMPANY, None)
        if idle:
            await trio.to_thread.run_sync(self._desk.give, idle)
            for name in idle:
                self._membership.gave(name)
        return bool(idle)

    async def _say_begun(self) -> None:
        """Have the others know that this node has begun, if they do not."""
        if self._said is None or self._said[0].has_begun == self._may_be_given_work:
            return
        said, accounts = self._card(), account_leases(self._config)
        await trio.to_thread.run_sync(self._desk.publish, *said, accounts)
        self._said = said

    @property
    def _may_be_given_work(self) -> bool:
        """Whether it answers, and does not end: else the others keep what they have."""
        return self._has_begun and not self._membership.is_leaving

    def note_begun(self) -> None:
        """Take note that the company runs in this process: it may be given work."""
        self._has_begun = True

    def _begin(self, *leases: tuple[str, int]) -> None:
        """Let this node work, if it does not."""
        member = self._membership.member
        if self._fence is None and member is not None:
            self._fence = Fence(self._name, member.fence, 0, leases)

    async def _note_owner(self, look: NodesLook) -> None:
        """Learn where the company runs, and whether its settings are ours."""
        owner = next((x.owner for x in look.leases if x.name == COMPANY), "")
        beats = {row.id: row.beat for row in look.nodes if row.state == "up"}
        is_alive = beats.get(owner, -1) > self._beats.get(owner, beats.get(owner, 0))
        owned = [row for row in look.leases if row.owner in beats]
        self._owners = {row.name: row.owner for row in owned}
        staying = {row.owner for row in owned if row.wanted in {"", row.owner}}
        staying |= self._open_until_given(look)
        self._leaving = frozenset(row.owner for row in owned) - staying
        lives = frozenset((x.id, x.incarnation) for x in look.nodes if x.state == "up")
        is_new = owner != self._owner or owner not in self._known
        if lives != self._lives:
            self._known = await trio.to_thread.run_sync(self._desk.known)
        self._beats, self._lives = beats, lives
        if owner == self._name:
            self._owner, self._is_compared = owner, True
            return
        if owner and (is_new or (is_alive and not self._is_compared)):
            self._known = await trio.to_thread.run_sync(self._desk.known)
        self._owner = owner if owner in beats else ""
        if is_alive and not self._is_compared:
            await self._compare(owner)
            self._is_compared = True

    async def _compare(self, owner: str) -> None:
        """Refuse to stand by with other settings than the company goes by."""
        card, mine = self._card()
        known = self._known.get(owner)
        if known is not None and known.card.mark != card.mark:
            path = receipt_key.path_of(Path(self._config.store.path))
            raise SettingsError(
                f"is another file than node {owner!r} has: nodes share the folder of"
                " [store] path",
                file=str(path),
                hint="mount the same folder on all nodes",
            )
        shares = None if known is None else known.card.shares_work
        if shares is not None and shares != self.is_sharing:
            # Settings that change while a node runs do not change that.
            how = "to share work" if shares else "to share no work"
            raise SettingsError(
                f"node {owner!r}, which runs the company, was started {how}, unlike"
                " this one",
                hint="stop all nodes, then start them",
            )
        theirs = await trio.to_thread.run_sync(self._desk.settings_of, owner)
        names = differing(decoded(mine), decoded(theirs))
        if names:
            more = len(names) - MOST_NAMED
            shown = ", ".join(names[:MOST_NAMED]) + (f" and {more} more" * (more > 0))
            hint = "give all nodes the same settings"
            if known is not None and known.card.release != card.release:
                hint += (
                    f"; what only release {card.release} or {known.card.release} knows"
                    " has to wait until all nodes run one of them"
                )
            raise SettingsError(
                f"node {owner!r}, which runs the company, has other settings: {shown}",
                hint=hint,
            )

    def _card(self) -> tuple[NodeCard, bytes]:
        config = self._config
        card = NodeCard(
            release=__version__,
            formats=FORMATS,
            host=socket.gethostname(),
            process=os.getpid(),
            address=config.nodes.address,
            doors={name: port for name, (_, port) in doors_of_company(config).items()},
            mark=hmac.new(self._key, b"nodes", hashlib.sha256).hexdigest()[:16],
            accounts=tuple(account_leases(config)),
            has_begun=self._may_be_given_work,
            shares_work=self.is_sharing,
            admin=admin_place(config),
        )
        return card, msgspec.json.encode(comparable(config, self._key))

    def _lose(self, why: str) -> None:
        self._membership.ended()
        self._has_begun, self._duties = False, None
        self._heirs, self._held, self._owners = {}, {}, {}
        self._known, self._owner, self._lives = {}, "", frozenset()
        if self._fence is not None:
            LOG.warning("this node works no longer", why=why)
            self._fence, self._lost = None, why
        self._tell()

    def _tell(self) -> None:
        changed, self._changed = self._changed, trio.Event()
        changed.set()

    # --- moving -----------------------------------------------------------------------

    def go_by(self, config: AppConfig) -> None:
        """Go by settings that were read anew, at once."""
        self._config = config

    async def use(self, config: AppConfig) -> None:
        """Go by settings that were read anew; say so to the others.

        Raises:
            StoreError: the others do not know; call it again.
        """
        self.go_by(config)
        said = self._card()
        if said != self._said:
            accounts = account_leases(config)
            async with self._one_by_one:
                await trio.to_thread.run_sync(self._desk.publish, *said, accounts)
                self._said = said

    @property
    def has_to_give(self) -> bool:
        """Whether it is drained, and has something left that others are to have."""
        return self._membership.is_drained and bool(self._held)

    async def be_drained(self) -> None:
        """Give all away while doors are open, as an operator has it done."""
        with contextlib.suppress(StoreError):
            async with self._one_by_one:
                await trio.to_thread.run_sync(self._desk.set_drained, True)  # noqa: FBT003
                await self._look()

    async def prepare_to_leave(self) -> None:
        """Choose who goes on, say so, and take nothing more."""
        self._membership.leave()
        with contextlib.suppress(StoreError):
            async with self._one_by_one:
                # From here on doors close: the others send nobody here any more.
                await trio.to_thread.run_sync(self._desk.set_drained, False)  # noqa: FBT003
                await self._look()
                if self._seen is not None:
                    await trio.to_thread.run_sync(
                        self._desk.announce, self._heirs, self._seen
                    )

    async def wait_seen(self) -> None:
        """Give the others time to see that leases move to them, if any do.

        From then on they send nobody here, and look often.
        """
        if any(self._heirs.values()):
            await trio.sleep(self.look_every)

    async def hand_over(self) -> None:
        """Give the company away, after its last row was written; begin a new life."""
        async with self._one_by_one:
            to = self._heirs.get(COMPANY, "")
            if self._fence is not None:
                with contextlib.suppress(StoreError):
                    await trio.to_thread.run_sync(self._desk.give, self._heirs)
                    if COMPANY in self._heirs:
                        LOG.info(GIVEN, node=to or "any")
            self._fence, self._lost = None, ""
            self._has_begun, self._duties = False, None
            self._membership.ended()
            self._heirs, self._held, self._owners = {}, {}, {}

    async def begin_anew(self, why: str) -> None:
        """Begin a new life, under a new number, as the company could not begin in this.

        Its writer may have raised the number already, when it lost its connection.
        """
        async with self._one_by_one:
            self._lose(why)

    async def give(self, names: Iterable[str]) -> None:
        """Give leases to those who are to have them, and go on with the others.

        Nothing may be under way for them any longer. What is not wanted elsewhere any
        more stays; so does all if the server cannot be reached.
        """
        async with self._one_by_one:
            heirs = {name: self._heirs[name] for name in names if name in self._heirs}
            if not heirs or self._fence is None:
                return
            try:
                await trio.to_thread.run_sync(self._desk.give, heirs)
            except StoreError as error:
                LOG.warning("leases not given away yet", why=str(error))
                return
            for name in heirs:
                self._membership.gave(name)
            self._held = dict(self._membership.held)
            self._owners = self._owners | heirs
            self._heirs = {x: to for x, to in self._heirs.items() if x not in heirs}
            if COMPANY in heirs:
                self._owner = heirs[COMPANY]
                LOG.info(GIVEN, node=heirs[COMPANY])
            self._tell()

    # --- sharing ----------------------------------------------------------------------

    def new_duties(self) -> Duties:
        """Give what this node does from now on: at first nothing, if work is shared."""
        duties = Duties()
        if self.is_sharing:
            duties.parts, duties.has_rest = frozenset(), self.is_seated
            duties.is_shared = lambda name: has_parts(self._config, name)
            duties.is_leased = lambda name: is_leased(self._config, name)
            duties.show = self._show
            self._duties = duties
        return duties

    def _show(self, connector: str, message: object) -> None:
        kind, body = encode_hint(message)
        self.tell_shown(Shown(connector, kind, msgspec.Raw(body)))

    def parts(self) -> tuple[frozenset[int], frozenset[int]]:
        """Give the parts that it has, and those of them that another is to have."""
        mine, going = self._leases(PART)
        return frozenset(map(int, mine)), frozenset(map(int, going))

    def accounts(self) -> tuple[frozenset[str], frozenset[str]]:
        """Give the connectors that it has, and those that another is to have."""
        return self._leases(ACCOUNT)

    def heirs(self) -> dict[str, str]:
        """Give the leases that others are to have, and by whom.

        Who leaves gives early only to those who answer already.
        """
        if not self._membership.is_leaving:
            return self._heirs
        begun = frozenset[str]() if self._seen is None else self._seen.begun
        return {name: to for name, to in self._heirs.items() if to in begun}

    def _leases(self, kind: str) -> tuple[frozenset[str], frozenset[str]]:
        mine = frozenset(x.removeprefix(kind) for x in self._held if x.startswith(kind))
        going = {x.removeprefix(kind) for x in self.heirs() if x.startswith(kind)}
        return mine, mine & going

    def leases_for(self, commit: Commit) -> dict[str, int]:
        """Give the leases that a commit needs, with their epochs; in any thread.

        The events and snapshots of a conversation need that of its chat. What only
        comes in or goes out needs none: it is handed over. What changes rows by their
        ids has the number of this node, which a take-over raises.

        Raises:
            FencedError: this node has not got one of them.
        """
        held, found = self._held, dict[str, int]()
        rows: list[Append | Snapshot] = [*commit.appends, *commit.snapshots]
        for row in rows:
            name = self._lease_of(row.stream, row.part)
            if name and name not in held:
                raise FencedError(f"{name} is another node's: nothing was written")
            if name:
                found[name] = held[name]
        return found

    def _lease_of(self, stream: str, part: int) -> str:
        """Name the lease of a conversation's chat; empty: it is none."""
        try:
            connector = parse_key(stream).connector
        except ValueError:  # the steps of a turn, or a draft
            return ""
        return lease_of(self._config, connector, part)

    def concerns_others(self, commit: Commit) -> set[str]:
        """Name the kinds of rows at which other nodes must look; in any thread."""
        kinds = {row.kind for row in commit.entries}
        kinds |= {row.kind for row in commit.records}
        found = kinds & WATCHED
        if DUE in kinds and COMPANY not in self._held:
            found.add(DUE)
        config, held = self._config, self._held
        hear = {lease_of(config, x.connector, x.part) for x in commit.accepts}
        send = {lease_to_send(config, x.connector, x.part) for x in commit.deliveries}
        if not hear <= held.keys():
            found.add("inbox")
        if not send <= held.keys():
            found.add("outbox")
        for handed in commit.handovers:
            found |= self.concerns_others(handed.rows)
        return found

    def where(self, connector: str, chat: str) -> NodePlace:
        """Say where a chat is worked on; see `connectors.web.peers`."""
        part = chat_partition(connector, chat)
        owner = self._owners.get(f"{PART}{part}", "")
        if owner == self._name:
            duties = self._duties
            is_here = duties is not None and duties.begins(connector, part)
            return NodePlace(owner, is_here=is_here)
        return self._place(owner, connector)

    def where_rest(self, connector: str) -> NodePlace:
        """Say where what is not shared is done; see `connectors.web.peers`."""
        owner = self._owners.get(COMPANY, "")
        duties = self._duties
        if owner == self._name:
            return NodePlace(owner, is_here=duties is not None and duties.has_rest)
        return self._place(owner, connector)

    def seal(self, text: str) -> str:
        """Give what only a node can give for a text; see `connectors.web.peers`."""
        return hmac.new(self._key, f"seal {text}".encode(), hashlib.sha256).hexdigest()

    def _place(self, owner: str, connector: str) -> NodePlace:
        known = self._known.get(owner)
        if known is None or owner in self._leaving or not known.card.address:
            return NodePlace(owner)
        port = known.card.doors.get(connector)
        return (
            NodePlace(owner)
            if port is None
            else NodePlace(owner, known.card.address, port)
        )

    @contextlib.contextmanager
    def entering(
        self, connector: str, chat: str, *, may_move: bool = False
    ) -> Generator[None]:
        """Keep the part of a chat here while a message is being stored.

        Args:
            may_move: whether its sender finds the answer at another node, too.

        Raises:
            MisdirectedError: it is not here, or perhaps not for long.
        """
        part, duties = chat_partition(connector, chat), self._duties
        may = None if duties is None else duties.has if may_move else duties.begins
        if may is None or not may(connector, part):
            raise MisdirectedError("another node answers this; ask again")
        self._entering[part] += 1
        try:
            yield
        finally:
            self._entering[part] -= 1

    def is_entered(self, part: int) -> bool:
        """Whether a message of a part is just being stored."""
        return self._entering[part] > 0

    async def leave(self) -> None:
        """Give everything away, and say that this node has ended."""
        with trio.move_on_after(self._ttl, shield=True):
            await self.hand_over()
            with contextlib.suppress(StoreError):
                await trio.to_thread.run_sync(self._desk.leave)
        self._desk.drop()


@dataclass
class CompanySeat:
    """What a node runs the company by."""

    fence: Fence
    """Under which it writes."""

    sockets: dict[str, socket.socket]
    """By connector, what listens for it already."""

    node: CompanyNode
    """Knows whether it may go on."""

    duties: Duties
    """What of the company's work it does."""

    runs_rest: bool = True
    """Whether connectors are to run that are not shared."""

    accounts: frozenset[str] = frozenset()
    """Connectors with a lease of their own that are to run."""

    def runs(self, config: AppConfig, connector: str) -> bool:
        """Whether a connector is to run here."""
        if not self.node.is_sharing or is_shared(config, connector):
            return True
        if is_leased(config, connector):
            return connector in self.accounts
        return self.runs_rest

    def runs_elsewhere(self, config: AppConfig) -> list[str]:
        """Name connectors with a lease of their own that another node may have."""
        if not self.node.is_sharing:
            return []
        leased = [name for name in config.connectors if is_leased(config, name)]
        return [name for name in leased if name not in self.accounts]

    def circle(self, key: bytes) -> NodeCircle:
        """Give what asks the other nodes; for the key see `receipt_key`."""
        return NodeCircle(self.node.name, key, self.node.ways)

    @property
    def peers(self) -> CompanyNode | None:
        """What knows where other nodes work; None: they only stand by."""
        return self.node if self.node.is_sharing else None


def decoded(settings: bytes) -> Flat:
    """Read what a node said of its settings."""
    try:
        return msgspec.json.decode(settings or b"{}", type=Flat)
    except msgspec.DecodeError:
        return {}


def reachable(host: str) -> str:
    """Give the host by which this machine reaches what listens on `host`."""
    if host in {"", "0.0.0.0"}:  # noqa: S104  compared, not listened on
        return "127.0.0.1"
    return "::1" if host == "::" else host


@asynccontextmanager
async def open_node(config: AppConfig) -> AsyncGenerator[CompanyNode]:
    """Be a node while the block runs; then give everything away.

    Raises:
        SettingsError: see `CompanyNode.run`.
        StoreError: it cannot join.
    """
    from runtime.postgresql.hints import (  # noqa: PLC0415  an extra
        HintListener,
        HintSender,
    )
    from runtime.postgresql.nodes import NodeDesk  # noqa: PLC0415  same
    from runtime.postgresql.server import (  # noqa: PLC0415  same
        PostgresqlOptions,
        PostgresqlServer,
    )

    key = receipt_key.load_or_make(Path(config.store.path))
    options = PostgresqlOptions(channel=channel_of(key))
    server = PostgresqlServer(address_of(config.store), options)
    ttl = config.nodes.ttl
    desk = NodeDesk(server, config.nodes.name, within=ttl / 2)
    node = CompanyNode(config, desk, key)
    async with trio.open_nursery() as nursery:
        try:
            await nursery.start(node.run)
            if node.is_sharing:
                hints = HintListener(server, node.name, node.take_hint)
                sender = HintSender(server, node.name, lambda: node.life)
                node.tell_shown = sender.tell
                nursery.start_soon(hints.run)
                nursery.start_soon(sender.run)
            yield node
        finally:
            nursery.cancel_scope.cancel()
            await node.leave()
