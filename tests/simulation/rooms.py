"""Runs in which everything happens in rooms: many people, many agents, much small talk.

Every third seed is one; all others are as they were before there were rooms. Some
agents have habits that no settings can talk them out of: they hand everything on, or
speak to each other, or say nothing.
"""

from __future__ import annotations

import random  # noqa: TID251  only dice that a seed made are used

import msgspec

from actors.config.agents import AgentConfig
from actors.config.collaboration import CollaborationConfig
from actors.config.limits import LimitsConfig
from actors.config.prompt import ContextConfig
from actors.config.routes import Activation, GroupConfig
from actors.messages.keys import SessionScope
from tests.simulation.workload import (
    AGENTS,
    PLATFORMS,
    Act,
    Habit,
    Plan,
    canary,
    plan_of,
)

# Chosen: a third; the rest of any thousand seeds means what it always meant.
EVERY = 3
FIRST = 2

CHATS = ("g1", "g2", "g3")
"""The same ids on both platforms, as those of the other runs are."""

COMMANDS = ("/stop", "/stop", "/help", "/nothing")
HABITS: tuple[Habit, ...] = (
    "",
    "",
    "",
    "hands_on",
    "calls",
    "asks",
    "mentions",
    "silent",
)


class Cast(msgspec.Struct, frozen=True):
    """Who is in the rooms of one run."""

    names: tuple[str, ...]
    people: tuple[str, ...]
    scope: SessionScope
    span: float


def plan_for(seed: int, dice: random.Random) -> Plan:
    """Make the plan of a seed: with rooms, or as it always was."""
    return room_plan_of(dice) if seed % EVERY == FIRST else plan_of(dice)


def room_plan_of(dice: random.Random) -> Plan:
    """Make a company in rooms; everything but its people is as in any other plan."""
    plan = plan_of(dice)
    names = AGENTS[: dice.randint(2, 8)]
    people = tuple(f"p{number}" for number in range(1, dice.randint(1, 20) + 1))
    cast = Cast(names, people, plan.sessions.session_scope, plan.span)
    return msgspec.structs.replace(
        plan,
        agents={name: _agent(name, names, dice) for name in names},
        limits=_limits(plan.limits, dice),
        habits={name: dice.choice(HABITS) for name in names},
        collaboration=_collaboration(dice),
        present={chat: _present(names, dice) for chat in CHATS},
        acts=_acts(cast, dice),
    )


def _agent(name: str, names: tuple[str, ...], dice: random.Random) -> AgentConfig:
    others = tuple(each for each in names if each != name)
    return AgentConfig(
        max_history=dice.choice((4, 20)),
        max_tool_rounds=dice.choice((1, 3)),
        tools=("lookup",) if dice.random() < 0.4 else (),
        delegates=others if dice.random() < 0.8 else others[:1],
        context=ContextConfig(window_tokens=dice.choice((200_000, 600))),
        groups=_group(dice),
    )


def _collaboration(dice: random.Random) -> CollaborationConfig:
    """Say whether agents hear each other in the open, and for how long."""
    return CollaborationConfig(
        visible=dice.random() < 0.6,
        visible_max_turns=dice.choice((1, 3)),
        max_rounds=dice.choice((1, 5)),
        cooldown=dice.choice((1.0, 30.0)),
    )


def _group(dice: random.Random) -> GroupConfig:
    activations: tuple[Activation, ...] = ("mention",) * 10 + ("always", "never")
    return GroupConfig(
        activation=dice.choice(activations),
        reply_window=dice.choice((0.0, 0.0, 0.1, 5.0)),
        pending_messages=dice.choice((0, 2, 50)),
    )


def _present(names: tuple[str, ...], dice: random.Random) -> tuple[str, ...]:
    """Say who is in a room; nothing: the platform does not tell."""
    if dice.random() < 0.4:
        return ()
    return tuple(dice.sample(names, dice.randint(1, len(names))))


def _limits(limits: LimitsConfig, dice: random.Random) -> LimitsConfig:
    return msgspec.structs.replace(
        limits,
        max_in_flight=dice.choice((1, 2, 16)),
        max_hops=dice.choice((1, 2, 4)),
        max_delegations=dice.choice((1, 3, 6)),
    )


def _acts(cast: Cast, dice: random.Random) -> tuple[Act, ...]:
    most_at_once = dice.choice((1, 3, 8))
    acts: list[Act] = []
    wanted = dice.randint(10, 40)
    while len(acts) < wanted:
        at = dice.uniform(0.0, cast.span)
        platform, chat = dice.choice(PLATFORMS), dice.choice(CHATS)
        for _ in range(dice.randint(1, most_at_once)):
            act = Act(at, len(acts), platform, chat, dice.choice(cast.people), "")
            acts.append(_with_words(act, cast, dice))
            at += dice.choice((0.0, 0.001, 0.2))
    return tuple(sorted(acts, key=lambda act: (act.at, act.number)))


def _with_words(act: Act, cast: Cast, dice: random.Random) -> Act:
    text, is_reply = _words(act.number, cast.names, dice)
    if not text.startswith("/"):
        known = canary(
            act.platform, act.chat, act.sender, is_direct=False, scope=cast.scope
        )
        text = f"{text} {known}"
    return msgspec.structs.replace(act, text=text, is_reply=is_reply)


def _words(
    number: int, names: tuple[str, ...], dice: random.Random
) -> tuple[str, bool]:
    """Give what somebody says, and whether it is a reply to an agent."""
    roll, name = dice.random(), dice.choice(names)
    word = f"w{number}"
    if roll < 0.06:
        return f"{dice.choice(COMMANDS)}@{name}", False
    if roll < 0.08:
        return dice.choice(COMMANDS), False
    if roll < 0.10:
        return f"{word} [DELEGATE:{name}] says a person [/DELEGATE]", False
    if roll < 0.25:
        return word, True
    if roll < 0.60:
        return word, False
    mentioned = dice.choices((1, 2, len(names)), (12, 3, 1))[0]
    words = [f"@{each}" for each in dice.sample(names, mentioned)]
    return " ".join([*words, word]), False
