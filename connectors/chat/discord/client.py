"""One agent's bot: as discord.py runs it, as the kernel knows it, and its errors.

Only `DiscordClient` lives on the asyncio edge. Its handlers tell the kernel what they
hear, and never wait for it. Payloads of messages are passed on as they came, before
discord.py reads them: one that it cannot read ends its client, and is not lost with it.

`read_error` says what an error of discord.py, or of what is beneath it, means, in the
kinds of `connectors/chat/requests.py`. `DiscordAccount` is the bot as the trio side
knows it.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from contextlib import suppress
from typing import Any, TypeVar, cast

import aiohttp
import discord
import msgspec
import trio
from discord import abc
from discord.http import HTTPClient, Route
from discord.state import ConnectionState

from connectors.asyncio_bridge.bridge import Bridge, BridgeError
from connectors.chat.accounts import TYPING_TIMEOUT, AgentAccount, BackgroundTyping
from connectors.chat.discord.events import (
    Came,
    Changed,
    Channel,
    Connected,
    DiscordScene,
    Event,
    FileToSend,
    GatewayReady,
    Invoked,
    Parted,
    Removed,
    Resumed,
    number,
)
from connectors.chat.discord.platform import DiscordAccountConfig, DiscordConfig
from connectors.chat.requests import (
    LONGEST_QUOTE,
    BusyError,
    Json,
    LostError,
    PlatformError,
    RefusedError,
    ShutOutError,
    table,
    text,
    texts,
)
from connectors.files.blobs import seconds_for
from runtime.telemetry.logs import EventLog

GATEWAY = "wss://gateway.discord.gg"


class Requests(HTTPClient):
    """Requests to the addresses of the settings.

    Why a class of its own: discord.py keeps its addresses in variables of classes, for
    the whole process. `Route.BASE` stays as it is.
    """

    api = Route.BASE
    gateway = GATEWAY

    async def request(self, route: Route, **given: Any) -> Any:  # noqa: ANN401  as there
        """Ask Discord; see there."""
        route.url = self.api + route.url.removeprefix(Route.BASE)
        return await super().request(route, **given)

    async def ws_connect(self, url: str, *, compress: int = 0) -> Any:  # noqa: ANN401
        """Connect to the gateway, to whose own address wherever another is set."""
        if self.gateway != GATEWAY:
            url = f"{self.gateway}/?{url.partition('?')[2]}"
        return await super().ws_connect(url, compress=compress)


def roles_of(guild: discord.Guild, payload: Json) -> tuple[str, ...]:
    """Say what somebody is in a server, by rights and by roles."""
    member, author = table(payload.get("member")), table(payload.get("author"))
    user = text(author.get("id")) or text(table(member.get("user")).get("id"))
    ids = texts(member.get("roles"))
    found = [guild.get_role(number(each)) for each in ids]
    rights = [each.permissions for each in found if each is not None]
    ranks: list[str] = []
    if number(user) == guild.owner_id or any(each.administrator for each in rights):
        ranks = ["admin"]
    elif any(each.manage_guild or each.manage_messages for each in rights):
        ranks = ["moderator"]
    return (*ranks, *(f"role:{each}" for each in ids))


def names_in(guild: discord.Guild, said: str, roles: Iterable[str]) -> dict[str, str]:
    """Return how channels and roles are called that a text mentions."""
    names: dict[str, str] = {}
    for each in said.split("<#")[1:50]:
        known = each.partition(">")[0]
        channel = guild.get_channel_or_thread(number(known))
        if channel is not None:
            names[f"#{known}"] = channel.name
    for known in roles:
        role = guild.get_role(number(known))
        if role is not None:
            names[f"&{known}"] = role.name
    return names


def shapes(commands: Iterable[object]) -> list[tuple[str, str, tuple[str, ...]]]:
    """Return the names, descriptions and options of commands, in order."""
    found: list[tuple[str, str, tuple[str, ...]]] = []
    for each in map(table, commands):
        options = cast("list[object]", each.get("options") or [])
        named = [text(table(one).get("description")) for one in options]
        found.append(
            (text(each.get("name")), text(each.get("description")), tuple(named))
        )
    return sorted(found)


OURS = frozenset(
    {"MESSAGE_CREATE", "MESSAGE_UPDATE", "MESSAGE_DELETE", "INTERACTION_CREATE"}
)

NOBODY = discord.AllowedMentions.none()
READY_AFTER = 2.0
"""Seconds without a further server after which all are taken for told."""


class Envelope(msgspec.Struct, frozen=True):
    """One message of the gateway, as far as we read it."""

    t: str | None = None
    d: msgspec.Raw = msgspec.Raw(b"null")


class DiscordClient(discord.Client):
    """The bot of one agent, from one start to its end.

    Args:
        bots: those of all agents that run, by agent; on the edge only.
        hear: takes what it hears; quick, and never fails.
    """

    def __init__(
        self,
        agent: str,
        config: DiscordConfig,
        bots: dict[str, DiscordClient],
        hear: Callable[[Event], object],
        ready_after: float = READY_AFTER,
    ) -> None:
        self._addresses = config.api.rstrip("/"), config.gateway.rstrip("/")
        intents = discord.Intents.none()
        intents.guilds = intents.guild_messages = intents.dm_messages = True
        intents.message_content = config.message_content
        # Nobody speaks here, so that it need not warn of what it lacks for that.
        discord.VoiceClient.warn_nacl = discord.VoiceClient.warn_dave = False
        status = discord.CustomActivity(config.status) if config.status else None
        super().__init__(
            intents=intents,
            activity=status,
            allowed_mentions=NOBODY,
            chunk_guilds_at_startup=False,
            enable_debug_events=True,
            guild_ready_timeout=ready_after,
            heartbeat_timeout=config.silence_timeout,
            max_messages=None,
            max_ratelimit_timeout=max(30.0, config.request_timeout / 2),
            member_cache_flags=discord.MemberCacheFlags.none(),
        )
        self.agent = agent
        self._bots = bots
        self._hear = hear

    def _get_state(self, **options: Any) -> ConnectionState[Any]:  # noqa: ANN401
        # Called once, by `Client.__init__`, right after it has made `http`.
        made = Requests(
            self.http.loop, max_ratelimit_timeout=self.http.max_ratelimit_timeout
        )
        made.api, made.gateway = self._addresses
        self.http = made
        return super()._get_state(**options)

    async def run_on_edge(self, token: str) -> None:
        """Follow the gateway until cancelled, or until it ends for good.

        Whoever calls this must call `end_on_edge` afterwards.

        Raises:
            Exception: whatever ended it; see `errors.FAULTS`.
        """
        self._bots[self.agent] = self
        try:
            await self.start(token)
        finally:
            if self._bots.get(self.agent) is self:
                del self._bots[self.agent]

    async def end_on_edge(self) -> None:
        """Take leave of the gateway, and close all connections."""
        await self.close()

    async def cut_on_edge(self) -> None:
        """Close all connections without a word."""
        await self.http.close()

    # ------------------------------------------------------------- what it hears

    async def on_connect(self) -> None:
        """Tell that a new session has begun."""
        self._hear(Connected(str(self.user.id) if self.user is not None else ""))

    async def on_ready(self) -> None:
        """Tell that all channels are known."""
        self._hear(GatewayReady(self.channels()))

    async def on_resumed(self) -> None:
        """Tell that the session goes on."""
        self._hear(Resumed())

    async def on_disconnect(self) -> None:
        """Tell that the connection is gone."""
        self._hear(Parted())

    async def on_socket_raw_receive(self, message: str) -> None:
        """Pass on what is for us, before discord.py reads it."""
        try:
            envelope = msgspec.json.decode(message, type=Envelope)
            if envelope.t not in OURS:
                return
            payload = table(msgspec.json.decode(envelope.d))
        except (msgspec.MsgspecError, UnicodeError):
            return  # discord.py ends over it, and is begun anew
        if envelope.t == "MESSAGE_UPDATE":
            self._hear(Changed())
        elif envelope.t == "MESSAGE_DELETE":
            channel, said = text(payload.get("channel_id")), text(payload.get("id"))
            self._hear(Removed(channel, said))
        elif envelope.t == "MESSAGE_CREATE":
            self._hear(Came(payload, self.scene(payload)))
        else:
            self._hear(Invoked(payload, self.scene(payload)))

    def scene(self, payload: Json) -> DiscordScene:
        """Say where something was said, as far as the bots know."""
        channel_id = number(text(payload.get("channel_id")))
        guild = self.get_guild(number(text(payload.get("guild_id"))))
        if guild is None:
            is_direct = not text(payload.get("guild_id"))
            return DiscordScene(is_known=is_direct, present=(self.agent,))
        found = self.get_channel(channel_id)
        present = [name for name, bot in self._bots.items() if bot.sees(channel_id)]
        roles = texts(payload.get("mention_roles"))
        return DiscordScene(
            is_known=found is not None,
            parent=str(found.parent_id) if isinstance(found, discord.Thread) else "",
            name=found.name
            if isinstance(found, abc.GuildChannel | discord.Thread)
            else "",
            guild_name=guild.name,
            present=tuple(present),
            called=tuple(
                name
                for name, bot in self._bots.items()
                if bot.own_role(guild.id) in roles
            ),
            roles=roles_of(guild, payload),
            names=names_in(guild, text(payload.get("content")), roles),
        )

    def sees(self, channel_id: int) -> bool:
        """Return whether the bot can read a channel."""
        channel = self.get_channel(channel_id)
        if not isinstance(channel, abc.GuildChannel | discord.Thread):
            return channel is not None
        # Typed as if it were always known.
        me = cast("discord.Member | None", channel.guild.me)
        try:
            return me is None or channel.permissions_for(me).read_messages
        except discord.ClientException:
            return True  # a thread whose channel is not known

    def own_role(self, guild_id: int) -> str:
        """Return the id of the role that Discord made for this bot; empty: none."""
        guild = self.get_guild(guild_id)
        role = guild.self_role if guild is not None else None
        return str(role.id) if role is not None else ""

    def channels(self) -> tuple[Channel, ...]:
        """Return the channels and threads that it can read, and how far they go."""
        found: list[Channel] = []
        for guild in self.guilds:
            me = cast("discord.Member | None", guild.me)
            joined = me.joined_at if me is not None else None
            since = discord.utils.time_snowflake(joined) if joined is not None else 0
            for channel in (*guild.channels, *guild.threads):
                if isinstance(channel, abc.Messageable) and self.sees(channel.id):
                    last = getattr(channel, "last_message_id", None)
                    found.append(
                        Channel(str(channel.id), last or 0, str(guild.id), since)
                    )
        return tuple(found)

    # ------------------------------------------------------------- what it does

    async def say(
        self, channel: str, message: Json, file: FileToSend | None = None
    ) -> str:
        """Say a message; gives its id."""
        path = "/channels/{channel_id}/messages"
        route = Route("POST", path, channel_id=whole_id(channel))
        answer = await self._tell(route, message, file)
        return text(table(answer).get("id"))

    async def _tell(
        self, route: Route, message: Json, file: FileToSend | None
    ) -> object:
        """Send a message: as JSON, or as a form with a file."""
        if file is None:
            return cast("object", await self.http.request(route, json=message))
        opened = discord.File(file.path, filename=file.name)
        said = msgspec.json.encode(message).decode()
        part = {"name": "files[0]", "value": opened.fp, "filename": file.name}
        form: list[dict[str, Any]] = [
            {"name": "payload_json", "value": said},
            {**part, "content_type": file.media_type},
        ]
        try:
            # Where it repeats, it reads the file again from the beginning.
            return cast(
                "object",
                await self.http.request(route, form=form, files=[opened]),
            )
        finally:
            opened.close()

    async def alter(self, channel: str, message: str, changed: Json) -> None:
        """Let a message of its own read otherwise."""
        path = "/channels/{channel_id}/messages/{message_id}"
        route = Route(
            "PATCH", path, channel_id=whole_id(channel), message_id=whole_id(message)
        )
        await self.http.request(route, json=changed)

    async def take_back(self, channel: str, message: str) -> None:
        """Take a message of its own away."""
        await self.http.delete_message(whole_id(channel), whole_id(message))

    async def sign(self, channel: str, message: str, sign: str) -> None:
        """Put a sign at a message."""
        await self.http.add_reaction(whole_id(channel), whole_id(message), sign)

    async def unsign(self, channel: str, message: str, sign: str) -> None:
        """Take its own sign away, if it is there."""
        with suppress(discord.NotFound):
            await self.http.remove_own_reaction(
                whole_id(channel), whole_id(message), sign
            )

    async def show_typing(self, channel: str) -> None:
        """Show that it writes, for ten seconds."""
        await self.http.send_typing(whole_id(channel))

    async def history(self, channel: Channel, before: int, limit: int) -> list[Came]:
        """Return messages of a channel as if they came now, the newest first."""
        whole_id(channel.id)
        raw = cast(
            "object",
            await self.http.logs_from(channel.id, limit, before=before or None),
        )
        if not isinstance(raw, list):
            raise LostError("the history of a channel is no list")
        found = [table(each) for each in cast("list[object]", raw)]
        members = await self._members(channel.guild, found)
        came: list[Came] = []
        for each in found:
            author = text(table(each.get("author")).get("id"))
            known = {"guild_id": channel.guild, "member": members.get(author, {})}
            message = {**each, **known} if channel.guild else each
            came.append(Came(message, self.scene(message)))
        return came

    async def _members(self, guild: str, messages: list[Json]) -> dict[str, Json]:
        """Look up who wrote in a server: its history does not tell their roles."""
        members: dict[str, Json] = {}
        for author in (table(each.get("author")) for each in messages):
            known = text(author.get("id"))
            if guild and known not in members and author.get("bot") is not True:
                try:
                    found: object = await self.http.get_member(guild, number(known))
                except discord.NotFound:
                    found = None  # has left, or is a webhook
                members[known] = table(found)
        return members

    async def look_at(self, channel: str) -> Json:
        """Return a channel as it is."""
        return table(cast("object", await self.http.get_channel(whole_id(channel))))

    async def make_known(self, commands: list[Json]) -> bool:
        """Make its commands known, if others are; tell whether they were others."""
        mine = self.application_id
        if mine is None:
            return False
        known: object = await self.http.get_global_commands(mine)
        if shapes(cast("list[object]", known)) == shapes(commands):
            return False
        await self.http.bulk_upsert_global_commands(mine, cast("Any", commands))
        return True

    async def respond(self, interaction: str, token: str, answer: Json) -> None:
        """Answer the choice of a command; within three seconds."""
        path = "/interactions/{interaction_id}/{interaction_token}/callback"
        route = Route("POST", path, interaction_id=interaction, interaction_token=token)
        await self.http.request(route, json=answer)

    async def amend(
        self, token: str, message: Json, file: FileToSend | None = None
    ) -> str:
        """Say what the first answer to a command is; within 15 minutes."""
        route = self._first_answer("PATCH", token)
        answer = await self._tell(route, message, file)
        return text(table(answer).get("id"))

    async def withdraw(self, token: str) -> None:
        """Take the first answer to a command away."""
        await self.http.request(self._first_answer("DELETE", token))

    def _first_answer(self, method: str, token: str) -> Route:
        return Route(
            method,
            "/webhooks/{application_id}/{webhook_token}/messages/@original",
            application_id=self.application_id or 0,
            webhook_token=token,
        )


def whole_id(known: str) -> int:
    """Read an id.

    Raises:
        RefusedError: it is none of Discord's.
    """
    found = number(known)
    if not found:
        raise RefusedError(f"{known!r} is no id of Discord's")
    return found


UNAUTHORIZED, FORBIDDEN, TOO_MANY, SERVER_FAULT = 401, 403, 429, 500

# Source: discord.py takes a 429 without a `Via` header for a ban by Cloudflare, which
# Discord gives for 10 minutes after 10,000 invalid requests.
BANNED_FOR = 600.0
"""Seconds."""

# Source: developers' reference, "JSON Error Codes".
CURES = {
    50001: "let the bot see that channel",
    50007: "they block the bot, or share no server with it that lets it write to them",
    50013: "give the bot Send Messages, and in threads Send Messages in Threads, there",
}
"""What an operator can do about a refusal, by its code."""

FAULTS = (
    discord.DiscordException,
    aiohttp.ClientError,
    BridgeError,
    ArithmeticError,
    AssertionError,
    AttributeError,
    LookupError,
    OSError,
    RuntimeError,
    TimeoutError,
    TypeError,
    ValueError,
)
"""What discord.py raises: its own errors, those of the network, and whatever an answer
that it does not understand makes of its code."""

NOT_ASKED = (aiohttp.ClientConnectorError, ConnectionRefusedError, BridgeError)

CLOSE_CODES = {
    4004: "the token is not taken (4004): make a new one in the developer portal (Bot,"
    " Reset Token)",
    4010: "an invalid shard was named (4010)",
    4011: "the bot is in so many servers that it must be sharded (4011), which"
    " Callboard does not do",
    4012: "Discord no longer speaks this version of its gateway (4012): upgrade"
    " discord.py",
    4013: "an intent was asked for that does not exist (4013): upgrade discord.py",
    4014: "an intent was asked for that the bot may not have (4014): switch on Message"
    " Content Intent in the developer portal (Bot), or set message_content = false",
}
"""Source: developers' reference, "Gateway Close Event Codes": those after which nobody
may connect again."""


def read_error(error: Exception) -> PlatformError:
    """Say what an error of discord.py, or of what is beneath it, means."""
    if isinstance(error, PlatformError):
        return error
    if isinstance(error, discord.DiscordException):
        return read_library(error)
    return BusyError(told(error)) if isinstance(error, NOT_ASKED) else lost(error)


def read_library(error: discord.DiscordException) -> PlatformError:
    """Say what one of discord.py's own errors means."""
    match error:
        case discord.RateLimited():
            return BusyError("too many requests", error.retry_after)
        case discord.PrivilegedIntentsRequired():
            return ShutOutError(CLOSE_CODES[4014])
        case discord.LoginFailure():
            return ShutOutError(CLOSE_CODES[4004].replace(" (4004)", ""))
        case discord.ConnectionClosed() if error.code in CLOSE_CODES:
            return ShutOutError(CLOSE_CODES[error.code])
        case discord.HTTPException():
            return read_refusal(error)
        case _:
            return lost(error)


