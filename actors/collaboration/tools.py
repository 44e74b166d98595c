"""The tools by which an agent asks colleagues behind the scenes.

`collaborate` asks one, and may go on with what was said before, or have the asking
agent itself carry it on for some turns; `consult` asks several at once.
"""

from __future__ import annotations

import trio

from actors.agents.persona import Persona
from actors.collaboration import questions as rules
from actors.collaboration.colleagues import ColleagueAsker, Dialogue
from actors.config.collaboration import CollaborationConfig
from actors.messages.inbound import ToolCall, ToolContext, ToolResult, ToolSpec
from actors.ports import Tool
from actors.rules.markers.descriptions import SPOKEN_TO, Mode
from actors.rules.prompt.tools import COLLABORATE, CONSULT
from actors.services import Services


def tools_of(
    colleagues: ColleagueAsker, mode: Mode, persona: Persona, services: Services
) -> dict[str, Tool]:
    """Give the tools by name; none if there is nobody to ask."""
    config = services.collaboration
    if not (has_any(persona, config) and services.limits.max_hops):
        return {}
    if mode in SPOKEN_TO:
        return {}
    return {
        COLLABORATE: Collaborate(colleagues, config),
        CONSULT: ConsultMany(colleagues, config),
    }


def has_any(persona: Persona, config: CollaborationConfig) -> bool:
    """Whether there is anybody that an agent may ask."""
    return config.enabled and bool(persona.colleagues)


class Collaborate:
    """The tool `collaborate`."""

    def __init__(self, colleagues: ColleagueAsker, config: CollaborationConfig) -> None:
        self._colleagues = colleagues
        self._config = config

    @property
    def spec(self) -> ToolSpec:
        """What the model is told."""
        return rules.COLLABORATE_SPEC

    async def run(self, call: ToolCall, context: ToolContext) -> ToolResult:
        """Ask one agent, once or until one of the two is done."""
        del context  # the turn knows more of it
        wanted = rules.decode(call.arguments, rules.CollaborateArguments)
        if isinstance(wanted, str):
            return ToolResult(wanted, is_error=True)
        deadline = trio.current_time() + self._colleagues.within()
        dialogue = Dialogue(self._colleagues, call, wanted.agent)
        if wanted.turns > 1:
            turns = min(wanted.turns, self._config.max_turns)
            told = await dialogue.discuss(wanted, turns, deadline)
            if not told.transcript:
                return ToolResult(told.ended, is_error=True)
            return ToolResult(rules.written(told), files=tuple(dialogue.files))
        answer = await dialogue.ask_once(wanted.message, wanted.session_id, deadline)
        if answer.missing:
            return ToolResult(answer.missing, is_error=True)
        return ToolResult(rules.written(answer), files=tuple(dialogue.files))


class ConsultMany:
    """The tool `consult`."""

    def __init__(self, colleagues: ColleagueAsker, config: CollaborationConfig) -> None:
        self._colleagues = colleagues
        self._config = config

    @property
    def spec(self) -> ToolSpec:
        """What the model is told."""
        return rules.CONSULT_SPEC

    async def run(self, call: ToolCall, context: ToolContext) -> ToolResult:
        """Ask several agents; give what came in time, and why the rest did not."""
        del context  # the turn knows more of it
        wanted = rules.decode(call.arguments, rules.ConsultArguments)
        if isinstance(wanted, str):
            return ToolResult(wanted, is_error=True)
        targets = tuple(dict.fromkeys(wanted.agents))
        if len(targets) > self._config.max_agents:
            text = f"at most {self._config.max_agents} agents may be asked at once"
            return ToolResult(text, is_error=True)
        deadline = trio.current_time() + self._colleagues.within()
        answers = dict[str, rules.ColleagueAnswer]()
        dialogues = [
            Dialogue(self._colleagues, call, target, number)
            for number, target in enumerate(targets)
        ]

        async def ask(dialogue: Dialogue, target: str) -> None:
            answers[target] = await dialogue.ask_once(wanted.message, "", deadline)

        async with trio.open_nursery() as nursery:
            for dialogue, target in zip(dialogues, targets, strict=True):
                nursery.start_soon(ask, dialogue, target)
        told = rules.ColleagueAnswers(tuple(answers[target] for target in targets))
        files = tuple(file for each in dialogues for file in each.files)
        text = rules.written(told)
        return ToolResult(text, is_error=not told.has_any, files=files)
