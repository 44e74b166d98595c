"""Platforms that people have accounts on: an owner, a colleague and a stranger there.

What stands for the platform are the fakes of its own tests; here is only who writes
where, and what is read then.
"""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple, cast

import httpx
import trio

from connectors.app.app import App
from connectors.chat.accounts import ConnectorShelf, StoredBookmarks
from connectors.chat.discord.listener import StoredDiscordBookmarks
from connectors.chat.discord.platform import DiscordConfig
from connectors.chat.discord.transport import DiscordTransport
from connectors.chat.platforms import (
    MakeTransport,
    PlatformCall,
    TransportParts,
    serving,
)
from connectors.chat.slack.platform import SlackConfig
from connectors.chat.slack.transport import MARKS, SlackTransport
from connectors.chat.whatsapp.inbound import WhatsAppWebhooks
from connectors.config.app import AppConfig
from tests.fakes.discord.world import CHANNEL
from tests.fakes.matrix.homeserver import FakeHomeserver
from tests.fakes.media import PNG
from tests.fakes.qq.gateway import Gateway
from tests.fakes.qq.server import API, FILES
from tests.fakes.slack.line import FakeWire
from tests.fakes.slack.workspace import FakeSlack
from tests.fakes.telegram.api import FakeTelegram
from tests.fakes.whatsapp.graph import SECRET, FakeGraph, sign
from tests.support.chat.discord_bed import READY_AFTER, DiscordBed
from tests.support.chat.whatsapp_bed import TOKEN
from tests.support.defaults.waiting import until

PEOPLE = ("owner", "colleague", "stranger")


class Said(NamedTuple):
    """One message of an agent's."""

    agent: str
    text: str
    to: str = ""
    """The platform's id of the message that it replies to; empty: none."""


class Place(ABC):
    """A platform with people before it; this is what most have in common."""

    file: str
    """The settings file in `config/`, without its ending."""

    filled_in: tuple[tuple[str, str], ...] = ()
    """What everybody has to change in it: before, after."""

    more = ""
    """What stands at its end: the second agent's account."""

    has_member_ids = False
    """Whether the owner in a group is somebody else than the owner alone."""

    answers_each = 0
    """Messages that may answer one of a person's; 0: any number."""

    accounts = 2
    secrets: Mapping[str, str]
    network: httpx.MockTransport | None = None
    """What carries requests to the platform in memory."""

    has_pictures = True
    has_groups = True
    has_strangers = True
    """Whether there are people there whom nobody has let in."""

    has_crashed = False
    """Whether the program has begun anew."""

    def transports(self, config: AppConfig) -> Mapping[str, MakeTransport]:
        """Say how the transports are made: by way of the fake at the other end."""

        def through(make: MakeTransport, parts: TransportParts) -> Any:
            return make(replace(parts, network=self.network))

        return {name: partial(through, make) for name, make in serving(config).items()}

    @asynccontextmanager
    async def people(self, app: App) -> AsyncGenerator[None]:
        """Wait until all accounts hear their platform."""
        is_up = f"callboard_{self.file}_up{{".encode()

        async def all_hear() -> bool:
            await trio.lowlevel.checkpoint()
            lines = app.metrics.render().splitlines()
            up = [each for each in lines if each.startswith(is_up)]
            return sum(each.endswith(b" 1.0") for each in up) == self.accounts

        await until(all_hear)
        yield

    @abstractmethod
    async def write(self, person: str, text: str, *, cat: bool = False) -> str:
        """Have somebody write to anna alone; gives the message's id."""

    @abstractmethod
    async def call_both(self) -> str:
        """Have the owner call both agents in a group; gives the message's id."""

    @abstractmethod
    async def read(self, person: str) -> list[Said]:
        """Give what somebody reads in the chat with anna."""

    @abstractmethod
    async def read_group(self) -> list[Said]:
        """Give what agents said in the group."""


