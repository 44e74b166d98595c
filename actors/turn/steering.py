"""Messages that people send while a turn runs, put between its rounds.

The turn fetches them before it calls its model again, and records each with its steps.
A turn that is resumed after a crash finds them in their place.
"""

from __future__ import annotations

import msgspec

from actors.agents.persona import Persona
from actors.messages import busy_policies
from actors.messages.inbound import Inbound, TranscriptLine
from actors.protocol import StartTurn
from actors.rules.prompt.untrusted import hear, sender_of
from actors.turn import machine as rules
from actors.turn.request import hearing_of
from runtime.actor.ref import UNANSWERED
from runtime.errors import KernelError
from runtime.telemetry.logs import EventLog

LOG = EventLog("turn")

# Chosen: the session answers at once, unless it reads from a slow disk just then.
ANSWERED_WITHIN = 5.0
"""Seconds until the turn goes on without them; they are answered after it."""


class FetchSteering(msgspec.Struct, frozen=True):
    """To a session, asked by a turn before a further round: which messages came?

    The answer is a tuple of `Inbound`: all messages that were put into the turn, those
    of earlier answers included.
    """

    turn_id: str


class Steering(msgspec.Struct, eq=False):
    """The messages that were put into one turn.

    Args:
        start: the turn, with the messages that were put into an earlier attempt.
        persona: whose turn it is; says how people's words are quoted.
    """

    _start: StartTurn
    _persona: Persona
    joined: list[str] = msgspec.field(default_factory=list)
    """Ids of the messages that the model has read, or reads next."""

    async def fetch(self, *, is_first: bool) -> tuple[rules.MessageInjected, ...]:
        """Give the messages to put in before the next round.

        Args:
            is_first: whether the model was not called before.
        """
        start = self._start
        given = start.injected
        if start.is_steered and not is_first:
            try:
                given = await start.session.ask(
                    FetchSteering(start.turn_id), timeout=ANSWERED_WITHIN
                )
            except (*UNANSWERED, KernelError) as error:
                LOG.warning("not asked what came meanwhile", why=str(error))
        new = [each for each in given if each.id not in self.joined]
        return tuple(map(self._read, new))

    def _read(self, inbound: Inbound) -> rules.MessageInjected:
        said = TranscriptLine(
            "user", inbound.text, name=sender_of(inbound, self._persona.everybody)
        )
        (line,) = hear((said,), hearing_of(inbound, self._persona))
        text = busy_policies.meanwhile(line.name, line.text)
        return rules.MessageInjected(
            inbound.id, inbound.platform_id, text, line.name, inbound.others
        )
