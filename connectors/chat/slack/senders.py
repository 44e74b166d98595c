"""Chooses whose app sends, edits or reacts, and finds messages that it sent before.

Also files that come with messages or that agents send, and `SlackShared`: what all apps
of one workspace share, metrics, settings, and caches.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Literal

import trio

from actors.errors import DeliveryRefusedError
from actors.messages.inbound import Attachment, Quoted, SentFile
from actors.rules.text.limits import RecentMap
from connectors.chat.accounts import (
    Family,
    PlatformCounters,
    PlatformMetrics,
    prefixed,
    ready_accounts,
)
from connectors.chat.requests import (
    BusyError,
    Json,
    LostError,
    PlatformError,
    RefusedError,
    ask_for_file,
    table,
    tables,
    text,
    translated,
)
from connectors.chat.slack.events import (
    Ours,
    Reason,
    SlackFile,
    at,
    is_ts,
    made_at,
    message_id,
    next_cursor,
    taken_apart,
)
from connectors.chat.slack.markup import delivery_id, mrkdwn, shared
from connectors.files.blobs import BlobFolder, bytes_of
from runtime.telemetry.logs import EventLog

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping
    from pathlib import Path

    from actors.messages.deliveries import Delivery, Edit, Reaction
    from connectors.chat.accounts import Bookmarks
    from connectors.chat.inbound import SeenMessages
    from connectors.chat.platforms import Gates
    from connectors.chat.slack.account import SlackAccount, SlackWire
    from connectors.chat.slack.inbound import SlackPeople
    from connectors.chat.slack.platform import SlackConfig
    from runtime.clock import Clock
    from runtime.ids import IdSource


# Chosen: an app that is in more hears them all; it only does not know of others there.
MOST_CHANNELS = 20_000


class SlackChannels:
    """The channels that each agent's app is in."""

    def __init__(self, agents: Iterable[str]) -> None:
        self._rooms: dict[str, set[str]] = {each: set() for each in agents}

    def note(self, agent: str, channel: str) -> None:
        """Note that an agent's app is in a channel."""
        known = self._rooms[agent]
        if len(known) < MOST_CHANNELS:
            known.add(channel)

    def note_all(self, agent: str, channels: Iterable[str]) -> None:
        """Note all channels that an agent's app is in."""
        self._rooms[agent].clear()
        for channel in channels:
            self.note(agent, channel)

    def note_left(self, agent: str, channel: str) -> None:
        """Note that an agent's app is no longer in a channel."""
        self._rooms[agent].discard(channel)

    def present(self, channel: str) -> tuple[str, ...]:
        """Return the agents whose apps are in a channel, as far as is known."""
        return tuple(agent for agent, known in self._rooms.items() if channel in known)


class SlackSenders:
    """Chooses which app sends."""

    def __init__(
        self, accounts: Mapping[str, SlackAccount], rooms: SlackChannels
    ) -> None:
        self._accounts = accounts
        self._rooms = rooms

    def choose(self, agent: str, channel: str) -> SlackAccount:
        """Find the app that speaks for an agent in a channel.

        Its own if it is there, or nobody knows who is; else, and for the runtime's own
        words, the first of the settings that is: always the same one.

        Raises:
            DeliveryBusyError: none listens now.
        """
        ready = ready_accounts(self._accounts, agent)
        present = self._rooms.present(channel)
        return next((each for each in ready if each.agent in present), ready[0])


PAGE = 200

MOST_PAGES = 20
"""Pages that are looked through; beyond, nobody knows."""

# Chosen: what Slack's clock and ours may differ by, and more.
MARGIN = 300.0
"""Seconds before a delivery was made from which it is looked for."""


def bears(delivery: Delivery, shown: Json) -> bool:
    """Return whether a message bears the mark of a delivery."""
    return delivery_id(shown) == delivery.id


async def find(
    delivery: Delivery, account: SlackAccount, is_it: Callable[[Json], bool]
) -> str | None:
    """Look for a delivery in its channel, or in its thread.

    Returns:
        Its receipt, or None if it was not said.

    Raises:
        BusyError: so much was said since that nobody knows yet.
        PlatformError: it cannot be looked for.
    """
    channel, thread = delivery.address.chat, delivery.address.thread
    made = made_at(delivery.id)
    body: Json = {
        "channel": channel,
        "limit": PAGE,
        "include_all_metadata": True,
        "oldest": at(made - MARGIN) if made else "0",
    }
    method = "conversations.history"
    if is_ts(thread):
        method, body = "conversations.replies", {**body, "ts": thread}
    for _ in range(MOST_PAGES):
        answer = await account.ask(method, dict(body))
        for each in tables(answer.get("messages")):
            if is_it(each):
                return message_id(channel, text(each.get("ts")))
        cursor = next_cursor(answer)
        if not cursor:
            return None
        body["cursor"] = cursor
    raise BusyError(f"more than {PAGE * MOST_PAGES} messages were said since then")


