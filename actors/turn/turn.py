"""One turn: calls the model and runs the tools it wants, until there is an answer.

`machine.py` decides what happens next; the turn carries its effects out and feeds the
results back as events.

A `Planner` asks a cheap model, without tools and without the conversation, whether the
agent is to do something by itself. People see nothing of it.
"""

from __future__ import annotations

from typing import ClassVar

import msgspec
import trio

from actors import names
from actors.agents.agent import ASK_AGAIN
from actors.agents.persona import Persona
from actors.collaboration.colleagues import Colleagues
from actors.collaboration.tools import tools_of
from actors.delegation.rulings import kept_apart
from actors.hooks.asker import asked_about
from actors.journal.plan import AgentPlan, Carried
from actors.messages.inbound import Inbound, ToolCall, TranscriptLine
from actors.messages.usage import total
from actors.models.classify import progress
from actors.ports import PictureWatch
from actors.protocol import Failed, Finished, RunTurn, StartTurn, TurnEnded
from actors.rules.groups.overheard import OverheardMessage
from actors.rules.markers.descriptions import SPOKEN_TO
from actors.rules.prompt import transcript
from actors.rules.prompt.brief import NO_MEMORIES, Memories
from actors.rules.prompt.tools import DELEGATE, OF_COLLEAGUES
from actors.rules.prompt.transcript import SEND_FILE
from actors.schedule import decisions as decision
from actors.services import Services
from actors.turn import machine as rules
from actors.turn.actions import carry_out
from actors.turn.files import (
    OutgoingFiles,
    ReadQuestion,
    read_attachments,
    watch_pictures,
    with_files,
    with_pictures,
)
from actors.turn.limits import LoopLimits, TokenAllowance
from actors.turn.machine import as_failed
from actors.turn.request import overhear, remind, with_conversation
from actors.turn.round import ModelRounds
from actors.turn.scheduled import is_light, scheduled_persona
from actors.turn.steering import Steering
from actors.turn.steps import StepJournal
from actors.turn.stream import AnswerStream
from actors.turn.tools import ToolCalls
from runtime.actor.actor import Actor
from runtime.errors import StoreError
from runtime.telemetry.logs import EventLog, Quoted

LOG = EventLog("turn")
PLANS = EventLog("autonomous")

PLANNER_TRIES = 3
"""Times a planner is asked until it gives a decision that can be read."""

