"""What each platform takes: one table for all connectors.

A figure says where it is from. "Measured" is: against the platform's own client library
or server, or told so by its maintainers. Where a platform does not say in which unit it
counts, the strictest is used: UTF-16 units, in which an emoji counts 2.

Text. Discord, "Create Message": 2,000 characters, else error 50035. Slack,
"chat.postMessage": 4,000 are advised, beyond 40,000 the rest is cut off with no more
than a warning (measured); "chat.update" refuses more than 4,000 (`msg_too_long`), so
that one length holds for both. Telegram, Bot API "sendMessage": 4,096 characters after
entities parsing; of more than 100 marks the last are not shown, and links of more than
about 9,500 bytes in all are refused (`ENTITIES_TOO_LONG`, tdlib/telegram-bot-api issue
165). WhatsApp, Cloud API "Text messages": 4,096. Matrix, specification "Size limits":
an event has at most 65,536 bytes of canonical JSON; Synapse took a body of 64,500
(measured). One letter may take 6 bytes, and HTML may stand beside the text.

Pace. Discord: limits are told with each answer; 5 messages in 5 seconds are usual,
edits count. Slack, "Rate limits": one message a second and channel; edits are tier 3,
50 a minute. Telegram, "Bots FAQ": one message a second and chat, 20 a minute in a
group, edits included. WhatsApp, "Pair rate limits": one message in 6 seconds to one
person (error 131056). Matrix: Synapse's default is 10 at once and then one in 5
seconds, edits included; many servers lift it for bots, so settings say.

Captions and files. Discord, "Uploading files": 10 MiB each, 10 of them. Slack, "Working
with files": 1 GB. Telegram, "Sending files" and "getFile": 50 MB up, photos 10, 20 MB
down; captions of 1,024. WhatsApp, "Media": images 5 MB, sound and video 16 MB,
documents 100 MB; captions of 1,024, none with sound. Matrix: each server
says (`m.upload.size`).
"""

from __future__ import annotations

from typing import Literal

import msgspec

from actors.deliveries import Markup, TakesFiles

Platform = Literal["discord", "slack", "telegram", "whatsapp", "matrix", "web"]

MB, MIB = 1_000_000, 1_048_576


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    """What one platform takes; 0 is no limit, if nothing else is said."""

    markup: Markup
    text: int
    """Most of one message, in its unit; of an edit, too."""

    part: int
    """Where replies are cut, as `actors/rules/measures.py` counts; less than `text`, as
    markup may need a little more than was counted."""

    caption: int
    """Most of the text with a file, in the unit of `text`; 0: files have none."""

    pace: float
    """Least seconds between two messages in one chat."""

    per_minute: int = 0
    """Most messages and edits in one group and minute."""

    draft_pace: float
    """Least seconds between two edits; 0: there are no edits."""

    group_draft_pace: float
    """The same in groups."""

    typing_for: float
    """Seconds after which it is no longer shown that somebody writes; 0: it never is.
    Matrix lets us say how long."""

    upload_bytes: int
    """Largest file that can be sent."""

    image_bytes: int
    """Largest that is shown as an image."""

    download_bytes: int
    """Largest file that can be fetched."""

    clip_bytes: int = 0
    """Largest sound or video that is played; a larger one is a document. 0: any."""

    uncaptioned: tuple[str, ...] = ()
    """Kinds of files that no text goes with."""

    files: int = 1
    """Most files in one message."""


LIMITS: dict[Platform, Limits] = {
    "discord": Limits(
        markup="discord",
        text=2_000,
        part=1_900,
        caption=2_000,
        pace=1.0,
        draft_pace=1.2,
        group_draft_pace=1.2,
        typing_for=10.0,
        upload_bytes=10 * MIB,
        image_bytes=10 * MIB,
        download_bytes=0,
        files=10,
    ),
    "slack": Limits(
        markup="slack",
        text=4_000,
        part=3_800,
        caption=4_000,
        pace=1.0,
        draft_pace=1.2,
        group_draft_pace=1.2,
        typing_for=0.0,
        upload_bytes=1_000 * MB,
        image_bytes=1_000 * MB,
        download_bytes=0,
        files=10,
    ),
    "telegram": Limits(
        markup="telegram",
        text=4_096,
        part=4_000,
        caption=1_024,
        pace=1.0,
        per_minute=20,
        draft_pace=1.0,
        group_draft_pace=3.0,
        typing_for=5.0,
        upload_bytes=50 * MB,
        image_bytes=10 * MB,
        download_bytes=20 * MB,
        files=10,
    ),
    "whatsapp": Limits(
        markup="whatsapp",
        text=4_096,
        part=3_900,
        caption=1_024,
        pace=6.0,
        draft_pace=0.0,
        group_draft_pace=0.0,
        typing_for=25.0,
        upload_bytes=100 * MB,
        image_bytes=5 * MB,
        clip_bytes=16 * MB,
        uncaptioned=("audio", "voice"),
        download_bytes=100 * MB,
    ),
    "matrix": Limits(
        markup="",
        text=8_000,
        part=8_000,
        caption=8_000,
        pace=0.0,
        draft_pace=5.0,
        group_draft_pace=5.0,
        typing_for=15.0,
        upload_bytes=0,
        image_bytes=0,
        download_bytes=0,
    ),
    "web": Limits(
        markup="",
        text=0,
        part=0,
        caption=0,
        pace=0.0,
        draft_pace=0.0,
        group_draft_pace=0.0,
        typing_for=0.0,
        upload_bytes=0,
        image_bytes=0,
        download_bytes=0,
    ),
}


def takes_files(platform: Platform) -> TakesFiles:
    """Say what files a platform takes, as its transport tells the domain.

    Captions leave as much room for what was not counted as parts of a text do.
    """
    limits = LIMITS[platform]
    caption = limits.caption * limits.part // limits.text if limits.text else 0
    return TakesFiles(
        max_bytes=limits.upload_bytes,
        max_image_bytes=limits.image_bytes,
        max_caption=caption,
        uncaptioned=limits.uncaptioned,
    )
