"""What came with a message becomes part of the question, before anybody answers it.

Done by the turn, when the question is answered: what comes in is acknowledged without
waiting for it, and a crash only means reading it again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from actors.messages import Media
from actors.protocol import StartTurn
from actors.rules.quoting import with_quote

if TYPE_CHECKING:
    from actors.messages import Inbound
    from actors.services import Services

NAMED = "[{kind}: {name}]"
NOBODY_READS = "[What came along was not read: this company reads no attachments]"


class Question(msgspec.Struct, frozen=True):
    """A question with its attachments read."""

    start: StartTurn
    """Its message's text has in it what the attachments say."""

    heard: str | None = None
    """The question as the history keeps it; None: as it was written."""


async def read_attachments(start: StartTurn, services: Services) -> Question:
    """Read what came with a question; nothing changes where nothing did."""
    inbound = start.inbound
    if not inbound.attachments:
        return Question(start)
    if services.media is None:
        media = Media(text=NOBODY_READS, kept=NOBODY_READS)
    else:
        media = await services.media.read(inbound.attachments)
    asked = msgspec.structs.replace(
        inbound, text=joined(inbound.text, media.text), attachments=()
    )
    start = msgspec.structs.replace(start, inbound=asked, images=media.images)
    return Question(start, with_quote(joined(inbound.text, media.kept), inbound))


def unread(inbound: Inbound) -> str:
    """Give a message's words, what came along by its name only, and what it quotes."""
    named = "\n".join(
        NAMED.format(kind=each.kind.capitalize(), name=each.name)
        for each in inbound.attachments
    )
    return with_quote(joined(inbound.text, named) if named else inbound.text, inbound)


def joined(words: str, more: str) -> str:
    """Put what attachments say after what somebody wrote."""
    return "\n\n".join(part for part in (words.strip(), more) if part)
