"""Actors: mailbox, references, replies, timers, and the cell that runs one.

Everything else is built on it. Begin with `actor`, the class to subclass, and `ref`,
the handle to an actor; `cell` runs an actor, `lifecycle` ends and restarts it, `kernel`
holds all of them.
"""

__all__ = [
    "actor",
    "cell",
    "committer",
    "dead_letters",
    "envelope",
    "kernel",
    "lifecycle",
    "mailbox",
    "messages",
    "posting",
    "ref",
    "reply",
    "statistics",
    "timers",
]
