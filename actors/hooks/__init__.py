"""Hooks: the operator's own code, asked about messages on their way.

`book.py` says at which points hooks are asked, and what; `chain.py` what they may
answer and when one that keeps failing is skipped; `asker.py` has the actor that asks
all hooks about one message, and how sessions and turns ask. The router asks, too;
`connectors/hooks` runs the code. Begin with `book.py`.
"""

__all__ = ["asker", "book", "chain"]
