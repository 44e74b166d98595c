"""Nodes that share work: has a running company do what its node has leases for.

A part, which is 1/256 of all chats of shared connectors, begins with a look at its open
rows, as a process does at its start. It is given to another node in a moment in which
nothing of it is under way. A connector with a lease of its own is started, and is given
away once it has said all, whoever works on its chats; what is not shared is given away
once it is at rest, with its connectors. Doors stay open until then, at most for
`limits.drain_timeout`: what comes is answered here or by the next owner. When another
node took over, there is nothing to do here: then the whole company in this process is
killed (`nodes.py`). A node that leaves, or that an operator drains, gives away by the
same rule; who leaves gives what is left when `limits.drain_timeout` is over, too.
"""

from __future__ import annotations

import contextlib
from collections import defaultdict
from collections.abc import Awaitable, Callable, Collection, Mapping

import trio

from actors import names
from actors.journal.unsettled import read_among, read_keys
from actors.messages.inbound import Inbound
from actors.messages.keys import SessionKey, chat_partition, parse_key
from actors.operations.keeper import CheckStore
from actors.outbound.hints import take_hint
from actors.protocol import DrainOutbox, RouteArrived, RouteUnanswered
from actors.schedule.messages import AppointmentsChanged
from actors.webhooks.messages import SendNotices
from connectors.app.app import App
from connectors.app.forwarding import ConnectionForwarder
from connectors.app.nodes import CompanyNode, CompanySeat, has_parts, is_shared
from connectors.app.reload.reload import Reloading
from connectors.app.shutdown import can_read, is_under_way
from runtime.actor.ref import UNANSWERED
from runtime.errors import KernelError
from runtime.nodes.hints import Shown
from runtime.nodes.rows import ACCOUNT, COMPANY, PART
from runtime.store.rows import Commit
from runtime.supervision.keyed import StopKey
from runtime.telemetry.logs import EventLog

LOG = EventLog("nodes")

PAGE = 1000
LOOKED_WITHIN = 10.0
"""Seconds that the keeper is given to look at what others wrote."""

# Chosen: less than people notice, and no look for each of many commits.
LOOKS_APART = 0.1
"""Seconds between two looks at what others wrote, or at what is to be given away."""

LOOKS_GROWTH = 1.25
"""By how much each pause between two looks at what stays busy exceeds the last one."""

# Chosen: long beside the giving away of a part, so that no try begins meanwhile.
SOON = 5.0
"""Seconds until a later try of a message for which a leaving node keeps its part."""

# Chosen: their conversations end within a fraction of a second, however many there are.
PARTS_AT_ONCE = 16
"""Parts that are given away together."""

# Chosen: most answers do not take longer, and most people do not notice.
CLOSED_FOR = 1.0
"""Seconds for which a part that never rests begins nothing, the first time."""

CLOSED_LOOKS_APART = 0.02
"""Seconds between two looks at whether such a part is at rest: people wait."""

STOPPED_WITHIN = 10.0
"""Seconds that a conversation is given to end that goes on at another node."""


class Looks:
    """When one loop looks again whether there is something to take or to give.

    What stays busy, with a turn of an hour perhaps, is looked at ever less often.
    """

    def __init__(self, node: CompanyNode) -> None:
        self._node = node
        self._pause = LOOKS_APART
        self._giving: Collection[object] = ()

    async def wait(self, giving: Collection[object]) -> None:
        """Wait until there may be something to take, or of `giving` to give."""
        longest = self._node.look_every
        if giving != self._giving:
            self._pause, self._giving = LOOKS_APART, giving
        pause = min(self._pause, longest) if giving else longest
        await self._node.wait_changed(pause)
        self._pause = pause * LOOKS_GROWTH


class Overtaken:
    """Which parts would never be at rest when one looks: people write at once again."""

    def __init__(self) -> None:
        self._open: Mapping[int, set[str]] = {}

        self.patience = 0.0
        """Seconds for which these are to begin nothing; longer each time."""

    def look(self, busy: Mapping[int, set[str]]) -> frozenset[int]:
        """Name those that have come to rest since the last look, and are busy again.

        One long turn does not count: for its sake nobody else has to wait.

        Args:
            busy: by part, the ids of what is under way.
        """
        before, self._open = self._open, busy
        found = (x for x, ids in busy.items() if before.get(x, ids).isdisjoint(ids))
        if parts := frozenset(found):
            self.patience = max(CLOSED_FOR, 2 * self.patience)
        elif not busy:
            self.patience = 0.0
        return parts


