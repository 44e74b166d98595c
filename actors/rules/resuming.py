"""A turn that was cut off goes on where its recorded steps end. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from actors.rules.turn import (
    AskModel,
    CallTool,
    Effect,
    Joined,
    ModelReplied,
    Step,
    ToolReturned,
    Turn,
    TurnStarted,
)

if TYPE_CHECKING:
    from collections.abc import Iterable


def tools_run(steps: Iterable[Step]) -> tuple[frozenset[str], ...]:
    """Name the tools whose results were recorded, for each of the model's answers.

    They count as offered when a turn is resumed, whether they are there now or not:
    what was done must not be forgotten because a server is away.
    """
    ids = Turn((), 1)
    rounds: list[set[str]] = []
    for step in steps:
        if isinstance(step, ModelReplied):
            rounds.append(set())
            for call in step.tool_calls:
                ids.with_unique_id(call)
        elif isinstance(step, Joined) or not rounds:
            continue
        elif (call_run := ids.call(step.call_id)) is not None:
            rounds[-1].add(call_run.name)
    return tuple(map(frozenset, rounds))


class Resumed(msgspec.Struct, frozen=True):
    """Where a turn stands after its recorded steps."""

    open_effects: list[Effect]
    """What is still to be done: the effects that no recorded step answers."""

    steps: list[Step]
    """The steps that fitted; those after a change of settings may not."""


def resume(turn: Turn, steps: Iterable[Step]) -> Resumed:
    """Start a turn and bring it to where its recorded steps end.

    Args:
        turn: a new one.
        steps: what was recorded of an earlier attempt, in order; may be nothing.
    """
    recorded = list(steps)
    rounds = tools_run(recorded)
    now = turn.tools
    answers = 0
    open_effects = turn.on(TurnStarted())
    fitting: list[Step] = []
    for step in recorded:
        if isinstance(step, Joined):
            turn.on(step)
            fitting.append(step)
            continue
        left = _without(open_effects, step)
        if turn.is_over or left is None:
            break  # other tools, or fewer rounds, are allowed now than were then
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
    """Take out the effect that a step answers; None if it answers none of them."""
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
