"""Keeps one account in step with its homeserver: the listener of that account."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from functools import partial
from typing import Literal

import msgspec
import trio

from actors.transport import Ingress
from connectors.chat.accounts import AccountHealth, read_bookmark
from connectors.chat.inbound import LONGEST_WAIT, Lanes
from connectors.chat.matrix.account import MatrixAccount, MatrixCall, path_of
from connectors.chat.matrix.events import SAID
from connectors.chat.matrix.inbound import MatrixArrivals, waiting
from connectors.chat.matrix.rooms import MatrixShared, Outcome, come_or_go
from connectors.chat.matrix.senders import StaleSigns
from connectors.chat.requests import (
    BusyError,
    Json,
    LostError,
    PlatformError,
    RefusedError,
    ShutOutError,
    table,
    tables,
    text,
    until_answered,
)
from runtime.errors import StoreError
from runtime.telemetry.logs import EventLog


class RoomNews(msgspec.Struct, frozen=True):
    """What happened in one room since the last batch."""

    state: tuple[Json, ...] = ()
    """Changes of the room that came before `timeline`."""

    timeline: tuple[Json, ...] = ()
    """Oldest first."""

    is_limited: bool = False
    """Whether more happened than stands in `timeline`."""

    before: str = ""
    """From where what is missing can be fetched, backwards."""


class Batch(msgspec.Struct, frozen=True):
    """One answer of `/sync`."""

    next_batch: str
    joined: dict[str, RoomNews]
    invited: dict[str, tuple[Json, ...]]
    """By room: what an invited account may know of it."""

    left: tuple[str, ...]
    """Rooms that the account is no longer in."""


def read_batch(answer: Json) -> Batch:
    """Read what `/sync` said.

    Raises:
        ValueError: it does not say how to go on.
    """
    next_batch = text(answer.get("next_batch"))
    if not next_batch:
        raise ValueError("it has no next_batch")
    rooms = table(answer.get("rooms"))
    joined, invited = table(rooms.get("join")), table(rooms.get("invite"))
    return Batch(
        next_batch=next_batch,
        joined={room: read_news(table(said)) for room, said in joined.items()},
        invited={
            room: tables(table(table(said).get("invite_state")).get("events"))
            for room, said in invited.items()
        },
        left=tuple(table(rooms.get("leave"))),
    )


def read_news(said: Json) -> RoomNews:
    """Read what `/sync` said of one room."""
    timeline = table(said.get("timeline"))
    return RoomNews(
        state=tables(table(said.get("state")).get("events")),
        timeline=tables(timeline.get("events")),
        is_limited=timeline.get("limited") is True,
        before=text(timeline.get("prev_batch")),
    )


Invites = Literal["nobody", "owners", "listed", "anyone"]
Verdict = Literal["join", "not_invited", "not_allowed", "encrypted"]

REASONS: dict[Verdict, str] = {
    "not_allowed": "This account accepts invitations only from people whom its"
    " operator has named.",
    "encrypted": "This account can read unencrypted rooms only: invite it to one"
    " that was made without encryption.",
}


class InvitePolicy(msgspec.Struct, frozen=True):
    """Whose invitations are accepted."""

    invites: Invites
    owners: frozenset[str] = frozenset()
    """Ids of those who run this company."""

    listed: tuple[str, ...] = ()
    """Ids, or `*:server` for all of a server."""

    takes_strangers: bool = False
    """Whether people who are not known may write in direct chats, or are told there how
    to be let in. With `owners`, anybody's invitation to a direct chat is then accepted.
    """

    def allows(self, user: str, *, is_direct: bool = False) -> bool:
        """Return whether somebody's invitation is accepted."""
        match self.invites:
            case "nobody":
                return False
            case "owners":
                return user in self.owners or (is_direct and self.takes_strangers)
            case "listed":
                return user in self.owners or is_listed(user, self.listed)
            case "anyone":
                return True


