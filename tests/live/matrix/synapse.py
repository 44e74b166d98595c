"""Synapse in a process of its own, on loopback, and the people and rooms on it.

Version 1.163.2 from PyPI, with SQLite and its own limits on messages; only what would
keep a test from beginning (invitations, joins, logins) is let through.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
import socket
import ssl
import subprocess
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import httpx
import trio
import yaml

Json = dict[str, Any]
T = TypeVar("T")

PYTHON = Path(__file__).parents[3] / ".live/synapse/bin/python"
NAME = "cb.test"
SHARED = "shared-by-the-tests"
STARTS_WITHIN = 60.0
"""Seconds; two are usual."""

LET_THROUGH = {"per_second": 1000, "burst_count": 1000}
LOOK_EVERY = 0.1

# Why: reading the certificates for each client takes longer than the requests.
PLAIN = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)


class Synapse:
    """One homeserver; its accounts outlive its processes.

    Args:
        folder: where it keeps everything.
    """

    def __init__(self, folder: Path) -> None:
        assert PYTHON.exists(), "run tests/live/setup.sh"
        self._folder = folder
        with socket.create_server(("127.0.0.1", 0)) as free:
            self._port: int = free.getsockname()[1]
        self.url = f"http://127.0.0.1:{self._port}"
        self._process: subprocess.Popen[bytes] | None = None
        (folder / "log.yaml").write_text(yaml.safe_dump(logging_to(folder / "log")))
        (folder / "hs.yaml").write_text(yaml.safe_dump(self._settings()))

    def _settings(self) -> Json:
        folder = self._folder
        listener = {
            "port": self._port,
            "bind_addresses": ["127.0.0.1"],
            "type": "http",
            "tls": False,
            "resources": [{"names": ["client"], "compress": False}],
        }
        database = {"name": "sqlite3", "args": {"database": str(folder / "hs.db")}}
        per = ("per_room", "per_user", "per_issuer")
        ways = ("address", "account", "failed_attempts")
        return {
            "server_name": NAME,
            "pid_file": str(folder / "pid"),
            "listeners": [listener],
            "database": database,
            "log_config": str(folder / "log.yaml"),
            "media_store_path": str(folder / "media"),
            "signing_key_path": str(folder / "key"),
            "registration_shared_secret": SHARED,
            "macaroon_secret_key": secrets.token_hex(),
            "form_secret": secrets.token_hex(),
            "trusted_key_servers": [],
            "report_stats": False,
            "bcrypt_rounds": 4,
            "rc_invites": dict.fromkeys(per, LET_THROUGH),
            "rc_joins": dict.fromkeys(("local", "remote"), LET_THROUGH),
            "rc_login": dict.fromkeys(ways, LET_THROUGH),
            "rc_room_creation": LET_THROUGH,
        }

    def start(self) -> None:
        """Start it, and wait until it answers."""
        self._process = subprocess.Popen(
            [
                PYTHON,
                "-m",
                "synapse.app.homeserver",
                "-c",
                "hs.yaml",
                "--generate-keys",
            ],
            cwd=self._folder,
        )
        assert self._process.wait(STARTS_WITHIN) == 0
        with (self._folder / "out").open("ab") as out:
            self._process = subprocess.Popen(
                [PYTHON, "-m", "synapse.app.homeserver", "-c", "hs.yaml"],
                cwd=self._folder,
                stdout=out,
                stderr=out,
            )
        trio.run(self._wait_answers)

    async def _wait_answers(self) -> None:
        with trio.fail_after(STARTS_WITHIN):
            async with httpx.AsyncClient(verify=PLAIN) as client:
                while True:
                    try:
                        await client.get(f"{self.url}/_matrix/client/versions")
                    except httpx.TransportError:
                        assert self._process is not None
                        assert self._process.poll() is None, self.log
                        await trio.sleep(LOOK_EVERY)
                    else:
                        return

    @property
    def log(self) -> str:
        """What it has written."""
        return (self._folder / "out").read_text()[-4000:]

    def stop(self) -> None:
        """End it by its process id; what it knows stays."""
        if self._process is not None:
            self._process.terminate()
            try:
                self._process.wait(10)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait(10)
            self._process = None

    def register(self, name: str, *, is_admin: bool = False) -> Account:
        """Make an account by the shared secret."""
        url = f"{self.url}/_synapse/admin/v1/register"
        nonce = httpx.get(url).json()["nonce"]
        password = f"password-of-{name}"
        words = (nonce, name, password, "admin" if is_admin else "notadmin")
        digest = hmac.new(SHARED.encode(), "\0".join(words).encode(), hashlib.sha1)
        body = {
            "nonce": nonce,
            "username": name,
            "password": password,
            "admin": is_admin,
            "mac": digest.hexdigest(),
        }
        answer = httpx.post(url, json=body, timeout=30).json()
        return Account(self.url, f"@{name}:{NAME}", answer["access_token"], password)


class Account:
    """Somebody on the homeserver, driven by plain requests.

    Args:
        url: the homeserver's.
        user: the whole id.
        token: lets the account in.
        password: makes further tokens.
    """

    def __init__(self, url: str, user: str, token: str, password: str) -> None:
        self.url = url
        self.user = user
        self.token = token
        self.password = password
        self._count = 0

    async def ask(self, method: str, path: str, body: object = None) -> Json:
        """Ask the homeserver for something that it must do."""
        async with httpx.AsyncClient(timeout=30, verify=PLAIN) as client:
            response = await client.request(
                method,
                f"{self.url}{path}",
                json=body,
                headers={"Authorization": f"Bearer {self.token}"},
            )
        assert response.is_success, response.text
        found: Json = response.json()
        return found

    async def client(self, method: str, path: str, body: object = None) -> Json:
        """Ask for something of the client-server API."""
        return await self.ask(method, f"/_matrix/client/v3{path}", body)

    async def lift_limits(self, admin: Account) -> None:
        """Let this account say as much as it likes."""
        path = f"/_synapse/admin/v1/users/{self.user}/override_ratelimit"
        await admin.ask("POST", path, {"messages_per_second": 0, "burst_count": 0})

    async def room(self, *invited: Account, **more: object) -> Room:
        """Make a room, and invite others."""
        body = {"invite": [each.user for each in invited], **more}
        room_id = (await self.client("POST", "/createRoom", body))["room_id"]
        return Room(str(room_id), self)

    async def membership(self, room: Room, other: Account) -> str:
        """Tell what somebody is in a room."""
        path = f"/rooms/{room.id}/state/m.room.member/{other.user}"
        return str((await self.client("GET", path))["membership"])

    async def upload(self, content: bytes, kind: str) -> str:
        """Put a file onto the homeserver; gives its address."""
        async with httpx.AsyncClient(timeout=30, verify=PLAIN) as client:
            response = await client.post(
                f"{self.url}/_matrix/media/v3/upload",
                content=content,
                headers={"Authorization": f"Bearer {self.token}", "Content-Type": kind},
            )
        return str(response.json()["content_uri"])


class Room:
    """A room, as whoever made it sees it.

    Args:
        room_id: its id.
        owner: who made it.
    """

    def __init__(self, room_id: str, owner: Account) -> None:
        self.id = room_id
        self._owner = owner

    async def say(
        self, body: str, by: Account | None = None, /, **content: object
    ) -> str:
        """Have somebody write; gives the event's id."""
        said = {"msgtype": "m.text", "body": body, **content}
        path = f"/rooms/{self.id}/send/m.room.message/{secrets.token_hex(8)}"
        answer = await (by or self._owner).client("PUT", path, said)
        return str(answer["event_id"])

    async def events(self) -> list[Json]:
        """Give what happened, oldest first."""
        path = f"/rooms/{self.id}/messages?dir=b&limit=500"
        found: list[Json] = (await self._owner.client("GET", path))["chunk"]
        return found[::-1]

    async def said(self, *by: Account) -> list[Json]:
        """Give the contents of what these have said, as it reads now."""
        senders = {each.user for each in by}
        found: dict[str, Json] = {}
        for event in await self.events():
            content: Json = event["content"]
            related = content.get("m.relates_to", {})
            is_message = event["type"] == "m.room.message" and content
            if event["sender"] not in senders or not is_message:
                continue  # an empty one was taken back
            if related.get("rel_type") != "m.replace":
                found[event["event_id"]] = content
            elif related["event_id"] in found:
                found[related["event_id"]] |= content["m.new_content"]
        return [*found.values()]

    async def wait_said(
        self, count: int, *by: Account, within: float = 30.0
    ) -> list[str]:
        """Wait until these have said so many things; gives the words."""
        found = await wait_until(
            lambda: self.said(*by), lambda said: len(said) >= count, within
        )
        return [str(each["body"]) for each in found]

    async def wait_joined(self, *others: Account) -> None:
        """Wait until all of these are here."""
        for other in others:
            await self.wait_membership(other, "join")

    async def wait_membership(self, other: Account, wanted: str) -> None:
        """Wait until somebody is this in the room."""
        await wait_until(
            partial(self._owner.membership, self, other), lambda found: found == wanted
        )


async def wait_until(
    look: Callable[[], Awaitable[T]], is_so: Callable[[T], bool], within: float = 30.0
) -> T:
    """Look again and again until something is so; gives what was seen then."""
    with trio.fail_after(within):
        while True:
            found = await look()
            if is_so(found):
                return found
            await trio.sleep(LOOK_EVERY)


def logging_to(path: Path) -> Json:
    """Have it write warnings to a file, and nothing else."""
    return {
        "version": 1,
        "handlers": {"file": {"class": "logging.FileHandler", "filename": str(path)}},
        "root": {"level": "WARNING", "handlers": ["file"]},
        "disable_existing_loggers": False,
    }
