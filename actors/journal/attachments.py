"""Decides which files of an answer a platform takes; pure.

A transport's abilities (`TakesFiles`) say what it takes. No file is dropped silently:
one that does not fit is named in words, with the reason.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

import msgspec

from actors.messages.deliveries import Abilities, TakesFiles
from actors.messages.inbound import SentFile
from actors.rules.markers.sanitizer import clean

NOT_THERE = "The file {name} ({size}) cannot be sent here: files are not taken."
TOO_LARGE = "The file {name} ({size}) is larger than {platform} takes ({limit})."
NOT_SENT = "The file {name} ({size}) could not be sent: {reason}"

SHOWN = frozenset({"image/png", "image/jpeg", "image/gif", "image/webp"})
"""Media types that all platforms show as a picture; others go out as documents."""

SPOKEN = frozenset({"audio/ogg"})
"""Media types that can be a voice message."""

_NO_BRACKETS = str.maketrans("[]", "()")

MOST_REASON = 200
"""Most characters of a platform's error text that people read."""


Kind = Literal["image", "audio", "voice", "video", "document"]


class Fitted(msgspec.Struct, frozen=True):
    """One file as it is sent."""

    file: SentFile
    text: str
    """Its caption."""

    before: str = ""
    """Text that is sent before it, because the caption cannot hold it."""


class LeftOut(msgspec.Struct, frozen=True):
    """One file that is not sent."""

    text: str
    """For people: which file, and why."""


def fitted(files: Iterable[SentFile], can: Abilities) -> list[Fitted | LeftOut]:
    """Decide for each file of an answer how it is sent, or why not.

    Args:
        files: in the order in which the agent sent them.
    """
    takes = can.files
    if takes is None:
        return [_left_out(NOT_THERE, each) for each in files]
    return [_fitted(each, takes, can) for each in files]


def _fitted(file: SentFile, takes: TakesFiles, can: Abilities) -> Fitted | LeftOut:
    if takes.max_bytes and file.size > takes.max_bytes:
        limit = size_of(takes.max_bytes)
        return _left_out(TOO_LARGE, file, platform=takes.platform, limit=limit)
    is_large = takes.max_image_bytes and file.size > takes.max_image_bytes
    if file.kind == "image" and is_large:
        file = msgspec.structs.replace(file, kind="document")
    text = clean(file.caption)
    is_long = takes.max_caption and can.measure.size(text) > takes.max_caption
    if is_long or file.kind in takes.uncaptioned:
        return Fitted(file, "", text)
    return Fitted(file, text)


def _left_out(text: str, file: SentFile, **more: str) -> LeftOut:
    size = size_of(file.size)
    told = text.format(name=file.name, size=size, **more)
    return LeftOut(f"{told}\n{clean(file.caption)}".strip())


def not_sent(file: SentFile, reason: str) -> str:
    """Make the text that says that a platform refused a file."""
    why = " ".join(reason.split())[:MOST_REASON]
    return NOT_SENT.format(name=file.name, size=size_of(file.size), reason=why)


def size_of(count: int) -> str:
    """Write a number of bytes for people: `61 MB`, `1.5 MB`, `800 bytes`."""
    if count < 1_000:
        return f"{count} bytes"
    for unit, factor in (("kB", 1_000), ("MB", 1_000_000), ("GB", 1_000_000_000)):
        shown = count / factor
        if shown < 999.5 or unit == "GB":
            return f"{shown:.1f} {unit}" if shown < 9.95 else f"{shown:.0f} {unit}"
    raise AssertionError  # the last unit takes any number


def kind_of(media_type: str, wanted: str = "") -> Kind:
    """Decide how a file is shown.

    Args:
        media_type: found in its bytes.
        wanted: how the agent wants it shown; followed if the bytes allow it.
    """
    family = media_type.partition("/")[0]
    found: Kind = "document"
    if media_type in SHOWN:
        found = "image"
    elif family == "audio":
        found = "audio"
    elif media_type == "video/mp4":
        found = "video"
    if wanted == "voice" and media_type in SPOKEN:
        return "voice"
    return "document" if wanted == "document" else found


def names_of(files: Iterable[SentFile]) -> str:
    """Name files in one line, for the history; empty for none."""
    return ", ".join([each.name for each in files]).translate(_NO_BRACKETS)
