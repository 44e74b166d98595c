"""What our apps send: the bodies of requests; pure.

Nothing that an agent writes calls anybody, shows a page, or is anything but text.
"""

from __future__ import annotations

from actors.messages.deliveries import Delivery
from connectors.chat.lenient_json import Json, table, text
from connectors.chat.markup.buttons import Button, buttons_of
from connectors.chat.markup.render import rendered
from connectors.chat.slack.events import is_ts
from connectors.chat.slack.markup import Slack
from connectors.chat.slack.platform import PLATFORM

MOST = PLATFORM.limits.text

MOST_SECTION = 3_000
"""Characters of one block. A question that is longer has no buttons: its words name
the commands."""

EVENT_TYPE = "callboard_delivery"
"""By which our own messages are found again; people do not see it."""

DIALECT = Slack()


def mrkdwn(words: str) -> str:
    """Write a text, which may be Markdown, as Slack shows it."""
    return rendered(words, DIALECT, MOST)


def message(delivery: Delivery, words: str) -> Json:
    """Write a delivery as what `chat.postMessage` takes."""
    shown = mrkdwn(words)
    said: Json = {
        "channel": delivery.address.chat,
        "text": shown,
        "metadata": {"event_type": EVENT_TYPE, "event_payload": {"id": delivery.id}},
        **quiet(),
    }
    buttons = buttons_of(delivery)
    if buttons and len(shown) <= MOST_SECTION:
        said["blocks"] = [section(shown), actions(buttons)]
    if is_ts(delivery.address.thread):
        said["thread_ts"] = delivery.address.thread
    return said


def whisper(words: str) -> Json:
    """Write an answer to a command that only its sender sees."""
    return {"response_type": "ephemeral", "text": mrkdwn(words)}


def shared(delivery: Delivery, words: str, file: str, title: str) -> Json:
    """Write a delivery's file as what `files.completeUploadExternal` takes.

    Args:
        delivery: which.
        words: what is said of the file; may be empty.
        file: its id at Slack.
        title: what people see as its name.
    """
    said: Json = {
        "files": [{"id": file, "title": title}],
        "channel_id": delivery.address.chat,
    }
    shown = mrkdwn(words).strip()
    if shown:
        said["initial_comment"] = shown
    if is_ts(delivery.address.thread):
        said["thread_ts"] = delivery.address.thread
    return said


def section(words: str) -> Json:
    """Write words as a block; of themselves they call nobody, and are no link."""
    return {
        "type": "section",
        "text": {"type": "mrkdwn", "text": words, "verbatim": True},
    }


def actions(buttons: tuple[Button, ...]) -> Json:
    """Write buttons as a block."""
    elements = [
        {
            "type": "button",
            "text": {"type": "plain_text", "text": each.label},
            "action_id": each.word,
            "value": each.says,
        }
        for each in buttons
    ]
    return {"type": "actions", "elements": elements}


def quiet() -> Json:
    """Say that no page is shown and nobody is called."""
    return {"unfurl_links": False, "unfurl_media": False, "link_names": False}


def delivery_id(shown: Json) -> str:
    """Return the id of the delivery that a message is; empty: it is none of ours."""
    metadata = table(shown.get("metadata"))
    if metadata.get("event_type") != EVENT_TYPE:
        return ""
    return text(table(metadata.get("event_payload")).get("id"))
