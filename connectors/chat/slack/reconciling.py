"""Finds out whether a delivery was said: words by the mark that they bear."""

from __future__ import annotations

from typing import TYPE_CHECKING

from connectors.chat.faults import BusyError
from connectors.chat.loose_json import Json, tables, text
from connectors.chat.slack.backfill import next_cursor
from connectors.chat.slack.content import delivery_id
from connectors.chat.slack.moments import at, is_ts, made_at, message_id

if TYPE_CHECKING:
    from collections.abc import Callable

    from actors.deliveries import Delivery
    from connectors.chat.slack.account import SlackAccount

PAGE = 200

MOST_PAGES = 20
"""Pages that are looked through; beyond, nobody knows."""

# Chosen: what Slack's clock and ours may differ by, and more.
MARGIN = 300.0
"""Seconds before a delivery was made from which it is looked for."""


def bears(delivery: Delivery, shown: Json) -> bool:
    """Tell whether a message bears the mark of a delivery."""
    return delivery_id(shown) == delivery.id


async def find(
    delivery: Delivery, account: SlackAccount, is_it: Callable[[Json], bool]
) -> str | None:
    """Look for a delivery in its channel, or in its thread.

    Args:
        delivery: which.
        account: by whose app.
        is_it: tells whether a message is the delivery.

    Returns:
        Its receipt, or None if it was not said.

    Raises:
        BusyError: so much was said since that nobody knows yet.
        PlatformError: it cannot be looked for.
    """
    channel, thread = delivery.address.chat, delivery.address.thread
    made = made_at(delivery.id)
    body: Json = {
        "channel": channel,
        "limit": PAGE,
        "include_all_metadata": True,
        "oldest": at(made - MARGIN) if made else "0",
    }
    method = "conversations.history"
    if is_ts(thread):
        method, body = "conversations.replies", {**body, "ts": thread}
    for _ in range(MOST_PAGES):
        answer = await account.ask(method, dict(body))
        for each in tables(answer.get("messages")):
            if is_it(each):
                return message_id(channel, text(each.get("ts")))
        cursor = next_cursor(answer)
        if not cursor:
            return None
        body["cursor"] = cursor
    raise BusyError(f"more than {PAGE * MOST_PAGES} messages were said since then")
