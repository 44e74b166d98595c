"""Tells why who hears a message: every rule's verdict, in order; pure.

The decision itself is `routes.py`'s and `activation.py`'s; here it is only told, from
the same objects, so that what is told is what happens.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from actors.rules.activation import (
    REASONS,
    Listener,
    Scene,
    Situation,
    judge,
)
from actors.rules.agent_access import AgentAccess, may_use
from actors.rules.routes import Unrouted, is_for_activation, route, told_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from actors.messages import Inbound
    from actors.rules.activation import Reason
    from actors.rules.routes import RoutingTable


class Step(msgspec.Struct, frozen=True):
    """What one rule says."""

    agent: str
    """Of which agent; empty: of all."""

    rule: str
    verdict: str
    """`yes`, `no`, or whom it names."""

    why: str


class Explained(msgspec.Struct, frozen=True):
    """All verdicts, and what comes out."""

    steps: tuple[Step, ...]
    outcome: tuple[str, ...]
    """One line for each agent, or one for all."""


def explain(
    inbound: Inbound,
    table: RoutingTable,
    situation: Situation,
    access: AgentAccess,
) -> Explained:
    """Tell who hears a message, and why.

    Args:
        inbound: the message.
        table: who there is, and whose chats are whose.
        situation: what else is known.
        access: who may use whom.
    """
    if is_for_activation(inbound):
        return _in_group(inbound, table, situation, access)
    outcome = route(inbound, table)
    steps = [
        Step("", each.rule, ", ".join(each.agents) or "no", each.why)
        for each in outcome.verdicts
    ]
    if isinstance(outcome, Unrouted):
        return Explained(tuple(steps), (f"nobody answers: {outcome.text}",))
    said = f"answers: {outcome.rule}"
    lines = [_used(x, inbound, access, said, steps) for x in outcome.agents]
    return Explained(tuple(steps), tuple(lines))


def _in_group(
    inbound: Inbound, table: RoutingTable, situation: Situation, access: AgentAccess
) -> Explained:
    scene = Scene(inbound, table, situation)
    if scene.route is None:
        steps = [Step("", "binding", "no", "no route fits: the chat is nobody's")]
    else:
        whose = scene.route[1].agent
        steps = [Step("", "binding", whose, told_of(*scene.route))]
    outcome: list[str] = []
    for judged in judge(inbound, table, situation).judged:
        steps += _steps(Listener(judged.agent, scene))
        if judged.silence is None:
            said = OUTCOMES[judged.reason or judged.check or "uncalled"]
            outcome.append(_used(judged.agent, inbound, access, said, steps))
        else:
            outcome.append(f"{judged.agent} {OUTCOMES[judged.silence]}")
    return Explained(tuple(steps), tuple(outcome))


def _used(
    agent: str, inbound: Inbound, access: AgentAccess, said: str, steps: list[Step]
) -> str:
    """Say what an agent does, if whoever writes may use it."""
    use = may_use(agent, inbound, access)
    if access.rules:
        steps.append(Step(agent, "access", "yes" if use.may else "no", use.why))
    return f"{agent} {said}" if use.may else f"{agent} is silent: {use.why}"


OUTCOMES: dict[str, str] = {
    "always": "answers: always",
    "reply": "answers: it is replied to",
    "mention": "answers: it is mentioned",
    "pattern": "answers: one of its patterns calls it",
    "window": "answers: its reply window is open",
    "broadcast": "is asked of a model: are they meant for everybody? Silent if not",
    "relevance": "is asked of a model: are they meant for it? Silent if not",
    "peer": "answers: another program mentions it",
    "own": "is silent: these are its own words",
    "absent": "is silent: it is not in this chat",
    "bot": "is silent: another program wrote this",
    "rounds": "is silent: it answered this program often enough for now",
    "never": "is silent: activation is never",
    "uncalled": "is silent: it has no reason to answer",
    "yields": "is silent: it yields to an agent that is called",
    "irrelevant": "is silent: a model says that it is not meant",
}
"""What comes out for an agent, by why."""


def _steps(listener: Listener) -> Iterator[Step]:
    """Give the verdicts of all rules, also of those after the one that decides."""
    scene, agent = listener.scene, listener.agent
    inbound, config = scene.inbound, listener.group.config

    def step(rule: str, why: str, *, holds: bool) -> Step:
        return Step(agent, rule, "yes" if holds else "no", why)

    own = agent == scene.author
    yield step("own", f"written by {scene.author or 'no agent'}", holds=own)
    present = ", ".join(inbound.present) or "nobody knows, so everybody"
    yield step("present", f"there: {present}", holds=scene.is_there(agent))
    writer = "a program" if inbound.is_bot else "a person"
    yield step("bot", f'{writer}; bots = "{config.bots}"', holds=inbound.is_bot)
    whose = f'activation = "{listener.activation}"'
    yield step("never", whose, holds=listener.activation == "never")
    for reason in REASONS:
        yield step(reason, _reason(reason, listener), holds=listener.holds(reason))
    other = listener.yields_to
    why = f"{other} is called" if other else "it is called, or no other agent is"
    yield step("deference", why, holds=bool(other))
    check = listener.check_for(listener.first_reason())
    wanted = f"relevance_check = {_flag(on=config.relevance_check)}"
    wanted += f", broadcast_check = {_flag(on=config.broadcast_check)}"
    yield step("check", check or wanted, holds=check is not None)


def _flag(*, on: bool) -> str:
    return "true" if on else "false"


def _reason(reason: Reason, listener: Listener) -> str:
    """Say what a reason is found by."""
    scene, config = listener.scene, listener.group.config
    match reason:
        case "always":
            whose = "" if listener.may_be_anybody else "; the chat is another's"
            return f'activation = "{listener.activation}"{whose}'
        case "reply":
            return f"replies to {scene.replied_to or 'no agent'}"
        case "mention":
            return f"mentions {', '.join(scene.mentioned) or 'no agent here'}"
        case "pattern":
            return f"mention_patterns: {', '.join(config.mention_patterns) or 'none'}"
        case _:
            at = scene.situation.answered_at.get(listener.agent)
            if at is None:
                last = "it answered this person here never, or too long ago"
            else:
                minutes = (scene.situation.now - at) / 60
                last = f"it answered this person {minutes:.1f} minutes ago"
            return f"{last}; reply_window = {config.reply_window:g}"
