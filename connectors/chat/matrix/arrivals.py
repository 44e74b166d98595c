"""What came from the homeserver for one account: room by room, in order."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from connectors.chat.faults import BusyError, LostError, RefusedError
from connectors.chat.loose_json import Json, table, text
from connectors.chat.matrix import backfill
from connectors.chat.matrix.backfill import Gap
from connectors.chat.matrix.events import Skipped, Spoken, read
from connectors.chat.matrix.handing import Handing, Heard
from connectors.chat.matrix.room_patience import RoomPatience
from connectors.chat.matrix.telling import tell
from runtime.logs import EventLog

if TYPE_CHECKING:
    from collections.abc import Sequence

    from actors.transport import Ingress
    from connectors.chat.faults import PlatformError
    from connectors.chat.matrix.account import MatrixAccount
    from connectors.chat.matrix.figures import Outcome
    from connectors.chat.matrix.room import Room
    from connectors.chat.matrix.shared import Shared
    from connectors.chat.matrix.wire import News

LOG = EventLog("matrix")

CANNOT_READ = (
    "This room is encrypted, and I cannot read it. Please write to me in a room"
    " that was made without encryption."
)

MOST_TOLD = 1_000
"""Encrypted rooms that are remembered to have been told."""


class Arrivals:
    """Brings in what one account hears.

    Args:
        account: which one.
        shared: what all accounts share.
    """

    def __init__(self, account: MatrixAccount, shared: Shared) -> None:
        self._account = account
        self._shared = shared
        self._handing = Handing(account, shared)
        self._patience = RoomPatience(account, self._note)
        self._told: dict[str, None] = {}

    async def take(
        self, room_id: str, news: News, since: str, ingress: Ingress
    ) -> None:
        """Bring in what happened in one room.

        Args:
            room_id: where.
            news: what.
            since: the token of the batch before.
            ingress: where messages are handed in.

        Raises:
            ShutOutError: the account is not let in.
        """
        room = await self._room(room_id, news)
        if room is None:
            return
        room.apply_all(news.state)
        came = arrival(news.timeline, self._account.user)
        for event in news.timeline[:came]:
            self._look_back(event, room_id, room)
        if news.is_limited and not came:
            gap = Gap(room_id, since, news.before)
            for event in await self._fill(gap):
                await self._take_event(event, room_id, room, ingress)
        for event in news.timeline[came:]:
            await self._take_event(event, room_id, room, ingress)
        room.note_joined(self._account.user)

    def _look_back(self, event: Json, room_id: str, room: Room) -> None:
        """Learn from what was there before the account."""
        room.apply(event)
        if isinstance(read(event, self._shared.users), Spoken):
            self._shared.quotes.learn_event(room_id, event)
            self._count("old")

    async def _room(self, room_id: str, news: News) -> Room | None:
        """Give a room; None if nobody can know it, or not in time."""
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

    async def _fill(self, gap: Gap) -> Sequence[Json]:
        most = self._shared.config.backfill
        events, is_filled = await backfill.fetch(
            gap, self._account, most, self._patience
        )
        self._note_gap(gap.room_id, len(events), is_filled=is_filled)
        return events

    def _note_gap(
        self, room_id: str, fetched: int, *, left: int = 0, is_filled: bool = False
    ) -> None:
        """Count a gap, and log it.

        Args:
            room_id: where.
            fetched: events that were fetched into it.
            left: events at hand that had to be left out, too.
            is_filled: whether nothing is missing.
        """
        self._shared.figures.gap(self._account.agent, is_filled=is_filled)
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
        if isinstance(spoken, Skipped):
            await self._skip(spoken, event, room_id)
        elif room.is_encrypted:
            # An answer would tell a server what the room keeps from it.
            self._count("encrypted_room")
            await self._refuse_encrypted(room_id)
        else:
            await self._hand_in(Heard(spoken, room_id, room), event, ingress)

    async def _hand_in(self, heard: Heard, event: Json, ingress: Ingress) -> None:
        shared, event_id = self._shared, heard.spoken.event_id
        if not await shared.seen.claim(event_id):
            self._count("seen")
            return
        try:
            shared.quotes.learn_event(heard.room_id, event)
            await self._handing.hand_in(heard, ingress)
            shared.seen.done(event_id)
        finally:
            shared.seen.give_back(event_id)

    async def _skip(self, skipped: Skipped, event: Json, room_id: str) -> None:
        self._count(skipped.reason)
        match skipped.reason:
            case "own":
                self._shared.quotes.learn_event(room_id, event)
            case "redaction":
                redacted = table(event.get("content")).get("redacts")
                event_id = text(redacted or event.get("redacts"))
                self._shared.quotes.forget(room_id, event_id)
            case "encrypted":
                if text(event.get("sender")) not in self._shared.users:
                    await self._refuse_encrypted(room_id)
            case _:
                pass

    async def _refuse_encrypted(self, room_id: str) -> None:
        """Say once in an encrypted room that it cannot be read."""
        if room_id in self._told or len(self._told) >= MOST_TOLD:
            return
        self._told[room_id] = None
        LOG.warning("room is encrypted", room=room_id, account=self._account.user)
        key = f"encrypted-{room_id}"
        await tell(room_id, CANNOT_READ, key, self._account)

    def _count(self, outcome: Outcome) -> None:
        self._shared.figures.event(self._account.agent, outcome)

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
