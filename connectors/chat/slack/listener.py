"""Keeps one app in step with Slack: its listener, its gaps, and its webhook.

Source: docs.slack.dev, "Using Socket Mode": a `disconnect` asks to open another one
before this one is closed; what is not acknowledged is sent again, on any of them.

`SlackGap` fetches the messages that were written while nobody listened. Source:
docs.slack.dev, "conversations.history": newest first, in pages; answers in threads are
not among them, only their number and the newest one's `ts` at the message they belong
to.

Instead, Slack may send events, commands and buttons to the HTTP server. That fails
closed: without the right signature over every byte, nothing of it is read.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Awaitable, Callable, Generator, Iterable, Mapping
from contextlib import contextmanager, suppress
from functools import partial
from typing import Literal
from urllib.parse import parse_qsl

import msgspec
import trio

from actors.transport import Ingress
from connectors.chat.accounts import AccountHealth, read_bookmark
from connectors.chat.inbound import LONGEST_WAIT, Waits
from connectors.chat.platforms import PlatformAnswer, PlatformCall, Terms
from connectors.chat.requests import (
    BusyError,
    GoneError,
    Json,
    LostError,
    PlatformError,
    RefusedError,
    ShutOutError,
    decode,
    table,
    tables,
    text,
    until_answered,
)
from connectors.chat.slack.account import SlackAccount, SlackConnection
from connectors.chat.slack.events import Mark, after, at, is_ts, next_cursor, order
from connectors.chat.slack.inbound import SlackArrivals
from connectors.chat.slack.senders import SlackShared
from runtime.errors import StoreError
from runtime.telemetry.logs import EventLog

Ask = Callable[[str, Json], Awaitable[Json]]
"""Calls a method until it answers."""

PAGE = 100
"""Messages of one page; so many are also looked at for threads that went on."""

MOST_THREADS = 50
"""Threads of one channel that are looked into."""

MOST_PAGES = 200
"""Pages of the list of channels: beyond, the rest is left out."""


class SlackGap:
    """The gap in one channel's messages.

    Args:
        since: the `ts` of the last message that is known.
    """

    def __init__(self, channel: str, since: str, most: int) -> None:
        self.channel = channel
        self.since = since
        self.most = most
        self.is_filled = False
        """Whether all was fetched."""

        self._found: dict[str, Json] = {}
        self._threads: list[str] = []

    async def fetch(self, ask: Ask) -> list[Json]:
        """Fetch the messages, oldest first, as events would have told of them.

        Raises:
            GoneError, RefusedError, ShutOutError: they cannot be had.
        """
        cursor = ""
        while len(self._found) < self.most:
            page, following = await self._page("conversations.history", {}, cursor, ask)
            for each in page:
                self._look_at(each)
            if following is None or not self._is_new(page[-1]):
                self.is_filled = True
                break
            cursor = following
        await self._look_into_threads(ask)
        return [self._found[ts] for ts in sorted(self._found, key=order)]

    async def _look_into_threads(self, ask: Ask) -> None:
        if len(self._threads) > MOST_THREADS:
            self.is_filled = False
        for thread in self._threads[:MOST_THREADS]:
            body: Json = {"ts": thread, "oldest": self.since}
            cursor: str | None = ""
            while cursor is not None:
                page, cursor = await self._page(
                    "conversations.replies", body, cursor, ask
                )
                for each in page:
                    if self._is_new(each):
                        self._keep(each)

    async def _page(
        self, method: str, body: Json, cursor: str, ask: Ask
    ) -> tuple[tuple[Json, ...], str | None]:
        """Fetch one page, and say where the next begins; None: there is none."""
        asked = {"channel": self.channel, "limit": PAGE, **body}
        if cursor:
            asked["cursor"] = cursor
        answer = await ask(method, asked)
        page = tables(answer.get("messages"))
        return page, (next_cursor(answer) or None) if page else None

    def _look_at(self, message: Json) -> None:
        if self._is_new(message):
            self._keep(message)
        latest, ts = text(message.get("latest_reply")), text(message.get("ts"))
        if is_ts(latest) and is_ts(ts) and order(latest) > order(self.since):
            self._threads.append(ts)

    def _keep(self, message: Json) -> None:
        ts = text(message.get("ts"))
        self._found[ts] = {**message, "channel": self.channel, "type": "message"}

    def _is_new(self, message: Json) -> bool:
        ts = text(message.get("ts"))
        return is_ts(ts) and order(ts) > order(self.since)


async def channels_of(ask: Ask) -> list[str]:
    """List the channels, groups and direct chats that an app is in.

    Raises:
        GoneError, RefusedError, ShutOutError: they cannot be had.
    """
    found: list[str] = []
    body: Json = {
        "types": "public_channel,private_channel,mpim,im",
        "exclude_archived": True,
        "limit": 200,
    }
    for _ in range(MOST_PAGES):
        answer = await ask("users.conversations", dict(body))
        channels = tables(answer.get("channels"))
        found += [text(each.get("id")) for each in channels if each.get("id")]
        body["cursor"] = next_cursor(answer)
        if not body["cursor"]:
            break
    return found


LOG = EventLog("slack")


class CatchingUp:
    """Fills the gaps of one app while it goes on listening.

    Args:
        mark: up to where all is in; it stands still until the gaps are filled.
    """

    def __init__(
        self,
        account: SlackAccount,
        shared: SlackShared,
        mark: Mark,
        arrivals: SlackArrivals,
        note: Callable[[PlatformError], object],
    ) -> None:
        self._account = account
        self._shared = shared
        self._mark = mark
        self._arrivals = arrivals
        self._note = note
        self._wanted = trio.Event()
        self._held: set[str] = set()

    def want(self) -> None:
        """Have all gaps since the mark filled."""
        held = after(self._mark.ts)
        self._held.add(held)
        self._mark.begin(held)
        self._wanted.set()

    async def run(self) -> None:
        """Fill gaps whenever that is wanted, until cancelled."""
        while True:
            await self._wanted.wait()
            self._wanted = trio.Event()
            held, self._held = self._held, set()
            left = self._arrivals.left()
            try:
                if await self._fill_all(self._mark.ts):
                    self._give_up(left)
            except (RefusedError, ShutOutError) as error:
                LOG.warning(
                    "what was missed is not known",
                    account=self._account.agent,
                    why=str(error),
                )
                self._shared.metrics.gap(self._account.agent, is_filled=False)
            for each in held - self._held:
                self._mark.end(each)
            self._arrivals.moved.set()

    def _give_up(self, left: Iterable[str]) -> None:
        """Hold the mark no longer for what history does not have any more."""
        count = self._arrivals.give_up(left)
        if count:
            LOG.info(
                "messages that were too many are gone",
                account=self._account.agent,
                count=count,
            )

    async def _fill_all(self, since: str) -> bool:
        """Fill the gaps of all channels; tell whether nothing is left open."""
        try:
            channels = await channels_of(self._ask)
            self._shared.rooms.note_all(self._account.agent, channels)
        finally:
            self._account.placed.set()
        await self._shared.wait_all_placed()
        if not self._shared.config.backfill:
            return False
        is_whole = True
        for channel in channels:
            gap = SlackGap(channel, since, self._shared.config.backfill)
            await self._fill(gap)
            is_whole = is_whole and gap.is_filled
        return is_whole

    async def _fill(self, gap: SlackGap) -> None:
        messages: list[Json] = []
        why = "there is more"
        try:
            messages = await gap.fetch(self._ask)
        except RefusedError as error:
            why, gap.is_filled = str(error), False
        for message in messages:
            await self._arrivals.bring_in(message)
        if messages or not gap.is_filled:
            self._shared.metrics.gap(self._account.agent, is_filled=gap.is_filled)
            LOG.info(
                "gap in a channel",
                channel=gap.channel,
                account=self._account.agent,
                fetched=len(messages),
                left_open="" if gap.is_filled else why,
            )

    async def _ask(self, method: str, body: Json) -> Json:
        return await until_answered(
            partial(self._account.ask, method, body), self._note_waiting
        )

    def _note_waiting(self, error: PlatformError) -> None:
        """Take note that a question waits; whether Slack is heard, others know."""
        LOG.debug("history waits", account=self._account.agent, why=str(error))


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


HELLO_WITHIN = 30.0
"""Seconds in which a new connection must say something."""

OVERLAP = 30.0
"""Seconds that a connection which Slack is about to close is listened to."""


class ConnectionEnd:
    """How one connection comes to its end."""

    def __init__(self) -> None:
        self.is_near = trio.Event()
        """Set when another connection is to be opened."""

        self.has_begun = False
        """Whether Slack greeted us."""

        self.is_asked = False
        """Whether Slack asked for another one; nothing is lost then."""

        self.error: PlatformError | None = None


class SocketMode:
    """The connections of one app."""

    def __init__(
        self,
        account: SlackAccount,
        shared: SlackShared,
        arrivals: SlackArrivals,
        health: AccountHealth,
        note: Callable[[PlatformError], object],
    ) -> None:
        self._account = account
        self._shared = shared
        self._arrivals = arrivals
        self._health = health
        self._note = note

    async def follow(self, on_gap: Callable[[], object], nursery: trio.Nursery) -> None:
        """Keep a connection open.

        Args:
            on_gap: called when something may have been missed.

        Raises:
            GoneError: the way to Slack has ended.
            ShutOutError: the app is not let in.
        """
        waits = Waits()
        while True:
            connection = await until_answered(self._connect, self._note)
            ending = ConnectionEnd()
            nursery.start_soon(self._read, connection, ending)
            await ending.is_near.wait()
            if ending.has_begun:
                waits = Waits()
            metrics = self._shared.metrics
            why = "asked" if ending.is_asked else "trouble"
            metrics.count("reconnects", self._account.agent, why)
            if ending.is_asked and ending.has_begun:
                continue
            await self._recover(ending, waits)
            on_gap()

    async def _recover(self, ending: ConnectionEnd, waits: Waits) -> None:
        """Wait after a connection that was lost, and see whether we are let in."""
        error = ending.error or LostError("Slack closed the connection")
        if isinstance(error, GoneError):
            raise error
        self._note(error)
        await trio.sleep(waits.next())

    async def _connect(self) -> SlackConnection:
        try:
            return await self._account.connect()
        except RefusedError as error:
            # Why not given up: Socket Mode may be switched on meanwhile.
            raise BusyError(f"no connection: {error}", LONGEST_WAIT) from error

    async def _read(self, connection: SlackConnection, ending: ConnectionEnd) -> None:
        try:
            with trio.CancelScope() as scope:
                scope.deadline = trio.current_time() + HELLO_WITHIN
                await self._take_all(connection, ending, scope)
        except PlatformError as error:
            ending.error = error
        finally:
            ending.is_near.set()
            with trio.CancelScope(shield=True):
                await connection.close()

    async def _take_all(
        self,
        connection: SlackConnection,
        ending: ConnectionEnd,
        scope: trio.CancelScope,
    ) -> None:
        """Take what comes until the connection ends, or is left."""
        while True:
            said = await connection.receive()
            if not ending.has_begun:
                ending.has_begun = True
                scope.deadline = float("inf")
            self._health.heard()
            if said.get("type") == "disconnect":
                LOG.info(
                    "slack asks for another connection",
                    account=self._account.agent,
                    reason=text(said.get("reason")),
                )
                if said.get("reason") == "link_disabled":
                    raise LostError(
                        "Socket Mode was switched off in the app's settings"
                    )
                ending.is_asked = True
                ending.is_near.set()
                scope.deadline = trio.current_time() + OVERLAP
            else:
                self._take(said, connection)

    def _take(self, said: Json, connection: SlackConnection) -> None:
        """Take one envelope."""
        envelope, payload = text(said.get("envelope_id")), table(said.get("payload"))
        done = partial(acknowledge, connection, envelope)
        match said.get("type"):
            case "hello":
                pass
            case "events_api" if envelope:
                self._arrivals.take_event(table(payload.get("event")), done)
            case "slash_commands" if envelope:
                self._arrivals.take_command(payload, done)
            case "interactive" if envelope:
                self._arrivals.take_press(payload, done)
            case str() if envelope:
                # What nobody here understands is not to come again.
                self._arrivals.take_event({"type": "unknown"}, done)
            case _:
                self._arrivals.count("malformed")


async def acknowledge(connection: SlackConnection, envelope: str) -> None:
    """Tell Slack that an envelope was taken.

    If that is lost, it comes again, and is known.
    """
    with suppress(LostError):
        await connection.send({"envelope_id": envelope})


CURE = (
    "install the app again, put its tokens where {place} takes them from, and start"
    " again"
)


class SlackListener:
    """Listens to one app by Socket Mode or by webhooks."""

    def __init__(self, account: SlackAccount, shared: SlackShared) -> None:
        self._account = account
        self._shared = shared
        self._health = AccountHealth(account, shared.metrics, shared.clock, LOG)

    async def listen(self, ingress: Ingress) -> None:
        """Follow the app until cancelled.

        Raises:
            PlatformError: the way to Slack has ended; begin anew.
        """
        await self._health.keep_listening(partial(self._listen, ingress))

    async def _listen(self, ingress: Ingress) -> None:
        with self._opened():
            async with self._shared.wire.open() as line, trio.open_nursery() as nursery:
                self._account.use(line)
                nursery.start_soon(self._account.typing.run)
                try:
                    await self._follow(ingress, nursery)
                except ShutOutError as error:
                    self._health.shut_out(error, self._shared.connector, CURE)
                nursery.cancel_scope.cancel()

    @contextmanager
    def _opened(self) -> Generator[None]:
        with self._health.listening():
            try:
                yield
            finally:
                self._account.use(None)
                self._account.introduced.set()
                self._account.placed.set()

    async def _follow(self, ingress: Ingress, nursery: trio.Nursery) -> None:
        account = self._account
        await self._introduce()
        mark = Mark(await read_bookmark(self._bookmark, LOG))
        arrivals = SlackArrivals(account, self._shared, mark, ingress, nursery)
        catching_up = CatchingUp(account, self._shared, mark, arrivals, self._note)
        arrivals.on_overflow = catching_up.want
        account.is_open = True
        LOG.info("app listens", account=account.agent, user=account.user)
        nursery.start_soon(self._keep, mark, arrivals)
        catching_up.want()
        nursery.start_soon(catching_up.run)
        await self._shared.wait_all_placed()
        if account.uses_socket:
            sockets = SocketMode(
                account, self._shared, arrivals, self._health, self._note
            )
            await sockets.follow(catching_up.want, nursery)
        else:
            await self._be_called(arrivals)

    async def _introduce(self) -> None:
        """Learn who the app is; then wait until the others did."""
        account = self._account
        try:
            await until_answered(lazily(account.open), self._note)
        finally:
            account.introduced.set()
        await self._shared.wait_all_introduced()

    async def _be_called(self, arrivals: SlackArrivals) -> None:
        """Take what Slack sends to the HTTP server."""
        calls = SlackWebhooks(self._account, self._shared, arrivals)
        place = self._shared.connector, self._account.agent
        try:
            with self._shared.gates.opened(place, calls):
                self._health.heard()
                await trio.sleep_forever()
        finally:
            calls.end()

    async def _bookmark(self) -> str:
        """Return the moment up to which all is in; at first, that is now."""
        found = await self._shared.bookmarks.read(self._key)
        if not found:
            # What was said before the first start is not answered.
            found = at(self._shared.clock.wall())
            await self._shared.bookmarks.write(self._key, found)
        return found

    async def _keep(self, mark: Mark, arrivals: SlackArrivals) -> None:
        """Store the mark as it moves; the newest counts."""
        kept = mark.ts
        while True:
            await arrivals.moved.wait()
            arrivals.moved = trio.Event()
            if mark.ts == kept:
                continue
            kept = mark.ts
            try:
                await self._shared.bookmarks.write(self._key, kept)
            except StoreError as error:
                # After a restart more is read again, and known to the database.
                LOG.warning("place not kept", why=str(error))

    @property
    def _key(self) -> str:
        return f"{self._account.team}-{self._account.user}"

    def _note(self, error: PlatformError) -> None:
        """Note trouble; other apps need not wait for this one."""
        self._account.introduced.set()
        self._account.placed.set()
        self._health.note(error)


def lazily(ask: Callable[[], Awaitable[None]]) -> Callable[[], Awaitable[None]]:
    """Make of a refusal something that is tried again, but seldom.

    Why not given up: the operator changes the app's settings at Slack meanwhile.
    """
    return partial(_lazily, ask)


async def _lazily(ask: Callable[[], Awaitable[None]]) -> None:
    try:
        await ask()
    except RefusedError as error:
        raise BusyError(str(error), LONGEST_WAIT) from error
