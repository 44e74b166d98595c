"""The settings in force, secrets masked, with where each was written; and their change.

A change is proposed by the address (`change` and `value`), which shows what it would
come to and writes nothing, and is written by a form with the mark of that proposal.
"""

from __future__ import annotations

from collections.abc import Callable

import trio

from connectors.admin.settings import (
    DEFAULT,
    ProposedSetting,
    Setting,
    Way as SettingWay,
    header,
    setting_rows,
)
from connectors.config.app import AppConfig
from connectors.web.page.views.base import (
    LONGEST_TEXT,
    Look,
    Refusal,
    View,
    ViewRequest,
    ViewValues,
    applied_of,
    clean,
    reading,
    record_change,
)
from runtime.config.messages import dotted, toml
from runtime.errors import MisuseError

MOST_AGENTS = 50
"""Agents whose models are listed above all settings."""

MOST_LISTED = 1_500
"""Settings on one page: a company of a thousand agents has tens of thousands, which no
browser shows and nobody reads."""

LONGEST = LONGEST_TEXT
"""Characters of a value that is changed here: a page shows no more."""


def read(look: Look) -> ViewValues:
    """Read the settings, and changes that need a restart."""
    rows = rows_of(look)
    with_defaults = look.query.get("all") == "1"
    find = look.query.get("find", "").strip()
    is_all = with_defaults or bool(find)
    wanted = [
        x
        for x in rows
        if (is_all or x.origin != DEFAULT)
        and find.casefold() in f"{dotted(x.way)} {x.text}".casefold()
    ]
    applied = applied_of(look)
    may_change = may_change_of(look)
    change, proposed, refused = look.query.get("change", ""), None, ""
    if change:
        try:
            proposed = proposal(look, change)
        except MisuseError as error:
            refused = str(error)
    return {
        "change": change,
        "proposed": proposed,
        "refused": refused,
        "tables": [] if change else tables(wanted[:MOST_LISTED], may_change),
        "more": 0 if change else max(0, len(wanted) - MOST_LISTED),
        "agents": [] if change or is_all else agents_of(look, may_change),
        "models": [toml(each) for each in look.config.models],
        "all": with_defaults,
        "find": find,
        "hidden": 0 if find else len(rows) - len(wanted),
        "waiting": {} if applied is None else applied.waiting,
        "mistake": "" if applied is None else applied.mistake,
        "since": 0.0 if applied is None else applied.at,
    }


def rows_of(look: Look) -> list[Setting]:
    """Give all settings in force; the same ones are not written out again and again.

    A large company has tens of thousands, which takes a second.
    """
    config = look.config

    def written() -> tuple[AppConfig, list[Setting]]:
        return config, setting_rows(config, look.inside.origins())

    known, rows = look.paced("settings", written)
    return rows if known is config else written()[1]


def may_change_of(look: Look) -> Callable[[SettingWay], bool]:
    """Give what says whether a setting may be changed here."""
    if look.inside.editor is None:
        return lambda _: False
    editor = look.inside.editor()
    return lambda way: not editor.refusal(way)


def proposal(look: Look, name: str) -> ProposedSetting:
    """Check the change that the address proposes.

    Raises:
        MisuseError: there is no such setting, or it is not changed here.
    """
    if look.inside.editor is None:
        raise MisuseError("settings cannot be changed here")
    value = look.query.get("value")
    check_length(value or "")
    proposed = look.inside.editor().propose(name, value)
    # What the page shows is what its form sends back.
    if clean(proposed.text, look.inside.services.redact) != proposed.text:
        text = (
            f"the value of {name} cannot be shown here in full; change it in the file"
        )
        raise MisuseError(text)
    return proposed


def check_length(value: str) -> None:
    """Check that a value is no longer than a page can show.

    Raises:
        MisuseError: it is longer.
    """
    if len(value) > LONGEST:
        text = f"the value has more than {LONGEST:,} characters; change it in the file"
        raise MisuseError(text)


def agents_of(
    look: Look, may_change: Callable[[SettingWay], bool]
) -> list[dict[str, object]]:
    """Say which model each agent asks."""
    return [
        {
            "name": name,
            "model": toml(agent.model),
            "setting": dotted(("agents", name, "model")),
            "may_change": may_change(("agents", name, "model")),
        }
        for name, agent in list(look.config.agents.items())[:MOST_AGENTS]
    ]


def tables(
    rows: list[Setting], may_change: Callable[[SettingWay], bool]
) -> list[dict[str, object]]:
    """Group settings by their tables in a file."""
    found: dict[tuple[str | int, ...], list[dict[str, object]]] = {}
    for each in rows:
        key = each.way[-1]
        row: dict[str, object] = {
            "key": str(key),
            "name": dotted(each.way),
            "text": each.text,
            "origin": each.origin,
            "may_change": may_change(each.way),
        }
        found.setdefault(each.way[:-1], []).append(row)
    return [
        {"header": header(way) if way else "", "rows": own}
        for way, own in found.items()
    ]


async def save(asked: ViewRequest) -> str:
    """Write a change that was proposed."""
    inside, form = asked.inside, asked.form
    services, name = inside.services, form.get("name", "")
    if inside.editor is None:
        raise Refusal(asked.say("settings cannot be changed here"))
    editor = inside.editor()
    value, mark = form.get("value", ""), form.get("mark", "")
    try:
        check_length(value)
        await trio.to_thread.run_sync(editor.write, name, value, mark)
    except MisuseError as error:
        raise Refusal(services.redact(str(error))) from error
    await record_change(asked, "settings", "changed", name)
    return asked.say("{name} is written, and in force within some seconds", name=name)


VIEW = View("settings", "Settings", reading(read), every=5.0, actions={"save": save})
