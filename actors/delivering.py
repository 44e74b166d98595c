"""What is said about one message, as the rows of the outbox that say it; pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from actors.deliveries import Delivery, Trouble, replied_to
from actors.messages import SentFile
from actors.rules import enclosing, parts
from actors.rules.voice import Translated

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from actors.deliveries import Abilities
    from actors.messages import Inbound, Usage


class Piece(msgspec.Struct, frozen=True):
    """One message of a reply."""

    agent: str
    """Who says it; empty: the runtime itself."""

    text: str
    file: SentFile | None = None


def delivery(
    inbound: Inbound, agent: str, text: str, *, number: int = 0, trouble: Trouble = ""
) -> Delivery:
    """Say something about a message, where it came from.

    Args:
        inbound: what it is about.
        agent: who says it; empty: the runtime itself.
        text: what is said.
        number: which part of the reply it is.
        trouble: what went wrong, if it tells of that.
    """
    return Delivery(
        id=f"{inbound.id}:{number}",
        reply_id=inbound.id,
        part=number,
        correlation_id=inbound.correlation_id,
        address=inbound.address,
        agent=agent,
        text=text,
        is_root=not inbound.chain.agents and inbound.id == inbound.correlation_id,
        reply_to=replied_to(inbound),
        kind="reply" if agent else "notice",
        trouble=trouble,
        answers_left=inbound.others,
    )


def silent(inbound: Inbound) -> Delivery:
    """Tell whoever counts answers that this message gets none of its own."""
    return msgspec.structs.replace(delivery(inbound, "", ""), kind="silence")


def pieces(
    agent: str,
    text: str,
    notices: Iterable[str],
    files: Iterable[SentFile],
    place: tuple[Abilities, str],
) -> list[Piece]:
    """Take a reply apart into the messages that its platform takes.

    Args:
        agent: who says it.
        text: its words.
        notices: what the runtime says beside them.
        files: what goes out with it: after all words, in their order.
        place: what the platform can do, and its kind.
    """
    can, platform = place
    said = [Piece(agent, part) for part in parts.for_platform(text, can)]
    said += [Piece("", line) for line in notices]
    brought: list[Piece] = []
    for each in enclosing.fitted(files, can, platform):
        if isinstance(each, enclosing.LeftOut):
            # Why translated: no other part of a sentence of ours is somebody's words.
            said.append(Piece("", Translated(each.text)))
            continue
        said += [Piece(agent, part) for part in parts.for_platform(each.before, can)]
        brought.append(Piece(agent, each.text, each.file))
    return said + brought


def numbered(
    inbound: Inbound, said: Sequence[Piece], announced: int, usage: Usage | None
) -> tuple[Delivery, ...]:
    """Make the rows of one reply.

    Args:
        inbound: what it answers.
        said: its messages, at least one, in order; those with files last.
        announced: how many further answers come, beside these.
        usage: what the turn took, for the first of them.

    Returns:
        Words count their own parts alone, so that drafts of them know their end.
    """
    words = sum(each.file is None for each in said)
    rows = [
        msgspec.structs.replace(
            delivery(inbound, each.agent, each.text, number=number),
            answers_left=0,
            parts=words if each.file is None else len(said),
            file=each.file,
        )
        for number, each in enumerate(said)
    ]
    rows[0] = msgspec.structs.replace(
        rows[0], answers_left=announced + len(rows) - 1, usage=usage
    )
    return tuple(rows)


def instead(delivery: Delivery, why: str) -> Delivery:
    """Say in words that a file was refused; sent again, it is the same message."""
    if delivery.file is None:
        return delivery
    told = enclosing.not_sent(delivery.file, why)
    text = f"{told}\n{delivery.text}".strip()
    return msgspec.structs.replace(delivery, text=text, file=None)


def spoken(deliveries: Iterable[Delivery]) -> str:
    """Write down what was said, for who reads it later; files by their names."""
    said: list[str] = []
    for each in deliveries:
        if each.file is not None:
            said.append(f"[File: {each.file.name}]")
        if each.text:
            said.append(each.text)
    return "\n\n".join(said)
