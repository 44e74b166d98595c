"""What became of files on a stage, as the person there has them."""

from __future__ import annotations

import re
from base64 import b64decode
from pathlib import Path

from connectors.files.blobs import BlobFolder
from tests.fakes.chat.stages import (
    HttpStage,
    MatrixStage,
    PlayingStage,
    Stage,
    TerminalStage,
)
from tests.fakes.discord.stage import DiscordStage
from tests.fakes.qq.stage import QQStage
from tests.fakes.slack.stage import SlackStage
from tests.fakes.telegram.stage import TelegramStage
from tests.fakes.tools.sent_files import SentFiles
from tests.fakes.web.channel_stage import WebStage
from tests.fakes.web.eliza import API
from tests.fakes.web.page import ANNA
from tests.fakes.web.page_stage import PageStage
from tests.fakes.whatsapp.stage import WhatsAppStage
from tests.support.postcard.stage import PostcardStage

PATH = re.compile(r"\[a\.png, 32 bytes: ([^\]\n]+)\]")
PICTURE = re.compile(r'<img src="(/files/[^"]+)" alt="a\.png"')
INLINE = re.compile(r"!\[a\.png\]\(data:image/png;base64,([A-Za-z0-9+/=]+)\)")


def blobs_of(stage: Stage) -> SentFiles:
    """Give where a stage's transport looks for bytes."""
    found: BlobFolder | None = None
    match stage:
        case TerminalStage():
            found = stage.bed.parts.blobs
        case PlayingStage():
            stage.transport.blobs = stage.transport.blobs or SentFiles()
            found = stage.transport.blobs
        case HttpStage():
            found = stage.transport._blobs or SentFiles()
            stage.transport._blobs = found
        case WebStage() | PageStage():
            found = stage.transport._parts.blobs
        case PostcardStage():
            found = stage.parts.blobs
        case (
            DiscordStage()
            | MatrixStage()
            | QQStage()
            | SlackStage()
            | TelegramStage()
            | WhatsAppStage()
        ):
            found = stage.bed.blobs
        case _:
            pass
    assert isinstance(found, SentFiles)
    return found


async def got(stage: Stage) -> list[bytes]:
    """Give the bytes of the files that reached the person."""
    if isinstance(stage, WebStage):
        return await fetched(stage)
    if isinstance(stage, PostcardStage):
        return stage.office.files
    if isinstance(stage, PageStage):
        html = (await stage.bed.client.get(ANNA)).text
        paths = PICTURE.findall(html)
        return [(await stage.bed.client.get(each)).content for each in paths]
    return seen(stage)


def seen(stage: Stage) -> list[bytes]:
    """Give the bytes of files that need not be fetched."""
    found: list[bytes] = []
    match stage:
        case TerminalStage() | PlayingStage():
            found = [Path(each).read_bytes() for each in PATH.findall(stage.shown())]
        case HttpStage():
            found = [b64decode(each) for each in INLINE.findall(stage.shown())]
        case MatrixStage():
            said = (each["content"].get("url", "") for each in stage.bed.server.events)
            names = [each.removeprefix("mxc://") for each in said if each]
            found = [stage.bed.server.media[each] for each in names]
        case _:
            found = brought(stage)
    return found


def brought(stage: Stage) -> list[bytes]:
    """Give the bytes of files that were brought to a platform's servers."""
    match stage:
        case TelegramStage():
            return [content for _, _, content in stage.bed.server.brought]
        case SlackStage():
            return [content for _, content in stage.bed.slack.uploads.brought]
        case DiscordStage():
            return [content for _, content in stage.bed.server.brought.values()]
        case QQStage():
            return list(stage.bed.server.brought.values())
        case WhatsAppStage():
            return [content for _, _, content in stage.bed.server.shown()]
        case _:
            return []


async def fetched(stage: WebStage) -> list[bytes]:
    """Fetch what the messages of a channel bring."""
    path = f"{API}/channels/{stage._channel}/messages"
    found = (await stage.bed.ask("GET", path))["messages"]
    urls = [
        each["url"]
        for message in found
        for each in message["metadata"].get("attachments", ())
    ]
    return [(await stage.bed.client.get(url)).content for url in urls]
