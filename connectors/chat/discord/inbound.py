"""Turns Discord's messages into inbound messages, and submits them with their files.

Nothing is fetched for somebody who may not write: a stranger has us carry nothing.

Discord offers the runtime's own commands. One that somebody chose is submitted first;
then Discord gets an answer. `DiscordShared` is what all bots of one connector share:
metrics, settings, and caches.

Source: developers' reference, "Application Commands".
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Literal

import msgspec
import trio

from actors.commands.registry import COMMANDS
from actors.errors import ChatError
from actors.messages.inbound import Address, Attachment, Inbound, Quoted
from actors.rules.text.limits import RecentMap
from connectors.chat.accounts import Family, PlatformCounters, PlatformMetrics
from connectors.chat.discord import markup
from connectors.chat.discord.client import READY_AFTER, DiscordAccount, DiscordClient
from connectors.chat.discord.events import (
    MOST_EVENTS,
    DiscordMessage,
    DiscordScene,
    Invoked,
    Reason,
    command_of,
    readable,
)
from connectors.chat.discord.senders import ChannelMembers
from connectors.chat.inbound import (
    MOST_IN_ALL,
    NO_ROOM,
    Album,
    Found,
    SeenMessages,
    Submission,
    Trouble,
    left_out,
)
from connectors.chat.requests import (
    Json,
    LinkedAttachment,
    PlatformError,
    fetch_linked,
    text,
)
from runtime.errors import KernelError
from runtime.telemetry.logs import EventLog

if TYPE_CHECKING:
    from collections.abc import Mapping

    from actors.transport import Ingress
    from connectors.asyncio_bridge.bridge import Bridge
    from connectors.chat.discord.listener import DiscordBookmarks
    from connectors.chat.discord.platform import DiscordConfig
    from runtime.clock import Clock
    from runtime.ids import IdSource


LOG = EventLog("discord")

THREADS = frozenset({10, 11, 12})
"""Types of channels. Source: developers' reference, "Channel Types"."""


class MessageInScene(msgspec.Struct, frozen=True):
    """A message, and its channel."""

    said: DiscordMessage
    scene: DiscordScene


