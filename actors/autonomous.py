"""Has an agent decide whether it does anything by itself (F300).

One call to a cheap model, without tools and without the conversation; more only if the
answer cannot be read. Nobody sees what is said here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
import trio

from actors.carried import Carried, Plan
from actors.failures import as_failed
from actors.ledger import total
from actors.messages import Line
from actors.protocol import Failed, Finished
from actors.rules import decision, turn
from actors.rules.allowance import Allowance
from runtime.logs import EventLog, Quoted

if TYPE_CHECKING:
    from actors.asking import Asking
    from actors.persona import Persona
    from actors.protocol import StartTurn
    from actors.services import Services

LOG = EventLog("autonomous")

TIMED_OUT = "⚠️ I could not decide in time whether there is anything to do."
UNREADABLE = (
    "⚠️ I could not decide whether there is anything to do: {count} answers of the"
    " model were no decision. The last: {why}."
)


class Planner:
    """Asks the planner.

    Args:
        start: the slot in which it is asked.
        persona: who decides; its model is the planner's.
        services: counts.
        asking: asks the model.
    """

    def __init__(
        self, start: StartTurn, persona: Persona, services: Services, asking: Asking
    ) -> None:
        self._start = start
        self._persona = persona
        self._services = services
        self._asking = asking
        self._allowance = Allowance(start.inbound.tokens)
        self._rounds = 0

    async def run(self, ends_at: float) -> Finished | Failed:
        """Decide within the time there is; count what it took in any case.

        Args:
            ends_at: when it must be over, on trio's clock.
        """
        outcome: Finished | Failed = Failed(TIMED_OUT, "timeout", "timeout")
        with trio.move_on_at(ends_at):
            outcome = await self._decide()
        word = "idle"
        if isinstance(outcome, Failed):
            word = "failed"
        elif outcome.carried.plan:
            word = "acts"
        self._services.metrics.decision(self._persona.name, word)
        spent = self._asking.spent
        if isinstance(outcome, Failed):
            outcome = msgspec.structs.replace(outcome, asked=self._asking.asked)
        return msgspec.structs.replace(
            outcome, usage=total(spent), rounds=self._rounds, spent=spent
        )

    @property
    def _left(self) -> int:
        """Tokens that carrying out may take; 0: no limit."""
        allowance = self._allowance
        return max(1, allowance.most - allowance.taken) if allowance.most else 0

    async def _decide(self) -> Finished | Failed:
        own = self._persona.config.autonomous
        question = decision.ask(self._persona.abilities)
        lines: tuple[Line, ...] = (Line("user", question),)
        why = ""
        for _ in range(own.planner_retries + 1):
            if self._allowance.is_over:
                return as_failed(turn.Fail(self._allowance.used_up, "allowance"))
            said = await self._asking.ask(lines, ())
            if isinstance(said, turn.ModelFailed):
                return as_failed(turn.fail(said))
            self._rounds += 1
            self._allowance.take(said.usage)
            found = decision.read(said.text)
            if isinstance(found, decision.Decision):
                return self._decided(found)
            self._log(found)
            why = found.why
            shown = said.text[: decision.MOST_SHOWN] or "(nothing)"
            again = Line("user", decision.again(found))
            lines = (*lines, Line("assistant", shown), again)
        text = UNREADABLE.format(count=own.planner_retries + 1, why=why)
        return Failed(text, "undecided")

    def _decided(self, found: decision.Decision) -> Finished:
        LOG.info(
            "decided to act" if found.should_act else "decided not to act",
            agent=self._persona.name,
            correlation_id=self._start.inbound.correlation_id,
            why=Quoted(found.reasoning),
        )
        if not found.should_act:
            return Finished("")
        plan = Plan(decision.carry_out(found), self._left)
        return Finished("", carried=Carried(plan=plan))

    def _log(self, found: decision.Unreadable) -> None:
        LOG.warning(
            "decision cannot be read",
            agent=self._persona.name,
            correlation_id=self._start.inbound.correlation_id,
            why=Quoted(found.why),
        )
