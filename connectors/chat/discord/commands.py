"""The runtime's own commands, as Discord offers them, and what somebody chose of them.

A chosen command is submitted first; then Discord gets an answer.

Source: developers' reference, "Application Commands".
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import trio

from actors.commands.registry import COMMANDS
from actors.errors import ChatError
from actors.rules.text.limits import RecentMap
from connectors.chat.discord.events import DiscordMessage, Invoked, command_of
from connectors.chat.discord.inbound import DiscordSubmitter, MessageInScene
from connectors.chat.errors import PlatformError
from connectors.chat.lenient_json import Json, text
from runtime.errors import KernelError
from runtime.telemetry.logs import EventLog

if TYPE_CHECKING:
    from actors.messages.inbound import Inbound
    from actors.transport import Ingress
    from connectors.chat.discord.account import DiscordAccount
    from connectors.chat.discord.shared import DiscordShared

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
        channel: where it was made.
        agent: whose command it is.
        correlation_id: of what it led to.
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
            delivery: its id.
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


LOG = EventLog("discord")

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
