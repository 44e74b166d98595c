"""Files that agents send, as clients are told of them; pure.

Source: `@elizaos/core` 1.7, `Media`: id, url, title, source, description, text,
contentType.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from actors.deliveries import Delivery
    from actors.messages import SentFile
    from connectors.web.eliza.shapes import Json

CONTENT = {"image": "image", "audio": "audio", "voice": "audio", "video": "video"}


def attachment_of(file: SentFile, url: str) -> Json:
    """Tell of a file; `url` is its path on this server, which asks for the same key."""
    return {
        "id": url.rpartition("/")[2].partition(".")[0],
        "url": url,
        "title": file.name,
        "source": "agent",
        "description": file.caption,
        "text": "",
        "contentType": CONTENT.get(file.kind, "document"),
        "mediaType": file.media_type,
        "size": file.size,
    }


def linked(delivery: Delivery, shown: Json) -> Delivery:
    """Name a delivery's file in its words, for who waits for words only."""
    if not shown:
        return delivery
    sign = "!" if shown["contentType"] == "image" else ""
    title = str(shown["title"]).replace("[", "(").replace("]", ")")
    link = f"{sign}[{title}]({shown['url']})"
    text = f"{delivery.text}\n{link}".strip()
    return msgspec.structs.replace(delivery, text=text, file=None)
