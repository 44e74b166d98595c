"""A Slack workspace in memory, as far as the connector asks anything of it.

`FakeSlack` answers methods of the Web API given as forms, as Slack gets them, and has
connections of Socket Mode. Over it stand `line.py`, which works in virtual time,
and `server.py`, which slack_sdk itself talks to.
"""

from __future__ import annotations

import json
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field

import trio

from tests.fakes.slack.files import SlackFiles
from tests.fakes.slack.replies import (
    NOT_FOUND,
    TEAM,
    Json,
    Reply,
    event_body,
    is_top,
    ok,
    page,
    pressed,
    refusal,
)


@dataclass
class App:
    """One app that is installed."""

    user: str
    bot: str
    token: str
    app_token: str
    links: list[Link] = field(default_factory=list["Link"])
    waiting: list[Json] = field(default_factory=list[Json])
    """Envelopes that nobody acknowledged."""


class Link:
    """One connection of Socket Mode, as Slack has it."""

    def __init__(self, app: App, ticket: str) -> None:
        self.app = app
        self.ticket = ticket
        self.queue: deque[str | Exception] = deque()
        self.is_closed = False
        self.on_news: Callable[[], object] = int

    def send(self, said: Json | str) -> None:
        """Put something on its way to the app."""
        self.queue.append(said if isinstance(said, str) else json.dumps(said))
        self.on_news()

    def drop(self, error: Exception | None = None) -> None:
        """End it, as a network does."""
        self.is_closed = True
        if self in self.app.links:
            self.app.links.remove(self)
        self.queue.append(error or ConnectionResetError())
        self.on_news()


