"""Conversations, and the events of one conversation."""

from __future__ import annotations

import math

from connectors.admin.conversations import Conversation, read_conversations, read_story
from connectors.web.page.views.base import (
    Look,
    View,
    ViewValues,
    conversation_label,
    names_of,
    number_of,
    reading,
)
from runtime.store.database import FIRST, Mark

MOST_LISTED = 50
MOST_EVENTS = 100


def read_list(look: Look) -> ViewValues:
    """List conversations, last active first."""
    query = look.query
    find = query.get("find", "").strip()
    with look.database.inspect() as rows:
        known = names_of(rows)

        def fits(each: Conversation) -> bool:
            who = known.get(f"{each.body.connector}/{each.body.sender_id}", "")
            return find.casefold() in f"{each.stream} {who}".casefold()

        found = read_conversations(
            rows,
            MOST_LISTED,
            look.complain,
            past=mark_of(query.get("past", "")),
            agent=query.get("agent", ""),
            connector=query.get("connector", ""),
            fits=fits,
        )
    return {
        "name": "",
        "found": [
            {
                "stream": each.stream,
                "label": conversation_label(each.stream, known),
                "body": each.body,
            }
            for each in found.found
        ],
        "next": "" if found.next is None else f"{found.next[0]!r}_{found.next[1]}",
        "agents": list(look.config.agents),
        "connectors": list(look.config.connectors),
        "agent": query.get("agent", ""),
        "connector": query.get("connector", ""),
        "find": find,
        "is_first": not query.get("past"),
    }


def read_one(look: Look) -> ViewValues:
    """Read a page of events of one conversation."""
    name = look.query["name"]
    before, after = (number_of(look.query.get(x, "")) for x in ("before", "after"))
    key = look.inside.services.receipt_key
    with look.database.inspect() as rows:
        told = read_story(rows, name, MOST_EVENTS, key, before=before, after=after)
        label = conversation_label(name, names_of(rows))
    return {"name": name, "label": label, "told_of": told}


def mark_of(text: str) -> Mark:
    """Read the mark where a page begins; anything else is the first page."""
    at, _, number = text.partition("_")
    try:
        found = float(at)
    except ValueError:
        return FIRST
    return (found, number_of(number)) if math.isfinite(found) else FIRST


VIEW = View(
    "conversations", "Conversations", reading(read_list, read_one, "name"), every=5.0
)
