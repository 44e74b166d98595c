"""What our bots send; pure.

Source: developers' reference, "Create Message". `allowed_mentions` always forbids all:
a model that was talked into `@everyone` calls nobody.
"""

from __future__ import annotations

import hashlib

from actors.messages.inbound import SentFile
from connectors.chat.discord.events import number
from connectors.chat.discord.markup import Discord
from connectors.chat.discord.platform import PLATFORM
from connectors.chat.lenient_json import Json
from connectors.chat.markup.render import rendered

LIMIT = PLATFORM.limits
DIALECT = Discord()

NONCE_CHARS = 25
"""Source: developers' reference; a longer one is refused."""

NOTHING_SEEN = "\u200b"


def words(text: str) -> str:
    """Write a text as Discord shows it; it takes none that is empty."""
    return rendered(text, DIALECT, LIMIT.text).strip() or NOTHING_SEEN


def message(
    text: str, key: str, reply_to: str = "", file: SentFile | None = None
) -> Json:
    """Write a message.

    Args:
        text: what it says.
        key: the same for the same message; Discord makes one of two with one key.
        reply_to: the id of the message it replies to; empty, or none: of none.
        file: what it brings.
    """
    found: Json = {
        **(changed(text) if file is None else brought(text, file)),
        "nonce": nonce(key),
        "enforce_nonce": True,
    }
    if number(reply_to):
        # Why not refused without it: the question may have been deleted meanwhile.
        found["message_reference"] = {
            "message_id": reply_to,
            "fail_if_not_exists": False,
        }
    return found


def changed(text: str) -> Json:
    """Write what a message is to read from now on."""
    return {
        "content": words(text),
        "allowed_mentions": {"parse": [], "replied_user": False},
    }


def brought(text: str, file: SentFile) -> Json:
    """Write what is said with a file, which may be nothing; Discord shows it by kind.

    Source: developers' reference, "Uploading Files": `id` is the number of the form's
    field, `files[0]`.
    """
    said = rendered(text, DIALECT, LIMIT.caption).strip()
    return {
        **changed(text),
        "content": said,
        "attachments": [{"id": 0, "filename": file.name}],
    }


def nonce(key: str) -> str:
    """Make the key by which Discord knows a message that is sent again."""
    return hashlib.sha256(key.encode()).hexdigest()[:NONCE_CHARS]
