"""Words that come while a turn works, put between its rounds (B2).

The turn fetches them itself, before it asks its model once more, and records each with
its steps: resumed after a crash, it finds them again in their place.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from actors.messages import Inbound, Line
from actors.prompting import hearing_of
from actors.rules import merging
from actors.rules import turn as rules
from actors.rules.heard import hear, sender_of
from runtime.errors import KernelError
from runtime.logs import EventLog
from runtime.ref import UNANSWERED

if TYPE_CHECKING:
    from actors.persona import Persona
    from actors.protocol import StartTurn

LOG = EventLog("turn")

# Chosen: the session answers at once, unless it reads from a slow disk just then.
ANSWERED_WITHIN = 5.0
"""Seconds until the turn goes on without; what came is answered after it."""


class AskMeanwhile(msgspec.Struct, frozen=True):
    """To a session, asked by a turn before a further round: what came meanwhile?

    The answer is a tuple of `Inbound`: all that belongs to the turn from now on, also
    what was given before.
    """

    turn_id: str


class Meanwhile:
    """What was put into one turn.

    Args:
        start: which turn, and what an earlier attempt at it was given.
        persona: whose; says how people's words are read.
    """

    __slots__ = ("_persona", "_start", "joined")

    def __init__(self, start: StartTurn, persona: Persona) -> None:
        self._start = start
        self._persona = persona
        self.joined: list[str] = []
        """Ids of what the model has read, or reads next."""

    async def fetch(self, *, is_first: bool) -> tuple[rules.Joined, ...]:
        """Give what is to be put in before the next round.

        Args:
            is_first: whether the model was not asked before.
        """
        start = self._start
        given = start.injected
        if start.is_steered and not is_first:
            try:
                given = await start.session.ask(
                    AskMeanwhile(start.turn_id), timeout=ANSWERED_WITHIN
                )
            except (*UNANSWERED, KernelError) as error:
                LOG.warning("not asked what came meanwhile", why=str(error))
        new = [each for each in given if each.id not in self.joined]
        return tuple(map(self._read, new))

    def _read(self, inbound: Inbound) -> rules.Joined:
        said = Line(
            "user", inbound.text, name=sender_of(inbound, self._persona.everybody)
        )
        (line,) = hear((said,), hearing_of(inbound, self._persona))
        text = merging.meanwhile(line.name, line.text)
        return rules.Joined(
            inbound.id, inbound.platform_id, text, line.name, inbound.others
        )
