"""What a `/stop` is for: one person's work in one chat, and what came of it.

Pure. A person stops what they asked one agent, and what other agents do because of
it, however many hops away. What somebody else asked goes on, in the same chat, too.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from actors.rules.commands import Stop, parse_command

if TYPE_CHECKING:
    from actors.messages import Inbound


def is_of(inbound: Inbound, by: Inbound) -> bool:
    """Tell whether a message goes back to whoever said `/stop`, in the same chat.

    Args:
        inbound: a person's message, or a task that one agent handed to another.
        by: the `/stop`.
    """
    # What is handed on keeps its sender and its address.
    return (inbound.sender_id, inbound.address) == (by.sender_id, by.address)


def is_in_scope(inbound: Inbound, by: Inbound, *, is_scoped: bool) -> bool:
    """Tell whether what interrupts is for a message, by its scope (F090)."""
    return not is_scoped or inbound.interruption_scope == by.interruption_scope


def stop_of(inbound: Inbound) -> Stop | None:
    """Give the `/stop` that a person's message is; None: it is none."""
    if inbound.chain.agents or inbound.occasion:
        return None
    command = parse_command(inbound.text)
    return command if isinstance(command, Stop) else None


def for_room(inbound: Inbound) -> Stop | None:
    """Give the `/stop` of a person in a group that is for all agents there.

    None: it is none, or calls an agent, or replies to one.
    """
    is_called = bool(inbound.mentions or (inbound.quoted and inbound.quoted.agent))
    if inbound.is_direct or is_called:
        return None
    command = stop_of(inbound)
    return command if command is not None and not command.agent else None


def is_caused(
    inbound: Inbound,
    by: Inbound,
    agent: str,
    correlation_id: str = "",
    *,
    is_all: bool = False,
) -> bool:
    """Tell whether a message is a task that an agent handed on for this person.

    Args:
        inbound: what another agent, or the same once more, was given to do.
        by: the `/stop`.
        agent: whom it was said to; empty: to all that are there, so what they were
            asked themselves before it is meant, too; as is what they do in a lane.
        correlation_id: only what goes back to this message; empty: to any.
        is_all: whoever asked for it in that chat.
    """
    if correlation_id and inbound.correlation_id != correlation_id:
        return False
    is_theirs = inbound.address == by.address if is_all else is_of(inbound, by)
    if inbound.lane:
        return is_theirs
    if not agent:
        # Looked at again after a fault, it ends nothing that was asked since.
        return is_theirs and inbound.received_at <= by.received_at
    return agent in inbound.chain.agents[:-1] and is_theirs


def told(*, is_stopped: bool, is_late: bool, is_busy: bool, may_hand_on: bool) -> str:
    """Say what came of a `/stop`, for the person who said it.

    Args:
        is_stopped: something of theirs was running, or waiting.
        is_late: an answer of theirs was being stored already.
        is_busy: the agent works for somebody else.
        may_hand_on: it may have given other agents something to do; who of them is at
            it says so itself.
    """
    if is_stopped:
        return "Stopped."
    if is_late:
        return "Too late: the answer is on its way."
    if may_hand_on:
        handed = "If I handed something on for you, it is stopped."
        return f"Nothing of yours runs here. {handed}"
    return f"There is nothing {'of yours ' if is_busy else ''}to stop."