NAMES: dict[str, str] = {
    "👀": "eyes",
    "✅": "white_check_mark",
    "☑": "ballot_box_with_check",
    "✔": "heavy_check_mark",
    "⚠": "warning",
    "❌": "x",
    "⛔": "no_entry",
    "🚫": "no_entry_sign",
    "⏳": "hourglass_flowing_sand",
    "⌛": "hourglass",
    "⏰": "alarm_clock",
    "🕐": "clock1",
    "🤔": "thinking_face",
    "💭": "thought_balloon",
    "💬": "speech_balloon",
    "✍": "writing_hand",
    "📝": "memo",
    "👍": "+1",
    "👎": "-1",
    "👌": "ok_hand",
    "👋": "wave",
    "🙏": "pray",
    "👏": "clap",
    "💯": "100",
    "🔥": "fire",
    "🎉": "tada",
    "🚀": "rocket",
    "❤": "heart",
    "😀": "grinning",
    "🙂": "slightly_smiling_face",
    "😕": "confused",
    "😢": "cry",
    "🤖": "robot_face",
    "🔄": "arrows_counterclockwise",
    "🔧": "wrench",
    "⚙": "gear",
    "🆗": "ok",
    "❓": "question",
    "❗": "exclamation",
    "🛑": "octagonal_sign",
    "🟢": "large_green_circle",
    "🔴": "red_circle",
    "⭐": "star",
    "✨": "sparkles",
}

NAMED = re.compile(r":([a-z0-9_'+-]{1,100}):")


def name_of(sign: str) -> str:
    """Return the name of a sign; empty if it is not known here.

    One that is written by its name, as `:party_parrot:`, is taken by its word.
    """
    named = NAMED.fullmatch(sign)
    if named is not None:
        return named[1]
    return NAMES.get(sign.replace("\ufe0f", ""), "")


HARMLESS = frozenset({"already_reacted", "no_reaction", "message_not_found"})
"""Refusals of signs that change nothing: it is there, or is not, or nothing is."""


class SlackPresence:
    """Edits and reactions by the apps."""

    def __init__(self, senders: SlackSenders, shown: Callable[[str], str]) -> None:
        self._name = shown
        self._senders = senders

    async def edit(self, edit: Edit) -> None:
        """Change the text of a message; see the port."""
        channel, ts = taken_apart(edit.receipt)
        if not ts:
            raise DeliveryRefusedError(f"{edit.receipt!r} is no message of Slack's")
        account = self._senders.choose(edit.agent, channel)
        body: dict[str, object] = {"channel": channel, "ts": ts}
        with translated():
            if edit.text:
                body["text"] = mrkdwn(prefixed(edit, account.agent, self._name))
                body["link_names"] = False
                body["blocks"] = []  # buttons go with the question they were for
                await account.ask("chat.update", body)
            else:
                await take_away(account, body)

    async def react(self, reaction: Reaction) -> None:
        """Put a sign at a message, in the place of an earlier one; see the port."""
        channel, ts = taken_apart(reaction.message)
        if not ts:  # a slash command is no message that could have one
            await trio.lowlevel.checkpoint()
            return
        account = self._senders.choose(reaction.agent, channel)
        body = {"channel": channel, "timestamp": ts}
        with translated():
            if reaction.sign:
                await sign(account, "reactions.add", body, reaction.sign)
            if reaction.instead_of and reaction.instead_of != reaction.sign:
                await sign(account, "reactions.remove", body, reaction.instead_of)


async def take_away(account: SlackAccount, body: dict[str, object]) -> None:
    """Take a message of ours away; one that is gone is no error."""
    try:
        await account.ask("chat.delete", body)
    except RefusedError as error:
        if error.code != "message_not_found":
            raise


async def sign(
    account: SlackAccount, method: str, body: dict[str, str], wanted: str
) -> None:
    """Put a sign, or take it away.

    Raises:
        DeliveryRefusedError: it has no name at Slack.
        PlatformError: it was not done.
    """
    name = name_of(wanted)
    if not name:
        text = f"{wanted!r} has no name at Slack; write it as :name: in [presence]"
        raise DeliveryRefusedError(text)
    try:
        await account.ask(method, {**body, "name": name})
    except RefusedError as error:
        if error.code not in HARMLESS:
            raise


