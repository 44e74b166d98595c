"""The audit: who asked what, how it ended, and changes by hand."""

from __future__ import annotations

from collections.abc import Iterator

from actors.journal.records import AUDIT, AuditRecord
from connectors.admin.display import Complain, read_record
from runtime.store.database import Inspection
from runtime.store.rows import StoredRecord

Found = tuple["StoredRecord", AuditRecord]


def matching(
    rows: Inspection, chat: str, sender: str, since: float, complain: Complain
) -> Iterator[Found]:
    """Give the audit records that fit, the newest first."""
    for row in rows.records(AUDIT, since):
        body = read_record(row, AuditRecord, complain)
        if body is None:
            continue
        chats = {"", body.chat, f"{body.channel}/{body.chat}"}
        account = f"{body.channel}/{body.sender_id}"
        senders = {"", body.sender_id, body.sender_name, account}
        if chat in chats and sender in senders:
            yield row, body
