"""The parts of a message's content, as OpenAI's Chat Completions has them. Pure.

    text            words
    image_url       a picture: a `data:` address with the picture in it, or one to fetch
    input_audio     a recording, base64
    file            a document: `file_data`, a `data:` address or base64, with a
                    `filename`; a `file_id` is refused, there is no store of files here

What is in the newest message comes along as attachments. In earlier messages only its
place is kept: what it said was read when it was new.
"""

from __future__ import annotations

import base64
import binascii
import re
from urllib.parse import unquote_to_bytes

from msgspec import Struct

from actors.messages import Attachment
from connectors.web.errors import ApiError

DATA_ADDRESS = re.compile(
    r"data:(?P<type>[\w.+-]+/[\w.+-]+)?(?P<parameters>(?:;[\w.+-]+=[\w.+-]+)*)"
    r"(?P<is_base64>;base64)?,",
    re.ASCII | re.IGNORECASE,
)

MOST_URL = 8_192
"""Longest address to fetch, in characters."""


class ImageUrl(Struct, frozen=True):
    """Where a picture is."""

    url: str


class InputAudio(Struct, frozen=True):
    """A recording."""

    data: str
    format: str = "wav"


class File(Struct, frozen=True):
    """A document."""

    file_data: str | None = None
    filename: str | None = None
    file_id: str | None = None


class Part(Struct, frozen=True):
    """One part of a message's content."""

    type: str
    text: str | None = None
    image_url: ImageUrl | str | None = None
    input_audio: InputAudio | None = None
    file: File | None = None


class Content(Struct, frozen=True):
    """What a message says and brings along."""

    text: str
    attachments: tuple[Attachment, ...] = ()


def read_parts(parts: list[Part], param: str) -> Content:
    """Take a message's parts apart.

    Args:
        parts: as the client sent them.
        param: where they stand in the request, for errors.

    Raises:
        ApiError: 400 for a part of another kind, or one that is not what it says.
    """
    words: list[str] = []
    attachments: list[Attachment] = []
    for number, part in enumerate(parts):
        where = f"{param}.content[{number}]"
        match part:
            case Part(type="text", text=str(text)):
                words.append(text)
            case Part(type="image_url", image_url=ImageUrl(url=url) | str(url)):
                attachments.append(picture(url, f"{where}.image_url"))
            case Part(type="input_audio", input_audio=InputAudio() as audio):
                attachments.append(recording(audio, f"{where}.input_audio.data"))
            case Part(type="file", file=File() as file):
                attachments.append(document(file, f"{where}.file"))
            case _:
                text = f"a part of type {part.type!r} cannot be read as it is"
                hint = "send text, image_url, input_audio or file"
                raise wrong(f"{text}; {hint}", where, "unsupported_field")
    return Content("\n".join(words), tuple(attachments))


def picture(url: str, param: str) -> Attachment:
    """Read a picture's address.

    Raises:
        ApiError: 400 for one that is neither `data:` nor `http(s):`.
    """
    if url[:5].lower() == "data:":
        kind, content = read_data(url, param)
        return Attachment("image", "picture", kind, content=content)
    if not re.match(r"https?://", url, re.IGNORECASE):
        text = "an image_url begins with https://, http:// or data:"
        raise wrong(text, param)
    if len(url) > MOST_URL:
        raise wrong(f"an address has at most {MOST_URL} characters", param)
    return Attachment("image", "picture", "", url=url)


def recording(audio: InputAudio, param: str) -> Attachment:
    """Read a recording.

    Raises:
        ApiError: 400 for one that is no base64.
    """
    content = read_base64(audio.data, param)
    name = re.sub(r"[^a-z0-9]", "", audio.format.lower())[:8] or "wav"
    return Attachment("audio", f"recording.{name}", f"audio/{name}", content=content)


def document(file: File, param: str) -> Attachment:
    """Read a document.

    Raises:
        ApiError: 400 for one that is only named, or no base64.
    """
    if file.file_data is None:
        text = "a file is sent as file_data; there is no store of files here"
        raise wrong(text, param, "unsupported_field")
    if file.file_data[:5].lower() == "data:":
        kind, content = read_data(file.file_data, f"{param}.file_data")
    else:
        kind, content = "", read_base64(file.file_data, f"{param}.file_data")
    return Attachment("document", file.filename or "document", kind, content=content)


def read_data(url: str, param: str) -> tuple[str, bytes]:
    """Take a `data:` address apart into its type and content (RFC 2397).

    Raises:
        ApiError: 400 for one that is none.
    """
    found = DATA_ADDRESS.match(url)
    if found is None:
        raise wrong("this is no data: address, as in data:image/png;base64,…", param)
    rest = url[found.end() :]
    if found["is_base64"]:
        return found["type"] or "", read_base64(rest, param)
    return found["type"] or "", unquote_to_bytes(rest)


def read_base64(text: str, param: str) -> bytes:
    """Decode base64; line ends do not matter.

    Raises:
        ApiError: 400 for anything else.
    """
    try:
        return base64.b64decode("".join(text.split()), validate=True)
    except (binascii.Error, ValueError) as error:
        raise wrong("this is not valid base64", param) from error


def in_words(content: Content) -> str:
    """Say what an earlier message said, and that something came with it."""
    marks = (f"[{each.kind.capitalize()}: {each.name}]" for each in content.attachments)
    return "\n".join(part for part in (content.text, *marks) if part)


def wrong(text: str, param: str, code: str = "invalid_field") -> ApiError:
    """Make the error for a part that cannot be taken."""
    return ApiError(400, text, code=code, param=param)
