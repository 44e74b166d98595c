"""What a slash command is answered from, and what its answer can be."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import msgspec

from actors.journal.history import Conversation
from actors.messages.busy_policies import BusyPolicy, Chosen
from actors.messages.progress import Pace
from runtime.actor.ref import UNANSWERED
from runtime.errors import KernelError
from runtime.telemetry.logs import EventLog

if TYPE_CHECKING:
    from actors.agents.persona import Persona
    from actors.messages.inbound import Inbound
    from actors.people.identity import Person
    from actors.rules.text.translations import Translate
    from actors.services import Services
    from runtime.actor.actor import Actor

LOG = EventLog("desk")

# Chosen: the conversation waits for it.
ANSWER_WITHIN = 3.0
"""Seconds that looking something up for a command may take."""

SLOW = "I could not look that up in time. Please try again in a moment."

ResetReason = Literal["new", "clear", "forget"]


class ConversationStatus(msgspec.Struct, frozen=True):
    """The state of a conversation that only its session knows."""

    stream: str
    """Its key."""

    counted: Conversation = Conversation()
    waiting: int = 0
    is_busy: bool = False
    policy: BusyPolicy = "serial"
    """What is done with messages that come meanwhile."""

    usual: BusyPolicy = "serial"
    """What the settings say of that."""

    chosen: Chosen = ""
    """What people chose there."""

    pace: Pace = "running"
    """How the running turn gets on."""


class CommandReply(msgspec.Struct, frozen=True):
    """The answer to a slash command, and what the session is to do besides."""

    text: str
    """Reply to the person who gave the command; empty for none."""

    reset: ResetReason | None = None
    """Whether the conversation is to begin anew, and why: `new` and `clear` after what
    matters was noted down, `forget` just so."""

    policy: Chosen = ""
    """What is to be done there with messages that come meanwhile, if that changes."""


class Unanswered(Exception):  # noqa: N818  no mistake of anybody
    """An actor that was asked did not answer in time."""


@dataclass(frozen=True)
class CommandRequest:
    """One slash command, with everything that may answer it."""

    word: str
    rest: str
    inbound: Inbound
    standing: ConversationStatus
    person: Person
    say: Translate
    persona: Persona
    services: Services
    actor: Actor

    @property
    def is_owner(self) -> bool:
        """Whether it is one of those who run this company."""
        return self.account in self.services.approvers

    @property
    def account(self) -> str:
        """Whose command it is, as `connector/sender_id`."""
        return f"{self.inbound.address.connector}/{self.inbound.sender_id}"

    async def ask(self, name: str, message: object) -> object:
        """Ask an actor that knows.

        Raises:
            Unanswered: it did not answer in time, or could not.
        """
        ref = self.actor.find(name)
        if ref is None:
            raise Unanswered
        try:
            return await ref.ask(message, timeout=ANSWER_WITHIN)
        except (*UNANSWERED, KernelError) as error:
            LOG.warning("command not answered", word=self.word, why=str(error))
            raise Unanswered from error
