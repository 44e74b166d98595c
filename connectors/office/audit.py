"""Who asked what, and what came of it; and what was done by hand."""

from __future__ import annotations

from typing import TYPE_CHECKING

from actors import records
from actors.records import AuditRecord
from connectors.office.record import read_record

if TYPE_CHECKING:
    from collections.abc import Iterator

    from connectors.office.record import Complain
    from runtime.rows import StoredRecord
    from runtime.sqlite_survey import Survey

Found = tuple["StoredRecord", AuditRecord]


def matching(
    rows: Survey, chat: str, sender: str, since: float, complain: Complain
) -> Iterator[Found]:
    """Give what fits, the newest first."""
    for row in rows.recent(records.AUDIT, since):
        body = read_record(row, AuditRecord, complain)
        if body is None:
            continue
        chats = {"", body.chat, f"{body.channel}/{body.chat}"}
        if chat in chats and sender in {"", body.sender_id, body.sender_name}:
            yield row, body