async def fetch_file(
    file: SlackFile, account: SlackAccount, most: int
) -> tuple[Attachment | None, str]:
    """Fetch a file; a server that has too much to do is asked again for a while.

    Args:
        most: bytes.

    Returns:
        The attachment, or why there is none.
    """
    if not file.url:
        return None, "Slack does not have it"
    if file.size > most:
        return None, f"it is above {most} bytes"
    try:
        content, media_type = await ask_for_file(partial(account.fetch, file.url, most))
    except PlatformError as error:
        return None, str(error)
    if media_type == "text/html" and file.media_type != "text/html":
        # Why: without the scope, Slack answers with the page of its login.
        return None, "the app may not: give it the scope files:read"
    return file.attached(content, media_type), ""


LOG = EventLog("slack")

WAITS = (0.0, 0.5, 1.0, 2.0)
"""Seconds before each time that Slack is asked for the message of a file."""

# Chosen: Slack names no time; people see files within seconds.
SETTLES = 30.0
"""Seconds after which a file that is not in the history was not shared."""

MOST_ASKED = 200
"""Deliveries of which it is remembered when they were to be shared."""


class SlackUploads:
    """Uploads files to one workspace.

    Args:
        blobs: has the bytes; None: nobody has.
    """

    def __init__(self, blobs: BlobFolder | None) -> None:
        self._blobs = blobs
        self._asked: RecentMap[str, float] = RecentMap(MOST_ASKED)

    async def say(
        self, delivery: Delivery, file: SentFile, words: str, account: SlackAccount
    ) -> str:
        """Share a delivery's file in its channel or thread.

        Args:
            words: what is said of it; may be empty.

        Returns:
            The message's id; where Slack does not tell it soon, the file's in its
            place, which no edit and no sign finds.

        Raises:
            DeliveryRefusedError: its bytes are gone.
            PlatformError: `LostError` only if it may have been shared.
        """
        path = bytes_of(self._blobs, file)
        try:
            known = await bring(file, path, account)
        except LostError as error:
            raise BusyError(f"the file was not brought to Slack: {error}") from error
        self._note(delivery.id)
        body = shared(delivery, words, known, file.name)
        await account.ask("files.completeUploadExternal", body)
        channel = delivery.address.chat
        return message_id(channel, await moment(known, channel, account) or known)

    async def find(
        self, delivery: Delivery, account: SlackAccount, others: Collection[str]
    ) -> str | None:
        """Look for a file in its channel or thread.

        One that the same app shared there shortly before, with the same title and
        size, is taken for it, unless it is known to be another: the person has it.

        Raises:
            BusyError: it is not there, and may still come.
            PlatformError: it cannot be looked for.
        """
        is_it = partial(brings, delivery, account, others)
        found = await find(delivery, account, is_it)
        if found is not None:
            return found
        since = self._asked.get(delivery.id)
        if since is None:  # as after a restart
            since = self._note(delivery.id)
        left = since + SETTLES - trio.current_time()
        if left > 0:
            raise BusyError("Slack may still be sharing the file", left)
        return None

    def _note(self, delivery_id: str) -> float:
        now = self._asked[delivery_id] = trio.current_time()
        return now


async def bring(file: SentFile, path: Path, account: SlackAccount) -> str:
    """Bring a file's bytes to Slack, where nobody sees them yet; gives its id there.

    Raises:
        PlatformError: it is not there.
    """
    asked = {"filename": file.name, "length": file.size}
    answer = await account.ask("files.getUploadURLExternal", asked)
    url, known = text(answer.get("upload_url")), text(answer.get("file_id"))
    if not url or not known:
        raise LostError("Slack gave no address for the file")
    await account.put(url, path, file.size)
    return known


async def moment(file: str, channel: str, account: SlackAccount) -> str:
    """Ask for the `ts` of the message that shares a file; empty: not known (yet)."""
    for wait in WAITS:
        await trio.sleep(wait)
        try:
            answer = await account.ask("files.info", {"file": file})
        except PlatformError as error:
            LOG.warning("message of a file not known", file=file, why=str(error))
            return ""
        shares = table(table(answer.get("file")).get("shares"))
        for kind in ("public", "private"):
            for each in tables(table(shares.get(kind)).get(channel)):
                if is_ts(text(each.get("ts"))):
                    return text(each.get("ts"))
    return ""


def brings(
    delivery: Delivery, account: SlackAccount, others: Collection[str], shown: Json
) -> bool:
    """Return whether a message is the one that shares a delivery's file."""
    file, channel = delivery.file, delivery.address.chat
    by_it = account.user == text(shown.get("user"))
    by_it = by_it or account.bot == text(shown.get("bot_id"))
    if file is None or not by_it:
        return False
    names = [text(shown.get("ts"))]
    found = False
    for each in tables(shown.get("files")):
        names.append(text(each.get("id")))
        is_same = text(each.get("title")) == file.name
        found = found or (is_same and each.get("size", file.size) == file.size)
    return found and not any(message_id(channel, name) in others for name in names)


