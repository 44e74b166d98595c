"""The tool loop of one turn as a state machine. Pure.

The turn feeds events to `TurnMachine.on`, carries out the effects in order, and feeds
the results back. The model is called at most `max_rounds` times, the last time without
tools, so that it must answer in words. If the answer has a plan, that holds for each of
its steps: a step ends with words, and the next one begins. `resume` brings a machine to
the end of the recorded steps of a turn that was cut off.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Literal, assert_never

import msgspec

from actors.approvals.receipts import ToolReceipt
from actors.journal.answers import ACKNOWLEDGEMENT
from actors.messages.inbound import Image, SentFile, ToolCall, TranscriptLine, Usage
from actors.messages.usage import Spent
from actors.models.classify import instruct
from actors.protocol import Failed
from actors.rules.markers.parser import EVERYTHING, ParserRules, parse
from actors.rules.prompt import tools as tool_results
from actors.rules.text.similarity import did_you_mean, near_misses
from actors.turn.limits import (
    LoopDetector,
    LoopLimits,
    LoopStep,
    RecordedCall,
    TokenAllowance,
)

# Chosen: eight times the calls that models make in practice.
MAX_CALLS = 32
"""Most calls of one reply that run; the others get an error as result."""


WARNING = (
    "(You made this very call before, and it gave back the same. Do something else, or"
    " answer with what you know.)"
)
REPEATED = (
    "Error: not run: you made this very call again and again, and it gave back the"
    " same. Answer now with what you know."
)

TOO_LONG = "⚠️ Context window exceeded"

SEES_NOTHING = "⚠️ The model cannot see pictures; ask again without them"

UNLESS_TOLD = LoopLimits()

FailureKind = Literal["busy", "refused", "budget", "untrusted", "context", "vision"]
"""`busy`: a later call may succeed. `refused`: the model never answers this. `budget`:
the budget is used up. `untrusted`: the message is a prompt injection, and no model was
called. `context`: the request is too long. `vision`: the model takes no pictures."""


class TurnStarted(msgspec.Struct, frozen=True):
    """The turn begins."""


class ModelReplied(msgspec.Struct, frozen=True):
    """The model's whole answer to the last `AskModel`."""

    text: str
    tool_calls: tuple[ToolCall, ...] = ()
    usage: Usage = Usage()
    """Of all model calls for this answer, retries included."""

    attempt: int = 0
    """Number of the attempt at the turn; 0 if that does not matter."""

    needs_leave: tuple[str, ...] = ()
    """Tools among these calls that need an approval before they run."""

    spent: tuple[Spent, ...] = ()
    """The same as `usage`, per model and account."""

    plan: tuple[str, ...] = ()
    """The steps of the answer, if this is its first round and it has some."""


class ModelFailed(msgspec.Struct, frozen=True):
    """The last `AskModel` failed, retries included."""

    kind: FailureKind
    text: str
    """What happened, without secrets."""

    not_before: float = 0.0
    """Unix seconds before which another call cannot succeed."""


class ToolReturned(msgspec.Struct, frozen=True, omit_defaults=True):
    """A tool call ended."""

    call_id: str
    """The id of the `CallTool` that started it."""

    text: str
    is_error: bool = False
    images: tuple[Image, ...] = ()
    is_foreign: bool = False
    """Whether the text may come from outside; the model sees it in a frame."""

    proof: ToolReceipt | None = None
    """The signed receipt of the call; None if it did not run."""

    files: tuple[SentFile, ...] = ()
    """Files that go out with the answer."""


class MessageInjected(msgspec.Struct, frozen=True, omit_defaults=True):
    """A message is put into the turn; the model reads it in its next round."""

    id: str
    """The id of the message."""

    platform_id: str
    text: str
    """As the model reads it."""

    name: str = ""
    others: int = 0
    """How many further agents got it; its silence must announce their answers."""


Event = TurnStarted | ModelReplied | ModelFailed | ToolReturned | MessageInjected


class AskModel(msgspec.Struct, frozen=True):
    """Call the model with the history and `TurnMachine.lines`."""

    with_tools: bool


class CallTool(msgspec.Struct, frozen=True):
    """Run a tool; the id of its call is unique in the turn."""

    call: ToolCall


class Finish(msgspec.Struct, frozen=True):
    """The turn is over; this is the model's answer, markers and all."""

    text: str


