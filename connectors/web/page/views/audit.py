"""The audit: messages with their outcomes, and changes by hand; the newest first."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

from connectors.admin.audit import matching
from connectors.admin.display import moment
from connectors.web.page.views.base import View, read_view

if TYPE_CHECKING:
    from connectors.web.page.views.base import Look, ViewRequest, ViewValues

MOST_LISTED = 100


async def load(asked: ViewRequest) -> ViewValues:
    """Show the record."""
    return await read_view(asked, read)


def read(look: Look) -> ViewValues:
    """Read the newest rows that match."""
    chat, sender = look.query.get("chat", ""), look.query.get("sender", "")
    with look.database.inspect() as rows:
        wanted = matching(rows, chat, sender, 0.0, look.complain)
        found = list(itertools.islice(wanted, MOST_LISTED))
    return {
        "rows": [{"at": moment(row.at), "it": body} for row, body in found],
        "chat": chat,
        "sender": sender,
        "most": MOST_LISTED,
    }


VIEW = View("audit", "Audit", load, every=5.0)
