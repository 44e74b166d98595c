"""What numbers bring to Meta, checked as Meta does, and how such forms are read."""

from __future__ import annotations

import re
from typing import Any, NamedTuple

import httpx

Json = dict[str, Any]

MOST_CAPTION = 1_024
SOUNDS = ("audio/aac", "audio/mp4", "audio/mpeg", "audio/amr", "audio/ogg")
SHOWN: dict[str, tuple[tuple[str, ...], int]] = {
    "image": (("image/jpeg", "image/png"), 5_000_000),
    "audio": (SOUNDS, 16_000_000),
    "video": (("video/mp4", "video/3gpp"), 16_000_000),
    "document": ((), 100_000_000),
}
"""By a message's type: which types of files, all if none is named, and bytes."""

OFFICE = re.compile(
    r"application/(vnd\.ms-(powerpoint|excel)|msword|pdf|"
    r"vnd\.openxmlformats-officedocument\.(wordprocessingml\.document|"
    r"presentationml\.presentation|spreadsheetml\.sheet))"
)
OTHERS = {"audio/opus", "text/plain", "image/jpeg", "image/png", "image/webp"}
TAKEN = OTHERS | {*SOUNDS, "video/mp4", "video/3gpp"}
FIELD = re.compile(r' name="([^"]*)"')
FILENAME = re.compile(r'filename="([^"]*)"')
KIND = re.compile(r"content-type: ([^\r]*)", re.IGNORECASE)


class Brought(NamedTuple):
    """One file that Meta has."""

    number: str
    name: str
    kind: str
    content: bytes


def read_upload(number: str, request: httpx.Request) -> Brought | str:
    """Read an upload; gives what is wrong with it, or the file."""
    texts, files = read_form(request)
    if texts.get("messaging_product") != "whatsapp" or "type" not in texts:
        return "messaging_product and type are required"
    if "file" not in files:
        return "file is required"
    name, kind, content = files["file"]
    if not (kind in TAKEN or OFFICE.fullmatch(kind)) or kind != texts["type"]:
        return f"Param file must be a file with one of the following types: {TAKEN}"
    return Brought(number, name, kind, content)


def read_form(
    request: httpx.Request,
) -> tuple[dict[str, str], dict[str, tuple[str, str, bytes]]]:
    """Read a form, byte by byte: its texts, and its files with name and type."""
    line = request.headers["content-type"].partition("boundary=")[2].encode()
    texts: dict[str, str] = {}
    files: dict[str, tuple[str, str, bytes]] = {}
    for part in (b"\r\n" + request.content).split(b"\r\n--" + line)[1:-1]:
        head, _, body = part.removeprefix(b"\r\n").partition(b"\r\n\r\n")
        told = head.decode()
        name = FIELD.findall(told)[0]
        if FILENAME.search(told):
            files[name] = FILENAME.findall(told)[0], KIND.findall(told)[0], body
        else:
            texts[name] = body.decode()
    return texts, files


def wrong_media(number: str, body: Json, uploads: dict[str, Brought]) -> str:
    """Say what is wrong with a message that shows a file; empty: nothing."""
    way = body["type"]
    if way not in SHOWN:
        return ""
    what = body[way]
    file = uploads.get(what.get("id", ""))
    if file is None or file.number != number:
        return f"{way}['id'] is not a valid media id"
    kinds, most = SHOWN[way]
    if (kinds and file.kind not in kinds) or len(file.content) > most:
        return "Media upload error"
    caption = what.get("caption", "-")
    if not caption.strip() or len(caption) > MOST_CAPTION:
        return f"{way}['caption'] must be between 1 and 1024"
    known = {"id"} if way == "audio" else {"id", "caption"}
    if way == "document":
        known.add("filename")
    odd = what.keys() - known
    return f"Unexpected key {odd} on param {way}" if odd else ""


def words_of(sent: Json) -> str:
    """Give what is said by a message, or with its file."""
    what = sent[sent["type"]]
    if sent["type"] == "template":
        return f"{what['name']}: {what['components'][0]['parameters'][0]['text']}"
    return str(what.get("body") or what.get("caption") or "")
