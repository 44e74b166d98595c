"""What of a heartbeat's turn people do not hear, and what its lanes leave behind; pure.

A heartbeat comes again: it disturbs nobody by failing once, nor by telling how it is
getting on. What is wrong for longer is told when it is paused. What it says in a lane
goes out from there, and the conversation of the chat is told of it, so that people can
answer and be understood.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from actors.answers import Answer, Aside
from actors.delivering import silent
from actors.messages import Line
from actors.rules.turn import ACKNOWLEDGEMENT

if TYPE_CHECKING:
    from actors.messages import Inbound
    from actors.persona import Persona
    from runtime.ids import IdSource

AGAIN = ("cron", "heartbeat")
"""What is no news if nothing is said of it."""

SAID = ("ok", "silent")
"""Reasons of answers that are an agent's own words, or its silence."""

LOOKED = "(A heartbeat was due, and you looked after your list.)"
"""What stands before such words in the history."""


def quietly(answer: Answer, agent: str, ids: IdSource) -> Answer:
    """Give an answer as people are to hear it.

    Args:
        answer: to any message.
        agent: whose it is.
        ids: for the message that tells the chat's own conversation.
    """
    inbound = answer.inbound
    if inbound.occasion == "heartbeat" and answer.settled[1] not in SAID:
        silence = () if answer.put_off else (silent(inbound),)
        answer = msgspec.structs.replace(answer, deliveries=silence)
    if inbound.occasion in AGAIN and is_mere_sign(answer):
        quiet = msgspec.structs.replace(answer.deliveries[0], text="", kind="silence")
        answer = msgspec.structs.replace(
            answer, settled=("replied", "silent"), lines=(), deliveries=(quiet,)
        )
    if not inbound.lane:
        return answer
    said = "\n\n".join(each.text for each in answer.lines if each.role == "assistant")
    is_heard = any(each.text or each.file for each in answer.deliveries)
    told = (_told(inbound, said, agent, ids),) if said and is_heard else ()
    return msgspec.structs.replace(answer, lines=(), handed=(*answer.handed, *told))


def is_mere_sign(answer: Answer) -> bool:
    """Whether something was done and nothing said: no news of what comes again."""
    return [each.text for each in answer.deliveries] == [ACKNOWLEDGEMENT]


def is_heard_of(aside: Aside) -> bool:
    """Whether people hear what is said beside an answer."""
    is_of_the_making = bool(aside.delivery.status)
    return not (is_of_the_making and aside.inbound.occasion == "heartbeat")


def taken_up(inbound: Inbound, persona: Persona) -> Answer:
    """Remember what the agent has said in a lane; nothing is said anew."""
    return Answer(
        inbound=inbound,
        settled=("replied", "told"),
        lines=(
            Line("user", LOOKED),
            Line("assistant", inbound.text, name=persona.name),
        ),
    )


def _told(inbound: Inbound, said: str, agent: str, ids: IdSource) -> Inbound:
    return msgspec.structs.replace(
        inbound,
        id=ids.new(),
        platform_id=f"{inbound.platform_id}:told",
        correlation_id=inbound.correlation_id,
        agent=agent,
        occasion="told",
        lane="",
        text=said,
        others=0,
    )
