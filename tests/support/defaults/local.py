"""Ways to write from this machine: page, terminal, HTTP and the two web protocols.

Whoever reaches them is let in, or is not: agents speak with no strangers there.
"""

from __future__ import annotations

import re
from abc import abstractmethod
from base64 import b64encode
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, cast

import httpx
import trio

from connectors.app.app import App
from connectors.chat.platforms import MakeTransport, serving
from connectors.chat.terminal.client import TerminalClient, TerminalHello
from connectors.chat.terminal.plain import PlainChat, PlainSettings
from connectors.chat.terminal.transport import TerminalTransport
from connectors.config.app import AppConfig
from connectors.web.page.transport import PageTransport
from runtime import __version__
from runtime.clock import SystemClock
from runtime.ids import IdSource
from tests.fakes.chat.console import FakeConsole
from tests.fakes.media import PNG
from tests.fakes.web.eliza import ANNA, BEN, ZOE, WebBed
from tests.fakes.web.page import ANNA as ANNA_PAGE, JSON, PageBed, form_of, said_in
from tests.fakes.websocket.client import SocketClient
from tests.support.defaults.places import Place, Said
from tests.support.defaults.waiting import PATIENCE

BASE64 = b64encode(PNG).decode()
PICTURE = f"data:image/png;base64,{BASE64}"
SPOKEN = re.compile(r"(?:(?P<agent>anna|ben)>|\*) ")
"""How a line of the terminal begins that an agent says, or the runtime."""


class Local(Place):
    """What these ways have in common: whoever is there is let in."""

    accounts = 0
    has_pictures = False
    has_groups = False
    has_strangers = False
    secrets: Mapping[str, str] = {}

    async def write(self, person: str, text: str, *, cat: bool = False) -> str:
        """Have whoever is there write."""
        del person
        return await (self.show_cat(text) if cat else self.say(text))

    async def read(self, person: str) -> list[Said]:
        """Give what whoever is there reads."""
        del person
        return await self.said()

    async def call_both(self) -> str:
        """Have both called in the one place that there is."""
        return await self.say("@anna @ben good day")

    async def read_group(self) -> list[Said]:
        """Give what stands in the one place that there is."""
        return await self.said()

    @abstractmethod
    async def say(self, text: str) -> str:
        """Have somebody write to anna; gives the message's id."""

    @abstractmethod
    async def said(self) -> list[Said]:
        """Give what is read in the chat with anna."""

    async def show_cat(self, text: str) -> str:
        """Have somebody send a picture with words; gives the message's id."""
        raise NotImplementedError


async def address_of(app: App, name: str) -> str:
    """Give where a connector listens."""
    host, port = await cast("Any", app.transports[name]).wait_listening()
    return f"{host}:{port}"


class Terminal(Local):
    """The terminal, with somebody who types."""

    file = "offline"
    filled_in = (("port = 8080", "port = 0"),)
    has_groups = True
    has_pictures = True

    def transports(self, config: AppConfig) -> Mapping[str, MakeTransport]:
        """Say how it is made: as `callboard chat` does."""
        self._console = FakeConsole()
        return {"terminal": serving(config)["terminal"]}

    @asynccontextmanager
    async def people(self, app: App) -> AsyncGenerator[None]:
        """Have somebody sit there, with the console of tests."""
        face = PlainChat(PlainSettings(), self._console)
        seat = cast("TerminalTransport", app.transports["terminal"]).open_seat
        ids = IdSource(SystemClock())
        face.client = TerminalClient(seat, TerminalHello(__version__), face, ids)
        with TemporaryDirectory() as folder:
            self._folder = Path(folder)
            async with trio.open_nursery() as nursery:
                nursery.start_soon(face.run)
                nursery.start_soon(face.client.run)
                yield
                nursery.cancel_scope.cancel()

    async def say(self, text: str) -> str:
        await trio.lowlevel.checkpoint()
        self._console.type(text)
        return ""

    async def show_cat(self, text: str) -> str:
        cat = self._folder / "cat.png"
        cat.write_bytes(PNG)
        return await self.say(f"@{cat} {text}")

    async def said(self) -> list[Said]:
        await trio.lowlevel.checkpoint()
        found: list[Said] = []
        whole = self._console.screen.rpartition("\n")[0]
        for line in whole.split("\n"):
            begins = SPOKEN.match(line)
            if begins is not None:
                found.append(Said(begins["agent"] or "", line[begins.end() :]))
            elif found and line and not line.startswith("you> "):
                found[-1] = found[-1]._replace(text=f"{found[-1].text}\n{line}")
        return found


class Http(Local):
    """The HTTP channel, with a client of OpenAI's protocol."""

    file = "offline"
    filled_in = (("port = 8080", "port = 0"),)
    has_pictures = True

    def __init__(self) -> None:
        self._said: dict[str, Said] = {}
        self._asked: dict[str, dict[str, Any]] = {}

    @asynccontextmanager
    async def people(self, app: App) -> AsyncGenerator[None]:
        """Have a client there, which asks again what it got no answer to."""
        url = f"http://{await address_of(app, 'http')}"
        async with (
            httpx.AsyncClient(base_url=url, timeout=PATIENCE) as self._client,
            trio.open_nursery() as self._nursery,
        ):
            for key in self._asked.keys() - self._said.keys():
                self._nursery.start_soon(self._post, key)
            yield
            self._nursery.cancel_scope.cancel()

    async def say(self, text: str) -> str:
        return await self._ask(text)

    async def show_cat(self, text: str) -> str:
        picture = {"type": "image_url", "image_url": {"url": PICTURE}}
        return await self._ask([{"type": "text", "text": text}, picture])

    async def _ask(self, content: object) -> str:
        await trio.lowlevel.checkpoint()
        key = f"key-{len(self._asked)}"
        messages = [{"role": "user", "content": content}]
        self._asked[key] = {"model": "anna", "user": "zoe", "messages": messages}
        self._nursery.start_soon(self._post, key)
        return key

    async def said(self) -> list[Said]:
        await trio.lowlevel.checkpoint()
        return [each for key in self._asked if (each := self._said.get(key))]

    async def _post(self, key: str) -> None:
        answer = await self._client.post(
            "/v1/chat/completions",
            json=self._asked[key],
            headers={"idempotency-key": key},
        )
        body = answer.json()
        if "error" in body:
            self._said[key] = Said("", body["error"]["message"])
            return
        text = body["choices"][0]["message"]["content"]
        self._said[key] = Said("anna", text, key)


