"""Counts the open work in a copy of the database; restoring the copy repeats it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from actors.schedule.rows import KIND, read
from runtime.errors import StoreRefusedError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from runtime.store.database import Database

ADVICE = (
    (
        "The next start on this copy does that, for a second time if it was done after"
        " the copy was made."
    ),
    (
        "To leave something out, between restore and that start: callboard queue list,"
        " then queue drop ID; callboard schedule list, then schedule pause ID."
    ),
)


class Unfinished(msgspec.Struct, frozen=True):
    """How much work is open in a copy."""

    messages: int
    """Not answered."""

    deliveries: int
    """Not sent."""

    appointments: int
    """Due."""


def unfinished_in(copy: Database, now: float) -> Unfinished | None:
    """Count the open work in a copy.

    Args:
        copy: a database that nobody changes.
        now: Unix seconds; what was to happen until then is due.

    Returns:
        None for one that an older release wrote, or another program.

    Raises:
        runtime.errors.StoreError: it cannot be read.
    """
    try:
        with copy.inspect() as rows:
            counts = rows.counts()
            read_rows = [read(row) for row in rows.entries(KIND)]
    except StoreRefusedError:
        return None
    due = [it for it in read_rows if it is not None and it.wakes and it.wakes <= now]
    inbox, outbox = counts.inbox, counts.outbox
    return Unfinished(
        messages=inbox.get("accepted", 0) + inbox.get("running", 0),
        deliveries=outbox.get("pending", 0) + outbox.get("sending", 0),
        appointments=len(due),
    )


def told(found: Unfinished | None) -> Iterator[str]:
    """Say which work is open, and what restoring does; nothing if none is."""
    if found is None:
        return
    counted = [
        f"{number:,} {one if number == 1 else many}"
        for number, one, many in (
            (found.messages, "message not answered", "messages not answered"),
            (found.deliveries, "delivery not sent", "deliveries not sent"),
            (found.appointments, "appointment due", "appointments due"),
        )
        if number
    ]
    if counted:
        yield f"Not done in it: {', '.join(counted)}."
        yield from ADVICE
