"""Whether one agent may delegate to another, so that agents never go in circles.

Pure, and decided before any model is asked. A chain names the agents from the one
a person spoke to down to the one asked last; every arrow between two names is a
hop. As each allowed delegation adds a hop and the number of hops is limited, every
chain of delegations ends, whatever the agents do.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Literal

import msgspec

from actors.messages.inbound import DelegationChain, Inbound
from actors.rules.text.similarity import did_you_mean, near_misses

RefusalReason = Literal[
    "unknown_target",
    "self",
    "not_a_delegate",
    "deadline",
    "max_hops",
    "max_rounds",
    "not_permitted",
    "max_delegations",
]

STOPPED = "Delegation stopped: "

# Chosen: names shown of a long chain, half from each end; a line people can read.
_SHOWN = 8


class DelegationLimits(msgspec.Struct, frozen=True):
    """The limits of the settings."""

    agents: tuple[str, ...]
    """Names of all agents."""

    max_hops: int
    """Most hops of one chain; 0 forbids delegation."""

    delegates: tuple[str, ...] | None = None
    """Whom the source may ask; None: everyone."""


class DelegationAllowed(msgspec.Struct, frozen=True):
    """The agent may be asked."""

    target: str
    """Its name as the settings write it."""

    chain: DelegationChain
    """Goes with the message to the target; its last name is the target's."""


class DelegationRefused(msgspec.Struct, frozen=True):
    """The agent must not be asked."""

    reason: RefusalReason
    text: str
    """For people, and for the model that wanted it."""


def may_delegate(
    chain: DelegationChain,
    source: str,
    target: str,
    limits: DelegationLimits,
    now: float,
) -> DelegationAllowed | DelegationRefused:
    """Decide whether `source`, working on `chain`, may ask `target`.

    Args:
        chain: the chain of the message that the source is answering; empty if a
            person wrote it.
        source: name of the agent that wants to delegate.
        target: name of the agent it wants to ask, in any case.
        now: monotonic seconds, as in `DelegationChain.deadline`.
    """
    path = chain.agents if chain.agents[-1:] == (source,) else (*chain.agents, source)
    name = _find(target, limits.agents)
    if name is None:
        hint = did_you_mean(near_misses(target, limits.agents))
        return _refuse("unknown_target", f"there is no agent {target!r}.{hint}")
    if name == source:
        return _refuse("self", f"{source} cannot delegate to itself.")
    if limits.delegates is not None and _find(name, limits.delegates) is None:
        known = ", ".join(limits.delegates) or "nobody"
        return _refuse("not_a_delegate", f"{source} may not ask {name}, only {known}.")
    if chain.deadline and now >= chain.deadline:
        return _refuse("deadline", f"the time for {_arrows(path)} is over.")
    if len(path) > limits.max_hops:
        hops = "1 hop" if limits.max_hops == 1 else f"{limits.max_hops} hops"
        text = f"{_arrows(path)} reached the limit of {hops}."
        return _refuse("max_hops", text)
    return DelegationAllowed(
        name, DelegationChain(agents=(*path, name), deadline=chain.deadline)
    )


def to_pause(source: str, target: str) -> DelegationRefused:
    """Say that two agents have spoken to each other too often in a row."""
    return _refuse("max_rounds", f"{source} and {target} are to pause for a moment.")


def spent(most: int) -> DelegationRefused:
    """Say that a message has caused as much as it may."""
    text = f"one message may cause {most} delegations."
    return _refuse("max_delegations", text)


def not_permitted(target: str) -> DelegationRefused:
    """Say that whoever it goes back to may not use an agent, through others neither."""
    text = f"whoever wrote may not use {target}."
    return _refuse("not_permitted", text)


def plain(refused: DelegationRefused) -> str:
    """Give only why, for where it is said what was refused."""
    return refused.text.removeprefix(STOPPED)


def own_share(most: int, heard_by: int) -> int:
    """Give how many tasks one of the agents that heard a person may cause.

    At least one, or nobody could hand on anything in a room full of agents.

    Args:
        most: how many the message may cause, all in all.
        heard_by: how many agents heard it.
    """
    return min(most, max(1, most // max(1, heard_by)))


def visible_turns_left(inbound: Inbound, most: int) -> int:
    """Count the visible turns that may still follow from a message.

    Args:
        inbound: the message; those of a person share among the agents that hear them.
        most: how many one message of a person may cause.
    """
    chain = inbound.chain
    return chain.turns_left if chain.agents else own_share(most, inbound.heard_by)


def share(left: int, wanted: int) -> tuple[int, int]:
    """Divide what may still be handed on among the tasks of one answer.

    Without it an answer could hand on several tasks, each of those several more, and
    a chain of few hops would hold thousands of turns.

    Args:
        left: how many tasks may still be handed on, from here down.
        wanted: how many this answer wants to.

    Returns:
        How many it may, and how many each of those may then hand on in its turn.
    """
    granted = min(max(left, 0), wanted)
    return granted, (left - granted) // granted if granted else 0


def _refuse(reason: RefusalReason, text: str) -> DelegationRefused:
    return DelegationRefused(reason, f"{STOPPED}{text}")


def _find(name: str, names: Collection[str]) -> str | None:
    folded = name.casefold()
    return next((each for each in names if each.casefold() == folded), None)


def _arrows(path: tuple[str, ...]) -> str:
    if len(path) > _SHOWN:
        half = _SHOWN // 2
        path = (*path[:half], "…", *path[-half:])
    return " → ".join(path)
