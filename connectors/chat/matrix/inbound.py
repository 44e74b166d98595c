"""Brings in what one account hears: room by room, in order.

Quotes and files are not fetched for somebody who may not write: a stranger has us carry
nothing.

Files that agents send are uploaded here, too.
"""

from __future__ import annotations

import re
from functools import partial
from typing import TYPE_CHECKING

import msgspec
import trio

from actors.messages.inbound import Address, Attachment, Inbound, Quoted, SentFile
from actors.rules.text.limits import RecentMap
from connectors.chat.inbound import (
    MOST_IN_ALL,
    Submission,
    Trouble,
    fetch_files,
)
from connectors.chat.matrix import content
from connectors.chat.matrix.account import (
    MatrixAccount,
    MatrixBody,
    MatrixCall,
    path_of,
)
from connectors.chat.matrix.events import (
    SAID,
    MatrixFile,
    MatrixMessage,
    MatrixSkipped,
    is_id,
    read,
    read_file,
    relations,
    without_fallback,
)
from connectors.chat.matrix.rooms import (
    MatrixShared,
    Outcome,
    Room,
    RoomDeadlines,
    come_or_go,
    local_part,
)
from connectors.chat.requests import (
    BusyError,
    Json,
    LostError,
    PlatformError,
    RefusedError,
    ShutOutError,
    ask_for_file,
    table,
    tables,
    text,
    whole,
)
from connectors.files.blobs import BlobFolder, bytes_of, seconds_for
from runtime.errors import StoreError
from runtime.telemetry.logs import EventLog

if TYPE_CHECKING:
    from collections.abc import Container, Mapping, Sequence

    from actors.transport import Ingress
    from connectors.chat.matrix.listener import RoomNews


AUTHENTICATED = "/_matrix/client/v1/media/download"
"""Source: spec v1.11; what came before it (v3) asks for no token."""


async def fetch_file(
    file: MatrixFile, account: MatrixAccount, most: int
) -> tuple[Attachment | None, str]:
    """Fetch a file; a server that has too much to do is asked again for a while.

    Args:
        most: bytes.

    Returns:
        The attachment, or why there is none.

    Raises:
        ShutOutError: the account is not let in.
    """
    if not file.media_id:
        return None, "it is encrypted, or has no address"
    if file.size > most:
        return None, f"it is above {most} bytes"
    path = path_of(file.server, file.media_id).removeprefix("/_matrix/client/v3")
    path = AUTHENTICATED + path
    call = MatrixCall(method="GET", path=path, timeout=account.timeout, most=most)
    try:
        content, media_type = await ask_for_file(partial(account.fetch, call))
    except ShutOutError:
        raise
    except PlatformError as error:
        return None, str(error)
    return file.attached(content, media_type), ""


PATH = "/_matrix/media/v3/upload"

# Chosen: a delivery is tried again within minutes.
MOST_KNOWN = 200
"""Files of which it is remembered where they lie at the homeserver."""


class MatrixUploads:
    """Files that were uploaded to the homeserver recently.

    Args:
        blobs: has the bytes; None: nobody has.
    """

    def __init__(self, blobs: BlobFolder | None) -> None:
        self._blobs = blobs
        self._known: RecentMap[tuple[str, str, str], str] = RecentMap(MOST_KNOWN)

    async def bring(self, file: SentFile, account: MatrixAccount) -> str:
        """Return a file's `mxc` address, after it was brought there.

        Raises:
            DeliveryRefusedError: its bytes are gone.
            PlatformError: as `Homeserver.ask`.
        """
        key = (account.user, file.digest, file.name)
        if key in self._known:
            return self._known[key]
        path = bytes_of(self._blobs, file)
        call = MatrixCall(
            method="POST",
            path=PATH,
            query={"filename": file.name},
            file=MatrixBody(path, file.media_type, file.size),
            timeout=seconds_for(file.size, account.timeout),
            silence=account.timeout,
        )
        address = text((await account.ask(call)).get("content_uri"))
        if not address.startswith("mxc://"):
            raise LostError("the homeserver says no address of the file")
        self._known[key] = address
        return address


