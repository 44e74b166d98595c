"""The audit record of what an operator does by hand; pure but for ids and times."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from actors.journal import records
from runtime.store.rows import Commit

if TYPE_CHECKING:
    from actors.services import Services

CHANNEL = "operator"
"""Stands in the audit instead of a connector."""

REASON = "by hand"


class Deed(msgspec.Struct, frozen=True):
    """Something that an operator did."""

    verb: str
    """The command: `kill`, `retry`, `drop`, `pause`, …"""

    status: str
    """The outcome in one word: `killed`, `retried`, …"""

    target: str
    """Id or name of the object."""

    by: str
    """The operator."""


def as_commit(deed: Deed, services: Services) -> Commit:
    """Make the commit of the audit record."""
    body = records.AuditRecord(
        channel=CHANNEL,
        chat=deed.target,
        sender_id=deed.by,
        sender_name=deed.by,
        input=f"{deed.verb} {deed.target}",
        status=deed.status,
        reason=REASON,
    )
    row = records.audit_row(services.ids.new(), body, services.keep)
    return Commit(at=services.clock.wall(), records=(row,))
