"""What the desk is asked, what it tells, and how it looks things up."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import msgspec

from actors.history import Conversation
from actors.rules.busy_policies import BusyPolicy, Chosen
from actors.rules.stuck import Pace
from runtime.errors import KernelError
from runtime.logs import EventLog
from runtime.ref import UNANSWERED

if TYPE_CHECKING:
    from actors.messages import Inbound
    from actors.persona import Persona
    from actors.rules.identity import Person
    from actors.rules.voice import Translate
    from actors.services import Services
    from runtime.actor import Actor

LOG = EventLog("desk")

SLOW = "I could not look that up in time. Please try again in a moment."

ResetReason = Literal["new", "clear", "forget"]


class Standing(msgspec.Struct, frozen=True):
    """How a conversation stands: what only its session knows."""

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


class Told(msgspec.Struct, frozen=True):
    """What comes of a command."""

    text: str
    """For whoever gave it; empty: nothing is said."""

    reset: ResetReason | None = None
    """Whether the conversation is to begin anew, and why: `new` and `clear` after what
    matters was noted down, `forget` just so."""

    policy: Chosen = ""
    """What is to be done there with messages that come meanwhile, if that changes."""


class Unanswered(Exception):  # noqa: N818  no mistake of anybody
    """Whoever knows did not say in time."""


@dataclass(frozen=True)
class Question:
    """One command, and all it may be answered from."""

    word: str
    rest: str
    inbound: Inbound
    standing: Standing
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
            return await ref.ask(message, timeout=self.services.commands.answer_within)
        except (*UNANSWERED, KernelError) as error:
            LOG.warning("command not answered", word=self.word, why=str(error))
            raise Unanswered from error
