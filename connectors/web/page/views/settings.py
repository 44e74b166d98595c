"""The settings in force, secrets masked, with where each was written."""

from __future__ import annotations

from typing import TYPE_CHECKING

from connectors.admin.settings import Setting, header, setting_rows
from connectors.web.page.views.base import View, applied_of, read_view
from runtime.config.messages import dotted

if TYPE_CHECKING:
    from connectors.web.page.views.base import Look, ViewRequest, ViewValues

DEFAULT_ONLY = "default"


async def load(asked: ViewRequest) -> ViewValues:
    """Show the settings."""
    return await read_view(asked, read)


def read(look: Look) -> ViewValues:
    """Read the settings, and changes that need a restart."""
    rows = setting_rows(look.config, look.inside.origins())
    with_defaults = look.query.get("all") == "1"
    find = look.query.get("find", "").strip()
    is_all = with_defaults or bool(find)
    wanted = [
        x
        for x in rows
        if (is_all or x.origin != DEFAULT_ONLY)
        and find.casefold() in f"{dotted(x.way)} {x.text}".casefold()
    ]
    applied = applied_of(look)
    return {
        "tables": tables(wanted),
        "all": with_defaults,
        "find": find,
        "hidden": 0 if find else len(rows) - len(wanted),
        "waiting": {} if applied is None else applied.waiting,
        "mistake": "" if applied is None else applied.mistake,
        "since": 0.0 if applied is None else applied.at,
    }


def tables(rows: list[Setting]) -> list[dict[str, object]]:
    """Group settings by their tables in a file."""
    found: dict[tuple[str | int, ...], list[dict[str, object]]] = {}
    for each in rows:
        key = each.way[-1]
        row: dict[str, object] = {
            "key": str(key),
            "name": dotted(each.way),
            "text": each.text,
            "origin": each.origin,
        }
        found.setdefault(each.way[:-1], []).append(row)
    return [
        {"header": header(way) if way else "", "rows": own}
        for way, own in found.items()
    ]


VIEW = View("settings", "Settings", load, every=5.0)
