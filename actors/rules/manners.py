"""How to write where: what an agent is told of each platform (F177); pure.

One table. What a platform makes of Markdown is told to the model, so that it writes
what can be shown there; marks for pictures and the like only where somebody takes them
out of the text and sends them.
"""

from __future__ import annotations

import msgspec

MEDIA_MARKS = (
    "A file of your own folder also goes out by a mark in a line of its own:"
    " [IMAGE:path | caption], [DOCUMENT:path], [AUDIO:path] or [VOICE:path]."
)
"""Each is read by `reading.py` in a test."""


class Manners(msgspec.Struct, frozen=True):
    """What is told of one platform."""

    writing: str
    """How words are shown there."""

    media: str = ""
    """How files are sent there."""

    is_reachable_later: bool = True
    """Whether something can be said there that answers no message."""


PLATFORMS: dict[str, Manners] = {
    "telegram": Manners(
        "You write on Telegram. Bold, italics, code, links and quotes in Markdown are"
        " shown; headings and tables are not. Keep to short paragraphs.",
        MEDIA_MARKS,
    ),
    "matrix": Manners(
        "You write on Matrix. Markdown is shown, with headings, lists, code and"
        " tables.",
        MEDIA_MARKS,
    ),
    "qq": Manners(
        "You write on QQ. Plain text is shown, no Markdown: no asterisks, no headings,"
        " no tables. Links are written out."
    ),
    "discord": Manners(
        "You write on Discord. Markdown is shown: bold, italics, code blocks with their"
        " language, lists, quotes, headings up to three; tables are not. A message has"
        " at most 2,000 characters, so be brief. Put links in < > to keep them small.",
        MEDIA_MARKS,
    ),
    "slack": Manners(
        "You write on Slack. Bold, italics, lists, quotes and code in Markdown are"
        " shown; headings and tables are not.",
        MEDIA_MARKS,
    ),
    "whatsapp": Manners(
        "You write on WhatsApp. Bold, italics and code are shown; headings, tables and"
        " named links are not: write addresses out. People read it on a phone: be"
        " brief.",
        MEDIA_MARKS,
    ),
    "terminal": Manners(
        "You write in a terminal. Plain text is shown as it is: no Markdown, no tables,"
        " lines that fit a screen."
    ),
    "http": Manners(
        "A program asks, for whoever uses it. Markdown is usually shown.",
        is_reachable_later=False,
    ),
    "web": Manners(
        "You write on a web page. Markdown is shown, with tables and code.", MEDIA_MARKS
    ),
}
"""By the kind of the connector."""


def manners_of(platform: str) -> Manners | None:
    """Give what is told of a platform; None: nothing is known of it."""
    return PLATFORMS.get(platform)
