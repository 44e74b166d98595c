"""What becomes of each top-level setting that changes while the company runs; pure.

`TABLE` names for each the parts of the company that have to be told; `apply.py`
carries that out, and touches nobody else. A new section needs one line here, which a
test asks for. What cannot change while it runs says why: the operator reads it. A
section may be changed on the page only if its line says so (`by_hand.py`).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

import msgspec

from connectors.config.app import AppConfig
from connectors.tools.registry import wanted_tools

Step = Literal[
    "log",
    "sandbox",
    "catalogue",
    "tools",
    "sources",
    "media",
    "memory",
    "agents",
    "connectors",
]
"""A part of the company.

`log`: what is written. `sandbox`: programs that are started from now on. `catalogue`:
models, accounts and budgets, with the actor that has them. `tools`: what agents can do.
`sources`: servers of tools and skills; of these only what has changed is restarted.
`media`: who reads attachments. `memory`: the actors of agents' memories. `agents`: who
works here, and who is routed to whom. `connectors`: of these, too, only what has
changed. What all actors look up whenever they need it (`Services`) has no name here: it
is replaced at each change.
"""


class SettingRule(msgspec.Struct, frozen=True):
    """What becomes of a change."""

    steps: tuple[Step, ...] = ()
    """Who is told; all others look it up, or it waits."""

    cold: str = ""
    """Why it waits for a restart; empty: it does not."""

    on_page: bool = False
    """Whether operators may change it on the page; else it is changed in its file."""


def live(*steps: Step, on_page: bool = False) -> SettingRule:
    """Say who is told of a change, and whether it may be made on the page."""
    return SettingRule(steps, on_page=on_page)


def cold(why: str) -> SettingRule:
    """Say why a setting waits for a restart."""
    return SettingRule(cold=why)


TABLE: dict[str, SettingRule] = {
    "access": live(),
    "accounts": live("catalogue"),
    "admin": cold("its address is taken once, before all else"),
    "agent_defaults": live(
        "agents", on_page=True
    ),  # what agents inherit is in `agents` already
    "agents": live("agents", on_page=True),  # and see `further`
    "approvals": live(),
    "audit": live(),
    "budgets": live("catalogue", on_page=True),
    "buffering": live("agents", on_page=True),
    "busy_policies": live("agents", on_page=True),
    "collaboration": live(on_page=True),
    "commands": live(),
    "compaction": live(on_page=True),
    "connectors": live("connectors"),
    "default_agent": live("agents", on_page=True),
    "embedders": live("memory"),
    "fetch": live("tools", "media", "agents"),
    "files": cold("what is still to go out lies in the folder that is open"),
    "hiring": live("agents"),
    "hooks": cold("a message must not meet half of the hooks that it goes by"),
    "ledger": live("catalogue", on_page=True),
    "limits": live("agents", on_page=True),
    "log": live("log", on_page=True),
    "log.file": cold("it is opened once, before all else"),
    "log.max_file_bytes": cold("the file is opened once, before all else"),
    "log.pace": cold("what holds lines back is opened once, before all else"),
    "mcpServers": live("catalogue", "sources", "agents"),
    "mcp_servers_file": live("catalogue", "sources", "agents"),
    "media": live("media", on_page=True),
    "memory": live("memory", "agents", on_page=True),
    "models": live("catalogue", "agents", on_page=True),
    "nodes": cold("the other nodes know this one as it was started"),
    "notebook": live(on_page=True),
    "owners": live("connectors"),
    "people": live(on_page=True),
    "permissions": live(),
    "presence": live(on_page=True),
    "projects": live("agents", on_page=True),
    "retries": live(on_page=True),
    "routes": live("agents", on_page=True),
    "sandbox": live("sandbox", "catalogue"),
    "scheduler": live(on_page=True),
    "sessions": live("agents", on_page=True),
    "skills": live("catalogue", "sources", "agents"),
    "skills.interceptors": cold("they are hooks, and wait as those do"),
    "store": cold("all that is under way is kept in the database that is open"),
    "tool_calls": live(on_page=True),
    "tracing": cold("where traces are sent is opened once, before all else"),
    "watchdog": live(on_page=True),
    "web_search": live("tools", "agents"),
    "webhooks": live(),
    "webhooks.out": cold("what is still to be sent is in the hands of who sends it"),
    "workspace": live("catalogue", "tools", "sources", "agents"),
}
"""By the name as it is written; `section.field` counts before its section."""


class ReloadPlan(msgspec.Struct, frozen=True):
    """What a change of the settings comes to."""

    target: AppConfig
    """The new settings, but for what waits for a restart: that is as it was."""

    applied: tuple[str, ...]
    """Top-level settings that differ, and are taken over."""

    waiting: dict[str, str]
    """Settings that wait for a restart, with the reason."""

    steps: frozenset[Step]


def written_names() -> dict[str, str]:
    """Give the name of each top-level setting as it is written, by its own."""
    names = AppConfig.__struct_fields__, AppConfig.__struct_encode_fields__
    return dict(zip(*names, strict=True))


def make_plan(running: AppConfig, new: AppConfig) -> ReloadPlan:
    """Say what is to be done."""
    target, waiting = hold_cold(running, new)
    applied = [
        written
        for name, written in written_names().items()
        if getattr(running, name) != getattr(target, name)
    ]
    steps: set[Step] = {step for name in applied for step in TABLE[name].steps}
    steps.update(further(running, target))
    return ReloadPlan(target, tuple(applied), waiting, frozenset(steps))


def further(running: AppConfig, target: AppConfig) -> Iterator[Step]:
    """Name what is made by what agents want, if they want something else now."""
    if wanted_tools(running) != wanted_tools(target):
        yield "tools"
    if wanted_of_sources(running) != wanted_of_sources(target):
        yield "sources"


def wanted_of_sources(config: AppConfig) -> dict[str, object]:
    """Say what each agent may have of servers and skills."""
    return {name: (each.tools, each.skills) for name, each in config.agents.items()}


def hold_cold(running: AppConfig, new: AppConfig) -> tuple[AppConfig, dict[str, str]]:
    """Leave as it was whatever waits for a restart.

    Returns:
        The settings, and what waits, with the reason.
    """
    waiting: dict[str, str] = {}
    own = {written: name for name, written in written_names().items()}
    for place, row in TABLE.items():
        if not row.cold:
            continue
        section, _, field = place.partition(".")
        name = own[section]
        before, after = getattr(running, name), getattr(new, name)
        if field and getattr(before, field) != getattr(after, field):
            held = msgspec.structs.replace(after, **{field: getattr(before, field)})
        elif not field and before != after:
            held = before
        else:
            continue
        waiting[place] = row.cold
        new = replaced(new, name, held)
    return new, waiting


def replaced(config: AppConfig, name: str, value: object) -> AppConfig:
    """Give settings with one top-level setting in another's place."""
    changes: dict[str, object] = {name: value}
    return msgspec.structs.replace(config, **changes)
