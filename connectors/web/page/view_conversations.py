"""Conversations: which there are, and what happened in each, event by event."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from connectors.office.conversations import read_conversations, read_story
from connectors.office.moments import moment
from connectors.web.page.looking import looked, number_of
from connectors.web.page.views import View
from runtime.sqlite_survey import FIRST

if TYPE_CHECKING:
    from connectors.web.page.looking import Look
    from connectors.web.page.views import Asked, Shown
    from runtime.sqlite_survey import Mark

MOST_LISTED = 50
MOST_EVENTS = 100


async def load(asked: Asked) -> Shown:
    """List conversations, or tell one."""
    return await looked(asked, read_one if asked.query.get("name") else read_list)


def read_list(look: Look) -> Shown:
    """List conversations, that with the newest words first."""
    query = look.query
    found = read_conversations(
        look.path,
        MOST_LISTED,
        look.complain,
        past=mark_of(query.get("past", "")),
        agent=query.get("agent", ""),
        connector=query.get("connector", ""),
    )
    return {
        "name": "",
        "found": [
            {
                "stream": each.stream,
                "body": each.body,
                "last_at": moment(each.body.last_message_at),
            }
            for each in found.found
        ],
        "next": "" if found.next is None else f"{found.next[0]!r}_{found.next[1]}",
        "agents": list(look.config.agents),
        "connectors": list(look.config.connectors),
        "agent": query.get("agent", ""),
        "connector": query.get("connector", ""),
        "is_first": not query.get("past"),
    }


def read_one(look: Look) -> Shown:
    """Tell some of what happened in one conversation."""
    name = look.query["name"]
    before, after = (number_of(look.query.get(x, "")) for x in ("before", "after"))
    told = read_story(look.path, name, MOST_EVENTS, before=before, after=after)
    return {"name": name, "told_of": told}


def mark_of(text: str) -> Mark:
    """Read where a page begins; what is none is the first."""
    at, _, number = text.partition("_")
    try:
        found = float(at)
    except ValueError:
        return FIRST
    return (found, number_of(number)) if math.isfinite(found) else FIRST


VIEW = View("conversations", "Conversations", load, every=5.0)
