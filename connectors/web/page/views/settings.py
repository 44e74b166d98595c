"""The settings in force, secrets masked, with where each was written."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from connectors.admin.applied_settings import read_applied
from connectors.admin.display import moment
from connectors.admin.settings import Setting, header, setting_rows
from connectors.web.page.views.base import View, read_view
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
    wanted = [x for x in rows if with_defaults or x.origin != DEFAULT_ONLY]
    try:
        applied = read_applied(Path(look.config.store.path))
    except (OSError, ValueError):  # nobody notes what is in force: a test, or a play
        applied = None
    return {
        "tables": tables(wanted),
        "all": with_defaults,
        "hidden": len(rows) - len(wanted),
        "waiting": {} if applied is None else applied.waiting,
        "mistake": "" if applied is None else applied.mistake,
        "since": None if applied is None else moment(applied.at),
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
