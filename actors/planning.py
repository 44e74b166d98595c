"""Decides, before a turn's first answer, which model gives it, and in which steps."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
import trio

from actors.messages import Line, ModelRequest
from actors.rules import classify
from actors.rules.hygiene import clean

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from actors.config import RoutingConfig
    from actors.persona import Persona
    from actors.protocol import StartTurn

    Ask = Callable[[ModelRequest, str], Awaitable[str | None]]

# Chosen: seconds for the question; whoever is slower saves nobody's time.
CLASSIFIED_WITHIN = 15.0

# Chosen: twenty steps of the usual length.
CLASSIFIED_TOKENS = 400


class Plan(msgspec.Struct, frozen=True):
    """How a turn's first answer is got."""

    model: str
    """Which of `[models.<name>]` gives it."""

    steps: tuple[str, ...] = ()
    """What it is written in; none: at once."""


def first_choice(persona: Persona, start: StartTurn, chosen: str = "") -> str:
    """Give the model that was chosen, or that the words call for, or the agent's own.

    Args:
        persona: whose turn it is.
        start: what was asked.
        chosen: what whoever asks wants to be answered by; empty: anything.
    """
    if chosen:
        return chosen
    hints = persona.config.routing.hints
    found = [classify.Hint(each.words, each.model) for each in hints]
    return classify.by_hint(start.inbound.text, found) or persona.config.model


async def plan(persona: Persona, start: StartTurn, chosen_model: str, ask: Ask) -> Plan:
    """Ask a cheap model whether this needs several steps, if the settings want it.

    Args:
        persona: whose turn it is.
        start: what was asked, and the conversation before it.
        chosen_model: what whoever asks wants to be answered by; empty: anything.
        ask: puts a request to a model; gives its words, or None if there are none.
    """
    routing, own = persona.config.routing, persona.config.model
    chosen = first_choice(persona, start, chosen_model)
    if chosen_model or chosen != own or not routing.classify:
        return Plan(chosen)
    injection = persona.config.context.injection
    texts = [line.text for line in start.history] + [start.inbound.text]
    said = [clean(text, injection).text for text in texts]
    words = classify.question(said, persona.abilities, routing.max_steps)
    request = ModelRequest(
        model="",
        agent=persona.name,
        correlation_id=start.inbound.correlation_id,
        system="",
        lines=(Line("user", words),),
        max_tokens=CLASSIFIED_TOKENS,
        conversation=f"{start.conversation}/plan",  # a program's folder of its own
    )
    answer: str | None = None
    with trio.move_on_after(CLASSIFIED_WITHIN):
        answer = await ask(request, routing.classifier or routing.cheap or own)
    return from_answer(answer or "", routing, own)


def from_answer(answer: str, routing: RoutingConfig, own: str) -> Plan:
    """Read the plan; in doubt there is none."""
    steps = classify.read_plan(answer, routing.max_steps)
    if steps:
        return Plan(routing.strong or own, steps)
    return Plan(routing.cheap or own)
