"""One answer to several messages: all are settled with it, and each is told once; pure.

The answer goes to the newest of them, which is what people see last. For each other
one, whoever counts answers is told that none of its own will come.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from actors.answers import Answer, Joint
from actors.delivering import silent
from actors.messages import Line
from actors.rules.heard import sender_of

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from actors.held import Held
    from actors.ledger import Run
    from actors.messages import Inbound


def joint(answer: Answer, held: Held) -> Answer:
    """Let an answer be to all messages of one turn.

    Args:
        answer: to the first of them.
        held: that one, and the others.
    """
    also = (
        *(Joint(each) for each in held.also),
        *(Joint(each, "steered") for each in held.injected),
    )
    if not also:
        return answer
    newest = also[-1].inbound
    deliveries = tuple(
        msgspec.structs.replace(each, reply_to=newest.platform_id)
        if each.reply_to
        else each
        for each in answer.deliveries
    )
    if answer.put_off is None:
        deliveries += tuple(silent(each.inbound) for each in also)
    return msgspec.structs.replace(answer, also=also, deliveries=deliveries)


def interrupted(held: Held, asked: tuple[Line, ...], run: Run | None) -> Answer:
    """Keep words whose answer newer ones have ended: they are read together (F092).

    Args:
        held: the message, and those that share its turn.
        asked: its words; no answer stands behind them, so that they join the next.
        run: what the turn took until then.
    """
    answer = Answer(
        inbound=held.inbound,
        settled=("cancelled", "interrupted"),
        lines=asked,
        deliveries=(silent(held.inbound),),
        run=run,
    )
    return joint(answer, held)


def untold(answer: Answer) -> Answer:
    """Settle a message the same way, and say nothing of it."""
    silence = silent(answer.inbound)
    return msgspec.structs.replace(answer, deliveries=(silence,))


def said_meanwhile(
    injected: Sequence[Inbound], agents: Sequence[str]
) -> tuple[Line, ...]:
    """Give the lines of the history for what was put into a turn."""
    return tuple(
        Line("user", each.text, name=sender_of(each, agents)) for each in injected
    )


def without(answer: Answer, gone: Collection[str]) -> Answer:
    """Leave out further messages that somebody else has settled."""
    also = tuple(each for each in answer.also if each.inbound.id not in gone)
    kept = tuple(each for each in answer.deliveries if each.reply_id not in gone)
    return msgspec.structs.replace(answer, also=also, deliveries=kept)
