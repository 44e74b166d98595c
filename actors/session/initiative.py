"""How the answers of turns that nobody asked for are stored and shown. Pure.

Heartbeats, scheduled prompts and autonomous decisions begin turns without a message of
a person. A heartbeat comes again, so one failure and its progress stay silent; a
heartbeat that keeps failing is paused, and people are told then. A heartbeat may run in
a lane, which is a history of its own: what the agent says there goes out to the chat,
and the chat's conversation gets a copy, so that people can answer to it.
"""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from actors.agents.persona import Persona
from actors.journal import answers
from actors.journal.answers import ACKNOWLEDGEMENT, Answer, Aside
from actors.journal.outbox import silent_result
from actors.messages.inbound import Inbound, TranscriptLine
from actors.messages.usage import Run
from actors.protocol import Finished
from actors.schedule.occasions import as_plan
from actors.schedule.rows import of_plan
from runtime.ids import IdSource

AGAIN = ("cron", "heartbeat")
"""Occasions whose turns say nothing when there is no news."""

SAID = ("ok", "silent")
"""Reasons of answers that are the agent's own words, or its silence."""

LOOKED = "(A heartbeat was due, and you looked after your list.)"
"""Stands in the history before the agent's words of a heartbeat."""


def for_people(answer: Answer, agent: str, ids: IdSource) -> Answer:
    """Give an answer as people are to get it, silent where it is no news."""
    inbound = answer.inbound
    if inbound.occasion == "heartbeat" and answer.settled[1] not in SAID:
        silence = () if answer.put_off else (silent_result(inbound),)
        answer = msgspec.structs.replace(answer, deliveries=silence)
    if inbound.occasion in AGAIN and is_acknowledgement(answer):
        quiet = msgspec.structs.replace(answer.deliveries[0], text="", kind="silence")
        answer = msgspec.structs.replace(
            answer, settled=("replied", "silent"), lines=(), deliveries=(quiet,)
        )
    if not inbound.lane:
        return answer
    is_heard = any(each.text or each.file for each in answer.deliveries)
    told = (_told(answer, agent, ids),) if answer.lines and is_heard else ()
    return msgspec.structs.replace(answer, lines=(), handed=(*answer.handed, *told))


def is_acknowledgement(answer: Answer) -> bool:
    """Whether the answer only acknowledges that something was done."""
    return [each.text for each in answer.deliveries] == [ACKNOWLEDGEMENT]


def is_shown(aside: Aside) -> bool:
    """Whether people get a notice; they get no progress notices of a heartbeat."""
    is_of_the_making = bool(aside.delivery.status)
    return not (is_of_the_making and aside.inbound.occasion == "heartbeat")


def lane_copy(inbound: Inbound, persona: Persona) -> Answer:
    """Store what the agent said in a lane as part of the chat's conversation.

    Nothing is sent: people have read it already.
    """
    # An earlier release gave the words alone.
    spoken = TranscriptLine("assistant", inbound.text, name=persona.name)
    lines = inbound.history or (TranscriptLine("user", LOOKED), spoken)
    return Answer(inbound=inbound, settled=("replied", "told"), lines=lines)


OWN_WORDS: dict[str, Callable[[Inbound, Persona], Answer]] = {
    "said": answers.reminder,
    "told": lane_copy,
}
"""Answers that need no turn, by the occasion of the message."""


def _told(answer: Answer, agent: str, ids: IdSource) -> Inbound:
    inbound, asked = answer.inbound, answer.lines
    if inbound.occasion == "heartbeat":  # the list would be told again at each beat
        asked = (TranscriptLine("user", LOOKED), *asked[1:])
    said = [each.text for each in answer.lines if each.role == "assistant"]
    new_id = ids.new()
    return msgspec.structs.replace(
        inbound,
        id=new_id,
        # Not the same each time: what was given up, and told of, may be tried again.
        platform_id=f"{inbound.platform_id}:told:{new_id}",
        correlation_id=inbound.correlation_id,
        agent=agent,
        occasion="told",
        lane="",
        text="\n\n".join(filter(None, said)),
        history=asked,
        others=0,
    )


def settle_decision(
    inbound: Inbound,
    finished: Finished,
    persona: Persona,
    made: tuple[IdSource, float],
    run: Run | None = None,
) -> Answer:
    """Settle an autonomous decision silently; its plan becomes a message of its own.

    Both are one commit, so a plan that was decided is carried out exactly once.

    Args:
        made: makes ids, and now in Unix seconds.
        run: what the turn took.
    """
    ids, now = made
    quiet = answers.silence(inbound, (), finished, persona, (), run)
    plan = finished.carried.plan
    if plan is None:
        return msgspec.structs.replace(quiet, settled=("replied", "idle"))
    message = as_plan(inbound, plan, ids.new(), now)
    (told,) = quiet.deliveries
    carried = msgspec.structs.replace(finished.carried, records=(of_plan(message),))
    return msgspec.structs.replace(
        quiet,
        settled=("replied", "decided"),
        handed=(message,),
        carried=carried,
        deliveries=(msgspec.structs.replace(told, answers_left=1),),
    )