class Fail(msgspec.Struct, frozen=True):
    """The turn is over without an answer."""

    text: str
    """For the person who asked."""

    kind: FailureKind | Literal["allowance"] = "refused"
    """As in `ModelFailed`; `allowance`: the turn has used up its tokens."""

    not_before: float = 0.0
    """As in `ModelFailed`."""


Effect = AskModel | CallTool | Finish | Fail


def fail(failure: ModelFailed) -> Fail:
    """End the turn with a text for people about a failed model call."""
    match failure.kind:
        case "busy":
            text = f"The model cannot answer now: {failure.text}"
            return Fail(text, "busy", failure.not_before)
        case "budget" | "untrusted":
            return Fail(failure.text, failure.kind)
        case "context":
            return Fail(f"{TOO_LONG}: {failure.text}", "context")
        case "vision":
            return Fail(f"{SEES_NOTHING}: {failure.text}", "vision")
        case "refused":
            return Fail(f"The model refused to answer: {failure.text}")
        case _:
            assert_never(failure.kind)


Step = ModelReplied | ToolReturned | MessageInjected
"""The events that are recorded; with them a turn can be resumed."""


class TurnMachine:
    """The state of one turn, round by round.

    Args:
        tools: names of the tools that may be called.
        max_rounds: most calls of the model, for each step of a plan; at least 1.
        denied: tools that may not be called, with the reason.
        egress: which parts of the model's text people may see.
        tokens: most tokens of all rounds, read and written; 0: no limit.

    Raises:
        ValueError: `max_rounds` is below 1.
    """

    def __init__(
        self,
        tools: tuple[str, ...],
        max_rounds: int,
        denied: Mapping[str, str] | None = None,
        loops: LoopLimits = UNLESS_TOLD,
        egress: ParserRules = EVERYTHING,
        tokens: int = 0,
    ) -> None:
        if max_rounds < 1:
            raise ValueError(f"max_rounds must be 1 or more, not {max_rounds}")
        self._tools = tools
        self.frame_key = b""
        """`Services.frame_key`; tools with foreign results need it."""

        self._egress = egress
        self._denied: Mapping[str, str] = {} if denied is None else denied
        self._detector = LoopDetector(loops)
        self._made: dict[str, RecordedCall] = {}  # the calls of this round
        self._ran: set[str] = set()  # those of them that have returned
        self.loop_steps: list[LoopStep] = []
        """The steps against repeated calls so far, in order."""

        self._allowance = TokenAllowance(tokens)
        self._max_rounds = max_rounds
        self._last = max_rounds  # the round in which this step must end
        self.rounds = 0
        """How often the model was called."""

        self.plan: tuple[str, ...] = ()
        """The steps of the answer; none: it is given at once."""

        self.steps_done = 0
        """How many of them have ended; the last one ends with the turn."""

        self._state: Literal["new", "asking", "calling", "ended"] = "new"
        self._lines: list[TranscriptLine] = []
        self._asked = TranscriptLine(
            "assistant", ""
        )  # the line whose calls are running
        self._results: dict[str, TranscriptLine | None] = {}  # None: still running
        self._calls: dict[str, ToolCall] = {}

    def offer(self, tools: tuple[str, ...]) -> None:
        """Set the tools that may be called from now on."""
        self._tools = tools

    @property
    def tools(self) -> tuple[str, ...]:
        """Names of the tools that may be called now."""
        return self._tools

    @property
    def lines(self) -> tuple[TranscriptLine, ...]:
        """The lines that the turn has added to the transcript so far.

        A line with tool calls appears together with all its results, so the lines are
        complete even if the turn is cut off.
        """
        return tuple(self._lines)

    @property
    def is_over(self) -> bool:
        """Whether the turn has ended; then no event has an effect."""
        return self._state == "ended"

    def call(self, call_id: str) -> ToolCall | None:
        """Give a call of this turn by its (unique) id."""
        return self._calls.get(call_id)

    def on(self, event: Event) -> list[Effect]:
        """Take one event; give its effects, in order.

        An event that does not fit the state is late, and has no effect.
        """
        match event:
            case TurnStarted():
                return self._ask() if self._state == "new" else []
            case ModelReplied():
                self._allowance.take(event.usage)
                return self._replied(event) if self._state == "asking" else []
            case ModelFailed():
                return self._failed(event) if self._state == "asking" else []
            case ToolReturned():
                return self._returned(event) if self._state == "calling" else []
            case MessageInjected():
                self._join(event)
                return []
            case _:
                assert_never(event)

    def _join(self, words: MessageInjected) -> None:
        """Add a message after a round's results."""
        # Never between a call and its result: providers refuse such a transcript.
        if self._state == "asking":
            self._lines.append(TranscriptLine("user", words.text, name=words.name))

    def _ask(self) -> list[Effect]:
        if self._allowance.is_over:
            self._state = "ended"
            return [Fail(self._allowance.used_up, "allowance")]
        if self._allowance.is_last:
            self._last = self.rounds + 1
        self.rounds += 1
        self._state = "asking"
        is_last = self.rounds == self._last
        return [AskModel(with_tools=bool(self._tools) and not is_last)]

    def _replied(self, reply: ModelReplied) -> list[Effect]:
        if reply.plan and self.rounds == 1:
            self.plan = reply.plan
            self._instruct()
        if reply.tool_calls and self.rounds < self._last:
            return self._call(reply)
        self._state = "ended"
        parsed = parse(reply.text, "assistant", self._egress)
        is_silent = parsed.is_silent and not parsed.is_withheld
        if is_silent and reply.tool_calls:
            return [
                Fail(
                    f"No answer after {self._max_rounds} rounds: the model asked for"
                    " more tools instead. Ask for less at a time, or raise max_rounds."
                )
            ]
        if self.steps_done + 1 < len(self.plan):
            return self._next_step("" if is_silent else reply.text)
        text = ACKNOWLEDGEMENT if is_silent else reply.text
        self._lines.append(TranscriptLine("assistant", text))
        return [Finish(text)]

    def _next_step(self, text: str) -> list[Effect]:
        if text:  # providers refuse an empty line
            self._lines.append(TranscriptLine("assistant", text))
        self.steps_done += 1
        self._last = self.rounds + self._max_rounds
        self._instruct()
        return self._ask()

    def _instruct(self) -> None:
        """Add the line that tells the model which step to take now."""
        text = instruct(self.plan, self.steps_done + 1)
        self._lines.append(TranscriptLine("user", text))

    def _failed(self, failure: ModelFailed) -> list[Effect]:
        self._state = "ended"
        return [fail(failure)]

    def _call(self, reply: ModelReplied) -> list[Effect]:
        calls = tuple(map(self.with_unique_id, reply.tool_calls))
        self._asked = TranscriptLine("assistant", reply.text, tool_calls=calls)
        self._made.clear()
        self._ran.clear()
        self._results = {
            call.id: self._refused(call, number) for number, call in enumerate(calls)
        }
        self._state = "calling"
        if self._detector.is_broken:  # the next round is the last
            self._last = min(self._last, self.rounds + 1)
        running = [call for call in calls if self._results[call.id] is None]
        return [CallTool(call) for call in running] or self._next_round()

    def with_unique_id(self, call: ToolCall) -> ToolCall:
        """Replace an id that is empty or was used before in this turn.

        Providers refuse a transcript in which two calls share an id, and models make
        such ids up.
        """
        unique = call.id
        number = len(self._calls)
        while not unique or unique in self._calls:
            number += 1
            unique = f"{call.id or 'call'}-{number}"
        self._calls[unique] = renamed = msgspec.structs.replace(call, id=unique)
        return renamed

    def _refused(self, call: ToolCall, number: int) -> TranscriptLine | None:
        """Give the result of a call that does not run; None: it runs."""
        made, step = self._detector.called(call)
        self._made[call.id] = made
        if step is not None:
            self.loop_steps.append(step)
            return TranscriptLine("tool", REPEATED, tool_call_id=call.id)
        refusal = self._refusal(call, number)
        if refusal is None:
            return None
        self._detector.returned(made, refusal)
        return TranscriptLine("tool", refusal, tool_call_id=call.id)

    def _refusal(self, call: ToolCall, number: int) -> str | None:
        if call.name in self._denied:
            return f"Error: {call.name} was not run: {self._denied[call.name]}."
        if call.name not in self._tools:
            hint = did_you_mean(near_misses(call.name, self._tools))
            known = ", ".join(self._tools) or "none"
            return f"Error: there is no tool {call.name!r}.{hint} Tools: {known}."
        if number >= MAX_CALLS:
            return f"Error: not run, only {MAX_CALLS} calls are allowed at a time."
        return None

    def _returned(self, result: ToolReturned) -> list[Effect]:
        call_id = result.call_id
        if self._results.get(call_id, self._asked) is not None:
            return []  # unknown, or answered before
        text = f"Error: {result.text}" if result.is_error else result.text
        self._detector.returned(self._made[call_id], text)
        self._ran.add(call_id)
        if result.is_foreign:
            text = tool_results.frame(self.frame_key, text, self._calls[call_id].name)
        self._results[call_id] = TranscriptLine(
            "tool", text, tool_call_id=call_id, images=result.images
        )
        return [] if None in self._results.values() else self._next_round()

    def _warned(self, call_id: str, line: TranscriptLine) -> TranscriptLine:
        """Add a warning to the result of a repeated call."""
        made = self._made[call_id]
        step = self._detector.repeated(made) if call_id in self._ran else None
        if step is None:
            return line
        self.loop_steps.append(step)
        return msgspec.structs.replace(line, text=f"{line.text}\n{WARNING}")

    def _next_round(self) -> list[Effect]:
        results = [
            self._warned(call_id, line)
            for call_id, line in self._results.items()
            if line is not None
        ]
        self._lines += [self._asked, *results]
        self._allowance.expect(results)
        return self._ask()


