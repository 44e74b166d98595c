"""Who asked what, what came of it, and what was done by hand; the newest first."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

from connectors.office.audit import matching
from connectors.office.moments import moment
from connectors.web.page.looking import looked
from connectors.web.page.views import View
from runtime.sqlite_survey import survey

if TYPE_CHECKING:
    from connectors.web.page.looking import Look
    from connectors.web.page.views import Asked, Shown

MOST_LISTED = 100


async def load(asked: Asked) -> Shown:
    """Show the record."""
    return await looked(asked, read)


def read(look: Look) -> Shown:
    """Read the last rows that fit."""
    chat, sender = look.query.get("chat", ""), look.query.get("sender", "")
    with survey(look.path) as rows:
        wanted = matching(rows, chat, sender, 0.0, look.complain)
        found = list(itertools.islice(wanted, MOST_LISTED))
    return {
        "rows": [{"at": moment(row.at), "it": body} for row, body in found],
        "chat": chat,
        "sender": sender,
        "most": MOST_LISTED,
    }


VIEW = View("audit", "Audit", load, every=5.0)
