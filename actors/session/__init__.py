"""One conversation: its history, its queue, and at most one turn at a time.

The router wakes a session for each message; it starts turns and hands answers to the
connector. Begin with `session`, the actor; its parts are `line` and `queue` (what
waits), `attempt` (the turn that runs), `lifecycle` (summaries and resets) and `outbox`
(answers on their way to the store).
"""

__all__ = [
    "closer",
    "condenser",
    "consent",
    "reply_windows",
    "session",
    "stop",
]