LOG = EventLog("matrix")


async def tell(room_id: str, words: str, key: str, account: MatrixAccount) -> None:
    """Send a notice; sent twice under one key, people see it once.

    Raises:
        ShutOutError: the account is not let in.
    """
    txn = content.transaction(key)
    call = MatrixCall(
        method="PUT",
        path=path_of("rooms", room_id, "send", "m.room.message", txn),
        body=content.words("m.notice", words),
        timeout=account.timeout,
    )
    try:
        await account.ask(call)
    except ShutOutError:
        raise
    except PlatformError as error:
        LOG.warning("notice not said", room=room_id, notice=words, why=str(error))


MOST_QUOTES = 2_000
"""Messages that are remembered."""

LONGEST_QUOTE = 2_000
"""Characters of each."""

FETCH_TIMEOUT = 5.0
"""Seconds: a message is not held back for long because of what it replies to."""


class QuotedLine(msgspec.Struct, frozen=True):
    """A message that may be quoted."""

    sender: str
    text: str
    file: MatrixFile | None = None


class Quotes:
    """Recent messages by room and id, for quotes within their own room."""

    def __init__(self, users: Mapping[str, str], most: int = MOST_QUOTES) -> None:
        self._users = users
        self._lines: RecentMap[tuple[str, str], QuotedLine] = RecentMap(most)

    def learn(
        self,
        room_id: str,
        event_id: str,
        sender: str,
        words: str,
        file: MatrixFile | None = None,
    ) -> None:
        """Remember a message."""
        place = room_id, event_id
        self._lines[place] = QuotedLine(sender, words[:LONGEST_QUOTE], file)

    def learn_event(self, room_id: str, event: Json) -> None:
        """Remember an event, if it is a message; what was edited reads as before."""
        event_id, sender = text(event.get("event_id")), text(event.get("sender"))
        content = table(event.get("content"))
        body = text(content.get("body"))
        if event_id and sender and body and event.get("type") == "m.room.message":
            _, reply_to = relations(content)
            words = without_fallback(body) if reply_to else body
            file = read_file(text(content.get("msgtype")), content)
            self.learn(room_id, event_id, sender, words, file)

    def file_of(self, room_id: str, event_id: str) -> MatrixFile | None:
        """Return the file of a message; None: it has none, or nobody knows."""
        line = self._lines.get((room_id, event_id))
        return line.file if line is not None else None

    def sender_of(self, room_id: str, event_id: str) -> str:
        """Return who wrote a message; empty if nobody knows."""
        line = self._lines.get((room_id, event_id))
        return line.sender if line is not None else ""

    def forget(self, room_id: str, event_id: str) -> None:
        """Forget what was taken back."""
        self._lines.pop((room_id, event_id), None)

    async def quote(
        self, event_id: str, room_id: str, room: Room, account: MatrixAccount
    ) -> Quoted | None:
        """Return what a message says that somebody replied to; None if nobody knows.

        Raises:
            ShutOutError: the account is not let in.
        """
        place = room_id, event_id
        if place not in self._lines:
            path = path_of("rooms", room_id, "event", event_id)
            call = MatrixCall(method="GET", path=path, timeout=FETCH_TIMEOUT)
            try:
                self.learn_event(room_id, await account.ask(call))
            except ShutOutError:
                raise
            except PlatformError:
                await trio.lowlevel.checkpoint()
        line = self._lines.get(place)
        if line is None:
            return None
        return Quoted(
            text=line.text,
            sender_name=room.name_of(line.sender),
            agent=self._users.get(line.sender, ""),
        )


COMMAND_BEHIND = re.compile(r"[,:]?\s+(/[A-Za-z].*)", re.DOTALL)
"""What stands behind a mention, if it is a command."""


class MessageInRoom(msgspec.Struct, frozen=True):
    """A message, and its room."""

    spoken: MatrixMessage
    room_id: str
    room: Room