def is_listed(user: str, listed: tuple[str, ...]) -> bool:
    """Return whether an id, or its server, stands in a list."""
    _, _, server = user.partition(":")
    return user in listed or (server != "" and f"*:{server}" in listed)


def judge(
    events: Iterable[Json], user: str, policy: InvitePolicy
) -> tuple[Verdict, str]:
    """Say what to do about an invitation, and who sent it."""
    inviter, is_encrypted, is_direct = "", False, False
    for event in events:
        kind, content = event.get("type"), table(event.get("content"))
        is_us = kind == "m.room.member" and event.get("state_key") == user
        if is_us and content.get("membership") == "invite":
            inviter = text(event.get("sender"))
            is_direct = content.get("is_direct") is True
        is_encrypted = is_encrypted or kind == "m.room.encryption"
    if not inviter:
        return "not_invited", ""
    if not policy.allows(inviter, is_direct=is_direct):
        return "not_allowed", inviter
    return ("encrypted" if is_encrypted else "join"), inviter


LOG = EventLog("matrix")

# Chosen: what a busy room says in half a minute. More is fetched by itself.
TIMELINE = 50
"""Most events of one room in one batch."""

# Chosen: enough for a question and its afterthoughts; a first batch may list thousands
# of rooms.
FIRST_TIMELINE = 10
"""Most events of one room in the first batch."""

ROOMS_AT_ONCE = 8
"""Rooms of one batch that are brought in side by side."""

GRACE = 15.0
"""Seconds that a server may take beyond what it was asked to wait."""

# Chosen: a first batch may list thousands of rooms.
FIRST_TIMEOUT = 120.0

BAD_REQUEST = 400

CURE = (
    "make a new login for it, put its token where {place} takes it from, and start"
    " again"
)