def lost(error: Exception) -> LostError:
    """Say that nobody knows what became of a request."""
    return LostError(told(error))


def read_refusal(error: discord.HTTPException) -> PlatformError:
    """Return the error that an answer other than 2xx means."""
    words = " ".join(error.text.split())[:LONGEST_QUOTE]
    said = f"HTTP {error.status}, {error.code}" + (f": {words}" if words else "")
    if error.status == UNAUTHORIZED:
        return ShutOutError(f"the token is not taken ({said})")
    if error.status == TOO_MANY:
        return BusyError(f"no more requests are taken ({said})", BANNED_FOR)
    if error.status >= SERVER_FAULT:
        # Why busy: messages carry a nonce, all else may be done twice.
        return BusyError(said)
    cure = CURES.get(error.code, "")
    said = f"{said} ({cure})" if cure else said
    return RefusedError(said, str(error.code), error.status)


def told(error: BaseException) -> str:
    """Describe an error; some errors have no words."""
    words = " ".join(str(error).split())[:LONGEST_QUOTE]
    return f"{type(error).__name__}: {words}" if words else type(error).__name__


T = TypeVar("T")

LEAVE_WITHIN = 3.0
"""Seconds that the gateway may take to say goodbye."""


class DiscordAccount(AgentAccount):
    """The bot of one agent, whether it runs or not.

    Args:
        timeout: seconds a request may take.
    """

    kind = "bot"

    def __init__(
        self, agent: str, config: DiscordAccountConfig, bridge: Bridge, timeout: float
    ) -> None:
        super().__init__(agent, "Discord")
        self.typing = BackgroundTyping(self.show_typing, EventLog("discord"), agent)
        self.user = ""
        """Its own id; empty before it was ever let in."""

        self.bot: DiscordClient | None = None
        """What runs now."""

        self.settled = trio.Event()
        """Set once it is known whether, and as whom, it is let in."""

        token = config.token
        self._token = token.reveal().strip() if token is not None else ""
        self._bridge = bridge
        self._timeout = timeout

    async def run(self, bot: DiscordClient) -> None:
        """Follow the gateway until cancelled or until it ends.

        Raises:
            ShutOutError: it is not let in.
            PlatformError: anything else; a new bot may have more luck.
        """
        self.bot = bot
        try:
            await self._bridge.call(bot.run_on_edge, self._token)
        except FAULTS as error:
            raise read_error(error) from error
        finally:
            self.bot = None
            await self._end(bot)

    async def _end(self, bot: DiscordClient) -> None:
        """Close a bot's connections, whatever happens meanwhile."""
        with trio.CancelScope(shield=True), suppress(*FAULTS):
            with trio.move_on_after(LEAVE_WITHIN):
                await self._bridge.call(bot.end_on_edge)
                return
            with trio.move_on_after(LEAVE_WITHIN):
                await self._bridge.call(bot.cut_on_edge)

    async def ask(
        self, do: Callable[[DiscordClient], Awaitable[T]], size: int = 0
    ) -> T:
        """Run a request of the bot on the asyncio loop.

        Args:
            size: bytes of the file that goes with it.

        Raises:
            BusyError: not now.
            LostError: nobody knows whether it was done.
            RefusedError: never.
            ShutOutError: it is not let in.
        """
        bot = self.bot
        if bot is None:
            raise BusyError(self.refused or "the bot does not run now")
        within = seconds_for(size, self._timeout)
        with trio.move_on_after(within):
            try:
                return await self._bridge.call(do, bot)
            except FAULTS as error:
                raise read_error(error) from error
        raise LostError(f"not done after {within:g} s")

    async def show_typing(self, channel: str, **_: object) -> None:
        """Show for some seconds that it is writing; raises as `ask`."""
        with trio.move_on_after(TYPING_TIMEOUT):
            await self.ask(lambda bot: bot.show_typing(channel))
