"""The moments at which a process of Callboard is made to die.

The first group are moments of a transaction, which `victim.py` sees by looking over
SQLite's shoulder; those of a model call are seen by the provider that is asked.
"""

from __future__ import annotations

from typing import Literal

import msgspec

Change = Literal["accept", "claim", "event", "reply", "attempt", "settle", "receipt"]
"""What a transaction may do."""


class Commit(msgspec.Struct, frozen=True):
    """The moment before or after a transaction that does something."""

    change: Change
    is_after: bool
    """After it, when it is on the disk and nobody has been told."""


COMMITS = {
    "before-accept": Commit("accept", is_after=False),
    "before-acknowledgement": Commit("accept", is_after=True),
    "after-claim": Commit("claim", is_after=True),
    "before-reply": Commit("reply", is_after=False),
    "before-sending": Commit("reply", is_after=True),
    "after-step": Commit("event", is_after=True),
    "before-receipt": Commit("receipt", is_after=False),
    "after-receipt": Commit("receipt", is_after=True),
}
MODEL_CALL = "model-call"
TOOL_CALLS = "between-tool-calls"
SHUTDOWN = "shutdown"
STARTING = "starting"
ANY = "any"
"""No named moment: whenever it is."""

NAMED = (*COMMITS, MODEL_CALL, TOOL_CALLS, SHUTDOWN)


def change_of(statement: str) -> Change | None:
    """Tell what a statement of the store does; None: nothing of interest."""
    words = " ".join(statement.split())
    if "?" not in words:
        return None  # a migration, which copies whole tables
    is_final = "settled_at = ?" in words
    if words.startswith("UPDATE inbox"):
        return "settle" if is_final else "claim" if "'running'" in words else None
    if words.startswith("UPDATE outbox"):
        return "receipt" if is_final else "attempt"
    for table, change in INSERTS.items():
        if words.startswith(f"INSERT INTO {table}"):
            return change
    return None


INSERTS: dict[str, Change] = {"inbox": "accept", "journal": "event", "outbox": "reply"}