class Telegram(Place):
    """Telegram, with a Bot API in memory."""

    file = "telegram"
    filled_in = (('# owners = ["telegram/123456789"]', 'owners = ["telegram/1"]'),)
    more = '[connectors.telegram.accounts.ben]\ntoken = { env = "BEN" }\n'

    def __init__(self) -> None:
        self.server = FakeTelegram()
        self.network = self.server.network
        # Programs with one bot keep each other out, tests that run beside this, too.
        number = 2 * os.getpid()
        anna = self.server.bot(number, "anna_bot")
        self.secrets = {
            "TELEGRAM_TOKEN": anna,
            "BEN": self.server.bot(number + 1, "ben_bot"),
        }
        self._who = {
            who: {"id": n, "is_bot": False, "first_name": who.title()}
            for n, who in enumerate(PEOPLE, 1)
        }
        self._chats = {
            who: self.server.private(n, "anna_bot") for n, who in enumerate(PEOPLE, 1)
        }
        self._group = self.server.group(-100123, "anna_bot", "ben_bot")

    async def write(self, person: str, text: str, *, cat: bool = False) -> str:
        more: dict[str, Any] = {}
        if cat:
            self.server.files["cat"] = PNG
            size = {"file_id": "cat", "file_unique_id": "c", "width": 9, "height": 9}
            more = {"photo": [size], "caption": text}
        said = self.server.say(
            self._chats[person], self._who[person], "" if cat else text, **more
        )
        return str(said["message_id"])

    async def call_both(self) -> str:
        text = "@anna_bot @ben_bot good day"
        said = self.server.say(self._group, self._who["owner"], text)
        return str(said["message_id"])

    async def read(self, person: str) -> list[Said]:
        return self._read(self._chats[person], "anna")

    async def read_group(self) -> list[Said]:
        return [x for agent in ("anna", "ben") for x in self._read(self._group, agent)]

    def _read(self, chat: Any, agent: str) -> list[Said]:
        bot = self.server.named(f"{agent}_bot")
        return [
            Said(
                agent, text, str(each.get("reply_to_message", {}).get("message_id", ""))
            )
            for each, text in zip(chat.by(bot), chat.texts(bot), strict=True)
        ]


class Matrix(Place):
    """Matrix, with a homeserver in memory."""

    file = "matrix"
    filled_in = (
        ('"matrix/@you:example.org"', '"matrix/@owner:hs.test"'),
        ("@anna:example.org", "@anna:hs.test"),
        ("https://matrix.example.org", "https://hs.test"),
    )
    more = (
        '[connectors.matrix.accounts.ben]\nuser = "@ben:hs.test"\n'
        'access_token = { env = "BEN" }\n'
    )

    def __init__(self) -> None:
        self.server = FakeHomeserver()
        self.network = self.server.network
        self.secrets = {
            "MATRIX_TOKEN": self.server.user("@anna:hs.test"),
            "BEN": self.server.user("@ben:hs.test"),
        }
        for who in PEOPLE:
            self.server.room(f"!{who}:hs.test", f"@{who}:hs.test", "@anna:hs.test")
        members = (f"@{who}:hs.test" for who in ("owner", "anna", "ben", "colleague"))
        self.server.room("!crew:hs.test", *members)

    async def write(self, person: str, text: str, *, cat: bool = False) -> str:
        room, user = f"!{person}:hs.test", f"@{person}:hs.test"
        if not cat:
            return self.server.say(room, user, text)
        self.server.media["hs.test/cat"] = PNG
        said: dict[str, Any] = {"msgtype": "m.image", "url": "mxc://hs.test/cat"}
        said["info"] = {"mimetype": "image/png", "size": len(PNG)}
        return self.server.say(room, user, text, filename="cat.png", **said)

    async def call_both(self) -> str:
        return self.server.say("!crew:hs.test", "@owner:hs.test", "@anna @ben good day")

    async def read(self, person: str) -> list[Said]:
        return self._read(f"!{person}:hs.test")

    async def read_group(self) -> list[Said]:
        return self._read("!crew:hs.test")

    def _read(self, room: str) -> list[Said]:
        return [
            Said(
                each["sender"].removeprefix("@").removesuffix(":hs.test"),
                each["content"]["body"],
                each["content"]
                .get("m.relates_to", {})
                .get("m.in_reply_to", {})
                .get("event_id", ""),
            )
            for each in self.server.said(room, "@anna:hs.test", "@ben:hs.test")
        ]


