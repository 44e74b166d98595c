"""Turns WhatsApp's messages into inbound messages, and submits them with their files.

Files are fetched at once, because their addresses are good for minutes only, and never
for somebody who may not write. Meta waits for our answer meanwhile, so that they have
so long and no longer.

Meta's calls are taken here: Meta signs the bytes that it sends, with the app's secret;
they are never put together anew, because Meta writes `ä` where others write `ä`. It is
answered 200 after all that it brought is stored, and sends all of it again if it is
not.

An app has one address for all its numbers.

All numbers of one connector share metrics, settings, and caches.
"""

from __future__ import annotations

import hmac
import secrets
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Literal

import msgspec
import trio

from actors.errors import ChatError, MessageRefusedError, OverloadedError, StoppingError
from actors.messages.inbound import Address, Inbound, Quoted
from actors.rules.text.limits import RecentMap
from actors.transport import Ingress
from actors.webhooks.signature import GITHUB_SIGNATURE, SHORTEST_KEY, Rejected, verify
from connectors.chat.accounts import Family, PlatformCounters, PlatformMetrics
from connectors.chat.inbound import MOST_IN_ALL, left_out, words_of
from connectors.chat.platforms import PlatformAnswer, PlatformCall, Terms
from connectors.chat.requests import BusyError, PlatformError
from connectors.chat.whatsapp import markup
from connectors.chat.whatsapp.account import WhatsAppAccount
from connectors.chat.whatsapp.events import (
    Reason,
    Status,
    WhatsAppFile,
    WhatsAppMessage,
    WhatsAppNews,
    read_news,
)
from connectors.chat.whatsapp.platform import WhatsAppConfig
from runtime.clock import Clock
from runtime.errors import KernelError, StoreUnavailableError
from runtime.ids import IdSource
from runtime.telemetry.logs import EventLog

LOG = EventLog("whatsapp")

TRY_LATER = (OverloadedError, StoppingError, StoreUnavailableError)
"""Nothing was stored; Meta sends it again."""

# Chosen: Meta's second try comes within seconds, its last after 7 days; what is
# forgotten here is known to the database.
MOST_DONE = 10_000

FIRST_WAIT = 0.5
"""Seconds until a busy server is asked for a file again; then twice as long."""