MOST_SAID = 2_000
"""Messages of ours that are remembered, by receipt and by delivery."""

MOST_COMMANDS = 1_000
"""Slash commands of which is remembered where they may be answered."""

LONGEST_QUOTE = 2_000
"""Characters of each."""


class SlackSent:
    """Messages that our apps sent recently."""

    def __init__(self, most: int = MOST_SAID) -> None:
        self._said: RecentMap[str, Quoted] = RecentMap(most)
        self._receipts: RecentMap[str, str] = RecentMap(most)

    def note(self, delivery_id: str, receipt: str, text: str, agent: str) -> None:
        """Remember a message that an agent's app sent."""
        self._receipts[delivery_id] = receipt
        self._said[receipt] = Quoted(text[:LONGEST_QUOTE], agent=agent)

    def receipt_of(self, delivery_id: str) -> str | None:
        """Return the receipt of a delivery; None: it is not known."""
        return self._receipts.get(delivery_id)

    def others(self, delivery_id: str) -> frozenset[str]:
        """Return the receipts of all deliveries but one."""
        known = self._receipts.items()
        return frozenset(receipt for each, receipt in known if each != delivery_id)

    def quote(self, receipt: str) -> Quoted | None:
        """Return what a message of ours said; None: it is none, or is forgotten."""
        return self._said.get(receipt)


Outcome = (
    Reason
    | Literal[
        "handed_in",
        "seen",
        "refused",
        "lost",
        "overflow",
        "gone",
        "media_left_out",
    ]
)
"""The outcomes of events, beside the reasons to skip one. A message was stored
(`handed_in`), refused by the company for good (`refused`), or not storable (`lost`).
`seen`: another app submitted it, or it came again. `overflow`: too many waited, and
Slack sends it again. `gone`: not even the channel's history has it any more. The HTTP
server counts calls with a wrong signature."""

SETTLED_WITHIN = 10.0
"""Seconds that an app waits for the others before it hears anything."""

METRICS = partial(
    PlatformCounters,
    events=Family(
        "callboard_slack_events",
        "What became of what Slack sent, by account (the agent's name).",
        "outcome",
    ),
    heard=Family(
        "callboard_slack_heard_timestamp_seconds",
        "When an app last heard from Slack, in Unix seconds.",
    ),
    up=Family("callboard_slack_up", "1 while an app can hear Slack."),
    reconnects=Family(
        "callboard_slack_reconnects",
        "Connections after the first: asked for by Slack, or after trouble.",
        "why",
    ),
    gaps=Family(
        "callboard_slack_gaps",
        "Gaps in a channel's messages: filled, or left open.",
        "outcome",
    ),
)
"""Registers the metrics of all connectors of this platform."""


@dataclass(frozen=True)
class SlackShared:
    """All that the apps in one workspace share."""

    connector: str
    """The name of the connector, as in the settings."""

    config: SlackConfig
    accounts: Mapping[str, SlackAccount]
    """By agent, in the order of the settings."""

    wire: SlackWire
    rooms: SlackChannels
    people: SlackPeople
    seen: SeenMessages
    bookmarks: Bookmarks
    metrics: PlatformMetrics[Outcome]
    gates: Gates
    clock: Clock
    ids: IdSource
    said: SlackSent = field(default_factory=SlackSent)
    response_urls: RecentMap[str, str] = field(
        default_factory=lambda: RecentMap[str, str](MOST_COMMANDS)
    )
    """By a slash command's id: where it may be answered. Forgotten at a stop; it is
    then answered in the channel."""

    def ours(self) -> Ours:
        """Return by what our own apps are known, as far as they were let in."""
        known = [each for each in self.accounts.values() if each.user]
        return Ours(
            users={each.user: each.agent for each in known},
            bots=frozenset(each.bot for each in known),
        )

    async def wait_all_introduced(self) -> None:
        """Wait a while until all apps have asked who they are.

        What they say themselves is no message.
        """
        with trio.move_on_after(SETTLED_WITHIN):
            for each in self.accounts.values():
                await each.introduced.wait()

    async def wait_all_placed(self) -> None:
        """Wait a while until all apps have asked in which channels they are.

        Who of those that a message calls is there decides who is asked.
        """
        with trio.move_on_after(SETTLED_WITHIN):
            for each in self.accounts.values():
                await each.placed.wait()
