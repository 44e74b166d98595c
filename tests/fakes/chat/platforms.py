"""What people and platforms do besides writing, on the stage of each platform.

`Stage` is what every transport has; here is what only platforms have: files, replies,
and servers that are away. The other ends are those of the transports' own tests.
"""

from __future__ import annotations

import json
from typing import Any, Literal, Protocol, cast

import httpx

from connectors.chat.telegram.events import read_message
from tests.fakes.chat.stages import MatrixStage, Stage
from tests.fakes.discord.server import Fault
from tests.fakes.discord.stage import DiscordStage
from tests.fakes.matrix import homeserver
from tests.fakes.qq import server as qq_api
from tests.fakes.qq.stage import QQStage
from tests.fakes.slack.replies import Reply
from tests.fakes.slack.stage import SlackStage
from tests.fakes.telegram import api as bot_api
from tests.fakes.telegram.stage import TelegramStage
from tests.fakes.whatsapp import graph
from tests.fakes.whatsapp.stage import WhatsAppStage
from tests.support.chat.matrix_bed import ROOM, ZOE
from tests.support.chat.slack_bed import DIRECT, ZOE as SLACK_ZOE
from tests.support.chat.telegram_bed import ZOE as TELEGRAM_ZOE

Trouble = Literal["limited", "away"]
"""What becomes of the next message of ours: too many of them; the server is down."""

CAT = b"\x89PNG"
SOON = 0.05
"""Seconds, where a platform may say so little."""


class Platform(Protocol):
    """The other end of a transport."""

    async def reply(self, text: str, receipt: str) -> None:
        """Have the person answer a message of ours."""
        ...

    async def send_cat(self, text: str, *, is_there: bool = True) -> None:
        """Have the person send a picture with words; or one that is gone."""
        ...

    def fail(self, trouble: Trouble) -> None:
        """Let the next message of ours fail."""
        ...


class Discord:
    """Discord's other end."""

    def __init__(self, stage: DiscordStage) -> None:
        self._bed, self._chat = stage.bed, stage.chat

    async def reply(self, text: str, receipt: str) -> None:
        (ours,) = [
            e for e in self._bed.world.messages[self._chat] if e["id"] == receipt
        ]
        reference = {"message_id": receipt, "channel_id": self._chat}
        more: dict[str, Any] = {"type": 19, "message_reference": reference}
        await self._bed.say(text, channel=self._chat, referenced_message=ours, **more)

    async def send_cat(self, text: str, *, is_there: bool = True) -> None:
        if is_there:
            self._bed.world.files["cat.png"] = CAT
        url = f"{self._bed.server.url}/files/cat.png"
        cat = {"id": "1", "filename": "cat.png", "content_type": "image/png"}
        cat |= {"size": 4, "url": url, "proxy_url": url}  # type: ignore[dict-item]
        await self._bed.say(text, channel=self._chat, attachments=[cat])

    def fail(self, trouble: Trouble) -> None:
        slow = json.dumps({"message": "slow", "retry_after": SOON, "global": False})
        limited = Fault("POST", "/messages", 429, slow, (("Via", "1.1 test"),))
        away = Fault("POST", "/messages", 503)
        self._bed.server.faults.append(limited if trouble == "limited" else away)


class Matrix:
    """Matrix's other end."""

    def __init__(self, stage: MatrixStage) -> None:
        self._server = stage.bed.server

    async def reply(self, text: str, receipt: str) -> None:
        related = {"m.in_reply_to": {"event_id": receipt}}
        self._server.say(ROOM, ZOE, text, **{"m.relates_to": related})

    async def send_cat(self, text: str, *, is_there: bool = True) -> None:
        if is_there:
            self._server.media["hs.test/cat"] = CAT
        details = {"mimetype": "image/png", "size": 4}
        said = {"msgtype": "m.image", "url": "mxc://hs.test/cat", "info": details}
        self._server.say(ROOM, ZOE, text, filename="cat.png", **said)

    def fail(self, trouble: Trouble) -> None:
        wait = round(SOON * 1000)
        limited = homeserver.refusal(429, "M_LIMIT_EXCEEDED", retry_after_ms=wait)
        away = httpx.Response(503)
        fault = limited if trouble == "limited" else away
        self._server.faults.append(("/send/", fault))


