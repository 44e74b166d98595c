"""Chooses whose app sends, edits or reacts, and finds messages that it sent before."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import trio

from actors.errors import DeliveryRefusedError
from connectors.chat.accounts import prefixed, ready_accounts
from connectors.chat.errors import BusyError, RefusedError, translated
from connectors.chat.lenient_json import Json, tables, text
from connectors.chat.slack.backfill import next_cursor
from connectors.chat.slack.content import delivery_id, mrkdwn
from connectors.chat.slack.events import at, is_ts, made_at, message_id, taken_apart

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from actors.messages.deliveries import Delivery, Edit, Reaction
    from connectors.chat.slack.account import SlackAccount


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

    Args:
        delivery: which.
        account: by whose app.
        is_it: tells whether a message is the delivery.

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
