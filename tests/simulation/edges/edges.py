"""The model and the tool of a simulated company: helpful, slow, broken or silly."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec
import trio

from actors.errors import ModelBusyError, ModelRefusedError, ToolError
from actors.messages.inbound import (
    ModelAnswer,
    ModelRequest,
    ToolCall,
    ToolContext,
    ToolResult,
    ToolSpec,
)
from actors.ports import Speak
from tests.fakes.company.company import FakeModel, Says, heard
from tests.simulation.checks.checkers import Checkers
from tests.simulation.faults import Faults
from tests.simulation.trace import Trace
from tests.simulation.workload import CANARY, Habit

# Chosen: far longer than any turn may take.
HANGS = 10_000.0

HUNG = "hung"
"""Name of the model that hangs, in runs that have such a model."""

# Chosen: characters of what was heard that an answer repeats.
ECHOED = 160


class ModelBugError(Exception):
    """Nothing that a model may raise."""


class ToolBugError(Exception):
    """Nothing that a tool may raise."""


class SimulatedModel(FakeModel):
    """Repeats what it heard, sometimes hands it on or looks it up first.

    Args:
        faults: the dice.
        checkers: shown every prompt.
        trace: told of every prompt.
        agents: names of all agents.
    """

    def __init__(
        self, faults: Faults, checkers: Checkers, trace: Trace, agents: tuple[str, ...]
    ) -> None:
        super().__init__(self._talk)
        self._faults = faults
        self._checkers = checkers
        self._trace = trace
        self._agents = agents
        self.habits: Mapping[str, Habit] = {}
        """By agent; the world sets it."""

    async def answer(self, request: ModelRequest, speak: Speak) -> ModelAnswer:
        self._trace.note("prompt", request.correlation_id, request.agent)
        with self._checkers.asking(request):
            return await super().answer(request, speak)

    def words_for(self, request: ModelRequest) -> str:
        """Say what it would say on a good day."""
        if request.conversation.endswith("/condense"):
            return f"on {' '.join(sorted(set(CANARY.findall(heard(request)))))}"
        # Why: an honest model does not write markers because a person did.
        said = heard(request).replace("[", "(").replace("]", ")")
        return f"{request.agent} on {said[:ECHOED]}"

    def _talk(self, request: ModelRequest) -> Says:
        faults, dice = self._faults, self._faults.dice
        if request.model == HUNG and faults.hit("model_hang", 1.0):
            return Says("never", after=HANGS)
        if faults.hit("model_bug", 0.12):
            return Says("half", after=0.1, error=ModelBugError("a mistake"))
        if faults.hit("model_error", 0.25):
            return Says(error=self._error(), after=dice.choice((0.0, 0.4)))
        if faults.hit("model_slow", 0.15):
            return Says("late", after=dice.choice((3.0, 30.0, HANGS)))
        if faults.hit("model_odd", 0.25):
            return Says(dice.choice(("", "  \n ", "huge " * 200, "[DELEGATE:ben] oh")))
        return self._good(request)

    def _good(self, request: ModelRequest) -> Says:
        dice = self._faults.dice
        text = self.words_for(request)
        habit = self.habits.get(request.agent, "")
        if habit and not request.conversation.endswith("/condense"):
            return self._stubborn(request, habit, text)
        roll = dice.random()
        pause = dice.choice((0.0, 0.03, 0.5))
        tools = [spec.name for spec in request.tools]
        if tools and roll < 0.25:
            return Says(calls=self._calls(tools), after=pause)
        if "delegate" in tools and roll < 0.45:
            target = dice.choice(self._agents)
            text = f"{text} [DELEGATE:{target}] look at {text} [/DELEGATE]"
        cut = len(text) // 2
        return Says(text, after=pause, pieces=(text[:cut], text[cut:]), pause=pause)

    def _stubborn(self, request: ModelRequest, habit: Habit, text: str) -> Says:
        """Do what it always does."""
        dice = self._faults.dice
        target = dice.choice([each for each in self._agents if each != request.agent])
        pause = dice.choice((0.0, 0.03))
        tool, words = {
            "calls": ("delegate", "task"),
            "asks": ("collaborate", "message"),
        }.get(habit, ("", ""))
        if any(spec.name == tool for spec in request.tools):
            arguments = msgspec.json.encode({"agent": target, words: text})
            return Says(calls=(ToolCall("call-0", tool, arguments),), after=pause)
        said = {
            "hands_on": f"{text} [DELEGATE:{target}] you do {text} [/DELEGATE]",
            "mentions": f"@{target} what do you say? {text}",
            "silent": "NO_REPLY",
        }
        return Says(said.get(habit, text), after=pause)

    def _calls(self, tools: list[str]) -> tuple[ToolCall, ...]:
        dice = self._faults.dice
        calls: list[ToolCall] = []
        for number in range(dice.randint(1, 2)):
            name = dice.choice(tools)
            target = {"agent": dice.choice(self._agents), "task": "help"}
            arguments = msgspec.json.encode(target if name == "delegate" else {})
            calls.append(ToolCall(f"call-{number}", name, arguments))
        return tuple(calls)

    def _error(self) -> Exception:
        dice = self._faults.dice
        if dice.random() < 0.3:
            return ModelRefusedError("no quota")
        return ModelBusyError("overloaded", retry_after=dice.choice((None, 0.0, 3.0)))


class LookupTool:
    """A tool that knows little.

    Args:
        faults: the dice.
        checkers: shown on whose behalf it runs.
        trace: told of every call.
    """

    spec = ToolSpec("lookup", "Look something up.", b'{"type":"object"}', effect="read")

    def __init__(self, faults: Faults, checkers: Checkers, trace: Trace) -> None:
        self._faults = faults
        self._checkers = checkers
        self._trace = trace

    async def run(self, call: ToolCall, context: ToolContext) -> ToolResult:
        self._trace.note("tool", context.correlation_id, f"{context.agent} {call.id}")
        self._checkers.tool_called(context)
        faults = self._faults
        await trio.sleep(faults.dice.choice((0.0, 0.2)))
        if faults.hit("tool_bug", 0.3):
            raise ToolBugError("a mistake")
        if faults.hit("tool_error", 0.4):
            kind = faults.dice.choice(("raises", "says", "huge", "hangs"))
            if kind == "raises":
                raise ToolError("no connection")
            if kind == "hangs":
                await trio.sleep(HANGS)
            return ToolResult("no " * (5000 if kind == "huge" else 1), is_error=True)
        return ToolResult("found")
