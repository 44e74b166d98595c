"""A Matrix homeserver in memory, as far as the connector asks anything of it.

`FakeHomeserver` goes into `httpx.MockTransport` and works in virtual time. Events stand
in one list; a token is a place in it.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Callable
from typing import Any, NamedTuple
from urllib.parse import unquote

import httpx
import msgspec
import trio

Json = dict[str, Any]

BASE = "https://hs.test"
CLIENT = "/_matrix/client/"
UPLOAD = "/_matrix/media/v3/upload"


class Asked(NamedTuple):
    """One request, taken apart."""

    user: str
    path: str
    body: Json
    query: httpx.QueryParams
    parts: tuple[str, ...]
    """What of the path is no fixed word."""


def who_am_i(asked: Asked) -> object:
    """Say whose token it is."""
    return {"user_id": asked.user}


def refusal(status: int, code: str, **more: object) -> httpx.Response:
    """Answer with an error, as homeservers do."""
    return httpx.Response(status, json={"errcode": code, "error": "no", **more})


class FakeHomeserver:
    """Rooms, and who is in them."""

    def __init__(self) -> None:
        self.users: dict[str, str] = {}
        """By token."""

        self.passwords: dict[str, str] = {}
        self.events: list[Json] = []
        self.media: dict[str, bytes] = {}
        self.asked: list[str] = []
        """`user method path` of each request, in order."""

        self.faults: deque[tuple[str, httpx.Response | Exception]] = deque()
        """What the next request whose path holds this text gets instead."""

        self.uploads: list[tuple[str, bytes]] = []
        """What was brought here, with its name."""

        self.most_upload = 50_000_000
        self.read: dict[tuple[str, str], str] = {}
        """By room and account: up to which event it has read."""

        self.is_down = False
        self.open_rooms: set[str] = set()
        """Rooms that anybody may join."""

        self.typing: list[tuple[str, str, bool]] = []
        self.logins = 0
        self._sent: dict[tuple[str, str], str] = {}
        self._changed = trio.Event()

    # --- what people do -----------------------------------------------------------

    def user(self, user: str) -> str:
        """Make an account; gives its token."""
        token = f"token-of-{user}"
        self.users[token] = user
        return token

    def room(self, room_id: str, *members: str, encrypted: bool = False) -> str:
        """Make a room whose members are all in it."""
        for member in members:
            self.member(room_id, member, "join")
        if encrypted:
            self.state(room_id, members[0], "m.room.encryption", {"algorithm": "a"})
        return room_id

    def member(self, room_id: str, user: str, membership: str, by: str = "") -> None:
        """Change who is in a room."""
        before = self.membership(room_id, user)
        event = self.state(
            room_id, by or user, "m.room.member", {"membership": membership}, user
        )
        if before:
            event["unsigned"] = {"prev_content": {"membership": before}}

    def state(
        self, room_id: str, sender: str, kind: str, content: Json, key: str = ""
    ) -> Json:
        """Change a room."""
        event = self.add(room_id, sender, kind, content)
        event["state_key"] = key
        return event

    def add(
        self, room_id: str, sender: str, kind: str, content: Json, event_id: str = ""
    ) -> Json:
        """Have something happen."""
        event: Json = {
            "event_id": event_id or f"$e{len(self.events)}",
            "room_id": room_id,
            "sender": sender,
            "type": kind,
            "content": content,
            "origin_server_ts": len(self.events),
        }
        self.events.append(event)
        self.note_change()
        return event

    def say(self, room_id: str, sender: str, body: str, **content: object) -> str:
        """Have somebody write; gives the event's id."""
        said: Json = {"msgtype": "m.text", "body": body, **content}
        return str(self.add(room_id, sender, "m.room.message", said)["event_id"])

    def note_change(self) -> None:
        """Wake whoever waits for news."""
        self._changed.set()
        self._changed = trio.Event()

    async def wait_change(self) -> None:
        """Wait until something happens."""
        await self._changed.wait()

    # --- what is there --------------------------------------------------------------

    def membership(self, room_id: str, user: str) -> str:
        """Give what somebody is in a room."""
        return self.membership_at(room_id, user, len(self.events))

    def membership_at(self, room_id: str, user: str, place: int) -> str:
        """Give what somebody was in a room."""
        for event in reversed(self.events[:place]):
            is_it = event["type"] == "m.room.member" and event.get("state_key") == user
            if is_it and event["room_id"] == room_id:
                return str(event["content"]["membership"])
        return ""

    def said(self, room_id: str, *senders: str) -> list[Json]:
        """Give the messages of a room, by these or by anybody."""
        return [
            event
            for event in self.events
            if event["room_id"] == room_id
            and event["type"] == "m.room.message"
            and (not senders or event["sender"] in senders)
        ]

    def contents(self, room_id: str, sender: str) -> list[Json]:
        """Give the contents of all that somebody sent."""
        return [
            event["content"]
            for event in self.events
            if (event["room_id"], event["sender"]) == (room_id, sender)
        ]

    def count(self, text: str) -> int:
        """Count the requests with this text."""
        return sum(text in each for each in self.asked)

    # --- the wire ---------------------------------------------------------------------

    @property
    def network(self) -> httpx.MockTransport:
        """What carries requests here."""
        return httpx.MockTransport(self.handle)

    async def handle(self, request: httpx.Request) -> httpx.Response:
        """Answer one request."""
        await trio.lowlevel.checkpoint()
        path = unquote(request.url.path)
        if self.is_down:
            raise httpx.ConnectError("connection refused")
        for fault in tuple(self.faults):
            if fault[0] in f"{request.method} {path}":
                self.faults.remove(fault)
                if isinstance(fault[1], Exception):
                    raise fault[1]
                return fault[1]
        token = request.headers.get("authorization", "").removeprefix("Bearer ")
        user = self.users.get(token, "")
        self.asked.append(f"{user} {request.method} {path}")
        if path == UPLOAD and user:
            return await self._upload(request)
        body: Json = msgspec.json.decode(await request.aread() or b"{}")
        if path.endswith("/login"):
            return self._log_in(body)
        if not user:
            return refusal(401, "M_UNKNOWN_TOKEN")
        return await self._answer(request, path, user, body)

    async def _answer(
        self, request: httpx.Request, path: str, user: str, body: Json
    ) -> httpx.Response:
        if path == f"{CLIENT}v3/sync":
            return httpx.Response(200, json=await self._sync(request, user))
        steps: tuple[tuple[str, Callable[[Asked], object]], ...] = (
            ("v3/account/whoami", who_am_i),
            ("v3/rooms/([^/]+)/state", self._state),
            ("v3/rooms/([^/]+)/state/m.room.tombstone", self._tombstone),
            ("v3/join/([^/]+)", self._enter),
            ("v3/rooms/([^/]+)/messages", self._page),
            ("v3/rooms/([^/]+)/event/([^/]+)", self._event),
            ("v3/rooms/([^/]+)/(join|leave)", self._move),
            ("v3/rooms/([^/]+)/send/([^/]+)/(.+)", self._send),
            ("v3/rooms/([^/]+)/redact/([^/]+)/(.+)", self._redact),
            ("v3/rooms/([^/]+)/typing/([^/]+)", self._type),
            ("v3/rooms/([^/]+)/receipt/m.read/([^/]+)", self._receipt),
            ("v1/rooms/([^/]+)/relations/([^/]+)/.+", self._relations),
            ("v3/presence/([^/]+)/status", who_am_i),
            ("v1/media/download/(.+)", self._media),
        )
        for pattern, answer in steps:
            found = re.fullmatch(CLIENT + pattern, path)
            if found is not None:
                asked = Asked(user, path, body, request.url.params, found.groups())
                said = answer(asked)
                if isinstance(said, httpx.Response):
                    return said
                return httpx.Response(200, json=said)
        return refusal(404, "M_UNRECOGNIZED")

    def _log_in(self, body: Json) -> httpx.Response:
        user = str(body["identifier"]["user"])
        if self.passwords.get(user) != body["password"]:
            return refusal(403, "M_FORBIDDEN")
        self.logins += 1
        token = f"login-{self.logins}-of-{user}"
        self.users[token] = user
        return httpx.Response(200, json={"access_token": token, "user_id": user})

    def _state(self, asked: Asked) -> object:
        (room_id,), user = asked.parts, asked.user
        if self.membership(room_id, user) != "join":
            return refusal(403, "M_FORBIDDEN")
        newest: dict[tuple[str, str], Json] = {}
        for event in self.events:
            if event["room_id"] == room_id and "state_key" in event:
                newest[event["type"], event["state_key"]] = event
        return [*newest.values()]

    def _tombstone(self, asked: Asked) -> object:
        (room_id,), user = asked.parts, asked.user
        if self.membership(room_id, user) != "join":
            return refusal(403, "M_FORBIDDEN")
        for event in reversed(self.events):
            if (event["room_id"], event["type"]) == (room_id, "m.room.tombstone"):
                return event["content"]
        return refusal(404, "M_NOT_FOUND")

    def _enter(self, asked: Asked) -> object:
        (room_id,), user = asked.parts, asked.user
        if (
            room_id not in self.open_rooms
            and self.membership(room_id, user) != "invite"
        ):
            return refusal(403, "M_FORBIDDEN")
        self.member(room_id, user, "join")
        return {"room_id": room_id}

    def _page(self, asked: Asked) -> object:
        (room_id,), query = asked.parts, asked.query
        start, stop = place_of(query["from"]), place_of(query["to"])
        kinds = msgspec.json.decode(query["filter"])["types"]
        found = [
            (place, event)
            for place, event in enumerate(self.events[:start])
            if place >= stop and event["room_id"] == room_id and event["type"] in kinds
        ][::-1]
        most = int(query["limit"])
        page: Json = {"chunk": [event for _, event in found[:most]]}
        if len(found) > most:
            page["end"] = f"s{found[most - 1][0]}"
        return page

    def _event(self, asked: Asked) -> object:
        room_id, event_id = asked.parts
        for event in self.events:
            if (event["room_id"], event["event_id"]) == (room_id, event_id):
                return event
        return refusal(404, "M_NOT_FOUND")

    def _move(self, asked: Asked) -> object:
        room_id, what = asked.parts
        self.member(room_id, asked.user, what)
        return {"room_id": room_id}

    def _send(self, asked: Asked) -> object:
        (room_id, kind, _), user = asked.parts, asked.user
        if self.membership(room_id, user) != "join":
            return refusal(403, "M_FORBIDDEN")
        related = asked.body.get("m.relates_to", {}).get("event_id")
        if related and all(event["event_id"] != related for event in self.events):
            return refusal(400, "M_UNKNOWN")
        if kind == "m.reaction" and asked.body in self.contents(room_id, user):
            return refusal(400, "M_DUPLICATE_ANNOTATION")
        key = (user, asked.path)
        if key not in self._sent:
            event = self.add(room_id, user, kind, asked.body)
            self._sent[key] = str(event["event_id"])
        return {"event_id": self._sent[key]}

    def _redact(self, asked: Asked) -> object:
        room_id, event_id, _ = asked.parts
        for event in self.events:
            if event["event_id"] == event_id:
                event["content"] = {}
        said = self.add(room_id, asked.user, "m.room.redaction", {"redacts": event_id})
        return {"event_id": said["event_id"]}

    def _type(self, asked: Asked) -> object:
        room_id, user = asked.parts
        self.typing.append((room_id, user, bool(asked.body["typing"])))
        self.note_change()
        return {}

    def _receipt(self, asked: Asked) -> object:
        room_id, event_id = asked.parts
        self.read[room_id, asked.user] = event_id
        return {}

    def _relations(self, asked: Asked) -> object:
        room_id, event_id = asked.parts
        found = [
            event
            for event in self.events
            if event["room_id"] == room_id
            and event["content"].get("m.relates_to", {}).get("event_id") == event_id
        ]
        return {"chunk": found}

    async def _upload(self, request: httpx.Request) -> httpx.Response:
        content = await request.aread()
        if len(content) != int(request.headers["content-length"]):
            return refusal(400, "M_BAD_REQUEST")
        if len(content) > self.most_upload:
            return refusal(413, "M_TOO_LARGE")
        name = f"hs.test/file{len(self.uploads)}"
        self.uploads.append((request.url.params["filename"], content))
        self.media[name] = content
        return httpx.Response(200, json={"content_uri": f"mxc://{name}"})

    def _media(self, asked: Asked) -> object:
        (name,) = asked.parts
        if name not in self.media:
            return refusal(404, "M_NOT_FOUND")
        return httpx.Response(200, content=self.media[name])

    # --- sync -------------------------------------------------------------------------

    async def _sync(self, request: httpx.Request, user: str) -> Json:
        query = request.url.params
        since = place_of(query["since"]) if "since" in query else -1
        wanted = msgspec.json.decode(query["filter"])["room"]["timeline"]
        with trio.move_on_after(int(query["timeout"]) / 1000):
            while since >= 0 and not self._concerns(user, since):
                await self._changed.wait()
        rooms: Json = {"join": {}, "invite": {}, "leave": {}}
        for room_id in {str(event["room_id"]) for event in self.events}:
            self._tell(rooms, room_id, user, (since, wanted))
        return {"next_batch": f"s{len(self.events)}", "rooms": rooms}

    def _concerns(self, user: str, since: int) -> bool:
        return any(
            self.membership(event["room_id"], user) == "join"
            or event.get("state_key") == user
            for event in self.events[since:]
        )

    def _tell(
        self, rooms: Json, room_id: str, user: str, span: tuple[int, Json]
    ) -> None:
        since, wanted = span
        start = max(since, 0)
        fresh = [e for e in self.events[start:] if e["room_id"] == room_id]
        membership = self.membership(room_id, user)
        if not fresh:
            return
        if membership == "invite" and any(e.get("state_key") == user for e in fresh):
            state = [e for e in self.events if e["room_id"] == room_id]
            kept = [e for e in state if "state_key" in e]
            rooms["invite"][room_id] = {"invite_state": {"events": kept}}
        elif membership == "join":
            rooms["join"][room_id] = self._news(room_id, user, start, wanted)
        elif membership == "leave" and any(e.get("state_key") == user for e in fresh):
            rooms["leave"][room_id] = {}

    def _news(self, room_id: str, user: str, since: int, wanted: Json) -> Json:
        was_there = self.membership_at(room_id, user, since) == "join"
        begin = since if was_there else 0
        places = [
            place
            for place, event in enumerate(self.events)
            if place >= begin and event["room_id"] == room_id
            if event["sender"] in wanted.get("senders", [event["sender"]])
            if event["type"] in wanted["types"]
        ]
        shown = places[-wanted["limit"] :]
        before = [self.events[p] for p in places[: len(places) - len(shown)]]
        return {
            "timeline": {
                "events": [self.events[place] for place in shown],
                "limited": len(places) > len(shown),
                "prev_batch": f"s{shown[0] if shown else begin}",
            },
            "state": {"events": [e for e in before if "state_key" in e]},
        }


def place_of(token: str) -> int:
    """Read a token."""
    return int(token.removeprefix("s"))
