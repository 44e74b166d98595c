"""Asks a model whether the agent is to do something by itself.

It is one call to a cheap model, without tools and without the conversation; it is
repeated only if the answer cannot be read. People see nothing of it.
"""

from __future__ import annotations

import msgspec
import trio

from actors.agents.persona import Persona
from actors.journal.plan import AgentPlan, Carried
from actors.messages.inbound import TranscriptLine
from actors.messages.usage import total
from actors.protocol import Failed, Finished, StartTurn
from actors.schedule import decisions as decision
from actors.services import Services
from actors.turn import machine as turn
from actors.turn.limits import TokenAllowance
from actors.turn.machine import as_failed
from actors.turn.round import ModelRounds
from runtime.telemetry.logs import EventLog, Quoted

LOG = EventLog("autonomous")

PLANNER_TRIES = 3
"""Times a planner is asked until it gives a decision that can be read."""

TIMED_OUT = (
    "⚠️ I could not decide in time whether there is anything to do. I will look again at"
    " the next occasion."
)
UNREADABLE = (
    "⚠️ I could not decide whether there is anything to do: {count} answers of the"
    " model were no decision. The last: {why}. If that goes on, whoever runs me should"
    " set another model as autonomous.planner."
)


class Planner:
    """Asks the planner model for a decision.

    Args:
        persona: who decides; its model is the planner's.
    """

    def __init__(
        self,
        start: StartTurn,
        persona: Persona,
        services: Services,
        asking: ModelRounds,
    ) -> None:
        self._start = start
        self._persona = persona
        self._services = services
        self._asking = asking
        self._allowance = TokenAllowance(start.inbound.tokens)
        self._rounds = 0

    async def run(self, ends_at: float) -> Finished | Failed:
        """Decide in time; count the cost in any case.

        Args:
            ends_at: the time limit, in `trio.current_time()` seconds.
        """
        outcome: Finished | Failed = Failed(TIMED_OUT, "timeout", "timeout")
        with trio.move_on_at(ends_at):
            outcome = await self._decide()
        word = "idle"
        if isinstance(outcome, Failed):
            word = "failed"
        elif outcome.carried.plan:
            word = "acts"
        self._services.metrics.decisions.add(1, self._persona.name, word)
        spent = self._asking.spent
        if isinstance(outcome, Failed):
            outcome = msgspec.structs.replace(outcome, asked=self._asking.asked)
        return msgspec.structs.replace(
            outcome, usage=total(spent), rounds=self._rounds, spent=spent
        )

    @property
    def _left(self) -> int:
        """Tokens left for carrying out the plan; 0: no limit."""
        allowance = self._allowance
        return max(1, allowance.most - allowance.taken) if allowance.most else 0

    async def _decide(self) -> Finished | Failed:
        question = decision.ask(self._persona.abilities)
        lines: tuple[TranscriptLine, ...] = (TranscriptLine("user", question),)
        why = ""
        for _ in range(PLANNER_TRIES):
            if self._allowance.is_over:
                return as_failed(turn.Fail(self._allowance.used_up, "allowance"))
            said = await self._asking.ask(lines, ())
            if isinstance(said, turn.ModelFailed):
                return as_failed(turn.fail(said))
            self._rounds += 1
            self._allowance.take(said.usage)
            found = decision.read(said.text)
            if isinstance(found, decision.PlannerDecision):
                return self._decided(found)
            self._log(found)
            why = found.why
            shown = said.text[: decision.MOST_SHOWN] or "(nothing)"
            again = TranscriptLine("user", decision.again(found))
            lines = (*lines, TranscriptLine("assistant", shown), again)
        text = UNREADABLE.format(count=PLANNER_TRIES, why=why)
        return Failed(text, "undecided")

    def _decided(self, found: decision.PlannerDecision) -> Finished:
        LOG.info(
            "decided to act" if found.should_act else "decided not to act",
            agent=self._persona.name,
            correlation_id=self._start.inbound.correlation_id,
            why=Quoted(found.reasoning),
        )
        if not found.should_act:
            return Finished("")
        plan = AgentPlan(decision.carry_out(found), self._left)
        return Finished("", carried=Carried(plan=plan))

    def _log(self, found: decision.UnreadableDecision) -> None:
        LOG.warning(
            "decision cannot be read",
            agent=self._persona.name,
            correlation_id=self._start.inbound.correlation_id,
            why=Quoted(found.why),
        )
