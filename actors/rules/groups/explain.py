"""Explains who hears a message and why: the verdict of every rule, in order. Pure.

`routes.py` and `activation.py` decide. This module only describes their decision, from
the same objects, so that explanation and behaviour cannot differ.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from actors.messages.inbound import Inbound
from actors.rules.groups.access import AgentAccess, may_use
from actors.rules.groups.activation import (
    REASONS,
    GroupListener,
    Reason,
    Scene,
    Situation,
    judge,
)
from actors.rules.groups.routes import (
    RoutingTable,
    Unrouted,
    is_for_activation,
    route,
    told_of,
    verdicts,
)


class RuleStep(msgspec.Struct, frozen=True):
    """The verdict of one rule."""

    agent: str
    """Name of the agent; empty if it concerns all."""

    rule: str
    verdict: str
    """`yes`, `no`, or the names of agents."""

    why: str


class RouteExplanation(msgspec.Struct, frozen=True):
    """All verdicts and the outcome."""

    steps: tuple[RuleStep, ...]
    outcome: tuple[str, ...]
    """One line per agent, or one line for all."""


def explain(
    inbound: Inbound,
    table: RoutingTable,
    situation: Situation,
    access: AgentAccess,
) -> RouteExplanation:
    """Explain who hears a message, and why."""
    if is_for_activation(inbound):
        return _in_group(inbound, table, situation, access)
    outcome = route(inbound, table)
    steps = [
        RuleStep("", each.rule, ", ".join(each.agents) or "no", each.why)
        for each in verdicts(inbound, table)
    ]
    if isinstance(outcome, Unrouted):
        return RouteExplanation(tuple(steps), (f"nobody answers: {outcome.text}",))
    said = f"answers: {outcome.rule}"
    lines = [_used(x, inbound, access, said, steps) for x in outcome.agents]
    return RouteExplanation(tuple(steps), tuple(lines))


def _in_group(
    inbound: Inbound, table: RoutingTable, situation: Situation, access: AgentAccess
) -> RouteExplanation:
    scene = Scene(inbound, table, situation)
    if scene.route is None:
        steps = [RuleStep("", "binding", "no", "no route fits: the chat is nobody's")]
    else:
        whose = scene.route[1].agent
        steps = [RuleStep("", "binding", whose, told_of(*scene.route))]
    outcome: list[str] = []
    for judged in judge(inbound, table, situation).judged:
        steps += _steps(GroupListener(judged.agent, scene))
        if judged.silence is None:
            said = OUTCOMES[judged.reason or judged.check or "uncalled"]
            outcome.append(_used(judged.agent, inbound, access, said, steps))
        else:
            outcome.append(f"{judged.agent} {OUTCOMES[judged.silence]}")
    return RouteExplanation(tuple(steps), tuple(outcome))


def _used(
    agent: str, inbound: Inbound, access: AgentAccess, said: str, steps: list[RuleStep]
) -> str:
    """Describe what an agent does, given the sender's access."""
    use = may_use(agent, inbound, access)
    if access.rules:
        steps.append(RuleStep(agent, "access", "yes" if use.may else "no", use.why))
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
    "command": "answers: a command for no agent in particular, or it is alone here",
    "own": "is silent: these are its own words",
    "absent": "is silent: it is not in this chat",
    "bot": "is silent: another program wrote this",
    "rounds": "is silent: it answered this program often enough for now",
    "never": "is silent: activation is never",
    "uncalled": "is silent: it has no reason to answer",
    "yields": "is silent: it yields to an agent that is called",
    "irrelevant": "is silent: a model says that it is not meant",
}
"""Text of an agent's outcome, by reason."""


def _steps(listener: GroupListener) -> Iterator[RuleStep]:
    """Return the verdicts of all rules, also of those after the deciding one."""
    scene, agent = listener.scene, listener.agent
    inbound, config = scene.inbound, listener.group.config

    def step(rule: str, why: str, *, holds: bool) -> RuleStep:
        return RuleStep(agent, rule, "yes" if holds else "no", why)

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


def _reason(reason: Reason, listener: GroupListener) -> str:
    """Describe how a reason was found."""
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
            named = "" if config.own_name else ", and not its name"
            words = ", ".join(config.mention_patterns) or "none"
            return f"mention_patterns: {words}{named}"
        case _:
            at = scene.situation.answered_at.get(listener.agent)
            if at is None:
                last = "it answered this person here never, or too long ago"
            else:
                minutes = (scene.situation.now - at) / 60
                last = f"it answered this person {minutes:.1f} minutes ago"
            return f"{last}; reply_window = {config.reply_window:g}"
