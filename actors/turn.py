"""One turn: asks the model, runs the tools it wants, until there is an answer.

The shell of `rules/turn.py`: it takes an event, carries out the effects, feeds
back what comes of them, and decides nothing about meaning.
"""

from __future__ import annotations

import math
from functools import partial
from typing import TYPE_CHECKING, ClassVar

import msgspec
import trio

from actors import names
from actors.errors import ModelBusyError, ModelRefusedError, ToolError
from actors.messages import Line, ModelRequest, ToolContext, ToolSpec, Usage
from actors.protocol import Failed, Finished, RunTurn, StartTurn, TurnEnded, TurnSpoke
from actors.rules import loop_guard, markers, prompt, transcript
from actors.rules import turn as rules
from actors.rules.markers import Delegation
from actors.steps import Steps
from runtime.actor import Actor
from runtime.errors import StoreError

if TYPE_CHECKING:
    from collections.abc import Callable

    from actors.messages import ModelAnswer, ToolCall
    from actors.persona import Persona
    from actors.services import Services

# Chosen: a busy model is asked three times in all; longer troubles are for the
# person to know of, and for the durable retry of the message.
ATTEMPTS = 3

# Chosen: seconds before the second attempt, doubled for the third; a provider's own
# `retry_after` counts up to the longest.
FIRST_WAIT = 0.5
LONGEST_WAIT = 20.0

# Chosen: words that come in quicker succession than this are told together. Slower
# ones are told at once, without a wake-up of the loop for each.
WORD_PACE = 0.005

IN_DOUBT = (
    "nobody knows whether this was done: the program ended while it ran. Find out"
    " before you do it again, or say so."
)
"""What the model is told of a call that was cut off and must not simply be repeated."""

TAKEN_OVER = "⚠️ Another attempt at this took over."

TIMED_OUT = "⚠️ Request timed out. Please try again."


FAILURES: dict[str, Callable[[str], Failed]] = {
    "busy": lambda text: Failed(text, "model", "unavailable", may_retry=True),
    "refused": lambda text: Failed(text, "model", "refused"),
}
"""What a failed turn is, by what its rules say."""


