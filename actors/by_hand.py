"""What the operator does by hand, as the audit keeps it; pure but for ids and times."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from actors import records
from runtime.rows import Commit

if TYPE_CHECKING:
    from actors.services import Services

CHANNEL = "operator"
"""What the audit names instead of a connector."""

REASON = "by hand"


class Deed(msgspec.Struct, frozen=True):
    """Something that the operator did."""

    verb: str
    """What was done, as a command: `kill`, `retry`, `drop`, `pause`, …"""

    status: str
    """What became of it, one word: `killed`, `retried`, …"""

    target: str
    """Id or name of what it was done to."""

    by: str
    """Who did it."""


def as_commit(deed: Deed, services: Services) -> Commit:
    """Write down what was done, and by whom."""
    body = records.AuditRecord(
        channel=CHANNEL,
        chat=deed.target,
        sender_id=deed.by,
        sender_name=deed.by,
        input=f"{deed.verb} {deed.target}",
        status=deed.status,
        reason=REASON,
    )
    row = records.unheard(services.ids.new(), body, services.keep)
    return Commit(at=services.clock.wall(), records=(row,))