class MatrixSubmitter:
    """Submits the messages that one account hears."""

    def __init__(self, account: MatrixAccount, shared: MatrixShared) -> None:
        self._account = account
        self._shared = shared
        self._submission = Submission(LOG, self._count, self._tell)

    async def submit(self, heard: MessageInRoom, ingress: Ingress) -> bool:
        """Submit a message, however long that takes.

        Returns:
            Whether it is stored, and its sender may write.

        Raises:
            ShutOutError: the account is not let in.
        """
        said = self._commanded(heard.spoken, heard.room)
        if said != heard.spoken.text:
            spoken = msgspec.structs.replace(heard.spoken, text=said)
            heard = msgspec.structs.replace(heard, spoken=spoken)
        return await self._submission.submit(
            self._bare(heard), ingress, partial(self._filled, heard)
        )

    def _count(self, outcome: Outcome) -> None:
        self._shared.metrics.event(self._account.agent, outcome)

    async def _tell(self, inbound: Inbound, words: str, trouble: Trouble) -> None:
        key = f"{trouble}-{inbound.platform_id}"
        await tell(inbound.address.chat, words, key, self._account)

    def _bare(self, heard: MessageInRoom) -> Inbound:
        """Return a message as it came, with nothing fetched."""
        shared, spoken, room = self._shared, heard.spoken, heard.room
        present = room.present(shared.users) or (self._account.agent,)
        is_direct = room.is_direct(shared.users)
        sender_name = room.name_of(spoken.sender)
        return Inbound(
            id=shared.ids.new(),
            platform="matrix",
            platform_id=spoken.event_id,
            address=Address(shared.connector, heard.room_id, spoken.thread),
            sender_id=spoken.sender,
            sender_name=sender_name,
            text=worded(spoken.text, spoken, sender_name),
            received_at=shared.clock.wall(),
            is_direct=is_direct,
            agent=present[0] if is_direct else "",
            reply_to=spoken.reply_to,
            mentions=tuple(each for each in spoken.mentions if each in present),
            present=present,
            roles=room.roles_of(spoken.sender),
            is_bot=spoken.is_bot,
            platform_fields=specifics(spoken, room),
        )

    def _commanded(self, spoken: MatrixMessage, room: Room) -> str:
        """Return the words; a command behind a mention names the agent that is meant.

        Clients write a mention as the name of an account, and that alone: `anna: /help`
        is `@anna /help`.
        """
        for user, agent in self._shared.users.items():
            if agent not in spoken.mentions:
                continue
            for name in (room.name_of(user), user, local_part(user)):
                rest = spoken.text.removeprefix("@").removeprefix(
                    name.removeprefix("@")
                )
                command = COMMAND_BEHIND.match(rest)
                if command is not None and rest != spoken.text:
                    return f"@{agent} {command[1]}"
        return spoken.text

    async def _filled(self, heard: MessageInRoom, inbound: Inbound) -> Inbound:
        """Fetch what a message quotes and what came with it."""
        spoken, quoted, file = heard.spoken, None, None
        if spoken.reply_to:
            quoted = await self._shared.quotes.quote(
                spoken.reply_to, heard.room_id, heard.room, self._account
            )
            # Alone with somebody, an agent has that already.
            if not inbound.is_direct:
                file = self._shared.quotes.file_of(heard.room_id, spoken.reply_to)
        words, attachments = await self._files(spoken, file)
        text = worded(words, spoken, inbound.sender_name)
        return msgspec.structs.replace(
            inbound, text=text, quoted=quoted, attachments=attachments
        )

    async def _files(
        self, spoken: MatrixMessage, quoted: MatrixFile | None
    ) -> tuple[str, tuple[Attachment, ...]]:
        """Return the words of a message, and the files that could be had.

        Args:
            quoted: that of the message that it replies to.
        """
        most = min(self._shared.config.max_media_bytes, MOST_IN_ALL)

        def note(why: str) -> None:
            self._count("media_left_out")
            LOG.warning("file not fetched", event=spoken.event_id, why=why)

        files, lines = await fetch_files(
            filter(None, (spoken.file, quoted)),
            lambda file: fetch_file(file, self._account, most),
            note,
        )
        return "\n".join(filter(None, (spoken.text, *lines))), files