class WhatsAppSubmitter:
    """Submits the messages of people, one of a chat after the other."""

    def __init__(self, shared: WhatsAppShared) -> None:
        self._shared = shared
        self._done: RecentMap[str, bool] = RecentMap(MOST_DONE)
        self._told: RecentMap[str, bool] = RecentMap(MOST_DONE)
        self._chats: dict[str, tuple[trio.Lock, int]] = {}
        """Chats whose messages are being submitted, and how many wait."""

    async def submit(
        self, heard: WhatsAppMessage, ingress: Ingress, until: float
    ) -> bool:
        """Have a message stored, one of a chat after the other.

        Args:
            until: when its files must have come (trio's clock).

        Returns:
            False: it is not stored, and is to be sent again.
        """
        lock, waiting = self._chats.get(heard.chat, (trio.Lock(), 0))
        self._chats[heard.chat] = lock, waiting + 1
        try:
            async with lock:
                return await self._submit(heard, ingress, until)
        finally:
            lock, waiting = self._chats.pop(heard.chat)
            if waiting > 1:
                self._chats[heard.chat] = lock, waiting - 1

    async def _submit(
        self, heard: WhatsAppMessage, ingress: Ingress, until: float
    ) -> bool:
        shared = self._shared
        agent = shared.agent_of(heard.number)
        if heard.id in self._done:
            shared.metrics.event(agent, "seen")
            return True
        inbound = self._bare(heard)
        try:
            is_admitted = await ingress.is_admitted(inbound)
            if is_admitted:
                inbound = await self._filled(inbound, heard, until)
            is_new = await ingress.accept(inbound)
        except TRY_LATER as error:
            self._later(inbound, error)
            return False
        except MessageRefusedError as error:
            shared.metrics.event(agent, "refused")
            self._tell(inbound, str(error))
        except (ChatError, KernelError) as error:
            # It would be refused for ever, and hold back all that comes with it.
            shared.metrics.event(agent, "lost")
            LOG.fault("message not taken", error, message=heard.id)
            self._tell(inbound, "this message could not be taken")
        else:
            shared.metrics.event(agent, "handed_in" if is_new else "seen")
            if is_new and is_admitted:
                self._note(heard)
        self._done[heard.id] = True
        return True

    def _later(self, inbound: Inbound, error: Exception) -> None:
        shared = self._shared
        shared.metrics.event(inbound.agent, "waits")
        why = str(error) or type(error).__name__
        LOG.warning("message waits", message=inbound.platform_id, why=why)
        if inbound.platform_id not in self._told and not isinstance(
            error, StoppingError
        ):
            self._told[inbound.platform_id] = True
            self._tell(inbound, words_of(error))

    def _note(self, heard: WhatsAppMessage) -> None:
        """Remember what was taken, and show its sender that it was read."""
        shared = self._shared
        shared.newest[heard.chat] = heard.id
        shared.said.learn(heard.chat, heard.id, heard.text, heard.sender_name)
        if shared.config.mark_read:
            read = partial(shared.numbers[heard.number].read, heard.id)
            shared.run_soon(heard.number, "show that a message was read", read)

    def _tell(self, inbound: Inbound, words: str) -> None:
        """Tell somebody who waits for an answer that there is none yet."""
        shared = self._shared
        number, person = markup.parted(inbound.address.chat)
        body = markup.message(person, f"⚠️ {words}", inbound.id, inbound.platform_id)
        say = partial(shared.numbers[number].send, body)
        shared.run_soon(number, "tell somebody that nothing was taken", say)

    def _bare(self, heard: WhatsAppMessage) -> Inbound:
        """Return a message as it came, with nothing fetched."""
        shared = self._shared
        shared.windows.heard(heard.chat, heard.at)
        (agent,) = shared.present(heard.chat)
        return Inbound(
            id=shared.ids.new(),
            platform="whatsapp",
            platform_id=heard.id,
            address=Address(shared.connector, heard.chat),
            sender_id=heard.sender,
            sender_name=heard.sender_name,
            text=heard.text,
            received_at=shared.clock.wall(),
            agent=agent,
            wants_drafts=False,
            reply_to=heard.reply_to,
            present=(agent,),
            platform_fields=specifics(heard),
        )

    async def _filled(
        self, inbound: Inbound, heard: WhatsAppMessage, until: float
    ) -> Inbound:
        """Add what a message quotes and what came with it."""
        quoted = self._shared.said.quote(heard.chat, heard.reply_to)
        if heard.file is None:
            return msgspec.structs.replace(inbound, quoted=quoted)
        try:
            got = await self._fetch(heard.file, heard.number, until)
        except PlatformError as error:
            self._shared.metrics.event(inbound.agent, "media_left_out")
            LOG.warning("file not fetched", message=heard.id, why=str(error))
            note = left_out(heard.file.kind, heard.file.name, str(error))
            words = f"{heard.text}\n{note}".strip()
            return msgspec.structs.replace(inbound, quoted=quoted, text=words)
        files = (heard.file.attached(got),)
        return msgspec.structs.replace(inbound, quoted=quoted, attachments=files)

    async def _fetch(self, file: WhatsAppFile, number: str, until: float) -> bytes:
        """Fetch a file; a server that is busy is asked again while there is time."""
        most = min(self._shared.config.max_media_bytes, MOST_IN_ALL)
        wait = FIRST_WAIT
        while True:
            left = until - trio.current_time()
            if left <= 0:
                raise BusyError("there was no time left for it")
            try:
                return await self._shared.numbers[number].media(file.id, most, left)
            except BusyError as error:
                pause = max(wait, error.retry_after or 0.0)
                if trio.current_time() + pause >= until:
                    raise
            await trio.sleep(pause)
            wait *= 2


