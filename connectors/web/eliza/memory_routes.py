"""What agents remember over HTTP: read, changed and forgotten.

What was said (`tableName=messages`) is shown as it stands in the channels; what an
agent has taken note of (`facts`, `lessons`, …; `memories` is all of it) as it stands in
its memory. Only the latter is changed and deleted one by one: what was said belongs to
its channel, and to a conversation that an agent forgets as a whole or not at all.
Vectors are not shown, whatever `includeEmbedding` says.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from connectors.web.eliza.asked import MemoryChange
from connectors.web.eliza.desk import both, ok
from connectors.web.eliza.errors import wrong
from connectors.web.eliza.forgetting import never_changed
from connectors.web.eliza.ids import is_uuid, to_uuid
from connectors.web.eliza.memories import Look
from connectors.web.eliza.memory_shapes import (
    SAID,
    TABLES,
    fact_shown,
    said_shown,
)
from connectors.web.eliza.times import milliseconds
from connectors.web.errors import ApiError

if TYPE_CHECKING:
    from starlette.responses import Response
    from starlette.routing import BaseRoute

    from connectors.web.eliza.desk import Call, Desk
    from connectors.web.eliza.keys import Caller
    from connectors.web.eliza.parts import Parts
    from connectors.web.eliza.shapes import Channel, Json
    from runtime.fact_rows import StoredFact

API = "/api/memory"

MOST_GIVEN = 500
"""Memories of one answer."""

MOST_PASSED = 10_000
"""Memories that one page may skip."""


class MemoryRoutes:
    """What is asked about memories.

    Args:
        parts: as of all routes.
    """

    def __init__(self, parts: Parts) -> None:
        self._channels = parts.channels
        self._memories = parts.memories
        self._forgetting = parts.forgetting
        self._history = parts.speech.history

    def routes(self, desk: Desk) -> list[BaseRoute]:
        """Give the routes; `all/:room` stands before what would take it for an id."""
        own = f"{API}/{{agent}}/memories"
        one, room = f"{own}/{{memory}}", f"{own}/all/{{room}}"
        there = f"{API}/{{agent}}/rooms/{{room}}/memories"
        return [
            desk.route("GET", own, "read", self.page),
            desk.route("DELETE", own, "manage", self.clear_all),
            desk.route("DELETE", room, "manage", self.clear),
            desk.route("PATCH", one, "manage", self.change),
            desk.route("DELETE", one, "manage", self.forget),
            desk.route("GET", there, "read", self.of_room),
        ]

    async def page(self, call: Call) -> Response:
        """Give memories of an agent, of one room or of those that changed last."""
        names = [call.query("roomId"), call.query("channelId")]
        return await self._page(call, next(filter(None, names), ""), 50)

    async def of_room(self, call: Call) -> Response:
        """Give memories of one room."""
        return await self._page(call, call.id("room"), 20)

    async def change(self, call: Call) -> Response:
        """Let something that was taken note of read otherwise."""
        text = text_in(call.read(MemoryChange))
        fact = await call.ask(
            self._fact, call.caller, agent_in(call), call.id("memory")
        )
        row = await call.ask(self._forgetting.change, fact, text)
        changed = msgspec.structs.replace(
            fact,
            text=row.text,
            category=row.category,
            key=row.key,
            created_at=call.front.clock.wall(),
        )
        shown = fact_shown(agent_in(call), changed)
        return ok(shown | {"message": "Memory updated"})

    async def forget(self, call: Call) -> Response:
        """Forget something that was taken note of."""
        fact = await call.ask(
            self._fact, call.caller, agent_in(call), call.id("memory")
        )
        await call.ask(self._forgetting.forget, fact)
        return both({"message": "Memory deleted"})

    async def clear(self, call: Call) -> Response:
        """Have an agent forget a room; it begins anew there."""
        agent_id, room_id = agent_in(call), call.id("room")

        async def clear() -> int:
            room = self._memories.room(call.caller, agent_id, room_id)
            return await self._clear(call.caller, agent_id, (room,))

        return both({"deleted": await call.ask(clear)})

    async def clear_all(self, call: Call) -> Response:
        """Have an agent forget all rooms that this key may see."""
        agent_id = agent_in(call)

        async def clear() -> int:
            rooms = self._memories.rooms(call.caller, agent_id)
            return await self._clear(call.caller, agent_id, rooms)

        count = await call.ask(clear)
        return both({"deleted": count, "message": f"{count} memories deleted"})

    async def _clear(
        self, caller: Caller, agent_id: str, rooms: tuple[Channel, ...]
    ) -> int:
        count = 0
        for room in rooms:
            count += await self._forgetting.clear(caller, agent_id, room)
        return count

    async def _page(self, call: Call, room_id: str, usual: int) -> Response:
        if room_id and not is_uuid(room_id):
            raise wrong(f"{room_id!r} is no UUID", "roomId")
        table = table_in(call)
        look, agent_id = look_in(call, usual), agent_in(call)

        async def read() -> list[Json]:
            rooms = self._memories.asked(call.caller, agent_id, room_id.lower())
            if table == SAID:
                said = await self._memories.said(agent_id, rooms, look)
                return [said_shown(agent_id, *each) for each in said]
            names = await self._memories.scopes(call.caller, rooms)
            kinds = TABLES[table]
            facts = await self._memories.facts(agent_id, names, kinds, look)
            return [fact_shown(agent_id, each) for each in facts]

        return ok({"memories": await call.ask(read)})

    async def _fact(self, caller: Caller, agent_id: str, memory_id: str) -> StoredFact:
        """Give what was taken note of.

        Raises:
            ApiError: 404; 409: it is something that was said.
        """
        try:
            return await self._memories.fact(caller, agent_id, memory_id)
        except ApiError:
            rooms = self._memories.asked(caller, agent_id, "")
            said = await self._memories.said(agent_id, rooms, Look(limit=MOST_GIVEN))
            if any(
                memory_id in {each.id, said_shown(agent_id, room, each)["id"]}
                for room, each in said
            ):
                raise never_changed(memory_id) from None
            raise


def agent_in(call: Call) -> str:
    """Give the id of the agent that a path names, by its id or its name."""
    return to_uuid(call.request.path_params["agent"])


def table_in(call: Call) -> str:
    """Say which table is meant.

    Raises:
        ApiError: 400: there is none of this name.
    """
    table = (call.query("tableName") or call.query("type") or SAID).lower()
    for known in (SAID, *TABLES):
        if table in {known, known.removesuffix("s")}:
            return known
    text = f"{table!r} is no table; there are: {', '.join((SAID, *TABLES))}"
    raise wrong(text, "tableName")


def look_in(call: Call, usual: int) -> Look:
    """Say which memories are wanted.

    Raises:
        ApiError: 400: a number or time is none.
    """
    limit = call.number(
        "limit", call.number("count", usual, 1, MOST_GIVEN), 1, MOST_GIVEN
    )
    page = call.number("page", 1, 1, MOST_PASSED)
    skipped = min((page - 1) * limit, MOST_PASSED)
    before = milliseconds(call.query("before"), "before")
    return Look(
        before=before or milliseconds(call.query("to"), "to"),
        after=milliseconds(call.query("after") or call.query("from"), "from"),
        search=call.query("search"),
        limit=limit,
        offset=call.number("offset", skipped, 0, MOST_PASSED),
    )


def text_in(asked: MemoryChange) -> str:
    """Give the new words of a memory.

    Raises:
        ApiError: 400: there are none, or something else is to change.
    """
    given = asked.content
    text = given.get("text") if isinstance(given, dict) else given
    if not isinstance(text, str) or not text.strip():
        raise wrong("is missing: write {content: {text: …}}", "content")
    if asked.metadata:
        raise wrong("is not kept with a memory; only its text changes", "metadata")
    return text