TYPES = [
    *SAID,
    "m.room.encrypted",
    "m.room.member",
    "m.room.encryption",
    "m.room.name",
    "m.room.create",
    "m.room.tombstone",
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


FIRST, LATER = filter_of(FIRST_TIMELINE), filter_of(TIMELINE)


# Chosen: a batch is mostly in after milliseconds; a room that waits holds up the next
# batch of all others for so long.
BATCH_WITHIN = 1.0
"""Seconds after which the next batch is asked for, whether this one is in or not."""


class OpenBatches:
    """Which batches are being brought in, and up to which token all are; pure."""

    def __init__(self, token: str) -> None:
        self.token = token
        """Up to it everything is in: where to go on after a restart."""

        self._number = 0
        self._open: dict[int, tuple[int, str]] = {}
        """By number, the oldest first: jobs that are left, and the token behind it."""

    def begin(self, token: str, jobs: int) -> int:
        """Begin a batch; gives its number.

        Args:
            jobs: how many `end` will be called for; 0: it is in.
        """
        self._number += 1
        self._open[self._number] = (jobs, token)
        self._move()
        return self._number

    def end(self, number: int) -> None:
        """Note that one job of a batch is done."""
        jobs, token = self._open[number]
        self._open[number] = (jobs - 1, token)
        self._move()

    def is_in(self, number: int) -> bool:
        """Whether all jobs of a batch are done."""
        return self._open.get(number, (0, ""))[0] == 0

    def _move(self) -> None:
        for number, (jobs, token) in tuple(self._open.items()):
            if jobs:
                return
            self.token = token
            del self._open[number]


class MatrixListener:
    """Listens to one account by `/sync`.

    Each room is brought in by itself: one whose messages wait, for a large file or for
    room, keeps no other room waiting.
    """

    def __init__(self, account: MatrixAccount, shared: MatrixShared) -> None:
        self._account = account
        self._shared = shared
        self._arrivals = MatrixArrivals(account, shared)
        self._health = AccountHealth(account, shared.metrics, shared.clock, LOG)
        self._signs = StaleSigns(account, shared)
        self._refused: ShutOutError | None = None
        """Why an event was refused when it was handed in: the account is shut out."""

        self._news = trio.Event()
        """Set when something is in, or was not let in."""

    async def listen(self, ingress: Ingress) -> None:
        """Follow the account until cancelled."""
        await self._health.keep_listening(partial(self._listen, ingress))

    async def _listen(self, ingress: Ingress) -> None:
        with self._health.listening():
            async with self._shared.homeserver, trio.open_nursery() as nursery:
                nursery.start_soon(self._account.typing.run)
                nursery.start_soon(self._signs.run, ingress)
                nursery.start_soon(self._arrivals.receipts.run)
                try:
                    await self._follow(ingress)
                except ShutOutError as error:
                    self._health.shut_out(error, self._shared.connector, CURE)
                nursery.cancel_scope.cancel()

    async def _follow(self, ingress: Ingress) -> None:
        account = self._account
        await until_answered(account.open, self._health.note)
        account.is_open = True
        read = partial(self._shared.bookmarks.read, account.user)
        since = await read_bookmark(read, LOG)
        await self._show_status()
        self._signs.want()
        LOG.info("account listens", account=account.user, is_new=since == "")
        self._refused = None
        async with trio.open_nursery() as nursery:
            try:
                await self._read(since, Lanes(nursery), ingress)
            except ShutOutError as error:
                self._refused = error
            nursery.cancel_scope.cancel()
        if self._refused is not None:
            raise self._refused

    async def _read(self, since: str, lanes: Lanes, ingress: Ingress) -> None:
        """Read batch after batch."""
        account, batches, kept = self._account, OpenBatches(since), since
        while self._refused is None:
            if not since:
                kept = since = await self._begin(ingress)
                batches.begin(since, 0)
            try:
                batch = await until_answered(
                    partial(self._poll, since), self._health.note
                )
            except RefusedError as error:
                LOG.warning("gap: read anew", account=account.user, why=str(error))
                self._shared.metrics.gap(account.agent, is_filled=False)
                since = ""
                continue
            await self._bring_in(batch, since, batches, lanes, ingress)
            since = batch.next_batch
            kept = await self._keep(batches.token, kept)
        raise self._refused

    async def _bring_in(
        self,
        batch: Batch,
        since: str,
        batches: OpenBatches,
        lanes: Lanes,
        ingress: Ingress,
    ) -> None:
        """Bring in a batch; comes back when it is in, or takes long."""
        jobs = self._jobs(batch, since, ingress)
        number = batches.begin(batch.next_batch, len(jobs))

        async def bring(job: Callable[[], Awaitable[None]]) -> None:
            try:
                await job()
            except ShutOutError as error:
                self._refused = error
            else:
                batches.end(number)
            self._news.set()

        for room_id, job in jobs:
            await lanes.put(room_id, partial(bring, job))
        with trio.move_on_after(BATCH_WITHIN):
            while self._refused is None and not batches.is_in(number):
                self._news = trio.Event()
                await self._news.wait()

    async def _begin(self, ingress: Ingress) -> str:
        """Find out where the account stands; what waits there is answered first.

        Of what was said before, that is the end of a room's messages, of the last few
        minutes, which nobody here has answered; see `waiting`.
        """
        batch = await until_answered(partial(self._poll, ""), self._health.note)
        now, users = self._shared.clock.wall(), self._shared.users
        joined: dict[str, RoomNews] = {}
        for room_id, news in batch.joined.items():
            begin = waiting(news.timeline, self._account.user, users, now)
            if begin < len(news.timeline):
                # Why no state: the room is asked for as it is now.
                joined[room_id] = RoomNews(timeline=news.timeline[begin:])
        waits = msgspec.structs.replace(batch, joined=joined, invited={}, left=())
        await self._take(waits, "", ingress)
        # Why before the invitations: what is said from here on is answered even if
        # this process ends now. An invitation lost by that can be made again.
        since = await self._keep(batch.next_batch, "")
        only_invites = msgspec.structs.replace(batch, joined={}, left=())
        await self._take(only_invites, since, ingress)
        return since

    async def _poll(self, since: str) -> Batch:
        """Ask for news."""
        query, hold = self._question(since)
        silence = hold + GRACE if since else FIRST_TIMEOUT
        call = MatrixCall(
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
        if self._health.heard():
            self._shared.metrics.count("reconnects", self._account.agent)
            self._signs.want()
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
        refused: list[ShutOutError] = []
        limiter = trio.CapacityLimiter(ROOMS_AT_ONCE)

        async def run(job: Callable[[], Awaitable[None]]) -> None:
            async with limiter:
                try:
                    await job()
                except ShutOutError as error:
                    refused.append(error)

        async with trio.open_nursery() as nursery:
            for _, job in self._jobs(batch, since, ingress):
                nursery.start_soon(run, job)
        if refused:
            raise refused[0]

    def _jobs(
        self, batch: Batch, since: str, ingress: Ingress
    ) -> list[tuple[str, Callable[[], Awaitable[None]]]]:
        """Say what is to be done about a batch, with the room of each job."""
        left = [(room_id, partial(self._leave, room_id)) for room_id in batch.left]
        invites = [
            (room_id, partial(self._answer_invite, room_id, events))
            for room_id, events in batch.invited.items()
        ]
        arrivals = [
            (room_id, partial(self._arrivals.take, room_id, news, since, ingress))
            for room_id, news in batch.joined.items()
        ]
        return [*left, *invites, *arrivals]

    async def _leave(self, room_id: str) -> None:
        """Note that the account is no longer in a room."""
        self._shared.rooms.note_left(room_id, self._account.user)
        await trio.lowlevel.checkpoint()

    async def _answer_invite(self, room_id: str, events: tuple[Json, ...]) -> None:
        account, shared = self._account, self._shared
        verdict, inviter = judge(events, account.user, shared.policy)
        if verdict == "not_allowed" and await self._is_moved_here(room_id, events):
            verdict, _ = judge(events, account.user, InvitePolicy("anyone"))
        if verdict == "not_invited":
            self._count("malformed")
            return
        outcome: Outcome = "joined" if verdict == "join" else "declined"
        body = Json() if verdict == "join" else Json(reason=REASONS[verdict])
        call = MatrixCall(
            method="POST",
            path=path_of("rooms", room_id, "join" if verdict == "join" else "leave"),
            body=body,
            timeout=account.timeout,
        )
        why = await come_or_go(account, call, self._health.note)
        if why:
            outcome = "not_joined"
        elif outcome == "joined":
            shared.rooms.note_joined(room_id, account.user)
            self._signs.want()  # of an earlier stay
        self._count(outcome)
        LOG.info(
            "invitation",
            account=account.user,
            room=room_id,
            inviter=inviter,
            outcome=outcome,
            why=why or verdict,
        )

    async def _is_moved_here(self, room_id: str, events: tuple[Json, ...]) -> bool:
        """Return whether a room that the account is in was moved to another one.

        Whoever may move a room may have the agents that are in it come along.
        """
        made = [e for e in events if e.get("type") == "m.room.create"]
        before = table(table((made or [{}])[0].get("content")).get("predecessor"))
        old = text(before.get("room_id"))
        if not old or self._shared.policy.invites == "nobody":
            return False
        call = MatrixCall(
            method="GET",
            path=path_of("rooms", old, "state", "m.room.tombstone"),
            timeout=self._account.timeout,
        )
        try:
            moved = await self._account.ask(call)
        except ShutOutError:
            raise
        except PlatformError:
            return False
        return moved.get("replacement_room") == room_id

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
        call = MatrixCall(
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

    def _count(self, outcome: Outcome) -> None:
        self._shared.metrics.event(self._account.agent, outcome)