def specifics(heard: WhatsAppMessage) -> dict[str, str]:
    """Return the fields that only WhatsApp has."""
    found = {
        "type": heard.kind,
        "phone": heard.phone,
        "phone_number_id": heard.number,
        "forwarded": "true" if heard.is_forwarded else "",
    }
    return {name: value for name, value in found.items() if value}


FILES_WITHIN = 8.0
"""Seconds in which all files of one webhook must have come: Meta waits meanwhile."""

LONGEST_CHALLENGE = 256
"""Characters."""

TAKEN, LATER, MALFORMED = PlatformAnswer(200), PlatformAnswer(503), PlatformAnswer(400)


class WhatsAppWebhooks:
    """The gate of one connector: takes Meta's calls for all its numbers."""

    def __init__(
        self, shared: WhatsAppShared, submitter: WhatsAppSubmitter, ingress: Ingress
    ) -> None:
        self._shared = shared
        self._submitter = submitter
        self._ingress = ingress
        key = shared.config.app_secret.reveal().strip().encode()
        # New with each start: what nobody can sign with, should the secret be none.
        nobodys = secrets.token_bytes(2 * SHORTEST_KEY)
        self._keys = (key if len(key) >= SHORTEST_KEY else nobodys, nobodys)
        self._agents = {each.id: each.agent for each in shared.numbers.values()}
        self._terms = Terms(
            methods=("GET", "POST"), most_bytes=shared.config.max_body_bytes
        )

    @property
    def terms(self) -> Terms:
        """See `gates.SignedGate`."""
        return self._terms

    def lets_in(self, headers: Mapping[str, str]) -> bool:
        """Return whether there is a signature at all."""
        return bool(headers.get(GITHUB_SIGNATURE))

    def check(self, call: PlatformCall) -> PlatformAnswer | None:
        """Answer Meta's handshake, and let in what it signed."""
        if call.method != "POST":
            return self._shake_hands(call)
        found = verify("github", self._keys, call.headers, call.body, now=0, window=0)
        if isinstance(found, Rejected):
            return PlatformAnswer(401, refused=found.reason)
        return None

    def _shake_hands(self, call: PlatformCall) -> PlatformAnswer:
        """Give back Meta's challenge if it knows our word."""
        wanted = self._shared.config.verify_token.reveal().strip().encode()
        given = call.query.get("hub.verify_token", "").encode()
        challenge = call.query.get("hub.challenge", "")
        is_right = hmac.compare_digest(given, wanted) and bool(wanted)
        is_whole = challenge.isalnum() and len(challenge) <= LONGEST_CHALLENGE
        if is_right and is_whole and call.query.get("hub.mode") == "subscribe":
            LOG.info("webhook verified", connector=self._shared.connector)
            return PlatformAnswer(200, challenge.encode(), media_type="text/plain")
        return PlatformAnswer(403, refused="bad_verify_token")

    async def answer(self, call: PlatformCall) -> PlatformAnswer:
        """Hand in all that a webhook brings; 200 once it is stored."""
        shared = self._shared
        try:
            news = read_news(call.body, self._agents, shared.clock.wall())
        except ValueError as error:
            LOG.warning("webhook left out", why=str(error))
            return MALFORMED
        self._note(news)
        for status in news.statuses:
            self._learn(status)
        until = trio.current_time() + FILES_WITHIN
        for heard in news.heard:
            # Why no further one after that: they would be stored in another order.
            if not await self._submitter.submit(heard, self._ingress, until):
                return LATER
        await trio.lowlevel.checkpoint()
        return TAKEN

    def _note(self, news: WhatsAppNews) -> None:
        """Count what comes, and say what is left out."""
        shared, now = self._shared, self._shared.clock.wall()
        numbers = [each.number for each in news.heard]
        numbers += [each.number for each in news.statuses]
        for number in numbers:
            shared.metrics.heard(shared.agent_of(number), now)
        for skipped in news.skipped:
            shared.metrics.event(shared.agent_of(skipped.number), skipped.reason)
            write = (
                LOG.info if skipped.reason in {"reaction", "system"} else LOG.warning
            )
            write("message left out", message=skipped.id, reason=skipped.reason)

    def _learn(self, status: Status) -> None:
        """Record what became of a message of ours."""
        shared = self._shared
        agent = shared.agent_of(status.number)
        shared.metrics.count("statuses", agent, status.state)
        if status.marker:
            shared.said.note(status.marker, status.id)
        if status.state != "failed":
            LOG.debug("status", message=status.id, state=status.state)
            return
        chat = shared.said.chat_of(status.marker)
        if status.is_outside_window and chat:
            shared.windows.refused(chat)
        LOG.warning(
            "message not delivered by WhatsApp",
            delivery=status.marker,
            message=status.id,
            chat=chat or status.person,
            agent=agent,
            why=status.why or "no reason was given",
        )


