"""Configured appointments: made, changed and ended as the settings say; pure.

They have the same names in every process, so that what is known of them (how often
they were carried out, that somebody paused them) outlives a restart.
"""

from __future__ import annotations

from hashlib import sha256
from math import floor
from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from datetime import tzinfo

    from actors.schedule.appointments import Appointment, Kind

OWNER = "settings"
"""Whose rows they are: nobody's, who could change them by asking an agent."""

_LENGTH = 26
"""Characters of an id, as all others have."""


def name_of(kind: Kind, agent: str) -> str:
    """Name the appointment of an agent; people see its first characters."""
    return sha256(f"{kind}/{agent}".encode()).hexdigest()[:_LENGTH].upper()


def settle(
    kept: Mapping[str, Appointment],
    wanted: Mapping[str, Appointment],
    now: float,
    zone_of: Callable[[Appointment], tzinfo],
) -> dict[str, Appointment | None]:
    """Say what is to be stored; None: it is to go.

    Args:
        kept: what there is, by id; only of this owner.
        wanted: what the settings say; without times.
        now: Unix seconds.
        zone_of: gives the zone of an appointment.
    """
    changes: dict[str, Appointment | None] = {x: None for x in kept if x not in wanted}
    for name, it in wanted.items():
        was = kept.get(name)
        is_same = was is not None and (was.repeat, was.zone) == (it.repeat, it.zone)
        if was is None or not is_same:
            it = _begun(it, was, now, zone_of(it))  # noqa: PLW2901  as it is stored
        else:
            it = _as_known(it, was)  # noqa: PLW2901  as it is stored
        if it != was:
            changes[name] = it
    return changes


def _begun(
    it: Appointment, was: Appointment | None, now: float, zone: tzinfo
) -> Appointment:
    """Reckon times from now on."""
    known = it if was is None else _as_known(it, was)
    begun = msgspec.structs.replace(known, anchor=float(floor(now)))
    due = begun.rule(zone).next_after(now) or 0.0
    created = now if was is None else was.created_at
    return msgspec.structs.replace(begun, next_due=due, created_at=created)


def _as_known(it: Appointment, was: Appointment) -> Appointment:
    """Give what is wanted with what is known of it."""
    return msgspec.structs.replace(
        it,
        anchor=was.anchor,
        next_due=was.next_due,
        run_at=was.run_at,
        last_due=was.last_due,
        fired=was.fired,
        skipped=was.skipped,
        failures=was.failures,
        paused=was.paused,
        created_at=was.created_at,
    )
