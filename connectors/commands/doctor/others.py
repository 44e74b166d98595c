"""Looks at hooks, servers of tools, webhooks and what is due; starts none of them."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from functools import partial
from importlib.metadata import entry_points
from pathlib import Path

from connectors.admin.probes import Finding, Probe
from connectors.admin.schedule import all_rows
from connectors.app.webhooks import way_to
from connectors.commands.common.database import database_of
from connectors.commands.doctor.database import cure_of, is_readable
from connectors.config.app import AppConfig, HttpConfig
from connectors.config.checks import is_loopback
from connectors.config.hooks import HookConfig, WebhookOutConfig
from connectors.config.tools import FetchConfig
from connectors.fetch.messages import (
    FetchError,
    FetchRefusedError,
    FetchRequest,
    FetchTooLargeError,
)
from connectors.hooks.runner import GROUP
from runtime.errors import StoreError
from runtime.store.database import Database

FAILURES = "failures"
SHOWN_ID = 10
NO_PROGRAM = "install it, or give its whole path"


def webhook_probes(app: AppConfig) -> Iterator[Probe]:
    """Give a probe for each receiver of webhooks."""
    for name, webhook in app.webhooks.out.items():
        place = f"webhooks.out.{name}"
        yield Probe("webhook", place, partial(reach, place, webhook, app.fetch))


async def reach(
    place: str, webhook: WebhookOutConfig, fetch: FetchConfig
) -> list[Finding]:
    """Connect to a receiver as it would be sent to; nothing is told there."""
    fetcher = way_to(webhook, fetch)
    try:
        answer = await fetcher.fetch(FetchRequest(url=webhook.url))
    except FetchTooLargeError:
        return [Finding("ok", "webhook", f"{place}: reached")]
    except FetchRefusedError as error:
        cure = "private = true, if it is in your own network"
        return [Finding("wrong", "webhook", f"{place}: {error}", cure)]
    except FetchError as error:
        cure = "check url, and that the receiver runs; what is told waits meanwhile"
        return [Finding("wrong", "webhook", f"{place}: {error}", cure)]
    finally:
        await fetcher.aclose()
    words = f"{place}: reached (HTTP {answer.status} to a GET, which need not be taken)"
    return [Finding("ok", "webhook", words)]


def check_doors(app: AppConfig) -> Iterator[Finding]:
    """Say where webhooks come in, and whether others can reach that."""
    servers = [each for each in app.connectors.values() if isinstance(each, HttpConfig)]
    for name in app.webhooks.incoming:
        for http in servers:
            text = f"webhooks.in.{name}: POST {http.host}:{http.port}/webhooks/{name}"
            if is_loopback(http.host):
                cure = "others reach it only through a proxy on this machine"
                yield Finding("ok", "webhook", text, cure)
            else:
                yield Finding("ok", "webhook", text)


def check_hooks(app: AppConfig) -> Iterator[Finding]:
    """Check that the code of hooks is there; it is not started."""
    for name, hook in app.hooks.items():
        if hook.disabled:
            yield Finding("ok", "hook", f"hooks.{name}: left out, as set")
        elif hook.python:
            yield check_function(name, hook)
        else:
            yield check_program("hook", f"hooks.{name}", hook.command[0], hook.folder)


def check_function(name: str, hook: HookConfig) -> Finding:
    """Check that an installed package has the entry point."""
    known = sorted(each.name for each in entry_points(group=GROUP))
    if hook.python in known:
        text = (
            f"hooks.{name}: {hook.python}; to try it: callboard hooks try {name} TEXT"
        )
        return Finding("ok", "hook", text)
    text = f"hooks.{name}: no installed package has {hook.python!r} in {GROUP}"
    return Finding("wrong", "hook", text, f"known: {', '.join(known) or 'none'}")


def check_servers(app: AppConfig) -> Iterator[Finding]:
    """Check that the programs are there that servers of tools are."""
    for name, server in app.mcp_servers.items():
        if server.command and not server.disabled:
            place = f"mcpServers.{name}"
            yield check_program("tools", place, server.command, server.cwd)


def check_program(about: str, place: str, program: str, folder: Path | None) -> Finding:
    """Check that a program is there and may be run; one with a path from its folder."""
    found: str | None
    if os.sep in program:
        path = (folder or Path()) / program
        found = str(path) if os.access(path, os.X_OK) and path.is_file() else None
    else:
        found = shutil.which(program)
    if found is None:
        text = f"{place}: there is no program {program!r} that may be run"
        return Finding("wrong", about, text, NO_PROGRAM)
    return Finding("ok", about, f"{place}: {found}")


def check_schedule(app: AppConfig) -> Iterator[Finding]:
    """Check that what is due is carried out, and what rests because it failed."""
    waiting = [
        name
        for name, agent in app.agents.items()
        if agent.heartbeat.chat or agent.autonomous.repeat
    ]
    if not app.scheduler.is_on:
        text, cure = "off: nothing that is due is carried out", ""
        if waiting or app.webhooks.incoming:
            cure = "set is_on = true under [scheduler], or take what needs it out"
        yield Finding("warning" if cure else "ok", "scheduler", text, cure)
        return
    who = ", ".join(waiting) or "nobody"
    yield Finding("ok", "scheduler", f"on; by the settings {who} has something to do")
    yield from check_appointments(database_of(app))


def check_appointments(database: Database) -> Iterator[Finding]:
    """Name appointments that rest because they failed too often."""
    if not is_readable(database):
        return
    try:
        with database.inspect() as store:
            rows = all_rows(store)
    except StoreError as error:
        yield Finding("wrong", "database", str(error), cure_of(error))
        return
    for row in rows:
        if row.it.paused == FAILURES:
            text = (
                f"{row.it.kind} {row.id[:SHOWN_ID]} of {row.it.agent} rests: it failed"
            )
            cure = f"callboard schedule history {row.id[:SHOWN_ID]}, then resume it"
            yield Finding("warning", "scheduler", text, cure)
