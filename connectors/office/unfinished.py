"""What a copy of the database still has to do, and does anew once it is put back."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from actors.schedule_rows import KIND, read
from runtime.errors import StoreRefusedError
from runtime.sqlite_survey import survey

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

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
    """How much is not done."""

    messages: int
    """Not answered."""

    deliveries: int
    """Not sent."""

    appointments: int
    """Due."""


def unfinished_in(copy: Path, now: float) -> Unfinished | None:
    """Count what is not done in a copy.

    Args:
        copy: a database that nobody changes.
        now: Unix seconds; what was to happen until then is due.

    Returns:
        None for one that an older release wrote, or another program.

    Raises:
        runtime.errors.StoreError: it cannot be read.
    """
    try:
        with survey(copy) as rows:
            messages, deliveries = rows.open_rows()
            read_rows = [read(row) for row in rows.entries(KIND)]
    except StoreRefusedError:
        return None
    due = [it for it in read_rows if it is not None and it.wakes and it.wakes <= now]
    return Unfinished(messages, deliveries, len(due))


def told(found: Unfinished | None) -> Iterator[str]:
    """Say what is not done, and what that means; nothing, if all is done."""
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