class Slack:
    """Slack's other end."""

    def __init__(self, stage: SlackStage) -> None:
        self._slack = stage.bed.slack

    async def reply(self, text: str, receipt: str) -> None:
        thread = receipt.partition("/")[2]
        self._slack.say(DIRECT, SLACK_ZOE, text, thread_ts=thread)

    async def send_cat(self, text: str, *, is_there: bool = True) -> None:
        url = "https://files.slack.com/files-pri/T1-F1/cat.png"
        if is_there:
            self._slack.files[url] = CAT
        cat = {"name": "cat.png", "mimetype": "image/png", "size": 4}
        more = {
            "subtype": "file_share",
            "files": [{**cat, "url_private_download": url}],
        }
        self._slack.say(DIRECT, SLACK_ZOE, text, **more)

    def fail(self, trouble: Trouble) -> None:
        said = {"ok": False, "error": "ratelimited"}
        limited = Reply(429, said, {"retry-after": "1"})
        away = Reply(503, {})
        fault = limited if trouble == "limited" else away
        self._slack.faults.append(("chat.postMessage", fault))


class Telegram:
    """Telegram's other end."""

    def __init__(self, stage: TelegramStage) -> None:
        self._server, self._bot = stage.bed.server, stage.bed.bot()
        self._chat = stage.chat

    async def reply(self, text: str, receipt: str) -> None:
        name = read_message(receipt)
        assert name is not None
        said = self._chat.by(self._bot)
        (ours,) = [each for each in said if each["message_id"] == name.number]
        self._server.say(self._chat, TELEGRAM_ZOE, text, reply_to_message=ours)

    async def send_cat(self, text: str, *, is_there: bool = True) -> None:
        if is_there:
            self._server.files["cat"] = CAT
        size = {"file_id": "cat", "file_unique_id": "c", "width": 9, "height": 9}
        self._server.say(self._chat, TELEGRAM_ZOE, photo=[size], caption=text)

    def fail(self, trouble: Trouble) -> None:
        wait = {"retry_after": 1}
        limited = bot_api.refusal(429, "Too Many Requests: retry after 1", wait)
        away = bot_api.refusal(502)
        fault = limited if trouble == "limited" else away
        self._server.faults.append(("sendMessage", fault))


class WhatsApp:
    """Meta."""

    def __init__(self, stage: WhatsAppStage) -> None:
        self._stage, self._server = stage, stage.bed.server

    async def reply(self, text: str, receipt: str) -> None:
        await self._stage.bring(text, context={"id": receipt, "from": "15550001"})

    async def send_cat(self, text: str, *, is_there: bool = True) -> None:
        if is_there:
            self._server.put_media("cat", "image/png", CAT)
        cat = {"id": "cat", "mime_type": "image/png", "caption": text}
        await self._stage.bring("", type="image", image=cat)

    def fail(self, trouble: Trouble) -> None:
        limited, away = graph.refusal(429, 130429), graph.refusal(503, 131016)
        fault = limited if trouble == "limited" else away
        self._server.faults.append(("/messages", fault))


class QQ:
    """QQ's other end."""

    def __init__(self, stage: QQStage) -> None:
        self._bed = stage.bed

    async def reply(self, text: str, receipt: str) -> None:
        scene = {"ext": ["msg_idx=REFIDX_1", f"ref_msg_idx=REFIDX_{receipt}"]}
        await self._bed.write(text, message_scene=scene)

    async def send_cat(self, text: str, *, is_there: bool = True) -> None:
        if is_there:
            self._bed.server.files["cat"] = CAT
        cat = {"content_type": "image/png", "filename": "cat.png", "size": 4}
        await self._bed.write(text, attachments=[{**cat, "url": f"{qq_api.FILES}/cat"}])

    def fail(self, trouble: Trouble) -> None:
        limited, away = qq_api.refusal(429), qq_api.refusal(503)
        fault = limited if trouble == "limited" else away
        self._bed.server.faults.append(("/messages", fault))


PLATFORMS = {
    "discord": Discord,
    "matrix": Matrix,
    "qq": QQ,
    "slack": Slack,
    "telegram": Telegram,
    "whatsapp": WhatsApp,
}


def other_end(name: str, stage: Stage) -> Platform:
    """Give what is at the other end of a stage's transport."""
    made = cast("type[Any]", PLATFORMS[name])
    found: Platform = made(stage)
    return found
