"""A running company with a web page, and the browser of an operator."""

from __future__ import annotations

import re
import secrets
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from html import unescape
from pathlib import Path

import httpx
import trio

from connectors.app.app import App, open_app
from connectors.app.reload.reload import Reloading, SettingsSource, Ways
from connectors.chat.platforms import serving
from connectors.chat.server_transport import ServerTransport
from connectors.config.app import AppConfig
from connectors.settings.load import load_app
from connectors.web.page.login_rows import (
    LINK,
    LoginLink,
    login_entry,
    new_token,
    row_id,
)
from runtime.config.loader import Settings
from runtime.store.rows import Commit
from runtime.telemetry.logs import Redactor
from tests.processes.running import write_settings
from tests.support.desk import SECRET, write_all

CANARY = "canary-7f3a9c"
"""Value of a secret setting; nobody may ever see it."""

ENVIRONMENT = {"CANARY": CANARY, "SPOKEN": SECRET}
MORE = """
[connectors.page]
kind = "page"
port = 0

[models.paid]
kind = "openai"
model = "big"
base_url = "http://127.0.0.1:9/v1"
api_key = { env = "CANARY" }

[models.other]
kind = "openai"
model = "big"
base_url = "http://127.0.0.1:9/v1"
api_key = { env = "SPOKEN" }

[commands]
models = []

[[budgets]]
scope = "all"
period = "day"
hard_usd = 100.0
"""

CHAT = "/chat/with/anna"
FORM = re.compile(
    r'<form[^>]*method="post" action="(?P<action>[^"]*)".*?</form>', re.DOTALL
)
FIELD = re.compile(r'<input[^>]*name="([^"]*)" value="([^"]*)"')


@dataclass
class PanelBed:
    """What a test needs."""

    app: App
    client: httpx.AsyncClient
    """A browser that is logged in."""

    url: str

    def stranger(self) -> httpx.AsyncClient:
        """Give a browser that is not logged in."""
        return httpx.AsyncClient(base_url=self.url, timeout=20)

    async def show(self, path: str) -> str:
        """Load a view; gives its text."""
        response = await self.client.get(path)
        assert response.status_code == 200, (path, response.status_code, response.text)
        return response.text

    async def press(self, path: str, action: str, **fields: str) -> str:
        """Send the form of a page that is posted there; gives the page behind it.

        Args:
            path: of the page with the form.
            action: where it is posted to.
            fields: values that tell it from others, or that a person fills in.
        """
        form = form_of(await self.show(path), action, fields.get("id", ""))
        response = await self.client.post(action, data={**form, **fields})
        assert response.status_code == 303, (response.status_code, response.text)
        return await self.show(response.headers["location"])

    async def say(self, text: str) -> None:
        """Write to anna."""
        form = form_of(await self.show(CHAT), CHAT)
        response = await self.client.post(CHAT, data={**form, "text": text})
        assert response.status_code == 303, response.text

    async def wait_shown(self, path: str, text: str, times: int = 1) -> str:
        """Load a view until it shows something; gives its text."""
        with trio.fail_after(20):
            while (shown := await self.show(path)).count(text) < times:
                await trio.lowlevel.checkpoint()
        return shown


def form_of(html: str, action: str, name: str = "") -> dict[str, str]:
    """Give the hidden fields of the form that is posted somewhere."""
    for form in FORM.finditer(html):
        fields = {key: unescape(value) for key, value in FIELD.findall(form[0])}
        if form["action"] == action and name in {"", fields.get("id")}:
            return fields
    raise AssertionError(f"no form for {action} {name} in {html}")


def told(html: str) -> str:
    """Give what is told above a view."""
    found = re.search(r'<p class="told[^"]*" role="status">(.*?)</p>', html)
    return "" if found is None else unescape(found[1])


def load(folder: Path, more: str = "") -> Settings[AppConfig]:
    """Write settings, and load them."""
    path = write_settings(folder, more=MORE + more)
    text = path.read_text(encoding="utf-8")
    database = str(folder / "callboard.db")
    path.write_text(text.replace("callboard.db", database), encoding="utf-8")
    return load_app(path, ENVIRONMENT)


@asynccontextmanager
async def open_panels(folder: Path, more: str = "") -> AsyncGenerator[PanelBed]:
    """Run a company on a database with something in it."""
    await write_all(folder / "callboard.db")
    settings = load(folder, more)
    redactor = Redactor(secret.reveal() for secret in settings.secrets)
    source = SettingsSource(settings, lambda: settings, redactor)
    config = settings.value
    async with (
        open_app(config, serving(config), redactor.clean) as app,
        trio.open_nursery() as nursery,
    ):
        reloading = Reloading(app, config, source, Ways(serves=serving))
        await nursery.start(reloading.run)
        page = app.transports["page"]
        assert isinstance(page, ServerTransport)
        host, port = await page.wait_listening()
        url = f"http://{host}:{port}"
        async with httpx.AsyncClient(base_url=url, timeout=20) as client:
            await log_in(app, client)
            yield PanelBed(app, client, url)
        nursery.cancel_scope.cancel()


async def log_in(app: App, client: httpx.AsyncClient) -> None:
    """Log a browser in, as `callboard login` lets one."""
    token = new_token(secrets.token_bytes(32))
    now = app.clock.wall()
    row = login_entry(
        LINK, row_id("page", token), LoginLink("operator", now + 600, now), 0
    )
    await app.store.commit(Commit(at=now, entries=(row,)))
    response = await client.post("/login", data={"token": token})
    assert response.status_code == 303, response.text
