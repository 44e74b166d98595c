"""What the apps show beside messages: edits, and signs at what people wrote."""

from __future__ import annotations

from typing import TYPE_CHECKING

import trio

from actors.errors import DeliveryRefusedError
from connectors.chat.faults import RefusedError, translated
from connectors.chat.slack.content import mrkdwn
from connectors.chat.slack.emoji import name_of
from connectors.chat.slack.moments import taken_apart
from connectors.chat.slack.speaking import prefixed

if TYPE_CHECKING:
    from actors.deliveries import Edit, Reaction
    from connectors.chat.slack.account import SlackAccount
    from connectors.chat.slack.speaking import Speakers

HARMLESS = frozenset({"already_reacted", "no_reaction", "message_not_found"})
"""Refusals of signs that change nothing: it is there, or is not, or nothing is."""


class SlackPresence:
    """What the apps show beside messages.

    Args:
        speakers: the apps.
    """

    def __init__(self, speakers: Speakers) -> None:
        self._speakers = speakers

    async def edit(self, edit: Edit) -> None:
        """Let a message read otherwise; see the port."""
        channel, ts = taken_apart(edit.receipt)
        if not ts:
            raise DeliveryRefusedError(f"{edit.receipt!r} is no message of Slack's")
        account = self._speakers.choose(edit.agent, channel)
        body: dict[str, object] = {"channel": channel, "ts": ts}
        with translated():
            if edit.text:
                body["text"] = mrkdwn(prefixed(edit.text, edit.agent, account))
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
        account = self._speakers.choose(reaction.agent, channel)
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