class DiscordSubmitter:
    """Submits the messages that one bot hears."""

    def __init__(self, account: DiscordAccount, shared: DiscordShared) -> None:
        self._account = account
        self._shared = shared
        self._submission = Submission(LOG, self._count, self._tell)

    async def submit(self, heard: MessageInScene, ingress: Ingress) -> None:
        """Submit a message, however long that takes."""
        fill = partial(self._filled, heard) if heard.said.all_files else None
        await self._submission.submit(await self.bare(heard), ingress, fill)

    def _count(self, outcome: Outcome) -> None:
        self._shared.metrics.event(self._account.agent, outcome)

    async def _tell(self, inbound: Inbound, words: str, trouble: Trouble) -> None:
        key = f"{trouble}-{inbound.platform_id}"
        message = markup.message(words, key, inbound.platform_id)
        channel = inbound.address.thread or inbound.address.chat
        try:
            await self._account.ask(lambda bot: bot.say(channel, message))
        except PlatformError as error:
            LOG.warning("notice not said", channel=channel, why=str(error))

    async def bare(self, heard: MessageInScene, *, agent: str = "") -> Inbound:
        """Return a message as it came, with nothing fetched.

        Args:
            agent: whom it is for, whatever it says; empty: as it says.
        """
        shared, said, scene = self._shared, heard.said, heard.scene
        ours, is_direct = shared.ours, not said.guild
        named = [ours[each] for each in said.mentions if each in ours]
        mentions = tuple(dict.fromkeys((*named, *scene.called)))
        if is_direct:
            agent, mentions = self._account.agent, ()
        # Whoever is mentioned is there, though its bot may not have heard so yet.
        present = [*scene.present, *mentions]
        return Inbound(
            id=shared.ids.new(),
            platform="discord",
            platform_id=said.id,
            address=await self._address(heard),
            sender_id=said.author,
            sender_name=said.author_name,
            text=readable(said.text, said, scene, ours),
            received_at=shared.clock.wall(),
            is_direct=is_direct,
            agent=agent,
            reply_to=said.reply_to,
            quoted=self._quoted(heard),
            mentions=mentions,
            present=tuple(each for each in shared.accounts if each in present),
            roles=scene.roles,
            is_bot=said.is_bot,
            platform_fields=specifics(heard),
        )

    def _quoted(self, heard: MessageInScene) -> Quoted | None:
        quote, ours = heard.said.quote, self._shared.ours
        if quote is None:
            return None
        said = readable(quote.text, heard.said, heard.scene, ours)
        return Quoted(
            text=said,
            sender_name=quote.author_name,
            agent=ours.get(quote.author, ""),
        )

    async def _address(self, heard: MessageInScene) -> Address:
        channel, members = heard.said.channel, self._shared.members
        members.learn(channel, heard.scene.present)
        parent: str | None = heard.scene.parent
        if not heard.scene.is_known:
            parent = members.parent(channel)
        if parent is None:
            parent = await self._parent_of(channel)
        members.learn_parent(channel, parent)
        if parent:
            return Address(self._shared.connector, parent, channel)
        return Address(self._shared.connector, channel)

    async def _parent_of(self, channel: str) -> str:
        """Ask what a channel belongs to that no bot knows: a thread that was asleep."""
        try:
            found = await self._account.ask(lambda bot: bot.look_at(channel))
        except PlatformError as error:
            LOG.warning("channel not known", channel=channel, why=str(error))
            return ""
        return text(found.get("parent_id")) if found.get("type") in THREADS else ""

    async def _filled(self, heard: MessageInScene, inbound: Inbound) -> Inbound:
        """Fetch what came with a message, all at once."""
        found: dict[int, Attachment] = {}
        notes: dict[int, str] = {}
        album = Album()

        async def fetch(index: int, file: LinkedAttachment) -> None:
            attachment, why = album.settle(file.size, await self._fetch(file))
            if attachment is not None:
                found[index] = attachment
            else:
                notes[index] = self._left_out(heard.said, file, why)

        async with trio.open_nursery() as nursery:
            for index, file in enumerate(heard.said.all_files):
                if album.claim(file.size):
                    nursery.start_soon(fetch, index, file)
                else:
                    notes[index] = self._left_out(heard.said, file, NO_ROOM)
        lines = [inbound.text, *(notes[index] for index in sorted(notes))]
        return msgspec.structs.replace(
            inbound,
            text="\n".join(line for line in lines if line),
            attachments=tuple(found[index] for index in sorted(found)),
        )

    async def _fetch(self, file: LinkedAttachment) -> Found:
        config = self._shared.config
        most = min(config.max_media_bytes, MOST_IN_ALL)
        return await fetch_linked(file, config.files, most, "Discord")

    def _left_out(self, said: DiscordMessage, file: LinkedAttachment, why: str) -> str:
        """Count a file that does not come along; say so in the words."""
        self._count("media_left_out")
        LOG.warning("file not fetched", message=said.id, why=why)
        return left_out(file.kind, file.name, why)


def specifics(heard: MessageInScene) -> dict[str, str]:
    """Return the fields that only Discord has."""
    said, scene = heard.said, heard.scene
    found = {
        "discord_guild_id": said.guild,
        "discord_channel_id": said.channel,
        "guild_name": scene.guild_name,
        "channel_name": scene.name,
        "mentions_everyone": "true" if said.mentions_everyone else "",
    }
    return {name: value for name, value in found.items() if value}


CHAT_INPUT, STRING = 1, 3
IN_SERVERS, WITH_THE_BOT = 0, 1
MOST_CHARS = 100
"""Of a description."""

THINKING, SAY = 5, 4
"""Types of answers: one that is to come, and one that is said now."""

ONLY_TO_THEM = 1 << 6
"""The flag of a message that nobody else sees."""

ANSWERED_WITHIN = 2.0
"""Seconds until a choice is answered by what is known then; Discord gives three."""

LIVES_FOR = 14 * 60.0
"""Seconds in which the first answer may be said; Discord gives fifteen minutes."""


