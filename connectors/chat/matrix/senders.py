"""Chooses whose account sends; edits and reacts by the accounts."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

import msgspec
import trio

from actors.errors import DeliveryRefusedError
from actors.messages.deliveries import Edit, Reaction
from actors.rules.text.limits import RecentMap
from actors.transport import Ingress
from connectors.chat.accounts import prefixed, ready_accounts
from connectors.chat.matrix import content
from connectors.chat.matrix.account import MatrixAccount, MatrixCall, path_of
from connectors.chat.matrix.rooms import MatrixRooms, MatrixShared, Room
from connectors.chat.requests import (
    Json,
    LostError,
    PlatformError,
    RefusedError,
    table,
    tables,
    text,
    translated,
)
from runtime.errors import StoreError
from runtime.telemetry.logs import EventLog

NOT_THERE = frozenset({"M_FORBIDDEN", "M_NOT_FOUND"})


class MatrixSenders:
    """Chooses which account sends."""

    def __init__(
        self, accounts: Mapping[str, MatrixAccount], rooms: MatrixRooms
    ) -> None:
        self._accounts = accounts
        self._rooms = rooms

    async def choose(self, agent: str, room_id: str) -> tuple[MatrixAccount, Room]:
        """Find the account that speaks for an agent in a room.

        Its own if it is there; else, and for the runtime's own words, the first of the
        settings that is: always the same one, so that a repeated message is known.

        Raises:
            DeliveryBusyError: none listens now.
            DeliveryRefusedError: none is in this room, or the room is encrypted.
        """
        ready = ready_accounts(self._accounts, agent)
        room = await self._room(room_id, ready)
        if room.is_encrypted:
            raise DeliveryRefusedError("the room is encrypted; nothing is said there")
        for account in ready:
            if room.is_in(account.user):
                return account, room
        raise DeliveryRefusedError(f"no account of ours is in {room_id}")

    async def _room(self, room_id: str, ready: Sequence[MatrixAccount]) -> Room:
        for account in ready:
            with translated():
                try:
                    return await self._rooms.get(room_id, account)
                except RefusedError as error:
                    if error.code not in NOT_THERE:
                        raise
        raise DeliveryRefusedError(f"no account of ours can look into {room_id}")


LOG = EventLog("matrix")

# Chosen: signs are exchanged within the time of a turn.
MOST_SIGNS = 2_000
"""Reactions whose ids are remembered; of others the server is asked."""

THERE_ALREADY = "M_DUPLICATE_ANNOTATION"


class MatrixPresence:
    """Edits and reactions by the accounts."""

    def __init__(self, senders: MatrixSenders, shown: Callable[[str], str]) -> None:
        self._name = shown
        self._senders = senders
        self._signs: RecentMap[tuple[str, str, str], str] = RecentMap(MOST_SIGNS)
        """Ids of reactions by account, message and sign."""

    async def edit(self, edit: Edit) -> None:
        """Change the text of a message; see the port."""
        room_id = edit.address.chat
        account, _ = await self._senders.choose(edit.agent, room_id)
        said = content.edit(edit.receipt, prefixed(edit, account.agent, self._name))
        with translated():
            if edit.text:
                await send(account, room_id, "m.room.message", edit.id, said)
            else:
                await redact(account, room_id, edit.receipt)

    async def react(self, reaction: Reaction) -> None:
        """Put a sign at a message, in the place of an earlier one; see the port."""
        room_id = reaction.address.chat
        account, _ = await self._senders.choose(reaction.agent, room_id)
        with translated():
            if reaction.sign:
                await self._put(reaction, account)
            if reaction.instead_of and reaction.instead_of != reaction.sign:
                await self._take_back(reaction, account)

    async def _put(self, reaction: Reaction, account: MatrixAccount) -> None:
        said = content.reaction(reaction.message, reaction.sign)
        key = f"{reaction.correlation_id}/{account.agent}/{reaction.message}/"
        try:
            event_id = await send(
                account,
                reaction.address.chat,
                "m.reaction",
                # A sign that was taken back may be put again.
                f"{key}{reaction.instead_of}>{reaction.sign}",
                said,
            )
        except RefusedError as error:
            if error.code != THERE_ALREADY:
                raise
        else:
            self._signs[account.user, reaction.message, reaction.sign] = event_id

    async def _take_back(self, reaction: Reaction, account: MatrixAccount) -> None:
        place = (account.user, reaction.message, reaction.instead_of)
        event_id = self._signs.pop(place, "") or await self._find(reaction, account)
        if not event_id:
            return
        try:
            await redact(account, reaction.address.chat, event_id)
        except PlatformError:
            self._signs[place] = event_id
            raise

    async def _find(self, reaction: Reaction, account: MatrixAccount) -> str:
        """Look for a sign that an earlier process put."""
        path = path_of("rooms", reaction.address.chat, "relations", reaction.message)
        path = path.replace("/v3/", "/v1/") + "/m.annotation/m.reaction"
        call = MatrixCall(
            method="GET", path=path, query={"limit": "100"}, timeout=account.timeout
        )
        for event in tables((await account.ask(call)).get("chunk")):
            relates_to = table(table(event.get("content")).get("m.relates_to"))
            is_ours = event.get("sender") == account.user
            if is_ours and relates_to.get("key") == reaction.instead_of:
                return text(event.get("event_id"))
        return ""


async def send(
    account: MatrixAccount, room_id: str, kind: str, key: str, said: Json
) -> str:
    """Send an event; sent twice under one key it is one.

    Returns:
        Its id.

    Raises:
        BusyError: not now.
        LostError: nobody knows whether it was.
        RefusedError: never.
        ShutOutError: the account is not let in.
    """
    path = path_of("rooms", room_id, "send", kind, content.transaction(key))
    call = MatrixCall(method="PUT", path=path, body=said, timeout=account.timeout)
    event_id = text((await account.ask(call)).get("event_id"))
    if not event_id:
        raise LostError("its answer names no event")
    return event_id


async def redact(account: MatrixAccount, room_id: str, event_id: str) -> None:
    """Take one of our events away; raises as `send`."""
    txn = content.transaction(event_id)
    path = path_of("rooms", room_id, "redact", event_id, txn)
    call = MatrixCall(method="PUT", path=path, body={}, timeout=account.timeout)
    await account.ask(call)


# Chosen: more than an agent answers in one room while a homeserver is away.
NEWEST_SIGNS = 50
"""Newest signs of each room that are looked at."""

LOOK_EVERY = 60.0
"""Least seconds between two looks; each asks for all rooms of the account."""

TIMEOUT = 120.0


def filter_of(user: str) -> str:
    """Ask for the signs that one account put, in all of its rooms."""
    nothing: Json = {"types": []}
    timeline = {"types": ["m.reaction"], "senders": [user], "limit": NEWEST_SIGNS}
    rooms = {
        "account_data": nothing,
        "ephemeral": nothing,
        "state": nothing,
        "timeline": timeline,
    }
    found: Json = {"presence": nothing, "account_data": nothing, "room": rooms}
    return msgspec.json.encode(found).decode()


class StaleSigns:
    """Looks after the signs of one account."""

    def __init__(self, account: MatrixAccount, shared: MatrixShared) -> None:
        self._account = account
        self._shared = shared
        self._wanted = trio.Event()

    def want(self) -> None:
        """Have all signs looked at soon: some may have been left behind."""
        self._wanted.set()

    async def run(self, ingress: Ingress) -> None:
        """Look whenever that is wanted, until cancelled."""
        while True:
            await self._wanted.wait()
            self._wanted = trio.Event()
            sign = self._shared.received_sign()
            if sign:
                try:
                    await self._look(sign, ingress)
                except (PlatformError, StoreError) as error:
                    LOG.info("signs not looked at", why=str(error))
            await trio.sleep(LOOK_EVERY)

    async def _look(self, sign: str, ingress: Ingress) -> None:
        # Why any number: Synapse keeps its answer to the same question for a while.
        any_number = int(self._shared.clock.wall() * 1000) % 1000
        call = MatrixCall(
            method="GET",
            path=path_of("sync"),
            query={"filter": filter_of(self._account.user), "timeout": str(any_number)},
            timeout=TIMEOUT,
        )
        for room_id, event_id, message in standing(await self._account.ask(call), sign):
            earlier = await ingress.earlier(self._shared.connector, message)
            # What is not known any more has ended long ago.
            if earlier is None or earlier.outcome:
                await redact(self._account, room_id, event_id)
                LOG.info("stale sign taken away", room=room_id, message=message)


def standing(answer: Json, sign: str) -> Iterator[tuple[str, str, str]]:
    """Find a sign in what `/sync` said: its room, its id, and its message."""
    rooms = table(table(answer.get("rooms")).get("join"))
    for room_id, said in rooms.items():
        for event in tables(table(table(said).get("timeline")).get("events")):
            related = table(table(event.get("content")).get("m.relates_to"))
            event_id, message = (
                text(event.get("event_id")),
                text(related.get("event_id")),
            )
            if related.get("key") == sign and event_id and message:
                yield room_id, event_id, message
