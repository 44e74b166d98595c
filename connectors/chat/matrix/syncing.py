"""Keeps one account in step with its homeserver: the listener of that account."""

from __future__ import annotations

from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING

import msgspec
import trio

from connectors.chat.faults import (
    BusyError,
    LostError,
    PlatformError,
    RefusedError,
    ShutOutError,
)
from connectors.chat.loose_json import Json
from connectors.chat.matrix.arrivals import Arrivals
from connectors.chat.matrix.homeserver import Call, path_of
from connectors.chat.matrix.invites import REASONS, judge
from connectors.chat.matrix.patience import patiently
from connectors.chat.matrix.wire import Batch, read_batch
from connectors.chat.waits import LONGEST_WAIT
from runtime.errors import StoreError
from runtime.logs import EventLog

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Generator

    from actors.transport import Ingress
    from connectors.chat.matrix.account import MatrixAccount
    from connectors.chat.matrix.figures import Outcome
    from connectors.chat.matrix.shared import Shared
    from connectors.chat.matrix.typist import Typist

LOG = EventLog("matrix")

# Chosen: what a busy room says in half a minute. More is fetched by itself.
TIMELINE = 50
"""Most events of one room in one batch."""

ROOMS_AT_ONCE = 8
"""Rooms of one batch that are brought in side by side."""

GRACE = 15.0
"""Seconds that a server may take beyond what it was asked to wait."""

# Chosen: a first batch may list thousands of rooms.
FIRST_TIMEOUT = 120.0

# Chosen: a join over federation may take half a minute. Longer, and a room on a server
# that is gone would keep the account from hearing anybody.
ANSWERED_WITHIN = 60.0
"""Seconds until an invitation that cannot be answered is left; it can be made again."""

BAD_REQUEST = 400

TYPES = [
    "m.room.message",
    "m.room.encrypted",
    "m.room.member",
    "m.room.encryption",
    "m.room.name",
    "m.room.create",
    "m.room.power_levels",
    "m.room.redaction",
    "m.reaction",
]
"""What is asked for; nothing else is sent."""


def filter_of(timeline: int) -> str:
    """Say what is to be told of rooms."""
    nothing: Json = {"types": []}
    found: Json = {
        "presence": nothing,
        "account_data": nothing,
        "room": {
            "account_data": nothing,
            "ephemeral": nothing,
            "state": {"types": TYPES, "lazy_load_members": True},
            "timeline": {"types": TYPES, "limit": timeline},
        },
    }
    return msgspec.json.encode(found).decode()


FIRST, LATER = filter_of(1), filter_of(TIMELINE)