def commands() -> list[Json]:
    """Describe all commands."""
    return [described(word) for word in COMMANDS]


def described(word: str) -> Json:
    """Describe one command; what follows it is one field of text."""
    spec = COMMANDS[word]
    found: Json = {
        "type": CHAT_INPUT,
        "name": word,
        "description": spec.meaning[:MOST_CHARS],
        "contexts": [IN_SERVERS, WITH_THE_BOT],
        "options": [],
    }
    if spec.arguments:
        found["options"] = [
            {
                "type": STRING,
                "name": "text",
                "description": spec.arguments[:MOST_CHARS],
                "required": False,
            }
        ]
    return found


def thinking() -> Json:
    """Say that an answer is to come."""
    return {"type": THINKING}


def refusal(words: str) -> Json:
    """Say to them alone why there is none."""
    said: Json = {
        "content": words,
        "flags": ONLY_TO_THEM,
        "allowed_mentions": {"parse": []},
    }
    return {"type": SAY, "data": said}


MOST_CHOICES = 1_000
"""Choices that are remembered; what is said about older ones is an ordinary message."""


class CommandChoice:
    """One choice of a command.

    Args:
        token: with which its first answer is said; a secret for a quarter of an hour.
        until: trio's time after which its first answer cannot be said any more.
    """

    def __init__(
        self, token: str, channel: str, agent: str, correlation_id: str, until: float
    ) -> None:
        self.token = token
        self.channel = channel
        self.agent = agent
        self.correlation_id = correlation_id
        self.until = until
        self.is_shown = trio.Event()
        """Set once Discord shows that an answer is to come."""

        self.said_by = ""
        """The delivery that is its first answer; empty: none yet."""


class CommandChoices:
    """Recent choices of commands, by Discord's id."""

    def __init__(self, most: int = MOST_CHOICES) -> None:
        self._choices: RecentMap[str, CommandChoice] = RecentMap(most)

    def __contains__(self, known: str) -> bool:
        """Return whether an id is one of a choice."""
        return known in self._choices

    def add(self, known: str, choice: CommandChoice) -> None:
        """Remember a choice."""
        self._choices[known] = choice

    def drop(self, known: str) -> None:
        """Forget a choice."""
        self._choices.pop(known, None)

    def open_to(self, known: str, delivery: str, now: float) -> CommandChoice | None:
        """Return the choice whose first answer a delivery is; None: there is none.

        Args:
            known: what the delivery answers to.
            now: trio's time.
        """
        choice = self._choices.get(known)
        if choice is None or now >= choice.until:
            return None
        return choice if choice.said_by in {"", delivery} else None

    def unanswered(self, correlation_id: str) -> CommandChoice | None:
        """Take out the choice that led to something and got no answer."""
        for known, choice in self._choices.items():
            if choice.correlation_id == correlation_id and not choice.said_by:
                del self._choices[known]
                return choice
        return None


MOST_AT_ONCE = 50
"""Choices that are taken side by side; further ones Discord reports as failed."""

NOT_LET_IN = "You may not write here."
TRY_AGAIN = "Nothing was done; please try again."