# Chosen: a burst of a thousand messages has its ticks; at 0.2 s each, 4 at a time keep
# up with 20 messages a second.
MOST_WAITING = 1_000
WORKERS = 4

TIMEOUT = 10.0
"""Seconds one may take; later, it would be wrong."""

BackgroundTask = tuple[str, "Callable[[], Awaitable[object]]"]


class BackgroundTasks:
    """Small requests that run in the background; nobody waits for them."""

    def __init__(self) -> None:
        self._send, self._receive = trio.open_memory_channel[BackgroundTask](
            MOST_WAITING
        )

    def add(self, what: str, run: Callable[[], Awaitable[object]]) -> bool:
        """Have something done soon; False: there is no room for it."""
        try:
            self._send.send_nowait((what, run))
        except trio.WouldBlock:
            return False
        return True

    async def run(self) -> None:
        """Do what comes until cancelled."""
        async with trio.open_nursery() as nursery:
            for _ in range(WORKERS):
                nursery.start_soon(self._work)

    async def _work(self) -> None:
        while True:
            what, run = await self._receive.receive()
            with trio.move_on_after(TIMEOUT) as scope:
                try:
                    await run()
                except PlatformError as error:
                    LOG.warning("not done", what=what, why=str(error))
            if scope.cancelled_caught:
                LOG.warning("not done", what=what, why="it took too long")


# Chosen: an hour of answers of a busy number.
MOST = 5_000

LONGEST_QUOTE = 2_000
"""Characters of a message that somebody may reply to."""


class WhatsAppSent:
    """Our own messages by marker, and the text of all recent messages by id."""

    def __init__(self, most: int = MOST) -> None:
        self._sent: RecentMap[str, str] = RecentMap(most)
        self._chats: RecentMap[str, str] = RecentMap(most)
        self._quotes: RecentMap[tuple[str, str], Quoted] = RecentMap(most)
        self._awaited: dict[str, trio.Event] = {}

    def find(self, marker: str) -> str:
        """Return the id of a message of ours; empty: nobody knows of it."""
        return self._sent.get(marker, "")

    def intend(self, marker: str, chat: str) -> None:
        """Note where a message is about to be said."""
        self._chats[marker] = chat

    def chat_of(self, marker: str) -> str:
        """Return the chat of a message of ours; empty: nobody knows."""
        return self._chats.get(marker, "")

    def note(self, marker: str, message_id: str) -> None:
        """Note that WhatsApp has a message of ours."""
        self._sent[marker] = message_id
        awaited = self._awaited.get(marker)
        if awaited is not None:
            awaited.set()

    async def wait(self, marker: str, seconds: float) -> str:
        """Wait for a sign that WhatsApp has a message; empty: none came in time."""
        awaited = self._awaited.setdefault(marker, trio.Event())
        try:
            with trio.move_on_after(seconds):
                if not self.find(marker):
                    await awaited.wait()
        finally:
            self._awaited.pop(marker, None)
        return self.find(marker)

    def learn(
        self, chat: str, message_id: str, text: str, name: str = "", agent: str = ""
    ) -> None:
        """Remember a message's words, for who replies to it."""
        quoted = Quoted(text=text[:LONGEST_QUOTE], sender_name=name, agent=agent)
        self._quotes[chat, message_id] = quoted

    def quote(self, chat: str, message_id: str) -> Quoted | None:
        """Return what a message of a chat says; None: nobody knows.

        Why the chat: what somebody replies to is for their phone to say, and another's
        may say anything.
        """
        return self._quotes.get((chat, message_id))