class Syncing:
    """One account's listener.

    Args:
        account: which one.
        typist: shows that it is writing; runs as long as it listens.
        shared: what all accounts share.
    """

    def __init__(self, account: MatrixAccount, typist: Typist, shared: Shared) -> None:
        self._account = account
        self._typist = typist
        self._shared = shared
        self._arrivals = Arrivals(account, shared)
        self._was_away = False

    async def listen(self, ingress: Ingress) -> None:
        """Follow the account until cancelled, or until it is not let in."""
        account = self._account
        with self._opened():
            async with self._shared.homeserver, trio.open_nursery() as nursery:
                nursery.start_soon(self._typist.run)
                try:
                    await self._follow(ingress)
                except ShutOutError as error:
                    account.refused = account.trouble = str(error)
                    self._tell_refused()
                nursery.cancel_scope.cancel()

    @contextmanager
    def _opened(self) -> Generator[None]:
        self._account.refused = ""
        try:
            yield
        finally:
            self._account.is_open = False
            self._account.trouble = self._account.refused or "nobody listens to it"
            self._shared.figures.show(self._account.agent, is_up=False)

    def _tell_refused(self) -> None:
        name, agent = self._shared.connector, self._account.agent
        LOG.error(
            "account not let in; the others go on",
            account=self._account.user,
            why=self._account.refused,
            what_to_do="make a new login for it, put its token where"
            f" connectors.{name}.accounts.{agent} takes it from, and start again",
        )

    async def _follow(self, ingress: Ingress) -> None:
        account = self._account
        await patiently(account.open, self._note)
        account.is_open = True
        since = await self._bookmark()
        await self._show_status()
        LOG.info("account listens", account=account.user, is_new=since == "")
        while True:
            if not since:
                since = await self._begin(ingress)
            try:
                batch = await patiently(partial(self._poll, since), self._note)
            except RefusedError as error:
                LOG.warning("gap: read anew", account=account.user, why=str(error))
                self._shared.figures.gap(account.agent, is_filled=False)
                since = ""
            else:
                await self._take(batch, since, ingress)
                since = await self._keep(batch.next_batch, since)

    async def _begin(self, ingress: Ingress) -> str:
        """Find out where the account stands; what was said before is not answered."""
        batch = await patiently(partial(self._poll, ""), self._note)
        # Why before the invitations: what is said from here on is answered even if
        # this process ends now. An invitation lost by that can be made again.
        since = await self._keep(batch.next_batch, "")
        only_invites = msgspec.structs.replace(batch, joined={}, left=())
        await self._take(only_invites, since, ingress)
        return since

    async def _poll(self, since: str) -> Batch:
        """Ask for news.

        Raises:
            RefusedError: the server does not know this token any more.
        """
        query, hold = self._question(since)
        silence = hold + GRACE if since else FIRST_TIMEOUT
        call = Call(
            method="GET",
            path=path_of("sync"),
            query=query,
            timeout=4 * silence,  # a large batch may go on coming
            silence=silence,
        )
        try:
            batch = read_batch(await self._account.ask(call))
        except RefusedError as error:
            if since and error.status == BAD_REQUEST:
                raise
            # Why not given up: a proxy in trouble refuses, too, and messages wait.
            raise BusyError(f"it does not sync: {error}", LONGEST_WAIT) from error
        except ValueError as error:
            raise LostError(f"its answer makes no sense: {error}") from error
        self._heard()
        return batch

    def _question(self, since: str) -> tuple[dict[str, str], float]:
        """Say what to ask, and for how many seconds the answer may be held."""
        if not since:
            # Why any number: for two minutes Synapse answers the same first question
            # with the same, old place. It holds no first answer, whatever it is told.
            any_number = int(self._shared.clock.wall() * 1000) % 1000
            return {"filter": FIRST, "timeout": str(any_number)}, 0.0
        # Why not held after trouble: whether it is over is to be known at once.
        hold = 0.0 if self._account.trouble else self._shared.config.poll_timeout
        timeout = str(int(hold * 1000))
        return {"filter": LATER, "since": since, "timeout": timeout}, hold

    async def _take(self, batch: Batch, since: str, ingress: Ingress) -> None:
        """Bring in a batch; comes back when all of it was accepted."""
        user = self._account.user
        for room_id in batch.left:
            self._shared.rooms.note_left(room_id, user)
        invites = [
            partial(self._answer_invite, room_id, events)
            for room_id, events in batch.invited.items()
        ]
        arrivals = [
            partial(self._arrivals.take, room_id, news, since, ingress)
            for room_id, news in batch.joined.items()
        ]
        refused: list[ShutOutError] = []
        limiter = trio.CapacityLimiter(ROOMS_AT_ONCE)

        async def run(job: Callable[[], Awaitable[None]]) -> None:
            async with limiter:
                try:
                    await job()
                except ShutOutError as error:
                    refused.append(error)

        async with trio.open_nursery() as nursery:
            for job in (*invites, *arrivals):
                nursery.start_soon(run, job)
        if refused:
            raise refused[0]

    async def _answer_invite(self, room_id: str, events: tuple[Json, ...]) -> None:
        account, shared = self._account, self._shared
        verdict, inviter = judge(events, account.user, shared.policy)
        if verdict == "not_invited":
            self._count("malformed")
            return
        outcome: Outcome = "joined" if verdict == "join" else "declined"
        body = Json() if verdict == "join" else Json(reason=REASONS[verdict])
        call = Call(
            method="POST",
            path=path_of("rooms", room_id, "join" if verdict == "join" else "leave"),
            body=body,
            timeout=account.timeout,
        )
        why: str = verdict
        try:
            with trio.fail_after(ANSWERED_WITHIN):
                await patiently(lambda: account.ask(call), self._note)
        except RefusedError as error:
            outcome, why = "not_joined", str(error)
        except trio.TooSlowError:
            outcome, why = "not_joined", account.trouble
        else:
            if outcome == "joined":
                shared.rooms.note_joined(room_id, account.user)
        self._count(outcome)
        LOG.info(
            "invitation",
            account=account.user,
            room=room_id,
            inviter=inviter,
            outcome=outcome,
            why=why,
        )

    async def _bookmark(self) -> str:
        while True:
            try:
                return await self._shared.bookmarks.read(self._account.user)
            except StoreError as error:
                LOG.warning("place not read yet", why=str(error))
                await trio.sleep(1.0)

    async def _keep(self, token: str, before: str) -> str:
        """Note how far the account has read; gives that token back."""
        try:
            if token != before:
                await self._shared.bookmarks.write(self._account.user, token)
        except StoreError as error:
            # After a restart more is read again, and known to the database.
            LOG.warning("place not kept", account=self._account.user, why=str(error))
        return token

    async def _show_status(self) -> None:
        status = self._shared.config.status
        if not status:
            return
        call = Call(
            method="PUT",
            path=path_of("presence", self._account.user, "status"),
            body={"presence": "online", "status_msg": status},
            timeout=self._account.timeout,
        )
        try:
            await self._account.ask(call)
        except ShutOutError:
            raise
        except PlatformError as error:
            LOG.warning("status not shown", account=self._account.user, why=str(error))

    def _heard(self) -> None:
        account, figures = self._account, self._shared.figures
        if account.trouble:
            LOG.info("account is in step", account=account.user)
        if self._was_away:
            self._was_away = False
            figures.reconnected(account.agent)
        account.trouble = ""
        figures.synced(account.agent, self._shared.clock.wall())
        figures.show(account.agent, is_up=True)

    def _note(self, error: PlatformError) -> None:
        """Take note of trouble; the log has a line for the first of a row."""
        account = self._account
        if not self._was_away:
            LOG.warning("homeserver away", account=account.user, why=str(error))
        self._was_away = True
        account.trouble = str(error)
        self._shared.figures.show(account.agent, is_up=False)

    def _count(self, outcome: Outcome) -> None:
        self._shared.figures.event(self._account.agent, outcome)