def worded(words: str, spoken: MatrixMessage, sender_name: str) -> str:
    """Return a message's words as they read in a chat."""
    return f"* {sender_name} {words}" if spoken.kind == "m.emote" else words


def specifics(spoken: MatrixMessage, room: Room) -> dict[str, str]:
    """Return the fields that only Matrix has."""
    found = {"msgtype": spoken.kind, "room_name": room.name}
    if spoken.mentions_room:
        found["mentions_room"] = "true"
    return {name: value for name, value in found.items() if value}


class ReadReceipts:
    """Shows people up to where one account has read; as well as it goes."""

    def __init__(self, account: MatrixAccount) -> None:
        self._account = account
        self._newest: dict[str, str] = {}
        """By room, of those where that is still to be shown."""

        self._wanted = trio.Event()

    def note(self, room_id: str, event_id: str) -> None:
        """Have it shown soon that a message was read, and all before it."""
        self._newest[room_id] = event_id
        self._wanted.set()

    async def run(self) -> None:
        """Show what was noted, until cancelled."""
        while True:
            await self._wanted.wait()
            self._wanted = trio.Event()
            while self._newest:
                room_id, event_id = self._newest.popitem()
                path = path_of("rooms", room_id, "receipt", "m.read", event_id)
                call = MatrixCall(
                    method="POST", path=path, body={}, timeout=FETCH_TIMEOUT
                )
                try:
                    await self._account.ask(call)
                except PlatformError as error:
                    # The next message of the room shows it, too.
                    LOG.debug("receipt not shown", room=room_id, why=str(error))


CANNOT_READ = (
    "This room is encrypted, and I cannot read it. Please write to me in a room"
    " that was made without encryption."
)

MOST_TOLD = 1_000
"""Encrypted rooms that are remembered to have been told."""