class Eliza(Local):
    """The ElizaOS API, with somebody alone with an agent, and a room with both."""

    file = "web"
    filled_in = (('kind = "web"', 'kind = "web"\nport = 0'),)
    has_groups = True
    has_pictures = True

    def __init__(self) -> None:
        self._direct = self._group = ""

    @asynccontextmanager
    async def people(self, app: App) -> AsyncGenerator[None]:
        """Have a client there."""
        url = f"http://{await address_of(app, 'web')}"
        self._bed = WebBed(cast("Any", None), cast("Any", None), cast("Any", None))
        async with httpx.AsyncClient(
            base_url=url, timeout=PATIENCE
        ) as self._bed.client:
            if not self._direct:
                self._direct = await self._bed.channel(ZOE, ANNA, kind="DM")
                self._group = await self._bed.channel(ZOE, ANNA, BEN)
            yield

    async def say(self, text: str) -> str:
        return str((await self._bed.say(self._direct, text))["id"])

    async def show_cat(self, text: str) -> str:
        files = [{"url": PICTURE, "contentType": "image/png"}]
        said = await self._bed.say(self._direct, text, attachments=files)
        return str(said["id"])

    async def call_both(self) -> str:
        return str((await self._bed.say(self._group, "@anna @ben good day"))["id"])

    async def said(self) -> list[Said]:
        return await self._read(self._direct)

    async def read_group(self) -> list[Said]:
        return await self._read(self._group)

    async def _read(self, channel: str) -> list[Said]:
        names = {ANNA: "anna", BEN: "ben"}
        return [
            Said(
                names.get(each["author_id"], ""),
                each["content"],
                each["in_reply_to_message_id"] or "",
            )
            for each in reversed(await self._bed.messages(channel))
            if each["author_id"] != ZOE
        ]


class Socket(Local):
    """The plain WebSocket, with a client that comes back under its name."""

    file = "websocket"
    filled_in = (('kind = "websocket"', 'kind = "websocket"\nport = 0'),)
    has_groups = True
    has_pictures = True

    def __init__(self) -> None:
        self._count = 0
        self._frames: list[dict[str, Any]] = []

    @asynccontextmanager
    async def people(self, app: App) -> AsyncGenerator[None]:
        """Have a client there."""
        host, _, port = (await address_of(app, "websocket")).rpartition(":")
        self._client = SocketClient(await trio.open_tcp_stream(host, int(port)))
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._client.run)
            await self._client.open()
            await self._client.send("hello", client="zoe-who-comes-back-again")
            await self._client.next_of("welcome")
            yield
            self._frames += self._client.of("message")
            nursery.cancel_scope.cancel()

    async def say(self, text: str) -> str:
        return await self._send(content=text)

    async def show_cat(self, text: str) -> str:
        return await self._send(content=text, files=[{"content": BASE64}])

    async def _send(self, **more: Any) -> str:
        self._count += 1
        message = f"n{self._count}"
        await self._client.send("message", id=message, **more)
        return message

    async def said(self) -> list[Said]:
        await trio.lowlevel.checkpoint()
        return [
            Said(each.get("agent", ""), each["content"], each.get("reply_to", ""))
            for each in self._frames + self._client.of("message")
        ]


class Page(Local):
    """The web page, with the browser of the operator; a stranger has no link."""

    file = "page"
    filled_in = (('kind = "page"', 'kind = "page"\nport = 0'),)
    has_pictures = True

    @asynccontextmanager
    async def people(self, app: App) -> AsyncGenerator[None]:
        """Have a browser there that is logged in."""
        transport = cast("PageTransport", app.transports["page"])
        self._bed = PageBed(transport, app.store, SystemClock())
        _, self._bed.port = await transport.wait_listening()
        async with self._bed.browser() as self._bed.client:
            self._bed.client.timeout = httpx.Timeout(PATIENCE)
            await self._bed.log_in(self._bed.client)
            yield

    async def say(self, text: str) -> str:
        return str((await self._bed.say(text)).json()["id"])

    async def show_cat(self, text: str) -> str:
        """Send a picture as the page's script does: first the file, then the words."""
        browser = self._bed.client
        form = form_of((await browser.get(ANNA_PAGE)).text)
        headers = {**JSON, "x-csrf": form["csrf"], "content-type": "image/png"}
        kept = await browser.post("/uploads?name=cat.png", content=PNG, headers=headers)
        form |= {"text": text, "files": kept.json()["token"]}
        return str(
            (await browser.post(ANNA_PAGE, data=form, headers=JSON)).json()["id"]
        )

    async def said(self) -> list[Said]:
        told = said_in((await self._bed.client.get(ANNA_PAGE)).text)
        pairs = [each.partition(": ") for each in told]
        return [Said(who, text) for who, _, text in pairs if who != "operator"]

    async def stranger(self) -> str:
        """Give where somebody without a link is led."""
        async with self._bed.browser() as browser:
            answer = await browser.get(ANNA_PAGE)
        return str(answer.headers["location"])
