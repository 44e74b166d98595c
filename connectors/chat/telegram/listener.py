"""Hears one bot: the listener of that bot, by asking or by webhook.

The question itself confirms: with `offset`, all before is forgotten by Telegram. So the
offset is sent only after everything below it was accepted, and only until an answer has
come; then there is nothing to confirm. Why not always: after a week in which nothing
happens, Telegram counts on from anywhere, and an offset that is kept would be wrong.

Telegram gives each message to whoever asks, and ends all other questions (409): two
programs with one token would each get a part of what people write. A lock on a file
holds for as long as its program lives, however that ends. Programs on other machines
are found out by Telegram's 409 only.

By webhook, it keeps the bot's webhook set, and reports when Telegram cannot reach it.
"""

from __future__ import annotations

import fcntl
import hmac
import os
from collections.abc import Generator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from pathlib import Path

import trio

from actors.transport import Ingress
from connectors.chat.accounts import read_bookmark
from connectors.chat.inbound import LONGEST_WAIT, Lanes, Waits
from connectors.chat.requests import (
    BusyError,
    PlatformError,
    RefusedError,
    ShutOutError,
    until_answered,
)
from connectors.chat.telegram.account import (
    ConflictError,
    TelegramAccount,
    TelegramCall,
    TelegramHealth,
)
from connectors.chat.telegram.events import (
    KINDS,
    Malformed,
    Update,
    WebhookState,
    read_update,
    read_updates,
    whole,
)
from connectors.chat.telegram.inbound import Spoken, TelegramArrivals
from connectors.chat.telegram.platform import TelegramConfig
from connectors.chat.telegram.senders import TelegramShared
from runtime.clock import Clock
from runtime.errors import StoreError
from runtime.telemetry.logs import EventLog

LOG = EventLog("telegram")

LOOK_EVERY = 60.0
"""Seconds between two looks at what Telegram says of the webhook."""

RECENT = 180.0
"""Seconds for which a failure to reach us counts, while something waits."""

ONE_AT_A_TIME = 1
"""Connections that Telegram opens to us: more could bring a chat's messages in another
order than they were written."""


def address_of(config: TelegramConfig, connector: str, agent: str) -> str:
    """Return the address at which Telegram reaches the webhook of a bot."""
    return f"{config.webhook_url.rstrip('/')}/platforms/{connector}/{agent}"


class TelegramWebhook:
    """The webhook of one bot.

    Args:
        url: where Telegram is to reach it.
        secret: what it is to say there.
        clock: gives Unix seconds.
    """

    def __init__(
        self,
        bot: TelegramAccount,
        url: str,
        secret: str,
        health: TelegramHealth,
        clock: Clock,
    ) -> None:
        self._bot = bot
        self._url = url
        self._secret = secret
        self._health = health
        self._clock = clock

    async def run(self) -> None:
        """Look after it until cancelled.

        Raises:
            ShutOutError: the bot is not let in.
        """
        await until_answered(self._put, self._health.note)
        LOG.info("webhook set", bot=self._bot.agent, url=self._url)
        while True:
            await until_answered(self._look, self._health.note)
            await trio.sleep(LOOK_EVERY)

    async def _put(self) -> None:
        params = {
            "url": self._url,
            "secret_token": self._secret,
            "allowed_updates": KINDS,
            "max_connections": ONE_AT_A_TIME,
            "drop_pending_updates": False,
        }
        call = TelegramCall(
            method="setWebhook", params=params, timeout=self._bot.timeout
        )
        try:
            await self._bot.do(call)
        except RefusedError as error:
            raise BusyError(
                f"Telegram does not take the webhook {self._url}: {error}", LONGEST_WAIT
            ) from error

    async def _look(self) -> None:
        """See whether it is still set, and reached."""
        found = await known_webhook(self._bot)
        if found.url != self._url:
            error = ConflictError(
                "another program took the webhook away; it is set again"
            )
            self._health.note(error)
            await self._put()
            return
        since = self._clock.wall() - found.last_error_date
        if found.pending_update_count and since < RECENT:
            self._health.note(
                BusyError(f"Telegram cannot reach us: {found.last_error_message}")
            )
            return
        self._health.heard()


