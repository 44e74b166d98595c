"""What Slack sends to the HTTP server for one app: events, commands and buttons.

Fails closed: without the right signature over every byte, nothing of it is read.
"""

from __future__ import annotations

import hashlib
import hmac
from functools import partial
from typing import TYPE_CHECKING, Literal
from urllib.parse import parse_qsl

import msgspec
import trio

from connectors.chat.gates import PlatformAnswer, PlatformCall, Terms
from connectors.chat.lenient_json import Json, decode, table, text

if TYPE_CHECKING:
    from collections.abc import Mapping

    from connectors.chat.slack.account import SlackAccount
    from connectors.chat.slack.inbound import SlackArrivals
    from connectors.chat.slack.shared import SlackShared

WINDOW = 300
"""Seconds by which Slack's clock may differ from ours."""

LONGEST = 200
"""Characters of a header that are looked at."""

Verdict = Literal["right", "bad_signature", "stale"]


def signed(secret: str, timestamp: str, body: bytes) -> str:
    """Return the signature of a call."""
    basis = b"v0:" + timestamp.encode() + b":" + body
    return "v0=" + hmac.new(secret.encode(), basis, hashlib.sha256).hexdigest()


def verify(secret: str, headers: Mapping[str, str], body: bytes, now: float) -> Verdict:
    """Check a call.

    Args:
        secret: the app's; an empty one is never right.
        headers: by their small names.
        body: every byte as it came.
        now: Unix seconds.

    Returns:
        `stale` only if the signature is right: nobody else learns of our clock.
    """
    timestamp = headers.get("x-slack-request-timestamp", "")
    given = headers.get("x-slack-signature", "")
    is_whole = timestamp.isascii() and timestamp.isdigit() and len(timestamp) <= 15
    if not secret or not is_whole or len(given) > LONGEST:
        return "bad_signature"
    expected = signed(secret, timestamp, body).encode()
    if not hmac.compare_digest(expected, given.encode(errors="replace")):
        return "bad_signature"
    return "right" if abs(now - int(timestamp)) <= WINDOW else "stale"


# Chosen: Slack takes 3 seconds for too long. What is not done by then goes on; when
# Slack sends it again, it is known.
DONE_WITHIN = 2.5

TAKEN, LATER, MALFORMED = PlatformAnswer(200), PlatformAnswer(503), PlatformAnswer(400)

TERMS = Terms(media_types=("application/json", "application/x-www-form-urlencoded"))
"""Slack brings its commands and buttons as forms."""

MOST_FIELDS = 100
"""Fields of a form that are read."""


class SlackWebhooks:
    """The gate of one app: takes Slack's calls."""

    def __init__(
        self, account: SlackAccount, shared: SlackShared, arrivals: SlackArrivals
    ) -> None:
        self._account = account
        self._shared = shared
        self._arrivals = arrivals
        self._has_ended = False

    def end(self) -> None:
        """Take nothing more; what is inside already is to come again."""
        self._has_ended = True

    @property
    def terms(self) -> Terms:
        """See `gates.SignedGate`."""
        return TERMS

    def lets_in(self, headers: Mapping[str, str]) -> bool:
        """Return whether there is a signature at all."""
        return bool(headers.get("x-slack-signature", "")) and bool(
            headers.get("x-slack-request-timestamp", "")
        )

    def check(self, call: PlatformCall) -> PlatformAnswer | None:
        """Let in what Slack signed, not long ago."""
        now = self._shared.clock.wall()
        verdict = verify(self._account.signing_secret, call.headers, call.body, now)
        return None if verdict == "right" else PlatformAnswer(401, refused=verdict)

    async def answer(self, call: PlatformCall) -> PlatformAnswer:
        """Answer one call, as soon as what it tells of is stored."""
        if self._has_ended:
            return LATER
        shared = self._shared
        shared.metrics.heard(self._account.agent, shared.clock.wall())
        try:
            said = read_body(call)
        except ValueError:
            self._arrivals.count("malformed")
            return MALFORMED
        if said.get("type") == "url_verification":
            challenge = {"challenge": text(said.get("challenge"))}
            return PlatformAnswer(200, msgspec.json.encode(challenge))
        return await self._take(said)

    async def _take(self, said: Json) -> PlatformAnswer:
        is_done = trio.Event()
        done = partial(set_event, is_done)
        if text(said.get("command")):
            is_taken = self._arrivals.take_command(said, done)
        elif said.get("type") == "block_actions":
            is_taken = self._arrivals.take_press(said, done)
        elif said.get("type") == "event_callback":
            is_taken = self._arrivals.take_event(table(said.get("event")), done)
        else:
            self._arrivals.count("unknown")
            return TAKEN
        if is_taken:
            with trio.move_on_after(DONE_WITHIN):
                await is_done.wait()
                return TAKEN
        return LATER


async def set_event(event: trio.Event) -> None:
    """Tell whoever waits."""
    event.set()
    await trio.lowlevel.checkpoint()


def read_body(call: PlatformCall) -> Json:
    """Read what a call says.

    Raises:
        ValueError: it makes no sense.
    """
    media_type = call.headers.get("content-type", "").partition(";")[0].strip().lower()
    if media_type == "application/json":
        return decoded(call.body)
    pairs = parse_qsl(
        call.body.decode(), keep_blank_values=True, max_num_fields=MOST_FIELDS
    )
    fields: Json = dict(pairs)
    payload = text(fields.get("payload"))  # of what is interactive
    return decoded(payload.encode()) if payload else fields


def decoded(body: bytes) -> Json:
    """Read JSON.

    Raises:
        ValueError: it is none, or no object.
    """
    try:
        return decode(body)
    except RecursionError as error:
        raise ValueError("it is nested too deeply") from error
