"""What bots send beside words, and how requests with files are read."""

from __future__ import annotations

from email.parser import BytesParser
from email.policy import HTTP
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl

import msgspec

from tests.fakes.telegram.chats import Json, RefusalError, captioned

if TYPE_CHECKING:
    import httpx

    from tests.fakes.telegram.api import FakeTelegram
    from tests.fakes.telegram.chats import FakeBot

MOST_FILE, MOST_PHOTO = 50_000_000, 10_000_000
SENT = {
    "sendPhoto": "photo",
    "sendDocument": "document",
    "sendAudio": "audio",
    "sendVoice": "voice",
    "sendVideo": "video",
    "sendAnimation": "animation",
}


def send_file(server: FakeTelegram, bot: FakeBot, params: Json) -> object:
    """Send a file, as Telegram takes it."""
    chat = server.chat(bot, params)
    field = next(each for each in SENT.values() if each in params)
    name, content = params[field]
    is_image = content.startswith((b"\x89PNG", b"\xff\xd8\xff", b"RIFF"))
    if field == "photo" and (not is_image or len(content) > MOST_PHOTO):
        raise RefusalError(400, "Bad Request: IMAGE_PROCESS_FAILED")
    if field == "photo" and name in server.odd:
        raise RefusalError(400, "Bad Request: PHOTO_INVALID_DIMENSIONS")
    if len(content) > MOST_FILE:
        raise RefusalError(413, "Request Entity Too Large")
    more: Json = {**captioned(params), **chat.placed(bot, params)}
    server.brought.append((field, name, content))
    told: Json = {"file_id": f"sent{len(server.brought)}", "file_unique_id": "u"}
    told |= {"file_name": name, "file_size": len(content)}
    more[field] = [told | {"width": 1, "height": 1}] if field == "photo" else told
    message = chat.add(bot.user, server.now, only=bot, **more)[bot.id]
    server.note_change()
    return message


def read_params(request: httpx.Request) -> Json:
    """Read parameters, sent as JSON or as a form, in which values may be JSON."""
    body = request.content
    kind = request.headers.get("content-type", "")
    if kind.startswith("multipart/form-data"):
        return read_form(kind, body)
    if request.headers.get("content-type", "").startswith("application/json"):
        return dict(msgspec.json.decode(body or b"{}"))
    pairs = dict(parse_qsl(body.decode(), keep_blank_values=True))
    return {key: read_value(value) for key, value in pairs.items()}


def read_form(kind: str, body: bytes) -> Json:
    """Read the fields of a form with files, which come as their names and bytes."""
    head = f"Content-Type: {kind}\r\nMIME-Version: 1.0\r\n\r\n".encode()
    found: Json = {}
    for part in BytesParser(policy=HTTP).parsebytes(head + body).iter_parts():
        name = str(part.get_param("name", header="content-disposition"))
        content = part.get_payload(decode=True)
        assert isinstance(content, bytes)
        file = part.get_filename()
        found[name] = read_value(content.decode()) if file is None else (file, content)
    return found


def read_value(value: str) -> Any:
    """Read one value of a form."""
    try:
        found: Any = msgspec.json.decode(value)
    except msgspec.DecodeError:
        return value
    return found if value[:1] in {"[", "{"} else value
