"""Asks hooks about the files of a message, whose texts only the turn reads."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from actors.hooks.asker import outcome_of
from actors.hooks.book import AskHooks, about
from actors.hooks.chain import HookPart
from actors.messages.inbound import Inbound, Media
from runtime.telemetry.logs import EventLog, Quoted

if TYPE_CHECKING:
    from actors.services import Services
    from runtime.actor.actor import Actor

LOG = EventLog("hooks")

HELD_BACK = "[What came along was held back]"


async def worded_files(
    media: Media, inbound: Inbound, asker: tuple[Services, Actor]
) -> Media:
    """Ask hooks about what was read in a message's files.

    Args:
        media: the texts; hooks see no pictures.
        inbound: the message.
        asker: has the hooks; and the actor that asks, which handles nothing else
            meanwhile.

    Returns:
        The texts as the hooks leave them; pictures go if one holds a text back.
    """
    services, turn = asker
    hooks = services.hooks.reading(inbound)
    texts = [x for x in dict.fromkeys((media.text, media.kept)) if x.strip()]
    if not (hooks and texts):
        return media
    asked = AskHooks(
        event="message_received",
        hooks=hooks,
        about=about(inbound, ""),
        text="",
        most=services.limits.max_message_chars,
        parts=tuple(HookPart("file", each) for each in texts),
    )
    passed = await outcome_of(asked, turn, services.ids)
    if passed.cancelled_by:
        LOG.info(
            "files held back by a hook",
            correlation_id=inbound.correlation_id,
            hook=passed.cancelled_by,
            why=Quoted(passed.reason),
        )
        return Media(text=HELD_BACK, kept=HELD_BACK)
    text, kept = (passed.worded("file", x) for x in (media.text, media.kept))
    return msgspec.structs.replace(media, text=text, kept=kept)
