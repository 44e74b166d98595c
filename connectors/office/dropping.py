"""What is stored when a waiting message is dropped by hand: its end, and a word."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from actors import answers, commits
from actors.messages import Inbound
from actors.redaction import Keep
from runtime.clock import SystemClock
from runtime.ids import IdSource
from runtime.rows import Commit, Settle
from runtime.sqlite_mend import DROPPED

if TYPE_CHECKING:
    from runtime.rows import StoredMessage

TOLD = "This message was dropped by the operator; nobody will answer it."


def dropping(row: StoredMessage) -> Commit:
    """Settle a message, tell its writer, and put that on record.

    The record has no words: without the settings nobody knows which are secret.
    """
    clock = SystemClock()
    settled = Settle(row.id, "dropped", DROPPED)
    try:
        inbound = msgspec.json.decode(row.body, type=Inbound)
    except ValueError:  # another release wrote it, and nobody can be told
        return Commit(at=clock.wall(), settles=(settled,))
    answer = answers.notice(inbound, TOLD, ("dropped", DROPPED), "dropped")
    answer = answers.with_new_ids(answer, IdSource(clock))
    return commits.as_unheard(answer, clock.wall(), Keep(has_texts=False))
