"""What agents did about the messages of one connector; read on the kernel's side.

Read from the rows of each message, the journal of its turn and the ledger, and kept
nowhere else. Messages, and with them their runs, are forgotten some days after they
were settled. Nobody is shown the runs of a channel that they may not see.
"""

from __future__ import annotations

from contextlib import aclosing
from typing import TYPE_CHECKING, Literal
from uuid import UUID

import msgspec
import trio
from msgspec import structs

from actors import records
from actors.deliveries import Delivery
from actors.messages import Inbound
from actors.records import UsageRecord
from actors.rules.keys import session_key
from connectors.web.eliza.errors import missing
from connectors.web.eliza.perspective import as_ulid
from connectors.web.eliza.run_shapes import Run, RunStatus, steps_of

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from connectors.web.backstage import Backstage
    from connectors.web.eliza.channels import Channels
    from connectors.web.eliza.keys import Caller
    from connectors.web.eliza.memories import Memories
    from connectors.web.eliza.shapes import Channel
    from runtime.rows import Answered, StoredRecord
    from runtime.store import Store

PAGE = 50
"""Messages read at once: each may have its files with it."""

MOST_PAGES = 40
"""Of one room for one question."""

MOST_USAGE = 1_000
"""Rows of the ledger looked through: an agent's newest."""

REORDERED = 60_000
"""Milliseconds by which a message may be stored later than its id was made."""

MOST_STEPS = 200
"""Steps of one run that are shown."""


class Wanted(msgspec.Struct, frozen=True, kw_only=True):
    """Which runs are wanted."""

    status: RunStatus | Literal["all"] = "all"
    begin: int = 0
    """Milliseconds."""

    end: int = 0
    """Milliseconds; 0: up to now."""

    limit: int = 20

    def fits(self, run: Run) -> bool:
        """Whether a run is one of them."""
        is_in_time = run.started_at >= self.begin
        if self.end:
            is_in_time = is_in_time and run.started_at <= self.end
        return is_in_time and self.status in {"all", run.status}


