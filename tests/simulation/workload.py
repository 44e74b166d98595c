"""What people do in one run, and in which company: all of it made from one seed."""

from __future__ import annotations

import random  # noqa: TID251  only dice that a seed made are used
import re
from typing import Literal

import msgspec

from actors.config.agents import AgentConfig
from actors.config.collaboration import CollaborationConfig
from actors.config.limits import LimitsConfig
from actors.config.prompt import ContextConfig
from actors.config.routes import GroupConfig
from actors.config.sessions import (
    BufferingConfig,
    CompactionConfig,
    SessionConfig,
    WatchdogConfig,
)
from actors.messages.deliveries import Abilities
from actors.messages.keys import SessionScope
from actors.messages.state import RetryPolicy
from actors.outbound.retry import OnUnknown

AGENTS = ("anna", "ben", "carl", "dora", "emil", "fay", "gus", "hana")
"""All that there may be; but in rooms no more than the first four are."""

PLATFORMS = ("alpha", "beta")
CHATS = ("d1", "d2", "g1", "g2")
"""The same ids on both platforms, so that a key without the connector is found out;
those with a `g` are groups."""

SENDERS = ("zoe", "yan", "xia")
CANARY = re.compile(r"«[^»\s]*»")  # cut lines may end in half of one

Habit = Literal["", "hands_on", "calls", "asks", "mentions", "silent"]
"""What an agent's model always does: hand on by a tag or by a tool, ask another agent
behind the scenes, speak to one, or say nothing; empty: what comes to its mind."""

COMMANDS = ("/stop", "/stop", "/stop", "/help", "/new", "/nothing")


class Act(msgspec.Struct, frozen=True):
    """One person writes one message."""

    at: float
    """Seconds since the run began."""

    number: int
    platform: str
    chat: str
    sender: str
    text: str
    is_reply: bool = False
    """Whether it replies to what an agent said last in its conversation, if any did."""

    @property
    def is_direct(self) -> bool:
        """Whether its chat is one-to-one with an agent."""
        return self.chat.startswith("d")


class Plan(msgspec.Struct, frozen=True):
    """The company and all that people will write."""

    agents: dict[str, AgentConfig]
    limits: LimitsConfig
    sessions: SessionConfig
    acts: tuple[Act, ...]
    span: float
    """Seconds of the safety phase."""

    abilities: dict[str, Abilities]
    """By platform."""

    retries: RetryPolicy
    on_unknown: OnUnknown

    compaction: CompactionConfig
    hooked: frozenset[str]
    """Platforms that hand in messages side by side, as webhooks do."""

    buffering: BufferingConfig = BufferingConfig()
    watchdog: WatchdogConfig = WatchdogConfig()
    habits: dict[str, Habit] = {}
    """By agent; who is not named has none."""

    collaboration: CollaborationConfig = CollaborationConfig()
    present: dict[str, tuple[str, ...]] = {}
    """By chat: which agents are in it, if the platform tells."""


def canary(
    platform: str, chat: str, sender: str, *, is_direct: bool, scope: SessionScope
) -> str:
    """Make the word that only one conversation may know."""
    owner = sender if is_direct or scope == "sender" else ""
    return f"«{platform}.{chat}.{owner}»"


