"""One question until its final answer: the tool loop as a machine without I/O.

Pure. The shell feeds events to `Turn.on`, carries out the effects in order and
feeds back what comes of them. The model is asked at most `max_rounds` times, the
last time without tools so that it has to answer in words (F207-F210).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, assert_never

import msgspec

from actors.ledger import Spent
from actors.messages import Image, Line, SentFile, ToolCall, Usage
from actors.rules import tool_results
from actors.rules.allowance import Allowance
from actors.rules.loop_detector import LoopDetector, LoopLimits, LoopStep, Made
from actors.rules.markers import EVERYTHING, Egress, parse
from actors.rules.near import did_you_mean, near_misses
from actors.rules.tool_receipt import Proof

if TYPE_CHECKING:
    from collections.abc import Mapping

ACKNOWLEDGEMENT = "\N{CHECK MARK}"
"""Said when a model has nothing to say (F278)."""

# Chosen: eight times what models ask for in practice; the rest is answered with an
# error, so that one reply cannot start work without bound.
MAX_CALLS = 32


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
"""Whether a model can be asked later (`busy`), will never answer this (`refused`), may
not be asked before more may be spent (`budget`), is not asked at all because the words
try to change its instructions (`untrusted`), is asked too much at once (`context`), or
cannot see what it was shown (`vision`)."""


class TurnStarted(msgspec.Struct, frozen=True):
    """Somebody asked."""


class ModelReplied(msgspec.Struct, frozen=True):
    """The model's whole answer to the last `AskModel`."""

    text: str
    tool_calls: tuple[ToolCall, ...] = ()
    usage: Usage = Usage()
    """Of all calls that it took to get this answer."""

    attempt: int = 0
    """Which start of the message's turn asked; 0 if that does not matter."""

    needs_leave: tuple[str, ...] = ()
    """Tools among these calls that somebody was to be asked for before they run."""

    spent: tuple[Spent, ...] = ()
    """The same as `usage`, apart by model and account."""


class ModelFailed(msgspec.Struct, frozen=True):
    """The model gave no whole answer to the last `AskModel`, retries included."""

    kind: FailureKind
    text: str
    """What happened, without secrets."""

    not_before: float = 0.0
    """Unix seconds before which asking once more could not help."""


class ToolReturned(msgspec.Struct, frozen=True, omit_defaults=True):
    """A tool ended."""

    call_id: str
    """The id of the `CallTool` that started it."""

    text: str
    is_error: bool = False
    images: tuple[Image, ...] = ()
    is_foreign: bool = False
    """Whether the text may come from anywhere; the model sees it in a frame."""

    proof: Proof | None = None
    """That the tool was called and gave back this; None if it did not run."""
    files: tuple[SentFile, ...] = ()  # what goes out with the answer


class Joined(msgspec.Struct, frozen=True, omit_defaults=True):
    """Somebody wrote something that the model is to read before its next round."""

    id: str
    """Of the message."""

    platform_id: str
    text: str
    """As the model reads it."""

    name: str = ""
    others: int = 0
    """How many further agents heard it; its end must announce their answers."""


Event = TurnStarted | ModelReplied | ModelFailed | ToolReturned | Joined


class AskModel(msgspec.Struct, frozen=True):
    """Ask the model with the history and `Turn.lines`."""

    with_tools: bool


class CallTool(msgspec.Struct, frozen=True):
    """Run a tool; its call's id is unique in the turn."""

    call: ToolCall


class Finish(msgspec.Struct, frozen=True):
    """The turn is over; this is the model's answer, markers and all."""

    text: str


class Fail(msgspec.Struct, frozen=True):
    """The turn is over without an answer."""

    text: str
    """For the person who asked."""

    kind: FailureKind | Literal["allowance"] = "refused"
    """Whether asking once more, some time later, could help; `allowance`: it has used
    up what it may take."""

    not_before: float = 0.0
    """As in `ModelFailed`."""


Effect = AskModel | CallTool | Finish | Fail


def fail(failure: ModelFailed) -> Fail:
    """Say to people that a model gave no answer."""
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


Step = ModelReplied | ToolReturned | Joined
"""What is worth remembering of a turn: with these events it can be resumed."""


