"""What a server answers to a call, made a result for a model.

Pure. The answer comes from a program that may be wrong or hostile: each part is
bounded, what a model cannot take is named instead, and nothing is taken at its word,
pictures least of all.
"""

from __future__ import annotations

import base64
import binascii
from typing import cast

import msgspec

from actors.messages.inbound import Image, ToolResult
from actors.rules.text.cleaning import UNSEEN, one_line

MOST_PARTS = 100
MOST_IMAGES = 8
LARGEST_IMAGE = 5 * 1024 * 1024
"""Bytes; what the strictest provider takes."""

EMPTY = "(the tool gave nothing back)"

SIGNS: tuple[tuple[bytes, bytes, str], ...] = (
    (b"\x89PNG\r\n\x1a\n", b"", "image/png"),
    (b"\xff\xd8\xff", b"", "image/jpeg"),
    (b"GIF8", b"", "image/gif"),
    (b"RIFF", b"WEBP", "image/webp"),
)
"""First bytes, then those from the eighth on, of the pictures that models see."""

Table = dict[str, object]


def result_of(answer: object, most_chars: int) -> ToolResult:
    """Make a result of an answer.

    Args:
        answer: the `result` of a `tools/call`, as JSON.
        most_chars: longest text of the result.
    """
    if not isinstance(answer, dict):
        return ToolResult("the server's answer is no result", is_error=True)
    table = cast("Table", answer)
    content = table.get("content")
    parts = cast("list[object]", content) if isinstance(content, list) else []
    texts: list[str] = []
    images: list[Image] = []
    for part in parts[:MOST_PARTS]:
        text = shown(part, images)
        if text:
            texts.append(text)
    if len(parts) > MOST_PARTS:
        texts.append(f"[{len(parts) - MOST_PARTS} more parts were left out]")
    texts += further(table.get("structuredContent"), texts)
    text = bounded("\n\n".join(texts), most_chars)
    is_error = table.get("isError") is True
    return ToolResult(text or ("" if images else EMPTY), is_error, tuple(images))


def shown(part: object, images: list[Image]) -> str:
    """Write one part as text; a picture is added to `images` instead."""
    match part:
        case {"type": "text", "text": str(text)}:
            return UNSEEN.sub("", text.replace("\r\n", "\n"))
        case {"type": "image", "data": str(data)}:
            return picture(data, images)
        case {"type": "audio"}:
            return "[a sound was left out]"
        case {"type": "resource", "resource": dict()}:
            return embedded(cast("Table", cast("Table", part)["resource"]), images)
        case {"type": "resource_link", "uri": str(uri)}:
            name = cast("Table", part).get("name")
            words = one_line(name, 200) if isinstance(name, str) else ""
            return f"[resource {words} at {one_line(uri, 500)}]"
        case _:
            return "[a part of an unknown kind was left out]"


def embedded(resource: Table, images: list[Image]) -> str:
    """Write a resource that came with the answer."""
    uri = resource.get("uri")
    where = one_line(uri, 500) if isinstance(uri, str) else "an unknown place"
    match resource:
        case {"text": str(text)}:
            return f"[resource {where}]\n{UNSEEN.sub('', text)}"
        case {"blob": str(data)}:
            note = picture(data, images)
            return f"[resource {where}]{note and ' ' + note}"
        case _:
            return f"[resource {where} came without content]"


def picture(data: str, images: list[Image]) -> str:
    """Keep a picture, or say why not.

    Returns:
        Empty if it was kept.
    """
    if len(images) >= MOST_IMAGES:
        return f"[a picture was left out: more than {MOST_IMAGES}]"
    if len(data) > LARGEST_IMAGE * 4 // 3 + 4:
        return f"[content was left out: above {LARGEST_IMAGE} bytes]"
    try:
        content = base64.b64decode(data, validate=True)
    except (binascii.Error, ValueError):
        return "[content was left out: it is no base64]"
    kind = kind_of(content)
    if not kind:
        return f"[{len(content)} bytes that are no picture were left out]"
    images.append(Image(kind, content))
    return ""


def kind_of(content: bytes) -> str:
    """Tell by its bytes what a picture is; empty if it is none that models see."""
    for start, eighth, kind in SIGNS:
        if content.startswith(start) and content[8:].startswith(eighth):
            return kind
    return ""


def further(structured: object, texts: list[str]) -> list[str]:
    """Write what came as JSON, unless a text says the same already."""
    if structured is None or any(says(text, structured) for text in texts):
        return []
    try:
        return [UNSEEN.sub("", msgspec.json.encode(structured).decode())]
    except (ValueError, TypeError, RecursionError):
        return ["[content that is no JSON was left out]"]


def says(text: str, structured: object) -> bool:
    """Tell whether a text is this JSON, or all that is in it."""
    match structured:
        case dict() if [text.strip()] == [
            each.strip() if isinstance(each, str) else each
            for each in cast("Table", structured).values()
        ]:
            return True
        case _:
            pass
    try:
        return bool(msgspec.json.decode(text) == structured)
    except (ValueError, RecursionError):
        return False


def bounded(text: str, most: int) -> str:
    """Cut a text that is too long, and say so."""
    if len(text) <= most:
        return text
    return f"{text[:most]}\n[cut: {len(text) - most} more characters]"
