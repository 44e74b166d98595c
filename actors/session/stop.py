"""Which messages a `/stop` ends. Pure.

A person stops what they asked one agent in one chat, and what other agents do because
of it, however often it was handed on. What somebody else asked goes on, also in the
same chat.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from actors.messages.commands import Stop, parse_command
from actors.messages.inbound import Inbound
from actors.protocol import StopDelegated
from actors.rules.groups.mentions import mentioned

NOT_ALL = "/stop all is for those who run this company; /stop is for everyone."


def is_same_asker(inbound: Inbound, by: Inbound) -> bool:
    """Tell whether a message comes from the person who said `/stop`, in that chat.

    Args:
        inbound: a person's message, or a task that one agent handed to another.
        by: the `/stop`.
    """
    # A task that is handed on keeps its sender and its address.
    return (inbound.sender_id, inbound.address) == (by.sender_id, by.address)


def ids_of_asker(
    pending: Iterable[Inbound], by: Inbound, *, is_all: bool
) -> frozenset[str]:
    """Give the ids of the messages that a `/stop` ends in its own session.

    Args:
        pending: the messages of the session; the `/stop` may be among them.
        by: the `/stop`.
        is_all: whether it ends the messages of all people.
    """
    found = (each for each in pending if each != by)
    return frozenset(each.id for each in found if is_all or is_same_asker(each, by))


def stop_command(inbound: Inbound) -> Stop | None:
    """Give the `/stop` command of a person's message; None: it has none."""
    if inbound.chain.agents or inbound.occasion:
        return None
    command = parse_command(inbound.text)
    return command if isinstance(command, Stop) else None


def stop_for_room(inbound: Inbound, agents: Mapping[str, str]) -> Stop | None:
    """Give the `/stop` in a group that is for all agents there.

    None: the message is no `/stop`, or it calls an agent, or replies to one.

    Args:
        agents: names of the agents by their case-folded names.
    """
    if inbound.is_direct or (inbound.quoted and inbound.quoted.agent):
        return None
    if inbound.mentions or mentioned(inbound.text, agents):
        return None
    command = stop_command(inbound)
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
        inbound: a task of another agent, or of the same agent once more.
        by: the `/stop`.
        agent: whom the `/stop` was said to. Empty: to all agents of the chat; then it
            also ends what they were asked themselves before it. What an agent does in a
            lane is ended in both cases.
        correlation_id: only tasks that come from this message; empty: from any.
        is_all: whether it ends the tasks of all people of that chat.
    """
    if correlation_id and inbound.correlation_id != correlation_id:
        return False
    is_theirs = inbound.address == by.address if is_all else is_same_asker(inbound, by)
    if inbound.lane:
        return is_theirs
    if not agent:
        # A `/stop` that is handled again after a fault ends nothing asked since. Ids
        # are in the order of what was said, whatever the clock does.
        return is_theirs and inbound.correlation_id <= by.correlation_id
    return agent in inbound.chain.agents[:-1] and is_theirs


def is_meant(inbound: Inbound, stop: StopDelegated) -> bool:
    """Tell whether a `/stop` that was said elsewhere is to end a message here."""
    by, agent, origin = stop.by, stop.agent, stop.correlation_id
    return is_caused(inbound, by, agent, origin, is_all=stop.is_all)


def stop_notice(
    *,
    is_stopped: bool,
    is_late: bool,
    is_busy: bool,
    may_hand_on: bool,
    has_lanes: bool = False,
) -> str:
    """Say what a `/stop` did, for the person who said it.

    Args:
        is_stopped: whether something of theirs was running or waiting.
        is_late: whether an answer to them was being stored already.
        is_busy: whether the agent works for somebody else.
        may_hand_on: whether the agent may have handed something to other agents; those
            that work on it answer by themselves.
        has_lanes: whether the agent may be at something that was due; it answers by
            itself, too.
    """
    if is_stopped:
        return "Stopped."
    if is_late:
        return "Too late: the answer is on its way."
    if has_lanes:
        return (
            "Nothing of yours runs here. If I handed something on for you, or was at"
            " something that was due, it is stopped."
        )
    if may_hand_on:
        handed = "If I handed something on for you, it is stopped."
        return f"Nothing of yours runs here. {handed}"
    return f"There is nothing {'of yours ' if is_busy else ''}to stop."
