"""Routes of chats and rooms: read, follow, and send messages; on the edge's loop."""

from __future__ import annotations

import secrets
from functools import partial

import msgspec
from starlette.responses import RedirectResponse, Response
from starlette.routing import BaseRoute

from actors.commands.registry import COMMANDS
from connectors.files.blobs import BlobError
from connectors.web.page.chat.chats import (
    ROOM,
    PageChat,
    chats_for,
    find_chat,
    may_read,
)
from connectors.web.page.chat.hub import ChatParts, ElsewhereUpdate, MessageUpdate, Tab
from connectors.web.page.chat.messages import message_values
from connectors.web.page.event_stream import EventResponse, EventStream, EventStreams
from connectors.web.page.login_rows import new_token
from connectors.web.page.request import JSON, PageRoutes, PageVisit
from connectors.web.server import ApiError

SHOWN = 50
"""Messages on one page; older ones are a link away."""

MOST_FIND = 200
"""Characters of words to search for."""

MOST_PLACES = 100
"""Chats in the list beside a chat; a search in the list finds those."""

MOST_ABOUT = 20
"""Agents of a room that are described."""

MOST_KEY = 64
KEY_BYTES = 16


class ChatRoutes:
    """The routes of all chats."""

    def __init__(self, chat: ChatParts, streams: EventStreams) -> None:
        self._talk = chat.talk
        self._agents = chat.agents
        self._shown = chat.shown
        self._hub = chat.hub
        self._chat = chat
        self._streams = streams

    def routes(self, routes: PageRoutes) -> list[BaseRoute]:
        """Give them."""
        found: list[BaseRoute] = [
            routes.closed("GET", "/", self._first),
            routes.closed("GET", "/chat", self._first),
        ]
        for path in ("/chat/with/{agent}", "/chat/room/{room}"):
            found += [
                routes.closed("GET", path, self._show),
                routes.closed("POST", path, self._say),
                routes.closed("GET", f"{path}/events", self._stream),
            ]
        return found

    async def _first(self, visit: PageVisit) -> Response:
        places = self._places(visit)
        if not places:
            values = {"title": "Nobody is here", "text": "There is no agent yet."}
            return visit.page("error.html", values)
        return RedirectResponse(places[0].path, status_code=303)

    async def _show(self, visit: PageVisit) -> Response:
        place = self._place(visit)
        query = visit.request.query_params
        before, find = number(query.get("before", "")), query.get("find", "").strip()
        at = number(query.get("at", ""))
        if at:
            before = at + 1  # up to the message that was searched for
        if find:
            return await self._found(visit, place, find[:MOST_FIND])
        shown = await visit.ask(self._talk.shown, place.chat, before, SHOWN)
        lines = [
            await self._hub.off_loop(
                partial(
                    message_values,
                    each,
                    self._chat,
                    is_writing=each.id in shown.writing,
                )
            )
            for each in shown.messages
        ]
        values = {
            **await self._around(visit, place),
            "lines": lines,
            "at": at,
            "changed": shown.changed,
            "earlier": shown.messages[0].at if shown.has_more else 0,
            "is_newest": not before,
            "key": new_token(secrets.token_bytes(KEY_BYTES)),
        }
        return visit.page("chat.html", values)

    async def _around(self, visit: PageVisit, place: PageChat) -> dict[str, object]:
        """Give what stands around a chat: the others, who is in it, the commands."""
        places = self._places(visit)
        near = [each for each in places if each != place][:MOST_PLACES]
        near = sorted([*near, place], key=places.index)
        chats = tuple(each.chat for each in near)
        return {
            "place": place,
            "places": near,
            "hidden_places": len(places) - len(near),
            "latest": await visit.ask(self._talk.latest, chats),
            "about": [self._chat.about(each) for each in place.agents[:MOST_ABOUT]],
            "details": {
                each.chat: ""
                if each.is_room
                else self._chat.about(each.agents[0]).description
                for each in near
            },
            "commands": {f"/{word}": x.meaning for word, x in COMMANDS.items()},
            "found": None,
            "find": "",
        }

    async def _found(self, visit: PageVisit, place: PageChat, find: str) -> Response:
        """Show the messages that have some words, each a way to where it was said."""
        messages = await visit.ask(self._talk.found, place.chat, find)
        around = await self._around(visit, place)
        values: dict[str, object] = {
            **around,
            "found": messages,
            "find": find,
            "lines": [],
            "at": 0,
            "changed": 0,
            "earlier": 0,
            "is_newest": False,
            "key": "",
        }
        return visit.page("chat.html", values)

    async def _say(self, visit: PageVisit) -> Response:
        place = self._place(visit)
        text = visit.form.get("text", "").replace("\r\n", "\n").strip()
        key = visit.form.get("key", "")
        if not 0 < len(key) <= MOST_KEY:
            text = "the form has no key; load the page again"
            raise ApiError(400, text, code="bad_key")
        tokens = visit.form.get("files", "").split()
        uploads = self._chat.shelf.find(visit.person, tokens)
        if not text and not uploads:
            raise ApiError(400, "there is nothing to say", code="no_text")
        if not place.agents:
            raise ApiError(409, "no agent is in this room now", code="nobody_here")
        try:
            said = await visit.ask(
                self._talk.say, visit.person, place, text, key, uploads
            )
        except BlobError as error:
            raise ApiError(507, str(error), code="no_room") from error
        if not visit.wants_json:
            return RedirectResponse(place.path, status_code=303)
        return Response(
            msgspec.json.encode({"id": said.id}), status_code=202, media_type=JSON
        )

    async def _stream(self, visit: PageVisit) -> Response:
        place = self._place(visit)
        seen = visit.request.headers.get("last-event-id", "")
        start = number(seen or visit.request.query_params.get("after", ""))
        tell = partial(self._tell, visit, place.chat, start)
        return EventResponse(visit, self._streams, tell)

    async def _tell(
        self, visit: PageVisit, chat: str, last: int, stream: EventStream
    ) -> None:
        config, agents = visit.front.config, self._agents()

        def reads(other: str) -> bool:
            found = find_chat(other, config, agents)
            return found is not None and may_read(visit.person, found)

        tab = Tab(reads)
        self._hub.join(chat, tab)
        try:
            tab.has_missed = True  # changes since the page was loaded
            seen: int | None = last
            while seen is not None:
                seen = await self._tell_next(visit, chat, seen, stream, tab)
        finally:
            self._hub.leave(chat, tab)

    async def _tell_next(
        self, visit: PageVisit, chat: str, last: int, stream: EventStream, tab: Tab
    ) -> int | None:
        """Send one change; give the time up to which the tab has all; None: end."""
        if tab.has_missed:
            tab.has_missed = False
            return await self._catch_up(visit, chat, last, stream)
        told = await tab.next()
        if isinstance(told, ElsewhereUpdate):
            chats = {each.chat: each.path for each in self._places(visit)}
            body = msgspec.json.encode(
                {"path": chats.get(told.chat, ""), "changed": told.changed}
            )
            await stream.tell("elsewhere", body.decode())
            return last
        if not isinstance(told, MessageUpdate):
            body = msgspec.json.encode(
                {"agent": self._shown(told.agent), "over": told.is_over}
            )
            await stream.tell("writes", body.decode())
            return last
        if told.after > last:
            return await self._catch_up(visit, chat, last, stream)
        if told.changed <= last:
            return last
        await stream.tell("message", await told.html(visit.language), told.changed)
        return told.changed

    async def _catch_up(
        self, visit: PageVisit, chat: str, last: int, stream: EventStream
    ) -> int | None:
        """Send all changes since a time; None: too many, the tab reloads the page."""
        missed = await visit.ask(self._talk.since, chat, last)
        if missed is None:
            await stream.tell("again", "")
            return None
        for each in missed.messages:
            is_writing = each.id in missed.writing
            html = await self._hub.drawn(each, is_writing, visit.language)
            await stream.tell("message", html, each.changed)
        return missed.changed

    def _places(self, visit: PageVisit) -> list[PageChat]:
        config, agents = visit.front.config, self._agents()
        return list(chats_for(visit.person, config, agents, self._shown))

    def _place(self, visit: PageVisit) -> PageChat:
        """Find the chat that a path names."""
        named: dict[str, str] = visit.request.path_params
        room = named.get("room")
        chat = f"{visit.person}/{named.get('agent')}" if room is None else ROOM + room
        place = find_chat(chat, visit.front.config, self._agents(), self._shown)
        if place is None or not may_read(visit.person, place):
            text = "there is no such chat; an agent may have gone"
            raise ApiError(404, text, code="no_chat")
        return place


def number(text: str) -> int:
    """Read a number that a browser sent back; anything else is 0."""
    return int(text) if text.isascii() and text.isdecimal() and len(text) < 16 else 0