UNDECIDED = (
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
        outcome: Finished | Failed = Failed(UNDECIDED, "timeout", "timeout")
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
                return as_failed(rules.Fail(self._allowance.used_up, "allowance"))
            said = await self._asking.ask(lines, ())
            if isinstance(said, rules.ModelFailed):
                return as_failed(rules.fail(said))
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
        PLANS.info(
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
        PLANS.warning(
            "decision cannot be read",
            agent=self._persona.name,
            correlation_id=self._start.inbound.correlation_id,
            why=Quoted(found.why),
        )


PLAN_LASTS = 3_600.0
"""Seconds after which a plan that nobody has begun is not carried out any more."""

UNREAD = "⚠️ I could not read what I had done already."
TAKEN_OVER = "⚠️ Another attempt at this took over."

TIMED_OUT = "⚠️ Request timed out. Please try again."

# Said if an earlier attempt may have begun the plan.
EXPIRED = (
    "⚠️ I have not finished what I had decided to do by myself: too much time has passed"
    " since. Ask me for it if it is still wanted."
)
NOT_DONE = "NO_REPLY"
"""The answer to a plan that was not begun in time: silence."""


class Turn(Actor):
    """Answers one question, then ends.

    Takes: `RunTurn`, once.
    Sends: to the session `TurnStreamed` while the model streams, `TurnProgressed`,
        `TurnReported` and `RequestApproval` meanwhile; `TurnEnded` at the end, also to
        its agent.
    Keeps: nothing beyond the turn.
    Fails: on a bug in a model or tool; the agent tells the session.
    Ends: with its answer, or when it is interrupted.
    """

    deadline: ClassVar[float | None] = None  # `turn_timeout` is the deadline

    def __init__(self, persona: Persona, services: Services) -> None:
        super().__init__()
        self._persona = persona
        self._services = services

    async def on_receive(self, message: object) -> None:
        """Run the turn."""
        if not isinstance(message, RunTurn):
            super().on_receive(message)
            return
        start, services = message.start, self._services
        persona = persona_of(self._persona.as_read(message.files), start)
        persona = scheduled_persona(persona, start.inbound)
        began_at = trio.current_time()
        ends_at = began_at + self._seconds(persona, start)
        words = AnswerStream(self, start, services, persona.egress)
        context = TurnMemories(self, persona, services)
        question = ReadQuestion(start)
        with trio.move_on_at(ends_at):
            start = await with_conversation(start, persona, services)
            question = ReadQuestion(start)
            if start.inbound.is_direct and not start.inbound.attachments:
                await context.remind(start)  # all there is to look up: no tasks for it
            else:
                async with trio.open_nursery() as nursery:
                    nursery.start_soon(context.remind, start)
                    nursery.start_soon(context.overhear, start)
                    if start.inbound.attachments:
                        question = await read_attachments(start, services, self)
        start = question.start
        prepared = round(trio.current_time() - began_at, 4)
        asking = ModelRounds(self, start, persona, services, words)
        asking.prompting.memories = context.memories
        asking.prompting.overheard = context.overheard
        outcome = await self._outcome(start, persona, asking, ends_at)
        if isinstance(outcome, Finished):
            outcome = msgspec.structs.replace(outcome, heard=question.heard)
        words.end(is_whole=isinstance(outcome, Finished))
        ended = TurnEnded(start.turn_id, outcome, prepared)
        # Why not through the agent: an agent that was restarted meanwhile does not know
        # the session.
        self.tell(start.session, ended)
        self.tell(names.agent(persona.name), ended)
        self.stop()

    def _seconds(self, persona: Persona, start: StartTurn) -> float:
        """Give the time limit of this turn, in seconds."""
        whole, own = persona.turn_seconds(self._services.limits), persona.config
        if start.inbound.occasion == "autonomous":
            return min(whole, own.autonomous.planner_timeout)
        if start.inbound.occasion == "plan":
            return min(whole, own.autonomous.executor_timeout)
        return whole

    async def _outcome(
        self, start: StartTurn, persona: Persona, asking: ModelRounds, ends_at: float
    ) -> Finished | Failed:
        services, inbound = self._services, start.inbound
        if inbound.occasion == "autonomous":
            planned = await Planner(start, persona, services, asking).run(ends_at)
            if isinstance(planned, Failed) or planned.carried.plan is None:
                return planned
            asker, name = (services, self), persona.name
            return await asked_about(planned, persona.egress, inbound, name, asker)
        if inbound.occasion == "plan" and self._is_too_late(inbound):
            services.metrics.decisions.add(1, persona.name, "expired")
            # An earlier attempt may have done part of the plan.
            is_begun = start.attempt > 1
            silent = Finished(NOT_DONE, rounds=0)
            return Failed(EXPIRED, "expired") if is_begun else silent
        colleagues = Colleagues(self, start, persona, services, ends_at)
        course = TurnLoop(start, persona, services, asking, colleagues)
        pictures = await watch_pictures(persona, services)
        try:
            outcome = await course.run(ends_at)
            if isinstance(outcome, Failed):
                return outcome
            return await self._enclosed(outcome, course, persona, pictures)
        finally:
            if pictures is not None:
                pictures.end()

    async def _enclosed(
        self,
        outcome: Finished,
        course: TurnLoop,
        persona: Persona,
        pictures: PictureWatch | None,
    ) -> Finished:
        """Give the answer as hooks leave it, with what comes of its directives."""
        services, inbound, sending = self._services, course.inbound, course.sending
        asker = (persona, services, self)
        outcome = msgspec.structs.replace(outcome, carried=Carried(files=sending.files))
        outcome = await asked_about(
            outcome, persona.egress, inbound, persona.name, (services, self)
        )
        if outcome.is_withheld:
            return outcome
        sending = msgspec.structs.replace(sending, files=outcome.carried.files)
        said = outcome.parsed(persona.egress)
        carried = with_files(await carry_out(said, inbound, *asker, sending), sending)
        return msgspec.structs.replace(
            outcome,
            kept_apart=await kept_apart(outcome, said, inbound, *asker),
            carried=await with_pictures(carried, pictures, course.steps),
        )

    def _is_too_late(self, inbound: Inbound) -> bool:
        """Whether a plan is too old to be carried out."""
        return self._services.clock.wall() > inbound.received_at + PLAN_LASTS


def persona_of(persona: Persona, start: StartTurn) -> Persona:
    """Give the persona that this kind of turn uses."""
    if start.mode in SPOKEN_TO:
        return persona.spoken_to()
    if start.inbound.occasion == "autonomous":
        return persona.planning()
    return persona.by_itself() if start.inbound.occasion == "plan" else persona


class TurnMemories(msgspec.Struct, eq=False):
    """What a turn looks up before its first call, as far as it came in time."""

    _turn: Actor
    _persona: Persona
    _services: Services
    memories: Memories = NO_MEMORIES
    overheard: tuple[OverheardMessage, ...] = ()

    async def remind(self, start: StartTurn) -> None:
        """Ask the memory, unless the prompt has no place for it."""
        inbound, persona = start.inbound, self._persona
        if not is_light(persona, inbound):
            self.memories = await remind(inbound, persona, self._services, self._turn)

    async def overhear(self, start: StartTurn) -> None:
        """Look up what was said in the chat since the agent's last answer."""
        self.overheard = await overhear(start, self._persona, self._services)


class TurnLoop:
    """The rounds of one turn, from the question to the outcome.

    Args:
        colleagues: the other agents that it may ask.
    """

    def __init__(
        self,
        start: StartTurn,
        persona: Persona,
        services: Services,
        asking: ModelRounds,
        colleagues: Colleagues,
    ) -> None:
        self._start = start
        self.inbound = start.inbound
        """The message that is answered."""

        self._words = asking.words
        self._asking = asking
        self.steps = StepJournal(start, services)
        self._colleagues = colleagues
        self._has_sources = bool(persona.sources)
        """Whether there may be other tools than the agent's own."""

        further = tools_of(colleagues, start.mode, persona, services)
        self._calls = ToolCalls(
            start, persona, services, self.steps, asking.words, further
        )
        self._services = services
        self._agent = persona.name
        self._loop_steps = 0
        self._steps_noted = 0
        settings = services.tool_calls
        self._turn = rules.TurnMachine(
            tuple([spec.name for spec in self._calls.permits.offered]),
            max(1, persona.config.max_tool_rounds + 1),
            self._calls.permits.denied,
            LoopLimits(settings.warn_after, settings.block_after, settings.break_after),
            persona.egress,
            start.inbound.tokens,
        )
        self._turn.frame_key = services.frame_key
        self._rounds = 0
        self._meanwhile = Steering(start, persona)

    @property
    def sending(self) -> OutgoingFiles:
        """The files that go out with the answer, and whether more may."""
        is_free = self._calls.permits.is_free(SEND_FILE)
        return OutgoingFiles(self._calls.files, is_free=is_free)

    async def run(self, ends_at: float) -> Finished | Failed:
        """Answer in time; give what the turn took in any case.

        Args:
            ends_at: the time limit, in `trio.current_time()` seconds.
        """
        outcome: Finished | Failed = Failed(TIMED_OUT, "timeout", "timeout")
        try:
            with trio.move_on_at(ends_at):
                if self._has_sources:
                    self._turn.offer(await self._calls.look_around())
                outcome = await self._answer()
        except StoreError as error:
            LOG.warning("a turn's steps not read", why=str(error))
            outcome = Failed(UNREAD, "store", advice=ASK_AGAIN, may_retry=True)
        spent = self._asking.spent
        if isinstance(outcome, Failed):
            outcome = msgspec.structs.replace(outcome, asked=self._asking.asked)
        return msgspec.structs.replace(
            outcome,
            usage=total(spent),
            rounds=self._rounds,
            spent=spent,
            joined=tuple(self._meanwhile.joined),
        )

    async def _answer(self) -> Finished | Failed:
        steps = await self.steps.read()
        effects = self._resume(steps)
        while effects and not self.steps.is_superseded:
            calls: list[ToolCall] = []
            for effect in effects:
                match effect:
                    case rules.Finish(text=text):
                        whole = self._words.whole(text)
                        used = transcript.used_tools(self._turn.lines)
                        handed = tuple(self._calls.delegations)
                        return Finished(
                            whole,
                            handed,
                            used=used,
                            resume=self._asking.resume,
                            consulted=self._colleagues.asked,
                        )
                    case rules.Fail():
                        return as_failed(effect)
                    case rules.AskModel(with_tools=with_tools):
                        effects = await self._ask(with_tools=with_tools)
                    case rules.CallTool(call=call):
                        calls.append(call)
            if calls and not self.steps.is_superseded:
                effects = await self._run_tools(calls)
        # Nobody reads this text: the attempt that took over answers.
        return Failed(TAKEN_OVER, "superseded", may_retry=True)

    async def _ask(self, *, with_tools: bool) -> list[rules.Effect]:
        # The tools that ran may have brought new tools.
        if self._has_sources and self._turn.rounds > 1:
            self._turn.offer(await self._calls.look_around())
        await self._take_in()
        if self.steps.is_superseded:
            return []
        prompting = self._asking.prompting
        prompting.standing, prompting.notes = self._calls.standing, self._calls.notes
        tools = self._calls.permits.offered if with_tools else ()
        event = await self._asking.ask(self._turn.lines, tools)
        if isinstance(event, rules.ModelReplied):
            self._note_round(event)
            if event.tool_calls:
                needing = self._calls.permits.needing(event.tool_calls)
                event = msgspec.structs.replace(event, needs_leave=needing)
                self._count_refusals(event.tool_calls)
        effects = self._turn.on(event)
        self._count_loops()
        # The last round is not recorded here: the session stores it with the reply.
        if isinstance(event, rules.ModelReplied) and not self._turn.is_over:
            await self.steps.add(event)
            self._note_steps()
        return effects

    async def _take_in(self) -> None:
        """Inject messages that came meanwhile; each is recorded before it is read."""
        for words in await self._meanwhile.fetch(is_first=self._turn.rounds == 1):
            await self.steps.add(words)
            self._turn.on(words)
            self._meanwhile.joined.append(words.id)

    async def _run_tools(self, calls: list[ToolCall]) -> list[rules.Effect]:
        """Run the tool calls of one round; give the effects of their results."""
        effects: list[rules.Effect] = []

        async def returned(result: rules.ToolReturned) -> None:
            await self.steps.add(result)
            self._words.move()
            effects.extend(self._turn.on(result))
            self._count_loops()

        await self._calls.run(calls, returned)
        return effects

    def _resume(self, steps: list[rules.Step]) -> list[rules.Effect]:
        """Resume where an earlier attempt was cut off."""
        if not steps:  # the first attempt, as most often
            return self._turn.on(rules.TurnStarted())
        reported = self._start.reported
        resumed = rules.resume(self._turn, steps)
        needed_leave: tuple[str, ...] = ()
        for step in resumed.steps:
            if isinstance(step, rules.ModelReplied):
                needed_leave = step.needs_leave
                self._words.begin_round()
                self._words.speak(step.text)
                is_new = reported == 0 or step.attempt > reported
                self._note_round(step, is_counted=is_new)
                if is_new:
                    self._asking.recall(step)
            elif isinstance(step, rules.MessageInjected):
                self._meanwhile.joined.append(step.id)
            elif not step.is_error:
                self._recall(step)
        self._note_steps()  # an earlier attempt may not have come to it
        self._calls.doubt(resumed.open_effects, needed_leave)
        self._loop_steps = len(
            self._turn.loop_steps
        )  # the earlier attempt counted them
        return resumed.open_effects

    def _recall(self, step: rules.ToolReturned) -> None:
        """Take up what a tool call of an earlier attempt asked of other agents."""
        self._calls.enclose(step)
        call = self._turn.call(step.call_id)
        if call is not None and call.name == DELEGATE:
            self._calls.delegate(call)  # only notes the task that is handed on
        elif call is not None and call.name in OF_COLLEAGUES:
            self._colleagues.recall(step.text)

    def _note_steps(self) -> None:
        """Tell people which steps of the answer have ended."""
        for number in range(self._steps_noted + 1, self._turn.steps_done + 1):
            done = progress(self._turn.plan, number)
            self._words.note(f"step{number}", done, "step")
        self._steps_noted = self._turn.steps_done

    def _count_refusals(self, calls: tuple[ToolCall, ...]) -> None:
        """Count the calls of a round that are denied."""
        for call in calls:
            if call.name in self._calls.permits.denied:
                self._services.metrics.denials.add(1, call.name, "rules")

    def _count_loops(self) -> None:
        for step in self._turn.loop_steps[self._loop_steps :]:
            self._services.metrics.loops.add(1, self._agent, step)
        self._loop_steps = len(self._turn.loop_steps)

    def _note_round(
        self, reply: rules.ModelReplied, *, is_counted: bool = True
    ) -> None:
        """Take up a round; a round of an earlier report is not counted again."""
        if is_counted:
            self._rounds += 1
        self._words.end_round(reply.text)
