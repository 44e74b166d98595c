"""How the appointments of a person or a group are listed: `/tasks`, and for models."""

from __future__ import annotations

from typing import TYPE_CHECKING

from actors.rules.local_time import in_words
from actors.rules.schedule import words_of
from actors.schedule_rows import SHOWN_ID, of_owner

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import tzinfo

    from actors.rules.schedule import Appointment
    from runtime.store import Entries

MOST_SHOWN = 20
SHOWN = 80
"""Characters shown of each text."""


async def listed(
    store: Entries,
    scope: str,
    find_zone: Callable[[str], tzinfo | None],
    most: int = MOST_SHOWN,
) -> tuple[str, ...]:
    """Give a line for each appointment of a scope, the next one first.

    Args:
        store: where they are kept.
        scope: whose; see `rules/appointing.Origin`.
        find_zone: gives a time zone by its name.
        most: lines to give.

    Raises:
        StoreUnavailableError: the disk fails.
    """
    found = await of_owner(store, scope)
    inf = float("inf")
    order = sorted(found.items(), key=lambda each: (each[1].wakes or inf, each[0]))
    return tuple(line(name, it, find_zone(it.zone)) for name, it in order[:most])


def line(name: str, it: Appointment, zone: tzinfo | None) -> str:
    """Show one: `A1B2C3 task · Mon 2026-11-23 09:00 UTC · daily · water the roses`."""
    when = "paused" if it.paused else "nothing to do"
    if it.wakes and zone is not None:
        when = in_words(it.wakes, zone, it.zone)
    what = " ".join(words_of(it).split())
    what = what if len(what) <= SHOWN else f"{what[: SHOWN - 1]}…"
    parts = (f"{name[:SHOWN_ID]} {it.kind}", when, it.repeat, what)
    return " · ".join(each for each in parts if each)