class SharedWork:
    """What a node does of the company's work, as its leases come and go.

    Args:
        forwarder: passes connections on to what is not shared, while that is elsewhere.
    """

    def __init__(
        self,
        app: App,
        seat: CompanySeat,
        reloading: Reloading,
        forwarder: ConnectionForwarder,
    ) -> None:
        self._app = app
        self._seat = seat
        self._node = seat.node
        self._duties = seat.duties
        self._reloading = reloading
        self._forwarder = forwarder
        self._is_leaving = False
        self._going_since: dict[str, float] = {}
        """By lease of connectors that another node is to have, since when; seconds."""

        self.scope = trio.CancelScope()
        """Cancelled when the company is about to end."""

    async def run(
        self, announce: Callable[[App, Collection[str]], Awaitable[object]]
    ) -> None:
        """Follow the leases until `scope` is cancelled.

        Args:
            announce: says where connectors listen that have started.

        Raises:
            KernelError: what is not shared cannot begin here.
            OSError: an address cannot be listened on.
        """
        self._node.on_shown = self._take_shown
        with self.scope:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(self._follow_parts)
                nursery.start_soon(self._follow_accounts)
                nursery.start_soon(self._follow_hints)
                while True:
                    await self._pass_on_rest()
                    before = set(self._app.transports)
                    await self._begin_rest()
                    started = self._app.transports.keys() - before
                    nursery.start_soon(announce, self._app, started)
                    await self._node.wait_wanted()
                    await self._give_rest()

    # --- leaving ----------------------------------------------------------------------

    async def wait_drained(self) -> None:
        """Wait until this node has nothing, or nobody is there to have it."""
        while self._node.has_to_give:
            await self._node.wait_changed(self._node.look_every)

    async def leave(self) -> None:
        """Give everything away, each lease as soon as it is at rest, until cancelled.

        For what was not at rest while doors were open: it runs beside `App.drain`,
        which has closed them, and after `scope` was cancelled.
        """
        self._is_leaving = True
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._follow_hints)
            nursery.start_soon(self._follow_parts)
            nursery.start_soon(self._follow_accounts)
            while True:
                await self._node.wait_wanted()
                await self._give_rest()

    async def wait_left(self) -> None:
        """Wait until all is given away that others are to have."""
        while self._node.heirs():
            await self._node.wait_changed(self._node.look_every)

    async def _may_give(
        self, lease: str, connectors: Collection[str], *, has_moved: bool = False
    ) -> bool:
        """Whether connectors are at rest, or were waited for long enough."""
        now = self._app.clock.monotonic()
        since = self._going_since.setdefault(lease, now)
        if now - since >= self._reloading.config.limits.drain_timeout:
            return True
        drain = self._app.drain_of(connectors, has_moved=has_moved)
        return not await drain.under_way()

    # --- what is not shared -----------------------------------------------------------

    async def _pass_on_rest(self) -> None:
        """Pass connections on until what is not shared is this node's."""
        app = self._app
        app.sockets = await self._forwarder.stand(
            self._reloading.config,
            self._node.wait_seat,
            beside=app.transports.keys(),
            given=app.sockets,
            has_probes=False,
        )

    async def _begin_rest(self) -> None:
        if self._duties.has_rest and self._seat.runs_rest:
            return
        LOG.info("this node runs the company")
        self._seat.runs_rest = self._duties.has_rest = True
        await self._reloading.renew_connectors()
        self._take_up()
        for webhook in self._app.receivers:
            self._tell(names.notifier(webhook.name), SendNotices())

    async def _give_rest(self) -> None:
        """Give what is not shared away once it is at rest, if it is still wanted."""
        looks = Looks(self._node)
        while COMPANY in self._node.heirs():
            try:
                rest = [x for x in self._app.transports if not self._has_parts(x)]
                if await self._may_give(COMPANY, rest):
                    await self._end_rest()
                    break
            except (KernelError, OSError, *UNANSWERED) as error:
                LOG.warning("the company is not given away yet", why=str(error))
            await looks.wait((COMPANY,))
        self._going_since.pop(COMPANY, None)

    async def _end_rest(self) -> None:
        """Bring what is not shared to its end, and give it away."""
        LOG.info("giving the company to another node")
        self._seat.runs_rest = False
        await self._reloading.renew_connectors()
        self._duties.has_rest = False
        await self._end_conversations(self._is_of_rest)
        await self._flush()
        await self._node.give((COMPANY,))

    def _is_of_rest(self, key: SessionKey) -> bool:
        return not self._has_parts(key.connector)

    # --- connectors with a lease of their own -----------------------------------------

    async def _follow_accounts(self) -> None:
        looks = Looks(self._node)
        while True:
            mine, going = self._node.accounts()
            try:
                new = mine - going - self._seat.accounts
                if new and not self._is_leaving:
                    await self._begin_accounts(new)
                await self._give_accounts(going)
            except (KernelError, OSError, *UNANSWERED) as error:
                LOG.warning("connectors not moved yet", why=str(error))
            await looks.wait(going)

    async def _give_accounts(self, going: frozenset[str]) -> None:
        """Give those away that have said all, one by one: the others go on."""
        names = {f"{ACCOUNT}{name}": name for name in sorted(going)}
        for lease in self._going_since.keys() - names.keys() - {COMPANY}:
            del self._going_since[lease]
        for lease, name in names.items():
            if await self._may_give(lease, [name], has_moved=True):
                await self._end_accounts(frozenset({name}))

    async def _begin_accounts(self, new: frozenset[str]) -> None:
        LOG.info("this node runs connectors", connectors=", ".join(sorted(new)))
        # First: what comes in at once is this node's to answer.
        self._duties.accounts |= new
        self._seat.accounts |= new
        try:
            await self._reloading.renew_connectors()
        except BaseException:  # cancelled, too: it is tried again
            self._seat.accounts -= new
            raise
        self._take_up()

    async def _end_accounts(self, going: frozenset[str]) -> None:
        """End connectors, and give them away."""
        self._seat.accounts -= going
        await self._reloading.renew_connectors()
        self._duties.accounts -= going
        await self._flush()
        await self._node.give([f"{ACCOUNT}{name}" for name in going])

    # --- what other nodes write -------------------------------------------------------

    async def _follow_hints(self) -> None:
        """Have the keeper look at once when another node wrote what concerns this one.

        It looks by itself, too: a hint may get lost.
        """
        while True:
            await self._node.wait_written()
            keeper = self._app.system.find(names.KEEPER)
            if keeper is not None:
                with contextlib.suppress(KernelError, *UNANSWERED):
                    await keeper.ask(CheckStore(), timeout=LOOKED_WITHIN)
            await trio.sleep(LOOKS_APART)

    def _take_shown(self, shown: Shown) -> None:
        """Show what another node works on, or tell what it showed."""
        # What cannot be shown now is lost: the company may just be ending.
        with contextlib.suppress(KernelError, *UNANSWERED):
            take_hint(
                shown.connector,
                shown.kind,
                bytes(shown.body),
                self._app.system.find,
                self._app.company.services,
            )

    # --- parts ------------------------------------------------------------------------

    async def _follow_parts(self) -> None:
        looks, overtaken = Looks(self._node), Overtaken()
        while True:
            mine, going = self._node.parts()
            present = self._duties.parts or frozenset[int]()
            new = mine - going - present
            if new and not self._is_leaving:
                self._duties.parts = present | new
                self._take_up()
            if going:
                try:
                    await self._release(going, overtaken)
                except (KernelError, OSError, *UNANSWERED) as error:
                    LOG.warning("parts not given away yet", why=str(error))
            else:
                overtaken = Overtaken()
            await looks.wait(going)

    async def _release(self, going: frozenset[int], overtaken: Overtaken) -> None:
        """Give those parts away of which nothing is under way, a few at a time.

        A part is silent from then on until its next owner has it, so none waits until
        the conversations of all others have ended. One that is never at rest by chance
        begins nothing for a moment.
        """
        busy = await self._busy(going)
        idle = sorted(going - busy.keys())
        for start in range(0, len(idle), PARTS_AT_ONCE):
            await self._close(frozenset(idle[start : start + PARTS_AT_ONCE]), 0.0)
        if parts := overtaken.look(busy):
            longest = self._reloading.config.limits.drain_timeout
            await self._close(parts, min(overtaken.patience, longest))

    async def _close(self, parts: frozenset[int], within: float) -> None:
        """Begin nothing for parts, and give those away that come to rest.

        Args:
            within: seconds that they are given to finish what is under way.
        """
        duties = self._duties
        parts = frozenset(x for x in parts if not self._node.is_entered(x))
        if not parts:
            return
        # Who comes now waits, until it is known where the part is.
        duties.closed |= parts
        try:
            await self._give_rested(parts, self._app.clock.monotonic() + within)
            # What was handed on for these is not known when they come back.
            self._tell(names.ROUTER, RouteArrived())
        finally:
            duties.closed -= parts
            # What was not given, because it did not rest or the server went away.
            mine, _ = self._node.parts()
            if kept := parts & mine:
                present = duties.parts or frozenset[int]()
                duties.parts = present | kept
                self._take_up()
                if kept - present:
                    # Their conversations were ended, and have forgotten what they had.
                    self._tell(names.ROUTER, RouteUnanswered())

    async def _give_rested(self, parts: frozenset[int], until: float) -> None:
        """Give each of some closed parts away once nothing of it is under way."""
        await self._flush()
        # What is stored from here on is begun by nobody here.
        newest = max(
            (key.number for key in await read_keys(self._app.store)), default=0
        )
        while True:
            gone = parts.difference(await self._busy(parts, newest))
            await self._give_parts(gone)
            mine, going = self._node.parts()
            parts = (parts - gone) & going
            is_over = self._app.clock.monotonic() >= until
            # Who writes in a part that this node has just got must not wait for these.
            if (
                not parts
                or is_over
                or mine - going - (self._duties.parts or frozenset())
            ):
                return
            await self._node.wait_changed(CLOSED_LOOKS_APART)

    async def _give_parts(self, gone: frozenset[int]) -> None:
        if not gone:
            return
        self._duties.parts = (self._duties.parts or frozenset()) - gone
        await self._end_conversations(
            lambda key: (
                self._has_parts(key.connector)
                and chat_partition(key.connector, key.chat) in gone
            )
        )
        await self._flush()
        await self._node.give([f"{PART}{part}" for part in gone])

    async def _busy(
        self, among: frozenset[int], newest: int | None = None
    ) -> dict[int, set[str]]:
        """Find the parts of which something is open, and the ids of what is.

        Of a node that gives all away, what waits for a later try may do so elsewhere.

        Args:
            newest: the number of the last message that counts; None: all do.
        """
        store, config = self._app.store, self._reloading.config
        keys = [
            key
            for key in await read_keys(store)
            if key.part in among and self._has_parts(key.connector)
            if newest is None or key.number <= newest
        ]
        found = [(key.part, key.id) for key in keys]
        if self._node.gives_all:
            open_now = await read_among(store, keys)
            soon, is_put_off = self._app.clock.wall() + SOON, dict[str, bool]()
            found = [
                (row.part, row.id)
                for row in sorted(open_now, key=lambda row: row.number)
                if is_under_way(row, soon, is_put_off) and can_read(row.body, Inbound)
            ]
        after, busy = 0, defaultdict[int, set[str]](set)
        while True:
            rows = await store.undelivered(after=after, limit=PAGE)
            # What a bot is to say waits for the node that has it, wherever that is.
            mine = [row for row in rows if is_shared(config, row.connector)]
            found += [(row.part, row.id) for row in mine if row.part in among]
            if len(rows) < PAGE:
                break
            after = rows[-1].number
        for part, row_id in found:
            busy[part].add(row_id)
        return busy

    # --- both -------------------------------------------------------------------------

    def _has_parts(self, connector: str) -> bool:
        return has_parts(self._reloading.config, connector)

    async def _flush(self) -> None:
        """Wait until all is stored that was handed to the store before."""
        await self._app.store.commit(Commit(at=self._app.clock.wall()))

    async def _end_conversations(self, is_meant: Callable[[SessionKey], bool]) -> None:
        """End conversations that are awake: their memory is old when they come back."""
        for name in [*self._app.system.kernel.names]:
            above, _, rest = name.partition("/sessions/")
            supervisor = f"{above}/sessions"
            if not rest:
                above, _, rest = name.partition("/consultants/")
                supervisor = f"{above}/consultants"
            if not (rest and above.startswith(names.AGENTS)):
                continue
            try:
                is_to_end = is_meant(parse_key(rest))
            except ValueError:
                continue
            found = self._app.system.find(supervisor)
            if is_to_end and found is not None:
                await found.ask(StopKey(rest), timeout=STOPPED_WITHIN)

    def _take_up(self) -> None:
        """Have looked for what an earlier node left."""
        # First: what it had not said is said before anything new in its chats.
        for connector in self._app.transports:
            self._tell(names.connector(connector), DrainOutbox())
        # Nobody has to start first who is to hear it: people wait.
        self._tell(names.ROUTER, RouteArrived())
        self._tell(names.SCHEDULER, AppointmentsChanged())

    def _tell(self, name: str, message: object) -> None:
        if (found := self._app.system.find(name)) is not None:
            found.tell(message)