class DelegateArguments(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What the model gives the `delegate` tool."""

    agent: str
    task: str


DELEGATE_SPEC = ToolSpec(
    name=prompt.DELEGATE,
    description="Hand a task to a colleague, who answers in this chat.",
    parameters=msgspec.json.encode(
        {
            "type": "object",
            "properties": {
                "agent": {"type": "string", "description": "the colleague's name"},
                "task": {"type": "string", "description": "what is to be done"},
            },
            "required": ["agent", "task"],
            "additionalProperties": False,
        }
    ),
)


class Turn(Actor):
    """Answers one question, then ends.

    Takes: `RunTurn`, once.
    Sends: `TurnSpoke` while the model speaks; `TurnEnded` at the end, to the session
        and to its agent.
    Keeps: nothing beyond the turn.
    Fails: on a bug in a model or tool; the agent tells the session.
    Ends: with its answer, or when it is interrupted.
    """

    deadline: ClassVar[float | None] = None  # `turn_timeout` is the deadline

    def __init__(self, persona: Persona, services: Services) -> None:
        super().__init__()
        self._persona = persona
        self._services = services
        self._said: list[str] = []
        self._unsaid: list[str] = []
        self._delegations: list[Delegation] = []
        self._usage = Usage()
        self._rounds = 0
        self._in_doubt: set[str] = set()
        self._told_at = -math.inf

    async def on_receive(self, message: object) -> None:
        """Run the turn."""
        if not isinstance(message, RunTurn):
            super().on_receive(message)
            return
        start = message.start
        outcome = await self._run(start)
        self._tell_spoken(start)
        ended = TurnEnded(start.turn_id, outcome)
        # Why not by way of the agent: one that was restarted meanwhile does not know
        # who waits.
        self.tell(start.session, ended)
        self.tell(names.agent(self._persona.name), ended)
        self.stop()

    async def _run(self, start: StartTurn) -> Finished | Failed:
        """Answer within the time there is; count what it took in any case."""
        outcome: Finished | Failed = Failed(TIMED_OUT, "timeout", "timeout")
        try:
            with trio.move_on_after(self._services.limits.turn_timeout):
                outcome = await self._answer(start)
        except StoreError as error:
            text = f"⚠️ I could not read what I had done already: {error}"
            outcome = Failed(text, "store", may_retry=True)
        return msgspec.structs.replace(outcome, usage=self._usage, rounds=self._rounds)

    async def _answer(self, start: StartTurn) -> Finished | Failed:
        config = self._persona.config
        tools = tuple(spec.name for spec in self._specs())
        turn = rules.Turn(tools, max(1, config.max_tool_rounds + 1))
        steps = Steps(start, self._services)
        effects = self._resume(start, turn, await steps.read())
        while effects and not steps.is_superseded:
            calls: list[ToolCall] = []
            for effect in effects:
                match effect:
                    case rules.Finish(text=text):
                        return Finished(self._whole(text), tuple(self._delegations))
                    case rules.Fail(text=text, kind=kind):
                        return FAILURES[kind](text)
                    case rules.AskModel(with_tools=with_tools):
                        event = await self._ask(
                            start, turn.lines, with_tools=with_tools
                        )
                        effects = turn.on(event)
                        await self._record(steps, turn, event)
                    case rules.CallTool(call=call):
                        calls.append(call)
            if calls and not steps.is_superseded:
                effects = await self._run_tools(start, turn, calls, steps)
        # Nobody waits for this: whoever took over answers.
        return Failed(TAKEN_OVER, "superseded", may_retry=True)

    async def _record(
        self,
        steps: Steps,
        turn: rules.Turn,
        event: rules.ModelReplied | rules.ModelFailed,
    ) -> None:
        """Record a round, unless it is the last: that is stored with the reply."""
        if isinstance(event, rules.ModelReplied) and not turn.is_over:
            await steps.add(event)

    def _resume(
        self, start: StartTurn, turn: rules.Turn, steps: list[rules.Step]
    ) -> list[rules.Effect]:
        """Go back to where an earlier attempt was cut off."""
        resumed = rules.resume(turn, steps)
        for step in resumed.steps:
            if isinstance(step, rules.ModelReplied):
                self._speak(start, [], step.text)
                is_new = start.reported == 0 or step.attempt > start.reported
                self._note_round(step, is_counted=is_new)
            elif not step.is_error:
                call = turn.call(step.call_id)
                if call is not None and call.name == prompt.DELEGATE:
                    self._delegate(start, call)  # only notes what is to be handed on
        self._in_doubt = {
            effect.call.id
            for effect in resumed.open_effects
            if isinstance(effect, rules.CallTool)
        }
        return resumed.open_effects

    def _note_round(
        self, reply: rules.ModelReplied, *, is_counted: bool = True
    ) -> None:
        """Take up a round; one that an earlier report told of is not counted again."""
        if is_counted:
            self._rounds += 1
            self._usage += reply.usage
        if reply.text:
            self._said.append(reply.text)

    async def _ask(
        self, start: StartTurn, lines: tuple[Line, ...], *, with_tools: bool
    ) -> rules.ModelReplied | rules.ModelFailed:
        """Ask the model; more than once if it is busy and has not said a word."""
        request = self._request(start, lines, with_tools=with_tools)
        wait = FIRST_WAIT
        for attempt in range(1, ATTEMPTS + 1):
            spoken: list[str] = []
            try:
                answer = await self._ask_once(start, request, spoken)
            except ModelRefusedError as error:
                return rules.ModelFailed("refused", str(error))
            except ModelBusyError as error:
                if spoken or attempt == ATTEMPTS:
                    return rules.ModelFailed("busy", str(error))
                asked = error.retry_after if error.retry_after is not None else wait
                await trio.sleep(min(max(asked, 0.0), LONGEST_WAIT))
                wait *= 2
            else:
                reply = rules.ModelReplied(
                    answer.text, answer.tool_calls, answer.usage, start.attempt
                )
                self._note_round(reply)
                return reply
        raise AssertionError("unreachable: the last attempt returns")

    async def _ask_once(
        self, start: StartTurn, request: ModelRequest, spoken: list[str]
    ) -> ModelAnswer:
        metrics = self._services.metrics
        speak = partial(self._speak, start, spoken)
        began = self._services.clock.monotonic()
        outcome = "cancelled"
        try:
            answer = await self._persona.model.answer(request, speak)
            outcome = "ok"
        except ModelBusyError:
            outcome = "busy"
            raise
        except ModelRefusedError:
            outcome = "refused"
            raise
        finally:
            seconds = self._services.clock.monotonic() - began
            metrics.model_call(self._persona.config.model, outcome, seconds)
        metrics.tokens(self._persona.config.model, answer.usage)
        return answer

    def _speak(self, start: StartTurn, spoken: list[str], text: str) -> None:
        if not text:
            return
        if not spoken and self._said:
            text = "\n\n" + text  # as `_whole` joins the rounds
        spoken.append(text)
        # Why not told at once: a model may say thousands of words before anybody else
        # runs, and the session's mailbox is bounded.
        if not start.inbound.wants_drafts:
            return
        now = self._services.clock.monotonic()
        is_first = not self._unsaid
        self._unsaid.append(text)
        if is_first and now - self._told_at >= WORD_PACE:
            self._tell_spoken(start)
        elif is_first:
            soon = trio.lowlevel.current_trio_token().run_sync_soon
            soon(self._tell_spoken, start)

    def _tell_spoken(self, start: StartTurn) -> None:
        """Pass on what was said since the last time."""
        if self._unsaid:
            text = "".join(self._unsaid)
            self._unsaid.clear()
            self._told_at = self._services.clock.monotonic()
            self.tell(start.session, TurnSpoke(start.turn_id, text))

    def _whole(self, last: str) -> str:
        """All the rounds' words: what was shown while they were written."""
        whole = "\n\n".join(self._said)
        return last if markers.parse(whole, "assistant").is_silent else whole

    def _request(
        self, start: StartTurn, lines: tuple[Line, ...], *, with_tools: bool
    ) -> ModelRequest:
        persona = self._persona
        inbound = start.inbound
        asked = Line("user", inbound.text, name=inbound.sender_name)
        history = transcript.prepare(
            (*start.history, asked), persona.config.max_history + 1
        )
        return ModelRequest(
            model=persona.model_name,
            agent=persona.name,
            correlation_id=inbound.correlation_id,
            system=prompt.system_prompt(
                persona.name, persona.files, persona.config.prompt, persona.colleagues
            ),
            lines=(*history, *lines),
            tools=self._specs() if with_tools else (),
            temperature=persona.config.temperature,
            max_tokens=persona.config.max_tokens,
        )

    def _specs(self) -> tuple[ToolSpec, ...]:
        specs = tuple(tool.spec for tool in self._persona.tools.values())
        return (*specs, DELEGATE_SPEC) if self._persona.colleagues else specs

    async def _run_tools(
        self, start: StartTurn, turn: rules.Turn, calls: list[ToolCall], steps: Steps
    ) -> list[rules.Effect]:
        """Run the calls of one round side by side; give what follows from the last."""
        effects: list[rules.Effect] = []

        async def run(call: ToolCall) -> None:
            returned = await self._run_tool(start, call)
            await steps.add(returned)
            effects.extend(turn.on(returned))

        async with trio.open_nursery() as nursery:
            for call in calls:
                nursery.start_soon(run, call)
        return effects

    async def _run_tool(self, start: StartTurn, call: ToolCall) -> rules.ToolReturned:
        if call.name == prompt.DELEGATE:
            began = self._services.clock.monotonic()
            returned = self._delegate(start, call)
            outcome = "error" if returned.is_error else "ok"
            seconds = self._services.clock.monotonic() - began
            self._services.metrics.tool_call(call.name, outcome, seconds)
            return returned
        tool = self._persona.tools[call.name]
        if call.id in self._in_doubt and not tool.spec.is_repeatable:
            self._services.metrics.tool_call(call.name, "unknown", 0.0)
            return rules.ToolReturned(call.id, IN_DOUBT, is_error=True)
        inbound = start.inbound
        context = ToolContext(
            agent=self._persona.name,
            correlation_id=inbound.correlation_id,
            address=inbound.address,
            sender_id=inbound.sender_id,
        )
        began = self._services.clock.monotonic()
        outcome = "cancelled"
        try:
            result = await tool.run(call, context)
            outcome = "error" if result.is_error else "ok"
        except ToolError as error:
            outcome = "failed"
            return rules.ToolReturned(call.id, str(error), is_error=True)
        finally:
            seconds = self._services.clock.monotonic() - began
            self._services.metrics.tool_call(call.name, outcome, seconds)
        return rules.ToolReturned(call.id, result.text, result.is_error)

    def _delegate(self, start: StartTurn, call: ToolCall) -> rules.ToolReturned:
        try:
            wanted = msgspec.json.decode(call.arguments, type=DelegateArguments)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            return rules.ToolReturned(call.id, f"bad arguments: {error}", is_error=True)
        verdict = loop_guard.may_delegate(
            start.inbound.chain,
            self._persona.name,
            wanted.agent,
            self._persona.delegation_limits(self._services.limits.max_hops),
            self._services.clock.wall(),
        )
        if isinstance(verdict, loop_guard.Refused):
            return rules.ToolReturned(call.id, verdict.text, is_error=True)
        if not wanted.task.strip():
            return rules.ToolReturned(call.id, "say what is to be done", is_error=True)
        self._delegations.append(Delegation(verdict.target, wanted.task.strip()))
        text = f"Handed to {verdict.target}, who will answer in this chat."
        return rules.ToolReturned(call.id, text)