class DiscordCommands:
    """Submits the slash commands of one bot, and answers Discord."""

    def __init__(self, account: DiscordAccount, shared: DiscordShared) -> None:
        self._account = account
        self._shared = shared
        self._submitter = DiscordSubmitter(account, shared)
        self._under_way = 0

    async def take(self, invoked: Invoked, ingress: Ingress) -> None:
        """Take a choice; never fails."""
        agent, metrics = self._account.agent, self._shared.metrics
        said = command_of(invoked.interaction)
        if said is None:
            metrics.event(agent, "malformed")
        elif said.id in self._shared.choices:
            metrics.event(agent, "seen")
        elif self._under_way >= MOST_AT_ONCE:
            metrics.event(agent, "overrun")
        else:
            self._under_way += 1
            try:
                token = text(invoked.interaction.get("token"))
                inbound = await self._submitter.bare(
                    MessageInScene(said, invoked.scene), agent=agent
                )
                await self._answer(said, token, inbound, ingress)
            finally:
                self._under_way -= 1

    async def _answer(
        self, said: DiscordMessage, token: str, inbound: Inbound, ingress: Ingress
    ) -> None:
        until = trio.current_time() + LIVES_FOR
        choice = CommandChoice(
            token, said.channel, self._account.agent, inbound.id, until
        )
        # Why before it is stored: its answer may be there before `accept` returns.
        self._shared.choices.add(said.id, choice)
        words = await self._submit(inbound, ingress)
        answer: Json = refusal(words) if words else thinking()
        is_shown = not words
        try:
            await self._account.ask(lambda bot: bot.respond(said.id, token, answer))
        except PlatformError as error:
            LOG.warning("command not answered", choice=said.id, why=str(error))
            is_shown = False
        if not is_shown:
            self._shared.choices.drop(said.id)
            choice.until = 0.0
        choice.is_shown.set()

    async def _submit(self, inbound: Inbound, ingress: Ingress) -> str:
        """Have a command stored.

        Returns:
            Why it is not; empty: it is.
        """
        agent, metrics = self._account.agent, self._shared.metrics
        words = TRY_AGAIN
        with trio.move_on_after(ANSWERED_WITHIN):
            try:
                words = "" if await ingress.accept(inbound) else NOT_LET_IN
            except (ChatError, KernelError) as error:
                LOG.warning(
                    "command not taken", choice=inbound.platform_id, why=str(error)
                )
                words = f"⚠️ {error}. {TRY_AGAIN}"
        metrics.event(agent, "command_refused" if words else "command")
        return words


Outcome = (
    Reason
    | Literal[
        "edit",
        "deleted",
        "handed_in",
        "seen",
        "refused",
        "lost",
        "overrun",
        "command",
        "command_refused",
        "media_left_out",
    ]
)
"""The outcomes of events, beside the reasons to skip a payload. A message was stored
(`handed_in`), refused by the company for good (`refused`), or not storable (`lost`).
`edit`, `deleted`: of an earlier message. `seen`: another bot submitted it. `overrun`:
too many came at once, so that it is fetched later. The rest: commands, files."""

METRICS = partial(
    PlatformCounters,
    events=Family(
        "callboard_discord_events",
        "What became of what Discord sent, by account (the agent's name).",
        "outcome",
    ),
    heard=Family(
        "callboard_discord_heard_timestamp_seconds",
        "When a bot last had something from Discord for us, in Unix seconds.",
    ),
    up=Family("callboard_discord_up", "1 while a bot hears its gateway."),
    reconnects=Family(
        "callboard_discord_reconnects",
        "How often a bot heard its gateway again after trouble.",
    ),
    restarts=Family(
        "callboard_discord_restarts",
        "How often a bot's client had ended and was made anew.",
    ),
    gaps=Family(
        "callboard_discord_gaps",
        "Gaps in a channel's messages: filled, or left open.",
        "outcome",
    ),
)
"""Registers the metrics of all connectors of this platform."""


@dataclass(frozen=True)
class DiscordShared:
    """All that the bots of one connector share."""

    connector: str
    """The name of the connector, as in the settings."""

    config: DiscordConfig
    accounts: Mapping[str, DiscordAccount]
    """By agent, in the order of the settings."""

    bridge: Bridge
    bookmarks: DiscordBookmarks
    metrics: PlatformMetrics[Outcome]
    clock: Clock
    ids: IdSource
    seen: SeenMessages = field(default_factory=SeenMessages)
    members: ChannelMembers = field(default_factory=ChannelMembers)
    choices: CommandChoices = field(default_factory=CommandChoices)
    ready_after: float = READY_AFTER
    """Seconds; see there."""

    most_events: int = MOST_EVENTS
    """See there."""

    bots: dict[str, DiscordClient] = field(default_factory=dict[str, DiscordClient])
    """Those that run, by agent; touched on the edge only."""

    @property
    def ours(self) -> dict[str, str]:
        """Our agents by the ids of their bots, as far as they are known."""
        return {each.user: each.agent for each in self.accounts.values() if each.user}
