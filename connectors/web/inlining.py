"""Files of answers as a program gets them that only takes words: in the words.

A small file comes as a Markdown link with all its bytes in a `data:` address (RFC
2397). Programs send earlier answers back with each question: there the bytes are taken
out again, so that no model reads them.
"""

from __future__ import annotations

import re
from base64 import b64encode
from typing import TYPE_CHECKING

import msgspec
import trio

from actors.deliveries import TakesFiles
from actors.errors import DeliveryBusyError, DeliveryError
from actors.rules.enclosing import not_sent
from connectors.blobs import bytes_of

if TYPE_CHECKING:
    from actors.deliveries import Delivery
    from actors.ingress import Earlier
    from connectors.blobs import BlobFolder

# Chosen: it comes back with each further question, by half larger, and a request has
# 1 MiB by default.
MOST = 131_072
"""Bytes of a file that is put into words."""

TAKES = TakesFiles(max_bytes=MOST, max_image_bytes=MOST)

_INLINED = re.compile(r"\(data:[a-z]+/[a-z0-9.+-]+;base64,[A-Za-z0-9+/=]*\)")

BEFORE = "(sent before)"


async def inlined(delivery: Delivery, blobs: BlobFolder | None) -> Delivery:
    """Put a delivery's file into its words.

    Raises:
        DeliveryRefusedError: its bytes are gone.
        DeliveryBusyError: they cannot be read now.
    """
    file = delivery.file
    if file is None:
        return delivery
    path = bytes_of(blobs, file)
    try:
        content = await trio.to_thread.run_sync(path.read_bytes)
    except OSError as error:
        text = f"the file cannot be read now: {error.strerror}"
        raise DeliveryBusyError(text) from error
    encoded = b64encode(content).decode()
    sign = "!" if file.kind == "image" else ""
    name = file.name.replace("[", "(").replace("]", ")")
    link = f"{sign}[{name}](data:{file.media_type};base64,{encoded})"
    return msgspec.structs.replace(
        delivery, text=f"{delivery.text}\n{link}".strip(), file=None
    )


async def all_inlined(known: Earlier, blobs: BlobFolder | None) -> Earlier:
    """Put the files of earlier answers into words, as far as they are there."""
    said: list[Delivery] = []
    for each in known.deliveries:
        try:
            said.append(await inlined(each, blobs))
        except DeliveryError as error:
            told = "" if each.file is None else not_sent(each.file, str(error))
            said.append(msgspec.structs.replace(each, text=told, file=None))
    return msgspec.structs.replace(known, deliveries=tuple(said))


def without_bytes(text: str) -> str:
    """Take the bytes of files out of what a program sends back."""
    return _INLINED.sub(BEFORE, text) if "(data:" in text else text