class Slack(Place):
    """Slack, with a workspace in memory."""

    file = "slack"
    filled_in = (('"slack/U012AB3CD"', '"slack/UOWNER"'),)
    more = (
        '[connectors.slack.accounts.ben]\nbot_token = { env = "BEN" }\n'
        'app_token = { env = "BEN_APP" }\n'
    )
    secrets: Mapping[str, str] = {
        "SLACK_BOT_TOKEN": "xoxb-anna",
        "SLACK_APP_TOKEN": "xapp-anna",
        "BEN": "xoxb-ben",
        "BEN_APP": "xapp-ben",
    }

    def __init__(self) -> None:
        self.server = FakeSlack()
        for name in ("anna", "ben"):
            self.server.app(name)
        for who in PEOPLE:
            self.server.person(f"U{who.upper()}", who.title())
            self.server.channel(f"D{who.upper()}", f"U{who.upper()}", "UANNA")
        self.server.channel("C1CREW", "UOWNER", "UCOLLEAGUE", "UANNA", "UBEN")

    def transports(self, config: AppConfig) -> Mapping[str, MakeTransport]:
        """Say how it is made: as the program does, with the wire of tests."""

        def make(parts: TransportParts) -> SlackTransport:
            shelf = ConnectorShelf(parts.store, parts.clock, "slack")
            marks = StoredBookmarks(shelf, MARKS)
            settings = cast("SlackConfig", config.connectors["slack"])
            wire = FakeWire(self.server)
            return SlackTransport("slack", settings, parts, marks, wire)

        return {"slack": make}

    async def write(self, person: str, text: str, *, cat: bool = False) -> str:
        more: dict[str, Any] = {}
        if cat:
            url = "https://files.slack.com/files-pri/T1-F1/cat.png"
            self.server.files[url] = PNG
            file = {"name": "cat.png", "mimetype": "image/png", "size": len(PNG)}
            file["url_private_download"] = url
            more = {"subtype": "file_share", "files": [file]}
        chat = f"D{person.upper()}"
        return self.server.say(chat, f"U{person.upper()}", text, **more)

    async def call_both(self) -> str:
        return self.server.say("C1CREW", "UOWNER", "<@UANNA> <@UBEN> good day")

    async def read(self, person: str) -> list[Said]:
        return self._read(f"D{person.upper()}")

    async def read_group(self) -> list[Said]:
        return self._read("C1CREW")

    def _read(self, chat: str) -> list[Said]:
        return [
            Said(each["user"][1:].lower(), each["text"], each.get("thread_ts", ""))
            for each in self.server.said(chat)
        ]


class WhatsApp(Place):
    """WhatsApp, with Meta in memory."""

    file = "whatsapp"
    filled_in = (
        (
            '# owners = ["whatsapp/US.13491208655302741918"]',
            'owners = ["whatsapp/4917010"]',
        ),
        ("106540352242922", "1001"),
        ('kind = "http"', 'kind = "http"\nport = 0'),
    )
    has_groups = False
    accounts = 1

    def __init__(self) -> None:
        self.server = FakeGraph()
        self.network = self.server.network
        self.secrets = {
            "WHATSAPP_TOKEN": self.server.number("1001"),
            "WHATSAPP_APP_SECRET": SECRET,
            "WHATSAPP_VERIFY_TOKEN": TOKEN,
        }

    @asynccontextmanager
    async def people(self, app: App) -> AsyncGenerator[None]:
        self._app = app
        async with super().people(app):
            yield

    async def write(self, person: str, text: str, *, cat: bool = False) -> str:
        more: dict[str, Any] = {"at": int(self._app.clock.wall())}
        if cat:
            self.server.put_media("cat", "image/png", PNG)
            image = {"id": "cat", "mime_type": "image/png", "caption": text}
            more |= {"type": "image", "image": image}
        message = self.server.message(text, number_of(person), **more)
        body = self.server.webhook("1001", message)
        gate = self._app.parts.gates.find(("whatsapp", ""))
        assert isinstance(gate, WhatsAppWebhooks)
        call = PlatformCall(headers={"x-hub-signature-256": sign(body)}, body=body)
        answer = gate.check(call) or await gate.answer(call)
        assert answer.status == 200
        return str(message["id"])

    async def call_both(self) -> str:
        raise NotImplementedError

    async def read(self, person: str) -> list[Said]:
        to = number_of(person)
        return [
            Said("anna", text, each.get("context", {}).get("message_id", ""))
            for each in list(self.server.said)
            if each["type"] != "reaction" and each.get("to") == to
            for text in [each["text"]["body"]]
        ]

    async def read_group(self) -> list[Said]:
        raise NotImplementedError


def number_of(person: str) -> str:
    """Give somebody's number on WhatsApp."""
    return f"491701{PEOPLE.index(person)}"