class Runs:
    """Reads them.

    Args:
        connector: its name.
        channels: knows the agents.
        memories: knows the agents' rooms.
        store: the database.
        backstage: the settings.
    """

    def __init__(
        self,
        connector: str,
        channels: Channels,
        memories: Memories,
        store: Store,
        backstage: Backstage,
    ) -> None:
        self._connector = connector
        self._channels = channels
        self._memories = memories
        self._store = store
        self._backstage = backstage

    async def listed(
        self, caller: Caller, agent_id: str, room: str, wanted: Wanted
    ) -> tuple[list[Run], bool]:
        """Give runs of an agent, the newest first, and whether there are more.

        Args:
            caller: whoever asks.
            agent_id: which agent's.
            room: id of the channel or room; empty: those that changed last.
            wanted: which runs.

        Raises:
            ApiError: 404, 403.
            StoreError: the disk fails.
        """
        used = await self._used(agent_id)
        found: list[Run] = []
        for channel in self._memories.asked(caller, agent_id, room):
            found += await self._some(agent_id, channel, used, wanted)
        found.sort(key=lambda each: -each.started_at)
        shown = [await self._whole(each) for each in found[: wanted.limit]]
        return shown, len(found) > wanted.limit

    async def one(self, caller: Caller, agent_id: str, run_id: str, room: str) -> Run:
        """Give one run with all of its steps.

        Raises:
            ApiError: 404, 403.
            StoreError: the disk fails.
        """
        name, used = as_ulid(run_id), await self._used(agent_id)
        made = UUID(run_id).int >> 80  # milliseconds: a ULID begins with its time
        for channel in self._memories.asked(caller, agent_id, room):
            async with aclosing(self._of_room(agent_id, channel, used)) as runs:
                async for run in runs:
                    if run.inbound.id == name:
                        return await self._whole(run)
                    if run.row.at * 1000 < made - REORDERED:
                        break
        raise missing("run", run_id)

    async def _some(
        self,
        agent_id: str,
        channel: Channel,
        used: dict[str, UsageRecord],
        wanted: Wanted,
    ) -> list[Run]:
        """Give runs of one room: one more than are wanted, if there are."""
        found: list[Run] = []
        async with aclosing(self._of_room(agent_id, channel, used)) as runs:
            async for run in runs:
                if len(found) > wanted.limit or run.started_at < wanted.begin:
                    break
                if wanted.fits(run):
                    found.append(run)
        return found

    async def _of_room(
        self, agent_id: str, channel: Channel, used: dict[str, UsageRecord]
    ) -> AsyncGenerator[Run]:
        agent, before = self._channels.need_agent(agent_id), 0
        for _ in range(MOST_PAGES):
            stream = f"{self._connector}/{channel.id}"
            page = await self._store.exchanges(stream, before, PAGE)
            # Why a thread: a page may be megabytes, and chats wait for this one.
            heard, said_by = await trio.to_thread.run_sync(read_page, page)
            for each, inbound in heard:
                usage = used.get(inbound.id)
                who = inbound.agent or said_by.get(inbound.id, "")
                who = who or (agent if usage is not None else sole(inbound))
                is_unheard = usage is None and each.message.state == "dropped"
                if who == agent and not is_unheard:
                    row = structs.replace(each.message, body=b"")
                    yield Run(agent_id=agent_id, inbound=inbound, row=row, used=usage)
            if len(page) < PAGE:
                return
            before = page[-1].message.number

    async def _whole(self, run: Run) -> Run:
        """Read the steps of a run."""
        agent = self._channels.need_agent(run.agent_id)
        scope = self._backstage.services.sessions.session_scope
        key = session_key(run.inbound, agent, scope).text
        events = await self._store.read(f"{key}/{run.inbound.id}", 0, MOST_STEPS)
        return structs.replace(run, steps=steps_of(events))

    async def _used(self, agent_id: str) -> dict[str, UsageRecord]:
        """Read what the ledger has of an agent's messages, by their ids."""
        agent = self._channels.need_agent(agent_id)
        rows = await self._store.records(records.USAGE, agent, limit=MOST_USAGE)
        return await trio.to_thread.run_sync(used_in, rows)


def used_in(rows: tuple[StoredRecord, ...]) -> dict[str, UsageRecord]:
    """Read the ledger's rows, by the ids of messages; of each the last attempt."""
    found: dict[str, UsageRecord] = {}
    for row in rows:
        name = row.id.partition("#")[0]
        if name not in found:
            try:
                found[name] = msgspec.json.decode(row.body, type=UsageRecord)
            except (msgspec.MsgspecError, UnicodeDecodeError):
                continue
    return found


def read_page(
    page: tuple[Answered, ...],
) -> tuple[list[tuple[Answered, Inbound]], dict[str, str]]:
    """Read messages, and say who answered which."""
    read = [(each, inbound_of(each)) for each in page]
    heard = [(each, inbound) for each, inbound in read if inbound is not None]
    return heard, agents_in(page)


def inbound_of(answered: Answered) -> Inbound | None:
    """Read a message, without its files; None: it is of another release."""
    try:
        read = msgspec.json.decode(answered.message.body, type=Inbound)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return None
    return structs.replace(read, attachments=(), history=())


def agents_in(page: tuple[Answered, ...]) -> dict[str, str]:
    """Say who answered which message, by the ids of deliveries."""
    found: dict[str, str] = {}
    for row in (delivery for each in page for delivery in each.deliveries):
        try:
            delivery = msgspec.json.decode(row.body, type=Delivery)
        except (msgspec.MsgspecError, UnicodeDecodeError):
            continue
        if delivery.agent:
            found.setdefault(row.id.partition(":")[0], delivery.agent)
    return found


def sole(inbound: Inbound) -> str:
    """Give the one agent that can have heard a message; empty: there are several."""
    return inbound.present[0] if len(inbound.present) == 1 else ""
