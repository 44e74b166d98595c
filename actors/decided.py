"""What a session does with a decision of its agent to act by itself, or not; pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from actors import answers
from actors.occasions import as_plan
from actors.slot_records import of_plan

if TYPE_CHECKING:
    from actors.answers import Answer
    from actors.ledger import Run
    from actors.messages import Inbound
    from actors.persona import Persona
    from actors.protocol import Finished
    from runtime.ids import IdSource


def decided(
    inbound: Inbound,
    finished: Finished,
    persona: Persona,
    made: tuple[IdSource, float],
    run: Run | None = None,
) -> Answer:
    """Settle a decision without a word; the plan goes on as a message of its own.

    Both are one commit: a plan is carried out if it was decided, and then once.

    Args:
        inbound: the slot.
        finished: what was decided.
        persona: who decided.
        made: makes ids, and now in Unix seconds.
        run: what deciding took.
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