class MatrixArrivals:
    """Brings in what one account hears."""

    def __init__(self, account: MatrixAccount, shared: MatrixShared) -> None:
        self._account = account
        self._shared = shared
        self._submitter = MatrixSubmitter(account, shared)
        self._patience = RoomDeadlines(account, self._note)
        self._told: dict[str, None] = {}
        self.receipts = ReadReceipts(account)

    async def take(
        self, room_id: str, news: RoomNews, since: str, ingress: Ingress
    ) -> None:
        """Bring in what happened in one room.

        Raises:
            ShutOutError: the account is not let in.
        """
        room = await self._room(room_id, news)
        if room is None:
            return
        room.apply_all(news.state)
        for event in (*news.state, *news.timeline):
            if event.get("type") == "m.room.tombstone":
                await self._follow(event, room_id)
        came = arrival(news.timeline, self._account.user)
        for event in news.timeline[:came]:
            self._look_back(event, room_id, room)
        if news.is_limited and not came:
            gap = MatrixGap(room_id, since, news.before)
            for event in await self._fill(gap):
                await self._take_event(event, room_id, room, ingress)
        for event in news.timeline[came:]:
            await self._take_event(event, room_id, room, ingress)
        room.note_joined(self._account.user)

    async def _follow(self, event: Json, room_id: str) -> None:
        """Go along to the room that this one was moved to, if it lets us in.

        Else an invitation to it is accepted; see `MatrixListener`.
        """
        account, shared = self._account, self._shared
        moved_to = text(table(event.get("content")).get("replacement_room"))
        if not is_id(moved_to, "!") or shared.policy.invites == "nobody":
            return
        # Why by this server: the id of a room need not name one that knows it.
        via = text(event.get("sender")).partition(":")[2]
        call = MatrixCall(
            method="POST",
            path=path_of("join", moved_to),
            query={"via": via, "server_name": via},
            body={},
            timeout=account.timeout,
        )
        why = await come_or_go(account, call, self._note)
        if not why:
            shared.rooms.note_joined(moved_to, account.user)
        self._count("not_joined" if why else "joined")
        LOG.info("room moved", room=room_id, to=moved_to, account=account.user, why=why)

    def _look_back(self, event: Json, room_id: str, room: Room) -> None:
        """Learn from what was there before the account."""
        room.apply(event)
        if isinstance(read(event, self._shared.users), MatrixMessage):
            self._shared.quotes.learn_event(room_id, event)
            self._count("old")

    async def _room(self, room_id: str, news: RoomNews) -> Room | None:
        """Return a room; None if nobody can know it, or not in time."""
        get = partial(self._shared.rooms.get, room_id, self._account)
        try:
            return await self._patience.ask(room_id, get)
        except RefusedError as error:
            self._note(error)
        except (BusyError, LostError) as error:
            # Who is there, and whether it is a direct chat, decides who hears what.
            self._note(error)
            self._note_gap(room_id, 0, left=len(news.timeline))
        return None

    async def _fill(self, gap: MatrixGap) -> Sequence[Json]:
        most = self._shared.config.backfill
        events, is_filled = await fetch_gap(gap, self._account, most, self._patience)
        self._note_gap(gap.room_id, len(events), is_filled=is_filled)
        return events

    def _note_gap(
        self, room_id: str, fetched: int, *, left: int = 0, is_filled: bool = False
    ) -> None:
        """Count a gap, and log it.

        Args:
            fetched: events that were fetched into it.
            left: events at hand that had to be left out, too.
            is_filled: whether nothing is missing.
        """
        self._shared.metrics.gap(self._account.agent, is_filled=is_filled)
        say = LOG.info if is_filled else LOG.warning
        say(
            "gap in a room",
            room=room_id,
            account=self._account.user,
            fetched=fetched,
            left_out=left,
            is_filled=is_filled,
        )

    async def _take_event(
        self, event: Json, room_id: str, room: Room, ingress: Ingress
    ) -> None:
        room.apply(event)
        spoken = read(event, self._shared.users)
        if isinstance(spoken, MatrixSkipped):
            await self._skip(spoken, event, room_id, ingress)
        elif room.is_encrypted:
            # An answer would tell a server what the room keeps from it.
            self._count("encrypted_room")
            await self._refuse_encrypted(room_id)
        else:
            await self._submit(MessageInRoom(spoken, room_id, room), event, ingress)

    async def _submit(
        self, heard: MessageInRoom, event: Json, ingress: Ingress
    ) -> None:
        shared, event_id = self._shared, heard.spoken.event_id
        if not await shared.seen.claim(event_id):
            self._count("seen")
            return
        try:
            shared.quotes.learn_event(heard.room_id, event)
            is_read = await self._submitter.submit(heard, ingress)
            shared.seen.done(event_id)
            if is_read and shared.config.mark_read:
                self.receipts.note(heard.room_id, event_id)
        finally:
            shared.seen.give_back(event_id)

    async def _skip(
        self, skipped: MatrixSkipped, event: Json, room_id: str, ingress: Ingress
    ) -> None:
        self._count(skipped.reason)
        match skipped.reason:
            case "own":
                self._shared.quotes.learn_event(room_id, event)
            case "redaction":
                await self._withdraw(event, room_id, ingress)
            case "encrypted":
                if text(event.get("sender")) not in self._shared.users:
                    await self._refuse_encrypted(room_id)
            case _:
                pass

    async def _withdraw(self, event: Json, room_id: str, ingress: Ingress) -> None:
        """Forget what was taken back, and have nobody work on it any longer."""
        redacted = table(event.get("content")).get("redacts")
        event_id = text(redacted or event.get("redacts"))
        self._shared.quotes.forget(room_id, event_id)
        if not event_id or event.get("sender") in self._shared.users:
            return
        try:
            await ingress.withdraw(self._shared.connector, event_id)
        except StoreError as error:
            LOG.warning("message not withdrawn", event=event_id, why=str(error))

    async def _refuse_encrypted(self, room_id: str) -> None:
        """Say once in an encrypted room that it cannot be read."""
        if room_id in self._told or len(self._told) >= MOST_TOLD:
            return
        self._told[room_id] = None
        LOG.warning("room is encrypted", room=room_id, account=self._account.user)
        key = f"encrypted-{room_id}"
        await tell(room_id, CANNOT_READ, key, self._account)

    def _count(self, outcome: Outcome) -> None:
        self._shared.metrics.event(self._account.agent, outcome)

    def _note(self, error: PlatformError) -> None:
        LOG.warning("room waits", account=self._account.user, why=str(error))