class Discord(Place):
    """Discord, with discord.py before a server in memory."""

    file = "discord"
    more = '[connectors.discord.accounts.ben]\ntoken = { env = "BEN" }\n'
    secrets: Mapping[str, str] = {
        "DISCORD_TOKEN": "token.of.anna",
        "BEN": "token.of.ben",
    }

    def __init__(self, bed: DiscordBed) -> None:
        self._bed, self._world = bed, bed.world
        self._who = {
            who: str(400_000_000_000_000_011 + n) for n, who in enumerate(PEOPLE)
        }
        for who, known in self._who.items():
            user = {"id": known, "username": who, "global_name": who.title()}
            self._world.users[known] = user
            self._world.members[known] = {"roles": []}
        places = (
            f'api = "{bed.server.url}/api/v10"\ngateway = "{bed.server.gateway.url}"'
        )
        files = f'\nfiles = ["{bed.server.url}"]'
        self.filled_in = (
            ("discord/123456789012345678", f"discord/{self._who['owner']}"),
            ('kind = "discord"', f'kind = "discord"\n{places}{files}'),
        )

    def transports(self, config: AppConfig) -> Mapping[str, MakeTransport]:
        """Say how it is made: as the program does, but servers come at once."""

        def make(parts: TransportParts) -> DiscordTransport:
            shelf = ConnectorShelf(parts.store, parts.clock, "discord")
            marks = StoredDiscordBookmarks(shelf)
            settings = cast("DiscordConfig", config.connectors["discord"])
            return DiscordTransport(
                "discord", settings, parts, marks, ready_after=READY_AFTER
            )

        return {"discord": make}

    async def write(self, person: str, text: str, *, cat: bool = False) -> str:
        chat, more = self._chat(person), dict[str, Any]()
        if cat:
            self._world.files["cat.png"] = PNG
            url = f"{self._bed.server.url}/files/cat.png"
            file = {"id": "1", "filename": "cat.png", "content_type": "image/png"}
            more["attachments"] = [
                {**file, "size": len(PNG), "url": url, "proxy_url": url}
            ]
        return await self._bed.say(text, self._who[person], chat, **more)

    async def call_both(self) -> str:
        called = " ".join(f"<@{bot}>" for bot in self._bed.bots.values())
        return await self._bed.say(f"{called} good day", self._who["owner"], CHANNEL)

    async def read(self, person: str) -> list[Said]:
        return self._read(self._chat(person))

    async def read_group(self) -> list[Said]:
        return self._read(CHANNEL)

    def _chat(self, person: str) -> str:
        return self._world.direct(self._bed.bots["anna"], self._who[person])

    def _read(self, chat: str) -> list[Said]:
        names = {bot: name for name, bot in self._bed.bots.items()}
        return [
            Said(
                names[each["author"]["id"]],
                each["content"],
                each.get("message_reference", {}).get("message_id", ""),
            )
            for each in list(self._world.messages[chat])
            if each["author"]["id"] in names
        ]


class QQ(Place):
    """QQ, whose gateway serves on loopback; each bot has names of its own for all."""

    file = "qq"
    filled_in = (
        (
            '# owners = ["qq/E4F4AEA33253A2797FB897C50B81D7ED"]',
            'owners = ["qq/OWNER"]',
        ),
        ('kind = "qq"', f'kind = "qq"\napi = "{API}"\nfiles = ["{FILES}"]'),
    )
    more = (
        '[connectors.qq.accounts.ben]\napp_id = "102012346"\n'
        'app_secret = { env = "BEN" }\n'
    )
    answers_each = 5
    has_member_ids = True
    bots: Mapping[str, str] = {"anna": "102012345", "ben": "102012346"}

    def __init__(self, gateway: Gateway) -> None:
        self._gateway, self.server = gateway, gateway.server
        self.network = self.server.network
        self.secrets = {
            "QQ_APP_SECRET": self.server.bot(self.bots["anna"]),
            "BEN": self.server.bot(self.bots["ben"]),
        }
        self._called: dict[str, str] = {}
        """One name for the message that calls both, by each bot's own id of it."""

    async def write(self, person: str, text: str, *, cat: bool = False) -> str:
        author = {"user_openid": person.upper()}
        said: dict[str, Any] = {"author": author, "content": text}
        if cat:
            self.server.files["cat.png"] = PNG
            file = {"content_type": "image/png", "filename": "cat.png"}
            said["attachments"] = [
                {**file, "size": len(PNG), "url": f"{FILES}/cat.png"}
            ]
        return await self._tell("anna", "C2C_MESSAGE_CREATE", said)

    async def call_both(self) -> str:
        for agent in self.bots:
            author = {"member_openid": f"OWNEROF{agent.upper()}"}
            said = {"author": author, "content": " good day"}
            said["group_openid"] = f"CREWOF{agent.upper()}"
            known = await self._tell(agent, "GROUP_AT_MESSAGE_CREATE", said)
            self._called[known] = "the call"
        return "the call"

    async def _tell(self, agent: str, kind: str, said: dict[str, Any]) -> str:
        known = self.server.next_id("ROBOT1.0")
        self.server.answerable[known] = 5
        session = self._gateway.sessions[self.bots[agent]]
        await session.tell(kind, {**said, "id": known})
        return known

    async def read(self, person: str) -> list[Said]:
        return self._read("anna", f"/v2/users/{person.upper()}/messages")

    async def read_group(self) -> list[Said]:
        return [
            each
            for agent in self.bots
            for each in self._read(agent, f"/v2/groups/CREWOF{agent.upper()}/messages")
        ]

    def _read(self, agent: str, path: str) -> list[Said]:
        return [
            Said(agent, each["content"], self._called.get(each.get("msg_id", ""), ""))
            for each in list(self.server.said)
            if each["path"] == path
        ]