ASK_LATER = "Please ask again in a few minutes."

_FAILURES: dict[str, Failed] = {
    "busy": Failed("", "model", "unavailable", advice=ASK_LATER, may_retry=True),
    "refused": Failed("", "model", "refused"),
    "untrusted": Failed("", "untrusted", "refused"),
    "budget": Failed("", "budget", "budget"),
    "allowance": Failed("", "allowance", "budget"),
    "vision": Failed("", "vision", "refused"),
    "context": Failed("", "context", "refused"),
}


def as_failed(fail: Fail) -> Failed:
    """Give the report of a turn that ends without an answer."""
    failed = _FAILURES[fail.kind]
    return msgspec.structs.replace(failed, text=fail.text, not_before=fail.not_before)


def tools_run(steps: Iterable[Step]) -> tuple[frozenset[str], ...]:
    """Give the tools with recorded results, for each of the model's answers.

    They count as offered when a turn is resumed, even if they are gone by now: results
    must not be lost because a server is away.
    """
    ids = TurnMachine((), 1)
    rounds: list[set[str]] = []
    for step in steps:
        if isinstance(step, ModelReplied):
            rounds.append(set())
            for call in step.tool_calls:
                ids.with_unique_id(call)
        elif isinstance(step, MessageInjected) or not rounds:
            continue
        elif (call_run := ids.call(step.call_id)) is not None:
            rounds[-1].add(call_run.name)
    return tuple(map(frozenset, rounds))


