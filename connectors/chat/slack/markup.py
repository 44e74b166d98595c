"""Slack's mrkdwn, and the bodies of requests that our apps send with it; pure.

Source: Slack, "Formatting text for app surfaces": `*bold*`, `_italic_`, `~strike~`,
code, quotes by line, `<https://…|named links>`; no headings, tables or nested lists; of
all signs only `&`, `<` and `>` are escaped, and all that calls somebody begins with
`<`. Marks inside a word are not seen: a blank of no width stands at their edges.

Nothing that an agent writes calls anybody, shows a page, or is anything but text.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from actors.messages.deliveries import Delivery
from connectors.chat.markup.dialect import (
    JOINT,
    Button,
    Inline,
    Mark,
    MarkupLine,
    Plain,
    WebLink,
    buttons_of,
    parted,
    prefixed,
    softened,
    utf16,
    without_ticks,
)
from connectors.chat.markup.render import rendered
from connectors.chat.requests import Json, table, text
from connectors.chat.slack.events import is_ts
from connectors.chat.slack.platform import PLATFORM

MARKS: dict[Mark, tuple[str, str]] = {
    "strong": ("*", "*"),
    "em": ("_", "_"),
    "strike": ("~", "~"),
}
ESCAPES = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;"})
# With `link_names` these would call, too.
CALL = re.compile(r"@(?=channel|here|everyone)", re.IGNORECASE)


@dataclass(frozen=True)
class Slack(Plain):
    """Slack; see `Dialect`."""

    allowed: frozenset[str] = frozenset()
    """Mentions that stay, as `<@U123>`."""

    marks: ClassVar[Mapping[Mark, tuple[str, str]]] = MARKS
    needs_edges: ClassVar[bool] = True
    bullet: ClassVar[str] = "• "

    def prepare(self, inline: Inline) -> Inline:
        """Take the meaning from signs that stand for themselves."""
        return softened(inline, MARKS)

    def escape(self, text: str, *, is_first: bool) -> str:
        """Escape what Slack reads."""
        pieces = parted(text, self.allowed)
        said = [
            each if index % 2 else escaped(each) for index, each in enumerate(pieces)
        ]
        whole = "".join(said)
        is_quote = is_first and whole.lstrip().startswith("&gt;")
        return f"{JOINT}{whole}" if is_quote else whole

    def code(self, text: str) -> str:
        """Write code; its own backticks would end it."""
        return f"`{escaped(without_ticks(text))}`"

    def link(self, link: WebLink) -> str:
        """Write a link."""
        href = link.href.translate(ESCAPES).replace("|", "%7C")
        if link.is_bare and link.text == link.href:
            return f"<{href}>"
        return f"<{href}|{escaped(link.text).replace('|', '¦')}>"

    def fence(self, text: str, language: str) -> list[str]:
        """Write code; Slack knows no languages."""
        del language
        inner = escaped(text).replace("``", f"`{JOINT}`")
        return ["```", *inner.split("\n"), "```"]

    def quote(self, lines: list[MarkupLine], depth: int) -> list[MarkupLine]:
        """Write a bracket before each line; Slack knows no quotes in quotes."""
        return prefixed(lines, "> " if depth == 0 else f"{JOINT}&gt; ")

    def plain(self, text: str) -> str:
        """Escape what Slack reads."""
        return escaped(text)

    def size(self, rendered: str) -> int:
        """Count as strictly as anybody could."""
        return utf16(rendered)


def escaped(text: str) -> str:
    """Escape what Slack reads, and break what calls a channel."""
    return CALL.sub(f"@{JOINT}", text).translate(ESCAPES)


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
        words: what is said of the file; may be empty.
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
