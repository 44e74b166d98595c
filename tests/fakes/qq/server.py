"""QQ in memory: its HTTP API, and the sessions that its gateway tells of."""

from __future__ import annotations

import json
from base64 import b64decode
from collections.abc import Callable
from typing import Any

import httpx
import msgspec
import trio

from tests.fakes.qq.gateway import Gateway
from tests.fakes.telegram.files import read_form

Json = dict[str, Any]

API = "http://qq.test"
FILES = "http://files.test"
LOGIN_PATH = "/app/getAppAccessToken"
TOKENS = f"http://tokens.test{LOGIN_PATH}"
PLACES = ("/v2/users/", "/v2/groups/", "/channels/", "/dms/")


def refusal(status: int, code: int = 0, message: str = "no") -> httpx.Response:
    """Make a refusal, as QQ words it."""
    said = {"message": message, "code": code, "err_code": code}
    return httpx.Response(status, json=said if code else {})


class FakeQQ:
    """QQ, with bots, people who write, and what they were answered."""

    def __init__(self) -> None:
        self.bots: dict[str, str] = {}
        """Secrets by AppID."""

        self.tokens: dict[str, str] = {}
        """AppIDs by the tokens that hold."""

        self.lasts = "7200"
        """Seconds that tokens hold, in QQ's way of writing."""

        self.gateway: Gateway | None = None
        self.answerable: dict[str, int] = {}
        """By the id of a message: how many answers it still takes."""

        self.takes_first_words = False
        self.knows_addresses = True
        self.said: list[Json] = []
        """What was sent, with `path` and `id`."""

        self.files: dict[str, bytes] = {}
        """What people send, by name."""

        self.fetched: list[str] = []
        self.brought: dict[str, bytes] = {}
        """What bots uploaded, by `file_info`."""

        self.faults: list[tuple[str, httpx.Response]] = []
        self.asked: list[str] = []
        self._seqs: set[tuple[str, int]] = set()
        self._changed = trio.Event()
        self._count = 0

    @property
    def network(self) -> httpx.MockTransport:
        """What carries requests here."""
        return httpx.MockTransport(self._answer)

    def note_change(self) -> None:
        """Wake all who wait."""
        self._changed.set()
        self._changed = trio.Event()

    async def wait_change(self) -> None:
        """Wait until something happens."""
        await self._changed.wait()

    async def wait(self, is_so: Callable[[], bool], within: float = 5) -> None:
        """Wait for something to become true, for no longer than so many seconds."""
        with trio.fail_after(within):
            while not is_so():
                with trio.move_on_after(0.05):
                    await self.wait_change()

    def bot(self, app_id: str) -> str:
        """Make a bot; gives its secret."""
        self.bots[app_id] = f"secret-of-{app_id}"
        return self.bots[app_id]

    def texts(self) -> list[str]:
        """Give what was said, in order."""
        return [str(each["content"]) for each in self.said]

    def next_id(self, prefix: str) -> str:
        """Make an id."""
        self._count += 1
        return f"{prefix}_{self._count}!"

    async def handle(self, request: httpx.Request) -> httpx.Response:
        """Answer a request that came over a socket."""
        await trio.lowlevel.checkpoint()
        return self._answer(request)

    def _answer(self, request: httpx.Request) -> httpx.Response:
        path = request.url.path
        self.asked.append(f"{request.method} {path}")
        for fault in self.faults:
            if fault[0] in path:
                self.faults.remove(fault)
                return fault[1]
        if request.url.host == "files.test":
            return self._file(path.removeprefix("/"))
        if path == LOGIN_PATH:
            return self._token(json.loads(request.content))
        token = request.headers.get("authorization", "").removeprefix("QQBot ")
        if token not in self.tokens:
            return refusal(401, 11244, "token expired")
        return self._ask(request, path, self.tokens[token])

    def _file(self, name: str) -> httpx.Response:
        self.fetched.append(name)
        if name not in self.files:
            return httpx.Response(404)
        return httpx.Response(200, stream=httpx.ByteStream(self.files[name]))

    def _token(self, said: Json) -> httpx.Response:
        if self.bots.get(said["appId"]) != said["clientSecret"]:
            told = {"code": 100016, "message": "invalid appid or secret"}
            return httpx.Response(200, json=told)
        token = f"token{len(self.tokens)}"
        self.tokens[token] = said["appId"]
        told = {"access_token": token, "expires_in": self.lasts}
        return httpx.Response(200, json=told)

    def _ask(self, request: httpx.Request, path: str, bot: str) -> httpx.Response:
        if path == "/users/@me":
            return httpx.Response(200, json={"id": f"u{bot}", "username": "anna"})
        if path.startswith("/gateway"):
            url = "" if self.gateway is None else self.gateway.url
            limit = {"total": 1000, "remaining": 900, "reset_after": 1}
            told = {"url": url, "shards": 1, "session_start_limit": limit}
            return httpx.Response(200, json=told)
        if not path.startswith(PLACES):
            return refusal(404, 11001)
        kind = request.headers.get("content-type", "")
        if kind.startswith("multipart/"):
            return self._take(path, read_form(kind, request.content))
        said = msgspec.json.decode(request.content)
        return self._upload(said) if path.endswith("/files") else self._take(path, said)

    def _upload(self, said: Json) -> httpx.Response:
        assert said["srv_send_msg"] is False
        info = self.next_id(f"info{said['file_type']}")
        self.brought[info] = b64decode(said["file_data"])
        return httpx.Response(200, json={"file_info": info, "ttl": 3600})

    def _take(self, path: str, said: Json) -> httpx.Response:
        refused = self._refused(path, said)
        if refused is not None:
            return refused
        known = self.next_id("SAID")
        picture = said.pop("file_image", None)
        if picture is not None:
            self.brought[known] = picture[1]
        self.said.append({**said, "path": path, "id": known})
        self.note_change()
        told = {"id": known, "ext_info": {"ref_idx": f"REFIDX_{known}"}}
        return httpx.Response(200, json=told)

    def _refused(self, path: str, said: Json) -> httpx.Response | None:
        content, answered = str(said.get("content", "")), said.get("msg_id", "")
        is_chat = path.startswith("/v2/")
        same = (answered, said.get("msg_seq", 0))
        wrong = {
            40054007: len(content) > 4_000,
            40034102: not answered and not self.takes_first_words,
            40034024: answered and answered not in self.answerable,
            40054010: "http" in content and not self.knows_addresses,
            40054005: is_chat and same in self._seqs,
            40034128: is_chat and self.answerable.get(answered) == 0,
        }
        for code, is_wrong in wrong.items():
            if is_wrong:
                return refusal(400, code)
        if answered:
            self.answerable[answered] -= is_chat
            self._seqs.add(same)
        return None