async def known_webhook(bot: TelegramAccount) -> WebhookState:
    """Ask what webhook a bot has; raises as `TelegramAccount.ask`."""
    call = TelegramCall(method="getWebhookInfo", timeout=bot.timeout)
    return await bot.ask(call, WebhookState)


async def take_away(bot: TelegramAccount, health: TelegramHealth) -> None:
    """Take a webhook away, because with one there is no asking; nothing is dropped.

    Raises:
        ShutOutError: the bot is not let in.
        RefusedError: this is no Bot API.
    """
    found = await until_answered(partial(known_webhook, bot), health.note)
    if not found.url:
        return
    LOG.warning("webhook taken away: this program asks", bot=bot.agent)
    params = {"drop_pending_updates": False}
    call = TelegramCall(method="deleteWebhook", params=params, timeout=bot.timeout)
    await until_answered(partial(bot.do, call), health.note)


@contextmanager
def leased(folder: Path | None, bot: int) -> Generator[None]:
    """Hold a bot for this program until the block ends.

    Args:
        folder: where the locks are; None, or one in which none can be made: nobody is
            kept out.

    Raises:
        ConflictError: another program holds it.
    """
    place = None if folder is None else lock_file(folder, bot)
    if place is None:
        yield
        return
    try:
        try:
            fcntl.flock(place, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            raise ConflictError(
                f"another program on this machine hears bot {bot} already; end it,"
                " or give this one a bot of its own"
            ) from error
        yield
    finally:
        os.close(place)


def lock_file(folder: Path, bot: int) -> int | None:
    """Open the file of a bot; None if that is not possible."""
    path = folder / f"callboard-telegram-{os.getuid()}-{bot}.lock"
    flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
    try:
        return os.open(path, flags, 0o600)
    except OSError:
        return None


GRACE = 5.0
"""Seconds that Telegram may take beyond what it was asked to wait."""

MOST = 100
"""Updates of one answer; Telegram gives no more."""

# Chosen: a server that does not wait for news, as some stand-ins, is not asked in a
# row without end.
LEAST_PAUSE = 1.0
"""Seconds between two questions that brought nothing new."""

CONFLICT_HINT = "only one program may hear a bot: end the other, or take another bot"

Updates = tuple["Update | Malformed", ...]


class OpenUpdates:
    """Which updates are being brought in; pure.

    Telegram forgets all updates below the offset from which it is asked. So that is the
    first one which is not in yet, and what comes behind it is given again each time.
    """

    def __init__(self, offset: int) -> None:
        self.offset = offset
        self._next = offset
        self._open: set[int] = set()
        self._begun: set[int] = set()

    @property
    def is_empty(self) -> bool:
        """Whether all are in."""
        return not self._open

    def begin(self, updates: Updates) -> Updates:
        """Begin those that are new, and give them.

        What is below the offset was confirmed; some servers give it again.
        """
        fresh = tuple(
            each
            for each in updates
            if each.update_id >= self.offset and each.update_id not in self._begun
        )
        for each in fresh:
            self._open.add(each.update_id)
            self._begun.add(each.update_id)
            self._next = max(self._next, each.update_id + 1)
        return fresh

    def end(self, update_id: int) -> None:
        """Note that one is in."""
        self._open.discard(update_id)
        self.offset = min(self._open, default=self._next)
        self._begun = {each for each in self._begun if each >= self.offset}

    def count_anew(self) -> None:
        """Take whatever number comes next: after a silent week Telegram begins anew."""
        self.offset = self._next = 0


class Polling:
    """Polls for one bot's updates.

    Each chat is brought in by itself: one whose messages wait, for a large file or for
    room, keeps no other chat waiting.
    """

    def __init__(
        self,
        bot: TelegramAccount,
        arrivals: TelegramArrivals,
        health: TelegramHealth,
        shared: TelegramShared,
    ) -> None:
        self._bot = bot
        self._arrivals = arrivals
        self._health = health
        self._shared = shared
        self._refused: ShutOutError | None = None
        """Why an update was refused when it was handed in: the bot is shut out."""

        self._news = trio.Event()
        """Set when something is in, or was not let in."""

    async def run(self, ingress: Ingress) -> None:
        """Ask until cancelled.

        Raises:
            ShutOutError: the bot is not let in.
        """
        read = partial(self._shared.bookmarks.read, self._bot.id)
        offset = await read_bookmark(read, LOG)
        LOG.info("bot listens", bot=self._bot.agent, offset=offset)
        self._arrivals.begin_anew()
        refused: ShutOutError | None = None
        async with trio.open_nursery() as nursery:
            try:
                await self._follow(OpenUpdates(offset), Lanes(nursery), ingress)
            except ShutOutError as error:
                refused = error
            nursery.cancel_scope.cancel()
        if refused is not None:
            raise refused

    async def _follow(
        self, updates: OpenUpdates, lanes: Lanes, ingress: Ingress
    ) -> None:
        kept = updates.offset
        while self._refused is None:
            asked_at, was_away = trio.current_time(), bool(self._bot.trouble)
            poll = partial(self._poll, updates.offset)
            given = await until_answered(poll, self._health.note)
            fresh = updates.begin(given)
            for update_id, event in await self._arrivals.events(fresh):
                if event is None:
                    updates.end(update_id)
                    continue
                bring = partial(self._bring, update_id, event, updates, ingress)
                lanes.put_nowait(str(event.chat), bring)
            if fresh:
                with trio.move_on_after(LEAST_PAUSE):
                    await self._until_in(updates)
            elif not given and updates.is_empty:
                updates.count_anew()
            if updates.offset not in {kept, 0}:
                await self._keep(updates.offset)
            kept = updates.offset
            if not (fresh or was_away):
                await trio.sleep_until(asked_at + LEAST_PAUSE)
        raise self._refused

    async def _bring(
        self, update_id: int, event: Spoken, updates: OpenUpdates, ingress: Ingress
    ) -> None:
        """Bring one update in, however long that takes."""
        try:
            await self._arrivals.bring(event, ingress)
        except ShutOutError as error:
            self._refused = error
        else:
            updates.end(update_id)
        self._news.set()

    async def _until_in(self, updates: OpenUpdates) -> None:
        """Wait until all updates are in."""
        while self._refused is None and not updates.is_empty:
            self._news = trio.Event()
            await self._news.wait()

    async def _poll(self, offset: int) -> Updates:
        """Ask for news."""
        # Why not held after trouble: whether it is over is to be known at once.
        hold = 0.0 if self._bot.trouble else self._shared.config.poll_timeout
        params: dict[str, object] = {
            "timeout": int(hold),
            "limit": MOST,
            "allowed_updates": KINDS,
        }
        if offset:
            params["offset"] = offset
        silence = hold + GRACE
        call = TelegramCall(
            method="getUpdates", params=params, timeout=4 * silence, silence=silence
        )
        try:
            answer = read_updates(await self._bot.api.ask_raw(call))
        except ConflictError as error:
            raise ConflictError(f"{error} ({CONFLICT_HINT})") from error
        except RefusedError as error:
            # Why not given up: a proxy in trouble refuses, too, and messages wait.
            raise BusyError(f"it gives no updates: {error}", LONGEST_WAIT) from error
        except (ValueError, RecursionError) as error:
            raise BusyError("getUpdates: its answer makes no sense") from error
        if not answer.ok or answer.result is None:
            raise BusyError("getUpdates: its answer holds no updates")
        self._health.heard()
        return answer.result

    async def _keep(self, offset: int) -> None:
        """Note how far the bot was heard."""
        try:
            await self._shared.bookmarks.write(self._bot.id, offset)
        except StoreError as error:
            # After a restart more is heard again, and known to the database.
            LOG.warning("place not kept", bot=self._bot.agent, why=str(error))


CURE = (
    "ask @BotFather for a new token (/token), put it where {place} takes it from, and"
    " start again"
)

SECRET_HEADER = "x-telegram-bot-api-secret-token"  # noqa: S105  a header's name

# Chosen: as often as a webhook is looked after; a poll asks more often.
NAME_EVERY = 60.0
"""Seconds between two looks at what the bot is called; Telegram does not tell when that
changes."""

# Chosen: below the minute that Telegram waits for an answer.
TAKEN_WITHIN = 20.0
"""Seconds in which what a webhook brings is stored; else it is to be sent again."""


class TelegramListener:
    """Listens to one bot; also the gate of its webhook."""

    def __init__(self, bot: TelegramAccount, shared: TelegramShared) -> None:
        self._bot = bot
        self._shared = shared
        self._arrivals = TelegramArrivals(bot, shared)
        self._health = TelegramHealth(bot, shared)
        self._ingress: Ingress | None = None
        """Where a webhook's messages go; None: it does not listen."""

        account = shared.config.accounts[bot.agent]
        secret = account.webhook_secret
        self._secret = "" if secret is None else secret.reveal().strip()

    async def listen(self, ingress: Ingress) -> None:
        """Hear the bot until cancelled."""
        await self._health.keep_listening(partial(self._listen, ingress))

    async def _listen(self, ingress: Ingress) -> None:
        with self._opened():
            async with self._bot.api, trio.open_nursery() as nursery:
                nursery.start_soon(self._bot.typing.run)
                nursery.start_soon(self._keep_name)
                try:
                    await self._hear(ingress)
                except ShutOutError as error:
                    self._health.shut_out(error, self._shared.connector, CURE)
                nursery.cancel_scope.cancel()

    @contextmanager
    def _opened(self) -> Generator[None]:
        with self._health.listening():
            try:
                yield
            finally:
                self._ingress = None

    async def _hear(self, ingress: Ingress) -> None:
        bot, shared = self._bot, self._shared
        with ExitStack() as stack:
            await self._lease(stack)
            await until_answered(bot.open, self._health.note)
            await bot.make_menus(shared.voices())
            bot.is_open = True
            if shared.config.mode == "webhook":
                self._ingress = ingress
                url = address_of(shared.config, shared.connector, bot.agent)
                hooked = TelegramWebhook(
                    bot, url, self._secret, self._health, shared.clock
                )
                place = shared.connector, bot.agent
                stack.enter_context(shared.gates.opened(place, self))
                await hooked.run()
            else:
                try:
                    await take_away(bot, self._health)
                except RefusedError as error:
                    # A stand-in that knows no webhooks; the polls will tell the rest.
                    LOG.info("webhook not known", bot=bot.agent, why=str(error))
                polling = Polling(bot, self._arrivals, self._health, shared)
                await polling.run(ingress)

    async def _keep_name(self) -> None:
        """Learn a new username of the bot, as long as it is heard."""
        while True:
            await trio.sleep(NAME_EVERY)
            if self._bot.is_open:
                # The loop that hears the bot reports trouble.
                with suppress(PlatformError):
                    await self._bot.learn_name()

    async def _lease(self, stack: ExitStack) -> None:
        """Wait until no other program of this machine hears the bot."""
        waits = Waits()
        while True:
            try:
                stack.enter_context(leased(self._shared.leases, self._bot.id))
            except ConflictError as error:
                self._health.note(error)
            else:
                return
            await trio.sleep(waits.next())

    def lets_in(self, headers: Mapping[str, str]) -> bool:
        """Return whether a webhook's request comes from Telegram; fails closed.

        Called on the server's thread: looks at nothing that changes.
        """
        given = headers.get(SECRET_HEADER, "")
        # Why bytes: compare_digest refuses text that is not ASCII.
        is_right = hmac.compare_digest(given.encode(), self._secret.encode())
        return is_right and bool(self._secret)

    async def take(self, body: bytes) -> bool:
        """Have what a webhook brought stored.

        Returns:
            Whether Telegram may forget it.
        """
        ingress = self._ingress
        if ingress is None:
            return False
        try:
            update = read_one(body)
        except (ValueError, RecursionError) as error:
            # Telegram would bring it for a day, and nothing behind it.
            LOG.warning("update not understood", bot=self._bot.agent, why=str(error))
            self._shared.metrics.event(self._bot.agent, "malformed")
            return True
        with trio.move_on_after(TAKEN_WITHIN):
            try:
                await self._arrivals.take(update, ingress)
            except ShutOutError as error:
                LOG.warning("update waits", bot=self._bot.agent, why=str(error))
                return False
            self._health.heard()
            return True
        self._shared.metrics.event(self._bot.agent, "later")
        return False


def read_one(body: bytes) -> Update | Malformed:
    """Read what a webhook brought.

    Raises:
        ValueError: it is no update.
    """
    try:
        found = read_update(body)
    except ValueError:
        return read_update(whole(body))
    return read_update(whole(body)) if isinstance(found, Malformed) else found