def arrival(timeline: Sequence[Json], user: str) -> int:
    """Find how many events are from before an account was called into a room.

    Returns:
        0 if it was there all the time. What was said between its invitation and its
        joining was said to it.
    """
    invited = joined = 0
    for index, event in enumerate(timeline, 1):
        is_ours = (
            event.get("type") == "m.room.member" and event.get("state_key") == user
        )
        if not is_ours:
            continue
        membership = table(event.get("content")).get("membership")
        before = table(table(event.get("unsigned")).get("prev_content"))
        if membership == "invite":
            invited = index
        elif membership == "join" and before.get("membership") != "join":
            joined = index
    if not joined:
        return 0
    return invited if 0 < invited < joined else joined


WAITS_FOR = 600.0
"""Seconds for which somebody is thought to wait for an agent's very first start."""


def waiting(
    timeline: Sequence[Json], user: str, users: Container[str], now: float
) -> int:
    """Find what waits for an account at its very first start.

    Args:
        timeline: the end of a room's events, oldest first.
        users: all accounts of ours; what stands before words of theirs was answered.
        now: Unix seconds.

    Returns:
        The index of the first event that waits; the timeline's length: none does.
    """
    begin = arrival(timeline, user)
    for index, event in enumerate(timeline[begin:], begin + 1):
        is_ours = event.get("type") == "m.room.message"
        is_ours = is_ours and text(event.get("sender")) in users
        if is_ours or abs(age_of(event, now)) > WAITS_FOR:
            begin = index
    return begin


def age_of(event: Json, now: float) -> float:
    """Return how old an event is, in seconds: as its server says, which knows best."""
    unsigned = table(event.get("unsigned"))
    if "age" in unsigned:
        return whole(unsigned["age"]) / 1000
    return now - whole(event.get("origin_server_ts")) / 1000


PAGE = 100
"""Events of one request."""

FETCHED = [*SAID, "m.room.encrypted", "m.room.redaction"]
"""What is fetched; how the room has changed meanwhile stands in the batch."""


class MatrixGap(msgspec.Struct, frozen=True):
    """The gap in a room's messages between two batches."""

    room_id: str
    since: str
    """Up to where the account has read."""

    before: str
    """From where it reads on."""


async def fetch_gap(
    gap: MatrixGap,
    account: MatrixAccount,
    most: int,
    patience: RoomDeadlines,
) -> tuple[list[Json], bool]:
    """Fetch what lies in a gap.

    Args:
        most: events; those before are left out.

    Returns:
        The events, oldest first, and whether these are all.

    Raises:
        ShutOutError: the account is not let in.
    """
    found: list[Json] = []
    token = gap.before
    while token and len(found) < most:
        page = partial(ask_page, gap, account, token, min(PAGE, most - len(found)))
        try:
            answer = await patience.ask(gap.room_id, page)
        except (BusyError, LostError, RefusedError) as error:
            patience.note(error)
            return found[::-1], False
        chunk = tables(answer.get("chunk"))
        found += chunk
        token = text(answer.get("end")) if chunk else ""
    return found[::-1], not token


async def ask_page(
    gap: MatrixGap, account: MatrixAccount, token: str, size: int
) -> Json:
    """Ask for a page once."""
    query = {
        "dir": "b",
        "from": token,
        "to": gap.since,
        "limit": str(size),
        "filter": msgspec.json.encode({"types": FETCHED}).decode(),
    }
    path = path_of("rooms", gap.room_id, "messages")
    call = MatrixCall(method="GET", path=path, query=query, timeout=account.timeout)
    return await account.ask(call)
