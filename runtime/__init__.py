"""The kernel: actors, mailboxes, supervision, timers, durable storage, metrics.

Knows nothing of chat and never touches the network. Read `SEMANTICS.md` in this
folder for what callers may rely on.
"""

__version__ = "0.1.0"