def plan_of(dice: random.Random) -> Plan:
    """Make everything that does not depend on what happens in the run."""
    names = AGENTS[: dice.randint(2, 4)]
    scope: SessionScope = dice.choice(("chat", "sender"))
    span = dice.uniform(10.0, 60.0)
    idle_after = dice.choice((3.0, 20.0))
    sessions = SessionConfig(
        idle_after=idle_after, session_scope=scope, flush_timeout=5.0
    )
    return Plan(
        agents={name: _agent(name, names, dice) for name in names},
        limits=_limits(dice),
        sessions=sessions,
        acts=_acts(names, scope, span, dice),
        span=span,
        abilities={name: _abilities(dice) for name in PLATFORMS},
        retries=RetryPolicy(
            attempts=dice.choice((1, 2, 3)), retries_failures=dice.random() < 0.5
        ),
        on_unknown=dice.choice(("resend", "hold")),
        hooked=frozenset(p for p in PLATFORMS if dice.random() < 0.5),
        compaction=CompactionConfig(
            timeout=dice.choice((2.0, 30.0)),
            cut_chars=40,
            flush_after=dice.choice((0, 6)),
        ),
        buffering=BufferingConfig(
            policy=dice.choice(("serial", "serial", "followup", "interrupt", "steer")),
            note=dice.random() < 0.3,
            debounce=dice.choice((0.0, 0.0, 0.3)),
            longest_debounce=1.0,
            overflow=dice.choice(("new", "oldest", "summarise")),
            injections=dice.choice((1, 5)),
        ),
        watchdog=WatchdogConfig(
            quiet_after=1.0,
            long_after=3.0,
            stalled_after=2.0,
            stuck_after=dice.choice((0.0, 5.0)),
        ),
    )


def _agent(name: str, names: tuple[str, ...], dice: random.Random) -> AgentConfig:
    others = tuple(each for each in names if each != name)
    return AgentConfig(
        max_history=dice.choice((4, 20)),
        max_tool_rounds=dice.choice((1, 3)),
        tools=("lookup",) if dice.random() < 0.7 else (),
        delegates=others if dice.random() < 0.7 else (),
        context=ContextConfig(window_tokens=dice.choice((200_000, 600, 300))),
        # What these runs are about is older; `rooms.py` has both.
        groups=GroupConfig(reply_window=0, pending_messages=0),
    )


def _abilities(dice: random.Random) -> Abilities:
    return Abilities(
        is_idempotent=dice.random() < 0.4,
        can_look_up=dice.random() < 0.3,
        max_part_chars=dice.choice((0, 0, 90)),
        pace=dice.choice((0.0, 0.0, 0.25)),
    )


def _limits(dice: random.Random) -> LimitsConfig:
    return LimitsConfig(
        max_in_flight=dice.choice((1, 2, 8)),
        max_hops=dice.choice((1, 3)),
        max_delegations=dice.choice((2, 6)),
        turn_timeout=dice.choice((8.0, 25.0)),
        max_waiting=dice.choice((0, 1, 3, 10)),
        max_message_chars=300,
        max_reply_chars=400,
    )


def _acts(
    names: tuple[str, ...], scope: SessionScope, span: float, dice: random.Random
) -> tuple[Act, ...]:
    most_at_once = dice.choice((1, 3, 8))
    acts: list[Act] = []
    wanted = dice.randint(10, 48)
    while len(acts) < wanted:
        at = dice.uniform(0.0, span)
        platform, chat = dice.choice(PLATFORMS), dice.choice(CHATS)
        sender = dice.choice(SENDERS)
        for _ in range(dice.randint(1, most_at_once)):
            number = len(acts)
            text = _text(number, names, dice)
            is_direct = chat.startswith("d")
            known = canary(platform, chat, sender, is_direct=is_direct, scope=scope)
            if not text.startswith("/"):
                text = f"{text} {known}"
            acts.append(Act(at, number, platform, chat, sender, text))
            at += dice.choice((0.0, 0.001, 0.2))
    return tuple(sorted(acts, key=lambda act: (act.at, act.number)))


def _text(number: int, names: tuple[str, ...], dice: random.Random) -> str:
    roll = dice.random()
    if roll < 0.08:
        return dice.choice(COMMANDS)
    if roll < 0.10:
        return f"w{number} " + "long " * 80
    if roll < 0.13:
        return f"w{number} [DELEGATE:{dice.choice(names)}] says a person [/DELEGATE]"
    mentioned = dice.choices((0, 1, 2), (5, 4, 1))[0]
    words = [f"@{name}" for name in dice.sample(names, min(mentioned, len(names)))]
    return " ".join([*words, f"w{number}"])
