"""Makes the deliveries of an answer; pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from actors.journal import attachments as enclosing, splitting as parts
from actors.messages.deliveries import Abilities, Delivery, Trouble
from actors.messages.inbound import Inbound, SentFile, Usage
from actors.rules.text.translations import Translated

GOES_ON = "I may only send {count} messages at a time here. Write anything to read on."


class ReplyPart(msgspec.Struct, frozen=True):
    """One message of a reply."""

    agent: str
    """Who says it; empty: the runtime itself."""

    text: str
    file: SentFile | None = None


def delivery(
    inbound: Inbound, agent: str, text: str, *, number: int = 0, trouble: Trouble = ""
) -> Delivery:
    """Make a delivery about a message, into its chat.

    Args:
        agent: who says it; empty: the runtime itself.
        number: which part of the reply it is.
        trouble: what went wrong, if it reports that.
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
        reply_to=inbound.answered_id,
        kind="reply" if agent else "notice",
        trouble=trouble,
        answers_left=inbound.others,
    )


def silent_result(inbound: Inbound, ends: str = "") -> Delivery:
    """Make the delivery that tells a client that counts answers that none will come.

    Args:
        ends: see `Delivery.ends`.
    """
    silence = delivery(inbound, "", "")
    return msgspec.structs.replace(silence, kind="silence", ends=ends)


def pieces(
    agent: str,
    text: str,
    notices: Iterable[str],
    files: Iterable[SentFile],
    can: Abilities,
) -> list[ReplyPart]:
    """Split a reply into the messages that its platform takes.

    Args:
        notices: sentences of the runtime beside it.
        files: sent after all text, in this order.
    """
    said = [ReplyPart(agent, part) for part in parts.for_platform(text, can)]
    said += [ReplyPart("", line) for line in notices]
    brought: list[ReplyPart] = []
    for each in enclosing.fitted(files, can):
        if isinstance(each, enclosing.LeftOut):
            # Why `Translated`: it quotes others, whose words are not translated.
            said.append(ReplyPart("", Translated(each.text)))
            continue
        said += [
            ReplyPart(agent, part) for part in parts.for_platform(each.before, can)
        ]
        brought.append(ReplyPart(agent, each.text, each.file))
    return _paged([*said, *brought], can.answers_each)


def _paged(said: list[ReplyPart], most: int) -> list[ReplyPart]:
    """Say at the last place of each page that there is more; `most` 0: one page."""
    if not 1 < most < len(said):
        return said
    more = ReplyPart("", GOES_ON.format(count=most))
    return [*said[: most - 1], more, *_paged(said[most - 1 :], most)]


def numbered(
    inbound: Inbound, said: Sequence[ReplyPart], announced: int, usage: Usage | None
) -> tuple[Delivery, ...]:
    """Make the deliveries of one reply.

    Args:
        said: its parts, at least one, in order; those with files last.
        announced: how many further answers come, beside these.
        usage: the turn's tokens, for the first delivery.

    Returns:
        Parts with text count only themselves, so that drafts of them know their end.
    """
    words = sum([each.file is None for each in said])
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
    """Replace a delivery's file, which was refused, by words; its id stays the same."""
    if delivery.file is None:
        return delivery
    told = enclosing.not_sent(delivery.file, why)
    text = f"{told}\n{delivery.text}".strip()
    return msgspec.structs.replace(delivery, text=text, file=None)


def spoken(deliveries: Iterable[Delivery]) -> str:
    """Give what was sent as text, for later readers; files by their names."""
    said: list[str] = []
    for each in deliveries:
        if each.file is not None:
            said.append(f"[File: {each.file.name}]")
        if each.text:
            said.append(each.text)
    return "\n\n".join(said)
