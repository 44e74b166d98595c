"""Checks where agents work, how they search the web, webhooks, and hooks."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from fnmatch import fnmatchcase
from pathlib import Path
from typing import get_args

from actors.journal.notices import EventType
from actors.webhooks.signature import key_of
from connectors.config.app import AppConfig, HttpConfig
from connectors.config.checks import Way, check_address, is_loopback, unknown
from connectors.config.hooks import HookConfig, WebhookInConfig, WebhookOutConfig
from connectors.fetch.addresses import read_allowed, read_url
from connectors.fetch.messages import FetchRefusedError
from connectors.files.blobs import folder_of
from runtime.config.loader import Complaint, close_to
from runtime.secret import Secret

OF_THE_KERNEL = (Path("/proc"), Path("/sys"), Path("/dev"))


def check_workspace(app: AppConfig) -> Iterator[Complaint]:
    """Check that agents do not work in a folder that holds the database."""
    folder, database = Path(app.workspace.path), Path(app.store.path)
    copies = folder_of(app)
    if database.resolve().is_relative_to(folder.resolve()):
        text = f"{folder} holds the database ({database})"
        hint = "give the workspaces a folder of their own, for example var/workspace"
        yield Complaint(("workspace", "path"), text, hint)
    elif copies.resolve().is_relative_to(folder.resolve()):
        text = f"{folder} holds the copies of files that agents send ({copies})"
        hint = "give them a folder of their own, or leave files.path empty"
        yield Complaint(("files", "path"), text, hint)


def check_readable(paths: tuple[Path, ...]) -> Iterator[Complaint]:
    """Check what all programs may read.

    Why: with these no sandbox holds in its own trial, so that none would be in force,
    or programs would see what it hides.
    """
    of_each_program = Path(tempfile.gettempdir()).resolve()
    for index, path in enumerate(paths):
        way: Way = ("sandbox", "readable", index)
        real = path.resolve()
        if not real.exists():
            hint = "the path starts at the folder of the settings file"
            yield Complaint(way, f"there is no file or folder {path}", hint)
        elif of_each_program.is_relative_to(real):
            text = f"{path} holds {of_each_program}, of which each program has its own"
            yield Complaint(way, text, "name the folders in it that are needed")
        elif any(real.is_relative_to(each) for each in OF_THE_KERNEL):
            text = f"{path} tells of other programs, Callboard with its secrets among"
            yield Complaint(way, f"{text} them", "take it out")


def check_fetch(app: AppConfig) -> Iterator[Complaint]:
    """Check the exceptions from what may be fetched."""
    for index, entry in enumerate(app.fetch.allow):
        try:
            read_allowed(entry)
        except ValueError as error:
            hint = 'for example "10.1.0.0/16", "10.1.2.3" or "search.lan:8080"'
            yield Complaint(("fetch", "allow", index), str(error), hint)


def check_web_search(app: AppConfig) -> Iterator[Complaint]:
    """Check that the search engine can be asked."""
    search = app.web_search
    has_key = search.api_key is not None
    if search.kind == "brave" and not has_key:
        hint = 'add api_key = { env = "BRAVE_API_KEY" }'
        yield Complaint(("web_search",), "Brave asks for a key", hint)
    if search.kind == "searxng" or (search.kind == "brave" and search.base_url):
        yield from check_address(
            ("web_search", "base_url"),
            search.base_url,
            has_key=has_key,
            example="http://127.0.0.1:8888",
        )


def check_speech(app: AppConfig) -> Iterator[Complaint]:
    """Check that those who write down recordings, or speak, can be asked."""
    for name, server in (
        ("transcriber", app.media.transcriber),
        ("speaker", app.media.speaker),
    ):
        if server is not None:
            has_key = server.api_key is not None
            way: Way = ("media", name, "base_url")
            yield from check_address(way, server.base_url, has_key=has_key)


EVENTS: tuple[EventType, ...] = get_args(EventType)
HINT = "make one: echo whsec_$(openssl rand -base64 32)"


def check_webhooks(app: AppConfig) -> Iterator[Complaint]:
    """Check webhooks in and out."""
    for name, webhook in app.webhooks.incoming.items():
        way: Way = ("webhooks", "in", name)
        yield from check_incoming(way, webhook, app)
    for name, out in app.webhooks.out.items():
        yield from check_outgoing(("webhooks", "out", name), out)
    has_door = any(isinstance(each, HttpConfig) for each in app.connectors.values())
    if app.webhooks.incoming and not has_door:
        text = "no webhook can come in: there is no HTTP connector"
        hint = 'add [connectors.http] kind = "http"'
        yield Complaint(("webhooks", "in"), text, hint)
    yield from check_shared(app)


def check_incoming(
    way: Way, webhook: WebhookInConfig, app: AppConfig
) -> Iterator[Complaint]:
    """Check one webhook that comes in."""
    yield from check_key((*way, "secret"), webhook.secret)
    if webhook.previous_secret is not None:
        yield from check_key((*way, "previous_secret"), webhook.previous_secret)
    for index, agent in enumerate(webhook.agents):
        yield from unknown((*way, "agents", index), "agent", agent, app.agents)
    most = app.limits.max_waiting
    if webhook.max_open > most and not webhook.own_conversation:
        text = f"above limits.max_waiting ({most}), people find no room beside them"
        hint = "make it smaller, or set own_conversation = true"
        yield Complaint((*way, "max_open"), text, hint, is_warning=True)
    if not webhook.task.strip():
        text = "the agents are told nothing to do"
        yield Complaint((*way, "task"), text, "say what they are to do")
    connector = webhook.chat.partition("/")[0]
    yield from unknown((*way, "chat"), "connector", connector, app.connectors)
    if isinstance(app.connectors.get(connector), HttpConfig):
        text = "over HTTP nobody is there to read the answers"
        hint = "name a chat that people look at, or have them sent by [webhooks.out]"
        yield Complaint((*way, "chat"), text, hint, is_warning=True)


def check_outgoing(way: Way, webhook: WebhookOutConfig) -> Iterator[Complaint]:
    """Check one webhook that is sent."""
    yield from check_key((*way, "secret"), webhook.secret)
    try:
        target = read_url(webhook.url)
    except FetchRefusedError:
        # Its own words are not shown: they may repeat a token.
        hint = 'for example: url = "https://ops.example.org/callboard"'
        yield Complaint((*way, "url"), "is no address that can be sent to", hint)
        return
    if target.scheme == "http" and not is_loopback(target.host):
        text = f"what is told travels to {target.host} unencrypted"
        yield Complaint((*way, "url"), text, "use https", is_warning=True)
    if is_loopback(target.host) and not webhook.private:
        text = "an address of this machine is not reached without private = true"
        yield Complaint((*way, "url"), text, "add private = true")
    for index, pattern in enumerate(webhook.events):
        if not any(fnmatchcase(each, pattern) for each in EVENTS):
            text = f"no event fits {pattern!r}"
            place = (*way, "events", index)
            yield Complaint(place, text, close_to(pattern, EVENTS))


def check_key(way: Way, secret: Secret) -> Iterator[Complaint]:
    """Check that a secret can be signed with."""
    if not secret.is_set:
        return
    try:
        key_of(secret.reveal())
    except ValueError as error:
        yield Complaint(way, str(error), HINT)


def check_shared(app: AppConfig) -> Iterator[Complaint]:
    """Refuse secrets that are used twice: whoever has one has the other."""
    used: dict[str, str] = {}
    for name, connector in app.connectors.items():
        key = connector.api_key if isinstance(connector, HttpConfig) else None
        if key is not None and key.is_set:
            used[key.reveal()] = f"connectors.{name}.api_key"
    for way, secret in secrets_of(app):
        if not secret.is_set:
            continue
        place = used.setdefault(secret.reveal(), ".".join(map(str, way)))
        if place != ".".join(map(str, way)):
            yield Complaint(way, f"this is the secret of {place}, too", HINT)


def secrets_of(app: AppConfig) -> Iterator[tuple[Way, Secret]]:
    """Give all secrets of webhooks, and where they stand."""
    for name, webhook in app.webhooks.incoming.items():
        way: Way = ("webhooks", "in", name)
        yield (*way, "secret"), webhook.secret
        if webhook.previous_secret is not None:
            yield (*way, "previous_secret"), webhook.previous_secret
    for name, out in app.webhooks.out.items():
        yield ("webhooks", "out", name, "secret"), out.secret


OF_PROGRAMS = ("folder", "readable", "writable", "env")


def check_hooks(app: AppConfig) -> Iterator[Complaint]:
    """Check every hook."""
    for name, hook in app.hooks.items():
        way: Way = ("hooks", name)
        yield from check_code(way, hook)
        for key, known in (("connectors", app.connectors), ("agents", app.agents)):
            for index, each in enumerate(getattr(hook, key)):
                yield from unknown((*way, key, index), key[:-1], each, known)
        if hook.agents and "message_received" in hook.events:
            text = "a message that came in is no agent's yet: it is asked about all"
            hint = "make two hooks, or take the agents out"
            yield Complaint((*way, "agents"), text, hint)
        is_asked = {"message_received", "message_sending"} & set(hook.events)
        if hook.on_failure == "closed" and not is_asked:
            text = "it is only told of turns: there is nothing to hold back"
            yield Complaint((*way, "on_failure"), text, 'take it out, or say "open"')


def check_code(way: Way, hook: HookConfig) -> Iterator[Complaint]:
    """Check what is run."""
    if bool(hook.command) == bool(hook.python):
        text = "is a program or Python: give command or python, one of the two"
        yield Complaint(way, text, 'for example: command = ["python3", "check.py"]')
    if hook.command and not hook.command[0].strip():
        yield Complaint((*way, "command"), "names no program", "put its name first")
    for key in OF_PROGRAMS:
        if hook.python and getattr(hook, key):
            text = "a hook in Python has none: it runs in this process"
            yield Complaint((*way, key), text, "take it out")