class Resumed(msgspec.Struct, frozen=True):
    """Where a turn stands after its recorded steps."""

    open_effects: list[Effect]
    """The effects without a recorded step; they are still to be carried out."""

    steps: list[Step]
    """The steps that fit; after a change of settings some may not."""


def resume(turn: TurnMachine, steps: Iterable[Step]) -> Resumed:
    """Start a machine and bring it to the end of its recorded steps.

    Args:
        steps: the recorded steps of earlier attempts, in order; may be empty.
    """
    recorded = list(steps)
    rounds = tools_run(recorded)
    now = turn.tools
    answers = 0
    open_effects = turn.on(TurnStarted())
    fitting: list[Step] = []
    for step in recorded:
        if isinstance(step, MessageInjected):
            turn.on(step)
            fitting.append(step)
            continue
        left = _without(open_effects, step)
        if turn.is_over or left is None:
            break  # the settings allow other tools or fewer rounds than before
        if isinstance(step, ModelReplied):
            ran = rounds[answers]
            answers += 1
            turn.offer(tuple(dict.fromkeys((*now, *sorted(ran)))))
        open_effects = left + turn.on(step)
        fitting.append(step)
    turn.offer(now)
    return Resumed(open_effects, fitting)


def _without(
    effects: list[Effect], step: ModelReplied | ToolReturned
) -> list[Effect] | None:
    """Leave out the effect that a step answers; None: it answers none of them."""
    for effect in effects:
        if isinstance(step, ModelReplied):
            is_answered = isinstance(effect, AskModel)
        else:
            is_answered = isinstance(effect, CallTool) and (
                effect.call.id == step.call_id
            )
        if is_answered:
            return [other for other in effects if other is not effect]
    return None