class FakeSlack:
    """Channels, people and apps."""

    def __init__(self) -> None:
        self.apps: dict[str, App] = {}
        """By the id of the app's user."""

        self.people: dict[str, Json] = {}
        self.channels: dict[str, list[Json]] = {}
        """Messages by channel, oldest first."""

        self.members: dict[str, list[str]] = {}
        self.files: dict[str, bytes] = {}
        self.uploads = SlackFiles(self)
        self.asked: list[tuple[str, str, Json]] = []
        """Method, the app's user, and arguments of each call."""

        self.faults: deque[tuple[str, Reply | Exception]] = deque()
        """What the next call of a method gets instead."""

        self.after: deque[tuple[str, Exception]] = deque()
        """What the next call of a method gets though it was carried out."""

        self.acknowledged: list[str] = []
        """Envelopes, in order."""

        self.whispers: list[tuple[str, str, str]] = []
        """What apps told one person alone: the app's user, the person, the words."""

        self.responses: list[tuple[str, Json]] = []
        """What came to addresses for answers to commands."""

        self.used_up: set[str] = set()
        """Addresses for answers at which nothing is taken any more."""

        self.statuses: list[tuple[str, str, str]] = []
        self.tickets: dict[str, App] = {}
        self.sends_again = True
        """Whether a new connection gets what was not acknowledged."""

        self.is_deaf = False
        """Whether events get lost, as while nobody is connected."""

        self._made = 0
        self._start = int(time.time())  # noqa: TID251  ts of now, as Slack's are
        self._changed = trio.Event()

    # --- what people do -----------------------------------------------------------

    def app(self, name: str) -> App:
        """Install an app; its user is `U` and the name."""
        user = f"U{name.upper()}"
        app = App(user, f"B{name.upper()}", f"xoxb-{name}", f"xapp-{name}")
        self.apps[user] = app
        return app

    def channel(self, channel: str, *members: str) -> str:
        """Make a channel, or a direct chat."""
        self.channels[channel] = []
        self.members[channel] = list(members)
        return channel

    def person(self, user: str, name: str, **more: object) -> str:
        """Have somebody join the workspace."""
        self.people[user] = {"id": user, "profile": {"display_name": name}, **more}
        return user

    def say(self, channel: str, user: str, text: str, **more: object) -> str:
        """Have somebody write; gives the `ts`."""
        message = self.add(channel, {"user": user, "text": text, **more})
        self.tell(channel, message)
        return str(message["ts"])

    def add(self, channel: str, message: Json) -> Json:
        """Keep a message, and tell nobody."""
        ts = message.get("ts") or self.new_ts()
        message = {"type": "message", **message, "ts": ts}
        self.channels[channel].append(message)
        parent = self.find(channel, str(message.get("thread_ts", "")))
        if parent is not None and parent is not message:
            parent["latest_reply"] = ts
            parent["thread_ts"] = parent["ts"]
            message["parent_user_id"] = parent.get("user", "")
        self.note_change()
        return message

    def tell(self, channel: str, message: Json, kind: str = "message") -> None:
        """Tell every app that is there of a message."""
        event = {
            **message,
            "type": kind,
            "channel": channel,
            "channel_type": "im" if channel.startswith("D") else "channel",
        }
        for app in self.apps.values():
            if app.user in self.members[channel]:
                self.push(app, "events_api", event_body(event, self.new_id()))

    def press(self, channel: str, user: str, number: int, ts: str = "") -> str:
        """Have somebody press a button of a message; gives the envelope's id."""
        message = self.find(channel, ts) or self.said(channel)[-1]
        app = next(a for a in self.apps.values() if a.bot == message["bot_id"])
        rows = [each for each in message["blocks"] if each["type"] == "actions"]
        action = rows[0]["elements"][number]
        return self.push(app, "interactive", pressed(message, channel, user, action))

    def push(self, app: App, kind: str, payload: Json) -> str:
        """Send an app an envelope; gives its id."""
        envelope = {
            "type": kind,
            "envelope_id": self.new_id(),
            "payload": payload,
            "accepts_response_payload": kind == "slash_commands",
        }
        if self.is_deaf:
            return str(envelope["envelope_id"])
        app.waiting.append(envelope)
        if app.links:
            app.links[-1].send(envelope)
        return str(envelope["envelope_id"])

    def take(self, link: Link, said: str) -> None:
        """Take what an app sends by its connection."""
        envelope = json.loads(said)["envelope_id"]
        link.app.waiting = [
            each for each in link.app.waiting if each["envelope_id"] != envelope
        ]
        self.acknowledged.append(envelope)
        self.note_change()

    def send_again(self) -> None:
        """Send what was not acknowledged once more."""
        for app in self.apps.values():
            for envelope in app.waiting:
                if app.links:
                    app.links[-1].send({**envelope, "retry_attempt": 1})

    def connect(self, ticket: str) -> Link | None:
        """Open a connection by its one-time ticket; None: it is used up."""
        app = self.tickets.pop(ticket, None)
        if app is None:
            return None
        link = Link(app, ticket)
        app.links.append(link)
        hello: Json = {"type": "hello", "num_connections": len(app.links)}
        link.send({**hello, "debug_info": {}, "connection_info": {"app_id": "A1"}})
        if self.sends_again:
            for envelope in app.waiting:
                link.send({**envelope, "retry_attempt": 1})
        self.note_change()
        return link

    def respond(self, url: str, said: Json) -> int:
        """Take what comes to an address for answers; gives the status of HTTP."""
        if url in self.used_up:
            return 404
        self.responses.append((url, said))
        self.note_change()
        return 200

    # --- what is seen -------------------------------------------------------------

    def find(self, channel: str, ts: str) -> Json | None:
        """Give a message; None: it is not there."""
        for message in self.channels.get(channel, []):
            if message["ts"] == ts:
                return message
        return None

    def said(self, channel: str) -> list[Json]:
        """Give what apps wrote in a channel."""
        return [each for each in self.channels[channel] if each.get("bot_id")]

    def new_ts(self) -> str:
        """Give the next moment."""
        self._made += 1
        return f"{self._start + self._made}.{self._made:06}"

    def new_id(self) -> str:
        """Give an id that nobody else has."""
        self._made += 1
        return f"id{self._made}"

    def note_change(self) -> None:
        """Wake whoever waits for something to change."""
        self._changed.set()
        self._changed = trio.Event()

    async def wait_change(self) -> None:
        """Wait until something changed."""
        await self._changed.wait()

    # --- the Web API --------------------------------------------------------------

    def answer(self, method: str, token: str, form: dict[str, str]) -> Reply:
        """Answer a call.

        Raises:
            Exception: a fault that was ordered.
        """
        apps = self.apps.values()
        app = next((a for a in apps if token in {a.token, a.app_token}), None)
        self.asked.append((method, app.user if app is not None else "", dict(form)))
        if self.faults and self.faults[0][0] == method:
            fault = self.faults.popleft()[1]
            if isinstance(fault, Exception):
                raise fault
            return fault
        if app is None:
            return refusal("invalid_auth")
        is_app_token = method == "apps.connections.open"
        if is_app_token != token.startswith("xapp-"):
            return refusal("not_allowed_token_type")
        name = "on_" + method.replace(".", "_")
        reply: Reply = getattr(self, name)(app, form)
        self.note_change()
        if self.after and self.after[0][0] == method:
            raise self.after.popleft()[1]
        return reply

    def on_auth_test(self, app: App, form: dict[str, str]) -> Reply:
        del form
        said = {"user_id": app.user, "bot_id": app.bot, "team_id": TEAM}
        return ok(said, {"x-oauth-scopes": "chat:write,channels:history"})

    def on_apps_connections_open(self, app: App, form: dict[str, str]) -> Reply:
        del form
        ticket = self.new_id()
        self.tickets[ticket] = app
        return ok({"url": f"wss://link.test/{ticket}"})

    def on_users_info(self, app: App, form: dict[str, str]) -> Reply:
        del app
        found = self.people.get(form["user"])
        if found is not None and form.get("include_locale") != "true":
            found = {key: found[key] for key in found if key != "locale"}
        return refusal("user_not_found") if found is None else ok({"user": found})

    def on_users_conversations(self, app: App, form: dict[str, str]) -> Reply:
        del form
        there = [c for c, members in self.members.items() if app.user in members]
        return ok({"channels": [{"id": each} for each in there]})

    def on_conversations_history(self, app: App, form: dict[str, str]) -> Reply:
        channel = form["channel"]
        if app.user not in self.members.get(channel, []):
            return refusal("not_in_channel" if channel in self.channels else NOT_FOUND)
        top = [m for m in self.channels[channel] if is_top(m)]
        return page([*reversed(top)], form)

    def on_conversations_replies(self, app: App, form: dict[str, str]) -> Reply:
        del app
        thread = form["ts"]
        parts = self.channels[form["channel"]]
        found = [m for m in parts if thread in {m["ts"], m.get("thread_ts")}]
        return page(found, form) if found else refusal("thread_not_found")

    def on_chat_postMessage(self, app: App, form: dict[str, str]) -> Reply:  # noqa: N802
        channel, text = form["channel"], form.get("text", "")
        if channel not in self.channels:
            return refusal(NOT_FOUND)
        if not text:
            return refusal("no_text")
        message: Json = {"user": app.user, "bot_id": app.bot, "text": text}
        if form.get("thread_ts"):
            message["thread_ts"] = form["thread_ts"]
        for name in ("metadata", "blocks"):
            if form.get(name):
                message[name] = json.loads(form[name])
        message = self.add(channel, message)
        self.tell(channel, {**message, "app_id": "A1"})
        return ok({"channel": channel, "ts": message["ts"], "message": message})

    def on_files_getUploadURLExternal(self, app: App, form: dict[str, str]) -> Reply:  # noqa: N802
        return self.uploads.offer(app, form)

    def on_files_completeUploadExternal(self, app: App, form: dict[str, str]) -> Reply:  # noqa: N802
        return self.uploads.share(app, form)

    def on_files_info(self, app: App, form: dict[str, str]) -> Reply:
        return self.uploads.tell(app, form)

    def on_chat_update(self, app: App, form: dict[str, str]) -> Reply:
        message = self.find(form["channel"], form["ts"])
        if message is None:
            return refusal("message_not_found")
        if message.get("bot_id") != app.bot:
            return refusal("cant_update_message")
        if len(form["text"]) > 4000:
            return refusal("msg_too_long")
        message["text"] = form["text"]
        if form.get("blocks") == "[]":  # what was there stays without this
            message.pop("blocks", None)
        changed = {"subtype": "message_changed", "message": message}
        self.tell(form["channel"], {**changed, "ts": self.new_ts()})
        return ok({"ts": form["ts"]})

    def on_chat_postEphemeral(self, app: App, form: dict[str, str]) -> Reply:  # noqa: N802
        if form["user"] not in self.members[form["channel"]]:
            return refusal("user_not_in_channel")
        self.whispers.append((app.user, form["user"], form["text"]))
        return ok({"message_ts": self.new_ts()})

    def on_chat_delete(self, app: App, form: dict[str, str]) -> Reply:
        del app
        message = self.find(form["channel"], form["ts"])
        if message is None:
            return refusal("message_not_found")
        self.channels[form["channel"]].remove(message)
        return ok({})

    def on_reactions_add(self, app: App, form: dict[str, str]) -> Reply:
        message = self.find(form["channel"], form["timestamp"])
        if message is None:
            return refusal("message_not_found")
        signs = message.setdefault("signs", [])
        if (app.user, form["name"]) in signs:
            return refusal("already_reacted")
        signs.append((app.user, form["name"]))
        return ok({})

    def on_reactions_remove(self, app: App, form: dict[str, str]) -> Reply:
        message = self.find(form["channel"], form["timestamp"]) or {}
        if (app.user, form["name"]) not in message.get("signs", []):
            return refusal("no_reaction")
        message["signs"].remove((app.user, form["name"]))
        return ok({})

    def on_assistant_threads_setStatus(  # noqa: N802
        self, app: App, form: dict[str, str]
    ) -> Reply:
        del app
        status = form["channel_id"], form["thread_ts"], form["status"]
        self.statuses.append(status)
        return ok({})