OPEN_FOR = 86_400.0
"""Seconds."""

# Chosen: people of a day; who is forgotten is simply asked about.
MOST_CHATS = 20_000
"""Chats whose newest message, and its time, are remembered."""

CLOSED = float("-inf")


class ReplyWindows:
    """The time of each person's last message: they may be answered for 24 hours."""

    def __init__(self, most: int = MOST_CHATS) -> None:
        self._heard: RecentMap[str, float] = RecentMap(most)

    def heard(self, chat: str, at: float) -> None:
        """Note that somebody wrote.

        Args:
            at: Unix seconds, as WhatsApp says; an older one than is known changes
                nothing.
        """
        self._heard[chat] = max(at, self._heard.get(chat, CLOSED))

    def refused(self, chat: str) -> None:
        """Note that WhatsApp says the window is closed."""
        self._heard[chat] = CLOSED

    def is_closed(self, chat: str, now: float) -> bool:
        """Return whether the window is surely closed at `now` (Unix seconds)."""
        return now - self._heard.get(chat, now) >= OPEN_FOR


Outcome = (
    Reason
    | Literal[
        "handed_in",
        "seen",
        "refused",
        "lost",
        "waits",
        "media_left_out",
        "errand_left_out",
        "window_closed",
        "template",
    ]
)
"""The outcomes of messages, beside the reasons to skip one. A message was stored
(`handed_in`), refused by the company for good (`refused`), not storable (`lost`), or
waits for the store (`waits`). `seen`: it came before. `errand_left_out`: no room for a
tick, typing or a notice. `window_closed`: a message of ours came after the 24 hours.
`template`: it, or its beginning, went as a template."""

METRICS = partial(
    PlatformCounters,
    events=Family(
        "callboard_whatsapp_events",
        "What became of what WhatsApp sent, by account (the agent's name).",
        "outcome",
    ),
    statuses=Family(
        "callboard_whatsapp_statuses",
        "What WhatsApp said of our messages: sent, delivered, read, failed.",
        "status",
    ),
    heard=Family(
        "callboard_whatsapp_heard_timestamp_seconds",
        "When WhatsApp last called for an account, in Unix seconds.",
    ),
    up=Family("callboard_whatsapp_up", "1 while an account's token is taken."),
)
"""Registers the metrics of all connectors of this platform."""


@dataclass(frozen=True)
class WhatsAppShared:
    """All that the numbers of one connector share."""

    connector: str
    """Its name, as in the settings."""

    config: WhatsAppConfig
    numbers: Mapping[str, WhatsAppAccount]
    """By Meta's id."""

    metrics: PlatformMetrics[Outcome]
    clock: Clock
    ids: IdSource
    windows: ReplyWindows = field(default_factory=ReplyWindows)
    said: WhatsAppSent = field(default_factory=WhatsAppSent)
    tasks: BackgroundTasks = field(default_factory=BackgroundTasks)
    newest: RecentMap[str, str] = field(
        default_factory=lambda: RecentMap[str, str](MOST_CHATS)
    )
    """By chat: the id of the person's newest message."""

    def run_soon(
        self, number: str, what: str, run: Callable[[], Awaitable[object]]
    ) -> None:
        """Run a small request in the background; count it if there is no room.

        Args:
            number: Meta's id, which sends it.
            what: as for `BackgroundTasks.add`.
            run: likewise.
        """
        if not self.tasks.add(what, run):
            self.metrics.event(self.agent_of(number), "errand_left_out")

    def agent_of(self, number: str) -> str:
        """Return whose number it is; `(unknown)` for one of nobody's."""
        found = self.numbers.get(number)
        return "(unknown)" if found is None else found.agent

    def present(self, chat: str) -> tuple[str, ...]:
        """Return the agents of a chat: who has the number."""
        number, _, _ = chat.partition(":")
        return (self.numbers[number].agent,)