class Turn:
    """The rounds of one turn.

    Args:
        tools: names of the tools that may be called.
        max_rounds: most times the model is asked; at least 1.
        denied: tools that there are, and why they may not be called.
        loops: what is done about calls that repeat themselves.
        egress: what of the model's text counts.
        tokens: what its rounds may take, read and written; 0: no limit.

    Raises:
        ValueError: `max_rounds` is below 1.
    """

    def __init__(
        self,
        tools: tuple[str, ...],
        max_rounds: int,
        denied: Mapping[str, str] | None = None,
        loops: LoopLimits = UNLESS_TOLD,
        egress: Egress = EVERYTHING,
        tokens: int = 0,
    ) -> None:
        if max_rounds < 1:
            raise ValueError(f"max_rounds must be 1 or more, not {max_rounds}")
        self._tools = tools
        self._egress = egress
        self._denied: Mapping[str, str] = {} if denied is None else denied
        self._detector = LoopDetector(loops)
        self._made: dict[str, Made] = {}  # the calls of this round
        self._ran: set[str] = set()  # those of them that have returned
        self.loop_steps: list[LoopStep] = []
        """What was done about calls that repeat themselves, in order."""

        self._allowance = Allowance(tokens)
        self._max_rounds = max_rounds
        self._round = 0
        self._state: Literal["new", "asking", "calling", "ended"] = "new"
        self._lines: list[Line] = []
        self._asked = Line("assistant", "")  # the line whose calls are running
        self._results: dict[str, Line | None] = {}  # None: still running
        self._calls: dict[str, ToolCall] = {}

    def offer(self, tools: tuple[str, ...]) -> None:
        """Learn which tools may be called from now on."""
        self._tools = tools

    @property
    def tools(self) -> tuple[str, ...]:
        """Names of the tools that may be called now."""
        return self._tools

    @property
    def lines(self) -> tuple[Line, ...]:
        """What the turn adds to the transcript so far.

        A line with tool calls appears together with all its results, so what is here
        can be kept even if the turn is cut off.
        """
        return tuple(self._lines)

    @property
    def rounds(self) -> int:
        """How many times the model has been asked."""
        return self._round

    @property
    def is_over(self) -> bool:
        """True after `Finish` or `Fail`; no event has an effect any more."""
        return self._state == "ended"

    def call(self, call_id: str) -> ToolCall | None:
        """Give a call of this turn by its (unique) id."""
        return self._calls.get(call_id)

    def on(self, event: Event) -> list[Effect]:
        """Take one event in; give back the effects it causes, in order.

        An event that does not fit is late or from elsewhere, and has no effect.
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
            case Joined():
                self._join(event)
                return []
            case _:
                assert_never(event)

    def _join(self, words: Joined) -> None:
        """Put words between a round's results and the next round (B2)."""
        # Never between a call and its result: providers refuse that.
        if self._state == "asking":
            self._lines.append(Line("user", words.text, name=words.name))

    def _ask(self) -> list[Effect]:
        if self._allowance.is_over:
            self._state = "ended"
            return [Fail(self._allowance.used_up, "allowance")]
        if self._allowance.is_last:
            self._max_rounds = self._round + 1
        self._round += 1
        self._state = "asking"
        is_last = self._round == self._max_rounds
        return [AskModel(with_tools=bool(self._tools) and not is_last)]

    def _replied(self, reply: ModelReplied) -> list[Effect]:
        if reply.tool_calls and self._round < self._max_rounds:
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
        text = ACKNOWLEDGEMENT if is_silent else reply.text
        self._lines.append(Line("assistant", text))
        return [Finish(text)]

    def _failed(self, failure: ModelFailed) -> list[Effect]:
        self._state = "ended"
        return [fail(failure)]

    def _call(self, reply: ModelReplied) -> list[Effect]:
        calls = tuple(map(self.with_unique_id, reply.tool_calls))
        self._asked = Line("assistant", reply.text, tool_calls=calls)
        self._made.clear()
        self._ran.clear()
        self._results = {
            call.id: self._refused(call, number) for number, call in enumerate(calls)
        }
        self._state = "calling"
        if self._detector.is_broken:  # the next round is the last
            self._max_rounds = min(self._max_rounds, self._round + 1)
        running = [call for call in calls if self._results[call.id] is None]
        return [CallTool(call) for call in running] or self._next_round()

    def with_unique_id(self, call: ToolCall) -> ToolCall:
        """Repair an id that is empty or was used before in this turn.

        Providers refuse a transcript in which two calls share an id; models make
        them up all the same.
        """
        unique = call.id
        number = len(self._calls)
        while not unique or unique in self._calls:
            number += 1
            unique = f"{call.id or 'call'}-{number}"
        self._calls[unique] = renamed = msgspec.structs.replace(call, id=unique)
        return renamed

    def _refused(self, call: ToolCall, number: int) -> Line | None:
        """Answer for a call that is not to run; None if it is."""
        made, step = self._detector.called(call)
        self._made[call.id] = made
        if step is not None:
            self.loop_steps.append(step)
            return Line("tool", REPEATED, tool_call_id=call.id)
        refusal = self._refusal(call, number)
        if refusal is None:
            return None
        self._detector.returned(made, refusal)
        return Line("tool", refusal, tool_call_id=call.id)

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
            text = tool_results.frame(text, self._calls[call_id].name)
        self._results[call_id] = Line(
            "tool", text, tool_call_id=call_id, images=result.images
        )
        return [] if None in self._results.values() else self._next_round()

    def _warned(self, call_id: str, line: Line) -> Line:
        """Add a warning to a result that the model has had before."""
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
