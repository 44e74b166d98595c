"""The audit: messages with their outcomes, and changes by hand; the newest first."""

from __future__ import annotations

import itertools

from actors.journal.records import AuditRecord
from connectors.admin.audit import matching
from connectors.web.page.views.base import (
    Look,
    View,
    ViewValues,
    reading,
)

MOST_LISTED = 100

MOST_LOOKED_AT = 20_000
"""Rows that are read for one page at most."""


def read(look: Look) -> ViewValues:
    """Read the newest rows that match."""
    query = look.query
    names = ("chat", "sender", "status", "agent", "find")
    wanted = {name: query.get(name, "").strip() for name in names}
    find = wanted["find"].casefold()

    def fits(body: AuditRecord) -> bool:
        words = f"{body.input} {body.output} {body.reason}".casefold()
        return (
            wanted["status"] in {"", body.status}
            and wanted["agent"] in {"", body.agent}
            and find in words
        )

    with look.database.inspect() as rows:
        past = matching(rows, wanted["chat"], wanted["sender"], 0.0, look.complain)
        looked_at = itertools.islice(past, MOST_LOOKED_AT)
        found = list(
            itertools.islice((x for x in looked_at if fits(x[1])), MOST_LISTED)
        )
    return {
        **wanted,
        "rows": [
            {"at": row.at, "id": row.id.partition("#")[0], "it": body}
            for row, body in found
        ],
        "statuses": STATUSES,
        "agents": list(look.config.agents),
        "most": MOST_LISTED,
    }


STATUSES = (
    *("replied", "failed", "cancelled", "dropped", "not_addressed", "unauthorised"),
    *("killed", "retried", "paused", "resumed", "begun", "forgotten"),
)
"""What a filter offers; the address takes any."""


VIEW = View("audit", "Audit", reading(read), every=5.0)
