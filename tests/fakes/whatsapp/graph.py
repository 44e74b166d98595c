"""Meta's Graph API in memory, as far as numbers on WhatsApp ask anything of it.

`FakeGraph.network` works in virtual time; `FakeGraph.answer` is the same without faults
that take time, for clients that wait for nothing. `webhook` writes what Meta calls us
with, `sign` as Meta signs it.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import re
from collections import deque
from collections.abc import Callable
from typing import Any

import httpx
import trio

from tests.fakes.whatsapp.files import (
    SHOWN,
    Brought,
    read_upload,
    words_of,
    wrong_media,
)

Json = dict[str, Any]

VERSION = "v24.0"
BASE = f"https://graph.test/{VERSION}"
FILES = "https://files.test/"
SECRET = "0123456789abcdef0123456789abcdef"  # noqa: S105  nobody's

MOST_TEXT = 4_096
MOST_TEMPLATE = 1_024
USER_ID = re.compile(r"[A-Z]{2}\.[A-Za-z0-9]+")


def refusal(
    status: int, code: int, message: str = "no", subcode: int = 0, details: str = ""
) -> httpx.Response:
    """Answer with an error, as Meta does."""
    error: Json = {
        "message": f"(#{code}) {message}",
        "type": "OAuthException",
        "code": code,
        "fbtrace_id": "A1b2C3",
    }
    if subcode:
        error["error_subcode"] = subcode
    if details:
        error["error_data"] = {"messaging_product": "whatsapp", "details": details}
    return httpx.Response(status, json={"error": error})


class FakeGraph:
    """Numbers, who wrote to them, and what they said."""

    def __init__(self) -> None:
        self.numbers: dict[str, str] = {}
        """By Meta's id: the token that may use it."""

        self.said: list[Json] = []
        """Bodies of what was sent, in order, each with its `id` and `number`."""

        self.read: list[Json] = []
        """Bodies that say that something was read."""

        self.signs: dict[tuple[str, str], str] = {}
        """By number and message."""

        self.media: dict[str, tuple[str, bytes]] = {}
        """By id: type and content."""

        self.files = FILES
        """Where Meta keeps the content of files."""

        self.uploads: dict[str, Brought] = {}
        """By id: what numbers have brought; nobody sees it yet."""

        self.hooks: dict[str, dict[str, str]] = {}
        """By number: the addresses that Meta calls."""

        self.templates: dict[str, str] = {}
        """Approved message templates with one placeholder: language by name."""

        self.closed: set[str] = set()
        """People who have not written for 24 hours."""

        self.gone: set[str] = set()
        """Messages that nothing can stand below."""

        self.asked: list[str] = []
        """`method path` of each request, in order."""

        self.faults: deque[tuple[str, httpx.Response | Exception | float]] = deque()
        """What the next request whose path holds this text gets instead; a number is
        seconds of silence. An error comes after it was carried out, if it is a
        `ReadError`."""

        self.network = httpx.MockTransport(self._carry)
        self._changed = trio.Event()
        self._written = 0

    # --- what people do -----------------------------------------------------------

    def number(self, number: str) -> str:
        """Make a number; gives its token."""
        self.numbers[number] = f"EAA-token-of-{number}"
        return self.numbers[number]

    def message(self, text: str, sender: str = "491701", **more: Any) -> Json:
        """Write a message; `id` is made up unless it is given."""
        self._written += 1
        body: Json = {
            "id": f"wamid.in{self._written}",
            "timestamp": str(more.pop("at", 1_700_000_000)),
            "type": "text",
            "text": {"body": text},
        }
        if USER_ID.fullmatch(sender):
            body["from_user_id"] = sender
        else:
            body["from"] = sender
        return {**body, **more}

    def webhook(
        self,
        number: str,
        *messages: Json,
        statuses: tuple[Json, ...] = (),
        **person: str,
    ) -> bytes:
        """Write what Meta calls us with; other letters than ASCII are escaped."""
        value: Json = {
            "messaging_product": "whatsapp",
            "metadata": {
                "display_phone_number": "15550001",
                "phone_number_id": number,
            },
        }
        if messages:
            value["contacts"] = [contact(each, person) for each in messages]
            value["messages"] = [*messages]
        if statuses:
            value["statuses"] = [*statuses]
        change = {"field": "messages", "value": value}
        told = {
            "object": "whatsapp_business_account",
            "entry": [{"id": "waba1", "changes": [change]}],
        }
        return json.dumps(told).encode()

    def status(self, sent: Json, state: str, code: int = 0) -> Json:
        """Write what became of a message of ours."""
        told: Json = {
            "id": sent["id"],
            "status": state,
            "timestamp": "1700000001",
            "recipient_id": sent.get("to", ""),
        }
        marker = sent.get("biz_opaque_callback_data")
        if marker:
            told["biz_opaque_callback_data"] = marker
        if code:
            told["errors"] = [{"code": code, "title": "no", "message": "no"}]
        return told

    def put_media(self, media_id: str, kind: str, content: bytes) -> None:
        """Have somebody send a file."""
        self.media[media_id] = kind, content

    # --- what is there ------------------------------------------------------------

    def texts(self, person: str = "") -> list[str]:
        """Give the words that people, or one person, got."""
        return [
            words_of(each)
            for each in self.said
            if each["type"] != "reaction"
            and person in {"", each.get("to"), each.get("recipient")}
        ]

    def shown(self, person: str = "") -> list[tuple[str, str, bytes]]:
        """Give the files that people, or one person, got: as what, name and bytes."""
        return [
            (each["type"], what.get("filename", ""), self.uploads[what["id"]].content)
            for each in self.said
            if each["type"] in SHOWN
            and person in {"", each.get("to"), each.get("recipient")}
            for what in (each[each["type"]],)
        ]

    def note_change(self) -> None:
        """Wake whoever waits for news."""
        self._changed.set()
        self._changed = trio.Event()

    async def wait_change(self) -> None:
        """Wait until something happens."""
        await self._changed.wait()

    async def wait(self, is_so: Callable[[], bool], within: float = 300) -> None:
        """Wait for something to become true; looks again when something happens."""
        with trio.fail_after(within):
            while not is_so():
                with trio.move_on_after(0.05):
                    await self.wait_change()

    # --- what is asked ------------------------------------------------------------

    async def _carry(self, request: httpx.Request) -> httpx.Response:
        await trio.lowlevel.checkpoint()
        fault = self._fault(request.url.path)
        if isinstance(fault, httpx.Response):
            return fault
        if isinstance(fault, Exception):
            if isinstance(fault, httpx.ReadError):
                self.answer(request)
            raise fault
        await trio.sleep(fault or 0.0)
        return self.answer(request)

    def _fault(self, path: str) -> httpx.Response | Exception | float | None:
        if self.faults and self.faults[0][0] in path:
            return self.faults.popleft()[1]
        return None

    def answer(self, request: httpx.Request) -> httpx.Response:
        """Answer one request."""
        self.asked.append(f"{request.method} {request.url.path}")
        token = request.headers.get("authorization", "").removeprefix("Bearer ")
        if token not in self.numbers.values():
            return refusal(401, 190, "Session has expired", 463)
        try:
            if str(request.url).startswith(self.files):
                return self._file(str(request.url).removeprefix(self.files))
            path = request.url.path.removeprefix(f"/{VERSION}/")
            return self._graph(request, path, token)
        finally:
            self.note_change()

    def _file(self, media_id: str) -> httpx.Response:
        kind, content = self.media[media_id]
        return httpx.Response(200, content=content, headers={"content-type": kind})

    def _graph(self, request: httpx.Request, path: str, token: str) -> httpx.Response:
        first, _, rest = path.partition("/")
        if request.method == "GET" and first in self.media:
            return self._media(first)
        if self.numbers.get(first) != token:
            return refusal(400, 100, "Object does not exist", 33)
        if request.method == "GET":
            return self._shown(first, request.url.params.get("fields", ""))
        if rest == "media":
            return self._keep(first, request)
        if rest != "messages":
            return refusal(400, 2500, "Unknown path components")
        return self._take(first, json.loads(request.content))

    def _shown(self, number: str, fields: str) -> httpx.Response:
        known: Json = {
            "display_phone_number": "+1 555 0001",
            "verified_name": "Anna",
            "webhook_configuration": self.hooks.get(number, {}),
        }
        told = {name: known[name] for name in fields.split(",") if known.get(name)}
        return httpx.Response(200, json={**told, "id": number})

    def _media(self, media_id: str) -> httpx.Response:
        kind, content = self.media[media_id]
        told = {
            "url": f"{self.files}{media_id}",
            "mime_type": kind,
            "sha256": hashlib.sha256(content).hexdigest(),
            "file_size": len(content),
            "id": media_id,
            "messaging_product": "whatsapp",
        }
        return httpx.Response(200, json=told)

    def _keep(self, number: str, request: httpx.Request) -> httpx.Response:
        found = read_upload(number, request)
        if isinstance(found, str):
            return refusal(400, 100, found)
        media_id = f"up{len(self.uploads) + 1}"
        self.uploads[media_id] = found
        return httpx.Response(200, json={"id": media_id})

    def _take(self, number: str, body: Json) -> httpx.Response:
        if body.get("messaging_product") != "whatsapp":
            return refusal(400, 100, "messaging_product is required")
        if body.get("status") == "read":
            self.read.append({**body, "number": number})
            return httpx.Response(200, json={"success": True})
        is_template = body.get("type") == "template"
        look = self._wrong_template if is_template else self._wrong
        wrong = look(number, body)
        if wrong is not None:
            return wrong
        message_id = f"wamid.out{len(self.said) + 1}"
        self.said.append({**body, "id": message_id, "number": number})
        if body["type"] == "reaction":
            place = number, body["reaction"]["message_id"]
            self.signs[place] = body["reaction"]["emoji"]
        person = body.get("to") or body.get("recipient")
        told = {
            "messaging_product": "whatsapp",
            "contacts": [{"input": person, "wa_id": person}],
            "messages": [{"id": message_id}],
        }
        return httpx.Response(200, json=told)

    def _wrong(self, number: str, body: Json) -> httpx.Response | None:
        """Give the refusal of a message; None: it is right."""
        people = [body[field] for field in ("to", "recipient") if body.get(field)]
        if len(people) != 1:
            return refusal(400, 131008, "Required parameter is missing")
        if body.get("to") and not body["to"].isdigit():
            return refusal(400, 131009, "Parameter value is not valid")
        if people[0] in self.closed:
            return refusal(400, 131047, "Re-engagement message")
        if body.get("context", {}).get("message_id") in self.gone:
            return refusal(400, 131009, "Parameter value is not valid")
        words = body.get("text", {}).get("body", "-")
        if not words.strip() or len(words) > MOST_TEXT:
            return refusal(400, 100, "Param text['body'] must be at most 4096 long")
        odd = wrong_media(number, body, self.uploads)
        return refusal(400, 100, odd) if odd else None

    def _wrong_template(self, _number: str, body: Json) -> httpx.Response | None:
        sent = body["template"]
        if self.templates.get(sent["name"]) != sent["language"]["code"]:
            return refusal(404, 132001, "Template name does not exist")
        (part,) = sent["components"]
        (words,) = [each["text"] for each in part["parameters"]]
        if part["type"] != "body" or any(x in words for x in ("\n", "\t", "    ")):
            return refusal(400, 132012, "Parameter format does not match")
        if not words or len(words) > MOST_TEMPLATE:
            return refusal(400, 132005, "Translated text too long")
        return None


def contact(message: Json, person: dict[str, str]) -> Json:
    """Write down who wrote a message."""
    told: Json = {"profile": {"name": person.get("name", "Zoe")}}
    for field, key in (("wa_id", "from"), ("user_id", "from_user_id")):
        if message.get(key) or person.get(field):
            told[field] = person.get(field) or message[key]
    return told


def sign(body: bytes, secret: str = SECRET, algorithm: str = "sha256") -> str:
    """Sign a webhook's bytes."""
    digest = hmac.new(secret.encode(), body, algorithm)
    return f"{algorithm}={digest.hexdigest()}"
