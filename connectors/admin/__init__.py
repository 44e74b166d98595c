"""Operators' reading and changing by hand: the same for command line and web page.

Each subject is read in one way and changed in one way here; the commands print it, the
page shows it. All of it works on `runtime.store.database` and blocks: a server calls it
in a thread. Begin with `queue.py` (messages and deliveries) and `display.py` (how times
and texts are written).
"""

__all__ = [
    "audit",
    "conversations",
    "display",
    "forgetting",
    "nodes",
    "probes",
    "queue",
    "schedule",
    "settings",
    "tree",
    "usage",
]
